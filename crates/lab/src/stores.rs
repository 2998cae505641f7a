//! Stores of other people's making, started for a run: fetched once, configured in the run directory, watched and
//! stopped like the system that uses them.
//!
//! A product is a module beside this: where its jars come from, what its configuration is, how a node is asked
//! whether it serves. Everything else is the same for all of them: a node is what faults break and the
//! monitor watches.

mod cassandra;
mod cql;
mod jars;
mod java;
mod kafka;
mod kit;
mod node;
mod ports;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tidemark_record::manifest;
use tidemark_scenario::plan::{Product, Store};

use self::jars::cache;
use self::kit::{NodeSetup, kit, unique};
use self::node::Node;
use self::ports::Ports;
use crate::child::Spec;
use crate::error::LabError;
use crate::interrupt::Wish;
use crate::link::Link;
use crate::started::{Handle, Started, held, try_held};

/// How much higher the address is at which a node behind a link listens for the clients that the link brings.
const BEHIND: usize = 10;

/// Where stores are started.
pub struct Setup<'a> {
    /// The run directory: holds `stores/` with their configuration, `logs/` and `data/`.
    pub run_dir: PathBuf,
    /// Cores that they are held to; empty for all.
    pub cores: Vec<usize>,
    /// Whether their data stays after the run.
    pub keep_data: bool,
    /// The folder of a node's data, by the node's name, where that is not in `data/`.
    pub data_of: &'a dyn Fn(&str) -> Option<PathBuf>,
    /// Whether there is to be a link between a node, by its name, and its clients. It has one then, as have the other
    /// nodes of its store.
    pub is_linked: &'a dyn Fn(&str) -> bool,
}

/// The stores of a run, ready; stopped, and their data removed, when dropped.
#[derive(Debug, Default)]
pub struct Stores(Vec<Cluster>);

/// One store.
#[derive(Debug)]
struct Cluster {
    // the order matters: the nodes go before their data
    nodes: Vec<Arc<Mutex<Node>>>,
    _data: Vec<DataDir>,
    /// Between nodes and their clients, by the nodes' names.
    links: Vec<(String, Arc<Link>)>,
    _ports: Ports,
    product: Product,
    manifest: manifest::Store,
    remarks: String,
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

impl Stores {
    /// Starts them and waits until all nodes of all of them are ready. `tell` says what takes its time.
    ///
    /// # Errors
    /// Where a store cannot be fetched or started, with what to do; [`LabError::Interrupted`] on a wish to stop.
    pub fn start(
        stores: &[Store],
        setup: &Setup<'_>,
        wish: &dyn Fn() -> Wish,
        tell: &mut dyn FnMut(String),
    ) -> Result<Stores, LabError> {
        let mut started = Stores::default();
        for store in stores {
            started.0.push(start(store, setup, wish, tell)?);
        }
        Ok(started)
    }

    /// What a shipped system must be told to find them: settings by name.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let setting =
            |cluster: &Cluster| (kit(cluster.product).setting(), cluster.manifest.addresses.join(","));
        self.0.iter().map(setting).collect()
    }

    /// Addresses and name of a cluster of this product.
    pub fn found(&self, product: Product) -> Option<(Vec<String>, String)> {
        let cluster = self.0.iter().find(|cluster| cluster.product == product)?;
        let name = held(cluster.nodes.first()?).cluster.clone();
        Some((cluster.manifest.addresses.clone(), name))
    }

    /// What stands between nodes and their clients, by the names of the nodes.
    pub fn links(&self) -> Vec<(String, Arc<Link>)> {
        self.0.iter().flat_map(|cluster| cluster.links.clone()).collect()
    }

    fn nodes(&self) -> impl Iterator<Item = &Arc<Mutex<Node>>> {
        self.0.iter().flat_map(|cluster| &cluster.nodes)
    }

    /// Every node, for whoever breaks them on purpose.
    pub fn started(&self) -> Vec<Handle> {
        self.nodes().map(|node| Arc::clone(node) as Handle).collect()
    }

    /// Names and processes of the nodes that are up.
    pub fn processes(&self) -> Vec<(String, u32)> {
        let process = |node: &Arc<Mutex<Node>>| {
            let node = held(node);
            Some((node.name.clone(), node.process_id()?))
        };
        self.nodes().filter_map(process).collect()
    }

    /// Which node ended by itself, and how. A node at which somebody is at work is not asked, nor one whose end is
    /// `expected`.
    pub fn ended(&self, expected: &dyn Fn(&str) -> bool) -> Option<(String, String)> {
        self.nodes().find_map(|node| {
            let mut node = try_held(node)?;
            let ending = node.ended().filter(|_| !expected(&node.name))?;
            Some((node.name.clone(), ending))
        })
    }

