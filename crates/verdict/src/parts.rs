//! Each label, group, target and kind of sessions by itself: what is rare is nothing in a total.
//!
//! What may fail of the run may fail of each part, beyond chance ([`chance`]): a healthy run of many labels is not told.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use tidemark_record::{LabelTotals, Outcome, Reason, ReasonKind, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{About, Comparison, LoadModel, Metric, Op, Phase, SessionKind, Stream};

use crate::allowed::{Allowed, bounds_errors};
use crate::figure::Measured;
use crate::objectives::defaults;
use crate::text::text;
use crate::{chance, steady, window};

/// A part of a run: the name, and the labels that are it.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// As it stands in a sentence: "`Pay`", "target `cache`".
    pub name: String,
    /// Indices of its labels.
    pub labels: BTreeSet<usize>,
}

/// A part of a run, and what came of it.
struct Part<'a> {
    name: String,
    of: Cow<'a, LabelTotals>,
    is_group: bool,
    /// Requests in each of it.
    steps: f64,
    /// What was cut off by the run's end was none of its failures.
    may_be_cut_off: bool,
}

/// What failed of a label, a group, a target, or a kind of sessions, beyond what may.
pub(super) fn failing(plan: &Plan, measured: &Measured<'_>) -> Vec<Reason> {
    let (labels, groups) = (labels(plan, measured), groups(plan, measured));
    let unions = unions(plan, measured);
    let looks = labels.len() + groups.len() + unions.len();
    let allowed = Allowed::of(plan);
    let told = |part: &Part<'_>| failing_part(part, measured, &allowed, looks);
    let failing: Vec<Reason> = labels.iter().chain(&groups).filter_map(told).collect();
    if failing.is_empty() { unions.iter().filter_map(told).collect() } else { failing }
}

fn failing_part(part: &Part<'_>, measured: &Measured<'_>, allowed: &Allowed, looks: usize) -> Option<Reason> {
    let of = &part.of;
    let spoiled = measured.maybe_spoiled(of, part.is_group);
    let cut_off = if part.may_be_cut_off { of.measured[Outcome::Unfinished as usize] } else { 0 };
    let failed = of.failed().saturating_sub(spoiled.max(cut_off));
    let (due, name) = (of.due(), &part.name);
    let share = allowed.of_due(due as f64 * part.steps) / due as f64;
    if !chance::is_beyond(failed, due, share.min(1.0), looks) {
        return None;
    }
    let what = if part.is_group { "groups" } else { "requests of" };
    Some(match failed == due {
        true => ReasonKind::AllFailed.told(format!("all {due} {what} {name} failed")),
        false => ReasonKind::PartFailed.told(format!(
            "{failed} of {due} {what} {name} failed ({}), which is more than `{}` allows, beyond chance",
            text(Metric::ErrorShare, failed as f64 / due as f64),
            allowed.text
        )),
    })
}

/// Labels without an objective of their own on errors; none where there is only one.
fn labels<'a>(plan: &Plan, measured: &Measured<'a>) -> Vec<Part<'a>> {
    let totals = measured.totals;
    let all = plan.labels.iter().zip(&totals.by_label).zip(0..);
    let judged = all.filter(|((_, of), label)| {
        of.due() > 0 && of.due() < totals.all.due() && !has_own_bound(plan, About::Label(*label))
    });
    let part = |((name, of), label): ((&String, &'a LabelTotals), u16)| Part {
        name: format!("`{name}`"),
        of: Cow::Borrowed(of),
        is_group: false,
        steps: 1.0,
        may_be_cut_off: only_waits(plan, label),
    };
    judged.map(part).collect()
}

/// Groups of which any did well: the others are told by themselves.
fn groups<'a>(plan: &Plan, measured: &Measured<'a>) -> Vec<Part<'a>> {
    let all = plan.groups.iter().zip(&measured.totals.by_group).zip(0..);
    let judged = all.filter(|((_, of), group)| {
        of.measured[Outcome::Ok as usize] > 0 && !has_own_bound(plan, About::Group(*group))
    });
    let part = |((name, of), group): ((&String, &'a LabelTotals), u16)| Part {
        name: format!("`{name}`"),
        of: Cow::Borrowed(of),
        is_group: true,
        steps: steps_of(plan, group),
        may_be_cut_off: true,
    };
    judged.map(part).collect()
}

/// Targets, and kinds of sessions, by the labels that they alone have; of one label it is told by itself.
fn unions<'a>(plan: &Plan, measured: &Measured<'a>) -> Vec<Part<'a>> {
    let part = |Named { name, labels }| Part {
        name,
        may_be_cut_off: labels.iter().any(|label| only_waits(plan, *label as u16)),
        of: Cow::Owned(measured.totals.of_labels(labels)),
        is_group: false,
        steps: 1.0,
    };
    let all = targets_and_kinds(plan).into_iter().map(part);
    all.filter(|part| part.of.due() > 0 && part.of.due() < measured.totals.all.due()).collect()
}

