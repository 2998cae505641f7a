//! The load model as a schedule of due times.
//!
//! A [`Profile`] is the phases as one curve of the level over time. Arrivals of an open model are the inverse of the
//! curve's integral: arrival `n` is due when the integral reaches `n`, so that constant spacing, ramps and Poisson
//! spacing (the same with exponential steps in place of steps of 1) are one formula. Users of a closed model are
//! numbered: user `k` is at work while the level is above `k`. Threads interleave: thread `i` of `T` takes arrivals
//! (or users) `i`, `i + T`, `i + 2T`, …

use tidemark_scenario::plan::{Load, LoadModel, Phase, Spacing};

use crate::clock::{SECOND_NS, nanoseconds};

#[derive(Debug, Clone)]
struct Piece {
    start_ns: u64,
    end_ns: u64,
    from: f64,
    to: f64,
    /// Integral of the level up to its start.
    before: f64,
}

impl Piece {
    fn seconds(&self) -> f64 {
        (self.end_ns - self.start_ns) as f64 / SECOND_NS as f64
    }

    fn total(&self) -> f64 {
        (self.from + self.to) / 2.0 * self.seconds()
    }

    fn level_at(&self, at_ns: u64) -> f64 {
        let share = (at_ns - self.start_ns) as f64 / (self.end_ns - self.start_ns) as f64;
        self.from + (self.to - self.from) * share
    }

    /// When the integral since its start reaches `n`.
    fn inverse(&self, n: f64) -> u64 {
        let slope = (self.to - self.from) / self.seconds();
        // The root of from·t + slope/2·t² = n, in the form that is stable for every slope, also 0.
        let root = (self.from * self.from + 2.0 * slope * n).max(0.0).sqrt();
        let seconds = if n <= 0.0 { 0.0 } else { 2.0 * n / (self.from + root) };
        let ns = (seconds * SECOND_NS as f64).round() as u64;
        (self.start_ns + ns).min(self.end_ns)
    }

    /// First moment at or after `from_ns` at which its level is above `k`.
    fn when_above(&self, k: f64, from_ns: u64) -> Option<u64> {
        let from_ns = from_ns.max(self.start_ns);
        if from_ns >= self.end_ns {
            return None;
        }
        if self.level_at(from_ns) > k {
            return Some(from_ns);
        }
        if self.to <= k {
            return None;
        }
        let share = (k - self.from) / (self.to - self.from);
        let at_ns = self.start_ns + (share * (self.end_ns - self.start_ns) as f64).ceil() as u64;
        Some(at_ns.max(from_ns)).filter(|at_ns| *at_ns < self.end_ns)
    }
}

/// The level over time, and which part of it is measured.
#[derive(Debug, Clone)]
pub(crate) struct Profile {
    pieces: Vec<Piece>,
    /// Begin of the first phase.
    pub begin_ns: u64,
    /// End of the last phase.
    pub end_ns: u64,
    /// Begin and end of the measured phases; both the same if there are none.
    pub window: (u64, u64),
}

impl Profile {
    /// The phases, one after the other from `begin_ns`.
    pub fn new(phases: &[Phase], begin_ns: u64) -> Self {
        let mut pieces = Vec::with_capacity(phases.len());
        let (mut start_ns, mut before) = (begin_ns, 0.0);
        let mut window = None;
        for phase in phases {
            let end_ns = start_ns.saturating_add(nanoseconds(phase.duration));
            if phase.measured {
                window = Some((window.map_or(start_ns, |(first, _)| first), end_ns));
            }
            if end_ns > start_ns {
                let piece =
                    Piece { start_ns, end_ns, from: phase.from.max(0.0), to: phase.to.max(0.0), before };
                before += piece.total();
                pieces.push(piece);
            }
            start_ns = end_ns;
        }
        Profile { pieces, begin_ns, end_ns: start_ns, window: window.unwrap_or((start_ns, start_ns)) }
    }

    /// The level at a moment; 0 before and after.
    #[cfg(test)]
    pub fn level_at(&self, at_ns: u64) -> f64 {
        let piece = self.pieces.iter().find(|p| p.start_ns <= at_ns && at_ns < p.end_ns);
        piece.map_or(0.0, |p| p.level_at(at_ns))
    }

    /// When arrival `n` is due; none after the last phase.
    fn arrival_ns(&self, n: f64) -> Option<u64> {
        let last = self.pieces.partition_point(|p| p.before <= n).checked_sub(1)?;
        let piece = &self.pieces[last];
        let within = n - piece.before;
        // A phase without arrivals shares its `before` with the next: partition_point already took the later one.
        (within < piece.total()).then(|| piece.inverse(within))
    }

    /// First moment at or after `from_ns` at which user `k` is at work.
    fn when_above(&self, k: u32, from_ns: u64) -> Option<u64> {
        self.pieces.iter().find_map(|p| p.when_above(k.into(), from_ns))
    }
}

