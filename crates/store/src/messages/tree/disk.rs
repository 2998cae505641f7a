//! Files and the order in which they become durable. Everything that must survive a power cut goes through here, so
//! that a test can see each completed sync and rebuild what a disk would hold after it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What has become durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Synced<'a> {
    /// The content of this file.
    File(&'a Path),
    /// The names in the directory.
    Names,
}

/// Hears of each completed sync, before anybody relies on it.
pub(crate) type Observer = Arc<dyn Fn(Synced<'_>) + Send + Sync>;

/// The directory of a store.
#[derive(Clone)]
pub(crate) struct Disk {
    dir: PathBuf,
    observer: Option<Observer>,
}

impl Disk {
    pub(crate) fn new(dir: &Path, observer: Option<Observer>) -> Self {
        Disk { dir: dir.into(), observer }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// A new empty file in place of whatever had its name.
    pub(crate) fn create(&self, name: &str) -> io::Result<File> {
        File::options().write(true).read(true).create(true).truncate(true).open(self.path(name))
    }

    pub(crate) fn open(&self, name: &str) -> io::Result<File> {
        File::open(self.path(name))
    }

    /// Returns when the file's content is on disk.
    pub(crate) fn sync(&self, name: &str, file: &File) -> io::Result<()> {
        file.sync_data()?;
        self.observe(|| Synced::File(Path::new(name)));
        Ok(())
    }

    /// Returns when the directory's names are on disk.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        #[cfg(unix)] // elsewhere directories cannot be opened as files
        File::open(&self.dir)?.sync_all()?;
        self.observe(|| Synced::Names);
        Ok(())
    }

    /// Puts a file with this content in place of the one that has its name, so that either is there after a power
    /// cut, whole.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> io::Result<()> {
        let beside = format!("{name}.new");
        let mut file = self.create(&beside)?;
        io::Write::write_all(&mut file, content)?;
        self.sync(&beside, &file)?;
        std::fs::rename(self.path(&beside), self.path(name))?;
        self.sync_names()
    }

    /// Removes what nothing refers to any more; one that comes back after a power cut does no harm.
    pub(crate) fn remove(&self, name: &str) {
        if let Err(error) = std::fs::remove_file(self.path(name)) {
            tracing::warn!(file = %self.path(name).display(), %error, "a file that is no longer needed stays");
        }
    }

    fn observe<'a>(&self, what: impl FnOnce() -> Synced<'a>) {
        if let Some(observer) = &self.observer {
            observer(what());
        }
    }
}

/// Fills `buffer` with what the file has at `offset`.
pub(crate) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset);
    #[cfg(windows)]
    {
        let mut filled = 0;
        while filled < buffer.len() {
            let at = offset + filled as u64;
            match std::os::windows::fs::FileExt::seek_read(file, &mut buffer[filled..], at)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                read => filled += read,
            }
        }
        Ok(())
    }
}
