//! HTTP/2: what a server may say to a client's connection, and lists of headers.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_wire::http2::connection::{Connection, Event, HEADERS_BYTES, OUTPUT_BYTES, Request};
use tidemark_wire::http2::hpack::{Decoder, Fields};

const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Feeds a connection with streams of all kinds: why it ended, if it did, and what it said.
fn hear(bytes: &[u8], piece: usize) -> (Option<&'static str>, Vec<u8>) {
    let mut out = Vec::new();
    let mut connection = Connection::new(&mut out);
    for owner in 0..5 {
        let request = Request { owner, ends: owner < 4, is_head: owner == 1, holds: owner == 2 };
        let stream = connection.request(&[0x82], request, &mut out).expect("it has just begun");
        if owner == 3 {
            connection.give_up(stream, &mut out);
        }
        if owner == 4 {
            connection.send(stream, &[b'x'; 70_000], true, |sent| vec![b'x'; 70_000 - sent].into(), &mut out);
        }
    }
    let mut greeting = &SETTINGS[..];
    assert!(connection.next(&mut greeting, &mut out).expect("they are right").is_none());
    for piece in bytes.chunks(piece.max(1)) {
        let mut input = piece;
        loop {
            match connection.next(&mut input, &mut out) {
                Ok(Some(Event::Head { .. } | Event::Trailers { .. })) => {
                    let bytes = connection.fields().iter_all().map(|(name, value)| name.len() + value.len() + 32);
                    assert!(bytes.sum::<usize>() <= HEADERS_BYTES);
                }
                Ok(Some(event)) => assert!(event.owner() < 5),
                Ok(None) => break,
                Err(violation) => return (Some(violation.words), out),
            }
        }
        assert!(input.is_empty() && out.len() < 4 * OUTPUT_BYTES + bytes.len() * 4);
    }
    (None, out)
}

fn lists(bytes: &[u8], cut: usize) {
    let (mut decoder, mut fields) = (Decoder::default(), Fields::default());
    for block in bytes.chunks(cut.max(1)) {
        if decoder.decode(block, 4_096, &mut fields).is_err() {
            return;
        }
        assert!(fields.iter_all().map(|(name, value)| name.len() + value.len() + 32).sum::<usize>() <= 4_096);
    }
}

fuzz_target!(|data: &[u8]| {
    let [what, data @ ..] = data else { return };
    match what % 2 {
        0 => {
            assert_eq!(hear(data, usize::from(*what)), hear(data, data.len()));
        }
        _ => lists(data, usize::from(*what)),
    }
});
