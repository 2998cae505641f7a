//! An instance in a registry: it registers, says that it is there, and leaves.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::sleep;

use crate::discovery::{Registration, Registry, RegistryError, Ticket};
use crate::http::own_address;

/// The pause after a registration that failed.
const PAUSE: Duration = Duration::from_secs(1);
/// An instance that leaves is served so long: clients look every two seconds.
const LEAVE_WAIT: Duration = Duration::from_millis(2500);
/// How long it may take to say so.
const LEAVE_MAX: Duration = Duration::from_secs(3);

#[derive(Debug)]
enum Standing {
    Unregistered,
    Registered(Registration, Ticket),
    /// It never registers again.
    Left,
}

/// An instance in a registry.
#[derive(Debug)]
pub struct Member {
    registry: Registry,
    service: String,
    lease: Duration,
    standing: Mutex<Standing>,
}

impl Member {
    /// An instance of a service, which the registry forgets when it says nothing for `lease`.
    pub fn new(registry: Registry, service: impl Into<String>, lease: Duration) -> Arc<Self> {
        Arc::new(Member {
            registry,
            service: service.into(),
            lease,
            standing: Mutex::new(Standing::Unregistered),
        })
    }

    /// Registers what is served at `local` and keeps it registered, until it [leaves](Member::leave). A registry that is
    /// away is asked again and again.
    pub async fn keep(self: Arc<Self>, local: SocketAddr) {
        let renew_every = self.lease / 3;
        let mut has_failed = false;
        loop {
            let pause = match self.turn(local, renew_every).await {
                Ok(true) => {
                    has_failed = false;
                    renew_every
                }
                Ok(false) => return,
                Err(error) => {
                    // once, until it works again
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%error, "this instance cannot be registered; trying again");
                    }
                    PAUSE.min(renew_every)
                }
            };
            sleep(pause).await;
        }
    }

    /// Registers or renews; false once it has left.
    async fn turn(&self, local: SocketAddr, renew_every: Duration) -> Result<bool, RegistryError> {
        let mut standing = self.standing.lock().await;
        match &*standing {
            Standing::Left => return Ok(false),
            Standing::Registered(registration, ticket) => {
                if self.registry.renew(registration, ticket).await? {
                    return Ok(true);
                }
            }
            Standing::Unregistered => {}
        }
        let registration = self.registration(local, renew_every).await;
        let ticket = self.registry.register(&registration).await?;
        tracing::info!(service = self.service, id = registration.id(), "registered");
        *standing = Standing::Registered(registration, ticket);
        Ok(true)
    }

    async fn registration(&self, local: SocketAddr, renew_every: Duration) -> Registration {
        let mut addr = local;
        if addr.ip().is_unspecified()
            && let Some(ip) = own_address(self.registry.place()).await
        {
            addr.set_ip(ip);
        }
        Registration { service: self.service.clone(), addr, lease: self.lease, renew_every }
    }

    /// Leaves the registry, and waits until clients have had time to see it.
    pub async fn leave(self: Arc<Self>) {
        let leaving = async {
            let before = std::mem::replace(&mut *self.standing.lock().await, Standing::Left);
            let Standing::Registered(registration, ticket) = before else { return false };
            match self.registry.leave(&registration, &ticket).await {
                Ok(()) => tracing::info!(service = self.service, id = registration.id(), "left the registry"),
                Err(error) => tracing::warn!(%error, "the instance could not be deregistered"),
            }
            true
        };
        if tokio::time::timeout(LEAVE_MAX, leaving).await == Ok(true) {
            sleep(LEAVE_WAIT).await;
        }
    }
}
