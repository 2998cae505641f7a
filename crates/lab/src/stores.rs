//! Stores of other people's making, started for a run: fetched once, configured in the run directory, watched and
//! stopped like the system that uses them.
//!
//! A product is a module beside this: where its jars come from, what its configuration is, how a node is asked
//! whether it serves. Everything else is the same for all of them: a node is what faults break and the
//! monitor watches.

mod cassandra;
mod cluster;
mod cql;
mod jars;
mod java;
mod kafka;
mod kit;
mod node;
mod ports;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tidemark_record::manifest;
use tidemark_scenario::plan::{Product, Store};

use self::cluster::Cluster;
pub use self::cluster::names;
use self::kit::kit;
use self::node::Node;
use crate::error::LabError;
use crate::interrupt::Wish;
use crate::link::Link;
use crate::started::{Handle, Started as _, held, try_held};

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
            started.0.push(Cluster::start(store, setup, wish, tell)?);
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
            if cfg!(target_os = "linux") {
                note += "; takes no core from others (SCHED_BATCH)";
            }
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
