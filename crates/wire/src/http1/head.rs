//! Start line and headers: found, parsed, and copied once into a buffer that the accessors look into.

use std::mem::MaybeUninit;

use super::{Decoded, DecoderLimits, HttpError, MAX_BLANK_BYTES, MAX_HEADERS, is_host};

/// A part of the head's bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

impl Span {
    /// Where `part` is inside `whole`. Empty parts may point anywhere.
    fn of(part: &[u8], whole: &[u8]) -> Span {
        if part.is_empty() {
            return Span::default();
        }
        let start = part.as_ptr() as usize - whole.as_ptr() as usize;
        debug_assert!(start + part.len() <= whole.len());
        Span { start: start as u32, end: (start + part.len()) as u32 }
    }
}

/// What the start line and the headers say about the message as a whole.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Facts {
    /// 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub minor_version: u8,
    /// An answer's status; 0 in requests.
    pub status: u16,
    /// An answer's reason or a request's method.
    pub first: Span,
    /// A request's target.
    pub second: Span,
    pub content_length: Option<u64>,
    pub chunked: bool,
    pub close: bool,
    pub keep_alive: bool,
    pub hosts: u32,
    /// One of the hosts is none.
    pub has_no_host: bool,
}

impl Facts {
    /// Whether the connection may be used again, as far as the head tells.
    pub fn persistent(&self) -> bool {
        !self.close && (self.minor_version == 1 || self.keep_alive)
    }

    /// Takes note of a header that concerns the message as a whole.
    fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), HttpError> {
        // By length first: of the usual headers only few are compared at all.
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                // a list of the same value is that value (RFC 9110, 8.6)
                for value in value.split(|byte| *byte == b',') {
                    let length = decimal(value.trim_ascii()).ok_or(HttpError::ContentLengthInvalid)?;
                    if self.content_length.is_some_and(|before| before != length) {
                        return Err(HttpError::ContentLengthConflict);
                    }
                    self.content_length = Some(length);
                }
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked || self.minor_version == 0 || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(HttpError::TransferEncodingUnsupported);
                }
                self.chunked = true;
            }
            10 if name.eq_ignore_ascii_case(b"connection") => {
                for token in value.split(|&byte| byte == b',') {
                    let token = token.trim_ascii();
                    self.close |= token.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= token.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            4 if name.eq_ignore_ascii_case(b"host") => {
                self.hosts += 1;
                self.has_no_host |= !value.is_empty() && !is_host(value);
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&self) -> Result<(), HttpError> {
        match self.chunked && self.content_length.is_some() {
            true => Err(HttpError::ContentLengthWithTransferEncoding),
            false => Ok(()),
        }
    }
}

/// Digits and nothing else, without overflow.
fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0u64, |number, byte| match byte {
        b'0'..=b'9' => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    })
}

/// The head of one message.
///
/// Many messages in a row have the same head to the byte. So what the last one came to is kept, and one that is the same
/// is not parsed again.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Those of the message before until this one has begun.
    bytes: Vec<u8>,
    headers: Vec<(Span, Span)>,
    facts: Facts,
    begun: bool,
    /// `bytes` are a whole head, which is well formed, and `headers` and `facts` what it says.
    whole: bool,
    /// An incomplete head is not parsed again before it has this many bytes or a blank line came, so that a head that
    /// trickles in costs time in proportion to its length.
    next_attempt: usize,
    blank_bytes: usize,
    blank_return: bool,
}

/// Which kind of head is parsed.
#[derive(Debug, Clone, Copy)]
pub(super) enum HeadOf {
    Request,
    Response,
}

impl Head {
    /// Nothing is there of the next message; buffers are kept.
    pub fn reset(&mut self) {
        if !self.whole {
            self.forget();
        }
        self.begun = false;
        self.next_attempt = 0;
        self.blank_bytes = 0;
        self.blank_return = false;
    }

    fn forget(&mut self) {
        self.bytes.clear();
        self.headers.clear();
        self.facts = Facts::default();
        self.whole = false;
    }

    pub fn facts(&self) -> Facts {
        if self.begun { self.facts } else { Facts::default() }
    }

