//! How a request of HTTP/1.1 is written, and its answers; a request may ask for a WebSocket, or for a stream of events.

use std::ops::Range;
use std::rc::Rc;

use tidemark_record::Outcome;
use tidemark_scenario::plan::{HttpRequest, TargetForm, UploadPiece};
use tidemark_scenario::{Context, Template, Unmet};
use tidemark_wire::http1::{DecoderLimits, HttpError, ResponseDecoder, cookie};
use tidemark_wire::websocket::handshake::{self, HandshakeError, Key};

use crate::protocols::codec::{Closed, Codec, Decoded};
use crate::protocols::http::{BODY_METHODS, HEADERS, has_header, says_no_body, unmet};
use crate::protocols::proxy::Proxy;
use crate::protocols::transport::{Origin, Setup};
use crate::protocols::upload::Upload;
use crate::session::answer::Answer;
use crate::session::content::{Content, ENCODING};
use crate::session::failure::{Failure, Violation};
use crate::session::jar::Jar;
use crate::session::location::locate;
use crate::session::program::ProgramRequest;

/// Most bytes of an answer's head.
const HEAD_BYTES: usize = 64 << 10;
/// What asks for a connection's end behind the answer.
const CLOSES: &str = "Connection: close\r\n";
/// The status by which a server goes over to another protocol.
const SWITCHING: u16 = 101;

/// A connection's answers.
#[derive(Debug)]
pub(super) struct Answers {
    decoder: ResponseDecoder,
    /// The body, where it is kept.
    content: Content,
    is_kept: bool,
    body_bytes: usize,
    /// Path and query of the request, where they are of interest later.
    asked: Vec<u8>,
    asks_upgrade: bool,
    /// Whether a program has made the request.
    is_of_program: bool,
    /// The key of the WebSocket that was asked for, and the subprotocols that were offered.
    handshake: Option<(Key, Rc<[String]>)>,
    /// The answer's head is all that is awaited; its body goes on.
    is_streamed: bool,
    /// What follows the head of the request that was written last.
    upload: Option<Upload>,
    /// Whether a program has asked for the connection's end behind the answer.
    closes: bool,
}

impl Codec for Answers {
    /// None where what has this index is no request of HTTP.
    type Request = Option<Request>;

    fn new(body_bytes: usize) -> Self {
        let limits = DecoderLimits { head_bytes: HEAD_BYTES, headers: HEADERS, body_bytes };
        Answers {
            decoder: ResponseDecoder::new(limits),
            content: Content::default(),
            is_kept: false,
            body_bytes,
            asked: Vec::new(),
            asks_upgrade: false,
            is_of_program: false,
            handshake: None,
            is_streamed: false,
            upload: None,
            closes: false,
        }
    }

    fn write(
        &mut self,
        request: &Option<Request>,
        cx: &mut Context<'_>,
        jar: &Jar,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        let Some(request) = request else { return Ok(()) };
        let key = request.protocols.as_ref().map(|_| handshake::key(cx.random.u128(..).to_ne_bytes()));
        let begin = out.len();
        self.upload = request.write(key.as_ref(), cx, jar, out, scratch)?;
        if request.needs_target {
            self.asked.clear();
            self.asked.extend_from_slice(&out[target(out, begin, request.server_bytes)]);
        }
        self.handshake = key.zip(request.protocols.clone());
        (self.is_of_program, self.closes) = (false, false);
        self.asks_upgrade = request.asks_upgrade;
        self.is_streamed = request.body_use == BodyUse::Streamed;
        self.is_kept = request.body_use == BodyUse::Kept;
        self.content.forget();
        match request.body_use {
            BodyUse::Streamed => self.decoder.start_streamed(),
            BodyUse::Shown(most) => self.decoder.start_keeping(request.is_head, most),
            used => self.decoder.start(request.is_head, used == BodyUse::Kept),
        }
        Ok(())
    }

