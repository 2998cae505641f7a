//! Power loss in effigy: what a disk would hold if the power went at any moment, and what a store makes of that.
//!
//! The disk of the test has, for each file, the content of its last completed sync, and for the directory the names
//! of its last completed sync; everything else is gone, as is its right. Files are told apart by their inode, so a
//! rename that was not synced leaves the old name with the old content.

use std::collections::HashMap;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

use super::disk::{Step, Watch};
use crate::durability::Durability;
use crate::messages::{Message, Messages, Query, Tree, TreeOptions};

/// What would be there after a power cut now.
#[derive(Default)]
struct Platter {
    contents: HashMap<u64, Vec<u8>>,
    names: HashMap<String, u64>,
}

/// Keeps the platter of a directory.
struct Spinning {
    dir: PathBuf,
    platter: Mutex<Platter>,
}

impl Spinning {
    fn of(dir: &Path) -> Arc<Self> {
        Arc::new(Spinning { dir: dir.into(), platter: Mutex::default() })
    }
}

impl Watch for Spinning {
    fn before(&self, _: Step<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, step: Step<'_>) -> io::Result<()> {
        self.platter.lock().note(&self.dir, step);
        Ok(())
    }
}

impl Platter {
    fn note(&mut self, dir: &Path, step: Step<'_>) {
        match step {
            Step::Sync(name) => {
                let path = dir.join(name);
                let inode = std::fs::metadata(&path).unwrap().ino();
                self.contents.insert(inode, std::fs::read(path).unwrap());
            }
            // A new file may have the number of one that is gone, and nothing of it.
            Step::Create(name) => {
                let inode = std::fs::metadata(dir.join(name)).unwrap().ino();
                self.contents.remove(&inode);
            }
            Step::SyncNames => {
                let files = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap());
                // One that is removed meanwhile is not there any more.
                let named = files.filter_map(|file| {
                    Some((file.file_name().into_string().ok()?, file.metadata().ok()?.ino()))
                });
                self.names = named.collect();
            }
            _ => {}
        }
    }

    /// Writes down what would be there.
    fn image(&self, to: &Path) {
        for (name, inode) in &self.names {
            std::fs::write(to.join(name), self.contents.get(inode).map_or(&[][..], Vec::as_slice)).unwrap();
        }
    }
}

const WRITERS: u64 = 8;
const IMAGES: usize = 25;
/// So small that tables become runs, and runs are merged, many times within the test.
const OPTIONS: TreeOptions =
    TreeOptions { durability: Durability::Synced, table_bytes: 12 * 1024, waiting_max: 1024 };

fn message(writer: u64, step: u64) -> Message {
    // Every third replaces the one before.
    let time_ms = step - u64::from(step % 3 == 2);
    let payload = Bytes::from(format!("{writer}/{step} {}", "x".repeat((step % 50) as usize)));
    Message { user: writer, time_ms, kind: *b"ABC", payload }
}

/// Whether everything acknowledged before the image is there, and nothing that was not sent when it was made.
fn verify(dir: PathBuf, before: &[u64], after: &[u64]) -> u64 {
    let store = Tree::open(&dir, OPTIONS).unwrap();
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
    let spinning = Spinning::of(dir.path());
    let store = Tree::open_watched(dir.path(), OPTIONS, Some(spinning.clone())).unwrap();
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
        while store.metrics().written < number as u64 * 331 {
            std::thread::yield_now();
        }
        let image = tempfile::tempdir().unwrap();
        let so_far = || acknowledged.iter().map(|steps| steps.load(Ordering::Acquire)).collect::<Vec<_>>();
        let before = so_far();
        spinning.platter.lock().image(image.path());
        sums.push(verify(image.path().to_owned(), &before, &so_far()));
    }
    is_over.store(true, Ordering::Relaxed);
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    let metrics = store.metrics();
    let own = |name| metrics.own.iter().find(|own| own.name == name).map(|own| own.value);
    assert!(own("flushes") > Some(8) && own("merges") > Some(0), "{metrics:?}: too little happened");
    assert!(sums.last() > Some(&1000), "{sums:?}");
}

/// The test can fail: a store that acknowledges before it has synced is found out.
#[test]
fn what_was_only_buffered_is_lost_with_the_power() {
    let dir = tempfile::tempdir().unwrap();
    let spinning = Spinning::of(dir.path());
    let options = TreeOptions { durability: Durability::Buffered, ..OPTIONS };
    let store = Tree::open_watched(dir.path(), options, Some(spinning.clone())).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store.add(message(0, 0))).unwrap();
    let image = tempfile::tempdir().unwrap();
    spinning.platter.lock().image(image.path());
    let found = runtime.block_on(Tree::open(image.path(), OPTIONS).unwrap().count()).unwrap();
    assert_eq!(found, 0);
}
