//! Comparisons: one scenario after the other, then all of them at one rate, or each at a share of its own.
//!
//! Latencies of two systems compare only where both have the same to do. So after each has run with its own load,
//! each runs again at a share of what the slowest did: at that rate all of them can.

mod in_rounds;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidemark_record::{ComparedRun, ComparisonFile, Part};
use tidemark_scenario::plan::SystemOrigin;
use tidemark_scenario::{Comparison, Plan, Side};

use crate::interrupt::StopRequest;
use crate::{stores, system, target};
pub use in_rounds::{Bounds, Looked, compare_in_rounds};

use crate::{EXIT_PASS, Finished, LabError, RunOptions, worse};

/// A run of a comparison that is about to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// What runs, by the comparison's name for it.
    pub side: String,
    /// Which part it is.
    pub part: Part,
    /// From 1.
    pub round: u64,
    /// The rate of requests, where it is not that of its scenario.
    pub rate_per_s: Option<f64>,
    /// How many runs have ended before, and how many there will be.
    pub done: usize,
    /// See `done`.
    pub of: usize,
    /// How long the loads of all runs take together, without what comes before and after each; of a comparison in rounds the
    /// budget.
    pub planned: Duration,
}

/// What a comparison came to.
#[derive(Debug, Clone)]
pub struct CompareOutcome {
    /// Where it is.
    pub dir: PathBuf,
    /// The exit status of the run that is worth least.
    pub exit_status: u8,
}

/// Runs everything that a comparison names. `run` carries one out ([`run`](crate::run), with whatever is to be shown
/// meanwhile); its options name the directory. The comparison's own directory can be read after each run.
///
/// # Errors
/// What a run failed with, or that a directory cannot be written. What has run until then is kept.
pub fn compare<E: From<LabError> + std::fmt::Display>(
    comparison: &Comparison,
    options: &RunOptions,
    equal_rate_per_s: Option<f64>,
    run: &mut dyn FnMut(&Turn, Plan, RunOptions) -> Result<Finished, E>,
) -> Result<CompareOutcome, E> {
    let mut ran = |turn: &Turn, plan: Plan, options: RunOptions| run(turn, plan, options).map(Some);
    recorded(comparison, options, &mut |series| series.all(equal_rate_per_s, &mut ran))
}

