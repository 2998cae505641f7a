//! Where a series of numbers changes to stay: E-divisive.
//!
//! A series is cut where what lies before and what lies behind are furthest apart by the energy distance, the parts are cut
//! again, and so on (Matteson and James, Journal of the American Statistical Association 109, 2014). Whether a cut is a change
//! is told by Student's test and not by permutations, which could tell nothing of few runs, and something else each time
//! (Fleming and others, "Hunter: Using Change Point Detection to Hunt for Performance Regressions", ICPE 2023).
//!
//! Own code, as there is nothing to stand on: of the crates for this one has been left alone since its first version
//! (`edivisive` 0.1), another finds changes while numbers come in, by a Bayesian model, and brings linear algebra
//! (`changepoint` 0.15).

use super::{Estimate, FLOOR, Interval, student};

/// Fewest numbers before and behind a change.
pub(crate) const LEAST: usize = 3;
/// Most numbers; the work grows with their square.
pub(crate) const MOST: usize = 400;
/// How sure a change must be: the chance that Student's test finds it where there is none, times the number of numbers. The
/// more there are the more cuts there are to choose from; with this a series without a change has one in 1 to 3 of 100 cases.
const CHANCE: f64 = 5e-4;

/// A change.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// The first number behind it.
    pub at: usize,
    /// The ratio of what lies behind, up to the next change, to what lies before.
    pub ratio: Interval,
}

/// The changes in a series of logarithms, in order. Of more than [`MOST`] numbers the last are looked at.
pub(crate) fn changes(logs: &[f64]) -> Vec<Change> {
    let skipped = logs.len().saturating_sub(MOST);
    let logs = &logs[skipped..];
    if logs.iter().any(|log| !log.is_finite()) {
        return Vec::new();
    }
    let chance = CHANCE / logs.len() as f64;
    let mut cuts = Vec::new();
    cut(logs, 0, logs.len(), chance, &mut cuts);
    cuts.sort_unstable();
    cuts.dedup();
    // what is a change of the whole may be none between its neighbours: the least sure goes first
    loop {
        let tested: Vec<(usize, Option<Estimate>)> = (0..cuts.len())
            .map(|index| {
                let begin = index.checked_sub(1).map_or(0, |before| cuts[before]);
                let end = cuts.get(index + 1).copied().unwrap_or(logs.len());
                (cuts[index], test(&logs[begin..cuts[index]], &logs[cuts[index]..end]))
            })
            .collect();
        let p = |estimate: &Option<Estimate>| estimate.as_ref().map_or(1.0, Estimate::p);
        let weakest = tested.iter().max_by(|a, b| p(&a.1).total_cmp(&p(&b.1)));
        match weakest {
            Some((at, estimate)) if !is_change(estimate.as_ref(), chance) => cuts.retain(|cut| cut != at),
            _ => {
                let change = |(at, estimate): (usize, Option<Estimate>)| {
                    Some(Change { at: at + skipped, ratio: interval(&estimate?) })
                };
                return tested.into_iter().filter_map(change).collect();
            }
        }
    }
}

/// Cuts a part of the series, and what comes out of that.
fn cut(logs: &[f64], begin: usize, end: usize, chance: f64, cuts: &mut Vec<usize>) {
    let Some((at, until)) = furthest(&logs[begin..end]) else { return };
    let (at, until) = (begin + at, begin + until);
    if !is_change(test(&logs[begin..at], &logs[at..until]).as_ref(), chance) {
        return;
    }
    cuts.push(at);
    cut(logs, begin, at, chance, cuts);
    cut(logs, at, end, chance, cuts);
}

fn test(before: &[f64], behind: &[f64]) -> Option<Estimate> {
    Estimate::of_runs(behind, before)
}

fn is_change(estimate: Option<&Estimate>, chance: f64) -> bool {
    estimate.is_some_and(|of| of.p() <= chance && of.log.abs() >= (1.0 + FLOOR).ln())
}

fn interval(of: &Estimate) -> Interval {
    let half = student::quantile(super::LEVEL, of.freedom) * of.error;
    let bounds = [of.log - half, of.log + half].map(f64::exp);
    Interval { ratio: of.log.exp(), low: bounds[0], high: bounds[1], differs: true, level: super::LEVEL }
}

