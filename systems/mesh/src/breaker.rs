//! The circuit breaker: a state machine over times and outcomes, without a clock or a lock of its own.
//!
//! Closed, it counts how calls end in a rolling window. With enough of them and too many errors among these it opens:
//! calls are refused at once. After a while it lets one through; that one closes it, or opens it anew.

use std::fmt;

/// Buckets of a window.
pub const BUCKETS: u64 = 10;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With an answer.
    Success,
    /// With none, or with one that says that the other side does not work.
    Failure,
    /// Not in time.
    Timeout,
    /// It was not begun: the breaker was open.
    ShortCircuited,
    /// It was not begun: too many were under way.
    Rejected,
}

impl Outcome {
    /// All, in the order of [`Counts`].
    pub const ALL: [Outcome; 5] =
        [Outcome::Success, Outcome::Failure, Outcome::Timeout, Outcome::ShortCircuited, Outcome::Rejected];

    /// The word of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Failure => "failure",
            Outcome::Timeout => "timeout",
            Outcome::ShortCircuited => "short_circuited",
            Outcome::Rejected => "rejected",
        }
    }
}

/// Calls by how they ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts([u64; Outcome::ALL.len()]);

impl Counts {
    /// How many ended so.
    pub fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// Those that say something about the other side; short-circuited ones do not.
    pub fn total(&self) -> u64 {
        self.of(Outcome::Success) + self.errors()
    }

    /// Those of them that ended badly.
    pub fn errors(&self) -> u64 {
        self.of(Outcome::Failure) + self.of(Outcome::Timeout) + self.of(Outcome::Rejected)
    }

    /// The share of errors, 0 to 100, rounded down.
    pub fn errors_percent(&self) -> u64 {
        (self.errors() * 100).checked_div(self.total()).unwrap_or(0)
    }

    fn add(&mut self, other: &Counts) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, count)| *sum += count);
    }
}

/// When it opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerOptions {
    /// Whether it ever opens.
    pub enabled: bool,
    /// Length of the window, milliseconds; at least [`BUCKETS`].
    pub window_ms: u64,
    /// With fewer calls in the window it does not open.
    pub requests: u64,
    /// With a smaller share of errors it does not open, 1 to 100.
    pub errors_percent: u64,
    /// How long it refuses all before it lets one through, milliseconds.
    pub sleep_ms: u64,
}

impl Default for BreakerOptions {
    /// As Hystrix has them.
    fn default() -> Self {
        BreakerOptions { enabled: true, window_ms: 10_000, requests: 20, errors_percent: 50, sleep_ms: 5_000 }
    }
}

/// Where a breaker is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Calls go through.
    Closed,
    /// They are refused.
    Open,
    /// One is on its way, to see; all others are refused.
    HalfOpen,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            State::Closed => "closed",
            State::Open => "open",
            State::HalfOpen => "half_open",
        })
    }
}

/// Whether a call may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may.
    Through,
    /// It may, and by how it ends the breaker closes or opens.
    Trial,
    /// It may not, and is counted as that.
    Refused,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// Its number since time began.
    number: u64,
    counts: Counts,
}

/// A breaker. All times are milliseconds on one clock that does not run backwards.
///
/// ```
/// use tidemark_mesh::breaker::{Admission, Breaker, BreakerOptions, Outcome, State};
///
/// let mut breaker = Breaker::new(BreakerOptions { requests: 2, ..BreakerOptions::default() });
/// for _ in 0..2 {
///     assert_eq!(breaker.admit(0), Admission::Through);
///     breaker.ended(0, Outcome::Failure, false);
/// }
/// assert_eq!((breaker.state(), breaker.admit(4_999)), (State::Open, Admission::Refused));
/// assert_eq!(breaker.admit(5_000), Admission::Trial);
/// breaker.ended(5_001, Outcome::Success, true);
/// assert_eq!(breaker.state(), State::Closed);
/// ```
#[derive(Debug)]
pub struct Breaker {
    options: BreakerOptions,
    state: State,
    /// When it opened last.
    opened_ms: u64,
    buckets: [Bucket; BUCKETS as usize],
}

impl Breaker {
    /// A closed one.
    pub fn new(options: BreakerOptions) -> Self {
        Breaker { options, state: State::Closed, opened_ms: 0, buckets: Default::default() }
    }

