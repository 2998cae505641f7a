//! The runs of a folder over time: each figure of each scenario, and where it changed to stay.
//!
//! Runs stand in one [`Line`] only where the same was done on the same machine. Revisions stand beside the runs, so that a
//! change names the two between which it came.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::summary::Status;
use tidemark_record::{Manifest, RecordError, runs_in};

use crate::blocks::value;
use crate::comparison::{Figure, Reading, change};
use crate::statistics::change::{MOST, changes};
use crate::units::{more_than, plural};

/// Most runs that are read: the newest, by the names of their directories.
const READ_MAX: usize = 2_000;
/// Most damaged runs that are named.
const NAMED_MAX: usize = 10;
/// Characters of a revision that are shown.
const REVISION: usize = 10;
/// From so many runs on that did not reach a percentile, behind as many that did, it is told.
const UNREACHED_TOLD: usize = 3;

/// The runs of a folder.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct History {
    /// The folder.
    pub folder: String,
    /// What was done where, the latest last.
    pub lines: Vec<Line>,
    /// What is not in them, and why.
    pub notes: Vec<String>,
}

/// Runs that did the same on the same machine, in order of time.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Line {
    /// Name of the scenario.
    pub scenario: String,
    /// Load, system, durability and settings, for a person.
    pub what: Vec<String>,
    /// Digest of the scenario's text; null for runs that were made before it was written down.
    pub scenario_digest: Option<String>,
    /// The machine: `AMD EPYC 7B13, 4 cores`.
    pub machine: String,
    /// The runs.
    pub runs: Vec<Point>,
    /// A figure each; those that any run has.
    pub trends: Vec<Trend>,
}

/// A run of a line.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Point {
    /// Its name.
    pub run: String,
    /// Where it is.
    pub run_dir: String,
    /// When it began, RFC 3339, UTC.
    pub started_at: String,
    /// Git revision that it ran at; null where it ran outside of a repository.
    pub revision: Option<String>,
    /// Version of Tidemark.
    pub version: String,
    /// What it is worth.
    pub status: Status,
}

/// A figure over the runs of a line.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Trend {
    /// Which.
    pub figure: Figure,
    /// By run: answers per second, microseconds or bytes; null where it was not reached or not measured.
    pub values: Vec<Option<f64>>,
    /// Indices of the runs in which so many requests failed that there is none; the others without a value did not measure it.
    pub not_reached: Vec<usize>,
    /// Where it changed to stay.
    pub changes: Vec<Changed>,
}

/// A change of a figure.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Changed {
    /// Index of the first run behind it.
    pub at: usize,
    /// That run's name.
    pub run: String,
    /// The revision of the run before it, and its own.
    pub revisions: [Option<String>; 2],
    /// The ratio of what came behind it, up to the next change, to what came before.
    pub ratio: f64,
    /// Lower bound, 95 of 100 times.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Whether it is for the worse.
    pub worse: bool,
    /// The same for a person.
    pub says: String,
}

/// The machine that a run was made on, as far as figures depend on it: `AMD EPYC 7B13, 4 cores`.
pub fn machine_of(manifest: &Manifest) -> String {
    let machine = &manifest.machine;
    let cores = (machine.cores > 0).then(|| plural(machine.cores, "core"));
    let model = machine.cpu_model.trim();
    let model = (!model.is_empty()).then(|| model.to_owned());
    let parts: Vec<String> = model.into_iter().chain(cores).collect();
    if parts.is_empty() { "a machine that is not known".into() } else { parts.join(", ") }
}

