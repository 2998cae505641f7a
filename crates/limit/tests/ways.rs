//! How searches go where something is out of the ordinary.

use std::convert::Infallible;

use tidemark_limit::{
    Cores, Ending, Figures, Found, Goal, GoalResult, Next, NotCounted, Options, Percentile, Purpose,
    Resources, SearchVerdict, StoppingRule, Tail, Trial, TrialPlan, Trials, counted, estimate, found, next,
    search, spent_s,
};

use crate::queues::{Queue, Service, Simulated, goal, options};

/// A system by what it does at a level.
struct Does<F>(F);

impl<F: FnMut(&TrialPlan) -> Trial> Trials for Does<F> {
    type Error = Infallible;

    fn run(&mut self, ask: &TrialPlan, _rule: &StoppingRule) -> Result<Trial, Infallible> {
        Ok((self.0)(ask))
    }
}

fn errors() -> [Goal; 1] {
    [Goal { text: "errors < 0.1%".into(), is_of_errors: true, ..Goal::default() }]
}

fn trial(ask: &TrialPlan, met: bool) -> Trial {
    let figures =
        Figures { offered_per_s: ask.level * 2.0, achieved_per_s: ask.level * 2.0, ..Figures::default() };
    Trial {
        took_s: ask.warm_up_s + ask.measured_max_s + 1.0,
        ..Trial::new(*ask, vec![GoalResult { met, ..GoalResult::default() }], figures)
    }
}

/// What a search for the limit of such a system comes to.
fn searched(
    goals: &[Goal],
    options: &Options,
    of: impl FnMut(&TrialPlan) -> Trial,
) -> (Ending, Vec<Trial>, Found) {
    let mut trials = Vec::new();
    let Ok(ending) = search(goals, options, &mut trials, &mut Does(of));
    let found = found(goals, &trials, options, &Resources::default(), Some(ending));
    (ending, trials, found)
}

fn carried_out(options: &Options, of: impl Fn(&TrialPlan) -> Trial) -> (Ending, Vec<Trial>, Found) {
    searched(&errors(), options, of)
}

#[test]
fn a_limit_is_found_from_far_below_and_from_far_above() {
    for (first, limit) in [(10.0, 41_300.0), (1e6, 730.0), (5.0, 5.2)] {
        let options = Options::new(first, 330.0);
        let (ending, trials, found) = carried_out(&options, |ask| trial(ask, ask.level <= limit));
        assert_eq!(ending, Ending::Precise, "{first}");
        assert!((found.level.unwrap() / limit - 1.0).abs() < 0.02, "{found:?}");
        assert!(found.low_level.unwrap() <= limit && found.high_level.unwrap() >= limit);
        assert!((found.per_s.unwrap() / limit / 2.0 - 1.0).abs() < 0.02, "two requests in each session");
        assert_eq!(found.first_to_break.as_deref(), Some("errors < 0.1%"));
        assert!(spent_s(&trials) <= 330.0);
    }
}

#[test]
fn users_are_whole_and_their_neighbours_are_precise() {
    let options = Options { users: true, ..Options::new(10.0, 300.0) };
    let (ending, trials, _) = carried_out(&options, |ask| trial(ask, ask.level <= 3.0));
    assert_eq!(ending, Ending::Precise);
    assert!(trials.iter().all(|trial| trial.ask.level.fract() == 0.0));
    let limit = estimate(&errors(), &counted(&trials)).unwrap();
    assert_eq!((limit.low, limit.high), (Some(3.0), Some(4.0)));
}

#[test]
fn what_never_breaks_and_what_never_holds_end() {
    let options = Options { level_max: 5_000.0, ..Options::new(10.0, 600.0) };
    let (ending, trials, limit) = carried_out(&options, |ask| trial(ask, true));
    assert_eq!((ending, trials.last().unwrap().ask.level), (Ending::NothingBreaks, 5_000.0));
    assert_eq!((limit.level, limit.high_level, limit.first_to_break), (Some(5_000.0), None, None));
    let (ending, _, limit) = carried_out(&options, |ask| trial(ask, false));
    assert_eq!(ending, Ending::NothingHolds);
    assert_eq!((limit.level, limit.first_to_break.as_deref()), (None, Some("errors < 0.1%")));
}

/// Levels have four digits, and a bound may have more.
#[test]
fn the_highest_level_is_the_bound_itself() {
    for most in [12_344.0, 12_346.0] {
        let options = Options { level_max: most, ..Options::new(10.0, 600.0) };
        let (ending, trials, _) = carried_out(&options, |ask| trial(ask, true));
        let highest = trials.iter().map(|trial| trial.ask.level).fold(0.0, f64::max);
        assert_eq!((ending, highest), (Ending::NothingBreaks, most));
    }
}

