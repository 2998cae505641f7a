//! One HTTP/1.1 connection on which requests are pipelined.
//!
//! A request is appended to what is to be sent, and its task is woken: what many callers append in one turn of the event
//! loop leaves in one write. Answers come in the order of the requests. An answer for which nobody waits any more is read
//! and thrown away, so a late one costs only its own request.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use parking_lot::Mutex;
use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Requests without an answer on one connection; one more goes elsewhere.
const WAITING_MAX: usize = 1024;
/// Bytes that are to be sent; beyond, requests go elsewhere.
const OUT_BYTES_MAX: usize = 1 << 20;
/// What a service may answer.
const ANSWER: DecoderLimits = DecoderLimits { head_bytes: 16 << 10, headers: 64, body_bytes: 1 << 20 };
/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// A connection that nobody uses is closed after so long, sooner than servers do.
const IDLE_MAX: Duration = Duration::from_secs(20);
/// How often it is looked whether an answer is overdue.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Its status.
    pub status: u16,
    /// Its body.
    pub body: Bytes,
}

/// Why there will be no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// The other side has not worked on the request, for certain.
    NotDone,
    /// It may have.
    Unknown,
}

type Answered = Result<Reply, Lost>;

struct Waiting {
    answer: oneshot::Sender<Answered>,
    since: Instant,
    /// Where its request begins in all that is sent on the connection.
    begins_at: u64,
}

#[derive(Default)]
struct State {
    out: Vec<u8>,
    /// Bytes of `out` that are sent.
    out_at: usize,
    /// Bytes that were sent before those of `out`.
    sent_before: u64,
    waiting: VecDeque<Waiting>,
    task: Option<Waker>,
    /// Takes no more requests; answers may still come.
    is_closing: bool,
}

/// A connection, as its callers see it.
#[derive(Default)]
pub(crate) struct Connection(Mutex<State>);

impl Connection {
    /// Begins to connect, on the event loop of the caller. Requests may be sent at once.
    ///
    /// It must be there within `connect_max`, and is closed when an answer is later than `answer_max`.
    pub(crate) fn open(addr: SocketAddr, connect_max: Duration, answer_max: Duration) -> Arc<Self> {
        let connection = Arc::new(Connection::default());
        let task = Task(connection.clone());
        tokio::spawn(async move {
            // taken whole, so that it is dropped with the task however that ends
            let task = task;
            let connecting = tokio::time::timeout(connect_max, TcpStream::connect(addr)).await;
            if let Ok(Ok(stream)) = connecting {
                // Where this fails the connection is dead, and is seen to be.
                let _ = stream.set_nodelay(true);
                let mut driver = Driver::new(stream, answer_max);
                let _ = poll_fn(|context| driver.poll(&task.0, context)).await;
            }
        });
        connection
    }

    /// Requests without an answer; none where the connection takes no more.
    pub(crate) fn waiting(&self) -> Option<usize> {
        let state = self.0.lock();
        (!state.is_closing).then_some(state.waiting.len())
    }

    /// Sends the request that `write` appends; none where the connection takes no more.
    pub(crate) fn send(
        &self,
        since: Instant,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Option<oneshot::Receiver<Answered>> {
        let mut state = self.0.lock();
        if state.is_closing || state.waiting.len() >= WAITING_MAX || state.out.len() >= OUT_BYTES_MAX {
            return None;
        }
        let (answer, receiver) = oneshot::channel();
        let begins_at = state.sent_before + state.out.len() as u64;
        state.waiting.push_back(Waiting { answer, since, begins_at });
        write(&mut state.out);
        let task = state.task.take();
        drop(state);
        if let Some(task) = task {
            task.wake();
        }
        Some(receiver)
    }

    /// Takes no more requests; all that wait are told.
    fn close(&self, lost: impl Fn(&Waiting, u64) -> Lost) {
        let mut state = self.0.lock();
        state.is_closing = true;
        let sent = state.sent_before + state.out_at as u64;
        let waiting = std::mem::take(&mut state.waiting);
        state.out = Vec::new();
        drop(state);
        for waiting in waiting {
            let lost = lost(&waiting, sent);
            // whoever gave up does not mind
            let _ = waiting.answer.send(Err(lost));
        }
    }
}

/// What ends with the connection's task, also where its event loop ends.
struct Task(Arc<Connection>);

impl Drop for Task {
    fn drop(&mut self) {
        let lost =
            |waiting: &Waiting, sent| if waiting.begins_at >= sent { Lost::NotDone } else { Lost::Unknown };
        self.0.close(lost);
    }
}

/// The task's side of a connection.
struct Driver {
    stream: TcpStream,
    decoder: ResponseDecoder,
    buffer: Box<[u8]>,
    looks: Interval,
    answer_max: Duration,
    used: Instant,
}

impl Driver {
    fn new(stream: TcpStream, answer_max: Duration) -> Self {
        let mut looks = interval(LOOK_EVERY);
        looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let decoder = ResponseDecoder::new(ANSWER);
        let buffer = vec![0; READ_BYTES].into();
        Driver { stream, decoder, buffer, looks, answer_max, used: Instant::now() }
    }

