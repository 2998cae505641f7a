//! One connection.

use std::io::{self, ErrorKind, Read, Write};
use std::time::Duration;

use mio::net::TcpStream;
use rustls::ServerConnection;

use crate::Fault;

/// Most bytes of a request's head.
const HEAD_BYTES: usize = 64 << 10;

/// A connection and what has come over it.
#[derive(Debug)]
pub(crate) struct Peer {
    pub stream: TcpStream,
    /// Tells it from an earlier one in the same place.
    pub number: u64,
    head: Vec<u8>,
    tls: Option<Box<ServerConnection>>,
}

impl Peer {
    pub fn new(stream: TcpStream, number: u64, tls: Option<ServerConnection>) -> Peer {
        Peer { stream, number, head: Vec::new(), tls: tls.map(Box::new) }
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

    /// Reads what has come and tells the number at the end of each request's path; false when the peer is gone.
    pub fn read(&mut self, buffer: &mut [u8], numbers: &mut Vec<u64>) -> bool {
        loop {
            match self.read_plain(buffer) {
                Ok(0) => return false,
                Ok(n) => {
                    self.head.extend_from_slice(&buffer[..n]);
                    while let Some(end) = self.head.windows(4).position(|four| four == b"\r\n\r\n") {
                        numbers.push(path_number(&self.head[..end]));
                        self.head.drain(..end + 4);
                    }
                    if self.head.len() > HEAD_BYTES {
                        return false;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
    }

    /// Answers; false when the connection is of no more use.
    pub fn answer(&mut self, fault: Fault) -> bool {
        let bytes = fault.bytes();
        if fault == Fault::Reset {
            // closing with unsent time zero sends a reset
            let _ = socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
        let whole = bytes.is_empty() || self.write(bytes).is_ok();
        whole && !fault.closes()
    }
}

/// The number at the end of a path: 3 of `GET /shard/3 HTTP/1.1`; 0 if there is none.
fn path_number(head: &[u8]) -> u64 {
    let path = head.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
    let first = path.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |last| last + 1);
    std::str::from_utf8(&path[first..]).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_at_the_end_of_the_path() {
        assert_eq!(path_number(b"GET /shard/13 HTTP/1.1\r\nHost: x9"), 13);
        assert_eq!(path_number(b"GET /7?x=9 HTTP/1.1"), 7);
        assert_eq!(path_number(b"GET / HTTP/1.1"), 0);
        assert_eq!(path_number(b"nonsense"), 0);
    }
}
