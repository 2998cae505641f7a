//! A disk that fails, and power that goes, at each act of a story.
//!
//! The disk of these tests has, for each file, the content of its last completed sync, and for the directory the
//! names of its last completed sync. What a failed sync was to write never arrives, though the file shows it and the
//! next sync succeeds: so do real ones. Files are told apart by their inode, so a rename that was not synced leaves
//! the old name with the old content.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use super::story::{is_snapshot, open, scratch, steps_in, take};
use crate::durability::Durability;
use crate::engine::disk::{Step, Watch};
use crate::error::StoreError;

const STEPS: u64 = 45;
const MARKER: &str = "acknowledged";

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    /// The act with this number.
    Once(u64),
    /// This act and all behind it.
    From(u64),
}

/// What a disk holds for certain.
#[derive(Default)]
struct Platter {
    contents: HashMap<u64, Vec<u8>>,
    names: HashMap<String, u64>,
    /// What a failed sync was to write.
    dropped: HashMap<u64, Vec<Range<usize>>>,
}

/// What becomes, in a power cut, of that which was not synced.
#[derive(Debug, Clone, Copy)]
enum Unsynced {
    Gone,
    Kept,
    /// The first half of what was behind the synced part is there.
    HalfKept,
    /// Only the second half is there.
    HalfZero,
}

struct Disk {
    dir: PathBuf,
    state: Mutex<DiskState>,
}

struct DiskState {
    platter: Platter,
    fault: Fault,
    acts: u64,
    has_failed: bool,
    acknowledged: u64,
    /// What there would be after a power cut at each moment, and how many steps had been acknowledged then.
    images: Option<Vec<(u64, Image)>>,
}

type Image = HashMap<String, Vec<u8>>;

impl Disk {
    fn new(dir: &Path, fault: Fault, has_images: bool) -> Arc<Self> {
        let state = DiskState {
            platter: Platter::default(),
            fault,
            acts: 0,
            has_failed: false,
            acknowledged: 0,
            images: has_images.then(Vec::new),
        };
        Arc::new(Disk { dir: dir.into(), state: Mutex::new(state) })
    }

    /// The file's number and content.
    fn look(&self, name: &str) -> (u64, Vec<u8>) {
        let path = self.dir.join(name);
        (std::fs::metadata(&path).unwrap().ino(), std::fs::read(path).unwrap())
    }

    fn image(&self, platter: &Platter, unsynced: Unsynced) -> Image {
        let mut image = Image::new();
        for (name, inode) in &platter.names {
            let synced = platter.contents.get(inode).cloned().unwrap_or_default();
            let there = std::fs::read_dir(&self.dir).unwrap().map(|file| file.unwrap());
            let mut same = there.filter(|file| file.metadata().is_ok_and(|file| file.ino() == *inode));
            let now = same.next().and_then(|file| std::fs::read(file.path()).ok());
            let now = now.filter(|now| now.len() >= synced.len()).unwrap_or_else(|| synced.clone());
            // a sector is written whole or not at all
            let half = synced.len().midpoint(now.len()).next_multiple_of(512).min(now.len());
            let content = match unsynced {
                Unsynced::Gone => synced,
                Unsynced::Kept => now,
                _ if name == MARKER => synced,
                Unsynced::HalfKept => now[..half].to_vec(),
                Unsynced::HalfZero => {
                    [&now[..synced.len()], &vec![0; half - synced.len()], &now[half..]].concat()
                }
            };
            image.insert(name.clone(), content);
        }
        image
    }
}

impl Watch for Disk {
    fn before(&self, act: Step<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        state.acts += 1;
        let fails = match state.fault {
            Fault::Nothing => false,
            Fault::Once(act) => state.acts == act,
            Fault::From(act) => state.acts >= act,
        };
        if !fails {
            return Ok(());
        }
        state.has_failed = true;
        if let Step::Sync(name) = act
            && name != MARKER
        {
            let (inode, now) = self.look(name);
            let synced = state.platter.contents.get(&inode).map_or(0, Vec::len);
            state.platter.dropped.entry(inode).or_default().push(synced..now.len());
        }
        if let Step::Write(name, [head, rest]) = act {
            // a part of it is there, as on real disks
            let mut file = std::fs::File::options().append(true).open(self.dir.join(name))?;
            io::Write::write_all(&mut file, [head, rest].concat().split_at((head.len() + rest.len()) / 2).0)?;
        }
        Err(io::Error::other("the disk of the test fails"))
    }

    fn after(&self, act: Step<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        let state = &mut *state;
        match act {
            Step::Sync(name) => {
                let (inode, mut content) = self.look(name);
                for range in state.platter.dropped.get(&inode).into_iter().flatten() {
                    content[range.clone()].fill(0);
                }
                state.platter.contents.insert(inode, content);
            }
            // A new file may have the number of one that is gone, and nothing of it.
            Step::Create(name) => {
                let (inode, _) = self.look(name);
                state.platter.contents.remove(&inode);
                state.platter.dropped.remove(&inode);
            }
            Step::SyncNames => {
                let files = std::fs::read_dir(&self.dir).unwrap().map(|file| file.unwrap());
                let named = files.filter_map(|file| {
                    Some((file.file_name().into_string().ok()?, file.metadata().ok()?.ino()))
                });
                state.platter.names = named.collect();
            }
            _ => {}
        }
        if let Some(images) = &mut state.images {
            for unsynced in [Unsynced::Gone, Unsynced::Kept, Unsynced::HalfKept, Unsynced::HalfZero] {
                images.push((state.acknowledged, self.image(&state.platter, unsynced)));
            }
        }
        Ok(())
    }
}

