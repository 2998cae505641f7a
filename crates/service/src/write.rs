//! Heads of answers, as bytes.

use std::cell::RefCell;
use std::time::{Duration, Instant, SystemTime};

use axum::http::{HeaderMap, StatusCode, header};

/// How an answer has to be written for the request that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Manner {
    /// Of the request: 0 for HTTP/1.0, 1 for HTTP/1.1.
    pub(crate) minor_version: u8,
    /// The request was HEAD: there is no body, whatever the length says.
    pub(crate) is_head: bool,
    /// The connection is closed behind this answer.
    pub(crate) closes: bool,
}

/// How the end of a body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// There cannot be one.
    None,
    Bytes(u64),
    Chunked,
    UntilClose,
}

impl Length {
    /// How a body is sent whose length is known, or not.
    pub(crate) fn of(status: StatusCode, exact_bytes: Option<u64>, minor_version: u8) -> Self {
        let has_none = status.is_informational() || matches!(status.as_u16(), 204 | 304);
        match (has_none, exact_bytes, minor_version) {
            (true, ..) => Length::None,
            (_, Some(bytes), _) => Length::Bytes(bytes),
            (_, None, 0) => Length::UntilClose,
            (_, None, _) => Length::Chunked,
        }
    }
}

/// A whole answer with a body at hand.
pub(crate) fn plain(
    out: &mut Vec<u8>,
    (status, content_type): (StatusCode, &str),
    body: &[u8],
    manner: Manner,
    now: Instant,
) {
    status_line(out, status, manner);
    let length = Length::of(status, Some(body.len() as u64), manner.minor_version);
    if !content_type.is_empty() {
        put(out, b"content-type: ", content_type.as_bytes());
    }
    end_of_head(out, length, manner, now);
    if !manner.is_head && length != Length::None {
        out.extend_from_slice(body);
    }
}

/// Status line and headers of an answer. Headers that say where a body ends and what becomes of the connection are
/// the server's own; those given are left out, but for an answer that switches protocols.
pub(crate) fn head(
    out: &mut Vec<u8>,
    (status, headers): (StatusCode, &HeaderMap),
    length: Length,
    manner: Manner,
    now: Instant,
) {
    status_line(out, status, manner);
    let switches = status == StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in headers {
        let is_ours = *name == header::CONNECTION
            || *name == header::CONTENT_LENGTH
            || *name == header::TRANSFER_ENCODING
            || *name == header::DATE;
        if switches || !is_ours {
            out.extend_from_slice(name.as_str().as_bytes());
            put(out, b": ", value.as_bytes());
        }
    }
    if switches {
        out.extend_from_slice(b"\r\n");
    } else {
        end_of_head(out, length, manner, now);
    }
}

/// One piece of a body in chunks; an empty one would end it and is left out.
pub(crate) fn chunk(out: &mut Vec<u8>, piece: &[u8]) {
    if !piece.is_empty() {
        out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        put(out, piece, b"");
    }
}

/// What ends a body in chunks.
pub(crate) const LAST_CHUNK: &[u8] = b"0\r\n\r\n";
/// Asks for the body of a request that waits for being asked.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

fn status_line(out: &mut Vec<u8>, status: StatusCode, manner: Manner) {
    if status == StatusCode::OK && manner.minor_version == 1 {
        return out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
    }
    out.extend_from_slice(if manner.minor_version == 0 { b"HTTP/1.0 " } else { b"HTTP/1.1 " });
    out.extend_from_slice(status.as_str().as_bytes());
    put(out, b" ", status.canonical_reason().unwrap_or_default().as_bytes());
}

fn end_of_head(out: &mut Vec<u8>, length: Length, manner: Manner, now: Instant) {
    match length {
        Length::Bytes(bytes) => put(out, b"content-length: ", itoa::Buffer::new().format(bytes).as_bytes()),
        Length::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
        Length::None | Length::UntilClose => {}
    }
    match (manner.closes, manner.minor_version) {
        (true, _) => out.extend_from_slice(b"connection: close\r\n"),
        (false, 0) => out.extend_from_slice(b"connection: keep-alive\r\n"),
        (false, _) => {}
    }
    put_date(out, now);
    out.extend_from_slice(b"\r\n");
}

