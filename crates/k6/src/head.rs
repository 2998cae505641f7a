//! The headers of a request as k6 sends them: a name stands once, as Go writes it, with the value that was set last.

use rquickjs::convert::List;
use rquickjs::function::Func;
use rquickjs::{Ctx, Object, Result, Value};

use crate::host::host;
use crate::modules::thrown;
use crate::text::Told;

/// Headers that the driver writes.
const OURS: [&str; 3] = ["Content-Length", "Connection", "Transfer-Encoding"];

/// Adds the native that reads headers.
pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("headOf", Func::from(head_of))
}

/// What a script says of a request's head.
#[derive(Debug, Default)]
pub(crate) struct Head {
    headers: Vec<(String, String)>,
    /// Cookies that it writes itself.
    cookie: Option<String>,
}

impl Head {
    /// Reads an object with headers.
    ///
    /// # Errors
    /// If one cannot be sent.
    pub fn read(ctx: &Ctx<'_>, headers: Option<&Object<'_>>) -> Result<Head> {
        let mut head = Head::default();
        for header in headers.into_iter().flat_map(Object::props::<String, Told>) {
            let (written, Told(value)) = header?;
            let name = canonical(&written);
            if OURS.contains(&name.as_str()) || (name == "Host" && value.is_empty()) {
                continue;
            }
            if value.contains(['\n', '\r', '\0']) || !is_token(&name) {
                return Err(thrown(ctx, &format!("invalid header {written}")));
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
        self.headers.iter().for_each(|(name, value)| add_line(&mut lines, name, value));
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
    let head = Head::read(&ctx, headers.as_object())?;
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

fn add_line(head: &mut String, name: &str, value: &str) {
    for part in [name, ": ", value, "\n"] {
        head.push_str(part);
    }
}
