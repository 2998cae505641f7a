//! The threads of a store that asks servers, and how it waits for one at its start.

use std::ops::Deref;
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Runtime};

use crate::error::StoreError;

/// Until it is tried again to reach a server that is not there yet.
#[cfg(any(feature = "cassandra", feature = "mariadb", feature = "postgres"))]
const PAUSE: Duration = Duration::from_millis(200);

/// Threads that read and write connections. Dropping them waits for none, which is not allowed on a thread of an async
/// runtime.
pub(crate) struct Threads(Option<Runtime>);

impl Threads {
    /// So many, of this name.
    pub(crate) fn new(count: usize, name: &'static str) -> Result<Self, StoreError> {
        let built = Builder::new_multi_thread().worker_threads(count).thread_name(name).enable_all().build();
        built.map(|runtime| Threads(Some(runtime))).map_err(StoreError::no_answer)
    }
}

impl Deref for Threads {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("the runtime is there until drop")
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What is done at the start, tried again for as long as the start may take while the server is not there.
#[cfg(any(feature = "cassandra", feature = "mariadb", feature = "postgres"))]
pub(crate) async fn once_there<T>(
    product: &str,
    start_timeout: Duration,
    mut attempt: impl AsyncFnMut() -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let (begun, mut told) = (Instant::now(), false);
    loop {
        match attempt().await {
            Err(error) if error.is_transient() && begun.elapsed() < start_timeout => {
                if !std::mem::replace(&mut told, true) {
                    tracing::info!(%error, "waiting for {product}");
                }
                tokio::time::sleep(PAUSE).await;
            }
            done => return done,
        }
    }
}
