//! How large a query may be, and its answer.
//!
//! A query is measured before anything else reads it: fragments that spread fragments make a short text a huge query.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};
use async_graphql::{Context, Error, SelectionField, ServerError};

/// Longest text of a query, in bytes.
pub(super) const QUERY_BYTES_MAX: usize = 32 * 1024;
/// Most fields of a query, those of a fragment wherever it is spread; an introspection has some 300.
pub(super) const FIELDS_MAX: usize = 1_000;
/// Most fields and fragments within each other; an introspection has 18.
pub(super) const DEPTH_MAX: usize = 24;
/// Most objects and lists in an answer.
pub(super) const OBJECTS_MAX: usize = 10_000;
/// Most bytes of an answer, about: texts count when they are read from a feed and where they stand in the answer.
pub(super) const BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a field takes in an answer beside its name and its text.
const FIELD_BYTES: usize = 32;

/// Reads a query that is within the bounds.
pub(super) fn parsed(query: &str) -> Result<ExecutableDocument, ServerError> {
    if query.len() > QUERY_BYTES_MAX {
        let error = format!("the query has {} bytes; at most {QUERY_BYTES_MAX} are taken", query.len());
        return Err(ServerError::new(error, None));
    }
    let document = parse_query(query)?;
    let mut measure = Measure { document: &document, fragments: HashMap::new() };
    let operations = document.operations.iter().map(|(_, operation)| &operation.node.selection_set.node);
    let fragments = document.fragments.values().map(|fragment| &fragment.node.selection_set.node);
    let mut fields = 0;
    for set in operations.chain(fragments) {
        let Some(size) = measure.of(set, DEPTH_MAX) else {
            let error = format!(
                "the query has more than {DEPTH_MAX} levels of fields and fragments within each other"
            );
            return Err(ServerError::new(error, None));
        };
        fields = size.fields.max(fields);
    }
    match fields > FIELDS_MAX {
        true => Err(ServerError::new(format!("the query has more than {FIELDS_MAX} fields"), None)),
        false => Ok(document),
    }
}

/// How large a selection is with its fragments.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    fields: usize,
    levels: usize,
}

struct Measure<'a> {
    document: &'a ExecutableDocument,
    /// Those that are measured, none for one that is being measured.
    fragments: HashMap<&'a str, Option<Size>>,
}

impl<'a> Measure<'a> {
    /// The size of a selection, none if it has more levels or a fragment is within itself.
    fn of(&mut self, set: &'a SelectionSet, levels_max: usize) -> Option<Size> {
        let mut size = Size::default();
        for item in &set.items {
            let below = match &item.node {
                Selection::Field(field) => {
                    size.fields = size.fields.saturating_add(1);
                    self.of(&field.node.selection_set.node, levels_max.checked_sub(1)?)?
                }
                Selection::InlineFragment(inline) => {
                    self.of(&inline.node.selection_set.node, levels_max.checked_sub(1)?)?
                }
                Selection::FragmentSpread(spread) => {
                    self.fragment(&spread.node.fragment_name.node, levels_max.checked_sub(1)?)?
                }
            };
            size.fields = size.fields.saturating_add(below.fields);
            size.levels = size.levels.max(below.levels + 1);
        }
        (size.levels <= levels_max).then_some(size)
    }

    fn fragment(&mut self, name: &str, levels_max: usize) -> Option<Size> {
        // one that is not there has a better error later
        let Some((name, fragment)) = self.document.fragments.get_key_value(name) else {
            return Some(Size::default());
        };
        let size = match self.fragments.get(name.as_str()) {
            Some(measured) => (*measured)?,
            None => {
                self.fragments.insert(name, None);
                let size = self.of(&fragment.node.selection_set.node, levels_max)?;
                self.fragments.insert(name, Some(size));
                size
            }
        };
        (size.levels <= levels_max).then_some(size)
    }
}

/// What the answer to one request has so far.
#[derive(Debug, Default)]
pub(super) struct Room {
    objects: AtomicUsize,
    bytes: AtomicUsize,
    exceeded: OnceLock<String>,
}

