//! Where a run is shown while it is on, beside its directory: the progress line, a page of metrics, a collector.
//!
//! [`Figures`] is the sink that adds everything up; [`Metrics`] serves it to Prometheus, [`Otlp`] pushes it to a collector.
//! All are told by the thread that carries the experiment out. What waits for somebody else has a thread of its own, on
//! cores that no driving thread is pinned to, where there are such.

mod classic;
mod family;
pub(crate) mod figures;
mod metrics;
mod openmetrics;
mod otlp;
mod progress;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

pub use figures::Figures;
pub use metrics::Metrics;
pub use otlp::{HEADERS_VARIABLE, Headers, Otlp};
pub(crate) use progress::ProgressSink;

use crate::pin::{self, Pins};

/// Figures that several threads look at.
pub type SharedFigures = Arc<Mutex<Figures>>;

fn looked_at(figures: &SharedFigures) -> MutexGuard<'_, Figures> {
    figures.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A thread that stays away from the driving threads' cores, if there are others.
pub(crate) fn beside_the_driver<T: Send + 'static>(
    name: &str,
    pins: &Pins,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    let mut cores = pin::available_cores();
    cores.retain(|core| !pins.driver.contains(core));
    // none: as it is
    let cores = if pins.driver.is_empty() { Vec::new() } else { cores };
    pin::with_cores(&cores, || std::thread::Builder::new().name(name.into()).spawn(run))?
}
