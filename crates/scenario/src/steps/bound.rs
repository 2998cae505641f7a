//! Whether a session's connection is a WebSocket or an event stream where a step stands, which needs one, or cannot have
//! one.

use crate::plan::{EventStreamStep, GrpcStep, Op, RequestKind, RequestPlan, WebSocketStep};
use crate::sink::Sink;
use crate::yaml::Position;

/// The connection is bound to nothing.
const FREE: u8 = 1;
/// It is a WebSocket, or an event stream.
const BOUND: u8 = 2;

/// What a step does with what the connection is bound to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Begin,
    Within,
    End,
}

/// What a connection may be bound to, and the steps that begin and end it.
struct Binding {
    one: &'static str,
    begin: &'static str,
    end: &'static str,
}

static WEB_SOCKET: Binding = Binding { one: "a WebSocket", begin: "ws connect", end: "ws close" };
static GRPC_STREAM: Binding = Binding { one: "an open stream", begin: "grpc open", end: "grpc close" };
static EVENT_STREAM: Binding = Binding { one: "an event stream", begin: "sse connect", end: "sse close" };

/// Reports steps that cannot be right on any way that leads to them: a message without a WebSocket, a request or
/// another connect while the connection is one; and the same of event streams.
pub(crate) fn check_paths(ops: &[Op], requests: &[RequestPlan], uses: &[(usize, Position)], sink: &Sink<'_>) {
    let target_of = |at: usize| match ops.get(at) {
        Some(Op::Request(request)) => requests.get(usize::from(*request)).map(|plan| plan.target),
        _ => None,
    };
    let mut targets: Vec<u16> = uses.iter().filter_map(|(at, _)| target_of(*at)).collect();
    targets.sort_unstable();
    targets.dedup();
    for target in targets {
        let there: Vec<_> = uses.iter().filter(|(at, _)| target_of(*at) == Some(target)).copied().collect();
        check_paths_to(target, ops, requests, &there, sink);
    }
}

/// The same of the connection to one target.
fn check_paths_to(
    target: u16,
    ops: &[Op],
    requests: &[RequestPlan],
    uses: &[(usize, Position)],
    sink: &Sink<'_>,
) {
    let own = |op: &Op| use_of(op, requests, target);
    let steps: Vec<Option<(Use, &Binding)>> = ops.iter().map(own).collect();
    // Of two kinds in one scenario a mistake is told where they stand beside each other.
    let Some((_, bound_to)) = steps.iter().find_map(|step| *step) else { return };
    let Binding { one, begin, end } = bound_to;
    let states = states_before(ops, &steps);
    let begun = |(at, _): &&(usize, Position)| matches!(steps[*at], Some((Use::Begin, _)));
    if std::ptr::eq(bound_to, &GRPC_STREAM)
        && !steps.iter().flatten().any(|(what, _)| *what == Use::End)
        && let Some((_, position)) = uses.iter().find(begun)
    {
        let message = "no grpc close follows, so the status of the stream is not known unless the server ends it before the session does";
        sink.warn(*position, message.into());
    }
    for (index, position) in uses {
        let message = match (steps[*index].map(|(what, _)| what), states[*index]) {
            (Some(Use::Begin), BOUND) => {
                format!("there is {one} already; a session has one at a time, so close it first with {end}")
            }
            (None, BOUND) => {
                format!("the session's connection is {one} here; requests can follow after a {end}")
            }
            (Some(Use::Within | Use::End), FREE) => {
                format!("no step before this one opens {one}; add {begin}")
            }
            _ => continue,
        };
        sink.error_at(*position, message);
    }
}

/// What an operation does with what the connection is bound to.
fn use_of(op: &Op, requests: &[RequestPlan], target: u16) -> Option<(Use, &'static Binding)> {
    let Op::Request(request) = op else { return None };
    let plan = requests.get(usize::from(*request)).filter(|plan| plan.target == target)?;
    let step = match &plan.ask {
        RequestKind::WebSocket(step) => {
            let what = match step {
                WebSocketStep::Connect { .. } => Use::Begin,
                WebSocketStep::Close { .. } | WebSocketStep::ExpectClose => Use::End,
                _ => Use::Within,
            };
            (what, &WEB_SOCKET)
        }
        RequestKind::Grpc(step) => {
            let what = match step {
                // it goes over a stream of its own
                GrpcStep::Call { .. } => return None,
                GrpcStep::Open(_) => Use::Begin,
                GrpcStep::Send { .. } | GrpcStep::Expect => Use::Within,
                GrpcStep::Close => Use::End,
            };
            (what, &GRPC_STREAM)
        }
        RequestKind::EventStream(step) => {
            let what = match step {
                EventStreamStep::Connect(_) => Use::Begin,
                EventStreamStep::Close | EventStreamStep::CloseByServer => Use::End,
                EventStreamStep::Expect => Use::Within,
            };
            (what, &EVENT_STREAM)
        }
        _ => return None,
    };
    Some(step)
}

/// What the connection may be before each operation; 0 where none comes to.
fn states_before(ops: &[Op], steps: &[Option<(Use, &Binding)>]) -> Vec<u8> {
    let mut states = vec![0; ops.len()];
    let mut open = vec![(0usize, FREE)];
    while let Some((index, state)) = open.pop() {
        let Some(before) = states.get_mut(index) else { continue };
        // Each operation is visited at most once for each state.
        if *before | state == *before {
            continue;
        }
        *before |= state;
        match &ops[index] {
            Op::Jump(to) => open.push((*to as usize, state)),
            Op::JumpUnless { to, .. } | Op::JumpUnlessGood(to) => {
                open.extend([(*to as usize, state), (index + 1, state)])
            }
            Op::Choose { ways, .. } => open.extend(ways.iter().map(|(_, to)| (*to as usize, state))),
            Op::End => {}
            Op::Request(_)
            | Op::Set { .. }
            | Op::Take { .. }
            | Op::Think(_)
            | Op::BeginGroup(_)
            | Op::EndGroup
            | Op::Refuse { .. }
            | Op::Measure { .. }
            | Op::Parallel { .. }
            | Op::Code { .. }
            | Op::Program => {
                let after = match steps[index] {
                    Some((Use::Begin, _)) => BOUND,
                    Some((Use::End, _)) => FREE,
                    _ => state,
                };
                open.push((index + 1, after));
            }
        }
    }
    states
}
