//! A running intake for tests.

use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;

use tidemark_ingest::Ingest;
use tidemark_service::{BoundServer, Durability, Options, ReferenceSystem};

use crate::client::Serving;

pub struct Running(Serving);

impl Running {
    /// In memory, with nothing set.
    pub fn start() -> Self {
        Self::run(Ingest::bind(options()).unwrap())
    }

    pub fn start_with(settings: &[(&str, &str)]) -> Self {
        let settings = settings.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Self::run(Ingest::bind(Options { settings, ..options() }).unwrap())
    }

    pub fn start_in(dir: &Path, durability: Durability) -> Self {
        let options = Options { data_dir: Some(dir.to_owned()), durability, ..options() };
        Self::run(Ingest::bind(options).unwrap())
    }

    pub fn run(ingest: BoundServer) -> Self {
        Running(Serving::start(ingest))
    }
}

impl Deref for Running {
    type Target = Serving;

    fn deref(&self) -> &Serving {
        &self.0
    }
}

pub fn options() -> Options {
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        durability: Durability::Memory,
        workers: Some(2),
        announce: false,
        ..Options::default()
    }
}

/// A message as the published client sends it.
pub fn message(user: u64, time_ms: u64, kind: &str) -> String {
    format!("{user:010}{time_ms:013}{kind}41.7127837,42.71278370000.0")
}
