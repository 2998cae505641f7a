//! What a driver, a store or a system without a core cannot prove.

use super::*;

/// An open load in which a server that answers after 3 s, or refuses, takes this part of what is due; how it is judged, and
/// what held the driver up.
fn starved(ran: &Ran<'_>, objectives: &[&str], spin: bool, change: impl Fn(&mut Summary)) -> Verdict {
    let plan = plan(OPEN, objectives);
    let totals = totals(&plan, ran);
    let mut summary = summarize(&totals, Path::new("x"));
    summary.driver.lag_us.max = Some(10_000);
    summary.driver.read_lag_us = Some(Latency { p99: Some(1_000), max: Some(10_000), ..Latency::default() });
    change(&mut summary);
    summary.driver.limits = driver_limits(&summary, &totals, &plan.load, spin);
    judge(&Evidence { spin, ..Evidence::of(&plan, &totals, &summary) }).0
}

#[test]
fn an_open_load_that_fell_behind_a_driver_with_nothing_left_is_not_decided() {
    let ran = Ran { ended: &[ok(3_000_000, 30)], dropped: 970, ..RAN };
    let judged = |spin, change: &dyn Fn(&mut Summary)| starved(&ran, &["p99 < 50ms"], spin, change);
    let wanted = |share: f64| move |s: &mut Summary| s.driver.wanted_share = Some(share);
    let waited = |share: f64| move |s: &mut Summary| s.driver.waited_share = Some(share);
    let verdict = judged(false, &wanted(0.96));
    assert_eq!(verdict.status, Status::Invalid);
    assert!(verdict.reasons.iter().any(|reason| reason.contains("never idle")), "{verdict:?}");
    assert_eq!(judged(false, &wanted(0.95)).status, Status::Fail, "it had some time left");
    assert_eq!(judged(true, &wanted(1.0)).status, Status::Fail, "who spins is never idle");
    let verdict = judged(true, &waited(0.51));
    assert_eq!(verdict.status, Status::Invalid);
    assert!(verdict.reasons.iter().any(|reason| reason.contains("waited for a core for 51%")), "{verdict:?}");
    assert_eq!(judged(false, &waited(0.5)).status, Status::Fail);
    // what the server said itself is no doing of the driver
    let refused = Ran { ended: &[ok(3_000_000, 10), (Outcome::Status, 1_000, 20)], ..ran };
    assert_eq!(starved(&refused, &[], false, wanted(0.97)).status, Status::Fail);
}

/// A store that has a third of a core, beside a driver with room: the rest of the machine is others'.
#[test]
fn what_a_store_without_a_core_misses_in_time_is_the_machines_doing() {
    let judged = |model, ran: &Ran<'_>, core_wait_share| {
        let plan = plan(model, &["p99 < 50ms", "max < 1h"]);
        let totals = totals(&plan, ran);
        let mut summary = summarize(&totals, Path::new("x"));
        let (name, cpu_share) = ("kv".to_owned(), 0.33);
        summary.processes = vec![tidemark_record::summary::Process {
            name,
            cpu_share,
            core_wait_share: Some(core_wait_share),
            ..Default::default()
        }];
        judge(&Evidence::of(&plan, &totals, &summary))
    };
    let behind = Ran { ended: &[ok(300_000, 600)], offered: Some(1_000), ..RAN };
    let (verdict, results) = judged(OPEN, &behind, 0.67);
    assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
    assert_eq!(verdict.reasons[0], "machine-bound: p99 < 50ms is not decided: 300ms");
    assert!(verdict.reasons[1].starts_with("machine-bound: achieved > 99% of offered is not decided"));
    assert!(verdict.reasons[2].starts_with("machine-bound: kv was never idle"), "{verdict:?}");
    let told: Vec<_> = results.iter().take(2).map(|of| (of.met, of.undecided)).collect();
    assert_eq!(told, [(false, true), (true, false)]);
    let (verdict, _) = judged(OPEN, &behind, 0.5);
    assert_eq!(verdict.status, Status::Fail, "it had time left");
    assert!(!verdict.reasons.iter().any(|reason| reason.starts_with("machine-bound")));
    assert_eq!(
        judged(CLOSED, &behind, 0.67).0.status,
        Status::Fail,
        "users wait for it, and it has no rate to keep"
    );
    // no want of a core makes an answer wrong
    let wrong = Ran { ended: &[ok(300_000, 600), (Outcome::Check, 9, 400)], ..RAN };
    assert_eq!(judged(OPEN, &wrong, 0.67).0.status, Status::Fail);
}

