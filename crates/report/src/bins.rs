//! A run's time axis in bins: whole seconds, or several merged where the run is long.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::{
    Distribution, Merged, Outcome, RecordError, Run, StoredLoad, StoredSeries, merge_merged, new_merged,
};

use crate::heatmap::{HeatMap, HeatMapBuilder};
use crate::units::round;
use crate::{own, stores};

/// Most bins on the time axis.
const BINS_MAX: u64 = 2_000;
/// Most where several runs share a chart.
const BINS_MAX_SHORT: u64 = 600;
/// Most numbers on all series together; a run with very many labels gets fewer bins.
const NUMBERS_MAX: u64 = 300_000;
/// Series that every page has, roughly.
const SERIES_ALWAYS: u64 = 30;
/// Series for each label, for each operation and for each process.
const SERIES_PER_LABEL: u64 = 3;
const SERIES_PER_OPERATION: u64 = 4;
const SERIES_PER_PROCESS: u64 = 11;

/// Values over time; null where there is nothing to say.
pub type Values = Vec<Option<f64>>;

/// The time axis.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    /// Width of a bin, whole seconds.
    pub(crate) bin_s: u64,
    /// Number of bins.
    pub(crate) bins: usize,
}

impl Axis {
    /// The axis of a run of whose system so many kinds of operations are shown.
    pub(crate) fn of(run: &Run, operations: usize) -> Axis {
        let end_us =
            run.load.iter().map(|row| row.end_us).chain(run.series.iter().map(|row| row.end_us)).max();
        let seconds = end_us.unwrap_or(0).div_ceil(1_000_000);
        let processes = run.samples.iter().map(|s| s.process.as_str()).collect::<BTreeSet<_>>().len() as u64;
        let series = SERIES_ALWAYS
            + SERIES_PER_LABEL * run.manifest.labels.len() as u64
            + SERIES_PER_OPERATION * operations as u64
            + SERIES_PER_PROCESS * processes
            + stores::count(run)
            + own::SERIES_EACH * run.manifest.metrics.len() as u64;
        Axis::of_seconds(seconds, (NUMBERS_MAX / series).clamp(1, BINS_MAX))
    }

    /// The axis of a chart among others, of so many series.
    pub(crate) fn short(seconds: u64, series: usize) -> Axis {
        Axis::of_seconds(seconds, (NUMBERS_MAX / (series as u64).max(1)).clamp(1, BINS_MAX_SHORT))
    }

    fn of_seconds(seconds: u64, bins_max: u64) -> Axis {
        let bin_s = seconds.div_ceil(bins_max).max(1);
        Axis { bin_s, bins: seconds.div_ceil(bin_s) as usize }
    }

    /// The bin that a moment lies in.
    pub(crate) fn bin(&self, at_us: u64) -> usize {
        (at_us / (self.bin_s * 1_000_000)) as usize
    }

    /// Begin of each bin, seconds.
    pub(crate) fn starts_s(&self) -> Vec<u64> {
        (0..self.bins as u64).map(|bin| bin * self.bin_s).collect()
    }
}

/// Latency over time, microseconds.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct LatencySeries {
    pub p50: Values,
    pub p90: Values,
    pub p99: Values,
    pub p999: Values,
    pub max: Values,
}

impl LatencySeries {
    fn push(&mut self, times: Distribution<'_>) {
        let quantile = |share| times.quantile(share).map(|us| us as f64);
        self.p50.push(quantile(0.5));
        self.p90.push(quantile(0.9));
        self.p99.push(quantile(0.99));
        self.p999.push(quantile(0.999));
        self.max.push(times.max().map(|us| us as f64));
    }
}

/// The load and its latency over time. Latencies are of all requests that ended or were given up in a bin; null where a
/// percentile is not reached.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct LoadSeries {
    pub offered_per_s: Values,
    pub achieved_per_s: Values,
    pub errors_per_s: Values,
    pub dropped_per_s: Values,
    pub in_flight: Values,
    pub waiting: Values,
    pub connections: Values,
    pub response_time_us: LatencySeries,
    pub service_time_us: LatencySeries,
    pub lag_p99_us: Values,
    pub received_bytes_per_s: Values,
    pub sent_bytes_per_s: Values,
    /// Bodies that were decoded because a step looks at them, as they came; absent where there were none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub encoded_bytes_per_s: Values,
    /// The same bodies once decoded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub decoded_bytes_per_s: Values,
}

/// One label over time.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct StepSeries {
    pub label: String,
    pub achieved_per_s: Values,
    pub p50_us: Values,
    pub p99_us: Values,
}

/// Everything that is over time and comes from the driver, with the distributions of the measured window.
pub(crate) struct OverTime {
    pub(crate) series: LoadSeries,
    pub(crate) steps: Vec<StepSeries>,
    pub(crate) errors: BTreeMap<&'static str, Values>,
    pub(crate) heatmap: HeatMap,
    pub(crate) response_time_us: Merged,
    pub(crate) service_time_us: Merged,
}

