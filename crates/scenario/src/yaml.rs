//! YAML into a tree whose every node knows where it stands.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use crate::sink::Sink;

/// Largest scenario that is read, bytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 4 << 20;
/// Most nodes of a scenario, aliases expanded.
const NODES_MAX: usize = 200_000;
/// Deepest nesting of lists and mappings.
const DEPTH_MAX: usize = 64;

/// Where something stands in the source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Position {
    /// From 1; 0 if nowhere.
    pub(crate) line: usize,
    /// From 1, in characters.
    pub(crate) column: usize,
    /// First character, counted from the begin of the source.
    pub(crate) start: usize,
    /// Behind the last character.
    pub(crate) end: usize,
}

/// One node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) position: Position,
    pub(crate) content: Content,
}

/// What a node holds.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// Text; `plain` if it stands without quotes, so that it may be a number or a truth value.
    Scalar { text: String, plain: bool },
    /// A sequence.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<(Node, Node)>),
}

impl Node {
    /// The text of a scalar.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// Nothing at all: an empty value or `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// The items of a list; none for anything else.
    pub(crate) fn items(&self) -> &[Node] {
        match &self.content {
            Content::List(items) => items,
            _ => &[],
        }
    }

    /// The entries of a mapping; none for anything else.
    pub(crate) fn entries(&self) -> &[(Node, Node)] {
        match &self.content {
            Content::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a mapping's key.
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entry(key).map(|(_, value)| value)
    }

    /// A mapping's key and its value.
    pub(crate) fn entry(&self, key: &str) -> Option<&(Node, Node)> {
        self.entries().iter().find(|(name, _)| name.text() == Some(key))
    }

    /// What it is, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            _ if self.is_null() => "nothing",
            Content::Scalar { .. } => "a plain value",
            Content::List(_) => "a list",
            Content::Map(_) => "a mapping",
        }
    }

    fn count(&self) -> usize {
        match &self.content {
            Content::Scalar { .. } => 1,
            Content::List(items) => 1 + items.iter().map(Node::count).sum::<usize>(),
            Content::Map(entries) => 1 + entries.iter().map(|(k, v)| k.count() + v.count()).sum::<usize>(),
        }
    }
}

/// The items of a list, or the one thing itself.
pub(crate) fn one_or_many(node: &Node) -> &[Node] {
    if node.text().is_some() { std::slice::from_ref(node) } else { node.items() }
}

/// Reads the source's one document; what is wrong goes to the sink.
pub(crate) fn read(sink: &Sink<'_>) -> Option<Node> {
    let text = sink.text();
    if text.len() > SOURCE_BYTES_MAX {
        sink.error_at(Position::default(), format!("the scenario is larger than {SOURCE_BYTES_MAX} bytes"));
        return None;
    }
    let mut builder = Builder { sink, stack: Vec::new(), anchors: HashMap::new(), nodes: 0, root: None };
    for event in Parser::new_from_str(text) {
        match event {
            Ok((event, span)) => builder.take(event, span)?,
            Err(error) => {
                let position = at_the_tab(sink, point(*error.marker()), error.info());
                sink.error_at(position, syntax_message(sink, position, error.info()));
                return None;
            }
        }
    }
    if builder.root.is_none() {
        let position = Position { line: 1, column: 1, start: 0, end: 0 };
        sink.error_at(position, "the scenario is empty; it needs at least sessions and load".into());
    }
    builder.root
}

fn point(at: Marker) -> Position {
    Position { line: at.line().max(1), column: at.col() + 1, start: at.index(), end: at.index() }
}

/// The parser marks where the text began in which it found a tab; the tab itself is lines below.
fn at_the_tab(sink: &Sink<'_>, position: Position, info: &str) -> Position {
    let indented = |line: &&str| line[..line.len() - line.trim_start().len()].contains('\t');
    if !info.contains("tab") || indented(&sink.line(position.line)) {
        return position;
    }
    let mut below = sink.text().lines().enumerate().skip(position.line);
    match below.find(|(_, line)| indented(line)) {
        Some((index, line)) => {
            let column = line.chars().take_while(|c| *c != '\t').count() + 1;
            Position { line: index + 1, column, ..position }
        }
        None => position,
    }
}

