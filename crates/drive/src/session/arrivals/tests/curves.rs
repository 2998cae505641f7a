//! Tests of the curves: steps, spikes, sines, series.

use std::sync::Arc;

use super::*;

const OPEN: LoadModel = LoadModel::Open(Spacing::Constant);

fn series(points: &[(f64, f64)], between: bool) -> Curve {
    Curve::Series(Arc::new(Series { points: points.to_vec(), between, length_s: 0.0 }))
}

/// How many are due in each of the spans, which are milliseconds.
fn counts(phases: &[Phase], spans: &[(u64, u64)]) -> Vec<usize> {
    let all = union(dues(OPEN, phases, 3, 1));
    let within =
        |(from, to): &(u64, u64)| all.iter().filter(|due| (from * MS..to * MS).contains(due)).count();
    spans.iter().map(within).collect()
}

#[test]
fn steps_lead_from_the_first_level_to_the_last() {
    let stairs = [curved(5_000, 100.0, 1_000.0, true, Curve::Steps(5))];
    let spans = [(0, 1_000), (1_000, 2_000), (2_000, 3_000), (3_000, 4_000), (4_000, 5_000)];
    assert_eq!(counts(&stairs, &spans), [100, 325, 550, 775, 1_000]);
    assert_eq!(union(dues(OPEN, &stairs, 2, 1)).len(), 2_750);
}

#[test]
fn spikes_stand_at_the_end_of_their_period() {
    let spikes = |ms| {
        let (every, length) = (Duration::from_secs(1), Duration::from_millis(100));
        [curved(ms, 100.0, 100.0, true, Curve::Spikes { level: 2_000.0, every, length })]
    };
    assert_eq!(
        counts(&spikes(2_500), &[(0, 900), (900, 1_000), (1_900, 2_000), (2_000, 2_500)]),
        [90, 200, 200, 50]
    );
    // The last is cut off with its phase.
    assert_eq!(counts(&spikes(1_950), &[(900, 1_000), (1_000, 1_900), (1_900, 1_950)]), [200, 90, 100]);
}

#[test]
fn a_sine_brings_its_mean_in_each_period_and_is_highest_in_its_first_quarter() {
    let curve = Curve::Sine { amplitude: 500.0, period: Duration::from_secs(4) };
    let phases = [curved(10_000, 500.0, 500.0, true, curve)];
    let counted = counts(&phases, &[(0, 4_000), (4_000, 8_000), (0, 2_000), (2_000, 4_000)]);
    assert_eq!(counted[..2], [2_000, 2_000]);
    // Half a swing is its mean of 1,000 and 500·T/π = 636.6 more, or less.
    assert!((1_636..=1_638).contains(&counted[2]) && (362..=364).contains(&counted[3]), "{counted:?}");
    let profile = Profile::new(&phases, 0);
    assert!((profile.level_at(1_000 * MS) - 1_000.0).abs() < 1e-6);
    assert!(profile.level_at(3_000 * MS).abs() < 1e-6);
    assert_eq!(profile.level_at(10_000 * MS), 0.0);
}

#[test]
fn a_series_holds_or_draws_lines_and_its_end_stays() {
    let points = [(0.0, 100.0), (1.0, 300.0), (2.0, 0.0)];
    let phases = |between, ms| [curved(ms, 100.0, 0.0, true, series(&points, between))];
    let spans = [(0, 1_000), (1_000, 2_000), (2_000, 3_000)];
    assert_eq!(counts(&phases(false, 3_000), &spans), [100, 300, 0]);
    let lines = counts(&phases(true, 3_000), &spans);
    assert_eq!((lines[0], lines[1], lines[2]), (200, 150, 0));
    // Cut off in the middle of a row.
    assert_eq!(counts(&phases(false, 1_500), &spans), [100, 150, 0]);
    assert_eq!(counts(&phases(true, 500), &spans), [75, 0, 0]);
    let stays = [curved(3_000, 10.0, 20.0, true, series(&[(0.0, 10.0), (1.0, 20.0)], false))];
    assert_eq!(counts(&stays, &spans), [10, 20, 20]);
}

