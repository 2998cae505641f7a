//! When a system is told to have been silent.

use super::*;

const S: u64 = 1_000_000;

/// What a thread hands over, second by second: good answers in each (evenly spread, so none comes at an edge), and what failed
/// otherwise. The window is `window`, in seconds.
struct Run {
    silence: Silence,
    last_good_us: u64,
    quiet: Vec<(u64, u64)>,
    window: std::ops::Range<u64>,
    /// When what fails in the next second does; at its end otherwise.
    failed_us: Option<u64>,
    /// Whether a request is open at the end of the next seconds.
    open: bool,
}

impl Run {
    fn new(window: u64) -> Run {
        Run {
            silence: Silence::new(true),
            last_good_us: 0,
            quiet: Vec::new(),
            window: 0..window,
            failed_us: None,
            open: false,
        }
    }

    fn good(&mut self, at_us: u64) {
        if at_us - self.last_good_us >= QUIET_US {
            self.quiet.push((self.last_good_us, at_us));
        }
        self.last_good_us = at_us;
    }

    /// A second in which so many succeed from one moment of it to another, and so many fail.
    fn second(
        &mut self,
        second: u64,
        good: &[u64],
        count: u32,
        failed: (Outcome, u32),
        took_us: u64,
    ) -> &mut Run {
        good.iter().for_each(|at_us| self.good(second * S + at_us));
        let mut interval = ThreadInterval::empty(0, second * S, (second + 1) * S);
        interval.in_window = self.window.contains(&second);
        interval.quiet = std::mem::take(&mut self.quiet);
        interval.last_good_us = self.last_good_us;
        interval.open_by_label.extend(self.open.then_some((0, 1)));
        if !good.is_empty() {
            interval.series.push(crate::test_plan::series(0, Outcome::Ok, took_us, count));
        }
        if failed.1 > 0 {
            let last_us = self.failed_us.take().unwrap_or((second + 1) * S - 1);
            interval.failed_us = Some((last_us, last_us));
            interval.series.push(crate::test_plan::series(0, failed.0, 50, failed.1));
        }
        self.silence.add(&interval);
        self
    }

    fn busy(&mut self, second: u64) -> &mut Run {
        self.second(second, &[1, S - 1], 9_000, NONE, 50)
    }

    fn reason(&self) -> Option<String> {
        self.silence.outage().map(|outage| outage.reason)
    }
}

const NONE: (Outcome, u32) = (Outcome::Reset, 0);

#[test]
fn a_system_that_dies_before_the_end_is_told_wherever_seconds_begin() {
    for last_us in [S / 2, S - 1_000, 50_000] {
        let mut run = Run::new(3);
        run.busy(0).second(1, &[1, last_us], 400, (Outcome::Reset, 3), 50);
        run.second(2, &[], 0, (Outcome::Connect, 20), 50);
        let told = run.reason().unwrap();
        let silent_s = (2 * S - last_us) as f64 / 1e6;
        let expected =
            format!("in the last {silent_s:.1}s no request succeeded and 23 failed, most of them by connect");
        assert!(told.contains("stopped answering") && told.contains(&expected), "{told}");
    }
    let mut soon = Run::new(2);
    soon.busy(0).second(1, &[1, 100_000], 400, (Outcome::Reset, 3), 50);
    assert_eq!(soon.reason(), None, "less than a second is known of it");
}

