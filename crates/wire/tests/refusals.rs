//! What must not be taken for a message, whole and in pieces.

use tidemark_wire::http1::{
    DecoderLimits, HttpError, MAX_CHUNK_LINE_BYTES, MAX_HEADERS, MAX_INTERIM_ANSWERS, RequestDecoder,
    ResponseDecoder,
};

fn limits() -> DecoderLimits {
    DecoderLimits { head_bytes: 256, headers: 8, body_bytes: 64 }
}

fn response_error(pieces: &[&[u8]]) -> Option<HttpError> {
    let mut decoder = ResponseDecoder::new(limits());
    let error = pieces.iter().find_map(|piece| decoder.decode(piece).err())?;
    assert_eq!(decoder.decode(b"HTTP/1.1 200 OK\r\n\r\n"), Err(error), "an error lasts");
    assert_eq!(decoder.finish(), Err(error));
    assert!(!decoder.keep_alive());
    assert!(decoder.has_begun());
    if !decoder.head_complete() && error != HttpError::TooManyInterim {
        assert_eq!((decoder.status(), decoder.reason(), decoder.headers().count()), (0, &b""[..], 0));
    }
    decoder.start(false, true);
    assert!(
        decoder.decode(b"HTTP/1.1 204 \r\n\r\n").is_ok_and(|decoded| decoded.complete),
        "until the next start"
    );
    Some(error)
}

fn request_error(pieces: &[&[u8]]) -> Option<HttpError> {
    let mut decoder = RequestDecoder::new(limits());
    let error = pieces.iter().find_map(|piece| decoder.decode(piece).err())?;
    assert_eq!(decoder.decode(b"GET / HTTP/1.0\r\n\r\n"), Err(error), "an error lasts");
    assert_eq!(decoder.finish(), Err(error));
    assert!(!decoder.keep_alive());
    assert!(decoder.has_begun());
    if !decoder.head_complete() && error != HttpError::HostInvalid {
        assert_eq!((decoder.method(), decoder.target(), decoder.headers().count()), (&b""[..], &b""[..], 0));
    }
    Some(error)
}

/// The error must not depend on how the bytes are cut.
fn always(expected: HttpError, bytes: &[u8], error_of: fn(&[&[u8]]) -> Option<HttpError>) {
    let text = String::from_utf8_lossy(bytes);
    assert_eq!(error_of(&[bytes]), Some(expected), "{text}");
    assert_eq!(error_of(&bytes.chunks(1).collect::<Vec<_>>()), Some(expected), "{text} byte by byte");
    for at in 0..bytes.len() {
        assert_eq!(error_of(&[&bytes[..at], &bytes[at..]]), Some(expected), "{text} split at {at}");
    }
}

/// Whole and byte by byte.
fn malformed(bytes: &str, error_of: fn(&[&[u8]]) -> Option<HttpError>) {
    for pieces in [vec![bytes.as_bytes()], bytes.as_bytes().chunks(1).collect()] {
        let error = error_of(&pieces);
        assert!(matches!(error, Some(HttpError::MalformedHead(_))), "{bytes:?}: {error:?}");
    }
}

fn refused(bytes: &str, expected: HttpError) {
    always(expected, bytes.as_bytes(), response_error);
}

