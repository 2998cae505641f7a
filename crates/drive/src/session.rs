//! A session and the interpreter of its operations.

pub(crate) mod answer;
pub(crate) mod arrivals;
pub(crate) mod branches;
pub(crate) mod code;
pub(crate) mod content;
pub(crate) mod cookies;
pub(crate) mod failure;
pub(crate) mod findings;
pub(crate) mod groups;
pub(crate) mod held_rows;
pub(crate) mod held_values;
pub(crate) mod jar;
pub(crate) mod keys;
pub(crate) mod location;
pub(crate) mod program;
pub(crate) mod sockets;
pub(crate) mod times;

use std::num::NonZeroU64;

use tidemark_record::Outcome;
use tidemark_scenario::keys::Write;
use tidemark_scenario::plan::{Op, SessionKind};
use tidemark_scenario::{Context, Shared, Slot};

use crate::session::answer::Scratch;
use crate::session::arrivals::Origin;
use crate::session::branches::Branching;
use crate::session::code::KeptAnswer;
use crate::session::groups::Groups;
use crate::session::held_rows::HeldRows;
use crate::session::held_values::HeldValues;
use crate::session::jar::Jar;
use crate::session::program::Outgoing;
use crate::session::times::Connecting;

/// Most operations without a request or a pause that a session does in one turn; then others have theirs. It
/// bounds how long a scenario's endless loop keeps a thread from its connections.
pub(crate) const OPS_PER_TURN: u32 = 4_096;
/// So many of them are little, and not timed. How long the rest takes counts as time in which a session only computes, if its
/// turn ends so.
pub(crate) const OPS_UNTIMED: u32 = 256;

/// What sessions of a thread look at beside their own variables.
#[derive(Debug)]
pub(crate) struct Environment<'a> {
    /// Counters and feeders.
    pub shared: &'a Shared,
    /// The thread's random numbers.
    pub random: &'a mut fastrand::Rng,
    /// The wall clock.
    pub epoch_ms: i64,
}

impl Environment<'_> {
    /// With a session's variables: all that an expression may look at.
    pub fn context<'b>(&'b mut self, slots: &'b [Slot]) -> Context<'b> {
        Context { slots, shared: self.shared, random: self.random, epoch_ms: self.epoch_ms }
    }
}

/// What a session waits for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum SessionState {
    /// Nobody's: free for the next arrival.
    #[default]
    Free,
    /// A closed user between two sessions.
    Parked,
    /// In think time, or giving way to others.
    Thinking,
    /// Its request is due, and no connection is free.
    Waiting,
    /// It has just been given the connection that it waited for.
    Granted,
    /// Its connection may not be tried again yet.
    BackingOff,
    /// Its program waits for what comes of its branches.
    Awaiting,
    /// Its connection is being made.
    Connecting,
    /// Its request is sent, or being sent.
    Exchanging,
}

impl SessionState {
    /// Whether a request is due and not ended.
    pub fn is_due(self) -> bool {
        use SessionState::{Awaiting, Free, Parked, Thinking};
        !matches!(self, Free | Parked | Thinking | Awaiting)
    }
}

/// One virtual user's session: what every request looks at. What few do is [`Cold`], so that the state of thousands of users
/// lies in as few cache lines as may be.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Session {
    /// What it waits for.
    pub state: SessionState,
    /// Where it came from.
    pub origin: Origin,
    /// When it was due to begin.
    pub begun_due_ns: u64,
    /// Its variables.
    pub slots: Box<[Slot]>,
    /// The connection to its request's target that it holds.
    pub connection: Option<u32>,
    /// Index of its kind.
    kind: u32,
    next_op: u32,
    /// The target of its request.
    target: u16,
    /// Its request: index into the plan's.
    pub request: u16,
    /// What it sends for that: the same, or a hop of it.
    pub sends: u16,
    /// Whether that is a hop.
    pub is_hop: bool,
    /// When its request is, or its next step will be, due.
    pub due_ns: u64,
    /// From when on only the driver is in its request's way; see [`held_until`](Session::held_until).
    pub ready_ns: u64,
    /// How late the driver turned to its request.
    late_ns: u64,
    /// How much of its request's time so far was the driver's own doing: how late it was turned to, or left.
    pub own_ns: u64,
    /// Whether its user begins with its next request. Users begin many at once, and it is by nobody's schedule that their
    /// connections are made one after the other.
    pub is_users_first: bool,
    /// Whether its user's first request is to come, for which it makes a connection of its own.
    pub is_new_user: bool,
    /// When its request's first byte was sent.
    sent_ns: Option<NonZeroU64>,
    /// When its request has had its time.
    pub deadline_ns: u64,
    /// Tells apart the times it waited for a connection.
    pub ticket: u32,
    /// Whether what its connection was bound to is gone, or never was, which has been counted.
    pub has_lost: bool,
    /// Whether it has made a request since it began.
    pub requested: bool,
    /// Whether its last request ended well.
    pub went_well: bool,
    /// Whether there may be something in `cold`.
    has_cold: bool,
    cold: Option<Box<Cold>>,
}

