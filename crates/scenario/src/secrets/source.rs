//! A scenario's text without what is secret in it.

use std::ops::Range;

use super::arguments::{masked_argument, masked_value, masked_words, secret_argument, words};
use super::names::{is_secret, is_secret_name, scheme};
use super::{LONG, Origin, SOURCE_SECRETS_MAX, Secrets, pattern};
use crate::pieces::{Piece, split};
use crate::steps;
use crate::yaml::{Content, Node, Position};

/// What the names of a mapping are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names<'t> {
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
    /// Of parts of a secret of this name: all of them are secret.
    Below(&'t str),
}

/// The text without them. What stands beside a secret's name is added to `secrets` first.
pub(crate) fn masked(root: &Node, text: &str, secrets: &mut Secrets) -> String {
    secrets.choices = choices(root);
    let mut walk = Walk { secrets, changes: Vec::new(), literals: 0 };
    walk.node(root, Names::Keys);
    let mut changes = walk.changes;
    changes.extend(remarks(root, text, secrets));
    changes.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().enumerate().peekable();
    for (range, instead) in changes {
        // an alias of a part that is masked may lie in another one
        if characters.peek().is_none_or(|(at, _)| *at > range.start) {
            continue;
        }
        while let Some((_, c)) = characters.next_if(|(at, _)| *at < range.start) {
            out.push(c);
        }
        let mut last = None;
        while let Some((_, c)) = characters.next_if(|(at, _)| *at < range.end) {
            last = Some(c);
        }
        out.push_str(&instead);
        out.extend(last.filter(|last| *last == '\n'));
    }
    out.extend(characters.map(|(_, c)| c));
    secrets.without_values(&out).into_owned()
}

/// Characters of the source, and what stands there instead.
type Change = (Range<usize>, String);

/// Remarks that hold a secret, without it. Those in lines that follow each other are one text: a part of a scenario, perhaps,
/// that its author turned off.
fn remarks(root: &Node, text: &str, secrets: &Secrets) -> Vec<Change> {
    let mut scalars = Vec::new();
    all_scalars(root, &mut scalars);
    scalars.sort_by_key(|range| (range.start, range.end));
    let mut scalars = scalars.into_iter().peekable();
    let mut blocks: Vec<Vec<(usize, &str)>> = Vec::new();
    let (mut begin, mut next_line) = (0, 0);
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let mut before = ' ';
        for (at, (byte, c)) in (begin..).zip(line.char_indices()) {
            while scalars.next_if(|range| range.end <= at).is_some() {}
            let is_within = scalars.peek().is_some_and(|range| range.start <= at);
            if c == '#' && before.is_whitespace() && !is_within {
                let remark = (at, line[byte..].trim_end_matches(['\n', '\r']));
                let is_alone = line[..byte].trim().is_empty();
                match blocks.last_mut().filter(|_| is_alone && next_line == number) {
                    Some(block) => block.push(remark),
                    None => blocks.push(vec![remark]),
                }
                // what stands behind something else is a text by itself
                next_line = if is_alone { number + 1 } else { 0 };
                break;
            }
            before = c;
        }
        begin += line.chars().count();
    }
    let mut changes = Vec::new();
    for block in blocks {
        let inner: Vec<&str> = block.iter().map(|(_, remark)| remark.trim_start_matches('#')).collect();
        let masked = secrets.masked_remarks(&inner.join("\n"));
        for (((at, remark), inner), masked) in block.iter().zip(&inner).zip(masked.split('\n')) {
            if masked != *inner {
                let marks = &remark[..remark.len() - inner.len()];
                changes.push((*at..at + remark.chars().count(), format!("{marks}{masked}")));
            }
        }
    }
    changes
}

/// Where scalars stand, which may have a `#` in them.
fn all_scalars(node: &Node, found: &mut Vec<Range<usize>>) {
    match &node.content {
        Content::Scalar { .. } => found.push(node.position.start..node.position.end),
        Content::List(items) => items.iter().for_each(|item| all_scalars(item, found)),
        Content::Map(entries) => entries.iter().for_each(|(key, value)| {
            all_scalars(key, found);
            all_scalars(value, found);
        }),
    }
}

/// The words that settings may be, where the scenario lists them.
fn choices(root: &Node) -> Vec<String> {
    let settings = match root.get("settings").map(|of| &of.content) {
        Some(Content::Map(settings)) => settings.as_slice(),
        _ => &[],
    };
    let listed = settings.iter().filter_map(|(_, value)| match &value.content {
        Content::List(choices) => Some(choices.iter().filter_map(Node::text)),
        _ => None,
    });
    listed.flatten().map(str::to_owned).collect()
}

