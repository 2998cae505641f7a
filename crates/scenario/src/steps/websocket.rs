//! Steps over a WebSocket, and whether there is one where they stand.

pub(super) mod close;
pub(super) mod connect;
pub(super) mod expect;
pub(super) mod ping;
pub(super) mod send;

use super::Step;
use crate::compile::Session;
use crate::plan::{Ask, LedgerPlan, Op, RequestPlan, Source, WebSocketStep};
use crate::sink::Sink;
use crate::yaml::{Node, Position};

/// A step over a WebSocket that there is: what is sent, if anything, and what must hold of a message that comes.
fn over(
    session: &mut Session<'_, '_>,
    step: &Step<'_>,
    (action, ledger): (WebSocketStep, Option<LedgerPlan>),
    expected: Option<&Node>,
) {
    let words = || step.verb.text().unwrap_or_default().to_owned();
    let Some(label) = session.label_or(step, step.node.position, words) else { return };
    let plan = session.request(step, label, (Ask::WebSocket(action), ledger), expected);
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

/// There may be no WebSocket.
const CLOSED: u8 = 1;
/// There may be one.
const OPEN: u8 = 2;

/// Reports steps that cannot be right on any way that leads to them: a message without a WebSocket, a request or
/// another connect while the connection is one.
pub(crate) fn check_paths(ops: &[Op], requests: &[RequestPlan], uses: &[(usize, Position)], sink: &Sink<'_>) {
    let steps: Vec<Option<&WebSocketStep>> = ops.iter().map(|op| step_of(op, requests)).collect();
    if steps.iter().all(Option::is_none) {
        return;
    }
    let states = states_before(ops, &steps);
    for (index, position) in uses {
        let message = match (steps[*index], states[*index]) {
            (Some(WebSocketStep::Connect { .. }), OPEN) => {
                "there is a WebSocket already; a session has one at a time, so close it first with ws close"
            }
            (None, OPEN) => {
                "the session's connection is a WebSocket here; requests can follow after a ws close"
            }
            (Some(step), CLOSED) if !matches!(step, WebSocketStep::Connect { .. }) => {
                "no step before this one opens a WebSocket; add ws connect"
            }
            _ => continue,
        };
        sink.error_at(*position, message.to_owned());
    }
}

/// What an operation does over a WebSocket.
fn step_of<'a>(op: &Op, requests: &'a [RequestPlan]) -> Option<&'a WebSocketStep> {
    let Op::Request(request) = op else { return None };
    match &requests.get(usize::from(*request))?.ask {
        Ask::WebSocket(step) => Some(step),
        _ => None,
    }
}

/// What there may be before each operation; 0 where none comes to.
fn states_before(ops: &[Op], steps: &[Option<&WebSocketStep>]) -> Vec<u8> {
    let mut states = vec![0; ops.len()];
    let mut open = vec![(0usize, CLOSED)];
    while let Some((index, state)) = open.pop() {
        let Some(before) = states.get_mut(index) else { continue };
        // Each operation is visited at most once for each state.
        if *before | state == *before {
            continue;
        }
        *before |= state;
        match &ops[index] {
            Op::Jump(to) => open.push((*to as usize, state)),
            Op::JumpUnless { to, .. } => open.extend([(*to as usize, state), (index + 1, state)]),
            Op::Choose { ways, .. } => open.extend(ways.iter().map(|(_, to)| (*to as usize, state))),
            Op::End => {}
            Op::Request(_) | Op::Set { .. } | Op::Take { .. } | Op::Think(_) => {
                let after = match steps[index] {
                    Some(WebSocketStep::Connect { .. }) => OPEN,
                    Some(WebSocketStep::Close { .. }) => CLOSED,
                    _ => state,
                };
                open.push((index + 1, after));
            }
        }
    }
    states
}