/// Goes through the run bin by bin, so that only one bin's histograms are held at a time.
pub(crate) fn over_time(run: &Run, axis: Axis) -> Result<OverTime, RecordError> {
    let mut load: Vec<Vec<&StoredLoad>> = vec![Vec::new(); axis.bins];
    run.load.iter().for_each(|row| load[axis.bin(row.start_us)].push(row));
    let mut ended: Vec<Vec<&StoredSeries>> = vec![Vec::new(); axis.bins];
    run.series.iter().for_each(|row| ended[axis.bin(row.start_us)].push(row));

    let kinds: BTreeSet<Outcome> =
        run.series.iter().map(|row| row.outcome).filter(|o| o.is_error()).collect();
    let step = |label: &String| StepSeries { label: label.clone(), ..StepSeries::default() };
    let mut over_time = OverTime {
        series: LoadSeries::default(),
        steps: run.manifest.labels.iter().map(step).collect(),
        errors: kinds.iter().map(|kind| (kind.name(), Values::with_capacity(axis.bins))).collect(),
        heatmap: HeatMap::default(),
        response_time_us: new_merged(),
        service_time_us: new_merged(),
    };
    let mut heat = HeatMapBuilder::default();
    for (bin, (load, ended)) in load.iter().zip(&ended).enumerate() {
        let seen_s = seen_s(load, ended);
        push_load(&mut over_time.series, run, load, seen_s)?;
        let dropped = load.iter().map(|row| row.dropped).sum();
        push_ended(&mut over_time, run, ended, dropped, seen_s, |good, failed| heat.add(bin, good, failed))?;
    }
    if run.load.iter().all(|row| row.encoded_bytes == 0) {
        over_time.series.encoded_bytes_per_s.clear();
        over_time.series.decoded_bytes_per_s.clear();
    }
    over_time.heatmap = heat.build();
    Ok(over_time)
}

/// Least part of a second that makes a rate: the few milliseconds in which the last answers come are none.
pub(crate) const RATE_SEEN_MIN_S: f64 = 0.05;

/// How much of a bin was seen: its last one may be cut short.
fn seen_s(load: &[&StoredLoad], ended: &[&StoredSeries]) -> f64 {
    let bounds = || {
        let of_load = load.iter().map(|row| (row.start_us, row.end_us));
        of_load.chain(ended.iter().map(|row| (row.start_us, row.end_us)))
    };
    let (start, end) = (bounds().map(|b| b.0).min(), bounds().map(|b| b.1).max());
    end.unwrap_or(0).saturating_sub(start.unwrap_or(0)) as f64 / 1e6
}

fn push_load(
    series: &mut LoadSeries,
    run: &Run,
    rows: &[&StoredLoad],
    seen_s: f64,
) -> Result<(), RecordError> {
    let per_s = |of: fn(&StoredLoad) -> u64| {
        (seen_s >= RATE_SEEN_MIN_S)
            .then(|| round(rows.iter().map(|row| of(row)).sum::<u64>() as f64 / seen_s))
    };
    // Rows of the same interval add up; of several intervals the highest is shown, so that no peak is hidden.
    let highest = |of: fn(&StoredLoad) -> u64| {
        let mut by_start = BTreeMap::<u64, u64>::new();
        rows.iter().for_each(|row| *by_start.entry(row.start_us).or_default() += of(row));
        by_start.into_values().max().map(|value| value as f64)
    };
    let mut lag_us = new_merged();
    for row in rows {
        run.merge(&mut lag_us, &row.lag_us)?;
    }
    series.offered_per_s.push(per_s(|row| row.offered));
    series.dropped_per_s.push(per_s(|row| row.dropped));
    series.received_bytes_per_s.push(per_s(|row| row.received_bytes));
    series.sent_bytes_per_s.push(per_s(|row| row.sent_bytes));
    series.encoded_bytes_per_s.push(per_s(|row| row.encoded_bytes));
    series.decoded_bytes_per_s.push(per_s(|row| row.decoded_bytes));
    series.in_flight.push(highest(|row| row.in_flight));
    series.waiting.push(highest(|row| row.waiting));
    series.connections.push(highest(|row| row.connections));
    series.lag_p99_us.push(Distribution::new(&lag_us, 0).quantile(0.99).map(|us| us as f64));
    Ok(())
}

