//! The headers of a request as k6 sends them: a name stands once, as Go writes it, with the value that was set last.

use rquickjs::convert::List;
use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result, Value};

use crate::host::host;
use crate::text::Told;
use crate::vu::Request;

/// Headers that the driver writes.
const OURS: [&str; 3] = ["Content-Length", "Connection", "Transfer-Encoding"];

/// Adds the native that reads headers.
pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("headOf", Func::from(head_of))
}

/// What a line begins with that tells why a request cannot be sent. It is the first of a head.
const FLAW: &str = ": ";

/// What a script says of a request's head.
#[derive(Debug, Default)]
pub(crate) struct Head {
    headers: Vec<(String, String)>,
    /// Why it cannot be sent, in Go's words.
    flaw: Option<String>,
    /// Cookies that it writes itself.
    cookie: Option<String>,
}

impl Head {
    /// Reads an object with headers.
    ///
    /// # Errors
    /// What its getters throw.
    pub fn read(headers: Option<&Object<'_>>) -> Result<Head> {
        let mut head = Head::default();
        for header in headers.into_iter().flat_map(Object::props::<String, Told>) {
            let (written, Told(value)) = header?;
            let name = canonical(&written);
            let asks_end = name == "Connection" && value.split(',').any(|word| is_close(word.trim()));
            if (OURS.contains(&name.as_str()) && !asks_end) || (name == "Host" && value.is_empty()) {
                continue;
            }
            let value = if asks_end { "close".to_owned() } else { value };
            let wrong = match value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
                _ if !is_token(&name) => Some(format!("net/http: invalid header field name {written:?}")),
                true => Some(format!("net/http: invalid header field value for {name:?}")),
                false => None,
            };
            if let Some(wrong) = wrong {
                head.flaw.get_or_insert(wrong);
                continue;
            }
            match head.headers.iter_mut().find(|(known, _)| *known == name) {
                _ if name == "Cookie" => head.cookie = Some(value),
                Some((_, known)) => *known = value,
                None => head.headers.push((name, value)),
            }
        }
        Ok(head)
    }

    fn has(&self, name: &str) -> bool {
        self.headers.iter().any(|(known, _)| known == name)
    }

    /// Its lines, without cookies. `agent` is the one that names who asks, unless a header does.
    fn lines(&self, agent: &str) -> String {
        let mut lines = String::new();
        if let Some(flaw) = &self.flaw {
            add_line(&mut lines, "", flaw);
        }
        // as in Go, an agent without a name is none
        let is_there = |(name, value): &&(String, String)| name != "User-Agent" || !value.is_empty();
        self.headers.iter().filter(is_there).for_each(|(name, value)| add_line(&mut lines, name, value));
        if !self.has("User-Agent") {
            lines.push_str(agent);
        }
        lines
    }

    /// Its lines with the cookies.
    pub fn lines_with_cookies(&self, agent: &str) -> String {
        let mut lines = self.lines(agent);
        if let Some(cookie) = self.cookie.as_ref().filter(|cookie| !cookie.is_empty()) {
            add_line(&mut lines, "Cookie", cookie);
        }
        lines
    }
}

/// The lines of a head, its cookies, whether it has a type, and a referer.
type Read = List<(String, Option<String>, bool, bool)>;

fn head_of<'js>(ctx: Ctx<'js>, headers: Value<'js>) -> Result<Read> {
    let head = Head::read(headers.as_object())?;
    let lines = head.lines(&host(&ctx)?.agent.borrow());
    let (has_type, has_referer) = (head.has("Content-Type"), head.has("Referer"));
    Ok(List((lines, head.cookie, has_type, has_referer)))
}

/// A name as Go writes it: `X-Request-Id`.
fn canonical(name: &str) -> String {
    let mut is_first = true;
    let letter = |c: char| {
        let letter = if is_first { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() };
        is_first = c == '-';
        letter
    };
    name.chars().map(letter).collect()
}

/// Whether it may be the name of a header (RFC 9110, 5.6.2).
fn is_token(name: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_fit)
}

fn is_close(word: &str) -> bool {
    word.eq_ignore_ascii_case("close")
}

/// The headers of a head's lines, such as `Name: value`.
pub(crate) fn headers(head: &str) -> Vec<(String, String)> {
    let pairs = head.lines().filter_map(|line| line.split_once(": ").filter(|(name, _)| !name.is_empty()));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// Gives a request the headers of a head's lines, and what these say besides.
pub(crate) fn give(request: &mut Request, head: &str) {
    request.headers = headers(head);
    if let Some(at) = request.headers.iter().position(|(name, _)| name == "Connection") {
        request.headers.remove(at);
        request.closes = true;
    }
    request.flaw = head.strip_prefix(FLAW).and_then(|rest| rest.lines().next()).map(str::to_owned);
}

fn add_line(head: &mut String, name: &str, value: &str) {
    for part in [name, ": ", value, "\n"] {
        head.push_str(part);
    }
}
