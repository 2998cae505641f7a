//! What a run is worth: its objectives, and whether the driver's own fault could change the answer.
//!
//! # The rule
//!
//! Every objective is decided twice: by what was measured, and by the same with the driver's own share taken out
//! (`figure::Both`). Where both say the same that is the answer, whatever the driver did. Where they differ there is
//! none, and the run is `invalid: driver-bound`, with the objective and both values.
//!
//! | status | when |
//! | --- | --- |
//! | `fail` | an objective is missed either way; the system, or a store, ended or stopped answering by itself; or for one of the other reasons in docs/verdict.md |
//! | `invalid` | else, where an objective is not decided, as of too few requests or of a window shorter than its answers; where a step was never reached; or whose fault a silence is, as of the driver or of a machine without cores; nothing was due in the measured window for another reason; a fault that was asked for could not be carried out, or not be put right within the load; or, whatever failed, the file of a body became shorter |
//! | `pass` | else |
//!
//! But for that file, `fail` comes first: a driver that was late can slow an answer, but it cannot make a server refuse a connection.
//!
//! # What nobody asked for
//!
//! Where the scenario has no objective on the matter, a run is judged by [`defaults`]: `errors < 0.1%`, and for an open
//! load `achieved > 99% of offered`. They are shown as any other. Where faults are asked for, what is felt of them does
//! not count for these two, if anything else was measured; objectives that somebody wrote are about all of it.

mod allowed;
mod chance;
mod connections;
mod driver;
mod few;
mod figure;
mod machine;
mod own;
mod parts;
mod phase;
mod reach;
mod users;
mod window;

pub(crate) use chance::is_too_rare;
pub use driver::limits;
pub(crate) use driver::{CORE_WAIT_SHARE_MAX, NO_CORE_SHARE};
pub(crate) use parts::{Named, judged_by_silence};

use std::time::Duration;

use tidemark_drive::NotFound;
use tidemark_record::manifest::{ObjectiveResult, Undecided};
use tidemark_record::summary::{BOTTLENECK, Process, Status, Summary, Verdict};
use tidemark_record::{Reason, ReasonKind, Totals};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{About, Comparison, Load, LoadModel, Metric, Objective};

use crate::silence::{Failure, Outage};
use allowed::Allowed;
use figure::{Both, Measured};
use users::Lost;

/// What a run is judged by.
pub struct Evidence<'a> {
    /// What was asked for.
    pub plan: &'a Plan,
    /// What was counted.
    pub totals: &'a Totals,
    /// The same in few numbers, with what [limited the driver](limits).
    pub summary: &'a Summary,
    /// What was counted while no fault was felt, where there are faults.
    pub undisturbed: Option<&'a Totals>,
    /// How the system ended, if it did so by itself.
    pub system_ended: Option<&'a str>,
    /// How it, or a part of it, stopped answering, as far as the driver heard.
    pub outages: &'a [Outage],
    /// What no answer had though steps extract it.
    pub not_found: &'a [NotFound],
    /// Whether the driving threads never sleep.
    pub spin: bool,
    /// Cores that what the run started may use.
    pub cores: usize,
    /// Whether it is one of several that say something together: a trial of a search, a round. Alone it may have too few
    /// requests then, or too little time to come to every step.
    pub is_part: bool,
}

