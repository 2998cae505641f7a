//! Waiting for a message over a stream of gRPC.

use super::over;
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::{Either, Map, Record as Of, Scalar};
use crate::grammar::record::record;
use crate::grammar::{Keys, Shape};
use crate::plan::GrpcStep;
use crate::steps::Step;
use crate::steps::answer::{AT, EXTRACT, JSON_TEST, LABEL, TAGS, TEST, THAT, TIMEOUT};
use crate::steps::measure::MEASURE;

step! {
    /// Waits for a message that passes; others are passed over.
    KIND("grpcExpect", "a grpc expect step") ["grpc expect": EXPECTED => "What must hold of it."] {
        LABEL, TAGS, AT, TIMEOUT, EXTRACT, MEASURE,
    }
    example: "
- grpc open: shop.Cart/Chat
- grpc expect: {json: {$.say: hello}}
- grpc close: OK
"
}

pub(super) const EXPECTED: Shape = Either(&[Scalar(Word(&["any"])), Of(|| &EXPECTED_MESSAGE)]);

record! {
    /// What must hold of a message; others are passed over.
    static EXPECTED_MESSAGE("grpcExpected", "an expected message") {
        "body": TEST => "The whole message as JSON: just this text, or a test.",
        "json": Map(Keys::JsonPath, &JSON_TEST) => "Values by JSON path: this value, or a test.",
        THAT,
    }
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    over(session, step, (GrpcStep::Expect, None), Some(step.value));
}
