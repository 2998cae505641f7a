//! A connection, and what the server is asked before it is used.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, ErrorKind, RedisError};

use super::options::Options;
use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::{Carrier, Connect, Failed};

/// The key that says that a database is this store's; its value is the format of the others.
pub(super) const MARK: &str = "tidemark:sessions";
const FORMAT: &str = "1";
/// How often a connection is asked whether it lives.
const PING_EVERY: Duration = Duration::from_millis(500);

/// Makes connections.
pub(super) struct Connector {
    options: Options,
    client: Client,
}

impl Connector {
    pub(super) fn new(options: Options) -> Result<Self, StoreError> {
        Ok(Connector { client: options.client()?, options })
    }

    pub(super) async fn dial(&self) -> Result<MultiplexedConnection, StoreError> {
        let timeout = self.options.timeout;
        // each request has its own time-out
        let config =
            AsyncConnectionConfig::new().set_connection_timeout(Some(timeout)).set_response_timeout(None);
        let unreachable = |error: RedisError| {
            let (place, reason) = (self.options.place(), described(&error).into());
            match error.kind() {
                // password, database
                ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => {
                    StoreError::Unusable { place, reason }
                }
                ErrorKind::Server(_) if error.code() != Some("LOADING") => {
                    StoreError::Unusable { place, reason }
                }
                _ => StoreError::Unreachable { place, reason },
            }
        };
        let dialling = self.client.get_multiplexed_async_connection_with_config(&config);
        match tokio::time::timeout(timeout, dialling).await {
            Ok(dialled) => dialled.map_err(unreachable),
            Err(_) => {
                let reason = format!("it did not take the connection for {timeout:?}").into();
                Err(StoreError::Unreachable { place: self.options.place(), reason })
            }
        }
    }

    /// Refuses a server that keeps less than was asked for, or a database of somebody else.
    async fn check(&self, connection: &mut MultiplexedConnection) -> Result<(), StoreError> {
        let place = self.options.place();
        let (given, remedy) = kept(connection).await?;
        let wanted = self.options.durability;
        if given < wanted {
            return Err(StoreError::LessDurable { place, given, wanted, remedy });
        }
        let refused = |error: RedisError| StoreError::no_answer(described(&error));
        let mut info = redis::cmd("INFO");
        let replication: String = match info.arg("replication").query_async(connection).await {
            Err(error) if error.code() == Some("NOPERM") => {
                let reason = "let the user ask for INFO, so that a replica can be told from a master".into();
                return Err(StoreError::Unusable { place, reason });
            }
            told => told.map_err(refused)?,
        };
        if replication.lines().any(|line| line.trim_end() == "role:slave") {
            let reason = "it is a replica, whose writes its master takes back; name the master".into();
            return Err(StoreError::Unusable { place, reason });
        }
        let (keys, mark): (u64, Option<String>) =
            redis::pipe().atomic().cmd("DBSIZE").get(MARK).query_async(connection).await.map_err(refused)?;
        let reason = match (mark.as_deref(), keys) {
            (Some(FORMAT), _) => return Ok(()),
            (Some(_), _) => "its sessions were written by another version of this program; use that",
            (None, 0) => {
                return redis::cmd("SET")
                    .arg(MARK)
                    .arg(FORMAT)
                    .query_async(connection)
                    .await
                    .map_err(refused);
            }
            (None, _) => {
                "the database holds other data; name an empty one, for example 1 as in redis://HOST:PORT/1"
            }
        };
        Err(StoreError::Unusable { place, reason: reason.into() })
    }
}

/// What the server does with an acknowledged write, and what would make it do more.
async fn kept(connection: &mut MultiplexedConnection) -> Result<(Durability, &'static str), StoreError> {
    let mut settings = HashMap::new();
    // one by one: several names at once take Redis 7
    for name in ["appendonly", "appendfsync", "no-appendfsync-on-rewrite", "maxmemory", "maxmemory-policy"] {
        let mut command = redis::cmd("CONFIG");
        let asked: Result<HashMap<String, String>, RedisError> =
            command.arg("GET").arg(name).query_async(connection).await;
        match asked {
            Ok(told) => settings.extend(told),
            Err(error) if error.code() == Some("NOPERM") => {
                return Ok((Durability::Memory, "let the user ask for CONFIG GET, so that it can be known"));
            }
            Err(error) if is_lost(&error) => return Err(StoreError::no_answer(described(&error))),
            Err(_) => return Ok((Durability::Memory, "it does not tell (CONFIG GET); use one that does")),
        }
    }
    Ok(kept_by(|name| settings.get(name).map_or("", String::as_str)))
}

