//! A stream: what those above take for a connection, and its request under way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use h2::client::ResponseFuture;
use h2::{RecvStream, SendStream};

use super::answer::Reply;
use super::request::Message;
use crate::session::failure::Violation;

/// A request under way.
pub(super) struct Exchange {
    /// There until the head has come.
    head: Option<ResponseFuture>,
    /// There from then on.
    body: Option<RecvStream>,
    /// This side of the stream, while more may be sent.
    pub upload: Option<SendStream<Bytes>>,
    /// Whether the stream was left open for messages.
    pub stays_open: bool,
    /// Whether its answer is taken in parts.
    in_parts: bool,
    /// Whether a part of the answer, or the rest of it, is waited for.
    pub is_awaited: bool,
    /// Whether something came that has not been shown.
    has_news: bool,
    /// Whether an interim answer (1xx) has come before the head.
    has_interim: bool,
    /// How often bytes had come on its connection when it began.
    pub receptions_before: u64,
}

/// A message on an open stream.
pub(super) struct Piece {
    pub data: Bytes,
    pub ends: bool,
    pub awaits: bool,
}

/// How much of an answer has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// More than was there before.
    Part,
    /// All of it.
    Whole,
}

/// What stands above takes it for a connection.
#[derive(Default)]
pub(super) struct Stream {
    /// The connection that it is on.
    pub link: Option<u32>,
    /// Whether its connection was made for it; others came to it later.
    pub is_first: bool,
    /// Its request, until that is begun.
    pub request: Option<Message>,
    /// Whether that leaves it open.
    pub stays_open: bool,
    /// Whether its answer is taken in parts even if it does not.
    pub in_parts: bool,
    /// Why the server reset its last request, if it did.
    pub reset: Option<u32>,
    /// What is said next on it, where it is open.
    pub piece: Option<Piece>,
    /// Its request under way.
    pub exchange: Option<Exchange>,
    /// The answer to its last request.
    pub reply: Reply,
    /// When the head of that came, where it was not whole by it.
    pub begun: Option<Instant>,
}

impl Stream {
    /// Takes a request that is sent next. The body of its answer is kept, or so many bytes of it.
    pub fn ask(&mut self, message: Message, needs_body: bool, shown_bytes: usize) {
        self.reply.begin(message.0.method(), needs_body, shown_bytes);
        let asked = message.0.uri().path_and_query();
        self.reply.take_target(asked.map_or("/", |asked| asked.as_str()));
        self.request = Some(message);
    }
}

/// Why a stream has no answer.
pub(super) enum Unanswered {
    /// As the library says it.
    Error(h2::Error),
    /// The answer is not within the bounds.
    Violation(Violation),
}

impl From<h2::Error> for Unanswered {
    fn from(error: h2::Error) -> Self {
        Unanswered::Error(error)
    }
}

impl From<Violation> for Unanswered {
    fn from(violation: Violation) -> Self {
        Unanswered::Violation(violation)
    }
}

impl Exchange {
    /// Of a request that was begun.
    pub fn new(
        head: ResponseFuture,
        upload: Option<SendStream<Bytes>>,
        in_parts: bool,
        receptions_before: u64,
    ) -> Self {
        Exchange {
            in_parts,
            head: Some(head),
            body: None,
            stays_open: upload.is_some(),
            upload,
            is_awaited: true,
            has_news: false,
            has_interim: false,
            receptions_before,
        }
    }

    /// Whether the head has come.
    pub fn has_head(&self) -> bool {
        self.body.is_some()
    }

    /// Whether the server has begun to answer, if only by an interim answer (1xx): then it has taken the request.
    pub fn is_taken(&self) -> bool {
        self.has_head() || self.has_interim
    }

    /// Takes what has come of the answer, in parts where that is wanted. The body, or each part of it, may have so many bytes.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        reply: &mut Reply,
        body_bytes: usize,
    ) -> Poll<Result<Came, Unanswered>> {
        if let Some(head) = self.head.as_mut() {
            while let Poll::Ready(Some(Ok(_))) = head.poll_informational(cx) {
                self.has_interim = true;
            }
            let answer = match Pin::new(head).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(answer) => answer?,
            };
            self.head = None;
            self.body = Some(reply.take_head(answer, body_bytes)?);
            self.has_news = true;
        }
        let Some(body) = self.body.as_mut() else { return Poll::Ready(Ok(Came::Whole)) };
        loop {
            match body.poll_data(cx) {
                Poll::Pending if self.in_parts && std::mem::take(&mut self.has_news) => {
                    return Poll::Ready(Ok(Came::Part));
                }
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => break,
                Poll::Ready(Some(piece)) => {
                    let piece = piece?;
                    body.flow_control().release_capacity(piece.len())?;
                    reply.take_body(&piece, body_bytes)?;
                    self.has_news = true;
                }
            }
        }
        if reply.wants_trailers() {
            match body.poll_trailers(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(trailers) => reply.take_trailers(trailers?.unwrap_or_default())?,
            }
        }
        reply.end(body_bytes);
        Poll::Ready(Ok(Came::Whole))
    }
}