    /// Goes on until the connection ends.
    fn poll(&mut self, connection: &Connection, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.looks.poll_tick(context).is_ready() {
            self.look(&mut connection.0.lock())?;
        }
        let mut state = connection.0.lock();
        state.task = Some(context.waker().clone());
        if let Poll::Ready(Err(error)) = self.poll_send(&mut state, context) {
            return Poll::Ready(Err(error));
        }
        drop(state);
        self.poll_receive(connection, context)
    }

    fn look(&mut self, state: &mut State) -> io::Result<()> {
        match state.waiting.front() {
            Some(waiting) if waiting.since.elapsed() > self.answer_max => Err(io::ErrorKind::TimedOut.into()),
            None if self.used.elapsed() > IDLE_MAX => {
                state.is_closing = true;
                Err(io::ErrorKind::TimedOut.into())
            }
            _ => Ok(()),
        }
    }

    fn poll_send(&mut self, state: &mut State, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while state.out_at < state.out.len() {
            let stream = Pin::new(&mut self.stream);
            match ready!(stream.poll_write(context, &state.out[state.out_at..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => state.out_at += sent,
            }
        }
        state.sent_before += state.out.len() as u64;
        state.out.clear();
        state.out_at = 0;
        Poll::Ready(Ok(()))
    }

    fn poll_receive(&mut self, connection: &Connection, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut buffer = ReadBuf::new(&mut self.buffer);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            let got = buffer.filled().len();
            if got == 0 {
                return Poll::Ready(self.ended(connection));
            }
            self.used = Instant::now();
            let mut at = 0;
            while at < got {
                at += self.decode(connection, at..got)?;
            }
            if connection.waiting().is_none() {
                return Poll::Ready(Ok(()));
            }
        }
    }

    /// Takes bytes of the answer that comes; hands it over when it is whole.
    fn decode(&mut self, connection: &Connection, unread: std::ops::Range<usize>) -> io::Result<usize> {
        let broken = |error| io::Error::new(io::ErrorKind::InvalidData, error);
        let input = &self.buffer[unread];
        let decoded = self.decoder.decode(input).map_err(broken)?;
        if decoded.complete {
            self.hand_over(connection)?;
        } else if decoded.consumed == 0 {
            // what is asked for more takes all that it is given
            return Ok(input.len());
        }
        Ok(decoded.consumed)
    }

    fn hand_over(&mut self, connection: &Connection) -> io::Result<()> {
        let reply =
            Reply { status: self.decoder.status(), body: Bytes::copy_from_slice(self.decoder.body()) };
        let stays = self.decoder.keep_alive();
        let answered = connection.0.lock().waiting.pop_front();
        // an answer to nothing
        let waiting = answered.ok_or(io::ErrorKind::InvalidData)?;
        // whoever gave up does not mind
        let _ = waiting.answer.send(Ok(reply));
        if !stays {
            // whoever says that it closes works on nothing that comes behind
            connection.close(|_, _| Lost::NotDone);
        }
        self.decoder.start(false, true);
        Ok(())
    }

    /// The other side has closed the connection, which may be the end of an answer.
    fn ended(&mut self, connection: &Connection) -> io::Result<()> {
        if self.decoder.has_begun() && self.decoder.finish().is_ok() {
            self.hand_over(connection)?;
        }
        Ok(())
    }
}
