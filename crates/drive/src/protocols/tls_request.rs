//! Servers that are asked whether they speak TLS, before it begins on the same connection.

use std::io::{self, ErrorKind, Read, Write};

use crate::io::greeted::Conversation;

/// The question, which the server answers with one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TlsRequest {
    /// What is asked.
    pub question: &'static [u8],
    /// The byte that agrees, and the one that does not.
    pub answers: [u8; 2],
    /// Whether it is gone on without TLS where the server has none.
    pub is_optional: bool,
}

impl TlsRequest {
    /// Asks over a connection that blocks: whether the server speaks TLS.
    ///
    /// # Errors
    /// The server answers something else, or not at all.
    pub fn ask(self, stream: &mut (impl Read + Write)) -> io::Result<bool> {
        stream.write_all(self.question)?;
        let mut answer = [0];
        stream.read_exact(&mut answer).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => {
                io::Error::new(error.kind(), "the server closed the connection when it was asked for TLS")
            }
            _ => error,
        })?;
        let [agrees, refuses] = self.answers;
        match answer[0] {
            answer if answer == agrees => Ok(true),
            answer if answer == refuses => Ok(false),
            _ => Err(odd()),
        }
    }
}

fn odd() -> io::Error {
    io::Error::new(
        ErrorKind::InvalidData,
        "the server does not say whether it speaks TLS; is it another protocol's?",
    )
}

/// What a person is told whose server has no TLS.
pub(crate) fn refused() -> io::Error {
    let words = "the server does not speak TLS, and nothing is sent in clear; switch it on there (`ssl = on`), or say \
         sslmode=disable in the URL";
    io::Error::new(ErrorKind::InvalidData, words)
}

impl Conversation for TlsRequest {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.question);
    }

    fn hear(&mut self, received: &[u8], _: &mut Vec<u8>) -> io::Result<Option<usize>> {
        let [agrees, refuses] = self.answers;
        match received.first() {
            None => Ok(None),
            // what stands behind it is not encrypted: nobody knows whose it is
            Some(answer) if *answer == agrees => Ok(Some(1)),
            Some(answer) if *answer == refuses => Err(refused()),
            Some(_) => Err(odd()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: TlsRequest = TlsRequest { question: b"tls?", answers: *b"SN", is_optional: true };

    #[test]
    fn a_server_agrees_or_a_person_hears_why_not() {
        let hear = |received: &[u8]| REQUEST.clone().hear(received, &mut Vec::new());
        let mut out = Vec::new();
        REQUEST.clone().begin(&mut out);
        assert_eq!(out, b"tls?");
        assert_eq!((hear(b"").unwrap(), hear(b"S").unwrap()), (None, Some(1)));
        assert_eq!(
            hear(b"Smuggled").unwrap(),
            Some(1),
            "the rest is the caller's, who takes nothing before TLS"
        );
        assert!(hear(b"N").unwrap_err().to_string().contains("sslmode=disable"));
        assert!(hear(b"H").unwrap_err().to_string().contains("another protocol"));
    }
}
