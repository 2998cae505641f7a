//! Faults: what is broken on purpose, and when.

use std::time::Duration;

use super::load::window;
use super::services::INSTANCES_MAX;
use crate::diagnostic::did_you_mean;
use crate::grammar::kinds;
use crate::grammar::record::{At, Kind};
use crate::language;
use crate::plan::{Balancer, Fault, FaultKind, Load, System, SystemOrigin, Tier};
use crate::reader::{Moment, Reader};
use crate::sink::Sink;
use crate::store_facts::store_facts;
use crate::units::{Size, Time};
use crate::yaml::Node;

/// What faults call the system.
const SYSTEM: &str = "system";
/// Size of the disk that is filled, where nothing is said.
const DISK_BYTES: u64 = 512 << 20;
/// The least of the system's, and of a store's, which has files of tens of megabytes from the beginning.
const SYSTEM_DISK_BYTES_MIN: u64 = 1 << 20;
const STORE_DISK_BYTES_MIN: u64 = 128 << 20;
/// Durability that needs no disk.
const MEMORY: &str = "memory";
/// Most faults of a run.
const FAULTS_MAX: usize = 100;

/// What faults could be aimed at.
pub(super) struct There<'a> {
    pub(super) system: &'a System,
    /// What is started before it.
    pub(super) services: &'a [System],
    /// Names of what the lab starts beside the system.
    pub(super) started: &'a [String],
    /// Names of what is watched, and whether faults may be aimed at it.
    pub(super) watched: &'a [(&'a str, bool)],
}

/// Reads the faults, in order of time.
pub(super) fn read(node: Option<&Node>, there: &There<'_>, load: &Load, reader: &Reader<'_>) -> Vec<Fault> {
    let Some(list) = node else { return Vec::new() };
    if list.items().len() > FAULTS_MAX {
        reader.sink.error(list, format!("{} faults; at most {FAULTS_MAX}", list.items().len()));
    }
    let window = window(&load.phases).map(|(first, last)| last - first);
    let measured = window.unwrap_or(Duration::MAX);
    let mut faults: Vec<(Fault, &Node)> = Vec::new();
    for node in list.items() {
        let Some(said) = language::Fault::read(node, reader).filter(|said| said.when.value != Some(false))
        else {
            continue;
        };
        let Some((target, fault)) = one(&said, window, reader) else { continue };
        let fault = Fault { target: meant(&fault, there.system), ..fault };
        check_target(target, &fault, there, reader);
        check_time(said.at.node().unwrap_or(node), &fault, there, measured, reader);
        if let Some((other, _)) = faults.iter().find(|(other, _)| fault.overlaps(other)) {
            let message = format!(
                "this is at the same time as `{other}` at {}; let one be over before the other begins",
                Time(other.at)
            );
            reader.sink.error(node, message);
        }
        faults.push((fault, node));
    }
    faults.sort_by_key(|(fault, _)| fault.at);
    faults.into_iter().map(|(fault, _)| fault).collect()
}

