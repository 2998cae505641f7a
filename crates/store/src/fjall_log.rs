//! fjall (an embedded LSM tree in pure Rust) as the durable log.
//!
//! A group becomes one atomic fjall batch: in fjall's journal it stands between a start mark with the number of
//! items and an end mark with a checksum, and a batch without its end is cut off when the directory is opened again.
//! That is how a torn tail (a process killed in the middle of a write) is told from what was acknowledged.
//!
//! `commit` with manual journal persistence only fills fjall's own 8 KiB buffer, so persisting is always explicit:
//! `PersistMode::Buffer` flushes that buffer with `write(2)`, after which the death of the process loses
//! nothing; `PersistMode::SyncData` adds `fdatasync`. When fjall turns to a new journal file in between, it syncs the
//! old one itself first.
//!
//! Nothing is ever read from fjall but at the start, so its block cache is small and it builds no Bloom filters.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use fjall::config::{FilterPolicy, FilterPolicyEntry};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, OwnedWriteBatch, PersistMode};

use crate::change::Change;
use crate::commit::Log;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::index::Index;
use crate::metrics::Recovered;
use crate::record::{self, CustomerRecord, Interned, Malformed};

/// Read once, at the start.
const BLOCK_CACHE_BYTES: u64 = 8 * 1024 * 1024;
/// One, because of two fjall keeps one spinning while the other compacts. What is here is small enough to take turns.
const WORKER_THREADS: usize = 1;
/// fjall's own memory of what is not in its tables yet, for each keyspace. Smaller, and the next start is quicker;
/// larger, and bursts are longer that fjall takes without halting the committer (it does when four are full).
const MEMTABLE_BYTES: u64 = 32 * 1024 * 1024;

/// The log in a directory.
pub(crate) struct FjallLog {
    dir: PathBuf,
    database: Database,
    sessions: Keyspace,
    customers: Keyspace,
    bookings: Keyspace,
    persist_mode: PersistMode,
}

impl FjallLog {
    /// Opens the directory, making it if need be, and locks it.
    pub(crate) fn open(dir: &Path, durability: Durability) -> Result<Self, StoreError> {
        let open_error = |error: fjall::Error| describe(dir, &error);
        make_dir(dir)
            .map_err(|error| StoreError::Open { dir: dir.into(), reason: error.to_string().into() })?;
        let database = Database::builder(dir)
            .manual_journal_persist(true)
            .cache_size(BLOCK_CACHE_BYTES)
            .worker_threads(WORKER_THREADS)
            .open()
            .map_err(open_error)?;
        let keyspace = |name| database.keyspace(name, keyspace_options).map_err(open_error);
        Ok(FjallLog {
            sessions: keyspace("sessions")?,
            customers: keyspace("customers")?,
            bookings: keyspace("bookings")?,
            dir: dir.into(),
            database,
            persist_mode: match durability {
                Durability::Memory | Durability::Buffered => PersistMode::Buffer,
                Durability::Synced => PersistMode::SyncData,
            },
        })
    }

    /// Fills the index with everything that is there; tells how much, and the number for the next booking.
    pub(crate) fn recover(&self, index: &Index) -> Result<(Recovered, u64), StoreError> {
        let begun = Instant::now();
        self.each(&self.sessions, "session", |key, value| {
            index.apply(Change::PutSession(record::read_session(key, value)?));
            Ok(())
        })?;
        self.each(&self.customers, "customer", |_, value| {
            index.apply(Change::PutCustomers(vec![CustomerRecord::from_log(value)?]));
            Ok(())
        })?;
        let mut bookings = Vec::new();
        let mut segments = Interned::default();
        self.each(&self.bookings, "booking", |key, value| {
            let (number, mut booking) = record::read_booking(key, value)?;
            booking.flight_segment_id = segments.get(&booking.flight_segment_id);
            bookings.push((number, booking));
            Ok(())
        })?;
        bookings.sort_unstable_by_key(|(number, _)| *number);
        let next_number = bookings.last().map_or(0, |(number, _)| number + 1);
        for (first_number, booking) in bookings {
            index.apply(Change::AddBookings { bookings: vec![booking], first_number });
        }
        let recovered = Recovered {
            sessions: index.session_count(),
            customers: index.customer_count(),
            bookings: index.booking_count(),
            took: begun.elapsed(),
        };
        Ok((recovered, next_number))
    }

    /// Calls `take` for every record of a keyspace.
    fn each(
        &self,
        keyspace: &Keyspace,
        what: &str,
        mut take: impl FnMut(&[u8], &[u8]) -> Result<(), Malformed>,
    ) -> Result<(), StoreError> {
        for entry in keyspace.iter() {
            let (key, value) = entry.into_inner().map_err(|error| describe(&self.dir, &error))?;
            take(&key, &value).map_err(|malformed| StoreError::Unreadable {
                dir: self.dir.clone(),
                reason: format!("the {what} with key {}: {malformed}", key.escape_ascii()).into(),
            })?;
        }
        Ok(())
    }

    fn write_down(&self, change: &Change, batch: &mut OwnedWriteBatch) {
        match change {
            Change::PutSession(session) => {
                let key = record::session_key(session.id);
                batch.insert(&self.sessions, key.as_slice(), record::session_value(session));
            }
            Change::RemoveSession(id) => {
                batch.remove(&self.sessions, record::session_key(*id).as_slice());
            }
            Change::RemoveSessions(ids) => {
                for id in ids {
                    batch.remove(&self.sessions, record::session_key(*id).as_slice());
                }
            }
            Change::PutCustomers(records) => {
                for record in records {
                    batch.insert(&self.customers, record.id_bytes(), record.bytes());
                }
            }
            Change::AddBookings { bookings, first_number } => {
                for (booking, number) in bookings.iter().zip(*first_number..) {
                    let key = record::booking_key(&booking.customer_id, booking.id);
                    batch.insert(&self.bookings, key, record::booking_value(booking, number));
                }
            }
            Change::CancelBooking { customer_id, id } => {
                batch.remove(&self.bookings, record::booking_key(customer_id, *id));
            }
        }
    }
}

