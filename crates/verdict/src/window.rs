//! A measured window that is shorter than the answers take says little.

use tidemark_record::{Achieved, Outcome, Totals};

use crate::text::duration_text;

/// A window is to be so many times as long as the fastest answers take: then its second half shows whether they pile up.
const TIMES: f64 = 3.0;
/// A trend shows in no less, seconds.
const LEAST_TREND_S: f64 = 10.0;
/// Where the last step answers so many times later than the fastest answers take, there are several.
const SEVERAL_STEPS: f64 = 1.05;
/// Where more than this share of the good answers came behind the window, that is told.
const BEHIND_TOLD: f64 = 0.2;
/// Where so many times as many came behind it as are under way at any time, the others waited.
const BACKLOG: f64 = 2.0;

/// That it is too short, and what to do.
pub(super) fn is_too_short(measured_s: f64, answers_s: f64) -> String {
    format!(
        "the measured window of {} is too short beside answers that take {}; {}",
        duration_text(measured_s * 1e6),
        duration_text(answers_s * 1e6),
        longer(answers_s)
    )
}

/// The same of sessions, of which not all steps answer by then.
pub(super) fn is_too_short_for(achieved: &Achieved, measured_s: f64) -> String {
    let Achieved { fastest_s, steady_s, .. } = *achieved;
    if steady_s < fastest_s * SEVERAL_STEPS {
        return is_too_short(measured_s, steady_s);
    }
    format!(
        "the measured window of {} is too short beside sessions whose last step answers after {}; {}",
        duration_text(measured_s * 1e6),
        duration_text(steady_s * 1e6),
        longer(steady_s)
    )
}

/// Requests piled up by so few that it may be chance, and by too many if it is none.
pub(super) fn shows_no_trend(achieved: &Achieved, measured_s: f64) -> String {
    if achieved.load_changes {
        let told = "more requests waited than the change of the load explains, which may be chance; measure each level by itself";
        return told.into();
    }
    format!(
        "more and more requests waited, which the measured window of {} is too short to tell from chance; measure for at least \
         {:.0}s",
        duration_text(measured_s * 1e6),
        (2.0 * measured_s).max(LEAST_TREND_S).ceil()
    )
}

fn longer(answers_s: f64) -> String {
    format!("measure for at least {:.0}s", least_s(answers_s))
}

fn least_s(answers_s: f64) -> f64 {
    // histograms tell times a little too long
    (TIMES * answers_s - 0.1).ceil()
}

/// Whether nothing that was due could have been answered in it, as even the fastest good answers took longer.
pub(super) fn is_shorter_than_answers(totals: &Totals) -> bool {
    let Some(window) = totals.window else { return false };
    let good = totals.all.measured[Outcome::Ok as usize];
    good > 0 && good == totals.all.good_after_window && totals.achieved().fastest_s >= window.length_s()
}

/// That much of what was due in the window was answered behind it: the rate is of what came within it, and so is lower.
pub(super) fn answered_behind(totals: &Totals) -> Option<String> {
    let window = totals.window?;
    let good = totals.all.measured[Outcome::Ok as usize];
    let share = totals.all.good_after_window as f64 / good.max(1) as f64;
    let answers_s = totals.all.service_time_us.mean() / 1e6;
    let answers = format!("answers take {} on average", duration_text(answers_s * 1e6));
    let why = match least_s(answers_s) > window.length_s() {
        true => format!("`achieved` counts them; {answers}, so {}", longer(answers_s)),
        // more than were under way at its end
        false if share * window.length_s() > BACKLOG * answers_s => {
            format!(
                "`achieved` only those of no backlog; {answers}, so requests piled up before they were sent"
            )
        }
        false => format!("`achieved` counts them; {answers}"),
    };
    (share > BEHIND_TOLD).then(|| {
        format!(
            "{:.0}% of the good answers came after the measured window of {}: `rate` leaves them out, {why}",
            share * 100.0,
            duration_text(window.length_s() * 1e6)
        )
    })
}
