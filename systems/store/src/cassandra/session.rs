//! A session with the nodes: how it is made, what it is told, the schema, and what the nodes promise.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use scylla::client::PoolSize;
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::cluster::metadata::Strategy;
use scylla::errors::ExecutionError;
use scylla::policies::load_balancing::{DefaultPolicy, NodeIdentifier, SingleTargetLoadBalancingPolicy};
use scylla::policies::speculative_execution::SimpleSpeculativeExecutionPolicy;
use scylla::statement::Consistency;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::unprepared::Statement;

use super::options::Options;
use super::retry::{Attempts, BoundedRetries};
use crate::durability::Durability;
use crate::error::StoreError;

/// How long a connection may take to be made.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A connection on which nothing was heard for this long is asked whether it lives …
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// … and has this long to say so. Longer than a node is usually paused, since breaking the connection costs more.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(15);
/// How long all nodes may take to agree on the schema.
const SCHEMA_TIMEOUT: Duration = Duration::from_secs(30);
/// How long reading a part of the whole table may take; the nodes have bounds of their own for each page of it.
pub(super) const SCAN_TIMEOUT: Duration = Duration::from_secs(120);
/// Rows in a page of an answer.
const PAGE_ROWS: i32 = 5000;

/// Nodes that there are, and how many of them there is a connection to.
pub(super) fn nodes(session: &Session) -> (u64, u64) {
    let state = session.get_cluster_state();
    let nodes = state.get_nodes_info();
    (nodes.len() as u64, nodes.iter().filter(|node| node.is_connected()).count() as u64)
}

/// What an acknowledged write is worth on the weakest of the nodes that can be asked.
///
/// A node whose commit log is synced in periods has a write in its memory or handed to its operating system
/// when it acknowledges; only with `batch` and `group` it is on the disk. Of a keyspace that was made with
/// `durable_writes = false` nothing is in the commit log: it is in the memory of the nodes only.
pub(super) async fn durability(session: &Session, keyspace: &str) -> Result<Durability, StoreError> {
    let question = "SELECT durable_writes FROM system_schema.keyspaces WHERE keyspace_name = ?";
    let answer = session.query_unpaged(question, (keyspace,)).await;
    let rows = answer.map_err(StoreError::no_answer)?.into_rows_result().map_err(StoreError::no_answer)?;
    let row = rows.maybe_first_row::<(Option<bool>,)>().map_err(StoreError::no_answer)?;
    if row.is_none_or(|(is_logged,)| is_logged != Some(true)) {
        return Ok(Durability::Memory);
    }
    let state = session.get_cluster_state();
    for node in state.get_nodes_info().iter().filter(|node| node.is_connected()) {
        let target = SingleTargetLoadBalancingPolicy::new(NodeIdentifier::Node(node.clone()), None);
        let mut question =
            Statement::new("SELECT value FROM system_views.settings WHERE name = 'commitlog_sync'");
        question.set_load_balancing_policy(Some(target));
        let answer = session.query_unpaged(question, ()).await.map_err(StoreError::no_answer)?;
        let rows = answer.into_rows_result().map_err(StoreError::no_answer)?;
        let row = rows.maybe_first_row::<(Option<&str>,)>().map_err(StoreError::no_answer)?;
        let way = row.and_then(|(value,)| value);
        if !way.is_some_and(|way| ["batch", "group"].contains(&way)) {
            return Ok(Durability::Buffered);
        }
    }
    Ok(Durability::Synced)
}

/// A statement that can be sent twice.
pub(super) async fn prepare(
    session: &Session,
    text: String,
    consistency: Consistency,
    timeout: Option<Duration>,
) -> Result<PreparedStatement, StoreError> {
    let mut prepared = session.prepare(text).await.map_err(StoreError::no_answer)?;
    prepared.set_consistency(consistency);
    prepared.set_is_idempotent(true);
    prepared.set_page_size(PAGE_ROWS);
    prepared.set_request_timeout(timeout);
    Ok(prepared)
}

