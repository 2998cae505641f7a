use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::mpsc::sync_channel;
use std::time::{Instant, SystemTime};

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Curve, Limits, Load, LoadModel, Op, Phase, RequestPlan, Spacing};

use tidemark_record::ThreadInterval;

use super::*;
use crate::clock::nanoseconds;
use crate::engine::connection::Pool;
use crate::io::{Event, Io};
use crate::observation::record::Exchange;
use crate::protocols::transport::Setup;
use crate::session::arrivals::span;
use crate::testing;

/// Connections that are made at once and never answer. What is sent lies until it is handed over or waited.
#[derive(Default)]
struct Silent {
    opened: VecDeque<usize>,
    output: Vec<u8>,
    /// Sent, and not handed over.
    held: usize,
    counts: Rc<Cell<Counts>>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// How often something was handed over, and how often a wait began with something held.
    handed_over: usize,
    held_back: usize,
    slept: usize,
}

impl Io for Silent {
    fn point(&mut self, _: usize, _: std::net::SocketAddr) {}

    fn open(&mut self, connection: usize) -> std::io::Result<()> {
        self.opened.push_back(connection);
        Ok(())
    }

    fn output(&mut self, _: usize) -> &mut Vec<u8> {
        self.output.clear();
        &mut self.output
    }

    fn send(&mut self, _: usize) -> std::io::Result<()> {
        self.held += 1;
        Ok(())
    }

    fn hand_over(&mut self) -> std::io::Result<()> {
        let counts = self.counts.get();
        self.counts.set(Counts { handed_over: counts.handed_over + usize::from(self.held > 0), ..counts });
        self.held = 0;
        Ok(())
    }

    fn is_sending(&self, _: usize) -> bool {
        self.held > 0
    }

    fn close(&mut self, _: usize) {}

    fn wait(&mut self, at_most: Option<Duration>) -> std::io::Result<()> {
        let time = at_most.filter(|time| !time.is_zero() && self.opened.is_empty());
        if let Some(time) = time {
            let Counts { handed_over, held_back, slept } = self.counts.get();
            let is_held_back = self.held > 0 && nanoseconds(time) < SOON_NS;
            let held_back = held_back + usize::from(is_held_back);
            self.counts.set(Counts { handed_over, held_back, slept: slept + 1 });
            std::thread::sleep(time);
        }
        self.held = 0;
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        Some((self.opened.pop_front()?, Event::Opened))
    }

    fn received(&self) -> &[u8] {
        &[]
    }

