//! Whether a number rises from interval to interval, and how a load changes.

/// Student's t that one in a thousand exceeds, by degrees of freedom from two on.
const T_BY_CHANCE: [f64; 10] = [22.33, 10.21, 7.17, 5.89, 5.21, 4.79, 4.50, 4.30, 4.14, 4.02];
/// What one in a thousand exceeds of the normal distribution.
const Z_BY_CHANCE: f64 = 3.09;
/// A whole number scatters by at least so much, as it is rounded at either end of its interval: the variance.
const ROUNDED: f64 = 1.0 / 6.0;

/// A load that changes within the window.
#[derive(Clone, Copy)]
pub(super) struct Change {
    /// How many times as much is due at the end.
    pub times: f64,
    /// Requests that were due in one interval, and in one as long.
    pub from: f64,
    pub to: f64,
}

impl Change {
    /// Of a Poisson number that is taken so many times, where these are known from two others.
    pub fn variance(&self, counted: f64) -> f64 {
        let of_times = 1.0 / self.from + 1.0 / self.to.max(1.0);
        self.times.powi(2) * (counted + 1.0 + counted.powi(2) * of_times)
    }
}

/// How steadily a number rises from interval to interval.
pub(super) struct Steadiness {
    /// The mean rise, in standard deviations of a mean of so many.
    pub t: f64,
    /// Degrees of freedom.
    freedom: usize,
}

impl Steadiness {
    /// Of a number at the ends of intervals of one length.
    pub fn of(counts: &[f64]) -> Steadiness {
        let rises: Vec<f64> = counts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let length = rises.len() as f64;
        let freedom = rises.len().saturating_sub(1);
        let mean = rises.iter().sum::<f64>() / length;
        let squares: f64 = rises.iter().map(|rise| (rise - mean).powi(2)).sum();
        let variance = (squares / freedom as f64).max(ROUNDED);
        Steadiness { t: if freedom == 0 { 0.0 } else { mean / (variance / length).sqrt() }, freedom }
    }

    pub fn is_beyond_chance(&self) -> bool {
        let Some(at) = self.freedom.checked_sub(2) else { return false };
        let beyond = |z: f64, n: f64| z + (z.powi(3) + z) / (4.0 * n);
        let bound = T_BY_CHANCE.get(at).copied();
        self.t > bound.unwrap_or_else(|| beyond(Z_BY_CHANCE, self.freedom as f64))
    }
}
