//! What a run used, tier by tier.

use tidemark_record::bill::{Amount, Role};
use tidemark_record::fault::FaultEvent;
use tidemark_record::manifest::Manifest;
use tidemark_record::summary::{Process, Status};
use tidemark_record::{DRIVER, MACHINE, SYSTEM};

use crate::units::seconds;

/// What was seen for a smaller share of the measured window is in no sum.
const SEEN_SHARE: f64 = 0.95;

/// A process of a tier, over the measured window.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// What it is called in samples.
    pub(crate) name: String,
    pub(crate) cpu_s: f64,
    /// The most cores that it used in a run.
    cores_max: f64,
    pub(crate) rss_bytes_max: u64,
}

/// A part of what ran that may stand on machines of its own.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tier {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Its instances, where they have figures of their own; else one with the figures of all.
    pub(crate) nodes: Vec<Node>,
    pub(crate) instances: u64,
    pub(crate) cpu_s: f64,
    /// Why it has no price: what was not seen of it in a run.
    not_seen: Option<String>,
    /// Runs in which it has figures.
    pub(crate) runs: usize,
}

impl Tier {
    /// `whole`: what has the figures of all instances; `nodes`: the instances, where they have figures of their own.
    fn new(
        name: &str,
        role: Role,
        (whole, nodes): (&[&Process], &[&Process]),
        began_with: usize,
        measured_s: f64,
    ) -> Tier {
        let of_nodes = if nodes.is_empty() { whole } else { nodes };
        let node = |of: &&Process| Node {
            name: of.name.clone(),
            cpu_s: of.cpu_s,
            cores_max: if measured_s > 0.0 { of.cpu_s / measured_s } else { 0.0 },
            rss_bytes_max: of.rss_bytes_max,
        };
        let began = |of: &&&Process| number_of(&of.name).is_none_or(|number| number <= began_with);
        let of_begin = whole.iter().chain(nodes.iter().filter(began));
        let seen_s = of_begin.filter_map(|of| of.seen_s).fold(measured_s, f64::min);
        let not_seen = if !nodes.is_empty() && nodes.len() < began_with {
            Some(format!("{} of its {began_with} instances were seen", nodes.len()))
        } else {
            (seen_s < SEEN_SHARE * measured_s)
                .then(|| format!("it was seen for only {} of {}", seconds(seen_s), seconds(measured_s)))
        };
        Tier {
            name: name.to_owned(),
            role,
            nodes: of_nodes.iter().map(node).collect(),
            instances: of_nodes.len().max(began_with).max(1) as u64,
            cpu_s: whole.iter().map(|of| of.cpu_s).sum(),
            not_seen,
            runs: 1,
        }
    }

    /// Highest resident memory of one instance; 0 where it is not known.
    pub(crate) fn rss_bytes_max(&self) -> u64 {
        self.nodes.iter().map(|of| of.rss_bytes_max).max().unwrap_or(0)
    }

    /// Machines with so many cores: one for each instance, more where one used more cores than a machine has.
    pub(crate) fn machines(&self, cores: Amount) -> u64 {
        // in billionths of a core, so that what fits exactly is not one machine more
        let each = |used: f64| {
            let used = (used * 1e9).round() as u128;
            u64::try_from(used.div_ceil(cores.nano().max(1))).unwrap_or(u64::MAX).max(1)
        };
        match &self.nodes[..] {
            // nobody knows which of them used it
            [all] => self.instances.saturating_mul(each(all.cores_max / self.instances as f64)),
            nodes => {
                let used = nodes.iter().map(|of| each(of.cores_max)).fold(0, u64::saturating_add);
                used.saturating_add(self.instances.saturating_sub(nodes.len() as u64))
            }
        }
    }
}

/// All that a bill is made of; of several runs together, for rounds of a comparison.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Usage {
    pub(crate) good: u64,
    pub(crate) failed: u64,
    pub(crate) measured_s: f64,
    pub(crate) customers: Option<u64>,
    pub(crate) runs: usize,
    /// Runs that did not pass, and why.
    not_passed: Vec<(Status, String)>,
    pub(crate) tiers: Vec<Tier>,
    /// What ran and has no figures of its own, by name, and why.
    unseen: Vec<(String, String)>,
    /// What was broken on purpose in the measured window.
    pub(crate) faults: Vec<String>,
}

impl Usage {
    pub(crate) fn of(manifest: &Manifest) -> Usage {
        let summary = &manifest.summary;
        let verdict = &summary.verdict;
        let not_passed = (verdict.status != Status::Pass).then(|| (verdict.status, verdict.in_words("; ")));
        let tiers = tiers(manifest);
        Usage {
            // those that came in the window, as the throughput has them
            good: (summary.achieved_per_s * summary.measured_s).round() as u64,
            failed: summary.failed,
            measured_s: summary.measured_s,
            customers: manifest.settings.get("customers").and_then(|n| n.parse().ok()).filter(|n| *n > 0),
            runs: 1,
            not_passed: not_passed.into_iter().collect(),
            unseen: unseen(manifest, &tiers),
            tiers,
            faults: faults(manifest),
        }
    }

