//! How a system is served: the same for all.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

use tidemark_store::Durability;

/// How to serve a system.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The directory of its store; needed for any durability but `memory` where its data is in this process.
    pub data_dir: Option<PathBuf>,
    /// What an acknowledged write is worth.
    pub durability: Durability,
    /// Worker threads; as many as there are processors where nothing is said.
    pub workers: Option<usize>,
    /// The file that a system which tells of its operations appends them to; nowhere where nothing is said.
    pub events: Option<PathBuf>,
    /// Settings by name.
    pub settings: BTreeMap<String, String>,
    /// Whether to print `listening http://ADDRESS` on standard output once it has started.
    pub announce: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            listen: SocketAddr::from(([127, 0, 0, 1], 9080)),
            data_dir: None,
            durability: Durability::default(),
            workers: None,
            events: None,
            settings: BTreeMap::new(),
            announce: true,
        }
    }
}

impl Options {
    /// How many worker threads there will be.
    pub fn worker_count(&self) -> usize {
        self.workers.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get))
    }
}
