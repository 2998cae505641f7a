//! Whether a system is there: a plain HTTP GET, bounded in everything.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidemark_drive::Address;

/// Longest time for one question.
const ASK_MAX: Duration = Duration::from_secs(1);
/// Bytes of an answer that are looked at; the status stands in the first few.
const ANSWER_BYTES: usize = 64;

/// Asks once, and returns the status code of the answer.
pub fn ask(address: &Address, authority: &str, path: &str) -> io::Result<u16> {
    let Address::Tcp(address) = address else {
        // what is asked was started by us, and that is by TCP
        return Err(io::ErrorKind::Unsupported.into());
    };
    let mut stream = TcpStream::connect_timeout(address, ASK_MAX)?;
    stream.set_read_timeout(Some(ASK_MAX))?;
    stream.set_write_timeout(Some(ASK_MAX))?;
    let question =
        format!("GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\nAccept: */*\r\n\r\n");
    stream.write_all(question.as_bytes())?;
    let mut answer = [0u8; ANSWER_BYTES];
    let mut length = 0;
    while length < ANSWER_BYTES && !answer[..length].contains(&b'\n') {
        match stream.read(&mut answer[length..])? {
            0 => break,
            read => length += read,
        }
    }
    status(&answer[..length])
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the answer is not HTTP"))
}

fn status(answer: &[u8]) -> Option<u16> {
    let code = answer.strip_prefix(b"HTTP/1.")?.get(2..5)?;
    std::str::from_utf8(code).ok()?.parse().ok().filter(|code| (100..600).contains(code))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn answering(answer: &'static [u8]) -> Address {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 1024];
            let read = stream.read(&mut question).unwrap();
            assert!(question[..read].starts_with(b"GET /health HTTP/1.1\r\nHost: here:1\r\n"));
            for byte in answer {
                stream.write_all(&[*byte]).unwrap();
            }
        });
        address.into()
    }

    #[test]
    fn the_status_is_read_however_the_answer_comes() {
        assert_eq!(ask(&answering(b"HTTP/1.1 200 OK\r\n\r\n"), "here:1", "/health").unwrap(), 200);
        assert_eq!(ask(&answering(b"HTTP/1.0 503 No\r\n\r\n"), "here:1", "/health").unwrap(), 503);
    }

    #[test]
    fn what_is_no_http_is_an_error() {
        assert!(ask(&answering(b"220 smtp ready\r\n"), "here:1", "/health").is_err());
        assert!(ask(&answering(b""), "here:1", "/health").is_err());
        assert_eq!(status(b"HTTP/1.1 999 x"), None);
        assert_eq!(status(b"HTTP/1.1 2"), None);
    }

    #[test]
    fn nobody_there_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(ask(&address.into(), "here:1", "/health").is_err());
    }
}