    /// Whether a byte of the head has come.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    pub fn bytes(&self) -> &[u8] {
        if self.begun { &self.bytes } else { &[] }
    }

    fn spans(&self) -> &[(Span, Span)] {
        if self.begun { &self.headers } else { &[] }
    }

    pub fn part(&self, span: Span) -> &[u8] {
        &self.bytes[span.start as usize..span.end as usize]
    }

    /// The first header of that name.
    pub fn header(&self, lower_case_name: &str) -> Option<&[u8]> {
        let wanted = lower_case_name.as_bytes();
        self.spans()
            .iter()
            .find(|(name, _)| {
                (name.end - name.start) as usize == wanted.len()
                    && self.part(*name).eq_ignore_ascii_case(wanted)
            })
            .map(|(_, value)| self.part(*value))
    }

    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans().iter().map(|(name, value)| (self.part(*name), self.part(*value)))
    }

    /// Takes the bytes of the head from the front of `input`. A head that is refused leaves nothing to be looked at.
    pub fn read(&mut self, of: HeadOf, input: &[u8], limits: &DecoderLimits) -> Result<Decoded, HttpError> {
        if !self.begun && self.whole {
            if input.starts_with(&self.bytes) {
                self.begun = true;
                return Ok(Decoded { consumed: self.bytes.len(), complete: true });
            }
            self.forget();
        }
        let result = self.read_on(of, input, limits);
        match result {
            Ok(read) => self.whole = read.complete,
            Err(_) => {
                self.headers.clear();
                self.facts = Facts::default();
            }
        }
        result
    }

    fn read_on(&mut self, of: HeadOf, input: &[u8], limits: &DecoderLimits) -> Result<Decoded, HttpError> {
        let skipped = if self.bytes.is_empty() { self.skip_blank_lines(input)? } else { 0 };
        let input = &input[skipped..];
        if input.is_empty() {
            return Ok(Decoded { consumed: skipped, complete: false });
        }
        self.begun = true;
        let offered = &input[..input.len().min(limits.head_bytes - self.bytes.len())];
        // The usual case: the whole head in one piece is parsed where it lies and copied once.
        let ended_at = if self.bytes.is_empty() {
            let ended_at = parse(of, offered, limits, &mut self.headers, &mut self.facts)?;
            self.bytes.extend_from_slice(&offered[..ended_at.unwrap_or(offered.len())]);
            ended_at
        } else {
            self.gather(of, offered, limits)?
        };
        if let Some(ended_at) = ended_at {
            return Ok(Decoded { consumed: skipped + ended_at, complete: true });
        }
        if self.bytes.len() >= limits.head_bytes {
            return Err(HttpError::HeadTooLarge { limit_bytes: limits.head_bytes });
        }
        if self.bytes.len() >= self.next_attempt {
            self.next_attempt = self.bytes.len() * 2;
        }
        Ok(Decoded { consumed: skipped + offered.len(), complete: false })
    }

    /// Puts another piece behind those of an incomplete head. Returns where in the piece the head ended, if it did;
    /// nothing behind that place is copied, large as the body there may be.
    fn gather(
        &mut self,
        of: HeadOf,
        piece: &[u8],
        limits: &DecoderLimits,
    ) -> Result<Option<usize>, HttpError> {
        let mut taken = 0;
        while taken < piece.len() {
            let blank_line = blank_line_end(&self.bytes, &piece[taken..]);
            let part = &piece[taken..blank_line.map_or(piece.len(), |end| taken + end)];
            self.bytes.extend_from_slice(part);
            taken += part.len();
            if blank_line.is_none() && self.bytes.len() < self.next_attempt {
                break;
            }
            if let Some(length) = parse(of, &self.bytes, limits, &mut self.headers, &mut self.facts)? {
                debug_assert_eq!(length, self.bytes.len(), "a head ends with its first blank line");
                return Ok(Some(taken));
            }
        }
        Ok(None)
    }

    /// A few blank lines before a message are overlooked, as the standard advises.
    fn skip_blank_lines(&mut self, input: &[u8]) -> Result<usize, HttpError> {
        for (index, &byte) in input.iter().enumerate() {
            match byte {
                b'\r' if !self.blank_return => self.blank_return = true,
                b'\n' => self.blank_return = false,
                _ if self.blank_return => {
                    return Err(HttpError::MalformedHead("a carriage return without a line feed"));
                }
                _ => return Ok(index),
            }
            self.blank_bytes += 1;
            if self.blank_bytes > MAX_BLANK_BYTES {
                return Err(HttpError::MalformedHead("too many blank lines before the start line"));
            }
        }
        Ok(input.len())
    }
}

