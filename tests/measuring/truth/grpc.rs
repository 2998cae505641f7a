//! The same of calls of gRPC, whose server keeps each for a known time: many on few connections.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tidemark_truth::{Delay, Freeze, Http2Behaviour, Http2Misbehaviour, Http2Server, Http2Truth};

use super::{BEYOND, SHARE, alone, compare_within, explained, held_up_with, ms, say};
use crate::common::tidemark;
use crate::watch::{self, Watched};

/// What the server answers.
const PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../truth/truth.proto");
/// A call whose answer is to be its own.
const OWN: &str = "sessions: {one: {steps: [{set: {n: '${random(1, 1000000)}'}}, \
                   {grpc: truth.Server/Shard0, message: {number: '${n}'}, check: {json: {$.number: '${n}'}}}]}}\n";
const WIDE: &str = "limits: {connections: 8, streams: 200, waiting: 10000, drain: 60s}\n";

fn serve(behaviour: Http2Behaviour) -> Http2Server {
    Http2Server::start(behaviour).unwrap()
}

/// The scenario without its sessions.
fn scenario(server: &Http2Server, load: &str) -> String {
    let address = server.address();
    format!("name: truth\nsystem: {{url: 'grpc://{address}', protos: '{PROTO}'}}\nload: {load}\n")
}

fn drive(server: Http2Server, load: &str, rest: &str) -> (Watched, Http2Truth) {
    let text = scenario(&server, load) + rest;
    let run = watch::start(&text, &["--threads", "1"]).wait();
    (run, server.stop().unwrap())
}

/// Each call was sent once and answered well.
fn assert_none_lost(run: &Watched, truth: &Http2Truth, calls: u64) {
    assert_eq!((&run.summary["requests"], truth.requests), (&json!(calls), calls), "{}", run.stderr);
    assert_eq!((&run.summary["errors"], &run.summary["dropped"]), (&json!({}), &json!(0)), "{}", run.stderr);
    assert_eq!(run.summary["statuses"], json!({"OK": calls}));
}

fn compare(name: &str, reported: &Value, run: &Watched, truth: &Http2Truth, true_us: &dyn Fn(f64) -> f64) {
    compare_within(name, reported, &run.machine, held_up_with(&run.machine, truth.waited_us), true_us);
}

#[test]
fn calls_take_as_long_as_their_server_kept_them() {
    explained(|| {
        let freeze = Freeze { after: ms(1_000), length: ms(1_000) };
        let lognormal = Delay::Lognormal { median: ms(4), sigma: 0.8 };
        for (name, rate, delay, freeze) in [
            ("gRPC, fixed", 1_500, Delay::Fixed(ms(5)), None),
            ("gRPC, lognormal", 1_500, lognormal, None),
            ("gRPC, freeze", 1_000, Delay::Fixed(ms(5)), Some(freeze)),
        ] {
            let server = serve(Http2Behaviour { delays: vec![delay], freeze, ..Http2Behaviour::default() });
            let load = format!("{{rate: {rate}/s, spacing: constant, hold: 3s}}");
            let (run, truth) = drive(server, &load, &format!("{OWN}{WIDE}"));
            assert_none_lost(&run, &truth, 3 * rate);
            let kept_us = |quantile| truth.kept_us[0].value_at_quantile(quantile) as f64;
            compare(name, &run.summary["response_time_us"], &run, &truth, &kept_us);
        }
    });
}

#[test]
fn a_slow_method_shows_where_it_is() {
    explained(|| {
        let fast = Delay::Fixed(ms(5));
        let delays = vec![fast, fast, fast, Delay::Fixed(ms(80))];
        let server = serve(Http2Behaviour { delays, ..Http2Behaviour::default() });
        let ways: String =
            (0..4).map(|shard| format!("        - steps: [{{grpc: truth.Server/Shard{shard}}}]\n")).collect();
        let rest = format!("{WIDE}sessions:\n  one:\n    steps:\n      - choose:\n{ways}");
        let (run, truth) = drive(server, "{rate: 1k/s, spacing: poisson, hold: 6s}", &rest);
        assert_none_lost(&run, &truth, truth.requests);
        let all = truth.all_kept_us();
        compare("all methods", &run.summary["response_time_us"], &run, &truth, &|q| {
            all.value_at_quantile(q) as f64
        });
        for (shard, kept_us) in truth.kept_us.iter().enumerate() {
            let step = &run.summary["steps"][shard];
            assert_eq!(step["label"], format!("truth.Server/Shard{shard}"));
            assert_eq!(step["requests"], kept_us.len(), "calls of shard {shard}");
            let name = format!("method {shard}");
            compare(&name, &step["response_time_us"], &run, &truth, &|q| kept_us.value_at_quantile(q) as f64);
        }
    });
}

#[test]
fn a_server_at_half_of_the_rate_shows_its_backlog() {
    explained(|| {
        let server = serve(Http2Behaviour { capacity_per_s: Some(200.0), ..Http2Behaviour::default() });
        let rest = format!("{OWN}{WIDE}defaults: {{timeout: 60s}}\n");
        let (run, truth) = drive(server, "{rate: 400/s, spacing: constant, hold: 6s}", &rest);
        assert_none_lost(&run, &truth, 2_400);
        // call n is due after n / 400 s and answered after n / 200 s
        compare("half the rate", &run.summary["response_time_us"], &run, &truth, &|q| q * 6e6);
    });
}

