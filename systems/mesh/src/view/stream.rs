//! Hystrix' event stream: each half second an event for each command, and one for their pool.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use bytes::Bytes;
use hdrhistogram::Histogram;
use http_body::Frame;
use serde_json::{Value, json};
use tidemark_service::reason;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::breaker::{Outcome, State as BreakerState};
use crate::client::Client;
use crate::command::{Command, Snapshot};
use crate::events::unix_ms;

/// Most streams that are open at once.
pub(super) const STREAMS_MAX: usize = 16;
const EVERY: Duration = Duration::from_millis(500);
/// The percentiles of the published format.
const PERCENTILES: [(&str, f64); 9] = [
    ("0", 0.0),
    ("25", 25.0),
    ("50", 50.0),
    ("75", 75.0),
    ("90", 90.0),
    ("95", 95.0),
    ("99", 99.0),
    ("99.5", 99.5),
    ("100", 100.0),
];

pub(super) async fn begin(State(client): State<Arc<Client>>) -> Response<Body> {
    if client.streams.fetch_add(1, Ordering::Relaxed) >= STREAMS_MAX {
        client.streams.fetch_sub(1, Ordering::Relaxed);
        let text = format!("{STREAMS_MAX} event streams are open, the limit; close one");
        return reason(StatusCode::SERVICE_UNAVAILABLE, &text);
    }
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut response = Response::new(Body::new(Stream { client, ticks }));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An open stream; its place is given back when it is dropped.
struct Stream {
    client: Arc<Client>,
    ticks: Interval,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.client.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

impl http_body::Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        ready!(self.ticks.poll_tick(context));
        if self.client.stops.load(Ordering::Relaxed) {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Ok(Frame::data(events(&self.client).into()))))
    }
}

/// The events of one moment.
fn events(client: &Client) -> String {
    let (now_ms, time_ms) = (client.now_ms(), unix_ms());
    let mut all = String::new();
    let (mut executed, mut rejected) = (0, 0);
    for command in &client.commands {
        let snapshot = command.snapshot(now_ms);
        executed += snapshot.counts.total() - snapshot.counts.of(Outcome::Rejected);
        rejected += snapshot.counts.of(Outcome::Rejected);
        let event = command_event(client, command, &snapshot, (now_ms, time_ms));
        all += &format!("data: {event}\n\n");
    }
    let event = pool_event(client, (executed, rejected), (now_ms, time_ms));
    all + &format!("data: {event}\n\n")
}

/// Percentiles in a unit of so many microseconds.
fn percentiles(latencies: Option<&Histogram<u32>>, unit_us: u64) -> Value {
    let at = |percentile| latencies.map_or(0, |latencies| latencies.value_at_percentile(percentile));
    PERCENTILES
        .iter()
        .map(|(name, percentile)| (name.to_string(), json!(at(*percentile) / unit_us)))
        .collect()
}

