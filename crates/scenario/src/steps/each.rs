//! Steps that are done for each item of a list.

use super::{STEPS, Step};
use crate::compile::{Session, split_each};
use crate::expr::parse::is_name;
use crate::expr::{Expr, Node as Tree, function};
use crate::grammar::Scalar::{Each, Number};
use crate::grammar::Shape::Scalar;
use crate::pieces;

step! {
    /// Does its steps for each item of a list.
    KIND("each", "an each step") [
        "each": Scalar(Each) => "`NAME in LIST`: the variable that gets the item, and the list."
    ] {
        "limit": Scalar(Number) => "How many at most, from the first.",
        "steps" (required): STEPS => "What is done.",
    }
    example: "
- GET: /orders
  extract: {orders: {all: '$[*].id'}}
- each: order in ${orders}
  steps:
    - GET: /orders/${order}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let header = step.value;
    let Some((name, offset, list_text)) = header.text().and_then(split_each) else {
        if header.text().is_some() {
            session.reader.sink.error(header, "write it like: each: id in ${bookings}");
        }
        return;
    };
    if !is_name(name) {
        session.reader.sink.error(header, format!("\"{name}\" cannot be a variable's name"));
        return;
    }
    let (inner_offset, list_text) = pieces::only_hole(list_text).unwrap_or((0, list_text));
    let list = session.parsed(header, offset + inner_offset, list_text);
    let (Some(list), Some(item)) = (list, session.scope.slot(name)) else { return };
    let list = match list.node() {
        Tree::Variable(slot) => *slot,
        _ => {
            let slot = session.scope.hidden("list");
            session.assign(slot, list);
            slot
        }
    };
    let length = call("len", vec![Tree::Variable(list)]);
    let times = match step.get("limit") {
        Some(limit) => call("min", vec![length, session.number(limit).node().clone()]),
        None => length,
    };
    let index = session.scope.hidden("index");
    let value = Tree::Item(Box::new([Tree::Variable(list), Tree::Variable(index)]));
    session.counted(index, Expr::new(times), |session| {
        session.assign(item, Expr::new(value));
        session.inner(step.get("steps"), true);
    });
}

fn call(name: &str, arguments: Vec<Tree>) -> Tree {
    function::find(name)
        .map_or(Tree::Missing, |function| function::fold(function, arguments.into_boxed_slice()))
}
