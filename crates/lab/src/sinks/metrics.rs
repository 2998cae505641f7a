//! A page of metrics over HTTP, for Prometheus and whoever reads its format.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::header::{ACCEPT, HeaderMap};

use super::{SharedFigures, classic, openmetrics};
use crate::page_server::{Asked, Effort, Hosts, Page, PageServer};
use crate::pin::Pins;

/// The page is made of what is known already.
const EFFORT: Effort = Effort { time_max: Duration::from_secs(10), is_slow: false };

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves `/metrics` until it is dropped.
pub struct Metrics(PageServer);

impl Metrics {
    /// Listens at an address; port 0 takes a free one. At one that only this machine reaches, whoever asks by another name
    /// than an address or `localhost` is refused: it may be a page of another's in a browser here (DNS rebinding).
    ///
    /// # Errors
    /// If nobody can listen there, because somebody else does for example.
    pub fn serve(address: SocketAddr, figures: SharedFigures, pins: &Pins) -> io::Result<Metrics> {
        let hosts =
            address.ip().is_loopback().then(|| Hosts::new(&[], "ask by its address, or as localhost"));
        let answer = move |asked: &Asked| match hosts.as_ref().and_then(|hosts| hosts.refuses(&asked.headers))
        {
            Some(reason) => Page::told(421, reason),
            None => page(asked, &figures),
        };
        PageServer::serve("metrics", address, EFFORT, pins, answer).map(Metrics)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }
}

fn page(asked: &Asked, figures: &SharedFigures) -> Page {
    if asked.path != "/metrics" {
        return varied(Page::told(404, "metrics are at /metrics"));
    }
    let of = |content_type, body| Page { status: 200, content_type, headers: Vec::new(), body };
    varied(match openmetrics::page(figures) {
        Ok(page) if prefers_openmetrics(&asked.headers) => of(OPENMETRICS, page),
        Ok(page) => of(CLASSIC, classic::of(&page)),
        Err(_) => Page::told(500, "the page cannot be written"),
    })
}

fn varied(mut page: Page) -> Page {
    page.headers.push(("vary", "Accept"));
    page
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
    use std::io::{Read, Write};
    use std::net::TcpStream;

    use hyper::header::HeaderValue;

    use super::*;

    #[test]
    fn another_name_gets_no_answer_where_only_this_machine_is_to_have_one() {
        let status = |bind: &str, host: &str| {
            let metrics =
                Metrics::serve(bind.parse().unwrap(), SharedFigures::default(), &Pins::default()).unwrap();
            let mut stream = TcpStream::connect(("127.0.0.1", metrics.address().port())).unwrap();
            write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer[9..12].to_owned()
        };
        for host in ["127.0.0.1", "localhost:9", "[::1]:9"] {
            assert_eq!(status("127.0.0.1:0", host), "200", "{host}");
        }
        for host in ["evil.test", "evil.test:9", "localhost.evil.test", ""] {
            assert_eq!(status("127.0.0.1:0", host), "421", "{host}");
        }
        assert_eq!(status("0.0.0.0:0", "load.example"), "200", "others are to reach it by its name");
    }

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
