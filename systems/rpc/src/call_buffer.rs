//! Where the calls of one connection wait until a lane takes them, and their answers until they are sent.
//!
//! All who meet here run within the connection's own task, one after the other; the lock is never waited for.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidemark_wire::rpc::{AnswerWriter, CallReader, Limits, Request, RpcError, code};
use tidemark_wire::websocket::{self, Decoded, Decoder, Kind, Role, WebSocketError};

use crate::metrics::{CallCounts, Outcome, bump};
use crate::{Form, Refusal};

/// Answers are sent in frames of about this size, when so many are ready.
const FRAME_BYTES: usize = 64 << 10;
/// With so much that waits to be taken by the client no further call begins.
const UNSENT_BYTES_MAX: usize = 256 << 10;
/// Nor with so much that the calls which are not done yet were given.
const PAYLOAD_BYTES_MAX: usize = 4 << 20;

/// What a server takes of one frame.
pub(crate) const LIMITS: Limits = Limits { frame_bytes: 1 << 20, items: 1 << 16, payload_bytes: 256 << 10 };

/// The calls of a connection that are not done, and the answers that are not sent.
pub(crate) struct CallBuffer {
    form: Form,
    state: Mutex<State>,
}

/// What the lock guards.
pub(crate) struct State {
    decoder: Decoder,
    reader: CallReader,
    /// Service, and method within it, by the number in the greeting.
    methods: Arc<[(usize, usize)]>,
    places: Vec<LaneCall>,
    /// The lanes of calls that were not ready at once, by the call's id.
    waiting: HashMap<u64, usize>,
    /// No deadline of those that wait is before this.
    pub(crate) earliest: Option<Instant>,
    /// Of the calls that are not done.
    payload_bytes: usize,
    answers: Vec<u8>,
    writer: AnswerWriter,
    /// WebSocket frames, of which the front is sent.
    out: Vec<u8>,
    sent: usize,
    /// When the calls that are read now came.
    pub(crate) now: Instant,
    counts: Arc<CallCounts>,
    worker: usize,
}

/// What a lane works on.
#[derive(Debug, Clone, Copy)]
struct LaneCall {
    id: u64,
    /// Its number in the greeting.
    method: u32,
    deadline: Instant,
    payload_bytes: usize,
    is_busy: bool,
    waits: bool,
}

/// What the frame has next.
#[derive(Debug)]
pub(crate) enum Turn {
    /// A call of this service.
    Call(usize),
    /// A call taken back.
    Cancel(u64),
    /// Nothing; the next frame can begin.
    Ended,
    /// It has to wait until answers were sent, or calls are done.
    Full,
}

impl CallBuffer {
    pub(crate) fn new(
        form: Form,
        methods: Arc<[(usize, usize)]>,
        counts: Arc<CallCounts>,
        worker: usize,
        greeting: &[u8],
    ) -> Self {
        let most = websocket::Limits { frame_bytes: LIMITS.frame_bytes, message_bytes: LIMITS.frame_bytes };
        let mut out = Vec::new();
        websocket::write_message(&mut out, Kind::Binary, greeting, None);
        let state = State {
            decoder: Decoder::new(Role::Server, most),
            reader: CallReader::new(LIMITS),
            methods,
            places: Vec::new(),
            waiting: HashMap::new(),
            earliest: None,
            payload_bytes: 0,
            answers: Vec::new(),
            writer: AnswerWriter::new(),
            out,
            sent: 0,
            now: Instant::now(),
            counts,
            worker,
        };
        CallBuffer { form, state: Mutex::new(state) }
    }

    pub(crate) fn form(&self) -> Form {
        self.form
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A lane hands its answer in and takes the next call, if that is for its service: the method, with the payload
    /// in `buffer`.
    pub(crate) fn exchange(
        &self,
        service: usize,
        lane: usize,
        done: Option<Result<(), Refusal>>,
        buffer: &mut Vec<u8>,
    ) -> Option<usize> {
        let mut state = self.state();
        if let Some(outcome) = done {
            state.finish(lane, outcome, buffer);
        }
        state.begin(service, lane, buffer)
    }
}

impl State {
    /// Decodes what a client sent; a message that it completes is the frame that is worked through.
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Result<Decoded, WebSocketError> {
        let decoded = self.decoder.decode(bytes)?;
        if decoded.event == Some(websocket::Event::Message(Kind::Binary)) {
            self.reader.begin();
            bump(&self.counts.of(self.worker).frames_received, 1);
        }
        Ok(decoded)
    }

