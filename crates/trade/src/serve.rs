//! From options to a serving trade service.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tidemark_service::{BoundServer, Served, ServiceError, SettingError, System};

use crate::options::{Options, read};
use crate::trades::{Counting, CountingCollector, TradesService};

/// Why a trade service cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TradeError {
    /// A setting is not one, or has a value that it does not take.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The server cannot serve.
    #[error(transparent)]
    Service(#[from] ServiceError),
}

/// Serves it until `stop` completes; what is in flight is finished. Blocks the calling thread.
///
/// # Errors
/// The settings are wrong, or the address cannot be taken.
pub fn serve(options: Options, stop: impl Future<Output = ()>) -> Result<Served, TradeError> {
    Server::bind(options)?.serve(stop)
}

/// A trade service that has its address but does not serve yet.
pub struct Server {
    server: BoundServer,
}

impl Server {
    /// Checks the options and takes the address.
    ///
    /// # Errors
    /// The settings are wrong, or the address cannot be taken.
    pub fn bind(options: Options) -> Result<Self, TradeError> {
        let limits = read(&options.settings)?;
        let counting = Arc::new(Counting::new());
        let system =
            System::default().service(TradesService(counting.clone())).metrics(CountingCollector(counting));
        let mut server = tidemark_service::Server::new(system).name("trade").limits(limits);
        if let Some(workers) = options.workers {
            server = server.workers(workers);
        }
        Ok(Server { server: server.listen(options.listen).announce(options.announce).bind()? })
    }

    /// The address it has, with the port that was really taken.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Serves until `stop` completes.
    ///
    /// # Errors
    /// It cannot accept connections any more.
    pub fn serve(self, stop: impl Future<Output = ()>) -> Result<Served, TradeError> {
        Ok(self.server.serve(stop)?)
    }
}
