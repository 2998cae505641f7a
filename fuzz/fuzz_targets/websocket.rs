//! WebSocket frames, whole and in pieces.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidemark_wire::websocket::{Decoder, Event, Kind, Limits, Role, WebSocketError, write_message};

const LIMITS: Limits = Limits { frame_bytes: 2048, message_bytes: 4096 };

/// Each event with its bytes, how much was taken, and what went wrong.
type Understood = (Vec<(Event, Vec<u8>)>, usize, Option<WebSocketError>);

fn understand(role: Role, bytes: &[u8], piece_bytes: usize) -> Understood {
    let mut decoder = Decoder::new(role, LIMITS);
    let (mut events, mut taken) = (Vec::new(), 0);
    for piece in bytes.chunks(piece_bytes) {
        let mut rest = piece;
        loop {
            let decoded = match decoder.decode(rest) {
                Ok(decoded) => decoded,
                Err(error) => {
                    assert_eq!(decoder.decode(b"\x81\x00"), Err(error));
                    // How much of the last piece was taken before the error is not told.
                    return (events, 0, Some(error));
                }
            };
            assert!(decoded.consumed <= rest.len());
            taken += decoded.consumed;
            rest = &rest[decoded.consumed..];
            assert!(decoder.message().len() <= LIMITS.message_bytes);
            match decoded.event {
                None => {
                    assert!(rest.is_empty());
                    break;
                }
                Some(event @ Event::Message(kind)) => {
                    assert!(kind == Kind::Binary || std::str::from_utf8(decoder.message()).is_ok());
                    events.push((event, decoder.message().to_vec()));
                }
                Some(event) => events.push((event, decoder.control().to_vec())),
            }
            if events.last().is_some_and(|(event, _)| *event == Event::Close) {
                return (events, taken, None);
            }
        }
    }
    (events, taken, None)
}

fuzz_target!(|data: &[u8]| {
    let [side, piece_bytes, bytes @ ..] = data else { return };
    let role = if side & 1 == 0 { Role::Client } else { Role::Server };
    let whole = understand(role, bytes, bytes.len().max(1));
    let pieces = understand(role, bytes, usize::from(*piece_bytes).max(1));
    assert_eq!(whole, pieces);
    // What was understood can be said again.
    for (event, payload) in &whole.0 {
        let Event::Message(kind) = *event else { continue };
        let mut wire = Vec::new();
        write_message(&mut wire, kind, payload, (role == Role::Server).then_some([*side, 1, 2, 3]));
        let large = Limits { frame_bytes: 4096, message_bytes: 4096 };
        let mut again = Decoder::new(role, large);
        let decoded = again.decode(&wire).expect("our own frames are right");
        assert_eq!((decoded.consumed, decoded.event), (wire.len(), Some(*event)));
        assert_eq!(again.message(), payload);
    }
});