struct Walk<'a> {
    secrets: &'a mut Secrets,
    changes: Vec<Change>,
    /// How many values became known by the names beside them.
    literals: usize,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node, names: Names<'_>) {
        match &node.content {
            Content::Scalar { text, .. } => match names {
                Names::Below(name) if is_secret(name, text) => self.value(name, node, text),
                _ => self.scalar(node, text.clone(), text),
            },
            Content::List(items) => items.iter().for_each(|item| self.node(item, names)),
            Content::Map(entries) => entries.iter().for_each(|(key, value)| self.entry(key, value, names)),
        }
    }

    fn entry(&mut self, key: &Node, value: &Node, names: Names<'_>) {
        let name = key.text().unwrap_or_default();
        match (names, &value.content) {
            (Names::Headers, Content::Scalar { text, .. }) if is_secret_name(name) => {
                if let Ok([Piece::Literal(literal)]) = split(text).as_deref() {
                    self.secrets.add(name, Origin::Header, scheme(literal).1);
                    self.known(name, literal);
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
                self.value(name, value, text);
            }
            (Names::Values, Content::List(_)) if is_secret_name(name) => self.node(value, Names::Below(name)),
            (Names::Values, Content::Map(fields)) if is_secret_name(name) => {
                // of a form's part only the text is secret
                let has = |(key, _): &(Node, Node)| matches!(key.text(), Some("file" | "text"));
                let is_part = fields.iter().any(has);
                for (key, value) in fields {
                    let is_open = is_part && matches!(key.text(), Some("file" | "name" | "type"));
                    self.node(value, if is_open { Names::Keys } else { Names::Below(name) });
                }
            }
            (Names::Auth, Content::Scalar { text, .. }) if name != "user" => {
                if let Ok([Piece::Literal(literal)]) = split(text).as_deref() {
                    self.secrets.add("Authorization", Origin::Header, literal);
                }
                self.scalar(value, masked_value(text), text);
            }
            (Names::Keys, Content::List(items)) if name == "command" || name == "agent" => self.words(items),
            (Names::Keys, Content::Scalar { text, .. }) if name == "command" || name == "agent" => {
                self.known_words(words(text).into_iter());
                self.scalar(value, masked_words(text), text);
            }
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
        self.known_words(words.iter().map(|word| word.text().unwrap_or_default()));
        let mut before = None;
        for word in words {
            match word.text() {
                Some(text) => self.scalar(word, masked_argument(before, text), text),
                None => self.node(word, Names::Keys),
            }
            before = word.text();
        }
    }

    /// Takes what is secret in the arguments of a command.
    fn known_words<'t>(&mut self, words: impl Iterator<Item = &'t str>) {
        let mut before = None;
        for word in words {
            if let Some((name, value)) = secret_argument(before, word) {
                self.known(name, value);
            }
            before = Some(word);
        }
    }

    /// The value of a secret of this name: its texts beside holes become known.
    fn value(&mut self, name: &str, node: &Node, text: &str) {
        match split(text).as_deref() {
            Ok([Piece::Literal(literal)]) => self.known(name, literal),
            Ok(pieces) => {
                for piece in pieces {
                    // a short one, such as `user-`, says nothing
                    if let Piece::Literal(literal) = piece
                        && literal.trim().chars().count() >= LONG
                    {
                        self.known(name, literal);
                    }
                }
            }
            Err(_) => {}
        }
        self.scalar(node, masked_value(text), text);
    }

    /// Takes a value, up to a bound: what is masked here is masked wherever it is said again.
    fn known(&mut self, name: &str, value: &str) {
        if self.literals < SOURCE_SECRETS_MAX {
            self.literals += 1;
            self.secrets.add_literal(name, value);
        }
    }

    /// `masked`: by its name, if it has one.
    fn scalar(&mut self, node: &Node, masked: String, text: &str) {
        for (name, value) in pattern::found(text) {
            self.known(name, value);
        }
        let masked = self.secrets.masked(&masked);
        if masked != text {
            let Position { start, end, .. } = node.position;
            self.changes.push((start..end, quoted(&masked)));
        }
    }
}

/// Whether these are credentials.
fn is_auth((kind, _): &(Node, Node)) -> bool {
    matches!(kind.text(), Some("basic" | "bearer"))
}

fn of_key(name: &str) -> Names<'static> {
    match name {
        "headers" | "metadata" => Names::Headers,
        "env" => Names::Variables,
        "check" | "extract" | "until" => Names::Tests,
        // those of the scenario, and those that a comparison sets
        "settings" | "set" | "rows" => Names::Values,
        name if steps::has_values(name) => Names::Values,
        _ => Names::Keys,
    }
}

/// A YAML scalar with this text.
fn quoted(text: &str) -> String {
    // what is a string of JSON is one of YAML
    serde_json::Value::from(text).to_string()
}
