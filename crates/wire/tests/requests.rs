//! Requests as a server gets them, cut at every byte.

use tidemark_wire::http1::{DecoderLimits, HttpError, RequestDecoder};

/// Bytes, method, target, body, keep-alive.
type Case = (&'static str, &'static str, &'static str, &'static str, bool);

const CORPUS: &[Case] = &[
    ("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n", "GET", "/a?b=c", "", true),
    ("GET / HTTP/1.0\r\n\r\n", "GET", "/", "", false),
    ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "GET", "/", "", true),
    ("DELETE /x HTTP/1.1\r\nhost: x\r\nConnection: close\r\n\r\n", "DELETE", "/x", "", false),
    ("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 7\r\n\r\na=1&b=2", "POST", "/p", "a=1&b=2", true),
    ("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", "POST", "/p", "", true),
    (
        "PUT /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4;x=y\r\nabcd\r\n1\r\ne\r\n0\r\nT: r\r\n\r\n",
        "PUT",
        "/p",
        "abcde",
        true,
    ),
    ("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS", "*", "", true),
    ("\r\nGET http://x/y HTTP/1.1\r\nHost: x\r\n\r\n", "GET", "http://x/y", "", true),
];

#[test]
fn split_at_every_byte_with_another_request_behind() {
    let mut decoder = RequestDecoder::new(DecoderLimits::default());
    for &(text, method, target, body, keep_alive) in CORPUS {
        let bytes = [text, CORPUS[4].0].concat();
        let bytes = bytes.as_bytes();
        for split in 0..=text.len() {
            decoder.start();
            let first = decoder.decode(&bytes[..split]).unwrap();
            assert_eq!(first.complete, split == text.len(), "{text}");
            assert_eq!(first.consumed, split);
            let second = decoder.decode(&bytes[split..]).unwrap();
            assert!(second.complete);
            assert_eq!(first.consumed + second.consumed, text.len(), "{text}, split at {split}");
            assert_eq!(decoder.method(), method.as_bytes());
            assert_eq!(decoder.target(), target.as_bytes());
            assert_eq!(decoder.body(), body.as_bytes());
            assert_eq!(decoder.keep_alive(), keep_alive);
            assert_eq!(decoder.finish(), Ok(()));
        }
    }
}

#[test]
fn closed_at_every_byte() {
    let mut decoder = RequestDecoder::new(DecoderLimits::default());
    for (text, ..) in CORPUS {
        for length in 0..text.len() {
            decoder.start();
            decoder.decode(&text.as_bytes()[..length]).unwrap();
            let blank = text[..length].trim().is_empty();
            let expected = if blank { HttpError::Empty } else { HttpError::Truncated };
            assert_eq!(decoder.finish(), Err(expected), "{text} closed after {length}");
        }
    }
}
