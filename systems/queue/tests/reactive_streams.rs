//! The rules of Reactive Streams (specification for the JVM, 1.0.4) that mean something here, each by its number; and what
//! went wrong in another implementation.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures_executor::block_on;
use futures_util::StreamExt;
use tidemark_queue::stream::{
    Publisher, Slow, StreamError, Subscriber, Subscription, Turn, multicast, round_robin, unicast,
};
use tidemark_queue::{Options, Sender, queue};

#[derive(Debug, Clone, PartialEq)]
enum Signal {
    Subscribed,
    Next(u64),
    Complete,
    Error(String),
}

/// What a subscriber has seen, and its subscription for the test to use.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<(Vec<Signal>, Option<Subscription>)>>);

impl Seen {
    fn signals(&self) -> Vec<Signal> {
        self.0.lock().unwrap().0.clone()
    }

    fn messages(&self) -> Vec<u64> {
        let next = |signal: &Signal| if let Signal::Next(message) = signal { Some(*message) } else { None };
        self.signals().iter().filter_map(next).collect()
    }

    fn last(&self) -> Signal {
        self.signals().last().cloned().unwrap()
    }

    fn subscription(&self) -> Subscription {
        self.0.lock().unwrap().1.clone().unwrap()
    }
}

type OnNext = Box<dyn FnMut(&Subscription, u64) + Send>;

/// Notes every signal, and does something with each message.
struct Probe {
    seen: Seen,
    first: u64,
    on_next: OnNext,
}

/// A probe that asks for so many at first.
fn probe(first: u64) -> (Probe, Seen) {
    probe_that(first, |_, _| ())
}

fn probe_that(first: u64, on_next: impl FnMut(&Subscription, u64) + Send + 'static) -> (Probe, Seen) {
    let seen = Seen::default();
    (Probe { seen: seen.clone(), first, on_next: Box::new(on_next) }, seen)
}

impl Subscriber<u64> for Probe {
    fn on_subscribe(&mut self, subscription: Subscription) {
        if self.first > 0 {
            subscription.request(self.first);
        }
        let mut seen = self.seen.0.lock().unwrap();
        seen.0.push(Signal::Subscribed);
        seen.1 = Some(subscription);
    }

    fn on_next(&mut self, message: u64) {
        self.seen.0.lock().unwrap().0.push(Signal::Next(message));
        (self.on_next)(&self.seen.subscription(), message);
    }

    fn on_complete(&mut self) {
        self.seen.0.lock().unwrap().0.push(Signal::Complete);
    }

    fn on_error(&mut self, error: StreamError) {
        self.seen.0.lock().unwrap().0.push(Signal::Error(error.to_string()));
    }
}

fn subscribe(publisher: &Publisher<u64>, first: u64) -> Seen {
    let (probe, seen) = probe(first);
    publisher.subscribe(probe);
    seen
}

/// A queue with these messages in it, whose sender is still there.
fn filled(messages: std::ops::Range<u64>) -> (Sender<u64>, tidemark_queue::Receiver<u64>) {
    let room = messages.clone().count();
    let (mut sender, receiver) = Options::new().capacity(room).queue();
    sender.send_batch(messages).unwrap();
    (sender, receiver)
}

#[test]
fn rule_1_01_never_more_than_was_asked_for() {
    let (_sender, receiver) = filled(0..100);
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, 0);
    assert!(distribution.run_once());
    assert_eq!(seen.signals(), [Signal::Subscribed], "nothing was asked for");
    for (more, expected) in [(3, 3), (1, 4), (50, 54), (100, 100)] {
        seen.subscription().request(more);
        distribution.run_once();
        assert_eq!(seen.messages(), (0..expected).collect::<Vec<_>>());
    }
}

#[test]
fn rule_1_02_fewer_than_asked_for_and_then_complete() {
    let (sender, receiver) = filled(0..5);
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, 1000);
    drop(sender);
    distribution.run();
    assert_eq!(seen.messages().len(), 5);
    assert_eq!(seen.last(), Signal::Complete);
}

