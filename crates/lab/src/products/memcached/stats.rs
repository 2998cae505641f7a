//! memcached's statistics, which the lab asks for.

use std::collections::HashMap;
use std::io::{self, Read, Write};

use tidemark_wire::memcached::{Form, Kind, ReplyDecoder, ReplyLimits};

use crate::exchange::{exchange, no_answer, refused};

/// Most bytes of an answer: a line for each statistic, about a hundred.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// What a server answers to `stats`, by name.
///
/// # Errors
/// The connection broke, or the answer is none.
pub fn stats(stream: &mut (impl Read + Write + ?Sized)) -> io::Result<HashMap<String, String>> {
    let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: ANSWER_BYTES_MAX });
    decoder.start(Form::Stats, b"", true);
    exchange(stream, b"stats\r\n", |bytes| decoder.decode(bytes))?;
    let body = String::from_utf8_lossy(decoder.body());
    match decoder.kind() {
        Kind::Error => Err(refused("stats", &body)),
        _ => serde_json::from_str(&body).map_err(no_answer),
    }
}
