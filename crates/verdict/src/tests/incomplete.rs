//! Runs of which something is missing.

use super::*;

#[test]
fn what_is_incomplete_is_never_a_pass() {
    let judged = |failed, stopped, lost_intervals| {
        let plan = plan(OPEN, &[]);
        let ended = [ok(3_000, 900), (Outcome::Status, 3_000, failed)];
        let totals = totals(&plan, &Ran { ended: &ended[..1 + usize::from(failed > 0)], ..RAN });
        let summary = summarize(&totals, Path::new("x"));
        let verdict =
            judge(&Evidence { stopped, lost_intervals, ..Evidence::of(&plan, &totals, &summary) }).0;
        let told = verdict.reasons.iter().map(|reason| reason.contains("incomplete: ")).collect::<Vec<_>>();
        (verdict.status, told)
    };
    assert_eq!(judged(0, false, 0), (Status::Pass, vec![]));
    assert_eq!(judged(0, true, 0), (Status::Invalid, vec![true]));
    assert_eq!(judged(0, false, 1), (Status::Invalid, vec![true]));
    assert_eq!(judged(0, true, 1), (Status::Invalid, vec![true, true]));
    let (status, told) = judged(500, true, 0);
    assert_eq!((status, told.first(), told.last()), (Status::Fail, Some(&false), Some(&true)));
}

#[test]
fn a_take_over_leaves_no_pass_and_no_fail_by_what_was_never_sent() {
    let ran = Ran { ended: &[ok(3_000, 960)], dropped: 40, ..RAN };
    let of = |objectives: &[&str], never_sent: Option<u64>| {
        let plan = plan(OPEN, objectives);
        let totals = totals(&plan, &ran);
        let summary = summarize(&totals, Path::new("x"));
        let taken_over = never_sent.map(|count| ("agent b was lost", count));
        judge(&Evidence { taken_over, ..Evidence::of(&plan, &totals, &summary) }).0
    };
    // 4 % were not answered: who allows that has no pass, as the load is not known, and who does not has no fail
    let allowed = ["p90 < 50ms", "errors < 5%", "achieved > 90% of offered"];
    assert_eq!(of(&allowed, None).status, Status::Pass);
    for never_sent in [0, 40] {
        let verdict = of(&allowed, Some(never_sent));
        assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
        assert_eq!(verdict.reasons, ["incomplete: agent b was lost"]);
    }
    for objective in ["p99 < 50ms", "errors < 1%", "achieved > 99% of offered", "rate > 98/s"] {
        let verdict = of(&[objective, "errors < 5%"], Some(40));
        assert_eq!(verdict.status, Status::Invalid, "{objective}: {verdict:?}");
        assert_eq!(verdict.reasons[0], "incomplete: agent b was lost");
        // nobody else is called the cause
        let told = verdict.reasons[1].to_string();
        assert!(told.starts_with(&format!("{objective} is not decided: ")), "{told}");
        assert!(
            told.contains(" if what was never sent had been answered") && !told.contains("driver-bound"),
            "{told}"
        );
        assert_eq!(of(&[objective, "errors < 5%"], None).status, Status::Fail, "{objective}");
        // the rest was the system's
        assert_eq!(of(&[objective, "errors < 5%"], Some(1)).status, Status::Fail, "{objective}");
    }
}

#[test]
fn a_run_that_another_coordinator_resumed_is_no_pass() {
    let judged = |failed: u32, resumed: Option<&str>| {
        let plan = plan(OPEN, &[]);
        let totals =
            totals(&plan, &Ran { ended: &[ok(3_000, 900), (Outcome::Status, 3_000, failed)], ..RAN });
        let summary = summarize(&totals, Path::new("x"));
        judge(&Evidence { resumed, ..Evidence::of(&plan, &totals, &summary) }).0
    };
    assert_eq!(judged(0, None).status, Status::Pass);
    let verdict = judged(0, Some("another coordinator resumed the run"));
    assert_eq!(verdict.status, Status::Invalid);
    assert_eq!(verdict.reasons, ["incomplete: another coordinator resumed the run"]);
    // what the system failed at stays so
    assert_eq!(judged(500, Some("another coordinator resumed the run")).status, Status::Fail);
}

#[test]
fn a_driver_that_broke_off_leaves_no_pass_and_no_fail() {
    for failed in [0, 500] {
        let plan = plan(OPEN, &[]);
        let totals =
            totals(&plan, &Ran { ended: &[ok(3_000, 900), (Outcome::Status, 3_000, failed)], ..RAN });
        let summary = summarize(&totals, Path::new("x"));
        let broke_off = Some("killed by signal 9");
        let verdict = judge(&Evidence { broke_off, ..Evidence::of(&plan, &totals, &summary) }).0;
        let plan = self::plan(OPEN, &["lost = 0"]);
        let verified = Some(Verified::default());
        let ledger = Ledger { acknowledged: 9, verified, ..Ledger::default() };
        let ledger = Some(&ledger);
        let of = crate::judge(&Evidence { broke_off, ledger, ..Evidence::of(&plan, &totals, &summary) });
        assert_eq!((of.objectives[0].met, of.objectives[0].undecided), (false, true), "{of:?}");
        assert_eq!(verdict.status, Status::Invalid);
        assert!(
            verdict.reasons[0].contains("killed by signal 9; these are the figures of the 10s"),
            "{verdict:?}"
        );
    }
}
