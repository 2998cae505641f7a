//! Objectives: `p99 < 50ms`, `errors < 0.01%`, `achieved > 99% of offered`, `Login p99 < 20ms`, `high: p99 < 100ms`,
//! `cart_items p99 < 20`.

mod phase;

use crate::diagnostic::did_you_mean;
use crate::plan::{MetricKind, MetricPlan, Phase, Plan};
use crate::units;

/// Words that name a metric, besides percentiles.
const METRICS: [&str; 9] =
    ["mean", "median", "max", "errors", "rate", "achieved", "dropped", "lost", "duplicated"];
/// The same of a metric of the scenario's own.
const OF_CUSTOM: [&str; 7] = ["count", "sum", "mean", "median", "min", "max", "rate"];
/// What `achieved` is a share of.
const OF_OFFERED: &str = "of offered";
const COMPARISONS: [(&str, Comparison); 6] = [
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("==", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
    ("=", Comparison::Equal),
];

/// A bound that decides pass or fail.
#[derive(Debug, Clone)]
pub struct Objective {
    /// As the scenario writes it.
    pub text: String,
    /// What it is about.
    pub about: About,
    /// What is bounded.
    pub metric: Metric,
    /// How.
    pub comparison: Comparison,
    /// The bound, in the metric's unit.
    pub bound: f64,
    /// Whether the run is cut short once it can no longer be met.
    pub abort_early: bool,
}

impl Objective {
    /// Reads one that is of no label, as [`text`](Objective::text) has it.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn read(text: &str) -> Result<Objective, String> {
        match parse(text, &[])? {
            (objective, None) => Ok(objective),
            (_, Some(label)) => Err(format!("\"{text}\" is of {label} alone")),
        }
    }
}

impl Plan {
    /// Adds an objective to those of the scenario.
    ///
    /// # Errors
    /// What is wrong with it, also where it names a label or a group that is not there.
    pub fn add_objective(&mut self, text: &str) -> Result<(), String> {
        let (mut objective, name) = parse(text, &self.metrics)?;
        if let Some(name) = name {
            let Plan { labels, groups, metrics, load, .. } = &*self;
            objective.about =
                about(&name, &objective, &Names { labels, groups, metrics, phases: &load.phases })?;
        }
        self.objectives.push(objective);
        Ok(())
    }
}

impl Plan {
    /// Whether an objective is on a label or a group of the phase of this index.
    pub fn judges_parts_of_phase(&self, phase: usize) -> bool {
        let is_part = |about| matches!(about, About::Phase(of, Within::Label(_) | Within::Group(_)) if usize::from(of) == phase);
        self.objectives.iter().any(|objective| is_part(objective.about))
    }
}

/// What stands before a group's name in an objective.
const GROUP: &str = "group ";

pub(crate) use phase::mend;

/// Everything in a scenario that an objective can name.
pub(crate) struct Names<'a> {
    pub(crate) labels: &'a [String],
    pub(crate) groups: &'a [String],
    pub(crate) metrics: &'a [MetricPlan],
    pub(crate) phases: &'a [Phase],
}

/// What an objective is about: a metric of the scenario's own, as was read already, a label, behind the word `group` a
/// group of steps, or one of these within the phase that stands in front of a colon.
pub(crate) fn about(name: &str, objective: &Objective, names: &Names<'_>) -> Result<About, String> {
    let whole = of_the_whole_run(name, objective.about, names);
    if let Some(about) = phase::about(name, objective.metric, whole.as_ref().ok().copied(), names) {
        return about;
    }
    match objective.metric {
        Metric::Dropped | Metric::AchievedShare => whole.and(Err(not_of_a_part(objective.metric))),
        _ => whole,
    }
}