/// A fault, and where its target stands.
fn one<'n>(
    said: &language::Fault<'n>,
    window: Option<Duration>,
    reader: &Reader<'_>,
) -> Option<(&'n Node, Fault)> {
    let sink = reader.sink;
    let slow =
        FaultKind::Slow { latency: said.latency.value.unwrap_or_default(), bandwidth: said.bandwidth.value };
    let cut = FaultKind::Cut { share: said.share.value.unwrap_or(1.0) };
    let kinds = [
        (FaultKind::Kill, &said.kill),
        (FaultKind::Stop, &said.stop),
        (FaultKind::Freeze, &said.freeze),
        (slow, &said.slow),
        (cut, &said.cut),
        (fill(said, sink), &said.fill),
        (FaultKind::Rewrite, &said.rewrite),
        (FaultKind::Snapshot, &said.snapshot),
        (FaultKind::Roll, &said.roll),
        (scale(said, sink), &said.scale),
    ];
    let (kind, target) = kinds.into_iter().find(|(_, target)| target.is_there())?;
    let word = target.name;
    let parts = [
        (said.latency.key(), "slow"),
        (said.bandwidth.key(), "slow"),
        (said.share.key(), "cut"),
        (said.disk.key(), "fill"),
        (said.instances.key(), "scale"),
    ];
    for (key, of) in parts.into_iter().filter(|(_, of)| word != *of).filter_map(|(key, of)| Some((key?, of)))
    {
        let name = key.text().unwrap_or_default();
        sink.error(key, format!("\"{word}\" has no \"{name}\"; it belongs to \"{of}\""));
    }
    if kind == (FaultKind::Slow { latency: Duration::ZERO, bandwidth: None }) {
        sink.error(said.node, "\"slow\" needs a latency or a bandwidth");
    }
    let (wanted, other) = match kind.ends_processes() {
        true => (&said.restart_after, &said.length),
        false => (&said.length, &said.restart_after),
    };
    if kind.is_maintenance() {
        for at in [wanted, other] {
            at.refuse(sink, format!("a \"{word}\" lasts as long as it takes; leave this out"));
        }
    } else {
        other.refuse(sink, format!("\"{word}\" has no \"{}\"; write \"{}\"", other.name, wanted.name));
        if !wanted.is_there() && !kind.ends_processes() {
            sink.error(said.node, format!("\"{word}\" needs the key \"for\": how long it lasts"));
        }
    }
    let (at, share) = at(&said.at, window, sink)?;
    let lasts = if kind.is_maintenance() { None } else { wanted.given()?.copied() };
    Some((target.node()?, Fault { at, share, target: target.value.clone()?, kind, lasts }))
}

/// When a fault is due, and the share of the measured window that this is where it is said so.
fn at(
    said: &At<'_, kinds::Moment>,
    window: Option<Duration>,
    sink: &Sink<'_>,
) -> Option<(Duration, Option<f64>)> {
    match (said.value?, window) {
        (Moment::After(at), _) => Some((at, None)),
        (Moment::Share(share), Some(window)) => Some((window.mul_f64(share), Some(share))),
        (Moment::Share(_), None) => {
            said.error(sink, "nothing is measured of which this could be a share; give a time like 10s");
            None
        }
    }
}

/// The store that is meant where it is itself what is driven.
fn meant(fault: &Fault, system: &System) -> String {
    let driven = match &system.origin {
        SystemOrigin::Url(url) if fault.kind.asks_a_store() && fault.target == SYSTEM => {
            store_facts(url).next()
        }
        // the link is before all instances
        _ if fault.target == SYSTEM && !fault.kind.is_of_link() && !system.tier.is_single() => {
            return system.tier.name.clone();
        }
        _ if fault.target == system.tier.name && (fault.kind.is_of_link() || system.tier.is_single()) => {
            return SYSTEM.to_owned();
        }
        _ => None,
    };
    driven.map_or_else(|| fault.target.clone(), |fact| fact.store.to_owned())
}

fn scale(said: &language::Fault<'_>, sink: &Sink<'_>) -> FaultKind {
    let instances = said.instances.value.and_then(|count| usize::try_from(count).ok());
    if said.scale.is_there() && !said.instances.is_there() {
        sink.error(said.node, "\"scale\" needs the key \"instances\": how many there are afterwards");
    }
    let instances = instances.unwrap_or(1);
    if instances > INSTANCES_MAX {
        said.instances.error(sink, format!("{instances} instances are too many; at most {INSTANCES_MAX}"));
    }
    FaultKind::Scale { instances: instances.min(INSTANCES_MAX) }
}

