//! A search for a limit in words, and as JSON.
//!
//! The sentence of each is made here; [`text::limit`](crate::text::limit), [`markdown::limit`](crate::markdown::limit) and
//! [`still::limit`](crate::still::limit) lay it out.

mod json;

use tidemark_limit::{
    Anomaly, Cause, Cores, Ending, Found, Goal, GoalResult, NotCounted, Point, Search, Trial, counted,
};
use tidemark_record::SYSTEM;

use crate::units::{budget, count, duration, percent, three_digits, trim_zeros};
pub use json::{json, schema};

/// Others that use so many cores are told of where nobody knows whether they are the system.
const BUSY_CORES: f64 = 0.5;
/// What stands before what held the driver up.
const DRIVER_BOUND: &str = "the load generator was the bottleneck: ";
/// A system that uses less than so much of a core is not held up by it; one thread of another may be.
const FREE_BELOW_CORES: f64 = 0.5;
/// Most trials that are not counted and have a line each.
const NOT_COUNTED_MAX: usize = 5;

/// The objectives that a trial missed; not those that it does not decide.
pub(crate) fn missed<'a>(
    search: &'a Search,
    trial: &'a Trial,
) -> impl Iterator<Item = (&'a Goal, &'a GoalResult)> {
    let all = search.goals.iter().zip(&trial.seen).enumerate();
    all.filter(move |(index, _)| trial.missed(&search.goals, *index)).map(|(_, of)| of)
}

/// The result in one sentence: `holds 41,200/s (40,100 to 42,000, 95 %); first to break: p99 < 50ms; then CPU of the system
/// is 0.97 cores`.
pub fn says(found: &Found) -> String {
    let proved = proved(found);
    match found.ended {
        Some(_) if found.disturbed > 0 && found.counted == 0 => {
            format!("not measured: others on this machine disturbed all {} trials", found.disturbed)
        }
        Some(_) if !found.is_quiet() => format!(
            "not measured: others on this machine disturbed {} of {} trials; the rest: {proved}",
            found.disturbed,
            found.disturbed + found.counted
        ),
        _ => proved,
    }
}

/// What the trials that count come to.
fn proved(found: &Found) -> String {
    let first = found.first_to_break.as_deref();
    let broke = || {
        let at = found
            .first_to_break_measured
            .as_ref()
            .map_or_else(String::new, |measured| format!(" ({measured})"));
        format!("{}{at}", first.unwrap_or("nothing"))
    };
    let held = held(found);
    let driver = || found.driver.as_deref().unwrap_or("it had nothing left to give");
    match (found.ended, held) {
        (Some(Ending::NothingHolds), _) | (_, None) => match (first, found.high_level) {
            (Some(_), Some(level)) => {
                let breaks = format!("{} breaks at {}", broke(), level_text(level, found.users));
                match found.ended {
                    Some(Ending::NothingHolds) => format!("nothing holds: {breaks}"),
                    Some(Ending::Driver) => {
                        format!("{breaks}; below that nothing could be told: {DRIVER_BOUND}{}", driver())
                    }
                    Some(_) => format!("{breaks}; below that nothing could be told"),
                    None => format!("{breaks}, and nothing has held yet"),
                }
            }
            _ => match found.ended {
                None => "no result yet: no trial that counts has finished".into(),
                Some(Ending::Driver) => {
                    format!("nothing could be told: {DRIVER_BOUND}{}", driver())
                }
                Some(_) => "no trial decided anything".into(),
            },
        },
        (Some(Ending::Driver), Some(held)) => {
            let breaks = found.high_per_s.filter(|_| first.is_some());
            let breaks =
                breaks.map_or_else(String::new, |per_s| format!("; {} breaks at {}/s", broke(), rate(per_s)));
            format!("holds at least {held}{breaks}; above that {DRIVER_BOUND}{}", driver())
        }
        (Some(Ending::NothingBreaks), Some(held)) => {
            format!("holds {held}, the most that was tried, and nothing broke")
        }
        (Some(Ending::Saturated), Some(held)) => format!(
            "saturates at {held}: more users add no throughput; no objective bounds the response time, give one like --until \
             'p99<50ms'"
        ),
        (_, Some(held)) if first.is_none() => format!("holds {held}, and nothing has broken yet"),
        (_, Some(held)) => format!(
            "holds {held}{}; first to break: {}{}",
            interval(found),
            first.unwrap_or("nothing"),
            cpu(&found.cpu)
        ),
    }
}

