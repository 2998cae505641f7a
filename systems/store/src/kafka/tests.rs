//! Against a simulated cluster, which the client library brings along: brokers that can be slow, wrong or gone.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;

use parking_lot::Mutex;
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};

use super::*;
use crate::events::EventLog as _;
use crate::messages::{Memory, MessageId, Place};

/// Longest wait for what must come.
const PATIENCE: Duration = Duration::from_secs(60);
const PARTITIONS: i32 = 3;

type Cluster = MockCluster<'static, DefaultProducerContext>;

fn cluster() -> Cluster {
    let cluster = MockCluster::new(1).unwrap();
    cluster.create_topic("messages", PARTITIONS, 1).unwrap();
    cluster
}

fn options(cluster: &Cluster) -> Options {
    let brokers = cluster.bootstrap_servers().split(',').map(str::to_owned).collect();
    Options { brokers, topic: "messages".into(), group: "stores".into(), ..Options::default() }
}

fn open(options: Options, behind: MessageStore) -> Arc<Buffer> {
    Buffer::on(Topic::of_partitions(PARTITIONS), options, behind).unwrap()
}

fn wait<T>(answer: Answer<'_, T>) -> Result<T, StoreError> {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(answer)
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn caught_up(buffer: &Buffer) {
    until("the store behind lacks some", || wait(buffer.behind()).is_ok_and(|lacking| lacking == 0));
}

fn message(number: u64) -> Message {
    Message {
        user: number % 7,
        time_ms: number,
        kind: *b"ABC",
        id: MessageId::NONE,
        payload: number.to_string().into(),
    }
}

fn add_all(buffer: &Buffer, numbers: std::ops::Range<u64>) {
    let answers: Vec<_> = numbers.map(|number| buffer.add(message(number))).collect();
    answers.into_iter().for_each(|answer| wait(answer).unwrap());
}

/// A store that refuses so many writes, and then keeps what it is given.
struct Stubborn {
    refuses: AtomicUsize,
    kept: Mutex<BTreeMap<(u64, Place), Vec<Message>>>,
    /// Whether it goes by times of writing: those that were taken, and those that messages came with.
    clock: Option<Mutex<Times>>,
}

#[derive(Default)]
struct Times {
    taken: i64,
    past: Vec<i64>,
    came: BTreeMap<(u64, Place), Vec<i64>>,
}

impl Stubborn {
    fn new(refuses: usize) -> Arc<Self> {
        Arc::new(Stubborn { refuses: AtomicUsize::new(refuses), kept: Mutex::default(), clock: None })
    }
}

impl Messages for Stubborn {
    fn add(&self, message: Message) -> Answer<'_, ()> {
        let less = |left: usize| left.checked_sub(1);
        if self.refuses.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return Answer::ready(Err(StoreError::Busy { what: "it is stubborn" }));
        }
        self.kept.lock().entry((message.user, message.place())).or_default().push(message);
        Answer::ready(Ok(()))
    }

    fn time_of_write(&self) -> Option<Answer<'_, i64>> {
        let clock = self.clock.as_ref()?;
        Some(Answer::boxed(async move {
            let mut times = clock.lock();
            times.taken += 1;
            Ok(times.taken)
        }))
    }

    fn can_be_time(&self, at_us: i64) -> bool {
        (1..100).contains(&at_us)
    }

    fn add_as_of(&self, message: Message, at_us: i64) -> Answer<'_, ()> {
        let key = (message.user, message.place());
        self.clock.as_ref().unwrap().lock().came.entry(key).or_default().push(at_us);
        self.add(message)
    }

    fn past(&self, at_us: i64) -> Answer<'_, ()> {
        self.clock.as_ref().unwrap().lock().past.push(at_us);
        Answer::ready(Ok(()))
    }

    fn count(&self) -> Answer<'_, u64> {
        Answer::ready(Ok(self.kept.lock().len() as u64))
    }

    fn of_user(&self, _: Query) -> Answer<'_, Page> {
        Answer::ready(Ok(Page::default()))
    }

    fn metrics(&self) -> StoreMetrics {
        StoreMetrics::default()
    }
}

fn own(buffer: &Buffer, name: &str) -> u64 {
    buffer.metrics().own.iter().find(|metric| metric.name == name).unwrap().value
}

