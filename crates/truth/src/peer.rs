//! One connection.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::time::Duration;

use mio::net::TcpStream;
use rustls::ServerConnection;

use crate::Misbehaviour;

/// Most bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;

/// A connection and what has come over it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub stream: TcpStream,
    /// Tells it from an earlier one in the same place.
    pub number: u64,
    head: Vec<u8>,
    /// Bytes of a request's body that are still to come; nobody looks at them.
    body_left: usize,
    /// What comes is not read any more, and nothing is written.
    is_forgotten: bool,
    tls: Option<Box<ServerConnection>>,
}

impl Peer {
    pub fn new(stream: TcpStream, number: u64, tls: Option<ServerConnection>) -> Peer {
        let tls = tls.map(Box::new);
        Peer { stream, number, head: Vec::new(), body_left: 0, is_forgotten: false, tls }
    }

    /// Reads what has come, without what secures it.
    fn read_plain(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else { return self.stream.read(buffer) };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                read => return read,
            }
            let came = tls.read_tls(&mut self.stream)?;
            let processed = tls.process_new_packets().map_err(io::Error::other);
            // a handshake's messages, and the alert where it failed, fit in an empty socket's buffer
            while tls.wants_write() {
                tls.write_tls(&mut self.stream)?;
            }
            processed?;
            if came == 0 {
                return Ok(0);
            }
        }
    }

    /// Writes an answer; it fits in an empty socket's buffer.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            None => self.stream.write_all(bytes),
            Some(tls) => {
                tls.writer().write_all(bytes)?;
                while tls.wants_write() {
                    tls.write_tls(&mut self.stream)?;
                }
                Ok(())
            }
        }
    }

    /// Reads what has come and tells what each request asks for; false when the peer is gone.
    pub fn read(&mut self, buffer: &mut [u8], asked: &mut Vec<Request>) -> bool {
        while !self.is_forgotten {
            match self.read_plain(buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    self.head.extend_from_slice(&buffer[..n]);
                    self.take_requests(asked);
                    if self.head.len() > HEAD_BYTES {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }

    /// Cuts whole requests from what has come. One with a body is there with its head: nothing depends on the rest.
    fn take_requests(&mut self, asked: &mut Vec<Request>) {
        loop {
            let of_body = self.body_left.min(self.head.len());
            self.head.drain(..of_body);
            self.body_left -= of_body;
            let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") else { return };
            asked.push(Request::parse(&self.head[..end]));
            self.body_left = body_bytes(&self.head[..end]);
            self.head.drain(..end + 4);
        }
    }

    /// Whether it is a connection that the server has forgotten.
    pub fn is_forgotten(&self) -> bool {
        self.is_forgotten
    }

    /// Answers with a part of what a fault writes, or with all of it; false when the connection is of no more use.
    pub fn answer(&mut self, fault: Misbehaviour, part: Range<usize>) -> bool {
        let bytes = fault.bytes();
        let whole = part.is_empty() || self.write(&bytes[part]).is_ok();
        if fault.resets() {
            self.reset_on_close();
        }
        match fault {
            Misbehaviour::HalfOpen => self.is_forgotten = true,
            Misbehaviour::HalfClose => return self.stream.shutdown(Shutdown::Write).is_ok(),
            _ => {}
        }
        whole && !fault.closes()
    }

    /// Closing with unsent time zero sends a reset.
    pub fn reset_on_close(&self) {
        let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
    }
}

/// What a request asks for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    /// The number at the end of its path.
    pub number: u64,
    /// The field `fault` of its query.
    pub fault: Option<String>,
}

impl Request {
    fn parse(head: &[u8]) -> Request {
        let target = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        let mut parts = target.splitn(2, |byte| *byte == b'?');
        let number = path_number(parts.next().unwrap_or_default());
        let mut fields = parts.next().unwrap_or_default().split(|byte| *byte == b'&');
        let fault = fields.find_map(|field| field.strip_prefix(b"fault="));
        Request { number, fault: fault.map(|text| String::from_utf8_lossy(text).into_owned()) }
    }
}

/// How long the body is that follows this head.
fn body_bytes(head: &[u8]) -> usize {
    let value = head.split(|byte| *byte == b'\n').find_map(|line| {
        let (name, value) = line.split_at_checked(b"content-length:".len())?;
        name.eq_ignore_ascii_case(b"content-length:").then(|| value.trim_ascii())
    });
    value.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}

/// The number at the end of a path: 3 of `/shard/3`; 0 if there is none.
pub(crate) fn path_number(path: &[u8]) -> u64 {
    let first = path.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
    std::str::from_utf8(&path[first..]).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_request_asks_for() {
        let asked = |number, fault: Option<&str>| Request { number, fault: fault.map(str::to_owned) };
        assert_eq!(Request::parse(b"GET /shard/13 HTTP/1.1\r\nHost: x9"), asked(13, None));
        assert_eq!(Request::parse(b"GET /7?x=9&fault=reset@1/2 HTTP/1.1"), asked(7, Some("reset@1/2")));
        assert_eq!(Request::parse(b"GET / HTTP/1.1"), asked(0, None));
        assert_eq!(Request::parse(b"nonsense"), asked(0, None));
    }

    #[test]
    fn the_length_of_a_body() {
        assert_eq!(body_bytes(b"POST / HTTP/1.1\r\nHost: x\r\ncontent-Length: 12"), 12);
        assert_eq!(body_bytes(b"POST / HTTP/1.1\r\nHost: x"), 0);
    }
}
