//! Simulated faults of a disk: steps that fail, and power that goes at any moment.
//!
//! The disk of these tests has, for each file, the content of its last completed sync, and for the directory the names
//! of its last completed sync; everything else is lost. What a failed sync was to write never arrives, though the file
//! shows it and the next sync succeeds: so do real ones. Files are told apart by their inode, so a rename that was not
//! synced leaves the old name with the old content.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;

use super::Options;
use super::disk::{Step, Watch};
use super::faults::{Files, GROUP, GROUPS, History, ONE_LOG, OPTIONS, State, live, put, read, scratch};
use super::marker;
use super::tests::Feeds;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::messages::{Message, MessageId, Messages, Query, Tree, TreeOptions};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    /// It is not taken, and the next one is.
    Once,
    /// It is taken, and nobody hears so.
    Unheard,
    /// It is not taken, and none after it: the process dies there, or the disk does.
    ForEver,
}

/// A step that fails. Of a write that is not taken, half is done.
struct Fault {
    how: How,
    /// Steps before it.
    left: u64,
    failed: Option<String>,
}

impl Fault {
    fn is_due(&mut self, step: Step<'_>) -> bool {
        if self.failed.is_some() {
            return self.how == How::ForEver;
        }
        if self.left == 0 {
            self.failed = Some(format!("{step:?}"));
        }
        self.left = self.left.saturating_sub(1);
        self.failed.is_some()
    }
}

/// What becomes, in a power cut, of that which was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unsynced {
    Gone,
    Kept,
    /// The first half of what was behind the synced part is there.
    HalfKept,
    /// Only the second half is there.
    HalfZero,
}

/// What a disk holds for certain.
#[derive(Default)]
struct Platter {
    contents: HashMap<u64, Vec<u8>>,
    names: HashMap<String, u64>,
    /// What a failed sync was to write.
    dropped: HashMap<u64, Vec<Range<usize>>>,
    fault: Option<Fault>,
    /// What there would be after a power cut at each moment, and how many writes had been acknowledged then.
    images: Option<Vec<(u64, Files)>>,
}

struct SimulatedDisk {
    dir: PathBuf,
    platter: Mutex<Platter>,
    acknowledged: Arc<AtomicU64>,
}

impl SimulatedDisk {
    fn of(dir: &Path) -> Arc<Self> {
        Arc::new(SimulatedDisk { dir: dir.into(), platter: Mutex::default(), acknowledged: Arc::default() })
    }

    /// The file's number and content.
    fn look(&self, name: &str) -> (u64, Vec<u8>) {
        let path = self.dir.join(name);
        (fs::metadata(&path).unwrap().ino(), fs::read(path).unwrap())
    }

    /// Files by their numbers. One that is removed meanwhile is not there any more.
    fn names(&self) -> HashMap<String, u64> {
        let files = fs::read_dir(&self.dir).unwrap().map(|file| file.unwrap());
        files
            .filter_map(|file| Some((file.file_name().into_string().ok()?, file.metadata().ok()?.ino())))
            .collect()
    }

    fn image_of(&self, platter: &Platter, unsynced: Unsynced) -> Files {
        let there: HashMap<u64, String> =
            self.names().into_iter().map(|(name, inode)| (inode, name)).collect();
        let content = |(name, inode): (&String, &u64)| {
            let synced = platter.contents.get(inode).cloned().unwrap_or_default();
            if unsynced == Unsynced::Gone {
                return (name.clone(), synced);
            }
            let now = there.get(inode).and_then(|name| fs::read(self.dir.join(name)).ok());
            let now = now.filter(|now| now.len() >= synced.len()).unwrap_or_else(|| synced.clone());
            // a sector is written whole or not at all
            let half = synced.len().midpoint(now.len()).next_multiple_of(512).min(now.len());
            let content = match unsynced {
                Unsynced::Kept => now,
                _ if name == marker::NAME => synced,
                Unsynced::HalfKept => now[..half].to_vec(),
                _ => [&now[..synced.len()], &vec![0; half - synced.len()], &now[half..]].concat(),
            };
            (name.clone(), content)
        };
        platter.names.iter().map(content).collect()
    }

    /// What would be there after a power cut now.
    fn image(&self, unsynced: Unsynced) -> tempfile::TempDir {
        directory_of(&self.image_of(&self.platter.lock(), unsynced))
    }
}

fn directory_of(files: &Files) -> tempfile::TempDir {
    let dir = scratch();
    put(files, dir.path());
    dir
}

fn error() -> io::Result<()> {
    Err(io::Error::other("made to fail"))
}

