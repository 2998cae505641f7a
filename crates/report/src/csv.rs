//! The run over time as CSV: a row for each interval over all labels, and a row for each interval and label.
//!
//! An interval is a second, cut at the edges of phases. `label` is empty in the rows over all labels.
//! What is known of the whole load only (offered, dropped, in flight, waiting, connections) is empty in the rows of
//! a label. Times are microseconds, of the good answers; where there was none, the
//! field is empty. Rates of an interval of a few milliseconds say nothing and are empty; the counts are there.
//!
//! Where the time of the good answers went stands behind the times: how many had a connection made for them, and means over
//! those that had each part; an answer in one piece has no transfer.
//!
//! `phase` names the phase of the load in which the interval lies; it is empty after the last.
//!
//! What the scenario measured itself has columns behind all others, `own_NAME_count` and on, in the rows over all labels.

use std::collections::BTreeMap;
use std::fmt::Write;

use tidemark_record::manifest::Phase;
use tidemark_record::{
    Distribution, Merged, Outcome, OwnKind, OwnMetric, RecordError, Run, StoredLoad, StoredOwn, StoredParts,
    StoredSeries, merge_merged, new_merged,
};

use crate::bins::RATE_SEEN_MIN_S;
use crate::units::trim_zeros;

/// Columns before those of the errors by kind.
const COLUMNS: [&str; 13] = [
    "start_s",
    "end_s",
    "measured",
    "label",
    "offered_per_s",
    "achieved_per_s",
    "errors_per_s",
    "dropped_per_s",
    "in_flight",
    "waiting",
    "connections",
    "requests",
    "errors",
];
/// Percentiles of both times.
const QUANTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)];

/// Where the time of the good answers went.
const PARTS: [&str; 5] = [
    "connects_for_requests",
    "connect_us_mean",
    "handshake_us_mean",
    "first_byte_us_mean",
    "transfer_us_mean",
];

/// The whole file, with a head line.
pub fn over_time(run: &Run) -> Result<String, RecordError> {
    let mut out = head(&run.manifest.metrics);
    for ((start_us, end_us), rows) in intervals(run) {
        let line = Line { start_us, end_us, in_window: rows.in_window() };
        line.write(&mut out, run, "", (&rows.series, &rows.parts), Some(&rows))?;
        for (label, name) in (0..).zip(&run.manifest.labels) {
            let of_label: Vec<_> = rows.series.iter().copied().filter(|row| row.label == label).collect();
            let parts: Vec<_> = rows.parts.iter().copied().filter(|row| row.label == label).collect();
            if !of_label.is_empty() {
                line.write(&mut out, run, name, (&of_label, &parts), None)?;
            }
        }
    }
    Ok(out)
}

fn kinds() -> impl Iterator<Item = Outcome> {
    Outcome::ALL.into_iter().filter(|outcome| outcome.is_error())
}

fn head(metrics: &[OwnMetric]) -> String {
    let mut columns: Vec<String> = COLUMNS.map(str::to_owned).to_vec();
    columns.extend(kinds().map(|kind| format!("errors_{}", kind.name())));
    for time in ["response_time_us", "service_time_us"] {
        columns.push(format!("{time}_mean"));
        columns.extend(QUANTILES.map(|(name, _)| format!("{time}_{name}")));
        columns.push(format!("{time}_max"));
    }
    columns.extend(PARTS.map(str::to_owned));
    columns.push("phase".to_owned());
    for OwnMetric { name, kind, .. } in metrics {
        columns.extend(own_columns(*kind).map(|column| quoted(&format!("own_{name}_{column}"))));
    }
    columns.join(",") + "\n"
}

/// The columns of a metric of the scenario's own, percentiles first among those that a counter has not.
fn own_columns(kind: OwnKind) -> impl Iterator<Item = &'static str> {
    let spread = QUANTILES.map(|(name, _)| name).into_iter().chain(["max"]);
    ["count", "sum", "no_number"].into_iter().chain(spread.filter(move |_| kind == OwnKind::Histogram))
}

/// What was stored of an interval.
#[derive(Default)]
struct Rows<'r> {
    series: Vec<&'r StoredSeries>,
    load: Vec<&'r StoredLoad>,
    own: Vec<&'r StoredOwn>,
    parts: Vec<&'r StoredParts>,
}

impl Rows<'_> {
    fn in_window(&self) -> bool {
        self.load.iter().any(|row| row.in_window) || self.series.iter().any(|row| row.in_window)
    }
}

