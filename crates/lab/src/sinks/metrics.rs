//! A page of metrics over HTTP, for Prometheus and whoever reads its format.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hyper::header::{ACCEPT, HeaderMap};

use super::{SharedFigures, classic, openmetrics};
use crate::page_server::{Asked, Effort, Page, PageServer};
use crate::pin::Pins;

/// The page is made of what is known already.
const EFFORT: Effort = Effort { time_max: Duration::from_secs(10), is_slow: false };

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const CLASSIC: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Serves `/metrics` until it is dropped.
pub struct Metrics(PageServer);

impl Metrics {
    /// Listens at an address; port 0 takes a free one.
    ///
    /// # Errors
    /// If nobody can listen there, because somebody else does for example.
    pub fn serve(address: SocketAddr, figures: SharedFigures, pins: &Pins) -> io::Result<Metrics> {
        PageServer::serve("metrics", address, EFFORT, pins, move |asked| page(asked, &figures)).map(Metrics)
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
    use hyper::header::HeaderValue;

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
