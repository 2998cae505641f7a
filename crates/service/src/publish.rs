//! From what a system brings to what its clients see.

use axum::Router;
use prometheus_client::collector::Collector;

use crate::endpoint::{Endpoint, Starting};
use crate::shared::{NoteRoute, Published, Shared};
use crate::{ServiceError, answer, dispatch};

/// Endpoints and routes of a system; what the endpoints count goes to the `collectors`.
pub(crate) fn publish(
    shared: &Shared,
    mut router: Router,
    mut endpoints: Vec<Box<dyn Endpoint>>,
    collectors: &mut Vec<Box<dyn Collector>>,
) -> Result<Published, ServiceError> {
    if router.has_routes() {
        router = router.route_layer(NoteRoute(shared.counts.clone()));
    }
    let router = router
        .fallback(|| async { dispatch::not_found() })
        .method_not_allowed_fallback(|| async { answer::method_not_allowed() })
        .with_state(());
    let Shared { name, version, counts, .. } = shared;
    let workers = counts.workers.len();
    let mut starting = Starting { name, version, workers, counts, collectors };
    endpoints.iter_mut().try_for_each(|endpoint| endpoint.start(&mut starting))?;
    Ok(Published { router, endpoints })
}
