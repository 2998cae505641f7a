//! Outbound and inbound feeds in Apache Cassandra.
//!
//! ```no_run
//! use tidemark_store::cassandra::{CassandraFeeds, Options};
//! use tidemark_store::feeds::{Delivery, Feeds, Post, PostId};
//!
//! # async fn example() -> Result<(), tidemark_store::StoreError> {
//! let store = CassandraFeeds::open(Options { keyspace: "activity".into(), ..Options::default() })?;
//! let id = PostId { at_us: 7, server: 0 };
//! let post = Post { id, poster: 1, subject: "Rain".into(), story: "All day.".into() };
//! store.post(Delivery { post: post.into(), readers: [2, 3].into() }).await?; // in three feeds
//! # Ok(()) }
//! ```
//!
//! A feed is one partition, clustered by the post's id as a timeuuid, the newest first. A post stands whole in each feed
//! that it is in, as published. Inbound rows go after 90 days, by the table's time to live.
//!
//! **Nothing lost.** A post is in its poster's feed before it is in others, and acknowledged when it is in all. Each row's
//! time of writing is the post's, so that it may be sent again: a copy that comes late changes nothing. What is to be
//! delivered later is noted in a table of its own, after the post and before the acknowledgement; the note is removed
//! when the last inbound feed has the post.
//!
//! **Order** is that of the ids, so that of the servers' clocks. Server numbers are random for each start, so no two
//! starts give one id; a server that starts with a clock that was set back gives ids before its last ones, until the
//! clock is where it was.
//!
//! Back-pressure, retries and what happens when nodes go are the same as for [messages](super).

mod link;
mod read;

use std::sync::Arc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use scylla::serialize::row::SerializeRow;
use scylla::statement::prepared::PreparedStatement;
use scylla::value::CqlTimeuuid;
use tokio::sync::{Semaphore, SemaphorePermit};

use super::kept::{Common, KeptLink};
use super::options::Options;
use super::sending::Sending;
use super::session::durability;
use super::timeuuid::{AT_US_END, least, timeuuid};
use crate::answer::Answer;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::feeds::{Delivery, FeedPage, FeedQuery, Feeds, INBOUND_US, NotedPage, Post, PostId, check};
use crate::metrics::{OwnMetric, StoreMetrics};
use crate::remote::Writes;
use crate::threads::Threads;
use link::FeedLink;

/// Rows of one post, or posts of one delivery, that are written or read at once.
const AT_ONCE: usize = 64;
/// Notes are spread over so many partitions.
const NOTE_PARTS: u64 = 16;

/// A store for feeds whose data is in Cassandra.
pub struct CassandraFeeds {
    link: Arc<KeptLink<FeedLink>>,
    durability: Durability,
    waiting_max: usize,
    /// One for each post that may be taken and not answered.
    room: Semaphore,
    sending: Sending,
    writes: Writes,
    /// Reads and writes the connections.
    threads: Threads,
}

/// A post, and what its rows have in common.
struct Written {
    post: Arc<Post>,
    poster: i64,
    occurred: CqlTimeuuid,
    /// The time of writing of all its rows.
    at_us: i64,
}

impl Written {
    fn new(post: Arc<Post>) -> Result<Self, StoreError> {
        check(&post)?;
        let occurred = timeuuid(post.id).ok_or_else(|| {
            StoreError::invalid(
                "the time of the post",
                format!("{} is not before {AT_US_END}", post.id.at_us),
            )
        })?;
        let poster = key(post.poster)?;
        Ok(Written { occurred, at_us: post.id.at_us as i64, poster, post })
    }

    /// The partition of its note.
    fn note_part(&self) -> i32 {
        (self.post.id.at_us % NOTE_PARTS) as i32
    }
}

fn key(participant: u64) -> Result<i64, StoreError> {
    i64::try_from(participant).map_err(|_| {
        StoreError::invalid("the number of the participant", format!("{participant} is too large"))
    })
}

impl CassandraFeeds {
    /// Connects and makes keyspace and tables where they are not there. Blocks; not to be called on a thread of an
    /// async runtime.
    ///
    /// # Errors
    /// Options that cannot work, nodes that cannot be reached, a keyspace with another replication or other tables.
    pub fn open(options: Options) -> Result<Arc<Self>, StoreError> {
        options.check()?;
        let threads = Threads::new(options.threads, "cassandra-feeds")?;
        let common = Common::new(options);
        let options = &common.options;
        let (link, durability) = threads.block_on(async {
            let link = FeedLink::open(options, common.attempts.clone()).await?;
            let durability = durability(&link.session, &options.keyspace).await?;
            Ok::<_, StoreError>((link, durability))
        })?;
        let waiting_max = options.waiting_max;
        let sending = Sending::new(common.clone());
        let link = KeptLink::new(link, common);
        threads.spawn(KeptLink::keep(Arc::downgrade(&link), true));
        Ok(Arc::new(CassandraFeeds {
            link,
            durability,
            waiting_max,
            room: Semaphore::new(waiting_max),
            sending,
            writes: Writes::default(),
            threads,
        }))
    }

