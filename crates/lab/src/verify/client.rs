//! Questions to the system, one after the other, each as often as makes sense.

use std::time::Duration;

use hyper::header::{CONTENT_ENCODING, HeaderValue};
use tidemark_drive::Target;
use tidemark_wire::encoding::{EncodingError, Scratch, decode};

use super::search::{Bounds, Unfinished};
use crate::http::{self, Answer, NoAnswer};

/// Longest time without a byte of an answer, and its largest body.
const ANSWER: http::Bounds = http::Bounds { silence: Duration::from_secs(120), body_bytes: 256 << 20 };
/// How often a question is asked at most: a connection may break, a system may be busy.
const ATTEMPTS: u32 = 10;
/// Wait before the second attempt; doubled before each further one, up to the next constant.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Longest wait that a `Retry-After` is granted.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(10);

/// Asks a system.
pub struct Client<'a> {
    http: http::Client<'a>,
    headers: &'a [(String, String)],
    answer: Answer,
}

/// What came of one attempt.
enum Attempt {
    Answered,
    /// Nothing is there.
    Absent,
    /// It may be asked again, after this time if the system says so.
    Retry(String, Option<Duration>),
    Failed(String),
}

impl<'a> Client<'a> {
    /// Not connected yet.
    pub fn new(target: &'a Target, headers: &'a [(String, String)]) -> Client<'a> {
        Client { http: http::Client::new(target), headers, answer: Answer::default() }
    }

    /// Asks until there is an answer with a status of success, as often as makes sense.
    pub fn get(&mut self, path: &str, bounds: &Bounds) -> Result<(), Unfinished> {
        if self.find(path, bounds)? { Ok(()) } else { Err(failed(path, "status 404")) }
    }

    /// The same of something that need not be there: false where the status says that it is not.
    pub fn find(&mut self, path: &str, bounds: &Bounds) -> Result<bool, Unfinished> {
        let mut pause = PAUSE_FIRST;
        let mut attempt = 1;
        loop {
            let (reason, retry_after) = match self.attempt(path, bounds)? {
                Attempt::Answered => return Ok(true),
                Attempt::Absent => return Ok(false),
                Attempt::Retry(reason, retry_after) if attempt < ATTEMPTS => (reason, retry_after),
                Attempt::Retry(reason, _) => {
                    return Err(failed(path, &format!("{reason}, {ATTEMPTS} times over")));
                }
                Attempt::Failed(reason) => return Err(failed(path, &reason)),
            };
            let wait = retry_after.unwrap_or(pause).min(RETRY_AFTER_MAX);
            bounds.sleep(wait).map_err(|error| match error {
                Unfinished::OutOfTime(_) => failed(path, &format!("{reason}, until the time was over")),
                error => error,
            })?;
            pause = (pause * 2).min(PAUSE_MAX);
            attempt += 1;
        }
    }

    /// The body of the last answer.
    pub fn body(&self) -> &[u8] {
        &self.answer.body
    }

    /// A header of the last answer, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.answer.headers.get(name).map(HeaderValue::as_bytes)
    }

    fn attempt(&mut self, path: &str, bounds: &Bounds) -> Result<Attempt, Unfinished> {
        match self.http.get(path, self.headers, ANSWER, &|| bounds.check()) {
            Ok(answer) => {
                self.answer = answer;
                Ok(self.judge())
            }
            Err(NoAnswer::Stopped(reason)) => Err(reason),
            Err(NoAnswer::Broken(reason)) => Ok(Attempt::Retry(reason, None)),
            Err(NoAnswer::Request(reason)) => Ok(Attempt::Failed(reason)),
            Err(NoAnswer::Silent(time)) => {
                Ok(Attempt::Failed(format!("no byte of an answer within {time:?}")))
            }
            Err(NoAnswer::TooLarge(bytes)) => {
                Ok(Attempt::Failed(format!("the answer has more than {bytes} bytes; ask for smaller pages")))
            }
        }
    }

    /// Reads the body where it is encoded.
    fn read_encoded(&mut self) -> Result<(), EncodingError> {
        let Answer { headers, body, .. } = &self.answer;
        let encodings = headers.get_all(CONTENT_ENCODING).iter().map(HeaderValue::as_bytes);
        let mut decoded = Vec::new();
        if decode(encodings, body, ANSWER.body_bytes, &mut decoded, &mut Scratch::default())? {
            self.answer.body = decoded;
        }
        Ok(())
    }

    /// What the status says.
    fn judge(&mut self) -> Attempt {
        let status = self.answer.status.as_u16();
        match status {
            200..300 => match self.read_encoded() {
                Ok(()) => Attempt::Answered,
                Err(error) => Attempt::Failed(error.to_string()),
            },
            429 | 502 | 503 | 504 => {
                let seconds = self.header("retry-after").and_then(|text| std::str::from_utf8(text).ok());
                let retry_after = seconds.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
                Attempt::Retry(format!("status {status}"), retry_after)
            }
            404 => Attempt::Absent,
            _ => Attempt::Failed(format!("status {status}")),
        }
    }
}

pub(super) fn failed(path: &str, reason: &str) -> Unfinished {
    Unfinished::Failed(format!("GET {path}: {reason}"))
}
