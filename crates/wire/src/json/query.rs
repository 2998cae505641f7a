//! Paths that say more than names and indices: descendants, slices, lists, filters.

use std::collections::HashMap;
use std::fmt;

use serde_json::Value;
use serde_json_path::JsonPath;

use super::{JsonError, PathError, check, scan, text};

/// A query of RFC 9535, by a tree of the text. What it finds is then looked up in the text itself, so that matches are raw
/// tokens as those of all paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    text: String,
    path: JsonPath,
}

/// Longest query, bytes.
const LENGTH_MAX: usize = 1024;
/// How deep brackets may stand in each other: the parser calls itself for each.
const NESTED_MAX: usize = 16;

/// Where brackets are nested too deep, also those in quotes.
fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > NESTED_MAX
    })
}

/// Whether a text that is no path is meant as such a query.
pub(super) fn is_meant(text: &str) -> bool {
    text.contains("..") || text.contains(['?', ':', ','])
}

impl Query {
    pub fn parse(text: &str) -> Result<Query, PathError> {
        if text.len() > LENGTH_MAX {
            return Err(PathError {
                offset: LENGTH_MAX,
                reason: "a path has at most 64 segments and 1,024 bytes",
            });
        }
        if let Some(offset) = too_deep(text) {
            return Err(PathError { offset, reason: "more than 16 brackets are open" });
        }
        let path = JsonPath::parse(text).map_err(|error| PathError {
            offset: error.position().min(text.len()),
            reason: "invalid JSONPath (RFC 9535) from here on; valid are `..name`, `[1:3]`, `['a', 'b']`, `[?@.price < 10]`",
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
        let mut tokens = Tokens { json, of: HashMap::new(), name: Vec::new() };
        tokens.note(scan::blanks(json, 0), 0, &tree)?;
        for found in self.path.query(&tree).iter() {
            let token = tokens.of.get(&std::ptr::from_ref(*found)).copied();
            if token.is_some_and(|token| !visit(token)) {
                break;
            }
        }
        Ok(())
    }
}

/// Where each value of a tree stands in its text.
struct Tokens<'a> {
    json: &'a [u8],
    of: HashMap<*const Value, &'a [u8]>,
    /// A member's name without escapes.
    name: Vec<u8>,
}

impl Tokens<'_> {
    /// Notes the value at `at` and all in it, and returns where it ends. The tree has the last of several members of one
    /// name: what an earlier one leaves here is replaced. Calls itself once a level, at most [`super::MAX_DEPTH`] times.
    fn note(&mut self, start: usize, depth: usize, tree: &Value) -> Result<usize, JsonError> {
        let json = self.json;
        let is_object = match (json.get(start), tree) {
            (Some(b'{'), Value::Object(members)) if !members.is_empty() => true,
            (Some(b'['), Value::Array(elements)) if !elements.is_empty() => false,
            _ => return self.leaf(start, depth, tree),
        };
        let mut at = scan::blanks(json, start + 1);
        if json.get(at).is_some_and(|byte| b"}]".contains(byte)) {
            return self.leaf(start, depth, tree);
        }
        for index in 0.. {
            let child = if is_object {
                let (end, value) = scan::name(json, at)?;
                self.name.clear();
                text::write_text(&json[at..end], &mut self.name);
                at = value;
                std::str::from_utf8(&self.name).ok().and_then(|name| tree.get(name))
            } else {
                tree.get(index)
            };
            at = match child {
                Some(child) => self.note(at, depth + 1, child)?,
                None => scan::value(json, at, depth + 1)?,
            };
            at = scan::blanks(json, at);
            match json.get(at) {
                Some(b',') => at = scan::blanks(json, at + 1),
                _ => break,
            }
        }
        scan::expect(json, at, if is_object { b'}' } else { b']' }, scan::after_value(is_object))?;
        self.of.insert(tree, &json[start..=at]);
        Ok(at + 1)
    }

    fn leaf(&mut self, start: usize, depth: usize, tree: &Value) -> Result<usize, JsonError> {
        let end = scan::value(self.json, start, depth)?;
        self.of.insert(tree, &self.json[start..end]);
        Ok(end)
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
