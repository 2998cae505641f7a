//! What is watched though the run does not start it.

use crate::grammar::Scalar::{Bool, Text, Whole};
use crate::grammar::Shape::{Either, List, Scalar};
use crate::grammar::{Record, Rule, key};

/// What tells the kinds of what is watched apart.
pub(crate) const KINDS: [&str; 7] = ["pid", "name", "port", "cgroup", "unit", "container", "metrics"];

/// One thing that is watched.
pub(super) static WATCH: Record = Record {
    what: "what is watched",
    schema: "watch",
    about: "Something that the run does not start: its CPU, memory, disk and network stand in every report, as those of a \
            system that it starts.",
    verbs: &[],
    keys: &[
        key("pid", Scalar(Whole(1)), "A process and all below it, by its number."),
        key(
            "name",
            Scalar(Text),
            "All processes of a program, by its name; found again where it is started anew.",
        ),
        key(
            "port",
            Scalar(Whole(1)),
            "Whoever listens at this TCP port; found again where it is started anew.",
        ),
        key("cgroup", Scalar(Text), "All processes of a control group, like `/system.slice/x.service`."),
        key("unit", Scalar(Text), "The control group of a unit of systemd, like `x.service`."),
        key(
            "container",
            Scalar(Text),
            "The control group of a container: its id, or the beginning of that; or a name that its control group has.",
        ),
        key(
            "metrics",
            Scalar(Text),
            "URL of a page of metrics (Prometheus' format, OpenMetrics), like node_exporter's or a program's own.",
        ),
        key(
            "series",
            List(&Scalar(Text), 1),
            "Of `metrics`: what is drawn beside the latency, like `node_load1` or `x_total{device=\"sda\"}`; of a counter, how fast it rises.",
        ),
        key(
            "agent",
            Either(&[Scalar(Text), List(&Scalar(Text), 1)]),
            "The command that reaches another machine, like `ssh db1`, quoted as for a shell, or the list of its words: \
             `tidemark agent` is started there, and looks at that machine, and at a process of it where one is named.",
        ),
        key("program", Scalar(Text), "Of `agent`: what tidemark is called there; `tidemark` by default."),
        key(
            "as",
            Scalar(Text),
            "What it is called in reports and faults, `system` too where that is at a URL.",
        ),
        key(
            "faults",
            Scalar(Bool),
            "Whether faults (`freeze`, `stop`, `kill`) may be aimed at it; its processes must be of the same user. False by default.",
        ),
        key("when", Scalar(Bool), "Whether it is watched; an expression over settings."),
    ],
    rule: Rule::AtMostOneOf(&KINDS),
};
