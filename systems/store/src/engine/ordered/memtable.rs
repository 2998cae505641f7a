//! The rows of one log in memory, in order, until they are written as a run.

use std::collections::BTreeMap;
use std::ops::Bound;

use bytes::Bytes;

use super::entry::Key;

/// Rows in order. Values stand one behind the other in one piece of memory.
pub(crate) struct MemTable<K> {
    places: BTreeMap<K, (u32, u16)>,
    values: Vec<u8>,
    /// Earliest and latest time in it.
    times: Option<(u64, u64)>,
}

impl<K: Key> MemTable<K> {
    /// What a row costs beside its value: its place in the tree, whose nodes are half full at worst.
    const ROW_BYTES: usize = 2 * (size_of::<K>() + size_of::<(u32, u16)>()) + 8;

    /// An empty table with room for so many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        MemTable { places: BTreeMap::new(), values: Vec::with_capacity(bytes), times: None }
    }

    /// Puts a row, in place of one with the same key. None if there are more bytes than a table can have.
    pub(crate) fn put(&mut self, key: K, value: &[u8]) -> Option<()> {
        let begin = u32::try_from(self.values.len()).ok()?;
        self.values.extend_from_slice(value);
        self.places.insert(key, (begin, value.len() as u16));
        let time = key.locality();
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
        Some(())
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Bytes of memory, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.values.len() + self.places.len() * Self::ROW_BYTES
    }

    /// Earliest and latest time in it.
    pub(crate) fn times(&self) -> Option<(u64, u64)> {
        self.times
    }

    /// All rows, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &[u8])> {
        self.places.iter().map(|(key, place)| (key, self.value(*place)))
    }

    /// All keys, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &K> {
        self.places.keys()
    }

    /// Copies at most `limit` rows from `begin` to before `end`, or to the last one.
    pub(crate) fn some(&self, begin: Bound<K>, end: Option<K>, limit: usize) -> Vec<(K, Bytes)> {
        if let (Bound::Included(first) | Bound::Excluded(first), Some(end)) = (begin, end)
            && first >= end
        {
            return Vec::new();
        }
        let range = self.places.range((begin, end.map_or(Bound::Unbounded, Bound::Excluded)));
        range.take(limit).map(|(key, place)| (*key, Bytes::copy_from_slice(self.value(*place)))).collect()
    }

    /// The value of a row.
    pub(crate) fn get(&self, key: &K) -> Option<Bytes> {
        self.places.get(key).map(|place| Bytes::copy_from_slice(self.value(*place)))
    }

    fn value(&self, (begin, length): (u32, u16)) -> &[u8] {
        &self.values[begin as usize..begin as usize + length as usize]
    }
}