impl Watch for SimulatedDisk {
    fn before(&self, step: Step<'_>) -> io::Result<()> {
        let mut platter = self.platter.lock();
        let Some(fault) = platter.fault.as_mut().filter(|fault| fault.how != How::Unheard) else {
            return Ok(());
        };
        let was_well = fault.failed.is_none();
        if !fault.is_due(step) {
            return Ok(());
        }
        match step {
            Step::Sync(name) if name != marker::NAME => {
                let (inode, now) = self.look(name);
                let synced = platter.contents.get(&inode).map_or(0, Vec::len);
                platter.dropped.entry(inode).or_default().push(synced..now.len());
            }
            Step::Write(name, pieces) if was_well => {
                let bytes = pieces.concat();
                let mut file = fs::File::options().append(true).open(self.dir.join(name))?;
                file.write_all(&bytes[..bytes.len() / 2])?;
            }
            _ => {}
        }
        error()
    }

    fn after(&self, step: Step<'_>) -> io::Result<()> {
        let mut platter = self.platter.lock();
        match step {
            Step::Sync(name) => {
                let (inode, mut content) = self.look(name);
                for range in platter.dropped.get(&inode).into_iter().flatten() {
                    content[range.clone()].fill(0);
                }
                platter.contents.insert(inode, content);
            }
            // A new file may have the number of one that is gone, and nothing of it.
            Step::Create(name) => {
                let (inode, _) = self.look(name);
                platter.contents.remove(&inode);
                platter.dropped.remove(&inode);
            }
            Step::SyncNames => platter.names = self.names(),
            _ => {}
        }
        if !matches!(step, Step::List | Step::Open(_) | Step::Read(_))
            && let Some(mut images) = platter.images.take()
        {
            let acknowledged = self.acknowledged.load(Ordering::Relaxed);
            for unsynced in [Unsynced::Gone, Unsynced::Kept, Unsynced::HalfKept, Unsynced::HalfZero] {
                images.push((acknowledged, self.image_of(&platter, unsynced)));
            }
            platter.images = Some(images);
        }
        let fault = platter.fault.as_mut().filter(|fault| fault.how == How::Unheard);
        if fault.is_some_and(|fault| fault.is_due(step)) { error() } else { Ok(()) }
    }
}

