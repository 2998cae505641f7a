//! Replies of memcached to each form of command, whole and in pieces.
#![no_main]

mod common;

use common::in_pieces;
use libfuzzer_sys::fuzz_target;
use tidemark_wire::json;
use tidemark_wire::memcached::{Form, Kind, Meta, ReplyDecoder, ReplyError, ReplyLimits};

const LIMITS: ReplyLimits = ReplyLimits { body_bytes: 4096 };
const FORMS: [Form; 16] = [
    Form::Values,
    Form::Stored,
    Form::Deleted,
    Form::Touched,
    Form::Number,
    Form::Word,
    Form::Stats,
    Form::Meta(Meta::Get),
    Form::Meta(Meta::Set),
    Form::Meta(Meta::Delete),
    Form::Meta(Meta::Arithmetic),
    Form::Meta(Meta::Debug),
    Form::Meta(Meta::Noop),
    Form::Values,
    Form::Values,
    Form::Stats,
];

type Understood = Result<(usize, bool, Kind, Vec<u8>, Option<Vec<u8>>), ReplyError>;

fn understand(form: Form, keys: &[u8], bytes: &[u8], keep: bool, piece_bytes: usize) -> Understood {
    let mut decoder = ReplyDecoder::new(LIMITS);
    decoder.start(form, keys, keep);
    let (taken, complete) = in_pieces(bytes, piece_bytes, |piece| decoder.decode(piece))?;
    let body = decoder.body();
    assert!(body.len() <= LIMITS.body_bytes);
    let is_json = form == Form::Stats || form == Form::Values && keys.contains(&b' ');
    if complete && keep && is_json && body.starts_with(b"[") && std::str::from_utf8(body).is_ok() {
        assert!(json::check(body).is_ok(), "{}", String::from_utf8_lossy(body));
    }
    let field = ["flags", "cas", "t"].iter().find_map(|name| decoder.field(name)).map(<[u8]>::to_vec);
    Ok((taken, complete, decoder.kind(), body.to_vec(), field))
}

fuzz_target!(|data: &[u8]| {
    let [options, piece_bytes, bytes @ ..] = data else { return };
    let (keep, keys) = (options & 1 == 0, [&b"a"[..], b"a b", b"a b c d", b""][usize::from(options >> 1 & 3)]);
    let form = FORMS[usize::from(options >> 3 & 15)];
    let whole = understand(form, keys, bytes, keep, bytes.len().max(1));
    let pieces = understand(form, keys, bytes, keep, usize::from(*piece_bytes).max(1));
    assert_eq!(whole, pieces);
});
