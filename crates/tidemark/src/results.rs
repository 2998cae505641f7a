//! Results for machines: a run as JSON, JUnit XML, Markdown, CSV, HdrHistogram log, and for GitHub.
//!
//! Each is a file, or standard output as `-`: at most one of them, and nothing else is written there then.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use tidemark_lab::{EXIT_FAIL, EXIT_INTERRUPTED, EXIT_USAGE};
use tidemark_record::summary::{Status, Verdict};
use tidemark_record::{Run, write_output};
use tidemark_report::blocks::Block;
use tidemark_report::{csv, github, json, junit, markdown, text};

use crate::args::ReportArguments;
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
    /// Whether another verb shows the run.
    #[arg(skip)]
    pub are_shown_later: bool,
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

    /// Where they go, and the text, which stands on standard output where none of them has that for itself.
    pub fn places(&self, quiet: bool) -> Places<'_> {
        let place = Place::beside(self.outputs().any(|(_, file)| is_stdout(file)));
        let [json, markdown, html] = [&self.json, &self.markdown, &self.html].map(Option::as_deref);
        Places { json, markdown, html, github: self.github, place, quiet }
    }

    fn outputs(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        given([("--json", &self.json), ("--markdown", &self.markdown), ("--html", &self.html)])
    }
}

impl ReportArguments {
    /// Where results of several runs that are shown again go: whoever asks for a file needs no text.
    pub fn places(&self) -> Places<'_> {
        let of = &self.results;
        let quiet = self.html.is_some() || of.any();
        let place = if quiet { Place::Stderr } else { Place::Stdout };
        let [json, markdown, html] = [&of.json, &of.markdown, &self.html].map(Option::as_deref);
        Places { json, markdown, html, github: of.github, place, quiet }
    }
}

/// Where the results of several runs go.
#[derive(Clone, Copy)]
pub struct Places<'a> {
    json: Option<&'a Path>,
    markdown: Option<&'a Path>,
    html: Option<&'a Path>,
    github: bool,
    place: Place,
    quiet: bool,
}