/// Redirects, cookies, groups, held rows, ledger: empty in most scenarios.
#[derive(Debug, Default)]
pub(crate) struct Cold {
    /// Groups of steps that the session is within.
    pub groups: Groups,
    /// The rows that it holds.
    pub rows: HeldRows,
    /// Its cookies, by the target that is sent them.
    pub jars: Vec<Jar>,
    /// Its connections to other targets than its request's, by target; empty where there are none.
    elsewhere: Vec<Option<u32>>,
    /// How many redirects its request has followed.
    pub hops: u32,
    /// Whether one of them made a GET of it.
    pub goes_as_get: bool,
    /// The number under which its request's write is entered in the ledger, once it is.
    pub entered: Option<u64>,
    /// What its request writes of the scenario's `keys`, once it has begun.
    pub write: Option<Write>,
    /// How often its request was sent again because it had not been taken.
    pub resends: u32,
    /// What was made of a connection for its request, if one was.
    pub connecting: Option<Connecting>,
    /// How long its request waited until a connection was free; 0 where it did not.
    pub queued_ns: u64,
    /// Its last answer, where code looks at that.
    pub answer: KeptAnswer,
    /// Whether a program says what it does.
    is_in_program: bool,
    /// What it has to do with branches.
    branching: Option<Box<Branching>>,
    /// Its request, where a program has made it.
    pub of_program: Option<Box<Outgoing>>,
}

/// The most that a session takes, without what its variables, groups, rows and cookies hold.
pub(crate) const SESSION_BYTES: usize = size_of::<Session>() + size_of::<Cold>();

/// The cookies of who has none.
static NO_COOKIES: Jar = Jar::new();

impl Cold {
    /// What is of the request before is of none any more. Whether nothing else is there either.
    fn begin_request(&mut self) -> bool {
        (self.hops, self.goes_as_get, self.resends) = (0, false, 0);
        (self.entered, self.write, self.connecting, self.queued_ns) = (None, None, None, 0);
        self.of_program = None;
        let holds_nothing = self.groups.is_empty()
            && self.rows.is_empty()
            && self.elsewhere.is_empty()
            && self.answer.is_empty();
        holds_nothing
            && !self.is_in_program
            && self.branching.is_none()
            && self.jars.iter().all(Jar::is_empty)
    }
}

/// What a session needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// A request of this index.
    Request(u16),
    /// A pause, microseconds.
    Think(u64),
    /// To be told that the group which it began last is over.
    GroupOver,
    /// A number to be measured, as the operation of this index says.
    Measure(usize),
    /// To be told that the operation of this index failed, for this reason; for want of room where none is said. The session
    /// goes on behind it.
    Failed(usize, Option<&'static str>),
    /// The requests between its next operation and that of this index, of which so many go to each target at once.
    Parallel(u32, u16),
    /// Code to be run, as the operation of this index says.
    Code(usize),
    /// To be told by a program, with which it begins or goes on.
    Program {
        /// Whether it begins.
        begins: bool,
    },
    /// Nothing, but it has had its turn.
    Spent,
    /// It is over.
    End,
}

impl Session {
    /// Begins anew as a session of a kind; `slots` is enough for any kind.
    #[inline]
    pub fn begin(
        &mut self,
        (kind_index, kind): (usize, &SessionKind),
        slots: usize,
        keep_cookies: bool,
        (held, shared): (&mut HeldValues, &Shared),
    ) {
        self.kind = kind_index as u32;
        self.next_op = 0;
        self.requested = false;
        self.went_well = false;
        self.has_lost = false;
        self.sent_ns = None;
        if self.slots.len() < slots {
            self.slots = (0..slots).map(|_| Slot::default()).collect();
        }
        self.slots.iter_mut().for_each(|slot| held.clear(shared, slot));
        if let Some(cold) = self.cold_mut() {
            cold.groups.clear();
            cold.answer.clear((held, shared));
            cold.is_in_program = false;
            cold.branching = None;
            if !(keep_cookies && kind.keep_cookies) {
                cold.jars.iter_mut().for_each(Jar::clear);
            }
        }
    }

