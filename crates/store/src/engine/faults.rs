//! What becomes of a store whose files fail it, are changed, cut off, exchanged or taken away: either everything
//! acknowledged is there, or it is said which file is wrong. Never is anything missing without a word.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::disk::{Step, Watch};
use crate::durability::Durability;
use crate::embedded::Embedded;
use crate::error::StoreError;
use crate::messages::{Message, Messages, Tree, TreeOptions, TreeReader};

/// So small that there are a dozen runs and a merged one after a few groups.
const OPTIONS: TreeOptions =
    TreeOptions { durability: Durability::Synced, table_bytes: 400, waiting_max: 64 };
const GROUP: u64 = 5;
const GROUPS: u64 = 11;
const KEYS: u64 = 40;

/// A directory in memory where there is such a place: syncs cost nothing there.
pub(super) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// The `number`th message. Its key comes again after [`KEYS`] others.
fn message(number: u64) -> Message {
    let payload = format!("{number} {}", "x".repeat((number % 60) as usize));
    let key = number % KEYS;
    Message { user: key % 3, time_ms: key, kind: *b"ABC", payload: payload.into() }
}

/// What was sent, and the youngest message of each key that was acknowledged.
#[derive(Default, Clone)]
struct History {
    sent: u64,
    acknowledged: BTreeMap<u64, u64>,
}

impl History {
    /// Sends a group; whether all of it was acknowledged.
    fn send_group(&mut self, store: &Tree, runtime: &tokio::runtime::Runtime) -> bool {
        let numbers: Vec<u64> = (self.sent..self.sent + GROUP).collect();
        let answers: Vec<_> = numbers.iter().map(|number| store.add(message(*number))).collect();
        self.sent += GROUP;
        let mut is_well = true;
        for (number, answer) in numbers.into_iter().zip(answers) {
            match runtime.block_on(answer) {
                Ok(()) => drop(self.acknowledged.insert(number % KEYS, number)),
                Err(_) => is_well = false,
            }
        }
        is_well
    }

    /// Whether everything acknowledged was found, and nothing that was never sent.
    fn check(&self, found: &BTreeMap<u64, u64>, what: &str) {
        for (key, number) in &self.acknowledged {
            let found = found.get(key).unwrap_or_else(|| panic!("{what}: message {number} is lost"));
            assert!(found >= number, "{what}: {found} was found in place of {number}");
        }
        assert!(found.values().all(|number| *number < self.sent), "{what}: {found:?}");
    }
}

/// Waits until there is nothing to do in the background, or the store has stopped.
fn settle(store: &Tree) {
    let is_busy = || {
        let metrics = store.metrics();
        let own = |name| metrics.own.iter().find(|own| own.name == name).map_or(0, |own| own.value);
        !metrics.stopped && (own("tables") > 1 || (own("flushes") >= 8 && own("merges") == 0))
    };
    while is_busy() {
        std::thread::sleep(std::time::Duration::from_micros(50));
    }
}

/// A life of a store: groups are sent until one is refused.
fn live(
    dir: &Path,
    options: TreeOptions,
    watch: Option<Arc<dyn Watch>>,
    groups: u64,
    history: &mut History,
) -> Result<(), StoreError> {
    let store = Tree::open_watched(dir, options, watch)?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for _ in 0..groups {
        if !history.send_group(&store, &runtime) {
            break;
        }
        settle(&store);
    }
    Ok(())
}

/// The number of each key's message; read without changing anything.
pub(super) fn read(dir: &Path, durability: Durability) -> Result<BTreeMap<u64, u64>, StoreError> {
    let reader = TreeReader::open(dir, durability)?;
    let mut found = BTreeMap::new();
    for part in 0..reader.parts() {
        for payload in reader.payloads(part) {
            let payload = payload?;
            let text = std::str::from_utf8(&payload).unwrap();
            let number: u64 = text.split(' ').next().unwrap().parse().unwrap();
            assert_eq!(text.as_bytes(), message(number).payload, "not as it was sent");
            assert_eq!(found.insert(number % KEYS, number), None, "found twice");
        }
    }
    assert_eq!(reader.count()?, found.len() as u64);
    Ok(found)
}

/// Lets a step fail.
struct Failing {
    dir: PathBuf,
    how: How,
    /// Steps before it.
    left: AtomicU64,
    failed: Mutex<Option<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It is not taken, and the next one is.
    Once,
    /// It is taken, and nobody hears so.
    Unheard,
    /// It is not taken, and none after it: the process dies there, or the disk does. Of a write, half is done.
    ForEver,
}

impl Failing {
    fn error() -> io::Result<()> {
        Err(io::Error::other("made to fail"))
    }

    fn is_due(&self, step: Step<'_>) -> bool {
        let mut failed = self.failed.lock();
        if failed.is_some() {
            return self.how == How::ForEver;
        }
        let before = self.left.fetch_sub(1, Ordering::Relaxed);
        if before == 0 {
            *failed = Some(format!("{step:?}"));
        }
        before == 0
    }
}

impl Watch for Failing {
    fn before(&self, step: Step<'_>) -> io::Result<()> {
        if self.how == How::Unheard {
            return Ok(());
        }
        let was_well = self.failed.lock().is_none();
        if !self.is_due(step) {
            return Ok(());
        }
        if let (How::ForEver, true, Step::Write(name, pieces)) = (self.how, was_well, step) {
            let bytes = pieces.concat();
            let mut file = fs::File::options().append(true).open(self.dir.join(name))?;
            io::Write::write_all(&mut file, &bytes[..bytes.len() / 2])?;
        }
        Self::error()
    }

