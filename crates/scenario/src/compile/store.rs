//! Stores of a run, and who is told of them.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::persistence;
use crate::diagnostic::{did_you_mean, nearest};
use crate::grammar::kinds::{Size, Whole};
use crate::grammar::record::{At, Kind};
use crate::language;
use crate::plan::{Cluster, Durability, Product, Store, StoreOrigin, System, SystemOrigin};
use crate::reader::{Reader, WrongSetting};
use crate::sink::Sink;
use crate::store_facts::{STORE_FACTS, StoreFact, store_fact, store_facts, store_servers};
use crate::yaml::{Content, Node};

/// What a cluster needs, so that most of its nodes can hold one for dead.
const CLUSTER_NODES_MIN: usize = 3;
/// Most replicas of a node.
const REPLICAS_MAX: usize = 2;
/// How long a node of a cluster is silent before it is held for dead, where nothing is said; below the least a slow
/// answer would be a death.
const FAILOVER_AFTER: Duration = Duration::from_secs(2);
const FAILOVER_AFTER_MIN: Duration = Duration::from_millis(200);
/// Most threads of a node: what products take.
const THREADS_MAX: usize = 128;
/// Most stores of a run.
const STORES_MAX: usize = 20;
/// A heap below this starts no store, one above is hardly meant. Bytes.
const HEAP_BYTES_MIN: u64 = 128 << 20;
const HEAP_BYTES_MAX: u64 = 64 << 30;
/// The same for what other products keep in memory.
const MEMORY_BYTES_MIN: u64 = 8 << 20;
/// Names that other parts of a run have.
pub(super) const TAKEN: [&str; 3] = ["system", "driver", "machine"];

/// The stores of a scenario.
pub(super) struct Stores {
    /// Those whose `when` holds.
    pub(super) wanted: Vec<Store>,
    /// Settings given from outside that they ask for, each with the store's name.
    pub(super) settings: Vec<(String, String)>,
    /// Names of the others.
    left_out: Vec<String>,
}

/// Reads all of them.
pub(super) fn read(node: Option<&Node>, base: &Path, reader: &Reader<'_>) -> Stores {
    let entries = node.map(Node::entries).unwrap_or_default();
    if let Some((key, _)) = entries.get(STORES_MAX) {
        reader.sink.error(key, format!("{} stores; at most {STORES_MAX}", entries.len()));
    }
    let mut stores = Stores { wanted: Vec::new(), settings: Vec::new(), left_out: Vec::new() };
    for (key, node) in entries {
        let Some(name) = key.text() else { continue };
        let (store, asked) = reader.settings.of_store(|| {
            // one that is not wanted is read nevertheless, for its mistakes
            let said = language::Store::read(node, reader)?;
            let product = product(name, key, &said, reader.sink)?;
            let mut store = store(name, product, &said, reader);
            // the empty text of a setting stands for none
            store.directory =
                said.directory.value.filter(|path| !path.is_empty()).map(|path| base.join(path));
            Some((said.when.value.unwrap_or(true), store))
        });
        match store {
            Some((true, store)) => {
                stores.settings.extend(asked.into_iter().map(|setting| (name.to_owned(), setting)));
                stores.wanted.push(store);
            }
            _ => stores.left_out.push(name.to_owned()),
        }
    }
    stores
}

/// What the URL of a store begins with, by its name.
pub(super) fn scheme(stores: Option<&Node>, name: &str) -> Option<&'static str> {
    let word = stores?.get(name)?.get("product").and_then(Node::text).unwrap_or(name);
    match Product::from_name(word)? {
        // its clients know its nodes by their addresses
        Product::Cassandra => Some("cql"),
        product => product.schemes().first().copied(),
    }
}

/// What is wrong with the name of a store or service where only these take part in the run.
pub(super) fn unknown_part(part: &str, name: &str, wanted: Vec<&str>, left_out: &[String]) -> String {
    if left_out.iter().any(|other| other == name) {
        return format!("the {part} \"{name}\" is not a part of this run: its `when` is false");
    }
    let near = did_you_mean(name, wanted.iter().copied());
    let hint = match (near.is_empty(), wanted.is_empty()) {
        (false, _) => near,
        (true, true) => format!("; there is none under `{part}s`"),
        (true, false) => format!("; there is {}", wanted.join(", ")),
    };
    format!("no {part} is called \"{name}\"{hint}")
}

