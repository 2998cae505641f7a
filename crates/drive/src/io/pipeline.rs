//! Pipelining of HTTP/1.1 over any back end: several connections, as the loop sees them, share one socket.
//!
//! Each of the loop's connections is a *lane* of a pipe, which is a connection of the back end below. Requests of all
//! lanes leave in the order in which they were sent, and the bytes that come back belong to the lane that has waited
//! longest: it says where its answer ends ([`Io::answered`]), and what follows is the next one's. Requests that become
//! ready in one turn leave together; where they are to leave in batches, those that become ready while answers are to
//! come wait for each other as well: answers of the socket or, where [several sockets lead to each of several
//! servers](PipelineIo::of_servers), of the server.
//!
//! Lanes fill up evenly: a socket carries a second request only once every socket carries one. When a socket breaks,
//! each lane that waits for an answer on it is told, and so is each that is idle; when a lane gives up (a time-out, bytes
//! that are no HTTP) the socket is closed, for nobody could tell any more which answer is whose.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::{Event, Handshakes, Io};
use crate::io::prefetch::prefetch;
use crate::io::stream_failure;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LaneState {
    #[default]
    Closed,
    /// Its pipe is being made, or is about to be.
    Waiting,
    Open,
}

/// What the loop holds for a connection.
#[derive(Debug, Clone, Copy, Default)]
struct Lane {
    /// The pipe that it is of.
    pipe: u32,
    state: LaneState,
    /// Whether it was the first to have the socket.
    is_first: bool,
    /// Whether an answer to it is to come.
    in_line: bool,
}

