//! Which back end a drive uses: asked for, or the best that this system lets it have.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use super::stamps::Stamps;
use super::{Event, Io, Readiness, Waker, portable};
#[cfg(target_os = "linux")]
use super::{epoll, uring};
use crate::io::address::Dialer;

tidemark_record::named! {
    /// A back end for sockets.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum IoChoice {
        /// The best that works here.
        #[default]
        Auto = "auto",
        /// Completions (Linux 6.1 or later, where it is allowed).
        IoUring = "io_uring",
        /// Readiness (Linux 5.11 or later).
        Epoll = "epoll",
        /// What the library offers on every system.
        Portable = "portable",
    }
}

impl IoChoice {
    /// What is tried where none is asked for, the fastest first; each system has the last.
    const BY_SPEED: [IoChoice; 3] = [IoChoice::IoUring, IoChoice::Epoll, IoChoice::Portable];

    /// The same where streams share connections. Their answers come in several packets: who reads once it is awake finds
    /// them together, where the kernel, which reads for io_uring before that, has mostly the first of them.
    const BY_SPEED_OF_STREAMS: [IoChoice; 3] = [IoChoice::Epoll, IoChoice::IoUring, IoChoice::Portable];
}

tidemark_record::named! {
    /// Until when a response time counts.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum Timestamps {
        /// Until the driver has read the answer, as a client would have to.
        #[default]
        Read = "read",
        /// Until the kernel had its last bytes, where it tells (Linux, TCP): the driver's wake-up is left out.
        Kernel = "kernel",
    }
}

impl fmt::Display for Timestamps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Timestamps {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Timestamps::from_name(text)
            .ok_or_else(|| format!("unknown timestamps {text:?}: they are read or kernel"))
    }
}

impl fmt::Display for IoChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for IoChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        IoChoice::from_name(text)
            .ok_or_else(|| format!("unknown back end {text:?}: it is auto, io_uring, epoll or portable"))
    }
}

/// What a thread will wait on, made before it, where failing is still possible.
#[allow(clippy::large_enum_variant, reason = "a thread has one, and it never moves far")]
pub(crate) enum Poller {
    #[cfg(target_os = "linux")]
    Uring(uring::Poller),
    #[cfg(target_os = "linux")]
    Epoll(epoll::Poller),
    Portable(portable::Poller),
}

impl Poller {
    /// As asked for; for `connections` connections.
    pub fn new(choice: IoChoice, connections: usize) -> io::Result<Poller> {
        match choice {
            #[cfg(target_os = "linux")]
            IoChoice::IoUring => uring::Poller::new(connections).map(Poller::Uring),
            #[cfg(target_os = "linux")]
            IoChoice::Epoll => epoll::Poller::new().map(Poller::Epoll),
            #[cfg(not(target_os = "linux"))]
            IoChoice::IoUring | IoChoice::Epoll => {
                let _ = connections;
                Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has it"))
            }
            IoChoice::Auto => {
                let found = IoChoice::BY_SPEED.into_iter().find_map(|one| Poller::new(one, connections).ok());
                found.map_or_else(|| Poller::new(IoChoice::Portable, connections), Ok)
            }
            IoChoice::Portable => portable::Poller::new().map(Poller::Portable),
        }
    }

    /// One for each thread, all of the same kind, and which that is. `has_streams`: streams share the connections.
    pub fn all(
        choice: IoChoice,
        connections: &[usize],
        has_streams: bool,
    ) -> io::Result<(IoChoice, Vec<Poller>)> {
        let pollers = |choice| connections.iter().map(|share| Poller::new(choice, *share)).collect();
        if choice == IoChoice::Auto {
            // The first may be had where the last is one too many.
            let order = if has_streams { IoChoice::BY_SPEED_OF_STREAMS } else { IoChoice::BY_SPEED };
            for better in order {
                if let Ok(pollers) = pollers(better) {
                    return Ok((better, pollers));
                }
            }
        }
        let pollers: Vec<Poller> = pollers(choice)?;
        Ok((pollers.first().map_or(choice, Poller::choice), pollers))
    }

    /// What it came to be.
    pub fn choice(&self) -> IoChoice {
        match self {
            #[cfg(target_os = "linux")]
            Poller::Uring(_) => IoChoice::IoUring,
            #[cfg(target_os = "linux")]
            Poller::Epoll(_) => IoChoice::Epoll,
            Poller::Portable(_) => IoChoice::Portable,
        }
    }

    /// Wakes whoever sits on it.
    pub fn waker(&self) -> Waker {
        match self {
            #[cfg(target_os = "linux")]
            Poller::Uring(poller) => poller.waker(),
            #[cfg(target_os = "linux")]
            Poller::Epoll(poller) => poller.waker(),
            Poller::Portable(poller) => poller.waker(),
        }
    }

