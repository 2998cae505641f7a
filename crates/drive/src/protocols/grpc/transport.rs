//! What the loop asks of calls.

use std::io;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidemark_record::Outcome;
use tidemark_scenario::{Context, Template};

use super::request::{self, CallHead, Prepared};
use super::talk::Talk;
use super::{Awaiting, Calls};
use crate::io::Io;
use crate::protocols::http2::request::Message;
use crate::protocols::transport::{
    Conversations, Copies, Counts, Event, Origin, Readings, Refusal, Sent, Spoken, Transport,
};
use crate::session::answer::Answer;
use crate::session::failure::Failure;
use crate::session::jar::Jar;
use crate::session::program::Outgoing;
use crate::session::sockets::{Heard, Said};

/// Appends messages for a person.
fn show(written: &mut Option<Vec<u8>>, head: Option<&Message>, messages: &[Template], cx: &mut Context<'_>) {
    let Some(written) = written else { return };
    written.clear();
    if let Some(head) = head {
        CallHead::show(head, written);
    }
    for message in messages {
        // what cannot be rendered is told where it is sent
        let _ = message.render(cx, written);
        written.push(b'\n');
    }
}

impl<I: Io + 'static> Calls<I> {
    /// Sends what was written on an open stream, and looks for a message.
    fn expect(&mut self, s: usize) -> io::Result<Sent> {
        self.calls[s].awaiting = Awaiting::Message;
        if !self.calls[s].reply.has_status() {
            self.http.send(s)?;
        }
        let call = &mut self.calls[s];
        match call.reply.next_message() {
            Ok(true) => return Ok(Sent::Offered),
            Ok(false) if call.reply.has_status() => {
                self.notices.push_back((s as u32, Event::Wrong(call.over())))
            }
            Ok(false) => {}
            Err(failure) => self.notices.push_back((s as u32, Event::Wrong(failure))),
        }
        Ok(Sent::Awaiting)
    }

    /// Sends the end of an open stream, and looks for its status.
    fn end(&mut self, s: usize) -> io::Result<Sent> {
        self.calls[s].awaiting = Awaiting::Status;
        if !self.calls[s].reply.has_status() {
            if let Err(failure) = self.calls[s].reply.pass_over() {
                self.notices.push_back((s as u32, Event::Wrong(failure)));
                return Ok(Sent::Awaiting);
            }
            return self.http.send(s);
        }
        if let Some(event) = self.whole(s, true) {
            self.notices.push_back((s as u32, event));
        }
        Ok(Sent::Awaiting)
    }

    /// A stream is open: what comes is for later steps, unless a program hears it.
    fn begun(&mut self, s: usize) {
        self.calls[s].awaiting = Awaiting::Nothing;
        if self.calls[s].talk.is_none() {
            self.http.rest(s);
        }
    }

    /// A stream that was to be opened and has been now.
    fn opened(&mut self) -> Option<(usize, Event)> {
        let at = self.opening.iter().position(|s| self.http.is_under_way(*s as usize))?;
        let s = self.opening.swap_remove(at) as usize;
        self.begun(s);
        Some((s, Event::Sent))
    }
}

