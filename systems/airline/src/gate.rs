//! A bound on how many records of one kind the airline holds.

use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tidemark_store::StoreError;
use tokio::sync::Mutex;

use crate::refusal::Refusal;

/// Most writes between two looks at the store's count.
const LOOK_EVERY_MAX: u64 = 256;

/// A look that took longer is not repeated for [`PAUSE`] times as long: in a server of others, counting may read all.
const QUICK: Duration = Duration::from_millis(5);
const PAUSE: u32 = 20;

/// Lets writes through until there are too many records. It asks for the count now and then only, so that it may
/// be exceeded by a sixteenth, or by 256 if that is less; small bounds are kept exactly. Where a look takes long, large
/// ones also by what is written in twenty times as long.
#[derive(Debug)]
pub(crate) struct Gate {
    max: u64,
    look_every: u64,
    asked: AtomicU64,
    is_full: AtomicBool,
    next_look: Mutex<Instant>,
}

impl Gate {
    pub(crate) fn new(max: u64) -> Self {
        let look_every = (max / 16).clamp(1, LOOK_EVERY_MAX);
        Gate {
            max,
            look_every,
            asked: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            next_look: Mutex::new(Instant::now()),
        }
    }

    /// Whether one more may be written; `count` is asked for how many there are when it is time to look.
    pub(crate) async fn pass<F>(&self, what: &'static str, count: impl FnOnce() -> F) -> Result<(), Refusal>
    where
        F: Future<Output = Result<u64, StoreError>>,
    {
        if self.asked.fetch_add(1, Ordering::Relaxed).is_multiple_of(self.look_every) {
            self.look(count).await?;
        }
        if self.is_full.load(Ordering::Relaxed) {
            let text = format!("there are {} {what}, the most that are kept", self.max);
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text));
        }
        Ok(())
    }

    /// Asks how many there are. Of a large bound one at a time does, and not soon after it took long.
    async fn look<F>(&self, count: impl FnOnce() -> F) -> Result<(), Refusal>
    where
        F: Future<Output = Result<u64, StoreError>>,
    {
        if self.look_every < LOOK_EVERY_MAX {
            self.is_full.store(count().await? >= self.max, Ordering::Relaxed);
            return Ok(());
        }
        let Ok(mut next_look) = self.next_look.try_lock() else { return Ok(()) };
        let begun = Instant::now();
        if begun < *next_look {
            return Ok(());
        }
        self.is_full.store(count().await? >= self.max, Ordering::Relaxed);
        let took = begun.elapsed();
        if took > QUICK {
            *next_look = Instant::now() + took * PAUSE;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_closes_when_full_and_opens_again() {
        let gate = Gate::new(2);
        let with = async |count: u64| gate.pass("things", || async move { Ok(count) }).await;
        assert!(with(0).await.is_ok() && with(1).await.is_ok());
        let refusal = with(2).await.unwrap_err();
        assert_eq!(
            (refusal.status(), refusal.to_string().as_str()),
            (503, "there are 2 things, the most that are kept")
        );
        assert!(with(1).await.is_ok());
    }

    #[tokio::test]
    async fn it_looks_seldom_when_there_is_much_room() {
        let gate = Gate::new(1_000_000);
        let looks = AtomicU64::new(0);
        for _ in 0..1000 {
            let count = || async {
                looks.fetch_add(1, Ordering::Relaxed);
                Ok(0)
            };
            gate.pass("things", count).await.unwrap();
        }
        assert_eq!(looks.load(Ordering::Relaxed), 4);
    }

    #[tokio::test]
    async fn of_a_large_bound_one_at_a_time_looks() {
        let gate = Gate::new(1_000_000);
        let begun = AtomicU64::new(0);
        let endless = || async {
            begun.fetch_add(1, Ordering::Relaxed);
            std::future::pending().await
        };
        // it waits for its count for ever
        let mut first = Box::pin(gate.pass("things", endless));
        let waits =
            std::future::poll_fn(|context| std::task::Poll::Ready(first.as_mut().poll(context).is_pending()));
        assert!(waits.await);
        for _ in 0..1000 {
            gate.pass("things", endless).await.unwrap();
        }
        assert_eq!(begun.load(Ordering::Relaxed), 1);
        // given up, the next one looks
        drop(first);
        for _ in 0..LOOK_EVERY_MAX {
            gate.pass("things", || async {
                begun.fetch_add(1, Ordering::Relaxed);
                Ok(0)
            })
            .await
            .unwrap();
        }
        assert_eq!(begun.load(Ordering::Relaxed), 2);
    }
}
