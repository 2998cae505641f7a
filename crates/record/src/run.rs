//! Reading a run directory back.

use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::distribution::latency;
use crate::error::{RecordError, damaged, io_error};
use crate::figures::{self, FigureSeries};
use crate::files::{
    self, GROUP_FIELDS, LOAD_FIELDS, METRIC_FIELDS, MONITOR_FIELDS, PART_FIELDS, SERIES_FIELDS,
};
use crate::histogram::{Encoded, Merged, merge_merged, new_merged};
use crate::interval::Outcome;
use crate::summary::Good;
use crate::table::{Field, Table};
use crate::{Distribution, Event, FORMAT, Manifest, OwnMetric, OwnValues, PartTimes, Sample, unfinished};

/// The requests of one label and one outcome that ended in one interval, all threads together.
#[derive(Debug, Clone)]
pub struct StoredSeries {
    /// Begin of the interval, microseconds since the run began.
    pub start_us: u64,
    /// Its end.
    pub end_us: u64,
    /// Whether it lies within the measured window.
    pub in_window: bool,
    /// Index into [`Manifest::labels`].
    pub label: u16,
    /// How they ended.
    pub outcome: Outcome,
    /// Whether they were due within the measured window.
    pub measured: bool,
    /// How many.
    pub count: u64,
    /// From due to last byte.
    pub response_time_us: Encoded,
    /// The same with the driver's own lag taken out; runs of earlier versions lack it.
    pub response_time_less_lag_us: Option<Encoded>,
    /// From first byte sent to last byte received.
    pub service_time_us: Encoded,
    /// Good answers of which the size of the body is known; 0 in runs of earlier versions.
    pub bodies: u64,
    /// Bytes of their bodies: once decoded where a step looks at them, else as they came.
    pub body_bytes: u64,
}

/// What was measured of one metric of the scenario's own in one interval, all threads together.
#[derive(Debug, Clone)]
pub struct StoredOwn {
    /// Begin of the interval, microseconds since the run began.
    pub start_us: u64,
    /// Its end.
    pub end_us: u64,
    /// Whether it lies within the measured window.
    pub in_window: bool,
    /// Index into [`Manifest::metrics`].
    pub metric: u16,
    /// How many numbers.
    pub count: u64,
    /// All of them together.
    pub sum: f64,
    /// The smallest; 0 where there is none.
    pub min: f64,
    /// The largest; 0 where there is none.
    pub max: f64,
    /// How often there was no number.
    pub no_number: u64,
    /// The numbers, in [units](crate::UNITS_PER_ONE); none of a counter.
    pub values: Option<Encoded>,
}

/// Where the time of good answers of one label went in one interval, all threads together; see
/// [`PartSeries`](crate::PartSeries).
#[derive(Debug, Clone)]
pub struct StoredParts {
    /// Begin of the interval, microseconds since the run began.
    pub start_us: u64,
    /// Its end.
    pub end_us: u64,
    /// Whether it lies within the measured window.
    pub in_window: bool,
    /// Index into [`Manifest::labels`].
    pub label: u16,
    /// Whether they were due within the measured window.
    pub measured: bool,
    /// The histograms, in the order of the file.
    histograms: [Encoded; 5],
}

