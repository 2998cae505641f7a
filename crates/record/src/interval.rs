//! What a driver thread hands over once a second.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ledger::Part;
use crate::totals::LabelStart;
use crate::{
    Counters, Histogram, OwnNumbers, OwnSeries, Packed, PackedNumbers, PartSeries, ThreadShare, frame,
};

/// Microseconds in a second.
pub const SECOND_US: u64 = 1_000_000;

crate::named! {
    /// How a request ended. Every kind of failure has its own count.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    #[repr(u8)]
    pub enum Outcome {
        /// Answered, and every check held.
        Ok = "ok",
        /// Answered with a status that the step does not accept (400 and above unless it says otherwise).
        Status = "status",
        /// Answered, but a check on header, body or extraction failed.
        Check = "check",
        /// No whole answer within the step's time-out, or no connection in time, without anyone's having refused it.
        Timeout = "timeout",
        /// No connection could be made.
        Connect = "connect",
        /// The connection was reset or closed before the answer was whole.
        Reset = "reset",
        /// The answer was not valid HTTP.
        Protocol = "protocol",
        /// Not sent: a variable that it needs was not set, or an expression in it failed.
        Variable = "variable",
        /// Due, and still without an answer when the run ended.
        Unfinished = "unfinished",
    }
}

impl Outcome {
    /// Whether a whole answer came, right or wrong.
    pub fn is_answered(self) -> bool {
        matches!(self, Outcome::Ok | Outcome::Status | Outcome::Check)
    }

    /// Whether it counts as an error.
    pub fn is_error(self) -> bool {
        self != Outcome::Ok
    }
}

/// The requests of one step and one outcome that ended within an interval.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series<H = Histogram> {
    /// Index into the plan's labels.
    pub label: u16,
    /// How they ended.
    pub outcome: Outcome,
    /// Whether they were due within the measured window (warm-up and ramps are not).
    pub measured: bool,
    /// Index of the load's phase in which they were due; none where they were due after all.
    pub phase: Option<u16>,
    /// From due to last byte, microseconds.
    pub response_time_us: H,
    /// The same with the driver's own lag taken out: as if each request had left the moment that nothing but the driver was
    /// in its way, and its answer had been read the moment that it came (where that is known), microseconds.
    pub response_time_less_lag_us: H,
    /// From first byte sent to last byte received, microseconds.
    pub service_time_us: H,
    /// Good answers of which the size of the body is known.
    pub bodies: u64,
    /// Bytes of their bodies: once decoded where a step looks at them, else as they came.
    pub body_bytes: u64,
}

impl<H> Series<H> {
    /// What tells it from others of an interval.
    pub(crate) fn key(&self) -> (u16, Outcome, bool, Option<u16>) {
        (self.label, self.outcome, self.measured, self.phase)
    }
}

/// One of the first failures of a kind, for a person to read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ErrorExample {
    /// Microseconds since the run began.
    pub at_us: u64,
    /// Index into the plan's labels.
    pub label: u16,
    /// What kind of failure.
    pub outcome: Outcome,
    /// What was seen: a status with the start of the body, a system error, the check that failed.
    pub detail: String,
}

/// How a thread fared for want of a core in an interval, by the kernel's own account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreWaits {
    /// How long it was ready to run but had no core, microseconds.
    pub waited_us: u64,
    /// How often it went to sleep.
    pub sleeps: u64,
}

/// Time of the measured window that users spent in requests which came to nothing, microseconds, all users together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostTime {
    /// In requests that failed by an answer, or by a connection that was refused or broken off.
    pub refused_us: u64,
    /// In requests that timed out, were cut off by the run's end, or were open for the whole window.
    pub waited_us: u64,
    /// Of both, in requests that were still open when the window ended, and had been for half of it or longer.
    pub stuck_us: u64,
    /// How many those were.
    pub stuck: u64,
}

impl LostTime {
    /// All of it.
    pub fn all_us(&self) -> u64 {
        self.refused_us + self.waited_us
    }

    /// Adds what another thread, or interval, tells.
    pub fn add(&mut self, other: &LostTime) {
        self.refused_us += other.refused_us;
        self.waited_us += other.waited_us;
        self.stuck_us += other.stuck_us;
        self.stuck += other.stuck;
    }
}

/// Requests of one phase of the load, told of in an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCounts {
    /// Index of the phase.
    pub phase: u16,
    /// Those that were due in it.
    pub offered: u64,
    /// Those of them that were given up because a bound was reached.
    pub dropped: u64,
}

/// How the histograms of an interval are held: to be counted in, or [`Packed`].
pub trait Held {
    /// How numbers of the scenario's own metrics are held then.
    type Numbers: std::fmt::Debug + Clone;
}

impl Held for Histogram {
    type Numbers = OwnNumbers;
}

impl<'a> Held for Packed<'a> {
    type Numbers = PackedNumbers<'a>;
}

