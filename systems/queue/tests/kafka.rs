//! A queue with a topic between its ends, of a real Kafka: needs Java 17 and, the first time, Maven.

use std::path::Path;
use std::thread;
use std::time::Duration;

use futures_executor::block_on;
use futures_util::StreamExt;
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use tidemark_lab::StopRequest;
use tidemark_lab::stores::{Setup, Stores};
use tidemark_queue::kafka::{Topic, receive, send};
use tidemark_queue::remote::{Options, RemoteError};
use tidemark_queue::stream::{StreamError, unicast};
use tidemark_scenario::load_text;

use crate::remote::{PATIENCE, eventually, nothing_is_lost_or_doubled};

const SCENARIO: &str = "stores: {kafka: {heap: 256MiB, durability: buffered, ready within: 8m}}
sessions: {a: {steps: [{GET: /}]}}
load: {users: 1, hold: 1s}
";

/// Brokers, behind links that can be cut.
struct Kafka {
    stores: Stores,
    brokers: String,
    _folder: tempfile::TempDir,
}

impl Kafka {
    fn start() -> Kafka {
        let folder = tempfile::tempdir().unwrap();
        let plan = load_text("store.yaml", SCENARIO, Path::new("."), &[]).unwrap();
        let setup = Setup {
            run_dir: folder.path().join("run"),
            cores: Vec::new(),
            keep_data: false,
            data_of: &|_| None,
            is_linked: &|_| true,
        };
        let stores = Stores::start(&plan.stores, &setup, &|| StopRequest::None, &mut |_| {}).unwrap();
        let brokers = stores.settings().remove(0).1;
        Kafka { stores, brokers, _folder: folder }
    }

    fn cut(&self) {
        self.stores.links().iter().for_each(|(_, link)| link.set(|condition| condition.cuts += 1));
    }

    fn topic(&self, name: &str) -> Topic {
        let mut config = ClientConfig::new();
        let admin: AdminClient<DefaultClientContext> =
            config.set("bootstrap.servers", &self.brokers).create().unwrap();
        let topic = NewTopic::new(name, 1, TopicReplication::Fixed(1));
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        block_on(admin.create_topics([&topic], &options)).unwrap().remove(0).unwrap();
        Topic::new(&self.brokers, name)
    }
}

fn small() -> Options {
    Options::new().queue(tidemark_queue::Options::new().capacity(16)).within(PATIENCE)
}

/// One Kafka for all: it takes long to start.
#[test]
fn a_topic_between_the_ends() {
    let kafka = Kafka::start();
    batches_and_the_end_cross(&kafka);
    a_failure_crosses_to_a_stream_with_demand(&kafka);
    a_slow_receiver_pauses(&kafka);
    a_group_goes_on_behind_what_was_taken(&kafka);
    one_sender_takes_the_place_of_another(&kafka);
    connections_that_are_cut_lose_and_double_nothing(&kafka);
    kafka.topic("killed");
    let way = format!("kafka {} killed", kafka.brokers);
    nothing_is_lost_or_doubled(&way, &way, || kafka.cut());
}

fn batches_and_the_end_cross(kafka: &Kafka) {
    let topic = kafka.topic("batches");
    let (mut sender, outgoing) = send::<u64>(&topic, small()).unwrap();
    assert_eq!(outgoing.position(), 0);
    sender.send_batch(0..5000).unwrap();
    drop(sender);
    outgoing.finish(PATIENCE).unwrap();
    // everything is there, though nobody has listened so far
    let (mut receiver, _incoming) = receive::<u64>(&topic, Options::new().within(PATIENCE)).unwrap();
    let (mut sum, mut batches) = (0, 0);
    while let Ok(batch) = receiver.recv_batch() {
        sum += batch.sum::<u64>();
        batches += 1;
    }
    assert_eq!(sum, 5000 * 4999 / 2);
    assert!(batches < 1000, "{batches} batches");
    assert!(receiver.failure().is_none());
    // a position in the middle, and one that the topic has not
    for position in [0, 1, 2500, 4999, 5000] {
        let (mut receiver, _incoming) = receive::<u64>(&topic, small().position(position)).unwrap();
        assert_eq!(receiver.recv().ok(), (position < 5000).then_some(position));
    }
    let beyond = receive::<u64>(&topic, small().position(5002));
    assert!(matches!(&beyond, Err(RemoteError::Refused(reason)) if reason.contains("5001")), "{beyond:?}");
    let late = send::<u64>(&topic, small());
    assert!(matches!(&late, Err(RemoteError::Refused(reason)) if reason.contains("ended")), "{late:?}");
}

