//! Two sides beside each other: which runs count, and what they say of a figure.

use tidemark_record::summary::Status;
use tidemark_record::{RecordError, Stretch, stretches};

use super::claims::{Claim, Covers, Side, SideRun, letter};
use super::figure::{Figure, Reading};
use super::words;
use crate::statistics::counts::{fisher, sign, unanimous};
use crate::statistics::within::{BLOCKS, Block, Measure, NEVER, Within};
use crate::statistics::{Estimate, Interval, LEAST, LEVEL};
use crate::watched::is_counted;

/// Two sides, and what they are held against each other by.
pub(crate) struct Pair<'s> {
    /// The runs that count, of the side and of the one that it is held against.
    pub(super) runs: [Vec<&'s SideRun>; 2],
    pub(super) basis: Basis,
    /// Rounds that both have whole, with those that do not count.
    rounds: usize,
}

/// What is known of how sure it is.
pub(super) enum Basis {
    Rounds(Vec<u64>),
    Runs,
    /// A single run each; by label, all requests together first.
    Seconds([Vec<(Option<String>, Within)>; 2]),
    Nothing,
}

impl<'s> Pair<'s> {
    /// What is invalid counts only where nothing else is there: then nothing is claimed, or the exit status says so.
    ///
    /// # Errors
    /// The seconds of a run cannot be read, where they are needed.
    pub(crate) fn of(of: &'s Side, to: &'s Side) -> Result<Pair<'s>, RecordError> {
        let all = of.whole_rounds_beside(to);
        let valid = of.rounds_beside(to);
        if !all.is_empty() {
            let counted = if valid.is_empty() { &all } else { &valid };
            let in_them = |run: &&SideRun| run.round.is_some_and(|round| counted.contains(&round));
            let runs: [Vec<&SideRun>; 2] = [of, to].map(|side| side.runs.iter().filter(in_them).collect());
            // who runs in rounds may have more of them
            let basis = if valid.len() >= LEAST { Basis::Rounds(valid) } else { Basis::Nothing };
            return Ok(Pair { runs, basis, rounds: all.len() });
        }
        let has_valid = [of, to].iter().all(|side| side.runs.iter().any(is_valid));
        let counts = |run: &&SideRun| !has_valid || is_valid(run);
        let runs: [Vec<&SideRun>; 2] = [of, to].map(|side| side.runs.iter().filter(counts).collect());
        let basis = match (&of.runs[..], &to.runs[..]) {
            ([of], [to]) => Basis::Seconds([seconds(of)?, seconds(to)?]),
            _ if has_valid && runs.iter().map(Vec::len).sum::<usize>() >= LEAST => Basis::Runs,
            _ => Basis::Nothing,
        };
        Ok(Pair { runs, basis, rounds: 0 })
    }

    pub(crate) fn covers(&self) -> Covers {
        match self.basis {
            Basis::Rounds(_) => Covers::BetweenRounds,
            Basis::Runs => Covers::BetweenRuns,
            Basis::Seconds(_) => Covers::WithinRuns,
            Basis::Nothing => Covers::Nothing,
        }
    }

    /// Rounds that are compared.
    pub(crate) fn rounds(&self) -> usize {
        if let Basis::Rounds(rounds) = &self.basis { rounds.len() } else { 0 }
    }

    /// Whole rounds that are there.
    pub(crate) fn whole_rounds(&self) -> usize {
        self.rounds
    }

    /// What the runs of the side, or of the other, say of a figure; of one round, or all.
    fn readings(&self, side: usize, label: Option<&str>, figure: Figure, round: Option<u64>) -> Vec<Reading> {
        let runs = self.runs[side].iter().filter(|run| round.is_none() || run.round == round);
        runs.map(|run| figure.read(&run.manifest, label)).collect()
    }
}

/// Whether a run counts.
pub(crate) fn is_valid(run: &SideRun) -> bool {
    run.manifest.summary.verdict.status != Status::Invalid
}

/// In how many runs a figure is not reached, as too many requests failed; first of the side, then of the one that it is held
/// against. In such a run it is worse than any number.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NotReached {
    /// In how many runs.
    pub runs: [usize; 2],
    /// Of how many.
    pub of: [usize; 2],
    /// How often on one side alone: in how many rounds, or runs where those did not run in rounds.
    pub alone: [usize; 2],
    /// Whether the side has that more often for sure (true), or the other (false).
    pub more_often: Option<bool>,
}

