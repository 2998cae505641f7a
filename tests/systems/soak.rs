//! A long load against a server that resets, closes and halves answers, plain and over TLS: the driver's memory and
//! open files do not grow, and every arrival is accounted for.
//!
//! `TIDEMARK_SOAK_S` says how long each of the two runs takes (12 s; `bench/soak/run` takes 10 minutes), and
//! `TIDEMARK_SOAK_RATE` how many requests are due a second.

use std::fs;
use std::io::Write;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tidemark_truth::{Behaviour, Delay, Misbehaviour, Server, Truth};

/// Time between two looks at the driver.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Connections that it may have.
const CONNECTIONS: u64 = 64;
/// Files that it may have open beside them: those of the run, of the loop, the standard ones.
const OTHER_FILES: u64 = 40;
/// Seconds in which memory is taken up that stays: histograms, buffers, the allocator's.
const SETTLE_S: f64 = 5.0;
/// Growth that a run may show from its first settled quarter to its last: pages are counted by the kernel in batches
/// for each thread, and rows are held until an eighth of a mebibyte of them is written, for each of three tables.
const GROWTH_BYTES: f64 = 2.0 * 1024.0 * 1024.0;
/// Memory that a settled driver of this many connections may hold: it takes 18 MiB in a build for tests.
const MEMORY_BYTES: f64 = 32.0 * 1024.0 * 1024.0;

/// What was seen of the driver from outside.
struct Look {
    at_s: f64,
    /// Resident pages of its own, bytes. Pages of the program's file are not among them: the kernel can drop those, and
    /// their number says how large a build is.
    rss_bytes: f64,
    files: u64,
}

struct Soak {
    name: &'static str,
    server: Server,
    child: Child,
    dir: tempfile::TempDir,
    began: Instant,
    looks: Vec<Look>,
}

fn setting(name: &str, otherwise: f64) -> f64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")),
        Err(_) => otherwise,
    }
}

/// 17 good answers in 20; each of the three others ends its connection.
fn faults() -> Vec<Misbehaviour> {
    let mut faults = vec![Misbehaviour::None; 20];
    (faults[5], faults[11], faults[17]) =
        (Misbehaviour::Reset, Misbehaviour::HalfAnswer, Misbehaviour::Close);
    faults
}

