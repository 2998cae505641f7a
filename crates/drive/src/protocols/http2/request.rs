//! Requests as the library takes them, made of the typed ones.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, COOKIE, HeaderName};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Method, Request, Uri, Version};
use tidemark_scenario::plan::{HttpRequest, TargetForm};
use tidemark_scenario::{Context, Template};

use crate::protocols::http::{BODY_METHODS, has_header, says_no_body, unmet};
use crate::protocols::transport::Origin;
use crate::session::failure::Failure;
use crate::session::jar::Jar;
use crate::session::location::locate;
use crate::session::program::ProgramRequest;

/// Headers that speak of an HTTP/1.1 connection; HTTP/2 forbids them.
const OF_CONNECTION: [&str; 6] =
    ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade", "host"];

/// A request and its body.
pub(in crate::protocols) type Message = (Request<()>, Bytes);

/// A part of a request.
#[derive(Debug)]
enum Part<T> {
    Fixed(T),
    Varying(Template),
}

/// A request made ready: what does not vary is in the library's form already.
#[derive(Debug)]
pub(super) struct Prepared {
    method: Method,
    scheme: Scheme,
    authority: Authority,
    path: Part<PathAndQuery>,
    /// Whether the path is one that a server has named, which is brought into form.
    is_location: bool,
    headers: Vec<(HeaderName, Part<HeaderValue>)>,
    /// Whether it has its own cookies, which stand in place of the session's.
    own_cookies: bool,
    body: Option<Part<Bytes>>,
    says_no_body: bool,
    /// The whole request, where nothing varies but cookies.
    whole: Option<Message>,
    /// Whether the answer's body is kept.
    pub needs_body: bool,
    /// Bytes of it that are kept to be seen where it is not.
    pub shown_bytes: usize,
}

/// What the requests of programs are put into.
#[derive(Debug)]
pub(super) struct Frame {
    scheme: Scheme,
    authority: Authority,
    base_path: String,
}

impl Frame {
    /// For this server; in words why nothing can be sent.
    pub fn new(origin: Origin<'_>) -> Result<Frame, String> {
        Ok(Frame {
            scheme: if origin.is_secured { Scheme::HTTPS } else { Scheme::HTTP },
            authority: Authority::try_from(origin.authority).map_err(|_| unsendable("its host"))?,
            base_path: origin.base_path.to_owned(),
        })
    }

    /// A request that a program has made, or in words why it cannot be sent. `scratch` is room.
    pub fn make(
        &self,
        made: &ProgramRequest,
        (jar, now_s): (&Jar, i64),
        scratch: &mut Vec<u8>,
    ) -> Result<Message, String> {
        if made.written.is_some() {
            return Err(unsendable("its bytes, which are of HTTP/1.1"));
        }
        let path = path_and_query(format!("{}{}", self.base_path, made.path).as_bytes())?;
        let method = Method::from_bytes(made.method.as_bytes()).map_err(|_| unsendable("its method"))?;
        let own_host = made.header("host").map(Authority::try_from).transpose();
        let authority = own_host.map_err(|_| unsendable("its host"))?;
        let authority = authority.as_ref().unwrap_or(&self.authority);
        let mut request = begin(method, &self.scheme, authority, path)?;
        let headers = request.headers_mut();
        for (name, value) in made.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable("the name of a header"))?;
            headers.append(name, header_value(value.as_bytes())?);
        }
        if !made.without_cookies && made.header("cookie").is_none() {
            append_cookies(&mut request, (jar, now_s), scratch)?;
        }
        let body = made.body.as_ref().map(|body| Bytes::copy_from_slice(body));
        if made.stays_open {
            // how long it will be is not known
            return Ok((request, body.unwrap_or_default()));
        }
        let says_no_body = BODY_METHODS.contains(&made.method.as_str());
        Ok(end(request, body, says_no_body))
    }
}

