//! Messages of any length over a channel that takes short ones, may repeat some, and keeps their order.

use std::collections::BTreeMap;

/// Most bytes of a piece: half of what a server takes by default.
pub const PIECE_BYTES_MAX: usize = 512 << 10;
/// Most bytes of a message.
pub const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Bytes in front of each piece: its number, and whether another follows.
const HEAD: usize = 9;

/// Cuts messages into numbered pieces.
#[derive(Debug, Default)]
pub struct Cutter {
    next: u64,
}

impl Cutter {
    /// The pieces of a message, each with its number.
    pub fn cut(&mut self, message: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let parts: Vec<&[u8]> = match message.is_empty() {
            true => vec![message],
            false => message.chunks(PIECE_BYTES_MAX).collect(),
        };
        let last = parts.len() - 1;
        let piece = |(at, part): (usize, &[u8])| {
            let number = self.next;
            self.next += 1;
            let mut piece = Vec::with_capacity(HEAD + part.len());
            piece.extend_from_slice(&number.to_le_bytes());
            piece.push(u8::from(at < last));
            piece.extend_from_slice(part);
            (number, piece)
        };
        parts.into_iter().enumerate().map(piece).collect()
    }
}

/// Puts pieces of several senders together.
#[derive(Debug, Default)]
pub struct Joiner {
    senders: BTreeMap<usize, Sender>,
    /// Whether what a sender sent first may be gone by now, as another reader had it.
    midway: bool,
}

#[derive(Debug)]
struct Sender {
    next: u64,
    message: Vec<u8>,
}

/// Why a sender's pieces make no message any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flaw {
    /// Pieces are missing.
    Gap {
        /// The number that should have come.
        expected: u64,
        /// The one that came.
        came: u64,
    },
    /// It is too short to be a piece.
    Short,
    /// The message is longer than [`MESSAGE_BYTES_MAX`].
    Long,
}

impl std::fmt::Display for Flaw {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Flaw::Gap { expected, came } => {
                write!(f, "of what it handed over, messages {expected} to {} are missing", came - 1)
            }
            Flaw::Short => write!(f, "what it handed over is no message"),
            Flaw::Long => write!(f, "what it handed over is longer than {} MiB", MESSAGE_BYTES_MAX >> 20),
        }
    }
}

impl Joiner {
    /// One that begins where another reader ended, at the begin of a message of each sender.
    pub fn midway() -> Joiner {
        Joiner { midway: true, ..Joiner::default() }
    }

    /// Whether a message of a sender has begun, and not ended.
    pub fn is_within(&self, sender: usize) -> bool {
        self.senders.get(&sender).is_some_and(|sender| !sender.message.is_empty())
    }

    /// Takes a piece; the message that it completes. One that came before is passed over.
    ///
    /// # Errors
    /// If pieces are missing or make no message.
    pub fn add(&mut self, sender: usize, piece: &[u8]) -> Result<Option<Vec<u8>>, Flaw> {
        let (head, part) = piece.split_at_checked(HEAD).ok_or(Flaw::Short)?;
        let (number, more) = head.split_at(HEAD - 1);
        let number = u64::from_le_bytes(number.try_into().map_err(|_| Flaw::Short)?);
        let first = if self.midway { number } else { 0 };
        let sender =
            self.senders.entry(sender).or_insert_with(|| Sender { next: first, message: Vec::new() });
        if number < sender.next {
            return Ok(None);
        }
        if number > sender.next {
            return Err(Flaw::Gap { expected: sender.next, came: number });
        }
        sender.next += 1;
        if sender.message.len() + part.len() > MESSAGE_BYTES_MAX {
            return Err(Flaw::Long);
        }
        sender.message.extend_from_slice(part);
        Ok((more == [0]).then(|| std::mem::take(&mut sender.message)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_gap_is_told_and_a_repetition_is_not() {
        let (mut cutter, mut joiner) = (Cutter::default(), Joiner::default());
        let pieces: Vec<_> = (0..4u8).flat_map(|n| cutter.cut(&[n])).collect();
        assert_eq!(joiner.add(1, &pieces[0].1), Ok(Some(vec![0])));
        assert_eq!(joiner.add(1, &pieces[0].1), Ok(None));
        assert_eq!(joiner.add(1, &pieces[3].1), Err(Flaw::Gap { expected: 1, came: 3 }));
        assert_eq!(joiner.add(1, &pieces[1].1), Ok(Some(vec![1])));
        assert_eq!(joiner.add(2, &pieces[0].1), Ok(Some(vec![0])), "another sender");
        assert_eq!(joiner.add(1, &[1, 2]), Err(Flaw::Short));
        let mut later = Joiner::midway();
        assert_eq!(later.add(1, &pieces[2].1), Ok(Some(vec![2])));
        assert_eq!(later.add(1, &pieces[2].1), Ok(None));
        assert_eq!(later.add(1, &cutter.cut(&[9])[0].1), Err(Flaw::Gap { expected: 3, came: 4 }));
        let long = cutter.cut(&vec![7; PIECE_BYTES_MAX + 1]);
        assert_eq!((later.add(2, &long[0].1), later.is_within(2)), (Ok(None), true));
        assert!(later.add(2, &long[1].1).is_ok_and(|whole| whole.is_some()) && !later.is_within(2));
    }

    proptest! {
        /// Messages of several senders arrive whole and once, whatever is repeated.
        #[test]
        fn messages_come_back_whole(
            lengths in prop::collection::vec((0usize..3, 0usize..3 * PIECE_BYTES_MAX / 2), 1..6),
            repeated in prop::collection::vec(any::<bool>(), 24),
        ) {
            let mut cutters = [Cutter::default(), Cutter::default(), Cutter::default()];
            let mut joiner = Joiner::default();
            let mut repeated = repeated.into_iter().cycle();
            for (at, (sender, length)) in lengths.into_iter().enumerate() {
                let message = vec![at as u8; length];
                let pieces = cutters[sender].cut(&message);
                let mut joined = Vec::new();
                for (_, piece) in &pieces {
                    prop_assert!(piece.len() <= PIECE_BYTES_MAX + HEAD);
                    for _ in 0..1 + usize::from(repeated.next().unwrap()) {
                        joined.extend(joiner.add(sender, piece).unwrap());
                    }
                }
                prop_assert!(joined == [message]);
            }
        }

        #[test]
        fn any_bytes_are_taken_or_refused(piece in prop::collection::vec(any::<u8>(), 0..20)) {
            let _ = Joiner::default().add(0, &piece);
        }
    }
}
