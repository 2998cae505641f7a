//! A search for a limit in words, and as JSON.
//!
//! The sentence of each is made here; [`blocks::limit`](crate::blocks::limit) makes a report of it.

mod json;

use tidemark_limit::{
    Anomaly, Cause, Cores, Ending, Found, Goal, GoalResult, NotCounted, Point, Search, Trial, counted,
};
use tidemark_record::SYSTEM;
use tidemark_record::summary::BOTTLENECK;

use crate::units::{budget, count, duration, more_than, percent, plural, three_digits, time, trim_zeros};
pub use json::{json, schema};

/// Others that use so many cores are told of where nobody knows whether they are the system.
const BUSY_CORES: f64 = 0.5;
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
        Some(_) if found.disturbed > 0 && found.counted == 0 => match found.disturbed {
            1 => "not measured: others on this machine disturbed the only trial".into(),
            all => format!("not measured: others on this machine disturbed all {all} trials"),
        },
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
                        format!("{breaks}; below that nothing could be told: {BOTTLENECK}{}", driver())
                    }
                    Some(_) => format!("{breaks}; below that nothing could be told"),
                    None => format!("{breaks}, and nothing has held yet"),
                }
            }
            _ => match found.ended {
                None => "no result yet: no trial that counts has finished".into(),
                Some(Ending::Driver) => {
                    format!("nothing could be told: {BOTTLENECK}{}", driver())
                }
                Some(_) => "no trial decided anything".into(),
            },
        },
        (Some(Ending::Driver), Some(held)) => {
            let breaks = found.high_per_s.filter(|_| first.is_some());
            let breaks =
                breaks.map_or_else(String::new, |per_s| format!("; {} breaks at {}/s", broke(), rate(per_s)));
            format!("holds at least {held}{breaks}; above that {BOTTLENECK}{}", driver())
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
    if users { plural(level.round() as u64, "user") } else { format!("{}/s", rate(level)) }
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
    let cores_of = |of: f64| plural(of.round() as u64, "core");
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
    let why = match found.is_last_undecided {
        true => "no last trial decided it, so that the exit status is 3; try again when the machine is quiet",
        false => "no last trial held",
    };
    (is_limit && found.lasted_per_s.is_none()).then(|| format!("whether it lasts is not shown: {why}"))
}

/// What others used while they disturbed trials, by name.
fn neighbours(found: &Found) -> Option<String> {
    let of = found.neighbours.iter().map(|of| format!("{} {:.2} cores", of.name, of.cores));
    let of: Vec<String> = of.collect();
    (!of.is_empty()).then(|| {
        let trials = if found.disturbed == 1 { "trial" } else { "trials" };
        format!(
            "used by others in the {} disturbed {trials}: {}; --watch what belongs to the system, end the rest, or --pin the load generator and the system to cores of their own",
            found.disturbed,
            of.join(", ")
        )
    })
}

/// A line for each trial that is not plural, with its level and why: those first, and how many more there are.
fn not_counted(search: &Search) -> Vec<String> {
    let counted = counted(&search.trials);
    let line = |(index, trial): (usize, &Trial)| {
        let why = match trial.not_counted.as_ref().filter(|_| !is_among(&counted, trial))? {
            NotCounted::Driver(why) => format!("{BOTTLENECK}{why}"),
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
    let more = more_than(lines.len(), NOT_COUNTED_MAX);
    lines.truncate(NOT_COUNTED_MAX);
    lines.extend(more.map(|more| format!("and {more} more; all trials are on the page and in --json")));
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

/// How many trials there were and how long they took: `21 trials in 174s; --budget 3m leaves no time for another; …`.
pub(crate) fn took(search: &Search, found: &Found) -> String {
    let trials = plural(search.trials.len() as u64, "trial");
    let why = match found.ended {
        Some(Ending::Budget) => {
            let has_interval = found.low_level.is_some() && found.high_level.is_some();
            let more = if has_interval { "narrows the interval" } else { "tries more" };
            format!(
                "; --budget {} leaves no time for another; a longer one {more}",
                budget(search.options.budget_s)
            )
        }
        Some(Ending::Disturbed) => "; others kept using the machine: try again when it is quiet".into(),
        Some(Ending::Undecided) => "; more trials of this length would say no more".into(),
        None => ", not finished".into(),
        _ => String::new(),
    };
    format!("{trials} in {}{why}", duration(found.took_s.max(0.0) * 1e6))
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
    more_than(found.curve.len(), rows).map(|more| format!("{more} more trials are on the page and in --json"))
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

#[cfg(test)]
pub(crate) mod tests;
