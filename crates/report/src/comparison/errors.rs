//! How many requests have no good answer: a share, which may be 0 and then has no ratio, so that what differs is told in
//! percentage points.

use schemars::JsonSchema;
use serde::Serialize;

use super::claims::{SideRun, letter};
use super::measured::{Basis, Pair};
use crate::statistics::{Estimate, Interval};
use crate::units::percent;

/// A difference of less than this share of the requests is none worth a word, however sure it is.
pub(super) const FLOOR: f64 = 1e-3;

/// Where both bounds are nearer to 0 than this, it is said that there is no difference: as for ratios, five times the floor.
const CLOSE: f64 = 5.0 * FLOOR;

/// Of the requests that were due to one side and to the first, those without a good answer.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Errors {
    /// The side: `B`.
    pub side: String,
    /// The side that it is held against: `A`.
    pub to: String,
    /// Its share of requests without a good answer, 0 to 1, of all its runs that count.
    pub share: f64,
    /// That of the side that it is held against.
    pub share_to: f64,
    /// Lower bound of how much larger the share of the side is, -1 to 1; null where that cannot be told, and where no
    /// request failed and no rule is about it.
    pub low: Option<f64>,
    /// Upper bound.
    pub high: Option<f64>,
    /// Whether there is a difference; null where nothing is claimed.
    pub difference: Option<bool>,
}

impl Errors {
    /// What two sides came to, before it is corrected for how many figures there are; with the estimate of by how much the
    /// share of the side is larger, in place of a logarithm.
    pub(crate) fn of(index: usize, pair: &Pair<'_>) -> (Errors, Option<Estimate>) {
        let all = pair.runs.each_ref().map(|runs| Counted::of(runs.iter().copied()));
        let estimate = match &pair.basis {
            Basis::Rounds(numbers) => {
                let share = |side: usize, number: u64| {
                    let runs = pair.runs[side].iter().copied();
                    Counted::of(runs.filter(|run| run.round == Some(number))).share()
                };
                let each: Vec<f64> =
                    numbers.iter().map(|number| share(0, *number) - share(1, *number)).collect();
                Estimate::of_rounds(&each)
            }
            Basis::Runs => {
                let shares = |side: usize| -> Vec<f64> {
                    pair.runs[side].iter().map(|run| run.manifest.summary.failed_share()).collect()
                };
                Estimate::of_runs(&shares(0), &shares(1))
            }
            // what differs from run to run is not known
            Basis::Seconds(_) | Basis::Nothing => None,
        };
        let estimate = estimate.map(|of| Estimate { error: of.error.max(by_chance(all)), ..of });
        let errors = Errors {
            side: letter(index),
            to: letter(0),
            share: all[0].share(),
            share_to: all[1].share(),
            low: None,
            high: None,
            difference: None,
        };
        (errors, estimate)
    }

    /// Whether a request of either side failed.
    pub(crate) fn are_any(&self) -> bool {
        self.share > 0.0 || self.share_to > 0.0
    }

    /// With the interval of its estimate.
    pub(crate) fn with(mut self, interval: Option<Interval>) -> Errors {
        if let Some(interval) = interval {
            let (low, high) = (interval.low.ln(), interval.high.ln());
            (self.low, self.high) = (Some(low), Some(high));
            self.difference = Some((low > 0.0 || high < 0.0) && interval.ratio.ln().abs() >= FLOOR);
        }
        self
    }

    /// Whether a difference is claimed.
    pub fn differs(&self) -> bool {
        self.difference == Some(true)
    }

    /// Whether the side fails more for sure.
    pub fn is_worse(&self) -> bool {
        self.differs() && self.low > Some(0.0)
    }

    /// What a table says of it: the share of the side that it is held against, its own, by how many percentage points that
    /// is larger, and a word; none where no request failed.
    pub(crate) fn row(&self) -> Option<[String; 4]> {
        if !self.are_any() {
            return None;
        }
        let bounds = self.low.zip(self.high);
        let word = match self.difference {
            Some(true) if self.is_worse() => "worse",
            Some(true) => "better",
            Some(false) if bounds.is_some_and(|(low, high)| high.max(-low) <= CLOSE) => "no difference",
            Some(false) => "too noisy",
            None => "",
        };
        let points = self.range().map_or_else(|| "-".into(), |range| format!("{range} points"));
        Some([percent(self.share_to), percent(self.share), points, word.into()])
    }

    /// `+0.32 to +0.68`, in percentage points.
    pub(super) fn range(&self) -> Option<String> {
        self.low.zip(self.high).map(|(low, high)| format!("{} to {}", points(low), points(high)))
    }

    /// `B fails 0.83% of its requests, A none`.
    pub(crate) fn says(&self) -> String {
        let [share, share_to] = [self.share, self.share_to].map(|of| match of > 0.0 {
            true => percent(of),
            false => "none".into(),
        });
        format!("{} fails {share} of its requests, {} {share_to}", self.side, self.to)
    }
}

/// A difference of shares in percentage points: `+0.61`.
fn points(share: f64) -> String {
    match share * 100.0 {
        points if points.abs() < 0.005 => "0".into(),
        points => format!("{points:+.2}"),
    }
}

/// Requests that were due, and those of them without a good answer.
#[derive(Clone, Copy)]
struct Counted {
    failed: u64,
    due: u64,
}

impl Counted {
    fn of<'r>(runs: impl Iterator<Item = &'r SideRun>) -> Counted {
        let summaries = runs.map(|run| &run.manifest.summary);
        summaries.fold(Counted { failed: 0, due: 0 }, |sum, of| Counted {
            failed: sum.failed + of.failed,
            due: sum.due + of.due(),
        })
    }

    fn share(self) -> f64 {
        self.failed as f64 / self.due.max(1) as f64
    }
}

/// The standard error of a difference of shares if requests failed by chance alone. Few failures may be as many in each round
/// and are no surer for that. One failure more than there were, so that of few requests without any nothing is sure.
fn by_chance(sides: [Counted; 2]) -> f64 {
    let [failed, due] = [sides.map(|of| of.failed), sides.map(|of| of.due)].map(|of| of[0] + of[1]);
    let share = (failed + 1) as f64 / (due + 2) as f64;
    let each = sides.map(|of| 1.0 / of.due.max(1) as f64);
    (share * (1.0 - share) * (each[0] + each[1])).sqrt()
}
