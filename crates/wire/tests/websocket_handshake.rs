//! The handshake: the standard's own example, and each way in which it can be wrong.

use tidemark_wire::http1::{DecoderLimits, RequestDecoder, ResponseDecoder};
use tidemark_wire::websocket::handshake::{
    HandshakeError, Key, accept, check_answer, check_request, key, write_answer, write_request,
};

const KEY: &Key = b"dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

#[test]
fn the_example_of_the_standard() {
    assert_eq!(&key(*b"the sample nonce"), KEY);
    assert_eq!(accept(KEY), ACCEPT.as_bytes());
}

fn answered(wire: &str, offered: &[&str]) -> Result<Option<String>, HandshakeError> {
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    assert!(decoder.decode(wire.as_bytes()).unwrap().complete, "{wire}");
    check_answer(&decoder, KEY, offered).map(|protocol| protocol.map(str::to_owned))
}

#[test]
fn answers() {
    let good = format!(
        "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nCONNECTION: keep-alive, Upgrade\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    );
    assert_eq!(answered(&good, &[]), Ok(None));
    let with = |line: &str| good.replace("\r\n\r\n", &format!("\r\n{line}\r\n\r\n"));
    assert_eq!(answered(&with("Sec-WebSocket-Protocol: a"), &["b", "a"]), Ok(Some("a".into())));
    assert_eq!(answered(&with("Sec-WebSocket-Protocol: c"), &["b", "a"]), Err(HandshakeError::Protocol));
    let deflate = with("Sec-WebSocket-Extensions: permessage-deflate");
    assert_eq!(answered(&deflate, &[]), Err(HandshakeError::Extension));
    let wrong = [
        ("s3pP", "S3pP", HandshakeError::Accept),
        ("upgrade: WebSocket", "upgrade: h2c", HandshakeError::Upgrade),
        ("keep-alive, Upgrade", "keep-alive", HandshakeError::Connection),
        ("Sec-WebSocket-Accept", "X", HandshakeError::Accept),
        ("101 Switching Protocols\r\n", "403 No\r\nContent-Length: 0\r\n", HandshakeError::Status(403)),
    ];
    for (old, new, error) in wrong {
        assert_eq!(answered(&good.replacen(old, new, 1), &[]), Err(error), "{new}");
    }
}

fn asked(wire: &[u8]) -> Result<Vec<String>, HandshakeError> {
    let mut decoder = RequestDecoder::new(DecoderLimits::default());
    assert!(decoder.decode(wire).unwrap().complete);
    let offer = check_request(&decoder)?;
    assert_eq!(offer.key, KEY);
    Ok(offer.protocols().map(str::to_owned).collect())
}

#[test]
fn requests() {
    let mut wire = Vec::new();
    write_request(&mut wire, b"/chat?x=1", b"localhost:80", KEY, &["v2", "v1"]).unwrap();
    assert_eq!(asked(&wire), Ok(vec!["v2".to_owned(), "v1".to_owned()]));
    let text = String::from_utf8(wire).unwrap();
    assert!(text.starts_with("GET /chat?x=1 HTTP/1.1\r\nHost: localhost:80\r\n"));
    let wrong = [
        ("GET ", "PUT ", HandshakeError::Method),
        ("Upgrade: websocket", "Upgrade: x", HandshakeError::Upgrade),
        ("Connection: Upgrade", "Connection: close", HandshakeError::Connection),
        ("Version: 13", "Version: 8", HandshakeError::Version),
        ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZQ==", HandshakeError::Key),
        ("dGhlIHNhbXBsZSBub25jZQ==", "dGhlIHNhbXBsZSBub25jZ!==", HandshakeError::Key),
    ];
    for (old, new, error) in wrong {
        assert_eq!(asked(text.replacen(old, new, 1).as_bytes()), Err(error), "{new}");
    }
    let twice = |line: &str| text.replacen(line, &format!("{line}\r\n{line}"), 1);
    let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    assert_eq!(asked(twice(key).as_bytes()), Err(HandshakeError::Key));
    assert_eq!(asked(twice("Sec-WebSocket-Version: 13").as_bytes()), Err(HandshakeError::Version));
    let mut out = b"before".to_vec();
    assert!(write_request(&mut out, b"/a b", b"h", KEY, &[]).is_err());
    assert!(write_request(&mut out, b"/", b"h", KEY, &["a\r\nb"]).is_err());
    assert!(write_answer(&mut out, KEY, Some("a\nb")).is_err());
    assert_eq!(out, b"before", "nothing half is left");
}