/// A figure of two sides, before it is corrected for how many there are.
pub(crate) struct Measured {
    claim: Claim,
    pub(crate) estimate: Option<Estimate>,
    /// How likely it is by chance that it is not reached so much more often on one side; none where nothing says so.
    pub(crate) uneven: Option<f64>,
    /// Whether all runs of one side lack it and none of the other's, and that is no chance; of which side that is.
    all_or_none: Option<bool>,
    /// Whether it is the same in every run: then there is nothing to estimate.
    is_same: bool,
}

/// The runs of which a ratio is made, where there are such.
struct Kept {
    estimate: Option<Estimate>,
    ratios: Vec<f64>,
    /// What they say, of the side and of the other.
    readings: [Vec<Reading>; 2],
}

impl Measured {
    /// None where a side does not know it.
    pub(crate) fn of(index: usize, pair: &Pair<'_>, label: Option<&str>, figure: Figure) -> Option<Measured> {
        let readings = [0, 1].map(|side| pair.readings(side, label, figure, None));
        let is_known = |readings: &Vec<Reading>| readings.iter().any(|of| *of != Reading::Unknown);
        if !readings.iter().all(is_known) {
            return None;
        }
        let count =
            |readings: &Vec<Reading>| readings.iter().filter(|of| **of == Reading::NotReached).count();
        let mut not_reached = NotReached {
            runs: readings.each_ref().map(count),
            of: readings.each_ref().map(Vec::len),
            ..NotReached::default()
        };
        let is_reached = not_reached.runs == [0, 0];
        let (kept, uneven) = match &pair.basis {
            Basis::Rounds(numbers) => {
                let rounds: Vec<[Vec<Reading>; 2]> = numbers
                    .iter()
                    .map(|round| [0, 1].map(|side| pair.readings(side, label, figure, Some(*round))))
                    .collect();
                let lacks = |readings: &Vec<Reading>| readings.contains(&Reading::NotReached);
                let alone = |side: usize| {
                    rounds.iter().filter(|round| lacks(&round[side]) && !lacks(&round[1 - side])).count()
                };
                not_reached.alone = [alone(0), alone(1)];
                let of = rounds.len();
                let reached: Vec<[Vec<Reading>; 2]> =
                    rounds.into_iter().filter(|round| !round.iter().any(lacks)).collect();
                let kept = (2 * reached.len() > of).then(|| Kept::of_rounds(&reached));
                (kept, sign(not_reached.alone[0], not_reached.alone[1]))
            }
            Basis::Runs => {
                not_reached.alone = not_reached.runs;
                let most = (0..2).all(|side| 2 * not_reached.runs[side] < not_reached.of[side]);
                let kept = most.then(|| Kept::of_runs(&readings));
                (kept, fisher(not_reached.runs, not_reached.of))
            }
            Basis::Seconds(both) => {
                not_reached.alone = not_reached.runs;
                let [of, to] = both.each_ref().map(|all| {
                    all.iter().find(|(name, _)| name.as_deref() == label).map(|(_, within)| within)
                });
                let estimate = of.zip(to).and_then(|(of, to)| of.against(to, measure(figure)?));
                let kept =
                    is_reached.then(|| Kept { estimate, ratios: Vec::new(), readings: readings.clone() });
                (kept, 1.0)
            }
            Basis::Nothing => {
                let kept = is_reached.then(|| Kept {
                    estimate: None,
                    ratios: Vec::new(),
                    readings: readings.clone(),
                });
                (kept, 1.0)
            }
        };
        // of a side that reaches it in all its runs the value is told all the same
        let whole = |side: usize| typical(&readings[side]).filter(|_| not_reached.runs[side] == 0);
        let values = match &kept {
            Some(kept) => kept.readings.each_ref().map(|readings| typical(readings)),
            None => [whole(0), whole(1)],
        };
        let least = values[0].unwrap_or(1.0).min(values[1].unwrap_or(1.0));
        let is_same = figure.is_neutral() && is_same(&readings);
        let estimate = kept.as_ref().and_then(|kept| kept.estimate).filter(|_| !is_same);
        let estimate = estimate.map(|of| of.with_step(figure.step(least)));
        let ratio = values[0].zip(values[1]).filter(|_| kept.is_some()).map(|(of, to)| of / to);
        let is_uneven = not_reached.alone != [0, 0] && matches!(pair.basis, Basis::Rounds(_) | Basis::Runs);
        let claim = Claim {
            side: letter(index),
            to: letter(0),
            label: label.map(str::to_owned),
            figure,
            value: values[0],
            value_to: values[1],
            ratio,
            low: None,
            high: None,
            difference: None,
            not_reached: not_reached.runs[0],
            not_reached_to: not_reached.runs[1],
            says: String::new(),
            rounds: kept.map(|kept| kept.ratios).unwrap_or_default(),
            interval: None,
            estimate: None,
            lacks: not_reached,
            all_beyond: match pair.basis {
                Basis::Rounds(_) | Basis::Runs => all_beyond(&readings[0], &readings[1]),
                Basis::Seconds(_) | Basis::Nothing => None,
            },
        };
        let all_or_none = all_or_none(not_reached).filter(|_| is_uneven);
        Some(Measured { claim, estimate, uneven: is_uneven.then_some(uneven), all_or_none, is_same })
    }