    fn traffic(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// Answers what was asked before a wait as that ends; each answer then takes a while until it is handed on.
#[derive(Default)]
struct Slow {
    opened: VecDeque<usize>,
    output: Vec<u8>,
    asked: Vec<usize>,
    ready: VecDeque<usize>,
    taken_at: Option<Instant>,
}

/// How long each answer of [`Slow`] takes until it is handed on.
const HANDLING: Duration = Duration::from_millis(8);

impl Io for Slow {
    fn point(&mut self, _: usize, _: std::net::SocketAddr) {}

    fn open(&mut self, connection: usize) -> std::io::Result<()> {
        self.opened.push_back(connection);
        Ok(())
    }

    fn output(&mut self, _: usize) -> &mut Vec<u8> {
        self.output.clear();
        &mut self.output
    }

    fn send(&mut self, connection: usize) -> std::io::Result<()> {
        self.asked.push(connection);
        Ok(())
    }

    fn is_sending(&self, _: usize) -> bool {
        false
    }

    fn close(&mut self, _: usize) {}

    fn wait(&mut self, _: Option<Duration>) -> std::io::Result<()> {
        self.ready.extend(self.asked.drain(..));
        self.taken_at = Some(Instant::now());
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        if let Some(opened) = self.opened.pop_front() {
            return Some((opened, Event::Opened));
        }
        let connection = self.ready.pop_front()?;
        std::thread::sleep(HANDLING);
        Some((connection, Event::Received { closing: false }))
    }

    fn received(&self) -> &[u8] {
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    }

    fn taken_at(&self) -> Option<Instant> {
        self.taken_at
    }

    fn traffic(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// 200 arrivals within a tenth of a second, over connections that never answer.
fn driven(spin: bool) -> Counts {
    let silent = Silent::default();
    let counts = silent.counts.clone();
    drive_over(silent, LoadModel::Open(Spacing::Constant), 2_000.0, spin);
    counts.get()
}

/// A tenth of a second of this load; what was recorded.
fn drive_over(io: impl Io + 'static, model: LoadModel, level: f64, spin: bool) -> Vec<ThreadInterval> {
    let hold = Phase {
        name: "hold".into(),
        duration: Duration::from_millis(100),
        from: level,
        to: level,
        curve: Curve::Line,
        measured: true,
    };
    let request = RequestPlan {
        label: 0,
        target: 0,
        ask: testing::get("/"),
        ledger: None,
        key: None,
        timeout: Duration::from_secs(10),
        extractions: Vec::new(),
        checks: Vec::new(),
        shown_body_bytes: 0,
        follow: None,
    };
    let plan = Plan {
        sessions: vec![testing::kind(vec![Op::Request(0), Op::End])],
        limits: Limits { connections: 200, drain: Duration::ZERO, ..Limits::default() },
        load: Load::new(model, vec![hold]),
        ..testing::plan(vec![request])
    };
    let target = testing::target();
    let mut random = fastrand::Rng::with_seed(1);
    let clock = Clock::new(Instant::now(), SystemTime::now());
    let (window, _) = span(&plan.load, 0);
    let setup = Setup {
        plan: &plan,
        origin: target.origin(),
        sockets: 200,
        depth: 1,
        opens_websockets: false,
        random: &mut random,
    };
    let transport = target.transport(io, setup);
    let (sink, intervals) = sync_channel(16);
    let (_back, returned) = sync_channel(16);
    let mut thread = Thread {
        clock,
        transport,
        control: Arc::new(Control::default()),
        shared: &Shared::new(0, Vec::new()),
        kinds: &plan.sessions,
        weights: Weights::new(&plan.sessions),
        prepared: Prepared::all(&plan, &plan.sessions, std::slice::from_ref(&target)),
        schedule: Schedule::new(&plan.load, &plan.limits, 0, 0, 1, &mut random),
        timers: Timers::default(),
        recorder: Recorder::new(0, 1, 0, window, Some(Exchange { sink, returned })),
        origins: Vec::new(),
        sites: Vec::new(),
        pools: Pools::new(vec![Pool::new(200, 200, plan.limits.choose)]),
        bounds: Bounds { waiting: 1_000, connect_timeout_ns: u64::MAX, drain_ns: 0 },
        random,
        ledger_seed: 0,
        spin,
        timestamps: Timestamps::Read,
        ahead: Vec::new(),
        witness: None,
        fence_ns: None,
        opens_websockets: false,
        program: None,
        code: None,
        flow: Flow { slots: 1, open: vec![0], ..Flow::default() },
    };
    while thread.clock.now_ns() < thread.schedule.end_ns() {
        thread.turn(thread.clock.now_ns(), u64::MAX).unwrap();
    }
    let gauges = thread.gauges();
    thread.recorder.finish(thread.clock.now_ns(), gauges);
    drop(thread);
    intervals.iter().collect()
}

#[test]
fn what_is_done_with_answers_is_in_no_service_time() {
    const USERS: usize = 1;
    let intervals = drive_over(Slow::default(), LoadModel::Closed, USERS as f64, true);
    let series = || intervals.iter().flat_map(|interval| &interval.series);
    let answers: u64 = series().map(|of| of.service_time_us.len()).sum();
    let shortest_us = series().map(|of| of.service_time_us.min()).min();
    let longest_us = series().map(|of| of.service_time_us.value_at_quantile(0.5)).max();
    assert!(answers >= USERS as u64, "{answers} answers");
    // a machine that is busy makes single times longer
    let handling_us = HANDLING.as_micros() as u64;
    assert!(shortest_us < Some(handling_us) && longest_us < Some(handling_us), "{longest_us:?} µs");
}

#[test]
fn what_was_sent_has_left_before_a_short_wait_begins() {
    // a machine that stands still meanwhile leaves no wait
    let told = (0..3).map(|_| driven(false)).find(|counts| counts.handed_over > 0);
    let Counts { held_back, slept, .. } = told.expect("a wait to tell it by");
    assert_eq!(held_back, 0, "of {slept} waits");
}

#[test]
fn who_spins_never_sleeps() {
    let Counts { handed_over, slept, .. } = driven(true);
    assert_eq!((handed_over, slept), (0, 0));
}
