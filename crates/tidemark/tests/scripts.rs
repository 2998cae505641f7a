//! Scripts of wrk: what our program sends beside what wrk sends, and what becomes of mistakes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::server::Server;
use crate::program::{assert_refused, code, json, run, stderr, stdout};

/// Requests of one connection that are compared.
const COMPARED: usize = 60;

/// Scripts whose requests are compared.
const COMPARED_SCRIPTS: [&str; 24] = [
    "post",
    "counter",
    "pipeline",
    "setup",
    "addr",
    "words",
    "static",
    "format",
    "random",
    "file",
    "texts",
    "dates",
    "absolute",
    "modules",
    "answers",
    "batch",
    "environment",
    "arguments",
    "json",
    "host",
    "weights",
    "steps",
    "tables",
    "pauses",
];

/// A script beside this test.
fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../script/tests/wrk").join(name)
}

fn script_of(name: &str) -> String {
    script(&format!("{name}.lua")).to_str().unwrap().to_owned()
}

fn written(folder: &Path, text: &str) -> String {
    let path = folder.join("it.lua");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A request without the order of its headers, which no table of Lua has.
fn sorted(request: &str) -> String {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let (first, headers) = head.split_once("\r\n").unwrap_or((head, ""));
    let mut headers: Vec<&str> = headers.split("\r\n").collect();
    headers.sort_unstable();
    format!("{first}\n{}\n\n{body}", headers.join("\n"))
}

fn sent(server: &Server, most: usize) -> Vec<String> {
    let place = &server.place;
    server.requests().iter().take(most).map(|request| sorted(request).replace(place, "PLACE")).collect()
}

/// What our program sends over one connection with a script.
fn ours(server: &Server, script: &str, words: &[&str]) -> (Vec<String>, String) {
    let folder = tempfile::tempdir().unwrap();
    let url = server.url("/at?x=1");
    let count = COMPARED.to_string();
    let flags = ["hit", &url, "-s", script, "-t", "1", "-c", "1", "-n", &count, "--warm-up", "0s", "-q"];
    let output = run(folder.path(), &[&flags[..], words].concat());
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    (sent(server, COMPARED), stdout(&output))
}

#[test]
fn each_script_sends_what_wrk_sends() {
    let is_there = Command::new("wrk").arg("--version").output().is_ok();
    assert!(is_there, "wrk is missing; tests/needs installs it");
    // each is run for a second
    std::thread::scope(|scope| {
        for names in COMPARED_SCRIPTS.chunks(COMPARED_SCRIPTS.len().div_ceil(4)) {
            scope.spawn(move || names.iter().for_each(|name| sends_what_wrk_sends(name)));
        }
    });
}

fn sends_what_wrk_sends(name: &str) {
    let words = ["-H", "X-From: flag", "--", "some", "words"];
    let script = script(&format!("{name}.lua"));
    let server = Server::start();
    let url = server.url("/at?x=1");
    let mut wrk = Command::new("wrk");
    wrk.args(["-t1", "-c1", "-d1", "-s"]).arg(&script);
    let theirs = wrk.args(["-H", "X-From: flag", &url, "--", "some", "words"]).output().unwrap();
    assert!(theirs.status.success(), "{name}: {theirs:?}");
    let theirs = sent(&server, COMPARED);
    assert_eq!(theirs.len(), COMPARED, "{name}");
    let server = Server::start();
    let (ours, _) = ours(&server, script.to_str().unwrap(), &words);
    assert_eq!(ours, theirs, "{name}");
}

#[test]
fn a_script_hears_of_answers_and_says_what_came_of_them() {
    let server = Server::start();
    let (requests, said) = ours(&server, script("auth.lua").to_str().unwrap(), &[]);
    assert!(
        requests[0].starts_with("GET /login ") && requests[1].contains("\nX-Token: none"),
        "{requests:?}"
    );
    assert!(!said.contains("the script failed"), "{said}");
    let (_, said) = ours(&server, script("report.lua").to_str().unwrap(), &[]);
    let said: Vec<&str> = said.lines().rev().take(6).collect();
    let all = ["rates\ttrue", "first\ttrue\ttrue\ttrue", "latency\ttrue\ttrue\ttrue\ttrue\ttrue"];
    assert_eq!(said[..3], all, "{said:?}");
    assert_eq!(said[3..], ["requests\ttrue\ttrue\ttrue", "statuses\t0", "errors\t0"], "{said:?}");
}

#[test]
fn each_thread_has_a_state_of_its_own_and_done_asks_them_all() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let script = script("setup.lua");
    let url = server.url("/");
    let flags = ["hit", &url, "-s", script.to_str().unwrap(), "-t", "2", "-c", "4", "-d", "300ms", "-q"];
    let output = run(folder.path(), &flags);
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    let said = stdout(&output);
    assert!(said.ends_with("thread 1: requests, answers\nthread 2: requests, answers\n"), "{said}");
    let targets = server.targets();
    assert!(targets.iter().all(|target| target == "/1/1" || target == "/2/2"), "{targets:?}");
    assert!(targets.iter().any(|target| target == "/1/1") && targets.iter().any(|target| target == "/2/2"));
}

