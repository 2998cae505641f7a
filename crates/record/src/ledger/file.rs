//! The ledger's files: one for each driver thread, appended to while the run goes on.
//!
//! `ledger/thread-N.log` begins with [`MAGIC`], the thread and how many there are (`u16`, all numbers little-endian; 0
//! where nobody knew), followed by frames:
//! length of the body (`u32`), its CRC-32 (`u32`), and the body: when it was handed over (`u64`, microseconds since the
//! run began), writes sent so far (`u64`) and the numbers acknowledged since the frame before, as a 64-bit Roaring
//! bitmap in its portable form. A frame that was cut off by
//! a crash ends the file; what stands before it counts. Anything else that is no frame is damage, and so is a file that
//! is not there: what they held is not known, and nothing can be verified by the rest.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use roaring::RoaringTreemap;

use super::{Entry, Part, THREADS_MAX};
use crate::error::{RecordError, damaged, io_error};
use crate::files;
use crate::interval::SECOND_US;

const MAGIC: &[u8; 8] = b"tidemkL2";
/// What files began with that do not say how many there are.
const MAGIC_BEFORE: &[u8; 8] = b"tidemkL1";
const HEAD_BYTES: usize = MAGIC.len() + 4;
const HEAD_BYTES_BEFORE: usize = MAGIC.len() + 2;
const FRAME_HEAD_BYTES: usize = 8;
/// Shortest body: two times and an empty bitmap.
const BODY_BYTES_MIN: usize = 24;
/// How far behind what is no frame a whole one is looked for.
const LOOK_BYTES_MAX: usize = 1 << 20;
/// Longest body: far more than a second's acknowledgements take; a longer length is damage.
const BODY_BYTES_MAX: usize = 64 << 20;

/// Appends parts to the run directory.
pub struct LedgerWriter {
    dir: PathBuf,
    threads: u16,
    files: BTreeMap<u16, File>,
    frame: Vec<u8>,
}

impl LedgerWriter {
    /// Begins a ledger in a run directory.
    pub fn create(run_dir: &Path) -> Result<LedgerWriter, RecordError> {
        LedgerWriter::for_threads(run_dir, 0)
    }

    /// The same where it is known how many threads there are: each has its file from the beginning, so that one that is
    /// missing later is noticed.
    pub fn for_threads(run_dir: &Path, threads: u16) -> Result<LedgerWriter, RecordError> {
        let dir = run_dir.join(files::LEDGER);
        fs::create_dir_all(&dir).map_err(io_error("create", &dir))?;
        let mut writer = LedgerWriter { dir, threads, files: BTreeMap::new(), frame: Vec::new() };
        for thread in 0..threads {
            let file = writer.begin(thread)?;
            writer.files.insert(thread, file);
        }
        Ok(writer)
    }

