//! Requests about one record.

use ripemd::{Digest, Ripemd160};

use super::frame::{self, FRAME_BYTES, FrameKind};
use super::message::{HEADER_BYTES, particle};

/// What is done with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Reads bins, all of them where none is named.
    Get,
    /// Looks whether it is there.
    Exists,
    /// Writes bins; others stay.
    Put,
    /// The same of a record that must not be there.
    Create,
    /// The same of one that must be there.
    Update,
    /// Writes bins; others go.
    Replace,
    /// Puts text behind that of bins.
    Append,
    /// Puts text in front of that of bins.
    Prepend,
    /// Adds whole numbers to bins.
    Add,
    /// Counts as a write, so that it expires later.
    Touch,
    /// Takes it away.
    Delete,
}

/// Flags of a request.
mod flag {
    pub const READ: u8 = 1;
    pub const ALL_BINS: u8 = 1 << 1;
    pub const NO_BINS: u8 = 1 << 5;
    pub const WRITE: u8 = 1;
    pub const DELETE: u8 = 1 << 1;
    pub const GENERATION: u8 = 1 << 2;
    pub const CREATE_ONLY: u8 = 1 << 5;
    pub const UPDATE_ONLY: u8 = 1 << 3;
    pub const CREATE_OR_REPLACE: u8 = 1 << 4;
}

/// Fields of a request.
pub(super) mod field {
    pub const NAMESPACE: u8 = 0;
    pub const SET: u8 = 1;
    pub const DIGEST: u8 = 4;
    pub const QUERY_ID: u8 = 7;
    pub const SOCKET_TIMEOUT: u8 = 9;
    pub const PARTITIONS: u8 = 11;
}

/// Where things stand in a message, from the beginning of its frame on.
const INFO2_AT: usize = FRAME_BYTES + 2;
const GENERATION_AT: usize = FRAME_BYTES + 6;
const EXPIRES_AT: usize = FRAME_BYTES + 10;

const DIGEST_BYTES: usize = 20;

impl Action {
    /// Whether it changes the record.
    pub fn is_write(self) -> bool {
        !matches!(self, Action::Get | Action::Exists)
    }

    /// Whether a value belongs to each bin.
    pub fn has_values(self) -> bool {
        use Action::{Add, Append, Create, Prepend, Put, Replace, Update};
        matches!(self, Put | Create | Update | Replace | Append | Prepend | Add)
    }

    /// Its flags, of three kinds.
    fn flags(self, has_bins: bool) -> [u8; 3] {
        match self {
            Action::Get if has_bins => [flag::READ, 0, 0],
            Action::Get => [flag::READ | flag::ALL_BINS, 0, 0],
            Action::Exists => [flag::READ | flag::NO_BINS, 0, 0],
            Action::Create => [0, flag::WRITE | flag::CREATE_ONLY, 0],
            Action::Update => [0, flag::WRITE, flag::UPDATE_ONLY],
            Action::Replace => [0, flag::WRITE, flag::CREATE_OR_REPLACE],
            Action::Delete => [0, flag::WRITE | flag::DELETE, 0],
            Action::Put | Action::Append | Action::Prepend | Action::Add | Action::Touch => {
                [0, flag::WRITE, 0]
            }
        }
    }

    /// What is done with each bin, as operations are counted.
    fn operation(self) -> u8 {
        match self {
            Action::Get | Action::Exists => 1,
            Action::Put | Action::Create | Action::Update | Action::Replace => 2,
            Action::Add => 5,
            Action::Append => 9,
            Action::Prepend => 10,
            Action::Touch => 11,
            Action::Delete => 14,
        }
    }
}

/// What a write says beside the values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extra {
    /// In how many seconds the record expires: 0 as the namespace has it, -1 never, -2 as before.
    pub expires_s: i32,
    /// The generation that it must have.
    pub generation: Option<u32>,
}

