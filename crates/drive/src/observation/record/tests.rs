use std::sync::mpsc::{Receiver, sync_channel};

use tidemark_record::Counters;

use super::*;
use crate::observation::run_queue::tests::Told;

const S: u64 = SECOND_NS;

fn times(due_ns: u64, end_ns: u64) -> Times {
    Times { due_ns, sent_ns: Some(due_ns + 1_000), end_ns, own_ns: 400 }
}

/// A recorder of so many labels, and what it hands over.
fn recording(labels: usize, window: (u64, u64)) -> (Recorder, Receiver<ThreadInterval>) {
    let ((sink, intervals), (_, returned)) = (sync_channel(64), sync_channel(64));
    (Recorder::new(0, labels, 0, window, Some(Exchange { sink, returned })), intervals)
}

/// Ends it, and takes all that it has handed over.
fn finished(
    mut recorder: Recorder,
    intervals: &Receiver<ThreadInterval>,
    end_ns: u64,
) -> Vec<ThreadInterval> {
    recorder.finish(end_ns, Gauges::default());
    drop(recorder);
    intervals.iter().collect()
}

#[test]
fn intervals_end_at_seconds_and_at_the_windows_edges() {
    let (sink, intervals) = sync_channel(16);
    let (_back, returned) = sync_channel(16);
    let window = (S + S / 2, 3 * S + S / 4);
    let mut recorder = Recorder::new(2, 1, S / 10, window, Some(Exchange { sink, returned }));
    recorder.cut(5 * S, Gauges::default());
    let all: Vec<(u64, u64, bool)> = finished(recorder, &intervals, 5 * S + 7_000)
        .iter()
        .map(|i| (i.start_us / 1_000, i.end_us / 1_000, i.in_window))
        .collect();
    assert_eq!(
        all,
        [
            (100, 1_000, false),
            (1_000, 1_500, false),
            (1_500, 2_000, true),
            (2_000, 3_000, true),
            (3_000, 3_250, true),
            (3_250, 4_000, false),
            (4_000, 5_000, false),
            (5_000, 5_000, false)
        ]
    );
}

#[test]
fn the_window_ends_with_a_stop_and_what_was_due_before_it_is_measured() {
    let (mut recorder, intervals) = recording(1, (S, 20 * S));
    let (stop, seen) = (2 * S + S / 2, 2 * S + S / 2 + 9_000);
    recorder.cut(2 * S + 1, Gauges::default());
    recorder.offered(0, 2 * S + 1);
    // another thread saw the stop first, and this one still sent
    recorder.offered(0, seen);
    recorder.end_window(stop, seen);
    // what completes a group is due after the window
    recorder.offered(0, 3 * S);
    recorder.cut(12 * S, Gauges::default());
    for due in [2 * S + 1, seen, 3 * S] {
        recorder.ended(0, Outcome::Unfinished, &times(due, 12 * S));
    }
    let all = finished(recorder, &intervals, 12 * S + 5_000);
    let within: Vec<(u64, u64)> =
        all.iter().filter(|i| i.in_window).map(|i| (i.start_us, i.end_us)).collect();
    assert_eq!(within, [(1_000_000, 2_000_000), (2_000_000, 2_500_000)]);
    assert_eq!(all.iter().map(|i| i.measured_offered).sum::<u64>(), 2);
    let measured = all.iter().flat_map(|i| &i.series).filter(|s| s.measured);
    assert_eq!(measured.map(|s| s.response_time_us.len()).sum::<u64>(), 2);
}

#[test]
fn a_stop_after_the_window_or_before_it_moves_nothing_into_it() {
    let within = |stop: u64| {
        let (mut recorder, intervals) = recording(1, (S, 2 * S));
        recorder.cut(stop, Gauges::default());
        recorder.end_window(stop, stop);
        let all = finished(recorder, &intervals, 4 * S);
        all.iter().filter(|i| i.in_window).map(|i| (i.start_us, i.end_us)).collect::<Vec<_>>()
    };
    assert_eq!(within(S / 2), []);
    assert_eq!(within(3 * S), [(1_000_000, 2_000_000)]);
}

