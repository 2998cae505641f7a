//! Searches for a limit: a directory with the runs of the trials in it, and a file that holds the search. What stands in the
//! file is the search's own matter.

use std::fs;
use std::path::Path;

use crate::directory::replace;
use crate::error::{RecordError, io_error};
use crate::files;

/// Whether a directory is one of a search.
pub fn is_at(dir: &Path) -> bool {
    dir.join(files::LIMIT).is_file()
}

/// Reads the search.
///
/// # Errors
/// Where the file cannot be read.
pub fn read(dir: &Path) -> Result<String, RecordError> {
    let path = dir.join(files::LIMIT);
    fs::read_to_string(&path).map_err(io_error("read", &path))
}

/// Writes the search; at every moment either the old or the new one is there, whole.
///
/// # Errors
/// Where it cannot be written.
pub fn write(dir: &Path, text: &str) -> Result<(), RecordError> {
    replace(&dir.join(files::LIMIT), text.as_bytes())
}

/// Says that the file does not hold what it should.
pub fn damaged(dir: &Path, reason: &str) -> RecordError {
    crate::error::damaged(&dir.join(files::LIMIT), reason)
}

/// Keeps the scenario whose limit is searched for.
///
/// # Errors
/// Where it cannot be written.
pub fn write_source(dir: &Path, source: &str) -> Result<(), RecordError> {
    replace(&dir.join(files::SCENARIO), source.as_bytes())
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
        write_source(temp.path(), "name: x\n").unwrap();
        assert!(is_at(temp.path()));
        assert_eq!((read(temp.path()).unwrap(), source(temp.path())), ("{}".into(), "name: x\n".into()));
        let dir = temp.path().to_str().unwrap();
        assert_eq!(crate::resolve(dir, Path::new("none")).unwrap(), temp.path());
    }
}
