//! The same for HTTP/2, and gRPC on it: a server that keeps every request for a known time, and does in turn what it is told.
//!
//! It stands on a runtime of one thread, whose timers are exact to a millisecond; what counts is not the delay that
//! was asked for but the time that it writes down.

mod answer;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use hdrhistogram::Histogram;
use http::Request;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::peer::path_number;
use crate::truth::{sum_of, thread_waited_us, times};
use crate::{Delay, Freeze};
use answer::send;

/// Longer than anybody waits.
const NEVER: Duration = Duration::from_secs(86_400);

/// How a server of HTTP/2 behaves. The default answers everything at once.
///
/// | path | its answer |
/// | --- | --- |
/// | `/bytes/N` | N bytes, and no length |
/// | `/status/S` | that status |
/// | `/echo` | the request's body, its method in `x-method`, its cookie in `x-cookie` |
/// | `/stream` | each piece of the body as it comes; their number in the trailer `x-pieces` |
/// | any other | `ok`, and a cookie `seen=1` |
///
/// A call of gRPC is answered with its own messages, and `OK` (`crates/truth/truth.proto`).
#[derive(Debug, Clone, Default)]
pub struct Http2Behaviour {
    /// How long a request is kept, by shard: the number at the end of a path, modulo how many there are, says which
    /// (a path without one is of shard 0). None: no delay, one shard.
    pub delays: Vec<Delay>,
    /// Requests that it is able to serve in a second, one after the other in the order in which they came.
    pub capacity_per_s: Option<f64>,
    /// How requests are answered, in turn: request `n` by `faults[n % len]`. None: all as they should.
    pub faults: Vec<Http2Misbehaviour>,
    /// A time in which nothing is answered.
    pub freeze: Option<Freeze>,
    /// Streams that it takes at once on a connection.
    pub most_streams: Option<u32>,
    /// Over TLS, with what is in here.
    pub tls: Option<Arc<ServerConfig>>,
}

/// What is done in place of an answer, or with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Http2Misbehaviour {
    /// Nothing.
    None,
    /// The stream is reset in place of an answer.
    Reset,
    /// The stream is refused.
    Refuse,
    /// Nothing, until whoever asked gives up.
    Silence,
    /// A call of gRPC ends with this status.
    GrpcStatus(u32),
    /// Half of the answer, then the stream is reset.
    HalfAnswer,
    /// The length that the answer names is more than what comes.
    LengthTooLong,
    /// It is answered, and the connection takes no further streams.
    GoAway,
    /// The connection is closed, with all that is under way on it.
    Close,
}

/// What a server did.
#[derive(Debug, Clone)]
pub struct Http2Truth {
    /// How long it kept each request that it answered as it should, microseconds, by shard.
    pub kept_us: Vec<Histogram<u64>>,
    /// Requests read.
    pub requests: u64,
    /// Requests that were cancelled before their answer.
    pub cancelled: u64,
    /// Connections accepted.
    pub connections: u64,
    /// Most streams under way at once, over all connections.
    pub most_at_once: u64,
    /// What was done, by kind.
    pub faults: BTreeMap<Http2Misbehaviour, u64>,
    /// When the first request was read.
    pub first_request: Option<Instant>,
    /// How long the server's thread was ready to run but had no core, microseconds.
    pub waited_us: Option<u64>,
}

impl Http2Truth {
    /// All shards together.
    pub fn all_kept_us(&self) -> Histogram<u64> {
        sum_of(&self.kept_us)
    }

    /// How often something was done.
    pub fn count(&self, fault: Http2Misbehaviour) -> u64 {
        self.faults.get(&fault).copied().unwrap_or(0)
    }
}

/// What a server has done, and what it does next.
struct State {
    truth: Http2Truth,
    under_way: u64,
    random: fastrand::Rng,
    /// When what it has to serve by then is served.
    busy_until: Option<Instant>,
}

/// What the tasks of a server share.
struct Shared {
    behaviour: Http2Behaviour,
    state: Mutex<State>,
}

impl Shared {
    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A request of a shard was read: what is done with it, and when.
    fn plan(&self, shard: usize, read: Instant) -> (Http2Misbehaviour, Instant) {
        let Http2Behaviour { delays, faults, capacity_per_s, freeze, .. } = &self.behaviour;
        self.with(|state| {
            let truth = &mut state.truth;
            let turn = truth.requests as usize % faults.len().max(1);
            let fault = *faults.get(turn).unwrap_or(&Http2Misbehaviour::None);
            truth.requests += 1;
            *truth.faults.entry(fault).or_default() += 1;
            state.under_way += 1;
            truth.most_at_once = truth.most_at_once.max(state.under_way);
            let first = *truth.first_request.get_or_insert(read);
            let begin = match capacity_per_s {
                None => read,
                Some(per_s) => {
                    let begin = state.busy_until.map_or(read, |until| until.max(read));
                    *state.busy_until.insert(begin + Duration::from_secs_f64(1.0 / per_s))
                }
            };
            let delay_ns = delays.get(shard).map_or(0, |delay| delay.draw_ns(&mut state.random));
            let mut due = begin + Duration::from_nanos(delay_ns);
            if let Some(freeze) = freeze {
                let begin = first + freeze.after;
                if due >= begin {
                    due = due.max(begin + freeze.length);
                }
            }
            match fault {
                Http2Misbehaviour::Silence => (fault, read + NEVER),
                _ => (fault, due),
            }
        })
    }
}