/// What a run did, so that another is comparable.
fn what_of(manifest: &Manifest) -> Vec<String> {
    let system = &manifest.system;
    // the port of one that was started is another each time
    let name = if system.name == system.url { system.url.clone() } else { system.name.clone() };
    let durability = system.durability.clone().unwrap_or_default();
    let mut parts = vec![manifest.load.clone(), name, durability];
    parts.retain(|part| !part.is_empty());
    for (name, value) in system.settings.iter().chain(&manifest.settings) {
        let part = format!("{name}={value}");
        // a system's is often the scenario's of the same name
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts
}

/// What a line is of: the scenario, what it did, the digest of its text, the machine.
type Key = (String, Vec<String>, Option<String>, String);

fn key_of(manifest: &Manifest) -> Key {
    let digest = manifest.scenario_digest.clone();
    (manifest.scenario.clone(), what_of(manifest), digest, machine_of(manifest))
}

impl History {
    /// Reads the runs right in a folder.
    ///
    /// # Errors
    /// The folder cannot be read. A run that cannot be read is left out, and told.
    pub fn read(folder: &Path) -> Result<History, RecordError> {
        let found = runs_in(folder)?;
        let left_out = found.runs.len().saturating_sub(READ_MAX);
        let (mut runs, mut notes) = (Vec::new(), Vec::new());
        if left_out > 0 {
            notes.push(format!("only the newest {READ_MAX} runs were read; {left_out} older ones were not"));
        }
        let (mut seen, mut copies) = (BTreeSet::new(), 0_usize);
        for dir in found.runs.into_iter().skip(left_out) {
            match Manifest::open(&dir) {
                Ok(manifest) if seen.insert(manifest.identity()) => runs.push((dir, manifest)),
                Ok(_) => copies += 1,
                Err(error) => notes.push(format!("left out: {error}")),
            }
        }
        if !found.damaged.is_empty() {
            let named = found.damaged.iter().take(NAMED_MAX).map(|dir| dir.display().to_string());
            let named = named.collect::<Vec<_>>().join(", ");
            let more = more_than(found.damaged.len(), NAMED_MAX);
            let more = more.map_or_else(String::new, |more| format!(" and {more} more"));
            notes.push(format!("left out: runs without run.json: {named}{more}"));
        }
        if copies > 0 {
            notes.push(format!("copies of runs count once ({copies})"));
        }
        let comparisons = found.comparisons.len();
        if comparisons > 0 {
            notes.push(format!("not shown: the runs of comparisons ({comparisons})"));
        }
        if !found.limits.is_empty() {
            notes.push(format!("not shown: the trials of searches for a limit ({})", found.limits.len()));
        }
        if !found.unfinished.is_empty() {
            notes.push(format!("not shown: {} unfinished runs", found.unfinished.len()));
        }
        if found.left_out > 0 {
            notes.push(format!("{} entries of the folder were not looked at", found.left_out));
        }
        let (lines, more) = lines(runs);
        notes.extend(more);
        Ok(History { folder: folder.display().to_string(), lines, notes })
    }

    /// The line of runs that did what this one did, on the same machine.
    pub fn line_of(&self, manifest: &Manifest) -> Option<&Line> {
        let (scenario, what, digest, machine) = key_of(manifest);
        let is_text = |line: &Line| line.scenario == scenario && line.scenario_digest == digest;
        self.lines.iter().find(|line| is_text(line) && line.what == what && line.machine == machine)
    }

    /// The lines of one scenario, with the notes of all.
    ///
    /// # Errors
    /// There is none; what there is.
    pub fn of_scenario(mut self, name: &str) -> Result<History, String> {
        if !self.lines.iter().any(|line| line.scenario == name) {
            let mut known: Vec<&str> = self.lines.iter().map(|line| line.scenario.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            let there = match (known.is_empty(), self.notes.is_empty()) {
                (false, _) => format!("there are runs of {}", known.join(", ")),
                (true, true) => "there is no run to show".to_owned(),
                (true, false) => format!("there is no run to show ({})", self.notes.join("; ")),
            };
            return Err(format!("no run of \"{name}\" in {}; {there}", self.folder));
        }
        self.lines.retain(|line| line.scenario == name);
        Ok(self)
    }

    /// As one JSON object, indented, with a line end: `docs/history.schema.json`.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a history is plain JSON") + "\n"
    }
}

/// Runs by what they did and where, with what is to be said of those that are not in a line.
fn lines(runs: Vec<(PathBuf, Manifest)>) -> (Vec<Line>, Vec<String>) {
    let mut of: BTreeMap<Key, Vec<(PathBuf, Manifest)>> = BTreeMap::new();
    let (mut unfit, mut machines) = (0, BTreeMap::<String, Vec<String>>::new());
    for (dir, manifest) in runs {
        let is_whole = !manifest.interrupted && manifest.cut_short.is_none();
        if !is_whole || manifest.summary.verdict.status == Status::Invalid {
            unfit += 1;
            continue;
        }
        let machine = machine_of(&manifest);
        let on = machines.entry(manifest.scenario.clone()).or_default();
        if !on.contains(&machine) {
            on.push(machine);
        }
        of.entry(key_of(&manifest)).or_default().push((dir, manifest));
    }
    let mut lines: Vec<Line> = of.into_iter().map(|(key, runs)| Line::of(key, runs)).collect();
    let latest = |line: &Line| line.runs.last().map(|run| run.started_at.clone());
    lines.sort_by_key(latest);
    let mut notes = Vec::new();
    if unfit > 0 {
        notes.push(format!("not shown: runs that are invalid or were stopped early ({unfit})"));
    }
    for (scenario, on) in machines.iter().filter(|(_, on)| on.len() > 1) {
        notes.push(format!(
            "{scenario} ran on {} machines, each with a line of its own: {}",
            on.len(),
            on.join("; ")
        ));
    }
    notes.extend(other_texts(&lines));
    notes.extend(lines.iter().flat_map(Line::unreached));
    (lines, notes)
}

/// What is said of scenarios with lines that differ in the text alone, or in whether it is known.
fn other_texts(lines: &[Line]) -> Vec<String> {
    let mut texts: BTreeMap<(&str, &[String], &str), usize> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.scenario_digest.is_some()) {
        let alike = (line.scenario.as_str(), line.what.as_slice(), line.machine.as_str());
        *texts.entry(alike).or_default() += 1;
    }
    let changed = texts.iter().filter(|(_, texts)| **texts > 1).map(|((scenario, ..), _)| *scenario);
    let changed: BTreeSet<&str> = changed.collect();
    let with_text = |is_known: bool| -> BTreeSet<&str> {
        let those = lines.iter().filter(|line| line.scenario_digest.is_some() == is_known);
        those.map(|line| line.scenario.as_str()).collect()
    };
    let changed = changed.into_iter().map(|scenario| {
        format!("{scenario}: the scenario's file changed: runs before and after are shown apart")
    });
    let (known, unknown) = (with_text(true), with_text(false));
    let older = known.intersection(&unknown).map(|scenario| {
        format!("{scenario}: runs of earlier versions, which lack settings and file, are shown apart")
    });
    changed.chain(older).collect()
}

