//! Requests of HTTP.

use tidemark_wire::http1::is_token;

use super::Step;
use super::answer::{AT, CHECK, EXTRACT, LABEL, TAGS, TIMEOUT};
use super::auth::AUTH;
use super::keys::{INSERT, READ, WRITE};
use super::ledger::LEDGER;
use super::measure::MEASURE;
use super::upload::{FILE_BODY, FormPart, OF_FILE, OF_PARTS};
use crate::compile::{Session, Whole as Experiment, split_origin};
use crate::grammar::Scalar::{Template, Text, Whole};
use crate::grammar::Shape::{Either, List, Map, Record as Of, Scalar, Tree};
use crate::grammar::record::Kind as _;
use crate::grammar::{Key, Keys, Rule, Shape, key};
use crate::plan::{HttpRequest, HttpVersion, RequestKind, TargetForm, UploadPiece};
use crate::source::method_as_sent;
use crate::template::{self, Encoding, Part};
use crate::yaml::{Content, Node};

/// Headers that the driver writes itself, with the reason why a scenario cannot.
const OWN_HEADERS: [(&str, &str); 5] = [
    ("host", "it is the system's address"),
    ("content-length", "it is counted"),
    ("transfer-encoding", "bodies are sent whole"),
    ("connection", "limits: {keep alive: false} closes them"),
    ("expect", "bodies are sent at once"),
];

step! {
    /// Sends a request and waits for its answer. The path's holes are percent-encoded.
    KIND("request", "a request", Rule::AtMostOneOf(&["form", "json", "multipart", "body"])) [
        "GET": Scalar(Template) => PATH,
        "POST": Scalar(Template) => PATH,
        "PUT": Scalar(Template) => PATH,
        "PATCH": Scalar(Template) => PATH,
        "DELETE": Scalar(Template) => PATH,
        "HEAD": Scalar(Template) => PATH,
        "OPTIONS": Scalar(Template) => PATH,
        OWN_METHOD: Scalar(Template) => PATH
    ] {
        LABEL, TAGS, AT,
        "method": Scalar(Text) => "Of `REQUEST`: any method, like PURGE or PROPFIND.",
        QUERY,
        "headers": HEADERS =>
            "Headers; one with a list is sent once for each item, and not at all with none.",
        AUTH,
        "form": Map(Keys::Text("fields"), &Scalar(Template)) => "The body as an encoded form.",
        "json": Tree => "The body as JSON; a text that is one `${…}` keeps the value's type.",
        "multipart": Map(Keys::Text("fields"), &Either(&[Scalar(Template), FormPart::SHAPE])) =>
            "The body as a form of parts, of which some may be files.",
        "body": Either(&[Scalar(Template), Of(|| &FILE_BODY)]) => "The body as it is, or from a file.",
        LEDGER, INSERT, WRITE, READ, TIMEOUT, FOLLOW, EXTRACT, MEASURE,
        "check": Of(|| &CHECK) => "What must hold; without a status check, any status below 400 is right.",
    }
    beside: check_beside,
    example: "
- POST: /orders
  label: Order
  json: {item: lamp, count: 2}
  check: {status: 201}
  extract: {order: $.id}
- GET: /orders/${order}
"
}

const PATH: &str = "Path of the request, begun with a slash, or a URL whose scheme and host do not vary; or a `Location` that was \
                    extracted: `${location}`.";
/// The verb of all methods that have none.
const OWN_METHOD: &str = "REQUEST";
/// Headers by name; a list is a header that is sent several times. Also of the defaults.
pub(crate) const HEADERS: Shape =
    Map(Keys::Text("header names"), &Either(&[Scalar(Template), List(&Scalar(Template), 0)]));

/// Also of the defaults.
pub(crate) const FOLLOW: Key = key(
    "follow",
    Scalar(Whole(0)),
    "Most redirects that are followed, one after the other; 0 (default): a redirect is an answer as any other.",
);

pub(super) const QUERY: Key =
    key("query", Map(Keys::Text("parameters"), &Scalar(Template)), "Put behind the path, encoded.");

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let Some(method) = session.method(step) else { return };
    let words = || format!("{method} {}", step.value.text().unwrap_or_default());
    let Some(label) = session.label_or(step, step.value.position, words) else { return };
    let sent = session.entered(step, |session| {
        let (body, upload, content_type) = session.body(step);
        RequestKind::Http(HttpRequest { body, upload, ..session.http(step, method, content_type) })
    });
    let mut plan = session.request(step, label, sent, step.get("check"));
    plan.follow = session.follow(step, &mut plan.ask);
    session.push_request(step, plan);
}

/// What is read while it is sent goes over connections that carry nothing else meanwhile.
fn check_beside(whole: &Experiment<'_>) {
    let why = "a file of 1 MiB or more is read while it is sent, which goes over HTTP/1.1 only; leave out `http: 2`";
    let is_two = whole.system.http == HttpVersion::Two;
    if let Some(position) = whole.requests.first(RequestKind::is_upload).filter(|_| is_two) {
        whole.reader.sink.error_at(position, why.to_owned());
    }
    if let Some(position) =
        whole.requests.first_anywhere(RequestKind::is_upload).filter(|_| whole.is_pipelined())
    {
        let message = "a file of 1 MiB or more is read while it is sent, and others would wait behind it; leave out \
                       `limits: pipeline`";
        whole.reader.sink.error_at(position, message.to_owned());
    }
}

