//! A run has what the system itself says that it did.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::program::{assert_refused, begin, begin_silent, code, json, run, send, stderr, wait_until};
use rustix::process::Signal;
use tidemark_record::{Operation, OperationsReader, Outcome, Run};

const USERS: u64 = 2;

fn scenario(folder: &Path, settings: &str, hold: &str, faults: &str) {
    let text = format!(
        "system: {{serve: newsfeed, durability: buffered, settings: {{{settings}}}}}
sessions:
  poster:
    steps:
      - POST: /participant
        label: Participant
        json: {{name: x}}
        extract: {{id: $.id}}
      - repeat: 1000000
        steps:
          - POST: '/participant/${{id}}/outbound'
            label: Post
            json: {{subject: s, story: a story of some words}}
          - think: 1ms
load: {{users: {USERS}, hold: {hold}}}
{faults}"
    );
    fs::write(folder.join("a.yaml"), text).unwrap();
}

/// When each operation was over, by entity, operation and status.
fn operations(run_dir: &Path) -> BTreeMap<String, Vec<u64>> {
    let reader = OperationsReader::open(run_dir).unwrap().expect("the run has operations");
    let mut all: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let add = |Operation { at_us, entity, operation, status, .. }: Operation<'_>| {
        all.entry(format!("{entity} {operation} {status}")).or_default().push(at_us);
    };
    reader.visit(add).unwrap();
    assert!(!run_dir.join(tidemark_record::OPERATIONS_TOLD).exists());
    all
}

/// Posts that the driver got a good answer to in intervals from then on.
fn posts(run_dir: &Path, from_us: u64) -> u64 {
    let run = Run::open(run_dir).unwrap();
    let label = run.manifest.labels.iter().position(|label| label == "Post").unwrap();
    let good = run.series.iter().filter(|series| {
        usize::from(series.label) == label && series.outcome == Outcome::Ok && series.start_us >= from_us
    });
    good.map(|series| series.count).sum()
}

fn notes(run_dir: &Path) -> String {
    Run::open(run_dir).unwrap().manifest.notes.join("\n")
}

#[test]
fn the_systems_own_operations_are_as_many_as_the_drivers() {
    let folder = tempfile::tempdir().unwrap();
    scenario(folder.path(), "", "1s", "");
    let output = run(folder.path(), &["run", "a.yaml", "--out", "out", "--json", "--quiet"]);
    json(&output);
    let run_dir = folder.path().join("out");
    let all = operations(&run_dir);
    let count = |name: &str| all.get(name).map_or(0, |at| at.len() as u64);
    let good = posts(&run_dir, 0);
    assert!(good > 0);
    // each user may have had one under way at the end
    assert!(
        (good..=good + USERS).contains(&count("Outbound post 200")),
        "{good} {}",
        count("Outbound post 200")
    );
    assert!(count("Outbound store 200") >= count("Outbound post 200"));
    assert_eq!((count("Participant post 200"), count("Inbound store 200")), (USERS, 0), "nobody has friends");
    assert!(all["Outbound post 200"].iter().all(|at_us| *at_us < 60_000_000), "since the run began");
    assert!(!notes(&run_dir).contains("operations"), "{}", notes(&run_dir));
}

#[test]
fn a_system_that_was_killed_goes_on_telling_when_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let faults = "faults:\n  - {at: 2s, kill: system, restart after: 100ms}\n";
    scenario(folder.path(), "", "600s", faults);
    let mut child = begin(folder.path(), &["run", "a.yaml", "--out", "out", "--json", "--quiet"]);
    let run_dir = folder.path().join("out");
    let told = run_dir.join(tidemark_record::OPERATIONS_TOLD);
    let events = || fs::read_to_string(run_dir.join("events.jsonl")).unwrap_or_default();
    wait_until("it is back", || child.try_wait().unwrap().is_some() || events().contains("\"healed\""));
    let length = || fs::metadata(&told).map_or(0, |told| told.len());
    let before = length();
    wait_until("it tells", || child.try_wait().unwrap().is_some() || length() > before + 200_000);
    // a run that was interrupted has them, too
    let _ = child.try_wait().unwrap().is_none().then(|| send(child.id(), Signal::INT));
    let output = child.wait_with_output().unwrap();
    let summary = json(&output);
    let fault = &summary["faults"][0];
    let [down_us, ready_us] = ["begin_us", "ready_us"].map(|name| fault[name].as_u64().unwrap());
    let all = operations(&run_dir);
    let at = &all["Outbound post 200"];
    let before = at.iter().filter(|at_us| **at_us <= down_us).count();
    let after = at.iter().filter(|at_us| **at_us > down_us).count() as u64;
    assert!(before > 0, "{fault}");
    let good = posts(&run_dir, ready_us);
    assert!(after > 0 && after >= good, "{after} of {good}");
    let notes = notes(&run_dir);
    assert!(notes.contains("just before it was killed") && notes.contains("(1 times)"), "{notes}");
    for format in ["table", "published", "postgres"] {
        let output = run(folder.path(), &["cube", "out", "--format", format]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        assert!(stderr(&output).contains("just before it was killed"), "{format}: {}", stderr(&output));
    }
    // what is told is what was done: what was answered, and what each user had under way twice
    assert!(at.len() as u64 <= posts(&run_dir, 0) + 2 * USERS);
}

#[test]
fn a_run_whose_driver_was_killed_has_them_when_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    scenario(folder.path(), "", "600s", "");
    let mut child = begin_silent(folder.path(), &["run", "a.yaml", "--out", "out", "--quiet"]);
    let told = folder.path().join("out").join(tidemark_record::OPERATIONS_TOLD);
    wait_until("it tells", || fs::metadata(&told).is_ok_and(|told| told.len() > 10_000));
    child.kill().unwrap();
    child.wait().unwrap();
    let output = run(folder.path(), &["report", "out"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(operations(&folder.path().join("out")).contains_key("Outbound post 200"));
}

#[test]
fn a_run_without_them_has_no_file_and_a_system_that_tells_nothing_refuses_one() {
    let folder = tempfile::tempdir().unwrap();
    scenario(folder.path(), "events: 'off'", "200ms", "");
    run(folder.path(), &["run", "a.yaml", "--out", "out", "--quiet"]);
    assert!(OperationsReader::open(&folder.path().join("out")).unwrap().is_none());
    assert_refused(
        folder.path(),
        &["serve", "airline", "--events", "told"],
        "airline does not log its operations",
    );
}
