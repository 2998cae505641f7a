//! Who gets which message.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::end::Source;
use crate::slice::Slice;
use crate::stream::messages::Messages;
use crate::stream::subscription::State;
use crate::stream::{StreamError, Subscriber};
use crate::wait::Look;

/// A subscriber that was admitted, and what it may be sent.
pub struct ActiveSubscriber<T> {
    pub(crate) inner: Box<dyn Subscriber<T> + Send>,
    pub(crate) state: Arc<State>,
    /// Since when others have waited for it.
    late_since: Option<Instant>,
    /// Of the demand as it was when last looked at, and how much of that was signalled without being taken off it yet. Zero,
    /// but while single messages are signalled.
    allowed: u64,
    signalled: u64,
}

impl<T> ActiveSubscriber<T> {
    pub(crate) fn new(subscriber: Box<dyn Subscriber<T> + Send>, state: Arc<State>) -> ActiveSubscriber<T> {
        ActiveSubscriber { inner: subscriber, state, late_since: None, allowed: 0, signalled: 0 }
    }

    fn wants(&self) -> u64 {
        if self.state.is_cancelled() { 0 } else { self.state.demand() }
    }

    /// Signals up to `most` of the next messages; says how many the subscriber took.
    fn signal(&mut self, slice: &mut Slice<T>, most: u64) {
        let mut messages = Messages::of(Batch::new(slice, most), &self.state);
        self.inner.on_batch(&mut messages);
        messages.returned();
    }

    /// Whether one more message may be signalled. Looks at the demand only where what was known of it is used up.
    #[inline]
    fn may_signal(&mut self) -> bool {
        if self.state.is_cancelled() {
            return false;
        }
        if self.signalled == self.allowed {
            self.settle();
            self.allowed = self.state.demand();
        }
        self.allowed > 0
    }

    /// Takes what was signalled off the demand.
    fn settle(&mut self) {
        if self.signalled > 0 {
            self.state.spend(self.signalled);
        }
        (self.allowed, self.signalled) = (0, 0);
    }

    /// The last signal.
    pub(crate) fn end(mut self, error: Option<StreamError>) {
        if self.state.is_cancelled() {
            return;
        }
        self.state.cancel();
        match error {
            Some(error) => self.inner.on_error(error),
            None => self.inner.on_complete(),
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Unicast {}
    impl Sealed for super::RoundRobin {}
    impl Sealed for super::Multicast {}
}

/// A way to share a queue: [`Unicast`], [`RoundRobin`] or [`Multicast`].
pub trait Share<T>: sealed::Sealed {
    /// Most subscribers.
    #[doc(hidden)]
    fn subscribers_max(&self) -> usize {
        usize::MAX
    }

    /// Whether it could signal something, were there messages.
    #[doc(hidden)]
    fn wanted(&self, active: &[ActiveSubscriber<T>]) -> bool;

    /// Signals some of the messages of the open slice. Called only where something is wanted.
    #[doc(hidden)]
    fn signal(&mut self, active: &mut Vec<ActiveSubscriber<T>>, slice: &mut Slice<T>);

    /// When it loses patience with a subscriber, where messages wait. Asked only where nothing is wanted.
    #[doc(hidden)]
    fn patience(&mut self, _active: &mut Vec<ActiveSubscriber<T>>) -> Option<Instant> {
        None
    }
}

/// One subscriber gets everything.
#[derive(Debug)]
pub struct Unicast;

impl<T> Share<T> for Unicast {
    fn subscribers_max(&self) -> usize {
        1
    }

    fn wanted(&self, active: &[ActiveSubscriber<T>]) -> bool {
        active.first().is_some_and(|subscriber| subscriber.wants() > 0)
    }

    fn signal(&mut self, active: &mut Vec<ActiveSubscriber<T>>, slice: &mut Slice<T>) {
        if let Some(subscriber) = active.first_mut() {
            subscriber.signal(slice, subscriber.wants());
        }
    }
}

/// By what a round robin goes on to the next subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// One message for each in turn, to its [`on_next`](Subscriber::on_next): as fair as demand allows. Who wants none is
    /// passed over.
    Message,
    /// At most so many messages for each in turn: faster, and even over many of them.
    Batch(u64),
}

/// Each message goes to one subscriber.
#[derive(Debug)]
pub struct RoundRobin {
    turn: Turn,
    next: usize,
}

impl RoundRobin {
    pub(crate) fn new(turn: Turn) -> RoundRobin {
        RoundRobin { turn, next: 0 }
    }

    /// Whose turn it is.
    #[inline]
    fn go_on(&mut self, active: usize) -> usize {
        let index = if self.next < active { self.next } else { 0 };
        self.next = index + 1;
        index
    }

    /// So many messages for each in turn.
    fn signal_batches<T>(&mut self, active: &mut [ActiveSubscriber<T>], slice: &mut Slice<T>, most: u64) {
        let mut passed_over = 0;
        // the slice in one go: as long as there is something, and somebody who wants it
        while passed_over < active.len() && slice.has_more() {
            let index = self.go_on(active.len());
            let subscriber = &mut active[index];
            let wanted = subscriber.wants();
            if wanted == 0 {
                passed_over += 1;
                continue;
            }
            passed_over = 0;
            subscriber.signal(slice, wanted.min(most));
        }
    }

