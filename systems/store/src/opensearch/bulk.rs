//! Stories on their way into the index: those that gather while a request is under way go with the next one.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::Server;
use crate::error::StoreError;

/// Stories of one request: at most some 45 MB of JSON, where a server takes 100 MB.
const STORIES_MAX: usize = 500;
/// Bytes of JSON that wait.
const BYTES_MAX: usize = 64 << 20;

/// A story that waits for its answer.
struct Story {
    json: Bytes,
    answer: oneshot::Sender<Result<(), StoreError>>,
    _bytes: OwnedSemaphorePermit,
}

/// Takes stories, in bounds.
pub(super) struct Bulk {
    sender: mpsc::Sender<Story>,
    bytes: Arc<Semaphore>,
}

/// Carries them out.
pub(super) struct Sender {
    receiver: mpsc::Receiver<Story>,
}

impl Bulk {
    pub(super) fn new(waiting_max: usize) -> (Bulk, Sender) {
        let (sender, receiver) = mpsc::channel(waiting_max);
        (Bulk { sender, bytes: Arc::new(Semaphore::new(BYTES_MAX)) }, Sender { receiver })
    }

    /// Takes a story; its answer comes later.
    pub(super) fn take(&self, story: Bytes) -> Result<oneshot::Receiver<Result<(), StoreError>>, StoreError> {
        let busy = StoreError::Busy { what: "as many stories wait to be indexed as may" };
        let bytes = u32::try_from(story.len()).unwrap_or(u32::MAX);
        let Ok(bytes) = self.bytes.clone().try_acquire_many_owned(bytes) else { return Err(busy) };
        let (answer, answered) = oneshot::channel();
        match self.sender.try_send(Story { json: story, answer, _bytes: bytes }) {
            Ok(()) => Ok(answered),
            Err(mpsc::error::TrySendError::Full(_)) => Err(busy),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(StoreError::Closed),
        }
    }

    /// Stories that wait to be sent.
    pub(super) fn waiting(&self) -> usize {
        self.sender.max_capacity() - self.sender.capacity()
    }
}

impl Sender {
    /// Sends what is taken, until nobody takes any more.
    pub(super) async fn work(mut self, server: Arc<Server>, index: String) {
        let mut stories = Vec::new();
        while self.receiver.recv_many(&mut stories, STORIES_MAX).await > 0 {
            // whoever does not wait any more need not have it
            stories.retain(|story| !story.answer.is_closed());
            if stories.is_empty() {
                continue;
            }
            let question = server.engine.add(&index, stories.iter().map(|story| &story.json));
            let outcomes = match server.ask(question).await {
                Ok((status, body)) => server.engine.added(status, &body, stories.len()),
                Err(error) => vec![Err(error); stories.len()],
            };
            for (story, outcome) in stories.drain(..).zip(outcomes) {
                // nobody may wait for it any more
                let _ = story.answer.send(outcome);
            }
        }
    }
}

/// How long a story waits at most, where a request may take so long: for the one under way, and its own.
pub(super) fn longest(timeout: Duration) -> Duration {
    timeout * 2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_has_a_bound() {
        let (bulk, mut sender) = Bulk::new(2);
        let _waits = [(); 2].map(|()| bulk.take(Bytes::from_static(b"rain")).unwrap());
        assert!(matches!(bulk.take(Bytes::from_static(b"rain")), Err(StoreError::Busy { .. })));
        assert_eq!(bulk.waiting(), 2);
        drop(sender.receiver.try_recv());
        assert!(bulk.take(Bytes::from_static(b"rain")).is_ok());
        assert_eq!(bulk.bytes.available_permits(), BYTES_MAX - 2 * b"rain".len());
    }
}
