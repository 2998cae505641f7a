//! Fan-out behind the answer: posts that are durable and noted as not delivered wait here, in bounds, until they are in
//! the inbound feeds.
//!
//! What was taken and not delivered when a process ends is delivered when the next one starts, before it serves.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_store::StoreError;
use tidemark_store::feeds::{Delivery, Feeds, Post};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::timeout;

use crate::live::Live;
use crate::operations::{Operation, Operations};
use crate::people::CachedPeople;
use crate::refusal::Refusal;

/// Posts that are delivered together.
const BATCH_MAX: usize = 256;
/// Posts that are read together at the start.
const RECOVERY_BATCH: usize = 1_000;
/// Most readers of all posts that wait, 8 bytes each; a post with more would still have its turn.
const READERS_MAX: usize = 4 * 1024 * 1024;
/// Until a store that failed is asked again.
const PAUSE: Duration = Duration::from_millis(200);

const LATE: &str = "inbound feeds are further behind than they may be; try again later";

/// One post always fits.
fn permits(readers: usize) -> u32 {
    readers.min(READERS_MAX) as u32
}

/// Room for one post that is not delivered yet, and its readers.
pub(crate) struct Room {
    _post: OwnedSemaphorePermit,
    _readers: OwnedSemaphorePermit,
}

/// A post that waits, and since when.
type Waiting = (Delivery, Room, Instant);

/// Where posts wait for their delivery.
pub(crate) struct Deliveries {
    room: Arc<Semaphore>,
    readers: Arc<Semaphore>,
    waiting_max: usize,
    within: Duration,
    /// In the order in which they were taken.
    sender: mpsc::UnboundedSender<Waiting>,
    receiver: Mutex<Option<mpsc::UnboundedReceiver<Waiting>>>,
    /// Since when the oldest waits, if one does.
    oldest: Mutex<Option<Instant>>,
    pub(crate) failures: AtomicU64,
}

/// What a delivery needs.
pub(crate) struct Means {
    pub(crate) operations: Arc<Operations>,
    pub(crate) feeds: Arc<dyn Feeds>,
    pub(crate) live: Arc<Live>,
}

/// The posts with those whose inbound feeds they go into: the friends that there are now.
async fn deliveries(people: &CachedPeople, posts: Vec<Arc<Post>>) -> Result<Vec<Delivery>, StoreError> {
    let mut deliveries = Vec::new();
    for post in posts {
        let friends = people.friends(post.poster).await?;
        let readers = friends.iter().map(|friend| friend.participant).collect();
        deliveries.push(Delivery { post, readers });
    }
    Ok(deliveries)
}

/// Delivers all that an earlier process left, page by page: a note whose post is not there stays, and hides none.
pub(crate) async fn recover(people: &CachedPeople, feeds: &dyn Feeds) -> Result<u64, StoreError> {
    let (mut delivered, mut missing, mut after) = (0, 0, None);
    loop {
        let page = feeds.undelivered(after, RECOVERY_BATCH).await?;
        delivered += page.posts.len() as u64;
        missing += page.missing;
        feeds.deliver(deliveries(people, page.posts).await?).await?;
        after = page.next;
        // these were all; other servers on the same store go on posting
        if after.is_none() {
            break;
        }
    }
    if missing > 0 {
        tracing::warn!(
            missing,
            "posts are noted as undelivered and are not there: they were never acknowledged, or a node is behind; \
             the next start looks again"
        );
    }
    Ok(delivered)
}

