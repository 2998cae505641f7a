//! What is watched though the run does not start it.

use super::launch::words;
use crate::grammar::record::Kind;
use crate::language;
use crate::language::watch::KINDS;
use crate::plan::{Agent, MetricSeries, Watch, Watched, is_harmless};
use crate::reader::Reader;
use crate::yaml::Node;

/// Reads what is watched.
pub(super) fn read(node: Option<&Node>, reader: &Reader<'_>) -> Vec<Watch> {
    let items = node.map(Node::items).unwrap_or_default();
    let said = items.iter().filter_map(|item| language::Watch::read(item, reader));
    said.filter(|said| said.when.value != Some(false)).filter_map(|said| one(&said, reader)).collect()
}

fn one(said: &language::Watch<'_>, reader: &Reader<'_>) -> Option<Watch> {
    let sink = reader.sink;
    let (pid, name, port, cgroup) = (said.pid.node(), said.name.node(), said.port.node(), said.cgroup.node());
    let nodes = [pid, name, port, cgroup, said.unit.node(), said.container.node(), said.metrics.node()];
    let what = KINDS.into_iter().zip(nodes).find_map(|(word, node)| Some(what(word, node?, said, reader)));
    let agent = said.agent.value.map(|agent| self::agent(agent, said, reader));
    if !said.metrics.is_there() {
        said.series.refuse(sink, "\"series\" belongs to \"metrics\"");
    }
    if agent.is_none() {
        said.program.refuse(sink, "\"program\" belongs to \"agent\"");
    }
    if what.is_none() && agent.is_none() {
        let message = format!("what is watched needs one of the keys {}, or agent", KINDS.join(", "));
        sink.error(said.node, message);
        return None;
    }
    let what = what.unwrap_or(Some(Watched::Machine))?;
    let agent = match agent {
        Some(agent) => Some(agent?),
        None => None,
    };
    if agent.is_some() {
        said.metrics.refuse(sink, "a page of metrics is asked from here; leave \"agent\" out");
    }
    if let (Some(flag), Some(agent)) = (what.flag(), &agent)
        && let Some(word) = [flag.as_str(), &agent.program].into_iter().find(|word| !is_harmless(word))
    {
        let message = format!(
            "\"{word}\" goes through another machine's shell; only letters, digits and . _ / : @ + , = - may stand in it"
        );
        sink.error(said.node, message);
    }
    let faults = said.faults.value.unwrap_or(false);
    if faults && (agent.is_some() || !what.is_processes()) {
        said.faults.refuse(sink, "faults are for processes of this machine; leave this out");
    }
    Some(Watch { called: said.called.given()?.cloned(), what, agent, faults })
}

fn what(word: &str, node: &Node, said: &language::Watch<'_>, reader: &Reader<'_>) -> Option<Watched> {
    let read = |text: &str| match word {
        "pid" | "port" => Watched::parse(&format!("{word}={text}")),
        "cgroup" => Watched::cgroup(text),
        "metrics" => Watched::metrics(text, Vec::new()),
        _ => Watched::named(word, text),
    };
    let what = reader.parsed(node, read)?;
    let Watched::Metrics { url, .. } = &what else { return Some(what) };
    let series = said.series.value.map(Node::items).unwrap_or_default();
    let series: Vec<MetricSeries> =
        series.iter().filter_map(|series| reader.parsed(series, MetricSeries::parse)).collect();
    match Watched::metrics(url, series) {
        Ok(what) => Some(what),
        Err(message) => {
            reader.sink.error(said.series.node().unwrap_or(said.node), message);
            None
        }
    }
}

fn agent(command: &Node, said: &language::Watch<'_>, reader: &Reader<'_>) -> Option<Agent> {
    let mut agent = Agent::new(words(command, reader)?);
    if let Some(program) = said.program.given()? {
        agent.program.clone_from(program);
    }
    Some(agent)
}