/// The load of one interval, all threads together.
#[derive(Debug, Clone)]
pub struct StoredLoad {
    /// Begin of the interval, microseconds since the run began.
    pub start_us: u64,
    /// Its end.
    pub end_us: u64,
    /// Whether it lies within the measured window.
    pub in_window: bool,
    /// Requests that became due in it, whenever the driver turned to them.
    pub offered: u64,
    /// Those that were due within the measured window.
    pub measured_offered: u64,
    /// Requests given up.
    pub dropped: u64,
    /// Those that were due within the measured window.
    pub measured_dropped: u64,
    /// Arrivals waiting for a connection at its end.
    pub waiting: u64,
    /// Requests under way at its end.
    pub in_flight: u64,
    /// Connections open at its end.
    pub connections: u64,
    /// Connections made.
    pub connects: u64,
    /// Bytes written to sockets.
    pub sent_bytes: u64,
    /// Bytes read from sockets.
    pub received_bytes: u64,
    /// Bytes of bodies as they came, of those that were decoded; 0 in runs of earlier versions.
    pub encoded_bytes: u64,
    /// Bytes of the same bodies once decoded.
    pub decoded_bytes: u64,
    /// How late the load generator sent requests.
    pub lag_us: Encoded,
    /// How late answers were read that were due within the measured window; runs of earlier versions lack it.
    pub read_lag_us: Option<Encoded>,
    /// CPU time of each driver thread.
    pub cpu_us_by_thread: Vec<u64>,
    /// How long each driver thread was ready to run but had no core; empty where that was not known.
    pub waited_us_by_thread: Vec<u64>,
    /// How long each was not there at all: stopped or suspended; empty where that was not known.
    pub absent_us_by_thread: Vec<u64>,
}

/// A run as its directory has it.
#[derive(Debug, Clone)]
pub struct Run {
    /// Where it is.
    pub dir: PathBuf,
    /// What it was and what it is worth.
    pub manifest: Manifest,
    /// Requests by interval, label and outcome. A straggling thread may have rows of its own: rows add up.
    pub series: Vec<StoredSeries>,
    /// Groups of steps that were over, as requests are told: `label` is an index into [`Manifest::groups`]. Rows add up here too.
    pub groups: Vec<StoredSeries>,
    /// What the scenario measured itself, by interval and metric. Rows add up here too.
    pub own: Vec<StoredOwn>,
    /// Where the time of good answers went, by interval and label; empty where nothing of it was seen. Rows add up here too.
    pub parts: Vec<StoredParts>,
    /// Load by interval. Rows add up here too.
    pub load: Vec<StoredLoad>,
    /// Looks at the processes, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// What stores said of themselves; empty where none was asked.
    pub stores: Vec<FigureSeries>,
    /// What happened when.
    pub events: Vec<Event>,
    /// The scenario as it was.
    pub scenario: String,
    /// Files that a run has and this directory has not; what they would hold is empty here.
    pub missing: Vec<&'static str>,
}

impl Run {
    /// Reads a run directory. Histograms stay encoded until they are asked for. Manifest, intervals and load must be
    /// there; what else is missing is named in [`missing`](Run::missing). A run that was killed is first
    /// [built again](crate::rebuild) from what it recorded.
    pub fn open(dir: &Path) -> Result<Run, RecordError> {
        unfinished::rebuild(dir, false)?;
        let manifest = read_manifest(dir)?;
        let series = read_series(&dir.join(files::SERIES), &SERIES_FIELDS, &manifest.labels)?;
        let groups = match manifest.groups.is_empty() {
            true => Vec::new(),
            false => read_series(&dir.join(files::GROUPS), &GROUP_FIELDS, &manifest.groups)?,
        };
        let own = match manifest.metrics.is_empty() {
            true => Vec::new(),
            false => read_own(&dir.join(files::METRICS), &manifest.metrics)?,
        };
        let load = read_load(&dir.join(files::LOAD))?;
        let mut missing = Vec::new();
        let mut run = Run {
            series,
            groups,
            own,
            parts: match dir.join(files::PARTS).exists() {
                true => read_parts(&dir.join(files::PARTS), &manifest.labels)?,
                // most runs of before have none, and nothing of it may have been seen
                false => Vec::new(),
            },
            load,
            samples: read_if_there(dir, files::MONITOR, read_samples, &mut missing)?,
            // most runs have none: it is not missing
            stores: read_if_there(dir, files::STORES, figures::read, &mut Vec::new())?,
            events: read_if_there(dir, files::EVENTS, read_events, &mut missing)?,
            scenario: read_if_there(dir, files::SCENARIO, read_text, &mut missing)?,
            missing,
            dir: dir.to_owned(),
            manifest,
        };
        run.complete_summary()?;
        Ok(run)
    }

