//! Rings: whoever waits spins.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::mpsc;
use std::time::Duration;

use disruptor::{BusySpin, ProcessorSettings, Sequence};
use ringbuf::HeapRb;
use ringbuf::traits::{Consumer as _, Observer as _, Producer as _, Split as _};

use crate::job::Job;
use crate::message::Message;

pub mod rtrb {
    use super::*;

    /// Message by message.
    pub fn single<M: Message>(job: &Job) -> Duration {
        let (mut producer, mut consumer) = ::rtrb::RingBuffer::new(job.capacity);
        let send = move |share: Range<u64>| {
            for number in share {
                let mut message = M::of(number);
                while let Err(::rtrb::PushError::Full(back)) = producer.push(message) {
                    message = back;
                    spin_loop();
                }
            }
        };
        let messages = job.messages;
        job.time(vec![send], move || {
            let (mut sum, mut left) = (0_u64, messages);
            while left > 0 {
                if let Ok(message) = consumer.pop() {
                    sum = sum.wrapping_add(M::number(&message));
                    left -= 1;
                } else {
                    spin_loop();
                }
            }
            sum
        })
    }

    /// Chunks in place.
    pub fn batches<M: Message>(job: &Job) -> Duration {
        let (mut producer, mut consumer) = ::rtrb::RingBuffer::<M>::new(job.capacity);
        let whole = *job;
        let send = move |share: Range<u64>| {
            for batch in whole.batches(share) {
                let mut left = batch;
                while !left.is_empty() {
                    let free = producer.slots().min((left.end - left.start) as usize);
                    match producer.write_chunk_uninit(free) {
                        Ok(chunk) if free > 0 => {
                            chunk.fill_from_iter(left.by_ref().take(free).map(M::of));
                        }
                        _ => spin_loop(),
                    }
                }
            }
        };
        let messages = job.messages;
        job.time(vec![send], move || {
            let (mut sum, mut left) = (0_u64, messages);
            while left > 0 {
                let ready = consumer.slots();
                match consumer.read_chunk(ready) {
                    Ok(chunk) if ready > 0 => {
                        for message in chunk {
                            sum = sum.wrapping_add(message.number());
                        }
                        left -= ready as u64;
                    }
                    _ => spin_loop(),
                }
            }
            sum
        })
    }
}

pub mod ringbuf_ {
    use super::*;

    /// Message by message.
    pub fn single<M: Message>(job: &Job) -> Duration {
        let (mut producer, mut consumer) = HeapRb::new(job.capacity).split();
        let send = move |share: Range<u64>| {
            for number in share {
                let mut message = M::of(number);
                while let Err(back) = producer.try_push(message) {
                    message = back;
                    spin_loop();
                }
            }
        };
        let messages = job.messages;
        job.time(vec![send], move || {
            let (mut sum, mut left) = (0_u64, messages);
            while left > 0 {
                if let Some(message) = consumer.try_pop() {
                    sum = sum.wrapping_add(M::number(&message));
                    left -= 1;
                } else {
                    spin_loop();
                }
            }
            sum
        })
    }

    /// Many at a time, by iterators.
    pub fn batches<M: Message>(job: &Job) -> Duration {
        let (mut producer, mut consumer) = HeapRb::<M>::new(job.capacity).split();
        let whole = *job;
        let send = move |share: Range<u64>| {
            for batch in whole.batches(share) {
                let mut left = batch;
                while !left.is_empty() {
                    // it takes no more from the iterator than there is room for
                    let free = producer.vacant_len();
                    if free == 0 {
                        spin_loop();
                    } else {
                        producer.push_iter(left.by_ref().take(free).map(M::of));
                    }
                }
            }
        };
        let messages = job.messages;
        job.time(vec![send], move || {
            let (mut sum, mut left) = (0_u64, messages);
            while left > 0 {
                let mut count = 0;
                for message in consumer.pop_iter() {
                    sum = sum.wrapping_add(message.number());
                    count += 1;
                }
                left -= count;
                if count == 0 {
                    spin_loop();
                }
            }
            sum
        })
    }
}

pub mod disruptor_ {
    use super::*;

    /// The handler of events: adds up, and tells the sum at the end. Events stay where they are.
    fn handler<M: Message>(
        job: &Job,
    ) -> (impl FnMut(&M, Sequence, bool) + Send + use<M>, mpsc::Receiver<u64>) {
        let (told, sums) = mpsc::channel();
        let (mut sum, mut left) = (0_u64, job.messages);
        let handle = move |message: &M, _: Sequence, _: bool| {
            sum = sum.wrapping_add(message.number());
            left -= 1;
            if left == 0 {
                let _ = told.send(sum);
            }
        };
        (handle, sums)
    }

    fn publish<M: Message>(producer: &mut impl disruptor::Producer<M>, job: &Job, share: Range<u64>) {
        if job.batch == 1 {
            share.for_each(|number| producer.publish(|slot| *slot = M::of(number)));
            return;
        }
        for batch in job.batches(share) {
            producer.batch_publish((batch.end - batch.start) as usize, |slots| {
                for (slot, number) in slots.zip(batch) {
                    *slot = M::of(number);
                }
            });
        }
    }

    /// Message by message or in batches, as the job says; its consumer has a thread of its own on the receiver's core.
    pub fn run<M: Message>(job: &Job) -> Duration {
        let whole = *job;
        let (handle, sums) = handler::<M>(job);
        // senders wait for the consumer's thread, which is what the receiver of the others does
        let receive = move || sums.recv().unwrap_or(0);
        if job.senders == 1 {
            let mut producer =
                disruptor::build_single_producer(job.capacity_for_batches(), || M::of(0), BusySpin)
                    .pin_at_core(job.cores[1])
                    .handle_events_with(handle)
                    .build();
            return job.time(vec![move |share| publish(&mut producer, &whole, share)], receive);
        }
        let producer = disruptor::build_multi_producer(job.capacity_for_batches(), || M::of(0), BusySpin)
            .pin_at_core(job.cores[1])
            .handle_events_with(handle)
            .build();
        let senders = (0..job.senders).map(|_| {
            let mut producer = producer.clone();
            move |share| publish(&mut producer, &whole, share)
        });
        let senders = senders.collect();
        drop(producer);
        job.time(senders, receive)
    }
}
