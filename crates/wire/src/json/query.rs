//! Paths that say more than names and indices: descendants, slices, lists, filters.

use std::fmt;

use serde_json::Value;
use serde_json_path::{JsonPath, PathElement};

use super::{JsonError, PathError, Segment, check, walk};

/// A query of RFC 9535, by a tree of the text. What it finds is then looked up in the text itself, so that matches are raw
/// tokens as those of all paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    text: String,
    path: JsonPath,
}

/// Whether a text that is no path is meant as such a query.
pub(super) fn is_meant(text: &str) -> bool {
    text.contains("..") || text.contains(['?', ':', ','])
}

impl Query {
    pub fn parse(text: &str) -> Result<Query, PathError> {
        let path = JsonPath::parse(text).map_err(|error| PathError {
            offset: error.position().min(text.len()),
            reason: "it is no JSONPath as RFC 9535 has it from there on: `..name`, `[1:3]`, `['a', 'b']`, `[?@.price < 10]`",
        })?;
        Ok(Query { text: text.to_owned(), path })
    }

    /// Shows matches in the order of the query to `visit`, as long as that wants more.
    pub fn each<'a>(&self, json: &'a [u8], visit: &mut dyn FnMut(&'a [u8]) -> bool) -> Result<(), JsonError> {
        check(json)?;
        let text = json.strip_prefix(b"\xef\xbb\xbf").unwrap_or(json);
        // what is JSON to `check` may still be none to the tree: text that is no UTF-8, a number without end
        let tree: Value = serde_json::from_slice(text).map_err(|_| JsonError {
            offset: 0,
            reason: "text that is not UTF-8, or a number that is too large",
        })?;
        for found in self.path.query_located(&tree).iter() {
            let segments: Vec<Segment> = found.location().iter().map(segment).collect();
            let mut goes_on = true;
            // of a name that stands twice in an object the tree has the last
            let mut last = None;
            walk::walk(json, &segments, |token| {
                last = Some(token);
                true
            })?;
            if let Some(token) = last {
                goes_on = visit(token);
            }
            if !goes_on {
                break;
            }
        }
        Ok(())
    }
}

fn segment(element: &PathElement<'_>) -> Segment {
    match element {
        PathElement::Name(name) => Segment::Member((*name).to_owned()),
        PathElement::Index(index) => Segment::Index(i64::try_from(*index).unwrap_or(i64::MAX)),
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
