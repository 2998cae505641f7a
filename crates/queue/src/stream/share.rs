//! Who gets which message.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::end::Source;
use crate::receiver::Slice;
use crate::stream::messages::Messages;
use crate::stream::subscription::State;
use crate::stream::{StreamError, Subscriber};
use crate::wait::Look;

/// A subscriber in its place.
pub struct Seat<T> {
    pub(crate) subscriber: Box<dyn Subscriber<T> + Send>,
    pub(crate) state: Arc<State>,
    /// Since when others have waited for it.
    late_since: Option<Instant>,
}

impl<T> Seat<T> {
    pub(crate) fn new(subscriber: Box<dyn Subscriber<T> + Send>, state: Arc<State>) -> Seat<T> {
        Seat { subscriber, state, late_since: None }
    }

    fn wants(&self) -> u64 {
        if self.state.is_cancelled() { 0 } else { self.state.demand() }
    }

    /// Signals up to `most` of the next messages; says how many the subscriber took.
    fn signal(&mut self, slice: &mut Slice<T>, most: u64) {
        let mut messages = Messages::of(Batch::new(slice, most), &self.state);
        self.subscriber.on_batch(&mut messages);
        messages.returned();
    }

    /// The last signal.
    pub(crate) fn end(mut self, error: Option<StreamError>) {
        if self.state.is_cancelled() {
            return;
        }
        self.state.cancel();
        match error {
            Some(error) => self.subscriber.on_error(error),
            None => self.subscriber.on_complete(),
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
    fn seats_max(&self) -> usize {
        usize::MAX
    }

    /// Whether it could signal something, were there messages.
    #[doc(hidden)]
    fn wanted(&self, seats: &[Seat<T>]) -> bool;

    /// Signals some of the messages of the open slice. Called only where something is wanted.
    #[doc(hidden)]
    fn signal(&mut self, seats: &mut Vec<Seat<T>>, slice: &mut Slice<T>);

    /// When it loses patience with a subscriber, where messages wait. Asked only where nothing is wanted.
    #[doc(hidden)]
    fn patience(&mut self, _seats: &mut Vec<Seat<T>>) -> Option<Instant> {
        None
    }
}

/// One subscriber gets everything.
#[derive(Debug)]
pub struct Unicast;

impl<T> Share<T> for Unicast {
    fn seats_max(&self) -> usize {
        1
    }

    fn wanted(&self, seats: &[Seat<T>]) -> bool {
        seats.first().is_some_and(|seat| seat.wants() > 0)
    }

    fn signal(&mut self, seats: &mut Vec<Seat<T>>, slice: &mut Slice<T>) {
        if let Some(seat) = seats.first_mut() {
            seat.signal(slice, seat.wants());
        }
    }
}

/// By what a round robin goes on to the next subscriber.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// One message for each in turn: as fair as demand allows. Who wants none is passed over.
    Message,
    /// At most so many messages for each in turn: faster, and even over many of them.
    Batch(u64),
}

/// Each message goes to one subscriber.
#[derive(Debug)]
pub struct RoundRobin {
    most: u64,
    next: usize,
}

impl RoundRobin {
    pub(crate) fn new(turn: Turn) -> RoundRobin {
        let most = match turn {
            Turn::Message => 1,
            Turn::Batch(messages) => messages.max(1),
        };
        RoundRobin { most, next: 0 }
    }
}

impl<T> Share<T> for RoundRobin {
    fn wanted(&self, seats: &[Seat<T>]) -> bool {
        seats.iter().any(|seat| seat.wants() > 0)
    }

    fn signal(&mut self, seats: &mut Vec<Seat<T>>, slice: &mut Slice<T>) {
        let mut passed_over = 0;
        // the slice in one go: as long as there is something, and somebody who wants it
        while passed_over < seats.len() && slice.has_more() {
            if self.next >= seats.len() {
                self.next = 0;
            }
            let seat = &mut seats[self.next];
            self.next += 1;
            let wanted = seat.wants();
            if wanted == 0 {
                passed_over += 1;
                continue;
            }
            passed_over = 0;
            seat.signal(slice, wanted.min(self.most));
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
    fn wanted(&self, seats: &[Seat<T>]) -> bool {
        !seats.is_empty() && seats.iter().all(|seat| seat.wants() > 0)
    }

    fn signal(&mut self, seats: &mut Vec<Seat<T>>, slice: &mut Slice<T>) {
        let most = seats.iter().map(Seat::wants).min().unwrap_or(0);
        let mut batch = Batch::new(slice, most);
        let signalled = Cell::new(0);
        let mut panic = None;
        for seat in seats.iter_mut() {
            seat.late_since = None;
            let (subscriber, state) = (&mut seat.subscriber, &seat.state);
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
        batch.by_ref().take(signalled.get() as usize).for_each(drop);
        drop(batch);
        if let Some(cause) = panic {
            resume_unwind(cause);
        }
    }

    fn patience(&mut self, seats: &mut Vec<Seat<T>>) -> Option<Instant> {
        let Slow::Fails { after } = self.slow else { return None };
        let now = Instant::now();
        let mut earliest = None;
        let mut index = 0;
        while index < seats.len() {
            let seat = &mut seats[index];
            if seat.wants() > 0 {
                seat.late_since = None;
                index += 1;
                continue;
            }
            let Some(limit) = seat.late_since.get_or_insert(now).checked_add(after) else {
                index += 1;
                continue;
            };
            if limit <= now {
                seats.remove(index).end(Some(StreamError::TooSlow));
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
