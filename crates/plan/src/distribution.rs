//! Distributions of times: what a server works, what a user thinks.

use std::sync::Arc;

use fastrand::Rng;

/// A time in seconds, drawn anew each time.
#[derive(Debug, Clone, PartialEq)]
pub enum Distribution {
    /// Always the same.
    Constant(f64),
    /// Exponential, by its mean.
    Exponential(f64),
    /// Lognormal, by its mean and its coefficient of variation.
    LogNormal {
        /// Mean, seconds.
        mean_s: f64,
        /// Standard deviation as a share of the mean.
        cv: f64,
    },
    /// As measured.
    Measured(Arc<Measured>),
    /// A share of the time that the request drew from [`Model::request`](crate::Model::request): a long request is long in
    /// every tier.
    Share(f64),
}

impl Distribution {
    /// Draws a time; `request_s` is what the request itself drew.
    pub(crate) fn draw(&self, rng: &mut Rng, request_s: f64) -> f64 {
        match self {
            Distribution::Constant(value) => *value,
            Distribution::Exponential(mean) => exponential(rng) * mean,
            Distribution::LogNormal { mean_s, cv } => {
                let variance = (1.0 + cv * cv).ln();
                mean_s * (variance.sqrt() * normal(rng) - variance / 2.0).exp()
            }
            Distribution::Measured(measured) => measured.draw(rng),
            Distribution::Share(share) => share * request_s,
        }
    }

    /// The mean in seconds; `request_s` is the mean of what requests draw.
    pub fn mean(&self, request_s: f64) -> f64 {
        match self {
            Distribution::Constant(mean)
            | Distribution::Exponential(mean)
            | Distribution::LogNormal { mean_s: mean, .. } => *mean,
            Distribution::Measured(measured) => measured.mean_s(),
            Distribution::Share(share) => share * request_s,
        }
    }

    /// The same shape with every time multiplied.
    pub fn scaled(&self, factor: f64) -> Distribution {
        match self {
            Distribution::Constant(value) => Distribution::Constant(value * factor),
            Distribution::Exponential(mean) => Distribution::Exponential(mean * factor),
            Distribution::LogNormal { mean_s, cv } => {
                Distribution::LogNormal { mean_s: mean_s * factor, cv: *cv }
            }
            Distribution::Measured(measured) => Distribution::Measured(Arc::new(measured.scaled(factor))),
            Distribution::Share(share) => Distribution::Share(share * factor),
        }
    }

    /// What is wrong with it.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        let ok = |value: f64| value.is_finite() && (0.0..=TIME_MAX_S).contains(&value);
        let is_ok = match self {
            Distribution::Constant(value) | Distribution::Exponential(value) => ok(*value),
            Distribution::LogNormal { mean_s, cv } => {
                ok(*mean_s) && cv.is_finite() && (0.0..=100.0).contains(cv)
            }
            Distribution::Measured(measured) => ok(measured.mean_s()),
            Distribution::Share(share) => ok(*share),
        };
        (!is_ok).then_some("a time is not between 0 and a million seconds")
    }
}

/// Longest time that is reckoned with, seconds.
pub(crate) const TIME_MAX_S: f64 = 1e6;

/// Exponential with the mean 1.
pub(crate) fn exponential(rng: &mut Rng) -> f64 {
    -(1.0 - rng.f64()).ln()
}

/// Normal with mean 0 and deviation 1, by Box and Muller.
fn normal(rng: &mut Rng) -> f64 {
    (-2.0 * (1.0 - rng.f64()).ln()).sqrt() * (std::f64::consts::TAU * rng.f64()).cos()
}

/// Times as they were measured: a histogram. Drawn in constant time by Walker's alias method.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    values: Vec<f64>,
    /// For each value how likely it stands for itself, else which other one it stands for.
    alias: Vec<(f64, u32)>,
    mean_s: f64,
    second_moment: f64,
}

/// A measured distribution keeps so many values at most; neighbours are merged beyond.
const VALUES_MAX: usize = 1 << 14;

