//! YAML as a tree whose every node knows where it stands.

mod read;

pub(crate) use read::{SOURCE_BYTES_MAX, read, read_or};

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
    /// A mapping without a key, which stands nowhere.
    pub(crate) const fn nothing() -> Node {
        Node {
            position: Position { line: 0, column: 0, start: 0, end: 0 },
            content: Content::Map(Vec::new()),
        }
    }

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

    /// How many nodes it is, itself included, and the bytes of their texts.
    fn size(&self) -> (usize, usize) {
        let add = |(nodes, bytes): (usize, usize), node: &Node| {
            let more = node.size();
            (nodes + more.0, bytes + more.1)
        };
        match &self.content {
            Content::Scalar { text, .. } => (1, text.len()),
            Content::List(items) => items.iter().fold((1, 0), add),
            Content::Map(entries) => {
                entries.iter().fold((1, 0), |sum, (key, value)| add(add(sum, key), value))
            }
        }
    }
}

/// The items of a list, or the one thing itself.
pub(crate) fn one_or_many(node: &Node) -> &[Node] {
    if node.text().is_some() { std::slice::from_ref(node) } else { node.items() }
}
