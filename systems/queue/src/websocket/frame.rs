//! What the two ends of a link say to each other, each in a binary message of the WebSocket: a byte that says what it is,
//! then numbers of 8 bytes (lengths and counts of 4), the little end first.

/// The subprotocol of the WebSocket, with its version.
pub(crate) const PROTOCOL: &str = "tidemark.queue.1";
/// Bytes of a frame beside its messages.
pub(crate) const HEAD_BYTES: usize = 64;

/// No link gets so far; so positions can be added to.
const POSITION_MAX: u64 = 1 << 62;
/// Most bytes of a reason.
pub(crate) const REASON_BYTES: usize = 1000;

const HELLO: u8 = 1;
const BATCH: u8 = 2;
const END: u8 = 3;
const READY: u8 = 4;
const TAKEN: u8 = 5;
const CLOSED: u8 = 6;
const REFUSED: u8 = 7;

/// A frame. Positions are numbers of messages; the end counts as one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Frame<'a> {
    /// The sender's first frame: who it is, whether it is new, the first that it can send again, the one that comes next.
    Hello { sender: u64, is_new: bool, kept_from: u64, next: u64 },
    /// Messages from this number on.
    Batch { first: u64, messages: Messages<'a> },
    /// The sender has ended, with what it failed with.
    End { number: u64, failure: Option<&'a str> },
    /// The receiver's first frame: what it has, what of it is acknowledged, and the position up to which it takes messages.
    Ready { received: u64, acknowledged: u64, limit: u64 },
    /// The same later.
    Taken { acknowledged: u64, limit: u64 },
    /// The receiver takes nothing more.
    Closed { acknowledged: u64 },
    /// The sender is not taken.
    Refused { reason: &'a str },
}

/// Messages of a batch, whose lengths have been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Messages<'a> {
    count: u32,
    bytes: &'a [u8],
}

impl Messages<'_> {
    /// How many are left.
    pub(crate) fn left(&self) -> u64 {
        self.count.into()
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = self.bytes.split_first_chunk()?;
        let (message, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        (self.count, self.bytes) = (self.count.saturating_sub(1), rest);
        Some(message)
    }
}

impl Frame<'_> {
    /// Its bytes. Those of a batch are made by [`BatchWriter`].
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let numbers = |kind: u8, numbers: &[u64]| {
            let mut out = vec![kind];
            numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
            out
        };
        match self {
            Frame::Hello { sender, is_new, kept_from, next } => {
                numbers(HELLO, &[*sender, u64::from(*is_new), *kept_from, *next])
            }
            Frame::Batch { first, messages } => {
                let mut batch = BatchWriter::new(*first);
                messages.clone().for_each(|message| batch.add(message));
                batch.into_bytes()
            }
            Frame::End { number, failure } => {
                let mut out = numbers(END, &[*number, u64::from(failure.is_some())]);
                out.extend_from_slice(failure.unwrap_or_default().as_bytes());
                out
            }
            Frame::Ready { received, acknowledged, limit } => {
                numbers(READY, &[*received, *acknowledged, *limit])
            }
            Frame::Taken { acknowledged, limit } => numbers(TAKEN, &[*acknowledged, *limit]),
            Frame::Closed { acknowledged } => numbers(CLOSED, &[*acknowledged]),
            Frame::Refused { reason } => [&[REFUSED], reason.as_bytes()].concat(),
        }
    }

    /// What these bytes say, if they say anything.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Option<Frame<'_>> {
        let (kind, mut rest) = bytes.split_first()?;
        let mut number = |most: u64| {
            let (bytes, others) = rest.split_first_chunk()?;
            rest = others;
            Some(u64::from_le_bytes(*bytes)).filter(|number| *number <= most)
        };
        let frame = match *kind {
            HELLO => Frame::Hello {
                sender: number(u64::MAX)?,
                is_new: number(1)? == 1,
                kept_from: number(POSITION_MAX)?,
                next: number(POSITION_MAX)?,
            },
            BATCH => {
                let first = number(POSITION_MAX)?;
                let (count, messages) = rest.split_first_chunk()?;
                let messages = Messages { count: u32::from_le_bytes(*count), bytes: messages };
                let mut walk = messages.clone();
                let walked = walk.by_ref().count();
                let is_whole = walk.bytes.is_empty() && walked > 0 && walked as u64 == messages.left();
                return is_whole.then_some(Frame::Batch { first, messages });
            }
            END => {
                let (number, failed) = (number(POSITION_MAX)?, number(1)? == 1);
                let text = std::str::from_utf8(std::mem::take(&mut rest)).ok()?;
                Frame::End { number, failure: failed.then_some(text) }
            }
            READY => Frame::Ready {
                received: number(POSITION_MAX)?,
                acknowledged: number(POSITION_MAX)?,
                limit: number(u64::MAX)?,
            },
            TAKEN => Frame::Taken { acknowledged: number(POSITION_MAX)?, limit: number(u64::MAX)? },
            CLOSED => Frame::Closed { acknowledged: number(POSITION_MAX)? },
            REFUSED => Frame::Refused { reason: std::str::from_utf8(std::mem::take(&mut rest)).ok()? },
            _ => return None,
        };
        rest.is_empty().then_some(frame)
    }
}

