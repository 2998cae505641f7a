//! The engines of others behind one seam, each written to by one thread that commits in groups, as ours are.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use redb::backends::FileBackend;
use redb::{BackendError, ReadableDatabase, ReadableTableMetadata, StorageBackend, TableDefinition};
use tokio::sync::{mpsc, oneshot};

/// Whatever goes wrong ends the measurement.
pub type Wrong = Box<dyn std::error::Error + Send + Sync>;

/// Memory for what was read, the same for both, bytes.
const CACHE_BYTES: usize = 64 << 20;
/// Most writes in a group, as ours has it.
const GROUP_MAX: usize = 4096;
/// Writes that wait for the committer.
const QUEUE: usize = 8192;

/// Which of two tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Messages, or bookings.
    First,
    /// Sessions.
    Second,
}

/// One key, put or removed.
pub struct Write {
    /// Where.
    pub table: Table,
    /// The key.
    pub key: Vec<u8>,
    /// The value; none to remove it.
    pub value: Option<Vec<u8>>,
}

/// An engine that keeps keys in order.
pub trait Engine: Send + Sync + 'static {
    /// Writes a group as one, durable as it was opened.
    fn commit(&self, group: &[Write]) -> Result<(), Wrong>;
    /// The value of a key.
    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Wrong>;
    /// Tells all that begins so, in order.
    fn scan(&self, table: Table, prefix: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Wrong>;
    /// How many keys there are, exactly.
    fn count(&self, table: Table) -> Result<u64, Wrong>;
}

/// Opens an engine by its name.
pub fn open(name: &str, dir: &Path, synced: bool) -> Result<Arc<dyn Engine>, Wrong> {
    Ok(match name {
        "fjall" => Arc::new(Fjall::open(dir, synced)?),
        "redb" => Arc::new(Redb::open(dir, synced)?),
        name => return Err(format!("there is no engine {name}").into()),
    })
}

struct Fjall {
    db: Database,
    tables: [Keyspace; 2],
    mode: PersistMode,
}

impl Fjall {
    fn open(dir: &Path, synced: bool) -> Result<Self, Wrong> {
        let db = Database::builder(dir).cache_size(CACHE_BYTES as u64).open()?;
        let tables = [
            db.keyspace("first", KeyspaceCreateOptions::default)?,
            db.keyspace("second", KeyspaceCreateOptions::default)?,
        ];
        Ok(Fjall { db, tables, mode: if synced { PersistMode::SyncData } else { PersistMode::Buffer } })
    }
}

impl Engine for Fjall {
    fn commit(&self, group: &[Write]) -> Result<(), Wrong> {
        let mut batch = self.db.batch().durability(Some(self.mode));
        for Write { table, key, value } in group {
            let table = &self.tables[*table as usize];
            match value {
                Some(value) => batch.insert(table, &key[..], &value[..]),
                None => batch.remove(table, &key[..]),
            }
        }
        Ok(batch.commit()?)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Wrong> {
        Ok(self.tables[table as usize].get(key)?.map(|value| value.to_vec()))
    }

    fn scan(&self, table: Table, prefix: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Wrong> {
        for found in self.tables[table as usize].prefix(prefix) {
            let (key, value) = found.into_inner()?;
            each(&key, &value);
        }
        Ok(())
    }

    fn count(&self, table: Table) -> Result<u64, Wrong> {
        Ok(self.tables[table as usize].len()? as u64)
    }
}

/// redb syncs or keeps in memory; to hand data to the operating system only, its file does not sync.
#[derive(Debug)]
struct NoSync(FileBackend);

impl StorageBackend for NoSync {
    fn len(&self) -> Result<u64, io::Error> {
        self.0.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        self.0.read(offset, out)
    }
    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        self.0.set_len(len)
    }
    fn sync_data(&self) -> Result<(), io::Error> {
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        self.0.write(offset, data)
    }
    fn close(&self) -> Result<(), io::Error> {
        self.0.close()
    }
    fn try_lock_range(
        &self,
        start: std::ops::Bound<u64>,
        end: std::ops::Bound<u64>,
    ) -> Result<bool, BackendError> {
        self.0.try_lock_range(start, end)
    }
}

struct Redb {
    db: redb::Database,
}

const TABLES: [TableDefinition<&[u8], &[u8]>; 2] =
    [TableDefinition::new("first"), TableDefinition::new("second")];

impl Redb {
    fn open(dir: &Path, synced: bool) -> Result<Self, Wrong> {
        let path = dir.join("redb");
        let mut builder = redb::Database::builder();
        builder.set_cache_size(CACHE_BYTES);
        let db = match synced {
            true => builder.create(path)?,
            false => {
                let mut options = std::fs::File::options();
                let file = options.read(true).write(true).create(true).truncate(false).open(path)?;
                builder.create_with_backend(NoSync(FileBackend::new(file).map_err(io::Error::other)?))?
            }
        };
        let made = db.begin_write()?;
        for table in TABLES {
            made.open_table(table)?;
        }
        made.commit()?;
        Ok(Redb { db })
    }
}

impl Engine for Redb {
    fn commit(&self, group: &[Write]) -> Result<(), Wrong> {
        let transaction = self.db.begin_write()?;
        {
            let mut tables = [transaction.open_table(TABLES[0])?, transaction.open_table(TABLES[1])?];
            for Write { table, key, value } in group {
                let table = &mut tables[*table as usize];
                match value {
                    Some(value) => drop(table.insert(&key[..], &value[..])?),
                    None => drop(table.remove(&key[..])?),
                }
            }
        }
        Ok(transaction.commit()?)
    }