impl Lane {
    /// It is in this state now, and nothing is known of it yet.
    fn begin(&mut self, state: LaneState) {
        *self = Lane { pipe: self.pipe, state, is_first: false, in_line: false };
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum PipeState {
    #[default]
    Closed,
    Opening,
    Open,
    /// The peer has closed its side: what is on its way still comes, but nothing more is sent.
    Ending,
}

/// A connection of the back end below.
#[derive(Debug, Default)]
struct Pipe {
    state: PipeState,
    /// Lanes that wait for it to be made.
    waiting: Vec<u32>,
    /// How many lanes are open.
    open: usize,
    /// Lanes whose answers are to come, in the order of their requests.
    line: VecDeque<u32>,
    /// Requests that have not been handed on.
    pending: Vec<u8>,
    /// How many those are.
    unsent: usize,
    /// Requests that were handed on and have no answer yet.
    awaited: usize,
    /// The server that it leads to, where several pipes lead to one; else its own number.
    server: u32,
    /// Where in `pending` the request begins that is being written.
    begun: usize,
    /// Whether it is among those that have something pending.
    is_listed: bool,
}

/// The bytes that the last event was about.
#[derive(Debug, Clone, Copy)]
struct Reading {
    pipe: usize,
    /// How many there are.
    bytes: usize,
    /// How many of them belonged to answers before.
    taken: usize,
    /// Whether the lane in front has said where its answer ends.
    is_answered: bool,
}

/// Lanes over another back end's connections.
pub(crate) struct PipelineIo<I> {
    inner: I,
    lanes: Vec<Lane>,
    pipes: Vec<Pipe>,
    /// Requests that leave together while answers are to come.
    batch: usize,
    /// Requests that were handed on and have no answer yet, by server.
    awaited: Vec<usize>,
    /// Pipes with something pending that could leave.
    listed: Vec<usize>,
    reading: Option<Reading>,
    /// Where the last answer begins in what was received.
    answer_at: usize,
    /// How often something was read.
    readings: u64,
    /// Whether the last event is about what was read last.
    is_of_reading: bool,
    following: VecDeque<(usize, Event)>,
    /// Answers that came with nobody in line for them.
    unsolicited: u64,
}

impl<I: Io> PipelineIo<I> {
    /// `depth` lanes on each of the `pipes` connections of `inner`. A request that becomes ready while answers are to come
    /// waits until it is one of `batch`, or all answers are there (Nagle's algorithm, of requests).
    pub fn new(inner: I, pipes: usize, depth: usize, batch: usize) -> Self {
        PipelineIo {
            inner,
            batch,
            lanes: (0..pipes * depth)
                .map(|lane| Lane { pipe: (lane % pipes) as u32, ..Lane::default() })
                .collect(),
            pipes: (0..pipes).map(|pipe| Pipe { server: pipe as u32, ..Pipe::default() }).collect(),
            awaited: vec![0; pipes],
            listed: Vec::new(),
            reading: None,
            answer_at: 0,
            readings: 0,
            is_of_reading: false,
            following: VecDeque::new(),
            unsolicited: 0,
        }
    }

    /// The pipes lead to so many servers in turn. Batches fill by server: a request waits while any connection to its server
    /// awaits an answer. A full batch leaves at the end of the reading.
    pub fn of_servers(mut self, servers: usize) -> Self {
        self.awaited.truncate(servers);
        self.pipes.iter_mut().enumerate().for_each(|(pipe, of)| of.server = (pipe % servers) as u32);
        self
    }

    /// Whether several pipes lead to one server.
    fn shares_servers(&self) -> bool {
        self.awaited.len() < self.pipes.len()
    }

    fn pipe_of(&self, lane: usize) -> usize {
        self.lanes[lane].pipe as usize
    }

    /// The socket is there.
    fn made(&mut self, pipe: usize) {
        self.pipes[pipe].state = PipeState::Open;
        for (index, lane) in std::mem::take(&mut self.pipes[pipe].waiting).into_iter().enumerate() {
            self.lanes[lane as usize].begin(LaneState::Open);
            self.lanes[lane as usize].is_first = index == 0;
            self.pipes[pipe].open += 1;
            self.following.push_back((lane as usize, Event::Opened));
        }
    }

    /// The socket is of no more use. Lanes that wait for an answer, or for the socket, are told `reason`; idle ones
    /// that it is closed. Lanes that want another one get it.
    fn end(&mut self, pipe: usize, reason: &dyn Fn() -> Event) {
        self.inner.close(pipe);
        if self.reading.is_some_and(|reading| reading.pipe == pipe) {
            self.reading = None;
        }
        let ended = &mut self.pipes[pipe];
        let before = std::mem::take(&mut ended.state);
        ended.pending.clear();
        (ended.unsent, ended.open) = (0, 0);
        self.awaited[ended.server as usize] -= std::mem::take(&mut ended.awaited);
        for lane in std::mem::take(&mut ended.line) {
            self.lanes[lane as usize].in_line = false;
            self.lanes[lane as usize].state = LaneState::Closed;
            self.following.push_back((lane as usize, reason()));
        }
        for lane in (pipe..self.lanes.len()).step_by(self.pipes.len()) {
            if self.lanes[lane].state != LaneState::Open {
                continue;
            }
            let untold = self.following.iter().position(|(following, _)| *following == lane);
            if let Some(opened) = untold {
                // It does not know yet that it was open, and waits on.
                self.following.remove(opened);
                self.lanes[lane].begin(LaneState::Waiting);
                self.pipes[pipe].waiting.push(lane as u32);
            } else {
                self.lanes[lane].state = LaneState::Closed;
                self.following.push_back((lane, Event::Ended));
            }
        }
        if before == PipeState::Opening {
            for lane in std::mem::take(&mut self.pipes[pipe].waiting) {
                self.lanes[lane as usize].state = LaneState::Closed;
                self.following.push_back((lane as usize, reason()));
            }
        } else if !self.pipes[pipe].waiting.is_empty() {
            self.pipes[pipe].state = PipeState::Opening;
            if let Err(error) = self.inner.open(pipe) {
                self.end(pipe, &|| Event::Failed(again(&error)));
            }
        }
    }

    /// Whether what is pending on a pipe waits for more of it.
    fn gathers(&self, pipe: usize) -> bool {
        !self.is_batch(pipe) && self.awaited[self.pipes[pipe].server as usize] > 0
    }

    /// Whether what is pending on a pipe is a batch, or all that its lanes can send.
    fn is_batch(&self, pipe: usize) -> bool {
        let Pipe { unsent, open, .. } = self.pipes[pipe];
        unsent >= self.batch.min(open)
    }

    /// Has what is pending on a pipe handed on before the next wait.
    fn list(&mut self, pipe: usize) {
        let pending = &mut self.pipes[pipe];
        if !pending.pending.is_empty() && !pending.is_listed {
            pending.is_listed = true;
            self.listed.push(pipe);
        }
    }

    /// Hands on what is pending, unless what went before is still on its way out.
    fn flush(&mut self, pipe: usize) -> io::Result<()> {
        if self.pipes[pipe].pending.is_empty() {
            return Ok(());
        }
        self.inner.push(pipe)?;
        if self.inner.is_sending(pipe) {
            return Ok(());
        }
        let output = self.inner.output(pipe);
        output.clear();
        let flushed = &mut self.pipes[pipe];
        std::mem::swap(output, &mut flushed.pending);
        let unsent = std::mem::take(&mut flushed.unsent);
        self.inner.send(pipe)?;
        flushed.awaited += unsent;
        self.awaited[flushed.server as usize] += unsent;
        Ok(())
    }

    /// As [`flush`](Self::flush), where nobody takes the error: lanes are told whose requests had not been handed on, and
    /// those who wait for an answer.
    fn flush_or_end(&mut self, pipe: usize) {
        let unsent = self.pipes[pipe].unsent;
        let Err(error) = self.flush(pipe) else { return };
        let ended = &mut self.pipes[pipe];
        ended.unsent = 0;
        for lane in ended.line.drain(ended.line.len() - unsent..) {
            self.lanes[lane as usize].begin(LaneState::Closed);
            self.following.push_back((lane as usize, Event::Unsent(again(&error))));
        }
        self.end(pipe, &|| Event::Failed(again(&error)));
    }

    /// Hands on what is pending anywhere, unless it waits for more (an answer will see to it); where there is no room
    /// yet, it stays for the next time.
    fn flush_all(&mut self) {
        self.flush_listed(|io, pipe| !io.gathers(pipe));
    }

    fn flush_listed(&mut self, leaves: fn(&Self, usize) -> bool) {
        let mut listed = std::mem::take(&mut self.listed);
        listed.retain(|pipe| {
            let leaves = leaves(self, *pipe);
            if leaves {
                self.flush_or_end(*pipe);
            }
            // answers that it waits for may come over another pipe
            let stays = leaves || self.shares_servers();
            self.pipes[*pipe].is_listed = stays && !self.pipes[*pipe].pending.is_empty();
            self.pipes[*pipe].is_listed
        });
        debug_assert!(self.listed.is_empty(), "nothing is sent while it is flushed");
        self.listed = listed;
    }

    /// The lane in front has its turn at the bytes that are left; none if there are none, or they belong to nobody.
    #[inline]
    fn next_answer(&mut self) -> Option<usize> {
        let reading = self.reading.as_mut()?;
        let left = reading.bytes - reading.taken;
        let pipe = reading.pipe;
        if left == 0 || !reading.is_answered {
            // All that could be answered is: the next requests of these lanes leave together.
            self.reading = None;
            if self.pipes[pipe].state == PipeState::Ending && self.pipes[pipe].line.is_empty() {
                self.end(pipe, &|| Event::Ended);
            } else if self.shares_servers() {
                self.flush_listed(Self::is_batch);
            } else if !self.gathers(pipe) {
                self.flush_or_end(pipe);
                self.list(pipe);
            }
            return None;
        }
        reading.is_answered = false;
        self.answer_at = reading.taken;
        let Pipe { line, unsent, .. } = &self.pipes[pipe];
        match line.front() {
            Some(front) if line.len() > *unsent => Some(*front as usize),
            // those in line have not even left: whatever this answers, it is none of their requests
            Some(_) => {
                self.unsolicited += 1;
                self.end(pipe, &unsolicited);
                None
            }
            None => {
                self.unsolicited += 1;
                self.end(pipe, &|| Event::Ended);
                None
            }
        }
    }

    /// An event of a socket becomes events of its lanes.
    fn spread(&mut self, pipe: usize, event: Event) {
        match event {
            Event::Opened => self.made(pipe),
            Event::Received { closing } => {
                if closing {
                    self.pipes[pipe].state = PipeState::Ending;
                }
                let bytes = self.inner.received().len();
                self.reading = Some(Reading { pipe, bytes, taken: 0, is_answered: true });
                self.readings += 1;
                self.answer_at = 0;
                if let Some(next) = self.inner.upcoming_socket().and_then(|next| self.pipes.get(next)) {
                    prefetch(next);
                }
            }
            // nobody asks where a socket is shared
            Event::Taken => {}
            Event::Ended => self.end(pipe, &|| Event::Ended),
            // Of several, nobody knows which have been sent before.
            Event::Unsent(error) if self.pipes[pipe].line.len() == 1 => {
                self.end(pipe, &|| Event::Unsent(again(&error)));
            }
            Event::Unsent(error) => self.end(pipe, &|| Event::Failed(again(&error))),
            Event::Failed(error) => self.end(pipe, &|| Event::Failed(again(&error))),
        }
    }
}

/// The same error for another lane.
fn again(error: &io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    }
}

/// What lanes are told that are in line with requests which have not left, where an answer came all the same.
fn unsolicited() -> Event {
    let text = "more answers came than requests had left";
    Event::Failed(io::Error::new(ErrorKind::InvalidData, text))
}

/// What lanes are told whose socket another lane had to close, as its answer was wrong.
fn answered_wrongly() -> Event {
    let text = "another request of its pipeline was answered wrongly";
    Event::Failed(io::Error::new(ErrorKind::ConnectionAborted, text))
}

/// The same where its time ran out.
fn timed_out() -> Event {
    Event::Failed(stream_failure::timed_out("another request of its pipeline timed out"))
}

impl<I: Io> Io for PipelineIo<I> {
    fn point(&mut self, lane: usize, address: SocketAddr) {
        self.inner.point(self.pipe_of(lane), address);
    }

