//! The sending end: what lies ready goes over the wire as far as the receiver asks, and is kept until it is acknowledged.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::FRAME_BYTES;
use super::frame::{BatchWriter, Frame, HEAD_BYTES, REASON_BYTES, cut_short};
use super::line::{self, BEAT, CutAtLast, Reading, Writing};
use crate::end::Source as _;
use crate::remote::{Link, Message, Options, Outgoing, RemoteError, random, spawn, write};
use crate::sync::lock;
use crate::{Batch, Receiver, Sender};

/// Longest wait before it is looked what else has happened.
const TURN: Duration = Duration::from_millis(100);
/// Wait before a connection is made again; doubled each time, up to the next constant.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Makes a link to the receiver that [listens](super::listen) at `ws://HOST:PORT/`. What goes into the [`Sender`] (and its
/// clones) comes out of the receiver there. A connection that breaks is made again, until everything is acknowledged or the
/// [`Outgoing`] is dropped.
///
/// # Errors
/// If no receiver answers in time ([`Options::within`]), or this sender is not taken.
pub fn connect<T: Message>(url: &str, options: Options) -> Result<(Sender<T>, Outgoing), RemoteError> {
    let (sender, receiver) = options.queue.queue();
    let begun = Instant::now();
    let mut sending = Sending {
        url: url.to_owned(),
        id: random(),
        is_new: true,
        options,
        window: sender.taken().capacity(),
        receiver,
        link: Arc::default(),
        kept: VecDeque::new(),
        kept_from: 0,
        next: 0,
        end: None,
    };
    let connected = loop {
        match sending.dial() {
            Ok(connected) => break connected,
            Err(error @ RemoteError::Unreachable { .. }) if begun.elapsed() >= options.within => {
                return Err(error);
            }
            Err(RemoteError::Unreachable { .. }) => thread::sleep(PAUSE_FIRST),
            Err(error) => return Err(error),
        }
    };
    let first = if options.replays { connected.state.acknowledged } else { connected.received };
    let outgoing = Outgoing::new(first);
    sending.link = outgoing.link();
    (sending.is_new, sending.kept_from, sending.next) = (false, first, first);
    spawn("queue sender", move || sending.run(connected))?;
    Ok((sender, outgoing))
}

struct Sending<T> {
    url: String,
    /// By which the receiver knows this sender again.
    id: u64,
    is_new: bool,
    options: Options,
    /// Messages that are kept at most.
    window: u64,
    receiver: Receiver<T>,
    link: Arc<Link>,
    /// What is not acknowledged, in order and without gaps: from `kept_from` (or a little before) up to `next`.
    kept: VecDeque<Kept>,
    kept_from: u64,
    next: u64,
    /// The end was sent: how the link ends when it is acknowledged.
    end: Option<Result<(), RemoteError>>,
}

/// A frame, and the position behind it.
struct Kept {
    behind: u64,
    bytes: Vec<u8>,
}

/// A connection whose receiver has answered.
struct Connected {
    reading: Reading,
    writing: Writing,
    received: u64,
    state: ReceiverState,
}

/// What the receiver has sent last.
#[derive(Default)]
struct ReceiverState {
    acknowledged: u64,
    limit: u64,
    closed: bool,
    refused: Option<String>,
    broken: bool,
}

/// Why a connection is of no more use.
enum Stop {
    Broken,
    /// So is the link.
    For(Result<(), RemoteError>),
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Stop {
        Stop::Broken
    }
}

impl<T: Message> Sending<T> {
    fn dial(&self) -> Result<Connected, RemoteError> {
        let unreachable = |error: io::Error| RemoteError::Unreachable {
            place: self.url.clone(),
            reason: error.to_string(),
        };
        let (mut reading, writing) = line::dial(&self.url, HEAD_BYTES + REASON_BYTES).map_err(unreachable)?;
        let hello =
            Frame::Hello { sender: self.id, is_new: self.is_new, kept_from: self.kept_from, next: self.next };
        writing.frame(&hello).map_err(unreachable)?;
        let (received, state) = match reading.read(&writing).map_err(unreachable)? {
            Frame::Ready { received, acknowledged, limit } => {
                (received, ReceiverState { acknowledged, limit, ..ReceiverState::default() })
            }
            Frame::Closed { acknowledged } => return Err(RemoteError::Closed { acknowledged }),
            Frame::Refused { reason } => return Err(RemoteError::Refused(reason.to_owned())),
            _ => return Err(unreachable(io::ErrorKind::InvalidData.into())),
        };
        Ok(Connected { reading, writing, received, state })
    }

