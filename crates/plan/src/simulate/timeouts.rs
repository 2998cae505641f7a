//! Timeouts of calls. All of a kind take equally long, so that they end in the order in which they began: one event is
//! enough for each kind, where one for each attempt would fill the list of events.

use std::collections::VecDeque;

use super::state::CLIENT;
use super::{Kind, Simulation};
use crate::model::{Call, Model};

/// An attempt that may be given up.
#[derive(Debug, Clone, Copy)]
struct Waits {
    at: u64,
    visit: u32,
    serial: u32,
    attempt: u32,
}

/// The attempts of each kind of call.
pub(super) struct Timeouts {
    queues: Vec<VecDeque<Waits>>,
    /// Where the calls of each tier begin.
    first: Vec<usize>,
}

impl Timeouts {
    pub(super) fn new(model: &Model) -> Timeouts {
        let mut first = Vec::new();
        let mut count = 1;
        for tier in &model.tiers {
            first.push(count);
            count += tier.calls.len();
        }
        Timeouts { queues: vec![VecDeque::new(); count], first }
    }
}

impl Simulation<'_> {
    /// An attempt begins that is given up after a while.
    pub(super) fn begin_timeout(&mut self, visit: u32, call: &Call) {
        let Some(timeout_s) = call.timeout_s else { return };
        let of = self.visits[visit as usize];
        let queue = match of.tier {
            CLIENT => 0,
            tier => self.timeouts.first[tier as usize] + of.call as usize,
        };
        let at = self.now + super::ns(timeout_s);
        self.timeouts.queues[queue].push_back(Waits { at, visit, serial: of.serial, attempt: of.attempts });
        if self.timeouts.queues[queue].len() == 1 {
            self.schedule(at, Kind::Timeout, queue as u32, 0);
        }
    }

    /// Gives up the attempts whose time is over.
    pub(super) fn time_out(&mut self, queue: usize) {
        while let Some(waits) = self.timeouts.queues[queue].front().copied() {
            let of = &self.visits[waits.visit as usize];
            let is_under_way = of.serial == waits.serial && of.attempts == waits.attempt;
            if is_under_way && waits.at > self.now {
                self.schedule(waits.at, Kind::Timeout, queue as u32, 0);
                return;
            }
            self.timeouts.queues[queue].pop_front();
            if is_under_way {
                self.give_up(waits.visit);
            }
        }
    }
}