/// What a store is: what its `product` says, or its name.
fn product(name: &str, key: &Node, said: &language::Store<'_>, sink: &Sink<'_>) -> Option<Product> {
    let by_name = Product::from_name(name);
    if TAKEN.contains(&name) {
        sink.error(key, format!("\"{name}\" is another part of the run; give this store another name"));
    }
    let Some(product) = said.product.given()?.copied() else {
        if by_name.is_none() {
            let hint = match nearest(name, Product::NAMES) {
                Some(word) => format!("did you mean {word}? A name of its own needs"),
                None => "it needs".to_owned(),
            };
            let words = Product::NAMES.join(", ");
            sink.error(key, format!("what is the store \"{name}\"? {hint} `product:`, one of {words}"));
        }
        return by_name;
    };
    if let Some(other) = by_name.filter(|other| *other != product) {
        let message = format!(
            "a store called \"{name}\" is {}, this is {}; give it another name",
            other.title(),
            product.title()
        );
        sink.error(key, message);
    }
    Some(product)
}

fn store(name: &str, product: Product, said: &language::Store<'_>, reader: &Reader<'_>) -> Store {
    let sink = reader.sink;
    check_keys(product, said.node, reader);
    let usual = Store::new(name, product);
    let size = |said: &At<'_, Size>, range: RangeInclusive<u64>, message: &str| {
        if said.value.is_some_and(|bytes| !range.contains(&bytes)) {
            said.error(sink, message);
        }
        said.value
    };
    let version = said.version.value.filter(|_| !product.versions().is_empty());
    let version = version.and_then(|node| reader.word(node, product.versions()));
    let heap = "a heap has at least 128MiB and at most 64GiB";
    let memory = "this has at least 8MiB and at most 64GiB";
    let durability = said.durability.node().and_then(|node| reader.word(node, product.durabilities()));
    let durability = durability.and_then(Durability::from_name);
    let (persistence, durability) = persistence::read(said, durability, usual.durability, reader);
    let cluster = cluster(said, sink);
    let nodes = few(&said.nodes, product.nodes_max(), "nodes", sink);
    if let (Some(_), Some(few)) = (cluster, nodes.filter(|count| *count < CLUSTER_NODES_MIN)) {
        let message = format!("a cluster has at least {CLUSTER_NODES_MIN} nodes (masters), not {few}");
        said.nodes.error(sink, message);
    }
    let usual_nodes = if cluster.is_some() { CLUSTER_NODES_MIN } else { usual.nodes };
    Store {
        origin: origin(product, said, reader),
        version: version.unwrap_or(usual.version),
        nodes: nodes.unwrap_or(usual_nodes),
        cluster,
        threads: few(&said.threads, THREADS_MAX, "threads", sink),
        heap_bytes: size(&said.heap, HEAP_BYTES_MIN..=HEAP_BYTES_MAX, heap).unwrap_or(usual.heap_bytes),
        memory_bytes: size(&said.memory, MEMORY_BYTES_MIN..=HEAP_BYTES_MAX, memory),
        durability,
        persistence,
        ready_within: said.ready_within.value.unwrap_or(usual.ready_within),
        ..usual
    }
}

/// A number that is not too large.
fn few<const LEAST: u64>(
    said: &At<'_, Whole<LEAST>>,
    most: usize,
    what: &str,
    sink: &Sink<'_>,
) -> Option<usize> {
    let count = usize::try_from(said.value?).unwrap_or(usize::MAX);
    if count > most {
        said.error(sink, format!("{count} is too many; at most {most} {what}"));
    }
    Some(count.min(most))
}

fn cluster(said: &language::Store<'_>, sink: &Sink<'_>) -> Option<Cluster> {
    if said.cluster.value != Some(true) {
        for key in [said.replicas.key(), said.failover_after.key()].into_iter().flatten() {
            let word = key.text().unwrap_or_default();
            sink.error(key, format!("\"{word}\" belongs to a cluster; say `cluster: true`, too"));
        }
        return None;
    }
    let replicas = few(&said.replicas, REPLICAS_MAX, "replicas", sink);
    let failover_after = said.failover_after.value.unwrap_or(FAILOVER_AFTER);
    if failover_after < FAILOVER_AFTER_MIN {
        said.failover_after.error(sink, "a node that is silent for less than 200ms may only be slow");
    }
    Some(Cluster { replicas: replicas.unwrap_or_default(), failover_after })
}

/// Tells of keys that say nothing of this product, or nothing of what is there already.
fn check_keys(product: Product, node: &Node, reader: &Reader<'_>) {
    let is_there = ["url", "addresses"].into_iter().find(|key| node.get(key).is_some());
    for (key, _) in node.entries() {
        let Some(text) = key.text() else { continue };
        let title = product.title();
        if !product.keys().contains(&text) {
            let way_out = match text {
                "nodes" => "; write a second store with a name of its own".to_owned(),
                "version" => "; the installed program is started, whichever it is".to_owned(),
                _ => format!("; it has {}", product.keys().join(", ")),
            };
            reader.sink.error(key, format!("{title} has no \"{text}\"{way_out}"));
        } else if let Some(position) = is_there
            && !["product", "url", "addresses", "when", "ready within"].contains(&text)
        {
            let message =
                format!("with \"{position}\" nothing is started, and what is there has its own \"{text}\"");
            reader.sink.error(key, message);
        }
    }
}

