//! Counting requests without slowing them: each worker has its own counters for each route, found by a number.
//! They are added up when `/metrics` is asked for.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use axum::http::{Method, StatusCode};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::held::Budget;
use crate::timings::{Histogram, encode_sum};

/// Route patterns told apart. A router with more has the rest counted as `(other)`.
const ROUTES_MAX: usize = 256;
/// The route of requests that no route matches.
pub(crate) const NO_ROUTE: usize = 0;
/// The route of those beyond [`ROUTES_MAX`].
const OTHER_ROUTE: usize = 1;

const METHODS: [&str; 8] = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH", "OPTIONS", "(other)"];
const STATUSES: [u16; 19] =
    [200, 201, 202, 204, 301, 302, 304, 400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 500, 503];
const STATUS_OTHER: usize = STATUSES.len();

fn method_slot(method: &Method) -> usize {
    match *method {
        Method::GET => 0,
        Method::POST => 1,
        Method::PUT => 2,
        Method::DELETE => 3,
        Method::HEAD => 4,
        Method::PATCH => 5,
        Method::OPTIONS => 6,
        _ => METHODS.len() - 1,
    }
}

fn status_slot(status: StatusCode) -> usize {
    STATUSES.binary_search(&status.as_u16()).unwrap_or(STATUS_OTHER)
}

/// A bound that a client hit.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    Connections,
    Body,
    Head,
    HeadTime,
    BodyTime,
    WriteTime,
    Held,
}

const BOUNDS: [&str; 7] =
    ["connections", "body_bytes", "head_bytes", "head_time", "body_time", "write_time", "held_bytes"];

/// What one worker counts of one route.
#[derive(Debug)]
struct RouteCounts {
    requests: [[AtomicU64; STATUSES.len() + 1]; METHODS.len()],
    times: Histogram,
}

/// What one worker counts. Only that worker writes, so an addition never waits.
#[derive(Debug)]
pub(crate) struct WorkerCounts {
    routes: Box<[OnceLock<Box<RouteCounts>>]>,
    pub(crate) connections_open: AtomicI64,
    pub(crate) connections: AtomicU64,
    pub(crate) in_flight: AtomicI64,
    pub(crate) panics: AtomicU64,
    pub(crate) abandoned: AtomicU64,
    pub(crate) accept_failures: AtomicU64,
    pub(crate) broken_connections: AtomicU64,
    bounds: [AtomicU64; BOUNDS.len()],
}

impl WorkerCounts {
    fn new() -> Self {
        WorkerCounts {
            routes: (0..ROUTES_MAX).map(|_| OnceLock::new()).collect(),
            connections_open: AtomicI64::new(0),
            connections: AtomicU64::new(0),
            in_flight: AtomicI64::new(0),
            panics: AtomicU64::new(0),
            abandoned: AtomicU64::new(0),
            accept_failures: AtomicU64::new(0),
            broken_connections: AtomicU64::new(0),
            bounds: Default::default(),
        }
    }

    pub(crate) fn request(&self, route: usize, method: &Method, status: StatusCode, took: Duration) {
        let counts = self.routes[route.min(ROUTES_MAX - 1)].get_or_init(|| {
            Box::new(RouteCounts { requests: Default::default(), times: Histogram::default() })
        });
        counts.requests[method_slot(method)][status_slot(status)].fetch_add(1, Ordering::Relaxed);
        counts.times.record(took);
    }

    pub(crate) fn bound_hit(&self, bound: Bound) {
        self.bounds[bound as usize].fetch_add(1, Ordering::Relaxed);
    }
}

/// The counters of all workers, and the names of the routes.
#[derive(Debug)]
pub(crate) struct Counts {
    pub(crate) workers: Vec<WorkerCounts>,
    pub(crate) budget: Arc<Budget>,
    /// Number of each route pattern; patterns get theirs when first matched.
    routes: RwLock<HashMap<Arc<str>, usize>>,
    labels: RwLock<Vec<Arc<str>>>,
    system: &'static str,
    version: &'static str,
}

thread_local! {
    /// The route that the request being polled on this thread has matched; taken by the worker after the poll.
    static MATCHED: Cell<usize> = const { Cell::new(NO_ROUTE) };
    /// This thread's copy of the numbers of the routes: spares the lock.
    static KNOWN: RefCell<HashMap<Arc<str>, usize>> = RefCell::new(HashMap::new());
}

/// Forgets what the previous request on this thread matched.
pub(crate) fn clear_matched() {
    MATCHED.set(NO_ROUTE);
}

