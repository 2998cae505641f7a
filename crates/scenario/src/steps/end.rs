//! Ending the session.

use super::Step;
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::Scalar;
use crate::plan::Op;

step! {
    /// Ends the session here.
    KIND("end", "an end step") ["end": Scalar(Word(&["session"])) => "What ends."] {}
    example: "
- GET: /cart
  extract: {items: $.count}
- when: ${items == 0}
  steps:
    - end: session
- POST: /orders
"
}

fn compile(session: &mut Session<'_, '_>, _: &Step<'_>) {
    session.to_end.push(session.ops.len());
    session.ops.push(Op::Jump(0));
    session.reachable = false;
}
