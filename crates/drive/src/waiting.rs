//! How many sessions may wait at once: for a connection, or for another session's end.
//!
//! A bound below what comes while the system is behind would cap the latency that is measured: who is dropped has none. So
//! where the plan does not say it, only memory bounds them.

use tidemark_scenario::Plan;
use tidemark_scenario::plan::SessionKind;

use crate::session::Session;

/// Memory that sessions which wait take together, where the plan does not bound their number.
const WAITING_BYTES: usize = 256 << 20;
/// What a variable of a session takes, with room for a short text.
const SLOT_BYTES: usize = 200;
/// What a session's alarms take.
const ALARM_BYTES: usize = 128;

/// Most sessions that wait at once, where the plan does not say it: as many as their memory allows. That is also what
/// could be due in all phases, if that is less, since only who waits has memory.
pub(crate) fn most_waiting(plan: &Plan) -> usize {
    let each = size_of::<Session>() + most_slots(&plan.sessions) * SLOT_BYTES + ALARM_BYTES;
    plan.limits.waiting.unwrap_or(WAITING_BYTES / each)
}

/// Variables of the kind that has most.
pub(crate) fn most_slots(kinds: &[SessionKind]) -> usize {
    kinds.iter().map(|kind| kind.slots).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::Slot;

    use super::*;

    #[test]
    fn memory_bounds_who_waits_where_the_plan_does_not() {
        let mut plan = crate::testing::plan(Vec::new());
        assert_eq!(most_waiting(&plan), 0, "as the plan says");
        plan.limits.waiting = None;
        let hits = most_waiting(&plan);
        // a backlog of 3,000/s over a minute
        assert!(hits > 180_000, "{hits}");
        let variable = size_of::<Slot>();
        assert!(variable < SLOT_BYTES, "{variable} bytes leave no room for a text");
        assert!(hits * (size_of::<Session>() + variable) <= WAITING_BYTES);
        plan.sessions[0].slots = 50;
        assert!(most_waiting(&plan) < hits / 10, "sessions with more to remember are fewer");
    }
}
