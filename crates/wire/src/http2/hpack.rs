//! Lists of headers in their compressed form (RFC 7541).
//!
//! What is read keeps the table that the server's lists build on. What is written needs none: a list is the same bytes over
//! every connection.

mod huffman;
mod known;
mod table;

use known::Known;
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

    /// Changes values: `write` appends what stands in the place of one, given with its name.
    pub fn rewrite(&mut self, write: impl Fn(&[u8], &[u8], &mut Vec<u8>)) {
        let mut whole = Fields { hidden: self.hidden, ..Fields::default() };
        for (name, value) in self.iter_all() {
            whole.bytes.extend_from_slice(name);
            let name_end = whole.bytes.len() as u32;
            write(name, value, &mut whole.bytes);
            whole.ends.push((name_end, whole.bytes.len() as u32));
        }
        *self = whole;
    }

    /// Becomes the same as another list, of which nothing is passed over.
    fn copy_from(&mut self, other: &Fields) {
        self.clear();
        self.bytes.extend_from_slice(&other.bytes);
        self.ends.extend_from_slice(&other.ends);
    }

    /// Passes over so many from now on.
    pub(super) fn hide(&mut self, count: usize) {
        self.hidden = count;
    }

    /// A header's bytes, and how many of them are its name.
    fn header(&self, index: usize) -> (&[u8], usize) {
        let (name_end, value_end) = self.ends[index];
        let begin = self.end_of(index);
        (&self.bytes[begin..value_end as usize], name_end as usize - begin)
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

/// How many lists are remembered: a server's usual head and usual trailers.
pub const KNOWN_LISTS: usize = 2;

/// Reads header blocks, with the table that they share. It remembers the last ones: where the same bytes come again and mean
/// the same, nothing is decoded.
#[derive(Debug, Default)]
pub struct Decoder {
    table: Table,
    /// How often the table has changed.
    changes: u64,
    known: [Known; KNOWN_LISTS],
    /// Places in the list, of the headers that the table keeps.
    kept: Vec<u32>,
    /// Where the last list is remembered, and whether it was before it came.
    last: (Option<usize>, bool),
}

/// What a list did beside naming headers.
#[derive(Debug, Default)]
struct Effects {
    /// What it counts against a limit, bytes.
    list_bytes: usize,
    /// Whether it is larger than the limit.
    is_cut: bool,
    /// Whether it named something in the connection's table.
    used_table: bool,
    /// Whether it gave that another size.
    resized_table: bool,
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
        let found = self.known.iter().position(|known| known.is(block, self.changes, limit_bytes));
        if let Some(place) = found {
            let known = &self.known[place];
            fields.copy_from(&known.fields);
            known.kept().for_each(|(header, name_bytes)| self.table.insert(header, name_bytes));
            self.changes += u64::from(known.changes_table());
            self.last = (found, true);
            return Ok(true);
        }
        self.kept.clear();
        let effects = self.read(block, limit_bytes, fields)?;
        // in place of the one before the last
        let place = self.last.0.map_or(0, |last| (last + 1) % KNOWN_LISTS);
        let is_remembered = self.known[place].remember(block, fields, &effects, (&self.kept, self.changes));
        self.last = (is_remembered.then_some(place), false);
        self.changes += u64::from(!self.kept.is_empty() || effects.resized_table);
        self.kept.shrink_to(RETAINED_BYTES / OVERHEAD_BYTES);
        Ok(!effects.is_cut)
    }

    /// Where the last list is remembered, below [`KNOWN_LISTS`], until another one takes its place there.
    pub fn place(&self) -> Option<usize> {
        self.last.0
    }

    /// Whether the last list came before, so that it was remembered there.
    pub fn is_repeated(&self) -> bool {
        self.last.1
    }

    /// The same without what is remembered.
    fn read(&mut self, block: &[u8], limit_bytes: usize, fields: &mut Fields) -> Result<Effects, HpackError> {
        fields.clear();
        let mut input = Input(block);
        let mut effects = Effects::default();
        let mut is_begin = true;
        while let Some(first) = input.0.first() {
            let begin = fields.bytes.len();
            let name_bytes = match *first {
                0x80.. => {
                    let index = input.number(7)?;
                    effects.used_table |= index > STATIC.len();
                    let (name, value) = self.get(index)?;
                    // few bytes may name much in the table: what is left out is not copied
                    if !effects.is_cut {
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
                    effects.resized_table = true;
                    continue;
                }
                first => {
                    // kept in the table, or not, now or ever
                    let is_kept = first >= 0x40;
                    match input.number(if is_kept { 6 } else { 4 })? {
                        0 => input.text(&mut fields.bytes)?,
                        index => {
                            effects.used_table |= index > STATIC.len();
                            let (name, _) = self.get(index)?;
                            if !effects.is_cut || is_kept {
                                fields.bytes.extend_from_slice(name);
                            }
                        }
                    }
                    let name_bytes = fields.bytes.len() - begin;
                    input.text(&mut fields.bytes)?;
                    if is_kept {
                        self.table.insert(&fields.bytes[begin..], name_bytes);
                        self.kept.push(fields.ends.len() as u32);
                    }
                    name_bytes
                }
            };
            is_begin = false;
            let list_bytes = effects.list_bytes + fields.bytes.len() - begin + OVERHEAD_BYTES;
            if effects.is_cut || list_bytes > limit_bytes {
                effects.is_cut = true;
                fields.bytes.truncate(begin);
                continue;
            }
            effects.list_bytes = list_bytes;
            fields.ends.push(((begin + name_bytes) as u32, fields.bytes.len() as u32));
        }
        Ok(effects)
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