/// What one driver thread did in one interval. Intervals end at whole seconds since the run began and
/// at the edges of phases, so that an interval lies wholly within a phase, and within the measured window or wholly outside.
///
/// Several threads' may be [added up](crate::IntervalSums) to one; then `shares` has what is told of each.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(
    serialize = "H: Serialize, H::Numbers: Serialize",
    deserialize = "H: Deserialize<'de>, H::Numbers: Deserialize<'de>"
))]
pub struct ThreadInterval<H: Held = Histogram> {
    /// Which driver thread.
    pub thread: u16,
    /// Begin, microseconds since the run began.
    pub start_us: u64,
    /// End, microseconds since the run began.
    pub end_us: u64,
    /// Whether it lies within the measured window.
    pub in_window: bool,
    /// Requests that ended, by step and outcome; only those with at least one request.
    #[serde(deserialize_with = "frame::series")]
    pub series: Vec<Series<H>>,
    /// Groups of steps that were over, as requests are told: `label` is the index of the group. None of them is a request.
    #[serde(deserialize_with = "frame::series")]
    pub groups: Vec<Series<H>>,
    /// What was measured of the scenario's own metrics; only those of which anything was.
    #[serde(deserialize_with = "frame::series")]
    pub own: Vec<OwnSeries<H::Numbers>>,
    /// Where the time of good answers went, by step.
    #[serde(deserialize_with = "frame::series")]
    pub parts: Vec<PartSeries<H>>,
    /// Requests that became due (started or dropped), as the driver turned to them.
    pub offered: u64,
    /// How many of them were due in an interval before this one: a moment within that, microseconds since the run began, and
    /// the count; of the first [`EARLIER_MAX`] such intervals.
    pub offered_earlier: Vec<(u64, u64)>,
    /// Those that were due within the measured window, told of in this interval. Each of them ends as a measured
    /// outcome or as a measured drop, unless the drive is aborted.
    pub measured_offered: u64,
    /// Requests given up in this interval because a bound was reached.
    pub dropped: u64,
    /// Those of them that were due within the measured window; they may be given up after it.
    pub measured_dropped: u64,
    /// The same by the phase in which they were due; only phases that have some.
    pub by_phase: Vec<PhaseCounts>,
    /// Arrivals that wait for a connection at the end of the interval.
    pub waiting: u64,
    /// Requests under way at the end of the interval.
    pub in_flight: u64,
    /// Requests due and without an end at the end of the interval, by label; only labels that have any.
    pub open_by_label: Vec<(u16, u64)>,
    /// Sessions that began in it, by the index of their kind; only kinds that have any.
    pub sessions_begun: Vec<(u16, u64)>,
    /// Time that users lost with the requests that ended in it.
    pub lost_time: LostTime,
    /// What else was counted in it.
    pub counters: Counters,
    /// Requests that were due within the measured window and failed, or were given up, for want of a connection: most of their
    /// time was over before one was free. By label, none for those of sessions that never began; only labels that have any.
    pub unconnected: Vec<(Option<u16>, u64)>,
    /// Connections open at the end of the interval.
    pub connections: u64,
    /// How late requests left that were due within the measured window: from due to first byte sent, where only the
    /// driver was in the way (waiting for a connection is not lag), microseconds. They may leave after the window.
    pub lag_us: H,
    /// The same of requests that were due outside of it.
    pub unmeasured_lag_us: H,
    /// How late answers were read to requests that were due within the measured window: from when the kernel had the last
    /// bytes until the driver turned to them, microseconds. Of all answers or a sample; of none where it is not told.
    pub read_lag_us: H,
    /// CPU time that the thread used, microseconds.
    pub cpu_us: u64,
    /// How it fared for want of a core; none where the system does not say.
    pub core_waits: Option<CoreWaits>,
    /// How long it was not there at all: neither on a CPU, nor waiting for one, nor asleep of its own will (stopped,
    /// suspended), microseconds.
    pub absent_us: u64,
    /// The first failures of each kind of this thread; few.
    pub examples: Vec<ErrorExample>,
    /// Answers to requests that were due within the measured window: status code, how many.
    pub statuses: Vec<(u16, u64)>,
    /// What it entered in the ledger, which has files of its own; nothing was ever sent where the scenario enters nothing.
    #[serde(skip)]
    pub ledger: Part,
    /// Times of [`QUIET_US`] or more in which no good answer came to this thread and that such an answer ended in this
    /// interval: from the good answer before, or the drive's begin, to this one; microseconds since the run began.
    pub quiet: Vec<(u64, u64)>,
    /// When the first and the last request failed that ended in this interval; those that were never sent aside.
    pub failed_us: Option<(u64, u64)>,
    /// When its last good answer came, of this interval or one before; the drive's begin where there was none.
    pub last_good_us: u64,
    /// What is told of each thread, where that is known apart. Empty in what a thread itself hands over: all of it is the
    /// thread's.
    pub shares: Vec<ThreadShare>,
    /// What is told of each label's first requests, where `shares` are known apart.
    pub label_starts: Vec<(u16, LabelStart)>,
}

