//! What a run is worth: its objectives, and whether the measurement itself can be trusted.
//!
//! # When the driver was the limit
//!
//! A run is `invalid: driver-bound` where one of these holds over the measured window. The figures then say what
//! the driver can do, not what the system can.
//!
//! | model | what | bound | why |
//! | --- | --- | --- | --- |
//! | both | the busiest driving thread was on a CPU | more than 95 % of the time | it had nothing left to give: answers lay in its sockets, and what it measured is its own queue |
//! | both | a driving thread was on a CPU or waited for one | more than 95 % of the time | the same, where others took its core: a starved thread is at a small share of a CPU and yet never idle |
//! | both | a driving thread was not there at all: stopped, suspended | more than 10 % of the time | nothing was sent or read then, which the rate has lost; users of a closed load have no due time that would show it, and who is stopped waits for no core |
//! | open | 99th percentile of the lag | above 1 ms and above 10 % of the 99th percentile of the response time | requests left late by the driver's own fault, and that lateness is in the percentile that is reported |
//! | closed | mean lag | above 0.1 ms and above 10 % of the mean response time | a user's next request follows its last answer, so the driver's lateness slows all users by that share, and with them the throughput |
//! | closed | the driving threads waited for a core | more than 20 % of the time, and on average more than 0.1 ms and more than 20 % of the mean response time from when one woke until it slept again | answers lay unread, each for half of that wait on average, and a user's next request follows then: 10 % of the response time that is in no lag |
//!
//! Lag alone does not tell a starved driver: once all connections are taken, arrivals wait for connections that are
//! free but whose answers nobody has read yet, and that wait looks like the system's. The second row tells it, and the
//! last. Waiting for a core is the kernel's own account of each thread (`schedstat`), read by the thread itself; where
//! there is none, those two rows say nothing, and a note says so. Nor do they in a window of less than 0.2 s: a kernel
//! hands cores out for some milliseconds at a time, of which a load of a few requests has one.
//!
//! Lag is the time from when a request was due to its first byte sent where only the driver was in the way, of requests
//! that were due within the window, whenever they left. The fixed parts (1 ms, 0.1 ms) are what an ordinary kernel's scheduling costs; below them a lag says nothing.
//!
//! Where there are faults, what is felt of them is no fault of the driver's, and tells nothing of what the system can do
//! otherwise: the times from a fault's beginning until a little after it was put right are left out of this, and of the
//! shares below, if anything else was measured. Objectives are about all of it.
//!
//! # What fails without an objective
//!
//! A system that ended by itself or stopped answering, and one that failed or was too slow to take more than half of
//! its requests: such a run is a `fail`, not `invalid`, for it tells the truth about the system. A fault that could not
//! be carried out makes a run `invalid`: it is not what was asked for.

use tidemark_record::Totals;
use tidemark_record::manifest::ObjectiveResult;
use tidemark_record::summary::{Status, Summary, Verdict};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Comparison, Load, Metric, Objective};

/// A driving thread that is on a CPU for a larger share of the time is the limit.
pub const THREAD_SHARE_MAX: f64 = 0.95;
/// A driving thread that was not there for a larger share of the time makes the rate wrong by as much.
pub const ABSENT_SHARE_MAX: f64 = 0.10;
/// Lag up to this share of the response time is accepted.
pub const LAG_SHARE_MAX: f64 = 0.10;
/// Closed model: waits for a core up to this share of the response time are accepted; an answer that comes at any
/// moment of such a wait lies unread for half of it.
pub const CORE_WAIT_SHARE_MAX: f64 = 0.20;
/// Shorter windows are not judged by waits for a core, seconds.
pub const WAITS_OVER_S: f64 = 0.2;
/// Open model: a 99th percentile of the lag up to this is accepted always, microseconds.
pub const OPEN_LAG_P99_US: f64 = 1_000.0;
/// Closed model: a mean lag up to this is accepted always, microseconds.
pub const CLOSED_LAG_MEAN_US: f64 = 100.0;
/// More failed requests than this share fail a run even without an objective; more dropped ones too.
pub const ERROR_SHARE_MAX: f64 = 0.5;