/// The rows by interval, in order of time; a straggling thread's rows join those of the others.
fn intervals(run: &Run) -> BTreeMap<(u64, u64), Rows<'_>> {
    let mut intervals = BTreeMap::<(u64, u64), Rows<'_>>::new();
    for row in &run.load {
        intervals.entry((row.start_us, row.end_us)).or_default().load.push(row);
    }
    for row in &run.series {
        intervals.entry((row.start_us, row.end_us)).or_default().series.push(row);
    }
    for row in &run.parts {
        intervals.entry((row.start_us, row.end_us)).or_default().parts.push(row);
    }
    for row in &run.own {
        intervals.entry((row.start_us, row.end_us)).or_default().own.push(row);
    }
    intervals
}

struct Line {
    start_us: u64,
    end_us: u64,
    in_window: bool,
}

impl Line {
    fn write(
        &self,
        out: &mut String,
        run: &Run,
        label: &str,
        (series, parts): (&[&StoredSeries], &[&StoredParts]),
        whole: Option<&Rows<'_>>,
    ) -> Result<(), RecordError> {
        let length_s = (self.end_us - self.start_us) as f64 / 1e6;
        let per_s = |count: u64| match length_s {
            s if s >= RATE_SEEN_MIN_S => number(count as f64 / s),
            _ => String::new(),
        };
        let of_load =
            |of: fn(&StoredLoad) -> u64| whole.map(|rows| rows.load.iter().map(|row| of(row)).sum::<u64>());
        let rate_of_load = |of| of_load(of).map_or_else(String::new, per_s);
        let count_of_load = |of| of_load(of).map_or_else(String::new, |count| count.to_string());
        let requests: u64 = series.iter().map(|row| row.count).sum();
        let failed = |kind: Outcome| -> u64 {
            series.iter().filter(|row| row.outcome == kind).map(|row| row.count).sum()
        };
        let errors: u64 = kinds().map(failed).sum();
        let mut fields = vec![
            number(self.start_us as f64 / 1e6),
            number(self.end_us as f64 / 1e6),
            self.in_window.to_string(),
            quoted(label),
            rate_of_load(|row| row.offered),
            per_s(requests - errors),
            per_s(errors),
            rate_of_load(|row| row.dropped),
            count_of_load(|row| row.in_flight),
            count_of_load(|row| row.waiting),
            count_of_load(|row| row.connections),
            requests.to_string(),
            errors.to_string(),
        ];
        fields.extend(kinds().map(|kind| failed(kind).to_string()));
        let (mut response, mut service) = (new_merged(), new_merged());
        for row in series.iter().filter(|row| !row.outcome.is_error()) {
            merge_merged(&mut response, &run.decode(&row.response_time_us)?);
            merge_merged(&mut service, &run.decode(&row.service_time_us)?);
        }
        let failed = errors + of_load(|row| row.dropped).unwrap_or(0);
        times(&mut fields, Distribution::new(&response, failed));
        times(&mut fields, Distribution::new(&service, failed));
        let parts = run.part_times(parts.iter().copied())?;
        let mean = |times: &Merged| if times.is_empty() { String::new() } else { number(times.mean()) };
        fields.push(parts.connect_us.len().to_string());
        let first_byte_us = parts.first_bytes(&service);
        let all = [&parts.connect_us, &parts.handshake_us, &first_byte_us, &parts.transfer_us];
        fields.extend(all.map(mean));
        let is_in = |phase: &&Phase| phase.start_us <= self.start_us && self.end_us <= phase.end_us;
        fields.push(run.manifest.phases.iter().find(is_in).map_or_else(String::new, |of| quoted(&of.name)));
        for (metric, OwnMetric { kind, .. }) in (0..).zip(&run.manifest.metrics) {
            match whole {
                Some(rows) => {
                    own(&mut fields, run, *kind, rows.own.iter().copied().filter(|row| row.metric == metric))?
                }
                None => fields.extend(own_columns(*kind).map(|_| String::new())),
            }
        }
        let _ = writeln!(out, "{}", fields.join(","));
        Ok(())
    }
}

/// Empty what was not reached.
fn times(fields: &mut Vec<String>, times: Distribution<'_>) {
    let text = |us: Option<u64>| us.map_or_else(String::new, |us| us.to_string());
    fields.push(times.mean().map_or_else(String::new, number));
    fields.extend(QUANTILES.map(|(_, quantile)| text(times.quantile(quantile))));
    fields.push(text(times.max()));
}

/// What was measured of a metric of the scenario's own; empty what there was nothing to take from.
fn own<'r>(
    fields: &mut Vec<String>,
    run: &Run,
    kind: OwnKind,
    rows: impl Iterator<Item = &'r StoredOwn>,
) -> Result<(), RecordError> {
    let of = run.own_values(rows)?;
    let text = |value: Option<f64>| value.map_or_else(String::new, number);
    fields.extend([of.count.to_string(), number(of.sum), of.no_number.to_string()]);
    if kind == OwnKind::Histogram {
        fields.extend(QUANTILES.map(|(_, quantile)| text(of.quantile(quantile))));
        fields.push(text((of.count > 0).then_some(of.max)));
    }
    Ok(())
}

