//! Files of results: at every moment the old one or the new one is there, whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};

/// Names that are tried for a new file.
const ATTEMPTS: u32 = 100;

/// Writes a result to a file as an [`OutputFile`].
///
/// # Errors
/// Why it cannot be written. Where only the last step failed, the message says which file has the result.
///
/// ```
/// use std::io::Write;
///
/// let folder = tempfile::tempdir()?;
/// let file = folder.path().join("result.json");
/// tidemark_record::write_output(&file, |to| to.write_all(b"{}"))?;
/// assert_eq!(std::fs::read(&file)?, b"{}");
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn write_output(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    let mut output = OutputFile::begin(path)?;
    write(&mut output)?;
    output.finish()
}

/// A file that takes its place when all of it is written; until then the old one stays, also where this one is dropped. The
/// new file has the owner and the mode of the old one, and no one else can read it meanwhile. What a link leads to is
/// replaced, and not the link; a FIFO, a device, or a file that cannot be replaced is written to.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// Where it is meanwhile, and the file whose place it takes; none where it is written to.
    replaces: Option<(PathBuf, PathBuf)>,
    /// Whether what stood in the file before is gone.
    is_begun: bool,
}

impl OutputFile {
    /// Makes it.
    ///
    /// # Errors
    /// Why it cannot be written.
    pub fn begin(path: &Path) -> io::Result<OutputFile> {
        let made = replaceable(path).and_then(|(target, old)| {
            // nothing can be made beside it, or its name leaves no room for more; the file itself may be open to all
            let (file, temporary) = made_beside(&target, old.as_ref()).ok()?;
            Some(OutputFile { file, replaces: Some((temporary, target)), is_begun: true })
        });
        let in_place = || {
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
            Ok(OutputFile { file, replaces: None, is_begun: false })
        };
        made.map_or_else(in_place, Ok)
    }

    /// All of it is written: it takes its place.
    ///
    /// # Errors
    /// Why it cannot. Where all of it is on the disk, the message says in which file.
    pub fn finish(self) -> io::Result<()> {
        self.finish_by(|from, to| fs::rename(from, to))
    }

    fn finish_by(mut self, rename: impl FnOnce(&Path, &Path) -> io::Result<()>) -> io::Result<()> {
        self.empty()?;
        let Some((temporary, target)) = &self.replaces else { return self.file.flush() };
        synced(&self.file)?;
        if rename(temporary, target).is_ok() {
            self.replaces = None;
            return Ok(());
        }
        // something is mounted there, or its folder lets no one else's file go
        let copied =
            self.file.rewind().and_then(|()| io::copy(&mut self.file, &mut File::create(target)?)).map_err(
                |error| {
                    io::Error::new(error.kind(), format!("{error}; the result is in {}", temporary.display()))
                },
            );
        if copied.is_err() {
            self.replaces = None;
        }
        copied.map(drop)
    }

    /// Empties a file that is written in place, before the first write. A FIFO and a device stay as they are.
    fn empty(&mut self) -> io::Result<()> {
        if !self.is_begun {
            self.is_begun = true;
            if self.file.metadata()?.is_file() {
                self.file.set_len(0)?;
            }
        }
        Ok(())
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.empty()?;
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some((temporary, _)) = &self.replaces {
            // the disk may be full because of it
            let _ = fs::remove_file(temporary);
        }
    }
}

/// A new file beside another, and where it is. One that a killed process left is passed over.
fn made_beside(target: &Path, old: Option<&fs::Metadata>) -> io::Result<(File, PathBuf)> {
    let mut attempt = 0;
    loop {
        let temporary = beside(target, attempt);
        match made(&temporary, old) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && attempt < ATTEMPTS => attempt += 1,
            made => return made.map(|file| (file, temporary)),
        }
    }
}

/// A new file, with the owner and the mode of the one whose place it takes; none is left where that cannot be.
fn made(path: &Path, old: Option<&fs::Metadata>) -> io::Result<File> {
    let mode = if old.is_some() { 0o600 } else { 0o666 };
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)?;
    let Some(old) = old else { return Ok(file) };
    let like_old = file.metadata().and_then(|new| {
        if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
            fchown(&file, Some(old.uid()), Some(old.gid()))?;
        }
        file.set_permissions(old.permissions())
    });
    if like_old.is_err() {
        let _ = fs::remove_file(path);
    }
    like_old.map(|()| file)
}

/// Waits until all of a file is on the disk, where there is one.
fn synced(file: &File) -> io::Result<()> {
    match file.sync_all() {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) => Ok(()),
        synced => synced,
    }
}

/// The file that a new one can take the place of, and what is there now; none where it has to be written in its place.
fn replaceable(path: &Path) -> Option<(PathBuf, Option<fs::Metadata>)> {
    let target = match fs::symlink_metadata(path) {
        Err(_) => return Some((path.to_owned(), None)),
        // one that leads nowhere makes what it names
        Ok(there) if there.is_symlink() => fs::canonicalize(path).ok()?,
        Ok(_) => path.to_owned(),
    };
    let old = fs::metadata(&target).ok()?;
    // another name of the same file keeps its content, and a file that may not be written is not replaced
    (old.is_file() && old.nlink() == 1 && !old.permissions().readonly()).then_some((target, Some(old)))
}