fn of_the_whole_run(name: &str, read: About, names: &Names<'_>) -> Result<About, String> {
    let Names { labels, groups, metrics, .. } = *names;
    if let About::Metric(_) = read {
        return match labels.iter().any(|label| label == name) {
            false => Ok(read),
            true => Err(format!(
                "\"{name}\" is a label, and a metric has that name, too; call one of them otherwise"
            )),
        };
    }
    let index_in = |names: &[String], name: &str| {
        names.iter().position(|known| known == name).and_then(|index| u16::try_from(index).ok())
    };
    let group = name.strip_prefix(GROUP).map(str::trim_start);
    if let Some(label) = index_in(labels, name) {
        if groups.iter().any(|known| group == Some(known)) {
            return Err(format!(
                "\"{name}\" is a label, and a group has that name, too; call one of them otherwise"
            ));
        }
        return Ok(About::Label(label));
    }
    if let Some(group) = group {
        let hint = || did_you_mean(group, groups.iter().map(String::as_str));
        return index_in(groups, group)
            .map(About::Group)
            .ok_or_else(|| format!("no group has the name \"{group}\"{}", hint()));
    }
    let hint = match groups.iter().any(|group| group == name) {
        true => format!("; of a group it is \"{GROUP}{name} …\""),
        false => {
            let metrics = metrics.iter().map(|metric| metric.name.as_str());
            match names.phases.iter().any(|phase| phase.name == name) {
                true => format!("; of a phase it is \"{name}: …\""),
                false => did_you_mean(name, labels.iter().map(String::as_str).chain(metrics)),
            }
        }
    };
    Err(format!("no request has the label \"{name}\"{hint}"))
}

/// What an objective is about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum About {
    /// All requests.
    #[default]
    All,
    /// Those of a label: an index into the plan's labels.
    Label(u16),
    /// A group of steps: an index into the plan's groups.
    Group(u16),
    /// A metric of the scenario's own: an index into the plan's metrics.
    Metric(u16),
    /// What was due in a measured phase: an index into the phases of the plan's load.
    Phase(u16, Within),
}

/// What of a phase an objective is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Within {
    /// All requests that were due in it.
    All,
    /// Those of a label: an index into the plan's labels.
    Label(u16),
    /// A group of steps: an index into the plan's groups.
    Group(u16),
}

/// What an objective bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Metric {
    /// A response-time percentile (0 to 100; 100 is the maximum), microseconds.
    Percentile(f64),
    /// Mean response time, microseconds.
    Mean,
    /// Requests without a good answer, dropped ones included, as a share of all that were due, 0 to 1.
    ErrorShare,
    /// The same, a count.
    Errors,
    /// Good answers per second.
    Rate,
    /// Good answers as a share of the requests that were due, 0 to 1.
    AchievedShare,
    /// Requests that were due and given up because a bound was reached, a count.
    Dropped,
    /// Acknowledged writes that were not found again, a count.
    Lost,
    /// The same as a share of the acknowledged ones, 0 to 1.
    LostShare,
    /// Writes found more than once: how many times too often, a count.
    Duplicated,
    /// A figure of a metric of the scenario's own, in its unit.
    Custom(CustomFigure),
}

/// A figure of a metric of the scenario's own.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum CustomFigure {
    /// How many numbers there were.
    Count,
    /// All numbers together.
    Sum,
    /// So many numbers each second; of a counter so much.
    Rate,
    /// The mean number.
    Mean,
    /// The smallest.
    Min,
    /// A percentile (0 to 100; 100 is the largest).
    Percentile(f64),
}

impl Metric {
    /// Whether it is known only once the ledger was held against the store.
    pub fn is_of_the_ledger(self) -> bool {
        matches!(self, Metric::Lost | Metric::LostShare | Metric::Duplicated)
    }
}

/// How a metric is held against its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Comparison {
    Less,
    LessOrEqual,
    Equal,
    GreaterOrEqual,
    Greater,
}

