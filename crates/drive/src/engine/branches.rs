//! Branches: a session of its own for each request that a program, or a parallel step, makes beside others.
//!
//! A branch is none of the load's sessions: nothing arrives with it, and no weight draws it. It ends with its session at
//! the latest.

use std::time::Duration;

use tidemark_scenario::Value;
use tidemark_scenario::plan::Op;

use crate::clock::nanoseconds;
use crate::engine::programs::Asked;
use crate::engine::request::Prepared;
use crate::engine::thread::{Flow, Thread};
use crate::engine::timers::Alarm;
use crate::session::arrivals::Origin;
use crate::session::branches::{Branching, MOST_BRANCHES};
use crate::session::program::{Outgoing, ProgramRequest};
use crate::session::times::Times;
use crate::session::{Session, SessionState};

/// No deadline.
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
            self.drop_unbegun(s, self.prepared_of(request.label));
            if let Some(program) = &mut self.program {
                program.branched(parent as u32, None);
            }
            return;
        }
        self.release_connections(parent, now_ns);
        let b = self.begin_branch(parent, s);
        let op = self.flow.sessions[parent].place();
        self.flow.sessions[b].go_within_program(op);
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
        let branch = &mut sessions[b];
        branch.begin((kind, &self.kinds[kind]), *slots, false, (&mut scratch.held, self.shared));
        branch.origin = Origin::default();
        (branch.due_ns, branch.ready_ns, branch.begun_due_ns) = (due_ns, ready_ns, due_ns);
        branch.state = SessionState::Thinking;
        *branch.branching_or_new() = Branching { parent: Some(parent as u32), ..Branching::default() };
        b
    }

    /// A request is due, and there is no room for a branch.
    fn drop_unbegun(&mut self, s: usize, request: usize) {
        let (label, due_ns) = (self.prepared[request].label, self.flow.sessions[s].due_ns);
        self.recorder.offered(label, due_ns);
        self.recorder.dropped(label, due_ns);
    }

    /// Gets requests of a parallel step on their way, at most so many to each target; whether all are over, and it has gone on
    /// at its end.
    pub fn parallel(&mut self, s: usize, (until, at_most): (u32, u16), now_ns: u64) -> bool {
        let session = &mut self.flow.sessions[s];
        let first = session.place() + 1;
        let branching = session.branching_or_new();
        branching.news_ns = None;
        if branching.unsent.is_none() {
            (branching.unsent, branching.any_failed) = (Some((first..until).collect()), false);
            self.release_connections(s, now_ns);
            if let Some(cold) = self.flow.sessions[s].cold_mut() {
                // of several answers none is the last
                cold.answer.clear((&mut self.flow.scratch.held, self.shared));
            }
        }
        loop {
            let mut held = Vec::new();
            for op in self.flow.sessions[s].branching_or_new().unsent.take().unwrap_or_default() {
                let Some(Op::Request(request)) =
                    self.kinds[self.flow.sessions[s].kind()].ops.get(op as usize)
                else {
                    continue;
                };
                let target = self.prepared[usize::from(*request)].target;
                match self.under_way_to(s, target.into()) < usize::from(at_most) {
                    true => self.branch_off(s, *request, now_ns),
                    false => held.push(op),
                }
            }
            let branching = self.flow.sessions[s].branching_or_new();
            let (is_over, is_idle) = (held.is_empty(), branching.branches.is_empty());
            if is_idle && is_over {
                break;
            }
            branching.unsent = Some(held);
            if !is_idle {
                branching.until_ns = NEVER;
                self.flow.sessions[s].state = SessionState::Awaiting;
                self.timers.clear(s, Alarm::Wake);
                return false;
            }
        }
        let session = &mut self.flow.sessions[s];
        session.went_well = !session.branching_or_new().any_failed;
        session.branching_or_new().news_ns = None;
        session.requested = true;
        session.go_to(until);
        true
    }

    /// Requests of a session's branches that are under way to a target.
    fn under_way_to(&self, s: usize, target: usize) -> usize {
        let branches = self.flow.sessions[s].branching().map_or(&[][..], |own| &own.branches);
        branches.iter().filter(|b| self.flow.sessions[**b as usize].target() == target).count()
    }

    /// A request of the plan goes on a branch of its session, with the variables that this has.
    fn branch_off(&mut self, s: usize, request: u16, now_ns: u64) {
        if !self.flow.branches.has_room() {
            self.flow.sessions[s].branching_or_new().any_failed = true;
            return self.drop_unbegun(s, request.into());
        }
        let b = self.begin_branch(s, s);
        let own = std::mem::take(&mut self.flow.sessions[s].slots);
        let branch = &mut self.flow.sessions[b];
        for (slot, of) in branch.slots.iter_mut().zip(&own).filter(|(_, of)| of.value() != Value::Missing) {
            self.flow.scratch.held.write(self.shared, slot, |slot| slot.clone_from(of));
        }
        branch.finish();
        self.flow.sessions[s].slots = own;
        let Prepared { target, timeout_ns, .. } = self.prepared[usize::from(request)];
        self.flow.sessions[b].turn_to(target);
        self.fall_due(b, request, timeout_ns, now_ns);
        let placed = self.place(b, now_ns);
        if self.settle(b, placed, now_ns) {
            self.timers.set(b, Alarm::Wake, now_ns);
        }
    }

    /// Gives a session's connections back, as its branches may need them.
    fn release_connections(&mut self, s: usize, now_ns: u64) {
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

    /// Ends a branch, or waits for or cuts off a session's branches; whether the session's end is handled by that.
    pub fn end_with_branches(&mut self, s: usize, now_ns: u64) -> bool {
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
        let went_well = self.flow.sessions[b].went_well;
        if let Some(own) = self.flow.sessions[parent].branching_mut() {
            own.branches.retain(|branch| *branch as usize != b);
            own.any_failed |= !went_well;
        }
        // what its answer set is the session's
        let request = usize::from(self.flow.sessions[b].request);
        for slot in &self.prepared[request].keeps {
            let mut kept = std::mem::take(&mut self.flow.sessions[b].slots[usize::from(*slot)]);
            std::mem::swap(&mut self.flow.sessions[parent].slots[usize::from(*slot)], &mut kept);
            self.flow.sessions[b].slots[usize::from(*slot)] = kept;
        }
        self.flow.sessions[b].state = SessionState::Free;
        self.flow.branches.give(b as u32);
    }
}
