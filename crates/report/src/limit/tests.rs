//! What is said of a search.

use super::*;
use serde_json::{Value, json};
use std::path::Path;
use tidemark_limit::{Figures, Options, Purpose, Resources, Searches, TrialPlan};

/// A search that held 800/s and broke at 900/s, on one core.
pub(crate) fn searches(setting: Option<&str>) -> Searches {
    let trial = |level: f64, us: u64| {
        let ask = TrialPlan { level, purpose: Purpose::Explore, warm_up_s: 1.0, measured_max_s: 4.0 };
        let met = level < 850.0;
        let figures = Figures {
            offered_per_s: level * 50.0,
            achieved_per_s: (level * 50.0).min(44_000.0),
            p50_us: Some(us),
            p99_us: Some(us * 4),
            mean_us: Some(us as f64 * 1.5),
            service_mean_us: Some(us as f64 * 1.5),
            processes: vec![Cores { name: "system".into(), cores: level / 900.0, waited: None }],
            ..Figures::default()
        };
        let seen = vec![GoalResult { met, measured: "71ms</td>".into(), tail: None, undecided: false }];
        Trial { dir: format!("1-{level}"), ..Trial::new(ask, seen, figures) }
    };
    let search = Search {
        setting: setting.map(str::to_owned),
        goals: vec![Goal { text: "mean < 50ms".into(), ..Goal::default() }],
        options: Options::new(100.0, 300.0),
        resources: Resources { cores: 1.0, in_flight_max: 100, sync_us: None, fresh: true },
        trials: vec![trial(100.0, 900), trial(800.0, 2_000), trial(900.0, 60_000)],
        ended: Some(Ending::Precise),
        at_least_per_s: None,
        notes: vec!["a <note>".into()],
    };
    let mut searches = Searches::new("shop", "");
    searches.searches = vec![search];
    searches
}

#[test]
fn the_result_is_one_sentence() {
    let found = searches(None).searches[0].found();
    assert_eq!(
        says(&found),
        "holds 42,400/s (between 40,000 and 45,000); first to break: mean < 50ms; then CPU of the system is 0.89 cores"
    );
    let fitted = Found { is_between_trials: false, ..found.clone() };
    assert!(says(&fitted).starts_with("holds 42,400/s (40,000 to 45,000, 95 %); first"));
    let other = |ended, change: &dyn Fn(&mut Found)| {
        let mut found = Found { ended: Some(ended), ..found.clone() };
        change(&mut found);
        says(&found)
    };
    let bound = other(Ending::Driver, &|found| found.driver = Some("its threads".into()));
    assert_eq!(
        bound,
        "holds at least 42,400/s; mean < 50ms (71ms</td>) breaks at 45,000/s; above that the load generator was the \
         bottleneck: its threads"
    );
    let users = other(Ending::Budget, &|found| {
        (found.users, found.level, found.low_level, found.high_level) = (true, Some(34.0), Some(33.0), None);
    });
    assert!(users.starts_with("holds 34 users, 42,400/s (at least 33); first"), "{users}");
    let nothing = other(Ending::NothingHolds, &|found| {
        (found.per_s, found.level, found.high_level) = (None, None, Some(0.2));
    });
    assert_eq!(nothing, "nothing holds: mean < 50ms (71ms</td>) breaks at 0.2/s");
    let unheard = other(Ending::Undecided, &|found| {
        (found.per_s, found.level, found.high_level) = (None, None, Some(60.0));
    });
    assert_eq!(unheard, "mean < 50ms (71ms</td>) breaks at 60/s; below that nothing could be told");
    let silent = |found: &mut Found| {
        (found.per_s, found.level, found.high_level, found.first_to_break) = (None, None, None, None);
        found.driver = Some("its threads".into());
    };
    assert_eq!(
        other(Ending::Driver, &silent),
        "nothing could be told: the load generator was the bottleneck: its threads"
    );
    assert_eq!(other(Ending::Undecided, &silent), "no trial decided anything");
    let disturbed = other(Ending::Disturbed, &|found| found.disturbed = 7);
    let all = other(Ending::Disturbed, &|found| (found.disturbed, found.counted) = (7, 0));
    assert_eq!(all, "not measured: others on this machine disturbed all 7 trials");
    let expected =
        "not measured: others on this machine disturbed 7 of 10 trials; the rest: holds 42,400/s (between";
    assert!(disturbed.starts_with(expected), "{disturbed}");
    assert!(other(Ending::NothingBreaks, &|_| {}).contains("the most that was tried"));
    assert!(other(Ending::Saturated, &|_| {}).contains("--until"));
}

