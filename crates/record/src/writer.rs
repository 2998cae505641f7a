//! Writing a run directory while the run goes on.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2Serializer;

use crate::directory;
use crate::error::{RecordError, damaged, io_error};
use crate::files::{self, LOAD_FIELDS, MONITOR_FIELDS, SERIES_FIELDS};
use crate::histogram::{Encoded, Merged, merge, merge_merged, new_merged};
use crate::interval::{CoreWaits, Outcome, ThreadInterval};
use crate::journal::Journal;
use crate::latency_log::LatencyLog;
use crate::ledger::{Form, Forms, LedgerWriter, Part};
use crate::live::{Live, LiveTracker, Second};
use crate::table::{Cell, TableWriter};
use crate::totals::{Entered, Totals};
use crate::unfinished::{self, Begun};
use crate::{Event, Manifest, Sample};

/// Intervals that may wait for slower threads. A thread that reports later still gets rows of its own.
const PENDING_MAX: usize = 8;

/// The label, how the requests ended, whether they were due in the measured window.
pub(crate) type SeriesKey = (u16, Outcome, bool);

/// The times of one series, all threads together.
#[derive(Debug)]
pub(crate) struct SeriesTimes {
    pub(crate) response_time_us: Merged,
    response_time_less_lag_us: Merged,
    service_time_us: Merged,
}

impl Default for SeriesTimes {
    fn default() -> Self {
        let [response_time_us, response_time_less_lag_us, service_time_us] = [(); 3].map(|()| new_merged());
        SeriesTimes { response_time_us, response_time_less_lag_us, service_time_us }
    }
}

/// What all threads did in one interval.
#[derive(Debug, Default)]
pub(crate) struct MergedInterval {
    pub(crate) in_window: bool,
    reported: usize,
    pub(crate) series: BTreeMap<SeriesKey, SeriesTimes>,
    pub(crate) offered: u64,
    measured_offered: u64,
    pub(crate) dropped: u64,
    measured_dropped: u64,
    pub(crate) waiting: u64,
    pub(crate) in_flight: u64,
    pub(crate) connections: u64,
    connects: u64,
    sent_bytes: u64,
    received_bytes: u64,
    lag_us: Option<Merged>,
    read_lag_us: Option<Merged>,
    cpu_us_by_thread: Vec<u64>,
    /// Empty once a thread could not say.
    waited_us_by_thread: Vec<u64>,
    waits_untold: bool,
    absent_us_by_thread: Vec<u64>,
}

impl MergedInterval {
    fn add(&mut self, interval: &ThreadInterval) {
        self.reported += 1;
        self.in_window = interval.in_window;
        for series in &interval.series {
            let key = (series.label, series.outcome, series.measured);
            let times = self.series.entry(key).or_default();
            merge(&mut times.response_time_us, &series.response_time_us);
            merge(&mut times.response_time_less_lag_us, &series.response_time_less_lag_us);
            merge(&mut times.service_time_us, &series.service_time_us);
        }
        self.offered += interval.offered;
        self.measured_offered += interval.measured_offered;
        self.dropped += interval.dropped;
        self.measured_dropped += interval.measured_dropped;
        self.waiting += interval.waiting;
        self.in_flight += interval.in_flight;
        self.connections += interval.connections;
        self.connects += interval.connects;
        self.sent_bytes += interval.sent_bytes;
        self.received_bytes += interval.received_bytes;
        let lag_us = self.lag_us.get_or_insert_with(new_merged);
        merge(lag_us, &interval.lag_us);
        merge(lag_us, &interval.unmeasured_lag_us);
        merge(self.read_lag_us.get_or_insert_with(new_merged), &interval.read_lag_us);
        let thread = usize::from(interval.thread);
        if self.cpu_us_by_thread.len() <= thread {
            self.cpu_us_by_thread.resize(thread + 1, 0);
            self.absent_us_by_thread.resize(thread + 1, 0);
        }
        self.cpu_us_by_thread[thread] += interval.cpu_us;
        self.absent_us_by_thread[thread] += interval.absent_us;
        self.add_waits(thread, interval.core_waits);
    }

