//! The figures of a run that are compared.

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::Manifest;
use tidemark_record::summary::{Good, Latency};

use crate::watched::counted_processes;

/// The step of a histogram's times, as a share.
const HISTOGRAM_STEP: f64 = 1e-3;

/// A figure of a run, by the words that objectives use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Figure {
    /// Good answers per second; of a load with a rate to what was due in the window, whenever they came.
    Rate,
    /// Median of the response time.
    P50,
    /// Its 90th percentile.
    P90,
    /// Its 99th percentile.
    P99,
    /// CPU time for each request, of all processes that the run started or watched.
    Cpu,
    /// Most memory of the same.
    Memory,
    /// Mean size of a good answer's body. More or fewer bytes are neither better nor worse.
    Bytes,
}

/// What a run says of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// Its value, above 0: answers per second, microseconds, bytes.
    Value(f64),
    /// Not reached: too many requests failed, and a failure is slower than every bound.
    NotReached,
    /// Not measured: nothing was watched, or there were too few requests.
    Unknown,
}

impl Reading {
    fn of(value: f64) -> Reading {
        if value.is_finite() && value > 0.0 { Reading::Value(value) } else { Reading::Unknown }
    }

    /// The natural logarithm, where there is a value.
    pub(crate) fn log(self) -> Option<f64> {
        match self {
            Reading::Value(value) => Some(value.ln()),
            Reading::NotReached | Reading::Unknown => None,
        }
    }
}

impl Figure {
    /// The figures of all requests together.
    pub const OF_ALL: [Figure; 7] =
        [Figure::Rate, Figure::P50, Figure::P90, Figure::P99, Figure::Cpu, Figure::Memory, Figure::Bytes];
    /// The figures of a label.
    pub const OF_LABEL: [Figure; 5] = [Figure::Rate, Figure::P50, Figure::P90, Figure::P99, Figure::Bytes];

    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Figure::Rate => "rate",
            Figure::P50 => "p50",
            Figure::P90 => "p90",
            Figure::P99 => "p99",
            Figure::Cpu => "cpu",
            Figure::Memory => "memory",
            Figure::Bytes => "bytes",
        }
    }

    /// The figure with this word. `median` is p50, as in objectives.
    pub fn from_word(word: &str) -> Option<Figure> {
        let word = if word == "median" { "p50" } else { word };
        Figure::OF_ALL.into_iter().find(|figure| figure.word() == word)
    }

    /// Its name for a person.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Cpu => "CPU per request",
            Figure::Bytes => "bytes per good answer",
            figure => figure.word(),
        }
    }

    /// Whether more of it is worse.
    pub fn more_is_worse(self) -> bool {
        self != Figure::Rate
    }

    /// Whether neither more nor less of it is better.
    pub fn is_neutral(self) -> bool {
        self == Figure::Bytes
    }

    /// What a report says where too many requests failed for a value.
    pub(crate) fn not_reached(self) -> &'static str {
        if self == Figure::Rate { "0, no good answer" } else { "not reached" }
    }

    /// Whether it is about the speed or the number of answers.
    pub fn is_speed(self) -> bool {
        !matches!(self, Figure::Cpu | Figure::Memory | Figure::Bytes)
    }

    /// Which quantile of the response time it is, 0 to 1.
    pub fn quantile(self) -> Option<f64> {
        match self {
            Figure::P50 => Some(0.5),
            Figure::P90 => Some(0.9),
            Figure::P99 => Some(0.99),
            Figure::Rate | Figure::Cpu | Figure::Memory | Figure::Bytes => None,
        }
    }

    /// Its value in a run, of all requests or of a label.
    pub fn read(self, manifest: &Manifest, label: Option<&str>) -> Reading {
        let summary = &manifest.summary;
        if let Some(label) = label {
            let Some(step) = summary.steps.iter().find(|step| step.label == label) else {
                return Reading::Unknown;
            };
            let failed = step.errors.values().sum();
            return match self.quantile() {
                Some(share) => percentile(share, &step.response_time_us, step.requests, failed),
                None if self == Figure::Rate => rate(step.rate_per_s(), step.requests),
                None if self == Figure::Bytes => body_bytes(&step.good),
                None => Reading::Unknown,
            };
        }
        match self {
            Figure::Rate => rate(summary.rate_per_s(), summary.due()),
            Figure::Cpu => {
                let cpu_s: f64 = counted_processes(manifest).map(|process| process.cpu_s).sum();
                Reading::of(cpu_s * 1e6 / summary.requests.max(1) as f64)
            }
            Figure::Memory => {
                let bytes: u64 = counted_processes(manifest).map(|process| process.rss_bytes_max).sum();
                Reading::of(bytes as f64)
            }
            Figure::Bytes => body_bytes(&summary.good),
            Figure::P50 | Figure::P90 | Figure::P99 => {
                let share = self.quantile().unwrap_or(1.0);
                percentile(share, &summary.response_time_us, summary.due(), summary.failed)
            }
        }
    }

    /// How much the logarithm of a ratio may be off, as times are whole microseconds and histograms have steps. `values` are
    /// the least of both sides.
    pub(crate) fn step(self, least: f64) -> f64 {
        if self.quantile().is_some() { (1.0 / least.max(1.0)).max(HISTOGRAM_STEP) } else { 0.0 }
    }
}

