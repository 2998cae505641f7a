//! Nanoseconds that the WebSocket codec takes for small and for large frames. Run it alone on a core:
//!
//! ```text
//! cargo run --release -p tidemark-wire --example websocket_speed
//! ```

use std::hint::black_box;
use std::time::Instant;

use tidemark_wire::websocket::{Decoder, Event, Kind, Limits, Role, handshake, mask, write_message};

const ROUNDS: usize = 9;
const REPEATS: u32 = 100_000;

fn main() {
    let key = Some([0x37, 0xfa, 0x21, 0x3d]);
    for bytes in [16, 100, 1_000, 16_384] {
        let payload = vec![b'x'; bytes];
        for (side, role, key) in [("server", Role::Client, None), ("client", Role::Server, key)] {
            let mut wire = Vec::new();
            write_message(&mut wire, Kind::Text, &payload, key);
            let mut decoder = Decoder::new(role, Limits::default());
            measure(&format!("decode a text of {bytes} bytes from a {side}"), || {
                let decoded = decoder.decode(black_box(&wire)).expect("a frame");
                assert_eq!(decoded.event, Some(Event::Message(Kind::Text)));
                black_box(decoder.message());
            });
            let mut out = Vec::new();
            measure(&format!("write a text of {bytes} bytes as a {side}"), || {
                out.clear();
                write_message(&mut out, Kind::Text, black_box(&payload), key);
                black_box(&out);
            });
        }
    }
    let mut bytes = vec![7; 16_384];
    measure("mask 16384 bytes", || mask(black_box(&mut bytes), [1, 2, 3, 4], 1));
    let key = handshake::key([7; 16]);
    measure("answer to a handshake's key", || {
        black_box(handshake::accept(black_box(&key)));
    });
}

/// The fastest of several rounds: what the code takes when nothing else is in its way.
fn measure(name: &str, mut work: impl FnMut()) {
    let mut best_ns = f64::MAX;
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        for _ in 0..REPEATS {
            work();
        }
        best_ns = best_ns.min(begin.elapsed().as_nanos() as f64 / f64::from(REPEATS));
    }
    println!("{best_ns:8.1} ns  {name}");
}
