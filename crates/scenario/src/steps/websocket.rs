//! Steps over a WebSocket.

pub(super) mod close;
pub(super) mod connect;
pub(super) mod expect;
pub(super) mod expect_close;
pub(super) mod ping;
pub(super) mod send;

use super::Step;
use crate::compile::Session;
use crate::plan::{LedgerPlan, RequestKind, WebSocketStep};
use crate::yaml::Node;

/// A step over a WebSocket that there is: what is sent, if anything, and what must hold of a message that comes.
fn over(
    session: &mut Session<'_, '_>,
    step: &Step<'_>,
    (action, ledger): (WebSocketStep, Option<LedgerPlan>),
    expected: Option<&Node>,
) {
    session.over_messages(step, (RequestKind::WebSocket(action), ledger), expected, "headers");
}
