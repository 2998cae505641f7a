//! Verbs, messages and exit statuses of the real executable.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Output, Stdio};

use crate::program::{begin, code, json, run, send, stderr, stdout, tidemark, wait_until, write_airline};
use rustix::process::Signal;
use serde_json::Value;

/// A load of a second on an airline of [`folder_with_airline`] that keeps nothing on disk.
const SHORT: [&str; 8] =
    ["run", "airline.yaml", "--for", "1s", "--set", "durability=memory", "--set", "users=2"];

fn short<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SHORT.iter().copied().chain(more.iter().copied()).collect()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn folder_with_airline() -> tempfile::TempDir {
    let folder = folder();
    write_airline(folder.path());
    folder
}

/// The exit status that goes with a verdict.
fn status_of(summary: &Value) -> i32 {
    match summary["verdict"]["status"].as_str() {
        Some("pass") => 0,
        Some("fail") => 1,
        Some("invalid") => 3,
        other => panic!("no verdict: {other:?}"),
    }
}

#[test]
fn alone_it_shows_every_verb_with_an_example() {
    let output = run(folder().path(), &[]);
    assert_eq!(code(&output), 0);
    for example in [
        "tidemark run airline",
        "tidemark serve airline",
        "tidemark init ",
        "tidemark check ",
        "tidemark report last",
        "tidemark compare ",
        "tidemark history",
        "tidemark limit ",
        "tidemark verify last",
        "tidemark cube last",
    ] {
        assert!(stdout(&output).contains(example), "{example}:\n{}", stdout(&output));
    }
    assert!(stdout(&output).lines().all(|line| line.chars().count() <= 80), "{}", stdout(&output));
}

#[test]
fn wrong_use_is_status_2_and_says_what_to_do() {
    let folder = folder();
    fs::create_dir(folder.path().join("full")).unwrap();
    fs::write(folder.path().join("full/file"), "x").unwrap();
    for (arguments, says) in [
        (vec!["serv"], "serve"),
        (vec!["run"], "SCENARIO"),
        (vec!["run", "airlnie"], "airline"),
        (vec!["run", "no-such.yaml"], "no such file"),
        (vec!["run", "airline", "--set", "usrs=3"], "users"),
        (vec!["run", "airline", "--set", "users"], "KEY=VALUE"),
        (vec!["run", "airline", "--rate", "fast"], "--rate"),
        (vec!["run", "airline", "-r", "100:5k"], "by phases of its own"),
        (vec!["run", "airline", "-r", "-5/s"], "never below 0"),
        (vec!["run", "airline", "--for", "long"], "--for"),
        (vec!["run", "airline", "-c", "0"], "at least 1"),
        (vec!["run", "airline", "--until", "Lgin p99<5ms"], "did you mean Login?"),
        (vec!["run", "newsfeed", "-c", "5"], "cannot tell whose to change"),
        (vec!["run", "trade", "--latency"], "--latency is of one run"),
        (vec!["run", "airline", "--for", "1ms"], "too short"),
        (vec!["run", "airline", "--pin", "drvier=1"], "driver"),
        (vec!["run", "airline", "--pin", "system=1023"], "core 1023"),
        (vec!["run", "airline", "--url", "ftp://127.0.0.1"], "write http://"),
        (
            vec!["run", "kv-kill", "--url", "redis://127.0.0.1:1"],
            "another one would be broken than is driven",
        ),
        (vec!["run", "kv", "--url", "redis://127.0.0.1:1"], "under the names of several stores"),
        (vec!["run", "airline", "--url", "http://127.0.0.1:1", "--pin", "system=0"], "there already"),
        (vec!["run", "airline", "--out", "full"], "full"),
        (vec!["run", "airline", "--set", "customers=0"], "customers"),
        (vec!["serve", "airlnie"], "did you mean airline?"),
        (vec!["serve", "airline", "--listen", "here"], "--listen"),
        (vec!["serve", "ingest", "--set", "waitingmax=3"], "did you mean waiting_max?"),
        (vec!["serve", "airline", "--set", "dyas=3"], "did you mean days?"),
        (vec!["serve", "airline", "--durability", "some"], "synced"),
        (vec!["serve", "trade", "--data", "here"], "leave out --data"),
        (vec!["serve", "trade", "--set", "body_byte_max=3"], "did you mean body_bytes_max?"),
        (vec!["report", "last"], "tidemark run"),
        (vec!["report", "nowhere"], "nowhere"),
        (vec!["report", "full"], "full"),
    ] {
        crate::program::assert_refused(folder.path(), &arguments, says);
    }
}

