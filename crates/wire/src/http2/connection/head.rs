//! What a header block says about an answer (RFC 9113, 8.2 and 8.3).

use crate::http2::hpack::Fields;
use crate::http2::{Violation, is_of_connection, is_value};

/// An answer has one pseudo-header, its status.
const PSEUDO: usize = 1;

/// Bytes that may stand in a name: those of a token, without upper case.
const OF_NAMES: [bool; 256] = of_names();

const fn of_names() -> [bool; 256] {
    let mut of_names = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        of_names[byte] = matches!(
            byte as u8,
            b'a'..=b'z' | b'0'..=b'9' | b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.'
                | b'^' | b'_' | b'`' | b'|' | b'~'
        );
        byte += 1;
    }
    of_names
}

/// What the head of an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answer {
    pub status: u16,
    /// Bytes of the body, as its length says.
    pub length: Option<u64>,
}

/// Why a header block is none of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The stream ends.
    Stream(Violation),
    /// The connection does.
    Connection(Violation),
}

impl From<&'static str> for Wrong {
    fn from(words: &'static str) -> Wrong {
        Wrong::Stream(Violation::protocol(words))
    }
}

/// Reads the head of an answer. Its pseudo-headers are passed over from then on.
pub(super) fn answer(fields: &mut Fields) -> Result<Answer, Wrong> {
    let (mut status, mut length, mut pseudo) = (None, None, 0);
    for (index, (name, value)) in fields.iter_all().enumerate() {
        if let [b':', name @ ..] = name {
            if name != b"status" {
                return Err(of_requests(name));
            }
            if index > pseudo || status.is_some() {
                return Err("the answer has :status twice, or behind other headers".into());
            }
            pseudo += 1;
            status = match value {
                [b'1'..=b'9', b'0'..=b'9', b'0'..=b'9'] => {
                    Some(value.iter().fold(0, |status, digit| status * 10 + u16::from(digit - b'0')))
                }
                _ => return Err("the status of the answer is no number of three digits".into()),
            };
            continue;
        }
        check(name, value)?;
        if name == b"content-length" {
            let told = std::str::from_utf8(value).ok().filter(|value| !value.starts_with('+'));
            let told = told.and_then(|value| value.parse().ok());
            if told.is_none() || length.is_some_and(|length| Some(length) != told) {
                return Err("content-length is not a number, or there are two that differ".into());
            }
            length = told;
        }
    }
    let status = status.ok_or("the answer has no :status")?;
    debug_assert_eq!(pseudo, PSEUDO);
    fields.hide(PSEUDO);
    Ok(Answer { status, length })
}

/// The same of a list that was an answer's before.
pub(super) fn again(answer: Answer, fields: &mut Fields) -> Answer {
    fields.hide(PSEUDO);
    answer
}

/// Reads headers behind a body.
pub(super) fn trailers(fields: &Fields) -> Result<(), Wrong> {
    for (name, value) in fields.iter_all() {
        match name {
            b":status" => return Err("there is a :status behind the body of the answer".into()),
            [b':', name @ ..] => return Err(of_requests(name)),
            _ => check(name, value)?,
        }
    }
    Ok(())
}

fn of_requests(name: &[u8]) -> Wrong {
    Wrong::Connection(Violation::protocol(match name {
        b"method" | b"scheme" | b"authority" | b"path" => {
            "the answer has a pseudo-header that only requests have"
        }
        _ => "the answer has a pseudo-header that nobody knows",
    }))
}

/// What no header may be.
fn check(name: &[u8], value: &[u8]) -> Result<(), Wrong> {
    if name.is_empty() || !name.iter().all(|byte| OF_NAMES[usize::from(*byte)]) {
        return Err("the name of a header has a byte that it cannot have".into());
    }
    if !is_value(value) {
        return Err("the value of a header has a byte that it cannot have".into());
    }
    if is_of_connection(name) {
        return Err("a header of HTTP/1.1 connections".into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http1::is_token;

    #[test]
    fn names_are_tokens_in_lower_case() {
        for byte in 0..=u8::MAX {
            let may_be = is_token(&[byte]) && !byte.is_ascii_uppercase();
            assert_eq!(OF_NAMES[usize::from(byte)], may_be, "{byte}");
        }
    }
}
