//! Types that a server tells of itself (`grpc.reflection.v1`, and `v1alpha` of older ones): services first, then the file of
//! each, then what these import.

use std::io::{self, ErrorKind, Read, Write};

use bytes::Bytes;
use http::header::{CONTENT_TYPE, TE};
use http::uri::{Authority, Scheme};
use http::{HeaderValue, Method as Verb};
use tidemark_record::GrpcCode;
use tidemark_scenario::protobuf::{Reflected, Types};
use tidemark_wire::encoding::{Scratch, decode};
use tidemark_wire::grpc::{Messages, status_text, write_message};

use crate::protocols::http2::blocking::Caller;
use crate::protocols::http2::request::{begin, path_and_query};
use crate::session::answer::Answer;

const SERVICES: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];
/// Most bytes of what is told at once.
const MESSAGE_BYTES: usize = 64 << 20;
/// Most services and files that are asked for.
const QUESTIONS_MAX: usize = 10_000;

// Fields of a question.
const FILE_BY_NAME: u8 = 3;
const FILE_WITH_SYMBOL: u8 = 4;
const LIST_SERVICES: u8 = 7;
// Fields of an answer.
const FILES: u64 = 4;
const LISTED: u64 = 6;
const FAILED: u64 = 7;

/// What a server tells, and most streams that it takes on a connection.
///
/// # Errors
/// In words why it tells nothing.
pub(super) fn types<S: Read + Write>(
    origin: (&str, bool),
    stream: &mut S,
) -> io::Result<(Types, usize)> {
    let mut server = Server { caller: Caller::begin(stream)?, origin, service: SERVICES[0] };
    let listed = match server.ask(LIST_SERVICES, "*")? {
        Err((GrpcCode::Unimplemented, _)) => {
            server.service = SERVICES[1];
            server.ask(LIST_SERVICES, "*")?
        }
        listed => listed,
    };
    let listed = listed.map_err(|(code, words)| {
        let reason = if code == GrpcCode::Unimplemented { String::new() } else { format!(" ({}: {words})", code.name()) };
        told(format!(
            "the server tells no message types by reflection{reason}; name its .proto files with `protos`, or a file of `descriptors`"
        ))
    })?;
    let mut names = Vec::new();
    each(&listed, LISTED, |listed| {
        each(listed, 1, |service| {
            each(service, 1, |name| {
                names.push(String::from_utf8_lossy(name).into_owned());
                Ok(())
            })
        })
    })?;
    if names.len() > QUESTIONS_MAX {
        return Err(told(format!("the server's reflection tells {} services", names.len())));
    }
    let mut reflected = Reflected::default();
    for name in names {
        if !reflected.has_service(&name) && !SERVICES.contains(&&*name) {
            server.files(FILE_WITH_SYMBOL, &name, &mut reflected)?;
        }
    }
    let mut asked = 0;
    while let Some(name) = reflected.missing() {
        asked += 1;
        if asked > QUESTIONS_MAX {
            return Err(told("the server's reflection tells of imports without end".into()));
        }
        server.files(FILE_BY_NAME, &name, &mut reflected)?;
        if reflected.missing().as_ref() == Some(&name) {
            return Err(told(format!("the server's reflection does not tell the file {name}, which others import")));
        }
    }
    Ok((reflected.types().map_err(told)?, server.caller.most_streams()))
}

fn told(words: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, words)
}

struct Server<'s, S: Read + Write> {
    caller: Caller<'s, S>,
    /// Its name, and whether TLS is spoken.
    origin: (&'s str, bool),
    /// By which it is asked.
    service: &'static str,
}

impl<S: Read + Write> Server<'_, S> {
    /// Takes the files that the server tells on a question.
    fn files(&mut self, field: u8, name: &str, reflected: &mut Reflected) -> io::Result<()> {
        let answer = self.ask(field, name)?.map_err(|(code, words)| {
            told(format!("the server's reflection does not tell {name}: {} {words}", code.name()))
        })?;
        each(&answer, FILES, |files| each(files, 1, |file| reflected.take(file).map_err(told)))
    }

    /// Asks one question; the answer, or the status in place of it.
    fn ask(&mut self, field: u8, text: &str) -> io::Result<Result<Vec<u8>, (GrpcCode, String)>> {
        let mut question = vec![field << 3 | 2];
        push_varint(text.len() as u64, &mut question);
        question.extend_from_slice(text.as_bytes());
        let mut body = Vec::new();
        write_message(&question, &mut body);
        let (authority, is_secured) = self.origin;
        let authority = Authority::try_from(authority).map_err(|error| told(error.to_string()))?;
        let scheme = if is_secured { Scheme::HTTPS } else { Scheme::HTTP };
        let path = path_and_query(format!("/{}/ServerReflectionInfo", self.service).as_bytes()).map_err(told)?;
        let mut request = begin(Verb::POST, &scheme, &authority, path).map_err(told)?;
        request.headers_mut().append(TE, HeaderValue::from_static("trailers"));
        request.headers_mut().append(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        let answer = self.caller.ask((request, Bytes::from(body)))?;
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
        let mut failed = None;
        each(&bytes, FAILED, |error| {
            each(error, 2, |words| {
                failed = Some(String::from_utf8_lossy(words).into_owned());
                Ok(())
            })
        })?;
        Ok(failed.map_or(Ok(bytes), |words| Err((GrpcCode::NotFound, words))))
    }
}

fn push_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Each value of a field that has a length, in a message.
fn each(message: &[u8], wanted: u64, mut tell: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let cut = || told("what the server's reflection tells is cut off".into());
    let mut rest = message;
    while !rest.is_empty() {
        let (key, behind) = varint(rest).ok_or_else(cut)?;
        let (length, behind) = match key & 7 {
            0 => (0, varint(behind).ok_or_else(cut)?.1),
            1 => (8, behind),
            2 => varint(behind).ok_or_else(cut)?,
            5 => (4, behind),
            _ => return Err(cut()),
        };
        let (value, behind) =
            usize::try_from(length).ok().and_then(|length| behind.split_at_checked(length)).ok_or_else(cut)?;
        if key == wanted << 3 | 2 {
            tell(value)?;
        }
        rest = behind;
    }
    Ok(())
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (index, byte) in bytes.iter().enumerate().take(10) {
        number |= u64::from(byte & 0x7f).checked_shl(7 * index as u32)?;
        if byte & 0x80 == 0 {
            return Some((number, &bytes[index + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_what_is_cut_off_is_told() {
        let mut message = vec![8, 0x96, 1, 0x22, 2, b'h', b'i', 0x0d, 1, 2, 3, 4];
        push_varint(4 << 3 | 2, &mut message);
        push_varint(300, &mut message);
        message.extend_from_slice(&[b'x'; 300]);
        let mut found = Vec::new();
        each(&message, 4, |value| {
            found.push(value.len());
            Ok(())
        })
        .unwrap();
        assert_eq!(found, [2, 300]);
        for length in 1..12 {
            let cut = each(&message[..length], 4, |_| Ok(()));
            assert_eq!(cut.is_err(), ![3, 7].contains(&length), "{length}");
        }
        assert!(each(&[0x22, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], 4, |_| Ok(())).is_err());
        assert!(each(&[0xff; 20], 4, |_| Ok(())).is_err());
    }
}
