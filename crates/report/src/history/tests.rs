use tidemark_record::summary::Verdict;
use tidemark_record::{Outcome, RunWriter, summarize};

use super::*;
use crate::test_run::{self, timed};

/// A run of one second with a hundred answers after so long, on a machine of so many cores.
fn write(dir: &Path, number: u32, us: u64, cores: u64, revision: &str, status: Status) {
    write_with(dir, number, us, status, |manifest| {
        manifest.machine.cores = cores;
        manifest.git_revision = Some(revision.repeat(40));
    });
}

/// The same with what else its manifest says.
fn write_with(dir: &Path, number: u32, us: u64, status: Status, edit: impl FnOnce(&mut Manifest)) {
    let mut writer = RunWriter::create(dir, &["Ask".into()], "").unwrap();
    writer.threads(1);
    let mut one = test_run::second(0, 100);
    one.series = vec![timed(0, Outcome::Ok, true, &[([us, us], 100)])];
    writer.add_interval(&one).unwrap();
    let mut summary = summarize(writer.totals(), dir);
    summary.verdict = Verdict { status, reasons: Vec::new() };
    let mut manifest = Manifest::new("shop", vec!["Ask".into()], summary);
    manifest.load = "closed, 2 users".into();
    manifest.started_at = format!("2026-03-{:02}T10:00:00Z", number % 28 + 1);
    edit(&mut manifest);
    writer.finish(&manifest).unwrap();
}

/// Runs with a change after the sixth, one that is invalid, and two of another machine.
fn folder() -> tempfile::TempDir {
    let temp = tempfile::tempdir().unwrap();
    for number in 0..14u32 {
        let us = if number < 6 { 10_000 } else { 12_000 } + u64::from(number * 7 % 5) * 40;
        let revision = if number < 6 { "a" } else { "b" };
        // named the other way round: the times count
        write(&temp.path().join(format!("{:02}-shop", 20 - number)), number, us, 4, revision, Status::Pass);
    }
    write(&temp.path().join("30-shop"), 20, 90_000, 4, "b", Status::Invalid);
    for number in 21..23 {
        write(&temp.path().join(format!("{number}-shop")), number, 5_000, 64, "b", Status::Fail);
    }
    std::fs::create_dir(temp.path().join("40-broken")).unwrap();
    std::fs::write(temp.path().join("40-broken/run.json"), "{").unwrap();
    temp
}

#[test]
fn runs_without_their_manifest_are_named() {
    let temp = folder();
    std::fs::remove_file(temp.path().join("14-shop/run.json")).unwrap();
    for number in 50..61 {
        let dir = temp.path().join(number.to_string());
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("load.parquet"), "").unwrap();
    }
    let history = History::read(temp.path()).unwrap();
    assert_eq!(history.lines[0].runs.len(), 13);
    let note = history.notes.iter().find(|note| note.contains("without run.json")).unwrap();
    assert!(note.contains("14-shop") && note.ends_with(" and 2 more"), "{note}");
}

#[test]
fn a_scenario_without_runs_is_told_with_what_is_there() {
    let error = History::read(folder().path()).unwrap().of_scenario("nope").unwrap_err();
    assert!(
        error.starts_with("no run of \"nope\" in ") && error.ends_with("; there are runs of shop"),
        "{error}"
    );
    let temp = tempfile::tempdir().unwrap();
    let refused = || History::read(temp.path()).unwrap().of_scenario("nope").unwrap_err();
    assert!(refused().ends_with("; there is no run to show"), "{}", refused());
    for (dir, file) in [("both", "comparison.json"), ("search", "limit.json")] {
        std::fs::create_dir(temp.path().join(dir)).unwrap();
        std::fs::write(temp.path().join(dir).join(file), "{}").unwrap();
    }
    let says = "; there is no run to show (not shown: the runs of comparisons (1); not shown: the trials of searches for a \
                limit (1))";
    assert!(refused().ends_with(says), "{}", refused());
}

#[test]
fn a_copy_of_a_run_is_no_other_run() {
    let temp = folder();
    std::fs::create_dir(temp.path().join("50-copy")).unwrap();
    std::fs::copy(temp.path().join("20-shop/run.json"), temp.path().join("50-copy/run.json")).unwrap();
    let history = History::read(temp.path()).unwrap();
    assert_eq!(history.lines[0].runs.len(), 14);
    let says = "copies of runs count once (1)";
    assert!(history.notes.iter().any(|note| note == says), "{:?}", history.notes);
}

