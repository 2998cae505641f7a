//! Files of one directory, and the order in which they become durable. Whatever must survive goes through here, so
//! that a test can hear of each act, make any of them fail, and rebuild what a disk would hold after a power cut.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::StoreError;

/// What is done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act<'a> {
    Open(&'a str),
    Create(&'a str),
    Write(&'a str),
    /// The content of a file becomes durable.
    Sync(&'a str),
    Rename {
        from: &'a str,
        to: &'a str,
    },
    /// The names in the directory become durable.
    SyncNames,
    Remove(&'a str),
}

/// Hears of each act. Only tests have one.
pub(crate) trait Witness: Send + Sync {
    /// Before an act, which fails with the error that this gives.
    fn before(&self, act: Act<'_>) -> io::Result<()>;
    /// After an act that succeeded, before anybody relies on it.
    fn after(&self, act: Act<'_>);
}

/// The files of one directory.
#[derive(Clone)]
pub(crate) struct Files {
    dir: PathBuf,
    witness: Option<Arc<dyn Witness>>,
}

impl Files {
    pub(crate) fn new(dir: &Path, witness: Option<Arc<dyn Witness>>) -> Self {
        Files { dir: dir.into(), witness }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn witnessed<T>(&self, act: Act<'_>, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let Some(witness) = &self.witness else { return work() };
        witness.before(act)?;
        let done = work()?;
        witness.after(act);
        Ok(done)
    }

    /// A file to read from its beginning.
    pub(crate) fn open(&self, name: &str) -> io::Result<File> {
        self.witnessed(Act::Open(name), || File::open(self.dir.join(name)))
    }

    /// All of a small file, nothing if there is none. At most `limit` bytes are read.
    pub(crate) fn read(&self, name: &str, limit: usize) -> io::Result<Option<Vec<u8>>> {
        let file = match self.open(name) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let mut bytes = Vec::new();
        file.take(limit as u64).read_to_end(&mut bytes)?;
        Ok(Some(bytes))
    }

    /// A new empty file, in place of one that has its name.
    pub(crate) fn create(&self, name: &str) -> io::Result<Writing> {
        let file = self.witnessed(Act::Create(name), || File::create(self.dir.join(name)))?;
        Ok(Writing { files: self.clone(), name: name.to_owned(), file })
    }

    /// Returns when the directory's names are on disk.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        self.witnessed(Act::SyncNames, || {
            #[cfg(unix)] // elsewhere directories cannot be opened as files
            File::open(&self.dir)?.sync_all()?;
            Ok(())
        })
    }

    /// Removes a file that nothing refers to any more; one that comes back after a power cut must do no harm.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        self.witnessed(Act::Remove(name), || std::fs::remove_file(self.dir.join(name)))
    }

    /// The names of all files whose name is text.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for file in std::fs::read_dir(&self.dir)? {
            names.extend(file?.file_name().into_string());
        }
        Ok(names)
    }
}

/// A file that is being written.
pub(crate) struct Writing {
    files: Files,
    name: String,
    file: File,
}

impl Writing {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Hands the bytes to the operating system. After an error any part of them may be there.
    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let written = self.files.witnessed(Act::Write(&self.name), || (&self.file).write_all(bytes));
        #[cfg(test)] // a disk that fails in a test leaves a part, as real ones do
        if written.is_err() {
            let _ = (&self.file).write_all(&bytes[..bytes.len() / 2]);
        }
        written
    }

    /// Puts a few bytes at the beginning of the file, all or none: they are within one sector.
    pub(crate) fn write_at_start(&self, bytes: &[u8]) -> io::Result<()> {
        (&self.file).seek(SeekFrom::Start(0))?;
        self.files.witnessed(Act::Write(&self.name), || (&self.file).write_all(bytes))
    }

    /// Returns when the content is on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.files.witnessed(Act::Sync(&self.name), || self.file.sync_data())
    }

    /// Gives the file, whose content is on disk, its name, in place of a file that has it; the name is on disk when
    /// this returns. After a power cut the one or the other has the name, whole.
    pub(crate) fn publish(&mut self, name: &str) -> io::Result<()> {
        let (files, from) = (&self.files, &self.name);
        let rename = || std::fs::rename(files.dir.join(from), files.dir.join(name));
        files.witnessed(Act::Rename { from, to: name }, rename)?;
        self.name = name.to_owned();
        self.files.sync_names()
    }

    /// The same file for another thread.
    pub(crate) fn twin(&self) -> io::Result<Self> {
        Ok(Writing { files: self.files.clone(), name: self.name.clone(), file: self.file.try_clone()? })
    }
}

/// A directory that is ours until this is dropped.
pub(crate) struct Lock(File);

impl Lock {
    /// For a store, which may be made here.
    pub(crate) fn take(dir: &Path) -> Result<Self, StoreError> {
        let file = File::options().create(true).truncate(false).write(true).open(dir.join("lock"));
        Self::of(dir, file, File::try_lock)
    }

    /// For readers, several at a time, of a store that is there.
    pub(crate) fn share(dir: &Path) -> Result<Self, StoreError> {
        Self::of(dir, File::open(dir.join("lock")), File::try_lock_shared)
    }

    fn of(
        dir: &Path,
        file: io::Result<File>,
        lock: impl FnOnce(&File) -> Result<(), TryLockError>,
    ) -> Result<Self, StoreError> {
        let failed =
            |error: io::Error| StoreError::Open { dir: dir.into(), reason: error.to_string().into() };
        let file = file.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                StoreError::Open { dir: dir.into(), reason: "there is no store in it".into() }
            }
            _ => failed(error),
        })?;
        match lock(&file) {
            Ok(()) => Ok(Lock(file)),
            Err(TryLockError::WouldBlock) => Err(StoreError::Locked { dir: dir.into() }),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing alone would leave it locked while a process that is being started still has our files.
        if let Err(error) = self.0.unlock() {
            tracing::warn!(%error, "the store directory cannot be unlocked");
        }
    }
}

/// Makes the directory so that it survives a power cut: a new entry is durable once its parent is synced.
pub(crate) fn make_dir(dir: &Path) -> io::Result<()> {
    let missing: Vec<&Path> = dir.ancestors().take_while(|path| !path.exists()).collect();
    std::fs::create_dir_all(dir)?;
    for made in missing {
        // A relative path of one part lies in the current directory.
        let parent = made.parent().filter(|parent| !parent.as_os_str().is_empty());
        #[cfg(unix)] // elsewhere directories cannot be opened as files
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}
