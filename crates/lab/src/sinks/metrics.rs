//! A page of metrics over HTTP, for Prometheus and whoever reads its format.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue, VARY};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;
use tokio::sync::{Notify, Semaphore};

use super::{SharedFigures, beside_the_driver, classic, openmetrics};
use crate::pin::Pins;

/// Connections that are answered at once; others wait to be accepted.
const CONNECTIONS_MAX: usize = 16;
/// Longest head of a request.
const HEAD_BYTES_MAX: usize = 8 << 10;
/// Headers of a request.
const HEADERS_MAX: usize = 64;
/// Longest time from accepting a connection to its end.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Wait after a connection could not be accepted, for lack of open files for example.
const PAUSE: Duration = Duration::from_millis(100);

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

/// Serves `/metrics` until it is dropped.
pub struct Metrics {
    address: SocketAddr,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

impl Metrics {
    /// Listens at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// If nobody can listen there, because somebody else does for example.
    pub fn serve(address: SocketAddr, figures: SharedFigures, pins: &Pins) -> io::Result<Metrics> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stop = Arc::new(Notify::new());
        let stopped = stop.clone();
        let thread = beside_the_driver("metrics", pins, move || {
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, figures) => {}
                    () = stopped.notified() => {}
                }
            });
        })?;
        Ok(Metrics { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Metrics {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // that it panicked was said by the hook
            let _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, figures: SharedFigures) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let free = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(place) = free.clone().acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let figures = figures.clone();
                tokio::spawn(async move {
                    // whoever is slower than that, or went away, gets no answer
                    let _ = tokio::time::timeout(TIME_MAX, answer(stream, &figures)).await;
                    drop(place);
                });
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Answers one request, and closes.
async fn answer(mut stream: TcpStream, figures: &SharedFigures) -> io::Result<()> {
    let mut http = http1::Builder::new();
    http.keep_alive(false).half_close(true).title_case_headers(true);
    http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEADERS_MAX);
    let service = service_fn(async |request| Ok::<_, Infallible>(response(&request, figures)));
    // what is not a request hyper has answered
    let _ = http.serve_connection(TokioIo::new(&mut stream), service).await;
    // what is unread would reset the connection, and with it the answer
    let (mut rest, mut left) = ([0; 1024], HEAD_BYTES_MAX);
    while left > 0 {
        match stream.read(&mut rest).await? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

fn response(request: &Request<Incoming>, figures: &SharedFigures) -> Response<Full<Bytes>> {
    let told = |status, text: &str| (status, PLAIN, text.to_owned());
    let (status, content_type, body) = match *request.method() {
        _ if request.uri().path() != "/metrics" => told(StatusCode::NOT_FOUND, "metrics are at /metrics\n"),
        Method::GET | Method::HEAD => match openmetrics::page(figures) {
            Ok(page) if prefers_openmetrics(request.headers()) => (StatusCode::OK, OPENMETRICS, page),
            Ok(page) => (StatusCode::OK, CLASSIC, classic::of(&page)),
            Err(_) => told(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be written\n"),
        },
        _ => told(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n"),
    };
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

/// Whether the newer format is asked for, and at least as much as the older one.
fn prefers_openmetrics(headers: &HeaderMap) -> bool {
    let (mut newer, mut older) = (0.0_f64, 0.0_f64);
    for accept in headers.get_all(ACCEPT) {
        let accept = String::from_utf8_lossy(accept.as_bytes()).to_ascii_lowercase();
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_owned();
            let (mut weight, mut version) = (1.0, "1.0.0");
            for part in parts {
                match part.split_once('=') {
                    Some(("q", q)) => weight = q.trim().parse().unwrap_or(0.0),
                    Some(("version", said)) => version = said.trim(),
                    _ => {}
                }
            }
            match kind.as_str() {
                "application/openmetrics-text" if ["1.0.0", "0.0.1"].contains(&version) => {
                    newer = newer.max(weight)
                }
                "text/plain" | "text/*" | "*/*" => older = older.max(weight),
                _ => {}
            }
        }
    }
    newer > 0.0 && newer >= older
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_is_asked_for() {
        let prefers = |accept: &'static str| {
            prefers_openmetrics(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]))
        };
        assert!(prefers(
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
        ));
        assert!(prefers("application/openmetrics-text"));
        for other in [
            "",
            "*/*",
            "text/plain",
            "application/openmetrics-text;q=0",
            "text/plain, application/openmetrics-text;q=0.5",
            "application/openmetrics-text;version=7",
        ] {
            assert!(!prefers(other), "{other}");
        }
        assert!(!prefers_openmetrics(&HeaderMap::new()));
    }
}
