//! Requests made ready for the wire: what does not vary is put together once.

use tidemark_scenario::plan::{LedgerPlan, RequestPlan};
use tidemark_scenario::template::{Part, Template};
use tidemark_scenario::{Context, Plan, Unmet};

use crate::Target;
use crate::answer::Probe;
use crate::clock::nanoseconds;
use crate::drive::DriveError;
use crate::jar::Jar;

/// Methods whose requests say that they have no body.
const BODY_METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];

/// A request as one thread sends it.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Index into the plan's labels.
    pub label: u16,
    /// Longest time from due to the last byte.
    pub timeout_ns: u64,
    /// Whether the answer has no body whatever its headers say.
    pub is_head: bool,
    /// Whether it asks for another protocol.
    pub asks_upgrade: bool,
    /// What is looked at in the answer.
    pub probe: Probe,
    /// How its write is entered, if it is.
    pub ledger: Option<LedgerPlan>,
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

impl Prepared {
    /// Prepares all requests of a plan.
    pub fn all(plan: &Plan, target: &Target) -> Result<Vec<Self>, DriveError> {
        plan.requests.iter().map(|request| Prepared::new(plan, request, target)).collect()
    }

    fn new(plan: &Plan, request: &RequestPlan, target: &Target) -> Result<Self, DriveError> {
        let head = match request.is_message() {
            true => Some(Template::default()),
            false => aimed(request, target, plan.limits.keep_alive),
        };
        let head = head.ok_or_else(|| DriveError::Head {
            label: plan.labels.get(request.label as usize).cloned().unwrap_or_default(),
        })?;
        let names = |header: &str| {
            let line = format!("\r\n{header}:");
            let named = |part: &Part| matches!(part, Part::Literal(bytes) if memchr::memmem::find(&bytes.to_ascii_lowercase(), line.as_bytes()).is_some());
            head.parts.iter().any(named)
        };
        let expects_body = BODY_METHODS.contains(&request.method.as_str());
        let mut prepared = Prepared {
            label: request.label,
            timeout_ns: nanoseconds(request.timeout),
            is_head: request.method == "HEAD",
            probe: Probe::new(request),
            ledger: request.ledger.clone(),
            own_cookies: names("cookie"),
            asks_upgrade: names("upgrade"),
            head,
            body: request.body.clone(),
            bare_end: if expects_body { b"Content-Length: 0\r\n\r\n" } else { b"\r\n" },
            whole: None,
        };
        let literal_body = match &prepared.body {
            None => Some(None),
            Some(body) => body.as_literal().map(Some),
        };
        if let (Some(head), Some(body), false) =
            (prepared.head.as_literal(), literal_body, request.is_message())
        {
            let mut whole = head.to_vec();
            match body {
                None => whole.extend_from_slice(prepared.bare_end),
                Some(body) => append_body(&mut whole, body),
            }
            prepared.whole = Some(whole.into_boxed_slice());
        }
        Ok(prepared)
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

impl Prepared {
    /// Appends what a message holds.
    pub fn render_message(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), Unmet> {
        self.body.as_ref().map_or(Ok(()), |body| body.render(cx, out))
    }
}

fn append_body(out: &mut Vec<u8>, body: &[u8]) {
    out.extend_from_slice(b"Content-Length: ");
    out.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body);
}

/// The head with the base path in front of the path, and the Host header behind the request line, neighbouring
/// literals joined. None if the head does not begin with its method or has no request line.
fn aimed(request: &RequestPlan, target: &Target, keep_alive: bool) -> Option<Template> {
    let mut parts = Vec::with_capacity(request.head.parts.len());
    let mut literal: Vec<u8> = Vec::new();
    let mut line_ended = false;
    for (index, part) in request.head.parts.iter().enumerate() {
        match part {
            Part::Literal(bytes) => {
                let mut rest = &bytes[..];
                if index == 0 {
                    rest = rest.strip_prefix(request.method.as_bytes())?.strip_prefix(b" ")?;
                    literal.extend_from_slice(request.method.as_bytes());
                    literal.push(b' ');
                    literal.extend_from_slice(target.base_path.as_bytes());
                }
                let end = rest.windows(2).position(|two| two == b"\r\n").filter(|_| !line_ended);
                if let Some(end) = end {
                    literal.extend_from_slice(&rest[..end]);
                    literal.extend_from_slice(b"\r\nHost: ");
                    literal.extend_from_slice(target.authority.as_bytes());
                    if !keep_alive {
                        literal.extend_from_slice(b"\r\nConnection: close");
                    }
                    rest = &rest[end..];
                    line_ended = true;
                }
                literal.extend_from_slice(rest);
            }
            Part::Hole(..) => {
                if index == 0 {
                    return None;
                }
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal).into_boxed_slice()));
                }
                parts.push(part.clone());
            }
        }
    }
    if !literal.is_empty() {
        parts.push(Part::Literal(literal.into_boxed_slice()));
    }
    line_ended.then_some(Template { parts })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidemark_scenario::template::Encoding;
    use tidemark_scenario::{Expr, Shared};

    use super::*;
    use crate::Address;

    fn request(method: &str, head: Template, body: Option<Template>) -> RequestPlan {
        let timeout = Duration::from_secs(1);
        let method = method.to_owned();
        RequestPlan {
            label: 0,
            method,
            head,
            body,
            ledger: None,
            timeout,
            extractions: Vec::new(),
            checks: Vec::new(),
        }
    }

    fn rendered(request: &RequestPlan, base_path: &str, cookie: Option<&str>) -> String {
        let target = Target {
            address: Address::Tcp("127.0.0.1:80".parse().unwrap()),
            authority: "h:80".into(),
            base_path: base_path.into(),
            tls: None,
            http2: None,
            rpc: None,
        };
        let head = aimed(request, &target, true).expect("a right head");
        let whole = head.as_literal().is_some();
        let plan = crate::testing::plan(vec![request.clone()]);
        let prepared = Prepared::new(&plan, request, &target).unwrap();
        assert_eq!(
            prepared.whole.is_some(),
            whole && request.body.as_ref().is_none_or(|b| b.as_literal().is_some())
        );
        let mut jar = Jar::default();
        if let Some(cookie) = cookie {
            jar.take(cookie.as_bytes());
        }
        let shared = Shared::new(0, Vec::new());
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = Vec::new();
        prepared.render(&mut cx, &jar, &mut out, &mut Vec::new()).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_plain_get_is_one_piece() {
        let get = request("GET", Template::literal("GET /a?b=c HTTP/1.1\r\nAccept: */*\r\n"), None);
        let expected = "GET /base/a?b=c HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\n\r\n";
        assert_eq!(rendered(&get, "/base", None), expected);
        let expected = "GET /a?b=c HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\nCookie: id=7\r\n\r\n";
        assert_eq!(rendered(&get, "", Some("id=7")), expected);
    }

    #[test]
    fn bodies_have_their_length() {
        let body = Some(Template::literal("x=1&y"));
        let post = request("POST", Template::literal("POST /a HTTP/1.1\r\n"), body);
        let expected = "POST /a HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\n\r\nx=1&y";
        assert_eq!(rendered(&post, "", None), expected);
        let bare = request("POST", Template::literal("POST /a HTTP/1.1\r\n"), None);
        let expected = "POST /a HTTP/1.1\r\nHost: h:80\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(rendered(&bare, "", None), expected);
    }

    #[test]
    fn holes_in_path_and_body() {
        let hole = || Part::Hole(Expr::int(42), Encoding::Url);
        let literal = |text: &str| Part::Literal(text.as_bytes().into());
        let head = Template {
            parts: vec![literal("PUT /a/"), hole(), literal(" HTTP/1.1\r\nX: "), hole(), literal("\r\n")],
        };
        let put = request("PUT", head, Some(Template { parts: vec![literal("n="), hole()] }));
        let expected = "PUT /v1/a/42 HTTP/1.1\r\nHost: h:80\r\nX: 42\r\nContent-Length: 4\r\n\r\nn=42";
        assert_eq!(rendered(&put, "/v1", None), expected);
    }

    #[test]
    fn a_head_without_a_request_line_is_an_error() {
        let address = Address::Tcp("127.0.0.1:80".parse().unwrap());
        let (authority, base_path) = ("h".into(), String::new());
        let target = Target { address, authority, base_path, tls: None, http2: None, rpc: None };
        for head in ["", "GET /", "POST / HTTP/1.1\r\n", "GET"] {
            let request = request("GET", Template::literal(head), None);
            assert!(aimed(&request, &target, true).is_none(), "{head:?}");
        }
    }
}
