//! A driver that is the limit is told from one that is only busy.
//!
//! What a request costs the driver is measured first, so that the same load means the same share of a core on every
//! machine and in every build: most of a core alone is enough; the same work beside others who burn that core is not;
//! nor is the work of three cores on one.
//!
//! Where the machine itself starves a driver that should have had enough, `invalid` is right. Then the kernel's own
//! account of it, read from outside, must say so, and the test prints it; otherwise it fails.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::watch::{Running, Watched};
use rustix::process::Signal;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tidemark_truth::{Behaviour, Delay, Server};

const HOLD_S: f64 = 2.0;
/// Share of a core that a driver with enough of it needs.
const BUSY: f64 = 0.7;
/// Burners beside the starved driver: they leave it a ninth of the core.
const BURNERS: usize = 8;
/// Held up for less than this share of the time, a driver cannot be late with one request in a hundred.
const HELD_UP_MIN: f64 = 0.01;
const DELAY_S: f64 = 0.002;
/// Answers after which a load is known to have begun: more than whoever looks whether the server is there.
const BEGUN: u64 = 10;
/// How often a load that was over too early is tried again.
const ATTEMPTS: usize = 10;

/// What a session does: little, so that a request costs the driver what it must.
const PLAIN: &str = "[{GET: /}]";
/// The same after so much of the driver's own work that no server is slower.
const LABORIOUS: &str = "[{repeat: 500, steps: [{set: {x: '${random(1, 9)}'}}]}, {GET: /}]";

fn drive(server: &Server, load: &str, args: &[&str]) -> Watched {
    drive_with(PLAIN, server, load, args)
}

fn drive_with(steps: &str, server: &Server, load: &str, args: &[&str]) -> Watched {
    start(steps, server, load, args).wait()
}

fn start(steps: &str, server: &Server, load: &str, args: &[&str]) -> Running {
    let scenario = format!(
        "name: driver\nsystem: {{url: 'http://{}'}}\nload: {load}\n\
         limits: {{connections: 512, drain: 2s}}\nsessions: {{one: {{steps: {steps}}}}}\n",
        server.address()
    );
    crate::watch::start(&scenario, &[&["--threads", "1"], args].concat())
}

fn say(name: &str, run: &Watched) {
    let (driver, machine) = (&run.summary["driver"], run.machine);
    let _ = writeln!(
        std::io::stderr(),
        "{name}: {} {}\n  on a CPU {:.2} s, without a core {:.2} s, stolen {:.2} s; by itself {}, lag p99 {} µs, waited {} of the time and {} µs a time",
        run.summary["verdict"]["status"],
        run.summary["verdict"]["reasons"],
        machine.cpu_s,
        machine.waited_s,
        machine.stolen_s,
        driver["busiest_thread_share"],
        driver["lag_us"]["p99"],
        driver["waited_share"],
        driver["core_wait_us"],
    );
}

/// What held the driver up is told, and the system is not blamed for it: `invalid` where an objective could have been met
/// without that, `pass` where all are met in spite of it.
fn assert_caught(name: &str, run: &Watched) {
    say(name, run);
    let limits = run.summary["driver"]["limits"].as_array();
    assert!(limits.is_some_and(|limits| !limits.is_empty()), "{name}: {}", run.summary);
    let verdict = &run.summary["verdict"];
    if verdict["status"] == "pass" {
        return assert_eq!(run.status, 0, "{name}");
    }
    assert_eq!((&verdict["status"], run.status), (&"invalid".into(), 3), "{name}: {verdict}");
    let why = verdict["reasons"][0].as_str().expect("a reason");
    assert!(why.starts_with("driver-bound: "), "{name}: {why}");
}

fn assert_not_caught(name: &str, run: &Watched) {
    say(name, run);
    assert!(run.summary["requests"].as_u64().is_some_and(|n| n > 0), "{name}: {}", run.stderr);
    if run.summary["driver"]["limits"].is_null() {
        assert_eq!((&run.summary["verdict"]["status"], run.status), (&"pass".into(), 0), "{name}");
        return;
    }
    let held_up = (run.machine.waited_s + run.machine.stolen_s) / HOLD_S;
    let text = format!("{name}: the machine held the driver up for {:.1} % of the time", held_up * 100.0);
    assert!(held_up > HELD_UP_MIN, "{text}, and yet: {}", run.summary["verdict"]);
    let _ = writeln!(std::io::stderr(), "{text}: the verdict is right, and this side cannot be shown here");
}

/// Threads that burn one core until they are dropped.
struct Burners(Arc<AtomicBool>);

