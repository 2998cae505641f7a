//! The loop of a driver thread: one for all load models.
//!
//! Each turn waits for sockets until the next thing is due, deals with every socket's news, then with alarms, then
//! with arrivals. What was sent has left before the clock is read by which it waits: sending takes as long as many a
//! wait, and one that began with it would end that much too late. What a session does in between is in [`exchange`](crate::engine::exchange).

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tidemark_record::ledger::Part;
use tidemark_record::{Counter, Counters, SlowRequest};
use tidemark_scenario::Shared;
use tidemark_scenario::plan::{SessionKind, SlotIndex};

use crate::clock::{Clock, MILLISECOND_NS};
use crate::engine::ahead::Ahead;
use crate::engine::connection::Pools;
use crate::engine::redirect::KnownOrigin;
use crate::engine::request::Prepared;
use crate::engine::timers::{Alarm, Timers};
use crate::engine::waiting::Queue;
use crate::io::Timestamps;
use crate::observation::record::{Gauges, Recorder};
use crate::observation::secret_variables::SecretVariables;
use crate::observation::witness::Witness;
use crate::protocols::transport::{Counts, Event, Transport};
use crate::session::answer::Scratch;
use crate::session::arrivals::{Arrival, Due, Origin, Schedule};
use crate::session::branches::BranchNumbers;
use crate::session::code::Code;
use crate::session::cookies::{CookieCounts, Site};
use crate::session::program::Program;
use crate::session::{Session, SessionState, Weights};

/// Most arrivals that are begun before sockets have their turn again.
const ARRIVALS_PER_TURN: usize = 64;
/// Most alarms that are dealt with before sockets have their turn again.
const ALARMS_PER_TURN: usize = 256;

/// Where the next thing is due within this time, how long sending takes matters to when that leaves; where it is not (the
/// How often a program is asked whether it is over, at most; nanoseconds.
const PROGRAM_ASKED_NS: u64 = 100_000_000;
/// users of a closed load wait for answers alone), sending and waiting are one call.
const SOON_NS: u64 = MILLISECOND_NS;

/// What the threads are told from outside.
#[derive(Debug, Default)]
pub(crate) struct Control {
    told: AtomicU8,
    /// When the first thread saw that it is to stop, nanoseconds since the run's zero; 0 before.
    stopped_ns: AtomicU64,
}

const GO_ON: u8 = 0;
const STOP: u8 = 1;
const ABORT: u8 = 2;

impl Control {
    /// No new arrivals; what is under way is waited for.
    pub fn stop(&self) {
        self.told.fetch_max(STOP, Ordering::Relaxed);
    }

    /// An end at once.
    pub fn abort(&self) {
        self.told.fetch_max(ABORT, Ordering::Relaxed);
    }

    fn read(&self) -> u8 {
        self.told.load(Ordering::Relaxed)
    }

    /// When sending was stopped: the first thread that asks decides it for all, so that their intervals are the same.
    fn stopped_at(&self, now_ns: u64) -> u64 {
        match self.stopped_ns.compare_exchange(0, now_ns, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => now_ns,
            Err(first_ns) => first_ns,
        }
    }

    /// The same afterwards; none where nobody stopped it while it sent.
    pub fn stopped_ns(&self) -> Option<u64> {
        Some(self.stopped_ns.load(Ordering::Relaxed)).filter(|at_ns| *at_ns > 0)
    }
}

