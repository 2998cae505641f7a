//! Values: from text as a statement's, to JSON as a row's.

use std::io::Write;
use std::net::IpAddr;

use super::CqlError;
use super::frame::Bytes;
use crate::json;

/// How deep types may lie in each other.
pub(super) const MAX_DEPTH: usize = 8;

/// The type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    /// `text`, `varchar`, `ascii`.
    Text,
    /// `blob`.
    Blob,
    /// `boolean`.
    Boolean,
    /// `tinyint`, `smallint`, `int`, `bigint`, `counter`, `timestamp`: so many bytes.
    Integer(usize),
    /// `float`.
    Float,
    /// `double`.
    Double,
    /// `uuid`, `timeuuid`.
    Uuid,
    /// `inet`.
    Inet,
    /// `list`, `set`.
    List(Box<Type>),
    /// `map`.
    Map(Box<(Type, Type)>),
    /// Any other, by its number.
    Other(u16),
}

/// Why a text is no value of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrongValue(pub &'static str);

impl Type {
    /// Reads a type.
    pub(super) fn read(bytes: &mut Bytes<'_>, depth: usize) -> Result<Type, CqlError> {
        if depth > MAX_DEPTH {
            return Err(CqlError::TooDeep);
        }
        let number = bytes.short()?;
        Ok(match number {
            0x01 | 0x0a | 0x0d => Type::Text,
            0x03 => Type::Blob,
            0x04 => Type::Boolean,
            0x14 => Type::Integer(1),
            0x13 => Type::Integer(2),
            0x09 => Type::Integer(4),
            // bigint, counter, timestamp: milliseconds
            0x02 | 0x05 | 0x0b => Type::Integer(8),
            0x07 => Type::Double,
            0x08 => Type::Float,
            0x0c | 0x0f => Type::Uuid,
            0x10 => Type::Inet,
            0x20 | 0x22 => Type::List(Box::new(Type::read(bytes, depth + 1)?)),
            0x21 => {
                let key = Type::read(bytes, depth + 1)?;
                Type::Map(Box::new((key, Type::read(bytes, depth + 1)?)))
            }
            // of the user's own, by a name of their class
            0x00 => {
                bytes.string()?;
                Type::Other(number)
            }
            // of the user's own: keyspace, name, fields
            0x30 => {
                bytes.string()?;
                bytes.string()?;
                for _ in 0..bytes.short()? {
                    bytes.string()?;
                    Type::read(bytes, depth + 1)?;
                }
                Type::Other(number)
            }
            // a tuple
            0x31 => {
                for _ in 0..bytes.short()? {
                    Type::read(bytes, depth + 1)?;
                }
                Type::Other(number)
            }
            other => Type::Other(other),
        })
    }

    /// Appends the value that a text says.
    ///
    /// # Errors
    /// It says none of this type, or the type is not spoken.
    pub fn write(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), WrongValue> {
        let wrong = |words| WrongValue(words);
        let words = || std::str::from_utf8(text).map(str::trim);
        match self {
            Type::Text => out.extend_from_slice(text),
            Type::Blob => match text.strip_prefix(b"0x") {
                Some(digits) => {
                    hex(digits, out).ok_or(wrong("this is not a blob: 0x and pairs of hexadecimal digits"))?
                }
                None => out.extend_from_slice(text),
            },
            Type::Boolean => match text {
                b"true" => out.push(1),
                b"false" => out.push(0),
                _ => return Err(wrong("this is not a boolean: true or false")),
            },
            Type::Integer(bytes) => {
                let message = "this is not a whole number that fits the column (a timestamp is milliseconds)";
                let number: i64 = words().ok().and_then(|text| text.parse().ok()).ok_or(wrong(message))?;
                let spare = 64 - 8 * *bytes as u32;
                if number << spare >> spare != number {
                    return Err(wrong(message));
                }
                out.extend_from_slice(&number.to_be_bytes()[8 - bytes..]);
            }
            Type::Float => {
                let number: Option<f32> = words().ok().and_then(|text| text.parse().ok());
                out.extend_from_slice(&number.ok_or(wrong("this is not a number"))?.to_be_bytes());
            }
            Type::Double => {
                let number: Option<f64> = words().ok().and_then(|text| text.parse().ok());
                out.extend_from_slice(&number.ok_or(wrong("this is not a number"))?.to_be_bytes());
            }
            Type::Uuid => {
                let begin = out.len();
                let mut digits = [0; 32];
                let mut count = 0;
                for byte in text.iter().filter(|byte| **byte != b'-') {
                    *digits.get_mut(count).ok_or(wrong("this is not a UUID"))? = *byte;
                    count += 1;
                }
                if count != 32 || hex(&digits, out).is_none() {
                    out.truncate(begin);
                    return Err(wrong("this is not a UUID"));
                }
            }
            Type::Inet => match words().ok().and_then(|text| text.parse().ok()) {
                Some(IpAddr::V4(address)) => out.extend_from_slice(&address.octets()),
                Some(IpAddr::V6(address)) => out.extend_from_slice(&address.octets()),
                None => return Err(wrong("this is not an address")),
            },
            Type::List(_) | Type::Map(_) | Type::Other(_) => {
                return Err(wrong("a value of this type is not spoken; write it into the statement"));
            }
        }
        Ok(())
    }

