//! Replies of Redis, whole and in pieces.
#![no_main]

mod common;

use common::in_pieces;
use libfuzzer_sys::fuzz_target;
use tidemark_wire::json;
use tidemark_wire::resp::{BEGINNING_BYTES, Keep, Kind, ReplyDecoder, ReplyLimits, RespError};

const LIMITS: ReplyLimits = ReplyLimits { body_bytes: 4096 };

fn understand(
    bytes: &[u8],
    keep: Keep,
    piece_bytes: usize,
) -> Result<(usize, bool, Kind, Vec<u8>), RespError> {
    let mut decoder = ReplyDecoder::new(LIMITS);
    decoder.start(keep);
    let keeps_all = keep == Keep::All;
    let (taken, complete) = in_pieces(bytes, piece_bytes, |piece| decoder.decode(piece))?;
    assert!(decoder.body().len() <= if keeps_all { LIMITS.body_bytes } else { BEGINNING_BYTES });
    if complete
        && keeps_all
        && decoder.kind() == Kind::Aggregate
        && std::str::from_utf8(decoder.body()).is_ok()
    {
        assert!(json::check(decoder.body()).is_ok(), "{}", String::from_utf8_lossy(decoder.body()));
    }
    Ok((taken, complete, decoder.kind(), decoder.body().to_vec()))
}

fuzz_target!(|data: &[u8]| {
    let [options, piece_bytes, bytes @ ..] = data else { return };
    let keep = if options & 1 == 0 { Keep::All } else { Keep::Beginning };
    let whole = understand(bytes, keep, bytes.len().max(1));
    let pieces = understand(bytes, keep, usize::from(*piece_bytes).max(1));
    assert_eq!(whole, pieces);
    // what is kept and what is passed by is the same reply
    if let (Ok(kept), Ok(mut passed_by)) =
        (understand(bytes, Keep::All, bytes.len().max(1)), understand(bytes, Keep::Beginning, 7))
    {
        if passed_by.1 {
            passed_by.3.extend_from_slice(&kept.3[passed_by.3.len()..]);
        } else {
            passed_by.3.clone_from(&kept.3);
        }
        assert_eq!(kept, passed_by);
    }
});