    fn write_made(
        &mut self,
        frame: &Option<Request>,
        request: &ProgramRequest,
        cookies: (&Jar, i64),
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        let Some(frame) = frame else { return Ok(()) };
        let begin = out.len();
        let key = request.websocket.as_ref().map(|_| handshake::key(fastrand::u128(..).to_ne_bytes()));
        let is_head = match &request.written {
            Some(written) => {
                out.extend_from_slice(written);
                written.starts_with(b"HEAD ")
            }
            None => {
                frame.write_made(request, key.as_ref(), cookies, out);
                request.method == "HEAD"
            }
        };
        let server_bytes = if request.written.is_some() { 0 } else { frame.server_bytes };
        self.asked.clear();
        self.asked.extend_from_slice(&out[target(out, begin, server_bytes)]);
        let is_kept = !request.status_only;
        self.handshake = key.zip(request.websocket.as_deref().map(Rc::from));
        (self.asks_upgrade, self.is_streamed, self.is_kept) = (key.is_some(), false, is_kept);
        (self.is_of_program, self.closes) = (true, request.closes && !self.asks_upgrade);
        self.content.forget();
        self.decoder.start(is_head, is_kept);
        Ok(())
    }

    fn upload(&mut self) -> Option<Upload> {
        self.upload.take()
    }

    fn decode(&mut self, received: &[u8]) -> Result<Decoded, Violation> {
        let decoded = match self.decoder.decode(received) {
            // what is wrong with the body of a stream is told again to whoever reads that
            Err(_) if self.is_streamed && self.decoder.head_complete() => {
                return Ok(Decoded { consumed: received.len(), complete: true });
            }
            decoded => decoded?,
        };
        if decoded.complete && self.decoder.status() == SWITCHING && !self.asks_upgrade {
            let words = "the server switched protocols (status 101), for which nobody had asked";
            return Err(Violation(words.into()));
        }
        if decoded.complete {
            self.read_content();
        }
        let complete = decoded.complete || (self.is_streamed && self.decoder.head_complete());
        Ok(Decoded { consumed: decoded.consumed, complete })
    }

    fn finish(&mut self) -> Result<(), Closed> {
        self.decoder.finish().map_err(|error| match error {
            HttpError::Empty => Closed::Before,
            _ => Closed::Within,
        })?;
        self.read_content();
        Ok(())
    }

    fn keeps_open(&self) -> bool {
        !self.closes && self.decoder.keep_alive()
    }

    fn goes_over(&self) -> bool {
        matches!(self.upgraded(), Some(Ok(())))
    }

    fn answer(&self) -> &dyn Answer {
        self
    }
}

/// What becomes of an answer's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyUse {
    /// It is counted.
    Counted,
    /// It is counted, and so many bytes of it are there to be seen.
    Shown(usize),
    /// It is kept.
    Kept,
    /// It is read as it comes.
    Streamed,
}

impl Answers {
    /// The answer is whole: its body is read where it is encoded.
    fn read_content(&mut self) {
        if self.is_kept && self.decoder.header(ENCODING).is_some() {
            let headers = self.decoder.headers();
            let encodings = headers.filter(|(name, _)| name.eq_ignore_ascii_case(ENCODING.as_bytes()));
            let encodings = encodings.map(|(_, value)| value);
            self.content.take(encodings, self.decoder.body(), self.body_bytes);
        }
    }

    /// Whether the answer's body goes on, and is read as it comes.
    pub fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    /// A body that goes on.
    pub fn streamed(&mut self) -> &mut ResponseDecoder {
        &mut self.decoder
    }

    /// Whether a program has made the request.
    pub fn is_of_program(&self) -> bool {
        self.is_of_program
    }

    /// Whether the connection is a WebSocket from this answer on, or why it is none, where the request asked for one.
    pub fn upgraded(&self) -> Option<Result<(), Failure>> {
        let (key, protocols) = self.handshake.as_ref()?;
        let checked = handshake::check_answer(&self.decoder, key, protocols);
        Some(checked.map(|_| ()).map_err(|error| {
            let outcome =
                if matches!(error, HandshakeError::Status(_)) { Outcome::Status } else { Outcome::Protocol };
            Failure::Other(outcome, error.to_string().into())
        }))
    }
}

impl Answer for ResponseDecoder {
    fn status(&self) -> u16 {
        self.status()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.header(name)
    }

    fn each_header(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        self.headers().for_each(|(name, value)| tell(name, value));
    }

