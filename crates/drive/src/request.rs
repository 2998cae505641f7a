//! Requests made ready for the wire, by protocol.

use tidemark_scenario::plan::{Ask, LedgerPlan, RequestPlan};
use tidemark_scenario::{Context, Plan, Template, Unmet};

use crate::Target;
use crate::answer::Probe;
use crate::clock::nanoseconds;
use crate::codec::Expected;
use crate::jar::Jar;
use crate::{http1, redis};

/// A request as one thread sends it.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// Index into the plan's labels.
    pub label: u16,
    /// Longest time from due to the last byte.
    pub timeout_ns: u64,
    /// What its answer's codec has to know.
    pub expected: Expected,
    /// What is looked at in the answer.
    pub probe: Probe,
    /// How its write is entered, if it is.
    pub ledger: Option<LedgerPlan>,
    written: Written,
}

/// How it is written: every protocol that has requests of its own.
#[derive(Debug)]
enum Written {
    Http(http1::Request),
    Message(Option<Template>),
    Redis(redis::Command),
}

impl Prepared {
    /// Prepares all requests of a plan.
    pub fn all(plan: &Plan, target: &Target) -> Vec<Self> {
        plan.requests.iter().map(|request| Prepared::new(plan, request, target)).collect()
    }

    fn new(plan: &Plan, request: &RequestPlan, target: &Target) -> Self {
        let written = match &request.ask {
            Ask::Http(request) => Written::Http(http1::Request::new(request, target, plan.limits.keep_alive)),
            Ask::Call(call) => Written::Http(http1::Request::of_call(call, target)),
            Ask::Message(message) => Written::Message(message.clone()),
            Ask::Redis(words) => Written::Redis(redis::Command::new(words)),
        };
        let probe = Probe::new(request);
        let expected = match &request.ask {
            Ask::Http(request) => Expected {
                needs_body: probe.needs_body,
                is_head: request.method == "HEAD",
                asks_upgrade: http1::has_header(request, "upgrade"),
            },
            _ => Expected { needs_body: probe.needs_body, ..Expected::default() },
        };
        Prepared {
            label: request.label,
            timeout_ns: nanoseconds(request.timeout),
            expected,
            probe,
            ledger: request.ledger.clone(),
            written,
        }
    }

    /// Appends the request to `out`; nothing of it where something that it needs is not there.
    pub fn render(
        &self,
        cx: &mut Context<'_>,
        jar: &Jar,
        out: &mut Vec<u8>,
        scratch: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        match &self.written {
            Written::Http(request) => request.render(cx, jar, out, scratch),
            Written::Redis(command) => command.render(cx, out, scratch),
            Written::Message(_) => self.render_message(cx, out),
        }
    }

    /// Appends what a message holds.
    pub fn render_message(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), Unmet> {
        match &self.written {
            Written::Message(Some(message)) => message.render(cx, out),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidemark_scenario::plan::HttpRequest;
    use tidemark_scenario::template::{Encoding, Part};
    use tidemark_scenario::{Expr, Shared};

    use super::*;

    fn request(method: &str, path: Template, body: Option<Template>) -> HttpRequest {
        HttpRequest { method: method.to_owned(), target: path, headers: Vec::new(), body }
    }

    fn rendered(ask: Ask, base_path: &str, cookie: Option<&str>) -> String {
        let target =
            Target { authority: "h:80".into(), base_path: base_path.into(), ..crate::testing::target() };
        let timeout = Duration::from_secs(1);
        let request =
            RequestPlan { label: 0, ask, ledger: None, timeout, extractions: Vec::new(), checks: Vec::new() };
        let plan = crate::testing::plan(vec![request.clone()]);
        let prepared = Prepared::new(&plan, &request, &target);
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
        assert_eq!(rendered(Ask::Http(get.clone()), "/base", None), expected);
        let expected = "GET /a?b=c HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\nCookie: id=7\r\n\r\n";
        assert_eq!(rendered(Ask::Http(get.clone()), "", Some("id=7")), expected);
        get.headers.push(("cookie".into(), Template::literal("own=1")));
        let expected = "GET /a?b=c HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\ncookie: own=1\r\n\r\n";
        assert_eq!(rendered(Ask::Http(get), "", Some("id=7")), expected);
    }

    #[test]
    fn bodies_have_their_length() {
        let post = request("POST", Template::literal("/a"), Some(Template::literal("x=1&y")));
        let expected = "POST /a HTTP/1.1\r\nHost: h:80\r\nContent-Length: 5\r\n\r\nx=1&y";
        assert_eq!(rendered(Ask::Http(post), "", None), expected);
        let bare = request("POST", Template::literal("/a"), None);
        let expected = "POST /a HTTP/1.1\r\nHost: h:80\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(rendered(Ask::Http(bare), "", None), expected);
    }

    #[test]
    fn holes_in_path_header_and_body() {
        let body = Some(Template { parts: vec![literal("n="), hole()] });
        let mut put = request("PUT", Template { parts: vec![literal("/a/"), hole()] }, body);
        put.headers.push(("X".into(), Template { parts: vec![hole()] }));
        let expected = "PUT /v1/a/42 HTTP/1.1\r\nHost: h:80\r\nX: 42\r\nContent-Length: 4\r\n\r\nn=42";
        assert_eq!(rendered(Ask::Http(put), "/v1", None), expected);
    }

    #[test]
    fn a_command_has_the_length_of_each_word() {
        let words =
            |parts: Vec<Vec<Part>>| Ask::Redis(parts.into_iter().map(|parts| Template { parts }).collect());
        let ping = words(vec![vec![literal("PING")]]);
        assert_eq!(rendered(ping, "", None), "*1\r\n$4\r\nPING\r\n");
        let set = words(vec![
            vec![literal("SET")],
            vec![literal("k:"), hole()],
            vec![literal("")],
            vec![hole()],
            vec![literal("NX")],
        ]);
        let expected = "*5\r\n$3\r\nSET\r\n$4\r\nk:42\r\n$0\r\n\r\n$2\r\n42\r\n$2\r\nNX\r\n";
        assert_eq!(rendered(set, "", None), expected);
    }
}