#[test]
fn a_request_is_measured_by_when_it_was_due() {
    let (mut recorder, intervals) = recording(2, (S, 2 * S));
    for (due, end) in [(S - 1, S + 5_000), (S, S + 9_000), (2 * S - 1, 3 * S)] {
        recorder.offered(1, due);
        recorder.cut(end, Gauges::default());
        recorder.ended(1, Outcome::Ok, &times(due, end));
        recorder.body(1, due, 100);
    }
    let all = finished(recorder, &intervals, 3 * S + 1);
    let counts = |measured| -> u64 {
        let of = all.iter().flat_map(|i| &i.series).filter(|s| s.measured == measured);
        of.map(|s| s.response_time_us.len()).sum()
    };
    assert_eq!((counts(false), counts(true)), (1, 2));
    let bodies = |measured| -> Vec<(u64, u64)> {
        let of = all.iter().flat_map(|i| &i.series).filter(|s| s.measured == measured);
        of.map(|s| (s.bodies, s.body_bytes)).collect()
    };
    assert_eq!((bodies(false), bodies(true)), (vec![(1, 100)], vec![(1, 100), (1, 100)]));
    let last = all.last().unwrap();
    assert_eq!(last.series.len(), 1);
    assert_eq!(last.series[0].response_time_us.max() / 1_000, 1_000);
    assert!(all.iter().all(|i| i.series.iter().all(|s| s.label == 1)));
}

#[test]
fn a_wait_for_a_core_over_the_windows_edges_is_in_the_window_as_far_as_it_lies_there() {
    let (mut recorder, intervals) = recording(1, (S, 3 * S));
    let told = Told::new();
    recorder.run_queue = told.queue();
    // from 0.6 s on, until 1.4 s
    told.say(8 * S / 10, 1);
    recorder.cut(14 * S / 10, Gauges::default());
    told.say(9 * S / 10, 30);
    recorder.cut(2 * S, Gauges::default());
    // from 2.2 s on, until 3.9 s: nobody sees it before it is over
    told.say(26 * S / 10, 31);
    let all: Vec<_> = finished(recorder, &intervals, 39 * S / 10)
        .iter()
        .map(|i| (i.in_window, i.core_waits.unwrap().waited_us))
        .collect();
    assert_eq!(all, [(false, 400_000), (true, 500_000), (true, 800_000), (false, 900_000)]);
}

#[test]
fn an_absence_over_the_windows_edges_is_in_the_window_as_far_as_it_lies_there() {
    let (mut recorder, intervals) = recording(1, (S, 3 * S));
    assert_eq!(recorder.look_ns(), u64::MAX, "nobody drives yet");
    recorder.absence = Some(Absence::since(recorder.look_at(0)));
    let mut now_ns = 0;
    while now_ns < S / 2 {
        now_ns = recorder.look_ns();
        recorder.look(now_ns);
    }
    // there until half of the warm-up, back in the drain
    let all: Vec<_> =
        finished(recorder, &intervals, 35 * S / 10).iter().map(|i| (i.in_window, i.absent_us)).collect();
    let [(false, before_us), within @ .., (false, after_us)] = &all[..] else { panic!("{all:?}") };
    assert_eq!(within, [(true, 1_000_000), (true, 1_000_000)]);
    assert_eq!(*after_us, 500_000);
    // from half a second on, less one look and what the test itself works; two clocks are not read at once
    assert!((350_000..=451_000).contains(before_us), "{before_us}");
}

