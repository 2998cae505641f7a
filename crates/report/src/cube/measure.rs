//! What is measured of a cell.

use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use crate::units::round;

tidemark_record::named! {
    /// What can be asked of a cell.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Measure {
        /// How many operations.
        Count = "count",
        /// Of these, those that failed.
        Errors = "errors",
        /// Operations per second, of the time that the cell covers.
        Throughput = "throughput",
        /// Mean duration; as in the report there is none where an operation failed.
        Mean = "mean",
        /// Upper median: in order, the one at place n div 2, counted from 0. Failed operations come last, and where one of these
        /// is at that place there is no median: it is not reached.
        Median = "median",
        /// In order, the one at place 95 n div 100, counted from 0.
        P95 = "p95",
        /// In order, the one at place 99 n div 100, counted from 0.
        P99 = "p99",
        /// The peak of the histogram of durations on a logarithmic scale; of good operations.
        Mode = "mode",
    }
}

impl Measure {
    /// The name of its column where a unit must be said.
    pub fn column(self) -> String {
        match self {
            Measure::Count | Measure::Errors => self.name().into(),
            Measure::Throughput => "throughput_per_s".into(),
            _ => format!("{}_ms", self.name()),
        }
    }

    /// Of a cell; microseconds, or a number. Nothing where it is not reached.
    pub fn of(self, measured: &Measured) -> Option<f64> {
        let time = |us: Option<u64>| us.map(|us| us as f64);
        match self {
            Measure::Count => Some(measured.count as f64),
            Measure::Errors => Some(measured.errors as f64),
            Measure::Throughput => Some(measured.throughput_per_s),
            Measure::Mean => measured.mean_us,
            Measure::Median => time(measured.median_us),
            Measure::P95 => time(measured.p95_us),
            Measure::P99 => time(measured.p99_us),
            Measure::Mode => time(measured.mode_us),
        }
    }

    /// Whether it is a duration.
    pub fn is_time(self) -> bool {
        !matches!(self, Measure::Count | Measure::Errors | Measure::Throughput)
    }
}

/// What was measured of a cell. A duration is none where it is not reached because operations failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub struct Measured {
    /// Operations.
    pub count: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Per second of the time that the cell covers.
    #[serde(rename = "per_s", serialize_with = "rounded")]
    #[schemars(with = "f64")]
    pub throughput_per_s: f64,
    /// Microseconds.
    #[serde(serialize_with = "rounded_or_none")]
    #[schemars(with = "Option<f64>")]
    pub mean_us: Option<f64>,
    /// Microseconds.
    pub median_us: Option<u64>,
    /// Microseconds.
    pub p95_us: Option<u64>,
    /// Microseconds.
    pub p99_us: Option<u64>,
    /// Microseconds; no page shows it.
    #[serde(skip)]
    pub mode_us: Option<u64>,
}

fn rounded<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(round(*value))
}

fn rounded_or_none<S: Serializer>(value: &Option<f64>, to: S) -> Result<S::Ok, S::Error> {
    value.map(round).serialize(to)
}

/// How precise durations are, for the most frequent of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precision {
    /// Microseconds, of which hardly two are the same: steps of a tenth count.
    Fine,
    /// Milliseconds: they count as they are.
    #[default]
    Coarse,
}

/// Where the steps of each power of ten begin: the series E24 of preferred numbers, each about a tenth more than the one
/// before it.
const STEPS: [u64; 25] =
    [10, 11, 12, 13, 15, 16, 18, 20, 22, 24, 27, 30, 33, 36, 39, 43, 47, 51, 56, 62, 68, 75, 82, 91, 100];

/// Where the step of a duration begins, and the next.
fn step_of(us: u64) -> (u64, u64) {
    if us < 10 {
        return (us, us + 1);
    }
    let mut power = 1;
    while us / power >= 100 {
        power *= 10;
    }
    let next = STEPS.partition_point(|begin| *begin <= us / power).clamp(1, STEPS.len() - 1);
    (STEPS[next - 1] * power, STEPS[next].saturating_mul(power))
}

/// The duration that most are near to: where most are for the width of their step on a logarithmic scale.
fn mode(sorted: &[(u64, u64)], precision: Precision) -> Option<u64> {
    let (mut mode, mut most) = (None, 0.0);
    let (mut step, mut of_step) = (None, 0);
    for &(us, times) in sorted {
        let (begin, next) = if precision == Precision::Fine { step_of(us) } else { (us, us + 1) };
        of_step = if step == Some(begin) { of_step + times } else { times };
        step = Some(begin);
        let width = match precision {
            // what took no time is a step like the first
            Precision::Fine => (next.max(2) as f64 / begin.max(1) as f64).ln(),
            Precision::Coarse => 1.0,
        };
        let density = of_step as f64 / width;
        if density > most {
            (mode, most) = (step, density);
        }
    }
    mode
}

