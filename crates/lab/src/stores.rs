//! Stores of other people's making, by the names that a scenario gives them: started for a run, configured in the run
//! directory, watched and stopped like the system that uses them; or there already, and only reached.
//!
//! A product is a module beside this and a line in `products.rs`: where its program comes from (jars that are fetched
//! once, or what is installed), what its configuration is, how a node is asked whether it serves. Everything else is
//! the same for all of them: a node is what faults break and the monitor watches.

pub(crate) mod compiled;
pub(crate) mod installed;
mod instance;
pub(crate) mod jars;
pub(crate) mod java;
pub(crate) mod launcher;
pub(crate) mod node;
mod ports;
mod reached;
pub(crate) mod rest;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_installed;
#[cfg(test)]
mod tests_key_value;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tidemark_record::manifest;
use tidemark_scenario::plan::{Product, Store, StoreOrigin, System, SystemOrigin};
use tidemark_scenario::{StoreFact, store_fact, with_store_facts};

use self::instance::Instance;
pub use self::instance::{Setup, names};
use self::launcher::Fetch;
pub use self::launcher::password;
use self::node::Node;
use crate::disk::free_memory;
use crate::error::LabError;
use crate::figures::{Endpoint, endpoint, endpoints};
use crate::interrupt::StopRequest;
use crate::link::Link;
use crate::products::launcher;
use crate::started::{Handle, Started as _, held, try_held};

/// Why a store of a plan cannot be started here: its program is not installed. Programs that are fetched are not looked for.
pub fn missing(stores: &[Store]) -> Option<LabError> {
    let installed = stores.iter().filter(|store| store.is_started() && store.product.versions().is_empty());
    let mut fetch = Fetch { cache: Path::new(""), stop_request: &|| StopRequest::None, tell: &mut |_| {} };
    installed.filter_map(|store| launcher(store.product).program(store, &mut fetch).err()).next()
}

/// Several nodes of a store are not started where the memory that is free does not hold them.
fn have_memory(stores: &[Store], free_bytes: Option<u64>) -> Result<(), LabError> {
    let mib = |bytes: u64| bytes >> 20;
    let (mut each, mut needed) = (Vec::new(), 0);
    for store in stores.iter().filter(|store| store.is_started() && store.nodes > 1) {
        let node_bytes = store.product.node_bytes(store.heap_bytes);
        if node_bytes > 0 {
            needed += node_bytes * store.nodes as u64;
            each.push(format!("{}: {} nodes of {} MiB", store.name, store.nodes, mib(node_bytes)));
        }
    }
    let Some(free) = free_bytes.filter(|free| needed > *free) else { return Ok(()) };
    let reason =
        format!("{} need {} MiB of memory, and {} MiB are free", each.join(", "), mib(needed), mib(free));
    Err(LabError::Usage(format!("{reason}; start fewer nodes, or give them less `heap`")))
}

/// The stores of a run, ready; stopped, and their data removed, when dropped.
#[derive(Debug, Default)]
pub struct Stores(Vec<Instance>);

impl Stores {
    /// Starts them and waits until all nodes of all of them are ready. `tell` says what takes its time.
    ///
    /// # Errors
    /// Where a store cannot be fetched or started, with what to do; [`LabError::Interrupted`] on a stop request.
    pub fn start(
        stores: &[Store],
        setup: &Setup<'_>,
        stop_request: &dyn Fn() -> StopRequest,
        tell: &mut dyn FnMut(String),
    ) -> Result<Stores, LabError> {
        have_memory(stores, free_memory())?;
        let mut started = Stores::default();
        for store in stores {
            started.0.push(match &store.origin {
                StoreOrigin::Started => Instance::start(store, setup, stop_request, tell)?,
                StoreOrigin::Url(url) => reached::at_url(store, url, setup, stop_request)?,
                StoreOrigin::Addresses(addresses) => reached::at_addresses(store, addresses, stop_request)?,
            });
        }
        Ok(started)
    }

