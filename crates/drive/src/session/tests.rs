use tidemark_scenario::Expr;

use super::*;
use crate::testing::kind;

#[test]
fn how_late_the_driver_turned_to_a_request_is_its_own_also_where_a_connection_was_waited_for() {
    let mut session = Session { due_ns: 100, ready_ns: 40, ..Session::default() };
    session.fall_due(0, 130);
    assert_eq!(session.own_ns, 30, "known before it leaves, should it never");
    assert_eq!((session.lag_ns(130), session.lag_ns(135)), (30, 35));
    session.held_until(900);
    assert_eq!((session.lag_ns(900), session.lag_ns(904)), (30, 34));
    session.held_until(2_000);
    assert_eq!(session.lag_ns(2_001), 31, "counted once, however often it was held");
    let mut session = Session { due_ns: 100, is_users_first: true, ..Session::default() };
    session.fall_due(0, 130);
    assert_eq!(session.lag_ns(130), 30);
    session.held_until(900);
    assert_eq!(session.lag_ns(900), 0, "a user begins when there is a connection");
    (session.due_ns, session.ready_ns) = (1_000, 1_000);
    session.fall_due(0, 1_030);
    session.held_until(1_100);
    assert_eq!(session.lag_ns(1_100), 30, "but goes on when it is due");
    // the lateness of a user who was not ready yet is not the driver's
    let mut session = Session { due_ns: 100, ready_ns: 120, ..Session::default() };
    session.fall_due(0, 130);
    assert_eq!(session.lag_ns(130), 10);
}

#[test]
fn what_waited_for_a_connection_for_most_of_its_time_lacked_one() {
    let mut session = Session { due_ns: 1_000_000, ..Session::default() };
    session.fall_due(0, 1_000_000);
    assert!(!session.lacked_a_connection(Outcome::Timeout, 9_000_000), "it had one at once");
    session.queued_until(6_000_000);
    for (outcome, end_ns, lacked) in [
        (Outcome::Timeout, 10_000_000, true),
        (Outcome::Unfinished, 6_000_000, true),
        (Outcome::Timeout, 11_000_000, false),
        (Outcome::Reset, 7_000_000, false),
        (Outcome::Ok, 7_000_000, false),
    ] {
        assert_eq!(session.lacked_a_connection(outcome, end_ns), lacked, "{outcome:?} {end_ns}");
    }
    session.fall_due(0, 20_000_000);
    assert!(!session.lacked_a_connection(Outcome::Timeout, 21_000_000), "that was the request before");
}

#[test]
fn what_is_spoken_before_a_request_is_told_from_the_making_of_its_connection() {
    let mut connecting = Connecting { begun_ns: 100, ..Connecting::default() };
    connecting.over(None, 130);
    assert_eq!((connecting.connect_ns, connecting.handshake_ns), (30, 0));
    // a second attempt, with TLS
    connecting.begun_ns = 200;
    connecting.over(Some(210), 290);
    assert_eq!((connecting.connect_ns, connecting.handshake_ns), (40, 80));
    // a socket that was there already, for others
    connecting.begun_ns = 300;
    connecting.over(Some(250), 305);
    assert_eq!((connecting.connect_ns, connecting.handshake_ns), (40, 85));
}

#[test]
fn connections_and_cookies_are_those_of_the_target() {
    let mut session = Session { connection: Some(3), ..Session::default() };
    session.cold_or_new().jars.resize_with(1, Jar::default);
    crate::testing::put(&mut session.cold_or_new().jars[0], "a=1");
    session.turn_to(0);
    assert!(session.elsewhere().is_empty(), "of one target nothing is kept apart");
    session.turn_to(2);
    assert_eq!((session.connection, session.target()), (None, 2));
    assert!(session.jar(session.target()).is_empty(), "another target's cookies");
    session.connection = Some(8);
    session.turn_to(0);
    assert_eq!(session.connection, Some(3));
    assert!(!session.jar(session.target()).is_empty());
    session.turn_to(2);
    assert_eq!((session.connection, session.elsewhere()), (Some(8), &mut [Some(3), None, None][..]));
    begin(&mut session, &kind(vec![Op::End]), 1);
    session.turn_to(0);
    assert!(session.jar(session.target()).is_empty());
}

/// Thousands of users make their requests in turn.
#[test]
fn what_every_request_looks_at_of_a_user_is_in_two_cache_lines() {
    assert_eq!(size_of::<Session>(), 128);
}

