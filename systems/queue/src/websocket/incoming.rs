//! The receiving end: asks for as many messages as there is room for, puts what comes into the queue once and in order, and
//! acknowledges what is taken out of it.

use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::FRAME_BYTES;
use super::frame::{Frame, HEAD_BYTES, Messages, REASON_BYTES, cut_short};
use super::line::{self, BEAT, CutAtLast, Reading, Writing};
use crate::remote::{GIVEN_UP, Message, Options, RemoteError, RemoteFailure, read};
use crate::sync::lock;
use crate::taken::Taken;
use crate::{Receiver, Sender};

/// Connections at a time, those included that have not said who they are.
const CONNECTIONS_MAX: usize = 32;
/// Wait where nothing tells of a change.
const PAUSE: Duration = Duration::from_millis(5);
/// How long [`Incoming`] waits, when it is dropped, until the last acknowledgement is sent.
const LAST_UPDATE_MAX: Duration = Duration::from_secs(1);

/// Listens for the sender that [connects](super::connect), and gives what it sends to the [`Receiver`]. A sender that was cut
/// off or started again connects again, until the [`Incoming`] is dropped.
///
/// # Errors
/// If nothing can listen at the address.
pub fn listen<T: Message>(
    address: impl ToSocketAddrs,
    options: Options,
) -> Result<(Receiver<T>, Incoming), RemoteError> {
    let refused = |error: std::io::Error| RemoteError::Refused(format!("nothing can listen there: {error}"));
    let listener = TcpListener::bind(address).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let (sender, receiver) = options.queue.queue();
    let receiving = Arc::new(Receiving {
        options,
        taken: sender.taken(),
        place: Mutex::new(Place {
            peer: None,
            first: options.position,
            received: options.position.unwrap_or(0),
            has_ended: false,
            acknowledged: options.position.unwrap_or(0),
        }),
        inbound: Mutex::new(Some(sender)),
        current: Mutex::new(None),
        connections: AtomicUsize::new(0),
        stops: AtomicBool::new(false),
        is_last_sent: Mutex::new(false),
        last_sent: Condvar::new(),
    });
    let accepting = receiving.clone();
    let thread = thread::Builder::new().name("queue listener".into());
    let thread = thread.spawn(move || accepting.accept(&listener)).map_err(refused)?;
    Ok((receiver, Incoming { address, receiving, thread: Some(thread) }))
}

/// The receiving end's hold on its link. Dropped, it listens no more; a sender that was not told of the end waits for a
/// receiver that is started again.
pub struct Incoming {
    address: SocketAddr,
    receiving: Arc<dyn Held>,
    thread: Option<JoinHandle<()>>,
}

/// A link of whatever messages.
trait Held: Send + Sync {
    fn acknowledge(&self, position: u64);
    fn stop(&self);
}

impl Incoming {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The messages before this position are done, and stored together with the position; for ends with
    /// [`Options::position`]. The sender keeps at most as many that are not acknowledged as its queue has room for, and waits
    /// then: acknowledge more often than that.
    pub fn acknowledge(&self, position: u64) {
        self.receiving.acknowledge(position);
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        self.receiving.stop();
        // wakes the thread, which then sees that it is to stop
        if TcpStream::connect_timeout(&self.address, LAST_UPDATE_MAX).is_ok()
            && let Some(thread) = self.thread.take()
        {
            // it has no result
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Incoming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Incoming").field("address", &self.address).finish_non_exhaustive()
    }
}

struct Receiving<T> {
    options: Options,
    taken: Taken<T>,
    place: Mutex<Place>,
    /// The queue, until the sender there has ended. Held by the connection whose messages are taken.
    inbound: Mutex<Option<Sender<T>>>,
    /// That connection, to be cut.
    current: Mutex<Option<TcpStream>>,
    connections: AtomicUsize,
    stops: AtomicBool,
    /// Whether the last update was sent.
    is_last_sent: Mutex<bool>,
    last_sent: Condvar,
}

/// How far the link is.
struct Place {
    /// The sender whose messages are taken.
    peer: Option<u64>,
    /// The number of the first message that was put into the queue.
    first: Option<u64>,
    /// The position behind the last one.
    received: u64,
    has_ended: bool,
    /// Only where the program says what is acknowledged.
    acknowledged: u64,
}

/// What the sender is told: its messages before `acknowledged` are done, and it may send those before `limit`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Update {
    acknowledged: u64,
    limit: u64,
    closed: bool,
    is_last: bool,
}

impl Update {
    fn frame(self) -> Frame<'static> {
        match self {
            Update { closed: true, acknowledged, .. } => Frame::Closed { acknowledged },
            Update { acknowledged, limit, .. } => Frame::Taken { acknowledged, limit },
        }
    }
}

