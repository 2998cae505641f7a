//! Pseudo-headers that only requests have, in what a server sends: the library passes over them, and an answer with one
//! is malformed (RFC 9113, section 8.1.1).

/// Bytes in front of a frame's payload.
const FRAME_HEAD: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;
/// Bytes of the priority in a HEADERS frame.
const PRIORITY_BYTES: usize = 5;
/// Longest list of headers that is looked through; the library does not take longer ones.
const BLOCK_BYTES: usize = 256 << 10;
/// `:authority`, `:method`, `:path` and `:scheme` have these indices in the static table of HPACK; those of `:status` follow.
const OF_REQUESTS: std::ops::RangeInclusive<usize> = 1..=7;
const STATUS: &[u8] = b":status";
/// The same in the code of HPACK, in which the first seven bits are the colon.
const STATUS_CODED: &[u8] = &[0xb8, 0x84, 0x8d, 0x36, 0xa3];
const COLON_CODED: u8 = 0x5c;

/// Looks through a connection's frames as their bytes come.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The head of the frame that is being read, as far as it is there.
    head: [u8; FRAME_HEAD],
    head_bytes: usize,
    /// Bytes of its payload that are still to come.
    left: usize,
    /// Its payload, if it has headers.
    payload: Vec<u8>,
    /// The list of headers that is being read.
    block: Vec<u8>,
}

impl Watch {
    /// Looks through the next bytes. Whether all is well so far.
    pub fn look(&mut self, mut bytes: &[u8]) -> bool {
        while !bytes.is_empty() {
            if self.head_bytes < FRAME_HEAD {
                let taken = bytes.len().min(FRAME_HEAD - self.head_bytes);
                self.head[self.head_bytes..][..taken].copy_from_slice(&bytes[..taken]);
                self.head_bytes += taken;
                bytes = &bytes[taken..];
                if self.head_bytes < FRAME_HEAD {
                    return true;
                }
                self.left = u32::from_be_bytes([0, self.head[0], self.head[1], self.head[2]]) as usize;
            }
            let taken = bytes.len().min(self.left);
            if matches!(self.head[3], HEADERS | CONTINUATION) && self.payload.len() + taken <= BLOCK_BYTES {
                self.payload.extend_from_slice(&bytes[..taken]);
            }
            self.left -= taken;
            bytes = &bytes[taken..];
            if self.left == 0 {
                self.head_bytes = 0;
                if !self.frame_ended() {
                    return false;
                }
            }
        }
        true
    }

    fn frame_ended(&mut self) -> bool {
        let (kind, flags) = (self.head[3], self.head[4]);
        if !matches!(kind, HEADERS | CONTINUATION) {
            return true;
        }
        let mut fragment = self.payload.as_slice();
        if kind == HEADERS {
            self.block.clear();
            let padding = match fragment.split_first() {
                Some((padding, rest)) if flags & PADDED != 0 => {
                    fragment = rest;
                    usize::from(*padding)
                }
                _ => 0,
            };
            let begin = if flags & PRIORITY != 0 { PRIORITY_BYTES } else { 0 };
            fragment = fragment.get(begin..fragment.len().saturating_sub(padding)).unwrap_or_default();
        }
        if self.block.len() + fragment.len() <= BLOCK_BYTES {
            self.block.extend_from_slice(fragment);
        }
        self.payload.clear();
        flags & END_HEADERS == 0 || !Block(&self.block).names_request()
    }
}

/// A list of headers in the form of HPACK (RFC 7541), as far as its names show without its tables: a name that stands in
/// a table of the connection's own has been looked at when it came there.
struct Block<'a>(&'a [u8]);

