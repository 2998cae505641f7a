//! What a queue promises, on real threads; and what went wrong in another queue of this kind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tidemark_queue::{
    Options, RecvTimeoutError, SendError, TryRecvError, TrySendError, Wait, queue, shared_queue,
};

/// As long as nobody is in a hurry; a test that waits that long has failed.
const LONG: Duration = Duration::from_secs(60);
/// Miri is a thousand times slower.
const MANY: u64 = if cfg!(miri) { 200 } else { 20_000 };
const WAITS: [Wait; 4] = [Wait::Auto, Wait::Spin, Wait::Yield, Wait::Park];

#[test]
fn messages_of_a_sender_stay_in_order_however_both_ends_wait() {
    for wait in WAITS {
        let (mut sender, mut receiver) = Options::new().capacity(64).batch(16).wait(wait).queue();
        let sending = thread::spawn(move || (0..MANY).for_each(|message| sender.send(message).unwrap()));
        for expected in 0..MANY {
            assert_eq!(receiver.recv(), Ok(expected), "{wait:?}");
        }
        assert!(receiver.recv().is_err());
        sending.join().unwrap();
    }
}

#[test]
fn batches_and_single_messages_mix() {
    let (mut sender, mut receiver) = Options::new().capacity(128).queue();
    let sending = thread::spawn(move || {
        let mut next = 0;
        while next < MANY {
            match next % 3 {
                0 => sender.send(next).map(|()| next += 1).unwrap(),
                1 => sender.send_batch(next..next + 300).map(|()| next += 300).unwrap(),
                _ => {
                    let messages: Vec<u64> = (next..next + 200).collect();
                    sender.send_slice(&messages).unwrap();
                    next += 200;
                }
            }
        }
        next
    });
    let mut expected = 0;
    loop {
        let Ok(batch) = receiver.recv_batch() else { break };
        for message in batch.take(7) {
            assert_eq!(message, expected);
            expected += 1;
        }
        if let Ok(message) = receiver.recv() {
            assert_eq!(message, expected, "what the batch left comes next");
            expected += 1;
        }
    }
    assert_eq!(sending.join().unwrap(), expected);
}

#[test]
fn the_last_items_do_not_stay_in_the_senders_batch() {
    for wait in WAITS {
        let (mut sender, mut receiver) = Options::new().batch(1000).wait(wait).queue();
        for message in 0..3 {
            sender.send(message).unwrap();
        }
        // the sender neither flushes, nor sends more, nor goes away
        for expected in 0..3 {
            assert_eq!(receiver.recv_timeout(LONG), Ok(expected), "{wait:?}");
        }
        assert_eq!(receiver.metrics().taken_early, 3);
        drop(sender);
    }
}

#[test]
fn the_last_items_reach_a_receiver_that_has_long_been_asleep() {
    let (mut sender, mut receiver) = Options::new().batch(1000).queue();
    let receiving = thread::spawn(move || (receiver.recv(), receiver));
    while sender.metrics().receiver_waits == 0 {
        thread::yield_now();
    }
    // asleep for certain, or else the test is only weaker
    thread::sleep(Duration::from_millis(20));
    sender.send(7).unwrap();
    let (received, _receiver) = receiving.join().unwrap();
    assert_eq!(received, Ok(7));
    drop(sender);
}

#[test]
fn flush_hands_an_unfinished_batch_over() {
    let (mut sender, receiver) = Options::new().batch(1000).queue();
    sender.send(1).unwrap();
    assert_eq!(receiver.metrics().batches_by_hand, 0);
    sender.flush();
    assert_eq!(receiver.metrics().batches_by_hand, 1);
    sender.flush();
    assert_eq!(receiver.metrics().batches_by_hand, 1, "there was nothing to hand over");
}

#[test]
fn a_full_batch_is_handed_over() {
    let (mut sender, receiver) = Options::new().batch(10).queue();
    (0..25).for_each(|message| sender.send(message).unwrap());
    assert_eq!(receiver.metrics().batches_full, 2);
}