impl Line {
    fn of((scenario, what, scenario_digest, machine): Key, mut runs: Vec<(PathBuf, Manifest)>) -> Line {
        let began = |manifest: &Manifest| manifest.started_at.parse::<jiff::Timestamp>().ok();
        runs.sort_by(|(dir, a), (other, b)| began(a).cmp(&began(b)).then_with(|| dir.cmp(other)));
        let points: Vec<Point> = runs.iter().map(|(dir, manifest)| point(dir, manifest)).collect();
        let trend = |figure: Figure| {
            let reading = |(_, manifest): &(PathBuf, Manifest)| figure.read(manifest, None);
            Trend::of(figure, &runs.iter().map(reading).collect::<Vec<_>>(), &points)
        };
        let trends =
            Figure::OF_ALL.into_iter().filter(|figure| !figure.is_neutral()).filter_map(trend).collect();
        Line { scenario, what, scenario_digest, machine, runs: points, trends }
    }

    /// How many of its runs failed, `4 of 8 runs failed, the last 4`; none where none did.
    pub(crate) fn failed(&self) -> Option<String> {
        let is_failed = |run: &&Point| run.status == Status::Fail;
        let failed = self.runs.iter().filter(is_failed).count();
        if failed == 0 {
            return None;
        }
        let of = plural(self.runs.len() as u64, "run");
        let last = match self.runs.iter().rev().take_while(is_failed).count() {
            0 => String::new(),
            last if last == self.runs.len() => String::new(),
            1 if failed == 1 => ", the last".to_owned(),
            1 => ", the last among them".to_owned(),
            last => format!(", the last {last}"),
        };
        Some(format!("{failed} of {of} failed{last}"))
    }

    /// Which percentiles its last runs did not reach any more, a note for each run from which on it is so.
    fn unreached(&self) -> Vec<String> {
        let mut since: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
        for trend in self.trends.iter().filter(|trend| trend.figure.quantile().is_some()) {
            let places = (0..trend.values.len()).rev();
            let last = places.take_while(|at| trend.not_reached.contains(at)).count();
            let first = trend.values.len() - last;
            let reached = trend.values[..first].iter().flatten().count();
            if last >= UNREACHED_TOLD && reached >= UNREACHED_TOLD {
                since.entry(first).or_default().push(trend.figure.name());
            }
        }
        let told = |(first, names): (usize, Vec<&str>)| {
            format!(
                "{}: the last {} runs, from {} on, did not reach {}, as too many of their requests failed; runs before did",
                self.scenario,
                self.runs.len() - first,
                self.runs[first].run,
                names.join(" and ")
            )
        };
        since.into_iter().map(told).collect()
    }
}