/// Nothing but errors: no load is too low for them.
#[test]
fn a_system_that_only_fails_is_told_at_once() {
    let goals = [goal(Percentile { allowed: 0.01, bound_s: 0.05 }), errors()[0].clone()];
    for first in [1.0, 50.0, 1e6] {
        let options = Options::new(first, 300.0);
        let fails = |ask: &TrialPlan| {
            let mut tail = Tail::default();
            tail.fail((ask.level * ask.measured_max_s) as u64);
            let percentile = GoalResult {
                met: false,
                measured: "not measured".into(),
                tail: Some(tail),
                undecided: false,
            };
            let errors = GoalResult { measured: "100%".into(), ..GoalResult::default() };
            let figures = Figures { offered_per_s: ask.level, failed_share: 1.0, ..Figures::default() };
            Trial::new(*ask, vec![percentile, errors], figures)
        };
        let (ending, trials, found) = searched(&goals, &options, fails);
        assert_eq!((ending, trials.len()), (Ending::NothingHolds, 2), "{first}");
        assert_eq!(
            (found.first_to_break.as_deref(), found.first_to_break_measured.as_deref()),
            (Some("errors < 0.1%"), Some("100%"))
        );
        assert!(found.high_level.unwrap() * 30.0 >= 20.0, "{found:?}");
        assert_eq!(found.cause, None, "errors are no limit");
    }
}

/// A percentile of fewer requests than it needs for one of them to be slower is none.
#[test]
fn too_few_requests_say_nothing() {
    let goals = [goal(Percentile { allowed: 0.001, bound_s: 0.05 })];
    let slow_once = |ask: &TrialPlan, count: u64| {
        let mut tail = Tail::default();
        tail.add(0.01, count.saturating_sub(1));
        tail.add(if ask.level > 900.0 { 9.0 } else { 0.01 }, count.saturating_sub(1));
        // the first request of a trial is always slow
        tail.add(9.0, u64::from(count > 0));
        let met = (tail.slow() as f64) < 0.001 * tail.due() as f64;
        let seen = GoalResult { met, measured: String::new(), tail: Some(tail), undecided: false };
        let figures = Figures { offered_per_s: count as f64 / ask.measured_max_s, ..Figures::default() };
        Trial::new(*ask, vec![seen], figures)
    };
    let options = Options::new(2.0, 300.0);
    let mut trials = Vec::new();
    let few = |ask: &TrialPlan| slow_once(ask, (ask.level * ask.measured_max_s / 2.0).max(1.0) as u64);
    let Ok(_) = search(&goals, &options, &mut trials, &mut Does(few));
    let found = found(&goals, &trials, &options, &Resources::default(), None);
    assert!(found.high_level.is_some_and(|high| (850.0..1_900.0).contains(&high)), "{found:?}");
    assert!(found.low_level.is_some_and(|low| (300.0..=900.0).contains(&low)), "{found:?}");
    // and none at all are never asked for without end
    let (ending, _, nothing) = searched(&goals, &options, |ask| slow_once(ask, 0));
    assert_eq!(ending, Ending::Undecided);
    assert_eq!((nothing.level, nothing.high_level, nothing.first_to_break), (None, None, None));
}

/// A knee is of trials that hold, and of a response time that rises.
#[test]
fn where_answers_take_no_longer_there_is_no_knee() {
    let knee = |mean_us: fn(f64) -> f64| {
        let options = Options::new(50.0, 300.0);
        let (.., found) = carried_out(&options, |ask| {
            let mut trial = trial(ask, ask.level <= 500.0);
            trial.figures.mean_us = Some(mean_us(ask.level));
            trial
        });
        found.knee_per_s
    };
    assert_eq!(knee(|_| 900.0), None);
    // it sheds load: those that it answers, it answers sooner
    assert_eq!(knee(|level| if level > 500.0 { 1.0 } else { 900.0 }), None);
    let rises = knee(|level| 1e6 / (520.0 - level).max(1.0)).unwrap();
    assert!((400.0..960.0).contains(&rises), "{rises}");
}

#[test]
fn users_that_make_no_more_throughput_end_where_nothing_else_minds() {
    let options = Options { users: true, ..Options::new(4.0, 300.0) };
    let saturates = |ask: &TrialPlan| {
        let per_s = ask.level.min(50.0) * 10.0;
        let figures = Figures { offered_per_s: per_s, achieved_per_s: per_s, ..Figures::default() };
        Trial { figures, ..trial(ask, true) }
    };
    let (ending, trials, _) = carried_out(&options, saturates);
    assert_eq!((ending, trials.last().unwrap().ask.level), (Ending::Saturated, 256.0));
}