    fn open(&mut self, lane: usize) -> io::Result<()> {
        debug_assert_eq!(self.lanes[lane].state, LaneState::Closed, "closed before it is opened again");
        let pipe = self.pipe_of(lane);
        match self.pipes[pipe].state {
            PipeState::Closed => {
                self.inner.open(pipe)?;
                self.pipes[pipe].state = PipeState::Opening;
            }
            PipeState::Open => {
                self.lanes[lane].begin(LaneState::Open);
                self.pipes[pipe].open += 1;
                self.following.push_back((lane, Event::Opened));
                return Ok(());
            }
            PipeState::Opening | PipeState::Ending => {}
        }
        self.lanes[lane].state = LaneState::Waiting;
        self.pipes[pipe].waiting.push(lane as u32);
        Ok(())
    }

    fn output(&mut self, lane: usize) -> &mut Vec<u8> {
        let pipe = self.pipe_of(lane);
        let pipe = &mut self.pipes[pipe];
        pipe.begun = pipe.pending.len();
        &mut pipe.pending
    }

    #[inline(always)]
    fn send(&mut self, lane: usize) -> io::Result<()> {
        let index = self.pipe_of(lane);
        let shares_servers = self.shares_servers();
        let pipe = &mut self.pipes[index];
        debug_assert!(!self.lanes[lane].in_line, "one request of a lane at a time");
        if pipe.state != PipeState::Open || self.lanes[lane].state != LaneState::Open {
            pipe.pending.truncate(pipe.begun);
            return Err(ErrorKind::NotConnected.into());
        }
        pipe.unsent += 1;
        // with several pipes to a server others of this reading may leave with it
        let is_awaited = shares_servers && (self.reading.is_some() || self.awaited[pipe.server as usize] > 0);
        if pipe.line.is_empty() && pipe.begun == 0 && !is_awaited {
            // Alone on the socket: it leaves at once, and learns at once if it cannot.
            if let Err(error) = self.flush(index) {
                self.pipes[index].pending.clear();
                self.pipes[index].unsent = 0;
                return Err(error);
            }
        }
        self.pipes[index].line.push_back(lane as u32);
        self.lanes[lane].in_line = true;
        self.list(index);
        Ok(())
    }