impl Deliveries {
    /// At most `waiting_max` posts wait; while the oldest has waited longer than `within` no more is taken.
    pub(crate) fn new(waiting_max: usize, within: Duration) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Deliveries {
            room: Arc::new(Semaphore::new(waiting_max)),
            readers: Arc::new(Semaphore::new(READERS_MAX)),
            waiting_max,
            within,
            sender,
            receiver: Mutex::new(Some(receiver)),
            oldest: Mutex::new(None),
            failures: AtomicU64::new(0),
        }
    }

    /// How many posts are not delivered yet.
    pub(crate) fn behind(&self) -> u64 {
        (self.waiting_max - self.room.available_permits()) as u64
    }

    /// Room for one more with so many readers, if there is some at once.
    pub(crate) fn room_now(&self, readers: usize) -> Result<Option<Room>, Refusal> {
        if self.oldest.lock().is_some_and(|oldest| oldest.elapsed() > self.within) {
            return Err(Refusal::unavailable(LATE));
        }
        let readers = self.readers.clone().try_acquire_many_owned(permits(readers));
        let post = self.room.clone().try_acquire_owned();
        Ok(readers.ok().zip(post.ok()).map(|(readers, post)| Room { _post: post, _readers: readers }))
    }

    /// The same, which whoever posts waits for, within the bound.
    pub(crate) async fn room(&self, readers: usize) -> Result<Room, Refusal> {
        let both = async {
            let readers = self.readers.clone().acquire_many_owned(permits(readers)).await.ok()?;
            let post = self.room.clone().acquire_owned().await.ok()?;
            Some(Room { _post: post, _readers: readers })
        };
        timeout(self.within, both).await.ok().flatten().ok_or_else(|| Refusal::unavailable(LATE))
    }

    /// Takes a post that is durable, and noted as not delivered.
    pub(crate) fn take(&self, delivery: Delivery, room: Room) {
        let now = Instant::now();
        self.oldest.lock().get_or_insert(now);
        // who receives lives as long as the server
        let _ = self.sender.send((delivery, room, now));
    }

    /// Delivers what is taken, until it is dropped.
    pub(crate) async fn work(self: Arc<Self>, means: Means) {
        let Some(mut receiver) = self.receiver.lock().take() else { return };
        let mut some = Vec::new();
        loop {
            if receiver.is_empty() {
                *self.oldest.lock() = None;
            }
            if receiver.recv_many(&mut some, BATCH_MAX).await == 0 {
                return;
            }
            *self.oldest.lock() = some.first().map(|(_, _, since)| *since);
            let delivered = loop {
                let deliveries = some.iter().map(|(delivery, ..)| delivery.clone()).collect();
                match deliver(&means, deliveries).await {
                    Ok(delivered) => break delivered,
                    Err(error) => {
                        if self.failures.fetch_add(1, Ordering::Relaxed) == 0 {
                            tracing::warn!(%error, "posts could not be delivered; they are tried again until they are");
                        }
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            };
            delivered.iter().for_each(|delivery| means.live.tell(delivery));
            some.clear();
        }
    }
}

async fn deliver(
    Means { operations, feeds, .. }: &Means,
    deliveries: Vec<Delivery>,
) -> Result<Vec<Delivery>, StoreError> {
    let count = deliveries.iter().map(|delivery| delivery.readers.len()).sum();
    let began = Instant::now();
    feeds.deliver(deliveries.clone()).await?;
    operations.enter(Operation::InboundStore, count, began.elapsed());
    Ok(deliveries)
}

#[cfg(test)]
mod tests {
    use tidemark_store::feeds::{FeedPage, FeedQuery, NotedPage, PostId};
    use tidemark_store::people::People;
    use tidemark_store::{Answer, EmbeddedFeed};

    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn post(at_us: u64) -> Arc<Post> {
        Arc::new(Post { id: PostId { at_us, server: 1 }, poster: 1, subject: "s".into(), story: "s".into() })
    }

    fn taken(within: Duration, at_us: u64) -> Deliveries {
        let deliveries = Deliveries::new(10, within);
        let room = deliveries.room_now(1).unwrap().unwrap();
        let before = Instant::now();
        deliveries.take(Delivery { post: post(at_us), readers: [2].into() }, room);
        while before.elapsed() < Duration::from_millis(1) {
            std::hint::spin_loop();
        }
        deliveries
    }

    #[test]
    fn how_long_a_post_waits_is_not_told_by_its_id() {
        assert!(taken(HOUR, 1).room_now(1).unwrap().is_some(), "its id is from 1970, and it has just come");
        let late = taken(Duration::ZERO, u64::MAX / 2).room_now(1);
        assert_eq!(late.err().unwrap().error, LATE, "its id is from the future, and it waits");
    }

    #[tokio::test]
    async fn readers_are_bounded_as_posts_are() {
        let deliveries = Deliveries::new(3, Duration::from_millis(1));
        let large = deliveries.room_now(usize::MAX).unwrap().expect("one always fits");
        assert_eq!(deliveries.behind(), 1);
        assert!(deliveries.room_now(1).unwrap().is_none() && deliveries.room(1).await.is_err());
        assert_eq!(deliveries.behind(), 1);
        drop(large);
        let all: Vec<_> = (0..3).map(|_| deliveries.room_now(1).unwrap().unwrap()).collect();
        assert!(deliveries.room_now(0).unwrap().is_none() && deliveries.room(0).await.is_err());
        drop(all);
        assert!(deliveries.room(READERS_MAX).await.is_ok() && deliveries.behind() == 0);
    }

    /// The first page of notes has no post.
    struct Orphans(Arc<EmbeddedFeed>);

    impl Feeds for Orphans {
        fn post(&self, delivery: Delivery) -> Answer<'_, ()> {
            Feeds::post(&*self.0, delivery)
        }

        fn post_undelivered(&self, post: Arc<Post>) -> Answer<'_, ()> {
            self.0.post_undelivered(post)
        }

        fn deliver(&self, deliveries: Vec<Delivery>) -> Answer<'_, ()> {
            self.0.deliver(deliveries)
        }

        fn undelivered(&self, after: Option<PostId>, limit: usize) -> Answer<'_, NotedPage> {
            let next = Some(PostId { at_us: 1, server: 1 });
            match after {
                None => Answer::ready(Ok(NotedPage { posts: Vec::new(), missing: limit as u64, next })),
                after => self.0.undelivered(after, limit),
            }
        }

        fn outbound(&self, query: FeedQuery) -> Answer<'_, FeedPage> {
            self.0.outbound(query)
        }

        fn inbound(&self, query: FeedQuery, now_us: u64) -> Answer<'_, FeedPage> {
            self.0.inbound(query, now_us)
        }

        fn newest(&self) -> Answer<'_, Option<PostId>> {
            self.0.newest()
        }
    }

    #[tokio::test]
    async fn notes_without_a_post_hide_none_behind_them() {
        let store = EmbeddedFeed::in_memory();
        for name in ["joe", "ann"] {
            store.create(name.into()).await.unwrap();
        }
        store.befriend(1, 2).await.unwrap();
        store.post_undelivered(post(7)).await.unwrap();
        let operations = Arc::new(Operations::new(None));
        let people = CachedPeople { store: store.clone(), cache: None, operations };
        assert_eq!(recover(&people, &Orphans(store.clone())).await.unwrap(), 1);
        let query = FeedQuery { participant: 2, before: None, limit: 10 };
        assert_eq!(store.inbound(query, 7).await.unwrap().posts, [post(7)]);
    }
}
