//! One source of sessions: a load model as due times.

use std::time::Duration;

use tidemark_scenario::plan::{Grace, LoadModel, Pause, Spacing, Stream};

use super::profile::{Profile, Steady};
use crate::clock::nanoseconds;

/// Most searches for a paced user's next moment; whoever is not at work for so long comes no more.
const MOST_SEARCHES: usize = 100_000;
/// A user who leaves is away for so long at least; times are no exacter.
const AWAY_NS: u64 = 1_000;

/// How a user's session went, as far as its next one depends on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ended {
    /// When it was due to begin.
    pub due_ns: u64,
    /// When it ended.
    pub end_ns: u64,
    /// The earliest moment at which the next may begin.
    pub earliest_ns: u64,
}

/// A user's next session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Again {
    /// When it is due.
    pub due_ns: u64,
    /// When nothing but the driver was in its way.
    pub ready_ns: u64,
    /// When it begins; later than it is due where the user was not ready.
    pub at_ns: u64,
}

/// A thread's share of one source.
#[derive(Debug)]
pub(crate) struct Source {
    /// The kind of its sessions; drawn by weight if none.
    pub kind: Option<usize>,
    profile: Profile,
    /// When the level was the same all the time that was looked at last.
    steady: Steady,
    model: LoadModel,
    /// The first arrival, or user, of this thread.
    place: usize,
    threads: usize,
    /// Number of the next arrival of an open model, with fractions where Poisson.
    position: f64,
    /// When users of a closed model begin for the first time, the next one last.
    first: Vec<(u64, u32)>,
    /// The highest number of users, over all threads.
    users: usize,
    next: Option<(u64, Option<u32>)>,
}

impl Source {
    /// The share of one thread, which takes arrivals (or users) `place`, `place + threads`, `place + 2·threads`, …
    pub fn new(
        stream: &Stream<'_>,
        begin_ns: u64,
        place: usize,
        threads: usize,
        random: &mut fastrand::Rng,
    ) -> Self {
        let users = stream.most_users();
        let mut source = Source {
            kind: stream.kind,
            profile: Profile::new(stream.phases, begin_ns),
            steady: Steady::default(),
            model: stream.model,
            place,
            threads,
            position: match stream.model {
                LoadModel::Open(Spacing::Poisson) => exponential(random) * threads as f64,
                _ => place as f64,
            },
            first: Vec::new(),
            users,
            next: None,
        };
        if stream.model.is_closed() {
            source.first = source.first_from(begin_ns);
        }
        source.next = source.at_position();
        source
    }

    /// Leaves out what is due before `from_ns`; users begin then for the first time, as far as they are at work.
    pub fn begin_at(&mut self, from_ns: u64, random: &mut fastrand::Rng) {
        let (place, threads) = (self.place as f64, self.threads as f64);
        let before = self.profile.integral(from_ns);
        match self.model {
            LoadModel::Open(Spacing::Poisson) => self.position = before + exponential(random) * threads,
            // one too early, as sums are not exact
            LoadModel::Open(_) => {
                self.position = place + ((before - 1.0 - place) / threads).ceil().max(0.0) * threads;
            }
            _ => self.first = self.first_from(from_ns),
        }
        self.next = self.at_position();
        while self.next.is_some_and(|(due_ns, _)| due_ns < from_ns) {
            self.pop(random);
        }
    }

    /// When this thread's users begin for the first time at or after a moment, the first one last.
    fn first_from(&self, from_ns: u64) -> Vec<(u64, u32)> {
        let mine = (self.place..self.users).step_by(self.threads).map(|user| user as u32);
        let mut first: Vec<_> = mine.filter_map(|user| Some((self.first_ns(user, from_ns)?, user))).collect();
        first.sort_unstable_by(|a, b| b.cmp(a));
        first
    }

    /// One user, one session, now.
    pub fn once(now_ns: u64) -> Self {
        Source {
            kind: None,
            profile: Profile::nothing(now_ns),
            steady: Steady::default(),
            model: LoadModel::Closed,
            place: 0,
            threads: 1,
            position: 0.0,
            first: Vec::new(),
            users: 1,
            next: Some((now_ns, Some(0))),
        }
    }

    /// When the next session is due, and which user's it is.
    pub fn peek(&self) -> Option<(u64, Option<u32>)> {
        self.next
    }

    /// Takes the next session.
    pub fn pop(&mut self, random: &mut fastrand::Rng) -> Option<(u64, Option<u32>)> {
        let taken = self.next.take()?;
        let step = match self.model {
            LoadModel::Open(Spacing::Poisson) => exponential(random),
            _ => 1.0,
        };
        self.position += step * self.threads as f64;
        self.next = self.at_position();
        Some(taken)
    }

    /// No more new sessions.
    pub fn stop(&mut self) {
        self.next = None;
        self.first.clear();
    }