    fn add_waits(&mut self, thread: usize, waits: Option<CoreWaits>) {
        self.waits_untold |= waits.is_none();
        match waits {
            Some(waits) if !self.waits_untold => {
                self.waited_us_by_thread.resize(self.cpu_us_by_thread.len(), 0);
                self.waited_us_by_thread[thread] += waits.waited_us;
            }
            _ => self.waited_us_by_thread.clear(),
        }
    }
}

/// Writes a run directory. Memory stays bounded however long the run is: an interval is encoded as soon as all
/// threads have reported it.
///
/// Only [`RunWriter::finish`] makes the directory a run; without it the tables have no footers. Until then a journal
/// holds what was recorded, so that a run that is killed can be [built again](crate::rebuild) once
/// [`RunWriter::begun`] has said what it is.
pub struct RunWriter {
    dir: PathBuf,
    labels: Vec<String>,
    threads: usize,
    anchor: Option<SystemTime>,
    runs_dir: Option<PathBuf>,
    pending: BTreeMap<(u64, u64), MergedInterval>,
    series: TableWriter,
    load: TableWriter,
    monitor: TableWriter,
    latency: LatencyLog,
    events: File,
    journal: Journal,
    serializer: V2Serializer,
    totals: Totals,
    live: LiveTracker,
    ledger: Option<LedgerWriter>,
    mask: Option<Mask>,
}

/// A text without what must not be written down.
pub type Mask = Arc<dyn Fn(&str) -> String + Send + Sync>;

impl RunWriter {
    /// Begins a run in a directory that [`crate::new_run_dir`] made. `scenario_text` is kept as it is.
    pub fn create(dir: &Path, labels: &[String], scenario_text: &str) -> Result<RunWriter, RecordError> {
        let logs = dir.join(files::LOGS);
        fs::create_dir_all(&logs).map_err(io_error("create", &logs))?;
        let scenario = dir.join(files::SCENARIO);
        fs::write(&scenario, scenario_text).map_err(io_error("write", &scenario))?;
        let events = dir.join(files::EVENTS);
        Ok(RunWriter {
            dir: dir.to_owned(),
            labels: labels.to_owned(),
            threads: 1,
            anchor: None,
            runs_dir: directory::runs_dir_of(dir),
            pending: BTreeMap::new(),
            series: TableWriter::create(&dir.join(files::SERIES), &SERIES_FIELDS, files::ABOUT_SERIES)?,
            load: TableWriter::create(&dir.join(files::LOAD), &LOAD_FIELDS, files::ABOUT_LOAD)?,
            monitor: TableWriter::create(&dir.join(files::MONITOR), &MONITOR_FIELDS, files::ABOUT_MONITOR)?,
            latency: LatencyLog::create(&dir.join(files::LATENCY), labels)?,
            events: File::create_new(&events).map_err(io_error("create", &events))?,
            journal: Journal::create(&dir.join(files::JOURNAL))?,
            serializer: V2Serializer::new(),
            totals: Totals::new(labels),
            live: LiveTracker::new(),
            ledger: None,
            mask: None,
        })
    }

    /// Keeps a ledger: of writes that look like these forms, with checksums of this seed. It is told before how many
    /// [threads](RunWriter::threads) there are.
    pub fn keep_ledger(&mut self, seed: u64, forms: Vec<Form>) -> Result<&mut Self, RecordError> {
        Forms::write(&self.dir, seed, forms)?;
        self.ledger =
            Some(LedgerWriter::for_threads(&self.dir, u16::try_from(self.threads).unwrap_or(u16::MAX))?);
        self.totals.entered = Some(Entered::default());
        Ok(self)
    }

    /// Takes what was entered outside the intervals, by `at_us`.
    pub fn add_to_ledger(&mut self, part: &Part, at_us: u64) -> Result<(), RecordError> {
        match &mut self.ledger {
            Some(ledger) if part.sent() > 0 => {
                self.totals.entered.get_or_insert_default().add(part);
                ledger.add(part, at_us)
            }
            _ => Ok(()),
        }
    }

    /// How many driver threads report each interval.
    pub fn threads(&mut self, threads: usize) -> &mut Self {
        self.threads = threads.max(1);
        self
    }

