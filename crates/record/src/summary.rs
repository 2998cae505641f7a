//! The figures of a run: the object that `--json` prints. Names are never changed once published.

mod ledger;
mod verdict;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use crate::distribution::Latency;
use crate::fault::FaultEvent;
use crate::maintenance::Maintenance;
use crate::{OwnKind, Ratio};
pub use ledger::{EntryExample, LOST_SECONDS, Ledger, LostWhen, Verified};
pub use verdict::{Status, Verdict};

/// The good answers by themselves: what the other percentiles would be if nobody had asked for the rest.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Good {
    /// How many.
    pub requests: u64,
    /// From due to last byte.
    pub response_time_us: Latency,
    /// From first byte sent to last byte.
    pub service_time_us: Latency,
    /// Bytes of a body, mean: once decoded where a step looks at it, else as it came. Absent where no size is known, and in
    /// runs of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes_mean: Option<f64>,
}

/// The requests without a good answer, of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// `timeout`, `status`, … or `dropped`.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// Of all requests that were due, 0 to 1.
    pub share: f64,
    /// How long after it was due the failure was known; null for what was dropped.
    pub known_after_us: Latency,
}

/// One label's share of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// The step's label.
    pub label: String,
    /// The target that its requests went to; absent where there is only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
    /// Texts by name that the scenario gives it; absent where it gives none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// Requests that were due in the measured window and ended.
    pub requests: u64,
    /// Of all requests, 0 to 1.
    pub share: f64,
    /// Good answers per second of the measured window.
    pub achieved_per_s: f64,
    /// Of a load with a rate: what was achieved of the requests that were due in the window, per second of it, whenever they
    /// were answered; a backlog that grew is none of it. Absent where users wait for answers, and in runs of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_due_per_s: Option<f64>,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// Response time of all requests that were due.
    pub response_time_us: Latency,
    /// Service time of the same.
    pub service_time_us: Latency,
    /// The good answers by themselves.
    #[serde(default)]
    pub good: Good,
    /// Where their time went; absent where there was none, and in runs of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
}

impl Step {
    /// The same of a label as [`Summary::rate_per_s`].
    pub fn rate_per_s(&self) -> f64 {
        self.achieved_due_per_s.unwrap_or(self.achieved_per_s)
    }
}

/// A phase of the load. Requests are of the phase in which they were due, whenever they ended.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
// the manifest has phases, too: when they were
#[schemars(rename = "PhaseFigures")]
pub struct Phase {
    /// Its name.
    pub name: String,
    /// What it offered, for a person: `100 users`, `5000/s`, `0/s to 5000/s`.
    pub level: String,
    /// Whether it belongs to the measured window.
    pub measured: bool,
    /// Begin, seconds since the run began.
    pub from_s: f64,
    /// End, seconds since the run began; where the load was stopped within it, when that was.
    pub to_s: f64,
    /// Requests that were due per second.
    pub offered_per_s: f64,
    /// Good answers per second that came within it, whenever their requests were due.
    pub achieved_per_s: f64,
    /// Requests that were due in it and ended.
    pub requests: u64,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// Requests that were due in it and given up because a bound was reached.
    pub dropped: u64,
    /// Requests without a good answer, dropped ones included.
    pub failed: u64,
    /// Response time of all requests that were due in it.
    pub response_time_us: Latency,
    /// Service time of the same.
    pub service_time_us: Latency,
    /// The good answers by themselves.
    pub good: Good,
    /// CPU and memory by process while it went on, the driver among them. A look at a process that is about two phases
    /// counts in each by its share of the time.
    pub processes: Vec<Process>,
}

impl Phase {
    /// Its length, seconds.
    pub fn length_s(&self) -> f64 {
        self.to_s - self.from_s
    }

    /// Requests that were due in it.
    pub fn due(&self) -> u64 {
        self.requests + self.dropped
    }
}