/// What the request that was just polled for the first time matched.
pub(crate) fn matched() -> usize {
    MATCHED.get()
}

impl Counts {
    pub(crate) fn new(
        workers: usize,
        system: &'static str,
        version: &'static str,
        held_bytes_max: usize,
    ) -> Self {
        Counts {
            workers: (0..workers).map(|_| WorkerCounts::new()).collect(),
            budget: Arc::new(Budget::new(held_bytes_max)),
            routes: RwLock::new(HashMap::new()),
            labels: RwLock::new(vec!["(none)".into(), "(other)".into()]),
            system,
            version,
        }
    }

    /// Notes that the request being polled on this thread has matched this route pattern.
    pub(crate) fn note_matched(&self, pattern: &str) {
        let number = KNOWN.with_borrow(|known| known.get(pattern).copied()).unwrap_or_else(|| {
            let number = self.number_of(pattern);
            KNOWN.with_borrow_mut(|known| known.insert(pattern.into(), number));
            number
        });
        MATCHED.set(number);
    }

    pub(crate) fn number_of(&self, pattern: &str) -> usize {
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(&number) = routes.get(pattern) {
            return number;
        }
        let mut labels = self.labels.write().unwrap_or_else(PoisonError::into_inner);
        if labels.len() == ROUTES_MAX {
            return OTHER_ROUTE;
        }
        let name: Arc<str> = pattern.into();
        labels.push(name.clone());
        routes.insert(name, labels.len() - 1);
        labels.len() - 1
    }

    pub(crate) fn open_connections(&self) -> i64 {
        self.workers.iter().map(|worker| worker.connections_open.load(Ordering::Relaxed)).sum()
    }

    fn sum(&self, part: impl Fn(&WorkerCounts) -> &AtomicU64) -> u64 {
        self.workers.iter().map(|worker| part(worker).load(Ordering::Relaxed)).sum()
    }

    fn encode_requests(&self, encoder: &mut DescriptorEncoder, labels: &[Arc<str>]) -> fmt::Result {
        let help = "Requests answered, by route pattern, method and status";
        let mut family = encoder.encode_descriptor("tidemark_requests", help, None, MetricType::Counter)?;
        for (route, label) in labels.iter().enumerate() {
            for (m, method) in METHODS.iter().enumerate() {
                for s in 0..=STATUS_OTHER {
                    let count: u64 = self
                        .workers
                        .iter()
                        .filter_map(|worker| worker.routes[route].get())
                        .map(|counts| counts.requests[m][s].load(Ordering::Relaxed))
                        .sum();
                    if count == 0 {
                        continue;
                    }
                    let status = STATUSES.get(s).map_or("(other)".to_owned(), u16::to_string);
                    let labels =
                        [("route", label.as_ref()), ("method", *method), ("status", status.as_str())];
                    family
                        .encode_family(&labels)?
                        .encode_counter::<[(&str, &str); 0], u64, f64>(&count, None)?;
                }
            }
        }
        Ok(())
    }

    fn encode_times(&self, encoder: &mut DescriptorEncoder, labels: &[Arc<str>]) -> fmt::Result {
        let help = "Time from a request being there to its answer being ready, in seconds, by route pattern";
        let name = "tidemark_request_duration_seconds";
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
        for (route, label) in labels.iter().enumerate() {
            let parts = || self.workers.iter().filter_map(|worker| worker.routes[route].get());
            if parts().next().is_some() {
                let labels = [("route", label.as_ref())];
                encode_sum(family.encode_family(&labels)?, parts().map(|counts| &counts.times))?;
            }
        }
        Ok(())
    }

    fn encode_bounds(&self, encoder: &mut DescriptorEncoder) -> fmt::Result {
        let help = "How often a client hit a bound of the server, by bound";
        let mut family = encoder.encode_descriptor("tidemark_bound_hits", help, None, MetricType::Counter)?;
        for (index, bound) in BOUNDS.iter().enumerate() {
            let count = self.sum(|worker| &worker.bounds[index]);
            let labels = [("bound", *bound)];
            family.encode_family(&labels)?.encode_counter::<[(&str, &str); 0], u64, f64>(&count, None)?;
        }
        Ok(())
    }
}

/// Writes one value without labels.
fn plain(encoder: &mut DescriptorEncoder, name: &str, help: &str, value: Value) -> fmt::Result {
    match value {
        Value::Gauge(value) => {
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)
        }
        Value::Counter(value) => {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            metric.encode_counter::<[(&str, &str); 0], u64, f64>(&value, None)
        }
    }
}

