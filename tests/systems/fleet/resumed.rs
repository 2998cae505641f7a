//! A coordinator that is killed, and another one that goes on with its run.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

use super::faults::{FAKETIME, number, send, write_notes};
use super::{Asked, Nats, command, parts, result, scenario, wait_until};
use crate::common::tidemark;
use crate::store::Store;

fn begin(folder: &Path, nats: &Nats, more: &[&str]) -> Child {
    let mut running = command(folder, &["--fleet", &nats.url()]);
    running.args(more).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs")
}

fn resume(folder: &Path) -> Command {
    let mut command = tidemark();
    // what the scenario takes from the environment came with the run
    command.current_dir(folder).args(["run", "--resume", "run", "--json"]);
    command
}

fn ended(output: &Output) -> Value {
    result(output)
}

/// The rate that was offered in each whole second of the measured window.
fn seconds(folder: &Path) -> Vec<f64> {
    let output = tidemark()
        .current_dir(folder)
        .args(["report", "run", "--csv=seconds.csv"])
        .output()
        .expect("it shows the run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.join("seconds.csv")).expect("a table");
    let lines = text.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let number = |text: &str| text.parse::<f64>().expect("a number");
    lines
        .filter(|of| {
            of[2] == "true" && of[3].is_empty() && (number(of[1]) - number(of[0]) - 1.0).abs() < 1e-6
        })
        .map(|of| number(of[4]))
        .collect()
}

#[test]
fn another_coordinator_goes_on_and_every_second_is_there_once() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 12);
    let agents = nats.with_agents(2);
    let mut running = begin(folder.path(), &nats, &["--until", "p50 < 5s"]);
    wait_until("the load has begun", || asked.count() > 250);
    running.kill().expect("it is there");
    running.wait().expect("it is gone");
    std::thread::sleep(Duration::from_secs(3));
    let output = resume(folder.path()).output().expect("it runs");
    let of = ended(&output);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    // every objective is met, and what happened in between is not known
    assert_eq!(output.status.code(), Some(3), "{of}\n{told}");
    let reasons = of.pointer("/verdict/reasons").expect("reasons").to_string();
    assert!(reasons.starts_with("[\"incomplete: the coordinator was gone from "), "{reasons}");
    assert_eq!(reasons.matches("incomplete: ").count(), 1, "{reasons}");
    // every request is there once, and so is every second
    assert_eq!((number(&of, "/requests"), number(&of, "/dropped")), (1_200, 0), "{of}");
    let paths = asked.take_targets();
    assert_eq!((paths.len(), parts(&paths).0.len()), (1_250, 1_250));
    let offered = seconds(folder.path());
    assert!(offered.len() >= 11 && offered.iter().all(|per_s| (50.0..150.0).contains(per_s)), "{offered:?}");
    let events = std::fs::read_to_string(folder.path().join("run/events.jsonl")).expect("events");
    assert_eq!(events.matches("\"phase\"").count(), 2, "{events}");
    assert!(events.contains("the coordinator was gone from "), "{events}");
    assert!(of.to_string().contains("p50 < 5s"), "what the command line asked for is judged: {of}");
    let left = std::fs::read_dir(folder.path().join("run")).expect("a run").flatten();
    let left = left.filter(|entry| entry.file_name().to_string_lossy().starts_with("unfinished"));
    assert_eq!(left.count(), 0);
    // what is over is not gone on with
    let again = resume(folder.path()).output().expect("it runs");
    let told = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.code() == Some(2) && told.contains("has come to its end"), "{told}");
    nats.wait_for_idle(2);
    drop(agents);
}

#[test]
fn what_an_agent_did_last_is_there_although_it_ended_before_another_did() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 4);
    let agents = nats.with_agents(2);
    let mut running = begin(folder.path(), &nats, &[]);
    wait_until("the load is nearly over", || asked.count() > 400);
    send("STOP", &agents[1]);
    // the first one ends; its last interval waits for what the other did in it
    std::thread::sleep(Duration::from_secs(3));
    running.kill().expect("it is there");
    running.wait().expect("it is gone");
    send("CONT", &agents[1]);
    let output = resume(folder.path()).output().expect("it runs");
    let of = ended(&output);
    assert_eq!(number(&of, "/requests") + number(&of, "/dropped"), 400, "{of}");
    drop(agents);
}

