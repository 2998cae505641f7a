//! What is broken on purpose, and when.

use std::fmt;
use std::time::Duration;

use super::System;
use crate::units::{Share, Size, Time};

/// The pause of a roll after an instance is back, so that a balancer sees it before the next one goes: nginx counts in
/// whole seconds.
pub const ROLL_PAUSE: Duration = Duration::from_millis(2_500);

/// Something that the lab breaks while the load is on.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// When, from the beginning of the measured window.
    pub at: Duration,
    /// Which share of that window this is, where the scenario says it so; it then moves with the window's length.
    pub share: Option<f64>,
    /// What: `system`, or a store that the lab started.
    pub target: String,
    /// How.
    pub kind: FaultKind,
    /// After what time it is undone; none where it is not.
    pub lasts: Option<Duration>,
}

/// How something is broken.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FaultKind {
    /// Killed (SIGKILL), with its children, and started again.
    Kill,
    /// Asked to end (SIGTERM), and started again.
    Stop,
    /// Stopped where it stands (SIGSTOP), and let go on.
    Freeze,
    /// The link between it and its clients made slow: the driver for the system, the system for a store.
    Slow {
        /// Added each way.
        latency: Duration,
        /// Bytes each second, in each direction of a connection.
        bandwidth: Option<u64>,
    },
    /// Its connections reset, and new ones, too.
    Cut {
        /// Of new connections; where it is not all, those that there are stay.
        share: f64,
    },
    /// Its disk, a small one of its own, filled to the last byte.
    Fill {
        /// Size of that disk.
        disk_bytes: u64,
    },
    /// Nothing is broken: a store is asked to rewrite its append-only file.
    Rewrite,
    /// Nothing is broken: a store is asked for a snapshot.
    Snapshot,
    /// Nothing is broken: the instances of a service are replaced, one after another.
    Roll,
    /// Nothing is broken: instances of a service are added or taken away.
    Scale {
        /// How many there are afterwards.
        instances: usize,
    },
}

impl FaultKind {
    /// The word that scenarios use.
    pub fn word(self) -> &'static str {
        match self {
            FaultKind::Kill => "kill",
            FaultKind::Stop => "stop",
            FaultKind::Freeze => "freeze",
            FaultKind::Slow { .. } => "slow",
            FaultKind::Cut { .. } => "cut",
            FaultKind::Fill { .. } => "fill",
            FaultKind::Rewrite => "rewrite",
            FaultKind::Snapshot => "snapshot",
            FaultKind::Roll => "roll",
            FaultKind::Scale { .. } => "scale",
        }
    }

    /// Whether it is about the link between its target and that one's clients, which then goes through the lab's own
    /// proxy.
    pub fn is_of_link(self) -> bool {
        matches!(self, FaultKind::Slow { .. } | FaultKind::Cut { .. })
    }

    /// Size of the disk of its own that the target gets for it.
    pub fn disk_bytes(self) -> Option<u64> {
        match self {
            FaultKind::Fill { disk_bytes } => Some(disk_bytes),
            _ => None,
        }
    }

    /// Whether it breaks nothing; then nothing is excused.
    pub fn is_maintenance(self) -> bool {
        self.asks_a_store() || self.is_of_instances()
    }

    /// Whether it asks a store for what that does by itself at other times.
    pub fn asks_a_store(self) -> bool {
        matches!(self, FaultKind::Rewrite | FaultKind::Snapshot)
    }

    /// Whether it replaces, adds or takes away instances of a service.
    pub fn is_of_instances(self) -> bool {
        matches!(self, FaultKind::Roll | FaultKind::Scale { .. })
    }

    /// Whether its target's processes end by it.
    pub fn ends_processes(self) -> bool {
        matches!(self, FaultKind::Kill | FaultKind::Stop)
    }
}

impl Fault {
    /// Whether the two would be about the same processes at the same time.
    pub(crate) fn overlaps(&self, other: &Fault) -> bool {
        let until = |fault: &Fault| fault.until().unwrap_or(Duration::MAX);
        self.is_about(&other.target) && self.at < until(other) && other.at < until(self)
    }

    /// When it is undone, from the beginning of the measured window. Maintenance takes as long as it takes, and may
    /// overlap with everything.
    pub fn until(&self) -> Option<Duration> {
        if self.kind.is_maintenance() {
            return Some(self.at);
        }
        self.lasts.map(|lasts| self.at + lasts)
    }

    /// The least time in which the instances of one of these are replaced, where that is what it does.
    pub fn roll_takes_at_least<'s>(
        &self,
        mut services: impl Iterator<Item = &'s System>,
    ) -> Option<Duration> {
        let rolls = self.kind == FaultKind::Roll;
        let service = services.find(|service| rolls && service.tier.name == self.target)?;
        let pauses = service.tier.instances.saturating_sub(1);
        Some(ROLL_PAUSE.saturating_mul(u32::try_from(pauses).unwrap_or(u32::MAX)))
    }

    /// Whether two are about the same processes: `cassandra.2` is one of `cassandra`.
    pub fn is_about(&self, other: &str) -> bool {
        let within =
            |part: &str, whole: &str| part.strip_prefix(whole).is_some_and(|rest| rest.starts_with('.'));
        self.target == other || within(&self.target, other) || within(other, &self.target)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.word(), self.target)?;
        match self.kind {
            FaultKind::Slow { latency, bandwidth } => {
                if !latency.is_zero() {
                    write!(f, " by {}", Time(latency))?;
                }
                if let Some(bytes) = bandwidth {
                    write!(f, " to {}/s", Size(bytes))?;
                }
            }
            FaultKind::Scale { instances } => write!(f, " to {instances}")?,
            FaultKind::Cut { share } if share < 1.0 => write!(f, ", {} of new connections,", Share(share))?,
            _ => {}
        }
        match self.lasts {
            Some(lasts) if self.kind.ends_processes() => write!(f, ", restart after {}", Time(lasts)),
            Some(lasts) => write!(f, " for {}", Time(lasts)),
            None => Ok(()),
        }
    }
}
