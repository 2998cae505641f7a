//! Numbers that a scenario measures itself: a step, and a key of each step that waits for an answer.

use super::Step;
use crate::compile::Session;
use crate::grammar::Scalar::Value;
use crate::grammar::Shape::{Either, Map, Scalar};
use crate::grammar::kinds;
use crate::grammar::record::{Kind, record};
use crate::grammar::{Key, Keys, Rule, Shape, key};
use crate::plan::{MetricKind, Op};
use crate::yaml::Node;

/// Numbers by metric.
const METRICS: Shape = Map(Keys::Name("own metrics"), &NUMBER);

static NUMBER: Shape = Either(&[Scalar(Value), Metric::SHAPE]);

record! {
    /// What is measured, and what becomes of it. Short: the number of a histogram.
    struct Metric("metric", "a metric", Rule::OneOf(&["histogram", "counter"])) {
        histogram: kinds::Value = "A number whose distribution is told: mean, percentiles, largest.",
        counter: kinds::Value = "A number that is added to the others.",
        unit: kinds::Text = "What it is in, for the report.",
    }
}

pub(super) const MEASURE: Key =
    key("measure", METRICS, "Numbers that are measured where the request ended well, by metric.");

step! {
    /// Measures numbers: metrics of the scenario's own.
    KIND("measure", "a measure step") ["measure": METRICS => "Numbers by metric."] {}
    example: "
- GET: /cart
  extract: {n: {count: '$.lines[*]'}, total: $.total}
  measure: {cart_items: '${n}'}
- measure: {spent: {counter: '${total}', unit: EUR}}
"
}

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
            let Some(said) = Metric::read(node, self.reader) else { continue };
            let counted = said.counter.value;
            let written = counted.or(said.histogram.value).unwrap_or(node);
            let kind = if counted.is_some() { MetricKind::Counter } else { MetricKind::Histogram };
            let unit = said.unit.value.unwrap_or_default();
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