/// Where in `piece`, which follows `before`, the first blank line ends.
fn blank_line_end(before: &[u8], piece: &[u8]) -> Option<usize> {
    // The byte so many places in front of a place in the piece.
    let back = |at: usize, places: usize| match at.checked_sub(places) {
        Some(index) => piece.get(index).copied(),
        None => before.len().checked_sub(places - at).and_then(|index| before.get(index).copied()),
    };
    let line_feeds = memchr::memchr_iter(b'\n', piece);
    let mut blank = line_feeds.filter(|&at| match back(at, 1) {
        Some(b'\r') => back(at, 2) == Some(b'\n'),
        previous => previous == Some(b'\n'),
    });
    blank.next().map(|at| at + 1)
}

/// Parses a head; `None` when its end has not come yet. Spans are counted from the beginning of `bytes`.
fn parse(
    of: HeadOf,
    bytes: &[u8],
    limits: &DecoderLimits,
    headers: &mut Vec<(Span, Span)>,
    facts: &mut Facts,
) -> Result<Option<usize>, HttpError> {
    let mut table = [const { MaybeUninit::uninit() }; MAX_HEADERS];
    let table = &mut table[..limits.headers];
    let failed = |error| malformed(error, limits);
    *facts = Facts::default();
    headers.clear();
    let (length, parsed) = match of {
        HeadOf::Response => {
            let mut response = httparse::Response::new(&mut []);
            let config = httparse::ParserConfig::default();
            let status =
                config.parse_response_with_uninit_headers(&mut response, bytes, table).map_err(failed)?;
            let httparse::Status::Complete(length) = status else { return Ok(None) };
            facts.status = response.code.unwrap_or(0);
            if facts.status < 100 {
                return Err(HttpError::MalformedHead("a status below 100"));
            }
            facts.minor_version = response.version.unwrap_or(1);
            facts.first = Span::of(response.reason.unwrap_or("").as_bytes(), bytes);
            (length, response.headers)
        }
        HeadOf::Request => {
            let mut request = httparse::Request::new(&mut []);
            let status = request.parse_with_uninit_headers(bytes, table).map_err(failed)?;
            let httparse::Status::Complete(length) = status else { return Ok(None) };
            facts.minor_version = request.version.unwrap_or(1);
            facts.first = Span::of(request.method.unwrap_or("").as_bytes(), bytes);
            facts.second = Span::of(request.path.unwrap_or("").as_bytes(), bytes);
            (length, request.headers)
        }
    };
    for header in parsed.iter() {
        let name = header.name.as_bytes();
        facts.note(name, header.value)?;
        headers.push((Span::of(name, bytes), Span::of(header.value, bytes)));
    }
    facts.check()?;
    Ok(Some(length))
}

fn malformed(error: httparse::Error, limits: &DecoderLimits) -> HttpError {
    use httparse::Error;
    HttpError::MalformedHead(match error {
        Error::TooManyHeaders => return HttpError::TooManyHeaders { limit: limits.headers },
        Error::HeaderName => "a header name that is not a token, or a folded line",
        Error::HeaderValue => "a header value with a control character",
        Error::NewLine => "a line that does not end as lines do",
        Error::Status => "the status is not three digits",
        Error::Token => "the start line has a character that may not be there",
        Error::Version => "the version is not HTTP/1.0 or HTTP/1.1",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_across_pieces() {
        for (text, end) in [("a\r\n\r\nb", 5), ("a\n\nb\n\n", 3), ("a\r\n\nb", 4), ("a\n\r\n", 4)] {
            for cut in 0..end {
                let (before, piece) = text.as_bytes().split_at(cut);
                assert_eq!(blank_line_end(before, piece), Some(end - cut), "{text:?} cut at {cut}");
            }
        }
        for text in ["", "a\r\nb\r\n", "\r\n", "a\r\n\rb\n", "a\r\r\n"] {
            for cut in 0..=text.len() {
                let (before, piece) = text.as_bytes().split_at(cut);
                assert_eq!(blank_line_end(before, piece), None, "{text:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn of_a_late_piece_only_the_head_is_copied() {
        let mut head = Head::default();
        let limits = DecoderLimits::default();
        let first = head.read(HeadOf::Response, b"HTTP/1.1 200 OK\r\nX: y\r", &limits).unwrap();
        assert!(!first.complete);
        let piece = [b"\n\r\n".as_slice(), &[b'x'; 60_000]].concat();
        let second = head.read(HeadOf::Response, &piece, &limits).unwrap();
        assert_eq!(second, Decoded { consumed: 3, complete: true });
        assert!(head.bytes.capacity() < 1000);
    }
}