/// Lets services have as many instances as faults give them.
pub(super) fn make_room<'s>(
    node: Option<&Node>,
    services: impl Iterator<Item = &'s mut System>,
    reader: &Reader<'_>,
) {
    let said = |node| language::Fault::read(node, reader).filter(|said| said.when.value != Some(false));
    let faults: Vec<_> = node.map(Node::items).unwrap_or_default().iter().filter_map(said).collect();
    for Tier { name, instances_max, .. } in services.map(|service| &mut service.tier) {
        for said in faults
            .iter()
            .filter(|said| said.scale.value.as_ref().is_some_and(|of| of == name || of == SYSTEM))
        {
            let wanted = said.instances.value.and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
            *instances_max = wanted.clamp(*instances_max, INSTANCES_MAX.max(*instances_max));
        }
    }
}

fn fill(said: &language::Fault<'_>, sink: &Sink<'_>) -> FaultKind {
    let (least, whom) = match said.fill.value.as_deref() {
        Some(target) if target != SYSTEM => (STORE_DISK_BYTES_MIN, "store"),
        _ => (SYSTEM_DISK_BYTES_MIN, "system"),
    };
    let disk_bytes = said.disk.value.unwrap_or(DISK_BYTES);
    if disk_bytes < least {
        said.disk.error(sink, format!("a disk of less than {} has no room for a {whom}", Size(least)));
    }
    FaultKind::Fill { disk_bytes }
}

fn check_target(node: &Node, fault: &Fault, there: &There<'_>, reader: &Reader<'_>) {
    let There { system, services, started, watched } = *there;
    if fault.kind.is_of_instances() {
        return check_instances(node, fault, there, reader);
    }
    let of_services = || services.iter().chain([system]).flat_map(|service| service.tier.names());
    let is_of_service = fault.target != SYSTEM && of_services().any(|name| name == fault.target);
    if is_of_service && !fault.kind.asks_a_store() {
        let is_balancer =
            || services.iter().chain([system]).any(|of| of.tier.balancer_name() == fault.target);
        if fault.kind.disk_bytes().is_some() {
            let message = "`fill` is for a store, or for a system without instances and balancer";
            reader.sink.error(node, message.to_owned());
        } else if fault.kind.is_of_link() && is_balancer() {
            let message = "a balancer has no link of its own; the links are of `system` and of services";
            reader.sink.error(node, message.to_owned());
        }
        return;
    }
    let (target, fills) = (fault.target.as_str(), fault.kind.disk_bytes().is_some());
    let watched = || watched.iter().filter(|(_, faults)| *faults).map(|(name, _)| *name);
    if watched().any(|name| name == target) && !fault.kind.is_maintenance() {
        return check_watched(node, fault, reader);
    }
    if there.watched.iter().any(|(name, _)| *name == target) && !fault.kind.is_maintenance() {
        let message =
            format!("\"{target}\" is only watched; `faults: true` beside it lets faults be aimed at it");
        return reader.sink.error(node, message);
    }
    let is_ours = matches!(system.origin, SystemOrigin::Shipped(_) | SystemOrigin::Command(_));
    if target == SYSTEM && fault.kind.is_maintenance() {
        let speaks_redis =
            |url: &str| url.split_once("://").is_some_and(|(scheme, _)| scheme.starts_with("redis"));
        if !matches!(&system.origin, SystemOrigin::Url(url) if speaks_redis(url)) {
            let message =
                format!("a {} is that of a store; the system is none at a redis:// URL", fault.kind.word());
            reader.sink.error(node, message);
        }
    } else if target == SYSTEM && !is_ours {
        let message =
            "only what a run itself starts can be broken: start the system with `serve` or `command`";
        reader.sink.error(node, message);
    } else if target == SYSTEM && fills && !matches!(system.origin, SystemOrigin::Shipped(_)) {
        let message = "only the disk of a system that is started with `serve` can be filled, or of a store that the run starts";
        reader.sink.error(node, message);
    } else if target == SYSTEM && fills && system.durability.as_deref() == Some(MEMORY) {
        let message = "a system that keeps everything in memory does not feel a full disk";
        reader.sink.warn(node.position, message.into());
    } else if target != SYSTEM && !started.iter().any(|name| name == target) {
        let of_services: Vec<String> = of_services().filter(|name| name != SYSTEM).collect();
        let names = || {
            let ours = started.iter().chain(&of_services).map(String::as_str);
            std::iter::once(SYSTEM).chain(ours).chain(watched())
        };
        let mut hint = did_you_mean(target, names());
        if hint.is_empty() {
            hint = format!("; there is {}", names().collect::<Vec<_>>().join(", "));
        }
        reader.sink.error(node, format!("this run starts nothing named \"{target}\"{hint}"));
    }
}

