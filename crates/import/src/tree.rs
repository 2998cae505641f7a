//! JSON and YAML as a tree that knows its lines, and which of it was asked for: the rest is what is not known.

use std::borrow::Cow;
use std::cell::Cell;

use serde::de::IgnoredAny;
use tidemark_scenario::source::{Lined, LinedContent, Scalar};

use crate::error::ImportError;

/// Most values of a file.
const NODES_MAX: usize = 1_000_000;
/// Deepest nesting.
const DEPTH_MAX: usize = 100;

/// How much of a value was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Seen {
    Not,
    Itself,
    Whole,
}

/// A value.
#[derive(Debug)]
pub(crate) struct Node {
    /// Its line from 1; for a member of an object that of its key.
    pub(crate) line: usize,
    pub(crate) content: Content,
    seen: Cell<Seen>,
}

/// What it holds.
#[derive(Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    List(Vec<Node>),
    Map(Vec<(String, Node)>),
}

impl Node {
    fn new(line: usize, content: Content) -> Node {
        Node { line, content, seen: Cell::new(Seen::Not) }
    }

    /// Reads JSON.
    ///
    /// # Errors
    /// Where it is no JSON, or too much of it, with the place.
    pub(crate) fn from_json(name: &str, text: &str) -> Result<Node, ImportError> {
        serde_json::from_str::<IgnoredAny>(text).map_err(|error| {
            let reason = error.to_string();
            let reason = reason.split(" at line ").next().unwrap_or_default();
            let (line, column) = (error.line(), error.column());
            ImportError::new(format!("{name}:{line}:{column}: this is not JSON: {reason}"))
        })?;
        let mut reader = Reader { text, at: 0, line: 1, nodes: 0 };
        let node = reader.value(0);
        node.map_err(|reason| ImportError::new(format!("{name}:{}: {reason}", reader.line)))
    }

    /// Reads YAML, in which `<<` adds another mapping.
    ///
    /// # Errors
    /// Where it is no YAML, or too much of it, with the place.
    pub(crate) fn from_yaml(name: &str, text: &str) -> Result<Node, ImportError> {
        let read = Lined::from_yaml(name, text);
        read.map(Node::of).map_err(|mistakes| ImportError::new(mistakes.to_string()))
    }

    fn of(lined: Lined) -> Node {
        let content = match lined.content {
            LinedContent::Scalar(scalar) => Content::Scalar(scalar),
            LinedContent::List(items) => Content::List(items.into_iter().map(Node::of).collect()),
            LinedContent::Map(entries) => {
                let mut all: Vec<(String, Node)> = Vec::new();
                let mut added = Vec::new();
                for (key, value) in entries {
                    match value.content {
                        LinedContent::Map(inner) if key == "<<" => added.extend(inner),
                        _ => all.push((key, Node::of(value))),
                    }
                }
                for (key, value) in added {
                    if !all.iter().any(|(known, _)| *known == key) {
                        all.push((key, Node::of(value)));
                    }
                }
                Content::Map(all)
            }
        };
        Node::new(lined.line, content)
    }