/// Makes the directory of a comparison, has its runs made, and writes down which is which.
fn recorded<E: From<LabError> + std::fmt::Display>(
    comparison: &Comparison,
    options: &RunOptions,
    make_runs: &mut dyn FnMut(&mut Series<'_>) -> Result<(), E>,
) -> Result<CompareOutcome, E> {
    if options.url.is_some()
        && let Some(store) = comparison.sides.iter().find(|side| side.plan.drives_a_store())
    {
        return Err(LabError::Usage(format!(
            "--url would drive one server under the names of several stores; drive it by itself: tidemark run {} --url URL",
            store.plan.name
        ))
        .into());
    }
    let (sides, left_out) = present(comparison, options.url.is_some());
    if sides.is_empty() {
        let reasons: Vec<String> = left_out.into_iter().map(|(_, why)| why).collect();
        return Err(LabError::Usage(format!("nothing is left to compare: {}", reasons.join("; "))).into());
    }
    let left_out: Vec<String> = left_out.into_iter().map(|(names, why)| format!("{names}: {why}")).collect();
    let comparison = &Comparison { sides, ..comparison.clone() };
    for url in comparison.sides.iter().filter_map(own_url).chain(options.url.as_deref()) {
        target::check(url)?;
    }
    let dir = tidemark_record::new_run_dir(options.out.as_deref(), &comparison.name)
        .map_err(|error| LabError::Usage(error.to_string()))?;
    let sides = comparison.sides.iter().map(|side| side.name.clone()).collect();
    let mut record = ComparisonFile::new(
        &comparison.secrets.masked(&comparison.name),
        &comparison.secrets.masked(&comparison.description),
        sides,
    );
    record.left_out = left_out;
    record.command = comparison.secrets.masked_command(&options.command_line);
    tidemark_record::write_scenario(&dir, &comparison.source).map_err(unwritten)?;
    let mut series = Series {
        comparison,
        options,
        dir: &dir,
        record,
        rates: Vec::new(),
        requests_seen: vec![Vec::new(); comparison.sides.len()],
        status: EXIT_PASS,
    };
    let result = make_runs(&mut series);
    if let Err(error) = &result {
        series.record.stopped = Some(comparison.secrets.masked(&error.to_string()));
    }
    series.record.write(&dir).map_err(unwritten)?;
    let status = series.status;
    let runs_dir = Path::new(tidemark_record::RUNS_DIR);
    if options.remember && runs_dir.is_dir() {
        tidemark_record::mark_last(runs_dir, &dir).map_err(unwritten)?;
    }
    result?;
    Ok(CompareOutcome { dir, exit_status: status })
}

/// The URL that a side drives; where it drives a store, that is known once the store is started.
fn own_url(side: &Side) -> Option<&str> {
    match &side.plan.system.origin {
        SystemOrigin::Url(url) if !side.plan.drives_a_store() => Some(url),
        _ => None,
    }
}

/// What can be compared here, and what is left out, with why: a program is not installed, or a server is not reached.
/// `is_elsewhere`: another URL than their own is driven.
fn present(comparison: &Comparison, is_elsewhere: bool) -> (Vec<Side>, Vec<(String, String)>) {
    let (mut here, mut left_out) = (Vec::new(), Vec::<(String, String)>::new());
    let mut reached: BTreeMap<&str, Option<LabError>> = BTreeMap::new();
    for side in &comparison.sides {
        // a URL whose form is wrong is a mistake
        let url = own_url(side).filter(|url| !is_elsewhere && target::check(url).is_ok());
        let look = |url| system::find(url, &side.plan.system, &|| StopRequest::None).err();
        let unreached = match url.filter(|_| side.if_installed) {
            Some(url) => reached.entry(url).or_insert_with(|| look(url)).as_ref(),
            None => None,
        };
        let missing = stores::missing(&side.plan.stores).filter(|_| side.if_installed);
        let Some(why) = missing.as_ref().or(unreached) else {
            here.push(side.clone());
            continue;
        };
        let why = side.plan.secrets.masked(&why.to_string());
        match left_out.iter_mut().find(|(_, other)| *other == why) {
            Some((names, _)) => *names = format!("{names}; {}", side.name),
            None => left_out.push((side.name.clone(), why)),
        }
    }
    (here, left_out)
}

/// The runs, one after the other.
struct Series<'a> {
    comparison: &'a Comparison,
    options: &'a RunOptions,
    dir: &'a Path,
    record: ComparisonFile,
    /// What each side did with its own load: good answers per second, by round.
    rates: Vec<Vec<f64>>,
    /// How many requests a session made then, in the mean; by side and round.
    requests_seen: Vec<Vec<f64>>,
    status: u8,
}

/// How one run is made; none where it was stopped before anything was measured.
type OneRun<'a, E> = dyn FnMut(&Turn, Plan, RunOptions) -> Result<Option<Finished>, E> + 'a;

