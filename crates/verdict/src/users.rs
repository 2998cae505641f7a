//! What users lost: they ask no more while they wait, so that a share of requests hides who waits for ever.
//!
//! Time counts instead: all users, for as long as the window was, and the part of it that went into requests which
//! failed, were cut off by the run's end, or were open for the whole window. Who thinks loses nothing, nor does who waits
//! for what a server tells by itself.

use tidemark_record::LostTime;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Curve, Phase};

use crate::allowed::Allowed;
use crate::figure::Measured;
use crate::objectives::judges_errors;
use crate::text::significant;
use crate::{parts, window};

/// Users may lose as much of their time as arrivals may be short of what was offered.
const LOST_MAX: f64 = 0.01;
/// Less than this, all users together, may be chance, seconds.
const LEAST_S: f64 = 1.0;

/// What is said of the time that users lost.
pub(super) enum Lost {
    /// It is the system's.
    Failed(String),
    /// It may be the driver's, which was held up.
    MaybeDriver(String),
    /// The window is shorter than the answers take.
    ShortWindow(String),
}

/// What users lost, where that is more than may be.
pub(super) fn lost(plan: &Plan, of: &Measured<'_>) -> Option<Lost> {
    let measured_s = of.totals.window?.length_s();
    let (users, planned_s) = users(plan);
    // who stopped a load before its time had its users for a part of it
    let users_s = users * (measured_s / planned_s).min(1.0);
    let lost = of.totals.lost_time;
    if users_s <= 0.0 {
        return None;
    }
    if !is_too_much(plan, &lost, users_s) {
        return unanswered(plan, of);
    }
    let achieved = of.totals.achieved();
    if achieved.fastest_s >= measured_s {
        return Some(Lost::ShortWindow(window::is_too_short(measured_s, achieved.fastest_s)));
    }
    // what is answered well, but takes longer than the window
    let (answered, answers_s) = of.totals.outlasting();
    let answered = answered.min(lost.stuck);
    let answered_us = (answered as f64 * measured_s * 1e6) as u64;
    let rest = LostTime {
        waited_us: lost.waited_us.saturating_sub(answered_us),
        stuck_us: lost.stuck_us.saturating_sub(answered_us),
        stuck: lost.stuck - answered,
        ..lost
    };
    if answered > 0 && !is_too_much(plan, &rest, users_s) {
        return Some(Lost::ShortWindow(window::is_too_short(measured_s, answers_s)));
    }
    let share = |us: u64| format!("{}%", significant((us as f64 / 1e4 / users_s).min(100.0)));
    let mut reason = format!(
        "users waited in vain: {} of their time in the window went into requests that failed, were cut off, or were open \
         for all of it",
        share(lost.all_us())
    );
    if lost.stuck > 0 {
        let users = (users / planned_s).round().max(lost.stuck as f64);
        reason += &format!(
            "; {} of {users:.0} users waited for an answer when it ended, for half of it or longer",
            lost.stuck
        );
    }
    let by_itself = LostTime { waited_us: 0, stuck_us: 0, stuck: 0, ..lost };
    Some(match of.limited && !is_too_much(plan, &by_itself, users_s) {
        true => Lost::MaybeDriver(reason),
        false => Lost::Failed(reason),
    })
}

/// What is little of all users may be all of one kind.
fn unanswered(plan: &Plan, of: &Measured<'_>) -> Option<Lost> {
    let labels = parts::unanswered(plan, of.totals);
    if labels.is_empty() {
        return None;
    }
    let told = format!(
        "users waited in vain: {} had no good answer, though users waited for one all through the window",
        labels.join(", ")
    );
    Some(if of.limited { Lost::MaybeDriver(told) } else { Lost::Failed(told) })
}

/// Whether users lost more than may be. Where somebody allows more errors, requests that end are judged by how many they
/// are; but who is stuck makes no more of them.
fn is_too_much(plan: &Plan, lost: &LostTime, users_s: f64) -> bool {
    let share = |us: u64| us as f64 / 1e6 / users_s;
    let stuck = Allowed::of(plan).is_exceeded(share(lost.stuck_us), lost.stuck);
    let lost_s = lost.all_us() as f64 / 1e6;
    lost_s >= LEAST_S && (stuck || (judges_errors(plan) && share(lost.all_us()) > LOST_MAX))
}

/// Seconds of users within the measured phases as planned, and how long these are.
fn users(plan: &Plan) -> (f64, f64) {
    let streams = plan.load.streams();
    let seconds = |phases: &[Phase], of: &dyn Fn(&Phase) -> f64| -> f64 {
        let measured = phases.iter().filter(|phase| phase.measured);
        measured.map(|phase| of(phase) * phase.duration.as_secs_f64()).sum()
    };
    let closed = streams.iter().filter(|stream| stream.model.is_closed());
    let users_s = closed.map(|stream| seconds(stream.phases, &level)).sum();
    let length_s = streams.iter().map(|stream| seconds(stream.phases, &|_| 1.0)).fold(0.0, f64::max);
    (users_s, length_s.max(f64::MIN_POSITIVE))
}

fn level(phase: &Phase) -> f64 {
    match phase.curve {
        Curve::Line | Curve::Steps(_) => (phase.from + phase.to) / 2.0,
        _ => phase.peak(),
    }
}
