//! The client for one other service: which instance a call goes to, when it is tried again, and when it is not even begun.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tidemark_service::{Timings, worker_index};
use tokio::time::{sleep, timeout_at};
use tower::retry::budget::{Budget, TpsBudget};

use crate::breaker::{Admission, BreakerOptions, Outcome};
use crate::command::{Change, Command};
use crate::connection::{Connection, Lost, Reply};
use crate::discovery::Source;
use crate::events::Events;
use crate::instances::{Balance, Instance, Instances};
use crate::peak::Peak;

/// A call is begun at most so often.
const ATTEMPTS_MAX: usize = 4;
/// A connection has the time of a call divided by this, so that there is time for another instance.
const CONNECT_DIVISOR: u32 = 4;
/// Retries are at most this share of the calls of the last [`RETRY_WINDOW`], beside a few each second in any case.
const RETRY_SHARE: f32 = 0.2;
const RETRIES_PER_S: u32 = 10;
const RETRY_WINDOW: Duration = Duration::from_secs(10);
/// Threads that have connections of their own; of more, some share.
const SLOTS: usize = 64;
/// Reads on one connection before another is opened: a read waits only for reads, which are fast.
const READS_EACH: usize = 16;
/// Writes have connections of their own, and each one to itself while there are enough: answers come in order, so
/// whatever stands behind a write waits until it is on the disk.
const WRITES_EACH: usize = 1;
/// Connections of one thread to one instance, for reads and for writes each. Beyond, the one with the fewest requests is
/// shared.
const CONNECTIONS_MAX: usize = 32;
/// How often the list of instances is asked for.
const REFRESH_EVERY: Duration = Duration::from_secs(2);
/// How long that may take.
const REFRESH_MAX: Duration = Duration::from_secs(3);

/// How calls are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// The name that the other service's instances register with.
    pub service: String,
    /// The kinds of calls, each with a breaker of its own.
    pub commands: &'static [&'static str],
    /// What they are called together.
    pub group: &'static str,
    /// What their common bound on calls under way is called.
    pub pool_name: &'static str,
    /// Calls under way at once; one more is rejected.
    pub pool: usize,
    /// How long a call may take, all attempts together.
    pub timeout: Duration,
    /// When the breaker of a command opens.
    pub breaker: BreakerOptions,
    /// How an instance is chosen.
    pub balance: Balance,
    /// A GET without an answer for so long is sent to another instance, too; zero: never.
    pub hedge: Duration,
    /// Where the instances are known from.
    pub source: Source,
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Makes something new each time, so it is tried again only where nothing was done, for certain.
    Post,
    /// Removes; idempotent.
    Delete,
}

impl Method {
    fn is_idempotent(self) -> bool {
        self != Method::Post
    }

