//! What a step does with a number of the scenario's `keys`.

use super::Step;
use crate::compile::Session;
use crate::grammar::Scalar::Keys;
use crate::grammar::Shape::{Either, Scalar};
use crate::grammar::kinds::{self, nodes};
use crate::grammar::record::{Kind, record};
use crate::grammar::{Key, Shape, key};
use crate::plan::{Check, KeyStep, KeyUse};

/// The variable with the number, and the one that gets the version of a write.
const NUMBER: &str = "number";
const VERSION: &str = "version";

pub(super) const INSERT: Key = key(
    "insert",
    Scalar(Keys(&[NUMBER, VERSION])),
    "Keys of which the next number is inserted: before this is sent, `number` and `version` become variables; it is inserted once this ended well.",
);
pub(super) const WRITE: Key = key(
    "write",
    Scalar(Keys(&[VERSION])),
    "Keys of which `number` is written anew: before this is sent, `version` becomes a variable, one higher than the last.",
);
pub(super) const READ: Key = key(
    "read",
    Either(READ_AS),
    "Keys of which `number` is read: what is found must be of it, whole, and no older than what was acknowledged before.",
);

static READ_AS: &[Shape] = &[Scalar(Keys(&[])), Reading::SHAPE];

nodes! {
    /// The name of some keys.
    KeysName = Scalar(Keys(&[]));
}

record! {
    /// What an answer must hold of a number.
    struct Reading("read", "a read") {
        of (required): KeysName = "The keys.",
        values: kinds::Whole<1> = "How many values an answer holds that is not empty; 1 by default.",
    }
}

impl Session<'_, '_> {
    /// What a step does with a number, and what must hold of its answer for it.
    pub(crate) fn key_step(&mut self, step: &Step<'_>) -> Option<(KeyStep, Option<Check>)> {
        let uses = [("insert", KeyUse::Insert), ("write", KeyUse::Write), ("read", KeyUse::Read)];
        let mut given = uses.iter().filter_map(|(name, does)| Some((*name, *does, step.get(name)?)));
        let (name, does, node) = given.next()?;
        if let Some((other, _, node)) = given.next() {
            self.reader.sink.error(node, format!("a step has either \"{name}\" or \"{other}\", not both"));
        }
        let said = Reading::read(node, self.reader)?;
        let named = said.of.value.unwrap_or(node);
        let keys = match self.shared.keys(&self.reader.text(named)?) {
            Ok(keys) => keys,
            Err(message) => {
                self.reader.sink.error(named, message);
                return None;
            }
        };
        let Some(number) = self.scope.read(NUMBER) else {
            let message =
                "this is of the variable \"number\", which nothing sets: put - set: {number: …} before it";
            self.reader.sink.error(named, message);
            return None;
        };
        let version = match does {
            KeyUse::Read => self.scope.hidden("least version"),
            KeyUse::Insert | KeyUse::Write => self.scope.read(VERSION)?,
        };
        let values = said.values.value.unwrap_or(1);
        let check = (does == KeyUse::Read).then_some(Check::Value {
            number,
            least: version,
            values: u32::try_from(values).unwrap_or(u32::MAX),
        });
        Some((KeyStep { keys, does, number, version }, check))
    }
}
