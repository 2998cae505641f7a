//! Ending the session.

use super::{Step, StepKind};
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::Scalar;
use crate::grammar::{Record, Rule, key};
use crate::plan::Op;

pub(super) static KIND: StepKind = StepKind {
    record: Record {
        what: "an end step",
        schema: "end",
        about: "Ends the session here.",
        verbs: &[key("end", Scalar(Word(&["session"])), "What ends.")],
        keys: &[],
        rule: Rule::Free,
    },
    compile,
    beside: None,
    example: "
- GET: /cart
  extract: {items: $.count}
- when: ${items == 0}
  steps:
    - end: session
- POST: /orders
",
};

fn compile(session: &mut Session<'_, '_>, _: &Step<'_>) {
    session.to_end.push(session.ops.len());
    session.ops.push(Op::Jump(0));
    session.reachable = false;
}
