//! Carries requests to several servers, each to the one that has its key.
//!
//! To the loop a connection is a *lane*: a request at a time, to whichever server. Below are *places*: connections of one
//! server, or places in the pipeline of one. A lane takes a free place of its server for each request and gives it back with
//! the answer; where none is free the request waits, the longest first, and its wait counts. So no socket ever carries more
//! than the scenario says, however unevenly keys are asked for. Requests of a server that leave together take places of one
//! connection, so that its batches fill though users come from the answers of all servers.
//!
//! Of a Redis Cluster the map of slots is kept up: an answer that names another server is followed there, and the map is
//! read again, also where a server cannot be reached or does not answer.

mod cluster;

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use tidemark_scenario::Context;

use cluster::MapKeeper;

use super::keyed::Keyed;
use super::router::Router;
use super::{Server, Sharding, Shards};
use crate::io::Io;
use crate::io::pipeline::PipelineIo;
use crate::io::prefetch::prefetch;
use crate::protocols::codec::ByteTransport;
use crate::protocols::transport::{
    Conversations, Copies, Counts, Event, Readings, Redirects, Sent, Setup, Transport,
};
use crate::session::answer::Answer;
use crate::session::failure::Failure;
use crate::session::jar::Jar;

/// Between attempts to reach a server: the first, doubled up to the longest.
const FIRST_BACK_OFF: Duration = Duration::from_millis(1);
const LONGEST_BACK_OFF: Duration = Duration::from_millis(100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlaceState {
    Closed,
    Opening,
    Free,
    Busy,
}

/// Who waits for the answer at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Nobody,
    Lane(u32),
    /// The map is asked for.
    Map,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    state: PlaceState,
    owner: Owner,
    /// Whether its connection has brought no answer yet.
    is_fresh: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum LaneState {
    #[default]
    Closed,
    /// Without a request under way.
    Idle,
    /// Its request waits for a place.
    Held,
    UnderWay(u32),
}

#[derive(Debug, Default)]
struct Lane {
    state: LaneState,
    /// Its request, which may have to be sent again elsewhere.
    rendered: Vec<u8>,
    request: usize,
    slot: u16,
    server: usize,
    hops: u8,
    is_asking: bool,
    /// Where the last answer came.
    place: usize,
    /// Counts how often it was closed, so that what was for an earlier request is told apart.
    closings: u32,
}

/// A server, and the places that go to it.
#[derive(Debug)]
struct Line {
    server: Option<Server>,
    /// Sockets with free places; that in front is filled first.
    ready: VecDeque<u32>,
    /// The socket that the last place was taken of.
    begun: Option<u32>,
    closed: VecDeque<u32>,
    opening: usize,
    /// Lanes whose requests wait, the longest in front.
    held: VecDeque<u32>,
    /// Not to be reached again before.
    retry: Option<Instant>,
    back_off: Duration,
}

/// Free places of a socket.
#[derive(Debug, Default)]
struct FreePlaces {
    places: Vec<u32>,
    /// Whether it is among those of its line that have some.
    is_ready: bool,
}

/// Several servers over one back end.
pub(crate) struct ShardedTransport<I: Io, C: Keyed> {
    inner: ByteTransport<I, C>,
    requests: Vec<C::Request>,
    lines: Vec<Line>,
    places: Vec<Place>,
    /// By socket.
    free: Vec<FreePlaces>,
    lanes: Vec<Lane>,
    router: Router,
    map: Option<MapKeeper>,
    /// What lanes are to be told.
    notices: VecDeque<(u32, u32, Event)>,
    /// Whether what was told of last was one of them.
    is_notice: bool,
    /// Places whose answers have been handed out; free once those have been looked at.
    answered: Vec<u32>,
    /// Servers that have keys; to be found anew where nothing stands here.
    carrying: Option<Vec<usize>>,
    /// Counts what has no key, which goes to them in turn.
    turn: usize,
    /// Servers that came to the cluster while the drive was on.
    came: usize,
    /// Sockets that are open.
    open: u64,
    /// Lanes that stand for a socket.
    sockets: usize,
    redirects: Redirects,
    scratch: Vec<u8>,
}

/// What carries a codec's requests to these servers.
pub(crate) fn sharded_transport<I: Io + 'static, C: Keyed + 'static>(
    io: I,
    setup: &Setup<'_>,
    shards: &Shards,
    requests: Vec<C::Request>,
) -> Box<dyn Transport> {
    let body_bytes = setup.plan.limits.body_bytes;
    match setup.depth {
        1 => {
            let inner = ByteTransport::<I, C>::new(io, Vec::new(), body_bytes);
            Box::new(ShardedTransport::new(inner, setup, shards, requests))
        }
        depth => {
            let io = PipelineIo::new(io, setup.sockets, depth, setup.plan.limits.batch);
            let io = io.of_servers(shards.room());
            let inner = ByteTransport::<_, C>::new(io, Vec::new(), body_bytes);
            Box::new(ShardedTransport::new(inner, setup, shards, requests))
        }
    }
}

impl<I: Io + 'static, C: Keyed> ShardedTransport<I, C> {
    fn new(
        mut inner: ByteTransport<I, C>,
        setup: &Setup<'_>,
        shards: &Shards,
        requests: Vec<C::Request>,
    ) -> Self {
        let room = shards.room();
        let each = (setup.sockets / room).max(1);
        let lines = (0..room).map(|index| Line {
            server: shards.servers.get(index).cloned(),
            ready: VecDeque::with_capacity(each),
            begun: None,
            closed: (index..room * each * setup.depth).step_by(room).map(|place| place as u32).collect(),
            opening: 0,
            held: VecDeque::new(),
            retry: None,
            back_off: FIRST_BACK_OFF,
        });
        let lines: Vec<Line> = lines.collect();
        for (index, line) in lines.iter().enumerate() {
            if let Some(server) = &line.server {
                (index..room * each).step_by(room).for_each(|socket| inner.io.point(socket, server.address));
            }
        }
        let sockets = each * shards.active();
        let place = Place { state: PlaceState::Closed, owner: Owner::Nobody, is_fresh: true };
        ShardedTransport {
            inner,
            requests,
            places: vec![place; room * each * setup.depth],
            free: (0..room * each).map(|_| FreePlaces::default()).collect(),
            lines,
            lanes: (0..sockets * setup.depth).map(|_| Lane::default()).collect(),
            router: Router::new(shards),
            map: (shards.sharding == Sharding::Cluster).then(MapKeeper::default),
            notices: VecDeque::new(),
            is_notice: false,
            answered: Vec::new(),
            carrying: None,
            turn: 0,
            came: 0,
            open: 0,
            sockets,
            redirects: Redirects::default(),
            scratch: Vec::new(),
        }
    }

    fn line_of(&self, place: usize) -> usize {
        place % self.lines.len()
    }

    fn tell(&mut self, lane: usize, event: Event) {
        self.notices.push_back((lane as u32, self.lanes[lane].closings, event));
    }

    /// The server whose turn it is, of those that have keys.
    fn in_turn(&mut self, turn: usize) -> usize {
        let (router, lines) = (&self.router, self.lines.len());
        let carrying = self.carrying.get_or_insert_with(|| router.carrying(lines));
        carrying.get(turn % carrying.len().max(1)).copied().unwrap_or(0)
    }

    /// A lane's request waits for a place of its server, or goes at once.
    fn hold(&mut self, lane: usize, in_front: bool) {
        self.lanes[lane].state = LaneState::Held;
        let line = self.lanes[lane].server;
        let held = &mut self.lines[line].held;
        if in_front {
            held.push_front(lane as u32)
        } else {
            held.push_back(lane as u32)
        }
        self.go_on(line);
    }

    /// Sends what waits for a server's places as far as there are some, and has more of them made.
    fn go_on(&mut self, line: usize) {
        while let Some(lane) = self.lines[line].held.front().copied() {
            let Some(place) = self.free_place(line) else { break };
            self.lines[line].held.pop_front();
            self.send_at(lane as usize, place);
        }
        let waiting = self.lines[line].held.len();
        while self.lines[line].opening < waiting && self.open_one(line) {}
    }

    /// A free place of a server: of the socket on which a batch collects, else of the one that had some first.
    fn free_place(&mut self, line: usize) -> Option<usize> {
        let Line { ready, begun, .. } = &mut self.lines[line];
        if begun
            .take_if(|begun| ready.front() == Some(begun) && !self.inner.io.is_filling(*begun as usize))
            .is_some()
        {
            ready.rotate_left(1);
        }
        while let Some(socket) = ready.front().copied() {
            let free = &mut self.free[socket as usize];
            while let Some(place) = free.places.pop() {
                if self.places[place as usize].state == PlaceState::Free {
                    *begun = Some(socket);
                    return Some(place as usize);
                }
            }
            free.is_ready = false;
            ready.pop_front();
        }
        None
    }

    /// Begins to make one more of a server's connections; whether one is being made.
    fn open_one(&mut self, line: usize) -> bool {
        if self.lines[line].retry.is_some_and(|retry| retry > Instant::now())
            || self.lines[line].server.is_none()
        {
            return false;
        }
        let Some(place) = self.lines[line].closed.pop_front() else { return false };
        self.lines[line].retry = None;
        match self.inner.open(place as usize) {
            Ok(()) => {
                self.places[place as usize].state = PlaceState::Opening;
                self.lines[line].opening += 1;
                true
            }
            Err(error) => {
                self.lines[line].closed.push_back(place);
                self.unreachable(line, &error);
                false
            }
        }
    }

    /// A server could not be reached: what waits for it fails, and the next attempt waits.
    fn unreachable(&mut self, line: usize, error: &io::Error) {
        self.troubled();
        let unreachable = &mut self.lines[line];
        unreachable.retry = Some(Instant::now() + unreachable.back_off);
        unreachable.back_off = (unreachable.back_off * 2).min(LONGEST_BACK_OFF);
        let name = unreachable.server.as_ref().map(|server| server.name.clone()).unwrap_or_default();
        for lane in std::mem::take(&mut unreachable.held) {
            self.lanes[lane as usize].state = LaneState::Idle;
            let error = io::Error::new(error.kind(), format!("{name}: {error}"));
            self.tell(lane as usize, Event::Wrong(Failure::Connect(error)));
        }
    }

    /// Sends a lane's request over a place.
    fn send_at(&mut self, lane: usize, place: usize) {
        let Lane { rendered, request, is_asking, .. } = &self.lanes[lane];
        let asking = if *is_asking { C::ASKING } else { b"" };
        self.inner.put(place, &[asking, rendered]);
        self.inner.codec_mut(place).begin(Some(&self.requests[*request]), rendered, u32::from(*is_asking));
        self.lanes[lane].place = place;
        match self.inner.send(place) {
            Ok(_) => {
                self.places[place].state = PlaceState::Busy;
                self.places[place].owner = Owner::Lane(lane as u32);
                self.lanes[lane].state = LaneState::UnderWay(place as u32);
            }
            Err(error) => {
                let was_fresh = self.places[place].is_fresh;
                self.close_place(place);
                self.not_taken(lane, error, was_fresh);
            }
        }
    }

    /// Nothing of a request was taken: another connection may, unless this one was new.
    fn not_taken(&mut self, lane: usize, error: io::Error, was_fresh: bool) {
        if was_fresh {
            self.lanes[lane].state = LaneState::Idle;
            self.tell(lane, Event::Failed(error));
        } else {
            self.hold(lane, true);
        }
    }

    /// A place is of no more use until it is made again.
    fn close_place(&mut self, place: usize) {
        let line = self.line_of(place);
        let closed = &mut self.places[place];
        closed.owner = Owner::Nobody;
        match std::mem::replace(&mut closed.state, PlaceState::Closed) {
            PlaceState::Closed => return,
            PlaceState::Opening => self.lines[line].opening -= 1,
            PlaceState::Free | PlaceState::Busy => self.open -= u64::from(self.inner.is_first(place)),
        }
        self.inner.close(place);
        self.lines[line].closed.push_back(place as u32);
        self.forget_asked(place);
    }

    /// Answers that were handed out have been looked at: their places are free.
    fn free_answered(&mut self) {
        while let Some(place) = self.answered.pop() {
            if self.places[place as usize].state == PlaceState::Busy {
                self.free(place as usize);
            }
        }
    }

    fn free(&mut self, place: usize) {
        let line = self.line_of(place);
        self.places[place].state = PlaceState::Free;
        self.places[place].owner = Owner::Nobody;
        let socket = place % self.free.len();
        let free = &mut self.free[socket];
        free.places.push(place as u32);
        if !std::mem::replace(&mut free.is_ready, true) {
            let ready = &mut self.lines[line].ready;
            match self.inner.io.is_filling(socket) {
                true => ready.push_front(socket as u32),
                false => ready.push_back(socket as u32),
            }
        }
        self.ask_for_map();
        self.go_on(line);
    }

    /// A place has brought its answer: it is free, or closed where its connection cannot be kept.
    fn over(&mut self, place: usize, keeps_open: bool) {
        if keeps_open {
            return self.free(place);
        }
        let line = self.line_of(place);
        self.close_place(place);
        self.go_on(line);
    }

    /// An answer is whole. What is to be told of it.
    fn on_answer(&mut self, place: usize, keeps_open: bool) -> Option<(usize, Event)> {
        self.places[place].is_fresh = false;
        match self.places[place].owner {
            Owner::Nobody => None,
            Owner::Map => {
                self.take_map(place, keeps_open);
                None
            }
            Owner::Lane(lane) => {
                let lane = lane as usize;
                if self.map.is_some()
                    && let Some(redirect) = self.inner.codec(place).redirect()
                {
                    if self.follow(lane, place, &redirect, keeps_open) {
                        return None;
                    }
                    self.troubled();
                }
                self.lanes[lane].state = LaneState::Idle;
                if keeps_open {
                    self.answered.push(place as u32);
                } else {
                    self.over(place, false);
                }
                Some((lane, Event::Answered { keeps_open: true }))
            }
        }
    }

    /// Something happened at a place: what a lane is told of it.
    fn on_inner(&mut self, place: usize, event: Event) -> Option<(usize, Event)> {
        let line = self.line_of(place);
        match event {
            Event::Opened => {
                self.lines[line].opening -= 1;
                self.lines[line].back_off = FIRST_BACK_OFF;
                self.places[place].is_fresh = true;
                self.open += u64::from(self.inner.is_first(place));
                self.free(place);
                None
            }
            Event::Answered { keeps_open } => self.on_answer(place, keeps_open),
            Event::Failed(error) if self.places[place].state == PlaceState::Opening => {
                self.close_place(place);
                self.unreachable(line, &error);
                None
            }
            event => {
                self.troubled();
                let Place { owner, is_fresh, .. } = self.places[place];
                self.close_place(place);
                let told = match (owner, event) {
                    (Owner::Lane(lane), Event::Unsent(error)) => {
                        self.not_taken(lane as usize, error, is_fresh);
                        None
                    }
                    (Owner::Lane(lane), event) => {
                        self.lanes[lane as usize].state = LaneState::Idle;
                        Some((lane as usize, event))
                    }
                    (Owner::Nobody | Owner::Map, _) => None,
                };
                self.go_on(line);
                told
            }
        }
    }

    /// When something is to be looked at again though nothing happened.
    fn wakes(&self) -> Option<Instant> {
        // a line whose connections are all made, or being made, is woken by what comes of them
        let waits = |line: &&Line| line.opening < line.held.len() && !line.closed.is_empty();
        let retries = self.lines.iter().filter(waits).filter_map(|line| line.retry);
        let map = self.map.as_ref().and_then(|map| match map.asked {
            Some((_, until)) => Some(until),
            // what is past waits for a place
            None => map.next.filter(|next| map.wanted && *next > Instant::now()),
        });
        retries.chain(map).min()
    }

    /// What has become due without anything's happening.
    fn look_again(&mut self) {
        self.ask_for_map();
        for line in 0..self.lines.len() {
            if !self.lines[line].held.is_empty() {
                self.go_on(line);
            }
        }
    }
}

