//! The Universal Scalability Law (Gunther): what `n` cores or instances do is `n γ / (1 + α (n - 1) + β n (n - 1))`.
//!
//! In `n / X = γ⁻¹ (1 + α (n - 1) + β n (n - 1))` the coefficients are linear, so that least squares are exact; errors are
//! shares of the throughput, and weights follow from that. Neither coefficient is negative. Intervals are by profile
//! likelihood: all values of a coefficient with which the data are not much less likely.

use schemars::JsonSchema;
use serde::Serialize;

use crate::model::Contention;

/// Throughputs this near to each other do not tell how a system scales.
const NEAR: f64 = 0.05;
/// The largest size is at least so many times the smallest.
const SPREAD_LEAST: f64 = 1.5;
/// A fit is refused where it leaves the throughput at twice the largest size open by this factor.
const OPEN_MOST: f64 = 2.0;
/// A coefficient is looked for up to here.
const MOST: f64 = 1e3;

/// The throughput of a size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizePoint {
    /// Cores or instances.
    pub size: f64,
    /// Highest rate that held, a second.
    pub per_s: f64,
    /// Its standard error as a share of it, where that is known.
    pub error: Option<f64>,
}

/// A value with its interval of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct Interval {
    /// The likeliest value.
    pub value: f64,
    /// The interval's begin.
    pub low: f64,
    /// The interval's end.
    pub high: f64,
}

/// How a system scales.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Scalability {
    /// Throughput of size 1, a second.
    pub one_per_s: f64,
    /// Contention.
    pub alpha: Interval,
    /// Coherence.
    pub beta: Interval,
    /// The size beyond which more is less; absent where there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_size: Option<f64>,
}

impl Scalability {
    /// The throughput of a size, a second.
    pub fn per_s(&self, size: f64) -> f64 {
        let Contention { alpha, beta } = self.contention();
        size * self.one_per_s / (1.0 + alpha * (size - 1.0) + beta * size * (size - 1.0))
    }

    /// What it says of the cores of an instance.
    pub fn contention(&self) -> Contention {
        Contention { alpha: self.alpha.value, beta: self.beta.value }
    }
}

/// Fits the law to measured sizes.
///
/// # Errors
/// Why the data do not carry it, and which sizes to run.
pub fn scalability(points: &[SizePoint]) -> Result<Scalability, String> {
    let is_ok = |of: &SizePoint| {
        let error_ok = of.error.is_none_or(|error| error.is_finite() && error > 0.0);
        of.size.is_finite() && of.size > 0.0 && of.per_s.is_finite() && of.per_s > 0.0 && error_ok
    };
    if let Some(of) = points.iter().find(|of| !is_ok(of)) {
        return Err(format!("size {} has no throughput above 0", of.size));
    }
    let mut sizes: Vec<f64> = points.iter().map(|of| of.size).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.dedup();
    let refuse = |why: String, count: usize| Err(format!("{why}; run {}", more(&sizes, count)));
    let count = |of: usize| if of == 1 { "1 size".to_owned() } else { format!("{of} sizes") };
    if sizes.len() < 3 {
        return refuse(
            format!("{} cannot tell contention from coherence", count(sizes.len())),
            3 - sizes.len(),
        );
    }
    let range = |of: &mut dyn Iterator<Item = f64>| {
        of.fold((f64::MAX, 0.0f64), |(low, high), of| (low.min(of), high.max(of)))
    };
    let (smallest, largest) = range(&mut sizes.iter().copied());
    if largest / smallest < SPREAD_LEAST {
        let within = (largest / smallest - 1.0) * 100.0 - 1e-6;
        let why = format!(
            "{} within {:.0} % of each other say nothing about contention",
            count(sizes.len()),
            within.ceil()
        );
        return refuse(why, 2);
    }
    let (slowest, fastest) = range(&mut points.iter().map(|of| of.per_s));
    if fastest / slowest < 1.0 + NEAR {
        let why = format!(
            "{} whose limits are within {:.0} % of each other say nothing about contention: something else is the limit",
            count(sizes.len()),
            NEAR * 100.0
        );
        return refuse(why, 2);
    }
    let fit = Fit::new(points);
    let Some(threshold) = fit.threshold() else {
        return refuse(
            "3 sizes without an interval of their limits say nothing about their own error".to_owned(),
            1,
        );
    };
    let found = fit.scalability(threshold);
    let (low, high) = fit.reach(&found, 2.0 * largest);
    if high / low > OPEN_MOST || !high.is_finite() {
        let why = format!("these sizes leave open whether {} do {low:.0}/s or {high:.0}/s", 2.0 * largest);
        return refuse(why, 2);
    }
    Ok(found)
}

