use std::time::Duration;

use proptest::prelude::*;
use tidemark_scenario::plan::{
    AtLimit, Curve, Grace, KindLoad, LoadModel, Pause, Phase, Series, SessionLimit, Spacing,
};

use super::profile::Profile;
use super::*;
use crate::clock::SECOND_NS;

const MS: u64 = crate::clock::MILLISECOND_NS;

fn phase(ms: u64, from: f64, to: f64, measured: bool) -> Phase {
    curved(ms, from, to, measured, Curve::Line)
}

fn curved(ms: u64, from: f64, to: f64, measured: bool, curve: Curve) -> Phase {
    Phase { name: "p".into(), duration: Duration::from_millis(ms), from, to, measured, curve }
}

fn limits(in_flight: Option<SessionLimit>) -> Limits {
    Limits { in_flight, waiting: Some(3), ..crate::testing::plan(Vec::new()).limits }
}

fn schedule(load: &Load, thread: usize, threads: usize, random: &mut fastrand::Rng) -> Schedule {
    Schedule::new(load, &limits(None), 0, thread, threads, random)
}

/// When all sessions of a schedule are due, and which user's they are, in the order in which they come.
fn all_of(schedule: &mut Schedule, random: &mut fastrand::Rng) -> Vec<Arrival> {
    std::iter::from_fn(|| match schedule.due(u64::MAX, random) {
        Due::Begin(arrival) => Some(arrival),
        _ => None,
    })
    .collect()
}

fn dues_of(load: &Load, threads: usize, seed: u64) -> Vec<Vec<u64>> {
    let one = |thread| {
        let mut random = fastrand::Rng::with_seed(seed + thread as u64);
        let mut schedule = schedule(load, thread, threads, &mut random);
        all_of(&mut schedule, &mut random).into_iter().map(|arrival| arrival.due_ns).collect()
    };
    (0..threads).map(one).collect()
}

fn dues(model: LoadModel, phases: &[Phase], threads: usize, seed: u64) -> Vec<Vec<u64>> {
    dues_of(&Load::new(model, phases.to_vec()), threads, seed)
}

#[test]
fn who_takes_over_has_all_that_is_due_from_then_on_and_nothing_before() {
    let phases = [
        phase(2_000, 10.0, 200.0, false),
        phase(3_000, 200.0, 200.0, true),
        curved(
            2_500,
            100.0,
            100.0,
            true,
            Curve::Sine { amplitude: 50.0, period: Duration::from_millis(800) },
        ),
    ];
    let pace = LoadModel::Paced(Duration::from_millis(300));
    for model in [LoadModel::Open(Spacing::Constant), pace, LoadModel::Open(Spacing::Poisson)] {
        let load = Load::new(model, phases.to_vec());
        for from_ns in [0, 1_000 * MS, 2_000 * MS, 3_333 * MS, 7_000 * MS, 9_000 * MS] {
            for thread in 0..3 {
                let mut random = fastrand::Rng::with_seed(3);
                let mut whole = schedule(&load, thread, 3, &mut random);
                let expected: Vec<u64> = all_of(&mut whole, &mut random)
                    .iter()
                    .map(|of| of.due_ns)
                    .filter(|due| *due >= from_ns)
                    .collect();
                let mut taken = schedule(&load, thread, 3, &mut random);
                taken.begin_at(from_ns, &mut random);
                let dues: Vec<u64> = all_of(&mut taken, &mut random).iter().map(|of| of.due_ns).collect();
                assert!(dues.iter().all(|due| *due >= from_ns), "{model:?} from {from_ns}");
                match model {
                    LoadModel::Open(Spacing::Constant) => assert_eq!(dues, expected, "from {from_ns}"),
                    LoadModel::Open(Spacing::Poisson) => {
                        let (few, many) =
                            (expected.len() as f64 * 0.6 - 10.0, expected.len() as f64 * 1.5 + 10.0);
                        assert!(
                            (few..many).contains(&(dues.len() as f64)),
                            "{} of {}",
                            dues.len(),
                            expected.len()
                        );
                    }
                    // those who are at work then begin anew, and all who come later
                    _ => assert!(dues.len() >= expected.len().min(1), "{} of {}", dues.len(), expected.len()),
                }
            }
        }
    }
    let mut random = fastrand::Rng::with_seed(3);
    let load = Load::new(LoadModel::Closed, vec![phase(4_000, 7.0, 7.0, true)]);
    let mut taken = schedule(&load, 1, 3, &mut random);
    taken.begin_at(2_000 * MS, &mut random);
    let begun: Vec<_> =
        all_of(&mut taken, &mut random).iter().map(|of| (of.due_ns, of.origin.user)).collect();
    assert_eq!(begun, [(2_000 * MS, Some(1)), (2_000 * MS, Some(4))]);
}

/// A user's next session if it went as said.
fn again(schedule: &mut Schedule, user: u32, due_ns: u64, end_ns: u64) -> Option<Again> {
    let ended = Ended { due_ns, end_ns, earliest_ns: end_ns };
    let origin = Origin { source: 0, user: Some(user) };
    schedule.again(origin, ended, &mut fastrand::Rng::with_seed(1))
}

