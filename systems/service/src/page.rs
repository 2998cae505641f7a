//! A web page of a system: one file that is built into the program.

use std::convert::Infallible;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use axum::routing::{MethodRouter, get};
use bytes::Bytes;
use xxhash_rust::xxh3::xxh3_128;

use crate::answer::typed;

/// Stands around the policy in a page: the build names its own script and style there, by their hashes.
const POLICY: [&str; 2] = [r#"<meta http-equiv="Content-Security-Policy" content=""#, "\">"];

/// A route that gives the page to GET and nothing to other methods.
///
/// The page's own policy goes along as a header. A browser asks each time whether the page is still the same, and gets 304
/// where it is.
pub fn page<S: Clone + Send + Sync + 'static>(html: &'static str) -> MethodRouter<S, Infallible> {
    let policy = policy(html);
    let tag = format!("\"{:032x}\"", xxh3_128(html.as_bytes()));
    // Hexadecimal digits in quotes are always a header's value.
    let tag = HeaderValue::try_from(tag).unwrap_or(HeaderValue::from_static("\"\""));
    get(async move |headers: HeaderMap| answer(html, policy, tag, &headers))
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

/// Whether a browser has the page with this tag.
fn has(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    let sent = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    sent.flat_map(|tags| tags.split(','))
        .map(|sent| sent.trim().trim_start_matches("W/"))
        .any(|sent| sent == "*" || sent.as_bytes() == tag.as_bytes())
}

fn answer(html: &'static str, policy: HeaderValue, tag: HeaderValue, sent: &HeaderMap) -> Response<Body> {
    let mut response = if has(sent, &tag) {
        let mut same = Response::new(Body::empty());
        *same.status_mut() = StatusCode::NOT_MODIFIED;
        same
    } else {
        typed(StatusCode::OK, "text/html; charset=utf-8", Bytes::from_static(html.as_bytes()))
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, tag);
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
    fn a_page_without_a_policy_may_do_nothing() {
        assert_eq!(policy("<html>"), "default-src 'none'; frame-ancestors 'none'");
    }

    #[test]
    fn the_policy_of_a_page_is_its_own_and_no_frame() {
        let html = r#"<meta http-equiv="Content-Security-Policy" content="default-src 'self'"><p>"#;
        assert_eq!(policy(html), "default-src 'self'; frame-ancestors 'none'");
    }

    #[test]
    fn who_has_the_page_is_not_sent_it_again() {
        let tag = HeaderValue::from_static("\"a1\"");
        let status = |sent: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.extend(sent.map(|sent| (header::IF_NONE_MATCH, HeaderValue::from_static(sent))));
            answer("<p>", policy("<p>"), tag.clone(), &headers).status().as_u16()
        };
        for sent in ["\"a1\"", "W/\"a1\"", "\"b\", \"a1\"", "*"] {
            assert_eq!(status(Some(sent)), 304, "{sent}");
        }
        for sent in [None, Some("\"a2\""), Some("a1"), Some("")] {
            assert_eq!(status(sent), 200, "{sent:?}");
        }
    }
}
