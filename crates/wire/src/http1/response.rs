//! Answers, as the client gets them.

use super::body::{Body, Framing};
use super::head::{Head, HeadOf};
use super::{Decoded, DecoderLimits, HttpError, MAX_INTERIM_ANSWERS};

/// Decodes one answer after the other from a connection's bytes.
///
/// [`start`](Self::start) for each request that was sent, then [`decode`](Self::decode) with what comes until it is
/// complete. The accessors hold from then until the next `start`. After an error the connection is of no more use,
/// and `decode` repeats the error until `start`.
#[derive(Debug)]
pub struct ResponseDecoder {
    limits: DecoderLimits,
    head: Head,
    body: Body,
    head_request: bool,
    head_complete: bool,
    close_delimited: bool,
    interim_answers: u32,
    failed: Option<HttpError>,
}

impl ResponseDecoder {
    /// A decoder ready for the answer to a request other than HEAD, keeping its body.
    pub fn new(limits: DecoderLimits) -> Self {
        let mut decoder = ResponseDecoder {
            limits: limits.possible(),
            head: Head::default(),
            body: Body::default(),
            head_request: false,
            head_complete: false,
            close_delimited: false,
            interim_answers: 0,
            failed: None,
        };
        decoder.start(false, true);
        decoder
    }

    /// Begins the answer to a new request. `head_request`: the request was HEAD, so that no body follows whatever the
    /// headers say. `keep_body`: the body is kept; otherwise it is counted and dropped without being copied.
    pub fn start(&mut self, head_request: bool, keep_body: bool) {
        self.start_keeping(head_request, if keep_body { usize::MAX } else { 0 });
    }

    /// The same; of the body so many bytes are kept, from its beginning on.
    pub fn start_keeping(&mut self, head_request: bool, kept_bytes_max: usize) {
        self.body.reset(kept_bytes_max);
        self.begin(head_request);
    }

    /// Begins the answer to a new request (not HEAD) whose body is read as it comes: it has no bound, as whoever decodes
    /// takes what [`body`](Self::body) has and [drains](Self::drain_body) it, each time.
    pub fn start_streamed(&mut self) {
        self.body.reset_streamed();
        self.begin(false);
    }

    /// Forgets what has come of the body so far.
    pub fn drain_body(&mut self) {
        self.body.drain();
    }

    fn begin(&mut self, head_request: bool) {
        self.head.reset();
        self.head_request = head_request;
        self.head_complete = false;
        self.close_delimited = false;
        self.interim_answers = 0;
        self.failed = None;
    }

    /// Takes the bytes of the current answer from the front of `input`, as they came from the connection.
    ///
    /// Bytes of a next answer are left alone. Interim answers (100, 102, 103) are passed over and counted; 101 is
    /// final. When the answer is complete, further calls take nothing.
    pub fn decode(&mut self, input: &[u8]) -> Result<Decoded, HttpError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = self.advance(input);
        self.failed = result.err();
        debug_assert!(result.is_err() || result.is_ok_and(|decoded| decoded.consumed <= input.len()));
        result
    }

    fn advance(&mut self, input: &[u8]) -> Result<Decoded, HttpError> {
        let mut consumed = 0;
        while !self.head_complete {
            let step = self.head.read(HeadOf::Response, &input[consumed..], &self.limits)?;
            consumed += step.consumed;
            if !step.complete {
                return Ok(Decoded { consumed, complete: false });
            }
            self.head_read()?;
        }
        let step = self.body.read(&input[consumed..], &self.limits)?;
        Ok(Decoded { consumed: consumed + step.consumed, complete: step.complete })
    }

    /// Decides what follows the head.
    fn head_read(&mut self) -> Result<(), HttpError> {
        let facts = self.head.facts();
        let framing = match facts.status {
            101 => Framing::None,
            100..200 => {
                self.interim_answers += 1;
                if self.interim_answers > MAX_INTERIM_ANSWERS {
                    return Err(HttpError::TooManyInterim);
                }
                self.head.reset();
                return Ok(());
            }
            204 | 304 => Framing::None,
            _ if self.head_request => Framing::None,
            _ if facts.chunked => Framing::Chunked,
            _ => facts.content_length.map_or(Framing::UntilClose, Framing::Length),
        };
        self.head_complete = true;
        self.close_delimited = framing == Framing::UntilClose;
        self.body.begin(framing, &self.limits)
    }

    /// The peer closed the connection. Well if the answer is whole, be it because the close is what ends it.
    pub fn finish(&mut self) -> Result<(), HttpError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        let result = match (self.head_complete, self.has_begun()) {
            (true, _) => self.body.finish(),
            (false, true) => Err(HttpError::Truncated),
            (false, false) => Err(HttpError::Empty),
        };
        self.failed = result.err();
        result
    }

    /// Whether any byte of the current answer has come, interim answers included.
    pub fn has_begun(&self) -> bool {
        self.interim_answers > 0 || self.head.has_begun()
    }

    /// Whether status and headers are there.
    pub fn head_complete(&self) -> bool {
        self.head_complete
    }

    /// The status; 0 before the head is complete.
    pub fn status(&self) -> u16 {
        self.head.facts().status
    }

    /// The words behind the status, often empty.
    pub fn reason(&self) -> &[u8] {
        self.head.part(self.head.facts().first)
    }

    /// The value of the first header of that name, which is given in lower case.
    pub fn header(&self, lower_case_name: &str) -> Option<&[u8]> {
        self.head.header(lower_case_name)
    }

    /// Every header, its name as it was sent and its value.
    pub fn headers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.head.headers()
    }

    /// The body if it is kept, without the chunks' framing.
    pub fn body(&self) -> &[u8] {
        self.body.bytes()
    }

    /// How long the body is, without framing, also when it is not kept.
    pub fn body_bytes(&self) -> u64 {
        self.body.length_bytes()
    }

    /// How many interim answers came before this one.
    pub fn interim_answers(&self) -> u32 {
        self.interim_answers
    }

    /// Whether the connection may carry another request after this answer.
    pub fn keep_alive(&self) -> bool {
        let facts = self.head.facts();
        self.failed.is_none() && !self.close_delimited && facts.status != 101 && facts.persistent()
    }
}
