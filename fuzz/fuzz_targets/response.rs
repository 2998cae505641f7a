//! Answers, whole and in pieces.
#![no_main]

mod common;

use common::in_pieces;
use libfuzzer_sys::fuzz_target;
use tidemark_wire::http1::{DecoderLimits, HttpError, ResponseDecoder};

const LIMITS: DecoderLimits = DecoderLimits { head_bytes: 1024, headers: 16, body_bytes: 4096 };

/// All that is understood of an answer.
#[derive(Debug, PartialEq)]
struct Understood {
    taken: usize,
    complete: bool,
    finished: Result<(), HttpError>,
    status: u16,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    body: Vec<u8>,
    body_bytes: u64,
    keep_alive: bool,
}

fn understand(bytes: &[u8], options: u8, piece_bytes: usize) -> Result<Understood, HttpError> {
    let mut decoder = ResponseDecoder::new(LIMITS);
    decoder.start(options & 1 != 0, options & 2 == 0);
    let (taken, complete) = in_pieces(bytes, piece_bytes, |piece| {
        let result = decoder.decode(piece);
        // Whatever came, everything may be looked at.
        std::hint::black_box((
            decoder.status(),
            decoder.reason(),
            decoder.header("x"),
            decoder.headers().count(),
        ));
        result
    })?;
    assert!(decoder.body().len() as u64 <= decoder.body_bytes());
    assert!(decoder.body_bytes() <= taken as u64);
    let finished = decoder.finish();
    assert!(!complete || finished.is_ok());
    Ok(Understood {
        taken,
        complete,
        finished,
        status: decoder.status(),
        headers: decoder.headers().map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
        body: decoder.body().to_vec(),
        body_bytes: decoder.body_bytes(),
        keep_alive: decoder.keep_alive(),
    })
}

fuzz_target!(|data: &[u8]| {
    let [options, piece_bytes, bytes @ ..] = data else { return };
    let whole = understand(bytes, *options, bytes.len().max(1));
    let pieces = understand(bytes, *options, usize::from(*piece_bytes).max(1));
    match (&whole, &pieces) {
        // Wrong in two ways, or wrong in a head whose end has not come.
        (Err(_), Err(_)) => {}
        (Err(_), Ok(pieces)) => assert!(!pieces.complete),
        _ => assert_eq!(whole, pieces),
    }
});