    /// Index of its kind.
    pub fn kind(&self) -> usize {
        self.kind as usize
    }

    /// What it has beside what every request looks at, if it has anything.
    #[inline]
    pub fn cold(&self) -> Option<&Cold> {
        if self.has_cold { self.cold.as_deref() } else { None }
    }

    /// The same, to be changed.
    #[inline]
    pub fn cold_mut(&mut self) -> Option<&mut Cold> {
        if self.has_cold { self.cold.as_deref_mut() } else { None }
    }

    /// The same, to be filled.
    pub fn cold_or_new(&mut self) -> &mut Cold {
        self.has_cold = true;
        self.cold.get_or_insert_default()
    }

    /// Whether it is within a group of which a request was due.
    pub fn any_group_begun(&self) -> bool {
        self.cold().is_some_and(|cold| cold.groups.any_begun())
    }

    /// Groups of steps that it is within, if any.
    pub fn groups(&mut self) -> Option<&mut Groups> {
        self.cold_mut().map(|cold| &mut cold.groups)
    }

    /// Gives the rows that it holds back.
    #[inline]
    pub fn give_rows_back(&mut self, shared: &Shared) {
        if let Some(cold) = self.cold_mut() {
            cold.rows.give_back(shared);
        }
    }

    /// How often it got a row that another session held.
    pub fn rows_not_alone(&self) -> u64 {
        // also of rows given back long ago
        self.cold.as_ref().map_or(0, |cold| cold.rows.not_alone)
    }

    /// Its connections to other targets, by target.
    pub fn elsewhere(&mut self) -> &mut [Option<u32>] {
        match self.cold_mut() {
            Some(cold) => &mut cold.elsewhere,
            None => &mut [],
        }
    }

    /// How many redirects its request has followed.
    pub fn hops(&self) -> u32 {
        self.cold().map_or(0, |cold| cold.hops)
    }

    /// The number under which its request's write is entered in the ledger, once it is.
    pub fn entered(&self) -> Option<u64> {
        self.cold().and_then(|cold| cold.entered)
    }

    /// What its request writes of the scenario's `keys`, once it has begun; from then on nothing.
    pub fn take_write(&mut self) -> Option<Write> {
        self.cold_mut().and_then(|cold| cold.write.take())
    }

    /// What was made of a connection for its request, if one was.
    #[inline]
    pub fn connecting(&self) -> Option<Connecting> {
        self.cold().and_then(|cold| cold.connecting)
    }

    /// When its request's first byte was sent, if it was.
    pub fn sent_ns(&self) -> Option<u64> {
        self.sent_ns.map(NonZeroU64::get)
    }

    /// Its request's first byte was sent then, or none was.
    pub fn set_sent(&mut self, sent_ns: Option<u64>) {
        // nothing is sent at the run's zero
        self.sent_ns = sent_ns.and_then(|sent_ns| NonZeroU64::new(sent_ns.max(1)));
    }

    /// The target of its request.
    pub fn target(&self) -> usize {
        self.target.into()
    }

    /// Its next request goes there: the connection that it holds to that target is the one that it has now.
    #[inline]
    pub fn turn_to(&mut self, target: u16) {
        if target != self.target {
            self.change_target(target);
        }
    }

    fn change_target(&mut self, target: u16) {
        let (before, after) = (usize::from(self.target), usize::from(target));
        let held = self.connection.take();
        let elsewhere = &mut self.cold_or_new().elsewhere;
        let most = before.max(after);
        if elsewhere.len() <= most {
            elsewhere.resize(most + 1, None);
        }
        elsewhere[before] = held;
        self.connection = elsewhere[after].take();
        self.target = target;
    }

    /// The cookies that a target is sent.
    #[inline]
    pub fn jar(&self, target: usize) -> &Jar {
        self.cold().and_then(|cold| cold.jars.get(target)).unwrap_or(&NO_COOKIES)
    }

