//! The rules in their order.

use std::time::Duration;

use tidemark_record::manifest::{ObjectiveResult, Undecided};
use tidemark_record::summary::{BOTTLENECK, Process};
use tidemark_record::{Reason, ReasonKind};
use tidemark_scenario::plan::{About, Objective};

use crate::allowed::Allowed;
use crate::figure::Measured;
use crate::findings::{Findings, few, push_once};
use crate::objectives::{
    ACHIEVED, NOT_MEASURED, defaults, has_a_rate, is_allowed_to_fail, judges_errors, result,
};
use crate::silence::{FailedBy, Outage};
use crate::text::duration_text;
use crate::users::{self, Lost};
use crate::{Evidence, Judgement, connections, driver, ledger, machine, parts, phase, reach, window};

/// The verdict on a run, and every objective with what was measured, those that nobody wrote last.
pub fn judge(evidence: &Evidence<'_>) -> Judgement {
    let mut judge = Judge::new(evidence);
    let mut findings = judge.findings();
    judge.cut_short(&mut findings);
    judge.incomplete(&mut findings);
    let without_ledger = findings.verdict();
    let mut objectives = judge.objectives;
    // behind those of the plan and of every run, which others find by their place
    objectives.extend(evidence.thresholds.iter().cloned());
    let asked = evidence.plan.verify.is_some();
    ledger::add(&mut findings, &evidence.plan.objectives, &mut objectives, evidence.ledger, asked);
    if evidence.broke_off.is_some() || evidence.taken_over.is_some() {
        // the ledger lacks what the driver sent last
        for of in objectives.iter_mut().filter(|of| of.met && is_of_the_ledger(evidence, of)) {
            (of.met, of.undecided, of.undecided_by) = (false, true, Some(Undecided::Incomplete));
        }
    }
    Judgement { verdict: findings.verdict(), without_ledger, objectives }
}

/// What is known of a run while it is judged.
struct Judge<'a> {
    evidence: &'a Evidence<'a>,
    objectives: Vec<ObjectiveResult>,
    /// What was measured outside of faults, or all of it; what is judged where nobody wrote an objective.
    undisturbed: Measured<'a>,
    all: Measured<'a>,
    /// What was measured outside of faults as counted, without what waited for a connection set apart.
    as_counted: Measured<'a>,
    /// Nothing was due in the measured window.
    is_empty: bool,
    /// The scenario's connections are too few for its load.
    lacks_connections: bool,
}

/// What is not decided, by whose fault that is.
#[derive(Default)]
struct NotDecided {
    /// The driver's.
    by_driver: Vec<String>,
    /// That of a machine without cores.
    by_machine: Vec<String>,
    /// The same of silences.
    silent_by_machine: Vec<String>,
    /// Connections that are too few decided something.
    by_connections: bool,
}

