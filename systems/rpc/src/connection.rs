//! A connection over which calls come: reads frames, lets lanes work on their calls, sends the answers together.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tidemark_wire::rpc::{RpcError, code};
use tidemark_wire::websocket::{self, Event, Kind, WebSocketError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::Sleep;

use crate::call_buffer::{CallBuffer, Turn};
use crate::lanes::{Lanes, SameId};
use crate::metrics::{CallCounts, Cut, Outcome, bump};
use crate::serve::Services;
use crate::{Form, IN_FLIGHT_MAX, Refusal};
use tidemark_service::{Held, Upgraded};

/// Read at once.
const READ_BYTES: usize = 256 << 10;
/// Reads in one go before other connections have their turn.
const READS_MAX: usize = 4;
/// A client that takes nothing of its answers for so long is a slow reader, and cut off; where silence is told sooner,
/// after half of that time.
const STUCK_MAX: Duration = Duration::from_secs(30);
/// How long the last words of a connection may take.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Deadlines are looked after no more often.
const DEADLINE_TICK: Duration = Duration::from_millis(1);
/// Close code of a server that cannot serve for now.
const TRY_AGAIN_LATER: u16 = 1013;
/// Close code of a message that is no frame of calls.
const UNSUPPORTED: u16 = 1003;

thread_local! {
    /// What a worker reads into, for one connection after the other.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What connections need that have become WebSockets.
pub(crate) struct Conversations {
    pub(crate) services: Services,
    /// Service, and method within it, by the number that calls over WebSockets have.
    pub(crate) methods: Arc<[(usize, usize)]>,
    /// What these calls' connections begin with.
    pub(crate) greeting: Vec<u8>,
    pub(crate) counts: Arc<CallCounts>,
}

/// Why a connection ends.
#[derive(Debug)]
enum End {
    /// The client closed, or there is no connection any more.
    Gone,
    /// With these last words.
    Close(u16, String),
}

impl From<WebSocketError> for End {
    fn from(error: WebSocketError) -> Self {
        End::Close(error.close_code(), error.to_string())
    }
}

impl From<RpcError> for End {
    fn from(error: RpcError) -> Self {
        End::Close(error.close_code(), error.to_string())
    }
}

impl From<SameId> for End {
    fn from(_: SameId) -> Self {
        End::Close(websocket::PROTOCOL_ERROR, "a call has the id of one that is not answered yet".into())
    }
}

struct Connection {
    stream: TcpStream,
    call_buffer: Arc<CallBuffer>,
    lanes: Lanes,
    /// Read and not decoded yet; empty unless a call has to wait.
    input: Vec<u8>,
    counts: Arc<CallCounts>,
    worker: usize,
    silence_max: Duration,
    stuck_max: Duration,
    received_at: Instant,
    has_pinged: bool,
    /// Since when the client takes nothing of what is there for it.
    stuck_since: Option<Instant>,
    sleep: Pin<Box<Sleep>>,
    wakes_at: Instant,
    /// What it holds while it waits, entered among what all do.
    held: Held,
}

/// Takes calls until the client goes, does what it must not, or `stop` completes; then what is in flight is finished.
pub(crate) async fn run(conversations: &Conversations, form: Form, connection: Upgraded<'_>) -> TcpStream {
    let Upgraded { stream, input, worker, held, silence_max, mut stop } = connection;
    let Conversations { services, methods, greeting, counts } = conversations;
    let call_buffer = Arc::new(CallBuffer::new(form, methods.clone(), counts.clone(), worker, greeting));
    let now = Instant::now();
    let mut connection = Connection {
        stream,
        lanes: Lanes::new(services.clone(), call_buffer.clone()),
        call_buffer,
        input,
        counts: counts.clone(),
        worker,
        silence_max,
        stuck_max: STUCK_MAX.min(silence_max / 2),
        received_at: now,
        has_pinged: false,
        stuck_since: None,
        sleep: Box::pin(tokio::time::sleep(silence_max / 2)),
        wakes_at: now + silence_max / 2,
        held,
    };
    let _open = Open::begin(&connection);
    let mut stops = false;
    let end = poll_fn(|context| {
        stops = stops || stop.as_mut().poll(context).is_ready();
        connection.poll(context, stops)
    })
    .await;
    if let End::Close(code, reason) = end {
        tracing::debug!(code, reason, "a connection of calls is closed");
        connection
            .call_buffer
            .state()
            .control(|out, _| websocket::write_close(out, Some(code), &reason, None));
    }
    // its last words, an answer to a close for one; what does not go is lost with the connection
    let last = poll_fn(|context| match connection.poll_write(context) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(())) | Err(_) => Poll::Ready(()),
    });
    let _ = tokio::time::timeout(LAST_WORDS, last).await;
    connection.stream
}

