//! The files of a store's directory. Everything that a store does with them goes through here, step by step, so that a
//! test can see each step, let it fail, and rebuild what a disk would hold after a power cut: see [`Watch`].

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Something that is done with files. Names are those within the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    /// The names in the directory are read.
    List,
    /// A new empty file takes the place of whatever had its name.
    Create(&'a str),
    /// A file is opened for reading.
    Open(&'a str),
    /// A part of a file is read.
    Read(&'a str),
    /// These bytes are appended to a file, one piece after the other.
    Write(&'a str, [&'a [u8]; 2]),
    /// The bytes of a file, which fit into a sector, become others, all or none.
    Overwrite(&'a str),
    /// The content of a file is made durable.
    Sync(&'a str),
    /// The names in the directory are made durable.
    SyncNames,
    /// The first takes the place of the second.
    Rename(&'a str, &'a str),
    /// A file is removed.
    Remove(&'a str),
}

impl Step<'_> {
    /// The file that it is about.
    fn name(&self) -> Option<&str> {
        match self {
            Step::List | Step::SyncNames => None,
            Step::Rename(_, name)
            | Step::Create(name)
            | Step::Open(name)
            | Step::Read(name)
            | Step::Write(name, _)
            | Step::Overwrite(name)
            | Step::Sync(name)
            | Step::Remove(name) => Some(name),
        }
    }
}

/// Sees each step. An error of either method is what the store gets for an answer.
pub(crate) trait Watch: Send + Sync {
    /// Hears of a step that is about to be taken; it is not taken after an error.
    fn before(&self, step: Step<'_>) -> io::Result<()>;

    /// Hears of a step that was taken, before anybody relies on it.
    fn after(&self, step: Step<'_>) -> io::Result<()>;
}

/// The directory of a store.
#[derive(Clone)]
pub(crate) struct Disk {
    dir: Arc<Path>,
    watch: Option<Arc<dyn Watch>>,
}

impl Disk {
    pub(crate) fn new(dir: &Path, watch: Option<Arc<dyn Watch>>) -> Self {
        Disk { dir: dir.into(), watch }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn step<T>(&self, step: Step<'_>, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let result = match &self.watch {
            None => work(),
            Some(watch) => watch.before(step).and_then(|()| {
                let done = work()?;
                watch.after(step)?;
                Ok(done)
            }),
        };
        result.map_err(|error| match step.name() {
            Some(name) => io::Error::new(error.kind(), format!("{name}: {error}")),
            None => error,
        })
    }

    /// The names of the files, in no order. Names that are no text are none of ours.
    pub(crate) fn names(&self) -> io::Result<Vec<String>> {
        self.step(Step::List, || {
            let mut names = Vec::new();
            for entry in std::fs::read_dir(&self.dir)? {
                names.extend(entry?.file_name().into_string());
            }
            Ok(names)
        })
    }

    /// A new empty file in place of whatever had its name.
    pub(crate) fn create(&self, name: &str) -> io::Result<DiskFile> {
        let mut options = File::options();
        options.write(true).read(true).create(true).truncate(true);
        self.file(Step::Create(name), name, &options)
    }

    /// A file, for reading.
    pub(crate) fn open(&self, name: &str) -> io::Result<DiskFile> {
        self.file(Step::Open(name), name, File::options().read(true))
    }

    fn file(&self, step: Step<'_>, name: &str, options: &std::fs::OpenOptions) -> io::Result<DiskFile> {
        let file = self.step(step, || options.open(self.path(name)))?;
        Ok(DiskFile { disk: self.clone(), name: name.into(), file })
    }

    /// Returns when the directory's names are on disk.
    pub(crate) fn sync_names(&self) -> io::Result<()> {
        self.step(Step::SyncNames, || {
            #[cfg(unix)] // elsewhere directories cannot be opened as files
            File::open(&self.dir)?.sync_all()?;
            Ok(())
        })
    }

    /// Puts a file with this content in place of the one that has its name, so that either is there after a power
    /// cut, whole. It is open afterwards.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> io::Result<DiskFile> {
        let file = self.create(&format!("{name}.new"))?;
        file.write([content, &[]])?;
        self.publish(file, name)
    }

    /// Makes a file durable and gives it its name.
    pub(crate) fn publish(&self, mut file: DiskFile, name: &str) -> io::Result<DiskFile> {
        file.sync()?;
        let beside = std::mem::replace(&mut file.name, name.into());
        self.step(Step::Rename(&beside, name), || std::fs::rename(self.path(&beside), self.path(name)))?;
        self.sync_names()?;
        Ok(file)
    }

    /// Removes what nothing refers to any more; one that stays, or comes back after a power cut, does no harm.
    pub(crate) fn remove(&self, name: &str) {
        let path = self.path(name);
        if let Err(error) = self.step(Step::Remove(name), || std::fs::remove_file(&path)) {
            tracing::warn!(file = %path.display(), %error, "a file that is no longer needed stays");
        }
    }
}

/// A file that is open.
pub(crate) struct DiskFile {
    disk: Disk,
    name: String,
    file: File,
}

impl DiskFile {
    /// The same file for another thread.
    pub(crate) fn twin(&self) -> io::Result<Self> {
        Ok(DiskFile { disk: self.disk.clone(), name: self.name.clone(), file: self.file.try_clone()? })
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Hands these bytes, one piece after the other, to the operating system.
    pub(crate) fn write(&self, pieces: [&[u8]; 2]) -> io::Result<()> {
        let DiskFile { disk, name, file } = self;
        disk.step(Step::Write(name, pieces), || write_both(file, pieces))
    }

    /// Hands to the operating system what takes the place of the file's bytes: as many, and no more than a sector.
    pub(crate) fn overwrite(&self, bytes: &[u8]) -> io::Result<()> {
        self.disk.step(Step::Overwrite(&self.name), || write_at_start(&self.file, bytes))
    }

    /// Returns when its content is on disk.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.disk.step(Step::Sync(&self.name), || self.file.sync_data())
    }

    /// Fills `buffer` with what it has at `offset`.
    pub(crate) fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.disk.step(Step::Read(&self.name), || read_at(&self.file, buffer, offset))
    }
}

fn write_both(mut file: &File, [head, rest]: [&[u8]; 2]) -> io::Result<()> {
    let written = loop {
        match file.write_vectored(&[IoSlice::new(head), IoSlice::new(rest)]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => break result?,
        }
    };
    if written < head.len() {
        file.write_all(&head[written..])?;
    }
    file.write_all(&rest[written.saturating_sub(head.len())..])
}

#[cfg(unix)]
fn write_at_start(file: &File, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, 0)
}

#[cfg(windows)]
fn write_at_start(mut file: &File, bytes: &[u8]) -> io::Result<()> {
    io::Seek::seek(&mut file, io::SeekFrom::Start(0))?;
    file.write_all(bytes)
}

#[cfg(unix)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, buffer, offset)
}

#[cfg(windows)]
fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<()> {
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
