//! What was due at threads that are gone.

use std::ops::Range;

use tidemark_record::{CoreWaits, PhaseCounts, ThreadInterval};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::Limits;

use super::stream_seed;
use crate::Share;
use crate::clock::{SECOND_NS, nanoseconds};
use crate::session::arrivals::{Due, Schedule, phase_ends, span};

/// What became due at threads in a time, each given by which arrivals it takes, its number over all processes and the time in
/// microseconds since the epoch: all of it dropped, in intervals as the threads would have handed them over. Of users of a closed load
/// nothing is told, as what they do next depends on what they were answered. Of sessions that come at random so many come,
/// though at other moments.
pub fn never_sent(
    plan: &Plan,
    seed: u64,
    share: Share,
    threads: &[(usize, usize, Range<u64>)],
) -> Vec<ThreadInterval> {
    let all = threads.iter();
    all.flat_map(|(thread, number, time_us)| of_thread(plan, seed, share, (*thread, *number), time_us))
        .collect()
}

fn of_thread(
    plan: &Plan,
    seed: u64,
    share: Share,
    (thread, number): (usize, usize),
    time_us: &Range<u64>,
) -> Vec<ThreadInterval> {
    let from_us = time_us.start;
    let begin_ns = nanoseconds(share.begin);
    let ((window_from, window_to), _) = span(&plan.load, begin_ns);
    let ends = phase_ends(&plan.load, begin_ns);
    let limits = Limits { in_flight: None, ..plan.limits.clone() };
    let mut random = fastrand::Rng::with_seed(stream_seed(seed, thread));
    let mut schedule = Schedule::new(&plan.load, &limits, begin_ns, thread, share.all, &mut random);
    let mut intervals: Vec<ThreadInterval> = Vec::new();
    while let Due::Begin(arrival) = schedule.due(u64::MAX, &mut random) {
        let due_ns = arrival.due_ns;
        if due_ns >= time_us.end.saturating_mul(1_000) {
            break;
        }
        if arrival.origin.is_user() || due_ns < from_us.saturating_mul(1_000) {
            continue;
        }
        let phase = ends.partition_point(|end_ns| *end_ns <= due_ns);
        let starts_ns = phase.checked_sub(1).map_or(begin_ns, |before| ends[before]);
        let start_us = (due_ns / SECOND_NS * SECOND_NS).max(starts_ns) / 1_000;
        if intervals.last().is_none_or(|last| last.start_us != start_us.max(from_us)) {
            let end_ns =
                ends.get(phase).copied().unwrap_or(u64::MAX).min((due_ns / SECOND_NS + 1) * SECOND_NS);
            let start_us = start_us.max(from_us);
            let mut interval =
                ThreadInterval::empty(number as u16, start_us, (end_ns / 1_000).max(start_us + 1));
            // who is gone waits for no core
            interval.core_waits = Some(CoreWaits::default());
            interval.in_window = (window_from..window_to).contains(&due_ns);
            interval.by_phase.push(PhaseCounts { phase: phase as u16, offered: 0, dropped: 0 });
            intervals.push(interval);
        }
        if let Some(interval) = intervals.last_mut() {
            count(interval);
        }
    }
    intervals
}

fn count(interval: &mut ThreadInterval) {
    interval.offered += 1;
    interval.dropped += 1;
    if interval.in_window {
        interval.measured_offered += 1;
        interval.measured_dropped += 1;
    }
    for counts in &mut interval.by_phase {
        counts.offered += 1;
        counts.dropped += 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tidemark_scenario::plan::{Curve, Load, LoadModel, Phase, Spacing};

    use super::*;
    use crate::testing;

    fn phase(seconds: u64, from: f64, to: f64, measured: bool) -> Phase {
        let duration = Duration::from_millis(seconds * 1_000 + 300);
        Phase { name: format!("{from}"), duration, from, to, measured, curve: Curve::Line }
    }

    #[test]
    fn all_that_was_due_is_told_once_and_only_after_its_moment() {
        let mut plan = testing::plan(Vec::new());
        let phases = vec![phase(2, 100.0, 100.0, false), phase(5, 100.0, 300.0, true)];
        plan.load = Load::new(LoadModel::Open(Spacing::Constant), phases);
        let share = Share { first: 0, all: 4, begin: Duration::from_millis(1_700), taken: None };
        let of = |threads: &[(usize, u64)]| {
            let threads: Vec<_> =
                threads.iter().map(|(thread, from)| (*thread, *thread + 40, *from..u64::MAX)).collect();
            never_sent(&plan, 7, share, &threads)
        };
        let sum = |intervals: &[ThreadInterval]| {
            let of = |what: fn(&ThreadInterval) -> u64| intervals.iter().map(what).sum::<u64>();
            (of(|one| one.offered), of(|one| one.dropped), of(|one| one.measured_dropped))
        };
        let all = of(&[(0, 0), (1, 0), (2, 0), (3, 0)]);
        assert_eq!(sum(&all), (230 + 1_060, 230 + 1_060, 1_060));
        let before = of(&[(1, 0)])
            .into_iter()
            .filter(|one| one.end_us <= 5_000_000)
            .map(|one| one.offered)
            .sum::<u64>();
        let (after, ..) = sum(&of(&[(1, 5_000_000)]));
        assert_eq!(before + after, sum(&of(&[(1, 0)])).0);
        for one in &all {
            assert!((40..44).contains(&one.thread), "by its number");
            assert!(one.start_us < one.end_us && one.end_us - one.start_us <= 1_000_000);
            assert_eq!(one.by_phase[0].dropped, one.dropped);
            assert_eq!(one.in_window, one.start_us >= 4_000_000);
        }
        assert!(of(&[(1, 60_000_000)]).is_empty());
        // of a time, that and no more
        let within = never_sent(&plan, 7, share, &[(1, 9, 3_000_000..5_000_000)]);
        assert!(within.iter().all(|one| one.start_us >= 3_000_000 && one.end_us <= 5_000_000));
        let (until, from) = (sum(&of(&[(1, 3_000_000)])).0, sum(&of(&[(1, 5_000_000)])).0);
        assert_eq!(sum(&within).0, until - from);
    }
}
