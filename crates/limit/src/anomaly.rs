//! Anomalies of a system: it stands still at regular times, slows down the longer it runs, or answers less under load.

use schemars::JsonSchema;
use serde::Serialize;

use crate::estimate::{Estimate, OVERLOADED_BELOW, contradicting, decided, lone};
use crate::search::counted;
use crate::trial::{Goal, Moment, NotCounted, Purpose, Trial};

/// Something that a reader of the limit must know.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Anomaly {
    /// It stands still at regular times.
    Pauses {
        /// From one to the next, seconds.
        every_s: f64,
        /// How long, about, seconds.
        length_s: f64,
        /// How many were seen.
        seen: usize,
    },
    /// It gets slower the longer it runs: of all pairs of trials the two that show it best.
    Slows {
        /// A level that held.
        held: f64,
        /// How long after the search began it did, seconds.
        held_after_s: f64,
        /// A level below it that broke later.
        broke: f64,
        /// How long after the search began it did, seconds.
        broke_after_s: f64,
    },
    /// It slows down: what it answers while it has too much falls the longer it runs.
    CapacityFalls {
        /// What it answered each second in the first such trials.
        from_per_s: f64,
        /// How long after the search began the first of them did, seconds.
        from_after_s: f64,
        /// What it answered in the last ones.
        to_per_s: f64,
        /// How long after the search began the last of them did, seconds.
        to_after_s: f64,
        /// How many trials show it.
        trials: usize,
    },
    /// Good answers of a label are smaller at more load.
    AnswersShrink {
        /// Which; empty where it is of all.
        label: String,
        /// Bytes of each at less load, mean.
        bytes: f64,
        /// Bytes of each in the highest trial.
        smaller_bytes: f64,
        /// The lowest rate at which they are smaller, in requests offered each second.
        from_per_s: f64,
    },
    /// It broke by far, and held at no less load: no load explains that.
    Contradicts {
        /// The lowest level that broke so.
        broke: f64,
        /// How long after the search began it did, seconds.
        after_s: f64,
        /// The highest level that held.
        held: f64,
        /// How many trials broke so.
        trials: usize,
        /// Whether it is left out of the limit: one by itself is, unless it is the last, longest one.
        left_out: bool,
    },
    /// What held for short did not hold for longer.
    DoesNotLast {
        /// For how long the last trial was measured, seconds.
        measured_s: f64,
        /// What was seen of it, for a person.
        measured: String,
        /// At which level, in sessions each second, or users.
        level: f64,
    },
    /// Trials were disturbed by somebody else on the machine.
    Disturbed {
        /// How many.
        trials: usize,
        /// By whom, the last time.
        by: String,
    },
}

/// All anomalies. `fresh`: whether each trial had a system that was started for it.
pub fn anomalies(goals: &[Goal], trials: &[Trial], estimate: Option<&Estimate>, fresh: bool) -> Vec<Anomaly> {
    let mut all = Vec::new();
    all.extend(pauses(goals, trials, fresh));
    if !fresh {
        let slows = || estimate.and_then(|estimate| slows(goals, trials, estimate));
        all.extend(capacity_falls(trials).or_else(slows));
    }
    all.extend(shrinks(&counted(trials)).map(|shrinks| {
        let Shrinks { label, bytes, smaller_bytes, from_per_s } = shrinks;
        Anomaly::AnswersShrink { label, bytes, smaller_bytes, from_per_s }
    }));
    all.extend(contradicts(goals, trials));
    let is_last = |trial: &&Trial| trial.ask.purpose == Purpose::Last && trial.is_counted();
    let lasts = trials.iter().filter(is_last).find(|last| last.verdict(goals) == Some(false));
    if let Some(last) = lasts {
        let missed = (0..goals.len()).filter(|index| last.missed(goals, *index));
        let mut remarks: Vec<String> = last.failure.iter().cloned().collect();
        remarks.extend(missed.map(|index| format!("{}: {}", goals[index].text, last.seen[index].measured)));
        remarks.extend(last.figures.drift.clone());
        let (measured_s, level) = (last.measured_s, last.ask.level);
        all.push(Anomaly::DoesNotLast { measured_s, measured: remarks.join("; "), level });
    }
    let mut by = trials.iter().filter_map(|trial| match &trial.not_counted {
        Some(NotCounted::Machine(by)) => Some(by),
        _ => None,
    });
    let (count, last) = (by.clone().count(), by.next_back());
    all.extend(last.map(|by| Anomaly::Disturbed { trials: count, by: by.clone() }));
    all
}

