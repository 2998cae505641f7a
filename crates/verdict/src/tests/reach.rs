//! Steps that no session came to.

use super::*;

#[test]
fn a_step_that_no_session_came_to_is_not_passed_over() {
    let judged = |steps: &str, objectives: &str, sessions: u32| {
        let text = format!(
            "system: {{url: 'http://h'}}\nsessions: {{s: {{steps: [{{GET: /a, label: A, extract: {{token: $.token}}}}, {steps}]}}}}\n\
             load: {{users: 1, hold: 1s}}\nobjectives: [{objectives}]\n"
        );
        let plan = tidemark_scenario::load_text("x.yaml", &text, Path::new("."), &[]).unwrap();
        let totals = totals(&plan, &Ran { ended: &[ok(1_000, sessions)], ..RAN });
        let summary = summarize(&totals, Path::new("x"));
        let all = judge(&Evidence::of(&plan, &totals, &summary)).0;
        let part = judge(&Evidence { is_part: true, ..Evidence::of(&plan, &totals, &summary) }).0;
        assert_eq!(part.status, Status::Pass, "others of the same load have it");
        all
    };
    let verdict = judged("{GET: /b, label: B}", "", 1);
    assert_eq!(verdict.status, Status::Invalid);
    assert!(verdict.reasons[0].starts_with("`B` was never requested"), "{verdict:?}");
    assert_eq!(judged("{GET: /b, label: B}", "B rate >= 0/s", 9).status, Status::Pass, "so it is meant");
    let when = "{when: '${token}', steps: [{GET: /b, label: B}]}";
    assert_eq!(judged(when, "", 500).status, Status::Invalid);
    assert_eq!(judged(when, "", 5).status, Status::Pass, "by its condition");
    let sometimes = "{sometimes: 1%, steps: [{GET: /b, label: B}]}";
    assert_eq!(judged(sometimes, "", 100).status, Status::Pass, "by chance");
    assert_eq!(judged(sometimes, "", 10_000).status, Status::Invalid);
}

