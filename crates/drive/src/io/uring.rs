//! Linux (6.1 or later): io_uring. What is to be done is queued and handed over with the wait, in one call.
//!
//! A socket lives in a slot (`SocketSlot`) of its own until the kernel has done with it: closing a connection cancels
//! what is under way, and only the last completion frees the descriptor, its output and the slot. A slot's
//! generation tells the completions of its sockets apart.
//!
//! Receiving is one standing order for each socket; the kernel picks a buffer from [`Buffers`]. Sending is tried
//! without waiting and reports only failures, so what left the queue without a report has been taken; what found no
//! room is ordered again, waiting.

mod buffers;
mod news;
mod orders;
mod slot;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::types::{Fd, RecvMsgOut};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{RecvFlags, SendFlags};

use super::stamps::{self, CONTROL_BYTES, Stamps};
use super::{Event, Io, OUTPUT_KEPT_BYTES, Waker};
use crate::io::address::Dialer;
use buffers::Buffers;
use orders::{enter, is_passing, length};
use slot::{CONNECT, GENERATIONS, Memory, SEND, Sending, SocketSlot, TAKEN, token};

/// Room for orders.
const ORDERS: u32 = 256;
/// Room for completions; the kernel keeps what does not fit until there is room.
const COMPLETIONS: u32 = 4_096;
/// Sends that are held back at most, to go out with one call. Each of them waits for those before it to be rendered, and
/// then to be sent, some microseconds each; more of them would save less than a hundredth of a request's cost.
const HELD_SENDS: usize = 8;
/// Longest wait, at the end, for the kernel to let go of what it was ordered; then the memory is left to it.
const LETTING_GO: Duration = Duration::from_secs(2);

/// A ring with its buffers, made before the thread that will use it.
pub(crate) struct Poller {
    ring: IoUring,
    buffers: Buffers,
    wake: Arc<OwnedFd>,
}

impl Poller {
    /// A new one. Fails where the kernel is too old for it, or does not allow it.
    pub fn new(connections: usize) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_submit_all()
            .setup_coop_taskrun()
            .setup_taskrun_flag()
            .setup_single_issuer()
            .setup_defer_taskrun()
            // Until the thread that will use it switches it on, and so becomes the one that may.
            .setup_r_disabled()
            .dontfork()
            .build(ORDERS)?;
        let buffers = Buffers::new(connections);
        buffers.register(&ring.submitter())?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        Ok(Poller { ring, buffers, wake })
    }

    /// Wakes whoever sits on it.
    pub fn waker(&self) -> Waker {
        let wake = self.wake.clone();
        // A full counter means that a wake-up is already on its way.
        Arc::new(move || {
            let _ = rustix::io::write(&*wake, &1u64.to_ne_bytes());
        })
    }

    /// For the thread itself, and `connections` connections that are made by the dialer.
    pub fn into_io(self, dialer: Dialer, connections: usize, stamps: Stamps) -> io::Result<Uring> {
        self.ring.submitter().register_enable_rings()?;
        // field by field: musl's has padding that cannot be named
        let mut message = Box::new(stamps::empty_message());
        message.msg_controllen = CONTROL_BYTES as _;
        let mut uring = Uring {
            ring: self.ring,
            memory: Memory {
                buffers: self.buffers,
                dialer: Box::new(dialer),
                slots: Vec::new(),
                message,
                alarm_in: Box::default(),
            },
            stamps,
            wake: self.wake,
            slots_of: vec![None; connections],
            free: Vec::new(),
            held: Vec::with_capacity(HELD_SENDS),
            starved: VecDeque::new(),
            completed: Vec::with_capacity(COMPLETIONS as usize),
            waited_for: 0,
            waited_until: None,
            cursor: 0,
            alarm: None,
            taken_at: None,
            received: None,
            nowhere: Vec::new(),
            traffic: (0, 0),
        };
        uring.watch_wake()?;
        Ok(uring)
    }
}

/// Bytes that came.
#[derive(Debug, Clone, Copy)]
struct Received {
    /// Where they are.
    buffer: u16,
    /// How much stands before them: what the kernel tells of them.
    head_bytes: usize,
    bytes: usize,
}

/// The thread's view of it.
pub(crate) struct Uring {
    // The ring goes first, then what it may still have addresses of.
    ring: IoUring,
    memory: Memory,
    wake: Arc<OwnedFd>,
    /// The slot of each connection.
    slots_of: Vec<Option<u32>>,
    free: Vec<u32>,
    /// Slots whose send lies in the queue.
    held: Vec<u32>,
    /// Slots, with their generations, that found no buffer; the longest waiting in front.
    starved: VecDeque<(u32, u32)>,
    completed: Vec<cqueue::Entry>,
    /// How many of them the last wait brought, and when; others came beside a hand-over, after it.
    waited_for: usize,
    waited_until: Option<Instant>,
    cursor: usize,
    /// When the alarm rings, if one is set.
    alarm: Option<Instant>,
    stamps: Stamps,
    /// When the last event was taken out of the ring.
    taken_at: Option<Instant>,
    /// What was received last.
    received: Option<Received>,
    /// The output of a connection that is closed; it goes nowhere.
    nowhere: Vec<u8>,
    traffic: (u64, u64),
}

