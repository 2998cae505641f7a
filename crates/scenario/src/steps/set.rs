//! Setting variables.

use super::{Step, StepKind};
use crate::compile::Session;
use crate::grammar::Scalar::Value;
use crate::grammar::Shape::{Map, Scalar};
use crate::grammar::{Keys, Record, Rule, key};

pub(super) static KIND: StepKind = StepKind {
    record: Record {
        what: "a set step",
        schema: "set",
        about: "Sets variables of the session.",
        verbs: &[key("set", Map(Keys::Variable, &Scalar(Value)), "Values by variable, in order.")],
        keys: &[],
        rule: Rule::Free,
    },
    compile,
    beside: None,
    example: "
- set: {customer: 'c${random(1, 9)}'}
- GET: /customers/${customer}
",
};

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    for (name, value) in step.value.entries() {
        let value = session.value(value);
        if let Some((slot, value)) = name.text().and_then(|name| session.scope.slot(name)).zip(value) {
            session.assign(slot, value);
        }
    }
}
