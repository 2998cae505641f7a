//! A stream: what those above take for a connection, and its request under way.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use h2::RecvStream;
use h2::client::ResponseFuture;

use super::message::{Framing, write_end, write_head, write_piece};

/// A request under way.
pub(super) struct Exchange {
    /// There until the head has come.
    head: Option<ResponseFuture>,
    /// There from then on.
    body: Option<RecvStream>,
    framing: Framing,
    is_head: bool,
    /// How often bytes had come on its connection when it began.
    pub receptions_before: u64,
}

/// What stands above takes it for a connection.
#[derive(Default)]
pub(super) struct Stream {
    /// The connection that it is on.
    pub link: Option<u32>,
    /// Whether its connection was made for it; others came to it later.
    pub is_first: bool,
    /// The text of its request.
    pub output: Vec<u8>,
    /// Its request under way.
    pub exchange: Option<Exchange>,
}

impl Exchange {
    /// Of a request that was begun.
    pub fn new(head: ResponseFuture, is_head: bool, receptions_before: u64) -> Self {
        Exchange { head: Some(head), body: None, framing: Framing::Bodiless, is_head, receptions_before }
    }

    /// Takes what has come of the answer, as text of HTTP/1.1.
    pub fn poll(&mut self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Poll<Result<(), h2::Error>> {
        if let Some(head) = self.head.as_mut() {
            let answer = match Pin::new(head).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(answer) => answer?,
            };
            self.framing = write_head(&answer, self.is_head, answer.body().is_end_stream(), out);
            self.head = None;
            self.body = Some(answer.into_body());
        }
        let Some(body) = self.body.as_mut() else { return Poll::Ready(Ok(())) };
        loop {
            match body.poll_data(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(None) => break,
                Poll::Ready(Some(piece)) => {
                    let piece = piece?;
                    write_piece(self.framing, &piece, out);
                    body.flow_control().release_capacity(piece.len())?;
                }
            }
        }
        write_end(self.framing, out);
        Poll::Ready(Ok(()))
    }
}
