//! Whether the connections that a scenario allows were its bound, and not the system.
//!
//! A request that waits for a free connection until its time is up is not sent, or too late: nothing is known of what the
//! system would have said. A slow system lets requests wait in the same way, as its answers keep the connections. It is told
//! apart by how fast it was at its fastest: if these connections carried the load then, the system became slower. So it
//! did if sessions think while they hold a connection, and requests that had one at once failed, too.

use tidemark_record::{LabelTotals, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::Op;

use crate::objectives::has_a_rate;

/// Whether requests failed or waited for want of a connection, as fewer are allowed than this load takes.
pub(super) fn are_too_few(plan: &Plan, totals: &Totals) -> bool {
    let Some(window_s) = totals.window.map(|window| window.length_s()).filter(|length_s| *length_s > 0.0)
    else {
        return false;
    };
    let limits = &plan.limits;
    let unconnected = totals.all.unconnected;
    if !limits.connections_named || (unconnected == 0 && !has_a_rate(&plan.load)) {
        return false;
    }
    // each target has as many
    let places = limits.connections as f64 * limits.pipeline.max(limits.streams) as f64;
    let targets = plan.targets_of_labels();
    let mut fastest_us = vec![0.0; plan.target_names().len().max(1)];
    for (of, target) in totals.by_label.iter().zip(targets) {
        fastest_us[target] += of.due() as f64 * of.fastest_us.unwrap_or(0) as f64;
    }
    // of sessions that never began nobody knows the label
    let of_labels: u64 = totals.by_label.iter().map(LabelTotals::due).sum();
    let longest_us = fastest_us.into_iter().fold(0.0, f64::max);
    let fastest_s = longest_us / 1e6 * totals.all.due() as f64 / of_labels.max(1) as f64;
    let thinks = plan.sessions.iter().flat_map(|kind| &kind.ops).any(|op| matches!(op, Op::Think(_)));
    let only_waited = unconnected > 0 && totals.all.failed() == unconnected;
    fastest_s > places * window_s || (thinks && only_waited)
}

/// The same, in words.
pub(super) fn told(plan: &Plan, totals: &Totals) -> String {
    let count = totals.all.unconnected;
    let waited = match count {
        0 => "requests waited for one".to_owned(),
        1 => "1 request failed that waited for one".to_owned(),
        count => format!("{count} requests failed that waited for one"),
    };
    format!(
        "the scenario's `limits: connections: {}` was the bound: {waited}; give more",
        plan.limits.connections
    )
}
