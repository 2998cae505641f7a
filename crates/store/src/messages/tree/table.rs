//! A table in memory: the messages of one log, in order, until they are written as a run.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::entry::{self, Key};

/// What an entry costs beside its payload: its place in the tree, whose nodes are half full at worst.
const ENTRY_BYTES: usize = 72;

/// Messages in order. Payloads stand one behind the other in one piece of memory.
#[derive(Default)]
pub(crate) struct Table {
    places: BTreeMap<Key, (u32, u16)>,
    payloads: Vec<u8>,
    /// Earliest and latest time in it.
    times: Option<(u64, u64)>,
}

impl Table {
    /// An empty table with room for so many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Table { payloads: Vec::with_capacity(bytes), ..Table::default() }
    }

    /// Takes over the entries of a group; how many there were. A later one replaces an earlier one with the same key.
    /// Nothing if there are bytes that are no entry, or more than a table can have.
    pub(crate) fn take(&mut self, entries: &[u8]) -> Option<usize> {
        let (mut at, mut count) = (0, 0);
        while at < entries.len() {
            let (key, range) = entry::read(entries, at)?;
            at = range.end;
            count += 1;
            let payload = &entries[range];
            let begin = u32::try_from(self.payloads.len()).ok()?;
            self.payloads.extend_from_slice(payload);
            self.places.insert(key, (begin, payload.len() as u16));
            let time = key.1.time_ms;
            let (first, last) = self.times.unwrap_or((time, time));
            self.times = Some((first.min(time), last.max(time)));
        }
        Some(count)
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.payloads.len() + self.places.len() * ENTRY_BYTES
    }

    /// Earliest and latest time in it.
    pub(crate) fn times(&self) -> Option<(u64, u64)> {
        self.times
    }

    /// All entries, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Key, &[u8])> {
        self.places.iter().map(|(key, place)| (key, self.payload(*place)))
    }

    /// The keys whose time lies in one of the windows, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        self.places.keys()
    }

    /// Copies at most `limit` entries from `begin` to before `end`, or to the last one.
    pub(crate) fn some(&self, begin: Bound<Key>, end: Option<Key>, limit: usize) -> Vec<(Key, Bytes)> {
        let (Bound::Included(first) | Bound::Excluded(first)) = begin else { return Vec::new() };
        if end.is_some_and(|end| first >= end) {
            return Vec::new();
        }
        let range = self.places.range((begin, end.map_or(Bound::Unbounded, Bound::Excluded)));
        range.take(limit).map(|(key, place)| (*key, Bytes::copy_from_slice(self.payload(*place)))).collect()
    }

    fn payload(&self, (begin, length): (u32, u16)) -> &[u8] {
        &self.payloads[begin as usize..begin as usize + length as usize]
    }
}
