//! The event loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::{ServerConfig, ServerConnection};
use slab::Slab;

use crate::line::Line;
use crate::peer::{Peer, Request};
use crate::refusing::Refusing;
use crate::server::Shared;
use crate::timer::{Clock, Timer, nanoseconds};
use crate::truth::thread_waited_us;
use crate::{Behaviour, Delay, Misbehaviour, Misbehaviours, Truth, tls};

const LISTENER: Token = Token(usize::MAX - 1);
const WAKER: Token = Token(usize::MAX - 2);
const TIMER: Token = Token(usize::MAX - 3);
/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 16_384;
/// News that are taken at once.
const EVENTS: usize = 1_024;
/// Bytes that are read at once.
const READ_BYTES: usize = 16 << 10;
/// Accepting is tried again after this when the system refuses (too many open files).
const REFUSED: Duration = Duration::from_millis(10);
/// Most different texts for faults in URLs.
const URLS_MAX: usize = 1_000;

/// An answer that is to leave; the first to leave is the least.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Planned {
    due_ns: u64,
    request: u64,
    received_ns: u64,
    shard: usize,
    peer: usize,
    peer_number: u64,
    fault: Misbehaviour,
    /// How much of it has left.
    sent_bytes: usize,
}

/// The faults that a URL asks for, and how many requests have.
#[derive(Debug)]
struct ByUrl {
    faults: Vec<Misbehaviour>,
    requests: usize,
}

/// Everything that the thread owns.
pub(crate) struct Loop {
    behaviour: Behaviour,
    clock: Clock,
    tls: Option<Arc<ServerConfig>>,
    /// None while there is no server.
    listener: Option<TcpListener>,
    /// Keeps the port meanwhile.
    place: Option<Refusing>,
    poll: Poll,
    timer: Timer,
    shared: Arc<Shared>,
    peers: Slab<Peer>,
    planned: BinaryHeap<Reverse<Planned>>,
    random: fastrand::Rng,
    truth: Truth,
    /// When the next connection may be accepted; none while nobody is there.
    accept_at_ns: Option<u64>,
    /// When the connections that lie there came; several that came together may share a moment.
    came_ns: VecDeque<u64>,
    /// When the server has done what it has taken on, where its capacity is limited.
    busy_until_ns: u64,
    /// Who serve, where those are few.
    line: Option<Line>,
    frozen_since_ns: Option<u64>,
    down_since_ns: Option<u64>,
    by_url: HashMap<String, ByUrl>,
    buffer: Vec<u8>,
    requests: Vec<Request>,
}

impl Loop {
    pub fn new(mut behaviour: Behaviour, place: Refusing, shared: Arc<Shared>) -> io::Result<(Loop, Waker)> {
        let beside = behaviour.down.map(|_| Refusing::at(place.address()?)).transpose()?;
        let mut listener = place.listen(BACKLOG)?;
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let timer = Timer::new(&poll, TIMER)?;
        let tls = behaviour.tls.then(tls::config).transpose()?;
        if behaviour.delays.is_empty() {
            behaviour.delays = vec![Delay::NONE];
        }
        if behaviour.faults.is_empty() {
            behaviour.faults = vec![Misbehaviour::None];
        }
        let server = Loop {
            clock: Clock::new(),
            tls,
            listener: Some(listener),
            place: beside,
            poll,
            timer,
            shared,
            peers: Slab::new(),
            planned: BinaryHeap::new(),
            random: fastrand::Rng::with_seed(behaviour.seed),
            truth: Truth::new(behaviour.delays.len()),
            accept_at_ns: None,
            came_ns: VecDeque::new(),
            busy_until_ns: 0,
            line: behaviour.workers.map(|workers| Line::new(workers, behaviour.pauses, behaviour.slows)),
            frozen_since_ns: None,
            down_since_ns: None,
            by_url: HashMap::new(),
            buffer: vec![0; READ_BYTES],
            requests: Vec::new(),
            behaviour,
        };
        Ok((server, waker))
    }

