//! Requests as they are sent, made of the typed ones.

use std::ops::Range;

use bytes::Bytes;
use tidemark_scenario::plan::{HttpRequest, TargetForm};
use tidemark_scenario::{Context, Template};
use tidemark_wire::http1::is_token;
use tidemark_wire::http2::hpack::{self, Fields};
use tidemark_wire::http2::{is_of_connection, is_value};

use crate::protocols::http::{BODY_METHODS, has_header, says_no_body, unmet};
use crate::protocols::transport::Origin;
use crate::session::failure::Failure;
use crate::session::jar::Jar;
use crate::session::location::locate;
use crate::session::program::ProgramRequest;

/// Room for a body that is kept for the next one.
const RETAINED_BYTES: usize = 1 << 20;

/// A request with its body, and its buffers, which are used again.
#[derive(Debug, Clone, Default)]
pub(in crate::protocols) struct Message {
    /// Its headers in their compressed form.
    block: Vec<u8>,
    /// Where path and query stand in it.
    path: Range<usize>,
    is_head: bool,
    body: Body,
    /// The body, where it is this request's own.
    own: Vec<u8>,
    /// Its number among a plan's, where it is one in which nothing varies.
    constant: Option<usize>,
}

/// Which body a request has.
#[derive(Debug, Clone, Default)]
enum Body {
    #[default]
    Own,
    /// One that all share.
    Shared(Bytes),
}

/// What requests of a method to a server begin with.
#[derive(Debug, Clone)]
pub(in crate::protocols) struct Opening {
    block: Vec<u8>,
    is_head: bool,
}

impl Opening {
    /// In words why it cannot be sent.
    pub fn new(method: &str, is_secured: bool, authority: &str) -> Result<Opening, String> {
        if !is_token(method.as_bytes()) {
            return Err(unsendable("its method"));
        }
        let is_of_host = |byte: u8| byte > b' ' && byte != 0x7f && !b"/?#@\\".contains(&byte);
        if authority.is_empty() || !authority.bytes().all(is_of_host) {
            return Err(unsendable("its host"));
        }
        let scheme = if is_secured { "https" } else { "http" };
        let mut block = Vec::new();
        for (name, value) in [(":method", method), (":scheme", scheme), (":authority", authority)] {
            hpack::write_field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        Ok(Opening { block, is_head: method == "HEAD" })
    }
}

impl Message {
    /// Begins another request; in words why it cannot be sent.
    pub fn begin(&mut self, opening: &Opening, path: &[u8]) -> Result<(), String> {
        // nobody sends what stands behind this mark
        let path = path.split(|byte| *byte == b'#').next().unwrap_or_default();
        let slash: &[u8] = if path.first().is_none_or(|byte| *byte == b'?') { b"/" } else { b"" };
        if !path.iter().all(|byte| *byte > b' ' && *byte != 0x7f) {
            return Err(unsendable("its path"));
        }
        self.block.clear();
        self.block.extend_from_slice(&opening.block);
        hpack::write_name(b":path", &mut self.block);
        hpack::write_length(slash.len() + path.len(), &mut self.block);
        let begin = self.block.len();
        self.block.extend_from_slice(slash);
        self.block.extend_from_slice(path);
        self.path = begin..self.block.len();
        self.is_head = opening.is_head;
        self.body = Body::Own;
        self.own.clear();
        self.own.shrink_to(RETAINED_BYTES);
        self.constant = None;
        Ok(())
    }

    /// Nothing in it varies, and it has this number among those of its plan.
    pub fn mark_constant(&mut self, number: usize) {
        self.constant = Some(number);
    }

    /// Becomes the same as another one.
    pub fn repeat(&mut self, other: &Message) {
        if self.constant.is_some() && self.constant == other.constant {
            return;
        }
        self.constant = other.constant;
        self.block.clear();
        self.block.extend_from_slice(&other.block);
        (self.path, self.is_head, self.body) = (other.path.clone(), other.is_head, other.body.clone());
        self.own.clear();
        self.own.extend_from_slice(&other.own);
    }