    fn is_sending(&self, lane: usize) -> bool {
        let index = self.pipe_of(lane);
        let pipe = &self.pipes[index];
        // With others behind it, its own bytes are not told apart from theirs.
        pipe.line.len() <= 1 && (!pipe.pending.is_empty() || self.inner.is_sending(index))
    }

    fn close(&mut self, lane: usize) {
        let index = self.pipe_of(lane);
        self.following.retain(|(following, _)| *following != lane);
        let closed = self.lanes[lane];
        self.lanes[lane].begin(LaneState::Closed);
        let pipe = &mut self.pipes[index];
        pipe.open -= usize::from(closed.state == LaneState::Open);
        match closed.state {
            LaneState::Closed => {}
            LaneState::Waiting => {
                pipe.waiting.retain(|waiting| *waiting as usize != lane);
                if pipe.state == PipeState::Opening && pipe.waiting.is_empty() {
                    pipe.state = PipeState::Closed;
                    self.inner.close(index);
                }
            }
            LaneState::Open if closed.in_line => {
                pipe.line.retain(|waiting| *waiting as usize != lane);
                // An answer that is wrong is given up while it is read; else only time ends a request.
                let reason: fn() -> Event = if self.is_of_reading { answered_wrongly } else { timed_out };
                self.end(index, &reason);
            }
            // It has its answer, and the others' are still to come.
            LaneState::Open if pipe.state == PipeState::Ending && !pipe.line.is_empty() => {}
            // The server will answer no more.
            LaneState::Open => self.end(index, &|| Event::Ended),
        }
    }

