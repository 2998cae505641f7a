//! A driver in a process of its own, joined by pipes: what it leaves is what threads leave, and its death is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::store::{Store, VERIFY};
use crate::program::{
    assert_refused, begin, children, code, is_alive, json, run, send, stderr, stdout, tidemark, wait_until,
};
use rustix::process::Signal;
use serde_json::Value;
use tidemark_record::ledger::Ledger;
use tidemark_record::{Handover, Run, StoredLoad, StoredSeries};

/// Sessions of three requests, one of which fails in each second session, a write that is entered in the ledger, a group, and metrics.
const SESSIONS: &str = "
settings: {much: 1}
feeders:
  wanted: {values: ['yes', 'no']}
sessions:
  a:
    steps:
      - take: wanted
      - group: Both
        steps:
          - POST: /n
            label: Write
            ledger: {content: 'at ${now()} |${entry}|${check}| \"quoted\"', as: note}
            body: ${note}
            check: {status: 200}
          - GET: /count
            label: Count
            measure: {much: '${much}', sessions: {counter: 1}}
      - GET: /all?from=1000000
        label: Wanted
        check: {that: \"wanted == 'yes'\"}
";

/// At 200 sessions a second, as many as that.
fn scenario(folder: &Path, store: &Store, sessions: u32) {
    let text = format!(
        "system: {{url: '{}'}}{SESSIONS}load: {{rate: 200/s, hold: 10m}}\nlimits: {{connections: 4, sessions: {sessions}}}\n\
         objectives: [errors < 80%, lost = 0]\n{VERIFY}\n",
        store.url
    );
    fs::write(folder.join("s.yaml"), text).unwrap();
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.path().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    found.insert(entry.path().strip_prefix(folder).unwrap().display().to_string());
                }
            }
        }
    }
    found
}

/// The names of all that a value has, and of what that has.
fn names(value: &Value, at: &str, all: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| {
            all.insert(format!("{at}.{name}"));
            names(value, &format!("{at}.{name}"), all);
        }),
        Value::Array(list) => list.iter().for_each(|value| names(value, at, all)),
        _ => {}
    }
}

/// What does not depend on how fast this machine is.
fn totals(dir: &Path) -> Value {
    let run = Run::open(dir).unwrap();
    let mut summary = serde_json::to_value(&run.manifest.summary).unwrap();
    for when in ["took_s", "verified_at"] {
        summary["ledger"][when].take();
    }
    let mut series: BTreeMap<String, u64> = BTreeMap::new();
    let mut add = |kind: &str, of: &StoredSeries| {
        let key = format!("{kind} {} {} {}", of.label, of.outcome.name(), of.measured);
        *series.entry(key).or_default() += of.count;
    };
    run.series.iter().for_each(|of| add("request", of));
    run.groups.iter().for_each(|of| add("group", of));
    let load = |of: fn(&StoredLoad) -> u64| run.load.iter().map(of).sum::<u64>();
    let own: Vec<(u64, f64)> = (0..2)
        .map(|metric| {
            let of = run.own.iter().filter(|row| row.metric == metric);
            of.fold((0, 0.0), |all, row| (all.0 + row.count, all.1 + row.sum))
        })
        .collect();
    let ledger = Ledger::read(dir).unwrap();
    // each of two threads keeps its first three, and which of them has the failures is chance
    let examples = run.manifest.error_examples.len();
    assert!((3..=6).contains(&examples), "{examples} examples");
    let of_step = |step: &Value| (step["label"].clone(), step["requests"].clone(), step["errors"].clone());
    // a machine that others keep busy may leave the driver without a core
    let is_known =
        |reason: &&str| ["driver-bound: ", "machine-bound: "].iter().any(|of| reason.starts_with(of));
    let reasons = summary["verdict"]["reasons"].as_array().unwrap().iter().filter_map(Value::as_str);
    let missed: Vec<&str> = reasons.filter(|reason| !is_known(reason)).collect();
    let counts = ["requests", "errors", "statuses", "dropped", "failed", "failed_steps", "unconnected"];
    let counts = counts.map(|name| summary[name].clone());
    serde_json::json!({
        "missed": missed,
        "counts": counts,
        "steps": summary["steps"].as_array().unwrap().iter().map(of_step).collect::<Vec<_>>(),
        "ledger": [ledger.sent(), ledger.acknowledged()],
        "found": summary["ledger"],
        "series": series,
        "load": [
            load(|row| row.offered),
            load(|row| row.measured_offered),
            load(|row| row.dropped),
            load(|row| row.connects),
        ],
        "own": own,
        "phases": run.manifest.phases.iter().map(|phase| &phase.name).collect::<Vec<_>>(),
        "threads": summary["driver"]["threads"],
        "io": run.manifest.driver_io,
        "processes": run.samples.iter().map(|sample| &sample.process).collect::<BTreeSet<_>>(),
    })
}

/// The process that drives for another one.
fn driver_of(id: u32) -> Option<u32> {
    let is_driver =
        |id: &u32| fs::read(format!("/proc/{id}/cmdline")).is_ok_and(|words| words.ends_with(b"\0driver\0"));
    children(id).into_iter().find(is_driver)
}

