//! Comparisons: a directory with the runs of several scenarios in it, and a file that says which is which.

use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::directory::replace;
use crate::error::{RecordError, io_error};
use crate::{Run, files};

/// Version of the file's form.
const FORMAT: u32 = 1;
/// No comparison takes so long, seconds.
const TIME_MAX_S: f64 = 1e8;

/// Which part of a comparison a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// With the load that its scenario has.
    OwnLoad,
    /// With a rate that is the same for all.
    EqualRate,
    /// Each with a share of the rate that it had with its own load.
    OwnRate,
}

/// How a comparison went that ran as many rounds as it needed. In each round every side ran twice, in an order that was
/// drawn and then the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct InRounds {
    /// How often, of all such comparisons, one claims a difference that is not there, 0 to 1: what its looks on the way
    /// have left of it.
    pub level: f64,
    /// How long it took, seconds.
    pub took_s: f64,
    /// How long it was allowed to take, seconds.
    pub budget_s: f64,
    /// Most rounds that it was allowed, if there was such a bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rounds_max: Option<u64>,
}

/// A run of a comparison.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedRun {
    /// Index into [`ComparisonFile::sides`].
    #[serde(rename = "variant")]
    pub side: usize,
    /// Which part it is.
    pub part: Part,
    /// From 1.
    pub round: u64,
    /// The run's directory within the comparison's.
    pub dir: String,
}

/// `comparison.json`: what was compared, and where the runs are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ComparisonFile {
    /// Version of the file's form.
    pub format: u32,
    /// Its name.
    pub name: String,
    /// What is compared, for a person.
    pub description: String,
    /// Names of what is compared; the others are held against the first.
    #[serde(rename = "variants")]
    pub sides: Vec<String>,
    /// The rate of requests at which each ran again; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub equal_rate_per_s: Option<f64>,
    /// The share of its own rate at which each ran again; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_rate: Option<f64>,
    /// How it went, where it ran as many rounds as it needed; absent where it was told how many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_rounds: Option<InRounds>,
    /// The runs that have ended, in the order in which they ran.
    pub runs: Vec<ComparedRun>,
    /// What was to be compared and is not here, with why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Why it did not come to its end, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The full command.
    pub command: Vec<String>,
}

impl ComparisonFile {
    /// One that has not begun.
    pub fn new(name: &str, description: &str, sides: Vec<String>) -> ComparisonFile {
        ComparisonFile {
            format: FORMAT,
            name: name.to_owned(),
            description: description.to_owned(),
            sides,
            equal_rate_per_s: None,
            own_rate: None,
            in_rounds: None,
            runs: Vec::new(),
            left_out: Vec::new(),
            stopped: None,
            command: Vec::new(),
        }
    }

    /// Whether a directory is one of a comparison.
    pub fn is_at(dir: &Path) -> bool {
        dir.join(files::COMPARISON).is_file()
    }

    /// Reads it, and none of its runs.
    ///
    /// # Errors
    /// Where the file cannot be read, or does not say what it should.
    pub fn open(dir: &Path) -> Result<ComparisonFile, RecordError> {
        let path = dir.join(files::COMPARISON);
        let text = fs::read_to_string(&path).map_err(io_error("read", &path))?;
        let damaged = |reason: String| RecordError::Damaged { path: dir.join(files::COMPARISON), reason };
        let comparison: ComparisonFile =
            crate::json::read(text).map_err(|error| damaged(error.to_string()))?;
        if comparison.format > FORMAT {
            return Err(RecordError::TooNew { path, found: comparison.format, known: FORMAT });
        }
        if let Some(InRounds { level, took_s, budget_s, .. }) = comparison.in_rounds {
            let is_time = |s: f64| (0.0..TIME_MAX_S).contains(&s);
            if !(level > 0.0 && level < 1.0 && is_time(took_s) && is_time(budget_s)) {
                return Err(damaged("how its rounds went is no level and times".into()));
            }
        }
        for of in &comparison.runs {
            if of.side >= comparison.sides.len() {
                return Err(damaged(format!("there is no side {}", of.side)));
            }
            let mut parts = Path::new(&of.dir).components();
            let is_within =
                matches!(parts.next(), Some(std::path::Component::Normal(_))) && parts.next().is_none();
            if !is_within {
                return Err(damaged(format!("{} is not a directory within it", of.dir)));
            }
        }
        Ok(comparison)
    }