/// Only a service has instances, and one that has no other meanwhile cannot be replaced.
fn check_instances(node: &Node, fault: &Fault, there: &There<'_>, reader: &Reader<'_>) {
    let all = || there.services.iter().chain([there.system]);
    let word = fault.kind.word();
    // what is driven alone is called the system, whatever its service is called
    let is_meant = |service: &&System| {
        let is_driven = fault.target == SYSTEM && std::ptr::eq(*service, there.system);
        (service.tier.name == fault.target || is_driven) && !matches!(service.origin, SystemOrigin::Url(_))
    };
    let Some(service) = all().find(is_meant) else {
        let names = || all().map(|service| service.tier.name.as_str()).filter(|name| *name != SYSTEM);
        let mut hint = did_you_mean(&fault.target, names());
        if hint.is_empty() {
            hint = match names().next() {
                Some(_) => format!("; there is {}", names().collect::<Vec<_>>().join(", ")),
                None => "; there is none under `services`".to_owned(),
            };
        }
        return reader.sink.error(
            node,
            format!("\"{word}\" needs a service, and none is called \"{}\"{hint}", fault.target),
        );
    };
    let tier = &service.tier;
    if fault.kind == FaultKind::Roll && tier.instances < 2 {
        let message = format!(
            "\"{}\" has one instance, and nobody answers while it is replaced; give it two `instances` under `services`",
            tier.name
        );
        reader.sink.error(node, message);
    }
    if tier.balancer == Balancer::None && tier.name == there.system.tier.name && fault.kind != FaultKind::Roll
    {
        let message = format!(
            "the load generator knows the addresses of \"{}\" from the beginning; put a `balancer` in front of it",
            tier.name
        );
        reader.sink.error(node, message);
    }
}

/// What a run does not start has no link and no disk of the lab's own, and nobody here starts it again.
fn check_watched(node: &Node, fault: &Fault, reader: &Reader<'_>) {
    let is_possible = fault.kind.ends_processes() || fault.kind == FaultKind::Freeze;
    if !is_possible {
        let message = format!(
            "what is only watched can be frozen, stopped or killed; \"{}\" is for what this run starts",
            fault.kind.word()
        );
        reader.sink.error(node, message);
    } else if fault.kind.ends_processes() && fault.lasts.is_some() {
        let message = "nobody here starts again what is only watched; leave \"restart after\" out: who supervises it may do so";
        reader.sink.error(node, message);
    }
}

fn check_time(at: &Node, fault: &Fault, there: &There<'_>, measured: Duration, reader: &Reader<'_>) {
    let roll = fault.roll_takes_at_least(there.services.iter().chain([there.system]));
    if fault.at >= measured {
        let message = format!(
            "only {} are measured, and faults are due from the beginning of that; give an earlier time",
            Time(measured)
        );
        reader.sink.error(at, message);
    } else if fault.until().is_some_and(|until| until > measured) {
        let message = format!("this is undone when the load ends, after the {} measured", Time(measured));
        reader.sink.warn(at.position, message);
    } else if let Some(takes) = roll.filter(|takes| fault.at.saturating_add(*takes) > measured) {
        let message = format!(
            "this takes at least {}, and only {} are left; make the load longer, or begin earlier",
            Time(takes),
            Time(measured.saturating_sub(fault.at))
        );
        reader.sink.warn(at.position, message);
    }
}