    /// What a planned system uses in an hour at a rate; of each tier the instances, and the CPU-seconds of a request.
    pub(crate) fn planned(per_s: f64, tiers: &[(&Tier, u64, f64)]) -> Usage {
        const HOUR_S: f64 = 3_600.0;
        let tier = |(of, instances, cpu_s): &(&Tier, u64, f64)| {
            let node = Node {
                name: of.name.clone(),
                cpu_s: cpu_s * per_s * HOUR_S,
                cores_max: cpu_s * per_s,
                rss_bytes_max: of.rss_bytes_max(),
            };
            Tier {
                instances: *instances,
                cpu_s: node.cpu_s,
                nodes: vec![node],
                not_seen: None,
                runs: 1,
                ..(*of).clone()
            }
        };
        Usage {
            good: (per_s * HOUR_S).round() as u64,
            measured_s: HOUR_S,
            runs: 1,
            tiers: tiers.iter().map(tier).collect(),
            ..Usage::default()
        }
    }

    /// Adds another run of the same.
    pub(crate) fn add(&mut self, other: Usage) {
        self.good += other.good;
        self.failed += other.failed;
        self.measured_s += other.measured_s;
        self.runs += other.runs;
        self.not_passed.extend(other.not_passed);
        for tier in other.tiers {
            let Some(of) = self.tiers.iter_mut().find(|of| of.name == tier.name) else {
                self.tiers.push(tier);
                continue;
            };
            of.cpu_s += tier.cpu_s;
            of.not_seen = of.not_seen.take().or(tier.not_seen);
            of.runs += tier.runs;
            of.instances = of.instances.max(tier.instances);
            for node in tier.nodes {
                match of.nodes.iter_mut().find(|of| of.name == node.name) {
                    Some(of) => {
                        of.cpu_s += node.cpu_s;
                        of.cores_max = of.cores_max.max(node.cores_max);
                        of.rss_bytes_max = of.rss_bytes_max.max(node.rss_bytes_max);
                    }
                    None => of.nodes.push(node),
                }
            }
        }
        let new = |all: &[(String, String)], (name, _): &(String, String)| all.iter().all(|of| of.0 != *name);
        self.unseen.extend(other.unseen.into_iter().filter(|of| new(&self.unseen, of)).collect::<Vec<_>>());
        self.faults
            .extend(other.faults.into_iter().filter(|of| !self.faults.contains(of)).collect::<Vec<_>>());
    }

    /// Why the figures are not those of runs that passed: of how many, the worst first.
    pub(crate) fn caveat(&self) -> Option<String> {
        let of = |status: Status| self.not_passed.iter().filter(move |(of, _)| *of == status);
        let mut says: Vec<String> = Vec::new();
        let mut reasons: Vec<&str> = Vec::new();
        for (status, one, several) in
            [(Status::Fail, "failed", "failed"), (Status::Invalid, "is invalid", "are invalid")]
        {
            let count = of(status).count();
            if count == 0 {
                continue;
            }
            let of_rounds = if says.is_empty() { format!(" of {} rounds", self.runs) } else { String::new() };
            let subject = if self.runs == 1 { "the run".to_owned() } else { format!("{count}{of_rounds}") };
            says.push(format!("{subject} {}", if count == 1 { one } else { several }));
            reasons.extend(of(status).map(|(_, reason)| reason.as_str()).take(1));
        }
        (!says.is_empty()).then(|| format!("{}: {}", says.join(", "), reasons.join("; ")))
    }

    /// Why a tier has no price, whatever machine it stands on.
    pub(crate) fn not_seen(&self, tier: &Tier) -> Option<String> {
        if tier.runs < self.runs {
            return Some(format!("only {} of {} rounds have its figures", tier.runs, self.runs));
        }
        let why = tier.not_seen.as_ref()?;
        Some(if self.runs == 1 { why.clone() } else { format!("in a round, {why}") })
    }

    /// What is in no sum, as it has no figures in any run: a sentence each.
    pub(crate) fn unseen(&self) -> Vec<String> {
        let has_figures = |name: &str| self.tiers.iter().any(|tier| tier.name == name);
        let unseen = self.unseen.iter().filter(|(name, _)| !has_figures(name));
        unseen.map(|(name, why)| format!("{name} is in no sum: {why}")).collect()
    }
}

/// The services, balancers and stores that the run had, by name.
pub(crate) fn declared(manifest: &Manifest) -> impl Iterator<Item = String> {
    let services = manifest.services.iter().flat_map(|service| {
        let balancer = service.balancer.as_ref().map(|_| service.balancer_name());
        std::iter::once(service.name.clone()).chain(balancer)
    });
    services.chain(manifest.stores.iter().map(|store| store.name.clone()))
}

