//! The server: binds, accepts, hands connections to its workers, and stops in order.

use std::fmt;
use std::future::Future;
use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::http::{Response, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, oneshot};

use crate::endpoint::{Endpoint, EndpointRequest, FastPath, RouteId, Upgrade};
use crate::metrics::{Bound, Counts, NO_ROUTE};
use crate::process::Process;
use crate::shared::{Shared, State};
use crate::{Answer, Limits, Pace, ServiceError, answer, open_files, publish, worker};

/// Connections the kernel keeps for us until we accept them.
const BACKLOG: i32 = 4096;
/// Connections on their way to one worker.
const HANDOVER_MAX: usize = 1024;
/// Connections that are refused in a second, and at once: each costs the accepting thread some 50 µs, of a core that
/// workers may share. Further ones wait in the kernel, and then their clients do.
const REFUSED_PER_S: u64 = 1_000;
const REFUSED_AT_ONCE: u64 = 100;
/// Most worker threads.
const WORKERS_MAX: usize = 256;
/// What a system does before it stops takes no longer.
const BEFORE_STOP_MAX: Duration = Duration::from_secs(10);
/// Pause after an accept that failed for lack of something, open files for example.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

type Background = Pin<Box<dyn Future<Output = ()> + Send>>;
/// What serves a connection of HTTP/2.
pub(crate) type BeginHttp2 = Box<dyn Fn() -> Box<dyn Upgrade> + Send + Sync>;
type AtStop = Box<dyn FnOnce() + Send>;
type OnceServing = Box<dyn FnOnce(SocketAddr) -> Background + Send>;
/// Why a system could not start: whatever its store or the operating system said.
pub type StartError = Box<dyn std::error::Error + Send + Sync>;

/// A system that is ready to serve: its routes, and what belongs to them.
pub struct System {
    router: Router,
    endpoints: Vec<Box<dyn Endpoint>>,
    http2: Option<BeginHttp2>,
    background: Vec<Background>,
    once_serving: Vec<OnceServing>,
    collectors: Vec<Box<dyn Collector>>,
    before_stop: Vec<Background>,
    at_stop: Vec<AtStop>,
    refuse: Refuse,
    trouble: Trouble,
}

/// Says why a system cannot do its work now, or that it can.
pub(crate) type Trouble = Box<dyn Fn() -> Option<&'static str> + Send + Sync>;

/// Makes the answer that says why a request is refused.
pub type Refuse = fn(StatusCode, &str) -> Response<Body>;

impl System {
    /// A system with these routes. Unknown paths and methods are answered by the server, as JSON reasons;
    /// fallbacks of the router itself are replaced.
    pub fn new(router: Router) -> Self {
        System {
            router,
            endpoints: Vec::new(),
            http2: None,
            background: Vec::new(),
            once_serving: Vec::new(),
            collectors: Vec::new(),
            before_stop: Vec::new(),
            at_stop: Vec::new(),
            refuse: answer::reason,
            trouble: Box::new(|| None),
        }
    }

    /// Has unknown paths and methods answered in another form than `{"reason": …}`.
    pub fn refusals(mut self, refuse: Refuse) -> Self {
        self.refuse = refuse;
        self
    }

    /// One more endpoint, which is asked before the router, behind those that are there already.
    pub fn endpoint(mut self, endpoint: impl Endpoint) -> Self {
        self.endpoints.push(Box::new(endpoint));
        self
    }

    /// Has connections that begin as HTTP/2 does (by prior knowledge) served by what `begin` gives, in place of HTTP/1.1.
    pub fn http2(mut self, begin: impl Fn() -> Box<dyn Upgrade> + Send + Sync + 'static) -> Self {
        self.http2 = Some(Box::new(begin));
        self
    }

    /// A fast path for what is asked for far more often than all else: past the router, and with nothing of the request
    /// kept while it waits. `begin` gets the request, and copies what it needs of it; where it gives nothing the router is
    /// asked, which has the path too.
    pub fn fast_path<F: Future<Output = Answer> + Send + 'static>(
        self,
        path: &'static str,
        begin: impl Fn(&EndpointRequest<'_>) -> Option<F> + Send + Sync + 'static,
    ) -> Self {
        self.endpoint(FastPath { path, route: RouteId(NO_ROUTE), begin })
    }

    /// Its routes alone, for whoever serves them by another server than this crate's: without health, metrics, bounds,
    /// endpoints and the work in the background.
    pub fn into_router(self) -> Router {
        self.router
    }

    /// Work that goes on beside the requests until the server stops: sweeping, following the calendar.
    /// It runs on the accepting thread, so what it blocks is only new connections. At the stop it is dropped, before
    /// requests in flight are waited for.
    pub fn background(mut self, work: impl Future<Output = ()> + Send + 'static) -> Self {
        self.background.push(Box::pin(work));
        self
    }

