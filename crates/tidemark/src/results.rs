//! Results for machines: a run as JSON, JUnit XML, Markdown, CSV, HdrHistogram log, and for GitHub.
//!
//! Each is a file, or standard output as `-`: at most one of them, and nothing else is written there then.

use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_lab::{EXIT_FAIL, EXIT_INTERRUPTED, EXIT_USAGE};
use tidemark_record::Run;
use tidemark_record::summary::{Status, Verdict};
use tidemark_report::{csv, github, json, junit, markdown};

use crate::failure::{EXIT_UNWRITABLE, Failure};
use crate::output::{self, Place};

/// The file that GitHub Actions shows as the summary of a step.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";
/// What stands for standard output in place of a file.
const STDOUT: &str = "-";

/// Flags of every verb that shows a run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Results, each to a FILE, or to standard output as -")]
pub struct ResultArguments {
    /// Write one JSON object with everything that the page shows, to standard output unless =FILE is said; the text goes to
    /// standard error then
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    pub json: Option<PathBuf>,
    /// Write JUnit XML: a test case for the verdict and one for each objective
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write a Markdown summary with tables
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// In GitHub Actions: add the Markdown to the step's summary, and mark what missed
    #[arg(long)]
    pub github: bool,
    /// Write CSV: each second, over all labels and by label
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Copy the HdrHistogram interval log of the response times
    #[arg(long, value_name = "FILE")]
    pub hlog: Option<PathBuf>,
}

/// Flags of the verbs that show several runs together.
#[derive(Debug, Args)]
pub struct SeveralResultArguments {
    /// Write one JSON object, to standard output unless =FILE is said; the text goes to standard error then
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = STDOUT)]
    pub json: Option<PathBuf>,
    /// Write Markdown, fit for a pull request; - is standard output
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write the page to this file, too; - is standard output
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// In GitHub Actions: add the Markdown to the step's summary
    #[arg(long)]
    pub github: bool,
}

impl SeveralResultArguments {
    /// Finds what would make writing fail after a long time, before that begins.
    pub fn check(&self) -> Result<(), Failure> {
        check(&self.outputs().collect::<Vec<_>>(), self.github)
    }

    /// Whether one of them has standard output for itself.
    pub fn take_stdout(&self) -> bool {
        self.outputs().any(|(_, file)| is_stdout(file))
    }

    fn outputs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        given([("--json", &self.json), ("--markdown", &self.markdown), ("--html", &self.html)])
    }
}

/// The flags that were given, with their files.
fn given<'a, const N: usize>(
    files: [(&'static str, &'a Option<PathBuf>); N],
) -> impl Iterator<Item = (&'static str, &'a Path)> {
    files.into_iter().filter_map(|(flag, file)| Some((flag, file.as_deref()?)))
}

/// Whether what is written to this file goes to standard output.
pub fn is_stdout(file: &Path) -> bool {
    file == Path::new(STDOUT)
}

impl ResultArguments {
    /// Finds what would make [`write`](Self::write) fail after a long run, before it begins. `also`: the flag and the file
    /// of another output, where there is one.
    pub fn check(&self, also: Option<(&'static str, &Path)>) -> Result<(), Failure> {
        check(&self.outputs().chain(also).collect::<Vec<_>>(), self.github)
    }

    /// One of the flags that were given, but for `--json`.
    pub fn any_but_json(&self) -> Option<&'static str> {
        let given = self.outputs().map(|(flag, _)| flag).find(|flag| *flag != "--json");
        given.or(self.github.then_some("--github"))
    }

