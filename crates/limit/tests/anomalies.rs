//! Systems that are not as they seem: what is odd of them is named.

use tidemark_limit::{
    Anomaly, AnswerSize, Cause, Ending, Figures, Found, GoalResult, Moment, Options, Percentile, Purpose,
    Resources, SearchVerdict, Trial, TrialPlan, found, search,
};

use crate::queues::{Queue, Service, Simulated, goal, limit, options};

const P99: Percentile = Percentile { allowed: 0.01, bound_s: 0.05 };

fn carried_out(queue: Queue, resources: &Resources, budget_s: f64, seed: u64) -> Found {
    let goals = [goal(P99)];
    let options = Options { seed, ..options(budget_s, seed) };
    let mut system = Simulated::new(queue, P99, seed);
    let mut trials = Vec::new();
    let Ok(ending) = search(&goals, &options, &mut trials, &mut system);
    found(&goals, &trials, &options, resources, Some(ending))
}

fn resources(cores: f64) -> Resources {
    Resources { cores, in_flight_max: 1_000, ..Resources::default() }
}

fn one_worker() -> Queue {
    Queue::new(1, Service::Exponential, 1_000.0)
}

#[test]
fn a_queue_without_oddities_has_none_and_its_worker_is_the_limit() {
    let mut odd = 0;
    for seed in 0..40 {
        let found = carried_out(one_worker(), &resources(1.0), 180.0, seed);
        odd += u64::from(found.anomalies.iter().any(|odd| !matches!(odd, Anomaly::DoesNotLast { .. })));
        assert_eq!(found.first_to_break.as_deref(), Some("p99 < 50ms"));
        let Some(Cause::Cpu { cores, .. }) = found.cause else { panic!("{:?}", found.cause) };
        assert!(cores > 0.85);
        assert!(found.knee_per_s.unwrap() < 850.0, "{found:?}");
    }
    assert!(odd <= 3, "{odd} of 40");
}

#[test]
fn one_thread_of_many_cores_is_named() {
    let found = carried_out(one_worker(), &resources(8.0), 180.0, 1);
    assert!(matches!(found.cause, Some(Cause::OneThread { .. })), "{:?}", found.cause);
}

#[test]
fn a_system_that_slows_down_is_named() {
    let mut named = 0;
    for seed in 0..20 {
        let found = carried_out(Queue { slows: 0.2, ..one_worker() }, &resources(1.0), 180.0, seed);
        let slows = |odd: &Anomaly| matches!(odd, Anomaly::Slows { .. } | Anomaly::CapacityFalls { .. });
        named += u64::from(found.anomalies.iter().any(slows));
    }
    assert!(named >= 18, "{named} of 20");
}

/// What it answers while it has too much, by when it was asked; nothing else is seen of it.
fn overloaded(answers: impl Fn(f64, f64) -> f64) -> Found {
    let one = |index: u32| {
        // levels in no order
        let (began_s, level) = (12.0 * f64::from(index), 300.0 + 40.0 * f64::from(index * 7 % 5));
        let ask = TrialPlan { level, purpose: Purpose::Narrow, warm_up_s: 1.0, measured_max_s: 8.0 };
        let figures =
            Figures { offered_per_s: level, achieved_per_s: answers(began_s, level), ..Figures::default() };
        let seen = vec![GoalResult { met: false, ..GoalResult::default() }];
        Trial { began_s, ..Trial::new(ask, seen, figures) }
    };
    let trials: Vec<Trial> = (0..12).map(one).collect();
    found(&[goal(P99)], &trials, &options(180.0, 1), &resources(1.0), None)
}