    /// Runs of earlier versions have percentiles of their good answers only, and do not tell these apart.
    fn complete_summary(&mut self) -> Result<(), RecordError> {
        let summary = &self.manifest.summary;
        if summary.failed > 0 || summary.good.requests > 0 || summary.due() == 0 {
            return Ok(());
        }
        let errors: u64 = summary.errors.values().sum();
        let (requests, failed) = (summary.requests.saturating_sub(errors), errors + summary.dropped);
        let (mut response, mut service) = (new_merged(), new_merged());
        for one in self.series.iter().filter(|one| one.measured && one.outcome == Outcome::Ok) {
            self.merge(&mut response, &one.response_time_us)?;
            self.merge(&mut service, &one.service_time_us)?;
        }
        let summary = &mut self.manifest.summary;
        summary.failed = failed;
        summary.response_time_us = Distribution::new(&response, failed).latency();
        summary.service_time_us = Distribution::new(&service, failed).latency();
        let (response_time_us, service_time_us) = (latency(&response), latency(&service));
        summary.good = Good { requests, response_time_us, service_time_us, body_bytes_mean: None };
        Ok(())
    }

    /// The HdrHistogram interval log in its directory.
    pub fn latency_log(&self) -> PathBuf {
        self.dir.join(files::LATENCY)
    }

    /// Decodes a histogram of this run; says where it is from if it is damaged.
    pub fn decode(&self, histogram: &Encoded) -> Result<Merged, RecordError> {
        histogram.decode().map_err(|reason| damaged(&self.dir, reason))
    }

    /// What was measured of one metric in these rows together.
    pub fn own_values<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r StoredOwn>,
    ) -> Result<OwnValues, RecordError> {
        let mut all = OwnValues::default();
        for row in rows {
            let StoredOwn { count, sum, min, max, no_number, .. } = *row;
            let values = row.values.as_ref().map(|values| self.decode(values)).transpose()?;
            let values = values.unwrap_or_else(new_merged);
            all.add_values(&OwnValues { count, sum, min, max, no_number, values, example: None });
        }
        Ok(all)
    }

    /// Where the time of the good answers in these rows went, together.
    pub fn part_times<'r>(
        &self,
        rows: impl IntoIterator<Item = &'r StoredParts>,
    ) -> Result<PartTimes, RecordError> {
        let mut all = PartTimes::default();
        for row in rows {
            let mut decoded = [(); 5].map(|()| new_merged());
            for (into, histogram) in decoded.iter_mut().zip(&row.histograms) {
                *into = self.decode(histogram)?;
            }
            all.add_times(&PartTimes::of(decoded));
        }
        Ok(all)
    }

    /// Adds a histogram of this run to another.
    pub fn merge(&self, into: &mut Merged, histogram: &Encoded) -> Result<(), RecordError> {
        merge_merged(into, &self.decode(histogram)?);
        Ok(())
    }
}

impl Manifest {
    /// Reads what a run was and what it came to, and nothing of its seconds: enough to compare several. A run that was killed
    /// is first [built again](crate::rebuild).
    ///
    /// # Errors
    /// Where there is no run, or it does not say what it should.
    pub fn open(dir: &Path) -> Result<Manifest, RecordError> {
        unfinished::rebuild(dir, false)?;
        read_manifest(dir)
    }
}

/// A file that tells more about a run but is not needed to tell what came of it.
fn read_if_there<T: Default>(
    dir: &Path,
    name: &'static str,
    read: fn(&Path) -> Result<T, RecordError>,
    missing: &mut Vec<&'static str>,
) -> Result<T, RecordError> {
    let path = dir.join(name);
    // a link to nowhere and a folder without access are for `read` to complain of
    if let Err(error) = path.symlink_metadata()
        && error.kind() == ErrorKind::NotFound
    {
        missing.push(name);
        return Ok(T::default());
    }
    read(&path)
}

fn read_text(path: &Path) -> Result<String, RecordError> {
    fs::read_to_string(path).map_err(io_error("read", path))
}

