//! A connection, and the statements that were prepared on it. A task has it and carries out one request after the other: one that
//! nobody waits for any more does not leave it in the middle of an answer.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error, Opts, Params, Row, ServerError, Value};
use tokio::sync::{mpsc, oneshot};

use super::options::Options;
use super::schema::{Found, Schema};
use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::{Carrier, Connect, Failed};

/// How often a connection without requests is asked whether it lives.
const PING_EVERY: Duration = Duration::from_millis(500);

/// The text of a statement; each connection prepares it once, as long as it has not too many others.
pub(super) type Statement = Cow<'static, str>;

/// What a statement gave: rows, and how many it changed.
type Outcome = (Vec<Row>, u64);

/// A connection that is ready.
pub(super) struct Link {
    requests: mpsc::Sender<Request>,
}

struct Request {
    text: Statement,
    values: Vec<Value>,
    answer: oneshot::Sender<Result<Outcome, Failed>>,
}

impl Link {
    /// Carries a statement out.
    pub(super) async fn ask(&self, text: Statement, values: Vec<Value>) -> Result<Outcome, Failed> {
        let gone = || Failed::Lost("it was closed".to_owned());
        let (answer, answered) = oneshot::channel();
        self.requests.send(Request { text, values, answer }).await.map_err(|_| gone())?;
        answered.await.unwrap_or_else(|_| Err(gone()))
    }
}

/// Makes connections.
pub(super) struct Connector {
    options: Options,
    schema: &'static Schema,
    opts: Opts,
}

impl Connector {
    pub(super) fn new(options: Options, schema: &'static Schema) -> Result<Self, StoreError> {
        Ok(Connector { opts: options.opts()?, schema, options })
    }

    async fn dial(&self) -> Result<Conn, StoreError> {
        match tokio::time::timeout(self.options.timeout, Conn::new(self.opts.clone())).await {
            Ok(dialled) => dialled.map_err(|error| self.wrong(&error)),
            Err(_) => {
                let reason = format!("it did not take the connection for {:?}", self.options.timeout).into();
                Err(StoreError::Unreachable { place: self.place(), reason })
            }
        }
    }

    /// Why there is no connection, or none that can be used.
    fn wrong(&self, error: &Error) -> StoreError {
        let (place, reason) = (self.place(), described(error).into());
        match error {
            // too many connections, on its way down, too many connections of this user
            Error::Server(ServerError { code: 1040 | 1053 | 1203, .. }) => {
                StoreError::Unreachable { place, reason }
            }
            // user, password, database
            Error::Server(_) => StoreError::Unusable { place, reason },
            _ => StoreError::Unreachable { place, reason },
        }
    }

    /// Makes the tables and procedures.
    pub(super) async fn migrate(&self) -> Result<(), StoreError> {
        let mut conn = self.dial().await?;
        // the lock is given up a little sooner
        let wait_s = (self.options.start_timeout / 2).as_secs().max(1);
        let migrating = async {
            // what is defined may take longer than a request
            conn.query_drop("SET SESSION max_statement_time = 0").await?;
            self.schema.migrate(&mut conn, wait_s).await
        };
        let done = tokio::time::timeout(self.options.start_timeout, migrating).await;
        let found = done.unwrap_or(Ok(Found::Locked)).map_err(|error| self.wrong(&error))?;
        let reason = match found {
            Found::Ours => {
                // the lock goes with it
                let _ = tokio::time::timeout(self.options.timeout, conn.disconnect()).await;
                return Ok(());
            }
            Found::Locked => return Err(StoreError::no_answer("the schema was not made in time")),
            Found::Later(version) => {
                format!("its schema has version {version}, of a later version of this program; use that")
            }
            Found::Others => self.schema.others.to_owned(),
        };
        Err(StoreError::Unusable { place: self.place(), reason: reason.into() })
    }

    /// Looks at the server and prepares the statements.
    async fn make_ready(&self, conn: &mut Conn) -> Result<(), StoreError> {
        self.check(conn).await?;
        for text in self.schema.statements {
            conn.prep(*text).await.map_err(|error| self.wrong(&error))?;
        }
        Ok(())
    }