impl Block<'_> {
    /// Whether a pseudo-header of requests is among them. What is malformed otherwise, the library tells.
    fn names_request(mut self) -> bool {
        while let Some(first) = self.0.first() {
            let (bits, has_value) = match first {
                0x80.. => (7, false),
                0x40..0x80 => (6, true),
                0x20..0x40 => {
                    if self.number(5).is_none() {
                        return false;
                    }
                    continue;
                }
                _ => (4, true),
            };
            let Some(index) = self.number(bits) else { return false };
            if OF_REQUESTS.contains(&index) {
                return true;
            }
            if has_value && index == 0 {
                match self.text() {
                    Some((false, name)) if name.starts_with(b":") && name != STATUS => return true,
                    Some((true, name)) if is_coded_pseudo(name) && name != STATUS_CODED => return true,
                    Some(_) => {}
                    None => return false,
                }
            }
            if has_value && self.text().is_none() {
                return false;
            }
        }
        false
    }

    /// A number in the last `bits` bits of a byte, and in the bytes behind it where it is too large for them.
    fn number(&mut self, bits: u32) -> Option<usize> {
        let (first, mut rest) = self.0.split_first()?;
        let most = (1usize << bits) - 1;
        let mut number = usize::from(*first) & most;
        if number == most {
            for shift in (0..28).step_by(7) {
                let (next, behind) = rest.split_first()?;
                rest = behind;
                number += usize::from(next & 0x7f) << shift;
                if next & 0x80 == 0 {
                    self.0 = rest;
                    return Some(number);
                }
            }
            return None;
        }
        self.0 = rest;
        Some(number)
    }

    /// A text, and whether it is coded.
    fn text(&mut self) -> Option<(bool, &[u8])> {
        let is_coded = self.0.first()? & 0x80 != 0;
        let length = self.number(7)?;
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some((is_coded, text))
    }
}

fn is_coded_pseudo(name: &[u8]) -> bool {
    name.first().is_some_and(|first| first >> 1 == COLON_CODED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = (payload.len() as u32).to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
        frame.extend_from_slice(payload);
        frame
    }

    /// The same whatever the pieces in which the bytes come.
    fn is_well(bytes: &[u8]) -> bool {
        let whole = Watch::default().look(bytes);
        let mut watch = Watch::default();
        assert_eq!(bytes.iter().all(|byte| watch.look(&[*byte])), whole);
        whole
    }

    #[test]
    fn only_requests_have_these() {
        let literal = |name: &[u8], coded: u8| [&[0x40, name.len() as u8 | coded], name, &[1, b'x']].concat();
        for (block, well) in [
            (vec![0x88], true),
            (vec![0x88, 0x82], false),
            (vec![0x88, 0x04, 1, b'/'], false),
            (vec![0x88, 0x41, 1, b'h'], false),
            (vec![0x3f, 0xe1, 0x1f, 0x88, 0x87], false),
            (literal(b":path", 0), false),
            (literal(b":status", 0), true),
            (literal(b"server", 0), true),
            (literal(STATUS_CODED, 0x80), true),
            // `:path`
            (literal(&[0xb9, 0x58, 0xd3, 0x3f], 0x80), false),
            // an index of the connection's own table, and what ends in the middle
            (vec![0x88, 0xff, 0x80, 0x01, 0xbe], true),
            (vec![0x88, 0x40], true),
            (vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff], true),
        ] {
            assert_eq!(is_well(&frame(HEADERS, END_HEADERS, &block)), well, "{block:x?}");
            let data = frame(0, 0, &[0x82; 300]);
            let settings = frame(4, 0, &[]);
            let padded = [&[2, 0, 0, 0, 0, 0][..], &block, &[0x82, 0x82]].concat();
            let bytes = [settings, data, frame(HEADERS, END_HEADERS | PADDED | PRIORITY, &padded)].concat();
            assert_eq!(is_well(&bytes), well, "{block:x?}");
            let (first, second) = block.split_at(1);
            let parts = [frame(HEADERS, 0, first), frame(CONTINUATION, END_HEADERS, second)].concat();
            assert_eq!(is_well(&parts), well, "{block:x?}");
        }
    }

    #[test]
    fn what_is_longer_than_the_library_takes_is_not_kept() {
        let mut watch = Watch::default();
        assert!(watch.look(&frame(HEADERS, 0, &vec![0x88; BLOCK_BYTES * 3])));
        for _ in 0..5 {
            assert!(watch.look(&frame(CONTINUATION, 0, &vec![0x88; BLOCK_BYTES / 2])));
        }
        assert!(watch.payload.capacity() + watch.block.capacity() <= 4 * BLOCK_BYTES);
    }
}