#[test]
fn the_driver_is_a_limit_and_says_nothing_of_the_system() {
    let options = Options::new(100.0, 300.0);
    let bound = |ask: &TrialPlan| {
        let held_up = (ask.level > 9_000.0).then(|| NotCounted::Driver("its busiest thread".into()));
        Trial { not_counted: held_up, ..trial(ask, ask.level <= 9_000.0) }
    };
    let (ending, _, limit) = carried_out(&options, bound);
    assert_eq!(ending, Ending::Driver);
    assert!((8_000.0..=9_000.0).contains(&limit.low_level.unwrap()), "{limit:?}");
    assert_eq!((limit.high_level, limit.driver.as_deref()), (None, Some("its busiest thread")));
}

#[test]
fn disturbed_trials_are_repeated_and_never_taken_as_they_are() {
    let options = Options::new(100.0, 300.0);
    let disturbed = |trial: Trial| Trial { not_counted: Some(NotCounted::Machine("cargo".into())), ..trial };
    let count = std::cell::Cell::new(0);
    let sometimes = |ask: &TrialPlan| {
        count.set(count.get() + 1);
        let trial = trial(ask, ask.level <= 900.0);
        if count.get() == 3 { disturbed(Trial { seen: vec![GoalResult::default()], ..trial }) } else { trial }
    };
    let (ending, trials, _) = carried_out(&options, sometimes);
    assert_eq!(ending, Ending::Precise);
    assert_eq!((trials[2].ask.level, trials[3].ask.level), (400.0, 400.0));
    assert!((estimate(&errors(), &counted(&trials)).unwrap().level / 900.0 - 1.0).abs() < 0.02);
    let (ending, trials, _) = carried_out(&options, |ask| disturbed(trial(ask, ask.level <= 900.0)));
    assert_eq!((ending, counted(&trials).len(), trials.len()), (Ending::Disturbed, 0, 7));
    // one that is never quiet again after some that were: what those proved stays, and is not sure
    let count = std::cell::Cell::new(0);
    let in_the_end = |ask: &TrialPlan| {
        count.set(count.get() + 1);
        let trial = Trial {
            figures: Figures {
                neighbours: vec![Cores { name: "cargo".into(), cores: 1.5, waited: None }],
                ..trial(ask, true).figures
            },
            ..trial(ask, ask.level <= 900.0)
        };
        if count.get() > 5 { disturbed(trial) } else { trial }
    };
    let (ending, _, found) = carried_out(&options, in_the_end);
    assert_eq!((ending, found.verdict(None)), (Ending::Disturbed, SearchVerdict::Unknown));
    assert_eq!((found.low_level, found.high_level), (Some(800.0), Some(1_600.0)));
    assert_eq!((found.disturbed, found.neighbours[0].name.as_str()), (7, "cargo"));
}

/// A burst is paid for: 2,000 requests, and 100 more each second.
#[test]
fn what_does_not_last_has_no_lower_end_there() {
    let run = |at_least_per_s: Option<f64>| {
        let credit = std::cell::Cell::new(2_000.0f64);
        let bucket = |ask: &TrialPlan| {
            let gains = |seconds: f64| credit.set((credit.get() + 100.0 * seconds).min(2_000.0));
            gains(2.0);
            let (mut good, mut due) = (0.0, 0.0);
            for second in 0..(ask.warm_up_s + ask.measured_max_s) as u32 {
                gains(1.0);
                let taken = credit.get().min(ask.level);
                credit.set(credit.get() - taken);
                if f64::from(second) >= ask.warm_up_s {
                    (good, due) = (good + taken, due + ask.level);
                }
            }
            let failed_share = 1.0 - good / due;
            let (offered_per_s, achieved_per_s) = (ask.level, good / ask.measured_max_s);
            let figures = Figures { offered_per_s, achieved_per_s, failed_share, ..Figures::default() };
            let seen = GoalResult { met: failed_share < 0.001, ..GoalResult::default() };
            Trial {
                took_s: ask.warm_up_s + ask.measured_max_s + 2.0,
                ..Trial::new(*ask, vec![seen], figures)
            }
        };
        let goals = [Goal { errors_allowed: Some(0.001), ..errors()[0].clone() }];
        let found_in = |budget_s: f64| {
            credit.set(2_000.0);
            let options = Options { at_least_per_s, ..Options::new(50.0, budget_s) };
            let (_, trials, found) = searched(&goals, &options, bucket);
            let last = trials.iter().filter(|of| of.ask.purpose == Purpose::Last);
            let broke = last.clone().filter(|of| !of.holds()).map(|of| of.ask.level).reduce(f64::min);
            let told = format!("{budget_s} s: {found:?}");
            assert!(broke.is_none() || found.low_level.is_none_or(|low| Some(low) < broke), "{told}");
            assert!(found.low_level.is_none_or(|low| low <= 2_000.0 / 3.0), "{told}");
            found
        };
        [40.0, 75.0, 120.0, 300.0].map(found_in)
    };
    for asked in [150.0, 250.0, 1_000.0] {
        for found in run(Some(asked)) {
            assert_ne!(found.verdict(Some(asked)), SearchVerdict::Pass, "{asked}: {found:?}");
        }
    }
    let [.., long] = run(None);
    assert!(long.low_level.is_some_and(|low| (40.0..=105.0).contains(&low)), "{long:?}");
    let [.., long] = run(Some(60.0));
    assert_eq!(long.verdict(Some(60.0)), SearchVerdict::Pass, "{long:?}");
}