impl<'a> Judge<'a> {
    fn new(evidence: &'a Evidence<'a>) -> Judge<'a> {
        let Evidence { plan, totals, summary, is_part, .. } = *evidence;
        let is_closed = plan.load.streams().iter().any(|stream| stream.model.is_closed());
        let is_starved = driver::is_starved(summary, totals, &plan.load, evidence.spin);
        // a search asks how much the system takes over as many connections as the scenario allows
        let lacks_connections = !is_part && connections::are_too_few(plan, totals);
        let measured = |totals, lacks| {
            Measured::new(totals, &summary.driver, is_closed, is_starved)
                .lacking_connections(lacks)
                // of users nobody knows what they would have sent
                .lacking(evidence.taken_over.map_or(0, |(_, never_sent)| never_sent.max(1)))
        };
        let all = measured(totals, lacks_connections);
        let apart = evidence.undisturbed.filter(|undisturbed| undisturbed.all.due() > 0);
        let judged = apart.unwrap_or(totals);
        let allowed = match judges_errors(plan) {
            true => 0.0,
            false => Allowed::of(plan).of_due(judged.all.due() as f64),
        };
        let undisturbed = measured(judged, lacks_connections).forgiving(allowed);
        let as_counted = measured(judged, false).forgiving(allowed);
        let of_one = |objective: &Objective| match phase::of(objective, plan, totals) {
            Some((name, of)) => phase::undecided(objective, name, of).unwrap_or_else(|| {
                result(objective, &measured(of, lacks_connections).of_phase(name), is_part)
            }),
            None => result(objective, &all, is_part),
        };
        let mut objectives: Vec<ObjectiveResult> = plan.objectives.iter().map(of_one).collect();
        // of nothing there is no share that could be too large
        let is_empty = totals.all.due() == 0;
        let has_own = is_empty && evidence.judges_without_requests;
        let defaults = if has_own { Vec::new() } else { defaults(plan) };
        objectives.extend(defaults.iter().map(|objective| {
            let mut of_it = result(objective, &undisturbed, is_part);
            if evidence.undisturbed.is_some() {
                let whole = result(objective, &all, is_part).measured;
                of_it.measured += &match (apart, whole == of_it.measured) {
                    (None, _) => ", all of it within faults".into(),
                    (Some(_), true) => ", outside of faults".into(),
                    (Some(_), false) => format!(", outside of faults; {whole} with them"),
                };
            }
            ObjectiveResult { default: true, ..of_it }
        }));
        Judge { evidence, objectives, undisturbed, all, as_counted, is_empty, lacks_connections }
    }

    fn findings(&mut self) -> Findings {
        let (mut failed, mut invalid, mut undecided) = (Vec::new(), Vec::new(), NotDecided::default());
        self.driver_held_up();
        self.not_decided(&mut invalid, &mut undecided);
        let unheard = self.silences(&mut failed, &mut undecided);
        self.missed(&mut failed);
        self.parts_that_failed(&mut failed, &mut undecided);
        self.parts_that_fell_behind(&mut failed, &mut invalid, &mut undecided);
        self.users(&mut failed, &mut invalid, &mut undecided);
        let is_decided = undecided.by_driver.is_empty() && undecided.by_machine.is_empty();
        if is_decided && failed.is_empty() {
            self.no_good_answer(&mut failed, &mut invalid);
        }
        self.never_reached(&mut invalid);
        if undecided.by_connections {
            let Evidence { plan, totals, .. } = *self.evidence;
            invalid.insert(0, ReasonKind::Connections.told(connections::told(plan, totals)));
        }
        self.bound(&mut failed, &mut invalid, undecided, &unheard);
        self.faults(&mut invalid);
        let mut findings = Findings { failed, invalid };
        self.not_all_sent(&mut findings);
        self.only_computed(&mut findings);
        // fewer users are what such a script is for; what was due at a rate, or asked for by number, was never sent
        let plan = self.evidence.plan;
        if let Some((threads, first_us)) = self.evidence.script_stopped
            && (has_a_rate(&plan.load) || plan.limits.sessions.is_some())
        {
            let first = duration_text(first_us as f64);
            findings.invalid.push(ReasonKind::Incomplete.told(format!(
                "incomplete: the script stopped {threads} driving threads, the first after {first}; what they had still to send is in no figure"
            )));
        }
        let missed = self.evidence.thresholds.iter().filter(|of| !of.met && !of.undecided);
        findings.failed.extend(missed.map(missed_objective));
        let unknown = self.evidence.thresholds.iter().filter(|of| of.undecided);
        findings
            .invalid
            .extend(unknown.map(|of| {
                ReasonKind::Script.told(format!("{} is undecided: {}", of.objective, of.measured))
            }));
        if let Some(why) = self.evidence.script_failed {
            findings.failed.insert(0, ReasonKind::Script.told(format!("the script failed: {why}")));
        }
        findings
    }

    fn is_of_the_ledger(&self, of: &ObjectiveResult) -> bool {
        is_of_the_ledger(self.evidence, of)
    }

    /// Where nothing was due, a driver that was held up may be why.
    fn driver_held_up(&mut self) {
        if !self.is_empty || self.evidence.summary.driver.limits.is_empty() {
            return;
        }
        let unmet = |of: &ObjectiveResult| !of.met && !of.default && !self.is_of_the_ledger(of);
        let unmet: Vec<bool> = self.objectives.iter().map(unmet).collect();
        for (of, _) in self.objectives.iter_mut().zip(unmet).filter(|(_, unmet)| *unmet) {
            (of.undecided, of.undecided_by) = (true, Some(Undecided::DriverBound));
        }
    }

    /// Objectives that are not decided. What is missed in time or in rate is none where a process of the run had no core, as
    /// others used them.
    fn not_decided(&mut self, invalid: &mut Vec<Reason>, undecided: &mut NotDecided) {
        let told = |of: &ObjectiveResult| format!("{} is not decided: {}", of.objective, of.measured);
        for of in self.objectives.iter().filter(|of| of.undecided) {
            match of.undecided_by {
                Some(Undecided::DriverBound) => undecided.by_driver.push(told(of)),
                _ => invalid.push(ReasonKind::NotDecided.of_objective(&of.objective, told(of))),
            }
        }
        undecided.by_connections =
            self.objectives.iter().any(|of| of.undecided_by == Some(Undecided::Connections));
        let Evidence { plan, summary, .. } = *self.evidence;
        let short = short_of_cores(self.evidence, &summary.processes).filter(|_| has_a_rate(&plan.load));
        let Some(process) = short else { return };
        let defaults = defaults(plan);
        let metrics = plan.objectives.iter().chain(&defaults).map(|of| of.metric);
        for (of, metric) in self.objectives.iter_mut().zip(metrics) {
            if !of.met && !of.undecided && machine::is_of_time(metric) && of.measured != NOT_MEASURED {
                (of.undecided, of.undecided_by) = (true, Some(Undecided::MachineBound));
                undecided.by_machine.push(told(of));
            }
        }
        if !undecided.by_machine.is_empty() {
            undecided.by_machine.push(machine::in_words(process, summary));
        }
    }

    /// Silences of the system. Gives those of which the driver may be the cause.
    fn silences(&self, failed: &mut Vec<Reason>, undecided: &mut NotDecided) -> Vec<&'a Outage> {
        if let Some(told) = self.evidence.system_ended {
            failed.push(ReasonKind::SystemEnded.told(told));
            return Vec::new();
        }
        let (heard, unheard): (Vec<&Outage>, Vec<&Outage>) =
            self.evidence.outages.iter().partition(|outage| outage.is_heard());
        let mut silent = Vec::new();
        for outage in heard {
            if self.lacks_connections && outage.failed_by == FailedBy::TimedOut {
                undecided.by_connections = true;
                continue;
            }
            match silent_for_want_of_a_core(self.evidence, outage) {
                // of several silences the process is named once
                Some(told) => {
                    told.into_iter().for_each(|told| push_once(&mut undecided.silent_by_machine, told));
                }
                None => silent.push(ReasonKind::Silent.told(&outage.reason)),
            }
        }
        failed.extend(few(silent, "were silent"));
        unheard
    }

    fn missed(&self, failed: &mut Vec<Reason>) {
        let missed =
            self.objectives.iter().filter(|of| !of.met && !of.undecided && !self.is_of_the_ledger(of));
        failed.extend(missed.filter(|of| !(self.is_empty && of.default)).map(missed_objective));
    }

    /// Labels, targets, kinds of sessions and groups of which all or most failed.
    fn parts_that_failed(&self, failed: &mut Vec<Reason>, undecided: &mut NotDecided) {
        let plan = self.evidence.plan;
        let failing = parts::failing(plan, &self.undisturbed);
        if self.lacks_connections && failing.is_empty() {
            undecided.by_connections |= !parts::failing(plan, &self.as_counted).is_empty();
        }
        failed.extend(few(failing, "failed as often"));
        if !judges_errors(plan) {
            return;
        }
        let is_judged = |index: usize| {
            u16::try_from(index).is_ok_and(|index| !is_allowed_to_fail(plan, About::Group(index)))
        };
        let failing = self.undisturbed.failing_groups().filter(|(group, ..)| is_judged(*group));
        failed.extend(failing.map(|(group, due, never_ended)| {
            match (&plan.groups[group], never_ended) {
                (name, true) => ReasonKind::PartFailed
                    .told(format!("group `{name}` never ended within the load and its drain, {due} times")),
                (name, false) => ReasonKind::AllFailed.told(format!("all {due} groups `{name}` failed")),
            }
        }));
    }

    fn parts_that_fell_behind(
        &self,
        failed: &mut Vec<Reason>,
        invalid: &mut Vec<Reason>,
        undecided: &mut NotDecided,
    ) {
        let Evidence { plan, summary, is_part, .. } = *self.evidence;
        // the whole did, and that says it
        if self.objectives.iter().any(|of| !of.met && of.objective == ACHIEVED) {
            return;
        }
        let is_short_of_cores = short_of_cores(self.evidence, &summary.processes);
        for (told, is_short_window) in parts::behind(plan, &self.undisturbed) {
            match is_short_of_cores {
                _ if is_short_window && is_part => {}
                _ if is_short_window => invalid.push(ReasonKind::ShortWindow.told(told)),
                _ if self.lacks_connections => {
                    undecided.by_connections = true;
                    invalid.push(ReasonKind::Connections.told(told));
                }
                _ if self.undisturbed.limited => undecided.by_driver.push(told),
                Some(process) => {
                    undecided.by_machine.push(told);
                    push_once(&mut undecided.by_machine, machine::in_words(process, summary));
                }
                None => failed.push(ReasonKind::FellBehind.told(told)),
            }
        }
    }

    /// Time that users lost. What a fault does to them is asked for.
    fn users(&self, failed: &mut Vec<Reason>, invalid: &mut Vec<Reason>, undecided: &mut NotDecided) {
        if self.evidence.undisturbed.is_some() || self.is_empty {
            return;
        }
        match users::lost(self.evidence.plan, &self.all) {
            Some(Lost::Failed(told)) => failed.push(ReasonKind::UsersWaited.told(told)),
            Some(Lost::MaybeDriver(told)) => undecided.by_driver.push(told),
            Some(Lost::ShortWindow(told)) if !self.evidence.is_part => {
                invalid.push(ReasonKind::ShortWindow.told(told));
            }
            Some(Lost::ShortWindow(_)) | None => {}
        }
    }

    fn no_good_answer(&self, failed: &mut Vec<Reason>, invalid: &mut Vec<Reason>) {
        let Evidence { totals, summary, .. } = *self.evidence;
        if self.is_empty || totals.all.good_in_window > 0 {
            return;
        }
        if !window::is_shorter_than_answers(totals) {
            failed.push(ReasonKind::NoGoodAnswer.told("no good answer came within the measured window"));
        } else if !self.objectives.iter().any(|of| of.undecided_by == Some(Undecided::ShortWindow)) {
            let told = window::is_too_short(summary.measured_s, totals.achieved().fastest_s);
            invalid.retain(|other| *other != told);
            invalid.insert(0, ReasonKind::ShortWindow.told(told));
        }
    }

    /// Steps that no session came to.
    fn never_reached(&self, invalid: &mut Vec<Reason>) {
        let Evidence { plan, totals, not_found, is_part, .. } = *self.evidence;
        if is_part || self.is_empty {
            return;
        }
        let never = reach::never(plan, totals, not_found);
        let labels: Vec<String> = never.iter().map(|label| format!("`{label}`")).collect();
        if labels.is_empty() {
            return;
        }
        let (verb, it) = if labels.len() == 1 { ("was", "it") } else { ("were", "them") };
        invalid.push(ReasonKind::NeverReached.told(format!(
            "{} {verb} never requested: check the steps before {it}, or measure longer; the objective `LABEL rate >= 0/s` allows it",
            labels.join(", ")
        )));
    }

    /// What the driver, or a machine without cores, may be the cause of; and that nothing was due.
    fn bound(
        &self,
        failed: &mut Vec<Reason>,
        invalid: &mut Vec<Reason>,
        undecided: NotDecided,
        unheard: &[&Outage],
    ) {
        let limits = &self.evidence.summary.driver.limits;
        let mut driver_bound: Vec<String> = Vec::new();
        driver_bound.extend(unheard.iter().map(|outage| {
            let Outage { reason, unheard_share, .. } = outage;
            let waited = unheard_share * 100.0;
            format!(
                "{reason}; or the load generator missed the answers: it had no core for up to {waited:.0}% of that time"
            )
        }));
        let mut is_driver_bound = !undecided.by_driver.is_empty() || !unheard.is_empty();
        if self.is_empty {
            is_driver_bound |= self.nothing_due(failed, invalid, &mut driver_bound);
        }
        driver_bound.extend(undecided.by_driver);
        if is_driver_bound {
            driver_bound.extend(limits.iter().cloned());
        }
        let explained = driver_bound.iter().enumerate();
        let explained = explained.map(|(i, told)| (if i == 0 { BOTTLENECK } else { "" }, told));
        invalid.extend(explained.map(|(means, told)| ReasonKind::DriverBound.told(format!("{means}{told}"))));
        let by_machine = undecided.by_machine.into_iter().chain(undecided.silent_by_machine);
        invalid.extend(by_machine.map(|told| ReasonKind::MachineBound.told(told)));
    }

    /// Nothing was due in the measured window. Gives whether the driver may be the cause.
    fn nothing_due(
        &self,
        failed: &mut Vec<Reason>,
        invalid: &mut Vec<Reason>,
        driver_bound: &mut Vec<String>,
    ) -> bool {
        let Evidence { plan, summary, .. } = *self.evidence;
        let length_s = summary.measured_s;
        let phases = plan.load.streams().into_iter().map(|stream| {
            let measured = stream.phases.iter().filter(|phase| phase.measured);
            measured.map(|phase| phase.duration).sum::<Duration>()
        });
        let none_due = format!("no request was due in the measured window of {length_s:.1}s");
        match self.all.unanswered(phases.max().unwrap_or_default()) {
            (0, _) if self.evidence.judges_without_requests => false,
            (0, _) => {
                invalid.push(ReasonKind::NothingMeasured.told(format!("nothing measured: {none_due}")));
                !summary.driver.limits.is_empty()
            }
            (count, 0) => {
                driver_bound.push(format!(
                    "{none_due}, as {count} from before it still waited; the load generator may be why"
                ));
                true
            }
            (_, count) => {
                failed.push(ReasonKind::NoGoodAnswer.told(format!(
                    "the system gave no good answer in the measured window of {length_s:.1}s: {count} requests sent before it were still waiting and failed"
                )));
                false
            }
        }
    }

    /// Faults that could not be carried out, or not be put right within the load.
    fn faults(&self, invalid: &mut Vec<Reason>) {
        let Evidence { plan, summary, .. } = *self.evidence;
        let never = summary.faults.iter().filter(|fault| fault.begin_us.is_none());
        invalid.extend(never.filter_map(|fault| {
            Some(ReasonKind::Fault.told(format!("no `{}`: {}", fault.fault, fault.error.as_ref()?)))
        }));
        let unseen = plan.faults.iter().zip(&summary.faults).filter(|(fault, record)| {
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
        let unfinished = summary.faults.iter().filter(|record| record.is_unfinished_change());
        invalid.extend(unfinished.map(|record| {
            ReasonKind::Fault.told(format!(
                "`{}` was not finished when the load ended, so that nothing says how the system goes on; let the load last longer",
                record.fault
            ))
        }));
    }

    /// A file of a body became shorter: the driver had not what it was to send, whatever came of that.
    fn not_all_sent(&self, findings: &mut Findings) {
        let changed = self.evidence.plan.changed_files();
        let told =
            |words: &str| ReasonKind::NotAllSent.told(format!("not everything could be sent: {words}"));
        let shorter: Vec<Reason> =
            changed.iter().filter(|change| change.is_shorter).map(|change| told(&change.words)).collect();
        if !shorter.is_empty() {
            findings.void(shorter);
        }
    }

    /// Sessions that only compute keep the driver from everything else, whatever comes of that.
    fn only_computed(&mut self, findings: &mut Findings) {
        let told = driver::only_computed(self.evidence.summary);
        let Some(told) = told.filter(|_| self.evidence.system_ended.is_none()) else { return };
        findings.void(vec![ReasonKind::Computing.told(told)]);
        let decided: Vec<bool> = self.objectives.iter().map(|of| !self.is_of_the_ledger(of)).collect();
        for (of, _) in self.objectives.iter_mut().zip(decided).filter(|(_, decided)| *decided) {
            (of.met, of.undecided, of.undecided_by) = (false, true, Some(Undecided::DriverBound));
        }
    }

    /// An objective could no longer be met. Over the part that ran it may even look met: `rate > …` before the load goes down.
    fn cut_short(&mut self, findings: &mut Findings) {
        let Some(unreachable) = self.evidence.cut_short else { return };
        let result = self.objectives.get_mut(unreachable.index);
        let objective = result.map_or("", |result| {
            result.met = false;
            &result.objective
        });
        let told = format!("cut short: {}", unreachable.reason);
        let reason = ReasonKind::OutOfReach.of_objective(objective, told);
        if findings.failed.is_empty() && !findings.invalid.is_empty() {
            findings.invalid.push(reason);
        } else {
            findings.failed.insert(0, reason);
        }
    }

    /// A run of which a part is missing is no pass.
    fn incomplete(&self, findings: &mut Findings) {
        let Evidence { summary, stopped, lost_intervals, broke_off, taken_over, resumed, .. } =
            *self.evidence;
        let measured = duration_text(summary.measured_s * 1e6);
        if let Some(why) = broke_off {
            findings.void(vec![ReasonKind::Incomplete.told(format!(
                "incomplete: the driver broke off: {why}; these are the figures of the {measured} measured until then"
            ))]);
        }
        let gaps = taken_over.map(|(why, _)| why).into_iter().chain(resumed);
        let gaps = gaps.map(|why| ReasonKind::Incomplete.told(format!("incomplete: {why}")));
        findings.invalid.splice(0..0, gaps);
        if stopped {
            findings.invalid.push(ReasonKind::Stopped.told(format!(
                "incomplete: stopped by the user; these are the figures of the {measured} measured until then"
            )));
        }
        if lost_intervals > 0 {
            findings.invalid.push(ReasonKind::Incomplete.told(format!(
                "incomplete: {lost_intervals} seconds of a driving thread are in no figure, because they could not be written in time; is \
                 the disk of the run directory too slow?"
            )));
        }
    }
}

/// Whether the ledger decides it, which is known only once that was held against the store.
fn is_of_the_ledger(evidence: &Evidence<'_>, of: &ObjectiveResult) -> bool {
    let mut objectives = evidence.plan.objectives.iter();
    objectives.any(|objective| objective.text == of.objective && objective.metric.is_of_the_ledger())
}

/// That an objective was missed.
pub(crate) fn missed_objective(of: &ObjectiveResult) -> Reason {
    ReasonKind::Missed.of_objective(&of.objective, format!("{} missed: {}", of.objective, of.measured))
}

/// Why it is not decided whose fault a silence is in which requests timed out: a process of the run had no core meanwhile, as
/// others used them. None where it is.
fn silent_for_want_of_a_core(evidence: &Evidence<'_>, outage: &Outage) -> Option<[String; 2]> {
    let processes = evidence.totals.processes_within(outage.time);
    let process = short_of_cores(evidence, &processes).filter(|_| outage.failed_by == FailedBy::TimedOut)?;
    let told = format!("{}; or it had no core to answer on", outage.reason);
    Some([told, machine::in_words(process, evidence.summary)])
}

/// Of these processes one that the run started and that had no core, as others used them.
fn short_of_cores<'a>(evidence: &Evidence<'_>, processes: &'a [Process]) -> Option<&'a Process> {
    let watched = evidence.plan.watched_names();
    machine::short_of_cores(processes, evidence.cores, |name| !watched.iter().any(|other| other == name))
}
