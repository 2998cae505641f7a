//! A connection of HTTP/1.1: one request after the other, each answered before the next is begun.
//!
//! While it waits it has no buffers. What comes is read into a buffer of the worker's and decoded there; only what is
//! left over, the beginning of a next request, is kept. Decoders go round among the connections of a worker.

mod ahead;
mod refusal;
mod sending;

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use tidemark_wire::http1::RequestDecoder;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use self::ahead::Ahead;
use self::refusal::Refused;
use crate::answer::reason;
use crate::buffers::{give_decoder_back, spare_decoder, with_scratch};
use crate::endpoint::Upgrade;
use crate::held::{FREE_BYTES, Held};
use crate::home::{REQUESTS_BETWEEN, REQUESTS_FIRST};
use crate::metrics::{Bound, NO_ROUTE, WorkerCounts};
use crate::request::{self, Begun};
use crate::shared::{Shared, State};
use crate::worker::Stopping;
use crate::write::{self, Manner};

/// Of further requests so much is read while one is being answered.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// Answers are sent when there are so many bytes of them, whatever else there is to do.
const SEND_BYTES: usize = 64 << 10;
/// After the stop a connection that has never sent a request is kept this long, for one that is on its way.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(250);

/// How a connection ended.
pub(crate) enum End {
    /// In order, or because the client is gone.
    Closed,
    /// With an answer to a client that may still be sending.
    Refused,
    /// It leaves HTTP for this; what came behind the request.
    Upgrade(Box<dyn Upgrade>, Vec<u8>),
    /// It is served better by the worker with this number.
    Moves(usize),
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
enum Break {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("it was closed within a request, or before its answer, or an answer was cut off")]
    Truncated,
    #[error("its bound {0:?} was hit")]
    Bound(Bound),
}

/// What reading came to.
enum Next<'a> {
    /// A whole request, on which the work has begun.
    Request(Begun<'a>, Manner),
    /// The client waits to be asked for a body.
    Continue,
    /// A request that is not taken, with the answer to it.
    Refused(Refused),
    /// There is no further one.
    End,
    /// There may be, but another worker had better take it.
    Moves(usize),
}

/// What the connection is waiting for, which is how long it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wait {
    Head,
    Body,
}