impl Uring {
    /// Sends that have left the queue are done, unless a completion says otherwise.
    fn settle_held(&mut self) {
        if self.held.is_empty() || !self.ring.submission().is_empty() {
            return;
        }
        let mut held = std::mem::take(&mut self.held);
        for number in held.drain(..) {
            let slot = &mut self.memory.slots[number as usize];
            debug_assert_eq!(slot.sending, Sending::Held);
            slot.sending = Sending::Idle;
            self.traffic.0 += (slot.output.len() - slot.written) as u64;
            slot.written = slot.output.len();
            self.free_if_done(number);
        }
        self.held = held;
    }

    /// Takes what has been completed out of the ring.
    fn fetch(&mut self) {
        self.completed.extend(self.ring.completion());
    }

    /// Frees a slot that is closed and of which the kernel knows nothing any more.
    fn free_if_done(&mut self, number: u32) {
        let slot = &mut self.memory.slots[number as usize];
        if slot.connection.is_none() && !slot.is_engaged() && slot.socket.take().is_some() {
            slot.generation = slot.generation.wrapping_add(1) & GENERATIONS;
            slot.output.clear();
            slot.output.shrink_to(OUTPUT_KEPT_BYTES);
            slot.written = 0;
            slot.tells_taken = false;
            slot.sending = Sending::Idle;
            self.free.push(number);
        }
    }

    fn new_slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.memory.slots.push(SocketSlot::default());
            self.memory.slots.len() as u32 - 1
        })
    }

    /// Gives the buffer of the last `Received` back.
    fn give_back(&mut self) {
        if let Some(Received { buffer, .. }) = self.received.take() {
            self.memory.buffers.give_back(buffer);
        }
    }
}

impl Io for Uring {
    fn point(&mut self, connection: usize, address: SocketAddr) {
        self.memory.dialer.point(connection, address);
    }

    fn open(&mut self, connection: usize) -> io::Result<()> {
        debug_assert!(
            self.slots_of[connection].is_none(),
            "a connection is closed before it is opened again"
        );
        let (socket, is_made) = self.memory.dialer.dial_blocking(connection)?;
        let number = self.new_slot();
        let slot = &mut self.memory.slots[number as usize];
        debug_assert!(slot.socket.is_none() && !slot.is_engaged(), "a free slot is empty");
        let connect = match self.memory.dialer.address(connection) {
            Some(address) if !is_made => {
                opcode::Connect::new(Fd(socket.as_raw_fd()), address.as_ptr().cast(), address.len()).build()
            }
            // It is made, and that is all that remains to be said.
            _ => opcode::Nop::new().build(),
        };
        let connect = connect.user_data(token(CONNECT, slot.generation, number));
        slot.is_stamped = self.stamps.ask(connection, &socket);
        slot.socket = Some(socket);
        if let Err(error) = self.order(&connect) {
            self.free_if_done(number);
            return Err(error);
        }
        let slot = &mut self.memory.slots[number as usize];
        slot.connection = Some(connection as u32);
        slot.connecting = true;
        self.slots_of[connection] = Some(number);
        Ok(())
    }

    fn output(&mut self, connection: usize) -> &mut Vec<u8> {
        let Some(number) = self.slots_of[connection] else {
            debug_assert!(false, "only an open connection has an output");
            self.nowhere.clear();
            return &mut self.nowhere;
        };
        let slot = &mut self.memory.slots[number as usize];
        assert_eq!(slot.sending, Sending::Idle, "an output is filled again when all of it has been taken");
        slot.output.clear();
        slot.written = 0;
        &mut slot.output
    }

    fn send(&mut self, connection: usize) -> io::Result<()> {
        let Some(number) = self.slots_of[connection] else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let slot = &mut self.memory.slots[number as usize];
        let Some(socket) = &slot.socket else { return Err(io::ErrorKind::NotConnected.into()) };
        // Without waiting, so that it is over when it has left the queue; `WAITALL` makes a part of it a failure,
        // which is reported, while success is not.
        let flags = SendFlags::NOSIGNAL.bits() | SendFlags::DONTWAIT.bits() | RecvFlags::WAITALL.bits();
        let send = opcode::Send::new(Fd(socket.as_raw_fd()), slot.output.as_ptr(), length(&slot.output));
        let send = send.flags(flags as i32).build().flags(squeue::Flags::SKIP_SUCCESS);
        let send = send.user_data(token(SEND, slot.generation, number));
        self.order(&send)?;
        self.memory.slots[number as usize].sending = Sending::Held;
        self.held.push(number);
        if self.held.len() >= HELD_SENDS {
            self.submit()?;
        }
        Ok(())
    }