fn origin(product: Product, said: &language::Store<'_>, reader: &Reader<'_>) -> StoreOrigin {
    if let Some(text) = &said.url.value {
        let schemes = product.schemes();
        // of several servers, each
        let is_right = store_servers(text).iter().all(|text| {
            url::Url::parse(text).is_ok_and(|url| {
                schemes.contains(&url.scheme()) && url.host_str().is_some_and(|host| !host.is_empty())
            })
        });
        if let Some(scheme) = schemes.first().filter(|_| !is_right) {
            // not the text, which may hold a password
            let message = format!("this is not a URL of {}; write {scheme}://HOST:PORT", product.title());
            said.url.error(reader.sink, message);
        }
        return StoreOrigin::Url(text.clone());
    }
    let Some(list) = said.addresses.value else { return StoreOrigin::Started };
    let address = |node: &Node| {
        let text = reader.text(node)?;
        let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port);
        if !port.is_some_and(|port| port.parse::<u16>().is_ok_and(|port| port > 0)) {
            reader.sink.error(node, format!("\"{text}\" is not an address; write HOST:PORT"));
        }
        Some(text)
    };
    StoreOrigin::Addresses(list.items().iter().filter_map(address).collect())
}

/// Whether what is only reached is reached at one place, before which a link can stand.
fn has_one_link(store: &Store) -> bool {
    match &store.origin {
        StoreOrigin::Url(url) => !url.starts_with("redis-cluster:") && store_servers(url).len() == 1,
        _ => false,
    }
}

impl Stores {
    /// Those that a system finds by this setting.
    fn of(&self, setting: &str) -> impl Iterator<Item = &Store> {
        self.wanted.iter().filter(move |store| store.product.setting() == setting)
    }