#[test]
fn whether_it_holds_what_it_must_is_said_only_where_it_is_sure() {
    let mut searches = searches(None);
    let short = searches.searches[0].found();
    let undecided = "undecided whether it holds 40,000/s: ";
    let no_last = "no trial was long enough to show that it lasts; give more --budget";
    assert_eq!(at_least(&short, 40_000.0), format!("{undecided}{no_last}"));
    let found = Found { lasted_per_s: Some(40_000.0), ..short };
    let disturbed = Found { disturbed: 9, ..found.clone() };
    let others = "others on this machine disturbed too many";
    assert_eq!(at_least(&disturbed, 40_000.0), format!("{undecided}{others}"));
    let smaller = Found { smaller_from_per_s: Some(39_000.0), ..found.clone() };
    let shrunk = "good answers are smaller there than at less load";
    assert_eq!(at_least(&smaller, 40_000.0), format!("{undecided}{shrunk}"));
    assert_eq!(at_least(&found, 40_000.0), "at least the 40,000/s asked for");
    assert_eq!(at_least(&found, 45_001.0), "less than the 45,001/s asked for");
    assert_eq!(found.holds_at_least(45_000.0), None);
    assert_eq!(
        at_least(&found, 45_000.0),
        "undecided whether it holds 45,000/s: that lies within the interval, and no last trial held there"
    );
    let wide = Found { high_per_s: Some(60_000.0), ..found.clone() };
    let undecided = "undecided whether it holds 45,000/s: the interval is too wide";
    assert_eq!(at_least(&wide, 45_000.0), undecided);
    // near enough, and yet no trial shows it
    let close = Found { ended: Some(Ending::Budget), lasted_per_s: None, ..found.clone() };
    let close = Found { low_per_s: Some(41_000.0), is_between_trials: true, ..close };
    let undecided = "undecided whether it holds 42,000/s: no last trial held; give more --budget";
    assert_eq!(at_least(&close, 42_000.0), undecided);
    searches.searches[0].at_least_per_s = Some(50_000.0);
    let says = "less than the 50,000/s asked for";
    assert_eq!(remarks(&searches.searches[0], &found)[0], says);
    let value: Value = serde_json::from_str(&json(&searches, Path::new("x"), &[])).unwrap();
    let wanted = json!({ "per_s": 50_000.0, "holds": false, "says": says });
    assert_eq!(value["limit"]["at_least"], wanted);
    let none = Found { per_s: None, low_per_s: None, high_per_s: Some(7.0), ..found };
    assert_eq!(at_least(&none, 10.0), "less than the 10/s asked for");
    let of = |per_s, low_per_s, high_per_s| {
        at_least(&Found { per_s, low_per_s, high_per_s, ..none.clone() }, 10.0)
    };
    let undecided = "undecided whether it holds 10/s: ";
    assert_eq!(of(Some(7.0), Some(7.0), None), format!("{undecided}it was not tried that far"));
    assert_eq!(
        of(Some(7.0), None, Some(12.0)),
        format!("{undecided}no last trial held there or above; give more --budget")
    );
    assert_eq!(of(Some(7.0), None, None), format!("{undecided}the limit has no interval yet"));
    assert_eq!(of(None, None, None), format!("{undecided}nothing has held yet"));
}