/// Names sizes that would tell more.
fn more(sizes: &[f64], count: usize) -> String {
    let (smallest, largest) = (sizes.first().copied().unwrap_or(1.0), sizes.last().copied().unwrap_or(1.0));
    let mut found: Vec<f64> = Vec::new();
    if smallest > 1.0 {
        found.push(1.0);
    }
    let mut next = largest * 2.0;
    while found.len() < count {
        found.push(next);
        next *= 2.0;
    }
    found.truncate(count);
    let named: Vec<String> = found.iter().map(f64::to_string).collect();
    let one = if count == 1 { "this one more" } else { "these more" };
    format!("{one}: {}", named.join(" and "))
}

/// What is fitted: rows of `n / X` by `1`, `n - 1` and `n (n - 1)`, with weights.
struct Fit {
    rows: Vec<([f64; 3], f64, f64)>,
    errors_known: bool,
}

impl Fit {
    fn new(points: &[SizePoint]) -> Fit {
        let errors_known = points.iter().all(|of| of.error.is_some());
        let row = |of: &SizePoint| {
            let (n, y) = (of.size, of.size / of.per_s);
            let error = if errors_known { of.error.unwrap_or(1.0) } else { 1.0 };
            ([1.0, n - 1.0, n * (n - 1.0)], y, (error * y).powi(-2))
        };
        Fit { rows: points.iter().map(row).collect(), errors_known }
    }

    /// Least squares over combinations of the columns with no negative coefficient: the coefficients and the sum of squares.
    fn least<const K: usize>(&self, columns: [[f64; 3]; K]) -> ([f64; K], f64) {
        let value =
            |column: &[f64; 3], row: &[f64; 3]| column.iter().zip(row).map(|(a, b)| a * b).sum::<f64>();
        let mut best = ([0.0; K], f64::INFINITY);
        // each set of columns that are not held at 0; the first is always in it
        for set in (1u32..1 << K).filter(|set| set & 1 == 1) {
            let used: Vec<usize> = (0..K).filter(|at| set >> at & 1 == 1).collect();
            let mut matrix = vec![vec![0.0; used.len() + 1]; used.len()];
            for (row, y, weight) in &self.rows {
                for (i, of) in used.iter().enumerate() {
                    let left = value(&columns[*of], row);
                    for (j, other) in used.iter().enumerate() {
                        matrix[i][j] += weight * left * value(&columns[*other], row);
                    }
                    matrix[i][used.len()] += weight * left * y;
                }
            }
            let Some(found) = solve(matrix).filter(|found| found.iter().all(|of| *of >= 0.0)) else {
                continue;
            };
            let mut all = [0.0; K];
            used.iter().zip(found).for_each(|(at, of)| all[*at] = of);
            let squares = self
                .squares(|row| columns.iter().zip(&all).map(|(column, of)| of * value(column, row)).sum());
            if squares < best.1 {
                best = (all, squares);
            }
        }
        best
    }

    fn squares(&self, predicts: impl Fn(&[f64; 3]) -> f64) -> f64 {
        self.rows.iter().map(|(row, y, weight)| weight * (predicts(row) - y).powi(2)).sum()
    }