fn command_event(
    client: &Client,
    command: &Command,
    snapshot: &Snapshot,
    (now_ms, time_ms): (u64, u64),
) -> Value {
    let under_way = command.under_way.load(Ordering::Relaxed);
    let Snapshot { state, counts, latencies } = snapshot;
    let of = |outcome| counts.of(outcome);
    let latencies = latencies.as_ref().filter(|latencies| !latencies.is_empty());
    let mean_ms = latencies.map_or(0, |latencies| (latencies.mean() / 1000.0) as u64);
    let latency_ms = percentiles(latencies, 1000);
    let breaker = &client.options.breaker;
    let timeout_ms = client.options.timeout.as_millis() as u64;
    json!({
        "type": "HystrixCommand",
        "name": command.name,
        "group": client.options.group,
        "currentTime": time_ms,
        "isCircuitBreakerOpen": *state != BreakerState::Closed,
        "errorPercentage": counts.errors_percent(),
        "errorCount": counts.errors(),
        "requestCount": counts.total(),
        "rollingCountBadRequests": 0,
        "rollingCountCollapsedRequests": 0,
        "rollingCountEmit": 0,
        "rollingCountExceptionsThrown": counts.errors() + of(Outcome::ShortCircuited),
        "rollingCountFailure": of(Outcome::Failure),
        "rollingCountFallbackEmit": 0,
        "rollingCountFallbackFailure": 0,
        "rollingCountFallbackMissing": counts.errors() + of(Outcome::ShortCircuited),
        "rollingCountFallbackRejection": 0,
        "rollingCountFallbackSuccess": 0,
        "rollingCountResponsesFromCache": 0,
        "rollingCountSemaphoreRejected": 0,
        "rollingCountShortCircuited": of(Outcome::ShortCircuited),
        "rollingCountSuccess": of(Outcome::Success),
        "rollingCountThreadPoolRejected": of(Outcome::Rejected),
        "rollingCountTimeout": of(Outcome::Timeout),
        "currentConcurrentExecutionCount": under_way,
        "rollingMaxConcurrentExecutionCount": command.peak.max(now_ms, under_way),
        "latencyExecute_mean": mean_ms,
        "latencyExecute": latency_ms,
        "latencyTotal_mean": mean_ms,
        "latencyTotal": latency_ms,
        // beside what is published: milliseconds say little here
        "latencyExecute_us": percentiles(latencies, 1),
        "circuitBreakerState": state.to_string(),
        "propertyValue_circuitBreakerRequestVolumeThreshold": breaker.requests,
        "propertyValue_circuitBreakerSleepWindowInMilliseconds": breaker.sleep_ms,
        "propertyValue_circuitBreakerErrorThresholdPercentage": breaker.errors_percent,
        "propertyValue_circuitBreakerForceOpen": false,
        "propertyValue_circuitBreakerForceClosed": false,
        "propertyValue_circuitBreakerEnabled": breaker.enabled,
        "propertyValue_executionIsolationStrategy": "THREAD",
        "propertyValue_executionIsolationThreadTimeoutInMilliseconds": timeout_ms,
        "propertyValue_executionTimeoutInMilliseconds": timeout_ms,
        "propertyValue_executionIsolationThreadInterruptOnTimeout": true,
        "propertyValue_executionIsolationThreadPoolKeyOverride": client.options.pool_name,
        "propertyValue_executionIsolationSemaphoreMaxConcurrentRequests": client.options.pool,
        "propertyValue_fallbackIsolationSemaphoreMaxConcurrentRequests": 0,
        "propertyValue_metricsRollingStatisticalWindowInMilliseconds": breaker.window_ms,
        "propertyValue_requestCacheEnabled": false,
        "propertyValue_requestLogEnabled": false,
        "reportingHosts": 1,
        "threadPool": client.options.pool_name,
    })
}

fn pool_event(client: &Client, (executed, rejected): (u64, u64), (now_ms, time_ms): (u64, u64)) -> Value {
    let (pool, active) = (client.options.pool, client.under_way.load(Ordering::Relaxed));
    let done: u64 = client
        .commands
        .iter()
        .map(|command| {
            [Outcome::Success, Outcome::Failure, Outcome::Timeout].map(|outcome| command.total(outcome))
        })
        .map(|counts| counts.iter().sum::<u64>())
        .sum();
    json!({
        "type": "HystrixThreadPool",
        "name": client.options.pool_name,
        "currentTime": time_ms,
        "currentActiveCount": active,
        "currentCompletedTaskCount": done,
        "currentCorePoolSize": pool,
        "currentLargestPoolSize": pool,
        "currentMaximumPoolSize": pool,
        "currentPoolSize": pool,
        "currentQueueSize": 0,
        "currentTaskCount": done + active as u64,
        "rollingCountThreadsExecuted": executed,
        "rollingMaxActiveThreads": client.peak.max(now_ms, active).min(pool as u64),
        "rollingCountCommandRejections": rejected,
        "propertyValue_queueSizeRejectionThreshold": 0,
        "propertyValue_metricsRollingStatisticalWindowInMilliseconds": client.options.breaker.window_ms,
        "reportingHosts": 1,
    })
}
