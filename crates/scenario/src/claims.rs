//! Which rows of a feeder are held, where each belongs to one session at a time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

/// Most times that all rows are looked at for one that is free. There is one, as it was counted before; it is missed
/// only where others take and give back just then, and each time one of them has gone on.
const ROUNDS_MAX: usize = 64;

/// A flag for each row, and how many are claimed.
#[derive(Debug)]
pub(crate) struct Claims {
    /// Rows that are held or looked for: never more than there are, so that who looks for one finds one.
    claimed: CachePadded<AtomicUsize>,
    held: Box<[AtomicBool]>,
}

impl Claims {
    /// None of so many rows is held.
    pub fn new(rows: usize) -> Self {
        Claims {
            claimed: CachePadded::new(AtomicUsize::new(0)),
            held: (0..rows).map(|_| AtomicBool::new(false)).collect(),
        }
    }

    /// Holds the first free row of those that `next` proposes; none where all are claimed.
    pub fn claim(&self, mut next: impl FnMut() -> usize) -> Option<usize> {
        let rows = self.held.len();
        let one_more = |claimed: usize| (claimed < rows).then_some(claimed + 1);
        self.claimed.fetch_update(Ordering::Acquire, Ordering::Relaxed, one_more).ok()?;
        for _ in 0..rows.saturating_mul(ROUNDS_MAX) {
            let row = next();
            // Read before it is written: a row that is held stays in everybody's cache.
            let flag = &self.held[row];
            if !flag.load(Ordering::Relaxed) && !flag.swap(true, Ordering::Acquire) {
                return Some(row);
            }
        }
        self.claimed.fetch_sub(1, Ordering::Release);
        None
    }

    /// A row that was held is free.
    pub fn give_back(&self, row: usize) {
        let was_held = self.held[row].swap(false, Ordering::Release);
        debug_assert!(was_held, "row {row} is given back by who holds it");
        if was_held {
            self.claimed.fetch_sub(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::Shared;
    use crate::context::Feeder;

    fn shared(rows: usize, held: bool) -> Shared {
        let rows = (0..rows).map(|row| vec![row.to_string().into_boxed_str()]).collect();
        Shared::new(0, vec![Feeder { name: "n".into(), columns: vec!["n".into()], rows, held }])
    }

    #[test]
    fn rows_come_in_turn_and_pass_over_those_that_are_held() {
        let shared = shared(3, true);
        let hold = || shared.hold_row(0);
        assert_eq!([hold(), hold(), hold(), hold()], [Some(0), Some(1), Some(2), None]);
        shared.give_back(0, 1);
        assert_eq!([shared.hold_row(0), shared.hold_row(0)], [Some(1), None]);
        shared.give_back(0, 2);
        shared.give_back(0, 0);
        // behind the row that was taken last
        assert_eq!([shared.hold_row(0), shared.hold_row(0), shared.hold_row(0)], [Some(2), Some(0), None]);
    }

    #[test]
    fn of_a_feeder_whose_rows_are_not_held_none_is() {
        let shared = shared(3, false);
        assert_eq!(shared.hold_row(0), None);
        assert_eq!([0, 1, 2, 0], [(); 4].map(|()| shared.next_row(0)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// As many sessions as rows or fewer always find one, and no two have the same.
        #[test]
        fn no_row_is_held_twice_at_a_time(threads in 2usize..5, each in 1usize..4, spare in 0usize..3) {
            let rows = threads * each + spare;
            let shared = shared(rows, true);
            let owners: Vec<AtomicUsize> = (0..rows).map(|_| AtomicUsize::new(0)).collect();
            std::thread::scope(|scope| {
                for thread in 1..=threads {
                    let (shared, owners) = (&shared, &owners);
                    scope.spawn(move || {
                        let mut mine = Vec::new();
                        for turn in 0..2_000 {
                            if mine.len() == each {
                                let row: usize = mine.swap_remove(turn % each);
                                assert_eq!(owners[row].swap(0, Ordering::Relaxed), thread);
                                shared.give_back(0, row);
                            }
                            let row = shared.hold_row(0).expect("there is a row for each");
                            assert_eq!(owners[row].swap(thread, Ordering::Relaxed), 0, "row {row}");
                            mine.push(row);
                        }
                        for row in mine {
                            owners[row].store(0, Ordering::Relaxed);
                            shared.give_back(0, row);
                        }
                    });
                }
            });
            let all: BTreeSet<_> = (0..rows).filter_map(|_| shared.hold_row(0)).collect();
            prop_assert_eq!((all.len(), shared.hold_row(0)), (rows, None), "given back, all are free again");
        }
    }
}
