//! As much of Cassandra's own protocol (native protocol, version 4) as it takes to learn that a node serves.
//!
//! What is asked is one value: a number, `SELECT count(*) …`, or a name. Often it only matters that there is an answer.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::launcher::dial;

/// Largest answer that is read, bytes.
const BODY_BYTES_MAX: usize = 1 << 20;
/// Bytes before the body of a frame.
const HEAD_BYTES: usize = 9;

const VERSION: u8 = 4;
const OP_ERROR: u8 = 0x00;
const OP_STARTUP: u8 = 0x01;
const OP_READY: u8 = 0x02;
const OP_QUERY: u8 = 0x07;
const OP_RESULT: u8 = 0x08;
/// Flag of a frame whose body begins with warnings.
const WARNINGS: u8 = 0x08;
/// Kind of a result that has rows.
const ROWS: u32 = 2;
/// Flag of rows whose keyspace and table are named once; of one column they are named once in any case.
const NAMED_ONCE: u32 = 1;
/// Types of a column: a number of 64 bits, a text.
const BIGINT: u16 = 0x02;
const VARCHAR: u16 = 0x0d;

/// How many replicas a query needs.
#[derive(Debug, Clone, Copy)]
pub enum Consistency {
    /// Any one.
    One = 1,
    /// Every one: the node that is asked must hold all of them for alive.
    All = 5,
}

/// A connection that has been greeted.
#[derive(Debug)]
pub struct Connection(TcpStream);

impl Connection {
    /// Connects and begins.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let mut connection = Connection(dial(address)?);
        let mut body = vec![0, 1];
        for word in ["CQL_VERSION", "3.0.0"] {
            body.extend_from_slice(&(word.len() as u16).to_be_bytes());
            body.extend_from_slice(word.as_bytes());
        }
        match connection.ask(OP_STARTUP, &body)? {
            (OP_READY, _) => Ok(connection),
            (op, body) => Err(refused(op, &body)),
        }
    }

    /// The one number that a query gives.
    pub fn count(&mut self, query: &str, consistency: Consistency) -> io::Result<u64> {
        match self.query(query, consistency)? {
            (OP_RESULT, body) => number(&body).ok_or_else(|| odd("an answer that is not a number")),
            (op, body) => Err(refused(op, &body)),
        }
    }

    /// The one text that a query gives.
    pub fn text(&mut self, query: &str, consistency: Consistency) -> io::Result<String> {
        match self.query(query, consistency)? {
            (OP_RESULT, body) => text(&body).ok_or_else(|| odd("an answer that is not text")),
            (op, body) => Err(refused(op, &body)),
        }
    }

    /// Has a statement carried out.
    #[cfg(test)]
    pub fn execute(&mut self, statement: &str) -> io::Result<()> {
        match self.query(statement, Consistency::One)? {
            (OP_RESULT, _) => Ok(()),
            (op, body) => Err(refused(op, &body)),
        }
    }

    fn query(&mut self, query: &str, consistency: Consistency) -> io::Result<(u8, Vec<u8>)> {
        let mut body = (query.len() as u32).to_be_bytes().to_vec();
        body.extend_from_slice(query.as_bytes());
        body.extend_from_slice(&(consistency as u16).to_be_bytes());
        body.push(0); // no flags: no values, no paging
        self.ask(OP_QUERY, &body)
    }

    fn ask(&mut self, op: u8, body: &[u8]) -> io::Result<(u8, Vec<u8>)> {
        let mut frame = vec![VERSION, 0, 0, 0, op];
        frame.extend_from_slice(&(body.len() as u32).to_be_bytes());
        frame.extend_from_slice(body);
        self.0.write_all(&frame)?;
        let mut head = [0; HEAD_BYTES];
        self.0.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[5], head[6], head[7], head[8]]) as usize;
        if head[0] != 0x80 | VERSION || length > BODY_BYTES_MAX {
            return Err(odd("an answer that is not Cassandra's"));
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body)?;
        let body = if head[1] & WARNINGS == 0 { Some(&body[..]) } else { without_warnings(&body) };
        body.map(|body| (head[4], body.to_vec())).ok_or_else(|| odd("warnings that do not end"))
    }
}

fn odd(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("it sent {what}"))
}

fn refused(op: u8, body: &[u8]) -> io::Error {
    match error_text(body).filter(|_| op == OP_ERROR) {
        Some(text) => io::Error::other(text),
        None => odd("an answer to another question"),
    }
}

/// What follows a list of texts, each behind its length.
fn without_warnings(body: &[u8]) -> Option<&[u8]> {
    let short = |body: &[u8]| Some(usize::from(u16::from_be_bytes(body.get(..2)?.try_into().ok()?)));
    let count = short(body)?;
    (0..count).try_fold(&body[2..], |rest, _| rest.get(2 + short(rest)?..))
}

