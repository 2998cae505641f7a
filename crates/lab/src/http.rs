//! An HTTP client for what the lab itself asks of a system: whether it is ready, and what it holds. One request after
//! the other over one connection, each for as long as its caller goes on.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{HOST, HeaderMap, HeaderName, HeaderValue, PROXY_AUTHORIZATION};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tidemark_drive::{Address, Proxy, Target, Tls};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Longest time to make a connection, TLS included.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Most of a body that is read where only the status is asked for, bytes.
const STATUS_BODY_BYTES_MAX: usize = 1 << 20;
/// How often a wait looks whether it should go on.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What carries bytes to the system and back.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Why there is no answer. `E` is why the caller did not go on.
#[derive(Debug)]
pub enum NoAnswer<E> {
    /// The caller did not go on.
    Stopped(E),
    /// It cannot be asked at all.
    Request(String),
    /// It may be asked again.
    Broken(String),
    /// No byte came for so long.
    Silent(Duration),
    /// The body is larger than this, bytes.
    TooLarge(usize),
}

/// What one answer may take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Longest time without a byte of it.
    pub silence: Duration,
    /// Largest body, bytes.
    pub body_bytes: usize,
}

/// A whole answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body, as it came.
    pub body: Vec<u8>,
}

/// Asks one system.
pub struct Client<'a> {
    target: &'a Target,
    runtime: Option<Runtime>,
    connection: Option<SendRequest<Full<Bytes>>>,
}

impl<'a> Client<'a> {
    /// Not connected yet.
    pub fn new(target: &'a Target) -> Client<'a> {
        Client { target, runtime: None, connection: None }
    }

    /// Asks once, with `GET`. `go_on` is called every 100 ms.
    pub fn get<E>(
        &mut self,
        path: &str,
        headers: &[(String, String)],
        bounds: Bounds,
        go_on: &dyn Fn() -> Result<(), E>,
    ) -> Result<Answer, NoAnswer<E>> {
        self.send(self.request(Method::GET, path, headers, Bytes::new()), bounds, go_on)
    }

    /// Sends a body once, with `POST`. `go_on` is called every 100 ms.
    pub fn post<E>(
        &mut self,
        path: &str,
        headers: &[(String, String)],
        body: Bytes,
        bounds: Bounds,
        go_on: &dyn Fn() -> Result<(), E>,
    ) -> Result<Answer, NoAnswer<E>> {
        self.send(self.request(Method::POST, path, headers, body), bounds, go_on)
    }

    fn send<E>(
        &mut self,
        request: Result<Request<Full<Bytes>>, String>,
        bounds: Bounds,
        go_on: &dyn Fn() -> Result<(), E>,
    ) -> Result<Answer, NoAnswer<E>> {
        let request = request.map_err(NoAnswer::Request)?;
        let waiting = Waiting { go_on, silence_max: bounds.silence };
        self.block_on(async |client: &mut Self| {
            let (head, mut body) = client.head(request, &waiting).await?.into_parts();
            let mut answer = Answer { status: head.status, headers: head.headers, body: Vec::new() };
            while let Some(frame) = waiting.on(body.frame()).await? {
                let Ok(data) = frame.map_err(broke)?.into_data() else { continue };
                if answer.body.len() + data.len() > bounds.body_bytes {
                    return Err(NoAnswer::TooLarge(bounds.body_bytes));
                }
                answer.body.extend_from_slice(&data);
            }
            Ok(answer)
        })
    }

    /// Asks once, with `GET`, over a connection of its own, and returns the status. Reads the body too, at most 1 MiB, so
    /// that the server sees no broken connection; errors in it are ignored.
    pub fn status(target: &'a Target, path: &str, within: Duration) -> Result<StatusCode, String> {
        let mut client = Client::new(target);
        let request = client.request(Method::GET, path, &[], Bytes::new())?;
        let begin = Instant::now();
        let go_on = || if begin.elapsed() < within { Ok(()) } else { Err(()) };
        let waiting = Waiting { go_on: &go_on, silence_max: within };
        let status = client.block_on(async |client: &mut Self| {
            let (head, mut body) = client.head(request, &waiting).await?.into_parts();
            let mut left = STATUS_BODY_BYTES_MAX;
            while let Ok(Some(Ok(frame))) = waiting.on(body.frame()).await {
                left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
                if left == 0 {
                    break;
                }
            }
            Ok(head.status)
        });
        status.map_err(|error| match error {
            NoAnswer::Request(reason) | NoAnswer::Broken(reason) => reason,
            _ => format!("no answer within {within:?}"),
        })
    }

    /// Drives a request and the connection under it. A connection that gave no whole answer is not used again.
    fn block_on<T, E>(
        &mut self,
        work: impl AsyncFnOnce(&mut Self) -> Result<T, NoAnswer<E>>,
    ) -> Result<T, NoAnswer<E>> {
        let runtime = match self.runtime.take() {
            Some(runtime) => Ok(runtime),
            None => Builder::new_current_thread().enable_all().build(),
        };
        let runtime = runtime.map_err(|error| NoAnswer::Request(error.to_string()))?;
        let result = runtime.block_on(work(self));
        if result.is_err() {
            self.connection = None;
        }
        self.runtime = Some(runtime);
        result
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        headers: &[(String, String)],
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, String> {
        let told = |error: hyper::http::Error| format!("it cannot be asked: {error}");
        let Target { authority, base_path, .. } = self.target;
        // what goes through a tunnel does not know of it
        let proxy = self.target.proxy.as_ref().filter(|_| self.target.tls.is_none());
        let server = proxy.map_or_else(String::new, |_| format!("http://{authority}"));
        let request = Request::builder().method(method).uri(format!("{server}{base_path}{path}"));
        let mut request = request.body(Full::new(body)).map_err(told)?;
        let all = request.headers_mut();
        if let Some(says) = proxy.and_then(|proxy| proxy.authorization.as_deref()) {
            all.insert(PROXY_AUTHORIZATION, HeaderValue::from_str(says).map_err(|error| told(error.into()))?);
        }
        all.insert(HOST, HeaderValue::from_str(&self.target.authority).map_err(|error| told(error.into()))?);
        for (name, value) in headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| told(error.into()))?;
            all.append(name, HeaderValue::from_str(value).map_err(|error| told(error.into()))?);
        }
        Ok(request)
    }