impl<I: Io + 'static, C: Keyed> Transport for ShardedTransport<I, C> {
    fn open(&mut self, lane: usize) -> io::Result<()> {
        debug_assert_eq!(self.lanes[lane].state, LaneState::Closed, "closed before it is opened again");
        self.lanes[lane].state = LaneState::Idle;
        self.tell(lane, Event::Opened);
        // Connections are there before they are needed, where that is wanted: each lane that stands for one has one made.
        if lane < self.sockets {
            let line = self.in_turn(lane);
            self.open_one(line);
        }
        Ok(())
    }

    fn write(&mut self, lane: usize, request: usize, cx: &mut Context<'_>, _: &Jar) -> Result<(), Failure> {
        let mut rendered = std::mem::take(&mut self.lanes[lane].rendered);
        rendered.clear();
        let written = C::render(&self.requests[request], cx, &mut rendered, &mut self.scratch);
        let found = written
            .map_err(Failure::Unmet)
            .and_then(|()| self.router.route::<C>(&self.requests[request], &rendered, self.map.is_some()));
        self.lanes[lane].rendered = rendered;
        let (server, slot) = match found? {
            Some(found) => found,
            None => {
                self.turn += 1;
                (self.in_turn(self.turn), 0)
            }
        };
        let written = &mut self.lanes[lane];
        (written.request, written.server, written.slot) = (request, server, slot);
        (written.hops, written.is_asking) = (0, false);
        Ok(())
    }

    fn send(&mut self, lane: usize) -> io::Result<Sent> {
        self.free_answered();
        self.hold(lane, false);
        self.redirects.held += u64::from(self.lanes[lane].state == LaneState::Held);
        Ok(Sent::Awaiting)
    }

    fn close(&mut self, lane: usize) {
        let closed = &mut self.lanes[lane];
        closed.closings = closed.closings.wrapping_add(1);
        match std::mem::take(&mut closed.state) {
            LaneState::Closed | LaneState::Idle => {}
            LaneState::Held => {
                let line = closed.server;
                self.lines[line].held.retain(|held| *held as usize != lane);
                // a map that is not waited for any more must not keep others from its connection for good
                for place in (line..self.places.len()).step_by(self.lines.len()) {
                    if self.places[place].owner == Owner::Map && !self.is_asked(place) {
                        self.over(place, false);
                    }
                }
            }
            // Nobody could tell any more which answer is whose; and a server that does not answer may have been replaced.
            LaneState::UnderWay(place) => {
                self.troubled();
                self.over(place as usize, false);
            }
        }
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.free_answered();
        if !self.notices.is_empty() {
            return self.inner.wait(Some(Duration::ZERO));
        }
        let until = self.wakes().map(|at| at.saturating_duration_since(Instant::now()));
        let at_most = match (at_most, until) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        self.inner.wait(at_most)?;
        self.look_again();
        Ok(())
    }

    fn hand_over(&mut self) -> io::Result<()> {
        self.free_answered();
        self.inner.hand_over()
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        self.free_answered();
        loop {
            while let Some((lane, closings, event)) = self.notices.pop_front() {
                if self.lanes[lane as usize].closings == closings {
                    self.is_notice = true;
                    return Some((lane as usize, event));
                }
            }
            self.is_notice = false;
            match self.inner.next() {
                Some((place, event)) => {
                    if let Some(found) = self.on_inner(place, event) {
                        return Some(found);
                    }
                }
                None if self.notices.is_empty() => return None,
                None => {}
            }
        }
    }

    fn answer(&self, lane: usize) -> &dyn Answer {
        self.inner.answer(self.lanes[lane].place)
    }

    fn is_first(&self, lane: usize) -> bool {
        lane < self.sockets
    }

    fn socket_of(&self, lane: usize) -> usize {
        self.inner.socket_of(self.lanes[lane].place)
    }

    fn sockets(&self) -> &dyn Io {
        &self.inner.io
    }

    fn connections(&self, _: &[u64]) -> u64 {
        self.open
    }

    fn counts(&self) -> Counts {
        Counts { redirects: self.redirects, ..self.inner.counts() }
    }
}

impl<I: Io + 'static, C: Keyed> Conversations for ShardedTransport<I, C> {}

impl<I: Io + 'static, C: Keyed> Copies for ShardedTransport<I, C> {}

impl<I: Io + 'static, C: Keyed> Readings for ShardedTransport<I, C> {
    fn reading(&self) -> Option<u64> {
        self.inner.reading().filter(|_| !self.is_notice)
    }

    fn prefetch_upcoming(&self, nth: usize) -> Option<usize> {
        match self.places[self.inner.prefetch_upcoming(nth)?].owner {
            Owner::Lane(lane) => {
                prefetch(&self.lanes[lane as usize]);
                Some(lane as usize)
            }
            Owner::Nobody | Owner::Map => None,
        }
    }

    fn received(&self) -> &[u8] {
        self.inner.received()
    }
}

#[cfg(test)]
mod tests;
