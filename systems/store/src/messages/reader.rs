//! Everything that a directory of messages holds, read without changing anything in it.

use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;

use super::Message;
use super::tree::{MessageKey as Key, tables};
use crate::durability::Durability;
use crate::engine::lock::Lock;
use crate::engine::ordered::{Ordered, View, count};
use crate::engine::{describe, read};
use crate::error::StoreError;

/// At most so many parts.
const PARTS: usize = 64;
/// Of the keys of a table in memory each so manieth may be where a part begins.
const TABLE_STEP: usize = 256;

/// The directory of a [`Tree`](super::Tree) that nobody has open, for whoever wants to see every message in it: in
/// parts of about the same size, which can be read at the same time. Nothing in the directory is changed, and no
/// store can be opened there meanwhile.
pub struct TreeReader {
    dir: PathBuf,
    view: View<Key>,
    /// Where all parts but the first begin.
    cuts: Vec<Key>,
    _lock: Lock,
}

impl TreeReader {
    /// Opens a directory, and reads what no run has yet into memory. `durability` is what the store in it was opened
    /// with: only with [`Durability::Synced`] a log that is damaged is an error, otherwise what it lost is told and left out.
    ///
    /// # Errors
    /// If there is no store, another has it open, or what is there cannot be read.
    pub fn open(dir: &Path, durability: Durability) -> Result<TreeReader, StoreError> {
        let messages: Arc<Ordered<Message>> = Arc::default();
        let lock = read(dir, &tables(&messages), durability)?;
        let view = messages.view();
        let cuts = cuts(view.some_keys(TABLE_STEP));
        Ok(TreeReader { dir: dir.into(), view, cuts, _lock: lock })
    }

    /// How many parts there are; every message is in exactly one.
    pub fn parts(&self) -> usize {
        self.cuts.len() + 1
    }

    /// The payload of every message of a part, each once. What follows an error is of no use.
    pub fn payloads(&self, part: usize) -> impl Iterator<Item = Result<Bytes, StoreError>> + '_ {
        let begin = match part.checked_sub(1) {
            None => Some(Bound::Unbounded),
            Some(before) => self.cuts.get(before).copied().map(Bound::Included),
        };
        let rows = begin.map(|begin| self.view.clone().rows::<Message>(begin, self.cuts.get(part).copied()));
        let told = |row: std::io::Result<Message>| {
            row.map(|message| message.payload).map_err(|error| describe(&self.dir, &error))
        };
        rows.into_iter().flatten().map(told)
    }

    /// How many messages (different places) there are, by what the store knows of its files.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn count(&self) -> Result<u64, StoreError> {
        count::distinct(&self.view).map_err(|error| describe(&self.dir, &error))
    }
}

/// Those of the keys between which there is about the same number of messages.
fn cuts(keys: Vec<Key>) -> Vec<Key> {
    let mut cuts: Vec<Key> =
        (1..PARTS).filter_map(|part| keys.get(keys.len() * part / PARTS)).copied().collect();
    cuts.dedup();
    cuts
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::messages::{MessageId, Messages, Place, Tree, TreeOptions};

    /// No key is before this one.
    const FIRST: Key = (0, Place { time_ms: 0, kind: [0; 3], id: MessageId::NONE });

    /// Small tables, so that there are runs, and merged ones.
    const OPTIONS: TreeOptions =
        TreeOptions { durability: Durability::Buffered, table_bytes: 16 * 1024, waiting_max: 8192 };

    fn fill(dir: &Path, messages: &[(Key, Vec<u8>)]) {
        let store = Tree::open(dir, OPTIONS).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for ((user, place), payload) in messages {
                let payload = Bytes::copy_from_slice(payload);
                store.add(Message::at(*user, *place, payload)).await.unwrap();
            }
        });
    }

    fn names(dir: &Path) -> Vec<(std::ffi::OsString, u64)> {
        let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
        let mut names: Vec<_> = entries.map(|e| (e.file_name(), e.metadata().unwrap().len())).collect();
        names.sort();
        names
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

        #[test]
        fn every_message_is_in_one_part_as_it_was_written_last(
            users in proptest::collection::vec((0u64..20, 0u64..200, any::<u8>()), 0..1500),
            edge in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            // some have an id of their own
            let id = |time_ms| MessageId::from_bytes([(time_ms % 3) as u8; 16]);
            let key = |user, time_ms| (user, Place { time_ms: time_ms / 2, kind: *b"ABC", id: id(time_ms) });
            let mut messages: Vec<(Key, Vec<u8>)> =
                users.iter().map(|(user, time, byte)| (key(*user, *time), vec![*byte; 40])).collect();
            if edge {
                messages.push((FIRST, b"first".to_vec()));
                messages.push(((u64::MAX, Place { time_ms: u64::MAX, kind: [255; 3], id: MessageId::from_bytes([255; 16]) }), b"last".to_vec()));
            }
            fill(folder.path(), &messages);
            let before = names(folder.path());
            let expected: BTreeMap<Key, Vec<u8>> = messages.into_iter().collect();

            let reader = TreeReader::open(folder.path(), Durability::Synced).unwrap();
            prop_assert!(reader.parts() <= PARTS);
            let read: Vec<Vec<u8>> =
                (0..reader.parts()).flat_map(|part| reader.payloads(part)).map(|p| p.unwrap().to_vec()).collect();
            prop_assert_eq!(reader.count().unwrap(), expected.len() as u64);
            prop_assert_eq!(read, expected.into_values().collect::<Vec<_>>());
            prop_assert_eq!(reader.payloads(reader.parts()).count(), 0);
            prop_assert_eq!(names(folder.path()), before, "nothing is changed");
        }
    }

    #[test]
    fn who_reads_and_who_writes_keep_out_of_each_others_way() {
        let folder = tempfile::tempdir().unwrap();
        let error = |result: Result<TreeReader, StoreError>| result.err().unwrap().to_string();
        assert!(error(TreeReader::open(folder.path(), Durability::Synced)).contains("no store in it"));
        let store = Tree::open(folder.path(), OPTIONS).unwrap();
        assert!(error(TreeReader::open(folder.path(), Durability::Synced)).contains("in use"));
        drop(store);
        let one = TreeReader::open(folder.path(), Durability::Synced).unwrap();
        let two = TreeReader::open(folder.path(), Durability::Synced).unwrap();
        assert_eq!((one.count().unwrap(), two.count().unwrap()), (0, 0));
        assert!(Tree::open(folder.path(), OPTIONS).is_err());
    }
}