    /// One of the flags that were given, of those that only a single run has.
    pub fn any_of_one_run(&self) -> Option<&'static str> {
        self.outputs().map(|(flag, _)| flag).find(|flag| ["--junit", "--csv", "--hlog"].contains(flag))
    }

    fn outputs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        given([
            ("--json", &self.json),
            ("--junit", &self.junit),
            ("--markdown", &self.markdown),
            ("--csv", &self.csv),
            ("--hlog", &self.hlog),
        ])
    }

    /// Whether one of them has standard output for itself, so that the text goes elsewhere.
    pub fn take_stdout(&self) -> bool {
        self.outputs().any(|(_, file)| is_stdout(file))
    }

    /// Whether any is asked for.
    pub fn any(&self) -> bool {
        self.github || self.outputs().next().is_some()
    }

    /// Where there is no run: `--json` and `--junit` say why, and Markdown and CSV of an earlier run are removed. Gives
    /// the failure back.
    pub fn without_a_run(&self, scenario: &str, failure: Failure) -> Failure {
        // wrong use measured nothing; and where only writing failed there is a run
        if [EXIT_USAGE, EXIT_UNWRITABLE].contains(&failure.status) {
            return failure;
        }
        let status = if failure.status == EXIT_FAIL { Status::Fail } else { Status::Invalid };
        let verdict = Verdict { status, reasons: vec![failure.message.clone()] };
        let written = || {
            if let Some(file) = &self.junit {
                write("--junit", file, &junit::without_a_run(scenario, &verdict))?;
            }
            // a device or a link is nothing that a run left
            let is_left = |file: &Path| fs::symlink_metadata(file).is_ok_and(|of| of.is_file());
            for (flag, file) in [("--markdown", &self.markdown), ("--csv", &self.csv)] {
                if let Some(file) = file.as_deref().filter(|file| !is_stdout(file) && is_left(file)) {
                    fs::remove_file(file).map_err(|error| cannot(flag, file, &error))?;
                }
            }
            // whoever stopped it does not wait for a result
            let json = self.json.as_deref().filter(|_| failure.status != EXIT_INTERRUPTED);
            json.map_or(Ok(()), |file| write("--json", file, &json::without_a_run(&verdict)))
        };
        match written() {
            Ok(()) => failure,
            Err(other) => Failure { message: format!("{failure}; and {other}"), ..failure },
        }
    }

    /// Writes everything that is asked for; annotations go to this place: GitHub's runner reads standard error as well.
    pub fn write(&self, run: &Run, place: Place) -> Result<(), Failure> {
        if let Some(file) = &self.json {
            let text = json::summary(run).map_err(|error| Failure::broken(error.to_string()))?;
            write("--json", file, &text)?;
        }
        if let Some(file) = &self.junit {
            write("--junit", file, &junit::xml(run))?;
        }
        if let Some(file) = &self.csv {
            let text = csv::over_time(run).map_err(|error| Failure::broken(error.to_string()))?;
            write("--csv", file, &text)?;
        }
        if let Some(file) = &self.hlog {
            copy_log(&run.latency_log(), file)?;
        }
        if self.markdown.is_none() && !self.github {
            return Ok(());
        }
        let summary = markdown::summary(run);
        if let Some(file) = &self.markdown {
            write("--markdown", file, &summary)?;
        }
        if self.github {
            to_step_summary(&summary)?;
            let annotations = github::annotations(run);
            match place {
                Place::Stdout => output::print(&annotations)?,
                Place::Stderr => place.tell(&annotations, false)?,
            }
        }
        Ok(())
    }
}

