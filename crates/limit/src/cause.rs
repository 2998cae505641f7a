//! What was the limit, as far as it can be seen from outside.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::estimate::Estimate;
use crate::trial::{Cores, Trial};

/// What the system has at its disposal.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Resources {
    /// Cores that it may use; 0 where nobody knows.
    pub cores: f64,
    /// Most requests that the driver has under way at once: its connections, times how many each carries.
    #[serde(rename = "at_once")]
    pub in_flight_max: u64,
    /// Median time of a sync of the system's disk, microseconds, where answers wait for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync_us: Option<u64>,
    /// Whether each trial had a system that was started for it.
    pub fresh: bool,
}

/// What the limit is.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Cause {
    /// All cores that a process may use.
    Cpu {
        /// Which.
        process: String,
        /// What it used.
        cores: f64,
        /// Of so many.
        of: f64,
    },
    /// A process uses as much as one thread can, of more cores.
    OneThread {
        /// Which.
        process: String,
        /// What it used.
        cores: f64,
        /// Of so many.
        of: f64,
    },
    /// All of the driver's connections are taken, and a request takes no longer once it has one.
    Connections {
        /// How many requests they carry at once.
        #[serde(rename = "at_once")]
        in_flight_max: u64,
        /// Of the response time, the part that was spent waiting for one, 0 to 1.
        waited_share: f64,
    },
    /// Answers wait for the disk.
    Disk {
        /// Median time of a sync, microseconds.
        sync_us: u64,
    },
    /// Nothing that is seen from outside: the system waits for something within it, or behind it.
    Within {
        /// What the system used of the cores.
        cores: f64,
        /// Of so many; 0 where nobody knows.
        of: f64,
    },
    /// Nobody watches the CPU of the system.
    Unknown,
}

/// A process with this part of its cores has none left.
const FULL: f64 = 0.85;
/// A thread uses this much of a core, measured,
const THREAD: (f64, f64) = (0.85, 1.1);
/// or so much, where it was on one or waited for one for nearly all of the time.
const THREAD_WAITED: f64 = 0.75;
const THREAD_WANTED: (f64, f64) = (0.95, 1.1);
/// Connections are the limit where requests spend this part of their time waiting for one,
const WAITED: f64 = 0.5;
/// and take no more than so many times as long as in an idle system once they have it.
const LONGER: f64 = 1.5;
/// The disk is where an idle system's answer takes this part of its time to sync.
const SYNCED: f64 = 0.6;

/// The trial that shows best what the limit is: the one that broke closest above it, or the highest there is.
pub fn at_the_limit<'a>(trials: &[&'a Trial], estimate: Option<&Estimate>) -> Option<&'a Trial> {
    let above = |trial: &&&Trial| {
        estimate.is_some_and(|estimate| !trial.holds() && trial.ask.level >= estimate.level)
    };
    let by_level = |a: &&&Trial, b: &&&Trial| a.ask.level.total_cmp(&b.ask.level);
    trials.iter().filter(above).min_by(by_level).or_else(|| trials.iter().max_by(by_level)).copied()
}

/// None where nothing was measured.
pub fn cause(trials: &[&Trial], estimate: Option<&Estimate>, resources: &Resources) -> Option<Cause> {
    let full = at_the_limit(trials, estimate)?;
    let holding = trials.iter().filter(|trial| trial.holds());
    let idle = holding.min_by(|a, b| a.ask.level.total_cmp(&b.ask.level)).copied();
    let figures = &full.figures;
    if let Some(connections) = connections(full, idle, resources) {
        return Some(connections);
    }
    let of = resources.cores;
    let busiest = figures.processes.iter().max_by(|a, b| a.cores.total_cmp(&b.cores));
    if let Some(Cores { name, cores, waited }) = busiest {
        let process = name.clone();
        if of > 0.0 && *cores >= FULL * of {
            return Some(Cause::Cpu { process, cores: *cores, of });
        }
        let wanted = cores + waited.unwrap_or(0.0);
        let is_never_idle = *cores >= THREAD_WAITED && (THREAD_WANTED.0..THREAD_WANTED.1).contains(&wanted);
        if (THREAD.0..THREAD.1).contains(cores) || is_never_idle {
            return Some(Cause::OneThread { process, cores: *cores, of });
        }
    }
    let all: f64 = figures.processes.iter().map(|process| process.cores).sum();
    if of > 0.0 && all >= FULL * of {
        return Some(Cause::Cpu { process: "all together".into(), cores: all, of });
    }
    let idle_us = idle.and_then(|idle| idle.figures.p50_us);
    if let Some((sync_us, idle_us)) = resources.sync_us.zip(idle_us)
        && sync_us as f64 >= SYNCED * idle_us as f64
    {
        return Some(Cause::Disk { sync_us });
    }
    Some(if figures.processes.is_empty() { Cause::Unknown } else { Cause::Within { cores: all, of } })
}

fn connections(full: &Trial, idle: Option<&Trial>, resources: &Resources) -> Option<Cause> {
    let (response_us, service_us) = (full.figures.mean_us?, full.figures.service_mean_us?);
    let idle_us = idle.and_then(|idle| idle.figures.service_mean_us).unwrap_or(service_us);
    let waited_share = 1.0 - service_us / response_us.max(1e-9);
    let taken =
        full.figures.in_flight >= FULL * resources.in_flight_max as f64 && full.figures.waiting >= 1.0;
    (taken && waited_share >= WAITED && service_us <= LONGER * idle_us)
        .then_some(Cause::Connections { in_flight_max: resources.in_flight_max, waited_share })
}