/// Each label by itself.
fn single(plan: &Plan) -> Vec<Named> {
    let labels = plan.labels.iter().enumerate();
    labels.map(|(label, name)| Named { name: format!("`{name}`"), labels: [label].into() }).collect()
}

/// Groups, targets and kinds of sessions, by the labels that they alone have, where those are several.
fn joined(plan: &Plan) -> Vec<Named> {
    let group = |(group, name): (u16, &String)| Named {
        name: format!("group `{name}`"),
        labels: labels_of_group(plan, group),
    };
    let groups = (0..).zip(&plan.groups).map(group).filter(|of| of.labels.len() > 1);
    groups.chain(targets_and_kinds(plan)).collect()
}

fn targets_and_kinds(plan: &Plan) -> Vec<Named> {
    let of_labels = plan.targets_of_labels();
    let targets = plan.target_names().into_iter().enumerate().map(|(target, name)| {
        let labels = (0..of_labels.len()).filter(|label| of_labels[*label] == target).collect();
        Named { name: format!("target `{name}`"), labels }
    });
    let kinds = plan
        .sessions
        .iter()
        .map(|kind| Named { name: format!("sessions `{}`", kind.name), labels: own_labels(plan, kind) });
    targets.chain(kinds).filter(|of| of.labels.len() > 1).collect()
}

/// Labels, and what is made of several, that were due more often than they were answered, so that what waits of them grows:
/// each with the reason, and whether a longer window may say otherwise. What a label tells is not told of its union once more.
pub(super) fn behind(plan: &Plan, measured: &Measured<'_>) -> Vec<(String, bool)> {
    let Some(bound) = achieved_bound(plan) else { return Vec::new() };
    let (totals, streams) = (measured.totals, plan.load.streams());
    let labels_due = totals.by_label.iter().filter(|of| of.due() > 0).count();
    // where the load grows, so does what is under way
    if streams.iter().any(steady::changes) || labels_due < 2 {
        return Vec::new();
    }
    let waits_for_answers = waits_for_answers(plan);
    let is_judged = |of: &Named| {
        let is_due = totals.of_labels(of.labels.iter().copied()).due() > 0;
        is_due && !of.labels.iter().any(|at| waits_for_answers.contains(at) || only_waits(plan, *at as u16))
    };
    let judged = |all: Vec<Named>| -> Vec<Named> { all.into_iter().filter(&is_judged).collect() };
    let (labels, unions) = (judged(single(plan)), judged(joined(plan)));
    let looks = labels_due + unions.len();
    let told = |all: &[Named]| -> Vec<(String, bool)> {
        all.iter().filter_map(|of| part_behind(of, totals, 1.0 - bound, looks)).collect()
    };
    let behind = told(&labels);
    if behind.is_empty() { told(&unions) } else { behind }
}

/// `may_grow`: the share of what is due by which what waits may grow.
fn part_behind(part: &Named, totals: &Totals, may_grow: f64, looks: usize) -> Option<(String, bool)> {
    let window_s = totals.window?.length_s();
    let backlog: Vec<f64> = totals.backlog_of(&part.labels).into_iter().map(|count| count as f64).collect();
    let rises = steady::rises(&backlog) && chance::rises(&backlog, looks);
    let chance = if rises { 0.0 } else { chance::deviations(looks) };
    let achieved = totals.achieved_by_labels(&part.labels, Some(chance));
    if achieved.grown <= may_grow {
        return None;
    }
    let is_short = achieved.grown - (achieved.at_most - achieved.share) <= may_grow;
    let due = totals.of_labels(part.labels.iter().copied()).due();
    let due = text(Metric::Rate, due as f64 / window_s);
    let share = text(Metric::AchievedShare, achieved.share);
    let why = match is_short {
        true => window::is_too_short_for(&achieved, window_s),
        false => "requests without an answer piled up over the whole window".into(),
    };
    Some((format!("{} fell behind: {share} was achieved, of {due}: {why}", part.name), is_short))
}

/// What is judged of silences beside the whole: each label, and what is joined from several. Not where the load itself changes
/// or faults are asked for, nor what only waits for the server, or has an objective on its errors.
pub fn judged_by_silence(plan: &Plan) -> (Vec<Named>, Vec<Named>) {
    let streams = plan.load.streams();
    let length = |phases: &[Phase]| phases.iter().map(|phase| phase.duration).sum::<Duration>();
    let is_alike = |one: &Stream<'_>| length(one.phases) == length(streams[0].phases);
    if !plan.faults.is_empty() || streams.iter().any(steady::changes) || !streams.iter().all(is_alike) {
        return (Vec::new(), Vec::new());
    }
    let is_left_out = |label: &usize| {
        let label = *label as u16;
        only_waits(plan, label) || has_own_bound(plan, About::Label(label))
    };
    let judged = |all: Vec<Named>| all.into_iter().filter(|of| !of.labels.iter().any(is_left_out)).collect();
    (judged(single(plan)), judged(joined(plan)))
}

