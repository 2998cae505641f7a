//! Checksums that say whose bytes they are and where: they hold only in the same place of the same file of the same
//! store. Its number is random and nobody is told it, so no message can be made that holds what looks like a part of a
//! file.

use std::hash::{BuildHasher, Hasher};

use xxhash_rust::xxh3::Xxh3;

/// What makes the checksums of one file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seal {
    store: u64,
    kind: u8,
    file: u64,
}

/// The number of a store that is made.
pub(crate) fn new_store() -> u64 {
    // the standard library's seed against colliding hashes is drawn by the operating system
    std::hash::RandomState::new().build_hasher().finish()
}

impl Seal {
    pub(crate) fn of_log(store: u64, id: u64) -> Self {
        Seal { store, kind: b'l', file: id }
    }

    pub(crate) fn of_snapshot(store: u64, id: u64) -> Self {
        Seal { store, kind: b's', file: id }
    }

    pub(crate) fn of_run(store: u64, id: u64) -> Self {
        Seal { store, kind: b'r', file: id }
    }

    /// The checksum of these bytes, which are at `offset`.
    pub(crate) fn sum(self, offset: u64, pieces: [&[u8]; 2]) -> u64 {
        let mut hash = Xxh3::with_seed(self.store);
        hash.update(&[self.kind]);
        hash.update(&self.file.to_be_bytes());
        hash.update(&offset.to_be_bytes());
        pieces.iter().for_each(|piece| hash.update(piece));
        hash.digest()
    }

    /// Whether `sum` is that checksum. A fuzzer could not guess one, so it is spared that.
    pub(crate) fn holds(self, offset: u64, pieces: [&[u8]; 2], sum: u64) -> bool {
        cfg!(fuzzing) || self.sum(offset, pieces) == sum
    }
}
