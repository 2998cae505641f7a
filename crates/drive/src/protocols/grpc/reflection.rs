//! Types that a server tells of itself (`grpc.reflection.v1`, and `v1alpha` of older ones): services first, then the file of
//! each, then what these import.

use std::io::{self, Read, Write};
use std::time::Duration;

use tidemark_record::GrpcCode;
use tidemark_scenario::protobuf::{Reflected, Types};

use super::questions::{Answered, call, each, text_field, told};
use crate::protocols::http2::blocking::Caller;

/// Longest time in which a server tells all types.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
const SERVICES: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];
/// Most services and files that are asked for.
const QUESTIONS_MAX: usize = 10_000;

// Fields of a question.
const FILE_BY_NAME: u64 = 3;
const FILE_WITH_SYMBOL: u64 = 4;
const LIST_SERVICES: u64 = 7;
// Fields of an answer.
const FILES: u64 = 4;
const LISTED: u64 = 6;
const FAILED: u64 = 7;

/// What a server tells, and most streams that it takes on a connection.
///
/// # Errors
/// In words why it tells nothing.
pub(super) fn types<S: Read + Write>(origin: (&str, bool), stream: &mut S) -> io::Result<(Types, usize)> {
    let mut server = Server { caller: Caller::begin(stream, TOLD_WITHIN), origin, service: SERVICES[0] };
    let listed = match server.ask(LIST_SERVICES, "*")? {
        Err((GrpcCode::Unimplemented, _)) => {
            server.service = SERVICES[1];
            server.ask(LIST_SERVICES, "*")?
        }
        listed => listed,
    };
    let listed = listed.map_err(|(code, words)| {
        let reason = match code {
            GrpcCode::Unimplemented => "the server has no reflection service".to_owned(),
            _ => format!("the server's reflection tells nothing ({}: {words})", code.name()),
        };
        told(format!("{reason}; name its .proto files with `protos`, or a file of `descriptors`"))
    })?;
    let mut names = Vec::new();
    for listed in each(&listed, LISTED)? {
        for service in each(listed, 1)? {
            names.extend(each(service, 1)?.map(|name| String::from_utf8_lossy(name).into_owned()));
        }
    }
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
            return Err(told("the server's reflection tells of imports without end"));
        }
        server.files(FILE_BY_NAME, &name, &mut reflected)?;
        if reflected.missing().as_ref() == Some(&name) {
            return Err(told(format!(
                "the server's reflection does not tell the file {name}, which others import"
            )));
        }
    }
    Ok((reflected.types().map_err(told)?, server.caller.most_streams()))
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
    fn files(&mut self, field: u64, name: &str, reflected: &mut Reflected) -> io::Result<()> {
        let answer = self.ask(field, name)?.map_err(|(code, words)| {
            told(format!("the server's reflection does not tell {name}: {} {words}", code.name()))
        })?;
        for files in each(&answer, FILES)? {
            each(files, 1)?.try_for_each(|file| reflected.take(file).map_err(told))?;
        }
        Ok(())
    }

    /// Asks one question; the answer, or the status in place of it.
    fn ask(&mut self, field: u64, text: &str) -> io::Result<Answered> {
        let path = format!("/{}/ServerReflectionInfo", self.service);
        let bytes = match call(&mut self.caller, self.origin, &path, &text_field(field, text))? {
            Ok(bytes) => bytes,
            failed => return Ok(failed),
        };
        if let Some(error) = each(&bytes, FAILED)?.next() {
            let words = each(error, 2)?.next().unwrap_or_default();
            return Ok(Err((GrpcCode::NotFound, String::from_utf8_lossy(words).into_owned())));
        }
        Ok(Ok(bytes))
    }
}
