//! What the kernel is ordered to do, and the call that hands it over.

use std::io;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, Shutdown, shutdown};

use super::Uring;
use super::buffers::GROUP;
use super::slot::{ALARM, CANCEL, CONNECT, RECEIVE, SEND_REST, Sending, WAKE, token};

/// A wait of this length sets the alarm. Arrivals that are due within it have timers, which ring a little sooner.
const LONG_WAIT: Duration = Duration::from_millis(25);
/// The alarm rings so much before the end of the wait that sets it, and the rest of that has a timer: what its later parts know
/// of the time is not exact.
const ALARM_EARLY: Duration = Duration::from_millis(1);

impl Uring {
    /// Queues an order, and makes room first where there is none.
    pub(super) fn order(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        for _ in 0..2 {
            // SAFETY: what orders point to lives in `Memory` until their completion: the output of a slot that is
            // engaged, the address of all connections, buffers. Descriptors stay open until then too.
            #[allow(unsafe_code)]
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                return Ok(());
            }
            self.submit()?;
        }
        Err(io::Error::other("io_uring takes no more orders"))
    }

    /// Hands the queue to the kernel without waiting.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        match self.ring.submit() {
            Ok(_) => {}
            Err(error) if is_passing(&error) => self.fetch(),
            Err(error) => return Err(error),
        }
        self.settle_held();
        Ok(())
    }

    pub(super) fn watch_wake(&mut self) -> io::Result<()> {
        let flags = u32::from(PollFlags::IN.bits());
        let watch = opcode::PollAdd::new(Fd(self.wake.as_raw_fd()), flags).multi(true);
        self.order(&watch.build().user_data(WAKE))
    }

    /// How long a wait may take by a timer of its own, where the alarm does not ring in time. A long wait sets the alarm if there
    /// is none: waits that end early, as most do, then set no timer and take none back.
    pub(super) fn beside_alarm(&mut self, at_most: Option<Duration>) -> io::Result<Option<Duration>> {
        let Some(time) = at_most.filter(|time| *time >= LONG_WAIT) else { return Ok(at_most) };
        if self.alarm.is_none() {
            let early = time - ALARM_EARLY;
            *self.memory.alarm_in = Timespec::from(early);
            let alarm = opcode::Timeout::new(&raw const *self.memory.alarm_in);
            self.order(&alarm.build().user_data(ALARM))?;
            self.alarm = Some(Instant::now() + early);
        }
        // a moment ago is before now, so that the alarm is in time if it would have been then
        let until = self.waited_until.map(|before| before + time);
        let is_in_time = self.alarm.zip(until).is_some_and(|(alarm, until)| alarm <= until);
        Ok(if is_in_time { None } else { at_most })
    }

    pub(super) fn receive_from(&mut self, number: u32) -> io::Result<()> {
        let slot = &mut self.memory.slots[number as usize];
        let Some(socket) = &slot.socket else { return Ok(()) };
        let socket = Fd(socket.as_raw_fd());
        let receive = match slot.is_stamped {
            true => opcode::RecvMsgMulti::new(socket, &raw const *self.memory.message, GROUP).build(),
            false => opcode::RecvMulti::new(socket, GROUP).build(),
        };
        let receive = receive.user_data(token(RECEIVE, slot.generation, number));
        self.order(&receive)?;
        self.memory.slots[number as usize].receiving = true;
        Ok(())
    }

    /// Lets those that found no buffer receive again, no more of them than there are buffers.
    pub(super) fn feed(&mut self) -> io::Result<()> {
        for _ in 0..self.memory.buffers.count() {
            let Some((number, generation)) = self.starved.pop_front() else { break };
            if self.memory.slots[number as usize].generation == generation {
                self.receive_from(number)?;
            }
        }
        Ok(())
    }

    /// Orders what is left of an output to be sent, as soon as there is room.
    pub(super) fn send_rest(&mut self, number: u32) -> io::Result<()> {
        let slot = &mut self.memory.slots[number as usize];
        let Some(socket) = &slot.socket else { return Ok(()) };
        let rest = &slot.output[slot.written..];
        let flags = SendFlags::NOSIGNAL.bits() | RecvFlags::WAITALL.bits();
        let send = opcode::Send::new(Fd(socket.as_raw_fd()), rest.as_ptr(), length(rest));
        let send = send.flags(flags as i32).build().user_data(token(SEND_REST, slot.generation, number));
        self.order(&send)?;
        self.memory.slots[number as usize].sending = Sending::Blocked;
        Ok(())
    }

    /// Takes the orders of a closed socket back.
    pub(super) fn cancel(&mut self, number: u32) {
        let slot = &self.memory.slots[number as usize];
        let generation = slot.generation;
        let kinds = [
            (CONNECT, slot.connecting),
            (RECEIVE, slot.receiving),
            (SEND_REST, slot.sending == Sending::Blocked),
        ];
        for (kind, _) in kinds.into_iter().filter(|(_, engaged)| *engaged) {
            let cancel = opcode::AsyncCancel::new(token(kind, generation, number)).build();
            let cancel = cancel.flags(squeue::Flags::SKIP_SUCCESS);
            if self.order(&cancel.user_data(token(CANCEL, generation, number))).is_err()
                && let Some(socket) = &self.memory.slots[number as usize].socket
            {
                // The end of the socket ends its orders too.
                let _ = shutdown(socket, Shutdown::Both);
            }
        }
    }
}

/// Hands over what is queued, and waits for a completion where there is none yet.
pub(super) fn enter(ring: &mut IoUring, at_most: Option<Duration>) -> io::Result<usize> {
    let (submitter, queue, completed) = ring.split();
    if at_most.is_none_or(|time| !time.is_zero()) && completed.is_empty() {
        drop((queue, completed));
        return match at_most.map(Timespec::from) {
            Some(time) => submitter.submit_with_args(1, &SubmitArgs::new().timespec(&time)),
            None => submitter.submit_and_wait(1),
        };
    }
    if queue.is_empty() && !queue.taskrun() && !queue.cq_overflow() {
        return Ok(0); // nothing to hand over, nothing to fetch
    }
    drop((queue, completed));
    submitter.submit()
}

/// Errors of a wait or a hand-over after which it is simply tried again.
pub(super) fn is_passing(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::TIME | Errno::INTR | Errno::BUSY | Errno::AGAIN))
}

/// Whether a send failed for good.
pub(super) fn is_refused(result: i32) -> bool {
    result < 0 && !is(result, Errno::AGAIN) && !is(result, Errno::INTR)
}

pub(super) fn is(result: i32, errno: Errno) -> bool {
    result == -errno.raw_os_error()
}

pub(super) fn error(result: i32) -> io::Error {
    io::Error::from_raw_os_error(-result)
}

/// A send takes no more than this at once; what is left is ordered again.
pub(super) fn length(bytes: &[u8]) -> u32 {
    bytes.len().min(1 << 30) as u32
}
