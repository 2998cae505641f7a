//! Tests of the load models: think time, pace, several kinds, the limit of sessions in flight.

use super::*;

const OPEN: LoadModel = LoadModel::Open(Spacing::Constant);
const PACE: LoadModel = LoadModel::Paced(Duration::from_secs(1));

fn flat(ms: u64, level: f64) -> Vec<Phase> {
    vec![phase(ms, level, level, true)]
}

/// All sessions of a closed load, each of which takes so long: when they are due, and when they begin.
fn carried_out(load: &Load, threads: usize, takes_ns: impl Fn(u64) -> u64) -> Vec<(u64, u64)> {
    let mut begun = Vec::new();
    for thread in 0..threads {
        let mut random = fastrand::Rng::with_seed(thread as u64);
        let mut schedule = schedule(load, thread, threads, &mut random);
        let end_ns = schedule.end_ns();
        for first in all_of(&mut schedule, &mut random) {
            let mut next = Some(Again { due_ns: first.due_ns, ready_ns: first.due_ns, at_ns: first.due_ns });
            while let Some(Again { due_ns, ready_ns, at_ns }) = next.filter(|next| next.at_ns < end_ns) {
                assert_eq!(ready_ns, at_ns, "lateness of a user is not the load generator's");
                begun.push((due_ns, at_ns));
                let ended_ns = at_ns + takes_ns(due_ns);
                let ended = Ended { due_ns, end_ns: ended_ns, earliest_ns: ended_ns };
                next = schedule.again(first.origin, ended, &mut random);
            }
        }
    }
    begun.sort_unstable();
    begun
}

#[test]
fn paced_users_begin_evenly_spread_whatever_their_sessions_take() {
    let load = Load::new(PACE, flat(10_000, 8.0));
    for threads in 1..4 {
        let begun = carried_out(&load, threads, |due| due % (700 * MS));
        let expected: Vec<_> = (0..80).map(|n| (n * 125 * MS, n * 125 * MS)).collect();
        assert_eq!(begun, expected, "{threads} threads");
    }
}

#[test]
fn a_session_that_took_longer_than_the_pace_makes_the_next_late_and_not_undue() {
    let load = Load::new(PACE, flat(8_000, 1.0));
    // The first takes 3.5 s, the others 0.5 s each.
    let begun = carried_out(&load, 1, |due| if due == 0 { 3_500 * MS } else { 500 * MS });
    let in_ms: Vec<_> = begun.iter().map(|(due, at)| (due / MS, at / MS)).collect();
    let expected = [
        (0, 0),
        (1_000, 3_500),
        (2_000, 4_000),
        (3_000, 4_500),
        (4_000, 5_000),
        (5_000, 5_500),
        (6_000, 6_000),
        (7_000, 7_000),
    ];
    assert_eq!(in_ms, expected);
}

/// When the beats after the one that was due at `due_ms` were due, milliseconds.
fn missed(schedule: &Schedule, origin: Origin, due_ms: u64) -> Vec<u64> {
    let mut all = Vec::new();
    schedule.missed(origin, due_ms * MS, |due_ns| all.push(due_ns / MS));
    all
}

#[test]
fn what_a_paced_user_never_came_to_is_missed() {
    let load = Load::new(PACE, flat(5_000, 2.0));
    let mut schedule = schedule(&load, 0, 1, &mut fastrand::Rng::with_seed(1));
    let origin = |user| Origin { source: 0, user: Some(user) };
    schedule.stop(9_000 * MS);
    // Beats of the first: 0 to 4 s; of the second, half a second later each.
    assert_eq!([0, 1_000, 4_000].map(|due| missed(&schedule, origin(0), due).len()), [4, 3, 0]);
    assert_eq!([500, 4_500].map(|due| missed(&schedule, origin(1), due).len()), [4, 0]);
    schedule.stop(2_500 * MS);
    assert_eq!(missed(&schedule, origin(0), 0), [1_000, 2_000]);
}

#[test]
fn a_paced_user_that_a_valley_sent_away_comes_back_on_its_beat() {
    let phases =
        vec![phase(2_000, 2.0, 2.0, true), phase(2_300, 1.0, 1.0, true), phase(3_000, 2.0, 2.0, true)];
    let begun = carried_out(&Load::new(PACE, phases), 1, |_| 10 * MS);
    let second: Vec<_> = begun.iter().map(|(due, _)| due / MS).filter(|ms| ms % 1_000 == 500).collect();
    assert_eq!(second, [500, 1_500, 4_500, 5_500, 6_500]);
}

