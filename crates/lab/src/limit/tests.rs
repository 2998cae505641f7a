//! Searches with runs that are only said to have been.

use std::cell::{Cell, RefCell};

use super::*;
use tidemark_limit::Purpose;
use tidemark_record::manifest::{ObjectiveResult, Phase};
use tidemark_record::summary::{Status, Verdict};
use tidemark_record::{
    Facts, Live, Manifest, MergedInterval, Outcome, RunWriter, SeriesTimes, Sink, new_merged,
};

const SCENARIO: &str =
    "sessions: {s: {steps: [GET: /]}}\nload: {rate: 100/s, hold: 5s}\nobjectives: [p99 < 50ms]\n";

fn member(text: &str) -> Member {
    let plan = tidemark_scenario::load_text("shop.yaml", text, Path::new("."), &[]).unwrap();
    let options =
        RunOptions { remember: false, url: Some("http://127.0.0.1:1".into()), ..RunOptions::default() };
    Member { setting: None, plan, options }
}

fn options(out: &Path) -> LimitOptions {
    LimitOptions {
        budget: Duration::from_secs(100_000),
        precision: 0.02,
        out: Some(out.to_owned()),
        asked: vec!["--until p99<50ms".into()],
        ..LimitOptions::default()
    }
}

/// A run at the plan's level of a system that answers in a millisecond up to 730/s, and in a second beyond.
fn said(plan: &Plan, options: &RunOptions, calm_us: u64) -> Finished {
    let dir = options.out.clone().unwrap();
    let mut writer = RunWriter::create(&dir, &plan.labels, "").unwrap();
    writer.threads(1);
    let summary = tidemark_record::summarize(writer.totals(), &dir);
    let mut manifest = Manifest::new("x", Vec::new(), summary);
    let mut at_us = 0;
    for phase in &plan.load.phases {
        let start_us = at_us;
        at_us += phase.duration.as_micros() as u64;
        let (name, measured) = (phase.name.clone(), phase.measured);
        manifest.phases.push(Phase { name, start_us, end_us: at_us, measured, ..Phase::default() });
    }
    let level = plan.level();
    let is_fast = level <= 730.0;
    let mut sinks = options.sinks.clone();
    sinks.begin(&Facts { manifest: &manifest, threads: 1, anchor: None }).unwrap();
    if plan.load.phases[0].name == "calm" {
        sinks.second(&Live { at_s: 1.0, p50_us: Some(calm_us), ..Live::default() }).unwrap();
    }
    let mut times = new_merged();
    times.record_n(if is_fast { 1_000 } else { 1_000_000 }, 10_000).unwrap();
    let mut interval = MergedInterval::default();
    (interval.end_us, interval.in_window) = (1, true);
    let times = SeriesTimes { response_time_us: times, ..SeriesTimes::default() };
    interval.series.insert((0, Outcome::Ok, true.into()), times);
    sinks.interval(&interval).unwrap();
    let result =
        |text: &str, met| ObjectiveResult { objective: text.into(), met, ..ObjectiveResult::default() };
    manifest.objectives = vec![result("p99 < 50ms", is_fast), result("errors < 0.1%", true)];
    manifest.objectives.push(result("achieved > 99% of offered", true));
    let summary = &mut manifest.summary;
    (summary.measured_s, summary.offered_per_s, summary.achieved_per_s) = (1.0, level, level);
    summary.verdict = Verdict {
        status: if is_fast { Status::Pass } else { Status::Fail },
        reasons: if is_fast { Vec::new() } else { vec!["p99 < 50ms missed: 1s".into()] },
    };
    writer.finish(&manifest).unwrap();
    Finished { run_dir: dir, manifest, verify_stopped: false, trace_unwritten: None, script: None }
}

