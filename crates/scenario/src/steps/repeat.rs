//! Steps that are done several times.

use super::{STEPS, Step};
use crate::compile::Session;
use crate::grammar::Scalar::{Number, Variable};
use crate::grammar::Shape::Scalar;
use crate::slot::Value;

step! {
    /// Does its steps several times.
    KIND("repeat", "a repeat step") ["repeat": Scalar(Number) => "How often."] {
        "as": Scalar(Variable) => "Variable that counts the rounds, from 0.",
        "steps" (required): STEPS => "What is done.",
    }
    example: "
- repeat: 5
  as: page
  steps:
    - GET: /pages/${page}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let times = session.number(step.value);
    let round = match step.get("as").and_then(|name| session.scope.slot(name.text()?)) {
        Some(slot) => slot,
        None => session.scope.hidden("round"),
    };
    let possible = !matches!(times.as_constant(), Some(Value::Int(times)) if times <= 0);
    session.counted_or_refused(round, times, |session| session.inner(step.get("steps"), possible));
}