    /// When the run's clock was zero. Without it, the moment is taken from the first interval's arrival here.
    pub fn anchor(&mut self, wall_epoch: SystemTime) -> &mut Self {
        self.anchor = Some(wall_epoch);
        self
    }

    /// Notes what the run is, without its figures, for the case that it does not come to its end. Called again it
    /// replaces what was said before.
    pub fn begun(&mut self, manifest: &Manifest) -> Result<(), RecordError> {
        let since_1970 = self.anchor.and_then(|anchor| anchor.duration_since(SystemTime::UNIX_EPOCH).ok());
        let begun = Begun {
            threads: self.threads,
            anchor_s: since_1970.map(|since| since.as_secs_f64()),
            manifest: manifest.clone(),
        };
        unfinished::write_begun(&self.dir, &begun)
    }

    /// Where `last` is written at the end. Known by itself for a directory right under `runs`.
    pub fn remember_in(&mut self, runs_dir: &Path) -> &mut Self {
        self.runs_dir = Some(runs_dir.to_owned());
        self
    }

    /// The run directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The directory for what the started processes say.
    pub fn logs_dir(&self) -> PathBuf {
        self.dir.join(files::LOGS)
    }

    /// Takes what one thread did in one interval. Intervals with the same bounds are merged, and written when all
    /// threads have reported one or a later one is whole.
    pub fn add_interval(&mut self, interval: &ThreadInterval) -> Result<(), RecordError> {
        if let Some(series) = interval.series.iter().find(|s| usize::from(s.label) >= self.labels.len()) {
            let (thread, label) = (interval.thread, series.label);
            return Err(RecordError::UnknownLabel { thread, label, labels: self.labels.len() });
        }
        debug_assert!(interval.start_us < interval.end_us);
        self.add_to_ledger(&interval.ledger, interval.end_us)?;
        self.journal.interval(interval)?;
        self.totals.add_interval(interval);
        let bounds = (interval.start_us, interval.end_us);
        let merged = self.pending.entry(bounds).or_default();
        merged.add(interval);
        if merged.reported >= self.threads {
            self.write_up_to(bounds)?;
        }
        while self.pending.len() > PENDING_MAX {
            self.write_first()?;
        }
        Ok(())
    }

    fn write_up_to(&mut self, bounds: (u64, u64)) -> Result<(), RecordError> {
        while self.pending.first_key_value().is_some_and(|(first, _)| *first <= bounds) {
            self.write_first()?;
        }
        Ok(())
    }

    fn write_first(&mut self) -> Result<(), RecordError> {
        let Some(((start_us, end_us), interval)) = self.pending.pop_first() else { return Ok(()) };
        self.live.add(start_us, end_us, &interval);
        self.write_latency(start_us, end_us, &interval)?;
        for ((label, outcome, measured), times) in &interval.series {
            self.series.push([
                Cell::Int(start_us),
                Cell::Int(end_us),
                Cell::Bool(interval.in_window),
                Cell::Text(&self.labels[usize::from(*label)]),
                Cell::Text(outcome.name()),
                Cell::Bool(*measured),
                Cell::Int(times.response_time_us.len()),
                Cell::Bytes(Encoded::of(&times.response_time_us, &mut self.serializer).0),
                Cell::Bytes(Encoded::of(&times.service_time_us, &mut self.serializer).0),
                Cell::Bytes(Encoded::of(&times.response_time_less_lag_us, &mut self.serializer).0),
            ])?;
        }
        let lag_us = interval.lag_us.unwrap_or_else(new_merged);
        let read_lag_us = interval.read_lag_us.unwrap_or_else(new_merged);
        self.load.push([
            Cell::Int(start_us),
            Cell::Int(end_us),
            Cell::Bool(interval.in_window),
            Cell::Int(interval.offered),
            Cell::Int(interval.dropped),
            Cell::Int(interval.waiting),
            Cell::Int(interval.in_flight),
            Cell::Int(interval.connections),
            Cell::Int(interval.connects),
            Cell::Int(interval.sent_bytes),
            Cell::Int(interval.received_bytes),
            Cell::Bytes(Encoded::of(&lag_us, &mut self.serializer).0),
            Cell::Ints(&interval.cpu_us_by_thread),
            Cell::Ints(&interval.waited_us_by_thread),
            Cell::Ints(&interval.absent_us_by_thread),
            Cell::Bytes(Encoded::of(&read_lag_us, &mut self.serializer).0),
            Cell::Int(interval.measured_offered),
            Cell::Int(interval.measured_dropped),
        ])
    }