#[test]
fn a_limit_is_searched_for_and_kept() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("out");
    let seen = RefCell::new(Vec::new());
    let limited = limit::<LabError>(&[member(SCENARIO)], &options(&out), &mut |start, plan, options| {
        seen.borrow_mut().push((start.number, start.ask.level));
        assert_eq!(plan.level(), start.ask.level);
        assert!(plan.limits.drain <= DRAIN_LEAST && plan.verify.is_none());
        Ok(said(&plan, &options, 500))
    })
    .unwrap();
    let found = limited.searches.searches[0].found();
    assert_eq!(limited.exit_status, EXIT_PASS);
    assert!((found.per_s.unwrap() / 730.0 - 1.0).abs() < 0.02, "{found:?}");
    assert!(found.low_per_s.unwrap() <= 730.0 && found.high_per_s.unwrap() >= 730.0, "{found:?}");
    assert_eq!(found.first_to_break.as_deref(), Some("p99 < 50ms"));
    let trials = &limited.searches.searches[0].trials;
    assert_eq!(seen.borrow()[..4], [(1, 100.0), (2, 200.0), (3, 400.0), (4, 800.0)]);
    assert_eq!((trials[0].dir.as_str(), trials[3].dir.as_str()), ("1-100", "4-800"));
    assert!(trials.iter().any(|trial| trial.ask.purpose == Purpose::Last));
    // it is there again
    assert_eq!(
        Searches::from_json(&file::read(&out).unwrap()).unwrap().searches[0].trials.len(),
        trials.len()
    );
    assert!(tidemark_record::Run::open(&out.join("4-800")).is_ok());
}

#[test]
fn a_search_that_was_stopped_goes_on_and_no_other_does() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("out");
    let count = Cell::new(0);
    let mut run = |_: &TrialStart<'_>, plan: Plan, options: RunOptions| -> Result<Finished, LabError> {
        count.set(count.get() + 1);
        let mut finished = said(&plan, &options, 500);
        finished.manifest.interrupted = count.get() == 3;
        Ok(finished)
    };
    let limited = limit::<LabError>(&[member(SCENARIO)], &options(&out), &mut run).unwrap();
    assert_eq!(limited.exit_status, EXIT_INTERRUPTED);
    assert_eq!(limited.searches.searches[0].trials.len(), 2, "the third is no whole trial");
    assert_eq!(limited.searches.stopped.as_deref(), Some("stopped by the user"));

    let other = LimitOptions { asked: vec!["--until p99<9ms".into()], ..options(&out) };
    let error = limit::<LabError>(&[member(SCENARIO)], &other, &mut run).unwrap_err().to_string();
    assert!(error.contains("with --until p99<50ms, and now with --until p99<9ms"), "{error}");
    let changed = member(&SCENARIO.replace("hold: 5s", "hold: 6s"));
    let error = limit::<LabError>(&[changed], &options(&out), &mut run).unwrap_err().to_string();
    assert!(error.contains("the scenario is not the one it began with"), "{error}");

    let limited = limit::<LabError>(&[member(SCENARIO)], &options(&out), &mut run).unwrap();
    assert_eq!((limited.exit_status, limited.searches.stopped), (EXIT_PASS, None));
    let trials = &limited.searches.searches[0].trials;
    assert_eq!((trials[1].ask.level, trials[2].ask.level), (200.0, 400.0));
    assert_eq!(trials[2].dir, "3-400-2", "the one that was stopped left its own");
    file::write(&out, "{").unwrap();
    let error = limit::<LabError>(&[member(SCENARIO)], &options(&out), &mut run).unwrap_err();
    assert!(matches!(error, LabError::Usage(_)) && error.to_string().contains("limit.json"), "{error}");
}

#[test]
fn that_the_scenarios_own_load_is_above_most_is_noted_as_long_as_it_is() {
    let temp = tempfile::tempdir().unwrap();
    let notes = |most: Option<f64>| {
        let asked = LimitOptions { most, ..options(&temp.path().join("out")) };
        let limited = limit::<LabError>(&[member(SCENARIO)], &asked, &mut |_, plan, options| {
            Ok(said(&plan, &options, 500))
        });
        limited.unwrap().searches.searches[0].notes.join("; ")
    };
    let below = notes(Some(50.0));
    assert!(below.contains("load, 100/s, is above --most 50/s, the most that is tried"), "{below}");
    let raised = notes(Some(1e4));
    assert!(!raised.contains("--most"), "{raised}");
}

