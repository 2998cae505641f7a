//! Waiting as a person would.

use super::{Step, StepKind};
use crate::compile::Session;
use crate::expr::{Expr, Node as Tree};
use crate::grammar::Scalar::Duration;
use crate::grammar::Shape::{Either, List, Record as Of, Scalar};
use crate::grammar::{Record, Rule, Shape, key};
use crate::plan::Op;
use crate::source::{self, step::Reading};
use crate::yaml::Node;

pub(super) static KIND: StepKind = StepKind {
    record: Record {
        what: "a think step",
        schema: "think",
        about: "Pauses, as a user does between two requests.",
        verbs: &[key("think", TIME, "How long.")],
        keys: &[],
        rule: Rule::Free,
    },
    source: Some(Reading::of::<source::Think, source::Value>()),
    compile,
    beside: None,
    example: "
- GET: /lamps
- think: {between: [1s, 3s]}
- GET: /chairs
",
};

/// A think time: always the same, or one that varies.
pub(crate) const TIME: Shape = Either(&[Scalar(Duration), Of(&VARYING)]);

static VARYING: Record = Record {
    what: "a think time",
    schema: "thinkTime",
    about: "A think time that varies.",
    verbs: &[],
    keys: &[
        key("between", List(&Scalar(Duration), 2), "Two times: uniform between them."),
        key("exponential", Scalar(Duration), "The mean of an exponential distribution."),
    ],
    rule: Rule::OneOf(&["between", "exponential"]),
};

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    let (reader, node) = (session.reader, step.value);
    let micros = |node: &Node| reader.duration(node).map(|time| time.as_micros() as i64);
    let time = if node.text().is_some() {
        micros(node).map(Tree::Int)
    } else if let Some(mean) = node.get("exponential") {
        micros(mean).map(|mean| Tree::Exponential { mean: mean as f64 })
    } else {
        node.get("between").and_then(|bounds| match bounds.items() {
            [low, high] => micros(low).zip(micros(high)).map(|(low, high)| {
                if low > high {
                    reader.sink.error(bounds, "the first time is longer than the second");
                }
                Tree::Uniform { low: low.min(high), high }
            }),
            _ => {
                reader.sink.error(bounds, "between has two times: [1s, 3s]");
                None
            }
        })
    };
    session.ops.push(Op::Think(time.map_or_else(|| Expr::int(0), Expr::new)));
}
