//! Sessions that wait for a connection, and how many may wait at once: for that, or for another session's end.
//!
//! A bound below what comes while the system is behind would cap the latency that is measured: who is dropped has none. So
//! where the plan does not say it, only memory bounds them.

use std::collections::VecDeque;

use tidemark_scenario::Plan;
use tidemark_scenario::plan::SessionKind;

use crate::session::{SESSION_BYTES, Session, SessionState};

/// Memory that sessions which wait take together, where the plan does not bound their number.
const WAITING_BYTES: usize = 256 << 20;
/// What a variable of a session takes, with room for a short text.
const SLOT_BYTES: usize = 200;
/// Places of the queue that may be held by who has left, beside as many as wait and once more.
const LEFT_IN_LINE: usize = 1_024;
/// What a session's alarms take.
const ALARM_BYTES: usize = 128;

/// Most sessions that wait at once, where the plan does not say it: as many as their memory allows. That is also what
/// could be due in all phases, if that is less, since only who waits has memory.
pub(crate) fn most_waiting(plan: &Plan) -> usize {
    let each = SESSION_BYTES + most_slots(&plan.sessions) * SLOT_BYTES + ALARM_BYTES;
    plan.limits.waiting.unwrap_or(WAITING_BYTES / each)
}

/// Variables of the kind that has most.
pub(crate) fn most_slots(kinds: &[SessionKind]) -> usize {
    kinds.iter().map(|kind| kind.slots).max().unwrap_or(0)
}

/// Sessions that wait for a connection, the longest in front.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Those who wait for a connection to each target, with the ticket of their waiting; some may have left.
    lines: Vec<VecDeque<(u32, u32)>>,
    /// How many really wait.
    waiting: usize,
    /// Those that were given a connection, and go on in this turn.
    granted: VecDeque<u32>,
}

impl Queue {
    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Lets a session wait, unless so many do already; whether it does.
    pub fn join(&mut self, s: usize, sessions: &mut [Session], most: usize) -> bool {
        if self.waiting >= most {
            return false;
        }
        sessions[s].state = SessionState::Waiting;
        let target = sessions[s].target();
        if self.lines.len() <= target {
            self.lines.resize_with(target + 1, VecDeque::new);
        }
        self.lines[target].push_back((s as u32, sessions[s].ticket));
        self.waiting += 1;
        true
    }

    /// A session waits no longer.
    pub fn leave(&mut self, s: usize, sessions: &mut [Session]) {
        debug_assert!(sessions[s].state == SessionState::Waiting && self.waiting > 0);
        sessions[s].ticket = sessions[s].ticket.wrapping_add(1);
        self.waiting -= 1;
        let line = &mut self.lines[sessions[s].target()];
        let has_left = |(s, ticket): &(u32, u32)| sessions[*s as usize].ticket != *ticket;
        // Time-outs come mostly in the order of the queue: who has left stands in front.
        while line.front().is_some_and(has_left) {
            line.pop_front();
        }
        if line.len() > 2 * self.waiting + LEFT_IN_LINE {
            line.retain(|one| !has_left(one));
        }
    }

    /// Gives a connection to a target to the session that waits longest for one.
    pub fn grant(
        &mut self,
        connection: u32,
        target: usize,
        sessions: &mut [Session],
        now_ns: u64,
    ) -> Option<u32> {
        while let Some((next, ticket)) = self.lines.get_mut(target)?.pop_front() {
            let session = &mut sessions[next as usize];
            if session.ticket == ticket && session.state == SessionState::Waiting {
                session.ticket = ticket.wrapping_add(1);
                session.state = SessionState::Granted;
                session.held_until(now_ns);
                session.queued_until(now_ns);
                session.connection = Some(connection);
                self.waiting -= 1;
                self.granted.push_back(next);
                return Some(next);
            }
        }
        None
    }

    /// The next session that goes on with the connection that it was given.
    pub fn next_granted(&mut self) -> Option<u32> {
        self.granted.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use tidemark_scenario::Slot;

    use super::*;

    #[test]
    fn who_waits_longest_is_next_and_the_queue_is_bounded() {
        let mut sessions: Vec<Session> = (0..3).map(|_| Session::default()).collect();
        let mut queue = Queue::default();
        assert!((0..2).all(|s| queue.join(s, &mut sessions, 2)));
        assert!(!queue.join(2, &mut sessions, 2), "as many wait as may");
        queue.leave(0, &mut sessions);
        sessions[0].state = SessionState::Thinking;
        assert!(queue.join(2, &mut sessions, 2));
        assert_eq!([(); 3].map(|()| queue.grant(7, 0, &mut sessions, 0)), [Some(1), Some(2), None]);
        assert_eq!((queue.len(), queue.next_granted(), sessions[1].connection), (0, Some(1), Some(7)));
        // one that never is in front leaves again and again
        assert!(queue.join(0, &mut sessions, 2));
        for _ in 0..10 * LEFT_IN_LINE {
            assert!(queue.join(1, &mut sessions, 2));
            queue.leave(1, &mut sessions);
        }
        assert!(queue.lines[0].len() <= LEFT_IN_LINE + 3, "{}", queue.lines[0].len());
    }

    #[test]
    fn each_target_has_a_line_of_its_own() {
        let mut sessions: Vec<Session> = (0..3).map(|_| Session::default()).collect();
        let mut queue = Queue::default();
        sessions[1].turn_to(1);
        assert!((0..3).all(|s| queue.join(s, &mut sessions, 3)), "all count together");
        assert_eq!(queue.grant(9, 1, &mut sessions, 0), Some(1));
        assert_eq!([(); 3].map(|()| queue.grant(9, 1, &mut sessions, 0)), [None; 3]);
        assert_eq!((queue.grant(7, 0, &mut sessions, 0), queue.len()), (Some(0), 1));
        assert_eq!(queue.grant(7, 2, &mut sessions, 0), None, "nobody ever waited for that");
    }

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
        assert!(hits * (SESSION_BYTES + variable) <= WAITING_BYTES);
        plan.sessions[0].slots = 50;
        assert!(most_waiting(&plan) < hits / 10, "sessions with more to remember are fewer");
    }
}