    fn get(&self, table: Table, key: &[u8]) -> Result<Option<Vec<u8>>, Wrong> {
        let table = self.db.begin_read()?.open_table(TABLES[table as usize])?;
        Ok(table.get(key)?.map(|value| value.value().to_vec()))
    }

    fn scan(&self, table: Table, prefix: &[u8], each: &mut dyn FnMut(&[u8], &[u8])) -> Result<(), Wrong> {
        let table = self.db.begin_read()?.open_table(TABLES[table as usize])?;
        for found in table.range(prefix..)? {
            let (key, value) = found?;
            if !key.value().starts_with(prefix) {
                break;
            }
            each(key.value(), value.value());
        }
        Ok(())
    }

    fn count(&self, table: Table) -> Result<u64, Wrong> {
        Ok(self.db.begin_read()?.open_table(TABLES[table as usize])?.len()?)
    }
}

type Waiting = (Write, oneshot::Sender<()>);

/// The thread that commits what waits, all of it at once.
#[derive(Clone)]
pub struct Committer {
    queue: mpsc::Sender<Waiting>,
    counted: Arc<Counted>,
}

/// What was committed.
#[derive(Default)]
struct Counted {
    groups: AtomicU64,
    commit_us: AtomicU64,
}

impl Committer {
    /// Starts it; what goes wrong ends the program.
    pub fn start(engine: Arc<dyn Engine>) -> Self {
        let (queue, mut receiver) = mpsc::channel::<Waiting>(QUEUE);
        let committer = Committer { queue, counted: Arc::default() };
        let counted = committer.counted.clone();
        std::thread::spawn(move || {
            let (mut waiting, mut group, mut answers) = (Vec::new(), Vec::new(), Vec::new());
            while receiver.blocking_recv_many(&mut waiting, GROUP_MAX) > 0 {
                for (write, answer) in waiting.drain(..) {
                    group.push(write);
                    answers.push(answer);
                }
                let begun = Instant::now();
                let committed = engine.commit(&group);
                counted.groups.fetch_add(1, Ordering::Relaxed);
                counted.commit_us.fetch_add(begun.elapsed().as_micros() as u64, Ordering::Relaxed);
                if let Err(error) = committed {
                    eprintln!("a group was not committed: {error}");
                    std::process::exit(1);
                }
                group.clear();
                answers.drain(..).for_each(|answer| _ = answer.send(()));
            }
        });
        committer
    }

    /// Groups so far, and microseconds that committing them took.
    pub fn groups(&self) -> (u64, u64) {
        (self.counted.groups.load(Ordering::Relaxed), self.counted.commit_us.load(Ordering::Relaxed))
    }

    /// Writes, and waits until it is durable.
    pub async fn write(&self, table: Table, key: Vec<u8>, value: Option<Vec<u8>>) -> Result<(), Wrong> {
        let (answer, answered) = oneshot::channel();
        self.queue.send((Write { table, key, value }, answer)).await?;
        Ok(answered.await?)
    }
}