/// Counts a connection as open until it is dropped.
struct Open(Arc<CallCounts>, usize, Arc<CallBuffer>);

impl Open {
    fn begin(connection: &Connection) -> Self {
        let counts = connection.counts.of(connection.worker);
        bump(&counts.connections, 1);
        counts.connections_open.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Open(connection.counts.clone(), connection.worker, connection.call_buffer.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.2.state().abandon();
        self.0.of(self.1).connections_open.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Connection {
    fn poll(&mut self, context: &mut Context<'_>, stops: bool) -> Poll<End> {
        let mut scratch = SCRATCH.take();
        scratch.resize(READ_BYTES, 0);
        let polled = self.poll_with(context, &mut scratch, stops);
        SCRATCH.set(scratch);
        polled
    }

    fn poll_with(&mut self, context: &mut Context<'_>, scratch: &mut [u8], stops: bool) -> Poll<End> {
        self.lanes.set_task(context.waker());
        match self.advance(context, scratch, stops) {
            Ok(()) => Poll::Pending,
            Err(end) => {
                match end {
                    End::Gone | End::Close(websocket::GOING_AWAY, _) => {}
                    End::Close(TRY_AGAIN_LATER, _) => self.counts.cut(self.worker, Cut::NoRoom),
                    End::Close(..) => self.counts.cut(self.worker, Cut::Malformed),
                }
                Poll::Ready(end)
            }
        }
    }

    /// Goes on as far as it can.
    fn advance(&mut self, context: &mut Context<'_>, scratch: &mut [u8], stops: bool) -> Result<(), End> {
        self.lanes.poll_woken()?;
        let mut reads = 0;
        let goes_on = loop {
            let all_begun = self.begin_all()?;
            let is_sent = self.poll_write(context).map_err(|_| End::Gone)?.is_ready();
            let in_flight = self.call_buffer.state().in_flight();
            if !all_begun {
                // what had to wait for room has it once the answers are sent
                if is_sent && in_flight < IN_FLIGHT_MAX && !self.call_buffer.state().is_full() {
                    continue;
                }
                // nothing is heard of one who is not listened to; the deadlines of its calls bound this
                self.heard(Instant::now());
                break false;
            }
            if stops {
                if in_flight == 0 && is_sent {
                    return Err(End::Close(websocket::GOING_AWAY, "the server stops".into()));
                }
                break false;
            }
            if reads == READS_MAX {
                break true;
            }
            match self.poll_read(context, scratch) {
                Poll::Pending => break false,
                Poll::Ready(read) => self.received(&scratch[..read?])?,
            }
            reads += 1;
        };
        self.look_after_time(context)?;
        self.enter_held()?;
        if goes_on || self.lanes.has_woken() {
            // after other connections
            context.waker().wake_by_ref();
        }
        Ok(())
    }

    /// Enters what it holds while it waits, if there is room for it.
    fn enter_held(&mut self) -> Result<(), End> {
        if self.held.is_scarce() {
            self.trim();
        }
        let fits = self.held.set(self.held_bytes()) || {
            self.trim();
            self.held.set(self.held_bytes())
        };
        let reason = "the server's memory for requests and answers is taken; try again later";
        if fits { Ok(()) } else { Err(End::Close(TRY_AGAIN_LATER, reason.into())) }
    }

    fn held_bytes(&self) -> usize {
        self.input.capacity() + self.call_buffer.state().held_bytes() + self.lanes.held_bytes()
    }

    /// Gives back the memory of what it does not use now.
    fn trim(&mut self) {
        self.input.shrink_to_fit();
        self.lanes.trim();
        self.call_buffer.state().trim();
    }

    /// Its silence counts from now.
    fn heard(&mut self, now: Instant) {
        self.received_at = now;
        self.has_pinged = false;
    }

    fn received(&mut self, bytes: &[u8]) -> Result<(), End> {
        if bytes.is_empty() {
            return Err(End::Gone);
        }
        debug_assert!(self.input.is_empty());
        let now = Instant::now();
        self.heard(now);
        self.call_buffer.state().now = now;
        let taken = self.work(bytes)?;
        self.input.extend_from_slice(&bytes[taken..]);
        Ok(())
    }

    /// Lets the calls begin that were read before; whether all have.
    fn begin_all(&mut self) -> Result<bool, End> {
        let mut input = std::mem::take(&mut self.input);
        let taken = self.work(&input)?;
        if taken < input.len() {
            input.drain(..taken);
            self.input = input;
        }
        Ok(self.input.is_empty() && matches!(self.call_buffer.state().turn()?, Turn::Ended))
    }

    /// Lets calls begin, those of the frame at hand and those in `bytes`, until all have or one has to wait. Returns
    /// how many bytes were taken.
    fn work(&mut self, bytes: &[u8]) -> Result<usize, End> {
        let mut taken = 0;
        loop {
            let turn = self.call_buffer.state().turn()?;
            match turn {
                Turn::Full => return Ok(taken),
                Turn::Call(service) => {
                    if !self.lanes.take_next(service)? {
                        return Ok(taken);
                    }
                }
                Turn::Cancel(id) => {
                    let lane = self.call_buffer.state().lane_of(id);
                    if let Some(lane) = lane {
                        let refusal = Refusal::new(code::CANCELLED, "cancelled");
                        self.lanes.end(lane, Outcome::Cancelled, &refusal);
                    }
                }
                Turn::Ended => {
                    let decoded = self.call_buffer.state().decode(&bytes[taken..])?;
                    taken += decoded.consumed;
                    match decoded.event {
                        None => return Ok(taken),
                        Some(event) => self.event(event)?,
                    }
                }
            }
        }
    }

    fn event(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::Message(Kind::Binary) | Event::Pong => Ok(()),
            Event::Message(Kind::Text) => {
                Err(End::Close(UNSUPPORTED, "calls come in binary messages".into()))
            }
            Event::Ping => {
                let write = |out: &mut Vec<u8>, decoder: &websocket::Decoder| {
                    websocket::write_pong(out, decoder.control(), None);
                };
                self.call_buffer.state().control(write);
                Ok(())
            }
            Event::Close => {
                let write = |out: &mut Vec<u8>, decoder: &websocket::Decoder| {
                    websocket::write_close(out, decoder.close_code(), "", None);
                };
                self.call_buffer.state().control(write);
                Err(End::Gone)
            }
        }
    }

    fn poll_read(&mut self, context: &mut Context<'_>, scratch: &mut [u8]) -> Poll<Result<usize, End>> {
        let mut buffer = ReadBuf::new(scratch);
        match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Ok(())) => Poll::Ready(Ok(buffer.filled().len())),
            Poll::Ready(Err(_)) => Poll::Ready(Err(End::Gone)),
        }
    }

