//! Branches: a session of its own for each request that a program makes beside others.
//!
//! A branch is none of the load's sessions: nothing arrives with it, and no weight draws it. It ends with its session at
//! the latest.

use std::time::Duration;

use crate::clock::nanoseconds;
use crate::engine::programs::Asked;
use crate::engine::thread::{Flow, Thread};
use crate::engine::timers::Alarm;
use crate::session::arrivals::Origin;
use crate::session::branches::{Branching, MOST_BRANCHES};
use crate::session::program::{Outgoing, ProgramRequest};
use crate::session::times::Times;
use crate::session::{Session, SessionState};

/// No time at all.
const NEVER: u64 = u64::MAX;

impl Flow {
    /// Whose cookies and groups a session's requests are about: a branch has those of the session that began it.
    #[inline]
    pub fn owner(&self, s: usize) -> usize {
        if self.branches.any() { self.parent(s).unwrap_or(s) } else { s }
    }

    /// From when on a user's time with a request is not counted as lost yet: one that waits for several at once loses it once.
    pub fn not_counted_lost(&mut self, owner: usize, times: &Times) -> u64 {
        let Some(branching) = self.sessions[owner].branching_mut() else { return times.due_ns };
        let counted_ns = branching.lost_ns.max(times.end_ns);
        times.due_ns.max(std::mem::replace(&mut branching.lost_ns, counted_ns)).min(times.end_ns)
    }

    fn parent(&self, s: usize) -> Option<usize> {
        Some(self.sessions[s].branching()?.parent? as usize)
    }
}