    async fn head<E>(
        &mut self,
        request: Request<Full<Bytes>>,
        waiting: &Waiting<'_, E>,
    ) -> Result<Response<Incoming>, NoAnswer<E>> {
        let is_usable = match &mut self.connection {
            // one that the system closed meanwhile is replaced
            Some(connection) => waiting.on(connection.ready()).await?.is_ok(),
            None => false,
        };
        if !is_usable {
            let connected = waiting.on(connect(self.target)).await?;
            let connected = connected.map_err(|error| NoAnswer::Broken(format!("no connection: {error}")))?;
            self.connection = Some(connected);
        }
        match &mut self.connection {
            Some(connection) => waiting.on(connection.send_request(request)).await?.map_err(broke),
            None => Err(NoAnswer::Broken("no connection".into())),
        }
    }
}

/// How long an answer is waited for.
struct Waiting<'a, E> {
    go_on: &'a dyn Fn() -> Result<(), E>,
    silence_max: Duration,
}

impl<E> Waiting<'_, E> {
    /// For one part of it.
    async fn on<F: Future>(&self, part: F) -> Result<F::Output, NoAnswer<E>> {
        let mut part = pin!(part);
        let begin = Instant::now();
        loop {
            (self.go_on)().map_err(NoAnswer::Stopped)?;
            match timeout(LOOK_EVERY, &mut part).await {
                Ok(output) => return Ok(output),
                Err(_) if begin.elapsed() > self.silence_max => {
                    return Err(NoAnswer::Silent(self.silence_max));
                }
                Err(_) => {}
            }
        }
    }
}

