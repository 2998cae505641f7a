//! How sure a ratio is: plain numbers in, intervals out.
//!
//! A figure of two sides is compared by the logarithm of its ratio, so that twice and half are equally far from 1.
//!
//! - **Several runs of each side** show what differs *between* runs: placement, caches, neighbours. Where they ran in
//!   rounds ([`Estimate::of_rounds`]) each round is one number, the ratio of what ran beside each other, and what the
//!   machine did meanwhile cancels out. Where they did not ([`Estimate::of_runs`]) the sides are two samples.
//! - **One run of each** shows only what differs *within* a run ([`within`]); whoever shows that says so.
//!
//! Many figures are compared at once, so [`together_with`] corrects for their number: of all differences that are claimed at
//! most 1 in 20 is none, on average (Benjamini and Hochberg, Journal of the Royal Statistical Society B 57, 1995), and
//! where nothing differs at all the chance of any claim is 1 in 20. Intervals are of the same level (Benjamini and
//! Yekutieli, Journal of the American Statistical Association 100, 2005), so that an interval leaves 1 out exactly where
//! a difference is claimed. Figures of one run rise and fall together, which is what the first of these allows.
//!
//! A comparison that looks at its rounds while it goes on would find by chance what is not there. [`Looks`] shares the 1 in 20
//! out among the looks: little for each on the way, the rest for the last (Haybittle, British Journal of Radiology 44,
//! 1971; Peto and others, British Journal of Cancer 34, 1976). The parts add up to no more than the whole, so nothing
//! depends on how looks depend on each other, or on why it ends.

pub(crate) mod change;
pub(crate) mod counts;
#[cfg(test)]
mod trials;
pub(crate) mod within;

use tidemark_limit::student;

/// How often anything is claimed that is not so.
pub(crate) const LEVEL: f64 = 0.05;
/// A ratio that is nearer to 1 than this is no difference worth a word, however sure it is.
pub(crate) const FLOOR: f64 = 0.01;
/// Fewest rounds, or runs of both sides together, from which anything is claimed.
pub(crate) const LEAST: usize = 3;
/// Numbers that are the same to the last digit still have this standard error.
const ERROR_MIN: f64 = 1e-6;

/// The logarithm of a ratio, and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// Natural logarithm of the ratio.
    pub log: f64,
    /// Its standard error.
    pub error: f64,
    /// Degrees of freedom of the standard error.
    pub freedom: f64,
    /// How much of it may be that the figures are whole numbers: nothing is known below that.
    pub step: f64,
    /// How many numbers it is made of: rounds, or runs of both sides.
    pub count: usize,
}

impl Estimate {
    /// Of the logarithms of the ratio in each round. None where there are fewer than [`LEAST`].
    pub(crate) fn of_rounds(logs: &[f64]) -> Option<Estimate> {
        if logs.len() < LEAST || logs.iter().any(|log| !log.is_finite()) {
            return None;
        }
        let freedom = (logs.len() - 1) as f64;
        let error = (squares(logs) / freedom / logs.len() as f64).sqrt().max(ERROR_MIN);
        Some(Estimate { log: mean(logs), error, freedom, step: 0.0, count: logs.len() })
    }

    /// Of the logarithms of a figure in the runs of one side, against those of the other. None where there are fewer than
    /// [`LEAST`] together.
    ///
    /// Welch's (Biometrika 34, 1947) where each side has several runs. Where one has a single run, how much runs differ is
    /// known from the other, and taken to be the same.
    pub(crate) fn of_runs(of: &[f64], to: &[f64]) -> Option<Estimate> {
        let count = of.len() + to.len();
        let is_known = of.iter().chain(to).all(|log| log.is_finite());
        if count < LEAST || of.is_empty() || to.is_empty() || !is_known {
            return None;
        }
        let log = mean(of) - mean(to);
        let (sizes, spreads) = ([of.len() as f64, to.len() as f64], [squares(of), squares(to)]);
        let (variance, freedom) = if of.len() == 1 || to.len() == 1 {
            let freedom = sizes[0] + sizes[1] - 2.0;
            ((spreads[0] + spreads[1]) / freedom * (1.0 / sizes[0] + 1.0 / sizes[1]), freedom)
        } else {
            let parts = [0, 1].map(|side| spreads[side] / (sizes[side] - 1.0) / sizes[side]);
            let sum = parts[0] + parts[1];
            let by_part = parts[0].powi(2) / (sizes[0] - 1.0) + parts[1].powi(2) / (sizes[1] - 1.0);
            // sides that do not spread at all leave the degrees of freedom that there are at least
            let least = sizes[0].min(sizes[1]) - 1.0;
            (sum, if by_part > 0.0 { sum.powi(2) / by_part } else { least })
        };
        Some(Estimate { log, error: variance.sqrt().max(ERROR_MIN), freedom, step: 0.0, count })
    }

    /// With a step: see [`Estimate::step`].
    pub(crate) fn with_step(self, step: f64) -> Estimate {
        Estimate { step, ..self }
    }

    /// How likely it lies so far from 0 where there is no difference.
    fn p(&self) -> f64 {
        student::two_sided((self.log.abs() - self.step).max(0.0) / self.error, self.freedom)
    }