#[test]
fn what_few_requests_look_at_is_left_alone_once_there_is_nothing_of_it() {
    let mut session = Session::default();
    session.fall_due(0, 10);
    assert!(session.cold().is_none() && session.jar(session.target()).is_empty());
    session.cold_or_new().connecting = Some(Connecting::default());
    assert_eq!(session.connecting(), Some(Connecting::default()));
    session.cold_or_new().entered = Some(7);
    assert!(session.is_writing());
    session.fall_due(0, 20);
    assert!(session.cold().is_none() && session.connecting().is_none() && !session.is_writing());
    // what is not of the request alone stays
    session.cold_or_new().groups.begin(3);
    session.cold_or_new().hops = 2;
    session.fall_due(0, 30);
    assert_eq!((session.cold().is_some(), session.hops()), (true, 0));
    assert_eq!(session.groups().map(|groups| groups.fall_due(30)), Some(1));
    begin(&mut session, &kind(vec![Op::End]), 0);
    session.fall_due(0, 40);
    assert!(session.cold().is_none() && !session.any_group_begun());
    session.set_sent(Some(50));
    assert_eq!(session.sent_ns(), Some(50));
    session.set_sent(None);
    assert_eq!(session.sent_ns(), None);
}

fn begin(session: &mut Session, kind: &SessionKind, slots: usize) {
    session.begin((0, kind), slots, false, (&mut HeldValues::default(), &Shared::new(0, Vec::new())));
}

fn advance(session: &mut Session, ops: &[Op], random: &mut fastrand::Rng) -> Turn {
    let shared = Shared::new(0, Vec::new());
    let mut environment = Environment { shared: &shared, random, epoch_ms: 0 };
    session.advance(ops, OPS_PER_TURN, &mut environment, &mut Scratch::default())
}

#[test]
fn a_value_that_is_too_long_is_not_kept_and_told() {
    // 32 MiB and one more byte
    let texts = "concat(a, a, a, a, a, a, a, a)";
    let text = format!(
        "sessions: {{s: {{steps: [{{set: {{a: '${{random_text(65536)}}'}}}}, {}, GET: '/${{a}}']}}}}\nload: {{users: 1, hold: 1s}}",
        format!("{{set: {{a: '${{{texts}}}'}}}}, ").repeat(4).trim_end_matches(", ")
    );
    let plan = tidemark_scenario::load_text("s.yaml", &text, std::path::Path::new("."), &[]).unwrap();
    let kind = &plan.sessions[0];
    let shared = Shared::of(&plan);
    let mut random = fastrand::Rng::with_seed(1);
    let mut environment = Environment { shared: &shared, random: &mut random, epoch_ms: 0 };
    let (mut session, mut scratch) = (Session::default(), Scratch::default());
    session.begin((0, kind), kind.slots, false, (&mut scratch.held, &shared));
    let turn = session.advance(&kind.ops, OPS_PER_TURN, &mut environment, &mut scratch);
    assert!(matches!(turn, Turn::Failed(_, Some("it is longer than 32 MiB"))), "{turn:?}");
    assert_eq!(session.slots.iter().map(Slot::held_bytes).sum::<usize>(), 0);
}

/// Each step that cannot be computed is told by its operation, and the session goes on behind it.
#[test]
fn steps_that_cannot_be_computed_are_told() {
    let text = "sessions:\n  s:\n    steps:\n      - set: {a: '${1 / random(0, 0)}'}\n      - when: ${2 > 1 / random(0, 0)}\n        \
                steps: [GET: /never]\n        else: [GET: /else]\n      - set: {n: '${random(-2, -2)}'}\n      - repeat: ${n}\n        \
                steps: [GET: /never]\n      - repeat: ${1 % random(0, 0)}\n        steps: [GET: /never]\n      - GET: /end\n\
                load: {users: 1, hold: 1s}\n";
    let plan = tidemark_scenario::load_text("s.yaml", text, std::path::Path::new("."), &[]).unwrap();
    let kind = &plan.sessions[0];
    let shared = Shared::of(&plan);
    let mut random = fastrand::Rng::with_seed(1);
    let mut environment = Environment { shared: &shared, random: &mut random, epoch_ms: 0 };
    let (mut session, mut scratch) = (Session::default(), Scratch::default());
    session.begin((0, kind), kind.slots, false, (&mut scratch.held, &shared));
    let mut turns = Vec::new();
    loop {
        match session.advance(&kind.ops, OPS_PER_TURN, &mut environment, &mut scratch) {
            Turn::End => break,
            Turn::Failed(op, Some(reason)) => {
                turns.push(format!(
                    "{}: {reason}",
                    crate::engine::judging::step_in_words(&kind.ops[op], &kind.slot_names)
                ));
            }
            Turn::Request(request) => {
                turns.push(plan.labels[usize::from(plan.requests[usize::from(request)].label)].clone());
            }
            other => panic!("{other:?}"),
        }
    }
    let negative = "it is negative, or is not a number; a repeat needs a whole number, not below 0";
    assert_eq!(
        turns,
        [
            "set a: 1 / random(0, 0): division by zero",
            "when: 2 > 1 / random(0, 0): division by zero",
            "GET /else",
            &format!("repeat: n: {negative}"),
            "repeat: 1 % random(0, 0): division by zero",
            "GET /end",
        ]
    );
}

