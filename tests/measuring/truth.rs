//! Reported distributions against those that a server is known to have imposed.
//!
//! # How they are compared on a machine that others use too
//!
//! The server writes down how long it kept each request. What is reported must never be shorter than that (beyond 3 %
//! or 100 µs): this holds on every machine and is always asserted. It may be longer only by what the machine did to
//! the driving thread and the server's thread, which is measured from outside, by the kernel's own account of how
//! long each was ready to run but had no core (`schedstat`), and by what was stolen (hypervisor, control group). With
//! `w` seconds of that in a run of `T` seconds, a percentile `q` may at most be
//!
//! - that of the truth, 3 % or 100 µs, and all of `w`; and also
//! - the truth's percentile `q + 2 w / T`, and 3 % or 100 µs: each request has two moments at which each thread must
//!   run, so no greater share of the requests can have been held up.
//!
//! The smaller of both is asserted, with a millisecond for what no account shows; `TIDEMARK_STRICT=1`, for a machine of
//! one's own, takes that away. Nothing is left out; on a machine with free cores `w` is next to nothing. No
//! account shows a machine that stood still altogether: what is longer than is explained is looked at up to three times,
//! unless `TIDEMARK_STRICT` is set. Each test prints `w` and how far every percentile was off.

mod grpc;

use std::io::Write;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::watch::{Machine, Watched};
use serde_json::{Value, json};
use tidemark_truth::{Behaviour, Delay, Freeze, Http2Behaviour, Http2Server, Misbehaviour, Server, Truth};

/// Accepted always: this share of a time, or this time, whichever is more.
const SHARE: f64 = 0.03;
const ALWAYS_US: f64 = 100.0;
/// Accepted above the truth besides, unless `TIDEMARK_STRICT` is set: on a machine that others use too, cores also lose
/// time to interrupts and to a virtual machine's neighbours that no account of the kernel's shows.
const UNSEEN_US: f64 = 1_000.0;
const PERCENTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999), ("max", 1.0)];

/// One run at a time: the machine is part of the measurement.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Said of what is off by more than that.
const BEYOND: &str = "beyond what the machine explains";
/// How often that is looked at.
const ATTEMPTS: usize = 3;

/// Does it once more where something was off by more than the machine's accounts explain, and nothing else was wrong.
fn explained(test: fn()) {
    let _alone = alone();
    let attempts = if std::env::var_os("TIDEMARK_STRICT").is_some() { 1 } else { ATTEMPTS };
    for attempt in 1.. {
        let Err(panic) = std::panic::catch_unwind(test) else { return };
        let is_beyond = panic.downcast_ref::<String>().is_some_and(|text| text.contains(BEYOND));
        if attempt == attempts || !is_beyond {
            std::panic::resume_unwind(panic);
        }
        say(&format!("something was {BEYOND}: once more"));
    }
}

/// Past the test harness, which would keep it for itself where the test passes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A scenario that drives this server; nothing is warmed up, so that all requests count.
fn scenario(server: &Server, load: &str, rest: &str) -> String {
    let sessions = if rest.contains("sessions:") { "" } else { "sessions: {one: {steps: [{GET: /}]}}\n" };
    format!("name: truth\nsystem: {{url: 'http://{}'}}\nload: {load}\n{sessions}{rest}\n", server.address())
}

fn drive(server: &Server, load: &str, rest: &str) -> Watched {
    crate::watch::start(&scenario(server, load, rest), &["--threads", "1"]).wait()
}

/// Seconds in which the machine kept those who measure from running.
fn held_up_s(machine: &Machine, truth: &Truth) -> f64 {
    held_up_with(machine, truth.waited_us)
}

/// The same where the server's thread waited so long, if that is known.
fn held_up_with(machine: &Machine, waited_us: Option<u64>) -> f64 {
    machine.waited_s + machine.stolen_s + waited_us.unwrap_or(0) as f64 / 1e6
}