    /// Appends a header whose name is [coded](coded_name); in words why it cannot be sent.
    pub fn header(&mut self, coded_name: &[u8], value: &[u8]) -> Result<(), String> {
        if !is_value(value) {
            return Err(unsendable("the value of a header"));
        }
        self.constant = None;
        self.block.extend_from_slice(coded_name);
        hpack::write_value(value, &mut self.block);
        Ok(())
    }

    /// Appends the cookies for it, if there are any. `scratch` is room.
    fn cookies(&mut self, (jar, now_s): (&Jar, i64), scratch: &mut Vec<u8>) -> Result<(), String> {
        if jar.is_empty() {
            return Ok(());
        }
        scratch.clear();
        scratch.extend_from_slice(self.path());
        let length = scratch.len();
        if jar.write(scratch, 0..length, now_s) {
            self.header(COOKIE, &scratch[length..])?;
        }
        Ok(())
    }

    /// Says how long its body is.
    fn length(&mut self) -> Result<(), String> {
        let length = self.body().len();
        self.header(CONTENT_LENGTH, itoa::Buffer::new().format(length).as_bytes())
    }

    /// Its body is one that others have, too.
    pub fn share(&mut self, body: &Bytes) {
        self.constant = None;
        self.body = Body::Shared(body.clone());
    }

    /// Room for a body of its own.
    pub fn own_body(&mut self) -> &mut Vec<u8> {
        self.constant = None;
        &mut self.own
    }

    /// Its headers in their compressed form.
    pub fn block(&self) -> &[u8] {
        &self.block
    }

    /// Whether its method is `HEAD`.
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// Path and query.
    pub fn path(&self) -> &[u8] {
        &self.block[self.path.clone()]
    }

    /// Its body.
    pub fn body(&self) -> &[u8] {
        match &self.body {
            Body::Own => &self.own,
            Body::Shared(body) => body,
        }
    }

    /// Its body behind so many bytes.
    pub fn rest(&self, sent: usize) -> Bytes {
        match &self.body {
            Body::Own => Bytes::copy_from_slice(&self.own[sent..]),
            Body::Shared(body) => body.slice(sent..),
        }
    }

    /// Its headers for a person.
    pub fn fields(&self) -> Fields {
        let mut fields = Fields::default();
        // what was written can be read
        let _ = hpack::Decoder::default().decode(&self.block, usize::MAX, &mut fields);
        fields
    }
}

/// `cookie` and `content-length`, [coded](coded_name).
const COOKIE: &[u8] = &[0x0f, 32 - 0x0f];
const CONTENT_LENGTH: &[u8] = &[0x0f, 28 - 0x0f];

/// The name of a header as it is sent; in words why it cannot be.
pub(in crate::protocols) fn coded_name(name: &str) -> Result<Vec<u8>, String> {
    if !is_token(name.as_bytes()) {
        return Err(unsendable("the name of a header"));
    }
    let name = name.to_ascii_lowercase();
    if name == "host" || is_of_connection(name.as_bytes()) {
        return Err(unsendable("a header that speaks of a connection of HTTP/1.1"));
    }
    let mut coded = Vec::new();
    hpack::write_name(name.as_bytes(), &mut coded);
    Ok(coded)
}

/// Whether a plan's header is not sent: HTTP/2 forbids it, or has it in another form.
fn is_left_out(name: &str, value: &Template) -> bool {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "host" => true,
        "te" => !value.as_literal().is_some_and(says_trailers),
        _ => is_of_connection(name.as_bytes()),
    }
}

/// Whether the value of `te` is the one that HTTP/2 allows.
fn says_trailers(value: &[u8]) -> bool {
    value.eq_ignore_ascii_case(b"trailers")
}

/// What varies in a request.
#[derive(Debug)]
struct Varying {
    path: Template,
    /// Whether the path is one that a server has named, which is brought into form.
    is_location: bool,
    /// Names, coded.
    headers: Vec<(Vec<u8>, Template)>,
    body: Option<Template>,
}

