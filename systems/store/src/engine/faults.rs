//! What becomes of a store whose files fail it, are changed, cut off, exchanged or taken away: either everything
//! acknowledged is there, or it is said which file is wrong. Never is anything missing without a word.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ::bytes::Bytes;

use super::disk::{Disk, Watch};
use super::manifest::{LogLine, Manifest};
use super::ordered::{Ordered, OrderedRow, count};
use super::rows::Rows;
use super::table::OrderedTable;
use super::tests::{Feeds, Participant, Post, tables, wait};
use super::{Options, describe};
use crate::durability::Durability;
use crate::embedded::Embedded;
use crate::error::StoreError;
use crate::messages::{Tree, TreeOptions, TreeReader};

/// So small that there are a dozen runs, a merged one, and snapshots after a few groups.
pub(super) const OPTIONS: Options = Options {
    durability: Durability::Synced,
    waiting_max: 64,
    is_refusing: true,
    table_bytes: 400,
    log_bytes_min: 900,
};
/// Everything stays in one log.
pub(super) const ONE_LOG: Options = Options { table_bytes: usize::MAX, log_bytes_min: u64::MAX, ..OPTIONS };
pub(super) const GROUP: u64 = 5;
pub(super) const GROUPS: u64 = 11;
const KEYS: u64 = 40;

/// A directory in memory where there is such a place: syncs cost nothing there.
pub(super) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// What the `number`th write puts, and whom it removes. Its keys come again after [`KEYS`] others.
fn rows(number: u64) -> (Participant, Post, Option<u64>) {
    let key = number % KEYS;
    let text = format!("{number} {}", "x".repeat((number % 60) as usize)).into();
    let gone = (number >= KEYS && number.is_multiple_of(5)).then_some((key + 7) % KEYS);
    (Participant { id: key, friends: number }, Post { reader: key % 3, at: key, text }, gone)
}

fn write(number: u64) -> impl Fn(&mut Vec<u8>) -> u32 {
    let (participant, post, gone) = rows(number);
    move |out| {
        Rows::put(&participant, out);
        Ordered::put(&post, out);
        gone.iter().for_each(|gone| Rows::<Participant>::remove(gone, out));
        2 + u32::from(gone.is_some())
    }
}

/// All that is in the tables.
#[derive(Debug, PartialEq, Eq, Default)]
pub(super) struct State {
    participants: BTreeMap<u64, u64>,
    posts: BTreeMap<<Post as OrderedRow>::Key, Bytes>,
}

impl State {
    /// What there is after so many writes.
    pub(super) fn after(writes: u64) -> Self {
        let mut state = State::default();
        for (participant, post, gone) in (0..writes).map(rows) {
            state.participants.insert(participant.id, participant.friends);
            state.posts.insert(post.key(), post.text);
            state.participants.retain(|id, _| Some(*id) != gone);
        }
        state
    }

    pub(super) fn of(participants: &Rows<Participant>, posts: &Ordered<Post>) -> io::Result<Self> {
        let mut state = State::default();
        for id in 0..KEYS {
            state.participants.extend(participants.get(&id, |row| (id, row.friends)));
        }
        assert_eq!(participants.count() as usize, state.participants.len());
        for post in posts.view().rows::<Post>(Bound::Unbounded, None) {
            let post = post?;
            assert_eq!(state.posts.insert(post.key(), post.text), None, "found twice");
        }
        assert_eq!(count::distinct(&posts.view())? as usize, state.posts.len());
        Ok(state)
    }

    pub(super) fn rows(&self) -> u64 {
        (self.participants.len() + self.posts.len()) as u64
    }
}

/// How many writes were sent, and how many of them acknowledged.
#[derive(Default)]
pub(super) struct History {
    /// What is done to the store.
    pub(super) what: String,
    pub(super) sent: u64,
    pub(super) acknowledged: Arc<AtomicU64>,
}