#[test]
fn a_busy_driver_that_kept_up_excuses_nothing() {
    let slow = Ran { ended: &[ok(3_000_000, 995)], dropped: 5, ..RAN };
    for busy in [0.97, 1.0] {
        let change = |s: &mut Summary| {
            s.driver.wanted_share = Some(busy);
            // late by a little more than is always accepted
            (s.driver.lag_us.p99, s.good.response_time_us.p99) = (Some(2_000), Some(10_000));
        };
        assert_eq!(starved(&slow, &["p99 < 50ms", "errors < 2%"], false, change).status, Status::Fail);
    }
}

/// Users of five seconds of whom all failed so in the last three, while the driver waited for a core for so long in each.
fn fell_silent(outcome: Outcome, waited_us: u64) -> Outage {
    let mut silence = Silence::new(true);
    for second in 0..5 {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        let is_silent = second >= 2;
        let (outcome, waited_us) = if is_silent { (outcome, waited_us) } else { (Outcome::Ok, 900_000) };
        interval.in_window = true;
        interval.last_good_us = if is_silent { 1_999_999 } else { interval.end_us - 1 };
        interval.failed_us = is_silent.then_some((interval.start_us, interval.end_us - 1));
        interval.core_waits = Some(CoreWaits { waited_us, sleeps: 20 });
        interval.series = vec![series(0, outcome, 1_000, 50)];
        silence.add(&interval);
    }
    silence.outage().expect("a silence")
}

#[test]
fn a_silence_that_a_driver_without_a_core_did_not_hear_is_never_a_pass() {
    let plan = plan(CLOSED, &[]);
    let totals = totals(&plan, &Ran { ended: &[ok(9, 100)], ..RAN });
    let mut summary = summarize(&totals, Path::new("x"));
    // what counts are the silent seconds
    summary.driver.waited_share = Some(0.6);
    let judged = |outcome, waited_us, system_ended| {
        let outage = fell_silent(outcome, waited_us);
        judge(&Evidence {
            outages: std::slice::from_ref(&outage),
            system_ended,
            ..Evidence::of(&plan, &totals, &summary)
        })
        .0
    };
    let told = "the system stopped answering: in the last 3.0s no request succeeded and 150 failed, most of them by timeout";
    // it was on its core
    for waited_us in [0, 190_000] {
        let verdict = judged(Outcome::Timeout, waited_us, None);
        assert_eq!((verdict.status, verdict.in_words("\n")), (Status::Fail, told.to_owned()));
    }
    for (waited_us, percent) in [(250_000, 25), (900_000, 90)] {
        let verdict = judged(Outcome::Timeout, waited_us, None);
        let expected = format!(
            "driver-bound: the load generator was the bottleneck: {told}; or the load generator missed the answers: it had no core for up to {percent}% of that time"
        );
        assert_eq!((verdict.status, verdict.in_words("\n")), (Status::Invalid, expected));
    }
    assert_eq!(judged(Outcome::Timeout, 900_000, Some("killed")).reasons, ["killed"]);
    // refused connections are heard by whoever is there at times, answers that were read were heard
    assert_eq!(judged(Outcome::Connect, 250_000, None).status, Status::Fail);
    assert_eq!(judged(Outcome::Connect, 600_000, None).status, Status::Invalid);
    let verdict = judged(Outcome::Check, 900_000, None);
    assert_eq!((verdict.status, verdict.reasons.len()), (Status::Fail, 1), "{verdict:?}");
}

