//! Sessions that a program carries out: asked for their next request, which then goes as any other does.

use std::time::Duration;

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Grace, Op, SessionKind};

use crate::DriveOptions;
use crate::clock::nanoseconds;
use crate::engine::exchange::Placed;
use crate::engine::thread::Thread;
use crate::engine::timers::Alarm;
use crate::error::DriveError;
use crate::protocols::Protocol;
use crate::protocols::target::Target;
use crate::session::SessionState;
use crate::session::failure::Failure;
use crate::session::program::{Next, Outgoing, ProgramRequest, Programs};

/// Whether sessions of a kind ask a program.
pub(crate) fn has_program(kind: &SessionKind) -> bool {
    kind.ops.iter().any(|op| matches!(op, Op::Program))
}

/// How long sessions of a kind go on, where that is bounded.
pub(crate) fn grace(kind: &SessionKind) -> Option<Grace> {
    kind.script.as_ref().and_then(|script| script.grace)
}

/// Whether a program may bind a connection to a session, by a stream that it leaves open or a WebSocket.
pub(crate) fn may_bind(kinds: &[SessionKind], options: &DriveOptions) -> bool {
    let is_http_2 = |target: &Target| matches!(target.protocol, Protocol::Http2(_));
    kinds.iter().any(has_program) && (options.open_websockets() || options.targets.iter().any(is_http_2))
}

/// Whether the programs of these kinds can be carried out.
pub(crate) fn check<'k>(
    plan: &Plan,
    kinds: impl IntoIterator<Item = &'k SessionKind>,
    programs: Option<&Programs>,
    targets: &[Target],
) -> Result<(), DriveError> {
    let mut kinds = kinds.into_iter();
    let Some(kind) = kinds.find(|kind| has_program(kind)) else { return Ok(()) };
    let is_spoken =
        |target: &Target| matches!(target.protocol, Protocol::Http1 | Protocol::Http2(_) | Protocol::Grpc(_));
    let why = if programs.is_none() {
        "there is no program"
    } else if plan.labels.is_empty() {
        "the plan has no label for its requests"
    } else if plan.requests.len() + plan.labels.len() > usize::from(u16::MAX) {
        "the plan has too many requests and labels"
    } else if plan.has_websockets() || plan.has_event_streams() || !targets.iter().all(is_spoken) {
        "programs speak HTTP and gRPC, without steps over WebSockets or event streams beside them"
    } else if plan.limits.pipeline > 1 && programs.is_some_and(Programs::open_websockets) {
        "a WebSocket has a connection of its own, and requests are pipelined; leave `pipeline` out"
    } else {
        return Ok(());
    };
    Err(DriveError::Program { kind: kind.name.clone(), why })
}

/// What came of asking a program.
pub(crate) enum Asked {
    /// A request, and what came of that.
    Placed(Placed),
    /// A pause, microseconds.
    Think(u64),
    /// A pause, microseconds, that is over with the load.
    Rest(u64),
    /// Nothing that takes time: it is asked again.
    Goes,
    /// It waits for its branches.
    Awaits,
    /// Nothing more.
    End,
    /// Nothing more, of any session of this thread.
    Stopped,
}