impl<I: Io + 'static> Transport for Calls<I> {
    fn open(&mut self, s: usize) -> io::Result<()> {
        self.http.open(s)
    }

    fn write(&mut self, s: usize, request: usize, cx: &mut Context<'_>, _: &Jar) -> Result<(), Failure> {
        self.look(s);
        let prepared = self.requests[request].as_ref().map_err(|words| Failure::Unsendable(words.clone()))?;
        let call = &mut self.calls[s];
        if let Some(failure) = call.broken.take() {
            // what builds on it has nothing to build on
            call.opened_by = None;
            return Err(failure);
        }
        let is_over = call.reply.has_status();
        call.next = match prepared {
            Prepared::Call { head, messages, needs_body } => {
                let message = self.http.message(s);
                head.make(cx, &mut self.room.text, message)?;
                messages.make(head, cx, &mut self.room, message)?;
                show(&mut self.written, Some(message), &messages.json, cx);
                call.reply.begin(head, *needs_body, true, self.http.sockets().taken_at());
                self.http.ask(s, false);
                Awaiting::Whole
            }
            Prepared::Open(head) => {
                let message = self.http.message(s);
                head.make(cx, &mut self.room.text, message)?;
                show(&mut self.written, Some(message), &[], cx);
                call.reply.begin(head, true, false, self.http.sockets().taken_at());
                (call.opened_by, call.is_told) = (Some(request), false);
                self.http.ask(s, true);
                Awaiting::Begun
            }
            Prepared::Send { .. } if is_over => {
                call.is_told = true;
                return Err(call.over());
            }
            Prepared::Send { message, expects } => {
                let head = call.opened_by.and_then(|opened| match self.requests.get(opened) {
                    Some(Ok(Prepared::Open(head))) => Some(head),
                    _ => None,
                });
                let Some(head) = head else {
                    return Err(Failure::Other(Outcome::Reset, "the session has no open stream".into()));
                };
                self.room.text.clear();
                message.render(cx, &mut self.room.text)?;
                let mut bytes = Vec::new();
                request::write_message(&head.method, &self.room.text, head.compresses, &mut bytes)
                    .map_err(Failure::Unsendable)?;
                show(&mut self.written, None, std::slice::from_ref(message), cx);
                call.reply.begin_step();
                self.http.put(s, bytes.into(), false, *expects);
                if *expects { Awaiting::Message } else { Awaiting::Nothing }
            }
            Prepared::Expect => {
                show(&mut self.written, None, &[], cx);
                call.reply.begin_step();
                if !is_over {
                    self.http.put(s, Bytes::new(), false, true);
                }
                Awaiting::Message
            }
            Prepared::Close => {
                show(&mut self.written, None, &[], cx);
                call.reply.begin_step();
                if !is_over {
                    self.http.put(s, Bytes::new(), true, true);
                }
                Awaiting::Status
            }
        };
        Ok(())
    }

    fn write_made(&mut self, s: usize, outgoing: &Outgoing, _: &Jar, _: i64) -> Result<(), Failure> {
        let Outgoing::Request(asked) = outgoing else {
            return Err(Failure::Unsendable("a program's calls of gRPC are sent whole".into()));
        };
        let origin =
            Origin { authority: &self.authority, base_path: "", is_secured: self.is_secured, proxy: None };
        let head = request::made(self.types.as_ref(), asked, origin, self.http.message(s))
            .map_err(Failure::Unsendable)?;
        let call = &mut self.calls[s];
        let at = self.http.sockets().taken_at();
        call.reply.begin(&head, !asked.status_only, !asked.stays_open, at);
        call.next = if asked.stays_open { Awaiting::Begun } else { Awaiting::Whole };
        call.talk = asked.stays_open.then(|| Talk::new(head.method));
        self.http.ask(s, asked.stays_open);
        Ok(())
    }

    fn send(&mut self, s: usize) -> io::Result<Sent> {
        match self.calls[s].next {
            Awaiting::Whole => {
                self.calls[s].awaiting = Awaiting::Whole;
                self.http.send(s)
            }
            Awaiting::Begun => {
                self.http.send(s)?;
                if self.http.is_under_way(s) {
                    self.begun(s);
                    return Ok(Sent::Whole);
                }
                self.calls[s].awaiting = Awaiting::Begun;
                self.opening.push(s as u32);
                Ok(Sent::Awaiting)
            }
            Awaiting::Message => self.expect(s),
            Awaiting::Status => self.end(s),
            Awaiting::Nothing => self.http.send(s),
        }
    }

    fn close(&mut self, s: usize) {
        self.http.close(s);
        let number = s as u32;
        self.notices.retain(|(told, _)| *told != number);
        self.opening.retain(|opening| *opening != number);
        let call = &mut self.calls[s];
        (call.awaiting, call.opened_by, call.broken, call.talk) = (Awaiting::Nothing, None, None, None);
        self.hearing = self.hearing.filter(|hearing| *hearing != number);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.http.wait(if self.notices.is_empty() { at_most } else { Some(Duration::ZERO) })
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.http.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            self.is_of_reading = false;
            if let Some(s) = self.hearing.take().map(|s| s as usize)
                && let Some(event) = self.hear(s)
            {
                return Some((s, event));
            }
            if let Some((s, event)) = self.notices.pop_front() {
                return Some((s as usize, event));
            }
            if let Some(opened) = self.opened() {
                return Some(opened);
            }
            let Some((s, event)) = self.http.next() else { return self.opened() };
            self.is_of_reading = true;
            if let Some(event) = self.on_event(s, event) {
                return Some((s, self.told(s, event)));
            }
        }
    }

    fn answer(&self, s: usize) -> &dyn Answer {
        &self.calls[s].reply
    }

    fn sockets(&self) -> &dyn Io {
        self.http.sockets()
    }

    fn is_first(&self, s: usize) -> bool {
        self.http.is_first(s)
    }

    fn socket_of(&self, s: usize) -> usize {
        self.http.socket_of(s)
    }

    fn connections(&self, opened: &[u64]) -> u64 {
        self.http.connections(opened)
    }

    fn counts(&self) -> Counts {
        Counts { left_open: self.left_open, ..self.http.counts() }
    }
}