/// How a thread's part of the drive ended.
#[derive(Debug, Default)]
pub(crate) struct ThreadEnd {
    /// When.
    pub ended_ns: u64,
    /// Whether it was told to.
    pub interrupted: bool,
    /// What is counted over the whole drive.
    pub counters: Counters,
    /// Intervals that nobody took in time.
    pub lost_intervals: u64,
    /// What they held for the ledger, where no later interval was taken.
    pub untaken: Option<Part>,
    /// Version and cipher suite of the first TLS handshake.
    pub tls: Option<String>,
    /// The slowest requests that were answered.
    pub slowest: Vec<SlowRequest>,
    /// Requests and variables of extractions that found nothing, and how often.
    pub not_found: Vec<(usize, (SlotIndex, u64, u64))>,
    /// Requests that followed redirects, and how many.
    pub hops: Vec<(usize, u64)>,
    /// Requests whose answers were redirects that nobody follows and no check is about, and how many.
    pub unfollowed: Vec<(usize, u64)>,
    /// Why it could not go on.
    pub broken: Option<std::io::Error>,
    /// Whether its program ended it.
    pub program_stopped: bool,
    /// Why its program could not.
    pub program_failed: Option<String>,
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
pub(crate) struct Thread<'a> {
    pub clock: Clock,
    pub transport: Box<dyn Transport>,
    pub control: Arc<Control>,
    pub shared: &'a Shared,
    pub kinds: &'a [SessionKind],
    pub weights: Weights,
    pub prepared: Vec<Prepared>,
    pub schedule: Schedule,
    pub timers: Timers,
    pub recorder: Recorder,
    /// Where targets are, by number.
    pub origins: Vec<KnownOrigin>,
    /// What cookies look at in them.
    pub sites: Vec<Site>,
    /// Connections, by target.
    pub pools: Pools,
    pub bounds: Bounds,
    pub random: fastrand::Rng,
    pub ledger_seed: u64,
    /// Whether it never sleeps.
    pub spin: bool,
    pub timestamps: Timestamps,
    /// What is made ahead, by target.
    pub ahead: Vec<Ahead>,
    /// Who sees requests as they were, if anybody does.
    pub witness: Option<Box<Witness>>,
    /// What sessions do at [`Op::Program`](tidemark_scenario::plan::Op::Program).
    pub program: Option<Box<dyn Program>>,
    /// What runs the code of sessions ([`Op::Code`](tidemark_scenario::plan::Op::Code)).
    pub code: Option<Box<dyn Code>>,
    /// Whether the program may open WebSockets.
    pub opens_websockets: bool,
    /// When no request may leave any more, where there is such a moment.
    pub fence_ns: Option<Arc<AtomicU64>>,
    pub flow: Flow,
}

/// The sessions of a thread and what goes round between them.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// All sessions, by number.
    pub sessions: Vec<Session>,
    /// Numbers of those that are nobody's.
    pub free: Vec<u32>,
    /// Numbers of branches.
    pub branches: BranchNumbers,
    /// Requests of branches that were cut off by their session's end.
    pub cut_off: u64,
    /// Those that wait for a connection.
    pub queue: Queue,
    /// Variables whose values no example may show.
    pub secrets: SecretVariables,
    /// Variables of the kind that has most.
    pub slots: usize,
    /// Labels of the plan.
    pub labels: usize,
    /// Of each kind of sessions, whether its code looks at answers, so that the last one is kept.
    pub keeps_answers: Vec<bool>,
    /// Whether any request may bind a connection to its session; where none does, nothing is asked about that.
    pub binds: bool,
    /// Whether sessions of any kind have a time.
    pub has_grace: bool,
    /// Open connections, by target.
    pub open: Vec<u64>,
    /// Whether nothing new begins any more.
    pub draining: bool,
    /// Sessions whose program has more to do for them.
    pub in_program: u64,
    /// Whether a program has said that nothing more begins.
    pub is_stopped: bool,
    /// Why a program cannot go on.
    pub program_failed: Option<String>,
    /// Turns that were ended because the session did nothing but compute.
    pub spent_turns: u64,
    /// Requests that were sent again, over another connection, because the server had not taken them.
    pub sent_again: u64,
    /// How much had come that answers no request, when that was looked at last.
    pub heard: u64,
    /// The reading that brought the last event, where several events may come of one.
    pub reading: Option<u64>,
    /// The socket that it came over, whose next requests leave when all of it is dealt with.
    pub leaves_with: Option<usize>,
    /// Sessions whose requests do.
    pub leaving: Vec<u32>,
    /// The connection whose answer comes after those for which everything is fetched.
    pub upcoming: Option<usize>,
    /// When the last event's bytes were read.
    pub read_ns: u64,
    /// How late that was. None: not asked yet; Some(None): the kernel does not tell.
    pub read_late_ns: Option<Option<u64>>,
    /// Buffers.
    pub scratch: Scratch,
    /// Where a redirect leads.
    pub path: Vec<u8>,
    /// Cookies that were not kept.
    pub cookies: CookieCounts,
}

