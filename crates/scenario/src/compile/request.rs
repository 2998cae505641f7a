//! Requests: their bytes, what is kept of the answer, and what must hold of it.

use std::time::Duration;

use super::Session;
use super::define::one_or_many;
use crate::plan::{Ask, Check, Extraction, HttpRequest, Op, RequestPlan, Source, TextTest, WhenMissing};
use crate::reader::Reader;
use crate::sink::Sink;
use crate::template::{Encoding, Part, Template};
use crate::yaml::{Node, Place};

/// Longest time for an answer where a scenario says nothing.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Headers that the driver writes itself, with the reason why a scenario cannot.
const OWN_HEADERS: [(&str, &str); 5] = [
    ("host", "it is the system's address"),
    ("content-length", "it is counted"),
    ("transfer-encoding", "bodies are sent whole"),
    ("connection", "limits: {keep alive: false} closes them"),
    ("expect", "bodies are sent at once"),
];

/// A request's label.
pub(super) struct Label {
    pub(super) name: String,
    place: Place,
    reachable: bool,
}

/// All requests of a scenario.
pub(super) struct Requests {
    pub(super) labels: Vec<Label>,
    pub(super) plans: Vec<RequestPlan>,
    /// Where the first call stands, the first command of Redis, and the first request or message that is neither.
    pub(super) first_call: Option<Place>,
    pub(super) first_redis: Option<Place>,
    pub(super) first_other: Option<Place>,
    default_headers: Vec<(Node, Node)>,
    default_timeout: Duration,
}

impl Requests {
    pub(super) fn new(defaults: Option<&Node>, reader: &Reader<'_>) -> Self {
        let get = |key| defaults.and_then(|defaults| defaults.get(key));
        Requests {
            labels: Vec::new(),
            plans: Vec::new(),
            first_call: None,
            first_redis: None,
            first_other: None,
            default_headers: get("headers").map(Node::entries).unwrap_or_default().to_vec(),
            default_timeout: get("timeout").and_then(|node| reader.duration(node)).unwrap_or(TIMEOUT),
        }
    }

    pub(super) fn label_names(&self) -> Vec<String> {
        self.labels.iter().map(|label| label.name.clone()).collect()
    }

    /// The index of a label.
    pub(super) fn label(&self, name: &str) -> Option<u16> {
        self.labels.iter().position(|label| label.name == name).and_then(|index| u16::try_from(index).ok())
    }

    fn add_label(&mut self, name: String, place: Place, reachable: bool) -> Option<u16> {
        match self.labels.iter().position(|label| label.name == name) {
            Some(index) => {
                self.labels[index].reachable |= reachable;
                u16::try_from(index).ok()
            }
            None => {
                self.labels.push(Label { name, place, reachable });
                u16::try_from(self.labels.len() - 1).ok()
            }
        }
    }

    /// Warns of labels that no session can come to.
    pub(super) fn warn_of_unreachable(&self, sink: &Sink<'_>) {
        for label in self.labels.iter().filter(|label| !label.reachable) {
            sink.warn(label.place, format!("no session ever comes to \"{}\"", label.name));
        }
    }
}

impl Session<'_, '_> {
    /// Makes a label known; nothing if there are too many.
    pub(super) fn label(&mut self, node: &Node) -> Option<u16> {
        let name = self.reader.text(node).unwrap_or_default();
        self.requests.add_label(name, node.place, self.reachable)
    }

    pub(super) fn request(&mut self, step: &Node, verb: &Node, path: &Node) {
        let method = verb.text().unwrap_or_default();
        let label = match step.get("label") {
            Some(node) => self.label(node),
            None => {
                let name = format!("{method} {}", path.text().unwrap_or_default());
                self.requests.add_label(name, path.place, self.reachable)
            }
        };
        let Some(label) = label else {
            self.reader.sink.error(step, "this scenario has too many labels");
            return;
        };
        let (request, ledger) = self.entered(step, |session| {
            let (body, content_type) = session.body(step);
            HttpRequest { body, ..session.http(step, method, path, content_type) }
        });
        let plan = RequestPlan {
            label,
            ask: Ask::Http(request),
            ledger,
            timeout: self.timeout(step),
            extractions: self.extractions(step.get("extract")),
            checks: self.checks(step.get("check")),
        };
        if let Some(index) = self.add_request(step, plan) {
            self.connection_uses.push((self.ops.len(), step.place));
            self.ops.push(Op::Request(index));
        }
    }

    /// The label of a step, made of other words where it has none.
    pub(super) fn label_or(&mut self, step: &Node, words: impl FnOnce() -> String) -> Option<u16> {
        let label = match step.get("label") {
            Some(node) => self.label(node),
            None => self.requests.add_label(words(), step.place, self.reachable),
        };
        if label.is_none() {
            self.reader.sink.error(step, "this scenario has too many labels");
        }
        label
    }