fn beside(target: &Path, attempt: u32) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.{attempt}.tmp", std::process::id()));
    target.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn put(path: &Path, text: &str) -> io::Result<()> {
        write_output(path, |to| to.write_all(text.as_bytes()))
    }

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_whole_or_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        put(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let cut = write_output(&file, |to| {
            to.write_all(b"half of")?;
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        drop(OutputFile::begin(&file).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old", "nobody finished it");
        // a killed process of the same number left its file
        let left = beside(&file, 0);
        fs::write(&left, "left").unwrap();
        let mut output = OutputFile::begin(&file).unwrap();
        output.write_all(b"half").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "old", "written beside it");
        drop(output);
        fs::remove_file(&left).unwrap();
        // one with another name is written in place, once there is something to write
        let linked = folder.path().join("linked.json");
        fs::hard_link(&file, &linked).unwrap();
        drop(OutputFile::begin(&file).unwrap());
        assert_eq!(fs::read_to_string(&file).unwrap(), "old", "nothing was written");
        put(&file, "in place").unwrap();
        assert_eq!(fs::read_to_string(&linked).unwrap(), "in place");
        fs::remove_file(&linked).unwrap();
        put(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["r.json"]);
    }

    #[test]
    fn a_file_that_cannot_be_replaced_is_written_in_place() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        for error in [
            ErrorKind::ResourceBusy,
            ErrorKind::CrossesDevices,
            ErrorKind::PermissionDenied,
            ErrorKind::Other,
        ] {
            put(&file, "an old and longer one").unwrap();
            let before = fs::metadata(&file).unwrap().ino();
            let mut output = OutputFile::begin(&file).unwrap();
            output.write_all(b"new").unwrap();
            output.finish_by(|_, _| Err(error.into())).unwrap();
            assert_eq!(fs::read_to_string(&file).unwrap(), "new", "{error}");
            assert_eq!(fs::metadata(&file).unwrap().ino(), before);
            assert_eq!(names(folder.path()), ["r.json"]);
        }
        // not even that: nothing is lost
        let mut output = OutputFile::begin(&file).unwrap();
        output.write_all(b"whole").unwrap();
        let gone = output.finish_by(|_, to| {
            fs::remove_file(to)?;
            fs::create_dir(to)?;
            Err(ErrorKind::Other.into())
        });
        let told = gone.unwrap_err().to_string();
        let (_, kept) = told.split_once("; the result is in ").unwrap();
        assert_eq!(fs::read_to_string(kept).unwrap(), "whole");
    }

    #[test]
    fn a_new_file_is_its_owners_from_the_begin() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("r.json");
        put(&file, "old").unwrap();
        let is_root = fs::metadata(&file).unwrap().uid() == 0;
        for mode in [0o600, 0o640, 0o664] {
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            if is_root {
                std::os::unix::fs::chown(&file, Some(1234), Some(1235)).unwrap();
            }
            let of = |path: &Path| {
                let is = fs::metadata(path).unwrap();
                (is.uid(), is.gid(), is.permissions().mode() & 0o777)
            };
            let before = of(&file);
            write_output(&file, |to| {
                assert_eq!(of(&beside(&file, 0)), before, "before anything is in it");
                to.write_all(b"new")
            })
            .unwrap();
            assert_eq!(of(&file), before);
        }
    }

    #[test]
    fn links_stay_and_what_they_lead_to_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str| folder.path().join(name);
        put(&of("real"), "old").unwrap();
        symlink("real", of("link")).unwrap();
        symlink("made", of("nowhere")).unwrap();
        fs::hard_link(of("real"), of("other")).unwrap();
        for (name, behind) in [("link", "real"), ("other", "real"), ("nowhere", "made")] {
            put(&of(name), name).unwrap();
            assert_eq!(fs::read_to_string(of(behind)).unwrap(), name);
        }
        assert!(fs::symlink_metadata(of("link")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(of("nowhere")).unwrap().is_symlink());
        assert_eq!(names(folder.path()), ["link", "made", "nowhere", "other", "real"]);
    }

    #[test]
    fn devices_and_fifos_are_written_to() {
        put(Path::new("/dev/null"), "x").unwrap();
        let full = put(Path::new("/dev/full"), "x").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        assert!(!fs::metadata("/dev/null").unwrap().is_file());

        let folder = tempfile::tempdir().unwrap();
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let reader = {
            let fifo = fifo.clone();
            std::thread::spawn(move || fs::read_to_string(fifo).unwrap())
        };
        put(&fifo, "through it").unwrap();
        assert_eq!(reader.join().unwrap(), "through it");
        assert_eq!(names(folder.path()), ["fifo"]);
    }

    #[test]
    fn a_folder_in_its_place_is_an_error_and_a_long_name_is_none() {
        let folder = tempfile::tempdir().unwrap();
        assert!(put(folder.path(), "x").is_err());
        assert!(put(&folder.path().join("none/r.json"), "x").is_err());
        let long = folder.path().join("n".repeat(255));
        put(&long, "x").unwrap();
        put(&long, "y").unwrap();
        assert_eq!(fs::read_to_string(&long).unwrap(), "y");
    }
}
