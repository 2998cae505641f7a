//! One call, from the caller's side.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::CallError;
use super::answer::Bytes;
use super::state::{Begun, Shared};

/// Calls, and reads what is returned.
pub(super) async fn call<A, R>(
    shared: &Shared,
    method: (usize, usize),
    time: Duration,
    arguments: &A,
) -> Result<R, CallError>
where
    A: Serialize + ?Sized,
    R: DeserializeOwned,
{
    let id = match begin(shared, method, time, arguments, false).await? {
        Begun::Sent(id) => id,
        Begun::Waits(room) => Box::pin(begin_later(shared, method, time, arguments, room)).await?,
    };
    let answer = Sent { shared, id, is_new: true, is_taken: false }.await?;
    shared.options.form.read(answer.as_ref()).map_err(|error| CallError::unreadable(&error))
}

async fn begin<A: Serialize + ?Sized>(
    shared: &Shared,
    method: (usize, usize),
    time: Duration,
    arguments: &A,
    was_promised: bool,
) -> Result<Begun, CallError> {
    poll_fn(|context| {
        Poll::Ready(shared.state().begin(method, time, arguments, was_promised, context.waker()))
    })
    .await
}

/// The slow way, of a call that found no room, or no connection.
async fn begin_later<A: Serialize + ?Sized>(
    shared: &Shared,
    method: (usize, usize),
    time: Duration,
    arguments: &A,
    room: oneshot::Receiver<()>,
) -> Result<u64, CallError> {
    let made_at = Instant::now();
    let mut room = Room { shared, promise: room, is_promised: false };
    loop {
        let left = time.saturating_sub(made_at.elapsed());
        if tokio::time::timeout(left, room.wait()).await.is_err() {
            return Err(shared.state().no_room());
        }
        let left = time.saturating_sub(made_at.elapsed());
        match begin(shared, method, left, arguments, room.is_promised).await? {
            Begun::Sent(id) => {
                room.is_promised = false;
                return Ok(id);
            }
            Begun::Waits(promise) => room = Room { shared, promise, is_promised: false },
        }
    }
}

/// A place among those that wait, and then the promise of room for a call.
struct Room<'a> {
    shared: &'a Shared,
    promise: oneshot::Receiver<()>,
    is_promised: bool,
}

impl Room<'_> {
    /// Until there is room, or a reason to ask again.
    async fn wait(&mut self) {
        self.is_promised = (&mut self.promise).await.is_ok();
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        self.promise.close();
        if self.is_promised || self.promise.try_recv().is_ok() {
            self.shared.state().give_back();
        }
    }
}

/// A call that is sent, or about to be.
struct Sent<'a> {
    shared: &'a Shared,
    id: u64,
    /// It was begun within the same poll, so its waker is known.
    is_new: bool,
    is_taken: bool,
}

impl Future for Sent<'_> {
    type Output = Result<Bytes, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if std::mem::take(&mut self.is_new) {
            return Poll::Pending;
        }
        match self.shared.state().take(self.id, context.waker()) {
            None => Poll::Pending,
            Some(answer) => {
                self.is_taken = true;
                Poll::Ready(answer)
            }
        }
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if !self.is_taken {
            self.shared.state().leave_call(self.id);
        }
    }
}
