//! A system of two tables, one of each kind: how groups are committed, and that what was written is there.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::pin::pin;
use std::sync::mpsc;
use std::task::{Context, Poll, Waker};

use ::bytes::Bytes;

use super::bytes::{Malformed, Reader};
use super::disk::Step;
use super::faults::scratch;
use super::log::WRITE_BYTES_MAX;
use super::ordered::{Key, Ordered, OrderedRow};
use super::rows::{Keyed, Row, Rows};
use super::*;

/// A participant of whom all is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Participant {
    pub(super) id: u64,
    pub(super) friends: u64,
}

impl Keyed for Participant {
    type Key = u64;

    fn key(&self) -> &u64 {
        &self.id
    }
}

impl Row for Participant {
    const TABLE: u8 = 200;
    const NAME: &'static str = "participants";
    type Index = ();

    fn encode(&self, out: &mut Vec<u8>) {
        Self::encode_key(&self.id, out);
        out.extend_from_slice(&self.friends.to_le_bytes());
    }

    fn decode(entry: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = Self::decode_key(entry)?;
        Ok(Participant { id, friends: u64::from_le_bytes(entry.array()?) })
    }

    fn encode_key(id: &u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&id.to_le_bytes());
    }

    fn decode_key(entry: &mut Reader<'_>) -> Result<u64, Malformed> {
        entry.array().map(u64::from_le_bytes)
    }
}

/// A post in the feed of a reader, the newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Post {
    pub(super) reader: u64,
    pub(super) at: u64,
    pub(super) text: Bytes,
}

/// Reader, and the time counted downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FeedKey(pub(crate) u64, pub(crate) u64);

impl Key for FeedKey {
    fn write(&self, to: &mut Vec<u8>) {
        to.extend_from_slice(&self.0.to_be_bytes());
        to.extend_from_slice(&self.1.to_be_bytes());
    }

    fn read(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(FeedKey(u64::from_be_bytes(bytes.array()?), u64::from_be_bytes(bytes.array()?)))
    }

    fn locality(&self) -> u64 {
        !self.1
    }
}

impl OrderedRow for Post {
    const TABLE: u8 = 201;
    const NAME: &'static str = "feeds";
    type Key = FeedKey;

    fn key(&self) -> FeedKey {
        FeedKey(self.reader, !self.at)
    }

    fn value(&self) -> &[u8] {
        &self.text
    }

    fn of(FeedKey(reader, at): FeedKey, text: Bytes) -> Self {
        Post { reader, at: !at, text }
    }
}

pub(super) struct Feeds {
    pub(super) engine: Engine,
    pub(super) participants: Arc<Rows<Participant>>,
    pub(super) posts: Arc<Ordered<Post>>,
}

pub(super) fn tables(participants: &Arc<Rows<Participant>>, posts: &Arc<Ordered<Post>>) -> Tables {
    Tables::default().memory(participants).ordered(posts)
}

const OPTIONS: Options = Options {
    durability: Durability::Synced,
    waiting_max: 100,
    is_refusing: false,
    table_bytes: usize::MAX,
    log_bytes_min: u64::MAX,
};

impl Feeds {
    pub(super) fn open(
        dir: &Path,
        options: Options,
        watch: Option<Arc<dyn Watch>>,
    ) -> Result<Self, StoreError> {
        let (participants, posts) = (Arc::default(), Arc::default());
        let options = Options { table_bytes: options.table_bytes.min(1 << 20), ..options };
        let engine = Engine::open(dir, options, tables(&participants, &posts), watch)?;
        Ok(Feeds { engine, participants, posts })
    }

    fn put(&self, id: u64) -> Answer<'_, u64> {
        let put = move |out: &mut Vec<u8>| {
            Rows::put(&Participant { id, friends: id * 7 }, out);
            1
        };
        self.engine.submit(put, |rows| rows)
    }

    fn has(&self, id: u64) -> bool {
        self.participants.get(&id, |_| ()).is_some()
    }

    fn all_posts(&self) -> Vec<Post> {
        self.posts.view().rows(Bound::Unbounded, None).map(|post| post.unwrap()).collect()
    }
}

