//! What a request asks for, by protocol.

use tidemark_wire::http1::cookie;
use tidemark_wire::websocket;

use super::aerospike::AerospikeRequest;
use super::grpc::GrpcStep;
use super::memcached::MemcachedCommand;
use super::statement::Statement;
use super::upload::UploadPiece;
use crate::template::{Encoding, Part, Template};

/// What is sent, and by which protocol.
#[derive(Debug, Clone)]
pub enum RequestKind {
    /// A request of HTTP.
    Http(HttpRequest),
    /// A remote call.
    Call(Call),
    /// A step of gRPC.
    Grpc(GrpcStep),
    /// A step over the session's WebSocket.
    WebSocket(WebSocketStep),
    /// A step with the session's event stream.
    EventStream(EventStreamStep),
    /// A command of Redis.
    Redis(RedisCommand),
    /// A command of memcached.
    Memcached(MemcachedCommand),
    /// A statement of SQL.
    Sql(Statement),
    /// A statement of CQL.
    Cql(Statement),
    /// A request to Aerospike.
    Aerospike(AerospikeRequest),
}

impl RequestKind {
    /// The request of HTTP, if it is one or begins with one.
    pub fn http_mut(&mut self) -> Option<&mut HttpRequest> {
        match self {
            RequestKind::Http(request)
            | RequestKind::WebSocket(WebSocketStep::Connect { request, .. })
            | RequestKind::EventStream(EventStreamStep::Connect(request)) => Some(request),
            _ => None,
        }
    }

    /// Whether its body is read from files while it is sent.
    pub fn is_upload(&self) -> bool {
        matches!(self, RequestKind::Http(request) if !request.upload.is_empty())
    }

    /// Whether it asks for nothing, and waits for what the server tells by itself.
    pub fn is_wait(&self) -> bool {
        use EventStreamStep::{CloseByServer, Expect};
        matches!(
            self,
            RequestKind::WebSocket(WebSocketStep::Expect)
                | RequestKind::EventStream(Expect | CloseByServer)
                | RequestKind::Grpc(GrpcStep::Expect)
        )
    }

    /// Whether it is about a WebSocket or an event stream that there is.
    pub fn is_within_binding(&self) -> bool {
        match self {
            RequestKind::WebSocket(step) => !matches!(step, WebSocketStep::Connect { .. }),
            RequestKind::EventStream(step) => !matches!(step, EventStreamStep::Connect(_)),
            RequestKind::Grpc(step) => step.call().is_none(),
            _ => false,
        }
    }
}

/// A command of Redis.
#[derive(Debug, Clone, Default)]
pub struct RedisCommand {
    /// Its words.
    pub words: Vec<Template>,
    /// What has to have it before it counts as answered.
    pub wait: Option<Wait>,
}

/// Commands that change a connection for whoever else is on it, or hold it up.
const OWN_CONNECTION: [&str; 20] = [
    "ASKING",
    "AUTH",
    "WAIT",
    "WAITAOF",
    "MULTI",
    "EXEC",
    "DISCARD",
    "WATCH",
    "UNWATCH",
    "SELECT",
    "READONLY",
    "READWRITE",
    "BLPOP",
    "BRPOP",
    "BRPOPLPUSH",
    "BLMOVE",
    "BLMPOP",
    "BZPOPMIN",
    "BZPOPMAX",
    "BZMPOP",
];
/// What `CLIENT` changes of its connection.
const OWN_CLIENT: [&str; 4] = ["CACHING", "NO-EVICT", "NO-TOUCH", "TRACKING"];
/// Commands that wait where `BLOCK` is among their options, which stand before `STREAMS`.
const OWN_WITH_BLOCK: [&str; 2] = ["XREAD", "XREADGROUP"];

impl RedisCommand {
    /// Whether it needs a connection of its own: it changes that for whoever else is on it, or holds it up.
    pub fn needs_own_connection(&self) -> bool {
        let known = self.words.iter().map(|word| word.as_literal().unwrap_or_default());
        let mut words = known.map(|word| String::from_utf8_lossy(word).to_ascii_uppercase());
        let name = words.next().unwrap_or_default();
        if name == "CLIENT" {
            return words.next().is_some_and(|word| OWN_CLIENT.contains(&word.as_str()));
        }
        let may_wait = OWN_WITH_BLOCK.contains(&name.as_str());
        OWN_CONNECTION.contains(&name.as_str())
            || (may_wait && words.take_while(|word| word != "STREAMS").any(|word| word == "BLOCK"))
    }
}

/// Replicas that must have a write (Redis' `WAIT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    /// How many, at least 1.
    pub replicas: u32,
    /// For how long the server waits for them, milliseconds, at least 1.
    pub within_ms: u64,
}

