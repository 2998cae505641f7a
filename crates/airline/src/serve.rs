//! From options to a serving airline.

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use tidemark_service::{BoundServer, Served, Server, System};

use tidemark_store::Durability;

use crate::app::App;
use crate::clock::Clock;
use crate::error::AirlineError;
use crate::options::{Options, Values};
use crate::routes::router;
use crate::store_metrics::StoreCollector;

/// Serves an airline until `stop` completes; the answers in flight are finished. Blocks the calling thread.
///
/// Prints `listening http://ADDRESS` once store and data are there; connections are taken before that, and `/health`
/// is 503 until then.
pub fn serve(options: Options, stop: impl Future<Output = ()>) -> Result<Served, AirlineError> {
    Airline::bind(options)?.serve(stop)
}

/// An airline that is ready to be served: store and data are there.
///
/// # Errors
/// The settings are wrong, or the store cannot be opened.
pub fn open(options: &Options) -> Result<System, AirlineError> {
    let values = Values::read(&options.settings)?;
    start(options.data_dir.as_deref(), options.durability, &values, Clock::System)
}

/// An airline that has its address but does not serve yet.
pub struct Airline {
    server: BoundServer,
}

impl Airline {
    /// Checks the options and takes the address.
    pub fn bind(options: Options) -> Result<Self, AirlineError> {
        Self::bind_with_clock(options, Clock::System)
    }

    /// The same with another clock, for tests.
    pub fn bind_with_clock(options: Options, clock: Clock) -> Result<Self, AirlineError> {
        let values = Values::read(&options.settings)?;
        if values.choice.is_here() && options.data_dir.is_none() && options.durability != Durability::Memory {
            return Err(AirlineError::NoDirectory(options.durability));
        }
        let Options { listen, data_dir, durability, workers, announce, .. } = options;
        let limits = values.limits;
        let mut server = Server::starting(move || start(data_dir.as_deref(), durability, &values, clock))
            .name("airline")
            .listen(listen)
            .limits(limits)
            .announce(announce);
        if let Some(workers) = workers {
            server = server.workers(workers);
        }
        Ok(Airline { server: server.bind()? })
    }

    /// The address it has, with the port that was really taken.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr()
    }

    /// Serves until `stop` completes.
    pub fn serve(self, stop: impl Future<Output = ()>) -> Result<Served, AirlineError> {
        Ok(self.server.serve(stop)?)
    }
}

/// Opens the store and makes what is missing in it.
fn start(
    data_dir: Option<&Path>,
    durability: Durability,
    values: &Values,
    clock: Clock,
) -> Result<System, AirlineError> {
    let opened = Arc::new(values.choice.clone().open(data_dir, durability)?);
    let app = Arc::new(App::new(opened.clone(), values, clock));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let made = runtime.block_on(app.load(values.customers))?;
    runtime.block_on(app.sweep());
    tracing::info!(customers = values.customers, made, flights = app.timetable.count(), %durability,
        stores = app.opened.choice.names(), "data is there");
    let system = System::new(router(app.clone()))
        .metrics(app.timings.clone())
        .metrics(StoreCollector(opened))
        .background(app.keep_house());
    Ok(system)
}