    /// A request falls due, and the driver has turned to it.
    #[inline]
    pub fn fall_due(&mut self, request: u16, now_ns: u64) {
        self.request = request;
        (self.sends, self.is_hop) = (request, false);
        self.ready_ns = self.ready_ns.max(self.due_ns);
        self.late_ns = match std::mem::take(&mut self.is_users_first) {
            true => 0,
            false => now_ns.saturating_sub(self.ready_ns),
        };
        self.own_ns = self.late_ns;
        self.sent_ns = None;
        if let Some(cold) = self.cold_mut() {
            self.has_cold = !cold.begin_request();
        }
    }

    /// Whether its request is one whose acknowledgement counts.
    pub fn is_writing(&self) -> bool {
        self.cold().is_some_and(|cold| cold.entered.is_some() || cold.write.is_some())
    }

    /// Something other than the driver was in its request's way until now: a connection was not free or not made. How
    /// late the driver had turned to it before stays the driver's, as if all the waiting had come first.
    pub fn held_until(&mut self, now_ns: u64) {
        self.ready_ns = now_ns.saturating_sub(self.late_ns);
    }

    /// Its request waited until now for a free connection.
    pub fn queued_until(&mut self, now_ns: u64) {
        let queued_ns = now_ns.saturating_sub(self.due_ns).max(1);
        self.cold_or_new().queued_ns = queued_ns;
    }

    /// Whether its request comes to nothing for want of a connection: most of its time was over before one was free.
    pub fn lacked_a_connection(&self, outcome: Outcome, end_ns: u64) -> bool {
        let queued_ns = self.cold().map_or(0, |cold| cold.queued_ns);
        queued_ns > 0
            && matches!(outcome, Outcome::Timeout | Outcome::Unfinished)
            && queued_ns.saturating_mul(2) > end_ns.saturating_sub(self.due_ns)
    }

    /// So long was worked on the answer that came last: what comes next is due once that is done.
    pub fn worked(&mut self, work_ns: u64) {
        self.due_ns = self.due_ns.saturating_add(work_ns);
        self.ready_ns = self.ready_ns.saturating_add(work_ns);
        if let Some(groups) = self.groups() {
            groups.worked(work_ns);
        }
    }