/// Good answers a second. With none of so many requests the rate is less than any number.
fn rate(per_s: f64, due: u64) -> Reading {
    if per_s == 0.0 && due > 0 { Reading::NotReached } else { Reading::of(per_s) }
}

/// The mean size of a good answer's body, at least one byte: empty answers have a ratio to others then.
fn body_bytes(good: &Good) -> Reading {
    good.body_bytes_mean.map_or(Reading::Unknown, |bytes| Reading::of(bytes.max(1.0)))
}

fn percentile(share: f64, of: &Latency, due: u64, failed: u64) -> Reading {
    let value = match share {
        s if s < 0.6 => of.p50,
        s if s < 0.95 => of.p90,
        _ => of.p99,
    };
    match value {
        // less than a microsecond is one
        Some(us) => Reading::of(us.max(1) as f64),
        None if failed as f64 > (1.0 - share) * due as f64 => Reading::NotReached,
        None => Reading::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_run;

    #[test]
    fn no_good_answer_is_a_rate_that_is_not_reached() {
        let (_dir, run) = test_run::airline();
        let mut manifest = run.manifest;
        (manifest.summary.achieved_per_s, manifest.summary.steps[0].achieved_per_s) = (0.0, 0.0);
        let label = manifest.summary.steps[0].label.clone();
        assert_eq!(Figure::Rate.read(&manifest, None), Reading::NotReached);
        assert_eq!(Figure::Rate.read(&manifest, Some(&label)), Reading::NotReached);
        manifest.summary.steps[0].requests = 0;
        assert_eq!(Figure::Rate.read(&manifest, Some(&label)), Reading::Unknown, "nobody asked");
    }

    #[test]
    fn the_rate_of_a_load_with_a_rate_counts_what_was_answered_behind_the_window() {
        let (_dir, run) = test_run::airline();
        let mut manifest = run.manifest;
        let label = manifest.summary.steps[0].label.clone();
        // answers take three of the window's four seconds
        (manifest.summary.achieved_per_s, manifest.summary.achieved_due_per_s) = (10.0, Some(40.0));
        let step = &mut manifest.summary.steps[0];
        (step.achieved_per_s, step.achieved_due_per_s) = (5.0, Some(20.0));
        assert_eq!(Figure::Rate.read(&manifest, None), Reading::Value(40.0));
        assert_eq!(Figure::Rate.read(&manifest, Some(&label)), Reading::Value(20.0));
        // none of them in time
        manifest.summary.achieved_per_s = 0.0;
        assert_eq!(Figure::Rate.read(&manifest, None), Reading::Value(40.0));
        manifest.summary.achieved_due_per_s = Some(0.0);
        assert_eq!(Figure::Rate.read(&manifest, None), Reading::NotReached);
    }

    #[test]
    fn figures_are_those_of_the_summary() {
        let (_dir, run) = test_run::airline();
        let mut manifest = run.manifest;
        assert_eq!(Figure::Rate.read(&manifest, None), Reading::Value(manifest.summary.achieved_per_s));
        let p50 = manifest.summary.response_time_us.p50.unwrap() as f64;
        assert_eq!(Figure::P50.read(&manifest, None), Reading::Value(p50));
        assert_eq!(
            Figure::P99.read(&manifest, None),
            Reading::NotReached,
            "more than one of a hundred failed"
        );
        let label = manifest.summary.steps[0].label.clone();
        let rate = manifest.summary.steps[0].achieved_per_s;
        assert_eq!(Figure::Rate.read(&manifest, Some(&label)), Reading::Value(rate));
        assert_eq!(Figure::Cpu.read(&manifest, Some(&label)), Reading::Unknown);
        assert_eq!(Figure::Rate.read(&manifest, Some("no such")), Reading::Unknown);
        assert_eq!(Figure::Bytes.read(&manifest, None), Reading::Unknown, "a run of an earlier version");
        manifest.summary.good.body_bytes_mean = Some(2_000.0);
        manifest.summary.steps[0].good.body_bytes_mean = Some(0.0);
        assert_eq!(Figure::Bytes.read(&manifest, None), Reading::Value(2_000.0));
        assert_eq!(Figure::Bytes.read(&manifest, Some(&label)), Reading::Value(1.0), "empty");
        manifest.summary.processes.retain(|process| process.name == tidemark_record::DRIVER);
        assert_eq!(Figure::Memory.read(&manifest, None), Reading::Unknown, "nothing was started");
        manifest.summary.response_time_us.p99 = None;
        manifest.summary.failed = 0;
        assert_eq!(Figure::P99.read(&manifest, None), Reading::Unknown, "too few requests");
    }

    #[test]
    fn words_are_read_back() {
        for figure in Figure::OF_ALL {
            assert_eq!(Figure::from_word(figure.word()), Some(figure));
            assert_eq!(serde_json::to_value(figure).unwrap(), figure.word());
        }
        assert_eq!((Figure::from_word("median"), Figure::from_word("p95")), (Some(Figure::P50), None));
    }

    #[test]
    fn short_times_are_told_apart_by_whole_microseconds() {
        assert_eq!((Figure::P50.step(50.0), Figure::P99.step(50_000.0)), (0.02, HISTOGRAM_STEP));
        assert_eq!(Figure::Cpu.step(5.0), 0.0);
    }
}
