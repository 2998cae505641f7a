//! How sessions come: load models, phases, and the shape of the level within a phase.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::grammar::kinds::words;

/// Most phases of a load: each has its own figures.
pub const PHASES_MAX: usize = 200;

/// How sessions come.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Load {
    /// Open or closed.
    pub model: LoadModel,
    /// One after the other. Where kinds have loads of their own: the common timetable, without levels.
    pub phases: Vec<Phase>,
    /// Where kinds of sessions have loads of their own: those, all beginning together; `model` and the levels of
    /// `phases` say nothing then. Empty where all kinds come from one load, each by its weight.
    pub kinds: Vec<KindLoad>,
}

/// The load of one kind of session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KindLoad {
    /// Index of the kind.
    pub kind: usize,
    /// Open or closed.
    pub model: LoadModel,
    /// One after the other, from the begin of the whole load.
    pub phases: Vec<Phase>,
}

/// One source of sessions: all that a load model needs to know.
#[derive(Debug, Clone, Copy)]
pub struct Stream<'a> {
    /// The kind of its sessions; drawn by weight if none.
    pub kind: Option<usize>,
    /// Open or closed.
    pub model: LoadModel,
    /// One after the other.
    pub phases: &'a [Phase],
}

impl Load {
    /// One load for all kinds of sessions.
    pub fn new(model: LoadModel, phases: Vec<Phase>) -> Self {
        Load { model, phases, kinds: Vec::new() }
    }

    /// The sources of sessions: one for each kind that has a load of its own, or one for all.
    pub fn streams(&self) -> Vec<Stream<'_>> {
        if self.kinds.is_empty() {
            return vec![Stream { kind: None, model: self.model, phases: &self.phases }];
        }
        self.kinds
            .iter()
            .map(|one| Stream { kind: Some(one.kind), model: one.model, phases: &one.phases })
            .collect()
    }

    /// The highest number of users, over all kinds; 0 if all of them arrive at a rate.
    pub fn most_users(&self) -> usize {
        self.streams().iter().map(Stream::most_users).sum()
    }
}

impl Stream<'_> {
    /// The highest level of all phases.
    pub fn peak(&self) -> f64 {
        self.phases.iter().map(Phase::peak).fold(0.0, f64::max)
    }

    /// The highest number of users; 0 if its sessions arrive at a rate.
    pub fn most_users(&self) -> usize {
        if self.model.is_closed() { self.peak().ceil().max(0.0) as usize } else { 0 }
    }
}

/// Who decides when a session begins.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum LoadModel {
    /// A fixed number of users; each begins its next session when its last has ended.
    Closed,
    /// The same, with a pause between a user's sessions.
    Thinking(Pause),
    /// A fixed number of users, each of whom begins a session every so often. Where one takes longer, the next
    /// begins at once, and was due when it should have begun.
    Paced(Duration),
    /// Sessions arrive at a rate, whatever the system does.
    Open(Spacing),
}

impl LoadModel {
    /// Whether there are users who wait for the end of one session before they begin the next.
    pub fn is_closed(self) -> bool {
        !matches!(self, LoadModel::Open(_))
    }
}

words! {
    /// The time between arrivals.
    #[derive(Serialize, Deserialize)]
    pub enum Spacing {
        /// Always the same.
        Constant = "constant",
        /// Exponentially distributed, as from many independent people.
        Poisson = "poisson",
    }
}

/// The time between two sessions of a user.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Pause {
    /// Always the same.
    Fixed(Duration),
    /// Any time from the first to the second, all alike.
    Between(Duration, Duration),
    /// Exponentially distributed with this mean.
    Exponential(Duration),
}

/// A stretch of the load.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Phase {
    /// Its name, which no other phase of the load has: `warm-up`, `ramp`, `hold`, the author's, or made from its level.
    pub name: String,
    /// How long.
    pub duration: Duration,
    /// Users (closed) or arriving sessions per second (open) at its begin.
    pub from: f64,
    /// The same at its end; in between as the curve says.
    pub to: f64,
    /// Whether it belongs to the measured window. Measured phases are adjacent.
    pub measured: bool,
    /// What the level does in between.
    pub curve: Curve,
}

/// What the level does within a phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Curve {
    /// It changes evenly from `from` to `to`.
    Line,
    /// So many equal stretches, each at one level: the first at `from`, the last at `to`, the others evenly between.
    Steps(u32),
    /// It swings around `from`, which is also `to`: at its mean and rising at the phase's begin.
    Sine {
        /// How far it swings to either side; at most the mean.
        amplitude: f64,
        /// Length of one swing.
        period: Duration,
    },
    /// It changes evenly from `from` to `to`, but jumps to another level at the end of every period.
    Spikes {
        /// The level of a spike.
        level: f64,
        /// From the end of one spike to the end of the next.
        every: Duration,
        /// Length of a spike; shorter than the period.
        length: Duration,
    },
    /// It follows given levels; `from` is the first and `to` the last.
    Series(#[serde(with = "in_arc")] Arc<Series>),
}

/// A shared value as the value.
mod in_arc {
    use super::{Arc, Deserialize, Serialize, Series};

    pub fn serialize<S: serde::Serializer>(series: &Arc<Series>, to: S) -> Result<S::Ok, S::Error> {
        series.as_ref().serialize(to)
    }

    pub fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Arc<Series>, D::Error> {
        Series::deserialize(from).map(Arc::new)
    }
}

/// Levels at moments, counted from the begin of their phase.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Series {
    /// Seconds and level; the first at 0, the seconds ascending. Never empty.
    pub points: Vec<(f64, f64)>,
    /// Whether the level changes evenly between two points; else it stays until the next.
    pub between: bool,
    /// Seconds that it covers. After the last point its level stays.
    pub length_s: f64,
}

impl Phase {
    /// The highest level.
    pub fn peak(&self) -> f64 {
        let ends = self.from.max(self.to);
        match &self.curve {
            Curve::Line | Curve::Steps(_) => ends,
            Curve::Sine { amplitude, .. } => self.from + amplitude,
            Curve::Spikes { level, .. } => ends.max(*level),
            Curve::Series(series) => series.points.iter().map(|(_, level)| *level).fold(0.0, f64::max),
        }
    }

    /// Multiplies the level.
    pub fn scale(&mut self, factor: f64) {
        self.from *= factor;
        self.to *= factor;
        match &mut self.curve {
            Curve::Line | Curve::Steps(_) => {}
            Curve::Sine { amplitude, .. } => *amplitude *= factor,
            Curve::Spikes { level, .. } => *level *= factor,
            Curve::Series(series) => {
                Arc::make_mut(series).points.iter_mut().for_each(|(_, level)| *level *= factor);
            }
        }
    }
}