    /// The beginning of a request, and its end.
    fn words(self) -> (&'static [u8], &'static [u8]) {
        match self {
            Method::Get => (b"GET ", b"\r\n\r\n"),
            Method::Post => (b"POST ", b"\r\ncontent-length: 0\r\n\r\n"),
            Method::Delete => (b"DELETE ", b"\r\n\r\n"),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The breaker is open.
    #[error("the breaker of {0} is open: the service has failed too often; it is tried again soon")]
    ShortCircuited(&'static str),
    /// Too many calls are under way.
    #[error("{0} calls are in flight, the limit; raise the setting pool, or try again later")]
    Rejected(usize),
    /// No answer came in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// There is nobody to ask.
    #[error("no instance of {0} is known; start one, or check where they are looked for")]
    NoInstance(String),
    /// The instance cannot be reached, or has gone.
    #[error("the instance at {0} cannot be reached")]
    Lost(SocketAddr),
    /// The instance says that it does not work.
    #[error("the instance at {0} answered {1}")]
    Answered(SocketAddr, u16),
}

impl CallError {
    fn outcome(&self) -> Outcome {
        match self {
            CallError::ShortCircuited(_) => Outcome::ShortCircuited,
            CallError::Rejected(_) => Outcome::Rejected,
            CallError::Timeout(_) => Outcome::Timeout,
            CallError::NoInstance(_) | CallError::Lost(_) | CallError::Answered(..) => Outcome::Failure,
        }
    }
}

/// A failed attempt, and whether the request may be sent once more if it is not repeatable.
struct Failed {
    error: CallError,
    not_done: bool,
}

/// The connections of one thread.
type Slot = Mutex<Vec<Link>>;

/// A connection, and what it is for.
struct Link {
    addr: SocketAddr,
    is_for_reads: bool,
    connection: Arc<Connection>,
}

/// A client for one other service. Shared by all threads; each worker of a server has connections of its own.
pub struct Client {
    pub(crate) options: ClientOptions,
    pub(crate) commands: Box<[Command]>,
    pub(crate) instances: Instances,
    pub(crate) events: Events,
    /// Calls under way.
    pub(crate) under_way: AtomicUsize,
    pub(crate) peak: Peak,
    pub(crate) refreshes_failed: AtomicU64,
    pub(crate) streams: AtomicUsize,
    pub(crate) stops: AtomicBool,
    pub(crate) times: Arc<Timings>,
    slots: Box<[Slot]>,
    budget: TpsBudget,
    begun: Instant,
}

impl Client {
    /// A client. Instances that stand in a fixed list as addresses are known at once, all others after a
    /// [`refresh`](Client::refresh).
    pub fn new(options: ClientOptions) -> Arc<Self> {
        let client = Client {
            commands: options.commands.iter().map(|name| Command::new(name, options.breaker)).collect(),
            instances: Instances::new(options.balance),
            events: Events::default(),
            under_way: AtomicUsize::new(0),
            peak: Peak::new(options.breaker.window_ms),
            refreshes_failed: AtomicU64::new(0),
            streams: AtomicUsize::new(0),
            stops: AtomicBool::new(false),
            times: Arc::new(Timings::new(
                "mesh_call_seconds",
                "Time that a call to another service took, all attempts together, in seconds",
                "command",
                options.commands,
            )),
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            budget: TpsBudget::new(RETRY_WINDOW, RETRIES_PER_S, RETRY_SHARE),
            begun: Instant::now(),
            options,
        };
        client.instances.set(client.options.source.known());
        Arc::new(client)
    }

    /// Milliseconds on this client's own clock.
    pub(crate) fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Asks where the instances are. Where that cannot be known, or is said to be nowhere, the list stays as it is.
    pub async fn refresh(&self) {
        let ClientOptions { service, source, .. } = &self.options;
        let found = tokio::time::timeout(REFRESH_MAX, source.find(service)).await;
        let failed = match found {
            Ok(Ok(addrs)) => {
                if !addrs.is_empty() {
                    self.instances.set(addrs);
                }
                self.refreshes_failed.store(0, Ordering::Relaxed);
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {REFRESH_MAX:?}"),
        };
        if self.refreshes_failed.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!(service, failed, "instances cannot be looked up; those known are used");
        }
    }

    /// Whether any instance is known.
    pub fn knows_any(&self) -> bool {
        !self.instances.known().is_empty()
    }

    /// Keeps the list of instances up to date, for ever.
    pub async fn keep_list(self: Arc<Self>) {
        loop {
            self.refresh().await;
            sleep(REFRESH_EVERY).await;
        }
    }

    /// How long calls took, for the metrics of whoever has this client.
    pub fn timings(&self) -> Arc<Timings> {
        self.times.clone()
    }

    /// Ends all event streams, within half a second.
    pub fn stop_streams(&self) {
        self.stops.store(true, Ordering::Relaxed);
    }

    /// Makes a call of the kind with this number. Every answer but 5xx is one.
    ///
    /// `path` stands in the request as it is: whatever is not a token in it must be encoded.
    ///
    /// # Errors
    /// There is no answer in time, or the call was not even begun.
    pub async fn call(&self, command: usize, method: Method, path: &str) -> Result<Reply, CallError> {
        debug_assert!(!path.contains(char::is_whitespace), "{path:?}");
        let kind = &self.commands[command];
        let now_ms = self.now_ms();
        let (admission, change) = kind.admit(now_ms);
        self.note(kind, change);
        if admission == Admission::Refused {
            return Err(CallError::ShortCircuited(kind.name));
        }
        let begun = Instant::now();
        let mut call = Call::begin(self, kind, admission == Admission::Trial);
        if self.under_way.load(Ordering::Relaxed) > self.options.pool {
            call.ended(Outcome::Rejected, None);
            return Err(CallError::Rejected(self.options.pool));
        }
        self.peak.enter(now_ms, self.under_way.load(Ordering::Relaxed));
        kind.peak.enter(now_ms, kind.under_way.load(Ordering::Relaxed));
        self.budget.deposit();
        let result = self.attempts(kind, method, path, begun).await;
        let took = begun.elapsed();
        let outcome = result.as_ref().err().map_or(Outcome::Success, CallError::outcome);
        call.ended(outcome, Some(took));
        self.times.record(command, took);
        result
    }

    fn note(&self, command: &Command, change: Change) {
        if let Some((from, to)) = change {
            self.events.enter(command.name, from, to);
        }
    }

    async fn attempts(
        &self,
        command: &Command,
        method: Method,
        path: &str,
        begun: Instant,
    ) -> Result<Reply, CallError> {
        let deadline = begun + self.options.timeout;
        let mut tried = Vec::new();
        let mut last = None;
        while tried.len() < ATTEMPTS_MAX {
            let now_ms = self.now_ms();
            // A connection that was closed meanwhile says nothing about the instance, so one may be tried twice.
            let again = || (tried.len() == 1).then(|| self.instances.next(now_ms, &[])).flatten();
            let Some(instance) = self.instances.next(now_ms, &tried).or_else(again) else { break };
            let addr = instance.addr;
            if last.is_some() {
                command.retries.fetch_add(1, Ordering::Relaxed);
            }
            let attempt = self.hedged(command, method, path, instance, deadline).await;
            let Failed { error, not_done } = match attempt {
                Ok(reply) => return Ok(reply),
                Err(failed) => failed,
            };
            let is_late = matches!(error, CallError::Timeout(_));
            last = Some(error);
            tried.push(addr);
            if is_late || !(method.is_idempotent() || not_done) || !self.budget.withdraw() {
                break;
            }
        }
        Err(last.unwrap_or_else(|| CallError::NoInstance(self.options.service.clone())))
    }

    /// An attempt, and where it takes long a second one elsewhere: the first answer counts.
    async fn hedged(
        &self,
        command: &Command,
        method: Method,
        path: &str,
        instance: Arc<Instance>,
        deadline: Instant,
    ) -> Result<Reply, Failed> {
        let addr = instance.addr;
        let mut first = pin!(self.attempt(method, path, instance, deadline));
        if self.options.hedge.is_zero() || method != Method::Get {
            return first.await;
        }
        tokio::select! {
            biased;
            result = &mut first => return result,
            () = sleep(self.options.hedge) => {}
        }
        let other = self.instances.next(self.now_ms(), &[addr]);
        let Some(other) = other.filter(|_| self.budget.withdraw()) else { return first.await };
        command.hedges.fetch_add(1, Ordering::Relaxed);
        let mut second = pin!(self.attempt(method, path, other, deadline));
        tokio::select! {
            result = &mut first => if result.is_ok() { result } else { second.await },
            result = &mut second => if result.is_ok() { result } else { first.await },
        }
    }

    async fn attempt(
        &self,
        method: Method,
        path: &str,
        instance: Arc<Instance>,
        deadline: Instant,
    ) -> Result<Reply, Failed> {
        let addr = instance.addr;
        let left = deadline.saturating_duration_since(Instant::now());
        let _under_way = UnderWay::begin(&instance);
        let lost = |not_done| Failed { error: CallError::Lost(addr), not_done };
        let Some(answer) = self.send(method, path, &instance, deadline) else { return Err(lost(true)) };
        let answer = timeout_at(deadline.into(), answer).await;
        match answer {
            Ok(Ok(Ok(reply))) if reply.status < 500 => {
                instance.is_well();
                Ok(reply)
            }
            Ok(Ok(Ok(reply))) => {
                instance.is_bad(self.now_ms());
                Err(Failed { error: CallError::Answered(addr, reply.status), not_done: false })
            }
            Ok(Ok(Err(how))) => {
                instance.is_away(self.now_ms());
                Err(lost(how == Lost::NotDone))
            }
            // the connection's task has ended without a word, which it does not
            Ok(Err(_)) => Err(lost(false)),
            Err(_) => {
                // it is not to blame where others had used up the time
                if left >= self.options.timeout / 2 {
                    instance.is_bad(self.now_ms());
                }
                Err(Failed { error: CallError::Timeout(self.options.timeout), not_done: false })
            }
        }
    }

    /// Sends a request on a connection of this thread. None where that takes no more.
    fn send(
        &self,
        method: Method,
        path: &str,
        instance: &Instance,
        deadline: Instant,
    ) -> Option<tokio::sync::oneshot::Receiver<Result<Reply, Lost>>> {
        let now = Instant::now();
        let left_ms = deadline.saturating_duration_since(now).as_millis();
        let (begin, end) = method.words();
        let write = |out: &mut Vec<u8>| {
            let mut ms = [0; 20];
            for part in [
                begin,
                path.as_bytes(),
                b" HTTP/1.1\r\nhost: ",
                instance.host.as_bytes(),
                b"\r\nx-deadline-ms: ",
                decimal(left_ms as u64, &mut ms),
                end,
            ] {
                out.extend_from_slice(part);
            }
        };
        let connection = || self.connection(instance, method == Method::Get);
        connection().send(now, write).or_else(|| connection().send(now, write))
    }

    /// The first connection of this thread that has room, so that those that are not needed fall idle and end.
    fn connection(&self, instance: &Instance, is_for_reads: bool) -> Arc<Connection> {
        let each = if is_for_reads { READS_EACH } else { WRITES_EACH };
        let mut slot = self.slots[worker_index() % SLOTS].lock();
        let mut count = 0;
        let mut least: Option<(usize, &Arc<Connection>)> = None;
        for link in slot.iter().filter(|link| link.addr == instance.addr && link.is_for_reads == is_for_reads)
        {
            let Some(waiting) = link.connection.waiting() else { continue };
            if waiting < each {
                return link.connection.clone();
            }
            count += 1;
            if least.is_none_or(|(fewest, _)| waiting < fewest) {
                least = Some((waiting, &link.connection));
            }
        }
        if let Some((_, connection)) = least.filter(|_| count >= CONNECTIONS_MAX) {
            return connection.clone();
        }
        slot.retain(|link| link.connection.waiting().is_some());
        let timeout = self.options.timeout;
        let connection = Connection::open(instance.addr, timeout / CONNECT_DIVISOR, timeout * 2);
        slot.push(Link { addr: instance.addr, is_for_reads, connection: connection.clone() });
        connection
    }
}

/// A number in decimal.
fn decimal(mut number: u64, room: &mut [u8; 20]) -> &[u8] {
    let mut at = room.len();
    loop {
        at -= 1;
        room[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &room[at..];
        }
    }
}

/// A call that was let through; its place is given back however it ends.
struct Call<'a> {
    client: &'a Client,
    command: &'a Command,
    trial: bool,
    has_ended: bool,
}

impl<'a> Call<'a> {
    fn begin(client: &'a Client, command: &'a Command, trial: bool) -> Self {
        client.under_way.fetch_add(1, Ordering::Relaxed);
        command.under_way.fetch_add(1, Ordering::Relaxed);
        Call { client, command, trial, has_ended: false }
    }

    fn ended(&mut self, outcome: Outcome, took: Option<Duration>) {
        self.has_ended = true;
        let change = self.command.ended(self.client.now_ms(), outcome, self.trial, took);
        self.client.note(self.command, change);
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.client.under_way.fetch_sub(1, Ordering::Relaxed);
        self.command.under_way.fetch_sub(1, Ordering::Relaxed);
        if !self.has_ended && self.trial {
            self.client.note(self.command, self.command.abandoned());
        }
    }
}

struct UnderWay<'a>(&'a Instance);

impl<'a> UnderWay<'a> {
    fn begin(instance: &'a Instance) -> Self {
        instance.under_way.fetch_add(1, Ordering::Relaxed);
        instance.requests.fetch_add(1, Ordering::Relaxed);
        UnderWay(instance)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}
