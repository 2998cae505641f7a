//! The first words with a server that shall speak HTTP/2, over a connection that blocks.

use std::io::{self, ErrorKind, Read, Write};

use tidemark_wire::http2::frame::{self, Head, PAYLOAD_BYTES, PREFACE, flag, kind, setting};

/// An empty SETTINGS frame.
const SETTINGS: [u8; frame::HEAD_BYTES] = [0, 0, 0, kind::SETTINGS, 0, 0, 0, 0, 0];

/// Says hello, and learns how many streams the server takes on a connection; none if it has no bound.
///
/// # Errors
/// If it does not answer as a server of HTTP/2.
pub(crate) fn greet(stream: &mut (impl Read + Write)) -> io::Result<Option<u32>> {
    stream.write_all(PREFACE)?;
    stream.write_all(&SETTINGS)?;
    stream.flush()?;
    let mut head = [0; frame::HEAD_BYTES];
    stream.read_exact(&mut head).map_err(|error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            io::Error::new(ErrorKind::TimedOut, "the server does not answer the preface of HTTP/2")
        }
        ErrorKind::UnexpectedEof => io::Error::new(error.kind(), "the server closed the connection"),
        _ => error,
    })?;
    let wrong = |text: &str| Err(io::Error::new(ErrorKind::InvalidData, text));
    if head.starts_with(b"HTTP/") {
        return wrong("the server answers in HTTP/1.1");
    }
    let head = Head::read(&head);
    let length = head.length;
    if head.kind != kind::SETTINGS
        || head.has(flag::ACK)
        || length > PAYLOAD_BYTES
        || !length.is_multiple_of(setting::BYTES)
    {
        return wrong("what the server answers is not HTTP/2");
    }
    let mut settings = vec![0; length];
    stream.read_exact(&mut settings)?;
    let mut most = settings
        .chunks_exact(setting::BYTES)
        .filter(|one| u16::from_be_bytes([one[0], one[1]]) == setting::MAX_CONCURRENT_STREAMS);
    Ok(most.next_back().map(|one| u32::from_be_bytes([one[2], one[3], one[4], one[5]])))
}

#[cfg(test)]
mod tests {
    use super::*;

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

    fn answered(answer: &[u8]) -> Result<Option<u32>, String> {
        let mut script = Script(io::Cursor::new(answer.to_vec()), Vec::new());
        let greeted = greet(&mut script).map_err(|error| error.to_string());
        assert!(script.1.starts_with(PREFACE));
        greeted
    }

    #[test]
    fn a_server_says_how_many_streams_it_takes() {
        assert_eq!(answered(&SETTINGS), Ok(None));
        let two = [0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 1, 0, 0, 3, 0, 0, 0, 100];
        assert_eq!(answered(&two), Ok(Some(100)));
    }

    #[test]
    fn what_is_no_http_2_is_told() {
        let error = answered(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap_err();
        assert!(error.contains("HTTP/1.1"), "{error}");
        assert!(answered(b"220 smtp ready\r\n").unwrap_err().contains("not HTTP/2"));
        assert!(answered(b"").unwrap_err().contains("closed"));
        assert!(answered(&[0, 0, 0, 4, 1, 0, 0, 0, 0]).unwrap_err().contains("not HTTP/2"));
        assert!(answered(&[0, 0, 7, 4, 0, 0, 0, 0, 0]).unwrap_err().contains("not HTTP/2"));
        assert!(answered(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 1]).is_err());
    }
}