#[test]
fn a_change_is_found_with_its_revisions_and_machines_are_not_mixed() {
    let temp = folder();
    let history = History::read(temp.path()).unwrap();
    let [line, other] = &history.lines[..] else { panic!("{:?}", history.lines) };
    assert_eq!((line.runs.len(), line.machine.as_str()), (14, "4 cores"));
    assert_eq!((other.runs.len(), other.machine.as_str()), (2, "64 cores"));
    let p50 = line.trends.iter().find(|trend| trend.figure == Figure::P50).unwrap();
    let [changed] = &p50.changes[..] else { panic!("{:?}", p50.changes) };
    assert_eq!((changed.at, changed.worse, changed.run.as_str()), (6, true, "14-shop"));
    assert!(changed.low < 1.2 && 1.2 < changed.high, "{changed:?}");
    assert!(changed.says.ends_with(", from aaaaaaaaaa to bbbbbbbbbb"), "{}", changed.says);
    let rate = line.trends.iter().find(|trend| trend.figure == Figure::Rate).unwrap();
    assert_eq!((rate.changes.len(), rate.values.len()), (0, 14));
    assert!(!line.trends.iter().any(|trend| trend.figure == Figure::Memory), "nothing was watched");
    let notes = history.notes.join("\n");
    for says in
        ["left out: ", "were stopped early (1)", "shop ran on 2 machines, each with a line of its own"]
    {
        assert!(notes.contains(says), "{says}: {notes}");
    }
}

#[test]
fn the_published_names_are_there() {
    let temp = folder();
    let history = History::read(temp.path()).unwrap();
    let json: serde_json::Value = serde_json::from_str(&history.json()).unwrap();
    for pointer in [
        "/lines/0/scenario",
        "/lines/0/machine",
        "/lines/0/runs/0/revision",
        "/lines/0/runs/0/started_at",
        "/lines/0/trends/1/figure",
        "/lines/0/trends/1/values/13",
        "/lines/0/trends/1/changes/0/revisions/1",
        "/lines/0/trends/1/changes/0/says",
    ] {
        assert!(json.pointer(pointer).is_some_and(|value| !value.is_null()), "{pointer}");
    }
    crate::json::tests::assert_fits_verb(&json, "history");
    let manifest = Manifest::open(&temp.path().join("14-shop")).unwrap();
    assert_eq!(history.line_of(&manifest).map(|line| line.runs.len()), Some(14));
}

#[test]
fn small_bars_show_where_it_changed() {
    let values = [Some(1.0), Some(2.0), None, Some(8.0), Some(8.0)];
    assert_eq!(sparkline(&values, &[3], 10, false), "▁▂ |██");
    assert_eq!(sparkline(&values, &[3], 2, false), "▄▄", "all alike, and no mark before the first");
    assert_eq!(sparkline(&values, &[], 3, true), " --");
    assert_eq!(sparkline(&[], &[], 3, false), "");
}

/// Four runs before something is another, and four behind it; those behind take eight times as long.
fn four_and_four(edit: impl Fn(bool, &mut Manifest)) -> History {
    let temp = tempfile::tempdir().unwrap();
    for number in 0..8u32 {
        let is_later = number >= 4;
        let us = if is_later { 20_000 } else { 2_500 } + u64::from(number % 3) * 10;
        let dir = temp.path().join(format!("{number:02}-shop"));
        write_with(&dir, number, us, Status::Pass, |manifest| edit(is_later, manifest));
    }
    History::read(temp.path()).unwrap()
}

/// How many runs each line has, and how many changes all have.
fn shape(history: &History) -> (Vec<usize>, usize) {
    let trends = history.lines.iter().flat_map(|line| &line.trends);
    let changes = trends.map(|trend| trend.changes.len()).sum();
    (history.lines.iter().map(|line| line.runs.len()).collect(), changes)
}