/// With as many decimals as are needed, and never in the form with an exponent.
fn number(value: f64) -> String {
    trim_zeros(&format!("{value:.6}")).to_owned()
}

/// A field as RFC 4180 wants it: between quotes where commas, quotes or line ends stand in it.
pub(crate) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    fn read(text: &str) -> Vec<BTreeMap<String, String>> {
        let mut reader = csv_reader::Reader::from_reader(text.as_bytes());
        let head = reader.headers().unwrap().clone();
        let row = |row: Result<csv_reader::StringRecord, _>| {
            let row = row.unwrap();
            head.iter().map(str::to_owned).zip(row.iter().map(str::to_owned)).collect()
        };
        reader.records().map(row).collect()
    }

    #[test]
    fn each_second_has_a_row_over_all_labels_and_one_for_each_that_ended() {
        let (_dir, run) = test_run::airline();
        let rows = read(&over_time(&run).unwrap());
        let all: Vec<_> = rows.iter().filter(|row| row["label"].is_empty()).collect();
        assert_eq!(
            all.iter().map(|row| row["start_s"].as_str()).collect::<Vec<_>>(),
            ["0", "1", "2", "3", "4"]
        );
        assert_eq!(
            all.iter().map(|row| row["measured"] == "true").collect::<Vec<_>>(),
            [false, true, true, true, false]
        );
        let second = all[1];
        assert_eq!(
            (&*second["offered_per_s"], &*second["in_flight"], &*second["connections"]),
            ("100", "4", "100")
        );
        let names = |start: &str| -> Vec<String> {
            rows.iter().filter(|row| row["start_s"] == start).map(|row| row["label"].clone()).collect()
        };
        assert_eq!(names("1"), ["", "Login", "Query Flight"]);
        // the sum of the labels is the row over all
        let sum: u64 = rows
            .iter()
            .filter(|row| row["start_s"] == "1" && !row["label"].is_empty())
            .map(|row| row["requests"].parse::<u64>().unwrap())
            .sum();
        assert_eq!(second["requests"], sum.to_string());
        let label = rows.iter().find(|row| row["label"] == "Login" && row["start_s"] == "1").unwrap();
        assert_eq!((&*label["offered_per_s"], &*label["errors"], &*label["errors_status"]), ("", "1", "1"));
        assert_eq!(label["response_time_us_p50"], "2311");
    }

    #[test]
    fn a_second_without_answers_has_counts_and_no_times() {
        let (_dir, run) = test_run::airline();
        let rows = read(&over_time(&run).unwrap());
        let frozen = rows.iter().find(|row| row["start_s"] == "3" && row["label"].is_empty()).unwrap();
        assert_eq!(
            (&*frozen["errors_timeout"], &*frozen["dropped_per_s"], &*frozen["waiting"]),
            ("8", "4", "34")
        );
        assert_eq!((&*frozen["response_time_us_p99"], &*frozen["service_time_us_max"]), ("", ""));
    }

    #[test]
    fn labels_are_quoted_and_numbers_have_no_exponent() {
        let (_dir, mut run) = test_run::airline();
        run.manifest.labels[0] = "a,\"b\"\nc".into();
        let text = over_time(&run).unwrap();
        assert!(read(&text).iter().any(|row| row["label"] == "a,\"b\"\nc"), "{text}");
        assert_eq!([number(0.0), number(1e9), number(0.000_25)], ["0", "1000000000", "0.00025"]);
    }

    #[test]
    fn what_the_scenario_measured_itself_stands_in_the_rows_over_all_labels() {
        let (_dir, run) = test_run::measuring();
        let rows = read(&over_time(&run).unwrap());
        let [all, label] = &rows[..] else { panic!("{rows:?}") };
        let of = |row: &BTreeMap<String, String>, names: [&str; 4]| names.map(|name| row[name].clone());
        let names =
            ["own_cart_items_count", "own_cart_items_p50", "own_cart_items_max", "own_cart_items_no_number"];
        assert_eq!(of(all, names), ["3", "4", "7", "2"]);
        assert_eq!(all["own_spent_sum"], "12.5");
        assert!(!all.contains_key("own_spent_p50"), "a counter has none");
        assert_eq!((label["label"].as_str(), of(label, names).concat().as_str()), ("Buy", ""));
    }

    #[test]
    fn a_damaged_histogram_is_an_error() {
        let (_dir, mut run) = test_run::airline();
        run.series[0].response_time_us = Default::default();
        assert!(over_time(&run).unwrap_err().to_string().contains("cut off"));
    }
}