pub(crate) struct Connection<'a> {
    shared: &'a Shared,
    counts: &'a WorkerCounts,
    stopping: &'a Stopping,
    stream: TcpStream,
    /// There while a request has begun and is not whole.
    decoder: Option<Box<RequestDecoder>>,
    ahead: Ahead,
    /// Answers that are not sent yet, but for what is before `out_at`; empty when all are.
    out: Vec<u8>,
    out_at: usize,
    /// The client was told to go on with the body of this request.
    is_continued: bool,
    has_served: bool,
    /// Bytes of the request that is being answered: whoever does that has a copy.
    working_bytes: usize,
    /// What it holds while it waits, entered among what all do.
    held: Held<'a>,
    /// The client sends no more, and may be gone altogether; its answer has so long.
    ends_at: Option<Instant>,
    /// Requests until it asks whether it is at the right worker.
    stays: u32,
    index: usize,
    wait: Wait,
    /// Since when it waits.
    since: Instant,
    /// Wakes no later than what is waited for is overdue; touched only where it has to be.
    timer: Pin<Box<Sleep>>,
    /// When that is; none before it has been armed.
    timer_at: Option<Instant>,
    grace_until: Option<Instant>,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(
        shared: &'a Shared,
        index: usize,
        stopping: &'a Stopping,
        stream: TcpStream,
        has_served: bool,
    ) -> Self {
        let now = Instant::now();
        Connection {
            shared,
            counts: &shared.counts.workers[index],
            stopping,
            stream,
            decoder: None,
            ahead: Ahead::default(),
            out: Vec::new(),
            out_at: 0,
            is_continued: false,
            has_served,
            working_bytes: 0,
            held: Held::new(&shared.counts.budget),
            ends_at: None,
            stays: if has_served { REQUESTS_BETWEEN } else { REQUESTS_FIRST },
            index,
            wait: Wait::Head,
            since: now,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
            timer_at: None,
            grace_until: None,
        }
    }

    /// Answers requests until there are no more.
    pub(crate) async fn serve(mut self) -> (TcpStream, End) {
        let end = self.requests().await.unwrap_or_else(|broken| {
            match broken {
                Break::Bound(bound) => self.counts.bound_hit(bound),
                Break::Truncated | Break::Io(_) => {
                    self.counts.broken_connections.fetch_add(1, Ordering::Relaxed);
                }
            }
            tracing::debug!(%broken, "a connection ended");
            End::Closed
        });
        (self.stream, end)
    }

    async fn requests(&mut self) -> Result<End, Break> {
        loop {
            match poll_fn(|context| self.poll_next(context)).await? {
                Next::Request(begun, manner) => {
                    if let Some(end) = self.answer(begun, manner).await? {
                        return Ok(end);
                    }
                }
                Next::Continue => self.out.extend_from_slice(write::CONTINUE),
                Next::Refused(Refused { answer, method, is_head }) => {
                    if let Some(method) = method {
                        self.counts.request(NO_ROUTE, &method, answer.status(), self.since.elapsed());
                    }
                    self.decoder = None;
                    self.ahead.clear();
                    let manner = Manner { minor_version: 1, is_head, closes: true };
                    self.write(answer, manner, Instant::now()).await?;
                    self.flush().await?;
                    return Ok(End::Refused);
                }
                Next::End => {
                    self.flush().await?;
                    return Ok(End::Closed);
                }
                Next::Moves(to) => return Ok(End::Moves(to)),
            }
        }
    }

    /// Sees a request to its answer; the end of the connection, where it was the last.
    async fn answer(&mut self, begun: Begun<'a>, mut manner: Manner) -> Result<Option<End>, Break> {
        let Begun { began, in_flight, method, mut route, mut work } = begun;
        if let Some(at) = &mut self.ends_at {
            *at = began + self.shared.limits.body_timeout;
        }
        let answer = poll_fn(|context| match work.poll(context, self.counts, &mut route) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => self.poll_client(context).map(|()| None),
        })
        .await;
        let upgrade = work.into_upgrade();
        self.working_bytes = 0;
        let Some(answer) = answer else { return Err(Break::Truncated) };
        self.has_served = true;
        self.stays = self.stays.saturating_sub(1);
        let now = Instant::now();
        self.counts.request(route, &method, answer.status(), now.saturating_duration_since(began));
        in_flight.finished();
        // So that the client does not send the next request into a connection that is about to go.
        manner.closes |= self.shared.state() == State::Stopping || answer.asks_to_close();
        let closes = self.write(answer, manner, now).await?;
        (self.wait, self.since) = (Wait::Head, now);
        if let Some(upgrade) = upgrade {
            self.flush().await?;
            return Ok(Some(End::Upgrade(upgrade, std::mem::take(&mut self.ahead).into_left())));
        }
        if closes {
            self.flush().await?;
            return Ok(Some(End::Closed));
        }
        Ok(None)
    }

    /// The next request, out of what was read before or what comes.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Next<'a>, Break>> {
        loop {
            if !self.ahead.is_empty() {
                if self.out.len() >= SEND_BYTES && self.poll_flush(context)?.is_pending() {
                    return self.poll_waiting(context);
                }
                let mut ahead = std::mem::take(&mut self.ahead);
                let (taken, next) = self.decode(ahead.left());
                ahead.taken(taken);
                self.ahead = ahead;
                if let Some(next) = next {
                    return Poll::Ready(Ok(next));
                }
            }
            // Nothing is read while the client does not take its answers.
            if self.poll_flush(context)?.is_pending() {
                return self.poll_waiting(context);
            }
            if self.stopping.is_stopping() && self.decoder.is_none() {
                if self.has_served {
                    return Poll::Ready(Ok(Next::End));
                }
                self.grace_until.get_or_insert_with(|| Instant::now() + FIRST_REQUEST_GRACE);
            }
            if self.stays == 0
                && let Some(to) = self.elsewhere()
            {
                return Poll::Ready(Ok(Next::Moves(to)));
            }
            let read = with_scratch(|scratch| self.poll_read(context, scratch));
            match read {
                Poll::Ready(Ok(Some(next))) => return Poll::Ready(Ok(next)),
                Poll::Ready(Ok(None)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return self.poll_waiting(context),
            }
        }
    }

    /// Enters what it holds while it waits; false if there is no room for it.
    fn holds(&mut self) -> bool {
        let decoder = self.decoder.as_ref().map_or(0, |decoder| decoder.held_bytes());
        let others = decoder + self.out.capacity() + self.working_bytes;
        let fits = self.held.set(others + self.ahead.held_bytes());
        fits || {
            self.ahead.shrink();
            self.held.set(others + self.ahead.held_bytes())
        }
    }

    /// Waits, if there is room for what it holds meanwhile. If not, a request that is not whole is refused; a client
    /// that does not take its answers is cut off.
    fn poll_waiting(&mut self, context: &mut Context<'_>) -> Poll<Result<Next<'a>, Break>> {
        if self.holds() {
            return self.poll_timer(context);
        }
        if !self.out.is_empty() {
            return Poll::Ready(Err(Break::Bound(Bound::Held)));
        }
        let refused = self.no_room(self.decoder.as_deref());
        Poll::Ready(Ok(Next::Refused(refused)))
    }

    /// The worker that would serve it better from here on; only between two requests, with nothing left of either.
    fn elsewhere(&mut self) -> Option<usize> {
        let is_between = self.decoder.is_none() && self.ahead.is_empty() && self.out.is_empty();
        if !is_between || self.stopping.is_stopping() {
            return None;
        }
        self.stays = REQUESTS_BETWEEN;
        self.shared.homes.better(&self.shared.counts, self.index, &self.stream)
    }

    /// Reads once, and begins on what came.
    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        scratch: &mut [u8],
    ) -> Poll<Result<Option<Next<'a>>, Break>> {
        let mut buffer = ReadBuf::new(scratch);
        std::task::ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
        let bytes = buffer.filled();
        if bytes.is_empty() {
            return Poll::Ready(match &self.decoder {
                Some(decoder) if decoder.has_begun() => Err(Break::Truncated),
                _ => Ok(Some(Next::End)),
            });
        }
        let (taken, next) = self.decode(bytes);
        if taken < bytes.len() {
            debug_assert!(self.ahead.is_empty());
            self.ahead.push(&bytes[taken..]);
        }
        Poll::Ready(Ok(next))
    }

    /// Feeds the decoder; how much it took, and what came of it.
    fn decode(&mut self, bytes: &[u8]) -> (usize, Option<Next<'a>>) {
        let mut decoder = self.decoder.take().unwrap_or_else(|| spare_decoder(&self.shared.limits));
        let decoded = match decoder.decode(bytes) {
            Ok(decoded) => decoded,
            Err(error) => {
                let refused = Refused::of(error, &decoder, bytes, self.counts);
                return (bytes.len(), Some(Next::Refused(refused)));
            }
        };
        if decoded.complete {
            let request_bytes = decoder.head().len() + decoder.body().len();
            if request_bytes > FREE_BYTES && !self.held.set(request_bytes) {
                let refused = self.no_room(Some(&decoder));
                return (decoded.consumed, Some(Next::Refused(refused)));
            }
            self.working_bytes = request_bytes;
            let manner = Manner {
                minor_version: decoder.minor_version(),
                is_head: decoder.method() == b"HEAD",
                closes: !decoder.keep_alive(),
            };
            let begun = request::begin(self.shared, self.counts, &decoder);
            self.is_continued = false;
            give_decoder_back(decoder);
            return (decoded.consumed, Some(Next::Request(begun, manner)));
        }
        if decoder.head_complete() && self.wait == Wait::Head {
            (self.wait, self.since) = (Wait::Body, Instant::now());
        }
        let asks = decoder.expects_continue() && !std::mem::replace(&mut self.is_continued, true);
        self.decoder = Some(decoder);
        (decoded.consumed, asks.then_some(Next::Continue))
    }

    /// Ready when it has waited for too long, with what comes of that.
    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<Result<Next<'a>, Break>> {
        let limits = &self.shared.limits;
        let (patience, bound) = match (self.out.is_empty(), self.wait) {
            (false, _) => (limits.body_timeout, Bound::WriteTime),
            (true, Wait::Body) => (limits.body_timeout, Bound::BodyTime),
            (true, Wait::Head) => (limits.head_timeout, Bound::HeadTime),
        };
        let overdue = self.since + patience;
        let due = self.grace_until.map_or(overdue, |until| until.min(overdue));
        // The timer wakes it before that, and has not yet: nothing is overdue, and the clock need not be asked.
        if self.timer_at.is_some_and(|at| at <= due) && !self.timer.is_elapsed() {
            return Poll::Pending;
        }
        let now = Instant::now();
        if due <= now {
            return Poll::Ready(match bound {
                _ if due < overdue => Ok(Next::End),
                Bound::BodyTime => {
                    self.counts.bound_hit(bound);
                    let late = reason(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time");
                    Ok(Next::Refused(Refused::whose_head_is_there(late, self.decoder.as_deref())))
                }
                bound => Err(Break::Bound(bound)),
            });
        }
        // One that was armed for an earlier wait wakes the connection for nothing, and is armed anew then.
        self.timer.as_mut().reset(due.into());
        self.timer_at = Some(due);
        if self.timer.as_mut().poll(context).is_ready() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// While an answer is being worked on: sends those before it, and reads ahead, a bounded amount. Ready when the
    /// client is gone.
    fn poll_client(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Poll::Ready(Err(_)) = self.poll_flush(context) {
            return Poll::Ready(());
        }
        let mut reads = self.ends_at.is_none();
        while reads && self.may_read_ahead() {
            let polled = with_scratch(|scratch| {
                let most = (AHEAD_BYTES_MAX - self.ahead.left().len()).min(scratch.len());
                let mut buffer = ReadBuf::new(&mut scratch[..most]);
                let read = std::task::ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
                Poll::Ready(read.map(|()| {
                    self.ahead.push(buffer.filled());
                    buffer.filled().len()
                }))
            });
            match polled {
                Poll::Ready(Ok(0)) => {
                    // It may only have closed its side, and wait for what it has asked for.
                    self.ends_at = Some(Instant::now() + self.shared.limits.body_timeout);
                    reads = false;
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(_)) => return Poll::Ready(()),
                Poll::Pending => reads = false,
            }
        }
        if !self.holds() {
            if !self.out.is_empty() {
                self.counts.bound_hit(Bound::Held);
                return Poll::Ready(());
            }
            // other workers were faster, by one piece that was read ahead
            self.held.set_anyway(self.working_bytes + self.ahead.held_bytes());
        }
        match self.ends_at {
            Some(at) => self.poll_end(at, context),
            None => Poll::Pending,
        }
    }

    fn may_read_ahead(&self) -> bool {
        let room = AHEAD_BYTES_MAX - self.ahead.left().len().min(AHEAD_BYTES_MAX);
        room > 0 && self.held.has_room(2 * AHEAD_BYTES_MAX)
    }

    /// Ready at this time.
    fn poll_end(&mut self, at: Instant, context: &mut Context<'_>) -> Poll<()> {
        if self.timer_at != Some(at) {
            self.timer.as_mut().reset(at.into());
            self.timer_at = Some(at);
        }
        self.timer.as_mut().poll(context)
    }
}