fn refused_chunks(bytes: &str, expected: HttpError) {
    refused(&format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{bytes}"), expected);
}

fn refused_headers(headers: &str, expected: HttpError) {
    refused(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n"), expected);
    let request = format!("POST / HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n");
    always(expected, request.as_bytes(), request_error);
}

#[test]
fn malformed_heads() {
    for bytes in [
        "HTTQ/1.1 200 OK\r\n\r\n",
        "HTTP/1.2 200 OK\r\n\r\n",
        "HTTP/2.0 200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 200 OK\rX: y\r\n\r\n",
        "{\"error\": \"not HTTP\"}",
    ] {
        malformed(bytes, response_error);
    }
}

#[test]
fn what_is_no_http_is_refused_before_its_end() {
    let flood = "this is no HTTP, and it has no end ".repeat(4);
    let single = response_error(&flood.as_bytes().chunks(1).collect::<Vec<_>>());
    assert!(matches!(single, Some(HttpError::MalformedHead(_))), "{single:?}");
    // Not only at the first byte: what comes later in the head is noticed when it has doubled.
    let later = format!("HTTP/1.1 200 OK\r\nX: y\r\nX : y\r\n{}", "X: y\r\n".repeat(8));
    let single = response_error(&later.as_bytes().chunks(1).collect::<Vec<_>>());
    assert!(matches!(single, Some(HttpError::MalformedHead(_))), "{single:?}");
}

#[test]
fn what_stands_before_the_first_line() {
    for bytes in ["\rHTTP/1.1 200 OK\r\n\r\n", "\r\n\r\n\r\n\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", "\r\r\n"] {
        let mut decoder = ResponseDecoder::new(limits());
        let whole = decoder.decode(bytes.as_bytes()).unwrap_err();
        assert!(matches!(whole, HttpError::MalformedHead(_)), "{bytes:?}: {whole:?}");
        decoder.start(false, true);
        let single = bytes.as_bytes().chunks(1).find_map(|byte| decoder.decode(byte).err());
        assert_eq!(single, Some(whole), "{bytes:?}");
        assert!(!decoder.has_begun());
    }
}

#[test]
fn malformed_headers() {
    for headers in [
        "X : y",
        "X\t: y",
        " X: y",
        "X: y\r\n folded",
        "X: y\r\n\tfolded",
        "X",
        ": y",
        "X: a\0b",
        "X: a\rb",
        "X\u{e9}: y",
        "Content-Length: 5\r\n Content-Length: 6",
    ] {
        malformed(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n"), response_error);
        malformed(&format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n\r\n"), request_error);
    }
}

#[test]
fn lengths_that_can_be_understood_in_two_ways() {
    for length in ["", "-1", "+1", "1.0", "0x10", "5 5", "1e3", "18446744073709551616", "５"] {
        refused_headers(&format!("Content-Length: {length}"), HttpError::ContentLengthInvalid);
    }
    refused_headers("Content-Length: 5\r\nX: y\r\ncontent-length: 6", HttpError::ContentLengthConflict);
    refused_headers("Content-Length: 5, 6", HttpError::ContentLengthConflict);
    refused_headers("Content-Length: 5,", HttpError::ContentLengthInvalid);
    refused_headers("Content-Length: ,", HttpError::ContentLengthInvalid);
    let both = HttpError::ContentLengthWithTransferEncoding;
    refused_headers("Content-Length: 5\r\nTransfer-Encoding: chunked", both);
    refused_headers("Transfer-Encoding: chunked\r\nContent-Length: 5", both);
    refused_headers("Transfer-Encoding: chunked\r\nContent-Length: 0", both);
}

#[test]
fn transfer_encodings_other_than_chunked() {
    for coding in
        ["gzip", "gzip, chunked", "chunked, chunked", "identity", "", "xchunked", "chunked;x", "\u{b}chunked"]
    {
        if coding.starts_with('\u{b}') {
            continue; // a control character, refused as a malformed header already
        }
        let header = format!("Transfer-Encoding: {coding}");
        refused_headers(&header, HttpError::TransferEncodingUnsupported);
    }
    let twice = "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked";
    refused_headers(twice, HttpError::TransferEncodingUnsupported);
    refused(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        HttpError::TransferEncodingUnsupported,
    );
}

#[test]
fn malformed_chunks() {
    for line in [
        "\r\n",
        "x\r\n",
        "0x1\r\n",
        "-1\r\n",
        "+1\r\n",
        " 1\r\n",
        "1 1\r\n",
        "1\n",
        "1\rx",
        ";x\r\n",
        "1;a\nb",
        "1;a\u{1}",
        "10000000000000000\r\n",
        "00000000000000001\r\n",
        "ffffffffffffffff",
        "FFFFFFFFFFFFFFFF\r\n",
        "8000000000000000",
    ] {
        refused_chunks(line, HttpError::ChunkSizeInvalid);
    }
    for chunk in ["1\r\nab", "1\r\na\n", "1\r\na\rx", "5\r\nhello0\r\n\r\n"] {
        refused_chunks(chunk, HttpError::ChunkEndMissing);
    }
    for end in [
        "\n",
        "\rx",
        ": y\r\n",
        " X: y\r\n",
        "X\r\n",
        "X : y\r\n",
        "X: y\n",
        "X: y\rz",
        "X: y\r\n folded",
        "X: \u{1}",
    ] {
        refused_chunks(&format!("0\r\n{end}"), HttpError::TrailerMalformed);
    }
}

#[test]
fn chunk_lines_and_trailers_are_bounded() {
    let fits = format!("0;{}\r\n\r\n", "x".repeat(MAX_CHUNK_LINE_BYTES - 3));
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(response_error(&[head.as_bytes(), fits.as_bytes()]), None);
    let long = format!("0;{}\r\n\r\n", "x".repeat(MAX_CHUNK_LINE_BYTES - 2));
    refused_chunks(&long, HttpError::ChunkLineTooLong);
    let blanks = format!("0{}\r\n\r\n", " ".repeat(MAX_CHUNK_LINE_BYTES));
    refused_chunks(&blanks, HttpError::ChunkLineTooLong);
    let trailers = format!("0\r\n{}\r\n", "X: 0123456789\r\n".repeat(20));
    refused_chunks(&trailers, HttpError::HeadTooLarge { limit_bytes: 256 });
}

#[test]
fn heads_and_bodies_larger_than_the_limits() {
    let head_of = |bytes: usize| {
        let frame = "HTTP/1.1 204 \r\nX: \r\n\r\n".len();
        format!("HTTP/1.1 204 \r\nX: {}\r\n\r\n", "x".repeat(bytes - frame))
    };
    assert_eq!(response_error(&[head_of(256).as_bytes()]), None);
    let single = head_of(256);
    assert_eq!(response_error(&single.as_bytes().chunks(1).collect::<Vec<_>>()), None);
    refused(&head_of(257), HttpError::HeadTooLarge { limit_bytes: 256 });
    refused(&head_of(1000), HttpError::HeadTooLarge { limit_bytes: 256 });

    let headers = |count: usize| format!("HTTP/1.1 200 OK\r\n{}\r\n", "X: y\r\n".repeat(count));
    assert_eq!(response_error(&[headers(8).as_bytes()]), None);
    refused(&headers(9), HttpError::TooManyHeaders { limit: 8 });

    let too_large = HttpError::BodyTooLarge { limit_bytes: 64 };
    let body = |bytes: usize| "x".repeat(bytes);
    refused("HTTP/1.1 200 OK\r\nContent-Length: 65\r\n\r\n", too_large);
    refused(&format!("HTTP/1.1 200 OK\r\n\r\n{}", body(65)), too_large);
    // before any of it has come
    refused_chunks(&format!("40\r\n{}\r\n1\r\n", body(64)), too_large);
    refused_chunks("41\r\n", too_large);
    refused_chunks("7fffffffffffffff\r\n", too_large);
    assert_eq!(response_error(&[b"HTTP/1.1 200 OK\r\n\r\n", body(64).as_bytes()]), None);
}

#[test]
fn a_dropped_body_has_the_same_limit() {
    let too_large = HttpError::BodyTooLarge { limit_bytes: 64 };
    let mut decoder = ResponseDecoder::new(limits());
    decoder.start(false, false);
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    assert_eq!(decoder.decode(head.as_bytes()).unwrap_err(), too_large);
    decoder.start(false, false);
    assert!(decoder.decode(b"HTTP/1.1 200 OK\r\nContent-Length: 64\r\n\r\n").is_ok());
    assert!(decoder.decode(&[b'x'; 64]).is_ok_and(|decoded| decoded.complete));
    assert_eq!((decoder.body_bytes(), decoder.body()), (64, &b""[..]));
    decoder.start(false, false);
    assert!(decoder.decode(b"HTTP/1.1 200 OK\r\n\r\n").is_ok());
    assert_eq!(decoder.decode(&[b'x'; 65]).unwrap_err(), too_large);
}

#[test]
fn interim_answers_are_bounded() {
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(MAX_INTERIM_ANSWERS as usize);
    let end = "HTTP/1.1 204 No Content\r\n\r\n";
    assert_eq!(response_error(&[interim.as_bytes(), end.as_bytes()]), None);
    refused(&format!("{interim}HTTP/1.1 103 \r\n\r\n{end}"), HttpError::TooManyInterim);
}

#[test]
fn limits_beyond_the_table_are_cut() {
    let mut decoder = ResponseDecoder::new(DecoderLimits { headers: usize::MAX, ..DecoderLimits::default() });
    let head = |count: usize| format!("HTTP/1.1 204 \r\n{}\r\n", "X: y\r\n".repeat(count));
    assert!(decoder.decode(head(MAX_HEADERS).as_bytes()).is_ok_and(|decoded| decoded.complete));
    decoder.start(false, true);
    let error = decoder.decode(head(MAX_HEADERS + 1).as_bytes());
    assert_eq!(error, Err(HttpError::TooManyHeaders { limit: MAX_HEADERS }));
}

#[test]
fn requests_without_exactly_one_host() {
    let host = HttpError::HostInvalid;
    always(host, b"GET / HTTP/1.1\r\n\r\n", request_error);
    always(host, b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", request_error);
    always(host, b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", request_error);
    assert_eq!(request_error(&[b"GET / HTTP/1.0\r\n\r\n"]), None);
}

#[test]
fn malformed_request_lines() {
    for bytes in [
        "GET /\r\n\r\n",
        "GET / HTTP/2.0\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
        "G(T / HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /\u{1} HTTP/1.1\r\nHost: x\r\n\r\n",
        " GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\u{16}\u{3}\u{1}\u{2}",
    ] {
        malformed(bytes, request_error);
    }
}

#[test]
fn errors_name_the_limit() {
    assert!(HttpError::HeadTooLarge { limit_bytes: 256 }.to_string().contains("256 bytes"));
    assert!(HttpError::TooManyHeaders { limit: 8 }.to_string().contains('8'));
    assert!(HttpError::BodyTooLarge { limit_bytes: 64 }.to_string().contains("64 bytes"));
}

#[test]
fn a_host_that_is_none() {
    for host in ["a b", "u@h", "h:80:80", "[::1", "%zz", "a/b", "\u{e4}"] {
        always(
            HttpError::HostInvalid,
            format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes(),
            request_error,
        );
        let old = format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n");
        assert_eq!(request_error(&[old.as_bytes()]), Some(HttpError::HostInvalid), "{host}");
    }
    // who asks for a target that has no host says none
    assert_eq!(request_error(&[b"GET / HTTP/1.1\r\nHost:\r\n\r\n"]), None);
}
