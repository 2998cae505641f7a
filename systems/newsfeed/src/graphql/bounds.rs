//! How large a query may be.
//!
//! A query is measured before anything else reads it: fragments that spread fragments make a short text a huge query, and
//! who checks it makes an error for each thing that is wrong, of each operation.

use std::collections::{HashMap, HashSet};

use async_graphql::parser::parse_query;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, Field, OperationDefinition, OperationType, Selection,
    SelectionSet,
};
use async_graphql::{Name, Positioned, ServerError};

use super::introspection;
use super::room::{BYTES_MAX, FIELD_BYTES};

/// Longest text of a query, in bytes.
pub(super) const QUERY_BYTES_MAX: usize = 32 * 1024;
/// Most fields and fragments of a query, those of a fragment wherever it is spread; an introspection has some 300.
pub(super) const FIELDS_MAX: usize = 1_000;
/// Most fields and fragments within each other; an introspection has 18.
pub(super) const DEPTH_MAX: usize = 24;
/// Most variables of a query.
const VARIABLES_MAX: usize = 100;
/// Most arguments of a field: more than any field has.
const ARGUMENTS_MAX: usize = 4;
/// Longest name and type of a variable, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// A query that is within the bounds, with the one operation that is asked for.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) document: ExecutableDocument,
    /// Most bytes of what it asks about the schema.
    pub(super) introspected_bytes: usize,
}

fn refuse<T>(error: impl Into<String>) -> Result<T, ServerError> {
    Err(ServerError::new(error, None))
}

/// Reads a query.
pub(super) fn parsed(query: &str, operation: Option<&str>) -> Result<Parsed, ServerError> {
    if query.len() > QUERY_BYTES_MAX {
        return refuse(format!("the query has {} bytes; at most {QUERY_BYTES_MAX} are taken", query.len()));
    }
    let mut document = parse_query(query)?;
    let others = only(&mut document.operations, operation)?;
    let mut measure = Measure { document: &document, fragments: HashMap::new() };
    let mut size = Size::default();
    for (_, asked) in document.operations.iter() {
        check_variables(&asked.node)?;
        size = measure.of(&asked.node.selection_set.node, DEPTH_MAX)?;
        if asked.node.ty == OperationType::Mutation {
            check_keys(&document, &asked.node.selection_set.node, &mut HashSet::new())?;
        }
    }
    // of others, what only they spread goes with them
    let used: HashSet<Name> = measure.fragments.keys().map(Name::new).collect();
    if others {
        document.fragments.retain(|name, _| used.contains(name));
    } else {
        for fragment in document.fragments.values() {
            let unused = measure.of(&fragment.node.selection_set.node, DEPTH_MAX)?;
            size.fields = size.fields.max(unused.fields);
        }
    }
    if size.fields > FIELDS_MAX {
        return refuse(format!("the query has more than {FIELDS_MAX} fields and fragments"));
    }
    if size.introspected_bytes > BYTES_MAX {
        return refuse("the query asks for too much of the schema; ask for less, or in several requests");
    }
    Ok(Parsed { document, introspected_bytes: size.introspected_bytes })
}

/// Leaves the operation that is asked for; whether there were others.
fn only(operations: &mut DocumentOperations, name: Option<&str>) -> Result<bool, ServerError> {
    let DocumentOperations::Multiple(all) = operations else { return Ok(false) };
    let others = all.len() > 1;
    match name {
        Some(name) if !all.contains_key(name) => {
            return refuse(format!("operationName: the query has no operation {name:.50}"));
        }
        Some(name) => all.retain(|of, _| of == name),
        None if others => return refuse("the query has several operations; operationName says which"),
        None => (),
    }
    Ok(others)
}

fn check_variables(operation: &OperationDefinition) -> Result<(), ServerError> {
    let variables = &operation.variable_definitions;
    if variables.len() > VARIABLES_MAX {
        return refuse(format!(
            "the query has {} variables; at most {VARIABLES_MAX} are taken",
            variables.len()
        ));
    }
    for variable in variables {
        check_name(&variable.node.name.node)?;
        check_name(&variable.node.var_type.node.to_string())?;
    }
    Ok(())
}

