//! A store of one node or several: its jars, ports and folders chosen, each node configured, then all of them started
//! together.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tidemark_record::manifest;
use tidemark_scenario::plan::{Product, Store};

use super::Setup;
use super::jars::{Jars, cache};
use super::java::{self, Java};
use super::kit::{Kit, NodeSetup, kit, unique};
use super::node::{self, Node};
use super::ports::Ports;
use crate::child::Spec;
use crate::error::LabError;
use crate::interrupt::Wish;
use crate::link::Link;
use crate::started::held;

/// How much higher the address is at which a node behind a link listens for the clients that the link brings.
const BEHIND: usize = 10;

/// One store; its data go with it.
#[derive(Debug)]
pub struct Cluster {
    // the order matters: the nodes go before their data
    pub nodes: Vec<Arc<Mutex<Node>>>,
    _data: Vec<DataDir>,
    /// Between nodes and their clients, by the nodes' names.
    pub links: Vec<(String, Arc<Link>)>,
    _ports: Ports,
    pub product: Product,
    pub manifest: manifest::Store,
    /// What a reader of the figures must know.
    pub remarks: String,
}

/// A data directory and whether it is kept; otherwise removed when dropped.
#[derive(Debug)]
struct DataDir(PathBuf, bool);

impl Drop for DataDir {
    fn drop(&mut self) {
        if !self.1 {
            // a rest that cannot be removed is within the run directory, where the user sees it
            let _ = fs::remove_dir_all(&self.0);
            // the folder of all data goes with the last that is in it
            let _ = self.0.parent().map(fs::remove_dir);
        }
    }
}

/// What is decided for a cluster before its nodes are made.
struct Site<'a> {
    store: &'a Store,
    setup: &'a Setup<'a>,
    kit: &'static dyn Kit,
    jars: Jars,
    lib: PathBuf,
    java: Java,
    /// A whole path.
    run_dir: PathBuf,
    /// The cluster's name.
    name: String,
    /// Where clients find the nodes.
    addresses: Vec<IpAddr>,
    /// Where the nodes listen: there, or behind links.
    listen: Vec<IpAddr>,
    ports: Ports,
}

/// What a cluster has of each node.
#[derive(Default)]
struct Members {
    nodes: Vec<Arc<Mutex<Node>>>,
    data: Vec<DataDir>,
    links: Vec<(String, Arc<Link>)>,
    /// To be carried out before any of them is started.
    firsts: Vec<Spec>,
}

