//! One transport of so many messages from core to core, timed.

use std::ops::Range;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

/// What is to be transported, and where.
#[derive(Debug, Clone, Copy)]
pub struct Job {
    /// Messages of all senders together.
    pub messages: u64,
    /// Messages that are sent at a time.
    pub batch: u64,
    /// Threads that send, all on the first core.
    pub senders: u64,
    /// Messages that a queue has room for.
    pub capacity: usize,
    /// Of the senders, and of the receiver.
    pub cores: [usize; 2],
}

impl Job {
    /// The numbers that a sender sends.
    pub fn share(&self, sender: u64) -> Range<u64> {
        self.messages * sender / self.senders..self.messages * (sender + 1) / self.senders
    }

    /// What the numbers of all messages add up to.
    pub fn sum(&self) -> u64 {
        let n = u128::from(self.messages);
        (n * n.saturating_sub(1) / 2) as u64
    }

    /// A sender's numbers in batches.
    pub fn batches(&self, share: Range<u64>) -> impl Iterator<Item = Range<u64>> {
        let (batch, end) = (self.batch, share.end);
        share.step_by(batch as usize).map(move |first| first..(first + batch).min(end))
    }

    /// Room for two batches at least, for queues that take no part of one.
    pub fn capacity_for_batches(&self) -> usize {
        self.capacity.max((2 * self.batch as usize).next_power_of_two())
    }

    /// Room in batches, for queues whose messages are batches.
    pub fn capacity_in_batches(&self) -> usize {
        (self.capacity / self.batch as usize).max(2)
    }

    /// Runs senders and the receiver, each on its core, and says how long it took from when the first began until
    /// everything was received. The receiver returns the sum of the numbers, which must be right.
    pub fn time<S: FnOnce(Range<u64>) + Send>(
        &self,
        senders: Vec<S>,
        receive: impl FnOnce() -> u64 + Send,
    ) -> Duration {
        assert_eq!(senders.len() as u64, self.senders);
        let start = Barrier::new(senders.len() + 1);
        thread::scope(|scope| {
            let mut sending_threads = Vec::new();
            for (index, send) in senders.into_iter().enumerate() {
                let (start, share, core) = (&start, self.share(index as u64), self.cores[0]);
                let sending = scope.spawn(move || {
                    pin(core);
                    start.wait();
                    let began = Instant::now();
                    send(share);
                    began
                });
                sending_threads.push(sending);
            }
            let receiving = scope.spawn(|| {
                pin(self.cores[1]);
                start.wait();
                (receive(), Instant::now())
            });
            let (sum, ended) = receiving.join().expect("a receiver does not panic");
            assert_eq!(sum, self.sum(), "messages were lost, doubled or changed");
            let began = sending_threads.into_iter().map(|sending| sending.join().expect("nor does a sender"));
            // the first to begin: on a core with several they begin one after the other
            ended - began.min().expect("there is a sender")
        })
    }
}

/// Keeps the calling thread on a core.
pub fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("CORES names cores that this process may use");
}
