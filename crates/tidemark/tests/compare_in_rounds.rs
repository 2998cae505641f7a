//! `tidemark compare` of sides that run in turn, against real servers.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::program::{
    assert_refused, bills, code, json, read_json, run, send, stderr, stdout, tidemark, wait_until,
    write_prices,
};
use rustix::process::Signal;
use serde_json::Value;
use tidemark_truth::{Behaviour, Delay, Server};

/// A server that answers after so many milliseconds.
fn slow(milliseconds: u64) -> Server {
    let delays = vec![Delay::Fixed(Duration::from_millis(milliseconds))];
    Server::start(Behaviour { delays, ..Behaviour::default() }).unwrap()
}

#[test]
fn a_server_that_takes_several_times_as_long_is_found_to_be_slower() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "sessions: {s: {steps: [{GET: /}]}}\nload: {users: 2, hold: 30s}\n";
    fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    let (a, b) = (slow(5), slow(40));
    let urls = [&a, &b].map(|server| format!("http://{}", server.address()));
    let arguments =
        ["compare", "s.yaml", "--url", &urls[0], "--url", &urls[1], "--for", "300ms", "--rounds", "4"];
    let more = ["--budget", "5m", "--fail-if", "p50>+20%", "--json"];
    let compared = || run(folder.path(), &[&arguments[..], &more[..]].concat());
    let mut output = compared();
    // not for sure where a busy machine stood still in one of the runs
    for _ in 0..2 {
        if code(&output) != 1 {
            output = compared();
        }
    }
    assert_eq!(code(&output), 1, "it fails, as it is slower for sure: {}", stderr(&output));
    let claims = json(&output);
    assert!(claims["says"][0].as_str().unwrap().starts_with("B is slower: "), "{claims}");
    assert_eq!(claims["covers"], "between-rounds");
    assert_eq!(claims["rounds"], 4);
    assert_eq!(claims["fail_if"][0]["failed"], true);

    let dir = folder.path().join(claims["run_dir"].as_str().unwrap());
    let record = read_json(dir.join("comparison.json"));
    let order: Vec<u64> =
        record["runs"].as_array().unwrap().iter().map(|of| of["variant"].as_u64().unwrap()).collect();
    assert_eq!(order.len(), 16);
    for round in order.chunks(4) {
        assert!(round == [0, 1, 1, 0] || round == [1, 0, 0, 1], "{order:?}");
    }
    // again from the directory
    let again = run(folder.path(), &["report", "last"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert!(stdout(&again).contains("B is slower: "), "{}", stdout(&again));
    assert_refused(folder.path(), &["report", "last", "--latency"], "--latency is of one run");
    let no_cpu = [&arguments[..], &["--fail-if", "cpu>+5%"]].concat();
    assert_refused(folder.path(), &no_cpu, "--fail-if 'cpu>+5%': what runs already is not watched");
    let same = json(&run(folder.path(), &["compare", "last", "--json"]));
    assert_eq!(same["comparisons"], claims["comparisons"]);
    let page = fs::read_to_string(dir.join("report.html")).unwrap();
    assert!(page.contains("<title>round 4: "), "a dot for each round");
    // and one of its runs as any other
    assert_eq!(code(&run(&dir, &["report", record["runs"][3]["dir"].as_str().unwrap()])), 0);
    for server in [a, b] {
        server.stop().unwrap();
    }
}

#[test]
fn stopped_while_one_side_alone_has_run_it_has_a_result_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "sessions: {s: {steps: [{GET: /}]}}\nload: {users: 1, hold: 30s}\n";
    fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    let server = slow(1);
    let url = format!("http://{}", server.address());
    let arguments = [
        "compare",
        "s.yaml",
        "--url",
        &url,
        "--url",
        &url,
        "--for",
        "30s",
        "--fail-if",
        "p50>+20%",
        "--out",
        "out",
        "--json",
    ];
    let mut command = tidemark(folder.path(), &arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let out = folder.path().join("out");
    let names = || fs::read_dir(&out).into_iter().flatten().flatten().map(|entry| entry.file_name());
    // it is made once signals are watched
    wait_until("the first run's directory is there", || {
        names().any(|name| name.to_string_lossy().starts_with("1-"))
    });
    send(child.id(), Signal::INT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", stderr(&output));
    let claims = json(&output);
    assert_eq!(claims["stopped"], "stopped by the user");
    assert_eq!(claims["comparisons"], Value::Array(Vec::new()));
    assert_eq!(claims["fail_if"][0]["failed"], Value::Null);
    let page = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(page.contains("stopped early: stopped by the user"), "{page}");
    let again = run(folder.path(), &["report", "out"]);
    assert_eq!(code(&again), 0, "{}", stderr(&again));
    assert!(stdout(&again).contains("nothing can be said of B: there is no run of "), "{}", stdout(&again));
    server.stop().unwrap();
}

#[test]
fn two_settings_run_in_turn_and_one_against_itself_has_two_names() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "settings: {users: 1}\nsystem: {serve: ingest, durability: memory}\n\
                    sessions: {s: {steps: [{GET: /health}]}}\nload: {users: '${users}', hold: 1s}\n";
    fs::write(folder.path().join("ask.yaml"), scenario).unwrap();
    let quick = ["--for", "200ms", "--rounds", "3", "--budget", "5m", "--json", "--quiet"];
    write_prices(folder.path());
    let sides = ["compare", "ask.yaml", "--set", "users=1", "--vs", "users=2", "--out", "out"];
    let sides = [&sides[..], &["--prices", "prices.yaml"]].concat();
    let output = run(folder.path(), &[&sides[..], &quick[..]].concat());
    // runs this short may be invalid
    assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
    assert_eq!(stderr(&output), "");
    let claims = json(&output);
    assert_eq!(claims["sides"][0]["name"], "users=1");
    assert_eq!(claims["sides"][1]["name"], "users=2");
    assert!(claims["notes"].to_string().contains("different loads"), "{claims}");
    assert!(claims["comparisons"].as_array().unwrap().iter().any(|of| of["figure"] == "cpu"));
    // what all rounds of each side cost, by the directory and by its sides
    assert_eq!(claims["bills"][1]["name"], "users=2");
    assert_eq!(claims["bills"], bills(folder.path(), "out"));
    let again = run(folder.path(), &["compare", "out", "--prices", "prices.yaml"]);
    assert!(stdout(&again).contains("example, made up"), "{}{}", stdout(&again), stderr(&again));

    let a = slow(1);
    let url = format!("http://{}", a.address());
    let sides = ["compare", "ask.yaml", "--url", &url, "--url", &url];
    let claims = json(&run(folder.path(), &[&sides[..], &quick[..]].concat()));
    assert_eq!(claims["sides"][1]["name"], format!("{url} #2"));
    a.stop().unwrap();
    // too little time is told before anything runs
    let short = ["compare", "ask.yaml", "--vs", "users=2", "--budget", "2s"];
    assert_refused(folder.path(), &short, "do not fit into --budget 2s");
    let unpriced = ["compare", "ask.yaml", "--vs", "users=2", "--prices", "none.yaml"];
    assert_refused(folder.path(), &unpriced, "cannot read the price file");
}

#[test]
fn fresh_runs_are_held_against_a_baseline() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "sessions: {s: {steps: [{GET: /}]}}\nload: {users: 1, hold: 1s}\n";
    fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    let server = slow(2);
    let url = format!("http://{}", server.address());
    let with_url = format!("system: {{url: '{url}'}}\n{scenario}");
    fs::write(folder.path().join("s.yaml"), with_url).unwrap();
    for out in ["one", "two"] {
        let output = run(folder.path(), &["run", "s.yaml", "--for", "300ms", "--out", out, "--quiet"]);
        assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
    }
    let arguments =
        ["compare", "s.yaml", "--baseline", "one,two", "--rounds", "2", "--for", "300ms", "--json"];
    let output = run(folder.path(), &arguments);
    assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
    let claims = json(&output);
    assert_eq!(claims["covers"], "between-runs");
    let runs = |side: usize| claims["sides"][side]["runs"].as_array().map(Vec::len);
    assert_eq!((runs(0), runs(1)), (Some(2), Some(2)));
    server.stop().unwrap();
}