    /// How long only the driver has been in its request's way.
    pub fn lag_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.due_ns.max(self.ready_ns))
    }

    /// Its request, where a program has made it.
    #[inline]
    pub fn of_program(&self) -> Option<&Outgoing> {
        self.cold().and_then(|cold| cold.of_program.as_deref())
    }

    /// Whether a program says what it does.
    #[inline]
    pub fn is_in_program(&self) -> bool {
        self.cold().is_some_and(|cold| cold.is_in_program)
    }

    /// Whether its request asks for a WebSocket.
    pub fn asks_websocket(&self) -> bool {
        matches!(self.of_program(), Some(Outgoing::Request(request)) if request.websocket.is_some())
    }

    /// What it has to do with branches, if anything.
    pub fn branching(&self) -> Option<&Branching> {
        self.cold().and_then(|cold| cold.branching.as_deref())
    }

    /// The same, to be changed.
    pub fn branching_mut(&mut self) -> Option<&mut Branching> {
        self.cold_mut().and_then(|cold| cold.branching.as_deref_mut())
    }

    /// The same, to be filled.
    pub fn branching_or_new(&mut self) -> &mut Branching {
        self.cold_or_new().branching.get_or_insert_default()
    }

    /// Index of the operation that comes next.
    pub fn place(&self) -> u32 {
        self.next_op
    }

    /// It goes on at this operation.
    pub fn go_to(&mut self, op: u32) {
        self.next_op = op;
    }

    /// It is in the program of this operation.
    pub fn go_within_program(&mut self, op: u32) {
        self.next_op = op;
        self.cold_or_new().is_in_program = true;
    }

    /// The program has nothing more to do; whether it had.
    pub fn leave_program(&mut self) -> bool {
        self.next_op = self.next_op.saturating_add(1);
        std::mem::replace(&mut self.cold_or_new().is_in_program, false)
    }

    /// Nothing more is to be done.
    pub fn finish(&mut self) {
        self.next_op = u32::MAX;
    }

    /// What comes next, where nothing is to be computed before; it has then gone on.
    #[inline]
    pub fn next_at_once(&mut self, ops: &[Op]) -> Option<Turn> {
        match ops.get(self.next_op as usize) {
            Some(Op::Request(request)) => {
                self.next_op += 1;
                Some(Turn::Request(*request))
            }
            Some(Op::End) | None => Some(Turn::End),
            Some(_) => None,
        }
    }

    /// The request that comes next, where nothing is to be computed before.
    #[inline]
    pub fn next_request(&self, ops: &[Op]) -> Option<u16> {
        match ops.get(self.next_op as usize) {
            Some(Op::Request(request)) => Some(*request),
            _ => None,
        }
    }

    /// Goes on until it needs something that is not there at once.
    pub fn advance(
        &mut self,
        ops: &[Op],
        most: u32,
        environment: &mut Environment<'_>,
        scratch: &mut Scratch,
    ) -> Turn {
        for _ in 0..most {
            let Some(op) = ops.get(self.next_op as usize) else { return Turn::End };
            self.next_op += 1;
            match op {
                Op::Request(request) => return Turn::Request(*request),
                Op::Set { slot, value } => {
                    let Scratch { slot: fresh, held, .. } = scratch;
                    let made = value.compute_into(&mut environment.context(&self.slots), fresh);
                    let slot = &mut self.slots[*slot as usize];
                    let has_room = held.put(environment.shared, slot, fresh);
                    if made.is_err() || !has_room {
                        return Turn::Failed(self.next_op as usize - 1, made.err());
                    }
                }
                Op::Take { feeder, row } => {
                    let taken = self.cold_or_new().rows.take(*feeder, environment.shared);
                    self.slots[*row as usize].set_int(taken as i64);
                }
                Op::Jump(to) => self.next_op = *to,
                Op::JumpUnless { condition, to } => {
                    let holds = condition.holds(&mut environment.context(&self.slots));
                    if holds != Ok(true) {
                        let op = self.next_op as usize - 1;
                        self.next_op = *to;
                        if let Err(reason) = holds {
                            return Turn::Failed(op, Some(reason));
                        }
                    }
                }
                Op::JumpUnlessGood(to) => {
                    if !self.went_well {
                        self.next_op = *to;
                    }
                }
                Op::Choose { ways, total, counter } => {
                    let total = (*total).max(1);
                    let draw = match counter {
                        // less than the total, which is one
                        Some(counter) => (environment.shared.turn(*counter) % u64::from(total)) as u32,
                        None => environment.random.u32(0..total),
                    };
                    if let Some((_, to)) = ways.iter().find(|(bound, _)| draw < *bound) {
                        self.next_op = *to;
                    }
                }
                Op::Think(time) => {
                    let time_us = time.duration_us(&mut environment.context(&self.slots));
                    if time_us > 0 {
                        return Turn::Think(time_us);
                    }
                }
                Op::BeginGroup(group) => self.cold_or_new().groups.begin(*group),
                Op::EndGroup => {
                    if let Some(groups) = self.groups() {
                        if groups.last_begun() {
                            return Turn::GroupOver;
                        }
                        groups.leave();
                    }
                }
                Op::Refuse { reason, .. } => return Turn::Failed(self.next_op as usize - 1, Some(reason)),
                Op::Measure { if_good: true, .. } if !self.went_well => {}
                Op::Measure { .. } => return Turn::Measure(self.next_op as usize - 1),
                Op::Parallel { until, at_most } => {
                    // until all are over
                    self.next_op -= 1;
                    return Turn::Parallel(*until, *at_most);
                }
                Op::Code { .. } => return Turn::Code(self.next_op as usize - 1),
                Op::Program => {
                    // until it leaves that
                    self.next_op -= 1;
                    let was_within = std::mem::replace(&mut self.cold_or_new().is_in_program, true);
                    return Turn::Program { begins: !was_within };
                }
                Op::End => return Turn::End,
            }
        }
        Turn::Spent
    }
}

/// Draws a session kind by weight.
#[derive(Debug)]
pub(crate) struct Weights {
    /// Upper bounds, exclusive.
    bounds: Vec<u64>,
}

impl Weights {
    /// Of these kinds.
    pub fn new(kinds: &[SessionKind]) -> Self {
        let mut sum = 0;
        let bounds = kinds.iter().map(|kind| {
            sum += u64::from(kind.weight);
            sum
        });
        Weights { bounds: bounds.collect() }
    }

    /// Whether any kind can be drawn.
    pub fn any(&self) -> bool {
        self.bounds.last().is_some_and(|sum| *sum > 0)
    }

    /// Index of a kind.
    pub fn draw(&self, random: &mut fastrand::Rng) -> usize {
        match self.bounds.as_slice() {
            [] | [_] => 0,
            [.., sum] => {
                let draw = random.u64(0..(*sum).max(1));
                self.bounds.partition_point(|bound| *bound <= draw)
            }
        }
    }
}

#[cfg(test)]
mod tests;
