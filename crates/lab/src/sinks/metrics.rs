//! A page of metrics over HTTP, for Prometheus and whoever reads its format.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
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
    let mut head = Vec::new();
    let answer = loop {
        match parse_head(&head) {
            ParsedHead::More if head.len() < HEAD_BYTES_MAX => {
                let mut part = [0; 1024];
                let read = stream.read(&mut part).await?;
                if read == 0 {
                    return Ok(());
                }
                head.extend_from_slice(&part[..read]);
            }
            ParsedHead::More => {
                break Answer::told("431 Request Header Fields Too Large", "the request is too long\n");
            }
            ParsedHead::Wrong => break Answer::told("400 Bad Request", "this is not an HTTP/1.1 request\n"),
            ParsedHead::Request { method, path, openmetrics } => {
                break Answer::to(&method, &path, openmetrics, figures);
            }
        }
    };
    stream.write_all(&answer.bytes()).await?;
    stream.shutdown().await?;
    // what is unread would reset the connection, and with it the answer
    let mut rest = [0; 1024];
    let mut left = HEAD_BYTES_MAX;
    while left > 0 {
        match stream.read(&mut rest).await? {
            0 => break,
            read => left = left.saturating_sub(read),
        }
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum ParsedHead {
    More,
    Wrong,
    Request { method: String, path: String, openmetrics: bool },
}

fn parse_head(head: &[u8]) -> ParsedHead {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => ParsedHead::More,
        Err(_) => ParsedHead::Wrong,
        Ok(httparse::Status::Complete(_)) => {
            let accepts = request.headers.iter().filter(|header| header.name.eq_ignore_ascii_case("accept"));
            let openmetrics = prefers_openmetrics(accepts.map(|header| header.value));
            let method = request.method.unwrap_or_default().to_owned();
            let target = request.path.unwrap_or_default();
            let path = target.split('?').next().unwrap_or_default().to_owned();
            ParsedHead::Request { method, path, openmetrics }
        }
    }
}

/// Whether the newer format is asked for, and at least as much as the older one.
fn prefers_openmetrics<'h>(accepts: impl Iterator<Item = &'h [u8]>) -> bool {
    let (mut newer, mut older) = (0.0_f64, 0.0_f64);
    for accept in accepts {
        let accept = String::from_utf8_lossy(accept).to_ascii_lowercase();
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

struct Answer {
    status: &'static str,
    content_type: &'static str,
    allow: bool,
    body: String,
    /// HEAD: its length is told, and no more.
    without_body: bool,
}

impl Answer {
    fn told(status: &'static str, body: &str) -> Answer {
        Answer { status, content_type: PLAIN, allow: false, body: body.into(), without_body: false }
    }

    fn to(method: &str, path: &str, openmetrics: bool, figures: &SharedFigures) -> Answer {
        let mut answer = match (method, path) {
            (_, path) if path != "/metrics" => Answer::told("404 Not Found", "metrics are at /metrics\n"),
            ("GET" | "HEAD", _) => match openmetrics::page(figures) {
                Ok(page) => {
                    let body = if openmetrics { page } else { classic::of(&page) };
                    let content_type = if openmetrics { OPENMETRICS } else { CLASSIC };
                    Answer { status: "200 OK", content_type, allow: false, body, without_body: false }
                }
                Err(_) => Answer::told("500 Internal Server Error", "the page cannot be written\n"),
            },
            _ => Answer { allow: true, ..Answer::told("405 Method Not Allowed", "only GET and HEAD\n") },
        };
        answer.without_body = method == "HEAD";
        answer
    }

    fn bytes(self) -> Vec<u8> {
        let Answer { status, content_type, allow, body, without_body } = self;
        let allow = if allow { "Allow: GET, HEAD\r\n" } else { "" };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nVary: Accept\r\n{allow}Connection: close\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        if !without_body {
            bytes.extend_from_slice(body.as_bytes());
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_what_is_asked_for() {
        let prefers = |accept: &str| prefers_openmetrics([accept.as_bytes()].into_iter());
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
        assert!(!prefers_openmetrics(std::iter::empty()));
    }

    #[test]
    fn requests_come_in_parts() {
        let whole = b"HEAD /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n";
        for length in 0..whole.len() {
            assert_eq!(parse_head(&whole[..length]), ParsedHead::More, "{length} bytes");
        }
        let request =
            ParsedHead::Request { method: "HEAD".into(), path: "/metrics".into(), openmetrics: false };
        assert_eq!(parse_head(whole), request);
        assert_eq!(parse_head(b"\x16\x03\x01\x02\x00"), ParsedHead::Wrong);
    }
}
