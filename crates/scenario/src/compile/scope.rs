//! Names: a session's variables, and what all sessions share.

use std::collections::HashMap;

use crate::diagnostic::did_you_mean;
use crate::expr;
use crate::expr::parse::Names;
use crate::plan::{Feeder, KeysPlan, SlotIndex};
use crate::settings::Settings;
use crate::sink::Sink;
use crate::yaml::Position;

/// Most variables of a session, hidden ones included.
const VARIABLES_MAX: usize = 10_000;

/// Counters and feeders, shared by all sessions.
#[derive(Debug, Default)]
pub(crate) struct SharedNames {
    counters: Vec<Option<String>>,
    pub(crate) feeders: Vec<Feeder>,
    pub(crate) keys: Vec<KeysPlan>,
    /// For each feeder, whether rows are drawn by chance.
    pub(crate) random: Vec<bool>,
    /// Whether a feeder could not be read, so that nobody knows which columns it has. That is reported already.
    pub(crate) lacks_columns: bool,
}

impl SharedNames {
    pub(crate) fn counters(&self) -> usize {
        self.counters.len()
    }

    /// A counter that no expression can name.
    pub(crate) fn hidden_counter(&mut self) -> usize {
        self.counters.push(None);
        self.counters.len() - 1
    }

    fn counter(&mut self, name: &str) -> usize {
        let known = self.counters.iter().position(|known| known.as_deref() == Some(name));
        known.unwrap_or_else(|| {
            self.counters.push(Some(name.to_owned()));
            self.counters.len() - 1
        })
    }

    /// The index of keys.
    pub(crate) fn keys(&self, name: &str) -> Result<usize, String> {
        self.keys.iter().position(|keys| keys.name == name).ok_or_else(|| {
            let hint = did_you_mean(name, self.keys.iter().map(|keys| keys.name.as_str()));
            let hint =
                if hint.is_empty() { format!("; declare them: keys: {{{name}: 1000000}}") } else { hint };
            format!("unknown keys \"{name}\"{hint}")
        })
    }

    /// The index of a feeder.
    pub(crate) fn feeder(&self, name: &str) -> Result<usize, String> {
        self.feeders.iter().position(|feeder| feeder.name == name).ok_or_else(|| {
            let hint = did_you_mean(name, self.feeders.iter().map(|feeder| feeder.name.as_str()));
            format!("unknown feeder \"{name}\"{hint}")
        })
    }

    /// Draws a row's index.
    pub(crate) fn draw(&self, feeder: usize) -> expr::Node {
        if self.random[feeder] { expr::Node::RandomRow(feeder) } else { expr::Node::NextRow(feeder) }
    }
}

/// A session's variables.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    names: Vec<String>,
    by_name: HashMap<String, SlotIndex>,
    /// Where each was set first, and whether it is read anywhere; none for hidden ones.
    seen: Vec<Option<(Position, bool)>>,
}

impl Scope {
    /// Makes a variable known, wherever it is set.
    pub(crate) fn define(&mut self, name: &str, position: Position) {
        if !self.by_name.contains_key(name) && self.names.len() < VARIABLES_MAX {
            let slot = self.push(name.to_owned(), Some((position, false)));
            self.by_name.insert(name.to_owned(), slot);
        }
    }

    /// A variable that no expression can name.
    pub(crate) fn hidden(&mut self, what: &str) -> SlotIndex {
        self.push(format!("({what})"), None)
    }

    fn push(&mut self, name: String, seen: Option<(Position, bool)>) -> SlotIndex {
        self.names.push(name);
        self.seen.push(seen);
        SlotIndex::try_from(self.names.len() - 1).unwrap_or(SlotIndex::MAX)
    }

    /// Whether there are more variables than a plan can hold.
    pub(crate) fn is_too_large(&self) -> bool {
        self.names.len() > usize::from(SlotIndex::MAX)
    }

