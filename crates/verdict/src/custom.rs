//! Objectives on the scenario's own metrics.
//!
//! Where there was no number, nobody knows how large it would have been: it never helps to meet an objective. A bound from
//! above is held against what the figure would be were each such number larger than every bound, one from below against
//! what it would be were each 0.

use tidemark_record::manifest::{ObjectiveResult, Undecided};
use tidemark_record::{OwnKind, OwnMetric, OwnTotals, Ratio, RatioForm, rank};
use tidemark_scenario::plan::{
    Comparison, Counted, CustomFigure, MetricKind, MetricPlan, Objective, RatioPlan,
};
use tidemark_scenario::{Plan, plan};

use crate::few;
use crate::figure::Measured;
use crate::objectives::{NOT_MEASURED, holds};
use crate::text::significant;

/// The scenario's own metrics, as a run records them.
pub fn custom_metrics(plan: &Plan) -> Vec<OwnMetric> {
    let metric = |metric: &MetricPlan| OwnMetric {
        name: metric.name.clone(),
        kind: match metric.kind {
            MetricKind::Histogram => OwnKind::Histogram,
            MetricKind::Counter => OwnKind::Counter,
        },
        unit: metric.unit.clone(),
    };
    plan.metrics.iter().map(metric).collect()
}

/// The ratios that the scenario asks for, as a run records them.
pub fn ratios(plan: &Plan) -> Vec<Ratio> {
    let name = |counted: &Counted| match *counted {
        Counted::Counter(metric) => plan.metrics[usize::from(metric)].name.clone(),
        Counted::Label(label) => plan.labels[usize::from(label)].clone(),
    };
    let ratio = |ratio: &RatioPlan| Ratio {
        name: ratio.name.clone(),
        of: ratio.of.iter().map(name).collect(),
        per: ratio.per.iter().map(name).collect(),
        value: None,
        form: match ratio.form {
            plan::RatioForm::Plain => RatioForm::Plain,
            plan::RatioForm::Percent => RatioForm::Percent,
        },
    };
    plan.ratios.iter().map(ratio).collect()
}

/// What became of an objective on a figure of the metric of this index.
pub fn result(
    objective: &Objective,
    metric: u16,
    figure: CustomFigure,
    of: &Measured<'_>,
) -> ObjectiveResult {
    let window_s = of.totals.window.map_or(0.0, |window| window.length_s());
    let totals = of.totals.own.get(usize::from(metric));
    let found = totals.and_then(|totals| Some((Bounds::of(totals, figure, window_s)?, totals)));
    let Some((Bounds { low, figure: value, high }, totals)) = found else {
        let (objective, measured) = (objective.text.clone(), NOT_MEASURED.to_owned());
        return ObjectiveResult { objective, measured, ..ObjectiveResult::default() };
    };
    let meets = |value| holds(value, objective.comparison, objective.bound);
    let met = meets(low) && meets(high);
    // a driver that was held up made less than the system can do, and so measured less
    let is_least = matches!(objective.comparison, Comparison::Greater | Comparison::GreaterOrEqual);
    let grows = matches!(figure, CustomFigure::Count | CustomFigure::Sum | CustomFigure::Rate);
    let undecided = !met && is_least && grows && of.limited;
    let mut measured = shown(value, figure, &totals.metric);
    if totals.values.no_number > 0 {
        let all = totals.values.no_number + totals.values.count;
        measured += &format!(", with no number {} of {all} times", totals.values.no_number);
    }
    if undecided {
        measured += ", maybe more but for the load generator";
    }
    let few = match figure {
        CustomFigure::Percentile(percent) => {
            few::told(percent, totals.values.count + totals.values.no_number, window_s, None, "numbers")
        }
        _ => None,
    };
    if let Some(few) = &few {
        measured += few;
    }
    // all of so few are within the bound, and more may not be
    let too_few = met && few.is_some();
    let undecided_by = match (undecided, too_few) {
        (true, _) => Some(Undecided::DriverBound),
        (false, true) => Some(Undecided::TooFew),
        (false, false) => None,
    };
    let (objective, undecided) = (objective.text.clone(), undecided_by.is_some());
    ObjectiveResult { objective, met: met && !too_few, measured, default: false, undecided, undecided_by }
}

/// A figure for a person, in its unit.
fn shown(value: f64, figure: CustomFigure, metric: &OwnMetric) -> String {
    let unit = match (figure, metric.kind) {
        (CustomFigure::Count, _) | (CustomFigure::Rate, OwnKind::Histogram) => "",
        _ => metric.unit.as_str(),
    };
    let gap = if unit.is_empty() { "" } else { " " };
    let per_s = if figure == CustomFigure::Rate { "/s" } else { "" };
    format!("{}{gap}{unit}{per_s}", significant(value))
}

/// A figure, and the least and the most that it can have been.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bounds {
    low: f64,
    figure: f64,
    high: f64,
}

