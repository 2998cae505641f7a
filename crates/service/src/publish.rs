//! From what a system brings to what its clients see.

use std::sync::Arc;

use axum::Router;
use tidemark_wire::rpc::Greeting;

use crate::rpc::{self, IN_FLIGHT_MAX, Routes, Services};
use crate::rpc_metrics::CallCounts;
use crate::shared::{NoteRoute, Published, Shared};
use crate::short_way::ShortWay;
use crate::{ServiceError, request};

/// Routes, description and greeting of a system.
pub(crate) fn publish(
    shared: &Shared,
    mut router: Router,
    short_way: Option<ShortWay>,
    services: Services,
) -> Result<Published, ServiceError> {
    if router.has_routes() {
        router = router.route_layer(NoteRoute(shared.counts.clone()));
    }
    let router = router
        .fallback(|| async { request::not_found() })
        .method_not_allowed_fallback(|| async { request::method_not_allowed() })
        .with_state(());
    let routes = Routes::new(&services, &shared.counts)?;
    let descriptions: Vec<_> = services.iter().map(|service| service.description()).collect();
    let numbered = |(service, methods): (usize, usize)| (0..methods).map(move |method| (service, method));
    let methods: Arc<[_]> = descriptions
        .iter()
        .map(|description| description.methods.len())
        .enumerate()
        .flat_map(numbered)
        .collect();
    let name = |(service, method): &(usize, usize)| {
        let description = descriptions[*service];
        format!("{}.{}", description.name, description.methods[*method].name)
    };
    let names: Vec<String> = methods.iter().map(name).collect();
    let calls = CallCounts::new(shared.counts.workers.len(), names.clone());
    let mut greeting = Vec::new();
    let written =
        Greeting { limits: rpc::LIMITS, in_flight_max: IN_FLIGHT_MAX, methods: names }.write(&mut greeting);
    written.map_err(|error| ServiceError::Start(Box::new(error)))?;
    let openapi = rpc::document(shared.name, shared.version, &descriptions).to_string();
    let calls = Arc::new(calls);
    let short_way = short_way.map(|way| {
        let route = shared.counts.number_of(way.path);
        (way, route)
    });
    Ok(Published { router, short_way, services, routes, methods, greeting, openapi: openapi.into(), calls })
}
