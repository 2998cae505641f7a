//! The two halves of a stream: where one subscribes, and what signals.

use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Instant;

use crate::Receiver;
use crate::end::Source;
use crate::stream::share::{ActiveSubscriber, Share, open};
use crate::stream::subscribed::{self, Subscribed};
use crate::stream::subscription::{Bell, State, Subscription};
use crate::stream::{StreamError, Subscriber};
use crate::sync::lock;
use crate::wait::Look;

/// Where one subscribes. A clone is for the same stream.
pub struct Publisher<T> {
    arrivals: Arc<Mutex<Arrivals<T>>>,
    bell: Arc<dyn Bell>,
}

/// Those who have subscribed and not been admitted yet.
struct Arrivals<T> {
    waiting: Vec<Box<dyn Subscriber<T> + Send>>,
    /// How the stream ended, if it has: with `None` where it was complete.
    ended: Option<Option<StreamError>>,
}

impl<T: Send + 'static> Publisher<T> {
    /// Subscribes. The first signal comes when the distribution is run (or at once, if it has ended).
    pub fn subscribe(&self, subscriber: impl Subscriber<T> + Send + 'static) {
        let subscriber = Box::new(subscriber);
        let ended = {
            let mut arrivals = lock(&self.arrivals);
            match &arrivals.ended {
                Some(how) => how.clone(),
                None => {
                    arrivals.waiting.push(subscriber);
                    drop(arrivals);
                    self.bell.ring();
                    return;
                }
            }
        };
        admit(subscriber, &self.bell).end(ended);
    }

    /// Subscribes a stream for another thread or task. It asks for up to `prefetch` messages (at least 1) ahead of what is
    /// taken out of it, and takes those with it when it is dropped.
    pub fn stream(&self, prefetch: usize) -> Subscribed<T> {
        let (bridge, subscribed) = subscribed::pair(prefetch);
        self.subscribe(bridge);
        subscribed
    }
}

impl<T> Clone for Publisher<T> {
    fn clone(&self) -> Publisher<T> {
        Publisher { arrivals: self.arrivals.clone(), bell: self.bell.clone() }
    }
}

impl<T> std::fmt::Debug for Publisher<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Publisher(..)")
    }
}

/// Gives a subscriber its subscription, as its first signal (rule 1.9).
fn admit<T>(mut subscriber: Box<dyn Subscriber<T> + Send>, bell: &Arc<dyn Bell>) -> ActiveSubscriber<T> {
    let state = Arc::new(State::default());
    subscriber.on_subscribe(Subscription::new(state.clone(), bell.clone()));
    ActiveSubscriber::new(subscriber, state)
}

/// What takes messages out of the queue and signals subscribers. Dropped before its end, it ends the queue for its senders
/// and the stream for its subscribers ([`StreamError::Stopped`]).
pub struct Distribution<T, S: Share<T>> {
    receiver: Receiver<T>,
    bell: Arc<dyn Bell>,
    arrivals: Arc<Mutex<Arrivals<T>>>,
    active: Vec<ActiveSubscriber<T>>,
    share: S,
}

pub(crate) fn new<T: Send + 'static, S: Share<T>>(
    receiver: Receiver<T>,
    share: S,
) -> (Publisher<T>, Distribution<T, S>) {
    let bell: Arc<dyn Bell> = receiver.end.hub.clone();
    let arrivals = Arc::new(Mutex::new(Arrivals { waiting: Vec::new(), ended: None }));
    let publisher = Publisher { arrivals: arrivals.clone(), bell: bell.clone() };
    (publisher, Distribution { receiver, bell, arrivals, active: Vec::new(), share })
}

/// What a turn of a distribution came to.
enum Turned {
    /// There is or was something to do.
    Busy,
    /// There is nothing to do before something happens, or until then.
    Idle(Option<Instant>),
    /// The stream has ended.
    Ended,
}