    /// What comes next. An unknown method is answered here.
    pub(crate) fn turn(&mut self) -> Result<Turn, RpcError> {
        loop {
            if self.is_full() {
                return Ok(Turn::Full);
            }
            if !self.decoder.is_between_messages() {
                return Ok(Turn::Ended);
            }
            let mut ahead = self.reader;
            match ahead.next(self.decoder.message())? {
                None => return Ok(Turn::Ended),
                Some(Request::Cancel { id }) => {
                    self.reader = ahead;
                    return Ok(Turn::Cancel(id));
                }
                Some(Request::Call(call)) => {
                    if let Some((service, _)) = self.methods.get(call.method as usize) {
                        return Ok(Turn::Call(*service));
                    }
                    self.reader = ahead;
                    bump(&self.counts.of(self.worker).unknown, 1);
                    self.fail(call.id, &Refusal::no_method());
                }
            }
        }
    }

    fn begin(&mut self, service: usize, lane: usize, buffer: &mut Vec<u8>) -> Option<usize> {
        if self.is_full() || !self.decoder.is_between_messages() {
            return None;
        }
        let mut ahead = self.reader;
        let Ok(Some(Request::Call(call))) = ahead.next(self.decoder.message()) else { return None };
        let (_, method) = self.methods.get(call.method as usize).filter(|(of, _)| *of == service)?;
        buffer.clear();
        buffer.extend_from_slice(call.payload);
        self.reader = ahead;
        let deadline = self.now + Duration::from_millis(call.deadline_ms.into());
        let payload_bytes = call.payload.len();
        self.payload_bytes += payload_bytes;
        let place = &mut self.places[lane];
        debug_assert!(!place.is_busy);
        *place = LaneCall {
            id: call.id,
            method: call.method,
            deadline,
            payload_bytes,
            is_busy: true,
            waits: false,
        };
        Some(*method)
    }

    fn finish(&mut self, lane: usize, outcome: Result<(), Refusal>, buffer: &[u8]) {
        let Some(place) = self.clear(lane) else { return };
        let counts = self.counts.method(self.worker, place.method);
        match outcome {
            Ok(()) if buffer.len() > LIMITS.payload_bytes => {
                bump(&counts[Outcome::Failed as usize], 1);
                self.fail(place.id, &Refusal::new(code::TOO_LARGE, "the answer is too large for a frame"));
            }
            Ok(()) => {
                bump(&counts[Outcome::Done as usize], 1);
                self.writer.answer(&mut self.answers, place.id, buffer);
                self.end_large_frame();
            }
            Err(refusal) => {
                bump(&counts[Outcome::Failed as usize], 1);
                self.fail(place.id, &refusal);
            }
        }
    }

    /// Ends the call of a lane from outside, with its answer; says whether there was one.
    pub(crate) fn end(&mut self, lane: usize, outcome: Outcome, refusal: &Refusal) -> bool {
        let Some(place) = self.clear(lane) else { return false };
        bump(&self.counts.method(self.worker, place.method)[outcome as usize], 1);
        self.fail(place.id, refusal);
        true
    }

    fn clear(&mut self, lane: usize) -> Option<LaneCall> {
        let place = &mut self.places[lane];
        if !place.is_busy {
            return None;
        }
        place.is_busy = false;
        self.payload_bytes -= place.payload_bytes;
        if place.waits {
            self.waiting.remove(&place.id);
        }
        Some(*place)
    }

    fn fail(&mut self, id: u64, refusal: &Refusal) {
        self.writer.failure(&mut self.answers, id, refusal.code(), refusal.reason());
        self.end_large_frame();
    }

    fn end_large_frame(&mut self) {
        if self.answers.len() >= FRAME_BYTES || self.writer.items() >= LIMITS.items {
            self.end_frame();
        }
    }

    fn end_frame(&mut self) {
        if self.answers.is_empty() {
            return;
        }
        if self.sent > 0 && self.sent == self.out.len() {
            self.sent = 0;
            self.out.clear();
        }
        websocket::write_message(&mut self.out, Kind::Binary, &self.answers, None);
        self.answers.clear();
        self.writer.begin();
        bump(&self.counts.of(self.worker).frames_sent, 1);
    }

