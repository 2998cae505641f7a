//! Steps over a WebSocket.

pub(super) mod close;
pub(super) mod connect;
pub(super) mod expect;
pub(super) mod expect_close;
pub(super) mod ping;
pub(super) mod send;

use super::Step;
use crate::compile::Session;
use crate::plan::{LedgerPlan, RequestKind, Source, WebSocketStep};
use crate::yaml::Node;

/// A step over a WebSocket that there is: what is sent, if anything, and what must hold of a message that comes.
fn over(
    session: &mut Session<'_, '_>,
    step: &Step<'_>,
    (action, ledger): (WebSocketStep, Option<LedgerPlan>),
    expected: Option<&Node>,
) {
    let words = || step.verb.text().unwrap_or_default().to_owned();
    let Some(label) = session.label_or(step, step.node.position, words) else { return };
    let plan = session.request(step, label, (RequestKind::WebSocket(action), ledger), expected);
    if let Some(extract) = step.get("extract") {
        let no_message =
            |source: &Source| matches!(source, Source::Header(_) | Source::Cookie(_) | Source::Status);
        let sink = session.reader.sink;
        if expected.is_none() {
            sink.error(extract, "there is no message to extract from without expect");
        } else if plan.extractions.iter().any(|extraction| no_message(&extraction.source)) {
            sink.error(extract, "a message has neither status nor headers nor cookies");
        }
    }
    session.push_request(step, plan);
}
