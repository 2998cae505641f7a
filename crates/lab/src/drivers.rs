//! Who drives: threads of this process, or a process of its own. Whoever carries a load out takes what a set of
//! [`Driver`]s hands over, and knows no more of them.
//!
//! A process of its own ([`process`]) is the same program: it gets a [`Setup`], makes the plan out of the same scenario
//! and command line, drives by threads of its own ([`serve`]), and hands over [`Handover`](tidemark_record::Handover)s.

#[cfg(feature = "fleet")]
pub mod fleet;
#[cfg(not(feature = "fleet"))]
#[path = "drivers/no_fleet.rs"]
pub mod fleet;
#[cfg(feature = "fleet")]
pub mod fleet_agent;
#[cfg(feature = "fleet")]
mod fleet_driver;
#[cfg(feature = "fleet")]
mod fleet_member;
#[cfg(feature = "fleet")]
pub(crate) mod fleet_resume;
#[cfg(not(feature = "fleet"))]
#[path = "drivers/no_resume.rs"]
pub(crate) mod fleet_resume;
#[cfg(feature = "fleet")]
pub mod fleet_ssh;
#[cfg(feature = "fleet")]
mod fleet_task;
pub mod process;
mod serve;

use std::str::FromStr;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tidemark_drive::{Drive, DriveEnd, DriveOptions, PhaseTimes};
use tidemark_record::summary::AgentFigures;
use tidemark_record::{Event, HANDOVER_VERSION, ThreadInterval};

use crate::error::LabError;
use crate::system::Running;
pub use serve::serve;

tidemark_record::named! {
    /// Who drives.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum DriverKind {
        /// Threads of this process.
        #[default]
        Threads = "threads",
        /// A process of its own, joined by pipes.
        Process = "process",
    }
}

impl std::fmt::Display for DriverKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DriverKind {
    type Err = String;

    fn from_str(name: &str) -> Result<DriverKind, String> {
        DriverKind::from_name(name).ok_or_else(|| "write threads or process".into())
    }
}

/// What a driver in another process is told before it begins.
#[derive(Debug, Serialize, Deserialize)]
pub struct Setup {
    /// The version of what it is to hand over. First in every version.
    pub(crate) version: u32,
    /// The command line of the run: the scenario's settings, and all that changes its plan.
    pub words: Vec<String>,
    /// The text of the scenario.
    pub scenario: String,
    pub(crate) seed: u64,
    pub(crate) ledger_seed: u64,
    pub(crate) threads: usize,
    /// The system, and behind it the plan's other targets.
    pub(crate) targets: Vec<Place>,
    /// The run's zero, microseconds since 1970 UTC.
    pub(crate) epoch_us: u64,
    /// What is traced: one request in so many, most of these, most of those that failed.
    pub(crate) traced: Option<(u64, u64, u64)>,
}

impl Setup {
    /// What a run is, as another process needs to know it: the words of its command line, the text of its scenario, where its
    /// targets are.
    fn new((words, scenario): (&[String], &str), targets: &[&Running], options: &DriveOptions) -> Setup {
        Setup {
            version: HANDOVER_VERSION,
            words: words.to_owned(),
            scenario: scenario.to_owned(),
            seed: options.seed,
            ledger_seed: options.ledger_seed,
            threads: options.threads,
            targets: targets.iter().map(|target| Place::of(target)).collect(),
            epoch_us: Setup::epoch_us(options),
            traced: options.trace.as_ref().map(|of| (of.every, of.sampled_max, of.failed_max)),
        }
    }
}

impl Setup {
    /// The run's zero, microseconds since 1970 UTC.
    fn epoch_us(options: &DriveOptions) -> u64 {
        let epoch = options.wall_epoch.duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::try_from(epoch.as_micros()).unwrap_or(u64::MAX)
    }
}

/// Where a target was found.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Place {
    url: String,
    /// The address that its name has; none where there are several, or a proxy stands between.
    address: Option<String>,
    /// Whether HTTP/2 is spoken there.
    is_http2: bool,
}

/// What a driver in another process is told while it drives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Order {
    /// Nothing new becomes due; what is under way is waited for.
    Stop,
    /// An end at once.
    Abort,
}

/// What comes of waiting for a driver.
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are intervals, and a box would cost threads an allocation"
)]
pub enum Handed {
    /// What a thread did in one interval.
    Interval(ThreadInterval),
    /// Something that happened to it.
    Event(Event),
    /// Nothing came in time.
    Nothing,
    /// It is over.
    Over,
}

