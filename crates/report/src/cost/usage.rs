//! What a run used, tier by tier.

use tidemark_record::bill::Role;
use tidemark_record::manifest::{Manifest, Service};
use tidemark_record::summary::{Process, Status};
use tidemark_record::{DRIVER, MACHINE, SYSTEM};

/// A part of what ran that may stand on machines of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tier {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// What its instances are called in samples.
    pub(crate) nodes: Vec<String>,
    pub(crate) instances: u64,
    pub(crate) cpu_s: f64,
    /// Highest of one instance.
    pub(crate) rss_bytes_max: u64,
}

impl Tier {
    /// `whole`: what has the figures of all instances; `nodes`: the instances, where they have figures of their own.
    fn new(name: &str, role: Role, whole: &[&Process], nodes: &[&Process], began_with: usize) -> Tier {
        let of_nodes = if nodes.is_empty() { whole } else { nodes };
        Tier {
            name: name.to_owned(),
            role,
            nodes: of_nodes.iter().map(|of| of.name.clone()).collect(),
            instances: of_nodes.len().max(began_with).max(1) as u64,
            cpu_s: whole.iter().map(|of| of.cpu_s).sum(),
            rss_bytes_max: of_nodes.iter().map(|of| of.rss_bytes_max).max().unwrap_or(0),
        }
    }
}

/// All that a bill is made of; of several runs together, for rounds of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) scenario: String,
    pub(crate) good: u64,
    pub(crate) measured_s: f64,
    pub(crate) customers: Option<u64>,
    pub(crate) caveat: Option<String>,
    pub(crate) tiers: Vec<Tier>,
    /// What ran and has no figures of its own.
    pub(crate) unseen: Vec<String>,
}

impl Usage {
    pub(crate) fn of(manifest: &Manifest) -> Usage {
        let summary = &manifest.summary;
        let verdict = &summary.verdict;
        let caveat = match verdict.status {
            Status::Pass => None,
            status => Some(format!("the run is {}: {}", called(status), verdict.in_words("; "))),
        };
        let watched = manifest.watched.iter().filter(|of| of.is_machine);
        let mut unseen: Vec<String> = watched
            .map(|of| format!("{}: a whole machine was watched, with all that runs on it", of.name))
            .collect();
        let tiers = tiers(manifest);
        if !tiers.iter().any(|tier| tier.role == Role::System) && summary.requests > 0 {
            unseen.push(format!(
                "{SYSTEM}: what was driven was not watched; start it by the scenario, or give --watch"
            ));
        }
        Usage {
            scenario: manifest.scenario.clone(),
            // those that came in the window, as the throughput has them
            good: (summary.achieved_per_s * summary.measured_s).round() as u64,
            measured_s: summary.measured_s,
            customers: manifest.settings.get("customers").and_then(|n| n.parse().ok()).filter(|n| *n > 0),
            caveat,
            tiers,
            unseen,
        }
    }

    /// Adds another run of the same.
    pub(crate) fn add(&mut self, other: Usage) {
        self.good += other.good;
        self.measured_s += other.measured_s;
        self.caveat = self.caveat.take().or(other.caveat);
        for tier in other.tiers {
            match self.tiers.iter_mut().find(|of| of.name == tier.name) {
                Some(of) => {
                    of.cpu_s += tier.cpu_s;
                    of.instances = of.instances.max(tier.instances);
                    of.rss_bytes_max = of.rss_bytes_max.max(tier.rss_bytes_max);
                }
                None => self.tiers.push(tier),
            }
        }
        self.unseen
            .extend(other.unseen.into_iter().filter(|of| !self.unseen.contains(of)).collect::<Vec<_>>());
    }
}

fn called(status: Status) -> &'static str {
    match status {
        Status::Pass => "one that passed",
        Status::Fail => "one that failed",
        Status::Invalid => "invalid",
    }
}

/// The tiers of a run: what was driven first, then other services, each with its balancer behind it, stores, what was watched,
/// and the load generator.
pub(crate) fn tiers(manifest: &Manifest) -> Vec<Tier> {
    let mut left: Vec<&Process> = manifest.summary.processes.iter().filter(|of| of.name != MACHINE).collect();
    left.retain(|of| !manifest.watched.iter().any(|watched| watched.is_machine && watched.name == of.name));
    let mut take = |is_it: &dyn Fn(&str) -> bool| {
        let (found, others) = left.iter().partition(|of| is_it(&of.name));
        left = others;
        found as Vec<&Process>
    };
    let mut tiers = Vec::new();
    let driven_first = |driven: bool| manifest.services.iter().filter(move |of| of.driven == driven);
    for service in driven_first(true).chain(driven_first(false)) {
        let process = if service.driven { SYSTEM } else { &service.name };
        let whole = take(&|name| name == process);
        let nodes = take(&|name| is_instance(service, manifest, name));
        if !whole.is_empty() {
            let role = if service.driven { Role::System } else { Role::Service };
            tiers.push(Tier::new(&service.name, role, &whole, &nodes, service.addresses.len()));
        }
        let balancer = service.balancer_name();
        let whole = take(&|name| name == balancer);
        if !whole.is_empty() {
            tiers.push(Tier::new(&balancer, Role::Balancer, &whole, &[], 1));
        }
    }
    let system = take(&|name| name == SYSTEM);
    if !system.is_empty() {
        let name = manifest.system.service.as_deref().unwrap_or(SYSTEM);
        tiers.insert(0, Tier::new(name, Role::System, &system, &[], 1));
    }
    for store in &manifest.stores {
        let nodes = take(&|name| name == store.name || is_node(&store.name, name));
        if !nodes.is_empty() {
            tiers.push(Tier::new(&store.name, Role::Store, &nodes, &nodes, 1));
        }
    }
    let driver = take(&|name| name == DRIVER);
    for process in left {
        tiers.push(Tier::new(&process.name, Role::Watched, &[process], &[], 1));
    }
    if !driver.is_empty() {
        tiers.push(Tier::new(DRIVER, Role::Driver, &driver, &[], 1));
    }
    tiers
}

fn is_instance(service: &Service, manifest: &Manifest, process: &str) -> bool {
    manifest.service_of(process).is_some_and(|of| of.name == service.name)
}

/// `redis.2` of `redis`.
fn is_node(store: &str, process: &str) -> bool {
    let number = process.strip_prefix(store).and_then(|rest| rest.strip_prefix('.'));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}