/// As few fail as there are users, and only once the load is over.
#[test]
fn a_system_that_only_falls_silent_is_told() {
    let silent = || {
        let mut run = Run::new(2);
        run.busy(0).second(1, &[1, 700_000], 9_000, NONE, 50);
        run
    };
    let mut hung = silent();
    hung.second(2, &[], 0, NONE, 50).second(3, &[], 0, (Outcome::Unfinished, 4), 50);
    let told = hung.reason().unwrap();
    assert!(told.contains("in the last 2.3s no request succeeded and 4 failed"), "{told}");
    let mut awake = silent();
    awake.second(2, &[], 0, NONE, 50).second(3, &[5], 3, (Outcome::Unfinished, 1), 1_600_000);
    assert_eq!(awake.reason(), None, "it answers again");
    let mut idle = silent();
    idle.second(2, &[], 0, NONE, 50).second(3, &[], 0, NONE, 50);
    assert_eq!(idle.reason(), None, "nothing was asked of it");
    let mut slow = Run::new(3);
    slow.second(0, &[1], 2, NONE, 500_000).second(1, &[], 0, NONE, 50).second(2, &[], 0, NONE, 50);
    slow.second(3, &[], 0, (Outcome::Unfinished, 2), 50);
    assert_eq!(slow.reason(), None, "it may be as slow as before");
}

#[test]
fn time_after_a_stop_does_not_count() {
    let stopped = |window: u64| {
        let mut run = Run::new(window);
        run.second(0, &[1, 300_000], 9_000, NONE, 50);
        for second in 1..window + 9 {
            run.second(second, &[], 0, NONE, 50);
        }
        run.second(window + 9, &[], 0, (Outcome::Unfinished, 40), 50);
        run
    };
    let mut soon = stopped(1);
    assert!(soon.reason().unwrap().contains("in the last 10.7s"));
    soon.silence.stopped(S);
    assert_eq!(soon.reason(), None, "it was asked nothing in the time after");
    let mut long = stopped(4);
    assert!(long.reason().unwrap().contains("in the last 13.7s"));
    long.silence.stopped(4 * S);
    let told = long.reason().unwrap();
    assert!(told.contains("in the last 3.7s no request succeeded and 40 failed"), "{told}");
}

#[test]
fn one_that_hangs_beyond_the_end_is_told_though_it_answers_then() {
    let run = |took_us| {
        let mut run = Run::new(3);
        run.busy(0).second(1, &[], 0, NONE, 50).second(2, &[], 0, NONE, 50);
        run.second(3, &[500_000], 2, NONE, took_us);
        run.reason()
    };
    let told = run(3_500_000).unwrap();
    assert!(told.contains("in the last 2.0s") && told.contains("took up to 3.5s"), "{told}");
    assert_eq!(run(1_500_000), None);
}

/// As few fail as a user who waits before he tries again makes: what counts is the time.
#[test]
fn a_break_is_told_where_nobody_allows_it() {
    let broken = |judges_breaks, absent_us| {
        let mut run = Run::new(4);
        run.silence = Silence::new(judges_breaks);
        run.busy(0).second(1, &[1, 150_000], 1_000, (Outcome::Reset, 1), 50);
        run.failed_us = Some(2 * S + 500_000);
        run.second(2, &[850_000, 999_999], 1_000, (Outcome::Connect, 2), 50).busy(3);
        run.silence.slices.values_mut().for_each(|slice| slice.absent_us = absent_us);
        run.reason()
    };
    let told = broken(true, 0).unwrap();
    assert!(told.contains("stopped answering for 1.7s") && told.contains("3 failed"), "{told}");
    assert_eq!(broken(false, 0), None);
    assert_eq!(broken(true, 400_000), None, "the driver was not there");
    let mut starved = Run::new(4);
    starved.busy(0).second(1, &[1, 150_000], 1_000, (Outcome::Reset, 1), 50);
    starved.failed_us = Some(2 * S + 500_000);
    starved.second(2, &[850_000, 999_999], 1_000, (Outcome::Connect, 2), 50).busy(3);
    for slice in starved.silence.slices.values_mut() {
        slice.waited_us = Some(600_000);
    }
    // all of it may lie in the 0.85 s of each second that were silent
    let unheard_share = starved.silence.outage().unwrap().unheard_share;
    assert!((unheard_share - 1.2 / 1.7).abs() < 1e-9, "{unheard_share}");
    let mut long = Run::new(2_000);
    (0..2_000).for_each(|second| match second {
        9 => drop(long.second(9, &[], 0, (Outcome::Connect, 1), 50)),
        _ => drop(long.second(second, &[1, S - 1], 100, NONE, 50)),
    });
    assert_eq!(long.reason(), None, "a second of so many");
    let mut wrong = Run::new(4);
    wrong.busy(0).second(1, &[], 0, (Outcome::Status, 9_000), 50);
    let told = wrong.second(2, &[S / 2], 9_000, NONE, 50).silence.outage().unwrap();
    assert!(told.reason.contains("gave no good answer for 1.5s"), "{told:?}");
    assert_eq!(told.failed_by, FailedBy::Answered);
}

