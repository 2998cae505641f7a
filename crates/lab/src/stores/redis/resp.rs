//! A connection by which the lab asks a node that it has started: one command after the other, each answer waited for.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use tidemark_wire::resp::{Kind, ReplyDecoder, ReplyLimits, write_command};

use crate::stores::launcher::dial;

/// Most bytes of an answer: `CLUSTER NODES` has a line for each node, `INFO` a few hundred.
const ANSWER_BYTES_MAX: usize = 1 << 20;

/// A connection to a node.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    decoder: ReplyDecoder,
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// Where nobody listens there.
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let limits = ReplyLimits { body_bytes: ANSWER_BYTES_MAX };
        Ok(Connection { stream: dial(address)?, decoder: ReplyDecoder::new(limits) })
    }

    /// Connects, with the password.
    ///
    /// # Errors
    /// Where nobody listens there, or the password is not taken.
    pub fn with_password(address: SocketAddr, password: &str) -> io::Result<Connection> {
        let mut connection = Connection::open(address)?;
        connection.demand(&["AUTH", password])?;
        Ok(connection)
    }

    /// The answer to a command as a text, an array as JSON; or the error that it is.
    ///
    /// # Errors
    /// Where no answer comes.
    pub fn ask(&mut self, words: &[&str]) -> io::Result<Result<String, String>> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        let mut out = Vec::new();
        write_command(&words, &mut out);
        self.stream.write_all(&out)?;
        self.decoder.start(true);
        let mut buffer = [0; 8 << 10];
        loop {
            let bytes = self.stream.read(&mut buffer)?;
            if bytes == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // one command, one answer: nothing comes behind it
            let decoded = self.decoder.decode(&buffer[..bytes]);
            if decoded.map_err(|error| io::Error::other(format!("its answer is none: {error}")))?.complete {
                break;
            }
        }
        let text = String::from_utf8_lossy(self.decoder.body()).into_owned();
        Ok(if self.decoder.kind() == Kind::Error { Err(text) } else { Ok(text) })
    }

    /// The same, where an error is not expected.
    ///
    /// # Errors
    /// Where no answer comes, or an error.
    pub fn demand(&mut self, words: &[&str]) -> io::Result<String> {
        self.ask(words)?.map_err(|error| io::Error::other(format!("{}: it answers `{error}`", words[0])))
    }
}
