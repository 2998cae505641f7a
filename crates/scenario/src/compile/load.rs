//! The load: its model and its phases.

use std::time::Duration;

use crate::plan::{Load, LoadModel, Phase, Spacing};
use crate::reader::Reader;
use crate::yaml::Node;

/// What a level counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Users,
    Rate,
}

type Level = (Unit, f64, f64);

/// Reads the load; mistakes in how its parts fit are reported.
pub(super) fn read(node: Option<&Node>, reader: &Reader<'_>) -> Option<Load> {
    let node = node?;
    if node.entries().is_empty() {
        return None;
    }
    let own = level(node, reader);
    let mut phases = match node.get("phases") {
        Some(list) => listed(node, list, own, reader),
        None => short(node, own, reader),
    };
    let unit = own.or_else(|| phases.first().map(|(level, _)| *level)).map(|(unit, ..)| unit)?;
    if let Some(list) = node.get("phases")
        && phases.iter().any(|((other, ..), _)| *other != unit)
    {
        reader.sink.error(list, "all phases of a load have users, or all have a rate");
    }
    if phases.is_empty() {
        return None;
    }
    phases.retain(|(_, phase)| !phase.duration.is_zero());
    let phases: Vec<Phase> = phases.into_iter().map(|(_, phase)| phase).collect();
    check(node, &phases, reader);
    let spacing = node.get("spacing");
    let word = spacing.and_then(|node| reader.word(node, &["constant", "poisson"]));
    if let (Some(spacing), Unit::Users) = (spacing, unit) {
        reader.sink.error(spacing, "users do not arrive: spacing belongs to a load with a rate");
    }
    let model = match (unit, word) {
        (Unit::Users, _) => LoadModel::Closed,
        (Unit::Rate, Some("poisson")) => LoadModel::Open(Spacing::Poisson),
        (Unit::Rate, _) => LoadModel::Open(Spacing::Constant),
    };
    Some(Load { model, phases })
}

fn level(node: &Node, reader: &Reader<'_>) -> Option<Level> {
    if let Some(users) = node.get("users") {
        return reader.users(users).map(|(from, to)| (Unit::Users, from, to));
    }
    node.get("rate").and_then(|rate| reader.rate(rate)).map(|(from, to)| (Unit::Rate, from, to))
}

/// `ramp`, `warm-up` and `hold`.
fn short(node: &Node, own: Option<Level>, reader: &Reader<'_>) -> Vec<(Level, Phase)> {
    if node.get("users").is_none() && node.get("rate").is_none() {
        reader.sink.error(node, "a load needs users, a rate, or phases");
    }
    if node.get("hold").is_none() {
        reader.sink.error(node, "a load needs the key \"hold\" (how long is measured), or phases");
    }
    let Some((unit, from, to)) = own else { return Vec::new() };
    let time = |key| node.get(key).and_then(|node| reader.duration(node));
    let phase = |name: &str, from: f64, to: f64, measured: bool, duration: Duration| {
        ((unit, from, to), Phase { name: name.into(), duration, from, to, measured })
    };
    let ramp = time("ramp").map(|duration| phase("ramp", 0.0, from, false, duration));
    let warm_up = time("warm-up").map(|duration| phase("warm-up", from, from, false, duration));
    let hold = time("hold").map(|duration| phase("hold", from, to, true, duration));
    [ramp, warm_up, hold].into_iter().flatten().collect()
}

fn listed(node: &Node, list: &Node, own: Option<Level>, reader: &Reader<'_>) -> Vec<(Level, Phase)> {
    for key in ["ramp", "warm-up", "hold"] {
        if let Some((key_node, _)) = node.entry(key) {
            reader.sink.error(key_node, format!("a load has either \"phases\" or \"{key}\", not both"));
        }
    }
    let mut phases = Vec::new();
    for (index, node) in list.items().iter().enumerate() {
        let has_own = node.get("users").is_some() || node.get("rate").is_some();
        let level = if has_own { level(node, reader) } else { own };
        if level.is_none() && !has_own && own.is_none() {
            reader.sink.error(node, "this phase needs users or a rate, as the load has none of its own");
        }
        let name = node.get("name").and_then(|name| reader.text(name));
        let name = name.unwrap_or_else(|| format!("phase {}", index + 1));
        let measured = node.get("measured").and_then(|node| reader.bool(node));
        let measured = measured.unwrap_or(name != "warm-up" && name != "ramp");
        let duration = node.get("for").and_then(|node| reader.duration(node));
        let Some(((unit, from, to), duration)) = level.zip(duration) else { continue };
        phases.push(((unit, from, to), Phase { name, duration, from, to, measured }));
    }
    phases
}

fn check(node: &Node, phases: &[Phase], reader: &Reader<'_>) {
    let measured: Vec<usize> = (0..phases.len()).filter(|index| phases[*index].measured).collect();
    match (measured.first(), measured.last()) {
        (Some(first), Some(last)) if last - first + 1 != measured.len() => {
            reader
                .sink
                .error(node, "the measured phases must follow each other without another between them");
        }
        (None, _) => {
            reader.sink.error(node, "nothing is measured; a phase needs \"measured: true\" and a time")
        }
        _ => {}
    }
    if !phases.is_empty() && phases.iter().all(|phase| phase.from.max(phase.to) <= 0.0) {
        reader.sink.error(node, "this load is always 0; nothing would be sent");
    }
}