    fn run(mut self, first: Connected) {
        let (mut connected, mut pause) = (Some(first), PAUSE_FIRST);
        let outcome = loop {
            let stop = match connected.take().map_or_else(|| self.dial(), Ok) {
                Ok(connected) => {
                    pause = PAUSE_FIRST;
                    self.serve(connected)
                }
                Err(RemoteError::Unreachable { .. }) => Stop::Broken,
                Err(error) => Stop::For(Err(error)),
            };
            match stop {
                Stop::For(outcome) => break outcome,
                Stop::Broken if self.link.is_given_up() => break self.unfinished(),
                Stop::Broken => thread::sleep(pause),
            }
            pause = (pause * 2).min(PAUSE_MAX);
        };
        // its senders see that it is closed
        drop(self.receiver);
        self.link.end(outcome);
    }

    fn unfinished(&self) -> Result<(), RemoteError> {
        Err(RemoteError::Unfinished { acknowledged: self.kept_from })
    }

    /// Sends until the connection breaks or the link ends.
    fn serve(&mut self, connected: Connected) -> Stop {
        let Connected { mut reading, writing, received, state } = connected;
        let (receiver, changed) = (Mutex::new(state), Condvar::new());
        let shared = SharedState { receiver, changed, sent: AtomicU64::new(self.next) };
        thread::scope(|scope| {
            let (shared, writing) = (&shared, &writing);
            let _cut = CutAtLast(writing);
            scope.spawn(move || shared.read_frames(&mut reading, writing));
            self.send_all(shared, writing, received).err().unwrap_or(Stop::Broken)
        })
    }

    fn send_all(&mut self, shared: &SharedState, writing: &Writing, received: u64) -> Result<(), Stop> {
        self.forget(lock(&shared.receiver).acknowledged);
        if received < self.kept_from || received > self.next {
            let (first, next) = (self.kept_from, self.next);
            let reason = format!(
                "the receiver asks for message {received}, the sender has those from {first} to {next}"
            );
            return Err(Stop::For(Err(RemoteError::Refused(reason))));
        }
        for kept in self.kept.iter().filter(|kept| kept.behind > received) {
            writing.bytes(&kept.bytes)?;
        }
        let mut written = Instant::now();
        loop {
            if self.link.is_given_up() {
                return Err(Stop::For(self.unfinished()));
            }
            let credit = self.credit(shared)?;
            let before = self.kept.len();
            if credit > 0 {
                self.take(credit);
            }
            // kept before it is sent
            shared.sent.store(self.next, Ordering::Release);
            for kept in self.kept.range(before..) {
                writing.bytes(&kept.bytes)?;
                written = Instant::now();
            }
            if written.elapsed() >= BEAT {
                writing.ping()?;
                written = Instant::now();
            }
        }
    }

    /// How many messages may be sent. Where that is none, waits a little for an update of the receiver.
    fn credit(&mut self, shared: &SharedState) -> Result<u64, Stop> {
        let (kept_from, next, window, has_ended) =
            (self.kept_from, self.next, self.window, self.end.is_some());
        let credit = |state: &ReceiverState| match has_ended {
            true => 0,
            false => state.limit.min(state.acknowledged.saturating_add(window)).saturating_sub(next),
        };
        let waits = |state: &mut ReceiverState| {
            let is_over = state.closed || state.broken || state.refused.is_some();
            !is_over && state.acknowledged <= kept_from && credit(state) == 0
        };
        let state = shared.changed.wait_timeout_while(lock(&shared.receiver), TURN, waits);
        let (state, _) = state.unwrap_or_else(|poisoned| poisoned.into_inner());
        self.forget(state.acknowledged);
        if let Some(outcome) = self.end.clone().filter(|_| self.kept_from == self.next) {
            return Err(Stop::For(outcome));
        }
        if let Some(reason) = state.refused.clone() {
            return Err(Stop::For(Err(RemoteError::Refused(reason))));
        }
        if state.closed {
            return Err(Stop::For(Err(RemoteError::Closed { acknowledged: self.kept_from })));
        }
        if state.broken { Err(Stop::Broken) } else { Ok(credit(&state)) }
    }

