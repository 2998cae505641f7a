//! From what a system brings to what its clients see.

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use prometheus_client::collector::Collector;
use tower::util::MapRequestLayer;

use crate::ServiceError;
use crate::answer::NOT_ALLOWED_TEXT;
use crate::endpoint::{Endpoint, Starting};
use crate::server::{Refuse, Trouble};
use crate::shared::{Published, Shared};

/// Endpoints and routes of a system; what the endpoints count goes to the `collectors`.
pub(crate) fn publish(
    shared: &Shared,
    mut router: Router,
    mut endpoints: Vec<Box<dyn Endpoint>>,
    refuse: Refuse,
    trouble: Trouble,
    collectors: &mut Vec<Box<dyn Collector>>,
) -> Result<Published, ServiceError> {
    if router.has_routes() {
        let counts = shared.counts.clone();
        router = router.route_layer(MapRequestLayer::new(move |request: Request| {
            if let Some(pattern) = request.extensions().get::<MatchedPath>() {
                counts.note_matched(pattern.as_str());
            }
            request
        }));
    }
    let router = router
        .fallback(async move || refuse(StatusCode::NOT_FOUND, "no such path"))
        .method_not_allowed_fallback(async move || refuse(StatusCode::METHOD_NOT_ALLOWED, NOT_ALLOWED_TEXT))
        .with_state(());
    let Shared { name, version, counts, .. } = shared;
    let workers = counts.workers.len();
    let mut starting = Starting { name, version, workers, counts, collectors };
    endpoints.iter_mut().try_for_each(|endpoint| endpoint.start(&mut starting))?;
    Ok(Published { router, endpoints, trouble, http2: None })
}
