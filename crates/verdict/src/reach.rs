//! Steps that no session came to.
//!
//! A step that every session comes to and none did is a part of the scenario that was not measured. One behind a choice
//! may be left out by chance: what counts is how many sessions of its kind began, and how many of these should have come to
//! it. A variable that every session gets holds at times: a condition on it that never did in many sessions is told, too. One
//! on a variable that no answer ever had cannot hold. How often another condition holds nobody knows, and a note alone says
//! that its steps were left out. An objective on a label says what its author means.

use std::collections::{BTreeMap, BTreeSet};

use tidemark_record::NotFound;
use tidemark_record::Totals;
use tidemark_scenario::plan::{About, Op, SessionKind, SlotIndex, WhenMissing};
use tidemark_scenario::{Expr, Plan};

use crate::chance;
use crate::labels::{labels_of_failures, labels_of_the_load};

/// How often a variable is believed to be set at least, where its scenario does not expect that it is missing.
const CONDITION: f64 = 0.1;
/// Sessions may not come to the end of more rounds than these while the load is on.
const ROUNDS_MAX: i64 = 100;

/// Labels that no request was made of though sessions should have come to them.
pub(super) fn never(plan: &Plan, totals: &Totals, not_found: &[NotFound]) -> Vec<String> {
    let (loaded, failures) = (labels_of_the_load(plan), labels_of_failures(plan));
    let is_judged = |label: u16, name: &str| {
        let has_own = plan.objectives.iter().any(|of| of.about == About::Label(label));
        loaded.contains(name) && !failures.contains(name) && !has_own
    };
    let labels = || plan.labels.iter().zip(&totals.by_label).zip(0u16..);
    let unreached: Vec<u16> = labels()
        .filter(|((name, of), label)| of.ended == 0 && of.due() == 0 && is_judged(*label, name))
        .map(|(_, label)| label)
        .collect();
    let expected = expected(plan, totals, not_found);
    let is_missing = |label: &u16| match expected.get(label) {
        Some((sessions, share)) if *share >= 1.0 => *sessions >= 1.0,
        Some((sessions, share)) => chance::is_too_rare(sessions * share, plan.labels.len()),
        None => false,
    };
    let missing = unreached.into_iter().filter(is_missing);
    missing.map(|label| plan.labels[usize::from(label)].clone()).collect()
}

/// By label: how many sessions there were of the kind that has it, and the share of them that should have come to it.
fn expected(plan: &Plan, totals: &Totals, not_found: &[NotFound]) -> BTreeMap<u16, (f64, f64)> {
    let begun = |kind: usize| totals.sessions_begun.get(kind).copied().unwrap_or(0) as f64;
    let is_drawn = |kind: usize| !plan.load.kinds.iter().any(|own| own.kind == kind);
    let all_drawn: f64 = (0..plan.sessions.len()).filter(|kind| is_drawn(*kind)).map(begun).sum();
    let weights = plan.sessions.iter().enumerate().filter(|(kind, _)| is_drawn(*kind));
    let weights: f64 = weights.map(|(_, kind)| f64::from(kind.weight)).sum();
    let mut may_be_missing = BTreeSet::new();
    for extraction in plan.requests.iter().flat_map(|request| &request.extractions) {
        if matches!(extraction.when_missing, WhenMissing::Clear | WhenMissing::Keep) {
            may_be_missing.insert(extraction.slot);
        }
    }
    let mut expected: BTreeMap<u16, (f64, f64)> = BTreeMap::new();
    for (index, kind) in plan.sessions.iter().enumerate() {
        // a kind of which none began is itself drawn by chance
        let (sessions, drawn) = match begun(index) {
            0.0 if is_drawn(index) && weights > 0.0 => (all_drawn, f64::from(kind.weight) / weights),
            sessions => (sessions, 1.0),
        };
        let unset = unset(plan, kind, not_found);
        for (op, share) in kind.ops.iter().zip(shares(&kind.ops, &may_be_missing, &unset)) {
            let Op::Request(request) = op else { continue };
            let Some(request) = plan.requests.get(usize::from(*request)) else { continue };
            let this = (sessions, share * drawn);
            let known = expected.entry(request.label).or_insert(this);
            if known.0 * known.1 < this.0 * this.1 {
                *known = this;
            }
        }
    }
    expected
}

