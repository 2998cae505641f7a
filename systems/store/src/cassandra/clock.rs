//! Times of writing that several intakes may give, so that of two messages with one key the later stays.
//!
//! A store whose order goes by the times that its writers give loses an acknowledged replacement as soon as two clocks of
//! writers differ, or one is set back. So a writer's own clock is used for distances only, and the time is that of the
//! nodes, asked of them twice a second and known to within some bounds: after Spanner's TrueTime (Corbett and others,
//! OSDI 2012). A write has the latest time that it can be, and is acknowledged when that is past for certain. What
//! begins after the acknowledgement, here or elsewhere, thus has a later time.
//!
//! Where a node's clock is set, intakes learn of it one after the other. None gives times by what it heard more than
//! [`FRESH`] ago, and one that heard of a step gives none until all must have heard of it ([`SETTLES`]). Set back, the
//! nodes would be behind times that were given before: a mark in the keyspace says how far these can be (see `asking`).

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How much faster than another a clock may run, in millionths: each may be slewed by 500, as `adjtimex` does.
const DRIFT_PPM: u64 = 1000;
/// Times are given by nothing that was heard longer ago.
const FRESH: Duration = Duration::from_millis(2500);
/// How long no time is given after a node's clock was set: longer than others go by what they heard before.
const SETTLES: Duration = Duration::from_millis(3000);
/// Times are given only where they are known so exactly, microseconds.
pub(super) const UNCERTAINTY_MAX_US: i64 = 1_000_000;
/// How often it is looked whether a time can be given.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// After so long without a word a node's clock counts no more.
const FORGET_AFTER: Duration = Duration::from_secs(30);
/// Until it is looked again whether a time is past.
const LOOK_MIN: Duration = Duration::from_micros(200);

/// A node's answer to the question what time it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading {
    /// When it was asked.
    pub(super) asked: Instant,
    /// When the answer was there.
    pub(super) answered: Instant,
    /// What it said, in microseconds since 1970, rounded down.
    pub(super) said_us: i64,
    /// What is lost by rounding at most, microseconds.
    pub(super) rounded_us: i64,
}

/// Between which two values a clock is ahead of this process's, in microseconds, as of a moment.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    low_us: i64,
    high_us: i64,
    as_of: Instant,
}

impl Bounds {
    /// The same at another moment: wider, since the clocks drift apart.
    fn at(self, now: Instant) -> Self {
        let drift = now.saturating_duration_since(self.as_of).as_micros() as u64 * DRIFT_PPM / 1_000_000 + 1;
        let drift = drift as i64;
        Bounds { low_us: self.low_us - drift, high_us: self.high_us + drift, as_of: now }
    }

    /// What both allow; none where they contradict each other.
    fn and(self, other: Self) -> Option<Self> {
        let now = self.as_of.max(other.as_of);
        let (one, other) = (self.at(now), other.at(now));
        let (low_us, high_us) = (one.low_us.max(other.low_us), one.high_us.min(other.high_us));
        (low_us <= high_us).then_some(Bounds { low_us, high_us, as_of: now })
    }

    /// What either allows.
    fn or(self, other: Self) -> Self {
        let now = self.as_of.max(other.as_of);
        let (one, other) = (self.at(now), other.at(now));
        Bounds { low_us: one.low_us.min(other.low_us), high_us: one.high_us.max(other.high_us), as_of: now }
    }
}

/// The time of a store's nodes, to within bounds.
#[derive(Debug)]
pub(super) struct Clock {
    /// What this process's time is counted from.
    begun: Instant,
    state: Mutex<State>,
    /// The last time that was given.
    last_us: AtomicI64,
}

#[derive(Debug, Clone, Copy)]
struct State {
    bounds: Bounds,
    /// No time is given before, since a node's clock was set.
    settled: Instant,
    /// No later time is given: what the mark in the keyspace says that there may be.
    until_us: i64,
}