impl History {
    /// Sends some writes at once; whether all of them were acknowledged. After one that was not, none may be.
    pub(super) fn send(&mut self, feeds: &Feeds, writes: u64) -> bool {
        let numbers = self.sent..self.sent + writes;
        let answers: Vec<_> =
            numbers.clone().map(|number| feeds.engine.submit(write(number), |_| ())).collect();
        self.sent += writes;
        for (number, answer) in numbers.zip(answers) {
            if wait(answer).is_ok() {
                let before = self.acknowledged.fetch_add(1, Ordering::Relaxed);
                assert_eq!(before, number, "{}: acknowledged after one that was not", self.what);
            }
        }
        self.sent == self.acknowledged.load(Ordering::Relaxed)
    }

    /// Whether what was found is what some of the writes made, in their order, and at least those acknowledged. The next
    /// ones go on there.
    pub(super) fn check(&mut self, found: &State) {
        let acknowledged = self.acknowledged.load(Ordering::Relaxed);
        let writes = (acknowledged..=self.sent).find(|writes| State::after(*writes) == *found);
        let writes = writes.unwrap_or_else(|| {
            panic!(
                "{}: {acknowledged} of {} writes were acknowledged; there is {found:?}",
                self.what, self.sent
            )
        });
        self.sent = writes;
        self.acknowledged.store(writes, Ordering::Relaxed);
    }
}

