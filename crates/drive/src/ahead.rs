//! Connections that are made before anybody needs them, so that arrivals find as many as the scenario names.
//!
//! Where a connection is made only when none is free, a system that answers quickly on most of them never sees more than a
//! few, and what is wrong with the others does not show.

use std::collections::VecDeque;

use crate::clock::MILLISECOND_NS;
use crate::connection::State;
use crate::fault::Fault;
use crate::thread::Thread;

/// Most connections that a thread makes ahead at the same time.
const AT_ONCE: usize = 32;
/// One that was lost is made again not sooner than this after the one before it, whoever closes them.
const AGAIN_NS: u64 = 10 * MILLISECOND_NS;

/// What a thread makes ahead.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    wanted: usize,
    /// Those that are being made, and until when; the oldest in front.
    under_way: VecDeque<(u64, u32)>,
    again_ns: u64,
}

impl Ahead {
    /// So many connections are to be there.
    pub fn new(wanted: usize) -> Self {
        Ahead { wanted, under_way: VecDeque::with_capacity(AT_ONCE), again_ns: 0 }
    }
}

impl Thread<'_> {
    /// Begins to make what is not there, and gives up what takes too long.
    pub fn make_ahead(&mut self, now_ns: u64) {
        if self.ahead.wanted == 0 || self.flow.draining {
            return;
        }
        while let Some(&(until_ns, c)) = self.ahead.under_way.front()
            && until_ns <= now_ns
        {
            self.not_made(c as usize, &Fault::ConnectTimeout, now_ns);
        }
        while self.ahead.under_way.len() < AT_ONCE {
            let Some(c) = self.next_unmade(now_ns) else { return };
            match self.transport.open(c as usize) {
                Ok(()) => {
                    self.pool.get(c as usize).state = State::Connecting;
                    let until_ns = now_ns.saturating_add(self.bounds.connect_timeout_ns);
                    self.ahead.under_way.push_back((until_ns, c));
                }
                Err(error) => return self.not_made(c as usize, &Fault::Connect(error), now_ns),
            }
        }
    }

    fn next_unmade(&mut self, now_ns: u64) -> Option<u32> {
        if let Some(new) = self.pool.new_below(self.ahead.wanted) {
            return Some(new);
        }
        if now_ns < self.ahead.again_ns {
            return None;
        }
        let lost = self.pool.take_closed(now_ns)?;
        self.ahead.again_ns = now_ns + AGAIN_NS;
        Some(lost)
    }

    /// One is there, for whoever needs it first.
    pub fn made_ahead(&mut self, c: usize, now_ns: u64) {
        self.forget_ahead(c);
        self.made(c);
        self.release(c as u32, now_ns);
    }

    /// One could not be made. No request has failed by that: it is an example, and tried again later.
    pub fn not_made(&mut self, c: usize, fault: &Fault, now_ns: u64) {
        self.forget_ahead(c);
        self.close(c);
        self.pool.get(c).refused(now_ns);
        let (label, outcome) = (0, fault.outcome());
        if self.recorder.wants_example(label, outcome) {
            let detail = format!("{fault} (a connection that was to be there before it was needed)");
            self.recorder.example(now_ns, label, outcome, detail);
        }
        self.release(c as u32, now_ns);
    }

    fn forget_ahead(&mut self, c: usize) {
        self.ahead.under_way.retain(|(_, under_way)| *under_way as usize != c);
    }
}
