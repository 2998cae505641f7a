//! The load as a schedule of due times. Nothing outside of here knows which load model it is.
//!
//! A [`Profile`] is the phases as one curve of the level over time. Arrivals of an open model are the inverse of the
//! curve's integral: arrival `n` is due when the integral reaches `n`, so that constant spacing, ramps, steps,
//! spikes, sines, replays and Poisson spacing (the same with exponential steps in place of steps of 1) are one
//! formula. Users of a closed model are numbered: user `k` is at work while the level is above `k`. Threads
//! interleave: thread `i` of `T` takes arrivals (or users) `i`, `i + T`, `i + 2T`, …
//!
//! A [`Source`] makes due times of one load model; a [`Schedule`] is the sources of all session kinds, behind the
//! [`Gate`] that holds the limit of sessions in flight.

mod gate;
mod profile;
mod source;

use std::collections::VecDeque;

use tidemark_scenario::plan::{Grace, Limits, Load, Phase};

use self::gate::{Gate, Passage};
pub(crate) use self::profile::{MOST_PIECES, pieces_of};
use self::source::Source;
pub(crate) use self::source::{Again, Ended};
use crate::clock::nanoseconds;

/// Thread `thread`'s part of `total` things dealt out one by one to `threads` threads.
pub(crate) fn share(total: usize, thread: usize, threads: usize) -> usize {
    (total + threads - 1 - thread) / threads
}

/// Where a session came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Origin {
    source: u16,
    /// The closed model's user, counted over all threads.
    user: Option<u32>,
}

impl Origin {
    /// Whether it is a user of a closed model.
    pub fn is_user(self) -> bool {
        self.user.is_some()
    }
}

/// A session is due to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When.
    pub due_ns: u64,
    /// When nothing but the driver was in its way.
    pub ready_ns: u64,
    /// Where it came from.
    pub origin: Origin,
}

/// What is to be done about arrivals now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Due {
    /// Nothing.
    Nothing,
    /// This session begins.
    Begin(Arrival),
    /// A session waits for another one's end.
    Waits,
    /// A session is given up, because the limit of sessions in flight is reached.
    Dropped(Arrival),
}

/// One thread's share of the load.
#[derive(Debug)]
pub(crate) struct Schedule {
    sources: Vec<Source>,
    gate: Gate,
    end_ns: u64,
    /// No session is due any more from here on, once it is stopped.
    stopped_ns: u64,
    once: bool,
    /// Sessions that may still begin.
    left: u64,
}

impl Schedule {
    /// The share of thread `thread` of `threads`.
    pub fn new(
        load: &Load,
        limits: &Limits,
        begin_ns: u64,
        thread: usize,
        threads: usize,
        random: &mut fastrand::Rng,
    ) -> Self {
        // Sources are dealt out one behind the other, so that each thread has its even share of all users.
        let mut dealt = 0;
        let mut sources = Vec::new();
        for stream in load.streams() {
            let place = (thread + threads - dealt % threads) % threads;
            sources.push(Source::new(&stream, begin_ns, place, threads, random));
            dealt += if stream.model.is_closed() { stream.most_users() } else { 1 };
        }
        let gate = limits.in_flight.map_or_else(Gate::open, |limit| {
            let waiting = share(limits.waiting.unwrap_or(usize::MAX), thread, threads);
            Gate::new(share(limit.most, thread, threads), limit.at_limit, waiting)
        });
        let (_, end_ns) = span(load, begin_ns);
        let left = limits.sessions.map_or(u64::MAX, |sessions| {
            // Dealt out to the threads that have users, or as arrivals are.
            let is_open = load.streams().iter().any(|stream| !stream.model.is_closed());
            let dealt_to = if is_open { threads } else { threads.min(load.most_users()) };
            if thread < dealt_to { (sessions + (dealt_to - 1 - thread) as u64) / dealt_to as u64 } else { 0 }
        });
        let mut schedule = Schedule { sources, gate, end_ns, stopped_ns: 0, once: false, left };
        schedule.take_from_bound(0);
        schedule
    }

    /// Takes over from others who had this share until `from_ns`: what was due before is theirs. Users begin anew.
    pub fn begin_at(&mut self, from_ns: u64, random: &mut fastrand::Rng) {
        self.sources.iter_mut().for_each(|source| source.begin_at(from_ns, random));
    }

    /// One user, one session, now, which goes on until `end_ns` at most.
    pub fn once(now_ns: u64, end_ns: u64) -> Self {
        let sources = vec![Source::once(now_ns)];
        Schedule { sources, gate: Gate::open(), end_ns, stopped_ns: 0, once: true, left: u64::MAX }
    }

    /// Counts sessions that begin against the bound on them.
    #[inline]
    fn take_from_bound(&mut self, sessions: u64) {
        self.left -= sessions.min(self.left);
        if self.left == 0 {
            self.sources.iter_mut().for_each(Source::stop);
        }
    }