impl Room {
    /// Takes room for as many objects with the fields that are asked for.
    pub(super) fn objects(&self, context: &Context<'_>, count: usize) -> Result<(), Error> {
        // the list itself is one, or it would be free where nothing is in it
        let objects = self.objects.fetch_add(count.max(1), Ordering::Relaxed).saturating_add(count);
        if objects > OBJECTS_MAX {
            return self.exceeds(format!("{OBJECTS_MAX} objects"));
        }
        let field = context.field();
        let name = |field: SelectionField<'_>| field.alias().unwrap_or(field.name()).len();
        let each: usize = field.selection_set().map(|field| name(field) + FIELD_BYTES).sum();
        self.bytes(count.saturating_mul(each + FIELD_BYTES))
    }

    /// Takes room for a text.
    pub(super) fn bytes(&self, count: usize) -> Result<(), Error> {
        match self.bytes.fetch_add(count, Ordering::Relaxed).saturating_add(count) > BYTES_MAX {
            true => self.exceeds(format!("{} MiB", BYTES_MAX / (1024 * 1024))),
            false => Ok(()),
        }
    }

    fn exceeds(&self, bound: String) -> Result<(), Error> {
        let say =
            || format!("the answer has more than {bound}; ask for less: with limit, or in several requests");
        Err(Error::new(self.exceeded.get_or_init(say)))
    }

    /// The error in place of an answer that is too large.
    pub(super) fn exceeded(&self) -> Option<ServerError> {
        self.exceeded.get().map(|error| ServerError::new(error, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(query: &str) -> Option<String> {
        parsed(query).err().map(|error| error.message)
    }

    fn nested(levels: usize) -> String {
        format!("{}{}", "{a".repeat(levels), "}".repeat(levels))
    }

    #[test]
    fn depth_and_fields_are_bounded() {
        assert_eq!(refused(&nested(DEPTH_MAX)), None);
        assert!(refused(&nested(DEPTH_MAX + 1)).unwrap().contains("levels"));
        let wide = |fields: usize| format!("{{{}}}", "a ".repeat(fields));
        assert_eq!(refused(&wide(FIELDS_MAX)), None);
        assert!(refused(&wide(FIELDS_MAX + 1)).unwrap().contains("fields"));
        assert!(refused(&" ".repeat(QUERY_BYTES_MAX + 1)).unwrap().contains("bytes"));
    }

    #[test]
    fn fragments_count_wherever_they_are_spread() {
        let chain = |count: usize, spread: &str| {
            let one =
                |at: usize| format!("fragment f{at} on A {{{}}}", spread.replace('N', &(at + 1).to_string()));
            let all: String = (0..count).map(one).collect();
            format!("{{...f0}} {all} fragment f{count} on A {{a}}")
        };
        assert_eq!(refused(&chain(8, "...fN ...fN")), None, "256 fields");
        assert!(refused(&chain(20, "...fN ...fN")).unwrap().contains("fields"), "a million");
        assert!(refused(&chain(500, "...fN ...fN")).unwrap().contains("levels"));
        assert!(refused("{...f} fragment f on A {...g ...g} fragment g on A {...f ...f}").is_some());
        assert!(refused("{a} fragment f on A {...f}").is_some(), "one that nothing spreads, too");
        assert_eq!(refused("{...nowhere}"), None, "the schema says so");
    }

    #[test]
    fn what_nests_without_end_is_refused() {
        let list = |open: &str, close: &str| {
            let count = (QUERY_BYTES_MAX - 10) / (open.len() + close.len());
            format!("{}1{}", open.repeat(count), close.repeat(count))
        };
        for query in [nested(10_000), "{a".repeat(16_000), "{...".repeat(8_000)] {
            assert!(refused(&query).is_some());
        }
        for value in [list("[", "]"), list("{a:", "}"), "[".repeat(32_000), "{a:".repeat(10_000)] {
            // read or refused: the process goes on
            let _ = refused(&format!("{{a(x:{value})}}"));
            let _ = refused(&format!("query q($x: A = {value}) {{a}}"));
            let _ = refused(&format!("query q($x: {value}) {{a}}"));
        }
    }
}
