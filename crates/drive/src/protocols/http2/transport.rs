//! What the loop asks of streams.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tidemark_record::Outcome;
use tidemark_scenario::Context;

use super::link::LinkState;
use super::stream::Piece;
use super::{Streams, failure};
use crate::io::Io;
use crate::io::stream_failure;
use crate::protocols::transport::{Conversations, Copies, Counts, Event, Readings, Sent, Transport};
use crate::session::answer::Answer;
use crate::session::failure::Failure;
use crate::session::jar::Jar;
use crate::session::program::{Outgoing, ProgramMessage, ProgramRequest};

impl<I: Io + 'static> Transport for Streams<I> {
    fn open(&mut self, s: usize) -> io::Result<()> {
        debug_assert!(self.streams[s].link.is_none(), "closed before it is opened again");
        self.attach(s)
    }

    fn write(&mut self, s: usize, request: usize, cx: &mut Context<'_>, jar: &Jar) -> Result<(), Failure> {
        let prepared = self.requests[request].as_ref().map_err(|words| Failure::Unsendable(words.clone()))?;
        let stream = &mut self.streams[s];
        prepared.make(cx, jar, &mut self.scratch, &mut stream.message)?;
        stream.ask(prepared.needs_body, prepared.shown_bytes);
        Ok(())
    }

    fn write_made(&mut self, s: usize, outgoing: &Outgoing, jar: &Jar, now_s: i64) -> Result<(), Failure> {
        let stream = &mut self.streams[s];
        let request = match outgoing {
            Outgoing::Request(ProgramRequest { websocket: Some(_), .. }) => {
                let words = "a WebSocket needs HTTP/1.1, and this server speaks HTTP/2";
                return Err(Failure::Unsendable(words.into()));
            }
            Outgoing::Request(request) => request,
            Outgoing::Message(ProgramMessage { data, ends, awaits, .. }) => {
                if !stream.exchange.as_ref().is_some_and(|exchange| exchange.stays_open) {
                    return Err(Failure::Other(Outcome::Reset, "the session has no open stream".into()));
                }
                let data = Bytes::copy_from_slice(data);
                stream.piece = Some(Piece { data, ends: *ends, awaits: *awaits || *ends });
                return Ok(());
            }
        };
        stream.stays_open = request.stays_open;
        let made = self.destination.make(request, (jar, now_s), &mut self.scratch, &mut stream.message);
        made.map_err(Failure::Unsendable)?;
        stream.ask(true, 0);
        Ok(())
    }

    fn send(&mut self, s: usize) -> io::Result<Sent> {
        let l = self.streams[s].link.ok_or(ErrorKind::NotConnected)? as usize;
        if let Some(piece) = self.streams[s].piece.take() {
            return self.say(s, l, piece);
        }
        match self.links[l].state {
            LinkState::Open => {}
            LinkState::Retired => return Err(failure::unsent()),
            _ => return Err(ErrorKind::NotConnected.into()),
        }
        if let Some(exchange) = self.streams[s].exchange.take() {
            // one that was left open is given up for this
            self.links[l].give_up(exchange.number);
            self.over(l);
        }
        if !self.links[l].has_room() {
            self.held += 1;
            self.links[l].held.push_back(s as u32);
            return Ok(Sent::Awaiting);
        }
        self.begin(s, l);
        // With several streams, what is sent in one turn leaves together.
        if self.each == 1 {
            self.flush(l);
        }
        Ok(Sent::Awaiting)
    }

    fn close(&mut self, s: usize) {
        let number = s as u32;
        self.notices.retain(|(told, ..)| *told != number);
        let stream = &mut self.streams[s];
        stream.is_first = false;
        stream.is_written = false;
        stream.piece = None;
        let Some(l) = stream.link.take().map(|l| l as usize) else {
            self.waiting.retain(|waiting| *waiting != number);
            return;
        };
        let given_up = stream.exchange.take();
        self.links[l].detach(number);
        if let Some(exchange) = given_up {
            let silent = exchange.is_awaited && exchange.receptions_before == self.links[l].receptions;
            self.links[l].give_up(exchange.number);
            self.dirty.push(l as u32);
            self.over(l);
            if silent && self.links[l].state == LinkState::Open {
                let words = "another request of its connection timed out, and nothing came meanwhile";
                self.retire(l, &stream_failure::timed_out(words));
            }
        }
        self.free_if_left(l);
        if !self.waiting.is_empty() {
            self.attach_waiting();
        }
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.reading = None;
        self.flush_all();
        let more = !self.notices.is_empty() || !self.woken.is_empty() || !self.dirty.is_empty();
        let ping_in = self.ping.as_mut().map(|ping| {
            let ping_in = ping.at.saturating_duration_since(Instant::now());
            ping.waits += usize::from(ping_in.is_zero());
            ping_in
        });
        let at_most = at_most.into_iter().chain(ping_in).min();
        self.inner.wait(if more { Some(Duration::ZERO) } else { at_most })
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.flush_all();
        self.inner.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            if let Some((s, event, made)) = self.notices.pop_front() {
                self.reading = None;
                self.streams[s as usize].is_first = made;
                return Some((s as usize, event));
            }
            if let Some(s) = self.woken.pop_front() {
                match self.look(s as usize) {
                    Some(event) => return Some((s as usize, event)),
                    None => continue,
                }
            }
            if !self.dirty.is_empty() {
                // What streams had to say leaves before the next connection is heard.
                self.flush_all();
                continue;
            }
            if let Some((l, event)) = self.inner.next() {
                self.on_inner(l, event);
                continue;
            }
            self.ping_silent();
            let unsent = std::mem::take(&mut self.unsent);
            self.dirty.extend(unsent);
            self.flush_all();
            if self.notices.is_empty() && self.woken.is_empty() {
                return None;
            }
        }
    }

    fn answer(&self, s: usize) -> &dyn Answer {
        &self.streams[s].reply
    }

    fn sockets(&self) -> &dyn Io {
        &self.inner
    }

    fn is_first(&self, s: usize) -> bool {
        self.streams[s].is_first
    }

    fn socket_of(&self, s: usize) -> usize {
        self.streams[s].link.map_or(0, |link| link as usize)
    }

    fn connections(&self, _: &[u64]) -> u64 {
        self.open
    }

    fn counts(&self) -> Counts {
        Counts { handshakes: self.inner.handshakes(), held: self.held, ..Counts::default() }
    }
}