    /// For the thread itself, and `connections` connections that are made by the dialer. `all_stamped`: the kernel is asked
    /// of all of them when what is read came, else of a sample.
    pub fn into_io(self, dialer: Dialer, connections: usize, all_stamped: bool) -> io::Result<SystemIo> {
        #[cfg(target_os = "linux")]
        let stamps = if all_stamped { Stamps::All } else { Stamps::Some };
        #[cfg(not(target_os = "linux"))]
        let _ = all_stamped;
        Ok(match self {
            #[cfg(target_os = "linux")]
            Poller::Uring(poller) => SystemIo::Uring(poller.into_io(dialer, connections, stamps)?),
            #[cfg(target_os = "linux")]
            Poller::Epoll(poller) => {
                SystemIo::Epoll(Readiness::new(poller.into_io(stamps), dialer, connections))
            }
            Poller::Portable(poller) => {
                SystemIo::Portable(Readiness::new(poller.into_io(), dialer, connections))
            }
        })
    }
}

/// The back end in use. One loop serves all; which it is, is looked up with each call.
#[allow(clippy::large_enum_variant, reason = "a thread has one, and it never moves far")]
pub(crate) enum SystemIo {
    #[cfg(target_os = "linux")]
    Uring(uring::Uring),
    #[cfg(target_os = "linux")]
    Epoll(Readiness<epoll::Epoll>),
    Portable(Readiness<portable::Portable>),
}

macro_rules! hand_on {
    ($io:expr, $name:ident($($argument:expr),*)) => {
        match $io {
            #[cfg(target_os = "linux")]
            SystemIo::Uring(io) => io.$name($($argument),*),
            #[cfg(target_os = "linux")]
            SystemIo::Epoll(io) => io.$name($($argument),*),
            SystemIo::Portable(io) => io.$name($($argument),*),
        }
    };
}

impl Io for SystemIo {
    fn point(&mut self, connection: usize, address: SocketAddr) {
        hand_on!(self, point(connection, address))
    }

    fn open(&mut self, connection: usize) -> io::Result<()> {
        hand_on!(self, open(connection))
    }

    fn output(&mut self, connection: usize) -> &mut Vec<u8> {
        hand_on!(self, output(connection))
    }

    fn send(&mut self, connection: usize) -> io::Result<()> {
        hand_on!(self, send(connection))
    }

    fn is_sending(&self, connection: usize) -> bool {
        hand_on!(self, is_sending(connection))
    }

    fn tell_taken(&mut self, connection: usize) -> io::Result<()> {
        hand_on!(self, tell_taken(connection))
    }

    fn close(&mut self, connection: usize) {
        hand_on!(self, close(connection))
    }

    fn push(&mut self, connection: usize) -> io::Result<()> {
        hand_on!(self, push(connection))
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        hand_on!(self, wait(at_most))
    }

    fn hand_over(&mut self) -> io::Result<()> {
        hand_on!(self, hand_over())
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        hand_on!(self, next())
    }

    fn received(&self) -> &[u8] {
        hand_on!(self, received())
    }

    fn arrived(&self) -> Option<u64> {
        hand_on!(self, arrived())
    }

    fn taken_at(&self) -> Option<Instant> {
        hand_on!(self, taken_at())
    }

    fn upcoming_socket(&self) -> Option<usize> {
        hand_on!(self, upcoming_socket())
    }

    fn traffic(&self) -> (u64, u64) {
        hand_on!(self, traffic())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_are_refused() {
        for choice in IoChoice::ALL {
            assert_eq!(choice.to_string().parse(), Ok(choice));
        }
        assert!("kqueue".parse::<IoChoice>().unwrap_err().contains("auto, io_uring, epoll or portable"));
    }

    #[test]
    fn timestamps_are_read_back_and_others_are_refused() {
        assert_eq!(Timestamps::ALL.map(|one| one.to_string().parse()), Timestamps::ALL.map(Ok));
        assert!("wire".parse::<Timestamps>().unwrap_err().contains("read or kernel"));
    }

    #[test]
    fn auto_is_what_works() {
        let poller = Poller::new(IoChoice::Auto, 10).unwrap();
        assert_ne!(poller.choice(), IoChoice::Auto);
        for has_streams in [false, true] {
            let (choice, pollers) = Poller::all(IoChoice::Auto, &[1, 2, 3], has_streams).unwrap();
            assert!(pollers.len() == 3 && pollers.iter().all(|poller| poller.choice() == choice));
            assert!(choice != IoChoice::IoUring || !has_streams, "epoll is there where io_uring is");
        }
        assert_eq!(Poller::new(IoChoice::Portable, 10).unwrap().choice(), IoChoice::Portable);
    }
}