#[test]
fn a_thread_that_stops_begins_nothing_more() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let (url, script) = (server.url("/"), script("stop.lua"));
    let flags = [
        "hit",
        &url,
        "-s",
        script.to_str().unwrap(),
        "-t",
        "1",
        "-c",
        "3",
        "-d",
        "30s",
        "--warm-up",
        "0s",
        "-q",
        "--json",
    ];
    let begun = std::time::Instant::now();
    let output = run(folder.path(), &flags);
    let summary = json(&output);
    assert!((100..=103).contains(&summary["requests"].as_u64().unwrap()), "{summary:#}");
    assert!(begun.elapsed().as_secs() < 25, "it ends once nothing more is to come");
}

#[test]
fn a_pause_is_in_no_response_time() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let script = written(folder.path(), "function delay() return 1000 end");
    let begun = std::time::Instant::now();
    let url = server.url("/");
    let flags =
        ["hit", &url, "-s", &script, "-t", "1", "-c", "1", "-n", "3", "--warm-up", "0s", "-q", "--json"];
    let output = run(folder.path(), &flags);
    let summary = json(&output);
    assert!(begun.elapsed().as_secs() >= 3 && summary["requests"] == 3, "{summary:#}");
    let median_us = summary["good"]["response_time_us"]["p50"].as_u64().unwrap();
    assert!(median_us < 1_000_000, "{median_us}");
    let script = script_of("delay");
    let output = run(folder.path(), &["hit", &url, "-s", &script, "-t", "1", "-c", "3", "-n", "30", "-q"]);
    assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
}

#[test]
fn what_a_script_prints_is_not_among_what_machines_read() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let script = written(folder.path(), "print('at first', 1) function done() io.write('at last\\n') end");
    let flags = ["hit", &server.url("/"), "-s", &script, "-t", "1", "-n", "5", "-q", "--json"];
    let output = run(folder.path(), &flags);
    let summary = json(&output);
    assert_eq!(summary["requests"], 5);
    assert_eq!(stderr(&output), "at first\t1\nat first\t1\nat last\n");
}

#[test]
fn mistakes_are_told_with_their_line() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let url = server.url("/");
    for (text, says) in [
        ("local x = = 1", "it.lua:1: unexpected symbol near '='"),
        ("\nerror('no luck')", "it.lua:2: no luck"),
        (
            "function init()\n  local t = nil\n  t.x = 1\nend",
            "it.lua:3: attempt to index local 't' (a nil value)",
        ),
        (
            "function request() return 'hello' end",
            "it.lua: what `request` returns is no request: its head has no end",
        ),
        ("function setup(t)\n t:set('f', print)\nend", "it.lua: cannot transfer a value of type function"),
        (
            "function request() return nil end",
            "what `request` returns is no request: it is a value of type nil",
        ),
        ("os.exit(0)", "it.lua: the script called os.exit"),
        ("require 'no.such.module'", "it.lua:1: module 'no.such.module' not found"),
    ] {
        let script = written(folder.path(), text);
        assert_refused(folder.path(), &["hit", &url, "-s", &script, "-n", "3", "-q"], says);
    }
    assert_eq!(server.requests().len(), 0, "nothing was sent");
    assert_refused(folder.path(), &["hit", &url, "-s", "none.lua", "-n", "3"], "none.lua: No such file");
    assert_refused(folder.path(), &["hit", &url, "-s", "it.py", "-n", "3"], "a script is a file of wrk");
    assert_refused(folder.path(), &["hit", &url, "-n", "3", "--", "x"], "--script");
}