fn tolerance_us(time_us: f64) -> f64 {
    (SHARE * time_us).max(ALWAYS_US)
}

/// Holds a reported distribution against the true one.
fn compare(name: &str, reported: &Value, machine: &Machine, truth: &Truth, true_us: &dyn Fn(f64) -> f64) {
    compare_within(name, reported, machine, held_up_s(machine, truth), true_us);
}

fn compare_within(
    name: &str,
    reported: &Value,
    machine: &Machine,
    held_up_s: f64,
    true_us: &dyn Fn(f64) -> f64,
) {
    let disturbed = 2.0 * held_up_s / machine.elapsed_s;
    say(&format!(
        "{name}: in {:.1} s those who measure had no core for {:.1} ms, {:.1} ms were stolen",
        machine.elapsed_s,
        (held_up_s - machine.stolen_s) * 1e3,
        machine.stolen_s * 1e3
    ));
    for (percentile, quantile) in PERCENTILES {
        let reported_us =
            reported[percentile].as_f64().unwrap_or_else(|| panic!("{percentile} in {reported}"));
        let truth_us = true_us(quantile);
        let least_us = truth_us - tolerance_us(truth_us);
        let by_time_us = truth_us + tolerance_us(truth_us) + held_up_s * 1e6;
        let shifted_us =
            if quantile + disturbed < 1.0 { true_us(quantile + disturbed) } else { f64::INFINITY };
        let unseen_us = if std::env::var_os("TIDEMARK_STRICT").is_some() { 0.0 } else { UNSEEN_US };
        let most_us = by_time_us.min(shifted_us + tolerance_us(shifted_us)) + unseen_us;
        let plain = (reported_us - truth_us).abs() <= tolerance_us(truth_us);
        say(&format!(
            "  {percentile:>4}: reported {reported_us:>9.0} µs, truth {truth_us:>9.0} µs{}",
            if plain { "" } else { ", off by what the machine took" }
        ));
        assert!(
            reported_us >= least_us,
            "{name} {percentile}: {reported_us} µs hides a part of {truth_us} µs"
        );
        assert!(
            reported_us <= most_us,
            "{name} {percentile}: {reported_us} µs for {truth_us} µs is {BEYOND} ({most_us} µs)"
        );
    }
}

#[test]
fn delays_from_known_distributions_are_reported_as_they_were() {
    explained(delays);
}

fn delays() {
    let cases = [
        ("fixed", Delay::Fixed(ms(5))),
        ("exponential", Delay::Exponential { mean: ms(5) }),
        ("lognormal", Delay::Lognormal { median: ms(4), sigma: 0.8 }),
        ("bimodal", Delay::Bimodal { fast: ms(2), slow: ms(50), slow_share: 0.05 }),
    ];
    for (name, delay) in cases {
        let server =
            Server::start(Behaviour { delays: vec![delay], seed: 1, ..Behaviour::default() }).unwrap();
        let run = drive(&server, "{rate: 1500/s, spacing: constant, hold: 2s}", "limits: {connections: 512}");
        let truth = server.stop().unwrap();
        assert_eq!((&run.summary["requests"], truth.answered), (&json!(3_000), 3_000), "{}", run.stderr);
        assert_eq!((&run.summary["errors"], &run.summary["dropped"]), (&json!({}), &json!(0)));
        let kept_us = &truth.kept_us[0];
        let reported = &run.summary["response_time_us"];
        compare(name, reported, &run.machine, &truth, &|q| kept_us.value_at_quantile(q) as f64);
    }
}

#[test]
fn five_thousand_requests_under_way_at_once() {
    explained(five_thousand);
}

