//! One call, from the caller's side.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::answer::Bytes;
use super::state::{Begun, Shared};
use super::{CallError, Proxy};

/// A call, which is made when it is first awaited. Dropped before its answer is there, it is taken back.
///
/// Many thousands may be under way at once, so it is small, and what it was given is gone as soon as it is written.
#[must_use = "a call is made when it is awaited"]
pub struct Calling<'a, A, R> {
    stage: Stage<'a, A, R>,
}

enum Stage<'a, A, R> {
    New { proxy: &'a Proxy, method: usize, arguments: A },
    Sent { shared: &'a Shared, id: u64 },
    Slow(Slow<'a, R>),
    Over,
}

type Slow<'a, R> = Pin<Box<dyn Future<Output = Result<R, CallError>> + Send + 'a>>;

// What it holds is moved out before it is used, and what has to stay in its place is in a box.
impl<A, R> Unpin for Calling<'_, A, R> {}

impl<'a, A, R> Calling<'a, A, R> {
    pub(super) fn new(proxy: &'a Proxy, method: usize, arguments: A) -> Self {
        Calling { stage: Stage::New { proxy, method, arguments } }
    }

    /// One that is not a call over a WebSocket.
    pub(super) fn slow(work: impl Future<Output = Result<R, CallError>> + Send + 'a) -> Self {
        Calling { stage: Stage::Slow(Box::pin(work)) }
    }
}

impl<'a, A, R> Calling<'a, A, R>
where
    A: Serialize + Send + 'a,
    R: DeserializeOwned + 'a,
{
    fn begin(&mut self, context: &mut Context<'_>) -> Poll<Result<R, CallError>> {
        let Stage::New { proxy, method, arguments } = std::mem::replace(&mut self.stage, Stage::Over) else {
            return Poll::Pending;
        };
        let (shared, method, time) = match proxy.way(method) {
            Ok(way) => way,
            Err(error) => return Poll::Ready(Err(error)),
        };
        let begun = shared.state().begin(method, time, &arguments, false, context.waker());
        match begun {
            Ok(Begun::Sent(id)) => {
                self.stage = Stage::Sent { shared, id };
                Poll::Pending
            }
            Ok(Begun::Waits(room)) => {
                let later = async move {
                    let id = begin_later(shared, method, time, arguments, room).await?;
                    Calling::<A, R> { stage: Stage::Sent { shared, id } }.await
                };
                let mut later: Slow<'a, R> = Box::pin(later);
                let polled = later.as_mut().poll(context);
                self.stage = Stage::Slow(later);
                polled
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

impl<'a, A, R> Future for Calling<'a, A, R>
where
    A: Serialize + Send + 'a,
    R: DeserializeOwned + 'a,
{
    type Output = Result<R, CallError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.stage {
            Stage::New { .. } => self.begin(context),
            Stage::Sent { shared, id } => {
                let shared = *shared;
                let Some(answer) = shared.state().take(*id, context.waker()) else { return Poll::Pending };
                self.stage = Stage::Over;
                let read = |answer: Bytes| shared.options.form.read(answer.as_ref());
                Poll::Ready(answer.and_then(|it| read(it).map_err(|error| CallError::unreadable(&error))))
            }
            Stage::Slow(work) => work.as_mut().poll(context),
            // its answer was taken
            Stage::Over => Poll::Pending,
        }
    }
}

impl<A, R> Drop for Calling<'_, A, R> {
    fn drop(&mut self) {
        if let Stage::Sent { shared, id } = self.stage {
            shared.state().leave_call(id);
        }
    }
}

/// The way of a call that found no room, or no connection.
async fn begin_later<A: Serialize>(
    shared: &Shared,
    method: (usize, usize),
    time: Duration,
    arguments: A,
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
        let waker = poll_fn(|context| Poll::Ready(context.waker().clone())).await;
        let begun = shared.state().begin(method, left, &arguments, room.is_promised, &waker);
        match begun? {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use tidemark_wire::rpc::{AnswerWriter, Greeting, Limits};

    use super::*;
    use crate::client::{Client, ClientOptions, Handle, Through};

    /// Tells by its count who holds it.
    #[derive(Clone)]
    struct Held(Arc<()>);

    impl Serialize for Held {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u32(7)
        }
    }

    fn proxy(in_flight_max: usize) -> Proxy {
        let handle = Handle { shared: Shared::new(ClientOptions::default()).into() };
        let methods = vec!["some.method".to_owned()];
        handle.shared.state().open(Greeting { limits: Limits::default(), in_flight_max, methods }, 8);
        Proxy::new(Through::WebSocket(Client { handle: handle.into() }), &["some.method"])
    }

    #[test]
    fn what_a_call_was_given_is_gone_once_it_is_written() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let _clock = runtime.enter();
        let (proxy, given) = (proxy(1), Held(Default::default()));
        let mut context = Context::from_waker(Waker::noop());
        let mut first = proxy.call::<_, u32>(0, (given.clone(),));
        let mut second = proxy.call::<_, u32>(0, (given.clone(),));
        let holders = || Arc::strong_count(&given.0);
        assert_eq!(holders(), 3);
        assert!(Pin::new(&mut first).poll(&mut context).is_pending());
        assert_eq!(holders(), 2, "the first is written");
        assert!(Pin::new(&mut second).poll(&mut context).is_pending());
        assert_eq!(holders(), 2, "the second waits for room, and is not");
        drop(second);
        assert_eq!(holders(), 1);

        let (shared, _, _) = proxy.way(0).unwrap();
        let mut frame = Vec::new();
        AnswerWriter::new().answer(&mut frame, 1, b"9");
        shared.state().deliver(&frame, &mut Default::default()).unwrap();
        assert_eq!(Pin::new(&mut first).poll(&mut context), Poll::Ready(Ok(9)));
        assert!(Pin::new(&mut first).poll(&mut context).is_pending(), "one that is over stays so");
        drop(first);
        assert_eq!(shared.state().stats().in_flight, 0);
    }
}
