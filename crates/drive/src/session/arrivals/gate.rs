//! The limit of sessions in flight, and what arrivals do that find it reached.

use std::collections::VecDeque;

use tidemark_scenario::plan::AtLimit;

use super::Arrival;

/// One thread's share of the limit.
#[derive(Debug)]
pub(crate) struct Gate {
    most: usize,
    at_limit: AtLimit,
    /// Most arrivals that may wait.
    waiting_most: usize,
    in_flight: usize,
    /// When a session ended last.
    left_ns: u64,
    waiting: VecDeque<Arrival>,
    waited: u64,
    dropped: u64,
}

/// What becomes of an arrival at the gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passage {
    Begins,
    Waits,
    Dropped,
}

impl Gate {
    /// A limit.
    pub fn new(most: usize, at_limit: AtLimit, waiting_most: usize) -> Self {
        Gate {
            most,
            at_limit,
            waiting_most,
            in_flight: 0,
            left_ns: 0,
            waiting: VecDeque::new(),
            waited: 0,
            dropped: 0,
        }
    }

    /// No limit.
    pub fn open() -> Self {
        Gate::new(usize::MAX, AtLimit::Drop, 0)
    }

    /// An arrival comes.
    pub fn come(&mut self, arrival: Arrival) -> Passage {
        if self.in_flight < self.most {
            self.in_flight += 1;
            return Passage::Begins;
        }
        if self.at_limit == AtLimit::Wait && self.waiting.len() < self.waiting_most {
            self.waiting.push_back(arrival);
            self.waited += 1;
            return Passage::Waits;
        }
        self.dropped += 1;
        Passage::Dropped
    }

    /// Whether someone who waited can begin.
    pub fn is_ready(&self) -> bool {
        self.in_flight < self.most && !self.waiting.is_empty()
    }

    /// Who has waited longest begins, if there is room.
    pub fn next(&mut self) -> Option<Arrival> {
        if !self.is_ready() {
            return None;
        }
        let arrival = self.waiting.pop_front()?;
        self.in_flight += 1;
        Some(Arrival { ready_ns: arrival.due_ns.max(self.left_ns), ..arrival })
    }

    /// A session has ended.
    pub fn leave(&mut self, now_ns: u64) {
        self.left_ns = now_ns;
        debug_assert!(self.in_flight > 0, "only who began ends");
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// How many wait.
    pub fn waiting(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Nobody begins any more; who waited in vain counts as dropped.
    pub fn close(&mut self) -> VecDeque<Arrival> {
        self.dropped += self.waiting();
        std::mem::take(&mut self.waiting)
    }

    /// How many waited, and how many were dropped.
    pub fn counts(&self) -> (u64, u64) {
        (self.waited, self.dropped)
    }
}
