//! What all handlers share: the store, and how much may wait for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tidemark_store::messages::{Message, MessageStore};
use tokio::sync::Semaphore;

use crate::refusal::Refusal;

/// Pages that are made or sent at the same time; the next one waits for one of them.
const PAGES_MAX: usize = 8;

/// The intake behind its routes.
pub(crate) struct App {
    pub(crate) store: MessageStore,
    waiting_max: usize,
    waiting: AtomicUsize,
    /// Refused here, before the store was asked.
    refused: AtomicU64,
    pub(crate) pages: Arc<Semaphore>,
}

/// A message's place among those that wait.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl App {
    pub(crate) fn new(store: MessageStore, waiting_max: usize) -> Self {
        App {
            store,
            waiting_max,
            waiting: AtomicUsize::new(0),
            refused: AtomicU64::new(0),
            pages: Arc::new(Semaphore::new(PAGES_MAX)),
        }
    }

    /// Returns when the message is as durable as was promised.
    pub(crate) async fn take(&self, message: Message) -> Result<(), Refusal> {
        let before = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if before >= self.waiting_max {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(Refusal::Unavailable("too many messages wait; try again later".into()));
        }
        Ok(self.store.add(message).await?)
    }

    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed) as u64
    }

    pub(crate) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}