    /// `a, b`.
    fn names_of(&self, setting: &str) -> String {
        self.of(setting).map(|store| store.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// The settings by which systems find stores, each once.
    fn settings() -> impl Iterator<Item = &'static str> {
        let is_first = |(index, product): &(usize, Product)| {
            Product::ALL[..*index].iter().all(|other| other.setting() != product.setting())
        };
        Product::ALL.into_iter().enumerate().filter(is_first).map(|(_, product)| product.setting())
    }

    /// Tells the system where the stores are, and of what cannot be told.
    pub(super) fn tell(&self, node: Option<&Node>, system: &mut System, reader: &Reader<'_>) {
        let Some(node) = node else { return };
        if let Some(name) = node.get("store") {
            self.check_driven(name, reader);
        }
        if let Some(command) =
            node.get("command").filter(|_| matches!(system.origin, SystemOrigin::Command(_)))
        {
            for setting in Stores::settings() {
                self.tell_command(setting, system, command, reader);
            }
            for part in ["command", "env", "before", "after"].into_iter().filter_map(|key| node.get(key)) {
                self.check_texts(part, reader);
            }
        }
        for (_, node) in node.get("settings").map(Node::entries).unwrap_or_default() {
            if let Some(text) = reader.text(node) {
                self.check(&text, node, reader);
            }
        }
        if let SystemOrigin::Shipped(name) = &system.origin {
            for setting in Stores::settings().filter(|setting| self.of(setting).next().is_some()) {
                let takes = !matches!(
                    (reader.checker.setting)(name, setting, "127.0.0.1:1"),
                    Err(WrongSetting::Name(_))
                );
                if !takes || system.settings.contains_key(setting) {
                    continue; // where the scenario names another, that is meant
                }
                let stores: Vec<&Store> = self.of(setting).collect();
                match stores[..] {
                    [store] if store.nodes > 1 && !store.product.is_cluster() => {
                        let message = format!(
                            "{name} takes one server as its `{setting}`, and \"{}\" is {}; give it a store of one node",
                            store.name, store.nodes
                        );
                        reader.sink.error(node, message);
                    }
                    [store] => {
                        let fact = store_fact(&store.name, store.product.fact());
                        system.settings.insert(setting.into(), fact);
                    }
                    _ => self.tell_of_several(setting, &format!("settings: {{{setting}: "), node, reader),
                }
            }
        }
    }

    /// Every text of a part of the scenario may ask where stores are.
    fn check_texts(&self, part: &Node, reader: &Reader<'_>) {
        match &part.content {
            Content::Scalar { .. } => {
                let text = reader.text(part);
                text.into_iter().for_each(|text| self.check(&text, part, reader));
            }
            Content::List(items) => items.iter().for_each(|item| self.check_texts(item, reader)),
            Content::Map(entries) => entries.iter().for_each(|(_, value)| self.check_texts(value, reader)),
        }
    }

    /// `{contact}` in a command, and in what is around it.
    fn tell_command(&self, setting: &str, system: &mut System, command: &Node, reader: &Reader<'_>) {
        let position = format!("{{{setting}}}");
        if !system.texts_mut().any(|text| text.contains(&position)) {
            return;
        }
        let stores: Vec<&Store> = self.of(setting).collect();
        match stores[..] {
            // it may be the command's own
            [] => {}
            [store] => {
                let fact = store_fact(&store.name, store.product.fact());
                system.texts_mut().for_each(|text| *text = text.replace(&position, &fact));
            }
            _ => self.tell_of_several(setting, &format!("in place of `{position}` "), command, reader),
        }
    }

    fn tell_of_several(&self, setting: &str, how: &str, node: &Node, reader: &Reader<'_>) {
        let Some(first) = self.of(setting).next() else { return };
        let fact = store_fact(&first.name, first.product.fact());
        let message = format!(
            "there are several stores of {} ({}); say which is meant: {how}{fact}",
            first.product.title(),
            self.names_of(setting)
        );
        reader.sink.error(node, message.replace(&format!(": {fact}"), &format!(": \"{fact}\"")));
    }

    /// What `system: {store: …}` names must be something that the driver speaks to.
    fn check_driven(&self, node: &Node, reader: &Reader<'_>) {
        let (Some(name), _) = reader.settings.of_store(|| reader.text(node)) else { return };
        match self.wanted.iter().find(|store| store.name == name) {
            Some(store) if store.product.is_driven() => {}
            Some(store) => {
                let message = format!(
                    "the load generator speaks the protocols of Redis, memcached, PostgreSQL and Cassandra to a store, and \"{name}\" is {}; drive a system \
                     in front of it",
                    store.product.title()
                );
                reader.sink.error(node, message);
            }
            None => reader.sink.error(node, self.unknown(&name)),
        }
    }

    fn unknown(&self, name: &str) -> String {
        let names = self.wanted.iter().map(|store| store.name.as_str()).collect();
        unknown_part("store", name, names, &self.left_out)
    }

    /// Checks the references of a text.
    fn check(&self, text: &str, node: &Node, reader: &Reader<'_>) {
        for StoreFact { store: name, fact, .. } in store_facts(text) {
            let Some(store) = self.wanted.iter().find(|store| store.name == name) else {
                reader.sink.error(node, self.unknown(name));
                continue;
            };
            if !STORE_FACTS.contains(&fact) {
                let known = STORE_FACTS.join(", ");
                let message =
                    format!("nothing is known as \"{fact}\" of the store \"{name}\"; there is {known}");
                reader.sink.error(node, message);
            } else if fact == "url" && store.product.is_cluster() {
                let title = store.product.title();
                let message = format!("{title} has no URL; write {}", store_fact(name, "addresses"));
                reader.sink.error(node, message);
            }
        }
    }

    /// Only a store that speaks Redis' protocol can be asked to rewrite its file, or for a snapshot.
    fn check_maintenance(&self, fault: &Node, reader: &Reader<'_>) {
        for node in ["rewrite", "snapshot"].iter().filter_map(|word| fault.get(word)) {
            let target = reader.text(node).unwrap_or_default();
            let name = target.split('.').next().unwrap_or_default();
            let other = self.wanted.iter().find(|store| store.name == name);
            if let Some(store) = other.filter(|store| !store.product.speaks_redis()) {
                let message = format!(
                    "\"{name}\" is {}; only what speaks Redis' protocol is asked for a rewrite or a snapshot",
                    store.product.title()
                );
                reader.sink.error(node, message);
            }
        }
    }

    /// Tells of faults that cannot be done to what is only reached.
    pub(super) fn check_faults(&self, list: Option<&Node>, reader: &Reader<'_>) {
        for fault in list.map(Node::items).unwrap_or_default() {
            self.check_maintenance(fault, reader);
            for word in ["kill", "stop", "freeze", "fill", "slow", "cut"] {
                let Some(node) = fault.get(word) else { continue };
                let target = reader.text(node);
                let is_meant = |store: &&Store| !store.is_started() && Some(&store.name) == target.as_ref();
                let Some(store) = self.wanted.iter().find(is_meant) else { continue };
                let name = &store.name;
                let message = match word {
                    "slow" | "cut" if has_one_link(store) => continue,
                    "slow" | "cut" => format!(
                        "clients find the nodes of \"{name}\" by what these say of themselves, past any link; only \
                         nodes that the run starts have one"
                    ),
                    _ => format!(
                        "the run does not start \"{name}\", it only reaches it; of it the link can be slowed or cut"
                    ),
                };
                reader.sink.error(node, message);
            }
        }
    }
}
