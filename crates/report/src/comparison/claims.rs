//! What differs between two sides, and how sure that is: several runs of each, or one.
//!
//! Figures come from the summaries of the runs; the seconds of a run are read only where each side has a single one.

use std::path::{Path, PathBuf};

use serde::Serialize;
use tidemark_record::summary::Status;
use tidemark_record::{ComparedRun, Comparison, Manifest, Part, RecordError, Stretch, stretches};

use super::figure::{Figure, Reading};
use super::rule::{Judged, Rule};
use super::words;
use crate::statistics::within::{BLOCKS, Block, Measure, NEVER, Within};
use crate::statistics::{Estimate, Interval, LEAST, LEVEL, is_settled, together};
use crate::watched::is_counted;

/// Most sides of a comparison.
pub const SIDES_MAX: usize = 24;

/// One side of a comparison.
#[derive(Debug, Clone)]
pub struct Side {
    /// What it is: `store=embedded`, `runs/a`.
    pub name: String,
    /// Its runs.
    pub runs: Vec<SideRun>,
}

/// A run of a side.
#[derive(Debug, Clone)]
pub struct SideRun {
    /// Where it is.
    pub dir: PathBuf,
    /// The round that it ran in; none where it ran by itself.
    pub round: Option<u64>,
    /// What it was and came to.
    pub manifest: Manifest,
}

impl Side {
    /// Of runs that ran by themselves.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn of_runs(name: &str, dirs: &[PathBuf]) -> Result<Side, RecordError> {
        let run = |dir: &PathBuf| -> Result<SideRun, RecordError> {
            Ok(SideRun { dir: dir.clone(), round: None, manifest: Manifest::open(dir)? })
        };
        Ok(Side { name: name.to_owned(), runs: dirs.iter().map(run).collect::<Result<_, RecordError>>()? })
    }

    /// The sides of a comparison's directory. Of one that ran at an equal rate, too, those runs: there all had the same to do.
    ///
    /// # Errors
    /// A run of it cannot be read, or it has fewer than two sides.
    pub fn of_comparison(dir: &Path, comparison: &Comparison) -> Result<Vec<Side>, RecordError> {
        let has_equal = comparison.runs.iter().any(|run| run.part == Part::EqualRate);
        let part = if has_equal { Part::EqualRate } else { Part::OwnLoad };
        let side = |(index, name): (usize, &String)| -> Result<Side, RecordError> {
            let of = comparison.runs.iter().filter(|run| run.side == index && run.part == part);
            let run = |of: &ComparedRun| -> Result<SideRun, RecordError> {
                let dir = dir.join(&of.dir);
                Ok(SideRun { round: Some(of.round), manifest: Manifest::open(&dir)?, dir })
            };
            Ok(Side { name: name.clone(), runs: of.map(run).collect::<Result<_, RecordError>>()? })
        };
        let sides = comparison.sides.iter().enumerate().map(side).collect::<Result<Vec<_>, RecordError>>()?;
        let sides: Vec<Side> = sides.into_iter().filter(|side| !side.runs.is_empty()).collect();
        if sides.len() < 2 {
            let reason = "it has runs of one side only, so that there is nothing to compare".to_owned();
            return Err(RecordError::Damaged { path: dir.to_owned(), reason });
        }
        Ok(sides)
    }

    /// Whether something valid is left to compare: a round that all have and no invalid run is in; or, where they did not
    /// run in rounds, a valid run of each.
    pub fn has_valid(sides: &[Side]) -> bool {
        let Some((first, others)) = sides.split_first() else { return false };
        let is_valid = |run: &SideRun| run.manifest.summary.verdict.status != Status::Invalid;
        let rounds: Vec<u64> = first
            .rounds()
            .into_iter()
            .filter(|round| others.iter().all(|other| other.rounds().contains(round)))
            .collect();
        if rounds.is_empty() {
            return sides.iter().all(|side| side.runs.iter().any(is_valid));
        }
        let in_round =
            |round: u64| sides.iter().flat_map(|side| &side.runs).filter(move |run| run.round == Some(round));
        rounds.into_iter().any(|round| in_round(round).all(is_valid))
    }

    /// The rounds that it has whole: as many runs in each as in the first.
    fn rounds(&self) -> Vec<u64> {
        let mut rounds: Vec<u64> = self.runs.iter().filter_map(|run| run.round).collect();
        let count = |round: u64| self.runs.iter().filter(|run| run.round == Some(round)).count();
        rounds.sort_unstable();
        rounds.dedup();
        let whole = rounds.first().map_or(0, |first| count(*first));
        rounds.retain(|round| count(*round) == whole);
        rounds
    }

    /// The rounds that another side has, too.
    pub(crate) fn rounds_beside(&self, other: &Side) -> Vec<u64> {
        let others = other.rounds();
        self.rounds().into_iter().filter(|round| others.contains(round)).collect()
    }

    /// What its runs say of a figure; of one round, or all.
    fn readings(&self, label: Option<&str>, figure: Figure, round: Option<u64>) -> Vec<Reading> {
        let runs = self.runs.iter().filter(|run| round.is_none() || run.round == round);
        runs.map(|run| figure.read(&run.manifest, label)).collect()
    }
}

