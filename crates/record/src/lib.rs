//! What a run is, and how it is kept.
//!
//! A [run](Manifest) is one execution of a scenario and the directory that it leaves. The driver's threads hand
//! over a [`ThreadInterval`] a second, the lab adds [`Sample`]s of every process and [`Event`]s. A [`RunWriter`]
//! takes them all: it merges the threads, keeps the [`Totals`] that [`summarize`] turns into a [`Summary`], and tells
//! every [`Sink`] at once: the run directory first, then whoever else wants to know. [`Run::open`] reads the directory back.
//!
//! Percentiles are only ever taken from merged histograms.
//!
//! ```
//! use tidemark_record::{Manifest, Outcome, Run, RunWriter, Series, ThreadInterval, new_histogram, summarize};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let place = tempfile::tempdir()?;
//! # let out = place.path().join("example");
//! let dir = tidemark_record::new_run_dir(Some(&out), "example")?;
//! let labels = vec!["Login".to_string()];
//! let mut writer = RunWriter::create(&dir, &labels, "name: example\n")?;
//!
//! let mut interval = ThreadInterval::empty(0, 0, 1_000_000);
//! interval.in_window = true;
//! interval.offered = 2;
//! let mut time_us = new_histogram();
//! time_us.record_n(740, 2);
//! interval.series.push(Series {
//!     label: 0,
//!     outcome: Outcome::Ok,
//!     measured: true,
//!     phase: None,
//!     response_time_us: time_us.clone(),
//!     response_time_less_lag_us: time_us.clone(),
//!     service_time_us: time_us,
//!     bodies: 0,
//!     body_bytes: 0,
//! });
//! writer.add_interval(&interval)?;
//! assert_eq!(writer.live().achieved_per_s, 2.0);
//!
//! let summary = summarize(writer.totals(), &dir);
//! writer.finish(&Manifest::new("example", labels, summary))?;
//!
//! let run = Run::open(&dir)?;
//! assert_eq!(run.manifest.summary.response_time_us.p50, Some(740));
//! # Ok(())
//! # }
//! ```
//!
//! # The directory
//!
//! | file | holds |
//! | --- | --- |
//! | `run.json` | [`Manifest`] with the [`Summary`]; written last, so a directory that has it is whole |
//! | `intervals.parquet` | a row for each interval, label, outcome, phase: count, response time with and without the driver's lag, service time as histograms; bytes of the bodies of good answers |
//! | `groups.parquet` | where steps are in groups: the same for each group |
//! | `parts.parquet` | where connections were made for requests, or answers came in pieces: what of the times of good answers went into each, by interval and label |
//! | `metrics.parquet` | where the scenario measures something itself: a row for each interval and metric |
//! | `load.parquet` | a row for each interval: offered, dropped, waiting, connections, bytes, lag, CPU by thread |
//! | `monitor.parquet` | the [`Sample`]s |
//! | `stores.parquet` | where stores of the run were asked for them, or pages of metrics watched: their own figures ([`StoreLook`]), a figure a row |
//! | `operations.parquet` | where the system tells them: the [`Operation`]s that it carried out itself; `operations.told` while it tells |
//! | `latency.hlog` | HdrHistogram interval log: response times in microseconds, a line for each interval and label |
//! | `events.jsonl` | an [`Event`] a line |
//! | `ledger/` | what was sent and what was acknowledged, where a step [enters its writes](ledger) |
//! | `scenario.yaml` | the scenario as it was |
//! | `logs/` | what the started processes said |
//! | `unfinished.*` | while a run goes on: all that it has recorded, by which it is [followed](Following), and from which [`rebuild`] makes a run of one that was killed, or [another process](Before) goes on |
//!
//! Histograms in the tables are in HdrHistogram's V2 encoding, not its compressed form (the files are compressed
//! themselves), so any HdrHistogram library decodes them. All times are microseconds since the run began.
//!
//! # What holds
//!
//! - Histograms have 3 significant digits, from 1 us to 1 h, by second, step and outcome, and are merged, never
//!   averaged.
//! - A sink never delays a driving thread: the lab's thread calls it. One that waits for somebody else has a thread of
//!   its own, and only the run directory may end a run.
//! - Where the time of an answer went costs a request nothing that had no part of it ([`PartSeries`]): only a
//!   connection that was made for it, and an answer in pieces, are written down; the first bytes of all others are
//!   their service times.
//! - What a scenario measures itself is numbers by name ([`OwnSeries`]), in histograms of fixed size; what is no
//!   number is counted and shown.

