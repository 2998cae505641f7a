//! Waiting for a message over a WebSocket.

use super::over;
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::{Either, Map, Record as Of, Scalar};
use crate::grammar::record::record;
use crate::grammar::{Keys, Shape};
use crate::plan::WebSocketStep;
use crate::steps::Step;
use crate::steps::answer::{AT, EXTRACT, JSON_TEST, LABEL, TAGS, TEST, THAT, TIMEOUT};
use crate::steps::measure::MEASURE;

step! {
    /// Waits for a message that passes; those that came before and that no step took count, too.
    KIND("wsExpect", "a ws expect step") ["ws expect": EXPECTED => "What must hold of it."] {
        LABEL, TAGS, AT, TIMEOUT, EXTRACT, MEASURE,
    }
    example: "
- ws connect: /chat
- ws expect: {body: {contains: hello}}
"
}

pub(super) const EXPECTED: Shape = Either(&[Scalar(Word(&["any"])), Of(|| &EXPECTED_MESSAGE)]);

record! {
    /// What must hold of a message; others are passed over.
    static EXPECTED_MESSAGE("wsExpected", "an expected message") {
        "body": TEST => "The whole message: just this text, or a test.",
        "json": Map(Keys::JsonPath, &JSON_TEST) => "Values by JSON path: just this text, or a test.",
        THAT,
    }
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    over(session, step, (WebSocketStep::Expect, None), Some(step.value));
}