/// Others disturb the only last trial, and it breaks: there is no lower end, as nothing lasted.
#[test]
fn where_the_only_last_trial_broke_disturbed_there_is_no_lower_end() {
    let of = |holds: bool| {
        let last = |ask: &TrialPlan| {
            let is_last = ask.purpose == Purpose::Last;
            let mut trial = trial(ask, ask.level <= 204.0 && (holds || !is_last));
            if is_last {
                trial.not_counted = Some(NotCounted::Machine("others".into()));
                trial.took_s = 90.0;
            }
            trial
        };
        let options = Options::new(50.0, 80.0);
        let (_, trials, found) = carried_out(&options, last);
        assert_eq!(trials.last().unwrap().ask.purpose, Purpose::Last);
        (found.level.is_some(), found.low_level.is_some(), found.lasted_per_s)
    };
    assert_eq!(of(false), (true, false, None));
    assert_eq!(of(true), (true, true, None), "it says nothing against it");
}

/// What must hold is tried for as long as the last trial is, also within the interval.
#[test]
fn what_must_hold_is_shown_by_a_last_trial_there_or_above() {
    let of = |asked: f64, limit: f64| {
        let options = Options { at_least_per_s: Some(asked), ..Options::new(100.0, 300.0) };
        let (_, trials, found) = carried_out(&options, |ask| trial(ask, ask.level <= limit));
        let shown = trials
            .iter()
            .any(|of| of.ask.purpose == Purpose::Last && of.holds() && of.figures.offered_per_s >= asked);
        (found.verdict(Some(asked)), shown)
    };
    // sessions have two requests
    assert_eq!(of(600.0, 430.0), (SearchVerdict::Pass, true));
    assert_eq!(of(858.0, 430.0), (SearchVerdict::Pass, true), "just what it holds");
    assert_eq!(of(862.0, 430.0), (SearchVerdict::Unknown, false), "just more");
    assert_eq!(of(1_000.0, 430.0), (SearchVerdict::Fail, false));
}

/// What is asked for is far below the limit, and the time ends before that is known, or nothing lasts there.
#[test]
fn what_must_hold_far_below_the_limit_is_shown_however_the_search_ends() {
    let asked = 300.0;
    for budget_s in [40.0, 60.0, 120.0, 300.0] {
        for lasts in [2_000.0, 1e9] {
            let options = Options { at_least_per_s: Some(asked), ..Options::new(100.0, budget_s) };
            let of = |ask: &TrialPlan| {
                let lasts = ask.purpose != Purpose::Last || ask.level <= lasts;
                trial(ask, ask.level <= 2_265.0 && lasts)
            };
            let (.., found) = carried_out(&options, of);
            assert_eq!(found.verdict(Some(asked)), SearchVerdict::Pass, "{budget_s} {lasts}: {found:?}");
            if budget_s == 300.0 && lasts == 1e9 {
                assert!(found.lasted_per_s.unwrap() > 4_000.0, "the limit has a last trial, too");
            }
        }
    }
}

/// Two of many trials were held up by the driver, one below and one above them not.
#[test]
fn a_driver_that_was_held_up_twice_at_one_level_throws_no_other_trial_away() {
    let options = Options::new(50.0, 240.0);
    let turn = std::cell::Cell::new(0);
    let (ending, trials, found) = carried_out(&options, |ask| {
        turn.set(turn.get() + 1);
        let bound = (9..=10).contains(&turn.get());
        let not_counted = bound.then(|| NotCounted::Driver("its threads".into()));
        Trial { not_counted, ..trial(ask, ask.level <= 308.0) }
    });
    assert_ne!(ending, Ending::Driver, "{trials:?}");
    assert_eq!(found.verdict(None), SearchVerdict::Pass);
    assert!((found.level.unwrap() / 308.0 - 1.0).abs() < 0.05, "{found:?}");
}

