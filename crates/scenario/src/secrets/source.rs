//! A scenario's text without what is secret in it.

use super::pattern::{is_secret, is_secret_name, masked_argument, masked_value, scheme};
use super::{Origin, Secrets};
use crate::pieces::{Piece, split};
use crate::steps;
use crate::yaml::{Content, Node, Position};

/// What the names of a mapping are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    /// Words of the language.
    Keys,
    /// Of headers.
    Headers,
    /// Of a command's environment.
    Variables,
    /// The author's own: of settings, fields, parameters.
    Values,
    /// Of credentials: all of them are secret but the user name.
    Auth,
    /// Of what is looked for in answers: beside them stands no value of a secret.
    Tests,
}

/// The text without them. What stands beside a secret's name is added to `secrets` first.
pub(crate) fn masked(root: &Node, text: &str, secrets: &mut Secrets) -> String {
    let mut walk = Walk { secrets, changes: Vec::new() };
    walk.node(root, Names::Keys);
    let mut changes = walk.changes;
    changes.sort_by_key(|(position, _)| position.start);
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().enumerate().peekable();
    for (position, instead) in changes {
        // an alias of a part that is masked may lie in another one
        if characters.peek().is_none_or(|(at, _)| *at > position.start) {
            continue;
        }
        while let Some((_, c)) = characters.next_if(|(at, _)| *at < position.start) {
            out.push(c);
        }
        let mut last = None;
        while let Some((_, c)) = characters.next_if(|(at, _)| *at < position.end) {
            last = Some(c);
        }
        out.push_str(&quoted(&instead));
        out.extend(last.filter(|last| *last == '\n'));
    }
    out.extend(characters.map(|(_, c)| c));
    // remarks
    secrets.without_values(&out).into_owned()
}

struct Walk<'a> {
    secrets: &'a mut Secrets,
    changes: Vec<(Position, String)>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, names: Names) {
        match &node.content {
            Content::Scalar { text, .. } => self.scalar(node, text.clone(), text),
            Content::List(items) => items.iter().for_each(|item| self.node(item, names)),
            Content::Map(entries) => entries.iter().for_each(|(key, value)| self.entry(key, value, names)),
        }
    }

    fn entry(&mut self, key: &Node, value: &Node, names: Names) {
        let name = key.text().unwrap_or_default();
        match (names, &value.content) {
            (Names::Headers, Content::Scalar { text, .. }) if is_secret_name(name) => {
                if let Ok([Piece::Literal(literal)]) = split(text).as_deref() {
                    self.secrets.add(name, Origin::Header, scheme(literal).1);
                }
                self.scalar(value, masked_value(text), text);
            }
            (Names::Headers, Content::List(items)) => {
                items.iter().for_each(|item| self.entry(key, item, names));
            }
            (Names::Variables, Content::Scalar { text, .. }) if is_secret(name, text) => {
                if let Ok([Piece::Literal(literal)]) = split(text).as_deref() {
                    self.secrets.add(name, Origin::Setting, literal);
                }
                self.scalar(value, masked_value(text), text);
            }
            (Names::Values, Content::Scalar { text, .. }) if is_secret(name, text) => {
                self.scalar(value, masked_value(text), text);
            }
            (Names::Values, Content::List(items)) if is_secret_name(name) => {
                for item in items {
                    match &item.content {
                        Content::Scalar { text, .. } => self.scalar(item, masked_value(text), text),
                        _ => self.node(item, names),
                    }
                }
            }
            (Names::Auth, Content::Scalar { text, .. }) if name != "user" => {
                if let Ok([Piece::Literal(literal)]) = split(text).as_deref() {
                    self.secrets.add("Authorization", Origin::Header, literal);
                }
                self.scalar(value, masked_value(text), text);
            }
            (Names::Keys, Content::List(items)) if name == "command" || name == "agent" => self.words(items),
            (Names::Keys, Content::List(items)) if name == "before" || name == "after" => {
                for item in items {
                    match &item.content {
                        Content::List(words) => self.words(words),
                        _ => self.node(item, Names::Keys),
                    }
                }
            }
            // a target or a session may be called so, too
            (Names::Keys, Content::Map(kinds)) if name == "auth" && kinds.iter().any(is_auth) => {
                self.node(value, Names::Auth);
            }
            (Names::Keys, _) => self.node(value, of_key(name)),
            _ => self.node(value, names),
        }
    }

    /// Those of a command.
    fn words(&mut self, words: &[Node]) {
        let mut before = None;
        for word in words {
            match word.text() {
                Some(text) => self.scalar(word, masked_argument(before, text), text),
                None => self.node(word, Names::Keys),
            }
            before = word.text();
        }
    }

    /// `masked`: by its name, if it has one.
    fn scalar(&mut self, node: &Node, masked: String, text: &str) {
        let masked = self.secrets.masked(&masked);
        if masked != text {
            self.changes.push((node.position, masked));
        }
    }
}

/// Whether these are credentials.
fn is_auth((kind, _): &(Node, Node)) -> bool {
    matches!(kind.text(), Some("basic" | "bearer"))
}

fn of_key(name: &str) -> Names {
    match name {
        "headers" => Names::Headers,
        "env" => Names::Variables,
        "check" | "extract" | "until" => Names::Tests,
        // those of the scenario, and those that a comparison sets
        "settings" | "set" => Names::Values,
        name if steps::has_values(name) => Names::Values,
        _ => Names::Keys,
    }
}

/// A YAML scalar with this text.
fn quoted(text: &str) -> String {
    // what is a string of JSON is one of YAML
    serde_json::Value::from(text).to_string()
}
