//! What a client shows of itself: the event stream that Hystrix' dashboards read, a page of its own, metrics.

mod stream;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use serde_json::json;
use tidemark_service::encode::{DescriptorEncoder, gauge};
use tidemark_service::prometheus_client::encoding::EncodeMetric;
use tidemark_service::prometheus_client::metrics::MetricType;
use tidemark_service::prometheus_client::metrics::gauge::ConstGauge;
use tidemark_service::{json as answer, typed};

use crate::breaker::{Outcome, State as BreakerState};
use crate::client::Client;
use crate::command::Command;

const PAGE: &str = include_str!("view/mesh.html");
const SCRIPT: &str = include_str!("view/mesh.js");
const STYLE: &str = include_str!("view/mesh.css");
/// The page loads its own script and style and asks its own server; nothing else.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes that show a client: `/hystrix.stream`, `/rest/api/hystrix.stream`, `/mesh` and what is below it.
pub fn routes(client: Arc<Client>) -> Router {
    Router::new()
        .route("/hystrix.stream", get(stream::begin))
        .route("/rest/api/hystrix.stream", get(stream::begin))
        .route("/mesh", get(async || page("text/html; charset=utf-8", PAGE)))
        .route("/mesh.js", get(async || page("text/javascript; charset=utf-8", SCRIPT)))
        .route("/mesh.css", get(async || page("text/css; charset=utf-8", STYLE)))
        .route("/mesh/instances", get(instances))
        .route("/mesh/events", get(events))
        .with_state(client)
}

fn page(content_type: &'static str, text: &'static str) -> Response<Body> {
    let mut page = typed(StatusCode::OK, content_type, text);
    let headers = page.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    page
}

async fn events(State(client): State<Arc<Client>>) -> Response<Body> {
    typed(StatusCode::OK, "application/x-ndjson", client.events.lines())
}

async fn instances(State(client): State<Arc<Client>>) -> Response<Body> {
    let now_ms = client.now_ms();
    let known = client.instances.known();
    let list: Vec<_> = known
        .iter()
        .map(|instance| {
            json!({
                "address": instance.host,
                "healthy": !instance.is_passed_over(now_ms),
                "under_way": instance.under_way.load(Ordering::Relaxed),
                "requests": instance.requests.load(Ordering::Relaxed),
                "failures": instance.failures.load(Ordering::Relaxed),
            })
        })
        .collect();
    let looked_up = client.refreshes_failed.load(Ordering::Relaxed) == 0;
    let body = json!({ "service": client.options.service, "up_to_date": looked_up, "instances": list });
    answer(StatusCode::OK, body.to_string())
}

/// Writes what a client counts.
///
/// # Errors
/// The encoder fails.
pub fn encode(e: &mut DescriptorEncoder<'_>, client: &Client) -> fmt::Result {
    let help = "Calls to another service, by how they ended";
    let mut family = e.encode_descriptor("mesh_calls", help, None, MetricType::Counter)?;
    for command in &client.commands {
        for outcome in Outcome::ALL {
            let labels = [("command", command.name), ("outcome", outcome.name())];
            let total = command.total(outcome);
            family.encode_family(&labels)?.encode_counter::<[(&str, &str); 0], u64, f64>(&total, None)?;
        }
    }
    let help = "State of a command's breaker: 0 closed, 1 half open, 2 open";
    let mut family = e.encode_descriptor("mesh_breaker_state", help, None, MetricType::Gauge)?;
    for command in &client.commands {
        let state = match command.state() {
            BreakerState::Closed => 0,
            BreakerState::HalfOpen => 1,
            BreakerState::Open => 2,
        };
        ConstGauge::new(state).encode(family.encode_family(&[("command", command.name)])?)?;
    }
    type Count = fn(&Command) -> u64;
    let counts: [(&str, &str, Count); 2] = [
        ("mesh_retries", "Attempts after the first", |of| of.retries.load(Ordering::Relaxed)),
        ("mesh_hedges", "Reads sent to a second instance, too", |of| of.hedges.load(Ordering::Relaxed)),
    ];
    for (name, help, count) in counts {
        let mut family = e.encode_descriptor(name, help, None, MetricType::Counter)?;
        for command in &client.commands {
            let labels = [("command", command.name)];
            let total = count(command);
            family.encode_family(&labels)?.encode_counter::<[(&str, &str); 0], u64, f64>(&total, None)?;
        }
    }
    let known = client.instances.known();
    let now_ms = client.now_ms();
    let passed_over = known.iter().filter(|instance| instance.is_passed_over(now_ms)).count();
    gauge(e, "mesh_instances", "Instances of the other service that are known", known.len() as u64)?;
    gauge(e, "mesh_instances_passed_over", "Those of them that could not be reached", passed_over as u64)?;
    let under_way = client.under_way.load(Ordering::Relaxed) as u64;
    gauge(e, "mesh_calls_under_way", "Calls that wait for an answer", under_way)?;
    let failed = client.refreshes_failed.load(Ordering::Relaxed);
    gauge(e, "mesh_refreshes_failed", "Failed look-ups of instances since the last that worked", failed)?;
    let streams = client.streams.load(Ordering::Relaxed) as u64;
    gauge(e, "mesh_streams", "Event streams that are open", streams)?;
    Ok(())
}
