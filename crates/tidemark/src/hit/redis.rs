//! A command of Redis as what is hit: `hit redis://127.0.0.1:6379 -b 'GET greeting'`.

use tidemark_scenario::source::{Map, Step, Value, verbatim};
use tidemark_scenario::units::Time;

use super::args::HitArguments;
use crate::failure::Failure;
use tidemark_import::read_small;

/// What such URLs begin with.
const SCHEMES: [&str; 4] = ["redis://", "rediss://", "redis-cluster://", "rediss-cluster://"];
/// What is sent where nothing is said.
const PING: &str = "PING";

/// Whether a URL is of a server that speaks Redis' protocol.
pub fn is_redis(url: &str) -> bool {
    SCHEMES.iter().any(|scheme| url.starts_with(scheme))
}

/// The command, which is the body.
pub fn step(arguments: &HitArguments) -> Result<Step, Failure> {
    let of_http = [
        ("-m", arguments.method.is_some()),
        ("-H", !arguments.headers.is_empty()),
        ("--content-type", arguments.content_type.is_some()),
        ("--expect", !arguments.expect.is_empty()),
        ("--urls", arguments.urls.is_some()),
        ("--random-path", arguments.random_path.is_some()),
        ("--disable-keepalive", arguments.disable_keepalive),
        ("--http", arguments.reach.http.is_some()),
        ("--streams", arguments.reach.streams.is_some()),
    ];
    if let Some((flag, _)) = of_http.iter().find(|(_, is_given)| *is_given) {
        return Err(Failure::usage(format!(
            "{flag} is for HTTP; of Redis the command is the body: -b 'GET greeting'"
        )));
    }
    let command = match (&arguments.body, &arguments.body_file) {
        (_, Some(file)) => text(read_small(file, "the command")?)?,
        (Some(body), None) => match body.strip_prefix('@') {
            Some(file) => text(read_small(file.as_ref(), "the command")?)?,
            None => body.clone(),
        },
        (None, None) => PING.to_owned(),
    };
    let words = shlex::split(&command).filter(|words| !words.is_empty()).ok_or_else(|| {
        Failure::usage(format!("-b {command}: it is no command of Redis; write it as in redis-cli: -b 'SET greeting \"good day\"'"))
    })?;
    let words: Vec<Value> = words.iter().map(|word| verbatim(word).into()).collect();
    let mut step = Map::from([("redis", Value::from(words))]);
    if let Some(timeout) = arguments.timeout {
        step.insert("timeout", tidemark_scenario::source::Scalar::from(Time(timeout)));
    }
    Ok(Step::Other(step))
}

fn text(bytes: Vec<u8>) -> Result<String, Failure> {
    String::from_utf8(bytes)
        .map_err(|_| Failure::usage("the command is no UTF-8 text, which is all that a scenario can hold"))
}