impl Thread<'_> {
    /// Carries this thread's share of the load out.
    pub fn run(mut self) -> (ThreadEnd, Recorder) {
        self.recorder.begin(self.clock.now_ns());
        let mut end = ThreadEnd::default();
        let mut drain_end_ns = u64::MAX;
        let mut asks_ns = 0;
        loop {
            let now_ns = self.clock.now_ns();
            let told = self.control.read();
            let is_fenced = self.is_fenced();
            end.interrupted |= told != GO_ON || is_fenced;
            if told == ABORT || is_fenced {
                break;
            }
            // Where the driver is late, what was due before the end still begins: it is never silently skipped.
            let end_ns = self.schedule.end_ns();
            let over = now_ns >= end_ns
                && self.is_over()
                && self.timers.next_ns().is_none_or(|alarm_ns| alarm_ns >= end_ns);
            if now_ns >= asks_ns {
                asks_ns = now_ns.saturating_add(PROGRAM_ASKED_NS);
                self.flow.is_stopped |= self.program.as_ref().is_some_and(|program| program.is_over());
            }
            if !self.flow.draining && (told == STOP || over || self.is_used_up() || self.flow.is_stopped) {
                self.flow.draining = true;
                if told == STOP {
                    self.recorder.end_window(self.control.stopped_at(now_ns), now_ns);
                }
                self.give_up_arrivals(now_ns);
                drain_end_ns = now_ns.saturating_add(self.bounds.drain_ns);
            }
            let is_idle = || self.recorder.is_idle() && !self.any_finishes();
            if self.flow.draining && (is_idle() || now_ns >= drain_end_ns) {
                break;
            }
            if self.schedule.is_once() && self.is_done() {
                break;
            }
            if let Err(error) = self.turn(now_ns, drain_end_ns) {
                end.broken = Some(error);
                end.interrupted = true;
                break;
            }
        }
        end.counters[Counter::Unfinished] = self.recorder.outstanding() + self.flow.cut_off;
        self.cut_off(self.clock.now_ns());
        // However it ended: sessions that were under way hold nothing any more.
        for session in &mut self.flow.sessions {
            session.give_rows_back(self.shared);
            end.counters[Counter::RowsNotAlone] += session.rows_not_alone();
        }
        for (request, prepared) in self.prepared.iter().enumerate() {
            end.not_found.extend(prepared.probe.not_found().map(|told| (request, told)));
            let counted =
                [(&mut end.hops, prepared.hops), (&mut end.unfollowed, prepared.probe.unfollowed())];
            counted
                .into_iter()
                .filter(|(_, count)| *count > 0)
                .for_each(|(all, count)| all.push((request, count)));
        }
        end.program_stopped = self.flow.is_stopped;
        end.program_failed = self.flow.program_failed.take();
        end.ended_ns = self.clock.now_ns();
        let gauges = self.gauges();
        self.recorder.finish(end.ended_ns, gauges);
        end.lost_intervals = self.recorder.lost();
        end.untaken = (end.lost_intervals > 0).then(|| self.recorder.take_ledger());
        end.slowest = self.recorder.take_slowest();
        self.count(&mut end);
        (end, self.recorder)
    }

    /// Whether no request may leave any more. It reads the clock anew: the thread may just have stood still.
    #[inline]
    fn is_fenced(&self) -> bool {
        let fence_ns = self.fence_ns.as_ref().map(|at| at.load(Ordering::Relaxed));
        fence_ns.is_some_and(|fence_ns| self.clock.now_ns() >= fence_ns)
    }

    /// What is counted over the whole drive.
    fn count(&self, end: &mut ThreadEnd) {
        let (waited, dropped) = self.schedule.limited();
        let Counts { handshakes, held, unclaimed, unsolicited, uploads_cut, left_open, events, redirects } =
            self.transport.counts();
        let cookies = self.flow.cookies;
        let trace = self.witness.as_ref().map(|witness| witness.trace_counts()).unwrap_or_default();
        end.counters += &Counters::from([
            (Counter::SpentTurns, self.flow.spent_turns),
            (Counter::ValuesNotKept, self.flow.scratch.held.refused),
            (Counter::SentAgain, self.flow.sent_again),
            (Counter::UploadsCut, uploads_cut),
            (Counter::StreamsLeft, left_open),
            (Counter::Unsolicited, unsolicited),
            (Counter::SessionsWaited, waited),
            (Counter::SessionsDropped, dropped),
            (Counter::Held, held),
            (Counter::UnexpectedMessages, unclaimed),
            (Counter::EventStreams, events.streams),
            (Counter::EventsReceived, events.received),
            (Counter::EventsTaken, events.taken),
            (Counter::EventsTooLarge, events.too_large),
            (Counter::EventStreamsEnded, events.ended),
            (Counter::EventsDropped, events.dropped),
            (Counter::Moved, redirects.moved),
            (Counter::Asked, redirects.asked),
            (Counter::MapsRead, redirects.maps),
            (Counter::HeldForServer, redirects.held),
            (Counter::CookiesForeign, cookies.foreign),
            (Counter::CookiesInsecure, cookies.insecure),
            (Counter::CookiesWithoutRoom, cookies.no_room),
            (Counter::FullHandshakes, handshakes.full),
            (Counter::ResumedHandshakes, handshakes.resumed),
            (Counter::ConnectionsUsed, self.recorder.sockets_used()),
            (Counter::UntracedSampled, trace.sampled_beyond),
            (Counter::UntracedFailed, trace.failed_beyond),
            (Counter::UntracedLost, trace.lost),
        ]);
        end.tls = handshakes.spoken;
    }

    /// Nothing that was due before the load's end has yet to begin.
    fn is_over(&self) -> bool {
        let end_ns = self.schedule.end_ns();
        self.schedule.is_over() && self.timers.next_ns().is_none_or(|alarm_ns| alarm_ns >= end_ns)
    }

    /// Counts the arrivals that are there and will not begin any more.
    fn give_up_arrivals(&mut self, now_ns: u64) {
        loop {
            match self.schedule.due(now_ns, &mut self.random) {
                Due::Nothing => break,
                Due::Waits => {}
                Due::Begin(arrival) | Due::Dropped(arrival) => {
                    self.recorder.given_up_unbegun(arrival.due_ns);
                }
            }
        }
        for arrival in self.schedule.stop(now_ns) {
            self.recorder.given_up_unbegun(arrival.due_ns);
        }
    }

    /// As many sessions as the plan allows have begun, and ended.
    fn is_used_up(&self) -> bool {
        self.schedule.is_used_up() && self.are_all_free()
    }

    /// No session is under way; branches end with theirs.
    fn are_all_free(&self) -> bool {
        self.flow.free.len() == self.flow.sessions.len() - self.flow.branches.made()
    }

    /// A single session is done when it is over, or something failed; one that is told goes on as under a load.
    fn is_done(&self) -> bool {
        let over = self.schedule.is_over() && self.are_all_free();
        let is_logged = self.witness.as_ref().is_some_and(|witness| witness.logs());
        over || (!is_logged && self.recorder.first_failure().is_some())
    }

    fn turn(&mut self, now_ns: u64, drain_end_ns: u64) -> std::io::Result<()> {
        self.cut(now_ns);
        self.make_ahead(now_ns);
        self.run_granted();
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
        // what is held back leaves with the wait
        if self.is_fenced() {
            return Ok(());
        }
        let mut at_most = Duration::ZERO;
        if !self.spin && until_ns > now_ns {
            let mut now_ns = now_ns;
            if until_ns - now_ns < SOON_NS {
                self.transport.hand_over()?;
                now_ns = self.clock.now_ns();
            }
            at_most = Duration::from_nanos(until_ns.saturating_sub(now_ns));
        }
        self.transport.wait(Some(at_most))?;
        while !self.is_fenced() {
            match self.transport.next() {
                Some((connection, Event::Answered { keeps_open })) => self.on_answer(connection, keeps_open),
                Some((connection, event)) => self.on_event(connection, event),
                None => break,
            }
            self.run_granted();
        }
        let now_ns = self.clock.now_ns();
        self.depart(now_ns);
        if self.flow.binds {
            let heard = self.transport.heard();
            if std::mem::replace(&mut self.flow.heard, heard) != heard {
                self.cut(now_ns);
                self.recorder.heard(now_ns);
            }
        }
        for _ in 0..ALARMS_PER_TURN {
            if self.is_fenced() {
                return Ok(());
            }
            let Some((session, alarm)) = self.timers.pop(now_ns) else { break };
            self.on_alarm(session, alarm, now_ns);
            self.run_granted();
        }
        for _ in 0..ARRIVALS_PER_TURN {
            if self.is_fenced() {
                return Ok(());
            }
            match self.schedule.due(now_ns, &mut self.random) {
                Due::Nothing => break,
                Due::Begin(arrival) => {
                    self.arrive(arrival, now_ns);
                    self.run_granted();
                }
                Due::Waits => {}
                Due::Dropped(arrival) => self.recorder.given_up_unbegun(arrival.due_ns),
            }
        }
        Ok(())
    }

    /// A session begins.
    fn arrive(&mut self, arrival: Arrival, now_ns: u64) {
        let session = match self.flow.free.pop() {
            Some(session) => session as usize,
            None if self.flow.sessions.len() - self.flow.branches.made() < self.most_sessions() => {
                self.flow.sessions.push(Session::default());
                self.flow.sessions.len() - 1
            }
            None => {
                self.schedule.leave(arrival.origin, now_ns);
                self.recorder.unconnected(None, arrival.due_ns);
                return self.recorder.given_up_unbegun(arrival.due_ns);
            }
        };
        self.flow.sessions[session].origin = arrival.origin;
        self.begin_session(session, arrival.due_ns, arrival.ready_ns, false);
        self.run_session(session, now_ns);
    }

    /// Counts the sessions of a user that were due after the one that was due at `due_ns`, and never began.
    pub fn give_up_missed(&mut self, origin: Origin, due_ns: u64) {
        let Thread { schedule, recorder, .. } = self;
        schedule.missed(origin, due_ns, |missed_ns| recorder.given_up_unbegun(missed_ns));
    }

    /// Every session holds a connection, waits for one, or thinks before its first request; the last two together
    /// are bounded like those that wait.
    fn most_sessions(&self) -> usize {
        self.pools.most() + self.bounds.waiting
    }

    /// Goes on with sessions that were given the connection that they waited for.
    fn run_granted(&mut self) {
        while let Some(session) = self.flow.queue.next_granted() {
            self.go_granted(session as usize);
        }
    }

    /// Gives every request that is still under way its end, and counts what its users did not come to.
    fn cut_off(&mut self, now_ns: u64) {
        if !self.flow.draining {
            self.flow.draining = true;
            self.give_up_arrivals(now_ns);
        }
        // before anything fails that it waits for
        for session in 0..self.flow.sessions.len() {
            self.tell_interrupted(session);
        }
        for session in 0..self.flow.sessions.len() {
            let Session { state, origin, begun_due_ns, .. } = self.flow.sessions[session];
            if state.is_due() {
                self.give_up(session, now_ns);
            }
            if let Some(groups) = self.flow.sessions[session].groups() {
                groups.cut_off(now_ns);
            }
            self.leave_groups(session, now_ns);
            if state != SessionState::Free {
                self.give_up_missed(origin, begun_due_ns);
            }
        }
        self.part_from_all();
        debug_assert_eq!(self.recorder.outstanding(), 0, "every request that was due has an end");
    }

    /// Ends the intervals that are over, and looks at the clock where that is due.
    #[inline]
    pub fn cut(&mut self, now_ns: u64) {
        if now_ns >= self.recorder.edge_ns().min(self.recorder.look_ns()) {
            self.cut_or_look(now_ns);
        }
    }

    fn cut_or_look(&mut self, now_ns: u64) {
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
            waiting: self.flow.queue.len() as u64,
            unbegun: self.schedule.waiting(),
            connections: self.transport.connections(&self.flow.open),
            traffic: self.transport.sockets().traffic(),
        }
    }

    fn on_alarm(&mut self, session: usize, alarm: Alarm, now_ns: u64) {
        match alarm {
            Alarm::Timeout => self.on_timeout(session, now_ns),
            Alarm::Wake => self.on_wake(session, now_ns),
            Alarm::Deadline => self.interrupt(session, now_ns),
        }
    }
}

#[cfg(test)]
mod tests;
