//! Stores of a run, and who is told of them.

use std::time::Duration;

use crate::diagnostic::{did_you_mean, nearest};
use crate::plan::{Durability, Product, Store, StoreOrigin, System, SystemOrigin};
use crate::reader::{Reader, WrongSetting};
use crate::store_facts::{STORE_FACTS, StoreFact, store_fact, store_facts};
use crate::yaml::Node;

/// Most nodes of a store: each needs an address of the loopback interface and some memory.
const NODES_MAX: usize = 3;
/// Most stores of a run.
const STORES_MAX: usize = 20;
/// A heap below this starts no store, one above is hardly meant. Bytes.
const HEAP_BYTES_MIN: u64 = 128 << 20;
const HEAP_BYTES_MAX: u64 = 64 << 30;
/// The same for what other products keep in memory.
const MEMORY_BYTES_MIN: u64 = 8 << 20;
/// Names that other parts of a run have.
const TAKEN: [&str; 3] = ["system", "driver", "machine"];

/// The stores of a scenario.
pub(super) struct Stores {
    /// Those whose `when` holds.
    pub(super) wanted: Vec<Store>,
    /// Names of the others.
    left_out: Vec<String>,
}

/// Reads all of them.
pub(super) fn read(node: Option<&Node>, reader: &Reader<'_>) -> Stores {
    let entries = node.map(Node::entries).unwrap_or_default();
    if let Some((key, _)) = entries.get(STORES_MAX) {
        reader.sink.error(key, format!("{} stores; at most {STORES_MAX}", entries.len()));
    }
    let mut stores = Stores { wanted: Vec::new(), left_out: Vec::new() };
    for (key, node) in entries {
        let Some(name) = key.text() else { continue };
        let is_wanted = node.get("when").and_then(|node| reader.bool(node)).unwrap_or(true);
        // one that is not wanted is read nevertheless, for its mistakes
        let store = product(name, key, node, reader).map(|product| store(name, product, node, reader));
        match store {
            Some(store) if is_wanted => stores.wanted.push(store),
            _ => stores.left_out.push(name.to_owned()),
        }
    }
    stores
}

/// What the URL of a store begins with, by its name.
pub(super) fn scheme(stores: Option<&Node>, name: &str) -> Option<&'static str> {
    let word = stores?.get(name)?.get("product").and_then(Node::text).unwrap_or(name);
    match Product::from_word(word)? {
        // its clients know its nodes by their addresses
        Product::Cassandra => Some("cql"),
        product => product.schemes().first().copied(),
    }
}

/// What a store is: what its `product` says, or its name.
fn product(name: &str, key: &Node, node: &Node, reader: &Reader<'_>) -> Option<Product> {
    let by_name = Product::from_word(name);
    if TAKEN.contains(&name) {
        reader
            .sink
            .error(key, format!("\"{name}\" is another part of the run; give this store another name"));
    }
    let Some(said) = node.get("product") else {
        if by_name.is_none() {
            let hint = match nearest(name, Product::WORDS) {
                Some(word) => format!("did you mean {word}? A name of its own needs"),
                None => "it needs".to_owned(),
            };
            let words = Product::WORDS.join(", ");
            let message = format!("what is the store \"{name}\"? {hint} `product:`, one of {words}");
            reader.sink.error(key, message);
        }
        return by_name;
    };
    let product = Product::from_word(reader.word(said, &Product::WORDS)?)?;
    if let Some(other) = by_name.filter(|other| *other != product) {
        let message = format!(
            "a store called \"{name}\" is {}, this is {}; give it another name",
            other.title(),
            product.title()
        );
        reader.sink.error(key, message);
    }
    Some(product)
}

