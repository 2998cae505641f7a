//! A small registry that speaks Eureka's REST, as a system of its own.
//!
//! It keeps everything in memory: whoever is registered says so again within seconds. It answers JSON only.

mod leases;

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Response, StatusCode, header};
use axum::routing::get;
use parking_lot::Mutex;
use serde_json::Value;
use tidemark_service::encode::{DescriptorEncoder, gauge};
use tidemark_service::{
    Options, ReferenceSystem, Setting, SettingError, Settings, StartError, System, json, read_json, reason,
};

use leases::{Leases, Refused};

/// How often instances are looked for whose lease is over.
const EXPIRE_EVERY: Duration = Duration::from_millis(500);
/// The longest description of an instance.
const BODY_BYTES_MAX: usize = 32 * 1024;

type Body = axum::body::Body;

/// The registry as its settings have it.
#[derive(Debug)]
pub struct RegistrySystem {
    instances_max: usize,
}

const SETTINGS: &[Setting] = &[Setting {
    name: "instances_max",
    default: "1000",
    allowed: "1 to 10000",
    help: "instances registered at once; one more is answered 503",
}];

impl ReferenceSystem for RegistrySystem {
    const NAME: &'static str = "registry";
    const DESCRIPTION: &'static str = "where instances find each other: Eureka's REST, as JSON";
    const SETTINGS: &'static [Setting] = SETTINGS;
    const KEEPS_DATA: bool = false;

    fn read(settings: &Settings<'_>) -> Result<Self, SettingError> {
        Ok(RegistrySystem { instances_max: settings.value("instances_max", 1..=10_000)? })
    }

    fn body_bytes_max(&self) -> usize {
        BODY_BYTES_MAX
    }

    fn start(self, _: &Options) -> Result<System, StartError> {
        let registry =
            Arc::new(Registry { leases: Mutex::new(Leases::new(self.instances_max)), begun: Instant::now() });
        let expiring = registry.clone();
        let expire = async move {
            loop {
                tokio::time::sleep(EXPIRE_EVERY).await;
                for id in expiring.leases.lock().expire(expiring.now_ms()) {
                    tracing::warn!(
                        id,
                        "an instance has said nothing for the time of its lease: it is forgotten"
                    );
                }
            }
        };
        let counted = registry.clone();
        let counters = move |encoder: &mut DescriptorEncoder<'_>| {
            let count = counted.leases.lock().count() as u64;
            gauge(encoder, "registry_instances", "Instances that are registered", count)
        };
        Ok(System::new(router(registry)).background(expire).counters(counters))
    }
}

struct Registry {
    leases: Mutex<Leases>,
    begun: Instant,
}

impl Registry {
    fn now_ms(&self) -> u64 {
        self.begun.elapsed().as_millis() as u64
    }
}

fn router(registry: Arc<Registry>) -> Router {
    // axum takes one type of parameters a path, so both bases are there in full
    ["/eureka", "/eureka/v2"]
        .into_iter()
        .fold(Router::new(), |router, base| {
            router
                .route(&format!("{base}/apps"), get(all))
                .route(&format!("{base}/apps/"), get(all))
                .route(&format!("{base}/apps/delta"), get(delta))
                .route(&format!("{base}/apps/{{app}}"), get(of_app).post(register))
                .route(&format!("{base}/apps/{{app}}/{{id}}"), get(one).put(renew).delete(cancel))
        })
        .with_state(registry)
}

type Shared = State<Arc<Registry>>;

fn answer(body: &Value) -> Response<Body> {
    json(StatusCode::OK, body.to_string())
}

fn not_found() -> Response<Body> {
    reason(StatusCode::NOT_FOUND, "there is no such application or instance")
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

async fn all(State(registry): Shared) -> Response<Body> {
    answer(&registry.leases.lock().all())
}

async fn delta(State(registry): Shared) -> Response<Body> {
    answer(&registry.leases.lock().delta(registry.now_ms()))
}

async fn of_app(State(registry): Shared, Path(app): Path<String>) -> Response<Body> {
    let found = registry.leases.lock().of_app(&app);
    found.map_or_else(not_found, |found| answer(&found))
}

async fn one(State(registry): Shared, Path((app, id)): Path<(String, String)>) -> Response<Body> {
    let found = registry.leases.lock().one(&app, &id);
    found.map_or_else(not_found, |found| answer(&found))
}

async fn register(
    State(registry): Shared,
    Path(app): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !content_type.is_some_and(|of| of.starts_with("application/json")) {
        return reason(StatusCode::UNSUPPORTED_MEDIA_TYPE, "an instance is described as application/json");
    }
    let described: Value = match read_json(&body) {
        Ok(described) => described,
        Err(error) => return reason(StatusCode::BAD_REQUEST, &format!("not an instance as JSON: {error}")),
    };
    let now_ms = registry.now_ms();
    match registry.leases.lock().register(&app, described, now_ms) {
        Ok(()) => empty(StatusCode::NO_CONTENT),
        Err(Refused::Wrong(text)) => reason(StatusCode::BAD_REQUEST, &text),
        Err(Refused::Full(text)) => reason(StatusCode::SERVICE_UNAVAILABLE, &text),
    }
}

async fn renew(State(registry): Shared, Path((app, id)): Path<(String, String)>) -> Response<Body> {
    let now_ms = registry.now_ms();
    let known = registry.leases.lock().renew(&app, &id, now_ms);
    if known { empty(StatusCode::OK) } else { not_found() }
}

async fn cancel(State(registry): Shared, Path((app, id)): Path<(String, String)>) -> Response<Body> {
    let now_ms = registry.now_ms();
    let known = registry.leases.lock().cancel(&app, &id, now_ms);
    if known { empty(StatusCode::OK) } else { not_found() }
}
