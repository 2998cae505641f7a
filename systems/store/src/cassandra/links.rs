//! The links of a store: one of its own, and one in each runtime that has settled.
//!
//! A request that is sent from one runtime over a connection of another wakes a thread twice, to send it and to hand
//! its answer back, and that costs more than all else that is done for it. So a runtime from which many writes come
//! may settle: then it has connections of its own, and a write that is awaited there stays on its threads. All others,
//! and those that settle until they are linked, use the link that the store opened.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::RwLock;
use tokio::runtime::{Handle, Id};

use super::kept::{Common, KeptLink};
use super::link::Link;

/// Most runtimes that have connections of their own; the others share the first link.
const SETTLED_MAX: usize = 256;
/// Until it is tried again to link a runtime.
const SETTLE_PAUSE: Duration = Duration::from_secs(1);

/// All links.
pub(super) struct Links {
    pub(super) common: Arc<Common>,
    pub(super) first: Arc<KeptLink<Link>>,
    settled: RwLock<Vec<Settled>>,
}

/// A runtime that has settled.
struct Settled {
    runtime: Id,
    /// There once it is open.
    link: Option<Arc<KeptLink<Link>>>,
}

impl Links {
    pub(super) fn new(first: Link, common: Arc<Common>) -> Arc<Self> {
        let first = KeptLink::new(first, common.clone());
        Arc::new(Links { common, first, settled: RwLock::default() })
    }

    /// The link for a request that is awaited here.
    pub(super) fn here(&self) -> Arc<Link> {
        self.settled_here().map_or_else(|| self.first.now(), |own| own.now())
    }

    fn settled_here(&self) -> Option<Arc<KeptLink<Link>>> {
        let here = Handle::try_current().ok()?.id();
        self.settled.read().iter().find(|settled| settled.runtime == here)?.link.clone()
    }

    /// Runtimes that have connections of their own.
    pub(super) fn settled(&self) -> u64 {
        self.settled.read().iter().filter(|settled| settled.link.is_some()).count() as u64
    }

    /// Lets this runtime have connections of its own from some time on until it ends.
    pub(super) fn settle(self: &Arc<Self>) {
        let Ok(runtime) = Handle::try_current() else { return };
        if let Some(place) = Place::take(self, runtime.id()) {
            runtime.spawn(place.link());
        }
    }
}

/// A runtime's place among those that have settled, until the runtime drops what was spawned in it.
struct Place {
    links: Weak<Links>,
    common: Arc<Common>,
    runtime: Id,
}

impl Place {
    /// None where it has one, or too many others have.
    fn take(links: &Arc<Links>, runtime: Id) -> Option<Self> {
        let mut settled = links.settled.write();
        if settled.len() >= SETTLED_MAX || settled.iter().any(|settled| settled.runtime == runtime) {
            return None;
        }
        settled.push(Settled { runtime, link: None });
        Some(Place { links: Arc::downgrade(links), common: links.common.clone(), runtime })
    }

    /// Opens the link and keeps it, as long as there is the store.
    async fn link(self) {
        let kept = loop {
            if self.links.strong_count() == 0 {
                return;
            }
            match self.common.link_again().await {
                Ok(link) => break KeptLink::new(link, self.common.clone()),
                Err(error) => tracing::debug!(%error, "no session for a runtime yet"),
            }
            tokio::time::sleep(SETTLE_PAUSE).await;
        };
        let keeping = KeptLink::keep(Arc::downgrade(&kept), false);
        self.replace(Some(kept));
        keeping.await;
    }

    /// Puts a link into the place.
    fn replace(&self, link: Option<Arc<KeptLink<Link>>>) {
        let Some(links) = self.links.upgrade() else { return };
        let mut settled = links.settled.write();
        if let Some(place) = settled.iter_mut().find(|settled| settled.runtime == self.runtime) {
            place.link = link;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(links) = self.links.upgrade() else { return };
        let mut settled = links.settled.write();
        let own = settled.iter().position(|settled| settled.runtime == self.runtime);
        let own = own.map(|own| settled.swap_remove(own));
        // what ends with it is not ended under the lock
        drop(settled);
        drop(own);
    }
}
