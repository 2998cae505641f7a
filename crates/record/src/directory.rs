//! Where runs are: making directories for new ones, finding old ones.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::error::{RecordError, damaged, io_error};
use crate::{Manifest, files, write_output};

/// Where runs are made unless a place is named.
pub const RUNS_DIR: &str = "runs";
/// The word for the run that finished last; also the file in the runs directory that names it.
pub const LAST: &str = "last";
/// Most entries of a folder that are looked at.
const ENTRIES_MAX: usize = 100_000;
/// Runs of one name that may begin within one second.
const SAME_SECOND_MAX: u32 = 1_000;

/// Makes the directory for a new run: `out`, which must not be there or be empty, or a fresh
/// `runs/DATE-TIME-NAME` under the current directory. Nothing is ever overwritten.
pub fn new_run_dir(out: Option<&Path>, scenario_name: &str) -> Result<PathBuf, RecordError> {
    match out {
        Some(out) => empty_dir(out),
        None => fresh_dir(Path::new(RUNS_DIR), scenario_name),
    }
}

fn empty_dir(dir: &Path) -> Result<PathBuf, RecordError> {
    fs::create_dir_all(dir).map_err(io_error("create", dir))?;
    let mut entries = fs::read_dir(dir).map_err(io_error("read", dir))?;
    if entries.next().is_some() { Err(RecordError::Occupied(dir.to_owned())) } else { Ok(dir.to_owned()) }
}

fn fresh_dir(runs_dir: &Path, scenario_name: &str) -> Result<PathBuf, RecordError> {
    fs::create_dir_all(runs_dir).map_err(io_error("create", runs_dir))?;
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let name = format!("{now}-{}", file_name(scenario_name));
    for attempt in 1..=SAME_SECOND_MAX {
        let dir = match attempt {
            1 => runs_dir.join(&name),
            n => runs_dir.join(format!("{name}-{n}")),
        };
        // Making it is the test: two that start at once cannot both succeed.
        match fs::create_dir(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io_error("create", &dir)(error)),
        }
    }
    Err(RecordError::Occupied(runs_dir.join(name)))
}

/// A scenario's name as a part of a file name on any system.
fn file_name(name: &str) -> String {
    let name: String = name.chars().take(60).collect::<String>().to_ascii_lowercase();
    let words: Vec<&str> =
        name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|w| !w.is_empty()).collect();
    if words.is_empty() { "run".into() } else { words.join("-") }
}

/// The directory that runs are in, where `dir` is right under one of that name.
pub(crate) fn runs_dir_of(dir: &Path) -> Option<PathBuf> {
    let parent = dir.parent()?;
    (parent.file_name()? == RUNS_DIR).then(|| parent.to_owned())
}

/// Notes in `runs_dir` that this run is the last. A text file and no symbolic link: those are not to be had
/// everywhere.
pub fn mark_last(runs_dir: &Path, run_dir: &Path) -> Result<(), RecordError> {
    fs::create_dir_all(runs_dir).map_err(io_error("create", runs_dir))?;
    let absolute = fs::canonicalize(run_dir).map_err(io_error("find", run_dir))?;
    let runs_absolute = fs::canonicalize(runs_dir).map_err(io_error("find", runs_dir))?;
    let named = absolute.strip_prefix(&runs_absolute).unwrap_or(&absolute);
    replace(&runs_dir.join(LAST), format!("{}\n", named.display()).as_bytes())
}

/// Finds the run that a person means: a run directory, the name of one in `runs_dir`, or `last`.
pub fn resolve(run: &str, runs_dir: &Path) -> Result<PathBuf, RecordError> {
    let missing = |reason: String| RecordError::NoSuchRun { run: run.to_owned(), reason };
    if run == LAST {
        return marked(runs_dir).or_else(|| newest(runs_dir)).ok_or_else(|| {
            missing(format!("no finished run in {}; start one with tidemark run", runs_dir.display()))
        });
    }
    let named = [PathBuf::from(run), runs_dir.join(run)].into_iter().find(|dir| dir.exists());
    let dir = named.ok_or_else(|| {
        missing(format!("there is no such directory, neither here nor in {}", runs_dir.display()))
    })?;
    // Whoever names run.json itself means its directory.
    match dir.parent() {
        Some(parent)
            if [files::MANIFEST, files::COMPARISON, files::LIMIT]
                .map(|name| Some(name.as_ref()))
                .contains(&dir.file_name()) =>
        {
            Ok(parent.to_owned())
        }
        _ if is_run(&dir) || is_unfinished(&dir) => Ok(dir),
        _ => Err(RecordError::NotARun(dir)),
    }
}

