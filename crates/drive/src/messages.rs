//! Steps of sessions over a WebSocket: the handshake on the session's connection, then messages over it.
//!
//! Such a step is a request like any other to the recorder, the timers and the session; what differs is what is sent and
//! what ends it, and that is here.

use tidemark_record::Outcome;
use tidemark_scenario::plan::{Op, WebSocketStep};
use tidemark_wire::websocket::{self, WebSocketError, write_close};

use crate::answer::{Flaw, Message, Variables};
use crate::exchange::Placed;
use crate::fault::Fault;
use crate::session::{Stand, World};
use crate::thread::Thread;
use crate::timers::Alarm;
use crate::transport::Event;
use crate::websocket::{Awaiting, WebSocket, failed};

/// While frames wait for the connection to have sent what is before them, it is looked at this often.
const SENDING_LOOK_NS: u64 = 100_000;

fn broken_frames(error: WebSocketError) -> Fault {
    failed(Outcome::Protocol, error.to_string())
}

impl<'a> Thread<'a> {
    /// The session's step, where it is one over a WebSocket.
    pub fn websocket_step(&self, s: usize) -> Option<&'a WebSocketStep> {
        let kinds = self.kinds;
        let session = &self.flow.sessions[s];
        match session.op(&kinds[session.kind].ops) {
            Some(Op::WebSocket { step, .. }) => Some(step),
            _ => None,
        }
    }

    /// Why a step cannot go: a message without a WebSocket, a request over one. Where a WebSocket is missing the
    /// session is over, lest it fails as fast as it can.
    pub fn websocket_refusal(&mut self, s: usize) -> Option<Fault> {
        let step = self.websocket_step(s);
        let session = &mut self.flow.sessions[s];
        let is_open = session.connection.is_some_and(|c| self.pool.get(c as usize).is_websocket());
        match (is_open, step) {
            (true, None | Some(WebSocketStep::Connect { .. })) => Some(failed(
                Outcome::Protocol,
                "the session's connection is a WebSocket; ws close comes first",
            )),
            (false, Some(step)) if !matches!(step, WebSocketStep::Connect { .. }) => {
                session.finish();
                Some(failed(Outcome::Reset, "there is no WebSocket any more"))
            }
            _ => None,
        }
    }

    /// Sends what a step sends over an open WebSocket, and sees whether it is over with that.
    pub fn transmit_frame(&mut self, s: usize, c: usize, step: &WebSocketStep) -> Placed {
        if *step == WebSocketStep::Expect
            && let Some(result) = self.take_kept(s, c)
        {
            return self.over_at_once(c, result);
        }
        let now_ns = self.clock.now_ns();
        let was_entered = self.flow.sessions[s].entered.is_some();
        if let Err(unmet) = self.enter(s, now_ns) {
            return Placed::Failed(Fault::Unmet(unmet));
        }
        let session = &mut self.flow.sessions[s];
        let connection = self.pool.get(c);
        let Some(websocket) = connection.websocket.as_mut() else {
            return Placed::Failed(failed(Outcome::Reset, "there is no WebSocket any more"));
        };
        let payload = &mut self.flow.scratch.body;
        payload.clear();
        let mut world =
            World { shared: self.shared, random: &mut self.random, epoch_ms: self.clock.wall_ms(now_ns) };
        let cx = &mut world.context(&session.slots);
        if let Err(unmet) = self.prepared[session.request as usize].render_message(cx, payload) {
            self.withdraw(s, was_entered);
            return Placed::Failed(Fault::Unmet(unmet));
        }
        let key = self.random.u32(..).to_ne_bytes();
        if let Err(fault) = websocket.begin(step, payload, key) {
            return Placed::Failed(fault);
        }
        let awaits_sent = websocket.awaiting == Awaiting::Sent;
        connection.exchanging = true;
        session.stand = Stand::Exchanging;
        session.sent_ns = Some(now_ns);
        let due_ns = session.due_ns;
        self.left(s, now_ns);
        self.recorder.used(self.transport.socket_of(c), due_ns);
        if let Err(error) = self.flush(s, c) {
            self.close(c);
            return Placed::Failed(Fault::Broken(error));
        }
        if awaits_sent && !self.transport.is_sending(c) {
            self.over_at_once(c, Ok(()))
        } else {
            Placed::UnderWay
        }
    }

    /// The first kept message that passes; those before it are given up.
    fn take_kept(&mut self, s: usize, c: usize) -> Option<Result<(), Fault>> {
        while let Some(message) = self.pool.get(c).websocket.as_mut().and_then(|w| w.next_kept()) {
            let result = self.judge(s, &message);
            if let Some(websocket) = self.pool.get(c).websocket.as_mut() {
                websocket.reuse(message);
            }
            if result.is_some() {
                let now_ns = self.clock.now_ns();
                self.flow.sessions[s].sent_ns = Some(now_ns);
                return result;
            }
            self.flow.unexpected_messages += 1;
        }
        None
    }

    /// Whether a message is what the session's step waits for, and what comes of it; nothing if it is not.
    fn judge(&mut self, s: usize, message: &[u8]) -> Option<Result<(), Fault>> {
        let epoch_ms = self.clock.wall_ms(self.clock.now_ns());
        let session = &mut self.flow.sessions[s];
        let mut world = World { shared: self.shared, random: &mut self.random, epoch_ms };
        let probe = &mut self.prepared[session.request as usize].probe;
        let scratch = &mut self.flow.scratch;
        let message = Message(message);
        let judged = match probe.fits(&message, &session.slots, &mut world, scratch) {
            Ok(()) => probe.judge(&message, &mut session.slots, &mut world, scratch),
            Err(flaw) => Err(flaw),
        };
        match judged {
            Ok(()) => Some(Ok(())),
            Err(Flaw::Check(_) | Flaw::Status) => None,
            Err(flaw @ (Flaw::Extraction(_) | Flaw::Unmet(_))) => {
                let names = &self.kinds[session.kind].slot_names;
                let variables = Variables { slots: &session.slots, names };
                Some(Err(failed(flaw.outcome(), probe.describe(flaw, &message, &[], variables, scratch))))
            }
        }
    }

    /// A step is over without a wait.
    fn over_at_once(&mut self, c: usize, result: Result<(), Fault>) -> Placed {
        self.rest(c);
        match result {
            Ok(()) => Placed::Done,
            Err(fault) => Placed::Failed(fault),
        }
    }

    /// No step is under way any more.
    fn rest(&mut self, c: usize) {
        let connection = self.pool.get(c);
        connection.exchanging = false;
        if let Some(websocket) = connection.websocket.as_mut() {
            websocket.awaiting = Awaiting::Nothing;
        }
    }

    /// Sends what is pending, as soon as what was sent before has left.
    fn flush(&mut self, s: usize, c: usize) -> std::io::Result<()> {
        let Some(websocket) = self.pool.get(c).websocket.as_mut() else { return Ok(()) };
        if !websocket.pending.is_empty() && !self.transport.is_sending(c) {
            let sent = self.transport.send_frames(c, &websocket.pending);
            websocket.pending.clear();
            sent?;
            if websocket.awaiting == Awaiting::Sent {
                self.transport.push(c)?; // the step ends with it
            }
        }
        let waits = !websocket.pending.is_empty()
            || (websocket.awaiting == Awaiting::Sent && self.transport.is_sending(c));
        if waits && self.flow.sessions[s].stand == Stand::Exchanging {
            self.timers.set(s, Alarm::Wake, self.clock.now_ns().saturating_add(SENDING_LOOK_NS));
        }
        Ok(())
    }

    /// Time to look whether what is pending can go.
    pub fn on_flush(&mut self, s: usize, now_ns: u64) {
        let Some(c) = self.flow.sessions[s].connection.map(|c| c as usize) else { return };
        if !self.pool.get(c).is_websocket() {
            return;
        }
        if let Err(error) = self.flush(s, c) {
            self.close(c);
            return self.step_ended(s, Err(Fault::Broken(error)), now_ns);
        }
        let awaits_sent = self.pool.get(c).websocket.as_ref().is_some_and(|w| w.awaiting == Awaiting::Sent);
        if awaits_sent && !self.transport.is_sending(c) {
            self.rest(c);
            self.step_ended(s, Ok(()), now_ns);
        }
    }

    /// The handshake is done; behind these bytes of what came there may be messages already.
    pub fn upgraded(&mut self, s: usize, c: usize, answer_bytes: usize, now_ns: u64) {
        let session = &mut self.flow.sessions[s];
        let connection = self.pool.get(c);
        connection.exchanging = false;
        let answer = self.transport.answer(c);
        answer.keep_cookies(&mut session.jar);
        let mut world =
            World { shared: self.shared, random: &mut self.random, epoch_ms: self.clock.wall_ms(now_ns) };
        let probe = &mut self.prepared[session.request as usize].probe;
        let judged = probe.judge(answer, &mut session.slots, &mut world, &mut self.flow.scratch);
        match judged {
            Ok(()) => {
                connection.websocket = Some(WebSocket::new(self.bounds.message_bytes));
                let _ = self.take_frames(s, c, answer_bytes);
            }
            Err(_) => self.close(c),
        }
        self.step_ended(s, judged.map_err(Fault::Flawed), now_ns);
    }

    /// The server wants no WebSocket.
    pub fn refused(&mut self, s: usize, c: usize, fault: Fault, now_ns: u64) {
        self.transport.answer(c).keep_cookies(&mut self.flow.sessions[s].jar);
        self.close(c);
        self.step_ended(s, Err(fault), now_ns);
    }

    /// Something happened on an open WebSocket.
    pub fn on_websocket_event(&mut self, c: usize, event: Event, now_ns: u64) {
        let connection = self.pool.get(c);
        let (Some(s), under_way) = (connection.session.map(|s| s as usize), connection.exchanging) else {
            return self.close(c);
        };
        let has_come = matches!(event, Event::Received);
        let result = match event {
            Event::Received => self.take_frames(s, c, 0),
            Event::Ended { .. } => {
                self.close(c);
                Some(Err(failed(
                    Outcome::Reset,
                    "the connection was closed without a close of the WebSocket",
                )))
            }
            Event::Failed(error) | Event::Unsent(error) => {
                self.close(c);
                Some(Err(Fault::Broken(error)))
            }
            _ => return,
        };
        if let Some(result) = result.filter(|_| under_way) {
            let end_ns = if has_come { self.read(s, now_ns) } else { now_ns };
            self.step_ended(s, result, end_ns);
        }
    }

    /// Takes what has come, from `at`; what came of the step under way, if it is over by it.
    fn take_frames(&mut self, s: usize, c: usize, mut at: usize) -> Option<Result<(), Fault>> {
        let mut result = None;
        loop {
            let Some(websocket) = self.pool.get(c).websocket.as_mut() else { return result };
            let decoded = match websocket.decoder.decode(&self.transport.received()[at..]) {
                Ok(decoded) => decoded,
                Err(error) => {
                    self.part(c, error.close_code());
                    return result.or(Some(Err(broken_frames(error))));
                }
            };
            at += decoded.consumed;
            let Some(event) = decoded.event else { break };
            match event {
                websocket::Event::Message(_) => {
                    let awaited = websocket.awaiting == Awaiting::Message;
                    // Out of its place while it is judged; it comes back below.
                    let Some(websocket) = self.pool.get(c).websocket.take() else { return result };
                    let judged = if awaited { self.judge(s, websocket.decoder.message()) } else { None };
                    let websocket = self.pool.get(c).websocket.insert(websocket);
                    match judged {
                        Some(judged) => {
                            websocket.awaiting = Awaiting::Nothing;
                            result = Some(judged);
                        }
                        None if awaited && matches!(self.websocket_step(s), Some(WebSocketStep::Expect)) => {
                            self.flow.unexpected_messages += 1;
                        }
                        None => {
                            let Some(websocket) = self.pool.get(c).websocket.as_mut() else { return result };
                            self.flow.unexpected_messages += websocket.keep();
                        }
                    }
                }
                websocket::Event::Ping => {
                    websocket.pong(self.random.u32(..).to_ne_bytes());
                }
                websocket::Event::Pong => {
                    if websocket.is_its_pong() {
                        websocket.awaiting = Awaiting::Nothing;
                        result = Some(Ok(()));
                    }
                }
                websocket::Event::Close => return Some(self.closed_by_peer(c, result)),
            }
        }
        if result.is_some() {
            self.rest(c);
        }
        match self.flush(s, c) {
            Ok(()) => result,
            Err(error) => {
                self.close(c);
                result.or(Some(Err(Fault::Broken(error))))
            }
        }
    }

    /// The peer closes: as an answer to our close, or on its own.
    fn closed_by_peer(&mut self, c: usize, result: Option<Result<(), Fault>>) -> Result<(), Fault> {
        let Some(websocket) = self.pool.get(c).websocket.as_ref() else { return Ok(()) };
        let code = websocket.decoder.close_code();
        let told = websocket.close_told();
        if websocket.awaiting == Awaiting::Close {
            self.close(c);
            return Ok(());
        }
        self.part(c, code.unwrap_or(websocket::NORMAL));
        result.unwrap_or_else(|| Err(failed(Outcome::Reset, told)))
    }

    /// The step under way is over; the session goes on.
    fn step_ended(&mut self, s: usize, mut result: Result<(), Fault>, now_ns: u64) {
        self.timers.clear(s, Alarm::Wake);
        if result.is_ok() && now_ns > self.flow.sessions[s].deadline_ns {
            self.drop_connection(s, now_ns);
            result = Err(Fault::Timeout);
        }
        match result {
            Ok(()) => self.write_down(s, Outcome::Ok, now_ns),
            Err(fault) => self.fail(s, fault, now_ns),
        }
        self.run_session(s, now_ns);
    }

    /// At the session's end its connection is closed, if it is a WebSocket.
    pub fn leave_websocket(&mut self, c: usize) {
        if self.pool.get(c).is_websocket() {
            self.part(c, websocket::NORMAL);
        }
    }

    /// Closes with a word to the peer, where that can leave at once.
    fn part(&mut self, c: usize, code: u16) {
        if !self.transport.is_sending(c) {
            let key = Some(self.random.u32(..).to_ne_bytes());
            let frames = &mut self.flow.scratch.body;
            frames.clear();
            write_close(frames, Some(code), "", key);
            // The connection is given up in any case.
            let _ = self.transport.send_frames(c, frames);
        }
        self.close(c);
    }
}
