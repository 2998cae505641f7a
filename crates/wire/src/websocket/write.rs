//! Frames appended to a buffer. A client hands a fresh random key in for each frame, a server none.

use super::{Kind, MAX_CONTROL_BYTES, MAX_REASON_BYTES, mask};

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
pub(super) const CONTINUATION: u8 = 0;
pub(super) const TEXT: u8 = 1;
pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
pub(super) const PING: u8 = 9;
pub(super) const PONG: u8 = 10;

/// A whole message in one frame. That a text is UTF-8 is the caller's to see to.
pub fn write_message(out: &mut Vec<u8>, kind: Kind, payload: &[u8], key: Option<[u8; 4]>) {
    write_frame(out, FIN | opcode(kind), payload, key);
}

/// A fragment of a message: the first one names the kind, the ones after it do not; `last` ends the message.
pub fn write_fragment(
    out: &mut Vec<u8>,
    first: Option<Kind>,
    last: bool,
    payload: &[u8],
    key: Option<[u8; 4]>,
) {
    let fin = if last { FIN } else { 0 };
    write_frame(out, fin | first.map_or(CONTINUATION, opcode), payload, key);
}

/// A ping; of a longer payload only the first [`MAX_CONTROL_BYTES`] are sent.
pub fn write_ping(out: &mut Vec<u8>, payload: &[u8], key: Option<[u8; 4]>) {
    write_frame(out, FIN | PING, &payload[..payload.len().min(MAX_CONTROL_BYTES)], key);
}

/// A pong; of a longer payload only the first [`MAX_CONTROL_BYTES`] are sent.
pub fn write_pong(out: &mut Vec<u8>, payload: &[u8], key: Option<[u8; 4]>) {
    write_frame(out, FIN | PONG, &payload[..payload.len().min(MAX_CONTROL_BYTES)], key);
}

/// A close frame: none of both without a code; a longer reason is cut at a character's edge to
/// [`MAX_REASON_BYTES`].
pub fn write_close(out: &mut Vec<u8>, code: Option<u16>, reason: &str, key: Option<[u8; 4]>) {
    let Some(code) = code else {
        return write_frame(out, FIN | CLOSE, &[], key);
    };
    let mut end = reason.len().min(MAX_REASON_BYTES);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    let reason = &reason.as_bytes()[..end];
    let mut payload = [0; MAX_CONTROL_BYTES];
    payload[..2].copy_from_slice(&code.to_be_bytes());
    payload[2..2 + reason.len()].copy_from_slice(reason);
    write_frame(out, FIN | CLOSE, &payload[..2 + reason.len()], key);
}

fn opcode(kind: Kind) -> u8 {
    match kind {
        Kind::Text => TEXT,
        Kind::Binary => BINARY,
    }
}

fn write_frame(out: &mut Vec<u8>, first: u8, payload: &[u8], key: Option<[u8; 4]>) {
    let mask_bit = if key.is_some() { MASKED } else { 0 };
    let length = payload.len();
    // One growth at most for the whole frame.
    out.reserve(length + 14);
    match length {
        0..=125 => out.extend_from_slice(&[first, mask_bit | length as u8]),
        126..=0xffff => {
            out.extend_from_slice(&[first, mask_bit | 126]);
            out.extend_from_slice(&(length as u16).to_be_bytes());
        }
        _ => {
            out.extend_from_slice(&[first, mask_bit | 127]);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
    if let Some(key) = key {
        out.extend_from_slice(&key);
    }
    let start = out.len();
    out.extend_from_slice(payload);
    if let Some(key) = key {
        mask(&mut out[start..], key, 0);
    }
}
