//! Setting variables.

use super::Step;
use crate::compile::Session;
use crate::grammar::Keys;
use crate::grammar::Scalar::Value;
use crate::grammar::Shape::{Map, Scalar};

step! {
    /// Sets variables of the session.
    KIND("set", "a set step") ["set": Map(Keys::Variable, &Scalar(Value)) => "Values by variable, in order."] {}
    example: "
- set: {customer: 'c${random(1, 9)}'}
- GET: /customers/${customer}
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    for (name, value) in step.value.entries() {
        let value = session.value(value);
        if let Some((slot, value)) = name.text().and_then(|name| session.scope.slot(name)).zip(value) {
            session.assign(slot, value);
        }
    }
}
