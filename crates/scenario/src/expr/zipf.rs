//! Zipf's distribution, exact and without a table: rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion
//! to generate variates from monotone discrete distributions", ACM TOMACS 6 (3), 1996).

/// The exponent that YCSB takes.
pub(super) const YCSB_EXPONENT: f64 = 0.99;

/// Whole numbers from 1 to n, each in proportion to its power with the negative exponent.
pub(super) struct Zipf {
    n: f64,
    exponent: f64,
}

impl Zipf {
    /// `n` is at least 1; an exponent below 0, or that is no number, is 0.
    pub(super) fn new(n: f64, exponent: f64) -> Self {
        Zipf { n, exponent: exponent.max(0.0) }
    }

    /// A number, by even numbers of `random` from 0 to below 1.
    pub(super) fn pick(&self, mut random: impl FnMut() -> f64) -> i64 {
        let (first, last) = (self.integral(1.5) - 1.0, self.integral(self.n + 0.5));
        let squeeze = 2.0 - self.inverse(self.integral(2.5) - self.density(2.0));
        loop {
            let at = last + random() * (first - last);
            let x = self.inverse(at);
            let k = (x + 0.5).floor().clamp(1.0, self.n);
            if k - x <= squeeze || at >= self.integral(k + 0.5) - self.density(k) {
                return k as i64;
            }
        }
    }

    fn density(&self, x: f64) -> f64 {
        (-self.exponent * x.ln()).exp()
    }

    /// The integral of the density from 1 to x.
    fn integral(&self, x: f64) -> f64 {
        let log = x.ln();
        let t = (1.0 - self.exponent) * log;
        let ratio = if t.abs() > 1e-8 { t.exp_m1() / t } else { 1.0 + t / 2.0 * (1.0 + t / 3.0) };
        ratio * log
    }

    fn inverse(&self, x: f64) -> f64 {
        let t = (x * (1.0 - self.exponent)).max(-1.0);
        let ratio = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t * (0.5 - t / 3.0) };
        (ratio * x).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pearson's test, each number a class of its own: the statistic is far below what one in a million runs has.
    #[test]
    fn each_number_comes_as_often_as_it_is_to() {
        for exponent in [0.0, 0.5, 0.99, 1.0, 1.5] {
            let (n, picks) = (50usize, 200_000);
            let mut random = fastrand::Rng::with_seed(7);
            let zipf = Zipf::new(n as f64, exponent);
            let mut counts = vec![0f64; n];
            for _ in 0..picks {
                counts[zipf.pick(|| random.f64()) as usize - 1] += 1.0;
            }
            let weights: Vec<f64> = (1..=n).map(|k| (k as f64).powf(-exponent)).collect();
            let sum: f64 = weights.iter().sum();
            let statistic: f64 = counts
                .iter()
                .zip(&weights)
                .map(|(count, weight)| {
                    let expected = f64::from(picks) * weight / sum;
                    (count - expected).powi(2) / expected
                })
                .sum();
            // 49 degrees of freedom: one in a million is above 111
            assert!(statistic < 111.0, "exponent {exponent}: {statistic}");
        }
    }

    #[test]
    fn of_a_billion_all_are_within_it() {
        let mut random = fastrand::Rng::with_seed(1);
        let zipf = Zipf::new(1e9, YCSB_EXPONENT);
        let picks: Vec<_> = (0..10_000).map(|_| zipf.pick(|| random.f64())).collect();
        assert!(picks.iter().all(|k| (1..=1_000_000_000).contains(k)));
        assert!(picks.iter().any(|k| *k > 1_000_000) && picks.iter().filter(|k| **k == 1).count() > 200);
        assert_eq!(Zipf::new(1.0, 2.0).pick(|| random.f64()), 1);
        assert!(Zipf::new(9.0, f64::NAN).pick(|| 0.0) >= 1);
    }
}
