//! What a run is worth: what was measured in, verdict out. No I/O, no clock.
//!
//! [`judge`] takes the [`Evidence`] of a run and gives its [`Judgement`]: the verdict, the same without the ledger, and each
//! objective with what was measured. [`silence`] finds the times in which the system, or a part of it, answered nothing.
//! [`mod@unreachable`] says while a run goes on which objectives can no longer be met. [`steady`] tests for a trend.
//!
//! ```
//! use std::path::Path;
//! use tidemark_record::summary::Status;
//! use tidemark_record::{Totals, summarize};
//! use tidemark_verdict::{Evidence, judge};
//!
//! let text = "sessions: {a: {steps: [{GET: /}]}}\nload: {users: 1, hold: 10s}\n";
//! let plan = tidemark_scenario::load_text("a.yaml", text, Path::new("."), &[])?;
//! let totals = Totals::new(&plan.labels); // of which nothing was counted
//! let summary = summarize(&totals, Path::new("runs/one"));
//! let verdict = judge(&Evidence::of(&plan, &totals, &summary)).verdict;
//! assert_eq!(verdict.status, Status::Invalid);
//! assert_eq!(verdict.reasons[0], "nothing measured: no request was due in the measured window of 0.0s");
//! # Ok::<(), tidemark_scenario::Diagnostics>(())
//! ```
//!
//! # The rule
//!
//! Every objective is decided twice: by what was measured, and by the same with the driver's own share taken out
//! (`figure::Both`). Where both say the same that is the answer, whatever the driver did. Where they differ there is
//! none, and the run is `invalid: driver-bound`, with the objective and both values.
//!
//! | status | when |
//! | --- | --- |
//! | `fail` | an objective is missed either way; the system, or a store, ended or stopped answering by itself; or for one of the other reasons in docs/verdict.md |
//! | `invalid` | else, where an objective is not decided, as of too few requests or of a window shorter than its answers; where a step was never reached; or whose fault a silence is, as of the driver or of a machine without cores; nothing was due in the measured window for another reason; a fault that was asked for could not be carried out, or not be put right within the load; or, whatever failed, the file of a body became shorter |
//! | `pass` | else |
//!
//! But for that file, `fail` comes first: a driver that was late can slow an answer, but it cannot make a server refuse a connection.
//!
//! # What nobody asked for
//!
//! Where the scenario has no objective on the matter, a run is judged by [`defaults`]: `errors < 0.1%`, and for an open
//! load `achieved > 99% of offered`. They are shown as any other. Where faults are asked for, what is felt of them does
//! not count for these two, if anything else was measured; objectives that somebody wrote are about all of it.
//!
//! # The ledger
//!
//! What was lost is held against the store only after the load ([`ledger`]). It adds reasons and takes none away, so that
//! [`ledger::judge`] can judge a run once more when it is verified later.

mod allowed;
mod chance;
mod connections;
mod custom;
mod driver;
mod few;
mod figure;
mod findings;
mod judge;
mod labels;
pub mod ledger;
mod machine;
mod objectives;
mod parts;
mod phase;
mod reach;
pub mod silence;
pub mod steady;
#[doc(hidden)]
pub mod test_plan;
mod text;
pub mod unreachable;
mod users;
mod warnings;
mod window;

use tidemark_record::manifest::ObjectiveResult;
use tidemark_record::summary::{Ledger, Summary, Verdict};
use tidemark_record::{NotFound, Totals};
use tidemark_scenario::Plan;

use crate::silence::Outage;
use crate::unreachable::Unreachable;

pub use custom::{custom_metrics, ratios};
pub use driver::driver_limits;
pub use judge::judge;
pub use labels::{labels_of_failures, labels_of_the_load};
pub use objectives::{defaults, has_a_rate, judges_errors};
pub use parts::{Named, judged_by_silence};
pub use text::duration_text;
pub use warnings::{backlog_before, warnings};

/// What a run is judged by.
pub struct Evidence<'a> {
    /// What was asked for.
    pub plan: &'a Plan,
    /// What was counted.
    pub totals: &'a Totals,
    /// The same in few numbers, with what [limited the driver](driver_limits).
    pub summary: &'a Summary,
    /// What was counted while no fault was felt, where there are faults.
    pub undisturbed: Option<&'a Totals>,
    /// How the system ended, if it did so by itself.
    pub system_ended: Option<&'a str>,
    /// How it, or a part of it, stopped answering, as far as the driver heard.
    pub outages: &'a [Outage],
    /// What no answer had though steps extract it.
    pub not_found: &'a [NotFound],
    /// Whether the driving threads never sleep.
    pub spin: bool,
    /// Cores that what the run started may use.
    pub cores: usize,
    /// Whether it is one of several that say something together: a trial of a search, a round. Alone it may have too few
    /// requests then, or too little time to come to every step.
    pub is_part: bool,
    /// The objective that could no longer be met, where the load was cut short for it.
    pub cut_short: Option<&'a Unreachable>,
    /// Whether the user stopped it.
    pub stopped: bool,
    /// Seconds of driving threads that are in no figure, as they could not be written in time.
    pub lost_intervals: u64,
    /// Why a driver broke off in the middle, where one did.
    pub broke_off: Option<&'a str>,
    /// Agents of a fleet that were lost, whose share others took over; and how many requests of the measured window were due at
    /// them before that. Such a run is no pass.
    pub taken_over: Option<(&'a str, u64)>,
    /// That another coordinator of a fleet went on with the run, where one did. Such a run is no pass.
    pub resumed: Option<&'a str>,
    /// Driving threads that a script stopped, and when the first ended, microseconds since the run began.
    pub script_stopped: Option<(usize, u64)>,
    /// Why a script of the scenario failed, where one did.
    pub script_failed: Option<&'a str>,
    /// What became of a script's own thresholds, which it has measured itself.
    pub thresholds: &'a [ObjectiveResult],
    /// Whether these judge a run in which nothing was due.
    pub judges_without_requests: bool,
    /// What the ledger came to, where there is one.
    pub ledger: Option<&'a Ledger>,
}

impl<'a> Evidence<'a> {
    /// What was counted, and nothing else that could be said against it: no fault, no silence, no ledger, on two cores.
    pub fn of(plan: &'a Plan, totals: &'a Totals, summary: &'a Summary) -> Evidence<'a> {
        Evidence {
            plan,
            totals,
            summary,
            undisturbed: None,
            system_ended: None,
            outages: &[],
            not_found: &[],
            spin: false,
            cores: 2,
            is_part: false,
            cut_short: None,
            stopped: false,
            lost_intervals: 0,
            broke_off: None,
            taken_over: None,
            resumed: None,
            script_stopped: None,
            script_failed: None,
            thresholds: &[],
            judges_without_requests: false,
            ledger: None,
        }
    }
}

/// What a run is worth.
#[derive(Debug, Clone)]
pub struct Judgement {
    /// The verdict.
    pub verdict: Verdict,
    /// The same without what the ledger came to.
    pub without_ledger: Verdict,
    /// Every objective with what was measured; those that nobody wrote last.
    pub objectives: Vec<ObjectiveResult>,
}

#[cfg(test)]
mod tests;
