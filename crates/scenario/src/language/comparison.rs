//! The keys of a comparison: several scenarios in turn.

use super::SETTINGS;
use crate::grammar::kinds::{Bool, Either, Share, Text, Whole, nodes};
use crate::grammar::record::{Kind, record};
use crate::grammar::{Keys, Rule, Scalar, Shape};
use crate::yaml::Node;

/// The key that makes a file a comparison.
pub(crate) const COMPARE: &str = "compare";

/// Whether a file is a comparison.
pub(crate) fn is_comparison(root: &Node) -> bool {
    root.get(COMPARE).is_some()
}

nodes! {
    /// Settings of a scenario that is compared.
    pub(crate) ItsSettings = Shape::Map(Keys::Text("settings"), &Shape::Scalar(Scalar::Value));
}

record! {
    /// Several scenarios that run in turn and are compared.
    pub(crate) static COMPARISON("comparison", "a comparison", Rule::AtMostOneOf(&["equal rate", "own rate"])) {
        "name": Text::SHAPE => "Name of the comparison; the file's name if it is missing.",
        "description": Text::SHAPE => "What is compared, for a person.",
        "settings": SETTINGS =>
            "Named values with their defaults (of a list, which is what it may be, the first); `--set NAME=VALUE` \
             replaces them, `${NAME}` uses them anywhere. Any other name goes to each scenario that has a setting of \
             that name.",
        COMPARE (required): Shape::Map(Keys::Text("names"), &Either::<Text, Variant<'_>>::SHAPE) =>
            "What is compared, by name: a scenario each; the others are compared with the first.",
        "equal rate": Share::SHAPE =>
            "After that each runs again at one rate: this share of what the slowest did. Latencies compare only so.",
        "own rate": Share::SHAPE =>
            "After that each runs again at this share of its own highest rate: its latency below its limit.",
        "rounds": Whole::<1>::SHAPE => "How often each runs, in turn; once by default.",
    }
}

record! {
    /// A scenario, with settings of its own.
    pub(crate) struct Variant("variant", "a scenario to compare") {
        scenario (required): Text = "A file, relative to this one, or the name of a shipped scenario.",
        if_installed: Bool as "if installed" =
            "Whether it is left out, and told so, where a program of its stores is not installed, or nobody answers at its \
             URL; false by default.",
        when: Bool = "Whether it is there, with settings: `${preset == 'published'}`; else true.",
        set: ItsSettings = "Settings of that scenario: `NAME: VALUE`.",
    }
}