impl<I: Io + 'static> Readings for Streams<I> {
    fn reading(&self) -> Option<u64> {
        self.reading
    }

    /// Where streams share a connection, all that follows the answers of a reading leaves together.
    fn leaves_over(&self, s: usize) -> Option<usize> {
        let stream = &self.streams[s];
        let link = stream.link.filter(|_| self.each > 1 && stream.piece.is_none())?;
        Some(link as usize)
    }

    fn answer_begun(&self, s: usize) -> Option<Instant> {
        self.streams[s].begun
    }
}

impl<I: Io + 'static> Conversations for Streams<I> {
    fn is_bound(&self, s: usize) -> bool {
        self.streams[s].exchange.as_ref().is_some_and(|exchange| exchange.stays_open)
    }

    /// A stream that was left open is cancelled.
    fn leave(&mut self, s: usize) -> bool {
        !self.is_bound(s)
    }

    fn accept(&mut self, s: usize) -> bool {
        self.take_part(s);
        self.rest(s);
        true
    }
}

impl<I: Io + 'static> Copies for Streams<I> {
    /// It is put together when it is asked for.
    fn keep_written(&mut self) {}

    /// As HTTP/1.1 would say it.
    fn written(&mut self, s: usize) -> &[u8] {
        self.scratch.clear();
        let message = &self.streams[s].message;
        let fields = message.fields();
        let [method, path, authority] =
            [":method", ":path", ":authority"].map(|name| fields.get(name).unwrap_or_default());
        let begin = [method, b" ", path, b" HTTP/2\r\nhost: ", authority, b"\r\n"];
        begin.iter().for_each(|part| self.scratch.extend_from_slice(part));
        for (name, value) in fields.iter().filter(|(name, _)| !name.starts_with(b":")) {
            let parts = [name, b": ", value, b"\r\n"];
            parts.iter().for_each(|part| self.scratch.extend_from_slice(part));
        }
        self.scratch.extend_from_slice(b"\r\n");
        self.scratch.extend_from_slice(message.body());
        &self.scratch
    }
}
