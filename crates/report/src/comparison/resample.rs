//! How sure a ratio of two scenarios is: a bootstrap over their rounds.
//!
//! What differs from one run to the next (placement, caches, neighbours) differs by more than what a run's own seconds
//! show, so rounds are drawn and nothing smaller; a round of one goes with the round of the other that ran beside it,
//! which takes away what the machine did meanwhile. From the spread of the logarithm of the ratio over the draws come
//! the bounds, by Student's distribution: with few rounds they are wide. They hold for all measures together 95 of 100
//! times (Bonferroni), so that a table of them does not find differences by its number of rows.

use fastrand::Rng;
use tidemark_record::Distribution;

/// Fewest rounds from which anything is claimed.
pub(super) const ROUNDS_MIN: usize = 3;
/// How often the rounds are drawn anew.
const DRAWS: usize = 500;
/// Measures that are held together; [`STUDENT`] is for so many.
pub(super) const MEASURES: usize = 3;
/// The quantile of 1 - 0.05 / 2 / [`MEASURES`] of Student's distribution, from 2 degrees of freedom on.
#[allow(clippy::approx_constant, reason = "2.718 of the table is no e")]
const STUDENT: [f64; 18] = [
    7.649, 4.857, 3.961, 3.534, 3.287, 3.128, 3.016, 2.933, 2.870, 2.820, 2.779, 2.746, 2.718, 2.694, 2.673,
    2.655, 2.639, 2.625,
];
/// Slower than every bound.
const NEVER: u64 = u64::MAX;
/// The same numbers come out of the same runs.
const SEED: u64 = 0x7469_6465;

/// What happened in one round.
#[derive(Debug, Clone, Default)]
pub(super) struct Round {
    /// Its number, from 1.
    pub number: u64,
    /// Its length, seconds.
    pub length_s: f64,
    /// Good answers.
    pub answered: u64,
    /// Response times of all requests that were due, microseconds, and how many of each; ascending. [`NEVER`]: those
    /// without a good answer.
    pub times: Vec<(u64, u64)>,
}

impl Round {
    /// Of so many seconds.
    pub fn new(number: u64, length_s: f64, answered: u64, times: Distribution<'_>) -> Round {
        let failed = (times.failed() > 0).then_some((NEVER, times.failed()));
        let good = times.good().iter_recorded();
        let good = good.map(|step| (step.value_iterated_to(), step.count_at_value()));
        Round { number, length_s, answered, times: good.chain(failed).collect() }
    }
}

/// A measure of a run, for the ratio of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Measure {
    /// Good answers per second.
    AnsweredPerS,
    /// A quantile of the response time, 0 to 1.
    Quantile(f64),
}

/// Between which bounds the ratio lies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds {
    pub low: f64,
    pub high: f64,
}

/// Rounds that ran beside each other.
pub(super) fn pairs<'a>(of: &'a [Round], to: &'a [Round]) -> Vec<(&'a Round, &'a Round)> {
    let beside = |round: &'a Round| Some((round, to.iter().find(|other| other.number == round.number)?));
    of.iter().filter_map(beside).collect()
}

/// The bounds of the ratio of the measures; none where there are too few rounds to tell, or nothing to divide by.
pub(super) fn bounds(
    pairs: &[(&Round, &Round)],
    measures: [Measure; MEASURES],
) -> [Option<Bounds>; MEASURES] {
    if pairs.len() < ROUNDS_MIN {
        return [None; MEASURES];
    }
    let mut random = Rng::with_seed(SEED);
    let mut logs: [Vec<f64>; MEASURES] = Default::default();
    let mut drawn = pairs.to_vec();
    let ratio = |drawn: &[(&Round, &Round)], measure| {
        let of = measured(drawn.iter().map(|(of, _)| *of), measure);
        (of / measured(drawn.iter().map(|(_, to)| *to), measure)).ln()
    };
    for _ in 0..DRAWS {
        drawn.iter_mut().for_each(|place| *place = pairs[random.usize(..pairs.len())]);
        for (measure, logs) in measures.iter().zip(&mut logs) {
            logs.push(ratio(&drawn, *measure));
        }
    }
    let mut bounds = [None; MEASURES];
    for ((measure, logs), bounds) in measures.iter().zip(&logs).zip(&mut bounds) {
        *bounds = between(ratio(pairs, *measure), logs, pairs.len());
    }
    bounds
}

/// Around the logarithm of a ratio, by what it was in the draws.
fn between(log: f64, logs: &[f64], rounds: usize) -> Option<Bounds> {
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (logs.len() - 1) as f64;
    // rounds that are drawn from themselves spread too little by this
    let spread = (variance * rounds as f64 / (rounds - 1) as f64).sqrt();
    let wide = STUDENT.get(rounds - ROUNDS_MIN).or(STUDENT.last())? * spread;
    (log.is_finite() && wide.is_finite())
        .then(|| Bounds { low: (log - wide).exp(), high: (log + wide).exp() })
}

