//! The tree that an expression is.

use std::sync::Arc;

use super::eval::Function;
use super::zipf::Table;
use crate::slot::{SlotIndex, Value};

/// One node of an expression.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    Missing,
    Bool(bool),
    Int(i64),
    Real(f64),
    Text(Box<[u8]>),
    Variable(SlotIndex),
    Not(Box<Node>),
    Negate(Box<Node>),
    Binary(Operator, Box<[Node; 2]>),
    /// `list[index]`; negative counts from the end.
    Item(Box<[Node; 2]>),
    Call(&'static Function, Box<[Node]>),
    /// Counts a shared counter up; the count before.
    Count(usize),
    /// A feeder's next row index, in turn over all sessions.
    NextRow(usize),
    /// One of a feeder's row indices, by chance.
    RandomRow(usize),
    /// A feeder's column in the row that the inner node gives.
    Cell {
        feeder: usize,
        column: usize,
        row: Box<Node>,
    },
    /// All numbers of these `keys` up to this one are inserted.
    Inserted(usize),
    /// A number of these `keys`, the newest most often.
    Latest {
        keys: usize,
        ranks: Arc<Table>,
    },
    /// By Zipf's distribution, whose n and exponent are constant.
    Zipf(Arc<Table>),
    /// The same ranks, spread over the numbers up to the inner node's.
    Scrambled {
        ranks: Arc<Table>,
        n: Box<Node>,
    },
    /// True for a share of all evaluations, evenly spread over all sessions by a shared counter.
    Rhythm {
        counter: usize,
        share_ppb: u64,
    },
    /// True with a chance.
    Chance {
        share_ppb: u64,
    },
    /// Exponentially distributed with this mean.
    Exponential {
        mean: f64,
    },
    /// Uniformly distributed, bounds included.
    Uniform {
        low: i64,
        high: i64,
    },
    /// The inner node's text with zeros in front up to this width.
    Pad {
        inner: Box<Node>,
        width: usize,
    },
}

/// What stands between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Node {
    /// Shows every variable that it names.
    pub(crate) fn each_variable(&self, show: &mut dyn FnMut(SlotIndex)) {
        match self {
            Node::Variable(slot) => show(*slot),
            Node::Not(inner)
            | Node::Negate(inner)
            | Node::Cell { row: inner, .. }
            | Node::Scrambled { n: inner, .. }
            | Node::Pad { inner, .. } => inner.each_variable(show),
            Node::Binary(_, parts) | Node::Item(parts) => {
                parts.iter().for_each(|part| part.each_variable(show));
            }
            Node::Call(_, parts) => parts.iter().for_each(|part| part.each_variable(show)),
            _ => {}
        }
    }

    /// Whether it has no value where these variables have none.
    fn is_missing_without(&self, is_missing: &dyn Fn(SlotIndex) -> bool) -> bool {
        let is_without = |node: &Node| node.is_missing_without(is_missing);
        match self {
            Node::Missing => true,
            Node::Variable(slot) => is_missing(*slot),
            Node::Negate(inner) | Node::Pad { inner, .. } => is_without(inner),
            Node::Binary(
                Operator::Add
                | Operator::Subtract
                | Operator::Multiply
                | Operator::Divide
                | Operator::Remainder,
                parts,
            )
            | Node::Item(parts) => parts.iter().any(is_without),
            // of what a function makes of a missing value nothing is known
            _ => false,
        }
    }

    /// Whether it cannot hold where these variables have no value. Missing equals only missing, and is in no order.
    pub(crate) fn never_holds_without(&self, is_missing: &dyn Fn(SlotIndex) -> bool) -> bool {
        let is_without = |node: &Node| node.is_missing_without(is_missing);
        let never = |node: &Node| node.never_holds_without(is_missing);
        match self {
            Node::Binary(Operator::And, parts) => parts.iter().any(never),
            Node::Binary(Operator::Or, parts) => parts.iter().all(never),
            Node::Binary(
                Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual,
                parts,
            ) => parts.iter().any(is_without),
            Node::Binary(Operator::Equal, parts) => match &**parts {
                [value, other] if is_without(other) => {
                    value.as_literal().is_some_and(|of| of != Value::Missing)
                }
                [value, other] if is_without(value) => {
                    other.as_literal().is_some_and(|of| of != Value::Missing)
                }
                _ => false,
            },
            _ => is_without(self),
        }
    }

    /// Fewest bytes of its text, as far as constants say it.
    pub(crate) fn least_bytes(&self) -> usize {
        match self {
            Node::Text(text) => text.len(),
            Node::Pad { width, .. } => *width,
            Node::Call(function, parts) => match (function.name, &**parts) {
                ("concat", parts) => {
                    parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.least_bytes()))
                }
                ("random_text", [Node::Int(length)]) => usize::try_from(*length).unwrap_or(0),
                _ => 0,
            },
            _ => 0,
        }
    }

    /// Whether it may have another value each time, though no variable is changed.
    pub(crate) fn varies(&self) -> bool {
        match self {
            Node::Missing
            | Node::Bool(_)
            | Node::Int(_)
            | Node::Real(_)
            | Node::Text(_)
            | Node::Variable(_) => false,
            Node::Not(inner)
            | Node::Negate(inner)
            | Node::Cell { row: inner, .. }
            | Node::Pad { inner, .. } => inner.varies(),
            Node::Binary(_, parts) | Node::Item(parts) => parts.iter().any(Node::varies),
            Node::Call(function, parts) => !function.pure || parts.iter().any(Node::varies),
            Node::Count(_)
            | Node::NextRow(_)
            | Node::RandomRow(_)
            | Node::Inserted(_)
            | Node::Latest { .. }
            | Node::Zipf(_)
            | Node::Scrambled { .. }
            | Node::Rhythm { .. }
            | Node::Chance { .. }
            | Node::Exponential { .. }
            | Node::Uniform { .. } => true,
        }
    }

    /// A whole number, where nothing but random numbers is looked at for it.
    pub(super) fn drawn(&self, random: &mut fastrand::Rng) -> Option<i64> {
        match self {
            Node::Uniform { low, high } => Some(random.i64(*low..=*high)),
            Node::Zipf(table) => Some(table.pick(|| random.u64(..))),
            _ => None,
        }
    }

    /// The value, where it is the same every time.
    pub(crate) fn as_literal(&self) -> Option<Value<'_>> {
        Some(match self {
            Node::Missing => Value::Missing,
            Node::Bool(value) => Value::Bool(*value),
            Node::Int(value) => Value::Int(*value),
            Node::Real(value) => Value::Real(*value),
            Node::Text(value) => Value::Text(value),
            _ => return None,
        })
    }

    /// A literal with this value; lists have none.
    pub(crate) fn literal(value: Value<'_>) -> Option<Node> {
        Some(match value {
            Value::Missing => Node::Missing,
            Value::Bool(value) => Node::Bool(value),
            Value::Int(value) => Node::Int(value),
            Value::Real(value) => Node::Real(value),
            Value::Text(value) => Node::Text(value.into()),
            Value::List(_) => return None,
        })
    }

    pub(crate) fn binary(operator: Operator, left: Node, right: Node) -> Node {
        Node::Binary(operator, Box::new([left, right]))
    }
}