impl Clock {
    /// A clock that goes by these nodes and gives times behind `mark_us`, up to which others may have given some; none
    /// where there is no reading.
    pub(super) fn new<N: Eq + Hash + Copy>(
        nodes: &mut Nodes<N>,
        begun: Instant,
        mark_us: i64,
    ) -> Option<Self> {
        let bounds = nodes.bounds()?;
        let state = Mutex::new(State { bounds, settled: begun, until_us: 0 });
        Some(Clock { begun, state, last_us: AtomicI64::new(mark_us) })
    }

    /// Goes by what is known of the nodes now.
    pub(super) fn set<N: Eq + Hash + Copy>(&self, nodes: &mut Nodes<N>) {
        if let Some(bounds) = nodes.bounds() {
            self.state.lock().bounds = bounds;
        }
    }

    /// A node's clock was set, and this is the mark: times are given behind it, and after a while.
    pub(super) fn stepped(&self, now: Instant, mark_us: i64) {
        self.state.lock().settled = now + SETTLES;
        self.last_us.fetch_max(mark_us, Ordering::Relaxed);
    }

    /// Where the mark should stand, so far ahead of now; none while no time is given, since it would only hold up those that
    /// go by it later.
    pub(super) fn wanted_mark_us(&self, now: Instant, ahead_us: i64) -> Option<i64> {
        let settled = self.state.lock().settled;
        let (latest, earliest) = self.at(now);
        (now >= settled && latest - earliest <= UNCERTAINTY_MAX_US).then_some(latest + ahead_us)
    }

    /// The mark is in the keyspace: times may be given up to it.
    pub(super) fn may_give_until(&self, mark_us: i64) {
        let mut state = self.state.lock();
        state.until_us = state.until_us.max(mark_us);
    }

    /// No intake gave a later time: the latest that it can be, or what a mark allowed.
    pub(super) fn given_at_most(&self, now: Instant) -> i64 {
        let until_us = self.state.lock().until_us;
        self.at(now).0.max(until_us).max(self.last_us.load(Ordering::Relaxed))
    }

    /// How far the bounds lie apart now, in microseconds: what a write takes at least.
    pub(super) fn uncertainty_us(&self) -> u64 {
        let bounds = self.state.lock().bounds.at(Instant::now());
        bounds.high_us.abs_diff(bounds.low_us)
    }

    /// The latest and the earliest that it can be at a moment.
    pub(super) fn at(&self, now: Instant) -> (i64, i64) {
        let own_us = micros(now.saturating_duration_since(self.begun));
        let bounds = self.state.lock().bounds.at(now);
        (own_us + bounds.high_us, own_us + bounds.low_us)
    }

    /// The time of a write that begins now, in microseconds since 1970, later than all that were given before. None where
    /// none can be given that is past within `at_most`, however long it takes to know better.
    pub(super) async fn take(&self, at_most: Duration) -> Option<i64> {
        let begun = Instant::now();
        loop {
            let now = Instant::now();
            let left = at_most.saturating_sub(now.saturating_duration_since(begun));
            if let Some(at_us) = self.take_at(now, left) {
                return Some(at_us);
            }
            if left.is_zero() {
                return None;
            }
            tokio::time::sleep(LOOK_EVERY.min(left)).await;
        }
    }