#[test]
fn rule_1_03_signals_are_serial_whoever_asks() {
    let (mut sender, receiver) = Options::new().capacity(64).queue();
    let (publisher, mut distribution) = unicast(receiver);
    let inside = AtomicUsize::new(0);
    let (probe, seen) = probe_that(0, move |_, message| {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two signals at a time");
        // now and then: on a busy core each takes some milliseconds
        if message % 100 == 0 {
            thread::yield_now();
        }
        inside.fetch_sub(1, Ordering::SeqCst);
    });
    publisher.subscribe(probe);
    distribution.run_once();
    let count = if cfg!(miri) { 20 } else { 2_000 };
    let subscription = seen.subscription();
    let asking: Vec<_> = (0..4)
        .map(|_| {
            let subscription = subscription.clone();
            thread::spawn(move || (0..count).for_each(|_| subscription.request(1)))
        })
        .collect();
    let sending = thread::spawn(move || sender.send_batch(0..4 * count).unwrap());
    distribution.run();
    asking.into_iter().for_each(|asking| asking.join().unwrap());
    sending.join().unwrap();
    assert_eq!(seen.messages(), (0..4 * count).collect::<Vec<_>>());
}

#[test]
fn rule_1_04_a_failure_is_an_error_signal_after_the_messages() {
    let (sender, receiver) = filled(0..3);
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, 10);
    sender.fail("the source ran dry");
    distribution.run();
    assert_eq!(seen.messages(), [0, 1, 2]);
    assert_eq!(seen.last(), Signal::Error("the source ran dry".into()));
}

#[test]
fn rule_1_05_complete_needs_no_demand() {
    let (sender, receiver) = queue();
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, 0);
    drop(sender);
    distribution.run();
    assert_eq!(seen.signals(), [Signal::Subscribed, Signal::Complete]);
}

#[test]
fn rules_1_06_and_1_07_after_the_last_signal_there_is_none() {
    let (sender, receiver) = filled(0..1);
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, 1);
    drop(sender);
    distribution.run();
    let before = seen.signals();
    assert!(seen.subscription().is_cancelled());
    seen.subscription().request(5);
    seen.subscription().request(0);
    seen.subscription().cancel();
    distribution.run();
    drop(distribution);
    assert_eq!(seen.signals(), before);
}

#[test]
fn rule_1_08_a_cancel_stops_the_signals_and_the_queue_keeps_the_rest() {
    let (sender, receiver) = filled(0..100);
    let (publisher, mut distribution) = unicast(receiver);
    let (first, seen) = probe_that(100, |subscription, message| {
        if message == 14 {
            subscription.cancel();
        }
    });
    publisher.subscribe(first);
    distribution.run_once();
    assert_eq!(seen.last(), Signal::Next(14), "no completion after a cancel, and no further message");
    // the other implementation threw the other 85 away
    let next = subscribe(&publisher, 100);
    drop(sender);
    distribution.run();
    assert_eq!(next.messages(), (15..100).collect::<Vec<_>>());
}

