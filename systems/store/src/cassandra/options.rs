//! What can be set about messages in Cassandra.

use std::str::FromStr;
use std::time::Duration;

use scylla::statement::Consistency as Cql;

use crate::error::StoreError;

/// Most waiting writes that can be set.
pub const WAITING_MAX: usize = 1_000_000;
/// Most writes in flight that can be set: a connection carries 32,768 at once.
pub const IN_FLIGHT_MAX: usize = 100_000;
/// Most replicas that can be set.
pub const REPLICATION_MAX: u8 = 9;
/// Nodes that everything is kept on unless told otherwise, where there are as many.
const REPLICATION_AUTO_MAX: usize = 3;
/// The longest name of a keyspace that Cassandra takes.
const KEYSPACE_LEN_MAX: usize = 48;

/// How many of a message's replicas have to have it before it is acknowledged.
///
/// Reads ask so many that they meet every acknowledged write, whichever replicas took it: all after `one`, a
/// majority after a majority, one after `all`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// One of them.
    One,
    /// A majority.
    Quorum,
    /// A majority of those in the data centre that is asked.
    LocalQuorum,
    /// All of them.
    All,
}

impl Consistency {
    /// Every name, as [`FromStr`] takes it.
    pub const NAMES: [&str; 4] = ["one", "quorum", "local-quorum", "all"];

    pub(super) fn of_writes(self) -> Cql {
        match self {
            Consistency::One => Cql::One,
            Consistency::Quorum => Cql::Quorum,
            Consistency::LocalQuorum => Cql::LocalQuorum,
            Consistency::All => Cql::All,
        }
    }

    pub(super) fn of_reads(self) -> Cql {
        match self {
            Consistency::One => Cql::All,
            Consistency::Quorum => Cql::Quorum,
            Consistency::LocalQuorum => Cql::LocalQuorum,
            Consistency::All => Cql::One,
        }
    }
}

impl FromStr for Consistency {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let all = [Consistency::One, Consistency::Quorum, Consistency::LocalQuorum, Consistency::All];
        let found = Consistency::NAMES.iter().zip(all).find(|(name, _)| **name == text);
        found.map(|(_, consistency)| consistency).ok_or_else(|| {
            let names = Consistency::NAMES.join(", ");
            StoreError::invalid("the consistency", format!("there is no {text}; it is one of {names}"))
        })
    }
}

/// Where Cassandra is, and how it is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Addresses of some of its nodes, as `HOST:PORT`; the others are learnt from them.
    pub contact: Vec<String>,
    /// The keyspace of the table; made if it is not there.
    pub keyspace: String,
    /// On how many nodes each message is kept.
    pub replication: u8,
    /// How many of these acknowledge a write.
    pub consistency: Consistency,
    /// Most writes taken and not answered yet; more are refused.
    pub waiting_max: usize,
    /// Most of these that are sent; the others wait their turn.
    pub in_flight: usize,
    /// Connections to each node: those of the store, and as many of each runtime that has settled.
    pub connections: usize,
    /// How long an answer is waited for, retries included.
    pub timeout: Duration,
    /// After so long without an answer a second node is asked as well, where there are several: the first may
    /// stand still.
    pub second_node_after: Duration,
    /// Threads that read and write the connections of the store.
    pub threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            contact: vec!["127.0.0.1:9042".to_owned()],
            keyspace: "tidemark".to_owned(),
            replication: 1,
            consistency: Consistency::Quorum,
            waiting_max: 8192,
            in_flight: 1024,
            connections: 1,
            timeout: Duration::from_secs(10),
            second_node_after: Duration::from_secs(1),
            threads: 2,
        }
    }
}

/// How settings are written as texts; none where a text is no value.
impl Options {
    /// Addresses with commas between.
    pub fn contact_of(text: &str) -> Option<Vec<String>> {
        let contact: Vec<String> = text.split(',').map(|node| node.trim().to_owned()).collect();
        contact.iter().all(|contact| is_address(contact)).then_some(contact)
    }

    /// A keyspace.
    pub fn keyspace_of(text: &str) -> Option<String> {
        is_keyspace(text).then(|| text.to_owned())
    }