/// A request made ready.
#[derive(Debug)]
pub(super) struct Prepared {
    opening: Opening,
    is_secured: bool,
    authority: String,
    parts: Varying,
    /// Whether it has its own cookies, which stand in place of the session's.
    own_cookies: bool,
    says_no_body: bool,
    /// The whole request, where nothing varies but cookies.
    whole: Option<Message>,
    /// The body, where it does not vary.
    fixed_body: Option<Bytes>,
    /// Whether the answer's body is kept.
    pub needs_body: bool,
    /// Bytes of it that are kept to be seen where it is not.
    pub shown_bytes: usize,
}

/// Where the requests of programs go.
#[derive(Debug)]
pub(super) struct Destination {
    is_secured: bool,
    authority: String,
    base_path: String,
}

impl Destination {
    /// For this server.
    pub fn new(origin: Origin<'_>) -> Destination {
        Destination {
            is_secured: origin.is_secured,
            authority: origin.authority.to_owned(),
            base_path: origin.base_path.to_owned(),
        }
    }

    /// A request that a program has made, or in words why it cannot be sent. `scratch` is room.
    pub fn make(
        &self,
        made: &ProgramRequest,
        (jar, now_s): (&Jar, i64),
        scratch: &mut Vec<u8>,
        message: &mut Message,
    ) -> Result<(), String> {
        if made.written.is_some() {
            return Err(unsendable("its bytes, which are of HTTP/1.1"));
        }
        let authority = made.header("host").unwrap_or(&self.authority);
        let opening = Opening::new(&made.method, self.is_secured, authority)?;
        message.begin(&opening, format!("{}{}", self.base_path, made.path).as_bytes())?;
        for (name, value) in made.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            if name.eq_ignore_ascii_case("te") && !says_trailers(value.as_bytes()) {
                return Err(unsendable("the header te may only say trailers over HTTP/2"));
            }
            message.header(&coded_name(name)?, value.as_bytes())?;
        }
        if !made.without_cookies && made.header("cookie").is_none() {
            message.cookies((jar, now_s), scratch)?;
        }
        if let Some(body) = &made.body {
            message.own_body().extend_from_slice(body);
        }
        // how long one will be that stays open is not known
        let says_length = made.body.is_some() || BODY_METHODS.contains(&made.method.as_str());
        if says_length && !made.stays_open { message.length() } else { Ok(()) }
    }
}

impl Prepared {
    /// The request of this number in a plan, for this server; in words why it cannot be sent.
    pub fn new(
        (number, request): (usize, &HttpRequest),
        needs_body: bool,
        origin: Origin<'_>,
    ) -> Result<Prepared, String> {
        if !request.upload.is_empty() {
            return Err(unsendable("a body that is read while it is sent, which goes over HTTP/1.1 only"));
        }
        let headers = request.headers.iter().filter(|(name, value)| !is_left_out(name, value));
        let headers = headers.map(|(name, value)| Ok((coded_name(name)?, value.clone())));
        let literal = request.body.as_ref().and_then(Template::as_literal);
        let mut prepared = Prepared {
            opening: Opening::new(&request.method, origin.is_secured, origin.authority)?,
            is_secured: origin.is_secured,
            authority: origin.authority.to_owned(),
            parts: Varying {
                path: request.path(origin.base_path),
                is_location: request.form == TargetForm::Location,
                headers: headers.collect::<Result<_, String>>()?,
                body: request.body.clone(),
            },
            own_cookies: request.without_cookies || has_header(request, "cookie"),
            fixed_body: literal.map(Bytes::copy_from_slice),
            says_no_body: says_no_body(request),
            whole: None,
            needs_body,
            shown_bytes: 0,
        };
        prepared.whole = prepared.fixed()?;
        if let Some(whole) = &mut prepared.whole {
            whole.mark_constant(number);
        }
        Ok(prepared)
    }