/// The labels of the kinds whose users wait for answers.
fn waits_for_answers(plan: &Plan) -> BTreeSet<usize> {
    let streams = plan.load.streams();
    let closed =
        streams.iter().filter(|stream| matches!(stream.model, LoadModel::Closed | LoadModel::Thinking(_)));
    let of: Vec<Option<usize>> = closed.map(|stream| stream.kind).collect();
    let own = |kind: usize| plan.load.kinds.iter().any(|own| own.kind == kind).then_some(kind);
    let kinds = plan.sessions.iter().enumerate().filter(|(kind, _)| of.contains(&own(*kind)));
    kinds.flat_map(|(_, kind)| labels_of(plan, kind)).collect()
}

/// Labels that nobody had a good answer of, though users waited for one the whole window, where fewer may fail.
pub(super) fn unanswered(plan: &Plan, totals: &Totals) -> Vec<String> {
    let allowed = Allowed::of(plan);
    let closed = waits_for_answers(plan);
    let labels = plan.labels.iter().zip(&totals.by_label).zip(0u16..);
    let told = labels.filter(|((_, of), label)| {
        let is_good = of.measured[Outcome::Ok as usize] > 0
            || of.good_in_window > 0
            || totals.outlasting_of(*label) > 0;
        let is_judged = closed.contains(&usize::from(*label))
            && !only_waits(plan, *label)
            && !has_own_bound(plan, About::Label(*label));
        let open = || totals.backlog_of(&[usize::from(*label)].into());
        !is_good
            && is_judged
            && of.ended > 0
            && open().iter().min().is_some_and(|least| *least > 0 && allowed.is_exceeded(1.0, *least))
    });
    told.map(|((name, _), _)| format!("`{name}`")).collect()
}

/// The share of what is offered that is to be achieved, where anything says so.
fn achieved_bound(plan: &Plan) -> Option<f64> {
    let is_least = |comparison| matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual);
    let defaults = defaults(plan);
    let all = plan.objectives.iter().chain(&defaults);
    let of_it = all.filter(|of| of.metric == Metric::AchievedShare && is_least(of.comparison));
    of_it.map(|of| of.bound).reduce(f64::max)
}

/// Whether an objective says how much of a label, or of a group, may fail.
fn has_own_bound(plan: &Plan, about: About) -> bool {
    plan.objectives.iter().any(|of| of.about == about && bounds_errors(of))
}

/// Whether all requests of a label wait for what a server tells by itself.
fn only_waits(plan: &Plan, label: u16) -> bool {
    let mut of_label = plan.requests.iter().filter(|request| request.label == label).peekable();
    of_label.peek().is_some() && of_label.all(|request| request.ask.is_wait())
}

fn labels_of(plan: &Plan, kind: &SessionKind) -> BTreeSet<usize> {
    plan.labels_of(kind).collect()
}

/// The labels that no other kind has.
fn own_labels(plan: &Plan, kind: &SessionKind) -> BTreeSet<usize> {
    let others = plan.sessions.iter().filter(|other| other.name != kind.name);
    let of_others: BTreeSet<usize> = others.flat_map(|other| labels_of(plan, other)).collect();
    labels_of(plan, kind).difference(&of_others).copied().collect()
}

/// How many requests are in a group.
fn steps_of(plan: &Plan, group: u16) -> f64 {
    let in_kind = |kind: &SessionKind| requests_of_group(kind, group).filter(|(_, within)| *within).count();
    plan.sessions.iter().map(in_kind).max().unwrap_or(0).max(1) as f64
}

/// The labels of a group that no request outside of it has.
fn labels_of_group(plan: &Plan, group: u16) -> BTreeSet<usize> {
    let all = plan.sessions.iter().flat_map(|kind| requests_of_group(kind, group));
    let label = |request: u16| plan.requests.get(usize::from(request)).map(|of| usize::from(of.label));
    let (mut inside, mut outside) = (BTreeSet::new(), BTreeSet::new());
    for (request, within) in all {
        if within { &mut inside } else { &mut outside }.extend(label(request));
    }
    inside.difference(&outside).copied().collect()
}

/// The requests of a kind, and whether each is in this group.
fn requests_of_group(kind: &SessionKind, group: u16) -> impl Iterator<Item = (u16, bool)> {
    let (mut within, mut inner) = (false, 0);
    kind.ops.iter().filter_map(move |op| {
        match op {
            Op::BeginGroup(begun) if *begun == group => within = true,
            Op::BeginGroup(_) if within => inner += 1,
            Op::EndGroup if within && inner > 0 => inner -= 1,
            Op::EndGroup => within = false,
            Op::Request(request) => return Some((*request, within)),
            _ => {}
        }
        None
    })
}
