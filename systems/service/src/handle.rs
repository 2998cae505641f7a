//! What hyper's side of a connection and ours share: the socket, what is to be sent, and where the connection is.

use std::io::{self, ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::endpoint::Upgrade;
use crate::framing::{Framing, Wrong};
use crate::held::Held;
use crate::metrics::WorkerCounts;
use crate::shared::Shared;

/// Answers are sent at the end of a turn, together, or when there are so many bytes of them. One that is larger goes
/// to the socket without a copy.
const SEND_BYTES: usize = 16 << 10;
/// So much of the buffer for answers is kept while there are none.
const KEPT_BYTES: usize = 1 << 10;

/// hyper's buffer for what comes is usually no larger. It grows with what a client sends and never shrinks.
const BUFFER_BYTES: usize = 16 << 10;

/// What the connection is waiting for, which is how long it may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// For a request, or the rest of its head.
    Head,
    /// For the rest of a body.
    Body,
    /// For whoever makes the answer.
    Work,
    /// For the rest of an answer to be made.
    Answer,
    /// The same of one that has no end: whoever has closed that side does not wait for it.
    Events,
}

/// What becomes of a request whose body does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyRefusal {
    Late,
    NoRoom,
}

/// One connection. Only its own task touches it, so its lock is always free.
pub(crate) struct ConnectionHandle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) worker: usize,
    state: Mutex<ConnectionState>,
}

pub(crate) struct ConnectionState {
    pub(crate) stream: TcpStream,
    /// Answers that are not sent yet, but for what is before `out_at`; empty when all are.
    pub(crate) out: Vec<u8>,
    out_at: usize,
    pub(crate) waiting: Waiting,
    /// Since when it waits for that.
    pub(crate) since: Instant,
    /// Bytes read since the last request began.
    pub(crate) received: usize,
    /// Room in hyper's buffer when it last read.
    buffer_bytes: usize,
    /// What comes before all that is still in the socket.
    ahead: Bytes,
    pub(crate) framing: Framing,
    /// What is wrong with the head that comes: hyper is not given the rest, and has it refused.
    pub(crate) wrong: Option<Wrong>,
    /// Bytes of the request that is read or answered.
    pub(crate) request_bytes: usize,
    /// Bytes of answers that hyper has and has not given us.
    pub(crate) unsent: usize,
    /// Bytes of the latest piece of an answer, and of all pieces that are not wholly sent: each stays whole until then.
    piece_bytes: usize,
    kept_bytes: usize,
    pub(crate) held: Held,
    /// For whoever waits for a body.
    pub(crate) body_refusal: Option<BodyRefusal>,
    /// Whether it is to be noticed that the client goes while its answer is made.
    pub(crate) watches: bool,
    /// Deadline for the answer once the client has half-closed.
    pub(crate) ends_at: Option<Instant>,
    pub(crate) has_served: bool,
    /// A request was refused whose rest may still come.
    pub(crate) lingers: bool,
    pub(crate) upgrade: Option<Box<dyn Upgrade>>,
}

impl ConnectionHandle {
    pub(crate) fn new(shared: Arc<Shared>, worker: usize, stream: TcpStream) -> Self {
        let state = ConnectionState {
            stream,
            out: Vec::new(),
            out_at: 0,
            waiting: Waiting::Head,
            since: Instant::now(),
            received: 0,
            buffer_bytes: 0,
            ahead: Bytes::new(),
            framing: Framing::new(shared.limits.head_bytes_max),
            wrong: None,
            request_bytes: 0,
            unsent: 0,
            piece_bytes: 0,
            kept_bytes: 0,
            held: Held::new(shared.counts.budget.clone()),
            body_refusal: None,
            watches: false,
            ends_at: None,
            has_served: false,
            lingers: false,
            upgrade: None,
        };
        ConnectionHandle { shared, worker, state: Mutex::new(state) }
    }

