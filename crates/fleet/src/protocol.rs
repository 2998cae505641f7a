//! What coordinator and agents say to each other, and where.

use std::collections::BTreeSet;

use async_nats::jetstream::Context;
use serde::{Deserialize, Serialize};

use crate::presence::Presence;

/// What an agent is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Question {
    /// What its clock shows.
    Clock,
    /// To take part in a run.
    Take {
        /// The run.
        run: String,
        /// Which member of the run it is.
        member: usize,
        /// Whether others have its share when it is lost.
        rebalance: bool,
        /// The version of Tidemark that asks.
        version: String,
        /// The version of what it is to hand over.
        handover: u32,
    },
    /// Whether it drives for a run.
    Drives {
        /// The run.
        run: String,
    },
    /// To begin.
    Begin {
        /// The run.
        run: String,
        /// The run's zero by the agent's clock, microseconds.
        epoch_us: i64,
        /// When the load begins, microseconds since that.
        begin_us: u64,
    },
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// What its clock shows, microseconds.
    Clock(i64),
    /// It does.
    Yes,
    /// It does not.
    No(String),
}

/// What all agents of a run are told, again and again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Word {
    /// What they are to do.
    pub state: State,
    /// Members that count as gone: whoever finds itself among them ends at once.
    pub gone: BTreeSet<usize>,
    /// Who takes over what from those, in the order in which that was decided.
    #[serde(default)]
    pub taken: Vec<TakeOver>,
}

impl Word {
    /// A member counts as gone, and others take its threads over.
    pub(crate) fn give_up(&mut self, member: usize, taken: &[TakeOver]) {
        self.gone.insert(member);
        self.taken.extend_from_slice(taken);
    }
}

/// Threads of a member that is gone, as another one goes on with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeOver {
    /// Its number among all take-overs of the run, by which an agent knows it again.
    pub id: u64,
    /// Who takes them over.
    pub member: usize,
    /// The first of them: it takes the arrivals and users that this one had.
    pub first: usize,
    /// How many they are.
    pub threads: usize,
    /// The number that the first of them has from now on. No thread of the run had it before.
    pub number: usize,
    /// What is due from then on is theirs, microseconds since the run's zero.
    pub from_us: u64,
}

/// What agents are to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum State {
    /// To go on.
    Go,
    /// To end well.
    Stop,
    /// To end at once.
    Abort,
}

/// Names of what belongs to a run.
pub(crate) fn orders_of(run: &str) -> String {
    format!("tidemark.run.{run}.orders")
}

pub(crate) fn told_by(run: &str, member: &str) -> String {
    format!("tidemark.run.{run}.from.{member}")
}

pub(crate) fn stream_of(run: &str) -> String {
    format!("TIDEMARK-RUN-{run}")
}

pub(crate) fn files_of(run: &str) -> String {
    format!("tidemark-run-{run}")
}

/// Where an agent is asked, by its instance: one that had its name before is another.
pub(crate) fn asked_at(instance: &str) -> String {
    format!("tidemark.agent.{instance}")
}

/// That versions do not match.
pub(crate) fn versions(agent: &Presence, version: &str, handover: u32) -> String {
    format!(
        "it is Tidemark {} (hands over version {}), and the coordinator is {version} (version {handover}); give both the same",
        agent.version, agent.handover
    )
}

/// Removes what belongs to a run.
pub(crate) async fn remove(jetstream: &Context, run: &str) {
    // what is not there need not be removed
    let _ = jetstream.delete_stream(stream_of(run)).await;
    let _ = jetstream.delete_object_store(files_of(run)).await;
}
