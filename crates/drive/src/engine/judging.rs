//! What comes of a request: its answer read, judged and written down, or why there is none.

use std::time::Duration;

use tidemark_record::Outcome;
use tidemark_scenario::plan::{Follow, Op};

use crate::engine::thread::Thread;
use crate::engine::timers::Alarm;
use crate::io::Timestamps;
use crate::observation::parts::parts;
use crate::observation::trace::Ending;
use crate::session::answer::{Flaw, Variables, Wrote};
use crate::session::failure::Failure;
use crate::session::held_values::no_room;
use crate::session::keys;
use crate::session::program::{self, Whole};
use crate::session::times::Times;
use crate::session::{Environment, SessionState};

impl Thread<'_> {
    /// Tells of an answer that has been judged, where somebody wants to know.
    #[inline]
    fn tell_answer(&mut self, s: usize, c: usize, flaw: Option<Flaw>) {
        if self.witness.is_some() {
            self.tell_witness(s, c, flaw);
        }
    }

    /// Tells of code that has run, where somebody wants to know; `failed`: why it did not do what it should.
    pub fn tell_code(&mut self, s: usize, took_ns: u64, failed: Option<Option<String>>) {
        let Some(witness) = &mut self.witness else { return };
        let session = &self.flow.sessions[s];
        let variables = Variables { slots: &session.slots, names: &self.kinds[session.kind()].slot_names };
        witness.ran_code(took_ns, failed.map(|why| why.unwrap_or_else(no_room)), variables);
    }

    fn tell_witness(&mut self, s: usize, c: usize, flaw: Option<Flaw>) {
        let Some(witness) = &mut self.witness else { return };
        let session = &self.flow.sessions[s];
        let probe = &self.prepared[session.request as usize].probe;
        let variables = Variables { slots: &session.slots, names: &self.kinds[session.kind()].slot_names };
        witness.answered(s, self.transport.answer(c), probe, variables, (flaw, &self.flow.scratch));
    }

    /// Keeps an answer for the code of its session, where that looks at it.
    #[inline]
    fn keep_answer(&mut self, s: usize, c: usize) {
        let session = &mut self.flow.sessions[s];
        if self.flow.keeps_answers.get(session.kind()) == Some(&true) {
            let held = (&mut self.flow.scratch.held, self.shared);
            session.cold_or_new().answer.keep(self.transport.answer(c), held);
        }
    }

    /// Looks for the answer among what is offered; what came of the request, if it is there.
    pub fn judge_offered(&mut self, s: usize, c: usize) -> Option<Result<(), Flaw>> {
        if let Some(program) = &mut self.program
            && self.flow.sessions[s].of_program().is_some()
        {
            let offered = (self.transport.answer(c), None);
            let judged = program::judge(&mut **program, s, offered, &mut self.flow.scratch)?;
            self.tell_answer(s, c, judged.err());
            return Some(judged);
        }
        let epoch_ms = self.clock.wall_ms(self.clock.now_ns());
        let session = &mut self.flow.sessions[s];
        let probe = &mut self.prepared[session.request as usize].probe;
        let scratch = &mut self.flow.scratch;
        let mut environment = Environment { shared: self.shared, random: &mut self.random, epoch_ms };
        loop {
            let answer = self.transport.answer(c);
            let judged = match probe.fits(answer, &session.slots, &mut environment, scratch) {
                Ok(()) => {
                    probe.judge((answer, answer.status()), &mut session.slots, &mut environment, scratch)
                }
                Err(flaw) => Err(flaw),
            };
            match judged {
                Err(Flaw::Check(_) | Flaw::Status) => {
                    if !self.transport.decline(c) {
                        return None;
                    }
                }
                judged => {
                    self.tell_answer(s, c, judged.err());
                    return Some(judged);
                }
            }
        }
    }

    /// A session's answer has been read: when it counts as having come. How late that was is written down where the kernel
    /// tells; it is no more than the time since the request left, whatever becomes of the wall clock.
    #[inline]
    pub fn read(&mut self, s: usize, now_ns: u64) -> u64 {
        // the wall clock is looked at later than the answer was taken
        let late_ns = || {
            let since_ns = self.clock.since_wall(self.transport.sockets().arrived()?)?;
            Some(since_ns.saturating_sub(self.clock.now_ns().saturating_sub(now_ns)))
        };
        let Some(late_ns) = *self.flow.read_late_ns.get_or_insert_with(late_ns) else { return now_ns };
        let session = &mut self.flow.sessions[s];
        let late_ns = late_ns.min(now_ns.saturating_sub(session.sent_ns().unwrap_or(now_ns)));
        self.recorder.read_lag(session.due_ns, late_ns);
        match self.timestamps {
            Timestamps::Kernel => now_ns - late_ns,
            Timestamps::Read => {
                session.own_ns += late_ns;
                now_ns
            }
        }
    }

    /// Whether a connection is bound to the session that holds it.
    pub fn is_bound(&self, c: usize) -> bool {
        self.flow.binds && self.transport.is_bound(c)
    }

    /// What was offered is the answer: whether the connection can carry another request.
    pub fn accept(&mut self, c: usize) -> bool {
        self.transport.accept(c)
    }

    /// A body that was decoded counts, whatever becomes of its answer. How long that took, nanoseconds.
    fn count_decoded(&mut self, s: usize, c: usize) -> u64 {
        let request = self.flow.sessions[s].request;
        if !self.prepared[request as usize].probe.needs_body {
            return 0;
        }
        let answer = self.transport.answer(c);
        if answer.is_decoded() {
            self.recorder.decoded(answer.received_bytes(), answer.body().len() as u64);
        }
        answer.decoding_ns()
    }

    /// The answer is whole. What is done with it then is in no time: it came before that, and what follows it is due after.
    pub fn answered(&mut self, s: usize, c: usize, keeps_open: bool, now_ns: u64) {
        let mut work_ns = self.count_decoded(s, c);
        let end_ns = self.read(s, now_ns);
        let is_bound = self.is_bound(c);
        let session = &mut self.flow.sessions[s];
        let mut keep = keeps_open && (self.pools.to(self.pools.target_of(c)).pool.keep_alive || is_bound);
        let mut judged = Ok(());
        if end_ns <= session.deadline_ns {
            // what only HTTP has
            if self.prepared[usize::from(session.sends)].sets_cookies {
                self.keep_cookies(s, c, now_ns);
                if let Some(followed) = self.follow(s, c) {
                    self.flow.sessions[s].own_ns += work_ns;
                    return self.hop(s, c, keep, followed, end_ns);
                }
            }
            let answer = self.transport.answer(c);
            let status = answer.status();
            let session = &mut self.flow.sessions[s];
            self.recorder.answered(status, session.due_ns);
            let mut environment = Environment {
                shared: self.shared,
                random: &mut self.random,
                epoch_ms: self.clock.wall_ms(now_ns),
            };
            let probe = &mut self.prepared[session.request as usize].probe;
            // what looks at no body is done in no time
            let is_work = probe.needs_body || self.witness.is_some();
            let begun_ns = if is_work { self.clock.now_ns() } else { 0 };
            let scratch = &mut self.flow.scratch;
            judged = probe.judge((answer, status), &mut session.slots, &mut environment, scratch);
            if let Some(program) = &mut self.program
                && session.of_program().is_some()
            {
                let sent_ns = session.sent_ns();
                let times = Times { due_ns: session.due_ns, sent_ns, end_ns, own_ns: session.own_ns };
                let begun_ns = self.transport.answer_begun(c).map(|begun| self.clock.at(begun));
                let whole = Whole {
                    service: Duration::from_nanos(end_ns.saturating_sub(sent_ns.unwrap_or(end_ns))),
                    parts: parts(&times, session.connecting(), begun_ns),
                    tls: self.transport.agreed(c),
                };
                let whole = (answer, Some(whole));
                judged = program::judge(&mut **program, s, whole, scratch).unwrap_or(judged);
                if session.asks_websocket() && !is_bound && judged.is_ok() {
                    judged = Err(Flaw::Status);
                }
            }
            let wrote = if session.is_writing() { answer.wrote() } else { Wrote::Yes };
            if wrote != Wrote::Yes {
                // perhaps good, and yet no acknowledgement
                session.cold_or_new().entered = None;
                if keys::end_unwritten(self.shared, session, wrote) && judged.is_ok() {
                    judged = Err(Flaw::NotInserted);
                }
            }
            // what builds on a wrong answer is nothing to go on with
            keep &= !(is_bound && judged.is_err());
            self.tell_answer(s, c, judged.err());
            self.keep_answer(s, c);
            if is_work {
                work_ns += self.clock.now_ns().saturating_sub(begun_ns);
            }
        }
        if !keep {
            self.close(c);
        }
        self.conclude(s, c, judged, end_ns);
        self.go_on_after(s, work_ns, now_ns);
    }

    /// Goes on with a session whose answer has been dealt with, which took so long.
    fn go_on_after(&mut self, s: usize, work_ns: u64, now_ns: u64) {
        if work_ns == 0 {
            return self.run_session(s, now_ns);
        }
        self.flow.sessions[s].worked(work_ns);
        self.run_session(s, self.clock.now_ns());
    }

    /// The answer says where else to ask: the step's next request goes there, if it can be followed.
    fn hop(&mut self, s: usize, c: usize, keep: bool, followed: Result<(), Failure>, now_ns: u64) {
        match &mut self.witness {
            Some(witness) if followed.is_ok() => {
                let answer = self.transport.answer(c);
                let location = answer.header(Follow::LOCATION_HEADER).unwrap_or_default();
                witness.redirected(s, answer.status(), location);
            }
            _ => self.tell_answer(s, c, Some(Flaw::Status)),
        }
        if !keep {
            self.close(c);
        }
        match followed {
            Ok(()) => self.go_on(s, now_ns),
            Err(failure) => {
                let session = &self.flow.sessions[s];
                self.recorder.answered(self.transport.answer(c).status(), session.due_ns);
                self.fail(s, failure, now_ns);
                self.run_session(s, now_ns);
            }
        }
    }

    /// The answer is whole, and refuses what the connection was to become.
    pub fn refused(&mut self, s: usize, c: usize, failure: Failure, now_ns: u64) {
        self.count_decoded(s, c);
        let end_ns = self.read(s, now_ns);
        let is_late = end_ns > self.flow.sessions[s].deadline_ns;
        if !is_late {
            self.keep_cookies(s, c, now_ns);
            let due_ns = self.flow.sessions[s].due_ns;
            self.recorder.answered(self.transport.answer(c).status(), due_ns);
            self.tell_answer(s, c, Some(Flaw::Status));
        }
        self.close(c);
        self.fail(s, if is_late { Failure::Timeout } else { failure }, end_ns);
        self.run_session(s, now_ns);
    }

    /// Something came that may be the answer.
    pub fn offered(&mut self, s: usize, c: usize, now_ns: u64) {
        let begun_ns = self.clock.now_ns();
        let Some(judged) = self.judge_offered(s, c) else { return };
        self.keep_answer(s, c);
        let work_ns = self.clock.now_ns().saturating_sub(begun_ns);
        self.pools.get(c).exchanging = false;
        let end_ns = self.read(s, now_ns);
        self.conclude(s, c, judged, end_ns);
        if !self.accept(c) {
            self.close(c);
        }
        self.go_on_after(s, work_ns, now_ns);
    }

    /// A request has its answer, or needs none. Sockets have their turn before alarms: it came in all the same when its
    /// time was over, and then a connection that is bound to it is not gone on with.
    #[inline(always)]
    pub fn conclude(&mut self, s: usize, c: usize, judged: Result<(), Flaw>, end_ns: u64) {
        let is_late = end_ns > self.flow.sessions[s].deadline_ns;
        if is_late && self.is_bound(c) {
            self.close(c);
        }
        match judged {
            _ if is_late => self.fail(s, Failure::Timeout, end_ns),
            Ok(()) => self.write_down(s, Outcome::Ok, end_ns),
            Err(flaw) => self.fail(s, Failure::Flawed(flaw), end_ns),
        }
    }

    /// A request failed: it is written down, and what it should have brought is missing.
    pub fn fail(&mut self, s: usize, failure: Failure, now_ns: u64) {
        self.cut(now_ns);
        let session = &mut self.flow.sessions[s];
        let request = &self.prepared[session.request as usize];
        let outcome = failure.outcome();
        let wants_example = self.recorder.wants_example(request.label, outcome);
        let is_seen = self.witness.as_ref().is_some_and(|witness| witness.wants_words(s));
        if wants_example || is_seen {
            let names = &self.kinds[session.kind()].slot_names;
            let detail = match (&failure, session.connection) {
                (Failure::Flawed(flaw), Some(c)) => {
                    let answer = self.transport.answer(c as usize);
                    let variables = Variables { slots: &session.slots, names };
                    let scratch = &self.flow.scratch;
                    request.probe.describe(*flaw, answer, self.transport.received(), variables, scratch)
                }
                (Failure::Unmet(unmet), _) => unmet.describe(names),
                _ => failure.to_string(),
            };
            if let Some(witness) = &mut self.witness {
                witness.failed(s, &detail);
            }
            if wants_example {
                let variables = Variables { slots: &session.slots, names };
                let detail = self.flow.secrets.masked(detail, variables);
                self.recorder.example(now_ns, request.label, outcome, detail);
            }
        }
        if let Some(program) = &mut self.program
            && session.of_program().is_some()
            && !matches!(failure, Failure::Flawed(_))
        {
            program.failed(s as u32, outcome);
        }
        request.probe.clear(&mut session.slots, &mut self.flow.scratch.held, self.shared);
        if !outcome.is_answered()
            && let Some(cold) = session.cold_mut()
        {
            cold.answer.clear((&mut self.flow.scratch.held, self.shared));
        }
        if session.lacked_a_connection(outcome, now_ns) {
            self.recorder.unconnected(Some(request.label), session.due_ns);
        }
        self.write_down(s, outcome, now_ns);
    }

    /// A step of the session itself (`set`, `repeat`, `when`, `js`) could not be done: it fails. It was never due as a request, and is
    /// in no figure of one. Its example is of the label of the request that comes next, or came last.
    pub fn fail_step(&mut self, s: usize, (op, reason): (usize, Option<&str>), now_ns: u64) {
        self.cut(now_ns);
        let session = &mut self.flow.sessions[s];
        let kind = &self.kinds[session.kind()];
        let request =
            |op: &Op| if let Op::Request(request) = op { Some(usize::from(*request)) } else { None };
        let next = kind.ops[op..].iter().find_map(request);
        let request = next.or_else(|| kind.ops[..op].iter().rev().find_map(request));
        let label = request.map_or(0, |request| self.prepared[request].label);
        let outcome = Outcome::Variable;
        self.recorder.step_failed(now_ns);
        if self.recorder.wants_example(label, outcome) {
            let reason = reason.map_or_else(no_room, str::to_owned);
            let told = format!("{}: {reason}", step_in_words(&kind.ops[op], &kind.slot_names));
            let variables = Variables { slots: &session.slots, names: &kind.slot_names };
            self.recorder.example(now_ns, label, outcome, self.flow.secrets.masked(told, variables));
        }
        session.went_well = false;
        if let Some(groups) = session.groups() {
            let times = Times { due_ns: now_ns, sent_ns: None, end_ns: now_ns, own_ns: 0 };
            groups.ended(outcome, &times);
        }
    }

    /// What a session's connection was bound to broke off while no request was under way. It is a failure of what began
    /// it, at this time, as a request by itself.
    pub fn lose(&mut self, s: usize, c: usize, now_ns: u64) {
        let Some((request, failure)) = self.transport.lost(c) else { return };
        self.count_loss(s, request, &failure, now_ns);
        self.flow.sessions[s].has_lost = true;
        self.close(c);
    }

    /// What a request began is lost: a failure at this time, as a request by itself.
    pub fn count_loss(&mut self, s: usize, request: usize, failure: &Failure, now_ns: u64) {
        self.cut(now_ns);
        let (label, outcome) = (self.prepared[request].label, failure.outcome());
        self.recorder.offered(label, now_ns);
        if self.recorder.wants_example(label, outcome) {
            let session = &self.flow.sessions[s];
            let variables =
                Variables { slots: &session.slots, names: &self.kinds[session.kind()].slot_names };
            let detail = self.flow.secrets.masked(failure.to_string(), variables);
            self.recorder.example(now_ns, label, outcome, detail);
        }
        let times = Times { due_ns: now_ns, sent_ns: None, end_ns: now_ns, own_ns: 0 };
        self.recorder.ended(label, outcome, &times);
        if let Some(groups) = self.flow.sessions[s].groups() {
            groups.ended(outcome, &times);
        }
    }

    /// The group that a session began last is over.
    pub fn leave_group(&mut self, s: usize, now_ns: u64) {
        self.cut(now_ns);
        if let Some(end) = self.flow.sessions[s].groups().and_then(|groups| groups.leave()) {
            self.recorder.group_ended(end);
        }
    }

    /// So are all that it is within.
    pub fn leave_groups(&mut self, s: usize, now_ns: u64) {
        while self.flow.sessions[s].any_group_begun() {
            self.leave_group(s, now_ns);
        }
    }

    /// A request has ended; the session's next step is due.
    pub fn write_down(&mut self, s: usize, outcome: Outcome, end_ns: u64) {
        self.cut(end_ns);
        let session = &mut self.flow.sessions[s];
        let request = &self.prepared[session.request as usize];
        if request.is_of_binding {
            let is_bound = session.connection.is_some_and(|c| self.transport.is_bound(c as usize));
            session.has_lost = outcome != Outcome::Ok && !is_bound;
        }
        let times =
            Times { due_ns: session.due_ns, sent_ns: session.sent_ns(), end_ns, own_ns: session.own_ns };
        let is_slow = self.recorder.ended(request.label, outcome, &times);
        let owner = self.flow.owner(s);
        let session = &self.flow.sessions[s];
        if (outcome.is_error() || self.recorder.spans_window(&times))
            && self.flow.sessions[owner].origin.is_user()
            && !session.lacked_a_connection(outcome, end_ns)
            // who waits for what the server tells unasked is not stuck
            && !(request.is_wait && matches!(outcome, Outcome::Ok | Outcome::Unfinished))
        {
            let due_ns = self.flow.not_counted_lost(owner, &times);
            self.recorder.came_to_nothing(outcome, &Times { due_ns, ..times });
        }
        let session = &self.flow.sessions[s];
        let connecting = session.connecting();
        if let Some(groups) = self.flow.sessions[owner].groups() {
            groups.ended(outcome, &times);
        }
        let session = &mut self.flow.sessions[s];
        if let Some(witness) = &mut self.witness {
            let variables =
                Variables { slots: &session.slots, names: &self.kinds[session.kind()].slot_names };
            let c = session.connection.filter(|_| outcome.is_answered()).map(|c| c as usize);
            let begun = c.and_then(|c| self.transport.answer_begun(c));
            let end = Ending {
                label: request.label,
                target: session.target() as u16,
                outcome,
                times,
                connecting,
                begun_ns: begun.map(|begun| self.clock.at(begun)),
                socket: c.map_or(0, |c| self.transport.socket_of(c) as u32),
                due_ms: self.clock.wall_ms(session.due_ns),
            };
            witness.over(s, &end, variables);
        }
        if outcome.is_answered() {
            let c = session.connection.map(|c| c as usize);
            let begun = c.and_then(|c| self.transport.answer_begun(c));
            if outcome == Outcome::Ok
                && let Some(bytes) = c.and_then(|c| self.transport.answer(c).body_bytes())
            {
                self.recorder.body(request.label, times.due_ns, bytes);
            }
            if outcome == Outcome::Ok && (begun.is_some() || connecting.is_some()) {
                let begun_ns = begun.map(|begun| self.clock.at(begun));
                self.recorder.parted(request.label, &times, connecting, begun_ns);
            }
            if is_slow {
                let begun_ns = begun.map(|begun| self.clock.at(begun));
                let status = c.map_or(0, |c| self.transport.answer(c).status());
                let socket = c.map_or(0, |c| self.transport.socket_of(c) as u32);
                let answer = (outcome, status, socket);
                self.recorder.slow(request.label, &times, connecting, begun_ns, answer);
            }
        }
        if session.is_writing() {
            if let Some(number) = session.cold_or_new().entered.take().filter(|_| outcome == Outcome::Ok) {
                self.recorder.acknowledge(number);
            }
            keys::end(self.shared, session, outcome);
        }
        session.went_well = outcome == Outcome::Ok;
        session.due_ns = end_ns;
        session.ready_ns = end_ns;
        session.state = SessionState::Thinking;
        self.timers.clear(s, Alarm::Timeout);
    }
}

/// A step that is no request, as its author wrote it.
pub(crate) fn step_in_words(op: &Op, names: &[String]) -> String {
    let named = |slot: &u16| names.get(usize::from(*slot)).map_or("a variable", String::as_str);
    match op {
        // what a step needs for itself has a name in brackets
        Op::Set { slot, value } if named(slot).starts_with('(') => format!("repeat: {}", value.source()),
        Op::Set { slot, value } => format!("set {}: {}", named(slot), value.source()),
        Op::Refuse { text, .. } => format!("repeat: {text}"),
        Op::JumpUnless { condition, .. } => format!("when: {}", condition.source()),
        Op::Code { .. } => "js".into(),
        _ => "a step".into(),
    }
}