fn push_ended(
    over_time: &mut OverTime,
    run: &Run,
    rows: &[&StoredSeries],
    dropped: u64,
    seen_s: f64,
    mut heat: impl FnMut(&Merged, u64),
) -> Result<(), RecordError> {
    let mut service = new_merged();
    let mut by_label: Vec<(u64, Merged)> = over_time.steps.iter().map(|_| (0, new_merged())).collect();
    let mut failed = BTreeMap::<&str, u64>::new();
    for row in rows {
        // Labels were checked when the run was read.
        let (failed_of_label, of_label_us) = &mut by_label[usize::from(row.label)];
        if row.outcome.is_error() {
            *failed.entry(row.outcome.name()).or_default() += row.count;
            *failed_of_label += row.count;
            continue;
        }
        let row_response = run.decode(&row.response_time_us)?;
        let row_service = run.decode(&row.service_time_us)?;
        merge_merged(of_label_us, &row_response);
        merge_merged(&mut service, &row_service);
        if row.measured {
            merge_merged(&mut over_time.response_time_us, &row_response);
            merge_merged(&mut over_time.service_time_us, &row_service);
        }
    }
    let errors: u64 = failed.values().sum();
    let mut response = new_merged();
    by_label.iter().for_each(|(_, of_label_us)| merge_merged(&mut response, of_label_us));
    heat(&response, errors + dropped);
    // Where nothing was recorded at all there is nothing to say; where load was, none ended is a figure: 0.
    let per_s = |count: u64| (seen_s >= RATE_SEEN_MIN_S).then(|| round(count as f64 / seen_s));
    let series = &mut over_time.series;
    series.achieved_per_s.push(per_s(response.len()));
    series.errors_per_s.push(per_s(errors));
    series.response_time_us.push(Distribution::new(&response, errors + dropped));
    series.service_time_us.push(Distribution::new(&service, errors + dropped));
    for (step, (failed, response)) in over_time.steps.iter_mut().zip(&by_label) {
        let times = Distribution::new(response, *failed);
        step.achieved_per_s.push(per_s(response.len()));
        step.p50_us.push(times.quantile(0.5).map(|us| us as f64));
        step.p99_us.push(times.quantile(0.99).map(|us| us as f64));
    }
    for (kind, values) in &mut over_time.errors {
        values.push(per_s(failed.get(kind).copied().unwrap_or(0)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn a_second_is_a_bin_and_the_cut_one_keeps_its_rate() {
        let (_dir, run) = test_run::airline();
        let axis = Axis::of(&run, 0);
        assert_eq!((axis.bin_s, axis.bins), (1, 5));
        let over_time = over_time(&run, axis).unwrap();
        let series = &over_time.series;
        assert_eq!(series.offered_per_s[1], Some(100.0));
        // The last interval is a tenth of a second long.
        assert!(series.achieved_per_s[4].is_some());
        assert_eq!(series.offered_per_s[4], Some(0.0));
        assert_eq!(series.response_time_us.p50.len(), 5);
        // Nothing was answered as it should in the frozen second, but failures ended.
        assert_eq!(series.response_time_us.p99[3], None);
        assert!(series.errors_per_s[3].unwrap() > 0.0);
        assert_eq!(over_time.errors.keys().copied().collect::<Vec<_>>(), ["status", "timeout"]);
    }

    #[test]
    fn bodies_that_were_decoded_are_there_where_there_were_any() {
        let (_dir, mut run) = test_run::airline();
        let axis = Axis::of(&run, 0);
        let none = over_time(&run, axis).unwrap().series;
        assert!(none.encoded_bytes_per_s.is_empty() && none.decoded_bytes_per_s.is_empty());
        let json = serde_json::to_value(&none).unwrap();
        assert!(json.get("decoded_bytes_per_s").is_none() && json.get("sent_bytes_per_s").is_some());
        let second = run.load.iter_mut().find(|row| row.start_us == 2_000_000).unwrap();
        (second.encoded_bytes, second.decoded_bytes) = (1_000, 5_000);
        let some = over_time(&run, axis).unwrap().series;
        assert_eq!(some.encoded_bytes_per_s[1..3], [Some(0.0), Some(1_000.0)]);
        assert_eq!(some.decoded_bytes_per_s[1..3], [Some(0.0), Some(5_000.0)]);
        assert_eq!(some.decoded_bytes_per_s.len(), axis.bins);
    }

    #[test]
    fn a_long_run_is_thinned_by_merging() {
        let (_dir, run) = test_run::long(5_000, 1);
        let axis = Axis::of(&run, 0);
        assert!(axis.bins <= BINS_MAX as usize && axis.bin_s == 3, "{axis:?}");
        let over_time = over_time(&run, axis).unwrap();
        assert_eq!(over_time.series.achieved_per_s.len(), axis.bins);
        // Seconds of 1, 2 and 3 ms in turn: each bin's median is the middle one, its longest the slowest.
        assert_eq!(over_time.series.response_time_us.p50[0], Some(2_000.0));
        let max = over_time.series.response_time_us.max[0].unwrap();
        assert!((3_000.0..3_003.0).contains(&max), "{max}");
        assert_eq!(over_time.series.achieved_per_s[0], Some(10.0));
        assert_eq!(axis.starts_s()[..3], [0, 3, 6]);
    }
}