/// A request of HTTP without what the driver adds: `Host`, `Cookie`, `Content-Length`, the headers of a WebSocket's handshake.
#[derive(Debug, Clone, Default)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// Path and query; begins with a slash, or is a [location](TargetForm::Location).
    pub target: Template,
    /// What the target is, as it is written.
    pub form: TargetForm,
    /// Names and values, in order.
    pub headers: Vec<(String, Template)>,
    /// Whether the session's cookies are not sent with it.
    pub without_cookies: bool,
    /// Body, if any.
    pub body: Option<Template>,
    /// Instead of that, what is sent piece by piece, as it is read from files.
    pub upload: Vec<UploadPiece>,
}

/// What the target of a request is, once it is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TargetForm {
    /// A path below the one that all paths of the server begin with.
    #[default]
    Below,
    /// All of the path.
    Whole,
    /// What a server said, in a `Location` say: all of the path, or a URL of the server that the request goes to.
    Location,
}

impl HttpRequest {
    /// Request line and headers as HTTP/1.1 writes them, each line ended by CRLF: `base_path` in front of the path, and
    /// `own`, whole lines that are not the scenario's, behind the request line.
    pub fn head(&self, base_path: &str, own: &str) -> Template {
        self.head_to("", base_path, own)
    }

    /// The same as a proxy is told it: `server`, the beginning of its URL, stands in front of the path.
    pub fn head_to(&self, server: &str, base_path: &str, own: &str) -> Template {
        let mut head = Template::literal(format!("{} {server}", self.method));
        head.append(self.path(base_path));
        head.append(self.behind_target(own));
        head
    }

    /// Path and query, with `base_path` in front where that belongs there.
    pub fn path(&self, base_path: &str) -> Template {
        let mut path = Template::default();
        if self.form == TargetForm::Below {
            path.push_literal(base_path.as_bytes());
        }
        path.append(self.target.clone());
        path
    }

    /// The path of cookies for which an answer says none (RFC 6265, 5.1.4), where it is the same each time.
    pub fn cookie_path(&self, base_path: &str) -> Option<Vec<u8>> {
        if self.form == TargetForm::Location {
            return None;
        }
        let (mut known, mut varies) = (Vec::new(), false);
        for part in &self.path(base_path).parts {
            let text = match part {
                Part::Literal(text) => text,
                // a part of one segment: what stands before the last slash stays as it is
                Part::Hole(_, Encoding::Url) => {
                    varies = true;
                    continue;
                }
                Part::Hole(..) => return None,
            };
            let query = text.iter().position(|byte| *byte == b'?');
            let text = &text[..query.unwrap_or(text.len())];
            match varies {
                true if text.contains(&b'/') => return None,
                true => {}
                false => known.extend_from_slice(text),
            }
            if query.is_some() {
                break;
            }
        }
        Some(cookie::default_path(&known).to_vec())
    }

    /// What follows the target in the [head](HttpRequest::head).
    pub fn behind_target(&self, own: &str) -> Template {
        let mut head = Template::literal(" HTTP/1.1\r\n");
        head.push_literal(own.as_bytes());
        for (name, value) in &self.headers {
            head.push_literal(format!("{name}: ").as_bytes());
            head.append(value.clone());
            head.push_literal(b"\r\n");
        }
        head
    }
}

/// What a step does over the session's WebSocket.
#[derive(Debug, Clone)]
pub enum WebSocketStep {
    /// Turn the session's connection into a WebSocket.
    Connect {
        /// What asks for it.
        request: HttpRequest,
        /// The subprotocols that it offers.
        protocols: Vec<String>,
    },
    /// Send a message.
    Send {
        /// What it holds.
        message: Template,
        /// As what it is sent.
        kind: websocket::Kind,
        /// Whether a message that passes the request's checks is waited for, of those that come after it was sent.
        expects: bool,
    },
    /// Wait for a message that passes the request's checks; those that nobody took before count, too.
    Expect,
    /// Send a ping that holds this and wait for its pong.
    Ping(Template),
    /// Close and wait until the peer has closed, too.
    Close {
        /// The close code.
        code: u16,
        /// Words for the peer.
        reason: Template,
    },
    /// Wait until the peer closes; its code is the status that the request's checks look at, its reason the body.
    ExpectClose,
}

/// What a step does with the session's event stream.
#[derive(Debug, Clone)]
pub enum EventStreamStep {
    /// Ask for one: over once the head of the answer is there, whose body goes on.
    Connect(HttpRequest),
    /// Wait for an event that passes the request's checks; those that nobody took before count, too.
    Expect,
    /// Close it, as a browser that leaves.
    Close,
    /// Wait until the server has ended it.
    CloseByServer,
}

impl EventStreamStep {
    /// The header that checks and extractions find an event's name in.
    pub const NAME_HEADER: &str = "event";
}

/// A remote call.
#[derive(Debug, Clone)]
pub struct Call {
    /// `service.method`.
    pub method: String,
    /// The time that the server is told the call has, milliseconds.
    pub deadline_ms: u32,
    /// A JSON array.
    pub arguments: Template,
}
