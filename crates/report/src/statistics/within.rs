//! What a single run tells of how sure its figures are: how much its own seconds differ.
//!
//! A run is cut into equal [blocks](Block) of consecutive seconds, long enough that what one second has of the one before
//! stays within a block, and blocks are drawn anew, as many as there are (Carlstein, Annals of Statistics 14, 1986; Efron,
//! Annals of Statistics 7, 1979). How much a figure differs over the draws is its standard error. What differs from one
//! run to the next is in none of it.

use fastrand::Rng;
use tidemark_record::rank;

use super::Estimate;

/// Blocks of a run; fewer where it has fewer seconds.
pub(crate) const BLOCKS: usize = 30;
/// Fewest blocks from which anything is told.
const BLOCKS_MIN: usize = 5;
/// How often blocks are drawn anew.
const DRAWS: usize = 400;
/// Slower than every bound.
pub(crate) const NEVER: u64 = u64::MAX;
/// The same numbers come out of the same runs.
const SEED: u64 = 0x7469_6465;

/// What happened in a stretch of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Block {
    /// Its length, seconds.
    pub length_s: f64,
    /// Good answers that came in it; of a load with a rate as a share of what was achieved of what was due.
    pub answered: f64,
    /// CPU time of the system, seconds.
    pub cpu_s: f64,
    /// Response times of requests that were due in the measured window, microseconds, and how many of each; ascending.
    /// [`NEVER`]: those without a good answer.
    pub times: Vec<(u64, u64)>,
}

/// A figure of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Measure {
    /// Good answers per second.
    PerSecond,
    /// A quantile of the response time, 0 to 1.
    Quantile(f64),
    /// CPU time for each request.
    CpuPerRequest,
}

/// The blocks of a run so that any of them are added up fast.
#[derive(Debug, Clone)]
pub(crate) struct Within {
    blocks: Vec<Block>,
    /// The times that occur, ascending.
    values: Vec<u64>,
    /// For each of them how many requests of each block took no longer; a block after the other.
    no_longer: Vec<u64>,
}

impl Within {
    /// Of the blocks of one run.
    pub(crate) fn new(blocks: Vec<Block>) -> Within {
        let mut values: Vec<u64> = blocks.iter().flat_map(|block| &block.times).map(|(us, _)| *us).collect();
        values.sort_unstable();
        values.dedup();
        let mut no_longer = vec![0; values.len() * blocks.len()];
        for (index, block) in blocks.iter().enumerate() {
            let (mut sum, mut times) = (0, block.times.iter().peekable());
            for (place, value) in values.iter().enumerate() {
                while let Some((_, count)) = times.next_if(|(us, _)| us <= value) {
                    sum += count;
                }
                no_longer[place * blocks.len() + index] = sum;
            }
        }
        Within { blocks, values, no_longer }
    }

    /// The ratio of a figure to that of another run; none where one is not known or not reached, or there are too few
    /// blocks to tell.
    pub(crate) fn against(&self, to: &Within, measure: Measure) -> Option<Estimate> {
        let (of, to) = (self.figure(measure)?, to.figure(measure)?);
        let error = (of.1.powi(2) + to.1.powi(2)).sqrt().max(super::ERROR_MIN);
        let count = of.2.min(to.2);
        Some(Estimate { log: of.0 - to.0, error, freedom: (count - 1) as f64, step: 0.0, count })
    }

    /// The logarithm of a figure, its standard error, and of how many blocks that is.
    fn figure(&self, measure: Measure) -> Option<(f64, f64, usize)> {
        let count = self.blocks.len();
        if count < BLOCKS_MIN {
            return None;
        }
        let log = self.measured(&vec![1; count], measure)?.ln();
        let mut random = Rng::with_seed(SEED);
        let (mut sum, mut squares, mut times) = (0.0, 0.0, vec![0; count]);
        for _ in 0..DRAWS {
            times.fill(0);
            (0..count).for_each(|_| times[random.usize(..count)] += 1);
            // what is not reached in some of the draws is known to no bound
            let off = self.measured(&times, measure)?.ln() - log;
            sum += off;
            squares += off * off;
        }
        let draws = DRAWS as f64;
        let variance = ((squares - sum * sum / draws) / (draws - 1.0)).max(0.0);
        // blocks that are drawn from themselves spread too little by this
        let error = (variance * count as f64 / (count - 1) as f64).sqrt();
        (log.is_finite() && error.is_finite()).then_some((log, error, count))
    }