fn check_name(name: &str) -> Result<(), ServerError> {
    match name.len() <= NAME_BYTES_MAX {
        true => Ok(()),
        false => refuse(format!(
            "the query has a name of {} bytes, {name:.20}…; at most {NAME_BYTES_MAX} are taken",
            name.len()
        )),
    }
}

fn check_field(field: &Field) -> Result<(), ServerError> {
    if field.arguments.len() > ARGUMENTS_MAX {
        let error =
            format!("a field has {} arguments; at most {ARGUMENTS_MAX} are taken", field.arguments.len());
        return refuse(error);
    }
    check_name(&field.name.node)?;
    check_name(&field.response_key().node)?;
    field.arguments.iter().try_for_each(|(name, _)| check_name(&name.node))
}

/// Refuses a mutation that would be carried out twice and answered once. Called on what is measured.
fn check_keys<'a>(
    document: &'a ExecutableDocument,
    root: &'a SelectionSet,
    keys: &mut HashSet<&'a str>,
) -> Result<(), ServerError> {
    for Positioned { node, pos } in &root.items {
        match node {
            Selection::Field(field) => {
                let key = &field.node.response_key().node;
                if !keys.insert(key) {
                    let error = format!(
                        "the mutation has {key} twice, which would be done twice and answered once; give each \
                         another name, as in a: {}",
                        field.node.name.node
                    );
                    return Err(ServerError::new(error, Some(*pos)));
                }
            }
            Selection::InlineFragment(inline) => {
                check_keys(document, &inline.node.selection_set.node, keys)?;
            }
            Selection::FragmentSpread(spread) => {
                if let Some(fragment) = document.fragments.get(&spread.node.fragment_name.node) {
                    check_keys(document, &fragment.node.selection_set.node, keys)?;
                }
            }
        }
    }
    Ok(())
}

/// How large a selection is with its fragments.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    fields: usize,
    levels: usize,
    /// Most bytes of its answer, where it asks about the schema.
    bytes: usize,
    /// The same for those parts of it that do.
    introspected_bytes: usize,
}

struct Measure<'a> {
    document: &'a ExecutableDocument,
    /// Those that are measured, none for one that is being measured.
    fragments: HashMap<&'a str, Option<Size>>,
}

impl<'a> Measure<'a> {
    /// The size of a selection; an error if it has more levels or a fragment is within itself.
    fn of(&mut self, set: &'a SelectionSet, levels_max: usize) -> Result<Size, ServerError> {
        let Some(levels_max) = levels_max.checked_sub(usize::from(!set.items.is_empty())) else {
            return too_deep();
        };
        let mut size = Size::default();
        for item in &set.items {
            let mut below = match &item.node {
                Selection::Field(field) => {
                    check_field(&field.node)?;
                    self.of(&field.node.selection_set.node, levels_max)?
                }
                Selection::InlineFragment(inline) => self.of(&inline.node.selection_set.node, levels_max)?,
                Selection::FragmentSpread(spread) => {
                    self.fragment(&spread.node.fragment_name.node, levels_max)?
                }
            };
            if let Selection::Field(field) = &item.node {
                let name = field.node.name.node.as_str();
                if introspection::ROOTS.contains(&name) {
                    below.introspected_bytes = below.introspected_bytes.saturating_add(below.bytes);
                }
                let (most, text_bytes) = introspection::most(name);
                let each = below.bytes.saturating_add(FIELD_BYTES);
                let own = field.node.response_key().node.len() + FIELD_BYTES + text_bytes;
                below.bytes = each.saturating_mul(most).saturating_add(own);
            }
            size.fields = size.fields.saturating_add(below.fields).saturating_add(1);
            size.levels = size.levels.max(below.levels + 1);
            size.bytes = size.bytes.saturating_add(below.bytes);
            size.introspected_bytes = size.introspected_bytes.saturating_add(below.introspected_bytes);
        }
        Ok(size)
    }

