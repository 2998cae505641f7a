//! Steps whose time is told together.

use super::{STEPS, Step};
use crate::compile::Session;
use crate::grammar::Scalar::Text;
use crate::grammar::Shape::Scalar;
use crate::plan::{GROUPS_DEEP, Op};
use crate::yaml::Node;

step! {
    /// Does its steps, and tells the time of all of them together.
    KIND("group", "a group step") [
        "group": Scalar(Text) => "Name in the report; groups of the same name are counted together."
    ] {
        "steps" (required): STEPS => "What is done.",
    }
    example: "
- group: Buy
  steps:
    - POST: /cart
    - POST: /orders
"
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    if session.transaction.is_some() {
        let message = "a transaction cannot contain a group; put the transaction into the group";
        return session.reader.sink.error(step.node, message);
    }
    let name = session.reader.text(step.value).unwrap_or_default();
    if name.is_empty() {
        session.reader.sink.error(step.value, "a group needs a name, which the report shows");
    }
    if !session.begin_group(step.node, name) {
        return;
    }
    let first = session.ops.len();
    session.inner(step.get("steps"), true);
    if !session.ops[first..].iter().any(|op| matches!(op, Op::Request(_))) {
        session.reader.sink.error(step.node, "a group without a request has no time to tell");
    }
    session.end_group();
}

impl Session<'_, '_> {
    /// What follows is of a group, too; false where that cannot be, which is told.
    pub(super) fn begin_group(&mut self, node: &Node, name: String) -> bool {
        if self.groups_open == GROUPS_DEEP {
            let message = format!("a group within {GROUPS_DEEP} others is too deep; leave one of them out");
            self.reader.sink.error(node, message);
            return false;
        }
        let Some(group) = self.requests.group(name) else {
            self.reader.sink.error(node, "this scenario has too many groups");
            return false;
        };
        self.groups_open += 1;
        self.ops.push(Op::BeginGroup(group));
        true
    }

    /// The group that began last is over.
    pub(super) fn end_group(&mut self) {
        self.ops.push(Op::EndGroup);
        self.groups_open -= 1;
    }
}