/// Reads an objective, and what it is about, if that is not all: a label, or a group. Its index is filled in later, but for
/// that of a metric of the scenario's own.
pub(crate) fn parse(text: &str, metrics: &[MetricPlan]) -> Result<(Objective, Option<String>), String> {
    let shape = "write it like \"p99 < 50ms\", \"errors = 0\" or \"Login p90 < 20ms\"";
    let spelling = [('≤', "<="), ('≥', ">="), ('≠', ""), ('＜', "<"), ('＞', ">")];
    if let Some((found, instead)) = spelling.iter().find(|(found, _)| text.contains(*found)) {
        let instead = if instead.is_empty() { "< or >" } else { instead };
        return Err(format!("\"{text}\" has a \"{found}\"; write {instead} instead of it"));
    }
    let at = text.find(['<', '>', '=']).ok_or_else(|| format!("\"{text}\" compares nothing; {shape}"))?;
    let (left, right) = text.split_at(at);
    let (symbol, comparison) =
        COMPARISONS.iter().find(|(symbol, _)| right.starts_with(symbol)).ok_or_else(|| shape.to_owned())?;
    let bound_text = right[symbol.len()..].trim();
    let left = left.trim();
    let (label, metric_text) = match left.rsplit_once(char::is_whitespace) {
        Some((label, metric)) => (Some(label.trim().to_owned()), metric),
        None => (None, left),
    };
    // `low:p99`, without a blank behind the phase's colon
    let (label, metric_text) = match left.rsplit_once(':') {
        Some((phase, known)) if metric(known).is_some() => (Some(format!("{phase}:")), known),
        _ => (label, metric_text),
    };
    let own = metrics.iter().position(|metric| label.as_ref() == Some(&metric.name));
    if let Some(index) = own {
        let (figure, bound) = custom_figure(&metrics[index], metric_text, bound_text)?;
        if *comparison == Comparison::Less && bound <= 0.0 {
            return Err(never_met(text, bound_text));
        }
        let objective = Objective {
            text: text.trim().to_owned(),
            about: About::Metric(index as u16),
            metric: Metric::Custom(figure),
            comparison: *comparison,
            bound,
            abort_early: false,
        };
        return Ok((objective, label));
    }
    let metric = metric(metric_text).ok_or_else(|| {
        let known = ["p50", "p90", "p99", "p99.9"].into_iter().chain(METRICS);
        let mut hint = did_you_mean(metric_text, known);
        if hint.is_empty() {
            hint = format!("; it is one of p50, p90, p99.9 and the like, {}", METRICS.join(", "));
        }
        format!("unknown metric \"{metric_text}\"{hint}")
    })?;
    let of_all = matches!(metric, Metric::Dropped | Metric::AchievedShare) || metric.is_of_the_ledger();
    // what ends with a colon may be a phase
    let of_part = label.as_ref().is_some_and(|label| !label.ends_with(':') || metric.is_of_the_ledger());
    if of_part && of_all {
        return Err(not_of_a_part(metric));
    }
    let (metric, bound) = bound(metric, bound_text).map_err(|error| {
        // where the name of a metric is misspelt its bound looks like that of a label
        let names = metrics.iter().map(|metric| metric.name.as_str());
        error + &label.as_ref().map_or_else(String::new, |label| did_you_mean(label, names))
    })?;
    let is_share = matches!(metric, Metric::ErrorShare | Metric::AchievedShare | Metric::LostShare);
    match comparison {
        Comparison::Less if bound <= 0.0 => {
            return Err(never_met(text, bound_text));
        }
        Comparison::Greater if is_share && bound >= 1.0 => {
            return Err(format!(
                "\"{text}\" can never be met, as nothing is more than all; write \">= {bound_text}\""
            ));
        }
        _ => {}
    }
    let objective = Objective {
        text: text.trim().to_owned(),
        about: About::All,
        metric,
        comparison: *comparison,
        bound,
        abort_early: false,
    };
    Ok((objective, label))
}

fn not_of_a_part(metric: Metric) -> String {
    let (name, parts) = match metric {
        Metric::AchievedShare => ("achieved", "label or group"),
        Metric::Dropped => ("dropped", "label or group"),
        Metric::Duplicated => ("duplicated", "label, group or phase"),
        _ => ("lost", "label, group or phase"),
    };
    format!("\"{name}\" is for the whole run only, not for one {parts}")
}

fn never_met(text: &str, bound: &str) -> String {
    format!("\"{text}\" can never be met, as nothing is below 0; write \"= {bound}\"")
}

/// A figure of a metric of the scenario's own, and its bound, which may have the metric's unit behind it.
fn custom_figure(metric: &MetricPlan, figure: &str, bound: &str) -> Result<(CustomFigure, f64), String> {
    let found = match (figure, metric.kind) {
        // what a counter counted
        ("count", MetricKind::Counter) => Some(CustomFigure::Sum),
        ("count", MetricKind::Histogram) => Some(CustomFigure::Count),
        ("sum", _) => Some(CustomFigure::Sum),
        ("rate", _) => Some(CustomFigure::Rate),
        ("mean", MetricKind::Histogram) => Some(CustomFigure::Mean),
        ("median", MetricKind::Histogram) => Some(CustomFigure::Percentile(50.0)),
        ("min", MetricKind::Histogram) => Some(CustomFigure::Min),
        ("max", MetricKind::Histogram) => Some(CustomFigure::Percentile(100.0)),
        (_, MetricKind::Histogram) => percent(figure).map(CustomFigure::Percentile),
        (_, MetricKind::Counter) => None,
    };
    let found = found.ok_or_else(|| match metric.kind {
        MetricKind::Counter => {
            format!("\"{}\" is a counter, which has count, sum and rate, and no \"{figure}\"", metric.name)
        }
        MetricKind::Histogram => {
            let mut hint = did_you_mean(figure, ["p50", "p90", "p99", "p99.9"].into_iter().chain(OF_CUSTOM));
            if hint.is_empty() {
                hint = format!("; it is one of p50, p90, p99.9 and the like, {}", OF_CUSTOM.join(", "));
            }
            format!("\"{}\" has no \"{figure}\"{hint}", metric.name)
        }
    })?;
    let bound = match found {
        CustomFigure::Rate => units::parse_rate(bound),
        _ => units::parse_number(match bound.strip_suffix(metric.unit.as_str()) {
            Some(number) if !metric.unit.is_empty() => number,
            _ => bound,
        }),
    };
    Ok((found, bound.map_err(|error| error.to_string())?))
}

