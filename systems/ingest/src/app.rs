//! What all handlers share: the store, and how much may wait for it.
//!
//! A message has a place among those that wait, or is refused. Refusing costs half of what taking does, so an intake
//! that is offered five times what it holds would do little else but refuse if it refused everybody at once. So only
//! so many are refused a second; whoever is to be refused beyond that waits for his turn, or for a place, whichever
//! comes first. His connection is not read meanwhile: that slows down those who do not slow down by themselves.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use tidemark_service::{Pace, worker_index};
use tidemark_store::StoreError;
use tidemark_store::messages::{Message, MessageStore, Page, Query};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout_at;

use crate::refusal::Refusal;
use crate::room::Room;

/// Pages that are read from the store at the same time; the next one waits for one of them.
const PAGES_READ_MAX: usize = 8;
/// Messages that each worker refuses in a second: less than a tenth of its time, at 5 to 8 µs each.
const REFUSED_PER_S: u64 = 10_000;
/// Messages that each worker refuses at once after a time in which it refused none.
const REFUSED_AT_ONCE: u64 = 500;

/// The intake behind its routes.
pub(crate) struct App {
    pub(crate) store: MessageStore,
    /// Which workers have settled in the store.
    settled: Box<[AtomicBool]>,
    waiting_max: usize,
    /// Those of messages that may wait for the store. Who waits for one has the next.
    places: Semaphore,
    refusals: Pace,
    /// Refused here, before the store was asked.
    refused: AtomicU64,
    /// Those that wait to be refused or for a place, whichever comes first.
    held: AtomicUsize,
    /// Those of pages that are read.
    pages: Semaphore,
    pub(crate) room: Room,
}