#[test]
fn rule_1_09_the_first_signal_is_the_subscription_also_where_it_is_refused() {
    let (_sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = unicast(receiver);
    let first = subscribe(&publisher, 2);
    let second = subscribe(&publisher, 10);
    distribution.run_once();
    assert_eq!(first.messages(), [0, 1]);
    let [Signal::Subscribed, Signal::Error(reason)] = &second.signals()[..] else {
        panic!("a second subscriber of a unicast must be refused: {:?}", second.signals());
    };
    assert!(reason.contains("already"), "{reason}");
    assert!(second.subscription().is_cancelled());
    drop(distribution);
    let late = subscribe(&publisher, 1);
    assert!(matches!(&late.signals()[..], [Signal::Subscribed, Signal::Error(_)]), "{:?}", late.signals());
}

#[test]
fn rule_1_11_many_subscribers_each_with_its_own_demand() {
    let (sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = multicast(receiver, Slow::SetsThePace);
    let fast = subscribe(&publisher, u64::MAX);
    let slow = subscribe(&publisher, 4);
    distribution.run_once();
    assert_eq!((fast.messages().len(), slow.messages().len()), (4, 4), "the slowest sets the pace");
    slow.subscription().request(100);
    drop(sender);
    distribution.run();
    assert_eq!(fast.messages(), (0..10).collect::<Vec<_>>());
    assert_eq!(fast.signals(), slow.signals());
}

#[test]
fn rule_2_05_and_2_08_a_subscriber_of_ours_that_is_gone_cancels() {
    let (_sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = unicast(receiver);
    let gone_before = publisher.stream(4);
    drop(gone_before);
    distribution.run_once();
    let gone_after = publisher.stream(4);
    distribution.run_once();
    drop(gone_after);
    let seen = subscribe(&publisher, 100);
    distribution.run_once();
    assert_eq!(seen.messages(), (4..10).collect::<Vec<_>>(), "it took what it had asked for, and no more");
}

#[test]
fn rule_2_13_a_panic_of_a_subscriber_is_not_swallowed_and_ends_its_subscription() {
    let (sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = unicast(receiver);
    let (panicking, seen) = probe_that(10, |_, message| assert!(message < 3, "as it should"));
    publisher.subscribe(panicking);
    assert!(catch_unwind(AssertUnwindSafe(|| distribution.run())).is_err());
    assert!(seen.subscription().is_cancelled());
    let next = subscribe(&publisher, 10);
    drop(sender);
    distribution.run();
    assert_eq!(seen.messages(), [0, 1, 2, 3], "the stream was not restarted for it");
    assert_eq!(next.messages(), (4..10).collect::<Vec<_>>());
}

#[test]
fn rule_2_13_others_of_a_multicast_are_served_before_the_panic_goes_on() {
    let (sender, receiver) = filled(0..4);
    let (publisher, mut distribution) = multicast(receiver, Slow::SetsThePace);
    let (panicking, _) = probe_that(10, |_, _| panic!("as it should"));
    publisher.subscribe(panicking);
    let other = subscribe(&publisher, 10);
    assert!(catch_unwind(AssertUnwindSafe(|| distribution.run())).is_err());
    drop(sender);
    distribution.run();
    assert_eq!(other.messages(), [0, 1, 2, 3]);
    assert_eq!(other.last(), Signal::Complete);
}

#[test]
fn rule_3_02_and_3_03_asking_within_a_signal_does_not_recurse() {
    let count = if cfg!(miri) { 100 } else { 4_000 };
    let (sender, receiver) = filled(0..count);
    let (publisher, mut distribution) = unicast(receiver);
    let inside = AtomicUsize::new(0);
    let (probe, seen) = probe_that(1, move |subscription, _| {
        assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "a signal within a signal");
        subscription.request(1);
        inside.fetch_sub(1, Ordering::SeqCst);
    });
    publisher.subscribe(probe);
    drop(sender);
    distribution.run();
    assert_eq!(seen.messages().len() as u64, count);
}

#[test]
fn rules_3_05_and_3_07_cancelling_twice_is_cancelling_once() {
    let (_sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, 2);
    distribution.run_once();
    for _ in 0..3 {
        seen.subscription().cancel();
        distribution.run_once();
    }
    assert_eq!(seen.signals(), [Signal::Subscribed, Signal::Next(0), Signal::Next(1)]);
}

#[test]
fn rule_3_06_asking_after_a_cancel_does_nothing() {
    let (_sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, 1);
    distribution.run_once();
    seen.subscription().cancel();
    seen.subscription().request(5);
    seen.subscription().request(0);
    distribution.run_once();
    assert_eq!(seen.signals(), [Signal::Subscribed, Signal::Next(0)]);
}

#[test]
fn rule_3_09_asking_for_none_is_an_error() {
    let (_sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, 1);
    distribution.run_once();
    seen.subscription().request(0);
    distribution.run_once();
    let Signal::Error(reason) = seen.last() else { panic!("no error: {:?}", seen.signals()) };
    assert!(reason.contains("3.9"), "{reason}");
    // and the place is free again
    let next = subscribe(&publisher, 1);
    distribution.run_once();
    assert_eq!(next.messages(), [1]);
}

#[test]
fn rule_3_13_a_cancelled_subscriber_is_let_go() {
    let (_sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = unicast(receiver);
    let held = Arc::new(());
    let (probe, seen) = probe_that(1, {
        let held = held.clone();
        move |_, _| drop(held.clone())
    });
    publisher.subscribe(probe);
    distribution.run_once();
    seen.subscription().cancel();
    assert_eq!(Arc::strong_count(&held), 2);
    distribution.run_once();
    assert_eq!(Arc::strong_count(&held), 1, "the subscriber is still held");
}

#[test]
fn rule_3_17_demand_adds_up_without_overflow() {
    let (sender, receiver) = filled(0..100);
    let (publisher, mut distribution) = unicast(receiver);
    let seen = subscribe(&publisher, u64::MAX);
    distribution.run_once();
    seen.subscription().request(u64::MAX);
    seen.subscription().request(1);
    drop(sender);
    distribution.run();
    assert_eq!(seen.messages().len(), 100);
    assert_eq!(seen.last(), Signal::Complete);
}

#[test]
fn a_round_robin_is_fair_by_message() {
    let (sender, receiver) = filled(0..1000);
    let (publisher, mut distribution) = round_robin(receiver, Turn::Message);
    let all = [subscribe(&publisher, 1000), subscribe(&publisher, 1000), subscribe(&publisher, 1000)];
    drop(sender);
    distribution.run();
    // 5, 990 and 5 in the other implementation
    assert_eq!(all.each_ref().map(|seen| seen.messages().len()), [334, 333, 333]);
    assert_eq!(all[1].messages()[..3], [1, 4, 7]);
}

#[test]
fn a_round_robin_by_message_goes_as_far_as_was_asked_for() {
    let (sender, receiver) = filled(0..100);
    let (publisher, mut distribution) = round_robin(receiver, Turn::Message);
    let few = subscribe(&publisher, 3);
    // asks for one more with each of its first five
    let (asking, more) = probe_that(2, |subscription, message| {
        if message < 8 {
            subscription.request(1);
        }
    });
    publisher.subscribe(asking);
    distribution.run_once();
    assert_eq!(few.messages(), [0, 2, 4]);
    assert_eq!(more.messages(), [1, 3, 5, 6, 7, 8, 9]);
    more.subscription().cancel();
    few.subscription().request(1000);
    drop(sender);
    distribution.run();
    assert_eq!(few.messages()[3..], (10..100).collect::<Vec<_>>());
}

#[test]
fn a_round_robin_by_message_goes_on_without_those_who_cancel_or_panic() {
    let (sender, receiver) = filled(0..20);
    let (publisher, mut distribution) = round_robin(receiver, Turn::Message);
    let (panicking, panicked) = probe_that(20, |_, message| assert!(message < 3, "as it should"));
    publisher.subscribe(panicking);
    let (leaving, left) = probe_that(20, |subscription, _| subscription.cancel());
    publisher.subscribe(leaving);
    let staying = subscribe(&publisher, 20);
    assert!(catch_unwind(AssertUnwindSafe(|| distribution.run())).is_err());
    assert!(panicked.subscription().is_cancelled());
    drop(sender);
    distribution.run();
    assert_eq!(panicked.messages(), [0, 3]);
    assert_eq!(left.messages(), [1]);
    assert_eq!(staying.messages(), [vec![2], (4..20).collect()].concat());
}

#[test]
fn a_round_robin_by_batch_and_around_those_who_want_nothing() {
    let (sender, receiver) = filled(0..100);
    let (publisher, mut distribution) = round_robin(receiver, Turn::Batch(10));
    let (one, none, other) =
        (subscribe(&publisher, 100), subscribe(&publisher, 0), subscribe(&publisher, 25));
    drop(sender);
    distribution.run();
    assert_eq!(one.messages()[..12], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 20, 21]);
    assert_eq!((one.messages().len(), none.messages().len(), other.messages().len()), (75, 0, 25));
    assert_eq!(none.last(), Signal::Complete);
}

#[test]
fn a_round_robin_gives_to_others_what_one_leaves_by_a_cancel() {
    let (sender, receiver) = filled(0..100);
    let (publisher, mut distribution) = round_robin(receiver, Turn::Batch(50));
    let (leaving, left) = probe_that(100, |subscription, message| {
        if message == 4 {
            subscription.cancel();
        }
    });
    publisher.subscribe(leaving);
    let staying = subscribe(&publisher, 100);
    drop(sender);
    distribution.run();
    assert_eq!(left.messages(), [0, 1, 2, 3, 4]);
    assert_eq!(staying.messages(), (5..100).collect::<Vec<_>>());
}

#[test]
fn a_multicast_that_everybody_leaves_keeps_what_nobody_got() {
    let (sender, receiver) = filled(0..100);
    let (publisher, mut distribution) = multicast(receiver, Slow::SetsThePace);
    let leave_at = |limit: u64| {
        probe_that(100, move |subscription, message| {
            if message == limit {
                subscription.cancel();
            }
        })
    };
    let ((first, first_seen), (second, second_seen)) = (leave_at(4), leave_at(9));
    publisher.subscribe(first);
    publisher.subscribe(second);
    distribution.run_once();
    assert_eq!((first_seen.messages().len(), second_seen.messages().len()), (5, 10));
    let next = subscribe(&publisher, 100);
    drop(sender);
    distribution.run();
    assert_eq!(next.messages(), (10..100).collect::<Vec<_>>());
}

#[test]
fn a_multicast_drops_who_is_too_slow_by_choice() {
    let (sender, receiver) = filled(0..10);
    let (publisher, mut distribution) = multicast(receiver, Slow::Fails { after: Duration::from_millis(10) });
    let fast = subscribe(&publisher, 100);
    let slow = subscribe(&publisher, 3);
    drop(sender);
    distribution.run();
    assert_eq!(fast.messages(), (0..10).collect::<Vec<_>>());
    assert_eq!(slow.messages(), [0, 1, 2]);
    assert!(matches!(slow.last(), Signal::Error(reason) if reason.contains("too long")));
}

#[test]
fn a_stream_on_another_thread_gets_everything_in_order() {
    let count = if cfg!(miri) { 100 } else { 5_000 };
    for prefetch in [1, 3, 64] {
        let (mut sender, receiver) = Options::new().capacity(64).queue();
        let (publisher, mut distribution) = multicast(receiver, Slow::SetsThePace);
        let streams: Vec<_> = (0..2)
            .map(|_| {
                let stream = publisher.stream(prefetch);
                thread::spawn(move || block_on(stream.map(Result::unwrap).collect::<Vec<u64>>()))
            })
            .collect();
        let sending = thread::spawn(move || sender.send_batch(0..count).unwrap());
        distribution.run();
        for stream in streams {
            assert_eq!(stream.join().unwrap(), (0..count).collect::<Vec<_>>(), "prefetch {prefetch}");
        }
        sending.join().unwrap();
    }
}

#[test]
fn a_stream_ends_with_its_error() {
    let (sender, receiver) = filled(0..2);
    let (publisher, mut distribution) = unicast(receiver);
    let mut stream = publisher.stream(8);
    sender.fail("the source ran dry");
    block_on(distribution.run_async());
    assert_eq!(stream.recv().unwrap().unwrap(), 0);
    assert_eq!(stream.recv().unwrap().unwrap(), 1);
    assert_eq!(stream.recv().unwrap().unwrap_err().to_string(), "the source ran dry");
    assert!(stream.recv().is_none());
}

#[test]
fn demand_and_subscribers_wake_a_distribution_that_sleeps() {
    let (sender, receiver) = filled(0..2);
    let (publisher, mut distribution) = unicast(receiver);
    let running = thread::spawn(move || {
        distribution.run();
        distribution
    });
    let seen = subscribe(&publisher, 0);
    while seen.signals().is_empty() {
        thread::yield_now();
    }
    seen.subscription().request(1);
    while seen.messages().is_empty() {
        thread::yield_now();
    }
    drop(sender);
    seen.subscription().request(1);
    running.join().unwrap();
    assert_eq!(seen.last(), Signal::Complete);
}
