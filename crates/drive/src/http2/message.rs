//! Requests and answers between the text of HTTP/1.1, which sessions write and read, and the library's forms.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName};
use http::uri::{PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};
use tidemark_wire::http1::{DecoderLimits, MAX_HEAD_BYTES, MAX_HEADERS, RequestDecoder};

/// Headers that speak of an HTTP/1.1 connection; HTTP/2 forbids them.
const OF_CONNECTION: [&[u8]; 6] =
    [b"connection", b"keep-alive", b"proxy-connection", b"transfer-encoding", b"upgrade", b"host"];

/// Reads requests, and knows the last one: most loads send the same again and again.
pub(super) struct Reader {
    scheme: Scheme,
    decoder: RequestDecoder,
    text: Vec<u8>,
    last: Option<(Request<()>, Bytes)>,
}

impl Reader {
    /// For requests by TLS or without.
    pub fn new(is_secure: bool) -> Self {
        let limits =
            DecoderLimits { head_bytes: MAX_HEAD_BYTES, headers: MAX_HEADERS, body_bytes: usize::MAX };
        Reader {
            scheme: if is_secure { Scheme::HTTPS } else { Scheme::HTTP },
            decoder: RequestDecoder::new(limits),
            text: Vec::new(),
            last: None,
        }
    }

    /// A whole request as the driver renders it; in words why it cannot be one of HTTP/2.
    pub fn read(&mut self, text: &[u8]) -> Result<(Request<()>, Bytes), String> {
        if self.text == text
            && let Some(last) = &self.last
        {
            return Ok(last.clone());
        }
        self.last = None;
        let read = self.translate(text)?;
        self.text.clear();
        self.text.extend_from_slice(text);
        self.last = Some(read.clone());
        Ok(read)
    }

    fn translate(&mut self, text: &[u8]) -> Result<(Request<()>, Bytes), String> {
        let wrong = |what: &str| format!("the request cannot be sent: {what}");
        self.decoder.start();
        match self.decoder.decode(text) {
            Ok(decoded) if decoded.complete => {}
            Ok(_) => return Err(wrong("it is not whole")),
            Err(error) => return Err(wrong(&error.to_string())),
        }
        let authority = self.decoder.header("host").unwrap_or_default();
        let path = PathAndQuery::try_from(self.decoder.target()).map_err(|_| wrong("its path"))?;
        let uri = Uri::builder().scheme(self.scheme.clone()).authority(authority).path_and_query(path);
        let mut request = Request::new(());
        *request.uri_mut() = uri.build().map_err(|_| wrong("its host or path"))?;
        *request.method_mut() = Method::from_bytes(self.decoder.method()).map_err(|_| wrong("its method"))?;
        *request.version_mut() = Version::HTTP_2;
        let headers: &mut HeaderMap = request.headers_mut();
        for (name, value) in self.decoder.headers() {
            if OF_CONNECTION.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden)) {
                continue;
            }
            let name = HeaderName::from_bytes(name).map_err(|_| wrong("the name of a header"))?;
            let value = HeaderValue::from_bytes(value).map_err(|_| wrong("the value of a header"))?;
            headers.append(name, value);
        }
        Ok((request, Bytes::copy_from_slice(self.decoder.body())))
    }
}

/// How the end of an answer's body is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// There is none.
    Bodiless,
    /// By its length.
    Length,
    /// In chunks.
    Chunked,
}