    /// With the interval of the ratio, and the level that everything is held to.
    pub(crate) fn claim(self, interval: Option<Interval>, level: f64) -> Claim {
        let mut claim = self.claim;
        claim.estimate = self.estimate;
        let alone = claim.lacks.alone;
        if self.is_same {
            (claim.low, claim.high) = (claim.ratio, claim.ratio);
            claim.difference = Some(false);
        } else if self.uneven.is_some_and(|p| p <= level) || self.all_or_none.is_some() {
            claim.lacks.more_often = self.all_or_none.or(Some(alone[0] > alone[1]));
            claim.difference = Some(true);
            claim.ratio = None;
            claim.rounds = Vec::new();
        } else if let Some(interval) = interval {
            claim.ratio = Some(interval.ratio);
            // what is better where it is reached, and is not reached at times, is neither
            let is_worse = (interval.ratio > 1.0) == claim.figure.more_is_worse();
            let against = if is_worse { alone[1] } else { alone[0] };
            if !interval.differs || against == 0 {
                (claim.low, claim.high) = (Some(interval.low), Some(interval.high));
                claim.difference = Some(interval.differs);
                claim.interval = Some(interval);
            }
        }
        claim.says = words::of_claim(&claim);
        claim
    }
}

impl Kept {
    fn of_rounds(rounds: &[[Vec<Reading>; 2]]) -> Kept {
        let logs = rounds.iter().map(|[of, to]| Some(mean_log(of)? - mean_log(to)?));
        let logs = logs.collect::<Option<Vec<f64>>>().unwrap_or_default();
        Kept {
            estimate: Estimate::of_rounds(&logs),
            ratios: logs.iter().map(|log| log.exp()).collect(),
            readings: [0, 1]
                .map(|side| rounds.iter().flat_map(|round| round[side].iter().copied()).collect()),
        }
    }

    fn of_runs(readings: &[Vec<Reading>; 2]) -> Kept {
        let readings = readings
            .each_ref()
            .map(|of| of.iter().copied().filter(|of| *of != Reading::NotReached).collect::<Vec<Reading>>());
        let [of, to] = readings
            .each_ref()
            .map(|readings| readings.iter().map(|of| of.log()).collect::<Option<Vec<f64>>>());
        let estimate = of.zip(to).and_then(|(of, to)| Estimate::of_runs(&of, &to));
        Kept { estimate, ratios: Vec::new(), readings }
    }
}

/// Whether all runs of the side lack a figure and none of the other's (true), or the contrary, where both have enough runs for
/// that to be no chance. It is not corrected for how many figures there are: by chance only a figure is lacking at times that
/// lies just at its bound, which few do at once.
fn all_or_none(lacks: NotReached) -> Option<bool> {
    let NotReached { runs, of, .. } = lacks;
    let is_enough = of[0].min(of[1]) >= LEAST && unanimous(of[0], of[1]) <= LEVEL;
    match runs {
        [one, 0] if is_enough && one == of[0] => Some(true),
        [0, other] if is_enough && other == of[1] => Some(false),
        _ => None,
    }
}

/// Whether every run of both sides says the same.
fn is_same(readings: &[Vec<Reading>; 2]) -> bool {
    let mut all = readings.iter().flatten();
    let first = all.next();
    all.all(|of| Some(of) == first)
}

/// How many runs one side has, where each of them is above, or each below, all of the other's, and both have enough.
fn all_beyond(of: &[Reading], to: &[Reading]) -> Option<usize> {
    let range = |readings: &[Reading]| {
        let logs = readings.iter().map(|of| of.log()).collect::<Option<Vec<f64>>>()?;
        let bounds = (f64::INFINITY, f64::NEG_INFINITY);
        Some(logs.iter().fold(bounds, |(least, most), log| (least.min(*log), most.max(*log))))
    };
    let ((least, most), (least_to, most_to)) = range(of).zip(range(to))?;
    let is_enough = of.len().min(to.len()) >= LEAST;
    (is_enough && (least > most_to || most < least_to)).then_some(of.len())
}