#[test]
fn a_silence_is_the_systems_only_where_the_driver_was_on_its_core() {
    let is_heard = |again_us, failed, waited_us| {
        let mut run = Run::new(4);
        run.busy(0).second(1, &[1, 150_000], 1_000, NONE, 50);
        run.failed_us = Some(2 * S + 100_000);
        run.second(2, &[again_us, S - 1], 1_000, (failed, 2), 50).busy(3);
        run.silence.slices.values_mut().for_each(|slice| slice.waited_us = Some(waited_us));
        run.silence.outage().unwrap().is_heard()
    };
    // of 1.7 s
    assert!(is_heard(850_000, Outcome::Timeout, 0) && is_heard(850_000, Outcome::Timeout, 160_000));
    assert!(!is_heard(850_000, Outcome::Timeout, 180_000), "more than a fifth");
    assert!(is_heard(850_000, Outcome::Reset, 400_000), "it was told");
    assert!(!is_heard(850_000, Outcome::Reset, 450_000), "more than half");
    assert!(is_heard(850_000, Outcome::Status, 850_000), "it was read");
    // of 1.1 s less than a second is left
    assert!(is_heard(250_000, Outcome::Timeout, 40_000) && !is_heard(250_000, Outcome::Timeout, 80_000));
}

#[test]
fn of_as_many_failures_those_that_tell_less_of_the_system_are_named() {
    let named = |failed: &[Outcome]| most(&failed.iter().map(|outcome| (*outcome, 2)).collect::<Failed>());
    assert_eq!(named(&[Outcome::Timeout, Outcome::Reset]), Some(Outcome::Timeout));
    assert_eq!(named(&[Outcome::Status, Outcome::Connect]), Some(Outcome::Connect));
    assert_eq!(named(&[]), None);
}

#[test]
fn of_several_silences_one_that_was_heard_is_told() {
    let mut run = Run::new(8);
    for second in 0..8 {
        let failed = (Outcome::Timeout, 2);
        run.failed_us = Some(second * S + 100_000);
        match second {
            1 | 4 => drop(run.second(second, &[1, 150_000], 1_000, NONE, 50)),
            2 => drop(run.second(second, &[850_000, S - 1], 1_000, failed, 50)),
            5 => drop(run.second(second, &[450_000, S - 1], 1_000, failed, 50)),
            _ => drop(run.busy(second)),
        }
    }
    assert!(run.reason().unwrap().contains("for 1.7s"));
    run.silence.slices.range_mut(..=3 * S).for_each(|(_, slice)| slice.waited_us = Some(S));
    assert!(run.reason().unwrap().contains("for 1.3s"));
    run.silence.slices.values_mut().for_each(|slice| slice.waited_us = Some(S));
    assert!(!run.silence.outage().unwrap().is_heard());
}

/// Users who think for long, in step: what fails among the others is no sign of the pause behind it.
#[test]
fn a_failure_before_the_last_good_answer_is_none_of_the_silence_behind() {
    let mut bursts = Run::new(40);
    for second in 0..40 {
        match second % 5 {
            0 => {
                bursts.failed_us = Some(second * S + 100_000);
                let failed = if second == 10 { (Outcome::Status, 1) } else { NONE };
                bursts.second(second, &[1, 150_000], 100, failed, 50);
            }
            // nor is a pause like all others, in which a time-out of one is known
            1 if second > 20 => drop(bursts.second(second, &[], 0, (Outcome::Timeout, 1), 50)),
            _ => drop(bursts.second(second, &[], 0, NONE, 50)),
        }
    }
    assert_eq!(bursts.reason(), None);
    bursts.window = 0..60;
    for second in 40..60 {
        bursts.second(second, &[], 0, NONE, 50);
    }
    bursts.second(60, &[], 0, (Outcome::Unfinished, 3), 50);
    let told = bursts.reason().unwrap();
    assert!(told.contains("in the last 25.9s"), "{told}");
}

