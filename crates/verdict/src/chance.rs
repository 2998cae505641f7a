//! What chance makes of rare events.

/// That a healthy run is told by chance is less probable than this, over everything that is looked at.
const BY_CHANCE: f64 = 0.001;
/// Beyond so many expected events the normal distribution is near enough.
const MANY: f64 = 500.0;

/// Whether so many of `due` are more than chance makes where each is one with a probability of `share` (binomial), and
/// `looks` such numbers are looked at.
pub(super) fn is_beyond(count: u64, due: u64, share: f64, looks: usize) -> bool {
    let expected = due as f64 * share;
    if count == 0 || count as f64 <= expected {
        return false;
    }
    let rest = 1.0 - share;
    if due as f64 * share.min(rest) > MANY {
        return count as f64 - expected > deviations(looks) * (expected * rest).sqrt();
    }
    // the sum over the rarer side does not underflow
    let as_many = match share > 0.5 {
        true => at_most(due - count.min(due), due, rest),
        false => 1.0 - at_most(count - 1, due, share),
    };
    as_many < by_chance(looks)
}

/// The probability that `count` or fewer of `due` happen, each with a probability of `share`.
fn at_most(count: u64, due: u64, share: f64) -> f64 {
    let (mut term, mut sum) = ((1.0 - share).powf(due as f64), 0.0);
    for number in 0..=count.min(due) {
        sum += term;
        term *= (due - number) as f64 / (number + 1) as f64 * share / (1.0 - share);
        if term < f64::MIN_POSITIVE && number as f64 > due as f64 * share {
            break;
        }
    }
    sum
}

/// So many standard deviations are chance where `looks` numbers are looked at; a little more than the normal distribution
/// has.
pub(super) fn deviations(looks: usize) -> f64 {
    (-2.0 * (2.0 * by_chance(looks)).ln()).sqrt()
}

/// Whether what waits, counted at even distances, rises beyond chance: the slope of the straight line through it, where
/// each count is a Poisson number. Neighbours share requests, so that the variance is taken twice.
pub(super) fn rises(counts: &[f64], looks: usize) -> bool {
    let length = counts.len() as f64;
    let mean = counts.iter().sum::<f64>() / length;
    let middle = (length - 1.0) / 2.0;
    let offsets = || (0..counts.len()).map(|at| at as f64 - middle);
    let squares: f64 = offsets().map(|offset| offset * offset).sum();
    let slope = offsets().zip(counts).map(|(offset, count)| offset * count).sum::<f64>() / squares;
    slope > deviations(looks) * (2.0 * mean.max(1.0) / squares).sqrt()
}

/// Whether that nothing happened is less than chance makes of `expected` events.
pub(crate) fn is_too_rare(expected: f64, looks: usize) -> bool {
    (-expected).exp() < by_chance(looks)
}

/// The bound of each of so many looks.
fn by_chance(looks: usize) -> f64 {
    BY_CHANCE / looks.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_events_may_be_chance_and_many_are_none() {
        let of_rare = |count, expected: f64, looks| is_beyond(count, 1_000_000, expected / 1e6, looks);
        // by the tables of the Poisson distribution
        assert!(!of_rare(1, 0.01, 1) && of_rare(2, 0.01, 1));
        assert!(!of_rare(5, 1.0, 1) && of_rare(6, 1.0, 1));
        assert!(of_rare(6, 1.0, 1) && !of_rare(6, 1.0, 10), "of ten one may have six");
        assert!(of_rare(1, 0.0, 100) && !of_rare(0, 0.0, 1) && !of_rare(0, 9.0, 1));
        assert!(!of_rare(1_050, 1_000.0, 1) && of_rare(1_200, 1_000.0, 1));
        assert!(of_rare(1_000_000, 1.0, 1), "and soon known");
        // all of few, where half may fail, and where nearly all may
        assert!(is_beyond(20, 20, 0.5, 2) && !is_beyond(9, 9, 0.5, 1) && is_beyond(10, 10, 0.5, 1));
        assert!(is_beyond(200, 200, 0.9, 1) && !is_beyond(20, 20, 0.9, 1) && !is_beyond(9, 9, 1.0, 1));
        assert!(is_beyond(10_000, 10_000, 0.9, 1) && !is_beyond(9_050, 10_000, 0.9, 1));
        assert!(is_too_rare(7.0, 1) && !is_too_rare(6.0, 1) && !is_too_rare(7.0, 10));
    }
    #[test]
    fn what_waits_of_a_rare_label_may_rise_by_chance() {
        let steady = [
            3.0, 5.0, 4.0, 2.0, 6.0, 3.0, 5.0, 4.0, 4.0, 5.0, 3.0, 6.0, 5.0, 7.0, 6.0, 8.0, 7.0, 9.0, 8.0,
            9.0,
        ];
        assert!(!rises(&steady, 24));
        let starves: Vec<f64> = (1..=15).map(|second| 4.0 * f64::from(second)).collect();
        assert!(rises(&starves, 2) && rises(&starves, 24));
        assert!(!rises(&[], 1) && !rises(&[9.0], 1) && !rises(&[0.0; 20], 1));
    }
}
