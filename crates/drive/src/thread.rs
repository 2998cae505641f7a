//! The loop of a driver thread: one for all load models.
//!
//! Each turn waits for sockets until the next thing is due, deals with every socket's news, then with alarms, then
//! with arrivals. What a session does in between is in [`exchange`](crate::exchange).

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use tidemark_scenario::Shared;
use tidemark_scenario::plan::SessionKind;

use crate::answer::Scratch;
use crate::arrivals::{Arrival, Due, Schedule};
use crate::clock::Clock;
use crate::connection::Pool;
use crate::http2::Http2Io;
use crate::io::pipeline::PipelineIo;
use crate::io::tls::TlsIo;
use crate::io::{Handshakes, Io};
use crate::record::{Gauges, Recorder};
use crate::request::Prepared;
use crate::rests::Rests;
use crate::rpc::{self, RpcIo};
use crate::session::{Session, Weights};
use crate::target::{Rpc, Target};
use crate::timers::{Alarm, Timers};

/// Most arrivals that are begun before sockets have their turn again.
const ARRIVALS_PER_TURN: usize = 64;
/// Most alarms that are dealt with before sockets have their turn again.
const ALARMS_PER_TURN: usize = 256;

/// What the threads are told from outside.
#[derive(Debug, Default)]
pub(crate) struct Control(AtomicU8);

const GO_ON: u8 = 0;
const STOP: u8 = 1;
const ABORT: u8 = 2;

impl Control {
    /// No new arrivals; what is under way is waited for.
    pub fn stop(&self) {
        self.0.fetch_max(STOP, Ordering::Relaxed);
    }

    /// An end at once.
    pub fn abort(&self) {
        self.0.fetch_max(ABORT, Ordering::Relaxed);
    }

    fn read(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How a thread's part of the drive ended.
#[derive(Debug, Default)]
pub(crate) struct ThreadEnd {
    /// When.
    pub ended_ns: u64,
    /// Whether it was told to.
    pub interrupted: bool,
    /// Requests under way that an abort left without an end.
    pub unfinished: u64,
    /// Requests that were still under way when the drain was over, counted as timed out.
    pub cut_off: u64,
    /// Intervals that nobody took in time.
    pub lost_intervals: u64,
    /// Turns of sessions that were ended because they did nothing but compute.
    pub spent_turns: u64,
    /// Handshakes of its connections.
    pub handshakes: Handshakes,
    /// Arrivals that the limit of sessions in flight let wait, and those that it dropped.
    pub limited: (u64, u64),
    /// Messages of WebSockets that no step took.
    pub unexpected_messages: u64,
    /// Rows that sessions were given though others held them, because all were held.
    pub rows_not_alone: u64,
    /// Requests that waited in the driver, because the server took fewer streams than was thought.
    pub held: u64,
    /// Why it could not go on.
    pub broken: Option<std::io::Error>,
}

/// Bounds of one thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    /// Sessions that may wait for a connection.
    pub waiting: usize,
    /// Longest time to make a connection.
    pub connect_timeout_ns: u64,
    /// Longest wait for requests under way at the end.
    pub drain_ns: u64,
}

/// Everything that a thread owns.
pub(crate) struct Thread<'a, I: Io> {
    pub clock: Clock,
    pub io: I,
    pub control: Arc<Control>,
    pub shared: &'a Shared,
    pub kinds: &'a [SessionKind],
    pub weights: Weights,
    pub prepared: Vec<Prepared>,
    pub schedule: Schedule,
    pub timers: Timers,
    pub recorder: Recorder,
    pub pool: Pool,
    pub bounds: Bounds,
    /// Whether a connection carries more than one request.
    pub keep_alive: bool,
    pub random: fastrand::Rng,
    pub ledger_seed: u64,
    pub rests: Rests,
    pub flow: Flow,
}

/// The sessions of a thread and what goes round between them.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// All sessions, by number.
    pub sessions: Vec<Session>,
    /// Numbers of those that are nobody's.
    pub free: Vec<u32>,
    /// Sessions that wait for a connection, with the ticket of their waiting; some may have left.
    pub waiting: VecDeque<(u32, u32)>,
    /// How many really wait.
    pub waiting_count: usize,
    /// Sessions that were given a connection and go on in this turn.
    pub granted: VecDeque<u32>,
    /// Variables of the kind that has most.
    pub slots: usize,
    /// Open connections.
    pub open: u64,
    /// Whether nothing new begins any more.
    pub draining: bool,
    /// Turns that were ended because the session did nothing but compute.
    pub spent_turns: u64,
    /// Messages of WebSockets that no step took.
    pub unexpected_messages: u64,
    /// Buffers.
    pub scratch: Scratch,
}

