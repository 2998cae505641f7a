//! Faults in the scenario language.

use crate::grammar::Scalar::{Bool, Duration, Text};
use crate::grammar::Shape::Scalar;
use crate::grammar::{Record, Rule, key, required};

/// Something that is broken on purpose.
pub(crate) static FAULT: Record = Record {
    what: "a fault",
    schema: "fault",
    about: "Something that is broken on purpose: the system, or a store that the run starts.",
    verbs: &[],
    keys: &[
        required("at", Scalar(Duration), "When, from the beginning of what is measured."),
        key("kill", Scalar(Text), "Kills the named process and its children (SIGKILL)."),
        key("stop", Scalar(Text), "Asks the named process to end (SIGTERM), as it does at the end of a run."),
        key("freeze", Scalar(Text), "Stops the named process and its children where they stand (SIGSTOP)."),
        key(
            "restart after",
            Scalar(Duration),
            "After `kill` or `stop`: when it is started again, at the same address and with its data; else it stays down.",
        ),
        key("for", Scalar(Duration), "How long a fault lasts whose processes go on."),
        key("when", Scalar(Bool), "Whether the fault happens; an expression over settings."),
    ],
    rule: Rule::OneOf(&["kill", "stop", "freeze"]),
};
