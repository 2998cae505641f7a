//! Runs that failed whatever their figures are: writes were lost, the system ended by itself, it stopped answering. None of
//! that is in a response time, a rate or a share of errors, so that a comparison of those alone would not say it.

use std::cmp::Ordering;

use schemars::JsonSchema;
use serde::Serialize;
use tidemark_record::summary::Status;
use tidemark_record::{Manifest, Reason, ReasonKind};

use super::claims::{Side, letter};
use crate::units::plural;

/// Figures that objectives name, besides percentiles, and that are compared. Of what was dropped the share of errors tells.
const COMPARED: [&str; 7] = ["mean", "median", "max", "errors", "rate", "achieved", "dropped"];
/// What stands before the end of a log, or before that it is empty: where it is differs from run to run.
const LOG: [&str; 2] = ["; the end of its log ", "; its log "];

/// In how many of its runs a side failed, whatever its figures are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Broken {
    /// The side: `B`.
    pub side: String,
    /// In how many of its runs.
    pub runs: usize,
    /// How many it has.
    pub of: usize,
    /// Why, in the first of them: `lost = 0 missed: 3501`.
    pub reason: String,
}

impl Broken {
    /// The sides that failed so in a run.
    pub(crate) fn of(sides: &[Side]) -> Vec<Broken> {
        let of_side = |(index, side): (usize, &Side)| {
            let mut reasons = side.runs.iter().filter_map(|run| reason(&run.manifest));
            let reason = reasons.next()?;
            Some(Broken { side: letter(index), runs: 1 + reasons.count(), of: side.runs.len(), reason })
        };
        sides.iter().enumerate().filter_map(of_side).collect()
    }

    /// `B failed in 8 of 8 runs, A in none: the system ended by itself: exit status 3 after 1.6s`.
    pub(crate) fn says(&self, other: &str, of_other: Option<&Broken>) -> String {
        let in_other = of_other.map_or_else(|| "none".to_owned(), Broken::count);
        format!("{} failed in {}, {other} in {in_other}: {}", self.side, self.count(), self.reason)
    }

    fn count(&self) -> String {
        format!("{} of {}", self.runs, plural(self.of as u64, "run"))
    }
}

/// Which of two sides failed in the larger share of its runs; one that is not there failed in none.
pub(crate) fn by_share(one: Option<&Broken>, other: Option<&Broken>) -> Ordering {
    let share = |of: Option<&Broken>| of.map_or((0, 1), |of| (of.runs, of.of));
    let ((runs, of), (other_runs, of_other)) = (share(one), share(other));
    (runs * of_other).cmp(&(other_runs * of))
}

/// That a side failed as often as the first: no difference, and to be known all the same.
pub(crate) fn notes(broken: &[Broken]) -> Vec<String> {
    let Some((first, others)) = broken.split_first() else { return Vec::new() };
    if first.side != letter(0) {
        return Vec::new();
    }
    let as_often = others.iter().filter(|other| by_share(Some(*other), Some(first)).is_eq());
    as_often.map(|other| other.says(&first.side, Some(first))).collect()
}

/// Why a run failed beside its figures, in a line; none where it did not.
fn reason(manifest: &Manifest) -> Option<String> {
    let verdict = &manifest.summary.verdict;
    if verdict.status != Status::Fail {
        return None;
    }
    let counts = |reason: &&Reason| !reason.kind().is_of_measurement() && !is_compared(manifest, reason);
    let reason = verdict.reasons.iter().find(counts)?;
    let line = reason.lines().next().unwrap_or_default();
    let end = LOG.iter().filter_map(|log| line.find(*log)).min().unwrap_or(line.len());
    Some(line[..end].trim_end_matches(':').to_owned())
}

/// Whether a reason is about something that the comparison has figures of.
fn is_compared(manifest: &Manifest, reason: &Reason) -> bool {
    match reason.kind() {
        // requests that failed are in the share of errors, and in the percentiles of their label
        ReasonKind::AllFailed => true,
        ReasonKind::Missed | ReasonKind::OutOfReach => {
            reason.objective().is_some_and(|objective| is_of_compared(manifest, objective))
        }
        _ => false,
    }
}

/// Whether an objective bounds a time, a rate or errors: `p99 < 50ms`, `Checkout errors = 0`. Not one of the ledger (`lost`,
/// `duplicated`), nor of a metric of the scenario's own.
fn is_of_compared(manifest: &Manifest, objective: &str) -> bool {
    let left = objective.split(['<', '>', '=']).next().unwrap_or_default().trim();
    let (about, figure) = left.rsplit_once(char::is_whitespace).unwrap_or(("", left));
    let is_own = manifest.metrics.iter().any(|metric| metric.name == about.trim());
    let is_percentile =
        figure.strip_prefix('p').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    !is_own && (is_percentile || COMPARED.contains(&figure))
}
