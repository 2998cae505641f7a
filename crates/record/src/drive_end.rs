//! How a drive ended, and what is known of it only then.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ledger::Part;
use crate::{Counters, SlowRequest};

/// When a phase was, in microseconds since the run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTimes {
    /// Its name.
    pub name: String,
    /// Begin.
    pub start_us: u64,
    /// End; for the phase in which the drive was stopped or ran out of sessions, when that was: what was under way then had
    /// its end later.
    pub end_us: u64,
    /// Whether it belongs to the measured window.
    pub measured: bool,
}

/// An extraction that found nothing, where the scenario does not say that this may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotFound {
    /// The label of its request.
    pub label: String,
    /// The variable that was left without a value.
    pub variable: String,
    /// In how many answers that were good otherwise.
    pub answers: u64,
    /// In how many it found something.
    pub found: u64,
}

/// What bounds the number of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Bound {
    /// The limit of open files.
    OpenFiles,
    /// The local ports, which each connection to the same address needs one of.
    Ports,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Bound::OpenFiles => {
                "the limit of open files (`ulimit -n` raises it, beyond the hard limit only for root)"
            }
            Bound::Ports => {
                "the range of local ports (`sysctl -w net.ipv4.ip_local_port_range='1024 65535'` widens it)"
            }
        })
    }
}

/// Why there are more connections than a scenario allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Raised {
    /// Each thread has whole connections for its share of the users.
    Users,
    /// Each thread has equally many to each of so many servers.
    Servers(usize),
}

/// How a drive ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveEnd {
    /// The phases that came to pass.
    pub phases: Vec<PhaseTimes>,
    /// When the last thread ended, microseconds since the run began.
    pub ended_us: u64,
    /// Why a script could not go on, where one could not: that ended the drive.
    pub script_failed: Option<String>,
    /// Driving threads that a script stopped, and when the first ended, microseconds since the run began.
    pub script_stopped: Option<(usize, u64)>,
    /// Whether it was stopped before its time.
    pub interrupted: bool,
    /// When it was, microseconds since the run began: the measured window ends there at the latest. None where nothing more was
    /// to become due, or where it was aborted.
    pub stopped_us: Option<u64>,
    /// Intervals that nobody took in time; figures lack them.
    pub lost_intervals: u64,
    /// What was counted over the whole drive and went with no interval.
    pub counters: Counters,
    /// What belongs into the ledger and went with no interval.
    pub untaken: Vec<Part>,
    /// Version and cipher suite of the first TLS handshake.
    pub tls: Option<String>,
    /// The slowest requests that were answered: of each label the first few of each thread.
    pub slowest: Vec<SlowRequest>,
    /// Extractions that found nothing.
    pub not_found: Vec<NotFound>,
    /// Redirects that were followed, by label.
    pub hops: Vec<(String, u64)>,
    /// Good answers that were redirects which nobody follows and no check is about, by label.
    pub unfollowed: Vec<(String, u64)>,
    /// The name of the back end for sockets that was used.
    pub io: String,
    /// Connections that there was room for, where that is fewer than the scenario allows, and what bounded them.
    pub connections_capped_to: Option<(usize, Bound)>,
    /// Users, and the requests of theirs that have room at once, where that is fewer because the server takes fewer on a
    /// connection than the scenario wants.
    pub places: Option<(usize, usize)>,
    /// Connections that were allowed, where that is more than the scenario allows, and why.
    pub connections_raised_to: Option<(usize, Raised)>,
    /// Connections that were made before they were needed, as the scenario names their number.
    pub connections_ahead: Option<usize>,
}