/// A level of which the driver is the limit is tried for long, too, before it is said that it holds.
#[test]
fn below_the_driver_s_limit_a_last_trial_shows_what_holds() {
    let options = Options { at_least_per_s: Some(10_000.0), ..Options::new(100.0, 300.0) };
    let (ending, trials, found) = carried_out(&options, |ask| {
        let not_counted = (ask.level > 9_000.0).then(|| NotCounted::Driver("its threads".into()));
        Trial { not_counted, ..trial(ask, true) }
    });
    assert_eq!((ending, trials.last().unwrap().ask.purpose), (Ending::Driver, Purpose::Last));
    assert_eq!(
        [10_000.0, 20_000.0].map(|asked| found.verdict(Some(asked))),
        [SearchVerdict::Pass, SearchVerdict::Unknown]
    );
}

#[test]
fn a_search_that_was_stopped_goes_on_where_it_was() {
    let percentile = Percentile { allowed: 0.01, bound_s: 0.05 };
    let goals = [goal(percentile)];
    let options = options(180.0, 7);
    let mut system = Simulated::new(Queue::new(1, Service::Exponential, 1_000.0), percentile, 7);
    let mut whole = Vec::new();
    let Ok(_) = search(&goals, &options, &mut whole, &mut system);
    for stopped in 0..whole.len() {
        let Next::Trial(ask) = next(&goals, &whole[..stopped], &options) else { panic!("{stopped}") };
        assert_eq!(ask, whole[stopped].ask);
    }
    assert!(matches!(next(&goals, &whole, &options), Next::Over(_)));
    // with more time there is more to do
    let longer = Options { budget_s: 600.0, precision: 0.005, ..options };
    assert!(matches!(next(&goals, &whole, &longer), Next::Trial(_)));
}

#[test]
fn the_budget_is_kept_and_the_last_trial_is_the_longest() {
    for budget_s in [10.0, 30.0, 60.0, 180.0, 600.0] {
        let (_, trials, _) =
            carried_out(&Options::new(100.0, budget_s), |ask| trial(ask, ask.level <= 430.0));
        assert!(spent_s(&trials) <= budget_s, "{budget_s}: {}", spent_s(&trials));
        if budget_s > 60.0 {
            let last = trials.last().unwrap();
            assert_eq!(last.ask.purpose, Purpose::Last);
            assert!(trials.iter().all(|trial| trial.ask.measured_max_s <= last.ask.measured_max_s));
        }
    }
}

/// Answers take a millisecond, and a second beyond the limit: nothing is in between.
#[test]
fn a_percentile_that_jumps_is_found_between_what_holds_and_what_breaks() {
    let percentile = Percentile { allowed: 0.01, bound_s: 0.05 };
    let goals = [goal(percentile)];
    for limit in [730.0, 41_300.0, 33.0] {
        let jumps = |ask: &TrialPlan| {
            let fast = ask.level <= limit;
            let mut tail = Tail::default();
            tail.add(if fast { 0.02 } else { 20.0 }, (ask.level * ask.measured_max_s) as u64);
            let seen = GoalResult { met: fast, measured: String::new(), tail: Some(tail), undecided: false };
            let figures = Figures { offered_per_s: ask.level, ..Figures::default() };
            // far beyond, it is soon sure
            Trial { measured_s: 3.0, took_s: 5.0, ..Trial::new(*ask, vec![seen], figures) }
        };
        let (ending, trials, _) = searched(&goals, &Options::new(limit / 9.0, 300.0), jumps);
        assert_eq!(ending, Ending::Precise, "{limit}");
        let found = estimate(&goals, &counted(&trials)).unwrap();
        assert!((found.level / limit - 1.0).abs() < 0.02, "{limit}: {found:?}");
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        assert!(low <= limit && limit <= high && high / low < 1.05, "{limit}: {found:?}");
        assert!(spent_s(&trials) < 200.0, "{limit}: {}", spent_s(&trials));
    }
}