impl<T: Message> Held for Receiving<T> {
    fn acknowledge(&self, position: u64) {
        let mut place = lock(&self.place);
        place.acknowledged = place.acknowledged.max(position);
        drop(place);
        self.taken.wake();
    }

    fn stop(&self) {
        let begun = Instant::now();
        let mut is_sent = lock(&self.is_last_sent);
        while !*is_sent && self.update().is_last && lock(&self.current).is_some() {
            let Some(left) = LAST_UPDATE_MAX.checked_sub(begun.elapsed()) else { break };
            let waited = self.last_sent.wait_timeout(is_sent, left);
            is_sent = waited.unwrap_or_else(|poisoned| poisoned.into_inner()).0;
        }
        drop(is_sent);
        self.stops.store(true, Ordering::Release);
        self.cut();
        // a failure, so that nobody takes it for the end of the queue
        if let Some(sender) = lock(&self.inbound).take() {
            sender.fail(RemoteFailure(GIVEN_UP.into()));
        }
    }
}

impl<T: Message> Receiving<T> {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.stops.load(Ordering::Acquire) {
                return;
            }
            let Ok(stream) = stream else {
                thread::sleep(PAUSE);
                continue;
            };
            let connection = Connection::new(self.clone());
            // one too many is closed
            if self.connections.load(Ordering::Relaxed) <= CONNECTIONS_MAX {
                let thread = thread::Builder::new().name("queue receiver".into());
                // where there is no thread the connection is closed, and made again
                let _ = thread.spawn(move || {
                    let connection = connection;
                    connection.0.serve(stream);
                });
            }
        }
    }

    fn cut(&self) {
        if let Some(current) = &*lock(&self.current) {
            // it may be cut already
            let _ = current.shutdown(Shutdown::Both);
        }
    }

    fn serve(&self, stream: TcpStream) {
        let bytes_max = FRAME_BYTES + self.options.message_bytes_max + HEAD_BYTES;
        let Ok((mut reading, writing)) = line::accept(stream, bytes_max) else { return };
        let Ok(Frame::Hello { sender, is_new, kept_from, .. }) = reading.read(&writing) else { return };
        let refuse = |reading: &mut Reading, reason: String| {
            let reason = cut_short(reason, REASON_BYTES);
            if writing.frame(&Frame::Refused { reason: &reason }).is_ok() {
                // until the sender, which has read it, hangs up
                reading.drain();
            }
        };
        // before the current connection is cut: a sender that was replaced does not cut its successor off
        if let Err(reason) = self.check(sender, is_new) {
            return refuse(&mut reading, reason);
        }
        let (Some(mut inbound), Ok(cutter)) = (self.take_over(), writing.cutter()) else { return };
        *lock(&self.current) = Some(cutter);
        if self.stops.load(Ordering::Acquire) {
            return;
        }
        let welcomed = self.check(sender, is_new).map(|()| self.welcome(sender, is_new, kept_from));
        match welcomed {
            Ok(received) => self.exchange(&mut inbound, &mut reading, &writing, received, refuse),
            Err(reason) => refuse(&mut reading, reason),
        }
        *lock(&self.current) = None;
    }

    /// Whether this sender's messages may be taken.
    fn check(&self, sender: u64, is_new: bool) -> Result<(), String> {
        let place = lock(&self.place);
        match place.peer {
            Some(peer) if peer == sender => Ok(()),
            Some(_) if !is_new => Err("another sender has taken the place of this one".into()),
            Some(_) | None if place.has_ended => Err("the queue has ended there".into()),
            Some(_) | None => Ok(()),
        }
    }

    /// Ends the connection before this one. None where all are to end.
    fn take_over(&self) -> Option<MutexGuard<'_, Option<Sender<T>>>> {
        while !self.stops.load(Ordering::Acquire) {
            match self.inbound.try_lock() {
                Ok(inbound) => return Some(inbound),
                Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => self.cut(),
            }
            thread::sleep(PAUSE);
        }
        None
    }

    /// The position from which on this sender is to send.
    fn welcome(&self, sender: u64, is_new: bool, kept_from: u64) -> u64 {
        let mut place = lock(&self.place);
        place.peer = Some(sender);
        if place.first.is_none() {
            // what is before was acknowledged, by a receiver that was here before
            place.received = if is_new { 0 } else { kept_from };
            place.first = Some(place.received);
        }
        place.received + u64::from(place.has_ended)
    }

    /// Sends updates and takes messages, until the connection ends.
    fn exchange(
        &self,
        inbound: &mut Option<Sender<T>>,
        reading: &mut Reading,
        writing: &Writing,
        received: u64,
        refuse: impl Fn(&mut Reading, String),
    ) {
        let update = self.update();
        let hello = match update {
            Update { closed: true, .. } => update.frame(),
            Update { acknowledged, limit, .. } => Frame::Ready { received, acknowledged, limit },
        };
        if writing.frame(&hello).is_err() {
            return;
        }
        self.note_sent(update);
        let hung_up = AtomicBool::new(false);
        thread::scope(|scope| {
            let _cut = CutAtLast(writing);
            scope.spawn(|| self.send_updates(writing, update, &hung_up));
            if let Err(reason) = self.take_frames(inbound, reading, writing) {
                refuse(reading, reason);
            }
            hung_up.store(true, Ordering::Release);
            self.taken.wake();
        });
    }

    /// Takes what the sender sends until the connection breaks, or the sender does what it must not.
    fn take_frames(
        &self,
        inbound: &mut Option<Sender<T>>,
        reading: &mut Reading,
        writing: &Writing,
    ) -> Result<(), String> {
        loop {
            match reading.read(writing) {
                Ok(Frame::Batch { first, messages }) => self.put(inbound, first, messages)?,
                Ok(Frame::End { number, failure }) => self.end(inbound, number, failure)?,
                Ok(_) => return Err("what a receiver says came from a sender".into()),
                Err(error) if error.kind() == ErrorKind::InvalidData => return Err(error.to_string()),
                Err(_) => return Ok(()),
            }
        }
    }

    /// Puts what is new of a batch into the queue.
    fn put(&self, inbound: &mut Option<Sender<T>>, first: u64, messages: Messages<'_>) -> Result<(), String> {
        let received = lock(&self.place).received;
        let Some(known) = received.checked_sub(first) else {
            return Err(format!("message {first} came, and {received} is missing"));
        };
        if known >= messages.left() {
            return Ok(());
        }
        let Some(sender) = inbound else { return Err("a message came behind the end".into()) };
        let new = messages.skip(known as usize).zip(received..);
        let new: Result<Vec<T>, RemoteError> = new.map(|(bytes, number)| read(bytes, number)).collect();
        let mut new = new.map_err(|error| error.to_string())?.into_iter();
        // a queue that was closed meanwhile is in the next update
        let (accepted, is_closed) = match sender.try_send_batch(&mut new) {
            Ok(accepted) => (accepted, false),
            Err(error) => (error.accepted, true),
        };
        lock(&self.place).received += accepted;
        if is_closed || new.len() == 0 { Ok(()) } else { Err("more came than was asked for".into()) }
    }

    fn end(&self, inbound: &mut Option<Sender<T>>, number: u64, failure: Option<&str>) -> Result<(), String> {
        let mut place = lock(&self.place);
        if number != place.received {
            return Err(format!("the end came at {number}, and {} messages had come", place.received));
        }
        // known before the receiver can see it
        place.has_ended = true;
        drop(place);
        match (inbound.take(), failure) {
            (Some(sender), Some(failure)) => sender.fail(RemoteFailure(failure.to_owned())),
            (sender, _) => drop(sender),
        }
        self.taken.wake();
        Ok(())
    }

    fn update(&self) -> Update {
        let place = lock(&self.place);
        let (is_over, is_closed) = (self.taken.is_over(), self.taken.is_closed());
        let taken = place.first.unwrap_or(0) + self.taken.count();
        let by_hand = self.options.position.is_some();
        let done = if by_hand { place.acknowledged } else { taken }.min(place.received);
        // nothing more will be taken, and nothing more acknowledged
        let is_last = is_over && done >= taken;
        let ended = is_last && place.has_ended && taken == place.received;
        Update {
            acknowledged: done + u64::from(ended),
            limit: taken.saturating_add(self.taken.capacity()),
            closed: is_last && is_closed && !ended,
            is_last,
        }
    }

    fn note_sent(&self, update: Update) {
        if update.is_last {
            *lock(&self.is_last_sent) = true;
            self.last_sent.notify_all();
        }
    }

    /// Sends an update whenever something has changed, and at least every [`BEAT`].
    fn send_updates(&self, writing: &Writing, mut sent: Update, hung_up: &AtomicBool) {
        loop {
            let has_hung_up = || hung_up.load(Ordering::Acquire);
            let changed = self.taken.wait(Instant::now() + BEAT, || {
                let update = self.update();
                (update != sent || has_hung_up()).then_some(update)
            });
            if has_hung_up() {
                return;
            }
            sent = changed.unwrap_or(sent);
            if writing.frame(&sent.frame()).is_err() {
                writing.cut();
                return;
            }
            self.note_sent(sent);
        }
    }
}

/// A connection, counted until it is dropped.
struct Connection<T>(Arc<Receiving<T>>);

impl<T> Connection<T> {
    fn new(receiving: Arc<Receiving<T>>) -> Connection<T> {
        receiving.connections.fetch_add(1, Ordering::Relaxed);
        Connection(receiving)
    }
}

impl<T> Drop for Connection<T> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
