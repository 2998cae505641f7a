//! What nobody here started is looked at beside the load: processes, pages of metrics, other machines.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::program::{assert_refused, code, is_alive, json, run, stderr, stdout, tidemark};
use serde_json::Value;

/// A system that a run did not start; killed when dropped.
struct There {
    child: Child,
    url: String,
}

impl There {
    fn start(folder: &Path, listen: &str) -> There {
        let mut command = tidemark(folder, &["serve", "trade", "--listen", listen, "--workers", "1"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("listening ").expect("it listens").to_owned();
        There { child, url }
    }

    fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    fn port(&self) -> &str {
        self.url.rsplit(':').next().unwrap()
    }

    fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for There {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn process<'v>(run: &'v Value, name: &str) -> &'v Value {
    let all = run["processes"].as_array().unwrap();
    all.iter().find(|process| process["name"] == name).unwrap_or_else(|| panic!("no {name} in {all:?}"))
}

fn events(folder: &Path, kind: &str) -> Vec<String> {
    let all = fs::read_to_string(folder.join("out/events.jsonl")).unwrap_or_default();
    let events = all.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["kind"] == kind).map(|event| event["text"].as_str().unwrap().into()).collect()
}

#[test]
fn the_server_of_a_url_that_is_hit_stands_in_the_report_like_a_system_that_was_started() {
    let folder = tempfile::tempdir().unwrap();
    let there = There::start(folder.path(), "127.0.0.1:0");
    let watch = format!("port={}", there.port());
    let metrics = format!("{0}/metrics#process_cpu_seconds_total", there.url);
    let url = format!("{}/health", there.url);
    let mut hit = vec!["hit", &url, "--for", "3s", "--quiet", "--watch", &watch, "--watch", &metrics];
    hit.push("--save=out");
    let text = stdout(&run(folder.path(), &hit));
    assert!(text.contains("good answers for each CPU-second of the system"), "{text}");
    assert!(text.contains(&format!("{} process_cpu_seconds_total_per_s", there.address())), "{text}");
    let shown = run(folder.path(), &["report", "out", "--json"]);
    let shown = json(&shown);
    let system = process(&shown, "system");
    assert!(system["cpu_s"].as_f64().unwrap() > 0.0, "{system}");
    assert!(
        system["rss_bytes_max"].as_u64().unwrap() > 1 << 20 && system["good_per_cpu_s"].is_number(),
        "{system}"
    );
    // the same process by what it tells itself
    let told = process(&shown, there.address());
    assert!(
        told["cpu_s"].as_f64().unwrap() > 0.0 && told["rss_bytes_max"].as_u64().unwrap() > 1 << 20,
        "{told}"
    );
    assert_eq!(shown["watched"][0]["found"], format!("tidemark, pid {}", there.id()));
    let series = &shown["stores_figures"][0];
    assert_eq!(series["store"], there.address());
    assert!(series["figures"]["process_cpu_seconds_total_per_s"]["mean"].as_f64().unwrap() > 0.0, "{series}");
    let text = stdout(&run(folder.path(), &["report", "out"]));
    assert!(text.contains(&format!("port {} · tidemark, pid {}", there.port(), there.id())), "{text}");
    let markdown = stdout(&run(folder.path(), &["report", "out", "--markdown", "-"]));
    assert!(
        markdown.contains("| system |") && markdown.contains("process\\_cpu\\_seconds\\_total\\_per\\_s |"),
        "{markdown}"
    );
}

#[test]
fn what_is_not_there_is_said_before_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let there = There::start(folder.path(), "127.0.0.1:0");
    let refused = |watch: &str, says: &str| {
        assert_refused(folder.path(), &["hit", &there.url, "--quiet", "--watch", watch], says);
    };
    refused("port=1", "nobody listens at port 1 of this machine");
    refused("name=no-such-program", "no program called no-such-program runs on this machine");
    refused("pid=2147483647", "no process has the number 2147483647");
    refused("unit=no-such.service", "no control group of this machine");
    refused("http://127.0.0.1:1/metrics", "cannot be watched: no connection");
    refused(&format!("{}/metrics#no_such_series", there.url), "it has no series no_such_series");
    refused(&format!("{}/nowhere", there.url), "it is answered with 404");
    refused("nginx", "cannot be watched; write pid=NUMBER");
    refused("name=driver", "is what this run starts, or its load generator");
    let page = "http://127.0.0.1:1/metrics";
    assert_refused(folder.path(), &["agent", "--watch", page], "asked by the run itself");
    let printed =
        ["hit", ":8080", "--print-scenario", "--watch", "port=8080", "--watch", "http://h/m#a,b{c=\"d\"}"];
    let text = stdout(&run(folder.path(), &printed));
    assert!(
        text.contains("watch:\n  - {port: 8080}\n  - {metrics: http://h/m, series: [a, 'b{c=\"d\"}']}\n"),
        "{text}"
    );
}

