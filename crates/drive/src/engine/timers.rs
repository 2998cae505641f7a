//! Time-outs and wake-ups of sessions.
//!
//! Each session has one alarm of each kind. Setting an alarm later than it already rings costs two stores: the
//! entry in the heap stays, and is put back when it comes up too early. So the time-out of each request, which
//! nearly always moves later, costs no heap operation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::io::prefetch::prefetch;

/// No time at all.
const NEVER: u64 = u64::MAX;

/// Why a session is looked at again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Alarm {
    /// Its request has had its time.
    Timeout = 0,
    /// Its think time or its back-off is over.
    Wake = 1,
    /// Its kind of sessions has a bound on its time, and that is over.
    Deadline = 2,
}

const KINDS: [Alarm; 3] = [Alarm::Timeout, Alarm::Wake, Alarm::Deadline];

#[derive(Debug, Clone, Copy)]
struct State {
    /// When it shall ring.
    wanted_ns: u64,
    /// When the valid entry in the heap comes up; never later than wanted, unless nothing is wanted.
    armed_ns: u64,
}

const SILENT: State = State { wanted_ns: NEVER, armed_ns: NEVER };

/// The alarms of a thread's sessions.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32, u8)>>,
    /// By kind, then by session: users of a closed load without pauses have time-outs alone.
    states: [Vec<State>; KINDS.len()],
}

impl Timers {
    /// Sets a session's alarm, in place of the one before.
    #[inline(always)]
    pub fn set(&mut self, session: usize, alarm: Alarm, at_ns: u64) {
        match self.states[alarm as usize].get_mut(session) {
            Some(state) if at_ns >= state.armed_ns => state.wanted_ns = at_ns,
            _ => self.arm(session, alarm, at_ns),
        }
    }

    /// The same, where no entry of the heap comes up before it.
    fn arm(&mut self, session: usize, alarm: Alarm, at_ns: u64) {
        let states = &mut self.states[alarm as usize];
        if session >= states.len() {
            states.resize(session + 1, SILENT);
        }
        states[session] = State { wanted_ns: at_ns, armed_ns: at_ns };
        self.heap.push(Reverse((at_ns, session as u32, alarm as u8)));
    }

    /// What is kept of the time-out of a session's request, to be fetched before it is needed.
    pub fn prefetch(&self, session: usize) {
        if let Some(state) = self.states[Alarm::Timeout as usize].get(session) {
            prefetch(state);
        }
    }

    /// Takes a session's alarm back.
    pub fn clear(&mut self, session: usize, alarm: Alarm) {
        if let Some(state) = self.states[alarm as usize].get_mut(session) {
            state.wanted_ns = NEVER;
        }
    }

    /// When to look next; sometimes too early, never too late.
    pub fn next_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at_ns, ..))| *at_ns)
    }

    /// An alarm that rings by now; each once.
    pub fn pop(&mut self, now_ns: u64) -> Option<(usize, Alarm)> {
        while let Some(&Reverse((at_ns, session, kind))) = self.heap.peek() {
            if at_ns > now_ns {
                return None;
            }
            self.heap.pop();
            let state = &mut self.states[kind as usize][session as usize];
            if state.armed_ns != at_ns {
                continue; // an earlier one took its place
            }
            if state.wanted_ns <= now_ns {
                *state = SILENT;
                return Some((session as usize, KINDS[kind as usize]));
            }
            state.armed_ns = state.wanted_ns;
            if state.wanted_ns != NEVER {
                self.heap.push(Reverse((state.wanted_ns, session, kind)));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_later_time_replaces_an_earlier_one_without_growth() {
        let mut timers = Timers::default();
        for at_ns in 100..10_000 {
            timers.set(3, Alarm::Timeout, at_ns);
        }
        assert_eq!(timers.heap.len(), 1);
        assert_eq!(timers.pop(9_998), None);
        assert_eq!(timers.pop(9_999), Some((3, Alarm::Timeout)));
        assert_eq!(timers.pop(u64::MAX - 1), None);
    }

    #[test]
    fn a_cleared_alarm_is_silent_and_can_be_set_again() {
        let mut timers = Timers::default();
        timers.set(0, Alarm::Wake, 10);
        timers.clear(0, Alarm::Wake);
        assert_eq!(timers.pop(20), None);
        timers.set(0, Alarm::Wake, 15);
        assert_eq!(timers.pop(20), Some((0, Alarm::Wake)));
        assert_eq!(timers.next_ns(), None);
    }

    proptest! {
        /// Against a plain map: whatever is set, cleared and popped in whatever order.
        #[test]
        fn rings_like_a_plain_map(steps in prop::collection::vec((0u8..3, 0usize..4, any::<bool>(), 0u64..50), 1..200)) {
            let mut timers = Timers::default();
            let mut model: BTreeMap<(usize, u8), u64> = BTreeMap::new();
            let mut now = 0;
            for (what, session, wake, by) in steps {
                let alarm = if wake { Alarm::Wake } else { Alarm::Timeout };
                match what {
                    0 => {
                        timers.set(session, alarm, now + by);
                        model.insert((session, alarm as u8), now + by);
                    }
                    1 => {
                        timers.clear(session, alarm);
                        model.remove(&(session, alarm as u8));
                    }
                    _ => {
                        now += by;
                        while let Some((session, alarm)) = timers.pop(now) {
                            let at = model.remove(&(session, alarm as u8));
                            prop_assert!(at.is_some_and(|at| at <= now));
                        }
                        prop_assert!(model.values().all(|at| *at > now));
                        if let Some(first) = model.values().min() {
                            prop_assert!(timers.next_ns().is_some_and(|next| next <= *first));
                        }
                    }
                }
            }
        }
    }
}
