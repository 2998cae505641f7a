//! Commands of memcached.

use tidemark_wire::memcached::Form;

use crate::template::Template;

/// A command of memcached, of its text protocol or a meta command.
#[derive(Debug, Clone)]
pub struct MemcachedCommand {
    /// `get`, `set`, `mg`, …
    pub name: &'static str,
    /// What stands behind it in its line, in order.
    pub words: Vec<MemcachedWord>,
    /// What is stored: sent behind the line.
    pub value: Option<Template>,
    /// What may come as its reply.
    pub reply: Form,
}

/// A word of a command's line.
#[derive(Debug, Clone)]
pub enum MemcachedWord {
    /// A key.
    Key(Template),
    /// A whole number from 0 on.
    Count(Template),
    /// A time, which may be negative.
    Time(Template),
    /// A flag of a meta command: a letter, and what belongs to it.
    Flag(Template),
    /// Any other word.
    Other(Template),
    /// The number of bytes of the value.
    Length,
}

impl MemcachedCommand {
    /// Its first key, by which its server is chosen where there are several.
    pub fn key(&self) -> Option<&Template> {
        self.words.iter().find_map(|word| match word {
            MemcachedWord::Key(key) => Some(key),
            _ => None,
        })
    }
}
