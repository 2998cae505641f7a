//! The run directory as a sink: tables, the latency log, events, and `run.json` at the end.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hdrhistogram::serialization::V2Serializer;

use crate::directory::{Begun, write_begun, write_manifest};
use crate::error::{RecordError, damaged, io_error};
use crate::figures::FiguresWriter;
use crate::files::{
    self, GROUP_FIELDS, LOAD_FIELDS, METRIC_FIELDS, MONITOR_FIELDS, PART_FIELDS, SERIES_FIELDS,
};
use crate::histogram::{Encoded, Merged, merge_merged, new_merged};
use crate::latency_log::LatencyLog;
use crate::merge::MergedInterval;
use crate::sink::{Facts, Sink};
use crate::table::{Cell, TableWriter};
use crate::{Counter, Event, Manifest, OwnKind, OwnMetric, Sample, StoreLook};

/// The files of a run directory that hold its figures.
pub(crate) struct Tables {
    dir: PathBuf,
    labels: Vec<String>,
    groups: Vec<String>,
    metrics: Vec<OwnMetric>,
    /// Names of the load's phases, once it has begun.
    phases: Vec<String>,
    /// The tags of each label, as JSON.
    tags: Vec<String>,
    /// When the run's clock was zero.
    pub(crate) anchor: Option<SystemTime>,
    series: TableWriter,
    /// None until there are groups.
    of_groups: Option<TableWriter>,
    /// None until the scenario measures something itself.
    own: Option<TableWriter>,
    /// None until something of it was seen.
    parts: Option<TableWriter>,
    load: TableWriter,
    monitor: TableWriter,
    /// None until a store has told something.
    stores: Option<FiguresWriter>,
    latency: LatencyLog,
    events: File,
    serializer: V2Serializer,
}

impl Tables {
    pub(crate) fn create(dir: &Path, labels: &[String]) -> Result<Tables, RecordError> {
        let events = dir.join(files::EVENTS);
        Ok(Tables {
            dir: dir.to_owned(),
            labels: labels.to_owned(),
            groups: Vec::new(),
            of_groups: None,
            metrics: Vec::new(),
            phases: Vec::new(),
            tags: Vec::new(),
            own: None,
            parts: None,
            anchor: None,
            series: TableWriter::create(&dir.join(files::SERIES), &SERIES_FIELDS, files::ABOUT_SERIES)?,
            load: TableWriter::create(&dir.join(files::LOAD), &LOAD_FIELDS, files::ABOUT_LOAD)?,
            monitor: TableWriter::create(&dir.join(files::MONITOR), &MONITOR_FIELDS, files::ABOUT_MONITOR)?,
            stores: None,
            latency: LatencyLog::create(&dir.join(files::LATENCY), labels)?,
            events: File::create_new(&events).map_err(io_error("create", &events))?,
            serializer: V2Serializer::new(),
        })
    }

    /// Steps are in these groups, too.
    pub(crate) fn set_groups(&mut self, groups: &[String]) -> Result<(), RecordError> {
        self.groups = groups.to_owned();
        if !groups.is_empty() {
            let path = self.dir.join(files::GROUPS);
            self.of_groups = Some(TableWriter::create(&path, &GROUP_FIELDS, files::ABOUT_GROUPS)?);
        }
        Ok(())
    }

    /// The scenario measures this itself.
    pub(crate) fn set_own_metrics(&mut self, metrics: &[OwnMetric]) -> Result<(), RecordError> {
        self.metrics = metrics.to_owned();
        if !metrics.is_empty() {
            let path = self.dir.join(files::METRICS);
            self.own = Some(TableWriter::create(&path, &METRIC_FIELDS, files::ABOUT_METRICS)?);
        }
        Ok(())
    }

    fn write_own(&mut self, interval: &MergedInterval) -> Result<(), RecordError> {
        let Some(table) = &mut self.own else { return Ok(()) };
        for (metric, of) in &interval.own {
            let metric = &self.metrics[usize::from(*metric)];
            let values = match metric.kind {
                OwnKind::Histogram => Encoded::of(&of.values, &mut self.serializer).0,
                OwnKind::Counter => Bytes::new(),
            };
            table.push([
                Cell::Int(interval.start_us),
                Cell::Int(interval.end_us),
                Cell::Bool(interval.in_window),
                Cell::Text(&metric.name),
                Cell::Int(of.count),
                Cell::Float(of.sum),
                Cell::Float(of.min),
                Cell::Float(of.max),
                Cell::Int(of.no_number),
                Cell::Bytes(values),
            ])?;
        }
        Ok(())
    }

    fn write_parts(&mut self, interval: &MergedInterval) -> Result<(), RecordError> {
        for ((label, measured), times) in &interval.parts {
            let table = match &mut self.parts {
                Some(table) => table,
                none => {
                    let path = self.dir.join(files::PARTS);
                    none.insert(TableWriter::create(&path, &PART_FIELDS, files::ABOUT_PARTS)?)
                }
            };
            let serializer = &mut self.serializer;
            let [a, b, c, d, e] =
                times.histograms().map(|times| Cell::Bytes(Encoded::of(times, serializer).0));
            table.push([
                Cell::Int(interval.start_us),
                Cell::Int(interval.end_us),
                Cell::Bool(interval.in_window),
                Cell::Text(&self.labels[usize::from(*label)]),
                Cell::Bool(*measured),
                a,
                b,
                c,
                d,
                e,
            ])?;
        }
        Ok(())
    }