/// The verdict on a run, and every objective with what was measured, those that nobody asked for last.
pub fn judge(evidence: &Evidence<'_>) -> (Verdict, Vec<ObjectiveResult>) {
    let Evidence { plan, totals, summary, .. } = *evidence;
    let limits = &summary.driver.limits;
    let is_closed = plan.load.streams().iter().any(|stream| stream.model.is_closed());
    let is_starved = driver::is_starved(summary, totals, &plan.load, evidence.spin);
    // a search asks how much the system takes over as many connections as the scenario allows
    let lacks_connections = !evidence.is_part && connections::are_too_few(plan, totals);
    let measured = |totals| {
        Measured::new(totals, &summary.driver, is_closed, is_starved).lacking_connections(lacks_connections)
    };
    let all = measured(totals);
    let judged = |objective: &Objective| match phase::of(objective, plan, totals) {
        Some((name, of)) => phase::undecided(objective, name, of).unwrap_or_else(|| {
            let of_phase = measured(of).of_phase(name);
            result(objective, &of_phase, evidence.is_part)
        }),
        None => result(objective, &all, evidence.is_part),
    };
    let mut results: Vec<ObjectiveResult> = plan.objectives.iter().map(judged).collect();
    let apart = evidence.undisturbed.filter(|undisturbed| undisturbed.all.due() > 0);
    let judged = apart.unwrap_or(totals);
    let allowed = if judges_errors(plan) { 0.0 } else { Allowed::of(plan).of_due(judged.all.due() as f64) };
    let undisturbed = measured(judged).forgiving(allowed);
    results.extend(defaults(plan).into_iter().map(|objective| {
        let mut of_it = result(&objective, &undisturbed, evidence.is_part);
        if evidence.undisturbed.is_some() {
            let whole = result(&objective, &all, evidence.is_part).measured;
            of_it.measured += &match (apart, whole == of_it.measured) {
                (None, _) => ", all of it within faults".into(),
                (Some(_), true) => ", outside of faults".into(),
                (Some(_), false) => format!(", outside of faults; {whole} with them"),
            };
        }
        ObjectiveResult { default: true, ..of_it }
    }));
    // what the ledger decides is known only once it was held against the store: `verify`
    let of_the_ledger =
        |text: &str| plan.objectives.iter().any(|of| of.text == text && of.metric.is_of_the_ledger());
    // of nothing there is no share that could be too large
    let is_empty = totals.all.due() == 0;
    if is_empty && !limits.is_empty() {
        // a driver that was held up may be why
        let unmet = results.iter_mut().filter(|of| !of.met && !of.default && !of_the_ledger(&of.objective));
        unmet.for_each(|of| (of.undecided, of.undecided_by) = (true, Some(Undecided::DriverBound)));
    }
    let not_decided = |results: &[ObjectiveResult], by_driver: bool| -> Vec<Reason> {
        let undecided = results
            .iter()
            .filter(|of| of.undecided && (of.undecided_by == Some(Undecided::DriverBound)) == by_driver);
        let told = |of: &ObjectiveResult| {
            let says = format!("{} is not decided: {}", of.objective, of.measured);
            ReasonKind::NotDecided.of_objective(&of.objective, says)
        };
        undecided.map(told).collect()
    };
    let mut undecided = not_decided(&results, true);
    let mut unknown = not_decided(&results, false);
    let mut machine_bound = machine_bound(evidence, &mut results);

    let outages = evidence.outages.iter().filter(|_| evidence.system_ended.is_none());
    let (heard, unheard): (Vec<&Outage>, Vec<&Outage>) = outages.partition(|outage| outage.is_heard());
    let ended = evidence.system_ended.into_iter().map(|told| ReasonKind::SystemEnded.told(told));
    let mut failed: Vec<Reason> = ended.collect();
    let mut machine_silent: Vec<String> = Vec::new();
    let mut silent = Vec::new();
    let mut was_bound = false;
    for outage in heard {
        if lacks_connections && outage.failed_by == Failure::TimedOut {
            was_bound = true;
            continue;
        }
        match silent_for_want_of_a_core(evidence, outage) {
            // of several silences the process is named once
            Some(told) => told.into_iter().for_each(|told| push_once(&mut machine_silent, told)),
            None => silent.push(ReasonKind::Silent.told(&outage.reason)),
        }
    }
    failed.extend(few(silent, "were silent"));
    let missed = results.iter().filter(|of| !of.met && !of.undecided && !of_the_ledger(&of.objective));
    let missed = missed.filter(|of| !(is_empty && of.default));
    failed.extend(missed.map(missed_objective));
    let failing = parts::failing(plan, &undisturbed);
    was_bound |= results.iter().any(|of| of.undecided_by == Some(Undecided::Connections));
    if lacks_connections && failing.is_empty() {
        let as_counted = measured(judged).lacking_connections(false).forgiving(allowed);
        was_bound |= !parts::failing(plan, &as_counted).is_empty();
    }
    failed.extend(few(failing, "failed as often"));
    if judges_errors(plan) {
        let is_judged = |index: usize| {
            u16::try_from(index).is_ok_and(|index| !is_allowed_to_fail(plan, About::Group(index)))
        };
        let failing = undisturbed.failing_groups().filter(|(group, ..)| is_judged(*group));
        failed.extend(failing.map(|(group, due, never_ended)| {
            match (&plan.groups[group], never_ended) {
                (name, true) => ReasonKind::PartFailed
                    .told(format!("group `{name}` never ended within the load and its drain, {due} times")),
                (name, false) => ReasonKind::AllFailed.told(format!("all {due} groups `{name}` failed")),
            }
        }));
    }
    let is_behind = results.iter().any(|of| !of.met && of.objective == ACHIEVED);
    let behind = if is_behind { Vec::new() } else { parts::behind(plan, &undisturbed) };
    let is_short_of_cores = short_of_cores(evidence, &summary.processes);
    for (told, is_short_window) in behind {
        match is_short_of_cores {
            _ if is_short_window && evidence.is_part => {}
            _ if is_short_window => unknown.push(ReasonKind::ShortWindow.told(told)),
            _ if lacks_connections => {
                was_bound = true;
                unknown.push(ReasonKind::Connections.told(told));
            }
            _ if undisturbed.limited => undecided.push(told.into()),
            Some(process) => {
                machine_bound.push(told);
                push_once(&mut machine_bound, machine::in_words(process, summary));
            }
            None => failed.push(ReasonKind::FellBehind.told(told)),
        }
    }
    // what a fault does to users is asked for
    match users::lost(plan, &all).filter(|_| evidence.undisturbed.is_none() && !is_empty) {
        Some(Lost::Failed(told)) => failed.push(ReasonKind::UsersWaited.told(told)),
        Some(Lost::MaybeDriver(told)) => undecided.push(told.into()),
        Some(Lost::ShortWindow(told)) if !evidence.is_part => {
            unknown.push(ReasonKind::ShortWindow.told(told));
        }
        Some(Lost::ShortWindow(_)) | None => {}
    }
    let is_decided = undecided.is_empty() && machine_bound.is_empty();
    if !is_empty && is_decided && totals.all.good_in_window == 0 && failed.is_empty() {
        match window::is_shorter_than_answers(totals) {
            true if results.iter().any(|of| of.undecided_by == Some(Undecided::ShortWindow)) => {}
            true => {
                let told = window::is_too_short(summary.measured_s, totals.achieved().fastest_s);
                unknown.retain(|other| *other != told);
                unknown.insert(0, ReasonKind::ShortWindow.told(told));
            }
            false => {
                let told = "no good answer came within the measured window";
                failed.push(ReasonKind::NoGoodAnswer.told(told));
            }
        }
    }
    if !evidence.is_part && !is_empty {
        let never = never_reached(plan, totals, evidence.not_found);
        unknown.extend(never.into_iter().map(|told| ReasonKind::NeverReached.told(told)));
    }
    if was_bound {
        unknown.insert(0, ReasonKind::Connections.told(connections::told(plan, totals)));
    }
    let mut invalid = unknown;
    let mut driver_bound: Vec<String> = Vec::new();
    driver_bound.extend(unheard.iter().map(|outage| {
        let Outage { reason, unheard_share, .. } = outage;
        let waited = unheard_share * 100.0;
        format!(
            "{reason}; or the load generator missed the answers: it had no core for up to {waited:.0}% of that time"
        )
    }));
    let mut is_driver_bound = !undecided.is_empty() || !unheard.is_empty();
    if is_empty {
        let length_s = summary.measured_s;
        let phases = plan.load.streams().into_iter().map(|stream| {
            let measured = stream.phases.iter().filter(|phase| phase.measured);
            measured.map(|phase| phase.duration).sum::<Duration>()
        });
        let none_due = format!("no request was due in the measured window of {length_s:.1}s");
        match all.unanswered(phases.max().unwrap_or_default()) {
            (0, _) => {
                is_driver_bound |= !limits.is_empty();
                invalid.push(ReasonKind::NothingMeasured.told(format!("nothing measured: {none_due}")));
            }
            (count, 0) => {
                is_driver_bound = true;
                driver_bound.push(format!(
                    "{none_due}, as {count} from before it still waited; the load generator may be why"
                ));
            }
            (_, count) => failed.push(ReasonKind::NoGoodAnswer.told(format!(
                "the system gave no good answer in the measured window of {length_s:.1}s: {count} requests sent before it were still waiting and failed"
            ))),
        }
    }
    driver_bound.extend(undecided.iter().map(|of| of.to_string()));
    if is_driver_bound {
        driver_bound.extend(limits.iter().cloned());
    }
    let explained = driver_bound.iter().enumerate();
    let explained = explained.map(|(i, told)| (if i == 0 { BOTTLENECK } else { "" }, told));
    invalid.extend(explained.map(|(means, told)| ReasonKind::DriverBound.told(format!("{means}{told}"))));
    let machine_bound = machine_bound.into_iter().chain(machine_silent);
    invalid.extend(machine_bound.map(|told| ReasonKind::MachineBound.told(told)));
    let never = summary.faults.iter().filter(|fault| fault.begin_us.is_none());
    invalid.extend(never.filter_map(|fault| {
        Some(ReasonKind::Fault.told(format!("no `{}`: {}", fault.fault, fault.error.as_ref()?)))
    }));
    let faults = || plan.faults.iter().zip(&summary.faults);
    let unseen = faults().filter(|(fault, record)| {
        let is_raised = || summary.faults.iter().any(|other| record.is_raised_by(other));
        fault.lasts.is_some() && record.is_not_put_right() && !is_raised()
    });
    invalid.extend(unseen.map(|(_, record)| {
        ReasonKind::Fault.told(format!(
            "`{}`: {} was not ready again before the load ended, so that nothing says how the system goes on; \
             let the load last longer, or leave it a processor to start on",
            record.fault, record.target
        ))
    }));
    // the driver had not what it was to send, whatever came of that
    let changed = plan.changed_files();
    let shorter = changed.iter().filter(|change| change.is_shorter);
    let not_sent =
        |words: &str| ReasonKind::NotAllSent.told(format!("not everything could be sent: {words}"));
    let shorter: Vec<Reason> = shorter.map(|change| not_sent(&change.words)).collect();
    if !shorter.is_empty() {
        invalid.splice(0..0, shorter);
        invalid.append(&mut failed);
    }
    // whoever only computes keeps the driver from everything else, whatever comes of that
    if let Some(told) = driver::only_computed(summary).filter(|_| evidence.system_ended.is_none()) {
        invalid.insert(0, ReasonKind::Computing.told(told));
        invalid.append(&mut failed);
        for of in results.iter_mut().filter(|of| !of_the_ledger(&of.objective)) {
            (of.met, of.undecided, of.undecided_by) = (false, true, Some(Undecided::DriverBound));
        }
    }
    let status = match (failed.is_empty(), invalid.is_empty()) {
        (false, _) => Status::Fail,
        (true, false) => Status::Invalid,
        (true, true) => Status::Pass,
    };
    (Verdict { status, reasons: failed.into_iter().chain(invalid).collect() }, results)
}

