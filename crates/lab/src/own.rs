//! What a scenario measures itself: what is to be said of its numbers.

use tidemark_record::{OwnKind, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::Op;

/// That there was no number where one was to be measured, and of which metrics there never was one.
pub fn notes(plan: &Plan, totals: &Totals) -> Vec<String> {
    let without = totals.own.iter().filter(|of| of.values.no_number > 0).map(|of| {
        let values = &of.values;
        let example =
            values.example.as_ref().map_or_else(String::new, |example| format!("; the first: {example}"));
        format!(
            "{}: {} of {} times there was no number to measure{example}",
            of.metric.name,
            values.no_number,
            values.no_number + values.count
        )
    });
    let is_of_the_load = |index: usize| {
        let loaded = plan
            .sessions
            .iter()
            .enumerate()
            .filter(|(at, kind)| kind.weight > 0 || plan.load.kinds.iter().any(|own| own.kind == *at));
        let mut ops = loaded.flat_map(|(_, kind)| &kind.ops);
        ops.any(|op| matches!(op, Op::Measure { metric, .. } if usize::from(*metric) == index))
    };
    let is_never = |(index, of): &(usize, &tidemark_record::OwnTotals)| {
        // that a counter counted nothing is a figure
        let is_told = of.metric.kind == OwnKind::Counter || of.values.count + of.values.no_number > 0;
        !is_told && totals.all.ended > 0 && is_of_the_load(*index)
    };
    let never = totals.own.iter().enumerate().filter(is_never);
    let never =
        never.map(|(_, of)| format!("{} was never measured within the measured window", of.metric.name));
    without.chain(never).collect()
}

#[cfg(test)]
mod tests {
    use tidemark_record::{OwnSeries, ThreadInterval};

    use super::*;

    #[test]
    fn what_was_no_number_and_what_was_never_measured_is_noted() {
        let text = "sessions:\n  a: {steps: [{GET: /, extract: {n: $.n}, measure: {items: '${n}', empty: '${n}', seen: {counter: 1}}}]}\n  \
                    b: {weight: 0, steps: [{GET: /}, {measure: {idle: 1}}]}\nload: {users: 1, hold: 1s}\n";
        let plan = tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]).unwrap();
        let mut totals = Totals::new(&plan.labels);
        totals.set_own_metrics(&tidemark_verdict::custom_metrics(&plan));
        let mut interval = ThreadInterval::empty(0, 0, 1_000_000);
        interval.in_window = true;
        interval.series = vec![tidemark_verdict::test_plan::series(0, tidemark_record::Outcome::Ok, 50, 1)];
        let mut items = OwnSeries::empty(0, OwnKind::Histogram);
        items.add(3.0);
        (items.no_number, items.example) = (2, Some("${n}: it has no value".into()));
        interval.own = vec![items];
        totals.add_interval(&interval);
        let told = [
            "items: 2 of 3 times there was no number to measure; the first: ${n}: it has no value",
            "empty was never measured within the measured window",
        ];
        assert_eq!(notes(&plan, &totals), told);
    }
}
