//! Linux (5.11 or later): epoll, waiting to the nanosecond.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::stamps::{self, Stamps};
use super::{Ready, Selector, WAKE_TOKEN, Waker};

/// Most news fetched by one wait; the rest comes with the next.
const EVENTS_PER_WAIT: usize = 512;

/// An epoll instance with an event descriptor that wakes it, made before the thread that will use it.
pub(crate) struct Poller {
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
}

impl Poller {
    /// A new one, watching nothing.
    pub fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE_TOKEN), EventFlags::IN | EventFlags::ET)?;
        let mut none = Vec::with_capacity(1);
        match epoll::wait(&epoll, spare_capacity(&mut none), Some(&Timespec::default())) {
            Err(Errno::NOSYS) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "Linux 5.11 or later is needed"))
            }
            Err(error) => Err(error.into()),
            Ok(_) => Ok(Poller { epoll, wake: Arc::new(wake) }),
        }
    }

    /// Wakes whoever sits on it.
    pub fn waker(&self) -> Waker {
        let wake = self.wake.clone();
        // A full counter means that a wake-up is already on its way.
        Arc::new(move || {
            let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
        })
    }

    /// For the thread itself.
    pub fn into_io(self, stamps: Stamps) -> Epoll {
        Epoll { poller: self, events: Vec::with_capacity(EVENTS_PER_WAIT), stamps }
    }
}

/// The thread's view of it.
pub(crate) struct Epoll {
    poller: Poller,
    events: Vec<epoll::Event>,
    stamps: Stamps,
}

/// A socket that is read and written without the C library in between, whose cancellation points cost.
pub(crate) struct Socket {
    stream: TcpStream,
    /// Whether the kernel was asked when what is read came.
    is_stamped: bool,
    arrived: Option<u64>,
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_stamped {
            let (bytes, arrived) = stamps::receive(self.stream.as_fd(), buffer)?;
            self.arrived = arrived;
            return Ok(bytes);
        }
        let (_, bytes) = recv(&self.stream, buffer, RecvFlags::empty())?;
        Ok(bytes)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.stream, bytes, SendFlags::NOSIGNAL)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Selector for Epoll {
    type Stream = Socket;

    fn add(&mut self, stream: TcpStream, token: u64) -> io::Result<Socket> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.poller.epoll, &stream, EventData::new_u64(token), flags)?;
        let is_stamped = self.stamps.ask((token & u64::from(u32::MAX)) as usize, &stream);
        Ok(Socket { stream, is_stamped, arrived: None })
    }

    fn error_of(stream: &Socket) -> io::Result<Option<io::Error>> {
        stream.stream.take_error()
    }

    fn arrived(stream: &Socket) -> Option<u64> {
        stream.arrived
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        let at_most =
            at_most.map(|d| Timespec { tv_sec: d.as_secs() as _, tv_nsec: d.subsec_nanos().into() });
        self.events.clear();
        epoll::wait(&self.poller.epoll, spare_capacity(&mut self.events), at_most.as_ref())?;
        Ok(())
    }

    fn ready(&self, index: usize) -> Option<Ready> {
        let event = self.events.get(index)?;
        let flags = event.flags;
        Some(Ready {
            token: event.data.u64(),
            readable: flags.contains(EventFlags::IN),
            writable: flags.contains(EventFlags::OUT),
            closing: flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR),
        })
    }
}