#[test]
fn more_than_a_batch_is_handed_over_in_pieces() {
    let (mut sender, mut receiver) = Options::new().capacity(64).batch(10).queue();
    sender.send_batch(0..25).unwrap();
    let metrics = receiver.metrics();
    assert_eq!((metrics.batches_full, metrics.batches_by_hand), (2, 1));
    sender.send_slice(&Vec::from_iter(25..50)).unwrap();
    let metrics = receiver.metrics();
    assert_eq!((metrics.batches_full, metrics.batches_by_hand), (4, 2));
    drop(sender);
    let mut received = Vec::new();
    while let Ok(batch) = receiver.recv_batch() {
        received.extend(batch);
    }
    assert!(received.into_iter().eq(0..50));
}

#[test]
fn a_lingering_receiver_takes_an_unfinished_batch_when_the_time_is_over_and_a_full_one_before() {
    let linger = Duration::from_millis(50);
    let (mut sender, mut receiver) = Options::new().batch(2).linger(linger).queue();
    sender.send(1).unwrap();
    let began = std::time::Instant::now();
    assert_eq!(receiver.recv(), Ok(1));
    assert!(began.elapsed() >= linger, "it did not let the batch grow");

    let (mut sender, mut receiver) = Options::new().batch(2).linger(LONG).queue();
    (1..3).for_each(|message| sender.send(message).unwrap());
    assert_eq!(receiver.recv(), Ok(1), "the batch is full: nothing to linger for");
}

#[test]
fn a_full_queue_refuses_by_choice_and_says_how_often() {
    let (mut sender, mut receiver) = Options::new().capacity(2).queue();
    assert_eq!(sender.room(), 2);
    sender.try_send(1).unwrap();
    sender.try_send(2).unwrap();
    assert_eq!(sender.try_send(3), Err(TrySendError::Full(3)));
    assert_eq!(sender.room(), 0);
    assert_eq!(receiver.metrics().refused, 1);
    assert_eq!(receiver.recv(), Ok(1));
    sender.try_send(3).unwrap();
    assert_eq!((receiver.recv(), receiver.recv()), (Ok(2), Ok(3)));
}

#[test]
fn dropping_the_receiver_is_an_error_for_the_sender_and_frees_what_is_queued() {
    let freed = Arc::new(());
    let (mut sender, receiver) = queue();
    for _ in 0..10 {
        sender.send(freed.clone()).unwrap();
    }
    drop(receiver);
    assert_eq!(Arc::strong_count(&freed), 1, "messages outlived the receiver");
    let SendError(returned) = sender.send(freed.clone()).unwrap_err();
    assert!(Arc::ptr_eq(&returned, &freed));
    assert!(matches!(sender.try_send(freed.clone()), Err(TrySendError::Closed(_))));
    assert_eq!(sender.send_batch([freed.clone(), freed.clone()]).unwrap_err().accepted, 0);
    assert!(sender.is_closed());
    drop(returned);
    assert_eq!(Arc::strong_count(&freed), 1);
}

#[test]
fn a_sender_that_waits_for_room_learns_that_the_receiver_is_gone() {
    for wait in WAITS {
        let (mut sender, receiver) = Options::new().capacity(2).wait(wait).queue();
        let sending = thread::spawn(move || sender.send_batch(0..10).unwrap_err().accepted);
        while receiver.metrics().sender_waits == 0 {
            thread::yield_now();
        }
        drop(receiver);
        assert_eq!(sending.join().unwrap(), 2, "{wait:?}");
    }
}

#[test]
fn closing_drains_and_refuses_what_comes_later() {
    let (mut sender, mut receiver) = queue();
    sender.send(1).unwrap();
    receiver.close();
    assert_eq!(sender.send(2), Err(SendError(2)));
    let mut late = sender.clone();
    assert_eq!(late.send(3), Err(SendError(3)));
    assert_eq!(receiver.recv(), Ok(1));
    assert!(receiver.recv().is_err(), "although the sender is still there");
}

