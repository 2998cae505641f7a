//! Tables of what a run was made of: targets, labels, groups, phases, and what it measured itself.

use tidemark_record::summary::{Step, Summary};

use super::{Text, clean, rate, time};
use crate::own;
use crate::phases;
use crate::table::Table;
use crate::units::percent;

pub(super) fn targets(text: &mut Text, summary: &Summary) {
    if summary.targets.is_empty() {
        return;
    }
    text.heading("By target");
    let head = ["", "count", "share", "per s", "p50", "p99", "failed"];
    let mut table = Table::new(&head).dispensable(&["share", "per s"]);
    for of in &summary.targets {
        let times = [of.response_time_us.p50, of.response_time_us.p99];
        let mut row = vec![
            clean(&of.target),
            text.count(of.requests),
            percent(of.share),
            rate(text, of.achieved_per_s),
        ];
        row.extend(times.map(|us| time(us.map(|us| us as f64))));
        row.push(text.count(of.errors.values().sum()));
        table.row(row);
    }
    text.table(&table);
}

pub(super) fn labels(text: &mut Text, summary: &Summary) {
    if summary.steps.is_empty() {
        return;
    }
    text.heading("By label");
    let head = ["", "count", "share", "per s", "p50", "p90", "p99", "p99.9", "max", "failed"];
    let mut table = Table::new(&head).dispensable(&["share", "p99.9", "p90", "per s", "max"]);
    for step in &summary.steps {
        table.row(label(text, step));
    }
    text.table(&table);
}

fn label(text: &Text, step: &Step) -> Vec<String> {
    let of = &step.response_time_us;
    let mut row = vec![
        clean(&step.label),
        text.count(step.requests),
        percent(step.share),
        rate(text, step.achieved_per_s),
    ];
    row.extend([of.p50, of.p90, of.p99, of.p999, of.max].map(|us| time(us.map(|us| us as f64))));
    row.push(text.count(step.errors.values().sum()));
    row
}

/// Several steps together.
pub(super) fn groups(text: &mut Text, summary: &Summary) {
    if summary.groups.is_empty() {
        return;
    }
    text.heading("By group");
    let head = ["", "count", "per s", "p50", "p90", "p99", "p99.9", "max", "failed"];
    let mut table = Table::new(&head).dispensable(&["p99.9", "p90", "per s", "max"]);
    for group in &summary.groups {
        let of = &group.response_time_us;
        let mut row = vec![clean(&group.group), text.count(group.count), rate(text, group.achieved_per_s)];
        row.extend([of.p50, of.p90, of.p99, of.p999, of.max].map(|us| time(us.map(|us| us as f64))));
        row.push(text.count(group.errors.values().sum()));
        table.row(row);
    }
    text.table(&table);
}

/// Each phase of the load.
pub(super) fn phases(text: &mut Text, summary: &Summary) {
    let told = phases::told(summary);
    if told.is_empty() {
        return;
    }
    text.heading("By phase");
    let head: Vec<&str> = [""].into_iter().chain(phases::HEAD).collect();
    let mut table =
        Table::new(&head).dispensable(&["p99.9", "p90", "for", "max", "CPU driver", "CPU system"]);
    for phase in told {
        let mut row = vec![clean(&phase.name)];
        row.extend(phases::figures(phase));
        table.row(row);
    }
    text.table(&table);
    let unmeasured: Vec<&str> =
        told.iter().filter(|phase| !phase.measured).map(|phase| phase.name.as_str()).collect();
    if !unmeasured.is_empty() {
        text.marked("-", &format!("not measured: {}", unmeasured.join(", ")));
    }
}

/// What the scenario measured itself.
pub(super) fn own_metrics(text: &mut Text, summary: &Summary) {
    if summary.metrics.is_empty() {
        return;
    }
    text.heading("Own metrics");
    let without = own::any_without(summary);
    let head = [""].into_iter().chain(own::HEAD).chain(without.then_some(own::NO_NUMBER));
    let head: Vec<&str> = head.collect();
    let mut table = Table::new(&head).dispensable(&["sum", "p90", "count", "mean"]);
    for of in &summary.metrics {
        let mut row = vec![clean(&own::name(of))];
        row.extend(own::figures(of));
        row.extend(without.then(|| text.count(of.no_number)));
        table.row(row);
    }
    text.table(&table);
}
