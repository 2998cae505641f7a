//! Services: parts of the system, each in one or several instances.

use std::path::Path;

use super::store::{Stores, TAKEN, unknown_part};
use super::system;
use crate::grammar::kinds::{Bool, Whole};
use crate::grammar::record::{At, Kind};
use crate::language;
use crate::plan::{Balancer, INSTANCE, PORT, Product, System, SystemOrigin, Tier};
use crate::reader::Reader;
use crate::store_facts::{SERVICE_FACTS, service_facts};
use crate::yaml::Node;

/// Most services of a run, and most instances of one.
const SERVICES_MAX: usize = 20;
pub(super) const INSTANCES_MAX: usize = 32;
/// What may stand beside `service`, as it is about how that is driven.
const BESIDE_SERVICE: [&str; 2] = ["service", "rpc"];

/// The services of a scenario, with where they stand.
pub(super) struct Services<'n> {
    /// Those whose `when` holds, in the order in which they are started.
    wanted: Vec<(System, &'n Node)>,
    /// Names of the others.
    left_out: Vec<String>,
}

/// Reads all of them.
pub(super) fn read<'n>(
    node: Option<&'n Node>,
    stores: Option<&Node>,
    base: &Path,
    reader: &Reader<'_>,
) -> Services<'n> {
    let entries = node.map(Node::entries).unwrap_or_default();
    if let Some((key, _)) = entries.get(SERVICES_MAX) {
        reader.sink.error(key, format!("{} services; at most {SERVICES_MAX}", entries.len()));
    }
    let mut services = Services { wanted: Vec::new(), left_out: Vec::new() };
    for (key, node) in entries {
        let Some(name) = key.text() else { continue };
        let is_store = stores.is_some_and(|stores| stores.get(name).is_some());
        if TAKEN.contains(&name) || Product::from_name(name).is_some() || is_store {
            let message = format!("\"{name}\" is another part of the run; give this service another name");
            reader.sink.error(key, message);
        }
        // one that is not wanted is read nevertheless, for its mistakes
        let Some(mut system) =
            language::System::read(node, reader).and_then(|said| system::read(&said, base, reader))
        else {
            continue;
        };
        system.tier = tier(name, node, reader);
        check_ports(&system, node, reader);
        match At::<Bool>::read(node, "when", reader).value {
            Some(false) => services.left_out.push(name.to_owned()),
            _ => services.wanted.push((system, node)),
        }
    }
    services
}

fn tier(name: &str, node: &Node, reader: &Reader<'_>) -> Tier {
    let said = At::<Whole<1>>::read(node, "instances", reader);
    let instances = said.value.and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
    if instances > INSTANCES_MAX {
        said.error(reader.sink, format!("{instances} instances are too many; at most {INSTANCES_MAX}"));
    }
    let instances = instances.min(INSTANCES_MAX);
    let balancer = At::<Balancer>::read(node, "balancer", reader).value.unwrap_or_default();
    Tier { name: name.to_owned(), instances, instances_max: instances, balancer }
}

/// Several instances of a command cannot all listen on one port.
fn check_ports(system: &System, node: &Node, reader: &Reader<'_>) {
    if !system.tier.is_single() && system.launch.port.is_some() {
        let message =
            format!("several instances need a port each: write {PORT} into the command instead of `port`");
        reader.sink.error(node.get("port").unwrap_or(node), message);
    }
    let SystemOrigin::Command(words) = &system.origin else { return };
    let is_told = words.iter().chain(system.launch.env.values()).any(|text| text.contains(PORT));
    if !is_told && !system.tier.is_single() {
        let message = format!(
            "several instances need a port each: write {PORT} into the command or into `env` ({INSTANCE}: its number)"
        );
        reader.sink.error(node, message);
    }
}

impl<'n> Services<'n> {
    /// What is driven, where that is one of them: it is started last.
    pub(super) fn take_driven(
        &mut self,
        said: &language::System<'_>,
        reader: &Reader<'_>,
    ) -> Option<(System, &'n Node)> {
        let node = said.service.node()?;
        for (key, _) in said.node.entries() {
            let Some(text) = key.text().filter(|text| !BESIDE_SERVICE.contains(text)) else { continue };
            reader.sink.error(key, format!("move \"{text}\" to the service itself, under `services`"));
        }
        let name = reader.text(node)?;
        let Some(index) = self.wanted.iter().position(|(service, _)| service.tier.name == name) else {
            reader.sink.error(node, self.unknown(&name));
            return None;
        };
        let (mut system, node) = self.wanted.remove(index);
        system.rpc = said.rpc.given()?.cloned();
        Some((system, node))
    }

    /// Tells of services none of which is driven, in a scenario without `system`.
    pub(super) fn check_driven(&self, system: Option<&Node>, node: Option<&Node>, reader: &Reader<'_>) {
        if let (None, Some(node), Some((last, _))) = (system, node, self.wanted.last()) {
            let name = &last.tier.name;
            let message =
                format!("nothing says which service requests go to; add `system: {{service: {name}}}`");
            reader.sink.error(node, message);
        }
    }

    /// Tells them where the stores are.
    pub(super) fn tell(&mut self, stores: &Stores, reader: &Reader<'_>) {
        self.wanted.iter_mut().for_each(|(service, node)| stores.tell(Some(node), service, reader));
    }

    /// Checks what they, and then the system, ask of each other: each knows those that are started before it.
    pub(super) fn check(&self, system: &System, system_node: Option<&Node>, reader: &Reader<'_>) {
        let mut known: Vec<&System> = Vec::new();
        let all = self.wanted.iter().map(|(service, node)| (service, *node));
        for (service, node) in all.chain(system_node.map(|node| (system, node))) {
            let mut texts: Vec<&str> = service.settings.values().map(String::as_str).collect();
            let launch = &service.launch;
            if let SystemOrigin::Command(words) = &service.origin {
                texts.extend(words.iter().map(String::as_str));
            }
            texts.extend(launch.env.values().map(String::as_str));
            let hooks = launch.before.iter().chain(&launch.after);
            texts.extend(hooks.flat_map(|hook| &hook.command).map(String::as_str));
            for fact in texts.into_iter().flat_map(service_facts) {
                let (name, fact) = (fact.store, fact.fact);
                if !known.iter().any(|known| known.tier.name == name) {
                    let later = self.wanted.iter().any(|(other, _)| other.tier.name == name);
                    let message = match later {
                        true => format!(
                            "\"{name}\" is started after this; write it further up, as services are started in order"
                        ),
                        false => self.unknown(name),
                    };
                    reader.sink.error(node, message);
                } else if !SERVICE_FACTS.contains(&fact) {
                    let known = SERVICE_FACTS.join(", ");
                    reader
                        .sink
                        .error(node, format!("the service \"{name}\" has no \"{fact}\"; it has {known}"));
                }
            }
            known.push(service);
        }
    }

    fn unknown(&self, name: &str) -> String {
        let names = self.wanted.iter().map(|(service, _)| service.tier.name.as_str()).collect();
        unknown_part("service", name, names, &self.left_out)
    }

    /// All that are started before the system.
    pub(super) fn into_services(self) -> Vec<System> {
        self.wanted.into_iter().map(|(service, _)| service).collect()
    }
}
