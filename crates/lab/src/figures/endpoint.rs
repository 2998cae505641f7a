//! Where the servers of a run's stores are that tell figures of themselves, known by the scheme of a URL.

use std::cell::Cell;
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use tidemark_drive::{Stream, Target};
use tidemark_scenario::plan::System;

use super::WITHIN;
use super::product::{Product, Scope, Stats};
use crate::products::WITH_FIGURES;
use crate::products::redis::resp;
use crate::stop_signal::StopSignal;
use crate::target::{connect, target};

/// How often it is looked whether all is over, while a server is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// One server, reached as the driver reaches it.
#[derive(Clone)]
pub struct Endpoint {
    /// What it is called: a store, a node of it, or `system`.
    pub name: String,
    /// What it is.
    pub product: &'static dyn Product,
    target: Box<Target>,
}

impl fmt::Debug for Endpoint {
    /// Without what its target knows of passwords.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Connects, and speaks with it until all is over. It may take so long to connect, to greet, and for each whole answer.
    ///
    /// # Errors
    /// Where it cannot be reached or refuses who asks; whatever `with` returns.
    pub(crate) fn speak<R>(
        &self,
        within: Duration,
        stop: &StopSignal,
        with: impl FnOnce(&mut Connection<'_>) -> io::Result<R>,
    ) -> io::Result<R> {
        let stream = connect(&self.target.address, WITHIN, LOOK_EVERY)?;
        let deadline = Cell::new(Instant::now() + within);
        let mut timed = Timed { stream, within, deadline: &deadline, stop };
        let mut target = self.target.as_ref().clone();
        target.speak(&mut timed, |stream| {
            with(&mut Connection { stream, product: self.product, within, deadline: &deadline })
        })?
    }
}

/// A connection to a server.
pub struct Connection<'s> {
    stream: &'s mut dyn Stream,
    product: &'static dyn Product,
    within: Duration,
    deadline: &'s Cell<Instant>,
}

impl Connection<'_> {
    /// Asks for what it reports of itself.
    ///
    /// # Errors
    /// Where the connection breaks, or the answer is none.
    pub fn ask(&mut self, scope: Scope) -> io::Result<Stats> {
        self.deadline.set(Instant::now() + self.within);
        self.product.ask(self.stream, scope)
    }

    /// Sends a command of Redis' protocol.
    ///
    /// # Errors
    /// Where the server refuses ([`io::ErrorKind::Other`]), or no answer comes.
    pub fn command(&mut self, words: &[&str]) -> io::Result<String> {
        self.deadline.set(Instant::now() + self.within);
        resp::Connection::new(&mut *self.stream).demand(words)
    }
}

/// A stream of which each read and write ends at a deadline, and soon after all is over.
struct Timed<'t> {
    stream: Box<dyn Stream>,
    within: Duration,
    deadline: &'t Cell<Instant>,
    stop: &'t StopSignal,
}

impl Timed<'_> {
    fn attempt(&mut self, mut with: impl FnMut(&mut dyn Stream) -> io::Result<usize>) -> io::Result<usize> {
        loop {
            if self.stop.is_set() {
                return Err(io::Error::other("the run ended first"));
            }
            if Instant::now() >= self.deadline.get() {
                let words = format!("no answer within {} s", self.within.as_secs());
                return Err(io::Error::new(ErrorKind::TimedOut, words));
            }
            match with(&mut *self.stream) {
                // its own time-out is shorter
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
                other => return other,
            }
        }
    }
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.attempt(|stream| stream.read(buffer))
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(|stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The product whose URLs begin with this scheme.
fn product(scheme: &str) -> Option<&'static dyn Product> {
    WITH_FIGURES.iter().find(|product| product.schemes().contains(&scheme)).copied()
}

/// One server at an address, by the URL of its store; none where that is of no product that tells figures.
pub fn endpoint(name: &str, url: &str, address: &str) -> Option<Endpoint> {
    let url = Parts::of(url)?;
    one(name, &url, address, &System::default())
}

/// Every server that a URL names: one, or several with commas between.
pub fn endpoints(name: &str, url: &str, system: &System) -> Vec<Endpoint> {
    let Some(url) = Parts::of(url) else { return Vec::new() };
    let hosts: Vec<&str> = url.hosts.split(',').filter(|host| !host.is_empty()).collect();
    let numbered = |(index, host): (usize, &&str)| {
        let name = if hosts.len() == 1 { name.to_owned() } else { format!("{name}.{}", index + 1) };
        one(&name, &url, host, system)
    };
    hosts.iter().enumerate().filter_map(numbered).collect()
}

/// What is driven, where that is a store which is there already.
pub fn driven(url: &str, system: &System) -> Vec<Endpoint> {
    endpoints("system", url, system)
}

/// What matters of a URL.
struct Parts<'u> {
    scheme: &'u str,
    /// With its `@`; empty where there is none.
    login: &'u str,
    hosts: &'u str,
}

impl Parts<'_> {
    fn of(url: &str) -> Option<Parts<'_>> {
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?']).next()?;
        let (login, hosts) = authority.split_at(authority.rfind('@').map_or(0, |at| at + 1));
        Some(Parts { scheme, login, hosts })
    }
}

/// None where the URL cannot be driven, which others tell.
fn one(name: &str, url: &Parts<'_>, host: &str, system: &System) -> Option<Endpoint> {
    let product = product(url.scheme)?;
    // each server of a cluster or of several answers for itself
    let scheme = url.scheme.trim_end_matches("-cluster");
    let target = target(&format!("{scheme}://{}{host}", url.login), system).ok()?;
    Some(Endpoint { name: name.to_owned(), product, target: Box::new(target) })
}

/// Whether a server is what a name means: itself, or a node of it.
pub fn is_of(server: &str, name: &str) -> bool {
    server.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
