//! The queue of this project, and its streams.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidemark_queue::stream::{self, Messages, Publisher, Slow, StreamError, Subscriber, Subscription, Turn};
use tidemark_queue::{Options, Receiver, Sender};

use crate::job::Job;
use crate::message::Message;

fn queue<M: Message>(job: &Job) -> (Sender<M>, Receiver<M>) {
    Options::new().capacity(job.capacity).queue()
}

/// One function for each sender, which sends what the job says in the way that the job says.
fn senders<M: Message>(job: &Job, sender: Sender<M>) -> Vec<impl FnOnce(Range<u64>) + Send + use<M>> {
    let job = *job;
    let mut all: Vec<_> = (1..job.senders).map(|_| sender.clone()).collect();
    all.push(sender);
    let send = move |mut sender: Sender<M>| {
        move |share: Range<u64>| {
            if job.batch == 1 {
                share.for_each(|number| sender.send(M::of(number)).expect("the receiver stays"));
            } else {
                for batch in job.batches(share) {
                    sender.send_batch(batch.map(M::of)).expect("the receiver stays");
                }
            }
        }
    };
    all.into_iter().map(send).collect()
}

/// The receiver takes what lies ready, and each message out of it.
pub fn batches<M: Message>(job: &Job) -> Duration {
    let (sender, mut receiver) = queue::<M>(job);
    job.time(senders(job, sender), move || {
        let mut sum = 0_u64;
        while let Ok(batch) = receiver.recv_batch() {
            for message in batch {
                sum = sum.wrapping_add(message.number());
            }
        }
        sum
    })
}

/// The receiver takes message by message.
pub fn single<M: Message>(job: &Job) -> Duration {
    let (sender, mut receiver) = queue::<M>(job);
    job.time(senders(job, sender), move || {
        let mut sum = 0_u64;
        while let Ok(message) = receiver.recv() {
            sum = sum.wrapping_add(message.number());
        }
        sum
    })
}

/// Asks for so many at a time, and again when it has got them.
const DEMAND: u64 = 1024;

/// Adds up.
struct Adder {
    subscription: Option<Subscription>,
    left: u64,
    sum: u64,
    total: Arc<AtomicU64>,
}

impl Adder {
    #[inline(always)]
    fn got(&mut self, messages: u64) {
        self.left -= messages;
        if self.left == 0 {
            self.left = DEMAND;
            if let Some(subscription) = &self.subscription {
                subscription.request(DEMAND);
            }
        }
    }
}

impl<M: Message> Subscriber<M> for Adder {
    fn on_subscribe(&mut self, subscription: Subscription) {
        subscription.request(DEMAND);
        self.subscription = Some(subscription);
    }

    fn on_next(&mut self, message: M) {
        self.sum = self.sum.wrapping_add(message.number());
        self.got(1);
    }

    fn on_batch(&mut self, messages: &mut Messages<'_, M>) {
        let ready = messages.as_slice();
        self.sum = ready.iter().fold(self.sum, |sum, message| sum.wrapping_add(message.number()));
        // never more than were asked for
        let count = ready.len() as u64;
        messages.clear();
        self.got(count);
    }

    fn on_complete(&mut self) {
        self.total.fetch_add(self.sum, Ordering::Relaxed);
    }

    fn on_error(&mut self, error: StreamError) {
        panic!("{error}");
    }
}

fn subscribe<M: Message>(publisher: &Publisher<M>, subscribers: u64) -> Arc<AtomicU64> {
    let total = Arc::new(AtomicU64::new(0));
    for _ in 0..subscribers {
        publisher.subscribe(Adder { subscription: None, left: DEMAND, sum: 0, total: total.clone() });
    }
    total
}

/// One subscriber.
pub fn unicast(job: &Job) -> Duration {
    let (sender, receiver) = queue::<u64>(job);
    let (publisher, mut distribution) = stream::unicast(receiver);
    let total = subscribe(&publisher, 1);
    job.time(senders(job, sender), move || {
        distribution.run();
        total.load(Ordering::Relaxed)
    })
}

/// Two subscribers, a batch for each in turn.
pub fn round_robin(job: &Job) -> Duration {
    round_robin_of(job, Turn::Batch(job.batch))
}

/// Two subscribers, a message for each in turn.
pub fn round_robin_by_message(job: &Job) -> Duration {
    round_robin_of(job, Turn::Message)
}

fn round_robin_of(job: &Job, turn: Turn) -> Duration {
    let (sender, receiver) = queue::<u64>(job);
    let (publisher, mut distribution) = stream::round_robin(receiver, turn);
    let total = subscribe(&publisher, 2);
    job.time(senders(job, sender), move || {
        distribution.run();
        total.load(Ordering::Relaxed)
    })
}

/// Two subscribers that get every message.
pub fn multicast(job: &Job) -> Duration {
    let (sender, receiver) = queue::<u64>(job);
    let (publisher, mut distribution) = stream::multicast(receiver, Slow::SetsThePace);
    let total = subscribe(&publisher, 2);
    let each = job.sum();
    job.time(senders(job, sender), move || {
        distribution.run();
        // both got all of it
        total.load(Ordering::Relaxed).wrapping_sub(each)
    })
}
