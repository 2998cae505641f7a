//! What a reader must know before the figures.

use tidemark_record::summary::Summary;
use tidemark_record::{NotFound, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::Metric;

use crate::objectives::has_a_rate;
use crate::text::text;
use crate::{reach, window};

/// More answers than were due by this share are told.
const BACKLOG_TOLD: f64 = 0.05;

/// What a reader must know before the figures.
pub fn warnings(plan: &Plan, totals: &Totals, not_found: &[NotFound]) -> Vec<String> {
    let kept_out = reach::kept_out(plan, not_found).into_iter().map(|(of, conditions)| {
        let NotFound { label, variable, answers, .. } = of;
        let answers = if *answers == 1 { "its one answer".into() } else { format!("all its {answers} answers") };
        let conditions: Vec<String> = conditions.iter().map(|text| format!("`{text}`")).collect();
        format!(
            "`{label}`: nothing was found for \"{variable}\" in {answers}, so that it was never set: {} had no value to look at; \
             check the extraction, or write `when missing: clear` if this may be",
            conditions.join(", ")
        )
    });
    let bodies = totals.changed_bodies().map(|(label, first, last)| {
        let did = if last < first { "shrank" } else { "grew" };
        format!(
            "the good answers of `{label}` {did} over the measured window, from {first:.0} to {last:.0} bytes on average: add a check on the body if they may be wrong"
        )
    });
    kept_out.chain(window::answered_behind(totals)).chain(bodies).collect()
}

/// What the answers of the window say of the time before it, where something is due at its own time: more came than were
/// due, as they were due before.
pub fn backlog_before(plan: &Plan, summary: &Summary) -> Option<String> {
    let (came, due) = (summary.achieved_per_s, summary.offered_per_s);
    let is_much = has_a_rate(&plan.load) && came > due * (1.0 + BACKLOG_TOLD);
    is_much.then(|| {
        format!(
            "{} of what was answered in the measured window was due before it, as the load had left a backlog by then: \
             a longer warm-up leaves none",
            text(Metric::Rate, came - due)
        )
    })
}