    /// A user's next session after one has ended; none if it has no more.
    #[inline]
    pub fn again(&mut self, user: u32, ended: Ended, random: &mut fastrand::Rng) -> Option<Again> {
        let due_ns = match self.model {
            LoadModel::Closed => {
                let at_ns = self.at_work_ns(user, ended.earliest_ns)?;
                if at_ns <= ended.earliest_ns { ended.end_ns } else { at_ns }
            }
            LoadModel::Thinking(pause) => {
                let rested_ns = ended.end_ns.saturating_add(nanoseconds(draw(pause, random)));
                self.profile.when_above(user, rested_ns)?
            }
            LoadModel::Paced(pace) => {
                let next_ns = ended.due_ns.saturating_add(nanoseconds(pace).max(1));
                self.beat_ns(user, next_ns, pace)?
            }
            LoadModel::Open(_) => return None,
        };
        Some(Again { due_ns, ready_ns: due_ns.max(ended.end_ns), at_ns: due_ns.max(ended.earliest_ns) })
    }

    /// First moment at or after `from_ns` at which a user is at work.
    #[inline]
    fn at_work_ns(&mut self, user: u32, from_ns: u64) -> Option<u64> {
        if self.steady.has_at_work(user, from_ns) {
            return Some(from_ns);
        }
        self.steady = self.profile.steady_at(from_ns).unwrap_or_default();
        self.profile.when_above(user, from_ns)
    }

    /// When a session that begins at `from_ns` has had its time.
    pub fn over_ns(&self, user: Option<u32>, from_ns: u64, grace: Grace) -> u64 {
        let end_ns = self.profile.over_ns();
        let last_ns = end_ns.saturating_add(nanoseconds(grace.stop));
        let Some(user) = user else { return last_ns };
        let mut from_ns = from_ns;
        for _ in 0..MOST_SEARCHES {
            let left_ns = self.profile.when_not_above(user, from_ns);
            if left_ns >= end_ns {
                break;
            }
            let over_ns = left_ns.saturating_add(nanoseconds(grace.ramp_down));
            // who is back before goes on
            match self.profile.when_above(user, left_ns.saturating_add(AWAY_NS)) {
                Some(back_ns) if back_ns < over_ns => from_ns = back_ns,
                _ => return over_ns.min(last_ns),
            }
        }
        last_ns
    }

    /// When a user should have begun sessions after the one that was due at `due_ns`, and before `until_ns`.
    pub fn missed(&self, user: u32, due_ns: u64, until_ns: u64, mut each: impl FnMut(u64)) {
        let LoadModel::Paced(pace) = self.model else { return };
        let mut last_ns = due_ns;
        while let Some(next_ns) = self.beat_ns(user, last_ns.saturating_add(nanoseconds(pace).max(1)), pace)
            && next_ns < until_ns
        {
            each(next_ns);
            last_ns = next_ns;
        }
    }

    fn first_ns(&self, user: u32, from_ns: u64) -> Option<u64> {
        match self.model {
            LoadModel::Paced(pace) => self.beat_ns(user, from_ns, pace),
            _ => self.profile.when_above(user, from_ns),
        }
    }

    /// The first beat of a paced user at or after a moment at which it is at work. The users' beats are evenly
    /// spread over the pace, so that together they begin sessions at an even rate.
    fn beat_ns(&self, user: u32, from_ns: u64, pace: Duration) -> Option<u64> {
        let pace_ns = nanoseconds(pace).max(1);
        let share = u128::from(pace_ns) * u128::from(user) / self.users.max(1) as u128;
        let first_ns = self.profile.begin_ns + share as u64;
        let mut from_ns = from_ns;
        for _ in 0..MOST_SEARCHES {
            let beats = from_ns.saturating_sub(first_ns).div_ceil(pace_ns);
            let beat_ns = first_ns.saturating_add(beats.saturating_mul(pace_ns));
            let at_work_ns = self.profile.when_above(user, beat_ns)?;
            if at_work_ns == beat_ns {
                return Some(beat_ns);
            }
            from_ns = at_work_ns;
        }
        None
    }

    fn at_position(&mut self) -> Option<(u64, Option<u32>)> {
        match self.model {
            LoadModel::Open(_) => self.profile.arrival_ns(self.position).map(|due_ns| (due_ns, None)),
            _ => self.first.pop().map(|(due_ns, user)| (due_ns, Some(user))),
        }
    }
}

fn draw(pause: Pause, random: &mut fastrand::Rng) -> Duration {
    match pause {
        Pause::Fixed(time) => time,
        Pause::Between(low, high) => low + high.saturating_sub(low).mul_f64(random.f64()),
        Pause::Exponential(mean) => mean.mul_f64(exponential(random)),
    }
}

/// A draw from the exponential distribution with mean 1.
fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}
