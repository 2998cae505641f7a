//! The same for HTTP/2: a server that keeps every request for a known time, and does in turn what it is told.
//!
//! It stands on a runtime of one thread, whose timers are exact to a millisecond; what counts is not the delay that
//! was asked for but the time that it writes down.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use hdrhistogram::Histogram;
use http::{HeaderMap, HeaderName, Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::Freeze;
use crate::truth::{thread_waited_us, times};

/// How a server of HTTP/2 behaves. The default answers everything at once.
///
/// | path | its answer |
/// | --- | --- |
/// | `/bytes/N` | N bytes, and no length |
/// | `/status/S` | that status |
/// | `/echo` | the request's body, its method in `x-method`, its cookie in `x-cookie` |
/// | `/stream` | each piece of the body as it comes; their number in the trailer `x-pieces` |
/// | any other | `ok`, and a cookie `seen=1` |
#[derive(Debug, Clone, Default)]
pub struct Http2Behaviour {
    /// How long a request is kept.
    pub delay: Duration,
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
    /// How long it kept each request that it answered as it should, microseconds.
    pub kept_us: Histogram<u64>,
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

/// What the tasks of a server share.
struct Shared {
    behaviour: Http2Behaviour,
    truth: Mutex<(Http2Truth, u64)>,
}

impl Shared {
    fn with<R>(&self, change: impl FnOnce(&mut Http2Truth, &mut u64) -> R) -> R {
        let (truth, under_way) = &mut *self.truth.lock().unwrap_or_else(PoisonError::into_inner);
        change(truth, under_way)
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
            kept_us: times(),
            requests: 0,
            cancelled: 0,
            connections: 0,
            most_at_once: 0,
            faults: BTreeMap::new(),
            first_request: None,
            waited_us: None,
        };
        let shared = Arc::new(Shared { behaviour, truth: Mutex::new((nothing, 0)) });
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
        Ok(self.shared.with(|truth, _| Http2Truth { waited_us, ..truth.clone() }))
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        shared.with(|truth, _| truth.connections += 1);
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
    let (fault, first) = shared.with(|truth, under_way| {
        let faults = &shared.behaviour.faults;
        let fault =
            *faults.get(truth.requests as usize % faults.len().max(1)).unwrap_or(&Http2Misbehaviour::None);
        truth.requests += 1;
        *truth.faults.entry(fault).or_default() += 1;
        *under_way += 1;
        truth.most_at_once = truth.most_at_once.max(*under_way);
        (fault, *truth.first_request.get_or_insert(read))
    });
    let mut due = read + shared.behaviour.delay;
    if let Some(freeze) = shared.behaviour.freeze {
        let begin = first + freeze.after;
        if due >= begin {
            due = due.max(begin + freeze.length);
        }
    }
    let cancelled = tokio::select! {
        () = tokio::time::sleep_until(due.into()), if due > read => false,
        _ = std::future::poll_fn(|cx| respond.poll_reset(cx)), if due > read => true,
        else => false,
    };
    // Before the answer can have been read by whoever waits for it.
    shared.with(|truth, under_way| {
        *under_way -= 1;
        truth.cancelled += u64::from(cancelled);
        if !cancelled && matches!(fault, Http2Misbehaviour::None | Http2Misbehaviour::GoAway) {
            let _ = truth.kept_us.record(read.elapsed().as_micros().max(1) as u64);
        }
    });
    if !cancelled {
        let _ = send(request, respond, fault, &orders).await;
    }
}

async fn send(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    fault: Http2Misbehaviour,
    orders: &mpsc::UnboundedSender<Order>,
) -> Result<(), h2::Error> {
    let with_length = |length: &str| {
        let head = Response::builder().header("content-length", length).header("set-cookie", "seen=1");
        head.body(()).unwrap_or_default()
    };
    let body =
        |respond: &mut SendResponse<Bytes>, length: &str| respond.send_response(with_length(length), false);
    match fault {
        Http2Misbehaviour::Reset => respond.send_reset(Reason::INTERNAL_ERROR),
        Http2Misbehaviour::Refuse => respond.send_reset(Reason::REFUSED_STREAM),
        Http2Misbehaviour::HalfAnswer => {
            let mut stream = body(&mut respond, "8")?;
            stream.send_data(Bytes::from_static(b"half"), false)?;
            tokio::time::sleep(Duration::from_millis(5)).await;
            stream.send_reset(Reason::CANCEL);
        }
        Http2Misbehaviour::LengthTooLong => {
            body(&mut respond, "100")?.send_data(Bytes::from_static(b"ok"), true)?
        }
        Http2Misbehaviour::Close => drop(orders.send(Order::Close)),
        Http2Misbehaviour::None | Http2Misbehaviour::GoAway => {
            right_answer(request, respond).await?;
            if fault == Http2Misbehaviour::GoAway {
                let _ = orders.send(Order::GoAway);
            }
        }
    }
    Ok(())
}

async fn right_answer(
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let (head, mut received) = request.into_parts();
    let path = head.uri.path();
    if path == "/stream" {
        return echo_pieces(received, respond).await;
    }
    let answer = Response::builder();
    let (answer, body) = if let Some(count) = path.strip_prefix("/bytes/") {
        (answer, vec![b'x'; count.parse().unwrap_or(0)])
    } else if let Some(status) = path.strip_prefix("/status/") {
        (answer.status(status), Vec::new())
    } else if path == "/echo" {
        let mut body = Vec::new();
        while let Some(piece) = received.data().await {
            let piece = piece?;
            received.flow_control().release_capacity(piece.len())?;
            body.extend_from_slice(&piece);
        }
        let cookie = head.headers.get("cookie").map_or("", |value| value.to_str().unwrap_or(""));
        (answer.header("x-method", head.method.as_str()).header("x-cookie", cookie), body)
    } else {
        (answer.header("content-length", "2").header("set-cookie", "seen=1"), b"ok".to_vec())
    };
    let answer = answer.body(()).unwrap_or_default();
    let is_empty = body.is_empty() || head.method == http::Method::HEAD;
    let mut stream: SendStream<Bytes> = respond.send_response(answer, is_empty)?;
    if !is_empty {
        stream.send_data(body.into(), true)?;
    }
    Ok(())
}

async fn echo_pieces(mut received: RecvStream, mut respond: SendResponse<Bytes>) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(Response::new(()), false)?;
    let mut pieces = 0u64;
    while let Some(piece) = received.data().await {
        let piece = piece?;
        received.flow_control().release_capacity(piece.len())?;
        pieces += u64::from(!piece.is_empty());
        stream.send_data(piece, false)?;
    }
    stream.send_trailers(HeaderMap::from_iter([(HeaderName::from_static("x-pieces"), pieces.into())]))
}