impl<I: Io + 'static> Readings for Calls<I> {
    fn reading(&self) -> Option<u64> {
        self.http.reading().filter(|_| self.is_of_reading)
    }

    /// What nothing answers is over as soon as it is sent.
    fn leaves_over(&self, s: usize) -> Option<usize> {
        self.http.leaves_over(s).filter(|_| self.calls[s].next == Awaiting::Whole)
    }

    fn answer_begun(&self, s: usize) -> Option<Instant> {
        self.http.answer_begun(s)
    }
}

impl<I: Io + 'static> Conversations for Calls<I> {
    fn is_bound(&self, s: usize) -> bool {
        self.calls[s].is_open()
    }

    /// A stream that was left open is cancelled.
    fn leave(&mut self, s: usize) -> bool {
        self.left_open += u64::from(self.is_bound(s) && !self.calls[s].reply.has_status());
        !self.is_bound(s)
    }

    fn refusal(&self, s: Option<u32>, request: usize) -> Option<Refusal> {
        let is_open = s.is_some_and(|s| self.is_bound(s as usize));
        let begins = matches!(self.requests[request], Ok(Prepared::Call { .. } | Prepared::Open(_)) | Err(_));
        let (outcome, words) = match (is_open, begins) {
            (true, true) => (Outcome::Protocol, "the session has an open stream; grpc close comes first"),
            (true, false) | (false, true) => return None,
            (false, false) => (Outcome::Reset, "there is no open stream any more, or grpc open failed"),
        };
        Some(Refusal { failure: Failure::Other(outcome, words.into()), ends_session: !is_open })
    }

    fn news(&self, s: usize) -> Option<Heard<'_>> {
        self.calls[s].news()
    }

    fn breaks(&self, s: usize) -> Option<Failure> {
        self.calls[s].breaks()
    }

    fn say(&mut self, s: usize, said: &Said) -> io::Result<Spoken> {
        self.speak(s, said)
    }

    /// The server ended it, or it broke, and no step has heard that.
    fn lost(&mut self, s: usize) -> Option<(usize, Failure)> {
        self.look(s);
        let call = &mut self.calls[s];
        let opened_by = call.opened_by.filter(|_| !call.is_told)?;
        let failure = match call.broken.take() {
            Some(failure) => failure,
            None if call.reply.has_status() && !call.reply.is_ok() => call.over(),
            None => return None,
        };
        Some((opened_by, failure))
    }

    fn accept(&mut self, s: usize) -> bool {
        self.calls[s].awaiting = Awaiting::Nothing;
        self.http.rest(s);
        true
    }

    fn decline(&mut self, s: usize) -> bool {
        let call = &mut self.calls[s];
        match call.reply.next_message() {
            Ok(true) => return true,
            Ok(false) if call.reply.has_status() => {
                self.notices.push_back((s as u32, Event::Wrong(call.over())))
            }
            Ok(false) => {
                self.http.put(s, Bytes::new(), false, true);
                if let Err(error) = self.http.send(s) {
                    self.notices.push_back((s as u32, Event::Failed(error)));
                }
            }
            Err(failure) => self.notices.push_back((s as u32, Event::Wrong(failure))),
        }
        false
    }
}

impl<I: Io + 'static> Copies for Calls<I> {
    fn keep_written(&mut self) {
        self.written = Some(Vec::new());
    }

    fn written(&mut self, _: usize) -> &[u8] {
        self.written.as_deref().unwrap_or_default()
    }
}