#[test]
fn what_is_accepted_while_the_receiver_closes_is_received_and_nothing_else() {
    for round in 0..if cfg!(miri) { 3 } else { 200 } {
        let (mut sender, mut receiver) = Options::new().capacity(8).batch(4).queue();
        let sending = thread::spawn(move || {
            let mut accepted = 0;
            while sender.send(Box::new(accepted)).is_ok() {
                accepted += 1;
            }
            accepted
        });
        let mut got = 0;
        for _ in 0..round {
            assert_eq!(*receiver.recv().unwrap(), got);
            got += 1;
        }
        receiver.close();
        while let Ok(message) = receiver.recv() {
            assert_eq!(*message, got);
            got += 1;
        }
        assert_eq!(sending.join().unwrap(), got);
    }
}

#[test]
fn nothing_comes_in_time() {
    let (sender, mut receiver) = queue::<u8>();
    for wait in WAITS {
        let (_sender, mut receiver) = Options::new().wait(wait).queue::<u8>();
        let timeout = Duration::from_millis(5);
        assert_eq!(receiver.recv_timeout(timeout), Err(RecvTimeoutError::Timeout), "{wait:?}");
    }
    drop(sender);
    assert_eq!(receiver.recv_timeout(LONG), Err(RecvTimeoutError::Closed));
}

#[test]
fn a_receiver_is_fair_to_its_senders() {
    let (first, mut receiver) = Options::new().capacity(1024).queue();
    let mut senders = [first.clone(), first.clone(), first];
    for (name, sender) in senders.iter_mut().enumerate() {
        sender.send_batch(std::iter::repeat_n(name, 1000)).unwrap();
    }
    // after each of them has been visited once, each has been served
    let seen: Vec<usize> =
        (0..3).map(|_| receiver.recv_batch().map(|mut batch| batch.next()).unwrap().unwrap()).collect();
    assert_eq!(seen.len(), 3);
    let mut served = [0; 3];
    for _ in 0..3 {
        for name in receiver.recv_batch().unwrap() {
            served[name] += 1;
        }
    }
    assert!(served.iter().all(|count| *count > 0), "one starved: {served:?}");
}

#[test]
fn many_senders_come_and_go() {
    let (first, mut receiver) = Options::new().capacity(8).batch(2).queue();
    let senders: Vec<_> = (0..20)
        .map(|name| {
            let mut sender = first.clone();
            thread::spawn(move || (0..MANY / 20).for_each(|number| sender.send((name, number)).unwrap()))
        })
        .collect();
    drop(first);
    let mut next = [0; 20];
    while let Ok((name, number)) = receiver.recv() {
        assert_eq!(number, next[name], "messages of sender {name} are out of order");
        next[name] += 1;
    }
    assert_eq!(next, [MANY / 20; 20]);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    let metrics = receiver.metrics();
    assert_eq!(
        (metrics.sent, metrics.received, metrics.queued()),
        (MANY, MANY, 0),
        "rings that went are counted"
    );
}

