//! The least HTTP server that answers: one thread, epoll's edge, a fixed answer to whatever ends in a blank line.
//!
//! `cargo run --release --example tiny_server -- 127.0.0.1:18080`

use std::io::{ErrorKind, Read, Write};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world!";
const LISTENER: Token = Token(usize::MAX - 1);

struct Peer {
    stream: TcpStream,
    /// How much of the blank line has been seen.
    seen: usize,
}

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:18080".to_owned());
    let mut listener = TcpListener::bind(address.parse().expect("an address, such as 127.0.0.1:18080"))?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut peers: slab::Slab<Peer> = slab::Slab::new();
    let mut buffer = vec![0; 64 << 10];
    let mut answers = Vec::new();
    loop {
        poll.poll(&mut events, None)?;
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let entry = peers.vacant_entry();
                    poll.registry().register(&mut stream, Token(entry.key()), Interest::READABLE)?;
                    entry.insert(Peer { stream, seen: 0 });
                }
                continue;
            }
            let key = event.token().0;
            if peers.get_mut(key).is_some_and(|peer| !serve(peer, &mut buffer, &mut answers)) {
                peers.remove(key);
            }
        }
    }
}

/// Answers what has come; false when the peer is gone.
fn serve(peer: &mut Peer, buffer: &mut [u8], answers: &mut Vec<u8>) -> bool {
    loop {
        match peer.stream.read(buffer) {
            Ok(0) => return false,
            Ok(n) => {
                answers.clear();
                for byte in &buffer[..n] {
                    peer.seen = match (peer.seen, byte) {
                        (0 | 2, b'\r') | (1, b'\n') => peer.seen + 1,
                        (3, b'\n') => {
                            answers.extend_from_slice(ANSWER);
                            0
                        }
                        _ => 0,
                    };
                }
                if !answers.is_empty() && peer.stream.write_all(answers).is_err() {
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
