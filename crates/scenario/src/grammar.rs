//! Shapes: what the language is described with, and the check of a file against that description.
//!
//! The description itself is in [`crate::language`]. The JSON Schema is made from the same shapes, so editors and
//! the checker cannot disagree.

use crate::diagnostic::did_you_mean;
use crate::reader::Reader;
use crate::sink::Sink;
use crate::steps;
use crate::steps::check::{check_step, mend_verb};
use crate::yaml::{Content, Node};

/// What may stand at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// One plain value.
    Scalar(Scalar),
    /// A mapping with keys that the language knows.
    Record(&'static Record),
    /// A mapping that is told apart by the one key that is a verb: one of the [kinds of steps](steps::kinds).
    Step,
    /// A mapping from names that the author chooses.
    Map(Keys, &'static Shape),
    /// A list with at least so many items.
    List(&'static Shape, usize),
    /// One of several, told apart by being a plain value, a list or a mapping.
    Either(&'static [Shape]),
    /// Anything that JSON can express.
    Tree,
}

/// What the keys of a free mapping are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    /// A setting, feeder or column: letters, digits and `_`.
    Name(&'static str),
    /// Variables, which are set here.
    Variable,
    /// Any text.
    Text(&'static str),
    /// A path into JSON.
    JsonPath,
}

/// A kind of plain value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scalar {
    /// A text known before the run.
    Text,
    /// A text with holes.
    Template,
    /// A value: an expression keeps its type.
    Value,
    /// An expression, with or without `${ }` around it.
    Condition,
    /// A whole number or an expression that gives one.
    Number,
    /// A whole number known before the run, at least this.
    Whole(u64),
    /// `true` or `false`.
    Bool,
    /// `25%`.
    Share,
    /// `10s`.
    Duration,
    /// `64KiB`.
    Size,
    /// `1MiB/s`.
    Bandwidth,
    /// A number of users, or `10 to 100`.
    Users,
    /// A rate, or `10/s to 100/s`.
    Rate,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A path into JSON.
    JsonPath,
    /// A regular expression.
    Regex,
    /// A status, `2xx`, or a range.
    Status,
    /// `NAME in LIST`; the variable is set here.
    Each,
    /// `p99 < 50ms`.
    Objective,
    /// A variable, which is set here.
    Variable,
    /// A feeder, whose columns become variables here.
    Feeder,
}

/// A mapping with keys that the language knows.
#[derive(Debug)]
pub(crate) struct Record {
    /// What it is, for messages: "a request".
    pub(crate) what: &'static str,
    /// Its name in the schema.
    pub(crate) schema: &'static str,
    /// One sentence about it.
    pub(crate) about: &'static str,
    /// Keys of which a step has exactly one, which tells its kind; empty for other records.
    pub(crate) verbs: &'static [Key],
    pub(crate) keys: &'static [Key],
    pub(crate) rule: Rule,
}

/// What must hold of a record's keys together.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    Free,
    /// Exactly one of these.
    OneOf(&'static [&'static str]),
    /// At most one of these.
    AtMostOneOf(&'static [&'static str]),
}

/// A key of a record.
#[derive(Debug)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) shape: Shape,
    pub(crate) required: bool,
}

/// An optional key.
pub(crate) const fn key(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, about, shape, required: false }
}

/// A key that must be there.
pub(crate) const fn required(name: &'static str, shape: Shape, about: &'static str) -> Key {
    Key { name, about, shape, required: true }
}

impl Record {
    pub(crate) fn all_keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.verbs.iter().chain(self.keys)
    }
}

impl Shape {
    pub(crate) fn accepts(&self, node: &Node) -> bool {
        match self {
            Shape::Scalar(_) => node.text().is_some(),
            Shape::List(..) => matches!(node.content, Content::List(_)),
            Shape::Record(_) | Shape::Step | Shape::Map(..) => matches!(node.content, Content::Map(_)),
            Shape::Either(shapes) => shapes.iter().any(|shape| shape.accepts(node)),
            Shape::Tree => true,
        }
    }

    fn wanted(&self) -> String {
        match self {
            Shape::Scalar(scalar) => scalar.wanted(),
            Shape::Record(record) => format!("a mapping: {}", record.what),
            Shape::Step => "a step".into(),
            Shape::Map(keys, _) => format!("a mapping from {} to values", keys.what()),
            Shape::List(..) => "a list".into(),
            Shape::Either(shapes) => shapes.iter().map(Shape::wanted).collect::<Vec<_>>().join(" or "),
            Shape::Tree => "a value".into(),
        }
    }
}

impl Keys {
    pub(crate) fn what(self) -> &'static str {
        match self {
            Keys::Name(what) | Keys::Text(what) => what,
            Keys::Variable => "variables",
            Keys::JsonPath => "JSON paths",
        }
    }
}

