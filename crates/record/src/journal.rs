//! What a run has recorded so far, in a form that needs no end: a run that is killed is built again from it.
//!
//! `unfinished.journal` holds, one after the other, what was handed to the writer: each record a tag, the lengths of its
//! head and body, the head as JSON, the body as histograms. It is written as soon as it is handed over, so that the
//! kernel has it whatever becomes of the process; it is gone when the run is finished. While a run goes on its writer
//! holds a lock on the file, by which a reader tells a run that goes on from one that was killed.

use std::fs::{File, TryLockError};
use std::io::{BufReader, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use serde::{Deserialize, Serialize};

use crate::error::{RecordError, damaged, io_error};
use crate::histogram::{Encoded, Merged, merge_counts, merged, new_merged};
use crate::interval::{CoreWaits, ErrorExample, LostTime, Outcome, PhaseCounts, Series, ThreadInterval};
use crate::ledger::Part;
use crate::{Histogram, OwnKind, OwnSeries, PartSeries, Sample, StoreLook, new_histogram};

/// Most bytes that are written; a run that is killed later lacks what came after.
const BYTES_MAX: u64 = 4 << 30;
/// Longest head or body that is read back.
const PART_BYTES_MAX: u32 = 256 << 20;

const INTERVAL: u8 = b'I';
const SAMPLE: u8 = b'S';
const STORE: u8 = b'F';

/// What was handed over.
pub(crate) enum Entry {
    Interval(Box<ThreadInterval>),
    Sample(Sample),
    Store(StoreLook),
}

/// A thread's interval without its histograms, whose lengths it gives.
#[derive(Serialize, Deserialize)]
struct Head {
    thread: u16,
    start_us: u64,
    end_us: u64,
    in_window: bool,
    offered: u64,
    dropped: u64,
    waiting: u64,
    in_flight: u64,
    connections: u64,
    connects: u64,
    sent_bytes: u64,
    received_bytes: u64,
    /// Absent in journals of earlier versions.
    #[serde(default)]
    encoded_bytes: u64,
    #[serde(default)]
    decoded_bytes: u64,
    cpu_us: u64,
    examples: Vec<ErrorExample>,
    statuses: Vec<(u16, u64)>,
    /// Label, outcome, whether due in the measured window, bytes of both histograms.
    series: Vec<(u16, Outcome, bool, usize, usize)>,
    /// Bytes of the response times less lag, behind those; absent in journals of earlier versions.
    #[serde(default)]
    less_lag_bytes: Option<Vec<usize>>,
    /// How many bodies, and their bytes, of each of `series`; absent in journals of earlier versions.
    #[serde(default)]
    bodies: Vec<(u64, u64)>,
    lag_bytes: usize,
    /// Absent in journals of earlier versions, which did not tell the lags apart.
    #[serde(default)]
    unmeasured_lag_bytes: Option<usize>,
    /// Absent in journals of earlier versions, which counted by when it was known.
    #[serde(default)]
    measured_offered: Option<u64>,
    #[serde(default)]
    measured_dropped: Option<u64>,
    #[serde(default)]
    offered_earlier: Vec<(u64, u64)>,
    #[serde(default)]
    read_lag_bytes: Option<usize>,
    #[serde(default)]
    core_waits: Option<CoreWaits>,
    #[serde(default)]
    absent_us: u64,
    /// Groups of steps: as `series`, with the bytes of all three histograms, which stand last.
    #[serde(default)]
    groups: Vec<(u16, Outcome, bool, [usize; 3])>,
    /// The scenario's own metrics, whose histograms stand behind those.
    #[serde(default)]
    own: Vec<OwnHead>,
    /// The phases of `series` and of `groups`, and what was due in each; absent in journals of earlier versions.
    #[serde(default)]
    series_phases: Vec<Option<u16>>,
    #[serde(default)]
    group_phases: Vec<Option<u16>>,
    #[serde(default)]
    by_phase: Vec<PhaseCounts>,
    /// Where the time of good answers went: label, whether due in the measured window, bytes of the histograms, which stand
    /// behind those.
    #[serde(default)]
    parts: Vec<(u16, bool, [usize; 5])>,
}

/// What was measured of a metric of the scenario's own.
#[derive(Serialize, Deserialize)]
struct OwnHead {
    metric: u16,
    count: u64,
    sum: f64,
    min: f64,
    max: f64,
    no_number: u64,
    example: Option<String>,
    /// Bytes of the histogram; none of a counter.
    bytes: Option<usize>,
}

/// Appends to the journal.
pub(crate) struct Journal {
    path: PathBuf,
    file: File,
    written: u64,
    serializer: V2Serializer,
    record: Vec<u8>,
    body: Vec<u8>,
}

impl Journal {
    /// Creates it, and takes the lock.
    pub(crate) fn create(path: &Path) -> Result<Journal, RecordError> {
        let file = File::create_new(path).map_err(io_error("create", path))?;
        // where files cannot be locked, a run that goes on cannot be told from one that was killed; nothing else
        let _ = file.try_lock();
        Ok(Journal {
            path: path.to_owned(),
            file,
            written: 0,
            serializer: V2Serializer::new(),
            record: Vec::new(),
            body: Vec::new(),
        })
    }

    pub(crate) fn interval(&mut self, interval: &ThreadInterval) -> Result<(), RecordError> {
        self.body.clear();
        let mut encode_merged =
            |histogram: &Merged| match self.serializer.serialize(histogram, &mut self.body) {
                Ok(length) => length,
                // as in `Encoded::of`
                Err(error) => unreachable!("encoding a histogram into memory failed: {error}"),
            };
        let mut encode = |histogram: &Histogram| encode_merged(&merged(histogram));
        let series = interval.series.iter().map(|one| {
            let (response, service) = (encode(&one.response_time_us), encode(&one.service_time_us));
            (one.label, one.outcome, one.measured, response, service)
        });
        let series = series.collect();
        let less_lag = interval.series.iter().map(|one| encode(&one.response_time_less_lag_us)).collect();
        let head = Head {
            thread: interval.thread,
            start_us: interval.start_us,
            end_us: interval.end_us,
            in_window: interval.in_window,
            offered: interval.offered,
            dropped: interval.dropped,
            waiting: interval.waiting,
            in_flight: interval.in_flight,
            connections: interval.connections,
            connects: interval.connects,
            sent_bytes: interval.sent_bytes,
            received_bytes: interval.received_bytes,
            encoded_bytes: interval.encoded_bytes,
            decoded_bytes: interval.decoded_bytes,
            cpu_us: interval.cpu_us,
            examples: interval.examples.clone(),
            statuses: interval.statuses.clone(),
            series,
            less_lag_bytes: Some(less_lag),
            bodies: interval.series.iter().map(|one| (one.bodies, one.body_bytes)).collect(),
            lag_bytes: encode(&interval.lag_us),
            unmeasured_lag_bytes: Some(encode(&interval.unmeasured_lag_us)),
            read_lag_bytes: Some(encode(&interval.read_lag_us)),
            measured_offered: Some(interval.measured_offered),
            measured_dropped: Some(interval.measured_dropped),
            offered_earlier: interval.offered_earlier.clone(),
            core_waits: interval.core_waits,
            absent_us: interval.absent_us,
            groups: interval
                .groups
                .iter()
                .map(|one| {
                    let of = [&one.response_time_us, &one.response_time_less_lag_us, &one.service_time_us];
                    (one.label, one.outcome, one.measured, of.map(&mut encode))
                })
                .collect(),
            series_phases: interval.series.iter().map(|one| one.phase).collect(),
            group_phases: interval.groups.iter().map(|one| one.phase).collect(),
            by_phase: interval.by_phase.clone(),
            own: interval.own.iter().map(|one| own_head(one, &mut encode_merged)).collect(),
            parts: interval
                .parts
                .iter()
                .map(|one| {
                    let of = one.histograms().map(|times| encode_merged(&merged(times)));
                    (one.label, one.measured, of)
                })
                .collect(),
        };
        self.append(INTERVAL, &head)
    }

    pub(crate) fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.body.clear();
        self.append(SAMPLE, sample)
    }

    pub(crate) fn store(&mut self, look: &StoreLook) -> Result<(), RecordError> {
        self.body.clear();
        self.append(STORE, look)
    }

    fn append(&mut self, tag: u8, head: &impl Serialize) -> Result<(), RecordError> {
        let head = serde_json::to_vec(head).map_err(|e| damaged(&self.path, e))?;
        self.record.clear();
        self.record.push(tag);
        for part in [&head, &self.body] {
            self.record.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
        }
        self.record.extend_from_slice(&head);
        self.record.extend_from_slice(&self.body);
        self.written += self.record.len() as u64;
        if self.written > BYTES_MAX {
            return Ok(());
        }
        self.file.write_all(&self.record).map_err(io_error("write", &self.path))
    }
}

