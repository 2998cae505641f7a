//! Every order in which the threads can run, as far as it matters (up to three preemptions), on queues of a few messages.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p tidemark-queue --test loom
//! ```
#![cfg(loom)]

use loom::thread;
use tidemark_queue::{Options, TrySendError, Wait};

/// Preemptions in one order where two threads meet: bugs need one or two, as experience has it.
const PREEMPTIONS: usize = 3;
/// Where each order is long, or three threads make for many.
const PREEMPTIONS_OF_MANY: usize = 2;
/// Longer than any order is, unless it goes round in circles.
const BRANCHES_MAX: usize = 20_000;

fn bounded(preemptions: usize, check: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.max_branches = BRANCHES_MAX;
    builder.check(check);
}

fn model(check: impl Fn() + Sync + Send + 'static) {
    bounded(PREEMPTIONS, check);
}

fn model_of_many(check: impl Fn() + Sync + Send + 'static) {
    bounded(PREEMPTIONS_OF_MANY, check);
}

fn options() -> Options {
    Options::new().capacity(2).batch(2).wait(Wait::Park)
}

#[test]
fn everything_arrives_in_order_and_then_the_end() {
    model_of_many(|| {
        let (mut sender, mut receiver) = options().queue();
        let sending = thread::spawn(move || {
            for message in 0..3 {
                sender.send(message).unwrap();
            }
        });
        for expected in 0..3 {
            assert_eq!(receiver.recv(), Ok(expected));
        }
        assert!(receiver.recv().is_err());
        sending.join().unwrap();
    });
}

#[test]
fn a_sleeping_receiver_gets_what_is_in_an_unfinished_batch() {
    model(|| {
        let (mut sender, mut receiver) = options().capacity(4).queue();
        let sending = thread::spawn(move || {
            sender.send(Box::new(7)).unwrap();
            // neither flushed nor dropped
            sender
        });
        assert_eq!(receiver.recv().map(|message| *message), Ok(7));
        drop(sending.join().unwrap());
    });
}

#[test]
fn a_task_gets_what_is_in_an_unfinished_batch() {
    model(|| {
        let (mut sender, mut receiver) = options().capacity(4).queue();
        let sending = thread::spawn(move || {
            sender.send(Box::new(7)).unwrap();
            sender
        });
        assert_eq!(loom::future::block_on(receiver.recv_async()).map(|message| *message), Ok(7));
        drop(sending.join().unwrap());
    });
}

#[test]
fn a_sender_that_sleeps_for_want_of_room_is_woken() {
    model_of_many(|| {
        let (mut sender, mut receiver) = options().queue();
        let sending = thread::spawn(move || sender.send_batch(0..4).unwrap());
        let mut got = Vec::new();
        while let Ok(batch) = receiver.recv_batch() {
            got.extend(batch);
        }
        assert_eq!(got, [0, 1, 2, 3]);
        sending.join().unwrap();
    });
}

#[test]
fn what_is_accepted_while_the_receiver_closes_is_received_and_nothing_else() {
    model(|| {
        let (mut sender, mut receiver) = options().capacity(4).queue();
        let sending = thread::spawn(move || {
            let accepted: Vec<bool> = (0..2).map(|message| sender.send(Box::new(message)).is_ok()).collect();
            (accepted, sender)
        });
        receiver.close();
        let mut got = Vec::new();
        while let Ok(message) = receiver.recv() {
            got.push(*message);
        }
        let (accepted, sender) = sending.join().unwrap();
        drop(sender);
        let count = accepted.iter().filter(|accepted| **accepted).count();
        assert_eq!(got, (0..count).collect::<Vec<_>>(), "accepted {accepted:?}");
    });
}

#[test]
fn a_sender_that_sleeps_learns_that_the_receiver_is_gone() {
    model_of_many(|| {
        let (mut sender, receiver) = options().queue();
        let sending = thread::spawn(move || {
            let mut accepted = 0;
            while sender.send(Box::new(accepted)).is_ok() {
                accepted += 1;
            }
            assert!(accepted <= 2, "more than there is room for");
            assert!(
                matches!(sender.try_send(Box::new(9)), Err(TrySendError::Closed(message)) if *message == 9)
            );
        });
        drop(receiver);
        sending.join().unwrap();
    });
}

#[test]
fn two_senders_and_the_end_of_both() {
    model_of_many(|| {
        let (mut first, mut receiver) = options().queue();
        let mut second = first.clone();
        let sending = thread::spawn(move || first.send(1).unwrap());
        second.send(2).unwrap();
        drop(second);
        let (a, b) = (receiver.recv().unwrap(), receiver.recv().unwrap());
        assert_eq!(a + b, 3);
        assert!(receiver.recv().is_err());
        sending.join().unwrap();
    });
}

#[test]
fn two_receivers_get_each_message_once_and_both_learn_of_the_end() {
    model_of_many(|| {
        let (mut sender, mut receiver) = options().shared_queue::<Box<i32>>();
        let mut other = receiver.clone();
        let receiving = thread::spawn(move || {
            let mut sum = 0;
            while let Ok(message) = other.recv() {
                sum += *message;
            }
            sum
        });
        sender.send(Box::new(1)).unwrap();
        sender.send(Box::new(2)).unwrap();
        drop(sender);
        let mut sum = 0;
        while let Ok(message) = receiver.recv() {
            sum += *message;
        }
        assert_eq!(sum + receiving.join().unwrap(), 3);
    });
}

#[test]
fn what_one_receiver_held_another_gets() {
    model_of_many(|| {
        let (mut sender, mut receiver) = options().capacity(4).shared_queue();
        let mut other = receiver.clone();
        let receiving = thread::spawn(move || other.recv().map(|message: Box<i32>| *message));
        sender.send_batch([Box::new(1), Box::new(2)]).unwrap();
        let own = receiver.recv().map(|message| *message);
        // may hold the second message
        drop(receiver);
        let sum = own.unwrap() + receiving.join().unwrap().unwrap();
        assert_eq!(sum, 3);
        drop(sender);
    });
}
