//! Who is there, and how far their clocks are ahead.

use std::collections::BTreeSet;

use async_nats::Client;
use async_nats::jetstream::Context;
use futures_util::StreamExt as _;
use futures_util::future::join_all;

use super::ANSWER_WITHIN;
use crate::clock::{Clock, Offset, Round, offset};
use crate::error::FleetError;
use crate::presence::{Presence, bucket};
use crate::protocol::{Answer, Question, asked_at};
use crate::server::{Nats, Server, ask};

/// How often a clock is asked: of a few dozen ways there and back one is short.
const ROUNDS: usize = 40;

/// An agent that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedAgent {
    /// What it says of itself.
    pub presence: Presence,
    /// How far its clock is ahead; none where it did not answer.
    pub offset: Option<Offset>,
}

/// Who is there, by name.
///
/// # Errors
/// If NATS cannot be reached.
pub fn look(server: &Server) -> Result<Vec<ListedAgent>, FleetError> {
    let nats = Nats::connect(server, "tidemark fleet")?;
    let clock = Clock::start();
    nats.wait(async {
        let agents = present(&nats.jetstream).await?;
        let offsets = agents.iter().map(|agent| measured(&nats.client, &clock, &agent.instance));
        let offsets = join_all(offsets).await;
        Ok(agents
            .into_iter()
            .zip(offsets)
            .map(|(presence, offset)| ListedAgent { presence, offset })
            .collect())
    })
}

pub(super) async fn present(jetstream: &Context) -> Result<Vec<Presence>, FleetError> {
    let failed = |error: &dyn std::fmt::Display| FleetError::nats("its key-value store", error);
    let store = bucket(jetstream).await?;
    let mut names = store.keys().await.map_err(|error| failed(&error))?;
    let mut agents = Vec::new();
    let mut seen = BTreeSet::new();
    // a server that is old may not say which is the last of them: then all came before the first that comes again
    while let Ok(Some(name)) = tokio::time::timeout(ANSWER_WITHIN, names.next()).await {
        let name = name.map_err(|error| failed(&error))?;
        if !seen.insert(name.clone()) {
            break;
        }
        // one that has just gone
        let Some(entry) = store.get(name).await.map_err(|error| failed(&error))? else { continue };
        agents.extend(serde_json::from_slice::<Presence>(&entry));
    }
    agents.sort_by(|a: &Presence, b| a.name.cmp(&b.name));
    Ok(agents)
}

pub(super) async fn measured(client: &Client, clock: &Clock, instance: &str) -> Option<Offset> {
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let sent_us = clock.now_us();
        match ask(client, asked_at(instance), &Question::Clock, ANSWER_WITHIN).await {
            Ok(Answer::Clock(there_us)) => {
                rounds.push(Round { sent_us, there_us, received_us: clock.now_us() });
            }
            _ => break,
        }
    }
    offset(&rounds)
}