/// A server on a thread of its own. Dropping it ends it; [`stop`](Http2Server::stop) also tells what it did.
pub struct Http2Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: JoinHandle<Option<u64>>,
}

impl Http2Server {
    /// Starts one on a free port of 127.0.0.1.
    ///
    /// # Errors
    /// If the system does not give a port or a thread.
    pub fn start(behaviour: Http2Behaviour) -> io::Result<Http2Server> {
        let socket = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        let address = socket.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let nothing = Http2Truth {
            kept_us: vec![times(); behaviour.delays.len().max(1)],
            requests: 0,
            cancelled: 0,
            connections: 0,
            most_at_once: 0,
            faults: BTreeMap::new(),
            first_request: None,
            waited_us: None,
        };
        let random = fastrand::Rng::with_seed(1);
        let state = State { truth: nothing, under_way: 0, random, busy_until: None };
        let shared = Arc::new(Shared { behaviour, state: Mutex::new(state) });
        let (stop, stopped) = oneshot::channel();
        let for_thread = shared.clone();
        let thread = std::thread::Builder::new().name("truth-http2".into()).spawn(move || {
            runtime.block_on(async {
                let Ok(listener) = TcpListener::from_std(socket) else { return };
                tokio::select! {
                    () = accept(listener, for_thread) => {}
                    _ = stopped => {}
                }
            });
            thread_waited_us()
        })?;
        Ok(Http2Server { address, shared, stop: Some(stop), thread })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it, and tells what it did.
    ///
    /// # Errors
    /// If it could not go on.
    pub fn stop(mut self) -> io::Result<Http2Truth> {
        drop(self.stop.take());
        let broken = |_| io::Error::other("the server's thread broke down");
        let waited_us = self.thread.join().map_err(broken)?;
        Ok(self.shared.with(|state| Http2Truth { waited_us, ..state.truth.clone() }))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        shared.with(|state| state.truth.connections += 1);
        let shared = shared.clone();
        tokio::spawn(async move {
            match shared.behaviour.tls.clone() {
                None => serve(socket, shared).await,
                Some(config) => {
                    if let Ok(stream) = TlsAcceptor::from(config).accept(socket).await {
                        serve(stream, shared).await;
                    }
                }
            }
        });
    }
}

/// What a request tells its connection to do.
enum Order {
    GoAway,
    Close,
}

async fn serve(socket: impl AsyncRead + AsyncWrite + Unpin, shared: Arc<Shared>) {
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(1 << 20).initial_connection_window_size(8 << 20);
    if let Some(most) = shared.behaviour.most_streams {
        builder.max_concurrent_streams(most);
    }
    let Ok(mut connection) = builder.handshake::<_, Bytes>(socket).await else { return };
    let (orders, mut ordered) = mpsc::unbounded_channel();
    loop {
        tokio::select! {
            accepted = connection.accept() => {
                let Some(Ok((request, respond))) = accepted else { return };
                tokio::spawn(answer(request, respond, shared.clone(), orders.clone()));
            }
            order = ordered.recv() => match order {
                Some(Order::GoAway) => connection.graceful_shutdown(),
                Some(Order::Close) | None => return,
            },
        }
    }
}

async fn answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    shared: Arc<Shared>,
    orders: mpsc::UnboundedSender<Order>,
) {
    let read = Instant::now();
    let shards = shared.behaviour.delays.len().max(1) as u64;
    let shard = (path_number(request.uri().path().as_bytes()) % shards) as usize;
    let (fault, due) = shared.plan(shard, read);
    let cancelled = tokio::select! {
        () = tokio::time::sleep_until(due.into()), if due > read => false,
        _ = std::future::poll_fn(|cx| respond.poll_reset(cx)), if due > read => true,
        else => false,
    };
    // Before the answer can have been read by whoever waits for it.
    shared.with(|state| {
        state.under_way -= 1;
        state.truth.cancelled += u64::from(cancelled);
        if !cancelled && matches!(fault, Http2Misbehaviour::None | Http2Misbehaviour::GoAway) {
            let _ = state.truth.kept_us[shard].record(read.elapsed().as_micros().max(1) as u64);
        }
    });
    if !cancelled {
        let _ = send(request, respond, fault, &orders).await;
    }
}
