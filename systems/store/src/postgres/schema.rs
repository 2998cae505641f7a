//! The tables, made by whoever comes first.
//!
//! Every change of a schema is a step with its number, for ever as it is. A store that begins takes an
//! advisory lock, does the steps that are missing and notes them, in one transaction: of several that begin at once one
//! does it and the others find it done, and a step that fails leaves nothing behind.

use tokio_postgres::{Client, Error, IsolationLevel};

/// Nothing else takes this lock: "tidemark" as a number.
const LOCK: i64 = 0x7469_6465_6d61_726b;

/// What a system has in a database.
pub(super) struct Schema {
    /// What is there before the steps.
    pub(super) begin: &'static str,
    /// The table that notes them.
    pub(super) migrations: &'static str,
    /// Which rows of `pg_class` and `pg_namespace` are this system's.
    pub(super) relations: &'static str,
    pub(super) steps: &'static [&'static str],
    /// Prepared on each connection.
    pub(super) statements: &'static [&'static str],
}

impl Schema {
    /// Makes what is missing. Gives the version there is where it is a later one than this program knows.
    pub(super) async fn migrate(&self, client: &mut Client) -> Result<Option<i32>, Error> {
        let Schema { begin, migrations, steps, .. } = self;
        // with a stricter one as the server's default, the snapshot would be older than the lock
        let transaction =
            client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
        transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
        let begin = format!(
            "SET LOCAL client_min_messages = warning; {begin};
            CREATE TABLE IF NOT EXISTS {migrations} (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())"
        );
        transaction.batch_execute(&begin).await?;
        let version = format!("SELECT coalesce(max(version), 0) FROM {migrations}");
        let there: i32 = transaction.query_one(&version, &[]).await?.try_get(0)?;
        let known = steps.len() as i32;
        if there > known {
            return Ok(Some(there));
        }
        for (version, step) in (1..).zip(*steps).skip(there as usize) {
            transaction.batch_execute(step).await?;
            let note = format!("INSERT INTO {migrations} (version) VALUES ($1)");
            transaction.execute(&note, &[&version]).await?;
            tracing::info!(version, "schema made");
        }
        transaction.commit().await?;
        Ok(None)
    }
}