/// Whether it holds as much as it must: `less than the 50,000/s asked for`.
pub fn at_least(found: &Found, per_s: f64) -> String {
    let wanted = match per_s {
        1_000.0.. => format!("{}/s", count(per_s.round() as u64)),
        _ => format!("{}/s", rate(per_s)),
    };
    let undecided = format!("undecided whether it holds {wanted}");
    match found.holds_at_least(per_s) {
        None if !found.is_quiet() => format!("{undecided}: others on this machine disturbed too many"),
        None if found.smaller_from_per_s.is_some_and(|from| from <= per_s) => {
            format!("{undecided}: good answers are smaller there than at less load")
        }
        None if found.low_per_s.is_some_and(|low| low >= per_s) => {
            format!("{undecided}: no trial was long enough to show that it lasts; give more --budget")
        }
        Some(true) => format!("at least the {wanted} asked for"),
        Some(false) => format!("less than the {wanted} asked for"),
        None => match (found.low_per_s, found.high_per_s) {
            (Some(_), Some(_)) if found.is_narrow() => {
                format!(
                    "undecided whether it holds {wanted}: that lies within the interval, and no last trial held there"
                )
            }
            (Some(_), Some(_)) if found.is_close() && found.lasted_per_s.is_none() => {
                format!("{undecided}: no last trial held; give more --budget")
            }
            (Some(_), Some(_)) => format!("{undecided}: the interval is too wide"),
            (Some(_), None) => format!("{undecided}: it was not tried that far"),
            (None, Some(_)) => {
                format!("{undecided}: no last trial held there or above; give more --budget")
            }
            (None, None) if found.per_s.is_some() => format!("{undecided}: the limit has no interval yet"),
            (None, None) => format!("{undecided}: nothing has held yet"),
        },
    }
}

/// `41,200/s`, or `34 users, 995/s`.
fn held(found: &Found) -> Option<String> {
    let per_s = format!("{}/s", rate(found.per_s?));
    match (found.users, found.level) {
        (true, Some(level)) => Some(format!("{}, {per_s}", level_text(level, true))),
        _ => Some(per_s),
    }
}

/// `41,200/s` of sessions, or `34 users`.
pub fn level_text(level: f64, users: bool) -> String {
    match users {
        true if level.round() == 1.0 => "1 user".into(),
        true => format!("{} users", count(level.round() as u64)),
        false => format!("{}/s", rate(level)),
    }
}

fn interval(found: &Found) -> String {
    let (low, high) = match found.users {
        true => (found.low_level, found.high_level),
        false => (found.low_per_s, found.high_per_s),
    };
    let text = |value: f64| if found.users { count(value.round() as u64) } else { rate(value) };
    let sure = if found.is_between_trials { "" } else { ", 95 %" };
    match (low, high) {
        (Some(low), Some(high)) if found.is_between_trials => {
            format!(" (between {} and {})", text(low), text(high))
        }
        (Some(low), Some(high)) => format!(" ({} to {}{sure})", text(low), text(high)),
        (Some(low), None) => format!(" (at least {}{sure})", text(low)),
        (None, Some(high)) => format!(" (at most {}{sure})", text(high)),
        (None, None) => " (no interval yet)".into(),
    }
}

/// The system's use of the cores, or that of whatever used most.
fn cpu(all: &[Cores]) -> String {
    let busiest = || all.iter().max_by(|a, b| a.cores.total_cmp(&b.cores));
    match all.iter().find(|process| process.name == SYSTEM).or_else(busiest) {
        Some(Cores { name, cores, .. }) if *cores > 0.0 => {
            let of = if name == SYSTEM { "the system".to_owned() } else { name.clone() };
            format!("; then CPU of {of} is {cores:.2} cores")
        }
        _ => String::new(),
    }
}

/// Three digits, with separators: more are not known.
pub(crate) fn rate(per_s: f64) -> String {
    if per_s < 1_000.0 {
        return trim_zeros(&three_digits(per_s)).to_owned();
    }
    let unit = 10f64.powi(per_s.log10().floor() as i32 - 2);
    count(((per_s / unit).round() * unit) as u64)
}