/// What is missed in time or in rate is not decided where a process of the run had no core, as others used them: which
/// objectives those are, and why. Nothing where there is no such.
fn machine_bound(evidence: &Evidence<'_>, results: &mut [ObjectiveResult]) -> Vec<String> {
    let Evidence { plan, summary, .. } = *evidence;
    let short = short_of_cores(evidence, &summary.processes).filter(|_| has_a_rate(&plan.load));
    let Some(process) = short else { return Vec::new() };
    let defaults = defaults(plan);
    let metrics = plan.objectives.iter().chain(&defaults).map(|of| of.metric);
    let mut told = Vec::new();
    for (of, metric) in results.iter_mut().zip(metrics) {
        if !of.met && !of.undecided && machine::is_of_time(metric) && of.measured != NOT_MEASURED {
            (of.undecided, of.undecided_by) = (true, Some(Undecided::MachineBound));
            told.push(format!("{} is not decided: {}", of.objective, of.measured));
        }
    }
    if !told.is_empty() {
        told.push(machine::in_words(process, summary));
    }
    told
}

/// That an objective was missed.
pub(crate) fn missed_objective(of: &ObjectiveResult) -> Reason {
    ReasonKind::Missed.of_objective(&of.objective, format!("{} missed: {}", of.objective, of.measured))
}

