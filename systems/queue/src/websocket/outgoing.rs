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
use crate::remote::{Link, Message, Options, Outgoing, RemoteError, spawn, write};
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
        id: line::random(),
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
    let first = if options.replays { connected.told.acknowledged } else { connected.received };
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
    told: Told,
}

/// What the receiver has said last.
#[derive(Default)]
struct Told {
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
        let (received, told) = match reading.read(&writing).map_err(unreachable)? {
            Frame::Ready { received, acknowledged, limit } => {
                (received, Told { acknowledged, limit, ..Told::default() })
            }
            Frame::Closed { acknowledged } => return Err(RemoteError::Closed { acknowledged }),
            Frame::Refused { reason } => return Err(RemoteError::Refused(reason.to_owned())),
            _ => return Err(unreachable(io::ErrorKind::InvalidData.into())),
        };
        Ok(Connected { reading, writing, received, told })
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
        // senders learn of it
        drop(self.receiver);
        self.link.end(outcome);
    }

    fn unfinished(&self) -> Result<(), RemoteError> {
        Err(RemoteError::Unfinished { acknowledged: self.kept_from })
    }

    /// Sends until the connection breaks or the link ends.
    fn serve(&mut self, connected: Connected) -> Stop {
        let Connected { mut reading, writing, received, told } = connected;
        let desk = Desk { told: Mutex::new(told), changed: Condvar::new(), sent: AtomicU64::new(self.next) };
        thread::scope(|scope| {
            let (desk, writing) = (&desk, &writing);
            let _cut = CutAtLast(writing);
            scope.spawn(move || desk.listen(&mut reading, writing));
            self.send_all(desk, writing, received).err().unwrap_or(Stop::Broken)
        })
    }

    fn send_all(&mut self, desk: &Desk, writing: &Writing, received: u64) -> Result<(), Stop> {
        self.forget(lock(&desk.told).acknowledged);
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
        let mut spoken = Instant::now();
        loop {
            if self.link.is_given_up() {
                return Err(Stop::For(self.unfinished()));
            }
            let credit = self.credit(desk)?;
            let before = self.kept.len();
            if credit > 0 {
                self.take(credit);
            }
            // kept before it is sent
            desk.sent.store(self.next, Ordering::Release);
            for kept in self.kept.range(before..) {
                writing.bytes(&kept.bytes)?;
                spoken = Instant::now();
            }
            if spoken.elapsed() >= BEAT {
                writing.ping()?;
                spoken = Instant::now();
            }
        }
    }

    /// How many messages may be sent. Where that is none, waits a little for the receiver's word.
    fn credit(&mut self, desk: &Desk) -> Result<u64, Stop> {
        let (kept_from, next, window, has_ended) =
            (self.kept_from, self.next, self.window, self.end.is_some());
        let credit = |told: &Told| match has_ended {
            true => 0,
            false => told.limit.min(told.acknowledged.saturating_add(window)).saturating_sub(next),
        };
        let waits = |told: &mut Told| {
            let is_over = told.closed || told.broken || told.refused.is_some();
            !is_over && told.acknowledged <= kept_from && credit(told) == 0
        };
        let told = desk.changed.wait_timeout_while(lock(&desk.told), TURN, waits);
        let (told, _) = told.unwrap_or_else(|poisoned| poisoned.into_inner());
        self.forget(told.acknowledged);
        if let Some(outcome) = self.end.clone().filter(|_| self.kept_from == self.next) {
            return Err(Stop::For(outcome));
        }
        if let Some(reason) = told.refused.clone() {
            return Err(Stop::For(Err(RemoteError::Refused(reason))));
        }
        if told.closed {
            return Err(Stop::For(Err(RemoteError::Closed { acknowledged: self.kept_from })));
        }
        if told.broken { Err(Stop::Broken) } else { Ok(credit(&told)) }
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

/// Where the thread that listens lays what it heard.
struct Desk {
    told: Mutex<Told>,
    changed: Condvar,
    /// The position up to which messages were sent.
    sent: AtomicU64,
}

impl Desk {
    /// Hears the receiver until the connection breaks.
    fn listen(&self, reading: &mut Reading, writing: &Writing) {
        loop {
            let heard = reading.read(writing);
            let mut told = lock(&self.told);
            match heard {
                Ok(Frame::Taken { acknowledged, .. } | Frame::Closed { acknowledged })
                    if acknowledged > self.sent.load(Ordering::Acquire) =>
                {
                    told.refused = Some("the receiver acknowledges what was not sent".into());
                }
                Ok(Frame::Taken { acknowledged, limit }) => {
                    told.acknowledged = told.acknowledged.max(acknowledged);
                    told.limit = told.limit.max(limit);
                }
                Ok(Frame::Closed { acknowledged }) => {
                    told.acknowledged = told.acknowledged.max(acknowledged);
                    told.closed = true;
                }
                Ok(Frame::Refused { reason }) => told.refused = Some(reason.to_owned()),
                Ok(_) | Err(_) => told.broken = true,
            }
            let is_broken = told.broken;
            drop(told);
            self.changed.notify_one();
            if is_broken {
                return;
            }
        }
    }
}
