//! Reading: a part of a feed, what is not delivered, and every story.

use std::ops::ControlFlow;
use std::sync::Arc;

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt, TryStreamExt};
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimeuuid;

use super::super::read::{PAGE_ATTEMPTS, each_page, parts};
use super::super::timeuuid::{greatest, id, least, timeuuid};
use super::link::FeedLink;
use super::{AT_ONCE, NOTE_PARTS};
use crate::error::StoreError;
use crate::feeds::{FeedPage, FeedQuery, PAGE_BYTES_MAX, Post, PostId};

/// When, who, subject and story.
type Row<'a> = (CqlTimeuuid, i64, Option<&'a str>, Option<&'a str>);

/// The post of a row; none where another program wrote it.
fn post((occurred, poster, subject, story): Row<'_>) -> Option<Post> {
    let (subject, story) = (subject.unwrap_or_default().into(), story.unwrap_or_default().into());
    Some(Post { id: id(occurred)?, poster: poster as u64, subject, story })
}

/// A part of the feed that `statement` reads, with nothing before `oldest`.
pub(super) async fn page(
    link: &FeedLink,
    statement: &PreparedStatement,
    query: FeedQuery,
    oldest: CqlTimeuuid,
) -> Result<FeedPage, StoreError> {
    let limit = query.limit.max(1);
    let Ok(participant) = i64::try_from(query.participant) else { return Ok(FeedPage::default()) };
    // a time that no post can have is behind them all
    let before = query.before.and_then(timeuuid).unwrap_or_else(greatest);
    // one more than is wanted tells whether there are more
    let wanted = i32::try_from(limit).unwrap_or(i32::MAX).saturating_add(1);
    let (mut page, mut bytes) = (FeedPage::default(), 0);
    each_page(&link.session, statement, (participant, before, oldest, wanted), 1, |rows| {
        for row in rows.rows::<Row<'_>>().map_err(StoreError::no_answer)? {
            let Some(post) = post(row.map_err(StoreError::no_answer)?) else { continue };
            if page.posts.len() >= limit || bytes >= PAGE_BYTES_MAX {
                page.next = page.posts.last().map(|post| post.id);
                return Ok(ControlFlow::Break(()));
            }
            bytes += post.bytes();
            page.posts.push(Arc::new(post));
        }
        Ok(ControlFlow::Continue(()))
    })
    .await?;
    Ok(page)
}

/// Ids and posters of posts that are not delivered, from the oldest behind `after`, at most so many.
pub(super) async fn notes(
    link: &FeedLink,
    after: Option<PostId>,
    limit: usize,
) -> Result<Vec<(PostId, i64)>, StoreError> {
    let after = after.and_then(timeuuid).unwrap_or_else(least);
    let wanted = i32::try_from(limit).unwrap_or(i32::MAX);
    let of_part = async |part: i32| {
        let mut notes = Vec::new();
        each_page(&link.session, &link.notes, (part, after, wanted), 1, |rows| {
            for row in rows.rows::<(CqlTimeuuid, i64)>().map_err(StoreError::no_answer)? {
                let (occurred, poster) = row.map_err(StoreError::no_answer)?;
                notes.extend(id(occurred).map(|id| (id, poster)));
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
        Ok::<_, StoreError>(notes)
    };
    let mut notes = try_join_all((0..NOTE_PARTS as i32).map(of_part)).await?.concat();
    notes.sort_unstable();
    notes.truncate(limit);
    Ok(notes)
}

/// The posts that notes are of, as far as they are there.
pub(super) async fn noted(link: &FeedLink, notes: Vec<(PostId, i64)>) -> Result<Vec<Arc<Post>>, StoreError> {
    let reading = notes.into_iter().map(|(id, poster)| one(link, id, poster));
    let found: Vec<Option<Post>> = stream::iter(reading).buffered(AT_ONCE).try_collect().await?;
    Ok(found.into_iter().flatten().map(Arc::new).collect())
}

async fn one(link: &FeedLink, id: PostId, poster: i64) -> Result<Option<Post>, StoreError> {
    let mut found = None;
    each_page(&link.session, &link.one_outbound, (poster, timeuuid(id)), 1, |rows| {
        let row = rows.maybe_first_row::<Row<'_>>().map_err(StoreError::no_answer)?;
        found = row.and_then(post);
        Ok(ControlFlow::Break(()))
    })
    .await?;
    Ok(found)
}

/// Every story, part of the ring by part of the ring, and of each participant from the newest.
pub(super) async fn each_story(link: &FeedLink, each: &mut dyn FnMut(Post)) -> Result<(), StoreError> {
    for part in parts() {
        let values = (part.above, part.up_to);
        each_page(&link.session, &link.stories, values, PAGE_ATTEMPTS, |rows| {
            for row in rows.rows::<Row<'_>>().map_err(StoreError::no_answer)? {
                if let Some(post) = post(row.map_err(StoreError::no_answer)?) {
                    each(post);
                }
            }
            Ok(ControlFlow::Continue(()))
        })
        .await?;
    }
    Ok(())
}