impl Scalar {
    pub(crate) fn wanted(self) -> String {
        match self {
            Scalar::Text | Scalar::Template | Scalar::Feeder => "a text".into(),
            Scalar::Value => "a value".into(),
            Scalar::Condition => "an expression".into(),
            Scalar::Number => "a whole number or an expression".into(),
            Scalar::Whole(_) => "a whole number".into(),
            Scalar::Bool => "true or false".into(),
            Scalar::Share => "a share like 25%".into(),
            Scalar::Duration => "a time like 10s".into(),
            Scalar::Size => "a size like 64KiB".into(),
            Scalar::Bandwidth => "a bandwidth like 1MiB/s".into(),
            Scalar::Users => "a number of users".into(),
            Scalar::Rate => "a rate like 20k/s".into(),
            Scalar::Word(words) => format!("one of {}", words.join(", ")),
            Scalar::JsonPath => "a JSON path like $.items[0].id".into(),
            Scalar::Regex => "a regular expression".into(),
            Scalar::Status => "a status like 200, 2xx or 200-299".into(),
            Scalar::Each => "NAME in LIST".into(),
            Scalar::Objective => "an objective like p99 < 50ms".into(),
            Scalar::Variable => "a name".into(),
        }
    }
}

/// Checks a node against a shape; `what` says what stands there.
pub(crate) fn check(node: &Node, shape: &Shape, what: &str, reader: &Reader<'_>) {
    if !shape.accepts(node)
        || (node.is_null() && !matches!(shape, Shape::Scalar(Scalar::Value) | Shape::Tree))
    {
        reader.sink.error(node, format!("{what} is {}; expected {}", node.kind(), shape.wanted()));
        return;
    }
    match shape {
        Shape::Scalar(scalar) => reader.check(node, *scalar),
        Shape::Record(record) => check_record(node, record, reader),
        Shape::Step => check_step(node, reader),
        Shape::Map(keys, value) => {
            for (name, inner) in node.entries() {
                reader.check_key(name, *keys);
                check(inner, value, &quoted(name), reader);
            }
        }
        Shape::List(of, at_least) => {
            if node.items().len() < *at_least {
                let message = match node.items().len() {
                    0 => format!("{what} is an empty list; expected at least {at_least}"),
                    few => format!("{what} has only {few}; expected at least {at_least}"),
                };
                reader.sink.error(node, message);
            }
            for item in node.items() {
                check(item, of, "this item", reader);
            }
        }
        Shape::Either(shapes) => {
            if let Some(shape) = shapes.iter().find(|shape| shape.accepts(node)) {
                check(node, shape, what, reader);
            }
        }
        Shape::Tree => {}
    }
}

pub(crate) fn quoted(name: &Node) -> String {
    format!("\"{}\"", name.text().unwrap_or_default())
}

pub(crate) fn check_record(node: &Node, record: &Record, reader: &Reader<'_>) {
    let known = || record.all_keys();
    for (name, inner) in node.entries() {
        let Some(text) = name.text() else { continue };
        match known().find(|key| key.name == text) {
            Some(key) => check(inner, &key.shape, &quoted(name), reader),
            None => {
                let mut hint = did_you_mean(text, known().map(|key| key.name));
                if hint.is_empty() {
                    let names: Vec<_> = record.keys.iter().map(|key| key.name).collect();
                    let names = if names.is_empty() { "no other keys".to_owned() } else { names.join(", ") };
                    hint = format!("; {} has {names}", record.what);
                }
                reader.sink.error(name, format!("unknown key \"{text}\"{hint}"));
            }
        }
    }
    for key in record.keys.iter().filter(|key| key.required && node.get(key.name).is_none()) {
        reader.sink.error(node, format!("{} needs the key \"{}\": {}", record.what, key.name, key.about));
    }
    check_rule(node, record, reader);
}

fn check_rule(node: &Node, record: &Record, reader: &Reader<'_>) {
    let (Rule::OneOf(names) | Rule::AtMostOneOf(names)) = record.rule else { return };
    let mut given =
        node.entries().iter().filter(|(key, _)| key.text().is_some_and(|key| names.contains(&key)));
    let first = given.next();
    if let Some((second, _)) = given.next() {
        let first = first.and_then(|(key, _)| key.text()).unwrap_or_default();
        let second_name = second.text().unwrap_or_default();
        let message = format!("{} has either \"{first}\" or \"{second_name}\", not both", record.what);
        reader.sink.error(second, message);
    }
    if first.is_none() && matches!(record.rule, Rule::OneOf(_)) {
        reader.sink.error(node, format!("{} needs one of the keys {}", record.what, names.join(", ")));
    }
}

/// Tells of every step whose verb is misspelt, and puts the verb that was meant in its place, so that whatever else
/// is wrong with the step is found as well.
pub(crate) fn mend_verbs(node: &mut Node, shape: &Shape, sink: &Sink<'_>) {
    if !shape.accepts(node) {
        return;
    }
    if let Shape::Either(shapes) = shape {
        let shape = shapes.iter().find(|shape| shape.accepts(node));
        return shape.into_iter().for_each(|shape| mend_verbs(node, shape, sink));
    }
    if let Shape::Step = shape {
        mend_verb(node, sink);
    }
    let keys: Vec<_> = match shape {
        Shape::Record(record) => record.all_keys().collect(),
        Shape::Step => steps::keys(node).collect(),
        _ => Vec::new(),
    };
    match (shape, &mut node.content) {
        (Shape::List(of, _), Content::List(items)) => {
            items.iter_mut().for_each(|item| mend_verbs(item, of, sink));
        }
        (Shape::Map(_, value), Content::Map(entries)) => {
            entries.iter_mut().for_each(|(_, inner)| mend_verbs(inner, value, sink));
        }
        (_, Content::Map(entries)) => {
            for (name, inner) in entries {
                let key = keys.iter().find(|key| Some(key.name) == name.text());
                key.into_iter().for_each(|key| mend_verbs(inner, &key.shape, sink));
            }
        }
        _ => {}
    }
}
