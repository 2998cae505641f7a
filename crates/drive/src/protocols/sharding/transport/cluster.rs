//! A Redis Cluster while the load is on: redirects are followed, and the map of slots is read again where it may be out of date.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::{FIRST_BACK_OFF, FreePlaces, LaneState, Line, Owner, Place, PlaceState, ShardedTransport};
use crate::io::Io;
use crate::protocols::sharding::keyed::{Keyed, Redirect};
use crate::protocols::sharding::router::Router;
use crate::protocols::sharding::{Server, Slots};
use crate::protocols::transport::Transport;

/// How often a request is sent on to another server, at most.
const HOPS_MAX: u8 = 8;
/// Between two readings of the map.
const MAP_PAUSE: Duration = Duration::from_millis(100);
/// Servers that are taken in over a whole drive: a cluster that names ever new ones must not have us dial without end.
const CAME_MAX: usize = 1_024;
/// Longest wait for a map.
const MAP_PATIENCE: Duration = Duration::from_secs(1);

/// What keeps the map of a cluster up.
#[derive(Debug, Default)]
pub(super) struct MapKeeper {
    pub wanted: bool,
    pub asked: Option<(u32, Instant)>,
    pub next: Option<Instant>,
    /// Whose turn it is to be asked.
    pub turn: usize,
}

