//! What callers and the connection's task share: the calls in flight and the frame that is collected.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::time::{Duration, Instant};

use serde::Serialize;
use tidemark_wire::rpc::{Answer, AnswerReader, CallWriter, Greeting, Limits, RpcError};
use tidemark_wire::websocket::{self, Kind};
use tokio::sync::oneshot;

use super::answer::Bytes;
use super::{CallError, ClientOptions, ClientStats, WhenClosed};
use crate::{Form, Refusal};

/// Calls are sent in frames of about this size, when so many are there.
const FRAME_BYTES: usize = 64 << 10;
/// A server that has not answered a call for so long after its deadline does not keep to the protocol.
const ANSWER_GRACE: Duration = Duration::from_secs(10);

/// Shared by all who call through one connection.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(super) options: ClientOptions,
    state: Mutex<State>,
}

/// Where the connection is.
#[derive(Debug)]
pub(super) enum Phase {
    /// There is none yet, or not again yet: why.
    Opening(Arc<str>),
    Open,
    /// There will be none: why.
    Closed(Arc<str>),
}

#[derive(Debug)]
pub(crate) struct State {
    pub(super) phase: Phase,
    when_closed: WhenClosed,
    waiting_max: usize,
    form: Form,
    /// All clients are gone.
    pub(super) is_left: bool,
    tables: Vec<Table>,
    frame: Vec<u8>,
    writer: CallWriter,
    /// Frame and writer as they were when the last call was whole.
    whole: (usize, CallWriter),
    /// WebSocket frames to be sent.
    pub(super) out: Vec<u8>,
    /// A ring, where a call lies by its id.
    slots: Vec<Slot>,
    next_id: u64,
    in_flight: usize,
    in_flight_max: usize,
    /// Room promised to calls that waited.
    reserved: usize,
    waiting: VecDeque<oneshot::Sender<()>>,
    limits: Limits,
    /// What the server said first, once there was a connection.
    greeting: Option<Greeting>,
    /// When the first call of the frame was made.
    now: Instant,
    /// No call's deadline is before this.
    pub(super) earliest: Option<Instant>,
    pub(super) task: Option<Waker>,
    random: fastrand::Rng,
    stats: ClientStats,
}

/// The methods of a typed client, by the server's numbers.
#[derive(Debug)]
struct Table {
    names: &'static [&'static str],
    numbers: Vec<Option<u32>>,
}

impl Table {
    fn number(&mut self, greeting: &Greeting) {
        self.numbers = self.names.iter().map(|name| greeting.number_of(name)).collect();
    }
}

#[derive(Debug)]
enum Slot {
    Free,
    Sent {
        id: u64,
        deadline: Instant,
        waker: Waker,
    },
    Done {
        id: u64,
        payload: Bytes,
    },
    Failed {
        id: u64,
        error: CallError,
    },
    /// Its time is over, its caller does not know yet, and the server has not answered.
    Expired {
        id: u64,
        deadline: Instant,
    },
    /// Nobody waits for it any more; the server has not answered.
    Left {
        id: u64,
        deadline: Instant,
    },
}

/// What became of a call at first.
pub(super) enum Begun {
    /// It has this id.
    Sent(u64),
    /// It can be made when this says so.
    Waits(oneshot::Receiver<()>),
}

impl Shared {
    pub(super) fn new(options: ClientOptions) -> Self {
        let in_flight_max = options.in_flight_max.max(1);
        // twice as many, so that a free one is found at once
        let slots = (in_flight_max * 2).next_power_of_two();
        let state = State {
            phase: Phase::Opening("it is being opened".into()),
            when_closed: options.when_closed,
            waiting_max: options.waiting_max,
            form: options.form,
            is_left: false,
            tables: Vec::new(),
            frame: Vec::new(),
            writer: CallWriter::new(),
            whole: (0, CallWriter::new()),
            out: Vec::new(),
            slots: (0..slots).map(|_| Slot::Free).collect(),
            next_id: 1,
            in_flight: 0,
            in_flight_max,
            reserved: 0,
            waiting: VecDeque::new(),
            limits: Limits::default(),
            greeting: None,
            now: Instant::now(),
            earliest: None,
            task: None,
            random: fastrand::Rng::new(),
            stats: ClientStats::default(),
        };
        Shared { options, state: Mutex::new(state) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| {
            // the arguments of a call panicked while they were written
            let mut state = poisoned.into_inner();
            let (length, writer) = state.whole;
            state.frame.truncate(length);
            state.writer = writer;
            self.state.clear_poison();
            state
        })
    }
}

