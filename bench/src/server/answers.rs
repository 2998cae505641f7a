//! Requests as far as they matter here, and the answers.

use memchr::memmem;

/// Bytes of the large answer's body.
const LARGE_BYTES: usize = 64 << 10;

/// What a request's head says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Bytes of its head, with the blank line.
    pub head_bytes: usize,
    /// Bytes of its body.
    pub body_bytes: usize,
    /// What it asks for.
    pub page: Page,
    /// Whether the connection is to be closed behind the answer.
    pub close: bool,
    /// Whether it must be told that the connection stays.
    pub tell_keep: bool,
}

/// The pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Page {
    /// 13 bytes.
    Hello,
    /// 64 KiB.
    Large,
    /// Sets a cookie and gives a token as JSON.
    Login,
    /// JSON that names the token's item.
    Item,
}

/// The answers, made once: each for a connection that stays, for one that must be told so, and for one that ends.
#[derive(Debug)]
pub struct Answers {
    hello: [Vec<u8>; 3],
    large: [Vec<u8>; 3],
    login: [Vec<u8>; 3],
    item: [Vec<u8>; 3],
}

impl Answers {
    /// Makes them.
    pub fn new() -> Answers {
        let cookie = "Set-Cookie: session=7f3a9c0d51; Path=/; HttpOnly\r\n";
        let login = br#"{"user":{"name":"Ada","id":17},"token":"c0ffee42","expires":3600}"#;
        let item = br#"{"token":"c0ffee42","items":[{"id":1,"price":9.5},{"id":2,"price":12}]}"#;
        Answers {
            hello: answers("text/plain", "", b"Hello, world!"),
            large: answers("application/octet-stream", "", &vec![b'x'; LARGE_BYTES]),
            login: answers("application/json", cookie, login),
            item: answers("application/json", "", item),
        }
    }

    /// The answer to a request.
    pub fn of(&self, request: &Request) -> &[u8] {
        let kinds = match request.page {
            Page::Hello => &self.hello,
            Page::Large => &self.large,
            Page::Login => &self.login,
            Page::Item => &self.item,
        };
        &kinds[if request.close { 2 } else { usize::from(request.tell_keep) }]
    }
}

fn answers(kind: &str, headers: &str, body: &[u8]) -> [Vec<u8>; 3] {
    ["", "Connection: keep-alive\r\n", "Connection: close\r\n"]
        .map(|connection| answer(kind, &format!("{headers}{connection}"), body))
}

fn answer(kind: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let mut bytes =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{headers}Content-Length: {length}\r\n\r\n")
            .into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// The request that these bytes begin with; none while its head is not whole.
pub fn request(bytes: &[u8]) -> Option<Request> {
    let head_bytes = memmem::find(bytes, b"\r\n\r\n")? + 4;
    let head = &bytes[..head_bytes];
    let path = memchr::memchr(b' ', head).map_or(&head[..0], |space| &head[space + 1..]);
    let page = match path {
        [b'/', b'6', ..] => Page::Large,
        [b'/', b'l', ..] => Page::Login,
        [b'/', b'i', ..] => Page::Item,
        _ => Page::Hello,
    };
    let body_bytes = if head[0] == b'P' { content_length(head) } else { 0 };
    let line = &head[..memchr::memchr(b'\r', head).unwrap_or(0)];
    let old = line.ends_with(b"/1.0");
    let has = |word: &[u8]| memmem::find(head, word).is_some();
    let close =
        has(b"onnection: close") || old && !has(b"onnection: Keep-Alive") && !has(b"onnection: keep-alive");
    Some(Request { head_bytes, body_bytes, page, close, tell_keep: old && !close })
}

fn content_length(head: &[u8]) -> usize {
    let name = [b"ontent-Length: ", b"ontent-length: "].into_iter().find_map(|name| memmem::find(head, name));
    let Some(at) = name else { return 0 };
    let digits = head[at + 15..].iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0usize, |sum, digit| sum.saturating_mul(10).saturating_add(usize::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads() {
        let get = b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET";
        let plain =
            Request { head_bytes: 27, body_bytes: 0, page: Page::Hello, close: false, tell_keep: false };
        assert_eq!(request(get), Some(plain));
        assert_eq!(request(&get[..20]), None);
        let post =
            request(b"POST /item/1 HTTP/1.1\r\ncontent-length: 1024\r\nConnection: close\r\n\r\n").unwrap();
        assert_eq!((post.body_bytes, post.page, post.close), (1024, Page::Item, true));
        let old = request(b"GET /64k HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").unwrap();
        assert_eq!((old.page, old.close, old.tell_keep), (Page::Large, false, true));
        assert!(request(b"GET / HTTP/1.0\r\n\r\n").unwrap().close);
    }
}