enum Value {
    Gauge(i64),
    Counter(u64),
}

impl Collector for Counts {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let labels = self.labels.read().unwrap_or_else(PoisonError::into_inner).clone();
        let e = &mut encoder;
        self.encode_requests(e, &labels)?;
        self.encode_times(e, &labels)?;
        self.encode_bounds(e)?;
        let in_flight = self.workers.iter().map(|worker| worker.in_flight.load(Ordering::Relaxed)).sum();
        let open = Value::Gauge(self.open_connections());
        plain(e, "tidemark_requests_in_flight", "Requests being worked on", Value::Gauge(in_flight))?;
        plain(e, "tidemark_connections_open", "Connections open now", open)?;
        let held = Value::Gauge(i64::try_from(self.budget.held_bytes()).unwrap_or(i64::MAX));
        let help = "Bytes of requests and answers that waiting connections hold, of each what is above 4 KiB";
        plain(e, "tidemark_held_bytes", help, held)?;
        let accepted = Value::Counter(self.sum(|worker| &worker.connections));
        plain(e, "tidemark_connections", "Connections accepted", accepted)?;
        let broken = Value::Counter(self.sum(|worker| &worker.broken_connections));
        let help = "Connections that ended in an error: reset, cut off, or not HTTP";
        plain(e, "tidemark_connections_broken", help, broken)?;
        let panics = Value::Counter(self.sum(|worker| &worker.panics));
        plain(e, "tidemark_handler_panics", "Requests answered 500 because their handler panicked", panics)?;
        let abandoned = Value::Counter(self.sum(|worker| &worker.abandoned));
        let help = "Requests whose client went away before the answer was ready";
        plain(e, "tidemark_requests_abandoned", help, abandoned)?;
        let failures = Value::Counter(self.sum(|worker| &worker.accept_failures));
        let help = "Connections that could not be accepted, for lack of open files for example";
        plain(e, "tidemark_accept_failures", help, failures)?;
        plain(e, "tidemark_workers", "Worker threads", Value::Gauge(self.workers.len() as i64))?;
        let labels = [("system", self.system), ("version", self.version)];
        e.encode_descriptor("tidemark_build", "What is running", None, MetricType::Info)?.encode_info(&labels)
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    fn text_of(counts: Arc<Counts>) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(counts));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text
    }

    #[test]
    fn workers_are_added_up() {
        let counts = Arc::new(Counts::new(2, "airline", "1.0", 1 << 20));
        let matched_on = |worker: usize, status| {
            counts.note_matched("/a/{b}");
            counts.workers[worker].request(matched(), &Method::GET, status, Duration::from_millis(1));
        };
        matched_on(0, StatusCode::OK);
        matched_on(1, StatusCode::OK);
        matched_on(1, StatusCode::IM_A_TEAPOT);
        counts.workers[1].bound_hit(Bound::Body);
        let text = text_of(counts);
        for line in [
            "tidemark_requests_total{route=\"/a/{b}\",method=\"GET\",status=\"200\"} 2",
            "tidemark_requests_total{route=\"/a/{b}\",method=\"GET\",status=\"(other)\"} 1",
            "tidemark_request_duration_seconds_count{route=\"/a/{b}\"} 3",
            "tidemark_bound_hits_total{bound=\"body_bytes\"} 1",
            "tidemark_build_info{system=\"airline\",version=\"1.0\"} 1",
        ] {
            assert!(text.lines().any(|l| l == line), "no line {line} in\n{text}");
        }
    }

    #[test]
    fn routes_beyond_the_bound_share_one_number() {
        let counts = Counts::new(1, "x", "1", 1 << 20);
        for n in 0..ROUTES_MAX {
            counts.note_matched(&format!("/{n}"));
        }
        assert_eq!(matched(), OTHER_ROUTE);
        counts.note_matched("/0");
        assert_eq!(matched(), 2);
    }

    #[test]
    fn statuses_are_sorted_for_the_search() {
        assert!(STATUSES.is_sorted());
        assert_eq!(status_slot(StatusCode::NOT_FOUND), 10);
        for (slot, name) in METHODS[..METHODS.len() - 1].iter().enumerate() {
            assert_eq!(method_slot(&name.parse().unwrap()), slot);
        }
        assert_eq!(method_slot(&Method::TRACE), METHODS.len() - 1);
    }
}