    /// A line in `latency.hlog` for each label that had an answer as it should be.
    fn write_latency(
        &mut self,
        start_us: u64,
        end_us: u64,
        interval: &MergedInterval,
    ) -> Result<(), RecordError> {
        if !self.latency.begun() {
            let now = SystemTime::now();
            let guess = now.checked_sub(Duration::from_micros(end_us)).unwrap_or(now);
            self.latency.begin(self.anchor.unwrap_or(guess))?;
        }
        let mut by_label: BTreeMap<u16, Merged> = BTreeMap::new();
        let answered = interval.series.iter().filter(|((_, outcome, _), _)| !outcome.is_error());
        for ((label, ..), times) in answered {
            merge_merged(by_label.entry(*label).or_insert_with(new_merged), &times.response_time_us);
        }
        for (label, response_time_us) in by_label {
            self.latency.add(label, start_us, end_us, &response_time_us)?;
        }
        self.latency.flush()
    }

    /// Takes a look at a process.
    pub fn add_sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.journal.sample(sample)?;
        self.totals.add_sample(sample);
        self.monitor.push([
            Cell::Int(sample.at_us),
            Cell::Text(&sample.process),
            Cell::Float(sample.cpu_share),
            Cell::Float(sample.cpu_system_share),
            Cell::Int(sample.rss_bytes),
            Cell::Int(sample.threads),
            Cell::Int(sample.voluntary_switches),
            Cell::Int(sample.involuntary_switches),
            Cell::Int(sample.disk_read_bytes),
            Cell::Int(sample.disk_written_bytes),
            Cell::Int(sample.net_received_bytes),
            Cell::Int(sample.net_sent_bytes),
            Cell::Float(sample.steal_share),
        ])
    }

    /// Events go through this before they are written.
    pub fn mask(&mut self, mask: Mask) -> &mut Self {
        self.mask = Some(mask);
        self
    }

    /// Takes an event; it is in the file when this returns.
    pub fn add_event(&mut self, event: &Event) -> Result<(), RecordError> {
        let path = self.dir.join(files::EVENTS);
        let masked = self.mask.as_ref().map(|mask| Event { text: mask(&event.text), ..event.clone() });
        let event = masked.as_ref().unwrap_or(event);
        let mut line = serde_json::to_vec(event).map_err(|e| damaged(&path, e))?;
        line.push(b'\n');
        self.events.write_all(&line).map_err(io_error("write", &path))
    }

    /// The last whole second, for a progress line.
    pub fn live(&self) -> Live {
        self.live.last()
    }

    /// Every whole second of the measured window so far.
    pub fn seconds(&self) -> &[Second] {
        self.live.seconds()
    }

    /// What the run came to so far: every interval and sample handed over.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Writes what is held and the footers; `run.json` last and at once, so that a directory with it is whole.
    pub fn finish(mut self, manifest: &Manifest) -> Result<(), RecordError> {
        while !self.pending.is_empty() {
            self.write_first()?;
        }
        if !self.latency.begun() {
            self.latency.begin(self.anchor.unwrap_or_else(SystemTime::now))?;
        }
        self.latency.flush()?;
        self.series.finish()?;
        self.load.finish()?;
        self.monitor.finish()?;
        write_manifest(&self.dir, manifest)?;
        for name in [files::BEGUN, files::JOURNAL] {
            // what stays does no harm beside a run.json
            let _ = fs::remove_file(self.dir.join(name));
        }
        match &self.runs_dir {
            Some(runs_dir) => directory::mark_last(runs_dir, &self.dir),
            None => Ok(()),
        }
    }
}

