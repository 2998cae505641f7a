//! Reading: a user's messages, how many there are, and all of them.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use scylla::client::session::Session;
use scylla::response::PagingState;
use scylla::response::query_result::QueryRowsResult;
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use super::link::Link;
use super::{TIME_MS_MAX, day_of};
use crate::error::StoreError;
use crate::messages::{DAY_MS, Message, MessageId, Page, Place, Query};

/// The ring is read in so many parts: small enough that one is over long before its time-out, and lost work is little.
const PARTS: usize = 256;
/// Parts read at once for a count.
const PARTS_AT_ONCE: usize = 8;
/// A page ends when its payloads have this many bytes.
const PAGE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// How often a page of a part is asked for before the part is given up, each time with the retries of its request …
pub(super) const PAGE_ATTEMPTS: u32 = 5;
/// … and how long is waited between.
pub(super) const PAGE_PAUSE: Duration = Duration::from_millis(500);

/// A part of the ring: the tokens above the first up to the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) above: i64,
    pub(super) up_to: i64,
}

/// What a page begins behind.
type Begin = (u64, Option<([u8; 3], MessageId)>);

/// The whole ring, cut into `parts` of equal size.
fn cut_ring(parts: usize) -> Vec<Part> {
    let cut =
        |index: usize| (i128::from(i64::MIN) + ((1i128 << 64) - 1) * index as i128 / parts as i128) as i64;
    (0..parts).map(|index| Part { above: cut(index), up_to: cut(index + 1) }).collect()
}

/// Every part of the store, to be read each by itself.
pub(super) fn parts() -> Vec<Part> {
    cut_ring(PARTS)
}

/// Hands over the answer to a statement page by page, as long as `take` wants more. Each page is asked for up to
/// `attempts` times and handed over once.
pub(super) async fn each_page(
    session: &Session,
    statement: &PreparedStatement,
    values: impl SerializeRow,
    attempts: u32,
    mut take: impl FnMut(QueryRowsResult) -> Result<ControlFlow<()>, StoreError>,
) -> Result<(), StoreError> {
    let mut state = PagingState::start();
    loop {
        let mut attempt = 1;
        let (page, more) = loop {
            match session.execute_single_page(statement, &values, state.clone()).await {
                Ok(page) => break page,
                Err(error) if attempt == attempts => return Err(StoreError::of_statement(&error)),
                Err(_) => tokio::time::sleep(PAGE_PAUSE).await,
            }
            attempt += 1;
        };
        if take(page.into_rows_result().map_err(StoreError::no_answer)?)?.is_break() {
            return Ok(());
        }
        match more.into_paging_control_flow() {
            ControlFlow::Break(()) => return Ok(()),
            ControlFlow::Continue(next) => state = next,
        }
    }
}

/// How many messages there are: each is read by its node, none is sent.
pub(super) async fn count(link: Arc<Link>, on: &Handle) -> Result<u64, StoreError> {
    let parts = Arc::new(parts());
    let next = Arc::new(AtomicUsize::new(0));
    let mut counting = JoinSet::new();
    for _ in 0..PARTS_AT_ONCE {
        let (link, parts, next) = (link.clone(), parts.clone(), next.clone());
        let work = async move {
            let mut sum = 0;
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                sum += count_part(&link, *part).await?;
            }
            Ok::<u64, StoreError>(sum)
        };
        counting.spawn_on(work, on);
    }
    let mut sum = 0;
    while let Some(counted) = counting.join_next().await {
        sum += counted.map_err(StoreError::no_answer)??;
    }
    Ok(sum)
}

async fn count_part(link: &Link, part: Part) -> Result<u64, StoreError> {
    let mut sum = 0;
    let values = (part.above, part.up_to);
    let counting = each_page(&link.session, &link.count, values, PAGE_ATTEMPTS, |page| {
        let (count,) = page.single_row::<(i64,)>().map_err(StoreError::no_answer)?;
        sum += count as u64;
        Ok(ControlFlow::Continue(()))
    });
    counting.await?;
    Ok(sum)
}

/// Hands the payload of every message in a part to `take`, each once; returns how many there were. An error may come
/// after some were handed over.
pub(super) async fn payloads(
    session: &Session,
    payloads: &PreparedStatement,
    part: Part,
    mut take: impl FnMut(&[u8]),
) -> Result<u64, StoreError> {
    let mut count = 0;
    let values = (part.above, part.up_to);
    let reading = each_page(session, payloads, values, PAGE_ATTEMPTS, |page| {
        for row in page.rows::<(&[u8],)>().map_err(StoreError::no_answer)? {
            let (payload,) = row.map_err(StoreError::no_answer)?;
            take(payload);
            count += 1;
        }
        Ok(ControlFlow::Continue(()))
    });
    reading.await?;
    Ok(count)
}

