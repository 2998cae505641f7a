//! Where the stages of reading a scenario leave what they find wrong.

use std::cell::RefCell;
use std::collections::HashSet;

use crate::diagnostic::{Diagnostic, Diagnostics, Severity};
use crate::secrets::{Secrets, harmless_keys};
use crate::yaml::{Node, Position};

/// A scenario's text and what was found wrong with it so far.
pub(crate) struct Sink<'s> {
    name: &'s str,
    text: &'s str,
    /// First byte of each line; YAML's lines end at either kind of line end, or both.
    lines: Vec<usize>,
    found: RefCell<Diagnostics>,
    /// What must not be shown.
    secrets: RefCell<Secrets>,
    /// First characters of keys that hold no secret though they look like it.
    harmless: RefCell<HashSet<usize>>,
}

impl<'s> Sink<'s> {
    pub(crate) fn new(name: &'s str, text: &'s str) -> Self {
        let bytes = text.as_bytes();
        let ends =
            |at: &usize| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        let lines = std::iter::once(0).chain((0..bytes.len()).filter(ends).map(|at| at + 1)).collect();
        let (found, secrets, harmless) = Default::default();
        Sink { name, text, lines, found, secrets, harmless }
    }

    /// The file as messages name it.
    pub(crate) fn name(&self) -> &'s str {
        self.name
    }

    /// Whether a text stands in a block, below where it is begun.
    pub(crate) fn is_block(&self, node: &Node) -> bool {
        self.characters(node.position).starts_with(['|', '>'])
    }

    pub(crate) fn text(&self) -> &'s str {
        self.text
    }

    /// A line of the source, counted from 1.
    pub(crate) fn line(&self, line: usize) -> &'s str {
        let start = line.checked_sub(1).and_then(|index| self.lines.get(index));
        let rest = start.map_or("", |start| &self.text[*start..]);
        rest.split(['\n', '\r']).next().unwrap_or("")
    }

    /// All that was found, without secrets.
    pub(crate) fn into_diagnostics(self) -> Diagnostics {
        let mut found = self.found.take();
        found.settle();
        if !found.is_empty() {
            let mut secrets = self.secrets.take();
            let masked = secrets.masked_source(self.text, &self.harmless.borrow());
            // lines stay lines, though they may have fewer bytes
            let masked = Sink::new(self.name, &masked);
            found.mask(&secrets, |line| masked.line(line).to_owned());
        }
        found
    }

    /// Takes these secrets out of all that is told; `root` says what the text means.
    pub(crate) fn mask(&self, secrets: &Secrets, root: &Node) {
        *self.secrets.borrow_mut() = secrets.clone();
        *self.harmless.borrow_mut() = harmless_keys(root);
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.found.borrow().has_errors()
    }

    pub(crate) fn error(&self, node: &Node, message: impl Into<String>) {
        self.error_at(node.position, message.into());
    }

    pub(crate) fn warn(&self, position: Position, message: String) {
        self.push(Severity::Warning, position, message);
    }

    /// Whether this stands in the file, but not behind a `$`.
    pub(crate) fn has_literal(&self, text: &str) -> bool {
        self.text.match_indices(text).any(|(at, _)| !self.text[..at].ends_with('$'))
    }

    pub(crate) fn error_at(&self, position: Position, message: String) {
        self.push(Severity::Error, position, message);
    }

    /// A mistake that stands in no line of the file.
    pub(crate) fn error_outside(&self, about: String, message: String) {
        self.outside(Severity::Error, about, message);
    }

    /// The same, which the scenario can run with.
    pub(crate) fn warn_outside(&self, about: String, message: String) {
        self.outside(Severity::Warning, about, message);
    }

    fn outside(&self, severity: Severity, about: String, message: String) {
        self.found.borrow_mut().push(Diagnostic {
            severity,
            file: about,
            line: 0,
            column: 0,
            length: 1,
            message,
            source_line: String::new(),
        });
    }

    /// A mistake inside a scalar's text, `length` bytes long from byte `offset` on.
    pub(crate) fn error_inside(&self, node: &Node, offset: usize, length: usize, message: String) {
        self.error_at(self.place_inside(node, offset, length), message);
    }

    /// Where byte `offset` of a scalar's text stands in the source. Quotes, escapes and folded lines shift it; the
    /// `${` before it is found again in the source, and behind it texts are hardly ever shifted.
    fn place_inside(&self, node: &Node, offset: usize, length: usize) -> Position {
        if self.found.borrow().is_full() {
            return node.position;
        }
        let Some(text) = node.text() else { return node.position };
        let raw = self.characters(node.position);
        let until = text.get(..offset).unwrap_or(text);
        let (in_value, in_source) = match until.rfind("${") {
            Some(hole) => {
                let nth = until.matches("${").count();
                match raw.match_indices("${").nth(nth - 1) {
                    Some((found, _)) => (hole, found),
                    None => return node.position,
                }
            }
            None => (0, usize::from(raw.starts_with(['"', '\'']))),
        };
        let characters = |text: &str| text.chars().count();
        let between = characters(&until[in_value..]);
        let before = characters(&raw[..in_source]) + between;
        if before > characters(raw) {
            return node.position;
        }
        let marked: String = raw.chars().take(before).collect();
        let new_lines = marked.matches('\n').count();
        let column = match marked.rfind('\n') {
            Some(at) => characters(&marked[at + 1..]) + 1,
            None => node.position.column + before,
        };
        let shown =
            text.get(offset..(offset + length).min(text.len())).map_or(1, |part| characters(part).max(1));
        let start = node.position.start + before;
        Position { line: node.position.line + new_lines, column, start, end: start + shown }
    }

    /// The source's characters at a place.
    fn characters(&self, position: Position) -> &'s str {
        let start = position.line.checked_sub(1).and_then(|index| self.lines.get(index));
        let Some(line) = start.and_then(|start| self.text.get(*start..)) else { return "" };
        let byte =
            |text: &str, count: usize| text.char_indices().nth(count).map_or(text.len(), |(byte, _)| byte);
        let rest = &line[byte(line, position.column.saturating_sub(1))..];
        &rest[..byte(rest, position.end.saturating_sub(position.start))]
    }

    /// The end of the text, for what the parser finds behind it.
    fn within(&self, position: Position) -> Position {
        let lines = self.lines.len();
        if position.line <= lines {
            return position;
        }
        Position { line: lines, column: self.line(lines).chars().count() + 1, ..position }
    }

    fn push(&self, severity: Severity, position: Position, message: String) {
        let position = self.within(position);
        let first_line = self.characters(position).lines().next().unwrap_or("").trim_end().chars().count();
        self.found.borrow_mut().push(Diagnostic {
            severity,
            file: self.name.to_owned(),
            line: position.line,
            column: position.column,
            length: first_line.max(1),
            message,
            source_line: self.line(position.line).to_owned(),
        });
    }
}
