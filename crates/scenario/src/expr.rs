//! Expressions: what stands between `${` and `}`.
//!
//! An expression is parsed once, when a scenario is compiled, into a small tree; evaluating it allocates nothing
//! once the buffers it writes into are warm. Values have six types (see [`Value`]); numbers in text
//! count as numbers wherever a number is wanted, because JSON and headers arrive as text.

mod date;
mod eval;
pub(crate) mod function;
mod node;
pub(crate) mod parse;

use crate::context::{Context, Shared};
use crate::slot::{Slot, Value};
use crate::template::Encoding;

use eval::Machine;
pub(crate) use eval::{PPB, write_real};
pub(crate) use node::{Node, Operator};

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Expr {
    node: Node,
}

impl Expr {
    pub(crate) fn new(node: Node) -> Self {
        Expr { node }
    }

    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    /// A whole number as an expression.
    pub fn int(value: i64) -> Self {
        Expr { node: Node::Int(value) }
    }

    /// A text as an expression.
    pub fn text(value: &str) -> Self {
        Expr { node: Node::Text(value.as_bytes().into()) }
    }

    /// A session's variable as an expression.
    pub fn variable(slot: crate::plan::SlotIndex) -> Self {
        Expr { node: Node::Variable(slot) }
    }

    /// Parses an expression that names no variables: settings of a test, a bound, a constant.
    ///
    /// # Errors
    /// The first mistake, with the byte at which it stands.
    pub fn parse_constant(text: &str) -> Result<Self, ExprError> {
        parse::parse(text, &mut parse::NoNames)
            .map(Expr::new)
            .map_err(|mistakes| mistakes.into_iter().next().unwrap_or_default())
    }

    /// The value, where it is the same every time.
    pub fn as_constant(&self) -> Option<Value<'_>> {
        self.node.as_literal()
    }

    /// Evaluates into `out`, whose buffers are used again.
    pub fn eval_into(&self, cx: &mut Context<'_>, out: &mut Slot) {
        Machine::with(cx, |machine| {
            let got = machine.eval(&self.node);
            machine.store(got, out);
        });
    }

    /// Evaluates as a condition: missing, false, 0 and empty text or list are false, and so are the texts `false`
    /// and `0`, because that is how JSON's arrive.
    pub fn is_true(&self, cx: &mut Context<'_>) -> bool {
        Machine::with(cx, |machine| {
            let got = machine.eval(&self.node);
            machine.is_true(&got)
        })
    }

    /// Evaluates as a duration in microseconds (think time); what is no number, or negative, is 0.
    pub fn duration_us(&self, cx: &mut Context<'_>) -> u64 {
        Machine::with(cx, |machine| {
            let got = machine.eval(&self.node);
            machine.number(&got).map_or(0, |number| number.as_f64().max(0.0) as u64)
        })
    }

    /// Writes the value as text: nothing for a missing one, items joined by commas for a list.
    pub fn write(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) {
        self.write_encoded(cx, Encoding::Raw, out);
    }

    /// Writes the value so that it cannot break out of its place.
    pub(crate) fn write_encoded(&self, cx: &mut Context<'_>, encoding: Encoding, out: &mut Vec<u8>) {
        if let Node::Variable(slot) = &self.node {
            let value = cx.slots.get(usize::from(*slot)).map_or(Value::Missing, Slot::value);
            return encoding.write_value(value, out);
        }
        Machine::with(cx, |machine| {
            let got = machine.eval(&self.node);
            encoding.write_value(machine.value(&got), out);
        });
    }
}

/// The value of a node that looks at nothing outside itself, as a literal.
fn constant_value(node: &Node) -> Option<Node> {
    let mut random = fastrand::Rng::with_seed(0);
    let shared = Shared::default();
    let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
    Machine::with(&mut cx, |machine| {
        let got = machine.eval(node);
        Node::literal(machine.value(&got))
    })
}

/// A mistake in an expression.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("{reason}, at character {offset} of the expression")]
pub struct ExprError {
    /// Byte at which it stands, counted from the expression's begin.
    pub offset: usize,
    /// How many bytes it is long, at least 1.
    pub length: usize,
    /// What is wrong, and what to do.
    pub reason: String,
}

#[cfg(test)]
mod tests;
