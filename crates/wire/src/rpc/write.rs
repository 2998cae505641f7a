//! Items appended to a frame.

use std::convert::Infallible;

use super::varint::{self, zigzag};
use super::{ANSWER, CALL, CANCEL, FAILURE, JUMP, METHOD, REASON_BYTES_MAX, TIME};

/// Writes a client's frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallWriter {
    id: u64,
    items: usize,
    /// Method and deadline of the call before.
    before: Option<(u32, u32)>,
}

impl CallWriter {
    /// A writer that begins a frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins another frame.
    pub fn begin(&mut self) {
        *self = Self::default();
    }

    /// Items in this frame.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Appends a call whose payload is there already.
    pub fn call(&mut self, out: &mut Vec<u8>, id: u64, method: u32, deadline_ms: u32, payload: &[u8]) {
        self.head(out, id, method, deadline_ms);
        varint::write(out, payload.len() as u64);
        out.extend_from_slice(payload);
    }

    /// Appends a call whose payload `write` appends. When that fails nothing is appended.
    ///
    /// # Errors
    /// What `write` says.
    pub fn call_with<E>(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        method: u32,
        deadline_ms: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (before, start) = (*self, out.len());
        self.head(out, id, method, deadline_ms);
        let written = payload_with(out, write);
        if written.is_err() {
            out.truncate(start);
            *self = before;
        }
        written
    }

    /// Takes a call back.
    pub fn cancel(&mut self, out: &mut Vec<u8>, id: u64) {
        let jump = jump(&mut self.id, id, &mut self.items);
        tag(out, CANCEL, jump);
        jump_bytes(out, jump);
    }

    #[inline]
    fn head(&mut self, out: &mut Vec<u8>, id: u64, method: u32, deadline_ms: u32) {
        debug_assert!(deadline_ms > 0, "a call has time");
        let jump = jump(&mut self.id, id, &mut self.items);
        let before = self.before.replace((method, deadline_ms));
        if jump.is_none() && before == Some((method, deadline_ms)) {
            return out.push(CALL);
        }
        let new_method = before.is_none_or(|(before, _)| before != method);
        let new_time = before.is_none_or(|(_, before)| before != deadline_ms);
        let flags = if new_method { METHOD } else { 0 } | if new_time { TIME } else { 0 };
        tag(out, CALL | flags, jump);
        jump_bytes(out, jump);
        if new_method {
            varint::write(out, method.into());
        }
        if new_time {
            varint::write(out, deadline_ms.max(1).into());
        }
    }
}

/// Writes a server's frames.
#[derive(Debug, Clone, Copy, Default)]
pub struct AnswerWriter {
    id: u64,
    items: usize,
}

impl AnswerWriter {
    /// A writer that begins a frame.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins another frame.
    pub fn begin(&mut self) {
        *self = Self::default();
    }

    /// Items in this frame.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Appends an answer whose payload is there already.
    pub fn answer(&mut self, out: &mut Vec<u8>, id: u64, payload: &[u8]) {
        let done: Result<(), Infallible> = self.answer_with(out, id, |out| {
            out.extend_from_slice(payload);
            Ok(())
        });
        debug_assert!(done.is_ok());
    }

    /// Appends an answer whose payload `write` appends. When that fails nothing is appended.
    ///
    /// # Errors
    /// What `write` says.
    pub fn answer_with<E>(
        &mut self,
        out: &mut Vec<u8>,
        id: u64,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        let (before, start) = (*self, out.len());
        let jump = jump(&mut self.id, id, &mut self.items);
        tag(out, ANSWER, jump);
        jump_bytes(out, jump);
        let written = payload_with(out, write);
        if written.is_err() {
            out.truncate(start);
            *self = before;
        }
        written
    }

    /// Appends that a call failed: why, as a code of HTTP and in words, of which [`REASON_BYTES_MAX`] bytes are kept.
    pub fn failure(&mut self, out: &mut Vec<u8>, id: u64, code: u16, reason: &str) {
        debug_assert!((400..600).contains(&code), "a code of failure");
        let jump = jump(&mut self.id, id, &mut self.items);
        tag(out, FAILURE, jump);
        jump_bytes(out, jump);
        varint::write(out, code.clamp(400, 599).into());
        let mut end = reason.len().min(REASON_BYTES_MAX);
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        varint::write(out, end as u64);
        out.extend_from_slice(&reason.as_bytes()[..end]);
    }
}

/// How far an id is from the one that would follow by itself, if it is not that.
#[inline]
fn jump(before: &mut u64, id: u64, items: &mut usize) -> Option<i64> {
    let expected = before.wrapping_add(1);
    let difference = (id != expected).then(|| id.wrapping_sub(*before) as i64);
    *before = id;
    *items += 1;
    difference
}

#[inline]
fn tag(out: &mut Vec<u8>, kind: u8, jump: Option<i64>) {
    out.push(kind | if jump.is_some() { JUMP } else { 0 });
}

#[inline]
fn jump_bytes(out: &mut Vec<u8>, jump: Option<i64>) {
    if let Some(difference) = jump {
        varint::write(out, zigzag(difference));
    }
}

/// A length of one byte, which nearly every payload has, makes room for a longer one when it turns out to be.
#[inline]
fn payload_with<E>(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>) -> Result<(), E> {
    let at = out.len();
    out.push(0);
    write(out)?;
    let length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(10);
    varint::write(&mut bytes, length as u64);
    out.splice(at..=at, bytes);
    Ok(())
}
