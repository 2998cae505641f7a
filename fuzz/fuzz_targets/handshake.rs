//! WebSocket handshakes: a server's answer, and a client's request. The first byte chooses.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_wire::http1::{DecoderLimits, RequestDecoder, ResponseDecoder};
use tidemark_wire::websocket::handshake::{accept, check_answer, check_request, key, write_answer};

const LIMITS: DecoderLimits = DecoderLimits { head_bytes: 2048, headers: 16, body_bytes: 64 };

fuzz_target!(|data: &[u8]| {
    let [choice, bytes @ ..] = data else { return };
    let key = key([7; 16]);
    let offered = ["chat", "log"];
    if choice & 1 == 0 {
        let mut decoder = ResponseDecoder::new(LIMITS);
        decoder.start(false, true);
        if decoder.decode(bytes).is_ok_and(|decoded| decoded.complete)
            && let Ok(protocol) = check_answer(&decoder, &key, &offered)
        {
            assert_eq!(
                (decoder.status(), decoder.header("sec-websocket-accept")),
                (101, Some(&accept(&key)[..]))
            );
            assert!(protocol.is_none_or(|protocol| offered.contains(&protocol)));
        }
        return;
    }
    let mut decoder = RequestDecoder::new(LIMITS);
    if !decoder.decode(bytes).is_ok_and(|decoded| decoded.complete) {
        return;
    }
    let Ok(offer) = check_request(&decoder) else { return };
    // Whoever asked rightly can be answered, and takes the answer.
    let mut answer = Vec::new();
    let protocol = offer.protocols().next();
    if write_answer(&mut answer, offer.key, protocol).is_err() {
        return;
    }
    let mut client = ResponseDecoder::new(LIMITS);
    client.start(false, true);
    let decoded = client.decode(&answer).expect("our own answer is right");
    assert!(decoded.complete);
    let offered: Vec<&str> = offer.protocols().collect();
    assert_eq!(check_answer(&client, offer.key, &offered), Ok(protocol));
});
