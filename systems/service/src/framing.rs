//! Finds where each request ends, before hyper reads it.
//!
//! Every line ends in CRLF. Some programs take a CR or an LF alone as the end of a line, and others do not. So a proxy before
//! the server may see other requests than the server does (RFC 9112, 2.2 and 11.2). hyper takes an LF alone in heads and
//! trailers. This module refuses it, and everything behind it.
//!
//! hyper gets no byte beyond the head or the body that it reads. hyper itself says whether a body follows, and how long it is.
//! So the two never differ in that.

use memchr::memchr;

/// Most digits of a chunk's size: a number of 64 bits.
const SIZE_DIGITS_MAX: usize = 16;
/// How a request begins to which the answer has no body.
const HEAD: &[u8] = b"HEAD ";

/// What is wrong with what came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// A CR or an LF alone, or a chunk that does not end where it should.
    Line,
    /// A request line that is longer than a head may be.
    Target,
    /// A head that does not end.
    Head,
}

/// What hyper reads now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// A head; how many of its lines have come.
    Head(usize),
    /// Nothing, until hyper says what follows the head.
    Undecided,
    /// A body; how many of its bytes are left.
    Bytes(u64),
    /// The line with a chunk's size: its value so far, its digits so far, and whether more digits may come.
    Size { size: u64, digits: usize, is_open: bool },
    /// A chunk; how many of its bytes are left.
    Chunk(u64),
    /// The end of a chunk.
    ChunkEnd,
    /// The lines after the last chunk.
    Trailer,
}

/// Where a connection is in its requests.
#[derive(Debug)]
pub(crate) struct Framing {
    part: Part,
    line: Line,
    head_bytes: usize,
    /// A head that has not ended by so many bytes is refused.
    head_bytes_max: usize,
    /// Most bytes of a request line: beyond it a head that is too long is refused as [`Wrong::Target`].
    target_bytes_max: usize,
    first_line_bytes: usize,
    start: [u8; HEAD.len()],
}

/// What has come of a line.
#[derive(Debug, Default)]
struct Line {
    /// Without its end.
    bytes: usize,
    /// Whether the last byte was a CR.
    cr: bool,
}

impl Line {
    /// Takes bytes up to the end of the line. Returns how many it took, and how many the line has; none if the line does not
    /// end.
    fn take(&mut self, bytes: &[u8]) -> Result<Option<(usize, usize)>, Wrong> {
        let Some(lf) = memchr(b'\n', bytes) else {
            let Some(last) = bytes.len().checked_sub(1) else { return Ok(None) };
            let cr = memchr(b'\r', bytes);
            if self.cr || cr.is_some_and(|cr| cr < last) {
                return Err(Wrong::Line);
            }
            self.cr = cr.is_some();
            self.bytes += bytes.len() - usize::from(self.cr);
            return Ok(None);
        };
        // the only CR stands right before it
        let content = match memchr(b'\r', &bytes[..lf]) {
            Some(cr) if cr + 1 == lf && !self.cr => cr,
            None if lf == 0 && self.cr => 0,
            _ => return Err(Wrong::Line),
        };
        let before = std::mem::take(self);
        Ok(Some((lf + 1, before.bytes + content)))
    }
}

impl Framing {
    /// The framing of a new connection.
    pub(crate) fn new(head_bytes_max: usize) -> Self {
        Framing {
            part: Part::Head(0),
            line: Line::default(),
            head_bytes: 0,
            head_bytes_max: 2 * head_bytes_max,
            target_bytes_max: head_bytes_max / 2,
            first_line_bytes: 0,
            start: [0; HEAD.len()],
        }
    }

    /// What follows the last head: so many bytes, or chunks where the length is not known.
    pub(crate) fn begin_body(&mut self, bytes: Option<u64>) {
        (self.head_bytes, self.first_line_bytes) = (0, 0);
        self.part = match bytes {
            Some(0) => Part::Head(0),
            Some(bytes) => Part::Bytes(bytes),
            None => Part::Size { size: 0, digits: 0, is_open: true },
        };
    }

    /// The bound on heads that it was made with, bytes.
    pub(crate) fn limit(&self) -> usize {
        self.head_bytes_max / 2
    }

    /// Whether it is reading a head.
    pub(crate) fn is_in_head(&self) -> bool {
        matches!(self.part, Part::Head(_) | Part::Undecided)
    }