#[test]
fn one_that_still_answers_or_never_did_is_not() {
    assert_eq!(Silence::new(true).outage(), None);
    let mut few = Run::new(2);
    few.second(0, &[1, S - 1], 9, NONE, 50).second(1, &[], 0, (Outcome::Connect, 9), 50);
    assert_eq!(few.reason(), None, "few failures may be chance");
    let mut never = Run::new(2);
    never.second(0, &[], 0, (Outcome::Connect, 90), 50).second(1, &[], 0, (Outcome::Connect, 90), 50);
    assert_eq!(never.reason(), None, "other reasons say it");
    let mut after = Run::new(1);
    after.busy(0).second(1, &[], 0, NONE, 50).second(2, &[], 0, NONE, 50);
    assert_eq!(after.reason(), None, "the window was over");
}

#[test]
fn only_where_every_thread_waited_for_a_core_nobody_heard() {
    let waited = |thread, waited_us| {
        let mut interval = ThreadInterval::empty(thread, 0, S);
        interval.in_window = true;
        interval.core_waits = Some(tidemark_record::CoreWaits { waited_us, sleeps: 1 });
        interval.series = vec![crate::test_plan::series(0, Outcome::Ok, 50, 1)];
        interval
    };
    let unheard_us = |threads: &[ThreadInterval]| {
        let mut silence = Silence::new(true);
        threads.iter().for_each(|interval| silence.add(interval));
        silence.unheard_us(0, S)
    };
    assert_eq!(unheard_us(&[waited(0, 900_000)]), 900_000);
    assert_eq!(unheard_us(&[waited(0, 900_000), waited(1, 200_000)]), 200_000);
    let untold = ThreadInterval { core_waits: None, ..waited(1, 0) };
    assert_eq!(unheard_us(&[waited(0, 900_000), untold]), 0);
    let without_users = ThreadInterval { series: Vec::new(), ..waited(1, 0) };
    assert_eq!(unheard_us(&[waited(0, 900_000), without_users]), 900_000);
}

#[test]
fn what_one_thread_does_not_hear_another_may() {
    let thread = |thread, quiet: &[(u64, u64)], last_good_us| {
        let series = vec![
            crate::test_plan::series(0, Outcome::Ok, 50, 9_000),
            crate::test_plan::series(0, Outcome::Connect, 50, 30),
        ];
        let (quiet, failed_us) = (quiet.to_vec(), Some((0, 9 * S)));
        ThreadInterval {
            in_window: true,
            series,
            quiet,
            failed_us,
            last_good_us,
            ..ThreadInterval::empty(thread, 0, 9 * S)
        }
    };
    let told = |threads: [ThreadInterval; 2]| {
        let mut silence = Silence::new(true);
        threads.iter().for_each(|interval| silence.add(interval));
        silence.outage().map(|outage| outage.reason)
    };
    let one = thread(0, &[(S, 4 * S)], 9 * S - 1);
    assert_eq!(told([one.clone(), thread(1, &[], 9 * S - 1)]), None);
    assert_eq!(told([one.clone(), thread(1, &[(3 * S + 1, 6 * S)], 9 * S - 1)]), None);
    let both = told([one.clone(), thread(1, &[(2 * S, 6 * S)], 9 * S - 1)]).unwrap();
    assert!(both.contains("for 2.0s"), "{both}");
    let end = told([one, thread(1, &[], 5 * S)]);
    assert_eq!(end, None);
}