    fn take_at(&self, now: Instant, at_most: Duration) -> Option<i64> {
        let State { bounds, settled, until_us } = *self.state.lock();
        if now < settled || now.saturating_duration_since(bounds.as_of) > FRESH {
            return None;
        }
        let bounds = bounds.at(now);
        let own_us = micros(now.saturating_duration_since(self.begun));
        let (latest, earliest) = (own_us + bounds.high_us, own_us + bounds.low_us);
        let later = |last: i64| {
            let next = latest.max(last.saturating_add(1));
            let is_right = next <= until_us
                && latest - earliest <= UNCERTAINTY_MAX_US
                && next.saturating_sub(earliest) <= micros(at_most).max(UNCERTAINTY_MAX_US);
            is_right.then_some(next)
        };
        let before = self.last_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later).ok()?;
        Some(latest.max(before.saturating_add(1)))
    }

    /// Waits until a time is past on every node; false where that takes longer than it may.
    pub(super) async fn wait_past(&self, at_us: i64, at_most: Duration) -> bool {
        let begun = Instant::now();
        loop {
            let (_, earliest) = self.at(Instant::now());
            if earliest > at_us {
                return true;
            }
            let missing = Duration::from_micros(earliest.abs_diff(at_us)).max(LOOK_MIN);
            if begun.elapsed().saturating_add(missing) > at_most {
                return false;
            }
            tokio::time::sleep(missing).await;
        }
    }
}

/// What is known of the clock of each node.
#[derive(Debug)]
pub(super) struct Nodes<N>(HashMap<N, Bounds>);

impl<N> Default for Nodes<N> {
    fn default() -> Self {
        Nodes(HashMap::new())
    }
}

impl<N: Eq + Hash + Copy> Nodes<N> {
    /// Takes note of what a node said to a process whose time is counted from `begun`. Where it contradicts what it said
    /// before, its clock was set, and what it says now counts: true then.
    pub(super) fn heard(&mut self, node: N, reading: Reading, begun: Instant) -> bool {
        let since = |at: Instant| micros(at.saturating_duration_since(begun));
        let new = Bounds {
            low_us: reading.said_us - since(reading.answered),
            high_us: reading.said_us + reading.rounded_us - since(reading.asked),
            as_of: reading.asked,
        };
        let known = self.0.entry(node).or_insert(new);
        let both = known.and(new);
        *known = both.unwrap_or(new);
        both.is_none()
    }

    /// What holds for all nodes that were heard of lately, or of the last that were.
    fn bounds(&mut self) -> Option<Bounds> {
        let newest = self.0.values().map(|bounds| bounds.as_of).max()?;
        self.0.retain(|_, bounds| newest.saturating_duration_since(bounds.as_of) < FORGET_AFTER);
        self.0.values().copied().reduce(Bounds::or)
    }
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RTT_US_MAX: u64 = 3000;

    /// An intake whose own time runs so many millionths fast, as of so long after the world began.
    struct Intake {
        fast_ppm: i64,
        begun: Instant,
        nodes: Nodes<u8>,
        clock: Option<Clock>,
    }

    impl Intake {
        /// What its own clock shows after so many microseconds of the world.
        fn own(&self, world_us: u64) -> Instant {
            self.begun
                + Duration::from_micros((world_us as i64 * (1_000_000 + self.fast_ppm) / 1_000_000) as u64)
        }

        /// Hears what a node said in the midst of a question and its answer.
        fn asks(&mut self, node: u8, said: impl Fn(u64) -> i64, asked_us: u64, to_us: u64, back_us: u64) {
            let reading = Reading {
                asked: self.own(asked_us),
                answered: self.own(asked_us + to_us + back_us),
                said_us: said(asked_us + to_us) / 1000 * 1000,
                rounded_us: 1000,
            };
            self.nodes.heard(node, reading, self.begun);
            match &self.clock {
                Some(clock) => clock.set(&mut self.nodes),
                None => {
                    self.clock = Clock::new(&mut self.nodes, self.begun, 0);
                    self.clock.as_ref().unwrap().may_give_until(i64::MAX);
                }
            }
        }
    }

