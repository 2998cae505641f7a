//! What is prepared for messages in a session with the nodes.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;

use super::kept::Linked;
use super::options::Options;
use super::retry::Attempts;
use super::session::{SCAN_TIMEOUT, connect, make_schema, prepare};
use crate::error::StoreError;

/// What selects a part of the ring by the key of the messages.
pub(super) const OF_A_PART: &str = "token(user, day) > ? AND token(user, day) <= ?";

/// A session and the statements that were prepared in it.
pub(super) struct Link {
    pub(super) session: Session,
    /// A message. Its own time of writing is a value, so that every attempt writes the same.
    pub(super) insert: PreparedStatement,
    /// A day that has messages.
    pub(super) insert_day: PreparedStatement,
    /// How far times were given.
    pub(super) mark: PreparedStatement,
    /// The same, moved on; never back.
    pub(super) set_mark: PreparedStatement,
    /// The days from one to another.
    pub(super) days: PreparedStatement,
    /// A user's messages of a day behind a place.
    pub(super) of_day: PreparedStatement,
    /// How many messages are in a part of the ring.
    pub(super) count: PreparedStatement,
}

impl Link {
    /// Connects, makes what is missing of the schema, and prepares the statements.
    pub(super) async fn open(options: &Options, attempts: Arc<Attempts>) -> Result<Self, StoreError> {
        let session = connect(options, attempts).await?;
        make_schema(&session, options, tables(&options.keyspace)).await?;
        check_table(&session, &options.keyspace)?;
        Self::prepare(session, options).await
    }
}

impl Linked for Link {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(session: Session, options: &Options) -> Result<Self, StoreError> {
        let keyspace = &options.keyspace;
        let (reads, writes) = (options.consistency.of_reads(), options.consistency.of_writes());
        let prepare =
            async |text: String, consistency, timeout| prepare(&session, text, consistency, timeout).await;
        let insert = format!(
            "INSERT INTO {keyspace}.messages (user, day, time, kind, id, payload) VALUES (?, ?, ?, ?, ?, ?) \
             USING TIMESTAMP ?"
        );
        let insert_day = format!("INSERT INTO {keyspace}.days (part, day) VALUES (0, ?) USING TIMESTAMP ?");
        let mark = format!("SELECT until FROM {keyspace}.mark WHERE part = 0");
        let set_mark = format!("INSERT INTO {keyspace}.mark (part, until) VALUES (0, ?) USING TIMESTAMP ?");
        let days = format!("SELECT day FROM {keyspace}.days WHERE part = 0 AND day >= ? AND day <= ?");
        let of_day = format!(
            "SELECT time, kind, id, payload FROM {keyspace}.messages WHERE user = ? AND day = ? \
             AND (time, kind, id) > (?, ?, ?) AND (time) <= (?) LIMIT ?"
        );
        let count = format!("SELECT count(*) FROM {keyspace}.messages WHERE {OF_A_PART}");
        Ok(Link {
            insert: prepare(insert, writes, None).await?,
            insert_day: prepare(insert_day, writes, None).await?,
            mark: prepare(mark, reads, None).await?,
            set_mark: prepare(set_mark, writes, None).await?,
            days: prepare(days, reads, None).await?,
            of_day: prepare(of_day, reads, None).await?,
            count: prepare(count, reads, Some(SCAN_TIMEOUT)).await?,
            session,
        })
    }
}

/// Refuses a table of an earlier version, in which there was one message for each user, time and kind.
fn check_table(session: &Session, keyspace: &str) -> Result<(), StoreError> {
    let state = session.get_cluster_state();
    let table = state.get_keyspace(keyspace).and_then(|keyspace| keyspace.tables.get("messages"));
    if table.is_none_or(|table| table.clustering_key.iter().any(|column| column == "id")) {
        return Ok(());
    }
    let reason = format!(
        "an earlier version made {keyspace}.messages, which kept one message for each user, time and type; name another \
         keyspace, or read this one with that version"
    );
    Err(StoreError::invalid("the keyspace", reason))
}

/// What makes the tables.
fn tables(keyspace: &str) -> Vec<String> {
    vec![
        // a user's day is one partition, read in order
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.messages (user bigint, day int, time bigint, kind blob, id blob, \
             payload blob, PRIMARY KEY ((user, day), time, kind, id))"
        ),
        // which days there are at all: what a reader of a user's messages looks through
        format!("CREATE TABLE IF NOT EXISTS {keyspace}.days (part int, day int, PRIMARY KEY (part, day))"),
        // up to which time of writing messages may have been written
        format!("CREATE TABLE IF NOT EXISTS {keyspace}.mark (part int PRIMARY KEY, until bigint)"),
    ]
}
