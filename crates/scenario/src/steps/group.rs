//! Steps whose time is told together.

use super::{STEPS, Step, StepKind};
use crate::compile::Session;
use crate::grammar::Scalar::Text;
use crate::grammar::Shape::Scalar;
use crate::grammar::{Record, Rule, key, required};
use crate::plan::{GROUPS_DEEP, Op};

pub(super) static KIND: StepKind = StepKind {
    record: Record {
        what: "a group step",
        schema: "group",
        about: "Does its steps, and tells the time of all of them together.",
        verbs: &[key(
            "group",
            Scalar(Text),
            "Name in the report; groups of the same name are counted together.",
        )],
        keys: &[required("steps", STEPS, "What is done.")],
        rule: Rule::Free,
    },
    source: None,
    compile,
    beside: None,
    example: "
- group: Buy
  steps:
    - POST: /cart
    - POST: /orders
",
};

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    if session.groups_open == GROUPS_DEEP {
        let message = format!("a group within {GROUPS_DEEP} others is too deep; leave one of them out");
        return session.reader.sink.error(step.node, message);
    }
    let name = session.reader.text(step.value).unwrap_or_default();
    if name.is_empty() {
        session.reader.sink.error(step.value, "a group needs a name, which the report shows");
    }
    let Some(group) = session.requests.group(name) else {
        return session.reader.sink.error(step.node, "this scenario has too many groups");
    };
    session.groups_open += 1;
    session.ops.push(Op::BeginGroup(group));
    let first = session.ops.len();
    session.inner(step.node, "steps", true);
    if !session.ops[first..].iter().any(|op| matches!(op, Op::Request(_))) {
        session.reader.sink.error(step.node, "a group without a request has no time to tell");
    }
    session.ops.push(Op::EndGroup);
    session.groups_open -= 1;
}