/// Reasons of labels, groups, targets or kinds of sessions, each of which says the same of another one.
fn few(mut reasons: Vec<Reason>, did: &str) -> Vec<Reason> {
    if let Some(more) = reasons.len().checked_sub(PARTS_TOLD).filter(|more| *more > 0) {
        reasons.truncate(PARTS_TOLD);
        let kind = reasons.first().map_or(ReasonKind::Other, Reason::kind);
        reasons.push(kind.told(format!("{more} more {did}: see the tables by label and group")));
    }
    reasons
}

/// Labels, groups, targets or kinds of sessions of which a verdict tells the same.
const PARTS_TOLD: usize = 5;

fn push_once(reasons: &mut Vec<String>, reason: String) {
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}

/// Why it is not decided whose fault a silence is in which requests timed out: a process of the run had no core meanwhile, as
/// others used them. None where it is.
fn silent_for_want_of_a_core(evidence: &Evidence<'_>, outage: &Outage) -> Option<[String; 2]> {
    let processes = evidence.totals.processes_within(outage.time);
    let process = short_of_cores(evidence, &processes).filter(|_| outage.failed_by == Failure::TimedOut)?;
    let told = format!("{}; or it had no core to answer on", outage.reason);
    Some([told, machine::in_words(process, evidence.summary)])
}

