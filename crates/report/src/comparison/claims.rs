//! What differs between two sides, and how sure that is: several runs of each, or one.
//!
//! Figures come from the summaries of the runs; the seconds of a run are read only where each side has a single one.

use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::summary::Status;
use tidemark_record::{ComparedRun, ComparisonFile, InRounds, Manifest, Part, RecordError};

use super::broken::{self, Broken};
use super::errors::Errors;
use super::figure::Figure;
use super::measured::{Measured, NotReached, Pair, is_valid};
use super::rule::{Judged, Rule};
use super::words;
use crate::cost::NamedBill;
use crate::statistics::{Estimate, Interval, LEAST, LEVEL, is_settled, together_with};

/// Most sides of a comparison.
pub const SIDES_MAX: usize = 24;

/// How a reason begins that says of a system that it was silent for a while.
const SILENT: [&str; 2] = ["the system stopped answering", "the system gave no good answer"];

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

    /// Where all runs of sides that were named one by one are of one comparison that had them run in turn, they are compared by
    /// their rounds, as the comparison itself is: what it says must not depend on how it is asked. Gives the level of that
    /// comparison then, where it has one.
    pub fn take_rounds(sides: &mut [Side]) -> Option<f64> {
        let parent = sides.first()?.runs.first()?.dir.parent()?.to_owned();
        if sides.iter().flat_map(|side| &side.runs).any(|run| run.dir.parent() != Some(&parent)) {
            return None;
        }
        let comparison = ComparisonFile::open(&parent).ok()?;
        let found = |run: &SideRun| {
            let name = run.dir.file_name()?.to_str()?;
            comparison.runs.iter().find(|of| of.dir == name)
        };
        let mut in_turn = sides.to_vec();
        let mut parts = Vec::new();
        for side in &mut in_turn {
            let of: Vec<&ComparedRun> = side.runs.iter().map(found).collect::<Option<_>>()?;
            // runs of several sides of the comparison under one name are no rounds of one
            if of.iter().any(|run| run.side != of[0].side) {
                return None;
            }
            parts.extend(of.iter().map(|run| run.part));
            let rounds: Vec<u64> = of.iter().map(|run| run.round).collect();
            side.runs.iter_mut().zip(rounds).for_each(|(run, round)| run.round = Some(round));
        }
        let (first, others) = in_turn.split_first()?;
        let is_whole = |other: &Side| other.whole_rounds_beside(first).len() >= LEAST;
        if parts.iter().any(|part| *part != parts[0]) || !others.iter().all(is_whole) {
            return None;
        }
        sides.clone_from_slice(&in_turn);
        comparison.in_rounds.map(|of| of.level)
    }

    /// The sides of a comparison's directory. Of one that ran at an equal rate, too, those runs: there all had the same to do.
    /// Where it was stopped before two sides had a run, those without one are there, too.
    ///
    /// # Errors
    /// A run of it cannot be read, or it came to its end and has runs of fewer than two sides.
    pub fn of_comparison(dir: &Path, comparison: &ComparisonFile) -> Result<Vec<Side>, RecordError> {
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
        let with_runs = sides.iter().filter(|side| !side.runs.is_empty()).count();
        if with_runs < 2 && comparison.stopped.is_some() {
            return Ok(sides);
        }
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
        let of_all = |rounds: &dyn Fn(&Side) -> Vec<u64>| -> Vec<u64> {
            let others: Vec<Vec<u64>> = others.iter().map(rounds).collect();
            rounds(first).into_iter().filter(|round| others.iter().all(|of| of.contains(round))).collect()
        };
        if of_all(&Side::rounds).is_empty() {
            return sides.iter().all(|side| side.runs.iter().any(is_valid));
        }
        !of_all(&Side::valid_rounds).is_empty()
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

    /// Those of them that no invalid run is in.
    fn valid_rounds(&self) -> Vec<u64> {
        let in_round = |round: u64| self.runs.iter().filter(move |run| run.round == Some(round));
        self.rounds().into_iter().filter(|round| in_round(*round).all(is_valid)).collect()
    }

    /// The rounds that another side has whole, too.
    pub(crate) fn whole_rounds_beside(&self, other: &Side) -> Vec<u64> {
        let others = other.rounds();
        self.rounds().into_iter().filter(|round| others.contains(round)).collect()
    }

    /// The same, and without an invalid run on either side: those that count.
    pub(crate) fn rounds_beside(&self, other: &Side) -> Vec<u64> {
        let others = other.valid_rounds();
        self.valid_rounds().into_iter().filter(|round| others.contains(round)).collect()
    }
}

