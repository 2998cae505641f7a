//! Operations that a system tells of, one by one: entered into bounded buffers by whoever does them, and written as
//! lines by a thread of their own.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tidemark_store::events::{Account, EventLog};

use crate::worker_index;

/// How often what was entered is written.
const WRITE_EVERY: Duration = Duration::from_millis(100);
/// Buffers; workers beyond that share.
const SHARDS: usize = 16;
/// Entries that a buffer holds.
const HELD_MAX: usize = 16 * 1024;

/// Operations of one kind that ended together.
#[derive(Debug, Clone, Copy)]
struct Entry {
    /// When, microseconds since 1970.
    at_us: u64,
    duration_us: u32,
    count: u32,
    kind: u16,
    status: u16,
}

/// The log of a system's operations. To enter one costs a reading of the clock, and a lock that nobody else
/// holds but while the buffer changes hands: nothing is allocated, and nothing is waited for.
///
/// A line is `AT,ENTITY,OPERATION,DURATION,STATUS`: when the operation was over, microseconds since 1970, how long it
/// took, microseconds, and what came of it, as the status of an answer. Where a buffer is full, or the log behind does not
/// take a line, operations are missing and counted; a line `#dropped COUNT` tells of it. What the log does not tell of at the
/// end stands in an [`Account`].
///
/// ```
/// use std::time::Duration;
/// use tidemark_service::OperationLog;
/// use tidemark_store::events::EventFile;
///
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("operations");
/// const KINDS: &[(&str, &str)] = &[("Order", "post"), ("Order", "store")];
/// let log = OperationLog::start(KINDS, Box::new(EventFile::open(&path)?), None)?;
/// log.enter(1, 2, Duration::from_micros(80), 200); // two orders were stored
/// log.close();
/// let text = std::fs::read_to_string(&path)?;
/// assert!(text.lines().count() == 2 && text.lines().all(|line| line.ends_with(",Order,store,80,200")));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct OperationLog {
    shared: Arc<Shared>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    /// Entity and operation of each kind.
    kinds: &'static [(&'static str, &'static str)],
    shards: Box<[Mutex<Vec<Entry>>]>,
    held_max: usize,
    /// Operations that found no room.
    dropped: AtomicU64,
    /// Operations that the log behind has taken and lost.
    lost: AtomicU64,
    stops: AtomicBool,
}

impl OperationLog {
    /// Begins to write into `log`. `kinds` are entity and operation of each kind, by its number. That all is written in the
    /// end, or how much is not, is said in `account`.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        kinds: &'static [(&'static str, &'static str)],
        log: Box<dyn EventLog>,
        account: Option<Account>,
    ) -> std::io::Result<Arc<Self>> {
        let shared = Arc::new(Shared::new(kinds, HELD_MAX));
        let writing = shared.clone();
        let writer = std::thread::Builder::new()
            .name("operations".into())
            .spawn(move || writing.write_to(log, account.as_ref()))?;
        Ok(Arc::new(OperationLog { shared, writer: Mutex::new(Some(writer)) }))
    }

    /// Enters that `count` operations of a kind are over now, took so long each, and were answered with `status`.
    pub fn enter(&self, kind: usize, count: usize, took: Duration, status: u16) {
        self.shared.enter(kind, count, took, status);
    }

    /// How many operations are missing in the log.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed) + self.shared.lost.load(Ordering::Relaxed)
    }

    /// Writes what was entered before, and ends. What is entered afterwards is never written.
    pub fn close(&self) {
        let Some(writer) = self.writer.lock().take() else { return };
        self.shared.stops.store(true, Ordering::Release);
        writer.thread().unpark();
        if writer.join().is_err() {
            tracing::error!("the thread that writes operations panicked");
        }
    }
}

impl Drop for OperationLog {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn new(kinds: &'static [(&'static str, &'static str)], held_max: usize) -> Self {
        Shared {
            kinds,
            shards: (0..SHARDS).map(|_| Mutex::new(Vec::with_capacity(held_max))).collect(),
            held_max,
            dropped: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            stops: AtomicBool::new(false),
        }
    }

    fn enter(&self, kind: usize, count: usize, took: Duration, status: u16) {
        if count == 0 {
            return;
        }
        let duration_us = u32::try_from(took.as_micros()).unwrap_or(u32::MAX);
        let (kind, count) = (kind as u16, u32::try_from(count).unwrap_or(u32::MAX));
        let entry = Entry { at_us: now_us(), duration_us, count, kind, status };
        let mut held = self.shards[worker_index() % SHARDS].lock();
        if held.len() < self.held_max {
            held.push(entry);
        } else {
            drop(held);
            self.dropped.fetch_add(count.into(), Ordering::Relaxed);
        }
    }

    /// Writes what is entered, until it is told to stop.
    fn write_to(&self, mut log: Box<dyn EventLog>, account: Option<&Account>) {
        let mut writing = Writing { spare: Vec::with_capacity(self.held_max), line: Vec::new(), told: 0 };
        loop {
            let stops = self.stops.load(Ordering::Acquire);
            self.write_once(&mut *log, &mut writing);
            if stops {
                return self.end(&mut *log, account);
            }
            std::thread::park_timeout(WRITE_EVERY);
        }
    }

