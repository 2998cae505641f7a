//! Answers of every shape, delivered in every way that a socket may cut them.

use tidemark_wire::http1::{DecoderLimits, HttpError, MAX_CHUNK_LINE_BYTES, ResponseDecoder};

/// One answer and what must be understood of it.
#[derive(Clone)]
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    head_request: bool,
    status: u16,
    reason: &'static str,
    header: (&'static str, Option<&'static str>),
    body: &'static str,
    keep_alive: bool,
    interim_answers: u32,
    ends_by_close: bool,
}

fn case(name: &'static str, bytes: &str, status: u16, body: &'static str) -> Case {
    Case {
        name,
        bytes: bytes.as_bytes().to_vec(),
        head_request: false,
        status,
        reason: "OK",
        header: ("x-none", None),
        body,
        keep_alive: true,
        interim_answers: 0,
        ends_by_close: false,
    }
}

fn corpus() -> Vec<Case> {
    vec![
        Case {
            header: ("content-type", Some("text/plain")),
            ..case(
                "content-length",
                "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCONTENT-LENGTH: 5\r\n\r\nhello",
                200,
                "hello",
            )
        },
        case("empty body", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 200, ""),
        case(
            "the same length twice",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
            200,
            "ok",
        ),
        case(
            "a list of the same length",
            "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\ncontent-length: 2 ,2\r\n\r\nok",
            200,
            "ok",
        ),
        Case {
            reason: "",
            header: ("x-empty", Some("")),
            ..case(
                "no reason",
                "HTTP/1.1 500\r\nX-Empty:\r\nX-Empty: 2\r\nContent-Length: 1\r\n\r\n!",
                500,
                "!",
            )
        },
        Case {
            reason: "Not Found Here",
            ..case("long reason", "HTTP/1.1 404 Not Found Here\r\nContent-Length: 1\r\n\r\nx", 404, "x")
        },
        Case {
            header: ("transfer-encoding", Some("chunked")),
            ..case(
                "chunked",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n \r\n05\r\nworld\r\n0\r\n\r\n",
                200,
                "hello world",
            )
        },
        case(
            "chunked with extensions, blanks and trailers",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\nA;name=\"va;lue\"\r\n0123456789\r\n\
             1 \t;x\r\na\r\n2  \r\n\r\n\r\n000;last\r\nExpires: never\r\nX-Sum:\r\n\r\n",
            200,
            "0123456789a\r\n",
        ),
        case("empty and chunked", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 200, ""),
        Case {
            interim_answers: 1,
            header: ("x-hint", None),
            ..case(
                "100 then 200",
                "HTTP/1.1 100 Continue\r\nX-Hint: 1\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
                200,
                "ok",
            )
        },
        Case {
            interim_answers: 3,
            ..case(
                "several interim answers",
                "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\nContent-Length: 9\r\n\r\n\
                 HTTP/1.1 100\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
                200,
                "ok",
            )
        },
        Case {
            reason: "Switching Protocols",
            keep_alive: false,
            header: ("upgrade", Some("websocket")),
            ..case(
                "101 is final",
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
                101,
                "",
            )
        },
        Case {
            head_request: true,
            ..case("answer to HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", 200, "")
        },
        Case {
            head_request: true,
            ..case("chunked to HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, "")
        },
        Case { head_request: true, ..case("no length to HEAD", "HTTP/1.1 200 OK\r\n\r\n", 200, "") },
        Case { reason: "No Content", ..case("204", "HTTP/1.1 204 No Content\r\n\r\n", 204, "") },
        Case {
            reason: "Not Modified",
            header: ("etag", Some("\"x\"")),
            ..case(
                "304 with a length",
                "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 1000\r\n\r\n",
                304,
                "",
            )
        },
        Case {
            keep_alive: false,
            ..case(
                "Connection: close",
                "HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 2\r\n\r\nok",
                200,
                "ok",
            )
        },
        Case {
            keep_alive: true,
            ..case(
                "keep-alive of 1.0",
                "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 2\r\n\r\nok",
                200,
                "ok",
            )
        },
        Case {
            keep_alive: false,
            ..case("1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok")
        },
        Case {
            keep_alive: false,
            ends_by_close: true,
            ..case(
                "ended by close",
                "HTTP/1.1 200 OK\r\nX: y\r\n\r\nuntil the\r\n\r\nend",
                200,
                "until the\r\n\r\nend",
            )
        },
        Case {
            keep_alive: false,
            ends_by_close: true,
            ..case("ended by close, 1.0", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", 200, "")
        },
        case("blank lines before", "\r\n\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, "ok"),
        case("lines ended by LF alone", "HTTP/1.1 200 OK\nContent-Length: 2\n\nok", 200, "ok"),
    ]
}

fn check(case: &Case, decoder: &mut ResponseDecoder, keep_body: bool, how: &str) {
    let name = case.name;
    assert_eq!(decoder.status(), case.status, "{name}, {how}");
    assert_eq!(decoder.reason(), case.reason.as_bytes(), "{name}, {how}");
    assert_eq!(decoder.header(case.header.0), case.header.1.map(str::as_bytes), "{name}, {how}");
    assert_eq!(decoder.body(), if keep_body { case.body.as_bytes() } else { b"" }, "{name}, {how}");
    assert_eq!(decoder.body_bytes(), case.body.len() as u64, "{name}, {how}");
    assert_eq!(decoder.keep_alive(), case.keep_alive, "{name}, {how}");
    assert_eq!(decoder.interim_answers(), case.interim_answers, "{name}, {how}");
}

/// Feeds pieces as a connection would; returns how much was taken and whether the answer was complete.
fn feed(decoder: &mut ResponseDecoder, pieces: &[&[u8]]) -> Result<(usize, bool), HttpError> {
    let mut total = 0;
    for (index, piece) in pieces.iter().enumerate() {
        let decoded = decoder.decode(piece)?;
        total += decoded.consumed;
        if decoded.complete {
            let again = decoder.decode(pieces.get(index + 1).unwrap_or(&&b"more"[..]))?;
            assert_eq!((again.consumed, again.complete), (0, true), "nothing is taken once complete");
            return Ok((total, true));
        }
        assert_eq!(decoded.consumed, piece.len(), "an incomplete answer takes everything");
        assert_eq!(
            decoder.has_begun(),
            total > 0 && pieces.concat()[..total].iter().any(|b| !b"\r\n".contains(b))
        );
    }
    Ok((total, false))
}

fn run(case: &Case, decoder: &mut ResponseDecoder, pieces: &[&[u8]], keep_body: bool, how: &str) {
    decoder.start(case.head_request, keep_body);
    assert!(!decoder.has_begun());
    let (consumed, complete) = feed(decoder, pieces).unwrap_or_else(|e| panic!("{}, {how}: {e}", case.name));
    assert_eq!(consumed, case.bytes.len(), "{}, {how}", case.name);
    assert_eq!(complete, !case.ends_by_close, "{}, {how}", case.name);
    assert_eq!(decoder.finish(), Ok(()), "{}, {how}", case.name);
    assert!(decoder.has_begun());
    check(case, decoder, keep_body, how);
}

#[test]
fn split_in_two_and_three_at_every_byte() {
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    for case in corpus() {
        let bytes = &case.bytes[..];
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                run(&case, &mut decoder, &pieces, true, &format!("split at {first} and {second}"));
            }
        }
    }
}

#[test]
fn byte_by_byte_kept_and_dropped() {
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    for case in corpus() {
        let pieces: Vec<&[u8]> = case.bytes.chunks(1).collect();
        run(&case, &mut decoder, &pieces, true, "byte by byte");
        run(&case, &mut decoder, &pieces, false, "byte by byte, dropped");
        run(&case, &mut decoder, &[&case.bytes], false, "whole, dropped");
    }
}

#[test]
fn pipelined_pairs_split_at_every_byte() {
    let corpus = corpus();
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    for first in corpus.iter().filter(|case| !case.ends_by_close) {
        for second in corpus.iter().filter(|case| !case.ends_by_close) {
            let both = [&first.bytes[..], &second.bytes[..]].concat();
            for split in 0..=both.len() {
                pair(&mut decoder, [first, second], &both, split);
            }
        }
    }
}

/// Decodes two answers that lie behind each other, of which the first `split` bytes come first.
fn pair(decoder: &mut ResponseDecoder, cases: [&Case; 2], both: &[u8], split: usize) {
    let mut at = 0;
    let mut available = split;
    for case in cases {
        decoder.start(case.head_request, true);
        let begin = at;
        loop {
            let decoded = decoder.decode(&both[at..available]).unwrap();
            at += decoded.consumed;
            if decoded.complete {
                break;
            }
            assert_eq!((at, available), (split, split));
            available = both.len();
        }
        assert_eq!(at - begin, case.bytes.len(), "{}, split {split}", case.name);
        check(case, decoder, true, "pipelined");
    }
}

#[test]
fn closed_at_every_byte() {
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    for case in corpus() {
        let head_bytes = case.bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
        for length in 0..case.bytes.len() {
            decoder.start(case.head_request, true);
            let bytes = &case.bytes[..length];
            assert_eq!(feed(&mut decoder, &[bytes]), Ok((length, false)), "{}", case.name);
            let only_blank = bytes.iter().all(|byte| b"\r\n".contains(byte));
            let expected = match case.ends_by_close && head_bytes.is_some_and(|head| length >= head) {
                true => Ok(()),
                false if only_blank => Err(HttpError::Empty),
                false => Err(HttpError::Truncated),
            };
            assert_eq!(decoder.finish(), expected, "{} closed after {length}", case.name);
        }
    }
}

#[test]
fn headers_come_in_order_and_as_sent() {
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    decoder
        .decode(
            b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length:0\r\nset-cookie:  b=2 \r\nX: \xe9\r\n\r\n",
        )
        .unwrap();
    let headers: Vec<_> = decoder.headers().collect();
    let expected: [(&[u8], &[u8]); 4] =
        [(b"Set-Cookie", b"a=1"), (b"Content-Length", b"0"), (b"set-cookie", b"b=2"), (b"X", b"\xe9")];
    assert_eq!(headers, expected);
    assert_eq!(decoder.header("set-cookie"), Some(&b"a=1"[..]));
}

#[test]
fn long_trailers_do_not_count_against_the_next_answer() {
    let trailers = "X: 0123456789\r\n".repeat(MAX_CHUNK_LINE_BYTES / 10);
    let answer =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n{trailers}\r\n");
    let mut decoder = ResponseDecoder::new(DecoderLimits::default());
    for _ in 0..3 {
        decoder.start(false, true);
        assert_eq!(feed(&mut decoder, &[answer.as_bytes()]), Ok((answer.len(), true)));
        assert_eq!(decoder.body(), b"ok");
    }
}