    /// Room for one more lane.
    pub(crate) fn add_place(&mut self) {
        let now = self.now;
        self.places.push(LaneCall {
            id: 0,
            method: 0,
            deadline: now,
            payload_bytes: 0,
            is_busy: false,
            waits: false,
        });
    }

    pub(crate) fn is_busy(&self, lane: usize) -> bool {
        self.places[lane].is_busy
    }

    /// Enters that a lane's call was not ready at once. False if its id is that of another.
    pub(crate) fn waits(&mut self, lane: usize) -> bool {
        let place = &mut self.places[lane];
        if place.waits || !place.is_busy {
            return true;
        }
        place.waits = true;
        self.earliest = Some(self.earliest.map_or(place.deadline, |earliest| earliest.min(place.deadline)));
        self.waiting.insert(place.id, lane).is_none()
    }

    /// The lane that works on a call which is not ready.
    pub(crate) fn lane_of(&self, id: u64) -> Option<usize> {
        self.waiting.get(&id).copied()
    }

    /// Counts what is in flight as left alone by its client.
    pub(crate) fn abandon(&mut self) {
        for (_, lane) in self.waiting.drain() {
            let counts = self.counts.method(self.worker, self.places[lane].method);
            bump(&counts[Outcome::Abandoned as usize], 1);
        }
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.waiting.len()
    }

    /// The lanes whose calls have had their time.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<usize> {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return Vec::new();
        }
        let is_over = |lane: &usize| self.places[*lane].deadline <= now;
        let overdue = self.waiting.values().copied().filter(is_over).collect();
        let left = self.waiting.values().map(|lane| self.places[*lane].deadline);
        self.earliest = left.filter(|deadline| *deadline > now).min();
        overdue
    }

    /// Whether a further call has to wait, however many there are.
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() + self.answers.len() >= UNSENT_BYTES_MAX || self.payload_bytes >= PAYLOAD_BYTES_MAX
    }

    /// What it takes of the memory.
    pub(crate) fn held_bytes(&self) -> usize {
        let buffers = self.decoder.held_bytes() + self.answers.capacity() + self.out.capacity();
        buffers + self.places.capacity() * size_of::<LaneCall>() + self.payload_bytes
    }

    /// Gives back the memory of what is empty.
    pub(crate) fn trim(&mut self) {
        let mut ahead = self.reader;
        if self.decoder.is_between_messages() && matches!(ahead.next(self.decoder.message()), Ok(None)) {
            self.decoder.trim();
            self.reader.begin();
        }
        for buffer in [&mut self.answers, &mut self.out] {
            if buffer.is_empty() {
                *buffer = Vec::new();
            }
        }
    }

    /// All that can be sent now.
    pub(crate) fn unsent(&mut self) -> &[u8] {
        self.end_frame();
        &self.out[self.sent..]
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.sent += bytes;
        debug_assert!(self.sent <= self.out.len());
        if self.sent == self.out.len() {
            self.sent = 0;
            self.out.clear();
            self.out.shrink_to(UNSENT_BYTES_MAX);
        } else if self.sent >= self.out.len() - self.sent {
            // What is sent goes once it is as much as what has to be moved for that: a client that never takes all
            // would have it kept for ever.
            self.out.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Room for a control frame behind the answers that are there.
    pub(crate) fn control(&mut self, write: impl FnOnce(&mut Vec<u8>, &Decoder)) {
        self.end_frame();
        write(&mut self.out, &self.decoder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_is_not_kept_though_a_part_is_always_left() {
        let counts = Arc::new(CallCounts::new(1, Vec::new()));
        let call_buffer = CallBuffer::new(Form::Json, Arc::from([]), counts, 0, b"a greeting");
        let mut state = call_buffer.state();
        let refusal = Refusal::new(code::UNAVAILABLE, "x".repeat(1000));
        for id in 0..10_000 {
            assert!(!state.is_full(), "{id}");
            state.fail(id, &refusal);
            let unsent = state.unsent().len();
            state.sent(unsent - 1);
        }
        assert_eq!(state.unsent().len(), 1);
        assert!(state.held_bytes() < 64 << 10, "{}", state.held_bytes());
    }
}
