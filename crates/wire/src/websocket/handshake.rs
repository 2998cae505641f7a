//! The HTTP request and answer that turn a connection into a WebSocket, from both sides; the server's is for tests and
//! examples.
//!
//! ```
//! use tidemark_wire::http1::{DecoderLimits, RequestDecoder, ResponseDecoder};
//! use tidemark_wire::websocket::handshake;
//!
//! let key = handshake::key([7; 16]);
//! let mut wire = Vec::new();
//! handshake::write_request(&mut wire, b"/chat", b"localhost", &key, &["v2", "v1"])?;
//!
//! let mut server = RequestDecoder::new(DecoderLimits::default());
//! assert!(server.decode(&wire)?.complete);
//! let offer = handshake::check_request(&server)?;
//! assert!(offer.protocols().any(|protocol| protocol == "v1"));
//! let mut answer = Vec::new();
//! handshake::write_answer(&mut answer, offer.key, Some("v1"))?;
//!
//! let mut client = ResponseDecoder::new(DecoderLimits::default());
//! assert!(client.decode(&answer)?.complete);
//! assert_eq!(handshake::check_answer(&client, &key, &["v2", "v1"])?, Some("v1"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

use crate::http1::request::{end_head, write_header, write_host, write_line};
use crate::http1::{HttpError, RequestDecoder, ResponseDecoder};

/// What is hashed behind the key (RFC 6455, section 1.3).
const MAGIC: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A client's key, as it stands in its request: 16 random bytes in base64.
pub type Key = [u8; 24];
/// A server's answer to a key: its SHA-1 with a fixed text, in base64.
pub type Accept = [u8; 28];

/// Why an HTTP message does not lead to a WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    /// The server did not switch.
    #[error("the server answered status {0}; a WebSocket begins with 101")]
    Status(u16),
    /// The request is no GET of HTTP/1.1 with an empty body.
    #[error("a WebSocket is asked for with GET and no body")]
    Method,
    /// No `Upgrade: websocket`.
    #[error("no header Upgrade: websocket")]
    Upgrade,
    /// No `Connection: Upgrade`.
    #[error("no header Connection: Upgrade")]
    Connection,
    /// The answer was not made for this key.
    #[error("Sec-WebSocket-Accept does not belong to the key that was sent")]
    Accept,
    /// The request's key is not 16 bytes in base64, or there are two.
    #[error("there is not one Sec-WebSocket-Key of 16 bytes in base64")]
    Key,
    /// The request speaks another version.
    #[error("Sec-WebSocket-Version is not 13")]
    Version,
    /// The server chose a protocol that was not offered.
    #[error("the server chose a subprotocol that was not offered")]
    Protocol,
    /// The server switched an extension on that was not offered.
    #[error("the server chose an extension, but none was offered")]
    Extension,
}

/// The key made of 16 random bytes.
pub fn key(random: [u8; 16]) -> Key {
    let mut key = [0; 24];
    let written = STANDARD.encode_slice(random, &mut key);
    debug_assert_eq!(written, Ok(24));
    key
}

/// Whether this is what a client may send as its key: 16 bytes in base64.
pub fn is_key(key: &Key) -> bool {
    let mut bytes = [0; 18];
    STANDARD.decode_slice(key, &mut bytes) == Ok(16)
}

/// The answer to a key.
pub fn accept(key: &Key) -> Accept {
    let hash = Sha1::new().chain_update(key).chain_update(MAGIC).finalize();
    let mut accept = [0; 28];
    let written = STANDARD.encode_slice(hash, &mut accept);
    debug_assert_eq!(written, Ok(28));
    accept
}

