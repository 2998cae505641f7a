//! How many different keys there are; see the paragraph on counting in [`super`].

use std::io;
use std::sync::Arc;

use super::View;
use super::entry::Key;
use super::merge::{Merge, Source};
use super::run::meets;

/// A span of time, both ends in it.
type Span = (u64, u64);

/// The number of different keys in all sources.
pub(crate) fn distinct(view: &View) -> io::Result<u64> {
    // Tables change while we count: what is counted of each is what is in this copy of its keys.
    let tables: Vec<(Vec<Key>, Option<Span>)> = view
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
    let in_window = |key: &Key| {
        let at = windows.partition_point(|window| window.1 < key.1.time_ms);
        windows.get(at).is_some_and(|window| window.0 <= key.1.time_ms)
    };
    let mut sources: Vec<Source<'_, ()>> = Vec::new();
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
    Ok(sum - merge.replaced)
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