#[test]
fn a_request_is_late_in_the_window_where_it_was_due_in_it() {
    let (mut recorder, intervals) = recording(1, (S, 2 * S));
    for (due_ns, left_ns) in [(S - 1, S + 1), (S, S + 2), (2 * S - 1, 4 * S), (2 * S, 4 * S)] {
        recorder.cut(left_ns, Gauges::default());
        recorder.lag(due_ns, left_ns - due_ns);
    }
    let all: Vec<_> = finished(recorder, &intervals, 5 * S)
        .iter()
        .map(|i| (i.lag_us.len(), i.unmeasured_lag_us.len()))
        .collect();
    assert_eq!(all, [(0, 0), (1, 1), (0, 0), (0, 0), (1, 1)]);
}

#[test]
fn a_response_time_is_kept_with_the_drivers_lag_and_without() {
    let (mut recorder, intervals) = recording(1, (0, S));
    for own_ns in [0, 300_000, 2_000_000] {
        recorder.offered(0, 7_000);
        let times = Times { due_ns: 7_000, sent_ns: None, end_ns: 1_007_000, own_ns };
        recorder.ended(0, Outcome::Ok, &times);
    }
    let all = finished(recorder, &intervals, S / 2);
    let series = &all[0].series[0];
    assert_eq!((series.response_time_us.min(), series.response_time_us.len()), (1_000, 3));
    let less_lag = &series.response_time_less_lag_us;
    assert_eq!([1_000, 700, 0].map(|us| less_lag.count_between(us, us)), [1; 3], "never below nothing");
}

#[test]
fn what_the_driver_turned_to_late_is_told_with_the_interval_in_which_it_was_due() {
    let window = (2 * S + S / 4, 9 * S);
    let (mut recorder, intervals) = recording(1, window);
    recorder.offered(0, S / 2);
    recorder.cut(4 * S + S / 10, Gauges::default());
    for due_ns in [3 * S - 1, 2 * S + S / 4, 2 * S, S + 1, S, 4 * S] {
        recorder.offered(0, due_ns);
    }
    let all = finished(recorder, &intervals, 5 * S);
    assert!(all[..5].iter().all(|interval| interval.offered_earlier.is_empty()));
    let last = all.last().unwrap();
    assert_eq!(last.offered, 6);
    // with the edges of the window the second of it is two intervals
    assert_eq!(last.offered_earlier, [(2_999_999, 2), (2_249_999, 1), (1_999_999, 2)]);
}

#[test]
fn what_comes_back_is_used_again_empty() {
    let (sink, intervals) = sync_channel(16);
    let (back, returned) = sync_channel(16);
    let mut recorder = Recorder::new(0, 1, 0, (0, 100 * S), Some(Exchange { sink, returned }));
    for second in 0..20 {
        recorder.offered(0, second * S);
        recorder.ended(0, Outcome::Ok, &times(second * S, second * S + 5_000_000));
        recorder.cut((second + 1) * S, Gauges::default());
        let interval = intervals.try_recv().unwrap();
        assert_eq!(interval.offered, 1);
        assert_eq!(interval.series[0].response_time_us.len(), 1);
        back.try_send(emptied(interval)).unwrap();
    }
    assert!(recorder.pool.len() <= 2, "{}", recorder.pool.len());
}

#[test]
fn what_is_told_unasked_is_a_sign_of_life() {
    let (mut recorder, intervals) = recording(1, (0, 10 * S));
    let tenths = |recorder: &mut Recorder, from: u64, to: u64| {
        (from..to).for_each(|tenth| recorder.heard(tenth * S / 10));
    };
    tenths(&mut recorder, 1, 30);
    recorder.heard(7 * S);
    recorder.cut(8 * S, Gauges::default());
    let quiet: Vec<_> = intervals.try_iter().flat_map(|interval| interval.quiet).collect();
    assert_eq!(quiet, [(2_900_000, 7_000_000)]);
}

#[test]
fn intervals_that_nobody_takes_are_counted() {
    let (sink, _intervals) = sync_channel(2);
    let (_back, returned) = sync_channel(2);
    let mut recorder = Recorder::new(0, 1, 0, (0, S), Some(Exchange { sink, returned }));
    recorder.cut(5 * S, Gauges::default());
    assert_eq!(recorder.lost(), 3);
}