/// Where the time of the good answers went. The means are of all of them, and add up to their mean response time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Parts {
    /// Until it was sent, or a connection was begun for it: for a free connection, or for the driver.
    pub wait: Part,
    /// Until the socket of a connection was there that was made for it.
    pub connect: Part,
    /// What was spoken on it first: TLS, a greeting.
    pub handshake: Part,
    /// From first byte sent to first byte received.
    pub first_byte: Part,
    /// From there to the last byte.
    pub transfer: Part,
}

/// A part of the time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Over all good answers, microseconds.
    pub mean_us: f64,
    /// Of how many it is known to be a part of its own: of an answer in one piece the transfer is none.
    pub count: u64,
    /// How it spread over these; absent of the wait, which is what remains.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub times_us: Option<Latency>,
}

impl Parts {
    /// All of them by name, in the order in which they come to pass.
    pub fn named(&self) -> [(&'static str, &Part); 5] {
        let Parts { wait, connect, handshake, first_byte, transfer } = self;
        [
            ("wait", wait),
            ("connect", connect),
            ("handshake", handshake),
            ("first byte", first_byte),
            ("transfer", transfer),
        ]
    }

    /// Whether there is more to tell than service time and response time do.
    pub fn tell(&self) -> bool {
        [&self.connect, &self.handshake, &self.transfer].iter().any(|part| part.count > 0)
    }
}

/// One of the slowest requests that were answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Slow {
    /// Its label.
    pub label: String,
    /// When it was due, microseconds since the run began.
    pub due_us: u64,
    /// From due to last byte.
    pub response_time_us: u64,
    /// Until it was sent, or a connection was begun for it.
    pub wait_us: u64,
    /// Until the socket of a connection was there that was made for it; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_us: Option<u64>,
    /// What was spoken on it first; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handshake_us: Option<u64>,
    /// From first byte sent to first byte received.
    pub first_byte_us: u64,
    /// From there to the last byte.
    pub transfer_us: u64,
    /// `ok`, `status` or `check`.
    pub outcome: String,
    /// Status of its answer; absent where the protocol has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Which driving thread sent it.
    pub thread: u16,
    /// Over which of the thread's sockets.
    pub connection: u32,
}

/// One target's share of a run.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// What the scenario calls it; `system` for the system.
    pub target: String,
    /// Requests that were due in the measured window and ended.
    pub requests: u64,
    /// Of all requests, 0 to 1.
    pub share: f64,
    /// Good answers per second of the measured window.
    pub achieved_per_s: f64,
    /// Failures by kind.
    pub errors: BTreeMap<String, u64>,
    /// Response time of all requests that were due.
    pub response_time_us: Latency,
    /// Service time of the same.
    pub service_time_us: Latency,
    /// The good answers by themselves.
    pub good: Good,
}

/// Several steps together, one after the other: what the scenario calls a group. None of these figures is of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Group {
    /// Its name.
    pub group: String,
    /// How often it was done, well or not, where its first request was due in the measured window.
    pub count: u64,
    /// How often it was done well, per second of the measured window.
    pub achieved_per_s: f64,
    /// Those of which a request failed, by the first one's kind; `unfinished` where the run ended before they did, or a
    /// request was dropped.
    pub errors: BTreeMap<String, u64>,
    /// From when its first request was due to its last answer, waits in between included; of all that began.
    pub response_time_us: Latency,
    /// From the first byte sent to the last byte of the last answer.
    pub service_time_us: Latency,
}

/// What the scenario measured itself within the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Own {
    /// The metric's name.
    pub metric: String,
    /// What became of its numbers.
    pub kind: OwnKind,
    /// What they are in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// How many numbers there were.
    pub count: u64,
    /// All of them together; what a counter counted.
    pub sum: f64,
    /// How many there were each second; of a counter how much it counted each second.
    pub per_s: f64,
    /// How they spread; absent of a counter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub values: Option<Spread>,
    /// How often there was no number. None of the figures has these.
    pub no_number: u64,
    /// What there was instead, the first time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<String>,
}

