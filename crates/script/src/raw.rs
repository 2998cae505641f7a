//! Requests as the bytes that a script writes.

use memchr::memmem;

/// Where the head of a request ends.
const HEAD_END: &[u8] = b"\r\n\r\n";

/// Splits the text of several requests, one behind the other, into each of them.
///
/// # Errors
/// In words, what in it is no request of HTTP/1.1.
pub(crate) fn split(mut text: &[u8]) -> Result<Vec<&[u8]>, String> {
    let mut requests = Vec::new();
    while !text.is_empty() {
        let (request, rest) = text.split_at(length(text)?);
        requests.push(request);
        text = rest;
    }
    if requests.is_empty() {
        return Err("it is empty".into());
    }
    Ok(requests)
}

/// Method, target and version of a first line. As in wrk, a target may have spaces.
fn words(line: &[u8]) -> Option<[&[u8]; 3]> {
    let first = memchr::memchr(b' ', line).filter(|first| *first > 0)?;
    let last = memchr::memrchr(b' ', line).filter(|last| *last > first + 1)?;
    Some([&line[..first], &line[first + 1..last], &line[last + 1..]])
}

/// Bytes of the request that a text begins with.
fn length(text: &[u8]) -> Result<usize, String> {
    let head = memmem::find(text, HEAD_END).ok_or("its head has no end: an empty line is missing")?;
    let body = head + HEAD_END.len();
    let line_end = memchr::memchr(b'\r', text).unwrap_or(head);
    let is_request = words(&text[..line_end]).is_some_and(|[.., version]| version.starts_with(b"HTTP/1."));
    if !is_request {
        let line = String::from_utf8_lossy(&text[..line_end.min(80)]);
        return Err(format!("its first line is {line:?}, not METHOD PATH HTTP/1.1"));
    }
    if body == text.len() {
        return Ok(body);
    }
    let length = match header(&text[line_end..head], b"content-length") {
        Some(value) => {
            let value = std::str::from_utf8(value).ok().and_then(|value| value.parse::<usize>().ok());
            value.ok_or("its Content-Length is no number")?
        }
        None => match header(&text[line_end..head], b"transfer-encoding") {
            Some(_) => chunks(&text[body..], |_| ())?,
            None => 0,
        },
    };
    match body.checked_add(length) {
        Some(end) if end <= text.len() => Ok(end),
        _ => Err(format!("its body has {} bytes, and Content-Length is {length}", text.len() - body)),
    }
}

/// Bytes of a body in chunks that a text begins with; each is told.
fn chunks(text: &[u8], mut tell: impl FnMut(&[u8])) -> Result<usize, String> {
    let mut at = 0;
    loop {
        let line = memmem::find(&text[at..], b"\r\n").ok_or("its last chunk has no end")?;
        let size = text[at..at + line].split(|byte| *byte == b';').next().unwrap_or_default();
        let size =
            std::str::from_utf8(size).ok().and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let size = size.ok_or("a chunk's size is no number")?;
        at += line + 2;
        if size == 0 {
            // trailers, up to an empty line
            loop {
                let line = memmem::find(&text[at..], b"\r\n").ok_or("its last chunk has no end")?;
                at += line + 2;
                if line == 0 {
                    return Ok(at);
                }
            }
        }
        let end = size.checked_add(at + 2).filter(|end| *end <= text.len()).ok_or("a chunk is cut short")?;
        tell(&text[at..at + size]);
        at = end;
    }
}

/// A header's value, by its lower-case name, in what follows the first line.
fn header<'t>(lines: &'t [u8], name: &[u8]) -> Option<&'t [u8]> {
    lines.split(|byte| *byte == b'\n').find_map(|line| {
        let colon = memchr::memchr(b':', line)?;
        line[..colon].eq_ignore_ascii_case(name).then(|| line[colon + 1..].trim_ascii())
    })
}

