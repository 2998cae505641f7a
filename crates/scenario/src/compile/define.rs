//! The first pass over a session: every variable that is set anywhere in it.

use super::Session;
use crate::grammar::step_kind;
use crate::language::STEP_KINDS;
use crate::yaml::Node;

/// `NAME in LIST`, split.
pub(super) fn split_each(text: &str) -> Option<(&str, usize, &str)> {
    let at = text.find(" in ")?;
    Some((text[..at].trim(), at + 4, &text[at + 4..]))
}

impl Session<'_, '_> {
    /// Makes all variables of these steps known.
    pub(super) fn define_all(&mut self, steps: &Node) {
        for step in steps.items() {
            let keys = |node: Option<&Node>| -> Vec<Node> {
                node.map(Node::entries).unwrap_or_default().iter().map(|(key, _)| key.clone()).collect()
            };
            // A step that nobody knows counts, too: its variables and steps are hardly the mistake.
            keys(step.get("extract")).iter().for_each(|key| self.define(key));
            if let Some(name) = step.get("ledger").and_then(|ledger| ledger.get("as")) {
                self.define(name);
            }
            for key in ["steps", "else"] {
                step.get(key).into_iter().for_each(|steps| self.define_all(steps));
            }
            let Some((record, (_, value))) = step_kind(step, &STEP_KINDS) else { continue };
            match record.schema {
                "set" => keys(Some(value)).iter().for_each(|key| self.define(key)),
                "repeat" => {
                    if let Some(name) = step.get("as") {
                        self.define(name);
                    }
                }
                "each" => {
                    if let Some((name, ..)) = value.text().and_then(split_each) {
                        self.define_name(name, value);
                    }
                }
                "take" => self.define_columns(value),
                "choose" => {
                    for way in value.items() {
                        way.get("steps").into_iter().for_each(|steps| self.define_all(steps));
                    }
                }
                _ => {}
            }
        }
    }

    fn define(&mut self, name: &Node) {
        if let Some(text) = name.text() {
            self.define_name(text, name);
        }
    }

    fn define_name(&mut self, name: &str, at: &Node) {
        if self.reader.settings.names().any(|setting| setting == name) {
            let message = format!("\"{name}\" is a setting and cannot be set here; choose another name");
            self.reader.sink.error(at, message);
        }
        self.scope.define(name, at.place);
    }

    fn define_columns(&mut self, feeders: &Node) {
        for node in one_or_many(feeders) {
            let Some(feeder) = self.reader.text(node).and_then(|name| self.shared.feeder(&name).ok()) else {
                continue;
            };
            for column in self.shared.feeders[feeder].columns.clone() {
                self.define_name(&column, node);
            }
        }
    }
}

impl Session<'_, '_> {
    /// Makes the columns of a feeder known, in their order.
    pub(super) fn define_row(&mut self, feeder: usize, at: &Node) {
        for column in self.shared.feeders[feeder].columns.clone() {
            self.define_name(&column, at);
        }
    }
}

/// The items of a list, or the one thing itself.
pub(super) fn one_or_many(node: &Node) -> &[Node] {
    if node.text().is_some() { std::slice::from_ref(node) } else { node.items() }
}
