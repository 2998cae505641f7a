//! HTTP/1.1: how a request is written, and its answers.

use tidemark_scenario::plan::{Call, HttpRequest};
use tidemark_scenario::{Context, Template, Unmet};
use tidemark_wire::http1::{Decoded, DecoderLimits, HttpError, ResponseDecoder, cookie};

use crate::Target;
use crate::answer::Answer;
use crate::codec::{Closed, Codec, Expected, Violation};
use crate::jar::Jar;

/// Most bytes of an answer's head.
const HEAD_BYTES: usize = 64 << 10;
/// Most headers of an answer.
const HEADERS: usize = 128;
/// The status by which a server goes over to another protocol.
const SWITCHING: u16 = 101;
/// Methods whose requests say that they have no body.
const BODY_METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];
/// The header with the time that a remote call has, in milliseconds.
pub(crate) const DEADLINE_HEADER: &str = "Deadline-Ms";
/// The method of a request that is a remote call.
pub(crate) const CALL: &str = "CALL";

/// A connection's answers.
#[derive(Debug)]
pub(crate) struct Answers {
    decoder: ResponseDecoder,
    asks_upgrade: bool,
}

impl Answers {
    /// For answers whose bodies have so many bytes at most.
    pub fn new(body_bytes: usize) -> Self {
        let limits = DecoderLimits { head_bytes: HEAD_BYTES, headers: HEADERS, body_bytes };
        Answers { decoder: ResponseDecoder::new(limits), asks_upgrade: false }
    }
}

impl Codec for Answers {
    fn start(&mut self, expected: Expected) {
        self.asks_upgrade = expected.asks_upgrade;
        self.decoder.start(expected.is_head, expected.needs_body);
    }

    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        let decoded = self.decoder.decode(received).map_err(|error| match error {
            HttpError::BodyTooLarge { .. } => Violation(format!("{error} that `limits: body` sets").into()),
            _ => Violation(error.to_string().into()),
        })?;
        if decoded.complete && self.decoder.status() == SWITCHING && !self.asks_upgrade {
            let words = "the server switched protocols (status 101), for which nobody had asked";
            return Err(Violation(words.into()));
        }
        Ok(decoded)
    }

    fn finish(&mut self) -> Result<(), Closed> {
        self.decoder.finish().map_err(|error| match error {
            HttpError::Empty => Closed::Before,
            _ => Closed::Within,
        })
    }

    fn keeps_open(&self) -> bool {
        self.decoder.keep_alive()
    }

    fn answer(&self) -> &dyn Answer {
        &self.decoder
    }

    fn http(&self) -> Option<&ResponseDecoder> {
        Some(&self.decoder)
    }
}

impl Answer for ResponseDecoder {
    fn status(&self) -> u16 {
        self.status()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.header(name)
    }

    fn cookie(&self, name: &str) -> Option<&[u8]> {
        let set = self.headers().filter(|(header, _)| header.eq_ignore_ascii_case(b"set-cookie"));
        let set = set.filter_map(|(_, value)| cookie::parse(value));
        set.filter(|c| c.name == name.as_bytes() && !c.removed).last().map(|cookie| cookie.value)
    }

    fn keep_cookies(&self, jar: &mut Jar) {
        for (name, value) in self.headers() {
            if name.len() == 10 && name.eq_ignore_ascii_case(b"set-cookie") {
                jar.take(value);
            }
        }
    }

    fn body(&self) -> &[u8] {
        self.body()
    }

    /// What stands behind the blank line, if it is there.
    fn seen<'a>(&'a self, received: &'a [u8]) -> &'a [u8] {
        memchr::memmem::find(received, b"\r\n\r\n").map_or(received, |at| &received[at + 4..])
    }
}

/// A request made ready: what does not vary is put together once.
#[derive(Debug)]
pub(crate) struct Request {
    /// Request line with the base path in it, Host, and the other headers.
    head: Template,
    /// Whether the head has its own cookies, which stand in place of the session's.
    own_cookies: bool,
    body: Option<Template>,
    /// What stands for an absent body: `Content-Length: 0` where one is expected, and the blank line.
    bare_end: &'static [u8],
    /// The whole request, where nothing varies but cookies.
    whole: Option<Box<[u8]>>,
}

impl Request {
    /// For this target; `keep_alive` where its connection carries more than one.
    pub fn new(request: &HttpRequest, target: &Target, keep_alive: bool) -> Self {
        let close = if keep_alive { "" } else { "Connection: close\r\n" };
        let head = request.head(&target.base_path, &format!("Host: {}\r\n{close}", target.authority));
        Request::of(head, request.body.clone(), has_header(request, "cookie"), &request.method)
    }

    /// A remote call, as the connections that carry calls take it.
    pub fn of_call(call: &Call, target: &Target) -> Self {
        let Call { method, deadline_ms, arguments } = call;
        let (base, authority) = (&target.base_path, &target.authority);
        let head = format!(
            "{CALL} {base}/{method} HTTP/1.1\r\nHost: {authority}\r\n{DEADLINE_HEADER}: {deadline_ms}\r\n"
        );
        Request::of(Template::literal(head), Some(arguments.clone()), false, CALL)
    }

    fn of(head: Template, body: Option<Template>, own_cookies: bool, method: &str) -> Self {
        let bare_end: &[u8] =
            if BODY_METHODS.contains(&method) { b"Content-Length: 0\r\n\r\n" } else { b"\r\n" };
        let whole = head.as_literal().and_then(|head| {
            let mut whole = head.to_vec();
            match &body {
                None => whole.extend_from_slice(bare_end),
                Some(body) => append_body(&mut whole, body.as_literal()?),
            }
            Some(whole.into_boxed_slice())
        });
        Request { head, own_cookies, body, bare_end, whole }
    }

    /// Appends the request to `out`; nothing of it where something that it needs is not there.
    pub fn render(
        &self,
        cx: &mut Context<'_>,
        jar: &Jar,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        if let (Some(whole), true) = (&self.whole, jar.is_empty() || self.own_cookies) {
            out.extend_from_slice(whole);
            return Ok(());
        }
        let head_start = out.len();
        self.head.render(cx, out)?;
        if !self.own_cookies {
            jar.write(out, head_start);
        }
        match &self.body {
            None => out.extend_from_slice(self.bare_end),
            Some(body) => {
                scratch.clear();
                if let Err(unmet) = body.render(cx, scratch) {
                    out.truncate(head_start);
                    return Err(unmet);
                }
                append_body(out, scratch);
            }
        }
        Ok(())
    }
}

/// Whether a request has a header of this name.
pub(crate) fn has_header(request: &HttpRequest, name: &str) -> bool {
    request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
}

fn append_body(out: &mut Vec<u8>, body: &[u8]) {
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
}