#[test]
fn an_error_under_load_ends_the_run_as_failed() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let text = "local n = 0\nfunction request()\n  n = n + 1\n  if n == 40 then error('enough') end\n  return wrk.format()\nend";
    let script = written(folder.path(), text);
    let flags = ["hit", &server.url("/"), "-s", &script, "-t", "1", "-c", "1", "-d", "20s", "-q", "--json"];
    let output = run(folder.path(), &flags);
    let summary = json(&output);
    assert_eq!(code(&output), 1, "{summary:#}");
    let reasons = summary["verdict"]["reasons"].to_string();
    assert!(reasons.contains("it.lua:4: enough"), "{reasons}");
    assert_eq!(server.requests().len(), 38, "the first call only shows how many requests come at once");
}

#[test]
fn a_scenario_has_a_script_in_place_of_steps() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("words.lua"), "return { path = '/of/a/module' }").unwrap();
    let text =
        "local words = require 'words'\nfunction init(args) wrk.path = words.path .. '/' .. args[1] end";
    written(folder.path(), text);
    let scenario = format!(
        "system: {{url: 'http://{}/base'}}\nsessions:\n  it: {{script: it.lua, args: [one]}}\n  \
         other: {{steps: [GET: /other]}}\nload: {{rate: 50/s, hold: 400ms}}\n",
        server.place
    );
    fs::write(folder.path().join("it.yaml"), scenario).unwrap();
    let output = run(folder.path(), &["check", "it.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let output = run(folder.path(), &["run", "it.yaml", "-q", "--seed", "5", "--json", "-t", "1"]);
    let summary = json(&output);
    let labels: Vec<&str> =
        summary["steps"].as_array().unwrap().iter().filter_map(|s| s["label"].as_str()).collect();
    assert_eq!(labels, ["it", "GET /other"]);
    let mut targets = server.targets();
    targets.sort();
    targets.dedup();
    assert_eq!(targets, ["/base/other", "/of/a/module/one"]);
    let output = run(folder.path(), &["run", "it.yaml", "--once", "-v"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert!(stdout(&output).contains("/of/a/module/one"), "{}", stdout(&output));
    let scenario = fs::read_to_string(folder.path().join("it.yaml")).unwrap();
    fs::write(
        folder.path().join("it.yaml"),
        scenario.replace("{steps: [GET: /other]}", "{steps: [GET: /other], args: [x]}"),
    )
    .unwrap();
    assert_refused(
        folder.path(),
        &["run", "it.yaml"],
        "\"args\" is for a session with a script; this one has steps",
    );
}

#[test]
fn a_script_that_does_not_come_back_ends_the_run() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let script = written(
        folder.path(),
        // it waits for a program, as busy cores are of no use to the other tests
        "local n = 0\nfunction request() n = n + 1 if n > 5 then os.execute('exec sleep 60') end return wrk.format() end",
    );
    let flags = ["hit", &server.url("/"), "-s", &script, "-t", "1", "-c", "1", "-d", "1s", "-q"];
    let output = run(folder.path(), &flags);
    let said = stderr(&output);
    assert!(code(&output) == 1 && said.contains("the script has not come back for 30 s"), "{said}");
}

#[test]
fn a_script_takes_no_memory_without_end() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let text = "local all = {}\nfunction request()\n  for i = 1, 100000 do all[#all + 1] = string.rep('x', 1000) .. #all end\n  return wrk.format()\nend";
    let script = written(folder.path(), text);
    let flags = ["hit", &server.url("/"), "-s", &script, "-t", "1", "-c", "1", "-d", "100s", "-q"];
    let output = run(folder.path(), &flags);
    let said = stdout(&output) + &stderr(&output);
    assert!([1, 2].contains(&code(&output)) && said.contains("not enough memory"), "{said}");
}

#[test]
fn the_exit_status_of_done_takes_no_verdict_back() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let url = server.url("/");
    let script = written(folder.path(), "function done() os.exit(7) end");
    let flags = ["hit", &url, "-s", &script, "-t", "1", "-c", "1", "-n", "5", "-q", "--until"];
    for (objective, status) in [("errors<50%", 7), ("p50<1us", 1)] {
        let output = run(folder.path(), &[&flags[..], &[objective]].concat());
        assert!([status, 3].contains(&code(&output)), "{objective}: {}{}", stdout(&output), stderr(&output));
    }
    let script = written(folder.path(), "function response() os.exit(0) end");
    let output = run(folder.path(), &["hit", &url, "-s", &script, "-t", "1", "-c", "1", "-n", "5", "-q"]);
    assert!(code(&output) == 1 && stdout(&output).contains("called os.exit"), "{}", stdout(&output));
    let output = run(folder.path(), &["hit", "-s", &script, "-n", "4", "curl", "-d", "x", &url]);
    assert!(code(&output) == 2 && stderr(&output).contains("leave -s out"), "{}", stderr(&output));
}

