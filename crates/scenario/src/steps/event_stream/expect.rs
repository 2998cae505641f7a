//! Waiting for an event.

use super::with;
use crate::compile::Session;
use crate::grammar::Keys;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::{Either, Map, Record as Of, Scalar};
use crate::grammar::record::record;
use crate::plan::{Check, EventStreamStep, Source};
use crate::steps::Step;
use crate::steps::answer::{AT, EXTRACT, JSON_TEST, LABEL, TAGS, TEST, THAT, TIMEOUT};
use crate::steps::measure::MEASURE;

step! {
    /// Waits for an event that passes; those that came before and that no step took count, too.
    KIND("sseExpect", "an sse expect step") [
        "sse expect": Either(&[Scalar(Word(&["any"])), Of(|| &EXPECTED_EVENT)]) => "What must hold of it."
    ] {
        LABEL, TAGS, AT, TIMEOUT, EXTRACT, MEASURE,
    }
    example: "
- sse connect: /news/live
- sse expect: {event: post, json: {$.from: ann}}
  timeout: 2s
"
}

record! {
    /// What must hold of an event; others are passed over.
    static EXPECTED_EVENT("sseExpected", "an expected event") {
        "event": TEST => "Its name, `message` where the server gives it none: just this text, or a test.",
        "body": TEST => "All of its data: just this text, or a test.",
        "json": Map(Keys::JsonPath, &JSON_TEST) => "Values in its data by JSON path: just this text, or a test.",
        THAT,
    }
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let Some(mut plan) = with(session, step, EventStreamStep::Expect) else { return };
    let named = step.value.get("event").and_then(|node| session.test(node));
    let name = EventStreamStep::NAME_HEADER;
    plan.checks.extend(named.map(|test| Check::Header(name.to_owned(), test)));
    plan.checks.extend(session.checks(Some(step.value)));
    let is_of_event = |source: &Source| match source {
        Source::Header(header) => header == name,
        Source::Cookie(_) | Source::Status => false,
        _ => true,
    };
    if let Some(extract) = step.get("extract")
        && !plan.extractions.iter().all(|extraction| is_of_event(&extraction.source))
    {
        let message = "an event has its data (body) and its name (header: event), and nothing else";
        session.reader.sink.error(extract, message);
    }
    session.push_request(step, plan);
}