/// Writes an answer's head, and how its body goes on. `has_ended`: nothing comes behind it.
pub(super) fn write_head<T>(
    answer: &Response<T>,
    is_head: bool,
    has_ended: bool,
    out: &mut Vec<u8>,
) -> Framing {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(answer.status().as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(answer.status().canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
    for (name, value) in answer.headers() {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    let status = answer.status().as_u16();
    let framing = if is_head || status == 204 || status == 304 {
        Framing::Bodiless
    } else if answer.headers().contains_key(CONTENT_LENGTH) {
        Framing::Length
    } else if has_ended {
        out.extend_from_slice(b"content-length: 0\r\n");
        Framing::Length
    } else {
        out.extend_from_slice(b"transfer-encoding: chunked\r\n");
        Framing::Chunked
    };
    out.extend_from_slice(b"\r\n");
    framing
}

/// Writes a piece of a body.
pub(super) fn write_piece(framing: Framing, piece: &[u8], out: &mut Vec<u8>) {
    match framing {
        Framing::Bodiless => {}
        Framing::Length => out.extend_from_slice(piece),
        // an empty chunk would be the last
        Framing::Chunked if piece.is_empty() => {}
        Framing::Chunked => {
            out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Writes the end of a body.
pub(super) fn write_end(framing: Framing, out: &mut Vec<u8>) {
    if framing == Framing::Chunked {
        out.extend_from_slice(b"0\r\n\r\n");
    }
}

#[cfg(test)]
mod tests {
    use tidemark_wire::http1::ResponseDecoder;

    use super::*;

    #[test]
    fn a_request_keeps_all_but_what_speaks_of_its_connection() {
        let mut reader = Reader::new(true);
        let text =
            b"POST /a?b=c HTTP/1.1\r\nHost: h:81\r\nConnection: close\r\nX-A: 1\r\nx-a: 2\r\nCookie: k=v\r\n\
                     Content-Length: 3\r\n\r\nxyz";
        for _ in 0..2 {
            let (request, body) = reader.read(text).unwrap();
            assert_eq!(request.uri(), "https://h:81/a?b=c");
            assert_eq!((request.method(), &body[..]), (&Method::POST, &b"xyz"[..]));
            let names: Vec<&str> = request.headers().iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["x-a", "x-a", "cookie", "content-length"]);
        }
        let (other, body) = reader.read(b"GET / HTTP/1.1\r\nHost: h\r\n\r\n").unwrap();
        assert_eq!((other.uri().path(), body.len(), other.headers().len()), ("/", 0, 0));
        for wrong in [&b"GET / HTTP/1.1\r\nHost: h\r\n"[..], b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b"\r\n"]
        {
            assert!(reader.read(wrong).unwrap_err().starts_with("the request cannot be sent"));
        }
    }

    fn decoded(answer: &Response<()>, is_head: bool, pieces: &[&[u8]]) -> ResponseDecoder {
        let mut text = Vec::new();
        let framing = write_head(answer, is_head, pieces.is_empty(), &mut text);
        pieces.iter().for_each(|piece| write_piece(framing, piece, &mut text));
        write_end(framing, &mut text);
        let mut decoder = ResponseDecoder::new(DecoderLimits::default());
        decoder.start(is_head, true);
        let decoded = decoder.decode(&text).unwrap();
        assert!(decoded.complete && decoded.consumed == text.len(), "{}", String::from_utf8_lossy(&text));
        decoder
    }

    #[test]
    fn an_answer_is_whole_for_the_codec_of_http_1_1_however_its_end_was_told() {
        let answer = |status: u16, length: Option<&str>| {
            let mut answer = Response::builder().status(status).header("set-cookie", "a=b");
            if let Some(length) = length {
                answer = answer.header("content-length", length);
            }
            answer.body(()).unwrap()
        };
        let pieces: [&[u8]; 3] = [b"hel", b"", b"lo"];
        for (length, is_head, given, body) in [
            (None, false, &pieces[..], &b"hello"[..]),
            (Some("5"), false, &pieces[..], b"hello"),
            (Some("0"), false, &[], b""),
            (None, false, &[], b""),
            (Some("5"), true, &[], b""),
            (None, true, &[], b""),
        ] {
            let decoder = decoded(&answer(200, length), is_head, given);
            assert_eq!((decoder.status(), decoder.body()), (200, body), "{length:?} {is_head}");
            assert_eq!(decoder.header("set-cookie"), Some(&b"a=b"[..]));
            assert!(decoder.keep_alive());
        }
        for status in [204, 304, 404, 599] {
            assert_eq!(decoded(&answer(status, None), false, &[]).status(), status);
        }
    }
}
