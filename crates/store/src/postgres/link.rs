//! A connection, and the statements that were prepared on it.

use std::sync::Arc;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use super::options::Options;
use super::schema;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::{Carrier, Connect, Failed};

/// A statement, by its place in [`Link::statements`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Do {
    SessionCreate,
    SessionFind,
    SessionExpire,
    SessionRemove,
    SessionCount,
    SessionSweep,
    CustomerFind,
    CustomerPut,
    CustomerPutMissing,
    CustomerCount,
    BookingAdd,
    BookingList,
    BookingFind,
    BookingCancel,
    BookingCount,
}

macro_rules! insert_customers {
    () => {
        "INSERT INTO tidemark.customers (id, password, status, total_miles, miles_ytd, street_address1, street_address2, city,
         state_province, country, postal_code, phone_number, phone_number_type)
     SELECT * FROM unnest($1::text[], $2::text[], $3::smallint[], $4::bigint[], $5::bigint[], $6::text[], $7::text[],
         $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::smallint[])"
    };
}

/// In the order of [`Do`].
const STATEMENTS: [&str; 15] = [
    "INSERT INTO tidemark.sessions (id, customer_id, created_ms, expires_ms) VALUES ($1, $2, $3, $4)
     ON CONFLICT (id) DO UPDATE SET customer_id = EXCLUDED.customer_id, created_ms = EXCLUDED.created_ms, expires_ms = EXCLUDED.expires_ms",
    "SELECT customer_id, created_ms, expires_ms FROM tidemark.sessions WHERE id = $1",
    "DELETE FROM tidemark.sessions WHERE id = $1 AND expires_ms <= $2",
    "DELETE FROM tidemark.sessions WHERE id = $1",
    "SELECT count(*) FROM tidemark.sessions",
    "DELETE FROM tidemark.sessions WHERE id IN (
         SELECT id FROM tidemark.sessions WHERE expires_ms <= $1 ORDER BY expires_ms LIMIT $2 FOR UPDATE SKIP LOCKED)",
    "SELECT id, password, status, total_miles, miles_ytd, street_address1, street_address2, city, state_province, country,
         postal_code, phone_number, phone_number_type FROM tidemark.customers WHERE id = $1",
    concat!(insert_customers!(), " ON CONFLICT (id) DO UPDATE SET password = EXCLUDED.password, status = EXCLUDED.status,
         total_miles = EXCLUDED.total_miles, miles_ytd = EXCLUDED.miles_ytd, street_address1 = EXCLUDED.street_address1,
         street_address2 = EXCLUDED.street_address2, city = EXCLUDED.city, state_province = EXCLUDED.state_province,
         country = EXCLUDED.country, postal_code = EXCLUDED.postal_code, phone_number = EXCLUDED.phone_number,
         phone_number_type = EXCLUDED.phone_number_type"),
    concat!(insert_customers!(), " ON CONFLICT (id) DO NOTHING"),
    "SELECT count(*) FROM tidemark.customers",
    "INSERT INTO tidemark.bookings (customer_id, id, flight_id, flight_segment_id, booked_ms, place, added)
     SELECT *, (SELECT nextval('tidemark.bookings_added'))
     FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[], $5::bigint[], $6::bigint[])
     ON CONFLICT (customer_id, id) DO UPDATE SET flight_id = EXCLUDED.flight_id,
         flight_segment_id = EXCLUDED.flight_segment_id, booked_ms = EXCLUDED.booked_ms, place = EXCLUDED.place,
         added = EXCLUDED.added",
    "SELECT id, customer_id, flight_id, flight_segment_id, booked_ms FROM tidemark.bookings
     WHERE customer_id = $1 ORDER BY added, place",
    "SELECT id, customer_id, flight_id, flight_segment_id, booked_ms FROM tidemark.bookings WHERE customer_id = $1 AND id = $2",
    "DELETE FROM tidemark.bookings WHERE customer_id = $1 AND id = $2",
    "SELECT count(*) FROM tidemark.bookings",
];

/// A connection that is ready.
pub(super) struct Link {
    pub(super) client: Client,
    statements: Vec<Statement>,
}

impl Link {
    pub(super) fn statement(&self, of: Do) -> &Statement {
        &self.statements[of as usize]
    }
}

/// Makes connections.
pub(super) struct Connector {
    options: Options,
    config: Config,
}

impl Connector {
    pub(super) fn new(options: Options) -> Result<Self, StoreError> {
        Ok(Connector { config: options.config()?, options })
    }

    async fn dial(&self) -> Result<(Client, Carrier), StoreError> {
        let dialling = self.config.connect(NoTls);
        let (client, connection) = match tokio::time::timeout(self.options.timeout, dialling).await {
            Ok(dialled) => dialled.map_err(|error| self.unreachable(&error))?,
            Err(_) => {
                let reason = format!("it did not take the connection for {:?}", self.options.timeout).into();
                return Err(StoreError::Unreachable { place: self.place(), reason });
            }
        };
        let carrier = async move {
            match connection.await {
                Ok(()) => "it was closed".to_owned(),
                Err(error) => described(&error),
            }
        };
        Ok((client, Box::pin(carrier)))
    }

    /// Why there is no connection.
    fn unreachable(&self, error: &Error) -> StoreError {
        let (place, reason) = (self.place(), described(error).into());
        match error.code() {
            // on its way up or down, or full
            Some(code)
                if [
                    SqlState::CANNOT_CONNECT_NOW,
                    SqlState::ADMIN_SHUTDOWN,
                    SqlState::CRASH_SHUTDOWN,
                    SqlState::TOO_MANY_CONNECTIONS,
                ]
                .contains(code) =>
            {
                StoreError::Unreachable { place, reason }
            }
            // user, password, database
            Some(_) => StoreError::Unusable { place, reason },
            None => StoreError::Unreachable { place, reason },
        }
    }