/// A system that breaks at 60/s, and a driver, or a machine, that has no room for less: nothing is said of lower levels.
#[test]
fn where_lower_levels_say_nothing_it_is_not_said_that_nothing_holds() {
    let goals = [goal(Percentile { allowed: 0.01, bound_s: 0.3 }), errors()[0].clone()];
    let options = Options::new(60.0, 70.0);
    let of = |ask: &TrialPlan, slow: bool, not_counted: Option<NotCounted>| {
        let mut tail = Tail::default();
        tail.add(if slow { 9.0 } else { 0.1 }, (ask.level * ask.measured_max_s) as u64);
        let percentile =
            GoalResult { met: !slow, measured: String::new(), tail: Some(tail), undecided: false };
        let errors = GoalResult { met: !slow, ..GoalResult::default() };
        let figures = Figures { offered_per_s: ask.level, ..Figures::default() };
        let took_s = ask.warm_up_s + ask.measured_max_s + 1.0;
        Trial { not_counted, took_s, ..Trial::new(*ask, vec![percentile, errors], figures) }
    };
    // the lowest level of all is told of
    let (_, trials, _) = searched(&goals, &options, |ask| of(ask, ask.level > 20.0, None));
    let lowest = trials.iter().min_by(|a, b| a.ask.level.total_cmp(&b.ask.level)).unwrap();
    assert!(lowest.ask.level * lowest.ask.measured_max_s >= 119.0, "{:?}", lowest.ask);
    // and where the driver is the limit there, nobody knows
    let bound = |ask: &TrialPlan| {
        let driver = (ask.level < 50.0).then(|| NotCounted::Driver("its threads".into()));
        of(ask, ask.level > 50.0, driver)
    };
    let (ending, _, found) = searched(&goals, &options, bound);
    assert_eq!(ending, Ending::Driver);
    assert_eq!((found.per_s, found.high_level, found.high_per_s), (None, Some(60.0), None));
    assert_eq!(found.holds_at_least(150.0), None);
    assert_eq!(found.verdict(Some(150.0)), SearchVerdict::Unknown);
}

/// An objective that fails at any load by chance: of two trials at the highest level one held.
#[test]
fn nothing_breaks_only_where_no_trial_broke_and_it_lasted() {
    let options = Options { level_max: 45.0, ..Options::new(45.0, 40.0) };
    let breaks_in = |turns: &'static [usize]| {
        let turn = std::cell::Cell::new(0);
        carried_out(&options, |ask| {
            turn.set(turn.get() + 1);
            trial(ask, !turns.contains(&turn.get()))
        })
    };
    for turns in [&[1][..], &[1, 3], &[2]] {
        let (ending, trials, found) = breaks_in(turns);
        assert_ne!(ending, Ending::NothingBreaks, "{turns:?}");
        assert!(trials.len() > 2 && found.first_to_break.is_some(), "{turns:?}: {found:?}");
        if turns == [1] {
            let longest = trials[..2].iter().map(|trial| trial.ask.measured_max_s).fold(0.0, f64::max);
            assert!(trials[2].ask.measured_max_s > longest, "{:?}", trials[2].ask);
        }
    }
    let (ending, trials, found) = breaks_in(&[]);
    assert_eq!((ending, found.first_to_break), (Ending::NothingBreaks, None));
    assert_eq!(trials.last().unwrap().ask.purpose, Purpose::Last);
    assert!(spent_s(&trials) <= 40.0);
}

/// One trial far above counts, and everything between it and what holds is bound by the driver.
#[test]
fn a_limit_above_that_of_the_driver_is_none() {
    let options = Options::new(40.0, 120.0);
    let (ending, _, found) = carried_out(&options, |ask| {
        let bound = ask.level > 42.0 && ask.level < 80.0;
        let not_counted = bound.then(|| NotCounted::Driver("its threads".into()));
        Trial { not_counted, ..trial(ask, ask.level < 80.0) }
    });
    assert_eq!(ending, Ending::Driver);
    assert!(found.level.unwrap() <= 42.0 && found.low_level.unwrap() <= 42.0, "{found:?}");
    assert_eq!((found.verdict(None), found.driver.as_deref()), (SearchVerdict::Unknown, Some("its threads")));
}

