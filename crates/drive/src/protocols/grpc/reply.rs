//! An answer: messages, of which those that somebody looks at become JSON, and the status behind them.

use std::time::Instant;

use tidemark_record::GrpcCode;
use tidemark_scenario::protobuf::Method;
use tidemark_wire::encoding::{Scratch, decode, forget};
use tidemark_wire::grpc::metadata::{is_binary, write_padded};
use tidemark_wire::grpc::{GrpcError, Messages, code_of_http, code_of_reset, status_text};
use tidemark_wire::http2::hpack::Fields;

use super::request::CallHead;
use crate::clock::nanoseconds;
use crate::session::answer::Answer;
use crate::session::failure::{Failure, Violation};

/// Room for JSON that is kept for the next answer.
const RETAINED_BYTES: usize = 1 << 20;
/// Most bytes of a status's words that are kept.
const WORDS_BYTES: usize = 4 << 10;

const CONTENT_TYPE: &str = "content-type";
const STATUS: &str = "grpc-status";
const MESSAGE: &str = "grpc-message";
const ENCODING: &str = "grpc-encoding";

/// A stream's answer, and its buffers, which are used again.
pub(super) struct Reply {
    /// Whose messages become JSON, where somebody looks at them.
    method: Option<Method>,
    /// Whether any number of messages is right.
    answers_many: bool,
    messages: Messages,
    /// Whether the head of an answer of gRPC has come, and how it says that messages are compressed.
    has_head: bool,
    encoding: Vec<u8>,
    /// Whether all messages together are the answer, as a list.
    is_list: bool,
    /// How many messages have come.
    count: u64,
    json: Vec<u8>,
    /// Most bytes of a message, and of all JSON.
    limit_bytes: usize,
    message: Vec<u8>,
    room: Scratch,
    received_bytes: u64,
    decoding_ns: u64,
    /// Whether a message is the answer, and no status.
    is_message: bool,
    code: GrpcCode,
    /// Whether the status is known.
    has_status: bool,
    /// When the server's time for the call is over, where it was told one.
    deadline: Option<Instant>,
    words: Vec<u8>,
    front: Fields,
    behind: Fields,
}

fn violation(words: impl Into<Box<str>>) -> Failure {
    Failure::Protocol(Violation(words.into()))
}

fn wrong(error: &GrpcError) -> Failure {
    Failure::Protocol(Violation::of(error, matches!(error, GrpcError::TooLarge { .. })))
}

impl Reply {
    /// For messages of so many bytes at most.
    pub fn new(limit_bytes: usize) -> Self {
        Reply {
            method: None,
            answers_many: false,
            messages: Messages::new(limit_bytes),
            has_head: false,
            encoding: Vec::new(),
            is_list: false,
            count: 0,
            json: Vec::new(),
            limit_bytes,
            message: Vec::new(),
            room: Scratch::default(),
            received_bytes: 0,
            decoding_ns: 0,
            is_message: false,
            code: GrpcCode::Unknown,
            has_status: false,
            deadline: None,
            words: Vec::new(),
            front: Fields::default(),
            behind: Fields::default(),
        }
    }

    /// Another call begins; about when, where the time was taken a moment ago.
    pub fn begin(&mut self, head: &CallHead, needs_body: bool, is_call: bool, at: Option<Instant>) {
        self.answers_many = head.answers_many;
        self.is_list = is_call && head.answers_many;
        self.method = needs_body.then(|| head.method.clone());
        self.messages.clear();
        self.has_head = false;
        (self.code, self.has_status) = (GrpcCode::Unknown, false);
        let begun = || at.unwrap_or_else(Instant::now);
        self.deadline = head.deadline.and_then(|deadline| begun().checked_add(deadline));
        self.words.clear();
        self.front.clear();
        self.behind.clear();
        self.begin_step();
    }

    /// Another step of the same stream begins.
    pub fn begin_step(&mut self) {
        (self.count, self.received_bytes, self.decoding_ns, self.is_message) = (0, 0, 0, false);
        self.json.clear();
        self.json.shrink_to(RETAINED_BYTES);
        forget(&mut self.message, &mut self.room);
    }

