//! What nodes are asked over plain HTTP: one request, one answer, and the connection is closed.

use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;

use super::launcher::dial;

/// Longest answer that is one, bytes.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// A node's answer.
#[derive(Debug)]
pub struct Answer {
    /// The line of its status, and its headers.
    head: String,
    /// As it came.
    pub body: String,
}

/// Asks with `GET`.
///
/// # Errors
/// Where nobody answers in time.
pub fn get(address: SocketAddr, path: &str) -> io::Result<Answer> {
    ask(address, "GET", path, "")
}

/// Sends a body of JSON with `POST`.
///
/// # Errors
/// Where nobody answers in time.
pub fn post(address: SocketAddr, path: &str, body: &str) -> io::Result<Answer> {
    ask(address, "POST", path, body)
}

fn ask(address: SocketAddr, method: &str, path: &str, body: &str) -> io::Result<Answer> {
    let mut stream = dial(address)?;
    let sends = match body.len() {
        0 => String::new(),
        length => format!("content-type: application/json\r\ncontent-length: {length}\r\n"),
    };
    let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n{sends}connection: close\r\n\r\n");
    stream.write_all((head + body).as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    Ok(Answer { head: head.into(), body: body.into() })
}

impl Answer {
    /// Whether its status is 200.
    pub fn is_ok(&self) -> bool {
        self.head.split(' ').nth(1) == Some("200")
    }

    /// A header, by its name in small letters.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        headers.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    /// That it is not what a node that serves says.
    pub fn unexpected(&self) -> io::Error {
        let line = self.head.lines().next().unwrap_or_default();
        io::Error::other(format!("it answers {line:?}"))
    }
}

#[cfg(test)]
pub mod tests {
    //! A server that answers what it is told, for the tests of those who ask.

    use std::net::TcpListener;
    use std::thread::JoinHandle;

    use super::*;

    /// An answer with these headers, each with its end of the line.
    pub fn ok(headers: &str, body: &str) -> String {
        format!("HTTP/1.1 200 OK\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
    }

    /// A server that gives these answers, one on each connection, and returns what it was asked.
    pub fn answers(all: Vec<String>) -> (SocketAddr, JoinHandle<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = move |text: String| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = [0; 1024];
            let length = stream.read(&mut asked).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            String::from_utf8_lossy(&asked[..length]).into_owned()
        };
        (address, std::thread::spawn(move || all.into_iter().map(answer).collect()))
    }

    #[test]
    fn a_node_is_asked_and_its_answer_is_read() {
        let (address, server) =
            answers(vec![ok("X-Name: a b\r\n", "{}"), "HTTP/1.1 503 Busy\r\n\r\n".into()]);
        let answer = get(address, "/health").unwrap();
        assert!(answer.is_ok() && answer.body == "{}", "{answer:?}");
        assert_eq!((answer.header("x-name"), answer.header("x")), (Some("a b"), None));
        let refused = post(address, "/list", "{\"a\":1}").unwrap();
        assert!(!refused.is_ok());
        assert_eq!(refused.unexpected().to_string(), "it answers \"HTTP/1.1 503 Busy\"");
        let asked = server.join().unwrap();
        assert!(asked[0].starts_with("GET /health HTTP/1.1\r\n"), "{asked:?}");
        assert!(asked[1].ends_with("content-length: 7\r\nconnection: close\r\n\r\n{\"a\":1}"), "{asked:?}");
    }
}
