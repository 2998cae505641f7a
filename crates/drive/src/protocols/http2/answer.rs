//! An answer: its headers as they came, and its body as far as it is wanted.

use tidemark_wire::http1::{HttpError, cookie};
use tidemark_wire::http2::hpack::Fields;

use crate::protocols::http::HEADERS;
use crate::session::answer::Answer;
use crate::session::content::Content;
use crate::session::failure::Violation;

/// Bytes of a body that nobody looks at which are kept for an example of a failure.
const SEEN_BYTES: usize = 256;
/// Room for a body that is kept for the next one.
const RETAINED_BYTES: usize = 1 << 20;

/// A stream's answer, and the buffer for its body, which is used again.
#[derive(Debug, Default)]
pub(super) struct Reply {
    status: u16,
    headers: Fields,
    body: Vec<u8>,
    /// The trailers, where that is kept.
    trailers: Fields,
    /// The body, where it is kept.
    content: Content,
    /// Bytes of the body, also where it is not kept.
    length_bytes: usize,
    is_kept: bool,
    /// Of one that is not kept.
    shown_bytes: usize,
    is_head: bool,
    /// Path and query of the request.
    asked: Vec<u8>,
}

impl Reply {
    /// Another request is about to be sent.
    /// A body that nobody needs is kept up to `shown_bytes`.
    pub fn begin(&mut self, is_head: bool, needs_body: bool, shown_bytes: usize) {
        self.headers.clear();
        self.trailers.clear();
        self.content.forget();
        self.begin_part();
        self.is_kept = needs_body;
        self.shown_bytes = shown_bytes.max(SEEN_BYTES);
        self.is_head = is_head;
    }

    /// What came of the body so far has been looked at: what comes now is counted and kept anew.
    pub fn begin_part(&mut self) {
        self.body.clear();
        self.body.shrink_to(RETAINED_BYTES);
        self.length_bytes = 0;
    }

    /// Whether the trailers are wanted: where that is.
    pub fn wants_trailers(&self) -> bool {
        self.is_kept
    }

    /// The trailers came, and leave room in their place.
    pub fn take_trailers(&mut self, trailers: &mut Fields) -> Result<(), Violation> {
        if trailers.len() > HEADERS {
            return Err(HttpError::TooManyHeaders { limit: HEADERS }.into());
        }
        std::mem::swap(&mut self.trailers, trailers);
        Ok(())
    }

    /// Swaps the headers in front of the body and behind it with these.
    pub fn swap_headers(&mut self, (front, behind): (&mut Fields, &mut Fields)) {
        std::mem::swap(&mut self.headers, front);
        std::mem::swap(&mut self.trailers, behind);
    }

    /// Path and query of the request.
    pub fn take_target(&mut self, target: &[u8]) {
        self.asked.clear();
        self.asked.extend_from_slice(target);
    }

    /// The head came, with the length of the body where it says that; its headers leave room in their place. The body may have
    /// so many bytes.
    pub fn take_head(
        &mut self,
        (status, length): (u16, Option<u64>),
        headers: &mut Fields,
        body_bytes: usize,
    ) -> Result<(), Violation> {
        self.status = status;
        std::mem::swap(&mut self.headers, headers);
        if self.headers.len() > HEADERS {
            return Err(HttpError::TooManyHeaders { limit: HEADERS }.into());
        }
        if self.has_body() && length.is_some_and(|length| length > body_bytes as u64) {
            return Err(HttpError::BodyTooLarge { limit_bytes: body_bytes }.into());
        }
        Ok(())
    }

    /// A piece of the body came.
    pub fn take_body(&mut self, piece: &[u8], body_bytes: usize) -> Result<(), Violation> {
        if !self.has_body() {
            return Ok(());
        }
        self.length_bytes = self.length_bytes.saturating_add(piece.len());
        if self.length_bytes > body_bytes {
            return Err(HttpError::BodyTooLarge { limit_bytes: body_bytes }.into());
        }
        let room = if self.is_kept { usize::MAX } else { self.shown_bytes.saturating_sub(self.body.len()) };
        self.body.extend_from_slice(&piece[..piece.len().min(room)]);
        Ok(())
    }

    /// The body is whole: it is read where it is encoded, and may have so many bytes then.
    pub fn end(&mut self, body_bytes: usize) {
        if self.is_kept && self.headers.get("content-encoding").is_some() {
            self.content.take(self.headers.get_all("content-encoding"), &self.body, body_bytes);
        }
    }

    /// Whether a body belongs to it, whatever its head says.
    fn has_body(&self) -> bool {
        !self.is_head && !matches!(self.status, 204 | 304)
    }
}

impl Answer for Reply {
    fn status(&self) -> u16 {
        self.status
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.headers.get(name)
    }

    fn each_header(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        self.headers.iter().for_each(|(name, value)| tell(name, value));
    }

    fn cookie(&self, name: &str, now_s: i64) -> Option<&[u8]> {
        let set = self.headers.get_all("set-cookie").filter_map(cookie::parse);
        set.filter(|c| c.name == name.as_bytes() && !c.is_removed(now_s)).last().map(|cookie| cookie.value)
    }