/// The runs right in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunsIn {
    /// Those that have ended, by name.
    pub runs: Vec<PathBuf>,
    /// Directories with the figures of a run, and nothing that says what it was or came to, by name.
    pub damaged: Vec<PathBuf>,
    /// Directories of several runs that are compared.
    pub comparisons: Vec<PathBuf>,
    /// Directories of searches for a limit, by name.
    pub limits: Vec<PathBuf>,
    /// Runs that go on, or were killed and not looked at since, by name.
    pub unfinished: Vec<PathBuf>,
    /// Entries of the folder that were not looked at, as there are more than 100,000.
    pub left_out: usize,
}

/// Finds the runs right in a folder; nothing of them is read or changed, and links are not followed.
///
/// # Errors
/// The folder cannot be read.
pub fn runs_in(folder: &Path) -> Result<RunsIn, RecordError> {
    let mut found = RunsIn::default();
    let mut entries = fs::read_dir(folder).map_err(io_error("read", folder))?;
    for entry in entries.by_ref().take(ENTRIES_MAX) {
        let entry = entry.map_err(io_error("read", folder))?;
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let dir = entry.path();
        if dir.join(files::COMPARISON).is_file() {
            found.comparisons.push(dir);
        } else if dir.join(files::MANIFEST).is_file() {
            found.runs.push(dir);
        } else if dir.join(files::LIMIT).is_file() {
            found.limits.push(dir);
        } else if is_unfinished(&dir) {
            found.unfinished.push(dir);
        } else if [files::SERIES, files::LOAD].iter().any(|name| dir.join(name).is_file()) {
            found.damaged.push(dir);
        }
    }
    found.left_out = entries.count();
    let RunsIn { runs, damaged, comparisons, limits, unfinished, left_out: _ } = &mut found;
    [runs, damaged, comparisons, limits, unfinished].into_iter().for_each(|dirs| dirs.sort());
    Ok(found)
}

/// When a run ended, or began where it has not ended: when the file that makes its directory one was written.
pub fn changed(dir: &Path) -> Option<SystemTime> {
    let begun = || Some(dir.join(files::BEGUN)).filter(|path| path.is_file());
    fs::metadata(manifest_of(dir).or_else(begun)?).ok()?.modified().ok()
}

/// The file that makes a directory one of a run, of several that are compared, or of a search for a limit.
fn manifest_of(dir: &Path) -> Option<PathBuf> {
    let names = [files::MANIFEST, files::COMPARISON, files::LIMIT];
    names.map(|name| dir.join(name)).into_iter().find(|path| path.is_file())
}

fn is_run(dir: &Path) -> bool {
    manifest_of(dir).is_some()
}

/// Whether this directory holds a run that has not come to its end.
pub fn is_unfinished(dir: &Path) -> bool {
    let journal = [dir.to_owned(), dir.join(files::BEFORE)].map(|dir| dir.join(files::JOURNAL));
    dir.join(files::BEGUN).is_file()
        && journal.iter().any(|path| path.is_file())
        && !dir.join(files::MANIFEST).is_file()
}

/// Writes `run.json` into a run directory, or replaces it, in one step.
pub fn write_manifest(dir: &Path, manifest: &Manifest) -> Result<(), RecordError> {
    let path = dir.join(files::MANIFEST);
    let mut text = serde_json::to_vec_pretty(manifest).map_err(|e| damaged(&path, e))?;
    text.push(b'\n');
    replace(&path, &text)
}

/// What is known of a run while it goes on: its manifest without figures, and what its writer was told.
#[derive(Serialize, Deserialize)]
pub(crate) struct Begun {
    pub(crate) threads: usize,
    /// When the run's clock was zero, seconds since 1970; none before that.
    pub(crate) anchor_s: Option<f64>,
    pub(crate) manifest: Manifest,
}

/// Reads what is known of a run that goes on, or was killed.
pub(crate) fn read_begun(dir: &Path) -> Result<Begun, RecordError> {
    let path = dir.join(files::BEGUN);
    let text = fs::read(&path).map_err(io_error("read", &path))?;
    crate::json::read(&text).map_err(|e| damaged(&path, format!("not the start of a run: {e}")))
}

/// Writes what is known of a run while it goes on.
pub(crate) fn write_begun(dir: &Path, begun: &Begun) -> Result<(), RecordError> {
    let path = dir.join(files::BEGUN);
    let text = serde_json::to_vec(begun).map_err(|e| damaged(&path, e))?;
    replace(&path, &text)
}

/// The run that the mark names, if it is still there.
fn marked(runs_dir: &Path) -> Option<PathBuf> {
    let name = fs::read_to_string(runs_dir.join(LAST)).ok()?;
    let dir = runs_dir.join(name.trim_end_matches('\n'));
    is_run(&dir).then_some(dir)
}

/// The run in `runs_dir` whose `run.json` is the newest.
fn newest(runs_dir: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(runs_dir).ok()?;
    let finished = |entry: fs::DirEntry| {
        let dir = entry.path();
        let modified = fs::metadata(manifest_of(&dir)?).ok()?.modified().ok()?;
        Some((modified, dir))
    };
    entries.filter_map(Result::ok).filter_map(finished).max().map(|(_, dir)| dir)
}