impl Log for FjallLog {
    fn append(&mut self, changes: &mut dyn Iterator<Item = &Change>) -> Result<(), Arc<str>> {
        let mut batch = OwnedWriteBatch::with_capacity(self.database.clone(), changes.size_hint().0);
        for change in changes {
            self.write_down(change, &mut batch);
        }
        batch.commit().map_err(|error| reason_of(&error))
    }

    fn persist(&mut self) -> Result<(), Arc<str>> {
        self.database.persist(self.persist_mode).map_err(|error| reason_of(&error))
    }

    fn close(&mut self) -> Result<(), Arc<str>> {
        self.database.persist(PersistMode::SyncAll).map_err(|error| reason_of(&error))
    }
}

/// Makes the directory so that it survives a power cut: a new entry is durable once its parent is synced.
pub(crate) fn make_dir(dir: &Path) -> std::io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|path| !path.exists()).collect();
    std::fs::create_dir_all(dir)?;
    for made in missing {
        // A relative path of one part lies in the current directory.
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        #[cfg(unix)] // elsewhere directories cannot be opened as files
        std::fs::File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn keyspace_options() -> KeyspaceCreateOptions {
    KeyspaceCreateOptions::default()
        .max_memtable_size(MEMTABLE_BYTES)
        .filter_policy(FilterPolicy::all(FilterPolicyEntry::None))
}

/// What fjall says, for a person.
fn reason_of(error: &fjall::Error) -> Arc<str> {
    match error {
        fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error)) => {
            error.to_string().into()
        }
        fjall::Error::Poisoned => "the storage engine met an error in the background".into(),
        other => format!("{other:?}").into(),
    }
}

fn describe(dir: &Path, error: &fjall::Error) -> StoreError {
    let (dir, reason) = (dir.to_owned(), reason_of(error));
    match error {
        fjall::Error::Locked => StoreError::Locked { dir },
        fjall::Error::Io(_) | fjall::Error::Storage(fjall::LsmError::Io(_)) => {
            StoreError::Open { dir, reason }
        }
        _ => StoreError::Unreadable { dir, reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::airline::Booking;

    fn add(ids: std::ops::Range<u128>) -> Change {
        let bookings = ids.clone().map(|id| Booking {
            id,
            customer_id: "uid0@email.com".into(),
            flight_id: id * 31,
            flight_segment_id: "AA280".into(),
            booked_ms: id as i64,
        });
        Change::AddBookings { bookings: bookings.collect(), first_number: ids.start as u64 }
    }

    fn append(log: &mut FjallLog, change: Change) {
        log.append(&mut [change].iter()).unwrap();
        log.persist().unwrap();
    }

    fn ids_in(dir: &Path) -> Vec<u128> {
        let index = Index::new();
        FjallLog::open(dir, Durability::Buffered).unwrap().recover(&index).unwrap();
        index.bookings_of("uid0@email.com").iter().map(|booking| booking.id).collect()
    }

    /// The only journal file in the directory.
    fn journal_in(dir: &Path) -> PathBuf {
        let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let journals: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|kind| kind == "jnl")).collect();
        assert_eq!(journals.len(), 1);
        journals[0].clone()
    }

    /// Where the journal's content ends: the file itself is longer, filled with zeros.
    fn content_bytes(journal: &Path) -> Vec<u8> {
        let mut bytes = std::fs::read(journal).unwrap();
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        bytes
    }

    /// A process can die in the middle of a `write(2)`: any prefix of the last group may be there, with or without
    /// zeros behind. The groups before it must all be there, the torn one wholly or not at all, and the log must
    /// take new groups.
    #[test]
    fn a_torn_tail_is_cut_off_at_any_byte() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = FjallLog::open(dir.path(), Durability::Buffered).unwrap();
        append(&mut log, add(0..3));
        let whole_before = content_bytes(&journal_in(dir.path())).len();
        append(&mut log, add(3..6));
        drop(log);
        let journal = journal_in(dir.path());
        let content = content_bytes(&journal);
        assert!(content.len() > whole_before + 100);

        for cut in whole_before..content.len() {
            for zeros in [0, 4096] {
                let mut torn = content[..cut].to_vec();
                torn.resize(cut + zeros, 0);
                std::fs::write(&journal, torn).unwrap();
                assert_eq!(ids_in(dir.path()), [0, 1, 2], "cut at {cut} of {}, {zeros} zeros", content.len());
            }
        }
        append(&mut FjallLog::open(dir.path(), Durability::Buffered).unwrap(), add(6..8));
        assert_eq!(ids_in(dir.path()), [0, 1, 2, 6, 7]);
    }

    #[test]
    fn data_of_another_kind_is_refused_with_its_key() {
        let dir = tempfile::tempdir().unwrap();
        let log = FjallLog::open(dir.path(), Durability::Buffered).unwrap();
        log.customers.insert("uid0", [9, 9, 9].as_slice()).unwrap();
        let error = log.recover(&Index::new()).unwrap_err();
        assert!(matches!(&error, StoreError::Unreadable { .. }), "{error}");
        assert!(error.to_string().contains("customer with key uid0"), "{error}");
    }
}