fn contradicts(goals: &[Goal], trials: &[Trial]) -> Option<Anomaly> {
    let decided = decided(goals, &counted(trials));
    let against = contradicting(goals, &decided);
    let lowest = against.iter().min_by(|a, b| a.ask.level.total_cmp(&b.ask.level))?;
    let held = decided.iter().filter(|trial| trial.holds()).map(|trial| trial.ask.level).fold(0.0, f64::max);
    let (broke, after_s) = (lowest.ask.level, lowest.began_s);
    let left_out = lone(&against).is_some();
    Some(Anomaly::Contradicts { broke, after_s, held, trials: against.len(), left_out })
}

/// How long a moment is, seconds.
const MOMENT_S: f64 = 1.0;
/// More periods are not tried.
const PERIODS: usize = 100_000;
/// More trials than so many are thinned out where all their pairs are looked at.
const COMPARED_MAX: usize = 300;
/// A moment with so many times the slow requests that may be is a burst.
const BURST: f64 = 5.0;
/// Shortest and longest time between pauses that are told apart from chance, seconds.
const EVERY_S: (f64, f64) = (4.0, 60.0);
/// Fewer pauses are not told.
const PAUSES: usize = 4;
/// How well their times agree, 0 to 1: the length of the mean of their phases (Rayleigh's test of a circular distribution).
const AGREE: f64 = 0.9;
/// So much of the bursts are at their times, and of the times have a burst.
const MATCH: f64 = 0.75;

/// A burst of slow requests.
#[derive(Debug, Clone, Copy)]
struct Burst {
    at_s: f64,
    slow: f64,
    per_s: f64,
}

fn pauses(goals: &[Goal], trials: &[Trial], fresh: bool) -> Option<Anomaly> {
    let percentile = goals.iter().find_map(|goal| goal.percentile)?;
    let bound_us = percentile.bound_s * 1e6;
    // an overloaded system is slow all the time
    let calm =
        trials.iter().filter(|trial| trial.figures.p50_us.is_some_and(|us| us as f64 * 2.0 < bound_us));
    let from = |trial: &Trial| if fresh { 0.0 } else { trial.began_s };
    let (mut all, mut windows) = (Vec::new(), Vec::new());
    for trial in calm {
        // where the load begins with a calm second the trial's times say nothing of when it was measured
        let (Some(first), Some(last)) = (trial.moments.first(), trial.moments.last()) else { continue };
        let half_s = MOMENT_S / 2.0;
        windows.push((from(trial) + first.at_s - half_s, from(trial) + last.at_s + half_s));
        all.extend(bursts(&trial.moments, from(trial), percentile.allowed));
    }
    if all.len() < PAUSES {
        return None;
    }
    let span_s = windows.iter().map(|window| window.1).fold(0.0, f64::max);
    let step = 0.1 / span_s.max(EVERY_S.1);
    let count = ((1.0 / EVERY_S.0 - 1.0 / EVERY_S.1) / step) as usize;
    let count = count.min(PERIODS);
    let tried = (0..=count).map(|i| 1.0 / EVERY_S.1 + step * i as f64);
    let regular = tried.filter_map(|per_s| regular(&all, &windows, per_s));
    let (every_s, ..) = regular.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let lengths: f64 = all.iter().map(|burst| burst.slow / burst.per_s.max(1e-9)).sum();
    Some(Anomaly::Pauses {
        every_s,
        length_s: lengths / all.len() as f64 + percentile.bound_s,
        seen: all.len(),
    })
}

/// The bursts of a trial; moments that follow each other are one.
fn bursts(moments: &[Moment], from_s: f64, allowed: f64) -> Vec<Burst> {
    let mut bursts: Vec<(Burst, f64)> = Vec::new();
    for moment in moments {
        let (ended, slow) = (moment.ended as f64, moment.slow as f64);
        if slow < 3.0 || slow < BURST * allowed * ended {
            continue;
        }
        let at_s = from_s + moment.at_s;
        match bursts.last_mut() {
            Some((burst, last_s)) if at_s - *last_s < 1.5 => {
                burst.at_s = (burst.at_s * burst.slow + at_s * slow) / (burst.slow + slow);
                burst.slow += slow;
                *last_s = at_s;
            }
            _ => bursts.push((Burst { at_s, slow, per_s: ended }, at_s)),
        }
    }
    bursts.into_iter().map(|(burst, _)| burst).collect()
}