async fn connect(target: &Target) -> io::Result<SendRequest<Full<Bytes>>> {
    let connecting = async {
        let stream: Box<dyn Stream> = match &target.address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Box::new(stream)
            }
            Address::Unix(path) => Box::new(UnixStream::connect(path).await?),
        };
        let stream: Box<dyn Stream> = match &target.tls {
            None => stream,
            Some(tls) => {
                let stream = match &target.proxy {
                    Some(proxy) => tunnel(stream, proxy, &target.authority).await?,
                    None => stream,
                };
                let (config, name) = tls.of_http1();
                let secured = TlsConnector::from(config).connect(name, stream).await;
                Box::new(secured.map_err(Tls::explained)?)
            }
        };
        let (requests, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // it ends with the client's runtime; an error is that of the request under way
        tokio::spawn(async move { connection.await.ok() });
        Ok(requests)
    };
    let in_time = timeout(CONNECT_MAX, connecting).await;
    in_time.unwrap_or_else(|_| {
        Err(io::Error::new(io::ErrorKind::TimedOut, format!("none within {CONNECT_MAX:?}")))
    })
}

/// A connection to a proxy becomes one to a server behind it, with which TLS is spoken.
async fn tunnel(mut stream: Box<dyn Stream>, proxy: &Proxy, authority: &str) -> io::Result<Box<dyn Stream>> {
    let mut tunnel = proxy.tunnel(authority, true);
    stream.write_all(tunnel.ask()).await?;
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the proxy closed the connection"));
        }
        if tunnel.answered(&buffer[..read])?.is_some() {
            return Ok(stream);
        }
    }
}

/// An error of hyper with its cause, which its own words leave out.
fn broke<E>(error: hyper::Error) -> NoAnswer<E> {
    NoAnswer::Broken(match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;

    const WITHIN: Duration = Duration::from_secs(1);

    /// A server that gives one answer, byte by byte.
    fn answering(answer: &'static [u8]) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = target(listener.local_addr().unwrap().into());
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 1024];
            let read = stream.read(&mut question).unwrap();
            assert!(question[..read].starts_with(b"GET /base/health HTTP/1.1\r\nhost: here:1\r\n"));
            for byte in answer {
                stream.write_all(&[*byte]).unwrap();
            }
        });
        target
    }

    fn target(address: Address) -> Target {
        let (authority, base_path) = ("here:1".into(), "/base".into());
        Target {
            address,
            others: Vec::new(),
            authority,
            base_path,
            tls: None,
            protocol: Default::default(),
            proxy: None,
        }
    }

    #[test]
    fn the_status_is_read_however_the_answer_comes() {
        let status = |answer| Client::status(&answering(answer), "/health", WITHIN).unwrap();
        assert_eq!(status(b"HTTP/1.1 200 OK\r\n\r\n"), 200);
        assert_eq!(status(b"HTTP/1.0 503 No\r\nContent-Length: 100\r\n\r\n"), 503);
    }

    #[test]
    fn a_server_that_is_asked_for_its_status_can_write_its_body() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = target(listener.local_addr().unwrap().into());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 800000\r\n\r\n")?;
            (0..8).try_for_each(|_| stream.write_all(&[b'x'; 100_000]))?;
            // the end comes in order
            stream.read(&mut [0; 1])
        });
        assert_eq!(Client::status(&target, "/health", Duration::from_secs(20)).unwrap(), 200);
        assert_eq!(server.join().unwrap().unwrap(), 0);
    }

    #[test]
    fn what_is_no_http_is_an_error() {
        assert!(Client::status(&answering(b"220 smtp ready\r\n"), "/health", WITHIN).is_err());
        assert!(Client::status(&answering(b""), "/health", WITHIN).is_err());
    }

    #[test]
    fn nobody_there_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let error = Client::status(&target(address.into()), "/health", WITHIN).unwrap_err();
        assert!(error.contains("no connection"), "{error}");
    }

    #[test]
    fn a_body_has_a_bound() {
        let target = answering(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world");
        let go_on = || Ok::<_, ()>(());
        let bounds = Bounds { silence: WITHIN, body_bytes: 10 };
        let error = Client::new(&target).get("/health", &[], bounds, &go_on).unwrap_err();
        assert!(matches!(error, NoAnswer::TooLarge(10)), "{error:?}");
    }
}