fn measured<'a>(rounds: impl Iterator<Item = &'a Round> + Clone, measure: Measure) -> f64 {
    match measure {
        Measure::AnsweredPerS => {
            let answered: u64 = rounds.clone().map(|round| round.answered).sum();
            answered as f64 / rounds.map(|round| round.length_s).sum::<f64>()
        }
        Measure::Quantile(share) => {
            let mut times: Vec<(u64, u64)> = rounds.flat_map(|round| round.times.iter().copied()).collect();
            times.sort_unstable();
            let all: u64 = times.iter().map(|(_, count)| count).sum();
            let wanted = ((all as f64 * share).ceil() as u64).max(1);
            let mut seen = 0;
            let found = times.iter().find(|(_, count)| {
                seen += count;
                seen >= wanted
            });
            found.filter(|(us, _)| *us != NEVER).map_or(f64::NAN, |(us, _)| *us as f64)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::Ratio;

    const ALL: [Measure; MEASURES] = [Measure::AnsweredPerS, Measure::Quantile(0.5), Measure::Quantile(0.99)];

    /// Rounds of a system that is by so much faster, each off by some percent of its own and by some of its time.
    fn rounds(count: u64, faster: f64, spread: f64, drift: &[f64], random: &mut Rng) -> Vec<Round> {
        let normal = |random: &mut Rng| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let round = |number: u64| {
            let off = (normal(random) * spread + drift.get(number as usize).unwrap_or(&0.0)).exp() * faster;
            let answered = (10_000.0 * off) as u64;
            let us = |us: f64| (us / off) as u64;
            let times = vec![(us(500.0), answered * 9 / 10), (us(4_000.0), answered / 10)];
            Round { number, length_s: 5.0, answered, times }
        };
        (1..=count).map(round).collect()
    }

    fn claims(of: &[Round], to: &[Round]) -> [Option<bool>; MEASURES] {
        let pairs = pairs(of, to);
        let ratio = |measure| {
            measured(pairs.iter().map(|(of, _)| *of), measure)
                / measured(pairs.iter().map(|(_, to)| *to), measure)
        };
        let bounds = bounds(&pairs, ALL);
        std::array::from_fn(|index| Ratio::of(Some(ratio(ALL[index])), bounds[index]).difference)
    }

    #[test]
    fn one_against_itself_is_hardly_ever_said_to_differ() {
        let mut random = Rng::with_seed(1);
        for (count, spread) in [(3, 0.01), (3, 0.05), (5, 0.05), (10, 0.10)] {
            let mut wrong = 0;
            for _ in 0..200 {
                let drift: Vec<f64> = (0..=count).map(|_| (random.f64() - 0.5) * 0.2).collect();
                let one = rounds(count, 1.0, spread, &drift, &mut random);
                let other = rounds(count, 1.0, spread, &drift, &mut random);
                wrong += usize::from(claims(&other, &one).contains(&Some(true)));
            }
            // 5 of 100 by their own word, for all three together; here these are as good as one
            assert!(wrong <= 12, "{wrong} of 200 with {count} rounds that differ by {spread}");
        }
    }

    #[test]
    fn a_difference_is_seen_where_there_is_one() {
        let mut random = Rng::with_seed(2);
        let drift = [0.0, 0.1, -0.1, 0.05];
        let one = rounds(3, 1.0, 0.01, &drift, &mut random);
        let other = rounds(3, 1.5, 0.01, &drift, &mut random);
        assert_eq!(claims(&other, &one), [Some(true); MEASURES]);
        let rate = bounds(&pairs(&other, &one), ALL)[0].unwrap();
        assert!(rate.low < 1.5 && 1.5 < rate.high && rate.high - rate.low < 0.4, "{rate:?}");
    }

    #[test]
    fn what_is_below_two_percent_is_no_difference_however_sure_it_is() {
        let mut random = Rng::with_seed(3);
        let one = rounds(20, 1.0, 0.0001, &[], &mut random);
        let little = rounds(20, 1.015, 0.0001, &[], &mut random);
        assert_eq!(claims(&little, &one)[0], Some(false));
        let more = rounds(20, 1.03, 0.0001, &[], &mut random);
        assert_eq!(claims(&more, &one)[0], Some(true));
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        let mut random = Rng::with_seed(4);
        let all = rounds(4, 1.0, 0.01, &[], &mut random);
        assert_eq!(bounds(&pairs(&all[..2], &all), ALL), [None; MEASURES], "too few rounds");
        assert_eq!(
            bounds(&pairs(&all[..3], &all[1..]), ALL),
            [None; MEASURES],
            "two that ran beside each other"
        );
        let nothing: Vec<Round> =
            (1..=4).map(|number| Round { number, length_s: 1.0, ..Round::default() }).collect();
        assert_eq!(bounds(&pairs(&all, &nothing), ALL), [None; MEASURES], "nothing to divide by");
    }
}
