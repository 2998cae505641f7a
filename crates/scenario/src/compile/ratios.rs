//! Ratios of a run's own counts.

use super::requests::Requests;
use crate::diagnostic::did_you_mean;
use crate::grammar::record::Kind;
use crate::language::Ratio;
use crate::plan::{Counted, MetricKind, RATIOS_MAX, RatioPlan};
use crate::reader::Reader;
use crate::yaml::Node;

/// Reads them, when it is known what is counted.
pub(super) fn read(node: Option<&Node>, requests: &Requests, reader: &Reader<'_>) -> Vec<RatioPlan> {
    let Some(node) = node else { return Vec::new() };
    if node.entries().len() > RATIOS_MAX {
        reader.sink.error(node, format!("these are more than {RATIOS_MAX} ratios; leave some out"));
    }
    let ratio = |(name, node): &(Node, Node)| {
        let said = Ratio::read(node, reader)?;
        let [of, per] = [said.of.value, said.per.value].map(|node| all_counted(node, requests, reader));
        Some(RatioPlan { name: name.text()?.to_owned(), of, per, form: said.form.value.unwrap_or_default() })
    };
    node.entries().iter().filter_map(ratio).collect()
}

/// What a name or a list of names stands for.
fn all_counted(node: Option<&Node>, requests: &Requests, reader: &Reader<'_>) -> Vec<Counted> {
    let Some(node) = node else { return Vec::new() };
    let names = if node.items().is_empty() { std::slice::from_ref(node) } else { node.items() };
    let one = |node: &Node| {
        let told = counted(&reader.text(node)?, requests);
        told.map_err(|message| reader.sink.error(node, message)).ok()
    };
    names.iter().filter_map(one).collect()
}

/// What this is the name of.
fn counted(name: &str, requests: &Requests) -> Result<Counted, String> {
    let label = requests.labels.iter().position(|label| label.name == name);
    let metric = requests.metrics.iter().position(|metric| metric.name == name);
    match (label, metric) {
        (Some(_), Some(_)) => {
            Err(format!("\"{name}\" is a label, and a metric has that name, too; call one of them otherwise"))
        }
        (Some(label), None) => Ok(Counted::Label(label as u16)),
        (None, Some(metric)) if requests.metrics[metric].kind == MetricKind::Counter => {
            Ok(Counted::Counter(metric as u16))
        }
        (None, Some(_)) => Err(format!(
            "\"{name}\" is a histogram, and a ratio is of counters and labels; measure it with \"counter\""
        )),
        (None, None) => {
            let counters = requests.metrics.iter().filter(|metric| metric.kind == MetricKind::Counter);
            let labels = requests.labels.iter().map(|label| label.name.as_str());
            let hint = did_you_mean(name, labels.chain(counters.map(|metric| metric.name.as_str())));
            Err(format!("no counter and no label has the name \"{name}\"{hint}"))
        }
    }
}
