//! Searches for the highest load at which a system's objectives hold, with an interval, and says what breaks first.
//!
//! Nothing here reads a clock or a socket. [`next`] says which [`Trial`] comes next; `lab` carries it out, and tells a
//! [`StoppingRule`] after each second what was seen until then. [`found()`] says what all of them come to.
//!
//! - [`next`]: doubling until an objective breaks, halving the distance, then rounds of trials around the limit in shuffled
//!   order, and a longer one at the end. What comes next follows from the trials that were carried out, and from nothing
//!   else, so that a search that was stopped goes on where it was.
//! - [`search()`]: that loop for trials in virtual time (tests, examples).
//! - [`StoppingRule`]: how long a trial has to be.
//! - [`estimate()`]: the limit and its interval; for a percentile by a regression that minds how requests depend on each
//!   other.
//! - [`Starvation`]: whether others had the cores that a trial wanted.
//! - [`found()`]: what breaks first, what the limit is, the curve, anomalies.
//! - [`Searches`]: all of it as it is kept.
//! - [`student`]: the distribution by which it is told how sure an interval is.
//!
//! It is a crate of its own, and on the lowest floor, because the lab carries searches out and the report shows them, and
//! neither knows the other; and so that it can be tested against theory alone.
//!
//! ```
//! use std::convert::Infallible;
//! use tidemark_limit::{
//!     Ending, Figures, Goal, GoalResult, Options, StoppingRule, Trial, TrialPlan, Trials, counted, estimate, search,
//! };
//!
//! /// A system that refuses what is above 730/s.
//! struct Refuses;
//!
//! impl Trials for Refuses {
//!     type Error = Infallible;
//!
//!     fn run(&mut self, ask: &TrialPlan, _rule: &StoppingRule) -> Result<Trial, Infallible> {
//!         let met = ask.level <= 730.0;
//!         let figures = Figures { offered_per_s: ask.level, ..Figures::default() };
//!         Ok(Trial::new(*ask, vec![GoalResult { met, ..GoalResult::default() }], figures))
//!     }
//! }
//!
//! let goals = [Goal { text: "errors < 0.1%".into(), is_of_errors: true, ..Goal::default() }];
//! let options = Options::new(10.0, 300.0);
//! let mut trials = Vec::new();
//! let Ok(ending) = search(&goals, &options, &mut trials, &mut Refuses);
//! let limit = estimate(&goals, &counted(&trials)).unwrap();
//! assert_eq!(ending, Ending::Precise);
//! assert!((700.0..760.0).contains(&limit.level));
//! ```

mod anomaly;
mod cause;
mod estimate;
mod fit;
mod found;
mod search;
mod searches;
mod starvation;
mod stopping_rule;
pub mod student;
mod tail;
mod trial;

pub use anomaly::Anomaly;
pub use cause::{Cause, Resources};
pub use estimate::{Estimate, estimate};
pub use found::{Found, Point, SearchVerdict, found};
pub use search::{Ending, Next, Options, Trials, counted, next, search, spent_s};
pub use searches::{Search, Searches};
pub use starvation::{OTHERS_MIN, Starvation, Starved, Wanted};
pub use stopping_rule::StoppingRule;
pub use tail::Tail;
pub use trial::{
    AnswerSize, Cores, Figures, Goal, GoalResult, Moment, NotCounted, Percentile, Purpose, Trial, TrialPlan,
};
