//! Steps of which one of several ways is gone.

use super::Step;
use crate::compile::Session;
use crate::grammar::Scalar::Word;
use crate::grammar::Shape::{List, Scalar};
use crate::grammar::kinds;
use crate::grammar::record::{Kind, record};
use crate::language::Steps;
use crate::plan::Op;

/// How the ways are chosen.
const ORDERS: [&str; 2] = ["random", "in turn"];

step! {
    /// Takes one of several branches, at random or in turn.
    KIND("choose", "a choose step") ["choose": List(&Way::SHAPE, 1) => "The ways."] {
        "order": Scalar(Word(&ORDERS)) =>
            "`random` (default), or `in turn`: one after the other, over all users; each as often in a round as its \
             weight says.",
    }
    example: "
- choose:
    - weight: 3
      steps: [{GET: /lamps}]
    - steps: [{GET: /chairs}]
- choose:
    - steps: [{GET: /a}]
    - steps: [{GET: /b}]
  order: in turn
"
}

record! {
    /// A branch of a choose step.
    struct Way("way", "a way") {
        weight: kinds::Whole<0> = "Its weight, against the sum of all; 1 by default.",
        steps (required): Steps = "What is done.",
    }
}

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let choice = session.ops.len();
    session.ops.push(Op::Choose { ways: Vec::new(), total: 0, counter: None });
    let (mut bounds, mut ends, mut total) = (Vec::new(), Vec::new(), 0u64);
    for way in step.value.items() {
        let Some(said) = Way::read(way, session.reader) else { continue };
        let weight = said.weight.value.unwrap_or(1);
        total = total.saturating_add(weight);
        if weight > 0 {
            bounds.push((u32::try_from(total).unwrap_or(u32::MAX), session.here()));
        }
        session.inner_as_decided(said.steps.value, weight > 0, said.weight.node().unwrap_or(way));
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