/// What the limit is, as a whole sentence.
pub fn cause(cause: &Cause) -> String {
    let cores_of = |of: f64| if of == 1.0 { "1 core".to_owned() } else { format!("{of:.0} cores") };
    match cause {
        Cause::Cpu { process, cores, of } => {
            format!("the limit is the CPU: {process} uses {cores:.2} of {}", cores_of(*of))
        }
        Cause::OneThread { process, cores, of } => {
            let of = if *of > 0.0 { format!(" of {}", cores_of(*of)) } else { String::new() };
            format!(
                "the limit is one thread: {process} uses {cores:.2} cores{of}, about as much as one thread can"
            )
        }
        Cause::Connections { in_flight_max, waited_share } => format!(
            "the limit is connections: all {} requests that they may carry at once are under way; others wait for {} of their \
             response time, while the system is no slower; raise `limits: {{connections: …}}`",
            count(*in_flight_max),
            percent(*waited_share)
        ),
        Cause::Disk { sync_us } => {
            let sync = duration(*sync_us as f64);
            format!("the limit is the disk: every answer waits for it, and a sync takes {sync}")
        }
        Cause::Within { cores, of } if *of > 0.0 && *cores < FREE_BELOW_CORES => format!(
            "cause unknown: CPU, disk and connections were free (CPU: {cores:.2} of {})",
            cores_of(*of)
        ),
        Cause::Within { cores, of } if *of > 0.0 => {
            format!("cause unknown (CPU: {cores:.2} of {})", cores_of(*of))
        }
        Cause::Within { cores, .. } if *cores > 0.0 => {
            format!("cause unknown: CPU was {cores:.2} cores (how many it has is not known)")
        }
        Cause::Unknown | Cause::Within { .. } => {
            "cause unknown: nobody watches the CPU of the system; --watch shows it".into()
        }
    }
}

/// An anomaly in words.
pub fn anomaly(anomaly: &Anomaly, users: bool) -> String {
    let seconds = |s: f64| duration(s * 1e6);
    match anomaly {
        Anomaly::Pauses { every_s, length_s, seen } => format!(
            "it stands still about every {} for about {} (seen {seen} times): requests that come then are slow at any load",
            seconds(*every_s),
            seconds(*length_s)
        ),
        Anomaly::Slows { held, held_after_s, broke, broke_after_s } => format!(
            "it slows down the longer it runs: it held {} after {}, and broke at {} after {}; so it has no single limit",
            level_text(*held, users),
            seconds(*held_after_s),
            level_text(*broke, users),
            seconds(*broke_after_s)
        ),
        Anomaly::Contradicts { broke, after_s, held, trials: 1, left_out } => format!(
            "one trial, {} after the search began, broke at {}, and others held up to {}: its load is no reason; {}",
            seconds(*after_s),
            level_text(*broke, users),
            level_text(*held, users),
            match left_out {
                true => "that trial is left out of the limit",
                false => "that was the last and longest trial, so it counts",
            }
        ),
        Anomaly::Contradicts { broke, held, trials, .. } => format!(
            "{trials} trials, from {} on, broke at no more load than others held, up to {}: load alone does not decide, \
             and the limit is no one number",
            level_text(*broke, users),
            level_text(*held, users)
        ),
        Anomaly::CapacityFalls { from_per_s, from_after_s, to_per_s, to_after_s, trials } => format!(
            "it slows down the longer it runs: with too much to do it answered {}/s after {}, and {}/s after {} (a trend over \
             {trials} trials, beyond chance); so it has no single limit",
            rate(*from_per_s),
            seconds(*from_after_s),
            rate(*to_per_s),
            seconds(*to_after_s)
        ),
        Anomaly::AnswersShrink { label, bytes, smaller_bytes, from_per_s } => format!(
            "good answers{} get smaller from {}/s on: {} bytes each instead of {}; the system may do less work there, so holding is not certain",
            if label.is_empty() { String::new() } else { format!(" of `{label}`") },
            rate(*from_per_s),
            rate(*smaller_bytes),
            rate(*bytes)
        ),
        Anomaly::DoesNotLast { measured_s, measured, level } => format!(
            "what held for seconds did not hold for {}, at {}: {measured}",
            seconds(*measured_s),
            level_text(*level, users)
        ),
        Anomaly::Disturbed { trials, by } => format!(
            "others on this machine disturbed {}, which do not count; the last time {by}",
            if *trials == 1 { "one trial".to_owned() } else { format!("{trials} trials") }
        ),
    }
}