impl<'a> Site<'a> {
    fn choose(
        store: &'a Store,
        setup: &'a Setup<'a>,
        wish: &dyn Fn() -> Wish,
        tell: &mut dyn FnMut(String),
    ) -> Result<Site<'a>, LabError> {
        let kit = kit(store.product);
        let jars = kit.jars(store.version);
        let java = java::find(jars.title)?;
        let cache = cache()?;
        let lib = jars.get(&cache, wish, tell)?;
        // all of them or none: brokers want the same of each, and no node is slower than another without its fault
        let linked = names(store).iter().any(|name| (setup.is_linked)(name));
        let addresses: Vec<IpAddr> = (0..store.nodes).map(|index| address(index, false)).collect();
        let listen: Vec<IpAddr> = (0..store.nodes).map(|index| address(index, linked)).collect();
        let all: Vec<IpAddr> = addresses.iter().chain(&listen).copied().collect();
        let ports = Ports::choose(jars.title, &all, kit.ports(), &cache)?;
        let run_dir = &setup.run_dir;
        // a process may have another working directory one day; paths in configurations are whole
        let run_dir = std::path::absolute(run_dir).map_err(|error| unwritable(run_dir, &error))?;
        let name = kit.cluster(&unique());
        Ok(Site { store, setup, kit, jars, lib, java, run_dir, name, addresses, listen, ports })
    }

    /// Configures a node, not yet started.
    fn add(&self, index: usize, members: &mut Members) -> Result<(), LabError> {
        let name = name(self.store, index);
        let one = NodeSetup {
            store: self.store,
            index,
            cluster: &self.name,
            addresses: &self.addresses,
            listen: self.listen[index],
            ports: &self.ports.numbers,
            configuration: self.run_dir.join("stores").join(&name),
            data: (self.setup.data_of)(&name).unwrap_or_else(|| self.run_dir.join("data").join(&name)),
            lib: self.lib.clone(),
        };
        members.data.push(DataDir(one.data.clone(), self.setup.keep_data));
        self.kit.write(&one).map_err(|error| unwritable(&self.run_dir, &error))?;
        let spec = self.spec(name, &one)?;
        let first = self.kit.before_first_start(&one, &self.java);
        members.firsts.extend(first.map(|command| Spec { command, ..spec.clone() }));
        let (kit, within) = (self.kit, self.store.ready_within);
        let place = |addresses: &[IpAddr]| SocketAddr::new(addresses[index], self.ports.numbers[0]);
        let address = place(&self.addresses);
        let mut node = Node::new(spec, address, one.data, kit, self.name.clone(), within);
        node.listens = place(&self.listen);
        if node.listens != address {
            let link = Link::between(address, node.listens);
            let link = link.map_err(|error| LabError::Start(format!("no link at {address}: {error}")))?;
            members.links.push((node.name.clone(), Arc::new(link)));
        }
        members.nodes.push(Arc::new(Mutex::new(node)));
        Ok(())
    }

    /// How a node is started.
    fn spec(&self, name: String, one: &NodeSetup<'_>) -> Result<Spec, LabError> {
        let command = self.kit.command(one, &self.java).map_err(|error| {
            LabError::Start(format!(
                "{} in {} is not whole: {error}; remove that folder, and it is fetched again",
                self.jars.title,
                self.lib.display()
            ))
        })?;
        let logs = self.run_dir.join("logs");
        fs::create_dir_all(&logs).map_err(|error| unwritable(&logs, &error))?;
        let log = logs.join(format!("{name}.log"));
        let (cores, yields) = (self.setup.cores.clone(), self.setup.cores.is_empty());
        // A store that is woken by each write of a client on its own core, and interrupts it for that, handles each by
        // itself; one that waits until the client has written all it has handles them together.
        Ok(Spec { cores, yields, takes_turns: true, ..Spec::new(name, command, log) })
    }

    fn manifest(&self, nodes: &[Arc<Mutex<Node>>]) -> manifest::Store {
        let store = self.store;
        manifest::Store {
            name: store.product.word().into(),
            version: self.jars.title.into(),
            java: self.java.version.clone(),
            addresses: nodes.iter().map(|node| held(node).address.to_string()).collect(),
            durability: if store.synced { "synced" } else { "buffered" }.into(),
            heap_bytes: store.heap_bytes,
            command: nodes.first().map(|node| held(node).spec.command.clone()).unwrap_or_default(),
        }
    }
}

impl Cluster {
    /// Starts a store and waits until all its nodes are ready.
    pub fn start(
        store: &Store,
        setup: &Setup<'_>,
        wish: &dyn Fn() -> Wish,
        tell: &mut dyn FnMut(String),
    ) -> Result<Cluster, LabError> {
        let site = Site::choose(store, setup, wish, tell)?;
        let mut members = Members::default();
        (0..store.nodes).try_for_each(|index| site.add(index, &mut members))?;
        let cluster = Cluster {
            manifest: site.manifest(&members.nodes),
            nodes: members.nodes,
            _data: members.data,
            links: members.links,
            _ports: site.ports,
            product: store.product,
            remarks: site.kit.remarks(store),
        };
        cluster.begin(site.jars.title, &members.firsts, wish, tell)?;
        Ok(cluster)
    }

    /// Starts all nodes together and waits until each serves and sees the others.
    fn begin(
        &self,
        title: &str,
        firsts: &[Spec],
        wish: &dyn Fn() -> Wish,
        tell: &mut dyn FnMut(String),
    ) -> Result<(), LabError> {
        tell(match self.nodes.len() {
            1 => format!("starting {title}"),
            count => format!("starting {title}, {count} nodes"),
        });
        let begin = Instant::now();
        let patience = || wish() == Wish::GoOn;
        node::carry_out(firsts, &patience)?;
        self.nodes.iter().try_for_each(|node| held(node).spawn())?;
        self.nodes.iter().try_for_each(|node| held(node).wait(begin, Some(self.nodes.len()), &patience))
    }
}

/// The address of a node: 127.0.0.1 and on, or, behind a link, 127.0.0.11 and on.
fn address(index: usize, behind: bool) -> IpAddr {
    let number = index + if behind { 1 + BEHIND } else { 1 };
    Ipv4Addr::new(127, 0, 0, u8::try_from(number).unwrap_or(u8::MAX)).into()
}

/// What the nodes of a store are called.
pub fn names(store: &Store) -> Vec<String> {
    (0..store.nodes).map(|index| name(store, index)).collect()
}

/// What a node is called: by its number only where there are several.
fn name(store: &Store, index: usize) -> String {
    match store.nodes {
        1 => store.product.word().to_owned(),
        _ => format!("{}.{}", store.product.word(), index + 1),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> LabError {
    LabError::Usage(format!("cannot write {}: {error}; choose another place with --out", path.display()))
}