impl Thread<'_> {
    /// Begins a branch of a session for this request; of a branch, a branch of the same session.
    pub fn branch(&mut self, s: usize, request: ProgramRequest, now_ns: u64) {
        let parent = self.flow.owner(s);
        let begun = self.flow.sessions[parent].branching().map_or(0, |own| own.branches.len());
        if begun >= MOST_BRANCHES || !self.flow.branches.has_room() {
            let due_ns = self.flow.sessions[s].due_ns;
            let label = self.prepared[self.prepared_of(request.label)].label;
            self.recorder.offered(label, due_ns);
            self.recorder.dropped(label, due_ns);
            if let Some(program) = &mut self.program {
                program.branched(parent as u32, None);
            }
            return;
        }
        self.lend_all(parent, now_ns);
        let b = self.begin_branch(parent, s);
        if let Some(program) = &mut self.program {
            program.branched(parent as u32, Some(b as u32));
        }
        let flaw = self.turn_to_made(b, &request);
        let counted = (request.label, request.timeout);
        let placed = self.place_of_program(b, counted, Outgoing::Request(request), flaw);
        if self.settle(b, placed, now_ns) {
            // it is over already
            self.timers.set(b, Alarm::Wake, now_ns);
        }
    }

    /// Makes a session a branch, due when the session is that has it begun.
    fn begin_branch(&mut self, parent: usize, s: usize) -> usize {
        let Flow { sessions, branches, scratch, slots, .. } = &mut self.flow;
        let b = branches.take(sessions.len()) as usize;
        if b == sessions.len() {
            sessions.push(Session::default());
        }
        let Session { due_ns, ready_ns, .. } = sessions[s];
        sessions[parent].branching_or_new().branches.push(b as u32);
        let kind = sessions[parent].kind();
        let op = sessions[parent].place();
        let branch = &mut sessions[b];
        branch.begin((kind, &self.kinds[kind]), *slots, false, (&mut scratch.held, self.shared));
        branch.go_within_program(op);
        branch.origin = Origin::default();
        (branch.due_ns, branch.ready_ns, branch.begun_due_ns) = (due_ns, ready_ns, due_ns);
        branch.state = SessionState::Thinking;
        *branch.branching_or_new() = Branching { parent: Some(parent as u32), ..Branching::default() };
        b
    }

    /// A session that has branches begun holds nothing meanwhile that they may wait for.
    fn lend_all(&mut self, s: usize, now_ns: u64) {
        let held = self.flow.sessions[s].connection;
        let lends = |thread: &mut Self, c: u32| {
            let target = thread.pools.target_of(c as usize);
            thread.pools.to(target).pool.lends && !thread.is_bound(c as usize)
        };
        if let Some(connection) = held
            && lends(self, connection)
        {
            self.flow.sessions[s].connection = None;
            self.release(connection, now_ns);
        }
        self.lend(s, now_ns);
    }

    /// A session waits for what comes of its branches, and for so long at most.
    pub fn await_branches(&mut self, s: usize, time: Option<Duration>) -> Asked {
        let has_websocket = self.held_websocket(s).is_some();
        let session = &mut self.flow.sessions[s];
        let due_ns = session.due_ns;
        let branching = session.branching_or_new();
        if let Some(news_ns) = branching.news_ns.take() {
            session.due_ns = due_ns.max(news_ns);
            return Asked::Goes;
        }
        branching.until_ns = time.map_or(NEVER, |time| due_ns.saturating_add(nanoseconds(time)));
        let until_ns = branching.until_ns;
        let is_alone = until_ns == NEVER && branching.branches.is_empty();
        if is_alone && !has_websocket {
            return self.cannot_go_on("a program waits for a branch, and has none under way".into());
        }
        session.state = SessionState::Awaiting;
        match until_ns {
            NEVER => self.timers.clear(s, Alarm::Wake),
            _ => self.timers.set(s, Alarm::Wake, until_ns),
        }
        Asked::Awaits
    }

    /// What a session waited for is there, or it has waited long enough.
    pub fn awaited(&mut self, s: usize, now_ns: u64) {
        let session = &mut self.flow.sessions[s];
        session.state = SessionState::Thinking;
        let due_ns = session.due_ns;
        let branching = session.branching_or_new();
        let after_ns = branching.news_ns.take().unwrap_or(branching.until_ns);
        session.due_ns = due_ns.max(after_ns.min(now_ns));
        self.run_session(s, now_ns);
    }

    /// Something came of a session; where it is a branch, who began it goes on.
    pub fn tell_parent(&mut self, s: usize) {
        let Some(parent) = self.flow.parent(s) else { return };
        let due_ns = self.flow.sessions[s].due_ns;
        let session = &mut self.flow.sessions[parent];
        session.branching_or_new().news_ns.get_or_insert(due_ns);
        if session.state == SessionState::Awaiting {
            self.timers.set(parent, Alarm::Wake, due_ns);
        }
    }

    /// What branches make of a session's end: whether it is dealt with by that.
    pub fn ends_otherwise(&mut self, s: usize, now_ns: u64) -> bool {
        let Some(branching) = self.flow.sessions[s].branching() else { return false };
        if branching.parent.is_some() {
            self.end_branch(s, now_ns);
            return true;
        }
        let waits = !branching.branches.is_empty() && (self.flow.draining || self.flow.is_stopped);
        if waits {
            // what is under way is waited for, as all requests are
            let session = &mut self.flow.sessions[s];
            session.state = SessionState::Awaiting;
            session.branching_or_new().news_ns = None;
            self.timers.clear(s, Alarm::Wake);
            return true;
        }
        self.cut_branches(s, now_ns);
        false
    }

    /// A session needs its branches no more: their requests that are under way are cut off.
    pub fn cut_branches(&mut self, s: usize, now_ns: u64) {
        while let Some(b) = self.flow.sessions[s].branching_mut().and_then(|own| own.branches.pop()) {
            let b = b as usize;
            if self.flow.sessions[b].state.is_due() {
                self.give_up(b, now_ns);
                self.flow.cut_off += 1;
            }
            self.flow.leaving.retain(|leaving| *leaving as usize != b);
            self.end_branch(b, now_ns);
        }
        if let Some(own) = self.flow.sessions[s].branching_mut() {
            own.news_ns = None;
        }
    }

    fn end_branch(&mut self, b: usize, now_ns: u64) {
        self.tell_parent(b);
        self.give_all_back(b, now_ns);
        self.timers.clear(b, Alarm::Wake);
        self.timers.clear(b, Alarm::Timeout);
        let Some(parent) = self.flow.parent(b) else { return };
        if let Some(own) = self.flow.sessions[parent].branching_mut() {
            own.branches.retain(|branch| *branch as usize != b);
        }
        self.flow.sessions[b].state = SessionState::Free;
        self.flow.branches.give(b as u32);
    }
}
