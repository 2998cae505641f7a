//! Where Redis is, and how it is used.

use std::sync::Arc;
use std::time::Duration;

use redis::{ConnectionAddr, IntoConnectionInfo};

use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::host_and_port;

crate::links::options! {
    product: "Redis",
    /// `redis://USER:PASSWORD@HOST:PORT/NUMBER`; the database with this number (0 if there is none) is the store's alone.
    url: "redis://127.0.0.1:6379",
    /// Connections; many requests share one.
    connections: 2,
    reads: client
}

impl Options {
    /// What connects.
    pub(super) fn client(&self) -> Result<redis::Client, StoreError> {
        let wrong = |reason: &str| StoreError::invalid("the address of Redis", reason);
        if self.url.starts_with("rediss:") {
            return Err(wrong("connections are without TLS; use redis://"));
        }
        let form = "it is not of the form redis://USER:PASSWORD@HOST:PORT/NUMBER";
        if !["redis://", "redis+unix://"].iter().any(|scheme| self.url.starts_with(scheme)) {
            return Err(wrong(form));
        }
        // what the parser says may name what it could not read
        let info = self.url.as_str().into_connection_info().map_err(|_| wrong(form))?;
        redis::Client::open(info).map_err(|_| wrong(form))
    }
}

/// Where an address leads to, made of what was read from it: no part of it that may be a password is in there.
fn place(url: &str) -> Arc<str> {
    match url.into_connection_info() {
        Ok(info) => {
            let place = match info.addr() {
                ConnectionAddr::Tcp(host, port) => host_and_port(host, *port),
                other => other.to_string(),
            };
            format!("redis://{place}/{}", info.redis_settings().db()).into()
        }
        Err(_) => "an address that cannot be read".into(),
    }
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
        assert!(with("redis://me:secret@[::1]:6380/3").check().is_ok());
    }

    #[test]
    fn wrong_ones_are_told_without_the_password() {
        for (url, reason) in [
            ("me:hunter2@host", "not of the form"),
            ("http://me:hunter2@host", "not of the form"),
            ("redis://me:hunter2@host:port", "not of the form"),
            ("redis://me:hunter2@host/many", "not of the form"),
            ("rediss://me:hunter2@host", "TLS"),
            ("", "not of the form"),
        ] {
            let error = with(url).check().unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("hunter2"), "{url}: {error}");
        }
        for url in [
            "redis://me:hunter2@host",
            "redis+unix:///x?pass=hun@ter2",
            "redis+unix:///x?user=me&pass=hunter2&db=3",
            "redis://:hun%40ter2@host/1",
            "hunter2",
        ] {
            let shown = format!("{:?} {}", with(url), with(url).place());
            assert!(!shown.contains("ter2"), "{url}: {shown}");
        }
        assert_eq!(&*with("redis://me:secret@[::1]:6380/3").place(), "redis://[::1]:6380/3");
        assert!(Options { waiting_max: 0, ..Options::default() }.check().is_err());
    }
}
