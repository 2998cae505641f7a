//! Steps that are done if a condition holds.

use super::{STEPS, Step};
use crate::compile::Session;
use crate::expr::Expr;
use crate::grammar::Scalar::Condition;
use crate::grammar::Shape::Scalar;
use crate::plan::Op;
use crate::slot::Value;

step! {
    /// Does its steps if a condition holds.
    KIND("when", "a when step") [
        "when": Scalar(Condition) => "The condition; missing, false, 0 and empty do not hold."
    ] {
        "steps" (required): STEPS => "What is done if it holds.",
        "else": STEPS => "What is done if it does not.",
    }
    example: "
- GET: /cart
  extract: {items: $.count}
- when: ${items > 0}
  steps:
    - POST: /orders
  else:
    - GET: /offers
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let condition = session.expression(step.value).unwrap_or_else(|| Expr::int(1));
    let always = condition.as_constant().map(is_true);
    let over = session.unless(condition);
    session.inner_as_decided(step.get("steps"), always != Some(false), step.value);
    if step.get("else").is_some() {
        let end = session.ops.len();
        session.ops.push(Op::Jump(0));
        session.land(over);
        session.inner_as_decided(step.get("else"), always != Some(true), step.value);
        session.land(end);
    } else {
        session.land(over);
    }
}

fn is_true(value: Value<'_>) -> bool {
    !matches!(value, Value::Missing | Value::Bool(false) | Value::Int(0) | Value::Text(b"" | b"false" | b"0"))
}
