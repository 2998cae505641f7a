//! Files that no store wrote, with and without right checksums: they are read, or refused with a reason. Nothing
//! panics, and nothing is missing without a word where a checksum is wrong.

use std::fs;
use std::ops::{Bound, Range};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::disk::Disk;
use super::faults::{Image, ONE_LOG, State, put, scratch};
use super::log::{self, End, Log};
use super::manifest::{LogLine, Manifest};
use super::marker::{Marker, MarkerFile};
use super::ordered::{count, run};
use super::seal::Seal;
use super::snapshot;
use super::tests::{Feeds, Post, tables};
use super::{Options, describe, read};
use crate::durability::Durability;
use crate::error::StoreError;

fn image() -> &'static Image {
    static IMAGE: OnceLock<Image> = OnceLock::new();
    IMAGE.get_or_init(|| Image::make(12, 400))
}

/// Something done to a file.
#[derive(Debug, Clone)]
enum Change {
    /// A part becomes other bytes, more or fewer.
    Splice((Index, Index), Vec<u8>),
    /// It has the bytes of another.
    CopyOf(Index),
    Remove,
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        8 => (any::<(Index, Index)>(), vec(any::<u8>(), 0..80)).prop_map(|(at, with)| Change::Splice(at, with)),
        1 => any::<Index>().prop_map(Change::CopyOf),
        1 => Just(Change::Remove),
    ]
}

fn spliced(bytes: &[u8], (a, b): (Index, Index), with: &[u8]) -> Vec<u8> {
    let (a, b) = (a.index(bytes.len() + 1), b.index(bytes.len() + 1));
    [&bytes[..a.min(b)], with, &bytes[a.max(b)..]].concat()
}

/// Reads everything in a directory, however it was opened.
fn read_all(dir: &Path, durability: Durability) -> Result<usize, StoreError> {
    let (participants, posts) = (Arc::default(), Arc::default());
    let _lock = read(dir, &tables(&participants, &posts), durability)?;
    let damaged = |error| describe(dir, &error);
    count::distinct(&posts.view()).map_err(damaged)?;
    let mut rows = posts.view().rows::<Post>(Bound::Unbounded, None);
    rows.try_fold(0, |sum, post| Ok(sum + post?.text.len())).map_err(damaged)
}

fn is_told(result: Result<usize, StoreError>) -> bool {
    matches!(result, Ok(_) | Err(StoreError::Unreadable { .. } | StoreError::Format { .. }))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn files_with_other_parts(
        is_closed: bool,
        changes in vec((any::<Index>(), change()), 1..6),
    ) {
        let dir = scratch();
        let original = if is_closed { &image().closed } else { &image().killed };
        let mut wrong = original.clone();
        let names: Vec<&str> = original.keys().map(String::as_str).filter(|name| *name != "lock").collect();
        let suspects: Vec<&str> = changes.iter().map(|(which, _)| *which.get(&names)).collect();
        for (name, (_, change)) in suspects.iter().zip(&changes) {
            let bytes = wrong.remove(*name).unwrap_or_default();
            let bytes = match change {
                Change::Splice(range, with) => spliced(&bytes, *range, with),
                Change::CopyOf(other) => original[*other.get(&names)].clone(),
                Change::Remove => continue,
            };
            wrong.insert((*name).to_owned(), bytes);
        }
        put(&wrong, dir.path());
        image().is_whole(dir.path(), &format!("{changes:?}"), &suspects);
        prop_assert!(is_told(read_all(dir.path(), Durability::Buffered)));
        let buffered = Options { durability: Durability::Buffered, ..ONE_LOG };
        if let Ok(feeds) = Feeds::open(dir.path(), buffered, None)
            && let Ok(found) = State::of(&feeds.participants, &feeds.posts)
        {
            prop_assert!(feeds.engine.opened.is_damaged || found == image().found, "{found:?}");
        }
    }

    /// Whatever a group holds: that its checksums are right does not make it one.
    #[test]
    fn logs_of_any_groups(groups in vec((0u32..4, vec(prop_oneof![Just(200u8), Just(201u8), any::<u8>()], 0..100)), 0..6), end in any::<Option<(u16, u16)>>()) {
        let dir = scratch();
        let disk = Disk::new(dir.path(), None);
        fs::write(dir.path().join("lock"), "").unwrap();
        let mut manifest = Manifest::new();
        let mut log = Log::create(&disk, manifest.store, 3).unwrap();
        groups.iter().for_each(|(count, entries)| log.append(*count, entries).unwrap());
        let end = end.map(|(bytes, entries)| End { bytes: bytes.into(), entries: entries.into() });
        manifest.logs.push(LogLine { id: 3, end });
        manifest.write(&disk).unwrap();
        MarkerFile::begin(&disk, Marker { end: log.end(), ..Marker::new(manifest.store, 3) }).unwrap();
        for durability in [Durability::Synced, Durability::Buffered] {
            prop_assert!(is_told(read_all(dir.path(), durability)));
        }
    }

    /// A manifest and the index of a run that say anything, with checksums that are right.
    #[test]
    fn manifests_and_indexes_that_say_anything(
        which: Index,
        patch in any::<(Index, u8)>(),
        ends in vec(any::<Option<(u64, u64)>>(), 0..3),
        level: u32,
    ) {
        let dir = scratch();
        put(&image().closed, dir.path());
        let disk = Disk::new(dir.path(), None);
        let mut manifest = Manifest::read(&disk).unwrap().unwrap();
        let line = which.index(manifest.runs.len());
        let line = &mut manifest.runs[line];
        let path = dir.path().join(run::name(line.id));
        let mut bytes = fs::read(&path).unwrap();
        let Range { start: index_at, end } = run::index_of(&bytes);
        bytes[index_at + patch.0.index(end - index_at)] = patch.1;
        let sum = Seal::of_run(manifest.store, line.id).sum(index_at as u64, [&bytes[index_at..end], &[]]);
        bytes[end..end + 8].copy_from_slice(&sum.to_be_bytes());
        fs::write(path, bytes).unwrap();
        (line.sum, line.level) = (sum, level);
        for (log, end) in manifest.logs.iter_mut().zip(&ends) {
            log.end = end.map(|(bytes, entries)| End { bytes, entries });
        }
        manifest.write(&disk).unwrap();
        for durability in [Durability::Synced, Durability::Buffered] {
            prop_assert!(is_told(read_all(dir.path(), durability)));
        }
    }

    #[test]
    fn names_of_files_are_theirs_only(text in "(log|run|snapshot)-[0-9+]{0,12}") {
        if let Some(id) = log::id_of(&text) {
            prop_assert_eq!(log::name(id), text);
        } else if let Some(id) = run::id_of(&text) {
            prop_assert_eq!(run::name(id), text);
        } else if let Some(id) = snapshot::id_of(&text) {
            prop_assert_eq!(snapshot::name(id), text);
        }
    }
}
