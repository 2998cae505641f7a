//! An HTTP proxy between the driver and a server.
//!
//! Plain requests name their server in full (RFC 9112, 3.2.2); what is secured, or becomes a WebSocket, goes through a
//! tunnel that each connection asks for (`CONNECT`, RFC 9110, 9.3.6) before it is open.

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};

use crate::io::greeted::{Conversation, converse};
use crate::protocols::http::HEADERS;

/// Most bytes of the head by which a proxy answers.
const HEAD_BYTES: usize = 16 << 10;
/// The status by which it asks who comes.
const UNAUTHENTICATED: u16 = 407;
/// Ports of servers whose URLs do not say them.
const PORT: u16 = 80;
const SECURED_PORT: u16 = 443;

/// An HTTP proxy.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    /// `host:port`, for a person.
    pub name: String,
    /// What `Proxy-Authorization` says, where it is told who comes.
    pub authorization: Option<String>,
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxy").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Proxy {
    /// What it is told in the head of each request, whole lines.
    pub fn head(&self) -> String {
        self.authorization
            .as_ref()
            .map_or_else(String::new, |says| format!("Proxy-Authorization: {says}\r\n"))
    }

    /// Asks for a tunnel to a server that requests name so, over a connection that blocks.
    ///
    /// # Errors
    /// It does not make one, and says why.
    pub fn connect(
        &self,
        authority: &str,
        is_secured: bool,
        stream: &mut (impl Read + Write),
    ) -> io::Result<()> {
        converse(self.tunnel(authority, is_secured), stream)
    }

    /// What asks for a tunnel.
    pub fn tunnel(&self, authority: &str, is_secured: bool) -> Tunnel {
        let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let usual = if is_secured { SECURED_PORT } else { PORT };
        let place = if has_port { authority.to_owned() } else { format!("{authority}:{usual}") };
        let ask = format!("CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{}\r\n", self.head());
        let name = self.name.as_str().into();
        Tunnel { name, ask: ask.into_bytes().into(), answer: answer() }
    }
}

fn answer() -> ResponseDecoder {
    let limits = DecoderLimits { head_bytes: HEAD_BYTES, headers: HEADERS, body_bytes: 0 };
    let mut answer = ResponseDecoder::new(limits);
    // nothing but the head belongs to it, whatever it says
    answer.start(true, false);
    answer
}

/// The conversation by which one connection becomes a tunnel.
pub struct Tunnel {
    name: Arc<str>,
    ask: Arc<[u8]>,
    answer: ResponseDecoder,
}

impl fmt::Debug for Tunnel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tunnel").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Tunnel {
    /// The same for another connection.
    pub(crate) fn again(&self) -> Tunnel {
        Tunnel { name: self.name.clone(), ask: self.ask.clone(), answer: answer() }
    }

    /// What the proxy is asked.
    pub fn ask(&self) -> &[u8] {
        &self.ask
    }

    /// Takes what the proxy says; once the tunnel is there, how much of it belonged to that.
    ///
    /// # Errors
    /// It makes none, and says why.
    pub fn answered(&mut self, received: &[u8]) -> io::Result<Option<usize>> {
        let decoded = self.answer.decode(received).map_err(|error| {
            let words = format!("the proxy {} answers CONNECT with what is no HTTP: {error}", self.name);
            io::Error::new(ErrorKind::InvalidData, words)
        })?;
        if !decoded.complete {
            return Ok(None);
        }
        let status = self.answer.status();
        let hint = match status {
            200..=299 => return Ok(Some(decoded.consumed)),
            UNAUTHENTICATED => {
                ": it requires authentication; give it a user and a password in the URL of the proxy"
            }
            _ => "",
        };
        let words = format!("the proxy {} answers CONNECT with status {status}{hint}", self.name);
        Err(io::Error::new(ErrorKind::ConnectionRefused, words))
    }
}

impl Conversation for Tunnel {
    fn begin(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.ask);
    }

    fn hear(&mut self, received: &[u8], _: &mut Vec<u8>) -> io::Result<Option<usize>> {
        self.answered(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy() -> Proxy {
        Proxy { name: "p:3128".into(), authorization: Some("Basic bWU6bWluZQ==".into()) }
    }

    fn hear(answers: &[&str]) -> Result<Option<usize>, String> {
        let mut tunnel = proxy().tunnel("h", true);
        let mut out = Vec::new();
        tunnel.begin(&mut out);
        let mut heard = Ok(None);
        for answer in answers {
            heard = tunnel.hear(answer.as_bytes(), &mut out).map_err(|error| error.to_string());
        }
        heard
    }

    #[test]
    fn a_tunnel_is_asked_for_by_host_and_port() {
        for (authority, is_secured, place) in [
            ("h", true, "h:443"),
            ("h", false, "h:80"),
            ("h:81", false, "h:81"),
            ("[::1]", true, "[::1]:443"),
            ("[::1]:9", true, "[::1]:9"),
        ] {
            let mut out = Vec::new();
            proxy().tunnel(authority, is_secured).again().begin(&mut out);
            let wanted = format!(
                "CONNECT {place} HTTP/1.1\r\nHost: {place}\r\nProxy-Authorization: Basic bWU6bWluZQ==\r\n\r\n"
            );
            assert_eq!(String::from_utf8(out).unwrap(), wanted);
        }
        let open = Proxy { authorization: None, ..proxy() };
        assert_eq!(open.head(), "");
        assert!(!format!("{:?}", proxy()).contains("bWU6"), "what is secret is not told");
    }

    #[test]
    fn only_a_good_answer_is_a_tunnel() {
        let good = "HTTP/1.1 200 Connection established\r\n\r\n";
        assert_eq!(hear(&[good]), Ok(Some(good.len())));
        assert_eq!(hear(&["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n"]), Ok(None));
        assert_eq!(hear(&["HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", "\r\n"]), Ok(Some(2)));
        let refused = hear(&["HTTP/1.1 407 Who?\r\nContent-Length: 3\r\n\r\n"]).unwrap_err();
        assert!(
            refused.contains("p:3128")
                && refused.contains("407")
                && refused.contains("a user and a password")
        );
        assert!(hear(&["HTTP/1.1 503 No\r\n\r\n"]).unwrap_err().ends_with("with status 503"));
        assert!(hear(&["220 smtp ready\r\n"]).unwrap_err().contains("no HTTP"));
    }
}