impl Burners {
    fn start(core: usize) -> Burners {
        let stop = Arc::new(AtomicBool::new(false));
        for _ in 0..BURNERS {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                let mut set = CpuSet::new();
                set.set(core);
                sched_setaffinity(None, &set).expect("a core of ours");
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Burners(stop)
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_driver_that_is_the_limit_is_caught_and_a_busy_one_is_not() {
    let delays = vec![Delay::Fixed(Duration::from_secs_f64(DELAY_S))];
    let server = Server::start(Behaviour { delays, ..Behaviour::default() }).expect("a server");
    let cost_s = |steps: &str, load: &str| {
        let run = drive_with(steps, &server, load, &[]);
        let cost_s = run.machine.cpu_s / run.summary["requests"].as_f64().expect("requests");
        assert!(cost_s > 0.0, "{}", run.stderr);
        cost_s
    };
    // many at once share what a request at a low rate pays alone: waking up
    let laborious_s = cost_s(LABORIOUS, "{users: 500, hold: 1s}");
    let cost_s = cost_s(PLAIN, "{rate: 2k/s, spacing: constant, hold: 1s}");
    let rate = (BUSY / cost_s).min(40_000.0).round();
    // users of a closed loop wait for the server as well, and many answers are taken at once
    let users = (2.0 * rate * DELAY_S).ceil().min(500.0);
    let open = format!("{{rate: {rate}/s, spacing: constant, hold: {HOLD_S}s}}");
    let closed = |users: f64| format!("{{users: {users}, hold: {HOLD_S}s}}");
    let beyond = format!("{{rate: {}/s, spacing: constant, hold: {HOLD_S}s}}", (3.0 / laborious_s).round());
    let us = |s: f64| s * 1e6;
    let costs = format!(
        "{:.1} µs of CPU a request, {:.1} µs where the driver has more to do",
        us(cost_s),
        us(laborious_s)
    );
    let _ = writeln!(std::io::stderr(), "{costs}: {rate}/s or {users} users");

    assert_not_caught("open, busy", &drive(&server, &open, &[]));
    assert_not_caught("closed, busy", &drive(&server, &closed(users), &[]));
    assert_caught("open, three times too much", &drive_with(LABORIOUS, &server, &beyond, &[]));
    let cores = sched_getaffinity(None).expect("the cores of this process");
    let last = (0..CpuSet::MAX_CPU).rev().find(|core| cores.is_set(*core)).expect("a core");
    let _burners = Burners::start(last);
    let pin = format!("driver={last}");
    assert_caught("open, starved", &drive(&server, &open, &["--pin", &pin]));
    assert_caught("closed, starved", &drive(&server, &closed(500.0), &["--pin", &pin]));
}

/// The whole program stands still for a part of the measured window, under a load that nobody is late for: users who have
/// no schedule and no think time, of whom a stop makes only one response time each long.
#[test]
fn a_driver_that_stood_still_under_a_closed_load_is_caught() {
    const USERS: u64 = 4;
    const STOPPED_S: f64 = 1.5;
    let load = format!("{{users: {USERS}, hold: {}s}}", STOPPED_S + HOLD_S);
    let delays = vec![Delay::Fixed(Duration::from_secs_f64(DELAY_S))];
    let server = Server::start(Behaviour { delays, ..Behaviour::default() }).expect("a server");
    for _ in 0..ATTEMPTS {
        let (before, answered) = (Instant::now(), server.answered());
        let mut running = start(PLAIN, &server, &load, &[]);
        while server.answered() < answered + BEGUN && running.goes_on() {
            std::thread::sleep(Duration::from_millis(1));
        }
        running.signal(Signal::STOP);
        // the load began after `before`: all of the stop is within it; otherwise this test had no core for too long
        let is_in_time = before.elapsed().as_secs_f64() < HOLD_S;
        std::thread::sleep(Duration::from_secs_f64(STOPPED_S));
        running.signal(Signal::CONT);
        let run = running.wait();
        if is_in_time {
            assert_caught("stopped, closed", &run);
            let reasons = run.summary["driver"]["limits"].to_string();
            assert!(reasons.contains("the load generator itself was suspended for "), "{reasons}");
            let absent_s = run.summary["driver"]["absent_s"].as_f64().expect("an absence");
            assert!(absent_s > STOPPED_S / 2.0, "{absent_s} s: {reasons}");
            return;
        }
    }
    panic!("the load had been going on for too long before it could be stopped, {ATTEMPTS} times");
}

/// The whole program stands still from the first requests until the measured window is over: what was due meanwhile leaves
/// when nothing is measured any more.
#[test]
fn a_driver_that_stood_still_until_the_window_was_over_is_caught() {
    const RATE: u64 = 200;
    let all = (RATE as f64 * HOLD_S) as u64;
    let load = format!("{{rate: {RATE}/s, spacing: constant, hold: {HOLD_S}s}}");
    for _ in 0..ATTEMPTS {
        let server = Server::start(Behaviour::default()).expect("a server");
        let mut running = start(PLAIN, &server, &load, &[]);
        while server.answered() < BEGUN && running.goes_on() {
            std::thread::sleep(Duration::from_millis(1));
        }
        running.signal(Signal::STOP);
        let answered = server.answered();
        std::thread::sleep(Duration::from_secs_f64(HOLD_S));
        running.signal(Signal::CONT);
        let run = running.wait();
        // a machine that had no core for this test lets the load end before it is stopped
        if answered < all / 2 {
            assert_caught("stopped", &run);
            // most of the load was due while it stood still, also what had to make a connection first
            let lag_us = run.summary["driver"]["lag_us"]["p99"].as_f64().expect("a lag");
            assert!(lag_us > HOLD_S / 2.0 * 1e6, "{lag_us} µs");
            return;
        }
    }
    panic!("the load was over before it could be stopped, {ATTEMPTS} times");
}
