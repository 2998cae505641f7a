//! The ledger's files: one for each driver thread, appended to while the run goes on.
//!
//! `ledger/thread-N.log` begins with [`MAGIC`] and the thread (`u16`, all numbers little-endian), followed by frames:
//! length of the body (`u32`), its CRC-32 (`u32`), and the body: when it was handed over (`u64`, microseconds since the
//! run began), writes sent so far (`u64`) and the numbers acknowledged since the frame before, as a 64-bit Roaring
//! bitmap in its portable form. A frame that was cut off by
//! a crash ends the file; what stands before it counts.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use roaring::RoaringTreemap;

use super::{Entry, Part, THREADS_MAX};
use crate::error::{RecordError, damaged, io_error};
use crate::files;

const MAGIC: &[u8; 8] = b"tidemkL1";
const HEAD_BYTES: usize = MAGIC.len() + 2;
const FRAME_HEAD_BYTES: usize = 8;
/// Longest body: far more than a second's acknowledgements take; a longer length is damage.
const BODY_BYTES_MAX: usize = 64 << 20;
const SECOND_US: u64 = 1_000_000;

/// Appends parts to the run directory.
pub struct LedgerWriter {
    dir: PathBuf,
    files: BTreeMap<u16, File>,
    frame: Vec<u8>,
}

impl LedgerWriter {
    /// Begins a ledger in a run directory.
    pub fn create(run_dir: &Path) -> Result<LedgerWriter, RecordError> {
        let dir = run_dir.join(files::LEDGER);
        fs::create_dir_all(&dir).map_err(io_error("create", &dir))?;
        Ok(LedgerWriter { dir, files: BTreeMap::new(), frame: Vec::new() })
    }

    /// Appends what a thread has handed over at `at_us`. The operating system has it afterwards: it outlives the driver,
    /// not the machine.
    pub fn add(&mut self, part: &Part, at_us: u64) -> Result<(), RecordError> {
        let path = self.dir.join(format!("thread-{}.log", part.thread));
        let file = match self.files.entry(part.thread) {
            std::collections::btree_map::Entry::Occupied(open) => open.into_mut(),
            std::collections::btree_map::Entry::Vacant(place) => {
                let mut file = File::create_new(&path).map_err(io_error("create", &path))?;
                let mut head = MAGIC.to_vec();
                head.extend_from_slice(&part.thread.to_le_bytes());
                file.write_all(&head).map_err(io_error("write", &path))?;
                place.insert(file)
            }
        };
        self.frame.clear();
        self.frame.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
        self.frame.extend_from_slice(&at_us.to_le_bytes());
        self.frame.extend_from_slice(&part.sent.to_le_bytes());
        let mut acknowledged = RoaringTreemap::new();
        for range in &part.acknowledged {
            acknowledged.insert_range(range.clone());
        }
        // neighbours as ranges, where that is shorter
        acknowledged.optimize();
        acknowledged.serialize_into(&mut self.frame).map_err(io_error("write", &path))?;
        let (head, body) = self.frame.split_at_mut(FRAME_HEAD_BYTES);
        head[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
        file.write_all(&self.frame).map_err(io_error("write", &path))
    }
}

/// What one thread sent, and what of it was acknowledged.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ThreadLedger {
    pub sent: u64,
    pub acknowledged: RoaringTreemap,
    /// Writes sent until each hand-over, and when that was, microseconds.
    handed_over: Vec<(u64, u64)>,
}

/// A run's ledger, read back.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    pub(super) threads: BTreeMap<u16, ThreadLedger>,
    torn: u64,
}

impl Ledger {
    /// Reads the ledger of a run directory; `NotFound` where the run kept none. Files that end in the midst of a frame
    /// are read up to there and counted in [`torn`](Ledger::torn).
    pub fn read(run_dir: &Path) -> Result<Ledger, RecordError> {
        let dir = run_dir.join(files::LEDGER);
        let mut ledger = Ledger::default();
        for entry in fs::read_dir(&dir).map_err(io_error("read", &dir))? {
            let path = entry.map_err(io_error("read", &dir))?.path();
            if path.extension().is_some_and(|extension| extension == "log") {
                let bytes = fs::read(&path).map_err(io_error("read", &path))?;
                ledger.take_file(&bytes).map_err(|reason| damaged(&path, reason))?;
            }
        }
        Ok(ledger)
    }