    /// Stops all nodes, together, and says how each that was up ended. Without patience they are killed.
    pub fn stop(&mut self, patience: &(dyn Fn() -> bool + Sync)) -> Vec<(String, String)> {
        let nodes: Vec<_> = self.nodes().map(Arc::clone).collect();
        let stop = |node: &Mutex<Node>| {
            let mut node = held(node);
            // one that ended by itself is not stopped
            let is_up = node.process_id().is_some() && node.ended().is_none();
            let ending = is_up.then(|| node.stop(&patience))?;
            Some((node.name.clone(), ending))
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = nodes.iter().map(|node| scope.spawn(move || stop(node))).collect();
            // a thread that panicked leaves its node to be killed when it is dropped
            threads.into_iter().filter_map(|thread| thread.join().ok()?).collect()
        })
    }

    /// What they are, for the manifest.
    pub fn manifest(&self) -> Vec<manifest::Store> {
        self.0.iter().map(|cluster| cluster.manifest.clone()).collect()
    }

    /// What a reader of the figures must know of them.
    pub fn notes(&self) -> Vec<String> {
        let note = |cluster: &Cluster| {
            let store = &cluster.manifest;
            let nodes = match store.addresses.len() {
                1 => format!("one node at {}", store.addresses[0]),
                count => format!("{count} nodes at {}", store.addresses.join(", ")),
            };
            let mut note = format!("{} on Java {}: {nodes}; {}", store.version, store.java, cluster.remarks);
            if !cluster.links.is_empty() {
                let names: Vec<&str> = cluster.links.iter().map(|(name, _)| name.as_str()).collect();
                note += "; clients reached ";
                note += &names.join(", ");
                note += " through a link of the lab's own, for the faults that slow or cut it: it takes part of a core, and \
                         its time is in every answer";
            }
            note
        };
        self.0.iter().map(note).collect()
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

fn start(
    store: &Store,
    setup: &Setup<'_>,
    wish: &dyn Fn() -> Wish,
    tell: &mut dyn FnMut(String),
) -> Result<Cluster, LabError> {
    let kit = kit(store.product);
    let jars = kit.jars(store.version);
    let java = java::find(jars.title)?;
    let cache = cache()?;
    let lib = jars.get(&cache, wish, tell)?;
    let addresses: Vec<IpAddr> = (0..store.nodes).map(|index| address(index, false)).collect();
    // all of them or none: brokers want the same of each, and no node is slower than another without its fault
    let linked = names(store).iter().any(|name| (setup.is_linked)(name));
    let listen: Vec<IpAddr> = (0..store.nodes).map(|index| address(index, linked)).collect();
    let all: Vec<IpAddr> = addresses.iter().chain(&listen).copied().collect();
    let ports = Ports::choose(jars.title, &all, kit.ports(), &cache)?;
    let run_dir = absolute(&setup.run_dir)?;
    let logs = run_dir.join("logs");
    fs::create_dir_all(&logs).map_err(|error| unwritable(&logs, &error))?;
    let cluster = kit.cluster(&unique());
    let (mut nodes, mut data, mut firsts, mut links) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for index in 0..store.nodes {
        let name = name(store, index);
        let one = NodeSetup {
            store,
            index,
            cluster: &cluster,
            addresses: &addresses,
            listen: listen[index],
            ports: &ports.numbers,
            configuration: run_dir.join("stores").join(&name),
            data: (setup.data_of)(&name).unwrap_or_else(|| run_dir.join("data").join(&name)),
            lib: lib.clone(),
        };
        data.push(DataDir(one.data.clone(), setup.keep_data));
        kit.write(&one).map_err(|error| unwritable(&run_dir, &error))?;
        let command = kit.command(&one, &java).map_err(|error| broken(&jars, &lib, &error))?;
        let (cores, yields) = (setup.cores.clone(), setup.cores.is_empty());
        let log = logs.join(format!("{name}.log"));
        let spec = Spec { name, command, log, cores, yields, announces: false };
        firsts.extend(kit.before_first_start(&one, &java).map(|command| Spec { command, ..spec.clone() }));
        let address = SocketAddr::new(addresses[index], ports.numbers[0]);
        let mut node = Node::new(spec, address, one.data.clone(), kit, cluster.clone(), store.ready_within);
        if linked {
            node.listens = SocketAddr::new(listen[index], ports.numbers[0]);
            let link = Link::between(address, node.listens);
            let link = link.map_err(|error| LabError::Start(format!("no link at {address}: {error}")))?;
            links.push((node.name.clone(), Arc::new(link)));
        }
        nodes.push(Arc::new(Mutex::new(node)));
    }
    let manifest = manifest::Store {
        name: store.product.word().into(),
        version: jars.title.into(),
        java: java.version,
        addresses: nodes.iter().map(|node| held(node).address.to_string()).collect(),
        durability: if store.synced { "synced" } else { "buffered" }.into(),
        heap_bytes: store.heap_bytes,
        command: held(&nodes[0]).spec.command.clone(),
    };
    let remarks = kit.remarks(store);
    let cluster =
        Cluster { nodes, _data: data, links, _ports: ports, product: store.product, manifest, remarks };
    cluster.begin(jars.title, &firsts, wish, tell)?;
    Ok(cluster)
}

impl Cluster {
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

/// A process may have another working directory one day; paths in configurations are whole.
fn absolute(path: &Path) -> Result<PathBuf, LabError> {
    std::path::absolute(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> LabError {
    LabError::Usage(format!("cannot write {}: {error}; choose another place with --out", path.display()))
}

fn broken(jars: &jars::Jars, lib: &Path, error: &io::Error) -> LabError {
    LabError::Start(format!(
        "{} in {} is not whole: {error}; remove that folder, and it is fetched again",
        jars.title,
        lib.display()
    ))
}