    /// Goes on with the ledger of a run that was killed: behind the last whole frame of each file.
    pub fn go_on(run_dir: &Path, threads: u16) -> Result<LedgerWriter, RecordError> {
        let dir = run_dir.join(files::LEDGER);
        let mut writer = LedgerWriter { dir, threads, files: BTreeMap::new(), frame: Vec::new() };
        for thread in 0..THREADS_MAX {
            let path = writer.path(thread);
            let file = match fs::read(&path) {
                Ok(bytes) => {
                    let file = File::options().append(true).open(&path).map_err(io_error("write", &path))?;
                    file.set_len(whole_bytes(&bytes) as u64).map_err(io_error("write", &path))?;
                    file
                }
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(io_error("read", &path)(error));
                }
                Err(_) if thread < threads => writer.begin(thread)?,
                Err(_) => continue,
            };
            writer.files.insert(thread, file);
        }
        Ok(writer)
    }

    fn begin(&self, thread: u16) -> Result<File, RecordError> {
        let path = self.path(thread);
        let mut file = File::create_new(&path).map_err(io_error("create", &path))?;
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&thread.to_le_bytes());
        head.extend_from_slice(&self.threads.to_le_bytes());
        file.write_all(&head).map_err(io_error("write", &path))?;
        Ok(file)
    }

    fn path(&self, thread: u16) -> PathBuf {
        self.dir.join(name(thread))
    }

    /// Appends what a thread has handed over at `at_us`. The operating system has it afterwards: it outlives the driver,
    /// not the machine.
    pub fn add(&mut self, part: &Part, at_us: u64) -> Result<(), RecordError> {
        let path = self.path(part.thread);
        if !self.files.contains_key(&part.thread) {
            let file = self.begin(part.thread)?;
            self.files.insert(part.thread, file);
        }
        let Some(file) = self.files.get_mut(&part.thread) else { return Ok(()) };
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
    /// How many threads there were, as far as the files say.
    named: u16,
    torn: u64,
    damage: Option<String>,
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
        let missing = (0..ledger.named.max(1)).find(|thread| !ledger.threads.contains_key(thread));
        let missing = match ledger.threads.is_empty() {
            true => Some("its files are missing".to_owned()),
            false => {
                missing.filter(|_| ledger.named > 0).map(|thread| format!("{} is missing", name(thread)))
            }
        };
        ledger.damage = ledger.damage.or(missing);
        Ok(ledger)
    }

    /// Takes one thread's file. Outside bytes: every length is held against what is there.
    pub fn take_file(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        let head_bytes = if bytes.starts_with(MAGIC_BEFORE) { HEAD_BYTES_BEFORE } else { HEAD_BYTES };
        if bytes.len() < head_bytes {
            self.torn += 1;
            return Ok(());
        }
        let (head, mut rest) = bytes.split_at(head_bytes);
        let number = |at: usize| head.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]));
        let thread = number(MAGIC.len());
        if !(head.starts_with(MAGIC) || head.starts_with(MAGIC_BEFORE)) || thread >= THREADS_MAX {
            return Err("not a ledger of this program, or of another version");
        }
        self.named = self.named.max(number(MAGIC.len() + 2).min(THREADS_MAX));
        let mut own = ThreadLedger::default();
        while !rest.is_empty() {
            match frame(rest) {
                Frame::Whole(body, behind) => {
                    own.add(body)?;
                    rest = behind;
                    continue;
                }
                Frame::Torn if !is_followed(rest) => self.torn += 1,
                Frame::Torn | Frame::Damaged => {
                    let at = bytes.len() - rest.len();
                    let damage = || format!("{} is damaged at byte {at}", name(thread));
                    self.damage.get_or_insert_with(damage);
                }
            }
            break;
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

    /// What cannot be read of it, though nothing was cut off: what it held is not known.
    pub fn damage(&self) -> Option<&str> {
        self.damage.as_deref()
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
        const DAMAGED: &str = "a frame does not hold a bitmap, though its checksum is right";
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

/// How many bytes stand before a frame that is cut off; all of them where none is.
fn whole_bytes(bytes: &[u8]) -> usize {
    let mut rest = bytes.get(HEAD_BYTES..).unwrap_or_default();
    while !rest.is_empty() {
        match frame(rest) {
            Frame::Whole(_, behind) => rest = behind,
            Frame::Torn if !is_followed(rest) => break,
            // whoever reads it says so
            Frame::Torn | Frame::Damaged => return bytes.len(),
        }
    }
    bytes.len() - rest.len()
}

fn name(thread: u16) -> String {
    format!("thread-{thread}.log")
}

/// What a file goes on with.
enum Frame<'b> {
    /// A body, and what comes behind it.
    Whole(&'b [u8], &'b [u8]),
    /// The beginning of a frame: whoever wrote it died.
    Torn,
    Damaged,
}

fn frame(bytes: &[u8]) -> Frame<'_> {
    let Some((head, rest)) = bytes.split_first_chunk::<FRAME_HEAD_BYTES>() else { return Frame::Torn };
    let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let checksum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    if length > BODY_BYTES_MAX {
        return Frame::Damaged;
    }
    match rest.split_at_checked(length) {
        None => Frame::Torn,
        Some((body, behind)) if crc32fast::hash(body) == checksum => Frame::Whole(body, behind),
        Some(_) => Frame::Damaged,
    }
}

/// Whether a whole frame stands somewhere behind what looks like a torn one: then it was its length that was damaged.
fn is_followed(bytes: &[u8]) -> bool {
    let starts = 1..bytes.len().saturating_sub(BODY_BYTES_MIN).min(LOOK_BYTES_MAX);
    starts
        .into_iter()
        .any(|start| matches!(frame(&bytes[start..]), Frame::Whole(body, _) if body.len() >= BODY_BYTES_MIN))
}
