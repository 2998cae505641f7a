//! The web page of the airline: one file that is built from `web/`, and shows what its address says.

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use tidemark_service::page;

use crate::routes::CONTEXT;

const PAGE: &str = include_str!("../../../web/dist/airline.html");

/// The pages of the public servers by their names; the first is also what the folder shows.
const NAMES: [&str; 6] =
    ["index.html", "flights.html", "checkin.html", "customerprofile.html", "config.html", "loader.html"];

/// The routes of the page, which are for GET alone.
pub(crate) fn routes() -> Router {
    let mut router = Router::new();
    for base in ["", CONTEXT] {
        for name in NAMES.iter().chain(&[""]) {
            router = router.route(&format!("{base}/{name}"), page(PAGE));
        }
    }
    // What the page refers to stands in the folder.
    router.route(CONTEXT, get(async || Redirect::temporary(&format!("{CONTEXT}/"))))
}
