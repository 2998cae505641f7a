//! What is wrong with what another tool wrote.

/// Why something of another tool cannot be read: what is wrong, where, and a way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError(String);

impl ImportError {
    pub(crate) fn new(message: impl Into<String>) -> ImportError {
        ImportError(message.into())
    }
}

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ImportError {}