impl Thread<'_> {
    /// Asks the program what a session does next, and gets its request on its way.
    pub fn ask_program(&mut self, s: usize, begins: bool, now_ns: u64) -> Asked {
        if self.flow.branches.any() {
            self.tell_parent(s);
        }
        let Some(program) = &mut self.program else { return Asked::End };
        let session = &self.flow.sessions[s];
        if begins {
            program.begin(s as u32, session.kind());
            self.flow.in_program += 1;
        }
        match program.next(s as u32, Duration::from_nanos(self.clock.now_ns())) {
            Next::Request(request) => {
                let flaw = self.turn_to_made(s, &request);
                let counted = (request.label, request.timeout);
                Asked::Placed(self.place_of_program(s, counted, Outgoing::Request(request), flaw))
            }
            Next::Message(message) => {
                let counted = (message.label, message.timeout);
                Asked::Placed(self.place_of_program(s, counted, Outgoing::Message(message), None))
            }
            Next::Think(time) => Asked::Think(nanoseconds(time) / 1_000),
            Next::Rest(time) => Asked::Rest(nanoseconds(time) / 1_000),
            Next::Branch(request) => {
                self.branch(s, request, now_ns);
                Asked::Goes
            }
            Next::Say(branch, said) => {
                self.say(s, branch, &said);
                Asked::Goes
            }
            Next::Await(time) => self.await_branches(s, time),
            Next::End => Asked::End,
            Next::Stop => {
                self.flow.is_stopped = true;
                Asked::Stopped
            }
            Next::Failed(reason) => self.cannot_go_on(reason),
        }
    }

    /// A session's program has nothing more to do for it.
    pub fn leave_program(&mut self, s: usize) {
        // a branch is counted with its session
        if self.flow.sessions[s].leave_program() && self.flow.owner(s) == s {
            self.flow.in_program -= 1;
        }
    }

    /// Whether a session goes on at the end of the load, until its program has nothing more to do for it.
    pub fn finishes(&self, s: usize) -> bool {
        self.flow.sessions[s].is_in_program()
            && self.program.as_ref().is_some_and(|program| program.finishes())
    }

    /// Whether any session does.
    pub fn any_finishes(&self) -> bool {
        self.flow.in_program > 0 && self.program.as_ref().is_some_and(|program| program.finishes())
    }

    /// Sets the deadline of a session that begins, where its kind has one.
    pub fn set_deadline(&mut self, s: usize) {
        let session = &self.flow.sessions[s];
        match grace(&self.kinds[session.kind()]) {
            Some(grace) => {
                let deadline_ns = self.schedule.over_ns(session.origin, session.due_ns, grace);
                self.timers.set(s, Alarm::Deadline, deadline_ns);
            }
            None => self.timers.clear(s, Alarm::Deadline),
        }
    }

    /// A session has reached its deadline: what is under way of it is cut off, and it ends.
    pub fn interrupt(&mut self, s: usize, now_ns: u64) {
        let state = self.flow.sessions[s].state;
        if matches!(state, SessionState::Free | SessionState::Parked) || !self.tell_interrupted(s) {
            return;
        }
        if state.is_due() {
            self.give_up(s, now_ns);
            self.flow.cut_off += 1;
        }
        self.flow.leaving.retain(|leaving| *leaving as usize != s);
        self.timers.clear(s, Alarm::Wake);
        self.cut_branches(s, now_ns);
        let session = &mut self.flow.sessions[s];
        if let Some(groups) = session.groups() {
            groups.cut_off(now_ns);
        }
        session.finish();
        session.due_ns = session.due_ns.min(now_ns);
        self.run_session(s, now_ns);
    }

    /// Tells the program that one of its sessions ends where it is; whether there is something to end.
    pub fn tell_interrupted(&mut self, s: usize) -> bool {
        let session = &self.flow.sessions[s];
        // a branch that is over was in the program, too
        let is_its =
            session.state != SessionState::Free && session.is_in_program() && self.flow.owner(s) == s;
        match self.program.as_mut().filter(|_| is_its) {
            Some(program) => program.interrupted(s as u32),
            None => true,
        }
    }

    /// The drive ends, for this reason.
    pub fn cannot_go_on(&mut self, reason: String) -> Asked {
        self.flow.program_failed.get_or_insert(reason);
        self.control.abort();
        Asked::Stopped
    }

    /// Turns a session to where its program's request goes; in words why that cannot be sent, if so.
    pub fn turn_to_made(&mut self, s: usize, request: &ProgramRequest) -> Option<String> {
        let target = usize::from(request.target);
        if target >= self.origins.len() {
            return Some(format!("a program's request goes to target {target}, which there is not"));
        }
        let flaw = request.flaw();
        if flaw.is_none() {
            self.flow.sessions[s].turn_to(request.target);
        }
        flaw
    }

    /// As what a program's request with this label of the plan is counted.
    pub fn prepared_of(&self, label: u16) -> usize {
        // behind the plan's own are those of programs, one for each label
        self.prepared.len() - self.flow.labels + usize::from(label).min(self.flow.labels - 1)
    }

    pub fn place_of_program(
        &mut self,
        s: usize,
        (label, timeout): (u16, Duration),
        outgoing: Outgoing,
        flaw: Option<String>,
    ) -> Placed {
        let now_ns = self.clock.now_ns();
        let index = self.prepared_of(label);
        self.fall_due(s, index as u16, nanoseconds(timeout), now_ns);
        self.flow.sessions[s].cold_or_new().of_program = Some(outgoing.into());
        match flaw {
            Some(words) => Placed::failed(Failure::Unsendable(words)),
            None => self.place(s, now_ns),
        }
    }
}