    fn push(&mut self, lane: usize) -> io::Result<()> {
        let pipe = self.pipe_of(lane);
        self.flush(pipe)?;
        self.inner.push(pipe)
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.flush_all();
        self.is_of_reading = false;
        let at_most = if self.following.is_empty() { at_most } else { Some(Duration::ZERO) };
        self.inner.wait(at_most)
    }

    fn arrived(&self) -> Option<u64> {
        self.inner.arrived()
    }

    fn taken_at(&self) -> Option<Instant> {
        self.inner.taken_at()
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.flush_all();
        self.inner.hand_over()
    }

    #[inline(always)]
    fn next(&mut self) -> Option<(usize, Event)> {
        loop {
            self.is_of_reading = false;
            if let Some(found) = self.following.pop_front() {
                return Some(found);
            }
            if let Some(lane) = self.next_answer() {
                self.is_of_reading = true;
                return Some((lane, Event::Received { closing: false }));
            }
            if self.reading.is_none() && self.following.is_empty() {
                let (pipe, event) = self.inner.next()?;
                self.spread(pipe, event);
            }
        }
    }

    fn received(&self) -> &[u8] {
        self.inner.received().get(self.answer_at..).unwrap_or_default()
    }

    fn answered(&mut self, lane: usize, bytes: usize) -> bool {
        let index = self.pipe_of(lane);
        let Some(reading) = self.reading.as_mut().filter(|reading| reading.pipe == index) else {
            debug_assert!(false, "what is answered was received");
            return false;
        };
        reading.taken = self.answer_at + bytes;
        reading.is_answered = true;
        let pipe = &mut self.pipes[index];
        let front = pipe.line.pop_front();
        pipe.awaited -= 1;
        self.awaited[pipe.server as usize] -= 1;
        debug_assert_eq!(front, Some(lane as u32), "answers come in the order of the requests");
        self.lanes[lane].in_line = false;
        !pipe.line.is_empty() || reading.taken == reading.bytes
    }

    fn unsolicited(&self) -> u64 {
        self.unsolicited
    }

    fn reading(&self) -> Option<u64> {
        self.is_of_reading.then_some(self.readings)
    }

    fn upcoming(&self, nth: usize) -> Option<usize> {
        let Pipe { line, unsent, .. } = &self.pipes[self.reading?.pipe];
        let (place, awaited) = (nth.checked_sub(1)?, line.len().saturating_sub(*unsent));
        let lane = match place.checked_sub(awaited) {
            None => line.get(place)?,
            Some(behind) => self.pipes.get(self.inner.upcoming_socket()?)?.line.get(behind)?,
        };
        Some(*lane as usize)
    }

    fn is_filling(&self, lane: usize) -> bool {
        let unsent = self.pipes[self.pipe_of(lane)].unsent;
        unsent > 0 && (self.batch == 1 || unsent < self.batch)
    }

    fn is_first(&self, lane: usize) -> bool {
        self.lanes[lane].is_first
    }

    fn socket_of(&self, lane: usize) -> usize {
        self.pipe_of(lane)
    }

    fn socket_made(&self, socket: usize) -> Option<Instant> {
        self.inner.socket_made(socket)
    }

    fn agreed(&self, socket: usize) -> Option<(&'static str, &'static str)> {
        self.inner.agreed(socket)
    }

    fn traffic(&self) -> (u64, u64) {
        self.inner.traffic()
    }

    fn handshakes(&self) -> Handshakes {
        self.inner.handshakes()
    }
}

#[cfg(test)]
mod tests;
