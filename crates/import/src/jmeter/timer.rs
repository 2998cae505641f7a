//! Timers: each waits before every sampler in its scope.

use std::collections::HashMap;

use tidemark_scenario::source::{Step, Think, Value};

use super::group::time;
use super::text::{Piece, pieces};
use super::tree::Node;
use super::{Making, Scope};

/// Samplers that a round sends under each timer of a rate, by the timer's line; none where that varies.
pub(super) type Counts = HashMap<usize, Option<f64>>;

impl<'a> Making<'a> {
    /// The pauses before a sampler.
    pub(super) fn pauses(&mut self, scope: &Scope<'a>) -> Vec<Step> {
        let mut steps = Vec::new();
        for &timer in &scope.nodes {
            match timer.kind() {
                "ConstantTimer" => steps.extend(self.constant(timer)),
                "UniformRandomTimer" => {
                    let of = |making: &mut Self, name| making.number(timer.text(name), timer);
                    match (of(self, "ConstantTimer.delay"), of(self, "RandomTimer.range")) {
                        (Some(delay), Some(range)) => steps.extend(between(delay, delay + range)),
                        _ => self.leave_out(timer, "waited a time that is known only while it runs"),
                    }
                }
                "GaussianRandomTimer" => {
                    let of = |making: &mut Self, name| making.number(timer.text(name), timer);
                    let found = (of(self, "ConstantTimer.delay"), of(self, "RandomTimer.range"));
                    self.bell(timer, found.0.zip(found.1), &mut steps);
                }
                "PoissonRandomTimer" => {
                    let of = |making: &mut Self, name| making.number(timer.text(name), timer);
                    let found = (of(self, "ConstantTimer.delay"), of(self, "RandomTimer.range"));
                    // Poisson's distribution has its mean as variance
                    let found =
                        found.0.zip(found.1).map(|(delay, mean)| (delay + mean, mean.max(0.0).sqrt()));
                    self.bell(timer, found, &mut steps);
                }
                "ConstantThroughputTimer" | "PreciseThroughputTimer" => {
                    let weight = self.group.weight();
                    let count = self.group.counts.entry(timer.element.line).or_insert(Some(0.0));
                    *count = count.zip(weight).map(|(count, weight)| count + weight);
                }
                _ => {}
            }
        }
        steps
    }

    fn constant(&mut self, timer: &Node<'_>) -> Option<Step> {
        let delay = timer.text("ConstantTimer.delay").trim();
        if let Some(delay) = self.number(delay, timer) {
            return (delay > 0.0).then(|| {
                let text = self.text(delay_text(timer), timer);
                // a setting stays one
                let value = if text.contains("${") {
                    format!("{text}ms").into()
                } else {
                    Value::Scalar(time(delay / 1e3))
                };
                Think { time: value, ..Think::default() }.into()
            });
        }
        // ${__Random(1000,3000)}
        if let [Piece::Call(name, arguments)] = &pieces(delay)[..]
            && name == "Random"
            && let [low, high, ..] = &arguments[..]
            && let Some((low, high)) = self.number(low, timer).zip(self.number(high, timer))
        {
            return between(low, high);
        }
        self.leave_out(timer, "waited a time that is known only while it runs");
        None
    }

    /// A normal distribution, as the sum of three uniform ones of the same mean and deviation.
    fn bell(&mut self, timer: &Node<'_>, found: Option<(f64, f64)>, steps: &mut Vec<Step>) {
        let Some((mean, deviation)) = found else {
            return self.leave_out(timer, "waited a time that is known only while it runs");
        };
        let (low, high) = (mean / 3.0 - deviation, mean / 3.0 + deviation);
        if low < 0.0 {
            let would = format!(
                "waited {mean} ms with a deviation of {deviation} ms, by a normal distribution; here evenly"
            );
            self.leave_out(timer, &would);
            // the same mean and deviation, as far as there is room
            let half = (deviation * 3.0_f64.sqrt()).min(mean);
            return steps.extend(between(mean - half, mean + half));
        }
        self.note(format!("{}: three pauses are together as a normal distribution", timer.title()));
        steps.extend((0..3).filter_map(|_| between(low, high)));
    }

    /// How many thread groups are driven beside each other.
    pub(super) fn groups(&self) -> usize {
        let children = self.trees.main().iter().flat_map(|plan| &plan.children);
        let is_one = |node: &&Node<'_>| {
            let is_aside = matches!(node.kind(), "SetupThreadGroup" | "PostThreadGroup");
            node.is_enabled() && super::group::is_group(node.kind()) && !is_aside
        };
        children.filter(is_one).count()
    }

    /// What timers of a rate make of the rounds of a thread group.
    pub(super) fn throughput(&mut self, scope: &Scope<'a>, nodes: &'a [Node<'a>]) {
        let counts = std::mem::take(&mut self.group.counts);
        let mut timers: Vec<&Node<'_>> = scope.nodes.clone();
        let mut all: Vec<&'a Node<'a>> = nodes.iter().collect();
        while let Some(node) = all.pop() {
            timers.push(node);
            all.extend(&node.children);
        }
        for timer in timers.into_iter().filter(|timer| timer.is_enabled()) {
            let is_precise = timer.kind() == "PreciseThroughputTimer";
            if !is_precise && timer.kind() != "ConstantThroughputTimer" {
                continue;
            }
            let Some(count) = counts.get(&timer.element.line) else { continue };
            let wanted = self.number(timer.text("throughput"), timer).filter(|rate| *rate > 0.0);
            let found = wanted.zip(count.filter(|count| *count > 0.0 && !self.group.is_thread));
            let Some((wanted, count)) = found else {
                self.leave_out_request(timer, "kept its requests to a rate");
                continue;
            };
            if is_precise {
                let period = self.number(timer.text("throughputPeriod"), timer).unwrap_or(3_600.0).max(1.0);
                self.group.arrivals = Some(wanted / period / count);
                self.note(format!(
                    "{}: rounds arrive at its rate (load: rate), at most one for each thread at once",
                    timer.title()
                ));
                continue;
            }
            let of_all = matches!(timer.text("calcMode").trim(), "1" | "3" | "calcMode.2" | "calcMode.4");
            if of_all && self.groups() > 1 {
                self.leave_out_request(timer, "kept the requests of all thread groups together to a rate");
                continue;
            }
            let of_each = matches!(timer.text("calcMode").trim(), "0" | "this thread only" | "calcMode.1");
            let users = if of_each { 1.0 } else { self.group.threads };
            // requests each minute
            let pace_s = 60.0 * count * users / wanted;
            self.group.pace_s = Some(self.group.pace_s.map_or(pace_s, |known| known.max(pace_s)));
            self.note(format!(
                "{}: each user begins a round on a beat (load: pace), which comes to its rate",
                timer.title()
            ));
        }
    }
}

fn delay_text<'p>(timer: &Node<'p>) -> &'p str {
    timer.text("ConstantTimer.delay").trim()
}

/// A pause evenly between two times, milliseconds.
fn between(low: f64, high: f64) -> Option<Step> {
    let (low, high) = (low.max(0.0), high.max(0.0));
    if high <= 0.0 {
        return None;
    }
    let scalar = |ms: f64| Value::Scalar(time((ms * 1e3).round() / 1e6));
    let value = if low == high {
        scalar(low)
    } else {
        let bounds = Value::List(vec![scalar(low), scalar(high)]);
        tidemark_scenario::source::Map::from([("between", bounds)]).into()
    };
    Some(Think { time: value, ..Think::default() }.into())
}