/// How a driver ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// How its drive ended, as far as that is known.
    pub end: DriveEnd,
    /// Why it broke off in the middle, if it did.
    pub broke: Option<String>,
    /// Where agents of a fleet were lost, and others took their share over.
    pub taken_over: Option<TakenOver>,
    /// That another coordinator of a fleet went on with the run, where one did, in words.
    pub resumed: Option<String>,
    /// The agents of a fleet, without what their threads came to.
    pub agents: Vec<AgentFigures>,
    /// What a reader of the figures must know.
    pub notes: Vec<String>,
}

/// That agents of a fleet were lost, whose share others took over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenOver {
    /// In words.
    pub reason: String,
    /// Requests of the measured window that were due at them before that, and count as never sent.
    pub never_sent: u64,
}

/// One who drives, from its start on. Dropped, it ends at once.
pub trait Driver {
    /// When the phases are planned to be.
    fn phases(&self) -> &[PhaseTimes];
    /// Waits for what it hands over next, so long at most.
    fn next(&mut self, within: Duration) -> Handed;
    /// Gives an interval back, whose room may be used again.
    fn recycle(&mut self, interval: ThreadInterval);
    /// Ends it well: nothing new becomes due, what is under way is waited for.
    fn stop(&mut self);
    /// Ends it at once.
    fn abort(&mut self);
    /// How it ended, once it is over.
    ///
    /// # Errors
    /// If it could not drive.
    fn end(self: Box<Self>) -> Result<Ended, LabError>;
    /// Its process, where that is not this one.
    fn process_id(&self) -> Option<u32> {
        None
    }
}

/// Threads of this process.
impl Driver for Drive {
    fn phases(&self) -> &[PhaseTimes] {
        Drive::phases(self)
    }

    fn next(&mut self, within: Duration) -> Handed {
        match self.intervals().recv_timeout(within) {
            Ok(interval) => Handed::Interval(interval),
            Err(RecvTimeoutError::Timeout) => Handed::Nothing,
            Err(RecvTimeoutError::Disconnected) => Handed::Over,
        }
    }

    fn recycle(&mut self, interval: ThreadInterval) {
        Drive::recycle(self, interval);
    }

    fn stop(&mut self) {
        Drive::stop(self);
    }

    fn abort(&mut self) {
        Drive::abort(self);
    }

    fn end(self: Box<Self>) -> Result<Ended, LabError> {
        let end = self.join().map_err(could_not_drive)?;
        Ok(Ended { end, ..Ended::default() })
    }
}

/// All who drive a load. Each has threads with numbers of their own.
pub struct Drivers {
    all: Vec<Box<dyn Driver>>,
    /// Which of them are over.
    over: Vec<bool>,
    /// Whose turn it is.
    turn: usize,
}

impl Drivers {
    /// These, of which there is at least one.
    pub fn new(all: Vec<Box<dyn Driver>>) -> Drivers {
        debug_assert!(!all.is_empty());
        Drivers { over: vec![false; all.len()], all, turn: 0 }
    }

    /// When the phases are planned to be: the same for all.
    pub fn phases(&self) -> &[PhaseTimes] {
        self.all.first().map_or(&[], |driver| driver.phases())
    }

    /// Their processes, where those are not this one.
    pub fn process_ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.all.iter().filter_map(|driver| driver.process_id())
    }

    /// Waits for what one of them hands over next, so long at most; it is over when all are.
    pub fn next(&mut self, within: Duration) -> Handed {
        let going_on = self.over.iter().filter(|over| !**over).count();
        for _ in 0..self.all.len() {
            self.turn = (self.turn + 1) % self.all.len();
            if self.over[self.turn] {
                continue;
            }
            match self.all[self.turn].next(within / going_on as u32) {
                Handed::Nothing => {}
                Handed::Over => self.over[self.turn] = true,
                handed => return handed,
            }
        }
        if self.over.iter().all(|over| *over) { Handed::Over } else { Handed::Nothing }
    }

    /// Gives an interval back to whoever handed something over last.
    pub fn recycle(&mut self, interval: ThreadInterval) {
        self.all[self.turn].recycle(interval);
    }

    /// Ends all of them well.
    pub fn stop(&mut self) {
        self.all.iter_mut().for_each(|driver| driver.stop());
    }

    /// Ends all of them at once.
    pub fn abort(&mut self) {
        self.all.iter_mut().for_each(|driver| driver.abort());
    }

    /// How they ended, together.
    ///
    /// # Errors
    /// If one of them could not drive.
    pub fn end(self) -> Result<Ended, LabError> {
        let mut ended = self.all.into_iter().map(|driver| driver.end());
        let mut all = ended.next().transpose()?.unwrap_or_default();
        for one in ended {
            let one = one?;
            add(&mut all.end, one.end);
            all.broke = all.broke.or(one.broke);
            all.taken_over = all.taken_over.or(one.taken_over);
            all.resumed = all.resumed.or(one.resumed);
            all.agents.extend(one.agents);
            all.notes.extend(one.notes);
        }
        Ok(all)
    }
}