/// Two parts of a line, and its end.
fn put(out: &mut Vec<u8>, first: &[u8], second: &[u8]) {
    out.extend_from_slice(first);
    out.extend_from_slice(second);
    out.extend_from_slice(b"\r\n");
}

/// How long the text of a date is used.
const DATE_KEPT: Duration = Duration::from_millis(500);

thread_local! {
    /// When the date was last written, and how.
    static DATE: RefCell<Option<(Instant, String)>> = const { RefCell::new(None) };
}

fn put_date(out: &mut Vec<u8>, now: Instant) {
    DATE.with_borrow_mut(|date| {
        if date.as_ref().is_none_or(|(made, _)| now.saturating_duration_since(*made) > DATE_KEPT) {
            *date = Some((now, httpdate::fmt_http_date(SystemTime::now())));
        }
        if let Some((_, text)) = date {
            put(out, b"date: ", text.as_bytes());
        }
    });
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const MANNER: Manner = Manner { minor_version: 1, is_head: false, closes: false };

    /// What was written, without the date.
    fn written(write: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut out = Vec::new();
        write(&mut out);
        let text = String::from_utf8(out).unwrap();
        let date = text.find("date: ").map(|at| at..at + "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n".len());
        match date {
            Some(date) => {
                let when = &text[date.start + 6..date.end - 2];
                assert!(httpdate::parse_http_date(when).is_ok(), "{when}");
                format!("{}{}", &text[..date.start], &text[date.end..])
            }
            None => text,
        }
    }

    fn ok(manner: Manner) -> String {
        written(|out| plain(out, (StatusCode::OK, "text/plain"), b"hi", manner, Instant::now()))
    }

    #[test]
    fn a_plain_answer() {
        let head = "content-type: text/plain\r\ncontent-length: 2\r\n";
        assert_eq!(ok(MANNER), format!("HTTP/1.1 200 OK\r\n{head}\r\nhi"));
        assert_eq!(ok(Manner { is_head: true, ..MANNER }), format!("HTTP/1.1 200 OK\r\n{head}\r\n"));
        assert_eq!(
            ok(Manner { closes: true, ..MANNER }),
            format!("HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\nhi")
        );
        assert_eq!(
            ok(Manner { minor_version: 0, ..MANNER }),
            format!("HTTP/1.0 200 OK\r\n{head}connection: keep-alive\r\n\r\nhi")
        );
        let none = written(|out| plain(out, (StatusCode::NO_CONTENT, ""), b"", MANNER, Instant::now()));
        assert_eq!(none, "HTTP/1.1 204 No Content\r\n\r\n");
    }

    #[test]
    fn what_tells_the_end_of_a_body_is_written_by_the_server_only() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            (header::CONTENT_LENGTH, "7"),
            (header::TRANSFER_ENCODING, "gzip"),
            (header::CONNECTION, "x"),
            (header::SET_COOKIE, "a=1"),
            (header::SET_COOKIE, "b=2"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let of = |length, manner| {
            written(|out| head(out, (StatusCode::CREATED, &headers), length, manner, Instant::now()))
        };
        let cookies = "HTTP/1.1 201 Created\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n";
        assert_eq!(of(Length::Bytes(3), MANNER), format!("{cookies}content-length: 3\r\n\r\n"));
        assert_eq!(of(Length::Chunked, MANNER), format!("{cookies}transfer-encoding: chunked\r\n\r\n"));
    }

    #[test]
    fn how_the_end_of_a_body_is_told() {
        assert_eq!(Length::of(StatusCode::OK, Some(3), 1), Length::Bytes(3));
        assert_eq!(Length::of(StatusCode::OK, None, 1), Length::Chunked);
        assert_eq!(Length::of(StatusCode::OK, None, 0), Length::UntilClose);
        for status in [StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED, StatusCode::SWITCHING_PROTOCOLS] {
            assert_eq!(Length::of(status, Some(0), 1), Length::None);
        }
    }

    #[test]
    fn an_empty_piece_does_not_end_a_body() {
        let mut out = Vec::new();
        for piece in [&b"in "[..], b"", &[b'x'; 16]] {
            chunk(&mut out, piece);
        }
        assert_eq!(out, b"3\r\nin \r\n10\r\nxxxxxxxxxxxxxxxx\r\n");
    }
}
