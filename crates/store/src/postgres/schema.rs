//! The tables, made by whoever comes first.
//!
//! Every change of the schema is a step of [`STEPS`] with its number, for ever as it is. A store that begins takes an
//! advisory lock, does the steps that are missing and notes them, in one transaction: of several that begin at once one
//! does it and the others find it done, and a step that fails leaves nothing behind.

use tokio_postgres::{Client, Error, IsolationLevel};

/// Nothing else takes this lock: "tidemark" as a number.
const LOCK: i64 = 0x7469_6465_6d61_726b;

const STEPS: &[&str] = &["
CREATE TABLE tidemark.sessions (
    id uuid PRIMARY KEY,
    customer_id text NOT NULL,
    created_ms bigint NOT NULL,
    expires_ms bigint NOT NULL
);
CREATE INDEX sessions_expires_ms ON tidemark.sessions (expires_ms);
CREATE TABLE tidemark.customers (
    id text COLLATE \"C\" PRIMARY KEY,
    password text NOT NULL,
    status smallint NOT NULL,
    total_miles bigint NOT NULL,
    miles_ytd bigint NOT NULL,
    street_address1 text NOT NULL,
    street_address2 text,
    city text NOT NULL,
    state_province text NOT NULL,
    country text NOT NULL,
    postal_code text NOT NULL,
    phone_number text NOT NULL,
    phone_number_type smallint NOT NULL
);
CREATE SEQUENCE tidemark.bookings_added;
CREATE TABLE tidemark.bookings (
    customer_id text COLLATE \"C\" NOT NULL,
    id uuid NOT NULL,
    flight_id uuid NOT NULL,
    flight_segment_id text NOT NULL,
    booked_ms bigint NOT NULL,
    added bigint NOT NULL,
    place bigint NOT NULL,
    PRIMARY KEY (customer_id, id)
);
"];

/// Makes what is missing. Gives the version there is where it is a later one than this program knows.
pub(super) async fn migrate(client: &mut Client) -> Result<Option<i32>, Error> {
    // with a stricter one as the server's default, the snapshot would be older than the lock
    let transaction =
        client.build_transaction().isolation_level(IsolationLevel::ReadCommitted).start().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let begin = "SET LOCAL client_min_messages = warning; CREATE SCHEMA IF NOT EXISTS tidemark;
        CREATE TABLE IF NOT EXISTS tidemark.migrations (version integer PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now())";
    transaction.batch_execute(begin).await?;
    let version = "SELECT coalesce(max(version), 0) FROM tidemark.migrations";
    let there: i32 = transaction.query_one(version, &[]).await?.try_get(0)?;
    let known = STEPS.len() as i32;
    if there > known {
        return Ok(Some(there));
    }
    for (version, step) in (1..).zip(STEPS).skip(there as usize) {
        transaction.batch_execute(step).await?;
        transaction.execute("INSERT INTO tidemark.migrations (version) VALUES ($1)", &[&version]).await?;
        tracing::info!(version, "schema made");
    }
    transaction.commit().await?;
    Ok(None)
}
