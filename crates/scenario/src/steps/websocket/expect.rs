//! Waiting for a message over a WebSocket.

use super::over;
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::{Either, Map, Record as Of, Scalar};
use crate::grammar::{Keys, Record, Rule, Shape, key};
use crate::plan::WebSocketStep;
use crate::steps::answer::{AT, EXTRACT, JSON_TEST, LABEL, TAGS, TEST, THAT, TIMEOUT};
use crate::steps::measure::MEASURE;
use crate::steps::{Step, StepKind};

pub(in crate::steps) static KIND: StepKind = StepKind {
    record: Record {
        what: "a ws expect step",
        schema: "wsExpect",
        about: "Waits for a message that passes; those that came before and that no step took count, too.",
        verbs: &[key("ws expect", EXPECTED, "What must hold of it.")],
        keys: &[LABEL, TAGS, AT, TIMEOUT, EXTRACT, MEASURE],
        rule: Rule::Free,
    },
    compile,
    beside: None,
    example: "
- ws connect: /chat
- ws expect: {body: {contains: hello}}
",
};

pub(super) const EXPECTED: Shape = Either(&[Scalar(Word(&["any"])), Of(|| &EXPECTED_MESSAGE)]);

static EXPECTED_MESSAGE: Record = Record {
    what: "an expected message",
    schema: "wsExpected",
    about: "What must hold of a message; others are passed over.",
    verbs: &[],
    keys: &[
        key("body", TEST, "The whole message: just this text, or a test."),
        key("json", Map(Keys::JsonPath, &JSON_TEST), "Values by JSON path: just this text, or a test."),
        THAT,
    ],
    rule: Rule::Free,
};

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    over(session, step, (WebSocketStep::Expect, None), Some(step.value));
}
