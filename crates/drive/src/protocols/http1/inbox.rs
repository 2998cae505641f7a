//! What came over a connection and is kept for a later step, within bounds, and which of it is offered to the step under
//! way.

use std::collections::VecDeque;

/// Most messages of a connection that are kept for a later step.
pub(super) const INBOX_MESSAGES: usize = 64;
/// Most bytes of such messages; one alone may be larger.
const INBOX_BYTES: usize = 1 << 20;
/// Most bytes of emptied buffers that are kept for further messages.
const SPARE_BYTES: usize = 64 << 10;

/// The message that may be the answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Offer {
    #[default]
    None,
    /// The decoder's.
    Received,
    /// The one that was taken out of the inbox last.
    Kept,
}

/// Messages, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// What is offered to the step under way.
    pub offer: Offer,
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// The one that was taken out last.
    taken: Vec<u8>,
    spare: Vec<Vec<u8>>,
    /// What the spare buffers have room for.
    spare_bytes: usize,
}

impl Inbox {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Keeps a message, which is made of these parts; how many older ones had to go.
    pub fn keep(&mut self, parts: &[&[u8]]) -> u64 {
        let mut buffer = self.spare.pop().unwrap_or_default();
        self.spare_bytes -= buffer.capacity();
        parts.iter().for_each(|part| buffer.extend_from_slice(part));
        self.bytes += buffer.len();
        self.messages.push_back(buffer);
        let mut gone = 0;
        while self.messages.len() > INBOX_MESSAGES || (self.bytes > INBOX_BYTES && self.messages.len() > 1) {
            if let Some(oldest) = self.next() {
                self.reuse(oldest);
                gone += 1;
            }
        }
        gone
    }

    /// Takes the oldest message out and offers it; false if there is none.
    pub fn offer_kept(&mut self) -> bool {
        let Some(oldest) = self.next() else { return false };
        let before = std::mem::replace(&mut self.taken, oldest);
        self.reuse(before);
        self.offer = Offer::Kept;
        true
    }

    /// The message that was taken out last.
    pub fn taken(&self) -> &[u8] {
        &self.taken
    }

    fn next(&mut self) -> Option<Vec<u8>> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.len();
        Some(message)
    }

    /// Takes the buffer of a message that was kept back.
    fn reuse(&mut self, mut buffer: Vec<u8>) {
        if self.spare.len() <= INBOX_MESSAGES && self.spare_bytes + buffer.capacity() <= SPARE_BYTES {
            buffer.clear();
            self.spare_bytes += buffer.capacity();
            self.spare.push(buffer);
        }
    }
}
