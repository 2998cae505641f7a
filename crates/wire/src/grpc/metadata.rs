//! Metadata: which names and values a call may have, and how values of bytes are written.
//!
//! ```
//! use tidemark_wire::grpc::metadata::{check_name, value_as_sent};
//!
//! assert!(check_name("user").is_ok() && check_name("User").is_err());
//! assert_eq!(value_as_sent("user", b"ann"), Ok(&b"ann"[..]));
//! assert!(value_as_sent("user", b"ann\r\n").is_err());
//! // bytes are base64, whose padding is not sent
//! assert_eq!(value_as_sent("trace-bin", b"aGk="), Ok(&b"aGk"[..]));
//! ```

use crate::http2::is_of_connection;

/// Headers that gRPC writes itself, beside those whose name begins with `grpc-`.
const OWN: [&str; 5] = ["content-type", "content-length", "te", "user-agent", "host"];

/// Why a call cannot have some metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// A character that its name may not have.
    #[error("its name may have small letters, digits, `-`, `_` and `.` only")]
    Name,
    /// A name of the protocol's own.
    #[error("gRPC writes it itself")]
    Own,
    /// A name that HTTP/2 forbids.
    #[error("HTTP/2 forbids headers of an HTTP/1.1 connection")]
    OfConnection,
    /// A byte that a text may not have.
    #[error(
        "its value may have printable characters of ASCII only; other bytes go under a name that ends with -bin, in base64"
    )]
    Text,
    /// A text that HTTP/2 forbids.
    #[error("its value begins or ends with a space")]
    Space,
    /// A value of bytes that is not base64.
    #[error("the value of a name that ends with -bin is base64")]
    Base64,
}

/// Whether a call may have metadata of a name.
///
/// # Errors
/// Why not.
pub fn check_name(name: &str) -> Result<(), MetadataError> {
    let is_of_name = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.');
    if name.is_empty() || !name.bytes().all(is_of_name) {
        return Err(MetadataError::Name);
    }
    if name.starts_with("grpc-") || OWN.contains(&name) {
        return Err(MetadataError::Own);
    }
    if is_of_connection(name.as_bytes()) { Err(MetadataError::OfConnection) } else { Ok(()) }
}

/// Whether the values of a name are bytes, in base64.
pub fn is_binary(name: &[u8]) -> bool {
    name.ends_with(b"-bin")
}

/// A value as it is sent.
///
/// # Errors
/// Why it cannot be.
pub fn value_as_sent<'a>(name: &str, value: &'a [u8]) -> Result<&'a [u8], MetadataError> {
    if is_binary(name.as_bytes()) {
        return without_padding(value).ok_or(MetadataError::Base64);
    }
    if !value.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(MetadataError::Text);
    }
    let is_spaced = value.first() == Some(&b' ') || value.last() == Some(&b' ');
    if is_spaced { Err(MetadataError::Space) } else { Ok(value) }
}

/// Appends a value of bytes with its padding, which whoever sent it may have left out. Several values have a comma between
/// them.
pub fn write_padded(value: &[u8], out: &mut Vec<u8>) {
    for (number, one) in value.split(|byte| *byte == b',').enumerate() {
        if number > 0 {
            out.push(b',');
        }
        out.extend_from_slice(one);
        out.extend_from_slice([&b""[..], b"", b"==", b"="][one.len() % 4]);
    }
}

/// Base64 without its padding, which is all there or left out; none where it is no base64 of bytes.
fn without_padding(value: &[u8]) -> Option<&[u8]> {
    let length = value.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
    let (digits, padding) = value.split_at(length);
    if !padding.is_empty() && (padding.len() > 2 || !value.len().is_multiple_of(4)) {
        return None;
    }
    // bits of the last digit that are of no byte
    let spare = [0, 0xff, 0x0f, 0x03][length % 4];
    let last = digits.iter().try_fold(0, |_, byte| digit(*byte))?;
    (length % 4 != 1 && last & spare == 0).then_some(digits)
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_those_that_grpc_allows() {
        for name in ["user", "x-1_a.b", "trace-bin", "a"] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for name in ["", "User", "a b", "a:", ":path", "a*", "a\n", "é"] {
            assert_eq!(check_name(name), Err(MetadataError::Name), "{name:?}");
        }
        for name in ["grpc-timeout", "grpc-trace-bin", "te", "content-type"] {
            assert_eq!(check_name(name), Err(MetadataError::Own), "{name}");
        }
        assert_eq!(check_name("connection"), Err(MetadataError::OfConnection));
    }

    #[test]
    fn a_text_is_printable() {
        for value in ["", "a", "a b", "~!"] {
            assert_eq!(value_as_sent("a", value.as_bytes()), Ok(value.as_bytes()));
        }
        for byte in (0..=255).filter(|byte| !(b' '..=b'~').contains(byte)) {
            assert_eq!(value_as_sent("a", &[b'a', byte, b'b']), Err(MetadataError::Text), "{byte}");
        }
        for value in [" a", "a ", " "] {
            assert_eq!(value_as_sent("a", value.as_bytes()), Err(MetadataError::Space));
        }
    }

    #[test]
    fn what_is_no_base64_is_told() {
        for value in
            ["a", "aGk==", "aGk=a", "a=Gk", "=", "====", "aG k", "aGk\n", "aGl", "aR==", "_-8=", "aGk,aGk"]
        {
            assert_eq!(value_as_sent("a-bin", value.as_bytes()), Err(MetadataError::Base64), "{value}");
        }
        let mut padded = Vec::new();
        write_padded(b"aGk,aA,AAEC,,aGk=", &mut padded);
        assert_eq!(padded, b"aGk=,aA==,AAEC,,aGk=");
    }

    proptest! {
        #[test]
        fn bytes_are_sent_without_padding_and_come_with_it(bytes: Vec<u8>) {
            let (bare, padded) = (STANDARD_NO_PAD.encode(&bytes), STANDARD.encode(&bytes));
            prop_assert_eq!(value_as_sent("a-bin", bare.as_bytes()), Ok(bare.as_bytes()));
            prop_assert_eq!(value_as_sent("a-bin", padded.as_bytes()), Ok(bare.as_bytes()));
            let mut out = Vec::new();
            write_padded(bare.as_bytes(), &mut out);
            prop_assert_eq!(out, padded.into_bytes());
        }

        #[test]
        fn what_another_reads_as_base64_is_sent(value in "[A-D+/=_ ]{0,9}") {
            let is_base64 = STANDARD.decode(&value).is_ok() || STANDARD_NO_PAD.decode(&value).is_ok();
            prop_assert_eq!(value_as_sent("a-bin", value.as_bytes()).is_ok(), is_base64);
        }
    }
}
