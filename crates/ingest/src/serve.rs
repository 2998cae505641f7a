//! From options to a serving intake.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tidemark_service::{BoundServer, Served, Server, System};
use tidemark_store::Durability;
use tidemark_store::messages::MessageStore;

use crate::app::App;
use crate::error::IngestError;
use crate::handlers::system;
use crate::options::{Options, Values};
use crate::store_metrics::StoreCollector;

/// Serves an intake until `stop` completes; the answers in flight are finished. Blocks the calling thread.
///
/// Prints `listening http://ADDRESS` once the store is open; connections are taken before that, and `/health` is 503
/// until then.
pub fn serve(options: Options, stop: impl Future<Output = ()>) -> Result<Served, IngestError> {
    Ingest::bind(options)?.serve(stop)
}

/// An intake that is ready to be served: its store is open. `workers` threads will share it.
///
/// # Errors
/// The settings are wrong, or the store cannot be opened.
pub fn open(options: &Options, workers: usize) -> Result<System, IngestError> {
    let values = Values::read(&options.settings)?;
    let store = values.store.clone().open(options.data_dir.as_deref(), options.durability, &values)?;
    let store = values.buffer.clone().before(store, options.durability)?;
    Ok(system(Arc::new(App::new(store, values.waiting_max, workers))))
}

/// An intake that has its address but does not serve yet.
pub struct Ingest {
    server: BoundServer,
}

impl Ingest {
    /// Checks the options and takes the address.
    pub fn bind(options: Options) -> Result<Self, IngestError> {
        let values = Values::read(&options.settings)?;
        values.buffer.check(options.durability)?;
        if values.store.is_here() && options.data_dir.is_none() && options.durability != Durability::Memory {
            return Err(IngestError::NoDirectory(options.durability));
        }
        let (data_dir, durability) = (options.data_dir.clone(), options.durability);
        Self::bind_with_store(options, move |values| {
            let store = values.store.clone().open(data_dir.as_deref(), durability, values)?;
            values.buffer.clone().before(store, durability)
        })
    }

    /// The same with a store of one's own, which is opened while `/health` already says that it is starting.
    pub fn with_store(
        options: Options,
        store: impl FnOnce() -> Result<MessageStore, IngestError> + Send + 'static,
    ) -> Result<Self, IngestError> {
        Self::bind_with_store(options, |_| store())
    }

    fn bind_with_store(
        options: Options,
        store: impl FnOnce(&Values) -> Result<MessageStore, IngestError> + Send + 'static,
    ) -> Result<Self, IngestError> {
        let values = Values::read(&options.settings)?;
        let Options { listen, durability, workers, announce, .. } = options;
        let limits = values.limits;
        let workers = workers.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, |n| n.get()));
        let start = move || {
            let app = Arc::new(App::new(store(&values)?, values.waiting_max, workers));
            Ok::<_, IngestError>(system(app.clone()).metrics(StoreCollector { app, durability }))
        };
        let server = Server::starting(start).name("ingest").listen(listen).limits(limits);
        let server = server.announce(announce).workers(workers);
        Ok(Ingest { server: server.bind()? })
    }

    /// The address it has, with the port that was really taken.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Serves until `stop` completes.
    pub fn serve(self, stop: impl Future<Output = ()>) -> Result<Served, IngestError> {
        Ok(self.server.serve(stop)?)
    }
}
