//! Which labels a load can show.

use std::collections::BTreeSet;

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{EventStreamStep, RequestKind, RequestPlan};

/// The labels that the load can show; those that only `prepare` has are in no figure.
pub fn labels_of_the_load(plan: &Plan) -> BTreeSet<&str> {
    let has_load = |index: usize| plan.load.kinds.iter().any(|own| own.kind == index);
    let sessions = plan.sessions.iter().enumerate();
    let loaded = sessions.filter(|(index, kind)| kind.weight > 0 || has_load(*index));
    let labels = loaded.flat_map(|(_, kind)| plan.labels_of(kind));
    labels.filter_map(|label| plan.labels.get(label)).map(String::as_str).collect()
}

/// Labels that only a failure can have, as closing an event stream sends no request unless the stream is gone; and those of
/// a script, of which nobody knows which it comes to.
pub fn labels_of_failures(plan: &Plan) -> BTreeSet<&str> {
    let leaves =
        |request: &&RequestPlan| matches!(request.ask, RequestKind::EventStream(EventStreamStep::Close));
    let label = |request: &RequestPlan| plan.labels.get(usize::from(request.label)).map(String::as_str);
    let others: BTreeSet<_> =
        plan.requests.iter().filter(|request| !leaves(request)).filter_map(label).collect();
    let all = plan.requests.iter().filter(leaves).filter_map(label);
    let of_kind = |kind| plan.labels_of(kind).filter_map(|label| plan.labels.get(label)).map(String::as_str);
    let scripted =
        plan.sessions.iter().filter(|kind| kind.script.as_ref().is_some_and(|of| !of.labels.is_empty()));
    all.chain(scripted.flat_map(of_kind)).filter(|label| !others.contains(label)).collect()
}