/// The headers that ask for a WebSocket, without subprotocols: for a caller that writes the rest of the head itself.
pub fn write_upgrade_headers(out: &mut Vec<u8>, key: &Key) {
    out.extend_from_slice(b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n");
    out.extend_from_slice(b"Sec-WebSocket-Key: ");
    out.extend_from_slice(key);
    out.extend_from_slice(b"\r\n");
}

/// A whole request for a WebSocket.
pub fn write_request(
    out: &mut Vec<u8>,
    target: &[u8],
    authority: &[u8],
    key: &Key,
    protocols: &[&str],
) -> Result<(), HttpError> {
    let before = out.len();
    let written =
        write_line(out, "GET", &[target]).and_then(|()| write_host(out, authority)).and_then(|()| {
            write_upgrade_headers(out, key);
            match protocols {
                [] => Ok(()),
                some => write_header(out, b"Sec-WebSocket-Protocol", some.join(", ").as_bytes()),
            }
        });
    match written {
        Ok(()) => end_head(out),
        Err(_) => out.truncate(before),
    }
    written
}

/// Checks a server's answer to the request with `key`; the subprotocol that it chose, if any.
pub fn check_answer<'a>(
    answer: &'a ResponseDecoder,
    key: &Key,
    offered: &[impl AsRef<str>],
) -> Result<Option<&'a str>, HandshakeError> {
    if answer.status() != 101 {
        return Err(HandshakeError::Status(answer.status()));
    }
    check_tokens(answer.headers())?;
    if answer.header("sec-websocket-accept") != Some(&accept(key)) {
        return Err(HandshakeError::Accept);
    }
    if answer.header("sec-websocket-extensions").is_some_and(|value| !value.is_empty()) {
        return Err(HandshakeError::Extension);
    }
    let Some(chosen) = answer.header("sec-websocket-protocol") else { return Ok(None) };
    match std::str::from_utf8(chosen) {
        Ok(chosen) if offered.iter().any(|offer| offer.as_ref() == chosen) => Ok(Some(chosen)),
        _ => Err(HandshakeError::Protocol),
    }
}

/// What a client asks for.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// Its key.
    pub key: &'a Key,
    request: &'a RequestDecoder,
}

impl<'a> Offer<'a> {
    /// The subprotocols that it speaks, the one it likes best first.
    pub fn protocols(&self) -> impl Iterator<Item = &'a str> {
        let of = |(name, _): &(&[u8], &[u8])| name.eq_ignore_ascii_case(b"sec-websocket-protocol");
        let values =
            self.request.headers().filter(of).filter_map(|(_, value)| std::str::from_utf8(value).ok());
        values.flat_map(|value| value.split(',')).map(str::trim).filter(|protocol| !protocol.is_empty())
    }
}

/// Checks a client's request for a WebSocket.
pub fn check_request(request: &RequestDecoder) -> Result<Offer<'_>, HandshakeError> {
    if request.method() != b"GET" || !request.body().is_empty() {
        return Err(HandshakeError::Method);
    }
    check_tokens(request.headers())?;
    if only(request, b"sec-websocket-version") != Some(b"13") {
        return Err(HandshakeError::Version);
    }
    let key = only(request, b"sec-websocket-key").and_then(|key| key.try_into().ok());
    let key: &Key = key.ok_or(HandshakeError::Key)?;
    if is_key(key) { Ok(Offer { key, request }) } else { Err(HandshakeError::Key) }
}

/// The value of a header that must not stand there twice: who would take the first, and who the last?
fn only<'a>(request: &'a RequestDecoder, lower_case_name: &[u8]) -> Option<&'a [u8]> {
    let mut values = request.headers().filter(|(name, _)| name.eq_ignore_ascii_case(lower_case_name));
    let (_, value) = values.next()?;
    values.next().is_none().then_some(value)
}

/// A server's answer that switches; `protocol` is one of those offered.
pub fn write_answer(out: &mut Vec<u8>, key: &Key, protocol: Option<&str>) -> Result<(), HttpError> {
    let before = out.len();
    out.extend_from_slice(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
    );
    out.extend_from_slice(b"Sec-WebSocket-Accept: ");
    out.extend_from_slice(&accept(key));
    out.extend_from_slice(b"\r\n");
    if let Some(protocol) = protocol
        && let Err(error) = write_header(out, b"Sec-WebSocket-Protocol", protocol.as_bytes())
    {
        out.truncate(before);
        return Err(error);
    }
    end_head(out);
    Ok(())
}

/// `Upgrade: websocket` and `Connection: Upgrade`, in whatever case and company.
fn check_tokens<'a>(headers: impl Iterator<Item = (&'a [u8], &'a [u8])>) -> Result<(), HandshakeError> {
    let (mut upgrade, mut connection) = (false, false);
    for (name, value) in headers {
        let has = |token: &[u8]| {
            value.split(|byte| *byte == b',').any(|part| part.trim_ascii().eq_ignore_ascii_case(token))
        };
        match name.len() {
            7 if name.eq_ignore_ascii_case(b"upgrade") => upgrade |= has(b"websocket"),
            10 if name.eq_ignore_ascii_case(b"connection") => connection |= has(b"upgrade"),
            _ => {}
        }
    }
    match (upgrade, connection) {
        (false, _) => Err(HandshakeError::Upgrade),
        (_, false) => Err(HandshakeError::Connection),
        _ => Ok(()),
    }
}
