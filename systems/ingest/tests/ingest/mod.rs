//! A running intake for tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::thread::JoinHandle;

use tidemark_ingest::Ingest;
use tidemark_service::{BoundServer, Durability, Options, ReferenceSystem, Served, ServiceError, Stop};

use crate::client::{Client, eventually};

pub struct Running {
    pub addr: SocketAddr,
    stop: Stop,
    thread: Option<JoinHandle<Result<Served, ServiceError>>>,
}

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
        let (addr, stop) = (ingest.addr(), Stop::new());
        let triggered = stop.triggered();
        let thread = std::thread::spawn(move || ingest.serve(triggered));
        let mut client = Client::new(addr);
        eventually("ready", || (client.get("/health").status == 200).then_some(()));
        Running { addr, stop, thread: Some(thread) }
    }

    pub fn client(&self) -> Client {
        Client::new(self.addr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.trigger();
        let ended = self.thread.take().unwrap().join();
        if !std::thread::panicking() {
            ended.unwrap().unwrap();
        }
    }
}

pub fn options() -> Options {
    Options {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        data_dir: None,
        durability: Durability::Memory,
        workers: Some(2),
        events: None,
        settings: BTreeMap::new(),
        announce: false,
    }
}

/// A message as the published client sends it.
pub fn message(user: u64, time_ms: u64, kind: &str) -> String {
    format!("{user:010}{time_ms:013}{kind}41.7127837,42.71278370000.0")
}
