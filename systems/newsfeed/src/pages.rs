//! The web page of the news feed and the readable form of its description: two files that are built from `web/`.

use axum::Router;
use tidemark_service::page;

/// The page itself.
const FEED: &str = include_str!("../../../web/dist/newsfeed.html");
/// The page of the HTTP API.
const DOCS: &str = include_str!("../../../web/dist/newsfeed-docs.html");

/// The routes of the pages, which are for GET alone.
pub(crate) fn routes() -> Router {
    Router::new().route("/", page(FEED)).route("/docs", page(DOCS))
}
