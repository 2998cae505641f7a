//! Servers that answer every statement with one row `{"n": 77}`, as PostgreSQL and as Cassandra do.

use std::net::SocketAddr;

use super::websocket::listen;

/// Bytes of a message behind its kind, and where its kind stands.
fn messages(
    bytes_before: usize,
    answer: impl Fn(u8, &[u8], &mut Vec<u8>) + Clone + Send + Sync + 'static,
    greeting: Option<&'static [u8]>,
    begun: fn(),
) -> SocketAddr {
    listen(None, move |stream| {
        begun();
        let (mut buffer, mut had, mut out) = ([0; 4096], Vec::new(), Vec::new());
        let mut greeting = greeting;
        while let Ok(bytes @ 1..) = stream.read(&mut buffer) {
            had.extend_from_slice(&buffer[..bytes]);
            let mut at = 0;
            loop {
                // the first message of PostgreSQL has no kind, and its length counts itself, as that of all others
                let before = if greeting.is_some() { 0 } else { bytes_before };
                let counts_itself = if bytes_before == 1 { 0 } else { 4 };
                let Some(length) = had.get(at + before..at + before + 4) else { break };
                let length = u32::from_be_bytes(length.try_into().unwrap()) as usize + counts_itself;
                let Some(message) = had.get(at..at + before + length) else { break };
                match greeting.take() {
                    Some(greeting) => out.extend_from_slice(greeting),
                    None => answer(message[before - 1], message, &mut out),
                }
                at += before + length;
            }
            had.drain(..at);
            if stream.write_all(&out).is_err() {
                return;
            }
            out.clear();
        }
    })
}

/// As PostgreSQL, without a password.
pub fn postgres(begun: fn()) -> SocketAddr {
    let answer = |kind: u8, _: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(match kind {
            b'P' => b"1\0\0\0\x04",
            b'D' => b"t\0\0\0\x06\0\0T\0\0\0\x1a\0\x01n\0\0\0\0\0\0\0\0\0\0\x17\0\x04\0\0\0\0\0\0",
            b'B' => b"2\0\0\0\x04",
            b'E' => b"D\0\0\0\x0c\0\x01\0\0\0\x0277C\0\0\0\x0dSELECT 1\0",
            b'S' => b"Z\0\0\0\x05I",
            _ => b"",
        });
    };
    messages(1, answer, Some(b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I"), begun)
}

/// As Cassandra; each statement has one place, for a text.
pub fn cassandra(begun: fn()) -> SocketAddr {
    let answer = |kind: u8, message: &[u8], out: &mut Vec<u8>| {
        let (opcode, body): (u8, &[u8]) = match kind {
            1 => (2, b""),
            9 => (
                8,
                b"\0\0\0\x04\0\x02id\0\0\0\x01\0\0\0\x01\0\0\0\0\0\x01k\0\x01t\0\x01k\0\x0d\0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x01n\0\x09",
            ),
            _ => (8, b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x01\0\0\0\x04\0\0\0\x4d"),
        };
        out.extend_from_slice(&[0x84, 0, message[2], message[3], opcode]);
        out.extend_from_slice(&u32::try_from(body.len()).unwrap().to_be_bytes());
        out.extend_from_slice(body);
    };
    messages(5, answer, None, begun)
}