    /// One message for each in turn.
    fn signal_singly<T>(&mut self, active: &mut [ActiveSubscriber<T>], slice: &mut Slice<T>) {
        let mut batch = Batch::new(slice, u64::MAX);
        let mut signals = Signals { active, in_signal: None };
        let mut passed_over = 0;
        while passed_over < signals.active.len() && batch.len() > 0 {
            let index = self.go_on(signals.active.len());
            if !signals.active[index].may_signal() {
                passed_over += 1;
                continue;
            }
            passed_over = 0;
            if let Some(message) = batch.next() {
                signals.next(index, message);
            }
        }
    }
}

impl<T> Share<T> for RoundRobin {
    fn wanted(&self, active: &[ActiveSubscriber<T>]) -> bool {
        active.iter().any(|subscriber| subscriber.wants() > 0)
    }

    fn signal(&mut self, active: &mut Vec<ActiveSubscriber<T>>, slice: &mut Slice<T>) {
        match self.turn {
            Turn::Message => self.signal_singly(active, slice),
            Turn::Batch(most) => self.signal_batches(active, slice, most.max(1)),
        }
    }
}

/// Single messages that are signalled. In the end what was signalled counts against the demand, and a panic of a subscriber
/// is the end of its subscription (rule 2.13).
struct Signals<'a, T> {
    active: &'a mut [ActiveSubscriber<T>],
    /// Who has not returned.
    in_signal: Option<usize>,
}

impl<T> Signals<'_, T> {
    #[inline]
    fn next(&mut self, index: usize, message: T) {
        let subscriber = &mut self.active[index];
        subscriber.signalled += 1;
        self.in_signal = Some(index);
        subscriber.inner.on_next(message);
        self.in_signal = None;
    }
}

impl<T> Drop for Signals<'_, T> {
    fn drop(&mut self) {
        self.active.iter_mut().for_each(ActiveSubscriber::settle);
        if let Some(index) = self.in_signal {
            self.active[index].state.cancel();
        }
    }
}

/// What a multicast does about a subscriber that asks for nothing while messages wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slow {
    /// It sets the pace: all wait for it.
    SetsThePace,
    /// All wait for it for so long; then its subscription ends with [`StreamError::TooSlow`].
    Fails {
        /// How long all wait.
        after: Duration,
    },
}

/// Every subscriber gets each message.
#[derive(Debug)]
pub struct Multicast {
    slow: Slow,
}

impl Multicast {
    pub(crate) fn new(slow: Slow) -> Multicast {
        Multicast { slow }
    }
}

impl<T: Clone> Share<T> for Multicast {
    fn wanted(&self, active: &[ActiveSubscriber<T>]) -> bool {
        !active.is_empty() && active.iter().all(|subscriber| subscriber.wants() > 0)
    }

    fn signal(&mut self, active: &mut Vec<ActiveSubscriber<T>>, slice: &mut Slice<T>) {
        let most = active.iter().map(ActiveSubscriber::wants).min().unwrap_or(0);
        let mut batch = Batch::new(slice, most);
        let signalled = Cell::new(0);
        let mut panic = None;
        for subscriber in active.iter_mut() {
            subscriber.late_since = None;
            let (subscriber, state) = (&mut subscriber.inner, &subscriber.state);
            let returned = catch_unwind(AssertUnwindSafe(|| {
                let mut messages = Messages::copies(batch.as_slice(), state, &signalled);
                subscriber.on_batch(&mut messages);
                messages.returned();
            }));
            if let Err(cause) = returned {
                // the others get the messages first
                panic.get_or_insert(cause);
            }
        }
        // what somebody got is gone for all
        batch.drop_first(signalled.get() as usize);
        drop(batch);
        if let Some(cause) = panic {
            resume_unwind(cause);
        }
    }

    fn patience(&mut self, active: &mut Vec<ActiveSubscriber<T>>) -> Option<Instant> {
        let Slow::Fails { after } = self.slow else { return None };
        let now = Instant::now();
        let mut earliest = None;
        let mut index = 0;
        while index < active.len() {
            let subscriber = &mut active[index];
            if subscriber.wants() > 0 {
                subscriber.late_since = None;
                index += 1;
                continue;
            }
            let Some(limit) = subscriber.late_since.get_or_insert(now).checked_add(after) else {
                index += 1;
                continue;
            };
            if limit <= now {
                active.remove(index).end(Some(StreamError::TooSlow));
            } else {
                earliest = Some(earliest.map_or(limit, |earlier: Instant| earlier.min(limit)));
                index += 1;
            }
        }
        earliest
    }
}

/// Opens the slice, whatever way that can be done.
pub(crate) fn open<T>(slice: &mut Slice<T>) -> bool {
    slice.open(Look::Published) || slice.open(Look::Written)
}