    /// Whether it is reading the head of a HEAD request: the answer has no body.
    pub(crate) fn is_of_head(&self) -> bool {
        self.start == HEAD
    }

    /// How many of these bytes belong to the current head or body; at least one.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Result<usize, Wrong> {
        match self.part {
            Part::Head(_) => self.head(bytes),
            Part::Undecided => Err(Wrong::Line),
            Part::Bytes(left) => {
                let taken = usize::try_from(left).map_or(bytes.len(), |left| left.min(bytes.len()));
                self.part = match left - taken as u64 {
                    0 => Part::Head(0),
                    left => Part::Bytes(left),
                };
                Ok(taken)
            }
            _ => self.chunks(bytes),
        }
    }

    fn head(&mut self, bytes: &[u8]) -> Result<usize, Wrong> {
        let mut taken = 0;
        while taken < bytes.len() {
            let Part::Head(lines) = self.part else { break };
            let (rest, before) = (&bytes[taken..], self.line.bytes);
            if lines == 0 {
                let start = self.start.iter_mut().skip(before);
                start.zip(rest).for_each(|(place, byte)| *place = *byte);
            }
            let ended = self.line.take(rest)?;
            taken += ended.map_or(rest.len(), |(bytes, _)| bytes);
            if lines == 0 {
                self.first_line_bytes = ended.map_or(self.line.bytes, |(_, line)| line);
            }
            self.part = match ended {
                None => break,
                // some clients send an empty line behind a body
                Some((_, 0)) if lines == 0 => Part::Head(0),
                Some((_, 0)) => Part::Undecided,
                Some(_) => Part::Head(lines + 1),
            };
        }
        self.head_bytes += taken;
        if self.part != Part::Undecided && self.head_bytes >= self.head_bytes_max {
            let is_long = self.first_line_bytes > self.target_bytes_max;
            return Err(if is_long { Wrong::Target } else { Wrong::Head });
        }
        Ok(taken)
    }

    fn chunks(&mut self, bytes: &[u8]) -> Result<usize, Wrong> {
        let mut taken = 0;
        while taken < bytes.len() {
            let rest = &bytes[taken..];
            if let Part::Chunk(left) = self.part {
                let some = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                taken += some;
                self.part = match left - some as u64 {
                    0 => Part::ChunkEnd,
                    left => Part::Chunk(left),
                };
                continue;
            }
            if let Part::Size { .. } = self.part {
                self.size(rest)?;
            }
            let Some((some, line)) = self.line.take(rest)? else { return Ok(bytes.len()) };
            taken += some;
            self.part = match (self.part, line) {
                (Part::Size { size: 0, .. }, _) => Part::Trailer,
                (Part::Size { size, .. }, _) => Part::Chunk(size),
                (Part::ChunkEnd, 0) => Part::Size { size: 0, digits: 0, is_open: true },
                (Part::Trailer, 0) => {
                    self.part = Part::Head(0);
                    return Ok(taken);
                }
                (Part::Trailer, _) => Part::Trailer,
                _ => return Err(Wrong::Line),
            };
        }
        Ok(taken)
    }

    /// Reads more digits of a size. The rest of the line is hyper's business.
    fn size(&mut self, bytes: &[u8]) -> Result<(), Wrong> {
        let Part::Size { size, digits, is_open } = &mut self.part else { return Ok(()) };
        for byte in bytes.iter().take_while(|_| *is_open) {
            match char::from(*byte).to_digit(16) {
                Some(_) if *digits == SIZE_DIGITS_MAX => return Err(Wrong::Line),
                Some(digit) => (*size, *digits) = (*size << 4 | u64::from(digit), *digits + 1),
                None => break,
            }
        }
        let ends = bytes.iter().any(|byte| !byte.is_ascii_hexdigit());
        *is_open &= !ends;
        if ends && *digits == 0 { Err(Wrong::Line) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What hyper would be given, in pieces of so many bytes: where each request ended, or what was wrong.
    fn ends(sent: &[u8], bodies: &[Option<u64>], piece_bytes: usize) -> Result<Vec<usize>, Wrong> {
        let (mut framing, mut bodies) = (Framing::new(64), bodies.iter());
        let (mut at, mut ends) = (0, Vec::new());
        while at < sent.len() {
            let piece = &sent[at..sent.len().min(at.saturating_add(piece_bytes))];
            let taken = framing.take(piece)?;
            assert!(taken > 0, "that would be the end of the connection");
            at += taken;
            if framing.part == Part::Undecided {
                framing.begin_body(*bodies.next().unwrap());
            }
            if framing.part == Part::Head(0) && framing.line.bytes == 0 && !framing.line.cr {
                ends.push(at);
            }
        }
        Ok(ends)
    }

    /// The same, however it is cut.
    fn ends_of(sent: &str, bodies: &[Option<u64>]) -> Result<Vec<usize>, Wrong> {
        let whole = ends(sent.as_bytes(), bodies, usize::MAX);
        for piece_bytes in 1..=sent.len().min(40) {
            assert_eq!(
                ends(sent.as_bytes(), bodies, piece_bytes),
                whole,
                "{sent:?} in pieces of {piece_bytes}"
            );
        }
        whole
    }

    #[test]
    fn requests_end_where_they_end() {
        let get = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let both = [get, get].concat();
        assert_eq!(ends_of(&both, &[Some(0), Some(0)]), Ok(vec![get.len(), both.len()]));
        let sized = [get, "a\nb\rc", get].concat();
        assert_eq!(ends_of(&sized, &[Some(5), Some(0)]), Ok(vec![get.len() + 5, sized.len()]));
        for chunks in [
            "0\r\n\r\n",
            "3\r\na\n\r\r\n0\r\n\r\n",
            "A;x=\"y\"\r\n0123456789\r\n000\r\nX: y\r\nZ: \r\n\r\n",
            "1 \r\n.\r\n0\r\n\r\n",
        ] {
            let sent = [get, chunks, get].concat();
            let expected = Ok(vec![get.len() + chunks.len(), sent.len()]);
            assert_eq!(ends_of(&sent, &[None, Some(0)]), expected, "{chunks:?}");
        }
    }

    #[test]
    fn a_line_that_ends_otherwise_is_wrong_wherever_it_stands() {
        for head in [
            "GET / HTTP/1.1\nHost: x\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\n\n",
            "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: x\r\r\n\r\n",
            "GET / HTTP/1.1\r\n\rHost: x\r\n\r\n",
            "\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        ] {
            assert_eq!(ends_of(head, &[Some(0)]), Err(Wrong::Line), "{head:?}");
        }
        for chunks in [
            "0\n\r\n",
            "0\r\n\n",
            "0\r\nX: y\n\r\n",
            "0\r\nX: y\r\n\n",
            "0\r\nX: y\rz\r\n\r\n",
            "1\n.\r\n0\r\n\r\n",
            "1\r\n.\n0\r\n\r\n",
            "1\r\n.x\r\n0\r\n\r\n",
            "1;x\ny\r\n.\r\n0\r\n\r\n",
            "1;x\ry\r\n.\r\n0\r\n\r\n",
            "1\r\r\n.\r\n0\r\n\r\n",
            "\r\n",
            "x\r\n",
            "00000000000000001\r\n.\r\n0\r\n\r\n",
        ] {
            let sent = format!("GET / HTTP/1.1\r\nHost: x\r\n\r\n{chunks}");
            assert_eq!(ends_of(&sent, &[None]), Err(Wrong::Line), "{chunks:?}");
        }
    }

    #[test]
    fn a_head_without_end_is_wrong_by_what_is_long_in_it() {
        let target = format!("HEAD /{}", "x".repeat(200));
        assert_eq!(ends_of(&target, &[]), Err(Wrong::Target));
        let field = format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "y".repeat(200));
        assert_eq!(ends_of(&field, &[]), Err(Wrong::Head));
        assert_eq!(ends_of(&"\r\n".repeat(100), &[]), Err(Wrong::Head));
        for (sent, is_of_head) in
            [("HEAD / ", true), ("\r\nHEAD / ", true), ("GET / HTTP/1.1", false), ("HEA", false)]
        {
            for piece_bytes in [1, 2, 100] {
                let mut framing = Framing::new(64);
                sent.as_bytes().chunks(piece_bytes).for_each(|piece| assert!(framing.take(piece).is_ok()));
                assert_eq!(framing.is_of_head(), is_of_head, "{sent:?}");
            }
        }
    }
}