    pub(crate) fn counts(&self) -> &WorkerCounts {
        &self.shared.counts.workers[self.worker]
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ConnectionState> {
        self.state.lock()
    }

    pub(crate) fn into_stream(self) -> TcpStream {
        self.state.into_inner().stream
    }
}

impl ConnectionState {
    /// The head of a request of so many bytes is there.
    pub(crate) fn begin(&mut self, head_bytes: usize) {
        self.received = 0;
        self.request_bytes = head_bytes;
        self.ends_at = None;
        self.waiting = Waiting::Work;
        self.watches = true;
        self.body_refusal = None;
    }

    /// The rest of its body is waited for, and meanwhile so many bytes are kept; or what has become of that.
    pub(crate) fn await_body(&mut self, kept_bytes: usize) -> Option<BodyRefusal> {
        if self.waiting != Waiting::Body {
            (self.waiting, self.since) = (Waiting::Body, Instant::now());
        }
        self.received = 0;
        self.request_bytes = kept_bytes;
        self.body_refusal.take()
    }

    /// The request is whole, and takes so many bytes while it is answered; false if there is no room for them.
    pub(crate) fn work(&mut self, request_bytes: usize) -> bool {
        self.waiting = Waiting::Work;
        self.received = 0;
        self.request_bytes = request_bytes;
        let held_bytes = self.held_bytes();
        self.held.set(held_bytes)
    }

    /// An answer goes to hyper, the bytes of a whole body with it; of another one they come, of events without end.
    pub(crate) fn begin_answer(&mut self, whole_bytes: Option<usize>, is_events: bool, now: Instant) {
        self.has_served = true;
        self.request_bytes = 0;
        self.keep(whole_bytes.unwrap_or(0));
        self.waiting = match whole_bytes {
            Some(_) => Waiting::Head,
            None if is_events => Waiting::Events,
            None => Waiting::Answer,
        };
        self.watches = true;
        self.since = now;
    }

    /// More of an answer goes to hyper.
    pub(crate) fn more(&mut self, bytes: usize) {
        self.keep(bytes);
        self.since = Instant::now();
    }

    fn keep(&mut self, bytes: usize) {
        // hyper asks for more only when little is left of what it has
        self.kept_bytes = bytes + if self.unsent > 0 { self.piece_bytes } else { 0 };
        self.piece_bytes = bytes;
        self.unsent += bytes;
    }

    /// The answer whose pieces went to hyper has ended.
    pub(crate) fn end_answer(&mut self) {
        if matches!(self.waiting, Waiting::Answer | Waiting::Events) {
            (self.waiting, self.since) = (Waiting::Head, Instant::now());
        }
    }

    /// The connection ends behind the answer, though the client may still be sending.
    pub(crate) fn linger(&mut self) {
        self.lingers = true;
    }

    /// With this the connection goes on behind the answer.
    pub(crate) fn upgrade_to(&mut self, upgrade: Box<dyn Upgrade>) {
        self.upgrade = Some(upgrade);
    }

    /// What it holds while it waits.
    pub(crate) fn held_bytes(&self) -> usize {
        // what is kept of an empty one is part of what a connection costs
        let out_bytes = if self.out.is_empty() { 0 } else { self.out.capacity() };
        let buffer_bytes = self.buffer_bytes.saturating_sub(BUFFER_BYTES);
        let ahead_bytes = self.ahead.len().saturating_sub(BUFFER_BYTES);
        self.received
            + ahead_bytes
            + buffer_bytes
            + self.request_bytes
            + self.unsent.max(self.kept_bytes)
            + out_bytes
    }

    /// Whether it waits for a request with a buffer that has grown.
    pub(crate) fn idles_with_large_buffer(&self) -> bool {
        self.waiting == Waiting::Head && self.received == 0 && self.buffer_bytes > BUFFER_BYTES
    }

    /// hyper begins anew, with a buffer of the usual size; what it had read and not taken comes again.
    pub(crate) fn begin_anew(&mut self, read: &[u8]) {
        self.buffer_bytes = 0;
        self.framing = Framing::new(self.framing.limit());
        if !read.is_empty() {
            self.ahead = [read, &self.ahead].concat().into();
        }
    }