/// Arrivals are drawn: more than were asked for in a first, short trial, fewer at the highest level.
#[test]
fn no_more_holds_than_was_offered_and_no_less_for_few_arrivals() {
    let of = |first: f64, each: f64| {
        let options = Options { level_max: 30.0, ..Options::new(10.0, 120.0) };
        let (ending, trials, found) = carried_out(&options, |ask| {
            let offered_per_s = if ask.level <= 10.0 { first } else { ask.level * each };
            let trial = trial(ask, true);
            Trial { figures: Figures { offered_per_s, ..Figures::default() }, ..trial }
        });
        assert_eq!(ending, Ending::NothingBreaks);
        let most = trials.iter().map(|trial| trial.figures.offered_per_s).fold(0.0, f64::max);
        (found, most)
    };
    // one request in each session
    let (found, most) = of(14.0, 0.977);
    assert!(most < 30.0);
    assert_eq!((found.per_s, found.holds_at_least(30.0)), (Some(30.0), Some(true)));
    assert_eq!((found.holds_at_least(30.6), found.verdict(Some(30.6))), (None, SearchVerdict::Unknown));
    // sessions of any length
    let (found, most) = of(60.0, 2.4);
    assert!(found.per_s.unwrap() <= most && found.low_per_s.unwrap() <= most, "{found:?}");
}

#[test]
fn a_driver_that_was_held_up_once_is_no_limit() {
    let options = Options::new(100.0, 300.0);
    for turn in [1, 3, 6, 9] {
        let count = std::cell::Cell::new(0);
        let (ending, trials, _) = carried_out(&options, |ask| {
            count.set(count.get() + 1);
            let held_up = (count.get() == turn).then(|| NotCounted::Driver("its threads".into()));
            Trial { not_counted: held_up, ..trial(ask, ask.level <= 900.0) }
        });
        assert_eq!(ending, Ending::Precise, "{turn}");
        assert_eq!(trials[turn - 1].ask, trials[turn].ask);
        assert!((estimate(&errors(), &counted(&trials)).unwrap().level / 900.0 - 1.0).abs() < 0.02);
    }
}

/// A percentile of too few requests, or one that the driver's own fault could have changed, is not what breaks.
#[test]
fn what_is_not_decided_does_not_break_first() {
    let goals = [
        goal(Percentile { allowed: 0.01, bound_s: 0.25 }),
        Goal { text: "mean < 9ms".into(), ..Goal::default() },
        errors()[0].clone(),
    ];
    let options = Options::new(20.0, 60.0);
    let broke = |ask: &TrialPlan| {
        let mut tail = Tail::default();
        tail.add(2.0, 5);
        tail.add(0.1, 43);
        let percentile = GoalResult { measured: "571ms".into(), tail: Some(tail), ..GoalResult::default() };
        let mean = GoalResult { measured: "12ms".into(), undecided: true, ..GoalResult::default() };
        let errors = GoalResult { measured: "3%".into(), ..GoalResult::default() };
        let figures = Figures { offered_per_s: ask.level, ..Figures::default() };
        Trial::new(*ask, vec![percentile, mean, errors], figures)
    };
    let (_, trials, found) = searched(&goals, &options, broke);
    assert_eq!(
        (found.first_to_break.as_deref(), found.first_to_break_measured.as_deref()),
        (Some("errors < 0.1%"), Some("3%"))
    );
    assert!(!trials[0].missed(&goals, 0) && !trials[0].missed(&goals, 1) && trials[0].missed(&goals, 2));
}

/// Evenly spaced arrivals at a system that answers 125 each second and no more: what is beyond waits, three seconds long for
/// less than a bound that is far above its service time.
#[test]
fn nothing_holds_that_a_full_system_does_not_answer_however_lenient_the_bound() {
    const FULL: f64 = 125.0;
    let goals = [
        Goal {
            text: "p99 < 1s".into(),
            percentile: Some(Percentile { allowed: 0.01, bound_s: 1.0 }),
            ..Goal::default()
        },
        Goal { text: "achieved > 99% of offered".into(), ..Goal::default() },
    ];
    let run = |ask: &TrialPlan| {
        let due = ask.level * ask.measured_max_s;
        let mut tail = Tail::default();
        for request in 0..due as u64 {
            let waits_s = (request as f64 + 1.0) * (1.0 / FULL - 1.0 / ask.level).max(0.0);
            tail.add(0.04 + waits_s, 1);
        }
        let achieved_per_s = ask.level.min(FULL);
        let seen = |met: bool, tail: Option<Tail>| GoalResult { met, tail, ..GoalResult::default() };
        // by the root of what is due, which explains three seconds of this
        let is_short = 0.99 * due - achieved_per_s * ask.measured_max_s > 2.0 * due.sqrt();
        let seen =
            vec![seen((tail.slow() as f64) < 0.01 * tail.due() as f64, Some(tail)), seen(!is_short, None)];
        let figures = Figures { offered_per_s: ask.level, achieved_per_s, ..Figures::default() };
        Trial { took_s: ask.warm_up_s + ask.measured_max_s + 1.0, ..Trial::new(*ask, seen, figures) }
    };
    for (first, budget_s) in [(130.0, 12.0), (20.0, 60.0), (130.0, 60.0), (50.0, 180.0)] {
        let options = Options::new(first, budget_s);
        let (.., found) = searched(&goals, &options, run);
        let told = format!("from {first}/s in {budget_s} s: {found:?}");
        assert!(found.per_s.is_none_or(|per_s| per_s <= FULL * 1.02), "{told}");
        assert!(found.low_per_s.is_none_or(|low| low <= FULL * 1.01), "{told}");
        assert_ne!(found.verdict(Some(FULL * 1.04)), SearchVerdict::Pass, "{told}");
    }
}