fn read_manifest(dir: &Path) -> Result<Manifest, RecordError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        format: u32,
    }
    let path = dir.join(files::MANIFEST);
    let text = match fs::read_to_string(&path) {
        Err(e) if e.kind() == ErrorKind::NotFound && dir.join(files::LIMIT).is_file() => {
            return Err(RecordError::Search(dir.to_owned()));
        }
        Err(e) if e.kind() == ErrorKind::NotFound && dir.is_dir() => {
            return Err(RecordError::NotARun(dir.to_owned()));
        }
        read => read.map_err(io_error("read", &path))?,
    };
    // The format first: the rest of a later one may look different.
    let Versioned { format } =
        crate::json::read(&text).map_err(|e| damaged(&path, format!("not the manifest of a run: {e}")))?;
    if format > FORMAT {
        return Err(RecordError::TooNew { path, found: format, known: FORMAT });
    }
    Manifest::from_json(text.as_bytes())
        .map_err(|e| damaged(&path, format!("not the manifest of a run: {e}")))
}

/// Requests, or groups of steps, by what the fourth column names.
fn read_series(
    path: &Path,
    fields: &[Field; 14],
    labels: &[String],
) -> Result<Vec<StoredSeries>, RecordError> {
    let table = Table::read_with(path, fields, &files::LATER)?;
    let of = fields[3].0;
    let labels = places(&table, of, labels.iter().map(String::as_str))?;
    let outcome = |name: &String| {
        let outcome = Outcome::from_name(name);
        outcome.ok_or_else(|| damaged(path, format!("unknown outcome {name:?}")))
    };
    let outcomes = table.texts("outcome")?.iter().map(outcome).collect::<Result<Vec<_>, _>>()?;
    let (starts, ends) = bounds(&table)?;
    let (in_window, measured, counts) =
        (table.bools("in_window")?, table.bools("measured")?, table.ints("count")?);
    let (response, service) = (encoded(&table, "response_time_us")?, encoded(&table, "service_time_us")?);
    let less_lag = if table.has(files::LESS_LAG) { encoded(&table, files::LESS_LAG)? } else { Vec::new() };
    let mut less_lag = less_lag.into_iter();
    let (bodies, body_bytes) =
        (ints_or_none(&table, files::BODIES)?, ints_or_none(&table, files::BODY_BYTES)?);
    let row = |((i, response_time_us), service_time_us): ((usize, Encoded), Encoded)| StoredSeries {
        start_us: starts[i],
        end_us: ends[i],
        in_window: in_window[i],
        label: labels[i],
        outcome: outcomes[i],
        measured: measured[i],
        count: counts[i],
        response_time_us,
        response_time_less_lag_us: less_lag.next(),
        service_time_us,
        bodies: bodies[i],
        body_bytes: body_bytes[i],
    };
    Ok(response.into_iter().enumerate().zip(service).map(row).collect())
}

/// What the scenario measured itself.
fn read_own(path: &Path, metrics: &[OwnMetric]) -> Result<Vec<StoredOwn>, RecordError> {
    let table = Table::read(path, &METRIC_FIELDS)?;
    let of = places(&table, "metric", metrics.iter().map(|metric| metric.name.as_str()))?;
    let (starts, ends) = bounds(&table)?;
    let in_window = table.bools("in_window")?;
    let (counts, no_number) = (table.ints("count")?, table.ints("no_number")?);
    let (sum, min, max) = (table.floats("sum")?, table.floats("min")?, table.floats("max")?);
    if [sum, min, max].iter().any(|numbers| numbers.iter().any(|number| !number.is_finite())) {
        return Err(damaged(path, "a figure is no number"));
    }
    let row = |(i, values): (usize, Bytes)| StoredOwn {
        start_us: starts[i],
        end_us: ends[i],
        in_window: in_window[i],
        metric: of[i],
        count: counts[i],
        sum: sum[i],
        min: min[i],
        max: max[i],
        no_number: no_number[i],
        values: (!values.is_empty()).then_some(Encoded(values)),
    };
    Ok(table.bytes("values")?.into_iter().enumerate().map(row).collect())
}