/// What the intervals are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Covers {
    /// There are none.
    Nothing,
    /// What differs within a run, and not what differs between runs.
    WithinRuns,
    /// What differs between runs, and whatever changed from when those of one side ran to when the others did.
    BetweenRuns,
    /// What differs between runs that ran beside each other.
    BetweenRounds,
}

/// One figure of one side against the first.
#[derive(Debug, Clone, Serialize)]
pub struct Claim {
    /// The side: `B`.
    pub side: String,
    /// The side that it is held against: `A`.
    pub to: String,
    /// The label; null for all requests together.
    pub label: Option<String>,
    /// The figure.
    pub figure: Figure,
    /// Its value: answers per second, microseconds, bytes. Of several runs their geometric mean; null where it is not reached.
    pub value: Option<f64>,
    /// That of the side that it is held against.
    pub value_to: Option<f64>,
    /// The ratio; null where one of them is not reached.
    pub ratio: Option<f64>,
    /// Lower bound of where it lies; null where that cannot be told.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Whether there is a difference; null where nothing is claimed.
    pub difference: Option<bool>,
    /// The same for a person.
    pub says: String,
    /// The ratio in each round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<f64>,
    #[serde(skip)]
    pub(crate) interval: Option<Interval>,
    #[serde(skip)]
    pub(crate) estimate: Option<Estimate>,
    /// Whether it is not reached in runs of the side, and is in all of those that it is held against.
    #[serde(skip)]
    pub(crate) only_here_not_reached: bool,
    /// Whether all runs of the side lie beyond all of the other's, which by itself proves nothing of few; how many they are.
    #[serde(skip)]
    pub(crate) all_beyond: Option<usize>,
}

impl Claim {
    /// Whether a difference is claimed.
    pub fn differs(&self) -> bool {
        self.difference == Some(true)
    }

    /// Whether it is worse than what it is held against, where a difference is claimed.
    pub fn is_worse(&self) -> bool {
        self.only_here_not_reached || (self.ratio.unwrap_or(1.0) > 1.0) == self.figure.more_is_worse()
    }
}

/// A side as it is shown.
#[derive(Debug, Clone, Serialize)]
pub struct ShownSide {
    /// `A`, `B`, …
    pub side: String,
    /// What it is.
    pub name: String,
    /// Where its runs are.
    pub runs: Vec<String>,
    /// Git revisions that they ran at.
    pub revisions: Vec<String>,
}

/// What a comparison claims: the object that `tidemark compare --json` prints.
#[derive(Debug, Clone, Serialize)]
pub struct Claims {
    /// A sentence for each side but the first.
    pub says: Vec<String>,
    /// The sides; all others are held against the first.
    pub sides: Vec<ShownSide>,
    /// What the intervals are made from.
    pub covers: Covers,
    /// Rounds that were compared; 0 where the runs did not run in rounds.
    pub rounds: usize,
    /// Each figure, of all requests and of each label.
    pub comparisons: Vec<Claim>,
    /// What became of each rule that was asked for.
    pub fail_if: Vec<Judged>,
    /// What is to be said beside.
    pub notes: Vec<String>,
    /// How long it took, seconds; null where runs are compared that were there.
    pub took_s: Option<f64>,
    /// Where the runs are, where they are in one directory.
    pub run_dir: Option<String>,
}

/// How claims are made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The level; 1 in 20 if there is none.
    pub level: Option<f64>,
    /// How long the runs took, seconds.
    pub took_s: Option<f64>,
    /// What is judged.
    pub rules: &'a [Rule],
}

