//! What is measured of a cell.

use serde::{Serialize, Serializer};

use crate::units::round;

/// What can be asked of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// How many operations.
    Count,
    /// Of these, those that failed.
    Errors,
    /// Operations per second, of the time that the cell covers.
    Throughput,
    /// Mean duration.
    Mean,
    /// Upper median: in order, the one at place n div 2, counted from 0.
    Median,
    /// In order, the one at place 95 n div 100, counted from 0.
    P95,
    /// In order, the one at place 99 n div 100, counted from 0.
    P99,
    /// The peak of the histogram of durations.
    Mode,
}

impl Measure {
    /// All of them.
    pub const ALL: [Measure; 8] = [
        Measure::Count,
        Measure::Errors,
        Measure::Throughput,
        Measure::Mean,
        Measure::Median,
        Measure::P95,
        Measure::P99,
        Measure::Mode,
    ];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Measure::Count => "count",
            Measure::Errors => "errors",
            Measure::Throughput => "throughput",
            Measure::Mean => "mean",
            Measure::Median => "median",
            Measure::P95 => "p95",
            Measure::P99 => "p99",
            Measure::Mode => "mode",
        }
    }

    /// The name of its column where a unit must be said.
    pub fn column(self) -> String {
        match self {
            Measure::Count | Measure::Errors => self.name().into(),
            Measure::Throughput => "throughput_per_s".into(),
            _ => format!("{}_ms", self.name()),
        }
    }

    /// Of a cell; microseconds, or a number.
    pub fn of(self, measured: &Measured) -> f64 {
        match self {
            Measure::Count => measured.count as f64,
            Measure::Errors => measured.errors as f64,
            Measure::Throughput => measured.throughput_per_s,
            Measure::Mean => measured.mean_us,
            Measure::Median => measured.median_us as f64,
            Measure::P95 => measured.p95_us as f64,
            Measure::P99 => measured.p99_us as f64,
            Measure::Mode => measured.mode_us as f64,
        }
    }

    /// Whether it is a duration.
    pub fn is_time(self) -> bool {
        !matches!(self, Measure::Count | Measure::Errors | Measure::Throughput)
    }
}

/// What was measured of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Measured {
    /// Operations.
    pub count: u64,
    /// Of these, those that failed.
    pub errors: u64,
    /// Per second of the time that the cell covers.
    #[serde(rename = "per_s", serialize_with = "rounded")]
    pub throughput_per_s: f64,
    /// Microseconds.
    #[serde(serialize_with = "rounded")]
    pub mean_us: f64,
    /// Microseconds.
    pub median_us: u64,
    /// Microseconds.
    pub p95_us: u64,
    /// Microseconds.
    pub p99_us: u64,
    /// Microseconds; no page shows it.
    #[serde(skip)]
    pub mode_us: u64,
}

fn rounded<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(round(*value))
}

/// How precise durations are, for the most frequent of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precision {
    /// Microseconds, of which hardly two are the same: the first two digits count.
    Fine,
    /// Milliseconds: they count as they are.
    #[default]
    Coarse,
}

/// The first two digits, and how many durations begin with these.
fn two_digits(us: u64) -> (u64, u64) {
    let mut width = 1;
    while us / width >= 100 {
        width *= 10;
    }
    (us / width * width, width)
}

/// Of durations in ascending order, with how often there is each.
pub(super) fn measure(sorted: &[(u64, u64)], errors: u64, seconds: f64, precision: Precision) -> Measured {
    let count: u64 = sorted.iter().map(|(_, times)| times).sum();
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
        found.map_or(0, |(us, _)| *us)
    };
    // steps become ten times as wide at each power of ten: what counts is how many there are for their width
    let (mut mode, mut most) = (0, 0.0);
    let (mut step, mut of_step) = (0, 0);
    for &(us, times) in sorted {
        let (this, width) = if precision == Precision::Fine { two_digits(us) } else { (us, 1) };
        of_step = if this == step { of_step + times } else { times };
        step = this;
        let density = of_step as f64 / width as f64;
        if density > most {
            (mode, most) = (step, density);
        }
    }
    Measured {
        count,
        errors,
        throughput_per_s: if seconds > 0.0 { count as f64 / seconds } else { 0.0 },
        mean_us: sum / count as f64,
        median_us: at(count / 2),
        // in this order it cannot overflow
        p95_us: at((u128::from(count) * 95 / 100) as u64),
        p99_us: at((u128::from(count) * 99 / 100) as u64),
        mode_us: mode,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_twenty_lines_give_the_published_numbers() {
        let lines: Vec<(u64, u64)> = (1..=20).map(|ms| (ms * 1000, 1)).collect();
        let measured = measure(&lines, 0, 60.0, Precision::Coarse);
        assert_eq!((measured.count, measured.median_us, measured.p95_us), (20, 11_000, 20_000));
        assert_eq!((measured.mean_us, measured.p99_us, measured.mode_us), (10_500.0, 20_000, 1_000));
    }

    #[test]
    fn the_mode_is_the_most_frequent_and_of_several_the_smallest() {
        let mode = |values: &[(u64, u64)], precision| measure(values, 0, 1.0, precision).mode_us;
        let values = [(1_210, 1), (1_260, 2), (1_299, 2), (5_000, 3), (5_001, 1)];
        assert_eq!(mode(&values, Precision::Fine), 1_200);
        assert_eq!(mode(&values, Precision::Coarse), 5_000);
        assert_eq!(mode(&[(7, 1), (9, 1)], Precision::Fine), 7);
        // as many below 10 ms as above, within a tenth of the width
        let ramp: Vec<(u64, u64)> =
            (0..1_000).map(|n| (9_000 + n, 2)).chain((0..1_000).map(|n| (10_000 + n, 1))).collect();
        assert_eq!(mode(&ramp, Precision::Fine), 9_000, "a wide step is no peak");
        assert_eq!(two_digits(4_294_967_295), (4_200_000_000, 100_000_000));
        assert_eq!(measure(&[], 0, 1.0, Precision::Fine), Measured::default());
    }
}
