//! The service by gRPC: one message in, one message out, for each of a call's messages.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use tidemark_service::{Held, Limits, Upgrade, Upgraded};
use tidemark_wire::encoding::{Scratch, decode};
use tidemark_wire::grpc::{GrpcError, Messages, write_message};
use tidemark_wire::protobuf::{Message, NoMessage, Value, fields};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout, timeout_at};

use crate::description;
use crate::trades::{Counting, Trade, Trades};

/// Most calls at once on a connection.
const STREAMS: u32 = 1_000;
/// Largest list of headers of a call.
const HEADERS_BYTES: u32 = 16 << 10;
/// What a call is taken to hold at least: itself, and messages of the usual size.
const CALL_BYTES: usize = 2 << 10;
/// Most bytes of a call's answers that the library keeps until the socket takes them.
const UNSENT_BYTES: usize = 16 << 10;

// Codes of gRPC.
const OK: u32 = 0;
const INVALID_ARGUMENT: u32 = 3;
const DEADLINE_EXCEEDED: u32 = 4;
const NOT_FOUND: u32 = 5;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;
const UNAVAILABLE: u32 = 14;

const SERVING: u64 = 1;
const REFLECTION: [&str; 2] =
    ["grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"];

/// A code and words, in place of an answer.
type Refused = (u32, &'static str);

impl From<NoMessage> for Status {
    fn from(_: NoMessage) -> Status {
        Status((INVALID_ARGUMENT, "malformed message"))
    }
}

/// How a call ends, where it is not well.
struct Status(Refused);

/// The service, as all connections share it.
#[derive(Debug)]
pub(crate) struct Grpc {
    pub(crate) counting: Arc<Counting>,
    pub(crate) message_bytes_max: usize,
}

/// A connection of HTTP/2.
pub(crate) struct Connection(pub(crate) Arc<Grpc>);

impl Upgrade for Connection {
    fn run<'a>(
        self: Box<Self>,
        connection: Upgraded<'a>,
    ) -> Pin<Box<dyn Future<Output = TcpStream> + Send + 'a>> {
        Box::pin(async move {
            let Upgraded { mut stream, silence_max, stop, held, .. } = connection;
            let mut builder = h2::server::Builder::new();
            builder.max_concurrent_streams(STREAMS).max_header_list_size(HEADERS_BYTES);
            builder.max_send_buffer_size(UNSENT_BYTES);
            let shaking = builder.handshake::<_, Bytes>(&mut stream);
            if let Ok(Ok(http)) = timeout(silence_max, shaking).await {
                serve(&self.0, http, held, (silence_max, stop)).await;
            }
            stream
        })
    }
}

/// The calls under way on a connection, and what they hold together.
struct Calls {
    sum: Mutex<Sum>,
    /// The last of them is over.
    none_left: Notify,
}

struct Sum {
    held: Held,
    bytes: usize,
    calls: usize,
}

impl Calls {
    fn new(held: Held) -> Arc<Calls> {
        Arc::new(Calls { sum: Mutex::new(Sum { held, bytes: 0, calls: 0 }), none_left: Notify::new() })
    }

    fn sum(&self) -> MutexGuard<'_, Sum> {
        // The lock is one thread's own: it is never waited for.
        self.sum.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_none(&self) -> bool {
        self.sum().calls == 0
    }

    /// One more call; none where there is no room for what it holds.
    fn begin(self: &Arc<Self>) -> Option<Part> {
        self.sum().calls += 1;
        let mut part = Part { calls: self.clone(), bytes: 0 };
        part.set(0).is_ok().then_some(part)
    }
}

/// What one call holds; given back when it is dropped.
struct Part {
    calls: Arc<Calls>,
    bytes: usize,
}

impl Part {
    /// Enters that the call keeps so many bytes while it waits.
    fn set(&mut self, bytes: usize) -> Result<(), Status> {
        let bytes = bytes.max(CALL_BYTES);
        if bytes == self.bytes {
            return Ok(());
        }
        let mut sum = self.calls.sum();
        let all = sum.bytes - self.bytes + bytes;
        if !sum.held.set(all) {
            return Err(Status((UNAVAILABLE, "there is no memory for the call now")));
        }
        sum.bytes = all;
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let mut sum = self.calls.sum();
        sum.calls -= 1;
        sum.bytes -= self.bytes;
        let all = sum.bytes;
        // less fits always
        let _ = sum.held.set(all);
        if sum.calls == 0 {
            self.calls.none_left.notify_one();
        }
    }
}