    /// A line in `latency.hlog` for each label that had an answer as it should be.
    fn write_latency(&mut self, interval: &MergedInterval) -> Result<(), RecordError> {
        let MergedInterval { start_us, end_us, .. } = *interval;
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
}

/// Nothing of no tags.
fn json(tags: &BTreeMap<String, String>) -> String {
    // a map of texts: nothing that JSON cannot say
    if tags.is_empty() { String::new() } else { serde_json::to_string(tags).unwrap_or_default() }
}

impl Sink for Tables {
    fn begin(&mut self, facts: &Facts<'_>) -> Result<(), RecordError> {
        let since_1970 = facts.anchor.and_then(|anchor| anchor.duration_since(SystemTime::UNIX_EPOCH).ok());
        let begun = Begun {
            threads: facts.threads,
            anchor_s: since_1970.map(|since| since.as_secs_f64()),
            manifest: facts.manifest.clone(),
        };
        self.phases = facts.manifest.phases.iter().map(|phase| phase.name.clone()).collect();
        self.tags = facts.manifest.tags().iter().map(json).collect();
        write_begun(&self.dir, &begun)
    }

    fn interval(&mut self, interval: &MergedInterval) -> Result<(), RecordError> {
        let MergedInterval { start_us, end_us, .. } = *interval;
        self.write_latency(interval)?;
        self.write_own(interval)?;
        self.write_parts(interval)?;
        let of_labels = (Some(&mut self.series), &self.labels, &self.tags[..], &interval.series);
        let of_groups = (self.of_groups.as_mut(), &self.groups, &[][..], &interval.groups);
        for (table, names, tags, all) in [of_labels, of_groups] {
            let Some(table) = table else { continue };
            for ((label, outcome, due), times) in all {
                let phase = due.phase.and_then(|phase| self.phases.get(usize::from(phase)));
                table.push([
                    Cell::Int(start_us),
                    Cell::Int(end_us),
                    Cell::Bool(interval.in_window),
                    Cell::Text(&names[usize::from(*label)]),
                    Cell::Text(outcome.name()),
                    Cell::Bool(due.measured),
                    Cell::Int(times.response_time_us.len()),
                    Cell::Bytes(Encoded::of(&times.response_time_us, &mut self.serializer).0),
                    Cell::Bytes(Encoded::of(&times.service_time_us, &mut self.serializer).0),
                    Cell::Bytes(Encoded::of(&times.response_time_less_lag_us, &mut self.serializer).0),
                    Cell::Int(times.bodies),
                    Cell::Int(times.body_bytes),
                    Cell::Text(phase.map_or("", String::as_str)),
                    Cell::Text(tags.get(usize::from(*label)).map_or("", String::as_str)),
                ])?;
            }
        }
        let none = new_merged();
        let lag_us = interval.lag_us.as_ref().unwrap_or(&none);
        let read_lag_us = interval.read_lag_us.as_ref().unwrap_or(&none);
        let earlier: Vec<u64> =
            interval.offered_earlier.iter().flat_map(|(within_us, count)| [*within_us, *count]).collect();
        self.load.push([
            Cell::Int(start_us),
            Cell::Int(end_us),
            Cell::Bool(interval.in_window),
            Cell::Int(interval.offered),
            Cell::Int(interval.dropped),
            Cell::Int(interval.waiting),
            Cell::Int(interval.in_flight),
            Cell::Int(interval.connections),
            Cell::Int(interval.counters[Counter::Connects]),
            Cell::Int(interval.counters[Counter::SentBytes]),
            Cell::Int(interval.counters[Counter::ReceivedBytes]),
            Cell::Bytes(Encoded::of(lag_us, &mut self.serializer).0),
            Cell::Ints(&interval.cpu_us_by_thread),
            Cell::Ints(&interval.waited_us_by_thread),
            Cell::Ints(&interval.absent_us_by_thread),
            Cell::Bytes(Encoded::of(read_lag_us, &mut self.serializer).0),
            Cell::Int(interval.measured_offered),
            Cell::Int(interval.measured_dropped),
            Cell::Ints(&earlier),
            Cell::Int(interval.counters[Counter::EncodedBytes]),
            Cell::Int(interval.counters[Counter::DecodedBytes]),
        ])
    }

    fn samples(&mut self, samples: &[Sample]) -> Result<(), RecordError> {
        samples.iter().try_for_each(|sample| {
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
                Cell::Float(sample.core_wait_share),
                Cell::Int(sample.length_us),
            ])
        })
    }

    fn stores(&mut self, looks: &[StoreLook]) -> Result<(), RecordError> {
        let stores = match &mut self.stores {
            Some(stores) => stores,
            none => none.insert(FiguresWriter::create(&self.dir)?),
        };
        looks.iter().try_for_each(|look| stores.add(look))
    }

    fn event(&mut self, event: &Event) -> Result<(), RecordError> {
        let path = self.dir.join(files::EVENTS);
        let mut line = serde_json::to_vec(event).map_err(|e| damaged(&path, e))?;
        line.push(b'\n');
        self.events.write_all(&line).map_err(io_error("write", &path))
    }

    fn end(&mut self, manifest: &Manifest) -> Result<(), RecordError> {
        if !self.latency.begun() {
            self.latency.begin(self.anchor.unwrap_or_else(SystemTime::now))?;
        }
        self.latency.flush()?;
        self.series.finish()?;
        self.of_groups.as_mut().map_or(Ok(()), TableWriter::finish)?;
        self.own.as_mut().map_or(Ok(()), TableWriter::finish)?;
        self.parts.as_mut().map_or(Ok(()), TableWriter::finish)?;
        self.load.finish()?;
        self.monitor.finish()?;
        self.stores.as_mut().map_or(Ok(()), FiguresWriter::finish)?;
        write_manifest(&self.dir, manifest)?;
        for name in [files::BEGUN, files::JOURNAL, files::FLEET, files::OPERATIONS_TOLD] {
            // what stays does no harm beside a run.json
            let _ = fs::remove_file(self.dir.join(name));
        }
        Ok(())
    }
}