    proptest! {
        /// Whatever the intakes' clocks, their distance from the nodes and the difference between the nodes: what
        /// begins after another write was acknowledged has a later time.
        #[test]
        fn what_begins_after_an_acknowledgement_is_later(
            fast_ppm in prop::array::uniform3(-500..=500_i64),
            node_ppm in -500..=500_i64,
            node_us in prop::array::uniform2(0..5_000_i64),
            steps in prop::collection::vec((0..3_usize, any::<bool>(), 0..2_u8, 0..RTT_US_MAX, 0..RTT_US_MAX, 0..700_000_u64), 1..200),
        ) {
            let begun = Instant::now();
            let mut intakes = fast_ppm.map(|fast_ppm| Intake { fast_ppm, begun, nodes: Nodes::default(), clock: None });
            let said = |node: u8| move |world_us: u64| {
                1_700_000_000_000_000 + node_us[usize::from(node)] + world_us as i64 * (1_000_000 + node_ppm) / 1_000_000
            };
            let mut world_us = 0;
            for intake in &mut intakes {
                for node in 0..2 {
                    intake.asks(node, said(node), world_us, 100, 200);
                    world_us += 300;
                }
            }
            let mut acknowledged = 0;
            for (who, writes, node, to_us, back_us, pause_us) in steps {
                let intake = &mut intakes[who];
                if !writes {
                    intake.asks(node, said(node), world_us, to_us, back_us);
                    world_us += to_us + back_us + pause_us;
                    continue;
                }
                let clock = intake.clock.as_ref().unwrap();
                let Some(at_us) = clock.take_at(intake.own(world_us), Duration::ZERO) else { continue };
                prop_assert!(at_us > acknowledged, "{} µs too early", acknowledged - at_us);
                while clock.at(intake.own(world_us)).1 <= at_us {
                    world_us += 50;
                }
                acknowledged = at_us;
                world_us += pause_us / 1000;
            }
        }
    }

    #[test]
    fn many_answers_tell_more_than_a_millisecond_and_a_step_is_believed() {
        let begun = Instant::now();
        let mut intake = Intake { fast_ppm: 0, begun, nodes: Nodes::default(), clock: None };
        for question in 0..32 {
            intake.asks(1, |world_us| 5_000_000 + world_us as i64, question * 437, 100, 100);
        }
        let width = |intake: &mut Intake| {
            let bounds = intake.nodes.bounds().unwrap();
            (bounds.low_us, bounds.high_us - bounds.low_us)
        };
        let (low_us, apart_us) = width(&mut intake);
        assert!((4_999_500..=5_000_000).contains(&low_us) && apart_us < 400, "{low_us} {apart_us}");
        intake.asks(1, |world_us| 9_000_000 + world_us as i64, 20_000, 100, 100);
        let (low_us, apart_us) = width(&mut intake);
        assert!((8_998_000..=9_000_000).contains(&low_us) && apart_us < 1300, "{low_us} {apart_us}");
    }

    #[test]
    fn a_node_that_was_not_heard_of_for_long_counts_no_more_unless_it_is_the_last() {
        let begun = Instant::now();
        let mut intake = Intake { fast_ppm: 0, begun, nodes: Nodes::default(), clock: None };
        let s = 1_000_000;
        intake.asks(1, |_| 0, 0, 0, 0);
        intake.asks(2, |world_us| 70 * s + world_us as i64, 0, 0, 0);
        assert!(intake.clock.as_ref().unwrap().uncertainty_us() > 60 * s as u64);
        intake.asks(2, |world_us| 70 * s + world_us as i64, 31 * s as u64, 0, 0);
        assert_eq!(intake.nodes.0.len(), 1);
        assert!(Clock::new(&mut Nodes::<u8>::default(), begun, 0).is_none());
    }