impl<'a, I: Io> Thread<'a, I> {
    /// The same thread over another back end, made of its own.
    pub fn over<J: Io>(self, wrap: impl FnOnce(I) -> J) -> Thread<'a, J> {
        Thread {
            clock: self.clock,
            io: wrap(self.io),
            control: self.control,
            shared: self.shared,
            kinds: self.kinds,
            weights: self.weights,
            prepared: self.prepared,
            schedule: self.schedule,
            timers: self.timers,
            recorder: self.recorder,
            pool: self.pool,
            bounds: self.bounds,
            keep_alive: self.keep_alive,
            random: self.random,
            ledger_seed: self.ledger_seed,
            rests: self.rests,
            flow: self.flow,
        }
    }

    /// As [`run`](Thread::run), by calls or in the version of HTTP that the target speaks, with every connection secured where it
    /// wants that, and with `depth` requests at once on each.
    pub fn run_to(self, target: &Target, depth: usize) -> (ThreadEnd, Recorder) {
        let connections = self.pool.most().div_ceil(depth);
        if let Some(rpc) = &target.rpc {
            return self.run_calls(target, rpc, connections, depth);
        }
        let (is_secure, keep_alive) = (target.tls.is_some(), self.keep_alive);
        let streams = |io| Http2Io::new(io, connections, depth, is_secure, keep_alive);
        match (&target.tls, target.http2) {
            (None, None) => self.run_deep(connections, depth),
            (None, Some(_)) => self.over(streams).run(),
            (Some(tls), None) => {
                self.over(|io| TlsIo::new(io, tls, connections)).run_deep(connections, depth)
            }
            (Some(tls), Some(_)) => {
                let thread = self.over(|io| TlsIo::new(io, tls, connections));
                thread.over(|io| Http2Io::new(io, connections, depth, is_secure, keep_alive)).run()
            }
        }
    }

    /// Requests are remote calls.
    fn run_calls(
        mut self,
        target: &Target,
        rpc: &Rpc,
        connections: usize,
        depth: usize,
    ) -> (ThreadEnd, Recorder) {
        let place = rpc::Place {
            authority: target.authority.clone(),
            path: rpc.path.clone(),
            payload_bytes: self.pool.body_bytes(),
        };
        let random = self.random.fork();
        match &target.tls {
            None => self.over(|io| RpcIo::new(io, place, connections, depth, random)).run(),
            Some(tls) => {
                let thread = self.over(|io| TlsIo::new(io, tls, connections));
                thread.over(|io| RpcIo::new(io, place, connections, depth, random)).run()
            }
        }
    }

    fn run_deep(self, connections: usize, depth: usize) -> (ThreadEnd, Recorder) {
        match depth {
            1 => self.run(),
            _ => self.over(|io| PipelineIo::new(io, connections, depth)).run(),
        }
    }
}

