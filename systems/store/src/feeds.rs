//! What participants post, and the feeds of their friends.
//!
//! A post stands in the outbound feed of its poster and, once it is delivered, in the inbound feed of each who was a
//! friend then. Both are read from the newest.

use std::sync::Arc;

use crate::answer::Answer;
use crate::error::StoreError;
use crate::metrics::StoreMetrics;

/// Longest subject, in bytes.
pub const SUBJECT_BYTES_MAX: usize = 1_000;
/// Longest story, in bytes.
pub const STORY_BYTES_MAX: usize = 15_000;
/// A page ends when its posts have so many bytes.
pub const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Inbound feeds show no posts older than this, in microseconds: 90 days.
pub const INBOUND_US: u64 = 90 * 24 * 3600 * 1_000_000;

impl Post {
    /// Bytes of its texts.
    pub fn bytes(&self) -> usize {
        self.subject.len() + self.story.len()
    }
}

/// Identifies a post: when it was posted, and who took it, so that two servers never give the same one. A later one is
/// greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PostId {
    /// Microseconds since 1970, different for each post that a server takes.
    pub at_us: u64,
    /// The server that took it, a random number.
    pub server: u64,
}

/// What somebody posted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Post {
    /// When, and which.
    pub id: PostId,
    /// Who.
    pub poster: u64,
    /// At most [`SUBJECT_BYTES_MAX`] bytes.
    pub subject: Arc<str>,
    /// At most [`STORY_BYTES_MAX`] bytes.
    pub story: Arc<str>,
}

/// A post and whose inbound feeds it goes into.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The post.
    pub post: Arc<Post>,
    /// The participants, each once.
    pub readers: Arc<[u64]>,
}

/// Which part of a feed is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FeedQuery {
    /// Whose.
    pub participant: u64,
    /// Only posts that stand behind this one, which are older.
    pub before: Option<PostId>,
    /// At most so many, at least one.
    pub limit: usize,
}

/// Part of a feed, the newest first.
#[derive(Debug, Clone, Default)]
pub struct FeedPage {
    /// The posts.
    pub posts: Vec<Arc<Post>>,
    /// Where the next page begins, if there is one: [`FeedQuery::before`].
    pub next: Option<PostId>,
}

/// Some of the posts that are noted as not delivered, from the oldest.
#[derive(Debug, Clone, Default)]
pub struct NotedPage {
    /// The posts.
    pub posts: Vec<Arc<Post>>,
    /// Notes whose post is not there: it was never acknowledged, or a replica is behind.
    pub missing: u64,
    /// The last note, if there may be more behind it.
    pub next: Option<PostId>,
}

/// Refuses texts that are too long.
pub(crate) fn check(post: &Post) -> Result<(), StoreError> {
    let within = |what, text: &str, max: usize| match text.len() <= max {
        true => Ok(()),
        false => {
            Err(StoreError::invalid(what, format!("it has {} bytes; at most {max} are kept", text.len())))
        }
    };
    within("the subject", &post.subject, SUBJECT_BYTES_MAX)?;
    within("the story", &post.story, STORY_BYTES_MAX)
}

/// Outbound and inbound feeds.
pub trait Feeds: Send + Sync {
    /// Puts a post into its poster's outbound feed and the inbound feeds of all readers. Acknowledged once it is in all
    /// of them; after an error it may be in some. The same again changes nothing.
    fn post(&self, delivery: Delivery) -> Answer<'_, ()>;

    /// Puts a post into its poster's outbound feed, and notes durably that it is not delivered yet.
    fn post_undelivered(&self, post: Arc<Post>) -> Answer<'_, ()>;

    /// Puts posts into the inbound feeds of their readers, and forgets that they were not delivered.
    fn deliver(&self, deliveries: Vec<Delivery>) -> Answer<'_, ()>;

    /// Posts that are not delivered yet, of at most `limit` notes behind `after`, from the oldest.
    fn undelivered(&self, after: Option<PostId>, limit: usize) -> Answer<'_, NotedPage>;

    /// What a participant has posted.
    fn outbound(&self, query: FeedQuery) -> Answer<'_, FeedPage>;

    /// What friends of a participant have posted, no older than [`INBOUND_US`] before `now_us`.
    fn inbound(&self, query: FeedQuery, now_us: u64) -> Answer<'_, FeedPage>;

    /// The newest post there is, as far as the store can tell at once: times of new ones begin behind it.
    fn newest(&self) -> Answer<'_, Option<PostId>>;

    /// Shows every story to whoever indexes them, from the oldest where the store has them in that order.
    fn each_story(&self, _each: &mut dyn FnMut(Post)) -> Result<(), StoreError> {
        Ok(())
    }

    /// The store's counters, now.
    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }
}
