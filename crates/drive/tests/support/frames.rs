//! A small server of HTTP/2 over plain TCP that answers every request alike. It reads no header, and so costs little.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

const PREFACE_BYTES: usize = 24;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
/// Of data and headers: the last of their stream.
const END_STREAM: u8 = 1;
/// Of settings and pings: an answer to one.
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200`, as the static table of HPACK has it.
const STATUS_200: &[u8] = &[0x88];

/// Starts one that lives as long as the test; each of its threads begins with `begin`.
pub fn server(body: &'static str, begin: fn()) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        begin();
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                begin();
                let _ = serve(stream, body); // its end is the client's
            });
        }
    });
    address
}

fn serve(mut stream: TcpStream, body: &str) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut out, mut came, mut buffer) = (Vec::new(), Vec::new(), [0; 64 << 10]);
    put(&mut out, SETTINGS, 0, 0, &[]);
    stream.read_exact(&mut buffer[..PREFACE_BYTES])?;
    loop {
        stream.write_all(&out)?;
        out.clear();
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        came.extend_from_slice(&buffer[..count]);
        let mut at = 0;
        while let Some([a, b, c, kind, flags, s1, s2, s3, s4]) =
            came.get(at..).and_then(|left| left.first_chunk::<9>()).copied()
        {
            let length = u32::from_be_bytes([0, a, b, c]);
            let end = at + 9 + length as usize;
            let Some(payload) = came.get(at + 9..end) else { break };
            let id = u32::from_be_bytes([s1, s2, s3, s4]);
            match kind {
                SETTINGS if flags & ACK == 0 => put(&mut out, SETTINGS, ACK, 0, &[]),
                PING if flags & ACK == 0 => put(&mut out, PING, ACK, 0, payload),
                DATA if length > 0 => put(&mut out, WINDOW_UPDATE, 0, 0, &length.to_be_bytes()),
                _ => {}
            }
            if (kind == DATA || kind == HEADERS) && flags & END_STREAM != 0 {
                put(&mut out, HEADERS, END_HEADERS, id, STATUS_200);
                put(&mut out, DATA, END_STREAM, id, body.as_bytes());
            }
            at = end;
        }
        came.drain(..at);
    }
}

fn put(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}