    fn is_sending(&self, connection: usize) -> bool {
        let number = self.slots_of[connection];
        number.is_some_and(|number| {
            let slot = &self.memory.slots[number as usize];
            slot.sending != Sending::Idle || slot.written < slot.output.len()
        })
    }

    fn tell_taken(&mut self, connection: usize) -> io::Result<()> {
        let Some(number) = self.slots_of[connection] else { return Ok(()) };
        let slot = &mut self.memory.slots[number as usize];
        slot.tells_taken = true;
        // it is done behind the send, which has been tried then
        let behind = opcode::Nop::new().build().user_data(token(TAKEN, slot.generation, number));
        self.order(&behind)
    }

    fn close(&mut self, connection: usize) {
        let Some(number) = self.slots_of[connection].take() else { return };
        self.memory.slots[number as usize].connection = None;
        self.cancel(number);
        self.free_if_done(number);
    }

    fn push(&mut self, connection: usize) -> io::Result<()> {
        let Some(number) = self.slots_of[connection] else { return Ok(()) };
        if self.memory.slots[number as usize].sending == Sending::Held {
            self.submit()?;
            self.fetch();
            let slot = &mut self.memory.slots[number as usize];
            let send = token(SEND, slot.generation, number);
            if self.completed[self.cursor..].iter().any(|entry| entry.user_data() == send) {
                slot.sending = Sending::Reported;
            }
        }
        Ok(())
    }

    fn wait(&mut self, at_most: Option<Duration>) -> io::Result<()> {
        self.give_back();
        self.completed.drain(..self.cursor);
        self.cursor = 0;
        self.feed()?;
        // What was fetched beside a hand-over is news already.
        let at_most = if self.completed.is_empty() { at_most } else { Some(Duration::ZERO) };
        let at_most = self.beside_alarm(at_most)?;
        let result = enter(&mut self.ring, at_most);
        self.settle_held();
        self.fetch();
        (self.waited_for, self.waited_until) = (self.completed.len(), Some(Instant::now()));
        match result {
            Err(error) if !is_passing(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn hand_over(&mut self) -> io::Result<()> {
        if self.held.is_empty() { Ok(()) } else { self.submit() }
    }

    fn next(&mut self) -> Option<(usize, Event)> {
        self.give_back();
        self.taken_at = None;
        loop {
            let entry = self.completed.get(self.cursor)?.clone();
            self.cursor += 1;
            if let Some(found) = self.look(&entry) {
                let is_waited_for = self.cursor <= self.waited_for;
                self.taken_at = if is_waited_for { self.waited_until } else { Some(Instant::now()) };
                return Some(found);
            }
        }
    }

    fn received(&self) -> &[u8] {
        self.received.map_or(&[], |Received { buffer, head_bytes, bytes }| {
            &self.memory.buffers.bytes(buffer, head_bytes + bytes)[head_bytes..]
        })
    }

    fn arrived(&self) -> Option<u64> {
        let Received { buffer, head_bytes, .. } = self.received.filter(|last| last.head_bytes > 0)?;
        let told = RecvMsgOut::parse(self.memory.buffers.bytes(buffer, head_bytes), &self.memory.message);
        stamps::stamp(told.ok()?.control_data())
    }

    fn taken_at(&self) -> Option<Instant> {
        self.taken_at
    }

    fn upcoming_socket(&self) -> Option<usize> {
        // the token of a wake-up names no slot
        let number = self.completed.get(self.cursor)?.user_data() as u32;
        let connection = self.memory.slots.get(number as usize)?.connection?;
        Some(connection as usize)
    }

    fn traffic(&self) -> (u64, u64) {
        self.traffic
    }
}

impl Drop for Uring {
    /// The kernel lets go of everything before its memory is freed; should it not, the memory is left to it.
    fn drop(&mut self) {
        while self.next().is_some() {} // nobody takes them any more
        for connection in 0..self.slots_of.len() {
            self.close(connection);
        }
        let by = Instant::now() + LETTING_GO;
        while self.memory.slots.iter().any(SocketSlot::is_engaged) && Instant::now() < by {
            if self.wait(Some(Duration::from_millis(10))).is_err() {
                break;
            }
            while self.next().is_some() {}
        }
        if self.memory.slots.iter().any(SocketSlot::is_engaged) {
            let slots = std::mem::take(&mut self.memory.slots);
            let buffers = std::mem::replace(&mut self.memory.buffers, Buffers::new(0));
            std::mem::forget((slots, buffers));
        }
    }
}
