//! Where OpenSearch or Solr is, and how it is used.

use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;

use super::engine::Engine;
use crate::error::StoreError;
use crate::links::{Bounds, host_and_port};

/// The longest name of an index that it takes.
const INDEX_LEN_MAX: usize = 255;

/// Where OpenSearch or Solr is, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Which of the two.
    pub engine: Engine,
    /// `http://HOST:PORT`.
    pub url: String,
    /// The index of the stories, which is made in OpenSearch if it is not there; or Solr's core.
    pub index: String,
    /// Connections; each carries one request at a time.
    pub connections: usize,
    /// Most stories, and most searches, taken and not answered yet; more are refused.
    pub waiting_max: usize,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How long the start waits for a server that is not there yet.
    pub start_timeout: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            engine: Engine::OpenSearch,
            url: "http://127.0.0.1:9200".to_owned(),
            index: "feed".to_owned(),
            connections: 8,
            waiting_max: 8192,
            timeout: Duration::from_secs(5),
            start_timeout: Duration::from_secs(30),
        }
    }
}

impl Options {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// The first value that is none, or out of its bounds.
    pub fn check(&self) -> Result<(), StoreError> {
        self.address()?;
        let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
        let begins = self.index.bytes().next().is_some_and(|first| first.is_ascii_lowercase());
        if !begins || self.index.len() > INDEX_LEN_MAX || !self.index.bytes().all(of_name) {
            let reason = format!(
                "{:?} is not one to {INDEX_LEN_MAX} small letters, digits, underscores and hyphens that begin with a letter",
                self.index
            );
            return Err(StoreError::invalid("the name of the index", reason));
        }
        self.bounds().check()
    }

    pub(super) fn bounds(&self) -> Bounds {
        let Options { connections, waiting_max, timeout, start_timeout, .. } = *self;
        Bounds { connections, waiting_max, timeout, start_timeout }
    }

    /// `HOST:PORT`.
    pub(super) fn address(&self) -> Result<Arc<str>, StoreError> {
        let wrong = |reason: &str| StoreError::invalid("the address of the index", reason);
        if self.url.starts_with("https:") {
            return Err(wrong("connections are without TLS; use http://"));
        }
        let form = "it is not of the form http://HOST:PORT";
        let url: Uri = self.url.parse().map_err(|_| wrong(form))?;
        let authority = url.authority().filter(|_| url.scheme_str() == Some("http"));
        let authority = authority.filter(|_| ["", "/"].contains(&url.path()) && url.query().is_none());
        let authority = authority.ok_or_else(|| wrong(form))?;
        if authority.as_str().contains('@') {
            return Err(wrong("it has a user; only servers that ask for none are reached"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let port = match authority.port() {
            None if authority.as_str() != authority.host() => return Err(wrong(form)),
            None => self.engine.port(),
            Some(port) => port.as_u16(),
        };
        match host {
            "" => Err(wrong(form)),
            host => Ok(host_and_port(host, port).into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_addresses_are_taken() {
        assert!(Options::default().check().is_ok());
        let address = |url: &str| Options { url: url.to_owned(), ..Options::default() }.address().unwrap();
        assert_eq!(&*address("http://127.0.0.1:9200/"), "127.0.0.1:9200");
        assert_eq!(&*address("http://search"), "search:9200");
        assert_eq!(&*address("http://[::1]:1"), "[::1]:1");
    }

    #[test]
    fn wrong_options_are_told() {
        let good = Options::default;
        let url = |url: &str| Options { url: url.to_owned(), ..good() };
        let index = |index: &str| Options { index: index.to_owned(), ..good() };
        for (options, reason) in [
            (url("127.0.0.1:9200"), "not of the form"),
            (url(""), "not of the form"),
            (url("http://host:port"), "not of the form"),
            (url("http://host/feed"), "not of the form"),
            (url("https://host"), "TLS"),
            (url("http://me:hunter2@host"), "it has a user"),
            (index("Feed"), "small letters"),
            (index("_all"), "begin with a letter"),
            (index("feed/_search"), "small letters"),
            (Options { connections: 0, ..good() }, "connections"),
        ] {
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("hunter2"), "{options:?}: {error}");
        }
    }
}