/// The geometric mean of those that there are.
fn typical(readings: &[Reading]) -> Option<f64> {
    let logs: Vec<f64> = readings.iter().filter_map(|of| of.log()).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
}

/// The mean of the logarithms, where all of them are there.
fn mean_log(readings: &[Reading]) -> Option<f64> {
    let logs = readings.iter().map(|of| of.log()).collect::<Option<Vec<f64>>>()?;
    (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
}

/// What is measured within a run; memory is not.
fn measure(figure: Figure) -> Option<Measure> {
    match (figure, figure.quantile()) {
        (_, Some(share)) => Some(Measure::Quantile(share)),
        (Figure::Rate, _) => Some(Measure::PerSecond),
        (Figure::Cpu, _) => Some(Measure::CpuPerRequest),
        _ => None,
    }
}

/// The seconds of a run, in blocks: of all requests together, and of each label.
fn seconds(run: &SideRun) -> Result<Vec<(Option<String>, Within)>, RecordError> {
    let stretches = stretches(&run.dir, &run.manifest, BLOCKS)?;
    let summary = &run.manifest.summary;
    let label = |(index, name): (usize, &String)| {
        let block = |stretch: &Stretch| {
            let of = &stretch.labels[index];
            let times = of.times.iter().chain((of.failed > 0).then_some((NEVER, of.failed))).collect();
            Block { length_s: stretch.length_s, answered: of.answered as f64, cpu_s: 0.0, times }
        };
        let step = summary.steps.iter().find(|step| step.label == *name);
        let due_per_s = step.and_then(|step| step.achieved_due_per_s);
        (Some(name.clone()), within(stretches.iter().map(block).collect(), due_per_s))
    };
    let all = |stretch: &Stretch| {
        let failed = stretch.labels.iter().map(|of| of.failed).sum::<u64>() + stretch.dropped;
        let good = stretch.labels.iter().flat_map(|of| of.times.iter());
        let mut times: Vec<(u64, u64)> = good.chain((failed > 0).then_some((NEVER, failed))).collect();
        times.sort_unstable();
        let started = stretch.cpu_s.iter().filter(|(name, _)| is_counted(&run.manifest, name));
        Block {
            length_s: stretch.length_s,
            answered: stretch.labels.iter().map(|of| of.answered).sum::<u64>() as f64,
            cpu_s: started.map(|(_, cpu_s)| cpu_s).sum(),
            times,
        }
    };
    let all = (None, within(stretches.iter().map(all).collect(), summary.achieved_due_per_s));
    Ok(std::iter::once(all).chain(run.manifest.labels.iter().enumerate().map(label)).collect())
}

/// Of these blocks. Where a rate is of what was due, what each block answered stands for its share of that.
fn within(mut blocks: Vec<Block>, due_per_s: Option<f64>) -> Within {
    let sum = |of: fn(&Block) -> f64| -> f64 { blocks.iter().map(of).sum() };
    let per_s = sum(|block| block.answered) / sum(|block| block.length_s);
    if let Some(due_per_s) = due_per_s.filter(|_| per_s > 0.0) {
        blocks.iter_mut().for_each(|block| block.answered *= due_per_s / per_s);
    }
    Within::new(blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::within::Measure;

    #[test]
    fn seconds_of_a_load_with_a_rate_come_to_what_was_achieved_of_what_was_due() {
        let blocks = |answered: [f64; 6]| -> Vec<Block> {
            answered.map(|answered| Block { length_s: 1.0, answered, ..Block::default() }).into()
        };
        // answers take a second, and all of them came
        let slow = within(blocks([1.0, 40.0, 40.0, 40.0, 40.0, 40.0]), Some(40.0));
        let fast = within(blocks([40.0; 6]), Some(40.0));
        let estimate = slow.against(&fast, Measure::PerSecond).unwrap();
        assert!(estimate.log.abs() < 1e-9, "{estimate:?}");
        // where most of the seconds have none nobody knows how sure that is
        let slower = within(blocks([0.0, 0.0, 0.0, 40.0, 40.0, 40.0]), Some(40.0));
        assert!(slower.against(&fast, Measure::PerSecond).is_none());
        // users who wait for answers have a rate by what came
        let users = within(blocks([20.0; 6]), None);
        assert!((users.against(&fast, Measure::PerSecond).unwrap().log - 0.5f64.ln()).abs() < 1e-9);
    }
}