impl<I: Io> Thread<'_, I> {
    /// Carries this thread's share of the load out.
    pub fn run(mut self) -> (ThreadEnd, Recorder) {
        self.recorder.begin(self.clock.now_ns());
        let mut end = ThreadEnd::default();
        let mut drain_end_ns = u64::MAX;
        loop {
            let now_ns = self.clock.now_ns();
            let told = self.control.read();
            end.interrupted |= told != GO_ON;
            if told == ABORT {
                end.unfinished = self.recorder.outstanding();
                break;
            }
            // Where the driver is late, what was due before the end still begins: it is never silently skipped.
            let over = now_ns >= self.schedule.end_ns() && self.schedule.is_over();
            if !self.flow.draining && (told == STOP || over || self.is_used_up()) {
                self.flow.draining = true;
                let vain = self.schedule.stop(now_ns);
                self.give_up_unbegun(vain);
                drain_end_ns = now_ns.saturating_add(self.bounds.drain_ns);
            }
            if self.flow.draining && (self.recorder.outstanding() == 0 || now_ns >= drain_end_ns) {
                end.cut_off = self.recorder.outstanding();
                self.cut_off(now_ns);
                break;
            }
            if self.schedule.is_once() && self.is_done() {
                break;
            }
            if let Err(error) = self.turn(now_ns, drain_end_ns) {
                end.broken = Some(error);
                end.unfinished = self.recorder.outstanding();
                end.interrupted = true;
                break;
            }
        }
        // However it ended: sessions that were under way hold nothing any more.
        for session in &mut self.flow.sessions {
            session.rows.give_back(self.shared);
            end.rows_not_alone += session.rows.not_alone;
        }
        end.ended_ns = self.clock.now_ns();
        let gauges = self.gauges();
        self.recorder.finish(end.ended_ns, gauges);
        end.lost_intervals = self.recorder.lost();
        end.spent_turns = self.flow.spent_turns;
        end.handshakes = self.io.handshakes();
        end.held = self.io.held();
        end.limited = self.schedule.limited();
        end.unexpected_messages = self.flow.unexpected_messages;
        (end, self.recorder)
    }

    /// As many sessions as the plan allows have begun, and ended.
    fn is_used_up(&self) -> bool {
        self.schedule.is_used_up() && self.flow.free.len() == self.flow.sessions.len()
    }

    /// A single session is done when it is over, or something failed.
    fn is_done(&self) -> bool {
        let over = self.schedule.is_over() && self.flow.free.len() == self.flow.sessions.len();
        over || self.recorder.first_failure().is_some()
    }

    fn turn(&mut self, now_ns: u64, drain_end_ns: u64) -> std::io::Result<()> {
        self.cut(now_ns);
        let mut until_ns = self.recorder.edge_ns().min(self.recorder.look_ns()).min(drain_end_ns);
        if !self.flow.draining {
            until_ns = until_ns.min(self.schedule.end_ns());
        }
        if let Some(due_ns) = self.schedule.next_ns() {
            until_ns = until_ns.min(due_ns);
        }
        if let Some(alarm_ns) = self.timers.next_ns() {
            until_ns = until_ns.min(alarm_ns);
        }
        let mut at_most = Duration::from_nanos(until_ns.saturating_sub(now_ns));
        if let Some(rest) = self.rests.rest(now_ns, until_ns) {
            self.io.rest(rest)?;
            at_most = Duration::ZERO;
        }
        self.io.wait(Some(at_most))?;
        while let Some((connection, event)) = self.io.next() {
            self.on_event(connection, event);
            self.run_granted();
        }
        let now_ns = self.clock.now_ns();
        for _ in 0..ALARMS_PER_TURN {
            let Some((session, alarm)) = self.timers.pop(now_ns) else { break };
            self.rests.begun();
            self.on_alarm(session, alarm, now_ns);
            self.run_granted();
        }
        for _ in 0..ARRIVALS_PER_TURN {
            match self.schedule.due(now_ns, &mut self.random) {
                Due::Nothing => break,
                Due::Begin(arrival) => {
                    self.rests.begun();
                    self.arrive(arrival, now_ns);
                    self.run_granted();
                }
                Due::Waits => {}
                Due::Dropped => self.give_up_unbegun(1),
            }
        }
        Ok(())
    }

    /// A session begins.
    fn arrive(&mut self, arrival: Arrival, now_ns: u64) {
        let session = match self.flow.free.pop() {
            Some(session) => session as usize,
            None if self.flow.sessions.len() < self.most_sessions() => {
                self.flow.sessions.push(Session::default());
                self.flow.sessions.len() - 1
            }
            None => {
                self.schedule.leave(arrival.origin, now_ns);
                return self.give_up_unbegun(1);
            }
        };
        self.flow.sessions[session].origin = arrival.origin;
        self.begin_session(session, arrival.due_ns, arrival.ready_ns, false);
        self.run_session(session, now_ns);
    }

    /// Counts sessions that were due and never began.
    pub fn give_up_unbegun(&mut self, sessions: u64) {
        for _ in 0..sessions {
            self.recorder.offered();
            self.recorder.dropped();
        }
    }

    /// Every session holds a connection, waits for one, or thinks before its first request; the last two together
    /// are bounded like those that wait.
    fn most_sessions(&self) -> usize {
        self.pool.most() + self.bounds.waiting
    }

    /// Goes on with sessions that were given the connection that they waited for.
    fn run_granted(&mut self) {
        while let Some(session) = self.flow.granted.pop_front() {
            self.go_granted(session as usize);
        }
    }

    /// Counts what is still under way as timed out.
    fn cut_off(&mut self, now_ns: u64) {
        for session in 0..self.flow.sessions.len() {
            if self.flow.sessions[session].stand.is_due() {
                self.give_up(session, now_ns);
                let Session { origin, begun_due_ns, .. } = self.flow.sessions[session];
                self.give_up_unbegun(self.schedule.missed(origin, begun_due_ns));
            }
        }
        debug_assert_eq!(self.recorder.outstanding(), 0, "every request that was due has an end");
    }

    /// Ends the intervals that are over, and looks at the clock where that is due.
    pub fn cut(&mut self, now_ns: u64) {
        if now_ns >= self.recorder.edge_ns() {
            let gauges = self.gauges();
            self.recorder.cut(now_ns, gauges);
        }
        if now_ns >= self.recorder.look_ns() {
            self.recorder.look(now_ns);
        }
    }

    fn gauges(&self) -> Gauges {
        Gauges {
            waiting: self.flow.waiting_count as u64,
            unbegun: self.schedule.waiting(),
            connections: self.io.connections(self.flow.open),
            traffic: self.io.traffic(),
        }
    }

    fn on_alarm(&mut self, session: usize, alarm: Alarm, now_ns: u64) {
        match alarm {
            Alarm::Timeout => self.on_timeout(session, now_ns),
            Alarm::Wake => self.on_wake(session, now_ns),
        }
    }
}
