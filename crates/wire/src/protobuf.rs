//! Messages of Protocol Buffers without their types: fields written one by one, and read.
//! <https://protobuf.dev/programming-guides/encoding/>
//!
//! ```
//! use tidemark_wire::protobuf::{Message, Value, fields};
//!
//! let mut trade = Message::default();
//! trade.bytes(1, b"ibm");
//! trade.uint(2, 300);
//! let bytes = trade.into_bytes();
//! let read: Vec<_> = fields(&bytes).collect();
//! assert_eq!(read, [Ok((1, Value::Bytes(b"ibm"))), Ok((2, Value::Number(300)))]);
//! ```

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH: u64 = 2;
const FIXED_32: u64 = 5;

/// A message that is being written, field by field.
#[derive(Debug, Default)]
pub struct Message(Vec<u8>);

impl Message {
    /// Its bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, field: u64, form: u64) {
        push_varint(field << 3 | form, &mut self.0);
    }

    /// A field of type `uint64`, `bool` or an enumeration.
    pub fn uint(&mut self, field: u64, value: u64) {
        self.key(field, VARINT);
        push_varint(value, &mut self.0);
    }

    /// A field of type `sint32`.
    pub fn sint(&mut self, field: u64, value: i32) {
        let value = i64::from(value);
        self.uint(field, ((value << 1) ^ (value >> 63)) as u64);
    }

    /// A field of type `fixed64` or `sfixed64`.
    pub fn fixed(&mut self, field: u64, value: u64) {
        self.key(field, FIXED_64);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// A field of type `double`.
    pub fn double(&mut self, field: u64, value: f64) {
        self.fixed(field, value.to_bits());
    }

    /// A field of type `string` or `bytes`.
    pub fn bytes(&mut self, field: u64, value: &[u8]) {
        self.key(field, LENGTH);
        push_varint(value.len() as u64, &mut self.0);
        self.0.extend_from_slice(value);
    }

    /// A field that is a message.
    pub fn message(&mut self, field: u64, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// A field of type `repeated uint64`, packed.
    pub fn packed(&mut self, field: u64, values: &[u64]) {
        let mut inner = Vec::with_capacity(values.len());
        values.iter().for_each(|value| push_varint(*value, &mut inner));
        self.bytes(field, &inner);
    }
}

/// Appends a number, seven bits a byte, the lowest first.
pub fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes such a number off the front; none where it is cut off, or too large.
pub fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// That a message is cut off, or is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message is cut off, or none of Protocol Buffers")]
pub struct NoMessage;

/// The value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Of a field of numbers, but for those of a fixed length.
    Number(u64),
    /// Of a text, bytes or a message; or the bytes of a number of a fixed length.
    Bytes(&'a [u8]),
}

/// The fields of a message, each with its number, in order. Behind an error nothing comes.
pub fn fields(message: &[u8]) -> impl Iterator<Item = Result<(u64, Value<'_>), NoMessage>> {
    let mut rest = message;
    std::iter::from_fn(move || {
        let field = (!rest.is_empty()).then(|| take_field(&mut rest).ok_or(NoMessage))?;
        if field.is_err() {
            rest = &[];
        }
        Some(field)
    })
}

fn take_field<'a>(rest: &mut &'a [u8]) -> Option<(u64, Value<'a>)> {
    let key = take_varint(rest)?;
    let length = match key & 7 {
        VARINT => return Some((key >> 3, Value::Number(take_varint(rest)?))),
        FIXED_64 => 8,
        LENGTH => usize::try_from(take_varint(rest)?).ok()?,
        FIXED_32 => 4,
        _ => return None,
    };
    let (value, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some((key >> 3, Value::Bytes(value)))
}

/// The values of a field of texts, bytes or messages.
///
/// # Errors
/// The message is cut off, or none.
pub fn each_of(message: &[u8], wanted: u64) -> Result<impl Iterator<Item = &[u8]>, NoMessage> {
    fields(message).find_map(Result::err).map_or(Ok(()), Err)?;
    Ok(fields(message).filter_map(move |field| match field {
        Ok((number, Value::Bytes(value))) if number == wanted => Some(value),
        _ => None,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_written_as_the_documentation_of_the_format_has_them() {
        let mut message = Message::default();
        message.uint(1, 150);
        assert_eq!(message.into_bytes(), [0x08, 0x96, 0x01]);
        let mut message = Message::default();
        message.bytes(2, b"testing");
        assert_eq!(message.into_bytes(), b"\x12\x07testing");
        let mut message = Message::default();
        message.message(3, |inner| inner.uint(1, 150));
        message.packed(6, &[3, 270, 86_942]);
        assert_eq!(message.into_bytes(), [0x1a, 3, 8, 0x96, 1, 0x32, 6, 3, 0x8e, 2, 0x9e, 0xa7, 5]);
        for (value, byte) in [(0, 0), (-1, 1), (1, 2), (-2, 3)] {
            let mut message = Message::default();
            message.sint(1, value);
            assert_eq!(message.into_bytes(), [8, byte]);
        }
        let mut message = Message::default();
        message.double(1, 1.0);
        assert_eq!(message.into_bytes(), [9, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]);
    }

    #[test]
    fn fields_are_found_and_what_is_cut_off_is_told() {
        let mut message = vec![8, 0x96, 1, 0x22, 2, b'h', b'i', 0x0d, 1, 2, 3, 4];
        push_varint(4 << 3 | LENGTH, &mut message);
        push_varint(300, &mut message);
        message.extend_from_slice(&[b'x'; 300]);
        let found: Vec<_> = each_of(&message, 4).unwrap().map(<[u8]>::len).collect();
        assert_eq!(found, [2, 300]);
        for length in 1..12 {
            assert_eq!(each_of(&message[..length], 4).is_err(), ![3, 7].contains(&length), "{length}");
        }
        let endless = [0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        assert!(each_of(&endless, 4).is_err());
        assert!(each_of(&[0xff; 20], 4).is_err());
        assert_eq!(fields(&[0xff; 20]).count(), 1);
    }
}