/// Everything that is to be said beside the sentence, the weightiest first.
pub(crate) fn remarks(search: &Search, found: &Found) -> Vec<String> {
    let wanted = search.at_least_per_s.map(|per_s| at_least(found, per_s));
    let limit = found.cause.iter().map(cause);
    // each of those trials has a line of its own
    let anomalies = found.anomalies.iter().filter(|of| !matches!(of, Anomaly::Disturbed { .. }));
    let anomalies = anomalies.map(|of| anomaly(of, found.users));
    let is_below = |per_s: &f64| found.per_s.is_some_and(|limit| *per_s < limit);
    let knee = found.knee_per_s.filter(is_below).filter(|_| found.curve.len() > 2);
    let knee = knee.map(|per_s| {
        format!("beyond about {}/s the response time grows faster than the throughput", rate(per_s))
    });
    wanted
        .into_iter()
        .chain(limit)
        .chain(not_lasted(search, found))
        .chain(neighbours(found))
        .chain(anomalies)
        .chain(not_counted(search))
        .chain(beside(search))
        .chain(knee)
        .chain(search.notes.iter().cloned())
        .collect()
}

/// That no last trial held, where a limit is named; an answer to `--at-least` says that itself.
fn not_lasted(search: &Search, found: &Found) -> Option<String> {
    let is_limit = found.ended.is_some() && found.per_s.is_some() && search.at_least_per_s.is_none();
    (is_limit && found.lasted_per_s.is_none())
        .then(|| "whether it lasts is not shown: no last trial held".into())
}

/// What others used while they disturbed trials, by name.
fn neighbours(found: &Found) -> Option<String> {
    let of = found.neighbours.iter().map(|of| format!("{} {:.2} cores", of.name, of.cores));
    let of: Vec<String> = of.collect();
    (!of.is_empty()).then(|| {
        let trials = if found.disturbed == 1 { "trial" } else { "trials" };
        format!(
            "used by others in the {} disturbed {trials}: {}; --watch what belongs to the system, end the rest, or --pin the driver and the system to cores of their own",
            found.disturbed,
            of.join(", ")
        )
    })
}

/// A line for each trial that is not counted, with its level and why: those first, and how many more there are.
fn not_counted(search: &Search) -> Vec<String> {
    let counted = counted(&search.trials);
    let line = |(index, trial): (usize, &Trial)| {
        let why = match trial.not_counted.as_ref().filter(|_| !is_among(&counted, trial))? {
            NotCounted::Driver(why) => format!("{DRIVER_BOUND}{why}"),
            NotCounted::Machine(why) => why.clone(),
        };
        let level = level_text(trial.ask.level, search.options.users);
        let held = match trial.verdict(&search.goals) {
            Some(true) => " (it held)",
            Some(false) => " (it broke)",
            None => "",
        };
        Some(format!("trial {}, at {level}, is not counted{held}: {why}", index + 1))
    };
    let mut lines: Vec<String> = search.trials.iter().enumerate().filter_map(line).collect();
    let more = lines.len().saturating_sub(NOT_COUNTED_MAX);
    lines.truncate(NOT_COUNTED_MAX);
    if more > 0 {
        lines.push(format!("and {more} more; all trials are on the page and in --json"));
    }
    lines
}

/// Whether this very trial is one of those.
pub(crate) fn is_among(all: &[&Trial], trial: &Trial) -> bool {
    all.iter().any(|of| std::ptr::eq(*of, trial))
}

/// Who else was at work, where nobody knows whether that was the system.
fn beside(search: &Search) -> Option<String> {
    let busy = |trial: &Trial| trial.figures.neighbours.iter().map(|busy| busy.cores).sum::<f64>();
    let is_unseen = search.trials.iter().all(|trial| trial.figures.processes.is_empty());
    let beside = search.trials.iter().filter(|trial| busy(trial) >= BUSY_CORES).count();
    let most = search.trials.iter().max_by(|a, b| busy(a).total_cmp(&busy(b)))?;
    if search.resources.fresh || !is_unseen || beside == 0 {
        return None;
    }
    let names = most.figures.neighbours.iter().map(|busy| format!("{} {:.2}", busy.name, busy.cores));
    Some(format!(
        "in {beside} of {} trials other processes were at work here, at most {}: where those are not the system, the limit may \
         be the machine's; --watch tells them apart",
        search.trials.len(),
        names.collect::<Vec<_>>().join(", ")
    ))
}

/// How many trials there were and how long they took: `21 trials in 174s; --budget 3m is used up; …`.
pub(crate) fn took(search: &Search, found: &Found) -> String {
    let trials = search.trials.len();
    let why = match found.ended {
        Some(Ending::Budget) => {
            let has_interval = found.low_level.is_some() && found.high_level.is_some();
            let more = if has_interval { "narrows the interval" } else { "tries more" };
            format!("; --budget {} is used up; a longer one {more}", budget(search.options.budget_s))
        }
        Some(Ending::Disturbed) => "; others kept using the machine: try again when it is quiet".into(),
        Some(Ending::Undecided) => "; more trials of this length would say no more".into(),
        None => ", not finished".into(),
        _ => String::new(),
    };
    format!(
        "{trials} trial{} in {}{why}",
        if trials == 1 { "" } else { "s" },
        duration(found.took_s.max(0.0) * 1e6)
    )
}

