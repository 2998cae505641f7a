//! A run as a trial of the search.

use tidemark_limit::{
    AnswerSize, Cores, Figures, GoalResult, NotCounted, Starved, Trial, TrialPlan, student,
};
use tidemark_record::summary::{Status, Step, Summary};
use tidemark_record::{DRIVER, Manifest, Reason, ReasonKind, SYSTEM};

use super::goals::Goals;
use super::tally::{Flow, Tally};

/// A hypervisor that takes a larger share of the cores disturbs.
const STEAL_SHARE: f64 = 0.05;
/// Others disturb that use a larger share of the cores,
const OTHERS_SHARE: f64 = 0.1;
/// where all of them together leave less than this free.
const FREE_SHARE: f64 = 0.1;
/// What is achieved differs from what is offered by chance, too, as a queue is longer at a trial's end than at its
/// beginning, or shorter: by about the root of the number of requests where the system is just full and both arrivals and
/// service times are random. A trial is short of what is to be achieved beyond so many of them,
const SHORT_BY_CHANCE: f64 = 2.0;
/// or beyond what is exceeded with this probability, by how its seconds differ: where those are alike, chance is small.
const EXCEEDED: f64 = 0.05;

/// When a trial ran, and where its run is.
#[derive(Debug, Clone)]
pub struct Took {
    /// When its load began, seconds since the search began.
    pub began_s: f64,
    /// How long it took altogether, seconds.
    pub took_s: f64,
    /// The run's directory within the search's.
    pub dir: String,
}

/// What a run says.
pub fn trial(ask: TrialPlan, goals: &Goals, tally: &Tally, manifest: &Manifest, took: Took) -> Trial {
    let by_chance: Vec<bool> = goals
        .achieved
        .iter()
        .map(|bound| bound.is_some_and(|bound| short_by_chance(bound, manifest, &tally.flows)))
        .collect();
    let seen: Vec<GoalResult> = goals
        .of
        .iter()
        .zip(&tally.tails)
        .zip(&by_chance)
        .map(|((index, tail), by_chance)| {
            let result = manifest.objectives.get(*index);
            GoalResult {
                met: *by_chance || result.is_some_and(|result| result.met),
                measured: result.map_or_else(String::new, |result| result.measured.clone()),
                tail: tail.clone(),
                undecided: !*by_chance && result.is_some_and(|result| result.undecided),
            }
        })
        .collect();
    let failure = failure(goals, &seen, &by_chance, manifest);
    let is_invalid = manifest.summary.verdict.status == Status::Invalid;
    // who waits for a core tells it where the kernel counts that
    let is_counted = manifest.summary.driver.waited_share.is_some();
    let others_cores = tally.others_cores().filter(|_| !is_counted);
    let disturbance = || disturbance(manifest, tally.starvation.starved(), others_cores);
    let not_counted = match disturbance().or_else(|| machine_bound(manifest).filter(|_| is_invalid)) {
        // it says nothing of anybody
        _ if is_invalid && manifest.summary.due() == 0 => None,
        Some(why) => Some(NotCounted::Machine(why)),
        None => is_invalid.then(|| NotCounted::Driver(driver_bound(manifest))),
    };
    Trial {
        began_s: took.began_s,
        took_s: took.took_s,
        measured_s: manifest.summary.measured_s,
        failure,
        not_counted,
        moments: tally.moments.clone(),
        dir: took.dir,
        ..Trial::new(ask, seen, figures(tally, manifest))
    }
}

/// What else than an objective made it fail.
fn failure(goals: &Goals, seen: &[GoalResult], by_chance: &[bool], manifest: &Manifest) -> Option<String> {
    let verdict = &manifest.summary.verdict;
    if verdict.status != Status::Fail || seen.iter().any(|seen| !seen.met) {
        return None;
    }
    let short =
        goals.all.iter().zip(by_chance).filter_map(|(goal, by_chance)| by_chance.then_some(&goal.text));
    let left_out: Vec<&String> = goals.left_out.iter().chain(short).collect();
    let is_left_out = |reason: &&Reason| {
        reason.kind() == ReasonKind::Missed
            && reason.objective().is_some_and(|of| left_out.iter().any(|text| *text == of))
    };
    // the last lines of a log stand in the trial's own report
    let line = |reason: &Reason| reason.lines().next().unwrap_or_default().trim_end_matches(':').to_owned();
    verdict.reasons.iter().find(|reason| !is_left_out(reason)).map(line)
}