#[test]
fn faults_are_aimed_at_what_is_watched() {
    let folder = tempfile::tempdir().unwrap();
    let there = There::start(folder.path(), "127.0.0.1:0");
    let scenario = format!(
        "system: {{url: '{}'}}\nwatch: [{{port: {}, faults: true}}]\nsessions: {{a: {{steps: [{{GET: /health}}]}}}}\n\
         load: {{rate: 200/s, hold: 7s}}\nfaults: [{{at: 1s, freeze: system, for: 1s}}, {{at: 3s, kill: system}}]\n",
        there.url,
        there.port()
    );
    fs::write(folder.path().join("a.yaml"), scenario).unwrap();
    let output = run(folder.path(), &["run", "a.yaml", "--out", "out", "--json", "--quiet"]);
    let shown = json(&output);
    let faults = shown["faults"].as_array().unwrap();
    assert_eq!(faults.len(), 2);
    assert!(
        faults.iter().all(|fault| fault["begin_us"].is_number() && fault["error"].is_null()),
        "{faults:?}"
    );
    assert!(faults[0]["healed_us"].is_number(), "{faults:?}");
    assert!(shown["failed"].as_u64().unwrap() > 0, "it was killed");
    assert!(!is_alive(there.id()));
    assert!(events(folder.path(), "watched").iter().any(|text| text.starts_with("system is gone")));
}

#[test]
fn another_machine_is_seen_by_an_agent() {
    let folder = tempfile::tempdir().unwrap();
    let there = There::start(folder.path(), "127.0.0.1:0");
    // in place of ssh: takes the name of a machine, and runs what follows
    let reach = folder.path().join("reach");
    let script = "#!/bin/sh\necho \"reached $1\" >&2\nshift\nexec \"$@\"\n";
    let write = ["-c", r#"printf %s "$1" >"$0" && chmod 755 "$0""#, reach.to_str().unwrap(), script];
    assert!(Command::new("sh").args(write).status().unwrap().success());
    let scenario = |port: &str| {
        let text = format!(
            "system: {{url: '{}'}}\nwatch:\n  - {{agent: [{}, db1], program: {}, port: {port}, as: database}}\n\
             sessions: {{a: {{steps: [{{GET: /health}}]}}}}\nload: {{users: 2, warm-up: 1s, hold: 4s}}\n",
            there.url,
            reach.display(),
            env!("CARGO_BIN_EXE_tidemark"),
        );
        fs::write(folder.path().join("a.yaml"), text).unwrap();
    };
    scenario(there.port());
    let output = run(folder.path(), &["run", "a.yaml", "--out", "out", "--json", "--quiet"]);
    let shown = json(&output);
    let database = process(&shown, "database");
    assert!(
        database["cpu_s"].as_f64().unwrap() > 0.0 && database["good_per_cpu_s"].is_number(),
        "{database}"
    );
    assert!(process(&shown, "db1")["rss_bytes_max"].as_u64().unwrap() > 1 << 20);
    assert_eq!(shown["watched"][1]["found"], format!("tidemark, pid {}", there.id()));
    let log = fs::read_to_string(folder.path().join("out/logs/agent-db1.log")).unwrap();
    assert_eq!(log, "reached db1\n");
    scenario("1");
    let output = run(folder.path(), &["run", "a.yaml", "--out", "no", "--quiet"]);
    let said = stderr(&output);
    assert_eq!(code(&output), 2, "{said}");
    assert!(said.contains("says: nobody listens at port 1"), "{said}");
}
