//! How a store of Redis' kind keeps its data on disk.

use super::store::Durability;
use crate::grammar::kinds::words;

/// What a scenario says of it; what it does not say is as the store's durability wants it, or as the product has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Persistence {
    /// When its append-only file is synced.
    pub append_only: Option<AppendOnly>,
    /// When a snapshot is written; none where empty.
    pub snapshots: Vec<SnapshotAfter>,
    /// The append-only file is not rewritten below this size, bytes.
    pub rewrite_at_bytes: Option<u64>,
    /// It is rewritten when it has grown so much since it was the last time; never where 0. Per cent.
    pub rewrite_growth_percent: Option<u32>,
}

/// A snapshot is due after so long, if there were so many changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SnapshotAfter {
    /// Since the last one, seconds.
    pub seconds: u32,
    /// The least number of changes.
    pub changes: u32,
}

words! {
    /// When an append-only file is synced to disk.
    pub enum AppendOnly {
        /// Before each answer.
        Always = "always",
        /// Every second.
        EverySecond = "everysec",
        /// When the operating system wants to.
        Unsynced = "no",
        /// There is none.
        Off = "off",
    }
}

impl AppendOnly {
    /// What it makes of an acknowledged write.
    pub fn durability(self) -> Durability {
        match self {
            AppendOnly::Always => Durability::Synced,
            AppendOnly::EverySecond | AppendOnly::Unsynced => Durability::Buffered,
            AppendOnly::Off => Durability::Memory,
        }
    }
}

impl From<Durability> for AppendOnly {
    fn from(durability: Durability) -> AppendOnly {
        match durability {
            Durability::Synced => AppendOnly::Always,
            Durability::Buffered => AppendOnly::EverySecond,
            Durability::Memory => AppendOnly::Off,
        }
    }
}