/// Method, path and query, headers and body of a request.
pub(crate) struct Parts {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

/// Takes a whole request apart, for protocols that write it in another way. What is about its connection is left out.
///
/// # Errors
/// Where its body is cut short.
pub(crate) fn parts(request: &[u8]) -> Result<Parts, String> {
    const OF_CONNECTION: [&str; 9] = [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "keep-alive",
        "proxy-connection",
        "upgrade",
        "te",
        "trailer",
    ];
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let head = memmem::find(request, HEAD_END).unwrap_or(request.len());
    let is_chunked = header(&request[..head], b"transfer-encoding").is_some();
    let mut lines = request[..head].split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let [method, target, _] = words(lines.next().unwrap_or_default()).unwrap_or_default();
    let (method, target) = (text(method), text(target).replace(' ', "%20"));
    // an absolute URL names the server, which is known
    let path = match target.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or_else(|| "/".to_owned(), |at| rest[at..].to_owned()),
        None => target,
    };
    let header = |line: &[u8]| {
        let colon = memchr::memchr(b':', line)?;
        let (name, value) = (text(&line[..colon]), text(line[colon + 1..].trim_ascii()));
        (!OF_CONNECTION.iter().any(|own| name.eq_ignore_ascii_case(own))).then_some((name, value))
    };
    let headers = lines.filter_map(header).collect();
    let body = request.get(head + HEAD_END.len()..).filter(|body| !body.is_empty());
    let body = match body {
        Some(body) if is_chunked => {
            let mut whole = Vec::new();
            chunks(body, |chunk| whole.extend_from_slice(chunk))?;
            Some(whole)
        }
        body => body.map(<[u8]>::to_vec),
    };
    Ok(Parts { method, path, headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(requests: &[&[u8]]) -> Vec<String> {
        requests.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }

    #[test]
    fn several_requests_are_split_where_each_ends() {
        let get = "GET /a b HTTP/1.1\r\nHost: h\r\n\r\n";
        let post = "POST /b?c=d HTTP/1.1\r\nHost: h\r\ncontent-length: 4\r\n\r\n\r\n\r\n";
        let chunked = "PUT / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\nT: 1\r\n\r\n";
        let all = [get, post, chunked, get].concat();
        assert_eq!(texts(&split(all.as_bytes()).unwrap()), [get, post, chunked, get]);
    }

    #[test]
    fn what_is_no_request_is_told() {
        for (text, why) in [
            ("", "it is empty"),
            ("GET / HTTP/1.1\r\n", "its head has no end: an empty line is missing"),
            ("GET  HTTP/1.1\r\n\r\n", "its first line is \"GET  HTTP/1.1\", not METHOD PATH HTTP/1.1"),
            ("hello\r\n\r\n", "its first line is \"hello\", not METHOD PATH HTTP/1.1"),
            ("P / HTTP/1.1\r\nContent-Length: x\r\n\r\nab", "its Content-Length is no number"),
            ("P / HTTP/1.1\r\nContent-Length: 5\r\n\r\nab", "its body has 2 bytes, and Content-Length is 5"),
            ("P / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nab", "a chunk is cut short"),
        ] {
            assert_eq!(split(text.as_bytes()).unwrap_err(), why, "{text:?}");
        }
    }

    #[test]
    fn a_request_is_taken_apart() {
        let text = b"POST /b d?c HTTP/1.1\r\nHost: h\r\nX-A:  1 \r\nContent-Length: 2\r\n\r\nhi";
        let Parts { method, path, headers, body } = parts(text).unwrap();
        assert_eq!((method.as_str(), path.as_str()), ("POST", "/b%20d?c"));
        assert_eq!((headers, body.as_deref()), (vec![("X-A".into(), "1".into())], Some(&b"hi"[..])));
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_script_writes_is_split_whole_or_refused(text: Vec<u8>, pieces in proptest::collection::vec(0..6_usize, 0..20)) {
            const PIECES: [&[u8]; 6] =
                [b"GET / HTTP/1.1\r\n", b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"\r\n", b"abc", b"0\r\n"];
            let made: Vec<u8> = pieces.iter().flat_map(|piece| PIECES[*piece]).copied().collect();
            for text in [text, made] {
                if let Ok(requests) = split(&text) {
                    assert_eq!(requests.concat(), text);
                }
                let _ = parts(&text);
            }
        }
    }
}
