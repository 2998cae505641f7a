//! Everywhere else: the library's event loop, waiting to the millisecond.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use mio::{Events, Interest, Poll, Token};

use super::{Ready, Selector, WAKE_TOKEN, Waker};

/// Most news fetched by one wait; the rest comes with the next.
const EVENTS_PER_WAIT: usize = 512;

/// The library's poll with its waker, made before the thread that will use it.
pub(crate) struct Poller {
    poll: Poll,
    waker: Arc<mio::Waker>,
}

impl Poller {
    /// A new one, watching nothing.
    pub fn new() -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(mio::Waker::new(poll.registry(), Token(WAKE_TOKEN as usize))?);
        Ok(Poller { poll, waker })
    }

    /// Wakes whoever sits on it.
    pub fn waker(&self) -> Waker {
        let waker = self.waker.clone();
        // It fails only where the poll is gone, and then nobody needs to be woken.
        Arc::new(move || {
            let _ = waker.wake();
        })
    }

    /// For the thread itself.
    pub fn into_io(self) -> Portable {
        let events = Events::with_capacity(EVENTS_PER_WAIT);
        Portable { poller: self, found: Vec::with_capacity(EVENTS_PER_WAIT), events }
    }
}

/// The thread's view of it.
pub(crate) struct Portable {
    poller: Poller,
    found: Vec<Ready>,
    events: Events,
}

impl Selector for Portable {
    type Stream = mio::net::TcpStream;

    fn add(&mut self, stream: TcpStream, token: u64) -> io::Result<Self::Stream> {
        let mut stream = mio::net::TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poller.poll.registry().register(&mut stream, Token(token as usize), interest)?;
        Ok(stream)
    }

    fn error_of(stream: &Self::Stream) -> io::Result<Option<io::Error>> {
        stream.take_error()
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.found.clear();
        self.poller.poll.poll(&mut self.events, at_most)?;
        self.found.extend(self.events.iter().map(|event| Ready {
            token: event.token().0 as u64,
            readable: event.is_readable(),
            writable: event.is_writable(),
            closing: event.is_read_closed() || event.is_error(),
        }));
        Ok(())
    }

    fn ready(&self, index: usize) -> Option<Ready> {
        self.found.get(index).copied()
    }
}