#[test]
fn a_trial_warms_up_for_as_long_as_a_session_thinks() {
    let of = |budget: Duration| {
        let temp = tempfile::tempdir().unwrap();
        let thinks = SCENARIO.replace("GET: /", "GET: /, {think: 20s}, {GET: /b}, {think: 10s}, {GET: /c}");
        let asked = LimitOptions { budget, ..options(&temp.path().join("out")) };
        let limited = limit::<LabError>(&[member(&thinks)], &asked, &mut |_, plan, options| {
            Ok(said(&plan, &options, 500))
        });
        let search = limited.unwrap().searches.searches.remove(0);
        let note = search.notes.iter().find(|note| note.contains("think for 30s")).cloned();
        (search.options.warm_up_s, note)
    };
    assert_eq!(of(Duration::from_secs(100_000)), (30.0, None));
    let (warm_up_s, note) = of(Duration::from_secs(80));
    assert_eq!(warm_up_s, 4.0);
    assert!(note.unwrap().contains("give a --budget of 600s or more"));
}

#[test]
fn one_that_was_killed_before_it_was_written_down_begins_anew() {
    let temp = tempfile::tempdir().unwrap();
    let out = temp.path().join("out");
    std::fs::create_dir(&out).unwrap();
    let mut run = |_: &TrialStart<'_>, plan: Plan, options: RunOptions| -> Result<Finished, LabError> {
        Ok(said(&plan, &options, 500))
    };
    file::create(&out, "name: another\n").unwrap();
    let error = limit::<LabError>(&[member(SCENARIO)], &options(&out), &mut run).unwrap_err().to_string();
    assert!(error.contains("not the one it began with") && error.contains("another directory"), "{error}");
    file::create(&out, SCENARIO).unwrap();
    let limited = limit::<LabError>(&[member(SCENARIO)], &options(&out), &mut run).unwrap();
    assert_eq!((limited.exit_status, limited.dir), (EXIT_PASS, out));
}

#[test]
fn what_it_must_hold_decides_once_it_is_sure() {
    let status = |at_least_per_s: f64, most: Option<f64>| {
        let temp = tempfile::tempdir().unwrap();
        let at_least_per_s = Some(at_least_per_s);
        let asked = LimitOptions { at_least_per_s, most, ..options(&temp.path().join("out")) };
        let limited = limit::<LabError>(&[member(SCENARIO)], &asked, &mut |_, plan, options| {
            Ok(said(&plan, &options, 500))
        });
        limited.unwrap().exit_status
    };
    // it holds 730/s
    assert_eq!(status(600.0, None), EXIT_PASS);
    assert_eq!(status(900.0, None), EXIT_FAIL);
    assert_eq!(status(730.0, None), EXIT_PASS, "within the interval nobody knows, and nothing fails");
    assert_eq!(status(400.0, Some(500.0)), EXIT_PASS);
    assert_eq!(status(500.0, Some(500.0)), EXIT_PASS, "the highest level that may be tried shows it");
}

#[test]
fn what_it_must_hold_and_can_never_be_shown_is_refused_before_anything_runs() {
    let refused = |text: &str, at_least_per_s: f64, most: Option<f64>| {
        let temp = tempfile::tempdir().unwrap();
        let out = temp.path().join("out");
        let asked = LimitOptions { at_least_per_s: Some(at_least_per_s), most, ..options(&out) };
        let error = limit::<LabError>(&[member(text)], &asked, &mut |_, _, _| panic!("nothing is to run"));
        let error = error.unwrap_err();
        assert!(matches!(error, LabError::Usage(_)) && !out.exists(), "{error}");
        error.to_string()
    };
    let told = refused(SCENARIO, 600.0, Some(500.0));
    let expected = "--at-least 600/s cannot be shown: --most 500/s allows 500 requests/s; raise --most to 600/s, or ask for less";
    assert!(told.contains(expected), "{told}");
    let two = SCENARIO.replace("[GET: /]", "[{GET: /}, {GET: /b}]");
    let told = refused(&two, 1_001.0, Some(500.0));
    let expected = "--at-least 1,001/s cannot be shown: --most 500/s allows 1,000 requests/s (2 in each session); raise --most to 501/s";
    assert!(told.contains(expected), "{told}");
    // beyond what is tried where nobody says anything
    let told = refused(SCENARIO, 2.0 * RATE_MAX, None);
    let expected = "the default --most 10,000,000/s allows 10,000,000 requests/s; raise --most to 20000000/s";
    assert!(told.contains(expected), "{told}");
    // sessions of any length, and users, make nobody knows how many
    let prepared = |text: &str| {
        let asked = LimitOptions { at_least_per_s: Some(1e6), most: Some(5.0), ..LimitOptions::default() };
        prepared(&member(text), &asked).map(|_| ())
    };
    let any_length = "sessions: {s: {steps: [{repeat: 3, steps: [GET: /]}]}}\nload: {rate: 5/s, hold: 5s}\n";
    prepared(any_length).unwrap();
    prepared("sessions: {s: {steps: [GET: /]}}\nload: {users: 5, hold: 5s}\n").unwrap();
}