fn union(of: Vec<Vec<u64>>) -> Vec<u64> {
    let mut all = of.concat();
    all.sort_unstable();
    all
}

#[test]
fn constant_arrivals_are_evenly_spaced_over_all_threads() {
    let phases = [phase(2_000, 1_000.0, 1_000.0, true)];
    for threads in 1..=7 {
        let all = union(dues(LoadModel::Open(Spacing::Constant), &phases, threads, 1));
        let expected: Vec<u64> = (0..2_000).map(|n| n * MS).collect();
        assert_eq!(all, expected, "{threads} threads");
    }
}

#[test]
fn a_ramp_brings_the_integral_of_its_rate() {
    // 0 to 1000/s over 10 s: 5000 arrivals, arrival n at sqrt(n / 50) seconds.
    let all = union(dues(LoadModel::Open(Spacing::Constant), &[phase(10_000, 0.0, 1_000.0, false)], 3, 1));
    assert_eq!(all.len(), 5_000);
    for n in [0usize, 1, 50, 1_250, 4_999] {
        let expected = (n as f64 / 50.0).sqrt() * SECOND_NS as f64;
        assert!((all[n] as f64 - expected).abs() < 2.0, "arrival {n}: {} against {expected}", all[n]);
    }
}

#[test]
fn phases_without_load_are_pauses() {
    let phases =
        [phase(100, 100.0, 100.0, false), phase(1_000, 0.0, 0.0, false), phase(100, 100.0, 100.0, true)];
    let all = union(dues(LoadModel::Open(Spacing::Constant), &phases, 2, 1));
    assert_eq!(all.len(), 20);
    assert_eq!(all[9], 90 * MS);
    assert_eq!(all[10], 1_100 * MS);
    let load = Load::new(LoadModel::Closed, phases.to_vec());
    assert_eq!(span(&load, 7), ((1_100 * MS + 7, 1_200 * MS + 7), 1_200 * MS + 7));
}

#[test]
fn poisson_spacing_has_the_mean_and_variance_of_one() {
    let rate = 5_000.0;
    let all = union(dues(LoadModel::Open(Spacing::Poisson), &[phase(40_000, rate, rate, true)], 4, 99));
    let count = all.len() as f64;
    // 200,000 expected, standard deviation 447: six of them.
    assert!((count - 200_000.0).abs() < 2_700.0, "{count}");
    let gaps: Vec<f64> = all.windows(2).map(|w| (w[1] - w[0]) as f64 / SECOND_NS as f64 * rate).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    let longer_than_mean = gaps.iter().filter(|g| **g > 1.0).count() as f64 / gaps.len() as f64;
    assert!((mean - 1.0).abs() < 0.02, "{mean}");
    assert!((variance - 1.0).abs() < 0.05, "{variance}");
    assert!((longer_than_mean - (-1.0f64).exp()).abs() < 0.01, "{longer_than_mean}");
}

#[test]
fn users_follow_the_level_up_and_down() {
    let phases =
        [phase(1_000, 0.0, 10.0, false), phase(1_000, 10.0, 10.0, true), phase(1_000, 10.0, 0.0, false)];
    let all = union(dues(LoadModel::Closed, &phases, 3, 1));
    let expected: Vec<u64> = (0..10).map(|k| k * 100 * MS).collect();
    assert_eq!(all, expected);

    let load = Load::new(LoadModel::Closed, phases.to_vec());
    let mut schedule = schedule(&load, 0, 1, &mut fastrand::Rng::with_seed(1));
    let mut again = |user, ms: u64| again(&mut schedule, user, 0, ms * MS).map(|again| again.at_ns / MS);
    assert_eq!(again(9, 1_500), Some(1_500));
    assert_eq!(again(9, 2_200), None, "the level is at 8 by now");
    assert_eq!(again(7, 2_100), Some(2_100));
    assert_eq!(again(0, 3_000), None);
}

#[test]
fn a_user_that_a_valley_sent_away_comes_back() {
    let phases =
        [phase(1_000, 4.0, 4.0, false), phase(1_000, 1.0, 1.0, false), phase(1_000, 1.0, 5.0, false)];
    let load = Load::new(LoadModel::Closed, phases.to_vec());
    let mut schedule = schedule(&load, 0, 1, &mut fastrand::Rng::with_seed(1));
    let mut again = |user, ms: u64| again(&mut schedule, user, 0, ms * MS).map(|again| again.at_ns / MS);
    assert_eq!(again(3, 1_200), Some(2_500));
    assert_eq!(again(0, 1_200), Some(1_200));
}

#[test]
fn shares_add_up_and_favour_the_first() {
    for total in 0..50 {
        for threads in 1..9 {
            let shares: Vec<usize> = (0..threads).map(|i| share(total, i, threads)).collect();
            assert_eq!(shares.iter().sum::<usize>(), total);
            assert!(shares.is_sorted_by(|a, b| a >= b));
        }
    }
}

