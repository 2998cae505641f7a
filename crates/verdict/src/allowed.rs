//! How many requests may fail.

use tidemark_scenario::Plan;
use tidemark_scenario::plan::{About, Comparison, Metric, Objective};

use crate::objectives::DEFAULT_ERROR_SHARE;

/// How many requests may fail by the objectives on errors of the whole run; by default where there is none.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Allowed {
    /// Of all, 0 to 1.
    share: Option<f64>,
    /// So many.
    count: Option<f64>,
    /// The objective that says so.
    pub text: String,
}

impl Allowed {
    pub fn of(plan: &Plan) -> Allowed {
        let mut allowed =
            Allowed { share: None, count: None, text: crate::objectives::DEFAULT_ERRORS.into() };
        for objective in plan.objectives.iter().filter(|of| of.about == About::All && bounds_errors(of)) {
            let bound =
                if objective.metric == Metric::Errors { &mut allowed.count } else { &mut allowed.share };
            if bound.is_none_or(|before| objective.bound < before) {
                *bound = Some(objective.bound);
                allowed.text.clone_from(&objective.text);
            }
        }
        if allowed.share.is_none() && allowed.count.is_none() {
            allowed.share = Some(DEFAULT_ERROR_SHARE);
        }
        allowed
    }

    /// How many of so many may fail. A count holds for any part of the run.
    pub fn of_due(&self, due: f64) -> f64 {
        let by_share = self.share.map_or(f64::INFINITY, |share| share * due);
        by_share.min(self.count.unwrap_or(f64::INFINITY))
    }

    /// Whether so large a share, or so many, are more than may fail.
    pub fn is_exceeded(&self, share: f64, count: u64) -> bool {
        let by_share = self.share.is_some_and(|most| share > most);
        by_share || self.count.is_some_and(|most| count as f64 > most)
    }
}

/// Whether it says how many errors there may be at most.
pub(super) fn bounds_errors(objective: &Objective) -> bool {
    matches!(objective.metric, Metric::Errors | Metric::ErrorShare)
        && !matches!(objective.comparison, Comparison::Greater | Comparison::GreaterOrEqual)
}
