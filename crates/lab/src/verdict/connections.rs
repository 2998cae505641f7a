//! Whether the connections that a scenario allows were its bound, and not the system.
//!
//! A request that waits for a free connection until its time is up is not sent, or too late: nothing is known of what the
//! system would have said. A slow system lets requests wait in the same way, as its answers keep the connections. It is told
//! apart by how fast it was at its fastest: if these connections carried the load then, the system became slower. So it
//! did if sessions think while they hold a connection, and requests that had one at once failed, too.

use tidemark_record::{LabelTotals, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::Op;

/// Whether requests failed for want of a connection, as fewer are allowed than this load takes.
pub(super) fn are_too_few(plan: &Plan, totals: &Totals) -> bool {
    let Some(window_s) = totals.window.map(|window| window.length_s()).filter(|length_s| *length_s > 0.0)
    else {
        return false;
    };
    let limits = &plan.limits;
    if !limits.connections_named || totals.all.unconnected == 0 {
        return false;
    }
    let places = limits.connections as f64 * limits.pipeline.max(limits.streams) as f64;
    // of sessions that never began nobody knows the label
    let of_labels: u64 = totals.by_label.iter().map(LabelTotals::due).sum();
    let fastest_us: f64 =
        totals.by_label.iter().map(|of| of.due() as f64 * of.fastest_us.unwrap_or(0) as f64).sum();
    let fastest_s = fastest_us / 1e6 * totals.all.due() as f64 / of_labels.max(1) as f64;
    let thinks = plan.sessions.iter().flat_map(|kind| &kind.ops).any(|op| matches!(op, Op::Think(_)));
    let only_waited = totals.all.failed() == totals.all.unconnected;
    fastest_s > places * window_s || (thinks && only_waited)
}

/// The same, in words.
pub(super) fn told(plan: &Plan, totals: &Totals) -> String {
    let count = totals.all.unconnected;
    let what = if count == 1 { "request" } else { "requests" };
    format!(
        "the scenario's `limits: connections: {}` was the bound: {count} {what} failed that waited for one; give more",
        plan.limits.connections
    )
}