fn own_head(one: &OwnSeries, encode: &mut impl FnMut(&Merged) -> usize) -> OwnHead {
    let OwnSeries { metric, count, sum, min, max, no_number, ref example, ref values } = *one;
    let bytes = values.as_ref().map(|values| {
        let mut merged = new_merged();
        merge_counts(&mut merged, values);
        encode(&merged)
    });
    OwnHead { metric, count, sum, min, max, no_number, example: example.clone(), bytes }
}

/// Opens the journal of a run that does not go on any more; none while it does.
pub(crate) fn open(path: &Path) -> Result<Option<File>, RecordError> {
    let file = File::open(path).map_err(io_error("read", path))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(None),
        // an error: files cannot be locked here
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// Whether somebody writes it right now.
pub(crate) fn is_written(path: &Path) -> bool {
    // shared: another reader is none who writes
    File::open(path).is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Reads what was written, up to the first record that is not whole.
pub(crate) fn entries(
    file: &File,
    mut take: impl FnMut(Entry) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let mut reader = BufReader::new(file);
    while let Some(entry) = next(&mut reader) {
        take(entry)?;
    }
    Ok(())
}

/// The next record; none where it is not whole.
pub(crate) fn next(reader: &mut impl Read) -> Option<Entry> {
    let mut fixed = [0; 9];
    reader.read_exact(&mut fixed).ok()?;
    let length = |at: usize| fixed[at..at + 4].try_into().map(u32::from_le_bytes).ok();
    let mut part = |length: u32| -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = reader.by_ref().take(length.into()).read_to_end(&mut bytes).ok()?;
        (length <= PART_BYTES_MAX && read == length as usize).then_some(bytes)
    };
    let (head, body) = (part(length(1)?)?, part(length(5)?)?);
    match fixed[0] {
        INTERVAL => interval(serde_json::from_slice(&head).ok()?, body.into()).map(Entry::Interval),
        SAMPLE => serde_json::from_slice(&head).ok().map(Entry::Sample),
        STORE => serde_json::from_slice(&head).ok().map(Entry::Store),
        _ => None,
    }
}

fn interval(head: Head, mut body: Bytes) -> Option<Box<ThreadInterval>> {
    let mut decode = |length: usize| -> Option<Merged> {
        let bytes = (length <= body.len()).then(|| body.split_to(length))?;
        Encoded(bytes).decode().ok()
    };
    let mut histogram = |length: usize| decode(length).map(|decoded| recorded(&decoded));
    let series = |(label, outcome, measured, response, service): (u16, Outcome, bool, usize, usize)| {
        let (response_time_us, service_time_us) = (histogram(response)?, histogram(service)?);
        let response_time_less_lag_us = response_time_us.clone();
        Some(Series {
            label,
            outcome,
            measured,
            phase: None,
            response_time_us,
            response_time_less_lag_us,
            service_time_us,
            bodies: 0,
            body_bytes: 0,
        })
    };
    let mut series = head.series.into_iter().map(series).collect::<Option<Vec<Series>>>()?;
    for (one, length) in series.iter_mut().zip(head.less_lag_bytes.into_iter().flatten()) {
        one.response_time_less_lag_us = histogram(length)?;
    }
    for (one, bodies) in series.iter_mut().zip(head.bodies) {
        (one.bodies, one.body_bytes) = bodies;
    }
    let lag_us = histogram(head.lag_bytes)?;
    let (lag_us, unmeasured_lag_us) = match head.unmeasured_lag_bytes {
        Some(length) => (lag_us, histogram(length)?),
        None if head.in_window => (lag_us, new_histogram()),
        None => (new_histogram(), lag_us),
    };
    let read_lag_us = head.read_lag_bytes.map_or_else(|| Some(new_histogram()), &mut histogram)?;
    let group = |(label, outcome, measured, lengths): (u16, Outcome, bool, [usize; 3])| {
        Some(Series {
            label,
            outcome,
            measured,
            phase: None,
            response_time_us: histogram(lengths[0])?,
            response_time_less_lag_us: histogram(lengths[1])?,
            service_time_us: histogram(lengths[2])?,
            bodies: 0,
            body_bytes: 0,
        })
    };
    let mut groups = head.groups.into_iter().map(group).collect::<Option<Vec<Series>>>()?;
    for (all, phases) in [(&mut series, head.series_phases), (&mut groups, head.group_phases)] {
        all.iter_mut().zip(phases).for_each(|(one, phase)| one.phase = phase);
    }
    let own = head.own.into_iter().map(|one| own(one, &mut decode)).collect::<Option<Vec<OwnSeries>>>()?;
    let mut histogram = |length: usize| decode(length).map(|decoded| recorded(&decoded));
    let mut parts = Vec::with_capacity(head.parts.len());
    for (label, measured, [connect, handshake, pieces_service, first_byte, transfer]) in head.parts {
        parts.push(PartSeries {
            label,
            measured,
            connect_us: histogram(connect)?,
            handshake_us: histogram(handshake)?,
            pieces_service_us: histogram(pieces_service)?,
            first_byte_us: histogram(first_byte)?,
            transfer_us: histogram(transfer)?,
        });
    }
    let measured = |count: Option<u64>, all| count.unwrap_or(if head.in_window { all } else { 0 });
    Some(Box::new(ThreadInterval {
        thread: head.thread,
        start_us: head.start_us,
        end_us: head.end_us,
        in_window: head.in_window,
        series,
        groups,
        own,
        parts,
        offered: head.offered,
        offered_earlier: head.offered_earlier,
        measured_offered: measured(head.measured_offered, head.offered),
        dropped: head.dropped,
        measured_dropped: measured(head.measured_dropped, head.dropped),
        by_phase: head.by_phase,
        waiting: head.waiting,
        in_flight: head.in_flight,
        connections: head.connections,
        connects: head.connects,
        sent_bytes: head.sent_bytes,
        received_bytes: head.received_bytes,
        encoded_bytes: head.encoded_bytes,
        decoded_bytes: head.decoded_bytes,
        lag_us,
        unmeasured_lag_us,
        read_lag_us,
        cpu_us: head.cpu_us,
        core_waits: head.core_waits,
        absent_us: head.absent_us,
        examples: head.examples,
        statuses: head.statuses,
        open_by_label: Vec::new(),
        sessions_begun: Vec::new(),
        lost_time: LostTime::default(),
        failed_steps: 0,
        computing_us: 0,
        unconnected: Vec::new(),
        // has files of its own
        ledger: Part::default(),
        // what a run is judged by while it is on; one that is rebuilt is incomplete whatever it says
        quiet: Vec::new(),
        failed_us: None,
        last_good_us: 0,
    }))
}

/// As a thread recorded it.
fn recorded(decoded: &Merged) -> Histogram {
    let mut histogram = new_histogram();
    for value in decoded.iter_recorded() {
        let count = u32::try_from(value.count_at_value()).unwrap_or(u32::MAX);
        histogram.record_n(value.value_iterated_to(), count);
    }
    histogram
}

fn own(head: OwnHead, decode: &mut impl FnMut(usize) -> Option<Merged>) -> Option<OwnSeries> {
    let OwnHead { metric, count, sum, min, max, no_number, example, bytes } = head;
    let kind = if bytes.is_some() { OwnKind::Histogram } else { OwnKind::Counter };
    let values = match OwnSeries::empty(metric, kind).values.zip(bytes) {
        Some((mut values, length)) => {
            for value in decode(length)?.iter_recorded() {
                let count = u32::try_from(value.count_at_value()).unwrap_or(u32::MAX);
                values.record_n(value.value_iterated_to().min(values.high()), count).ok()?;
            }
            Some(values)
        }
        None => None,
    };
    Some(OwnSeries { metric, count, sum, min, max, no_number, example, values })
}