impl<T: Send + 'static, S: Share<T>> Distribution<T, S> {
    /// Signals until the queue has ended and everything was signalled, waiting for messages and for demand as needed. Where
    /// there is no subscriber it waits for one, as long as there are messages left.
    pub fn run(&mut self) {
        loop {
            match self.turn() {
                Turned::Busy => {}
                Turned::Ended => return,
                Turned::Idle(until) => {
                    let (share, active, arrivals) = (&self.share, &self.active, &self.arrivals);
                    self.receiver.end.wait_until(until, |_, slice, look| {
                        (is_due(active, arrivals) || is_ready(share, active, slice, look)).then_some(())
                    });
                }
            }
        }
    }

    /// As [`run`](Distribution::run), for a task. Signals are handed over in the task. Patience with slow subscribers
    /// ([`Slow::Fails`](crate::stream::Slow::Fails)) is lost only when something happens, since a task has no clock here.
    pub async fn run_async(&mut self) {
        std::future::poll_fn(|context| self.poll_run(context)).await;
    }

    fn poll_run(&mut self, context: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.turn() {
                Turned::Busy => {}
                Turned::Ended => return Poll::Ready(()),
                Turned::Idle(_) => {
                    let (share, active, arrivals) = (&self.share, &self.active, &self.arrivals);
                    let woken = self.receiver.end.poll_until(context, |end| {
                        (is_due(active, arrivals) || is_ready(share, active, &mut end.source, Look::Written))
                            .then_some(())
                    });
                    if woken.is_pending() {
                        return Poll::Pending;
                    }
                }
            }
        }
    }

    /// Signals what can be signalled at once. False if the stream has ended.
    pub fn run_once(&mut self) -> bool {
        loop {
            match self.turn() {
                Turned::Busy => {}
                Turned::Idle(_) => return true,
                Turned::Ended => return false,
            }
        }
    }

    fn turn(&mut self) -> Turned {
        if is_due(&self.active, &self.arrivals) {
            self.look_after_subscribers();
            return Turned::Busy;
        }
        let slice = &mut self.receiver.end.source;
        if !open(slice) {
            if slice.is_over() {
                self.end(self.receiver.failure().map(StreamError::Failed));
                return Turned::Ended;
            }
            return Turned::Idle(None);
        }
        if self.share.wanted(&self.active) {
            self.share.signal(&mut self.active, slice);
            return Turned::Busy;
        }
        let before = self.active.len();
        let until = self.share.patience(&mut self.active);
        if self.active.len() == before { Turned::Idle(until) } else { Turned::Busy }
    }

    /// Lets those who subscribed in, and those who cancelled (or asked for nothing) out.
    fn look_after_subscribers(&mut self) {
        let mut index = 0;
        while index < self.active.len() {
            let state = &self.active[index].state;
            if state.is_cancelled() {
                // drops the subscriber (rule 3.13)
                self.active.remove(index);
            } else if state.requested_none() {
                self.active.remove(index).end(Some(StreamError::RequestedNone));
            } else {
                index += 1;
            }
        }
        let arrivals = std::mem::take(&mut lock(&self.arrivals).waiting);
        for subscriber in arrivals {
            let subscriber = admit(subscriber, &self.bell);
            if self.active.len() < self.share.subscribers_max() {
                self.active.push(subscriber);
            } else {
                subscriber.end(Some(StreamError::Taken));
            }
        }
    }

    fn end(&mut self, error: Option<StreamError>) {
        end(&self.arrivals, &mut self.active, &self.bell, error);
    }
}

/// Ends the stream for everybody, also for those who come later.
fn end<T>(
    arrivals: &Mutex<Arrivals<T>>,
    active: &mut Vec<ActiveSubscriber<T>>,
    bell: &Arc<dyn Bell>,
    error: Option<StreamError>,
) {
    let late = {
        let mut arrivals = lock(arrivals);
        arrivals.ended.get_or_insert_with(|| error.clone());
        std::mem::take(&mut arrivals.waiting)
    };
    for subscriber in active.drain(..) {
        subscriber.end(error.clone());
    }
    for subscriber in late {
        admit(subscriber, bell).end(error.clone());
    }
}

/// Whether somebody came, cancelled, or asked for nothing.
fn is_due<T>(active: &[ActiveSubscriber<T>], arrivals: &Mutex<Arrivals<T>>) -> bool {
    active.iter().any(|subscriber| subscriber.state.is_cancelled() || subscriber.state.requested_none())
        || !lock(arrivals).waiting.is_empty()
}

/// Whether there is something to signal: messages that are wanted, or the end.
fn is_ready<T, S: Share<T>>(
    share: &S,
    active: &[ActiveSubscriber<T>],
    slice: &mut crate::slice::Slice<T>,
    look: Look,
) -> bool {
    if slice.open(look) { share.wanted(active) } else { look == Look::Written && slice.is_over() }
}

impl<T, S: Share<T>> Drop for Distribution<T, S> {
    fn drop(&mut self) {
        end(&self.arrivals, &mut self.active, &self.bell, Some(StreamError::Stopped));
    }
}

impl<T, S: Share<T> + std::fmt::Debug> std::fmt::Debug for Distribution<T, S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Distribution")
            .field("share", &self.share)
            .field("subscribers", &self.active.len())
            .finish_non_exhaustive()
    }
}