/// Writes `run.json` into a run directory, or replaces it, in one step.
pub fn write_manifest(dir: &Path, manifest: &Manifest) -> Result<(), RecordError> {
    let path = dir.join(files::MANIFEST);
    let mut text = serde_json::to_vec_pretty(manifest).map_err(|e| damaged(&path, e))?;
    text.push(b'\n');
    directory::replace(&path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run::{interval, series};

    #[test]
    fn live_shows_the_last_whole_second_of_all_threads() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), &["a".into()], "").unwrap();
        writer.threads(2);
        let mut one = interval(0, 0, 1);
        one.series = vec![series(0, Outcome::Ok, false, &[(100, 98)])];
        one.offered = 60;
        one.in_flight = 3;
        let mut other = interval(1, 0, 1);
        other.series =
            vec![series(0, Outcome::Ok, false, &[(900, 2)]), series(0, Outcome::Reset, false, &[(5, 7)])];
        other.offered = 50;
        writer.add_interval(&one).unwrap();
        assert_eq!(writer.live(), Live::default(), "the second is not whole yet");
        writer.add_interval(&other).unwrap();
        let live = writer.live();
        assert_eq!((live.offered_per_s, live.achieved_per_s, live.errors_per_s), (110.0, 100.0, 7.0));
        assert_eq!((live.p50_us, live.p99_us, live.in_flight), (Some(100), None, 3));
        assert_eq!((live.requests, live.errors, live.at_s), (107, 7, 1.0));

        // A second cut by the window's edge is shown when it is over, as one.
        for thread in 0..2 {
            let mut before = interval(thread, 0, 1);
            (before.start_us, before.end_us, before.offered) = (1_000_000, 1_250_000, 10);
            writer.add_interval(&before).unwrap();
        }
        assert_eq!(writer.live().at_s, 1.0);
        for thread in 0..2 {
            let mut after = interval(thread, 0, 1);
            (after.start_us, after.end_us, after.in_window, after.offered) = (1_250_000, 2_000_000, true, 40);
            writer.add_interval(&after).unwrap();
        }
        let live = writer.live();
        assert_eq!((live.at_s, live.in_window, live.offered_per_s), (2.0, true, 100.0));
        assert_eq!(writer.seconds(), [], "no second lay wholly within the window");
        assert_eq!((live.p99_us, live.requests), (None, 107));

        // A straggler of a second gone by changes the sums, not the picture.
        let mut straggler = interval(1, 0, 1);
        straggler.series = vec![series(0, Outcome::Reset, false, &[(5, 3)])];
        writer.add_interval(&straggler).unwrap();
        writer.add_interval(&straggler).unwrap();
        writer.add_interval(&interval(0, 2, 3)).unwrap();
        writer.add_interval(&interval(1, 2, 3)).unwrap();
        let live = writer.live();
        assert_eq!((live.at_s, live.errors_per_s, live.requests, live.errors), (3.0, 0.0, 113, 13));
    }

    #[test]
    fn a_silent_thread_does_not_hold_the_others_back_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), &["a".into()], "").unwrap();
        writer.threads(2);
        for second in 0..100 {
            writer.add_interval(&interval(0, second, second + 1)).unwrap();
            assert!(writer.pending.len() <= PENDING_MAX);
        }
        assert_eq!(writer.live().at_s, (100 - PENDING_MAX) as f64);
    }

    #[test]
    fn a_label_that_is_not_there_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), &["a".into()], "").unwrap();
        let mut wrong = interval(0, 0, 1);
        wrong.series = vec![series(1, Outcome::Ok, true, &[(1, 1)])];
        assert!(matches!(writer.add_interval(&wrong), Err(RecordError::UnknownLabel { label: 1, .. })));
    }

    #[test]
    fn events_are_in_the_file_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(dir.path(), &[], "").unwrap();
        let event = Event { at_us: -5, kind: "ready".into(), text: "in 3 ms".into() };
        writer.add_event(&event).unwrap();
        let text = fs::read_to_string(dir.path().join("events.jsonl")).unwrap();
        assert_eq!(text, "{\"at_us\":-5,\"kind\":\"ready\",\"text\":\"in 3 ms\"}\n");
    }
}