    /// How many rounds, or runs of both sides, there must be until half the width of the interval is no more than this;
    /// at least as many as there are. None where nothing would do: the figures are not that exact.
    pub(crate) fn count_for(&self, half: f64, level: f64) -> Option<usize> {
        let wanted = half - self.step;
        if wanted <= 0.0 {
            return None;
        }
        let spread = self.error * (self.count as f64).sqrt();
        let freedom = |count: usize| self.freedom * count as f64 / self.count as f64;
        let reaches = |count: usize| {
            student::quantile(level, freedom(count)) * spread / (count as f64).sqrt() <= wanted
        };
        let mut high = self.count;
        while !reaches(high) {
            high = high.checked_mul(2).filter(|high| *high < 1 << 40)?;
        }
        let mut low = self.count;
        while low < high {
            let middle = low + (high - low) / 2;
            if reaches(middle) { high = middle } else { low = middle + 1 }
        }
        Some(high)
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The sum of the squared distances from the mean.
fn squares(values: &[f64]) -> f64 {
    let mean = mean(values);
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

/// Where a ratio lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Interval {
    /// The ratio itself.
    pub ratio: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Whether a difference is claimed: 1 lies outside, and the ratio is no nearer to 1 than [`FLOOR`].
    pub differs: bool,
    /// The level of the interval, after the correction.
    pub level: f64,
}

/// Of nothing else.
#[cfg(test)]
pub(crate) fn together(estimates: &[Option<Estimate>], level: f64) -> Vec<Option<Interval>> {
    together_with(estimates, &[], level).0
}

/// The intervals of ratios that are compared at once, held together at a level; none where nothing is known. Beside tests of
/// something else, by how likely each is by chance; with the level that those are held to then.
pub(crate) fn together_with(
    estimates: &[Option<Estimate>],
    others: &[f64],
    level: f64,
) -> (Vec<Option<Interval>>, f64) {
    let mut ps: Vec<f64> =
        estimates.iter().flatten().map(Estimate::p).chain(others.iter().copied()).collect();
    ps.sort_by(f64::total_cmp);
    let share = |number: usize| level * number as f64 / ps.len() as f64;
    let found = (1..=ps.len()).rev().find(|number| ps[number - 1] <= share(*number)).unwrap_or(0);
    let level = if ps.is_empty() { level } else { share(found.max(1)) };
    // most have as many degrees of freedom as the one before
    let mut last = (f64::NAN, f64::NAN);
    let mut interval = |estimate: &Estimate| {
        if estimate.freedom != last.0 {
            last = (estimate.freedom, student::quantile(level, estimate.freedom));
        }
        let half = estimate.step + last.1 * estimate.error;
        let (low, high) = (estimate.log - half, estimate.log + half);
        let differs = (low > 0.0 || high < 0.0) && estimate.log.abs() >= (1.0 + FLOOR).ln();
        Interval { ratio: estimate.log.exp(), low: low.exp(), high: high.exp(), differs, level }
    };
    let intervals = estimates.iter().map(|estimate| estimate.as_ref().map(&mut interval)).collect();
    (intervals, level)
}

/// Whether nothing is left to be found out: each ratio differs from 1, or is known to within this share of it; a third of
/// the largest difference that was found does as well.
pub(crate) fn is_settled<'i>(intervals: impl Iterator<Item = &'i Interval> + Clone, within: f64) -> bool {
    let far = |interval: &Interval| interval.ratio.ln().abs();
    let largest = intervals.clone().filter(|interval| interval.differs).map(far).fold(0.0, f64::max);
    let within = (1.0 + within).ln().max(largest / 3.0);
    let mut any = intervals.clone().peekable();
    any.peek().is_some()
        && any.all(|one| one.differs || one.low.ln().abs().max(one.high.ln().abs()) <= within)
}

/// After which rounds a comparison looks at what it has, and how sure it is then.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looks {
    /// Looks that were made before the last.
    made: u32,
}

impl Looks {
    /// The first look is after so many rounds.
    const FIRST: u64 = 4;
    /// Part of the level that a look takes which is not the last.
    const PART: f64 = 0.02;
    /// Most such looks, by rounds that double with every second of them: far more rounds than there ever are.
    const MOST: u32 = 15;

    /// Whether there is one after this round, counted from 1: after 4, 5, 8, 11, 16, 22, 32, …
    pub fn is_due(self, round: u64) -> bool {
        let at = |look: u32| (Self::FIRST as f64 * 2f64.powf(f64::from(look) / 2.0)).floor() as u64;
        (0..Self::MOST).any(|look| at(look) == round)
    }

    /// The level of a look on the way, which is counted.
    pub fn on_the_way(&mut self) -> f64 {
        self.made += 1;
        LEVEL * Self::PART
    }