/// Adds how another driver of the same load ended.
fn add(all: &mut DriveEnd, one: DriveEnd) {
    all.ended_us = all.ended_us.max(one.ended_us);
    all.interrupted |= one.interrupted;
    all.script_failed = all.script_failed.take().or(one.script_failed);
    all.stopped_us = [all.stopped_us, one.stopped_us].into_iter().flatten().min();
    all.lost_intervals += one.lost_intervals;
    all.counters += &one.counters;
    all.untaken.extend(one.untaken);
    all.tls = all.tls.take().or(one.tls);
    all.slowest.extend(one.slowest);
    for more in one.not_found {
        match all.not_found.iter_mut().find(|of| (&of.label, &of.variable) == (&more.label, &more.variable)) {
            Some(known) => {
                known.answers += more.answers;
                known.found += more.found;
            }
            None => all.not_found.push(more),
        }
    }
    for (all, more) in [(&mut all.hops, one.hops), (&mut all.unfollowed, one.unfollowed)] {
        for (label, count) in more {
            match all.iter_mut().find(|(known, _)| *known == label) {
                Some((_, known)) => *known += count,
                None => all.push((label, count)),
            }
        }
    }
}

fn could_not_drive(error: impl std::fmt::Display) -> LabError {
    LabError::Measure(format!("the load could not be driven: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// Hands over an interval of each of these threads, and ends so.
    struct Told(VecDeque<u16>, Ended);

    impl Driver for Told {
        fn phases(&self) -> &[PhaseTimes] {
            &self.1.end.phases
        }

        fn next(&mut self, _: Duration) -> Handed {
            let interval = |thread| Handed::Interval(ThreadInterval::empty(thread, 0, 1));
            self.0.pop_front().map_or(Handed::Over, interval)
        }

        fn recycle(&mut self, interval: ThreadInterval) {
            self.1.end.lost_intervals += u64::from(interval.thread);
        }

        fn stop(&mut self) {}

        fn abort(&mut self) {
            self.0.clear();
        }

        fn end(self: Box<Self>) -> Result<Ended, LabError> {
            Ok(self.1)
        }
    }

    fn driver(threads: &[u16], ended_us: u64, broke: Option<&str>) -> Box<dyn Driver> {
        let end = DriveEnd { ended_us, ..DriveEnd::default() };
        Box::new(Told(
            threads.iter().copied().collect(),
            Ended { end, broke: broke.map(str::to_owned), ..Ended::default() },
        ))
    }

    #[test]
    fn several_drivers_are_one() {
        let mut drivers = Drivers::new(vec![
            driver(&[1, 1, 1], 7, None),
            driver(&[20], 9, Some("gone")),
            driver(&[], 8, None),
        ]);
        let mut threads = Vec::new();
        loop {
            match drivers.next(Duration::ZERO) {
                Handed::Interval(interval) => {
                    threads.push(interval.thread);
                    drivers.recycle(interval);
                }
                Handed::Over => break,
                Handed::Nothing | Handed::Event(_) => {}
            }
        }
        threads.sort_unstable();
        assert_eq!(threads, [1, 1, 1, 20]);
        let Ended { end, broke, .. } = drivers.end().unwrap();
        assert_eq!((end.ended_us, end.lost_intervals, broke.as_deref()), (9, 23, Some("gone")));
    }

    #[test]
    fn one_that_is_told_to_end_at_once_is_over() {
        let mut drivers = Drivers::new(vec![driver(&[1, 1], 7, None)]);
        drivers.abort();
        assert!(matches!(drivers.next(Duration::ZERO), Handed::Over));
    }
}