fn git(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(folder).args(["-c", "user.email=a@example.com", "-c", "user.name=a"]).args(arguments);
    let output = command.stdin(Stdio::null()).output().expect("git is there");
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn two_revisions_are_built_and_started_in_worktrees_that_are_gone_afterwards() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    git(&folder, &["init", "--quiet"]);
    for content in ["one", "two"] {
        fs::write(folder.join("content"), content).unwrap();
        git(&folder, &["add", "content"]);
        git(&folder, &["commit", "--quiet", "-m", content]);
    }
    // what was built must be there: the hook fails without it
    let exe = env!("CARGO_BIN_EXE_tidemark");
    let scenario = format!(
        "system:\n  command: ['{exe}', serve, ingest, --listen, '127.0.0.1:{{port}}', --durability, memory]\n  \
         before: ['test -f built']\n  health: /health\n\
         sessions: {{s: {{steps: [{{GET: /health}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
    );
    fs::write(folder.join("s.yaml"), scenario).unwrap();
    let arguments =
        ["compare", "s.yaml", "--revision", "HEAD~1", "--revision", "HEAD", "--build", "cp content built"];
    let more = ["--for", "200ms", "--rounds", "3", "--budget", "5m", "--json"];
    let output = run(&folder, &[&arguments[..], &more[..]].concat());
    assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
    let claims = json(&output);
    let revisions = |side: usize| claims["sides"][side]["revisions"].as_array().unwrap().clone();
    assert_eq!((revisions(0).len(), revisions(1).len()), (1, 1));
    assert_ne!(revisions(0), revisions(1));
    assert!(claims["sides"][0]["name"].as_str().unwrap().starts_with("HEAD~1 ("), "{claims}");
    let left = fs::read_dir(folder.join("runs"))
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("worktrees"));
    assert_eq!(left.count(), 0);
    // a build that fails says so, and where its log is
    let wrong = ["compare", "s.yaml", "--revision", "HEAD~1", "--revision", "HEAD", "--build", "ls nowhere"];
    let failed = run(&folder, &wrong);
    assert_eq!(code(&failed), 3, "{}", stderr(&failed));
    assert!(
        stderr(&failed).contains("the build of ") && stderr(&failed).contains("build-1.log"),
        "{}",
        stderr(&failed)
    );
}
