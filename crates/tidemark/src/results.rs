//! Results for CI and for whoever calculates on: a run as JUnit XML, Markdown, CSV, HdrHistogram log, and for GitHub.

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
use crate::output;

/// The file that GitHub Actions shows as the summary of a step.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";
/// What stands for standard output in place of a file.
const STDOUT: &str = "-";

/// Flags of every verb that shows a run.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Results for CI")]
pub struct ResultArguments {
    /// Write JUnit XML: a test case for the verdict and one for each objective
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write a Markdown summary with tables; - prints it in place of the text
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

impl ResultArguments {
    /// Finds what would make [`write`](Self::write) fail after a long run, before it begins. `json`: so is the summary.
    pub fn check(&self, json: bool) -> Result<(), Failure> {
        if json && self.markdown_to_stdout() {
            let reason =
                "--json and --markdown - both want standard output; give one of them a file: --markdown FILE";
            return Err(Failure::usage(reason));
        }
        for (flag, file) in self.files() {
            let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
            if file.is_dir() {
                return Err(Failure::usage(format!("{flag}: {} is a folder; name a file", file.display())));
            }
            if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
                return Err(Failure::usage(format!(
                    "{flag}: there is no folder {}; make it first",
                    folder.display()
                )));
            }
        }
        if self.github { step_summary().map(drop) } else { Ok(()) }
    }

    /// One of the flags that were given.
    pub fn any(&self) -> Option<&'static str> {
        let markdown = self.markdown.is_some().then_some("--markdown");
        let github = self.github.then_some("--github");
        self.files().next().map(|(flag, _)| flag).or(markdown).or(github)
    }

    fn files(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let files = [
            ("--junit", &self.junit),
            ("--markdown", &self.markdown),
            ("--csv", &self.csv),
            ("--hlog", &self.hlog),
        ];
        files
            .into_iter()
            .filter_map(|(flag, file)| Some((flag, file.as_deref()?)))
            .filter(|(_, file)| *file != Path::new(STDOUT))
    }

    /// Whether the Markdown takes the place of the text on standard output.
    pub fn markdown_to_stdout(&self) -> bool {
        self.markdown.as_deref() == Some(Path::new(STDOUT))
    }

    /// Whether a file is asked for, so that nothing need be said on standard output.
    pub fn any_file(&self) -> bool {
        self.github || self.files().next().is_some()
    }

    /// Where there is no run: `--json` and `--junit` say why, and Markdown and CSV of an earlier run are removed. Gives
    /// the failure back.
    pub fn without_a_run(&self, scenario: &str, to_machine: bool, failure: Failure) -> Failure {
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
                if let Some(file) = file.as_deref().filter(|file| is_left(file)) {
                    fs::remove_file(file).map_err(|error| cannot(flag, file, &error))?;
                }
            }
            // whoever stopped it does not wait for a result
            if to_machine && failure.status != EXIT_INTERRUPTED {
                output::print(&json::without_a_run(&verdict))?;
            }
            Ok::<(), Failure>(())
        };
        match written() {
            Ok(()) => failure,
            Err(other) => Failure { message: format!("{failure}; and {other}"), ..failure },
        }
    }

    /// Writes everything that is asked for. `taken`: standard output belongs to a machine or to the Markdown, and
    /// annotations go to standard error, which GitHub's runner reads as well.
    pub fn write(&self, run: &Run, taken: bool) -> Result<(), Failure> {
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
        match &self.markdown {
            Some(_) if self.markdown_to_stdout() => output::print(&summary)?,
            Some(file) => write("--markdown", file, &summary)?,
            None => {}
        }
        if self.github {
            append(Path::new(&step_summary()?), &format!("{summary}\n"))?;
            let annotations = github::annotations(run);
            if taken { output::remark(&annotations) } else { output::print(&annotations)? }
        }
        Ok(())
    }
}

fn step_summary() -> Result<OsString, Failure> {
    std::env::var_os(STEP_SUMMARY).filter(|file| !file.is_empty()).ok_or_else(|| {
        let reason = "--github is for a step of GitHub Actions, but GITHUB_STEP_SUMMARY is not set; elsewhere use --markdown FILE";
        Failure::usage(reason)
    })
}

fn write(flag: &str, file: &Path, text: &str) -> Result<(), Failure> {
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
        assert!(of(&folder.path().join("new.xml")).check(false).is_ok());
        assert!(of(Path::new("new.xml")).check(false).is_ok());
        assert!(of(folder.path()).check(false).unwrap_err().message.contains("is a folder"));
        let missing = of(&folder.path().join("none/new.xml")).check(false).unwrap_err();
        assert!(missing.message.starts_with("--junit: there is no folder "), "{}", missing.message);
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