    /// Writes it into its directory; at every moment either the old or the new one is there, whole.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, dir: &Path) -> Result<(), RecordError> {
        let mut text = serde_json::to_string_pretty(self).expect("a comparison is plain JSON");
        text.push('\n');
        replace(&dir.join(files::COMPARISON), text.as_bytes())
    }
}

/// A comparison as its directory has it, with its runs.
#[derive(Debug, Clone)]
pub struct ComparedRuns {
    /// Where it is.
    pub dir: PathBuf,
    /// What was compared.
    pub comparison: ComparisonFile,
    /// The file that said what to compare; empty if it is not there.
    pub source: String,
    /// The runs, as [`ComparisonFile::runs`] has them.
    pub runs: Vec<Run>,
}

impl ComparedRuns {
    /// Reads a comparison and all of its runs.
    ///
    /// # Errors
    /// Where the file or a run cannot be read, or does not say what it should.
    pub fn open(dir: &Path) -> Result<ComparedRuns, RecordError> {
        let comparison = ComparisonFile::open(dir)?;
        let runs = comparison.runs.iter().map(|of| Run::open(&dir.join(&of.dir)));
        let runs = runs.collect::<Result<_, _>>()?;
        let source = fs::read_to_string(dir.join(files::SCENARIO)).unwrap_or_default();
        Ok(ComparedRuns { dir: dir.to_owned(), comparison, source, runs })
    }

    /// The runs of one side and part, in order.
    pub fn of(&self, side: usize, part: Part) -> impl Iterator<Item = &Run> {
        let of = self.comparison.runs.iter().zip(&self.runs);
        of.filter(move |(of, _)| of.side == side && of.part == part).map(|(_, run)| run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_nothing_outside_is_opened() {
        let temp = tempfile::tempdir().unwrap();
        let mut comparison = ComparisonFile::new("x", "of two", vec!["a".into(), "b".into()]);
        comparison.equal_rate_per_s = Some(50.0);
        comparison.write(temp.path()).unwrap();
        assert!(ComparisonFile::is_at(temp.path()));
        assert_eq!(ComparedRuns::open(temp.path()).unwrap().comparison, comparison);

        for (side, dir) in [(0, "../x"), (0, "/tmp"), (0, "a/b"), (0, "."), (0, ""), (2, "x")] {
            comparison.runs = vec![ComparedRun { side, part: Part::OwnLoad, round: 1, dir: dir.into() }];
            comparison.write(temp.path()).unwrap();
            let error = ComparedRuns::open(temp.path()).unwrap_err();
            assert!(matches!(error, RecordError::Damaged { .. }), "{dir}: {error}");
        }
        comparison.runs = vec![ComparedRun { side: 0, part: Part::OwnLoad, round: 1, dir: "no".into() }];
        comparison.write(temp.path()).unwrap();
        assert!(ComparedRuns::open(temp.path()).is_err(), "the run is not there");
        comparison.runs.clear();
        for (level, took_s) in [(0.0, 1.0), (1e300, 1.0), (0.05, 1e300), (0.05, -1.0)] {
            comparison.in_rounds = Some(InRounds { level, took_s, budget_s: 60.0, rounds_max: None });
            comparison.write(temp.path()).unwrap();
            let error = ComparedRuns::open(temp.path()).unwrap_err();
            assert!(matches!(error, RecordError::Damaged { .. }), "{level}, {took_s}: {error}");
        }
        fs::write(temp.path().join(files::COMPARISON), "{").unwrap();
        assert!(ComparedRuns::open(temp.path()).is_err());
    }
}