    /// The slot of a variable that was made known.
    pub(crate) fn slot(&self, name: &str) -> Option<SlotIndex> {
        self.by_name.get(name).copied()
    }

    /// Names of the variables that were made known.
    pub(crate) fn known(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }

    /// The slot of a variable, which is read.
    pub(crate) fn read(&mut self, name: &str) -> Option<SlotIndex> {
        let slot = self.slot(name)?;
        if let Some(Some((_, read))) = self.seen.get_mut(usize::from(slot)) {
            *read = true;
        }
        Some(slot)
    }

    /// Says whether a variable is read anywhere; what was said before.
    pub(crate) fn replace_read(&mut self, slot: SlotIndex, is_read: bool) -> bool {
        match self.seen.get_mut(usize::from(slot)) {
            Some(Some((_, read))) => std::mem::replace(read, is_read),
            _ => false,
        }
    }

    pub(crate) fn warn_of_unused(&self, sink: &Sink<'_>) {
        for (name, seen) in self.names.iter().zip(&self.seen) {
            if let Some((position, false)) = seen {
                // others write variables so
                let hint = match sink.has_literal(&format!("{{{name}}}")) {
                    true => format!("; `{{{name}}}` is sent as it stands, write `${{{name}}}`"),
                    false => String::new(),
                };
                sink.warn(*position, format!("the variable \"{name}\" is set but never used{hint}"));
            }
        }
    }

    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// What names stand for inside a session.
pub(crate) struct SessionNames<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) scope: &'a mut Scope,
    pub(crate) shared: &'a mut SharedNames,
}

impl Names for SessionNames<'_> {
    fn variable(&mut self, name: &str) -> Result<expr::Node, String> {
        if let Some(slot) = self.scope.read(name) {
            return Ok(expr::Node::Variable(slot));
        }
        if let Some(value) = self.settings.value(name) {
            return value;
        }
        if let Some(message) = crate::steps::ledger::mark_elsewhere(name) {
            return Err(message);
        }
        if self.shared.lacks_columns {
            return Ok(expr::Node::Cell { feeder: 0, column: 0, row: Box::new(self.shared.draw(0)) });
        }
        let hint = did_you_mean(name, self.scope.known().chain(self.settings.names()));
        let advice = if hint.is_empty() { "; set it with set, extract or settings" } else { "" };
        Err(format!("unknown variable \"{name}\"{hint}{advice}"))
    }

    fn environment(&mut self, name: &str, default: Option<&expr::Node>) -> Result<Option<String>, String> {
        self.settings.environment(name, default)
    }

    fn file(&mut self, name: &str) -> Result<Vec<u8>, String> {
        self.settings.file(name)
    }

    fn counter(&mut self, name: &str) -> Result<usize, String> {
        Ok(self.shared.counter(name))
    }

    fn keys(&mut self, name: &str) -> Result<(usize, u64), String> {
        self.shared.keys(name).map(|keys| (keys, self.shared.keys[keys].most))
    }

    fn feeder(&mut self, name: &str, column: Option<&str>) -> Result<expr::Node, String> {
        let feeder = self.shared.feeder(name)?;
        if self.shared.feeders[feeder].held {
            return Err(format!(
                "rows of the feeder \"{name}\" are held by sessions; take one with the step take: {name}"
            ));
        }
        let columns = &self.shared.feeders[feeder].columns;
        let column = match column {
            None => 0,
            Some(_) if self.shared.lacks_columns => 0,
            Some(column) => columns.iter().position(|known| known == column).ok_or_else(|| {
                let hint = did_you_mean(column, columns.iter().map(String::as_str));
                let hint = if hint.is_empty() { format!("; it has {}", columns.join(", ")) } else { hint };
                format!("the feeder \"{name}\" has no column \"{column}\"{hint}")
            })?,
        };
        Ok(expr::Node::Cell { feeder, column, row: Box::new(self.shared.draw(feeder)) })
    }
}