    /// All that has come and that nobody has read: what hyper had, and what it was not given.
    pub(crate) fn unread(&mut self, read: Bytes) -> Bytes {
        let ahead = std::mem::take(&mut self.ahead);
        if ahead.is_empty() { read } else { [read, ahead].concat().into() }
    }

    /// Whether the client has sent something that nobody has read. What is found is gone, for a connection that ends.
    pub(crate) fn has_unread(&mut self) -> bool {
        !self.ahead.is_empty() || self.stream.try_read(&mut [0]).is_ok_and(|read| read > 0)
    }

    /// Sends all that is to be sent; ready when that is done.
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.out_at < self.out.len() {
            let sent = ready!(Pin::new(&mut self.stream).poll_write(context, &self.out[self.out_at..]))?;
            self.took(sent)?;
            self.out_at += sent;
        }
        self.out_at = 0;
        self.out.clear();
        if self.out.capacity() > KEPT_BYTES {
            self.out = Vec::new();
        }
        Poll::Ready(Ok(()))
    }

    /// The client took something: its time begins anew, where more is left for it.
    fn took(&mut self, sent: usize) -> io::Result<()> {
        if sent == 0 {
            return Err(ErrorKind::WriteZero.into());
        }
        if sent < self.out.len() - self.out_at || self.unsent > SEND_BYTES {
            self.since = Instant::now();
        }
        Ok(())
    }

    fn poll_take(&mut self, context: &mut Context<'_>, pieces: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
        if self.out.len() + bytes > SEND_BYTES {
            ready!(self.poll_send(context))?;
        }
        let taken = if bytes > SEND_BYTES {
            let sent = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, pieces))?;
            self.took(sent)?;
            sent
        } else {
            pieces.iter().for_each(|piece| self.out.extend_from_slice(piece));
            bytes
        };
        self.unsent = self.unsent.saturating_sub(taken);
        Poll::Ready(Ok(taken))
    }
}

/// The connection as hyper reads and writes it.
pub(crate) struct Socket(pub(crate) Arc<ConnectionHandle>);

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut state = self.0.state();
        state.buffer_bytes = buffer.remaining();
        let taken = ready!(state.poll_more(context, buffer)?);
        let state = &mut *state;
        match taken {
            Ok(taken) => {
                state.received += taken;
                Poll::Ready(Ok(()))
            }
            // whoever serves the connection answers
            Err(wrong) if state.framing.is_in_head() => {
                state.wrong = Some(wrong);
                Poll::Pending
            }
            Err(_) => Poll::Ready(Err(ErrorKind::InvalidData.into())),
        }
    }
}

impl ConnectionState {
    /// Reads what is there of the head or the body that hyper reads: how many bytes of it, none at the end of the connection.
    fn poll_more(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<Result<usize, Wrong>>> {
        if self.wrong.is_some() {
            return Poll::Pending;
        }
        if !self.ahead.is_empty() {
            let some = self.ahead.len().min(buffer.remaining());
            let taken = self.framing.take(&self.ahead[..some]);
            if let Ok(taken) = taken {
                buffer.put_slice(&self.ahead.split_to(taken));
            }
            return Poll::Ready(Ok(taken));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        if read.is_empty() {
            return Poll::Ready(Ok(Ok(0)));
        }
        let taken = self.framing.take(read);
        if let Ok(taken) = taken
            && taken < read.len()
        {
            self.ahead = Bytes::copy_from_slice(&read[taken..]);
            buffer.set_filled(before + taken);
        }
        Poll::Ready(Ok(taken))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.0.state().poll_take(context, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.state().poll_take(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// hyper has given all it had. What is left of the count was never sent: the body of an answer to HEAD.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut state = self.0.state();
        (state.unsent, state.kept_bytes) = (0, 0);
        Poll::Ready(Ok(()))
    }

    /// Whoever serves the connection closes it.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