#[test]
fn what_was_acknowledged_is_handed_over_later_where_nobody_took_it_in_time() {
    let (sink, intervals) = sync_channel(2);
    let (_back, returned) = sync_channel(2);
    let mut recorder = Recorder::new(0, 1, 0, (0, 10 * S), Some(Exchange { sink, returned }));
    let enter_until = |recorder: &mut Recorder, second: u64| {
        let entry = recorder.enter();
        recorder.acknowledge(entry.number);
        recorder.cut(second * S, Gauges::default());
    };
    (1..=5).for_each(|second| enter_until(&mut recorder, second));
    let taken = |count| intervals.try_iter().take(count).map(|i| i.ledger.acknowledged()).sum::<u64>();
    assert_eq!((recorder.lost(), taken(2)), (3, 2));
    enter_until(&mut recorder, 6);
    assert_eq!(taken(1), 4, "those of three seconds before, too");
    // and what nobody takes any more goes with the end
    (7..=9).for_each(|second| enter_until(&mut recorder, second));
    assert_eq!((recorder.take_ledger().acknowledged(), taken(2)), (1, 2));
}

#[test]
fn what_is_measured_is_handed_over_with_the_interval_and_its_room_comes_back() {
    let (sink, intervals) = sync_channel(16);
    let (back, returned) = sync_channel(16);
    let recorder = Recorder::new(0, 1, 0, (0, 100 * S), Some(Exchange { sink, returned }));
    let mut recorder = recorder.with_metrics([OwnKind::Histogram, OwnKind::Counter].into_iter());
    for second in 1..=4 {
        recorder.measured(0, 7.0);
        recorder.measured(0, 9.0);
        (0..second).for_each(|_| recorder.not_measured(0, || format!("second {second}")));
        recorder.measured(1, 0.5);
        recorder.measured(2, 3.0);
        recorder.cut(second * S, Gauges::default());
        let interval = intervals.try_recv().unwrap();
        let [numbers, counted] = &interval.own[..] else { panic!("{:?}", interval.own) };
        assert_eq!((numbers.metric, numbers.count, numbers.sum, numbers.no_number), (0, 2, 16.0, second));
        let told = numbers.example.as_deref();
        assert_eq!(told, (second == 1).then_some("second 1"), "the first of all only");
        assert_eq!(numbers.values.as_ref().unwrap().count(), 2);
        assert_eq!((counted.metric, counted.sum, counted.values.is_none()), (1, 0.5, true));
        back.try_send(emptied(interval)).unwrap();
    }
    recorder.cut(5 * S, Gauges::default());
    assert!(intervals.try_recv().unwrap().own.is_empty(), "nothing was measured");
    assert!(recorder.own.spare.iter().all(Option::is_some));
    // where nothing is recorded nothing is kept
    let mut once = Recorder::new(0, 1, 0, (0, S), None);
    once.measured(0, 1.0);
    once.not_measured(0, || panic!("nobody is told"));
}

#[test]
fn what_users_lost_is_the_part_of_their_requests_within_the_window() {
    let (mut recorder, intervals) = recording(2, (10 * S, 20 * S));
    let lost = |recorder: &mut Recorder, outcome, due, end| {
        recorder.cut(end, Gauges::default());
        recorder.came_to_nothing(outcome, &times(due, end));
    };
    lost(&mut recorder, Outcome::Timeout, 5 * S, 9 * S);
    lost(&mut recorder, Outcome::Timeout, 8 * S, 12 * S);
    lost(&mut recorder, Outcome::Status, 13 * S, 14 * S);
    lost(&mut recorder, Outcome::Variable, 13 * S, 19 * S);
    assert!(recorder.spans_window(&times(9 * S, 20 * S)) && !recorder.spans_window(&times(11 * S, 30 * S)));
    // open for all of it, for a third, and for more than half of it
    lost(&mut recorder, Outcome::Ok, 9 * S, 25 * S);
    lost(&mut recorder, Outcome::Unfinished, 17 * S, 30 * S);
    lost(&mut recorder, Outcome::Unfinished, 14 * S, 30 * S);
    let mut sum = tidemark_record::LostTime::default();
    finished(recorder, &intervals, 31 * S).iter().for_each(|interval| sum.add(&interval.lost_time));
    assert_eq!((sum.refused_us, sum.waited_us), (1_000_000, 2_000_000 + 10_000_000 + 3_000_000 + 6_000_000));
    assert_eq!((sum.stuck_us, sum.stuck), (16_000_000, 2));
}

