//! A search that is written down and read again is the same.

use tidemark_limit::{
    Cores, Ending, Figures, GoalResult, Moment, NotCounted, Options, Percentile, Purpose, Resources, Search,
    Searches, Tail, Trial, TrialPlan,
};

use crate::queues::{Queue, Service, Simulated, goal, options};
use serde_json::{Value, json};
use tidemark_limit::{next, search};

fn searches() -> Searches {
    let mut tail = Tail::default();
    tail.add(0.3, 99);
    tail.fail(1);
    let ask = TrialPlan {
        level: 41.5,
        purpose: Purpose::Refine { round: 2, place: 3 },
        warm_up_s: 1.0,
        measured_max_s: 9.0,
    };
    let figures = Figures {
        p99_us: Some(1_234),
        processes: vec![Cores { name: "system".into(), cores: 0.97, waited: Some(0.02) }],
        ..Figures::default()
    };
    let seen = vec![GoalResult { met: true, measured: "1.23ms".into(), tail: Some(tail), undecided: false }];
    let moments = vec![Moment { at_s: 1.5, ended: 100, slow: 1 }];
    let not_counted = Some(NotCounted::Machine("cargo".into()));
    let trial = Trial { not_counted, moments, dir: "1-41.5".into(), ..Trial::new(ask, seen, figures) };
    let search = Search {
        setting: Some("cores=2".into()),
        goals: vec![goal(Percentile { allowed: 0.01, bound_s: 0.05 })],
        options: Options::new(10.0, 300.0),
        resources: Resources { cores: 2.0, in_flight_max: 1_000, sync_us: Some(900), fresh: true },
        trials: vec![trial],
        ended: Some(Ending::Budget),
        at_least_per_s: Some(5_000.0),
        notes: vec!["a note".into()],
    };
    Searches { searches: vec![search], stopped: Some("x".into()), ..Searches::new("shop", "a shop") }
}

#[test]
fn what_was_written_is_read() {
    let searches = searches();
    assert_eq!(Searches::from_json(&searches.to_json()).unwrap(), searches);
}

#[test]
fn what_is_damaged_is_told_and_breaks_nothing() {
    let text = searches().to_json();
    for (from, to) in
        [("\"format\": 1", "\"format\": 2"), ("\"seen\": [", "\"seen\": [], \"x\": ["), ("99,", "")]
    {
        assert!(text.contains(from), "{from}");
        assert!(Searches::from_json(&text.replacen(from, to, 1)).is_err(), "{from}");
    }
    for end in (0..text.len() - 3).step_by(37) {
        assert!(Searches::from_json(&text[..end]).is_err());
    }
}

/// A search of a queue, with all that one can have.
fn of_a_queue() -> Value {
    let percentile = Percentile { allowed: 0.01, bound_s: 0.05 };
    let goals = vec![goal(percentile)];
    let options = Options { budget_s: 60.0, ..options(60.0, 1) };
    let mut system = Simulated::new(Queue::new(1, Service::Exponential, 200.0), percentile, 1);
    let mut trials = Vec::new();
    let Ok(ended) = search(&goals, &options, &mut trials, &mut system);
    let resources = Resources { cores: 2.0, in_flight_max: 10, sync_us: Some(900), fresh: false };
    let ended = Some(ended);
    let (setting, at_least_per_s, notes) = (None, None, Vec::new());
    let search = Search { setting, goals, options, resources, trials, ended, at_least_per_s, notes };
    let kept = Searches { searches: vec![search], ..Searches::new("shop", "") };
    serde_json::from_str(&kept.to_json()).unwrap()
}

/// Paths to all that is in a value.
fn places(value: &Value, path: &str, all: &mut Vec<String>) {
    all.push(path.to_owned());
    match value {
        Value::Object(of) => of.iter().for_each(|(key, value)| places(value, &format!("{path}/{key}"), all)),
        Value::Array(of) => {
            of.iter().enumerate().for_each(|(index, value)| places(value, &format!("{path}/{index}"), all))
        }
        _ => {}
    }
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    let whole = of_a_queue();
    assert!(Searches::from_json(&whole.to_string()).is_ok());
    let damages = [
        ("/searches", json!([])),
        ("/searches/0/goals", json!([])),
        ("/searches/0/goals/0/percentile/allowed", json!(5)),
        ("/searches/0/goals/0/percentile/allowed", json!(0)),
        ("/searches/0/goals/0/percentile/allowed", json!(1.0)),
        ("/searches/0/goals/0/percentile/bound_s", json!(-1)),
        ("/searches/0/options/first", json!(0)),
        ("/searches/0/options/budget_s", json!(-3)),
        ("/searches/0/options/precision", json!(1.5)),
        ("/searches/0/trials/0/ask/level", json!(0)),
        ("/searches/0/trials/0/ask/level", json!(-50)),
        ("/searches/0/trials/0/ask/level", json!(1e300)),
        ("/searches/0/trials/0/took_s", json!(-1)),
        ("/searches/0/trials/0/took_s", json!(0)),
        ("/searches/0/trials/0/moments/0/at_s", json!(1e200)),
        ("/searches/0/trials/0/seen/0/tail/3", json!(u64::MAX)),
        ("/searches/0/ended", json!("nothing-holds")),
        ("/searches/0/ended", json!("driver")),
        ("/searches/0/ended", json!("saturated")),
    ];
    for (place, damage) in damages {
        let mut damaged = whole.clone();
        *damaged.pointer_mut(place).unwrap() = damage.clone();
        assert!(Searches::from_json(&damaged.to_string()).is_err(), "{place}: {damage}");
    }
}

/// Whatever stands anywhere: it is refused, or read and shown in no time.
#[test]
fn no_value_makes_a_search_hang_or_panic() {
    let whole = of_a_queue();
    let mut all = Vec::new();
    places(&whole, "", &mut all);
    let values = [
        json!(0),
        json!(-1),
        json!(1e-9),
        json!(1e-320),
        json!(5),
        json!(1e9),
        json!(1e308),
        json!(u64::MAX),
        json!(u32::MAX),
        json!(null),
        json!(true),
        json!("precise"),
        json!([]),
        json!({}),
    ];
    let mut random = fastrand::Rng::with_seed(1);
    let mut read = 0;
    for turn in 0..500 {
        let mut damaged = whole.clone();
        // trials are nearly all of it, their numbers nearly all of them
        for _ in 0..=turn % 3 {
            let place = &all[random.usize(..all.len())];
            let short = place.matches('/').count() < 6 || random.u8(..9) == 0;
            if let Some(value) = damaged.pointer_mut(place).filter(|_| short) {
                *value = values[random.usize(..values.len())].clone();
            }
        }
        let Ok(searches) = Searches::from_json(&damaged.to_string()) else { continue };
        read += 1;
        for search in &searches.searches {
            let found = search.found();
            assert!(found.per_s.is_none_or(f64::is_finite) && found.took_s.is_finite());
            let _ = next(&search.goals, &search.trials, &search.options);
        }
    }
    assert!(read > 30, "{read} were read");
}