/// The text of an error: a code, then a length and so many bytes.
fn error_text(body: &[u8]) -> Option<String> {
    let length = usize::from(u16::from_be_bytes(body.get(4..6)?.try_into().ok()?));
    Some(String::from_utf8_lossy(body.get(6..6 + length)?).into_owned())
}

/// The number that rows hold.
fn number(body: &[u8]) -> Option<u64> {
    let value = value(body, BIGINT)?;
    Some(u64::from_be_bytes(value.try_into().ok()?))
}

/// The text that rows hold.
fn text(body: &[u8]) -> Option<String> {
    let value = value(body, VARCHAR)?;
    String::from_utf8(value.to_vec()).ok()
}

/// The value in rows of which there is one with one column of this type: it is the last that the body holds.
fn value(body: &[u8], wanted: u16) -> Option<&[u8]> {
    let mut rest = body;
    let (kind, flags, columns) = (word(&mut rest)?, word(&mut rest)?, word(&mut rest)?);
    if kind != ROWS || flags & !NAMED_ONCE != 0 || columns != 1 {
        return None;
    }
    for _name in ["keyspace", "table", "column"] {
        let length = short(&mut rest)?;
        rest = rest.get(usize::from(length)..)?;
    }
    let is_one = short(&mut rest)? == wanted && word(&mut rest)? == 1;
    let length = word(&mut rest)?;
    // the length of nothing (null) is more than any
    (is_one && length as usize == rest.len()).then_some(rest)
}

fn word(rest: &mut &[u8]) -> Option<u32> {
    let (bytes, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(u32::from_be_bytes(*bytes))
}

fn short(rest: &mut &[u8]) -> Option<u16> {
    let (bytes, others) = rest.split_first_chunk()?;
    *rest = others;
    Some(u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::TcpListener;

    /// Rows with one value of one column.
    fn row(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut body = vec![0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1];
        for word in ["system", "local", "column"] {
            body.extend_from_slice(&(word.len() as u16).to_be_bytes());
            body.extend_from_slice(word.as_bytes());
        }
        body.extend_from_slice(&kind.to_be_bytes());
        body.extend_from_slice(&1u32.to_be_bytes());
        body.extend_from_slice(&(value.len() as u32).to_be_bytes());
        body.extend_from_slice(value);
        body
    }

    fn rows(count: u64) -> Vec<u8> {
        row(BIGINT, &count.to_be_bytes())
    }

    fn answer(op: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x84, 0, 0, 0, op];
        frame.extend_from_slice(&(body.len() as u32).to_be_bytes());
        frame.extend_from_slice(body);
        frame
    }

    /// A node that gives these answers in turn.
    fn node(answers: Vec<Vec<u8>>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            for answer in answers {
                let mut head = [0; HEAD_BYTES];
                stream.read_exact(&mut head).unwrap();
                let length = u32::from_be_bytes(head[5..].try_into().unwrap());
                stream.read_exact(&mut vec![0; length as usize]).unwrap();
                stream.write_all(&answer).unwrap();
            }
        });
        address
    }

    #[test]
    fn a_node_is_asked_for_a_number() {
        let address = node(vec![answer(OP_READY, &[]), answer(OP_RESULT, &rows(2))]);
        let mut connection = Connection::open(address).unwrap();
        let query = "SELECT count(*) FROM system.peers_v2";
        assert_eq!(connection.count(query, Consistency::One).unwrap(), 2);
        let mut warned = b"\0\x02\0\x03one\0\x03two".to_vec();
        warned.extend_from_slice(&rows(3));
        let mut warned = answer(OP_RESULT, &warned);
        warned[1] = WARNINGS;
        let address = node(vec![answer(OP_READY, &[]), warned]);
        let mut connection = Connection::open(address).unwrap();
        assert_eq!(connection.count(query, Consistency::All).unwrap(), 3);
    }

    #[test]
    fn an_error_is_quoted_and_what_is_no_answer_is_one() {
        let mut body = vec![0, 0, 0x10, 0, 0, 4];
        body.extend_from_slice(b"busy");
        let address = node(vec![answer(OP_ERROR, &body)]);
        assert_eq!(Connection::open(address).unwrap_err().to_string(), "busy");
        let address = node(vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]);
        assert!(Connection::open(address).unwrap_err().to_string().contains("not Cassandra's"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_number_or_none(body in proptest::collection::vec(any::<u8>(), 0..64)) {
            let _ = (number(&body), text(&body), error_text(&body), without_warnings(&body));
        }

        #[test]
        fn every_number_is_read(count: u64) {
            prop_assert_eq!(number(&rows(count)), Some(count));
            prop_assert_eq!(number(&rows(count)[..40]), None);
            prop_assert_eq!(text(&rows(count)), None);
        }

        #[test]
        fn every_text_is_read(name: String, end: usize) {
            let whole = row(VARCHAR, name.as_bytes());
            prop_assert_eq!(text(&whole[..end % whole.len()]), None);
            prop_assert_eq!(text(&whole), Some(name));
        }
    }
}