/// Seconds of two labels: the first is answered 9,000 times in each, the second as it is told: how many good answers, how many
/// requests fail, whether one is open at the end, and how long an answer takes.
fn of_labels(window: u64, second: &[(u32, u32, bool, u64)]) -> Run {
    let mut run = Run::new(window);
    for (at, (good, failed, open, took_us)) in (0..).zip(second) {
        if at < window {
            run.good(at * S + 1);
            run.good((at + 1) * S - 1);
        }
        let mut interval = ThreadInterval::empty(0, at * S, (at + 1) * S);
        (interval.in_window, interval.quiet) = (at < window, std::mem::take(&mut run.quiet));
        interval.last_good_us = run.last_good_us;
        let mut add = |label, outcome, took_us, count| {
            if count > 0 {
                interval.series.push(crate::test_plan::series(label, outcome, took_us, count));
            }
        };
        add(0, Outcome::Ok, 50, if at < window { 9_000 } else { 0 });
        add(1, Outcome::Ok, *took_us, *good);
        add(1, Outcome::Timeout, 50, *failed);
        interval.failed_us = (*failed > 0).then_some(((at + 1) * S - 1, (at + 1) * S - 1));
        interval.open_by_label = if *open { vec![(1, 2)] } else { Vec::new() };
        run.silence.add(&interval);
    }
    run
}

fn parts_of(run: &Run) -> Vec<String> {
    let named =
        |name: &str, labels: &[usize]| Named { name: name.into(), labels: labels.iter().copied().collect() };
    let single = [named("`Fast`", &[0]), named("`Slow`", &[1])];
    let joined = [named("target `t`", &[0, 1]), named("sessions `s`", &[1, 2])];
    run.silence.outages(&single, &joined).into_iter().map(|outage| outage.reason).collect()
}

#[test]
fn a_label_that_is_silent_while_others_answer_is_told() {
    let well = (20, 0, true, 50_000);
    let silent = (0, 0, true, 0);
    // two users whose requests time out after three seconds: hardly any fail
    let within = of_labels(
        9,
        &[well, well, silent, silent, (0, 2, true, 0), well, well, well, well, (0, 0, false, 0)],
    );
    let told = parts_of(&within);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("`Slow` stopped answering for 3.0s: no request succeeded then and 2 failed"),
        "{told:?}"
    );
    // for good, and until behind the window
    let never = of_labels(5, &[well, well, silent, silent, silent, (0, 2, false, 0)]);
    assert!(
        parts_of(&never)[0].starts_with("`Slow` stopped answering: in the last 4.0s no request"),
        "{:?}",
        parts_of(&never)
    );
    let late = of_labels(5, &[well, well, silent, silent, silent, (2, 0, false, 4_000_000)]);
    assert!(parts_of(&late)[0].contains("what was under way then took up to 4.0s"), "{:?}", parts_of(&late));
    // where somebody allows that requests fail, a break is none
    let mut allowed = within;
    allowed.silence = Silence { judges_breaks: false, ..allowed.silence };
    assert_eq!(parts_of(&allowed), Vec::<String>::new());
}

#[test]
fn a_rare_label_or_one_of_which_nothing_is_asked_may_be_silent() {
    let well = (20, 0, true, 50_000);
    let idle = (0, 0, false, 0);
    assert_eq!(parts_of(&of_labels(6, &[well, well, idle, idle, idle, well, idle])), Vec::<String>::new());
    // nothing failed: a stall is in the percentiles
    let silent = (0, 0, true, 0);
    assert_eq!(
        parts_of(&of_labels(6, &[well, well, silent, silent, well, well, idle])),
        Vec::<String>::new()
    );
    // two answers a second: three silent seconds are chance
    let rare = (2, 0, true, 50_000);
    assert_eq!(
        parts_of(&of_labels(7, &[rare, rare, silent, silent, (0, 1, true, 0), rare, rare, idle])),
        Vec::<String>::new()
    );
    // it never had an answer before the window's end: that is told of the window
    let slow = (0, 0, true, 0);
    assert_eq!(
        parts_of(&of_labels(4, &[slow, slow, slow, slow, slow, (3, 0, false, 6_000_000)])),
        Vec::<String>::new()
    );
}