#[test]
fn what_is_proven_is_a_fail_though_the_driver_did_not_hear_a_silence() {
    let plan = plan(CLOSED, &[]);
    let outage = fell_silent(Outcome::Timeout, 900_000);
    let judged = |ran: &Ran<'_>| {
        let totals = totals(&plan, ran);
        let summary = summarize(&totals, Path::new("x"));
        judge(&Evidence { outages: std::slice::from_ref(&outage), ..Evidence::of(&plan, &totals, &summary) })
            .0
    };
    let wrong = judged(&Ran { ended: &[ok(9, 100), (Outcome::Check, 9, 100)], ..RAN });
    assert_eq!(wrong.status, Status::Fail);
    let undecided = judged(&Ran { ended: &[ok(9, 100)], ..RAN });
    assert_eq!(undecided.status, Status::Invalid);
    let verified = Some(Verified { lost: 1, ..Verified::default() });
    let gone = Ledger { acknowledged: 9, verified, ..Ledger::default() };
    let verdict = ledger::judge(&undecided, &[], &mut [], Some(&gone), true);
    assert_eq!(verdict.status, Status::Fail);
    assert_eq!(verdict.reasons[0], "lost: 1 of 9 acknowledged writes are gone");
}

#[test]
fn a_silence_of_a_store_without_a_core_is_the_machines_doing() {
    let plan = plan(CLOSED, &[]);
    let judged = |outcome, core_wait_share| {
        // before the silence it has its core
        let sample = |second: u64| Sample {
            at_us: second * 1_000_000,
            process: "kv".into(),
            cpu_share: 0.33,
            core_wait_share: if second > 2 { core_wait_share } else { 0.0 },
            ..Sample::default()
        };
        let samples: Vec<Sample> = (1..=11).map(sample).collect();
        let totals = totals_with(&plan, &Ran { ended: &[ok(9, 100)], ..RAN }, &samples);
        let summary = summarize(&totals, Path::new("x"));
        let outage = fell_silent(outcome, 0);
        judge(&Evidence { outages: std::slice::from_ref(&outage), ..Evidence::of(&plan, &totals, &summary) })
            .0
    };
    let verdict = judged(Outcome::Timeout, 0.67);
    assert_eq!((verdict.status, verdict.reasons.len()), (Status::Invalid, 2), "{verdict:?}");
    assert!(verdict.reasons[0].starts_with("machine-bound: the system stopped answering"), "{verdict:?}");
    assert!(verdict.reasons[1].starts_with("machine-bound: kv was never idle"), "{verdict:?}");
    assert_eq!(judged(Outcome::Timeout, 0.5).status, Status::Fail, "it had time left");
    assert_eq!(judged(Outcome::Connect, 0.67).status, Status::Fail, "no want of a core refuses a connection");
}

#[test]
fn nothing_measured_by_a_driver_without_a_core_decides_nothing() {
    let limit = "its threads waited for a core for 100 % of the time";
    for model in [OPEN, CLOSED] {
        let ran = Ran { limits: &[limit], ..RAN };
        let (verdict, results) = judged(model, &["errors = 0", "p99 < 1s", "rate > 9/s"], &ran);
        assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
        assert!(results.iter().take(3).all(|of| of.undecided && !of.met));
        let told = verdict.reasons.iter().any(|of| of.ends_with("errors = 0 is not decided: not measured"));
        assert!(told, "{verdict:?}");
        // also where nobody asked for anything
        let (verdict, _) = judged(model, &[], &ran);
        let told = verdict.reasons.last().unwrap();
        assert!(told.starts_with("driver-bound: ") && told.ends_with(limit), "{told}");
    }
    let (verdict, _) = judged(OPEN, &["lost = 0"], &Ran { limits: &[limit], ..RAN });
    assert!(!verdict.reasons.iter().any(|of| of.contains("lost = 0")), "the ledger decides it: {verdict:?}");
}