    /// A figure of the blocks, each so many times; none where it is not reached, or 0.
    fn measured(&self, times: &[u64], measure: Measure) -> Option<f64> {
        let sum = |of: &dyn Fn(&Block) -> f64| -> f64 {
            self.blocks.iter().zip(times).map(|(block, times)| of(block) * *times as f64).sum()
        };
        let value = match measure {
            Measure::PerSecond => sum(&|block| block.answered) / sum(&|block| block.length_s),
            Measure::CpuPerRequest => sum(&|block| block.cpu_s) / self.up_to(self.values.len(), times) as f64,
            Measure::Quantile(share) => {
                let all = self.up_to(self.values.len(), times);
                let rank = rank(share, all);
                let place = partition(self.values.len(), |place| self.up_to(place + 1, times) < rank);
                *self.values.get(place).filter(|us| **us != NEVER)? as f64
            }
        };
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// How many requests took no longer than the first so many of the times that occur.
    fn up_to(&self, values: usize, times: &[u64]) -> u64 {
        let Some(place) = values.checked_sub(1) else { return 0 };
        let counts = &self.no_longer[place * times.len()..][..times.len()];
        counts.iter().zip(times).map(|(count, times)| count * times).sum()
    }
}

/// The first number up to `length` for which something does not hold that holds of all before it.
fn partition(length: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, length);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{LEVEL, together};

    const RUNS: u32 = 200;

    /// Blocks of a run in which the time of a block is by so much that of others; `noise` is its standard deviation.
    fn run(blocks: usize, us: f64, noise: f64, random: &mut Rng) -> Within {
        let normal = |random: &mut Rng| (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
        let block = |_| {
            let off = (normal(random) * noise).exp();
            // exponentially distributed
            let time = |rank: u64| (-us * (1.0 - (rank as f64 + 0.5) / 1_000.0).ln() * off) as u64;
            let times = (0..1_000).map(|rank| (time(rank), 1)).collect();
            Block { length_s: 10.0, answered: (1_000.0 / off).floor(), cpu_s: 0.1 * off, times }
        };
        Within::new((0..blocks).map(block).collect())
    }

    const ALL: [Measure; 4] =
        [Measure::PerSecond, Measure::Quantile(0.5), Measure::Quantile(0.99), Measure::CpuPerRequest];

    fn differs(of: &Within, to: &Within) -> Vec<bool> {
        let estimates: Vec<_> = ALL.iter().map(|measure| of.against(to, *measure)).collect();
        together(&estimates, LEVEL).iter().map(|one| one.unwrap().differs).collect()
    }

    #[test]
    fn figures_are_those_of_all_blocks_together() {
        let block =
            |times: &[(u64, u64)]| Block { length_s: 2.0, answered: 3.0, cpu_s: 0.5, times: times.to_vec() };
        let of = Within::new(vec![block(&[(10, 50), (20, 40)]), block(&[(20, 8), (NEVER, 2)])]);
        let measured = |times: &[u64; 2], measure| of.measured(times, measure);
        assert_eq!(measured(&[1, 1], Measure::PerSecond), Some(1.5));
        assert_eq!(measured(&[1, 1], Measure::CpuPerRequest), Some(0.01));
        let quantiles = [0.5, 0.51, 0.98, 0.981].map(|share| measured(&[1, 1], Measure::Quantile(share)));
        assert_eq!(quantiles, [Some(10.0), Some(20.0), Some(20.0), None]);
        assert_eq!(measured(&[0, 2], Measure::Quantile(0.8)), Some(20.0));
        assert_eq!(measured(&[0, 2], Measure::Quantile(0.81)), None);
        assert_eq!(measured(&[2, 0], Measure::Quantile(0.99)), Some(20.0));
    }

    #[test]
    fn one_like_the_other_hardly_ever_differs_and_a_slower_one_does() {
        let mut random = Rng::with_seed(1);
        let mut wrong = 0;
        for _ in 0..RUNS {
            let [of, to] = [(); 2].map(|()| run(BLOCKS, 500.0, 0.05, &mut random));
            wrong += usize::from(differs(&of, &to).contains(&true));
        }
        println!("one run against another of the same: {wrong} of {RUNS}");
        assert!(wrong as f64 <= f64::from(RUNS) * LEVEL, "{wrong} of {RUNS}");
        let of = run(BLOCKS, 550.0, 0.01, &mut random);
        assert_eq!(differs(&of, &run(BLOCKS, 500.0, 0.01, &mut random)), [false, true, true, false]);
    }

    #[test]
    fn what_cannot_be_told_is_not_told() {
        let mut random = Rng::with_seed(2);
        let [few, many] = [BLOCKS_MIN - 1, BLOCKS].map(|blocks| run(blocks, 500.0, 0.01, &mut random));
        assert_eq!(few.against(&many, Measure::PerSecond), None);
        let mut blocks = many.blocks.clone();
        blocks[3].times.push((NEVER, 500));
        let failing = Within::new(blocks);
        assert_eq!(failing.against(&many, Measure::Quantile(0.99)), None, "not reached");
        assert!(failing.against(&many, Measure::Quantile(0.5)).is_some());
        let idle: Vec<Block> =
            many.blocks.iter().map(|block| Block { cpu_s: 0.0, ..block.clone() }).collect();
        assert_eq!(Within::new(idle).against(&many, Measure::CpuPerRequest), None, "nothing to divide by");
    }
}