#[test]
fn check_lists_every_mistake_with_its_place() {
    let folder = folder();
    let scenario = "name: x\nsystem: {url: 'http://127.0.0.1:1'}\nload:\n  model: closed\n  phases:\n    - {name: hold, for: 1s, usrs: 3}\nsessions:\n  one:\n    steps:\n      - PSOT: /\n";
    fs::write(folder.path().join("broken.yaml"), scenario).unwrap();
    let output = run(folder.path(), &["check", "broken.yaml"]);
    let text = stderr(&output);
    assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{text}");
    assert!(text.contains("broken.yaml:6:") && text.contains("broken.yaml:10:9: "), "{text}");
    assert!(text.contains("did you mean POST?"), "{text}");

    for (system, says) in [
        (
            "{serve: arlnie}",
            "system.yaml:1:17: \"arlnie\" is not one of airline, airline-auth, airline-data, ingest, newsfeed, registry, trade; did you mean airline?",
        ),
        ("{serve: airline, settings: {custmers: 5}}", "did you mean customers?"),
        ("{serve: ingest, settings: {waitingmax: 5}}", "did you mean waiting_max?"),
    ] {
        let rest = "load: {users: 1, hold: 1s}\nsessions: {one: {steps: [{GET: /}]}}\n";
        fs::write(folder.path().join("system.yaml"), format!("system: {system}\n{rest}")).unwrap();
        let output = run(folder.path(), &["check", "system.yaml"]);
        assert!(code(&output) == 2 && stderr(&output).contains(says), "{}", stderr(&output));
    }

    let output = run(folder.path(), &["check", "airline"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert!(stdout(&output).contains("no mistakes"));
    assert!(serde_json::from_slice::<Value>(&run(folder.path(), &["schema"]).stdout).unwrap().is_object());
}

#[test]
fn the_settings_of_a_scenario_are_listed() {
    let folder = folder();
    let own = "settings:\n  users: 5   # who come\n  mode: [fast, slow]\nload: {users: '${users}', hold: 1s}\n\
               sessions: {'${mode}': {steps: [{GET: /}]}}\n";
    fs::write(folder.path().join("own.yaml"), own).unwrap();
    for arguments in [&["run", "own.yaml", "--help"][..], &["run", "-h", "own.yaml", "--set", "users=1"]] {
        let output = run(folder.path(), arguments);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains("--set <KEY=VALUE>"), "the flags: {text}");
        let (_, settings) = text.split_once("Settings of own.yaml").expect("a list");
        assert!(settings.contains("\n  users  5     who come\n  mode   fast  fast or slow\n"), "{settings}");
    }
    let of = |arguments: &[&str]| stdout(&run(folder.path(), arguments));
    let help = of(&["run", "kv-redis", "--help"]);
    assert!(help.contains("redis, valkey, keydb, dragonfly or garnet: the product"), "{help}");
    // of a comparison those of its scenarios, but for what it says itself
    let kv = of(&["check", "kv"]);
    let (_, settings) = kv.split_once("Settings of kv-redis").expect("a list");
    assert!(settings.contains("\n  bytes ") && !settings.contains("\n  append_only "), "{kv}");
    assert!(of(&["run", "trade", "--help"]).contains("Settings of trade-websocket"));
    assert!(!of(&["run", "--help"]).contains("Settings of"));
    assert!(of(&["check", "nowhere.yaml", "--help"]).contains("has no settings"));

    for (arguments, says) in [
        (["kv-redis", "--set", "stoer=x"], "did you mean store?"),
        (["kv-redis", "--set", "store=x"], "\"x\" is not one of redis"),
        (["kv-redis", "--set", "reads=x"], "is a whole number"),
        (["kv-redis", "--set", "threads=0"], "kv-redis.yaml:"),
    ] {
        let output = run(folder.path(), &["check", arguments[0], arguments[1], arguments[2]]);
        let text = stderr(&output);
        assert_eq!(code(&output), 2, "{text}");
        assert!(text.contains(says) && text.contains("Settings of kv-redis"), "{arguments:?}: {text}");
    }
}

#[test]
fn a_setting_of_no_effect_is_refused_and_one_for_some_is_told() {
    let folder = folder();
    for (set, says) in [
        ("store=valkey", "--set store: this would change nothing"),
        ("append_only=always", "tidemark run kv-redis --set append_only=…"),
        ("nonsense=1", "neither the comparison nor a scenario in it"),
    ] {
        crate::program::assert_refused(folder.path(), &["check", "kv", "--set", set], says);
    }
    let refused = ["check", "kv-redis", "--set", "store=dragonfly", "--set", "append_only=always"];
    crate::program::assert_refused(folder.path(), &refused, "\"always\"");
    let told = |set: &str| {
        let output = run(folder.path(), &["check", "kv", "--set", set]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        stderr(&output)
    };
    assert_eq!(told("users=64"), "");
    let text = told("memory=2GiB");
    assert!(
        text.contains("this reaches only memcached, 100/0; memcached, 80/20. No such setting: Redis, "),
        "{text}"
    );
}

#[test]
fn a_run_too_short_for_its_fault_says_how_long_it_must_be() {
    let folder = folder();
    for (arguments, says) in [
        (["kv-kill", "--for", "2s", "--set", "fault=server"], "give it 3s or more"),
        (["kv-kill", "--for", "10s", "--set", "fault=master"], "give it 12s or more"),
    ] {
        let arguments = [&["run"], &arguments[..]].concat();
        crate::program::assert_refused(folder.path(), &arguments, says);
    }
}

#[test]
fn a_run_is_one_object_a_report_and_an_exit_status() {
    let folder = folder_with_airline();
    let output = run(folder.path(), &short(&["--json", "--seed", "7", "--keep-data"]));
    let summary = json(&output);
    assert_eq!(code(&output), status_of(&summary), "{summary}");
    assert!(stderr(&output).contains("hold: 2 users"), "progress is on standard error: {}", stderr(&output));
    assert!(!stderr(&output).contains('\u{1b}'), "no cursor codes in a pipe: {}", stderr(&output));
    assert!(summary["requests"].as_u64().unwrap() > 0);
    let labels: Vec<&str> =
        summary["steps"].as_array().unwrap().iter().filter_map(|s| s["label"].as_str()).collect();
    assert!(labels.contains(&"Login") && !labels.contains(&"Load"), "{labels:?}");
    assert!(summary["processes"].as_array().unwrap().iter().any(|process| process["name"] == "system"));

    let dir = folder.path().join(summary["run_dir"].as_str().unwrap());
    for file in ["run.json", "report.html", "events.jsonl", "logs/airline.log", "scenario.yaml", "data"] {
        assert!(dir.join(file).exists(), "{file}");
    }
    let manifest: Value = serde_json::from_str(&fs::read_to_string(dir.join("run.json")).unwrap()).unwrap();
    assert_eq!((manifest["seed"].as_u64(), manifest["interrupted"].as_bool()), (Some(7), Some(false)));
    assert_eq!(manifest["system"]["durability"], "memory");
    assert!(manifest["system"]["sync_latency"].is_null(), "nobody waited for the disk");
    assert!(manifest["command"].as_array().unwrap().iter().any(|word| word == "--keep-data"));

    let again = run(folder.path(), &["report", "last", "--json"]);
    assert_eq!((code(&again), serde_json::from_slice::<Value>(&again.stdout).unwrap()), (0, summary));
    let text = run(folder.path(), &["report", "last"]);
    assert_eq!(code(&text), 0);
    assert!(stdout(&text).contains("Login") && !stdout(&text).contains('\u{1b}'), "{}", stdout(&text));
    let page = run(folder.path(), &["report", "last", "--html", "again.html"]);
    assert_eq!((code(&page), stdout(&page).trim()), (0, "report: again.html"));
    assert!(fs::read_to_string(folder.path().join("again.html")).unwrap().contains("</html>"));
}

#[test]
fn a_synced_run_measures_the_disk_and_leaves_no_data() {
    let folder = folder_with_airline();
    let output = run(
        folder.path(),
        &["run", "airline.yaml", "--for", "1s", "--set", "users=2", "--out", "here", "-q"],
    );
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    assert_eq!(stderr(&output), "", "quiet is quiet");
    assert!(stdout(&output).trim_end().ends_with("here/report.html"), "{}", stdout(&output));
    let manifest = fs::read_to_string(folder.path().join("here/run.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    assert!(manifest["system"]["sync_latency"]["count"].as_u64().unwrap() >= 2, "before and after");
    assert!(!folder.path().join("here/data").exists());
}

#[test]
fn an_objective_out_of_reach_is_never_status_0() {
    let folder = folder();
    let scenario =
        scenario("{serve: airline, durability: memory}", "objectives: [rate > 100000000/s]\n", "users: 1");
    fs::write(folder.path().join("x.yaml"), scenario).unwrap();
    let output = run(folder.path(), &["run", "x.yaml", "--json"]);
    let summary = json(&output);
    assert_ne!(code(&output), 0);
    assert_eq!(code(&output), status_of(&summary));
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    assert!(reasons.iter().any(|reason| reason.as_str().unwrap().contains("missed")), "{reasons:?}");
}

fn scenario(system: &str, more: &str, level: &str) -> String {
    format!(
        "name: x\nsystem: {system}\nload:\n  phases:\n    - {{name: hold, for: 500ms, {level}}}\n{more}sessions:\n  one:\n    steps:\n      - GET: /health\n"
    )
}

#[test]
fn a_run_that_measured_nothing_is_invalid() {
    let folder = folder();
    let scenario = scenario("{serve: airline, durability: memory}", "", "users: 1");
    fs::write(folder.path().join("x.yaml"), scenario).unwrap();
    // the first arrival would come after 1000 s
    let output = run(folder.path(), &["run", "x.yaml", "--rate", "0.001/s", "--json"]);
    let summary = json(&output);
    // an arrival at once is allowed for; whatever came, the status says it
    assert_eq!(code(&output), status_of(&summary), "{summary}");
    let reasons = summary["verdict"]["reasons"].as_array().unwrap();
    let nothing = reasons.iter().any(|reason| reason.as_str().unwrap().starts_with("nothing measured"));
    assert_eq!(summary["requests"] == 0, nothing, "{summary}");
}

#[test]
fn a_system_that_cannot_be_had_is_status_3_and_its_log_is_quoted() {
    let folder = folder();
    let command =
        scenario("{command: [sh, -c, 'echo the port {port} is cursed >&2; exit 4']}", "", "users: 1");
    fs::write(folder.path().join("dies.yaml"), command).unwrap();
    let output = run(folder.path(), &["run", "dies.yaml"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (3, ""), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("exit status 4") && stderr(&output).contains("is cursed"),
        "{}",
        stderr(&output)
    );

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let output = run(folder.path(), &["run", "airline", "--url", &url]);
    assert_eq!(code(&output), 1, "{}", stderr(&output));
    assert!(stderr(&output).contains("unreachable"), "{}", stderr(&output));
}

#[test]
fn a_load_without_its_data_is_status_3() {
    let folder = folder();
    let prepare = "prepare:\n  - GET: /no/such/path\n    label: Load\n";
    let scenario = scenario("{serve: airline, durability: memory}", prepare, "users: 1");
    fs::write(folder.path().join("x.yaml"), scenario).unwrap();
    let output = run(folder.path(), &["run", "x.yaml"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (3, ""), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("`prepare` of x.yaml failed") && stderr(&output).contains("404"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn help_has_no_line_that_is_broken_twice_or_loses_its_indentation() {
    let folder = folder();
    for verb in ["run", "hit", "serve", "check", "init", "report", "verify", "completions", "man"] {
        let output = tidemark(folder.path(), &[verb, "--help"]).env("COLUMNS", "80").output().unwrap();
        let help = stdout(&output);
        for (at, pair) in help.lines().collect::<Vec<_>>().windows(2).enumerate() {
            assert!(pair[0].chars().count() <= 80, "{verb}, line {}: {}", at + 1, pair[0]);
            // in a paragraph only the last line is short
            let is_text = |line: &str| line.starts_with(|c: char| c.is_ascii_alphanumeric());
            let is_head = pair[0].ends_with(':');
            assert!(
                !(is_text(pair[0]) && is_text(pair[1])) || is_head || pair[0].chars().count() > 60,
                "{verb}, line {}: {}",
                at + 1,
                pair[0]
            );
        }
        // all verbs show their options in columns, none one below the other
        assert!(!help.contains("Possible values:"), "{verb}: {help}");
        // and no example is broken
        let example = |line: &&str| line.starts_with("  tidemark ");
        let examples = help.lines().zip(help.lines().skip(1)).filter(|(line, _)| example(line));
        for (line, next) in examples {
            assert!(next.is_empty() || example(&next), "{verb}: {line}");
        }
    }
    let help = stdout(&tidemark(folder.path(), &["serve", "--help"]).env("COLUMNS", "80").output().unwrap());
    let (_, settings) = help.split_once("Settings of ingest:\n").unwrap();
    let (settings, _) = settings.split_once("\n\n").unwrap();
    for line in settings.lines() {
        let indent = line.len() - line.trim_start().len();
        assert!(indent == 2 && !line.trim().contains(' ') || indent == 6, "{line}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let folder = folder_with_airline();
    for arguments in [vec!["--help"], vec!["schema"], vec![], short(&["-q"])] {
        let mut child = begin(folder.path(), &arguments);
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert!([0, 1, 3].contains(&code(&output)), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{arguments:?}");
    }
}

#[test]
fn a_setting_that_a_system_refuses_is_told_with_its_place() {
    let folder = folder();
    let text = "name: x\nsystem:\n  serve: airline\n  settings:\n    dyas: 5\n    customers: none\nsessions: {a: {steps: \
                [{GTE: /, check: {status: ok}}]}}\nload: {users: 1, hold: 1s}\n";
    fs::write(folder.path().join("x.yaml"), text).unwrap();
    let output = run(folder.path(), &["check", "x.yaml"]);
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    let places = ["x.yaml:5:5: ", "x.yaml:6:16: ", "x.yaml:7:25: ", "x.yaml:7:49: "];
    assert!(places.iter().all(|place| said.contains(place)), "{said}");
    assert!(said.contains("did you mean days?") && said.contains("1 to 10000000"), "{said}");
    assert!(said.trim_end().ends_with("4 mistakes in x.yaml"), "{said}");
}

#[test]
fn a_url_that_run_refuses_is_refused_by_check_with_its_place() {
    let folder = folder();
    for (url, reason) in [
        ("redis://127.0.0.1/abc", "`abc` is not the number of a database"),
        ("redis://127.0.0.1?protocol=4", "`protocol=4` is not known"),
        ("redis://:geheim-@127.0.0.1/abc", "`abc` is not the number of a database"),
        ("http://127.0.0.1/?a=b", "it may hold only a host"),
    ] {
        let step = if url.starts_with("redis") { "redis: [PING]" } else { "GET: /" };
        let text = format!(
            "system:\n  url: \"{url}\"\nsessions: {{a: {{steps: [{{{step}}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        fs::write(folder.path().join("x.yaml"), text).unwrap();
        for verb in ["check", "run"] {
            let output = run(folder.path(), &[verb, "x.yaml"]);
            let said = stderr(&output);
            assert_eq!(code(&output), 2, "{verb} {url}: {said}");
            assert!(said.starts_with("x.yaml:2:8: ") && said.contains(reason), "{verb} {url}: {said}");
            assert!(!said.contains("geheim"), "{said}");
        }
    }
}

#[test]
fn a_full_disk_is_an_error_of_its_own() {
    let folder = folder_with_airline();
    for arguments in
        [vec!["--help"], vec!["--version"], vec!["schema"], vec!["check", "airline"], vec![], short(&["-q"])]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = tidemark(folder.path(), &arguments).stdout(full).output().unwrap();
        assert_eq!(code(&output), 74, "{arguments:?}: {}", stderr(&output));
        let says = "error: cannot write to standard output: No space left on device";
        assert!(stderr(&output).starts_with(says), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn a_run_that_lost_files_is_shown_with_what_is_there() {
    let folder = folder_with_airline();
    let output = run(folder.path(), &short(&["-q", "--out", "out"]));
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    let whole = run(folder.path(), &["report", "out", "--json"]);
    std::fs::remove_file(folder.path().join("out/scenario.yaml")).unwrap();
    let rest = run(folder.path(), &["report", "out", "--json"]);
    let read = |output: &Output| {
        let mut shown = json(output);
        let scenario = shown["page"]["scenario"].take();
        (code(output), shown, scenario)
    };
    let (whole, rest_of) = (read(&whole), read(&rest));
    assert_eq!((rest_of.0, rest_of.1), (0, whole.1), "{}", stderr(&rest));
    assert_eq!((rest_of.2, whole.2.is_string()), ("".into(), true));
    assert_eq!(stderr(&rest), "out has no scenario.yaml; shown without\n");
    let page = run(folder.path(), &["report", "out", "--html", "page.html"]);
    assert_eq!(code(&page), 0, "{}", stderr(&page));
}

#[test]
fn a_system_is_served_until_it_is_asked_to_stop() {
    let folder = folder();
    for system in ["airline", "trade"] {
        let arguments = ["serve", system, "--listen", "127.0.0.1:0", "--durability", "memory", "--log-json"];
        let mut child = begin(folder.path(), &arguments);
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        assert!(line.starts_with("listening http://127.0.0.1:"), "{line}");
        #[cfg(target_os = "linux")]
        assert_takes_no_core_from_others(child.id());
        send(child.id(), Signal::TERM);
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (code(&output), rest.as_str()),
            (0, ""),
            "one line on standard output: {}",
            stderr(&output)
        );
        for line in stderr(&output).lines() {
            assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
        }
    }
}

/// Workers and committers alike: each thread has the policy that proc_pid_stat(5) shows as 3 (`SCHED_BATCH`).
#[cfg(target_os = "linux")]
fn assert_takes_no_core_from_others(pid: u32) {
    let mut threads = 0;
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).unwrap() {
        // one that has ended meanwhile is none
        let Ok(stat) = std::fs::read_to_string(thread.unwrap().path().join("stat")) else { continue };
        let behind_name = stat.rsplit(')').next().unwrap();
        assert_eq!(behind_name.split_whitespace().nth(38), Some("3"), "{stat}");
        threads += 1;
    }
    assert!(threads > 1, "{threads}");
}

#[test]
fn a_system_says_where_it_listens_once_it_is_ready_and_not_before() {
    let folder = folder();
    let arguments = ["serve", "airline", "--listen", "127.0.0.1:0", "--data", "data"];
    let mut child =
        tidemark(folder.path(), &arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let place = line.trim().strip_prefix("listening http://").unwrap_or_else(|| panic!("{line:?}"));
    let mut stream = TcpStream::connect(place).unwrap();
    stream.write_all(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    send(child.id(), Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    // a store that cannot be opened: nothing is said to listen
    std::fs::write(folder.path().join("file"), "").unwrap();
    let output = run(folder.path(), &["serve", "airline", "--listen", "127.0.0.1:0", "--data", "file/data"]);
    assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{}", stderr(&output));
}

#[test]
fn a_served_system_minds_its_parent_only_where_asked() {
    let folder = folder();
    let arguments =
        ["serve", "airline", "--listen", "127.0.0.1:0", "--durability", "memory", "--stop-with-parent"];
    let mut child = tidemark(folder.path(), &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    assert!(child.try_wait().unwrap().is_none());
    drop(child.stdin.take());
    let mut status = None;
    wait_until("it stops at the end of its input", || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    assert_eq!(status.unwrap().code(), Some(0));
}