    /// Waits a little for messages and keeps so many at most, or the end.
    fn take(&mut self, most: u64) {
        if !self.receiver.end.wait(Some(Instant::now() + TURN)) {
            if self.receiver.end.source.is_over() {
                let failure = self.receiver.failure().map(|failure| failure.to_string());
                self.keep_end(failure, Ok(()));
            }
            return;
        }
        let mut frame = BatchWriter::new(self.next);
        let mut refused = None;
        for message in Batch::new(&mut self.receiver.end.source, most) {
            match write(&message, self.next, self.options.message_bytes_max) {
                Ok(bytes) => frame.add(&bytes),
                Err(error) => {
                    refused = Some(error);
                    break;
                }
            }
            self.next += 1;
            if frame.bytes() >= FRAME_BYTES {
                let full = std::mem::replace(&mut frame, BatchWriter::new(self.next));
                self.kept.push_back(Kept { behind: self.next, bytes: full.into_bytes() });
            }
        }
        if frame.count() > 0 {
            self.kept.push_back(Kept { behind: self.next, bytes: frame.into_bytes() });
        }
        if let Some(error) = refused {
            self.keep_end(Some(error.to_string()), Err(error));
        }
    }

    /// The end, which counts as a message; `outcome` is the link's once it is acknowledged.
    fn keep_end(&mut self, failure: Option<String>, outcome: Result<(), RemoteError>) {
        let failure = failure.map(|text| cut_short(text, FRAME_BYTES));
        let frame = Frame::End { number: self.next, failure: failure.as_deref() };
        self.next += 1;
        self.kept.push_back(Kept { behind: self.next, bytes: frame.to_bytes() });
        self.end = Some(outcome);
    }

    /// What was acknowledged need not be kept.
    fn forget(&mut self, acknowledged: u64) {
        self.kept_from = self.kept_from.max(acknowledged);
        while self.kept.front().is_some_and(|kept| kept.behind <= self.kept_from) {
            self.kept.pop_front();
        }
        self.link.set_acknowledged(self.kept_from);
    }
}

/// What the thread that reads tells the one that sends.
struct SharedState {
    receiver: Mutex<ReceiverState>,
    changed: Condvar,
    /// The position up to which messages were sent.
    sent: AtomicU64,
}

impl SharedState {
    /// Reads what the receiver sends until the connection breaks.
    fn read_frames(&self, reading: &mut Reading, writing: &Writing) {
        loop {
            let frame = reading.read(writing);
            let mut state = lock(&self.receiver);
            match frame {
                Ok(Frame::Taken { acknowledged, .. } | Frame::Closed { acknowledged })
                    if acknowledged > self.sent.load(Ordering::Acquire) =>
                {
                    state.refused = Some("the receiver acknowledges what was not sent".into());
                }
                Ok(Frame::Taken { acknowledged, limit }) => {
                    state.acknowledged = state.acknowledged.max(acknowledged);
                    state.limit = state.limit.max(limit);
                }
                Ok(Frame::Closed { acknowledged }) => {
                    state.acknowledged = state.acknowledged.max(acknowledged);
                    state.closed = true;
                }
                Ok(Frame::Refused { reason }) => state.refused = Some(reason.to_owned()),
                Ok(_) | Err(_) => state.broken = true,
            }
            let is_broken = state.broken;
            drop(state);
            self.changed.notify_one();
            if is_broken {
                return;
            }
        }
    }
}
