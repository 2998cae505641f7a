//! Faults in the scenario language.

use crate::grammar::Scalar::{Bandwidth, Bool, Duration, Moment, Share, Size, Text};
use crate::grammar::Shape::Scalar;
use crate::grammar::{Record, Rule, key, required};

/// Something that is broken on purpose.
pub(crate) static FAULT: Record = Record {
    what: "a fault",
    schema: "fault",
    about: "Something that is broken on purpose: the system, or a store that the run starts. Or something that a store does at \
            times by itself, at a time of one's choice.",
    verbs: &[],
    keys: &[
        required(
            "at",
            Scalar(Moment),
            "When, from the beginning of what is measured: a time, or a share of it like 25%, which `--for` moves.",
        ),
        key("kill", Scalar(Text), "Kills the named process and its children (SIGKILL)."),
        key("stop", Scalar(Text), "Asks the named process to end (SIGTERM), as it does at the end of a run."),
        key("freeze", Scalar(Text), "Stops the named process and its children where they stand (SIGSTOP)."),
        key(
            "slow",
            Scalar(Text),
            "Slows the link between the system and the load generator, or between a store and its clients.",
        ),
        key(
            "cut",
            Scalar(Text),
            "Resets all connections between the system and the load generator, or a store and its clients, and new ones.",
        ),
        key(
            "fill",
            Scalar(Text),
            "Fills the disk of the system or a store, which gets a small one of its own for its data.",
        ),
        key(
            "rewrite",
            Scalar(Text),
            "Asks the named store to rewrite its append-only file (BGREWRITEAOF); nothing is broken, and no error excused.",
        ),
        key(
            "snapshot",
            Scalar(Text),
            "Asks the named store for a snapshot (BGSAVE); nothing is broken, and no error excused.",
        ),
        key("latency", Scalar(Duration), "Of `slow`: added to what goes either way."),
        key(
            "bandwidth",
            Scalar(Bandwidth),
            "Of `slow`: bytes each second that pass in each direction of a connection.",
        ),
        key(
            "share",
            Scalar(Share),
            "Of `cut`: only new connections are reset, and of them this share; those that there are stay.",
        ),
        key("disk", Scalar(Size), "Of `fill`: size of that disk; 512 MiB by default."),
        key(
            "restart after",
            Scalar(Duration),
            "After `kill` or `stop`: when it is started again, at the same address and with its data; else it stays down.",
        ),
        key("for", Scalar(Duration), "How long a fault lasts whose processes go on."),
        key("when", Scalar(Bool), "Whether the fault happens; an expression over settings."),
    ],
    rule: Rule::OneOf(&["kill", "stop", "freeze", "slow", "cut", "fill", "rewrite", "snapshot"]),
};