#[test]
fn requests_of_a_script_are_traced() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let script = script_of("counter");
    let flags =
        ["hit", &server.url("/"), "-s", &script, "-t", "1", "-c", "1", "-n", "5", "-q", "--trace", "t.har"];
    let output = run(folder.path(), &flags);
    assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
    let trace = fs::read_to_string(folder.path().join("t.har")).unwrap();
    assert!(trace.contains("X-Number"), "{trace}");
}

#[test]
fn requests_made_at_once_go_over_one_connection_in_their_order() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let text = "local n = 0\nfunction request()\n  n = n + 1\n  return wrk.format('GET', '/a' .. n) .. wrk.format('GET', '/b' .. n)\nend";
    let script = written(folder.path(), text);
    let flags =
        ["hit", &server.url("/"), "-s", &script, "-t", "1", "-c", "3", "-n", "240", "--warm-up", "0s", "-q"];
    let output = run(folder.path(), &flags);
    assert!([0, 3].contains(&code(&output)), "{}", stderr(&output));
    let (targets, connections) = (server.targets(), server.connections());
    for connection in connections.iter().collect::<std::collections::BTreeSet<_>>() {
        let own = targets.iter().zip(&connections).filter(|(_, of)| *of == connection);
        let own: Vec<&String> = own.map(|(target, _)| target).collect();
        for pair in own.chunks_exact(2) {
            assert_eq!(pair[0].replace("/a", "/b"), *pair[1], "{own:?}");
        }
    }
}

#[test]
fn functions_are_those_that_the_script_has_when_they_are_called() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let text = "function request()\n  request = function() return wrk.format('GET', '/next') end\n  return wrk.format('GET', '/login')\nend\n\
                function response() response = function() wrk.path = '/seen' end end\n\
                function delay() delay = function() end return 1 end";
    let script = written(folder.path(), text);
    let flags =
        ["hit", &server.url("/"), "-s", &script, "-t", "1", "-c", "1", "-n", "9", "--warm-up", "0s", "-q"];
    let output = run(folder.path(), &flags);
    assert!([0, 3].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));
    assert_eq!(server.targets(), ["/next"; 9], "the first call only shows how many come at once");
}

#[test]
fn a_run_at_a_rate_whose_script_stops_a_thread_is_no_pass() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let script = script_of("stop");
    for asked in [&["-r", "400", "-d", "2s"][..], &["-c", "2", "-n", "2000"]] {
        let flags = ["hit", &server.url("/"), "-s", &script, "-t", "1", "--warm-up", "0s", "-q"];
        let output = run(folder.path(), &[&flags[..], asked].concat());
        let said = stdout(&output).replace('\n', " ");
        assert!(code(&output) == 3 && said.contains("the script stopped 1"), "{said}");
    }
    // and a search has no limit to tell of a script that fails
    written(
        folder.path(),
        "local n = 0\nfunction request()\n n = n + 1\n if n == 40 then error('enough') end\n return wrk.format()\nend",
    );
    let scenario = format!(
        "system: {{url: 'http://{}'}}\nsessions: {{it: {{script: it.lua}}}}\nload: {{rate: 50/s, hold: 1s}}\nobjectives: [p99 < 1s]\n",
        server.place
    );
    fs::write(folder.path().join("it.yaml"), scenario).unwrap();
    let output = run(folder.path(), &["limit", "it.yaml", "-t", "1", "--budget", "30s", "-q"]);
    assert!(
        code(&output) == 1 && stderr(&output).contains("it.lua:4: enough"),
        "{}{}",
        stdout(&output),
        stderr(&output)
    );
}