    /// The whole request, if nothing varies; in words why what does not cannot be sent.
    fn fixed(&self) -> Result<Option<Message>, String> {
        let mut message = Message::default();
        let path = self.parts.path.as_literal();
        message.begin(&self.opening, path.unwrap_or(b"/"))?;
        let mut varies = path.is_none() || self.parts.body.is_some() && self.fixed_body.is_none();
        for (name, value) in &self.parts.headers {
            match value.as_literal() {
                Some(value) => message.header(name, value)?,
                None => varies = true,
            }
        }
        self.end(&mut message)?;
        Ok((!varies).then_some(message))
    }

    /// The request with what varies in it, or why it cannot be sent. `scratch` is room.
    pub fn make(
        &self,
        cx: &mut Context<'_>,
        jar: &Jar,
        scratch: &mut Vec<u8>,
        message: &mut Message,
    ) -> Result<(), Failure> {
        if let (Some(whole), true) = (&self.whole, jar.is_empty() || self.own_cookies) {
            message.repeat(whole);
            return Ok(());
        }
        let Varying { path, is_location, headers, body } = &self.parts;
        scratch.clear();
        path.render(cx, scratch).map_err(Failure::Unmet)?;
        // a path without a hole is as the plan has it
        let begun = match *is_location && path.as_literal().is_none() {
            true => message.begin(&self.opening, &self.locate(path, scratch)?),
            false => message.begin(&self.opening, scratch),
        };
        begun.map_err(Failure::Unsendable)?;
        for (name, value) in headers {
            scratch.clear();
            value.render(cx, scratch).map_err(Failure::Unmet)?;
            message.header(name, scratch).map_err(Failure::Unsendable)?;
        }
        if !self.own_cookies {
            message.cookies((jar, cx.epoch_ms / 1_000), scratch).map_err(Failure::Unsendable)?;
        }
        if let (None, Some(body)) = (&self.fixed_body, body) {
            body.render(cx, message.own_body()).map_err(Failure::Unmet)?;
        }
        self.end(message).map_err(Failure::Unsendable)
    }

    /// Gives a request its body, unless that is its own, and its length.
    fn end(&self, message: &mut Message) -> Result<(), String> {
        if let Some(body) = &self.fixed_body {
            message.share(body);
        }
        if self.parts.body.is_some() || self.says_no_body { message.length() } else { Ok(()) }
    }

    fn locate(&self, path: &Template, location: &[u8]) -> Result<Vec<u8>, Failure> {
        let mut target = Vec::with_capacity(location.len());
        locate(self.is_secured, self.authority.as_bytes(), location, &mut target)
            .map_err(|reason| Failure::Unmet(unmet(path, reason)))?;
        Ok(target)
    }
}

