//! Zipf's distribution, exact and without a table: rejection-inversion (W. Hörmann and G. Derflinger, "Rejection-inversion
//! to generate variates from monotone discrete distributions", ACM TOMACS 6 (3), 1996).

/// The exponent that YCSB takes.
pub(super) const YCSB_EXPONENT: f64 = 0.99;

/// No larger exponent is told from it: all draws are 1.
const EXPONENT_MAX: f64 = 1e6;

/// Whole numbers from 1 to n, each in proportion to its power with the negative exponent.
pub(super) struct Zipf {
    n: f64,
    exponent: f64,
}

impl Zipf {
    /// `n` is at least 1; an exponent below 0, or that is no number, is 0.
    pub(super) fn new(n: f64, exponent: f64) -> Self {
        let exponent = if exponent.is_nan() { 0.0 } else { exponent.clamp(0.0, EXPONENT_MAX) };
        Zipf { n, exponent }
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

/// Numbers of a [`Table`] that are classes of their own.
const SINGLE: u64 = 256;
/// A class further on is wider than its first number divided by this by no more than one.
const FINENESS: u64 = 16;
/// Largest n of a table: what a real number holds exactly.
const TABLE_MAX: f64 = 9e15;
/// Draws of a larger table before the distribution is made anew for a draw.
const TRIES: u32 = 32;
/// Two to the power of 64.
const SPAN: f64 = 18_446_744_073_709_551_616.0;

/// The same distribution for constant n and exponent, several times as fast, and as exact: rejection under steps. Numbers are in
/// classes, each drawn in proportion to its first number's weight times its width (by the alias method, M. D. Vose, "A linear
/// algorithm for generating random numbers with a given distribution", IEEE TSE 17 (9), 1991); one of its numbers is drawn evenly,
/// and taken with its weight as a share of the first one's. Most are taken without a power being computed.
#[derive(Debug)]
pub struct Table {
    classes: Box<[Class]>,
    exponent: f64,
}

#[derive(Debug)]
struct Class {
    /// Below this, of 2^64, a draw of this entry is of this class, otherwise of the other.
    keep: u64,
    other: u32,
    /// How many numbers.
    width: u32,
    /// The first of them.
    low: u64,
    /// Below this, of 2^64, any of them is taken.
    sure: u64,
}

impl Table {
    /// `n` from 1 on; none where it is too large for a table.
    pub fn new(n: f64, exponent: f64) -> Option<Self> {
        if !(1.0..=TABLE_MAX).contains(&n) {
            return None;
        }
        let (n, exponent) = (n as u64, exponent.max(0.0));
        let weight = |k: u64| (k as f64).powf(-exponent);
        let mut classes = Vec::new();
        let mut areas = Vec::new();
        let mut low = 1;
        while low <= n {
            let wanted = if low <= SINGLE { 1 } else { low / FINENESS };
            let width = wanted.min(n - low + 1).min(u64::from(u32::MAX));
            let least = weight(low + width - 1) / weight(low);
            // a little less, for what rounding adds
            let sure = (least * (1.0 - 1e-12) * SPAN) as u64;
            classes.push(Class { keep: u64::MAX, other: 0, width: width as u32, low, sure });
            areas.push(weight(low) * width as f64);
            low += width;
        }
        let scale = areas.len() as f64 / areas.iter().sum::<f64>();
        areas.iter_mut().for_each(|area| *area *= scale);
        let (mut small, mut large): (Vec<_>, Vec<_>) = (0..areas.len()).partition(|at| areas[*at] < 1.0);
        while let (Some(from), Some(to)) = (small.pop(), large.last().copied()) {
            classes[from].keep = (areas[from] * SPAN) as u64;
            classes[from].other = to as u32;
            areas[to] -= 1.0 - areas[from];
            if areas[to] < 1.0 {
                large.pop();
                small.push(to);
            }
        }
        Some(Table { classes: classes.into(), exponent })
    }

    /// A number, by random bits.
    pub fn pick(&self, mut bits: impl FnMut() -> u64) -> i64 {
        // the whole part of a random share times n, and the share that is left of it
        let split = |bits: u64, n: u64| {
            let wide = u128::from(bits) * u128::from(n);
            ((wide >> 64) as u64, wide as u64)
        };
        loop {
            let (entry, rest) = split(bits(), self.classes.len() as u64);
            let own = &self.classes[entry as usize];
            // which of the two is a matter of chance, which no processor foresees: hence no branch
            let at = std::hint::select_unpredictable(rest < own.keep, entry as usize, own.other as usize);
            let class = &self.classes[at];
            if class.width == 1 {
                return class.low as i64;
            }
            let (offset, rest) = split(bits(), class.width.into());
            let k = class.low + offset;
            if rest < class.sure || (rest as f64) < SPAN * (k as f64 / class.low as f64).powf(-self.exponent)
            {
                return k as i64;
            }
        }
    }

    /// A number up to n, which is less than that of the table or as large.
    pub(crate) fn pick_up_to(&self, n: u64, random: &mut fastrand::Rng) -> i64 {
        for _ in 0..TRIES {
            let k = self.pick(|| random.u64(..));
            if k as u64 <= n {
                return k;
            }
        }
        Zipf::new(n.max(1) as f64, self.exponent).pick(|| random.f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_billion_all_are_within_it() {
        let mut random = fastrand::Rng::with_seed(1);
        let zipf = Zipf::new(1e9, YCSB_EXPONENT);
        let picks: Vec<_> = (0..10_000).map(|_| zipf.pick(|| random.f64())).collect();
        assert!(picks.iter().all(|k| (1..=1_000_000_000).contains(k)));
        assert!(picks.iter().any(|k| *k > 1_000_000) && picks.iter().filter(|k| **k == 1).count() > 200);
        assert_eq!(Zipf::new(1.0, 2.0).pick(|| random.f64()), 1);
        assert!(Zipf::new(9.0, f64::NAN).pick(|| 0.0) >= 1);
        assert_eq!(Zipf::new(9.0, f64::INFINITY).pick(|| random.f64()), 1, "and it comes to an end");
    }
}