    /// Where it is.
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether a call may begin now.
    pub fn admit(&mut self, now_ms: u64) -> Admission {
        let has_slept = now_ms.saturating_sub(self.opened_ms) >= self.options.sleep_ms;
        match self.state {
            State::Closed => return Admission::Through,
            State::Open if has_slept => {
                self.state = State::HalfOpen;
                return Admission::Trial;
            }
            State::Open | State::HalfOpen => {}
        }
        self.count(now_ms, Outcome::ShortCircuited);
        Admission::Refused
    }

    /// A call that was let through has ended; `trial` says whether it was the one to see by.
    pub fn ended(&mut self, now_ms: u64, outcome: Outcome, trial: bool) {
        if trial {
            debug_assert_eq!(self.state, State::HalfOpen, "there is one trial at a time");
            if outcome == Outcome::Success {
                self.buckets = Default::default();
                self.state = State::Closed;
            } else {
                self.open(now_ms);
            }
        }
        self.count(now_ms, outcome);
        if self.state == State::Closed && outcome != Outcome::Success && self.is_bad(now_ms) {
            self.open(now_ms);
        }
    }

    /// Nobody waits any more for the call by which to see: the next one is it.
    pub fn abandoned(&mut self) {
        if self.state == State::HalfOpen {
            self.state = State::Open;
        }
    }

    /// How the calls in the window have ended.
    pub fn counts(&self, now_ms: u64) -> Counts {
        let now = self.number(now_ms);
        let mut sum = Counts::default();
        let inside = self.buckets.iter().filter(|bucket| now.saturating_sub(bucket.number) < BUCKETS);
        inside.for_each(|bucket| sum.add(&bucket.counts));
        sum
    }

    fn is_bad(&self, now_ms: u64) -> bool {
        let counts = self.counts(now_ms);
        self.options.enabled
            && counts.total() >= self.options.requests
            && counts.errors_percent() >= self.options.errors_percent
    }

    fn open(&mut self, now_ms: u64) {
        self.state = State::Open;
        self.opened_ms = now_ms;
    }

    fn number(&self, now_ms: u64) -> u64 {
        now_ms / (self.options.window_ms / BUCKETS).max(1)
    }

