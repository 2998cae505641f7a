//! Posts and feeds: tables in order. A post is stored once; feeds name it.

use std::io;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::engine::bytes::{Malformed, Reader, write_text};
use crate::engine::ordered::{Key, Ordered, OrderedRow, View};
use crate::engine::rows::{Keyed, Row};
use crate::feeds::{FeedPage, FeedQuery, INBOUND_US, PAGE_BYTES_MAX, Post, PostId};

fn write_id(PostId { at_us, server }: PostId, to: &mut Vec<u8>) {
    to.extend_from_slice(&at_us.to_be_bytes());
    to.extend_from_slice(&server.to_be_bytes());
}

fn read_id(bytes: &mut Reader<'_>) -> Result<PostId, Malformed> {
    Ok(PostId { at_us: u64::from_be_bytes(bytes.array()?), server: u64::from_be_bytes(bytes.array()?) })
}

impl Key for PostId {
    fn write(&self, to: &mut Vec<u8>) {
        write_id(*self, to);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        read_id(bytes)
    }

    fn locality(&self) -> u64 {
        self.at_us
    }
}

/// A post by its id.
pub(crate) struct Posted {
    id: PostId,
    value: Bytes,
}

impl Posted {
    pub(super) fn new(post: &Post) -> Self {
        let mut value = Vec::with_capacity(8 + 4 + post.subject.len() + post.story.len());
        value.extend_from_slice(&post.poster.to_le_bytes());
        write_text(&post.subject, &mut value);
        write_text(&post.story, &mut value);
        Posted { id: post.id, value: value.into() }
    }

    pub(super) fn post(&self) -> Result<Post, Malformed> {
        let mut value = Reader(&self.value);
        let poster = u64::from_le_bytes(value.array()?);
        Ok(Post { id: self.id, poster, subject: value.text()?.into(), story: value.text()?.into() })
    }
}

impl OrderedRow for Posted {
    const TABLE: u8 = 7;
    const NAME: &'static str = "posts";
    type Key = PostId;

    fn key(&self) -> PostId {
        self.id
    }

    fn value(&self) -> &[u8] {
        &self.value
    }

    fn of(id: PostId, value: Bytes) -> Self {
        Posted { id, value }
    }
}

/// Whose feed, then the newest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FeedKey(pub(super) u64, pub(super) PostId);

impl Ord for FeedKey {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0).then_with(|| other.1.cmp(&self.1))
    }
}

impl PartialOrd for FeedKey {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Key for FeedKey {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0.to_be_bytes());
        write_id(self.1, to);
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(FeedKey(u64::from_be_bytes(bytes.array()?), read_id(bytes)?))
    }

    fn locality(&self) -> u64 {
        self.1.at_us
    }
}

/// A post in its poster's outbound feed.
pub(crate) struct Outbound(pub(super) FeedKey);

impl OrderedRow for Outbound {
    const TABLE: u8 = 8;
    const NAME: &'static str = "outbound";
    type Key = FeedKey;

    fn key(&self) -> FeedKey {
        self.0
    }

    fn value(&self) -> &[u8] {
        &[]
    }

    fn of(key: FeedKey, _: Bytes) -> Self {
        Outbound(key)
    }
}

/// A post in the inbound feed of a friend.
pub(crate) struct Inbound(pub(super) FeedKey);

impl OrderedRow for Inbound {
    const TABLE: u8 = 9;
    const NAME: &'static str = "inbound";
    type Key = FeedKey;

    fn key(&self) -> FeedKey {
        self.0
    }

    fn value(&self) -> &[u8] {
        &[]
    }

    fn of(key: FeedKey, _: Bytes) -> Self {
        Inbound(key)
    }

    fn is_kept(FeedKey(_, id): &FeedKey, now_us: u64) -> bool {
        is_shown(*id, now_us)
    }
}

/// Whether an inbound feed still has a post of that time.
pub(super) fn is_shown(id: PostId, now_us: u64) -> bool {
    id.at_us.saturating_add(INBOUND_US) >= now_us
}

/// A post that is not in the feeds of friends yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Undelivered(pub(super) PostId);

impl Keyed for Undelivered {
    type Key = PostId;

    fn key(&self) -> &PostId {
        &self.0
    }
}

impl Row for Undelivered {
    const TABLE: u8 = 10;
    const NAME: &'static str = "undelivered";
    type Index = ();

    fn encode(&self, out: &mut Vec<u8>) {
        write_id(self.0, out);
    }

    fn decode(entry: &mut Reader<'_>) -> Result<Self, Malformed> {
        read_id(entry).map(Undelivered)
    }

    fn encode_key(id: &PostId, out: &mut Vec<u8>) {
        write_id(*id, out);
    }

    fn decode_key(entry: &mut Reader<'_>) -> Result<PostId, Malformed> {
        read_id(entry)
    }
}

/// The post with this id.
pub(super) fn post(posts: &View<PostId>, id: PostId) -> io::Result<Post> {
    let value = posts.get(&id)?;
    let malformed =
        |reason: &str| io::Error::new(io::ErrorKind::InvalidData, format!("post {id:?}: {reason}"));
    let value = value.ok_or_else(|| malformed("it is not there, but a feed has it"))?;
    Posted { id, value }.post().map_err(malformed)
}

/// Reads a part of a feed; posts are looked up as they are come to.
pub(super) fn page<R: OrderedRow<Key = FeedKey>>(
    feed: &Ordered<R>,
    posts: &Ordered<Posted>,
    query: FeedQuery,
    oldest: PostId,
) -> io::Result<FeedPage> {
    let FeedQuery { participant, before, limit } = query;
    let newest = PostId { at_us: u64::MAX, server: u64::MAX };
    let begin = match before {
        Some(before) => Bound::Excluded(FeedKey(participant, before)),
        None => Bound::Included(FeedKey(participant, newest)),
    };
    let end = FeedKey(participant, oldest);
    if matches!(begin, Bound::Included(begin) | Bound::Excluded(begin) if begin >= end) {
        return Ok(FeedPage::default());
    }
    // the feed first: what it names is in the posts by then, whose table begins a log before the feeds' do
    let rows = feed.view().rows::<R>(begin, Some(end));
    let mut page = FeedPage::default();
    let (mut view, mut bytes) = (None, 0);
    for row in rows {
        let FeedKey(_, id) = row?.key();
        if page.posts.len() >= limit.max(1) || bytes >= PAGE_BYTES_MAX {
            page.next = page.posts.last().map(|post| post.id);
            break;
        }
        let found = post(view.get_or_insert_with(|| posts.view()), id)?;
        bytes += found.bytes();
        page.posts.push(Arc::new(found));
    }
    Ok(page)
}