/// Whether no more is lacking of what is to be achieved than chance explains.
fn short_by_chance(bound: f64, manifest: &Manifest, flows: &[Flow]) -> bool {
    let summary = &manifest.summary;
    let due = summary.offered_per_s * summary.measured_s;
    let achieved = summary.achieved_per_s * summary.measured_s;
    let by_chance = SHORT_BY_CHANCE * due.sqrt();
    let by_chance = by_seconds(flows, summary.measured_s).map_or(by_chance, |seconds| seconds.min(by_chance));
    due > 0.0 && bound * due - achieved <= by_chance
}

/// By how many requests what is good and what is due differ by chance, as the seconds' differences scatter around their
/// mean; none of a single one.
fn by_seconds(flows: &[Flow], measured_s: f64) -> Option<f64> {
    let lacking = |flow: &Flow| flow.due as f64 - flow.good as f64;
    let seconds: f64 = flows.iter().map(|flow| flow.seconds).sum();
    let mean_per_s = flows.iter().map(lacking).sum::<f64>() / seconds;
    let freedom = flows.len().checked_sub(2)? as f64 + 1.0;
    let squares = flows.iter().map(|flow| (lacking(flow) - mean_per_s * flow.seconds).powi(2) / flow.seconds);
    let deviation = (squares.sum::<f64>() / freedom * measured_s).sqrt();
    // a request is under way at either end
    Some(student::quantile(EXCEEDED, freedom) * deviation + 1.0)
}

fn driver_bound(manifest: &Manifest) -> String {
    let reasons = &manifest.summary.verdict.reasons;
    let limits = &manifest.summary.driver.limits;
    let limit = limits.first().map(String::as_str);
    limit.or(reasons.first().map(Reason::detail)).unwrap_or("nothing was measured").to_owned()
}

/// Why the machine was the limit, if the verdict says so; the last reason says by whom.
fn machine_bound(manifest: &Manifest) -> Option<String> {
    let mut reasons = manifest.summary.verdict.reasons.iter().rev();
    reasons.find(|reason| reason.kind() == ReasonKind::MachineBound).map(|reason| reason.detail().to_owned())
}

/// Who else had the machine, where the system or the driver was without a core for it.
fn disturbance(manifest: &Manifest, starved: Option<Starved>, others_cores: Option<f64>) -> Option<String> {
    let driver = &manifest.summary.driver;
    let cores = manifest.machine.cores.max(1) as f64;
    if let Some(Starved { name, lost_share, starved, looks }) = starved {
        let who = if name == SYSTEM || name == DRIVER { format!("the {name}") } else { name };
        return Some(format!(
            "{who} had no core for {:.0}% of the time in which it wanted one (in {starved} of {looks} seconds){}",
            lost_share * 100.0,
            neighbours(manifest).map_or_else(String::new, |others| format!("; others had it: {others}"))
        ));
    }
    if driver.steal_share > STEAL_SHARE * cores {
        return Some(format!("the hypervisor took {:.2} of {cores:.0} cores", driver.steal_share));
    }
    busy_others(manifest, others_cores)
}

/// `cargo 1.58 cores, cc1 0.30 cores`; none where nobody else was at work.
fn neighbours(manifest: &Manifest) -> Option<String> {
    let others = manifest.summary.driver.busiest.iter().filter(|busy| !busy.is_ours);
    let others: Vec<String> = others.map(|busy| format!("{} {:.2} cores", busy.name, busy.cores)).collect();
    (!others.is_empty()).then(|| others.join(", "))
}