#[test]
fn what_kafka_has_is_stored_and_the_next_buffer_goes_on_behind_it() {
    let cluster = cluster();
    let behind = Memory::new(1_000_000);
    let buffer = open(options(&cluster), behind.clone());
    add_all(&buffer, 0..1000);
    caught_up(&buffer);
    assert_eq!((wait(buffer.count()).unwrap(), own(&buffer, "kafka_stored")), (1000, 1000));
    let page = Query { user: 3, from_ms: 0, to_ms: u64::MAX, after: None, limit: 2 };
    let page = wait(buffer.of_user(page)).unwrap();
    assert_eq!(page.messages, [message(3), message(10)]);
    let metrics = buffer.metrics();
    assert_eq!((metrics.writes, metrics.failed, metrics.refused, metrics.queue_depth), (1000, 0, 0, 0));
    drop(buffer);

    let buffer = open(options(&cluster), behind);
    add_all(&buffer, 1000..1010);
    caught_up(&buffer);
    assert_eq!((wait(buffer.count()).unwrap(), own(&buffer, "kafka_stored")), (1010, 10));
}

#[test]
fn what_the_store_behind_did_not_take_is_stored_by_the_next_buffer() {
    let cluster = cluster();
    let buffer = open(options(&cluster), Stubborn::new(usize::MAX));
    add_all(&buffer, 0..300);
    assert_eq!(wait(buffer.behind()).unwrap(), 300);
    until("nothing was tried again", || own(&buffer, "kafka_store_retries") > 0);
    assert_eq!((wait(buffer.count()).unwrap(), own(&buffer, "kafka_stored")), (0, 0));
    drop(buffer);

    let behind = Stubborn::new(200);
    let buffer = open(options(&cluster), behind.clone());
    caught_up(&buffer);
    let kept = behind.kept.lock();
    assert_eq!((kept.len(), own(&buffer, "kafka_stored")), (300, 300));
    assert!(kept.values().flatten().all(|kept| *kept == message(kept.time_ms)));
    assert_eq!(own(&buffer, "kafka_store_retries"), 200);
}

#[test]
fn of_several_with_one_key_the_last_stays() {
    let cluster = cluster();
    // the first are tried again after the last was taken
    let behind = Stubborn::new(10);
    let buffer = open(options(&cluster), behind.clone());
    let again = |number: u8| Message { payload: vec![number].into(), ..message(5) };
    let answers: Vec<_> = (0..200).map(|number| buffer.add(again(number))).collect();
    answers.into_iter().for_each(|answer| wait(answer).unwrap());
    caught_up(&buffer);
    let kept = behind.kept.lock();
    let of_key = kept.get(&(5, message(5).place())).unwrap();
    assert_eq!((kept.len(), of_key.last()), (1, Some(&again(199))));
    assert!(of_key.is_sorted_by_key(|message| message.payload[0]), "{of_key:?}");
}

#[test]
fn messages_that_are_alike_are_as_many_as_were_sent_also_where_they_are_stored_again() {
    let cluster = cluster();
    let behind = Memory::new(1_000_000);
    let buffer = open(options(&cluster), behind.clone());
    let alike = || Message { id: MessageId::unique(), ..message(5) };
    let answers: Vec<_> = (0..200).map(|_| buffer.add(alike())).collect();
    answers.into_iter().for_each(|answer| wait(answer).unwrap());
    caught_up(&buffer);
    assert_eq!(wait(behind.count()).unwrap(), 200);
    // from the begin, as after a crash before an offset was committed
    let again = open(Options { group: "again".into(), ..options(&cluster) }, behind.clone());
    caught_up(&again);
    assert_eq!(wait(behind.count()).unwrap(), 200);
}

#[test]
fn more_than_may_wait_is_refused_at_once() {
    let cluster = cluster();
    let options = Options { waiting_max: 8, ..options(&cluster) };
    let buffer = open(options, Memory::new(1_000_000));
    add_all(&buffer, 0..1);
    cluster.broker_round_trip_time(1, Duration::from_secs(1)).unwrap();
    let answers: Vec<_> = (0..50).map(|number| buffer.add(message(number))).collect();
    let outcomes: Vec<_> = answers.into_iter().map(wait).collect();
    let (taken, refused): (Vec<_>, Vec<_>) = outcomes.into_iter().partition(Result::is_ok);
    assert_eq!((taken.len(), refused.len()), (8, 42));
    assert!(refused.iter().all(|refused| matches!(refused, Err(StoreError::Busy { .. }))), "{refused:?}");
    let metrics = buffer.metrics();
    assert_eq!((metrics.refused, metrics.failed, metrics.queue_depth), (42, 0, 0));
    cluster.broker_round_trip_time(1, Duration::ZERO).unwrap();
    caught_up(&buffer);
    assert_eq!(wait(buffer.count()).unwrap(), 8, "none of the refused was kept");
}

