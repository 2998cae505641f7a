//! A conversation with a server over its sockets: whatever a client sends, in whatever pieces, and what must hold of
//! the answers. The fuzzer has this file, too.
#![allow(dead_code)] // each user takes another part

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::Uri;
use axum::routing::{get, post};
use socket2::{Domain, Socket, Type};
use tidemark_rpc::{Calls, service};
use tidemark_service::{Limits, Server, Stop, System};
use tidemark_wire::http1::{DecoderLimits, RequestDecoder, ResponseDecoder};
use tidemark_wire::websocket::{self, Decoder, Event, Role};

/// Bounds of the server, small enough to be hit.
pub const LIMITS: DecoderLimits = DecoderLimits { head_bytes: 8192, headers: 16, body_bytes: 4096 };
/// More than sockets keep of an answer that is not read.
pub const LARGE_BYTES: usize = 300_000;
/// Nothing here takes this long; what hangs fails instead.
const PATIENCE: Duration = Duration::from_secs(60);
/// Segments of so few bytes make small buffers of sockets, from which the server has to send more than once.
const SMALL_SEGMENT_BYTES: u32 = 536;

/// What is called over a WebSocket.
#[service]
pub trait Doubler {
    /// Twice as much.
    async fn double(&self, number: u32) -> u64;
}

struct Plain;

impl Doubler for Plain {
    async fn double(&self, number: u32) -> u64 {
        tokio::task::yield_now().await;
        u64::from(number) * 2
    }
}

/// A server for conversations, until `stop`.
pub fn start(stop: &Stop) -> (SocketAddr, std::thread::JoinHandle<()>) {
    let late = |body: Bytes| async move {
        tokio::time::sleep(Duration::from_micros(300)).await;
        body
    };
    let router = Router::new()
        .route("/echo", post(|body: Bytes| async move { body }))
        .route("/late", post(late))
        .route("/uri", get(|uri: Uri| async move { uri.to_string() }))
        .route("/large", get(|| async { vec![b'x'; LARGE_BYTES] }));
    let limits = Limits {
        head_bytes_max: LIMITS.head_bytes,
        headers_max: LIMITS.headers,
        body_bytes_max: LIMITS.body_bytes,
        ..Limits::default()
    };
    let system = System::new(router).endpoint(Calls::new().service(DoublerService(Plain)));
    let bound = Server::new(system).limits(limits).workers(1).bind().unwrap();
    let (addr, stopped) = (bound.addr(), stop.triggered());
    let thread = std::thread::spawn(move || assert_eq!(bound.serve(stopped).unwrap().connections_cut, 0));
    while !text_of(addr, "/health").contains("\"ready\"") {
        std::thread::sleep(Duration::from_millis(1));
    }
    (addr, thread)
}

