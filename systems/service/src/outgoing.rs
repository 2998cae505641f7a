//! Bodies of answers on their way to hyper.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::handle::ConnectionHandle;

/// The body of an answer.
pub(crate) enum Outgoing {
    Whole(Bytes),
    Pieces(Pieces),
}

/// One that is made piece by piece, each counted as held until the client has it.
pub(crate) struct Pieces {
    body: Body,
    handle: Arc<ConnectionHandle>,
}

impl Outgoing {
    pub(crate) fn of(body: Body, handle: Arc<ConnectionHandle>) -> Self {
        if body.is_end_stream() {
            return Outgoing::Whole(Bytes::new());
        }
        Outgoing::Pieces(Pieces { body, handle })
    }

    /// Its bytes, where all are there.
    pub(crate) fn whole_bytes(&self) -> Option<usize> {
        if let Outgoing::Whole(body) = self { Some(body.len()) } else { None }
    }
}

impl HttpBody for Outgoing {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let Pieces { body, handle } = match self.get_mut() {
            Outgoing::Whole(body) => {
                let body = std::mem::take(body);
                return Poll::Ready((!body.is_empty()).then(|| Ok(Frame::data(body))));
            }
            Outgoing::Pieces(pieces) => pieces,
        };
        let frame = ready!(Pin::new(body).poll_frame(context));
        if let Some(Ok(frame)) = &frame {
            handle.state().more(frame.data_ref().map_or(0, Bytes::len));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Outgoing::Whole(body) => body.is_empty(),
            Outgoing::Pieces(pieces) => pieces.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Outgoing::Whole(body) => SizeHint::with_exact(body.len() as u64),
            Outgoing::Pieces(pieces) => pieces.body.size_hint(),
        }
    }
}

impl Drop for Pieces {
    fn drop(&mut self) {
        self.handle.state().end_answer();
    }
}