/// The text, in so many bytes at most.
pub(crate) fn cut_short(mut text: String, bytes_max: usize) -> String {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text
}

/// The bytes of a batch, message by message.
pub(crate) struct BatchWriter {
    bytes: Vec<u8>,
    count: u32,
}

impl BatchWriter {
    const COUNT_AT: usize = 9;

    pub(crate) fn new(first: u64) -> BatchWriter {
        let bytes = [&[BATCH][..], &first.to_le_bytes(), &[0; 4]].concat();
        BatchWriter { bytes, count: 0 }
    }

    /// Adds a message, which is shorter than 4 GiB.
    pub(crate) fn add(&mut self, message: &[u8]) {
        self.bytes.extend_from_slice(&(message.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(message);
        self.count += 1;
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Bytes so far.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    pub(crate) fn into_bytes(mut self) -> Vec<u8> {
        self.bytes[Self::COUNT_AT..Self::COUNT_AT + 4].copy_from_slice(&self.count.to_le_bytes());
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        let mut batch = BatchWriter::new(7);
        for message in [&b"a"[..], b"", b"bcd"] {
            batch.add(message);
        }
        let batch = batch.into_bytes();
        let Some(Frame::Batch { first: 7, messages }) = Frame::of_bytes(&batch) else { panic!("a batch") };
        assert_eq!(messages.left(), 3);
        assert_eq!(messages.collect::<Vec<_>>(), [&b"a"[..], b"", b"bcd"]);
        for frame in [
            Frame::Hello { sender: 1, is_new: true, kept_from: 2, next: 3 },
            Frame::End { number: 9, failure: None },
            Frame::End { number: 9, failure: Some("") },
            Frame::Ready { received: 3, acknowledged: 2, limit: u64::MAX },
            Frame::Taken { acknowledged: 4, limit: 5 },
            Frame::Closed { acknowledged: 6 },
            Frame::Refused { reason: "no" },
        ] {
            assert_eq!(Frame::of_bytes(&frame.to_bytes()), Some(frame));
        }
    }

    #[test]
    fn what_cannot_be_is_none() {
        let batch = |count: u32, rest: &[u8]| {
            [&[BATCH][..], &7_u64.to_le_bytes(), &count.to_le_bytes(), rest].concat()
        };
        assert!(Frame::of_bytes(&batch(1, &[1, 0, 0, 0, 9])).is_some());
        for wrong in [
            batch(0, &[]),
            batch(2, &[1, 0, 0, 0, 9]),
            batch(1, &[2, 0, 0, 0, 9]),
            batch(1, &[1, 0, 0, 0, 9, 9]),
            batch(u32::MAX, &[0xff; 40]),
            Frame::Closed { acknowledged: u64::MAX }.to_bytes(),
        ] {
            assert_eq!(Frame::of_bytes(&wrong), None, "{wrong:?}");
        }
    }

    proptest! {
        /// Whatever comes, nothing is taken for more than it is, and what is understood is what was said.
        #[test]
        fn any_bytes_are_a_frame_or_none(kind in 0_u8..9, rest in prop::collection::vec(any::<u8>(), 0..80)) {
            let bytes = [&[kind][..], &rest].concat();
            if let Some(frame) = Frame::of_bytes(&bytes) {
                if let Frame::Batch { messages, .. } = &frame {
                    let lengths: usize = messages.clone().map(|message| 4 + message.len()).sum();
                    prop_assert_eq!(lengths, bytes.len() - 13);
                }
                prop_assert_eq!(frame.to_bytes(), bytes);
            }
        }

        /// Lengths that are right, so that batches come about.
        #[test]
        fn any_messages_come_as_they_are(
            first in 0..=POSITION_MAX,
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 1..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut batch = BatchWriter::new(first);
            messages.iter().for_each(|message| batch.add(message));
            let bytes = batch.into_bytes();
            match Frame::of_bytes(&bytes) {
                Some(Frame::Batch { first: found, messages: heard }) => {
                    prop_assert_eq!(found, first);
                    prop_assert!(heard.eq(messages.iter().map(|message| &message[..])));
                }
                other => prop_assert!(false, "{other:?}"),
            }
            prop_assert_eq!(Frame::of_bytes(&bytes[..cut.index(bytes.len())]), None);
        }
    }
}
