//! Bodies that are read from files while they are sent.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use crate::template::Template;

/// A piece of a body.
#[derive(Debug, Clone)]
pub enum UploadPiece {
    /// A text, written when the request is.
    Text(Template),
    /// What a file holds.
    File(FileBody),
}

/// A file that is open for all who send it.
#[derive(Debug, Clone)]
pub struct FileBody {
    /// The file.
    pub file: Arc<File>,
    /// How many bytes of it are sent: those that it had when it was opened.
    pub bytes: u64,
}

impl FileBody {
    /// Opens a file.
    ///
    /// # Errors
    /// In words: there is no such file, or it cannot be read.
    pub fn open(path: &Path) -> Result<FileBody, String> {
        let failed = |why: &dyn std::fmt::Display| format!("cannot read {}: {why}", path.display());
        // a pipe would keep whoever opens it waiting
        if !path.is_file() {
            return Err(failed(&"there is no such file"));
        }
        let file = File::open(path).map_err(|error| failed(&error))?;
        let bytes = file.metadata().map_err(|error| failed(&error))?.len();
        Ok(FileBody { file: Arc::new(file), bytes })
    }
}
