//! The future that every store method returns.
//!
//! The traits must be usable as `Arc<dyn Sessions>`, so that a system holds its stores without a type
//! parameter for each, and they must be asynchronous, because most stores are remote. The usual way, a
//! boxed future, costs an allocation on every call, also on a read of the embedded store that is answered
//! from memory within a microsecond. [`Answer`] is one concrete future for the three cases that exist: known
//! at once, waiting for a group commit, or still to be computed by a boxed future. Only the last allocates.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::error::StoreError;

/// The answer of a store, to be awaited.
///
/// Dropping it does not take a write back: the write may still happen.
#[must_use = "a write is acknowledged only when its answer has been awaited"]
pub struct Answer<'a, T>(State<'a, T>);

enum State<'a, T> {
    /// Known already; `None` once it was handed out.
    Ready(Option<Result<T, StoreError>>),
    /// Waits for the group that the write went into.
    Committing { receiver: oneshot::Receiver<Result<u64, StoreError>>, finish: fn(u64) -> T },
    /// Anything else, for example a remote call.
    Boxed(Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>),
}

// No field is ever pinned in place: the boxed future is pinned on the heap.
impl<T> Unpin for Answer<'_, T> {}

impl<'a, T> Answer<'a, T> {
    /// An answer that is known already.
    pub fn ready(result: Result<T, StoreError>) -> Self {
        Answer(State::Ready(Some(result)))
    }

    /// An answer that `future` computes.
    pub fn boxed(future: impl Future<Output = Result<T, StoreError>> + Send + 'a) -> Self {
        Answer(State::Boxed(Box::pin(future)))
    }

    /// The answer to a write that waits for its group; `finish` makes the value out of how many
    /// things the write put or removed.
    pub(crate) fn committing(
        receiver: oneshot::Receiver<Result<u64, StoreError>>,
        finish: fn(u64) -> T,
    ) -> Self {
        Answer(State::Committing { receiver, finish })
    }
}

impl<T> Future for Answer<'_, T> {
    type Output = Result<T, StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Ready(result) => {
                Poll::Ready(result.take().expect("an answer is awaited once; polled after it was ready"))
            }
            State::Committing { receiver, finish } => match Pin::new(receiver).poll(context) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(Ok(outcome)) => Poll::Ready(outcome.map(*finish)),
                // The committer went away without answering: the process is closing the store.
                Poll::Ready(Err(_)) => Poll::Ready(Err(StoreError::Closed)),
            },
            State::Boxed(future) => future.as_mut().poll(context),
        }
    }
}