/// Of durations in ascending order, with how often there is each; `beyond` more operations took longer than any bound.
pub(super) fn measure(
    sorted: &[(u64, u64)],
    beyond: u64,
    errors: u64,
    seconds: f64,
    precision: Precision,
) -> Measured {
    let count = sorted.iter().map(|(_, times)| times).sum::<u64>() + beyond;
    if count == 0 {
        return Measured::default();
    }
    let sum: f64 = sorted.iter().map(|&(us, times)| us as f64 * times as f64).sum();
    let at = |place: u64| {
        let mut before = 0;
        let found = sorted.iter().find(|(_, times)| {
            before += times;
            before > place
        });
        found.map(|(us, _)| *us)
    };
    Measured {
        count,
        errors,
        throughput_per_s: if seconds > 0.0 { count as f64 / seconds } else { 0.0 },
        mean_us: (beyond == 0).then(|| sum / count as f64),
        median_us: at(count / 2),
        // in this order it cannot overflow
        p95_us: at((u128::from(count) * 95 / 100) as u64),
        p99_us: at((u128::from(count) * 99 / 100) as u64),
        mode_us: mode(sorted, precision),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_twenty_lines_give_the_published_numbers() {
        let lines: Vec<(u64, u64)> = (1..=20).map(|ms| (ms * 1000, 1)).collect();
        let measured = measure(&lines, 0, 0, 60.0, Precision::Coarse);
        assert_eq!((measured.count, measured.median_us, measured.p95_us), (20, Some(11_000), Some(20_000)));
        assert_eq!(
            (measured.mean_us, measured.p99_us, measured.mode_us),
            (Some(10_500.0), Some(20_000), Some(1_000))
        );
    }

    #[test]
    fn what_failed_is_slower_than_every_bound() {
        // of 100 six failed: p95 is the 96th
        let good = [(1_000, 94)];
        let measured = measure(&good, 6, 6, 1.0, Precision::Fine);
        assert_eq!((measured.count, measured.errors, measured.median_us), (100, 6, Some(1_000)));
        assert_eq!((measured.p95_us, measured.p99_us, measured.mean_us), (None, None, None));
        let measured = measure(&[(1_000, 96)], 4, 4, 1.0, Precision::Fine);
        assert_eq!((measured.p95_us, measured.p99_us), (Some(1_000), None));
        let measured = measure(&[], 4, 4, 1.0, Precision::Fine);
        assert_eq!((measured.count, measured.median_us, measured.mode_us), (4, None, None));
        assert_eq!(serde_json::to_value(measured).unwrap()["mean_us"], serde_json::Value::Null);
    }

    #[test]
    fn the_mode_is_where_most_are_for_the_width_of_a_step_and_of_several_the_shortest() {
        let mode = |values: &[(u64, u64)], precision| mode(values, precision).unwrap();
        let values = [(1_210, 1), (1_260, 2), (1_299, 2), (5_000, 3), (5_001, 1)];
        assert_eq!(mode(&values, Precision::Fine), 1_200);
        assert_eq!(mode(&values, Precision::Coarse), 5_000);
        assert_eq!(mode(&[(7, 1), (9, 1)], Precision::Fine), 9, "a narrower step");
        assert_eq!(mode(&[(0, 2), (9_000, 1), (9_001, 1)], Precision::Fine), 8_200);
        // hardly anybody is fast
        let mut values: Vec<(u64, u64)> = (0..999).map(|n| (47_000 + n * 6, 100)).collect();
        values.insert(0, (5, 100));
        assert_eq!(mode(&values, Precision::Fine), 47_000);
        // evenly over the scale, on both sides of a power of ten: a step that is wide in microseconds is no peak
        let ramp: Vec<(u64, u64)> =
            (0..1_000).map(|n| (9_000 + n, 22)).chain((0..1_000).map(|n| (10_000 + n, 20))).collect();
        assert_eq!(mode(&ramp, Precision::Fine), 9_100);
    }

    #[test]
    fn steps_follow_each_other_without_a_gap() {
        let mut begin = 0;
        while begin < 10_000_000 {
            let (step, next) = step_of(begin);
            assert_eq!(step, begin);
            assert!(next > begin && step_of(next - 1) == (step, next), "{begin} {next}");
            begin = next;
        }
        assert_eq!(step_of(u64::from(u32::MAX)), (3_900_000_000, 4_300_000_000));
        step_of(u64::MAX);
        assert_eq!(measure(&[], 0, 0, 1.0, Precision::Fine), Measured::default());
    }
}
