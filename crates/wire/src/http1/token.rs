//! Tokens: what names of headers, methods and subprotocols are made of.

/// Whether this is a token as RFC 9110 (5.6.2) has it: one character at least, and none but letters, digits and some marks.
///
/// ```
/// use tidemark_wire::http1::is_token;
/// assert!(is_token(b"X-Request-Id") && is_token(b"!#$%&'*+-.^_`|~"));
/// assert!(!is_token(b"") && !is_token(b"a b") && !is_token(b"a:") && !is_token("\u{e4}".as_bytes()));
/// ```
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().copied().all(is_token_byte)
}

/// Whether a token may hold this byte.
pub(super) fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}
