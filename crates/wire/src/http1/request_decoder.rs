//! Requests, as a server gets them: for tests, examples and fuzz targets. The shipped systems' server is hyper.

use super::body::{Body, Framing};
use super::head::{Head, HeadOf};
use super::{Decoded, DecoderLimits, HttpError};

/// Decodes one request after the other from a connection's bytes; the counterpart of
/// [`ResponseDecoder`](super::ResponseDecoder).
#[derive(Debug)]
pub struct RequestDecoder {
    limits: DecoderLimits,
    head: Head,
    body: Body,
    head_complete: bool,
    complete: bool,
    failed: Option<HttpError>,
}

impl RequestDecoder {
    /// A decoder ready for the first request.
    pub fn new(limits: DecoderLimits) -> Self {
        let mut decoder = RequestDecoder {
            limits: limits.possible(),
            head: Head::default(),
            body: Body::default(),
            head_complete: false,
            complete: false,
            failed: None,
        };
        decoder.start();
        decoder
    }

    /// Forgets the request before and waits for the next.
    pub fn start(&mut self) {
        self.head.reset();
        self.body.reset(usize::MAX);
        self.head_complete = false;
        self.complete = false;
        self.failed = None;
    }

    /// Takes the bytes of the current request from the front of `input`; bytes of a next one are left alone.
    /// After an error the connection is of no more use, and the error is repeated until [`start`](Self::start).
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, HttpError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.advance(input);
        self.failed = result.err();
        result
    }

    fn advance(&mut self, input: &[u8]) -> Result<Decoded, HttpError> {
        let mut consumed = 0;
        if !self.head_complete {
            let step = self.head.read(HeadOf::Request, input, &self.limits)?;
            consumed = step.consumed;
            if !step.complete {
                return Ok(Decoded { consumed, complete: false });
            }
            self.head_read()?;
        }
        let step = self.body.read(&input[consumed..], &self.limits)?;
        self.complete = step.complete;
        Ok(Decoded { consumed: consumed + step.consumed, complete: step.complete })
    }

    fn head_read(&mut self) -> Result<(), HttpError> {
        let facts = self.head.facts();
        if facts.hosts > 1 || (facts.hosts == 0 && facts.minor_version == 1) || facts.has_no_host {
            return Err(HttpError::HostInvalid);
        }
        self.head_complete = true;
        let framing = match (facts.chunked, facts.content_length) {
            (true, _) => Framing::Chunked,
            (false, Some(length_bytes)) => Framing::Length(length_bytes),
            (false, None) => Framing::None,
        };
        self.body.begin(framing, &self.limits)
    }

    /// The peer closed the connection: `Empty` between requests, which is the good end of a connection, `Truncated`
    /// inside one.
    pub fn finish(&mut self) -> Result<(), HttpError> {
        match (self.failed, self.complete, self.has_begun()) {
            (Some(error), _, _) => Err(error),
            (None, true, _) => Ok(()),
            (None, false, true) => Err(HttpError::Truncated),
            (None, false, false) => Err(HttpError::Empty),
        }
    }

    /// Whether any byte of the current request has come.
    pub fn has_begun(&self) -> bool {
        self.head.has_begun()
    }

    /// Whether method, target and headers are there.
    pub fn head_complete(&self) -> bool {
        self.head_complete
    }

    /// The whole head as it came, from the request line to the blank line; the values of [`headers`](Self::headers)
    /// are parts of it.
    pub fn head(&self) -> &[u8] {
        self.head.bytes()
    }

    /// The method, as sent.
    pub fn method(&self) -> &[u8] {
        self.head.part(self.head.facts().first)
    }

    /// The target, as sent: path and query, mostly.
    pub fn target(&self) -> &[u8] {
        self.head.part(self.head.facts().second)
    }

    /// The value of the first header of that name, which is given in lower case.
    pub fn header(&self, lower_case_name: &str) -> Option<&[u8]> {
        self.head.header(lower_case_name)
    }

    /// Every header, its name as it was sent and its value.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.headers()
    }

    /// The body, without the chunks' framing.
    pub fn body(&self) -> &[u8] {
        self.body.bytes()
    }

    /// Whether the connection may carry another request after this one.
    pub fn keep_alive(&self) -> bool {
        self.failed.is_none() && self.head.facts().persistent()
    }
}