impl<I: Io + 'static, C: Keyed> ShardedTransport<I, C> {
    /// The map may be out of date.
    pub(super) fn troubled(&mut self) {
        if let Some(map) = &mut self.map {
            map.wanted = true;
        }
    }

    /// The map is not waited for at this place any more.
    pub(super) fn forget_asked(&mut self, place: usize) {
        if let Some(map) = &mut self.map {
            map.asked.take_if(|(asked, _)| *asked as usize == place);
        }
    }

    pub(super) fn is_asked(&self, place: usize) -> bool {
        self.map.as_ref().and_then(|map| map.asked).is_some_and(|(asked, _)| asked as usize == place)
    }

    /// Asks for the map, where that is due.
    pub(super) fn ask_for_map(&mut self) {
        let Some(map) = &self.map else { return };
        if !map.wanted && map.asked.is_none() {
            return;
        }
        let now = Instant::now();
        if let Some((place, until)) = map.asked {
            if now < until {
                return;
            }
            // Another one is asked. Its connection stays, as others' answers may be under way on it, and a late map is one, too.
            self.forget_asked(place as usize);
        }
        let Some(map) = &self.map else { return };
        if !map.wanted || map.next.is_some_and(|next| next > now) {
            return;
        }
        let (turn, count) = (map.turn, self.lines.len());
        for step in 0..count {
            let line = (turn + step) % count;
            let Some(place) = self.free_place(line) else {
                if self.lines[line].opening == 0 {
                    self.open_one(line); // it is asked as soon as it is there
                }
                continue;
            };
            self.inner.put(place, &[C::MAP]);
            self.inner.codec_mut(place).begin(None, C::MAP, 0);
            if self.inner.send(place).is_err() {
                self.close_place(place);
                continue;
            }
            self.places[place].state = PlaceState::Busy;
            self.places[place].owner = Owner::Map;
            if let Some(map) = &mut self.map {
                map.asked = Some((place as u32, now + MAP_PATIENCE));
                map.next = Some(now + MAP_PAUSE);
                map.turn = (line + 1) % count;
            }
            return;
        }
        // Whatever is under way will wake us; where nothing is, it is tried again later.
        let is_under_way = |place: &Place| matches!(place.state, PlaceState::Busy | PlaceState::Opening);
        if let Some(map) = self.map.as_mut().filter(|_| !self.places.iter().any(is_under_way)) {
            map.next = Some(now + MAP_PAUSE);
        }
    }

    /// The map, or something else, came.
    pub(super) fn take_map(&mut self, place: usize, keeps_open: bool) {
        self.forget_asked(place);
        let line = self.line_of(place);
        let asked = self.lines[line].server.as_ref().map(|server| server.address.ip());
        let known = |host: &str, port: u16| self.known(host, port);
        let read = asked.map(|asked| self.inner.codec(place).map(asked, &known));
        self.over(place, keeps_open);
        // one that does not know says nothing about the others
        let Some(Ok(shards)) = read else { return };
        self.redirects.maps += 1;
        // none of those that the map names gives its place to another
        let mut named: Vec<usize> =
            shards.servers.iter().filter_map(|server| self.line_at(server.address)).collect();
        let mut indices = Vec::with_capacity(shards.servers.len());
        for server in &shards.servers {
            let line = self.server_at(server.address, &named);
            named.extend(line);
            indices.push(line);
        }
        let slots = Slots::of(&shards, &|index| indices.get(index).copied().flatten());
        self.router = Router::Slots(slots);
        self.carrying = None;
        if let Some(map) = &mut self.map {
            map.wanted = false;
        }
        self.route_again();
    }

    /// What waits goes to whoever has its slot now.
    pub(super) fn route_again(&mut self) {
        let Router::Slots(slots) = &self.router else { return };
        let mut moved = Vec::new();
        for (index, line) in self.lines.iter_mut().enumerate() {
            let lanes = &self.lanes;
            line.held.retain(|lane| {
                let owner = slots.server(lanes[*lane as usize].slot);
                let stays = lanes[*lane as usize].is_asking || owner.is_none_or(|owner| owner == index);
                if let Some(owner) = owner.filter(|_| !stays) {
                    moved.push((*lane as usize, owner));
                }
                stays
            });
        }
        for (lane, server) in moved {
            self.lanes[lane].server = server;
            self.hold(lane, false);
        }
    }

    /// Where a server is that a cluster names otherwise than by its address, as it was found before the load.
    pub(super) fn known(&self, host: &str, port: u16) -> Option<SocketAddr> {
        let name = format!("{host}:{port}");
        let mut servers = self.lines.iter().filter_map(|line| line.server.as_ref());
        servers.find(|server| server.name == name).map(|server| server.address)
    }

    pub(super) fn line_at(&self, address: SocketAddr) -> Option<usize> {
        let is_there = |line: &Line| line.server.as_ref().is_some_and(|server| server.address == address);
        self.lines.iter().position(is_there)
    }

    /// The line of a server; one that is new takes the place of one that nobody needs and that is not among `kept`. None
    /// where there is none.
    pub(super) fn server_at(&mut self, address: SocketAddr, kept: &[usize]) -> Option<usize> {
        let known = self.line_at(address);
        if known.is_some() || self.came == CAME_MAX {
            return known;
        }
        let empty = self.lines.iter().position(|line| line.server.is_none());
        let unused = || {
            let Router::Slots(slots) = &self.router else { return None };
            (0..self.lines.len()).find(|index| {
                let line = &self.lines[*index];
                let places = (*index..self.places.len()).step_by(self.lines.len());
                line.held.is_empty()
                    && !kept.contains(index)
                    && !slots.has(*index)
                    && places.clone().all(|place| self.places[place].state != PlaceState::Busy)
            })
        };
        let index = empty.or_else(unused)?;
        self.came += 1;
        for place in (index..self.places.len()).step_by(self.lines.len()) {
            self.close_place(place);
            self.inner.io.point(place, address);
        }
        let line = &mut self.lines[index];
        line.server = Some(Server { name: address.to_string(), address });
        line.begun = None;
        for socket in line.ready.drain(..) {
            self.free[socket as usize] = FreePlaces::default();
        }
        (line.retry, line.back_off) = (None, FIRST_BACK_OFF);
        Some(index)
    }

    /// Sends a request to the server that another one named; whether it is.
    pub(super) fn follow(
        &mut self,
        lane: usize,
        place: usize,
        redirect: &Redirect,
        keeps_open: bool,
    ) -> bool {
        let line = self.line_of(place);
        let asked = self.lines[line].server.as_ref().map(|server| server.address.ip());
        let address = match redirect.host.as_str() {
            "" => asked.map(|asked| SocketAddr::new(asked, redirect.port)),
            host => match host.parse() {
                Ok(host) => Some(SocketAddr::new(host, redirect.port)),
                Err(_) => self.known(host, redirect.port),
            },
        };
        let Some(address) = address.filter(|_| self.lanes[lane].hops < HOPS_MAX) else { return false };
        let Some(server) = self.server_at(address, &[]) else { return false };
        if redirect.is_asking {
            self.redirects.asked += 1;
        } else {
            self.redirects.moved += 1;
            if let Router::Slots(slots) = &mut self.router {
                slots.give(redirect.slot, redirect.slot, server);
                self.carrying = None;
            }
            self.troubled();
        }
        let sent_on = &mut self.lanes[lane];
        sent_on.hops += 1;
        sent_on.is_asking = redirect.is_asking;
        sent_on.server = server;
        sent_on.state = LaneState::Held;
        self.over(place, keeps_open);
        self.hold(lane, false);
        true
    }
}
