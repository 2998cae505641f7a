//! Frames, and the primitive values in them.

use super::CqlError;
use crate::http1::Decoded;

/// Kinds of frames.
pub mod opcode {
    /// An error.
    pub const ERROR: u8 = 0x00;
    /// The first frame of a client.
    pub const STARTUP: u8 = 0x01;
    /// The server takes requests.
    pub const READY: u8 = 0x02;
    /// The server wants to know who comes.
    pub const AUTHENTICATE: u8 = 0x03;
    /// A statement as text.
    pub const QUERY: u8 = 0x07;
    /// A result.
    pub const RESULT: u8 = 0x08;
    /// A statement to be prepared.
    pub const PREPARE: u8 = 0x09;
    /// A prepared statement to be executed.
    pub const EXECUTE: u8 = 0x0a;
    /// Who comes.
    pub const AUTH_RESPONSE: u8 = 0x0f;
    /// That is well.
    pub const AUTH_SUCCESS: u8 = 0x10;
}

/// What stands before a frame's body: version, flags, stream, kind, length.
const HEAD_BYTES: usize = 9;
/// The version in what a server sends.
const VERSION: u8 = 0x84;
/// Flags of what a server sends.
const TRACING: u8 = 0x02;
const PAYLOAD: u8 = 0x04;
const WARNINGS: u8 = 0x08;

/// A frame of a server.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// Its kind.
    pub opcode: u8,
    /// The number of what it answers.
    pub stream: i16,
    /// What it holds.
    pub body: &'a [u8],
}

/// Takes frames from bytes as they come.
#[derive(Debug)]
pub struct Frames {
    most_bytes: usize,
    /// The beginning of one that is not whole.
    partial: Vec<u8>,
}

impl Frames {
    /// For frames of so many bytes at most.
    pub fn new(most_bytes: usize) -> Self {
        Frames { most_bytes, partial: Vec::new() }
    }

    /// Forgets what has come.
    pub fn clear(&mut self) {
        self.partial.clear();
    }

    /// Hands whole frames over until one is the last (`take` says so) or there is none; what is not whole is kept.
    ///
    /// # Errors
    /// Bytes that are no frames, one that is too large, or the error of `take`.
    pub fn each(
        &mut self,
        input: &[u8],
        mut take: impl FnMut(Frame<'_>) -> Result<bool, CqlError>,
    ) -> Result<Decoded, CqlError> {
        let mut at = 0;
        loop {
            let rest = &input[at..];
            if self.partial.is_empty() {
                let end = match rest.len() {
                    0..HEAD_BYTES => None,
                    _ => Some(self.length(rest)?).filter(|length| rest.len() >= *length),
                };
                let Some(end) = end else {
                    if let Some(first) = rest.first().filter(|first| **first != VERSION) {
                        return Err(CqlError::Version(*first));
                    }
                    self.partial.extend_from_slice(rest);
                    return Ok(Decoded { consumed: input.len(), complete: false });
                };
                at += end;
                if take(frame(&rest[..end])?)? {
                    return Ok(Decoded { consumed: at, complete: true });
                }
                continue;
            }
            let has = self.partial.len();
            let wanted = if has < HEAD_BYTES { HEAD_BYTES } else { self.length(&self.partial)? } - has;
            let taken = wanted.min(rest.len());
            self.partial.extend_from_slice(&rest[..taken]);
            at += taken;
            if taken < wanted {
                return Ok(Decoded { consumed: at, complete: false });
            }
            if self.partial.len() == self.length(&self.partial)? {
                let is_last = take(frame(&self.partial)?)?;
                self.partial.clear();
                if is_last {
                    return Ok(Decoded { consumed: at, complete: true });
                }
            }
        }
    }

    /// Bytes of a frame that begins so.
    fn length(&self, head: &[u8]) -> Result<usize, CqlError> {
        if head[0] != VERSION {
            return Err(CqlError::Version(head[0]));
        }
        let length = Bytes(&head[5..HEAD_BYTES]).int()?;
        match usize::try_from(length) {
            Err(_) => Err(CqlError::Malformed),
            Ok(length) if length > self.most_bytes => {
                Err(CqlError::TooLarge { limit_bytes: self.most_bytes })
            }
            Ok(length) => Ok(HEAD_BYTES + length),
        }
    }
}

/// A whole frame; what the server tells beside what was asked for is passed over.
fn frame(bytes: &[u8]) -> Result<Frame<'_>, CqlError> {
    let (flags, stream, opcode) = (bytes[1], i16::from_be_bytes([bytes[2], bytes[3]]), bytes[4]);
    let mut body = Bytes(&bytes[HEAD_BYTES..]);
    if flags & TRACING != 0 {
        body.take(16)?;
    }
    if flags & WARNINGS != 0 {
        for _ in 0..body.short()? {
            body.string()?;
        }
    }
    if flags & PAYLOAD != 0 {
        for _ in 0..body.short()? {
            body.string()?;
            body.bytes()?;
        }
    }
    Ok(Frame { opcode, stream, body: body.0 })
}

