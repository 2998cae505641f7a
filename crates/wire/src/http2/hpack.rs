//! Lists of headers in their compressed form (RFC 7541).
//!
//! What is read keeps the table that the server's lists build on. What is written needs none: a list is the same bytes over
//! every connection.

mod huffman;
mod table;

pub use table::TABLE_BYTES;
use table::{STATIC, Table};

/// What a header counts beside its bytes, in lists and in the table.
const OVERHEAD_BYTES: usize = 32;
/// Room for a list that is kept for the next one.
const RETAINED_BYTES: usize = 64 << 10;

/// Headers in the order in which they came, in one buffer.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    bytes: Vec<u8>,
    /// Where each name and each value ends; the next name begins there.
    ends: Vec<(u32, u32)>,
    /// How many of them are pseudo-headers, which come first and are passed over by all but `iter_all`.
    hidden: usize,
}

impl Fields {
    /// Takes all away.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(RETAINED_BYTES);
        self.ends.clear();
        self.ends.shrink_to(RETAINED_BYTES / OVERHEAD_BYTES);
        self.hidden = 0;
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len() - self.hidden
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Names and values, without the pseudo-headers of an answer or of trailers.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.from(self.hidden)
    }

    /// The first value of a name in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(own, _)| *own == name.as_bytes()).map(|(_, value)| value)
    }

    /// The values of a name in lower case.
    pub fn get_all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter_map(move |(own, value)| (own == name.as_bytes()).then_some(value))
    }

    /// All of them, with the pseudo-headers.
    pub fn iter_all(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.from(0)
    }

    /// Passes over so many from now on.
    pub(super) fn hide(&mut self, count: usize) {
        self.hidden = count;
    }

    fn from(&self, index: usize) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut begin = self.end_of(index);
        self.ends[index..].iter().map(move |(name_end, value_end)| {
            let name = &self.bytes[begin..*name_end as usize];
            begin = *value_end as usize;
            (name, &self.bytes[*name_end as usize..begin])
        })
    }

    /// Where what stands in front of this one ends.
    fn end_of(&self, index: usize) -> usize {
        index.checked_sub(1).map_or(0, |last| self.ends[last].1 as usize)
    }
}

/// Why bytes are no header block. The table is of no more use then, and so is the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HpackError {
    /// They end within something.
    #[error("a header block ends too early")]
    Truncated,
    /// A number is larger than any that could be meant.
    #[error("a number in a header block is too large")]
    Number,
    /// A place in the table where there is nothing.
    #[error("a header block names a place in the table where nothing is")]
    Index,
    /// A coded text that is none.
    #[error("a text in a header block is not in its code")]
    Huffman,
    /// The table gets a size that was not agreed, or in the middle of a list.
    #[error("a header block gives the table a size that it cannot have")]
    TableSize,
}

/// Reads header blocks, with the table that they share.
#[derive(Debug, Default)]
pub struct Decoder {
    table: Table,
}