/// Where to cut so that the numbers before the cut and those from there up to some end are furthest apart, and that end.
/// None where there are too few.
///
/// Twice the mean distance between numbers of the two sides, less the mean distance within each, times the harmonic mean of
/// their sizes: equation 5 of the paper.
fn furthest(part: &[f64]) -> Option<(usize, usize)> {
    let count = part.len();
    if count < 2 * LEAST {
        return None;
    }
    // the sum of the distances between the first i numbers and the first j
    let width = count + 1;
    let mut sums = vec![0.0; width * width];
    for i in 0..count {
        let mut row = 0.0;
        for j in 0..count {
            row += (part[i] - part[j]).abs();
            sums[(i + 1) * width + j + 1] = sums[i * width + j + 1] + row;
        }
    }
    let sum = |i: usize, j: usize| sums[i * width + j];
    let mut best: Option<(f64, usize, usize)> = None;
    for at in LEAST..=count - LEAST {
        for until in at + LEAST..=count {
            let (before, behind) = (at as f64, (until - at) as f64);
            let within_before = sum(at, at) / (before * (before - 1.0));
            let within_behind =
                (sum(until, until) - 2.0 * sum(at, until) + sum(at, at)) / (behind * (behind - 1.0));
            let between = (sum(at, until) - sum(at, at)) / (before * behind);
            let apart = before * behind / (before + behind) * (2.0 * between - within_before - within_behind);
            if best.is_none_or(|(most, ..)| apart > most) {
                best = Some((apart, at, until));
            }
        }
    }
    best.map(|(_, at, until)| (at, until))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastrand::Rng;

    fn normal(random: &mut Rng) -> f64 {
        (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
    }

    /// Numbers around a level each, so many of each, with this standard deviation.
    fn series(levels: &[(usize, f64)], noise: f64, random: &mut Rng) -> Vec<f64> {
        let each = levels.iter().flat_map(|(count, level)| std::iter::repeat_n(*level, *count));
        each.map(|level| level + noise * normal(random)).collect()
    }

    #[test]
    fn changes_are_found_where_they_are() {
        let mut random = Rng::with_seed(1);
        let (mut right, mut found) = (0, 0);
        for _ in 0..50 {
            let logs = series(&[(12, 0.0), (10, 0.1), (14, 0.02)], 0.02, &mut random);
            let changes = changes(&logs);
            found += changes.len();
            right += changes.iter().filter(|of| of.at.abs_diff(12) <= 1 || of.at.abs_diff(22) <= 1).count();
        }
        println!("{right} of 100 within one run of where they are, {found} in all");
        assert!(right >= 90 && found <= right + 5, "{right} of 100, {found} in all");
        let first = changes(&series(&[(6, 0.0), (6, 0.3)], 0.02, &mut random))[0];
        assert!(
            first.at == 6 && first.ratio.low < 0.3f64.exp() && 0.3f64.exp() < first.ratio.high,
            "{first:?}"
        );
    }

    #[test]
    fn an_excursion_is_two_changes_and_one_outlier_none() {
        let mut random = Rng::with_seed(2);
        let logs = series(&[(20, 0.0), (5, 0.2), (20, 0.0)], 0.02, &mut random);
        let at: Vec<usize> = changes(&logs).iter().map(|change| change.at).collect();
        assert_eq!(at, [20, 25]);
        let mut logs = series(&[(30, 0.0)], 0.02, &mut random);
        logs[17] = 1.0;
        assert_eq!(changes(&logs), []);
    }

    #[test]
    fn where_nothing_changes_hardly_ever_a_change_is_found() {
        let mut random = Rng::with_seed(3);
        for count in [8, 20, 60, 200] {
            let wrong = (0..200).filter(|_| !changes(&series(&[(count, 0.0)], 0.03, &mut random)).is_empty());
            let wrong = wrong.count();
            println!("{count} runs: {wrong} of 200");
            assert!(wrong <= 6, "{count} runs: {wrong} of 200");
        }
    }

    #[test]
    fn of_few_and_of_many_numbers() {
        let mut random = Rng::with_seed(4);
        assert_eq!(changes(&[]), []);
        assert_eq!(changes(&[0.0, 0.0, 1.0, 1.0]), [], "too few to tell");
        assert_eq!(changes(&[0.0; 10]), []);
        assert_eq!(changes(&[0.0, f64::NAN, 0.0, 1.0, 1.0, 1.0]), []);
        let sure: Vec<usize> = changes(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]).iter().map(|of| of.at).collect();
        assert_eq!(sure, [3], "not a digit differs otherwise");
        let many = series(&[(MOST, 0.0), (50, 0.2)], 0.02, &mut random);
        assert_eq!(changes(&many).iter().map(|of| of.at).collect::<Vec<_>>(), [MOST]);
    }
}
