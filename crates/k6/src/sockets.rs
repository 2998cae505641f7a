//! WebSockets of a user: what it says over them, what came, and what is measured of both.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use rquickjs::function::Func;
use rquickjs::{Array, ArrayBuffer, Ctx, Object, Result, Value};
use tidemark_drive::{Heard, Said};

use crate::bytes;
use crate::head;
use crate::host::{self, Host, SLEEP_MAX};
use crate::metrics::{self, Kind};
use crate::modules::thrown;
use crate::reply;
use crate::requests;
use crate::text::Told;
use crate::vu::{Answer, Input, Output, Request};

/// Most bytes that came over a WebSocket and that the script has not looked at; one message alone may be larger.
const UNSEEN_BYTES: usize = 16 << 20;
/// What a message takes beside its bytes.
const EACH_BYTES: usize = 64;
/// Most pings whose pongs are awaited.
const PINGS_MAX: usize = 1_000;
/// Most WebSockets of an iteration.
const SOCKETS_MAX: usize = 1_000;
/// The status by which a WebSocket begins.
pub(crate) const SWITCHING: u16 = 101;
/// Close code: the peer gave none.
const NO_CODE: u16 = 1005;
/// Close code: the connection ended without a close.
const ABNORMAL: u16 = 1006;

/// What came over a WebSocket.
#[derive(Debug)]
pub(crate) enum News {
    /// What its handshake was answered with.
    Answer(Box<Answer>),
    Text(String),
    Binary(Vec<u8>),
    Ping,
    Pong(String),
    Closed(Option<u16>, String),
    Ended,
    /// It broke, in words that the script sees.
    Broken(&'static str),
}

impl News {
    pub fn of(heard: &Heard<'_>) -> News {
        match heard {
            Heard::Text(text) => News::Text((*text).to_owned()),
            Heard::Binary(bytes) => News::Binary(bytes.to_vec()),
            Heard::Ping(_) => News::Ping,
            Heard::Pong(payload) => News::Pong(String::from_utf8_lossy(payload).into_owned()),
            Heard::Closed(code, reason) => News::Closed(*code, (*reason).to_owned()),
            Heard::Ended => News::Ended,
            // as k6 tells it
            Heard::Broken(_) => News::Broken(""),
        }
    }

    /// Whether nothing follows.
    pub fn is_last(&self) -> bool {
        matches!(self, News::Closed(..) | News::Ended | News::Broken(_))
    }

    fn bytes(&self) -> usize {
        EACH_BYTES
            + match self {
                News::Text(text) | News::Closed(_, text) => text.len(),
                News::Binary(bytes) => bytes.len(),
                News::Pong(payload) => payload.len(),
                _ => 0,
            }
    }
}

/// What came over a user's WebSockets and that its script has not looked at.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    news: VecDeque<(u64, Instant, News)>,
    bytes: usize,
}

impl Inbox {
    /// Takes what came of a WebSocket; false where there is no room for it, which the script is told in its place.
    pub fn push(&mut self, socket: u64, news: News) -> bool {
        let has_room = self.bytes < UNSEEN_BYTES;
        let news = match has_room {
            true => news,
            false => News::Broken("more came over the WebSocket than the script looked at"),
        };
        self.bytes += news.bytes();
        self.news.push_back((socket, Instant::now(), news));
        has_room
    }

    /// The oldest of those that are asked for.
    fn take(&mut self, is_wanted: impl Fn(u64) -> bool) -> Option<(u64, Instant, News)> {
        let at = self.news.iter().position(|(socket, ..)| is_wanted(*socket))?;
        let taken = self.news.remove(at)?;
        self.bytes -= taken.2.bytes();
        Some(taken)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Inbox::default();
    }
}

/// What a socket is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SocketKind {
    /// A WebSocket of `k6/ws`.
    Ws,
    /// One of `k6/websockets`.
    Standard,
    /// A stream of gRPC.
    Stream,
}