#[test]
fn an_endless_loop_gives_way() {
    let ops = [Op::Jump(0)];
    let mut random = fastrand::Rng::with_seed(1);
    let mut session = Session::default();
    assert_eq!(advance(&mut session, &ops, &mut random), Turn::Spent);
    assert_eq!(advance(&mut session, &ops, &mut random), Turn::Spent);
}

#[test]
fn jumps_conditions_and_pauses() {
    let ops = [
        Op::JumpUnless { condition: Expr::int(0), to: 2 },
        Op::Request(9),
        Op::Think(Expr::int(0)),
        Op::JumpUnless { condition: Expr::int(1), to: 1 },
        Op::Set { slot: 0, value: Expr::int(5) },
        Op::Think(Expr::int(70)),
        Op::Request(3),
        Op::End,
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let mut session = Session::default();
    begin(&mut session, &kind(ops.to_vec()), 1);
    assert_eq!(advance(&mut session, &ops, &mut random), Turn::Think(70));
    assert_eq!(session.slots[0].value(), tidemark_scenario::Value::Int(5));
    assert_eq!(advance(&mut session, &ops, &mut random), Turn::Request(3));
    assert_eq!(advance(&mut session, &ops, &mut random), Turn::End);
    begin(&mut session, &kind(ops.to_vec()), 1);
    assert_eq!(session.slots[0].value(), tidemark_scenario::Value::Missing);
}

#[test]
fn what_is_measured_of_an_answer_is_measured_of_a_good_one() {
    let measure = |if_good| Op::Measure { metric: 0, value: Expr::int(5), text: "5".into(), if_good };
    let ops = [Op::Request(0), measure(true), measure(false), Op::End];
    let mut random = fastrand::Rng::with_seed(1);
    for (went_well, measured) in [(true, vec![1, 2]), (false, vec![2])] {
        let mut session = Session::default();
        begin(&mut session, &kind(ops.to_vec()), 0);
        assert_eq!(advance(&mut session, &ops, &mut random), Turn::Request(0));
        session.went_well = went_well;
        for op in measured {
            assert_eq!(advance(&mut session, &ops, &mut random), Turn::Measure(op));
        }
        assert_eq!(advance(&mut session, &ops, &mut random), Turn::End);
    }
}

#[test]
fn ways_are_chosen_by_weight() {
    let ops = [
        Op::Choose { ways: vec![(10, 1), (40, 2), (100, 3)], total: 100, counter: None },
        Op::Request(1),
        Op::Request(2),
        Op::Request(3),
    ];
    let mut random = fastrand::Rng::with_seed(7);
    let mut counts = [0; 4];
    for _ in 0..20_000 {
        match advance(&mut Session::default(), &ops, &mut random) {
            Turn::Request(way) => counts[way as usize] += 1,
            other => panic!("{other:?}"),
        }
    }
    for (way, expected) in [(1, 2_000i32), (2, 6_000), (3, 12_000)] {
        assert!((counts[way] - expected).abs() < 500, "{counts:?}");
    }
}

#[test]
fn ways_in_turn_are_gone_one_after_the_other_over_all_users() {
    let ops = [
        Op::Choose { ways: vec![(1, 1), (3, 2)], total: 3, counter: Some(0) },
        Op::Request(1),
        Op::Request(2),
    ];
    let shared = Shared::new(1, Vec::new());
    let mut random = fastrand::Rng::with_seed(7);
    let mut ways = Vec::new();
    for _ in 0..7 {
        let mut environment = Environment { shared: &shared, random: &mut random, epoch_ms: 0 };
        match Session::default().advance(&ops, OPS_PER_TURN, &mut environment, &mut Scratch::default()) {
            Turn::Request(way) => ways.push(way),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ways, [1, 2, 2, 1, 2, 2, 1]);
}

#[test]
fn kinds_are_drawn_by_weight() {
    let kinds: Vec<_> = [1, 0, 3].map(|weight| SessionKind { weight, ..kind(vec![Op::End]) }).into();
    let weights = Weights::new(&kinds);
    let mut random = fastrand::Rng::with_seed(3);
    let mut counts = [0i32; 3];
    (0..8_000).for_each(|_| counts[weights.draw(&mut random)] += 1);
    assert_eq!(counts[1], 0);
    assert!((counts[0] - 2_000).abs() < 250, "{counts:?}");
    assert!(weights.any() && !Weights::new(&[]).any());
}
