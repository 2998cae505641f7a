//! What is prepared for an airline in a session with the nodes.

use std::sync::Arc;

use scylla::client::session::Session;
use scylla::statement::prepared::PreparedStatement;
use scylla::statement::{Consistency, SerialConsistency};

use super::super::kept::Linked;
use super::super::options::{Consistency as Asked, Options};
use super::super::retry::Attempts;
use super::super::session::{SCAN_TIMEOUT, connect, make_schema, prepare};
use super::rows::FIELDS;
use crate::error::StoreError;

/// A session and the statements that were prepared in it.
pub(super) struct AirlineLink {
    pub(super) session: Session,
    /// How many acknowledge a write.
    pub(super) writes: Consistency,
    pub(super) customer_find: PreparedStatement,
    /// Where there is none. May be sent twice: at worst one more is not counted as stored.
    pub(super) customer_insert: PreparedStatement,
    /// Where it is as it was.
    pub(super) customer_replace: PreparedStatement,
    pub(super) customer_count: PreparedStatement,
    /// Its time of writing is a value, so that every attempt writes the same.
    pub(super) booking_add: PreparedStatement,
    pub(super) booking_find: PreparedStatement,
    pub(super) booking_list: PreparedStatement,
    pub(super) booking_cancel: PreparedStatement,
    pub(super) booking_count: PreparedStatement,
}

impl AirlineLink {
    /// Connects, makes what is missing of the schema, and prepares the statements.
    pub(super) async fn open(options: &Options, attempts: Arc<Attempts>) -> Result<Self, StoreError> {
        let session = connect(options, attempts).await?;
        make_schema(&session, options, tables(&options.keyspace)).await?;
        Self::prepare(session, options).await
    }
}

impl Linked for AirlineLink {
    fn session(&self) -> &Session {
        &self.session
    }

    async fn prepare(session: Session, options: &Options) -> Result<Self, StoreError> {
        let keyspace = &options.keyspace;
        let (reads, writes) = (options.consistency.of_reads(), options.consistency.of_writes());
        let write = async |text: String| prepare(&session, text, writes, None).await;
        let read = async |text: String, timeout| prepare(&session, text, reads, timeout).await;
        // a lightweight transaction
        let change = async |text: String, may_be_sent_twice| {
            let mut prepared = write(text).await?;
            prepared.set_is_idempotent(may_be_sent_twice);
            prepared.set_serial_consistency(Some(match options.consistency {
                Asked::LocalQuorum => SerialConsistency::LocalSerial,
                _ => SerialConsistency::Serial,
            }));
            Ok::<_, StoreError>(prepared)
        };
        let names = FIELDS.join(", ");
        let marks = FIELDS.map(|_| "?").join(", ");
        let set = FIELDS.map(|name| format!("{name} = ?")).join(", ");
        let same = FIELDS.map(|name| format!("{name} = ?")).join(" AND ");
        let customer_find = format!("SELECT id, {names} FROM {keyspace}.customers WHERE id = ?");
        let customer_insert =
            format!("INSERT INTO {keyspace}.customers (id, {names}) VALUES (?, {marks}) IF NOT EXISTS");
        let customer_replace = format!("UPDATE {keyspace}.customers SET {set} WHERE id = ? IF {same}");
        let booking_add = format!(
            "INSERT INTO {keyspace}.bookings (customer_id, id, flight_id, flight_segment_id, booked_ms, added_us) \
             VALUES (?, ?, ?, ?, ?, ?) USING TIMESTAMP ?"
        );
        let bookings = format!(
            "SELECT id, flight_id, flight_segment_id, booked_ms, added_us FROM {keyspace}.bookings \
             WHERE customer_id = ?"
        );
        let booking_find = format!("{bookings} AND id = ?");
        let booking_cancel =
            format!("DELETE FROM {keyspace}.bookings USING TIMESTAMP ? WHERE customer_id = ? AND id = ?");
        let count = |table| format!("SELECT count(*) FROM {keyspace}.{table}");
        Ok(AirlineLink {
            writes,
            customer_find: read(customer_find, None).await?,
            customer_insert: change(customer_insert, true).await?,
            customer_replace: change(customer_replace, false).await?,
            customer_count: read(count("customers"), Some(SCAN_TIMEOUT)).await?,
            booking_add: write(booking_add).await?,
            booking_find: read(booking_find, None).await?,
            booking_list: read(bookings, None).await?,
            booking_cancel: write(booking_cancel).await?,
            booking_count: read(count("bookings"), Some(SCAN_TIMEOUT)).await?,
            session,
        })
    }
}

fn tables(keyspace: &str) -> Vec<String> {
    vec![
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.customers (id text PRIMARY KEY, password text, status tinyint, \
             total_miles bigint, miles_ytd bigint, street_address1 text, street_address2 text, city text, \
             state_province text, country text, postal_code text, phone_number text, phone_number_type tinyint)"
        ),
        format!(
            "CREATE TABLE IF NOT EXISTS {keyspace}.bookings (customer_id text, id uuid, flight_id uuid, \
             flight_segment_id text, booked_ms bigint, added_us bigint, PRIMARY KEY (customer_id, id))"
        ),
    ]
}
