//! A message about records within a frame, and the values in it.

use std::io::Write;

use super::frame::ReplyError;
use crate::json;

/// Flags and counts of a message.
pub(super) const HEADER_BYTES: usize = 22;
/// Size, operation, type, flags, length of the bin's name.
const OPERATION_BYTES: usize = 8;

/// The last message of several.
pub(super) const LAST: u8 = 1;
/// All of a partition has been told.
pub(super) const PARTITION_DONE: u8 = 1 << 2;

/// Types of values.
pub(super) mod particle {
    /// No value.
    pub const NULL: u8 = 0;
    /// A number of 64 bits with a sign.
    pub const INTEGER: u8 = 1;
    /// A floating-point number of 64 bits.
    pub const FLOAT: u8 = 2;
    /// A text.
    pub const STRING: u8 = 3;
    /// True or false.
    pub const BOOLEAN: u8 = 17;
}

/// A message.
#[derive(Debug, Clone, Copy)]
pub(super) struct Message<'m> {
    /// Flags of the third kind.
    pub info3: u8,
    /// What came of the request.
    pub code: u8,
    /// How often the record was written; of a partition that is done its number.
    pub generation: u32,
    /// When the record expires, seconds since 2010; 0 for never.
    pub expires: u32,
    operations: u16,
    /// Operations, and what is behind them.
    rest: &'m [u8],
}

/// A bin of a record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bin<'m> {
    pub name: &'m [u8],
    pub particle: u8,
    pub value: &'m [u8],
}

/// Cuts bytes off the front.
fn cut<'m>(bytes: &mut &'m [u8], count: usize) -> Result<&'m [u8], ReplyError> {
    let (front, rest) = bytes.split_at_checked(count).ok_or(ReplyError::Length)?;
    *bytes = rest;
    Ok(front)
}

/// Cuts a number off the front.
fn number(bytes: &mut &[u8]) -> Result<usize, ReplyError> {
    let four = cut(bytes, 4)?.try_into().map_err(|_| ReplyError::Length)?;
    usize::try_from(u32::from_be_bytes(four)).map_err(|_| ReplyError::Length)
}

impl<'m> Message<'m> {
    /// The message at the front of these bytes; its fields are passed over.
    pub fn read(bytes: &'m [u8]) -> Result<Message<'m>, ReplyError> {
        let header_bytes = usize::from(*bytes.first().ok_or(ReplyError::Length)?);
        let mut rest = bytes;
        let header = cut(&mut rest, header_bytes)?;
        let header: &[u8; HEADER_BYTES] = header.first_chunk().ok_or(ReplyError::Length)?;
        let of_four =
            |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let of_two = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        for _ in 0..of_two(18) {
            let length = number(&mut rest)?;
            cut(&mut rest, length)?;
        }
        Ok(Message {
            info3: header[3],
            code: header[5],
            generation: of_four(6),
            expires: of_four(10),
            operations: of_two(20),
            rest,
        })
    }

    /// Shows each bin; returns what is behind the message.
    pub fn each_bin(
        &self,
        mut visit: impl FnMut(Bin<'m>) -> Result<(), ReplyError>,
    ) -> Result<&'m [u8], ReplyError> {
        let mut rest = self.rest;
        for _ in 0..self.operations {
            let length = number(&mut rest)?;
            let mut operation = cut(&mut rest, length)?;
            let head = cut(&mut operation, OPERATION_BYTES - 4)?;
            let name = cut(&mut operation, usize::from(head[3]))?;
            visit(Bin { name, particle: head[1], value: operation })?;
        }
        Ok(rest)
    }
}

impl Bin<'_> {
    fn eight(&self) -> Result<[u8; 8], ReplyError> {
        self.value.try_into().map_err(|_| ReplyError::Value)
    }

    fn is_true(&self) -> Result<bool, ReplyError> {
        self.value.first().map(|byte| *byte != 0).ok_or(ReplyError::Value)
    }

    /// Appends the value as text: of what is neither number nor truth its bytes.
    pub fn append_text(&self, out: &mut Vec<u8>) -> Result<(), ReplyError> {
        match self.particle {
            particle::NULL => {}
            particle::INTEGER => {
                let number = i64::from_be_bytes(self.eight()?);
                out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
            }
            particle::FLOAT => {
                let number = f64::from_bits(u64::from_be_bytes(self.eight()?));
                write!(out, "{number}").map_err(|_| ReplyError::Value)?;
            }
            particle::BOOLEAN => out.extend_from_slice(if self.is_true()? { b"true" } else { b"false" }),
            _ => out.extend_from_slice(self.value),
        }
        Ok(())
    }

    /// Appends the value as JSON: texts and bytes as strings.
    pub fn append_json(&self, out: &mut Vec<u8>) -> Result<(), ReplyError> {
        let is_finite = |eight: [u8; 8]| f64::from_bits(u64::from_be_bytes(eight)).is_finite();
        match self.particle {
            particle::NULL => out.extend_from_slice(b"null"),
            particle::INTEGER | particle::BOOLEAN => self.append_text(out)?,
            particle::FLOAT if is_finite(self.eight()?) => self.append_text(out)?,
            particle::FLOAT => {
                out.push(b'"');
                self.append_text(out)?;
                out.push(b'"');
            }
            _ => json::write_string(self.value, out),
        }
        Ok(())
    }
}
