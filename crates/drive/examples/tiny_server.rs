//! The least HTTP server that answers: one thread, epoll's edge, a fixed answer to whatever ends in a blank line.
//!
//! `cargo run --release --example tiny_server -- 127.0.0.1:18080 [plain | session | large]`: a few bytes of text, or a
//! cookie and JSON, or 64 KiB.

use std::io::{ErrorKind, Read, Write};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const LISTENER: Token = Token(usize::MAX - 1);
const LARGE_BYTES: usize = 64 << 10;

struct Peer {
    stream: TcpStream,
    /// How much of the blank line has been seen.
    seen: usize,
    /// What found no room yet.
    unsent: Vec<u8>,
}

fn answer(word: &str) -> Vec<u8> {
    let (headers, body) = match word {
        "plain" => ("Content-Type: text/plain\r\n", b"Hello, world!".to_vec()),
        "session" => (
            "Content-Type: application/json\r\nSet-Cookie: sid=0f3ab58c2d; Path=/; HttpOnly\r\n",
            br#"{"name": "Hello, world!", "items": [1, 2, 3], "id": 4711}"#.to_vec(),
        ),
        "large" => ("Content-Type: application/octet-stream\r\n", vec![b'x'; LARGE_BYTES]),
        other => panic!("{other}: give plain, session or large"),
    };
    let head = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.into_bytes(), body].concat()
}

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:18080".to_owned());
    let answer = answer(&std::env::args().nth(2).unwrap_or_else(|| "plain".to_owned()));
    let mut listener = TcpListener::bind(address.parse().expect("an address, such as 127.0.0.1:18080"))?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut peers: slab::Slab<Peer> = slab::Slab::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let entry = peers.vacant_entry();
                    let both = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut stream, Token(entry.key()), both)?;
                    entry.insert(Peer { stream, seen: 0, unsent: Vec::new() });
                }
                continue;
            }
            let key = event.token().0;
            if peers.get_mut(key).is_some_and(|peer| !serve(peer, &mut buffer, &answer)) {
                peers.remove(key);
            }
        }
    }
}

/// Answers what has come; false when the peer is gone.
fn serve(peer: &mut Peer, buffer: &mut [u8], answer: &[u8]) -> bool {
    if !send(peer) {
        return false;
    }
    loop {
        match peer.stream.read(buffer) {
            Ok(0) => return false,
            Ok(n) => {
                for byte in &buffer[..n] {
                    peer.seen = match (peer.seen, byte) {
                        (0 | 2, b'\r') | (1, b'\n') => peer.seen + 1,
                        (3, b'\n') => {
                            peer.unsent.extend_from_slice(answer);
                            0
                        }
                        _ => 0,
                    };
                }
                if !send(peer) {
                    return false;
                }
                if n < buffer.len() {
                    return true;
                }
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => return true,
            Err(_) => return false,
        }
    }
}

/// Sends what there is room for; false when the peer is gone.
fn send(peer: &mut Peer) -> bool {
    let mut sent = 0;
    while sent < peer.unsent.len() {
        match peer.stream.write(&peer.unsent[sent..]) {
            Ok(n) => sent += n,
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(_) => return false,
        }
    }
    peer.unsent.drain(..sent);
    true
}
