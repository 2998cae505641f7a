//! A small server of pages for people and tools beside a run: one request for each connection, everything bounded.

mod hosts;

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};

pub use hosts::Hosts;

use crate::pin::Pins;
use crate::sinks::beside_the_driver;

/// Connections that are answered at once; others wait to be accepted.
const CONNECTIONS_MAX: usize = 16;
/// Longest head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Longest time until the head of a request is there, so that whoever says nothing keeps nobody out.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Longest time, after the answer, until the other side closes.
const CLOSED_WITHIN: Duration = Duration::from_secs(2);
/// Wait after a connection could not be accepted, for lack of open files for example.
const PAUSE: Duration = Duration::from_millis(100);

/// What text for a person is.
pub const PLAIN: &str = "text/plain; charset=utf-8";

/// Headers of a request.
pub type Headers = HeaderMap;

/// What is asked for, with `GET` or `HEAD`.
#[derive(Debug, Clone)]
pub struct Asked {
    /// As it came, percent-encoded.
    pub path: String,
    /// The same, without its `?`; empty where there is none.
    pub query: String,
    /// The headers.
    pub headers: Headers,
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Page {
    /// Its status.
    pub status: u16,
    /// What the body is.
    pub content_type: &'static str,
    /// More headers.
    pub headers: Vec<(&'static str, &'static str)>,
    /// The body.
    pub body: String,
}

impl Page {
    /// A few words.
    pub fn told(status: u16, text: impl Into<String>) -> Page {
        Page { status, content_type: PLAIN, headers: Vec::new(), body: text.into() + "\n" }
    }
}

/// How an answer is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Longest time from accepting a connection to its end.
    pub time_max: Duration,
    /// Whether it reads files, so that others are answered meanwhile.
    pub is_slow: bool,
}

/// Serves until it is dropped.
pub struct PageServer {
    address: SocketAddr,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

type Answer = Arc<dyn Fn(&Asked) -> Page + Send + Sync>;

impl PageServer {
    /// Listens at an address; port 0 takes a free one. Its thread stays away from cores that driving threads are pinned to.
    ///
    /// # Errors
    /// If nobody can listen there, because somebody else does for example.
    pub fn serve(
        name: &str,
        address: SocketAddr,
        effort: Effort,
        pins: &Pins,
        answer: impl Fn(&Asked) -> Page + Send + Sync + 'static,
    ) -> io::Result<PageServer> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(CONNECTIONS_MAX)
            .build()?;
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let answer: Answer = Arc::new(answer);
        let thread = beside_the_driver(name, pins, move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, effort, answer) => {}
                    () = stopped.notified() => {}
                }
            });
            // an answer that is still made is for nobody
            runtime.shutdown_background();
        })?;
        Ok(PageServer { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // that it panicked was said by the hook
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, effort: Effort, answer: Answer) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = free.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let answer = answer.clone();
                tokio::spawn(async move {
                    // whoever is slower than that, or went away, gets no answer
                    let _ = tokio::time::timeout(effort.time_max, converse(stream, effort, &answer)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Answers one request, and closes.
async fn converse(mut stream: TcpStream, effort: Effort, answer: &Answer) -> io::Result<()> {
    let mut http = http1::Builder::new();
    http.keep_alive(false).half_close(true).title_case_headers(true);
    http.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let service = service_fn(|request| {
        let answer = answer.clone();
        async move { Ok::<_, Infallible>(respond(request, effort, answer).await) }
    });
    // what is not a request hyper has answered
    let _ = http.serve_connection(TokioIo::new(&mut stream), service).await;
    // what is unread would reset the connection, and with it the answer
    tokio::time::timeout(CLOSED_WITHIN, read_the_rest(stream)).await.unwrap_or(Ok(()))
}

async fn read_the_rest(mut stream: TcpStream) -> io::Result<()> {
    let (mut rest, mut left) = ([0; 1024], HEAD_BYTES_MAX);
    while left > 0 {
        match stream.read(&mut rest).await? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

async fn respond(request: Request<Incoming>, effort: Effort, answer: Answer) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let mut page = Page::told(405, "only GET and HEAD");
        page.headers.push(("allow", "GET, HEAD"));
        return response(page);
    }
    let (head, _) = request.into_parts();
    let asked = Asked {
        path: head.uri.path().to_owned(),
        query: head.uri.query().unwrap_or_default().to_owned(),
        headers: head.headers,
    };
    if !effort.is_slow {
        return response(answer(&asked));
    }
    let made = tokio::task::spawn_blocking(move || answer(&asked)).await;
    // that it panicked was said by the hook
    response(made.unwrap_or_else(|_| Page::told(500, "an internal error")))
}

fn response(page: Page) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(page.body));
    *response.status_mut() = StatusCode::from_u16(page.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(page.content_type));
    for (name, value) in page.headers {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use super::*;

    #[test]
    fn whoever_says_nothing_keeps_nobody_out() {
        let effort = Effort { time_max: Duration::from_secs(3_600), is_slow: false };
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let server =
            PageServer::serve("test", address, effort, &Pins::default(), |_| Page::told(200, "hello"))
                .unwrap();
        let connect = || std::net::TcpStream::connect(server.address()).unwrap();
        let _silent: Vec<_> = (0..CONNECTIONS_MAX).map(|_| connect()).collect();
        let mut stream = connect();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.contains("hello"), "{answer}");
    }
}