/// A WebSocket or a stream that a script has.
#[derive(Debug)]
struct Socket {
    url: String,
    name: Option<String>,
    group: String,
    tags: String,
    kind: SocketKind,
    begun: Instant,
    is_open: bool,
    is_closing: bool,
    status: String,
    protocol: String,
    pings: HashMap<String, Instant>,
}

/// A user's WebSockets, by the numbers of their branches.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    all: RefCell<HashMap<u64, Socket>>,
    /// Whether the script waits for any whose listeners hear what comes.
    are_awaited: Cell<bool>,
}

impl Sockets {
    /// Whether the script waits for any whose listeners hear what comes.
    pub fn are_awaited(&self) -> bool {
        self.are_awaited.get()
    }

    /// An iteration begins.
    pub fn clear(&self) {
        self.all.borrow_mut().clear();
        self.are_awaited.set(false);
    }
}

pub(crate) fn install(natives: &Object<'_>) -> Result<()> {
    natives.set("socketOpen", Func::from(open))?;
    natives.set("streamOpen", Func::from(open_stream))?;
    natives.set("socketNext", Func::from(next))?;
    natives.set("socketSay", Func::from(say))?;
    natives.set("socketClose", Func::from(close))?;
    natives.set("socketLeave", Func::from(leave))?;
    natives.set("socketOver", Func::from(over))?;
    natives.set("socketsAre", Func::from(are))
}

/// Measures values of a WebSocket.
fn add(host: &Host, socket: &Socket, values: &[(usize, Kind, f64)]) {
    let is_ws = socket.kind == SocketKind::Ws;
    let named = socket.name.as_deref().filter(|_| !is_ws).unwrap_or(&socket.url);
    let own = [("url", named), ("name", named), ("status", &socket.status), ("subproto", &socket.protocol)];
    // k6 gives those of `k6/ws` no name
    let own = match socket.kind {
        SocketKind::Standard => &own[..],
        SocketKind::Ws => &[own[0], own[2], own[3]][..],
        SocketKind::Stream => &[("url", socket.url.as_str()), ("name", named)][..],
    };
    host.add(values, &socket.group, &socket.tags, own);
}

fn header<'a>(head: &'a str, name: &str) -> &'a str {
    let pairs = head.lines().filter_map(|line| line.split_once(':'));
    pairs
        .into_iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map_or("", |(_, value)| value.trim())
}

/// Whether the iteration may have one more.
///
/// # Errors
/// If it has too many.
fn has_room(ctx: &Ctx<'_>, host: &Host) -> Result<()> {
    host.is_in_run(ctx, "a WebSocket or stream")?;
    match host.sockets.all.borrow().len() < SOCKETS_MAX {
        true => Ok(()),
        false => Err(thrown(ctx, &format!("more than {SOCKETS_MAX} WebSockets and streams at once"))),
    }
}

/// Opens a stream of gRPC; its number. `extra`: group, name, tags.
fn open_stream<'js>(ctx: Ctx<'js>, Told(url): Told, Told(head): Told, extra: Array<'js>) -> Result<u64> {
    let host = host::host(&ctx)?;
    has_room(&ctx, &host)?;
    let name = extra.get::<Option<Told>>(1)?.map(|name| name.0);
    let request = Request {
        method: "POST".into(),
        url: url.clone(),
        headers: head::headers(&head),
        name: name.clone(),
        is_stream: true,
        ..Request::default()
    };
    let socket = Socket {
        url,
        name,
        group: extra.get::<Told>(0)?.0,
        tags: extra.get::<Told>(2)?.0,
        kind: SocketKind::Stream,
        begun: Instant::now(),
        is_open: true,
        is_closing: false,
        status: String::new(),
        protocol: String::new(),
        pings: HashMap::new(),
    };
    let number = host.beside.number();
    host.leaves_something();
    let input = host.wait(&ctx, Output::Begin(number, Box::new(request)))?;
    refused(&ctx, input)?;
    let values =
        [(metrics::GRPC_STREAMS, Kind::Counter, 1.0), (metrics::DATA_SENT, Kind::Counter, head.len() as f64)];
    add(&host, &socket, &values);
    host.sockets.all.borrow_mut().insert(number, socket);
    Ok(number)
}

