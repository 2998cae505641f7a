//! The log: what is acknowledged, group by group. Each group is one frame; a snapshot is made of frames, too.
//!
//! A frame is: magic (4 bytes), bytes of its entries (4), their number (4), how many entries the file has before it
//! (8), checksum of the entries (8), checksum of all that (8), entries. Checksums are those of [`Seal`].
//!
//! **The torn tail** of a process that died, or of a disk without power, was never acknowledged and is left out: only
//! the newest log may have one, one whose end the manifest does not know, and behind what the marker says was
//! acknowledged. It ends before the last frame does, or has a sector of it that was never written; one frame is written
//! at a time, so nothing stands behind it. Whatever else is no whole frame is damage: it is told with its place and with how
//! many entries are missing there, which the frames behind it and the manifest know.

use std::cmp::Ordering;
use std::io;
use std::ops::Range;

use super::disk::{Disk, DiskFile};
use super::seal::Seal;

const MAGIC: [u8; 4] = *b"TmG3";
const HEAD_BYTES: usize = 4 + 4 + 4 + 8 + 8 + 8;
const SUMMED_BYTES: usize = HEAD_BYTES - 8;

/// A group takes no further write when it has this many bytes.
pub(crate) const GROUP_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The largest write.
pub(crate) const WRITE_BYTES_MAX: usize = 16 * 1024 * 1024;
const ENTRIES_BYTES_MAX: usize = GROUP_BYTES_MAX + WRITE_BYTES_MAX;
/// Bytes that are looked through in one go for a whole frame.
const WINDOW_BYTES: usize = 64 * 1024;
/// A disk writes at least so much or nothing, at multiples of it.
const SECTOR_BYTES: u64 = 512;

/// The name of a log.
pub(crate) fn name(id: u64) -> String {
    format!("log-{id:010}")
}

/// The number of a log with this name.
pub(crate) fn id_of(name: &str) -> Option<u64> {
    number_of(name.strip_prefix("log-")?)
}

/// Reads the number in the name of a file: ten digits, as they are written.
pub(crate) fn number_of(digits: &str) -> Option<u64> {
    (digits.len() == 10 && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// Where a log ends that takes no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct End {
    pub(crate) bytes: u64,
    pub(crate) entries: u64,
}

/// A log, or another file of frames, that is being written.
pub(crate) struct Log {
    seal: Seal,
    file: DiskFile,
    end: End,
}

impl Log {
    /// Begins the log with this number; its name is durable when this returns.
    pub(crate) fn create(disk: &Disk, store: u64, id: u64) -> io::Result<Self> {
        let log = Self::begin(disk, &name(id), Seal::of_log(store, id))?;
        disk.sync_names()?;
        Ok(log)
    }

    /// Begins a file of frames under a name that [`publish`](Self::publish) replaces.
    pub(crate) fn begin(disk: &Disk, name: &str, seal: Seal) -> io::Result<Self> {
        Ok(Log { seal, file: disk.create(name)?, end: End::default() })
    }

    /// Makes the file durable and gives it its name; where it ends.
    pub(crate) fn publish(self, disk: &Disk, name: &str) -> io::Result<End> {
        disk.publish(self.file, name)?;
        Ok(self.end)
    }

    /// The file, for another thread to sync.
    pub(crate) fn twin(&self) -> io::Result<DiskFile> {
        self.file.twin()
    }

    /// Where it ends now. Not so after an error.
    pub(crate) fn end(&self) -> End {
        self.end
    }

    /// Hands a group to the operating system. One that could not be read again is an error, and nothing is written.
    pub(crate) fn append(&mut self, count: u32, entries: &[u8]) -> io::Result<()> {
        if entries.len() > ENTRIES_BYTES_MAX {
            return Err(io::Error::other(format!("a group of {} bytes is too large", entries.len())));
        }
        let head = self.head(count, entries);
        self.end.bytes += (HEAD_BYTES + entries.len()) as u64;
        self.end.entries += u64::from(count);
        self.file.write([&head, entries])
    }

    fn head(&self, count: u32, entries: &[u8]) -> [u8; HEAD_BYTES] {
        let at = self.end.bytes;
        let mut head = [0; HEAD_BYTES];
        head[..4].copy_from_slice(&MAGIC);
        head[4..8].copy_from_slice(&(entries.len() as u32).to_be_bytes());
        head[8..12].copy_from_slice(&count.to_be_bytes());
        head[12..20].copy_from_slice(&self.end.entries.to_be_bytes());
        head[20..28].copy_from_slice(&self.seal.sum(at, [entries, &[]]).to_be_bytes());
        let sum = self.seal.sum(at, [&head[..SUMMED_BYTES], &[]]);
        head[SUMMED_BYTES..].copy_from_slice(&sum.to_be_bytes());
        head
    }

    /// Returns when all groups are on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.sync()
    }
}

