//! The embedded store of a news feed: participants and friends in memory, feeds in order, one engine.
//!
//! A post and all that its delivery puts are one write: in the log together, or not at all.

mod feeds;
mod people;

use std::collections::HashMap;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use self::feeds::{FeedKey, Inbound, Outbound, Posted, Undelivered, page, post};
use self::people::{Friendship, pair};
use crate::answer::Answer;
use crate::durability::Durability;
use crate::engine::ordered::Ordered;
use crate::engine::rows::Rows;
use crate::engine::table::Tables;
use crate::engine::{Engine, LOG_BYTES, Options, describe};
use crate::error::StoreError;
use crate::feeds::{Delivery, FeedPage, FeedQuery, Feeds, INBOUND_US, NotedPage, Post, PostId, check};
use crate::metrics::{OwnMetric, StoreMetrics};
use crate::people::{Befriended, FRIENDS_MAX, Friend, Participant, People, check_name};

/// At most this many writes are taken and not answered; more wait for room.
const WAITING_MAX: usize = 16_384;
/// Bytes of the newest posts and feeds in memory, until they are written in order.
const TABLE_BYTES: usize = 64 * 1024 * 1024;
/// With `memory`, bytes of all posts and feeds: one more is refused.
const MEMORY_BYTES_MAX: usize = 1024 * 1024 * 1024;
/// Deliveries in one write have about so many readers at most.
const READERS_PER_WRITE: usize = 50_000;

/// Participants, friendships and feeds in this process, durable in one directory.
///
/// Dropping it commits what is queued, syncs, and unlocks the directory.
///
/// ```
/// use std::sync::Arc;
/// use tidemark_store::feeds::{Delivery, FeedQuery, Feeds, Post, PostId};
/// use tidemark_store::people::{Befriended, People};
/// use tidemark_store::{Durability, EmbeddedFeed};
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// # let dir = tempfile::tempdir().unwrap();
/// # let dir = dir.path();
/// let store = EmbeddedFeed::open(dir, Durability::Synced)?;
/// let (joe, ann) = (store.create("Joe".into()).await?, store.create("Ann".into()).await?);
/// assert_eq!(store.befriend(joe.id, ann.id).await?, Befriended::Friends(1));
///
/// let (subject, story) = ("Today".into(), "It rained.".into());
/// let post = Arc::new(Post { id: PostId { at_us: 7, server: 0 }, poster: joe.id, subject, story });
/// Feeds::post(&*store, Delivery { post: post.clone(), readers: [ann.id].into() }).await?; // on disk now
/// let query = FeedQuery { participant: ann.id, before: None, limit: 10 };
/// assert_eq!(store.inbound(query, 8).await?.posts, [post]);
/// # Ok::<(), tidemark_store::StoreError>(())
/// # }).unwrap();
/// ```
pub struct EmbeddedFeed {
    tables: Tables,
    participants: Arc<Rows<Participant>>,
    friendships: Arc<Rows<Friendship>>,
    posts: Arc<Ordered<Posted>>,
    outbound: Arc<Ordered<Outbound>>,
    inbound: Arc<Ordered<Inbound>>,
    undelivered: Arc<Rows<Undelivered>>,
    next_participant: AtomicU64,
    next_friendship: AtomicU64,
    /// Friendships that are being written, by their pair.
    being_made: Mutex<HashMap<(u64, u64), u64>>,
    /// Absent with [`Durability::Memory`].
    engine: Option<Engine>,
    durability: Durability,
}

impl EmbeddedFeed {
    /// Opens the store in `dir`, making it if need be, and reads back what is there. With [`Durability::Memory`] the
    /// directory is not touched and the store begins empty.
    ///
    /// # Errors
    /// The directory cannot be used, or what is in it cannot be read.
    pub fn open(dir: &Path, durability: Durability) -> Result<Arc<Self>, StoreError> {
        Self::open_with(dir, durability, TABLE_BYTES)
    }

    fn open_with(dir: &Path, durability: Durability, table_bytes: usize) -> Result<Arc<Self>, StoreError> {
        let mut store = Self::empty(durability);
        if durability != Durability::Memory {
            let options = Options {
                durability,
                waiting_max: WAITING_MAX,
                is_refusing: false,
                table_bytes,
                log_bytes_min: LOG_BYTES,
            };
            store.engine = Some(Engine::open(dir, options, store.tables.clone(), None)?);
            let greatest = |of: &AtomicU64| AtomicU64::new(of.load(Ordering::Relaxed) + 1);
            store.next_participant = greatest(&store.participants.index.greatest);
            store.next_friendship = greatest(&store.friendships.index.greatest);
        }
        Ok(Arc::new(store))
    }

    /// A store that is lost with the process.
    pub fn in_memory() -> Arc<Self> {
        Arc::new(Self::empty(Durability::Memory))
    }