    fn whole(&self) -> ([f64; 3], f64) {
        self.least([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    }

    /// The same with alpha given: what is left is beta.
    fn with_alpha(&self, alpha: f64) -> ([f64; 2], f64) {
        self.least([[1.0, alpha, 0.0], [0.0, 0.0, 1.0]])
    }

    /// The same with beta given: what is left is alpha.
    fn with_beta(&self, beta: f64) -> ([f64; 2], f64) {
        self.least([[1.0, 0.0, beta], [0.0, 1.0, 0.0]])
    }

    /// By how much the sum of squares may grow within an interval of 95 %. None where the data say nothing about their error.
    fn threshold(&self) -> Option<f64> {
        let free = self.rows.len().saturating_sub(3);
        let (_, squares) = self.whole();
        let spread = if free > 0 { squares / free as f64 } else { 0.0 };
        if self.errors_known {
            return Some(3.841 * spread.max(1.0));
        }
        (free > 0).then(|| student(free).powi(2) * spread)
    }

    fn scalability(&self, threshold: f64) -> Scalability {
        let ([one, alpha, beta], least) = self.whole();
        let interval = |value: f64, squares: &dyn Fn(f64) -> f64| {
            let outside = |of: f64| squares(of) > least + threshold;
            let low = if outside(0.0) { edge(value, 0.0, outside) } else { 0.0 };
            let mut far = (value * 2.0).max(1e-6);
            while !outside(far) && far < MOST {
                far *= 2.0;
            }
            let high = if outside(far) { edge(value, far, outside) } else { f64::INFINITY };
            Interval { value, low, high }
        };
        let (alpha, beta) = (alpha / one, beta / one);
        let best = ((1.0 - alpha) / beta).sqrt();
        Scalability {
            one_per_s: 1.0 / one,
            alpha: interval(alpha, &|of| self.with_alpha(of).1),
            beta: interval(beta, &|of| self.with_beta(of).1),
            best_size: (beta > 0.0 && alpha < 1.0 && best.is_finite()).then_some(best.max(1.0)),
        }
    }

    /// Which throughputs of a size go with the ends of the intervals.
    fn reach(&self, found: &Scalability, size: f64) -> (f64, f64) {
        let row = [1.0, size - 1.0, size * (size - 1.0)];
        let mut reach = (f64::INFINITY, 0.0f64);
        let mut add = |a: f64, b: f64, c: f64| {
            let per_s = size / (a * row[0] + b * row[1] + c * row[2]);
            reach = (reach.0.min(per_s), reach.1.max(per_s));
        };
        for alpha in [found.alpha.low, found.alpha.high].into_iter().map(|of| of.min(MOST)) {
            let ([one, other], _) = self.with_alpha(alpha);
            add(one, one * alpha, other);
        }
        for beta in [found.beta.low, found.beta.high].into_iter().map(|of| of.min(MOST)) {
            let ([one, other], _) = self.with_beta(beta);
            add(one, other, one * beta);
        }
        reach
    }
}

/// Where `outside` begins between a value inside and one outside.
fn edge(mut inside: f64, mut beyond: f64, outside: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..60 {
        let middle = (inside + beyond) / 2.0;
        if outside(middle) { beyond = middle } else { inside = middle }
    }
    inside
}

/// Solves linear equations by elimination with pivots. None where they have no single solution.
fn solve(mut matrix: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = matrix.len();
    for at in 0..count {
        let pivot =
            (at..count).max_by(|one, other| matrix[*one][at].abs().total_cmp(&matrix[*other][at].abs()))?;
        matrix.swap(at, pivot);
        if matrix[at][at].abs() < 1e-300 {
            return None;
        }
        let row = matrix[at].clone();
        for other in (0..count).filter(|other| *other != at) {
            let factor = matrix[other][at] / row[at];
            matrix[other].iter_mut().zip(&row).for_each(|(value, of)| *value -= factor * of);
        }
    }
    Some(matrix.iter().enumerate().map(|(at, row)| row[count] / row[at]).collect())
}

/// Student's t for an interval of 95 %.
fn student(free: usize) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    TABLE.get(free - 1).copied().unwrap_or(1.96 + 2.6 / free as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(alpha: f64, beta: f64, size: f64) -> f64 {
        1_000.0 * size / (1.0 + alpha * (size - 1.0) + beta * size * (size - 1.0))
    }

    fn points(sizes: &[f64], mut of: impl FnMut(f64) -> f64, error: Option<f64>) -> Vec<SizePoint> {
        sizes.iter().map(|size| SizePoint { size: *size, per_s: of(*size), error }).collect()
    }

    const SIZES: [f64; 6] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

    #[test]
    fn a_known_curve_is_found() {
        for (alpha, beta) in [(0.05, 0.001), (0.0, 0.002), (0.2, 0.0), (0.0, 0.0)] {
            let found = scalability(&points(&SIZES, |size| curve(alpha, beta, size), None)).unwrap();
            assert!(
                (found.alpha.value - alpha).abs() < 1e-6 && (found.beta.value - beta).abs() < 1e-6,
                "{found:?}"
            );
            assert!((found.one_per_s - 1_000.0).abs() < 1e-3);
            assert!((found.per_s(64.0) / curve(alpha, beta, 64.0) - 1.0).abs() < 1e-3);
        }
        let found = scalability(&points(&SIZES, |size| curve(0.05, 0.001, size), None)).unwrap();
        assert!((found.best_size.unwrap() - (0.95f64 / 0.001).sqrt()).abs() < 0.1);
    }

    /// Of 400 noisy measurements about 95 % have the truth in the interval, whether or not their error is known.
    #[test]
    fn intervals_hold_what_is_true_as_often_as_they_say() {
        let (alpha, beta, error) = (0.06, 0.002, 0.02);
        let mut rng = fastrand::Rng::with_seed(5);
        let mut normal = move || (0..12).map(|_| rng.f64()).sum::<f64>() - 6.0;
        for known in [Some(error), None] {
            let mut inside = [0, 0];
            for _ in 0..400 {
                let noisy = points(&SIZES, |size| curve(alpha, beta, size) * (1.0 + error * normal()), known);
                let fit = Fit::new(&noisy);
                let found = fit.scalability(fit.threshold().unwrap());
                let holds = |of: Interval, truth: f64| usize::from((of.low..=of.high).contains(&truth));
                inside[0] += holds(found.alpha, alpha);
                inside[1] += holds(found.beta, beta);
            }
            for count in inside {
                assert!((364..=396).contains(&count), "{known:?}: {inside:?}");
            }
        }
    }

    #[test]
    fn what_the_data_do_not_carry_is_refused_with_the_sizes_to_run() {
        let refused = |sizes: &[f64], of: &dyn Fn(f64) -> f64, error| {
            scalability(&points(sizes, of, error)).unwrap_err()
        };
        let linear = |size: f64| 100.0 * size;
        assert_eq!(
            refused(&[1.0, 2.0], &linear, Some(0.02)),
            "2 sizes cannot tell contention from coherence; run this one more: 4"
        );
        assert_eq!(
            refused(&[20.0, 20.5, 21.0], &linear, Some(0.02)),
            "3 sizes within 5 % of each other say nothing about contention; run these more: 1 and 42"
        );
        let flat = refused(&[1.0, 2.0, 4.0], &|size| 100.0 + size, Some(0.02));
        assert!(flat.contains("something else is the limit; run these more: 8 and 16"), "{flat}");
        let alone = refused(&[1.0, 2.0, 4.0], &linear, None);
        assert!(alone.ends_with("run this one more: 8"), "{alone}");
        let vague = refused(&[1.0, 2.0, 3.0], &linear, Some(0.3));
        assert!(vague.starts_with("these sizes leave open whether 6 do"), "{vague}");
        assert!(scalability(&points(&[1.0, 2.0, 4.0], linear, Some(0.02))).is_ok());
        assert!(refused(&[1.0, 2.0, 4.0], &|_| 0.0, None).contains("above 0"));
    }
}