    /// Takes one thread's file. Outside bytes: every length is held against what is there.
    pub fn take_file(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        if bytes.len() < HEAD_BYTES {
            self.torn += 1;
            return Ok(());
        }
        let (head, mut rest) = bytes.split_at(HEAD_BYTES);
        let thread = u16::from_le_bytes([head[MAGIC.len()], head[MAGIC.len() + 1]]);
        if &head[..MAGIC.len()] != MAGIC || thread >= THREADS_MAX {
            return Err("not a ledger of this program, or of another version");
        }
        let mut own = ThreadLedger::default();
        while !rest.is_empty() {
            let Some((body, behind)) = frame(rest) else {
                self.torn += 1;
                break;
            };
            own.add(body)?;
            rest = behind;
        }
        match self.threads.insert(thread, own) {
            None => Ok(()),
            Some(_) => Err("a second file of the same thread"),
        }
    }

    /// Files whose last frame was cut off: the driver died while it wrote.
    pub fn torn(&self) -> u64 {
        self.torn
    }

    /// Writes sent.
    pub fn sent(&self) -> u64 {
        self.threads.values().map(|own| own.sent).sum()
    }

    /// Writes acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.threads.values().map(|own| own.acknowledged.len()).sum()
    }

    /// Whether this write was sent.
    pub fn was_sent(&self, entry: Entry) -> bool {
        self.threads.get(&entry.thread).is_some_and(|own| entry.number < own.sent)
    }

    /// Whether this write was acknowledged.
    pub fn was_acknowledged(&self, entry: Entry) -> bool {
        self.threads.get(&entry.thread).is_some_and(|own| own.acknowledged.contains(entry.number))
    }

    /// When this write was sent, between two hand-overs of its thread, microseconds since the run began.
    pub fn sent_between(&self, entry: Entry) -> Option<(u64, u64)> {
        let times = &self.threads.get(&entry.thread)?.handed_over;
        let index = times.partition_point(|(sent, _)| *sent <= entry.number);
        let end = times.get(index)?.1;
        Some((index.checked_sub(1).map_or(0, |before| times[before].1), end))
    }

    /// Groups writes of one thread by the second in which they were sent: adds them to `seconds`.
    pub(super) fn add_by_second(
        &self,
        thread: u16,
        numbers: &RoaringTreemap,
        seconds: &mut BTreeMap<u64, (u64, u64)>,
    ) {
        let Some(own) = self.threads.get(&thread) else { return };
        let below = |number: u64| number.checked_sub(1).map_or(0, |last| numbers.rank(last));
        let (mut sent_before, mut from_us) = (0, 0);
        for &(sent, to_us) in &own.handed_over {
            let count = below(sent) - below(sent_before);
            if count > 0 {
                let second = seconds.entry(from_us / SECOND_US).or_default();
                *second = (second.0.max(to_us), second.1 + count);
            }
            (sent_before, from_us) = (sent, to_us);
        }
    }

    /// All writes that were acknowledged, in order.
    pub fn acknowledged_entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.threads
            .iter()
            .flat_map(|(thread, own)| own.acknowledged.iter().map(|number| Entry { thread: *thread, number }))
    }
}

impl ThreadLedger {
    fn add(&mut self, body: &[u8]) -> Result<(), &'static str> {
        const DAMAGED: &str = "a frame holds no bitmap, though its checksum is right";
        let (at_us, body) = body.split_first_chunk::<8>().ok_or(DAMAGED)?;
        let (sent, bitmap) = body.split_first_chunk::<8>().ok_or(DAMAGED)?;
        let sent = u64::from_le_bytes(*sent);
        let acknowledged = RoaringTreemap::deserialize_from(bitmap).map_err(|_| DAMAGED)?;
        if sent < self.sent || acknowledged.max().is_some_and(|most| most >= sent) {
            return Err("a frame acknowledges what was never sent");
        }
        self.sent = sent;
        self.handed_over.push((sent, u64::from_le_bytes(*at_us)));
        self.acknowledged |= acknowledged;
        Ok(())
    }
}

/// The first frame's body and what comes behind it, where it is whole.
fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<FRAME_HEAD_BYTES>()?;
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let checksum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if length > BODY_BYTES_MAX {
        return None;
    }
    let (body, behind) = rest.split_at_checked(length)?;
    (crc32fast::hash(body) == checksum).then_some((body, behind))
}
