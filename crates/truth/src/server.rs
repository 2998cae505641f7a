//! A server's handle.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use mio::Waker;

use crate::refusing::Refusing;
use crate::serving::Loop;
use crate::{Behaviour, Truth};

/// What the threads share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub frozen: AtomicBool,
    pub stop: AtomicBool,
    pub answered: AtomicU64,
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
        let place = Refusing::at(address)?;
        let address = place.address()?;
        let shared = Arc::new(Shared::default());
        let (server, waker) = Loop::new(behaviour, place, Arc::clone(&shared))?;
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
