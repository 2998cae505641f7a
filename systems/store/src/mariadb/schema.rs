//! The tables and procedures, made by whoever comes first.
//!
//! Every change of a schema is a step with its number, for ever as it is. A store that begins takes a lock of the server, does the
//! steps that are missing and notes each. MariaDB commits with each definition, so those of a step may be carried out again:
//! of several that begin at once one does them, and where it ends in the middle the next one begins the step again.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};

/// What a system has in a database.
pub(super) struct Schema {
    /// The table that notes the steps.
    pub(super) migrations: &'static str,
    /// What each step is made of.
    pub(super) steps: &'static [&'static [&'static str]],
    /// Indexes that only tables of this program have.
    pub(super) indexes: &'static [&'static str],
    /// Why a database with other tables of these names cannot be used.
    pub(super) others: &'static str,
    /// Prepared on each connection.
    pub(super) statements: &'static [&'static str],
}

/// What the schema is after [`Schema::migrate`].
pub(super) enum Found {
    /// As this program knows it.
    Ours,
    /// Of a later version of this program.
    Later(u32),
    /// Tables with these names that this program did not make.
    Others,
    /// Somebody else is making it.
    Locked,
}

impl Schema {
    /// Makes what is missing.
    pub(super) async fn migrate(&self, conn: &mut Conn, wait_s: u64) -> Result<Found, Error> {
        // goes with the connection
        let lock = "SELECT get_lock(concat('tidemark ', md5(database())), ?)";
        if conn.exec_first::<Option<i64>, _, _>(lock, (wait_s,)).await?.flatten() != Some(1) {
            return Ok(Found::Locked);
        }
        let Schema { migrations, steps, indexes, .. } = self;
        conn.query_drop(format!(
            "CREATE TABLE IF NOT EXISTS {migrations} (version int PRIMARY KEY, applied timestamp NOT NULL DEFAULT now()) ENGINE=InnoDB"
        ))
        .await?;
        let version = format!("SELECT coalesce(max(version), 0) FROM {migrations}");
        let there: u32 = conn.query_first(version).await?.unwrap_or_default();
        if there as usize > steps.len() {
            return Ok(Found::Later(there));
        }
        for (version, step) in (1u32..).zip(*steps).skip(there as usize) {
            for definition in *step {
                conn.query_drop(*definition).await?;
            }
            conn.exec_drop(format!("INSERT INTO {migrations} (version) VALUES (?)"), (version,)).await?;
            tracing::info!(version, "schema made");
        }
        let own = "SELECT count(DISTINCT index_name) FROM information_schema.statistics
            WHERE table_schema = database() AND find_in_set(index_name, ?)";
        let found: usize = conn.exec_first(own, (indexes.join(","),)).await?.unwrap_or_default();
        Ok(if found == indexes.len() { Found::Ours } else { Found::Others })
    }
}
