//! What a scenario measured itself: as a table for people, and over time.

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::summary::{Own, Spread};
use tidemark_record::{OwnKind, Ratio, RatioForm, RecordError, Run, StoredOwn};

use crate::bins::{Axis, RATE_SEEN_MIN_S, Values};
use crate::units::{compact, percent, three_digits, trim_zeros};

/// Columns behind the metric's name.
pub(crate) const HEAD: [&str; 8] = ["count", "sum", "per s", "mean", "p50", "p90", "p99", "max"];
/// One more, where there was no number at times.
pub(crate) const NO_NUMBER: &str = "no number";

/// The metric with its unit.
pub(crate) fn name(of: &Own) -> String {
    if of.unit.is_empty() { of.metric.clone() } else { format!("{} ({})", of.metric, of.unit) }
}

/// Its figures, as [`HEAD`] names them; of a counter there is no spread.
pub(crate) fn figures(of: &Own) -> [String; 8] {
    let Spread { mean, p50, p90, p99, max, .. } = of.values.clone().unwrap_or_default();
    let [mean, p50, p90, p99, max] = [mean, p50, p90, p99, max].map(number);
    [compact(of.count as f64), number(Some(of.sum)), number(Some(of.per_s)), mean, p50, p90, p99, max]
}

/// A number with three digits, or a dash where there is none; whole ones without a point.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value.abs() < 999.5 => trim_zeros(&three_digits(value)).to_owned(),
        Some(value) => compact(value),
    }
}

/// What came of a ratio.
pub(crate) fn ratio(of: &Ratio) -> String {
    match (of.value, of.form) {
        (None, _) => "unknown".into(),
        (Some(value), RatioForm::Percent) => percent(value),
        (Some(_), RatioForm::Plain) => number(of.value),
    }
}

/// Series of each metric on a page.
pub(crate) const SERIES_EACH: u64 = 4;

/// One metric over time; null where nothing was measured.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct OwnOverTime {
    pub metric: String,
    pub unit: String,
    pub kind: OwnKind,
    /// How many numbers there were each second; of a counter how much it counted.
    pub per_s: Values,
    /// Percentiles of the numbers; absent of a counter.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub p50: Values,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub p99: Values,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub max: Values,
}

/// Every metric over time.
pub(crate) fn over_time(run: &Run, axis: Axis) -> Result<Vec<OwnOverTime>, RecordError> {
    // how much of each bin was seen: its last one may be cut short
    let mut seen: Vec<Option<(u64, u64)>> = vec![None; axis.bins];
    for row in &run.load {
        let (start, end) = seen[axis.bin(row.start_us)].get_or_insert((row.start_us, row.end_us));
        (*start, *end) = ((*start).min(row.start_us), (*end).max(row.end_us));
    }
    let mut all = Vec::with_capacity(run.manifest.metrics.len());
    for (index, metric) in (0u16..).zip(&run.manifest.metrics) {
        let mut rows: Vec<Vec<&StoredOwn>> = vec![Vec::new(); axis.bins];
        let of_it = run.own.iter().filter(|row| row.metric == index);
        of_it
            .filter(|row| axis.bin(row.start_us) < axis.bins)
            .for_each(|row| rows[axis.bin(row.start_us)].push(row));
        let (name, unit) = (metric.name.clone(), metric.unit.clone());
        let [per_s, p50, p99, max] = [(); 4].map(|()| Values::new());
        let mut of = OwnOverTime { metric: name, unit, kind: metric.kind, per_s, p50, p99, max };
        for (rows, seen) in rows.into_iter().zip(&seen) {
            let values = run.own_values(rows)?;
            let seen_s = seen.map_or(0.0, |(start, end)| (end - start) as f64 / 1e6);
            let counted = match metric.kind {
                OwnKind::Histogram => values.count as f64,
                OwnKind::Counter => values.sum,
            };
            of.per_s.push((seen_s >= RATE_SEEN_MIN_S).then(|| counted / seen_s));
            if metric.kind == OwnKind::Histogram {
                of.p50.push(values.quantile(0.5));
                of.p99.push(values.quantile(0.99));
                of.max.push((values.count > 0).then_some(values.max));
            }
        }
        all.push(of);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn a_metric_over_time_is_as_long_as_the_time_axis() {
        let (_dir, run) = test_run::measuring();
        let of = over_time(&run, Axis { bin_s: 1, bins: 2 }).unwrap();
        assert_eq!((of[0].metric.as_str(), &of[0].per_s), ("cart_items", &vec![Some(3.0), None]));
        assert_eq!((&of[0].p50, &of[0].max), (&vec![Some(4.0), None], &vec![Some(7.0), None]));
        assert_eq!((&of[1].per_s, of[1].p50.len()), (&vec![Some(12.5), None], 0));
        let page = serde_json::to_value(crate::page::ReportPage::of(&run).unwrap()).unwrap();
        assert_eq!(page["own"][1]["unit"], "EUR");
    }

    #[test]
    fn numbers_are_short() {
        let shown = |value| number(Some(value));
        assert_eq!([shown(3.0), shown(0.35), shown(19.99), shown(0.0)], ["3", "0.35", "20", "0"]);
        assert_eq!([shown(999.4), shown(12_345.0), number(None)], ["999", "12.3k", "-"]);
    }
}
