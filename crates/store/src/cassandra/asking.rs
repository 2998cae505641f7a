//! The nodes are asked what time it is, again and again.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use scylla::cluster::NodeRef;
use scylla::policies::load_balancing::{NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::statement::unprepared::Statement;

use super::clock::{Clock, Nodes, Reading};
use super::kept::KeptLink;
use super::link::Link;
use crate::error::StoreError;

/// How often they are asked.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// How many questions each is asked then: a node counts milliseconds only, and several answers tell more than one.
const QUESTIONS: usize = 8;
/// The same before the first write.
const QUESTIONS_FIRST: usize = 32;
/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(1);
/// How far the nodes' clocks may lie apart at the start, microseconds.
const UNCERTAINTY_MAX_US: u64 = 1_000_000;
/// What a time in milliseconds leaves out at most.
const ROUNDED_US: i64 = 1000;

/// What asks them, and the clock that goes by what they say.
pub(super) struct Asking {
    begun: Instant,
    nodes: Nodes<u128>,
    clock: Arc<Clock>,
}

impl Asking {
    /// Asks all nodes for the first time.
    ///
    /// # Errors
    /// No node says what time it is, or they differ by far.
    pub(super) async fn begin(link: &Link) -> Result<Self, StoreError> {
        let begun = Instant::now();
        let mut nodes = Nodes::default();
        ask_all(link, &mut nodes, begun, QUESTIONS_FIRST).await;
        let clock = Clock::new(&mut nodes, begun)
            .ok_or_else(|| StoreError::no_answer("no node says what time it is"))?;
        let apart = clock.uncertainty_us();
        if apart > UNCERTAINTY_MAX_US {
            let reason =
                format!("they lie {:.1} s apart; let one time service set all of them", apart as f64 / 1e6);
            return Err(StoreError::invalid("the nodes' clocks", reason));
        }
        Ok(Asking { begun, nodes, clock: Arc::new(clock) })
    }

    pub(super) fn clock(&self) -> Arc<Clock> {
        self.clock.clone()
    }

    /// Asks them again and again, as long as somebody uses the link.
    pub(super) async fn keep(mut self, kept: Weak<KeptLink>) {
        loop {
            tokio::time::sleep(ASK_EVERY).await;
            let Some(link) = kept.upgrade().map(|kept| kept.now()) else { return };
            ask_all(&link, &mut self.nodes, self.begun, QUESTIONS).await;
            self.clock.set(&mut self.nodes);
        }
    }
}

/// Asks each node that is connected, up to the first question that it does not answer.
async fn ask_all(link: &Link, nodes: &mut Nodes<u128>, begun: Instant, questions: usize) {
    let state = link.session.get_cluster_state();
    for node in state.get_nodes_info().iter().filter(|node| node.is_connected()) {
        for _ in 0..questions {
            match ask(link, node).await {
                Ok(reading) => nodes.heard(node.host_id.as_u128(), reading, begun),
                Err(error) => {
                    tracing::debug!(%error, node = %node.address, "it does not say what time it is");
                    break;
                }
            }
        }
    }
}

async fn ask(link: &Link, node: NodeRef<'_>) -> Result<Reading, StoreError> {
    let mut question = Statement::new("SELECT toUnixTimestamp(now()) FROM system.local");
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
