//! A worker: one thread with its own event loop, that owns the connections handed to it until they end.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::net::TcpStream;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;

use crate::metrics::Bound;
use crate::request;
use crate::shared::Shared;
use crate::timer::CheapTimer;

/// After the stop a connection that has never sent a request is kept this long, for one that is on its way.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(250);

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
    let requests = AtomicU64::new(0);
    let service = service_fn(|request| {
        requests.fetch_add(1, Ordering::Relaxed);
        request::answer(&shared, index, request)
    });
    let limits = &shared.limits;
    let mut served = pin!(
        http1::Builder::new()
            .timer(CheapTimer)
            .header_read_timeout(limits.head_timeout)
            .max_buf_size(limits.head_bytes_max)
            .max_headers(limits.headers_max)
            .pipeline_flush(true)
            .serve_connection(TokioIo::new(stream), service)
    );

    let mut stop = pin!(stopping.notify.notified());
    stop.as_mut().enable();
    if !stopping.flag.load(Ordering::Acquire) {
        // One timer for the life of the connection wakes it now and then, so that `CheapTimer` can be checked.
        let mut tick =
            tokio::time::interval_at(Instant::now() + limits.head_timeout / 2, limits.head_timeout / 2);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let ended = poll_fn(|context| {
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
        });
        if let Some(result) = ended.await {
            return note_end(&shared, index, result);
        }
    }

    served.as_mut().graceful_shutdown();
    match tokio::time::timeout(FIRST_REQUEST_GRACE, served.as_mut()).await {
        Ok(result) => note_end(&shared, index, result),
        Err(_) if requests.load(Ordering::Relaxed) == 0 => {}
        Err(_) => note_end(&shared, index, served.await),
    }
}

fn note_end(shared: &Shared, index: usize, result: Result<(), hyper::Error>) {
    let Err(error) = result else { return };
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