/// What the YAML parser says, and the usual reason where an expression stands in the line.
fn syntax_message(sink: &Sink<'_>, position: Position, info: &str) -> String {
    let line = sink.line(position.line);
    let hint = if line.contains("${") {
        "; inside { } and [ ], and where it holds \": \" or \" #\", a value with ${…} must stand in quotes"
    } else if line.contains('\t') {
        "; YAML is indented with spaces, not tabs"
    } else {
        ""
    };
    format!("this is not YAML: {info}{hint}")
}

/// A list or mapping that is not closed yet.
struct Open {
    position: Position,
    anchor: usize,
    list: Vec<Node>,
    map: Vec<(Node, Node)>,
    /// A mapping's key that waits for its value.
    key: Option<Node>,
    is_map: bool,
}

struct Builder<'s> {
    sink: &'s Sink<'s>,
    stack: Vec<Open>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    root: Option<Node>,
}

impl Builder<'_> {
    /// Takes an event in; `None` ends the reading.
    fn take(&mut self, event: Event<'_>, span: Span) -> Option<()> {
        let position = Position { end: span.end.index(), ..point(span.start) };
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let plain = style == ScalarStyle::Plain;
                let node = Node { position, content: Content::Scalar { text: text.into_owned(), plain } };
                self.put(node, anchor)
            }
            Event::SequenceStart(anchor, _) => self.open(position, anchor, false),
            Event::MappingStart(anchor, _) => self.open(position, anchor, true),
            Event::SequenceEnd | Event::MappingEnd => {
                let open = self.stack.pop()?;
                let content = if open.is_map { Content::Map(open.map) } else { Content::List(open.list) };
                self.put(Node { position: open.position, content }, open.anchor)
            }
            Event::Alias(anchor) => match self.anchors.get(&anchor).cloned() {
                Some(node) => {
                    self.nodes += node.count();
                    self.put(Node { position, ..node }, 0)
                }
                None => self.fail(position, "this alias stands inside what it names".into()),
            },
            Event::DocumentStart(_) if self.root.is_some() => {
                self.fail(position, "a scenario is one YAML document; a second begins here".into())
            }
            _ => Some(()),
        }
    }

    fn fail(&self, position: Position, message: String) -> Option<()> {
        self.sink.error_at(position, message);
        None
    }

    fn open(&mut self, position: Position, anchor: usize, is_map: bool) -> Option<()> {
        if self.stack.len() == DEPTH_MAX {
            return self.fail(position, format!("nested more than {DEPTH_MAX} deep"));
        }
        self.stack.push(Open { position, anchor, list: Vec::new(), map: Vec::new(), key: None, is_map });
        Some(())
    }

    fn put(&mut self, node: Node, anchor: usize) -> Option<()> {
        self.nodes += 1;
        if self.nodes > NODES_MAX {
            return self.fail(node.position, format!("the scenario has more than {NODES_MAX} nodes"));
        }
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        let Some(open) = self.stack.last_mut() else {
            self.root = Some(node);
            return Some(());
        };
        if !open.is_map {
            open.list.push(node);
            return Some(());
        }
        let Some(key) = open.key.take() else {
            if let Some((first, _)) =
                open.map.iter().find(|(first, _)| first.text().is_some() && first.text() == node.text())
            {
                let (name, line) = (first.text().unwrap_or_default(), first.position.line);
                self.sink.error_at(
                    node.position,
                    format!("the key \"{name}\" stands here twice, first in line {line}"),
                );
            }
            open.key = Some(node);
            return Some(());
        };
        if key.text().is_none() {
            self.sink.error_at(key.position, format!("a key is a plain text, not {}", key.kind()));
        }
        open.map.push((key, node));
        Some(())
    }
}
