//! The session that is used now, and another one when all its connections are gone.
//!
//! The client tries broken connections again at growing intervals, ten seconds at last. Where other nodes are left,
//! they tell when one is back; where none is, up to ten seconds pass between its return and the first write. So when
//! nothing is connected, somebody looks whether a contact point takes connections, and if so makes a new session.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::RwLock;
use scylla::client::session::Session;
use tokio::net::TcpStream;

use super::options::Options;
use super::retry::Attempts;
use super::session::{connect, nodes};
use crate::error::StoreError;

/// How often it is seen to.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a contact point may take to take a connection.
const LOOK_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a new session may take to be made: the nodes have just started.
const RELINK_TIMEOUT: Duration = Duration::from_secs(15);

/// A session with the statements that were prepared in it.
pub(super) trait Linked: Send + Sync + Sized + 'static {
    /// Prepares the statements. The schema is there.
    fn prepare(session: Session, options: &Options) -> impl Future<Output = Result<Self, StoreError>> + Send;

    /// The session.
    fn session(&self) -> &Session;
}

/// What all links of a store have in common.
pub(super) struct Common {
    pub(super) options: Options,
    pub(super) attempts: Arc<Attempts>,
    /// How often a link was replaced.
    pub(super) relinks: AtomicU64,
}

impl Common {
    pub(super) fn new(options: Options) -> Arc<Self> {
        Arc::new(Common { options, attempts: Arc::default(), relinks: AtomicU64::new(0) })
    }

    /// One more link to a cluster that was linked to before.
    pub(super) async fn link_again<L: Linked>(&self) -> Result<L, StoreError> {
        let opening =
            async { L::prepare(connect(&self.options, self.attempts.clone()).await?, &self.options).await };
        let opened = tokio::time::timeout(RELINK_TIMEOUT, opening).await;
        opened.unwrap_or_else(|_| Err(StoreError::no_answer("a new session took too long")))
    }
}

/// The link that is used now.
pub(super) struct KeptLink<L> {
    common: Arc<Common>,
    link: RwLock<Arc<L>>,
}

impl<L: Linked> KeptLink<L> {
    pub(super) fn new(link: L, common: Arc<Common>) -> Arc<Self> {
        Arc::new(KeptLink { common, link: RwLock::new(Arc::new(link)) })
    }

    /// The link to use for one request.
    pub(super) fn now(&self) -> Arc<L> {
        self.link.read().clone()
    }

    /// Replaces the link whenever it has no connection and could have one, as long as somebody uses it. Of several
    /// that are kept one tells the log.
    pub(super) async fn keep(kept: Weak<Self>, tells: bool) {
        let mut connected_before = true;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let Some(kept) = kept.upgrade() else { return };
            let connected = nodes(kept.now().session()).1 > 0;
            if tells && connected != connected_before {
                match connected {
                    true => tracing::info!("nodes are back"),
                    false => tracing::error!("no node has a connection: writes fail until one is back"),
                }
            }
            connected_before = connected;
            if !connected && kept.some_node_is_there().await {
                kept.replace().await;
            }
        }
    }

    async fn some_node_is_there(&self) -> bool {
        for contact in &self.common.options.contact {
            if let Ok(Ok(_)) = tokio::time::timeout(LOOK_TIMEOUT, TcpStream::connect(contact)).await {
                return true;
            }
        }
        false
    }

    async fn replace(&self) {
        match self.common.link_again().await {
            Ok(link) => {
                // the client itself may have been quicker
                if nodes(self.now().session()).1 == 0 {
                    *self.link.write() = Arc::new(link);
                    self.common.relinks.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) => tracing::debug!(%error, "no new session yet"),
        }
    }
}