/// The verdict on a run, and every objective with what was measured. `calm`: the same without the times in which faults
/// were felt. `system_gone`: how the system ended or stopped answering, if it did so by itself.
pub fn judge(
    plan: &Plan,
    totals: &Totals,
    summary: &Summary,
    calm: Option<&Summary>,
    system_gone: Option<&str>,
) -> (Verdict, Vec<ObjectiveResult>) {
    let results: Vec<ObjectiveResult> =
        plan.objectives.iter().map(|objective| result(objective, totals, summary)).collect();
    let calm = calm.filter(|calm| calm.requests > 0).unwrap_or(summary);
    let mut invalid = invalid_reasons(calm, &plan.load);
    let never = summary.faults.iter().filter(|fault| fault.begin_us.is_none());
    invalid
        .extend(never.filter_map(|fault| Some(format!("no `{}`: {}", fault.fault, fault.error.as_ref()?))));
    let mut failed = fail_reasons(calm, system_gone);
    // what the ledger decides is known only once it was held against the store: `verify`
    let decided = plan.objectives.iter().map(|objective| !objective.metric.is_of_the_ledger());
    let missed = results.iter().zip(decided).filter(|(result, decided)| *decided && !result.met);
    let missed = missed.map(|(result, _)| result);
    failed.extend(missed.map(|result| format!("{} missed: {}", result.objective, result.measured)));
    let status = match (invalid.is_empty(), failed.is_empty()) {
        (false, _) => Status::Invalid,
        (true, false) => Status::Fail,
        (true, true) => Status::Pass,
    };
    (Verdict { status, reasons: invalid.into_iter().chain(failed).collect() }, results)
}

fn result(objective: &Objective, totals: &Totals, summary: &Summary) -> ObjectiveResult {
    let measured = measured(objective, totals, summary);
    ObjectiveResult {
        objective: objective.text.clone(),
        met: measured.is_some_and(|value| holds(value, objective.comparison, objective.bound)),
        measured: measured.map_or_else(|| "not measured".into(), |value| text(objective.metric, value)),
    }
}