    /// Bytes of the answer came; its messages are taken at once if they all are the answer.
    pub fn push(&mut self, answer: &dyn Answer, takes_all: bool) -> Result<(), Failure> {
        let piece = answer.body();
        if piece.is_empty() {
            return Ok(());
        }
        if !self.has_head {
            if answer.status() != 200 || !is_grpc(answer.header(CONTENT_TYPE)) {
                // a page of somebody between; what counts is its status
                return Ok(());
            }
            self.has_head = true;
            self.encoding.clear();
            self.encoding.extend_from_slice(answer.header(ENCODING).unwrap_or_default());
        }
        self.received_bytes += piece.len() as u64;
        self.messages.push(piece);
        while takes_all && self.take()? {}
        Ok(())
    }

    /// Takes the next message, if one has come; whether there was one.
    fn take(&mut self) -> Result<bool, Failure> {
        let begun = self.method.is_some().then(Instant::now);
        let Some(message) = self.messages.next().map_err(|error| wrong(&error))? else { return Ok(false) };
        self.count += 1;
        let (Some(begun), Some(method)) = (begun, &self.method) else { return Ok(true) };
        let bytes = match (message.is_compressed, &self.encoding[..]) {
            (false, _) => message.bytes,
            (true, b"" | b"identity") => {
                return Err(violation(
                    "a message of the answer is compressed, but the answer does not say how",
                ));
            }
            (true, encoding) => {
                let read =
                    decode([encoding], message.bytes, self.limit_bytes, &mut self.message, &mut self.room);
                match read {
                    Ok(true) => &self.message,
                    Ok(false) => message.bytes,
                    Err(error) => {
                        let error = error.to_string().replace("the body", "a message of the answer");
                        return Err(violation(error));
                    }
                }
            }
        };
        if self.is_list {
            self.json.push(if self.count == 1 { b'[' } else { b',' });
        }
        method.decode(bytes, &mut self.json).map_err(violation)?;
        if self.json.len() > self.limit_bytes {
            let limit_bytes = self.limit_bytes;
            let words = format!("the answer has more than {limit_bytes} bytes as JSON");
            return Err(Failure::Protocol(Violation::of(&words, true)));
        }
        self.decoding_ns += nanoseconds(begun.elapsed());
        Ok(true)
    }

    /// Makes the next message the answer of a step; false if none is there.
    pub fn next_message(&mut self) -> Result<bool, Failure> {
        self.json.clear();
        self.is_message = true;
        self.take()
    }

    /// Takes all messages that have come, without a look.
    pub fn pass_over(&mut self) -> Result<(), Failure> {
        self.is_message = false;
        while self.messages.next().map_err(|error| wrong(&error))?.is_some() {
            self.count += 1;
        }
        Ok(())
    }

    /// The headers in front of the body and behind it, which are put here before the [end](Reply::end).
    pub fn headers(&mut self) -> (&mut Fields, &mut Fields) {
        (&mut self.front, &mut self.behind)
    }

    /// The answer is whole, with this status of HTTP.
    pub fn end(&mut self, http_status: u16) -> Result<(), Failure> {
        if self.behind.get(STATUS).is_none() && self.front.get(STATUS).is_some() {
            // an answer of trailers alone: what stands in front is what stands behind of others
            std::mem::swap(&mut self.front, &mut self.behind);
        }
        pad(&mut self.front);
        pad(&mut self.behind);
        self.has_status = true;
        self.words.clear();
        match self.behind.get(STATUS) {
            Some(number) => {
                let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
                self.code = number.map_or(GrpcCode::Unknown, GrpcCode::from_number);
                let words = self.behind.get(MESSAGE).unwrap_or_default();
                status_text(&words[..words.len().min(WORDS_BYTES)], &mut self.words);
            }
            None => {
                let kind = self.front.get(CONTENT_TYPE);
                let words = match (http_status, is_grpc(kind)) {
                    (200, true) => "the server ended the answer without a status".to_owned(),
                    (200, false) => {
                        let kind = String::from_utf8_lossy(kind.unwrap_or(b"none")).into_owned();
                        format!("the answer is not of gRPC: its content-type is {kind}")
                    }
                    _ => format!("the answer is not of gRPC, but of HTTP with status {http_status}"),
                };
                self.code = match (http_status, is_grpc(kind)) {
                    (200, true) => GrpcCode::Internal,
                    _ => GrpcCode::from_number(code_of_http(http_status)),
                };
                self.words.extend_from_slice(words.as_bytes());
            }
        }
        if self.method.is_some() && self.is_list {
            self.json.extend_from_slice(if self.count == 0 { b"[]" } else { b"]" });
        }
        Ok(())
    }