fn point(dir: &Path, manifest: &Manifest) -> Point {
    let name = dir.file_name().map(|name| name.to_string_lossy().into_owned());
    Point {
        run: name.unwrap_or_else(|| manifest.id.clone()),
        run_dir: dir.display().to_string(),
        started_at: manifest.started_at.clone(),
        revision: manifest.git_revision.clone(),
        version: manifest.version.clone(),
        status: manifest.summary.verdict.status,
    }
}

impl Trend {
    /// None where no run has it.
    fn of(figure: Figure, readings: &[Reading], points: &[Point]) -> Option<Trend> {
        let value = |reading: &Reading| match reading {
            Reading::Value(value) => Some(*value),
            Reading::NotReached | Reading::Unknown => None,
        };
        let is_unreached = |at: &usize| readings[*at] == Reading::NotReached;
        let not_reached = (0..readings.len()).filter(is_unreached).collect();
        let values: Vec<Option<f64>> = readings.iter().map(value).collect();
        // where those that there are stand
        let places: Vec<usize> = (0..values.len()).filter(|at| values[*at].is_some()).collect();
        let logs: Vec<f64> = values.iter().flatten().map(|value| value.ln()).collect();
        if logs.is_empty() {
            return None;
        }
        let changed = |of: crate::statistics::change::Change| {
            let (at, before) = (places[of.at], places[of.at - 1]);
            let worse = (of.ratio.ratio > 1.0) == figure.more_is_worse();
            let revisions = [before, at].map(|at| points[at].revision.clone());
            let says = format!(
                "{} {} to {}{}",
                figure.name(),
                change(of.ratio.low),
                change(of.ratio.high),
                between(&revisions)
            );
            let (ratio, low, high) = (of.ratio.ratio, of.ratio.low, of.ratio.high);
            Changed { at, run: points[at].run.clone(), revisions, ratio, low, high, worse, says }
        };
        let changes = changes(&logs).into_iter().map(changed).collect();
        Some(Trend { figure, values, not_reached, changes })
    }

    /// What it was in the last run, for a person.
    pub(crate) fn last(&self) -> String {
        let at = self.values.len().saturating_sub(1);
        let is_unreached = self.not_reached.contains(&at);
        match self.values.last().copied().flatten() {
            Some(last) => value(self.figure, Some(last)),
            None if is_unreached && self.figure == Figure::Rate => "0/s".to_owned(),
            None if is_unreached => "not reached".to_owned(),
            None => "not measured".to_owned(),
        }
    }
}

/// Between which revisions it came, where that says something.
fn between(revisions: &[Option<String>; 2]) -> String {
    let short = |revision: &String| revision.chars().take(REVISION).collect::<String>();
    match revisions {
        [Some(before), Some(behind)] if before == behind => {
            format!(", at the same revision {}", short(behind))
        }
        [Some(before), Some(behind)] => format!(", from {} to {}", short(before), short(behind)),
        [None, Some(behind)] => format!(", at {}", short(behind)),
        _ => String::new(),
    }
}

/// What is said of lines that are too long to be looked through whole.
pub(crate) fn looked_at(line: &Line) -> Option<String> {
    let runs = line.runs.len();
    (runs > MOST).then(|| format!("changes are looked for in the last {MOST} of {runs} runs"))
}

/// Values as a row of small bars, a `|` before each of these places; at most so many, the last. Without characters beyond
/// ASCII where that is wished.
pub(crate) fn sparkline(values: &[Option<f64>], marks: &[usize], most: usize, ascii: bool) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const PLAIN: [char; 8] = ['_', '.', ',', '-', '~', '=', '*', '#'];
    let bars = if ascii { PLAIN } else { BARS };
    let first = values.len().saturating_sub(most);
    let shown = &values[first..];
    let (least, largest) =
        shown.iter().flatten().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), value| {
            (least.min(*value), most.max(*value))
        });
    let bar = |value: &Option<f64>| match value {
        None => ' ',
        // all alike: in the middle
        Some(_) if largest <= least => bars[3],
        Some(value) => bars[(((value - least) / (largest - least)) * 7.0).round() as usize],
    };
    let mut line = String::new();
    for (at, value) in (first..).zip(shown) {
        if at > first && marks.contains(&at) {
            line.push('|');
        }
        line.push(bar(value));
    }
    line
}

#[cfg(test)]
mod tests;