fn check(outputs: &[(&'static str, &Path)], github: bool) -> Result<(), Failure> {
    let (printed, files): (Vec<_>, Vec<_>) = outputs.iter().partition(|(_, file)| is_stdout(file));
    if let [(first, _), .., (last, _)] = printed[..] {
        return Err(Failure::usage(format!(
            "{first} and {last} both want standard output; give one of them a file: {}",
            if last == "--json" { "--json=FILE".to_owned() } else { format!("{last} FILE") }
        )));
    }
    for (flag, file) in files {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if file.is_dir() {
            return Err(Failure::usage(format!("{flag}: {} is a folder; name a file", file.display())));
        }
        if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
            let reason = format!("{flag}: there is no folder {}; make it first", folder.display());
            return Err(Failure::usage(reason));
        }
    }
    if github { step_summary().map(drop) } else { Ok(()) }
}

/// Adds Markdown to the summary of a step of GitHub Actions.
pub fn to_step_summary(markdown: &str) -> Result<(), Failure> {
    append(Path::new(&step_summary()?), &format!("{markdown}\n"))
}

/// Where that summary is.
pub fn step_summary() -> Result<OsString, Failure> {
    std::env::var_os(STEP_SUMMARY).filter(|file| !file.is_empty()).ok_or_else(|| {
        let reason = "--github is for a step of GitHub Actions, but GITHUB_STEP_SUMMARY is not set; elsewhere use --markdown FILE";
        Failure::usage(reason)
    })
}

/// Writes what a flag asks for to its file, or to standard output.
pub fn write(flag: &str, file: &Path, text: &str) -> Result<(), Failure> {
    if is_stdout(file) {
        return output::print(text);
    }
    fs::write(file, text).map_err(|error| cannot(flag, file, &error))
}

fn append(file: &Path, text: &str) -> Result<(), Failure> {
    let appended = OpenOptions::new().append(true).create(true).open(file);
    appended
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| cannot("--github", file, &error))
}

/// A copy onto itself would empty it.
fn copy_log(from: &Path, to: &Path) -> Result<(), Failure> {
    if is_stdout(to) {
        let log = fs::read_to_string(from).map_err(|error| cannot("--hlog", to, &error))?;
        return output::print(&log);
    }
    let same = fs::canonicalize(from).ok().is_some_and(|from| fs::canonicalize(to).ok() == Some(from));
    if same {
        return Err(Failure::usage(format!(
            "--hlog: {} is the run's own log; name another file",
            to.display()
        )));
    }
    fs::copy(from, to).map(drop).map_err(|error| cannot("--hlog", to, &error))
}

fn cannot(flag: &str, file: &Path, error: &io::Error) -> Failure {
    Failure::unwritable(format!("{flag}: cannot write {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_written_is_told_before_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let of = |file: &Path| ResultArguments { junit: Some(file.to_owned()), ..ResultArguments::default() };
        assert!(of(&folder.path().join("new.xml")).check(None).is_ok());
        assert!(of(Path::new("new.xml")).check(None).is_ok());
        assert!(of(folder.path()).check(None).unwrap_err().message.contains("is a folder"));
        let missing = of(&folder.path().join("none/new.xml")).check(None).unwrap_err();
        assert!(missing.message.starts_with("--junit: there is no folder "), "{}", missing.message);
    }

    #[test]
    fn standard_output_is_for_one() {
        let of = |arguments: &ResultArguments, html: Option<&Path>| {
            arguments.check(html.map(|file| ("--html", file))).map_err(|e| e.message)
        };
        let (json, csv) = (Some(STDOUT.into()), Some(STDOUT.into()));
        let both = ResultArguments { json, csv, ..ResultArguments::default() };
        let told = of(&both, None).unwrap_err();
        assert_eq!(told, "--json and --csv both want standard output; give one of them a file: --csv FILE");
        let one = ResultArguments { csv: None, ..both };
        assert!(of(&one, None).is_ok() && one.take_stdout() && one.any_but_json().is_none());
        assert!(of(&one, Some(Path::new(STDOUT))).unwrap_err().starts_with("--json and --html both"));
        assert!(!ResultArguments { junit: Some("r.xml".into()), ..ResultArguments::default() }.take_stdout());
    }

    #[test]
    fn a_log_is_never_copied_onto_itself() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("latency.hlog");
        fs::write(&log, "lines").unwrap();
        let again = folder.path().join(".").join("latency.hlog");
        assert!(copy_log(&log, &again).unwrap_err().message.contains("own log"));
        assert_eq!(fs::read_to_string(&log).unwrap(), "lines");
        copy_log(&log, &folder.path().join("copy")).unwrap();
        assert_eq!(fs::read_to_string(folder.path().join("copy")).unwrap(), "lines");
    }
}
