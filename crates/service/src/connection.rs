//! A connection of HTTP/1.1: one request after the other, each answered before the next is begun.
//!
//! While it waits it has no buffers. What comes is read into a buffer of the worker's and decoded there; only what is
//! left over, the beginning of a next request, is kept. Decoders go round among the connections of a worker.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, HttpBody};
use axum::http::{Method, Response, StatusCode, header};
use bytes::Bytes;
use tidemark_wire::http1::{HttpError, RequestDecoder};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::Answer;
use crate::answer::{Content, reason};
use crate::buffers::{give_back, give_decoder_back, spare_buffer, spare_decoder, with_scratch};
use crate::home::{REQUESTS_BETWEEN, REQUESTS_FIRST};
use crate::metrics::{Bound, NO_ROUTE, WorkerCounts};
use crate::request::{self, Begun, Work};
use crate::rpc::Form;
use crate::shared::{Shared, State};
use crate::worker::Stopping;
use crate::write::{self, Length, Manner};

/// Of further requests so much is read while one is being answered.
const AHEAD_BYTES_MAX: usize = 64 << 10;
/// Answers are sent when there are so many bytes of them, whatever else there is to do.
const SEND_BYTES: usize = 64 << 10;
/// After the stop a connection that has never sent a request is kept this long, for one that is on its way.
const FIRST_REQUEST_GRACE: Duration = Duration::from_millis(250);