/// Whether the user was refused what it did.
///
/// # Errors
/// If what the user did cannot be done at all: the types know no such method, or no such message.
fn refused(ctx: &Ctx<'_>, input: Input) -> Result<()> {
    match input {
        Input::Answer(answer) if answer.is_unsendable => Err(thrown(ctx, &answer.error)),
        _ => Ok(()),
    }
}

/// Asks for a WebSocket; its number. `extra`: group, name, tags, whether it is one of `k6/websockets`.
fn open<'js>(
    ctx: Ctx<'js>,
    Told(asked): Told,
    Told(url): Told,
    Told(head): Told,
    protocols: String,
    extra: Array<'js>,
) -> Result<u64> {
    let host = host::host(&ctx)?;
    has_room(&ctx, &host)?;
    let name = extra.get::<Option<Told>>(1)?.map(|name| name.0);
    let mut socket = Socket {
        url,
        name: name.clone(),
        group: extra.get::<Told>(0)?.0,
        tags: extra.get::<Told>(2)?.0,
        kind: if extra.get(3)? { SocketKind::Standard } else { SocketKind::Ws },
        begun: Instant::now(),
        is_open: false,
        is_closing: false,
        status: String::new(),
        protocol: String::new(),
        pings: HashMap::new(),
    };
    let protocols = protocols.split(", ").filter(|one| !one.is_empty()).map(str::to_owned);
    let mut request = Request {
        method: "GET".into(),
        url: asked,
        headers: head::headers(&head),
        name,
        websocket: Some(protocols.collect()),
        ..Request::default()
    };
    if let Some(url) = requests::below(&host, &request.url) {
        socket.url = url.replacen("http", "ws", 1);
        request.url = url;
    }
    let number = host.beside.number();
    host.leaves_something();
    add(&host, &socket, &[(metrics::DATA_SENT, Kind::Counter, head.len() as f64)]);
    host.sockets.all.borrow_mut().insert(number, socket);
    host.wait(&ctx, Output::Begin(number, Box::new(request)))?;
    Ok(number)
}

/// What came next over a WebSocket of `k6/ws`; null where nothing does in so many milliseconds (below 0: ever).
fn next<'js>(ctx: Ctx<'js>, number: u64, wait_ms: f64) -> Result<Option<Array<'js>>> {
    let host = host::host(&ctx)?;
    let until = (wait_ms >= 0.0).then(|| {
        let wait = Duration::from_secs_f64((wait_ms / 1_000.0).min(SLEEP_MAX.as_secs_f64()));
        Instant::now() + wait
    });
    loop {
        let news = host.inbox.borrow_mut().take(|socket| socket == number);
        if let Some((_, at, news)) = news {
            return took(&ctx, &host, number, at, news).map(Some);
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(None);
        }
        match host.wait(&ctx, Output::Await(left))? {
            Input::Arrived(id, answer) => host.beside.put_aside(id, answer),
            // there is no time without a network
            Input::Woken if host.script.is_rehearsal && left.is_some() => return Ok(None),
            _ => {}
        }
    }
}

/// What came over any whose listeners hear it: its number, and what the script hears.
pub(crate) fn heard<'js>(ctx: &Ctx<'js>, host: &Host) -> Result<Option<(u64, Array<'js>)>> {
    let is_heard = |socket: u64| {
        host.sockets.all.borrow().get(&socket).is_some_and(|socket| socket.kind != SocketKind::Ws)
    };
    let news = host.inbox.borrow_mut().take(is_heard);
    let Some((number, at, news)) = news else { return Ok(None) };
    Ok(Some((number, took(ctx, host, number, at, news)?)))
}