/// Two users until 10 s; then one leaves at 15 s, the other at 20 s.
#[test]
fn a_session_has_its_time_from_when_its_user_leaves() {
    const S: u64 = SECOND_NS;
    let over = |phases: &[Phase], user: Option<u32>, from_s: u64, grace: (u64, u64)| {
        let grace = Grace { stop: Duration::from_secs(grace.0), ramp_down: Duration::from_secs(grace.1) };
        let model = if user.is_some() { LoadModel::Closed } else { LoadModel::Open(Spacing::Constant) };
        let schedule = schedule(&Load::new(model, phases.to_vec()), 0, 1, &mut fastrand::Rng::with_seed(1));
        schedule.over_ns(Origin { source: 0, user }, from_s * S, grace) / MS
    };
    let phases = [phase(10_000, 2.0, 2.0, true), phase(10_000, 2.0, 0.0, true), phase(5_000, 0.0, 0.0, true)];
    // the load's end is when no user is left, however long nothing follows
    for (user, grace, over_ms) in [
        (Some(1), (5, 1), 16_000),
        (Some(1), (5, 60), 25_000),
        (Some(0), (5, 1), 25_000),
        (Some(0), (0, 30), 20_000),
        (None, (5, 1), 25_000),
    ] {
        assert_eq!(over(&phases, user, 3, grace), over_ms, "{user:?} {grace:?}");
    }
    // who is back in time goes on
    let away = [phase(1_000, 2.0, 2.0, true), phase(500, 1.0, 1.0, true), phase(1_000, 2.0, 2.0, true)];
    assert_eq!((over(&away, Some(1), 0, (9, 1)), over(&away, Some(1), 0, (9, 0))), (11_500, 1_000));
    let sine = Curve::Sine { amplitude: 1.0, period: Duration::from_secs(4) };
    // its level is above 2 for the first half of each period
    let waves = [curved(8_000, 2.0, 2.0, true, sine)];
    assert_eq!(over(&waves, Some(2), 1, (9, 1)), 3_000);
    assert_eq!(over(&waves, Some(2), 5, (9, 1)), 7_000);
    assert_eq!(over(&waves, Some(0), 5, (9, 1)), 17_000);
}

proptest! {
    /// Whatever the phases: the right number of arrivals, in order, and none outside.
    #[test]
    fn arrivals_match_the_integral(
        levels in prop::collection::vec((1u64..3_000, 0.0f64..2_000.0, 0.0f64..2_000.0), 1..6),
        threads in 1usize..6,
    ) {
        let phases: Vec<Phase> = levels.iter().map(|(ms, from, to)| phase(*ms, *from, *to, false)).collect();
        let each = dues(LoadModel::Open(Spacing::Constant), &phases, threads, 5);
        for one in &each {
            prop_assert!(one.is_sorted());
        }
        let all = union(each);
        let integral: f64 = levels.iter().map(|(ms, from, to)| (from + to) / 2.0 * *ms as f64 / 1_000.0).sum();
        prop_assert!((all.len() as f64 - integral.ceil()).abs() <= 1.0, "{} against {integral}", all.len());
        let end = Profile::new(&phases, 0).end_ns();
        prop_assert!(all.last().is_none_or(|last| *last <= end));
        // Up to any moment the count is the integral up to it, to within one arrival.
        for (n, due) in all.iter().enumerate().step_by(97) {
            let mut so_far = 0.0;
            let mut start = 0;
            for (ms, from, to) in &levels {
                let length = ms * MS;
                let within = due.saturating_sub(start).min(length) as f64;
                let level = from + (to - from) * within / length as f64;
                so_far += (from + level) / 2.0 * within / SECOND_NS as f64;
                start += length;
            }
            prop_assert!((so_far - n as f64).abs() < 0.01, "arrival {n} at {due}: {so_far}");
        }
    }

    /// A closed user works just while the level is above its number.
    #[test]
    fn users_work_while_the_level_is_above_them(
        levels in prop::collection::vec((1u64..2_000, 0.0f64..20.0, 0.0f64..20.0), 1..6),
        user in 0u32..20,
        at_ms in 0u64..10_000,
    ) {
        let phases: Vec<Phase> = levels.iter().map(|(ms, from, to)| phase(*ms, *from, *to, false)).collect();
        let profile = Profile::new(&phases, 0);
        let at = at_ms * MS;
        match profile.when_above(user, at) {
            Some(when) => {
                prop_assert!(when >= at && when < profile.end_ns());
                prop_assert!(profile.level_at(when) > f64::from(user) - 1e-6);
                if profile.level_at(at) > user.into() {
                    prop_assert_eq!(when, at);
                }
            }
            None => prop_assert!(profile.level_at(at) <= user.into()),
        }
        let left = profile.when_not_above(user, at);
        prop_assert!(left >= at && (left >= profile.end_ns() || profile.level_at(left) < f64::from(user) + 1e-6));
        if profile.level_at(at) <= user.into() {
            prop_assert_eq!(left, at);
        }
    }
}

mod curves;
mod models;
