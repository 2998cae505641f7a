//! The first words with a server that shall speak HTTP/2, over a connection that blocks.

use std::io::{self, ErrorKind, Read, Write};

use tidemark_wire::http2::connection::Connection;
use tidemark_wire::http2::frame::HEAD_BYTES;

/// Bytes of a reading.
const READ_BYTES: usize = 1 << 10;

/// Says hello, and learns how many streams the server takes on a connection.
///
/// # Errors
/// If it does not answer as a server of HTTP/2.
pub(super) fn greet(stream: &mut (impl Read + Write)) -> io::Result<usize> {
    let mut output = Vec::new();
    let mut connection = Connection::new(&mut output);
    stream.write_all(&output)?;
    stream.flush()?;
    let mut room = [0; READ_BYTES];
    // enough of an answer to tell HTTP/1.1 by
    stream.read_exact(&mut room[..HEAD_BYTES]).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, "the server does not answer the preface of HTTP/2")
        }
        ErrorKind::UnexpectedEof => closed(),
        _ => error,
    })?;
    let wrong = |words: String| Err(io::Error::new(ErrorKind::InvalidData, words));
    if room.starts_with(b"HTTP/") {
        return wrong("the server answers in HTTP/1.1".into());
    }
    let mut bytes = HEAD_BYTES;
    loop {
        // no stream is open that an event could be for
        if let Err(violation) = connection.next(&mut &room[..bytes], &mut output) {
            return wrong(format!("the server does not speak HTTP/2: {violation}"));
        }
        if connection.is_greeted() {
            return Ok(connection.most_streams());
        }
        bytes = match stream.read(&mut room)? {
            0 => return Err(closed()),
            bytes => bytes,
        };
    }
}

fn closed() -> io::Error {
    io::Error::new(ErrorKind::UnexpectedEof, "the server closed the connection")
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
