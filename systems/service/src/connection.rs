//! A connection of HTTP/1.1: hyper reads requests and writes answers; here is how long and how much it may wait.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::HttpBody;
use axum::http::Request;
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::ReadBuf;
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::Limits;
use crate::endpoint::Upgrade;
use crate::handle::{BodyRefusal, ConnectionHandle, ConnectionState, Socket, Waiting};
use crate::metrics::{Bound, WorkerCounts};
use crate::request;
use crate::shared::Shared;
use crate::stop::Stopping;

/// After the stop a connection that has never sent a request is kept at least this long, for one that is on its way.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(250);

/// How a connection ended.
pub(crate) enum End {
    /// In order, or because the client is gone.
    Closed,
    /// With an answer to a client that is or may be still sending.
    Refused,
    /// It leaves HTTP for this; what came behind the request.
    Upgrade(Box<dyn Upgrade>, Bytes),
}

/// How HTTP is spoken on all connections. Heads may be twice as large here as is allowed, so that one that is too large
/// is told which part of it is.
pub(crate) fn protocol(limits: &Limits) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol.half_close(true).max_headers(limits.headers_max).max_buf_size(2 * limits.head_bytes_max);
    // ours is one for all that is waited for, and is not armed anew for each request
    protocol.header_read_timeout(None);
    protocol
}

/// What a connection goes on with.
enum Step {
    /// It waits until something comes, or for this time.
    Wait(Option<Instant>),
    /// hyper has something to do.
    Again,
    /// Nothing is under way, and hyper's buffer has grown.
    Renew,
    /// All is answered and sent.
    Done,
    /// Without another word.
    Cut(Option<Bound>),
    /// It has been told why it is refused, before hyper had a whole head of it; the bound that it hit, if any.
    Refused(Option<Bound>),
}

/// Answers requests until there are no more.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    worker: usize,
    protocol: &http1::Builder,
    stopping: &Stopping,
    stream: TcpStream,
) -> Option<(TcpStream, End)> {
    let counts = &shared.counts.workers[worker];
    let handle = Arc::new(ConnectionHandle::new(shared.clone(), worker, stream));
    let answering = handle.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        let body = request.body();
        let bytes = if body.is_end_stream() { Some(0) } else { body.size_hint().exact() };
        answering.state().framing.begin_body(bytes);
        request::serve(answering.clone(), request)
    });
    let mut http = protocol.serve_connection(TokioIo::new(Socket(handle.clone())), service.clone());
    let mut turn = Turn {
        handle: &handle,
        limits: &shared.limits,
        timer: Timer::new(),
        grace_until: None,
        knows_of_stop: false,
        refusal: None,
    };
    let mut ended = None;
    let step = loop {
        let step = poll_fn(|context| {
            loop {
                let goes_on = ended.is_none() && turn.refusal.is_none();
                if goes_on && let Poll::Ready(end) = Pin::new(&mut http).poll(context) {
                    ended = Some(end);
                }
                let goes_on = ended.is_none() && turn.refusal.is_none();
                if goes_on && stopping.is_stopping() && turn.may_tell_of_stop() {
                    Pin::new(&mut http).graceful_shutdown();
                    continue;
                }
                match turn.step(context, ended.is_some()) {
                    Step::Again => {}
                    Step::Wait(due) => match due.map(|due| turn.timer.poll(due, context)) {
                        Some(Poll::Ready(())) => match turn.overdue() {
                            Step::Again => {}
                            step => return Poll::Ready(step),
                        },
                        _ => return Poll::Pending,
                    },
                    step => return Poll::Ready(step),
                }
            }
        })
        .await;
        if !matches!(step, Step::Renew) {
            break step;
        }
        handle.state().begin_anew(&http.into_parts().read_buf);
        http = protocol.serve_connection(TokioIo::new(Socket(handle.clone())), service.clone());
    };
    let has_failed = ended.is_some_and(|end| end.is_err_and(|error| is_broken(&error, counts)));
    // it holds a handle, as hyper does
    drop(service);
    // outside of the lock: what goes with hyper takes it
    let read = http.into_parts().read_buf;
    let mut state = handle.state();
    let input = state.unread(read);
    let end = match (step, state.upgrade.take()) {
        (Step::Done, Some(upgrade)) => End::Upgrade(upgrade, input),
        (Step::Done, None) if state.lingers || has_failed || !input.is_empty() || state.has_unread() => {
            End::Refused
        }
        (Step::Refused(bound), _) => {
            match bound {
                Some(bound) => counts.bound_hit(bound),
                None => drop(counts.broken_connections.fetch_add(1, Ordering::Relaxed)),
            }
            End::Refused
        }
        (step, _) => {
            match step {
                Step::Cut(Some(bound)) => counts.bound_hit(bound),
                Step::Cut(None) => drop(counts.broken_connections.fetch_add(1, Ordering::Relaxed)),
                _ => {}
            }
            End::Closed
        }
    };
    drop(state);
    Some((Arc::into_inner(handle)?.into_stream(), end))
}