    /// A replication, or `auto`: as many nodes as `contact` names, at most 3.
    pub fn replication_of(text: &str, contact: &[String]) -> Option<u8> {
        match text {
            "auto" => Some(contact.len().clamp(1, REPLICATION_AUTO_MAX) as u8),
            text => text.parse().ok().filter(|count| (1..=REPLICATION_MAX).contains(count)),
        }
    }
}

impl Options {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// The first value that is out of its bounds.
    pub fn check(&self) -> Result<(), StoreError> {
        let refuse = |what, reason: String| Err(StoreError::invalid(what, reason));
        if self.contact.is_empty() {
            return refuse("an empty list of contact points", "name one node at least, as HOST:PORT".into());
        }
        if let Some(wrong) = self.contact.iter().find(|contact| !is_address(contact)) {
            return refuse("the contact point", format!("{wrong:?} is not of the form HOST:PORT"));
        }
        if !is_keyspace(&self.keyspace) {
            let reason = format!(
                "{:?} is not one to {KEYSPACE_LEN_MAX} small letters, digits and underscores that begin with a letter",
                self.keyspace
            );
            return refuse("the name of the keyspace", reason);
        }
        let within = |what, value: usize, max: usize| match value {
            value if (1..=max).contains(&value) => Ok(()),
            value => Err(StoreError::invalid(what, format!("{value} is not within 1 to {max}"))),
        };
        within("the replication", self.replication.into(), REPLICATION_MAX.into())?;
        within("the bound of waiting writes", self.waiting_max, WAITING_MAX)?;
        within("the bound of writes in flight", self.in_flight, IN_FLIGHT_MAX)?;
        within("the number of connections", self.connections, 64)?;
        within("the number of threads", self.threads, 64)
    }
}

fn is_address(contact: &str) -> bool {
    contact.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && !host.contains(char::is_whitespace)
            && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

fn is_keyspace(name: &str) -> bool {
    let of_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.len() <= KEYSPACE_LEN_MAX
        && name.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && name.bytes().all(of_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_can_work() {
        assert!(Options::default().check().is_ok());
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_reason() {
        let good = Options::default;
        let wrong = [
            (Options { contact: Vec::new(), ..good() }, "name one node"),
            (Options { contact: vec!["localhost".into()], ..good() }, "\"localhost\" is not of the form"),
            (Options { contact: vec![":9042".into()], ..good() }, "HOST:PORT"),
            (Options { contact: vec!["a:0".into()], ..good() }, "HOST:PORT"),
            (Options { keyspace: "Robert'); DROP".into(), ..good() }, "small letters"),
            (Options { keyspace: "1a".into(), ..good() }, "begin with a letter"),
            (Options { keyspace: String::new(), ..good() }, "begin with a letter"),
            (Options { keyspace: "a".repeat(49), ..good() }, "48"),
            (Options { replication: 0, ..good() }, "0 is not within 1 to 9"),
            (Options { waiting_max: 0, ..good() }, "waiting"),
            (Options { in_flight: 0, ..good() }, "in flight"),
            (Options { in_flight: IN_FLIGHT_MAX + 1, ..good() }, "100001"),
            (Options { connections: 65, ..good() }, "connections"),
            (Options { threads: 0, ..good() }, "threads"),
        ];
        for (options, expected) in wrong {
            let error = options.check().unwrap_err().to_string();
            assert!(error.contains(expected), "{error} does not say {expected}");
        }
    }

    #[test]
    fn reads_meet_every_acknowledged_write() {
        for replicas in 1..=9usize {
            let asked = |consistency| match consistency {
                Cql::One => 1,
                Cql::All => replicas,
                _ => replicas / 2 + 1,
            };
            for name in Consistency::NAMES {
                let consistency: Consistency = name.parse().unwrap();
                assert!(asked(consistency.of_writes()) + asked(consistency.of_reads()) > replicas, "{name}");
            }
        }
        let error = "two".parse::<Consistency>().unwrap_err().to_string();
        assert!(error.contains("there is no two") && error.contains("local-quorum"), "{error}");
    }
}
