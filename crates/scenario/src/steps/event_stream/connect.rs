//! Beginning an event stream.

use super::check_beside;
use crate::compile::Session;
use crate::grammar::Keys;
use crate::grammar::Scalar::Template;
use crate::grammar::Shape::{Map, Record as Of, Scalar};
use crate::plan::{Check, EventStreamStep, RequestKind, Source};
use crate::steps::Step;
use crate::steps::answer::{AT, CHECK, EXTRACT, LABEL, TAGS, TIMEOUT};
use crate::steps::auth::AUTH;
use crate::steps::measure::MEASURE;
use crate::steps::request::QUERY;
use crate::template;

/// What a browser asks with.
const HEADERS: [(&str, &str); 2] = [("Accept", "text/event-stream"), ("Cache-Control", "no-cache")];

step! {
    /// Asks for server-sent events and holds the stream open, until it is closed or the session ends. Over when the
    /// head of the answer is there.
    KIND("sseConnect", "an sse connect step") [
        "sse connect": Scalar(Template) => "Path that is asked for, begun with a slash."
    ] {
        LABEL, TAGS, AT, QUERY,
        "headers": Map(Keys::Text("header names"), &Scalar(Template)) => "Headers of the request.",
        AUTH, TIMEOUT, EXTRACT, MEASURE,
        "check": Of(|| &CHECK) => "What must hold of the answer's head, whose status is 200.",
    }
    beside: check_beside,
    example: "
- sse connect: /news/live
- think: 10s
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let words = || format!("sse connect {}", step.value.text().unwrap_or_default());
    let Some(label) = session.label_or(step, step.node.position, words) else { return };
    let mut request = session.http(step, "GET", None);
    for (name, value) in HEADERS {
        if !request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name)) {
            request.headers.push((name.to_owned(), template::Template::literal(value)));
        }
    }
    let ask = RequestKind::EventStream(EventStreamStep::Connect(request));
    let plan = session.request(step, label, (ask, None), step.get("check"));
    let of_body = |source: &Source| !matches!(source, Source::Header(_) | Source::Cookie(_) | Source::Status);
    let looks_at_body = plan.extractions.iter().any(|extraction| of_body(&extraction.source))
        || plan.checks.iter().any(Check::looks_at_body);
    if looks_at_body {
        session.reader.sink.error(step.verb, "the head is all that is waited for; use sse expect for events");
    }
    session.push_request(step, plan);
}