/// The same, of its settings.
fn kept_by<'a>(setting: impl Fn(&str) -> &'a str) -> (Durability, &'static str) {
    if setting("maxmemory") != "0" && setting("maxmemory-policy") != "noeviction" {
        return (Durability::Memory, "let it not forget what it took (maxmemory-policy noeviction)");
    }
    if setting("appendonly") != "yes" {
        return (Durability::Memory, "let it write what it takes (appendonly yes)");
    }
    if setting("appendfsync") != "always" || setting("no-appendfsync-on-rewrite") != "no" {
        let remedy = "let it sync before it answers (appendfsync always, no-appendfsync-on-rewrite no)";
        return (Durability::Buffered, remedy);
    }
    (Durability::Synced, "")
}

impl Connect for Connector {
    type Link = MultiplexedConnection;

    fn place(&self) -> Arc<str> {
        self.options.place()
    }

    async fn connect(&self) -> Result<(MultiplexedConnection, Carrier), StoreError> {
        let mut connection = self.dial().await?;
        let checked = tokio::time::timeout(self.options.timeout, self.check(&mut connection)).await;
        checked.unwrap_or_else(|_| Err(StoreError::no_answer("a new connection was not ready in time")))?;
        let carrier = carry(connection.clone(), self.options.timeout);
        Ok((connection, Box::pin(carrier)))
    }
}

/// Ends when a connection is lost: the client's own task reads it.
pub(super) async fn carry(mut connection: MultiplexedConnection, timeout: Duration) -> String {
    loop {
        tokio::time::sleep(PING_EVERY).await;
        let ping = redis::cmd("PING");
        let answered = tokio::time::timeout(timeout, ping.query_async::<()>(&mut connection)).await;
        match answered {
            Ok(Ok(())) => {}
            // it lives
            Ok(Err(error)) if !is_lost(&error) => {}
            Ok(Err(error)) => return described(&error),
            Err(_) => return format!("it was silent for {timeout:?}"),
        }
    }
}

fn is_lost(error: &RedisError) -> bool {
    !matches!(error.kind(), ErrorKind::Server(_) | ErrorKind::Extension)
}

/// What went wrong.
pub(super) fn described(error: &RedisError) -> String {
    error.to_string()
}

/// What a failed request says about its connection.
pub(super) fn failed(error: RedisError) -> Failed {
    if is_lost(&error) { Failed::Lost(described(&error)) } else { Failed::Refused(described(&error)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_claimed_that_the_server_does_not_do() {
        let with = |changed: &[(&str, &'static str)]| {
            let good = [
                ("appendonly", "yes"),
                ("appendfsync", "always"),
                ("no-appendfsync-on-rewrite", "no"),
                ("maxmemory", "0"),
                ("maxmemory-policy", "noeviction"),
            ];
            kept_by(|name| {
                let all = changed.iter().chain(&good);
                all.into_iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
            })
            .0
        };
        assert_eq!(with(&[]), Durability::Synced);
        assert_eq!(with(&[("appendfsync", "everysec")]), Durability::Buffered);
        assert_eq!(with(&[("no-appendfsync-on-rewrite", "yes")]), Durability::Buffered);
        assert_eq!(with(&[("appendonly", "no")]), Durability::Memory);
        assert_eq!(with(&[("maxmemory", "100000000")]), Durability::Synced);
        assert_eq!(
            with(&[("maxmemory", "100000000"), ("maxmemory-policy", "allkeys-lru")]),
            Durability::Memory
        );
        assert_eq!(kept_by(|_| "").0, Durability::Memory, "a server that does not tell");
    }
}
