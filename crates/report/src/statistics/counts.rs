//! How likely counts are by chance: exact tests, which take nothing to be normal.

/// How likely rounds in which something happened on one side alone fall so unevenly, to either side, where both are alike: the
/// sign test, which is McNemar's exact one (Psychometrika 12, 1947). Rounds in which it happened on both or on neither tell
/// nothing.
pub(crate) fn sign(one: usize, other: usize) -> f64 {
    let count = one + other;
    let logs = log_factorials(count);
    let tail: f64 = (one.max(other)..=count)
        .map(|k| (choose(&logs, count, k) - count as f64 * std::f64::consts::LN_2).exp())
        .sum();
    (2.0 * tail).min(1.0)
}

/// How likely so many of the runs of one side, and of the other, are by chance where both are alike: Fisher's exact test
/// (The Design of Experiments, 1935), twice the smaller tail. `happened` are no more than `runs`.
pub(crate) fn fisher(happened: [usize; 2], runs: [usize; 2]) -> f64 {
    let (all, both) = (runs[0] + runs[1], happened[0] + happened[1]);
    let logs = log_factorials(all);
    let chance = |k: usize| {
        (choose(&logs, runs[0], k) + choose(&logs, runs[1], both - k) - choose(&logs, all, both)).exp()
    };
    let (least, most) = (both.saturating_sub(runs[1]), both.min(runs[0]));
    let below: f64 = (least..=happened[0]).map(chance).sum();
    let above: f64 = (happened[0]..=most).map(chance).sum();
    (2.0 * below.min(above)).min(1.0)
}

/// How likely it is at most, whatever the chance in a run, that something happens in all runs of one of two sides and in none of the
/// other's, where both are alike: Barnard's exact test (Nature 156, 1945) of that outcome.
pub(crate) fn unanimous(one: usize, other: usize) -> f64 {
    let (one, other) = (one as f64, other as f64);
    let share = one / (one + other);
    (2.0 * share.powf(one) * (1.0 - share).powf(other)).min(1.0)
}

/// The logarithms of 0!, 1!, … up to a number's.
fn log_factorials(most: usize) -> Vec<f64> {
    let mut logs = vec![0.0; most + 1];
    for number in 1..=most {
        logs[number] = logs[number - 1] + (number as f64).ln();
    }
    logs
}

/// The logarithm of in how many ways so many are taken of some.
fn choose(logs: &[f64], of: usize, taken: usize) -> f64 {
    logs[of] - logs[taken] - logs[of - taken]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn what_all_of_one_side_do_and_none_of_the_other_is_rarely_chance() {
        assert!((unanimous(3, 3) - 2.0 / 64.0).abs() < 1e-12);
        assert!((unanimous(6, 6) - 2.0 / 4_096.0).abs() < 1e-12);
        assert!(unanimous(1, 1) > 0.4 && unanimous(2, 2) > 0.1);
    }

    #[test]
    fn one_round_tells_nothing_and_six_of_six_do() {
        assert_eq!((sign(0, 0), sign(1, 0), sign(1, 1)), (1.0, 1.0, 1.0));
        assert!(close(sign(6, 0), 2.0 / 64.0) && close(sign(0, 6), 2.0 / 64.0));
        // 9 or 10 heads of 10: 11 of 1,024 ways
        assert!(close(sign(1, 9), 22.0 / 1_024.0));
        assert!(sign(10_000, 0) < 1e-300 && sign(5_000, 5_000) == 1.0);
    }

    #[test]
    fn runs_by_themselves_are_a_table_of_two_by_two() {
        // the lady tasting tea
        assert!(close(fisher([4, 0], [4, 4]), 2.0 / 70.0) && close(fisher([3, 1], [4, 4]), 34.0 / 70.0));
        assert!(close(fisher([0, 3], [3, 3]), 2.0 / 20.0));
        let none = [fisher([1, 0], [8, 8]), fisher([3, 3], [3, 3]), fisher([0, 0], [2, 5])];
        assert!(none.into_iter().all(|p| close(p, 1.0)), "{none:?}");
    }
}