    pub(super) fn timeout(&self, step: &Node) -> Duration {
        let timeout = step.get("timeout").and_then(|node| self.reader.duration(node));
        timeout.unwrap_or(self.requests.default_timeout)
    }

    /// Enters a request; its index.
    pub(super) fn add_request(&mut self, step: &Node, plan: RequestPlan) -> Option<u16> {
        let index = u16::try_from(self.requests.plans.len()).ok();
        if index.is_none() {
            self.reader.sink.error(step, "this scenario has too many requests");
        }
        let first = match plan.ask {
            Ask::Call(_) => &mut self.requests.first_call,
            Ask::Redis(_) => &mut self.requests.first_redis,
            Ask::Http(_) | Ask::Message(_) => &mut self.requests.first_other,
        };
        first.get_or_insert(step.place);
        self.requests.plans.push(plan);
        index
    }

    /// Reports what looks at headers, where an answer has a status and a body and nothing else.
    pub(super) fn check_headless(&self, step: &Node, plan: &RequestPlan, message: &str) {
        let of_head = |source: &Source| matches!(source, Source::Header(_) | Source::Cookie(_));
        if let Some(extract) = step.get("extract")
            && plan.extractions.iter().any(|extraction| of_head(&extraction.source))
        {
            self.reader.sink.error(extract, message);
        }
        if let Some(check) = step.get("check")
            && plan.checks.iter().any(|check| matches!(check, Check::Header(..)))
        {
            self.reader.sink.error(check, message);
        }
    }

    /// A request without a body.
    pub(super) fn http(
        &mut self,
        step: &Node,
        method: &str,
        path: &Node,
        content_type: Option<&str>,
    ) -> HttpRequest {
        let mut target = self.path(path);
        self.check_path(path, &target);
        let mut has_query =
            target.parts.iter().any(|part| matches!(part, Part::Literal(l) if l.contains(&b'?')));
        for (name, value) in step.get("query").map(Node::entries).unwrap_or_default() {
            target.push_literal(if has_query { b"&" } else { b"?" });
            has_query = true;
            target.append(self.template(name, Encoding::Url));
            target.push_literal(b"=");
            target.append(self.template(value, Encoding::Url));
        }
        let headers = self.headers(step, content_type);
        HttpRequest { method: method.to_owned(), target, headers, body: None }
    }

    pub(super) fn check_path(&self, node: &Node, path: &Template) {
        let Some(text) = node.text() else { return };
        if let Some(Part::Literal(literal)) = path.parts.first() {
            if literal.starts_with(b"/") {
                return;
            }
            if literal.starts_with(b"http://") || literal.starts_with(b"https://") {
                let message = "this is a path, not a URL; the system's address stands under system: url";
                return self.reader.sink.error(node, message);
            }
        }
        self.reader.sink.error_inside(node, 0, text.len(), "a path begins with a slash".into());
    }