impl Places<'_> {
    /// Shows a report, and writes what is asked for.
    pub fn put(
        self,
        blocks: &[Block],
        json: impl Fn() -> String,
        markdown: impl Fn() -> String,
        page: impl Fn() -> String,
    ) -> Result<(), Failure> {
        let mut outcomes = Outcomes::default();
        // the answer first: it is there whatever becomes of the files
        outcomes.add(self.place.tell(&text::render(blocks, self.place.style()), self.quiet));
        if let Some(file) = self.json {
            outcomes.add(write("--json", file, &json()));
        }
        if let Some(file) = self.html {
            outcomes.add(write("--html", file, &page()));
        }
        if let Some(file) = self.markdown {
            outcomes.add(write("--markdown", file, &markdown()));
        }
        if self.github {
            outcomes.add(to_step_summary(&markdown()));
        }
        outcomes.all()
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
        let verdict = Verdict { status, reasons: vec![failure.message.clone().into()] };
        let mut outcomes = Outcomes::default();
        if let Some(file) = &self.junit {
            outcomes.add(write("--junit", file, &junit::without_a_run(scenario, &verdict)));
        }
        // a device or a link is nothing that a run left
        let is_left = |file: &Path| fs::symlink_metadata(file).is_ok_and(|of| of.is_file());
        for (flag, file) in [("--markdown", &self.markdown), ("--csv", &self.csv)] {
            if let Some(file) = file.as_deref().filter(|file| !is_stdout(file) && is_left(file)) {
                outcomes.add(fs::remove_file(file).map_err(|error| cannot(flag, file, &error)));
            }
        }
        // whoever stopped it does not wait for a result
        if let Some(file) = self.json.as_deref().filter(|_| failure.status != EXIT_INTERRUPTED) {
            outcomes.add(write("--json", file, &json::without_a_run(&verdict)));
        }
        match outcomes.all() {
            Ok(()) => failure,
            Err(other) => Failure { message: format!("{failure}; and {other}"), ..failure },
        }
    }

    /// Writes everything that is asked for; annotations go to this place: GitHub's runner reads standard error as well.
    pub fn write(&self, run: &Run, place: Place) -> Result<(), Failure> {
        self.write_in_detail(run, place, false)
    }

    /// The same, perhaps with Markdown in detail.
    pub fn write_in_detail(&self, run: &Run, place: Place, detail: bool) -> Result<(), Failure> {
        let markdown = || match detail {
            true => markdown::detailed(run).map_err(|error| Failure::broken(error.to_string())),
            false => Ok(markdown::summary(run)),
        };
        let mut outcomes = Outcomes::default();
        let mut put = |flag: &str, file: &Option<PathBuf>, text: &dyn Fn() -> Result<String, Failure>| {
            let Some(file) = file else { return };
            outcomes.add(text().and_then(|text| write(flag, file, &text)));
        };
        put("--json", &self.json, &|| json::summary(run).map_err(|error| Failure::broken(error.to_string())));
        put("--junit", &self.junit, &|| Ok(junit::xml(run)));
        put("--csv", &self.csv, &|| csv::over_time(run).map_err(|error| Failure::broken(error.to_string())));
        put("--markdown", &self.markdown, &markdown);
        if let Some(file) = &self.hlog {
            outcomes.add(copy_log(&run.latency_log(), file));
        }
        if self.github {
            outcomes.add(markdown().and_then(|text| to_step_summary(&text)));
            let annotations = github::annotations(run);
            outcomes.add(match place {
                Place::Stdout => output::print(&annotations),
                Place::Stderr => place.tell(&annotations, false),
            });
        }
        outcomes.all()
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
    for (at, (flag, file)) in files.iter().enumerate() {
        let same = files[..at].iter().find(|(_, other)| is_same(file, other));
        if let Some((first, _)) = same {
            let reason =
                format!("{first} and {flag} both write {}; give one of them another file", file.display());
            return Err(Failure::usage(reason));
        }
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

/// Whether two names are of one file, of which one result would take the other's place.
fn is_same(file: &Path, other: &Path) -> bool {
    let place = |file: &Path| {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let whole = || Some(fs::canonicalize(folder).ok()?.join(file.file_name()?));
        fs::canonicalize(file).ok().or_else(whole)
    };
    // a device takes both
    let is_file = || fs::metadata(file).map_or(true, |there| there.is_file());
    place(file).is_some_and(|place_of_one| place(other) == Some(place_of_one)) && is_file()
}

/// Adds Markdown to the summary of a step of GitHub Actions.
pub fn to_step_summary(markdown: &str) -> Result<(), Failure> {
    append(Path::new(&step_summary()?), &format!("{markdown}\n"))
}

/// What became of results that are written one after the other: each is tried, whatever became of those before.
#[derive(Debug, Default)]
pub struct Outcomes(Vec<Failure>);

impl Outcomes {
    /// Notes what became of one.
    pub fn add(&mut self, result: Result<(), Failure>) {
        self.0.extend(result.err());
    }

    /// All that failed, in one message; where a result could not be written the status says so.
    pub fn all(self) -> Result<(), Failure> {
        let Some(first) = self.0.first() else { return Ok(()) };
        let is_unwritable = self.0.iter().any(|failure| failure.status == EXIT_UNWRITABLE);
        let status = if is_unwritable { EXIT_UNWRITABLE } else { first.status };
        let messages: Vec<&str> = self.0.iter().map(|failure| failure.message.as_str()).collect();
        Err(Failure { message: messages.join("\nerror: "), status })
    }
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
    write_output(file, |to| to.write_all(text.as_bytes())).map_err(|error| cannot(flag, file, &error))
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
    let mut log = File::open(from).map_err(|error| cannot("--hlog", from, &error))?;
    write_output(to, |to| io::copy(&mut log, to).map(drop)).map_err(|error| cannot("--hlog", to, &error))
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
    fn a_file_is_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| Some(folder.path().join(name));
        std::os::unix::fs::symlink("r", folder.path().join("link")).unwrap();
        fs::write(folder.path().join("r"), "").unwrap();
        for (csv, markdown, are_two) in [
            ("r", "r", false),
            ("r", "./r", false),
            ("new", "./new", false),
            ("r", "link", false),
            ("r", "s", true),
        ] {
            let both = ResultArguments { csv: of(csv), markdown: of(markdown), ..ResultArguments::default() };
            let told = both.check(None).map_err(|failure| failure.message);
            assert_eq!(told.is_ok(), are_two, "{csv} {markdown}: {told:?}");
        }
        let null = || Some(PathBuf::from("/dev/null"));
        let both = ResultArguments { csv: null(), markdown: null(), ..ResultArguments::default() };
        assert!(both.check(None).is_ok());
        assert!(both.check(Some(("--html", &folder.path().join("r")))).is_ok());
    }

    #[test]
    fn each_is_tried_and_all_that_failed_is_told() {
        let mut outcomes = Outcomes::default();
        for (message, status) in [("a", 3), ("", 0), ("b", EXIT_UNWRITABLE)] {
            let failed = (status != 0).then(|| Failure { message: message.into(), status });
            outcomes.add(failed.map_or(Ok(()), Err));
        }
        let told = outcomes.all().unwrap_err();
        assert_eq!((told.message.as_str(), told.status), ("a\nerror: b", EXIT_UNWRITABLE));
        assert!(Outcomes::default().all().is_ok());
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