/// What the intervals are made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
    /// In how many runs of the side it is not reached, as too many requests failed. The ratio is of the others.
    pub not_reached: usize,
    /// In how many of the side that it is held against.
    pub not_reached_to: usize,
    /// The same for a person.
    pub says: String,
    /// The ratio in each round.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<f64>,
    #[serde(skip)]
    pub(crate) interval: Option<Interval>,
    #[serde(skip)]
    pub(crate) estimate: Option<Estimate>,
    #[serde(skip)]
    pub(crate) lacks: NotReached,
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
        let of_ratio = (self.ratio.unwrap_or(1.0) > 1.0) == self.figure.more_is_worse();
        !self.figure.is_neutral() && self.lacks.more_often.unwrap_or(of_ratio)
    }

    /// Whether a difference is claimed, and it is better.
    pub fn is_better(&self) -> bool {
        self.differs() && !self.figure.is_neutral() && !self.is_worse()
    }

    /// What is claimed, in a word or two; the same wherever it is shown. Empty where nothing is known of how sure it is.
    pub fn word(&self) -> &'static str {
        match self.difference {
            Some(true) if self.figure.is_neutral() => {
                if self.ratio < Some(1.0) {
                    "fewer"
                } else {
                    "more"
                }
            }
            Some(true) if self.is_worse() => "worse",
            Some(true) => "better",
            Some(false) if words::off(self).is_some_and(|off| off <= words::CLOSE) => "no difference",
            Some(false) => "too noisy",
            None if self.lacks.runs != [0, 0] => "not sure",
            None => "",
        }
    }

    /// Whether something is known of how sure it is.
    pub(crate) fn is_measured(&self) -> bool {
        self.estimate.is_some() || self.differs()
    }
}

/// A side as it is shown.
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
#[derive(Debug, Clone, Serialize, JsonSchema)]
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
    /// How many requests have no good answer, for each side but the first.
    pub errors: Vec<Errors>,
    /// The sides of which runs failed whatever their figures are: writes were lost, the system ended by itself. Empty where
    /// there are none.
    pub broken: Vec<Broken>,
    /// What became of each rule that was asked for.
    pub fail_if: Vec<Judged>,
    /// What is to be said beside.
    pub notes: Vec<String>,
    /// Why it did not come to its end; null if it did.
    pub stopped: Option<String>,
    /// How long it took, seconds; null where runs are compared that were there.
    pub took_s: Option<f64>,
    /// What bounded a comparison in rounds, and how many rounds ran.
    #[serde(skip)]
    pub(crate) bounds: Option<(InRounds, u64)>,
    /// Where the runs are, where they are in one directory.
    pub run_dir: Option<String>,
    /// With `--prices`: what each side costs; absent without.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bills: Vec<NamedBill>,
}

/// How claims are made.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// The level; 1 in 20 if there is none.
    pub level: Option<f64>,
    /// How a comparison in rounds went, and how many rounds ran.
    pub bounds: Option<(InRounds, u64)>,
    /// What is judged.
    pub rules: &'a [Rule],
}