    /// The same, begun when the system is reachable and with the address that it has: to tell others where it is.
    pub fn once_serving<F: Future<Output = ()> + Send + 'static>(
        mut self,
        begin: impl FnOnce(SocketAddr) -> F + Send + 'static,
    ) -> Self {
        self.once_serving.push(Box::new(move |local| Box::pin(begin(local))));
        self
    }

    /// Something to do at the stop while everything is still served, for ten seconds at most: to tell others that it goes,
    /// and give them time to take notice. Several are done one after the other.
    pub fn before_stop(mut self, first: impl Future<Output = ()> + Send + 'static) -> Self {
        self.before_stop.push(Box::pin(first));
        self
    }

    /// Has `/health` answer 503 while `trouble` says why the system cannot do its work. It is called for each such request,
    /// and must not block.
    pub fn health(mut self, trouble: impl Fn() -> Option<&'static str> + Send + Sync + 'static) -> Self {
        self.trouble = Box::new(trouble);
        self
    }

    /// More metrics for `/metrics`.
    pub fn metrics(mut self, collector: impl Collector) -> Self {
        self.collectors.push(Box::new(collector));
        self
    }

    /// More metrics for `/metrics`, which `write` gives with the functions of [`encode`](crate::encode) at each scrape.
    pub fn counters(
        self,
        write: impl Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static,
    ) -> Self {
        self.metrics(Counters(write))
    }

    /// Something to do after the last request has been answered.
    pub fn at_stop(mut self, last: impl FnOnce() + Send + 'static) -> Self {
        self.at_stop.push(Box::new(last));
        self
    }
}

/// Metrics that a function writes.
struct Counters<F>(F);

impl<F> fmt::Debug for Counters<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Counters")
    }
}

impl<F: Fn(&mut DescriptorEncoder<'_>) -> fmt::Result + Send + Sync + 'static> Collector for Counters<F> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        (self.0)(&mut encoder)
    }
}

impl Default for System {
    /// A system without routes of its own, for endpoints.
    fn default() -> Self {
        System::new(Router::new())
    }
}

impl From<Router> for System {
    fn from(router: Router) -> Self {
        System::new(router)
    }
}

/// How serving ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// Connections that were cut because their requests were not done at the stop deadline.
    pub connections_cut: usize,
}

/// A server, to be told where and how.
pub struct Server {
    start: Box<dyn FnOnce() -> Result<System, StartError> + Send>,
    name: &'static str,
    version: &'static str,
    addr: SocketAddr,
    workers: usize,
    limits: Limits,
    announce: bool,
}

impl Server {
    /// A server of a system that is ready.
    pub fn new(system: impl Into<System>) -> Self {
        let system = system.into();
        Self::starting(move || Ok::<_, std::io::Error>(system))
    }

    /// A server of a system that takes time to start: `start` opens its store and loads its data on a thread of
    /// its own, while `/health` and everything else already answer 503.
    pub fn starting<E: Into<StartError>>(start: impl FnOnce() -> Result<System, E> + Send + 'static) -> Self {
        Server {
            start: Box::new(move || start().map_err(Into::into)),
            name: "service",
            version: env!("CARGO_PKG_VERSION"),
            addr: SocketAddr::from(([127, 0, 0, 1], 0)),
            workers: std::thread::available_parallelism().map_or(1, |n| n.get()),
            limits: Limits::default(),
            announce: false,
        }
    }

    /// What the system is called in health, metrics and logs.
    pub fn name(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// Where to listen; port 0 takes a free one. 127.0.0.1:0 where nothing is said.
    pub fn listen(mut self, addr: SocketAddr) -> Self {
        self.addr = addr;
        self
    }

    /// How many worker threads; as many as there are processors where nothing is said.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = workers;
        self
    }

    /// Bounds on what clients may hold and send.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether to print `listening http://ADDRESS` as one line on standard output once the system has started.
    pub fn announce(mut self, announce: bool) -> Self {
        self.announce = announce;
        self
    }

    /// Takes the address. Connections wait until [`BoundServer::serve`].
    pub fn bind(self) -> Result<BoundServer, ServiceError> {
        self.limits.check()?;
        if self.workers == 0 || self.workers > WORKERS_MAX {
            let given = self.workers.to_string();
            return Err(ServiceError::Setting { name: "the number of workers", given, allowed: "1 to 256" });
        }
        let addr = self.addr;
        let (listener, local) = listen(addr).map_err(|source| ServiceError::Listen { addr, source })?;
        Ok(BoundServer { server: self, listener, local })
    }

    /// Binds and serves until `stop` completes. See [`BoundServer::serve`].
    pub fn serve(self, stop: impl Future<Output = ()>) -> Result<Served, ServiceError> {
        self.bind()?.serve(stop)
    }
}

