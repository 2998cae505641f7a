//! What becomes of a request, as the user who made it takes it.

use std::sync::Arc;
use std::time::Instant;

use tidemark_drive::{AnswerCheck, AnswerView};
use tidemark_record::{GrpcCode, Outcome, RequestParts};

use crate::vu::{Answer, Parts, Request};

/// A request that is under way: what is looked at once its answer is there.
pub(crate) struct Sent {
    at: Instant,
    expected: Option<Arc<[(u16, u16)]>>,
    discards_body: bool,
}

impl Sent {
    /// One that leaves now.
    pub fn now(request: &Request) -> Sent {
        let (expected, discards_body) = (request.expected.clone(), request.discards_body);
        Sent { at: Instant::now(), expected, discards_body }
    }

    /// The answer, as the user takes it.
    pub fn answer(&self, view: &AnswerView<'_>) -> Answer {
        let mut head = String::new();
        let mut sets_cookies = false;
        view.each_header(&mut |name, value| {
            sets_cookies |= name.eq_ignore_ascii_case(b"set-cookie");
            add_line(&mut head, name, value);
        });
        if GrpcCode::of_status(view.status()).is_some() {
            // trailers are the last of all headers: an empty line goes before them
            let mut trailers = String::new();
            view.each_trailer(&mut |name, value| add_line(&mut trailers, name, value));
            head.insert(head.len() - trailers.len(), '\n');
        }
        Answer {
            status: view.status(),
            head,
            sets_cookies,
            body: if self.discards_body { Vec::new() } else { view.body().to_vec() },
            duration_ms: view.service().unwrap_or_else(|| self.at.elapsed()).as_secs_f64() * 1_000.0,
            parts: parts(view.parts().unwrap_or_default()),
            tls: view.tls(),
            ..Answer::default()
        }
    }

    /// What the user takes in place of an answer.
    pub fn failure(&self, outcome: Outcome) -> Answer {
        let (error_code, error) = match outcome {
            Outcome::Timeout | Outcome::Unfinished => (1050, "request timeout"),
            Outcome::Connect => (1212, "dial: connection refused"),
            Outcome::Reset => (1220, "read: connection reset by peer"),
            Outcome::Protocol => (1000, "invalid HTTP response, or larger than what is read"),
            _ => (1000, "the request could not be sent"),
        };
        let duration_ms = self.at.elapsed().as_secs_f64() * 1_000.0;
        let parts = Parts { waiting: duration_ms, ..Parts::default() };
        Answer { duration_ms, parts, error_code, error: error.to_owned(), ..Answer::default() }
    }

    /// Whether a status is good.
    pub fn check(&self, status: u16) -> AnswerCheck {
        match &self.expected {
            None => AnswerCheck::ByStatus,
            Some(ranges) if ranges.iter().any(|(least, most)| (*least..=*most).contains(&status)) => {
                AnswerCheck::Good
            }
            Some(_) => AnswerCheck::Wrong(format!("status {status} is not expected")),
        }
    }
}

fn add_line(lines: &mut String, name: &[u8], value: &[u8]) {
    lines.push_str(&String::from_utf8_lossy(name));
    lines.push_str(": ");
    lines.push_str(&String::from_utf8_lossy(value));
    lines.push('\n');
}

/// Parts of a request's time as k6 has them: blocked is all that comes before it is sent, and sending is in waiting.
fn parts(of: RequestParts) -> Parts {
    let ms = |us: u64| us as f64 / 1_000.0;
    let (connect_us, handshake_us) = (of.connect_us.unwrap_or(0), of.handshake_us.unwrap_or(0));
    Parts {
        blocked: ms(of.wait_us + connect_us + handshake_us),
        connecting: ms(connect_us),
        handshaking: ms(handshake_us),
        waiting: ms(of.first_byte_us),
        receiving: ms(of.transfer_us),
    }
}