    fn headers(&mut self, step: &Node, content_type: Option<&str>) -> Vec<(String, Template)> {
        let own = step.get("headers").map(Node::entries).unwrap_or_default();
        let is_own = |name: &str| {
            own.iter().any(|(own, _)| own.text().is_some_and(|own| own.eq_ignore_ascii_case(name)))
        };
        let defaults = self.requests.default_headers.clone();
        let inherited = defaults.iter().filter(|(name, _)| !name.text().is_some_and(is_own));
        let mut headers: Vec<(String, Template)> = Vec::new();
        for (name, value) in inherited.chain(own) {
            let Some(text) = name.text() else { continue };
            self.check_header_name(name, text);
            headers.push((text.to_owned(), self.template(value, Encoding::Header)));
        }
        let usual = [("Content-Type", content_type), ("User-Agent", Some("tidemark"))];
        for (name, value) in usual.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            if !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
                headers.push((name.to_owned(), Template::literal(value)));
            }
        }
        headers
    }

    fn check_header_name(&self, node: &Node, name: &str) {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            self.reader.sink.error(node, format!("\"{name}\" cannot be a header's name"));
        } else if let Some((_, reason)) = OWN_HEADERS.iter().find(|(own, _)| name.eq_ignore_ascii_case(own)) {
            self.reader.sink.error(node, format!("the header {name} is not for a scenario to set: {reason}"));
        }
    }

    fn body(&mut self, step: &Node) -> (Option<Template>, Option<&'static str>) {
        let mut body = Template::default();
        if let Some(fields) = step.get("form") {
            for (index, (name, value)) in fields.entries().iter().enumerate() {
                body.push_literal(if index > 0 { b"&" } else { b"" });
                body.append(self.template(name, Encoding::Form));
                body.push_literal(b"=");
                body.append(self.template(value, Encoding::Form));
            }
            (Some(body), Some("application/x-www-form-urlencoded"))
        } else if let Some(tree) = step.get("json") {
            self.json(tree, &mut body);
            (Some(body), Some("application/json"))
        } else if let Some(raw) = step.get("body") {
            (Some(self.template(raw, Encoding::Raw)), Some("text/plain; charset=utf-8"))
        } else {
            (None, None)
        }
    }

    pub(super) fn extractions(&mut self, node: Option<&Node>) -> Vec<Extraction> {
        let mut extractions = Vec::new();
        for (name, node) in node.map(Node::entries).unwrap_or_default() {
            let Some(slot) = name.text().and_then(|name| self.scope.slot(name)) else { continue };
            let Some(source) = self.source(node) else { continue };
            let word = node.get("when missing");
            let when_missing = match word.and_then(|node| self.reader.word(node, &["clear", "keep", "fail"]))
            {
                Some("keep") => WhenMissing::Keep,
                Some("fail") => WhenMissing::Fail,
                Some("clear") => WhenMissing::Clear,
                _ => WhenMissing::Tell,
            };
            extractions.push(Extraction { slot, source, when_missing });
        }
        extractions
    }

    fn source(&self, node: &Node) -> Option<Source> {
        let reader = self.reader;
        if node.text().is_some() {
            let text = reader.text(node)?;
            return match text.as_str() {
                "status" => Some(Source::Status),
                "body" => Some(Source::Body),
                _ if text.starts_with('$') => reader.json_path(node).map(Source::Json),
                _ => {
                    let message =
                        format!("\"{text}\" is neither a JSON path begun with $, nor status, nor body");
                    reader.sink.error(node, message);
                    None
                }
            };
        }
        if let Some(node) = node.get("json") {
            reader.json_path(node).map(Source::Json)
        } else if let Some(node) = node.get("all") {
            reader.json_path(node).map(Source::JsonAll)
        } else if let Some(node) = node.get("count") {
            reader.json_path(node).map(Source::JsonCount)
        } else if let Some(node) = node.get("header") {
            reader.text(node).map(|name| Source::Header(name.to_ascii_lowercase()))
        } else if let Some(node) = node.get("cookie") {
            reader.text(node).map(Source::Cookie)
        } else {
            self.regex_source(node)
        }
    }

    fn regex_source(&self, node: &Node) -> Option<Source> {
        let regex = self.reader.regex(node.get("regex")?)?;
        let groups = regex.captures_len() - 1;
        let group = match node.get("group") {
            Some(group_node) => {
                let group = self.reader.whole(group_node, 0)? as usize;
                if group > groups {
                    self.reader.sink.error(group_node, format!("the expression has only {groups} groups"));
                }
                group
            }
            None => groups.min(1),
        };
        Some(Source::Regex(regex, group))
    }

    pub(super) fn checks(&mut self, node: Option<&Node>) -> Vec<Check> {
        let mut checks = Vec::new();
        let Some(node) = node else { return checks };
        if let Some(status) = node.get("status") {
            let ranges = one_or_many(status).iter().filter_map(|node| self.reader.status(node));
            checks.push(Check::Status(ranges.collect()));
        }
        for (name, test) in node.get("header").map(Node::entries).unwrap_or_default() {
            let lower = name.text().unwrap_or_default().to_ascii_lowercase();
            checks.extend(self.test(test).map(|test| Check::Header(lower, test)));
        }
        if let Some(body) = node.get("body") {
            checks.extend(self.test(body).map(Check::Body));
        }
        for (path, test) in node.get("json").map(Node::entries).unwrap_or_default() {
            let path = self.reader.json_path(path);
            let test = self.test(test);
            checks.extend(path.zip(test).map(|(path, test)| Check::Json(path, test)));
        }
        for condition in node.get("that").map(one_or_many).unwrap_or_default() {
            let text = self.reader.expression(condition).map(|(_, text)| text.trim().to_owned());
            let expr = self.expression(condition);
            checks.extend(expr.zip(text).map(|(expr, text)| Check::Holds(expr, text)));
        }
        checks
    }

    fn test(&mut self, node: &Node) -> Option<TextTest> {
        if node.text().is_some() {
            return Some(TextTest::Equals(self.template(node, Encoding::Raw)));
        }
        if let Some(text) = node.get("equals") {
            Some(TextTest::Equals(self.template(text, Encoding::Raw)))
        } else if let Some(text) = node.get("contains") {
            Some(TextTest::Contains(self.template(text, Encoding::Raw)))
        } else if let Some(pattern) = node.get("matches") {
            self.reader.regex(pattern).map(TextTest::Matches)
        } else {
            node.get("exists").map(|_| TextTest::Exists)
        }
    }
}
