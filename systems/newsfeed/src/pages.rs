//! The web page of the news feed and the readable form of its description: two files that are built from `web/`.

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use axum::routing::get;
use bytes::Bytes;

/// The page itself.
const FEED: &str = include_str!("../../../web/dist/newsfeed.html");
/// The page of the HTTP API.
const DOCS: &str = include_str!("../../../web/dist/newsfeed-docs.html");

/// Stands around the policy in a page: the build names its own script and style there, by their hashes.
const POLICY: [&str; 2] = [r#"<meta http-equiv="Content-Security-Policy" content=""#, "\">"];

/// The routes of the pages, which are for GET alone.
pub(crate) fn routes() -> Router {
    let page = |html: &'static str| {
        let policy = policy(html);
        get(async move || answer(html, policy.clone()))
    };
    Router::new().route("/", page(FEED)).route("/docs", page(DOCS))
}

/// What a browser may do with a page: the page's own policy, and that nobody may frame it, which only a header can say.
fn policy(html: &str) -> HeaderValue {
    let own = html.split_once(POLICY[0]).and_then(|(_, rest)| rest.split_once(POLICY[1]));
    let policy = own.map(|(own, _)| format!("{own}; frame-ancestors 'none'"));
    // A page that does not say what it needs may do nothing.
    policy
        .and_then(|policy| HeaderValue::try_from(policy).ok())
        .unwrap_or(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"))
}

fn answer(html: &'static str, policy: HeaderValue) -> Response<Body> {
    let mut response = tidemark_service::typed(
        StatusCode::OK,
        "text/html; charset=utf-8",
        Bytes::from_static(html.as_bytes()),
    );
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_allow_the_pages_own_script_and_style_and_nothing_else() {
        for html in [FEED, DOCS] {
            let policy = policy(html);
            let mut directives: Vec<_> = policy.to_str().expect("a text").split("; ").collect();
            for hashed in ["script-src 'sha256-", "style-src 'sha256-"] {
                let at = directives.iter().position(|directive| directive.starts_with(hashed)).expect(hashed);
                let one = directives.remove(at).strip_prefix(hashed).expect(hashed);
                assert!(one.len() == 45 && one.ends_with("='"), "one hash: {one}");
            }
            let rest = [
                "default-src 'none'",
                "img-src data:",
                "connect-src 'self'",
                "base-uri 'none'",
                "form-action 'self'",
                "frame-ancestors 'none'",
            ];
            assert_eq!(directives, rest);
        }
    }

    #[test]
    fn a_page_without_a_policy_may_do_nothing() {
        assert_eq!(policy("<html>"), "default-src 'none'; frame-ancestors 'none'");
    }
}
