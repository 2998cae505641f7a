//! Which path does what.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use bytes::Bytes;
use tidemark_service::OPENAPI_PATH;
use tidemark_service::json;

use crate::app::App;
use crate::{handlers, house, pages};

/// Every path is served with and without this in front of it: the published driver's plan expects it.
pub(crate) const CONTEXT: &str = "/acmeair-webapp";

/// Where one of the public servers had what needs no session, and where the other.
pub(crate) const HOUSE_BASES: [&str; 2] = ["/rest/api", "/rest/info"];

/// All routes of the airline, its pages and its OpenAPI document among them.
pub(crate) fn router(app: Arc<App>, document: String) -> Router {
    let description = Bytes::from(document);
    let describe = get(async move || json(StatusCode::OK, description.clone()));
    let mut router = Router::new().route(OPENAPI_PATH, describe);
    each(|path, does| {
        let plain = std::mem::take(&mut router);
        router = plain.route(path, does.clone()).route(&format!("{CONTEXT}{path}"), does);
    });
    router.with_state(app).merge(pages::routes())
}

/// Every path without the context.
#[cfg(test)]
pub(crate) fn paths() -> Vec<String> {
    let mut paths = Vec::new();
    each(|path, _| paths.push(path.to_owned()));
    paths
}

/// Shows all paths of the airline, with what each does.
fn each(mut route: impl FnMut(&str, MethodRouter<Arc<App>>)) {
    route("/rest/api/login", post(handlers::login));
    route("/rest/api/login/logout", get(handlers::logout));
    route("/rest/api/flights/queryflights", post(handlers::query_flights));
    route("/rest/api/flights/browseflights", post(handlers::browse_flights));
    route("/rest/api/bookings/bookflights", post(handlers::book_flights));
    route("/rest/api/bookings/byuser/{user}", get(handlers::bookings_by_user));
    route("/rest/api/bookings/bybookingnumber/{user}/{number}", get(handlers::booking_by_number));
    route("/rest/api/bookings/cancelbooking", post(handlers::cancel_booking));
    route("/rest/api/customer/byid/{user}", get(handlers::customer).post(handlers::update_customer));
    for base in HOUSE_BASES {
        let mut public = |path: &str, does| route(&format!("{base}/{path}"), does);
        public("loader/query", get(house::load_query));
        public("loader/load", get(house::load));
        public("config/countCustomers", get(house::count_customers));
        public("config/countSessions", get(house::count_sessions));
        public("config/countFlights", get(house::count_flights));
        public("config/countFlightSegments", get(house::count_segments));
        public("config/countBookings", get(house::count_bookings));
        public("config/countAirports", get(house::count_airports));
        public("config/runtime", get(house::runtime));
        public("config/dataServices", get(house::data_services));
        public("config/activeDataService", get(house::active_data_service));
        public("checkstatus", get(house::check_status));
    }
}