impl State {
    /// Enters a typed client; its number.
    pub(super) fn add_table(&mut self, names: &'static [&'static str]) -> usize {
        if let Some(at) = self.tables.iter().position(|table| std::ptr::eq(table.names, names)) {
            return at;
        }
        let mut table = Table { names, numbers: Vec::new() };
        self.greeting.iter().for_each(|greeting| table.number(greeting));
        self.tables.push(table);
        self.tables.len() - 1
    }

    /// Makes a call, if there is room for it; else the promise of some, or none where the caller has had one.
    pub(super) fn begin<A: Serialize + ?Sized>(
        &mut self,
        (table, method): (usize, usize),
        time: Duration,
        arguments: &A,
        was_promised: bool,
        waker: &Waker,
    ) -> Result<Begun, CallError> {
        match &self.phase {
            Phase::Closed(why) => return Err(CallError::NotConnected(why.clone())),
            Phase::Opening(why) if self.when_closed == WhenClosed::Fail => {
                return Err(CallError::NotConnected(why.clone()));
            }
            Phase::Opening(_) => return self.wait(),
            Phase::Open => {}
        }
        if !was_promised && (self.in_flight + self.reserved >= self.in_flight_max || !self.waiting.is_empty())
        {
            return self.wait();
        }
        if self.frame.is_empty() {
            self.now = Instant::now();
        }
        let number = self.number_of(table, method)?;
        let id = self.free_id();
        let time_ms = u32::try_from(time.as_millis()).unwrap_or(u32::MAX).max(1);
        let (form, payload_max) = (self.form, self.limits.payload_bytes);
        let written = self.writer.call_with(&mut self.frame, id, number, time_ms, |out| {
            let start = out.len();
            form.append(out, arguments).map_err(CallError::Unwritable)?;
            if out.len() - start > payload_max { Err(CallError::TooLarge(payload_max)) } else { Ok(()) }
        });
        written?;
        self.whole = (self.frame.len(), self.writer);
        let deadline = self.now + time;
        let at = self.slot_of(id);
        self.slots[at] = Slot::Sent { id, deadline, waker: waker.clone() };
        self.next_id = id + 1;
        self.in_flight += 1;
        if was_promised {
            self.reserved = self.reserved.saturating_sub(1);
        }
        let is_first = self.whole.1.items() == 1;
        let is_earliest = self.earliest.is_none_or(|earliest| deadline < earliest);
        if is_earliest {
            self.earliest = Some(deadline);
        }
        if self.frame.len() >= FRAME_BYTES.min(self.limits.frame_bytes / 2)
            || self.writer.items() >= self.limits.items
        {
            self.end_frame();
        }
        if is_first || is_earliest {
            self.wake_task();
        }
        Ok(Begun::Sent(id))
    }

    fn wait(&mut self) -> Result<Begun, CallError> {
        if self.waiting.len() >= self.waiting_max {
            self.waiting.retain(|caller| !caller.is_closed());
            if self.waiting.len() >= self.waiting_max {
                return Err(CallError::TooManyWait(self.waiting.len()));
            }
        }
        let (room, promised) = oneshot::channel();
        self.waiting.push_back(room);
        Ok(Begun::Waits(promised))
    }

    fn number_of(&mut self, table: usize, method: usize) -> Result<u32, CallError> {
        let table = &self.tables[table];
        let number = table.numbers.get(method).copied().flatten();
        number.ok_or_else(|| CallError::NoMethod(table.names[method]))
    }

    fn slot_of(&self, id: u64) -> usize {
        id as usize & (self.slots.len() - 1)
    }

    fn free_id(&self) -> u64 {
        let mut id = self.next_id;
        while !matches!(self.slots[self.slot_of(id)], Slot::Free) {
            id += 1;
        }
        id
    }

    /// The answer to a call, once it is there. Keeps who is to be woken otherwise.
    pub(super) fn take(&mut self, id: u64, waker: &Waker) -> Option<Result<Bytes, CallError>> {
        let at = self.slot_of(id);
        match &mut self.slots[at] {
            Slot::Sent { id: of, waker: kept, .. } if *of == id => {
                if !kept.will_wake(waker) {
                    *kept = waker.clone();
                }
                return None;
            }
            Slot::Expired { id: of, deadline } if *of == id => {
                self.slots[at] = Slot::Left { id, deadline: *deadline };
                return Some(Err(CallError::Deadline));
            }
            _ => {}
        }
        let taken = match std::mem::replace(&mut self.slots[at], Slot::Free) {
            Slot::Done { id: of, payload } if of == id => Ok(payload),
            Slot::Failed { id: of, error } if of == id => Err(error),
            other => {
                debug_assert!(false, "the call {id} is nowhere: {other:?}");
                self.slots[at] = other;
                return Some(Err(CallError::Cut("it is nowhere".into())));
            }
        };
        self.freed();
        Some(taken)
    }

    /// Its caller is gone.
    pub(super) fn leave_call(&mut self, id: u64) {
        let at = self.slot_of(id);
        match self.slots[at] {
            Slot::Sent { id: of, deadline, .. } if of == id => {
                self.slots[at] = Slot::Left { id, deadline };
                self.writer.cancel(&mut self.frame, id);
                self.whole = (self.frame.len(), self.writer);
                self.wake_task();
            }
            Slot::Expired { id: of, deadline } if of == id => self.slots[at] = Slot::Left { id, deadline },
            Slot::Done { id: of, .. } | Slot::Failed { id: of, .. } if of == id => {
                self.slots[at] = Slot::Free;
                self.freed();
            }
            _ => {}
        }
    }

    /// A caller that was promised room is gone.
    pub(super) fn give_back(&mut self) {
        self.reserved = self.reserved.saturating_sub(1);
        self.promise();
    }

    /// Why a call that waited its whole time was not sent.
    pub(super) fn no_room(&self) -> CallError {
        match &self.phase {
            Phase::Opening(why) | Phase::Closed(why) => CallError::NotConnected(why.clone()),
            Phase::Open => CallError::NoRoom,
        }
    }

    fn freed(&mut self) {
        self.in_flight -= 1;
        if !self.waiting.is_empty() {
            self.promise();
        }
    }

    /// Promises what room there is to those who wait longest.
    fn promise(&mut self) {
        while matches!(self.phase, Phase::Open) && self.in_flight + self.reserved < self.in_flight_max {
            let Some(caller) = self.waiting.pop_front() else { return };
            if caller.send(()).is_ok() {
                self.reserved += 1;
            }
        }
    }

    fn end_frame(&mut self) {
        if self.frame.is_empty() {
            return;
        }
        let key = self.random.u32(..).to_ne_bytes();
        websocket::write_message(&mut self.out, Kind::Binary, &self.frame, Some(key));
        self.frame.clear();
        self.writer.begin();
        self.whole = (0, self.writer);
        self.stats.frames_sent += 1;
    }

    /// Whether there is something to be sent, and whether it is so much that nothing more should be waited for.
    pub(super) fn to_send(&self) -> (bool, bool) {
        (!self.frame.is_empty() || !self.out.is_empty(), !self.out.is_empty())
    }

    /// Swaps all that is to be sent for an empty buffer.
    pub(super) fn take_out(&mut self, empty: &mut Vec<u8>) {
        debug_assert!(empty.is_empty());
        self.end_frame();
        std::mem::swap(&mut self.out, empty);
    }

    pub(super) fn key(&mut self) -> [u8; 4] {
        self.random.u32(..).to_ne_bytes()
    }

    fn wake_task(&mut self) {
        if let Some(task) = &self.task {
            task.wake_by_ref();
        }
    }

    pub(crate) fn leave(&mut self) {
        self.is_left = true;
        self.wake_task();
    }

    /// There is a connection: calls can go.
    pub(super) fn open(&mut self, greeting: Greeting, in_flight_max: usize) {
        debug_assert!(self.frame.is_empty() && self.out.is_empty());
        self.limits = greeting.limits;
        self.in_flight_max = in_flight_max.min(greeting.in_flight_max).max(1);
        self.tables.iter_mut().for_each(|table| table.number(&greeting));
        self.greeting = Some(greeting);
        self.phase = Phase::Open;
        self.stats.connections += 1;
        self.promise();
    }

    /// There is no connection any more: what is in flight fails. Returns who is to be told.
    pub(super) fn cut(&mut self, phase: Phase) -> VecDeque<Waker> {
        let (Phase::Opening(why) | Phase::Closed(why)) = &phase else { return VecDeque::new() };
        let mut wakers = VecDeque::new();
        let mut freed = 0;
        for slot in &mut self.slots {
            match std::mem::replace(slot, Slot::Free) {
                Slot::Free => {}
                Slot::Sent { id, waker, .. } => {
                    *slot = Slot::Failed { id, error: CallError::Cut(why.clone()) };
                    wakers.push_back(waker);
                }
                Slot::Expired { id, .. } => *slot = Slot::Failed { id, error: CallError::Deadline },
                Slot::Left { .. } => freed += 1,
                done => *slot = done,
            }
        }
        self.in_flight -= freed;
        self.frame.clear();
        self.out.clear();
        self.writer.begin();
        self.whole = (0, self.writer);
        self.earliest = None;
        if matches!(phase, Phase::Closed(_)) || self.when_closed == WhenClosed::Fail {
            // whoever waits learns it by asking again
            self.waiting.clear();
        }
        self.phase = phase;
        wakers
    }

    /// Takes a frame of answers in.
    pub(super) fn deliver(&mut self, frame: &[u8], wakers: &mut VecDeque<Waker>) -> Result<(), RpcError> {
        let limits = Limits { frame_bytes: usize::MAX, ..Limits::default() };
        let mut reader = AnswerReader::new(limits);
        self.stats.frames_received += 1;
        while let Some(answer) = reader.next(frame)? {
            let (Answer::Done { id, .. } | Answer::Failed { id, .. }) = answer;
            let at = self.slot_of(id);
            match std::mem::replace(&mut self.slots[at], Slot::Free) {
                Slot::Sent { id: of, waker, .. } if of == id => {
                    self.slots[at] = match answer {
                        Answer::Done { payload, .. } => Slot::Done { id, payload: payload.into() },
                        Answer::Failed { code, reason, .. } => {
                            let refusal = Refusal::new(code, reason.to_owned());
                            let is_deadline = code == tidemark_wire::rpc::code::DEADLINE;
                            let error =
                                if is_deadline { CallError::Deadline } else { CallError::Refused(refusal) };
                            Slot::Failed { id, error }
                        }
                    };
                    wakers.push_back(waker);
                }
                Slot::Expired { id: of, .. } if of == id => {
                    self.slots[at] = Slot::Failed { id, error: CallError::Deadline };
                }
                Slot::Left { id: of, .. } if of == id => self.freed(),
                // an answer to nothing: the server's mistake, which harms nobody
                other => self.slots[at] = other,
            }
        }
        Ok(())
    }

    /// Ends the calls whose time is over; false if the server has not answered one for much too long.
    pub(super) fn expire(&mut self, now: Instant, wakers: &mut VecDeque<Waker>) -> bool {
        let mut earliest: Option<Instant> = None;
        for slot in &mut self.slots {
            let due = match slot {
                Slot::Sent { id, deadline, waker } if *deadline <= now => {
                    wakers.push_back(waker.clone());
                    let due = *deadline + ANSWER_GRACE;
                    *slot = Slot::Expired { id: *id, deadline: *deadline };
                    due
                }
                Slot::Sent { deadline, .. } => *deadline,
                Slot::Expired { deadline, .. } | Slot::Left { deadline, .. } => *deadline + ANSWER_GRACE,
                _ => continue,
            };
            if due <= now {
                return false;
            }
            earliest = Some(earliest.map_or(due, |earliest| earliest.min(due)));
        }
        self.earliest = earliest;
        true
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }

    pub(super) fn stats(&self) -> ClientStats {
        let waiting = self.waiting.iter().filter(|caller| !caller.is_closed()).count();
        ClientStats { in_flight: self.in_flight, waiting, ..self.stats }
    }
}
