//! Expressions: what stands between `${` and `}`.
//!
//! An expression is parsed once, when a scenario is compiled, into a small tree; evaluating it allocates nothing
//! once the buffers it writes into are warm. Values have six types (see [`Value`]); numbers in text
//! count as numbers wherever a number is wanted, because JSON and headers arrive as text.

mod choose;
mod date;
mod digest;
mod error;
mod eval;
pub(crate) mod function;
mod node;
pub(crate) mod parse;
mod zipf;

use std::sync::Arc;

use crate::context::Context;
use crate::encoding::Encoding;
use crate::slot::{Slot, SlotIndex, Value};

pub(crate) use digest::base64_of;
pub use error::{ExprError, Unmet};
pub(crate) use eval::PPB;
use eval::{Absent, Machine, Number};
pub(crate) use node::{Node, Operator};
pub use zipf::Table as ZipfTable;

/// The number that a text spells, as expressions read it.
pub(crate) fn number_in(text: &[u8]) -> Option<f64> {
    Number::parse(text).map(Number::as_f64)
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expr {
    node: Node,
    /// As its author wrote it, where it was written.
    text: Arc<str>,
}

/// A number that is drawn, bounds included and none below 0, and the digits that it is written in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drawn {
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) width: usize,
}

impl Expr {
    pub(crate) fn new(node: Node) -> Self {
        Expr { node, text: "an expression".into() }
    }

    /// Of what its author wrote.
    pub(crate) fn written(node: Node, text: &str) -> Self {
        Expr { node, text: text.trim().into() }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// As its author wrote it.
    pub fn source(&self) -> &Arc<str> {
        &self.text
    }

    /// A whole number as an expression.
    pub fn int(value: i64) -> Self {
        Expr::new(Node::Int(value))
    }

    /// A text as an expression.
    pub fn text(value: &str) -> Self {
        Expr::new(Node::Text(value.as_bytes().into()))
    }

    /// A session's variable as an expression.
    pub fn variable(slot: SlotIndex) -> Self {
        Expr::new(Node::Variable(slot))
    }

    /// Parses an expression that names no variables: settings of a test, a bound, a constant.
    ///
    /// # Errors
    /// The first mistake, with the byte at which it stands.
    pub fn parse_constant(text: &str) -> Result<Self, ExprError> {
        parse::parse(text, &mut parse::NoNames)
            .map(|node| Expr::written(node, text))
            .map_err(|mistakes| mistakes.into_iter().next().unwrap_or_default())
    }

    /// The value, where it is the same every time.
    pub fn as_constant(&self) -> Option<Value<'_>> {
        self.node.as_literal()
    }

    /// The share of all evaluations in which it holds, 0 to 1, where it is true by chance or by a rhythm alone.
    pub fn chance(&self) -> Option<f64> {
        match &self.node {
            Node::Chance { share_ppb } | Node::Rhythm { share_ppb, .. } => {
                Some(*share_ppb as f64 / PPB as f64)
            }
            _ => None,
        }
    }

    /// The variable that it is, where it is one and nothing more, or that says how many rounds are done.
    pub fn as_variable(&self) -> Option<SlotIndex> {
        match &self.node {
            Node::Variable(slot) => Some(*slot),
            Node::Binary(Operator::Less, sides) => match &**sides {
                [Node::Variable(_), Node::Variable(slot)] => Some(*slot),
                _ => None,
            },
            _ => None,
        }
    }