impl Prepared {
    /// For this server; in words why it cannot be sent.
    pub fn new(request: &HttpRequest, needs_body: bool, origin: Origin<'_>) -> Result<Prepared, String> {
        if !request.upload.is_empty() {
            return Err(unsendable("a body that is read while it is sent, which goes over HTTP/1.1 only"));
        }
        let path = request.path(origin.base_path);
        let headers = request
            .headers
            .iter()
            .filter(|(name, _)| !OF_CONNECTION.iter().any(|forbidden| name.eq_ignore_ascii_case(forbidden)));
        let headers = headers.map(|(name, value)| {
            let name =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| unsendable("the name of a header"))?;
            Ok((name, part(value, header_value)?))
        });
        let mut prepared = Prepared {
            method: Method::from_bytes(request.method.as_bytes()).map_err(|_| unsendable("its method"))?,
            scheme: if origin.is_secured { Scheme::HTTPS } else { Scheme::HTTP },
            authority: Authority::try_from(origin.authority).map_err(|_| unsendable("its host"))?,
            path: part(&path, path_and_query)?,
            is_location: request.form == TargetForm::Location,
            headers: headers.collect::<Result<_, String>>()?,
            own_cookies: request.without_cookies || has_header(request, "cookie"),
            body: request.body.as_ref().map(|body| part(body, to_bytes)).transpose()?,
            says_no_body: says_no_body(request),
            whole: None,
            needs_body,
            shown_bytes: 0,
        };
        prepared.whole = prepared.fixed();
        Ok(prepared)
    }

    /// The whole request, if nothing varies.
    fn fixed(&self) -> Option<Message> {
        let Part::Fixed(path) = &self.path else { return None };
        let body = match &self.body {
            None => None,
            Some(Part::Fixed(body)) => Some(body.clone()),
            Some(Part::Varying(_)) => return None,
        };
        let mut request = begin(self.method.clone(), &self.scheme, &self.authority, path.clone()).ok()?;
        for (name, value) in &self.headers {
            let Part::Fixed(value) = value else { return None };
            request.headers_mut().append(name.clone(), value.clone());
        }
        Some(end(request, body, self.says_no_body))
    }

    /// The request with what varies in it, or why it cannot be sent. `scratch` is room.
    pub fn make(&self, cx: &mut Context<'_>, jar: &Jar, scratch: &mut Vec<u8>) -> Result<Message, Failure> {
        if let (Some(whole), true) = (&self.whole, jar.is_empty() || self.own_cookies) {
            return Ok(whole.clone());
        }
        let path = match &self.path {
            Part::Varying(path) if self.is_location => self.locate(path, cx, scratch)?,
            path => made(path, cx, scratch, path_and_query)?,
        };
        let mut request =
            begin(self.method.clone(), &self.scheme, &self.authority, path).map_err(Failure::Unsendable)?;
        for (name, value) in &self.headers {
            let value = made(value, cx, scratch, header_value)?;
            request.headers_mut().append(name.clone(), value);
        }
        if !self.own_cookies {
            append_cookies(&mut request, (jar, cx.epoch_ms / 1_000), scratch).map_err(Failure::Unsendable)?;
        }
        let body = self.body.as_ref().map(|body| made(body, cx, scratch, to_bytes)).transpose()?;
        Ok(end(request, body, self.says_no_body))
    }

    fn locate(
        &self,
        path: &Template,
        cx: &mut Context<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<PathAndQuery, Failure> {
        scratch.clear();
        path.render(cx, scratch).map_err(Failure::Unmet)?;
        let mut target = Vec::with_capacity(scratch.len());
        let is_secured = self.scheme == Scheme::HTTPS;
        locate(is_secured, self.authority.as_str().as_bytes(), scratch, &mut target)
            .map_err(|reason| Failure::Unmet(unmet(path, reason)))?;
        path_and_query(&target).map_err(Failure::Unsendable)
    }
}

pub(in crate::protocols) fn begin(
    method: Method,
    scheme: &Scheme,
    authority: &Authority,
    path: PathAndQuery,
) -> Result<Request<()>, String> {
    let uri = Uri::builder().scheme(scheme.clone()).authority(authority.clone());
    let mut request = Request::new(());
    *request.uri_mut() = uri.path_and_query(path).build().map_err(|_| unsendable("its path"))?;
    *request.method_mut() = method;
    *request.version_mut() = Version::HTTP_2;
    Ok(request)
}

/// Appends the cookies for a request, if there are any.
fn append_cookies(
    request: &mut Request<()>,
    (jar, now_s): (&Jar, i64),
    scratch: &mut Vec<u8>,
) -> Result<(), String> {
    if jar.is_empty() {
        return Ok(());
    }
    scratch.clear();
    let path = request.uri().path_and_query().map_or("/", PathAndQuery::as_str);
    scratch.extend_from_slice(path.as_bytes());
    let length = scratch.len();
    if jar.write(scratch, 0..length, now_s) {
        let cookies = header_value(&scratch[length..])?;
        request.headers_mut().append(COOKIE, cookies);
    }
    Ok(())
}

