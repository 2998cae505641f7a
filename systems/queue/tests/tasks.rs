//! The ends as a task sees them.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll};
use std::thread;

use futures_executor::block_on;
use futures_util::task::noop_waker_ref;
use futures_util::{SinkExt, StreamExt, stream};
use tidemark_queue::{Options, RecvError, SendError, queue, shared_queue};

const MANY: u64 = if cfg!(miri) { 100 } else { 50_000 };

#[test]
fn tasks_on_both_ends() {
    let (mut sender, mut receiver) = Options::new().capacity(16).batch(4).queue();
    let sending = thread::spawn(move || {
        block_on(async {
            for message in 0..MANY {
                sender.send_async(message).await.unwrap();
            }
        });
    });
    block_on(async {
        for expected in 0..MANY {
            assert_eq!(receiver.recv_async().await, Ok(expected));
        }
        assert_eq!(receiver.recv_async().await, Err(RecvError));
    });
    sending.join().unwrap();
}

#[test]
fn batches_for_tasks() {
    let (mut sender, mut receiver) = Options::new().capacity(16).queue();
    let sending = thread::spawn(move || sender.send_batch(0..MANY).unwrap());
    let sum = block_on(async {
        let mut sum = 0;
        while let Ok(batch) = receiver.recv_batch_async().await {
            sum += batch.sum::<u64>();
        }
        sum
    });
    assert_eq!(sum, MANY * (MANY - 1) / 2);
    sending.join().unwrap();
}

#[test]
fn a_queue_is_a_sink_and_a_stream() {
    let (mut sender, receiver) = Options::new().capacity(8).queue();
    let sending = thread::spawn(move || {
        block_on(async {
            sender.send_all(&mut stream::iter((0..MANY).map(Ok))).await.unwrap();
            sender.close().await.unwrap();
            // closed, although it is still there
            assert_eq!(SinkExt::send(&mut sender, 7).await, Err(SendError(())));
        });
        sender
    });
    let got: Vec<u64> = block_on(receiver.collect());
    assert_eq!(got, (0..MANY).collect::<Vec<_>>());
    sending.join().unwrap();
}

#[test]
fn a_dropped_future_loses_nothing() {
    let (mut sender, mut receiver) = queue();
    {
        let mut future = pin!(receiver.recv_async());
        assert!(future.as_mut().poll(&mut Context::from_waker(noop_waker_ref())).is_pending());
        sender.send(1).unwrap();
    }
    assert_eq!(receiver.try_recv(), Ok(1));
}

#[test]
fn a_dropped_future_passes_its_wake_up_on() {
    let (mut sender, mut first) = shared_queue();
    let mut second = first.clone();
    let mut abandoned = Box::pin(first.recv_async());
    assert!(abandoned.as_mut().poll(&mut Context::from_waker(noop_waker_ref())).is_pending());
    let receiving = thread::spawn(move || block_on(second.recv_async()));
    while sender.metrics().receiver_waits < 2 {
        thread::yield_now();
    }
    // wakes the one that waited longer, which is never polled again
    sender.send(1).unwrap();
    drop(abandoned);
    assert_eq!(receiving.join().unwrap(), Ok(1));
}

#[test]
fn a_task_that_waits_for_room_learns_that_the_receiver_is_gone() {
    let (mut sender, receiver) = Options::new().capacity(2).queue();
    sender.send_batch(0..2).unwrap();
    let mut sending = Box::pin(sender.send_async(2));
    let mut context = Context::from_waker(noop_waker_ref());
    assert!(sending.as_mut().poll(&mut context).is_pending());
    drop(receiver);
    assert_eq!(sending.as_mut().poll(&mut context), Poll::Ready(Err(SendError(2))));
}