    /// What a system is told to find them: for each, the name of its product's setting and where it is.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let setting = |instance: &Instance| {
            let product = instance.store.product;
            Some((product.setting(), instance.fact(product.fact())?))
        };
        self.0.iter().filter_map(setting).collect()
    }

    /// A text with what is known now in place of `{stores.NAME.FACT}`.
    pub fn resolved(&self, text: &str) -> String {
        let known = |asked: &StoreFact<'_>| {
            self.0.iter().find(|instance| instance.store.name == asked.store)?.fact(asked.fact)
        };
        with_store_facts(text, &known)
    }

    /// Puts what is known now into what a system is started with, or driven at.
    pub fn resolve(&self, system: &mut System) {
        match &mut system.origin {
            SystemOrigin::Url(url) => *url = self.resolved(url),
            SystemOrigin::Command(_) | SystemOrigin::Shipped(_) | SystemOrigin::Unknown => {}
        }
        system.texts_mut().for_each(|text| *text = self.resolved(text));
        system.settings.values_mut().for_each(|value| *value = self.resolved(value));
    }

    /// The store that this system is, where the driver drives one that the run has started: its durability, and the
    /// folder of its first node's data.
    pub fn driven(&self, system: &System) -> Option<(&str, PathBuf)> {
        let SystemOrigin::Url(url) = &system.origin else { return None };
        let is_meant = |instance: &&Instance| *url == store_fact(&instance.store.name, "url");
        let instance = self.0.iter().find(is_meant)?;
        let data = held(instance.nodes.first()?).data.clone();
        Some((&instance.manifest.durability, data))
    }

    /// Addresses and name of a cluster of this product that the run has started.
    pub fn found(&self, product: Product) -> Option<(Vec<String>, String)> {
        let mut of_product = self.0.iter().filter(|instance| instance.store.product == product);
        // one that is only reached has no nodes
        of_product.find_map(|instance| {
            let name = held(instance.nodes.first()?).identity.name.clone();
            Some((instance.manifest.addresses.clone(), name))
        })
    }

    /// What stands between nodes and their clients, by the names of the nodes.
    pub fn links(&self) -> Vec<(String, Arc<Link>)> {
        self.0.iter().flat_map(|instance| instance.links.clone()).collect()
    }

    /// Every server that tells figures of itself: past any link, so that what slows its clients does not slow the looks.
    pub fn endpoints(&self) -> Vec<Endpoint> {
        let of = |instance: &Instance| -> Vec<Endpoint> {
            let Some(url) = &instance.url else { return Vec::new() };
            if instance.nodes.is_empty() {
                return endpoints(&instance.store.name, url, &System::default());
            }
            let nodes = instance.nodes.iter().map(|node| held(node));
            nodes.filter_map(|node| endpoint(&node.name, url, &node.listens.to_string())).collect()
        };
        self.0.iter().flat_map(of).collect()
    }

    /// Whether this URL is that of one of them.
    pub fn has_url(&self, url: &str) -> bool {
        self.0.iter().any(|instance| instance.url.as_deref() == Some(url))
    }

    /// The name of the store that is driven at this URL, where it was started and not only reached.
    pub fn started_at(&self, url: &str) -> Option<String> {
        let mut started = self.0.iter().filter(|instance| !instance.nodes.is_empty());
        started
            .find(|instance| instance.url.as_deref() == Some(url))
            .map(|instance| instance.store.name.clone())
    }

    fn nodes(&self) -> impl Iterator<Item = &Arc<Mutex<Node>>> {
        self.0.iter().flat_map(|instance| &instance.nodes)
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

    /// The end of this node's log, for a reason to quote.
    pub fn log_tail(&self, name: &str) -> String {
        let of = |node: &Arc<Mutex<Node>>| {
            let node = try_held(node).filter(|node| node.name == name)?;
            Some(node.log_tail())
        };
        self.nodes().find_map(of).unwrap_or_default()
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
        self.0.iter().map(|instance| instance.manifest.clone()).collect()
    }

    /// What a reader of the figures must know of them.
    pub fn notes(&self) -> Vec<String> {
        self.0.iter().map(Instance::note).collect()
    }
}

impl Instance {
    /// What is known of it, by the word of a scenario.
    fn fact(&self, fact: &str) -> Option<String> {
        // through a link it is another address than its own
        let linked = self.links.first().filter(|_| self.nodes.is_empty());
        let address = match linked {
            Some((_, link)) => link.address.to_string(),
            None => self.manifest.addresses.first()?.clone(),
        };
        let (host, port) = address.rsplit_once(':')?;
        Some(match fact {
            "url" => self.url.clone()?,
            "addresses" if linked.is_none() => self.manifest.addresses.join(","),
            "address" | "addresses" => address,
            "host" => host.to_owned(),
            "port" => port.to_owned(),
            _ => return None,
        })
    }

    fn note(&self) -> String {
        let about = &self.manifest;
        let nodes = match about.addresses.len() {
            1 => format!("one node at {}", about.addresses[0]),
            count => format!("{count} nodes at {}", about.addresses.join(", ")),
        };
        let name = match self.store.name == self.store.product.name() {
            true => String::new(),
            false => format!("{}: ", self.store.name),
        };
        let java = if about.java.is_empty() { String::new() } else { format!(" on Java {}", about.java) };
        let mut note = format!("{name}{}{java}: {nodes}; {}", about.version, self.remarks);
        if cfg!(target_os = "linux") && !self.nodes.is_empty() {
            note += "; takes no core from others (SCHED_BATCH)";
        }
        if !self.links.is_empty() {
            let names: Vec<&str> = self.links.iter().map(|(name, _)| name.as_str()).collect();
            note += "; clients reached ";
            note += &names.join(", ");
            note += " through a link of the lab's own, for the faults that slow or cut it: it takes part of a core, and \
                     its time is in every answer";
        }
        note
    }
}