fn five_thousand() {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit { current: limit.maximum, ..limit };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Nofile, raised);
    let room = limit.maximum.unwrap_or(u64::MAX);
    assert!(room > 6_500, "the limit of open files is {room}; this test needs 6500: raise it (ulimit -Hn)");
    let delays = vec![Delay::Fixed(ms(1_000))];
    let server = Server::start(Behaviour { delays, ..Behaviour::default() }).unwrap();
    let run = drive(&server, "{rate: 5k/s, spacing: constant, hold: 2s}", "limits: {connections: 6000}");
    let truth = server.stop().unwrap();
    assert_eq!((&run.summary["requests"], truth.answered), (&json!(10_000), 10_000), "{}", run.stderr);
    // fewer only by what became due while those who measure had no core
    let least = 5_000.0 * (1.0 - held_up_s(&run.machine, &truth));
    assert!(truth.connections as f64 >= least, "{} connections of {least:.0}: {BEYOND}", truth.connections);
    let (kept_us, reported) = (&truth.kept_us[0], &run.summary["response_time_us"]);
    compare("5,000 at once", reported, &run.machine, &truth, &|q| kept_us.value_at_quantile(q) as f64);
}

#[test]
fn a_slow_shard_shows_where_it_is() {
    explained(slow_shard);
}

fn slow_shard() {
    let fast = Delay::Fixed(ms(5));
    let delays = vec![fast, fast, fast, Delay::Fixed(ms(80))];
    let server = Server::start(Behaviour { delays, ..Behaviour::default() }).unwrap();
    let ways: String =
        (0..4).map(|i| format!("        - steps: [{{GET: /shard/{i}, label: shard {i}}}]\n")).collect();
    let sessions =
        format!("limits: {{connections: 512}}\nsessions:\n  one:\n    steps:\n      - choose:\n{ways}");
    let run = drive(&server, "{rate: 1k/s, spacing: poisson, hold: 6s}", &sessions);
    let truth = server.stop().unwrap();
    assert_eq!(run.summary["errors"], json!({}), "{}", run.stderr);
    let all = truth.all_kept_us();
    let reported = &run.summary["response_time_us"];
    compare("all shards", reported, &run.machine, &truth, &|q| all.value_at_quantile(q) as f64);
    for (i, kept_us) in truth.kept_us.iter().enumerate() {
        let step = &run.summary["steps"][i];
        assert_eq!(step["label"], format!("shard {i}"));
        assert_eq!(step["requests"], kept_us.len(), "requests of shard {i}");
        compare(&format!("shard {i}"), &step["response_time_us"], &run.machine, &truth, &|q| {
            kept_us.value_at_quantile(q) as f64
        });
    }
}

#[test]
fn a_server_below_the_offered_rate_shows_its_backlog() {
    explained(below_the_rate);
}

fn below_the_rate() {
    // no trend is told of fewer seconds
    let (offered_per_s, capacity_per_s, hold_s) = (400.0, 300.0, 9.0);
    let behaviour = Behaviour { capacity_per_s: Some(capacity_per_s), ..Behaviour::default() };
    let server = Server::start(behaviour).unwrap();
    let rest = "limits: {connections: 64, waiting: 10000, drain: 60s}\ndefaults: {timeout: 60s}";
    let run = drive(&server, "{rate: 400/s, spacing: constant, hold: 9s}", rest);
    let truth = server.stop().unwrap();
    assert_eq!(run.summary["requests"], json!(3_600), "{}", run.stderr);
    assert_eq!((&run.summary["errors"], &run.summary["dropped"]), (&json!({}), &json!(0)));
    // Request n is due after n / offered and answered after n / capacity: the wait grows evenly.
    let longest_us = hold_s * (offered_per_s / capacity_per_s - 1.0) * 1e6;
    let reported = &run.summary["response_time_us"];
    compare("below the rate", reported, &run.machine, &truth, &|q| q * longest_us);
    // The achieved rate is named beside the offered one.
    let rate = |name: &str| run.summary[name].as_f64().unwrap();
    assert!((rate("offered_per_s") / offered_per_s - 1.0).abs() < 0.001, "{}", run.summary);
    let held_up = held_up_s(&run.machine, &truth) / hold_s;
    let achieved = rate("achieved_per_s") / capacity_per_s;
    assert!(achieved < 1.0 + SHARE, "{}", run.summary);
    assert!(achieved > 1.0 - SHARE - held_up, "{BEYOND}: {}", run.summary);
    // And the report says that these figures belong to this length of the run.
    let steady = &run.summary["steady_state"];
    assert_eq!(steady["steady"], false, "{steady}");
    assert!(steady["reason"].as_str().unwrap().contains("the median response time rose"), "{steady}");
    // What a tool that forgets the waiting would have said: 64 connections before each of them.
    let service_p99_us = run.summary["service_time_us"]["p99"].as_f64().unwrap();
    assert!(service_p99_us < 0.2 * longest_us, "service time has the wait, or {BEYOND}: {service_p99_us} µs");
}

