//! Entries and rows as bytes: taken apart from the front, never beyond their end.

use std::collections::HashSet;
use std::sync::Arc;

/// What is wrong with bytes that were read back.
pub(crate) type Malformed = &'static str;

/// Length that stands for "no text".
const ABSENT: u16 = u16::MAX;

/// Takes bytes apart from the front. Integers are little-endian unless said otherwise.
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (head, rest) = self.0.split_first_chunk::<N>().ok_or("it is too short")?;
        self.0 = rest;
        Ok(*head)
    }

    /// So many bytes.
    pub(crate) fn bytes(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (head, rest) = self.0.split_at_checked(length).ok_or("it is too short")?;
        self.0 = rest;
        Ok(head)
    }

    pub(crate) fn optional_text(&mut self) -> Result<Option<&'a str>, Malformed> {
        let length = u16::from_le_bytes(self.array()?);
        if length == ABSENT {
            return Ok(None);
        }
        std::str::from_utf8(self.bytes(length.into())?).map(Some).map_err(|_| "a text in it is not UTF-8")
    }

    pub(crate) fn text(&mut self) -> Result<&'a str, Malformed> {
        self.optional_text()?.ok_or("a text that it needs is absent")
    }
}

/// Writes a text down as [`Reader::text`] reads it: its length (2 bytes) before it.
pub(crate) fn write_text(text: &str, out: &mut Vec<u8>) {
    debug_assert!(text.len() < ABSENT.into());
    out.extend_from_slice(&(text.len() as u16).to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// The same where there may be none.
pub(crate) fn write_optional_text(text: Option<&str>, out: &mut Vec<u8>) {
    match text {
        Some(text) => write_text(text, out),
        None => out.extend_from_slice(&ABSENT.to_le_bytes()),
    }
}

/// So many different texts are kept once at most.
const INTERNED_MAX: usize = 4096;

/// One `Arc` for each different text: bookings name few segments, many times.
#[derive(Default)]
pub(crate) struct Interned(HashSet<Arc<str>>);

impl Interned {
    pub(crate) fn get(&mut self, text: &str) -> Arc<str> {
        match self.0.get(text) {
            Some(known) => known.clone(),
            None => {
                let text: Arc<str> = text.into();
                if self.0.len() < INTERNED_MAX {
                    self.0.insert(text.clone());
                }
                text
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_is_kept_once() {
        let mut interned = Interned::default();
        let first = interned.get("AA280");
        assert!(Arc::ptr_eq(&first, &interned.get("AA280")));
    }
}
