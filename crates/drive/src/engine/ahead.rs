//! Connections that are made before anybody needs them, so that arrivals find as many as the scenario names.
//!
//! Where a connection is made only when none is free, a system that answers quickly on most of them never sees more than a
//! few, and what is wrong with the others does not show.

use std::collections::VecDeque;

use crate::clock::MILLISECOND_NS;
use crate::engine::connection::PoolTo;

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

    /// Whether any is to be there.
    pub fn is_wanted(&self) -> bool {
        self.wanted > 0
    }

    /// One that takes too long.
    pub fn overdue(&self, now_ns: u64) -> Option<usize> {
        let (until_ns, c) = *self.under_way.front()?;
        (until_ns <= now_ns).then_some(c as usize)
    }

    /// The next one to be made, if there is one that may be.
    pub fn next(&mut self, mut pool: PoolTo<'_>, now_ns: u64) -> Option<usize> {
        if self.under_way.len() >= AT_ONCE {
            return None;
        }
        if let Some(new) = pool.new_below(self.wanted) {
            return Some(new as usize);
        }
        if now_ns < self.again_ns {
            return None;
        }
        let lost = pool.take_closed(now_ns)?;
        self.again_ns = now_ns + AGAIN_NS;
        Some(lost as usize)
    }

    /// One is being made, until then.
    pub fn began(&mut self, c: usize, until_ns: u64) {
        self.under_way.push_back((until_ns, c as u32));
    }

    /// One is made, or could not be.
    pub fn over(&mut self, c: usize) {
        self.under_way.retain(|(_, under_way)| *under_way as usize != c);
    }
}