fn write_down(image: &Image) -> tempfile::TempDir {
    let dir = scratch();
    for (name, content) in image {
        std::fs::write(dir.path().join(name), content).unwrap();
    }
    dir
}

/// Writes the story from a step on until something fails; tells how many steps were acknowledged. After a failure
/// nothing may be.
fn write(dir: &Path, disk: &Arc<Disk>, begin: u64, end: u64) -> u64 {
    let Ok(store) = open(dir, Durability::Synced, Some(disk.clone())) else { return begin };
    let mut acknowledged = begin;
    for step in begin..end {
        match take(&store, step) {
            // What the step would undo never came to be.
            Ok(false) => assert!(acknowledged < step),
            Ok(true) => {
                assert_eq!(acknowledged, step, "a step was acknowledged after one had failed");
                acknowledged = step + 1;
                disk.state.lock().acknowledged = acknowledged;
            }
            Err(StoreError::Write { .. } | StoreError::Stopped { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
    acknowledged
}

/// Lets each act fail in turn, looks at what the next start finds, writes on, takes the power away, and looks again.
fn with_each_act_failing(fault: impl Fn(u64) -> Fault) {
    for act in 1.. {
        let dir = scratch();
        let disk = Disk::new(dir.path(), fault(act), false);
        let acknowledged = write(dir.path(), &disk, 0, STEPS);
        let mut state = disk.state.lock();
        if !state.has_failed {
            assert_eq!(acknowledged, STEPS);
            assert!(act > 3 * STEPS, "{act} acts only");
            return;
        }
        state.fault = Fault::Nothing;
        drop(state);
        // What the next start makes of what is there; the group that failed may have been kept.
        let store = open(dir.path(), Durability::Synced, Some(disk.clone())).unwrap();
        let found = steps_in(&store, acknowledged, (acknowledged + 1).min(STEPS));
        let more = found..found + 3;
        more.clone().for_each(|step| assert!(take(&store, step).unwrap()));
        let image = write_down(&disk.image(&disk.state.lock().platter, Unsynced::Gone));
        let store = open(image.path(), Durability::Synced, None).unwrap();
        assert_eq!(steps_in(&store, more.end, more.end), more.end, "act {act} failed");
    }
}

#[test]
fn one_failure_at_any_act_loses_nothing() {
    with_each_act_failing(Fault::Once);
}

#[test]
fn a_disk_that_fails_from_any_act_on_loses_nothing() {
    with_each_act_failing(Fault::From);
}

#[test]
fn a_power_cut_at_any_moment_loses_nothing() {
    let dir = scratch();
    let disk = Disk::new(dir.path(), Fault::Nothing, true);
    assert_eq!(write(dir.path(), &disk, 0, STEPS - 10), STEPS - 10);
    assert_eq!(write(dir.path(), &disk, STEPS - 10, STEPS), STEPS);
    let images = disk.state.lock().images.take().unwrap();
    assert!(images.iter().any(|(_, image)| image.keys().any(|name| is_snapshot(name))));
    for (acknowledged, image) in &images {
        let image = write_down(image);
        let store = open(image.path(), Durability::Synced, None).unwrap();
        steps_in(&store, *acknowledged, (acknowledged + 1).min(STEPS));
    }
}

/// The test can fail: a store that acknowledges before it has synced is found out.
#[test]
fn what_was_only_buffered_is_lost_with_the_power() {
    let dir = scratch();
    let disk = Disk::new(dir.path(), Fault::Nothing, false);
    let store = open(dir.path(), Durability::Buffered, Some(disk.clone())).unwrap();
    (0..3).for_each(|step| assert!(take(&store, step).unwrap()));
    let image = write_down(&disk.image(&disk.state.lock().platter, Unsynced::Gone));
    let store = open(image.path(), Durability::Synced, None).unwrap();
    assert_eq!(steps_in(&store, 0, 3), 0);
}

/// After a power cut only damage to the very last group cannot be told from a torn tail.
#[test]
fn damage_after_a_power_cut_is_told_up_to_the_last_group() {
    let dir = scratch();
    let disk = Disk::new(dir.path(), Fault::Nothing, false);
    let store = open(dir.path(), Durability::Synced, Some(disk.clone())).unwrap();
    (0..8).for_each(|step| assert!(take(&store, step).unwrap()));
    let whole = disk.image(&disk.state.lock().platter, Unsynced::Gone);
    let log = whole.keys().find(|name| name.starts_with("log-")).unwrap();
    let mut told = 0;
    for at in 0..whole[log].len() {
        let mut damaged = whole.clone();
        damaged.get_mut(log).unwrap()[at] ^= 0x10;
        let image = write_down(&damaged);
        match open(image.path(), Durability::Synced, None) {
            Ok(store) => assert_eq!(steps_in(&store, 7, 8), 7, "byte {at}"),
            Err(StoreError::Unreadable { .. }) => told += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(told > whole[log].len() / 2);
}