/// What reading a log brought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Replayed {
    /// Where what is whole ends.
    pub(crate) end: End,
    /// Bytes behind it that were never whole.
    pub(crate) torn_bytes: u64,
    pub(crate) damage: Option<Damage>,
}

impl Replayed {
    /// Notes that so many entries, at least, are missing from here on.
    fn miss(&mut self, count: u64) {
        let damage = self.damage.get_or_insert(Damage { at: self.end.bytes, missing: 0 });
        damage.missing = damage.missing.saturating_add(count);
    }
}

/// Something acknowledged cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damage {
    /// Where it begins.
    pub(crate) at: u64,
    /// At least so many entries are missing.
    pub(crate) missing: u64,
}

/// Calls `take` with the entries of each whole group and how many they should be, in order. `end` is where the log
/// ends, for one that took no more; up to `acknowledged` it must be whole.
pub(crate) fn replay(
    file: DiskFile,
    seal: Seal,
    end: Option<End>,
    acknowledged: End,
    mut take: impl FnMut(&[u8], u32) -> io::Result<()>,
) -> io::Result<Replayed> {
    let length = file.len()?;
    let stop = end.map_or(length, |end| end.bytes.min(length));
    let reader = Reader { file, seal, stop };
    let mut replayed = Replayed::default();
    let mut entries = Vec::new();
    let mut at = 0;
    loop {
        let whole = reader.frame(at, &mut entries)?.filter(|head| head.before >= replayed.end.entries);
        let head = match whole {
            Some(head) => head,
            None => match reader.next_frame(at, replayed.end.entries, &mut entries)? {
                Some((place, head)) => {
                    replayed.miss(0);
                    at = place;
                    head
                }
                None => break,
            },
        };
        if head.before > replayed.end.entries {
            replayed.miss(head.before - replayed.end.entries);
        }
        take(&entries, head.count)?;
        at += (HEAD_BYTES + entries.len()) as u64;
        replayed.end = End { bytes: at, entries: head.before.saturating_add(u64::from(head.count)) };
    }
    match end {
        Some(end) if end == replayed.end => {}
        Some(end) => replayed.miss(end.entries.saturating_sub(replayed.end.entries)),
        None if replayed.end.entries < acknowledged.entries || at < acknowledged.bytes => {
            replayed.miss(acknowledged.entries.saturating_sub(replayed.end.entries));
        }
        None if at == stop => {}
        None if reader.is_torn(at)? => replayed.torn_bytes = stop - at,
        None => replayed.miss(1),
    }
    Ok(replayed)
}

/// What a frame says of itself.
#[derive(Debug, Clone, Copy)]
struct Head {
    entries_bytes: usize,
    count: u32,
    before: u64,
    sum: u64,
}

/// Finds frames in a log.
struct Reader {
    file: DiskFile,
    seal: Seal,
    /// Nothing behind it counts.
    stop: u64,
}

impl Reader {
    /// The head that these bytes, which are at `at`, begin with.
    fn head(&self, at: u64, bytes: &[u8]) -> Option<Head> {
        let bytes = bytes.get(..HEAD_BYTES)?;
        let word = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let number = |at: usize| u64::from_be_bytes(std::array::from_fn(|i| bytes[at + i]));
        let head =
            Head { entries_bytes: word(4) as usize, count: word(8), before: number(12), sum: number(20) };
        let is_right = bytes[..4] == MAGIC
            && head.entries_bytes <= ENTRIES_BYTES_MAX
            && self.seal.holds(at, [&bytes[..SUMMED_BYTES], &[]], number(SUMMED_BYTES));
        is_right.then_some(head)
    }

    fn head_at(&self, at: u64) -> io::Result<Option<Head>> {
        if self.stop.saturating_sub(at) < HEAD_BYTES as u64 {
            return Ok(None);
        }
        let mut bytes = [0; HEAD_BYTES];
        self.file.read_at(&mut bytes, at)?;
        Ok(self.head(at, &bytes))
    }

    /// The frame at `at`, if there is a whole one; its entries are in `entries` then.
    fn frame(&self, at: u64, entries: &mut Vec<u8>) -> io::Result<Option<Head>> {
        let Some(head) = self.head_at(at)? else { return Ok(None) };
        let begin = at + HEAD_BYTES as u64;
        if head.entries_bytes as u64 > self.stop - begin {
            return Ok(None);
        }
        entries.resize(head.entries_bytes, 0);
        self.file.read_at(entries, begin)?;
        Ok(self.seal.holds(at, [entries, &[]], head.sum).then_some(head))
    }