    /// What an acknowledged post is worth on the weakest node, as it was when the store was opened.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Room for a post, or why there is none.
    fn room(&self) -> Result<SemaphorePermit<'_>, StoreError> {
        self.room.try_acquire().map_err(|_| {
            self.writes.refused();
            StoreError::Busy { what: "as many posts wait as may" }
        })
    }

    /// Takes a post: what is to be done about it is done by `work`.
    fn take<'a, F>(&'a self, post: Arc<Post>, work: impl FnOnce(Written) -> F) -> Answer<'a, ()>
    where
        F: Future<Output = Result<(), StoreError>> + Send + 'a,
    {
        let taken = Written::new(post).and_then(|written| Ok((written, self.room()?)));
        let (written, room) = match taken {
            Ok(taken) => taken,
            Err(error) => return Answer::ready(Err(error)),
        };
        let work = work(written);
        Answer::boxed(async move {
            let _room = room;
            let begun = Instant::now();
            let outcome = work.await;
            self.writes.answered(begun.elapsed(), outcome.is_ok());
            outcome
        })
    }

    /// Sends a write when it is its turn.
    async fn send(
        &self,
        statement: fn(&FeedLink) -> &PreparedStatement,
        values: impl SerializeRow,
    ) -> Result<(), StoreError> {
        let _turn = self.sending.turn().await?;
        let link = self.link.now();
        let sent = link.session.execute_unpaged(statement(&link), values).await;
        sent.map(drop).map_err(|error| self.sending.failed(&error))
    }

    async fn put_outbound(&self, written: &Written) -> Result<(), StoreError> {
        let Written { post, poster, occurred, at_us } = written;
        let values = (*poster, *occurred, &*post.subject, &*post.story, *at_us);
        self.send(|link| &link.put_outbound, values).await
    }

    async fn put_inbound(&self, written: &Written, reader: u64) -> Result<(), StoreError> {
        let Written { post, poster, occurred, at_us } = written;
        let values = (key(reader)?, *occurred, *poster, &*post.subject, &*post.story, *at_us);
        self.send(|link| &link.put_inbound, values).await
    }

    /// Puts a post into the feeds of its readers.
    async fn fan_out(&self, written: &Written, readers: &[u64]) -> Result<(), StoreError> {
        let putting = readers.iter().copied().map(|reader| self.put_inbound(written, reader));
        stream::iter(putting).buffer_unordered(AT_ONCE).try_collect::<()>().await
    }

    async fn note(&self, written: &Written) -> Result<(), StoreError> {
        let values = (written.note_part(), written.occurred, written.poster, written.at_us);
        self.send(|link| &link.note, values).await
    }

    async fn deliver_one(&self, Delivery { post, readers }: Delivery) -> Result<(), StoreError> {
        let written = Written::new(post)?;
        self.fan_out(&written, &readers).await?;
        // of a note and its removal with one time of writing the removal stays, whichever comes first
        let values = (written.at_us, written.note_part(), written.occurred);
        self.send(|link| &link.remove_note, values).await
    }
}

impl Feeds for CassandraFeeds {
    fn post(&self, delivery: Delivery) -> Answer<'_, ()> {
        let Delivery { post, readers } = delivery;
        self.take(post, |written| async move {
            self.put_outbound(&written).await?;
            self.fan_out(&written, &readers).await
        })
    }

    fn post_undelivered(&self, post: Arc<Post>) -> Answer<'_, ()> {
        self.take(post, |written| async move {
            self.put_outbound(&written).await?;
            self.note(&written).await
        })
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> Answer<'_, ()> {
        Answer::boxed(async move {
            let delivering = deliveries.into_iter().map(|delivery| self.deliver_one(delivery));
            stream::iter(delivering).buffer_unordered(AT_ONCE).try_collect::<()>().await
        })
    }

    fn undelivered(&self, after: Option<PostId>, limit: usize) -> Answer<'_, NotedPage> {
        let link = self.link.now();
        Answer::boxed(async move {
            let notes = read::notes(&link, after, limit).await?;
            let next = notes.last().map(|(id, _)| *id).filter(|_| notes.len() == limit);
            let count = notes.len();
            let posts = read::noted(&link, notes).await?;
            Ok(NotedPage { missing: (count - posts.len()) as u64, posts, next })
        })
    }

    fn outbound(&self, query: FeedQuery) -> Answer<'_, FeedPage> {
        let link = self.link.now();
        Answer::boxed(async move { read::page(&link, &link.outbound, query, least()).await })
    }

    fn inbound(&self, query: FeedQuery, now_us: u64) -> Answer<'_, FeedPage> {
        let link = self.link.now();
        let oldest = PostId { at_us: now_us.saturating_sub(INBOUND_US), server: 0 };
        let oldest = timeuuid(oldest).unwrap_or_else(least);
        Answer::boxed(async move { read::page(&link, &link.inbound, query, oldest).await })
    }

    /// Not told: it would be a question to every partition.
    fn newest(&self) -> Answer<'_, Option<PostId>> {
        Answer::ready(Ok(None))
    }

    fn each_story(&self, each: &mut dyn FnMut(Post)) -> Result<(), StoreError> {
        self.threads.block_on(read::each_story(&self.link.now(), each))
    }

    fn metrics(&self) -> StoreMetrics {
        let own: Vec<OwnMetric> = self.sending.metrics(&self.link.now().session);
        StoreMetrics {
            queue_depth: (self.waiting_max - self.room.available_permits()) as u64,
            queue_depth_max: self.waiting_max as u64,
            own,
            ..self.writes.snapshot()
        }
    }
}
