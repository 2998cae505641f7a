//! What a script measured, at the end: k6's summary.

use std::fmt;
use std::sync::atomic::Ordering;

use serde_json::{Map, Value, json};
use tidemark_record::{ScriptCheck, ScriptFigure, ScriptFigures, ScriptMetric};

use crate::metrics::{CheckCounts, Definition, FIRST_OWN, HTTP_REQ_SENDING, Measured, Values};
use crate::script::Script;
use crate::thresholds::{Aggregate, Threshold};

/// Figures of a trend, unless the script says otherwise.
const TREND: [&str; 6] = ["avg", "min", "med", "max", "p(90)", "p(95)"];

/// What became of a threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct ThresholdOutcome {
    /// The metric, with its tags.
    pub of: String,
    /// As the script writes it.
    pub written: String,
    /// What was measured; none where no value came.
    pub figure: Option<f64>,
    /// Whether it holds. As in k6, one of a metric without values holds.
    pub holds: bool,
    /// Whether it is of what this program does not measure: nobody knows.
    pub is_unknown: bool,
}

impl fmt::Display for ThresholdOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "threshold {} of {}", self.written, self.of)?;
        match self.figure {
            Some(figure) => write!(f, " is {}", number(figure)),
            None => f.write_str(": no value came"),
        }
    }
}

impl ThresholdOutcome {
    /// Whether it judges a run in which nothing was sent.
    pub fn judges_without_requests(&self) -> bool {
        let is_of_requests =
            ["http_", "grpc_", "ws_", "data_"].iter().any(|of| self.of.trim_start().starts_with(of));
        self.figure.is_some() && !is_of_requests
    }

    /// What was measured, for a person.
    pub fn measured(&self) -> String {
        match self.figure {
            _ if self.is_unknown => "not measured: it is part of http_req_waiting".to_owned(),
            None => "no value".to_owned(),
            Some(figure) => number(figure),
        }
    }
}

/// All checks that were measured, in the order in which they came, without secrets.
pub(crate) fn checks(script: &Script, measured: &Measured) -> Vec<ScriptCheck> {
    let told = measured.checks().map(|(group, name, CheckCounts { passes, fails })| ScriptCheck {
        group: script.masked(group).into_owned(),
        name: script.masked(name).into_owned(),
        passes,
        fails,
    });
    told.collect()
}

/// What a script measured.
#[derive(Debug, Clone)]
pub struct Summary {
    /// As `handleSummary` gets it.
    pub data: Value,
    /// What became of its thresholds.
    pub thresholds: Vec<ThresholdOutcome>,
    /// What it measured itself.
    pub figures: ScriptFigures,
    /// Why the run failed, if the script said so.
    pub failed: Option<String>,
}

/// A figure with as many digits as are of use.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let digits = (3 - value.abs().log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn values_of<'m>(script: &Script, measured: &'m Measured, of: &str) -> Option<&'m Values> {
    let told = script.told();
    match told.parts.iter().position(|part| part.written == of) {
        Some(part) => measured.parts.get(part)?.as_ref(),
        None => {
            let at = script.definitions.list().iter().position(|known| known.name == of)?;
            measured.metrics.get(at)?.as_ref()
        }
    }
}

/// What became of a threshold, after so many seconds.
pub(crate) fn outcome(
    script: &Script,
    measured: &Measured,
    threshold: &Threshold,
    seconds: f64,
) -> ThresholdOutcome {
    let figure = values_of(script, measured, &threshold.of)
        .and_then(|values| values.figure(threshold.aggregate, seconds));
    // a counter that nobody counted is 0
    let is_counter = matches!(threshold.aggregate, Aggregate::Count);
    let judged = figure.or(is_counter.then_some(0.0));
    let metric = crate::thresholds::split(&threshold.of).map_or("", |(name, _)| name);
    let at = script.definitions.list().iter().position(|known| known.name == metric);
    ThresholdOutcome {
        is_unknown: at == Some(HTTP_REQ_SENDING),
        of: threshold.of.clone(),
        written: threshold.written.clone(),
        figure: judged,
        holds: judged.is_none_or(|figure| threshold.holds(figure)),
    }
}