/// The body of a request: a text, or pieces that are read while they are sent; and its type where no header says one.
type Body = (Option<template::Template>, Vec<UploadPiece>, Option<&'static str>);

impl Session<'_, '_> {
    /// The verb, or what `method` says.
    fn method<'s>(&self, step: &'s Step<'_>) -> Option<&'s str> {
        let verb = step.verb.text().unwrap_or_default();
        let sink = self.reader.sink;
        match (verb == OWN_METHOD, step.node.entry("method")) {
            (false, None) => return Some(verb),
            (false, Some((key, _))) => {
                sink.error(key, format!("the method is {verb}; for another one write REQUEST in its place"));
            }
            (true, None) => {
                sink.error(step.verb, "REQUEST needs its method beside it, like `method: PURGE`");
            }
            (true, Some((_, node))) => {
                let name = node.text().unwrap_or_default();
                if let Some(name) = node.text().and_then(method_as_sent) {
                    return Some(name);
                }
                let why = if name.eq_ignore_ascii_case("CONNECT") { "; see system: proxy" } else { "" };
                sink.error(node, format!("\"{name}\" cannot be the method of a request{why}"));
            }
        }
        None
    }

    /// A request without a body.
    pub(super) fn http(&mut self, step: &Step<'_>, method: &str, content_type: Option<&str>) -> HttpRequest {
        let mut target = self.path(step.value);
        match split_origin(&mut target) {
            Ok(origin) => self.origin = origin,
            Err(message) => {
                self.reader.sink.error(step.value, message);
                return HttpRequest::default();
            }
        }
        let form = match target.parts.first_mut() {
            // what a server said is a path, or a URL
            Some(Part::Hole(_, encoding)) => {
                *encoding = Encoding::Raw;
                TargetForm::Location
            }
            _ => {
                self.check_path(step.value, &target);
                TargetForm::Below
            }
        };
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
        let without_cookies = self.names_header(step, "Cookie")
            && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("Cookie"));
        let method = method.to_owned();
        HttpRequest { method, target, form, headers, without_cookies, ..HttpRequest::default() }
    }

    pub(crate) fn check_path(&self, node: &Node, path: &template::Template) {
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

    fn headers(&mut self, step: &Step<'_>, content_type: Option<&str>) -> Vec<(String, template::Template)> {
        let own = step.get("headers").map(Node::entries).unwrap_or_default();
        let is_own = |name: &str| {
            own.iter().any(|(own, _)| own.text().is_some_and(|own| own.eq_ignore_ascii_case(name)))
        };
        let defaults = self.requests.default_headers.clone();
        let inherited = defaults.iter().filter(|(name, _)| !name.text().is_some_and(is_own));
        let mut headers: Vec<(String, template::Template)> = Vec::new();
        for (name, value) in inherited.chain(own) {
            let Some(text) = name.text() else { continue };
            self.check_header_name(name, text);
            let values = match &value.content {
                Content::List(values) => values.as_slice(),
                _ => std::slice::from_ref(value),
            };
            for value in values {
                headers.push((text.to_owned(), self.template(value, Encoding::Header)));
            }
        }
        self.authorize(step, &mut headers);
        let usual = [("Content-Type", content_type), ("User-Agent", Some("tidemark"))];
        for (name, value) in usual.into_iter().filter_map(|(name, value)| Some((name, value?))) {
            // one without a value is not sent at all
            let is_named = self.names_header(step, name);
            if !is_named && !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
                headers.push((name.to_owned(), template::Template::literal(value)));
            }
        }
        headers
    }

    /// Whether a step or the defaults name a header, be it to send none.
    fn names_header(&self, step: &Step<'_>, name: &str) -> bool {
        let own = step.get("headers").map(Node::entries).unwrap_or_default();
        let mut all = own.iter().chain(&self.requests.default_headers);
        all.any(|(given, _)| given.text().is_some_and(|given| given.eq_ignore_ascii_case(name)))
    }

    fn check_header_name(&self, node: &Node, name: &str) {
        if !is_token(name.as_bytes()) {
            self.reader.sink.error(node, format!("\"{name}\" cannot be a header's name"));
        } else if let Some((_, reason)) = OWN_HEADERS.iter().find(|(own, _)| name.eq_ignore_ascii_case(own)) {
            self.reader.sink.error(node, format!("the header {name} is not for a scenario to set: {reason}"));
        }
    }

    fn body(&mut self, step: &Step<'_>) -> Body {
        let mut body = template::Template::default();
        let content_type = if let Some(fields) = step.get("form") {
            for (index, (name, value)) in fields.entries().iter().enumerate() {
                body.push_literal(if index > 0 { b"&" } else { b"" });
                body.append(self.template(name, Encoding::Form));
                body.push_literal(b"=");
                body.append(self.template(value, Encoding::Form));
            }
            "application/x-www-form-urlencoded"
        } else if let Some(tree) = step.get("json") {
            self.json(tree, &mut body);
            "application/json"
        } else if let Some(fields) = step.get("multipart") {
            let (body, upload) = self.multipart(fields).into_body();
            return (body, upload, Some(OF_PARTS));
        } else if let Some(raw) = step.get("body") {
            if raw.text().is_none() {
                let (body, upload) = self.file_body(raw).into_body();
                return (body, upload, Some(OF_FILE));
            }
            body = self.template(raw, Encoding::Raw);
            "text/plain; charset=utf-8"
        } else {
            return (None, Vec::new(), None);
        };
        (Some(body), Vec::new(), Some(content_type))
    }
}