    /// How often what it holds for is done, where it is the condition of so many rounds.
    pub fn rounds(&self) -> Option<i64> {
        match &self.node {
            Node::Binary(Operator::Less, sides) => match &**sides {
                [Node::Variable(_), Node::Int(times)] => Some(*times),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether it can hold only where one of these variables has a value: it is one, or compares or computes with one. Not where
    /// it asks whether one is missing.
    pub fn never_holds_without(&self, is_missing: &dyn Fn(SlotIndex) -> bool) -> bool {
        self.node.never_holds_without(is_missing)
    }

    /// The variables that it names, each once, in their order.
    pub fn variables(&self) -> Vec<SlotIndex> {
        let mut found = Vec::new();
        self.node.each_variable(&mut |slot| {
            if !found.contains(&slot) {
                found.push(slot);
            }
        });
        found
    }

    /// Evaluates into `out`, whose buffers are used again.
    pub fn eval_into(&self, cx: &mut Context<'_>, out: &mut Slot) {
        Machine::with(cx, |machine| {
            let got = machine.eval(&self.node);
            machine.store(got, out);
        });
    }

    /// The same where it matters whether the value can be computed. What is not set, or names nothing that is there, is missing.
    ///
    /// # Errors
    /// Why it cannot be computed: a division by zero, an overflow, a text longer than may be; `out` is missing.
    pub fn compute_into(&self, cx: &mut Context<'_>, out: &mut Slot) -> Result<(), &'static str> {
        Machine::with(cx, |machine| {
            let got = machine.eval(&self.node);
            let failure = match &got {
                Err(Absent::Failed(reason)) => Err(*reason),
                _ => Ok(()),
            };
            machine.store(got, out);
            failure
        })
    }

    /// Fewest bytes of the text that it makes, as far as its own texts and lengths say it.
    pub(crate) fn least_bytes(&self) -> usize {
        self.node.least_bytes()
    }

    /// Evaluates as a condition: missing, false, 0 and empty text or list are false, and so are the texts `false`
    /// and `0`, because that is how JSON's arrive.
    pub fn is_true(&self, cx: &mut Context<'_>) -> bool {
        Machine::with(cx, |machine| {
            let got = machine.eval(&self.node);
            machine.is_true(&got)
        })
    }

    /// The same where it matters whether it can be computed.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn holds(&self, cx: &mut Context<'_>) -> Result<bool, &'static str> {
        Machine::with(cx, |machine| match machine.eval(&self.node) {
            Err(Absent::Failed(reason)) => Err(reason),
            got => Ok(machine.is_true(&got)),
        })
    }

    /// Evaluates as a duration in microseconds (think time); what is no number, or negative, is 0.
    pub fn duration_us(&self, cx: &mut Context<'_>) -> u64 {
        Machine::with(cx, |machine| {
            let number = machine.eval(&self.node).ok().and_then(|got| machine.number(&got));
            number.map_or(0, |number| number.as_f64().max(0.0) as u64)
        })
    }

    /// Writes the value as text: items joined by commas for a list, nothing where the author says `missing`.
    ///
    /// # Errors
    /// If there is no value; then nothing is written.
    pub fn write(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), Unmet> {
        self.write_encoded(cx, Encoding::Raw, out)
    }

    /// Where it is a number that is drawn, padded to no fewer digits than it has: which.
    pub(crate) fn as_drawn(&self, encoding: Encoding) -> Option<Drawn> {
        let Node::Pad { inner, width } = &self.node else { return None };
        let Node::Uniform { low: low @ 0.., high } = **inner else { return None };
        let digits = high.checked_ilog10().map_or(1, |log| log as usize + 1);
        (encoding != Encoding::JsonValue && digits <= *width).then_some(Drawn { low, high, width: *width })
    }

    /// Writes the value so that it cannot break out of its place.
    pub(crate) fn write_encoded(
        &self,
        cx: &mut Context<'_>,
        encoding: Encoding,
        out: &mut Vec<u8>,
    ) -> Result<(), Unmet> {
        if let Node::Variable(slot) = &self.node {
            return match cx.slots.get(usize::from(*slot)).map_or(Value::Missing, Slot::value) {
                Value::Missing => Err(Unmet::Variable(*slot)),
                value => {
                    encoding.write_value(value, out);
                    Ok(())
                }
            };
        }
        if self.write_drawn(cx.random, encoding, out) {
            return Ok(());
        }
        Machine::with(cx, |machine| {
            match machine.eval(&self.node) {
                Ok(got) => encoding.write_value(machine.value(&got), out),
                Err(Absent::Said) => encoding.write_value(Value::Missing, out),
                Err(Absent::Unset(slot)) => return Err(Unmet::Variable(slot)),
                Err(Absent::Nothing(reason) | Absent::Failed(reason)) => {
                    return Err(Unmet::Expression { text: self.text.clone(), reason });
                }
            }
            Ok(())
        })
    }

    /// Writes what is but a number that is drawn, padded or not: digits, which every encoding leaves as they are. False, and
    /// nothing is drawn, where it is more.
    fn write_drawn(&self, random: &mut fastrand::Rng, encoding: Encoding, out: &mut Vec<u8>) -> bool {
        let (node, width) = match &self.node {
            // a text is quoted there
            Node::Pad { .. } if encoding == Encoding::JsonValue => return false,
            Node::Pad { inner, width } => (&**inner, *width),
            node => (node, 0),
        };
        let Some(number) = node.drawn(random) else { return false };
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(number).as_bytes();
        out.resize(out.len() + width.saturating_sub(digits.len()), b'0');
        out.extend_from_slice(digits);
        true
    }
}

#[cfg(test)]
mod choose_tests;
#[cfg(test)]
mod tests;
