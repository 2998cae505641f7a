//! What a reply becomes: a text, or JSON where values lie in each other.

use super::{BEGINNING_BYTES, Form, Frame, Kind, MAX_DEPTH, Reading, ReplyDecoder, RespError};
use crate::json;

impl ReplyDecoder {
    fn is_skipping(&self) -> bool {
        self.cold.frames.last().is_some_and(|frame| !frame.is_kept)
    }

    /// Whether the value stands where a map has its names.
    fn is_name(&self) -> bool {
        self.cold.frames.last().is_some_and(|frame| frame.form == Form::Map && frame.had % 2 == 0)
    }

    /// Whether nothing of what comes now is kept.
    fn is_passing_by(&self) -> bool {
        self.is_skipping() || (!self.keeps_all() && self.cold.body.len() == BEGINNING_BYTES)
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), RespError> {
        if self.is_skipping() {
            return Ok(());
        }
        if self.keeps_all() {
            self.bound(bytes.len())?;
            self.cold.body.extend_from_slice(bytes);
        } else {
            let room = BEGINNING_BYTES - self.cold.body.len();
            self.cold.body.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        Ok(())
    }

    /// So many bytes more are within the limits, or nobody keeps them.
    fn bound(&self, bytes: usize) -> Result<(), RespError> {
        let limit_bytes = self.limits.body_bytes;
        if self.keeps_all() && bytes > limit_bytes.saturating_sub(self.cold.body.len()) && !self.is_skipping()
        {
            return Err(RespError::TooLarge { limit_bytes });
        }
        Ok(())
    }

    /// What stands between two values of a list or map.
    fn begin_value(&mut self, kind: Kind) -> Result<(), RespError> {
        match self.cold.frames.last() {
            None => {
                self.kind = kind;
                Ok(())
            }
            Some(Frame { had: 0, .. }) => Ok(()),
            Some(Frame { form: Form::Map, had, .. }) if had % 2 == 1 => self.put(b":"),
            Some(_) => self.put(b","),
        }
    }

    /// A value is whole, and so may be those that it ends.
    fn end_value(&mut self) -> Result<(), RespError> {
        self.cold.reading = Reading::Line;
        loop {
            let Some(frame) = self.cold.frames.last_mut() else {
                self.cold.reading = Reading::Done;
                return Ok(());
            };
            frame.had += 1;
            if frame.values != Some(frame.had) {
                return Ok(());
            }
            if !self.close_frame()? {
                return Ok(());
            }
        }
    }

    /// The innermost array or map is whole; false where it is no value, and what it stood before is still to come.
    fn close_frame(&mut self) -> Result<bool, RespError> {
        let Some(Frame { form, is_value, .. }) = self.cold.frames.last().copied() else { return Ok(false) };
        self.put(if form == Form::Map { b"}" } else { b"]" })?;
        self.cold.frames.pop();
        Ok(is_value)
    }

    /// The end of what is streamed.
    pub(super) fn end_frame(&mut self) -> Result<(), RespError> {
        match self.cold.frames.last() {
            Some(Frame { form: Form::Map, values: None, had, .. }) if had % 2 == 1 => Err(RespError::Entry),
            Some(Frame { values: None, .. }) => {
                self.close_frame()?;
                self.end_value()
            }
            _ => Err(RespError::Type(b'.')),
        }
    }

    pub(super) fn begin_frame(
        &mut self,
        form: Form,
        values: Option<u64>,
        is_value: bool,
    ) -> Result<(), RespError> {
        if self.cold.frames.len() == MAX_DEPTH {
            return Err(RespError::TooDeep);
        }
        let is_kept = is_value && !self.is_skipping();
        if is_kept {
            if self.is_name() {
                return Err(RespError::Name);
            }
            self.begin_value(Kind::Aggregate)?;
            self.put(if form == Form::Map { b"{" } else { b"[" })?;
        }
        if values != Some(0) {
            self.cold.frames.push(Frame { form, values, had: 0, is_kept, is_value });
            return Ok(());
        }
        if is_kept {
            self.put(if form == Form::Map { b"}" } else { b"]" })?;
        }
        if is_value { self.end_value() } else { Ok(()) }
    }

    pub(super) fn null(&mut self) -> Result<(), RespError> {
        self.begin_value(Kind::Null)?;
        if !self.cold.frames.is_empty() {
            self.put(if self.is_name() { b"\"null\"" } else { b"null" })?;
        }
        self.end_value()
    }

    /// A number or truth value, which JSON writes as it is.
    pub(super) fn bare(&mut self, text: &[u8], is_right: bool) -> Result<(), RespError> {
        if !is_right {
            return Err(RespError::Number);
        }
        self.begin_value(Kind::Scalar)?;
        if self.is_passing_by() {
            return self.end_value();
        }
        let text = if self.cold.frames.is_empty() { text } else { text.strip_prefix(b"+").unwrap_or(text) };
        if self.is_name() || !(self.cold.frames.is_empty() || json::check(text).is_ok()) {
            self.put(b"\"")?;
            self.put(text)?;
            self.put(b"\"")?;
        } else {
            self.put(text)?;
        }
        self.end_value()
    }

    /// A floating-point number; JSON has no infinities.
    pub(super) fn double(&mut self, text: &[u8]) -> Result<(), RespError> {
        let number = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
        match number.ok_or(RespError::Number)? {
            _ if self.cold.frames.is_empty() => self.bare(text, true),
            number if number.is_finite() => self.bare(text, true),
            _ => self.text(text, Kind::Scalar),
        }
    }

    /// A string that is there as a whole.
    pub(super) fn text(&mut self, text: &[u8], kind: Kind) -> Result<(), RespError> {
        self.open_text(kind)?;
        self.put_text(text)?;
        self.end_text()
    }

    pub(super) fn begin_text(&mut self, bytes: usize, kind: Kind, format: usize) -> Result<(), RespError> {
        self.open_text(kind)?;
        self.bound(bytes - format)?;
        self.cold.reading = match bytes {
            0 => Reading::TextEnd(2),
            left => Reading::Text { left, format_left: format },
        };
        Ok(())
    }

    /// A part of a string; the last one is empty.
    pub(super) fn part(&mut self, bytes: usize) -> Result<(), RespError> {
        if bytes == 0 {
            self.cold.in_parts = false;
            return self.end_text();
        }
        self.bound(bytes)?;
        self.cold.reading = Reading::Text { left: bytes, format_left: 0 };
        Ok(())
    }

    pub(super) fn open_text(&mut self, kind: Kind) -> Result<(), RespError> {
        self.begin_value(kind)?;
        self.cold.in_error = kind == Kind::Error && !self.cold.frames.is_empty() && !self.is_name();
        if self.cold.in_error {
            // of what is passed over none counts
            self.cold.errors += u64::from(!self.is_skipping());
            self.put(b"{\"error\":")?;
        }
        if !self.cold.frames.is_empty() { self.put(b"\"") } else { Ok(()) }
    }

    pub(super) fn put_text(&mut self, mut text: &[u8]) -> Result<(), RespError> {
        if self.cold.frames.is_empty() {
            self.cold.text_bytes += text.len();
            return self.put(text);
        }
        if self.cold.in_error && self.cold.errors == 1 && !self.is_skipping() {
            let room = BEGINNING_BYTES - self.cold.error.len();
            self.cold.error.extend_from_slice(&text[..text.len().min(room)]);
        }
        if self.is_passing_by() {
            return Ok(());
        }
        while let Some(at) = text.iter().position(|byte| *byte < b' ' || *byte == b'"' || *byte == b'\\') {
            self.put(&text[..at])?;
            match text[at] {
                b'"' => self.put(b"\\\"")?,
                b'\\' => self.put(b"\\\\")?,
                b'\n' => self.put(b"\\n")?,
                b'\r' => self.put(b"\\r")?,
                byte => {
                    let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
                    self.put(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)])?;
                }
            }
            text = &text[at + 1..];
        }
        self.put(text)
    }

    pub(super) fn end_text(&mut self) -> Result<(), RespError> {
        if !self.cold.frames.is_empty() {
            self.put(b"\"")?;
        }
        if std::mem::take(&mut self.cold.in_error) {
            self.put(b"}")?;
        }
        self.end_value()
    }
}
