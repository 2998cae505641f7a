//! What a server is asked before anything is measured: one message out, one message back, written and read by hand, as
//! their types are part of the protocol.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use tidemark_record::GrpcCode;
use tidemark_wire::encoding::{Scratch, decode};
use tidemark_wire::grpc::{Messages, status_text, write_message};
use tidemark_wire::protobuf::{Message, each_of};

use crate::protocols::http2::blocking::Caller;
use crate::protocols::http2::request::{self, Opening, coded_name};
use crate::session::answer::Answer;

/// Most bytes of an answer.
const MESSAGE_BYTES: usize = 64 << 20;
/// Longest time for a health check.
const HEALTH_WITHIN: Duration = Duration::from_secs(2);
/// The path of the health check.
const HEALTH: &str = "/grpc.health.v1.Health/Check";

/// Why a service cannot be called yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    /// In words.
    pub words: String,
    /// Whether the server has no health check, so that another question has no other answer.
    pub is_final: bool,
}

/// The bytes of an answer, or the status in place of it.
pub(super) type Answered = Result<Vec<u8>, (GrpcCode, String)>;

/// Asks a server of gRPC, over a connection that blocks, whether a service serves, and why not.
///
/// # Errors
/// If it does not answer as a server of gRPC.
pub fn check_health(
    stream: &mut (impl Read + Write),
    authority: &str,
    service: &str,
) -> io::Result<Result<(), Unserved>> {
    const STATUSES: [&str; 4] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
    let mut caller = Caller::begin(stream, HEALTH_WITHIN);
    let answered = call(&mut caller, (authority, false), HEALTH, &text_field(1, service))?;
    let (words, is_final) = match answered {
        // the only field of the answer
        Ok(bytes) if bytes == [1 << 3, 1] => return Ok(Ok(())),
        Ok(bytes) => {
            let status = bytes.get(1).and_then(|status| STATUSES.get(usize::from(*status)));
            (format!("its health check says {}", status.unwrap_or(&STATUSES[0])), false)
        }
        Err((GrpcCode::Unimplemented, _)) => {
            ("it has no health check (grpc.health.v1.Health/Check is UNIMPLEMENTED)".into(), true)
        }
        Err((code, words)) if words.is_empty() => (format!("its health check says {}", code.name()), false),
        Err((code, words)) => (format!("its health check says {}: {words}", code.name()), false),
    };
    Ok(Err(Unserved { words, is_final }))
}

pub(super) fn told(words: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, words.into())
}

/// A message of one text.
pub(super) fn text_field(field: u64, text: &str) -> Vec<u8> {
    let mut message = Message::default();
    message.bytes(field, text.as_bytes());
    message.into_bytes()
}

/// Calls a method that answers with one message at least, of which the first counts.
pub(super) fn call<S: Read + Write>(
    caller: &mut Caller<'_, S>,
    (authority, is_secured): (&str, bool),
    path: &str,
    message: &[u8],
) -> io::Result<Answered> {
    let opening = Opening::new("POST", is_secured, authority).map_err(told)?;
    let mut request = request::Message::default();
    request.begin(&opening, path.as_bytes()).map_err(told)?;
    for (name, value) in [("te", "trailers"), ("content-type", "application/grpc")] {
        coded_name(name).and_then(|name| request.header(&name, value.as_bytes())).map_err(told)?;
    }
    write_message(message, request.own_body());
    let answer = caller.ask(&request)?;
    let header = |name: &str| answer.trailer(name).or_else(|| answer.header(name));
    let Some(number) = header("grpc-status") else {
        let status = answer.status();
        return Err(told(format!("the server does not speak gRPC: it answers with status {status} of HTTP")));
    };
    let number = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
    let code = number.map_or(GrpcCode::Unknown, GrpcCode::from_number);
    if code != GrpcCode::Ok {
        let mut words = Vec::new();
        status_text(header("grpc-message").unwrap_or_default(), &mut words);
        return Ok(Err((code, String::from_utf8_lossy(&words).into_owned())));
    }
    let mut messages = Messages::new(MESSAGE_BYTES);
    messages.push(answer.body());
    let mut bytes = Vec::new();
    if let Some(message) = messages.next().map_err(|error| told(error.to_string()))? {
        let encoding = answer.header("grpc-encoding").filter(|_| message.is_compressed);
        let read = decode(encoding, message.bytes, MESSAGE_BYTES, &mut bytes, &mut Scratch::default());
        if !read.map_err(|error| told(error.to_string()))? {
            bytes = message.bytes.to_vec();
        }
    }
    Ok(Ok(bytes))
}

/// The values of a field of texts or messages.
pub(super) fn each(message: &[u8], wanted: u64) -> io::Result<impl Iterator<Item = &[u8]>> {
    each_of(message, wanted).map_err(|_| told("what the server answers is cut off"))
}