pub mod bill;
mod comparison;
mod counters;
mod counts;
mod directory;
mod distribution;
mod drive_end;
mod error;
pub mod event;
pub mod fault;
mod figures;
mod files;
mod following;
pub mod frame;
mod grpc;
mod handover;
mod histogram;
pub mod interval;
mod interval_sums;
mod journal;
mod json;
mod latency_log;
pub mod ledger;
pub mod limit;
mod live;
pub mod maintenance;
pub mod manifest;
mod merge;
mod named;
mod operations;
mod output_file;
mod own;
mod packed;
mod parts;
mod ratio;
mod reason;
mod recording;
mod resumed;
mod run;
pub mod sample;
mod script_figures;
pub mod sink;
mod stretches;
pub mod summary;
mod table;
mod tables;
#[cfg(test)]
mod test_run;
mod told;
mod totals;
mod traced;
mod unfinished;
mod writer;

pub use comparison::{ComparedRun, ComparedRuns, ComparisonFile, InRounds, Part};
pub use counters::{Counter, Counters};
pub use counts::Counts;
pub use directory::{
    LAST, RUNS_DIR, RunsIn, changed, is_unfinished, mark_last, new_run_dir, resolve, runs_in, write_manifest,
    write_scenario,
};
pub use distribution::{Distribution, latency, least, rank, supports};
pub use drive_end::{Bound, DriveEnd, NotFound, PhaseTimes, Raised};
pub use error::RecordError;
pub use event::Event;
pub use fault::FaultEvent;
pub use figures::{FigureSeries, StoreLook};
pub use files::LOGS as LOGS_DIR;
pub use files::OPERATIONS_TOLD;
pub use following::{FOLLOWED_SECONDS, Following, goes_on};
pub use grpc::{FIRST_WRONG_STATUS, GrpcCode, is_wrong_status, status_name};
pub use handover::{HANDOVER_VERSION, Handover, Hello};
pub use histogram::{Encoded, Merged, merge, merge_merged, new_merged};
pub use interval::{
    CoreWaits, EARLIER_MAX, ErrorExample, Held, LostTime, Outcome, PhaseCounts, QUIET_US, SECOND_US, Series,
    ThreadInterval,
};
pub use interval_sums::IntervalSums;
pub use live::{Live, SPREAD_CLASSES, Second};
pub use maintenance::{Bump, Maintenance};
pub use manifest::Manifest;
pub use merge::{Due, MergedInterval, SeriesKey, SeriesTimes};
pub use operations::{Kinds, Operation, OperationsReader, OperationsWriter};
pub use output_file::{OutputFile, write_output};
pub use own::{
    OWN_VALUE_MAX, OwnKind, OwnMetric, OwnNumbers, OwnSeries, OwnValues, PackedNumbers, UNITS_PER_ONE,
};
pub use packed::Packed;
pub use parts::{PartSeries, PartTimes, SlowRequest};
pub use ratio::{Ratio, RatioForm};
pub use reason::{Reason, ReasonKind};
pub use recording::Histogram;
pub use resumed::{Before, begun, read_fleet, write_fleet};
pub use run::{Run, StoredLoad, StoredOwn, StoredParts, StoredSeries};
pub use sample::Sample;
pub use script_figures::{ScriptCheck, ScriptFigure, ScriptFigures, ScriptMetric};
pub use sink::{Facts, Sink, Sinks};
pub use stretches::{Stretch, StretchOfLabel, stretches};
pub use summary::Summary;
pub use told::{Told, ToldOperations, notes_on_operations, take_operations};
pub use totals::{
    Achieved, Bodies, DRIVER, DROPPED, EXAMPLES_PER_KIND, Entered, LabelStart, LabelTotals, MACHINE,
    OwnTotals, PhaseTotals, SYSTEM, ThreadShare, ThreadTotals, Totals, Window, summarize, tell_achieved_due,
    tell_agents,
};
pub use traced::{LoggedAnswer, RequestParts, Traced};
pub use unfinished::rebuild;
pub use writer::{Mask, RunWriter};

/// Version of the run directory's form that this crate writes, and the highest that it reads.
pub const FORMAT: u32 = 1;

/// Lowest latency that a histogram tells apart, microseconds.
pub const HISTOGRAM_LOW_US: u64 = 1;
/// Highest latency that a histogram holds, microseconds: one hour. Longer ones count as this.
pub const HISTOGRAM_HIGH_US: u64 = 3_600_000_000;
/// Significant decimal digits that a histogram keeps.
pub const HISTOGRAM_DIGITS: u8 = 3;

/// An empty latency histogram with the bounds that every histogram of a run has.
pub fn new_histogram() -> Histogram {
    Histogram::new()
}