#[test]
fn what_is_open_is_told_by_label() {
    let (mut recorder, intervals) = recording(3, (0, 9 * S));
    [0, 2, 2].iter().for_each(|label| recorder.offered(*label, 7));
    recorder.cut(S, Gauges::default());
    recorder.ended(2, Outcome::Ok, &times(7, S + 5));
    recorder.dropped(0, 7);
    let all = finished(recorder, &intervals, 2 * S - 1);
    let open: Vec<_> = all.into_iter().map(|interval| interval.open_by_label).collect();
    assert_eq!(open, [vec![(0, 1), (2, 2)], vec![(2, 1)]]);
}

#[test]
fn what_was_due_in_a_phase_is_of_it_whenever_it_ends_and_intervals_end_with_phases() {
    let (recorder, intervals) = recording(1, (S / 2, 3 * S));
    let mut recorder = recorder.with_phases(vec![S / 2, 3 * S / 2, 3 * S]);
    // the last one is due after the load
    for due_ns in [S / 4, S, 2 * S, 3 * S + 1] {
        recorder.cut(due_ns, Gauges::default());
        recorder.offered(0, due_ns);
    }
    let end_ns = 3 * S + S / 2;
    recorder.cut(end_ns, Gauges::default());
    for due_ns in [S / 4, S, 3 * S + 1] {
        recorder.ended(0, Outcome::Ok, &Times { due_ns, sent_ns: None, end_ns, own_ns: 0 });
    }
    recorder.dropped(0, 2 * S);
    recorder.finish(end_ns + 1_000, Gauges::default());
    let all: Vec<ThreadInterval> = intervals.try_iter().collect();
    let ends: Vec<u64> = all.iter().map(|one| one.end_us / 1_000).collect();
    assert_eq!(ends[..6], [500, 1_000, 1_500, 2_000, 3_000, 3_500]);
    let counts: Vec<_> =
        all.iter().flat_map(|one| &one.by_phase).map(|of| (of.phase, of.offered, of.dropped)).collect();
    assert_eq!(counts, [(0, 1, 0), (1, 1, 0), (2, 1, 0), (2, 0, 1)]);
    let mut ended: Vec<_> =
        all.iter().flat_map(|one| &one.series).map(|of| (of.phase, of.measured)).collect();
    ended.sort_unstable();
    assert_eq!(ended, [(None, false), (Some(0), false), (Some(1), true)]);
}

/// Steps of sessions, and what was not sent for want of a connection, count apart: none of it is a request that was due.
#[test]
fn what_sessions_do_themselves_is_no_request() {
    let mut recorder = Recorder::new(0, 1, 0, (S, 3 * S), None);
    recorder.step_failed(S / 2);
    recorder.step_failed(S);
    recorder.step_failed(3 * S);
    recorder.unconnected(Some(0), S / 2);
    recorder.unconnected(Some(0), 2 * S);
    recorder.unconnected(None, 2 * S);
    recorder.unconnected(Some(0), 2 * S);
    recorder.computed(3_000_000);
    let of = &recorder.current;
    assert_eq!((of.offered, of.measured_offered), (0, 0));
    let counted = [(Counter::FailedSteps, 1), (Counter::ComputingUs, 3_000)];
    assert_eq!(of.counters, Counters::from(counted));
    assert_eq!(of.unconnected, [(Some(0), 2), (None, 1)]);
    assert_eq!(recorder.outstanding(), 0);
}