impl Summary {
    pub(crate) fn new(script: &Script, measured: &Measured, seconds: f64) -> Summary {
        let told = script.told();
        let outcomes: Vec<ThresholdOutcome> =
            told.thresholds.iter().map(|threshold| outcome(script, measured, threshold, seconds)).collect();
        let trend = told.options.get("summaryTrendStats").and_then(Value::as_array);
        let trend: Vec<&str> = match trend {
            Some(told) => told.iter().filter_map(Value::as_str).collect(),
            None => TREND.to_vec(),
        };
        let mut metrics = Map::new();
        let mut is_own = Vec::new();
        let thresholds_of = |name: &str| {
            let of: Map<String, Value> = outcomes
                .iter()
                .filter(|outcome| outcome.of == name)
                .map(|outcome| (outcome.written.clone(), json!({"ok": outcome.holds})))
                .collect();
            (!of.is_empty()).then_some(Value::Object(of))
        };
        let definitions = script.definitions.list();
        let mut put = |name: &str, (at, of): (usize, &Definition), values: &Values| {
            is_own.push(at >= FIRST_OWN);
            let mut metric = json!({
                "type": of.kind.name(),
                "contains": if of.is_time { "time" } else { "default" },
                "values": figures(values, &trend, seconds),
            });
            if let (Some(thresholds), Some(metric)) = (thresholds_of(name), metric.as_object_mut()) {
                metric.insert("thresholds".into(), thresholds);
            }
            metrics.insert(name.to_owned(), metric);
        };
        for (of, values) in definitions.iter().enumerate().zip(&measured.metrics) {
            if let Some(values) = values {
                put(&of.1.name, of, values);
            }
        }
        for (part, values) in told.parts.iter().zip(&measured.parts) {
            let empty = Values::new(definitions[part.metric].kind);
            put(&part.written, (part.metric, &definitions[part.metric]), values.as_ref().unwrap_or(&empty));
        }
        let checks = checks(script, measured);
        let data = json!({
            "options": {"summaryTrendStats": trend, "summaryTimeUnit": "", "noColor": true},
            "state": {"isStdOutTTY": false, "isStdErrTTY": false, "testRunDurationMs": seconds * 1_000.0},
            "metrics": metrics,
            "root_group": group(&checks, ""),
            "setup_data": script.data.get().and_then(|data| serde_json::from_str::<Value>(data).ok()),
        });
        let own = metrics
            .into_iter()
            .zip(is_own)
            .map(|((name, metric), own)| of_record(name, &metric, own))
            .collect();
        let figures = ScriptFigures {
            iterations: script.iterations.load(Ordering::Relaxed),
            interrupted: script.iterations_interrupted(),
            exceptions: script.thrown.load(Ordering::Relaxed),
            checks,
            metrics: own,
        };
        Summary { data, thresholds: outcomes, figures, failed: failed(script) }
    }
}

/// Why the run failed, as far as the script is concerned.
fn failed(script: &Script) -> Option<String> {
    let (thrown, all) = (script.thrown.load(Ordering::Relaxed), script.iterations.load(Ordering::Relaxed));
    let nothing_worked = (all > 0 && thrown >= all)
        .then(|| format!("{}: all {all} iterations ended with an exception", script.name));
    script.failed().or(nothing_worked)
}

/// A metric of the summary as a run keeps it.
fn of_record(name: String, metric: &Value, own: bool) -> ScriptMetric {
    let figures = metric["values"].as_object().into_iter().flatten();
    let figure =
        |(name, value): (&String, &Value)| Some(ScriptFigure { name: name.clone(), value: value.as_f64()? });
    ScriptMetric {
        name,
        kind: metric["type"].as_str().unwrap_or_default().to_owned(),
        is_time: metric["contains"] == "time",
        own,
        figures: figures.filter_map(figure).collect(),
    }
}

/// A metric's figures as k6 names them.
fn figures(values: &Values, trend: &[&str], seconds: f64) -> Value {
    let mut figures = Map::new();
    let mut put = |name: &str, of: Aggregate| {
        if let Some(figure) = values.figure(of, seconds) {
            figures.insert(name.to_owned(), json!(figure));
        }
    };
    match values {
        Values::Counter(_) => {
            put("count", Aggregate::Count);
            put("rate", Aggregate::Rate);
        }
        Values::Gauge { .. } => {
            put("value", Aggregate::Value);
            put("min", Aggregate::Min);
            put("max", Aggregate::Max);
        }
        Values::Rate { good, all } => {
            put("rate", Aggregate::Rate);
            figures.insert("passes".into(), json!(good));
            figures.insert("fails".into(), json!(all - good));
        }
        Values::Trend(_) => {
            for name in trend {
                if let Some(of) = Aggregate::of(name) {
                    put(name, of);
                }
            }
        }
    }
    Value::Object(figures)
}

/// A group with what is in it, as k6 tells it.
fn group(checks: &[ScriptCheck], path: &str) -> Value {
    let mut inner: Vec<String> = Vec::new();
    for check in checks {
        let Some(rest) = check.group.strip_prefix(path).and_then(|rest| rest.strip_prefix("::")) else {
            continue;
        };
        let name = rest.split("::").next().unwrap_or_default();
        let child = format!("{path}::{name}");
        if !inner.contains(&child) {
            inner.push(child);
        }
    }
    let own = checks.iter().filter(|check| check.group == path);
    let told: Vec<Value> = own
        .map(|check| {
            json!({
                "name": check.name,
                "path": format!("{path}::{}", check.name),
                "id": "",
                "passes": check.passes,
                "fails": check.fails,
            })
        })
        .collect();
    let groups: Vec<Value> = inner.iter().map(|child| group(checks, child)).collect();
    let name = path.rsplit("::").next().unwrap_or_default();
    json!({"name": name, "path": path, "id": "", "groups": groups, "checks": told})
}
