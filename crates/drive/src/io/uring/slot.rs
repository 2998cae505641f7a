//! Where sockets live while the kernel may have orders that name them, and how completions name them back.

use io_uring::types::Timespec;
use socket2::Socket;

use super::CONTROL_BYTES;
use super::buffers::Buffers;
use crate::io::address::Dialer;

/// What a completion answers; in the upper bits of its token.
pub(super) const CONNECT: u64 = 0;
pub(super) const RECEIVE: u64 = 1;
/// Of the first try, which does not wait.
pub(super) const SEND: u64 = 2;
/// Of what found no room at first.
pub(super) const SEND_REST: u64 = 3;
pub(super) const CANCEL: u64 = 4;
/// Comes behind a send, when that has been tried.
pub(super) const TAKEN: u64 = 5;
/// Generations have 28 bits between the kind and the slot.
pub(super) const GENERATIONS: u32 = (1 << 28) - 1;
/// Token of wake-ups; no socket has it, as no slot has this number.
pub(super) const WAKE: u64 = u64::MAX;
/// Token of the alarm; the same holds of it.
pub(super) const ALARM: u64 = u64::MAX - 1;

pub(super) fn token(kind: u64, generation: u32, slot: u32) -> u64 {
    kind << 60 | u64::from(generation) << 32 | u64::from(slot)
}

/// How an output stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Sending {
    /// All is taken.
    #[default]
    Idle,
    /// The order lies in the queue; the kernel has not seen it.
    Held,
    /// There was no room; the kernel waits for it.
    Blocked,
    /// The kernel has tried; its report, which says that something is left, has not been looked at.
    Reported,
}

/// What stands in a buffer before bytes that came with a timestamp: a head of four numbers, and the control message.
pub(super) const STAMPED_HEAD_BYTES: usize = 4 * size_of::<u32>() + CONTROL_BYTES;

/// Where a socket lives.
#[derive(Default)]
pub(super) struct SocketSlot {
    pub socket: Option<Socket>,
    /// The connection that it is; none while it is being closed.
    pub connection: Option<u32>,
    pub generation: u32,
    pub connecting: bool,
    pub receiving: bool,
    /// Whether the kernel tells when what is received came.
    pub is_stamped: bool,
    pub sending: Sending,
    pub output: Vec<u8>,
    pub written: usize,
    /// Whether somebody wants to be told when all of the output is taken.
    pub tells_taken: bool,
}

impl SocketSlot {
    /// How many bytes of this socket a completion's result of an order to receive means.
    pub fn received_bytes(&self, result: i32) -> i32 {
        match result {
            1.. if self.is_stamped => (result - STAMPED_HEAD_BYTES as i32).max(0),
            _ => result,
        }
    }

    /// Whether the kernel has, or will get, an order that names this socket or its output.
    pub fn is_engaged(&self) -> bool {
        self.connecting || self.receiving || matches!(self.sending, Sending::Held | Sending::Blocked)
    }
}

/// Everything that the kernel holds addresses of.
pub(super) struct Memory {
    pub buffers: Buffers,
    pub dialer: Box<Dialer>,
    pub slots: Vec<SocketSlot>,
    /// The form of what is received with a timestamp.
    pub message: Box<libc::msghdr>,
    /// How long the alarm takes that is ordered next.
    pub alarm_in: Box<Timespec>,
}