/// The script takes what came: it is measured, and told in values.
fn took<'js>(ctx: &Ctx<'js>, host: &Host, number: u64, at: Instant, news: News) -> Result<Array<'js>> {
    let mut all = host.sockets.all.borrow_mut();
    let Some(socket) = all.get_mut(&number) else { return Array::new(ctx.clone()) };
    let mut values: Vec<(usize, Kind, f64)> = Vec::new();
    let received = |bytes: usize| (metrics::DATA_RECEIVED, Kind::Counter, bytes as f64);
    let list = Array::new(ctx.clone())?;
    let put = |told: &[&str]| told.iter().enumerate().try_for_each(|(at, text)| list.set(at, *text));
    let is_stream = socket.kind == SocketKind::Stream;
    match news {
        // it could not be opened
        News::Answer(answer) if is_stream => {
            put(&["broken", &answer.error])?;
            list.set(2, answer.error_code)?;
        }
        News::Answer(answer) => {
            let Answer { status, head, body, .. } = *answer;
            let connecting_ms = at.saturating_duration_since(socket.begun).as_secs_f64() * 1_000.0;
            values.extend([
                (metrics::WS_SESSIONS, Kind::Counter, 1.0),
                (metrics::WS_CONNECTING, Kind::Trend, connecting_ms),
                received(head.len() + body.len()),
            ]);
            socket.is_open = status == SWITCHING;
            if status > 0 {
                socket.status = status.to_string();
            }
            let words = match (socket.is_open, status) {
                (true, _) => {
                    header(&head, "sec-websocket-protocol").clone_into(&mut socket.protocol);
                    String::new()
                }
                (false, 0) => answer.error,
                (false, _) => "websocket: bad handshake".to_owned(),
            };
            let (head, cookies) = reply::split(&head);
            put(&["open"])?;
            list.set(1, status)?;
            list.set(2, head)?;
            list.set(3, String::from_utf8_lossy(&body).into_owned())?;
            list.set(4, words)?;
            list.set(5, cookies)?;
        }
        News::Text(text) => {
            values.push(received(text.len()));
            if is_stream {
                values.push((metrics::GRPC_STREAMS_MSGS_RECEIVED, Kind::Counter, 1.0));
            } else if !socket.is_closing {
                values.push((metrics::WS_MSGS_RECEIVED, Kind::Counter, 1.0));
            }
            put(&["text", &text])?;
        }
        News::Binary(bytes) => {
            values.push(received(bytes.len()));
            if !socket.is_closing {
                values.push((metrics::WS_MSGS_RECEIVED, Kind::Counter, 1.0));
            }
            put(&["binary"])?;
            list.set(1, ArrayBuffer::new_copy(ctx.clone(), bytes)?)?;
        }
        News::Ping => put(&["ping"])?,
        News::Pong(payload) => {
            if let Some(begun) = socket.pings.remove(&payload) {
                let took_ms = at.saturating_duration_since(begun).as_secs_f64() * 1_000.0;
                values.push((metrics::WS_PING, Kind::Trend, took_ms));
            }
            put(&["pong"])?;
        }
        News::Closed(code, reason) => {
            let code = code.unwrap_or(NO_CODE);
            put(&["close", "", &close_words(code, &reason), &reason])?;
            list.set(1, code)?;
        }
        News::Ended => {
            let reason = "unexpected EOF";
            put(&["close", "", &close_words(ABNORMAL, reason), reason])?;
            list.set(1, ABNORMAL)?;
        }
        News::Broken(words) => put(&["broken", words])?,
    }
    if !values.is_empty() {
        add(host, socket, &values);
    }
    Ok(list)
}

