//! Searches for a limit: a directory with the runs of the trials in it, and a file that holds the search. What stands in the
//! file is the search's own matter.
//!
//! Whoever searches holds a lock on the scenario, which is written once, by which a reader tells a search that goes on from
//! one that was killed.

use std::fs::{self, File, TryLockError};
use std::path::Path;
use std::time::Duration;

use crate::directory::replace;
use crate::error::{RecordError, io_error};
use crate::files;

/// A search is no larger, bytes: a second of a trial takes about 100.
const BYTES_MAX: u64 = 64 << 20;
/// What says that a directory is a search's until that is first written down; nobody else's folder has it.
const BEGUN: &str = "limit.json.begun.tmp";
/// How often the lock is tried for, and the pause between: whoever looks whether a search goes on has it for a moment.
const TRIES: usize = 20;
const PAUSE: Duration = Duration::from_millis(10);

/// Whether a directory is one of a search.
pub fn is_at(dir: &Path) -> bool {
    dir.join(files::LIMIT).is_file()
}

/// Whether a search began in a directory and was killed before it was written down: there is what [`create`] wrote, and
/// nothing else but what was half written.
pub fn is_begun(dir: &Path) -> bool {
    let Ok(mut entries) = fs::read_dir(dir) else { return false };
    let is_own = |name: &str| {
        let is_half = name.starts_with(files::SCENARIO) || name.starts_with(files::LIMIT);
        name == files::SCENARIO || is_half && name.ends_with(".tmp")
    };
    dir.join(BEGUN).is_file()
        && dir.join(files::SCENARIO).is_file()
        && entries.all(|entry| entry.is_ok_and(|entry| entry.file_name().to_str().is_some_and(is_own)))
}

/// Makes an empty directory one in which a search of this scenario begins.
///
/// # Errors
/// Where it cannot be written.
pub fn create(dir: &Path, source: &str) -> Result<(), RecordError> {
    let path = dir.join(BEGUN);
    File::create(&path).map_err(io_error("write", &path))?;
    crate::write_scenario(dir, source)
}

/// Reads the search.
///
/// # Errors
/// Where the file cannot be read, or is too large to be one.
pub fn read(dir: &Path) -> Result<String, RecordError> {
    let path = dir.join(files::LIMIT);
    let bytes = fs::metadata(&path).map_err(io_error("read", &path))?.len();
    if bytes > BYTES_MAX {
        return Err(damaged(dir, &format!("it has {bytes} bytes, and a search has at most {BYTES_MAX}")));
    }
    fs::read_to_string(&path).map_err(io_error("read", &path))
}

/// Says that a search goes on here, until what is given back is dropped; none where another one does.
///
/// # Errors
/// Where the directory has no scenario.
pub fn lock(dir: &Path) -> Result<Option<File>, RecordError> {
    let path = dir.join(files::SCENARIO);
    let file = File::open(&path).map_err(io_error("read", &path))?;
    for _ in 0..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            // an error: files cannot be locked here
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(Some(file)),
        }
    }
    Ok(None)
}

/// Whether a search goes on here right now.
pub fn is_locked(dir: &Path) -> bool {
    let file = File::open(dir.join(files::SCENARIO));
    // shared: another reader is none who searches
    is_at(dir) && file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Writes the search; at every moment either the old or the new one is there, whole.
///
/// # Errors
/// Where it cannot be written.
pub fn write(dir: &Path, text: &str) -> Result<(), RecordError> {
    replace(&dir.join(files::LIMIT), text.as_bytes())?;
    // most often it is gone; where it stays it means nothing beside the file
    let _ = fs::remove_file(dir.join(BEGUN));
    Ok(())
}

/// Says that the file does not hold what it should.
pub fn damaged(dir: &Path, reason: &str) -> RecordError {
    crate::error::damaged(&dir.join(files::LIMIT), reason)
}

/// The scenario whose limit was searched for; empty where it is not there.
pub fn source(dir: &Path) -> String {
    fs::read_to_string(dir.join(files::SCENARIO)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_its_directory_is_found() {
        let temp = tempfile::tempdir().unwrap();
        assert!(!is_at(temp.path()) && read(temp.path()).is_err());
        write(temp.path(), "{}").unwrap();
        crate::write_scenario(temp.path(), "name: x\n").unwrap();
        assert!(is_at(temp.path()));
        assert_eq!((read(temp.path()).unwrap(), source(temp.path())), ("{}".into(), "name: x\n".into()));
        let dir = temp.path().to_str().unwrap();
        assert_eq!(crate::resolve(dir, Path::new("none")).unwrap(), temp.path());
    }

    #[test]
    fn a_search_goes_on_while_somebody_holds_it_and_one_at_a_time() {
        let temp = tempfile::tempdir().unwrap();
        assert!(lock(temp.path()).is_err(), "there is no scenario");
        crate::write_scenario(temp.path(), "name: x\n").unwrap();
        write(temp.path(), "{}").unwrap();
        assert!(!is_locked(temp.path()));
        let held = lock(temp.path()).unwrap();
        assert!(held.is_some() && is_locked(temp.path()));
        assert!(lock(temp.path()).unwrap().is_none());
        // what it writes meanwhile changes nothing
        write(temp.path(), "{ }").unwrap();
        assert!(is_locked(temp.path()));
        drop(held);
        assert!(!is_locked(temp.path()) && lock(temp.path()).unwrap().is_some());
    }

    #[test]
    fn one_that_was_killed_at_once_has_begun_and_what_has_more_is_something_else() {
        let temp = tempfile::tempdir().unwrap();
        assert!(!is_begun(temp.path()) && !is_begun(&temp.path().join("none")));
        crate::write_scenario(temp.path(), "name: x\n").unwrap();
        assert!(!is_begun(temp.path()), "somebody's folder with a scenario");
        create(temp.path(), "name: x\n").unwrap();
        assert!(is_begun(temp.path()) && source(temp.path()) == "name: x\n");
        fs::write(temp.path().join("limit.json.77.tmp"), "{").unwrap();
        assert!(is_begun(temp.path()));
        fs::write(temp.path().join("mine.tmp"), "").unwrap();
        assert!(!is_begun(temp.path()));
        fs::remove_file(temp.path().join("mine.tmp")).unwrap();
        write(temp.path(), "{}").unwrap();
        assert!(!is_begun(temp.path()) && is_at(temp.path()) && !temp.path().join(BEGUN).exists());
    }

    #[test]
    fn what_is_too_large_is_not_read() {
        let temp = tempfile::tempdir().unwrap();
        File::create(temp.path().join(files::LIMIT)).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert!(read(temp.path()).unwrap_err().to_string().contains("at most"));
    }
}