/// Keeps the scenario of several runs in the directory that has them.
///
/// # Errors
/// Where it cannot be written.
pub fn write_scenario(dir: &Path, source: &str) -> Result<(), RecordError> {
    replace(&dir.join(files::SCENARIO), source.as_bytes())
}

/// Writes a file so that at every moment either the old or the new one is there, whole.
pub(crate) fn replace(path: &Path, content: &[u8]) -> Result<(), RecordError> {
    write_output(path, |to| to.write_all(content)).map_err(io_error("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(dir: &Path) {
        fs::create_dir_all(dir).unwrap();
        fs::write(dir.join("run.json"), "{}").unwrap();
    }

    #[test]
    fn new_directories_never_meet() {
        let temp = tempfile::tempdir().unwrap();
        let runs = temp.path().join("runs");
        let made: std::collections::BTreeSet<_> =
            (0..5).map(|_| fresh_dir(&runs, "Airline: 50 % / day").unwrap()).collect();
        assert_eq!(made.len(), 5);
        assert!(made.first().unwrap().to_str().unwrap().contains("-airline-50-day"), "{made:?}");
    }

    #[test]
    fn the_runs_of_a_folder_are_found_and_nothing_else() {
        let temp = tempfile::tempdir().unwrap();
        finished(&temp.path().join("b"));
        finished(&temp.path().join("a"));
        finished(&temp.path().join("c/deeper"));
        fs::write(temp.path().join("last"), "b\n").unwrap();
        fs::create_dir(temp.path().join("both")).unwrap();
        fs::write(temp.path().join("both/comparison.json"), "{}").unwrap();
        fs::create_dir(temp.path().join("search")).unwrap();
        fs::write(temp.path().join("search/limit.json"), "{}").unwrap();
        fs::create_dir(temp.path().join("torn")).unwrap();
        fs::write(temp.path().join("torn/load.parquet"), "").unwrap();
        let found = runs_in(temp.path()).unwrap();
        assert_eq!(found.damaged, [temp.path().join("torn")]);
        assert_eq!(found.runs, ["a", "b"].map(|name| temp.path().join(name)));
        assert_eq!(found.comparisons, [temp.path().join("both")]);
        assert_eq!(found.limits, [temp.path().join("search")]);
        assert_eq!((found.unfinished.len(), found.left_out), (0, 0));
        std::os::unix::fs::symlink(temp.path().join("a"), temp.path().join("link")).unwrap();
        assert_eq!(runs_in(temp.path()).unwrap(), found, "links are not followed");
        assert!(changed(&temp.path().join("a")).is_some() && changed(temp.path()).is_none());
        assert!(runs_in(&temp.path().join("none")).is_err());
    }

    #[test]
    fn a_place_with_something_in_it_is_refused() {
        let temp = tempfile::tempdir().unwrap();
        let out = temp.path().join("deep/out");
        assert_eq!(new_run_dir(Some(&out), "x").unwrap(), out);
        assert_eq!(new_run_dir(Some(&out), "x").unwrap(), out, "still empty");
        fs::write(out.join("mine"), "").unwrap();
        let error = new_run_dir(Some(&out), "x").unwrap_err();
        assert!(error.to_string().contains("never overwritten"), "{error}");
    }

    #[test]
    fn last_is_what_was_marked_wherever_it_is() {
        let temp = tempfile::tempdir().unwrap();
        let runs = temp.path().join("runs");
        let error = resolve("last", &runs).unwrap_err().to_string();
        assert!(error.contains("no finished run"), "{error}");
        finished(&runs.join("a"));
        finished(&runs.join("b"));
        finished(&temp.path().join("elsewhere"));
        mark_last(&runs, &runs.join("a")).unwrap();
        assert_eq!(resolve("last", &runs).unwrap(), runs.join("a"));
        mark_last(&runs, &temp.path().join("elsewhere")).unwrap();
        assert!(resolve("last", &runs).unwrap().ends_with("elsewhere"));
        fs::remove_dir_all(temp.path().join("elsewhere")).unwrap();
        let newest = resolve("last", &runs).unwrap();
        assert!(newest.starts_with(&runs) && is_run(&newest), "{newest:?}");
    }

    #[test]
    fn runs_are_found_by_path_name_and_manifest() {
        let temp = tempfile::tempdir().unwrap();
        let runs = temp.path().join("runs");
        finished(&runs.join("a"));
        assert_eq!(resolve("a", &runs).unwrap(), runs.join("a"));
        let path = runs.join("a").join("run.json");
        assert_eq!(resolve(path.to_str().unwrap(), &runs).unwrap(), runs.join("a"));
        fs::create_dir(runs.join("torn")).unwrap();
        assert!(matches!(resolve("torn", &runs), Err(RecordError::NotARun(_))));
        assert!(matches!(resolve("none", &runs), Err(RecordError::NoSuchRun { .. })));
    }
}