    #[test]
    fn times_only_grow_over_all_threads() {
        let begun = Instant::now();
        let mut nodes = Nodes::default();
        nodes.heard(1, Reading { asked: begun, answered: begun, said_us: 7, rounded_us: 0 }, begun);
        let clock = Clock::new(&mut nodes, begun, 0).unwrap();
        clock.may_give_until(i64::MAX);
        let take = |_| clock.take_at(begun, Duration::ZERO).unwrap();
        let taken: Vec<Vec<i64>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| (0..5000).map(take).collect())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for of_one in &taken {
            assert!(of_one.is_sorted_by(|before, after| before < after));
        }
        let mut all: Vec<i64> = taken.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 20_000);
    }

    #[test]
    fn who_waits_for_a_time_that_is_far_gets_an_answer_all_the_same() {
        let begun = Instant::now();
        let mut nodes = Nodes::default();
        nodes.heard(1, Reading { asked: begun, answered: begun, said_us: 0, rounded_us: 0 }, begun);
        let clock = Clock::new(&mut nodes, begun, 0).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            assert!(!clock.wait_past(3_600_000_000, Duration::from_secs(10)).await);
            assert!(clock.wait_past(-1_000_000, Duration::ZERO).await);
        });
    }

    #[test]
    fn no_time_is_given_that_could_be_out_of_order() {
        let begun = Instant::now();
        let ms = Duration::from_millis;
        let mut intake = Intake { fast_ppm: 0, begun, nodes: Nodes::default(), clock: None };
        let node = |back_us: i64| move |world_us: u64| 1_700_000_000_000_000 + world_us as i64 - back_us;
        intake.asks(1, node(0), 0, 100, 100);
        let clock = intake.clock.take().unwrap();
        let take = |at_ms: u64| clock.take_at(begun + ms(at_ms), Duration::from_secs(10));
        let first = take(1).expect("it is fresh");
        // nobody has said for a while what time it is
        assert!(take(2400).is_some() && take(2600).is_none());

        // a node was set back by a minute: behind the mark nothing is given that is not past in time
        let reading = |at_us: u64, back_us: i64| {
            let at = begun + Duration::from_micros(at_us);
            Reading { asked: at, answered: at, said_us: node(back_us)(at_us) / 1000 * 1000, rounded_us: 1000 }
        };
        let minute = 60_000_000;
        assert!(!intake.nodes.heard(1, reading(2_000_000, 0), begun));
        assert!(intake.nodes.heard(1, reading(2_500_000, minute), begun), "a step");
        clock.set(&mut intake.nodes);
        clock.stepped(begun + ms(2500), first + 2_000_000);
        assert_eq!(take(2600), None, "others do not know yet");
        assert!(!intake.nodes.heard(1, reading(5_900_000, minute), begun));
        clock.set(&mut intake.nodes);
        assert_eq!(take(6000), None, "a minute is too long to wait for");
        assert!(!intake.nodes.heard(1, reading(60_000_000, minute), begun));
        clock.set(&mut intake.nodes);
        assert!(take(60_001).is_some_and(|at_us| at_us > first + 2_000_000), "nearly there");

        // two nodes that lie far apart: nor is the mark moved, which would hold times up when that is over
        assert!(clock.wanted_mark_us(begun + ms(60_001), 1).is_some());
        intake.nodes.heard(2, reading(60_500_000, minute - 3_600_000_000), begun);
        clock.set(&mut intake.nodes);
        assert_eq!(take(60_501), None);
        assert_eq!(clock.wanted_mark_us(begun + ms(60_501), 1), None);
        clock.stepped(begun + ms(61_000), 0);
        assert_eq!(clock.wanted_mark_us(begun + ms(61_001), 1), None);
    }

    #[test]
    fn no_time_is_given_beyond_what_the_mark_allows() {
        let begun = Instant::now();
        let mut nodes = Nodes::default();
        nodes.heard(1, Reading { asked: begun, answered: begun, said_us: 1000, rounded_us: 0 }, begun);
        let clock = Clock::new(&mut nodes, begun, 0).unwrap();
        assert_eq!(clock.take_at(begun, Duration::ZERO), None);
        clock.may_give_until(1003);
        let taken: Vec<_> = (0..9).filter_map(|_| clock.take_at(begun, Duration::ZERO)).collect();
        assert_eq!(taken.last(), Some(&1003));
    }
}