pub(in crate::protocols) fn unsendable(what: &str) -> String {
    format!("the request cannot be sent: {what}")
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::template::Encoding;
    use tidemark_scenario::{Shared, Slot};

    use super::*;
    use crate::testing::put;

    /// As it leaves where the session's variable has this value.
    fn message(request: &HttpRequest, value: &str, jar: &Jar) -> Result<Message, String> {
        let origin = Origin { authority: "h:81", base_path: "/v1", is_secured: false, proxy: None };
        let prepared = Prepared::new((0, request), true, origin)?;
        let shared = Shared::new(0, Vec::new());
        let mut slot = Slot::default();
        slot.set_text(value.as_bytes());
        let slots = [slot];
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut message = Message::default();
        let made = prepared.make(&mut cx, jar, &mut Vec::new(), &mut message);
        made.map_err(|failure| failure.to_string()).map(|()| message)
    }

    fn hole(before: &str) -> Template {
        let mut template = Template::literal(before);
        template.push_hole(tidemark_scenario::Expr::variable(0), Encoding::Raw);
        template
    }

    /// All headers, with the pseudo-headers in front.
    fn headers(message: &Message) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = message.fields();
        let all = fields.iter_all().map(|(name, value)| format!("{}={}", text(name), text(value)));
        all.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_request_keeps_all_but_what_speaks_of_its_connection() {
        let header = |name: &str, value: &str| (name.to_owned(), Template::literal(value));
        let request = HttpRequest {
            method: "POST".into(),
            target: Template::literal("/a?b=c"),
            headers: vec![
                header("Connection", "close"),
                header("Proxy-Connection", "close"),
                header("TE", "gzip"),
                header("te", "trailers"),
                header("X-A", "1"),
                header("x-a", "2"),
            ],
            body: Some(Template::literal("xyz")),
            ..HttpRequest::default()
        };
        let sent = message(&request, "", &Jar::default()).unwrap();
        assert_eq!(
            headers(&sent),
            ":method=POST :scheme=http :authority=h:81 :path=/v1/a?b=c te=trailers x-a=1 x-a=2 content-length=3"
        );
        assert_eq!(
            (sent.path(), sent.body(), &sent.rest(1)[..]),
            (&b"/v1/a?b=c"[..], &b"xyz"[..], &b"yz"[..])
        );
        assert!(!sent.is_head() && sent.block().starts_with(&[0x83, 0x86]));
    }

    #[test]
    fn what_varies_is_written_for_each_and_cookies_go_where_they_belong() {
        let varying = HttpRequest {
            method: "PUT".into(),
            target: hole("/a/"),
            headers: vec![("X-V".into(), hole("v"))],
            body: Some(hole("n=")),
            ..HttpRequest::default()
        };
        let mut jar = Jar::default();
        ["id=7", "b=2; Path=/v1/a", "c=3; Path=/other"].iter().for_each(|set| put(&mut jar, set));
        for value in ["42", "43"] {
            let sent = message(&varying, value, &jar).unwrap();
            let expected = format!(
                ":method=PUT :scheme=http :authority=h:81 :path=/v1/a/{value} x-v=v{value} cookie=b=2; id=7 content-length=4"
            );
            assert_eq!(headers(&sent), expected);
            assert_eq!((sent.body(), &sent.rest(2)[..]), (format!("n={value}").as_bytes(), value.as_bytes()));
        }
        let own = HttpRequest {
            method: "POST".into(),
            target: Template::literal("/"),
            headers: vec![("Cookie".into(), Template::literal("own=1"))],
            ..HttpRequest::default()
        };
        let sent = message(&own, "", &jar).unwrap();
        assert_eq!(
            headers(&sent),
            ":method=POST :scheme=http :authority=h:81 :path=/v1/ cookie=own=1 content-length=0"
        );
    }

    #[test]
    fn what_http_2_cannot_say_is_told() {
        let request = |target: Template, headers| HttpRequest {
            method: "GET".into(),
            target,
            headers,
            ..HttpRequest::default()
        };
        let jar = Jar::default();
        for (request, what) in [
            (request(hole("/"), Vec::new()), "its path"),
            (request(Template::literal("/a b"), Vec::new()), "its path"),
            (request(Template::literal("/"), vec![("x".into(), hole(""))]), "the value of a header"),
            (request(Template::literal("/"), vec![("x y".into(), hole(""))]), "the name of a header"),
        ] {
            let error = message(&request, "a\r\nb", &jar).unwrap_err();
            assert_eq!(error, unsendable(what));
        }
        // those of a plan leave them out
        assert!(coded_name("Upgrade").unwrap_err().contains("HTTP/1.1"));
        assert_eq!(coded_name("Cookie").as_deref(), Ok(COOKIE));
        assert_eq!(coded_name("Content-Length").as_deref(), Ok(CONTENT_LENGTH));
        for (method, authority) in [("GE T", "h"), ("", "h"), ("GET", ""), ("GET", "h/x"), ("GET", "a@h")] {
            assert!(Opening::new(method, false, authority).is_err(), "{method} {authority}");
        }
        let mut message = Message::default();
        let opening = Opening::new("HEAD", true, "h").unwrap();
        for (path, sent) in [("", "/"), ("?a", "/?a"), ("/a#b", "/a"), ("/ü", "/ü")] {
            message.begin(&opening, path.as_bytes()).unwrap();
            assert_eq!((message.path(), message.is_head()), (sent.as_bytes(), true));
        }
    }
}