#[test]
fn runs_with_another_setting_are_another_line() {
    let history = four_and_four(|is_later, manifest| {
        manifest.scenario_digest = Some("a".into());
        let ms = if is_later { "20" } else { "2" };
        manifest.settings.insert("ms".into(), ms.into());
        // what the system was given of them is shown once
        manifest.system.settings = manifest.settings.clone();
    });
    assert_eq!(shape(&history), (vec![4, 4], 0), "{history:?}");
    assert_eq!(history.lines[0].what, ["closed, 2 users", "ms=2"]);
    assert_eq!(history.lines[1].what, ["closed, 2 users", "ms=20"]);
    assert!(history.notes.is_empty(), "{:?}", history.notes);
    // without any of it they are one, in which there is a change
    let (lines, changes) = shape(&four_and_four(|_, _| {}));
    assert!(lines == [8] && changes > 0, "{lines:?}, {changes}");
}

#[test]
fn runs_of_another_text_are_another_line_and_a_note_says_so() {
    let history = four_and_four(|is_later, manifest| {
        let digest = if is_later { "b" } else { "a" };
        manifest.scenario_digest = Some(digest.into());
    });
    assert_eq!(shape(&history), (vec![4, 4], 0), "{history:?}");
    assert_eq!(history.lines[0].what, history.lines[1].what);
    let says = "shop: the scenario's file changed: runs before and after are shown apart";
    assert_eq!(history.notes, [says]);
}

#[test]
fn runs_of_before_stay_together_and_are_told_from_newer_ones() {
    let history = four_and_four(|is_later, manifest| {
        manifest.scenario_digest = is_later.then(|| "a".into());
    });
    assert_eq!(shape(&history), (vec![4, 4], 0), "{history:?}");
    let says = "shop: runs of earlier versions, which lack settings and file, are shown apart";
    assert_eq!(history.notes, [says]);
}

/// A line of runs that reached a percentile, or failed too many requests for it, or had too few.
fn line_of(readings: &[Reading]) -> Line {
    let point = |number: usize| Point {
        run: format!("{number:02}-shop"),
        run_dir: String::new(),
        started_at: String::new(),
        revision: None,
        version: String::new(),
        status: if readings[number] == Reading::NotReached { Status::Fail } else { Status::Pass },
    };
    let runs: Vec<Point> = (0..readings.len()).map(point).collect();
    let trends = Trend::of(Figure::P99, readings, &runs).into_iter().collect();
    let (scenario, machine) = ("shop".into(), "4 cores".into());
    Line { scenario, what: Vec::new(), scenario_digest: None, machine, runs, trends }
}

/// The same of four runs that reached it and others behind them.
fn behind_four(others: &[Reading]) -> Line {
    let reached = [Reading::Value(50_000.0); 4];
    line_of(&[&reached[..], others].concat())
}

#[test]
fn what_the_last_runs_did_not_reach_is_told() {
    let line = behind_four(&[Reading::NotReached; 4]);
    assert_eq!(line.trends[0].last(), "not reached");
    assert_eq!(line.trends[0].not_reached, [4, 5, 6, 7]);
    assert_eq!(line.failed().as_deref(), Some("4 of 8 runs failed, the last 4"));
    let says = "shop: the last 4 runs, from 04-shop on, did not reach p99, as too many of their requests failed; runs before \
                did";
    assert_eq!(line.unreached(), [says]);
    for others in [vec![Reading::NotReached; 2], vec![Reading::Unknown; 4], Vec::new()] {
        assert!(behind_four(&others).unreached().is_empty(), "{others:?}");
    }
    assert_eq!(behind_four(&[Reading::Unknown]).trends[0].last(), "not measured");
    assert_eq!(behind_four(&[]).trends[0].last(), "50.0ms");
    let mut few = vec![Reading::Value(50_000.0); 2];
    few.extend([Reading::NotReached; 4]);
    assert!(line_of(&few).unreached().is_empty(), "two runs that reached it are too few");
}

#[test]
fn failed_runs_are_counted_with_the_last_ones_without_a_gap() {
    let failed = |runs: &str| {
        let reading = |c: char| if c == 'x' { Reading::NotReached } else { Reading::Value(1_000.0) };
        line_of(&runs.chars().map(reading).collect::<Vec<_>>()).failed().unwrap_or_default()
    };
    assert_eq!(failed("....."), "");
    assert_eq!(failed("x.x.."), "2 of 5 runs failed");
    assert_eq!(failed("....x"), "1 of 5 runs failed, the last");
    assert_eq!(failed("x...x"), "2 of 5 runs failed, the last among them");
    assert_eq!(failed("x.xxx"), "4 of 5 runs failed, the last 3");
    assert_eq!(failed("x"), "1 of 1 run failed");
}
