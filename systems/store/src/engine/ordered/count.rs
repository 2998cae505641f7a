//! How many different keys there are; see the paragraph on counting in [`super`].

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Mutex;

use super::View;
use super::entry::Key;
use super::merge::{Merge, Source};
use super::run::meets;
use crate::error::StoreError;

/// Counts one at a time, as a count may read much: who asks meanwhile waits, without a thread, and all who do share
/// the next one.
#[derive(Default)]
pub(crate) struct Counting {
    /// How many counts have begun.
    begun: AtomicU64,
    /// The last one that succeeded: which it was, and what came out.
    last: Arc<Mutex<(u64, u64)>>,
}

impl Counting {
    /// What `work` counts, or what a count brought that began after this was called.
    pub(crate) async fn count(
        &self,
        work: impl FnOnce() -> Result<u64, StoreError> + Send + 'static,
    ) -> Result<u64, StoreError> {
        let before = self.begun.load(Ordering::Acquire);
        let mut last = self.last.clone().lock_owned().await;
        if last.0 > before {
            return Ok(last.1);
        }
        let number = self.begun.fetch_add(1, Ordering::AcqRel) + 1;
        // The lock goes with the work: it is the only one even when nobody waits for it any more.
        let counted = tokio::task::spawn_blocking(move || {
            let count = work()?;
            *last = (number, count);
            Ok(count)
        });
        counted.await.unwrap_or(Err(StoreError::Closed))
    }
}

/// A span of time, both ends in it.
type Span = (u64, u64);

/// The number of different keys in all sources.
pub(crate) fn distinct<K: Key>(view: &View<K>) -> io::Result<u64> {
    // Tables change while we count: what is counted of each is what is in this copy of its keys.
    let tables: Vec<(Vec<K>, Option<Span>)> = view
        .tables
        .iter()
        .map(|logged| {
            let table = logged.table.read();
            (table.keys().copied().collect(), table.times())
        })
        .collect();
    let runs = view.runs.iter().map(|levelled| &levelled.run);
    let sum = runs.clone().map(|run| run.len()).sum::<u64>()
        + tables.iter().map(|(keys, _)| keys.len() as u64).sum::<u64>();
    let spans: Vec<Option<Span>> =
        runs.clone().map(|run| run.times()).chain(tables.iter().map(|(_, times)| *times)).collect();
    let windows: Arc<[Span]> = meetings(&spans).into();
    if windows.is_empty() {
        return Ok(sum);
    }
    let in_window = |key: &K| {
        let at = windows.partition_point(|window| window.1 < key.locality());
        windows.get(at).is_some_and(|window| window.0 <= key.locality())
    };
    let mut sources: Vec<Source<'_, K, ()>> = Vec::new();
    for run in runs {
        let keys = run.around(windows.clone()).map(|entry| entry.map(|(key, _)| (key, ())));
        sources.push(Box::new(keys.filter(|entry| entry.as_ref().map_or(true, |(key, ())| in_window(key)))));
    }
    for (keys, _) in &tables {
        sources.push(Box::new(keys.iter().filter(|key| in_window(key)).map(|key| Ok((*key, ())))));
    }
    let mut merge = Merge::new(sources);
    for entry in merge.by_ref() {
        entry?;
    }
    Ok(sum.saturating_sub(merge.replaced))
}

/// Where any two of the spans meet, as spans in order that do not meet each other.
fn meetings(spans: &[Option<Span>]) -> Vec<Span> {
    let mut meetings = Vec::new();
    let spans: Vec<Span> = spans.iter().flatten().copied().collect();
    for (index, a) in spans.iter().enumerate() {
        for b in &spans[index + 1..] {
            if meets(*a, *b) {
                meetings.push((a.0.max(b.0), a.1.min(b.1)));
            }
        }
    }
    meetings.sort_unstable();
    let mut joined: Vec<Span> = Vec::new();
    for span in meetings {
        match joined.last_mut() {
            Some(last) if span.0 <= last.1 => last.1 = last.1.max(span.1),
            _ => joined.push(span),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A runtime with one thread to block: a waiter that kept it would keep the count from ending.
    #[test]
    fn who_waits_for_a_count_takes_no_thread_and_shares_the_next() {
        let runtime = tokio::runtime::Builder::new_current_thread().max_blocking_threads(1).build().unwrap();
        let counting = Arc::new(Counting::default());
        let counts = Arc::new(AtomicU64::new(0));
        let (go, stop) = std::sync::mpsc::channel::<()>();
        runtime.block_on(async {
            let first = {
                let (counting, counts) = (counting.clone(), counts.clone());
                tokio::spawn(async move {
                    let work = move || {
                        stop.recv().unwrap();
                        Ok(counts.fetch_add(1, Ordering::Relaxed))
                    };
                    counting.count(work).await
                })
            };
            while counting.begun.load(Ordering::Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
            // nobody waits for it any more, but it goes on
            first.abort();
            assert!(first.await.is_err());
            let asked = Arc::new(AtomicU64::new(0));
            let waiting: Vec<_> = (0..1000)
                .map(|_| {
                    let (counting, counts, asked) = (counting.clone(), counts.clone(), asked.clone());
                    tokio::spawn(async move {
                        asked.fetch_add(1, Ordering::Relaxed);
                        counting.count(move || Ok(100 + counts.fetch_add(1, Ordering::Relaxed))).await
                    })
                })
                .collect();
            // each has asked, and waits, before the first count ends
            while asked.load(Ordering::Relaxed) < 1000 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
            for waiter in waiting {
                assert_eq!(waiter.await.unwrap().unwrap(), 101, "they share the second count");
            }
        });
        assert_eq!(counts.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_count_that_fails_is_no_answer_for_others() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let counting = Counting::default();
        runtime.block_on(async {
            assert!(counting.count(|| Err(StoreError::Closed)).await.is_err());
            assert_eq!(counting.count(|| Ok(7)).await.unwrap(), 7);
        });
    }

    #[test]
    fn spans_meet_where_two_of_them_are() {
        assert_eq!(meetings(&[Some((1, 5)), Some((6, 9)), None]), []);
        assert_eq!(meetings(&[Some((1, 5)), Some((5, 9)), Some((20, 30))]), [(5, 5)]);
        assert_eq!(
            meetings(&[Some((1, 10)), Some((8, 30)), Some((9, 12)), Some((25, 40))]),
            [(8, 12), (25, 30)]
        );
    }
}
