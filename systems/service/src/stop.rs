//! How a server learns that it should stop.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::futures::Notified;
use tokio::sync::{Notify, watch};

/// A switch that can be thrown once from any thread: `serve(stop.triggered())` ends when somebody calls
/// [`Stop::trigger`]. Clones are the same switch.
///
/// ```
/// let stop = tidemark_service::Stop::new();
/// let elsewhere = stop.clone();
/// assert!(!stop.is_triggered());
/// elsewhere.trigger();
/// assert!(stop.is_triggered());
/// ```
#[derive(Debug, Clone)]
pub struct Stop(watch::Sender<bool>);

impl Stop {
    /// A switch that nobody has thrown yet.
    pub fn new() -> Self {
        Stop(watch::Sender::new(false))
    }

    /// Throws the switch. Doing it again changes nothing.
    pub fn trigger(&self) {
        self.0.send_replace(true);
    }

    /// Whether it was thrown.
    pub fn is_triggered(&self) -> bool {
        *self.0.borrow()
    }

    /// Completes once the switch is thrown, at once if it already is.
    pub fn triggered(&self) -> impl Future<Output = ()> + Send + 'static {
        // The sender is kept alive in the future, so that waiting never ends early.
        let sender = self.0.clone();
        async move {
            let mut receiver = sender.subscribe();
            let _ = receiver.wait_for(|&thrown| thrown).await;
        }
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

/// Completes when the process is asked to end: SIGTERM or SIGINT. For programs that do not handle signals
/// themselves.
pub async fn signals() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(mut terminate), Ok(mut interrupt)) => {
                tokio::select! {
                    _ = terminate.recv() => tracing::info!("SIGTERM"),
                    _ = interrupt.recv() => tracing::info!("SIGINT"),
                }
            }
            (Err(error), _) | (_, Err(error)) => {
                tracing::error!(%error, "signals cannot be caught; the default action ends the process");
                std::future::pending::<()>().await;
            }
        }
    }
    #[cfg(not(unix))]
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Tells the connections of one worker that the server stops.
#[derive(Debug, Default)]
pub(crate) struct Stopping {
    flag: AtomicBool,
    notify: Notify,
}

impl Stopping {
    /// Whether it does.
    pub(crate) fn is_stopping(&self) -> bool {
        self.flag.load(Ordering::Acquire)
    }

    /// It does, from now on.
    pub(crate) fn stop(&self) {
        self.flag.store(true, Ordering::Release);
        self.notify.notify_waiters();
    }

    /// Completes when it begins to stop, if it has not before this was polled first.
    pub(crate) fn notified(&self) -> Notified<'_> {
        self.notify.notified()
    }
}