    /// Refuses a server that keeps less than was asked for.
    async fn check(&self, conn: &mut Conn) -> Result<(), StoreError> {
        let place = self.place();
        let text = "SELECT @@innodb_flush_log_at_trx_commit, @@log_bin AND @@sync_binlog <> 1, @@read_only, version()";
        let told = conn.query_first(text).await.map_err(|error| self.wrong(&error))?;
        let Some((flush, is_behind, is_read_only, version)): Option<(u8, bool, bool, String)> = told else {
            return Err(StoreError::no_answer("the server does not tell its settings"));
        };
        if !version.contains("MariaDB") {
            let reason = format!("it is not MariaDB ({version})").into();
            return Err(StoreError::Unusable { place, reason });
        }
        if is_read_only {
            let reason = "it takes no writes (read_only); name the primary".into();
            return Err(StoreError::Unusable { place, reason });
        }
        let given = kept_by(flush, is_behind);
        let wanted = self.options.durability;
        let remedy = "let it sync before it answers (innodb_flush_log_at_trx_commit = 1, sync_binlog = 1)";
        if given >= wanted { Ok(()) } else { Err(StoreError::LessDurable { place, given, wanted, remedy }) }
    }
}

/// What an acknowledged write is worth, by when the log is flushed, and whether a binary log, which decides after a crash, is
/// behind it.
fn kept_by(flush: u8, is_behind: bool) -> Durability {
    match (flush, is_behind) {
        (1 | 3, false) => Durability::Synced,
        (0, _) => Durability::Memory,
        _ => Durability::Buffered,
    }
}

impl Connect for Connector {
    type Link = Link;

    fn place(&self) -> Arc<str> {
        self.options.place()
    }

    async fn connect(&self) -> Result<(Link, Carrier), StoreError> {
        let mut conn = self.dial().await?;
        let ready = tokio::time::timeout(self.options.timeout, self.make_ready(&mut conn)).await;
        ready.unwrap_or_else(|_| Err(StoreError::no_answer("a new connection was not ready in time")))?;
        let (requests, taken) = mpsc::channel(self.options.waiting_max);
        let timeout = self.options.timeout;
        Ok((Link { requests }, Box::pin(carry(conn, taken, timeout))))
    }
}

/// Carries requests out until the connection is lost.
async fn carry(mut conn: Conn, mut requests: mpsc::Receiver<Request>, timeout: Duration) -> String {
    loop {
        let Ok(request) = tokio::time::timeout(PING_EVERY, requests.recv()).await else {
            match tokio::time::timeout(timeout, conn.ping()).await {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => return described(&error),
                Err(_) => return format!("it was silent for {timeout:?}"),
            }
        };
        let Some(Request { text, values, answer }) = request else { return "it was closed".to_owned() };
        if answer.is_closed() {
            continue;
        }
        let values = if values.is_empty() { Params::Empty } else { Params::Positional(values) };
        match conn.exec(text, values).await {
            Ok(rows) => _ = answer.send(Ok((rows, conn.affected_rows()))),
            Err(error) => {
                let reason = described(&error);
                let is_lost = error.is_fatal();
                let _ = answer.send(Err(failed(error)));
                if is_lost {
                    return reason;
                }
            }
        }
    }
}

/// What went wrong.
fn described(error: &Error) -> String {
    match error {
        Error::Server(ServerError { code, message, .. }) => format!("{message} ({code})"),
        error => error.to_string(),
    }
}

/// What a failed request says about its connection.
fn failed(error: Error) -> Failed {
    match &error {
        // data exception (the class of SQLSTATE)
        Error::Server(said) if said.state.starts_with("22") => Failed::Invalid(described(&error)),
        Error::Server(_) => Failed::Refused(described(&error)),
        _ => Failed::Lost(described(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_claimed_that_the_server_does_not_do() {
        let given = [(1, false), (3, false), (1, true), (2, false), (0, false), (0, true)];
        let [synced, buffered, memory] = [Durability::Synced, Durability::Buffered, Durability::Memory];
        let expected = [synced, synced, buffered, buffered, memory, memory];
        assert_eq!(given.map(|(flush, is_behind)| kept_by(flush, is_behind)), expected);
    }
}
