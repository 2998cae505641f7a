//! Users who wait.

use super::*;

/// Eight users for ten seconds who lost so much of them.
fn lost(objectives: &[&str], limits: &[&str], lost_time: tidemark_record::LostTime) -> Verdict {
    let mut plan = plan(CLOSED, objectives);
    plan.load.phases.push(crate::test_plan::phase("hold", 10.0, 8.0, true));
    let mut totals = totals(&plan, &Ran { ended: &[ok(1_000, 50_000), (Outcome::Unfinished, 9, 7)], ..RAN });
    totals.lost_time = lost_time;
    let mut summary = summarize(&totals, Path::new("x"));
    summary.driver.limits = limits.iter().map(|limit| (*limit).to_owned()).collect();
    judge(&Evidence::of(&plan, &totals, &summary)).0
}

#[test]
fn users_who_wait_for_ever_fail_a_run_however_few_their_requests_are() {
    use tidemark_record::LostTime;
    const S: u64 = 1_000_000;
    let stuck = LostTime { waited_us: 70 * S, stuck_us: 70 * S, stuck: 7, refused_us: 0 };
    let verdict = lost(&[], &[], stuck);
    assert_eq!(verdict.status, Status::Fail);
    assert_eq!(
        verdict.reasons,
        [
            "users waited in vain: 87.5% of their time in the window went into requests that failed, were cut off, or were open \
          for all of it; 7 of 8 users waited for an answer when it ended, for half of it or longer"
        ]
    );
    let one = LostTime { waited_us: 10 * S, stuck_us: 10 * S, stuck: 1, refused_us: 0 };
    assert_eq!(lost(&[], &[], one).status, Status::Fail);
    assert_eq!(lost(&["errors < 1%"], &[], one).status, Status::Fail);
    assert_eq!(lost(&["errors < 20%"], &[], one).status, Status::Pass, "an eighth may");
    // requests that timed out within the window
    let timed_out = LostTime { waited_us: 60 * S, ..LostTime::default() };
    assert_eq!(lost(&[], &[], timed_out).status, Status::Fail);
    assert_eq!(lost(&["errors < 20%"], &[], timed_out).status, Status::Pass, "their number counts then");
    let refused = LostTime { refused_us: 5 * S, ..LostTime::default() };
    assert_eq!(lost(&[], &[], refused).status, Status::Fail);
    // healthy ones
    let few = LostTime { waited_us: S / 2, ..LostTime::default() };
    assert_eq!(lost(&[], &[], few).status, Status::Pass);
    assert_eq!(lost(&[], &[], LostTime::default()).status, Status::Pass);
    // a driver that was held up may have missed the answers, and makes nobody refuse
    assert_eq!(lost(&[], &["it had no core"], stuck).status, Status::Invalid);
    assert_eq!(lost(&[], &["it had no core"], refused).status, Status::Fail);
}

/// Two kinds of users for four seconds: fast ones, and slow ones whose requests end so after six, be they of a warm-up.
fn two_kinds(objectives: &str, users: (u32, u32), outcome: Outcome, measured: bool) -> Verdict {
    let text = format!(
        "system: {{url: 'http://h'}}\nsessions:\n  f: {{steps: [{{GET: /a, label: Fast}}]}}\n  s: {{steps: [{{GET: /b, label: Slow}}]}}\n\
         load: {{sessions: {{f: {{users: {}, hold: 4s}}, s: {{users: {}, hold: 4s}}}}}}\nobjectives: [{objectives}]\n",
        users.0, users.1
    );
    let plan = tidemark_scenario::load_text("x.yaml", &text, Path::new("."), &[]).unwrap();
    let mut totals = Totals::new(&plan.labels);
    for second in 0..7 {
        let mut interval = ThreadInterval::empty(0, second * 1_000_000, (second + 1) * 1_000_000);
        interval.in_window = second < 4;
        if interval.in_window {
            interval.measured_offered = 1_000;
            interval.series = vec![series(0, Outcome::Ok, 1_000, 1_000)];
            interval.open_by_label = vec![(1, u64::from(users.1))];
        }
        if second == 6 {
            let ended = tidemark_record::Series { measured, ..series(1, outcome, 6_000_000, users.1) };
            interval.series = vec![ended];
            let us = 4_000_000 * u64::from(users.1);
            let stuck = u64::from(users.1);
            interval.lost_time =
                tidemark_record::LostTime { waited_us: us, stuck_us: us, stuck, refused_us: 0 };
        }
        totals.add_interval(&interval);
    }
    verdict_of(&plan, &totals)
}

#[test]
fn users_whose_answers_outlast_the_window_are_not_decided_beside_fast_ones() {
    for measured in [true, false] {
        let verdict = two_kinds("", (4, 2), Outcome::Ok, measured);
        assert_eq!(verdict.status, Status::Invalid, "{verdict:?}");
        assert!(
            verdict.reasons[0].contains("window of 4s is too short beside answers that take 6s"),
            "{verdict:?}"
        );
        assert_eq!(two_kinds("", (4, 2), Outcome::Unfinished, measured).status, Status::Fail);
    }
}

#[test]
fn few_users_of_a_kind_that_has_no_good_answer_fail_a_run_of_many() {
    let verdict = two_kinds("errors < 20%", (45, 3), Outcome::Unfinished, true);
    assert_eq!(verdict.status, Status::Fail);
    assert!(verdict.reasons[0].starts_with("users waited in vain: `Slow` had no good answer"), "{verdict:?}");
    for (objectives, outcome) in [
        ("errors <= 100%", Outcome::Unfinished),
        ("errors < 20%, Slow errors <= 100%", Outcome::Unfinished),
        ("errors < 20%", Outcome::Ok),
    ] {
        assert_eq!(two_kinds(objectives, (45, 3), outcome, true).status, Status::Pass, "{objectives}");
    }
}