impl Claims {
    /// Holds sides against the first of them. There are at least two, each with a run.
    ///
    /// # Errors
    /// The seconds of a run cannot be read, where they are needed.
    pub fn of(sides: &[Side], asked: Asked<'_>) -> Result<Claims, RecordError> {
        let [first, others @ ..] = sides else { return Ok(Claims::none()) };
        let labels = labels(sides);
        let mut measured = Vec::new();
        let (mut covers, mut rounds) = (Covers::BetweenRounds, usize::MAX);
        for (index, other) in (1..).zip(others) {
            let basis = Basis::of(other, first)?;
            covers = covers.min(basis.covers());
            rounds = rounds.min(basis.rounds());
            let all = Figure::OF_ALL.map(|figure| (None, figure)).into_iter();
            let each =
                labels.iter().flat_map(|label| Figure::OF_LABEL.map(|figure| (Some(label.as_str()), figure)));
            for (label, figure) in all.chain(each) {
                measured.extend(Measured::of((index, other), first, label, figure, &basis));
            }
        }
        let estimates: Vec<Option<Estimate>> = measured.iter().map(|of| of.estimate).collect();
        let intervals = together(&estimates, asked.level.unwrap_or(LEVEL));
        let comparisons: Vec<Claim> =
            measured.into_iter().zip(intervals).map(|(of, interval)| of.claim(interval)).collect();
        let mut claims = Claims {
            sides: sides.iter().enumerate().map(|(index, side)| shown(index, side)).collect(),
            covers,
            rounds: if rounds == usize::MAX { 0 } else { rounds },
            notes: words::notes(sides, covers, &labels),
            comparisons,
            took_s: asked.took_s,
            ..Claims::none()
        };
        claims.fail_if = asked.rules.iter().flat_map(|rule| rule.judge(&claims)).collect();
        claims.says = (1..sides.len()).map(|side| words::sentence(&claims, &letter(side))).collect();
        Ok(claims)
    }

    /// As [`Claims::of`], where something was measured in each run.
    ///
    /// # Errors
    /// Nothing was measured in a run; or those of [`Claims::of`].
    pub fn of_measured(sides: &[Side], asked: Asked<'_>) -> Result<Claims, RecordError> {
        let is_empty = |run: &&SideRun| run.manifest.summary.due() == 0;
        if let Some(run) = sides.iter().flat_map(|side| &side.runs).find(is_empty) {
            let reason = "nothing was measured in this run".to_owned();
            return Err(RecordError::Damaged { path: run.dir.clone(), reason });
        }
        Claims::of(sides, asked)
    }

    /// The claims of a comparison's directory, whose sides were [read](Side::of_comparison) before; at another level than
    /// its own, if one is given.
    ///
    /// # Errors
    /// Those of [`Claims::of_measured`].
    pub fn of_directory(
        dir: &Path,
        comparison: &Comparison,
        sides: &[Side],
        level: Option<f64>,
        rules: &[Rule],
    ) -> Result<Claims, RecordError> {
        let in_rounds = comparison.in_rounds;
        let level = level.or(in_rounds.map(|of| of.level));
        let asked = Asked { level, took_s: in_rounds.map(|of| of.took_s), rules };
        let mut claims = Claims::of_measured(sides, asked)?;
        claims.run_dir = Some(dir.display().to_string());
        claims.notes.extend(comparison.left_out.iter().map(|left_out| format!("left out: {left_out}")));
        claims.notes.extend(comparison.stopped.iter().map(|stopped| format!("stopped early: {stopped}")));
        Ok(claims)
    }

    fn none() -> Claims {
        Claims {
            says: Vec::new(),
            sides: Vec::new(),
            covers: Covers::Nothing,
            rounds: 0,
            comparisons: Vec::new(),
            fail_if: Vec::new(),
            notes: Vec::new(),
            took_s: None,
            run_dir: None,
        }
    }

    /// The claims of one side.
    pub fn of_side<'c>(&'c self, side: &'c str) -> impl Iterator<Item = &'c Claim> + Clone {
        self.comparisons.iter().filter(move |claim| claim.side == side)
    }

    /// Whether all that is known of a side is how the seconds of one run differ, and those of the one run of the first.
    pub(crate) fn is_of_two_runs(&self, side: &str) -> bool {
        let is_one = |of: &ShownSide| of.runs.len() == 1;
        self.covers == Covers::WithinRuns
            && self.sides.first().is_some_and(is_one)
            && self.sides.iter().any(|of| of.side == side && is_one(of))
    }

