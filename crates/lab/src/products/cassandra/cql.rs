//! Cassandra's own protocol, by which a node is asked for one value: a number, `SELECT count(*) …`, or a name. Often it
//! only matters that there is an answer.

use std::io;
use std::net::{SocketAddr, TcpStream};

use serde_json::{Map, Value};
use tidemark_drive::{Cassandra, Protocol, Target};
use tidemark_wire::cql::{Kind, ReplyDecoder, ReplyLimits, write};

use crate::exchange::{exchange, no_answer, refused};
use crate::stores::launcher::dial;

/// Largest answer that is read, bytes.
const ANSWER_BYTES_MAX: usize = 1 << 20;

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
        let mut stream = dial(address)?;
        let mut target = Target {
            address: address.into(),
            others: Vec::new(),
            authority: String::new(),
            base_path: String::new(),
            tls: None,
            protocol: Protocol::Cassandra(Cassandra::default()),
            proxy: None,
        };
        target.speak(&mut stream, |_| ())?;
        Ok(Connection(stream))
    }

    /// The one number that a query gives.
    pub fn count(&mut self, query: &str, consistency: Consistency) -> io::Result<u64> {
        let value = self.value(query, consistency)?;
        value.as_u64().ok_or_else(|| no_answer("not a number"))
    }

    /// The one text that a query gives.
    pub fn text(&mut self, query: &str, consistency: Consistency) -> io::Result<String> {
        match self.value(query, consistency)? {
            Value::String(text) => Ok(text),
            _ => Err(no_answer("not a text")),
        }
    }

    fn value(&mut self, query: &str, consistency: Consistency) -> io::Result<Value> {
        let rows = self.rows(query, consistency)?;
        let mut rows: Vec<Map<String, Value>> = serde_json::from_slice(&rows).map_err(no_answer)?;
        let values: Vec<Value> = rows.pop().into_iter().flatten().map(|(_, value)| value).collect();
        match <[Value; 1]>::try_from(values) {
            Ok([value]) if rows.is_empty() => Ok(value),
            _ => Err(no_answer("it is not one value")),
        }
    }

    /// Has a statement carried out.
    #[cfg(test)]
    pub fn execute(&mut self, statement: &str) -> io::Result<()> {
        self.rows(statement, Consistency::One).map(drop)
    }

    fn rows(&mut self, statement: &str, consistency: Consistency) -> io::Result<Vec<u8>> {
        let mut question = Vec::new();
        write::query(statement, consistency as u16, &mut question);
        let mut decoder = ReplyDecoder::new(ReplyLimits { body_bytes: ANSWER_BYTES_MAX });
        decoder.start(None, true);
        exchange(&mut self.0, &question, |bytes| decoder.decode(bytes))?;
        match decoder.kind() {
            Kind::Error => Err(refused(statement, &String::from_utf8_lossy(decoder.body()))),
            _ => Ok(decoder.body().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    const READY: u8 = 0x02;
    const RESULT: u8 = 0x08;
    /// Types of a column: a number of 64 bits, a text.
    const BIGINT: u16 = 0x02;
    const VARCHAR: u16 = 0x0d;

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

    fn answer(opcode: u8, body: &[u8]) -> Vec<u8> {
        let mut frame = vec![0x84, 0, 0, 0, opcode];
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
                let mut head = [0; 9];
                stream.read_exact(&mut head).unwrap();
                let length = u32::from_be_bytes(head[5..].try_into().unwrap());
                stream.read_exact(&mut vec![0; length as usize]).unwrap();
                stream.write_all(&answer).unwrap();
            }
        });
        address
    }

    fn answering(rows: &[u8]) -> Connection {
        Connection::open(node(vec![answer(READY, &[]), answer(RESULT, rows)])).unwrap()
    }

    #[test]
    fn a_node_is_asked_for_a_value() {
        let count = |rows: &[u8]| answering(rows).count("SELECT count(*) FROM k.t", Consistency::All);
        let text = |rows: &[u8]| answering(rows).text("SELECT name FROM k.t", Consistency::One);
        let (two, name) = (row(BIGINT, &2u64.to_be_bytes()), row(VARCHAR, b"tidemark"));
        assert_eq!((count(&two).unwrap(), text(&name).unwrap().as_str()), (2, "tidemark"));
        assert!(count(&name).is_err() && text(&two).is_err() && count(&two[..40]).is_err());
        let void = [0, 0, 0, 1];
        assert!(count(&void).is_err() && text(&void).is_err());
    }

    #[test]
    fn an_error_is_quoted_and_what_is_no_answer_is_one() {
        let busy = || answer(0x00, b"\0\0\x10\x01\0\x04busy");
        let error = Connection::open(node(vec![busy()])).unwrap_err().to_string();
        assert!(error.contains("busy"), "{error}");
        let mut connection = Connection::open(node(vec![answer(READY, &[]), busy()])).unwrap();
        let error = connection.count("SELECT", Consistency::One).unwrap_err().to_string();
        assert_eq!(error, "SELECT: it answers \"0x1001: busy\"");
        let address = node(vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()]);
        assert!(Connection::open(address).unwrap_err().to_string().contains("does not speak Cassandra's"));
    }
}
