//! Replies of PostgreSQL, whole and in pieces.
#![no_main]

mod common;

use std::sync::Arc;

use common::in_pieces;
use libfuzzer_sys::fuzz_target;
use tidemark_wire::json;
use tidemark_wire::postgres::{Columns, Kind, PostgresError, ReplyDecoder, ReplyLimits, Types};

const LIMITS: ReplyLimits = ReplyLimits { body_bytes: 4096 };

type Understood = Result<(usize, bool, Kind, Vec<u8>, Vec<u8>), PostgresError>;

fn understand(columns: Option<&Arc<Columns>>, bytes: &[u8], keep: bool, piece_bytes: usize) -> Understood {
    let mut decoder = ReplyDecoder::new(LIMITS);
    decoder.start(columns.cloned(), keep);
    let (taken, complete) = in_pieces(bytes, piece_bytes, |piece| decoder.decode(piece))?;
    let body = decoder.body();
    assert!(body.len() <= LIMITS.body_bytes + 16);
    let is_json = matches!(decoder.kind(), Kind::Rows | Kind::NoRows);
    if complete && keep && is_json && std::str::from_utf8(body).is_ok() {
        assert!(json::check(body).is_ok(), "{}", String::from_utf8_lossy(body));
    }
    let _ = (decoder.rows(), decoder.sqlstate());
    Ok((taken, complete, decoder.kind(), body.to_vec(), decoder.tag().to_vec()))
}

fuzz_target!(|data: &[u8]| {
    let [options, piece_bytes, columns_bytes, bytes @ ..] = data else { return };
    let Some((told, bytes)) = bytes.split_at_checked(usize::from(*columns_bytes)) else { return };
    if let Ok(types) = Types::read(told) {
        let _ = types.each_value(bytes, |value| assert!(value.len() <= bytes.len()));
    }
    let columns = Columns::read(told).ok().map(Arc::new);
    let keep = options & 1 == 0;
    let whole = understand(columns.as_ref(), bytes, keep, bytes.len().max(1));
    let pieces = understand(columns.as_ref(), bytes, keep, usize::from(*piece_bytes).max(1));
    assert_eq!(whole, pieces);
});