impl Claims {
    /// Holds sides against the first of them, of which there are at least two. Where one has no run, nothing is compared.
    ///
    /// # Errors
    /// The seconds of a run cannot be read, where they are needed.
    pub fn of(sides: &[Side], asked: Asked<'_>) -> Result<Claims, RecordError> {
        let [first, others @ ..] = sides else { return Ok(Claims::none()) };
        if sides.iter().any(|side| side.runs.is_empty()) {
            return Ok(Claims::without_runs(sides, asked));
        }
        let labels = labels(sides);
        let (mut measured, mut errors, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        let is_asked = asked.rules.iter().any(|rule| rule.figure.is_none());
        let (mut covers, mut rounds) = (Covers::BetweenRounds, usize::MAX);
        for (index, other) in (1..).zip(others) {
            let pair = Pair::of(other, first)?;
            covers = covers.min(pair.covers());
            rounds = rounds.min(pair.rounds());
            let (whole, valid) = (pair.whole_rounds(), other.rounds_beside(first).len());
            if valid < whole {
                let (missing, side) = (whole - valid, letter(index));
                left_out.push(format!(
                    "{side} against A: {missing} of {whole} rounds left out, as a run of them is invalid"
                ));
            }
            let all = Figure::OF_ALL.map(|figure| (None, figure)).into_iter();
            let each =
                labels.iter().flat_map(|label| Figure::OF_LABEL.map(|figure| (Some(label.as_str()), figure)));
            for (label, figure) in all.chain(each) {
                measured.extend(Measured::of(index, &pair, label, figure));
            }
            let (of, estimate) = Errors::of(index, &pair);
            // where none failed there is nothing to claim
            let estimate = estimate.filter(|_| is_asked || of.are_any());
            errors.push((of, estimate));
        }
        let of_errors = errors.iter().map(|(_, estimate)| *estimate);
        let estimates: Vec<Option<Estimate>> =
            measured.iter().map(|of| of.estimate).chain(of_errors).collect();
        let uneven: Vec<f64> = measured.iter().filter_map(|of| of.uneven).collect();
        let (mut intervals, level) = together_with(&estimates, &uneven, asked.level.unwrap_or(LEVEL));
        let of_errors = intervals.split_off(measured.len());
        let errors = errors.into_iter().zip(of_errors).map(|((of, _), interval)| of.with(interval)).collect();
        let comparisons: Vec<Claim> =
            measured.into_iter().zip(intervals).map(|(of, interval)| of.claim(interval, level)).collect();
        let mut notes = words::notes(sides, covers, &labels);
        notes.extend(left_out);
        let broken = Broken::of(sides);
        notes.extend(broken::notes(&broken));
        let mut claims = Claims {
            sides: sides.iter().enumerate().map(|(index, side)| shown(index, side)).collect(),
            covers,
            rounds: if rounds == usize::MAX { 0 } else { rounds },
            notes,
            comparisons,
            errors,
            broken,
            took_s: asked.bounds.map(|(of, _)| of.took_s),
            bounds: asked.bounds,
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
        comparison: &ComparisonFile,
        sides: &[Side],
        level: Option<f64>,
        rules: &[Rule],
    ) -> Result<Claims, RecordError> {
        let in_rounds = comparison.in_rounds;
        let level = level.or(in_rounds.map(|of| of.level));
        let ran = comparison.runs.iter().map(|run| run.round).max().unwrap_or(0);
        let asked = Asked { level, bounds: in_rounds.map(|of| (of, ran)), rules };
        let mut claims = Claims::of_measured(sides, asked)?;
        claims.run_dir = Some(dir.display().to_string());
        claims.notes.extend(comparison.left_out.iter().map(|left_out| format!("left out: {left_out}")));
        claims.notes.extend(words::over_budget(comparison));
        if let Some(stopped) = &comparison.stopped {
            claims.stop(stopped);
        }
        Ok(claims)
    }

    /// Says that it did not come to its end, and why.
    pub fn stop(&mut self, why: &str) {
        self.notes.push(format!("stopped early: {why}"));
        self.stopped = Some(why.to_owned());
    }

    /// Nothing is claimed, as not every side has a run.
    fn without_runs(sides: &[Side], asked: Asked<'_>) -> Claims {
        let missing: Vec<String> = (0..)
            .zip(sides)
            .filter(|(_, side)| side.runs.is_empty())
            .map(|(index, _)| letter(index))
            .collect();
        let missing = missing.join(", ");
        let says = (1..sides.len())
            .map(|side| format!("nothing can be said of {}: there is no run of {missing}", letter(side)));
        let mut claims = Claims {
            says: says.collect(),
            sides: sides.iter().enumerate().map(|(index, side)| shown(index, side)).collect(),
            broken: Broken::of(sides),
            took_s: asked.bounds.map(|(of, _)| of.took_s),
            bounds: asked.bounds,
            ..Claims::none()
        };
        claims.fail_if = asked.rules.iter().flat_map(|rule| rule.judge(&claims)).collect();
        claims
    }

    fn none() -> Claims {
        Claims {
            says: Vec::new(),
            sides: Vec::new(),
            covers: Covers::Nothing,
            rounds: 0,
            comparisons: Vec::new(),
            errors: Vec::new(),
            broken: Vec::new(),
            fail_if: Vec::new(),
            notes: Vec::new(),
            stopped: None,
            took_s: None,
            bounds: None,
            run_dir: None,
            bills: Vec::new(),
        }
    }

    /// The claims of one side.
    pub fn of_side<'c>(&'c self, side: &'c str) -> impl Iterator<Item = &'c Claim> + Clone {
        self.comparisons.iter().filter(move |claim| claim.side == side)
    }

    /// How many requests of a side have no good answer.
    pub(crate) fn errors_of(&self, side: &str) -> Option<&Errors> {
        self.errors.iter().find(|of| of.side == side)
    }

    /// In how many of its runs a side failed whatever its figures are; none where it did in none.
    pub(crate) fn broken_of(&self, side: &str) -> Option<&Broken> {
        self.broken.iter().find(|of| of.side == side)
    }

    /// Whether a side failed so in a larger share of its runs than the first.
    pub(crate) fn is_broken(&self, side: &str) -> bool {
        broken::by_share(self.broken_of(side), self.broken_of(&letter(0))).is_gt()
    }

    /// What is said of each side that failed so in a run, where the first did in none. A system that did not answer for a
    /// while may have stood still by chance.
    fn broken_alone(&self) -> Vec<String> {
        let first = letter(0);
        match self.broken_of(&first) {
            Some(_) => Vec::new(),
            None => {
                let sure =
                    self.broken.iter().filter(|of| !SILENT.iter().any(|begin| of.reason.starts_with(begin)));
                sure.map(|of| of.says(&first, None)).collect()
            }
        }
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
        let is_watched =
            |of: &&Claim| of.label.is_none() && of.figure != Figure::Memory && !of.figure.is_neutral();
        let watched = self.comparisons.iter().filter(is_watched);
        let unknown = watched.clone().any(|of| of.interval.is_none() && !of.differs());
        !unknown && is_settled(watched.filter_map(|of| of.interval.as_ref()), within)
    }

    /// What fails whatever the rules ask for, where there are any: whoever asks for a failure does not want a side that loses
    /// writes, however fast it is.
    pub(crate) fn fails_anyway(&self) -> Vec<String> {
        if self.fail_if.is_empty() {
            return Vec::new();
        }
        self.broken_alone().iter().map(|says| format!("fails, whatever --fail-if asks for: {says}")).collect()
    }

    /// Whether a rule says that it failed, or there is one and a side failed whatever it asks for.
    pub fn has_failed(&self) -> bool {
        !self.fails_anyway().is_empty() || self.fail_if.iter().any(|judged| judged.failed == Some(true))
    }

    /// The rules that can be sure for no side, whatever the figures are; each with whether its figure was measured, in too few
    /// runs then.
    pub fn unknown(&self) -> Vec<(&str, bool)> {
        let any =
            |rule: &str, is: fn(&Judged) -> bool| self.fail_if.iter().any(|of| of.rule == rule && is(of));
        let mut rules: Vec<&str> = self.fail_if.iter().map(|of| of.rule.as_str()).collect();
        rules.dedup();
        rules.retain(|rule| !any(rule, |of| of.known));
        rules.into_iter().map(|rule| (rule, any(rule, |of| of.measured))).collect()
    }

    /// As one JSON object, indented, with a line end: `docs/compare.schema.json`.
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

/// How many runs of a side are invalid, and why the first of them is.
pub(crate) fn invalid(side: &Side) -> Option<(usize, &str)> {
    let mut invalid =
        side.runs.iter().map(|run| &run.manifest.summary.verdict).filter(|of| of.status == Status::Invalid);
    let first = invalid.next()?;
    Some((1 + invalid.count(), first.reasons.first().map_or("", |reason| &**reason)))
}

#[cfg(test)]
mod tests;