/// Primitive values, taken from the front.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    pub fn take(&mut self, bytes: usize) -> Result<&'a [u8], CqlError> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(CqlError::Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn short(&mut self) -> Result<u16, CqlError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(CqlError::Malformed)?;
        self.0 = rest;
        Ok(u16::from_be_bytes(*bytes))
    }

    pub fn int(&mut self) -> Result<i32, CqlError> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(CqlError::Malformed)?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*bytes))
    }

    /// A short and so many bytes.
    pub fn string(&mut self) -> Result<&'a [u8], CqlError> {
        let length = self.short()?;
        self.take(length.into())
    }

    /// An int and so many bytes; nothing where it is negative.
    pub fn bytes(&mut self) -> Result<Option<&'a [u8]>, CqlError> {
        match usize::try_from(self.int()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// Frames of a client.
pub mod write {
    use super::opcode;

    /// Flags of a query.
    const PAGE_SIZE: u8 = 0x04;
    const PAGING_STATE: u8 = 0x08;

    /// Version 4, no flags.
    fn frame<E>(
        opcode: u8,
        stream: i16,
        out: &mut Vec<u8>,
        with: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        out.extend_from_slice(&[0x04, 0]);
        out.extend_from_slice(&stream.to_be_bytes());
        out.push(opcode);
        long(out, with)
    }

    /// An int that says how long what follows is.
    fn long<E>(out: &mut Vec<u8>, with: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        let begin = out.len();
        out.extend_from_slice(&[0; 4]);
        with(out)?;
        let length = i32::try_from(out.len() - begin - 4).unwrap_or(i32::MAX);
        out[begin..begin + 4].copy_from_slice(&length.to_be_bytes());
        Ok(())
    }

    fn certain(result: Result<(), std::convert::Infallible>) {
        let Ok(()) = result;
    }

    fn long_bytes(bytes: &[u8], out: &mut Vec<u8>) {
        certain(long(out, |out| {
            out.extend_from_slice(bytes);
            Ok(())
        }));
    }

    fn string(text: &str, out: &mut Vec<u8>) {
        let length = u16::try_from(text.len()).unwrap_or(u16::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&text.as_bytes()[..length.into()]);
    }

    /// The first frame of a client.
    pub fn startup(out: &mut Vec<u8>) {
        certain(frame(opcode::STARTUP, 0, out, |out| {
            out.extend_from_slice(&1_u16.to_be_bytes());
            string("CQL_VERSION", out);
            string("3.0.0", out);
            Ok(())
        }));
    }

    /// User and password, as the server's own authenticator takes them.
    pub fn login(user: &str, password: &str, out: &mut Vec<u8>) {
        certain(frame(opcode::AUTH_RESPONSE, 0, out, |out| {
            long(out, |out| {
                out.push(0);
                out.extend_from_slice(user.as_bytes());
                out.push(0);
                out.extend_from_slice(password.as_bytes());
                Ok(())
            })
        }));
    }

    /// A statement to be prepared.
    pub fn prepare(stream: i16, text: &str, out: &mut Vec<u8>) {
        certain(frame(opcode::PREPARE, stream, out, |out| {
            long_bytes(text.as_bytes(), out);
            Ok(())
        }));
    }

    /// A statement as text, without values.
    pub fn query(text: &str, consistency: u16, out: &mut Vec<u8>) {
        certain(frame(opcode::QUERY, 0, out, |out| {
            long_bytes(text.as_bytes(), out);
            out.extend_from_slice(&consistency.to_be_bytes());
            out.push(0);
            Ok(())
        }));
    }

    /// A statement as text, without values, of whose rows so many come at once: the first, or those behind a page.
    pub fn query_page(text: &str, consistency: u16, rows: i32, behind: Option<&[u8]>, out: &mut Vec<u8>) {
        certain(frame(opcode::QUERY, 0, out, |out| {
            long_bytes(text.as_bytes(), out);
            out.extend_from_slice(&consistency.to_be_bytes());
            out.push(PAGE_SIZE | if behind.is_some() { PAGING_STATE } else { 0 });
            out.extend_from_slice(&rows.to_be_bytes());
            behind.into_iter().for_each(|state| long_bytes(state, out));
            Ok(())
        }));
    }

    /// A prepared statement to be executed, with so many values, which `with` writes by [`value`]. `knows_columns`: the rows
    /// come without their columns.
    ///
    /// # Errors
    /// That of `with`; what was written is to be taken away again.
    pub fn execute<E>(
        id: &[u8],
        consistency: u16,
        knows_columns: bool,
        values: u16,
        out: &mut Vec<u8>,
        with: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        frame(opcode::EXECUTE, 0, out, |out| {
            let length = u16::try_from(id.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&length.to_be_bytes());
            out.extend_from_slice(id);
            out.extend_from_slice(&consistency.to_be_bytes());
            out.push(u8::from(values > 0) | u8::from(knows_columns) << 1);
            if values > 0 {
                out.extend_from_slice(&values.to_be_bytes());
            }
            with(out)
        })
    }

    /// A value, which `with` writes.
    ///
    /// # Errors
    /// That of `with`.
    pub fn value<E>(out: &mut Vec<u8>, with: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
        long(out, with)
    }
}