#[test]
fn what_the_limit_is_and_what_is_odd_is_said() {
    let mut searches = searches(None);
    let found = searches.searches[0].found();
    assert_eq!(found.knee_per_s, None, "the trial that holds the most has the most throughput for its time");
    let found = Found { knee_per_s: Some(40_000.0), ..found };
    let remarked = remarks(&searches.searches[0], &found);
    assert_eq!(remarked[0], "the limit is the CPU: system uses 1.00 of 1 core");
    assert_eq!(remarked[1], "whether it lasts is not shown: no last trial held");
    let disturbed = Found { is_last_undecided: true, ..found.clone() };
    assert_eq!(
        remarks(&searches.searches[0], &disturbed)[1],
        "whether it lasts is not shown: no last trial decided it, so that the exit status is 3; try again when the machine is quiet"
    );
    let lasted = Found { lasted_per_s: Some(40_000.0), ..found.clone() };
    assert!(!remarks(&searches.searches[0], &lasted)[1].starts_with("whether"));
    assert!(remarked[2].starts_with("beyond about 40,000/s") && remarked[3] == "a <note>", "{remarked:?}");
    let search = &mut searches.searches[0];
    search.trials[1].not_counted = Some(NotCounted::Driver("its threads".into()));
    let remarked = remarks(search, &found).join("; ");
    assert!(
        remarked.contains(
            "trial 2, at 800/s, is not counted (it held): the load generator was the bottleneck: its threads"
        ),
        "{remarked}"
    );
    assert!(!remarked.contains("other processes"), "{remarked}");
    search.resources.fresh = false;
    for trial in &mut search.trials {
        trial.figures.processes.clear();
        trial.figures.neighbours =
            vec![Cores { name: "rustc".into(), cores: trial.ask.level / 500.0, waited: None }];
    }
    let remarked = remarks(search, &found).join("; ");
    assert!(
        remarked.contains("in 2 of 3 trials other processes were at work here, at most rustc 1.80"),
        "{remarked}"
    );
    let slows = Anomaly::Slows { held: 800.0, held_after_s: 20.0, broke: 500.0, broke_after_s: 140.0 };
    assert!(anomaly(&slows, false).contains("held 800/s after 20.0s, and broke at 500/s after 140s"));
    let contradicts =
        |trials, left_out| Anomaly::Contradicts { broke: 50.0, after_s: 0.0, held: 400.0, trials, left_out };
    let once = anomaly(&contradicts(1, true), false);
    assert!(once.contains("broke at 50/s, and others held up to 400/s"), "{once}");
    assert!(once.ends_with("that trial is left out of the limit"), "{once}");
    assert!(anomaly(&contradicts(1, false), false).ends_with("so it counts"));
    let often = contradicts(3, false);
    assert!(anomaly(&often, false).starts_with("3 trials, from 50/s on, broke at no more load"));
    assert!(
        cause(&Cause::Within { cores: 0.4, of: 0.0 })
            .contains("CPU was 0.40 cores (how many it has is not known)")
    );
    let connections = "the limit is connections: all 1,024 requests that they may carry at once are under way; others wait \
                       for 62.5% of their response time, while the system is no slower; raise `limits: {connections: …}`";
    assert_eq!(cause(&Cause::Connections { in_flight_max: 1_024, waited_share: 0.625 }), connections);
    // the limit itself is known
    let unknown = "cause unknown: nobody watches the CPU of the system; --watch shows it";
    assert_eq!(cause(&Cause::Unknown), unknown);
    let free = "cause unknown: CPU, disk and connections were free (CPU: 0.40 of 2 cores)";
    assert_eq!(cause(&Cause::Within { cores: 0.4, of: 2.0 }), free);
    for cores in [0.5, 1.13, 1.6] {
        let used = format!("cause unknown (CPU: {cores:.2} of 2 cores)");
        assert_eq!(cause(&Cause::Within { cores, of: 2.0 }), used, "one thread may be full");
    }
    let falls = Anomaly::CapacityFalls {
        from_per_s: 347.0,
        from_after_s: 20.0,
        to_per_s: 138.0,
        to_after_s: 230.0,
        trials: 20,
    };
    let falls = anomaly(&falls, false);
    assert!(
        falls.starts_with("it slows down the longer it runs: with too much to do it answered 347/s"),
        "{falls}"
    );
    let shrinks = Anomaly::AnswersShrink {
        label: "GET /items".into(),
        bytes: 2_000.0,
        smaller_bytes: 22.0,
        from_per_s: 400.0,
    };
    let shrinks = anomaly(&shrinks, false);
    let expected = "good answers of `GET /items` get smaller from 400/s on: 22 bytes each instead of 2,000";
    assert!(shrinks.starts_with(expected), "{shrinks}");
    let pauses = Anomaly::Pauses { every_s: 10.0, length_s: 0.25, seen: 12 };
    assert!(anomaly(&pauses, false).contains("about every 10.0s for about 250ms (seen 12 times)"));
}