    fn empty(durability: Durability) -> Self {
        let (participants, friendships, undelivered) = (Arc::default(), Arc::default(), Arc::default());
        let (posts, outbound, inbound) = (Arc::default(), Arc::default(), Arc::default());
        let tables = Tables::default().memory(&participants).memory(&friendships).memory(&undelivered);
        let tables = tables.ordered(&posts).ordered(&outbound).ordered(&inbound);
        if durability == Durability::Memory {
            tables.ordered.iter().for_each(|table| table.begin_log(0, 0));
        }
        EmbeddedFeed {
            tables,
            participants,
            friendships,
            posts,
            outbound,
            inbound,
            undelivered,
            next_participant: AtomicU64::new(1),
            next_friendship: AtomicU64::new(1),
            being_made: Mutex::default(),
            engine: None,
            durability,
        }
    }

    /// What an acknowledged write is worth here.
    pub fn durability(&self) -> Durability {
        self.durability
    }

    /// Takes a write: `write` writes its entries down and tells how many there are. All of them are kept or none.
    fn write<'a>(&'a self, write: impl Fn(&mut Vec<u8>) -> u32 + Send + 'a) -> Answer<'a, ()> {
        match &self.engine {
            Some(engine) => engine.submit(write, |_| ()),
            None => Answer::ready(self.apply(write)),
        }
    }

    /// Carries a write out that nothing keeps.
    fn apply(&self, write: impl Fn(&mut Vec<u8>) -> u32) -> Result<(), StoreError> {
        let held: usize = self.tables.ordered.iter().map(|table| table.active_bytes()).sum();
        if held > MEMORY_BYTES_MAX {
            return Err(StoreError::Busy { what: "memory for posts is full" });
        }
        let mut entries = Vec::new();
        write(&mut entries);
        self.tables.apply(&entries, &mut Vec::new()).expect("entries that were just written are read");
        Ok(())
    }

    /// Runs `read`, where it may read files, so that it holds up nobody.
    fn aside<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Answer<'static, T> {
        let Some(engine) = &self.engine else {
            return Answer::ready(read().map_err(|error| describe(Path::new(""), &error)));
        };
        let dir = engine.dir().to_owned();
        let read = move || read().map_err(|error| describe(&dir, &error));
        if self.inbound.has_no_runs() && self.outbound.has_no_runs() && self.posts.has_no_runs() {
            return Answer::ready(read());
        }
        Answer::boxed(
            async move { tokio::task::spawn_blocking(read).await.unwrap_or(Err(StoreError::Closed)) },
        )
    }

    fn is_there(&self, participant: u64) -> bool {
        self.participants.get(&participant, |_| ()).is_some()
    }
}

fn put_post(post: &Post, out: &mut Vec<u8>) -> u32 {
    Ordered::put(&Posted::new(post), out);
    Ordered::put(&Outbound(FeedKey(post.poster, post.id)), out);
    2
}

fn put_inbound(Delivery { post, readers }: &Delivery, out: &mut Vec<u8>) -> u32 {
    readers.iter().for_each(|reader| Ordered::put(&Inbound(FeedKey(*reader, post.id)), out));
    readers.len() as u32
}

impl People for EmbeddedFeed {
    fn create(&self, name: Arc<str>) -> Answer<'_, Participant> {
        if let Err(error) = check_name(&name) {
            return Answer::ready(Err(error));
        }
        let participant = Participant { id: self.next_participant.fetch_add(1, Ordering::Relaxed), name };
        Answer::boxed(async move {
            let put = |out: &mut Vec<u8>| {
                Rows::put(&participant, out);
                1
            };
            self.write(put).await?;
            Ok(participant.clone())
        })
    }

    fn find(&self, id: u64) -> Answer<'_, Option<Participant>> {
        Answer::ready(Ok(self.participants.get(&id, Participant::clone)))
    }

    fn named(&self, name: &str) -> Answer<'_, Vec<Participant>> {
        let ids = self.participants.index.of(name);
        Answer::ready(Ok(ids.iter().filter_map(|id| self.participants.get(id, Participant::clone)).collect()))
    }

    fn befriend(&self, from: u64, to: u64) -> Answer<'_, Befriended> {
        if let Some(missing) = [from, to].into_iter().find(|id| !self.is_there(*id)) {
            return Answer::ready(Ok(Befriended::NoSuchParticipant(missing)));
        }
        let pair = pair(from, to);
        if let Some(id) = self.friendships.get(&pair, |friendship| friendship.id) {
            return Answer::ready(Ok(Befriended::Friends(id)));
        }
        let lists = &self.friendships.index;
        if let Some(full) = [from, to].into_iter().find(|id| lists.count_of(*id) >= FRIENDS_MAX) {
            return Answer::ready(Ok(Befriended::TooManyFriends(full)));
        }
        // of two at the same time both write the same
        let next = || self.next_friendship.fetch_add(1, Ordering::Relaxed);
        let id = *self.being_made.lock().entry(pair).or_insert_with(next);
        Answer::boxed(async move {
            let put = |out: &mut Vec<u8>| {
                Rows::put(&Friendship { pair, id }, out);
                1
            };
            let written = self.write(put).await;
            self.being_made.lock().remove(&pair);
            written.map(|()| Befriended::Friends(id))
        })
    }

    fn friends(&self, id: u64) -> Answer<'_, Vec<Friend>> {
        Answer::ready(Ok(self.friendships.index.of(id)))
    }

    fn counts(&self) -> Answer<'_, [u64; 2]> {
        Answer::ready(Ok([self.participants.count(), self.friendships.count()]))
    }

    fn last(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.participants.index.greatest.load(Ordering::Relaxed)))
    }
}

