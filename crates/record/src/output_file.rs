//! Files that a person names for a result: at every moment the old one or the new one is there, whole.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes a result to the file that a person named for it. A file is replaced when all of the new one is written; where that
/// fails, the old one stays. What a link leads to is replaced, and not the link; a FIFO or a device is written to.
///
/// # Errors
/// Why it cannot be written.
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
    let in_place = |write: &mut dyn FnMut(&mut dyn Write) -> io::Result<()>| {
        let mut file = File::create(path)?;
        write(&mut file)?;
        file.flush()
    };
    let mut write = Some(write);
    let mut once = |to: &mut dyn Write| write.take().map_or(Ok(()), |write| write(to));
    let Some((target, old)) = replaceable(path) else { return in_place(&mut once) };
    let temporary = beside(&target);
    let mut file = match OpenOptions::new().write(true).create_new(true).open(&temporary) {
        Ok(file) => file,
        // nothing can be made beside it, or its name leaves no room for more; the file itself may be open to all
        Err(_) => return in_place(&mut once),
    };
    let written = once(&mut file)
        .and_then(|()| file.flush())
        .and_then(|()| old.map_or(Ok(()), |old| file.set_permissions(old.permissions())))
        .and_then(|()| fs::rename(&temporary, &target));
    if written.is_err() {
        // the disk may be full because of it
        let _ = fs::remove_file(&temporary);
    }
    written
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

fn beside(target: &Path) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{}.tmp", std::process::id()));
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
        put(&file, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["r.json"]);
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
