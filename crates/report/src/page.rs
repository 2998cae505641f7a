//! What `report.html` is made from: the run as its charts need it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::summary::Latency;
use tidemark_record::{DROPPED, Distribution, Manifest, Outcome, RecordError, Run};

use crate::bins::{self, Axis, LoadSeries, StepSeries, Values};
use crate::heatmap::HeatMap;
use crate::operations::{self, OperationSeries};
use crate::own::{self, OwnOverTime};
use crate::processes::{self, ProcessSeries};
use crate::stores::{self, StoreSeries};
use crate::tiers::{TierCpu, cpu_by_tier};

/// Version of this form.
pub const FORMAT: u32 = 1;
/// Points of the percentile curves each time the rest is halved.
const CURVE_POINTS_PER_HALVING: u32 = 5;

/// Everything that the page shows. All arrays over time have one entry for each of `seconds`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReportPage<'a> {
    /// [`FORMAT`].
    pub format: u32,
    /// `run.json`.
    pub manifest: &'a Manifest,
    /// What the times of users who wait for answers leave out; absent of other loads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closed_loop: Option<&'static str>,
    /// Good answers that were due in the window and came after it, or the other way round; absent where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub good_elsewhere: Vec<String>,
    /// Begin of each bin of the time axis, seconds since the run began.
    pub seconds: Vec<u64>,
    /// Width of a bin, seconds: 1, or more where a long run was thinned (by merging, not by averaging).
    pub bin_s: u64,
    /// Load and latency over time.
    pub series: LoadSeries,
    /// Each label over time.
    pub steps: Vec<StepSeries>,
    /// Percentile curves over the measured window, of all requests that were due.
    pub percentiles: Percentiles,
    /// Response times of the good answers over time, and how many requests had none.
    pub heatmap: HeatMap,
    /// What the system says that it did; empty where it tells nothing.
    pub operations: Vec<OperationSeries>,
    /// Kinds of operations that are not shown, the least frequent.
    pub operations_left_out: usize,
    /// What the processes used.
    pub processes: Vec<ProcessSeries>,
    /// CPU by tier over the measured window; absent where nothing was looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpu_by_tier: Vec<TierCpu>,
    /// What the stores said of themselves; absent where none was asked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<StoreSeries>,
    /// What the scenario measured itself; absent where it measures nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<OwnOverTime>,
    /// Failures by kind, with the first of each.
    pub errors: Vec<ErrorKind<'a>>,
    /// Failures per second by kind.
    pub error_series: BTreeMap<&'static str, Values>,
    /// What happened when.
    pub events: Vec<PageEvent<'a>>,
    /// The scenario's text.
    pub scenario: &'a str,
}

/// Percentile (0 to 100) and value (microseconds), ascending, up to the last that was reached.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct Percentiles {
    pub response_time_us: Vec<(f64, u64)>,
    pub service_time_us: Vec<(f64, u64)>,
}

/// The failures of one kind.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorKind<'a> {
    /// Its name.
    pub kind: &'static str,
    /// How many among the measured requests.
    pub count: u64,
    /// How long after they were due these were known; null for what was dropped.
    pub known_after_us: Latency,
    /// The first ones, warm-up included.
    pub examples: Vec<PageExample<'a>>,
}

/// One failure.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct PageExample<'a> {
    pub at_s: f64,
    pub label: &'a str,
    pub detail: &'a str,
}

/// One event.
#[derive(Debug, Serialize, JsonSchema)]
#[allow(missing_docs)]
pub struct PageEvent<'a> {
    pub at_s: f64,
    pub kind: &'a str,
    pub text: &'a str,
}

impl<'a> ReportPage<'a> {
    /// Makes it. Fails where a histogram of the run is damaged.
    pub fn of(run: &'a Run) -> Result<ReportPage<'a>, RecordError> {
        let (kinds, operations_left_out) = operations::most_frequent(run)?;
        let axis = Axis::of(run, kinds.len());
        let mut over_time = bins::over_time(run, axis)?;
        // The summary leaves out labels that only prepare the system; so do the charts.
        let summed = &run.manifest.summary.steps;
        over_time.steps.retain(|step| summed.iter().any(|of| of.label == step.label));
        let failed = run.manifest.summary.failed;
        let event = |event: &'a tidemark_record::Event| PageEvent {
            at_s: event.at_us as f64 / 1e6,
            kind: &event.kind,
            text: &event.text,
        };
        Ok(ReportPage {
            format: FORMAT,
            manifest: &run.manifest,
            closed_loop: crate::blocks::closed_loop(&run.manifest),
            good_elsewhere: crate::blocks::good_elsewhere(run),
            seconds: axis.starts_s(),
            bin_s: axis.bin_s,
            series: over_time.series,
            steps: over_time.steps,
            percentiles: Percentiles {
                response_time_us: curve(Distribution::new(&over_time.response_time_us, failed)),
                service_time_us: curve(Distribution::new(&over_time.service_time_us, failed)),
            },
            heatmap: over_time.heatmap,
            operations: operations::over_time(run, axis, kinds)?,
            operations_left_out,
            processes: processes::over_time(run, axis),
            cpu_by_tier: cpu_by_tier(&run.manifest, &run.samples),
            stores: stores::over_time(run, axis),
            own: own::over_time(run, axis)?,
            errors: errors(&run.manifest),
            error_series: over_time.errors,
            events: run.events.iter().map(event).collect(),
            scenario: &run.scenario,
        })
    }
}

