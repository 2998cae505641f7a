//! Replies to requests about one record.

use super::code::{Kind, words};
use super::frame::{FrameKind, Frames, RETAINED_BYTES, ReplyError};
use super::message::{Message, particle};
use crate::http1::Decoded;
use crate::json;
use crate::reply::ReplyLimits;

/// What stands around the values of a reply: names of at most 32,767 bins with their lengths.
const BESIDE_BYTES: usize = 1 << 20;
/// Seconds from 1970 to 2010, from where the server counts.
const EPOCH_S: u64 = 1_262_304_000;

/// What is made of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing: whether it was done is all.
    Nothing,
    /// The value of the only bin that was asked for.
    Bin,
    /// A JSON object of its bins.
    Bins,
}

/// Decodes one reply after the other from a connection's bytes.
///
/// [`start`](Self::start) for each request that was sent, then [`decode`](Self::decode) with what comes until it is
/// complete. The accessors hold from then until the next `start`. After an error the connection is of no more use.
#[derive(Debug)]
pub struct ReplyDecoder {
    frames: Frames,
    reply: Reply,
    has_begun: bool,
    failed: Option<ReplyError>,
}

/// What a reply says.
#[derive(Debug)]
struct Reply {
    limit_bytes: usize,
    wanted: Wanted,
    keep_body: bool,
    kind: Kind,
    body: Vec<u8>,
    code: Vec<u8>,
    generation: Vec<u8>,
    expires: Vec<u8>,
}

impl ReplyDecoder {
    /// A decoder; [`start`](Self::start) makes it ready.
    pub fn new(limits: ReplyLimits) -> Self {
        ReplyDecoder {
            frames: Frames::new(FrameKind::Message, limits.body_bytes, BESIDE_BYTES),
            reply: Reply {
                limit_bytes: limits.body_bytes,
                wanted: Wanted::Nothing,
                keep_body: true,
                kind: Kind::Done,
                body: Vec::new(),
                code: Vec::new(),
                generation: Vec::new(),
                expires: Vec::new(),
            },
            has_begun: false,
            failed: None,
        }
    }

    /// Begins the reply to a new request. `keep_body`: what it holds is kept; otherwise only the words of what was not done are.
    pub fn start(&mut self, wanted: Wanted, keep_body: bool) {
        self.frames.clear();
        self.reply.wanted = wanted;
        self.reply.keep_body = keep_body;
        self.reply.clear();
        self.has_begun = false;
        self.failed = None;
    }

    /// What the reply is.
    pub fn kind(&self) -> Kind {
        self.reply.kind
    }

    /// What it holds: a value, a JSON object, or of what was not done the result code and what it says.
    pub fn body(&self) -> &[u8] {
        &self.reply.body
    }

    /// Bytes of that; none where nothing of it is kept.
    pub fn body_bytes(&self) -> Option<usize> {
        self.reply.keep_body.then(|| self.body().len())
    }

    /// Bytes that are held for a frame that is not whole, and for what a reply holds.
    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> (usize, usize) {
        (self.frames.held_bytes(), self.reply.body.capacity())
    }

    /// What it says beside that: `generation`, `expires` (Unix time; 0 for never) of the record, the result `code`.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        let field = match name {
            "code" => &self.reply.code,
            "generation" => &self.reply.generation,
            "expires" => &self.reply.expires,
            _ => return None,
        };
        (!field.is_empty()).then_some(field)
    }

    /// The peer closed the connection, before the reply was whole.
    pub fn finish(&mut self) -> ReplyError {
        match self.failed {
            Some(error) => error,
            None if self.has_begun => ReplyError::Truncated,
            None => ReplyError::Empty,
        }
    }

    /// Takes the bytes of the current reply from the front of `input`; bytes of a next one are left alone.
    ///
    /// # Errors
    /// The bytes are no reply, or larger than the limits; repeated until `start`.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, ReplyError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.has_begun |= !input.is_empty();
        let reply = &mut self.reply;
        match self.frames.take(input, |payload| reply.read(payload)) {
            Ok((consumed, whole)) => Ok(Decoded { consumed, complete: whole.is_some() }),
            Err(error) => {
                self.failed = Some(error);
                Err(error)
            }
        }
    }
}

impl Reply {
    fn clear(&mut self) {
        self.kind = Kind::Done;
        self.body.clear();
        self.body.shrink_to(RETAINED_BYTES);
        self.code.clear();
        self.generation.clear();
        self.expires.clear();
    }

    fn read(&mut self, payload: &[u8]) -> Result<(), ReplyError> {
        let message = Message::read(payload)?;
        let digits = |number: u64, out: &mut Vec<u8>| {
            out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        };
        self.kind = Kind::of(message.code);
        digits(message.code.into(), &mut self.code);
        if self.kind == Kind::Done {
            digits(message.generation.into(), &mut self.generation);
            let expires = if message.expires == 0 { 0 } else { u64::from(message.expires) + EPOCH_S };
            digits(expires, &mut self.expires);
        }
        let rest = match self.wanted {
            _ if self.kind != Kind::Done => message.each_bin(|_| Ok(()))?,
            Wanted::Nothing => message.each_bin(|_| Ok(()))?,
            Wanted::Bin => {
                let (body, keep_body) = (&mut self.body, self.keep_body);
                let mut is_there = false;
                let rest = message.each_bin(|bin| {
                    is_there |= bin.particle != particle::NULL;
                    if keep_body { bin.append_text(body) } else { Ok(()) }
                })?;
                if !is_there {
                    self.kind = Kind::Miss;
                }
                rest
            }
            Wanted::Bins if !self.keep_body => message.each_bin(|_| Ok(()))?,
            Wanted::Bins => {
                let body = &mut self.body;
                body.push(b'{');
                let rest = message.each_bin(|bin| {
                    if body.len() > 1 {
                        body.push(b',');
                    }
                    json::write_string(bin.name, body);
                    body.push(b':');
                    bin.append_json(body)
                })?;
                body.push(b'}');
                rest
            }
        };
        if !rest.is_empty() {
            return Err(ReplyError::Length);
        }
        if self.body.len() > self.limit_bytes {
            return Err(ReplyError::TooLarge { limit_bytes: self.limit_bytes });
        }
        if matches!(self.kind, Kind::NotDone | Kind::Error) {
            digits(message.code.into(), &mut self.body);
            self.body.extend_from_slice(b": ");
            self.body.extend_from_slice(words(message.code).as_bytes());
        }
        Ok(())
    }
}