/// The variables of a kind that were never set, as no answer had what is extracted into them and nothing else sets them. Where
/// the scenario says that they may be missing they are none.
fn unset(plan: &Plan, kind: &SessionKind, not_found: &[NotFound]) -> BTreeSet<SlotIndex> {
    let (mut never, mut maybe) = (BTreeSet::new(), BTreeSet::new());
    for op in &kind.ops {
        match op {
            Op::Set { slot, .. } | Op::Take { row: slot, .. } => {
                maybe.insert(*slot);
            }
            Op::Request(request) => {
                let Some(request) = plan.requests.get(usize::from(*request)) else { continue };
                let label = plan.labels.get(usize::from(request.label));
                for extraction in &request.extractions {
                    let name = kind.slot_names.get(usize::from(extraction.slot));
                    let is_never = not_found
                        .iter()
                        .any(|of| of.found == 0 && Some(&of.label) == label && Some(&of.variable) == name);
                    if is_never { &mut never } else { &mut maybe }.insert(extraction.slot);
                }
            }
            _ => {}
        }
    }
    never.difference(&maybe).copied().collect()
}

/// Variables that no answer had, and conditions hang on: the label whose answers should have them, the variable, in how many
/// answers it was not found, and the conditions.
pub(super) fn kept_out<'n>(plan: &Plan, not_found: &'n [NotFound]) -> Vec<(&'n NotFound, Vec<String>)> {
    let mut all: Vec<(&NotFound, Vec<String>)> = Vec::new();
    for kind in &plan.sessions {
        let unset = unset(plan, kind, not_found);
        for op in &kind.ops {
            let Op::JumpUnless { condition, .. } = op else { continue };
            let named = condition.variables().into_iter().filter(|slot| unset.contains(slot));
            for name in named.filter_map(|slot| kind.slot_names.get(usize::from(slot))) {
                let source = condition.source().to_string();
                for of in not_found.iter().filter(|of| of.found == 0 && of.variable == *name) {
                    match all.iter_mut().find(|(known, _)| *known == of) {
                        Some((_, conditions)) if conditions.contains(&source) => {}
                        Some((_, conditions)) => conditions.push(source.clone()),
                        None => all.push((of, vec![source.clone()])),
                    }
                }
            }
        }
    }
    all
}