    fn asked(&self) -> &[u8] {
        &self.asked
    }

    fn trailer(&self, name: &str) -> Option<&[u8]> {
        self.trailers.get(name)
    }

    fn each_trailer(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        self.trailers.iter().for_each(|(name, value)| tell(name, value));
    }

    fn each_set_cookie(&self, take: &mut dyn FnMut(&[u8])) {
        self.headers.get_all("set-cookie").for_each(take);
    }

    fn body(&self) -> &[u8] {
        self.content.body(&self.body)
    }

    fn received_bytes(&self) -> u64 {
        self.length_bytes as u64
    }

    fn is_decoded(&self) -> bool {
        self.content.is_decoded()
    }

    fn decoding_ns(&self) -> u64 {
        self.content.took_ns()
    }

    fn unreadable(&self) -> Option<&str> {
        self.content.unreadable()
    }
}

#[cfg(test)]
mod tests {
    use tidemark_wire::http2::hpack::{Decoder, write_field};

    use super::*;

    const MOST: usize = 1_000;

    fn fields(fields: &[(&str, &str)]) -> Fields {
        let (mut block, mut list) = (Vec::new(), Fields::default());
        fields.iter().for_each(|(name, value)| write_field(name.as_bytes(), value.as_bytes(), &mut block));
        assert_eq!(Decoder::default().decode(&block, MOST, &mut list), Ok(true));
        list
    }

    fn reply(status: u16, is_head: bool, needs_body: bool, pieces: &[&[u8]]) -> Reply {
        let mut reply = Reply::default();
        reply.begin(is_head, needs_body, 0);
        let mut head = fields(&[("x-id", "7"), ("set-cookie", "a=b"), ("set-cookie", "c=d; Max-Age=0")]);
        reply.take_head((status, None), &mut head, MOST).unwrap();
        pieces.iter().for_each(|piece| reply.take_body(piece, MOST).unwrap());
        reply
    }

    #[test]
    fn an_answer_is_what_its_frames_say() {
        let pieces: [&[u8]; 3] = [b"hel", b"", b"lo"];
        let whole = reply(200, false, true, &pieces);
        assert_eq!(
            (whole.status(), whole.body(), whole.header("x-id")),
            (200, &b"hello"[..], Some(&b"7"[..]))
        );
        assert_eq!((whole.cookie("a", 0), whole.cookie("c", 0)), (Some(&b"b"[..]), None));
        let mut set = Vec::new();
        whole.each_set_cookie(&mut |value| set.push(value.to_vec()));
        assert_eq!(set, [&b"a=b"[..], b"c=d; Max-Age=0"]);
        assert_eq!(reply(404, false, true, &[]).body(), b"");
        for (status, is_head) in [(200, true), (204, false), (304, false)] {
            assert_eq!(reply(status, is_head, true, &pieces).body(), b"", "{status} {is_head}");
        }
    }

    #[test]
    fn an_encoded_body_is_read_once_it_is_whole_and_somebody_looks_at_it() {
        let hello = b"\x78\x9c\xcb\x48\xcd\xc9\xc9\x07\x00\x06\x2c\x02\x15";
        for (needs_body, encoding) in [(true, "deflate"), (false, "deflate"), (true, "rot13")] {
            let mut reply = Reply::default();
            reply.begin(false, needs_body, 0);
            reply.take_head((200, None), &mut fields(&[("content-encoding", encoding)]), MOST).unwrap();
            reply.take_body(hello, MOST).unwrap();
            reply.end(MOST);
            assert_eq!(reply.is_decoded(), needs_body && encoding == "deflate", "{encoding}");
            assert_eq!(reply.received_bytes(), hello.len() as u64);
            match (needs_body, encoding) {
                (true, "deflate") => assert_eq!((reply.body(), reply.unreadable()), (&b"hello"[..], None)),
                (false, _) => assert_eq!((reply.body(), reply.unreadable()), (&hello[..], None)),
                _ => assert!(reply.unreadable().is_some_and(|words| words.contains("\"rot13\""))),
            }
            reply.begin(false, true, 0);
            assert_eq!((reply.body(), reply.unreadable()), (&b""[..], None), "nothing is left of it");
        }
    }

    #[test]
    fn a_body_is_bounded_and_kept_as_far_as_it_is_wanted() {
        let long = [b'x'; MOST];
        assert_eq!(reply(200, false, true, &[&long]).body().len(), MOST);
        let mut seen = reply(200, false, false, &[&long]);
        assert_eq!(seen.body().len(), SEEN_BYTES);
        let error = seen.take_body(b"x", MOST).unwrap_err();
        assert!(error.to_string().contains("that `limits: body` sets"), "{error}");
        let told = (200, Some(MOST as u64 + 1));
        let error = Reply::default().take_head(told, &mut Fields::default(), MOST).unwrap_err();
        assert!(error.to_string().contains("limits: body"), "{error}");
        seen.begin(false, true, 0);
        assert_eq!((seen.body(), seen.header("x-id")), (&b""[..], None), "nothing is left of the one before");
    }
}