    /// Makes the tables.
    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        let (mut client, mut carrier) = self.dial().await?;
        let migrating = async {
            let later = schema::migrate(&mut client).await.map_err(|error| match error.as_db_error() {
                Some(_) => StoreError::Unusable { place: self.place(), reason: described(&error).into() },
                None => StoreError::no_answer(described(&error)),
            })?;
            let Some(version) = later else { return Ok(()) };
            let reason =
                format!("its schema has version {version}, of a later version of this program; use that")
                    .into();
            Err(StoreError::Unusable { place: self.place(), reason })
        };
        let migrating = tokio::time::timeout(self.options.start_timeout, migrating);
        tokio::select! {
            reason = &mut carrier => Err(StoreError::no_answer(reason)),
            done = migrating => done.unwrap_or_else(|_| Err(StoreError::no_answer("the schema was not made in time"))),
        }
    }

    /// Tells the server how this connection is to be, and prepares the statements.
    async fn make_ready(&self, client: Client) -> Result<Link, StoreError> {
        let wrong = |error: Error| StoreError::no_answer(described(&error));
        let commit = match self.options.durability {
            // more than `on` stays what it is
            Durability::Synced => {
                "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
            }
            Durability::Buffered | Durability::Memory => "SET synchronous_commit = off",
        };
        // a little sooner than the connection is given up
        let timeout_ms = (self.options.timeout * 9 / 10).as_millis().max(1);
        client
            .batch_execute(&format!(
                "{commit}; SET statement_timeout = {timeout_ms}; SET default_transaction_isolation = 'read committed'"
            ))
            .await
            .map_err(wrong)?;
        self.check(&client).await?;
        let mut statements = Vec::with_capacity(STATEMENTS.len());
        for text in STATEMENTS {
            statements.push(client.prepare(text).await.map_err(wrong)?);
        }
        Ok(Link { client, statements })
    }

    /// Refuses a server that keeps less than was asked for.
    async fn check(&self, client: &Client) -> Result<(), StoreError> {
        let text = "SELECT current_setting('fsync') = 'on', current_setting('synchronous_commit') <> 'off',
            pg_is_in_recovery(), current_setting('server_encoding'), EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON
            pg_namespace.oid = relnamespace WHERE nspname = 'tidemark' AND relpersistence <> 'p')";
        let wrong = |error: Error| StoreError::no_answer(described(&error));
        let row = client.query_one(text, &[]).await.map_err(wrong)?;
        let flag = |column: usize| row.try_get::<_, bool>(column).map_err(wrong);
        let (syncs, waits, is_standby, unlogged) = (flag(0)?, flag(1)?, flag(2)?, flag(4)?);
        let encoding: String = row.try_get(3).map_err(wrong)?;
        let place = self.place();
        if is_standby {
            return Err(StoreError::Unusable {
                place,
                reason: "it is a standby, which takes no writes".into(),
            });
        }
        if encoding != "UTF8" {
            let reason =
                format!("the database is encoded as {encoding}; make one with ENCODING 'UTF8'").into();
            return Err(StoreError::Unusable { place, reason });
        }
        let wanted = self.options.durability;
        let (given, remedy) = match (unlogged, syncs && waits) {
            (true, _) => (Durability::Memory, "make the tables of the schema tidemark LOGGED"),
            (false, false) => {
                (Durability::Buffered, "let the server sync (fsync = on, synchronous_commit = on)")
            }
            (false, true) => (Durability::Synced, ""),
        };
        match given >= wanted {
            true => Ok(()),
            false => Err(StoreError::LessDurable { place, given, wanted, remedy }),
        }
    }
}

impl Connect for Connector {
    type Link = Link;

    fn place(&self) -> Arc<str> {
        self.options.place()
    }

    async fn connect(&self) -> Result<(Link, Carrier), StoreError> {
        let (client, mut carrier) = self.dial().await?;
        let ready = tokio::time::timeout(self.options.timeout, self.make_ready(client));
        let link = tokio::select! {
            reason = &mut carrier => return Err(StoreError::no_answer(reason)),
            link = ready => link.unwrap_or_else(|_| Err(StoreError::no_answer("a new connection was not ready in time")))?,
        };
        Ok((link, carrier))
    }
}

/// What went wrong, without values: details of the server's may have some.
pub(super) fn described(error: &Error) -> String {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()),
        None => match std::error::Error::source(error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        },
    }
}

/// What a failed request says about its connection.
pub(super) fn failed(error: Error) -> Failed {
    match error.as_db_error() {
        // data exception, program limit exceeded (PostgreSQL's appendix A, the classes of SQLSTATE)
        Some(said) if ["22", "54"].iter().any(|class| said.code().code().starts_with(class)) => {
            Failed::Invalid(described(&error))
        }
        Some(_) => Failed::Refused(described(&error)),
        None => Failed::Lost(described(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_where_their_names_say() {
        assert!(STATEMENTS[Do::SessionSweep as usize].contains("SKIP LOCKED"));
        assert!(STATEMENTS[Do::CustomerPut as usize].starts_with("INSERT INTO tidemark.customers"));
        assert!(STATEMENTS[Do::BookingAdd as usize].starts_with("INSERT INTO tidemark.bookings"));
        assert!(STATEMENTS[Do::BookingCount as usize].contains("count(*) FROM tidemark.bookings"));
        assert_eq!(Do::BookingCount as usize + 1, STATEMENTS.len());
    }
}
