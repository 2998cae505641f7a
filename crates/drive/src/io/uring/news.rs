//! What completions mean.

use io_uring::cqueue;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};

use super::orders::{error, is, is_refused};
use super::slot::{
    ALARM, CONNECT, GENERATIONS, RECEIVE, SEND, SEND_REST, STAMPED_HEAD_BYTES, Sending, TAKEN, WAKE, token,
};
use super::{Received, Uring};
use crate::io::Event;

impl Uring {
    /// What a completion means.
    pub(super) fn look(&mut self, entry: &cqueue::Entry) -> Option<(usize, Event)> {
        if entry.user_data() == WAKE {
            let mut count = [0; 8];
            let _ = rustix::io::read(&*self.wake, &mut count);
            if !cqueue::more(entry.flags()) {
                // Without it, the thread still wakes at its next alarm, at most a second later.
                let _ = self.watch_wake();
            }
            return None;
        }
        if entry.user_data() == ALARM {
            self.alarm = None;
            return None;
        }
        let buffer = cqueue::buffer_select(entry.flags());
        let number = entry.user_data() as u32;
        let generation = (entry.user_data() >> 32) as u32 & GENERATIONS;
        let found = match self.memory.slots.get(number as usize) {
            Some(slot) if slot.generation == generation => match entry.user_data() >> 60 {
                CONNECT => self.connected(number, entry.result()),
                RECEIVE => self.look_received(number, entry, buffer),
                SEND => self.not_sent(number, entry.result()),
                SEND_REST => self.sent_rest(number, entry.result()),
                TAKEN => self.taken(number),
                _ => self.not_cancelled(number, entry.result()),
            },
            // News of an earlier socket: only of sends that failed and of orders that could not be taken back.
            _ => None,
        };
        // A buffer that was not handed on goes back.
        if let Some(buffer) = buffer
            && self.received.is_none_or(|handed_on| handed_on.buffer != buffer)
        {
            self.memory.buffers.give_back(buffer);
        }
        if (number as usize) < self.memory.slots.len() {
            self.free_if_done(number);
        }
        found
    }

    fn connected(&mut self, number: u32, result: i32) -> Option<(usize, Event)> {
        let slot = &mut self.memory.slots[number as usize];
        slot.connecting = false;
        let connection = slot.connection? as usize;
        if result < 0 {
            return Some((connection, Event::Failed(error(result))));
        }
        Some((connection, self.receive_from(number).map_or_else(Event::Failed, |()| Event::Opened)))
    }

    fn look_received(
        &mut self,
        number: u32,
        entry: &cqueue::Entry,
        buffer: Option<u16>,
    ) -> Option<(usize, Event)> {
        let slot = &mut self.memory.slots[number as usize];
        let goes_on = cqueue::more(entry.flags());
        slot.receiving = goes_on;
        let connection = slot.connection? as usize;
        let send = token(SEND, slot.generation, number);
        let result = slot.received_bytes(entry.result());
        let is_end = result <= 0 && !is(result, Errno::NOBUFS);
        let behind = &self.completed[self.cursor..];
        if is_end
            && let Some(unsent) = behind.iter().find(|e| e.user_data() == send && is_refused(e.result()))
        {
            // The same end met a send too; that nothing was taken is the better news.
            let event = Event::Unsent(error(unsent.result()));
            self.traffic.0 -= slot.output.len() as u64;
            slot.written = 0;
            return Some((connection, event));
        }
        let event = match (result, buffer) {
            (0, _) => Event::Ended,
            (bytes @ 1.., Some(buffer)) => {
                let next = self.completed.get(self.cursor);
                let closing = next.is_some_and(|next| {
                    next.user_data() == entry.user_data() && slot.received_bytes(next.result()) <= 0
                });
                let head_bytes = if slot.is_stamped { STAMPED_HEAD_BYTES } else { 0 };
                if !goes_on && let Err(error) = self.receive_from(number) {
                    return Some((connection, Event::Failed(error)));
                }
                self.traffic.1 += bytes as u64;
                self.received = Some(Received { buffer, head_bytes, bytes: bytes as usize });
                Event::Received { closing }
            }
            (result, _) if is(result, Errno::NOBUFS) || result > 0 => {
                // The buffers were all full. It has its turn when those have been read that were before it: were
                // all that wait to ask again at once, most would find none again.
                self.starved.push_back((number, slot.generation));
                return None;
            }
            (result, _) if slot.sending == Sending::Held => Event::Unsent(error(result)),
            (result, _) => Event::Failed(error(result)),
        };
        Some((connection, event))
    }

    /// A send did not go through at once. It was taken for done when it left the queue.
    fn not_sent(&mut self, number: u32, result: i32) -> Option<(usize, Event)> {
        let slot = &mut self.memory.slots[number as usize];
        let connection = slot.connection? as usize;
        if slot.sending == Sending::Reported {
            slot.sending = Sending::Idle;
        }
        if slot.sending != Sending::Idle {
            // The output is already another's, because the peer answered what it had not been asked.
            return Some((connection, Event::Failed(error(result.min(-1)))));
        }
        let taken = (result.max(0) as usize).min(slot.output.len());
        self.traffic.0 -= (slot.output.len() - taken) as u64;
        slot.written = taken;
        let event = match is_refused(result) {
            false => self.send_rest(number).map_err(Event::Failed),
            true => Err(Event::Unsent(error(result))),
        };
        event.err().map(|event| (connection, event))
    }

    /// What waited for room is sent, or a part of it.
    fn sent_rest(&mut self, number: u32, result: i32) -> Option<(usize, Event)> {
        let slot = &mut self.memory.slots[number as usize];
        debug_assert_eq!(slot.sending, Sending::Blocked);
        slot.sending = Sending::Idle;
        let before = slot.written;
        slot.written = (before + result.max(0) as usize).min(slot.output.len());
        self.traffic.0 += (slot.written - before) as u64;
        let connection = slot.connection? as usize;
        let is_all = slot.written == slot.output.len();
        if is_all && std::mem::take(&mut slot.tells_taken) {
            return Some((connection, Event::Taken));
        }
        let event = match result {
            _ if is_all => Ok(()),
            _ if is(result, Errno::INTR) || result > 0 => self.send_rest(number).map_err(Event::Failed),
            _ if before == 0 => Err(Event::Unsent(error(result))),
            // Something was taken: the socket's end is reported when it is read.
            _ => Ok(()),
        };
        event.err().map(|event| (connection, event))
    }

    /// What was sent before has been tried: whether all of it was taken. What waits for room is told of when that is done.
    fn taken(&mut self, number: u32) -> Option<(usize, Event)> {
        let slot = &mut self.memory.slots[number as usize];
        let connection = slot.connection? as usize;
        let is_all = slot.sending == Sending::Idle && slot.written == slot.output.len();
        (is_all && std::mem::take(&mut slot.tells_taken)).then_some((connection, Event::Taken))
    }

    /// An order could not be taken back. Either it is done, or the end of the socket ends it.
    fn not_cancelled(&mut self, number: u32, result: i32) -> Option<(usize, Event)> {
        let slot = &self.memory.slots[number as usize];
        if !is(result, Errno::NOENT)
            && result < 0
            && slot.connection.is_none()
            && let Some(socket) = &slot.socket
        {
            let _ = shutdown(socket, Shutdown::Both);
        }
        None
    }
}