#[test]
fn a_store_that_lacks_too_much_has_more_refused() {
    let cluster = cluster();
    let behind = Stubborn::new(usize::MAX);
    let buffer = open(Options { behind_max: 20, ..options(&cluster) }, behind.clone());
    add_all(&buffer, 0..20);
    assert_eq!(wait(buffer.behind()).unwrap(), 20);
    let refused = wait(buffer.add(message(20))).unwrap_err();
    assert!(matches!(refused, StoreError::Busy { what } if what.contains("behind")), "{refused}");
    behind.refuses.store(0, Ordering::Relaxed);
    caught_up(&buffer);
    wait(buffer.add(message(20))).unwrap();
}

#[test]
fn what_kafka_does_not_take_in_time_is_not_acknowledged() {
    let cluster = cluster();
    let buffer =
        open(Options { timeout: Duration::from_secs(1), ..options(&cluster) }, Memory::new(1_000_000));
    add_all(&buffer, 0..10);
    caught_up(&buffer);
    cluster.broker_down(1).unwrap();
    let error = wait(buffer.add(message(10))).unwrap_err();
    assert!(matches!(error, StoreError::NoAnswer { .. }), "{error}");
    assert_eq!(buffer.metrics().failed, 1);
    assert_eq!(wait(buffer.count()).unwrap(), 10, "the store behind answers all the same");
    cluster.broker_up(1).unwrap();
    until("the broker is back", || wait(buffer.add(message(11))).is_ok());
    caught_up(&buffer);
    assert!(wait(buffer.count()).unwrap() >= 11);
}

#[test]
fn an_answer_that_may_be_tried_again_is_and_a_producer_that_cannot_go_on_is_replaced() {
    let cluster = cluster();
    let buffer = open(options(&cluster), Memory::new(1_000_000));
    let again = RDKafkaRespErr::RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS;
    cluster.request_errors(RDKafkaApiKey::Produce, &[again, again]);
    add_all(&buffer, 0..10);
    assert_eq!((buffer.metrics().failed, own(&buffer, "kafka_producers")), (0, 0));

    let fatal = RDKafkaRespErr::RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER;
    cluster.request_errors(RDKafkaApiKey::Produce, &[fatal]);
    let error = wait(buffer.add(message(10))).unwrap_err();
    assert!(matches!(error, StoreError::NoAnswer { .. }), "{error}");
    until("another producer", || own(&buffer, "kafka_producers") == 1);
    add_all(&buffer, 11..20);
    caught_up(&buffer);
    assert!(wait(buffer.count()).unwrap() >= 19);
}

#[test]
fn brokers_that_are_not_there_are_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = taken.local_addr().unwrap().to_string();
    drop(taken);
    let options =
        Options { brokers: vec![broker.clone()], timeout: Duration::from_secs(1), ..Options::default() };
    let Err(error) = Buffer::open(options, Memory::new(1)) else { panic!("nobody listens there") };
    assert!(
        matches!(error, StoreError::Unreachable { .. }) && error.to_string().contains(&broker),
        "{error}"
    );
}

/// Who stores a message late, or once more after others have stored newer ones, does so as of when it was taken.
#[test]
fn a_message_is_stored_as_of_when_it_was_taken_however_often() {
    let cluster = cluster();
    let behind =
        Arc::new(Stubborn { clock: Some(Mutex::default()), ..Arc::into_inner(Stubborn::new(5)).unwrap() });
    let buffer = open(options(&cluster), behind.clone());
    let same = |payload: &str| Message { payload: payload.to_owned().into(), ..message(1) };
    for payload in ["first", "second", "third"] {
        wait(buffer.add(same(payload))).unwrap();
        caught_up(&buffer);
    }
    drop(buffer);
    // another group knows nothing of the first and stores the latest again, maybe those before, too
    let again = open(Options { group: "others".into(), ..options(&cluster) }, behind.clone());
    let key = (message(1).user, message(1).place());
    let times = behind.clock.as_ref().unwrap();
    let latest =
        || times.lock().came.get(&key).map_or(0, |came| came.iter().filter(|at_us| **at_us == 3).count());
    until("the latest was not stored again", || latest() >= 2);
    drop(again);
    let kept = behind.kept.lock();
    let times = times.lock();
    assert_eq!(times.past, [1, 2, 3], "acknowledged when that was past");
    let mut came = times.came[&key].clone();
    came.sort_unstable();
    came.dedup();
    assert_eq!(came, [1, 2, 3]);
    assert_eq!(kept[&key].last().unwrap().payload, "third");
}

