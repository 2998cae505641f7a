//! What a tool is asked to do.

use std::path::PathBuf;

/// One load, in words that every tool has.
#[derive(Debug, Clone, Default)]
pub struct Job {
    /// `http://127.0.0.1:4711`, without a path.
    pub origin: String,
    /// `/`
    pub path: String,
    /// Connections, or users where a tool knows only those.
    pub connections: usize,
    /// Seconds.
    pub seconds: u64,
    /// Requests that are due each second; none: as many as can be.
    pub rate: Option<u64>,
    /// A file that is sent with POST.
    pub body: Option<PathBuf>,
    /// Requests under way on a connection at once.
    pub pipeline: usize,
    /// A connection for each request.
    pub close: bool,
    /// Log in, then two requests with the cookie and the token that came, each checked.
    pub session: bool,
    /// Connections are not limited where a tool can do that (open load only).
    pub unlimited: bool,
    /// Times are not corrected for requests that were sent late, where a tool asks.
    pub uncorrected: bool,
    /// A directory of its own, for what the tool reads and writes.
    pub dir: PathBuf,
}

impl Job {
    /// The whole URL.
    pub fn url(&self) -> String {
        format!("{}{}", self.origin, self.path)
    }

    /// Whether it goes through TLS.
    pub fn tls(&self) -> bool {
        self.origin.starts_with("https:")
    }

    /// A file in its directory, as an argument.
    pub fn file(&self, name: &str) -> String {
        self.dir.join(name).display().to_string()
    }

    /// The file that is sent, as an argument.
    pub fn body_file(&self) -> Option<String> {
        self.body.as_ref().map(|file| file.display().to_string())
    }
}