#[test]
fn think_time_stands_between_the_sessions_of_a_user() {
    let fixed = LoadModel::Thinking(Pause::Fixed(Duration::from_millis(900)));
    let begun = carried_out(&Load::new(fixed, flat(5_000, 3.0)), 2, |_| 100 * MS);
    assert_eq!(begun.len(), 15);
    assert!(begun.iter().all(|(due, at)| due == at && due % (1_000 * MS) == 0));

    let mean = Duration::from_millis(100);
    for (pause, low, high) in
        [(Pause::Exponential(mean), 0, u64::MAX), (Pause::Between(mean / 2, mean * 3 / 2), 50 * MS, 150 * MS)]
    {
        let begun = carried_out(&Load::new(LoadModel::Thinking(pause), flat(500_000, 1.0)), 1, |_| 0);
        let gaps: Vec<u64> = begun.windows(2).map(|two| two[1].0 - two[0].0).collect();
        assert!(gaps.iter().all(|gap| (low..=high).contains(gap)));
        // 5,000 expected; the standard deviation is at most 71: six of them.
        assert!((4_574..=5_426).contains(&begun.len()), "{pause:?}: {}", begun.len());
    }
}

#[test]
fn kinds_with_loads_of_their_own_come_together() {
    let own = |kind, model, phases| KindLoad { kind, model, phases };
    let kinds = vec![
        own(0, OPEN, flat(2_000, 100.0)),
        own(1, LoadModel::Closed, flat(1_000, 5.0)),
        own(2, LoadModel::Closed, flat(1_000, 4.0)),
        own(3, OPEN, flat(1_000, 10.0)),
    ];
    let load = Load { model: LoadModel::Closed, phases: flat(2_000, 0.0), kinds };
    assert_eq!(load.most_users(), 9);
    for threads in 1..5 {
        let mut by_kind = [0; 4];
        let mut users = Vec::new();
        for thread in 0..threads {
            let mut random = fastrand::Rng::with_seed(1);
            let mut schedule = schedule(&load, thread, threads, &mut random);
            assert_eq!(schedule.end_ns(), 2_000 * MS);
            let arrivals = all_of(&mut schedule, &mut random);
            assert!(arrivals.is_sorted_by_key(|arrival| arrival.due_ns));
            for arrival in &arrivals {
                by_kind[schedule.kind(arrival.origin).unwrap()] += 1;
            }
            users.push(arrivals.iter().filter(|arrival| arrival.origin.user.is_some()).count());
        }
        assert_eq!(by_kind, [200, 5, 4, 10]);
        // Each thread has connections for its even share of all users, and no more users than that.
        let most = share(9, 0, threads);
        assert!(users.iter().all(|of_thread| *of_thread <= most), "{users:?}");
    }
}

fn limited(at_limit: AtLimit) -> (Schedule, fastrand::Rng) {
    let mut random = fastrand::Rng::with_seed(1);
    let load = Load::new(OPEN, flat(1_000, 10.0));
    let limits = limits(Some(SessionLimit { most: 2, at_limit }));
    (Schedule::new(&load, &limits, 0, 0, 1, &mut random), random)
}

