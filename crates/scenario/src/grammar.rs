//! Shapes: what the language is described with, and the check of a file against that description.
//!
//! The description itself is in [`crate::language`]. The JSON Schema is made from the same shapes, so editors and
//! the checker cannot disagree.

use crate::diagnostic::{did_you_mean, nearest};
use crate::reader::Reader;
use crate::sink::Sink;
use crate::yaml::{Content, Node};

/// What may stand at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// One plain value.
    Scalar(Scalar),
    /// A mapping with keys that the language knows.
    Record(&'static Record),
    /// A mapping that is told apart by the one key that is a verb.
    Step(&'static [Record]),
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
    /// A variable, setting, feeder or session: letters, digits and `_`.
    Name(&'static str),
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
    /// `NAME in LIST`.
    Each,
    /// `p99 < 50ms`.
    Objective,
    /// A name.
    Name,
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
    fn all_keys(&self) -> impl Iterator<Item = &'static Key> {
        self.verbs.iter().chain(self.keys)
    }
}

impl Shape {
    fn accepts(&self, node: &Node) -> bool {
        match self {
            Shape::Scalar(_) => node.text().is_some(),
            Shape::List(..) => matches!(node.content, Content::List(_)),
            Shape::Record(_) | Shape::Step(_) | Shape::Map(..) => matches!(node.content, Content::Map(_)),
            Shape::Either(shapes) => shapes.iter().any(|shape| shape.accepts(node)),
            Shape::Tree => true,
        }
    }

    fn wanted(&self) -> String {
        match self {
            Shape::Scalar(scalar) => scalar.wanted(),
            Shape::Record(record) => format!("a mapping: {}", record.what),
            Shape::Step(_) => "a step".into(),
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
            Keys::JsonPath => "JSON paths",
        }
    }
}

impl Scalar {
    pub(crate) fn wanted(self) -> String {
        match self {
            Scalar::Text | Scalar::Template => "a text".into(),
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
            Scalar::Name => "a name".into(),
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
        Shape::Step(records) => check_step(node, records, reader),
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

fn quoted(name: &Node) -> String {
    format!("\"{}\"", name.text().unwrap_or_default())
}

fn check_record(node: &Node, record: &Record, reader: &Reader<'_>) {
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

/// The kind of a step and its verb's entry.
pub(crate) fn step_kind<'n>(
    node: &'n Node,
    records: &'static [Record],
) -> Option<(&'static Record, &'n (Node, Node))> {
    node.entries().iter().find_map(|entry| {
        let name = entry.0.text()?;
        let record = records.iter().find(|record| record.verbs.iter().any(|verb| verb.name == name))?;
        Some((record, entry))
    })
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
    if let Shape::Step(records) = shape {
        mend_verb(node, records, sink);
    }
    match (shape, &mut node.content) {
        (Shape::List(of, _), Content::List(items)) => {
            items.iter_mut().for_each(|item| mend_verbs(item, of, sink));
        }
        (Shape::Map(_, value), Content::Map(entries)) => {
            entries.iter_mut().for_each(|(_, inner)| mend_verbs(inner, value, sink));
        }
        (Shape::Record(_) | Shape::Step(_), Content::Map(entries)) => {
            let records: &[Record] = match shape {
                Shape::Record(record) => std::slice::from_ref(record),
                Shape::Step(records) => records,
                _ => &[],
            };
            let kind = |name: &str| records.iter().find(|r| r.verbs.iter().any(|verb| verb.name == name));
            let kind = entries.iter().find_map(|(key, _)| kind(key.text()?));
            for (name, inner) in entries {
                let key = kind.into_iter().chain(records).flat_map(Record::all_keys);
                let key = key.into_iter().find(|key| Some(key.name) == name.text());
                key.into_iter().for_each(|key| mend_verbs(inner, &key.shape, sink));
            }
        }
        _ => {}
    }
}

fn mend_verb(step: &mut Node, records: &'static [Record], sink: &Sink<'_>) {
    if step_kind(step, records).is_some() {
        return;
    }
    let Some((key, name)) = unknown_verb(step, records) else { return };
    let Some(verb) = nearest(name, verbs(records)) else { return };
    sink.error(key, format!("unknown step \"{name}\"; did you mean {verb}?"));
    let (place, verb) = (key.place, verb.to_owned());
    let Content::Map(entries) = &mut step.content else { return };
    if let Some((key, _)) = entries.iter_mut().find(|(key, _)| key.place == place) {
        key.content = Content::Scalar { text: verb, plain: true };
    }
}

fn verbs(records: &'static [Record]) -> impl Iterator<Item = &'static str> {
    records.iter().flat_map(|record| record.verbs).map(|verb| verb.name)
}

/// What stands where a step's verb should. The verb is by custom the first key; one that is a key of some step is
/// hardly a misspelt verb.
fn unknown_verb<'n>(step: &'n Node, records: &'static [Record]) -> Option<(&'n Node, &'n str)> {
    let is_key = |name: &str| records.iter().any(|r| r.keys.iter().any(|key| key.name == name));
    let mut names = step.entries().iter().filter_map(|(key, _)| Some((key, key.text()?)));
    names.find(|(_, name)| !is_key(name))
}

/// A step of which nobody knows what it does: its other keys are looked at nevertheless.
fn check_unknown_step(node: &Node, records: &'static [Record], reader: &Reader<'_>) {
    let all = verbs(records).collect::<Vec<_>>().join(", ");
    let unknown = unknown_verb(node, records);
    match unknown {
        Some((key, name)) => {
            reader.sink.error(key, format!("unknown step \"{name}\"; a step is one of {all}"));
        }
        None => {
            reader.sink.error(node, format!("this step does not say what it does; it needs one of {all}"));
        }
    }
    let keys = || records.iter().flat_map(|record| record.keys);
    for (name, inner) in node.entries() {
        let Some(text) = name.text().filter(|_| unknown.is_none_or(|(key, _)| key.place != name.place))
        else {
            continue;
        };
        match keys().find(|key| key.name == text) {
            Some(key) => check(inner, &key.shape, &quoted(name), reader),
            None => {
                let hint = did_you_mean(text, keys().map(|key| key.name));
                reader.sink.error(name, format!("unknown key \"{text}\"{hint}"));
            }
        }
    }
}

fn check_step(node: &Node, records: &'static [Record], reader: &Reader<'_>) {
    let Some((record, (verb, _))) = step_kind(node, records) else {
        return check_unknown_step(node, records, reader);
    };
    let verbs = || verbs(records);
    let other = node.entries().iter().find(|(key, _)| {
        key.place != verb.place && key.text().is_some_and(|name| verbs().any(|verb| verb == name))
    });
    if let Some((second, _)) = other {
        let (first, second_name) = (quoted(verb), quoted(second));
        let message = format!(
            "a step does one thing; {second_name} beside {first} must be a step of its own, begun with \"- \""
        );
        reader.sink.error(second, message);
    }
    check_record(node, record, reader);
}