    /// A plain value that is there.
    pub(crate) fn scalar(&self) -> Option<&Scalar> {
        match &self.content {
            Content::Scalar(scalar) if !scalar.is_null() => Some(scalar),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        self.scalar().map(Scalar::as_str)
    }

    fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(scalar) if scalar.is_null())
    }

    fn entry(&self, key: &str) -> Option<&Node> {
        match &self.content {
            // the last counts where a key is there twice
            Content::Map(entries) => entries.iter().rfind(|(known, _)| known == key).map(|(_, node)| node),
            _ => None,
        }
    }

    /// A member, whatever it is.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        let node = self.entry(key)?;
        node.see();
        (!node.is_null()).then_some(node)
    }

    /// A member that is a plain value; another one stays unknown.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.entry(key).filter(|node| matches!(node.content, Content::Scalar(_)))?;
        self.get(key)?.as_str()
    }

    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.text(key) == Some("true")
    }

    pub(crate) fn number(&self, key: &str) -> Option<f64> {
        let node = self.entry(key)?;
        let number = node.as_str()?.trim().parse::<f64>().ok().filter(|number| number.is_finite())?;
        node.see();
        Some(number)
    }

    /// A member that is an object; another one stays unknown.
    pub(crate) fn map(&self, key: &str) -> Option<&Node> {
        self.entry(key).filter(|node| matches!(node.content, Content::Map(_)) || node.is_null())?;
        self.get(key)
    }

    /// The items of a member that is a list; another one stays unknown.
    pub(crate) fn list(&self, key: &str) -> &[Node] {
        let is_list = |node: &&Node| matches!(node.content, Content::List(_)) || node.is_null();
        self.entry(key).filter(is_list).map_or(&[], |node| {
            node.see();
            node.items()
        })
    }

    /// The items of a list.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.content {
            Content::List(items) => {
                items.iter().for_each(Node::see);
                items
            }
            _ => &[],
        }
    }

    /// The items of a list, or the one thing itself.
    pub(crate) fn one_or_many(&self) -> &[Node] {
        match &self.content {
            Content::List(_) => self.items(),
            _ => std::slice::from_ref(self),
        }
    }

    /// The members of an object, all of which are asked for.
    pub(crate) fn entries(&self) -> &[(String, Node)] {
        match &self.content {
            Content::Map(entries) => {
                entries.iter().for_each(|(_, node)| node.see());
                entries
            }
            _ => &[],
        }
    }

    fn see(&self) {
        if self.seen.get() == Seen::Not {
            self.seen.set(Seen::Itself);
        }
    }

    /// How much it says, bytes.
    pub(crate) fn size(&self) -> usize {
        match &self.content {
            Content::Scalar(scalar) => scalar.as_str().len(),
            Content::List(items) => items.iter().map(Node::size).sum(),
            Content::Map(entries) => entries.iter().map(|(key, node)| key.len() + node.size()).sum(),
        }
    }

    /// All of it was taken or told.
    pub(crate) fn done(&self) {
        self.seen.set(Seen::Whole);
    }

    /// Members that say nothing of what is sent, or were told.
    pub(crate) fn ignore(&self, keys: &[&str]) {
        keys.iter().filter_map(|key| self.entry(key)).for_each(Node::done);
    }

    /// Tells what nobody asked for: the keys above it, its own last, and what it is.
    pub(crate) fn unknown<'n>(&'n self, keys: &mut Vec<&'n str>, tell: &mut dyn FnMut(&[&str], &Node)) {
        let mut visit = |key: &'n str, node: &'n Node, keys: &mut Vec<&'n str>| {
            keys.push(key);
            match node.seen.get() {
                Seen::Not => tell(keys, node),
                Seen::Itself => node.unknown(keys, tell),
                Seen::Whole => {}
            }
            keys.pop();
        };
        match &self.content {
            Content::Scalar(_) => {}
            Content::List(items) => items.iter().for_each(|item| visit("[]", item, keys)),
            Content::Map(entries) => entries.iter().for_each(|(key, node)| visit(key, node, keys)),
        }
    }
}

/// Reads a text that is known to be JSON.
struct Reader<'t> {
    text: &'t str,
    at: usize,
    line: usize,
    nodes: usize,
}