    pub fn run(mut self) -> io::Result<Truth> {
        let mut events = Events::with_capacity(EVENTS);
        while !self.shared.stop.load(Ordering::Acquire) {
            let now_ns = self.clock.now_ns();
            let most = self.next_ns().map(|at_ns| Duration::from_nanos(at_ns.saturating_sub(now_ns)));
            match self.timer.wait(&mut self.poll, &mut events, most) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                waited => waited?,
            }
            for event in &events {
                match event.token() {
                    WAKER | TIMER => {}
                    LISTENER => self.come(),
                    Token(peer) => self.receive(peer),
                }
            }
            self.go_or_come()?;
            if self.accept_at_ns.is_some_and(|at_ns| at_ns <= self.clock.now_ns()) {
                self.accept();
            }
            if !self.is_frozen() {
                self.answer_what_is_due();
            }
        }
        self.truth.waited_us = thread_waited_us();
        if let Some(since_ns) = self.frozen_since_ns {
            self.truth.freezes_ns.push((since_ns, self.clock.now_ns()));
        }
        if let Some(since_ns) = self.down_since_ns {
            self.truth.downs_ns.push((since_ns, self.clock.now_ns()));
        }
        Ok(self.truth)
    }

    /// When something is to be done next.
    fn next_ns(&self) -> Option<u64> {
        let answer_ns = match self.frozen_since_ns {
            None => self.planned.peek().map(|first| first.0.due_ns),
            // told from outside when it ends, or by its plan
            Some(_) => None,
        };
        let now_ns = self.clock.now_ns();
        let plans = [self.freeze_by_plan(), self.down_by_plan()].into_iter().flatten();
        let edges = plans.flat_map(|(begin_ns, end_ns)| [begin_ns, end_ns]);
        let edge_ns = edges.filter(|at_ns| *at_ns > now_ns).min();
        [answer_ns, self.accept_at_ns, edge_ns].into_iter().flatten().min()
    }

    /// Begin and end of the time without a server.
    fn down_by_plan(&self) -> Option<(u64, u64)> {
        let begin_ns = self.truth.first_request_ns? + nanoseconds(self.behaviour.down?.after);
        Some((begin_ns, begin_ns + nanoseconds(self.behaviour.down?.length)))
    }

    /// Goes away and comes back when it is time; writes down when that was.
    fn go_or_come(&mut self) -> io::Result<()> {
        let now_ns = self.clock.now_ns();
        let is_down = self.down_by_plan().is_some_and(|(begin, end)| (begin..end).contains(&now_ns));
        match (is_down, self.down_since_ns) {
            (true, None) => {
                self.down_since_ns = Some(now_ns);
                self.listener = None;
                (self.accept_at_ns, self.busy_until_ns) = (None, 0);
                self.came_ns.clear();
                self.peers.drain().for_each(|peer| peer.reset_on_close());
            }
            (false, Some(since_ns)) => {
                self.down_since_ns = None;
                self.truth.downs_ns.push((since_ns, now_ns));
                if let Some(place) = self.place.take() {
                    let mut listener = place.listen(BACKLOG)?;
                    self.poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
                    self.listener = Some(listener);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Begin and end of the freeze that it makes by itself.
    fn freeze_by_plan(&self) -> Option<(u64, u64)> {
        let begin_ns = self.truth.first_request_ns? + nanoseconds(self.behaviour.freeze?.after);
        Some((begin_ns, begin_ns + nanoseconds(self.behaviour.freeze?.length)))
    }

    /// Whether nothing is to be answered now; writes down when that began and ended.
    fn is_frozen(&mut self) -> bool {
        let now_ns = self.clock.now_ns();
        let by_plan = self.freeze_by_plan().is_some_and(|(begin, end)| (begin..end).contains(&now_ns));
        let frozen = by_plan || self.shared.frozen.load(Ordering::Acquire);
        match (frozen, self.frozen_since_ns) {
            (true, None) => self.frozen_since_ns = Some(now_ns),
            (false, Some(since_ns)) => {
                self.frozen_since_ns = None;
                self.truth.freezes_ns.push((since_ns, now_ns));
            }
            _ => {}
        }
        frozen
    }

    /// Connections have come.
    fn come(&mut self) {
        let now_ns = self.clock.now_ns();
        self.came_ns.push_back(now_ns);
        if self.accept_at_ns.is_none() {
            self.accept_at_ns = Some(now_ns + nanoseconds(self.behaviour.accept_every.unwrap_or_default()));
        }
    }

    /// Accepts one where that is slow, else all.
    fn accept(&mut self) {
        while let Some(listener) = &self.listener {
            match listener.accept() {
                Ok((stream, _)) => self.welcome(stream),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.accept_at_ns = None;
                    self.came_ns.clear();
                    return;
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => {
                    self.accept_at_ns = Some(self.clock.now_ns() + nanoseconds(REFUSED));
                    return;
                }
            }
            if let Some(every) = self.behaviour.accept_every {
                self.accept_at_ns = Some(self.clock.now_ns() + nanoseconds(every));
                return;
            }
        }
    }

    fn welcome(&mut self, mut stream: mio::net::TcpStream) {
        let _ = stream.set_nodelay(true);
        let now_ns = self.clock.now_ns();
        let came_ns = self.came_ns.front().copied().unwrap_or(now_ns);
        if self.came_ns.len() > 1 {
            self.came_ns.pop_front();
        }
        let waited_ns = now_ns.saturating_sub(came_ns);
        self.truth.accept_us.saturating_record(waited_ns / 1_000);
        self.truth.connections += 1;
        if self.behaviour.reset_every.is_some_and(|every| self.truth.connections.is_multiple_of(every)) {
            self.truth.connections_reset += 1;
            // closing with unsent time zero sends a reset
            let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            return;
        }
        let place = self.peers.vacant_entry();
        let key = place.key();
        if self.poll.registry().register(&mut stream, Token(key), Interest::READABLE).is_ok() {
            let tls = self.tls.as_ref().map(|config| ServerConnection::new(Arc::clone(config)));
            let Ok(tls) = tls.transpose() else { return };
            place.insert(Peer::new(stream, self.truth.connections, tls));
            // its request may have come before it was registered
            self.receive(key);
        }
    }

    /// Takes the requests of a connection.
    fn receive(&mut self, key: usize) {
        let Some(peer) = self.peers.get_mut(key) else { return };
        let peer_number = peer.number;
        let mut requests = std::mem::take(&mut self.requests);
        let there = peer.read(&mut self.buffer, &mut requests);
        let received_ns = self.clock.now_ns();
        for Request { number, fault } in requests.drain(..) {
            self.truth.first_request_ns.get_or_insert(received_ns);
            let shard = (number % self.behaviour.delays.len() as u64) as usize;
            let begin_ns = match self.behaviour.capacity_per_s {
                None => received_ns,
                Some(per_s) => {
                    self.busy_until_ns = self.busy_until_ns.max(received_ns) + (1e9 / per_s) as u64;
                    self.busy_until_ns
                }
            };
            let fault = self.fault_of(self.truth.requests, fault);
            let later_ns = if let Misbehaviour::Late(by) = fault { nanoseconds(by) } else { 0 };
            let service_ns = self.behaviour.delays[shard].draw_ns(&mut self.random);
            let first_ns = self.truth.first_request_ns.unwrap_or(received_ns);
            let served_ns = match &mut self.line {
                Some(line) => line.serve(begin_ns, service_ns, first_ns),
                None => begin_ns + service_ns,
            };
            let due_ns = served_ns + later_ns;
            let request = self.truth.requests;
            self.truth.requests += 1;
            self.planned.push(Reverse(Planned {
                due_ns,
                request,
                received_ns,
                shard,
                peer: key,
                peer_number,
                fault,
                sent_bytes: 0,
            }));
        }
        self.requests = requests;
        if !there {
            self.peers.remove(key);
        }
    }

    /// How a request is answered: what its URL asks for comes before what the server was told.
    fn fault_of(&mut self, request: u64, by_url: Option<String>) -> Misbehaviour {
        let Some(text) = by_url else {
            return self.behaviour.faults[(request % self.behaviour.faults.len() as u64) as usize];
        };
        if !self.by_url.contains_key(&text) {
            let faults = text.parse().ok().filter(|_| self.by_url.len() < URLS_MAX);
            let Some(Misbehaviours(faults)) = faults else { return Misbehaviour::Status(400) };
            self.by_url.insert(text.clone(), ByUrl { faults, requests: 0 });
        }
        let Some(by_url) = self.by_url.get_mut(&text) else { return Misbehaviour::Status(400) };
        by_url.requests += 1;
        by_url.faults[(by_url.requests - 1) % by_url.faults.len()]
    }

    fn answer_what_is_due(&mut self) {
        while self.planned.peek().is_some_and(|first| first.0.due_ns <= self.clock.now_ns()) {
            let Some(Reverse(mut planned)) = self.planned.pop() else { return };
            let peer = self.peers.get_mut(planned.peer).filter(|peer| peer.number == planned.peer_number);
            let Some(peer) = peer else {
                self.truth.left += 1;
                continue;
            };
            if peer.is_forgotten() {
                *self.truth.faults.entry(Misbehaviour::HalfOpen).or_default() += 1;
                continue;
            }
            let fault = planned.fault;
            // before it is written: nobody can have it earlier
            let now_ns = self.clock.now_ns();
            let whole = fault.bytes().len();
            if let Misbehaviour::Drip(over) = fault
                && planned.sent_bytes + 1 < whole
            {
                if peer.answer(fault, planned.sent_bytes..planned.sent_bytes + 1) {
                    planned.sent_bytes += 1;
                    planned.due_ns += nanoseconds(over) / (whole as u64 - 1);
                    self.planned.push(Reverse(planned));
                } else {
                    self.truth.left += 1;
                    self.peers.remove(planned.peer);
                }
                continue;
            }
            let there = peer.answer(fault, planned.sent_bytes..whole);
            *self.truth.faults.entry(fault).or_default() += 1;
            self.truth.late_us.saturating_record((now_ns - planned.due_ns) / 1_000);
            if fault.is_right() {
                self.truth.answered += 1;
                self.shared.answered.fetch_add(1, Ordering::Relaxed);
                let kept_us = (now_ns - planned.received_ns) / 1_000;
                self.truth.kept_us[planned.shard].saturating_record(kept_us);
            }
            if !there {
                self.peers.remove(planned.peer);
            }
        }
    }
}
