//! Setting variables.

use super::{Step, StepKind};
use crate::compile::Session;
use crate::grammar::Keys;
use crate::grammar::Scalar::Value;
use crate::grammar::Shape::{Map, Scalar};
use crate::grammar::record::record;

record! {
    /// Sets variables of the session.
    static SET("set", "a set step") ["set": Map(Keys::Variable, &Scalar(Value)) => "Values by variable, in order."] {
    }
}

pub(super) static KIND: StepKind = StepKind {
    record: || &SET,
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
