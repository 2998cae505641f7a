//! Several servers of one system, among which requests go by their keys.
//!
//! Which server a key belongs to is a [`Sharding`]: a ring of points (`consistent`), or slots, of which each server has
//! a part (`slots`), be it for good or as a Redis Cluster says it at the time. What carries the requests is in
//! [`transport`].

mod keyed;
mod ring;
mod router;
mod slots;
mod transport;

use std::net::SocketAddr;

pub use tidemark_scenario::system_url::Sharding;

pub(crate) use keyed::{Keyed, Redirect};
use ring::Ring;
use slots::Slots;
pub(crate) use slots::tag;
pub(crate) use transport::sharded_transport;

/// A server among several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// As it was named: `127.0.0.1:7000`. A ring's points come from it.
    pub name: String,
    /// Where it is.
    pub address: SocketAddr,
}

/// Servers that share keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shards {
    /// All that are known; of a cluster those that have slots come first.
    pub servers: Vec<Server>,
    /// Who has which key.
    pub sharding: Sharding,
    /// Which slots a server of a cluster has: first, last, and the index of the server.
    pub parts: Vec<(u16, u16, u16)>,
}

/// Servers that there is room for at a time beside those known at the start; one without slots gives its place up.
const NEW_SERVERS: usize = 8;

impl Shards {
    /// Servers that share keys for good.
    pub fn new(servers: Vec<Server>, sharding: Sharding) -> Shards {
        Shards { servers, sharding, parts: Vec::new() }
    }

    /// How many servers carry requests.
    pub(crate) fn active(&self) -> usize {
        let with_slots = self.parts.iter().map(|(.., server)| usize::from(*server) + 1).max();
        with_slots.unwrap_or(self.servers.len()).max(1)
    }

    /// How many servers there is room for.
    pub(crate) fn room(&self) -> usize {
        self.servers.len() + if self.sharding == Sharding::Cluster { NEW_SERVERS } else { 0 }
    }

    /// Connections of a thread that has a share of them: equally many to each server that carries requests.
    pub(crate) fn share(&self, connections: usize) -> usize {
        self.active() * self.each(connections)
    }

    /// Of so many connections, those to each server.
    pub(crate) fn each(&self, connections: usize) -> usize {
        connections.div_ceil(self.active()).max(1)
    }
}
