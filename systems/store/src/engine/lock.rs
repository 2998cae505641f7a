//! The lock on a store's directory, and the directory itself.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::error::StoreError;

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
