//! A server that freezes for a second: the run must report what the users would have felt.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::tidemark;

const RATE_PER_S: f64 = 5_000.0;
const MEASURED_S: f64 = 5.0;
const CONNECTIONS: usize = 64;
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// Answers at once, except while frozen: then every thread stands still until the thaw.
struct FreezingServer {
    authority: String,
    frozen: Arc<AtomicBool>,
    answered: Arc<AtomicU64>,
}

impl FreezingServer {
    fn start() -> FreezingServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let authority = listener.local_addr().expect("an address").to_string();
        let (frozen, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let shared = (frozen.clone(), answered.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (frozen, answered) = shared.clone();
                std::thread::spawn(move || serve(stream, &frozen, &answered));
            }
        });
        FreezingServer { authority, frozen, answered }
    }
}

fn serve(mut stream: TcpStream, frozen: &AtomicBool, answered: &AtomicU64) {
    let _ = stream.set_nodelay(true);
    let mut buffer = [0; 4096];
    // The driver does not pipeline: one read is one whole request of this size.
    while let Ok(read) = stream.read(&mut buffer) {
        if read == 0 {
            return;
        }
        while frozen.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_micros(200));
        }
        if stream.write_all(ANSWER).is_err() {
            return;
        }
        answered.fetch_add(1, Ordering::Relaxed);
    }
}

/// A machine that stands still, too, makes it longer: so the figures are looked at up to so many times.
const ATTEMPTS: usize = 3;

#[test]
fn a_freeze_of_one_second_is_reported_as_long_as_it_was() {
    let mut told = Vec::new();
    for _ in 0..ATTEMPTS {
        match freeze() {
            Ok(()) => return,
            Err(off) => told.push(off),
        }
    }
    panic!("{}", told.join("\n"));
}

/// What of a run with a freeze is not as it was, if anything.
fn freeze() -> Result<(), String> {
    let server = FreezingServer::start();
    let dir = tempfile::tempdir().expect("a temporary directory");
    let scenario = dir.path().join("freeze.yaml");
    std::fs::write(
        &scenario,
        format!(
            "name: freeze\nsystem: {{url: 'http://{}'}}\n\
             load: {{rate: {RATE_PER_S}/s, spacing: constant, warm-up: 1s, hold: {MEASURED_S}s}}\n\
             limits: {{connections: {CONNECTIONS}, waiting: 100000}}\n\
             sessions:\n  one:\n    steps:\n      - GET: /\n",
            server.authority
        ),
    )
    .expect("the scenario is written");

    let out = dir.path().join("run");
    let child = tidemark()
        .args(["run", scenario.to_str().expect("UTF-8"), "--json", "--out", out.to_str().expect("UTF-8")])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("tidemark runs");
    // Freeze in the midst of the measured window: a third of the expected answers have been given.
    let begin = Instant::now();
    while (server.answered.load(Ordering::Relaxed) as f64) < RATE_PER_S * MEASURED_S / 3.0 {
        assert!(begin.elapsed() < crate::common::PATIENCE, "the load never came");
        std::thread::sleep(Duration::from_millis(1));
    }
    let freeze_begin = Instant::now();
    server.frozen.store(true, Ordering::Release);
    std::thread::sleep(Duration::from_secs(1));
    server.frozen.store(false, Ordering::Release);
    let frozen_s = freeze_begin.elapsed().as_secs_f64();

    let output = child.wait_with_output().expect("the run ends");
    let text = String::from_utf8_lossy(&output.stdout);
    let summary: serde_json::Value = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{e}: {text}\n{}", String::from_utf8_lossy(&output.stderr)));
    let requests = summary["requests"].as_f64().expect("requests");
    assert_eq!(requests, RATE_PER_S * MEASURED_S, "every arrival is accounted for: {summary}");
    assert_eq!(summary["dropped"], 0);
    assert_eq!(summary["errors"], serde_json::json!({}));

    // Arrivals come evenly; one that comes t seconds into the freeze is answered (frozen_s - t) later. The slowest
    // hundredth of all requests are those of the first 0.01 × 5 s of the freeze, so p99 is what the last of them felt.
    let truth_us = (frozen_s - 0.01 * MEASURED_S) * 1e6;
    let us = |of: &str, quantile: &str| summary[of][quantile].as_f64().expect("a time");
    let (p99_us, max_us) = (us("response_time_us", "p99"), us("response_time_us", "max"));
    // What a tool that forgets the waiting would have said: a hundredth of that.
    let service_p99_us = us("service_time_us", "p99");
    let told = format!(
        "p99 {p99_us} µs, truth {truth_us} µs; max {max_us} µs, truth {frozen_s} s; service {service_p99_us} µs"
    );
    let is_near = |us: f64, truth_us: f64| (us / truth_us - 1.0).abs() < 0.05;
    let is_right =
        is_near(p99_us, truth_us) && is_near(max_us, frozen_s * 1e6) && service_p99_us < p99_us / 10.0;
    if is_right { Ok(()) } else { Err(told) }
}