#[test]
fn each_message_goes_to_one_of_many_receivers() {
    for wait in [Wait::Auto, Wait::Park] {
        let (first, receiver) = Options::new().capacity(32).batch(8).wait(wait).shared_queue();
        let senders: Vec<_> = (0..3)
            .map(|name| {
                let mut sender = first.clone();
                thread::spawn(move || {
                    (0..MANY)
                        .filter(|message| message % 3 == name)
                        .for_each(|message| sender.send(message).unwrap());
                })
            })
            .collect();
        drop(first);
        let receivers: Vec<_> = (0..3)
            .map(|_| {
                let mut receiver = receiver.clone();
                thread::spawn(move || std::iter::from_fn(|| receiver.recv().ok()).collect::<Vec<u64>>())
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        drop(receiver);
        let mut all: Vec<u64> = receivers.into_iter().flat_map(|receiver| receiver.join().unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..MANY).collect::<Vec<_>>(), "{wait:?}");
    }
}

#[test]
fn a_shared_receiver_gives_back_what_it_held() {
    let (mut sender, mut receiver) = shared_queue();
    sender.send_batch(0..10).unwrap();
    let mut other = receiver.clone();
    assert_eq!(receiver.recv(), Ok(0));
    assert_eq!(other.try_recv(), Err(TryRecvError::Empty), "the first holds the batch");
    drop(receiver);
    assert_eq!(other.metrics().queued(), 9);
    drop(sender);
    let rest: Vec<_> = std::iter::from_fn(|| other.recv().ok()).collect();
    assert_eq!(rest, (1..10).collect::<Vec<_>>());
}

#[test]
fn dropping_the_last_shared_receiver_frees_what_is_queued() {
    let freed = Arc::new(());
    let (mut sender, mut receiver) = shared_queue();
    for _ in 0..10 {
        sender.send(freed.clone()).unwrap();
    }
    drop(receiver.clone());
    drop(receiver.recv());
    drop(receiver);
    assert_eq!(Arc::strong_count(&freed), 1);
    assert!(sender.send(freed.clone()).is_err());
}

#[test]
fn a_leaked_batch_leaks_its_messages_and_nothing_else_breaks() {
    let (mut sender, mut receiver) = Options::new().capacity(8).queue();
    for round in 0..20 {
        sender.send_batch([Box::new(round), Box::new(round)]).unwrap();
        if round % 2 == 0 {
            let mut batch = receiver.recv_batch().unwrap();
            // what is leaked owns nothing, so that leak checkers stay quiet
            batch.by_ref().for_each(drop);
            std::mem::forget(batch);
        } else {
            assert!(receiver.recv_batch().unwrap().all(|message| *message == round));
        }
    }
}

#[test]
fn a_message_whose_iterator_panics_is_not_sent() {
    let (mut sender, mut receiver) = queue();
    let poisoned = (0..10).map(|number| if number == 5 { panic!("as it should") } else { number });
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sender.send_batch(poisoned)));
    assert!(panicked.is_err());
    sender.send(100).unwrap();
    drop(sender);
    assert_eq!(receiver.recv(), Ok(100), "a batch that was not whole was not sent");
}

#[test]
fn a_senders_failure_comes_after_its_messages() {
    let (mut sender, mut receiver) = queue();
    sender.send(1).unwrap();
    sender.fail("the source ran dry");
    assert_eq!(receiver.recv(), Ok(1));
    assert!(receiver.recv().is_err());
    assert_eq!(receiver.failure().unwrap().to_string(), "the source ran dry");
}

#[test]
fn messages_of_no_size_and_of_great_size() {
    let (mut sender, mut receiver) = Options::new().capacity(4).queue();
    let sending = thread::spawn(move || (0..100).for_each(|_| sender.send(()).unwrap()));
    assert_eq!(std::iter::from_fn(|| receiver.recv().ok()).count(), 100);
    sending.join().unwrap();

    let (mut sender, mut receiver) = Options::new().capacity(2).queue();
    let sending = thread::spawn(move || (0..100_u8).for_each(|byte| sender.send([byte; 4096]).unwrap()));
    for byte in 0..100_u8 {
        assert_eq!(receiver.recv(), Ok([byte; 4096]));
    }
    sending.join().unwrap();
}

#[test]
fn every_message_is_dropped_once() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPS.fetch_add(1, Ordering::Relaxed);
        }
    }
    let (mut sender, mut receiver) = Options::new().capacity(16).queue();
    for _ in 0..5 {
        sender.send_batch((0..10).map(|_| Counted)).unwrap();
        let mut batch = receiver.recv_batch().unwrap();
        drop(batch.next());
        batch.clear();
        drop(batch);
        while receiver.try_recv().is_ok() {}
    }
    sender.send_batch((0..3).map(|_| Counted)).unwrap();
    drop(receiver);
    assert!(sender.send(Counted).is_err());
    drop(sender);
    assert_eq!(DROPS.load(Ordering::Relaxed), 54);
}