#[test]
fn a_process_leaves_the_run_that_threads_leave() {
    let folder = tempfile::tempdir().unwrap();
    let traced = |who: &str| format!("{who}.har");
    for who in ["threads", "process"] {
        let store = Store::start(0);
        scenario(folder.path(), &store, 300);
        let har = traced(who);
        let words =
            ["run", "s.yaml", "--out", who, "--driver", who, "--json", "-q", "-t", "2", "--set", "much=3"];
        let output = run(
            folder.path(),
            &[&words[..], &["--seed", "7", "--trace", &har, "--trace-every", "0"]].concat(),
        );
        let summary: Value =
            serde_json::from_str(&stdout(&output)).unwrap_or_else(|_| panic!("{who}: {}", stderr(&output)));
        assert_eq!(
            (&summary["requests"], &summary["failed"]),
            (&900.into(), &150.into()),
            "{who}: {summary}"
        );
        assert_eq!(stderr(&output), "", "{who}");
        assert_eq!(store.count(), 300, "{who}");
    }
    let [threads, process] = ["threads", "process"].map(|who| folder.path().join(who));
    assert_eq!(files(&process), files(&threads));
    assert_eq!(totals(&process), totals(&threads));
    let all = [&threads, &process].map(|dir| {
        let text = fs::read_to_string(dir.join("run.json")).unwrap();
        let mut all = BTreeSet::new();
        names(&serde_json::from_str(&text).unwrap(), "", &mut all);
        // what depends on who else used the machine
        let varies = [".summary.driver.", "warnings", "slowest", "core_wait_share", "kinds", "undecided"];
        all.retain(|name| !varies.iter().any(|word| name.contains(word)));
        all
    });
    assert_eq!(all[1], all[0]);
    let entries = ["threads", "process"].map(|who| {
        let har = fs::read_to_string(folder.path().join(traced(who))).unwrap();
        serde_json::from_str::<Value>(&har).unwrap()["log"]["entries"].as_array().unwrap().len()
    });
    assert_eq!(entries, [150; 2], "all that failed");
}

#[test]
fn the_death_of_a_driver_makes_a_run_that_is_invalid_and_says_why() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Store::start(0));
    scenario(folder.path(), &store, 1_000_000);
    let words = ["run", "s.yaml", "--out", "out", "--driver", "process", "--json", "-q", "-t", "1"];
    let program = begin(folder.path(), &words);
    // seconds that were handed over
    wait_until("writes", || store.count() > 500);
    let driver = driver_of(program.id()).expect("it drives by a process");
    send(driver, Signal::KILL);
    let begun = Instant::now();
    let output = program.wait_with_output().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", begun.elapsed());
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    let summary = json(&output);
    let verdict = &summary["verdict"];
    assert_eq!(verdict["status"], "invalid");
    let reason = verdict["reasons"][0].as_str().unwrap();
    assert!(
        reason.contains("the driver broke off: killed by signal 9; these are the figures of"),
        "{reason}"
    );
    assert!(summary["requests"].as_u64().unwrap() > 200, "{summary}");
    // nothing known is lost, and it is said that not all is known
    let ledger = &summary["ledger"];
    assert_eq!((&ledger["lost"], &ledger["broke_off"]), (&0.into(), &true.into()), "{summary}");
    let shown = stdout(&run(folder.path(), &["report", "out"]));
    assert!(shown.contains("undecided: 0 lost of") && !shown.contains("never acknowledged"), "{shown}");
}

#[test]
fn a_driver_ends_with_whoever_started_it() {
    let (folder, store) = (tempfile::tempdir().unwrap(), Store::start(0));
    scenario(folder.path(), &store, 1_000_000);
    let words = ["run", "s.yaml", "--out", "out", "--driver", "process", "-q", "-t", "1"];
    let mut program = tidemark(folder.path(), &words).stderr(Stdio::null()).spawn().unwrap();
    wait_until("writes", || store.count() > 10);
    let driver = driver_of(program.id()).expect("it drives by a process");
    send(program.id(), Signal::KILL);
    program.wait().unwrap();
    wait_until("the driver is gone", || !is_alive(driver));

    // the same by order
    let mut program = tidemark(folder.path(), &[&words[..3], &["two"], &words[4..]].concat());
    let program = program.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let before = store.count();
    wait_until("writes", || store.count() > before + 300);
    let driver = driver_of(program.id()).expect("it drives by a process");
    send(program.id(), Signal::INT);
    let output = program.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    assert!(!is_alive(driver));
    let run = Run::open(&folder.path().join("two")).unwrap();
    assert!(run.manifest.interrupted && run.manifest.summary.requests > 100);
    assert!(!run.manifest.summary.verdict.reasons.iter().any(|reason| reason.contains("broke off")));
}

#[test]
fn a_driver_that_cannot_begin_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["driver"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let read = Handover::read(&mut &output.stdout[..]).unwrap();
    assert!(matches!(&read, Some(Handover::Error(reason)) if reason == "it is told nothing"), "{read:?}");
    assert_refused(folder.path(), &["run", "s.yaml", "--driver", "nobody"], "write threads or process");
}