/// What was measured, in the metric's unit; none where there was nothing to measure it on.
fn measured(objective: &Objective, totals: &Totals, summary: &Summary) -> Option<f64> {
    let of = match objective.label {
        Some(label) => totals.by_label.get(usize::from(label))?,
        None => &totals.all,
    };
    let answered = !of.response_time_us.is_empty();
    let requests = of.requests();
    match objective.metric {
        Metric::Percentile(percentile) => {
            answered.then(|| of.response_time_us.value_at_percentile(percentile.clamp(0.0, 100.0)) as f64)
        }
        Metric::Mean => answered.then(|| of.response_time_us.mean()),
        Metric::ErrorShare => (requests > 0).then(|| of.errors() as f64 / requests as f64),
        Metric::Errors => (requests > 0).then(|| of.errors() as f64),
        Metric::Rate => (summary.measured_s > 0.0).then(|| of.ended_in_window as f64 / summary.measured_s),
        Metric::Dropped => Some(totals.dropped as f64),
        Metric::Lost | Metric::LostShare | Metric::Duplicated => None,
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

/// Why the measurement cannot be trusted; the table in this module's text.
fn invalid_reasons(summary: &Summary, load: &Load) -> Vec<String> {
    if summary.requests == 0 {
        return vec![format!(
            "nothing measured: no request ended in the measured window of {:.1} s",
            summary.measured_s
        )];
    }
    let mut reasons = Vec::new();
    let (driver, response) = (&summary.driver, &summary.response_time_us);
    let is_long = summary.measured_s >= WAITS_OVER_S;
    if driver.absent_s > ABSENT_SHARE_MAX * summary.measured_s {
        reasons.push(format!(
            "driver-bound: the driver itself stood still for {} while {} were measured: it was stopped, or its machine \
             was suspended; run it again where nobody does that",
            duration_text(driver.absent_s * 1e6),
            duration_text(summary.measured_s * 1e6)
        ));
    }
    if driver.busiest_thread_share > THREAD_SHARE_MAX {
        reasons.push(format!(
            "driver-bound: its busiest thread was on a CPU for {:.0} % of the time; give it more --threads or cores",
            driver.busiest_thread_share * 100.0
        ));
    } else if let Some(wanted) = driver.wanted_share.filter(|wanted| is_long && *wanted > THREAD_SHARE_MAX) {
        reasons.push(format!(
            "driver-bound: one of its threads was never idle: it was on a CPU or waited for one for {:.0} % of the time; \
             give it cores of its own (--pin) or more --threads",
            wanted * 100.0
        ));
    }
    // Where some kinds arrive at a rate and others are users, the stricter bound.
    let is_open = load.streams().iter().any(|stream| !stream.model.is_closed());
    let (name, lag_us, response_us, always_us) = match is_open {
        true => ("99 % of the lag is up to", driver.lag_us.p99 as f64, response.p99 as f64, OPEN_LAG_P99_US),
        false => ("the mean lag is", driver.lag_us.mean, response.mean, CLOSED_LAG_MEAN_US),
    };
    if lag_us > always_us.max(LAG_SHARE_MAX * response_us) {
        reasons.push(format!(
            "driver-bound: requests left late by the driver's own fault, {name} {} of {}; give it cores of its own \
             (--pin), more --threads, or less load",
            duration_text(lag_us),
            duration_text(response_us)
        ));
    }
    let is_closed = load.streams().iter().any(|stream| stream.model.is_closed());
    if let Some((waited, wait_us)) = driver.waited_share.zip(driver.core_wait_us)
        && is_closed
        && is_long
        && waited > CORE_WAIT_SHARE_MAX
        && wait_us > CLOSED_LAG_MEAN_US.max(CORE_WAIT_SHARE_MAX * response.mean)
    {
        reasons.push(format!(
            "driver-bound: answers lay unread, its threads waited for a core for {:.0} % of the time, {} each time that \
             there was something to do, of a mean response time of {}; give it cores of its own (--pin)",
            waited * 100.0,
            duration_text(wait_us),
            duration_text(response.mean)
        ));
    }
    reasons
}

fn fail_reasons(summary: &Summary, system_gone: Option<&str>) -> Vec<String> {
    let mut reasons: Vec<String> = system_gone.map(str::to_owned).into_iter().collect();
    let share = |part: u64, all: u64| if all > 0 { part as f64 / all as f64 } else { 0.0 };
    let failed: u64 = summary.errors.values().sum();
    if share(failed, summary.requests) > ERROR_SHARE_MAX {
        let most =
            summary.errors.iter().max_by_key(|(_, count)| **count).map_or("", |(kind, _)| kind.as_str());
        reasons.push(format!("{failed} of {} requests failed, most by {most}", summary.requests));
    }
    let due = summary.requests + summary.dropped;
    if share(summary.dropped, due) > ERROR_SHARE_MAX {
        reasons.push(format!("{} of {due} requests that were due were dropped", summary.dropped));
    }
    reasons
}

/// A measured value for a person, in the form in which bounds are written.
pub(crate) fn text(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Percentile(_) | Metric::Mean => duration_text(value),
        Metric::ErrorShare | Metric::LostShare => format!("{}%", significant(value * 100.0)),
        Metric::Rate => format!("{}/s", significant(value)),
        Metric::Errors | Metric::Dropped | Metric::Lost | Metric::Duplicated => format!("{value:.0}"),
    }
}

/// Microseconds for a person: `870us`, `71.2ms`, `1.25s`.
pub fn duration_text(us: f64) -> String {
    // the unit is chosen after rounding, so that 999.96 ms is 1s and not 1000ms
    match us {
        us if us < 999.5 => format!("{}us", significant(us)),
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
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::*;
    use tidemark_record::summary::{Driver, Latency};
    use tidemark_record::{Outcome, RunWriter, Series, ThreadInterval, new_histogram, summarize};
    use tidemark_scenario::plan::{LoadModel, Spacing};

    fn plan(model: LoadModel, objectives: Vec<Objective>) -> Plan {
        Plan { objectives, ..crate::test_plan::plan(model) }
    }

    fn objective(
        text: &str,
        label: Option<u16>,
        metric: Metric,
        comparison: Comparison,
        bound: f64,
    ) -> Objective {
        Objective { text: text.into(), label, metric, comparison, bound, abort_early: false }
    }

    /// A good run: 1,000 requests, p99 20 ms, mean 5 ms.
    fn good() -> Summary {
        let latency =
            Latency { min: 1, mean: 5_000.0, p50: 4_000, p90: 9_000, p99: 20_000, p999: 30_000, max: 40_000 };
        Summary {
            verdict: Verdict { status: Status::Pass, reasons: Vec::new() },
            offered_per_s: 1_000.0,
            achieved_per_s: 1_000.0,
            measured_s: 1.0,
            requests: 1_000,
            errors: BTreeMap::new(),
            statuses: BTreeMap::new(),
            dropped: 0,
            response_time_us: latency.clone(),
            service_time_us: latency,
            steps: Vec::new(),
            processes: Vec::new(),
            driver: Driver { busiest_thread_share: 0.5, ..Driver::default() },
            ledger: None,
            faults: Vec::new(),
            run_dir: String::new(),
            steady_state: None,
        }
    }

    fn verdict(model: LoadModel, change: impl FnOnce(&mut Summary)) -> Verdict {
        let mut summary = good();
        change(&mut summary);
        judge(&plan(model, Vec::new()), &Totals::new(&[]), &summary, None, None).0
    }

    const OPEN: LoadModel = LoadModel::Open(Spacing::Poisson);
    const CLOSED: LoadModel = LoadModel::Closed;

    #[test]
    fn a_busy_thread_is_the_limit_in_both_models() {
        for model in [OPEN, CLOSED] {
            assert_eq!(verdict(model, |s| s.driver.busiest_thread_share = 0.95).status, Status::Pass);
            let bound = verdict(model, |s| s.driver.busiest_thread_share = 0.96);
            assert_eq!(bound.status, Status::Invalid);
            assert!(bound.reasons[0].starts_with("driver-bound: ") && bound.reasons[0].contains("96 %"));
        }
    }

    #[test]
    fn what_faults_did_is_left_out_of_what_is_judged_without_an_objective() {
        let plan = plan(CLOSED, Vec::new());
        let mut broken = good();
        broken.errors.insert("connect".into(), 900);
        broken.driver.busiest_thread_share = 0.99;
        let judged = |summary: &Summary, calm: Option<&Summary>| {
            judge(&plan, &Totals::new(&[]), summary, calm, None).0
        };
        assert_eq!(judged(&broken, None).reasons.len(), 2);
        assert_eq!(judged(&broken, Some(&good())).status, Status::Pass);
        let nothing = Summary { requests: 0, ..good() };
        assert_eq!(judged(&broken, Some(&nothing)).reasons.len(), 2, "nothing else to judge by");
        let never = tidemark_record::fault::Fault {
            fault: "freeze system for 1s".into(),
            error: Some("it cannot be frozen".into()),
            ..Default::default()
        };
        let verdict = judged(&Summary { faults: vec![never], ..good() }, None);
        assert_eq!(verdict.status, Status::Invalid);
        assert_eq!(verdict.reasons, ["no `freeze system for 1s`: it cannot be frozen"]);
    }

    #[test]
    fn a_thread_that_is_never_idle_is_the_limit_whoever_has_its_core() {
        let wanted = |wanted| {
            move |s: &mut Summary| {
                s.driver.busiest_thread_share = 0.2;
                s.driver.wanted_share = Some(wanted);
            }
        };
        for model in [OPEN, CLOSED] {
            assert_eq!(verdict(model, wanted(0.95)).status, Status::Pass);
            let bound = verdict(model, wanted(0.96));
            assert_eq!(bound.status, Status::Invalid);
            assert!(bound.reasons[0].starts_with("driver-bound: ") && bound.reasons[0].contains("96 %"));
        }
    }

    #[test]
    fn a_driver_that_stood_still_measured_nothing_meanwhile() {
        let absent = |absent_s| move |s: &mut Summary| (s.measured_s, s.driver.absent_s) = (10.0, absent_s);
        for model in [OPEN, CLOSED] {
            assert_eq!(verdict(model, absent(1.0)).status, Status::Pass);
            let bound = verdict(model, absent(4.2));
            assert_eq!(bound.status, Status::Invalid);
            let wanted = "driver-bound: the driver itself stood still for 4.2s while 10s were measured";
            assert!(bound.reasons[0].starts_with(wanted), "{:?}", bound.reasons);
        }
    }

    #[test]
    fn answers_that_lie_unread_slow_a_closed_load() {
        let waits = |share, us| {
            move |s: &mut Summary| {
                (s.driver.waited_share, s.driver.core_wait_us) = (Some(share), Some(us));
            }
        };
        // 20 % of 5 ms is 1 ms
        assert_eq!(verdict(CLOSED, waits(0.3, 1_000.0)).status, Status::Pass);
        assert_eq!(verdict(CLOSED, waits(0.3, 1_001.0)).status, Status::Invalid);
        // long, but seldom: it is in few response times
        assert_eq!(verdict(CLOSED, waits(0.2, 9_000.0)).status, Status::Pass);
        // arrivals of an open load do not wait for answers: what keeps them is lag
        assert_eq!(verdict(OPEN, waits(0.3, 1_001.0)).status, Status::Pass);
        // what an ordinary kernel's scheduling costs says nothing
        let fast = |us| {
            move |s: &mut Summary| {
                s.response_time_us.mean = 50.0;
                waits(0.3, us)(s);
            }
        };
        assert_eq!(verdict(CLOSED, fast(100.0)).status, Status::Pass);
        assert_eq!(verdict(CLOSED, fast(101.0)).status, Status::Invalid);
    }

    #[test]
    fn a_moment_is_not_judged_by_waits_for_a_core() {
        let of = |measured_s| {
            move |s: &mut Summary| {
                s.measured_s = measured_s;
                (s.driver.waited_share, s.driver.core_wait_us, s.driver.wanted_share) =
                    (Some(0.9), Some(9_000.0), Some(0.99));
            }
        };
        assert_eq!(verdict(CLOSED, of(0.19)).status, Status::Pass);
        assert_eq!(verdict(CLOSED, of(0.2)).reasons.len(), 2);
    }

    #[test]
    fn an_open_load_is_judged_by_the_99th_percentile_of_the_lag() {
        // 10 % of 20 ms is 2 ms
        assert_eq!(verdict(OPEN, |s| s.driver.lag_us.p99 = 2_000).status, Status::Pass);
        assert_eq!(verdict(OPEN, |s| s.driver.lag_us.p99 = 2_001).status, Status::Invalid);
        // with fast answers 1 ms is always accepted
        let fast = |lag| move |s: &mut Summary| (s.response_time_us.p99, s.driver.lag_us.p99) = (100, lag);
        assert_eq!(verdict(OPEN, fast(1_000)).status, Status::Pass);
        assert_eq!(verdict(OPEN, fast(1_001)).status, Status::Invalid);
        // a mean alone does not matter here
        assert_eq!(verdict(OPEN, |s| s.driver.lag_us.mean = 900.0).status, Status::Pass);
    }

    #[test]
    fn a_closed_load_is_judged_by_the_mean_of_the_lag() {
        // 10 % of 5 ms is 0.5 ms
        assert_eq!(verdict(CLOSED, |s| s.driver.lag_us.mean = 500.0).status, Status::Pass);
        assert_eq!(verdict(CLOSED, |s| s.driver.lag_us.mean = 501.0).status, Status::Invalid);
        let fast =
            |lag| move |s: &mut Summary| (s.response_time_us.mean, s.driver.lag_us.mean) = (100.0, lag);
        assert_eq!(verdict(CLOSED, fast(100.0)).status, Status::Pass);
        assert_eq!(verdict(CLOSED, fast(101.0)).status, Status::Invalid);
        // a tail of the lag slows nobody much
        assert_eq!(verdict(CLOSED, |s| s.driver.lag_us.p99 = 15_000).status, Status::Pass);
    }

    #[test]
    fn nothing_measured_is_invalid() {
        let nothing = verdict(CLOSED, |s| s.requests = 0);
        assert_eq!(nothing.status, Status::Invalid);
        assert!(nothing.reasons[0].starts_with("nothing measured"));
    }

    #[test]
    fn more_than_half_failed_is_a_fail_and_not_invalid() {
        let with = |count| move |s: &mut Summary| s.errors = [("connect".to_owned(), count)].into();
        assert_eq!(verdict(CLOSED, with(500)).status, Status::Pass);
        let failed = verdict(CLOSED, with(501));
        assert_eq!(failed.status, Status::Fail);
        assert_eq!(failed.reasons, ["501 of 1000 requests failed, most by connect"]);
        assert_eq!(verdict(OPEN, |s| s.dropped = 1_000).status, Status::Pass);
        let dropped = verdict(OPEN, |s| s.dropped = 1_001);
        assert_eq!(dropped.status, Status::Fail);
        assert_eq!(dropped.reasons, ["1001 of 2001 requests that were due were dropped"]);
    }

    #[test]
    fn a_system_that_ended_fails_the_run() {
        let plan = plan(CLOSED, Vec::new());
        let (verdict, _) =
            judge(&plan, &Totals::new(&plan.labels), &good(), None, Some("killed by signal 9"));
        assert_eq!(verdict.status, Status::Fail);
        assert!(verdict.reasons[0].contains("killed by signal 9"));
    }

    fn series(label: u16, outcome: Outcome, measured: bool, time_us: u64, count: u32) -> Series {
        let mut time = new_histogram();
        time.record_n(time_us, count).unwrap();
        Series { label, outcome, measured, response_time_us: time.clone(), service_time_us: time }
    }

    /// Two measured seconds: 98 good requests of A and 1 of B, 1 failed of A; and others that are not measured.
    fn totals(plan: &Plan) -> Totals {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = RunWriter::create(folder.path(), &plan.labels, "").unwrap();
        let mut interval = ThreadInterval::empty(0, 1_000_000, 3_000_000);
        interval.in_window = true;
        interval.dropped = 3;
        interval.series = vec![
            series(0, Outcome::Ok, true, 40_000, 98),
            series(0, Outcome::Timeout, true, 900_000, 1),
            series(1, Outcome::Ok, true, 70_000, 1),
            series(1, Outcome::Ok, false, 900_000, 100),
        ];
        writer.add_interval(&interval).unwrap();
        writer.totals().clone()
    }

    #[test]
    fn objectives_are_held_against_what_was_measured() {
        use Comparison::*;
        let cases = [
            (objective("p95 < 50ms", None, Metric::Percentile(95.0), Less, 50_000.0), true, "40ms"),
            (objective("max < 50ms", None, Metric::Percentile(100.0), Less, 50_000.0), false, "70ms"),
            (objective("A max < 50ms", Some(0), Metric::Percentile(100.0), Less, 50_000.0), true, "40ms"),
            (objective("B p50 < 60ms", Some(1), Metric::Percentile(50.0), Less, 60_000.0), false, "70ms"),
            (objective("B mean <= 71ms", Some(1), Metric::Mean, LessOrEqual, 71_000.0), true, "70ms"),
            (objective("errors < 1%", None, Metric::ErrorShare, Less, 0.01), false, "1%"),
            (objective("B errors = 0", Some(1), Metric::Errors, Equal, 0.0), true, "0"),
            (objective("rate > 2k/s", None, Metric::Rate, Greater, 2_000.0), false, "100/s"),
            (objective("A rate >= 49/s", Some(0), Metric::Rate, GreaterOrEqual, 49.0), true, "49.5/s"),
            (objective("dropped = 0", None, Metric::Dropped, Equal, 0.0), false, "3"),
        ];
        let plan = plan(CLOSED, cases.iter().map(|case| case.0.clone()).collect());
        let totals = totals(&plan);
        let (verdict, results) = judge(&plan, &totals, &summarize(&totals, Path::new("x")), None, None);
        for (result, (_, met, measured)) in results.iter().zip(&cases) {
            assert_eq!((result.met, result.measured.as_str()), (*met, *measured), "{}", result.objective);
        }
        assert_eq!(verdict.status, Status::Fail);
        assert_eq!(verdict.reasons[0], "max < 50ms missed: 70ms");
        assert_eq!(verdict.reasons.len(), 5);
    }

    #[test]
    fn what_was_never_measured_is_never_met() {
        use Comparison::*;
        let hopeless = vec![
            objective("C p99 < 1h", Some(2), Metric::Percentile(99.0), Less, 3.6e9),
            objective("C mean < 1h", Some(2), Metric::Mean, Less, 3.6e9),
            objective("C errors = 0", Some(2), Metric::Errors, Equal, 0.0),
            objective("C errors < 1%", Some(2), Metric::ErrorShare, Less, 0.01),
            objective("lost = 0", None, Metric::Lost, Equal, 0.0),
            objective("? p50 < 1h", Some(9), Metric::Percentile(50.0), Less, 3.6e9),
        ];
        let plan = plan(CLOSED, hopeless);
        let totals = totals(&plan);
        let (verdict, results) = judge(&plan, &totals, &good(), None, None);
        assert_eq!(verdict.status, Status::Fail);
        assert!(results.iter().all(|result| !result.met && result.measured == "not measured"), "{results:?}");
    }

    #[test]
    fn numbers_are_for_persons() {
        for (us, text) in [
            (0.0, "0us"),
            (0.5, "0.5us"),
            (870.0, "870us"),
            (999.9, "1ms"),
            (71_234.0, "71.2ms"),
            (999_700.0, "1s"),
            (1_254_000.0, "1.25s"),
            (100_000_000.0, "100s"),
        ] {
            assert_eq!(duration_text(us), text);
        }
        assert_eq!(significant(0.000_123_4), "0.000123");
        assert_eq!(significant(12_783.4), "12783");
    }
}
