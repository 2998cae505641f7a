//! Tables in memory: every read is answered from here. Most requests of an airline read its store, and where a lookup in
//! a log-structured tree goes through several tables while these are being compacted, here it is one hash lookup,
//! whatever the disk does. The price is memory.
//!
//! Hash tables in shards, each behind its own lock, so that readers on different cores rarely meet; a read holds a
//! lock for well under a microsecond. Only the committer writes (or, with durability `memory`, the caller), and
//! only after the entry is as durable as was promised: nobody reads what could still be lost.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use parking_lot::RwLock;

use super::bytes::{Malformed, Reader};
use super::table::{Entries, InMemory, PARTS, Table};

/// Something that is found by its key.
pub(crate) trait Keyed {
    /// What it is found by.
    type Key: Hash + Eq + ToOwned + ?Sized;

    /// Its key.
    fn key(&self) -> &Self::Key;
}

/// A row of a table in memory.
pub(crate) trait Row: Keyed + Send + Sync + Sized + 'static {
    /// The table's number in the log.
    const TABLE: u8;
    /// The table's name.
    const NAME: &'static str;
    /// What else finds rows; `()` if nothing does.
    type Index: Index<Self>;

    /// Writes the row down.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads what was written down.
    fn decode(entry: &mut Reader<'_>) -> Result<Self, Malformed>;

    /// Writes a key down, to remove its row.
    fn encode_key(key: &Self::Key, out: &mut Vec<u8>);

    /// Reads such a key.
    fn decode_key(entry: &mut Reader<'_>) -> Result<<Self::Key as ToOwned>::Owned, Malformed>;
}

/// Follows what becomes of a table's rows, while nobody else sees or changes that row.
pub(crate) trait Index<R>: Default + Send + Sync {
    /// The new row took the place of the old one, where there are such.
    fn changed(&self, old: Option<&R>, new: Option<&R>);
}

impl<R> Index<R> for () {
    fn changed(&self, _: Option<&R>, _: Option<&R>) {}
}

/// Rows by their key.
pub(crate) struct Shards<R> {
    shards: Box<[RwLock<HashTable<R>>]>,
    hasher: RandomState,
}

impl<R> Default for Shards<R> {
    fn default() -> Self {
        Shards { shards: (0..PARTS).map(|_| RwLock::default()).collect(), hasher: RandomState::new() }
    }
}

impl<R: Keyed> Shards<R> {
    fn place(&self, key: &R::Key) -> (u64, &RwLock<HashTable<R>>) {
        let hash = self.hasher.hash_one(key);
        // other bits than those by which a shard finds its place
        (hash, &self.shards[(hash >> 32) as usize % PARTS])
    }

    fn is<'a>(key: &'a R::Key) -> impl Fn(&R) -> bool + 'a {
        move |row| row.key() == key
    }

    /// What `read` makes of the row with this key.
    pub(crate) fn get<T>(&self, key: &R::Key, read: impl FnOnce(&R) -> T) -> Option<T> {
        let (hash, shard) = self.place(key);
        shard.read().find(hash, Self::is(key)).map(read)
    }

    /// Puts a row; whether there was none with its key.
    fn put(&self, row: R, index: &impl Index<R>) -> bool {
        let (hash, shard) = self.place(row.key());
        let mut shard = shard.write();
        match shard.entry(hash, Self::is(row.key()), |row| self.hasher.hash_one(row.key())) {
            Entry::Occupied(mut entry) => {
                index.changed(Some(entry.get()), Some(&row));
                *entry.get_mut() = row;
                false
            }
            Entry::Vacant(entry) => {
                index.changed(None, Some(&row));
                entry.insert(row);
                true
            }
        }
    }

    /// Removes the row with this key; whether there was one.
    fn remove(&self, key: &R::Key, index: &impl Index<R>) -> bool {
        let (hash, shard) = self.place(key);
        let mut shard = shard.write();
        let Ok(entry) = shard.find_entry(hash, Self::is(key)) else { return false };
        index.changed(Some(entry.get()), None);
        entry.remove();
        true
    }

    /// Changes the row with this key, which `make` makes if there is none, and removes it if it `is_empty` then.
    pub(crate) fn change<T>(
        &self,
        key: &R::Key,
        make: impl FnOnce() -> R,
        change: impl FnOnce(&mut R) -> T,
        is_empty: impl FnOnce(&R) -> bool,
    ) -> T {
        let (hash, shard) = self.place(key);
        let mut shard = shard.write();
        let mut entry = match shard.entry(hash, Self::is(key), |row| self.hasher.hash_one(row.key())) {
            Entry::Occupied(entry) => entry,
            Entry::Vacant(entry) => entry.insert(make()),
        };
        let changed = change(entry.get_mut());
        if is_empty(entry.get()) {
            entry.remove();
        }
        changed
    }

    /// Calls `each` with the rows of a shard.
    pub(crate) fn each(&self, part: usize, each: impl FnMut(&R)) {
        self.shards[part].read().iter().for_each(each);
    }
}

/// A table of rows that are put and removed by their key.
pub(crate) struct Rows<R: Row> {
    rows: Shards<R>,
    count: AtomicU64,
    pub(crate) index: R::Index,
}

impl<R: Row> Default for Rows<R> {
    fn default() -> Self {
        Rows { rows: Shards::default(), count: AtomicU64::new(0), index: R::Index::default() }
    }
}

const PUT: u8 = 0;
const REMOVE: u8 = 1;

impl<R: Row> Rows<R> {
    /// The entry that puts a row.
    pub(crate) fn put(row: &R, out: &mut Vec<u8>) {
        out.extend_from_slice(&[R::TABLE, PUT]);
        row.encode(out);
    }

    /// The entry that removes the row with this key.
    pub(crate) fn remove(key: &R::Key, out: &mut Vec<u8>) {
        out.extend_from_slice(&[R::TABLE, REMOVE]);
        R::encode_key(key, out);
    }

    /// What `read` makes of the row with this key.
    pub(crate) fn get<T>(&self, key: &R::Key, read: impl FnOnce(&R) -> T) -> Option<T> {
        self.rows.get(key, read)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Calls `each` with every row.
    pub(crate) fn each(&self, mut each: impl FnMut(&R)) {
        (0..PARTS).for_each(|part| self.rows.each(part, &mut each));
    }
}

impl<R: Row> Table for Rows<R> {
    fn number(&self) -> u8 {
        R::TABLE
    }

    fn name(&self) -> &'static str {
        R::NAME
    }

    fn apply_one(&self, entry: &mut Reader<'_>) -> Result<u64, Malformed> {
        let [what] = entry.array()?;
        match what {
            PUT => {
                let is_new = self.rows.put(R::decode(entry)?, &self.index);
                self.count.fetch_add(is_new.into(), Ordering::Relaxed);
                Ok(1)
            }
            REMOVE => {
                let is_removed = self.rows.remove(R::decode_key(entry)?.borrow(), &self.index);
                self.count.fetch_sub(is_removed.into(), Ordering::Relaxed);
                Ok(is_removed.into())
            }
            _ => Err("an entry is of a kind that this version does not know"),
        }
    }
}

impl<R: Row> InMemory for Rows<R> {
    fn write_part(&self, part: usize, out: &mut Entries) {
        self.rows.each(part, |row| {
            Self::put(row, &mut out.bytes);
            out.end_entry();
        });
    }
}
