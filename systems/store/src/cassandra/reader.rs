//! Everything that the table holds, read by somebody who did not write it.

use std::sync::Arc;
use std::time::Duration;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

use super::link::OF_A_PART;
use super::options::Options;
use super::read::{self, Part};
use super::retry::Attempts;
use super::session::{SCAN_TIMEOUT, connect, prepare};
use crate::error::StoreError;
use crate::threads::Threads;

/// How often it is asked whether reading goes on.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Reads the table of messages from its first row to its last, in parts. Makes nothing and changes nothing.
pub struct Reader {
    session: Session,
    payloads: PreparedStatement,
    parts: Vec<Part>,
    /// Reads and writes the connections.
    threads: Threads,
}

impl Reader {
    /// Connects; of the options, contact points, keyspace and consistency matter. Blocks; not to be called on a thread
    /// of an async runtime.
    ///
    /// # Errors
    /// Options that cannot work, nodes that cannot be reached, a table that is not there.
    pub fn open(options: &Options) -> Result<Self, StoreError> {
        options.check()?;
        let threads = Threads::new(options.threads, "cassandra")?;
        let (session, payloads) = threads.block_on(async {
            let session = connect(options, Arc::new(Attempts::default())).await?;
            let table = format!("{}.messages", options.keyspace);
            let state = session.get_cluster_state();
            let found = state.get_keyspace(&options.keyspace);
            if !found.is_some_and(|keyspace| keyspace.tables.contains_key("messages")) {
                let what = format!("table {table}").into();
                return Err(StoreError::Missing { place: options.contact.join(", ").into(), what });
            }
            let text = format!("SELECT payload FROM {table} WHERE {OF_A_PART}");
            let reads = options.consistency.of_reads();
            let payloads = prepare(&session, text, reads, Some(SCAN_TIMEOUT)).await?;
            Ok::<_, StoreError>((session, payloads))
        })?;
        Ok(Reader { session, payloads, parts: read::parts(), threads })
    }

    /// The name of the cluster that was connected to.
    ///
    /// # Errors
    /// No answer.
    pub fn cluster(&self) -> Result<String, StoreError> {
        self.threads.block_on(async {
            let question = "SELECT cluster_name FROM system.local";
            let answer = self.session.query_unpaged(question, ()).await.map_err(StoreError::no_answer)?;
            let rows = answer.into_rows_result().map_err(StoreError::no_answer)?;
            let (name,) = rows.single_row::<(String,)>().map_err(StoreError::no_answer)?;
            Ok(name)
        })
    }

    /// How many parts there are, to be read each by itself, in parallel too. Every message is in exactly one.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Hands the payload of every message of a part to `take`, each once and in no order; returns how many there were.
    /// Blocks, as long as `goes_on` says so; not to be called on a thread of an async runtime.
    ///
    /// # Errors
    /// No answer, or no wish for it any more, perhaps after some were handed over already.
    pub fn payloads(
        &self,
        part: usize,
        goes_on: &dyn Fn() -> bool,
        take: impl FnMut(&[u8]),
    ) -> Result<u64, StoreError> {
        let reading = read::payloads(&self.session, &self.payloads, self.parts[part], take);
        let no_longer = async {
            while goes_on() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        self.threads.block_on(async {
            tokio::select! {
                read = reading => read,
                () = no_longer => Err(StoreError::no_answer("nobody waits for it any more")),
            }
        })
    }
}