/// A disk whose syncs of logs wait for the test's word, which is also their outcome.
struct Gated {
    entered: Mutex<mpsc::Sender<()>>,
    gate: Mutex<mpsc::Receiver<io::Result<()>>>,
}

impl Watch for Gated {
    fn before(&self, step: Step<'_>) -> io::Result<()> {
        let Step::Sync(name) = step else { return Ok(()) };
        if !name.starts_with("log-") {
            return Ok(());
        }
        let _ = self.entered.lock().send(());
        self.gate.lock().recv().unwrap_or(Ok(()))
    }

    fn after(&self, _: Step<'_>) -> io::Result<()> {
        Ok(())
    }
}

struct Rig {
    feeds: Feeds,
    /// Hears when a sync begins.
    entered: mpsc::Receiver<()>,
    gate: mpsc::Sender<io::Result<()>>,
    _dir: tempfile::TempDir,
}

fn rig(waiting_max: usize) -> Rig {
    let (sender, entered) = mpsc::channel();
    let (gate, receiver) = mpsc::channel();
    let gated = Gated { entered: Mutex::new(sender), gate: Mutex::new(receiver) };
    let dir = scratch();
    let feeds = Feeds::open(dir.path(), Options { waiting_max, ..OPTIONS }, Some(Arc::new(gated))).unwrap();
    Rig { feeds, entered, gate, _dir: dir }
}

pub(super) fn wait<T>(answer: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(answer)
}

#[test]
fn what_gathers_during_a_sync_shares_the_next() {
    let Rig { feeds, entered, gate, _dir } = rig(100);
    let first = feeds.put(0);
    entered.recv().unwrap();
    let rest: Vec<_> = (1..=10).map(|id| feeds.put(id)).collect();
    gate.send(Ok(())).unwrap();
    wait(first).unwrap();
    entered.recv().unwrap();
    gate.send(Ok(())).unwrap();
    rest.into_iter().for_each(|answer| assert_eq!(wait(answer).unwrap(), 1));
    let metrics = feeds.engine.metrics();
    assert_eq!((metrics.commits, metrics.writes, metrics.group_writes_max), (2, 11, 10));
    drop(gate);
}