/// The highest number of users of a closed model.
pub(crate) fn most_users(load: &Load) -> usize {
    load.phases.iter().map(|p| p.from.max(p.to).ceil().max(0.0) as usize).max().unwrap_or(0)
}

/// Thread `thread`'s part of `total` things dealt out one by one to `threads` threads.
pub(crate) fn share(total: usize, thread: usize, threads: usize) -> usize {
    (total + threads - 1 - thread) / threads
}

/// A session is due to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arrival {
    /// When.
    pub due_ns: u64,
    /// The closed model's user, counted over all threads.
    pub user: Option<u32>,
}

/// One thread's share of the load.
#[derive(Debug)]
pub(crate) struct Schedule {
    profile: Profile,
    model: LoadModel,
    threads: usize,
    /// Number of the next arrival (with fractions where Poisson) or user.
    position: f64,
    /// The closed model's users end here.
    users: usize,
    next: Option<Arrival>,
    once: bool,
    /// Sessions that may still begin.
    left: u64,
}

impl Schedule {
    /// The share of thread `thread` of `threads`.
    pub fn new(
        load: &Load,
        profile: Profile,
        thread: usize,
        threads: usize,
        random: &mut fastrand::Rng,
    ) -> Self {
        let users = most_users(load);
        let mut schedule = Schedule {
            profile,
            model: load.model,
            threads,
            position: thread as f64,
            users,
            next: None,
            once: false,
            left: u64::MAX,
        };
        if load.model == LoadModel::Open(Spacing::Poisson) {
            schedule.position = exponential(random) * threads as f64;
        }
        schedule.next = schedule.at_position();
        schedule
    }

    /// One user, one session, now, which goes on until `end_ns` at most.
    pub fn once(now_ns: u64, end_ns: u64) -> Self {
        let profile = Profile { pieces: Vec::new(), begin_ns: now_ns, end_ns, window: (u64::MAX, u64::MAX) };
        let next = Some(Arrival { due_ns: now_ns, user: Some(0) });
        let left = u64::MAX;
        Schedule {
            profile,
            model: LoadModel::Closed,
            threads: 1,
            position: 0.0,
            users: 1,
            next,
            once: true,
            left,
        }
    }

    /// So many sessions begin on all threads together, and no more: dealt out to the threads that have users, or as
    /// arrivals are.
    pub fn bound(&mut self, sessions: Option<u64>, thread: usize) {
        let Some(sessions) = sessions else { return };
        let dealt_to = match self.model {
            LoadModel::Closed => self.threads.min(self.users),
            LoadModel::Open(_) => self.threads,
        };
        let (thread, dealt_to) = (thread as u64, dealt_to as u64);
        self.left = if thread < dealt_to { (sessions + dealt_to - 1 - thread) / dealt_to } else { 0 };
        self.next = self.next.filter(|_| self.left > 0);
    }

    /// Whether the bound on sessions lets none begin any more.
    pub fn is_used_up(&self) -> bool {
        self.left == 0
    }

    /// The curve behind it.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Whether it is a single session.
    pub fn is_once(&self) -> bool {
        self.once
    }

    /// The next arrival, if there is one.
    pub fn peek(&self) -> Option<Arrival> {
        self.next
    }

    /// Takes the next arrival.
    pub fn pop(&mut self, random: &mut fastrand::Rng) -> Option<Arrival> {
        let taken = self.next.take()?;
        if !self.once {
            let step = match self.model {
                LoadModel::Open(Spacing::Poisson) => exponential(random),
                LoadModel::Open(Spacing::Constant) | LoadModel::Closed => 1.0,
            };
            self.position += step * self.threads as f64;
            self.left -= 1;
            self.next = if self.left > 0 { self.at_position() } else { None };
        }
        Some(taken)
    }

    /// No more arrivals.
    pub fn stop(&mut self) {
        self.next = None;
    }

    /// When a closed user whose session ended at `now_ns` begins its next, which it then does; none if never.
    pub fn again_ns(&mut self, user: u32, now_ns: u64) -> Option<u64> {
        if self.once || self.left == 0 {
            return None;
        }
        let at_ns = self.profile.when_above(user, now_ns)?;
        self.left -= 1;
        Some(at_ns)
    }

    fn at_position(&self) -> Option<Arrival> {
        match self.model {
            LoadModel::Open(_) => {
                let due_ns = self.profile.arrival_ns(self.position)?;
                Some(Arrival { due_ns, user: None })
            }
            LoadModel::Closed => {
                let user = self.position as u32;
                let due_ns = (user as usize) < self.users;
                let due_ns = due_ns.then(|| self.profile.when_above(user, self.profile.begin_ns))??;
                Some(Arrival { due_ns, user: Some(user) })
            }
        }
    }
}

/// A draw from the exponential distribution with mean 1.
fn exponential(random: &mut fastrand::Rng) -> f64 {
    -(1.0 - random.f64()).ln()
}

#[cfg(test)]
mod tests;