/// Of these processes one that the run started and that had no core, as others used them.
fn short_of_cores<'a>(evidence: &Evidence<'_>, processes: &'a [Process]) -> Option<&'a Process> {
    let watched = evidence.plan.watched_names();
    machine::short_of_cores(processes, evidence.cores, |name| !watched.iter().any(|other| other == name))
}

/// What is said of a figure where there was nothing to measure it on.
const NOT_MEASURED: &str = "not measured";

/// More answers than were due by this share are told.
const BACKLOG_TOLD: f64 = 0.05;

/// The share of requests that may fail where nobody says so: below this.
const DEFAULT_ERROR_SHARE: f64 = 0.001;
/// The objectives that nobody wrote.
const DEFAULT_ERRORS: &str = "errors < 0.1%";
const ACHIEVED: &str = "achieved > 99% of offered";

/// What is said of steps that no session came to.
fn never_reached(plan: &Plan, totals: &Totals, not_found: &[NotFound]) -> Option<String> {
    let never: Vec<String> =
        reach::never(plan, totals, not_found).iter().map(|label| format!("`{label}`")).collect();
    let (verb, it) = if never.len() == 1 { ("was", "it") } else { ("were", "them") };
    (!never.is_empty()).then(|| {
        format!(
            "{} {verb} never requested: check the steps before {it}, or measure longer; the objective `LABEL rate >= 0/s` allows it",
            never.join(", ")
        )
    })
}

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