    fn count(&mut self, now_ms: u64, outcome: Outcome) {
        let number = self.number(now_ms);
        let bucket = &mut self.buckets[(number % BUCKETS) as usize];
        if bucket.number != number {
            *bucket = Bucket { number, counts: Counts::default() };
        }
        bucket.counts.0[outcome as usize] += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn options() -> BreakerOptions {
        BreakerOptions { enabled: true, window_ms: 1_000, requests: 4, errors_percent: 50, sleep_ms: 500 }
    }

    fn fed(breaker: &mut Breaker, now_ms: u64, outcomes: &[Outcome]) -> State {
        for outcome in outcomes {
            assert_eq!(breaker.admit(now_ms), Admission::Through);
            breaker.ended(now_ms, *outcome, false);
        }
        breaker.state()
    }

    #[test]
    fn it_opens_with_enough_requests_and_enough_errors_only() {
        use Outcome::{Failure, Rejected, Success, Timeout};
        for (outcomes, expected) in [
            (vec![Failure, Timeout, Rejected], State::Closed),
            (vec![Success, Success, Failure, Timeout], State::Open),
            (vec![Success, Success, Success, Failure, Failure], State::Closed),
        ] {
            assert_eq!(fed(&mut Breaker::new(options()), 0, &outcomes), expected, "{outcomes:?}");
        }
        let off = BreakerOptions { enabled: false, ..options() };
        assert_eq!(fed(&mut Breaker::new(off), 0, &[Failure; 40]), State::Closed);
    }

    #[test]
    fn what_is_older_than_the_window_does_not_count() {
        let mut breaker = Breaker::new(options());
        fed(&mut breaker, 0, &[Outcome::Failure; 3]);
        assert_eq!(fed(&mut breaker, 1_000, &[Outcome::Failure; 3]), State::Closed);
        assert_eq!(breaker.counts(1_000).total(), 3);
        assert_eq!(fed(&mut breaker, 1_899, &[Outcome::Failure]), State::Open);
    }

    #[test]
    fn one_call_shows_whether_it_may_close() {
        let mut breaker = Breaker::new(options());
        fed(&mut breaker, 0, &[Outcome::Failure; 4]);
        assert_eq!((breaker.admit(499), breaker.admit(500)), (Admission::Refused, Admission::Trial));
        assert_eq!(breaker.admit(500), Admission::Refused, "one at a time");
        breaker.ended(510, Outcome::Timeout, true);
        assert_eq!((breaker.admit(1_009), breaker.admit(1_010)), (Admission::Refused, Admission::Trial));
        breaker.abandoned();
        assert_eq!(breaker.admit(1_011), Admission::Trial, "the one before was given up");
        // a call from before it opened changes nothing
        breaker.ended(1_012, Outcome::Success, false);
        assert_eq!(breaker.state(), State::HalfOpen);
        breaker.ended(1_013, Outcome::Success, true);
        assert_eq!((breaker.state(), breaker.counts(1_013).total()), (State::Closed, 1));
    }

    /// The same said slowly: every event is kept, and everything is counted anew.
    struct Model {
        options: BreakerOptions,
        state: State,
        opened_ms: u64,
        events: Vec<(u64, Outcome)>,
    }

    impl Model {
        fn in_window(&self, now_ms: u64, of: &[Outcome]) -> u64 {
            let bucket = self.options.window_ms / 10;
            let first = (now_ms / bucket).saturating_sub(9) * bucket;
            let inside = self.events.iter().filter(|(at, outcome)| *at >= first && of.contains(outcome));
            inside.count() as u64
        }

        fn admit(&mut self, now_ms: u64) -> Admission {
            if self.state == State::Closed {
                return Admission::Through;
            }
            if self.state == State::Open && now_ms >= self.opened_ms + self.options.sleep_ms {
                self.state = State::HalfOpen;
                return Admission::Trial;
            }
            self.events.push((now_ms, Outcome::ShortCircuited));
            Admission::Refused
        }

        fn ended(&mut self, now_ms: u64, outcome: Outcome, trial: bool) {
            let good = outcome == Outcome::Success;
            if trial && good {
                self.events.clear();
                self.state = State::Closed;
            } else if trial {
                (self.state, self.opened_ms) = (State::Open, now_ms);
            }
            self.events.push((now_ms, outcome));
            let errors =
                self.in_window(now_ms, &[Outcome::Failure, Outcome::Timeout, Outcome::Rejected]) as f64;
            let total = errors + self.in_window(now_ms, &[Outcome::Success]) as f64;
            let is_bad = total >= self.options.requests as f64
                && errors / total >= self.options.errors_percent as f64 / 100.0;
            if self.state == State::Closed && !good && is_bad {
                (self.state, self.opened_ms) = (State::Open, now_ms);
            }
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Wait(u64),
        Begin,
        End(usize, Outcome),
        GiveUp,
    }

    fn step() -> impl Strategy<Value = Step> {
        let outcome = prop::sample::select(&Outcome::ALL[..3]);
        prop_oneof![
            2 => (0u64..700).prop_map(Step::Wait),
            5 => Just(Step::Begin),
            5 => (0usize..8, outcome).prop_map(|(which, outcome)| Step::End(which, outcome)),
            1 => Just(Step::GiveUp),
        ]
    }

    proptest! {
        /// Whatever happens, the breaker and the model say the same.
        #[test]
        fn it_does_as_the_model(steps in prop::collection::vec(step(), 0..200)) {
            let options = options();
            let mut breaker = Breaker::new(options);
            let mut model = Model { options, state: State::Closed, opened_ms: 0, events: Vec::new() };
            let (mut now_ms, mut under_way) = (0, Vec::new());
            for step in steps {
                match step {
                    Step::Wait(ms) => now_ms += ms,
                    Step::Begin => {
                        let admission = breaker.admit(now_ms);
                        prop_assert_eq!(admission, model.admit(now_ms));
                        if admission != Admission::Refused {
                            under_way.push(admission == Admission::Trial);
                        }
                    }
                    Step::End(which, outcome) if !under_way.is_empty() => {
                        let trial = under_way.swap_remove(which % under_way.len());
                        breaker.ended(now_ms, outcome, trial);
                        model.ended(now_ms, outcome, trial);
                    }
                    Step::GiveUp => {
                        if let Some(at) = under_way.iter().position(|trial| *trial) {
                            under_way.swap_remove(at);
                            breaker.abandoned();
                            model.state = State::Open;
                        }
                    }
                    Step::End(..) => {}
                }
                prop_assert_eq!(breaker.state(), model.state);
                for outcome in Outcome::ALL {
                    let counted = breaker.counts(now_ms).of(outcome);
                    prop_assert_eq!(counted, model.in_window(now_ms, &[outcome]), "{:?}", outcome);
                }
            }
        }
    }
}