/// What others used of the cores, where that is much and leaves next to nothing.
fn busy_others(manifest: &Manifest, others_cores: Option<f64>) -> Option<String> {
    let cores = manifest.machine.cores.max(1) as f64;
    let others = others_cores?;
    let ours: f64 = manifest.summary.processes.iter().map(|process| process.cpu_share).sum();
    if others < OTHERS_SHARE * cores || cores - ours - others > FREE_SHARE * cores {
        return None;
    }
    let busiest = neighbours(manifest).map_or_else(String::new, |busiest| format!(" ({busiest})"));
    Some(format!("other processes used {others:.2} of {cores:.0} cores{busiest}"))
}

/// How large good answers were, by label.
fn answers(summary: &Summary) -> Vec<AnswerSize> {
    let of = |step: &Step| {
        let (label, answers) = (step.label.clone(), step.good.requests);
        Some(AnswerSize { label, answers, bytes: step.good.body_bytes_mean? })
    };
    summary.steps.iter().filter_map(of).collect()
}

fn figures(tally: &Tally, manifest: &Manifest) -> Figures {
    let summary = &manifest.summary;
    let times = &summary.response_time_us;
    let cores = |name: &str, cores, waited| Cores { name: name.to_owned(), cores, waited };
    let (in_flight, waiting) = tally.under_way();
    let processes = summary.processes.iter().filter(|process| process.name != DRIVER);
    let neighbours = summary.driver.busiest.iter().filter(|busy| !busy.is_ours);
    let drift = summary.steady_state.as_ref().filter(|state| state.steady == Some(false));
    Figures {
        offered_per_s: summary.offered_per_s,
        achieved_per_s: summary.achieved_per_s,
        failed_share: summary.failed_share(),
        p50_us: times.p50,
        p90_us: times.p90,
        p99_us: times.p99,
        p999_us: times.p999,
        mean_us: summary.good.response_time_us.mean,
        service_mean_us: summary.good.service_time_us.mean,
        processes: processes.map(|of| cores(&of.name, of.cpu_share, of.core_wait_share)).collect(),
        neighbours: neighbours.map(|busy| cores(&busy.name, busy.cores, None)).collect(),
        in_flight,
        waiting,
        answers: answers(summary),
        drift: drift.map(|state| state.reason.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use tidemark_limit::{Goal, Purpose, StoppingRule};
    use tidemark_record::manifest::{ObjectiveResult, Phase};
    use tidemark_record::summary::{Busy, Process, Verdict};
    use tidemark_record::{Facts, MACHINE, Sample, Sink, Totals, summarize};

    fn goal(text: &str) -> Goal {
        Goal { text: text.into(), ..Goal::default() }
    }

    fn goals() -> Goals {
        Goals {
            all: vec![goal("errors < 0.1%"), goal("achieved > 99% of offered")],
            of: vec![1, 2],
            bounded: vec![None, None],
            achieved: vec![None, Some(0.99)],
            left_out: vec!["rate > 5k/s".into()],
        }
    }

    /// `p99 < 50ms missed: 1s`, `driver-bound: its threads`, or another one.
    fn reason(text: &str) -> Reason {
        match (text.split_once(" missed: "), text.split_once(": ")) {
            (Some((objective, _)), _) => ReasonKind::Missed.of_objective(objective, text),
            (_, Some(("driver-bound", told))) => ReasonKind::DriverBound.told(told),
            (_, Some(("machine-bound", told))) => ReasonKind::MachineBound.told(told),
            _ => text.into(),
        }
    }

    /// A run on four cores that came to this.
    fn manifest(status: Status, reasons: &[&str], met: bool) -> Manifest {
        let mut summary = summarize(&Totals::new(&[]), Path::new("x"));
        summary.requests = 100;
        summary.verdict = Verdict { status, reasons: reasons.iter().map(|text| reason(text)).collect() };
        let mut manifest = Manifest::new("x", Vec::new(), summary);
        manifest.machine.cores = 4;
        let result = |met| ObjectiveResult { met, measured: "0%".into(), ..ObjectiveResult::default() };
        manifest.objectives = vec![result(false), result(met), result(true)];
        manifest
    }

    const ASK: TrialPlan =
        TrialPlan { level: 10.0, purpose: Purpose::Explore, warm_up_s: 1.0, measured_max_s: 3.0 };

    fn tally() -> Tally {
        Tally::new(StoppingRule::new(&goals().all, &ASK), &goals().bounded, None, Default::default())
    }

    fn counted(manifest: &Manifest, tally: Tally) -> Trial {
        let took = Took { began_s: 7.0, took_s: 5.0, dir: "3-10".into() };
        trial(ASK, &goals(), &tally, manifest, took)
    }

    fn of(status: Status, reasons: &[&str], met: bool, change: impl FnOnce(&mut Manifest)) -> Trial {
        let mut manifest = manifest(status, reasons, met);
        change(&mut manifest);
        counted(&manifest, tally())
    }

    #[test]
    fn a_trial_breaks_by_its_objectives_or_by_what_else_failed() {
        let left_out = of(Status::Fail, &["rate > 5k/s missed: 10/s"], true, |_| {});
        assert!(left_out.holds() && left_out.is_counted());
        let longer = of(Status::Fail, &["rate > 5k/s of A missed: 10/s"], true, |_| {});
        assert!(!longer.holds(), "it is another one");
        assert_eq!((left_out.began_s, left_out.took_s, left_out.dir.as_str()), (7.0, 5.0, "3-10"));
        let broke = of(Status::Fail, &["errors < 0.1% missed: 3%"], false, |_| {});
        assert!(!broke.holds() && broke.failure.is_none() && broke.is_counted());
        let ended = of(Status::Fail, &["the system ended by itself"], true, |_| {});
        assert_eq!(ended.failure.as_deref(), Some("the system ended by itself"));
        let quoted = "the system ended by itself; the end of its log x:\n  | bye";
        let quoted = of(Status::Fail, &[quoted], true, |_| {});
        assert_eq!(quoted.failure.as_deref(), Some("the system ended by itself; the end of its log x"));
        assert!(!ended.holds());
    }

    #[test]
    fn a_trial_is_short_of_what_is_to_be_achieved_only_beyond_chance() {
        let of = |due: f64, achieved: f64| {
            of(Status::Fail, &["achieved > 99% of offered missed: 97%"], true, |run| {
                run.objectives[2].met = false;
                let summary = &mut run.summary;
                (summary.measured_s, summary.offered_per_s, summary.achieved_per_s) = (4.0, due, achieved);
            })
        };
        // 400 due, 396 wanted, 40 by chance
        assert_eq!([89.5, 88.5].map(|achieved| of(100.0, achieved).holds()), [true, false]);
        // 40,000, 39,600, 400
        assert_eq!([9_801.0, 9_799.0].map(|achieved| of(1e4, achieved).holds()), [true, false]);
        assert!(!of(0.0, 0.0).holds());
    }

    #[test]
    fn what_is_lacking_evenly_is_no_chance() {
        let flow = |due: u64, good: u64| Flow { seconds: 1.0, due, good };
        // 130/s at a system of 125/s: 15 of 390 after three seconds, of which 4 may be lacking
        let even = by_seconds(&[flow(130, 125), flow(130, 125), flow(130, 125)], 3.0).unwrap();
        assert!(even < 11.0, "{even}");
        let random = by_seconds(&[flow(118, 125), flow(145, 125), flow(127, 125)], 3.0).unwrap();
        assert!(random > 2.0 * 390f64.sqrt(), "{random}");
        assert_eq!(by_seconds(&[flow(130, 125)], 1.0), None);
        assert_eq!(by_seconds(&[], 1.0), None);
    }

    #[test]
    fn the_driver_and_the_machine_are_told_from_the_system() {
        let bound = of(Status::Invalid, &["driver-bound: its threads"], true, |_| {});
        assert_eq!(bound.not_counted, Some(NotCounted::Driver("its threads".into())));
        let nothing = of(Status::Invalid, &["no request was due"], true, |run| run.summary.requests = 0);
        assert_eq!(nothing.not_counted, None);
        let reasons = ["machine-bound: p99 < 1ms is not decided", "machine-bound: kv was never idle"];
        let machine = of(Status::Invalid, &reasons, false, |_| {});
        assert_eq!(machine.not_counted, Some(NotCounted::Machine("kv was never idle".into())));
        let stolen = |steal: f64, met: bool| {
            let status = if met { Status::Pass } else { Status::Fail };
            of(status, &["errors < 0.1% missed: 3%"], met, |run| run.summary.driver.steal_share = steal)
        };
        assert!(matches!(stolen(0.3, false).not_counted, Some(NotCounted::Machine(_))));
        assert!(matches!(stolen(0.3, true).not_counted, Some(NotCounted::Machine(_))), "it held");
        assert_eq!((stolen(0.1, false).not_counted, stolen(0.1, true).not_counted), (None, None));
    }

    /// However it ended, and whatever else the run says: others had the cores.
    #[test]
    fn a_trial_without_a_core_is_not_counted_whether_it_held_or_broke() {
        for (status, reasons, met) in [
            (Status::Pass, [""], true),
            (Status::Fail, ["errors < 0.1% missed: 3%"], false),
            (Status::Invalid, ["driver-bound: its threads"], false),
        ] {
            let mut run = manifest(status, &reasons, met);
            let mut starvation = tidemark_limit::Starvation::default();
            let wanted = |waited| tidemark_limit::Wanted { name: "system", cores: 0.2, waited };
            starvation.add(1.8, [wanted(0.6)]);
            starvation.add(0.0, [wanted(0.0)]);
            let busy = |name: &str, cores, is_ours| Busy { name: name.into(), cores, is_ours };
            run.summary.driver.busiest = vec![busy("yes", 1.8, false), busy("shop", 0.2, true)];
            let mut tally = tally();
            tally.starvation = starvation;
            let told = counted(&run, tally).not_counted;
            let expected = "the system had no core for 75% of the time in which it wanted one (in 1 of 2 seconds); others had \
                            it: yes 1.80 cores";
            assert_eq!(told, Some(NotCounted::Machine(expected.into())), "{status:?}");
        }
    }

    /// Others are busy, and a trial breaks by itself: its processes had a core whenever they wanted one.
    #[test]
    fn busy_others_disturb_only_where_the_kernel_does_not_tell_of_waits() {
        for (status, met) in [(Status::Pass, true), (Status::Fail, false)] {
            let of = |waited_share| {
                let mut run = manifest(status, &["errors < 0.1% missed: 3%"], met);
                run.phases = vec![Phase { end_us: 9_000_000, measured: true, ..Phase::default() }];
                run.summary.driver.waited_share = waited_share;
                run.summary.processes =
                    vec![Process { name: "system".into(), cpu_share: 2.9, ..Process::default() }];
                let mut tally = tally();
                tally.begin(&Facts { manifest: &run, threads: 1, anchor: None }).unwrap();
                let process = MACHINE.to_owned();
                tally
                    .samples(&[Sample { process, at_us: 2_000_000, cpu_share: 1.0, ..Sample::default() }])
                    .unwrap();
                counted(&run, tally).not_counted
            };
            assert_eq!(of(Some(0.0)), None, "{status:?}");
            assert!(matches!(of(None), Some(NotCounted::Machine(_))), "{status:?}");
        }
    }

    #[test]
    fn others_disturb_only_where_no_core_is_free() {
        let mut manifest = Manifest::new("x", Vec::new(), summarize(&Totals::new(&[]), Path::new("x")));
        manifest.machine.cores = 4;
        manifest.summary.driver.busiest = vec![Busy { name: "cargo".into(), cores: 1.0, is_ours: false }];
        let system = |cpu_share| Process { name: "system".into(), cpu_share, ..Process::default() };
        manifest.summary.processes = vec![system(1.0)];
        assert_eq!(disturbance(&manifest, None, Some(1.0)), None);
        manifest.summary.processes = vec![system(2.9)];
        assert_eq!(disturbance(&manifest, None, None), None);
        assert_eq!(disturbance(&manifest, None, Some(0.3)), None);
        assert!(disturbance(&manifest, None, Some(1.0)).unwrap().contains("cargo 1.00"));
    }
}