/// A close as k6 tells it.
fn close_words(code: u16, reason: &str) -> String {
    let name = match code {
        1000 => " (normal)",
        1001 => " (going away)",
        1002 => " (protocol error)",
        1003 => " (unsupported data)",
        NO_CODE => " (no status)",
        ABNORMAL => " (abnormal closure)",
        1007 => " (invalid payload data)",
        1008 => " (policy violation)",
        1009 => " (message too big)",
        1010 => " (mandatory extension missing)",
        1011 => " (internal server error)",
        1015 => " (TLS handshake error)",
        _ => "",
    };
    let colon = if reason.is_empty() { "" } else { ": " };
    format!("websocket: close {code}{name}{colon}{reason}")
}

/// Says something, if the WebSocket is there still; whether it is.
fn say<'js>(ctx: Ctx<'js>, number: u64, kind: String, data: Value<'js>) -> Result<bool> {
    let host = host::host(&ctx)?;
    let data = bytes::optional(&data)?.unwrap_or_default();
    {
        let mut all = host.sockets.all.borrow_mut();
        let Some(socket) = all.get_mut(&number) else { return Ok(false) };
        let is_ping = kind == "ping";
        if is_ping && socket.pings.len() < PINGS_MAX {
            socket.pings.insert(String::from_utf8_lossy(&data).into_owned(), Instant::now());
        }
        let is_stream = socket.kind == SocketKind::Stream;
        let counted = usize::from(!is_ping || socket.kind == SocketKind::Standard);
        let sent = if is_stream { metrics::GRPC_STREAMS_MSGS_SENT } else { metrics::WS_MSGS_SENT };
        let values = [(metrics::DATA_SENT, Kind::Counter, data.len() as f64), (sent, Kind::Counter, 1.0)];
        add(&host, socket, &values[..=counted]);
    }
    let said = match kind.as_str() {
        "text" => Said::Text(String::from_utf8_lossy(&data).into_owned()),
        "ping" => Said::Ping(data),
        _ => Said::Binary(data),
    };
    refused(&ctx, host.wait(&ctx, Output::Say(number, said))?)?;
    Ok(true)
}

/// Closes it; what the other side answers is heard.
fn close(ctx: Ctx<'_>, number: u64, code: u16, Told(reason): Told) -> Result<()> {
    let host = host::host(&ctx)?;
    if let Some(socket) = host.sockets.all.borrow_mut().get_mut(&number) {
        socket.is_closing = true;
        if socket.kind != SocketKind::Stream {
            add(&host, socket, &[(metrics::WS_MSGS_SENT, Kind::Counter, 1.0)]);
        }
    }
    host.wait(&ctx, Output::Say(number, Said::Close(code, reason))).map(drop)
}

/// Closes it, and the connection.
fn leave(ctx: Ctx<'_>, number: u64, code: f64) -> Result<()> {
    let host = host::host(&ctx)?;
    let code = if (0.0..65_536.0).contains(&code) { code as u16 } else { NO_CODE };
    host.wait(&ctx, Output::Say(number, Said::Leave(code))).map(drop)
}

/// The script has done with it.
fn over(ctx: Ctx<'_>, number: u64) -> Result<()> {
    let host = host::host(&ctx)?;
    let Some(socket) = host.sockets.all.borrow_mut().remove(&number) else { return Ok(()) };
    if socket.kind == SocketKind::Stream {
        return Ok(());
    }
    if socket.is_open || socket.kind == SocketKind::Ws {
        let took_ms = socket.begun.elapsed().as_secs_f64() * 1_000.0;
        add(&host, &socket, &[(metrics::WS_SESSION_DURATION, Kind::Trend, took_ms)]);
    }
    Ok(())
}

/// Notes whether the script waits for any whose listeners hear what comes.
fn are(ctx: Ctx<'_>, there: bool) -> Result<()> {
    host::host(&ctx)?.sockets.are_awaited.set(there);
    Ok(())
}