/// Where the time of good answers went.
fn read_parts(path: &Path, labels: &[String]) -> Result<Vec<StoredParts>, RecordError> {
    let table = Table::read(path, &PART_FIELDS)?;
    let of = places(&table, "label", labels.iter().map(String::as_str))?;
    let (starts, ends) = bounds(&table)?;
    let (in_window, measured) = (table.bools("in_window")?, table.bools("measured")?);
    let mut rows: Vec<StoredParts> = (0..table.rows())
        .map(|i| StoredParts {
            start_us: starts[i],
            end_us: ends[i],
            in_window: in_window[i],
            label: of[i],
            measured: measured[i],
            histograms: Default::default(),
        })
        .collect();
    for (at, (name, _)) in PART_FIELDS[5..].iter().enumerate() {
        for (row, histogram) in rows.iter_mut().zip(encoded(&table, name)?) {
            row.histograms[at] = histogram;
        }
    }
    Ok(rows)
}

/// A column of names as their places among those of the manifest.
fn places<'n>(
    table: &Table,
    of: &str,
    names: impl Iterator<Item = &'n str>,
) -> Result<Vec<u16>, RecordError> {
    let known: HashMap<&str, u16> = names.zip(0..).collect();
    let place = |name: &String| {
        let place = known.get(name.as_str()).copied();
        place.ok_or_else(|| damaged(table.path(), format!("{of} {name:?} is not among those of run.json")))
    };
    table.texts(of)?.iter().map(place).collect()
}

fn encoded(table: &Table, name: &str) -> Result<Vec<Encoded>, RecordError> {
    Ok(table.bytes(name)?.into_iter().map(|bytes: Bytes| Encoded(bytes)).collect())
}

/// A column that files of earlier versions lack: zeros then.
fn ints_or_none(table: &Table, name: &str) -> Result<Vec<u64>, RecordError> {
    if table.has(name) { table.ints(name) } else { Ok(vec![0; table.rows()]) }
}

/// Begin and end of each row's interval; that they are in order is what all arithmetic on them relies on.
fn bounds(table: &Table) -> Result<(Vec<u64>, Vec<u64>), RecordError> {
    let (starts, ends) = (table.ints("start_us")?, table.ints("end_us")?);
    if let Some(row) = (0..table.rows()).find(|&row| starts[row] >= ends[row]) {
        return Err(damaged(table.path(), format!("interval of row {row} ends before it begins")));
    }
    Ok((starts, ends))
}

fn read_load(path: &Path) -> Result<Vec<StoredLoad>, RecordError> {
    let table = Table::read_with(path, &LOAD_FIELDS, &files::LATER)?;
    let (starts, ends) = bounds(&table)?;
    let in_window = table.bools("in_window")?;
    let (offered, dropped, waiting) =
        (table.ints("offered")?, table.ints("dropped")?, table.ints("waiting")?);
    let (in_flight, connections) = (table.ints("in_flight")?, table.ints("connections")?);
    let connects = table.ints("connects")?;
    let (sent, received) = (table.ints("sent_bytes")?, table.ints("received_bytes")?);
    let encoded_bytes = ints_or_none(&table, files::ENCODED)?;
    let decoded_bytes = ints_or_none(&table, files::DECODED)?;
    let (lag, cpu) = (encoded(&table, "lag_us")?, table.lists("cpu_us_by_thread")?);
    let later = |name| if table.has(name) { table.lists(name) } else { Ok(vec![Vec::new(); table.rows()]) };
    let read_lag = if table.has(files::READ_LAG) { encoded(&table, files::READ_LAG)? } else { Vec::new() };
    let mut read_lag = read_lag.into_iter();
    // as earlier versions counted: by when it was known
    let measured = |name, all: &[u64]| match table.has(name) {
        true => table.ints(name),
        false => {
            Ok(all.iter().zip(in_window).map(|(count, in_window)| count * u64::from(*in_window)).collect())
        }
    };
    let measured_offered = measured(files::MEASURED_OFFERED, &offered)?;
    let measured_dropped = measured(files::MEASURED_DROPPED, &dropped)?;
    let mut waited = later(files::WAITED)?.into_iter();
    let mut absent = later(files::ABSENT)?.into_iter();
    let row = |((i, lag_us), cpu_us_by_thread): ((usize, Encoded), Vec<u64>)| StoredLoad {
        start_us: starts[i],
        end_us: ends[i],
        in_window: in_window[i],
        offered: offered[i],
        measured_offered: measured_offered[i],
        dropped: dropped[i],
        measured_dropped: measured_dropped[i],
        waiting: waiting[i],
        in_flight: in_flight[i],
        connections: connections[i],
        connects: connects[i],
        sent_bytes: sent[i],
        received_bytes: received[i],
        encoded_bytes: encoded_bytes[i],
        decoded_bytes: decoded_bytes[i],
        lag_us,
        read_lag_us: read_lag.next(),
        cpu_us_by_thread,
        waited_us_by_thread: waited.next().unwrap_or_default(),
        absent_us_by_thread: absent.next().unwrap_or_default(),
    };
    let mut rows: Vec<StoredLoad> = lag.into_iter().enumerate().zip(cpu).map(row).collect();
    count_by_due_time(&mut rows, &later(files::OFFERED_EARLIER)?);
    Ok(rows)
}