/// One that answers nothing once it has too much: what it answered before is not the most that it can.
#[test]
fn a_system_that_sheds_all_load_has_no_upper_end_by_what_it_answered() {
    let sheds = |ask: &TrialPlan| {
        let holds = ask.level <= 300.0;
        let mut trial = trial(ask, holds);
        trial.figures.offered_per_s = ask.level;
        trial.figures.achieved_per_s = if holds { ask.level } else { 0.0 };
        trial.figures.failed_share = if holds { 0.0 } else { 1.0 };
        trial
    };
    let options = Options::new(50.0, 28.0);
    let (_, trials, found) = carried_out(&options, sheds);
    let highest =
        trials.iter().filter(|trial| trial.holds()).map(|trial| trial.ask.level).fold(0.0, f64::max);
    let lowest = trials.iter().filter(|trial| !trial.holds()).map(|trial| trial.ask.level).reduce(f64::min);
    assert_eq!((found.low_level, found.high_level), (Some(highest), lowest), "{found:?}");
    assert!(found.per_s >= Some(highest), "{found:?}");
}

/// What sixty searches find of a system of which such a share of requests fails by chance, by the level.
fn failing_by_chance(options: Options, share: impl Fn(f64) -> f64) -> Vec<Found> {
    let goals = [Goal { errors_allowed: Some(0.001), ..errors()[0].clone() }];
    let one = |seed: u64| {
        let mut random = fastrand::Rng::with_seed(seed);
        let fails = |ask: &TrialPlan| {
            let due = (ask.level * ask.measured_max_s).round().max(1.0);
            let failed = (0..due as u64).filter(|_| random.f64() < share(ask.level)).count() as f64;
            let figures = Figures {
                offered_per_s: due / ask.measured_max_s,
                achieved_per_s: (due - failed) / ask.measured_max_s,
                failed_share: failed / due,
                ..Figures::default()
            };
            let seen = GoalResult { met: failed / due < 0.001, ..GoalResult::default() };
            Trial {
                took_s: ask.warm_up_s + ask.measured_max_s + 1.0,
                ..Trial::new(*ask, vec![seen], figures)
            }
        };
        let options = Options { seed, ..options.clone() };
        let (.., found) = searched(&goals, &options, fails);
        found
    };
    (1..=60).map(one).collect()
}

#[test]
fn a_system_that_fails_some_requests_at_any_load_holds_none() {
    for first in [50.0, 200.0, 800.0] {
        let all = failing_by_chance(Options::new(first, 90.0), |_| 0.005);
        let held = all.iter().filter(|found| found.per_s.is_some()).count();
        assert!(held <= 5, "{first}: {held} of 60");
    }
}

/// Half of what is allowed fails at any load: a failure among few requests is chance.
#[test]
fn a_system_that_fails_fewer_requests_than_it_may_holds_as_far_as_it_can() {
    let options = Options { level_max: 8_000.0, ..Options::new(200.0, 300.0) };
    let all = failing_by_chance(options, |level| if level > 2_000.0 { 0.5 } else { 0.0005 });
    let near = |found: &&Found| found.per_s.is_some_and(|per_s| (1_500.0..2_300.0).contains(&per_s));
    let count = all.iter().filter(near).count();
    assert!(count >= 54, "{count} of 60: {:?}", all.iter().map(|found| found.per_s).collect::<Vec<_>>());
}

/// It refuses what is above 15/s: in seconds there are too few requests to show a twentieth of them.
#[test]
fn a_low_limit_is_found_by_longer_trials() {
    let options = Options { level_max: 100.0, ..Options::new(2.0, 300.0) };
    let all = failing_by_chance(options, |level| (1.0 - 15.0 / level).max(0.0));
    let near = |found: &&Found| found.per_s.is_some_and(|per_s| (13.0..17.5).contains(&per_s));
    let count = all.iter().filter(near).count();
    assert!(
        count >= 54,
        "{count} of 60: {:?}",
        all.iter().map(|found| (found.per_s, found.ended)).collect::<Vec<_>>()
    );
}
