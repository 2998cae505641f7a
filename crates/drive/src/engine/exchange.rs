//! What happens to a request: due, on its way, answered or failed; then the session goes on.
//!
//! What every request passes through is inlined by order, here and where it is recorded: what the compiler does by itself
//! changes from build to build, and a call costs a tenth of what is done within it.

use tidemark_record::Outcome;

use crate::clock::MILLISECOND_NS;
use crate::engine::connection::ConnectionState;
use crate::engine::ledger;
use crate::engine::programs::Asked;
use crate::engine::request::Prepared;
use crate::engine::thread::{Flow, Thread};
use crate::engine::timers::Alarm;
use crate::io::prefetch::prefetch;
use crate::io::stream_failure;
use crate::observation::record::Recorder;
use crate::protocols::transport::{Event, Sent};
use crate::session::answer::Variables;
use crate::session::arrivals::{Again, Ended};
use crate::session::failure::Failure;
use crate::session::keys;
use crate::session::{Environment, OPS_PER_TURN, OPS_UNTIMED, Session, SessionState, Turn};

/// A closed user whose session made no request begins the next one not before this; it must not keep the thread busy
/// with nothing.
const IDLE_SESSION_NS: u64 = MILLISECOND_NS;

/// Most requests that are over without a wait (what nothing answers, or is never sent) and numbers that are measured which a
/// session makes in one turn.
const STEPS_PER_TURN: u32 = 64;
/// How long a session's code runs in one turn; then others have theirs.
const CODE_PER_TURN_NS: u64 = 2 * MILLISECOND_NS;

/// Most times that a request is sent again because the server says that it did not take it. Whoever waits behind as many
/// others as a connection has streams is left so often where the server takes one for each connection.
const MOST_RESENDS: u32 = 100;

/// The first resend goes out at once. Before the second one is a wait, which doubles with each further one.
const FIRST_RESEND_WAIT_NS: u64 = MILLISECOND_NS;
/// Longest wait before a resend.
const LONGEST_RESEND_WAIT_NS: u64 = 100 * MILLISECOND_NS;

/// What a request is told whose time is up while it waits to be sent again.
const UNTAKEN: &str =
    "the server took it at no time: a GOAWAY or REFUSED_STREAM left it untaken again and again";

/// A user's state is fetched while so many answers are still in front of its own.
const PREFETCHED_BEFORE: usize = 2;

/// What came of an attempt to get a request on its way.
pub(crate) enum Placed {
    UnderWay,
    /// It is over already, and well, since then; so long was worked on its answer.
    Done {
        end_ns: u64,
        work_ns: u64,
    },
    /// Boxed, so that the common variants are returned in registers.
    Failed(Box<Failure>),
    Dropped,
}

impl Placed {
    pub fn failed(failure: Failure) -> Placed {
        Placed::Failed(failure.into())
    }

    /// Whether it is over already, without anything that bounds how soon the next one is.
    fn is_over_unsent(&self) -> bool {
        match self {
            Placed::Done { .. } => true,
            Placed::Failed(failure) => failure.is_of_writing(),
            Placed::UnderWay | Placed::Dropped => false,
        }
    }
}

/// A session's request leaves, or never will: how late that is by the driver's own doing is written down.
fn leave(session: &mut Session, now_ns: u64, recorder: &mut Recorder) {
    session.own_ns = session.lag_ns(now_ns);
    recorder.lag(session.due_ns, session.own_ns);
}

