//! Values with the lines that they stand in, for who has to say what of a file was not taken.

use super::value::Scalar;
use crate::diagnostic::Diagnostics;
use crate::sink::Sink;
use crate::yaml::{self, Content, Node};

/// A value and its line.
#[derive(Debug, Clone, PartialEq)]
pub struct Lined {
    /// From 1; for an entry of a mapping that of its key.
    pub line: usize,
    /// What it holds.
    pub content: LinedContent,
}

/// What a value with a line holds.
#[derive(Debug, Clone, PartialEq)]
pub enum LinedContent {
    /// A plain value.
    Scalar(Scalar),
    /// A list.
    List(Vec<Lined>),
    /// A mapping, in the order of the file.
    Map(Vec<(String, Lined)>),
}

impl Lined {
    /// Reads YAML within the bounds of a scenario; `name` is what messages call it.
    ///
    /// # Errors
    /// Where the text is no YAML, or too much, with line and column.
    pub fn from_yaml(name: &str, text: &str) -> Result<Lined, Diagnostics> {
        let sink = Sink::new(name, text);
        match yaml::read_or(&sink, "the file is empty").filter(|_| !sink.has_errors()) {
            Some(root) => Ok(Lined::read(&root, root.position.line)),
            None => Err(sink.into_diagnostics()),
        }
    }

    fn read(node: &Node, line: usize) -> Lined {
        let content = match &node.content {
            Content::Scalar { text, plain } => LinedContent::Scalar(Scalar::read(text, *plain)),
            Content::List(items) => {
                LinedContent::List(items.iter().map(|item| Lined::read(item, item.position.line)).collect())
            }
            Content::Map(entries) => {
                let entry = |(key, value): &(Node, Node)| {
                    (key.text().unwrap_or_default().to_owned(), Lined::read(value, key.position.line))
                };
                LinedContent::Map(entries.iter().map(entry).collect())
            }
        };
        Lined { line, content }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_the_lines_of_their_keys() {
        let root = Lined::from_yaml("t", "a:\n  b: [1,\n    x]\nc: y\n").unwrap();
        let LinedContent::Map(entries) = &root.content else { panic!("{root:?}") };
        let lines: Vec<(&str, usize)> =
            entries.iter().map(|(key, value)| (key.as_str(), value.line)).collect();
        assert_eq!(lines, [("a", 1), ("c", 4)]);
        let LinedContent::Map(inner) = &entries[0].1.content else { panic!("{root:?}") };
        let LinedContent::List(items) = &inner[0].1.content else { panic!("{root:?}") };
        assert_eq!((inner[0].1.line, items[0].line, items[1].line), (2, 2, 3));
        assert!(Lined::from_yaml("t", "a: [").unwrap_err().to_string().contains("t:"));
    }
}
