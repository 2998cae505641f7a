//! Channels: any number of senders, and whoever waits sleeps.

use std::ops::Range;
use std::time::Duration;

use crate::job::Job;
use crate::message::Message;

/// A channel's two functions, single and in batches, from how it is made, sent on and received from.
macro_rules! channel {
    ($name:ident, $make:expr, $send:ident, $recv:expr) => {
        pub mod $name {
            use super::*;

            /// Message by message.
            pub fn single<M: Message>(job: &Job) -> Duration {
                let (sender, receiver) = $make(job.capacity);
                let send = move |share: Range<u64>| {
                    share.for_each(|number| assert!(sender.$send(M::of(number)).is_ok()));
                };
                job.time(clones(job, send), move || {
                    #[allow(unused_mut, reason = "some receive by a shared reference")]
                    let mut receiver = receiver;
                    let mut sum = 0_u64;
                    while let Some(message) = $recv(&mut receiver) {
                        sum = sum.wrapping_add(M::number(&message));
                    }
                    sum
                })
            }

            /// A `Vec` for each batch.
            pub fn batches<M: Message>(job: &Job) -> Duration {
                let (sender, receiver) = $make(job.capacity_in_batches());
                let whole = *job;
                let send = move |share: Range<u64>| {
                    for batch in whole.batches(share) {
                        assert!(sender.$send(batch.map(M::of).collect::<Vec<M>>()).is_ok());
                    }
                };
                job.time(clones(job, send), move || {
                    #[allow(unused_mut, reason = "some receive by a shared reference")]
                    let mut receiver = receiver;
                    let mut sum = 0_u64;
                    while let Some(batch) = $recv(&mut receiver) {
                        for message in batch {
                            sum = sum.wrapping_add(M::number(&message));
                        }
                    }
                    sum
                })
            }
        }
    };
}

channel!(crossbeam, crossbeam_channel::bounded, send, |receiver: &mut crossbeam_channel::Receiver<_>| {
    receiver.recv().ok()
});
channel!(flume, ::flume::bounded, send, |receiver: &mut ::flume::Receiver<_>| receiver.recv().ok());
channel!(kanal, ::kanal::bounded, send, |receiver: &mut ::kanal::Receiver<_>| receiver.recv().ok());
channel!(
    tokio,
    ::tokio::sync::mpsc::channel,
    blocking_send,
    |receiver: &mut ::tokio::sync::mpsc::Receiver<_>| receiver.blocking_recv()
);

/// The sending function for each sender; what it holds is let go when the last has sent.
fn clones<S: FnOnce(Range<u64>) + Clone + Send>(job: &Job, send: S) -> Vec<S> {
    let mut all: Vec<S> = (1..job.senders).map(|_| send.clone()).collect();
    all.push(send);
    all
}
