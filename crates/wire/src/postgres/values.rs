//! The values of rows as they are, without names: for whoever reads a table back.

use super::PostgresError;

/// The type of bytes, as PostgreSQL counts types (`pg_type.oid`).
const BYTEA: i32 = 17;

/// The types of the columns that rows have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Types(Vec<i32>);

impl Types {
    /// Reads a message of kind `T`.
    ///
    /// # Errors
    /// It is malformed.
    pub fn read(payload: &[u8]) -> Result<Self, PostgresError> {
        let (count, mut rest) = payload.split_first_chunk::<2>().ok_or(PostgresError::Malformed)?;
        let mut types = Vec::new();
        for _ in 0..u16::from_be_bytes(*count) {
            let end = memchr::memchr(0, rest).ok_or(PostgresError::Malformed)?;
            // behind the name: table and column, the type, its size, its modifier, the format
            let (of_column, behind) =
                rest[end + 1..].split_first_chunk::<18>().ok_or(PostgresError::Malformed)?;
            let [_, _, _, _, _, _, a, b, c, d, ..] = *of_column;
            types.push(i32::from_be_bytes([a, b, c, d]));
            rest = behind;
        }
        Ok(Types(types))
    }

    /// Shows each value of a row, the payload of a message of kind `D`; those that are null are left out. Bytes (`bytea`), which
    /// have to come as `\x` and hexadecimal digits (`bytea_output = hex`), are shown as what they are, all others as their text.
    ///
    /// # Errors
    /// It is malformed, or has another number of values.
    pub fn each_value(&self, row: &[u8], mut visit: impl FnMut(&[u8])) -> Result<(), PostgresError> {
        let (count, mut rest) = row.split_first_chunk::<2>().ok_or(PostgresError::Malformed)?;
        if usize::from(u16::from_be_bytes(*count)) != self.0.len() {
            return Err(PostgresError::Columns);
        }
        for column in &self.0 {
            let (length, values) = rest.split_first_chunk::<4>().ok_or(PostgresError::Malformed)?;
            rest = values;
            if let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) {
                let (value, behind) = rest.split_at_checked(length).ok_or(PostgresError::Malformed)?;
                match *column {
                    BYTEA => visit(&bytes(value).ok_or(PostgresError::Malformed)?),
                    _ => visit(value),
                }
                rest = behind;
            }
        }
        Ok(())
    }
}

/// What `\x` and hexadecimal digits stand for; none where it is not that.
fn bytes(text: &[u8]) -> Option<Vec<u8>> {
    let digits = text.strip_prefix(b"\\x")?;
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| match *pair {
        [high, low] => u8::try_from(16 * digit(high)? + digit(low)?).ok(),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The type of text.
    const TEXT: i32 = 25;

    fn shown(types: &[i32], row: &[u8]) -> Result<Vec<Vec<u8>>, PostgresError> {
        let mut shown = Vec::new();
        Types(types.to_vec()).each_value(row, |value| shown.push(value.to_vec()))?;
        Ok(shown)
    }

    #[test]
    fn the_values_of_a_row_are_shown_and_what_is_no_row_is_told() {
        let row = b"\0\x03\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0";
        assert_eq!(shown(&[TEXT; 3], row), Ok(vec![b"ab".to_vec(), Vec::new()]));
        for cut in 0..row.len() {
            assert_eq!(shown(&[TEXT; 3], &row[..cut]), Err(PostgresError::Malformed), "{cut}");
        }
        assert_eq!(shown(&[TEXT; 2], row), Err(PostgresError::Columns));
    }

    #[test]
    fn bytes_are_shown_as_they_are_and_text_that_looks_like_them_too() {
        let row = b"\0\x02\0\0\0\x06\\x6eFf\0\0\0\x04\\x6e";
        assert_eq!(shown(&[BYTEA, TEXT], row), Ok(vec![b"n\xff".to_vec(), b"\\x6e".to_vec()]));
        for wrong in ["", "6e", "\\x6", "\\x6g", "\\x+1"] {
            assert_eq!(bytes(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(bytes(b"\\x"), Some(Vec::new()));
        let one: &[u8] = b"a\0\0\0\0\x09\0\x01\0\0\0\x11\xff\xff\xff\xff\xff\xff\0\0";
        let other: &[u8] = b"bc\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0";
        let told = [&b"\0\x02"[..], one, other].concat();
        assert_eq!(Types::read(&told), Ok(Types(vec![BYTEA, TEXT])));
        for cut in 0..told.len() {
            assert_eq!(Types::read(&told[..cut]), Err(PostgresError::Malformed), "{cut}");
        }
    }
}
