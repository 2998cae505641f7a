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

use crate::ids::now_us;
use crate::live::Live;
use crate::operations::{Operation, Operations};
use crate::people::CachedPeople;
use crate::refusal::Refusal;

/// Posts that are delivered together.
const BATCH_MAX: usize = 256;
/// Posts that are read together at the start.
const RECOVERY_BATCH: usize = 1_000;
/// Until a store that failed is asked again.
const PAUSE: Duration = Duration::from_millis(200);

/// Room for one post that is not delivered yet.
pub(crate) struct Room {
    _permit: OwnedSemaphorePermit,
}

/// Posts in the order in which they were taken.
type Waiting = mpsc::UnboundedReceiver<(Delivery, Room)>;

/// Where posts wait for their delivery.
pub(crate) struct Deliveries {
    room: Arc<Semaphore>,
    waiting_max: usize,
    within: Duration,
    sender: mpsc::UnboundedSender<(Delivery, Room)>,
    receiver: Mutex<Option<Waiting>>,
    /// When the oldest that waits was posted; 0 if none does.
    oldest_us: AtomicU64,
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

/// Delivers all that an earlier process left.
pub(crate) async fn recover(people: &CachedPeople, feeds: &dyn Feeds) -> Result<u64, StoreError> {
    let mut delivered = 0;
    loop {
        let posts = feeds.undelivered(RECOVERY_BATCH).await?;
        let count = posts.len();
        delivered += count as u64;
        feeds.deliver(deliveries(people, posts).await?).await?;
        // these were all; other servers on the same store go on posting
        if count < RECOVERY_BATCH {
            return Ok(delivered);
        }
    }
}

impl Deliveries {
    /// At most `waiting_max` posts wait; while the oldest has waited longer than `within` no more is taken.
    pub(crate) fn new(waiting_max: usize, within: Duration) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Deliveries {
            room: Arc::new(Semaphore::new(waiting_max)),
            waiting_max,
            within,
            sender,
            receiver: Mutex::new(Some(receiver)),
            oldest_us: AtomicU64::new(0),
            failures: AtomicU64::new(0),
        }
    }

    /// How many posts are not delivered yet.
    pub(crate) fn behind(&self) -> u64 {
        (self.waiting_max - self.room.available_permits()) as u64
    }

    /// Room for one more, which whoever posts waits for, within the bound.
    pub(crate) async fn room(&self) -> Result<Room, Refusal> {
        let late = "inbound feeds are further behind than they may be; try again later";
        let oldest_us = self.oldest_us.load(Ordering::Relaxed);
        if oldest_us > 0 && now_us().saturating_sub(oldest_us) > self.within.as_micros() as u64 {
            return Err(Refusal::unavailable(late));
        }
        match timeout(self.within, self.room.clone().acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Room { _permit: permit }),
            _ => Err(Refusal::unavailable(late)),
        }
    }

    /// Takes a post that is durable, and noted as not delivered.
    pub(crate) fn take(&self, delivery: Delivery, room: Room) {
        let at_us = delivery.post.id.at_us;
        let _ = self.oldest_us.compare_exchange(0, at_us, Ordering::Relaxed, Ordering::Relaxed);
        // who receives lives as long as the server
        let _ = self.sender.send((delivery, room));
    }

    /// Delivers what is taken, until it is dropped.
    pub(crate) async fn work(self: Arc<Self>, means: Means) {
        let Some(mut receiver) = self.receiver.lock().take() else { return };
        let mut some = Vec::new();
        loop {
            if receiver.is_empty() {
                self.oldest_us.store(0, Ordering::Relaxed);
            }
            if receiver.recv_many(&mut some, BATCH_MAX).await == 0 {
                return;
            }
            let oldest = some.iter().map(|(delivery, _)| delivery.post.id.at_us).min();
            self.oldest_us.store(oldest.unwrap_or(0), Ordering::Relaxed);
            let delivered = loop {
                let deliveries = some.iter().map(|(delivery, _)| delivery.clone()).collect();
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