/// The time between two, and how well the bursts fit it; none where they do not.
fn regular(bursts: &[Burst], windows: &[(f64, f64)], per_s: f64) -> Option<(f64, f64)> {
    let turn = |at_s: f64| std::f64::consts::TAU * at_s * per_s;
    let (mut x, mut y) = (0.0, 0.0);
    for burst in bursts {
        x += turn(burst.at_s).cos();
        y += turn(burst.at_s).sin();
    }
    let agree = x.hypot(y) / bursts.len() as f64;
    if agree < AGREE {
        return None;
    }
    let every_s = 1.0 / per_s;
    let first_s = (y.atan2(x) / std::f64::consts::TAU).rem_euclid(1.0) * every_s;
    // those near an edge may or may not be within it
    let margin_s = 0.5;
    let mut ticks = 0.0;
    for (from_s, to_s) in windows {
        let (from, to) = ((from_s + margin_s - first_s) / every_s, (to_s - margin_s - first_s) / every_s);
        ticks += (to.floor() - from.ceil() + 1.0).max(0.0);
    }
    let near = |burst: &&Burst| {
        let off = (burst.at_s - first_s).rem_euclid(every_s);
        off.min(every_s - off) < 1.0
    };
    let hits = bursts.iter().filter(near).count() as f64;
    let fits = ticks >= PAUSES as f64 && hits >= MATCH * ticks && hits >= MATCH * bursts.len() as f64;
    fits.then_some((every_s, agree * hits / ticks.max(bursts.len() as f64)))
}

/// Fewer trials tell no trend.
const TREND: usize = 8;
/// Orders of the trials that are tried out, and how many of them may be as striking as the real one: 2 %.
const ORDERS: usize = 999;
const AS_STRIKING: usize = 19;
/// A percentile that differs by less than this factor is the same.
const WORSE: f64 = 1.2;
/// Levels that differ by less than this factor are too near to be told.
const LOWER: f64 = 1.08;
/// Trials whose levels are within so much of the limit, in logarithms, are compared.
const COMPARED: f64 = 0.5;

/// How a trial fared.
#[derive(Debug, Clone, Copy)]
struct Fared {
    began_s: f64,
    level: f64,
    /// The higher, the worse.
    bad: f64,
    holds: bool,
}

/// Whether trials fared worse at less load the later they were. In a system that stays as it is there are about as many pairs
/// of trials of which the later is worse at less load as such of which the later is better at more; how far the difference
/// can be chance is seen from the same trials in other orders (a permutation test: Fisher, The Design of Experiments, 1935).
fn slows(goals: &[Goal], trials: &[Trial], estimate: &Estimate) -> Option<Anomaly> {
    let goal = estimate.goal?;
    let percentile = goals.get(goal)?.percentile;
    let near = trials
        .iter()
        .filter(|trial| trial.is_counted() && (trial.ask.level / estimate.level).ln().abs() < COMPARED);
    let fared = |trial: &Trial| {
        let seen = trial.seen.get(goal)?;
        let bad = match (percentile, &seen.tail) {
            (Some(percentile), Some(tail)) => tail.cumulative().quantile(percentile.allowed),
            _ => {
                if seen.met {
                    1.0
                } else {
                    2.0
                }
            }
        };
        Some(Fared { began_s: trial.began_s, level: trial.ask.level, bad, holds: trial.holds() })
    };
    let all: Vec<Fared> = near.filter_map(fared).collect();
    let mut all: Vec<Fared> = all.iter().step_by(all.len().div_ceil(COMPARED_MAX).max(1)).copied().collect();
    if all.len() < TREND {
        return None;
    }
    let striking = worsened(&all);
    let later =
        || all.iter().enumerate().flat_map(|(i, one)| all[i + 1..].iter().map(move |later| (one, later)));
    let contradicts = later().filter(|(one, later)| {
        one.holds && !later.holds && one.level >= later.level * LOWER && later.bad > one.bad * WORSE
    });
    let ratio = |pair: &(&Fared, &Fared)| pair.0.level / pair.1.level;
    let (one, later) = contradicts.max_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
    let slows = Anomaly::Slows {
        held: one.level,
        held_after_s: one.began_s,
        broke: later.level,
        broke_after_s: later.began_s,
    };
    let mut random = fastrand::Rng::with_seed(1);
    let as_striking = (0..ORDERS).filter(|_| {
        random.shuffle(&mut all);
        worsened(&all) >= striking
    });
    (striking > 0 && as_striking.count() <= AS_STRIKING).then_some(slows)
}

/// Fewer overloaded trials tell no trend of what they answered.
const OVERLOADED_MIN: usize = 5;
/// Those are compared whose levels differ by less than this factor: a system may answer less the more it is asked.
const ALIKE: f64 = 1.5;
/// Less than this is no fall that anybody minds, as a share.
const FALLS: f64 = 0.1;