fn listen(addr: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    // So that a server that is started again does not wait for the old connections to be forgotten.
    #[cfg(unix)]
    socket.set_reuse_address(true)?;
    socket.bind(&addr.into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from(socket);
    let local = listener.local_addr()?;
    Ok((listener, local))
}

/// A server that has its address.
pub struct BoundServer {
    server: Server,
    listener: TcpListener,
    local: SocketAddr,
}

impl BoundServer {
    /// The address it has, with the port that was really taken.
    pub fn addr(&self) -> SocketAddr {
        self.local
    }

    /// Serves until `stop` completes, then finishes what is in flight. Blocks; the calling thread accepts the
    /// connections and polls `stop` on an event loop with signals and timers. Not to be called on an async
    /// runtime's thread: use `spawn_blocking` or a thread there.
    pub fn serve(self, stop: impl Future<Output = ()>) -> Result<Served, ServiceError> {
        let BoundServer { server, listener, local } = self;
        let held_bytes_max = server.limits.held_bytes_max;
        let counts = Arc::new(Counts::new(server.workers, server.name, server.version, held_bytes_max));
        let mut registry = Registry::default();
        registry.register_collector(Box::new(counts.clone()));
        registry.register_collector(Box::new(Process::new()));
        let shared = Arc::new(Shared::new(server.name, server.version, server.limits, counts, registry));
        open_files::raise(server.limits.connections_max);
        let control = event_loop()?;
        let workers = Workers::start(&shared, server.workers)?;
        tracing::info!(system = server.name, %local, workers = server.workers, "starting");

        let started = start_system(server.start)?;
        let announce = server.announce.then_some(local);
        let accepting = accept_until(&shared, &workers, listener, (started, announce), stop);
        let (accepted, at_stop) = control.block_on(accepting);
        shared.advance(State::Stopping);
        if accepted.is_ok() {
            tracing::info!("stopping: finishing what is in flight");
        }
        drop(control); // ends the background work, which nobody polls any more
        let connections_cut = workers.finish();
        at_stop.into_iter().for_each(|last| last());
        accepted?;
        if connections_cut > 0 {
            tracing::warn!(connections_cut, "connections were cut at the stop deadline");
        }
        tracing::info!("stopped");
        Ok(Served { connections_cut })
    }
}

fn event_loop() -> Result<Runtime, ServiceError> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServiceError::Worker)
}

type Started = oneshot::Receiver<Result<System, StartError>>;

/// Starts the system on a thread of its own.
fn start_system(
    start: Box<dyn FnOnce() -> Result<System, StartError> + Send>,
) -> Result<Started, ServiceError> {
    let (done, started) = oneshot::channel();
    let run = move || {
        // Nobody waits any more if the server was stopped meanwhile.
        let _ = done.send(start());
    };
    std::thread::Builder::new().name("start".into()).spawn(run).map_err(ServiceError::Worker)?;
    Ok(started)
}