impl Series<'_> {
    fn all<E: From<LabError>>(
        &mut self,
        equal_rate_per_s: Option<f64>,
        run: &mut OneRun<'_, E>,
    ) -> Result<(), E> {
        let second = match equal_rate_per_s.is_some() || self.comparison.equal_rate.is_some() {
            true => Some(Part::EqualRate),
            false => self.comparison.own_rate.map(|_| Part::OwnRate),
        };
        let parts = [Some(Part::OwnLoad), second];
        let count = parts.iter().flatten().count();
        let of = self.comparison.sides.len() * self.comparison.rounds as usize * count;
        let round: Duration = self.comparison.sides.iter().map(|side| in_rounds::length(&side.plan)).sum();
        let rounds = self.comparison.rounds.saturating_mul(count as u64);
        let planned = round.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX));
        self.rates = vec![Vec::new(); self.comparison.sides.len()];
        for part in parts.into_iter().flatten() {
            let rate = match (part, equal_rate_per_s) {
                (Part::OwnLoad | Part::OwnRate, _) => None,
                (Part::EqualRate, Some(rate)) => Some(rate),
                (Part::EqualRate, None) => Some(self.equal_rate()?),
            };
            self.record.equal_rate_per_s = rate;
            self.record.own_rate = self.comparison.own_rate.filter(|_| part == Part::OwnRate);
            for round in 1..=self.comparison.rounds {
                for side in 0..self.comparison.sides.len() {
                    let done = self.record.runs.len();
                    let name = self.comparison.sides[side].name.clone();
                    let rate_per_s = match part {
                        Part::OwnRate => Some(self.own_rate(side)?),
                        Part::OwnLoad | Part::EqualRate => rate,
                    };
                    let turn = Turn { side: name, part, round, rate_per_s, done, of, planned };
                    if !self.one(side, &turn, run)? {
                        self.record.stopped = Some("stopped by the user".into());
                        return Ok(());
                    }
                }
            }
        }
        Ok(())
    }

    /// One run; whether the next may begin.
    fn one<E: From<LabError>>(
        &mut self,
        side: usize,
        turn: &Turn,
        run: &mut OneRun<'_, E>,
    ) -> Result<bool, E> {
        let mut plan = self.comparison.sides[side].plan.clone();
        if let Some(rate_per_s) = turn.rate_per_s {
            let each = self.requests_per_session(side, turn.part)?;
            plan.override_load(Some(rate_per_s / each), None)
                .map_err(|error| LabError::Usage(format!("{}: {error}", turn.side)))?;
        }
        let dir = directory(turn);
        let out = Some(self.dir.join(&dir));
        let options = RunOptions { out, remember: false, is_part: true, ..self.options.clone() };
        let Some(finished) = run(turn, plan, options)? else { return Ok(false) };
        let summary = &finished.manifest.summary;
        if turn.part == Part::OwnLoad {
            self.rates[side].push(summary.rate_per_s());
            let begun = summary.sessions_begun;
            self.requests_seen[side].extend((begun > 0).then(|| summary.due() as f64 / begun as f64));
        }
        self.record.runs.push(ComparedRun { side, part: turn.part, round: turn.round, dir });
        self.record.write(self.dir).map_err(unwritten)?;
        self.status = worse(self.status, finished.exit_status());
        Ok(!finished.manifest.interrupted)
    }

    /// The sides in which nothing is broken on purpose, or all where there is none: how much a side can do, and how many
    /// requests its sessions make, is not to be learnt while it is down.
    fn whole_sides(&self) -> Vec<usize> {
        let all = 0..self.comparison.sides.len();
        let is_whole = |side: &usize| self.comparison.sides[*side].plan.faults.is_empty();
        let whole: Vec<usize> = all.clone().filter(is_whole).collect();
        if whole.is_empty() { all.collect() } else { whole }
    }

    /// How many requests a session makes. Where that is only known in the mean, an equal rate takes that of one side for all:
    /// they have the same sessions.
    fn requests_per_session(&self, side: usize, part: Part) -> Result<f64, LabError> {
        let first = self.whole_sides().first().copied().unwrap_or(side);
        let of = if part == Part::EqualRate { first } else { side };
        let known = self.comparison.sides[side].plan.requests_per_session();
        let each = known.map_or_else(|| mean(&self.requests_seen[of]), |each| each.max(1) as f64);
        let name = &self.comparison.sides[of].name;
        positive(each).ok_or_else(|| {
            LabError::Measure(format!("no session of {name} began, so that there is no rate for them"))
        })
    }

    /// The share of what the slowest whole side did that all are to do.
    fn equal_rate(&self) -> Result<f64, LabError> {
        let rates = self.whole_sides().into_iter().map(|side| mean(&self.rates[side]));
        let slowest = rates.fold(f64::INFINITY, f64::min);
        positive(slowest * self.comparison.equal_rate.unwrap_or(1.0)).ok_or_else(|| {
            LabError::Measure("one of them answered nothing, so that there is no equal rate".into())
        })
    }

    /// The share of what a side did itself that it is to do.
    fn own_rate(&self, side: usize) -> Result<f64, LabError> {
        let name = &self.comparison.sides[side].name;
        positive(mean(&self.rates[side]) * self.comparison.own_rate.unwrap_or(1.0)).ok_or_else(|| {
            LabError::Measure(format!("{name} answered nothing, so that there is no share of it"))
        })
    }
}

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len().max(1) as f64
}

fn positive(rate: f64) -> Option<f64> {
    Some(rate).filter(|rate| rate.is_finite() && *rate > 0.0)
}

/// The name of a run's directory: `3-rest`, `4-websocket-equal-rate`.
fn directory(turn: &Turn) -> String {
    let lower = turn.side.to_ascii_lowercase();
    let words: Vec<&str> =
        lower.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let part = match turn.part {
        Part::OwnLoad => "",
        Part::EqualRate => "-equal-rate",
        Part::OwnRate => "-own-rate",
    };
    let name: String = words.join("-").chars().take(40).collect();
    format!("{}-{}{part}", turn.done + 1, if name.is_empty() { "run" } else { &name })
}