/// One more in a count, until it is dropped.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn begin(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Counted(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl App {
    pub(crate) fn new(store: MessageStore, waiting_max: usize, workers: usize) -> Self {
        let settled = std::iter::repeat_with(AtomicBool::default).take(workers).collect();
        let workers = workers as u64;
        App {
            store,
            settled,
            waiting_max,
            places: Semaphore::new(waiting_max),
            refusals: Pace::new(REFUSED_PER_S * workers, REFUSED_AT_ONCE * workers),
            refused: AtomicU64::new(0),
            held: AtomicUsize::new(0),
            pages: Semaphore::new(PAGES_READ_MAX),
            room: Room::new(),
        }
    }

    /// Returns when the message is as durable as was promised.
    pub(crate) async fn take(&self, message: Message) -> Result<(), Refusal> {
        let place = match self.places.try_acquire() {
            Ok(place) => place,
            Err(_) => self.place_or_refusal().await?,
        };
        self.settle();
        let taken = self.store.add(message).await;
        drop(place);
        if let Err(StoreError::Busy { .. }) = taken {
            // it has counted the refusal, and may have room for nobody
            self.before_refusal(std::future::pending::<()>()).await;
        }
        Ok(taken?)
    }

    /// Reads a page when it is its turn. Others have theirs before anything of it is sent, at whatever pace.
    pub(crate) async fn page(&self, query: Query) -> Result<Page, Refusal> {
        let turn = self.pages.acquire().await;
        let _turn = turn.map_err(|_| Refusal::Unavailable("the server stops".into()))?;
        Ok(self.store.of_user(query).await?)
    }

    /// Tells the store of each worker once, as each has a runtime of its own.
    fn settle(&self) {
        if let Some(settled) = self.settled.get(worker_index())
            && !settled.load(Ordering::Relaxed)
            && !settled.swap(true, Ordering::Relaxed)
        {
            self.store.settle();
        }
    }

    async fn place_or_refusal(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let place = self.before_refusal(self.places.acquire()).await;
        place.and_then(Result::ok).ok_or_else(|| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            Refusal::Unavailable("too many messages wait; try again later".into())
        })
    }

    /// Takes a turn to be refused and waits for it, unless `better` comes first.
    async fn before_refusal<T>(&self, better: impl Future<Output = T>) -> Option<T> {
        let now = Instant::now();
        let turn = self.refusals.turn(now);
        if turn <= now {
            return None;
        }
        let _held = Counted::begin(&self.held);
        timeout_at(turn.into(), better).await.ok()
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting_max.saturating_sub(self.places.available_permits()) as u64
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Messages that are held back because too many wait.
    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidemark_store::Answer;
    use tidemark_store::StoreMetrics;
    use tidemark_store::messages::{MessageId, Messages, Page, Query};

    use std::pin::pin;

    use super::*;

    /// A store that answers when it is told to, and counts who settles.
    struct Gated(Semaphore, AtomicUsize);

    impl Gated {
        fn new() -> Arc<Self> {
            Arc::new(Gated(Semaphore::new(0), AtomicUsize::new(0)))
        }
    }

    impl Messages for Gated {
        fn add(&self, _message: Message) -> Answer<'_, ()> {
            Answer::boxed(async {
                self.0.acquire().await.map_err(|_| StoreError::Closed)?.forget();
                Ok(())
            })
        }

        fn count(&self) -> Answer<'_, u64> {
            Answer::ready(Ok(0))
        }

        fn of_user(&self, _query: Query) -> Answer<'_, Page> {
            Answer::ready(Ok(Page::default()))
        }

        fn settle(&self) {
            self.1.fetch_add(1, Ordering::Relaxed);
        }

        fn metrics(&self) -> StoreMetrics {
            StoreMetrics::default()
        }
    }

    /// Nobody else is refused for an hour.
    fn take_turns_of_an_hour(app: &App) {
        for _ in 0..3600 {
            let _ = app.refusals.turn(Instant::now());
        }
    }

    fn message(time_ms: u64) -> Message {
        Message { user: 1, time_ms, kind: *b"ABC", id: MessageId::NONE, payload: "x".into() }
    }

    #[test]
    fn who_may_not_be_refused_yet_is_held_and_has_the_next_place() {
        let store = Gated::new();
        let app = App { refusals: Pace::new(1, 1), ..App::new(store.clone(), 1, 1) };
        take_turns_of_an_hour(&app);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut first = pin!(app.take(message(1)));
            let mut second = pin!(app.take(message(2)));
            let mut third = pin!(app.take(message(3)));
            assert!(futures_pending(&mut [first.as_mut(), second.as_mut(), third.as_mut()]).await);
            assert_eq!((app.waiting(), app.held(), app.refused()), (1, 2, 0));
            store.0.add_permits(1);
            first.await.unwrap();
            // its place is for the second, not for whoever comes now
            let mut late = pin!(app.take(message(4)));
            assert!(futures_pending(&mut [late.as_mut(), third.as_mut(), second.as_mut()]).await);
            assert_eq!((app.waiting(), app.held()), (1, 2));
            store.0.add_permits(1);
            second.await.unwrap();
            store.0.add_permits(2);
            third.await.unwrap();
            late.await.unwrap();
        });
        assert_eq!((app.waiting(), app.held(), app.refused()), (0, 0, 0));
    }

    #[test]
    fn who_goes_away_leaves_no_place_taken_and_nobody_waiting() {
        let store = Gated::new();
        let app = App { refusals: Pace::new(1, 1), ..App::new(store.clone(), 1, 1) };
        take_turns_of_an_hour(&app);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let mut third = pin!(app.take(message(3)));
            {
                let mut first = pin!(app.take(message(1)));
                let mut second = pin!(app.take(message(2)));
                assert!(futures_pending(&mut [first.as_mut(), second.as_mut(), third.as_mut()]).await);
            }
            store.0.add_permits(1);
            third.await.unwrap();
        });
        assert_eq!((app.waiting(), app.held(), app.refused()), (0, 0, 0));
    }

    #[test]
    fn a_worker_settles_with_its_first_message() {
        let store = Gated::new();
        store.0.add_permits(3);
        let app = App::new(store.clone(), 1, 1);
        assert_eq!(store.1.load(Ordering::Relaxed), 0);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        for time_ms in 1..=3 {
            runtime.block_on(app.take(message(time_ms))).unwrap();
            assert_eq!(store.1.load(Ordering::Relaxed), 1);
        }
    }

    /// Polls each once; whether none is ready.
    async fn futures_pending(futures: &mut [std::pin::Pin<&mut dyn TakeFuture>]) -> bool {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(
                futures.iter_mut().all(|future| future.as_mut().poll(context).is_pending()),
            )
        })
        .await
    }

    trait TakeFuture: Future<Output = Result<(), Refusal>> {}
    impl<F: Future<Output = Result<(), Refusal>>> TakeFuture for F {}
}
