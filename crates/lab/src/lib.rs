//! Carries an experiment out: starts stores and the system, waits for their health, loads data, drives, watches every
//! process, and stops everything on every way out.
//!
//! [`run`] does it all for a [plan](tidemark_scenario::Plan) and leaves a run directory. What it stands on is useful
//! alone: a [child process](child) that never outlives its reason, the seam by which what was [started] is broken on
//! purpose, the [monitor] that reads `/proc`, the
//! disk's [sync] latency. `tidemark_verdict` judges the run.
//!
//! ```no_run
//! use tidemark_lab::{Progress, RunOptions};
//! # fn plan() -> tidemark_scenario::Plan { unimplemented!() }
//!
//! let options = RunOptions { out: Some("runs/first".into()), ..RunOptions::default() };
//! let finished = tidemark_lab::run(plan(), options, &mut |progress| {
//!     if let Progress::Phase { name, .. } = progress {
//!         eprintln!("{name}");
//!     }
//! })?;
//! println!("{:?}", finished.manifest.summary.verdict);
//! std::process::exit(finished.exit_status().into());
//! # #[allow(unreachable_code)]
//! # Ok::<(), tidemark_lab::LabError>(())
//! ```
//!
//! # What holds
//!
//! - Who drives is behind a trait ([drivers]): threads of this process, or a process of its own, which hands the same
//!   intervals over as bytes.
//! - An experiment goes through stages with types (`experiment`): prepared, started, driven, verified. What is dropped
//!   stops what it started. Processes that left their group are found and frozen or killed too ([child]).
//! - What is broken on purpose is put right ([faults]): a thread for each target, one seam ([started]) for systems and
//!   nodes; a frozen process is continued before it is stopped, and killed if the lab is. What is only watched and
//!   stands still goes on even then.
//! - A store is asked beside the load, never in its way (`figures`): a thread and a connection for each server, each
//!   answer bounded in time; what a product is asked is one module, by the scheme of its URLs.
//! - What a run only watches is looked at by threads of their own (`watch`): processes, pages and agents.
//! - Lateness is how late requests left and how late answers were read, by the kernel's receive timestamps
//!   (`tidemark_verdict`, `driver.rs`).
//! - A recipe for reading back is the plan's `verify` with everything filled in (addresses, tables, headers), and a
//!   file that later versions read ([verify]); its tests have servers that lose, double, change and die.
//! - A durable figure names its durability and stands next to the disk's own sync latency, measured in the same run
//!   ([sync]).
//! - A proxy is between only where somebody says so (`proxy`): a target's address is then its own.
//! - Rounds of a comparison are symmetric, and their order is drawn (`compare::in_rounds`).

mod account;
pub mod agent;
pub mod child;
mod compare;
mod descendants;
mod disk;
pub mod drivers;
mod error;
mod exchange;
mod experiment;
pub mod faults;
mod figures;
mod finished;
mod groups;
mod hooks;
mod http;
pub mod interrupt;
mod limit;
mod link;
mod load_text;
mod machine;
pub mod masked;
mod message_types;
pub mod monitor;
mod neighbours;
mod operations;
mod own;
pub mod page_server;
mod pin;
mod proc;
mod process;
mod products;
mod progress;
mod proxy;
pub mod revisions;
mod run_options;
mod scheduling;
mod script;
mod secret;
mod served;
pub mod shipped;
pub mod sinks;
mod slowest;
pub mod started;
mod stop_signal;
pub mod stores;
pub mod sync;
pub mod system;
mod target;
pub mod tier;
mod timetable;
mod trace;
pub mod up;
pub mod verify;
mod watch;

pub use compare::{Bounds, CompareOutcome, Looked, Turn, compare, compare_in_rounds};
pub use error::LabError;
#[cfg(feature = "fleet")]
pub use experiment::resume;
pub use experiment::{Once, once, run};
pub use finished::Finished;
pub use interrupt::StopRequest;
pub use limit::{LimitOptions, LimitOutcome, Member, TrialStart, limit};
pub use message_types::message_types;
pub use pin::{Pins, available_cores, cores_text};
pub use progress::Progress;
pub use run_options::{Listed, RunOptions};
pub use script::{EndedScript, Said, check_scripts};
pub use tidemark_drive::{IoChoice, LOGGED_BYTES, LoggedAnswer, LoggedStep, Timestamps, text_of};
pub use trace::TraceOptions;

/// Exit status: every objective was met.
pub const EXIT_PASS: u8 = 0;
/// Exit status: an objective was missed, something was lost, or nobody answered at all.
pub const EXIT_FAIL: u8 = 1;
/// Exit status: wrong use, or input that cannot be read.
pub const EXIT_USAGE: u8 = 2;
/// Exit status: no measurement that can be trusted.
pub const EXIT_INVALID: u8 = 3;
/// Exit status: stopped by the user.
pub const EXIT_INTERRUPTED: u8 = 130;

/// The exit status of two parts together: of several runs, or several searches.
///
/// What is proven comes before what is not known, as `fail` comes before `invalid` in one run: a part that failed is a
/// finding, whatever could not be measured beside it, and measuring that again does not undo it. That the user stopped it
/// comes before both, as it explains what is missing.
pub fn worse(a: u8, b: u8) -> u8 {
    let order = [EXIT_PASS, EXIT_INVALID, EXIT_FAIL, EXIT_USAGE, EXIT_INTERRUPTED];
    let rank = |status: u8| order.iter().position(|known| *known == status).unwrap_or(order.len());
    if rank(b) > rank(a) { b } else { a }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_comes_before_what_was_not_measured() {
        let all = |statuses: &[u8]| statuses.iter().copied().reduce(worse).unwrap();
        assert_eq!(all(&[EXIT_PASS, EXIT_INVALID, EXIT_FAIL, EXIT_PASS]), EXIT_FAIL);
        assert_eq!(all(&[EXIT_FAIL, EXIT_INVALID]), EXIT_FAIL);
        assert_eq!(all(&[EXIT_PASS, EXIT_INVALID, EXIT_PASS]), EXIT_INVALID);
        assert_eq!(all(&[EXIT_FAIL, EXIT_INTERRUPTED, EXIT_INVALID]), EXIT_INTERRUPTED);
        assert_eq!(all(&[EXIT_PASS, EXIT_PASS]), EXIT_PASS);
    }
}
