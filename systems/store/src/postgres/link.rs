//! A connection, and the statements that were prepared on it.

use std::sync::Arc;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, Error, NoTls, Statement};

use super::options::Options;
use super::schema::Schema;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::{Carrier, Connect, Failed};

/// A connection that is ready.
pub(super) struct Link {
    pub(super) client: Client,
    statements: Vec<Statement>,
}

impl Link {
    /// By its place in those of the schema.
    pub(super) fn statement(&self, place: usize) -> &Statement {
        &self.statements[place]
    }
}

/// Makes connections.
pub(super) struct Connector {
    options: Options,
    config: Config,
    schema: &'static Schema,
}

impl Connector {
    pub(super) fn new(options: Options, schema: &'static Schema) -> Result<Self, StoreError> {
        Ok(Connector { config: options.config()?, options, schema })
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
            let later =
                self.schema.migrate(&mut client).await.map_err(|error| match error.as_db_error() {
                    Some(said) => {
                        let taken =
                            [SqlState::DUPLICATE_TABLE, SqlState::DUPLICATE_FUNCTION].contains(said.code());
                        let remedy =
                            if taken { "; name a database in which nobody else has made it" } else { "" };
                        StoreError::Unusable {
                            place: self.place(),
                            reason: (described(&error) + remedy).into(),
                        }
                    }
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
        let mut statements = Vec::with_capacity(self.schema.statements.len());
        for text in self.schema.statements {
            statements.push(client.prepare(text).await.map_err(wrong)?);
        }
        Ok(Link { client, statements })
    }

    /// Refuses a server that keeps less than was asked for.
    async fn check(&self, client: &Client) -> Result<(), StoreError> {
        let text = format!(
            "SELECT current_setting('fsync') = 'on', current_setting('synchronous_commit') <> 'off',
            pg_is_in_recovery(), current_setting('server_encoding'), EXISTS (SELECT 1 FROM pg_class JOIN pg_namespace ON
            pg_namespace.oid = relnamespace WHERE {} AND relpersistence <> 'p')",
            self.schema.relations
        );
        let wrong = |error: Error| StoreError::no_answer(described(&error));
        let row = client.query_one(&text, &[]).await.map_err(wrong)?;
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
            (true, _) => (Durability::Memory, "make its tables LOGGED"),
            (false, false) => {
                (Durability::Buffered, "let the server sync (fsync = on, synchronous_commit = on)")
            }
            (false, true) => (Durability::Synced, ""),
        };
        if given >= wanted { Ok(()) } else { Err(StoreError::LessDurable { place, given, wanted, remedy }) }
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