#[test]
fn what_overloaded_trials_answer_tells_that_a_system_slows_down() {
    let falls =
        |found: &Found| found.anomalies.iter().any(|odd| matches!(odd, Anomaly::CapacityFalls { .. }));
    assert!(falls(&overloaded(|at_s, _| 280.0 / (1.0 + at_s / 120.0))));
    assert!(!falls(&overloaded(|at_s, _| 280.0 * (1.0 + at_s / 200.0).min(1.05))), "it gets faster");
    assert!(!falls(&overloaded(|at_s, _| 280.0 * (1.0 - at_s / 3_000.0))), "by next to nothing");
    assert!(!falls(&overloaded(|_, level| 280.0 - level / 4.0)), "by its load, and not by time");
    // by chance it is told in 2 of 100
    let mut random = fastrand::Rng::with_seed(7);
    let mut by_chance = 0;
    for _ in 0..100 {
        let noise: Vec<f64> = (0..12).map(|_| 220.0 + 60.0 * random.f64()).collect();
        by_chance += u32::from(falls(&overloaded(|at_s, _| noise[(at_s / 12.0) as usize])));
    }
    assert!(by_chance <= 5, "{by_chance} of 100");
}

/// Good answers by load: a server that answers 200 with an error beyond what it can.
#[test]
fn answers_that_are_smaller_at_more_load_are_told_and_hold_nothing_for_sure() {
    let of = |bytes: &dyn Fn(f64) -> f64| {
        let one = |(index, level): (usize, &f64)| {
            let purpose = if index == 7 { Purpose::Last } else { Purpose::Explore };
            let ask = TrialPlan { level: *level, purpose, warm_up_s: 1.0, measured_max_s: 8.0 };
            let answers = |label: &str, bytes| AnswerSize { label: label.into(), answers: 900, bytes };
            let figures = Figures {
                offered_per_s: *level,
                achieved_per_s: *level,
                answers: vec![answers("GET /", 40.0), answers("GET /items", bytes(*level))],
                ..Figures::default()
            };
            Trial::new(ask, vec![GoalResult { met: true, ..GoalResult::default() }], figures)
        };
        let levels = [50.0, 100.0, 200.0, 400.0, 800.0, 1_600.0, 3_200.0, 3_200.0];
        let trials: Vec<Trial> = levels.iter().enumerate().map(one).collect();
        found(&[goal(P99)], &trials, &options(180.0, 1), &resources(1.0), Some(Ending::NothingBreaks))
    };
    let sheds = of(&|level| 22.0 + 1_978.0 * (200.0 / level).min(1.0));
    let shrinks = |odd: &Anomaly| match odd {
        Anomaly::AnswersShrink { label, from_per_s, .. } => Some((label.clone(), *from_per_s)),
        _ => None,
    };
    assert_eq!(sheds.anomalies.iter().find_map(shrinks), Some(("GET /items".into(), 400.0)));
    assert_eq!(
        [150.0, 400.0].map(|per_s| sheds.verdict(Some(per_s))),
        [SearchVerdict::Pass, SearchVerdict::Unknown]
    );
    // sizes that differ anyhow, and what grows
    let differs = of(&|level| 2_000.0 + 300.0 * (level.sqrt() % 3.0 - 1.5));
    let grows = of(&|level| 2_000.0 + level);
    for found in [differs, grows] {
        assert_eq!(
            (found.anomalies.iter().find_map(shrinks), found.smaller_from_per_s),
            (None, None),
            "{found:?}"
        );
    }
}

#[test]
fn pauses_every_ten_seconds_are_named() {
    let mut named = 0;
    for seed in 0..10 {
        let found =
            carried_out(Queue { pauses: Some((10.0, 0.3)), ..one_worker() }, &resources(1.0), 180.0, seed);
        named += u64::from(found.anomalies.iter().any(|odd| match odd {
            Anomaly::Pauses { every_s, length_s, .. } => {
                (every_s - 10.0).abs() < 0.5 && (0.1..0.6).contains(length_s)
            }
            _ => false,
        }));
    }
    assert!(named >= 9, "{named} of 10");
}

