//! Connections to a server of another product: a fixed number of them, each shared by many requests.
//!
//! A task for each keeps it: it connects, carries the connection on until it is lost, and connects again. A request
//! goes over the connection that has the fewest. When none is connected it fails at once; when its answer does not
//! come in time, its connection is given up, since what was sent on it may wait there for ever.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Mutex, RwLock};
use tokio::sync::{Notify, Semaphore};

use crate::error::StoreError;
use crate::metrics::OwnMetric;

/// Most connections.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// Most requests that can be allowed to wait.
pub(crate) const WAITING_MAX: usize = 1_000_000;
/// Until it is tried again to connect: doubled from the one to the other.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// How long the start waits for the last connections once there is one.
const OTHERS_TIMEOUT: Duration = Duration::from_secs(5);
/// How often failed requests are told in the log at most.
const TELL_EVERY: Duration = Duration::from_secs(1);
/// Threads that read and write the connections of a store.
pub(crate) const THREADS: usize = 2;

/// What carries a connection on; ends with the reason when it is lost.
pub(crate) type Carrier = Pin<Box<dyn Future<Output = String> + Send>>;

/// How connections of a product are made.
pub(crate) trait Connect: Send + Sync + 'static {
    /// A connection, made ready.
    type Link: Send + Sync + 'static;

    /// Where it connects to, without passwords.
    fn place(&self) -> Arc<str>;

    /// Connects within some bounded time.
    fn connect(&self) -> impl Future<Output = Result<(Self::Link, Carrier), StoreError>> + Send;
}

/// Why a request has no answer.
pub(crate) enum Failed {
    /// The connection is gone.
    Lost(String),
    /// The server refused it.
    Refused(String),
    /// A value in it is none that the server can keep; asking again is in vain.
    #[cfg(any(feature = "mariadb", feature = "postgres"))]
    Invalid(String),
}

#[cfg(feature = "opensearch")]
impl Failed {
    pub(crate) fn reason(self) -> String {
        match self {
            Failed::Lost(reason) | Failed::Refused(reason) => reason,
            #[cfg(feature = "postgres")]
            Failed::Invalid(reason) => reason,
        }
    }
}

/// The bounds of a store's connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) connections: usize,
    pub(crate) waiting_max: usize,
    pub(crate) timeout: Duration,
    pub(crate) start_timeout: Duration,
}

impl Bounds {
    /// Refuses what cannot work.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let within = |what, value: usize, max: usize| match (1..=max).contains(&value) {
            true => Ok(()),
            false => Err(StoreError::invalid(what, format!("{value} is not within 1 to {max}"))),
        };
        within("the number of connections", self.connections, CONNECTIONS_MAX)?;
        within("the bound of waiting requests", self.waiting_max, WAITING_MAX)
    }
}