/// What the server answers to a GET, on a connection of its own.
pub fn text_of(addr: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// Sends this in pieces of these sizes, closes that side, and returns everything that is answered before the server
/// closes its own. Whether all could be read: a server that closes while the client goes on sending resets it.
pub fn converse(
    addr: SocketAddr,
    mut sent: &[u8],
    pieces: impl IntoIterator<Item = usize>,
    has_small_buffers: bool,
) -> (Vec<u8>, bool) {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, None).unwrap();
    if has_small_buffers {
        socket.set_tcp_mss(SMALL_SEGMENT_BYTES).unwrap();
    }
    socket.connect(&addr.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces.into_iter().chain([usize::MAX]) {
        let (now, later) = sent.split_at(piece.min(sent.len()));
        // it may have closed already
        if stream.write_all(now).is_err() {
            break;
        }
        sent = later;
    }
    let _ = stream.shutdown(Shutdown::Write);
    let (mut received, mut piece) = (Vec::new(), [0; 64 << 10]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return (received, true),
            Ok(got) => received.extend_from_slice(&piece[..got]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return (received, false),
            Err(error) => panic!("neither an answer nor an end: {error}"),
        }
    }
}

/// Holds what was answered against what was sent.
///
/// # Panics
/// Where it is not: an answer for each request, in order, the right one where that is known, nothing between them, and
/// none behind the one that ends the connection.
pub fn check(sent: &[u8], (received, is_whole): (&[u8], bool)) {
    let mut requests = RequestDecoder::new(LIMITS);
    let (mut sent, mut received) = (sent, received);
    loop {
        requests.start();
        let decoded = requests.decode(sent);
        let is_refused = decoded.is_err();
        if decoded.is_ok_and(|decoded| !decoded.complete) {
            let going_on: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
            let is_refusal = received.starts_with(b"HTTP/1.1 4");
            assert!(received.is_empty() || received == going_on || is_refusal, "{}", shown(received));
            return;
        }
        // what is wrong in a body, or in a head whose end has not come, may not have been noticed
        if is_refused && received.is_empty() {
            return;
        }
        let is_head = if is_refused {
            sent.trim_ascii_start().starts_with(b"HEAD ")
        } else {
            requests.method() == b"HEAD"
        };
        let mut answer = ResponseDecoder::new(DecoderLimits::default());
        answer.start(is_head, true);
        let taken = answer.decode(received).unwrap_or_else(|error| panic!("{error}: {}", shown(received)));
        if !taken.complete {
            let text = shown(received);
            assert!(!is_whole, "no answer to {}: {text}", shown(sent));
            return;
        }
        received = &received[taken.consumed..];
        // hyper is more lenient than the decoder that this goes by
        if is_refused {
            assert!(answer.status() < 500, "{} to {}", answer.status(), shown(sent));
            return;
        }
        let (request, behind) = sent.split_at(decoded.map_or(0, |decoded| decoded.consumed));
        // the decoder takes an LF alone as the end of a line, the server does not
        if has_line_end_alone(request) {
            assert!(
                answer.status() == 400 && received.is_empty(),
                "{} to {}",
                answer.status(),
                shown(request)
            );
            return;
        }
        sent = behind;
        check_answer(&requests, &answer);
        if answer.status() == 101 {
            return check_frames(received, is_whole);
        }
        assert!(requests.keep_alive() || !answer.keep_alive(), "a close that was asked for");
        if !answer.keep_alive() {
            assert!(received.is_empty(), "{}", shown(received));
            return;
        }
    }
}

/// Whether a line of a request's head ends in a CR or an LF alone.
fn has_line_end_alone(request: &[u8]) -> bool {
    let end = request.windows(3).position(|end| end == b"\n\r\n");
    let head = &request[..end.map_or(request.len(), |at| at + 3)];
    (0..head.len()).any(|at| match head[at] {
        b'\n' => at == 0 || head[at - 1] != b'\r',
        b'\r' => head.get(at + 1) != Some(&b'\n'),
        _ => false,
    })
}

fn check_answer(request: &RequestDecoder, answer: &ResponseDecoder) {
    let is_ok = match (request.method(), request.target()) {
        (b"POST", b"/echo" | b"/late") => answer.status() == 200 && answer.body() == request.body(),
        (b"GET", target @ (b"/uri" | b"/uri?a")) => answer.status() == 200 && answer.body() == target,
        (b"GET", b"/large") => answer.status() == 200 && answer.body_bytes() == LARGE_BYTES as u64,
        _ => answer.status() < 500,
    };
    let target = shown(request.target());
    assert!(is_ok, "{} {target}: {} {}", shown(request.method()), answer.status(), shown(answer.body()));
}

/// What comes over a WebSocket is frames, and nothing behind a close.
fn check_frames(mut received: &[u8], is_whole: bool) {
    let mut decoder = Decoder::new(Role::Client, websocket::Limits::default());
    loop {
        let decoded = decoder.decode(received).expect("frames");
        received = &received[decoded.consumed..];
        match decoded.event {
            Some(Event::Close) => return assert!(received.is_empty()),
            Some(_) => {}
            None => return assert!(received.is_empty() && (decoder.is_between_messages() || !is_whole)),
        }
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(400)]).into_owned()
}
