//! What decides pass or fail.

use tidemark_scenario::source::Value;
use tidemark_scenario::units::{Rate, Time};

use super::Making;
use crate::plan::shown;
use crate::tree::Node;

/// Figures of response times, as Artillery and as objectives call them.
const FIGURES: [(&str, &str); 9] = [
    ("min", ""),
    ("max", "max"),
    ("mean", "mean"),
    ("median", "median"),
    ("p50", "median"),
    ("p75", "p75"),
    ("p90", "p90"),
    ("p95", "p95"),
    ("p99", "p99"),
];

impl Making<'_> {
    /// The objectives of `ensure`, wherever it stands.
    pub(super) fn ensure(&mut self) -> Vec<Value> {
        let mut made: Vec<Value> = Vec::new();
        let of_plugins = self.both("plugins").filter_map(|plugins| plugins.get("ensure"));
        let all: Vec<&Node> = self.both("ensure").chain(of_plugins).collect();
        for node in all {
            for (name, value) in node.entries() {
                match name.as_str() {
                    "thresholds" => {
                        let entries = value.items().iter().flat_map(Node::entries);
                        for (metric, bound) in entries {
                            self.bound(metric, "<", bound, &mut made);
                        }
                    }
                    "conditions" => value.items().iter().for_each(|one| self.condition_of(one, &mut made)),
                    "maxErrorRate" => match value.as_str().and_then(|text| text.parse::<f64>().ok()) {
                        Some(percent) if percent > 0.0 => made.push(format!("errors < {percent}%").into()),
                        Some(_) => made.push("errors = 0".into()),
                        None => self.unmet(value, name),
                    },
                    metric => self.bound(&format!("http.response_time.{metric}"), "<", value, &mut made),
                }
            }
        }
        made
    }

    fn unmet(&mut self, node: &Node, what: &str) {
        self.draft.tell(
            node.line,
            &format!("ensure {}", shown(what)),
            "decided by it whether the test has passed",
            false,
        );
        node.done();
    }

    fn bound(&mut self, metric: &str, sign: &str, bound: &Node, made: &mut Vec<Value>) {
        let number = bound.as_str().and_then(|text| text.trim().parse::<f64>().ok());
        match number.and_then(|number| objective(metric, sign, number)) {
            Some(objective) => made.push(objective.into()),
            None => self.unmet(bound, metric),
        }
    }

    /// `http.response_time.p99 < 250 and http.request_rate > 100`
    fn condition_of(&mut self, node: &Node, made: &mut Vec<Value>) {
        let text = node.as_str().or(node.text("expression")).unwrap_or_default().to_owned();
        let is_strict = node.text("strict") != Some("false");
        let parts = text.split(" and ").map(|part| {
            let part = part.trim().trim_matches(['(', ')']);
            let at = part.find(['<', '>'])?;
            let (metric, rest) = part.split_at(at);
            let sign = if rest.starts_with('<') { "<" } else { ">" };
            objective(metric.trim(), sign, rest.trim_start_matches(['<', '>', '=']).trim().parse().ok()?)
        });
        match parts.collect::<Option<Vec<String>>>().filter(|_| is_strict && !text.contains(" or ")) {
            Some(all) => made.extend(all.into_iter().map(Value::from)),
            None => self.unmet(node, &text),
        }
    }
}

/// A figure against a bound, as an objective.
fn objective(metric: &str, sign: &str, number: f64) -> Option<String> {
    if !number.is_finite() || number <= 0.0 {
        return None;
    }
    if metric == "http.request_rate" {
        let rate = tidemark_scenario::source::Scalar::from(Rate(number));
        return (sign == ">").then(|| format!("rate > {}", rate.as_str()));
    }
    let figure = metric.strip_prefix("http.response_time.")?;
    let (_, ours) = FIGURES.iter().find(|(theirs, _)| *theirs == figure)?;
    let time =
        tidemark_scenario::source::Scalar::from(Time(std::time::Duration::from_secs_f64(number / 1_000.0)));
    (!ours.is_empty() && sign == "<" && number < 1e9).then(|| format!("{ours} < {}", time.as_str()))
}