#[test]
fn nothing_is_read_or_acknowledged_before_it_is_durable() {
    let Rig { feeds, entered, gate, _dir } = rig(100);
    let mut answer = pin!(feeds.put(1));
    entered.recv().unwrap();
    assert!(answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    assert!(!feeds.has(1));
    gate.send(Ok(())).unwrap();
    wait(answer).unwrap();
    assert!(feeds.has(1));
    drop(gate);
}

#[test]
fn a_full_queue_makes_writers_wait_and_is_counted() {
    let Rig { feeds, entered, gate, _dir } = rig(3);
    let mut answers = vec![feeds.put(0)];
    entered.recv().unwrap();
    answers.extend((1..=2).map(|id| feeds.put(id)));
    assert_eq!(feeds.engine.metrics().queue_depth, 3);
    let mut late = Box::pin(feeds.put(3));
    assert!(matches!(late.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    feeds.engine.submit_if_room(|out| {
        Rows::put(&Participant { id: 4, friends: 0 }, out);
        1
    });
    let metrics = feeds.engine.metrics();
    assert_eq!((metrics.queue_waits, metrics.queue_depth, metrics.queue_depth_max), (1, 3, 3));
    drop(gate); // syncs go through from now on
    answers.into_iter().for_each(|answer| assert_eq!(wait(answer).unwrap(), 1));
    wait(late).unwrap();
    assert!(feeds.has(3));
    assert!(!feeds.has(4), "what nobody waits for is left out when there is no room");
}

#[test]
fn a_failed_sync_is_not_acknowledged_and_stops_the_store() {
    let Rig { feeds, entered, gate, _dir } = rig(100);
    gate.send(Ok(())).unwrap();
    wait(feeds.put(0)).unwrap();
    entered.recv().unwrap();
    let failing = feeds.put(1);
    entered.recv().unwrap();
    let queued_behind = feeds.put(2);
    gate.send(Err(io::Error::other("no space left"))).unwrap();
    let error = wait(failing).unwrap_err();
    assert!(matches!(&error, StoreError::Write { reason } if reason.contains("no space left")), "{error}");
    assert!(matches!(wait(queued_behind), Err(StoreError::Stopped { .. })));

    // The disk would work again: the store still refuses, since nobody knows what was lost.
    drop(gate);
    let error = wait(feeds.put(3)).unwrap_err();
    assert!(matches!(error, StoreError::Stopped { .. }), "{error}");
    let metrics = feeds.engine.metrics();
    assert!(metrics.stopped && metrics.failed == 2, "{metrics:?}");
    assert_eq!([0, 1, 2, 3].map(|id| feeds.has(id)), [true, false, false, false]);
}

#[test]
fn what_is_queued_at_the_end_is_still_committed() {
    let dir = scratch();
    let feeds = Feeds::open(dir.path(), OPTIONS, None).unwrap();
    (0..5).for_each(|id| drop(feeds.put(id))); // nobody waits for them
    drop(feeds);
    assert_eq!(Feeds::open(dir.path(), OPTIONS, None).unwrap().participants.count(), 5);
}

#[test]
fn a_write_that_is_too_large_is_refused() {
    let dir = scratch();
    let feeds = Feeds::open(dir.path(), OPTIONS, None).unwrap();
    let large = |out: &mut Vec<u8>| {
        out.resize(out.len() + WRITE_BYTES_MAX + 1, 0);
        1
    };
    let error = wait(feeds.engine.submit(large, |_| ())).unwrap_err();
    assert!(matches!(error, StoreError::Invalid { .. }), "{error}");
    assert_eq!(wait(feeds.put(1)).unwrap(), 1, "and what comes after it is taken");
}

/// Each write puts a row of each kind, and they are there together whatever was flushed in the meantime.
#[test]
fn both_kinds_of_tables_are_there_again_however_often_they_are_flushed() {
    let dir = scratch();
    // runs come more often than snapshots, so logs that are in runs are read for what is in memory only
    let options = Options { table_bytes: 4000, log_bytes_min: 9000, ..OPTIONS };
    let (mut participants, mut posts) = (BTreeMap::new(), BTreeMap::new());
    for life in 0..6u64 {
        let feeds = Feeds::open(dir.path(), options, None).unwrap();
        for number in life * 200..(life + 1) * 200 {
            let participant = Participant { id: number % 150, friends: number };
            let post = Post { reader: number % 3, at: number % 400, text: format!("post {number}").into() };
            participants.insert(participant.id, participant);
            posts.insert(post.key(), post.clone());
            let gone = (number + 75) % 150;
            let is_removal = number % 5 == 0 && participants.remove(&gone).is_some();
            let write = move |out: &mut Vec<u8>| {
                Rows::put(&participant, out);
                Ordered::put(&post, out);
                if number % 5 == 0 {
                    Rows::<Participant>::remove(&gone, out);
                }
                if number % 5 == 0 { 3 } else { 2 }
            };
            assert_eq!(wait(feeds.engine.submit(write, |rows| rows)).unwrap(), 2 + u64::from(is_removal));
        }
        let check = |feeds: &Feeds| {
            assert_eq!(feeds.participants.count() as usize, participants.len());
            for (id, participant) in &participants {
                assert_eq!(feeds.participants.get(id, |row| *row), Some(*participant));
            }
            assert_eq!(feeds.all_posts(), posts.values().cloned().collect::<Vec<_>>());
            let count = super::ordered::count::distinct(&feeds.posts.view()).unwrap();
            assert_eq!(count as usize, posts.len());
        };
        check(&feeds);
        drop(feeds);
        check(&Feeds::open(dir.path(), options, None).unwrap());
    }
    let names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    let some = |kind: &str| names.iter().filter(|name| name.to_string_lossy().starts_with(kind)).count();
    assert!(some("run-") > 2 && some("snapshot-") == 1, "{names:?}");
}