/// Times mean nothing to a store that goes by what comes last, and a record of somebody else may say anything.
#[test]
fn the_last_stays_where_times_mean_nothing_and_a_time_that_nobody_gave_stops_nothing() {
    let cluster = cluster();
    let timed = || {
        Arc::new(Stubborn {
            clock: Some(Mutex::default()),
            ..Arc::into_inner(Stubborn::new(usize::MAX)).unwrap()
        })
    };
    let never = timed();
    let buffer = open(options(&cluster), never.clone());
    let same = |payload: &str| Message { payload: payload.to_owned().into(), ..message(1) };
    for payload in ["first", "second"] {
        wait(buffer.add(same(payload))).unwrap();
    }
    for wrong in [i64::MIN, -1, i64::MAX] {
        let record = buffer.producing.add(&same("wrong"), Some(wrong)).unwrap();
        wait(Answer::committing(record, |_| ())).unwrap();
    }
    drop(buffer);
    let kept = timed();
    kept.refuses.store(0, Ordering::Relaxed);
    let timely = open(Options { group: "timely".into(), ..options(&cluster) }, kept.clone());
    until("not all was looked at", || own(&timely, "kafka_unreadable") == 3);
    caught_up(&timely);
    let payloads = |kept: &Stubborn| kept.kept.lock().values().flatten().last().unwrap().payload.clone();
    assert_eq!(payloads(&kept), "second");
    drop(timely);
    let untimely = Memory::new(1_000_000);
    let buffer = open(Options { group: "untimely".into(), ..options(&cluster) }, untimely);
    caught_up(&buffer);
    let page = Query { user: 1, from_ms: 0, to_ms: u64::MAX, after: None, limit: 2 };
    assert_eq!(wait(buffer.of_user(page)).unwrap().messages, [same("wrong")], "the last, whatever it says");
}

fn lines(options: &Options, from: &Positions) -> Result<Vec<String>, StoreError> {
    let mut lines = Vec::new();
    read_events(options, from, |line| {
        lines.push(String::from_utf8_lossy(line).into_owned());
        true
    })?;
    lines.sort();
    Ok(lines)
}

#[test]
fn events_are_read_from_where_the_topic_ended_and_a_topic_that_is_not_there_is_told() {
    let cluster = cluster();
    let nowhere = Options { topic: "nowhere".into(), ..options(&cluster) };
    assert_eq!(ends_of_events(&nowhere).unwrap(), Positions::default());
    let error = lines(&nowhere, &Positions::default()).unwrap_err();
    assert!(matches!(error, StoreError::Missing { .. }) && error.to_string().contains("nowhere"), "{error}");

    let options = options(&cluster);
    let tell = |events: &[&str]| {
        let mut log = Events::open(&options).unwrap();
        events.iter().for_each(|event| assert!(log.append(event.as_bytes())));
        assert_eq!(log.end(), 0);
    };
    tell(&["old", "#dropped 7"]);
    let ends = ends_of_events(&options).unwrap();
    assert_eq!(lines(&options, &ends).unwrap(), <[String; 0]>::default());
    tell(&["new", "newer"]);
    assert_eq!(lines(&options, &ends).unwrap(), ["new", "newer"]);
    assert_eq!(lines(&options, &Positions::default()).unwrap().len(), 4);
}

#[test]
fn events_that_kafka_does_not_take_until_the_end_are_counted() {
    let cluster = cluster();
    let mut log = Events::open(&options(&cluster)).unwrap();
    log.append(b"one");
    assert_eq!(log.end(), 0);
    cluster.broker_down(1).unwrap();
    log.append(b"two");
    log.append(b"three");
    log.missing(5);
    assert_eq!((log.end(), log.lost()), (7, 2));
}