#[test]
fn users_who_all_wait_for_a_slow_label_make_no_silent_system() {
    // one label is answered in the first second; then all users are with the other, which takes six
    let mut run = Run::new(4);
    run.second(0, &[1, S / 2], 100, NONE, 400);
    for second in 1..6 {
        run.second(second, &[], 0, NONE, 50);
    }
    let mut late = ThreadInterval::empty(0, 6 * S, 7 * S);
    run.good(6 * S + 10_000);
    (late.quiet, late.last_good_us) = (std::mem::take(&mut run.quiet), run.last_good_us);
    late.series.push(crate::test_plan::series(1, Outcome::Ok, 6_000_000, 6));
    run.silence.add(&late);
    assert_eq!(run.reason(), None, "its answers may always take that long");
}

#[test]
fn a_freeze_that_nothing_failed_of_is_told() {
    // from 1.5 s on nothing came until this moment of second 2; requests are open when these seconds end, or are not
    let frozen = |until_us: u64, is_open: bool, median_us: u64| {
        let mut run = Run::new(6);
        for second in 0..6 {
            let good = match second {
                1 => vec![1, 500_000],
                2 => vec![until_us, S - 1],
                _ => vec![1, S - 1],
            };
            // users who were frozen think when the second ends
            run.open = is_open && second != 2;
            run.second(second, &good, 9_000, NONE, median_us);
        }
        assert_eq!(run.reason(), None);
        run.silence.freeze(median_us, &[])
    };
    let told = frozen(700_000, true, 50).unwrap();
    assert!(
        told.starts_with("no answer came for 1.2s, from 1.5s into the run on, while requests were open"),
        "{told}"
    );
    assert_eq!(frozen(400_000, true, 50), None, "less than a second");
    assert_eq!(frozen(700_000, false, 50), None, "users think");
    assert_eq!(frozen(700_000, true, 300_000), None, "answers are slow");
}

#[test]
fn a_freeze_is_told_that_begins_before_the_window_or_ends_behind_it() {
    let frozen = |window: std::ops::Range<u64>| {
        let mut run = Run::new(6);
        run.window = window.clone();
        for second in 0..6 {
            let good = match second {
                2 => vec![1, 300_000],
                3 => vec![],
                4 => vec![600_000, S - 1],
                _ => vec![1, S - 1],
            };
            run.open = true;
            run.second(second, &good, 9_000, NONE, 50);
        }
        run.silence.freeze(50, &[])
    };
    let before = frozen(3..6).unwrap();
    assert!(before.contains("came for 2.3s, from 2.3s") && before.contains("began before"), "{before}");
    let behind = frozen(0..4).unwrap();
    assert!(
        behind.contains("came for 2.3s, from 2.3s") && behind.contains("look at the response times"),
        "{behind}"
    );
}

#[test]
fn a_label_that_froze_while_others_answered_is_told() {
    let frozen = |median_us: u64| {
        let labels = crate::Named { name: "label `b`".into(), labels: [1].into() };
        let mut run = Run::new(6);
        for second in 0..6u64 {
            let mut one = ThreadInterval::empty(0, second * S, (second + 1) * S);
            one.in_window = true;
            let mut answers = vec![(0, 500)];
            answers.extend((second != 2 && second != 3).then_some((1, 400)));
            for (label, count) in answers {
                let mut series = crate::test_plan::series(label, Outcome::Ok, 50, count);
                series.measured = true;
                one.series.push(series);
            }
            one.open_by_label = vec![(1, 3)];
            run.good(second * S + 1);
            run.good(second * S + S - 1);
            (one.quiet, one.last_good_us) = (std::mem::take(&mut run.quiet), run.last_good_us);
            run.silence.add(&one);
        }
        run.silence.freeze(50, &[(labels, median_us)])
    };
    let told = frozen(50).unwrap();
    assert!(told.starts_with("no answer came from label `b` for 2.0s, from 2.0s into the run on"), "{told}");
    assert_eq!(frozen(900_000), None);
}
