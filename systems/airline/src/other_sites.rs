//! Requests that a page of another site makes a browser send, in the name of whoever is logged in here.
//!
//! A browser says where a request comes from: in `Sec-Fetch-Site`, or at least in `Origin` (it leaves the former out where
//! the airline is reached without TLS by another name than `localhost`). Other clients send neither, and are let through.

use axum::http::{HeaderMap, HeaderName, header};

use crate::refusal::Refusal;

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses what a page of another site sends: 403.
pub(crate) fn refuse(headers: &HeaderMap) -> Result<(), Refusal> {
    let is_ours = match (headers.get(SITE), headers.get(header::ORIGIN)) {
        // A proxy may change `Host`, but not this.
        (Some(site), _) => site == "same-origin" || site == "none",
        (None, Some(origin)) => {
            let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
            let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            host.zip(origin).is_some_and(|(host, (_, from))| host.eq_ignore_ascii_case(from))
        }
        (None, None) => true,
    };
    if is_ours {
        return Ok(());
    }
    Err(Refusal::forbidden("a page of another site sent this; use the airline's own pages"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_refused(headers: &[(&'static str, &str)]) -> bool {
        let headers =
            headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
        refuse(&headers.collect()).is_err()
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        for site in ["cross-site", "same-site", "anything"] {
            assert!(is_refused(&[("sec-fetch-site", site)]), "{site}");
            assert!(is_refused(&[("sec-fetch-site", site), ("origin", "http://a"), ("host", "a")]), "{site}");
        }
        for origin in ["http://b", "http://a:81", "https://a.b", "null", "", "a"] {
            assert!(is_refused(&[("origin", origin), ("host", "a")]), "{origin}");
        }
        assert!(is_refused(&[("origin", "http://a")]));
    }

    #[test]
    fn own_pages_and_other_clients_are_not() {
        for own in ["same-origin", "none"] {
            assert!(!is_refused(&[("sec-fetch-site", own)]), "{own}");
        }
        assert!(!is_refused(&[("origin", "http://A:9080"), ("host", "a:9080")]));
        assert!(!is_refused(&[
            ("sec-fetch-site", "same-origin"),
            ("origin", "http://a"),
            ("host", "proxied")
        ]));
        assert!(!is_refused(&[("host", "a")]) && !is_refused(&[]));
    }
}
