//! Faults: what is broken on purpose, and when.

use std::time::Duration;

use super::load::window;
use crate::diagnostic::did_you_mean;
use crate::grammar::kinds;
use crate::grammar::record::{At, Kind};
use crate::language;
use crate::plan::{Fault, FaultKind, Load, System, SystemOrigin};
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
        check_time(said.at.node().unwrap_or(node), &fault, measured, reader);
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
    ];
    let (kind, target) = kinds.into_iter().find(|(_, target)| target.is_there())?;
    let word = target.name;
    let parts = [
        (said.latency.key(), "slow"),
        (said.bandwidth.key(), "slow"),
        (said.share.key(), "cut"),
        (said.disk.key(), "fill"),
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
            at.refuse(sink, format!("a \"{word}\" lasts as long as the store takes for it; leave this out"));
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
        SystemOrigin::Url(url) if fault.kind.is_maintenance() && fault.target == SYSTEM => {
            store_facts(url).next()
        }
        _ => None,
    };
    driven.map_or_else(|| fault.target.clone(), |fact| fact.store.to_owned())
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
    let There { system, started, watched } = *there;
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
        let names = || std::iter::once(SYSTEM).chain(started.iter().map(String::as_str)).chain(watched());
        let mut hint = did_you_mean(target, names());
        if hint.is_empty() {
            hint = format!("; there is {}", names().collect::<Vec<_>>().join(", "));
        }
        reader.sink.error(node, format!("this run starts nothing named \"{target}\"{hint}"));
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

fn check_time(at: &Node, fault: &Fault, measured: Duration, reader: &Reader<'_>) {
    if fault.at >= measured {
        let message = format!(
            "only {} are measured, and faults are due from the beginning of that; give an earlier time",
            Time(measured)
        );
        reader.sink.error(at, message);
    } else if fault.until().is_some_and(|until| until > measured) {
        let message = format!("this is undone when the load ends, after the {} measured", Time(measured));
        reader.sink.warn(at.position, message);
    }
}
