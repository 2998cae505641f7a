//! Streams of remote calls as the loop sees them: connections that carry one call at a time.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tidemark_scenario::Context;

use super::{CallStreams, LinkState, Notice, StreamState};
use crate::io::Io;
use crate::protocols::transport::{Conversations, Copies, Counts, Event, Readings, Sent, Transport};
use crate::session::answer::Answer;
use crate::session::failure::Failure;
use crate::session::jar::Jar;

impl<I: Io + 'static> Transport for CallStreams<I> {
    fn open(&mut self, s: usize) -> io::Result<()> {
        debug_assert_eq!(self.streams[s].state, StreamState::Closed, "closed before it is opened again");
        let l = self.link_of(s);
        match self.links[l].state {
            LinkState::Closed => self.connect(l, 1)?,
            LinkState::Open => {
                self.streams[s].state = StreamState::Idle;
                self.tell(s, Event::Opened, false);
                return Ok(());
            }
            LinkState::Connecting | LinkState::Upgrading | LinkState::Greeting | LinkState::Retired => {
                self.links[l].opening += 1;
            }
        }
        self.streams[s].state = StreamState::Opening;
        Ok(())
    }

    fn write(&mut self, _: usize, request: usize, cx: &mut Context<'_>, _: &Jar) -> Result<(), Failure> {
        self.calls.write(request, cx, &mut self.written).map_err(Failure::Unmet)
    }

    fn send(&mut self, s: usize) -> io::Result<Sent> {
        if self.streams[s].state != StreamState::Idle {
            return Err(ErrorKind::NotConnected.into());
        }
        let l = self.link_of(s);
        if !self.links[l].has_room() {
            self.hold(s, l);
            return Ok(Sent::Awaiting);
        }
        self.begin(s, l);
        // With several, what is sent in one turn leaves together.
        if self.each == 1 {
            self.flush(l);
        }
        Ok(Sent::Awaiting)
    }

    fn close(&mut self, s: usize) {
        let l = self.link_of(s);
        let stream = &mut self.streams[s];
        stream.opening = stream.opening.wrapping_add(1);
        stream.is_first = false;
        match std::mem::take(&mut stream.state) {
            StreamState::Closed => return,
            StreamState::Opening => self.links[l].opening -= 1,
            StreamState::Idle | StreamState::Held => {}
            StreamState::Calling { receptions } => self.give_up(s, l, receptions),
        }
        self.drop_if_left(l);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.flush_all();
        let more = !self.notices.is_empty() || !self.dirty.is_empty();
        self.inner.wait(if more { Some(Duration::ZERO) } else { at_most })
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.flush_all();
        self.inner.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            while let Some(Notice { stream, opening, event, made }) = self.notices.pop_front() {
                let s = stream as usize;
                if self.streams[s].opening == opening {
                    self.streams[s].is_first |= made;
                    return Some((s, event));
                }
            }
            if let Some(found) = self.read() {
                return Some(found);
            }
            if !self.notices.is_empty() {
                continue;
            }
            if !self.dirty.is_empty() {
                // What is to be said leaves before the next connection is heard.
                self.flush_all();
                continue;
            }
            if let Some((l, event)) = self.inner.next() {
                self.on_inner(l, event);
                continue;
            }
            while let Some(l) = self.unsent.pop() {
                self.mark(l as usize);
            }
            self.flush_all();
            if self.notices.is_empty() {
                return None;
            }
        }
    }

    fn answer(&self, _: usize) -> &dyn Answer {
        &self.reply
    }

    fn is_first(&self, s: usize) -> bool {
        self.streams[s].is_first
    }

    fn socket_of(&self, s: usize) -> usize {
        self.link_of(s)
    }

    fn sockets(&self) -> &dyn Io {
        &self.inner
    }

    fn connections(&self, _: &[u64]) -> u64 {
        self.open
    }

    fn counts(&self) -> Counts {
        Counts { handshakes: self.inner.handshakes(), held: self.held, ..Counts::default() }
    }
}

impl<I: Io + 'static> Readings for CallStreams<I> {}

impl<I: Io + 'static> Conversations for CallStreams<I> {}

impl<I: Io + 'static> Copies for CallStreams<I> {}
