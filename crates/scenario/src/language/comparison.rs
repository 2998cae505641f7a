//! The keys of a comparison: several scenarios in turn.

use super::SETTING;
use crate::grammar::Scalar::{Bool, Share, Text, Value, Whole};
use crate::grammar::Shape::{Either, Map, Record as Of, Scalar};
use crate::grammar::{Keys, Record, Rule, key, required};
use crate::yaml::Node;

/// The key that makes a file a comparison.
pub(crate) const COMPARE: &str = "compare";

/// Whether a file is a comparison.
pub(crate) fn is_comparison(root: &Node) -> bool {
    root.get(COMPARE).is_some()
}

/// The whole file where it compares scenarios.
pub(crate) static COMPARISON: Record = Record {
    what: "a comparison",
    schema: "comparison",
    about: "Several scenarios that run in turn and are compared.",
    verbs: &[],
    keys: &[
        key("name", Scalar(Text), "Name of the comparison; the file's name if it is missing."),
        key("description", Scalar(Text), "What is compared, for a person."),
        key(
            "settings",
            Map(Keys::Name("settings"), &SETTING),
            "Named values with their defaults (of a list, which is what it may be, the first); `--set NAME=VALUE` replaces them, `${NAME}` uses them anywhere. Any other name goes to each scenario that has a setting of that name.",
        ),
        required(
            COMPARE,
            Map(Keys::Text("names"), &Either(&[Scalar(Text), Of(&VARIANT)])),
            "What is compared, by name: a scenario each; the others are compared with the first.",
        ),
        key(
            "equal rate",
            Scalar(Share),
            "After that each runs again at one rate: this share of what the slowest did. Latencies compare only so.",
        ),
        key(
            "own rate",
            Scalar(Share),
            "After that each runs again at this share of its own highest rate: its latency below its limit.",
        ),
        key("rounds", Scalar(Whole(1)), "How often each runs, in turn; once by default."),
    ],
    rule: Rule::AtMostOneOf(&["equal rate", "own rate"]),
};

static VARIANT: Record = Record {
    what: "a scenario to compare",
    schema: "variant",
    about: "A scenario, with settings of its own.",
    verbs: &[],
    keys: &[
        required(
            "scenario",
            Scalar(Text),
            "A file, relative to this one, or the name of a shipped scenario.",
        ),
        key(
            "if installed",
            Scalar(Bool),
            "Whether it is left out, and told so, where a program of its stores is not installed; false by default.",
        ),
        key("set", Map(Keys::Text("settings"), &Scalar(Value)), "Settings of that scenario: `NAME: VALUE`."),
    ],
    rule: Rule::Free,
};
