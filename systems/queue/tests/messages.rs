//! Subscribers that work on many messages at a time.

use std::sync::{Arc, Mutex};

use tidemark_queue::queue;
use tidemark_queue::stream::{Messages, Slow, StreamError, Subscriber, Subscription, multicast, unicast};

/// Takes what lies ready all at once.
struct Sweeper {
    seen: Arc<Mutex<Vec<String>>>,
    first: u64,
}

impl Subscriber<String> for Sweeper {
    fn on_subscribe(&mut self, subscription: Subscription) {
        subscription.request(self.first);
    }

    fn on_next(&mut self, _: String) {
        panic!("they come in batches");
    }

    fn on_batch(&mut self, messages: &mut Messages<'_, String>) {
        self.seen.lock().unwrap().extend_from_slice(messages.as_slice());
        messages.clear();
        assert!(messages.as_slice().is_empty() && messages.next().is_none());
    }

    fn on_complete(&mut self) {}

    fn on_error(&mut self, _: StreamError) {}
}

#[test]
fn messages_taken_together_count_against_the_demand_and_are_gone() {
    let (mut sender, receiver) = queue();
    sender.send_batch((0..10).map(|number| number.to_string())).unwrap();
    let (publisher, mut distribution) = unicast(receiver);
    let seen = Arc::new(Mutex::new(Vec::new()));
    publisher.subscribe(Sweeper { seen: seen.clone(), first: 4 });
    distribution.run_once();
    assert_eq!(*seen.lock().unwrap(), ["0", "1", "2", "3"]);
    assert_eq!(sender.metrics().queued(), 6);
}

#[test]
fn messages_of_a_multicast_taken_together_are_gone_when_all_have_had_them() {
    let (mut sender, receiver) = queue();
    sender.send_batch((0..10).map(|number| number.to_string())).unwrap();
    let (publisher, mut distribution) = multicast(receiver, Slow::SetsThePace);
    let seen = Arc::new(Mutex::new(Vec::new()));
    publisher.subscribe(Sweeper { seen: seen.clone(), first: 4 });
    publisher.subscribe(Sweeper { seen: seen.clone(), first: 2 });
    distribution.run_once();
    assert_eq!(*seen.lock().unwrap(), ["0", "1", "0", "1"]);
    assert_eq!(sender.metrics().queued(), 8);
}