#[test]
fn a_ledger_and_a_lost_agent_outlive_their_coordinator() {
    let (nats, notes) = (Nats::start(), Store::start(0));
    let folder = tempfile::tempdir().expect("a folder");
    write_notes(folder.path(), &notes, "rate: 100/s, hold: 24s");
    let mut agents = nats.with_agents(2);
    let mut running = begin(folder.path(), &nats, &["--on-agent-loss", "rebalance"]);
    wait_until("the load has begun", || notes.count() > 150);
    drop(agents.remove(0));
    let events = folder.path().join("run/events.jsonl");
    wait_until("it is lost", || {
        std::fs::read_to_string(&events).is_ok_and(|events| events.contains("taken over by a2"))
    });
    std::thread::sleep(Duration::from_millis(1_500));
    running.kill().expect("it is there");
    running.wait().expect("it is gone");
    let output = resume(folder.path()).output().expect("it runs");
    let of = ended(&output);
    assert_eq!(output.status.code(), Some(3), "{of}");
    assert_eq!(number(&of, "/requests") + number(&of, "/dropped"), 2_400, "{of}");
    assert!(number(&of, "/dropped") > 0, "{of}");
    let verified = |name: &str| number(&of, &format!("/ledger/{name}"));
    assert_eq!((verified("lost"), verified("different"), verified("duplicated")), (0, 0, 0), "{of}");
    assert_eq!(verified("found"), number(&of, "/ledger/acknowledged"), "{of}");
    assert_eq!(verified("found") + verified("unacknowledged_found"), notes.count() as u64, "{of}");
}

#[test]
fn where_the_agents_have_stopped_the_run_ends_and_says_what_is_missing() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 60);
    let agents = nats.with_agents(2);
    let mut running = begin(folder.path(), &nats, &[]);
    wait_until("the load has begun", || asked.count() > 250);
    running.kill().expect("it is there");
    running.wait().expect("it is gone");
    nats.wait_for_idle(2);
    let output = resume(folder.path()).output().expect("it runs");
    let of = ended(&output);
    assert_eq!(output.status.code(), Some(3), "{of}");
    let told = of.to_string();
    assert!(
        told.contains("incomplete: ") && told.contains("it stopped after 10 s without a coordinator"),
        "{told}"
    );
    // what they handed over while nobody was there is in the figures
    let (requests, came) = (number(&of, "/requests"), asked.count() as u64);
    assert!(requests > 250 && requests + 50 <= came, "{requests} of {came}: {of}");
    // the run is over: nobody finds anything of it any more
    let again = resume(folder.path()).output().expect("it runs");
    assert_eq!(again.status.code(), Some(2));
    drop(agents);
}

#[test]
fn a_wall_clock_before_the_begin_of_the_run_resumes_nothing() {
    if !Path::new(FAKETIME).exists() {
        eprintln!("skipped: there is no {FAKETIME}; Debian: apt-get install libfaketime");
        return;
    }
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 8);
    let _agents = nats.with_agents(1);
    let mut running = begin(folder.path(), &nats, &[]);
    wait_until("the load has begun", || asked.count() > 250);
    running.kill().expect("it is there");
    running.wait().expect("it is gone");
    let mut late = resume(folder.path());
    let fake = [("LD_PRELOAD", FAKETIME), ("FAKETIME", "-1h"), ("DONT_FAKE_MONOTONIC", "1")];
    let output = late.envs(fake).env("FAKETIME_DONT_FAKE_MONOTONIC", "1").output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("the wall clock of this machine is before the begin of the run"), "{told}");
    // nothing is changed: with the right one it goes on
    let output = resume(folder.path()).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn what_nobody_can_go_on_with_stays_as_it_is() {
    let (nats, asked) = (Nats::start(), Asked::start());
    let folder = tempfile::tempdir().expect("a folder");
    scenario(folder.path(), &asked, 8);
    let refused = |folder: &Path| {
        let output = resume(folder).output().expect("it runs");
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        told
    };
    assert!(refused(folder.path()).contains("no run \"run\""));
    // one that no fleet drove
    let mut alone =
        command(folder.path(), &[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    wait_until("the load has begun", || asked.count() > 120);
    alone.kill().expect("it is there");
    alone.wait().expect("it is gone");
    let told = refused(folder.path());
    assert!(told.contains("was not run with --fleet") && told.contains("tidemark report run"), "{told}");
    std::fs::remove_dir_all(folder.path().join("run")).expect("a run");
    // one whose stream is gone
    let agents = nats.with_agents(1);
    let sent = asked.count();
    let mut running = begin(folder.path(), &nats, &[]);
    wait_until("the load has begun", || asked.count() > sent + 280);
    running.kill().expect("it is there");
    running.wait().expect("it is gone");
    drop((agents, nats));
    let told = refused(folder.path());
    assert!(told.contains("cannot connect to NATS") && told.contains("tidemark report run"), "{told}");
    let output =
        tidemark().current_dir(folder.path()).args(["report", "run", "--json"]).output().expect("it runs");
    let of = result(&output);
    assert!(number(&of, "/requests") > 0, "nothing is lost: {of}");
}