#[test]
fn a_first_label_that_two_kinds_share_says_not_how_many_began_of_each() {
    let judged = |weight: u32, sessions: u32| {
        let text = format!(
            "system: {{url: 'http://h'}}\nsessions:\n  buyer: {{weight: 999, steps: [{{GET: /l, label: Login}}, {{GET: /a, label: Browse}}]}}\n  \
             admin: {{weight: {weight}, steps: [{{GET: /l, label: Login}}, {{GET: /b, label: Admin}}]}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let plan = tidemark_scenario::load_text("x.yaml", &text, Path::new("."), &[]).unwrap();
        let mut totals = totals(&plan, &Ran { ended: &[ok(1_000, sessions)], ..RAN });
        // none of the rarer kind
        assert_eq!(totals.sessions_begun, [u64::from(sessions)]);
        let mut browsed =
            ThreadInterval { in_window: true, ..ThreadInterval::empty(0, 2_000_000, 3_000_000) };
        browsed.series = vec![series(1, Outcome::Ok, 1_000, sessions)];
        totals.add_interval(&browsed);
        verdict_of(&plan, &totals).status
    };
    assert_eq!((judged(1, 80), judged(1, 2_000)), (Status::Pass, Status::Pass));
    assert_eq!((judged(1, 20_000), judged(999, 80)), (Status::Invalid, Status::Invalid));
}

#[test]
fn a_kind_with_a_load_of_its_own_is_judged_by_its_own_sessions() {
    let judged = |begun: &[(u16, u64)]| {
        let text = "system: {url: 'http://h'}\nsessions:\n  buyer: {steps: [{GET: /l, label: Login}, {GET: /a, label: Browse}]}\n  \
                    admin: {steps: [{GET: /l, label: Login}, {GET: /b, label: Admin}]}\n\
                    load: {sessions: {buyer: {rate: 100/s, hold: 10s}, admin: {rate: 0.1/s, hold: 10s}}}\n";
        let plan = tidemark_scenario::load_text("x.yaml", text, Path::new("."), &[]).unwrap();
        let mut totals = Totals::new(&plan.labels);
        let mut interval = ThreadInterval::empty(0, 1_000_000, 11_000_000);
        interval.in_window = true;
        interval.measured_offered = 2_000;
        interval.sessions_begun = begun.to_vec();
        interval.series = vec![series(0, Outcome::Ok, 1_000, 1_000), series(1, Outcome::Ok, 1_000, 1_000)];
        totals.add_interval(&interval);
        verdict_of(&plan, &totals)
    };
    assert_eq!(judged(&[(0, 1_000)]).status, Status::Pass, "no admin came, by chance");
    let verdict = judged(&[(0, 999), (1, 1)]);
    assert_eq!(verdict.status, Status::Invalid);
    assert!(verdict.reasons[0].starts_with("`Admin` was never requested"), "{verdict:?}");
}

#[test]
fn a_condition_on_a_variable_that_no_answer_had_keeps_its_steps_out() {
    let judged = |condition: &str, found: u64, other: &str| {
        let text = format!(
            "system: {{url: 'http://h'}}\nsessions: {{s: {{steps: [{{GET: /a, label: A, extract: {{next: $.next}}}}, {other}\
             {{when: '{condition}', steps: [{{GET: /b, label: B}}]}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let plan = tidemark_scenario::load_text("x.yaml", &text, Path::new("."), &[]).unwrap();
        let totals = totals(&plan, &Ran { ended: &[ok(1_000, 5)], ..RAN });
        let summary = summarize(&totals, Path::new("x"));
        let of = NotFound { label: "A".into(), variable: "next".into(), answers: 5 - found, found };
        let not_found = [of];
        let verdict = judge(&Evidence { not_found: &not_found, ..Evidence::of(&plan, &totals, &summary) }).0;
        (verdict.status, warnings(&plan, &totals, &not_found))
    };
    for condition in ["${next == 7}", "${next > 3}", "${next}", "${next + 1 < 9 and 1 == 1}", "${3 <= next}"]
    {
        let (status, warnings) = judged(condition, 0, "");
        assert_eq!(status, Status::Invalid, "{condition}");
        assert!(warnings[0].contains("nothing was found for \"next\" in all its 5 answers"), "{warnings:?}");
        assert_eq!(judged(condition, 1, "").0, Status::Pass, "{condition}: it was set once");
        assert_eq!(
            judged(condition, 0, "{set: {next: 9}}, ").0,
            Status::Pass,
            "{condition}: it is set elsewhere"
        );
    }
    // nobody knows of what holds, or may, without it: that it is missing is told all the same
    for condition in ["${next != 7}", "${not next}", "${not exists(next)}", "${next == 7 or 1 == 1}"] {
        let (status, warnings) = judged(condition, 0, "");
        assert_eq!((status, warnings.len()), (Status::Pass, 1), "{condition}: {warnings:?}");
    }
}

#[test]
fn a_condition_that_nobody_knows_to_hold_may_never_hold() {
    let judged = |missing: &str, condition: &str| {
        let text = format!(
            "system: {{url: 'http://h'}}\nsessions: {{s: {{steps: [{{GET: /a, label: A, extract: {{next: {{json: $.next{missing}}}}}}}, \
             {{when: '{condition}', steps: [{{GET: /b, label: B}}]}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        );
        let plan = tidemark_scenario::load_text("x.yaml", &text, Path::new("."), &[]).unwrap();
        let totals = totals(&plan, &Ran { ended: &[ok(1_000, 500)], ..RAN });
        verdict_of(&plan, &totals).status
    };
    assert_eq!(judged(", when missing: clear", "${next}"), Status::Pass);
    assert_eq!(judged(", when missing: keep", "${next}"), Status::Pass);
    assert_eq!(judged("", "${next == 7}"), Status::Pass);
    assert_eq!(judged("", "${next}"), Status::Invalid, "every session should have it");
    assert_eq!(judged(", when missing: fail", "${next}"), Status::Invalid);
}
