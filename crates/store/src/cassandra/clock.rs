//! Times of writing that several intakes may give, so that of two messages with one key the later stays.
//!
//! A store whose order goes by the times that its writers give loses an acknowledged replacement as soon as two clocks of
//! writers differ, or one is set back. So a writer's own clock is used for distances only, and the time is that of the
//! nodes, asked of them twice a second and known to within some bounds: after Spanner's TrueTime (Corbett and others,
//! OSDI 2012). A write has the latest time that it can be, and is acknowledged when that is past for certain. What
//! begins after the acknowledgement, here or elsewhere, thus has a later time.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How much faster or slower than another a clock may run, in millionths: the most by which Linux slews one.
const DRIFT_PPM: u64 = 500;
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
    bounds: Mutex<Bounds>,
    /// The last time that was given.
    last_us: AtomicI64,
}

impl Clock {
    /// A clock that goes by these nodes; none where there is no reading.
    pub(super) fn new<N: Eq + Hash + Copy>(nodes: &mut Nodes<N>, begun: Instant) -> Option<Self> {
        let bounds = nodes.bounds(begun)?;
        Some(Clock { begun, bounds: Mutex::new(bounds), last_us: AtomicI64::new(0) })
    }

    /// Goes by what is known of the nodes now.
    pub(super) fn set<N: Eq + Hash + Copy>(&self, nodes: &mut Nodes<N>) {
        if let Some(bounds) = nodes.bounds(self.begun) {
            *self.bounds.lock() = bounds;
        }
    }

    /// How far the bounds lie apart now, in microseconds: what a write takes at least.
    pub(super) fn uncertainty_us(&self) -> u64 {
        let bounds = self.bounds.lock().at(Instant::now());
        bounds.high_us.abs_diff(bounds.low_us)
    }

    /// The latest and the earliest that it can be at a moment.
    fn at(&self, now: Instant) -> (i64, i64) {
        let own_us = micros(now.saturating_duration_since(self.begun));
        let bounds = self.bounds.lock().at(now);
        (own_us + bounds.high_us, own_us + bounds.low_us)
    }

    /// The time of a write that begins now, in microseconds since 1970, later than all that were given before.
    pub(super) fn take(&self) -> i64 {
        self.take_at(Instant::now())
    }

    fn take_at(&self, now: Instant) -> i64 {
        let (latest, _) = self.at(now);
        let later = |last: i64| Some(latest.max(last.saturating_add(1)));
        match self.last_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later) {
            Ok(last) | Err(last) => latest.max(last.saturating_add(1)),
        }
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
    /// before, its clock was set, and what it says now counts.
    pub(super) fn heard(&mut self, node: N, reading: Reading, begun: Instant) {
        let since = |at: Instant| micros(at.saturating_duration_since(begun));
        let new = Bounds {
            low_us: reading.said_us - since(reading.answered),
            high_us: reading.said_us + reading.rounded_us - since(reading.asked),
            as_of: reading.asked,
        };
        let known = self.0.entry(node).or_insert(new);
        *known = known.and(new).unwrap_or(new);
    }

    /// What holds for all nodes that were heard of lately, or of the last that were.
    fn bounds(&mut self, begun: Instant) -> Option<Bounds> {
        let newest = self.0.values().map(|bounds| bounds.as_of).max()?.max(begun);
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
                None => self.clock = Clock::new(&mut self.nodes, self.begun),
            }
        }
    }

    proptest! {
        /// Whatever the intakes' clocks, their distance from the nodes and the difference between the nodes: what
        /// begins after another write was acknowledged has a later time.
        #[test]
        fn what_begins_after_an_acknowledgement_is_later(
            fast_ppm in prop::array::uniform3(-(DRIFT_PPM as i64) / 2..=DRIFT_PPM as i64 / 2),
            node_us in prop::array::uniform2(0..5_000_i64),
            steps in prop::collection::vec((0..3_usize, any::<bool>(), 0..2_u8, 0..RTT_US_MAX, 0..RTT_US_MAX, 0..700_000_u64), 1..200),
        ) {
            let begun = Instant::now();
            let mut intakes = fast_ppm.map(|fast_ppm| Intake { fast_ppm, begun, nodes: Nodes::default(), clock: None });
            let said = |node: u8| move |world_us: u64| 1_700_000_000_000_000 + node_us[usize::from(node)] + world_us as i64;
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
                let at_us = clock.take_at(intake.own(world_us));
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
            let bounds = intake.nodes.bounds(begun).unwrap();
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
        assert!(Clock::new(&mut Nodes::<u8>::default(), begun).is_none());
    }

    #[test]
    fn times_only_grow_over_all_threads() {
        let begun = Instant::now();
        let mut nodes = Nodes::default();
        nodes.heard(1, Reading { asked: begun, answered: begun, said_us: 7, rounded_us: 0 }, begun);
        let clock = Clock::new(&mut nodes, begun).unwrap();
        let taken: Vec<Vec<i64>> = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..5000).map(|_| clock.take()).collect())).collect();
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
        let clock = Clock::new(&mut nodes, begun).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            assert!(!clock.wait_past(3_600_000_000, Duration::from_secs(10)).await);
            assert!(clock.wait_past(-1_000_000, Duration::ZERO).await);
        });
    }
}