#[test]
fn at_the_limit_arrivals_wait_in_order_and_are_dropped_where_too_many_wait() {
    let (mut schedule, mut random) = limited(AtLimit::Wait);
    let mut now = |schedule: &mut Schedule, ms: u64| schedule.due(ms * MS, &mut random);
    let arrival = |ms: u64, ready_ms: u64| Arrival {
        due_ns: ms * MS,
        ready_ns: ready_ms * MS,
        origin: Origin::default(),
    };
    let begin_at = |ms, ready_ms| Due::Begin(arrival(ms, ready_ms));
    let begin = |ms| begin_at(ms, ms);
    assert_eq!([0, 100].map(|ms| now(&mut schedule, ms)), [0, 100].map(begin));
    assert_eq!([200, 300].map(|ms| now(&mut schedule, ms)), [Due::Waits; 2]);
    assert_eq!(now(&mut schedule, 350), Due::Nothing);
    assert_eq!((schedule.next_ns(), schedule.waiting()), (Some(400 * MS), 2));
    schedule.leave(Origin::default(), 355 * MS);
    assert_eq!(schedule.next_ns(), Some(0), "who waits can begin at once");
    assert_eq!(now(&mut schedule, 360), begin_at(200, 355));
    assert_eq!([400, 500].map(|ms| now(&mut schedule, ms)), [Due::Waits; 2]);
    assert_eq!(now(&mut schedule, 600), Due::Dropped(arrival(600, 600)), "only three may wait");
    let vain = [300, 400, 500].map(|ms| arrival(ms, ms));
    assert_eq!(schedule.stop(650 * MS), vain, "each with the time at which it was due");
    assert_eq!((schedule.limited(), schedule.waiting(), schedule.next_ns()), ((4, 4), 0, None));
}

#[test]
fn at_the_limit_arrivals_are_dropped_if_so_wanted() {
    let (mut schedule, mut random) = limited(AtLimit::Drop);
    let mut all = std::iter::from_fn(|| Some(schedule.due(250 * MS, &mut random)));
    assert!(matches!(all.next(), Some(Due::Begin(_))) && matches!(all.next(), Some(Due::Begin(_))));
    assert!(matches!(all.next(), Some(Due::Dropped(arrival)) if arrival.due_ns == 200 * MS));
    assert_eq!(all.next(), Some(Due::Nothing));
    assert_eq!(schedule.limited(), (0, 1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Paced users begin at a rate of users by pace, however long their sessions take, as long as they keep up.
    #[test]
    fn paced_users_bring_their_rate_in_any_window(
        users in 1u32..40,
        threads in 1usize..5,
        takes_ms in 0u64..1_000,
        a in 0u64..10_000,
        b in 0u64..10_000,
    ) {
        let load = Load::new(PACE, flat(10_000, users.into()));
        let begun = carried_out(&load, threads, |_| takes_ms * MS);
        let (from, to) = (a.min(b) * MS, a.max(b) * MS);
        let count = begun.iter().filter(|(due, _)| (from..to).contains(due)).count() as f64;
        let expected = f64::from(users) * (to - from) as f64 / SECOND_NS as f64;
        prop_assert!((count - expected).abs() <= 1.0, "{count} against {expected}");
        prop_assert!(begun.iter().all(|(due, at)| due == at));
    }

    /// Nothing that a paced user owes is lost: it begins late, or is missed.
    #[test]
    fn every_beat_begins_or_is_missed(takes in prop::collection::vec(0u64..4_000, 30)) {
        let load = Load::new(PACE, flat(20_000, 1.0));
        let begun = carried_out(&load, 1, |due| takes[(due / SECOND_NS) as usize] * MS);
        let mut schedule = schedule(&load, 0, 1, &mut fastrand::Rng::with_seed(1));
        schedule.stop(u64::MAX);
        let last = begun.last().unwrap().0;
        let missed = missed(&schedule, Origin { source: 0, user: Some(0) }, last / MS).len();
        prop_assert_eq!(begun.len() + missed, 20);
        for two in begun.windows(2) {
            prop_assert_eq!(two[1].0, two[0].0 + SECOND_NS);
        }
    }
}

/// What is remembered of a level that stays the same is never taken for another time's.
#[test]
fn when_a_user_is_at_work_again_does_not_depend_on_what_was_asked_before() {
    let phases = [
        phase(1_000, 4.0, 4.0, true),
        phase(1_000, 4.0, 0.0, true),
        phase(500, 2.0, 2.0, true),
        phase(500, 6.0, 6.0, true),
    ];
    let load = Load::new(LoadModel::Closed, phases.to_vec());
    let fresh = || schedule(&load, 0, 1, &mut fastrand::Rng::with_seed(1));
    let mut asked = fresh();
    for n in 0..5_000 {
        let (user, at_ns) = (n * 7 % 6, u64::from(n) * 7_919 % 3_100 * MS);
        let expected = again(&mut fresh(), user, at_ns, at_ns);
        assert_eq!(again(&mut asked, user, at_ns, at_ns), expected, "user {user} at {at_ns}");
    }
}