    /// Ends the log, and says how much is missing in it of which it does not tell.
    fn end(&self, log: &mut dyn EventLog, account: Option<&Account>) {
        let untold = log.end();
        self.lost.store(log.lost(), Ordering::Relaxed);
        if untold > 0 {
            tracing::error!(untold, "operations are missing in the log, which does not say so");
        }
        if let Some(Err(error)) = account.map(|account| account.end(untold)) {
            tracing::error!(%error, untold, "it cannot be written down how many operations are missing in the log");
        }
    }

    /// Writes what was entered until now.
    fn write_once(&self, log: &mut dyn EventLog, Writing { spare, line, told }: &mut Writing) {
        for shard in &self.shards {
            std::mem::swap(&mut *shard.lock(), spare);
            for Entry { at_us, duration_us, count, kind, status } in spare.drain(..) {
                let (entity, operation) = self.kinds.get(usize::from(kind)).copied().unwrap_or_default();
                line.clear();
                // a vector takes everything
                let _ = write!(line, "{at_us},{entity},{operation},{duration_us},{status}");
                let taken = (0..count).filter(|_| log.append(line)).count() as u64;
                self.dropped.fetch_add(u64::from(count) - taken, Ordering::Relaxed);
            }
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > *told {
            if *told == 0 {
                tracing::warn!("operations are missing in the log: more are done than can be written");
            }
            log.missing(dropped - *told);
            *told = dropped;
        }
        log.flush();
        self.lost.store(log.lost(), Ordering::Relaxed);
    }
}

/// What the writing thread has.
struct Writing {
    /// Takes the place of the buffer whose entries are written.
    spare: Vec<Entry>,
    line: Vec<u8>,
    /// Missing operations of which the log was told.
    told: u64,
}

fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KINDS: &[(&str, &str)] = &[("A", "get"), ("B", "store")];

    /// Takes so many lines, and keeps them.
    #[derive(Default)]
    struct Kept {
        room: usize,
        lines: Vec<String>,
        lost: u64,
    }

    impl EventLog for Kept {
        fn append(&mut self, event: &[u8]) -> bool {
            let fits = self.lines.len() < self.room;
            if fits {
                self.lines.push(String::from_utf8(event.to_vec()).unwrap());
            }
            fits
        }

        fn missing(&mut self, count: u64) {
            self.lines.push(format!("#dropped {count}"));
        }

        fn flush(&mut self) {}

        fn end(&mut self) -> u64 {
            self.lost
        }

        fn lost(&self) -> u64 {
            self.lost
        }
    }

    fn writing() -> Writing {
        Writing { spare: Vec::with_capacity(2), line: Vec::new(), told: 0 }
    }

    #[test]
    fn what_is_held_is_bounded_and_the_rest_is_counted() {
        let (shared, mut log, mut writing) = (Shared::new(KINDS, 2), Kept::default(), writing());
        log.room = 100;
        let before = now_us();
        for status in [200, 404, 503] {
            shared.enter(1, 3, Duration::from_micros(7), status);
        }
        shared.enter(0, 0, Duration::ZERO, 200);
        shared.write_once(&mut log, &mut writing);
        let (told, lines) = log.lines.split_last().unwrap();
        assert_eq!(told, "#dropped 3", "of the third entry, which found two held");
        let ends: Vec<&str> = lines.iter().map(|line| line.split_once(',').unwrap().1).collect();
        assert_eq!(ends, [["B,store,7,200"; 3], ["B,store,7,404"; 3]].concat());
        assert!(lines.iter().all(|line| line.split(',').next().unwrap().parse::<u64>().unwrap() >= before));

        // there is room again, and what is missing is told once; a spare buffer is as large as the one it replaces
        for _ in 0..3 {
            log.lines.clear();
            shared.enter(0, 1, Duration::from_secs(1), 200);
            shared.write_once(&mut log, &mut writing);
            assert_eq!(log.lines.len(), 1);
            assert!(log.lines[0].ends_with(",A,get,1000000,200"));
        }
        assert!(shared.shards.iter().all(|shard| shard.lock().capacity() == 2));
        assert_eq!(shared.dropped.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn what_the_log_behind_does_not_take_or_loses_is_counted() {
        let (shared, mut log, mut writing) = (Shared::new(KINDS, 2), Kept::default(), writing());
        (log.room, log.lost) = (2, 5);
        shared.enter(0, 3, Duration::ZERO, 200);
        shared.write_once(&mut log, &mut writing);
        assert_eq!(log.lines.last().unwrap(), "#dropped 1");
        let operations = OperationLog { shared: Arc::new(shared), writer: Mutex::new(None) };
        assert_eq!(operations.dropped(), 6);

        let dir = tempfile::tempdir().unwrap();
        let account = Account::begin(&dir.path().join("account"), "elsewhere").unwrap();
        operations.shared.end(&mut log, Some(&account));
        let said = std::fs::read_to_string(dir.path().join("account")).unwrap();
        assert!(said.ends_with("#dropped 5\n#ended\n"), "{said}");
    }
}
