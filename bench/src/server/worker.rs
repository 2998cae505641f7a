//! A thread and its event loop.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use mio::{Events, Interest, Poll, Token, Waker};
use rustls::{ServerConfig, ServerConnection};
use slab::Slab;

use super::Seen;
use super::answers::Answers;
use super::connection::Connection;

const WAKER: Token = Token(usize::MAX);
/// News that are taken at once.
const EVENTS: usize = 1_024;
/// Bytes that are read at once.
const READ_BYTES: usize = 64 << 10;

/// Where connections are handed in.
#[derive(Debug, Clone)]
pub struct Inbox {
    waiting: Arc<Mutex<Vec<TcpStream>>>,
    waker: Arc<Waker>,
}

impl Inbox {
    pub fn give(&self, stream: TcpStream) {
        self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(stream);
        // the next one wakes it where this cannot
        let _ = self.waker.wake();
    }
}

/// Starts one.
pub fn start(seen: Arc<Seen>, tls: Option<Arc<ServerConfig>>) -> io::Result<Inbox> {
    let poll = Poll::new()?;
    let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
    let inbox = Inbox { waiting: Arc::default(), waker };
    let mine = inbox.clone();
    let worker = Worker { poll, inbox: mine, seen, tls, connections: Slab::new(), start: Instant::now() };
    std::thread::Builder::new().name("serve".into()).spawn(move || worker.run())?;
    Ok(inbox)
}

struct Worker {
    poll: Poll,
    inbox: Inbox,
    seen: Arc<Seen>,
    tls: Option<Arc<ServerConfig>>,
    connections: Slab<Connection>,
    start: Instant,
}

impl Worker {
    fn run(mut self) {
        let answers = Answers::new();
        let mut events = Events::with_capacity(EVENTS);
        let mut buffer = vec![0; READ_BYTES];
        while !self.seen.stop.load(Ordering::Relaxed) {
            match self.poll.poll(&mut events, None) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) => return,
                Ok(()) => {}
            }
            let (mut requests, mut resumed) = (0, 0);
            for event in &events {
                if event.token() == WAKER {
                    self.welcome();
                    continue;
                }
                let key = event.token().0;
                let Some(connection) = self.connections.get_mut(key) else { continue };
                let turn = connection.turn(&mut buffer, &answers);
                requests += turn.requests;
                resumed += turn.resumed;
                if turn.gone {
                    self.connections.remove(key);
                }
            }
            if requests > 0 {
                self.count(requests, resumed);
            }
        }
    }

    fn count(&self, requests: u64, resumed: u64) {
        let now_us = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(u64::MAX);
        if self.seen.first_us.load(Ordering::Relaxed) > now_us {
            self.seen.first_us.fetch_min(now_us, Ordering::Relaxed);
        }
        self.seen.last_us.fetch_max(now_us, Ordering::Relaxed);
        self.seen.requests.fetch_add(requests, Ordering::Relaxed);
        self.seen.resumed.fetch_add(resumed, Ordering::Relaxed);
    }

    fn welcome(&mut self) {
        let waiting = std::mem::take(
            &mut *self.inbox.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner),
        );
        for stream in waiting {
            if stream.set_nonblocking(true).is_err() || stream.set_nodelay(true).is_err() {
                continue;
            }
            let tls = match &self.tls {
                None => None,
                Some(config) => match ServerConnection::new(Arc::clone(config)) {
                    Ok(tls) => Some(tls),
                    Err(_) => continue,
                },
            };
            let entry = self.connections.vacant_entry();
            let mut connection = Connection::new(mio::net::TcpStream::from_std(stream), tls);
            let interest = Interest::READABLE | Interest::WRITABLE;
            // what came before it was registered is told at once
            if self.poll.registry().register(connection.stream(), Token(entry.key()), interest).is_ok() {
                entry.insert(connection);
            }
        }
    }
}