/// Numbers in few of them; null of none, and a percentile that so few do not have.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Spread {
    pub min: Option<f64>,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
    pub p999: Option<f64>,
    pub max: Option<f64>,
}

/// One process over the measured window.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// `system`, `driver`, a store's name, that of what was watched.
    pub name: String,
    /// CPU time, seconds.
    pub cpu_s: f64,
    /// For how much of the window it was seen, seconds: its CPU time is of that. Absent where nobody noted it: runs of
    /// earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_s: Option<f64>,
    /// Mean CPU use in cores.
    pub cpu_share: f64,
    /// How long its threads, all together, were ready to run but had no core, as a share of the time; absent where they never
    /// were, or the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_wait_share: Option<f64>,
    /// Highest resident memory, bytes.
    pub rss_bytes_max: u64,
    /// Good answers in the measured window for each second of its CPU time; absent of the driver, and where it used none. Of
    /// `system`: for each second of all its services and their balancers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub good_per_cpu_s: Option<f64>,
}

/// A process that was on a core or waited for one for a larger share of the time was never idle.
const NEVER_IDLE: f64 = 0.95;

impl Process {
    /// Whether it was never idle, and waited for a core for longer than it was on one. Not where the system does not tell of waits.
    pub fn is_starved(&self) -> bool {
        let waited = self.core_wait_share.unwrap_or(0.0);
        self.cpu_share + waited > NEVER_IDLE && waited > self.cpu_share
    }
}

/// What stands before a sentence of a [driver's limits](Driver::limits).
pub const BOTTLENECK: &str = "the load generator was the bottleneck: ";

/// The driver's look at itself over the measured window.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Driver {
    /// CPU time of its threads, seconds.
    pub cpu_s: f64,
    /// Number of driving threads.
    pub threads: u64,
    /// Share of the busiest thread's time that it was on a CPU, 0 to 1.
    pub busiest_thread_share: f64,
    /// How late the load generator sent requests.
    pub lag_us: Latency,
    /// How late answers were read: from when the kernel had the last bytes until the driver turned to them, of all answers or
    /// a sample. Absent where the system does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_lag_us: Option<Latency>,
    /// How those lags spread; contiguous from the first class that holds one to the last.
    #[serde(default)]
    pub lag_histogram: Vec<LagClass>,
    /// Requests sent later than [`LATE_US`] by the load generator.
    #[serde(default)]
    pub late: u64,
    /// Share of its time that each thread was on a CPU, 0 to 1.
    #[serde(default)]
    pub cpu_share_by_thread: Vec<f64>,
    /// Share of the time in which the thread that was least idle was on a CPU or waited for one, 0 to 1: at 1 it was
    /// never idle. Absent where the operating system does not say; so are the next two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wanted_share: Option<f64>,
    /// Share of the time in which the threads were ready to run but had no core, 0 to 1, mean of all threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waited_share: Option<f64>,
    /// The same each time that a thread woke, until it slept again, mean, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub core_wait_us: Option<f64>,
    /// How long the thread that was absent longest was not there at all, neither on a CPU nor waiting for one nor asleep of
    /// its own will, seconds: it was stopped, or the machine was suspended.
    #[serde(default)]
    pub absent_s: f64,
    /// The largest share of a thread's time in which it did nothing but compute for sessions that went on and on without a request
    /// or a pause, 0 to 1.
    #[serde(default)]
    pub computing_share: f64,
    /// Mean cores' worth of time that the hypervisor took away from the machine.
    #[serde(default)]
    pub steal_share: f64,
    /// What held it up, a sentence each: figures are then bounds. Empty where it had room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Who used the machine's cores most during the measured window, beside the driver.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub busiest: Vec<Busy>,
    /// Where agents of a fleet drove: each of them, by its threads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFigures>,
}

