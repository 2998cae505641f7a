//! What is watched though the run does not start it.

use super::Texts;
use super::system::Command;
use crate::grammar::Rule;
use crate::grammar::kinds::{Bool, Text, Whole};
use crate::grammar::record::record;

/// What tells the kinds of what is watched apart.
pub(crate) const KINDS: [&str; 7] = ["pid", "name", "port", "cgroup", "unit", "container", "metrics"];

record! {
    /// Something that the run does not start: its CPU, memory, disk and network stand in every report, as those of a
    /// system that it starts.
    pub(crate) struct Watch("watch", "what is watched", Rule::AtMostOneOf(&KINDS)) {
        pid: Whole<1> = "A process and all below it, by its number.",
        name: Text = "All processes of a program, by its name; found again where it is started anew.",
        port: Whole<1> = "Whoever listens at this TCP port; found again where it is started anew.",
        cgroup: Text = "All processes of a control group, like `/system.slice/x.service`.",
        unit: Text = "The control group of a unit of systemd, like `x.service`.",
        container: Text =
            "The control group of a container: its id, or the beginning of that; or a name that its control group \
             has.",
        metrics: Text =
            "URL of a page of metrics (Prometheus' format, OpenMetrics), like node_exporter's or a program's own.",
        series: Texts =
            "Of `metrics`: what is drawn beside the latency, like `node_load1` or `x_total{device=\"sda\"}`; of a \
             counter, how fast it rises.",
        agent: Command =
            "The command that reaches another machine, like `ssh db1`, quoted as for a shell, or the list of its \
             words: `tidemark agent` is started there, and looks at that machine, and at a process of it where one \
             is named.",
        program: Text = "Of `agent`: what tidemark is called there; `tidemark` by default.",
        called: Text as "as" = "What it is called in reports and faults, `system` too where that is at a URL.",
        faults: Bool =
            "Whether faults (`freeze`, `stop`, `kill`) may be aimed at it; its processes must be of the same user. \
             False by default.",
        when: Bool = "Whether it is watched; an expression over settings.",
    }
}
