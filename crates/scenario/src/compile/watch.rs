//! What is watched though the run does not start it.

use super::launch::words;
use crate::language::watch::KINDS;
use crate::plan::{Agent, MetricSeries, Watch, Watched, is_harmless};
use crate::reader::Reader;
use crate::yaml::Node;

/// Reads what is watched.
pub(super) fn read(node: Option<&Node>, reader: &Reader<'_>) -> Vec<Watch> {
    let items = node.map(Node::items).unwrap_or_default();
    let wanted =
        items.iter().filter(|item| item.get("when").is_none_or(|when| reader.bool(when) != Some(false)));
    wanted.filter_map(|item| one(item, reader)).collect()
}

fn one(node: &Node, reader: &Reader<'_>) -> Option<Watch> {
    let what = what(node, reader);
    let agent = node.get("agent").map(|agent| self::agent(agent, node, reader));
    for (key, of, is_there) in
        [("series", "metrics", node.get("metrics").is_some()), ("program", "agent", agent.is_some())]
    {
        if let Some((key_node, _)) = node.entry(key).filter(|_| !is_there) {
            reader.sink.error(key_node, format!("\"{key}\" belongs to \"{of}\""));
        }
    }
    let kind = KINDS.iter().any(|kind| node.get(kind).is_some());
    if !kind && agent.is_none() {
        let message = format!("what is watched needs one of the keys {}, or agent", KINDS.join(", "));
        reader.sink.error(node, message);
        return None;
    }
    let what = if kind { what? } else { Watched::Machine };
    let agent = match agent {
        Some(agent) => Some(agent?),
        None => None,
    };
    if let Some((key, _)) = node.entry("metrics").filter(|_| agent.is_some()) {
        reader.sink.error(key, "a page of metrics is asked from here; leave \"agent\" out");
    }
    if let (Some(flag), Some(agent)) = (what.flag(), &agent)
        && let Some(word) = [flag.as_str(), &agent.program].into_iter().find(|word| !is_harmless(word))
    {
        let message = format!(
            "\"{word}\" goes through another machine's shell; only letters, digits and . _ / : @ + , = - may stand in it"
        );
        reader.sink.error(node, message);
    }
    let faults = node.get("faults").and_then(|node| reader.bool(node)).unwrap_or(false);
    if let Some((key, _)) =
        node.entry("faults").filter(|_| faults && (agent.is_some() || !what.is_processes()))
    {
        reader.sink.error(key, "faults are for processes of this machine; leave this out");
    }
    let called = match node.get("as") {
        Some(node) => Some(reader.text(node)?),
        None => None,
    };
    Some(Watch { called, what, agent, faults })
}

fn what(node: &Node, reader: &Reader<'_>) -> Option<Watched> {
    let (word, value) = KINDS.iter().find_map(|word| Some((*word, node.get(word)?)))?;
    let read = |text: &str| match word {
        "pid" | "port" => Watched::parse(&format!("{word}={text}")),
        "cgroup" => Watched::cgroup(text),
        "metrics" => Watched::metrics(text, Vec::new()),
        _ => Watched::named(word, text),
    };
    let what = reader.parsed(value, read)?;
    let Watched::Metrics { url, .. } = &what else { return Some(what) };
    let series = node.get("series").map(Node::items).unwrap_or_default();
    let series: Vec<MetricSeries> =
        series.iter().filter_map(|series| reader.parsed(series, MetricSeries::parse)).collect();
    match Watched::metrics(url, series) {
        Ok(what) => Some(what),
        Err(message) => {
            reader.sink.error(node.get("series").unwrap_or(node), message);
            None
        }
    }
}

fn agent(node: &Node, watch: &Node, reader: &Reader<'_>) -> Option<Agent> {
    let mut agent = Agent::new(words(node, reader)?);
    if let Some(program) = watch.get("program") {
        agent.program = reader.text(program)?;
    }
    Some(agent)
}
