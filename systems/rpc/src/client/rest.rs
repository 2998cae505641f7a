//! A client of REST routes: a few connections that are kept and used again.

use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Request, header};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;

use super::CallError;
use crate::{Form, Refusal, Verb};

/// Connections kept that nobody uses.
const IDLE_MAX: usize = 64;
/// Bytes of an answer.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// What stands for itself in a part of a path, or a field of a query.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Calls the REST routes of one server. Clones share their connections.
#[derive(Debug, Clone)]
pub struct RestClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    addr: SocketAddr,
    host: HeaderValue,
    idle: Mutex<Vec<SendRequest<Body>>>,
}

/// A request that is put together.
#[derive(Debug)]
pub struct RestCall {
    verb: Verb,
    target: String,
    has_query: bool,
    body: Option<Vec<u8>>,
}

impl RestCall {
    /// One with this method of HTTP.
    pub fn new(verb: Verb) -> Self {
        RestCall { verb, target: String::new(), has_query: false, body: None }
    }

    /// A plain part of the path.
    #[must_use]
    pub fn segment(mut self, part: &str) -> Self {
        self.target.push('/');
        self.target.push_str(part);
        self
    }

    /// An argument as a part of the path.
    #[must_use]
    pub fn parameter(self, value: &impl Display) -> Self {
        let text = utf8_percent_encode(&value.to_string(), PLAIN).to_string();
        self.segment(&text)
    }

    /// A field of the query.
    #[must_use]
    pub fn query(mut self, name: &str, value: &impl Display) -> Self {
        self.target.push(if self.has_query { '&' } else { '?' });
        self.has_query = true;
        self.target.push_str(name);
        self.target.push('=');
        self.target.extend(utf8_percent_encode(&value.to_string(), PLAIN));
        self
    }

    /// A field of the query, if there is a value for it.
    #[must_use]
    pub fn query_maybe(self, name: &str, value: Option<&impl Display>) -> Self {
        match value {
            Some(value) => self.query(name, value),
            None => self,
        }
    }

    /// The body, as JSON.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn body(mut self, value: &impl Serialize) -> Result<Self, CallError> {
        let mut body = Vec::new();
        Form::Json.write(&mut body, value).map_err(CallError::Unwritable)?;
        self.body = Some(body);
        Ok(self)
    }

    fn request(self, host: &HeaderValue) -> Result<Request<Body>, CallError> {
        let method = match self.verb {
            Verb::Get => Method::GET,
            Verb::Put => Method::PUT,
            Verb::Post => Method::POST,
            Verb::Patch => Method::PATCH,
            Verb::Delete => Method::DELETE,
        };
        let mut request = Request::builder().method(method).uri(self.target).header(header::HOST, host);
        if self.body.is_some() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let body = self.body.map_or_else(Body::empty, Body::from);
        request.body(body).map_err(|error| CallError::Unwritable(Refusal::bad(error.to_string())))
    }
}

impl RestClient {
    /// A client of the server at this address. Connections are opened when they are needed.
    pub fn new(addr: SocketAddr) -> Self {
        // an address is always a header's value
        let host = HeaderValue::try_from(addr.to_string()).unwrap_or(HeaderValue::from_static("localhost"));
        RestClient { shared: Arc::new(Shared { addr, host, idle: Mutex::default() }) }
    }

    pub(super) async fn send<R: DeserializeOwned>(
        &self,
        call: RestCall,
        time: Duration,
    ) -> Result<R, CallError> {
        let request = call.request(&self.shared.host)?;
        tokio::time::timeout(time, self.exchange(request)).await.unwrap_or(Err(CallError::Deadline))
    }

    async fn exchange<R: DeserializeOwned>(&self, request: Request<Body>) -> Result<R, CallError> {
        let cut = |error: &dyn Display| CallError::Cut(error.to_string().into());
        let mut connection = self.connection().await?;
        let response = connection.send_request(request).await.map_err(|error| cut(&error))?;
        let status = response.status().as_u16();
        let body = axum::body::to_bytes(Body::new(response.into_body()), ANSWER_BYTES_MAX);
        let body = body.await.map_err(|error| cut(&error))?;
        self.keep(connection);
        if status == 200 {
            return Form::Json.read(&body).map_err(|error| CallError::unreadable(&error));
        }
        Err(CallError::Refused(Refusal::new(status, reason_of(&body))))
    }

    /// One that is kept and still there, or a new one. What was cut while nobody used it is not an error of this call.
    async fn connection(&self) -> Result<SendRequest<Body>, CallError> {
        loop {
            let kept = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let Some(mut kept) = kept else { break };
            if kept.ready().await.is_ok() {
                return Ok(kept);
            }
        }
        let addr = self.shared.addr;
        let failed = |error: &dyn Display| CallError::NotConnected(format!("{addr}: {error}").into());
        let stream = TcpStream::connect(addr).await.map_err(|error| failed(&error))?;
        stream.set_nodelay(true).map_err(|error| failed(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| failed(&error))?;
        // its end is seen by who sends over it
        tokio::spawn(connection);
        Ok(sender)
    }

    fn keep(&self, connection: SendRequest<Body>) {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX && !connection.is_closed() {
            idle.push(connection);
        }
    }
}

/// The words of a refusal, as the server gives them.
fn reason_of(body: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Reason {
        reason: String,
    }
    serde_json::from_slice::<Reason>(body)
        .map_or_else(|_| String::from_utf8_lossy(body).into_owned(), |reason| reason.reason)
}