/// The curve ends where the share of good answers does.
pub(crate) fn curve(times: Distribution<'_>) -> Vec<(f64, u64)> {
    // To the seventh decimal: enough for one in a billion.
    let points = times.curve(CURVE_POINTS_PER_HALVING).map(|(share, us)| ((share * 1e9).round() / 1e7, us));
    let mut points: Vec<(f64, u64)> = points.collect();
    points.dedup();
    points
}

/// The failures by kind; those with none and no example are left out.
pub(crate) fn errors(manifest: &Manifest) -> Vec<ErrorKind<'_>> {
    let kind = |outcome: Outcome| {
        let examples = manifest.error_examples.iter().filter(|example| example.outcome == outcome);
        let shown = examples.map(|example| PageExample {
            at_s: example.at_us as f64 / 1e6,
            label: manifest.labels.get(usize::from(example.label)).map_or("?", String::as_str),
            detail: &example.detail,
        });
        let of = manifest.summary.failures.iter().find(|failure| failure.kind == outcome.name());
        ErrorKind {
            kind: outcome.name(),
            known_after_us: of.map(|failure| failure.known_after_us.clone()).unwrap_or_default(),
            count: manifest.summary.errors.get(outcome.name()).copied().unwrap_or(0),
            examples: shown.collect(),
        }
    };
    let dropped = ErrorKind {
        kind: DROPPED,
        count: manifest.summary.dropped,
        known_after_us: Latency::default(),
        examples: Vec::new(),
    };
    let kinds = Outcome::ALL.into_iter().filter(|outcome| outcome.is_error()).map(kind);
    kinds.chain([dropped]).filter(|kind| kind.count > 0 || !kind.examples.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    /// The form is what the page's sources are written against: a change shows here first.
    /// `TIDEMARK_BLESS=1` writes the file anew.
    #[test]
    fn the_form_is_the_agreed_one() {
        let (dir, run) = test_run::airline();
        test_run::with_operations(dir.path());
        let page = ReportPage::of(&run).unwrap();
        let made = serde_json::to_string_pretty(&page).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/page.json");
        if std::env::var_os("TIDEMARK_BLESS").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let agreed = std::fs::read_to_string(path).unwrap();
        assert!(
            made == agreed,
            "tests/fixtures/page.json differs; look at the difference after TIDEMARK_BLESS=1"
        );
    }

    #[test]
    fn every_series_is_as_long_as_the_time_axis() {
        let (dir, run) = test_run::airline();
        test_run::with_operations(dir.path());
        let value = serde_json::to_value(ReportPage::of(&run).unwrap()).unwrap();
        let length = value["seconds"].as_array().unwrap().len();
        let mut seen = 0;
        let mut check = |value: &serde_json::Value| {
            for (name, values) in value.as_object().unwrap() {
                if let Some(values) = values.as_array() {
                    assert_eq!(values.len(), length, "{name}");
                    seen += 1;
                }
            }
        };
        check(&value["series"]);
        check(&value["series"]["response_time_us"]);
        check(&value["series"]["service_time_us"]);
        check(&value["error_series"]);
        value["steps"].as_array().unwrap().iter().for_each(&mut check);
        value["processes"].as_array().unwrap().iter().for_each(&mut check);
        value["operations"].as_array().unwrap().iter().for_each(&mut check);
        assert_eq!(seen, 10 + 5 + 5 + 2 + 3 * 3 + 3 * 11 + 2 * 4);
    }

    #[test]
    fn the_curves_agree_with_the_summary() {
        let (_dir, run) = test_run::airline();
        let page = ReportPage::of(&run).unwrap();
        let summary = &run.manifest.summary;
        let curve = &page.percentiles.response_time_us;
        let (last, us) = *curve.last().unwrap();
        assert!(
            (last / 100.0 - (1.0 - summary.failed_share())).abs() < 1e-8,
            "{last}: it ends with the good answers"
        );
        assert_eq!((Some(us), summary.response_time_us.max), (summary.good.response_time_us.max, None));
        assert!(curve.is_sorted());
        let median = curve.iter().find(|point| point.0 >= 50.0).unwrap();
        assert_eq!(Some(median.1), summary.response_time_us.p50);
    }

    #[test]
    fn a_run_that_ended_before_it_began_has_an_empty_page() {
        let (_dir, run) = test_run::long(0, 1);
        let value = serde_json::to_value(ReportPage::of(&run).unwrap()).unwrap();
        assert_eq!(value["seconds"], serde_json::json!([]));
        assert_eq!(value["heatmap"], serde_json::json!({ "bounds_us": [], "cells": [], "failed": [] }));
        assert_eq!(value["percentiles"]["response_time_us"], serde_json::json!([]));
        assert!(crate::text::summary(&run, Default::default()).contains("PASS"));
    }

    #[test]
    fn a_long_run_stays_small() {
        // as many as a page has: of a longer run they are thinned
        let (_dir, run) = test_run::long(2_000, 12);
        let page = ReportPage::of(&run).unwrap();
        assert_eq!((page.seconds.len(), page.bin_s), (2_000, 1));
        let size = serde_json::to_string(&page).unwrap().len();
        assert!(size < 3_000_000, "{size} bytes");
    }
}
