//! The first pass over a session: every variable that is set anywhere in it.

use super::Session;
use crate::grammar::{Key, Keys, Scalar, Shape};
use crate::steps;
use crate::yaml::{Node, Position};

/// `NAME in LIST`, split.
pub(crate) fn split_each(text: &str) -> Option<(&str, usize, &str)> {
    let at = text.find(" in ")?;
    Some((text[..at].trim(), at + 4, &text[at + 4..]))
}

impl Session<'_, '_> {
    /// Makes all variables known that are set within a node of this shape.
    pub(super) fn define_within(&mut self, node: &Node, shape: &Shape) {
        match shape {
            Shape::Scalar(Scalar::Variable) => self.define(node.text(), node),
            Shape::Scalar(Scalar::Each) => {
                self.define(node.text().and_then(split_each).map(|(name, ..)| name), node);
            }
            Shape::Scalar(Scalar::Code) => self.define_in_code(node),
            Shape::Scalar(Scalar::Feeder) => {
                if let Some(feeder) = self.reader.text(node).and_then(|name| self.shared.feeder(&name).ok()) {
                    self.define_row(feeder, node);
                }
            }
            Shape::Scalar(Scalar::Keys(variables)) => {
                variables.iter().for_each(|name| self.define(Some(name), node));
            }
            Shape::Record(record) => self.define_keys(node, record().all_keys()),
            Shape::Step => self.define_keys(node, steps::keys(node)),
            Shape::Map(keys, of) => {
                for (name, value) in node.entries() {
                    if *keys == Keys::Variable {
                        self.define(name.text(), name);
                    }
                    self.define_within(value, of);
                }
            }
            Shape::List(of, _) => node.items().iter().for_each(|item| self.define_within(item, of)),
            Shape::Either(shapes) => {
                let shape = shapes.iter().find(|shape| shape.accepts(node));
                shape.into_iter().for_each(|shape| self.define_within(node, shape));
            }
            Shape::Scalar(_) | Shape::Tree => {}
        }
    }

    fn define_keys(&mut self, node: &Node, keys: impl Iterator<Item = &'static Key>) {
        let keys: Vec<_> = keys.collect();
        for (name, value) in node.entries() {
            let key = keys.iter().find(|key| Some(key.name) == name.text());
            key.into_iter().for_each(|key| self.define_within(value, &key.shape));
        }
    }

    pub(super) fn define(&mut self, name: Option<&str>, at: &Node) {
        if let Some(name) = name {
            self.define_at(name, at.position);
        }
    }

    /// Makes a variable known that is set there.
    pub(crate) fn define_at(&mut self, name: &str, at: Position) {
        if self.reader.settings.names().any(|setting| setting == name) {
            let message = format!("\"{name}\" is a setting and cannot be set here; choose another name");
            self.reader.sink.error_at(at, message);
        }
        self.scope.define(name, at);
    }

    /// Makes the columns of a feeder known, in their order.
    pub(super) fn define_row(&mut self, feeder: usize, at: &Node) {
        for column in self.shared.feeders[feeder].columns.clone() {
            self.define(Some(&column), at);
        }
    }
}
