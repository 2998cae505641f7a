//! Recording a run while it goes on: the threads' intervals are merged and handed to the sinks, of which the run
//! directory is the first.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::directory;
use crate::error::{RecordError, io_error};
use crate::files;
use crate::interval::ThreadInterval;
use crate::journal::Journal;
use crate::ledger::{Form, Forms, LedgerWriter, Part};
use crate::live::{Live, LiveTracker, Second};
use crate::manifest::Phase;
use crate::merge::{MergedInterval, Merging};
use crate::sink::{Facts, Sink};
use crate::tables::Tables;
use crate::totals::{Entered, Totals};
use crate::{
    Counters, Event, FaultEvent, Maintenance, Manifest, OwnMetric, Ratio, Sample, StoreLook, maintenance,
};

/// Writes a run directory, and hands what happens to further [sinks](Sink). Memory stays bounded however long the run is: an interval is encoded as soon as all
/// threads have reported it.
///
/// Only [`RunWriter::finish`] makes the directory a run; without it the tables have no footers. Until then a journal
/// holds what was recorded, so that a run that is killed can be [built again](crate::rebuild) once
/// [`RunWriter::begun`] has said what it is.
pub struct RunWriter<'s> {
    dir: PathBuf,
    labels: Vec<String>,
    groups: usize,
    metrics: usize,
    threads: usize,
    runs_dir: Option<PathBuf>,
    pending: Merging,
    tables: Tables,
    /// All others.
    sinks: Vec<Box<dyn Sink + 's>>,
    journal: Journal,
    totals: Totals,
    live: LiveTracker,
    ledger: Option<LedgerWriter>,
    mask: Option<Mask>,
}

/// A text without what must not be written down.
pub type Mask = Arc<dyn Fn(&str) -> String + Send + Sync>;