    /// Sends all answers that are there; ready once they are sent.
    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, io::Error> {
        let mut state = self.call_buffer.state();
        loop {
            let unsent = state.unsent();
            if unsent.is_empty() {
                self.stuck_since = None;
                return Ok(Poll::Ready(()));
            }
            match Pin::new(&mut self.stream).poll_write(context, unsent) {
                Poll::Ready(Ok(0)) => return Err(ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(written)) => {
                    self.stuck_since = None;
                    state.sent(written);
                }
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => {
                    self.stuck_since.get_or_insert_with(Instant::now);
                    return Ok(Poll::Pending);
                }
            }
        }
    }

    /// Deadlines of calls, slow readers, and clients that may be gone. Sets the clock for the next of them.
    fn look_after_time(&mut self, context: &mut Context<'_>) -> Result<(), End> {
        loop {
            let next = self.next_time();
            if next < self.wakes_at {
                self.wake_at(next);
            }
            if self.sleep.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            let now = Instant::now();
            self.time_has_come(now)?;
            // calls that waited for a lane may have one now
            context.waker().wake_by_ref();
            let next = self.next_time().max(now + DEADLINE_TICK);
            self.wake_at(next);
            if let Err(error) = self.poll_write(context) {
                tracing::debug!(%error, "a connection of calls broke");
                return Err(End::Gone);
            }
        }
    }

    fn next_time(&self) -> Instant {
        let earliest = self.call_buffer.state().earliest;
        let silent = self.received_at + if self.has_pinged { self.silence_max } else { self.silence_max / 2 };
        let stuck = self.stuck_since.map(|since| since + self.stuck_max);
        [earliest, stuck].into_iter().flatten().fold(silent, Instant::min)
    }

    fn wake_at(&mut self, at: Instant) {
        self.wakes_at = at;
        self.sleep.as_mut().reset(at.into());
    }

    fn time_has_come(&mut self, now: Instant) -> Result<(), End> {
        if self.stuck_since.is_some_and(|since| now >= since + self.stuck_max) {
            self.counts.cut(self.worker, Cut::SlowReader);
            return Err(End::Gone);
        }
        let overdue = self.call_buffer.state().overdue(now);
        for lane in overdue {
            let refusal = Refusal::new(code::DEADLINE, "its time was over before it was done");
            self.lanes.end(lane, Outcome::Deadline, &refusal);
        }
        if now >= self.received_at + self.silence_max {
            self.counts.cut(self.worker, Cut::Silent);
            return Err(End::Gone);
        }
        if !self.has_pinged && now >= self.received_at + self.silence_max / 2 {
            self.has_pinged = true;
            self.trim();
            self.call_buffer.state().control(|out, _| websocket::write_ping(out, b"", None));
        }
        Ok(())
    }
}
