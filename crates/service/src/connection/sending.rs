//! Answers on their way out.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use axum::body::{Body, HttpBody};
use axum::http::{Response, StatusCode, header};
use bytes::Bytes;
use tokio::io::AsyncWrite;

use super::{Break, Connection, SEND_BYTES};
use crate::Answer;
use crate::answer::Content;
use crate::buffers::{give_back, spare_buffer};
use crate::metrics::Bound;
use crate::write::{self, Length, Manner};

impl Connection<'_> {
    /// Puts an answer behind those that are to be sent; sends of a long one what has room nowhere. Whether the
    /// connection closes behind it.
    pub(super) async fn write(
        &mut self,
        answer: Answer,
        manner: Manner,
        now: Instant,
    ) -> Result<bool, Break> {
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
            drop(piece);
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
    pub(super) async fn flush(&mut self) -> Result<(), Break> {
        let patience = self.shared.limits.body_timeout;
        while !self.out.is_empty() {
            let sent = match poll_fn(|context| Poll::Ready(self.poll_send(context))).await {
                Poll::Ready(sent) => Ok(sent),
                Poll::Pending => {
                    if !self.holds() {
                        return Err(Break::Bound(Bound::Held));
                    }
                    let sending = poll_fn(|context| self.poll_send(context));
                    tokio::time::timeout(patience, sending).await
                }
            };
            sent.map_err(|_| Break::Bound(Bound::WriteTime))??;
        }
        Ok(())
    }

    /// Sends as much as the socket takes; ready when that was all.
    pub(super) fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
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