impl Measured {
    /// Of values in seconds and how often each was seen. None where nothing was.
    pub fn new(seen: impl IntoIterator<Item = (f64, u64)>) -> Option<Measured> {
        let usable = |(value, count): &(f64, u64)| value.is_finite() && *value >= 0.0 && *count > 0;
        let mut seen: Vec<(f64, u64)> = seen.into_iter().filter(usable).collect();
        if seen.is_empty() {
            return None;
        }
        seen.sort_by(|one, other| one.0.total_cmp(&other.0));
        let at_once = seen.len().div_ceil(VALUES_MAX);
        let merged: Vec<(f64, u64)> = seen
            .chunks(at_once)
            .map(|of| {
                let count: u64 = of.iter().map(|(_, count)| count).sum();
                let sum: f64 = of.iter().map(|(value, count)| value * *count as f64).sum();
                (sum / count as f64, count)
            })
            .collect();
        let total: f64 = merged.iter().map(|(_, count)| *count as f64).sum();
        let moment = |power: i32| -> f64 {
            merged.iter().map(|(value, count)| value.powi(power) * *count as f64).sum::<f64>() / total
        };
        let weights = merged.iter().map(|(_, count)| *count as f64 * merged.len() as f64 / total).collect();
        Some(Measured {
            mean_s: moment(1),
            second_moment: moment(2),
            alias: alias(weights),
            values: merged.into_iter().map(|(value, _)| value).collect(),
        })
    }

    /// The mean, seconds.
    pub fn mean_s(&self) -> f64 {
        self.mean_s
    }

    /// The mean of the squares, as Pollaczek and Khinchine need it.
    pub fn second_moment(&self) -> f64 {
        self.second_moment
    }

    fn scaled(&self, factor: f64) -> Measured {
        Measured {
            values: self.values.iter().map(|value| value * factor).collect(),
            alias: self.alias.clone(),
            mean_s: self.mean_s * factor,
            second_moment: self.second_moment * factor * factor,
        }
    }

    fn draw(&self, rng: &mut Rng) -> f64 {
        let at = rng.f64() * self.values.len() as f64;
        let index = (at as usize).min(self.values.len() - 1);
        let (own, other) = self.alias[index];
        self.values[if at - index as f64 <= own { index } else { other as usize }]
    }
}

/// Walker's table of weights whose mean is 1.
fn alias(mut weights: Vec<f64>) -> Vec<(f64, u32)> {
    let mut table: Vec<(f64, u32)> = (0..weights.len()).map(|index| (1.0, index as u32)).collect();
    let (mut small, mut large): (Vec<usize>, Vec<usize>) =
        (0..weights.len()).partition(|index| weights[*index] < 1.0);
    while let (Some(less), Some(more)) = (small.pop(), large.last().copied()) {
        table[less] = (weights[less], more as u32);
        weights[more] -= 1.0 - weights[less];
        if weights[more] < 1.0 {
            large.pop();
            small.push(more);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(of: &Distribution) -> (f64, f64) {
        let mut rng = Rng::with_seed(7);
        let drawn: Vec<f64> = (0..400_000).map(|_| of.draw(&mut rng, 1.0)).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / drawn.len() as f64;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn what_is_drawn_has_the_mean_and_the_spread_that_was_asked_for() {
        let measured = Measured::new([(1.0, 700), (5.0, 200), (20.0, 100)]).unwrap();
        let spread = (measured.second_moment() / measured.mean_s().powi(2) - 1.0).sqrt();
        for (of, cv) in [
            (Distribution::Constant(0.2), 0.0),
            (Distribution::Exponential(0.2), 1.0),
            (Distribution::LogNormal { mean_s: 0.2, cv: 1.5 }, 1.5),
            (Distribution::Measured(Arc::new(measured)), spread),
        ] {
            let (mean, found) = moments(&of);
            assert!((mean / of.mean(1.0) - 1.0).abs() < 0.01, "{of:?}: {mean}");
            assert!((found - cv).abs() < 0.03 * cv.max(0.01), "{of:?}: {found}");
            assert!((moments(&of.scaled(3.0)).0 / mean - 3.0).abs() < 0.05);
        }
    }

    #[test]
    fn values_beyond_the_bound_are_merged_and_keep_their_mean() {
        let measured = Measured::new((0..100_000).map(|at| (f64::from(at), 1))).unwrap();
        assert!(measured.values.len() <= VALUES_MAX);
        assert!((measured.mean_s() - 49_999.5).abs() < 1e-6);
        assert_eq!(Measured::new([(f64::NAN, 1), (1.0, 0)]), None);
    }
}