    fn after(&self, step: Step<'_>) -> io::Result<()> {
        if self.how == How::Unheard && self.is_due(step) { Self::error() } else { Ok(()) }
    }
}

/// Each step of two lives fails in turn. Afterwards the store opens, and has all that it acknowledged.
#[test]
fn a_step_that_fails_loses_nothing() {
    let mut kinds = BTreeSet::new();
    for how in [How::Once, How::Unheard, How::ForEver] {
        for steps in 0.. {
            let dir = scratch();
            let failing = Arc::new(Failing {
                dir: dir.path().into(),
                how,
                left: AtomicU64::new(steps),
                failed: Mutex::default(),
            });
            let mut history = History::default();
            for groups in [GROUPS, 2] {
                if live(dir.path(), OPTIONS, Some(failing.clone()), groups, &mut history).is_err() {
                    break;
                }
            }
            let failed = failing.failed.lock().clone();
            let what = format!("{how:?} at step {steps}: {failed:?}");
            // twice: what the first start did must be right, too
            for _ in 0..2 {
                if let Err(error) = live(dir.path(), OPTIONS, None, 1, &mut history) {
                    panic!("{what}: {error}");
                }
                history.check(&read(dir.path(), Durability::Synced).unwrap(), &what);
            }
            match failed {
                Some(step) => drop(kinds.insert(step.split('(').next().unwrap().to_owned())),
                None => break,
            }
        }
    }
    let all =
        ["Create", "List", "Open", "Overwrite", "Read", "Remove", "Rename", "Sync", "SyncNames", "Write"];
    assert!(kinds.iter().eq(all), "{kinds:?}");
}

/// The files of a store.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

fn files(dir: &Path) -> Files {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries.map(|e| (e.file_name().into_string().unwrap(), fs::read(e.path()).unwrap())).collect()
}

pub(super) fn put(files: &Files, dir: &Path) {
    for name in fs::read_dir(dir).unwrap() {
        fs::remove_file(name.unwrap().path()).unwrap();
    }
    files.iter().for_each(|(name, bytes)| fs::write(dir.join(name), bytes).unwrap());
}

/// A store with runs, one of them merged, and several messages in its log: as it is when it has been closed, and when its
/// process was killed.
pub(super) struct Image {
    pub(super) closed: Files,
    pub(super) killed: Files,
    found: BTreeMap<u64, u64>,
}

impl Image {
    pub(super) fn make(groups: u64, table_bytes: usize) -> Self {
        let dir = scratch();
        let mut history = History::default();
        let options = TreeOptions { table_bytes, ..OPTIONS };
        live(dir.path(), options, None, groups, &mut history).unwrap();
        let store = Tree::open(dir.path(), TreeOptions { table_bytes: 1 << 20, ..OPTIONS }).unwrap();
        settle(&store);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        (0..3).for_each(|_| assert!(history.send_group(&store, &runtime)));
        let killed = files(dir.path());
        drop(store);
        let closed = files(dir.path());
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
            let error = Tree::open(dir.path(), OPTIONS).err().unwrap();
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
    let options = TreeOptions { durability: Durability::Buffered, table_bytes: 1 << 20, ..OPTIONS };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Tree::open(dir.path(), options).unwrap();
    let mut history = History::default();
    (0..4).for_each(|_| assert!(history.send_group(&store, &runtime)));
    let groups = store.metrics().groups;
    drop(store);
    let log = dir.path().join("log-0000000001");
    let mut bytes = fs::read(&log).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&log, bytes).unwrap();
    let error = read(dir.path(), Durability::Synced).unwrap_err().to_string();
    assert!(error.contains("log-0000000001 is damaged at byte") && error.contains("buffered"), "{error}");

    let store = Tree::open(dir.path(), options).unwrap();
    let own = |name| store.metrics().own.iter().find(|own| own.name == name).unwrap().value;
    let (found, missing) = (runtime.block_on(store.count()).unwrap(), own("missing"));
    assert!(missing > 0, "{groups} groups");
    assert_eq!(found + missing, 4 * GROUP);
    settle(&store);
    drop(store);
    assert_eq!(read(dir.path(), Durability::Synced).unwrap().len() as u64, found);
}

#[test]
fn a_directory_of_a_format_before_is_refused_and_left_as_it_is() {
    let manifests = ["1\nlogs done 0\n", "2\nstore 0000000000000001\nlog 1\n"];
    let manifests = manifests.map(|rest| ("manifest", format!("tidemark messages {rest}checksum 0\n")));
    let others = ["0.jnl", "log-00000000000000000001", "snapshot-00000000000000000007"];
    for (name, bytes) in manifests.into_iter().chain(others.map(|name| (name, "TmLog 1\n".to_owned()))) {
        let dir = scratch();
        fs::write(dir.path().join(name), &bytes).unwrap();
        let error = Tree::open(dir.path(), OPTIONS).err().unwrap();
        assert!(matches!(error, StoreError::Format { .. }), "{error}");
        assert!(error.to_string().contains("an earlier version wrote it"), "{error}");
        assert_eq!(files(dir.path())[name], bytes.as_bytes());
    }
}

#[test]
fn a_directory_of_another_system_is_refused() {
    let dir = scratch();
    drop(Embedded::open(dir.path(), Durability::Synced).unwrap());
    let error = Tree::open(dir.path(), OPTIONS).err().unwrap();
    assert!(matches!(error, StoreError::Format { .. }), "{error}");
    assert!(error.to_string().contains("a table \"sessions\", and this system has messages"), "{error}");
    Embedded::open(dir.path(), Durability::Synced).unwrap();
}