fn a_failure_crosses_to_a_stream_with_demand(kafka: &Kafka) {
    let topic = kafka.topic("failure");
    let (mut sender, outgoing) = send::<String>(&topic, small()).unwrap();
    sender.send_batch(["a", "b"].map(str::to_owned)).unwrap();
    sender.fail("the printer is out of paper");
    outgoing.finish(PATIENCE).unwrap();
    let (receiver, _incoming) = receive::<String>(&topic, small()).unwrap();
    let (publisher, mut distribution) = unicast(receiver);
    let mut stream = publisher.stream(1);
    let distributing = thread::spawn(move || distribution.run());
    let mut got: Vec<_> = block_on((&mut stream).collect());
    let Some(Err(StreamError::Failed(failure))) = got.pop() else { panic!("{got:?}") };
    assert_eq!(failure.to_string(), "the printer is out of paper");
    assert_eq!(got.into_iter().map(Result::unwrap).collect::<Vec<_>>(), ["a", "b"]);
    distributing.join().unwrap();
}

fn a_slow_receiver_pauses(kafka: &Kafka) {
    let topic = kafka.topic("slow");
    let (mut receiver, _incoming) = receive::<u64>(&topic, small()).unwrap();
    let (mut sender, outgoing) = send::<u64>(&topic, small()).unwrap();
    sender.send_batch(0..2000).unwrap();
    drop(sender);
    outgoing.finish(PATIENCE).unwrap();
    eventually("a full queue", || receiver.metrics().queued() == 16);
    thread::sleep(Duration::from_millis(500));
    assert_eq!(receiver.metrics().sent, 16);
    for number in 0..2000 {
        assert_eq!(receiver.recv(), Ok(number));
    }
    assert!(receiver.recv().is_err() && receiver.failure().is_none());
}

fn a_group_goes_on_behind_what_was_taken(kafka: &Kafka) {
    let topic = kafka.topic("group");
    let (mut sender, outgoing) = send::<u64>(&topic, small()).unwrap();
    sender.send_batch(0..100).unwrap();
    eventually("all in the topic", || outgoing.acknowledged() == 100);
    let (mut receiver, incoming) = receive::<u64>(&topic, small()).unwrap();
    for number in 0..50 {
        assert_eq!(receiver.recv(), Ok(number));
    }
    // what was put into the queue and not taken is not committed
    drop((receiver, incoming));
    // a receiver that goes is nothing to senders
    sender.send(100).unwrap();
    eventually("one more in the topic", || outgoing.acknowledged() == 101);
    assert!(!sender.is_closed());
    let (mut receiver, _incoming) = receive::<u64>(&topic, small()).unwrap();
    let first = receiver.recv().unwrap();
    assert!((35..=50).contains(&first), "{first}");
    for number in first + 1..101 {
        assert_eq!(receiver.recv(), Ok(number));
    }
    let (mut other, incoming) = receive::<u64>(&topic.group("other"), small()).unwrap();
    assert_eq!(other.recv(), Ok(0));
    drop(incoming);
    // a link that is given up is no end
    while other.recv().is_ok() {}
    assert!(other.failure().unwrap().to_string().contains("given up"));
}

fn one_sender_takes_the_place_of_another(kafka: &Kafka) {
    let topic = kafka.topic("places");
    let (mut first, outgoing) = send::<u64>(&topic, small()).unwrap();
    first.send(0).unwrap();
    eventually("it in the topic", || outgoing.acknowledged() == 1);
    let (mut second, its_outgoing) = send::<u64>(&topic, small()).unwrap();
    assert_eq!(its_outgoing.position(), 1);
    first.send(100).unwrap();
    let Err(RemoteError::Refused(reason)) = outgoing.finish(PATIENCE) else { panic!("it goes on") };
    assert!(reason.contains("another sender"), "{reason}");
    assert!(first.is_closed());
    second.send(1).unwrap();
    drop(second);
    its_outgoing.finish(PATIENCE).unwrap();
    let (receiver, _incoming) = receive::<u64>(&topic, small()).unwrap();
    assert_eq!(block_on(receiver.collect::<Vec<_>>()), [0, 1]);
}

fn connections_that_are_cut_lose_and_double_nothing(kafka: &Kafka) {
    let topic = kafka.topic("cut");
    let (mut sender, outgoing) = send::<u64>(&topic, small()).unwrap();
    let (mut receiver, _incoming) = receive::<u64>(&topic, small()).unwrap();
    let sending = thread::spawn(move || sender.send_batch(0..2000).unwrap());
    for number in 0..2000 {
        assert_eq!(receiver.recv(), Ok(number));
        if number % 300 == 150 {
            kafka.cut();
        }
    }
    assert!(receiver.recv().is_err() && receiver.failure().is_none());
    sending.join().unwrap();
    outgoing.finish(PATIENCE).unwrap();
}
