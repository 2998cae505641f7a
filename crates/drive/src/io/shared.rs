//! One back end for several transports: each has a range of its sockets, numbered as if there were no others, and one wait
//! is for all.
//!
//! What a transport sends changes places with the buffer of the back end, and what comes is copied once: nothing is
//! allocated for it, and no transport looks into what another one is told.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use super::{Event, Io, OUTPUT_KEPT_BYTES};

/// The back end and what is known of it between the calls of those who share it.
struct Common<I> {
    io: I,
    /// What happened last and has not been told to the part whose socket it is.
    pending: Option<(usize, Event)>,
    /// The shortest time that a part may wait, while they are asked; none is forever.
    least: Option<Duration>,
}

/// A back end that is shared.
pub(crate) struct SharedIo<I>(Rc<RefCell<Common<I>>>);

impl<I: Io> SharedIo<I> {
    pub fn new(io: I) -> Self {
        SharedIo(Rc::new(RefCell::new(Common { io, pending: None, least: None })))
    }

    /// Those of its sockets.
    pub fn part(&self, sockets: Range<usize>) -> PartIo<I> {
        let outputs = sockets.clone().map(|_| Vec::new()).collect();
        PartIo { common: self.0.clone(), sockets, outputs, received: Vec::new(), arrived: None }
    }

    /// The socket whose news nobody has taken yet.
    pub fn pending(&self) -> Option<usize> {
        self.0.borrow().pending.as_ref().map(|(socket, _)| *socket)
    }

    /// Parts are asked from now on how long they may wait, this long at most.
    pub fn ask(&self, at_most: Option<Duration>) {
        self.0.borrow_mut().least = at_most;
    }

    /// Waits as long as the parts may, all of them.
    pub fn wait(&self) -> io::Result<()> {
        let common = &mut *self.0.borrow_mut();
        match common.pending {
            Some(_) => Ok(()),
            None => common.io.wait(common.least),
        }
    }

    /// What was sent leaves now.
    pub fn hand_over(&self) -> io::Result<()> {
        self.0.borrow_mut().io.hand_over()
    }
}

/// Some sockets of a shared back end. It never waits: [`SharedIo::wait`] does, for all.
pub(crate) struct PartIo<I> {
    common: Rc<RefCell<Common<I>>>,
    sockets: Range<usize>,
    outputs: Vec<Vec<u8>>,
    received: Vec<u8>,
    arrived: Option<u64>,
}

impl<I: Io> Io for PartIo<I> {
    fn point(&mut self, connection: usize, address: SocketAddr) {
        self.common.borrow_mut().io.point(self.sockets.start + connection, address);
    }

    fn open(&mut self, connection: usize) -> io::Result<()> {
        self.common.borrow_mut().io.open(self.sockets.start + connection)
    }

    fn output(&mut self, connection: usize) -> &mut Vec<u8> {
        let output = &mut self.outputs[connection];
        output.clear();
        output
    }

    fn send(&mut self, connection: usize) -> io::Result<()> {
        let io = &mut self.common.borrow_mut().io;
        let socket = self.sockets.start + connection;
        std::mem::swap(io.output(socket), &mut self.outputs[connection]);
        io.send(socket)
    }

    fn push(&mut self, connection: usize) -> io::Result<()> {
        self.common.borrow_mut().io.push(self.sockets.start + connection)
    }

    fn is_sending(&self, connection: usize) -> bool {
        self.common.borrow().io.is_sending(self.sockets.start + connection)
    }

    fn close(&mut self, connection: usize) {
        let socket = self.sockets.start + connection;
        let common = &mut *self.common.borrow_mut();
        common.pending.take_if(|(pending, _)| *pending == socket);
        common.io.close(socket);
        let output = &mut self.outputs[connection];
        output.clear();
        output.shrink_to(OUTPUT_KEPT_BYTES);
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        let least = &mut self.common.borrow_mut().least;
        *least = at_most.into_iter().chain(*least).min();
        Ok(())
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        let common = &mut *self.common.borrow_mut();
        if common.pending.is_none() {
            common.pending = common.io.next();
        }
        let (socket, event) = common.pending.take_if(|(socket, _)| self.sockets.contains(socket))?;
        if let Event::Received { .. } = event {
            self.received.clear();
            self.received.extend_from_slice(common.io.received());
            self.arrived = common.io.arrived();
        }
        Some((socket - self.sockets.start, event))
    }

    fn received(&self) -> &[u8] {
        &self.received
    }

    fn arrived(&self) -> Option<u64> {
        self.arrived
    }

    /// Of all parts together.
    fn traffic(&self) -> (u64, u64) {
        self.common.borrow().io.traffic()
    }
}