/// Of those that came too late for a place, each is counted, and the others are sent.
#[test]
fn calls_without_a_place_are_dropped_and_counted() {
    explained(|| {
        let server = serve(Http2Behaviour { capacity_per_s: Some(200.0), ..Http2Behaviour::default() });
        let rest = format!("{OWN}limits: {{connections: 2, streams: 10, waiting: 50, drain: 60s}}\n");
        let (run, truth) = drive(server, "{rate: 400/s, spacing: constant, hold: 3s}", &rest);
        let [requests, dropped] = ["requests", "dropped"].map(|name| run.summary[name].as_u64().unwrap());
        assert_eq!((requests + dropped, truth.requests), (1_200, requests), "{}", run.stderr);
        assert_eq!(run.summary["errors"], json!({}));
        // those that no server of 200/s can take, but for the places
        let expected = (400.0 - 200.0) * 3.0 - 20.0 - 50.0;
        let slack = SHARE * expected + 400.0 * held_up_with(&run.machine, truth.waited_us) + 2.0;
        say(&format!("{dropped} calls dropped, by theory {expected}"));
        assert!((dropped as f64 - expected).abs() <= slack, "{dropped}, not {expected} ± {slack}: {BEYOND}");
    });
}

#[test]
fn every_fault_of_a_call_is_counted_once_by_its_kind() {
    use Http2Misbehaviour::{GoAway, GrpcStatus, HalfAnswer, None, Refuse, Reset, Silence};
    let _alone = alone();
    let faults = vec![None, Reset, GrpcStatus(14), None, HalfAnswer, Silence, Refuse, GoAway, GrpcStatus(5)];
    let server = serve(Http2Behaviour { faults, ..Http2Behaviour::default() });
    let rest =
        format!("{OWN}limits: {{connections: 8, streams: 200, drain: 20s}}\ndefaults: {{timeout: 3s}}\n");
    let (run, truth) = drive(server, "{rate: 400/s, spacing: constant, hold: 2s}", &rest);
    let count = |fault| truth.count(fault);
    // what was refused is sent again
    assert_eq!(run.summary["requests"], truth.requests - count(Refuse), "{}", run.stderr);
    assert_eq!(run.summary["requests"], 800);
    let failed = count(Reset) + count(GrpcStatus(14)) + count(GrpcStatus(5)) + count(HalfAnswer);
    assert_eq!(run.summary["errors"], json!({"status": failed, "timeout": count(Silence)}), "{}", run.stderr);
    let statuses = json!({
        "OK": count(None) + count(GoAway),
        "CANCELLED": count(HalfAnswer),
        "INTERNAL": count(Reset),
        "NOT_FOUND": count(GrpcStatus(5)),
        "UNAVAILABLE": count(GrpcStatus(14)),
    });
    assert_eq!(run.summary["statuses"], statuses);
    assert!(count(GoAway) > 0 && truth.connections > 8, "{} connections", truth.connections);
}

/// What a verb prints with `--json`, and its exit status.
fn verb(folder: &Path, arguments: &[&str]) -> (Option<i32>, Value) {
    let output = tidemark().current_dir(folder).args(arguments).output().expect("tidemark runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let told = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {said}"));
    (output.status.code(), told)
}

#[test]
fn the_limit_of_a_server_is_found_by_calls() {
    let _alone = alone();
    let server = serve(Http2Behaviour { capacity_per_s: Some(200.0), ..Http2Behaviour::default() });
    let folder = tempfile::tempdir().unwrap();
    let text =
        scenario(&server, "{rate: 50/s, spacing: poisson, hold: 30s}") + OWN + "objectives: [p90 < 40ms]\n";
    fs::write(folder.path().join("s.yaml"), text).unwrap();
    // others may have the cores for a while: it goes on where it was
    let search =
        |budget| verb(folder.path(), &["limit", "s.yaml", "--out", "out", "--budget", budget, "--json"]);
    let found = ["35s", "70s", "140s"].into_iter().map(search).find(|(status, _)| *status == Some(0));
    let (_, found) = found.expect("a limit within 140 s");
    let limit = &found["limit"];
    say(&format!("a server of 200 calls/s: {}", limit["says"]));
    let [low, per_s] = ["low_per_s", "per_s"].map(|name| limit[name].as_f64().unwrap());
    // a queue of 5 ms each keeps nine of ten below 40 ms up to about 175/s
    assert!(low < 200.0 && (100.0..200.0).contains(&per_s), "{limit}");
    server.stop().unwrap();
}

#[test]
fn a_slower_server_of_calls_is_found_to_be_slower() {
    let _alone = alone();
    let [a, b] = [5, 40].map(|delay| {
        serve(Http2Behaviour { delays: vec![Delay::Fixed(ms(delay))], ..Http2Behaviour::default() })
    });
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), scenario(&a, "{users: 2, hold: 30s}") + OWN).unwrap();
    let [first, second] = [&a, &b].map(|server| format!("grpc://{}", server.address()));
    let urls = ["compare", "s.yaml", "--url", &first, "--url", &second];
    let more = ["--for", "300ms", "--rounds", "4", "--budget", "5m", "--fail-if", "p50>+20%", "--json"];
    // not for sure where a busy machine stood still in one of the runs
    let mut compared = (0..3).map(|_| verb(folder.path(), &[&urls[..], &more[..]].concat()));
    let (_, claims) =
        compared.find(|(status, _)| *status == Some(1)).expect("it fails, as it is slower for sure");
    assert!(claims["says"][0].as_str().unwrap().starts_with("B is slower: "), "{claims}");
    for server in [a, b] {
        server.stop().unwrap();
    }
}