/// How long the `nth` resend of a session's request waits. Sessions that were left together wait for different times, as a
/// server that takes one of them for each connection would leave the others together again.
fn resend_wait_ns(nth: u32, s: usize) -> u64 {
    let Some(doublings) = nth.checked_sub(2) else { return 0 };
    let longest_ns = (FIRST_RESEND_WAIT_NS << doublings.min(16)).min(LONGEST_RESEND_WAIT_NS);
    let spread = (s as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    longest_ns / 2 + ((longest_ns / 2 * spread) >> 32)
}

impl Thread<'_> {
    /// Makes a session begin, as the kind of its origin or one drawn by weight; `again` if its user goes on from the
    /// session before. From `ready_ns` on only the driver is in its way.
    #[inline(always)]
    pub fn begin_session(&mut self, s: usize, due_ns: u64, ready_ns: u64, again: bool) {
        let own = self.schedule.kind(self.flow.sessions[s].origin);
        let kind = own.unwrap_or_else(|| self.weights.draw(&mut self.random));
        let session = &mut self.flow.sessions[s];
        let held = (&mut self.flow.scratch.held, self.shared);
        session.begin((kind, &self.kinds[kind]), self.flow.slots, again, held);
        session.due_ns = due_ns;
        session.ready_ns = ready_ns;
        session.begun_due_ns = due_ns;
        session.is_users_first = !again && session.origin.is_user();
        session.is_new_user = session.is_users_first;
        session.state = SessionState::Thinking;
        self.recorder.session_begun(kind);
        if self.flow.has_grace {
            self.set_deadline(s);
        }
    }

    /// Goes on with a session until it waits for something.
    pub fn run_session(&mut self, s: usize, mut now_ns: u64) {
        let (mut steps_done, mut in_code_ns) = (0, 0);
        loop {
            let goes_on = !self.flow.draining || self.finishes(s);
            let session = &mut self.flow.sessions[s];
            let ops = &self.kinds[session.kind()].ops;
            let turn = match session.next_at_once(ops) {
                // the load is over: only what completes a group or a program that has begun still becomes due
                _ if !goes_on && !session.any_group_begun() => Turn::End,
                Some(turn) => turn,
                None => {
                    let epoch_ms = self.clock.wall_ms(now_ns);
                    let random = &mut self.random;
                    let mut environment = Environment { shared: self.shared, random, epoch_ms };
                    let scratch = &mut self.flow.scratch;
                    match session.advance(ops, OPS_UNTIMED, &mut environment, scratch) {
                        Turn::Spent => {
                            let begun_ns = self.clock.now_ns();
                            let most = OPS_PER_TURN - OPS_UNTIMED;
                            let turn = session.advance(ops, most, &mut environment, scratch);
                            // one that comes to its request computes as the scenario says
                            if turn == Turn::Spent {
                                self.recorder.computed(self.clock.now_ns().saturating_sub(begun_ns));
                            }
                            turn
                        }
                        turn => turn,
                    }
                }
            };
            match turn {
                Turn::Request(request) => {
                    let Prepared { target, is_of_binding, timeout_ns, .. } = self.prepared[request as usize];
                    session.turn_to(target);
                    if is_of_binding && self.passes_over(s, request) {
                        continue;
                    }
                    self.fall_due(s, request, timeout_ns, now_ns);
                    let placed = self.place(s, now_ns);
                    steps_done += u32::from(placed.is_over_unsent());
                    if !self.settle(s, placed, now_ns) {
                        return;
                    }
                    if steps_done == STEPS_PER_TURN {
                        self.timers.set(s, Alarm::Wake, now_ns);
                        return;
                    }
                }
                Turn::Think(time_us) => {
                    if self.think(s, time_us, now_ns) {
                        return;
                    }
                }
                Turn::GroupOver => self.leave_group(s, now_ns),
                Turn::Failed(op, reason) => {
                    self.fail_step(s, (op, reason), now_ns);
                    steps_done += 1;
                    if steps_done == STEPS_PER_TURN {
                        self.timers.set(s, Alarm::Wake, now_ns);
                        return;
                    }
                }
                Turn::Measure(op) => {
                    self.measure(s, op, now_ns);
                    steps_done += 1;
                    if steps_done == STEPS_PER_TURN {
                        self.timers.set(s, Alarm::Wake, now_ns);
                        return;
                    }
                }
                Turn::Parallel(until, at_most) => {
                    if !self.parallel(s, (until, at_most), now_ns) {
                        return;
                    }
                    steps_done += 1;
                    if steps_done == STEPS_PER_TURN {
                        self.timers.set(s, Alarm::Wake, now_ns);
                        return;
                    }
                }
                Turn::Code(op) => {
                    in_code_ns += self.run_code(s, op);
                    now_ns = self.clock.now_ns();
                    steps_done += 1;
                    if steps_done == STEPS_PER_TURN || in_code_ns > CODE_PER_TURN_NS {
                        // one that comes to its request soon computes as the scenario says
                        self.recorder.computed(in_code_ns);
                        self.timers.set(s, Alarm::Wake, now_ns);
                        return;
                    }
                }
                Turn::Program { begins } => {
                    match self.ask_program(s, begins, now_ns) {
                        Asked::Placed(placed) => {
                            if !self.settle(s, placed, now_ns) {
                                return;
                            }
                        }
                        Asked::Think(time_us) => {
                            if self.think(s, time_us, now_ns) {
                                return;
                            }
                        }
                        Asked::Rest(_) if self.flow.draining => self.leave_program(s),
                        Asked::Rest(time_us) => {
                            if self.think(s, time_us, now_ns) {
                                return;
                            }
                        }
                        Asked::Goes => {}
                        Asked::Awaits => return,
                        Asked::End if self.flow.owner(s) != s => self.flow.sessions[s].finish(),
                        Asked::End => {
                            self.cut_branches(s, now_ns);
                            self.leave_program(s);
                        }
                        Asked::Stopped => {
                            self.leave_program(s);
                            self.flow.sessions[s].finish();
                        }
                    }
                    steps_done += 1;
                    if steps_done == STEPS_PER_TURN {
                        self.timers.set(s, Alarm::Wake, now_ns);
                        return;
                    }
                }
                Turn::Spent => {
                    self.flow.spent_turns += 1;
                    session.state = SessionState::Thinking;
                    session.due_ns = now_ns;
                    self.timers.set(s, Alarm::Wake, now_ns);
                    return;
                }
                Turn::End => {
                    if !self.end_session(s, now_ns) {
                        return;
                    }
                }
            }
        }
    }

    /// What a session does next is due so much later; whether that is yet to come.
    fn think(&mut self, s: usize, time_us: u64, now_ns: u64) -> bool {
        let session = &mut self.flow.sessions[s];
        session.due_ns = session.due_ns.saturating_add(time_us.saturating_mul(1_000));
        let waits = session.due_ns > now_ns;
        if waits {
            session.state = SessionState::Thinking;
            self.timers.set(s, Alarm::Wake, session.due_ns);
        }
        waits
    }

    /// Skips a step whose WebSocket or stream is gone. Its loss has been counted, and ends the session; a step that only
    /// closes it is done.
    fn passes_over(&mut self, s: usize, request: u16) -> bool {
        let session = &mut self.flow.sessions[s];
        let transport = &*self.transport;
        let refusal = || transport.refusal(session.connection, request.into());
        if session.has_lost && refusal().is_some_and(|refusal| refusal.ends_session) {
            session.finish();
            return true;
        }
        if transport.is_needless(session.connection, request.into()) {
            return true;
        }
        let left = session.connection.map(|c| c as usize);
        let left = left.filter(|c| transport.leaves(*c, request.into()));
        if let Some(c) = left {
            self.close(c);
        }
        left.is_some()
    }

    pub fn fall_due(&mut self, s: usize, request: u16, timeout_ns: u64, now_ns: u64) {
        let session = &mut self.flow.sessions[s];
        session.fall_due(request, now_ns);
        session.deadline_ns = session.due_ns.saturating_add(timeout_ns);
        let due_ns = session.due_ns;
        let owner = self.flow.owner(s);
        if let Some(groups) = self.flow.sessions[owner].groups() {
            self.recorder.groups_begun(groups.fall_due(due_ns));
        }
        self.recorder.offered(self.prepared[usize::from(request)].label, due_ns);
    }

    /// Gets a session's request on its way, with a connection if there is a free one.
    #[inline(always)]
    pub fn place(&mut self, s: usize, now_ns: u64) -> Placed {
        let session = &self.flow.sessions[s];
        if session.deadline_ns <= now_ns {
            // it came too late for an answer in time, and never leaves
            if !session.is_hop {
                self.left(s, now_ns);
            }
            return Placed::failed(Failure::Timeout);
        }
        if self.flow.binds
            && session.of_program().is_none()
            && let Some(refusal) = self.transport.refusal(session.connection, session.sends.into())
        {
            if refusal.ends_session {
                self.flow.sessions[s].finish();
            }
            return Placed::failed(refusal.failure);
        }
        if session.connection.is_none() {
            let session = &mut self.flow.sessions[s];
            let mut pool = self.pools.to(session.target());
            let free = match std::mem::take(&mut session.is_new_user) {
                true => pool.take_for_new_user(now_ns),
                false => pool.take(now_ns),
            };
            let Some(connection) = free else {
                self.lend(s, now_ns);
                return self.queue_up(s);
            };
            pool.get(connection as usize).session = Some(s as u32);
            session.connection = Some(connection);
        }
        let placed = self.go(s, now_ns);
        let session = &self.flow.sessions[s];
        if matches!(placed, Placed::UnderWay) && session.state != SessionState::Connecting {
            self.timers.set(s, Alarm::Timeout, session.deadline_ns);
        }
        placed
    }

    /// Lets a session wait for a connection, if there is room.
    fn queue_up(&mut self, s: usize) -> Placed {
        let Flow { queue, sessions, .. } = &mut self.flow;
        if !queue.join(s, sessions, self.bounds.waiting) {
            return Placed::Dropped;
        }
        self.timers.set(s, Alarm::Timeout, sessions[s].deadline_ns);
        Placed::UnderWay
    }

    /// Makes ready what a session's request does with a number, and enters its write, where that is one that is entered.
    pub fn enter(&mut self, s: usize, now_ns: u64) -> Result<(), Failure> {
        let session = &mut self.flow.sessions[s];
        if let Some(step) = &self.prepared[session.request as usize].key {
            keys::begin(step, self.shared, session)?;
        }
        let prepared = &self.prepared[session.request as usize];
        let mut environment = Environment {
            shared: self.shared,
            random: &mut self.random,
            epoch_ms: self.clock.wall_ms(now_ns),
        };
        let scratch = &mut self.flow.scratch;
        if let Some(ledger) = &prepared.ledger {
            ledger::enter(ledger, self.ledger_seed, &mut self.recorder, session, &mut environment, scratch)?;
        }
        for (slot, template) in prepared.follow.iter().flat_map(|follow| &follow.fixed) {
            let text = &mut self.flow.path;
            text.clear();
            template.render(&mut environment.context(&session.slots), text)?;
            let held = &mut self.flow.scratch.held;
            if !held.write(self.shared, &mut session.slots[usize::from(*slot)], |slot| slot.set_text(text)).1
            {
                return Err(Failure::NoRoom);
            }
        }
        Ok(())
    }

    /// What was entered just now is not sent after all.
    pub fn withdraw(&mut self, s: usize, was_entered: bool) {
        let entered =
            self.flow.sessions[s].cold_mut().and_then(|cold| cold.entered.take_if(|_| !was_entered));
        if let Some(number) = entered {
            self.recorder.withdraw(number);
        }
    }

    /// Gets a request on its way over the connection that its session holds.
    fn go(&mut self, s: usize, now_ns: u64) -> Placed {
        let Some(c) = self.flow.sessions[s].connection.map(|c| c as usize) else {
            debug_assert!(false, "a session has a connection before it goes");
            return Placed::Dropped;
        };
        let connection = self.pools.get(c);
        match connection.state {
            ConnectionState::Open => self.transmit(s, c, now_ns),
            ConnectionState::Closed if connection.retry_ns > now_ns => {
                self.flow.sessions[s].state = SessionState::BackingOff;
                self.timers.set(s, Alarm::Wake, connection.retry_ns);
                Placed::UnderWay
            }
            ConnectionState::Closed | ConnectionState::Connecting => self.connect(s, c, now_ns),
        }
    }

    /// Renders and sends.
    fn transmit(&mut self, s: usize, c: usize, now_ns: u64) -> Placed {
        let session = &self.flow.sessions[s];
        let was_entered = session.entered().is_some();
        // a hop has all that its request was made of
        let is_hop = session.is_hop;
        if self.prepared[session.request as usize].is_entered
            && !is_hop
            && let Err(failure) = self.enter(s, now_ns)
        {
            self.withdraw(s, was_entered);
            return Placed::failed(failure);
        }
        let session = &self.flow.sessions[s];
        let jar = self.flow.sessions[self.flow.owner(s)].jar(session.target());
        let mut environment = Environment {
            shared: self.shared,
            random: &mut self.random,
            epoch_ms: self.clock.wall_ms(now_ns),
        };
        let mut cx = environment.context(&session.slots);
        let written = match session.of_program() {
            None => self.transport.write(c, session.sends.into(), &mut cx, jar),
            Some(made) => self.transport.write_made(c, made, jar, cx.epoch_ms / 1_000),
        };
        let session = &mut self.flow.sessions[s];
        if let Err(failure) = written {
            self.withdraw(s, was_entered);
            return Placed::failed(failure);
        }
        if let Some(witness) = &mut self.witness {
            let variables =
                Variables { slots: &session.slots, names: &self.kinds[session.kind()].slot_names };
            let written = self.transport.written(c);
            witness.sent(s, session.request, written, variables);
        }
        let connection = self.pools.get(c);
        let socket = self.transport.leaves_over(c);
        // what goes out when all answers of a reading are dealt with is told of together
        let leaves_together = socket.is_some() && self.flow.leaves_with == socket;
        let sent_ns = if leaves_together { now_ns } else { self.clock.now_ns() };
        let sent = match self.transport.send(c) {
            Ok(sent) => sent,
            // Nothing was taken, so nothing can have been done twice: it was closed before this request.
            Err(error) if self.may_go_again(s, c, &error) => {
                return self.go_again(s, c, now_ns);
            }
            Err(error) => {
                self.close(c);
                return Placed::failed(Failure::Broken(error));
            }
        };
        connection.exchanging = true;
        session.state = SessionState::Exchanging;
        let due_ns = session.due_ns;
        if !is_hop {
            session.set_sent(Some(sent_ns));
            match leaves_together {
                true => self.flow.leaving.push(s as u32),
                false => leave(session, sent_ns, &mut self.recorder),
            }
        }
        self.recorder.used(socket.unwrap_or_else(|| self.transport.socket_of(c)), due_ns);
        let after_ns = if sent == Sent::Awaiting { sent_ns } else { self.clock.now_ns() };
        let (judged, end_ns, work_ns) = match sent {
            Sent::Awaiting => (None, sent_ns, 0),
            // it had come before
            Sent::Offered => {
                let judged = self.judge_offered(s, c);
                (judged, sent_ns, self.clock.now_ns() - after_ns)
            }
            Sent::Whole => (Some(Ok(())), after_ns, 0),
        };
        let Some(judged) = judged else { return Placed::UnderWay };
        self.pools.get(c).exchanging = false;
        if sent == Sent::Offered && !self.accept(c) {
            self.close(c);
        }
        match judged {
            Ok(()) => Placed::Done { end_ns, work_ns },
            Err(flaw) => Placed::failed(Failure::Flawed(flaw)),
        }
    }

    /// Whether a request that was not taken by a connection may go over a new one: where that was new, too, only if the server
    /// says that it did nothing about it, and not for ever.
    fn may_go_again(&mut self, s: usize, c: usize, error: &std::io::Error) -> bool {
        if self.is_bound(c) {
            return false;
        }
        if !stream_failure::is_untaken(error) {
            return !self.pools.get(c).fresh;
        }
        let resends = &mut self.flow.sessions[s].cold_or_new().resends;
        *resends += 1;
        *resends <= MOST_RESENDS
    }

    /// Sends a request again over a new connection; after a wait, where it was left untaken more than once.
    fn go_again(&mut self, s: usize, c: usize, now_ns: u64) -> Placed {
        self.close(c);
        let session = &mut self.flow.sessions[s];
        let wait_ns = resend_wait_ns(session.cold_mut().map_or(0, |cold| cold.resends), s);
        if wait_ns == 0 {
            return self.connect(s, c, now_ns);
        }
        session.state = SessionState::BackingOff;
        self.timers.set(s, Alarm::Timeout, session.deadline_ns);
        self.timers.set(s, Alarm::Wake, now_ns.saturating_add(wait_ns));
        Placed::UnderWay
    }

    /// A session's request has left, or never will: how late that was by the driver's own doing is known.
    pub fn left(&mut self, s: usize, now_ns: u64) {
        leave(&mut self.flow.sessions[s], now_ns, &mut self.recorder);
    }

    /// Whether the session goes on at once.
    #[inline(always)]
    pub fn settle(&mut self, s: usize, placed: Placed, now_ns: u64) -> bool {
        if let Placed::UnderWay = placed {
            self.flow.sessions[s].requested = true;
            return false;
        }
        self.settle_at_once(s, placed, now_ns)
    }

    /// The same of what is over already.
    fn settle_at_once(&mut self, s: usize, placed: Placed, now_ns: u64) -> bool {
        // what was never sent keeps nobody from beginning again and again
        self.flow.sessions[s].requested |=
            !matches!(&placed, Placed::Failed(failure) if failure.is_of_writing());
        match placed {
            Placed::UnderWay => false,
            Placed::Done { end_ns, work_ns } => {
                self.write_down(s, Outcome::Ok, end_ns);
                self.flow.sessions[s].worked(work_ns);
                true
            }
            Placed::Failed(failure) => {
                self.fail(s, *failure, now_ns);
                true
            }
            Placed::Dropped => {
                let session = &self.flow.sessions[s];
                let label = self.prepared[usize::from(session.request)].label;
                self.recorder.unconnected(Some(label), session.due_ns);
                self.recorder.dropped(label, session.due_ns);
                let owner = self.flow.owner(s);
                if let Some(groups) = self.flow.sessions[owner].groups() {
                    groups.cut_off(now_ns);
                }
                self.timers.clear(s, Alarm::Timeout);
                if owner != s
                    && let Some(program) = &mut self.program
                {
                    // a branch is over without a word otherwise
                    program.failed(s as u32, Outcome::Unfinished);
                }
                self.end_session(s, now_ns)
            }
        }
    }

    /// Ends a session; true if its user begins the next one at once.
    #[inline(always)]
    fn end_session(&mut self, s: usize, now_ns: u64) -> bool {
        if self.flow.branches.any() && self.end_with_branches(s, now_ns) {
            return false;
        }
        if self.flow.sessions[s].is_in_program() {
            self.leave_program(s);
        }
        self.leave_groups(s, now_ns);
        let session = &mut self.flow.sessions[s];
        session.give_rows_back(self.shared);
        let idle_ns = if session.requested { 0 } else { IDLE_SESSION_NS };
        let ended = Ended {
            due_ns: session.begun_due_ns,
            end_ns: session.due_ns.max(session.ready_ns),
            earliest_ns: now_ns.saturating_add(idle_ns),
        };
        let again = match self.flow.draining || self.flow.is_stopped {
            true => None,
            false => self.schedule.again(session.origin, ended, &mut self.random),
        };
        let keeps = again.is_some_and(|again| again.at_ns <= now_ns) && self.may_keep(s);
        if !keeps {
            self.give_all_back(s, now_ns);
        }
        let session = &mut self.flow.sessions[s];
        match again {
            None => {
                session.state = SessionState::Free;
                self.flow.free.push(s as u32);
                let origin = session.origin;
                self.schedule.leave(origin, now_ns);
                self.give_up_missed(origin, ended.due_ns);
                false
            }
            Some(Again { due_ns, ready_ns, at_ns }) if at_ns > now_ns => {
                session.state = SessionState::Parked;
                session.due_ns = due_ns;
                session.ready_ns = ready_ns.max(at_ns);
                self.timers.set(s, Alarm::Wake, at_ns);
                false
            }
            Some(Again { due_ns, ready_ns, .. }) => {
                self.begin_session(s, due_ns, ready_ns, true);
                if keeps {
                    self.keep(s, now_ns);
                }
                true
            }
        }
    }

    /// Goes on with a session that was given its connection.
    pub fn go_granted(&mut self, s: usize) {
        let now_ns = self.clock.now_ns();
        // a branch may have been cut off since
        if self.flow.sessions[s].state == SessionState::Granted {
            self.go_on(s, now_ns);
        }
    }

    /// Gets the request that is due on its way, and the session on if that fails.
    pub fn go_on(&mut self, s: usize, now_ns: u64) {
        let placed = self.place(s, now_ns);
        if self.settle(s, placed, now_ns) {
            self.run_session(s, now_ns);
        }
    }

    /// A think time, a back-off or a pause between sessions is over.
    pub fn on_wake(&mut self, s: usize, now_ns: u64) {
        match self.flow.sessions[s].state {
            // the load is over: what its user did not come to is counted at the end
            SessionState::Parked if self.flow.draining => {}
            SessionState::Parked => {
                let Session { due_ns, ready_ns, .. } = self.flow.sessions[s];
                self.begin_session(s, due_ns, ready_ns, true);
                self.run_session(s, now_ns);
            }
            SessionState::Thinking => self.run_session(s, now_ns),
            SessionState::Awaiting => self.awaited(s, now_ns),
            SessionState::BackingOff => {
                self.flow.sessions[s].held_until(now_ns);
                self.go_on(s, now_ns);
            }
            SessionState::Free
            | SessionState::Waiting
            | SessionState::Granted
            | SessionState::Connecting
            | SessionState::Exchanging => {}
        }
    }

    /// A request has had its time, or its connection has.
    pub fn on_timeout(&mut self, s: usize, now_ns: u64) {
        let failure = match self.flow.sessions[s].state {
            SessionState::Waiting => {
                self.flow.queue.leave(s, &mut self.flow.sessions);
                self.flow.sessions[s].queued_until(now_ns);
                Failure::NoConnection(Outcome::Timeout)
            }
            SessionState::BackingOff => {
                self.timers.clear(s, Alarm::Wake);
                let session = &mut self.flow.sessions[s];
                let was_untaken = session.cold_mut().is_some_and(|cold| cold.resends > 0);
                let connection = session.connection.map(|c| c as usize);
                match connection.is_some_and(|c| self.pools.get(c).was_refused) {
                    _ if was_untaken => Failure::Other(Outcome::Reset, UNTAKEN.into()),
                    true => Failure::BackingOff,
                    false => Failure::ConnectTimeout,
                }
            }
            SessionState::Connecting => {
                self.drop_connection(s, now_ns);
                Failure::ConnectTimeout
            }
            SessionState::Exchanging => {
                let failure = self.timed_out(s);
                self.drop_connection(s, now_ns);
                failure
            }
            SessionState::Free
            | SessionState::Parked
            | SessionState::Thinking
            | SessionState::Awaiting
            | SessionState::Granted => return,
        };
        self.fail(s, failure, now_ns);
        self.run_session(s, now_ns);
    }

    /// That no answer came to what was sent, and what did.
    fn timed_out(&self, s: usize) -> Failure {
        let connection = self.flow.sessions[s].connection;
        let instead = connection.and_then(|c| self.transport.instead(c as usize));
        instead.map_or(Failure::Timeout, |came| Failure::Other(Outcome::Timeout, came.into()))
    }

    /// The run is over and the request is not.
    pub fn give_up(&mut self, s: usize, now_ns: u64) {
        let failure = if self.flow.sessions[s].state == SessionState::Waiting {
            self.flow.queue.leave(s, &mut self.flow.sessions);
            self.flow.sessions[s].queued_until(now_ns);
            Failure::NoConnection(Outcome::Unfinished)
        } else {
            self.drop_connection(s, now_ns);
            Failure::CutOff
        };
        self.fail(s, failure, now_ns);
    }

    /// A connection has brought an answer: what happens most, and is not moved about as [other events](Self::on_event) are.
    pub fn on_answer(&mut self, c: usize, keeps_open: bool) {
        self.prefetch_upcoming();
        let now_ns = self.event_ns(c);
        let connection = self.pools.get(c);
        match connection.session {
            Some(s) if connection.exchanging => {
                (connection.exchanging, connection.fresh) = (false, false);
                self.answered(s as usize, c, keeps_open, now_ns);
            }
            _ => self.on_event(c, Event::Answered { keeps_open }),
        }
    }

    /// Something happened on a connection.
    pub fn on_event(&mut self, c: usize, event: Event) {
        let now_ns = self.event_ns(c);
        let connection = self.pools.get(c);
        let session = connection.session.map(|s| s as usize);
        match (event, session) {
            (Event::Opened, Some(s)) => {
                self.made(c);
                let session = &mut self.flow.sessions[s];
                if let Some(connecting) = session.cold_mut().and_then(|cold| cold.connecting.as_mut()) {
                    connecting.over(self.transport.socket_made(c).map(|made| self.clock.at(made)), now_ns);
                }
                session.held_until(now_ns);
                self.go_on(s, now_ns);
            }
            (Event::Offered, Some(s)) if connection.exchanging => self.offered(s, c, now_ns),
            (Event::Sent, Some(s)) if connection.exchanging => {
                connection.exchanging = false;
                self.conclude(s, c, Ok(()), now_ns);
                self.run_session(s, now_ns);
            }
            (Event::Refused(failure), Some(s)) if connection.exchanging => {
                self.refused(s, c, failure, now_ns)
            }
            (Event::Wrong(failure), Some(s)) if connection.exchanging => self.broke(s, c, failure, now_ns),
            (Event::Ended { within }, Some(s)) if connection.exchanging => {
                let failure = if within { Failure::ClosedWithin } else { Failure::ClosedBefore };
                self.broke(s, c, failure, now_ns);
            }
            (Event::Unsent(error), Some(s)) if connection.exchanging => self.unsent(s, c, error, now_ns),
            (Event::Failed(error), Some(s)) if connection.state == ConnectionState::Connecting => {
                connection.refused(now_ns);
                self.broke(s, c, Failure::Connect(error), now_ns);
            }
            (Event::Failed(error), Some(s)) if connection.exchanging => {
                self.broke(s, c, Failure::Broken(error), now_ns);
            }
            (Event::Opened, None) if connection.state == ConnectionState::Connecting => {
                self.made_ahead(c, now_ns)
            }
            (Event::Failed(error), None) if connection.state == ConnectionState::Connecting => {
                self.not_made(c, &Failure::Connect(error), now_ns);
            }
            (_, None) if connection.state == ConnectionState::Connecting => {
                self.not_made(c, &Failure::ClosedBefore, now_ns);
            }
            (Event::Heard, Some(s)) => self.hear(s, c, now_ns),
            (Event::Left, Some(s)) => self.has_left(s, c, now_ns),
            (Event::Lost, Some(s)) => self.lose(s, c, now_ns),
            // Closed while nothing was under way, or bytes that nobody asked for: it is of no more use.
            _ => self.close(c),
        }
    }

    /// When the bytes of the last event were taken from the kernel, before anything was made of them: one time for all that
    /// came in one reading, so that no answer counts as later because it was decoded, or others were dealt with first. What
    /// others took shows in how late the next requests leave.
    #[inline]
    fn event_ns(&mut self, c: usize) -> u64 {
        let reading = self.transport.reading();
        if reading.is_none() || reading != self.flow.reading {
            self.begin_reading(reading, c);
        }
        self.flow.read_ns
    }

    fn begin_reading(&mut self, reading: Option<u64>, c: usize) {
        let taken_at = self.transport.sockets().taken_at();
        let now_ns = taken_at.map_or_else(|| self.clock.now_ns(), |at| self.clock.at(at));
        // several readings may have been taken at once, and requests have left in between
        let departed_ns = if self.flow.leaving.is_empty() { now_ns } else { self.clock.now_ns() };
        self.depart(departed_ns);
        self.flow.reading = reading;
        self.flow.leaves_with = reading.and_then(|_| self.transport.leaves_over(c));
        self.flow.read_ns = now_ns;
        self.flow.read_late_ns = None;
        if reading.is_some() {
            self.prefetch_user(c);
            for nth in 1..=PREFETCHED_BEFORE {
                if let Some(c) = self.transport.prefetch_upcoming(nth) {
                    self.prefetch_user(c);
                }
            }
        }
    }

    /// All answers of a reading are dealt with: the requests that followed them over the same socket have left, together.
    pub fn depart(&mut self, now_ns: u64) {
        let Flow { leaving, sessions, leaves_with, .. } = &mut self.flow;
        *leaves_with = None;
        for s in leaving.drain(..) {
            let session = &mut sessions[s as usize];
            session.set_sent(Some(now_ns));
            leave(session, now_ns, &mut self.recorder);
        }
    }

    /// Prefetches what is kept of the users whose answers come next, in two steps, as a session is found only through its
    /// connection.
    fn prefetch_upcoming(&mut self) {
        let next = self.transport.prefetch_upcoming(PREFETCHED_BEFORE + 1);
        if let Some(c) = next {
            prefetch(self.pools.get(c));
        }
        if let Some(c) = std::mem::replace(&mut self.flow.upcoming, next) {
            self.prefetch_user(c);
        }
    }

    /// Prefetches what is kept of the user that holds a connection.
    fn prefetch_user(&mut self, c: usize) {
        let Some(s) = self.pools.get(c).session.map(|s| s as usize) else { return };
        prefetch(&self.flow.sessions[s]);
        self.timers.prefetch(s);
    }

    /// As where [`Transport::send`](crate::protocols::transport::Transport::send) itself says that nothing was taken.
    fn unsent(&mut self, s: usize, c: usize, error: std::io::Error, now_ns: u64) {
        if !self.may_go_again(s, c, &error) {
            return self.broke(s, c, Failure::Broken(error), now_ns);
        }
        self.flow.sent_again += u64::from(stream_failure::is_untaken(&error));
        if !self.flow.sessions[s].is_hop {
            self.flow.sessions[s].set_sent(None);
        }
        let placed = self.go_again(s, c, now_ns);
        if self.settle(s, placed, now_ns) {
            self.run_session(s, now_ns);
        }
    }

    fn broke(&mut self, s: usize, c: usize, failure: Failure, now_ns: u64) {
        self.close(c);
        self.fail(s, failure, now_ns);
        self.run_session(s, now_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resends_wait_longer_each_time_and_not_for_ever() {
        for s in [0, 1, 77, usize::MAX] {
            assert_eq!((resend_wait_ns(0, s), resend_wait_ns(1, s)), (0, 0));
            for (nth, longest_ms) in [(2, 1), (3, 2), (4, 4), (8, 64), (9, 100), (100, 100), (u32::MAX, 100)]
            {
                let longest_ns = longest_ms * MILLISECOND_NS;
                let wait_ns = resend_wait_ns(nth, s);
                assert!((longest_ns / 2..=longest_ns).contains(&wait_ns), "{nth} of {s}: {wait_ns}");
            }
        }
        assert_ne!(resend_wait_ns(9, 1), resend_wait_ns(9, 2), "not together again");
    }
}
