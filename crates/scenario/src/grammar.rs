//! Shapes: what the language is described with; [`check`] holds a file against that description.
//!
//! The description itself is in [`crate::language`], written with [`record!`](record::record). The JSON Schema is made from
//! the same shapes, and so is what the compiler reads, so that editors, the checker and the compiler cannot disagree.

pub(crate) mod check;
pub(crate) mod kinds;
pub(crate) mod record;

use crate::yaml::{Content, Node};

/// What may stand at a place.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Shape {
    /// One plain value.
    Scalar(Scalar),
    /// A mapping with keys that the language knows.
    Record(fn() -> &'static Record),
    /// A mapping that is told apart by the one key that is a verb: one of the [kinds of steps](crate::steps::kinds).
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
    /// JavaScript, in which nothing is a hole; variables are known by `vars.NAME`.
    Code,
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
    /// `10s`, or `25%` of what is measured.
    Moment,
    /// `0.0416`.
    Decimal,
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
    /// Keys; these variables are set here.
    Keys(&'static [&'static str]),
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

    /// What is expected, for messages.
    fn wanted(&self) -> String {
        match self {
            Shape::Scalar(scalar) => scalar.wanted(),
            Shape::Record(record) => format!("a mapping: {}", record().what),
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
            Scalar::Text | Scalar::Template | Scalar::Feeder | Scalar::Keys(_) => "a text".into(),
            Scalar::Value => "a value".into(),
            Scalar::Code => "JavaScript".into(),
            Scalar::Condition => "an expression".into(),
            Scalar::Number => "a whole number or an expression".into(),
            Scalar::Whole(_) => "a whole number".into(),
            Scalar::Bool => "true or false".into(),
            Scalar::Share => "a share like 25%".into(),
            Scalar::Duration => "a time like 10s".into(),
            Scalar::Moment => "a time like 10s, or a share like 25%".into(),
            Scalar::Decimal => "a number like 0.0416".into(),
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
