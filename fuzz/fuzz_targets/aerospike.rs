//! Replies of Aerospike about a record, what a scan tells and what a node tells of itself, whole and in pieces.
#![no_main]

mod common;

use common::in_pieces;
use libfuzzer_sys::fuzz_target;
use tidemark_wire::aerospike::{InfoDecoder, Kind, Records, ReplyDecoder, ReplyError, ReplyLimits, Wanted};
use tidemark_wire::json;

const LIMITS: ReplyLimits = ReplyLimits { body_bytes: 4096 };

type Understood = Result<(usize, bool, Kind, Vec<u8>), ReplyError>;

fn understand(wanted: Wanted, bytes: &[u8], keep: bool, piece_bytes: usize) -> Understood {
    let mut decoder = ReplyDecoder::new(LIMITS);
    decoder.start(wanted, keep);
    let (taken, complete) = in_pieces(bytes, piece_bytes, |piece| decoder.decode(piece))?;
    let body = decoder.body();
    let is_json = complete && keep && wanted == Wanted::Bins && decoder.kind() == Kind::Done;
    if is_json && std::str::from_utf8(body).is_ok() {
        assert!(json::check(body).is_ok(), "{}", String::from_utf8_lossy(body));
    }
    Ok((taken, complete, decoder.kind(), body.to_vec()))
}

/// What a scan tells, and whether that was all.
fn scanned(bytes: &[u8], piece_bytes: usize) -> (Vec<String>, Result<bool, ReplyError>) {
    let (mut records, mut told) = (Records::new(4096), Vec::new());
    for piece in bytes.chunks(piece_bytes) {
        match records.decode(piece, &mut |found| told.push(format!("{found:?}"))) {
            Ok(decoded) if decoded.complete => return (told, Ok(true)),
            Ok(_) => {}
            Err(error) => return (told, Err(error)),
        }
    }
    (told, Ok(false))
}

fn asked(bytes: &[u8], piece_bytes: usize) -> Result<Option<String>, ReplyError> {
    let mut decoder = InfoDecoder::default();
    for piece in bytes.chunks(piece_bytes) {
        if decoder.decode(piece)?.complete {
            return Ok(decoder.answer("namespaces").map(str::to_owned));
        }
    }
    Ok(None)
}

fuzz_target!(|data: &[u8]| {
    let [options, piece_bytes, bytes @ ..] = data else { return };
    let wanted = [Wanted::Nothing, Wanted::Bin, Wanted::Bins][usize::from(options >> 1 & 3) % 3];
    let (keep, piece_bytes, whole_bytes) = (options & 1 == 0, usize::from(*piece_bytes).max(1), bytes.len().max(1));
    match options >> 3 & 3 {
        0 | 1 => assert_eq!(
            understand(wanted, bytes, keep, whole_bytes),
            understand(wanted, bytes, keep, piece_bytes)
        ),
        2 => assert_eq!(scanned(bytes, whole_bytes), scanned(bytes, piece_bytes)),
        _ => assert_eq!(asked(bytes, whole_bytes), asked(bytes, piece_bytes)),
    }
});
