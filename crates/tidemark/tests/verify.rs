//! From a scenario's first write to the exit status: a run against a store that keeps, loses, or goes away.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::program::store::{Store, VERIFY, scenario};
use crate::program::{begin_silent, code, json, run, send, stderr, stdout, wait_until};
use rustix::process::Signal;
use serde_json::Value;

/// Nothing failed. On a machine that others keep busy the driver may have been the limit: that is not what is tested.
fn assert_no_failure(output: &Output) -> Value {
    let summary = json(output);
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let others = reasons.iter().filter(|reason| !reason.as_str().unwrap().starts_with("driver-bound: "));
    assert_eq!(others.count(), 0, "{summary:#}");
    assert_eq!(code(output), if reasons.is_empty() { 0 } else { 3 });
    summary
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(folder.join("out/run.json")).unwrap()).unwrap()
}

#[test]
fn a_store_that_keeps_everything_passes_and_one_that_forgets_later_fails() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::start(0);
    scenario(folder.path(), &store.url, &format!("objectives: [lost = 0]\n{VERIFY}"));
    let output = run(folder.path(), &["run", "s.yaml", "--out", "out", "--json", "--threads", "2"]);
    let summary = assert_no_failure(&output);
    let ledger = &summary["ledger"];
    let count = store.count() as u64;
    assert!(count >= 700, "{count}");
    assert_eq!(ledger["found"], count);
    assert_eq!(
        (&ledger["lost"], &ledger["duplicated"], &ledger["different"]),
        (&0.into(), &0.into(), &0.into())
    );
    assert_eq!(ledger["counted"], count);
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("\"verified_at\""));

    // one is forgotten, one is doubled, one is changed, by whatever happens to stores over night
    {
        let mut kept = store.kept();
        let last = kept.contents.pop().unwrap();
        kept.contents[3] = last.clone() + "!";
        kept.contents.push(last.replace("quoted", "qouted"));
        let first = kept.contents[0].clone();
        kept.contents.push(first);
    }
    let output = run(folder.path(), &["verify", "out", "--quiet"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("FAIL  "), "{text}");
    assert!(text.contains("lost = 0 missed: "), "{text}");
    let kept = manifest(folder.path());
    assert_eq!(kept["summary"]["verdict"]["status"], "fail");
    assert_eq!(kept["objectives"][0]["met"], false);
    assert!(kept["summary"]["ledger"]["different"].as_u64().unwrap() >= 1);

    // nobody there: not verified, and what was found before stays
    store.kept().gone = true;
    let output = run(folder.path(), &["verify", "out", "--quiet", "--url", "http://127.0.0.1:9"]);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("not verified: GET /"), "{}", stderr(&output));
    assert_eq!(manifest(folder.path()), kept);
}

#[test]
fn a_store_that_loses_fails_unless_so_much_may_be_lost() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::start(50);
    scenario(folder.path(), &store.url, VERIFY);
    let output = run(folder.path(), &["run", "s.yaml", "--out", "out", "--json"]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    let summary = json(&output);
    let lost = store.kept().posts / 50;
    assert_eq!(summary["ledger"]["lost"], lost);
    let reason = summary["verdict"]["reasons"][0].as_str().unwrap();
    assert!(reason.starts_with(&format!("lost: {lost} of ")), "{reason}");
    let when = summary["ledger"]["lost_when"].as_array().unwrap();
    assert_eq!(when.iter().map(|when| when["lost"].as_u64().unwrap()).sum::<u64>(), lost);

    let store = Store::start(50);
    scenario(folder.path(), &store.url, &format!("objectives: [lost < 5%]\n{VERIFY}"));
    let output = run(folder.path(), &["run", "s.yaml", "--out", "allowed", "--json"]);
    assert_no_failure(&output);
}

#[test]
fn a_ledger_that_nobody_reads_back_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::start(0);
    scenario(folder.path(), &store.url, "");
    let checked = stdout(&run(folder.path(), &["check", "s.yaml"]));
    assert!(checked.contains("is entered in the ledger"), "{checked}");
    let output = run(folder.path(), &["run", "s.yaml", "--out", "out"]);
    assert!(matches!(code(&output), 0 | 3), "{}", stderr(&output));
    assert!(stdout(&output).contains("not verified: the scenario does not say how"), "{}", stdout(&output));
    let output = run(folder.path(), &["verify", "out"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("`verify:`"), "{}", stderr(&output));
}

#[test]
fn a_killed_driver_leaves_a_ledger_that_can_be_verified() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::start(0);
    scenario(folder.path(), &store.url, VERIFY);
    let mut child =
        begin_silent(folder.path(), &["run", "s.yaml", "--out", "out", "--for", "10m", "--quiet"]);
    // several hand-overs of each thread
    wait_until("three seconds of writes", || store.count() > 1_200);
    send(child.id(), Signal::KILL);
    child.wait().unwrap();
    let output = run(folder.path(), &["verify", "out", "--json", "--quiet"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    let summary = json(&output);
    let ledger = &summary["ledger"];
    assert_eq!(summary["verdict"]["status"], "invalid", "the load's figures stay what they are");
    assert_eq!(ledger["lost"], 0);
    assert!(ledger["found"].as_u64().unwrap() > 0 && ledger["counted"] == store.count());
}

/// The shipped scenario with its verify exchanged: straight in the store.
fn straight(folder: &Path) {
    let shipped = include_str!("../../../scenarios/ingest.yaml");
    let (before, rest) = shipped.split_once("verify:\n").unwrap();
    let objectives = &rest[rest.find("objectives:").unwrap()..];
    let text = format!("{before}verify: {{store: embedded}}\n\n{objectives}")
        .replace("warm-up: 4s", "warm-up: 1s")
        .replace("hold: 30s", "hold: 2s");
    fs::write(folder.join("s.yaml"), text).unwrap();
}

#[test]
fn the_shipped_intakes_store_is_read_straight_after_it_was_stopped() {
    let folder = tempfile::tempdir().unwrap();
    straight(folder.path());
    let arguments = ["run", "s.yaml", "--set", "users=8", "--out", "out", "--json", "--quiet"];
    let output = run(folder.path(), &[&arguments[..], &["--keep-data"]].concat());
    let summary = assert_no_failure(&output);
    let ledger = &summary["ledger"];
    let number = |name: &str| ledger[name].as_u64().unwrap_or_else(|| panic!("{name}: {summary:#}"));
    assert!(number("acknowledged") > 0);
    assert_eq!(number("found"), number("acknowledged"));
    assert_eq!(["lost", "duplicated", "different", "foreign"].map(number), [0; 4]);
    assert_eq!(number("counted"), number("found") + number("unacknowledged_found"));

    // again, from the data that was kept; then without it
    let output = run(folder.path(), &["verify", "out", "--json", "--quiet"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let again = json(&output);
    assert_eq!(again["ledger"]["found"], ledger["found"]);
    let output = run(folder.path(), &["verify", "out", "--quiet", "--url", "http://127.0.0.1:9"]);
    assert_eq!(code(&output), 2);
    fs::remove_dir_all(folder.path().join("out/data")).unwrap();
    let kept = manifest(folder.path());
    let output = run(folder.path(), &["verify", "out", "--quiet"]);
    assert_eq!(code(&output), 2);
    assert!(stderr(&output).contains("--keep-data"), "{}", stderr(&output));
    assert_eq!(manifest(folder.path()), kept);
}