impl Bounds {
    /// Of what was measured; none where there is nothing to take it from.
    fn of(totals: &OwnTotals, figure: CustomFigure, window_s: f64) -> Option<Bounds> {
        let of = &totals.values;
        let unknown = of.no_number;
        // that nothing was counted is a figure; of no numbers there is none
        let counted = |figure: f64| {
            let high = if unknown > 0 { f64::INFINITY } else { figure };
            Some(Bounds { low: figure, figure, high })
        };
        let spread = |low: f64, figure: f64, high: f64| match unknown {
            0 => Bounds { low: figure, figure, high: figure },
            _ => Bounds { low, figure, high },
        };
        match figure {
            CustomFigure::Count => counted(of.count as f64),
            CustomFigure::Sum => counted(of.sum),
            CustomFigure::Rate => counted(totals.per_s(window_s)),
            CustomFigure::Mean => {
                let all = (of.count + unknown) as f64;
                of.mean().map(|mean| spread(of.sum / all, mean, f64::INFINITY))
            }
            CustomFigure::Min => (of.count > 0).then(|| spread(0.0, of.min, of.min)),
            CustomFigure::Percentile(percent) => {
                let share = percent / 100.0;
                let figure = of.quantile(share)?;
                let rank = rank(share, of.count + unknown);
                let low = rank.checked_sub(unknown).and_then(|rank| of.at_rank(rank)).unwrap_or(0.0);
                Some(spread(low, figure, of.at_rank(rank).unwrap_or(f64::INFINITY)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidemark_record::summary::Driver;
    use tidemark_record::{OwnSeries, ThreadInterval, Totals};

    /// Ten seconds in which this was measured, and so often no number.
    fn totals(plan: &Plan, numbers: &[f64], no_number: u64) -> Totals {
        let mut totals = Totals::new(&plan.labels);
        totals.set_own_metrics(&custom_metrics(plan));
        let mut interval = ThreadInterval::empty(0, 0, 10_000_000);
        interval.in_window = true;
        for metric in totals.own.iter().zip(0..).map(|(of, index)| (index, of.metric.kind)) {
            let mut series = OwnSeries::empty(metric.0, metric.1);
            numbers.iter().for_each(|number| series.add(*number));
            series.no_number = no_number;
            interval.own.push(series);
        }
        totals.add_interval(&interval);
        totals
    }

    fn judged(objective: &str, numbers: &[f64], no_number: u64, limited: bool) -> (bool, bool, String) {
        let text = format!(
            "sessions: {{a: {{steps: [{{GET: /}}, {{measure: {{items: {{histogram: 1, unit: pcs}}, seen: {{counter: 1}}}}}}]}}}}\n\
             load: {{users: 1, hold: 1s}}\nobjectives: [\"{objective}\"]\n"
        );
        let plan = tidemark_scenario::load_text("t.yaml", &text, std::path::Path::new("."), &[]).unwrap();
        let totals = totals(&plan, numbers, no_number);
        let limits = if limited { vec!["it had no core".to_owned()] } else { Vec::new() };
        let driver = Driver { limits, ..Driver::default() };
        let of = Measured::new(&totals, &driver, true, false);
        let result = crate::objectives::result(&plan.objectives[0], &of, false);
        (result.met, result.undecided, result.measured)
    }

    #[test]
    fn objectives_are_held_against_the_numbers() {
        let numbers: Vec<f64> = (1..=100).map(f64::from).collect();
        let met = |objective: &str| judged(objective, &numbers, 0, false).0;
        for objective in [
            "items p99 <= 99",
            "items p99 >= 99",
            "items max < 101 pcs",
            "items min = 1",
            "items mean = 50.5",
            "items median = 50",
            "items count = 100",
            "items rate = 10/s",
            "seen count = 5050",
            "seen rate = 505/s",
        ] {
            assert!(met(objective), "{objective}: {}", judged(objective, &numbers, 0, false).2);
        }
        assert!(!met("items p99 < 99") && !met("seen count < 5050"));
        assert_eq!(judged("items p99 < 20", &numbers, 0, false).2, "99 pcs");
        assert_eq!(judged("items count < 20", &numbers, 0, false).2, "100");
        assert_eq!(judged("seen rate < 20/s", &numbers, 0, false).2, "505/s");
    }

    #[test]
    fn of_nothing_there_is_a_count_and_no_percentile() {
        assert_eq!(judged("items p99 < 20", &[], 0, false), (false, false, "not measured".into()));
        assert_eq!(judged("seen count < 10", &[], 0, false), (true, false, "0".into()));
        assert_eq!(judged("seen count > 0", &[], 0, false), (false, false, "0".into()));
    }

    #[test]
    fn what_was_no_number_never_helps() {
        let numbers = [5.0; 90];
        let met = |objective: &str, no_number| judged(objective, &numbers, no_number, false).0;
        // ten of a hundred are unknown: the 90th is known, the 91st is not
        assert!(met("items p90 < 20", 10) && !met("items p91 < 20", 10));
        assert!(met("items p11 > 4", 10) && !met("items p10 > 4", 10));
        assert!(met("items mean < 20", 0) && !met("items mean < 20", 1));
        assert!(met("items mean > 4", 10) && !met("items mean > 4.6", 10), "were they 0, it were 4.5");
        assert!(met("items max > 4", 10) && !met("items max < 20", 10));
        assert!(met("seen count > 400", 10) && !met("seen count < 500", 10));
        let told = judged("items p99 < 20", &numbers, 10, false).2;
        assert_eq!(told, "5 pcs, with no number 10 of 100 times");
    }

    #[test]
    fn a_driver_that_was_held_up_can_have_measured_too_little_only() {
        let numbers = [5.0; 90];
        let judged = |objective: &str| judged(objective, &numbers, 0, true);
        let (met, undecided, measured) = judged("seen count > 1000");
        assert!(
            !met && undecided && measured.ends_with("maybe more but for the load generator"),
            "{measured}"
        );
        assert_eq!((judged("seen count < 400").1, judged("items p99 < 4").1), (false, false));
        assert!(judged("seen count > 400").0);
    }
}
