//! The head of a frame (RFC 9113, 4.1).

/// What a client says first.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes in front of a frame's payload.
pub const HEAD_BYTES: usize = 9;
/// Largest payload of a frame, as long as nobody has asked for more.
pub const PAYLOAD_BYTES: usize = 16_384;
/// The largest window and the last number of a stream.
pub const MOST: u32 = i32::MAX as u32;

/// Kinds of frames.
#[allow(missing_docs, reason = "the standard's own names")]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
#[allow(missing_docs, reason = "the standard's own names")]
pub mod flag {
    pub const ACK: u8 = 1;
    pub const END_STREAM: u8 = 1;
    pub const END_HEADERS: u8 = 4;
    pub const PADDED: u8 = 8;
    pub const PRIORITY: u8 = 0x20;
}

/// Settings.
#[allow(missing_docs, reason = "the standard's own names")]
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
    /// Bytes of one of them.
    pub const BYTES: usize = 6;
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHead {
    /// Bytes of its payload.
    pub length: usize,
    /// See [`kind`].
    pub kind: u8,
    /// See [`flag`].
    pub flags: u8,
    /// The stream it is of; 0 of the connection.
    pub stream: u32,
}

impl FrameHead {
    /// Reads one.
    pub fn read(bytes: &[u8; HEAD_BYTES]) -> FrameHead {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes;
        let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        // the first bit is reserved
        let stream = u32::from_be_bytes([s0, s1, s2, s3]) & MOST;
        FrameHead { length, kind, flags, stream }
    }

    /// Appends it.
    pub fn write(self, out: &mut Vec<u8>) {
        debug_assert!(self.length <= PAYLOAD_BYTES && self.stream <= MOST);
        let [_, l0, l1, l2] = (self.length as u32).to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        out.extend_from_slice(&[l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]);
    }

    /// Whether a flag is set.
    pub fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// Appends a frame with a payload of at most [`PAYLOAD_BYTES`].
pub fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    FrameHead { length: payload.len(), kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

/// The payload of a DATA or HEADERS frame without its padding; none where the padding is longer than it.
pub fn unpadded(head: FrameHead, payload: &[u8]) -> Option<&[u8]> {
    if !head.has(flag::PADDED) {
        return Some(payload);
    }
    let (padding, rest) = payload.split_first()?;
    rest.get(..rest.len().checked_sub(usize::from(*padding))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = FrameHead { length: 0x01_02, kind: kind::HEADERS, flags: 5, stream: 0x7f00_0003 };
        let mut bytes = Vec::new();
        head.write(&mut bytes);
        assert_eq!(bytes, [0, 1, 2, 1, 5, 0x7f, 0, 0, 3]);
        assert_eq!(FrameHead::read(&bytes.try_into().unwrap()), head);
        assert_eq!(FrameHead::read(&[0, 0, 0, 0, 0, 0x80, 0, 0, 1]).stream, 1, "the reserved bit");
    }

    #[test]
    fn padding_is_taken_off() {
        let head = |flags| FrameHead { length: 0, kind: kind::DATA, flags, stream: 1 };
        assert_eq!(unpadded(head(0), b"\x01ab"), Some(&b"\x01ab"[..]));
        assert_eq!(unpadded(head(flag::PADDED), b"\x01ab"), Some(&b"a"[..]));
        assert_eq!(unpadded(head(flag::PADDED), b"\x02ab"), Some(&b""[..]));
        assert_eq!(unpadded(head(flag::PADDED), b"\x03ab"), None);
        assert_eq!(unpadded(head(flag::PADDED), b""), None);
    }
}