/// The percentile that a text like `p99.9` names.
fn percent(text: &str) -> Option<f64> {
    let percent = text.strip_prefix('p').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))?;
    percent.parse().ok().filter(|percent| (0.0..=100.0).contains(percent))
}

fn metric(text: &str) -> Option<Metric> {
    Some(match text {
        "mean" => Metric::Mean,
        "median" => Metric::Percentile(50.0),
        "max" => Metric::Percentile(100.0),
        "errors" => Metric::Errors,
        "rate" => Metric::Rate,
        "achieved" => Metric::AchievedShare,
        "dropped" => Metric::Dropped,
        "lost" => Metric::Lost,
        "duplicated" => Metric::Duplicated,
        _ => Metric::Percentile(percent(text)?),
    })
}

/// The bound in the metric's unit; a share of errors makes it another metric.
fn bound(metric: Metric, text: &str) -> Result<(Metric, f64), String> {
    let count = |text| units::parse_count(text).map(|count| count as f64).map_err(|error| error.to_string());
    Ok(match metric {
        Metric::Percentile(_) | Metric::Mean => {
            let time = units::parse_duration(text).map_err(|error| error.to_string())?;
            (metric, time.as_secs_f64() * 1e6)
        }
        Metric::Errors | Metric::ErrorShare if text.ends_with('%') => {
            (Metric::ErrorShare, units::parse_share(text).map_err(|error| error.to_string())?)
        }
        Metric::Lost | Metric::LostShare if text.ends_with('%') => {
            (Metric::LostShare, units::parse_share(text).map_err(|error| error.to_string())?)
        }
        Metric::AchievedShare => {
            let share = text.strip_suffix(OF_OFFERED).map_or("", str::trim_end);
            let told = |_| match units::parse_share(text) {
                Ok(_) => format!("\"{text}\" does not say of what; write \"{text} {OF_OFFERED}\""),
                Err(_) => format!("\"{text}\" is not a share; write it like \"achieved > 99% {OF_OFFERED}\""),
            };
            (metric, units::parse_share(share).map_err(told)?)
        }
        Metric::Rate => (metric, units::parse_rate(text).map_err(|error| error.to_string())?),
        Metric::Errors
        | Metric::ErrorShare
        | Metric::Dropped
        | Metric::Lost
        | Metric::LostShare
        | Metric::Duplicated
        | Metric::Custom(_) => (metric, count(text)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_are_read() {
        let read = |text: &str| {
            let (objective, label) = parse(text, &[]).unwrap();
            (label, objective.metric, objective.comparison, objective.bound)
        };
        assert_eq!(read("p99 < 50ms"), (None, Metric::Percentile(99.0), Comparison::Less, 50_000.0));
        assert_eq!(read("p99.9<=1s"), (None, Metric::Percentile(99.9), Comparison::LessOrEqual, 1e6));
        assert_eq!(read("errors < 0.01%"), (None, Metric::ErrorShare, Comparison::Less, 0.0001));
        assert_eq!(read("errors = 0"), (None, Metric::Errors, Comparison::Equal, 0.0));
        assert_eq!(read("mean < 10ms"), (None, Metric::Mean, Comparison::Less, 10_000.0));
        assert_eq!(read("rate > 20k/s"), (None, Metric::Rate, Comparison::Greater, 20_000.0));
        assert_eq!(
            read("achieved > 99% of offered"),
            (None, Metric::AchievedShare, Comparison::Greater, 0.99)
        );
        assert_eq!(read("lost == 0"), (None, Metric::Lost, Comparison::Equal, 0.0));
        assert_eq!(read("lost < 1%"), (None, Metric::LostShare, Comparison::Less, 0.01));
        assert_eq!(read("duplicated <= 10"), (None, Metric::Duplicated, Comparison::LessOrEqual, 10.0));
        let (label, metric, ..) = read("List Bookings max < 1s");
        assert_eq!((label.as_deref(), metric), (Some("List Bookings"), Metric::Percentile(100.0)));
    }

    #[test]
    fn an_objective_is_added_to_a_plan() {
        let text = "sessions: {a: {steps: [{GET: /, label: Home}, {group: Buy, steps: [GET: /b]}]}}\nload: {users: 1, hold: 1s}\n";
        let mut plan = crate::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        for text in ["p99 < 5ms", "Home errors = 0", "group Buy p90 < 1s"] {
            plan.add_objective(text).unwrap();
        }
        let about: Vec<About> = plan.objectives.iter().map(|objective| objective.about).collect();
        assert_eq!(about, [About::All, About::Label(0), About::Group(0)]);
        assert!(plan.add_objective("Hom p99 < 5ms").unwrap_err().ends_with("did you mean Home?"));
        assert!(plan.add_objective("Buy p99 < 5ms").unwrap_err().contains("of a group it is"));
        assert!(plan.add_objective("p99").is_err());
        assert_eq!(plan.objectives.len(), 3);
    }

    #[test]
    fn mistakes_are_told() {
        let told = |text: &str| parse(text, &[]).unwrap_err();
        assert_eq!(told("eror = 0"), "unknown metric \"eror\"; did you mean errors?");
        assert!(told("p99").contains("compares nothing"));
        assert!(told("p101 < 5ms").contains("unknown metric \"p101\""));
        assert!(
            told("errors < 0").contains("can never be met") && told("errors<0%").contains("write \"= 0%\"")
        );
        assert!(told("achieved > 100% of offered").contains("write \">= 100% of offered\""));
        assert!(told("p99 < 50").contains("the unit is missing"));
        assert!(told("rate > 20k").contains("the period is missing"));
        assert!(told("Login dropped = 0").contains("whole run"));
        assert_eq!(told("achieved>1%"), "\"1%\" does not say of what; write \"1% of offered\"");
        assert!(told("achieved > 99").contains("achieved > 99% of offered"));
        assert_eq!(told("p99 ≤ 50ms"), "\"p99 ≤ 50ms\" has a \"≤\"; write <= instead of it");
        assert!(told("rate≥5/s").contains("write >= instead of it"));
        assert!(told("Login achieved > 99% of offered").contains("whole run"));
    }

    #[test]
    fn objectives_on_metrics_of_the_scenarios_own_are_read() {
        let metric = |name: &str, kind, unit: &str| MetricPlan { name: name.into(), kind, unit: unit.into() };
        let metrics = [
            metric("cart_items", MetricKind::Histogram, "items"),
            metric("errors_seen", MetricKind::Counter, ""),
        ];
        let read = |text: &str| {
            let (objective, _) = parse(text, &metrics).unwrap();
            let Metric::Custom(figure) = objective.metric else { panic!("{text}") };
            (objective.about, figure, objective.bound)
        };
        let (cart, seen) = (About::Metric(0), About::Metric(1));
        assert_eq!(read("cart_items p99 < 20"), (cart, CustomFigure::Percentile(99.0), 20.0));
        assert_eq!(read("cart_items p99.9 <= 20 items"), (cart, CustomFigure::Percentile(99.9), 20.0));
        assert_eq!(read("cart_items mean > 2.5"), (cart, CustomFigure::Mean, 2.5));
        assert_eq!(read("cart_items max < 1k"), (cart, CustomFigure::Percentile(100.0), 1_000.0));
        assert_eq!(read("cart_items count > 0"), (cart, CustomFigure::Count, 0.0));
        assert_eq!(read("errors_seen count < 10"), (seen, CustomFigure::Sum, 10.0));
        assert_eq!(read("errors_seen sum = 0"), (seen, CustomFigure::Sum, 0.0));
        assert_eq!(read("errors_seen rate <= 90/min"), (seen, CustomFigure::Rate, 1.5));
        let told = |text: &str| parse(text, &metrics).unwrap_err();
        assert!(told("errors_seen p99 < 10").contains("is a counter, which has count, sum and rate"));
        assert!(
            told("cart_items men < 10").contains("did you mean mean?"),
            "{}",
            told("cart_items men < 10")
        );
        assert!(told("cart_items errors < 10").contains("one of p50"));
        assert!(told("cart_items p99 < 20ms").contains("is not a number"));
        assert!(told("cart_items count < 0").contains("can never be met"));
        assert!(told("errors_seen rate < 10").contains("the period is missing"));
        assert!(told("cart_item p99 < 20").ends_with("; did you mean cart_items?"));
    }
}