#[test]
fn trials_that_are_not_counted_have_a_line_each_up_to_a_few() {
    let mut searches = searches(None);
    let search = &mut searches.searches[0];
    let lines = |search: &Search| {
        let all = remarks(search, &search.found()).into_iter();
        all.filter(|line| line.contains("not counted") || line.contains("disturbed")).collect::<Vec<_>>()
    };
    assert_eq!(lines(search), Vec::<String>::new());
    search.trials[1].not_counted = Some(NotCounted::Machine("the hypervisor took 1.00 of 2 cores".into()));
    let line = "trial 2, at 800/s, is not counted (it held): the hypervisor took 1.00 of 2 cores";
    assert_eq!(lines(search), [line], "and not once more as an anomaly");
    let bound =
        Trial { not_counted: Some(NotCounted::Driver("its threads".into())), ..search.trials[2].clone() };
    search.trials.extend(vec![bound; 6]);
    // also where the search ended with it
    search.ended = Some(Ending::Driver);
    let all = remarks(search, &search.found());
    let first = all.iter().position(|told| told == line).unwrap();
    assert_eq!(
        all[first + 1],
        "trial 4, at 900/s, is not counted (it broke): the load generator was the bottleneck: its threads"
    );
    assert!(all[first + 4].starts_with("trial 7, at 900/s"), "{all:?}");
    assert_eq!(all[first + 5], "and 2 more; all trials are on the page and in --json");
    assert_eq!(lines(search).len(), 5);
    // others are named once more, with what they took in all of them
    search.trials.truncate(3);
    let mut disturbed =
        Trial { not_counted: Some(NotCounted::Machine("cargo".into())), ..search.trials[0].clone() };
    disturbed.figures.neighbours = vec![Cores { name: "rustc".into(), cores: 1.75, waited: None }];
    search.trials.extend(vec![disturbed; 6]);
    search.ended = Some(Ending::Disturbed);
    let lines = lines(search);
    assert!(lines[0].starts_with("used by others in the 7 disturbed trials: rustc 1.50 cores"), "{lines:?}");
    assert_eq!(lines.len(), 6, "{lines:?}");
}

#[test]
fn a_table_keeps_the_ends_and_what_is_around_the_limit() {
    let mut found = searches(None).searches[0].found();
    found.level = Some(500.0);
    let point = |level| Point { level, ..Point::default() };
    found.curve = (1..=40).map(|i| point(f64::from(i) * 25.0)).collect();
    let levels: Vec<f64> = points(&found, 8).iter().map(|point| point.level).collect();
    assert_eq!((levels.len(), levels[0], levels[7]), (8, 25.0, 1_000.0));
    assert!(levels.contains(&500.0) && levels.contains(&525.0), "{levels:?}");
}

#[test]
fn rates_have_three_digits() {
    let all = [0.25, 7.0, 995.4, 41_236.0, 1_234_567.0].map(rate);
    assert_eq!(all, ["0.25", "7", "995", "41,200", "1,230,000"]);
}
