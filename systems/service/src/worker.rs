//! A worker: one thread with its own event loop, that owns the connections handed to it until they end.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use crate::connection::{self, End};
use crate::endpoint::{Upgrade, Upgraded};
use crate::held::Held;
use crate::shared::Shared;
use crate::stop::Stopping;

/// How long, and how much, a client that was refused may go on sending before it is cut off.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The beginning of HTTP/2's preface.
const HTTP2_BEGINS: &[u8; 4] = b"PRI ";
/// Pause before a preface that came in part is looked at again; it doubles up to the other.
const REST_OF_PREFACE: Duration = Duration::from_millis(1);
const REST_OF_PREFACE_MAX: Duration = Duration::from_millis(100);

thread_local! {
    static INDEX: Cell<usize> = const { Cell::new(0) };
}

/// The number of the worker that this thread is, from 0; 0 on all other threads. For counters that keep a copy
/// for each worker.
pub fn worker_index() -> usize {
    INDEX.get()
}

/// Serves the connections that arrive on `incoming` until the sender is dropped, lets them finish, and returns
/// how many had to be cut at the deadline.
pub(crate) async fn run(
    shared: Arc<Shared>,
    index: usize,
    mut incoming: mpsc::Receiver<std::net::TcpStream>,
) -> usize {
    INDEX.set(index);
    let stopping = Arc::new(Stopping::default());
    // Each connection holds a sender; once all are gone all connections have ended.
    let (alive, mut all_ended) = mpsc::channel::<()>(1);
    let protocol = Arc::new(connection::protocol(&shared.limits));
    while let Some(stream) = incoming.recv().await {
        let (shared, stopping, alive) = (shared.clone(), stopping.clone(), alive.clone());
        let protocol = protocol.clone();
        tokio::spawn(async move {
            let _alive = alive;
            let _open = Open(shared.clone(), index);
            serve(shared, index, &protocol, stream, &stopping).await;
        });
    }
    stopping.stop();
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

async fn serve(
    shared: Arc<Shared>,
    index: usize,
    protocol: &http1::Builder,
    stream: std::net::TcpStream,
    stopping: &Stopping,
) {
    let counts = &shared.counts.workers[index];
    counts.connections.fetch_add(1, Ordering::Relaxed);
    let Ok(stream) = TcpStream::from_std(stream) else {
        counts.broken_connections.fetch_add(1, Ordering::Relaxed);
        return;
    };
    // Polled once: that enters the task among those which the stop wakes. The flag says whether it has come.
    let mut stop = pin!(stopping.notified());
    poll_fn(|context| Poll::Ready(stop.as_mut().poll(context).is_ready())).await;
    let published = shared.published.get();
    if let Some(begin) = published.and_then(|published| published.http2.as_ref())
        && Box::pin(is_http2(&stream, shared.limits.head_timeout, stopping)).await
    {
        return Box::pin(upgraded(&shared, index, (stream, Bytes::new()), begin(), stopping)).await;
    }
    match connection::serve(shared.clone(), index, protocol, stopping, stream).await {
        None | Some((_, End::Closed)) => {}
        // Boxed, so that a connection which comes to neither has no room for them.
        Some((stream, End::Refused)) => Box::pin(linger(stream)).await,
        Some((stream, End::Upgrade(upgrade, input))) => {
            Box::pin(upgraded(&shared, index, (stream, input), upgrade, stopping)).await;
        }
    }
}

/// Whether a connection begins as one of HTTP/2: no method of HTTP/1.1 begins so. Not if nothing comes.
async fn is_http2(stream: &TcpStream, at_most: Duration, stopping: &Stopping) -> bool {
    let mut stop = pin!(stopping.notified());
    stop.as_mut().enable();
    if stopping.is_stopping() {
        return false;
    }
    let looking = async {
        let mut begin = [0; HTTP2_BEGINS.len()];
        let mut pause = REST_OF_PREFACE;
        loop {
            // asked before what came is looked at: then that is all
            let is_all = stream.ready(Interest::READABLE).await.is_ok_and(|ready| ready.is_read_closed());
            match stream.peek(&mut begin).await {
                Ok(got) if got == begin.len() => return begin == *HTTP2_BEGINS,
                Ok(got) if got > 0 && !is_all && HTTP2_BEGINS.starts_with(&begin[..got]) => {}
                Ok(_) | Err(_) => return false,
            }
            tokio::time::sleep(pause).await;
            pause = (2 * pause).min(REST_OF_PREFACE_MAX);
        }
    };
    tokio::select! {
        found = tokio::time::timeout(at_most, looking) => found.unwrap_or(false),
        () = stop => false,
    }
}

/// A connection that has left HTTP.
async fn upgraded(
    shared: &Shared,
    worker: usize,
    (stream, input): (TcpStream, Bytes),
    upgrade: Box<dyn Upgrade>,
    stopping: &Stopping,
) {
    let stop = async {
        let mut stop = pin!(stopping.notified());
        stop.as_mut().enable();
        if !stopping.is_stopping() {
            stop.await;
        }
    };
    let held = Held::new(shared.counts.budget.clone());
    let input = input.to_vec();
    let silence_max = shared.limits.head_timeout;
    let connection = Upgraded { stream, input, worker, held, silence_max, stop: Box::pin(stop) };
    linger(upgrade.run(connection).await).await;
}

/// Takes in, for a moment, what a client is still sending that has already been refused. Closing at once would
/// make the kernel reset the connection, and the client would lose the answer that says why.
async fn linger(mut stream: TcpStream) {
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