/// What an agent of a fleet came to over the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFigures {
    /// Its name.
    pub agent: String,
    /// The number of its first thread, as figures by thread have it.
    pub first_thread: u64,
    /// Its threads.
    pub threads: u64,
    /// Share of its busiest thread's time that it was on a CPU, 0 to 1.
    pub busiest_thread_share: f64,
    /// Share of the time in which its thread that was least idle was on a CPU or waited for one, 0 to 1.
    pub wanted_share: f64,
    /// How long its thread that was absent longest was not there at all, seconds.
    pub absent_s: f64,
    /// Requests that ended at it for each second.
    #[serde(default)]
    pub requests_per_s: f64,
    /// Cores that its threads used.
    #[serde(default)]
    pub cpu_share: f64,
    /// Share of its requests that it sent later than [`LATE_US`], 0 to 1.
    #[serde(default)]
    pub late_share: f64,
    /// The longest that one of them was sent late, microseconds.
    #[serde(default)]
    pub lag_max_us: u64,
    /// What makes it the odd one out of its fleet, if something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub odd: Option<String>,
    /// How far its clock was ahead of the coordinator's, microseconds; below 0 where it was behind.
    pub clock_offset_us: i64,
    /// That is at most so much more or less, microseconds.
    pub clock_bound_us: u64,
    /// Why nothing came from it any more before its load was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<String>,
    /// Threads that it took over from agents which were lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taken: Vec<TakenThreads>,
}

/// Threads that an agent of a fleet took over from another one.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TakenThreads {
    /// The number of the first of them, as figures by thread have it.
    pub first_thread: u64,
    /// How many they are.
    pub threads: u64,
    /// From when on it drove with them, seconds since the run began.
    pub from_s: f64,
}

/// A program that used the machine's cores, all its processes together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Busy {
    /// As the kernel names it; another process of this program as `another tidemark (pid N)`.
    pub name: String,
    /// Mean CPU use in cores.
    pub cores: f64,
    /// Whether the run started it, or watches it. Known while the run lasts, and not written down.
    #[serde(skip)]
    pub is_ours: bool,
}

/// A request that left so much after it was due, by the driver's own fault, is late. Microseconds.
pub const LATE_US: u64 = 1_000;

/// How many requests left at least `from_us` and less than `to_us` late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct LagClass {
    pub from_us: u64,
    pub to_us: u64,
    pub count: u64,
}

/// Whether the measured window shows a steady state.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SteadyState {
    /// Whether it is steady; null where that cannot be told.
    pub steady: Option<bool>,
    /// Why, for a person.
    pub reason: String,
    /// By how much the rate of requests that ended changes each minute, where it drifts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s_each_minute: Option<f64>,
    /// By how much the median response time changes each minute, where it drifts, microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us_each_minute: Option<f64>,
}

impl Summary {
    /// Good answers per second, as comparisons hold them against each other: of a load with a rate what was achieved of what was
    /// due, else what was answered in the window.
    pub fn rate_per_s(&self) -> f64 {
        self.achieved_due_per_s.unwrap_or(self.achieved_per_s)
    }

    /// Requests that were due in the measured window: those that ended, and those that were dropped.
    pub fn due(&self) -> u64 {
        self.requests + self.dropped
    }

    /// Of all requests that were due, those without a good answer, 0 to 1.
    pub fn failed_share(&self) -> f64 {
        if self.due() > 0 { self.failed as f64 / self.due() as f64 } else { 0.0 }
    }
}