/// Whether overloaded trials answered less the later they were: Kendall's test over the pairs at about the same level, with
/// the same trials in other orders for what chance does.
fn capacity_falls(trials: &[Trial]) -> Option<Anomaly> {
    let is_overloaded = |trial: &&Trial| {
        trial.is_counted() && !trial.holds() && trial.measured_s > 0.0 && {
            trial.figures.achieved_per_s > 0.0 && trial.answered_share() < OVERLOADED_BELOW
        }
    };
    let all: Vec<&Trial> = trials.iter().filter(is_overloaded).collect();
    let step = all.len().div_ceil(COMPARED_MAX).max(1);
    let all: Vec<&Trial> = all.into_iter().step_by(step).collect();
    if all.len() < OVERLOADED_MIN {
        return None;
    }
    let of: Vec<(f64, f64)> =
        all.iter().map(|trial| (trial.ask.level, trial.figures.achieved_per_s)).collect();
    let fell = |of: &[(f64, f64)]| {
        let mut sum = 0i64;
        for (index, one) in of.iter().enumerate() {
            for later in of[index + 1..].iter().filter(|later| (later.0 / one.0).ln().abs() < ALIKE.ln()) {
                sum += i64::from(later.1 < one.1) - i64::from(later.1 > one.1);
            }
        }
        sum
    };
    let striking = fell(&of);
    // a third at either end, so that no single trial decides by how much
    let third = (of.len() / 3).max(1);
    let mean = |of: &[(f64, f64)]| of.iter().map(|of| of.1).sum::<f64>() / of.len() as f64;
    let (from_per_s, to_per_s) = (mean(&of[..third]), mean(&of[of.len() - third..]));
    if striking <= 0 || to_per_s > from_per_s * (1.0 - FALLS) {
        return None;
    }
    let mut shuffled = of.clone();
    let mut random = fastrand::Rng::with_seed(1);
    let as_striking = (0..ORDERS).filter(|_| {
        random.shuffle(&mut shuffled);
        fell(&shuffled) >= striking
    });
    (as_striking.count() <= AS_STRIKING).then(|| Anomaly::CapacityFalls {
        from_per_s,
        from_after_s: all[0].began_s,
        to_per_s,
        to_after_s: all[all.len() - 1].began_s,
        trials: all.len(),
    })
}

/// Good answers that are smaller by this share, or by more, are other answers,
const SMALLER: f64 = 0.05;
/// as long as it is so many times what trials at less load differ by.
const SMALLER_BEYOND: f64 = 4.0;
/// So many trials are to show them.
const SHRUNK_MIN: usize = 2;
/// Fewer answers than this have no mean to speak of.
const ANSWERS_MIN: u64 = 20;

/// From which load on good answers are smaller.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shrinks {
    label: String,
    bytes: f64,
    smaller_bytes: f64,
    pub from_per_s: f64,
}

/// Whether good answers of a label are smaller in all trials from a level on than in all below it; of several labels the one
/// of which that begins at the lowest load.
pub(crate) fn shrinks(trials: &[&Trial]) -> Option<Shrinks> {
    let mut labels: Vec<&str> =
        trials.iter().flat_map(|trial| &trial.figures.answers).map(|of| of.label.as_str()).collect();
    labels.sort_unstable();
    labels.dedup();
    let of_labels = labels.into_iter().filter_map(|label| shrinks_of(label, trials));
    of_labels.min_by(|a, b| a.from_per_s.total_cmp(&b.from_per_s))
}

fn shrinks_of(label: &str, trials: &[&Trial]) -> Option<Shrinks> {
    let of = |trial: &&Trial| {
        let size = trial.figures.answers.iter().find(|of| of.label == label && of.answers >= ANSWERS_MIN)?;
        Some((trial.ask.level, trial.figures.offered_per_s, size.bytes))
    };
    let mut all: Vec<(f64, f64, f64)> = trials.iter().filter_map(of).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let split = |at: usize| {
        let (below, above) = all.split_at(at);
        let count = below.len() as f64;
        let bytes = below.iter().map(|of| of.2).sum::<f64>() / count;
        let squares = below.iter().map(|of| (of.2 - bytes).powi(2)).sum::<f64>();
        let deviation = (squares / (count - 1.0).max(1.0)).sqrt();
        let bound = (bytes * (1.0 - SMALLER)).min(bytes - SMALLER_BEYOND * deviation);
        let is_split = above.len() >= SHRUNK_MIN && above.iter().all(|of| of.2 < bound);
        let (from_per_s, smaller_bytes) = (above.first()?.1, above.last()?.2);
        is_split.then(|| Shrinks { label: label.to_owned(), bytes, smaller_bytes, from_per_s })
    };
    (1..all.len()).find_map(split)
}

/// Pairs of which the later is worse at no more load, less those of which it is better at no less.
fn worsened(trials: &[Fared]) -> i64 {
    let mut sum = 0;
    for (i, one) in trials.iter().enumerate() {
        for later in &trials[i + 1..] {
            sum += i64::from(later.level <= one.level && later.bad > one.bad * WORSE);
            sum -= i64::from(later.level >= one.level && later.bad * WORSE < one.bad);
        }
    }
    sum
}
