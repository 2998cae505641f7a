//! Ending the session.

use super::{Step, StepKind};
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::Scalar;
use crate::grammar::record::record;
use crate::plan::Op;

record! {
    /// Ends the session here.
    static END("end", "an end step") ["end": Scalar(Word(&["session"])) => "What ends."] {
    }
}

pub(super) static KIND: StepKind = StepKind {
    record: || &END,
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