#[test]
fn a_freeze_longer_than_the_timeout_is_timeouts_for_all_who_waited_too_long() {
    explained(freeze_beyond_the_timeout);
}

fn freeze_beyond_the_timeout() {
    const RATE_PER_S: f64 = 1_000.0;
    const TIMEOUT_S: f64 = 0.5;
    let server = Server::start(Behaviour::default()).unwrap();
    let rest = "limits: {connections: 3000}\ndefaults: {timeout: 500ms}";
    let load = "{rate: 1k/s, spacing: constant, hold: 4s}";
    let run = crate::watch::start(&scenario(&server, load, rest), &["--threads", "1"]);
    let begin = Instant::now();
    while server.answered() < 1_000 {
        assert!(begin.elapsed() < crate::common::PATIENCE, "the load never came");
        std::thread::sleep(ms(1));
    }
    server.freeze();
    std::thread::sleep(ms(1_500));
    server.thaw();
    let run = run.wait();
    let truth = server.stop().unwrap();
    let (begin_ns, end_ns) = truth.freezes_ns[0];
    let frozen_s = (end_ns - begin_ns) as f64 / 1e9;
    let held_up_s = held_up_s(&run.machine, &truth);
    assert_eq!(run.summary["requests"], json!(4_000), "{}", run.stderr);
    let errors = run.summary["errors"].as_object().unwrap();
    let timeouts = run.summary["errors"]["timeout"].as_f64().unwrap_or(0.0);
    assert_eq!(errors.len(), 1, "only timeouts: {errors:?}");
    // All who came earlier than the timeout before the end.
    let expected = RATE_PER_S * (frozen_s - TIMEOUT_S);
    let slack = SHARE * expected + RATE_PER_S * held_up_s;
    say(&format!(
        "freeze of {frozen_s:.3} s: {timeouts} timeouts, by theory {expected:.0}; {:.1} ms without a core",
        held_up_s * 1e3
    ));
    assert!(
        (timeouts - expected).abs() <= slack,
        "{timeouts} timeouts, by theory {expected} ± {slack}: {BEYOND}"
    );
    // Who came a little later was answered at the very end of his time.
    let max_s = run.summary["good"]["response_time_us"]["max"].as_f64().unwrap() / 1e6;
    let slack_s = SHARE * TIMEOUT_S + held_up_s;
    assert!((max_s - TIMEOUT_S).abs() <= slack_s, "longest {max_s} s, by theory {TIMEOUT_S} s: {BEYOND}");
}

#[test]
fn slow_accepting_is_in_the_response_time() {
    explained(slow_accepting);
}

