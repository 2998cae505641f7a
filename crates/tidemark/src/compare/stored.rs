//! Runs that are there, held against each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tidemark_record::{ComparisonFile, RUNS_DIR, RecordError, resolve, runs_in};
use tidemark_report::comparison::{Asked, SIDES_MAX, Side, SideRun};

use super::args::CompareArguments;
use super::shown;
use crate::cost::Pricing;
use crate::failure::Failure;

/// Most runs of a side.
const RUNS_MAX: usize = 1_000;

/// The directory of a comparison, where the word names one; nothing where it is no run at all.
pub fn comparison(word: &str) -> Result<Option<PathBuf>, Failure> {
    match resolve(word, Path::new(RUNS_DIR)) {
        Ok(dir) if ComparisonFile::is_at(&dir) => Ok(Some(dir)),
        Ok(dir) => Err(Failure::usage(format!(
            "{} is one run; name another one to hold it against, or a scenario with --baseline {word}",
            dir.display()
        ))),
        // a scenario; what is wrong is told when it is read as one
        Err(_) => Ok(None),
    }
}

/// Shows what a comparison's directory claims.
pub fn show(dir: &Path, prices: &Pricing<'_>, arguments: &CompareArguments) -> Result<u8, Failure> {
    let record = ComparisonFile::open(dir).map_err(usage)?;
    let sides = shown::sides_of(dir, &record)?;
    let mut claims = shown::of_directory(dir, &record, &sides, None, &arguments.rules)?;
    if record.in_rounds.is_none() {
        // its page is another, and stays
        claims.run_dir = None;
    }
    claims.bills = prices.bills_of(dir)?;
    shown::show(&claims, &sides, arguments)
}

/// Compares runs.
pub fn compare(words: &[String], prices: &Pricing<'_>, arguments: &CompareArguments) -> Result<u8, Failure> {
    if words.len() > SIDES_MAX {
        return Err(Failure::usage(format!("at most {SIDES_MAX} sides can be compared")));
    }
    let mut sides = words.iter().map(|word| side(word)).collect::<Result<Vec<_>, Failure>>()?;
    check_distinct(sides.iter().flat_map(|side| &side.runs))?;
    let level = Side::take_rounds(&mut sides);
    let asked = Asked { level, rules: &arguments.rules, ..Asked::default() };
    let mut claims = shown::of_sides(&sides, asked)?;
    claims.bills = prices.bills(&sides);
    shown::show(&claims, &sides, arguments)
}

/// A side: runs by name, several with commas between them, or a folder of runs.
pub fn side(word: &str) -> Result<Side, Failure> {
    let mut dirs = Vec::new();
    for name in word.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        dirs.extend(runs(name)?);
    }
    if dirs.len() > RUNS_MAX {
        return Err(Failure::usage(format!(
            "{word} has {} runs; at most {RUNS_MAX} are compared",
            dirs.len()
        )));
    }
    if dirs.is_empty() {
        return Err(Failure::usage(format!("\"{word}\" names no run")));
    }
    let side = Side::of_runs(word, &dirs).map_err(usage)?;
    check_distinct(&side.runs)?;
    Ok(side)
}

/// One run that is there several times, as a copy or by a link, or on both sides, tells no more than once.
fn check_distinct<'r>(runs: impl IntoIterator<Item = &'r SideRun>) -> Result<(), Failure> {
    let mut seen = BTreeMap::new();
    for run in runs {
        if let Some(other) = seen.insert(run.manifest.identity(), &run.dir) {
            return Err(Failure::usage(format!(
                "{} and {} are the same run, which counts once; leave one of them out, or name the runs one by one",
                other.display(),
                run.dir.display()
            )));
        }
    }
    Ok(())
}

fn runs(name: &str) -> Result<Vec<PathBuf>, Failure> {
    if name.contains("://") {
        // not repeated: it may hold a password
        return Err(Failure::usage(
            "a URL is not a run; systems that run are compared by a scenario: tidemark compare my.yaml --url A --url B",
        ));
    }
    let path = Path::new(name);
    if path.is_file() && path.extension().is_some_and(|of| of == "yaml" || of == "yml") {
        return Err(Failure::usage(format!(
            "{name} is a scenario and no run; one is compared with itself by --set and --vs, several by a file with `compare:`"
        )));
    }
    match resolve(name, Path::new(RUNS_DIR)) {
        Ok(dir) if ComparisonFile::is_at(&dir) => Err(Failure::usage(format!(
            "{} is a comparison, which is shown by itself: tidemark compare {name}; or name runs in it",
            dir.display()
        ))),
        Ok(dir) => Ok(vec![dir]),
        Err(error) => {
            let places = [PathBuf::from(name), Path::new(RUNS_DIR).join(name)];
            let folder = places.into_iter().find(|folder| folder.is_dir());
            let found = folder.map(|folder| runs_in(&folder)).transpose().map_err(usage)?;
            // a folder without a run is none that was meant
            found.map(|found| found.runs).filter(|runs| !runs.is_empty()).ok_or_else(|| usage(error))
        }
    }
}

fn usage(error: RecordError) -> Failure {
    Failure::usage(error.to_string())
}