    /// Whether more rounds would find nothing out that is asked for: each rule is judged; or, where there are none, each
    /// figure of all requests differs, or is known to within this share.
    pub fn is_settled(&self, within: f64) -> bool {
        if !self.fail_if.is_empty() {
            return self.fail_if.iter().all(|judged| judged.failed.is_some());
        }
        let watched = self.comparisons.iter().filter(|of| of.label.is_none() && of.figure != Figure::Memory);
        let unknown = watched.clone().any(|of| of.interval.is_none() && !of.only_here_not_reached);
        !unknown && is_settled(watched.filter_map(|of| of.interval.as_ref()), within)
    }

    /// Whether a rule says that it failed.
    pub fn has_failed(&self) -> bool {
        self.fail_if.iter().any(|judged| judged.failed == Some(true))
    }

    /// As one JSON object, indented, with a line end.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("claims are plain JSON") + "\n"
    }
}

/// What a side is called in sentences.
pub(crate) fn letter(side: usize) -> String {
    char::from(b'A' + (side % 26) as u8).to_string()
}

fn shown(index: usize, side: &Side) -> ShownSide {
    let mut revisions: Vec<String> =
        side.runs.iter().filter_map(|run| run.manifest.git_revision.clone()).collect();
    revisions.dedup();
    ShownSide {
        side: letter(index),
        name: side.name.clone(),
        runs: side.runs.iter().map(|run| run.dir.display().to_string()).collect(),
        revisions,
    }
}

/// The labels that all runs have, where there is more than one.
fn labels(sides: &[Side]) -> Vec<String> {
    let manifests = || sides.iter().flat_map(|side| &side.runs).map(|run| &run.manifest);
    let Some(first) = manifests().next() else { return Vec::new() };
    let has = |label: &String| manifests().all(|of| of.labels.contains(label));
    let labels: Vec<String> = first.labels.iter().filter(|label| has(label)).cloned().collect();
    if manifests().all(|of| of.labels.len() < 2) { Vec::new() } else { labels }
}

/// What two sides are held against each other by.
enum Basis {
    Rounds(Vec<u64>),
    Runs,
    /// A single run each; by label, all requests together first.
    Seconds([Vec<(Option<String>, Within)>; 2]),
    Nothing,
}

impl Basis {
    fn of(of: &Side, to: &Side) -> Result<Basis, RecordError> {
        let rounds = of.rounds_beside(to);
        match (&of.runs[..], &to.runs[..]) {
            _ if rounds.len() >= LEAST => Ok(Basis::Rounds(rounds)),
            // who runs in rounds may have more of them
            _ if !rounds.is_empty() => Ok(Basis::Nothing),
            ([of], [to]) => Ok(Basis::Seconds([seconds(of)?, seconds(to)?])),
            (of, to) if of.len() + to.len() >= LEAST => Ok(Basis::Runs),
            _ => Ok(Basis::Nothing),
        }
    }

    fn covers(&self) -> Covers {
        match self {
            Basis::Rounds(_) => Covers::BetweenRounds,
            Basis::Runs => Covers::BetweenRuns,
            Basis::Seconds(_) => Covers::WithinRuns,
            Basis::Nothing => Covers::Nothing,
        }
    }

    fn rounds(&self) -> usize {
        if let Basis::Rounds(rounds) = self { rounds.len() } else { 0 }
    }
}

/// The seconds of a run, in blocks: of all requests together, and of each label.
fn seconds(run: &SideRun) -> Result<Vec<(Option<String>, Within)>, RecordError> {
    let stretches = stretches(&run.dir, &run.manifest, BLOCKS)?;
    let label = |(index, name): (usize, &String)| {
        let block = |stretch: &Stretch| {
            let of = &stretch.labels[index];
            let times = of.times.iter().chain((of.failed > 0).then_some((NEVER, of.failed))).collect();
            Block { length_s: stretch.length_s, answered: of.answered, cpu_s: 0.0, times }
        };
        (Some(name.clone()), Within::new(stretches.iter().map(block).collect()))
    };
    let all = |stretch: &Stretch| {
        let failed = stretch.labels.iter().map(|of| of.failed).sum::<u64>() + stretch.dropped;
        let good = stretch.labels.iter().flat_map(|of| of.times.iter());
        let mut times: Vec<(u64, u64)> = good.chain((failed > 0).then_some((NEVER, failed))).collect();
        times.sort_unstable();
        let started = stretch.cpu_s.iter().filter(|(name, _)| is_counted(&run.manifest, name));
        Block {
            length_s: stretch.length_s,
            answered: stretch.labels.iter().map(|of| of.answered).sum(),
            cpu_s: started.map(|(_, cpu_s)| cpu_s).sum(),
            times,
        }
    };
    let all = (None, Within::new(stretches.iter().map(all).collect()));
    Ok(std::iter::once(all).chain(run.manifest.labels.iter().enumerate().map(label)).collect())
}

