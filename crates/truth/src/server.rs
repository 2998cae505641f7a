//! The event loop.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::{ServerConfig, ServerConnection};
use slab::Slab;

use crate::peer::Peer;
use crate::timer::{Clock, Timer, nanoseconds};
use crate::truth::thread_waited_us;
use crate::{Behaviour, Delay, Fault, Truth, tls};

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

/// What the threads share.
#[derive(Debug, Default)]
struct Shared {
    frozen: AtomicBool,
    stop: AtomicBool,
    answered: AtomicU64,
}

/// A server on a thread of its own. Dropping it leaves it running; [`stop`](Server::stop) ends it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    waker: Waker,
    thread: JoinHandle<io::Result<Truth>>,
}

impl Server {
    /// Starts one on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If the system does not give a port or a thread.
    pub fn start(behaviour: Behaviour) -> io::Result<Server> {
        Server::start_at((Ipv4Addr::LOCALHOST, 0).into(), behaviour)
    }

    /// Starts one on this address.
    ///
    /// # Errors
    /// As [`start`](Server::start).
    pub fn start_at(address: SocketAddr, behaviour: Behaviour) -> io::Result<Server> {
        let socket =
            socket2::Socket::new(socket2::Domain::for_address(address), socket2::Type::STREAM, None)?;
        socket.set_reuse_address(true)?;
        socket.set_nonblocking(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let mut listener = TcpListener::from_std(socket.into());
        let address = listener.local_addr()?;

        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        let waker = Waker::new(poll.registry(), WAKER)?;
        let timer = Timer::new(&poll, TIMER)?;
        let shared = Arc::new(Shared::default());
        let tls = behaviour.tls.then(tls::config).transpose()?;
        let server = Loop::new(behaviour, tls, listener, poll, timer, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("truth".into()).spawn(move || server.run())?;
        Ok(Server { address, shared, waker, thread })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Requests answered as they should so far.
    pub fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// From now on nothing is answered; connections and requests are still taken.
    pub fn freeze(&self) {
        self.shared.frozen.store(true, Ordering::Release);
        let _ = self.waker.wake();
    }

    /// Answers all that should have been answered since, and goes on.
    pub fn thaw(&self) {
        self.shared.frozen.store(false, Ordering::Release);
        let _ = self.waker.wake();
    }

    /// Ends it, and tells what it did.
    ///
    /// # Errors
    /// If it could not go on.
    pub fn stop(self) -> io::Result<Truth> {
        self.shared.stop.store(true, Ordering::Release);
        self.waker.wake()?;
        self.thread.join().map_err(|_| io::Error::other("the server's thread broke down"))?
    }
}

/// An answer that is to leave; the first to leave is the least.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Planned {
    due_ns: u64,
    request: u64,
    received_ns: u64,
    shard: usize,
    peer: usize,
    peer_number: u64,
}

/// Everything that the thread owns.
struct Loop {
    behaviour: Behaviour,
    clock: Clock,
    tls: Option<Arc<ServerConfig>>,
    listener: TcpListener,
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
    frozen_since_ns: Option<u64>,
    buffer: Vec<u8>,
    numbers: Vec<u64>,
}

impl Loop {
    fn new(
        mut behaviour: Behaviour,
        tls: Option<Arc<ServerConfig>>,
        listener: TcpListener,
        poll: Poll,
        timer: Timer,
        shared: Arc<Shared>,
    ) -> Loop {
        if behaviour.delays.is_empty() {
            behaviour.delays = vec![Delay::NONE];
        }
        if behaviour.faults.is_empty() {
            behaviour.faults = vec![Fault::None];
        }
        Loop {
            clock: Clock::new(),
            tls,
            listener,
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
            frozen_since_ns: None,
            buffer: vec![0; READ_BYTES],
            numbers: Vec::new(),
            behaviour,
        }
    }

    fn run(mut self) -> io::Result<Truth> {
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
        Ok(self.truth)
    }

    /// When something is to be done next.
    fn next_ns(&self) -> Option<u64> {
        let answer_ns = match self.frozen_since_ns {
            None => self.planned.peek().map(|first| first.0.due_ns),
            // told from outside when it ends, or by its plan
            Some(_) => None,
        };
        let (begin_ns, end_ns) = self.freeze_by_plan().unzip();
        let edge_ns = if self.frozen_since_ns.is_some() { end_ns } else { begin_ns };
        let now_ns = self.clock.now_ns();
        let edge_ns = edge_ns.filter(|at_ns| *at_ns > now_ns);
        [answer_ns, self.accept_at_ns, edge_ns].into_iter().flatten().min()
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
        loop {
            match self.listener.accept() {
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
        let mut numbers = std::mem::take(&mut self.numbers);
        let there = peer.read(&mut self.buffer, &mut numbers);
        let received_ns = self.clock.now_ns();
        for number in numbers.drain(..) {
            self.truth.first_request_ns.get_or_insert(received_ns);
            let shard = (number % self.behaviour.delays.len() as u64) as usize;
            let begin_ns = match self.behaviour.capacity_per_s {
                None => received_ns,
                Some(per_s) => {
                    self.busy_until_ns = self.busy_until_ns.max(received_ns) + (1e9 / per_s) as u64;
                    self.busy_until_ns
                }
            };
            let due_ns = begin_ns + self.behaviour.delays[shard].draw_ns(&mut self.random);
            let request = self.truth.requests;
            self.truth.requests += 1;
            self.planned.push(Reverse(Planned {
                due_ns,
                request,
                received_ns,
                shard,
                peer: key,
                peer_number,
            }));
        }
        self.numbers = numbers;
        if !there {
            self.peers.remove(key);
        }
    }

    fn answer_what_is_due(&mut self) {
        while self.planned.peek().is_some_and(|first| first.0.due_ns <= self.clock.now_ns()) {
            let Some(Reverse(planned)) = self.planned.pop() else { return };
            let peer = self.peers.get_mut(planned.peer).filter(|peer| peer.number == planned.peer_number);
            let Some(peer) = peer else {
                self.truth.left += 1;
                continue;
            };
            let fault =
                self.behaviour.faults[(planned.request % self.behaviour.faults.len() as u64) as usize];
            // before it is written: nobody can have it earlier
            let now_ns = self.clock.now_ns();
            let there = peer.answer(fault);
            *self.truth.faults.entry(fault).or_default() += 1;
            self.truth.late_us.saturating_record((now_ns - planned.due_ns) / 1_000);
            if fault == Fault::None {
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