/// Each step of two lives fails in turn. Afterwards the store opens and has all that it acknowledged, and what it then
/// acknowledges is on the disk.
#[test]
fn a_step_that_fails_loses_nothing() {
    let mut kinds = BTreeSet::new();
    for how in [How::Once, How::Unheard, How::ForEver] {
        for left in 0.. {
            let dir = scratch();
            let disk = SimulatedDisk::of(dir.path());
            disk.platter.lock().fault = Some(Fault { how, left, failed: None });
            let mut history = History { what: format!("{how:?} at step {left}"), ..History::default() };
            for groups in [GROUPS, 2] {
                if live(dir.path(), OPTIONS, Some(disk.clone()), groups, &mut history).is_err() {
                    break;
                }
            }
            let failed = disk.platter.lock().fault.take().unwrap().failed;
            history.what = format!("{}: {failed:?}", history.what);
            // twice: what the first start did must be right, too
            for _ in 0..2 {
                let feeds = live(dir.path(), OPTIONS, Some(disk.clone()), 1, &mut history);
                let feeds = feeds.unwrap_or_else(|error| panic!("{}: {error}", history.what));
                let image = disk.image(Unsynced::Gone);
                drop(feeds);
                history.check(&read(image.path(), Durability::Synced).unwrap());
                history.check(&read(dir.path(), Durability::Synced).unwrap());
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

#[test]
fn a_power_cut_at_any_moment_loses_nothing() {
    let dir = scratch();
    let disk = SimulatedDisk::of(dir.path());
    disk.platter.lock().images = Some(Vec::new());
    let mut history = History { acknowledged: disk.acknowledged.clone(), ..History::default() };
    for groups in [GROUPS - 2, 2] {
        drop(live(dir.path(), OPTIONS, Some(disk.clone()), groups, &mut history).unwrap());
    }
    let mut images = disk.platter.lock().images.take().unwrap();
    // between two syncs what is certain stays the same
    images.sort_unstable();
    images.dedup();
    for kind in ["snapshot-", "run-"] {
        let is_one = |name: &String| name.starts_with(kind) && !name.ends_with(".new");
        assert!(images.iter().any(|(_, files)| files.keys().any(is_one)));
    }
    for (number, (acknowledged, files)) in images.iter().enumerate() {
        let image = directory_of(files);
        let mut history =
            History { what: format!("image {number}"), sent: acknowledged + GROUP, ..History::default() };
        history.acknowledged.store(*acknowledged, Ordering::Relaxed);
        live(image.path(), OPTIONS, None, 0, &mut history).unwrap();
    }
}

/// The test can fail: a store that acknowledges before it has synced is found out.
#[test]
fn what_was_only_buffered_is_lost_with_the_power() {
    let dir = scratch();
    let disk = SimulatedDisk::of(dir.path());
    let options = Options { durability: Durability::Buffered, ..ONE_LOG };
    let _feeds = live(dir.path(), options, Some(disk.clone()), 1, &mut History::default()).unwrap();
    let image = disk.image(Unsynced::Gone);
    assert_eq!(read(image.path(), Durability::Synced).unwrap(), State::default());
}

/// After a power cut only damage to the very last group cannot be told from a torn tail.
#[test]
fn damage_after_a_power_cut_is_told_up_to_the_last_group() {
    let dir = scratch();
    let disk = SimulatedDisk::of(dir.path());
    let feeds = Feeds::open(dir.path(), ONE_LOG, Some(disk.clone())).unwrap();
    let mut history = History::default();
    (0..8).for_each(|_| assert!(history.send(&feeds, 1)));
    let whole = disk.image_of(&disk.platter.lock(), Unsynced::Gone);
    let log = whole.keys().find(|name| name.starts_with("log-")).unwrap();
    let mut told = 0;
    for at in 0..whole[log].len() {
        let mut damaged = whole.clone();
        damaged.get_mut(log).unwrap()[at] ^= 0x10;
        match read(directory_of(&damaged).path(), Durability::Synced) {
            Ok(found) => assert_eq!(found, State::after(7), "byte {at}"),
            Err(StoreError::Unreadable { .. }) => told += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(told > whole[log].len() / 2);
}

const WRITERS: u64 = 8;
const IMAGES: usize = 13;
/// So small that tables become runs, and runs are merged, many times within the test.
const TREE: TreeOptions =
    TreeOptions { durability: Durability::Synced, table_bytes: 12 * 1024, waiting_max: 1024 };

fn message(writer: u64, step: u64) -> Message {
    // Every third replaces the one before.
    let time_ms = step - u64::from(step % 3 == 2);
    let payload = Bytes::from(format!("{writer}/{step} {}", "x".repeat((step % 50) as usize)));
    Message { user: writer, time_ms, kind: *b"ABC", id: MessageId::NONE, payload }
}

/// Whether everything acknowledged before the image is there, and nothing that was not sent when it was made.
fn verify(dir: PathBuf, before: &[u64], after: &[u64]) -> u64 {
    let store = Tree::open(&dir, TREE).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut sum = 0;
    for (writer, (&steps, &sent)) in before.iter().zip(after).enumerate() {
        let writer = writer as u64;
        let query = Query { user: writer, from_ms: 0, to_ms: u64::MAX, after: None, limit: 1_000_000 };
        let found = runtime.block_on(store.of_user(query)).unwrap().messages;
        sum += found.len() as u64;
        let by_time: HashMap<u64, &Message> =
            found.iter().map(|message| (message.time_ms, message)).collect();
        assert_eq!(by_time.len(), found.len());
        for step in 0..steps {
            let sent = message(writer, step);
            let found = by_time.get(&sent.time_ms).unwrap_or_else(|| panic!("{writer}/{step} is lost"));
            let is_replaced = step % 3 == 1 && **found == message(writer, step + 1);
            assert!(**found == sent || is_replaced, "{writer}/{step} is {found:?}");
        }
        // Beside those only the one that was on its way.
        assert!(found.iter().all(|message| message.time_ms <= sent), "{writer}: more than was sent");
    }
    assert_eq!(runtime.block_on(store.count()).unwrap(), sum);
    sum
}

#[test]
fn nothing_acknowledged_is_lost_with_the_power() {
    let dir = tempfile::tempdir().unwrap();
    let disk = SimulatedDisk::of(dir.path());
    let store = Tree::open_watched(dir.path(), TREE, Some(disk.clone())).unwrap();
    let acknowledged: Arc<Vec<AtomicU64>> = Arc::new((0..WRITERS).map(|_| AtomicU64::new(0)).collect());
    let is_over = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let (store, acknowledged, is_over) = (store.clone(), acknowledged.clone(), is_over.clone());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                for step in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    runtime.block_on(store.add(message(writer, step))).unwrap();
                    acknowledged[writer as usize].store(step + 1, Ordering::Release);
                }
            })
        })
        .collect();
    let mut sums = Vec::new();
    for number in 0..IMAGES {
        // Wherever the store is just then; the later ones meet runs and merges.
        while store.metrics().writes < number as u64 * 662 {
            std::thread::sleep(Duration::from_micros(100));
        }
        let so_far = || acknowledged.iter().map(|steps| steps.load(Ordering::Acquire)).collect::<Vec<_>>();
        let before = so_far();
        let image = disk.image(Unsynced::Gone);
        sums.push(verify(image.path().to_owned(), &before, &so_far()));
    }
    is_over.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let metrics = store.metrics();
    let own = |name| metrics.own.iter().find(|own| own.name == name).map(|own| own.value);
    assert!(own("flushes") > Some(8) && own("merges") > Some(0), "{metrics:?}: too little happened");
    assert!(sums.last() > Some(&1000), "{sums:?}");
}
