//! The connection to NATS.

use std::future::Future;
use std::path::PathBuf;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectOptions, RequestErrorKind, ServerAddr};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;

use crate::error::FleetError;

/// Longest time that the first connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Longest time that a server may take to say who it is.
const GREETS_WITHIN: Duration = Duration::from_millis(300);
/// That the server has no connection of who is asked.
pub(crate) const NOT_THERE: &str = "it is not there";
/// Longest time between two attempts to connect again.
const AGAIN_WITHIN_MS: u64 = 1_000;

/// Where NATS is, and how it is reached.
#[derive(Debug, Clone, Default)]
pub struct Server {
    /// `nats://HOST:4222`, or several with commas.
    pub url: String,
    /// A file of credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
    /// Whom to trust beside those whom the machine trusts: a file of certificates.
    pub ca: Option<PathBuf>,
    /// Certificate and key to show.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Server {
    /// One that asks for nothing more than its URL.
    pub fn at(url: &str) -> Server {
        Server { url: url.to_owned(), ..Server::default() }
    }

    /// Its URL without a password.
    pub fn shown(&self) -> String {
        let shown = |url: &str| match url.rsplit_once('@') {
            Some((before, host)) => {
                let scheme = before.split_once("://").map_or("", |(scheme, _)| scheme);
                if scheme.is_empty() { format!("***@{host}") } else { format!("{scheme}://***@{host}") }
            }
            None => url.to_owned(),
        };
        self.url.split(',').map(shown).collect::<Vec<_>>().join(",")
    }
}

/// A connection, with the threads that keep it up.
pub(crate) struct Nats {
    runtime: Runtime,
    /// Where its servers are.
    places: Vec<(String, u16)>,
    pub client: Client,
    pub jetstream: Context,
}

impl Nats {
    /// Connects. A connection that breaks later is made again.
    pub fn connect(server: &Server, name: &str) -> Result<Nats, FleetError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nats")
            .enable_all()
            .build()
            .map_err(|error| FleetError::nats("threads", error))?;
        let client = runtime.block_on(connected(server, name))?;
        // it does something beside from its begin on
        let context = runtime.enter();
        let jetstream = jetstream::new(client.clone());
        drop(context);
        let places = server.url.split(',').filter_map(|url| url.parse::<ServerAddr>().ok());
        let places = places.map(|url| (url.host().to_owned(), url.port())).collect();
        Ok(Nats { runtime, places, client, jetstream })
    }

    /// Waits for something.
    pub fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.block_on(what)
    }

    /// The same, so long at most; none where that was not enough.
    pub fn wait_at_most<T>(&self, within: Duration, what: impl Future<Output = T>) -> Option<T> {
        self.wait(async { tokio::time::timeout(within, what).await.ok() })
    }

    /// What asks NATS, for whoever does something beside.
    pub fn shared(&self) -> (Client, Context) {
        (self.client.clone(), self.jetstream.clone())
    }

    /// Does something beside.
    pub fn beside(&self, what: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(what);
    }

    /// Whether a server says who it is to whoever comes, as NATS does before it asks for a login.
    pub fn answers(&self) -> bool {
        let greeting = async |place: &(String, u16)| {
            let mut stream = TcpStream::connect(place).await.ok()?;
            let mut greeting = [0; 5];
            stream.read_exact(&mut greeting).await.ok()?;
            (&greeting == b"INFO ").then_some(())
        };
        let places = self.places.iter();
        places.into_iter().any(|place| self.wait_at_most(GREETS_WITHIN, greeting(place)).flatten().is_some())
    }

    /// Whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }
}

async fn connected(server: &Server, name: &str) -> Result<Client, FleetError> {
    let failed =
        |why: String| FleetError::Nats(format!("cannot connect to NATS at {}: {why}", server.shown()));
    let mut options = ConnectOptions::new()
        .name(name)
        .connection_timeout(CONNECT_WITHIN)
        .ping_interval(Duration::from_secs(5))
        .reconnect_delay_callback(|attempts| {
            Duration::from_millis((100 * attempts as u64).min(AGAIN_WITHIN_MS))
        });
    if let Some(file) = &server.credentials {
        options = options
            .credentials_file(file)
            .await
            .map_err(|error| FleetError::Usage(format!("--nats-creds {}: {error}", file.display())))?;
    }
    if let Some(ca) = &server.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    if let Some((certificate, key)) = &server.certificate {
        options = options.add_client_certificate(certificate.clone(), key.clone()).require_tls(true);
    }
    let urls: Vec<&str> = server.url.split(',').collect();
    // a login that a URL has; the client itself reads none there
    let login = urls.iter().find_map(|url| {
        let address = url.parse::<ServerAddr>().ok()?;
        Some((address.username()?.to_owned(), address.password().map(str::to_owned)))
    });
    options = match login {
        Some((user, Some(password))) => options.user_and_password(user, password),
        Some((token, None)) => options.token(token),
        None => options,
    };
    let client = options.connect(urls).await.map_err(|error| failed(error.to_string()))?;
    Ok(client)
}

/// Asks, and waits so long for the answer.
pub(crate) async fn ask<Q: Serialize, A: DeserializeOwned>(
    client: &Client,
    subject: String,
    question: &Q,
    within: Duration,
) -> Result<A, String> {
    let payload = Bytes::from(serde_json::to_vec(question).map_err(|error| error.to_string())?);
    let answer = tokio::time::timeout(within, client.request(subject, payload)).await;
    let answer = answer.map_err(|_| "it does not answer".to_owned())?;
    let answer = answer.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => NOT_THERE.to_owned(),
        RequestErrorKind::TimedOut => "it does not answer".to_owned(),
        _ => error.to_string(),
    })?;
    serde_json::from_slice(&answer.payload).map_err(|error| format!("its answer cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let shown = |url: &str| Server::at(url).shown();
        assert_eq!(shown("nats://h:4222"), "nats://h:4222");
        assert_eq!(shown("nats://me:p@ss@h:4222,tls://token@i"), "nats://***@h:4222,tls://***@i");
        assert_eq!(shown("me:pass@h"), "***@h");
    }
}