    /// The server reset the stream, for this reason. Servers do that, too, when the call's time is over.
    pub fn reset(&mut self, reason: u32, words: &str) {
        self.code = match GrpcCode::from_number(code_of_reset(reason)) {
            GrpcCode::Cancelled if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) => {
                GrpcCode::DeadlineExceeded
            }
            code => code,
        };
        self.has_status = true;
        self.words.clear();
        self.words.extend_from_slice(words.as_bytes());
    }

    /// Whether as many messages came as the method says.
    pub fn check_count(&self) -> Result<(), Failure> {
        match (self.code, self.count) {
            (GrpcCode::Ok, count) if count != 1 && !self.answers_many => Err(violation(format!(
                "the status is OK, and the answer has {count} messages in place of one"
            ))),
            (GrpcCode::Ok, _) if !self.messages.is_empty() => {
                Err(violation("the answer ends within a message"))
            }
            _ => Ok(()),
        }
    }

    /// Bytes of messages that came and were not taken.
    pub fn waiting_bytes(&self) -> usize {
        self.messages.waiting_bytes()
    }

    /// Whether the status has come.
    pub fn has_status(&self) -> bool {
        self.has_status
    }

    /// Whether the status is `OK`.
    pub fn is_ok(&self) -> bool {
        self.has_status && self.code == GrpcCode::Ok
    }

    /// The status.
    pub fn code(&self) -> GrpcCode {
        self.code
    }

    /// What the server says of the status.
    pub fn own_words(&self) -> String {
        String::from_utf8_lossy(&self.words).into_owned()
    }

    /// The message that was taken last.
    pub fn json(&self) -> &str {
        std::str::from_utf8(&self.json).unwrap_or_default()
    }

    /// The status in words.
    pub fn words(&self) -> String {
        format!("status {}: {}", self.code.name(), String::from_utf8_lossy(&self.words))
    }
}

/// Brings metadata in base64 into one form, lest a comparison depends on who sent it: with padding.
fn pad(fields: &mut Fields) {
    let lacks = |value: &[u8]| !value.len().is_multiple_of(4) || value.contains(&b',');
    if fields.iter().any(|(name, value)| is_binary(name) && lacks(value)) {
        fields.rewrite(|name, value, out| match is_binary(name) {
            true => write_padded(value, out),
            false => out.extend_from_slice(value),
        });
    }
}

/// Whether a content type is one of gRPC.
fn is_grpc(kind: Option<&[u8]>) -> bool {
    let kind = kind.unwrap_or_default();
    kind.strip_prefix(b"application/grpc")
        .is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

impl Answer for Reply {
    fn status(&self) -> u16 {
        if self.is_message || !self.has_status { 0 } else { self.code.status() }
    }

    fn status_words(&self) -> String {
        match (self.is_message, self.has_status) {
            (true, _) => "a message".to_owned(),
            (false, false) => "done".to_owned(),
            (false, true) => format!("status {}", self.code.name()),
        }
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.behind.get(name).or_else(|| self.front.get(name))
    }

    fn each_header(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        self.front.iter().chain(self.behind.iter()).for_each(|(name, value)| tell(name, value));
    }

    fn trailer(&self, name: &str) -> Option<&[u8]> {
        self.behind.get(name)
    }

    fn each_trailer(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        self.behind.iter().for_each(|(name, value)| tell(name, value));
    }

    fn body(&self) -> &[u8] {
        &self.json
    }

    fn received_bytes(&self) -> u64 {
        self.received_bytes
    }

    fn body_bytes(&self) -> Option<u64> {
        Some(self.received_bytes)
    }

    fn decoding_ns(&self) -> u64 {
        self.decoding_ns
    }

    fn complaint(&self) -> Option<&[u8]> {
        (self.has_status && self.code != GrpcCode::Ok).then_some(&self.words)
    }
}
