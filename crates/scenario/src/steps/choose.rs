//! Steps of which one of several ways is gone.

use super::{STEPS, Step, StepKind};
use crate::compile::Session;
use crate::grammar::Scalar::{Whole, Word};
use crate::grammar::Shape::{List, Record as Of, Scalar};
use crate::grammar::{Record, Rule, key, required};
use crate::plan::Op;

/// How the ways are chosen.
const ORDERS: [&str; 2] = ["random", "in turn"];

pub(super) static KIND: StepKind = StepKind {
    record: Record {
        what: "a choose step",
        schema: "choose",
        about: "Takes one of several branches, at random or in turn.",
        verbs: &[key("choose", List(&Of(|| &WAY), 1), "The ways.")],
        keys: &[key(
            "order",
            Scalar(Word(&ORDERS)),
            "`random` (default), or `in turn`: one after the other, over all users; each as often in a round as its weight says.",
        )],
        rule: Rule::Free,
    },
    compile,
    beside: None,
    example: "
- choose:
    - weight: 3
      steps: [{GET: /lamps}]
    - steps: [{GET: /chairs}]
- choose:
    - steps: [{GET: /a}]
    - steps: [{GET: /b}]
  order: in turn
",
};

static WAY: Record = Record {
    what: "a way",
    schema: "way",
    about: "A branch of a choose step.",
    verbs: &[],
    keys: &[
        key("weight", Scalar(Whole(0)), "Its weight, against the sum of all; 1 by default."),
        required("steps", STEPS, "What is done."),
    ],
    rule: Rule::Free,
};

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let choice = session.ops.len();
    session.ops.push(Op::Choose { ways: Vec::new(), total: 0, counter: None });
    let (mut bounds, mut ends, mut total) = (Vec::new(), Vec::new(), 0u64);
    for way in step.value.items() {
        let weight = way.get("weight").and_then(|node| session.reader.whole(node, 0)).unwrap_or(1);
        total = total.saturating_add(weight);
        if weight > 0 {
            bounds.push((u32::try_from(total).unwrap_or(u32::MAX), session.here()));
        }
        session.inner_as_decided(way, "steps", weight > 0, way.get("weight").unwrap_or(way));
        ends.push(session.ops.len());
        session.ops.push(Op::Jump(0));
    }
    ends.into_iter().for_each(|end| session.land(end));
    let Some(total) = u32::try_from(total).ok().filter(|total| *total > 0) else {
        let message = "the sum of the weights must be above 0 and below 4 billion";
        return session.reader.sink.error(step.value, message);
    };
    let in_turn = step.get("order").and_then(|order| session.reader.word(order, &ORDERS)) == Some("in turn");
    let counter = in_turn.then(|| session.shared.hidden_counter());
    session.ops[choice] = Op::Choose { ways: bounds, total, counter };
}
