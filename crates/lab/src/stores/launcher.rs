//! How instances of a product come to be: the seam between a product and everything that is the same for all of them.

use std::fmt;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::Signal;
use tidemark_scenario::plan::Store;

use super::jars::Jars;
use super::java::{self, Java, Needs};
use crate::error::LabError;
use crate::interrupt::StopRequest;
use crate::process::Patience;

/// How long a node may take to connect, and for its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// A product: where its program comes from, how a node is configured, started, asked and stopped.
pub trait Launcher: Sync {
    /// Its program: found on this machine, or fetched where that is the way of this product.
    ///
    /// # Errors
    /// Where it is missing, with the package or what else to install.
    fn program(&self, store: &Store, fetch: &mut Fetch<'_>) -> Result<Program, LabError>;

    /// Usual ports: for clients, then those between nodes.
    fn ports(&self, store: &Store) -> &'static [u16];

    /// Whether its nodes have one address and ports one after the other, in place of the same ports on addresses one
    /// after the other.
    fn is_in_a_row(&self) -> bool {
        false
    }

    /// The URL by which clients reach nodes at these addresses, with the password; none for a product that is known by
    /// addresses. As it stands here, that of a product which is asked over HTTP.
    fn url(&self, _: &Store, addresses: &[SocketAddr], _: &str) -> Option<String> {
        Some(format!("http://{}", addresses.first()?))
    }

    /// What a reader of the figures must know: durability, and what is not as in production.
    fn remarks(&self, store: &Store) -> String;

    /// The name by which an instance is told from all others; `unique` is 16 letters.
    fn identity(&self, unique: &str) -> String {
        format!("tidemark-{unique}")
    }

    /// The user that its processes run as where this process is root; none for root.
    fn user(&self) -> Option<&'static str> {
        None
    }

    /// The signal by which it is asked to end and leaves its data whole.
    fn stop_signal(&self) -> Signal {
        Signal::TERM
    }

    /// Writes a node's configuration.
    fn write(&self, node: &NodeSetup<'_>) -> io::Result<()>;

    /// A command to be carried out once, before a node's first start.
    fn before_first_start(&self, _: &NodeSetup<'_>) -> Option<Vec<String>> {
        None
    }

    /// The command that starts a node. An error means that the program is not whole.
    fn command(&self, node: &NodeSetup<'_>) -> io::Result<Vec<String>>;

    /// Asks a node whether it serves and is of this instance, and, where `all` says so, whether it holds
    /// that many nodes for alive, itself included.
    fn ask(&self, place: NodeAddress, identity: &Identity, all: Option<usize>) -> Result<(), NotReady>;

    /// Whether a restarted node ended only because processes of its killed predecessor are not gone yet, by the end of its
    /// log. It is then started again.
    fn is_held_up_by_predecessor(&self, _log: &str) -> bool {
        false
    }

    /// Whether nodes become one only by being [joined](Launcher::join) once they serve for the first time.
    fn is_joined(&self, _: &Store) -> bool {
        false
    }

    /// Makes nodes that are up one.
    ///
    /// # Errors
    /// Where one of them refuses, it takes too long, or there is no patience left.
    fn join(&self, _: &Store, _: &[NodeAddress], _: &Identity, _: Patience<'_>) -> io::Result<()> {
        Ok(())
    }
}

/// What tells an instance from all others.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The name that it has, where nodes say it.
    pub name: String,
    /// What its clients need, where its product has passwords. It stands in the folders of data, which only the user
    /// enters that the nodes run as, and nowhere else.
    pub password: String,
}

/// Without the password.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("name", &self.name).finish_non_exhaustive()
    }
}

impl From<&str> for Identity {
    fn from(name: &str) -> Identity {
        Identity { name: name.into(), password: String::new() }
    }
}

/// A password that nobody guesses: 32 letters and digits of the kernel's random numbers.
///
/// # Errors
/// If the kernel gives none.
pub fn password() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// What fetching takes.
pub struct Fetch<'a> {
    /// Where everything fetched is kept.
    pub cache: &'a Path,
    /// Whether this process is to stop.
    pub stop_request: &'a dyn Fn() -> StopRequest,
    /// Says what takes its time.
    pub tell: &'a mut dyn FnMut(String),
}