fn unwritten(error: tidemark_record::RecordError) -> LabError {
    LabError::Measure(error.to_string())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::{EXIT_FAIL, EXIT_INTERRUPTED};
    use tidemark_record::Manifest;
    use tidemark_record::summary::Status;
    use tidemark_scenario::{Experiment, load_experiment_text};

    pub(super) fn comparison(dir: &Path, more: &str) -> Comparison {
        let text = "sessions: {s: {steps: [{GET: /x}, {GET: /y}]}}\nload: {users: 4, hold: 1s}\n";
        std::fs::write(dir.join("a.yaml"), text).unwrap();
        let text = format!("compare: {{One thing: a.yaml, two: a.yaml}}\n{more}");
        match load_experiment_text("c.yaml", &text, dir, &[]).unwrap() {
            Experiment::Comparison(comparison) => *comparison,
            Experiment::One(_) => panic!("it compares"),
        }
    }

    /// A run that is said to have been: `achieved_per_s`, a tenth of it wrong.
    pub(super) fn finished(dir: &Path, achieved_per_s: f64, status: Status, interrupted: bool) -> Finished {
        let mut writer = tidemark_record::RunWriter::create(dir, &[], "").unwrap();
        writer.threads(1);
        let mut summary = tidemark_record::summarize(writer.totals(), dir);
        summary.achieved_per_s = achieved_per_s;
        summary.requests = 1_000;
        summary.errors.insert("status".into(), 100);
        summary.verdict.status = status;
        let mut manifest = Manifest::new("x", Vec::new(), summary);
        manifest.interrupted = interrupted;
        writer.finish(&manifest).unwrap();
        Finished {
            run_dir: dir.to_owned(),
            manifest,
            verify_stopped: false,
            trace_unwritten: None,
            script: None,
        }
    }

    #[test]
    fn all_run_in_turn_then_at_a_share_of_what_the_slowest_did() {
        let temp = tempfile::tempdir().unwrap();
        let comparison = comparison(temp.path(), "equal rate: 50%\nrounds: 2\n");
        let options =
            RunOptions { out: Some(temp.path().join("out")), remember: false, ..RunOptions::default() };
        let mut seen = Vec::new();
        let compared = compare::<LabError>(&comparison, &options, None, &mut |turn, plan, options| {
            let rate = plan.load.phases.last().unwrap().to;
            seen.push((turn.side.clone(), turn.part, turn.round, rate));
            let status = if turn.done == 1 { Status::Invalid } else { Status::Fail };
            Ok(finished(&options.out.unwrap(), [1_000.0, 4_000.0][turn.done % 2], status, false))
        })
        .unwrap();
        assert_eq!(compared.exit_status, EXIT_FAIL);
        let one = |part, round, rate| ("One thing".to_owned(), part, round, rate);
        let two = |part, round, rate| ("two".to_owned(), part, round, rate);
        let (own, equal) = (Part::OwnLoad, Part::EqualRate);
        // two requests in each session, half of the thousand good answers
        let rate = 1_000.0 * 0.5 / 2.0;
        let wanted = [
            one(own, 1, 4.0),
            two(own, 1, 4.0),
            one(own, 2, 4.0),
            two(own, 2, 4.0),
            one(equal, 1, rate),
            two(equal, 1, rate),
            one(equal, 2, rate),
            two(equal, 2, rate),
        ];
        assert_eq!(seen, wanted);
        let read = tidemark_record::ComparedRuns::open(&compared.dir).unwrap();
        assert_eq!(read.of(1, equal).count(), 2);
        assert_eq!(read.comparison.runs[5].dir, "6-two-equal-rate");
        assert_eq!(read.comparison.equal_rate_per_s, Some(500.0));
        assert_eq!(read.comparison.stopped, None);
    }

    #[test]
    fn a_url_that_cannot_be_driven_is_told_before_anything_runs() {
        let temp = tempfile::tempdir().unwrap();
        let mut comparison = comparison(temp.path(), "");
        let out = temp.path().join("out");
        let refused = |comparison: &Comparison, url: Option<&str>| {
            let (out, url) = (Some(out.clone()), url.map(str::to_owned));
            let options = RunOptions { out, url, remember: false, ..RunOptions::default() };
            let compared =
                compare::<LabError>(comparison, &options, None, &mut |_, _, _| panic!("nothing is to run"));
            let error = compared.unwrap_err();
            assert!(matches!(error, LabError::Usage(_)), "{error}");
            error.to_string()
        };
        assert!(refused(&comparison, Some("foo")).starts_with("`foo` cannot be driven"));
        comparison.sides[1].plan.drive_instead("bar").unwrap();
        assert!(refused(&comparison, None).starts_with("`bar` cannot be driven"));
        assert!(!out.exists());
        // a store's is known once it runs
        for side in &mut comparison.sides {
            side.plan.system.origin = SystemOrigin::Url("{stores.kv.url}".into());
        }
        let options = RunOptions { out: Some(out.clone()), remember: false, ..RunOptions::default() };
        let ran = compare::<LabError>(&comparison, &options, None, &mut |_, _, _| {
            Err(LabError::Measure("it ran".into()))
        });
        assert_eq!(ran.unwrap_err().to_string(), "it ran");
    }

    #[test]
    fn a_side_that_may_be_missing_is_left_out_by_name_where_nobody_answers() {
        let temp = tempfile::tempdir().unwrap();
        let mut comparison = comparison(temp.path(), "");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap();
        comparison.sides[1].plan.drive_instead(&format!("http://{free}")).unwrap();
        let seen = |comparison: &Comparison, name: &str| {
            let out = Some(temp.path().join(name));
            let options = RunOptions { out, remember: false, ..RunOptions::default() };
            let compared = compare::<LabError>(comparison, &options, None, &mut |_, _, options| {
                Ok(finished(&options.out.unwrap(), 10.0, Status::Pass, false))
            });
            tidemark_record::ComparedRuns::open(&compared.unwrap().dir).unwrap().comparison
        };
        // what is not said to be missing is run, and then fails
        assert_eq!(seen(&comparison, "a").sides, ["One thing", "two"]);
        comparison.sides[1].if_installed = true;
        let read = seen(&comparison, "b");
        assert_eq!((&read.sides[..], read.runs.len()), (&["One thing".to_owned()][..], 1));
        let says = format!("two: http://{free} is unreachable (");
        assert!(read.left_out.len() == 1 && read.left_out[0].starts_with(&says), "{:?}", read.left_out);
        // one that answers stays
        let _listener = TcpListener::bind(free).unwrap();
        assert_eq!(seen(&comparison, "c").sides, ["One thing", "two"]);
    }

    #[test]
    fn each_runs_again_at_a_share_of_its_own() {
        let temp = tempfile::tempdir().unwrap();
        let comparison = comparison(temp.path(), "own rate: 70%\n");
        let options =
            RunOptions { out: Some(temp.path().join("out")), remember: false, ..RunOptions::default() };
        let mut seen = Vec::new();
        let compared = compare::<LabError>(&comparison, &options, None, &mut |turn, _, options| {
            seen.push((turn.part, turn.rate_per_s, turn.of));
            Ok(finished(&options.out.unwrap(), [1_000.0, 4_000.0][turn.done % 2], Status::Pass, false))
        })
        .unwrap();
        let (own, again) = (Part::OwnLoad, Part::OwnRate);
        assert_eq!(
            seen,
            [(own, None, 4), (own, None, 4), (again, Some(700.0), 4), (again, Some(2_800.0), 4)]
        );
        let read = tidemark_record::ComparedRuns::open(&compared.dir).unwrap();
        assert_eq!((read.comparison.own_rate, read.comparison.equal_rate_per_s), (Some(0.7), None));
        assert_eq!(read.comparison.runs[3].dir, "4-two-own-rate");
    }

    #[test]
    fn what_ran_before_a_failure_or_a_wish_to_stop_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let comparison = comparison(temp.path(), "");
        let options = |name: &str| RunOptions {
            out: Some(temp.path().join(name)),
            remember: false,
            ..RunOptions::default()
        };
        let error = compare::<LabError>(&comparison, &options("a"), None, &mut |turn, _, options| {
            if turn.done == 1 {
                return Err(LabError::Start("no such thing".into()));
            }
            Ok(finished(&options.out.unwrap(), 10.0, Status::Pass, false))
        });
        assert_eq!(error.unwrap_err().to_string(), "no such thing");
        let read = tidemark_record::ComparedRuns::open(&temp.path().join("a")).unwrap();
        assert_eq!((read.runs.len(), read.comparison.stopped.as_deref()), (1, Some("no such thing")));

        let stopped = compare::<LabError>(&comparison, &options("b"), None, &mut |_, _, options| {
            Ok(finished(&options.out.unwrap(), 10.0, Status::Pass, true))
        });
        assert_eq!(stopped.unwrap().exit_status, EXIT_INTERRUPTED);
        let read = tidemark_record::ComparedRuns::open(&temp.path().join("b")).unwrap();
        assert_eq!((read.runs.len(), read.comparison.stopped.as_deref()), (1, Some("stopped by the user")));
    }
}
