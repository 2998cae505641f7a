//! A worker: one thread with its own event loop, that owns the connections handed to it until they end.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::net::TcpStream;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, MissedTickBehavior};

use crate::metrics::Bound;
use crate::request;
use crate::rpc::{self, Upgrading};
use crate::shared::Shared;
use crate::timer::CheapTimer;

/// After the stop a connection that has never sent a request is kept this long, for one that is on its way.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(250);

/// How long, and how much, a client that was refused may go on sending before it is cut off.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 4 * 1024 * 1024;

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(0) };
}

/// The number of the worker that this thread is, from 0; 0 on all other threads. For counters that keep a copy
/// for each worker.
pub fn worker_index() -> usize {
    INDEX.get()
}

/// Tells the connections of one worker that the server stops.
struct Stopping {
    flag: AtomicBool,
    notify: Notify,
}

/// What requests leave behind for the connection that they came on.
#[derive(Default)]
pub(crate) struct ConnectionState {
    requests: AtomicU64,
    /// A body was refused before it was all there.
    pub(crate) body_refused: AtomicBool,
    /// It becomes a WebSocket for calls.
    pub(crate) upgrading: Mutex<Option<Upgrading>>,
}

/// Serves the connections that arrive on `incoming` until the sender is dropped, lets them finish, and returns
/// how many had to be cut at the deadline.
pub(crate) async fn run(shared: Arc<Shared>, index: usize, mut incoming: mpsc::Receiver<TcpStream>) -> usize {
    INDEX.set(index);
    let stopping = Arc::new(Stopping { flag: AtomicBool::new(false), notify: Notify::new() });
    // Each connection holds a sender; once all are gone all connections have ended.
    let (alive, mut all_ended) = mpsc::channel::<()>(1);
    while let Some(stream) = incoming.recv().await {
        let (shared, stopping, alive) = (shared.clone(), stopping.clone(), alive.clone());
        tokio::spawn(async move {
            let _alive = alive;
            let _open = Open(shared.clone(), index);
            connection(shared, index, stream, stopping).await;
        });
    }
    stopping.flag.store(true, Ordering::Release);
    stopping.notify.notify_waiters();
    drop(alive);
    let in_time = tokio::time::timeout(shared.limits.stop_deadline, all_ended.recv()).await;
    match in_time {
        Ok(_) => 0,
        Err(_) => shared.counts.workers[index].connections_open.load(Ordering::Relaxed).max(0) as usize,
    }
}

/// Gives the connection's place back when it ends, however it ends.
struct Open(Arc<Shared>, usize);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.counts.workers[self.1].connections_open.fetch_sub(1, Ordering::Relaxed);
    }
}

async fn connection(shared: Arc<Shared>, index: usize, stream: TcpStream, stopping: Arc<Stopping>) {
    let counts = &shared.counts.workers[index];
    counts.connections.fetch_add(1, Ordering::Relaxed);
    let Ok(stream) = tokio::net::TcpStream::from_std(stream) else {
        counts.broken_connections.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let limits = &shared.limits;
    let state = ConnectionState::default();
    let service = service_fn(|request| {
        state.requests.fetch_add(1, Ordering::Relaxed);
        request::answer(&shared, index, &state, request)
    });
    // Not with `pipeline_flush`: it holds back what is written while unread bytes wait, and when those turn out to
    // be no HTTP, neither the 400 nor the answers to the requests before are ever sent.
    let mut served = http1::Builder::new()
        .timer(CheapTimer)
        .header_read_timeout(limits.head_timeout)
        .max_buf_size(limits.head_bytes_max)
        .max_headers(limits.headers_max)
        // head and body of an answer as one piece: copying the small bodies that there mostly are costs less than
        // the vectored call does
        .writev(false)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();

    let mut ended = until_stop(Pin::new(&mut served), &stopping, limits.head_timeout / 2).await;
    if ended.is_none() {
        Pin::new(&mut served).graceful_shutdown();
        ended = match tokio::time::timeout(FIRST_REQUEST_GRACE, &mut served).await {
            Ok(result) => Some(result),
            Err(_) if state.requests.load(Ordering::Relaxed) == 0 => None,
            Err(_) => Some((&mut served).await),
        };
    }
    let mut client_is_sending = state.body_refused.load(Ordering::Relaxed);
    if let Some(Err(error)) = ended {
        client_is_sending |= error.is_parse();
        note_end(&shared, index, &error);
    }
    let upgrading = state.upgrading.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(upgrading) = upgrading {
        drop(served);
        return calls(&shared, index, upgrading, &stopping).await;
    }
    if client_is_sending && let Some(parts) = served.into_parts() {
        linger(parts.io.into_inner()).await;
    }
}

/// A connection that has become a WebSocket.
async fn calls(shared: &Shared, index: usize, upgrading: Upgrading, stopping: &Stopping) {
    let Upgrading { on, form } = upgrading;
    let upgraded =
        on.await.ok().and_then(|upgraded| upgraded.downcast::<TokioIo<tokio::net::TcpStream>>().ok());
    let (Some(parts), Some(published)) = (upgraded, shared.published.get()) else {
        shared.counts.workers[index].broken_connections.fetch_add(1, Ordering::Relaxed);
        return;
    };
    let stop = async {
        let mut stop = pin!(stopping.notify.notified());
        stop.as_mut().enable();
        if !stopping.flag.load(Ordering::Acquire) {
            stop.await;
        }
    };
    let connection = (parts.io.into_inner(), parts.read_buf.to_vec());
    let stream = rpc::run(published, index, connection, form, shared.limits.head_timeout, stop).await;
    linger(stream).await;
}

/// Drives a connection until it ends, or until the server stops: then `None`.
async fn until_stop<F: Future>(
    mut served: Pin<&mut F>,
    stopping: &Stopping,
    tick_period: Duration,
) -> Option<F::Output> {
    let mut stop = pin!(stopping.notify.notified());
    stop.as_mut().enable();
    if stopping.flag.load(Ordering::Acquire) {
        return None;
    }
    // One timer for the life of the connection wakes it now and then, so that `CheapTimer` can be checked.
    let mut tick = tokio::time::interval_at(Instant::now() + tick_period, tick_period);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    poll_fn(|context| {
        if let Poll::Ready(result) = served.as_mut().poll(context) {
            return Poll::Ready(Some(result));
        }
        if stop.as_mut().poll(context).is_ready() {
            return Poll::Ready(None);
        }
        if tick.poll_tick(context).is_ready() {
            // Comes back at once to check the head's time and to arm the next tick.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    })
    .await
}

/// Takes in, for a moment, what a client is still sending that has already been refused. Closing at once would
/// make the kernel reset the connection, and the client would lose the answer that says why.
async fn linger(mut stream: tokio::net::TcpStream) {
    let draining = async {
        let _ = stream.shutdown().await;
        let mut scratch = [0; 4096];
        let mut drained = 0;
        while drained < LINGER_BYTES_MAX {
            match stream.read(&mut scratch).await {
                Ok(0) | Err(_) => break,
                Ok(got) => drained += got,
            }
        }
    };
    let _ = tokio::time::timeout(LINGER, draining).await;
}

fn note_end(shared: &Shared, index: usize, error: &hyper::Error) {
    let counts = &shared.counts.workers[index];
    if error.is_timeout() {
        counts.bound_hit(Bound::HeadTime);
    } else if error.is_parse_too_large() {
        counts.bound_hit(Bound::Head);
    } else {
        counts.broken_connections.fetch_add(1, Ordering::Relaxed);
    }
    tracing::debug!(%error, "a connection ended");
}
