//! Text as JSON strings.

/// Whether a byte cannot stand in a JSON string as it is.
pub(crate) fn needs_escape(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// What stands for such a byte: so many of these.
pub(crate) fn escape(byte: u8) -> ([u8; 6], usize) {
    let short = |letter| ([b'\\', letter, 0, 0, 0, 0], 2);
    let hex = |digit: u8| b"0123456789abcdef"[usize::from(digit)];
    match byte {
        b'"' | b'\\' => short(byte),
        b'\n' => short(b'n'),
        b'\r' => short(b'r'),
        byte => ([b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)], 6),
    }
}

/// Appends text as a JSON string with its quotes. Bytes that are no UTF-8 stay as they are.
pub fn write_string(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| needs_escape(*byte)) {
        out.extend_from_slice(&rest[..at]);
        let (escaped, length) = escape(rest[at]);
        out.extend_from_slice(&escaped[..length]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_back_as_it_was() {
        let text: String = (0..=127_u8).map(char::from).chain("é🌊".chars()).collect();
        let mut out = Vec::new();
        write_string(text.as_bytes(), &mut out);
        assert!(crate::json::check(&out).is_ok());
        assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}
