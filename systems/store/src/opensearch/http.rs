//! Connections over HTTP/1.1, each for one request at a time.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use super::engine::Engine;
use crate::error::StoreError;
use crate::links::{Carrier, Connect, Failed};

/// Largest answer that is read.
const ANSWER_BYTES_MAX: usize = 16 << 20;

/// A connection.
pub(super) struct Http {
    sender: Mutex<SendRequest<Full<Bytes>>>,
    host: Arc<str>,
}

/// Makes connections, and the index where it is not there.
pub(super) struct Connector {
    pub(super) engine: Engine,
    pub(super) address: Arc<str>,
    pub(super) index: String,
    pub(super) timeout: Duration,
}

/// Status and body.
pub(super) type Answered = (StatusCode, Bytes);

/// A type of bodies.
pub(super) const JSON: &str = "application/json";

impl Http {
    /// Sends a request when those before it are answered.
    pub(super) async fn send(
        &self,
        method: Method,
        target: &str,
        kind: &'static str,
        body: Bytes,
    ) -> Result<Answered, Failed> {
        let lost = |error: &dyn std::fmt::Display| Failed::Lost(error.to_string());
        let request = Request::builder().method(method).uri(target);
        let request = request.header(HOST, &*self.host).header(CONTENT_TYPE, kind).body(Full::new(body));
        let request = request.map_err(|error| Failed::Refused(error.to_string()))?;
        let mut sender = self.sender.lock().await;
        sender.ready().await.map_err(|error| lost(&error))?;
        let (head, body) = sender.send_request(request).await.map_err(|error| lost(&error))?.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| lost(&error))?;
        Ok((head.status, body.to_bytes()))
    }
}

impl Connector {
    async fn dial(&self) -> Result<(Http, Carrier), StoreError> {
        let unreachable = |error: &dyn std::fmt::Display| StoreError::Unreachable {
            place: self.place(),
            reason: error.to_string().into(),
        };
        let stream = TcpStream::connect(&*self.address).await.map_err(|error| unreachable(&error))?;
        stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(&error))?;
        let mut carrier: Carrier = Box::pin(async move {
            match connection.await {
                Ok(()) => "the server closed it".to_owned(),
                Err(error) => error.to_string(),
            }
        });
        let http = Http { sender: Mutex::new(sender), host: self.address.clone() };
        // the connection is carried on while it is made ready
        tokio::select! {
            made = self.make_index(&http) => made?,
            reason = &mut carrier => return Err(unreachable(&reason)),
        }
        Ok((http, carrier))
    }

    /// Makes the index where it is not there.
    async fn make_index(&self, http: &Http) -> Result<(), StoreError> {
        let ask = async |method, target: &str, body: Bytes| {
            http.send(method, target, JSON, body).await.map_err(|failed| StoreError::Unreachable {
                place: self.place(),
                reason: failed.reason().into(),
            })
        };
        let (method, target) = self.engine.look(&self.index);
        let (status, body) = ask(method, &target, Bytes::new()).await?;
        let index = match self.engine.make() {
            Some(index) if status == StatusCode::NOT_FOUND => index,
            _ => return self.judge(status, &body),
        };
        let (status, body) = ask(Method::PUT, &self.engine.path(&self.index), index).await?;
        // somebody else may have been quicker
        match String::from_utf8_lossy(&body).contains("resource_already_exists_exception") {
            true => Ok(()),
            false => self.judge(status, &body),
        }
    }

    fn judge(&self, status: StatusCode, body: &[u8]) -> Result<(), StoreError> {
        let reason = || said(status, body).into();
        match status.as_u16() {
            200..=299 => Ok(()),
            // it is starting, or has too much to do
            429 | 500..=599 => Err(StoreError::Unreachable { place: self.place(), reason: reason() }),
            _ => Err(StoreError::Unusable { place: self.place(), reason: reason() }),
        }
    }
}

/// What a server says that refuses, shortened.
pub(super) fn said(status: StatusCode, body: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(body).chars().take(300).collect();
    format!("it answers {status} {text}").trim_end().to_owned()
}

impl Connect for Connector {
    type Link = Http;

    fn place(&self) -> Arc<str> {
        format!("http://{}{}", self.address, self.engine.path(&self.index)).into()
    }

    async fn connect(&self) -> Result<(Http, Carrier), StoreError> {
        match tokio::time::timeout(self.timeout, self.dial()).await {
            Ok(dialled) => dialled,
            Err(_) => {
                let reason = format!("it was not ready to be asked for {:?}", self.timeout).into();
                Err(StoreError::Unreachable { place: self.place(), reason })
            }
        }
    }
}