/// Answers calls until there are no more. A client that is silent, and has no call under way, is told to go.
async fn serve(
    grpc: &Arc<Grpc>,
    mut http: h2::server::Connection<&mut TcpStream, Bytes>,
    held: Held,
    (silence_max, mut stop): (Duration, Pin<Box<dyn Future<Output = ()> + Send + '_>>),
) {
    let calls = Calls::new(held);
    let patience = silence_max.min(Limits::default().body_timeout);
    let mut is_going = false;
    loop {
        tokio::select! {
            accepted = http.accept() => {
                let Some(Ok((request, mut answer))) = accepted else { return };
                let Some(part) = calls.begin() else {
                    answer.send_reset(Reason::REFUSED_STREAM);
                    continue;
                };
                let grpc = grpc.clone();
                tokio::spawn(async move {
                    // a client that is gone needs no answer
                    let _ = grpc.answer(request, answer, (part, patience)).await;
                });
            }
            // the silence begins
            () = calls.none_left.notified() => {}
            () = &mut stop, if !is_going => {
                is_going = true;
                http.graceful_shutdown();
            }
            () = tokio::time::sleep(silence_max), if calls.is_none() => {
                if is_going {
                    return;
                }
                is_going = true;
                http.graceful_shutdown();
            }
        }
    }
}

/// A method: what it is called, and whether it takes and gives many messages.
#[derive(Clone, Copy)]
enum Method {
    Take,
    TakeEach,
    Count,
    Health,
    Reflection,
}

impl Method {
    fn of(path: &str) -> Option<Method> {
        let (service, method) = path.strip_prefix('/')?.split_once('/')?;
        Some(match (service, method) {
            (description::SERVICE, "Take") => Method::Take,
            (description::SERVICE, "TakeEach") => Method::TakeEach,
            (description::SERVICE, "Count") => Method::Count,
            ("grpc.health.v1.Health", "Check") => Method::Health,
            (service, "ServerReflectionInfo") if REFLECTION.contains(&service) => Method::Reflection,
            _ => return None,
        })
    }

    fn has_streams(self) -> bool {
        matches!(self, Method::TakeEach | Method::Reflection)
    }
}

impl Grpc {
    async fn answer(
        &self,
        request: Request<RecvStream>,
        mut answer: SendResponse<Bytes>,
        held: (Part, Duration),
    ) -> Result<(), h2::Error> {
        let kind = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if !kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
            let mut head = Response::new(());
            *head.status_mut() = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            return answer.send_response(head, true).map(drop);
        }
        let mut head = Response::new(());
        let grpc = HeaderValue::from_static("application/grpc");
        head.headers_mut().insert(CONTENT_TYPE, grpc);
        let Some(method) = Method::of(request.uri().path()) else {
            head.headers_mut().extend(trailers((UNIMPLEMENTED, "there is no such method")));
            return answer.send_response(head, true).map(drop);
        };
        let encoding = request.headers().get("grpc-encoding").map(|name| name.as_bytes().to_vec());
        let mut sending = answer.send_response(head, false)?;
        let exchange = self.exchange((method, encoding), request.into_body(), &mut sending, held);
        let status = match exchange.await? {
            Ok(()) => (OK, ""),
            Err(Status(refused)) => refused,
        };
        sending.send_trailers(trailers(status))
    }

    /// Answers each message of a call as it comes. Each must be whole `patience` after the one before.
    async fn exchange(
        &self,
        (method, encoding): (Method, Option<Vec<u8>>),
        mut body: RecvStream,
        sending: &mut SendStream<Bytes>,
        (mut part, patience): (Part, Duration),
    ) -> Result<Result<(), Status>, h2::Error> {
        let mut messages = Messages::new(self.message_bytes_max);
        let (mut count, mut count_before) = (0, 0);
        // bytes that there is room for in `messages`
        let mut kept_bytes = 0;
        let mut due = Instant::now() + patience;
        loop {
            let Ok(came) = timeout_at(due, body.data()).await else {
                return Ok(Err(Status((DEADLINE_EXCEEDED, "no whole message came in time"))));
            };
            let Some(piece) = came else { break };
            let piece = piece?;
            body.flow_control().release_capacity(piece.len())?;
            messages.push(&piece);
            drop(piece);
            kept_bytes = kept_bytes.max(messages.waiting_bytes());
            loop {
                let (mut plain, mut room) = (Vec::new(), Scratch::default());
                let bytes = match messages.next() {
                    Ok(None) => break,
                    Ok(Some(message)) if message.is_compressed => {
                        let limit = self.message_bytes_max;
                        match decode(encoding.as_deref(), message.bytes, limit, &mut plain, &mut room) {
                            Ok(true) => &plain,
                            _ => {
                                return Ok(Err(Status((
                                    UNIMPLEMENTED,
                                    "cannot decompress: wrong grpc-encoding, or too large",
                                ))));
                            }
                        }
                    }
                    Ok(Some(message)) => message.bytes,
                    Err(GrpcError::TooLarge { .. }) => {
                        return Ok(Err(Status((RESOURCE_EXHAUSTED, "the message is too large"))));
                    }
                    Err(GrpcError::Flag(_)) => {
                        return Ok(Err(Status((INVALID_ARGUMENT, "invalid compression flag"))));
                    }
                };
                count += 1;
                if count > 1 && !method.has_streams() {
                    return Ok(Err(Status((INVALID_ARGUMENT, "the method takes one message"))));
                }
                let mut answer = Vec::new();
                match self.answer_to(method, bytes).await {
                    Ok(message) => write_message(&message.into_bytes(), &mut answer),
                    Err(status) => return Ok(Err(status)),
                }
                drop((plain, room));
                if let Err(status) = part.set(kept_bytes + answer.len()) {
                    return Ok(Err(status));
                }
                send(sending, answer.into(), patience).await?;
            }
            if messages.is_empty() && kept_bytes > CALL_BYTES {
                messages = Messages::new(self.message_bytes_max);
                kept_bytes = 0;
            }
            if let Err(status) = part.set(kept_bytes) {
                return Ok(Err(status));
            }
            if count > count_before {
                count_before = count;
                due = Instant::now() + patience;
            }
        }
        let is_whole = messages.is_empty() && (count == 1 || method.has_streams());
        Ok(is_whole
            .then_some(())
            .ok_or(Status((INVALID_ARGUMENT, "the call ends within a message, or without one"))))
    }

    /// The answer to one message.
    async fn answer_to(&self, method: Method, bytes: &[u8]) -> Result<Message, Status> {
        let mut answer = Message::default();
        match method {
            Method::Take | Method::TakeEach => {
                answer.uint(1, self.counting.trade(trade(bytes)?).await.into());
            }
            Method::Count => {
                fields(bytes).try_for_each(|field| field.map(drop))?;
                answer.uint(1, self.counting.count().await);
            }
            Method::Health => match text(bytes, 1)? {
                "" | description::SERVICE => answer.uint(1, SERVING),
                _ => return Err(Status((NOT_FOUND, "there is no such service"))),
            },
            Method::Reflection => {
                answer.bytes(2, bytes);
                describe(bytes, &mut answer)?;
            }
        }
        Ok(answer)
    }
}