impl<'t> Reader<'t> {
    /// The next character that is not white space.
    fn peek(&mut self) -> u8 {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at).filter(|byte| byte.is_ascii_whitespace()) {
            self.line += usize::from(*byte == b'\n');
            self.at += 1;
        }
        bytes.get(self.at).copied().unwrap_or_default()
    }

    /// Whether another member or item follows; what stands between is passed.
    fn goes_on(&mut self, end: u8) -> bool {
        if self.peek() == b',' {
            self.at += 1;
        }
        match self.peek() {
            0 => false,
            byte if byte == end => {
                self.at += 1;
                false
            }
            _ => true,
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, String> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return Err(format!("it has more than {NODES_MAX} values"));
        }
        if depth > DEPTH_MAX {
            return Err(format!("it is more than {DEPTH_MAX} deep"));
        }
        let first = self.peek();
        let line = self.line;
        let content = match first {
            b'{' => {
                self.at += 1;
                let mut members = Vec::new();
                while self.goes_on(b'}') {
                    let key = self.string()?.into_owned();
                    let line = self.line;
                    // the colon
                    self.peek();
                    self.at += 1;
                    let value = self.value(depth + 1)?;
                    members.push((key, Node { line, ..value }));
                }
                Content::Map(members)
            }
            b'[' => {
                self.at += 1;
                let mut items = Vec::new();
                while self.goes_on(b']') {
                    items.push(self.value(depth + 1)?);
                }
                Content::List(items)
            }
            b'"' => Content::Scalar(self.string()?.as_ref().into()),
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let end = rest.find(|c: char| c.is_ascii_whitespace() || ",]}".contains(c));
                let word = &rest[..end.unwrap_or(rest.len())];
                if word.is_empty() {
                    return Err("a value is missing".into());
                }
                self.at += word.len();
                Content::Scalar(Scalar::unquoted(word))
            }
        };
        Ok(Node::new(line, content))
    }

    fn string(&mut self) -> Result<Cow<'t, str>, String> {
        self.peek();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut is_escaped = false;
        let end = rest.bytes().skip(1).position(|byte| {
            let ends = byte == b'"' && !is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            ends
        });
        let literal = end.and_then(|end| rest.get(..end + 2)).ok_or("a text has no end")?;
        self.at += literal.len();
        if !literal.contains('\\') {
            return Ok(Cow::Borrowed(&literal[1..literal.len() - 1]));
        }
        serde_json::from_str(literal)
            .map(Cow::Owned)
            .map_err(|error| format!("a text cannot be read: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn untold(node: &Node) -> Vec<String> {
        let mut told = Vec::new();
        node.unknown(&mut Vec::new(), &mut |keys, node| {
            told.push(format!("{} {}", node.line, keys.join(".")));
        });
        told
    }

    #[test]
    fn what_nobody_asks_for_is_known_with_its_line() {
        let json = "{\"a\": 1,\n \"b\": [ {\"c\": \"x\\\"\\n\\ud83d\\ude00\"},\n  {\"d\": null} ],\n\"e\": {}, \"a\": 2}";
        for node in [Node::from_json("t", json), Node::from_json("t", &json.replace('\n', "\r\n"))] {
            let node = node.unwrap();
            assert_eq!(untold(&node), ["1 a", "2 b", "4 e", "4 a"]);
            assert_eq!((node.text("a"), node.text("b"), node.number("none")), (Some("2"), None, None));
            assert_eq!(node.list("b")[0].text("c"), Some("x\"\n\u{1f600}"));
            assert_eq!(untold(&node), ["1 a", "3 b.[].d", "4 e"]);
            assert!(node.list("b")[1].text("d").is_none());
            node.ignore(&["e"]);
            assert_eq!(untold(&node), ["1 a"]);
        }
        let yaml = Node::from_yaml("t", "x: &x {a: 1, b: 2}\ny:\n  <<: *x\n  b: 3\n").unwrap();
        let y = yaml.map("y").unwrap();
        assert_eq!((y.text("a"), y.text("b")), (Some("1"), Some("3")));
        assert_eq!(untold(&yaml), ["1 x"]);
    }

    #[test]
    fn what_is_no_json_or_too_much_is_refused_with_its_line() {
        let told = |text: &str| Node::from_json("t", text).unwrap_err().to_string();
        assert!(told("{\n\"a\": }").starts_with("t:2:6: this is not JSON"), "{}", told("{\n\"a\": }"));
        assert!(told(&"[".repeat(1 << 20)).contains("not JSON"));
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        assert!(told(&deep).contains("more than 100 deep"));
        assert!(told(&format!("[{}0]", "0,".repeat(NODES_MAX))).contains("more than 1000000 values"));
        assert!(told("\"\\ud800\"").contains("t:1: a text cannot be read"), "{}", told("\"\\ud800\""));
    }
}