/// What nodes of a product are started with.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// Product and version for people: `Cassandra 5.0.9`.
    pub title: String,
    /// The folder of its jars, or of its programs.
    pub folder: PathBuf,
    /// What it runs on, if that is Java.
    pub java: Option<Java>,
}

impl Program {
    /// The program that runs jars.
    pub fn java(&self) -> String {
        self.java.as_ref().map_or_else(|| "java".into(), |java| text(&java.program))
    }
}

/// A product's jars, fetched where they are not there yet, and a Java for them.
///
/// # Errors
/// Where Java is missing, or the jars cannot be fetched.
pub fn with_jars(jars: Jars, needs: Needs, fetch: &mut Fetch<'_>) -> Result<Program, LabError> {
    let java = java::find(jars.title, needs)?;
    let folder = jars.get(fetch.cache, fetch.stop_request, fetch.tell)?;
    Ok(Program { title: jars.title.into(), folder, java: Some(java) })
}

/// Where a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeAddress {
    /// Where it listens.
    pub listens: SocketAddr,
    /// Where its clients connect, and what it says that its address is.
    pub address: SocketAddr,
    /// The process that is to answer there, while it is up.
    pub process: Option<u32>,
}

impl From<SocketAddr> for NodeAddress {
    /// Without a link it is the same.
    fn from(address: SocketAddr) -> NodeAddress {
        NodeAddress { listens: address, address, process: None }
    }
}

/// Why a node is not ready.
#[derive(Debug)]
pub enum NotReady {
    /// It may be later.
    Yet(io::Error),
    /// A node of another instance, known by this, answers in its place.
    Another(String),
}

impl NotReady {
    /// That who answers is the one that is `wanted`.
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
            NotReady::Another(other) => write!(f, "another instance, `{other}`, answers there"),
        }
    }
}

/// Connects to a node, which has so long for that and for each part of its answer.
pub fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sixteen letters and digits that no other run has.
pub fn unique() -> String {
    // its keys are random; process and time only help
    let id = RandomState::new().hash_one((std::process::id(), SystemTime::now()));
    format!("{id:016x}")
}

/// What one node is started with.
pub struct NodeSetup<'a> {
    /// What the scenario says.
    pub store: &'a Store,
    /// From 0.
    pub index: usize,
    /// By which its instance is told from all others.
    pub identity: &'a str,
    /// What its clients need, where its product has passwords; for its folder of data only.
    pub password: &'a str,
    /// Addresses of all nodes, as they and their clients know them.
    pub addresses: &'a [IpAddr],
    /// The address at which it takes clients: its own, or another where a link stands there.
    pub listen: IpAddr,
    /// Its ports, in the order of [`Launcher::ports`].
    pub ports: &'a [u16],
    /// Its folder of configuration.
    pub configuration: PathBuf,
    /// Its folder of data, which belongs to the user that it runs as.
    pub data: PathBuf,
    /// What it is started with.
    pub program: &'a Program,
}

/// A path as a word of a command.
pub fn text(path: &Path) -> String {
    path.display().to_string()
}

/// A path as configurations in YAML take any.
pub fn yaml_quoted(path: &Path) -> String {
    format!("'{}'", text(path).replace('\'', "''"))
}

/// A path as configurations of MariaDB and Redis take any.
pub fn quoted(path: &Path) -> String {
    format!("\"{}\"", text(path).replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const ADDRESSES: &[IpAddr] = &[IpAddr::V4(Ipv4Addr::LOCALHOST)];

    /// The only node of a store, behind a link.
    pub fn node<'a>(store: &'a Store, ports: &'a [u16], program: &'a Program) -> NodeSetup<'a> {
        NodeSetup {
            store,
            index: 0,
            identity: "tidemark-1",
            password: "p",
            addresses: ADDRESSES,
            listen: Ipv4Addr::new(127, 0, 0, 11).into(),
            ports,
            configuration: "/run/stores/it's here".into(),
            data: "/run/data/a b".into(),
            program,
        }
    }
}
