//! Several ordered sources as one, in which the youngest of several entries with the same key counts.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::io;

use super::entry::Key;

/// A source's next entry. The order is that of keys, then the younger source first.
struct Head<K, V> {
    key: K,
    /// The source's place among all, from the oldest.
    age: usize,
    value: V,
}

impl<K: Key, V> Head<K, V> {
    fn order(&self) -> (K, Reverse<usize>) {
        (self.key, Reverse(self.age))
    }
}

impl<K: Key, V> PartialEq for Head<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<K: Key, V> Eq for Head<K, V> {}

impl<K: Key, V> PartialOrd for Head<K, V> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K: Key, V> Ord for Head<K, V> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// Entries in order, each key once.
pub(crate) type Source<'a, K, V> = Box<dyn Iterator<Item = io::Result<(K, V)>> + Send + 'a>;

/// The entries of several sources in order, each key once.
pub(crate) struct Merge<'a, K, V> {
    sources: Vec<Source<'a, K, V>>,
    heads: BinaryHeap<Reverse<Head<K, V>>>,
    started: bool,
    last: Option<K>,
    /// Entries left out because a younger one had the same key.
    pub(crate) replaced: u64,
}

impl<'a, K: Key, V> Merge<'a, K, V> {
    /// Merges sources that are in the order of their age, the oldest first, and each in order without doubles.
    pub(crate) fn new(sources: Vec<Source<'a, K, V>>) -> Self {
        let heads = BinaryHeap::with_capacity(sources.len());
        Merge { sources, heads, started: false, last: None, replaced: 0 }
    }

    fn pull(&mut self, age: usize) -> io::Result<()> {
        if let Some((key, value)) = self.sources[age].next().transpose()? {
            self.heads.push(Reverse(Head { key, age, value }));
        }
        Ok(())
    }

    fn step(&mut self) -> io::Result<Option<(K, V)>> {
        if !self.started {
            self.started = true;
            for age in 0..self.sources.len() {
                self.pull(age)?;
            }
        }
        while let Some(mut top) = self.heads.peek_mut() {
            // The next of the same source takes the place of the one that is taken out: one sift instead of two.
            let age = top.0.age;
            let head = match self.sources[age].next().transpose()? {
                Some((key, value)) => std::mem::replace(&mut top.0, Head { key, age, value }),
                None => std::collections::binary_heap::PeekMut::pop(top).0,
            };
            if self.last == Some(head.key) {
                self.replaced += 1;
                continue;
            }
            self.last = Some(head.key);
            return Ok(Some((head.key, head.value)));
        }
        Ok(None)
    }
}

impl<K: Key, V> Iterator for Merge<'_, K, V> {
    type Item = io::Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::messages::Place;

    proptest! {
        #[test]
        fn the_youngest_of_each_key_in_order(ages in proptest::collection::vec(proptest::collection::btree_set(0u64..30, 0..20), 0..6)) {
            let key = |user: u64| (user, Place::first_of(1));
            let mut expected = BTreeMap::new();
            for (age, users) in ages.iter().enumerate() {
                expected.extend(users.iter().map(|user| (*user, age)));
            }
            let sources = ages.iter().enumerate().map(|(age, users)| {
                let users: Vec<u64> = users.iter().copied().collect();
                Box::new(users.into_iter().map(move |user| Ok((key(user), age)))) as Source<'_, (u64, Place), usize>
            });
            let mut merge = Merge::new(sources.collect());
            let merged: Vec<(u64, usize)> = merge.by_ref().map(|entry| entry.unwrap()).map(|((user, _), age)| (user, age)).collect();
            prop_assert_eq!(merged, expected.iter().map(|(user, age)| (*user, *age)).collect::<Vec<_>>());
            let given: usize = ages.iter().map(|users| users.len()).sum();
            prop_assert_eq!(merge.replaced as usize, given - expected.len());
        }
    }
}