/// Accepts connections until the stop; makes the system reachable once it has started.
async fn accept_until(
    shared: &Arc<Shared>,
    workers: &Workers,
    listener: TcpListener,
    (mut started, announce): (Started, Option<SocketAddr>),
    stop: impl Future<Output = ()>,
) -> (Result<(), ServiceError>, Vec<AtStop>) {
    let (mut before_stop, mut at_stop) = (Vec::new(), Vec::new());
    let mut starting = true;
    let mut stop = std::pin::pin!(stop);
    let refusals = Pace::new(REFUSED_PER_S, REFUSED_AT_ONCE);
    let local = match listener.local_addr() {
        Ok(local) => local,
        Err(error) => return (Err(ServiceError::Accept(error)), at_stop),
    };
    let at_last = listener.try_clone();
    let accepting = async {
        let listener = tokio::net::TcpListener::from_std(listener).map_err(ServiceError::Accept)?;
        loop {
            match listener.accept().await.and_then(|(stream, _)| stream.into_std()) {
                Ok(stream) if workers.have_room(shared) => workers.hand_over(shared, stream).await,
                Ok(stream) => {
                    shared.counts.workers[0].bound_hit(Bound::Connections);
                    refuse(stream);
                    tokio::time::sleep_until(refusals.turn(Instant::now()).into()).await;
                }
                Err(error) => {
                    shared.counts.workers[0].accept_failures.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    };
    let mut accepting = std::pin::pin!(accepting);
    loop {
        tokio::select! {
            biased;
            () = &mut stop => {
                let before = async { for first in before_stop { first.await } };
                let result = tokio::select! {
                    _ = tokio::time::timeout(BEFORE_STOP_MAX, before) => Ok(()),
                    result = &mut accepting => result,
                };
                // whoever has connected by now is answered, too
                while let Ok((stream, _)) = at_last.as_ref().map_or_else(|_| Err(ErrorKind::NotFound.into()), TcpListener::accept) {
                    if stream.set_nonblocking(true).is_err() || !workers.have_room(shared) {
                        break;
                    }
                    workers.hand_over(shared, stream).await;
                }
                return (result, at_stop);
            }
            system = &mut started, if starting => {
                starting = false;
                let system = system.unwrap_or_else(|_| Err("it panicked; the log has the details".into()));
                match system {
                    Ok(system) => {
                        match ready(shared, system, local) {
                            Ok(ends) => (before_stop, at_stop) = ends,
                            Err(error) => return (Err(error), at_stop),
                        }
                        announce.into_iter().for_each(say_listening);
                    }
                    Err(failure) => return (Err(ServiceError::Start(failure)), at_stop),
                }
            }
            result = &mut accepting, if !(starting && shared.limits.accept_when_ready) => return (result, at_stop),
        }
    }
}

/// The line that whoever started this waits for.
fn say_listening(local: SocketAddr) {
    let mut out = std::io::stdout().lock();
    // A closed standard output is no reason not to serve.
    let _ = writeln!(out, "listening http://{local}").and_then(|()| out.flush());
}

/// Makes a system that has started reachable.
fn ready(
    shared: &Arc<Shared>,
    system: System,
    local: SocketAddr,
) -> Result<(Vec<Background>, Vec<AtStop>), ServiceError> {
    let System {
        router,
        endpoints,
        http2,
        background,
        once_serving,
        mut collectors,
        before_stop,
        at_stop,
        ..
    } = system;
    let (refuse, trouble) = (system.refuse, system.trouble);
    let mut published = publish::publish(shared, router, endpoints, refuse, trouble, &mut collectors)?;
    published.http2 = http2;
    let mut registry = shared.registry.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    collectors.into_iter().for_each(|collector| registry.register_collector(collector));
    drop(registry);
    background.into_iter().for_each(|work| drop(tokio::spawn(work)));
    // Set once only: a server starts one system.
    let _ = shared.published.set(published);
    shared.advance(State::Ready);
    let reached = shared.limits.advertise.unwrap_or(local);
    once_serving.into_iter().for_each(|begin| drop(tokio::spawn(begin(reached))));
    tracing::info!(system = shared.name, "ready");
    Ok((before_stop, at_stop))
}

/// The worker threads, and the way to hand them connections.
struct Workers {
    handovers: Vec<mpsc::Sender<TcpStream>>,
    threads: Vec<JoinHandle<usize>>,
}

impl Workers {
    fn start(shared: &Arc<Shared>, count: usize) -> Result<Self, ServiceError> {
        let mut workers = Workers { handovers: Vec::new(), threads: Vec::new() };
        for index in 0..count {
            let (handover, incoming) = mpsc::channel(HANDOVER_MAX);
            let runtime = event_loop()?;
            let shared = shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || runtime.block_on(worker::run(shared, index, incoming)))
                .map_err(ServiceError::Worker)?;
            workers.handovers.push(handover);
            workers.threads.push(thread);
        }
        Ok(workers)
    }

    /// Whether one more connection is allowed.
    fn have_room(&self, shared: &Shared) -> bool {
        shared.counts.open_connections() < shared.limits.connections_max as i64
    }

    /// Gives a new connection to the worker that has the fewest.
    ///
    /// One thread accepts for all rather than each worker on a listening socket of its own: the kernel would
    /// spread connections over those by a hash, and a hundred connections, the usual number in a measurement,
    /// land 60 to 40 often enough to cost a fifth of the throughput.
    async fn hand_over(&self, shared: &Shared, stream: TcpStream) {
        let counts = &shared.counts;
        let open = |index: usize| counts.workers[index].connections_open.load(Ordering::Relaxed);
        let Some(index) = (0..self.handovers.len()).min_by_key(|&index| open(index)) else { return };
        // Small answers must leave at once. Where these fail the connection is dead, and the worker sees it.
        let _ = stream.set_nodelay(true);
        counts.workers[index].connections_open.fetch_add(1, Ordering::Relaxed);
        if self.handovers[index].send(stream).await.is_err() {
            counts.workers[index].connections_open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits until all connections have ended or were cut; returns the number of the latter.
    fn finish(self) -> usize {
        drop(self.handovers);
        // A worker that panicked has dropped its connections; the panic is in the log.
        self.threads.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    }
}

/// Says that there is no room, without waiting for the client to take it.
fn refuse(stream: TcpStream) {
    const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\n\
        connection: close\r\nretry-after: 1\r\ncontent-length: 34\r\n\r\n{\"reason\":\"too many connections\"}\n";
    let _ = (&stream).write(NO_ROOM); // the stream is non-blocking
}