    /// The level of the last look.
    pub fn last(self) -> f64 {
        LEVEL * (1.0 - Self::PART * f64::from(self.made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn rounds_are_a_t_interval() {
        let of = Estimate::of_rounds(&[0.1, 0.2, 0.3]).unwrap();
        assert!(close(of.log, 0.2) && close(of.error, 0.1 / 3f64.sqrt()) && close(of.freedom, 2.0), "{of:?}");
        let found = together(&[Some(of)], LEVEL)[0].unwrap();
        // 4.303 of the table
        assert!(
            (found.high.ln() - 0.2 - 4.303 * 0.1 / 3f64.sqrt()).abs() < 1e-4 && !found.differs,
            "{found:?}"
        );
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        assert_eq!(Estimate::of_rounds(&[0.0, 0.1]), None, "too few");
        assert_eq!(Estimate::of_rounds(&[0.0, 0.1, f64::INFINITY]), None);
        assert_eq!(Estimate::of_runs(&[0.0], &[0.1]), None, "nothing between runs");
        assert_eq!(Estimate::of_runs(&[], &[0.1, 0.2, 0.3]), None);
        assert_eq!(together(&[None, None], LEVEL), [None, None]);
    }

    #[test]
    fn a_single_run_is_held_against_what_others_differ_by() {
        let of = Estimate::of_runs(&[0.5], &[0.0, 0.1, -0.1]).unwrap();
        assert!(close(of.log, 0.5) && close(of.freedom, 2.0), "{of:?}");
        assert!(close(of.error, (0.01f64 * (1.0 + 1.0 / 3.0)).sqrt()), "{of:?}");
        let welch = Estimate::of_runs(&[0.0, 0.2], &[0.0, 0.0, 0.0, 0.0]).unwrap();
        assert!(close(welch.freedom, 1.0), "all of it is the first side's: {welch:?}");
        let still = Estimate::of_runs(&[0.0, 0.0], &[0.0, 0.0, 0.0]).unwrap();
        assert_eq!((still.error, still.freedom), (ERROR_MIN, 1.0));
    }

    #[test]
    fn an_interval_leaves_1_out_exactly_where_a_difference_is_claimed() {
        let of = |log: f64| Some(Estimate { log, error: 0.01, freedom: 10.0, step: 0.0, count: 11 });
        let found = together(&[of(0.10), of(0.001), None, of(-0.08), of(0.02)], LEVEL);
        let differs: Vec<Option<bool>> = found.iter().map(|one| one.map(|one| one.differs)).collect();
        assert_eq!(differs, [Some(true), Some(false), None, Some(true), Some(false)]);
        for one in found.iter().flatten() {
            assert_eq!(one.differs, one.low > 1.0 || one.high < 1.0, "{one:?}");
            assert!(close(one.level, LEVEL * 2.0 / 4.0), "two of four: {one:?}");
        }
    }

    #[test]
    fn tests_of_something_else_count_as_figures_do() {
        let of = Estimate { log: 0.1, error: 0.01, freedom: 10.0, step: 0.0, count: 11 };
        let (found, level) = together_with(&[Some(of)], &[1.0, 1e-9, 1.0], LEVEL);
        assert!(close(level, LEVEL * 2.0 / 4.0) && close(found[0].unwrap().level, level), "two of four");
        assert_eq!(together_with(&[None], &[], LEVEL), (vec![None], LEVEL));
    }

    #[test]
    fn what_is_below_one_percent_is_no_difference_however_sure_it_is() {
        let of = |log: f64| Some(Estimate { log, error: 1e-5, freedom: 10.0, step: 0.0, count: 11 });
        let found = together(&[of(0.005), of(0.02)], LEVEL);
        assert_eq!(found.iter().flatten().map(|one| one.differs).collect::<Vec<_>>(), [false, true]);
        assert!(found[0].unwrap().low > 1.0, "the interval says what is so");
    }

    #[test]
    fn whole_microseconds_make_no_difference() {
        // 50 µs against 51 µs in every round
        let of = Estimate::of_rounds(&[0.02; 6]).unwrap();
        assert!(together(&[Some(of)], LEVEL)[0].unwrap().differs);
        assert!(!together(&[Some(of.with_step(0.02))], LEVEL)[0].unwrap().differs);
    }

    #[test]
    fn how_many_rounds_are_needed_is_what_they_then_tell() {
        let of = Estimate { log: 0.0, error: 0.05, freedom: 9.0, step: 0.0, count: 10 };
        let now = student::quantile(LEVEL, 9.0) * 0.05;
        assert_eq!(of.count_for(now * 1.001, LEVEL), Some(10));
        let count = of.count_for(now / 2.0, LEVEL).unwrap();
        assert!(
            (30..=40).contains(&count),
            "four times as many, or fewer as the distribution narrows: {count}"
        );
        assert_eq!(of.with_step(0.1).count_for(0.05, LEVEL), None);
    }

    #[test]
    fn looks_share_the_level_out() {
        let looks = Looks::default();
        let due: Vec<u64> = (1..70).filter(|round| looks.is_due(*round)).collect();
        assert_eq!(due, [4, 5, 8, 11, 16, 22, 32, 45, 64]);
        let mut looks = looks;
        let spent: f64 = (0..Looks::MOST).map(|_| looks.on_the_way()).sum();
        assert!(close(spent + looks.last(), LEVEL) && looks.last() > LEVEL / 2.0);
    }
}