/// Seconds of a load before its measured window are in no window, however many there are.
#[test]
fn pauses_are_looked_for_where_it_was_measured() {
    let of = |index: i32| {
        let ask = TrialPlan { level: 100.0, purpose: Purpose::Explore, warm_up_s: 2.0, measured_max_s: 8.0 };
        // calm for 2 s, warmed up for 2 s, measured from 4 s to 12 s; at 10.5 s it stands still
        let moment = |second: i32| {
            let at_s = f64::from(second) + 0.5;
            Moment { at_s, ended: 100, slow: if second == 10 { 40 } else { 0 } }
        };
        let figures = Figures { offered_per_s: 100.0, p50_us: Some(900), ..Figures::default() };
        let moments = (4..12).map(moment).collect();
        let seen = vec![GoalResult { met: false, ..GoalResult::default() }];
        Trial { began_s: 20.0 * f64::from(index), moments, ..Trial::new(ask, seen, figures) }
    };
    let trials: Vec<Trial> = (0..7).map(of).collect();
    let found = found(&[goal(P99)], &trials, &options(180.0, 1), &resources(1.0), None);
    let every = found.anomalies.iter().find_map(|odd| match odd {
        Anomaly::Pauses { every_s, .. } => Some(*every_s),
        _ => None,
    });
    assert!(every.is_some_and(|every_s| (every_s - 10.0).abs() < 0.5), "{every:?}");
}

/// It was there before, and each load begins with a calm second.
#[test]
fn pauses_of_a_system_that_is_not_started_anew_are_named_and_its_limit_is_not_known() {
    let mut named = 0;
    for seed in 0..10 {
        let queue = Queue { pauses: Some((10.0, 0.4)), calm_s: 1.0, ..one_worker() };
        let resources = Resources { fresh: false, ..resources(1.0) };
        let found = carried_out(queue, &resources, 300.0, seed);
        named += u64::from(
            found
                .anomalies
                .iter()
                .any(|odd| matches!(odd, Anomaly::Pauses { every_s, .. } if (every_s - 10.0).abs() < 0.5)),
        );
        // no trial of ten seconds holds at any load
        let width = found.low_per_s.zip(found.high_per_s).map_or(f64::INFINITY, |(low, high)| high / low);
        assert!(width > 2.0 || found.low_per_s.is_none(), "{seed}: {found:?}");
        assert!(
            found.per_s.is_none()
                || found
                    .anomalies
                    .iter()
                    .any(|odd| { matches!(odd, Anomaly::Contradicts { .. } | Anomaly::Pauses { .. }) }),
            "{seed}: {found:?}"
        );
    }
    assert!(named >= 9, "{named} of 10");
}

/// Once, and never again: whichever trial it meets.
#[test]
fn a_hiccup_is_not_the_limit() {
    let queue = Queue::new(1, Service::Fixed, 440.0);
    let truth = limit(queue, P99);
    let mut at_first = 0;
    for from_s in [1.2, 2.0, 3.0, 8.0, 14.0, 20.0, 27.0, 33.0, 41.0, 60.0] {
        for seed in 0..3 {
            let queue = Queue { hiccup: Some((from_s, 1.5)), calm_s: 1.0, ..queue };
            let found = carried_out(queue, &resources(1.0), 180.0, seed);
            let told = format!("{from_s} s, {seed}: {found:?}");
            assert!(found.level.unwrap() > truth * 0.8, "{told}");
            assert!(found.high_level.is_none_or(|high| high >= truth * 0.97), "{told}");
            at_first += u64::from(
                from_s < 4.0
                    && found
                        .anomalies
                        .iter()
                        .any(|odd| matches!(odd, Anomaly::Contradicts { broke: 50.0, trials: 1, .. })),
            );
        }
    }
    assert!(at_first >= 6, "{at_first} of 9 are named");
}

#[test]
fn connections_that_are_all_taken_are_named() {
    // 40 connections, 40 ms each
    let queue = Queue { is_in_driver: true, ..Queue::new(40, Service::Exponential, 1_000.0) };
    let percentile = Percentile { allowed: 0.01, bound_s: 0.3 };
    let resources = Resources { cores: 8.0, in_flight_max: 40, ..Resources::default() };
    for seed in 0..5 {
        let goals = [goal(percentile)];
        let mut system = Simulated::new(queue, percentile, seed);
        let mut trials = Vec::new();
        let Ok(ending) = search(&goals, &options(180.0, seed), &mut trials, &mut system);
        let found = found(&goals, &trials, &options(180.0, seed), &resources, Some(ending));
        assert!(
            matches!(found.cause, Some(Cause::Connections { in_flight_max: 40, .. })),
            "{:?}",
            found.cause
        );
        assert!((850.0..1_050.0).contains(&found.per_s.unwrap()), "{found:?}");
    }
}