    /// Appends a value as JSON; a type that is not known as text with its bytes.
    pub(super) fn write_json(&self, value: &[u8], out: &mut Vec<u8>) -> Result<(), CqlError> {
        // writing to memory does not fail
        let number = |text: std::fmt::Arguments<'_>, is_finite: bool, out: &mut Vec<u8>| {
            let quote: &[u8] = if is_finite { b"" } else { b"\"" };
            out.extend_from_slice(quote);
            let _ = out.write_fmt(text);
            out.extend_from_slice(quote);
        };
        let wrong = CqlError::Malformed;
        match self {
            Type::Text => json::write_string(value, out),
            // an empty value of a type that has none
            Type::Boolean | Type::Integer(_) | Type::Float | Type::Double | Type::Uuid | Type::Inet
                if value.is_empty() =>
            {
                out.extend_from_slice(b"null");
            }
            Type::Boolean => out.extend_from_slice(match value {
                [0] => b"false",
                [_] => b"true",
                _ => return Err(wrong),
            }),
            Type::Integer(bytes) => {
                if value.len() != *bytes {
                    return Err(wrong);
                }
                let sign = if value[0] & 0x80 == 0 { 0 } else { 0xff };
                let mut whole = [sign; 8];
                whole[8 - bytes..].copy_from_slice(value);
                out.extend_from_slice(itoa::Buffer::new().format(i64::from_be_bytes(whole)).as_bytes());
            }
            Type::Float => {
                let value = f32::from_be_bytes(value.try_into().map_err(|_| wrong)?);
                number(format_args!("{value}"), value.is_finite(), out);
            }
            Type::Double => {
                let value = f64::from_be_bytes(value.try_into().map_err(|_| wrong)?);
                number(format_args!("{value}"), value.is_finite(), out);
            }
            Type::Uuid => {
                let bytes: [u8; 16] = value.try_into().map_err(|_| wrong)?;
                out.push(b'"');
                for (index, byte) in bytes.iter().enumerate() {
                    if matches!(index, 4 | 6 | 8 | 10) {
                        out.push(b'-');
                    }
                    write_hex(*byte, out);
                }
                out.push(b'"');
            }
            Type::Inet => {
                let address = match value.len() {
                    4 => IpAddr::from(<[u8; 4]>::try_from(value).map_err(|_| wrong)?),
                    _ => IpAddr::from(<[u8; 16]>::try_from(value).map_err(|_| wrong)?),
                };
                number(format_args!("{address}"), false, out);
            }
            Type::List(of) => {
                let mut bytes = Bytes(value);
                out.push(b'[');
                for index in 0..bytes.int()? {
                    if index > 0 {
                        out.push(b',');
                    }
                    of.write_item(&mut bytes, out)?;
                }
                out.push(b']');
            }
            Type::Map(of) => {
                let mut bytes = Bytes(value);
                out.push(b'{');
                for index in 0..bytes.int()? {
                    if index > 0 {
                        out.push(b',');
                    }
                    let begin = out.len();
                    of.0.write_item(&mut bytes, out)?;
                    if out[begin] != b'"' {
                        // a name is a string
                        let name = out.split_off(begin);
                        json::write_string(&name, out);
                    }
                    out.push(b':');
                    of.1.write_item(&mut bytes, out)?;
                }
                out.push(b'}');
            }
            Type::Blob | Type::Other(_) => {
                out.extend_from_slice(b"\"0x");
                value.iter().for_each(|byte| write_hex(*byte, out));
                out.push(b'"');
            }
        }
        Ok(())
    }

    fn write_item(&self, bytes: &mut Bytes<'_>, out: &mut Vec<u8>) -> Result<(), CqlError> {
        match bytes.bytes()? {
            Some(value) => self.write_json(value, out),
            None => {
                out.extend_from_slice(b"null");
                Ok(())
            }
        }
    }
}

fn write_hex(byte: u8, out: &mut Vec<u8>) {
    let digit = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
    out.extend_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
}

/// Appends the bytes that pairs of hexadecimal digits say.
fn hex(digits: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    if !digits.len().is_multiple_of(2) || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    for pair in digits.chunks_exact(2) {
        out.push(digit(pair[0])? << 4 | digit(pair[1])?);
    }
    Some(())
}
