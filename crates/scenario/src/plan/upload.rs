//! Bodies that are read from files while they are sent.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use super::{Plan, RequestKind};
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
    path: Arc<Path>,
    /// When it had been written to last then.
    modified: Option<SystemTime>,
}

/// What became of a [`FileBody`] since it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// In words, with its path.
    pub words: String,
    /// Whether it has fewer bytes than are to be sent.
    pub is_shorter: bool,
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
        let metadata = file.metadata().map_err(|error| failed(&error))?;
        let (bytes, modified) = (metadata.len(), metadata.modified().ok());
        Ok(FileBody { file: Arc::new(file), bytes, path: path.into(), modified })
    }

    /// What became of it since it was opened; none where it is as it was.
    pub fn change(&self) -> Option<FileChange> {
        let metadata = self.file.metadata().ok()?;
        let (path, bytes) = (self.path.display(), metadata.len());
        let words = if bytes != self.bytes {
            format!("the body {path} had {} bytes when the run began and has {bytes} now", self.bytes)
        } else if metadata.modified().ok() != self.modified {
            format!("the body {path} was written to during the run")
        } else {
            return None;
        };
        Some(FileChange { words, is_shorter: bytes < self.bytes })
    }
}

impl Plan {
    /// What became of the files that are sent as bodies, each once.
    pub fn changed_files(&self) -> Vec<FileChange> {
        let uploads = self.requests.iter().filter_map(|request| match &request.ask {
            RequestKind::Http(http) => Some(&http.upload),
            _ => None,
        });
        let mut changes = Vec::new();
        for piece in uploads.flatten() {
            if let UploadPiece::File(body) = piece
                && let Some(change) = body.change()
                && !changes.contains(&change)
            {
                changes.push(change);
            }
        }
        changes
    }
}