fn store(name: &str, product: Product, node: &Node, reader: &Reader<'_>) -> Store {
    check_keys(product, node, reader);
    let usual = Store::new(name, product);
    let size = |key: &str, range: std::ops::RangeInclusive<u64>, message: &str| {
        let node = node.get(key)?;
        let bytes = reader.size(node)?;
        if !range.contains(&bytes) {
            reader.sink.error(node, message);
        }
        Some(bytes)
    };
    let version = node.get("version").filter(|_| !product.versions().is_empty());
    let version = version.and_then(|node| reader.word(node, product.versions()));
    let nodes = node.get("nodes").and_then(|node| {
        let count = usize::try_from(reader.whole(node, 1)?).unwrap_or(usize::MAX);
        if count > NODES_MAX {
            reader.sink.error(node, format!("{count} is too many; at most {NODES_MAX} nodes"));
        }
        Some(count.min(NODES_MAX))
    });
    let heap = "a heap has at least 128MiB and at most 64GiB";
    let memory = "this has at least 8MiB and at most 64GiB";
    let durability = node.get("durability").and_then(|node| reader.word(node, product.durabilities()));
    Store {
        origin: origin(product, node, reader),
        version: version.unwrap_or(usual.version),
        nodes: nodes.unwrap_or(usual.nodes),
        heap_bytes: size("heap", HEAP_BYTES_MIN..=HEAP_BYTES_MAX, heap).unwrap_or(usual.heap_bytes),
        memory_bytes: size("memory", MEMORY_BYTES_MIN..=HEAP_BYTES_MAX, memory),
        durability: match durability {
            Some("buffered") => Durability::Buffered,
            Some("memory") => Durability::Memory,
            _ => Durability::Synced,
        },
        ready_within: ready_within(node, reader).unwrap_or(usual.ready_within),
        ..usual
    }
}

fn ready_within(node: &Node, reader: &Reader<'_>) -> Option<Duration> {
    node.get("ready within").and_then(|node| reader.duration(node))
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
            && ["version", "nodes", "heap", "memory", "durability"].contains(&text)
        {
            let message =
                format!("with \"{position}\" nothing is started, and what is there has its own \"{text}\"");
            reader.sink.error(key, message);
        }
    }
}