    /// Whether the bound on sessions lets none begin any more.
    pub fn is_used_up(&self) -> bool {
        self.left == 0 && self.gate.waiting() == 0
    }

    /// When the last phase ends.
    pub fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// Whether it is a single session.
    pub fn is_once(&self) -> bool {
        self.once
    }

    /// When [`due`](Schedule::due) has something to say next; none if never.
    pub fn next_ns(&self) -> Option<u64> {
        if self.gate.is_ready() {
            return Some(0);
        }
        self.sources.iter().filter_map(|source| source.peek().map(|(due_ns, _)| due_ns)).min()
    }

    /// Whether no new session will be due.
    pub fn is_over(&self) -> bool {
        self.sources.iter().all(|source| source.peek().is_none())
    }

    /// The next thing that is due by now.
    pub fn due(&mut self, now_ns: u64, random: &mut fastrand::Rng) -> Due {
        if let Some(arrival) = self.gate.next() {
            return Due::Begin(arrival);
        }
        let dues = self.sources.iter().enumerate();
        let next = dues.filter_map(|(index, source)| Some((source.peek()?.0, index))).min();
        let Some((_, index)) = next.filter(|(due_ns, _)| *due_ns <= now_ns) else { return Due::Nothing };
        let Some((due_ns, user)) = self.sources[index].pop(random) else { return Due::Nothing };
        self.take_from_bound(1);
        let arrival = Arrival { due_ns, ready_ns: due_ns, origin: Origin { source: index as u16, user } };
        // Users are their own limit.
        let passage = if user.is_some() { Passage::Begins } else { self.gate.come(arrival) };
        match passage {
            Passage::Begins => Due::Begin(arrival),
            Passage::Waits => Due::Waits,
            Passage::Dropped => Due::Dropped(arrival),
        }
    }

    /// The kind of sessions from there; drawn by weight if none.
    pub fn kind(&self, origin: Origin) -> Option<usize> {
        self.sources[origin.source as usize].kind
    }

    /// No more arrivals from now on; those that waited are given up.
    pub fn stop(&mut self, now_ns: u64) -> VecDeque<Arrival> {
        self.stopped_ns = now_ns.min(self.end_ns);
        self.sources.iter_mut().for_each(Source::stop);
        self.gate.close()
    }

    /// A session has ended: the next one of its user, if it has one, which it then begins.
    #[inline]
    pub fn again(&mut self, origin: Origin, ended: Ended, random: &mut fastrand::Rng) -> Option<Again> {
        let user = origin.user.filter(|_| !self.once && self.left > 0)?;
        let again = self.sources[origin.source as usize].again(user, ended, random);
        if again.is_some() {
            self.take_from_bound(1);
        }
        again
    }

    /// When a session from there that begins at `from_ns` has had its time.
    pub fn over_ns(&self, origin: Origin, from_ns: u64, grace: Grace) -> u64 {
        self.sources[usize::from(origin.source)].over_ns(origin.user, from_ns, grace)
    }

    /// A session has ended, and no other of its user follows.
    pub fn leave(&mut self, origin: Origin, now_ns: u64) {
        if origin.user.is_none() {
            self.gate.leave(now_ns);
        }
    }

    /// When sessions of the same user should have begun after the one that was due at `due_ns`, and before the end.
    pub fn missed(&self, origin: Origin, due_ns: u64, each: impl FnMut(u64)) {
        if let Some(user) = origin.user.filter(|_| !self.once && self.left > 0) {
            self.sources[origin.source as usize].missed(user, due_ns, self.stopped_ns, each);
        }
    }

    /// Arrivals that wait for a session's end.
    pub fn waiting(&self) -> u64 {
        self.gate.waiting()
    }

    /// Arrivals that the limit of sessions in flight let wait, and those that it dropped.
    pub fn limited(&self) -> (u64, u64) {
        self.gate.counts()
    }
}

/// Begin and end of the measured phases (both the end if there are none), and the end of the last phase.
pub(crate) fn span(load: &Load, begin_ns: u64) -> ((u64, u64), u64) {
    let mut window = None;
    let mut at_ns = begin_ns;
    for phase in &load.phases {
        let end_ns = at_ns.saturating_add(nanoseconds(phase.duration));
        if phase.measured {
            window = Some((window.map_or(at_ns, |(first, _)| first), end_ns));
        }
        at_ns = end_ns;
    }
    (window.unwrap_or((at_ns, at_ns)), at_ns)
}

/// When each phase ends.
pub(crate) fn phase_ends(load: &Load, begin_ns: u64) -> Vec<u64> {
    let after = |at_ns: &mut u64, phase: &Phase| {
        *at_ns = at_ns.saturating_add(nanoseconds(phase.duration));
        Some(*at_ns)
    };
    load.phases.iter().scan(begin_ns, after).collect()
}

#[cfg(test)]
mod tests;