#[test]
fn users_follow_steps_and_sines() {
    let stairs = [curved(2_000, 2.0, 4.0, true, Curve::Steps(2))];
    assert_eq!(union(dues(LoadModel::Closed, &stairs, 2, 1)), [0, 0, 1_000 * MS, 1_000 * MS]);
    let curve = Curve::Sine { amplitude: 2.0, period: Duration::from_secs(4) };
    let profile = Profile::new(&[curved(9_000, 2.0, 2.0, true, curve)], 0);
    // Above 3 from 1/12 of the period on, to 5/12 of it.
    let at = profile.when_above(3, 0).unwrap();
    assert!((at as f64 / SECOND_NS as f64 - 4.0 / 12.0).abs() < 1e-6, "{at}");
    assert_eq!(profile.when_above(3, 1_500 * MS), Some(1_500 * MS));
    let again = profile.when_above(3, 1_700 * MS).unwrap();
    assert!((again as f64 / SECOND_NS as f64 - 4.0 - 4.0 / 12.0).abs() < 1e-6, "{again}");
    assert_eq!(profile.when_above(4, 0), None);
}

fn any_phase() -> impl Strategy<Value = Phase> {
    let level = 0.0f64..2_000.0;
    let rows = prop::collection::vec((0.001f64..0.9, level.clone()), 1..20);
    let curve = prop_oneof![
        Just(Curve::Line),
        (1u32..20).prop_map(Curve::Steps),
        (0.0f64..=1.0, 10u64..4_000)
            .prop_map(|(share, ms)| Curve::Sine { amplitude: share, period: Duration::from_millis(ms) }),
        (level.clone(), 2u64..1_000, 0.01f64..0.99).prop_map(|(level, ms, share)| {
            let every = Duration::from_millis(ms);
            Curve::Spikes { level, every, length: every.mul_f64(share) }
        }),
        (rows, any::<bool>()).prop_map(|(rows, between)| {
            let mut at = 0.0;
            let points = rows.into_iter().map(|(gap, level)| {
                let point = (at, level);
                at += gap;
                point
            });
            let points: Vec<_> = points.collect();
            series(&points, between)
        }),
    ];
    (1u64..3_000, level.clone(), level, curve).prop_map(|(ms, from, to, mut curve)| {
        if let Curve::Sine { amplitude, .. } = &mut curve {
            *amplitude *= from;
        }
        curved(ms, from, to, false, curve)
    })
}

/// The integral of the level, found another way: by adding up small pieces of the level itself.
fn added_up(profile: &Profile, from_ns: u64, to_ns: u64) -> f64 {
    const PIECES: u64 = 20_000;
    let width = (to_ns - from_ns) as f64 / PIECES as f64;
    let middle = |i: u64| from_ns + ((i as f64 + 0.5) * width) as u64;
    (0..PIECES).map(|i| profile.level_at(middle(i)) * width / SECOND_NS as f64).sum()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever the phases and however many threads: what is due in any window is the integral of the level over it,
    /// to within one.
    #[test]
    fn any_window_has_its_integral_of_arrivals(
        phases in prop::collection::vec(any_phase(), 1..5),
        threads in 1usize..6,
        a in 0.0f64..1.0,
        b in 0.0f64..1.0,
    ) {
        let each = dues(OPEN, &phases, threads, 5);
        for one in &each {
            prop_assert!(one.is_sorted());
        }
        let all = union(each);
        let profile = Profile::new(&phases, 0);
        let end = profile.end_ns();
        prop_assert!(all.last().is_none_or(|last| *last <= end));
        let (from, to) = ((a.min(b) * end as f64) as u64, (a.max(b) * end as f64) as u64);
        for (from, to) in [(from, to), (0, to), (from, end), (0, end)] {
            let count = all.iter().filter(|due| (from..to).contains(due)).count() as f64;
            let integral = profile.integral(to) - profile.integral(from);
            prop_assert!((count - integral).abs() <= 1.0 + 1e-5, "{count} against {integral}");
        }
    }

    /// The integral that the arrivals are made from is that of the level.
    #[test]
    fn the_integral_is_the_sum_of_the_level(phase in any_phase(), share in 0.0f64..1.0) {
        let profile = Profile::new(&[phase], 0);
        let to = (share * profile.end_ns() as f64) as u64;
        let (told, truth) = (profile.integral(to), added_up(&profile, 0, to));
        // Each jump of the level is off by at most one small piece.
        prop_assert!((told - truth).abs() <= 0.02 * truth + 5.0, "{told} against {truth}");
    }
}