    fn fragment(&mut self, name: &str, levels_max: usize) -> Result<Size, ServerError> {
        // one that is not there has a better error later
        let Some((name, fragment)) = self.document.fragments.get_key_value(name) else {
            return Ok(Size::default());
        };
        let size = match self.fragments.get(name.as_str()) {
            Some(measured) => measured.map_or_else(too_deep, Ok)?,
            None => {
                self.fragments.insert(name, None);
                let size = self.of(&fragment.node.selection_set.node, levels_max)?;
                self.fragments.insert(name, Some(size));
                size
            }
        };
        if size.levels > levels_max { too_deep() } else { Ok(size) }
    }
}

fn too_deep<T>() -> Result<T, ServerError> {
    refuse(format!("the query has more than {DEPTH_MAX} levels of fields and fragments within each other"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(query: &str) -> Option<String> {
        parsed(query, None).err().map(|error| error.message)
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

    #[test]
    fn what_makes_an_error_for_each_is_bounded() {
        let of =
            |query: &str, name| parsed(query, name).map(|parsed| parsed.document.operations.iter().count());
        let ops: String = (0..500).map(|at| format!("query q{at} {{...f}} ")).collect();
        let ops = format!("{ops} query z {{...g}} fragment f on Query {{a}} fragment g on Query {{a}}");
        let one = parsed(&ops, Some("z")).unwrap();
        assert_eq!((one.document.operations.iter().count(), one.document.fragments.len()), (1, 1));
        assert!(of(&ops, None).unwrap_err().message.contains("operationName"));
        assert!(of(&ops, Some("y")).unwrap_err().message.contains("no operation y"));
        assert_eq!(of("query a {b}", None).unwrap(), 1);

        let arguments = |count: usize| format!("{{a({})}}", "b: 1 ".repeat(count));
        assert_eq!(refused(&arguments(ARGUMENTS_MAX)), None);
        assert!(refused(&arguments(ARGUMENTS_MAX + 1)).unwrap().contains("arguments"));
        let variables = |count: usize| format!("query q({}) {{a}}", "$a: Int ".repeat(count));
        assert_eq!(refused(&variables(VARIABLES_MAX)), None);
        assert!(refused(&variables(VARIABLES_MAX + 1)).unwrap().contains("variables"));
        let (fits, long) = ("a".repeat(NAME_BYTES_MAX), "a".repeat(NAME_BYTES_MAX + 1));
        for query in ["{N}", "{a(N: 1)}", "{N: a}", "query q($N: Int) {a}", "query q($a: N) {a}"] {
            assert_eq!(refused(&query.replace('N', &fits)), None);
            assert!(refused(&query.replace('N', &long)).unwrap().contains("name"), "{query}");
        }
    }

    #[test]
    fn a_mutation_has_no_key_twice() {
        for query in ["{a a}", "{a ...{a}}", "{a: b b: a a: b}", "{...f ...f} fragment f on Mutation {a}"] {
            assert!(refused(&format!("mutation {query}")).unwrap().contains("twice"), "{query}");
            assert_eq!(refused(query), None, "nothing is done twice");
        }
        assert_eq!(refused("mutation {a {b b} c: a {b}}"), None);
    }

    #[test]
    fn an_introspection_is_bounded() {
        let nested = |levels: usize, field: &str| {
            let open = "fields{type{ofType{".repeat(levels);
            format!("{{__schema{{types{{{open}{field}{}}}}}}}", "}}}".repeat(levels))
        };
        assert_eq!(refused(&nested(2, "name")), None);
        assert!(refused(&nested(5, "name")).unwrap().contains("schema"));
        assert!(refused(&nested(2, &"description ".repeat(20))).unwrap().contains("schema"));
        assert_eq!(refused("{a{fields{types{fields{types{fields{name}}}}}}}"), None, "no introspection");
    }

    #[test]
    fn fragments_of_nothing_count() {
        let chain: String =
            (0..20).map(|at| format!("fragment f{at} on A {{...f{n} ...f{n}}}", n = at + 1)).collect();
        assert!(refused(&format!("{{...f0}} {chain}")).unwrap().contains("fields"));
    }
}
