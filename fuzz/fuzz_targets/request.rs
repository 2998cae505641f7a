//! Requests behind each other, whole and in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_wire::http1::{DecoderLimits, RequestDecoder};

const LIMITS: DecoderLimits = DecoderLimits { head_bytes: 1024, headers: 16, body_bytes: 4096 };

/// Method, target, headers and body of each request, and how many bytes they took.
type Requests = (Vec<(Vec<u8>, Vec<u8>, usize, Vec<u8>)>, usize);

/// The requests up to the first that is refused or not whole, and whether one was refused.
fn requests(bytes: &[u8], piece_bytes: usize) -> (Requests, bool) {
    let mut decoder = RequestDecoder::new(LIMITS);
    let mut found = Vec::new();
    let (mut at, mut ends_at) = (0, 0);
    while at < bytes.len() {
        let piece = &bytes[at..bytes.len().min(at + piece_bytes)];
        let result = decoder.decode(piece);
        // Whatever came, everything may be looked at.
        std::hint::black_box((
            decoder.method(),
            decoder.target(),
            decoder.header("x"),
            decoder.headers().count(),
        ));
        let Ok(decoded) = result else { return ((found, ends_at), true) };
        assert!(decoded.consumed <= piece.len());
        at += decoded.consumed;
        if decoded.complete {
            assert!(decoded.consumed > 0);
            assert_eq!(decoder.finish(), Ok(()));
            let (method, target) = (decoder.method().to_vec(), decoder.target().to_vec());
            assert!(!method.is_empty() && !target.is_empty());
            found.push((method, target, decoder.headers().count(), decoder.body().to_vec()));
            decoder.start();
            ends_at = at;
        } else {
            assert_eq!(decoded.consumed, piece.len());
        }
    }
    ((found, ends_at), false)
}

fuzz_target!(|data: &[u8]| {
    let [piece_bytes, bytes @ ..] = data else { return };
    let whole = requests(bytes, bytes.len().max(1));
    let pieces = requests(bytes, usize::from(*piece_bytes).max(1));
    assert_eq!(whole.0, pieces.0);
    // In pieces, a wrong head whose end has not come may not have been noticed yet; never the other way round.
    assert!(whole.1 || !pieces.1);
});
