//! Numbers that a scenario measures itself: a step, and a key of each step that waits for an answer.

use super::{Step, StepKind};
use crate::compile::Session;
use crate::grammar::Scalar::{Text, Value};
use crate::grammar::Shape::{Either, Map, Record as Of, Scalar};
use crate::grammar::{Key, Keys, Record, Rule, Shape, key};
use crate::plan::{MetricKind, Op};
use crate::yaml::Node;

/// Numbers by metric.
const METRICS: Shape = Map(Keys::Name("own metrics"), &NUMBER);

static NUMBER: Shape = Either(&[Scalar(Value), Of(|| &METRIC)]);

static METRIC: Record = Record {
    what: "a metric",
    schema: "metric",
    about: "What is measured, and what becomes of it. Short: the number of a histogram.",
    verbs: &[],
    keys: &[
        key("histogram", Scalar(Value), "A number whose distribution is told: mean, percentiles, largest."),
        key("counter", Scalar(Value), "A number that is added to the others."),
        key("unit", Scalar(Text), "What it is in, for the report."),
    ],
    rule: Rule::OneOf(&["histogram", "counter"]),
};

pub(super) const MEASURE: Key =
    key("measure", METRICS, "Numbers that are measured where the request ended well, by metric.");

pub(super) static KIND: StepKind = StepKind {
    record: Record {
        what: "a measure step",
        schema: "measure",
        about: "Measures numbers: metrics of the scenario's own.",
        verbs: &[key("measure", METRICS, "Numbers by metric.")],
        keys: &[],
        rule: Rule::Free,
    },
    compile,
    beside: None,
    example: "
- GET: /cart
  extract: {n: {count: '$.lines[*]'}, total: $.total}
  measure: {cart_items: '${n}'}
- measure: {spent: {counter: '${total}', unit: EUR}}
",
};

fn compile(session: &mut Session<'_, '_>, step: &Step<'_>) {
    session.measure(step.value, false);
}

impl Session<'_, '_> {
    /// Measures what is named; `if_good`: only where the request before ended well.
    pub(crate) fn measure(&mut self, metrics: &Node, if_good: bool) {
        if metrics.entries().is_empty() {
            self.reader.sink.error(metrics, "nothing is measured here; write it like {cart_items: \"${n}\"}");
        }
        for (name, node) in metrics.entries() {
            let counted = node.get("counter");
            let written = counted.or_else(|| node.get("histogram")).unwrap_or(node);
            let kind = if counted.is_some() { MetricKind::Counter } else { MetricKind::Histogram };
            let unit = node.get("unit").and_then(|unit| self.reader.text(unit)).unwrap_or_default();
            let metric = self.requests.metric(name.text().unwrap_or_default(), kind, &unit);
            let value = self.value(written);
            let metric = match metric {
                Ok(metric) => metric,
                Err(message) => {
                    self.reader.sink.error(name, message);
                    continue;
                }
            };
            let Some(value) = value else { continue };
            if let Some(constant) = value.as_constant()
                && constant.number().is_none()
            {
                let message = "this is not a number; write a number, or an expression like \"${n}\"";
                self.reader.sink.error(written, message);
            }
            let text = written.text().unwrap_or_default().trim().to_owned();
            self.ops.push(Op::Measure { metric, value, text, if_good });
        }
    }
}