impl<'s> RunWriter<'s> {
    /// Begins a run in a directory that [`crate::new_run_dir`] made. `scenario_text` is kept as it is.
    pub fn create(dir: &Path, labels: &[String], scenario_text: &str) -> Result<RunWriter<'s>, RecordError> {
        let logs = dir.join(files::LOGS);
        fs::create_dir_all(&logs).map_err(io_error("create", &logs))?;
        let scenario = dir.join(files::SCENARIO);
        fs::write(&scenario, scenario_text).map_err(io_error("write", &scenario))?;
        Ok(RunWriter {
            dir: dir.to_owned(),
            labels: labels.to_owned(),
            groups: 0,
            metrics: 0,
            threads: 1,
            runs_dir: directory::runs_dir_of(dir),
            pending: Merging::default(),
            tables: Tables::create(dir, labels)?,
            sinks: Vec::new(),
            journal: Journal::create(&dir.join(files::JOURNAL))?,
            totals: Totals::new(labels),
            live: LiveTracker::new(),
            ledger: None,
            mask: None,
        })
    }

    /// Requests go to these targets: a label's to the one of this index. Where there are several, the summary has them apart.
    pub fn targets(&mut self, names: &[String], of_labels: &[usize]) -> &mut Self {
        self.totals.set_targets(names, of_labels);
        self
    }

    /// Steps are in these groups, too; told before the first interval.
    pub fn groups(&mut self, names: &[String]) -> Result<&mut Self, RecordError> {
        self.groups = names.len();
        self.totals.set_groups(names);
        self.tables.set_groups(names)?;
        Ok(self)
    }

    /// The scenario measures this itself; told before the first interval.
    pub fn own_metrics(&mut self, metrics: &[OwnMetric]) -> Result<&mut Self, RecordError> {
        self.metrics = metrics.len();
        self.totals.set_own_metrics(metrics);
        self.tables.set_own_metrics(metrics)?;
        Ok(self)
    }

    /// The scenario asks for these ratios; their values are made.
    pub fn ratios(&mut self, ratios: &[Ratio]) -> &mut Self {
        self.totals.set_ratios(ratios);
        self
    }

    /// These texts by name stand beside the labels.
    pub fn tags(&mut self, tags: &[BTreeMap<String, String>]) -> &mut Self {
        self.totals.set_tags(tags);
        self
    }

    /// The load has these phases, as the manifest has them; told before the first interval. Where `in_parts` says so of a
    /// phase, what was due in it is kept by label and group, too.
    pub fn phases(&mut self, phases: &[Phase], in_parts: impl Fn(usize) -> bool) -> &mut Self {
        self.totals.set_phases(phases, in_parts);
        self
    }

    /// From now on this sink is told, too, after those before it.
    pub fn add_sink(&mut self, sink: impl Sink + 's) -> &mut Self {
        self.sinks.push(Box::new(sink));
        self
    }

    /// Tells every sink, the run directory first.
    fn each(
        &mut self,
        mut tell: impl FnMut(&mut dyn Sink) -> Result<(), RecordError>,
    ) -> Result<(), RecordError> {
        tell(&mut self.tables)?;
        self.sinks.iter_mut().try_for_each(|sink| tell(&mut **sink))
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

    /// Goes on with the ledger of a run that was killed.
    pub fn go_on_with_ledger(&mut self) -> Result<&mut Self, RecordError> {
        let threads = u16::try_from(self.threads).unwrap_or(u16::MAX);
        self.ledger = Some(LedgerWriter::go_on(&self.dir, threads)?);
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

    /// When the run's clock was zero, once that is known.
    pub fn zero(&self) -> Option<SystemTime> {
        self.tables.anchor
    }

    /// When the run's clock was zero. Without it, the moment is taken from the first interval's arrival here.
    pub fn anchor(&mut self, wall_epoch: SystemTime) -> &mut Self {
        self.tables.anchor = Some(wall_epoch);
        self
    }

    /// Notes what the run is, without its figures, for the sinks and for the case that it does not come to its end. Called
    /// again it replaces what was said before.
    pub fn begun(&mut self, manifest: &Manifest) -> Result<(), RecordError> {
        let facts = Facts { manifest, threads: self.threads, anchor: self.tables.anchor };
        self.each(|sink| sink.begin(&facts))
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

    /// Takes what one thread did in one interval, or several together. Intervals with the same bounds are merged, and written when all
    /// threads have reported one or a later one is whole.
    pub fn add_interval(&mut self, interval: &ThreadInterval) -> Result<(), RecordError> {
        let mut labels =
            interval.series.iter().map(|s| s.label).chain(interval.parts.iter().map(|s| s.label));
        if let Some(label) = labels.find(|label| usize::from(*label) >= self.labels.len()) {
            let thread = interval.thread;
            return Err(RecordError::UnknownLabel { thread, label, labels: self.labels.len() });
        }
        if let Some(series) = interval.groups.iter().find(|s| usize::from(s.label) >= self.groups) {
            let (thread, group) = (interval.thread, series.label);
            return Err(RecordError::UnknownGroup { thread, group, groups: self.groups });
        }
        if let Some(series) = interval.own.iter().find(|s| usize::from(s.metric) >= self.metrics) {
            let (thread, metric) = (interval.thread, series.metric);
            return Err(RecordError::UnknownMetric { thread, metric, metrics: self.metrics });
        }
        debug_assert!(interval.start_us < interval.end_us);
        for part in std::iter::once(&interval.ledger).chain(interval.shares.iter().map(|share| &share.ledger))
        {
            self.add_to_ledger(part, interval.end_us)?;
        }
        self.journal.interval(interval)?;
        self.totals.add_interval(interval);
        self.pending.add_interval(interval, self.threads);
        while let Some(interval) = self.pending.next_whole() {
            self.write(&interval)?;
        }
        Ok(())
    }

    /// Takes what was counted over the whole run and went with no interval.
    pub fn add_counters(&mut self, counters: &Counters) {
        self.totals.counters += counters;
    }

    fn write(&mut self, interval: &MergedInterval) -> Result<(), RecordError> {
        let second = self.live.add(interval).then(|| self.live.last());
        self.each(|sink| {
            sink.interval(interval)?;
            second.as_ref().map_or(Ok(()), |second| sink.second(second))
        })
    }

    /// Takes a look at every process.
    pub fn add_samples(&mut self, samples: &[Sample]) -> Result<(), RecordError> {
        for sample in samples {
            self.journal.sample(sample)?;
            self.totals.add_sample(sample);
        }
        self.each(|sink| sink.samples(samples))
    }

    /// Takes a look at one process.
    pub fn add_sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.add_samples(std::slice::from_ref(sample))
    }

    /// Takes what stores said of themselves.
    pub fn add_store_looks(&mut self, looks: &[StoreLook]) -> Result<(), RecordError> {
        if looks.is_empty() {
            return Ok(());
        }
        for look in looks {
            self.journal.store(look)?;
            self.totals.figures.add(look);
        }
        self.each(|sink| sink.stores(looks))
    }

    /// Something began just now of which is to be [found](RunWriter::find_bumps) what the load felt.
    pub fn mark(&mut self, at_us: u64) {
        self.live.mark(at_us);
    }

    /// Finds what the load felt of what stores did beside their work, as far as their begins were
    /// [marked](RunWriter::mark), and puts it in order of time. The faults have their dips by now.
    pub fn find_bumps(&self, all: &mut [Maintenance], faults: &[FaultEvent]) {
        maintenance::find(all, faults, self.live.seconds(), &self.live.kept());
    }

    /// Events go through this before they are written.
    pub fn mask(&mut self, mask: Mask) -> &mut Self {
        self.mask = Some(mask);
        self
    }

    /// Takes an event; it is in the file when this returns.
    pub fn add_event(&mut self, event: &Event) -> Result<(), RecordError> {
        let masked = self.mask.as_ref().map(|mask| Event { text: mask(&event.text), ..event.clone() });
        let event = masked.as_ref().unwrap_or(event);
        self.each(|sink| sink.event(event))
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

    /// Hands over what still waits for slower threads, and returns what the sinks have to [note](Sink::notes). Called
    /// when all intervals are in.
    pub fn settle(&mut self) -> Result<Vec<String>, RecordError> {
        while let Some(interval) = self.pending.take_first() {
            self.write(&interval)?;
        }
        Ok(self.sinks.iter_mut().flat_map(|sink| sink.notes()).collect())
    }

    /// Writes what is held and the footers; `run.json` last and at once, so that a directory with it is whole.
    pub fn finish(mut self, manifest: &Manifest) -> Result<(), RecordError> {
        while let Some(interval) = self.pending.take_first() {
            self.write(&interval)?;
        }
        self.each(|sink| sink.end(manifest))?;
        match &self.runs_dir {
            Some(runs_dir) => directory::mark_last(runs_dir, &self.dir),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome;
    use crate::merge::PENDING_MAX;
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
