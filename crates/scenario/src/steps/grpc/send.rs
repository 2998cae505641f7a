//! Sending a message over a stream of gRPC.

use super::expect::EXPECTED;
use super::{message, over};
use crate::compile::Session;
use crate::grammar::Shape::Tree;
use crate::plan::GrpcStep;
use crate::steps::Step;
use crate::steps::answer::{AT, EXTRACT, LABEL, TAGS, TIMEOUT};
use crate::steps::ledger::LEDGER;
use crate::steps::measure::MEASURE;

step! {
    /// Sends a message over the session's stream; with `expect`, waits for one that answers it.
    KIND("grpcSend", "a grpc send step") ["grpc send": Tree => "The message, as JSON."] {
        LABEL, TAGS, AT,
        "expect": EXPECTED => "Waits for a message that passes.",
        LEDGER, TIMEOUT, EXTRACT, MEASURE,
    }
    example: "
- grpc open: shop.Cart/Chat
- grpc send: {say: hello}
  expect: {json: {$.say: hello}}
- grpc close: OK
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let (message, ledger) = session.entered(step, |session| message(session, step.value));
    let expected = step.get("expect");
    if let Some(node) = step.get("ledger").filter(|_| expected.is_none()) {
        let message = "without expect nothing acknowledges this message; say what answers it";
        session.reader.sink.error(node, message);
    }
    let line = step.node.position.line;
    let send = GrpcStep::Send { message, expects: expected.is_some(), line };
    over(session, step, (send, ledger), expected);
}