/// The objectives by which a run is judged though nobody wrote them, as far as the scenario says nothing on the matter.
pub fn defaults(plan: &Plan) -> Vec<Objective> {
    // one that asks for many errors, or for a low rate, asks for nothing that the default would
    let about = |metrics: &[Metric], not: [Comparison; 2]| {
        let mut of_all = plan.objectives.iter().filter(|of| of.about == About::All);
        of_all.any(|of| metrics.contains(&of.metric) && !not.contains(&of.comparison))
    };
    let (at_least, at_most) =
        ([Comparison::Greater, Comparison::GreaterOrEqual], [Comparison::Less, Comparison::LessOrEqual]);
    let objective = |text: &str, metric, comparison, bound| Objective {
        text: text.into(),
        about: About::All,
        metric,
        comparison,
        bound,
        abort_early: false,
    };
    let mut defaults = Vec::new();
    if !about(&[Metric::Errors, Metric::ErrorShare], at_least) {
        defaults.push(objective(DEFAULT_ERRORS, Metric::ErrorShare, Comparison::Less, DEFAULT_ERROR_SHARE));
    }
    if has_a_rate(&plan.load) && !about(&[Metric::AchievedShare, Metric::Rate], at_most) {
        defaults.push(objective(ACHIEVED, Metric::AchievedShare, Comparison::Greater, 0.99));
    }
    defaults
}

/// Whether nobody wrote that more may fail than by default may.
pub fn judges_errors(plan: &Plan) -> bool {
    let of_all = plan.objectives.iter().filter(|of| of.about == About::All);
    defaults(plan).iter().any(|of| of.metric == Metric::ErrorShare) || of_all.clone().any(is_as_strict)
}

/// Whether an objective allows no more failures than the default.
fn is_as_strict(objective: &Objective) -> bool {
    let is_bound = !matches!(objective.comparison, Comparison::Greater | Comparison::GreaterOrEqual);
    is_bound
        && match objective.metric {
            Metric::ErrorShare => objective.bound <= DEFAULT_ERROR_SHARE,
            Metric::Errors => objective.bound <= 1.0,
            _ => false,
        }
}