    fn cookie(&self, name: &str, now_s: i64) -> Option<&[u8]> {
        let set = self.headers().filter(|(header, _)| header.eq_ignore_ascii_case(b"set-cookie"));
        let set = set.filter_map(|(_, value)| cookie::parse(value));
        set.filter(|c| c.name == name.as_bytes() && !c.is_removed(now_s)).last().map(|cookie| cookie.value)
    }

    fn each_set_cookie(&self, take: &mut dyn FnMut(&[u8])) {
        for (name, value) in self.headers() {
            if name.len() == 10 && name.eq_ignore_ascii_case(b"set-cookie") {
                take(value);
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

/// With the body as it was before it was encoded.
impl Answer for Answers {
    fn status(&self) -> u16 {
        self.decoder.status()
    }

    fn header(&self, name: &str) -> Option<&[u8]> {
        self.decoder.header(name)
    }

    fn each_header(&self, tell: &mut dyn FnMut(&[u8], &[u8])) {
        self.decoder.each_header(tell);
    }

    fn cookie(&self, name: &str, now_s: i64) -> Option<&[u8]> {
        self.decoder.cookie(name, now_s)
    }

    fn asked(&self) -> &[u8] {
        &self.asked
    }

    fn each_set_cookie(&self, take: &mut dyn FnMut(&[u8])) {
        self.decoder.each_set_cookie(take);
    }

    fn body(&self) -> &[u8] {
        self.content.body(self.decoder.body())
    }

    fn received_bytes(&self) -> u64 {
        self.decoder.body_bytes()
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

    fn seen<'a>(&'a self, received: &'a [u8]) -> &'a [u8] {
        self.decoder.seen(received)
    }
}

/// A request made ready: what does not vary is put together once.
#[derive(Debug)]
pub(super) struct Request {
    /// Request line with the base path in it, Host, and the other headers; behind a location all but method and target.
    head: Template,
    /// What stands in front of that.
    location: Option<Location>,
    /// Whether the head has its own cookies, which stand in place of the session's.
    own_cookies: bool,
    /// What stands in front of a path: the server where that is named to a proxy, and the base path.
    below: String,
    /// Bytes by which a target names its server to a proxy.
    server_bytes: usize,
    body: Option<Template>,
    /// The body in pieces, where it is read from files while it is sent.
    upload: Box<[UploadPiece]>,
    /// What stands for an absent body: `Content-Length: 0` where one is expected, and the blank line.
    bare_end: &'static [u8],
    /// The whole request, where nothing varies but cookies.
    whole: Option<Box<[u8]>>,
    /// The subprotocols that it offers, where it asks for a WebSocket.
    protocols: Option<Rc<[String]>>,
    /// Whether the server may go over to another protocol.
    asks_upgrade: bool,
    is_head: bool,
    /// Whether its target is of interest later.
    needs_target: bool,
    body_use: BodyUse,
}

/// A target that a server has named, and what stands in front of it.
#[derive(Debug)]
struct Location {
    /// The method, and the server where that is named to a proxy.
    before: String,
    target: Template,
    is_secured: bool,
    authority: String,
}

impl Location {
    /// Of a request whose target is one.
    fn of(request: &HttpRequest, origin: Origin<'_>, server: &str) -> Option<Location> {
        (request.form == TargetForm::Location).then(|| Location {
            before: format!("{} {server}", request.method),
            target: request.target.clone(),
            is_secured: origin.is_secured,
            authority: origin.authority.to_owned(),
        })
    }

    fn write(&self, cx: &mut Context<'_>, out: &mut Vec<u8>, scratch: &mut Vec<u8>) -> Result<(), Unmet> {
        scratch.clear();
        self.target.render(cx, scratch)?;
        let begin = out.len();
        out.extend_from_slice(self.before.as_bytes());
        locate(self.is_secured, self.authority.as_bytes(), scratch, out).map_err(|reason| {
            out.truncate(begin);
            unmet(&self.target, reason)
        })
    }
}

impl Request {
    pub fn new(
        request: &HttpRequest,
        (body_use, needs_target): (BodyUse, bool),
        protocols: Option<Rc<[String]>>,
        setup: &Setup<'_>,
    ) -> Self {
        let Origin { authority, base_path, proxy, .. } = setup.origin;
        let server = proxy.map_or_else(String::new, |_| format!("http://{authority}"));
        // Where connections are not kept, a WebSocket's and a stream's are all the same.
        let is_streamed = body_use == BodyUse::Streamed;
        let is_kept = setup.plan.limits.keep_alive || protocols.is_some() || is_streamed;
        let close = if is_kept { "" } else { CLOSES };
        let own = format!("Host: {authority}\r\n{}{close}", proxy.map_or_else(String::new, Proxy::head));
        let location = Location::of(request, setup.origin, &server);
        let head = match location {
            None => request.head_to(&server, base_path, &own),
            Some(_) => request.behind_target(&own),
        };
        let bare_end: &[u8] = if says_no_body(request) { b"Content-Length: 0\r\n\r\n" } else { b"\r\n" };
        let is_fixed = protocols.is_none() && location.is_none() && request.upload.is_empty();
        let whole = head.as_literal().filter(|_| is_fixed).and_then(|head| {
            let mut whole = head.to_vec();
            match &request.body {
                None => whole.extend_from_slice(bare_end),
                Some(body) => append_body(&mut whole, body.as_literal()?),
            }
            Some(whole.into_boxed_slice())
        });
        Request {
            head,
            location,
            own_cookies: request.without_cookies || has_header(request, "cookie"),
            below: format!("{server}{base_path}"),
            server_bytes: server.len(),
            body: request.body.clone(),
            upload: request.upload.clone().into_boxed_slice(),
            bare_end,
            whole,
            asks_upgrade: protocols.is_some() || has_header(request, "upgrade"),
            protocols,
            is_head: request.method == "HEAD",
            needs_target,
            body_use,
        }
    }

    /// What the requests of programs are put into: all of a head but its first line and the headers of its own.
    pub fn frame(setup: &Setup<'_>) -> Self {
        let request = HttpRequest { form: TargetForm::Location, ..HttpRequest::default() };
        Request::new(&request, (BodyUse::Kept, true), None, setup)
    }

    /// Appends a request that a program has made, as the [frame](Request::frame) has it.
    fn write_made(
        &self,
        request: &ProgramRequest,
        key: Option<&Key>,
        (jar, now_s): (&Jar, i64),
        out: &mut Vec<u8>,
    ) {
        let begin = out.len();
        let mut put = |text: &str| out.extend_from_slice(text.as_bytes());
        [&request.method, " ", &self.below, &request.path].into_iter().for_each(&mut put);
        let head = self.head.as_literal().unwrap_or_default();
        // a WebSocket's connection is kept in any case
        let head = key.and_then(|_| head.strip_suffix(CLOSES.as_bytes())).unwrap_or(head);
        // the host that the program names stands in place of the server's, which is the first line
        let own_host = request.header("host").and_then(|_| memchr::memmem::find(head, b"\r\nHost: "));
        match own_host.and_then(|at| Some((at + 2, memchr::memmem::find(&head[at + 2..], b"\r\n")? + 2))) {
            Some((at, length)) => {
                out.extend_from_slice(&head[..at]);
                out.extend_from_slice(&head[at + length..]);
            }
            None => out.extend_from_slice(head),
        }
        if request.closes && key.is_none() && !head.ends_with(CLOSES.as_bytes()) {
            out.extend_from_slice(CLOSES.as_bytes());
        }
        for (name, value) in &request.headers {
            [name, ": ", value, "\r\n"].iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
        }
        if !jar.is_empty() && !request.without_cookies && request.header("cookie").is_none() {
            let target = target(out, begin, self.server_bytes);
            append_cookies(out, target, jar, now_s);
        }
        if let (Some(key), Some(protocols)) = (key, &request.websocket) {
            handshake::write_upgrade_headers(out, key);
            if !protocols.is_empty() {
                out.extend_from_slice(
                    format!("Sec-WebSocket-Protocol: {}\r\n", protocols.join(", ")).as_bytes(),
                );
            }
        }
        match &request.body {
            None if BODY_METHODS.contains(&request.method.as_str()) => append_body(out, b""),
            None => out.extend_from_slice(b"\r\n"),
            Some(body) => append_body(out, body),
        }
    }

    /// Appends the request to `out`; nothing of it where something that it needs is not there. What of its body is read from
    /// files is returned, and follows. With a key it asks for a WebSocket.
    fn write(
        &self,
        key: Option<&Key>,
        cx: &mut Context<'_>,
        jar: &Jar,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<Option<Upload>, Unmet> {
        if let (Some(whole), true) = (&self.whole, jar.is_empty() || self.own_cookies) {
            out.extend_from_slice(whole);
            return Ok(None);
        }
        let head_start = out.len();
        if let Some(location) = &self.location {
            location.write(cx, out, scratch)?;
        }
        if let Err(unmet) = self.head.render(cx, out) {
            out.truncate(head_start);
            return Err(unmet);
        }
        if !self.own_cookies && !jar.is_empty() {
            let target = target(out, head_start, self.server_bytes);
            append_cookies(out, target, jar, cx.epoch_ms / 1_000);
        }
        if let Some(key) = key {
            handshake::write_upgrade_headers(out, key);
        }
        if !self.upload.is_empty() {
            let made = Upload::new(&self.upload, cx).inspect_err(|_| out.truncate(head_start))?;
            append_length(out, made.1);
            return Ok(Some(made.0));
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
        Ok(None)
    }
}

/// Appends the cookies for the request whose target stands there, if there are any.
fn append_cookies(out: &mut Vec<u8>, target: Range<usize>, jar: &Jar, now_s: i64) {
    let before = out.len();
    out.extend_from_slice(b"Cookie: ");
    if jar.write(out, target, now_s) { out.extend_from_slice(b"\r\n") } else { out.truncate(before) }
}

/// Where path and query of a request line are: between its first two blanks, behind the name of the server.
fn target(out: &[u8], head_start: usize, server_bytes: usize) -> Range<usize> {
    let blank = |from: usize| memchr::memchr(b' ', &out[from..]).map_or(out.len(), |at| from + at);
    let begin = (blank(head_start) + 1 + server_bytes).min(out.len());
    begin..blank(begin)
}

fn append_body(out: &mut Vec<u8>, body: &[u8]) {
    append_length(out, body.len() as u64);
    out.extend_from_slice(body);
}

/// Ends the head of a request with a body of so many bytes.
fn append_length(out: &mut Vec<u8>, bytes: u64) {
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(itoa::Buffer::new().format(bytes).as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::template::{Encoding, Part};
    use tidemark_scenario::{Expr, Shared};

    use super::*;

    fn request(method: &str, path: Template, body: Option<Template>) -> HttpRequest {
        HttpRequest { method: method.to_owned(), target: path, body, ..HttpRequest::default() }
    }

    fn rendered(request: &HttpRequest, base_path: &str, cookie: Option<&str>) -> String {
        written(request, base_path, cookie, None)
    }

    fn written(
        request: &HttpRequest,
        base_path: &str,
        cookie: Option<&str>,
        protocols: Option<Rc<[String]>>,
    ) -> String {
        let origin = Origin { authority: "h:80", base_path, is_secured: false, proxy: None };
        let mut plan = crate::testing::plan(Vec::new());
        plan.limits.keep_alive = protocols.is_none();
        let mut random = fastrand::Rng::with_seed(1);
        let setup =
            Setup { plan: &plan, origin, sockets: 1, depth: 1, opens_websockets: false, random: &mut random };
        let request = Some(Request::new(request, (BodyUse::Counted, false), protocols, &setup));
        let mut jar = Jar::default();
        if let Some(cookie) = cookie {
            crate::testing::put(&mut jar, cookie);
        }
        let shared = Shared::new(0, Vec::new());
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = Vec::new();
        let mut answers = Answers::new(1_000);
        answers.write(&request, &mut cx, &jar, &mut out, &mut Vec::new()).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn hole() -> Part {
        Part::Hole(Expr::int(42), Encoding::Url)
    }

    fn literal(text: &str) -> Part {
        Part::Literal(text.as_bytes().into())
    }

    #[test]
    fn a_plain_get_has_the_base_path_and_the_cookies() {
        let mut get = request("GET", Template::literal("/a?b=c"), None);
        get.headers.push(("Accept".into(), Template::literal("*/*")));
        let expected = "GET /base/a?b=c HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\n\r\n";
        assert_eq!(rendered(&get, "/base", None), expected);
        let expected = "GET /a?b=c HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\nCookie: id=7\r\n\r\n";
        assert_eq!(rendered(&get, "", Some("id=7")), expected);
        let none = HttpRequest { without_cookies: true, ..get.clone() };
        assert_eq!(rendered(&none, "", Some("id=7")), expected.replace("Cookie: id=7\r\n", ""));
        get.headers.push(("cookie".into(), Template::literal("own=1")));
        let expected = "GET /a?b=c HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\ncookie: own=1\r\n\r\n";
        assert_eq!(rendered(&get, "", Some("id=7")), expected);
    }

    #[test]
    fn a_proxy_is_told_the_server_and_cookies_go_by_the_path() {
        let mut get = request("GET", Template::literal("/a/b?c=d"), None);
        let proxy = Proxy { name: "p".into(), authorization: Some("Basic eA==".into()) };
        let origin = Origin { authority: "h:80", base_path: "/v1", is_secured: false, proxy: Some(&proxy) };
        let plan = crate::testing::plan(Vec::new());
        let shared = Shared::new(0, Vec::new());
        let (mut random, mut others) = (fastrand::Rng::with_seed(1), fastrand::Rng::with_seed(1));
        let mut jar = Jar::default();
        crate::testing::put(&mut jar, "id=7; Path=/v1/a");
        crate::testing::put(&mut jar, "no=1; Path=/a");
        for form in [TargetForm::Below, TargetForm::Location] {
            if form == TargetForm::Location {
                get.target = Template::literal("http://h:80/v1/a/b?c=d");
            }
            get.form = form;
            let setup = Setup {
                plan: &plan,
                origin,
                sockets: 1,
                depth: 1,
                opens_websockets: false,
                random: &mut random,
            };
            let request = Some(Request::new(&get, (BodyUse::Counted, true), None, &setup));
            let mut cx = Context { slots: &[], shared: &shared, random: &mut others, epoch_ms: 0 };
            let (mut out, mut answers) = (b"before ".to_vec(), Answers::new(1_000));
            answers.write(&request, &mut cx, &jar, &mut out, &mut Vec::new()).unwrap();
            let expected = "before GET http://h:80/v1/a/b?c=d HTTP/1.1\r\nHost: h:80\r\nProxy-Authorization: Basic \
                            eA==\r\nCookie: id=7\r\n\r\n";
            assert_eq!(String::from_utf8(out).unwrap(), expected);
            assert_eq!(answers.asked, b"/v1/a/b?c=d");
        }
    }

    #[test]
    fn bodies_have_their_length() {
        let post = request("POST", Template::literal("/a"), Some(Template::literal("x=1&y")));
        let expected = "POST /a HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\n\r\nx=1&y";
        assert_eq!(rendered(&post, "", None), expected);
        let bare = request("POST", Template::literal("/a"), None);
        let expected = "POST /a HTTP/1.1\r\nHost: h:80\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(rendered(&bare, "", None), expected);
    }

    #[test]
    fn holes_in_path_header_and_body() {
        let body = Some(Template { parts: vec![literal("n="), hole()] });
        let mut put = request("PUT", Template { parts: vec![literal("/a/"), hole()] }, body);
        put.headers.push(("X".into(), Template { parts: vec![hole()] }));
        let expected = "PUT /v1/a/42 HTTP/1.1\r\nHost: h:80\r\nX: 42\r\nContent-Length: 4\r\n\r\nn=42";
        assert_eq!(rendered(&put, "/v1", None), expected);
    }

    #[test]
    fn a_handshake_is_a_request_whose_connection_is_kept() {
        let connect = request("GET", Template::literal("/ws"), None);
        let asked = written(&connect, "", Some("id=7"), Some(["chat".to_owned()].into()));
        let (before, key) = asked.split_once("Sec-WebSocket-Key: ").unwrap();
        let expected = "GET /ws HTTP/1.1\r\nHost: h:80\r\nCookie: id=7\r\nUpgrade: websocket\r\nConnection: \
                        Upgrade\r\nSec-WebSocket-Version: 13\r\n";
        assert_eq!(before, expected);
        assert!(key.len() == 24 + 4 && key.ends_with("\r\n\r\n"), "{key}");
    }
}
