//! From text to tree.

use std::collections::HashMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span};

use super::{Content, Node, Position};
use crate::sink::Sink;

/// Largest scenario that is read, bytes.
pub(crate) const SOURCE_BYTES_MAX: usize = 4 << 20;
/// Most nodes of a scenario, aliases expanded.
const NODES_MAX: usize = 200_000;
/// Most bytes of a scenario's texts, aliases expanded.
const TEXT_BYTES_MAX: usize = 32 << 20;
/// Deepest nesting of lists and mappings.
const DEPTH_MAX: usize = 64;

/// Reads the source's one document; what is wrong goes to the sink.
pub(crate) fn read(sink: &Sink<'_>) -> Option<Node> {
    read_or(sink, "the scenario is empty; it needs at least sessions and load")
}

/// The same; what to say where there is nothing in it.
pub(crate) fn read_or(sink: &Sink<'_>, empty: &str) -> Option<Node> {
    let text = sink.text();
    if text.len() > SOURCE_BYTES_MAX {
        sink.error_at(Position::default(), format!("the file is larger than {} MiB", SOURCE_BYTES_MAX >> 20));
        return None;
    }
    let mut builder =
        Builder { sink, stack: Vec::new(), anchors: HashMap::new(), nodes: 0, aliased: 0, root: None };
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
        sink.error_at(position, empty.into());
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
    /// Bytes of texts that stand behind aliases.
    aliased: usize,
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
            Event::Alias(anchor) => match self.anchors.get(&anchor) {
                Some(node) => {
                    // before there is a copy
                    let (nodes, bytes) = node.size();
                    self.nodes += nodes;
                    self.aliased += bytes;
                    if self.aliased > TEXT_BYTES_MAX {
                        let most = TEXT_BYTES_MAX >> 20;
                        let what = format!(
                            "the aliases of this scenario stand for more than {most} MiB of text; use fewer"
                        );
                        return self.fail(position, what);
                    }
                    let node = Node { position, ..node.clone() };
                    self.put(node, 0)
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