/// Whether somebody wrote how much of a label, or of a group, may fail.
fn is_allowed_to_fail(plan: &Plan, about: About) -> bool {
    let of_it = plan.objectives.iter().filter(|of| of.about == about);
    let mut of_errors = of_it.filter(|of| matches!(of.metric, Metric::Errors | Metric::ErrorShare));
    of_errors.any(|of| !is_as_strict(of))
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

/// Whether something is due at its own time, whatever the system does.
pub(crate) fn has_a_rate(load: &Load) -> bool {
    let models = load.streams();
    models.iter().any(|stream| matches!(stream.model, LoadModel::Open(_) | LoadModel::Paced(_)))
}

/// What came of an objective. `is_part`: whether too few requests are for others to judge.
fn result(objective: &Objective, of: &Measured<'_>, is_part: bool) -> ObjectiveResult {
    if let (About::Metric(metric), Metric::Custom(figure)) = (objective.about, objective.metric) {
        return own::result(objective, metric, figure, of);
    }
    let Some(Both { measured, without_driver }) = of.figure(objective) else {
        let (objective, measured) = (objective.text.clone(), NOT_MEASURED.into());
        return ObjectiveResult { objective, measured, ..ObjectiveResult::default() };
    };
    let forgiven = if objective.metric == Metric::AchievedShare { of.forgiven } else { 0.0 };
    let meets = |value: f64| holds(value + forgiven, objective.comparison, objective.bound);
    let (met, would_meet) = (meets(measured), meets(without_driver));
    let share = of.failed_share(objective);
    let as_text = |value| text_or_not_reached(objective.metric, value, share);
    let mut told = match met == would_meet {
        true => as_text(measured),
        false if of.lacks_connections && !of.limited => format!(
            "{} as measured, {} without what waited for a connection",
            as_text(measured),
            bound_text(objective.metric, without_driver)
        ),
        false => format!(
            "{} as measured, {} with the load generator's own share taken out",
            as_text(measured),
            bound_text(objective.metric, without_driver)
        ),
    };
    if forgiven > 0.0 {
        told += &format!(
            " ({} if the {} that may fail is counted)",
            text(Metric::AchievedShare, measured + forgiven),
            text(Metric::ErrorShare, forgiven)
        );
    }
    let steps = of.failed_steps(objective);
    if steps > 0 && matches!(objective.metric, Metric::ErrorShare | Metric::Errors) {
        let what = if steps == 1 { "step" } else { "steps" };
        told += &format!(
            "; {steps} {what} of sessions failed and sent no request: see `variable` under Failures"
        );
    }
    let by =
        if of.lacks_connections && !of.limited { Undecided::Connections } else { Undecided::DriverBound };
    let mut undecided_by = (met != would_meet).then_some(by);
    let is_met = met && would_meet;
    if let Some(few) = of.too_few(objective).filter(|_| measured.is_finite()) {
        told += &few;
        if is_met && !is_part {
            undecided_by = Some(Undecided::TooFew);
        }
    }
    if let (Some(achieved), Some(window), None) = (of.achieved(objective), of.totals.window, undecided_by) {
        let window_s = window.length_s();
        let short = match is_met {
            false => meets(achieved.at_most).then(|| window::is_too_short_for(&achieved, window_s)),
            true if is_part => None,
            true if meets(achieved.at_least) => None,
            true => {
                told = format!("{}% to {told}", significant(achieved.at_least * 100.0));
                Some(window::shows_no_trend(&achieved, window_s))
            }
        };
        if let Some(short) = short {
            told += &format!(": {short}");
            undecided_by = Some(Undecided::ShortWindow);
        }
    }
    ObjectiveResult {
        objective: objective.text.clone(),
        met: is_met && undecided_by.is_none(),
        measured: told,
        default: false,
        undecided: undecided_by.is_some(),
        undecided_by,
    }
}

/// What is not reached says why.
fn text_or_not_reached(metric: Metric, value: f64, failed_share: f64) -> String {
    match metric {
        Metric::Percentile(_) | Metric::Mean if value.is_infinite() => {
            format!("not reached: {} had no good answer", text(Metric::ErrorShare, failed_share))
        }
        _ => text(metric, value),
    }
}

/// A value that is only a bound: nobody knows how little, or how much, it would have been.
fn bound_text(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Percentile(_) | Metric::Mean if value == 0.0 => "maybe less".into(),
        Metric::Rate | Metric::AchievedShare if value.is_infinite() => "maybe more".into(),
        Metric::Percentile(_) | Metric::Mean if value.is_infinite() => "not reached".into(),
        _ => text(metric, value),
    }
}

pub(crate) fn holds(value: f64, comparison: Comparison, bound: f64) -> bool {
    match comparison {
        Comparison::Less => value < bound,
        Comparison::LessOrEqual => value <= bound,
        Comparison::Equal => value == bound,
        Comparison::GreaterOrEqual => value >= bound,
        Comparison::Greater => value > bound,
    }
}

/// A measured value for a person, in the form in which bounds are written.
pub(crate) fn text(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Percentile(_) | Metric::Mean => duration_text(value),
        Metric::ErrorShare | Metric::LostShare => format!("{}%", significant(value * 100.0)),
        Metric::AchievedShare => format!("{}% of offered", significant(value * 100.0)),
        Metric::Rate => format!("{}/s", significant(value)),
        Metric::Errors | Metric::Dropped | Metric::Lost | Metric::Duplicated => format!("{value:.0}"),
        Metric::Custom(_) => significant(value),
    }
}

/// Microseconds for a person: `870µs`, `71.2ms`, `1.25s`.
pub fn duration_text(us: f64) -> String {
    // the unit is chosen after rounding, so that 999.96 ms is 1s and not 1000ms
    match us {
        us if us < 999.5 => format!("{}µs", significant(us)),
        us if us < 999_500.0 => format!("{}ms", significant(us / 1e3)),
        us => format!("{}s", significant(us / 1e6)),
    }
}

/// Three significant digits, without trailing zeros; whole numbers from 100 up.
fn significant(value: f64) -> String {
    if !value.is_finite() || value == 0.0 {
        return "0".into();
    }
    let digits = (2 - value.abs().log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_sessions;
