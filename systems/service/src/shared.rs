//! What all threads of one server see.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::Router;
use prometheus_client::registry::Registry;

use crate::Limits;
use crate::endpoint::Endpoint;
use crate::metrics::Counts;
use crate::server::{BeginHttp2, Trouble};

/// Where the server is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Starting,
    Ready,
    Stopping,
}

/// What the system offers.
pub(crate) struct Published {
    pub(crate) router: Router,
    /// Asked before the router, in this order.
    pub(crate) endpoints: Vec<Box<dyn Endpoint>>,
    pub(crate) trouble: Trouble,
    /// What serves connections of HTTP/2, where the system has that.
    pub(crate) http2: Option<BeginHttp2>,
}

/// Shared by the accepting thread, the workers and the starting system.
pub(crate) struct Shared {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) limits: Limits,
    pub(crate) counts: Arc<Counts>,
    /// There once the system has started.
    pub(crate) published: OnceLock<Published>,
    pub(crate) registry: Mutex<Registry>,
    state: AtomicU8,
}

impl Shared {
    pub(crate) fn new(
        name: &'static str,
        version: &'static str,
        limits: Limits,
        counts: Arc<Counts>,
        registry: Registry,
    ) -> Self {
        let state = AtomicU8::new(State::Starting as u8);
        Shared {
            name,
            version,
            limits,
            counts,
            published: OnceLock::new(),
            registry: Mutex::new(registry),
            state,
        }
    }

    pub(crate) fn state(&self) -> State {
        match self.state.load(Ordering::Acquire) {
            0 => State::Starting,
            1 => State::Ready,
            _ => State::Stopping,
        }
    }

    /// Goes on to a later state; never back.
    pub(crate) fn advance(&self, state: State) {
        self.state.fetch_max(state as u8, Ordering::AcqRel);
    }

    pub(crate) fn metrics_text(&self) -> Option<String> {
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).ok()?;
        Some(text)
    }
}
