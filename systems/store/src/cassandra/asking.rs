//! The nodes are asked what time it is, again and again, and a mark is kept of how far times were given.
//!
//! The mark is a row whose own time of writing is its value, so that the greatest stays, whoever writes it in whatever order.
//! An intake gives times only up to a mark that it has written; one that begins, or hears that a node's clock was set, reads it
//! and gives times behind it.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use scylla::cluster::NodeRef;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::unprepared::Statement;

use super::clock::{Clock, Nodes, Reading, UNCERTAINTY_MAX_US};
use super::kept::KeptLink;
use super::link::Link;
use crate::error::StoreError;

/// How often they are asked.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How many questions each is asked then: a node counts milliseconds only, and several answers tell more than one.
const QUESTIONS: usize = 4;
/// The same before the first write.
const QUESTIONS_FIRST: usize = 32;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How long the mark may take to be written or read.
const MARK_TIMEOUT: Duration = Duration::from_secs(10);
/// How far behind the time now the mark is set, microseconds: what an intake that begins waits for at most.
const MARK_AHEAD_US: i64 = 3_000_000;
/// What a time in milliseconds leaves out at most.
const ROUNDED_US: i64 = 1000;

/// What asks them, and the clock that goes by what they say.
pub(super) struct Asking {
    begun: Instant,
    nodes: Nodes<u128>,
    clock: Arc<Clock>,
    /// A node's clock was set, and the mark was not read since.
    mark_is_due: bool,
}

impl Asking {
    /// Asks all nodes for the first time.
    ///
    /// # Errors
    /// No node says what time it is, or they differ by far.
    pub(super) async fn begin(link: &Link) -> Result<Self, StoreError> {
        let begun = Instant::now();
        let mut nodes = Nodes::default();
        let mark_us = mark(link).await?;
        ask_all(link, &mut nodes, begun, QUESTIONS_FIRST).await;
        let clock = Clock::new(&mut nodes, begun, mark_us)
            .ok_or_else(|| StoreError::no_answer("no node says what time it is"))?;
        let apart = clock.uncertainty_us();
        if apart > UNCERTAINTY_MAX_US as u64 {
            let reason =
                format!("they lie {:.1} s apart; let one time service set all of them", apart as f64 / 1e6);
            return Err(StoreError::invalid("the nodes' clocks", reason));
        }
        let asking = Asking { begun, nodes, clock: Arc::new(clock), mark_is_due: false };
        asking.move_mark(link).await?;
        Ok(asking)
    }

    /// Lets times be given for some more time, where any are.
    async fn move_mark(&self, link: &Link) -> Result<(), StoreError> {
        let Some(mark_us) = self.clock.wanted_mark_us(Instant::now(), MARK_AHEAD_US) else { return Ok(()) };
        let written = link.session.execute_unpaged(&link.set_mark, (mark_us, mark_us));
        match tokio::time::timeout(MARK_TIMEOUT, written).await {
            Ok(Ok(_)) => {
                self.clock.may_give_until(mark_us);
                Ok(())
            }
            Ok(Err(error)) => Err(StoreError::no_answer(error)),
            Err(_) => Err(StoreError::no_answer("the mark of times was not written in time")),
        }
    }

    /// Asks once more, and moves the mark.
    async fn go_on(&mut self, link: &Link) -> Result<(), StoreError> {
        if ask_all(link, &mut self.nodes, self.begun, QUESTIONS).await {
            tracing::warn!("the clock of a node was set: no message is taken until all intakes know");
            self.mark_is_due = true;
        }
        if self.mark_is_due {
            // nothing is given by what was known before, nor by what is known now until the mark was read
            self.clock.stepped(Instant::now(), i64::MIN);
            self.clock.stepped(Instant::now(), mark(link).await?);
            self.mark_is_due = false;
        }
        self.clock.set(&mut self.nodes);
        self.move_mark(link).await
    }

    pub(super) fn clock(&self) -> Arc<Clock> {
        self.clock.clone()
    }

    /// Asks them again and again, as long as somebody uses the link.
    pub(super) async fn keep(mut self, kept: Weak<KeptLink<Link>>) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            let Some(link) = kept.upgrade().map(|kept| kept.now()) else { return };
            if let Err(error) = self.go_on(&link).await {
                tracing::debug!(%error, "the mark of times stays where it was");
            }
        }
    }
}

/// Up to which time others may have given some.
async fn mark(link: &Link) -> Result<i64, StoreError> {
    let read = link.session.execute_unpaged(&link.mark, ());
    let answer = tokio::time::timeout(MARK_TIMEOUT, read).await;
    let answer = answer.map_err(|_| StoreError::no_answer("the mark of times was not read in time"))?;
    let rows = answer.map_err(StoreError::no_answer)?.into_rows_result().map_err(StoreError::no_answer)?;
    let row = rows.maybe_first_row::<(i64,)>().map_err(StoreError::no_answer)?;
    Ok(row.map_or(0, |(mark_us,)| mark_us))
}

/// Asks each node that is connected, all at the same time, up to the first question that it does not answer. Whether the
/// clock of one was set.
async fn ask_all(link: &Link, nodes: &mut Nodes<u128>, begun: Instant, questions: usize) -> bool {
    let state = link.session.get_cluster_state();
    let asked = state.get_nodes_info().iter().filter(|node| node.is_connected()).map(async |node| {
        let mut readings = Vec::with_capacity(questions);
        for _ in 0..questions {
            match ask(link, node).await {
                Ok(reading) => readings.push(reading),
                Err(error) => {
                    tracing::debug!(%error, node = %node.address, "it does not say what time it is");
                    break;
                }
            }
        }
        (node.host_id.as_u128(), readings)
    });
    let mut was_set = false;
    for (node, readings) in join_all(asked).await {
        for reading in readings {
            was_set |= nodes.heard(node, reading, begun);
        }
    }
    was_set
}

async fn ask(link: &Link, node: NodeRef<'_>) -> Result<Reading, StoreError> {
    let mut question = Statement::new("SELECT toUnixTimestamp(currentTimestamp()) FROM system.local");
    let target = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(node.clone()), None);
    question.set_load_balancing_policy(Some(target));
    question.set_request_timeout(Some(TIMEOUT));
    let asked = Instant::now();
    let answer = link.session.query_unpaged(question, ()).await.map_err(StoreError::no_answer)?;
    let answered = Instant::now();
    let rows = answer.into_rows_result().map_err(StoreError::no_answer)?;
    let (said_ms,) = rows.single_row::<(i64,)>().map_err(StoreError::no_answer)?;
    Ok(Reading { asked, answered, said_us: said_ms.saturating_mul(1000), rounded_us: ROUNDED_US })
}