/// Everything that a machine wants to know of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Pass, fail or invalid, and why.
    pub verdict: Verdict,
    /// Requests that became due per second of the measured window.
    pub offered_per_s: f64,
    /// Good answers that came in the measured window, per second of it, whenever they were due: the rate.
    pub achieved_per_s: f64,
    /// What of the requests that were due in the window was achieved, 0 to 1, whenever they were answered: what an objective
    /// on `achieved` is about. A backlog that grew is none of it. Absent where nothing was due, and in runs of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_share: Option<f64>,
    /// Of a load with a rate: `achieved_share` of `offered_per_s`, the rate by which comparisons tell systems apart. Absent where
    /// users wait for answers, and in runs of before: there it is `achieved_per_s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub achieved_due_per_s: Option<f64>,
    /// Length of the measured window, seconds.
    pub measured_s: f64,
    /// Requests that were due in the measured window and ended.
    pub requests: u64,
    /// Failures by kind; empty when there was none.
    pub errors: BTreeMap<String, u64>,
    /// Answers by status code, right and wrong ones.
    #[serde(default)]
    pub statuses: BTreeMap<String, u64>,
    /// Requests that were due in the measured window and given up, because a bound was reached.
    pub dropped: u64,
    /// Requests that were due in the measured window and had no good answer: all errors, and what was dropped.
    #[serde(default)]
    pub failed: u64,
    /// Those of them that failed for want of a connection: most of their time was over before one was free. Absent of none.
    #[serde(default, skip_serializing_if = "ledger::is_zero")]
    pub unconnected: u64,
    /// Sessions that began in the measured window; absent of none, and in runs of earlier versions.
    #[serde(default, skip_serializing_if = "ledger::is_zero")]
    pub sessions_begun: u64,
    /// Steps that are no requests (`set`, `repeat`, `when`) and failed in the measured window, as they could not be computed or
    /// kept; absent of none. They are in no figure of requests.
    #[serde(default, skip_serializing_if = "ledger::is_zero")]
    pub failed_steps: u64,
    /// The failed requests by kind, the most frequent first.
    #[serde(default)]
    pub failures: Vec<Failure>,
    /// Response time over all labels, of all requests that were due: a failure is slower than every bound.
    pub response_time_us: Latency,
    /// Service time of the same.
    pub service_time_us: Latency,
    /// Response time with the driver's own share taken out, of the same: where it differs, the truth lies between the two.
    #[serde(default)]
    pub response_time_less_lag_us: Latency,
    /// The good answers by themselves.
    #[serde(default)]
    pub good: Good,
    /// Where the time of the good answers went; absent where there was none, and in runs of before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// The slowest requests that were answered, the slowest first: those of all labels, and of each label.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<Slow>,
    /// By label, in the scenario's order.
    pub steps: Vec<Step>,
    /// By target, the system first; absent where all requests went to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub targets: Vec<Target>,
    /// By group of steps, in the scenario's order; absent where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<Group>,
    /// By phase of the load, those that are not measured included, as far as they came to pass; absent in runs of before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<Phase>,
    /// What the scenario measured itself, in its order; absent where it measures nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Own>,
    /// Ratios of what it counts, in its order; absent where it asks for none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ratios: Vec<Ratio>,
    /// CPU and memory by process.
    pub processes: Vec<Process>,
    /// The driver's look at itself.
    pub driver: Driver,
    /// What was entered in the ledger and what became of it; null where nothing was entered.
    pub ledger: Option<Ledger>,
    /// What was broken on purpose, in order of time; absent where nothing was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultEvent>,
    /// What stores did beside their work, in order of time: rewrites of append-only files, snapshots. Absent where nothing
    /// was seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub maintenance: Vec<Maintenance>,
    /// What stores said of themselves within the measured window; absent where none was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stores_figures: Vec<StoreFigures>,
    /// Where the run is.
    pub run_dir: String,
    /// What a reader must know before the figures, a sentence each: they stand beside the verdict. Absent where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether the measured window shows a steady state; absent in runs that were not tested for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_state: Option<SteadyState>,
}

/// The figures of a store, or of one node of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StoreFigures {
    /// Its name; `system` where it is what is driven, and was there before the run.
    pub store: String,
    /// By the store's own names for them; what ends in `_per_s` is how fast a counter rose.
    pub figures: BTreeMap<String, FigureSummary>,
}

/// One figure over the measured window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs)]
pub struct FigureSummary {
    pub first: f64,
    pub last: f64,
    pub max: f64,
    /// Of the looks, one a second.
    pub mean: f64,
}

/// A part of a whole; 0 of nothing.
pub(crate) fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