/// What ran and has no figures of its own, and why.
fn unseen(manifest: &Manifest, tiers: &[Tier]) -> Vec<(String, String)> {
    let machines = manifest.watched.iter().filter(|of| of.is_machine);
    let machines = machines
        .map(|of| (of.name.clone(), "a whole machine was watched, with all that runs on it".to_owned()));
    let processes = declared(manifest).map(|name| (name, "none of its processes was seen".to_owned()));
    let mut unseen: Vec<_> = machines.chain(processes).collect();
    unseen.retain(|(name, _)| tiers.iter().all(|tier| tier.name != *name));
    let has_driven = tiers.iter().any(|tier| tier.role == Role::System)
        || manifest.services.iter().any(|service| service.driven);
    if !has_driven && manifest.summary.requests > 0 {
        let why = "it was driven and was not watched; start it by the scenario, or give --watch";
        unseen.push((manifest.system.service.as_deref().unwrap_or(SYSTEM).to_owned(), why.to_owned()));
    }
    unseen
}

/// The faults of the measured window, a sentence each.
fn faults(manifest: &Manifest) -> Vec<String> {
    let (from_us, to_us) = measured_us(manifest);
    let tells = |fault: &FaultEvent| {
        let begin_us = fault.begin_us.filter(|at| (from_us..=to_us).contains(at))?;
        let at = seconds(begin_us as f64 / 1e6);
        let (tier, of) = match fault.target.rsplit_once('.') {
            Some((tier, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => {
                (tier, "an instance of the tier")
            }
            _ => (fault.target.as_str(), "the tier"),
        };
        let driven = manifest.services.iter().find(|service| service.driven).map(|service| &service.name);
        let tier = match tier {
            SYSTEM => driven.or(manifest.system.service.as_ref()).map_or(SYSTEM, String::as_str),
            tier => tier,
        };
        Some(match fault.kind.as_str() {
            "kill" | "stop" | "freeze" => format!("during `{}` at {at} {of} {tier} was down", fault.fault),
            _ => format!("`{}` at {at} is in these figures", fault.fault),
        })
    };
    manifest.summary.faults.iter().filter_map(tells).collect()
}

/// Begin and end of the measured window, microseconds since the run began.
pub(crate) fn measured_us(manifest: &Manifest) -> (u64, u64) {
    let measured = manifest.phases.iter().filter(|phase| phase.measured);
    let from_us = measured.clone().map(|phase| phase.start_us).min().unwrap_or(0);
    (from_us, measured.map(|phase| phase.end_us).max().unwrap_or(u64::MAX))
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
    let measured_s = manifest.summary.measured_s;
    let mut tiers = Vec::new();
    let driven_first = |driven: bool| manifest.services.iter().filter(move |of| of.driven == driven);
    for service in driven_first(true).chain(driven_first(false)) {
        let process = if service.driven { SYSTEM } else { &service.name };
        let whole = take(&|name| name == process);
        let nodes = take(&|name| manifest.service_of(name).is_some_and(|of| of.name == service.name));
        if !whole.is_empty() {
            let role = if service.driven { Role::System } else { Role::Service };
            tiers.push(Tier::new(&service.name, role, (&whole, &nodes), service.addresses.len(), measured_s));
        }
        let balancer = service.balancer_name();
        let whole = take(&|name| name == balancer);
        if !whole.is_empty() {
            tiers.push(Tier::new(&balancer, Role::Balancer, (&whole, &[]), 1, measured_s));
        }
    }
    let system = take(&|name| name == SYSTEM);
    if !system.is_empty() {
        let name = manifest.system.service.as_deref().unwrap_or(SYSTEM);
        tiers.insert(0, Tier::new(name, Role::System, (&system, &[]), 1, measured_s));
    }
    for store in &manifest.stores {
        let nodes = take(&|name| name == store.name || is_node(&store.name, name));
        if !nodes.is_empty() {
            tiers.push(Tier::new(
                &store.name,
                Role::Store,
                (&nodes, &nodes),
                store.addresses.len(),
                measured_s,
            ));
        }
    }
    let driver = take(&|name| name == DRIVER);
    for process in left {
        tiers.push(Tier::new(&process.name, Role::Watched, (&[process], &[]), 1, measured_s));
    }
    if !driver.is_empty() {
        let instances = manifest.summary.driver.agents.len().max(1);
        tiers.push(Tier::new(DRIVER, Role::Driver, (&driver, &[]), instances, measured_s));
    }
    tiers
}

/// `redis.2` of `redis`.
fn is_node(store: &str, process: &str) -> bool {
    let is_of = process.strip_prefix(store).is_some_and(|rest| rest.starts_with('.'));
    is_of && number_of(&process[store.len()..]).is_some()
}

/// 2 of `redis.2`.
fn number_of(process: &str) -> Option<usize> {
    process.rsplit_once('.')?.1.parse().ok()
}