pub(super) async fn connect(options: &Options, attempts: Arc<Attempts>) -> Result<Session, StoreError> {
    let profile = |second_node: bool| {
        // Replicas first, so that no node has to pass a message on; any of them, so that each has its share.
        let mut profile = ExecutionProfile::builder()
            .load_balancing_policy(DefaultPolicy::builder().token_aware(true).build())
            .retry_policy(Arc::new(BoundedRetries(attempts.clone())))
            .consistency(options.consistency.of_writes())
            .request_timeout(Some(options.timeout));
        if second_node {
            let after = options.second_node_after;
            let policy = SimpleSpeculativeExecutionPolicy { max_retry_count: 1, retry_interval: after };
            profile = profile.speculative_execution_policy(Some(Arc::new(policy)));
        }
        profile.build()
    };
    let connections = NonZeroUsize::new(options.connections).unwrap_or(NonZeroUsize::MIN);
    let mut handle = profile(false).into_handle();
    let session = SessionBuilder::new()
        .known_nodes(&options.contact)
        .pool_size(PoolSize::PerHost(connections))
        .connection_timeout(CONNECT_TIMEOUT)
        .keepalive_interval(KEEPALIVE_INTERVAL)
        .keepalive_timeout(KEEPALIVE_TIMEOUT)
        .schema_agreement_timeout(SCHEMA_TIMEOUT)
        .default_execution_profile_handle(handle.clone())
        .build()
        .await
        .map_err(|error| StoreError::Unreachable {
            place: options.contact.join(", ").into(),
            reason: error.to_string().into(),
        })?;
    if session.get_cluster_state().get_nodes_info().len() > 1 {
        handle.map_to_another_profile(profile(true));
    }
    Ok(session)
}

/// Makes keyspace and tables where they are not there, and sees that everything is kept as often as it should.
pub(super) async fn make_schema(
    session: &Session,
    options: &Options,
    tables: Vec<String>,
) -> Result<(), StoreError> {
    let Options { keyspace, replication, .. } = options;
    let nodes = session.get_cluster_state().get_nodes_info().len();
    if usize::from(*replication) > nodes {
        let reason = format!("there are {nodes} nodes; set it to {nodes} at most, or start more");
        return Err(StoreError::invalid("so large a replication", reason));
    }
    let keyspace_there = format!(
        "CREATE KEYSPACE IF NOT EXISTS {keyspace} WITH replication = \
         {{'class': 'NetworkTopologyStrategy', 'replication_factor': {replication}}}"
    );
    for statement in std::iter::once(keyspace_there).chain(tables) {
        let mut statement = Statement::new(statement);
        statement.set_request_timeout(Some(SCHEMA_TIMEOUT));
        session.query_unpaged(statement, ()).await.map_err(StoreError::no_answer)?;
    }
    session.refresh_metadata().await.map_err(StoreError::no_answer)?;
    let state = session.get_cluster_state();
    let strategy = state.get_keyspace(keyspace).map(|keyspace| &keyspace.strategy);
    match strategy.and_then(replicas) {
        Some(found) if found != usize::from(*replication) => {
            let reason = format!(
                "the keyspace {keyspace} is there and keeps everything {found} times, not {replication} times; \
                 say replication {found}, name another keyspace, or alter this one and repair it"
            );
            Err(StoreError::invalid("what is asked for", reason))
        }
        _ => Ok(()),
    }
}

/// How often a keyspace keeps everything, in each data centre.
fn replicas(strategy: &Strategy) -> Option<usize> {
    match strategy {
        Strategy::SimpleStrategy { replication_factor } => Some(*replication_factor),
        Strategy::NetworkTopologyStrategy { datacenter_repfactors } => least(datacenter_repfactors),
        _ => None,
    }
}

fn least(factors: &HashMap<String, usize>) -> Option<usize> {
    factors.values().min().copied()
}

impl StoreError {
    /// A statement that failed.
    pub(super) fn of_statement(error: &ExecutionError) -> Self {
        Self::no_answer(error)
    }
}