/// How a connection ended.
#[derive(Debug)]
pub(crate) enum End {
    /// In order, or because the client is gone.
    Closed,
    /// With an answer to a client that may still be sending.
    Refused,
    /// It becomes a WebSocket with calls; what came behind the request.
    Upgrade(Form, Vec<u8>),
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
    Refused(Answer, Option<Method>),
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
    /// Read behind the request before, from `ahead_at` on.
    ahead: Vec<u8>,
    ahead_at: usize,
    /// Answers that are not sent yet, but for what is before `out_at`; empty when all are.
    out: Vec<u8>,
    out_at: usize,
    /// The client was told to go on with the body of this request.
    is_continued: bool,
    has_served: bool,
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
            ahead: Vec::new(),
            ahead_at: 0,
            out: Vec::new(),
            out_at: 0,
            is_continued: false,
            has_served,
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
                Next::Refused(answer, method) => {
                    if let Some(method) = method {
                        self.counts.request(NO_ROUTE, &method, answer.status(), self.since.elapsed());
                    }
                    let manner = Manner { minor_version: 1, is_head: false, closes: true };
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
        let form = if let Work::Upgrade(_, form) = work { Some(form) } else { None };
        let answer = poll_fn(|context| match work.poll(context, self.counts, &mut route) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => self.poll_client(context).map(|()| None),
        })
        .await;
        drop(work);
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
        if let Some(form) = form {
            self.flush().await?;
            return Ok(Some(End::Upgrade(form, self.ahead.split_off(self.ahead_at))));
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
            if self.ahead_at < self.ahead.len() {
                if self.out.len() >= SEND_BYTES && self.poll_flush(context)?.is_pending() {
                    return self.poll_timer(context);
                }
                let ahead = std::mem::take(&mut self.ahead);
                let (taken, next) = self.decode(&ahead[self.ahead_at..]);
                self.ahead_at += taken;
                if self.ahead_at < ahead.len() {
                    self.ahead = ahead;
                } else {
                    self.ahead_at = 0;
                    give_back(ahead);
                }
                if let Some(next) = next {
                    return Poll::Ready(Ok(next));
                }
            }
            // Nothing is read while the client does not take its answers.
            if self.poll_flush(context)?.is_pending() {
                return self.poll_timer(context);
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
                Poll::Pending => return self.poll_timer(context),
            }
        }
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
            debug_assert!(self.ahead.is_empty() && self.ahead_at == 0);
            self.ahead = spare_buffer();
            self.ahead.extend_from_slice(&bytes[taken..]);
        }
        Poll::Ready(Ok(next))
    }

    /// Feeds the decoder; how much it took, and what came of it.
    fn decode(&mut self, bytes: &[u8]) -> (usize, Option<Next<'a>>) {
        let mut decoder = self.decoder.take().unwrap_or_else(|| spare_decoder(&self.shared.limits));
        let decoded = match decoder.decode(bytes) {
            Ok(decoded) => decoded,
            Err(error) => return (bytes.len(), Some(self.refuse(&decoder, error))),
        };
        if decoded.complete {
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

    /// The answer to a request that is not one, or larger than is taken.
    fn refuse(&self, decoder: &RequestDecoder, error: HttpError) -> Next<'a> {
        let method = || Method::from_bytes(decoder.method()).ok();
        let (status, text, method) = match error {
            HttpError::HeadTooLarge { .. } | HttpError::TooManyHeaders { .. } => {
                self.counts.bound_hit(Bound::Head);
                (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, error.to_string(), None)
            }
            HttpError::BodyTooLarge { limit_bytes } => {
                self.counts.bound_hit(Bound::Body);
                let text = format!("the body is larger than {limit_bytes} bytes");
                (StatusCode::PAYLOAD_TOO_LARGE, text, method())
            }
            error => {
                self.counts.broken_connections.fetch_add(1, Ordering::Relaxed);
                (StatusCode::BAD_REQUEST, error.to_string(), None)
            }
        };
        Next::Refused(reason(status, &text).into(), method)
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
                    let method = self.decoder.as_ref().and_then(|it| Method::from_bytes(it.method()).ok());
                    Ok(Next::Refused(late.into(), method))
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
        while self.ahead.len() - self.ahead_at < AHEAD_BYTES_MAX {
            let is_gone = with_scratch(|scratch| {
                let mut buffer = ReadBuf::new(scratch);
                let read = std::task::ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
                if self.ahead.capacity() == 0 {
                    self.ahead = spare_buffer();
                }
                self.ahead.extend_from_slice(buffer.filled());
                Poll::Ready(read.is_err() || buffer.filled().is_empty())
            });
            match is_gone {
                Poll::Ready(false) => {}
                Poll::Ready(true) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        Poll::Pending
    }

    /// Puts an answer behind those that are to be sent; sends of a long one what has room nowhere. Whether the
    /// connection closes behind it.
    async fn write(&mut self, answer: Answer, manner: Manner, now: Instant) -> Result<bool, Break> {
        if self.out.capacity() == 0 {
            self.out = spare_buffer();
        }
        match answer.0 {
            Content::Plain { status, content_type, body } => {
                write::plain(&mut self.out, (status, content_type), &body, manner, now);
                Ok(manner.closes)
            }
            Content::Written(body) => {
                write::plain(&mut self.out, (StatusCode::OK, "application/json"), &body, manner, now);
                give_back(body);
                Ok(manner.closes)
            }
            Content::Full(response) => self.write_response(*response, manner, now).await,
        }
    }

    async fn write_response(
        &mut self,
        response: Response<Body>,
        mut manner: Manner,
        now: Instant,
    ) -> Result<bool, Break> {
        let (head, mut body) = response.into_parts();
        // To a HEAD the router says how long the body would be, and sends none.
        let announced = head.headers.get(header::CONTENT_LENGTH).filter(|_| manner.is_head);
        let announced = announced.and_then(|length| length.to_str().ok()?.parse().ok());
        let exact_bytes = announced.or(body.size_hint().exact());
        let length = Length::of(head.status, exact_bytes, manner.minor_version);
        manner.closes |= length == Length::UntilClose;
        write::head(&mut self.out, (head.status, &head.headers), length, manner, now);
        if manner.is_head || length == Length::None {
            return Ok(manner.closes);
        }
        let mut sent_bytes = 0;
        while let Some(piece) = self.next_piece(&mut body).await? {
            sent_bytes += piece.len() as u64;
            match length {
                Length::Chunked => write::chunk(&mut self.out, &piece),
                // a byte too many would be taken for the next answer
                Length::Bytes(announced) if sent_bytes > announced => return Err(Break::Truncated),
                _ => self.out.extend_from_slice(&piece),
            }
            if self.out.len() >= SEND_BYTES {
                self.flush().await?;
            }
        }
        match length {
            Length::Chunked => self.out.extend_from_slice(write::LAST_CHUNK),
            Length::Bytes(announced) if sent_bytes < announced => return Err(Break::Truncated),
            _ => {}
        }
        Ok(manner.closes)
    }

    /// Of a body what comes next. While that is being made, what is there is sent.
    async fn next_piece(&mut self, body: &mut Body) -> Result<Option<Bytes>, Break> {
        loop {
            if body.is_end_stream() {
                return Ok(None);
            }
            let polled = poll_fn(|context| Poll::Ready(Pin::new(&mut *body).poll_frame(context))).await;
            let frame = match polled {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    self.flush().await?;
                    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
                }
            };
            match frame {
                None => return Ok(None),
                Some(Err(_)) => return Err(Break::Truncated),
                // trailers are nothing that anybody here makes
                Some(Ok(frame)) => {
                    if let Ok(piece) = frame.into_data() {
                        return Ok(Some(piece));
                    }
                }
            }
        }
    }

    /// Sends all that is to be sent, to a client that goes on taking it.
    async fn flush(&mut self) -> Result<(), Break> {
        let patience = self.shared.limits.body_timeout;
        while !self.out.is_empty() {
            let sent = match poll_fn(|context| Poll::Ready(self.poll_send(context))).await {
                Poll::Ready(sent) => Ok(sent),
                Poll::Pending => {
                    let sending = poll_fn(|context| self.poll_send(context));
                    tokio::time::timeout(patience, sending).await
                }
            };
            sent.map_err(|_| Break::Bound(Bound::WriteTime))??;
        }
        Ok(())
    }

    /// Sends as much as the socket takes; ready when that was all.
    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.out.is_empty() {
            std::task::ready!(self.poll_send(context))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Sends once.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let left = &self.out[self.out_at..];
        let sent = std::task::ready!(Pin::new(&mut self.stream).poll_write(context, left))?;
        if sent == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        self.out_at += sent;
        if self.out_at == self.out.len() {
            self.out_at = 0;
            give_back(std::mem::take(&mut self.out));
        } else {
            // it takes something: its time begins anew
            self.since = Instant::now();
        }
        Poll::Ready(Ok(()))
    }
}
