//! Waiting until the other side closes a WebSocket.

use crate::compile::Session;
use crate::grammar::Scalar::Text;
use crate::grammar::Shape::{Either, List, Scalar};
use crate::plan::{Check, RequestKind, WebSocketStep};
use crate::reader::Reader;
use crate::steps::Step;
use crate::steps::answer::{AT, LABEL, TEST, TIMEOUT};
use crate::yaml::{Node, one_or_many};

/// Codes that a close may have, 1005 where it has none.
const CODES: std::ops::RangeInclusive<u16> = 1000..=4999;

step! {
    /// Waits until the other side closes the session's WebSocket; a close that came before counts, too.
    KIND("wsExpectClose", "a ws expect close step") [
        "ws expect close": Either(&[Scalar(Text), List(&Scalar(Text), 1)]) =>
            "The code that it closes with, or several; 1005 is a close without a code; `any` is each."
    ] {
        LABEL, AT,
        "reason": TEST => "What must hold of its reason: just this text, or a test.",
        TIMEOUT,
    }
    example: "
- ws connect: /chat
- ws send: bye
- ws expect close: 1000
  reason: {contains: bye}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let codes = one_or_many(step.value).iter().filter_map(|node| code(node, session.reader)).collect();
    let Some(label) = session.label_or(step, step.node.position, || "ws expect close".into()) else { return };
    let ask = RequestKind::WebSocket(WebSocketStep::ExpectClose);
    let mut plan = session.request(step, label, (ask, None), None);
    plan.checks.push(Check::Status(codes));
    if let Some(reason) = step.get("reason") {
        plan.checks.extend(session.test(reason).map(Check::Body));
    }
    session.push_request(step, plan);
}

fn code(node: &Node, reader: &Reader<'_>) -> Option<(u16, u16)> {
    let text = reader.text(node)?;
    if text == "any" {
        return Some((*CODES.start(), *CODES.end()));
    }
    let code = text.parse().ok().filter(|code| CODES.contains(code));
    if code.is_none() {
        reader.sink.error(node, format!("\"{text}\" is not a close code; write one of 1000 to 4999, or any"));
    }
    code.map(|code| (code, code))
}
