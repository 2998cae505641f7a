//! What the lab must know of a product to start it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::SystemTime;

use tidemark_scenario::plan::{Product, Store};

use super::cassandra::Cassandra;
use super::jars::Jars;
use super::java::Java;
use super::kafka::Kafka;

/// A product: where its jars come from, how a node is configured, started and asked.
pub trait Kit: Sync {
    /// The jars of a line of versions.
    fn jars(&self, version: &str) -> Jars;

    /// Usual ports: for clients, then those between nodes.
    fn ports(&self) -> &'static [u16];

    /// The setting by which a shipped system learns where it is.
    fn setting(&self) -> &'static str;

    /// What a reader of the figures must know: durability, and what is not as in production.
    fn remarks(&self, store: &Store) -> String;

    /// A cluster's name, in the form that the product takes; `unique` is 16 letters.
    fn cluster(&self, unique: &str) -> String;

    /// Writes a node's configuration.
    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()>;

    /// A command to be carried out once, before a node's first start.
    fn before_first_start(&self, node: &NodeSetup<'_>, java: &Java) -> Option<Vec<String>>;

    /// The command that starts a node. An error means that the jars are not whole.
    fn command(&self, node: &NodeSetup<'_>, java: &Java) -> io::Result<Vec<String>>;

    /// Asks a node whether it serves and is of `cluster`, and, where `all` says so, whether it holds that many nodes
    /// for alive, itself included.
    fn ask(&self, place: Place, cluster: &str, all: Option<usize>) -> Result<(), NotReady>;
}

/// Where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Where it listens.
    pub listens: SocketAddr,
    /// Where its clients connect, and what it says that its address is.
    pub address: SocketAddr,
}

impl From<SocketAddr> for Place {
    /// Without a link it is the same.
    fn from(address: SocketAddr) -> Place {
        Place { listens: address, address }
    }
}

/// Why a node is not ready.
#[derive(Debug)]
pub enum NotReady {
    /// It may be later.
    Yet(io::Error),
    /// A node of a cluster of this name answers in its place.
    Another(String),
}

impl NotReady {
    /// That the cluster that answers is the one that is `wanted`.
    pub fn unless_same(found: String, wanted: &str) -> Result<(), NotReady> {
        if found == wanted { Ok(()) } else { Err(NotReady::Another(found)) }
    }
}

impl From<io::Error> for NotReady {
    fn from(error: io::Error) -> NotReady {
        NotReady::Yet(error)
    }
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotReady::Yet(error) => error.fmt(f),
            NotReady::Another(cluster) => write!(f, "a node of another cluster, `{cluster}`, answers there"),
        }
    }
}

/// Sixteen letters and digits that no other run has.
pub fn unique() -> String {
    // its keys are random; process and time only help
    let id = RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    format!("{id:016x}")
}

/// The kit of a product.
pub fn kit(product: Product) -> &'static dyn Kit {
    match product {
        Product::Cassandra => &Cassandra,
        Product::Kafka => &Kafka,
    }
}

/// What one node is started with.
pub struct NodeSetup<'a> {
    /// What the scenario says.
    pub store: &'a Store,
    /// From 0.
    pub index: usize,
    /// Its cluster's name, which no other run has.
    pub cluster: &'a str,
    /// Addresses of all nodes, as they and their clients know them.
    pub addresses: &'a [IpAddr],
    /// The address at which it takes clients: its own, or another where a link stands there.
    pub listen: IpAddr,
    /// Its ports, in the order of [`Kit::ports`].
    pub ports: &'a [u16],
    /// Its folder of configuration.
    pub configuration: PathBuf,
    /// Its folder of data.
    pub data: PathBuf,
    /// The jars.
    pub lib: PathBuf,
}