impl Soak {
    fn start(name: &'static str, tls: bool, seconds: f64, rate: f64) -> Soak {
        let delays = vec![Delay::Exponential { mean: Duration::from_millis(2) }];
        let behaviour = Behaviour { delays, faults: faults(), tls, ..Behaviour::default() };
        let server = Server::start(behaviour).expect("a server");
        let dir = tempfile::tempdir().expect("a temporary directory");
        let file = dir.path().join("scenario.yaml");
        let (scheme, trust) = if tls { ("https", ", tls: {insecure: true}") } else { ("http", "") };
        let scenario = format!(
            "name: soak {name}\nsystem: {{url: '{scheme}://{}'{trust}}}\nload: {{rate: {rate}/s, hold: {seconds}s}}\n\
             limits: {{connections: {CONNECTIONS}, waiting: 100000, drain: 30s}}\ndefaults: {{timeout: 30s}}\n\
             sessions: {{one: {{steps: [{{GET: /}}]}}}}\n",
            server.address()
        );
        fs::write(&file, scenario).expect("the scenario is written");
        let child = crate::common::tidemark()
            .arg("run")
            .arg(&file)
            .args(["--json", "--quiet", "--threads", "1", "--out"])
            .arg(dir.path().join("run"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("tidemark runs");
        Soak { name, server, child, dir, began: Instant::now(), looks: Vec::new() }
    }

    /// Whether it still runs; looks at it.
    fn look(&mut self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let kib = status
            .lines()
            .find_map(|line| line.strip_prefix("RssAnon:")?.split_whitespace().next()?.parse().ok());
        let files = fs::read_dir(format!("/proc/{}/fd", self.child.id())).map_or(0, |all| all.count() as u64);
        if let Some(kib) = kib.map(|kib: f64| kib * 1024.0) {
            self.looks.push(Look { at_s: self.began.elapsed().as_secs_f64(), rss_bytes: kib, files });
        }
        self.child.try_wait().expect("wait").is_none()
    }

    fn check(self, seconds: f64) {
        let output = self.child.wait_with_output().expect("the run has ended");
        let stdout = String::from_utf8_lossy(&output.stdout);
        let stderr = String::from_utf8_lossy(&output.stderr);
        let summary: Value =
            serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}\n{stderr}"));
        let truth = self.server.stop().expect("the truth");
        drop(self.dir);
        accounted_for(self.name, &summary, &truth);
        no_growth(self.name, &self.looks, seconds);
    }
}

/// Every arrival has one end, and the same one as the server saw.
fn accounted_for(name: &str, summary: &Value, truth: &Truth) {
    let count = |value: &Value| value.as_u64().unwrap_or(0);
    let (requests, dropped) = (count(&summary["requests"]), count(&summary["dropped"]));
    let offered =
        summary["offered_per_s"].as_f64().expect("offered") * summary["measured_s"].as_f64().expect("s");
    let broken: u64 = [Misbehaviour::Reset, Misbehaviour::HalfAnswer, Misbehaviour::Close]
        .map(|fault| truth.count(fault))
        .iter()
        .sum();
    let errors = summary["errors"].as_object().expect("errors");
    let failed: u64 = errors.values().map(count).sum();
    say(&format!(
        "{name}: {offered:.0} due, {requests} ended ({} answered, errors {}), {dropped} dropped; the server read {}, \
         answered {}, broke {broken}, took {} connections; {}",
        requests - failed,
        summary["errors"],
        truth.requests,
        truth.answered,
        truth.connections,
        summary["verdict"],
    ));
    assert_eq!((requests + dropped) as f64, offered.round(), "{name}: every arrival ends or is dropped");
    // one that waited for longer than its time-out never left, or left the server before its answer
    let never_sent = count(&errors.get("timeout").cloned().unwrap_or_default());
    assert!(
        requests - never_sent <= truth.requests && truth.requests <= requests,
        "{name}: {}",
        truth.requests
    );
    assert!(requests - failed <= truth.answered, "{name}: nothing was answered that the server did not");
    assert!(truth.answered <= requests - failed + never_sent, "{name}: no answer was lost");
    assert!(
        count(&errors["reset"]) <= broken && broken <= count(&errors["reset"]) + never_sent,
        "{name}: {errors:?}"
    );
    assert!(broken > 0 && truth.connections > broken, "{name}: it reconnected");
}

/// Memory and open files between the first settled quarter and the last.
fn no_growth(name: &str, looks: &[Look], seconds: f64) {
    let within = |from: f64, to: f64| -> Vec<&Look> {
        let settled = SETTLE_S.min(seconds / 4.0);
        let at = |share: f64| settled + share * (seconds - settled);
        looks.iter().filter(|look| (at(from)..at(to)).contains(&look.at_s)).collect()
    };
    let rss = |part: &[&Look]| median(part.iter().map(|look| look.rss_bytes).collect());
    let (first, last) = (within(0.0, 0.25), within(0.75, 1.0));
    assert!(first.len() >= 3 && last.len() >= 3, "{name}: too few looks");
    let (first_bytes, last_bytes) = (rss(&first), rss(&last));
    let slope = slope(&within(0.0, 1.0)) * 60.0;
    let files = |part: &[&Look]| part.iter().map(|look| look.files).max().unwrap_or(0);
    say(&format!(
        "{name}: memory {:.1} MiB in the first quarter, {:.1} MiB in the last, {:+.1} KiB a minute; open files {} and {}",
        first_bytes / 1_048_576.0,
        last_bytes / 1_048_576.0,
        slope / 1024.0,
        files(&first),
        files(&last)
    ));
    assert!(last_bytes - first_bytes < GROWTH_BYTES, "{name}: memory grows");
    assert!(last_bytes < MEMORY_BYTES, "{name}: memory");
    // as many connections are made in a second or two: what is not closed is over this at once
    assert!(files(&looks.iter().collect::<Vec<_>>()) <= CONNECTIONS + OTHER_FILES, "{name}: open files");
}

/// Theil and Sen's: the median of all pairs' slopes, bytes a second.
fn slope(looks: &[&Look]) -> f64 {
    // few enough that all pairs are soon looked at
    let looks: Vec<&&Look> = looks.iter().step_by(looks.len() / 300 + 1).collect();
    let pairs = looks.iter().enumerate().flat_map(|(i, a)| looks[i + 1..].iter().map(move |b| (a, b)));
    median(pairs.map(|(a, b)| (b.rss_bytes - a.rss_bytes) / (b.at_s - a.at_s)).collect())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

/// Past the test harness, which would keep it for itself where the test passes.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

#[test]
fn memory_and_files_do_not_grow_and_every_arrival_is_accounted_for() {
    let (seconds, rate) = (setting("TIDEMARK_SOAK_S", 12.0), setting("TIDEMARK_SOAK_RATE", 400.0));
    let mut both = [("plain", false), ("TLS", true)].map(|(name, tls)| Soak::start(name, tls, seconds, rate));
    let longest = Duration::from_secs_f64(seconds + 120.0);
    loop {
        let runs = both.iter_mut().map(Soak::look).fold(false, |any, one| any | one);
        if !runs {
            break;
        }
        if both[0].began.elapsed() > longest {
            both.iter_mut().for_each(|one| drop(one.child.kill()));
            panic!("the runs did not end within {longest:?}");
        }
        std::thread::sleep(LOOK_EVERY);
    }
    both.into_iter().for_each(|one| one.check(seconds));
}