/// Most intervals of before in which requests were due that a thread turned to in one interval, each told by itself: a minute
/// of a driver that was held up. Beyond them they count where it turned to them.
pub const EARLIER_MAX: usize = 64;

/// A shorter time without a good answer is not told by itself, microseconds.
pub const QUIET_US: u64 = 1_000_000;

impl ThreadInterval {
    /// An interval in which nothing happened yet, outside the measured window.
    pub fn empty(thread: u16, start_us: u64, end_us: u64) -> ThreadInterval {
        ThreadInterval {
            thread,
            start_us,
            end_us,
            in_window: false,
            series: Vec::new(),
            groups: Vec::new(),
            own: Vec::new(),
            parts: Vec::new(),
            offered: 0,
            offered_earlier: Vec::with_capacity(EARLIER_MAX),
            measured_offered: 0,
            dropped: 0,
            measured_dropped: 0,
            by_phase: Vec::new(),
            waiting: 0,
            in_flight: 0,
            open_by_label: Vec::new(),
            sessions_begun: Vec::new(),
            lost_time: LostTime::default(),
            counters: Counters::default(),
            unconnected: Vec::new(),
            connections: 0,
            lag_us: crate::new_histogram(),
            unmeasured_lag_us: crate::new_histogram(),
            read_lag_us: crate::new_histogram(),
            cpu_us: 0,
            core_waits: None,
            absent_us: 0,
            examples: Vec::new(),
            statuses: Vec::new(),
            ledger: Part::default(),
            quiet: Vec::new(),
            failed_us: None,
            last_good_us: 0,
            shares: Vec::new(),
            label_starts: Vec::new(),
        }
    }

    /// What is told of each thread.
    pub fn shares(&self) -> Cow<'_, [ThreadShare]> {
        match &self.shares[..] {
            [] => Cow::Owned(vec![ThreadShare::of(self)]),
            known => Cow::Borrowed(known),
        }
    }

    /// What is told of each label's first requests.
    pub(crate) fn label_starts(&self) -> Cow<'_, [(u16, LabelStart)]> {
        match &self.shares[..] {
            [] => Cow::Owned(LabelStart::of_labels(self)),
            _ => Cow::Borrowed(&self.label_starts),
        }
    }

    /// Stores the figures of each thread, so that intervals can be added up.
    pub fn store_shares(&mut self) {
        (self.shares, self.label_starts) = (self.shares().into_owned(), self.label_starts().into_owned());
    }

    /// One of those offered was due in an interval before this one, in which this moment lies.
    pub fn offered_late(&mut self, within_us: u64) {
        match self.offered_earlier.iter().rposition(|(known_us, _)| *known_us == within_us) {
            Some(at) => self.offered_earlier[at].1 += 1,
            None if self.offered_earlier.len() < EARLIER_MAX => self.offered_earlier.push((within_us, 1)),
            None => {}
        }
    }

    /// Makes it as [`empty`](Self::empty) has it, at time 0, and keeps all room: each series stays, with no request in it.
    pub fn clear(&mut self) {
        // every field by name: one that is added has to be thought of here
        let ThreadInterval {
            thread: _,
            start_us,
            end_us,
            in_window,
            series,
            groups,
            own,
            parts,
            offered,
            offered_earlier,
            measured_offered,
            dropped,
            measured_dropped,
            by_phase,
            waiting,
            in_flight,
            open_by_label,
            sessions_begun,
            lost_time,
            counters,
            unconnected,
            connections,
            lag_us,
            unmeasured_lag_us,
            read_lag_us,
            cpu_us,
            core_waits,
            absent_us,
            examples,
            statuses,
            ledger,
            quiet,
            failed_us,
            last_good_us,
            shares,
            label_starts,
        } = self;
        (*start_us, *end_us, *in_window, *core_waits) = (0, 0, false, None);
        (*offered, *dropped, *waiting, *in_flight) = (0, 0, 0, 0);
        (*measured_offered, *measured_dropped) = (0, 0);
        offered_earlier.clear();
        open_by_label.clear();
        sessions_begun.clear();
        *lost_time = LostTime::default();
        *counters = Counters::default();
        unconnected.clear();
        by_phase.clear();
        (*connections, *cpu_us, *absent_us, *last_good_us) = (0, 0, 0, 0);
        for one in series.iter_mut().chain(groups) {
            one.response_time_us.reset();
            one.response_time_less_lag_us.reset();
            one.service_time_us.reset();
            (one.bodies, one.body_bytes) = (0, 0);
        }
        own.iter_mut().for_each(OwnSeries::clear);
        parts.iter_mut().for_each(PartSeries::clear);
        lag_us.reset();
        unmeasured_lag_us.reset();
        read_lag_us.reset();
        examples.clear();
        statuses.clear();
        ledger.clear();
        quiet.clear();
        *failed_us = None;
        shares.clear();
        label_starts.clear();
    }
}
