//! Percent-encoding of texts that stand in a URL or a form.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// All but what RFC 3986 calls unreserved: letters, digits and `-._~`.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text that is percent-encoded, but for unreserved characters.
pub fn encoded(text: impl AsRef<[u8]>) -> String {
    percent_encode(text.as_ref(), ENCODED).to_string()
}