/// The `Options` of a store whose server's address may have a password. `$reads` is their method that reads the address,
/// and the function `place` beside them says where an address leads to without the password.
#[cfg(any(feature = "mariadb", feature = "postgres", feature = "redis"))]
macro_rules! options {
    (
        product: $product:literal,
        $(#[$form:meta])* url: $url:literal,
        $(#[$shared:meta])* connections: $connections:literal,
        reads: $reads:ident
    ) => {
        #[doc = concat!("Where ", $product, " is, and how it is used.")]
        #[derive(Clone, PartialEq, Eq)]
        pub struct Options {
            $(#[$form])*
            pub url: String,
            /// What an acknowledged write is to be worth.
            pub durability: Durability,
            $(#[$shared])*
            pub connections: usize,
            /// Most requests taken and not answered yet; more are refused.
            pub waiting_max: usize,
            /// How long an answer is waited for.
            pub timeout: Duration,
            /// How long the start waits for a server that is not there yet.
            pub start_timeout: Duration,
        }

        impl Default for Options {
            fn default() -> Self {
                Options {
                    url: $url.to_owned(),
                    durability: Durability::default(),
                    connections: $connections,
                    waiting_max: 8192,
                    timeout: Duration::from_secs(5),
                    start_timeout: Duration::from_secs(30),
                }
            }
        }

        /// Without the password.
        impl std::fmt::Debug for Options {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let Options { url, durability, .. } = self;
                f.debug_struct("Options")
                    .field("url", &place(url))
                    .field("durability", durability)
                    .finish_non_exhaustive()
            }
        }

        impl Options {
            /// Those of a system's settings.
            ///
            /// # Errors
            /// As of [`Options::check`].
            pub fn reach(reach: crate::Reach) -> Result<Self, StoreError> {
                let crate::Reach { url, connections, waiting_max, timeout, start_timeout } = reach;
                let durability = Durability::default();
                let options = Options { url, durability, connections, waiting_max, timeout, start_timeout };
                options.check().map(|()| options)
            }

            /// Refuses what cannot work. No error has the password.
            ///
            /// # Errors
            /// The first value that is none, or out of its bounds.
            pub fn check(&self) -> Result<(), StoreError> {
                self.$reads()?;
                self.bounds().check()
            }

            pub(super) fn place(&self) -> Arc<str> {
                place(&self.url)
            }

            pub(super) fn bounds(&self) -> crate::links::Bounds {
                let Options { connections, waiting_max, timeout, start_timeout, .. } = *self;
                crate::links::Bounds { connections, waiting_max, timeout, start_timeout }
            }
        }
    };
}
#[cfg(any(feature = "mariadb", feature = "postgres", feature = "redis"))]
pub(crate) use options;

/// The connections of a store.
pub(crate) struct Links<C: Connect> {
    connector: C,
    bounds: Bounds,
    slots: Vec<Slot<C::Link>>,
    /// One for each request that may be taken and not answered.
    room: Semaphore,
    counters: Counters,
    last_error: Mutex<Option<StoreError>>,
    told: Mutex<Option<Instant>>,
}

struct Slot<L> {
    link: RwLock<Option<Arc<L>>>,
    /// Requests on it.
    taken: AtomicUsize,
    given_up: Notify,
}

#[derive(Default)]
struct Counters {
    answered: AtomicU64,
    failed: AtomicU64,
    timeouts: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    connected: AtomicUsize,
}

/// A connection that a request goes over, counted until it is dropped.
struct Taken<'a, L> {
    slot: &'a Slot<L>,
    link: Arc<L>,
}

impl<L> Taken<'_, L> {
    /// Lets nobody use this connection any more, and its task make another.
    fn give_up(&self) {
        if self.slot.link.write().take_if(|now| Arc::ptr_eq(now, &self.link)).is_some() {
            self.slot.given_up.notify_one();
        }
    }
}

impl<L> Drop for Taken<'_, L> {
    fn drop(&mut self) {
        self.slot.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<C: Connect> Links<C> {
    /// Begins to keep connections in the runtime of the caller, and waits until there are some.
    ///
    /// # Errors
    /// As of [`Links::wait`].
    pub(crate) async fn start(connector: C, bounds: Bounds) -> Result<Arc<Self>, StoreError> {
        let links = Self::begin(connector, bounds);
        links.wait().await?;
        Ok(links)
    }

    /// Begins to keep connections in the runtime of the caller.
    pub(crate) fn begin(connector: C, bounds: Bounds) -> Arc<Self> {
        let slot = || Slot { link: RwLock::default(), taken: AtomicUsize::new(0), given_up: Notify::new() };
        let links = Arc::new(Links {
            connector,
            bounds,
            slots: (0..bounds.connections).map(|_| slot()).collect(),
            room: Semaphore::new(bounds.waiting_max),
            counters: Counters::default(),
            last_error: Mutex::new(None),
            told: Mutex::new(None),
        });
        for number in 0..bounds.connections {
            tokio::spawn(links.clone().keep(number));
        }
        links
    }

    /// Waits until there are connections.
    ///
    /// # Errors
    /// Why there is none, when there was none for as long as the start may take, or at once where waiting cannot help.
    pub(crate) async fn wait(&self) -> Result<(), StoreError> {
        let (begun, mut first) = (Instant::now(), None::<Instant>);
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            let connected = self.counters.connected.load(Ordering::Relaxed);
            let error = self.last_error.lock().clone();
            if connected == self.bounds.connections {
                return Ok(());
            }
            if connected > 0 {
                first.get_or_insert_with(Instant::now);
            }
            if connected > 0 && first.is_some_and(|first| first.elapsed() > OTHERS_TIMEOUT) {
                tracing::warn!(
                    connected,
                    wanted = self.bounds.connections,
                    ?error,
                    "fewer connections than were asked for"
                );
                return Ok(());
            }
            let is_late = begun.elapsed() > self.bounds.start_timeout;
            if let Some(error) = error.filter(|error| is_late || !error.is_transient()) {
                return Err(error);
            }
        }
    }

    /// Where it connects to.
    #[cfg(feature = "opensearch")]
    pub(crate) fn place(&self) -> Arc<str> {
        self.connector.place()
    }

    /// Has one connection, for as long as this lives.
    async fn keep(self: Arc<Self>, number: usize) {
        let slot = &self.slots[number];
        let place = self.connector.place();
        let mut pause = PAUSE_MIN;
        loop {
            match self.connector.connect().await {
                Ok((link, carrier)) => {
                    pause = PAUSE_MIN;
                    let link = Arc::new(link);
                    *slot.link.write() = Some(link.clone());
                    if self.counters.connected.fetch_add(1, Ordering::Relaxed) == 0 {
                        tracing::info!(%place, "connected");
                    }
                    let reason = self.carry(slot, &link, carrier).await;
                    slot.link.write().take_if(|now| Arc::ptr_eq(now, &link));
                    self.counters.lost.fetch_add(1, Ordering::Relaxed);
                    if self.counters.connected.fetch_sub(1, Ordering::Relaxed) == 1 {
                        tracing::error!(%place, reason, "no connection is left: requests fail until one is back");
                    }
                }
                Err(error) => {
                    match error.is_transient() {
                        true => tracing::debug!(%error, "no connection yet"),
                        false => self.tell(&error.to_string()),
                    }
                    *self.last_error.lock() = Some(error);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
    }

    /// Carries a connection on until it is lost or given up.
    async fn carry(&self, slot: &Slot<C::Link>, link: &Arc<C::Link>, mut carrier: Carrier) -> String {
        loop {
            tokio::select! {
                reason = &mut carrier => return reason,
                () = slot.given_up.notified() => {
                    // it may have been another one that was given up
                    if !slot.link.read().as_ref().is_some_and(|now| Arc::ptr_eq(now, link)) {
                        return "an answer did not come in time".to_owned();
                    }
                }
            }
        }
    }

    /// The connection with the fewest requests.
    fn pick(&self) -> Option<Taken<'_, C::Link>> {
        let connected = self.slots.iter().filter(|slot| slot.link.read().is_some());
        let slot = connected.min_by_key(|slot| slot.taken.load(Ordering::Relaxed))?;
        let link = slot.link.read().clone()?;
        slot.taken.fetch_add(1, Ordering::Relaxed);
        Some(Taken { slot, link })
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// There is no connection, or too much waits: nothing was done. Or the answer was none, or did not come in time: nobody
    /// knows whether it was done.
    pub(crate) async fn ask<T, F>(&self, request: impl FnOnce(Arc<C::Link>) -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, Failed>>,
    {
        let Ok(_room) = self.room.try_acquire() else {
            self.counters.refused.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::Busy { what: "as many requests wait as may" });
        };
        let Some(taken) = self.pick() else {
            self.counters.failed.fetch_add(1, Ordering::Relaxed);
            let place = self.connector.place();
            return Err(StoreError::Unreachable { place, reason: "no connection is left".into() });
        };
        let reason = match tokio::time::timeout(self.bounds.timeout, request(taken.link.clone())).await {
            Ok(Ok(answer)) => {
                self.counters.answered.fetch_add(1, Ordering::Relaxed);
                return Ok(answer);
            }
            Ok(Err(Failed::Refused(reason))) => reason,
            #[cfg(any(feature = "mariadb", feature = "postgres"))]
            Ok(Err(Failed::Invalid(reason))) => {
                self.counters.answered.fetch_add(1, Ordering::Relaxed);
                return Err(StoreError::invalid("a value", reason));
            }
            Ok(Err(Failed::Lost(reason))) => {
                taken.give_up();
                format!("the connection was lost: {reason}")
            }
            Err(_) => {
                self.counters.timeouts.fetch_add(1, Ordering::Relaxed);
                taken.give_up();
                format!("no answer came for {:?}", self.bounds.timeout)
            }
        };
        self.counters.failed.fetch_add(1, Ordering::Relaxed);
        self.tell(&reason);
        Err(StoreError::NoAnswer { reason: reason.into() })
    }

    /// Tells the log of a failed request or connection, but not of each.
    fn tell(&self, reason: &str) {
        let mut told = self.told.lock();
        if told.is_none_or(|told| told.elapsed() > TELL_EVERY) {
            *told = Some(Instant::now());
            tracing::warn!(place = %self.connector.place(), reason, "not done; of more only one a second is told");
        }
    }

    /// All that is counted here.
    pub(crate) fn metrics(&self) -> Vec<OwnMetric> {
        let Counters { answered, failed, timeouts, refused, lost, connected } = &self.counters;
        let counter = OwnMetric::counter;
        let gauge = |name, help, value: usize| OwnMetric::gauge(name, help, value as u64);
        let waiting = self.bounds.waiting_max - self.room.available_permits();
        vec![
            gauge("connections", "Connections that are to be", self.bounds.connections),
            gauge("connected", "Connections that there are", connected.load(Ordering::Relaxed)),
            gauge("waiting", "Requests taken and not answered", waiting),
            gauge("waiting_max", "The bound of these", self.bounds.waiting_max),
            counter("answered", "Requests that were answered", answered),
            counter("failed", "Requests without an answer, or with an error for one", failed),
            counter("timeouts", "Of these, those whose answer did not come in time", timeouts),
            counter("refused", "Requests refused because too many waited", refused),
            counter("lost", "Connections that were lost or given up", lost),
        ]
    }
}

/// As an address has them: what has colons of its own stands in brackets.
pub(crate) fn host_and_port(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