/// By operation: the share of sessions that come to it, 0 to 1; at least where that hangs on conditions. Variables are
/// missing at times, as the scenario expects, or were never set: steps behind a condition on such a one were to be reached.
fn shares(ops: &[Op], may_be_missing: &BTreeSet<SlotIndex>, unset: &BTreeSet<SlotIndex>) -> Vec<f64> {
    let is_unset = |condition: &Expr| condition.never_holds_without(&|slot| unset.contains(&slot));

    let mut shares = vec![0.0_f64; ops.len() + 1];
    shares[0] = 1.0;
    // where what stands before `at` jumps over it, sessions go on behind, whichever way they took
    let beyond =
        |at: usize, from: usize| match at.checked_sub(1).filter(|before| *before > from).map(|i| &ops[i]) {
            Some(Op::Jump(end)) if *end as usize > at => Some(*end as usize),
            _ => None,
        };
    for (i, op) in ops.iter().enumerate() {
        let share = shares[i];
        let mut come = |at: usize, share: f64| {
            if let Some(known) = shares.get_mut(at).filter(|known| at > i && **known < share) {
                *known = share;
            }
        };
        match op {
            Op::Jump(to) => come(*to as usize, share),
            Op::JumpUnless { condition, to } => {
                let (to, holds) = (*to as usize, condition.chance());
                let is_loop = |op: &Op| matches!(op, Op::Jump(begin) if *begin as usize <= i);
                if let Some(rounds) =
                    condition.rounds().filter(|_| ops.get(to.wrapping_sub(1)).is_some_and(is_loop))
                {
                    come(i + 1, if rounds > 0 { share } else { 0.0 });
                    come(to, if rounds <= ROUNDS_MAX { share } else { 0.0 });
                    continue;
                }
                let believed = match condition.as_variable() {
                    _ if is_unset(condition) => 1.0,
                    Some(slot) if !may_be_missing.contains(&slot) => CONDITION,
                    _ => 0.0,
                };
                come(i + 1, share * holds.unwrap_or(believed));
                match beyond(to, i) {
                    Some(end) => {
                        come(to, share * holds.map_or(believed, |holds| 1.0 - holds));
                        come(end, share);
                    }
                    None => come(to, share),
                }
            }
            Op::Choose { ways, total, .. } => {
                let mut from = 0;
                for (bound, to) in ways {
                    come(*to as usize, share * f64::from(bound - from) / f64::from((*total).max(1)));
                    from = *bound;
                    if let Some(end) = beyond(*to as usize, i) {
                        come(end, share);
                    }
                }
                if let [(_, only)] = &ways[..] {
                    come(*only as usize, share);
                }
            }
            Op::End => {}
            Op::Request(_)
            | Op::Set { .. }
            | Op::Take { .. }
            | Op::Think(_)
            | Op::BeginGroup(_)
            | Op::EndGroup
            | Op::Refuse { .. }
            | Op::Measure { .. }
            | Op::Parallel { .. }
            | Op::Code { .. }
            | Op::Program
            // nearly always good: what a failure leads to is expected of no session
            | Op::JumpUnlessGood(_) => come(i + 1, share),
        }
    }
    shares.truncate(ops.len());
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shares_of(steps: &str) -> Vec<(String, f64)> {
        let text = format!("sessions: {{a: {{steps: [{steps}]}}}}\nload: {{users: 1, hold: 1s}}\n");
        let plan = tidemark_scenario::load_text("t.yaml", &text, std::path::Path::new("."), &[]).unwrap();
        let ops = &plan.sessions[0].ops;
        let no_slots = BTreeSet::new();
        let requests = ops.iter().zip(shares(ops, &no_slots, &no_slots)).filter_map(|(op, share)| match op {
            Op::Request(request) => Some((plan.requests[usize::from(*request)].label, share)),
            _ => None,
        });
        requests.map(|(label, share)| (plan.labels[usize::from(label)].clone(), share)).collect()
    }

    #[test]
    fn how_many_sessions_should_come_to_a_step() {
        let shares =
            |steps: &str| -> Vec<f64> { shares_of(steps).into_iter().map(|(_, share)| share).collect() };
        assert_eq!(shares("GET: /a, {GET: /b}".replace("GET: /a,", "{GET: /a},").as_str()), [1.0, 1.0]);
        let login = "{GET: /a, extract: {token: $.token}}";
        assert_eq!(
            shares(&format!("{login}, {{when: \"${{token}}\", steps: [{{GET: /b}}]}}, {{GET: /c}}")),
            [1.0, 0.1, 1.0]
        );
        assert_eq!(
            shares(&format!(
                "{login}, {{when: \"${{token}}\", steps: [{{GET: /b}}], else: [{{GET: /c}}]}}, {{GET: /d}}"
            )),
            [1.0, 0.1, 0.1, 1.0]
        );
        assert_eq!(shares("{sometimes: 1%, steps: [{GET: /a}]}, {GET: /b}"), [0.01, 1.0]);
        assert_eq!(
            shares("{choose: [{weight: 3, steps: [{GET: /a}]}, {weight: 1, steps: [{GET: /b}]}]}, {GET: /c}"),
            [0.75, 0.25, 1.0]
        );
        assert_eq!(shares("{repeat: 3, steps: [{GET: /a}]}, {GET: /b}"), [1.0, 1.0]);
        assert_eq!(
            shares("{repeat: 1000, steps: [{GET: /a}]}, {GET: /b}"),
            [1.0, 0.0],
            "the load may end before"
        );
        assert_eq!(shares(&format!("{login}, {{repeat: \"${{token}}\", steps: [{{GET: /b}}]}}")), [1.0, 0.1]);
    }
}