    /// The first whole frame behind `at` that has at least so many entries before it, and its place.
    fn next_frame(&self, at: u64, before: u64, entries: &mut Vec<u8>) -> io::Result<Option<(u64, Head)>> {
        let mut window = Vec::new();
        for range in windows(at + 1..self.stop, WINDOW_BYTES as u64) {
            let with_head = self.stop.min(range.end + HEAD_BYTES as u64 - 1);
            window.resize((with_head - range.start) as usize, 0);
            self.file.read_at(&mut window, range.start)?;
            for place in range.clone() {
                let here = &window[(place - range.start) as usize..];
                if here.starts_with(&MAGIC)
                    && self.head(place, here).is_some_and(|head| head.before >= before)
                    && let Some(head) = self.frame(place, entries)?
                {
                    return Ok(Some((place, head)));
                }
            }
        }
        Ok(None)
    }

    /// Whether what is at `at`, which is no whole frame and has none behind it, was never written whole.
    fn is_torn(&self, at: u64) -> io::Result<bool> {
        if self.stop - at < HEAD_BYTES as u64 {
            return Ok(true);
        }
        if let Some(head) = self.head_at(at)? {
            let there = self.stop - at - HEAD_BYTES as u64;
            match there.cmp(&(head.entries_bytes as u64)) {
                Ordering::Less => return Ok(true),
                Ordering::Equal => {}
                Ordering::Greater => return Ok(false),
            }
        }
        let mut bytes = [0; SECTOR_BYTES as usize];
        for range in windows(at..self.stop, SECTOR_BYTES) {
            let sector = &mut bytes[..(range.end - range.start) as usize];
            self.file.read_at(sector, range.start)?;
            if sector.iter().all(|byte| *byte == 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// The pieces of a range, cut at multiples of `size`.
fn windows(range: Range<u64>, size: u64) -> impl Iterator<Item = Range<u64>> {
    let mut begin = range.start;
    std::iter::from_fn(move || {
        let end = range.end.min((begin / size + 1) * size);
        let window = begin..end;
        begin = end;
        (!window.is_empty()).then_some(window)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GROUPS: [&[u8]; 3] = [b"first", b"", b"the third group"];
    const STORE: u64 = 77;

    fn written(groups: &[&[u8]]) -> (tempfile::TempDir, Disk, Log) {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(dir.path(), None);
        let mut log = Log::create(&disk, STORE, 5).unwrap();
        groups.iter().for_each(|group| log.append(2, group).unwrap());
        (dir, disk, log)
    }

    fn path(disk: &Disk, id: u64) -> std::path::PathBuf {
        disk.dir().join(name(id))
    }

    fn bytes(disk: &Disk) -> Vec<u8> {
        std::fs::read(path(disk, 5)).unwrap()
    }

    fn read(disk: &Disk, store: u64, id: u64, end: Option<End>) -> (Vec<Vec<u8>>, Replayed) {
        read_up_to(disk, store, id, end, End::default())
    }

    fn read_up_to(
        disk: &Disk,
        store: u64,
        id: u64,
        end: Option<End>,
        acknowledged: End,
    ) -> (Vec<Vec<u8>>, Replayed) {
        let mut groups = Vec::new();
        let file = disk.open(&name(id)).unwrap();
        let replayed = replay(file, Seal::of_log(store, id), end, acknowledged, |entries, count| {
            assert_eq!(count, 2);
            groups.push(entries.to_vec());
            Ok(())
        });
        (groups, replayed.unwrap())
    }

    fn ends(groups: &[&[u8]]) -> Vec<u64> {
        let sum = |n| groups[..n].iter().map(|group| (HEAD_BYTES + group.len()) as u64).sum();
        (0..=groups.len()).map(sum).collect()
    }

    #[test]
    fn a_tail_torn_at_any_byte_is_left_out() {
        let (_dir, disk, _) = written(&GROUPS);
        let bytes = bytes(&disk);
        assert_eq!(read(&disk, STORE, 5, None).0, GROUPS);
        let ends = ends(&GROUPS);
        for cut in 0..bytes.len() {
            // with a sector or more that was never written, and with none
            for zeros in [0, 1200] {
                let mut torn = bytes[..cut].to_vec();
                torn.resize(cut + zeros, 0);
                std::fs::write(path(&disk, 5), torn).unwrap();
                let (groups, replayed) = read(&disk, STORE, 5, None);
                let whole = ends.iter().filter(|end| **end <= cut as u64).count() - 1;
                assert_eq!(groups, GROUPS[..whole], "cut at {cut}, {zeros} zeros");
                if zeros > 0 && cut as u64 - ends[whole] >= HEAD_BYTES as u64 {
                    let damage = Some(Damage { at: ends[whole], missing: 1 });
                    assert_eq!(
                        replayed.damage, damage,
                        "nothing is written behind a frame that is not whole"
                    );
                    continue;
                }
                assert_eq!(replayed.torn_bytes, (cut + zeros) as u64 - ends[whole]);
                assert_eq!(replayed.damage, None, "cut at {cut}, {zeros} zeros");
                assert_eq!(replayed.end, End { bytes: ends[whole], entries: 2 * whole as u64 });
            }
        }
    }

    /// Whether the log goes on behind the damage or not, and also where it is in the very last frame.
    #[test]
    fn any_changed_byte_is_damage_with_its_place_and_count() {
        let (_dir, disk, log) = written(&GROUPS);
        let (bytes, ends) = (bytes(&disk), ends(&GROUPS));
        for end in [Some(log.end()), None] {
            for at in 0..bytes.len() {
                let mut wrong = bytes.clone();
                wrong[at] ^= 0x40;
                std::fs::write(path(&disk, 5), wrong).unwrap();
                let (groups, replayed) = read(&disk, STORE, 5, end);
                let hit = ends.iter().filter(|end| **end <= at as u64).count() - 1;
                let missing = if hit == 2 && end.is_none() { 1 } else { 2 };
                assert_eq!(replayed.damage, Some(Damage { at: ends[hit], missing }), "byte {at}, {end:?}");
                let others: Vec<&[u8]> = (0..3).filter(|n| *n != hit).map(|n| GROUPS[n]).collect();
                assert_eq!(groups, others, "byte {at}");
            }
        }
    }

    #[test]
    fn a_log_that_is_over_and_shorter_is_damaged_wherever_it_ends() {
        let (_dir, disk, log) = written(&GROUPS);
        let (bytes, ends) = (bytes(&disk), ends(&GROUPS));
        for cut in 0..bytes.len() {
            std::fs::write(path(&disk, 5), &bytes[..cut]).unwrap();
            let (_, replayed) = read(&disk, STORE, 5, Some(log.end()));
            let whole = ends.iter().filter(|end| **end <= cut as u64).count() - 1;
            let missing = 6 - 2 * whole as u64;
            assert_eq!(replayed.damage, Some(Damage { at: ends[whole], missing }), "cut at {cut}");
        }
    }

    /// The last group is acknowledged, and the log is cut behind a group, or the last one looks as if it was never
    /// whole.
    #[test]
    fn what_was_acknowledged_is_no_torn_tail() {
        let zeros = [0; 2000];
        let groups: [&[u8]; 2] = [b"first", &zeros];
        let (_dir, disk, log) = written(&groups);
        let (bytes, ends) = (bytes(&disk), ends(&groups));
        let first = End { bytes: ends[1], entries: 2 };
        let mut wrong = bytes.clone();
        wrong[bytes.len() - 1] ^= 1;
        for tail in [&bytes[..ends[1] as usize], &bytes[..bytes.len() - 1], &wrong] {
            std::fs::write(path(&disk, 5), tail).unwrap();
            let (found, replayed) = read_up_to(&disk, STORE, 5, None, log.end());
            assert_eq!(found, groups[..1]);
            assert_eq!(replayed.damage, Some(Damage { at: ends[1], missing: 2 }));
            let (_, replayed) = read_up_to(&disk, STORE, 5, None, first);
            assert_eq!((replayed.end, replayed.damage), (first, None));
        }
    }

    #[test]
    fn the_frames_of_another_log_store_or_place_are_none() {
        let (_dir, disk, log) = written(&[b"as long", b"as this"]);
        let bytes = bytes(&disk);
        std::fs::write(path(&disk, 6), &bytes).unwrap();
        for (store, id) in [(STORE, 6), (STORE + 1, 5)] {
            let (groups, replayed) = read(&disk, store, id, Some(log.end()));
            assert!(groups.is_empty() && replayed.damage.is_some(), "{replayed:?}");
        }
        let half = bytes.len() / 2;
        std::fs::write(path(&disk, 5), [&bytes[half..], &bytes[..half]].concat()).unwrap();
        assert!(read(&disk, STORE, 5, None).0.is_empty());
    }

    /// In a format before, the frame in the message was taken for one that stood behind a broken one.
    #[test]
    fn a_torn_tail_that_holds_a_frame_in_a_message_is_a_torn_tail() {
        let (_dir, disk, _) = written(&[b"one", b"two", b"three", b"four"]);
        let ends = ends(&[b"one", b"two", b"three", b"four"]);
        let later = bytes(&disk)[ends[3] as usize..].to_vec();
        let (_dir, disk, _) = written(&[b"one", b"two", &later]);
        let bytes = bytes(&disk);
        std::fs::write(path(&disk, 5), &bytes[..bytes.len() - 1]).unwrap();
        let (groups, replayed) = read(&disk, STORE, 5, None);
        assert_eq!((groups.len(), replayed.damage), (2, None));
        assert!(replayed.torn_bytes > 0);
    }
}
