//! Calls out of the text of HTTP/1.1 that sessions write, and answers into it.

use tidemark_wire::rpc::Answer;

use crate::http1::{CALL, DEADLINE_HEADER};

/// Most heads that are remembered. They hold nothing that varies, so a scenario has as many as it has calls.
const HEADS_MAX: usize = 1_024;
/// The header behind which the length of the body stands; the last one of a request.
const LENGTH: &[u8] = b"Content-Length: ";
const HEAD_END: &[u8] = b"\r\n\r\n";

/// A call as it goes onto a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Call<'a> {
    /// Its method, as [`Heads::name`] knows it.
    pub method: usize,
    /// The time that it has.
    pub deadline_ms: u32,
    /// Its arguments.
    pub payload: &'a [u8],
}

/// What stands in front of the length of a body, and what it means.
#[derive(Debug)]
struct Head {
    text: Vec<u8>,
    method: usize,
    deadline_ms: u32,
}

/// Reads requests, and knows the heads of those before: all calls of a step have the same one.
#[derive(Debug, Default)]
pub(super) struct Heads {
    known: Vec<Head>,
    /// The one of the call before.
    last: usize,
    names: Vec<String>,
}

impl Heads {
    /// A method's name.
    pub fn name(&self, method: usize) -> &str {
        &self.names[method]
    }

    /// A whole request as the driver renders it; in words why it is no call.
    pub fn read<'a>(&mut self, text: &'a [u8]) -> Result<Call<'a>, String> {
        let is_it = |head: &Head| text.starts_with(&head.text);
        if !self.known.get(self.last).is_some_and(is_it) {
            self.last = match self.known.iter().position(is_it) {
                Some(known) => known,
                None => self.learn(text)?,
            };
        }
        let head = &self.known[self.last];
        let rest = &text[head.text.len()..];
        let digits = rest.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(rest.len());
        let payload = rest[digits..].strip_prefix(HEAD_END).ok_or_else(|| wrong("its length"))?;
        Ok(Call { method: head.method, deadline_ms: head.deadline_ms, payload })
    }

    /// Remembers a head; where it stands.
    fn learn(&mut self, text: &[u8]) -> Result<usize, String> {
        let length = memchr::memmem::find(text, LENGTH).ok_or_else(|| wrong("it has no body"))?;
        let text = &text[..length + LENGTH.len()];
        let lines = std::str::from_utf8(text).map_err(|_| wrong("its head"))?;
        let mut words = lines.lines().next().unwrap_or_default().split(' ');
        if words.next() != Some(CALL) {
            return Err(wrong("it is none"));
        }
        // A base path stands in front of it.
        let name =
            words.next().and_then(|path| path.rsplit('/').next()).ok_or_else(|| wrong("its method"))?;
        let deadline = |line: &str| line.strip_prefix(DEADLINE_HEADER)?.strip_prefix(": ")?.parse().ok();
        let deadline_ms = lines.lines().find_map(deadline).ok_or_else(|| wrong("its time"))?;
        let method = self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_owned());
            self.names.len() - 1
        });
        if self.known.len() == HEADS_MAX {
            self.known.clear();
        }
        self.known.push(Head { text: text.to_owned(), method, deadline_ms });
        Ok(self.known.len() - 1)
    }
}

fn wrong(what: &str) -> String {
    format!("the request is no call that can be sent: {what}")
}

/// Replaces `text` by an answer as HTTP/1.1 writes it; the id of its call.
pub(super) fn write(answer: Answer<'_>, text: &mut Vec<u8>) -> u64 {
    text.clear();
    let (id, body) = match answer {
        Answer::Done { id, payload } => {
            text.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-length: ");
            (id, payload)
        }
        Answer::Failed { id, code, reason } => {
            text.extend_from_slice(b"HTTP/1.1 ");
            text.extend_from_slice(itoa::Buffer::new().format(code).as_bytes());
            text.extend_from_slice(b" Failed\r\ncontent-length: ");
            (id, reason.as_bytes())
        }
    };
    text.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    text.extend_from_slice(HEAD_END);
    text.extend_from_slice(body);
    id
}

#[cfg(test)]
mod tests {
    use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};

    use super::*;

    fn text(method: &str, deadline_ms: u32, body: &str) -> Vec<u8> {
        let length = body.len();
        format!(
            "CALL /base/{method} HTTP/1.1\r\nHost: h\r\n{DEADLINE_HEADER}: {deadline_ms}\r\nContent-Length: \
             {length}\r\n\r\n{body}"
        )
        .into_bytes()
    }

    #[test]
    fn a_request_becomes_the_call_that_it_stands_for() {
        let mut heads = Heads::default();
        for (method, deadline_ms, body) in [
            ("trade.trade", 5_000, "[1]"),
            ("trade.trade", 5_000, "[{\"a\":\"Content-Length: 3\\r\\n\"}]"),
            ("trade.price", 5_000, "[]"),
            ("trade.trade", 1, ""),
            ("trade.trade", 5_000, "[22222222222222222222]"),
        ] {
            let text = text(method, deadline_ms, body);
            let call = heads.read(&text).unwrap();
            assert_eq!((call.deadline_ms, call.payload), (deadline_ms, body.as_bytes()));
            let method_number = call.method;
            assert_eq!(heads.name(method_number), method);
        }
        assert_eq!((heads.known.len(), heads.names.len()), (3, 2), "each head is read once");
    }

    #[test]
    fn what_is_no_call_is_told() {
        let mut heads = Heads::default();
        for (text, what) in [
            (&b"GET / HTTP/1.1\r\n\r\n"[..], "no body"),
            (b"PUT /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "it is none"),
            (b"CALL /a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", "its time"),
            (b"CALL /a HTTP/1.1\r\nDeadline-Ms: 9\r\nContent-Length: 1\r\nA: b\r\n\r\nx", "its length"),
        ] {
            let error = heads.read(text).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn an_answer_is_one_of_http() {
        let mut text = b"what was there before".to_vec();
        let mut decoder = ResponseDecoder::new(DecoderLimits::default());
        for (answer, status, body) in [
            (Answer::Done { id: 3, payload: b"true" }, 200, &b"true"[..]),
            (Answer::Done { id: 3, payload: b"" }, 200, b""),
            (Answer::Failed { id: 3, code: 404, reason: "no such method" }, 404, b"no such method"),
            (Answer::Failed { id: 3, code: 599, reason: "" }, 599, b""),
        ] {
            assert_eq!(write(answer, &mut text), 3);
            decoder.start(false, true);
            let decoded = decoder.decode(&text).unwrap();
            assert!(decoded.complete && decoded.consumed == text.len());
            assert_eq!((decoder.status(), decoder.body()), (status, body));
            assert!(decoder.keep_alive());
        }
    }
}