/// What the columns of a curve's table are called.
pub(crate) fn columns(users: bool) -> [&'static str; 8] {
    [if users { "users" } else { "offered" }, "answered", "p50", "p90", "p99", "failed", "CPU", "holds"]
}

/// What stands in them.
pub(crate) fn row(point: &Point, users: bool) -> [String; 8] {
    [
        if users { format!("{:.0}", point.level) } else { format!("{}/s", rate(point.offered_per_s)) },
        format!("{}/s", rate(point.achieved_per_s)),
        time(point.p50_us),
        time(point.p90_us),
        time(point.p99_us),
        if point.failed_share > 0.0 { percent(point.failed_share) } else { "0".into() },
        point.cpu_cores.map_or_else(|| "-".into(), |cores| format!("{cores:.2}")),
        sign(point.holds).into(),
    ]
}

/// How many trials a table of so many rows leaves out, and where they are.
pub(crate) fn more(found: &Found, rows: usize) -> Option<String> {
    let left_out = found.curve.len().saturating_sub(rows);
    (left_out > 0).then(|| format!("{left_out} more trials are on the page and in --json"))
}

/// Points of a curve for a table: all, or the ends and those around the limit.
pub(crate) fn points(found: &Found, most: usize) -> Vec<&Point> {
    let mut points: Vec<&Point> = found.curve.iter().collect();
    let level = found.level.unwrap_or(0.0);
    while points.len() > most.max(3) {
        // the one that is nearest to its neighbours, and not the nearest to the limit on either side
        let is_kept = |index: usize| {
            let beside = |other: usize| (points[index].level > level) != (points[other].level > level);
            beside(index - 1) || beside(index + 1)
        };
        let gap = |index: usize| points[index + 1].level / points[index - 1].level.max(1e-9);
        let inner = (1..points.len() - 1).filter(|index| !is_kept(*index));
        match inner.min_by(|a, b| gap(*a).total_cmp(&gap(*b))) {
            Some(index) => drop(points.remove(index)),
            None => break,
        }
    }
    points
}

/// Whether a trial holds; a dash where it does not say.
pub(crate) fn sign(holds: Option<bool>) -> &'static str {
    match holds {
        Some(true) => "✓",
        Some(false) => "✗",
        None => "–",
    }
}

/// A time, or that it was not reached.
pub(crate) fn time(us: Option<u64>) -> String {
    us.map_or_else(|| "-".into(), |us| duration(us as f64))
}

#[cfg(test)]
pub(crate) mod tests {
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
            (found.users, found.level, found.low_level, found.high_level) =
                (true, Some(34.0), Some(33.0), None);
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
        let expected = "not measured: others on this machine disturbed 7 of 10 trials; the rest: holds 42,400/s (between";
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
        let value: Value = serde_json::from_str(&json(&searches, Path::new("x"))).unwrap();
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
        assert_eq!(
            found.knee_per_s, None,
            "the trial that holds the most has the most throughput for its time"
        );
        let found = Found { knee_per_s: Some(40_000.0), ..found };
        let remarked = remarks(&searches.searches[0], &found);
        assert_eq!(remarked[0], "the limit is the CPU: system uses 1.00 of 1 core");
        assert_eq!(remarked[1], "whether it lasts is not shown: no last trial held");
        let lasted = Found { lasted_per_s: Some(40_000.0), ..found.clone() };
        assert!(!remarks(&searches.searches[0], &lasted)[1].starts_with("whether"));
        assert!(
            remarked[2].starts_with("beyond about 40,000/s") && remarked[3] == "a <note>",
            "{remarked:?}"
        );
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
        let contradicts = |trials, left_out| Anomaly::Contradicts {
            broke: 50.0,
            after_s: 0.0,
            held: 400.0,
            trials,
            left_out,
        };
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
        let expected =
            "good answers of `GET /items` get smaller from 400/s on: 22 bytes each instead of 2,000";
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
        search.trials[1].not_counted =
            Some(NotCounted::Machine("the hypervisor took 1.00 of 2 cores".into()));
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
        assert!(
            lines[0].starts_with("used by others in the 7 disturbed trials: rustc 1.50 cores"),
            "{lines:?}"
        );
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
}
