//! How an experiment is to be carried out.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tidemark_drive::{IoChoice, Timestamps};
use tidemark_record::Sinks;

use crate::drivers::DriverKind;
use crate::drivers::fleet::FleetOptions;
use crate::pin::Pins;
use crate::shipped::{NoSystems, ShippedStores};
use crate::trace::TraceOptions;

/// How an experiment is carried out.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The run directory; a fresh one under `runs/` if none.
    pub out: Option<PathBuf>,
    /// Driving threads; see [`Pins`] for the number where none is given.
    pub threads: Option<usize>,
    /// Who drives.
    pub driver: DriverKind,
    /// Agents on other machines that drive in place of this process, if that is wanted.
    pub fleet: Option<Arc<FleetOptions>>,
    /// The driver's back end for sockets.
    pub io: IoChoice,
    /// Whether the driving threads never sleep.
    pub spin: bool,
    /// Until when response times count.
    pub timestamps: Timestamps,
    /// Cores for driver and system.
    pub pins: Pins,
    /// Seed of the random numbers; else the scenario's, else a random one.
    pub seed: Option<u64>,
    /// Whether the system's data stays after the run.
    pub keep_data: bool,
    /// The full command, for the manifest.
    pub command_line: Vec<String>,
    /// Drive the system at this URL instead of starting the scenario's.
    pub url: Option<String>,
    /// The git revision of the system, where it is not that of the folder that this runs in.
    pub revision: Option<String>,
    /// Which requests are kept as they were, and where, if that is wanted.
    pub trace: Option<TraceOptions>,
    /// Whether `last` becomes this run.
    pub remember: bool,
    /// The `tidemark` executable that serves shipped systems.
    pub executable: PathBuf,
    /// How the stores of shipped systems are read without them.
    pub shipped: &'static dyn ShippedStores,
    /// Called where the process must be ended while the run is still on its way out, after the second signal:
    /// a view that changed the terminal puts it right.
    pub before_exit: Option<fn()>,
    /// Told of all that happens, beside the run directory.
    pub sinks: Sinks,
    /// Whether it is one of several that say something together: a trial of a search, a round of a comparison. It may then have
    /// too few requests for a percentile, or never come to a rare step.
    pub is_part: bool,
    /// Of a list of requests that are sent in turn: a warning is due where the load ends before each was sent.
    pub listed: Option<Listed>,
    /// Whether what a script prints goes to standard error, as standard output is for machines.
    pub prints_to_stderr: bool,
    /// Once it is set the load ends before its time, because enough is known: the run is whole all the same.
    pub enough: Option<Arc<AtomicBool>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        RunOptions {
            out: None,
            threads: None,
            driver: DriverKind::default(),
            fleet: None,
            io: IoChoice::default(),
            spin: false,
            timestamps: Timestamps::default(),
            pins: Pins::default(),
            seed: None,
            keep_data: false,
            command_line: std::env::args().collect(),
            url: None,
            revision: None,
            trace: None,
            remember: true,
            executable: std::env::current_exe().unwrap_or_else(|_| "tidemark".into()),
            shipped: &NoSystems,
            before_exit: None,
            sinks: Sinks::default(),
            is_part: false,
            listed: None,
            prints_to_stderr: false,
            enough: None,
        }
    }
}

/// Requests of a list, which are sent in turn.
#[derive(Debug, Clone)]
pub struct Listed {
    /// How many there are.
    pub requests: u64,
    /// What sends all of them: `give -n 20 or more`.
    pub way_out: String,
}

impl Listed {
    /// That only so many are sent, or were; nothing where these are all.
    pub fn warning(&self, sent: u64, is_over: bool) -> Option<String> {
        let never = self.requests.checked_sub(sent).filter(|never| *never > 0)?;
        let verb = match (is_over, never) {
            (true, 1) => "was not",
            (true, _) => "were not",
            (false, 1) => "is not",
            (false, _) => "are not",
        };
        let (all, way_out) = (self.requests, &self.way_out);
        let when = if is_over { " in the measured window" } else { "" };
        Some(format!(
            "{never} of the {all} requests of the list {verb} sent{when}: no figure is about them; {way_out}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_are_not_sent_are_told() {
        let listed = Listed { requests: 20, way_out: "give -n 20 or more".into() };
        assert_eq!(
            listed.warning(5, true).unwrap(),
            "15 of the 20 requests of the list were not sent in the measured window: no figure is about them; give -n 20 or more"
        );
        assert!(
            listed.warning(19, false).unwrap().starts_with("1 of the 20 requests of the list is not sent: ")
        );
        assert_eq!([listed.warning(20, true), listed.warning(21, false)], [None, None]);
    }
}
