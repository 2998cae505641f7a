//! One question at a time to a registry: rare, so each has a connection of its own.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How long a question may take.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The longest answer that is read.
const ANSWER_BYTES_MAX: usize = 8 << 20;

/// Why a registry did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// It cannot be reached, or says nothing in time.
    #[error("cannot reach the registry at {place}: {reason}; check that it runs there")]
    Unreachable {
        /// Where it was looked for.
        place: String,
        /// What went wrong.
        reason: String,
    },
    /// It answered something else.
    #[error("the registry at {place} answered {status}")]
    Refused {
        /// Where it is.
        place: String,
        /// The status.
        status: u16,
    },
    /// Its answer cannot be read.
    #[error("the registry at {place} sent an unreadable answer: {reason}")]
    Unreadable {
        /// Where it is.
        place: String,
        /// What is wrong.
        reason: String,
    },
}

/// An answer.
pub(crate) struct Answered {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Asks the server at `place`, HOST:PORT.
pub(crate) async fn ask(
    place: &str,
    method: &str,
    path: &str,
    body: String,
) -> Result<Answered, RegistryError> {
    let unreachable = |reason: String| RegistryError::Unreachable { place: place.to_owned(), reason };
    let asking = async {
        let stream = TcpStream::connect(place).await.map_err(|error| error.to_string())?;
        let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
        let connection = tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::HOST, place)
            .header(header::ACCEPT, "application/json")
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::CONNECTION, "close")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| error.to_string())?;
        let response = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|error| error.to_string());
        connection.abort();
        Ok::<_, String>(Answered { status: head.status, body: body?.to_bytes() })
    };
    match tokio::time::timeout(TIMEOUT, asking).await {
        Ok(answered) => answered.map_err(unreachable),
        Err(_) => Err(unreachable(format!("no answer within {TIMEOUT:?}"))),
    }
}

/// The address of this machine under which the server at `place` sees it.
pub(crate) async fn own_address(place: &str) -> Option<IpAddr> {
    let connecting = tokio::time::timeout(TIMEOUT, TcpStream::connect(place)).await;
    Some(connecting.ok()?.ok()?.local_addr().ok()?.ip())
}