fn end(mut request: Request<()>, body: Option<Bytes>, says_no_body: bool) -> Message {
    if body.is_some() || says_no_body {
        let length = body.as_ref().map_or(0, Bytes::len);
        request.headers_mut().append(CONTENT_LENGTH, length.into());
    }
    (request, body.unwrap_or_default())
}

fn part<T>(template: &Template, form: impl Fn(&[u8]) -> Result<T, String>) -> Result<Part<T>, String> {
    match template.as_literal() {
        Some(literal) => form(literal).map(Part::Fixed),
        None => Ok(Part::Varying(template.clone())),
    }
}

fn made<T: Clone>(
    part: &Part<T>,
    cx: &mut Context<'_>,
    scratch: &mut Vec<u8>,
    form: impl Fn(&[u8]) -> Result<T, String>,
) -> Result<T, Failure> {
    match part {
        Part::Fixed(fixed) => Ok(fixed.clone()),
        Part::Varying(template) => {
            scratch.clear();
            template.render(cx, scratch).map_err(Failure::Unmet)?;
            form(scratch).map_err(Failure::Unsendable)
        }
    }
}

pub(in crate::protocols) fn path_and_query(text: &[u8]) -> Result<PathAndQuery, String> {
    PathAndQuery::try_from(text).map_err(|_| unsendable("its path"))
}

pub(in crate::protocols) fn header_value(text: &[u8]) -> Result<HeaderValue, String> {
    HeaderValue::from_bytes(text).map_err(|_| unsendable("the value of a header"))
}

fn to_bytes(text: &[u8]) -> Result<Bytes, String> {
    Ok(Bytes::copy_from_slice(text))
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
        let prepared = Prepared::new(request, true, origin)?;
        let shared = Shared::new(0, Vec::new());
        let mut slot = Slot::default();
        slot.set_text(value.as_bytes());
        let slots = [slot];
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
        prepared.make(&mut cx, jar, &mut Vec::new()).map_err(|failure| failure.to_string())
    }

    fn hole(before: &str) -> Template {
        let mut template = Template::literal(before);
        template.push_hole(tidemark_scenario::Expr::variable(0), Encoding::Raw);
        template
    }

    fn names(message: &Message) -> Vec<&str> {
        message.0.headers().keys().map(HeaderName::as_str).collect()
    }

    #[test]
    fn a_request_keeps_all_but_what_speaks_of_its_connection() {
        let header = |name: &str, value: &str| (name.to_owned(), Template::literal(value));
        let request = HttpRequest {
            method: "POST".into(),
            target: Template::literal("/a?b=c"),
            headers: vec![header("Connection", "close"), header("X-A", "1"), header("x-a", "2")],
            body: Some(Template::literal("xyz")),
            ..HttpRequest::default()
        };
        let sent = message(&request, "", &Jar::default()).unwrap();
        assert_eq!(sent.0.uri(), "http://h:81/v1/a?b=c");
        assert_eq!((sent.0.method(), &sent.1[..]), (&Method::POST, &b"xyz"[..]));
        assert_eq!(names(&sent), ["x-a", "content-length"]);
        assert_eq!(sent.0.headers().get_all("x-a").iter().count(), 2);
        assert_eq!(sent.0.headers()["content-length"], "3");
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
            assert_eq!(sent.0.uri().path(), format!("/v1/a/{value}"));
            assert_eq!(sent.0.headers()["x-v"], format!("v{value}"));
            assert_eq!(sent.0.headers()["cookie"], "b=2; id=7");
            assert_eq!((&sent.1[..], names(&sent).len()), (format!("n={value}").as_bytes(), 3));
        }
        let own = HttpRequest {
            method: "POST".into(),
            target: Template::literal("/"),
            headers: vec![("Cookie".into(), Template::literal("own=1"))],
            ..HttpRequest::default()
        };
        let sent = message(&own, "", &jar).unwrap();
        assert_eq!(
            (&sent.0.headers()["cookie"], names(&sent).len()),
            (&HeaderValue::from_static("own=1"), 2)
        );
        assert_eq!(sent.0.headers()["content-length"], "0");
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
    }
}