#[test]
fn of_a_family_one_that_holds_nothing_comes_before_one_that_was_not_measured() {
    // one whose system answers nothing in time, and one that the driver could not load
    let statuses = |order: [Status; 2]| {
        let temp = tempfile::tempdir().unwrap();
        let named = |name: &str| Member { setting: Some(format!("size={name}")), ..member(SCENARIO) };
        let members = [named("1"), named("2")];
        limit::<LabError>(&members, &options(&temp.path().join("out")), &mut |start, plan, options| {
            let first = start.setting == Some("size=1");
            let mut finished = said(&plan, &options, 500);
            let manifest = &mut finished.manifest;
            // of a trial without a request nothing would be said
            manifest.summary.requests = 100;
            manifest.summary.verdict.status = if first { order[0] } else { order[1] };
            if manifest.summary.verdict.status == Status::Fail {
                manifest.objectives.iter_mut().for_each(|objective| objective.met = false);
            }
            Ok(finished)
        })
        .unwrap()
        .exit_status
    };
    assert_eq!(statuses([Status::Invalid, Status::Invalid]), EXIT_INVALID);
    assert_eq!(statuses([Status::Fail, Status::Invalid]), EXIT_FAIL);
    assert_eq!(statuses([Status::Invalid, Status::Fail]), EXIT_FAIL);
}

#[test]
fn a_trial_waits_until_the_system_is_as_before() {
    let temp = tempfile::tempdir().unwrap();
    let waited = RefCell::new(Vec::new());
    let budget = Duration::from_secs(8);
    let asked = LimitOptions { budget, ..options(&temp.path().join("out")) };
    let _ = limit::<LabError>(&[member(SCENARIO)], &asked, &mut |start, plan, options| {
        waited.borrow_mut().push((start.number, start.cooled_down.is_some()));
        // the second is busy at first
        let is_busy = start.number == 2 && start.cooled_down.is_none();
        Ok(said(&plan, &options, if is_busy { 90_000 } else { 500 }))
    })
    .unwrap();
    assert_eq!(waited.borrow()[..3], [(1, false), (2, false), (2, true)]);
}

#[test]
fn a_trial_is_put_off_no_longer_than_the_budget_lasts() {
    let temp = tempfile::tempdir().unwrap();
    let waited = RefCell::new(Vec::new());
    let budget = Duration::from_secs(8);
    let asked = LimitOptions { budget, ..options(&temp.path().join("out")) };
    let limited = limit::<LabError>(&[member(SCENARIO)], &asked, &mut |start, plan, options| {
        waited.borrow_mut().push(start.cooled_down.unwrap_or_default());
        // it is never again as at first
        Ok(said(&plan, &options, if start.number == 1 { 500 } else { 90_000 }))
    })
    .unwrap();
    assert!(limited.searches.searches[0].trials.len() >= 2);
    assert!(waited.borrow().iter().all(|waited| *waited < budget), "{waited:?}");
}

#[test]
fn what_cannot_be_searched_is_told_before_anything_runs() {
    let mixed = "sessions: {a: {steps: [GET: /]}, b: {steps: [GET: /b]}}\n\
                 load: {sessions: {a: {rate: 5/s, hold: 1s}, b: {users: 5, hold: 1s}}}\n";
    let temp = tempfile::tempdir().unwrap();
    let error = limit::<LabError>(&[member(mixed)], &options(&temp.path().join("out")), &mut |_, _, _| {
        panic!("nothing is to run")
    });
    assert!(error.unwrap_err().to_string().contains("no one level to raise"));
    let mut unread = member(SCENARIO);
    unread.options.url = Some("foo".into());
    let error = limit::<LabError>(&[unread], &options(&temp.path().join("out")), &mut |_, _, _| {
        panic!("nothing is to run")
    });
    assert!(error.unwrap_err().to_string().starts_with("`foo` cannot be driven"));
}