/// Counts how a connection failed; whether hyper has told the client.
fn is_broken(error: &hyper::Error, counts: &WorkerCounts) -> bool {
    if error.is_parse_too_large() {
        counts.bound_hit(Bound::Head);
    } else {
        counts.broken_connections.fetch_add(1, Ordering::Relaxed);
    }
    tracing::debug!(%error, "a connection ended");
    error.is_parse()
}

/// One turn of a connection: what is to be done behind hyper's part of it.
struct Turn<'a> {
    handle: &'a ConnectionHandle,
    limits: &'a Limits,
    timer: Timer,
    grace_until: Option<Instant>,
    knows_of_stop: bool,
    /// There once a refusal is being sent; hyper is polled no more.
    refusal: Option<Refusal>,
}

/// Why a connection is told off before hyper had a whole head.
#[derive(Clone, Copy)]
struct Refusal {
    /// What it hit, if anything.
    bound: Option<Bound>,
}

impl Turn<'_> {
    /// Whether this is the moment at which hyper is told that the server stops: when no request is on its way.
    fn may_tell_of_stop(&mut self) -> bool {
        if self.knows_of_stop {
            return false;
        }
        let state = self.handle.state();
        self.knows_of_stop = match state.waiting {
            Waiting::Head if state.received > 0 => false,
            Waiting::Head => {
                let grace = if state.has_served {
                    self.limits.drain
                } else {
                    FIRST_REQUEST_GRACE.max(self.limits.drain)
                };
                let now = Instant::now();
                now >= *self.grace_until.get_or_insert(now + grace)
            }
            _ => true,
        };
        self.knows_of_stop
    }

    fn step(&mut self, context: &mut Context<'_>, has_ended: bool) -> Step {
        let handle = self.handle;
        let mut state = handle.state();
        if let Poll::Ready(Err(_)) = state.poll_send(context) {
            return Step::Cut(None);
        }
        if let Some(Refusal { bound }) = self.refusal {
            let due = state.since + self.limits.body_timeout;
            return if state.out.is_empty() { Step::Refused(bound) } else { Step::Wait(Some(due)) };
        }
        let is_sent = state.out.is_empty() && (has_ended || state.unsent == 0);
        // hyper may wait for the rest of a request that was refused
        let is_refused = state.lingers && state.waiting == Waiting::Head;
        if (has_ended || is_refused) && is_sent {
            return Step::Done;
        }
        if is_sent && !self.knows_of_stop && state.idles_with_large_buffer() {
            return Step::Renew;
        }
        if let Some(wrong) = state.wrong.filter(|_| is_sent) {
            let (bound, answer) = request::refusal_of_head(wrong, self.limits, state.framing.is_of_head());
            self.refusal = Some(refuse(&mut state, &answer, bound));
            return Step::Again;
        }
        let held_bytes = state.held_bytes();
        if !state.held.set(held_bytes) {
            return match state.waiting {
                _ if !is_sent => Step::Cut(Some(Bound::Held)),
                Waiting::Body => {
                    state.body_refusal = Some(BodyRefusal::NoRoom);
                    Step::Again
                }
                _ => {
                    let answer = request::no_room(state.framing.is_of_head());
                    self.refusal = Some(refuse(&mut state, answer, Some(Bound::Held)));
                    Step::Again
                }
            };
        }
        let is_watched = matches!(state.waiting, Waiting::Work | Waiting::Events) && state.watches;
        if is_watched && self.is_gone(&mut state, context) {
            return Step::Cut(None);
        }
        let due = match state.waiting {
            Waiting::Work => state.ends_at,
            _ if !is_sent => Some(state.since + self.limits.body_timeout),
            Waiting::Body => Some(state.since + self.limits.body_timeout),
            Waiting::Head => Some(state.since + self.limits.head_timeout),
            Waiting::Answer | Waiting::Events => None,
        };
        // of one that has begun a head the rest is waited for, as of any other
        let in_grace = !self.knows_of_stop && state.waiting == Waiting::Head && state.received == 0;
        let grace = self.grace_until.filter(|_| in_grace);
        Step::Wait([due, grace].into_iter().flatten().min())
    }

    /// Whether the client of a request that is worked on has gone. One that has only closed its side may wait for its
    /// answer, but not for ever, and not for events; of one that sends more that is all that can be told.
    fn is_gone(&self, state: &mut ConnectionState, context: &mut Context<'_>) -> bool {
        let mut byte = [0];
        let peeked = state.stream.poll_peek(context, &mut ReadBuf::new(&mut byte));
        match peeked {
            Poll::Pending => return false,
            Poll::Ready(Err(_)) => return true,
            Poll::Ready(Ok(0)) if state.waiting == Waiting::Events => return true,
            Poll::Ready(Ok(0)) => state.ends_at = Some(Instant::now() + self.limits.body_timeout),
            Poll::Ready(Ok(_)) => {}
        }
        state.watches = false;
        false
    }

    /// What comes of having waited for too long.
    fn overdue(&mut self) -> Step {
        let mut state = self.handle.state();
        let is_sent = state.out.is_empty() && state.unsent == 0;
        let grace_is_over = self.grace_until.is_some_and(|until| until <= Instant::now());
        match state.waiting {
            _ if self.refusal.is_some() => Step::Cut(Some(Bound::WriteTime)),
            Waiting::Work => Step::Cut(None),
            _ if !is_sent => Step::Cut(Some(Bound::WriteTime)),
            Waiting::Body => {
                state.body_refusal = Some(BodyRefusal::Late);
                Step::Again
            }
            // to be told of the stop
            Waiting::Head if !self.knows_of_stop && grace_is_over && state.received == 0 => Step::Again,
            _ => Step::Cut(Some(Bound::HeadTime)),
        }
    }
}

/// Has this sent in place of whatever hyper would answer.
fn refuse(state: &mut ConnectionState, answer: &[u8], bound: Option<Bound>) -> Refusal {
    state.out.extend_from_slice(answer);
    state.since = Instant::now();
    Refusal { bound }
}

/// Wakes no later than what is waited for is overdue; touched only where it has to be.
struct Timer {
    sleep: Pin<Box<Sleep>>,
    /// When it wakes; none before it has been armed.
    at: Option<Instant>,
}

impl Timer {
    fn new() -> Self {
        Timer { sleep: Box::pin(tokio::time::sleep(Duration::ZERO)), at: None }
    }

    /// Ready at this time or later.
    fn poll(&mut self, due: Instant, context: &mut Context<'_>) -> Poll<()> {
        // It wakes before that, and has not yet: nothing is overdue, and the clock need not be asked.
        if self.at.is_some_and(|at| at <= due) && !self.sleep.is_elapsed() {
            return Poll::Pending;
        }
        if due <= Instant::now() {
            return Poll::Ready(());
        }
        // One that was armed for an earlier wait wakes the connection for nothing, and is armed anew then.
        self.sleep.as_mut().reset(due.into());
        self.at = Some(due);
        if self.sleep.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}
