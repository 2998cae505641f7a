//! What the versions of HTTP have in common.

use tidemark_scenario::plan::HttpRequest;
use tidemark_scenario::template::Part;
use tidemark_scenario::{Template, Unmet};

/// Most headers of an answer.
pub(crate) const HEADERS: usize = 128;
/// Methods whose requests say that they have no body.
pub(crate) const BODY_METHODS: [&str; 3] = ["POST", "PUT", "PATCH"];

/// Whether a request has a header of this name.
pub(crate) fn has_header(request: &HttpRequest, name: &str) -> bool {
    request.headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
}

/// Whether a request without a body says so.
pub(crate) fn says_no_body(request: &HttpRequest) -> bool {
    request.body.is_none() && request.upload.is_empty() && BODY_METHODS.contains(&request.method.as_str())
}

/// That a text with holes is not what it is to be.
pub(crate) fn unmet(template: &Template, reason: &'static str) -> Unmet {
    let hole = template.parts.iter().find_map(|part| match part {
        Part::Hole(expr, _) => Some(expr.source().clone()),
        Part::Literal(_) => None,
    });
    Unmet::Expression { text: hole.unwrap_or_default(), reason }
}
