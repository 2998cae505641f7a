//! Where PostgreSQL is, and how it is used.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::host_and_port;

crate::links::options! {
    product: "PostgreSQL",
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`; the database is there already.
    url: "postgres://postgres@127.0.0.1:5432/postgres",
    /// Connections; many requests share one.
    connections: 16,
    reads: config
}

impl Options {
    /// What the client is told.
    pub(super) fn config(&self) -> Result<Config, StoreError> {
        let what = "the address of PostgreSQL";
        let wrong = |reason: String| StoreError::invalid(what, reason);
        if !["postgres://", "postgresql://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            return Err(wrong("it is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE".into()));
        }
        if is_ambiguous(&self.url) {
            return Err(wrong(
                "write %40, %2F and %3F for an @, / and ? in a user's name or password".into(),
            ));
        }
        // what the parser says may name what it could not read
        let mut config: Config = self
            .url
            .parse()
            .map_err(|_| wrong("it is not of the form postgres://USER:PASSWORD@HOST:PORT/DATABASE".into()))?;
        if config.get_hosts().len() != 1 {
            return Err(wrong("it names no host, or several; name one".into()));
        }
        if config.get_hosts().iter().any(|host| matches!(host, Host::Tcp(name) if name.is_empty())) {
            return Err(wrong("it names no host".into()));
        }
        if config.get_user().is_none() {
            return Err(wrong("it names no user; put USER@ before the host".into()));
        }
        if config.get_ssl_mode() == SslMode::Require {
            return Err(wrong("sslmode=require is not possible: connections are without TLS".into()));
        }
        config.ssl_mode(SslMode::Disable).connect_timeout(self.timeout).application_name("tidemark");
        Ok(config)
    }
}

/// Whether an `@` stands where it may be a part of a password, and what is behind it then taken for a host.
fn is_ambiguous(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find(['/', '?']).is_some_and(|end| rest[end..].contains('@'))
}

/// Where an address leads to, made of what was read from it: no part of it that may be a password is in there.
fn place(url: &str) -> Arc<str> {
    let parsed = url.parse::<Config>().ok().filter(|_| !is_ambiguous(url));
    let Some(config) = parsed else { return "an address that cannot be read".into() };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    // of several the first: they are refused
    let place = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => host_and_port(name, port),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    format!("postgres://{place}/{}", config.get_dbname().unwrap_or_default()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(url: &str) -> Options {
        Options { url: url.to_owned(), ..Options::default() }
    }

    #[test]
    fn good_addresses_are_taken() {
        assert!(Options::default().check().is_ok());
        assert!(with("postgresql://me:secret@[::1]:5433/db").check().is_ok());
        assert!(with("postgres://me@%2Fvar%2Frun%2Fpostgresql/db").check().is_ok());
    }

    #[test]
    fn wrong_ones_are_told_without_the_password() {
        for (url, reason) in [
            ("me:hunter2@host/db", "not of the form"),
            ("http://me:hunter2@host/db", "not of the form"),
            ("postgres://me:hunter2@host:port/db", "not of the form"),
            ("postgres://me:hunter2@a,b/db", "several"),
            ("postgres://me:hunter2@host/db?sslmode=require", "TLS"),
            ("postgres://host/db", "no user"),
            ("postgres://host/db?user=me&password=hunter2@x", "%40"),
            ("", "not of the form"),
        ] {
            let error = with(url).check().unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("hunter2"), "{url}: {error}");
        }
        for url in [
            "postgres://me:hunter2@host/db",
            "postgres://host/db?user=me&password=hun@ter2",
            "host=h user=me password='hun@ter2' dbname=db",
            "postgres://me:hun%40ter2@host/db",
            "hunter2",
        ] {
            let shown = format!("{:?} {}", with(url), with(url).place());
            assert!(!shown.contains("ter2"), "{url}: {shown}");
        }
        assert_eq!(&*with("postgres://me:secret@host:1/db").place(), "postgres://host:1/db");
        assert_eq!(&*with("postgres://me:secret@[::1]/db").place(), "postgres://[::1]:5432/db");
        assert!(Options { connections: 0, ..Options::default() }.check().is_err());
    }
}