/// Waits until there is nothing to do in the background, or the store has stopped.
fn settle(feeds: &Feeds) {
    let shared = &feeds.engine.shared;
    let is_busy = || !shared.closed_logs.lock().is_empty() || feeds.posts.is_mergeable();
    while shared.failure.get().is_none() && is_busy() {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

/// A life of a store: groups are sent until one is refused. It is not closed yet.
pub(super) fn live(
    dir: &Path,
    options: Options,
    watch: Option<Arc<dyn Watch>>,
    groups: u64,
    history: &mut History,
) -> Result<Feeds, StoreError> {
    let feeds = Feeds::open(dir, options, watch)?;
    history.check(&State::of(&feeds.participants, &feeds.posts).map_err(|error| describe(dir, &error))?);
    for _ in 0..groups {
        if !history.send(&feeds, GROUP) {
            break;
        }
        settle(&feeds);
    }
    Ok(feeds)
}

/// What is there; read without changing anything.
pub(super) fn read(dir: &Path, durability: Durability) -> Result<State, StoreError> {
    let (participants, posts) = (Arc::default(), Arc::default());
    let _lock = super::read(dir, &tables(&participants, &posts), durability)?;
    State::of(&participants, &posts).map_err(|error| describe(dir, &error))
}

/// The files of a store.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

pub(super) fn files(dir: &Path) -> Files {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

pub(super) fn put(files: &Files, dir: &Path) {
    for name in fs::read_dir(dir).unwrap() {
        fs::remove_file(name.unwrap().path()).unwrap();
    }
    files.iter().for_each(|(name, bytes)| fs::write(dir.join(name), bytes).unwrap());
}

/// A store with runs, one of them merged, a snapshot, and several writes in its log: as it is when it has been closed, and when its
/// process was killed.
pub(super) struct Image {
    pub(super) closed: Files,
    pub(super) killed: Files,
    pub(super) found: State,
}

impl Image {
    pub(super) fn make(groups: u64, table_bytes: usize) -> Self {
        let dir = scratch();
        let mut history = History::default();
        drop(live(dir.path(), Options { table_bytes, ..OPTIONS }, None, groups, &mut history).unwrap());
        let feeds = live(dir.path(), ONE_LOG, None, 0, &mut history).unwrap();
        settle(&feeds);
        (0..3).for_each(|_| assert!(history.send(&feeds, GROUP)));
        let killed = files(dir.path());
        drop(feeds);
        let closed = files(dir.path());
        let some = |kind| closed.keys().filter(|name| name.starts_with(kind)).count();
        assert!(some("run-") > 1 && some("snapshot-") == 1, "{:?}", closed.keys());
        Image { closed, killed, found: read(dir.path(), Durability::Synced).unwrap() }
    }

    /// Whether these files hold everything; if not, that must be said of one of `suspects`.
    pub(super) fn is_whole(&self, dir: &Path, what: &str, suspects: &[&str]) -> bool {
        match read(dir, Durability::Synced) {
            Ok(found) => {
                assert_eq!(found, self.found, "{what}: missing without a word");
                true
            }
            Err(error) => {
                let said = error.to_string();
                assert!(suspects.iter().any(|name| said.contains(name)), "{what}: {said}");
                false
            }
        }
    }
}

/// Each byte of each file of a small store, which is not small enough to have no merged run.
#[test]
fn no_changed_byte_passes() {
    let image = Image::make(GROUPS, OPTIONS.table_bytes);
    let dir = scratch();
    for original in [&image.closed, &image.killed] {
        put(original, dir.path());
        assert!(image.is_whole(dir.path(), "unchanged", &[]));
        for (name, bytes) in original {
            let path = dir.path().join(name);
            for at in 0..bytes.len() {
                let mut wrong = bytes.clone();
                wrong[at] ^= 1 << (at % 8);
                fs::write(&path, wrong).unwrap();
                let what = format!("byte {at} of {name}");
                assert!(!image.is_whole(dir.path(), &what, &[name]), "{what} is of no use");
            }
            fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn no_changed_bytes_of_a_larger_store_pass() {
    let image = Image::make(400, 8000);
    let dir = scratch();
    put(&image.closed, dir.path());
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let names: Vec<&String> = image.closed.keys().filter(|name| *name != "lock").collect();
    for _ in 0..1000 {
        let name = names[random.usize(..names.len())];
        let bytes = &image.closed[name];
        let mut wrong = bytes.clone();
        let begin = random.usize(..bytes.len());
        let longest = if random.bool() { 1 } else { 600 };
        let end = bytes.len().min(begin + random.usize(1..=longest));
        wrong[begin..end].iter_mut().for_each(|byte| *byte = random.u8(..));
        fs::write(dir.path().join(name), &wrong).unwrap();
        image.is_whole(dir.path(), &format!("{begin}..{end} of {name}, seed {seed}"), &[name]);
        fs::write(dir.path().join(name), bytes).unwrap();
    }
}

#[test]
fn no_file_is_missed_without_a_word() {
    let image = Image::make(GROUPS, OPTIONS.table_bytes);
    for original in [&image.closed, &image.killed] {
        for name in original.keys().filter(|name| *name != "lock") {
            let dir = scratch();
            put(original, dir.path());
            fs::remove_file(dir.path().join(name)).unwrap();
            let left = files(dir.path());
            assert!(!image.is_whole(dir.path(), &format!("without {name}"), &[name]));
            let error = Feeds::open(dir.path(), OPTIONS, None).err().unwrap();
            assert!(error.to_string().contains(name.as_str()), "{error}");
            assert_eq!(files(dir.path()), left, "a start that is refused changes nothing");
        }
    }
}

#[test]
fn no_cut_passes() {
    let image = Image::make(GROUPS, OPTIONS.table_bytes);
    let dir = scratch();
    for original in [&image.closed, &image.killed] {
        put(original, dir.path());
        for (name, bytes) in original {
            let path = dir.path().join(name);
            for length in 0..bytes.len() {
                fs::write(&path, &bytes[..length]).unwrap();
                let what = format!("{name} cut to {length}");
                assert!(!image.is_whole(dir.path(), &what, &[name]), "{what}");
            }
            fs::write(&path, bytes).unwrap();
        }
    }
}

#[test]
fn files_that_are_exchanged_do_not_pass() {
    let image = Image::make(GROUPS, OPTIONS.table_bytes);
    let other = Image::make(GROUPS, OPTIONS.table_bytes);
    let dir = scratch();
    put(&image.closed, dir.path());
    let names: Vec<&String> = image.closed.keys().filter(|name| *name != "lock").collect();
    for (index, a) in names.iter().enumerate() {
        for b in &names[index + 1..] {
            fs::write(dir.path().join(a), &image.closed[*b]).unwrap();
            fs::write(dir.path().join(b), &image.closed[*a]).unwrap();
            assert!(!image.is_whole(dir.path(), &format!("{a} and {b}"), &[a, b]));
            fs::write(dir.path().join(b), &image.closed[*b]).unwrap();
        }
        fs::write(dir.path().join(a), &image.closed[*a]).unwrap();
        // that of another store
        if let Some(bytes) = other.closed.get(*a) {
            fs::write(dir.path().join(a), bytes).unwrap();
            let anything: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            assert!(!image.is_whole(dir.path(), &format!("{a} of another store"), &anything));
            fs::write(dir.path().join(a), &image.closed[*a]).unwrap();
        }
    }
}

/// Who was promised less goes on after damage, and hears how much is missing; afterwards the store is whole again.
#[test]
fn a_buffered_store_goes_on_without_what_is_damaged_and_counts_it() {
    let dir = scratch();
    let options = Options { durability: Durability::Buffered, ..ONE_LOG };
    let mut history = History::default();
    drop(live(dir.path(), options, None, 4, &mut history).unwrap());
    let all = State::after(history.sent).rows();
    let log = dir.path().join("log-0000000001");
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).unwrap();
    let error = read(dir.path(), Durability::Synced).unwrap_err().to_string();
    assert!(error.contains("log-0000000001 is damaged at byte") && error.contains("buffered"), "{error}");

    let feeds = Feeds::open(dir.path(), options, None).unwrap();
    let found = State::of(&feeds.participants, &feeds.posts).unwrap();
    let opened = &feeds.engine.opened;
    assert!(opened.is_damaged && opened.missing > 0);
    assert_eq!(found.rows() + opened.missing, all);
    settle(&feeds);
    drop(feeds);
    assert_eq!(read(dir.path(), Durability::Synced).unwrap(), found);
}

#[test]
fn a_directory_of_a_format_before_is_refused_and_left_as_it_is() {
    let manifests = ["1\nlogs done 0\n", "2\nstore 0000000000000001\nlog 1\n"];
    let manifests = manifests.map(|rest| ("manifest", format!("tidemark messages {rest}checksum 0\n")));
    let others = ["0.jnl", "log-00000000000000000001", "snapshot-00000000000000000007"];
    for (name, bytes) in manifests.into_iter().chain(others.map(|name| (name, "TmLog 1\n".to_owned()))) {
        let dir = scratch();
        fs::write(dir.path().join(name), &bytes).unwrap();
        let error = Tree::open(dir.path(), TreeOptions::default()).err().unwrap();
        assert!(matches!(error, StoreError::Format { .. }), "{error}");
        assert!(error.to_string().contains("an earlier version wrote it"), "{error}");
        assert_eq!(files(dir.path())[name], bytes.as_bytes());
    }
}

#[test]
fn a_directory_of_messages_without_ids_is_refused_and_left_as_it_is() {
    let dir = scratch();
    let logs = vec![LogLine { id: 1, end: None }];
    let manifest = Manifest { tables: vec![(4, "messages".into())], logs, ..Manifest::new() };
    manifest.write(&Disk::new(dir.path(), None)).unwrap();
    let before = files(dir.path());
    for durability in [Durability::Synced, Durability::Buffered] {
        let options = TreeOptions { durability, ..TreeOptions::default() };
        let error = Tree::open(dir.path(), options).err().unwrap();
        assert!(matches!(error, StoreError::Format { .. }), "{error}");
        let error = error.to_string();
        assert!(
            error.contains("an earlier version wrote it") && error.contains("another directory"),
            "{error}"
        );
        let error = TreeReader::open(dir.path(), durability).err().unwrap().to_string();
        assert!(error.contains("an earlier version wrote it"), "{error}");
    }
    assert_eq!(files(dir.path())["manifest"], before["manifest"]);
}

#[test]
fn a_directory_of_another_system_is_refused() {
    let dir = scratch();
    drop(Embedded::open(dir.path(), Durability::Synced).unwrap());
    let error = Tree::open(dir.path(), TreeOptions::default()).err().unwrap();
    assert!(matches!(error, StoreError::Format { .. }), "{error}");
    assert!(error.to_string().contains("a table \"sessions\", and this system has messages"), "{error}");
    Embedded::open(dir.path(), Durability::Synced).unwrap();
}
