//! Where MariaDB is, and how it is used.

use std::sync::Arc;
use std::time::Duration;

use mysql_async::{Opts, OptsBuilder};

use crate::durability::Durability;
use crate::error::StoreError;
use crate::links::host_and_port;

crate::links::options! {
    product: "MariaDB",
    /// `mysql://USER:PASSWORD@HOST:PORT/DATABASE`; the database is there already.
    url: "mysql://feed@127.0.0.1:3306/feed",
    /// Connections, and hence most requests at once.
    connections: 16,
    reads: opts
}

impl Options {
    /// What the client is told.
    pub(super) fn opts(&self) -> Result<Opts, StoreError> {
        let what = "the address of MariaDB";
        let wrong = |reason: &str| StoreError::invalid(what, reason);
        let form = "it is not of the form mysql://USER:PASSWORD@HOST:PORT/DATABASE";
        if !self.url.starts_with("mysql://") {
            return Err(wrong(form));
        }
        if is_ambiguous(&self.url) {
            return Err(wrong(
                "write %40, %2F, %3F and %23 for an @, /, ? and # in a user's name or password",
            ));
        }
        if self.url.contains(['?', '#']) {
            return Err(wrong("it has parameters, which are not taken; leave them away"));
        }
        // what the parser says may name what it could not read
        let opts = Opts::from_url(&self.url).map_err(|_| wrong(form))?;
        if opts.user().is_none_or(str::is_empty) {
            return Err(wrong("it names no user; put USER@ before the host"));
        }
        if opts.db_name().is_none_or(str::is_empty) {
            return Err(wrong("it names no database; put /DATABASE behind the host"));
        }
        // a little sooner than the connection is given up
        let timeout_s = (self.timeout * 9 / 10).as_secs_f64();
        let session = format!(
            "SET SESSION max_statement_time = {timeout_s}, innodb_lock_wait_timeout = {}, autocommit = 1,
             tx_isolation = 'READ-COMMITTED', sql_mode = 'STRICT_TRANS_TABLES,NO_ENGINE_SUBSTITUTION'",
            self.timeout.as_secs().max(1)
        );
        Ok(OptsBuilder::from_opts(opts).prefer_socket(false).init(vec![session]).into())
    }
}

/// Whether an `@` stands where it may be a part of a password, and what is behind it then taken for a host.
fn is_ambiguous(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find(['/', '?', '#']).is_some_and(|end| rest[end..].contains('@'))
}

/// Where an address leads to, made of what was read from it: no part of it that may be a password is in there.
fn place(url: &str) -> Arc<str> {
    let parsed = Opts::from_url(url).ok().filter(|_| !is_ambiguous(url));
    let Some(opts) = parsed else { return "an address that cannot be read".into() };
    let place = host_and_port(opts.ip_or_hostname().trim_matches(['[', ']']), opts.tcp_port());
    format!("mysql://{place}/{}", opts.db_name().unwrap_or_default()).into()
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
        assert!(with("mysql://me:secret@[::1]:3307/db").check().is_ok());
    }

    #[test]
    fn wrong_ones_are_told_without_the_password() {
        for (url, reason) in [
            ("me:hunter2@host/db", "not of the form"),
            ("http://me:hunter2@host/db", "not of the form"),
            ("mysql://me:hunter2@host:port/db", "not of the form"),
            ("mysql://host/db", "no user"),
            ("mysql://me:hunter2@host", "no database"),
            ("mysql://me:hunter2@host/", "no database"),
            ("mysql://me:hunter2@host/db?require_ssl=true", "parameters"),
            ("mysql://me:1#hunter2@host/db", "%23"),
            ("mysql://me:1/hunter2@host/db", "%2F"),
            ("", "not of the form"),
        ] {
            let error = with(url).check().unwrap_err().to_string();
            assert!(error.contains(reason) && !error.contains("hunter2"), "{url}: {error}");
            let shown = format!("{:?} {}", with(url), with(url).place());
            assert!(!shown.contains("hunter2"), "{url}: {shown}");
        }
        assert_eq!(&*with("mysql://me:secret@host:1/db").place(), "mysql://host:1/db");
        assert_eq!(&*with("mysql://me:secret@[::1]/db").place(), "mysql://[::1]:3306/db");
        assert!(Options { connections: 0, ..Options::default() }.check().is_err());
    }
}