impl Feeds for EmbeddedFeed {
    fn post(&self, delivery: Delivery) -> Answer<'_, ()> {
        match check(&delivery.post) {
            Ok(()) => self.write(move |out| put_post(&delivery.post, out) + put_inbound(&delivery, out)),
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn post_undelivered(&self, post: Arc<Post>) -> Answer<'_, ()> {
        match check(&post) {
            Ok(()) => self.write(move |out| {
                Rows::put(&Undelivered(post.id), out);
                put_post(&post, out) + 1
            }),
            Err(error) => Answer::ready(Err(error)),
        }
    }

    fn deliver(&self, deliveries: Vec<Delivery>) -> Answer<'_, ()> {
        Answer::boxed(async move {
            let mut rest = deliveries.as_slice();
            while !rest.is_empty() {
                let mut readers = 0;
                let fits = |delivery: &&Delivery| {
                    readers += delivery.readers.len();
                    readers <= READERS_PER_WRITE
                };
                let (some, behind) = rest.split_at(rest.iter().take_while(fits).count().max(1));
                let write = |out: &mut Vec<u8>| {
                    let each = some.iter().map(|delivery| {
                        Rows::<Undelivered>::remove(&delivery.post.id, out);
                        put_inbound(delivery, out) + 1
                    });
                    each.sum()
                };
                self.write(write).await?;
                rest = behind;
            }
            Ok(())
        })
    }

    fn undelivered(&self, after: Option<PostId>, limit: usize) -> Answer<'_, NotedPage> {
        let mut ids = Vec::new();
        self.undelivered.each(|Undelivered(id)| ids.extend(Some(*id).filter(|id| Some(*id) > after)));
        ids.sort_unstable();
        ids.truncate(limit);
        let next = ids.last().copied().filter(|_| ids.len() == limit);
        let posts = self.posts.clone();
        self.aside(move || {
            let view = posts.view();
            let posts: std::io::Result<_> = ids.into_iter().map(|id| post(&view, id).map(Arc::new)).collect();
            Ok(NotedPage { posts: posts?, missing: 0, next })
        })
    }

    fn outbound(&self, query: FeedQuery) -> Answer<'_, FeedPage> {
        let (feed, posts) = (self.outbound.clone(), self.posts.clone());
        self.aside(move || page(&feed, &posts, query, PostId { at_us: 0, server: 0 }))
    }

    fn inbound(&self, query: FeedQuery, now_us: u64) -> Answer<'_, FeedPage> {
        let (feed, posts) = (self.inbound.clone(), self.posts.clone());
        let oldest = PostId { at_us: now_us.saturating_sub(INBOUND_US), server: 0 };
        self.aside(move || page(&feed, &posts, query, oldest))
    }

    fn newest(&self) -> Answer<'_, Option<PostId>> {
        let posts = self.posts.clone();
        self.aside(move || {
            // the index of a file has its times, the rows themselves are not read
            Ok(posts.view().latest_time().map(|at_us| PostId { at_us, server: u64::MAX }))
        })
    }

    fn each_story(&self, each: &mut dyn FnMut(Post)) -> Result<(), StoreError> {
        let dir = self.engine.as_ref().map(Engine::dir).unwrap_or(Path::new(""));
        for row in self.posts.view().rows::<Posted>(Bound::Unbounded, None) {
            let malformed = |reason| std::io::Error::new(std::io::ErrorKind::InvalidData, reason);
            let post = row.and_then(|row| row.post().map_err(malformed));
            each(post.map_err(|error| describe(dir, &error))?);
        }
        Ok(())
    }

    fn metrics(&self) -> StoreMetrics {
        let own = OwnMetric::gauge;
        let bytes = [self.posts.view().table_bytes(), self.inbound.view().table_bytes()];
        let own = vec![
            own("participants", "Participants", self.participants.count()),
            own("friendships", "Friendships", self.friendships.count()),
            own("undelivered", "Posts that are not delivered yet", self.undelivered.count()),
            own("post_bytes", "Bytes of posts in memory, roughly", bytes[0] as u64),
            own("inbound_bytes", "Bytes of inbound feeds in memory, roughly", bytes[1] as u64),
        ];
        StoreMetrics { own, ..self.engine.as_ref().map(Engine::metrics).unwrap_or_default() }
    }
}

#[cfg(test)]
mod tests;
