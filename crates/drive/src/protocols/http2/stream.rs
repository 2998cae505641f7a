//! A stream: what those above take for a connection, and its request under way.

use std::time::Instant;

use bytes::Bytes;
use tidemark_wire::http2::connection::{Event, StreamError};
use tidemark_wire::http2::hpack::Fields;

use super::answer::Reply;
use super::request::Message;
use crate::session::failure::Violation;

/// A request under way.
pub(super) struct Exchange {
    /// The stream's number on its connection.
    pub number: u32,
    /// Whether the stream was left open for messages.
    pub stays_open: bool,
    /// Whether its answer is taken in parts.
    pub in_parts: bool,
    /// Whether a part of the answer, or the rest of it, is waited for.
    pub is_awaited: bool,
    /// Whether something came that has not been shown.
    pub has_news: bool,
    /// Whether the server has begun to answer, if only by an interim answer (1xx): then it has taken the request.
    pub is_taken: bool,
    /// How its answer ended, once it has.
    pub ended: Option<Result<(), Unanswered>>,
    /// How often bytes had come on its connection when it began, and when its head came.
    pub receptions_before: u64,
    receptions_at_head: u64,
}

/// A message on an open stream.
pub(super) struct Piece {
    pub data: Bytes,
    pub ends: bool,
    pub awaits: bool,
}

/// What stands above takes it for a connection.
#[derive(Default)]
pub(super) struct Stream {
    /// The connection that it is on.
    pub link: Option<u32>,
    /// Whether its connection was made for it; others came to it later.
    pub is_first: bool,
    /// The request that was written last, and whether it has not begun.
    pub message: Message,
    pub is_written: bool,
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

/// Why a stream has no answer.
pub(super) enum Unanswered {
    /// As the connection says it.
    Error(StreamError),
    /// The answer is not within the bounds.
    Violation(Violation),
}

impl Stream {
    /// The request that was written is sent next. The body of its answer is kept, or so many bytes of it.
    pub fn ask(&mut self, needs_body: bool, shown_bytes: usize) {
        self.reply.begin(self.message.is_head(), needs_body, shown_bytes);
        self.reply.take_target(self.message.path());
        self.is_written = true;
    }

    /// Takes what came for it, at a time, with so many receptions of its connection. The body, or each part of it, may have so
    /// many bytes. Whether it is to be looked at.
    pub fn take(
        &mut self,
        event: Event<'_>,
        fields: &mut Fields,
        (came, receptions): (Instant, u64),
        body_bytes: usize,
    ) -> bool {
        let Some(exchange) = self.exchange.as_mut().filter(|exchange| exchange.ended.is_none()) else {
            return false;
        };
        let reply = &mut self.reply;
        exchange.is_taken |= !matches!(event, Event::Failed { .. });
        let taken = match event {
            Event::Interim { .. } => return false,
            Event::Failed { why, .. } => {
                exchange.ended = Some(Err(Unanswered::Error(why)));
                return true;
            }
            Event::Head { status, length, ends, .. } => {
                exchange.receptions_at_head = receptions;
                self.begun = Some(came);
                reply.take_head((status, length), fields, body_bytes).map(|()| ends)
            }
            Event::Data { bytes, ends, .. } => reply.take_body(bytes, body_bytes).map(|()| ends),
            Event::Trailers { .. } if reply.wants_trailers() => reply.take_trailers(fields).map(|()| true),
            Event::Trailers { .. } => Ok(true),
        };
        match taken {
            Ok(false) => {
                let is_new = !std::mem::replace(&mut exchange.has_news, true);
                return exchange.in_parts && is_new;
            }
            Ok(true) => {
                reply.end(body_bytes);
                exchange.ended = Some(Ok(()));
            }
            Err(violation) => exchange.ended = Some(Err(Unanswered::Violation(violation))),
        }
        if exchange.receptions_at_head == receptions {
            self.begun = None;
        }
        true
    }
}

impl Exchange {
    /// Of a request that was begun.
    pub fn new(number: u32, stays_open: bool, in_parts: bool, receptions_before: u64) -> Self {
        Exchange {
            number,
            stays_open,
            in_parts,
            is_awaited: true,
            has_news: false,
            is_taken: false,
            ended: None,
            receptions_before,
            receptions_at_head: 0,
        }
    }
}