impl Decoder {
    /// Reads a list. Whether all of it is in `fields`: of one that is larger than `limit_bytes` (each header counts its bytes
    /// and 32 more) the rest is left out, and only the table is kept right.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn decode(
        &mut self,
        block: &[u8],
        limit_bytes: usize,
        fields: &mut Fields,
    ) -> Result<bool, HpackError> {
        fields.clear();
        let mut input = Input(block);
        let mut left = limit_bytes;
        let (mut is_begin, mut is_whole) = (true, true);
        while let Some(first) = input.0.first() {
            let begin = fields.bytes.len();
            let name_bytes = match *first {
                0x80.. => {
                    let (name, value) = self.get(input.number(7)?)?;
                    // few bytes may name much in the table: what is left out is not copied
                    if is_whole {
                        fields.bytes.extend_from_slice(name);
                        fields.bytes.extend_from_slice(value);
                    }
                    name.len()
                }
                first @ 0x20..0x40 => {
                    let size = input.number(5)?;
                    if !is_begin || size > TABLE_BYTES {
                        return Err(HpackError::TableSize);
                    }
                    debug_assert!(first & 0xe0 == 0x20);
                    self.table.resize(size);
                    continue;
                }
                first => {
                    // kept in the table, or not, now or ever
                    let is_kept = first >= 0x40;
                    match input.number(if is_kept { 6 } else { 4 })? {
                        0 => input.text(&mut fields.bytes)?,
                        index => {
                            let (name, _) = self.get(index)?;
                            if is_whole || is_kept {
                                fields.bytes.extend_from_slice(name);
                            }
                        }
                    }
                    let name_bytes = fields.bytes.len() - begin;
                    input.text(&mut fields.bytes)?;
                    if is_kept {
                        self.table.insert(&fields.bytes[begin..], name_bytes);
                    }
                    name_bytes
                }
            };
            is_begin = false;
            let bytes = fields.bytes.len() - begin + OVERHEAD_BYTES;
            match left.checked_sub(bytes).filter(|_| is_whole) {
                Some(rest) => {
                    left = rest;
                    fields.ends.push(((begin + name_bytes) as u32, fields.bytes.len() as u32));
                }
                None => {
                    is_whole = false;
                    fields.bytes.truncate(begin);
                }
            }
        }
        Ok(is_whole)
    }

    /// What stands at a place: first in the standard's table, then in that of the connection.
    fn get(&self, index: usize) -> Result<(&[u8], &[u8]), HpackError> {
        let index = index.checked_sub(1).ok_or(HpackError::Index)?;
        match STATIC.get(index) {
            Some((name, value)) => Ok((name.as_bytes(), value.as_bytes())),
            None => self.table.get(index - STATIC.len()).ok_or(HpackError::Index),
        }
    }
}

/// What is still to be read of a list.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    /// A number in the last `bits` bits of a byte, and in the bytes behind it where it is too large for them.
    fn number(&mut self, bits: u32) -> Result<usize, HpackError> {
        let (first, rest) = self.0.split_first().ok_or(HpackError::Truncated)?;
        self.0 = rest;
        let most = (1usize << bits) - 1;
        let mut number = usize::from(*first) & most;
        if number < most {
            return Ok(number);
        }
        for shift in (0..28).step_by(7) {
            let (next, rest) = self.0.split_first().ok_or(HpackError::Truncated)?;
            self.0 = rest;
            number += usize::from(next & 0x7f) << shift;
            if next & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(HpackError::Number)
    }

    /// Appends a text.
    fn text(&mut self, out: &mut Vec<u8>) -> Result<(), HpackError> {
        let is_coded = self.0.first().ok_or(HpackError::Truncated)? & 0x80 != 0;
        let length = self.number(7)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(HpackError::Truncated)?;
        self.0 = rest;
        match is_coded {
            false => out.extend_from_slice(text),
            true if huffman::decode(text, out) => {}
            true => return Err(HpackError::Huffman),
        }
        Ok(())
    }
}

/// Appends a header that no table keeps: by its place in the standard's table, if it is there, else its name by its place, if
/// that is there.
pub fn write_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    let whole = STATIC.iter().position(|(n, v)| n.as_bytes() == name && v.as_bytes() == value);
    match whole {
        Some(index) => out.push(0x80 | (index + 1) as u8),
        None => {
            write_name(name, out);
            write_value(value, out);
        }
    }
}

/// Appends the name of a header that no table keeps; its [value](write_value) follows.
pub fn write_name(name: &[u8], out: &mut Vec<u8>) {
    match STATIC.iter().position(|(own, _)| own.as_bytes() == name) {
        Some(index) => write_number(0, 4, index + 1, out),
        None => {
            out.push(0);
            write_value(name, out);
        }
    }
}

/// Appends the value of a header.
pub fn write_value(value: &[u8], out: &mut Vec<u8>) {
    write_length(value.len(), out);
    out.extend_from_slice(value);
}

/// Appends the length of a value; its bytes follow.
pub fn write_length(length: usize, out: &mut Vec<u8>) {
    write_number(0, 7, length, out);
}

fn write_number(first: u8, bits: u32, number: usize, out: &mut Vec<u8>) {
    let most = (1usize << bits) - 1;
    if number < most {
        return out.push(first | number as u8);
    }
    out.push(first | most as u8);
    let mut rest = number - most;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

#[cfg(test)]
mod tests;