/// A page of a user's messages, day by day.
pub(super) async fn of_user(link: &Link, query: Query) -> Result<Page, StoreError> {
    let limit = query.limit.max(1);
    let (Some((mut begin, last_ms)), Ok(user)) = (range(&query), i64::try_from(query.user)) else {
        return Ok(Page::default());
    };
    let mut page = Page::default();
    let mut bytes = 0;
    for day in days(link, day_of(begin.0), day_of(last_ms)).await? {
        // one more than is wanted tells whether there are more
        let wanted = i32::try_from(limit - page.messages.len() + 1).unwrap_or(i32::MAX);
        // no kind is before every kind
        let (kind, id) = match &begin.1 {
            Some((kind, id)) => (&kind[..], &id.as_bytes()[..]),
            None => (&[][..], &[][..]),
        };
        let values = (user, day, begin.0 as i64, kind, id, last_ms as i64, wanted);
        let mut full = false;
        each_page(&link.session, &link.of_day, values, 1, |rows| {
            for row in rows.rows::<(i64, &[u8], &[u8], &[u8])>().map_err(StoreError::no_answer)? {
                let (time, kind, id, payload) = row.map_err(StoreError::no_answer)?;
                if page.messages.len() >= limit || bytes >= PAGE_BYTES_MAX {
                    full = true;
                    return Ok(ControlFlow::Break(()));
                }
                let (Ok(kind), Ok(id)) = (kind.try_into(), id.try_into()) else { continue };
                let place = Place { time_ms: time as u64, kind, id: MessageId::from_bytes(id) };
                bytes += payload.len();
                page.messages.push(Message::at(query.user, place, Bytes::copy_from_slice(payload)));
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
        if full || page.messages.len() >= limit {
            page.next = page.messages.last().map(Message::place);
            break;
        }
        begin = ((day as u64 + 1) * DAY_MS, None);
    }
    Ok(page)
}

/// Behind which time, kind and id to begin, and the last millisecond; nothing if nothing can be between them.
fn range(query: &Query) -> Option<(Begin, u64)> {
    let last_ms = query.to_ms.checked_sub(1)?.min(TIME_MS_MAX);
    let reached = query.after.map(|place| (place.time_ms, Some((place.kind, place.id))));
    let begin = reached.unwrap_or_default().max((query.from_ms, None));
    (begin.0 <= last_ms).then_some((begin, last_ms))
}

/// The days from `first` to `last` on which there are messages of anybody.
async fn days(link: &Link, first: i32, last: i32) -> Result<Vec<i32>, StoreError> {
    if first == last {
        return Ok(vec![first]);
    }
    let mut days = Vec::new();
    each_page(&link.session, &link.days, (first, last), 1, |page| {
        for row in page.rows::<(i32,)>().map_err(StoreError::no_answer)? {
            days.push(row.map_err(StoreError::no_answer)?.0);
        }
        Ok(ControlFlow::Continue(()))
    })
    .await?;
    Ok(days)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_parts_of_the_ring_meet_and_leave_nothing_out(parts in 1usize..2000) {
            let cut = cut_ring(parts);
            prop_assert_eq!(cut.len(), parts);
            prop_assert_eq!((cut[0].above, cut[parts - 1].up_to), (i64::MIN, i64::MAX));
            for pair in cut.windows(2) {
                prop_assert_eq!(pair[0].up_to, pair[1].above);
                prop_assert!(pair[0].above < pair[0].up_to);
            }
        }
    }

    const ALL: Query = Query { user: 1, from_ms: 0, to_ms: u64::MAX, after: None, limit: 10 };

    #[test]
    fn a_range_begins_with_its_first_time_or_behind_the_place_that_was_reached() {
        assert_eq!(range(&ALL), Some(((0, None), TIME_MS_MAX)));
        assert_eq!(range(&Query { from_ms: 5, to_ms: 9, ..ALL }), Some(((5, None), 8)));
        let id = MessageId::unique();
        let (reached, behind) = (Place { time_ms: 6, kind: *b"ABC", id }, Some((*b"ABC", id)));
        let reached = Query { after: Some(reached), ..ALL };
        assert_eq!(range(&Query { from_ms: 5, to_ms: 9, ..reached }), Some(((6, behind), 8)));
        assert_eq!(range(&Query { from_ms: 6, ..reached }).unwrap().0, (6, behind));
        assert_eq!(range(&Query { from_ms: 7, ..reached }).unwrap().0, (7, None));
        assert_eq!(range(&Query { to_ms: 0, ..ALL }), None);
        assert_eq!(range(&Query { from_ms: 9, to_ms: 5, ..ALL }), None);
    }
}
