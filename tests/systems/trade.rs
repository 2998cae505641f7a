//! One service called in three ways, by the driver: nothing is counted that was not done, and the shipped scenarios run.

use std::path::Path;
use std::process::Output;

use crate::common::{Client, Served, project, tidemark};
use crate::secured::Secured;
use serde_json::Value;

/// Trades of a run that counts them.
const TRADES: u64 = 4_000;

fn run(folder: &Path, arguments: &[&str]) -> Output {
    tidemark().current_dir(folder).arg("run").args(arguments).output().expect("tidemark runs")
}

fn json(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .unwrap_or_else(|error| panic!("{error}: {text}{}", String::from_utf8_lossy(&output.stderr)))
}

/// Writes the shipped scenarios: sooner over, and beside each other.
fn write_scenarios(folder: &Path) {
    for name in ["trade", "trade-rest", "trade-grpc", "trade-websocket"] {
        let shipped = std::fs::read_to_string(project().join(format!("scenarios/{name}.yaml")));
        let mut text = shipped.expect("a scenario").replace("warm-up: 3s", "warm-up: 1s");
        if name == "trade" {
            text = text.replace("rounds: 3", "rounds: 1");
            ["rest", "grpc", "websocket"].iter().for_each(|way| {
                text = text.replace(&format!(": trade-{way}\n"), &format!(": trade-{way}.yaml\n"));
            });
        }
        std::fs::write(folder.join(format!("{name}.yaml")), text).expect("written");
    }
}

#[test]
fn the_service_has_done_as_often_as_the_driver_was_told() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let rest = "- PUT: /trade\n        json: {name: ibm, amount: 1}";
    let calls = "- CALL: trade.trade\n        args: [{name: ibm, amount: 1}]";
    let grpc = "- grpc: trade.Trades/Take\n        message: {name: ibm, amount: 1}";
    for (step, limits, spoken, is_secure) in [
        (rest, "connections: 20", "HTTP/1.1", false),
        (grpc, "connections: 3, streams: 7", "gRPC", false),
        (calls, "connections: 3, streams: 7", "RPC over WebSocket (JSON)", false),
        (calls, "connections: 3, streams: 7", "RPC over WebSocket (JSON)", true),
    ] {
        let served = Served::start("trade", &[]);
        let secured =
            is_secure.then(|| Secured::in_front_of(&served.authority, &folder.path().join("ca.pem")));
        let check = match spoken {
            "gRPC" => "{status: OK, json: {$.taken: true}}",
            _ => "{status: 200, body: {equals: \"true\"}}",
        };
        let scenario = format!(
            "sessions:\n  one:\n    steps:\n      {step}\n        check: {check}\n\
             load: {{users: 20, hold: 60s}}\nlimits: {{{limits}, sessions: {TRADES}}}\n"
        );
        std::fs::write(folder.path().join("some.yaml"), scenario).expect("written");
        let url = match &secured {
            None if spoken == "gRPC" => format!("grpc://{}", served.authority),
            None => format!("http://{}", served.authority),
            Some(secured) => format!("https://{}", secured.address),
        };
        let of_tls = ["--cacert", "ca.pem", "--server-name", crate::secured::NAME];
        let of_tls = if is_secure { &of_tls[..] } else { &[] };
        let of_the_run = ["some.yaml", "--url", &url, "--json", "--threads", "1"];
        let output = run(folder.path(), &[&of_the_run, of_tls].concat());
        let summary = json(&output);
        assert_eq!(summary["requests"], TRADES, "{spoken}: {summary}");
        assert_eq!(summary["errors"], serde_json::json!({}), "{spoken}");
        assert_eq!(Client::connect(&served.authority).get("/count").body, TRADES.to_string());
        let dir = folder.path().join(summary["run_dir"].as_str().expect("a directory"));
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(dir.join("run.json")).expect("run.json")).expect("JSON");
        assert_eq!(manifest["system"]["http"], spoken);
        assert_eq!(manifest["system"]["url"], url);
    }
}

#[test]
fn there_are_as_many_connections_as_the_scenario_says_or_it_is_told() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    write_scenarios(folder.path());
    let served = Served::start("trade", &[]);
    let url = format!("http://{}", served.authority);
    for (connections, threads, told) in [(1, 1, None), (3, 2, Some("up to 4 connections were made"))] {
        let set = [format!("connections={connections}"), "calls=10".to_owned()];
        let of_the_run = ["--url", &url, "--for", "100ms", "--threads", "2", "--json"];
        let scenario = ["trade-websocket.yaml", "--set", &set[0], "--set", &set[1]];
        let summary = json(&run(folder.path(), &[&scenario[..], &of_the_run].concat()));
        assert_eq!(summary["driver"]["threads"], threads, "{summary}");
        let dir = folder.path().join(summary["run_dir"].as_str().expect("a directory"));
        let manifest: Value =
            serde_json::from_slice(&std::fs::read(dir.join("run.json")).expect("run.json")).expect("JSON");
        let notes = manifest["notes"].as_array().expect("notes");
        let note = notes.iter().filter_map(Value::as_str).find(|note| note.contains("connections were made"));
        assert!(
            note.is_some() == told.is_some()
                && note.unwrap_or_default().starts_with(told.unwrap_or_default())
        );
    }
}

#[test]
fn all_ways_are_compared() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    write_scenarios(folder.path());
    let arguments = ["trade.yaml", "--for", "1s", "--set", "users=10", "--set", "calls=50", "--json"];
    let output = run(folder.path(), &arguments);
    assert!(
        [Some(0), Some(3)].contains(&output.status.code()),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let compared = json(&output);
    for (part, name) in [(0, "own-load"), (1, "equal-rate")] {
        let part = &compared["parts"][part];
        assert_eq!(part["part"], name);
        for (variant, name) in ["REST", "gRPC", "WebSocket"].into_iter().enumerate() {
            let figures = &part["variants"][variant];
            assert_eq!(figures["name"], name);
            assert!(figures["answered_per_s"].as_f64() > Some(0.0), "{figures}");
            assert!(figures["system_cpu_us_per_request"].as_f64() > Some(0.0), "{figures}");
            assert_eq!(figures["errors"], serde_json::json!({}));
        }
    }
    // what is done many at a time costs the service less each
    let cost = &compared["parts"][0]["ratios"][1]["system_cpu_per_request"]["ratio"];
    assert!(cost.as_f64().is_some_and(|ratio| ratio < 1.0), "{compared}");
    let page = folder.path().join(compared["run_dir"].as_str().expect("a directory")).join("report.html");
    assert!(page.is_file());
}

#[test]
fn what_keeps_nothing_has_no_other_durability() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let scenario = "system: {serve: trade, durability: synced}\nsessions: {s: {steps: [{GET: /count}]}}\n\
                    load: {users: 1, hold: 1s}\n";
    std::fs::write(folder.path().join("some.yaml"), scenario).expect("written");
    let output = run(folder.path(), &["some.yaml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("some.yaml:1:36: trade stores nothing"), "{said}");
}
