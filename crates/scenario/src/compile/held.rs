//! What a run will hold in memory, as far as the scenario says it: too much is told before there is any of it.

use crate::plan::{Op, Plan, SessionKind, Stream, VALUES_BYTES_MAX};
use crate::reader::Reader;
use crate::slot::Slot;
use crate::units::Size;
use crate::yaml::Node;

/// Most memory of the variables of all sessions at once, bytes, before anything is in them.
const VARIABLES_BYTES_MAX: u64 = 4 << 30;

/// Reports what a run cannot hold.
pub(super) fn check(root: &Node, plan: &Plan, reader: &Reader<'_>) {
    let Some((sessions, _)) = root.entry("sessions") else { return };
    let Some(largest) = plan.sessions.iter().max_by_key(|kind| kind.slots) else { return };
    let arriving = plan.limits.in_flight.map_or(0, |limit| limit.most);
    let at_once = plan.load.most_users().max(arriving).max(plan.limits.connections);
    let bytes = (at_once as u64).saturating_mul((largest.slots * size_of::<Slot>()) as u64);
    if bytes > VARIABLES_BYTES_MAX {
        let message = format!(
            "{at_once} sessions at once with the {} variables of \"{}\" hold {} before anything is in them; at most {}: use fewer \
             users, connections or variables",
            largest.slots,
            largest.name,
            Size(bytes),
            Size(VARIABLES_BYTES_MAX)
        );
        reader.sink.error(sessions, message);
    }
    let bytes = least_bytes_of_all(plan);
    if bytes > VALUES_BYTES_MAX {
        let message = format!(
            "the variables of {} users hold at least {}; at most {} for all together: set shorter values, or use fewer users",
            plan.load.most_users(),
            Size(bytes),
            Size(VALUES_BYTES_MAX)
        );
        reader.sink.error(sessions, message);
    }
}

/// Fewest bytes that the variables of all users hold. Which kind a user is of who draws one by weight is not known before.
fn least_bytes_of_all(plan: &Plan) -> u64 {
    let drawn = || plan.sessions.iter().filter(|kind| kind.weight > 0).map(least_bytes).min();
    let of = |stream: &Stream<'_>| {
        let bytes = stream.kind.map_or_else(drawn, |kind| plan.sessions.get(kind).map(least_bytes));
        bytes.unwrap_or(0).saturating_mul(stream.most_users() as u64)
    };
    plan.load.streams().iter().map(of).fold(0, u64::saturating_add)
}

/// Fewest bytes that a session's variables hold at its end, where it does all of its `set` steps.
fn least_bytes(kind: &SessionKind) -> u64 {
    let jumps = kind.ops.iter().any(|op| {
        matches!(op, Op::Jump(_) | Op::JumpUnless { .. } | Op::JumpUnlessGood(_) | Op::Choose { .. })
    });
    let mut last = vec![0; kind.slots];
    for op in kind.ops.iter().filter(|_| !jumps) {
        if let Op::Set { slot, value } = op
            && let Some(bytes) = last.get_mut(usize::from(*slot))
        {
            *bytes = value.least_bytes() as u64;
        }
    }
    last.iter().sum()
}