/// A request without what varies.
#[derive(Debug, Clone)]
pub struct Form {
    /// Up to the digest.
    head: Vec<u8>,
    /// What the digest begins with.
    hash: Ripemd160,
    /// The operation of each bin, behind its length.
    bins: Vec<Vec<u8>>,
    has_values: bool,
}

impl Form {
    /// What is done with records of a set, and with these bins of them.
    pub fn new(action: Action, namespace: &str, set: &str, bins: &[&str]) -> Form {
        // a touch is an operation without a bin
        let bins: &[&str] = if action == Action::Touch { &[""] } else { bins };
        let mut head = Vec::new();
        frame::begin(FrameKind::Message, &mut head);
        let [info1, info2, info3] = action.flags(!bins.is_empty());
        let fields = if set.is_empty() { 2 } else { 3 };
        let count = u16::try_from(bins.len()).unwrap_or(u16::MAX).to_be_bytes();
        head.extend_from_slice(&header([info1, info2, info3], fields, count));
        append_field(field::NAMESPACE, namespace.as_bytes(), &mut head);
        if !set.is_empty() {
            append_field(field::SET, set.as_bytes(), &mut head);
        }
        head.extend_from_slice(&[0, 0, 0, DIGEST_BYTES as u8 + 1, field::DIGEST]);
        let particle = match action {
            Action::Add => particle::INTEGER,
            action if action.has_values() => particle::STRING,
            _ => particle::NULL,
        };
        let operation = |name: &&str| {
            let length = u8::try_from(name.len()).unwrap_or(u8::MAX);
            [&[action.operation(), particle, 0, length][..], name.as_bytes()].concat()
        };
        Form {
            head,
            hash: hash(set),
            bins: bins.iter().map(operation).collect(),
            has_values: action.has_values(),
        }
    }

    /// Appends the request about the record of this key, up to its values; returns where it begins. What follows is
    /// a [`value`](Self::value) for each bin, in their order, and the `end`.
    pub fn begin(&self, key: &[u8], extra: Extra, out: &mut Vec<u8>) -> usize {
        let begin = out.len();
        out.extend_from_slice(&self.head);
        if let Some(generation) = extra.generation {
            out[begin + INFO2_AT] |= flag::GENERATION;
            out[begin + GENERATION_AT..begin + GENERATION_AT + 4].copy_from_slice(&generation.to_be_bytes());
        }
        out[begin + EXPIRES_AT..begin + EXPIRES_AT + 4].copy_from_slice(&extra.expires_s.to_be_bytes());
        let mut hash = self.hash.clone();
        hash.update(key);
        out.extend_from_slice(&hash.finalize());
        if !self.has_values {
            for operation in &self.bins {
                out.extend_from_slice(&(operation.len() as u32).to_be_bytes());
                out.extend_from_slice(operation);
            }
        }
        begin
    }

    /// Appends the value of a bin: a text, or of [`Action::Add`] the eight bytes of a number.
    ///
    /// # Errors
    /// Those of `write`; what was appended is then to be taken away again.
    pub fn value<E>(
        &self,
        bin: usize,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.bins[bin]);
        write(out)?;
        let length = u32::try_from(out.len() - begin - 4).unwrap_or(u32::MAX);
        out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }
}

/// Flags and counts of a message.
pub(super) fn header(flags: [u8; 3], fields: u8, operations: [u8; 2]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0] = HEADER_BYTES as u8;
    header[1..4].copy_from_slice(&flags);
    header[19] = fields;
    header[20..].copy_from_slice(&operations);
    header
}

pub(super) fn append_field(kind: u8, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(value.len() as u32 + 1).to_be_bytes());
    out.push(kind);
    out.extend_from_slice(value);
}

/// The digest of a set's keys as far as all have it.
fn hash(set: &str) -> Ripemd160 {
    Ripemd160::new().chain_update(set).chain_update([particle::STRING])
}

/// By what a record is found: of its set and its key, which is a text.
pub fn digest(set: &str, key: &[u8]) -> [u8; 20] {
    hash(set).chain_update(key).finalize().into()
}
