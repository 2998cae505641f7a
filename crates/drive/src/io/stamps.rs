//! When the kernel had what is read: its receive timestamps (`SO_TIMESTAMPNS`), by the wall clock.
//!
//! Those of TCP are of the last bytes that a call of `recvmsg` hands out. The kernel takes them as soon as a packet comes in,
//! so that what lies between is the wake-up, and whatever else the driver did first.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// One socket in so many is asked, where not all are: it costs a request some hundredths of its CPU time.
const ONE_IN: usize = 8;
/// Head of a control message: its length, the level, the type.
const HEAD_BYTES: usize = size_of::<libc::cmsghdr>();
/// Room for the one control message that is asked for.
pub(crate) const CONTROL_BYTES: usize = HEAD_BYTES + size_of::<libc::timespec>();

/// Which sockets are asked for timestamps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// All.
    All,
    /// Some, evenly.
    #[default]
    Some,
}

impl Stamps {
    /// Asks for timestamps of a connection's socket, if it is one of those; whether they will come.
    pub fn ask(self, connection: usize, socket: &impl AsFd) -> bool {
        // elsewhere control messages look different
        let known = cfg!(target_pointer_width = "64");
        known
            && (self == Stamps::All || connection.is_multiple_of(ONE_IN))
            && switch_on(socket.as_fd()).is_ok()
    }
}

fn switch_on(socket: BorrowedFd<'_>) -> io::Result<()> {
    let on: libc::c_int = 1;
    let bytes = size_of_val(&on) as libc::socklen_t;
    // SAFETY: the descriptor is open as long as it is borrowed; the option's value is an integer of this size.
    #[allow(unsafe_code)]
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_TIMESTAMPNS,
            (&raw const on).cast(),
            bytes,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Room for control messages, aligned as they are.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// Reads, and when the last bytes came, nanoseconds of the wall clock.
pub(crate) fn receive(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    let mut message = empty_message();
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = CONTROL_BYTES as _;
    // SAFETY: the descriptor is open; the message names one part and room for control messages, both of these lengths, which
    // live until the call returns.
    #[allow(unsafe_code)]
    let bytes = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, 0) };
    match usize::try_from(bytes) {
        // where the kernel told nothing it is as it was: nothing
        Ok(bytes) => Ok((bytes, stamp(&control.0))),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

/// A message without a name, parts or room for control messages.
pub(crate) fn empty_message() -> libc::msghdr {
    // SAFETY: all of it are numbers and pointers, and nothing at all is a right one of each.
    #[allow(unsafe_code)]
    unsafe {
        std::mem::zeroed()
    }
}

/// The timestamp in what came as control messages.
pub(crate) fn stamp(control: &[u8]) -> Option<u64> {
    let int = |at: usize| Some(i32::from_ne_bytes(control.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(i64::from_ne_bytes(control.get(at..at + 8)?.try_into().ok()?));
    let is_stamp = int(HEAD_BYTES - 8)? == libc::SOL_SOCKET && int(HEAD_BYTES - 4)? == libc::SCM_TIMESTAMPNS;
    let (seconds, nanoseconds) = (long(HEAD_BYTES)?, long(HEAD_BYTES + 8)?);
    let at_ns = u64::try_from(seconds).ok()?.checked_mul(1_000_000_000)?.checked_add(nanoseconds as u64)?;
    (is_stamp && seconds > 0).then_some(at_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_timestamp_is_none() {
        let mut control = [0; CONTROL_BYTES];
        assert_eq!(stamp(&control), None);
        control[HEAD_BYTES - 8..HEAD_BYTES - 4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
        control[HEAD_BYTES - 4..HEAD_BYTES].copy_from_slice(&libc::SCM_TIMESTAMPNS.to_ne_bytes());
        control[HEAD_BYTES..HEAD_BYTES + 8].copy_from_slice(&3i64.to_ne_bytes());
        control[HEAD_BYTES + 8..].copy_from_slice(&7i64.to_ne_bytes());
        assert_eq!(stamp(&control), Some(3_000_000_007));
        assert!((0..CONTROL_BYTES).all(|length| stamp(&control[..length]).is_none()), "cut short");
        control[HEAD_BYTES..HEAD_BYTES + 8].copy_from_slice(&i64::MAX.to_ne_bytes());
        assert_eq!(stamp(&control), None, "beyond all time");
        control[HEAD_BYTES - 4] ^= 1;
        assert_eq!(stamp(&control), None, "another message");
    }
}
