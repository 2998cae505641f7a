//! Faults in the scenario language.

use crate::grammar::Rule;
use crate::grammar::kinds::{Bandwidth, Bool, Moment, Share, Size, Text, Time, Whole};
use crate::grammar::record::record;

record! {
    /// Something that is broken on purpose: the system, or a store that the run starts. Or something that a store
    /// does at times by itself, at a time of one's choice.
    pub(crate) struct Fault(
        "fault",
        "a fault",
        Rule::OneOf(&["kill", "stop", "freeze", "slow", "cut", "fill", "rewrite", "snapshot", "roll", "scale"])
    ) {
        at (required): Moment =
            "When, from the beginning of what is measured: a time, or a share of it like 25%, which `--for` moves.",
        kill: Text = "Kills the named process and its children (SIGKILL).",
        stop: Text = "Asks the named process to end (SIGTERM), as it does at the end of a run.",
        freeze: Text = "Stops the named process and its children where they stand (SIGSTOP).",
        slow: Text = "Slows the link between the system and the load generator, or between a store and its clients.",
        cut: Text =
            "Resets all connections between the system and the load generator, or a store and its clients, and new \
             ones.",
        fill: Text = "Fills the disk of the system or a store, which gets a small one of its own for its data.",
        rewrite: Text =
            "Asks the named store to rewrite its append-only file (BGREWRITEAOF); nothing is broken, and no error \
             excused.",
        snapshot: Text = "Asks the named store for a snapshot (BGSAVE); nothing is broken, and no error excused.",
        roll: Text =
            "Replaces the instances of the named service, one after another, each after it has answered what it had; \
             nothing is broken, and no error excused.",
        scale: Text = "Adds instances of the named service or takes some away; nothing is broken, and no error excused.",
        instances: Whole<1> = "Of `scale`: how many there are afterwards.",
        latency: Time = "Of `slow`: added to what goes either way.",
        bandwidth: Bandwidth = "Of `slow`: bytes each second that pass in each direction of a connection.",
        share: Share = "Of `cut`: only new connections are reset, and of them this share; those that there are stay.",
        disk: Size = "Of `fill`: size of that disk; 512 MiB by default.",
        restart_after: Time as "restart after" =
            "After `kill` or `stop`: when it is started again, at the same address and with its data; else it stays \
             down.",
        length: Time as "for" = "How long a fault lasts whose processes go on.",
        when: Bool = "Whether the fault happens; an expression over settings.",
    }
}
