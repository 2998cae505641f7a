//! Rows as JSON objects.

use super::PostgresError;
use crate::json;

/// What a column's text is in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Text,
    /// A number, where JSON can say it.
    Number,
    Truth,
    /// JSON itself.
    Json,
}

/// The columns of a statement's rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns(Vec<(Box<[u8]>, Form)>);

impl Columns {
    /// Reads a message of kind `T`.
    ///
    /// # Errors
    /// It is malformed.
    pub fn read(payload: &[u8]) -> Result<Self, PostgresError> {
        let (count, mut rest) = payload.split_first_chunk::<2>().ok_or(PostgresError::Malformed)?;
        let mut columns = Vec::new();
        for _ in 0..u16::from_be_bytes(*count) {
            let end = memchr::memchr(0, rest).ok_or(PostgresError::Malformed)?;
            let (name, behind) = (&rest[..end], &rest[end + 1..]);
            // table, number within it, type, size, modifier, format
            let (about, next) = behind.split_first_chunk::<18>().ok_or(PostgresError::Malformed)?;
            let kind = u32::from_be_bytes([about[6], about[7], about[8], about[9]]);
            let mut key = Vec::new();
            json::write_string(name, &mut key);
            key.push(b':');
            columns.push((key.into_boxed_slice(), form(kind)));
            rest = next;
        }
        if rest.is_empty() { Ok(Columns(columns)) } else { Err(PostgresError::Malformed) }
    }

    /// Appends a row, the payload of a message of kind `D`.
    pub(super) fn write_row(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), PostgresError> {
        let (count, mut rest) = payload.split_first_chunk::<2>().ok_or(PostgresError::Malformed)?;
        if usize::from(u16::from_be_bytes(*count)) != self.0.len() {
            return Err(PostgresError::Columns);
        }
        out.push(b'{');
        for (index, (key, form)) in self.0.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(key);
            let (length, behind) = rest.split_first_chunk::<4>().ok_or(PostgresError::Malformed)?;
            rest = match i32::from_be_bytes(*length) {
                -1 => {
                    out.extend_from_slice(b"null");
                    behind
                }
                length => {
                    let length = usize::try_from(length).map_err(|_| PostgresError::Malformed)?;
                    let (text, next) = behind.split_at_checked(length).ok_or(PostgresError::Malformed)?;
                    write_value(*form, text, out);
                    next
                }
            };
        }
        out.push(b'}');
        if rest.is_empty() { Ok(()) } else { Err(PostgresError::Malformed) }
    }
}

fn write_value(form: Form, text: &[u8], out: &mut Vec<u8>) {
    match (form, text) {
        (Form::Truth, b"t") => out.extend_from_slice(b"true"),
        (Form::Truth, b"f") => out.extend_from_slice(b"false"),
        // not NaN and the infinities
        (Form::Number, [b'-' | b'0'..=b'9', ..]) | (Form::Json, _) if json::check(text).is_ok() => {
            out.extend_from_slice(text);
        }
        _ => json::write_string(text, out),
    }
}

/// By the number of a type (`pg_type.oid`).
fn form(kind: u32) -> Form {
    match kind {
        16 => Form::Truth,
        // int8, int2, int4, oid, float4, float8, numeric
        20 | 21 | 23 | 26 | 700 | 701 | 1700 => Form::Number,
        // json, jsonb
        114 | 3802 => Form::Json,
        _ => Form::Text,
    }
}