/// A figure of two sides, before it is corrected for how many there are.
struct Measured {
    claim: Claim,
    estimate: Option<Estimate>,
}

impl Measured {
    /// None where neither side knows it.
    fn of(
        (index, of): (usize, &Side),
        to: &Side,
        label: Option<&str>,
        figure: Figure,
        basis: &Basis,
    ) -> Option<Measured> {
        let [readings, readings_to] = [of, to].map(|side| side.readings(label, figure, None));
        let is_reached = |readings: &[Reading]| !readings.contains(&Reading::NotReached);
        let [reached, reached_to] = [&readings, &readings_to].map(|readings| is_reached(readings));
        let [value, value_to] = [&readings, &readings_to].map(|readings| typical(readings));
        if (reached && value.is_none()) || (reached_to && value_to.is_none()) {
            return None;
        }
        let least = value.unwrap_or(1.0).min(value_to.unwrap_or(1.0));
        let mut rounds = Vec::new();
        let estimate = match basis {
            _ if !reached || !reached_to => None,
            Basis::Rounds(numbers) => {
                let log = |side: &Side, round: u64| mean_log(&side.readings(label, figure, Some(round)));
                let logs = numbers.iter().map(|round| Some(log(of, *round)? - log(to, *round)?));
                logs.collect::<Option<Vec<f64>>>().and_then(|logs| {
                    rounds = logs.iter().map(|log| log.exp()).collect();
                    Estimate::of_rounds(&logs)
                })
            }
            Basis::Runs => {
                let logs =
                    |readings: &[Reading]| readings.iter().map(|of| of.log()).collect::<Option<Vec<f64>>>();
                logs(&readings).zip(logs(&readings_to)).and_then(|(of, to)| Estimate::of_runs(&of, &to))
            }
            Basis::Seconds(both) => {
                let [of, to] = both.each_ref().map(|all| {
                    all.iter().find(|(name, _)| name.as_deref() == label).map(|(_, within)| within)
                });
                of.zip(to).and_then(|(of, to)| of.against(to, measure(figure)?))
            }
            Basis::Nothing => None,
        };
        let ratio = value.zip(value_to).filter(|_| reached && reached_to).map(|(of, to)| of / to);
        let claim = Claim {
            side: letter(index),
            to: letter(0),
            label: label.map(str::to_owned),
            figure,
            value: value.filter(|_| reached),
            value_to: value_to.filter(|_| reached_to),
            ratio,
            low: None,
            high: None,
            difference: None,
            says: String::new(),
            rounds,
            interval: None,
            estimate: None,
            only_here_not_reached: !reached && reached_to,
            all_beyond: match basis {
                Basis::Rounds(_) | Basis::Runs => all_beyond(&readings, &readings_to),
                Basis::Seconds(_) | Basis::Nothing => None,
            },
        };
        Some(Measured { claim, estimate: estimate.map(|of| of.with_step(figure.step(least))) })
    }

    fn claim(self, interval: Option<Interval>) -> Claim {
        let mut claim = self.claim;
        if let Some(interval) = interval {
            claim.ratio = Some(interval.ratio);
            (claim.low, claim.high) = (Some(interval.low), Some(interval.high));
            claim.difference = Some(interval.differs);
        }
        (claim.interval, claim.estimate) = (interval, self.estimate);
        claim.says = words::of_claim(&claim);
        claim
    }
}

/// The geometric mean of those that there are.
fn typical(readings: &[Reading]) -> Option<f64> {
    let logs: Vec<f64> = readings.iter().filter_map(|of| of.log()).collect();
    (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
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

/// How many runs of a side are invalid, and why the first of them is.
pub(crate) fn invalid(side: &Side) -> Option<(usize, &str)> {
    let mut invalid =
        side.runs.iter().map(|run| &run.manifest.summary.verdict).filter(|of| of.status == Status::Invalid);
    let first = invalid.next()?;
    Some((1 + invalid.count(), first.reasons.first().map_or("", String::as_str)))
}

#[cfg(test)]
mod tests;