/// A trade, if a message is one.
fn trade(bytes: &[u8]) -> Result<Trade, Status> {
    let mut trade = Trade { name: String::new(), amount: 0 };
    for field in fields(bytes) {
        match field? {
            (1, Value::Bytes(name)) => {
                trade.name = String::from_utf8(name.to_vec()).map_err(|_| NoMessage)?;
            }
            (2, Value::Number(amount)) => trade.amount = amount as i64,
            (1 | 2, _) => return Err(NoMessage.into()),
            _ => {}
        }
    }
    Ok(trade)
}

/// A text of a message; empty where it has none.
fn text(bytes: &[u8], wanted: u64) -> Result<&str, Status> {
    let mut text = "";
    for field in fields(bytes) {
        match field? {
            (number, Value::Bytes(value)) if number == wanted => {
                text = std::str::from_utf8(value).map_err(|_| NoMessage)?;
            }
            _ => {}
        }
    }
    Ok(text)
}

/// Answers a question of reflection.
fn describe(question: &[u8], answer: &mut Message) -> Result<(), Status> {
    const FILE_BY_NAME: u64 = 3;
    const FILE_WITH_SYMBOL: u64 = 4;
    const LIST_SERVICES: u64 = 7;
    let package = description::SERVICE.split_once('.').map_or("", |(package, _)| package);
    let is_of_package = |symbol: &str| symbol.split('.').next() == Some(package);
    let asks = |field: u64| fields(question).any(|one| matches!(one, Ok((number, _)) if number == field));
    let is_known = text(question, FILE_BY_NAME)? == description::FILE
        || is_of_package(text(question, FILE_WITH_SYMBOL)?);
    if asks(LIST_SERVICES) {
        answer.message(6, |services| {
            services.message(1, |service| service.bytes(1, description::SERVICE.as_bytes()));
        });
    } else if is_known {
        answer.message(4, |files| files.bytes(1, &description::file()));
    } else {
        answer.message(7, |error| {
            error.uint(1, NOT_FOUND.into());
            error.bytes(2, b"nothing of this name is known");
        });
    }
    Ok(())
}

/// Sends a message piece by piece, as the client takes it. A call whose client takes nothing for so long is reset.
async fn send(
    sending: &mut SendStream<Bytes>,
    mut bytes: Bytes,
    patience: Duration,
) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        sending.reserve_capacity(bytes.len());
        while sending.capacity() == 0 {
            match timeout(patience, poll_fn(|cx| sending.poll_capacity(cx))).await {
                Ok(Some(more)) => drop(more?),
                // it is over, or takes nothing
                Ok(None) | Err(_) => return Err(Reason::CANCEL.into()),
            }
        }
        let piece = bytes.split_to(sending.capacity().min(bytes.len()));
        sending.send_data(piece, false)?;
    }
    Ok(())
}

fn trailers((code, words): Refused) -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", code.into());
    if !words.is_empty() {
        // without bytes that would have to be percent-encoded
        trailers.insert("grpc-message", HeaderValue::from_static(words));
    }
    trailers
}