fn slow_accepting() {
    let server = Server::start(Behaviour { accept_every: Some(ms(20)), ..Behaviour::default() }).unwrap();
    let sessions = "sessions: {one: {steps: [{GET: /}, {think: 100ms}]}}";
    let run = drive(&server, "{users: 16, hold: 2s}", sessions);
    let truth = server.stop().unwrap();
    // One more looked whether the server is there.
    assert_eq!((&run.summary["errors"], truth.connections), (&json!({}), 17), "{}", run.stderr);
    let longest_us = truth.accept_us.max() as f64;
    let max_us = run.summary["response_time_us"]["max"].as_f64().unwrap();
    say(&format!("slow accept: longest {max_us} µs, the last was accepted after {longest_us} µs"));
    let slack_us = tolerance_us(longest_us) + held_up_s(&run.machine, &truth) * 1e6;
    // a server without a core learns late that somebody came
    let least_us = 16.0 * 20_000.0 - held_up_s(&run.machine, &truth) * 1e6;
    assert!(longest_us >= least_us, "the last was accepted after {longest_us} µs, not {least_us}: {BEYOND}");
    assert!(
        (max_us - longest_us).abs() <= slack_us,
        "longest {max_us} µs, truth {longest_us} ± {slack_us} µs: {BEYOND}"
    );
}

#[test]
fn every_fault_is_counted_once_by_its_kind() {
    let _alone = alone();
    use Misbehaviour::*;
    let faults = vec![None, Reset, None, HalfAnswer, LengthTooLong, NotHttp, Close, LengthTooShort];
    let server = Server::start(Behaviour { faults, ..Behaviour::default() }).unwrap();
    let rest = "limits: {connections: 512, drain: 20s}\ndefaults: {timeout: 3s}";
    let run = drive(&server, "{rate: 400/s, spacing: constant, hold: 2s}", rest);
    let truth = server.stop().unwrap();
    assert_eq!((truth.requests, truth.left), (800, 0));
    // By the length that it names an answer is whole, so that one that says too little is no failure.
    let of = |faults: &[Misbehaviour]| faults.iter().map(|fault| truth.count(*fault)).sum::<u64>();
    assert_eq!(run.summary["requests"], truth.faults.values().sum::<u64>());
    let expected = json!({
        "timeout": of(&[LengthTooLong]),
        "reset": of(&[Reset, Close, HalfAnswer]),
        "protocol": of(&[NotHttp]),
    });
    assert_eq!(run.summary["errors"], expected, "{}", run.stderr);
    say(&format!("faults: {expected}, as the server counted them"));
}

/// Over HTTP/2: many requests on few connections, each with its own time; and a server that stands still.
#[test]
fn streams_of_http_2_tell_the_same_truth() {
    explained(streams);
}

fn streams() {
    let freeze = Freeze { after: ms(1_000), length: ms(1_000) };
    for (name, rate, freeze) in [("HTTP/2, fixed", 1_500, None), ("HTTP/2, freeze", 1_000, Some(freeze))] {
        let behaviour =
            Http2Behaviour { delays: vec![Delay::Fixed(ms(5))], freeze, ..Http2Behaviour::default() };
        let server = Http2Server::start(behaviour).unwrap();
        let text = format!(
            "name: truth\nsystem: {{url: 'http://{}', http: 2}}\nload: {{rate: {rate}/s, spacing: constant, hold: 3s}}\n\
             sessions: {{one: {{steps: [{{GET: /}}]}}}}\nlimits: {{connections: 8, streams: 200}}\n",
            server.address()
        );
        let run = crate::watch::start(&text, &["--threads", "1"]).wait();
        let truth = server.stop().unwrap();
        assert_eq!(
            (&run.summary["requests"], truth.requests),
            (&json!(3 * rate), 3 * rate),
            "{}",
            run.stderr
        );
        assert_eq!((&run.summary["errors"], &run.summary["dropped"]), (&json!({}), &json!(0)));
        // One more said hello before the load.
        assert!(truth.connections <= 9, "{} connections", truth.connections);
        let held_up_s = held_up_with(&run.machine, truth.waited_us);
        let reported = &run.summary["response_time_us"];
        let kept_us = |quantile| truth.kept_us[0].value_at_quantile(quantile) as f64;
        compare_within(name, reported, &run.machine, held_up_s, &kept_us);
    }
}
