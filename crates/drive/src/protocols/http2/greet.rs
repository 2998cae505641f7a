//! The first words with a server that shall speak HTTP/2, over a connection that blocks.

use std::io::{self, ErrorKind, Read, Write};

use tidemark_wire::http2::connection::Connection;
use tidemark_wire::http2::frame::HEAD_BYTES;

/// Bytes of a reading.
const READ_BYTES: usize = 1 << 10;

/// What a server does in place of saying hello.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(in crate::protocols) enum NotHttp2 {
    /// It answers as a server of HTTP/1.1.
    #[error("the server answers in HTTP/1.1")]
    Http1,
    /// It sends a record of TLS.
    #[error("the server speaks TLS")]
    Tls,
    /// It says nothing more.
    #[error("the server closed the connection")]
    Closed,
}

impl NotHttp2 {
    /// What a server speaks whose first bytes are these, where that is known and is not HTTP/2.
    pub(super) fn begun_by(first: &[u8]) -> Option<NotHttp2> {
        match first {
            // nginx says so of what is sent to a port of TLS
            [b'H', b'T', b'T', b'P', b'/', rest @ ..] if rest.windows(5).any(|word| word == b"HTTPS") => {
                Some(NotHttp2::Tls)
            }
            [b'H', b'T', b'T', b'P', b'/', ..] => Some(NotHttp2::Http1),
            // an alert or a handshake, in any version
            [0x15 | 0x16, 3, ..] => Some(NotHttp2::Tls),
            _ => None,
        }
    }

    /// The one that an error is of.
    pub fn of(error: &io::Error) -> Option<NotHttp2> {
        error.get_ref()?.downcast_ref().copied()
    }

    /// The same error, or that the connection was closed, where it says nothing else.
    pub(super) fn or_closed(error: io::Error) -> io::Error {
        match error.kind() {
            ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                NotHttp2::Closed.into()
            }
            _ => error,
        }
    }
}

impl From<NotHttp2> for io::Error {
    fn from(what: NotHttp2) -> io::Error {
        let is_closed = what == NotHttp2::Closed;
        io::Error::new(if is_closed { ErrorKind::UnexpectedEof } else { ErrorKind::InvalidData }, what)
    }
}

/// Says hello, and learns how many streams the server takes on a connection.
///
/// # Errors
/// If it does not answer as a server of HTTP/2; where it is known what it does, that is a [`NotHttp2`].
pub(in crate::protocols) fn greet(stream: &mut (impl Read + Write)) -> io::Result<usize> {
    let mut output = Vec::new();
    let mut connection = Connection::new(&mut output);
    stream.write_all(&output).and_then(|()| stream.flush()).map_err(NotHttp2::or_closed)?;
    let mut room = [0; READ_BYTES];
    // enough of an answer to tell another protocol by
    let mut bytes = 0;
    while bytes < HEAD_BYTES {
        bytes += match stream.read(&mut room[bytes..]) {
            Ok(0) => break,
            Ok(more) => more,
            Err(error) => match error.kind() {
                ErrorKind::Interrupted => 0,
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    let words = "the server does not answer the preface of HTTP/2";
                    return Err(io::Error::new(ErrorKind::TimedOut, words));
                }
                // what it said before still counts
                _ if bytes > 0 => break,
                _ => return Err(NotHttp2::or_closed(error)),
            },
        };
    }
    if let Some(what) = NotHttp2::begun_by(&room[..bytes]) {
        return Err(what.into());
    }
    loop {
        // no stream is open that an event could be for
        if let Err(violation) = connection.next(&mut &room[..bytes], &mut output) {
            let words = format!("the server does not speak HTTP/2: {violation}");
            return Err(io::Error::new(ErrorKind::InvalidData, words));
        }
        if connection.is_greeted() {
            return Ok(connection.most_streams());
        }
        bytes = match stream.read(&mut room).map_err(NotHttp2::or_closed)? {
            0 => return Err(NotHttp2::Closed.into()),
            bytes => bytes,
        };
    }
}

#[cfg(test)]
mod tests {
    use tidemark_wire::http2::frame::PREFACE;

    use super::*;

    /// An empty SETTINGS frame.
    const SETTINGS: [u8; HEAD_BYTES] = [0, 0, 0, 4, 0, 0, 0, 0, 0];

    /// Has an answer ready, and keeps what it is told.
    struct Script(io::Cursor<Vec<u8>>, Vec<u8>);

    impl Read for Script {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            self.0.read(into)
        }
    }

    impl Write for Script {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn answered(answer: &[u8]) -> Result<usize, String> {
        let mut script = Script(io::Cursor::new(answer.to_vec()), Vec::new());
        let greeted = greet(&mut script).map_err(|error| error.to_string());
        assert!(script.1.starts_with(PREFACE));
        greeted
    }

    #[test]
    fn a_server_says_how_many_streams_it_takes() {
        assert_eq!(answered(&SETTINGS), Ok(usize::MAX));
        let two = [0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 1, 0, 0, 3, 0, 0, 0, 100];
        assert_eq!(answered(&two), Ok(100));
    }

    #[test]
    fn what_is_no_http_2_is_told() {
        let error = answered(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
        assert!(error.contains("HTTP/1.1"), "{error}");
        let nginx = b"HTTP/1.1 400 Bad Request\r\n\r\nThe plain HTTP request was sent to HTTPS port";
        assert!(answered(nginx).unwrap_err().contains("speaks TLS"));
        // an alert is shorter than the head of a frame
        assert!(answered(b"\x15\x03\x01\0\x02\x02\x46").unwrap_err().contains("speaks TLS"));
        assert!(answered(b"220 smtp ready\r\n").unwrap_err().contains("does not speak HTTP/2"));
        assert!(answered(b"").unwrap_err().contains("closed"));
        assert!(answered(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3]).unwrap_err().contains("closed"));
        assert!(answered(&[0, 0, 0, 4, 1, 0, 0, 0, 0]).unwrap_err().contains("does not speak HTTP/2"));
        assert!(
            answered(&[0, 0, 7, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 9, 0])
                .unwrap_err()
                .contains("does not speak HTTP/2")
        );
        assert!(answered(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 1]).is_err());
    }
}