fn origin(product: Product, node: &Node, reader: &Reader<'_>) -> StoreOrigin {
    if let Some(node) = node.get("url")
        && let Some(text) = reader.text(node)
    {
        let schemes = product.schemes();
        let is_right = url::Url::parse(&text).is_ok_and(|url| {
            schemes.contains(&url.scheme()) && url.host_str().is_some_and(|host| !host.is_empty())
        });
        if let Some(scheme) = schemes.first().filter(|_| !is_right) {
            // not the text, which may hold a password
            reader
                .sink
                .error(node, format!("this is not a URL of {}; write {scheme}://HOST:PORT", product.title()));
        }
        return StoreOrigin::Url(text);
    }
    let Some(list) = node.get("addresses") else { return StoreOrigin::Started };
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

impl Stores {
    fn of(&self, product: Product) -> impl Iterator<Item = &Store> {
        self.wanted.iter().filter(move |store| store.product == product)
    }

    /// `a, b`.
    fn names_of(&self, product: Product) -> String {
        self.of(product).map(|store| store.name.as_str()).collect::<Vec<_>>().join(", ")
    }

    /// Tells the system where the stores are, and of what cannot be told.
    pub(super) fn tell(&self, node: Option<&Node>, system: &mut System, reader: &Reader<'_>) {
        let Some(node) = node else { return };
        if let Some(name) = node.get("store") {
            self.check_driven(name, reader);
        }
        if let (SystemOrigin::Command(words), Some(command)) = (&mut system.origin, node.get("command")) {
            for product in Product::ALL {
                self.tell_command(product, words, command, reader);
            }
            words.iter().for_each(|word| self.check(word, command, reader));
        }
        for (_, node) in node.get("settings").map(Node::entries).unwrap_or_default() {
            if let Some(text) = reader.text(node) {
                self.check(&text, node, reader);
            }
        }
        if let SystemOrigin::Shipped(name) = &system.origin {
            for product in Product::ALL.into_iter().filter(|product| self.of(*product).next().is_some()) {
                let setting = product.setting();
                let takes = !matches!(
                    (reader.checker.setting)(name, setting, "127.0.0.1:1"),
                    Err(WrongSetting::Name(_))
                );
                if !takes || system.settings.contains_key(setting) {
                    continue; // where the scenario names another, that is meant
                }
                let stores: Vec<&Store> = self.of(product).collect();
                if let [store] = stores[..] {
                    system.settings.insert(setting.into(), store_fact(&store.name, product.fact()));
                } else {
                    self.tell_of_several(product, &format!("settings: {{{setting}: "), node, reader);
                }
            }
        }
    }

    /// `{contact}` in a command.
    fn tell_command(&self, product: Product, words: &mut [String], command: &Node, reader: &Reader<'_>) {
        let position = format!("{{{}}}", product.setting());
        if !words.iter().any(|word| word.contains(&position)) {
            return;
        }
        let stores: Vec<&Store> = self.of(product).collect();
        match stores[..] {
            // it may be the command's own
            [] => {}
            [store] => {
                let fact = store_fact(&store.name, product.fact());
                words.iter_mut().for_each(|word| *word = word.replace(&position, &fact));
            }
            _ => self.tell_of_several(product, &format!("in place of `{position}` "), command, reader),
        }
    }

    fn tell_of_several(&self, product: Product, how: &str, node: &Node, reader: &Reader<'_>) {
        let first = self.of(product).next().map_or("", |store| store.name.as_str());
        let fact = store_fact(first, product.fact());
        let message = format!(
            "there are several stores of {} ({}); say which is meant: {how}{fact}",
            product.title(),
            self.names_of(product)
        );
        reader.sink.error(node, message.replace(&format!(": {fact}"), &format!(": \"{fact}\"")));
    }

    /// What `system: {store: …}` names must be something that the driver speaks to.
    fn check_driven(&self, node: &Node, reader: &Reader<'_>) {
        let Some(name) = reader.text(node) else { return };
        match self.wanted.iter().find(|store| store.name == name) {
            Some(store)
                if matches!(store.product, Product::Redis | Product::Postgres | Product::Cassandra) => {}
            Some(store) => {
                let message = format!(
                    "the driver speaks to a store of Redis, PostgreSQL or Cassandra, and \"{name}\" is {}; drive a system in front of it",
                    store.product.title()
                );
                reader.sink.error(node, message);
            }
            None => reader.sink.error(node, self.unknown(&name)),
        }
    }

    fn unknown(&self, name: &str) -> String {
        if self.left_out.iter().any(|other| other == name) {
            return format!("the store \"{name}\" is not a part of this run: its `when` is false");
        }
        let names = || self.wanted.iter().map(|store| store.name.as_str());
        let mut hint = did_you_mean(name, names());
        if hint.is_empty() {
            hint = match self.wanted.is_empty() {
                true => "; there is none under `stores`".to_owned(),
                false => format!("; there is {}", names().collect::<Vec<_>>().join(", ")),
            };
        }
        format!("no store is called \"{name}\"{hint}")
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

    /// Tells of faults that cannot be done to what is only reached.
    pub(super) fn check_faults(&self, list: Option<&Node>, reader: &Reader<'_>) {
        for fault in list.map(Node::items).unwrap_or_default() {
            for word in ["kill", "stop", "freeze", "fill", "slow", "cut"] {
                let Some(node) = fault.get(word) else { continue };
                let target = reader.text(node);
                let is_meant = |store: &&Store| !store.is_started() && Some(&store.name) == target.as_ref();
                let Some(store) = self.wanted.iter().find(is_meant) else { continue };
                let name = &store.name;
                let message = match word {
                    "slow" | "cut" if !store.product.is_cluster() => continue,
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