/// Counts what a row had to be told of in the row before in which it was due. What is due in none that is there stays.
fn count_by_due_time(rows: &mut [StoredLoad], earlier: &[Vec<u64>]) {
    for (index, told) in earlier.iter().enumerate() {
        for (within_us, count) in
            told.as_chunks::<2>().0.iter().map(|[within_us, count]| (*within_us, *count))
        {
            let is_due = |row: &StoredLoad| row.start_us <= within_us && within_us < row.end_us;
            let Some(due) = rows[..index].iter().rposition(is_due) else { continue };
            // no more than there are, whatever a damaged file says
            let count = count.min(rows[index].offered);
            rows[index].offered -= count;
            rows[due].offered += count;
        }
    }
}

fn read_samples(path: &Path) -> Result<Vec<Sample>, RecordError> {
    let table = Table::read_with(path, &MONITOR_FIELDS, &files::LATER)?;
    let at_us = table.ints("at_us")?;
    let (cpu, cpu_system) = (table.floats("cpu_share")?, table.floats("cpu_system_share")?);
    let (rss, threads) = (table.ints("rss_bytes")?, table.ints("threads")?);
    let (voluntary, involuntary) = (table.ints("voluntary_switches")?, table.ints("involuntary_switches")?);
    let (disk_read, disk_written) = (table.ints("disk_read_bytes")?, table.ints("disk_written_bytes")?);
    let (net_received, net_sent) = (table.ints("net_received_bytes")?, table.ints("net_sent_bytes")?);
    let steal = table.floats("steal_share")?;
    let core_wait = table.has(files::CORE_WAIT).then(|| table.floats(files::CORE_WAIT)).transpose()?;
    let length_us = ints_or_none(&table, files::LENGTH)?;
    let row = |(i, process): (usize, String)| Sample {
        at_us: at_us[i],
        length_us: length_us.get(i).copied().unwrap_or(0),
        process,
        cpu_share: cpu[i],
        cpu_system_share: cpu_system[i],
        rss_bytes: rss[i],
        threads: threads[i],
        voluntary_switches: voluntary[i],
        involuntary_switches: involuntary[i],
        disk_read_bytes: disk_read[i],
        disk_written_bytes: disk_written[i],
        net_received_bytes: net_received[i],
        net_sent_bytes: net_sent[i],
        steal_share: steal[i],
        core_wait_share: core_wait.map_or(0.0, |of| of[i]),
    };
    Ok(table.texts("process")?.into_iter().enumerate().map(row).collect())
}

fn read_events(path: &Path) -> Result<Vec<Event>, RecordError> {
    let text = read_text(path)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let event = |(number, line): (usize, &str)| {
        crate::json::read(line).map_err(|e| damaged(path, format!("line {}: not an event: {e}", number + 1)))
    };
    lines.map(event).collect()
}

#[cfg(test)]
mod tests;
