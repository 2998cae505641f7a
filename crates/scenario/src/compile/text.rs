//! Texts with holes and expressions of a session.

use tidemark_wire::json;

use super::Session;
use crate::expr::{self, Expr};
use crate::pieces::{self, Piece};
use crate::settings::literal;
use crate::template::{Encoding, Template};
use crate::yaml::{Content, Node};

/// What is said of a `#` in a path.
const UNSENT: &str =
    "what stands behind a `#` is for a browser and is not sent; if it belongs to the path, write %23";

impl Session<'_, '_> {
    /// Parses an expression that begins at byte `offset` of a node's text; mistakes are reported.
    pub(crate) fn parsed(&mut self, node: &Node, offset: usize, text: &str) -> Option<Expr> {
        match expr::parse::parse(text, &mut self.names()) {
            Ok(parsed) => Some(Expr::written(parsed, text)),
            Err(mistakes) => {
                for mistake in mistakes {
                    self.reader.sink.error_inside(
                        node,
                        offset + mistake.offset,
                        mistake.length,
                        mistake.reason,
                    );
                }
                None
            }
        }
    }

    /// An expression, with or without `${ }` around it.
    pub(crate) fn expression(&mut self, node: &Node) -> Option<Expr> {
        let (offset, text) = self.reader.expression(node)?;
        self.parsed(node, offset, text)
    }

    /// A text with holes; a path's or form's own characters are encoded, too.
    pub(crate) fn template(&mut self, node: &Node, encoding: Encoding) -> Template {
        let mut template = Template::default();
        for piece in self.pieces(node) {
            match piece {
                Ok(literal) => {
                    let mut bytes = Vec::new();
                    encoding.write_text(literal.as_bytes(), &mut bytes);
                    template.push_literal(&bytes);
                }
                Err(expr) => template.push_hole(expr, encoding),
            }
        }
        template
    }

    /// A request's path: settings stand in it as they are, values of variables are encoded, unless they are paths. So is all
    /// that stands behind the `=` of a query. What stands behind a `#` is for whoever shows the answer, and not sent.
    pub(crate) fn path(&mut self, node: &Node) -> Template {
        let mut template = Template::default();
        let (mut has_query, mut is_value) = (false, false);
        for piece in self.pieces(node) {
            match piece {
                Ok(literal) => {
                    has_query |= literal.contains('?');
                    is_value = has_query && literal.ends_with('=');
                    template.push_literal(&url_literal(literal.as_bytes()));
                    if literal.contains('#') {
                        self.reader.sink.warn(node.position, UNSENT.into());
                        break;
                    }
                }
                Err(expr) => match expr.as_constant() {
                    Some(value) if !is_value => {
                        let mut bytes = Vec::new();
                        Encoding::Raw.write_value(value, &mut bytes);
                        template.push_literal(&url_literal(&bytes));
                        if bytes.contains(&b'#') {
                            self.reader.sink.warn(node.position, UNSENT.into());
                            break;
                        }
                    }
                    Some(_) => template.push_hole(expr, Encoding::Url),
                    None if is_path(&expr) => template.push_hole(expr, Encoding::Path),
                    None => template.push_hole(expr, Encoding::Url),
                },
            }
        }
        template
    }

    /// A value: one hole keeps its type, and so do numbers and truth values.
    pub(crate) fn value(&mut self, node: &Node) -> Option<Expr> {
        let Content::Scalar { text, plain } = &node.content else { return None };
        if let Some((offset, text)) = pieces::only_hole(text) {
            return self.parsed(node, offset, text);
        }
        if let Ok([Piece::Literal(_)]) = pieces::split(text).as_deref() {
            return Some(Expr::new(literal(text, *plain)));
        }
        let parts = self.pieces(node).into_iter().map(|piece| match piece {
            Ok(literal) => expr::Node::Text(literal.as_bytes().into()),
            Err(expr) => expr.node().clone(),
        });
        Some(Expr::new(concatenation(parts.collect())))
    }

    /// A JSON body: texts are templates, one hole keeps its type.
    pub(crate) fn json(&mut self, node: &Node, out: &mut Template) {
        match &node.content {
            Content::Scalar { text, plain } => self.json_scalar(node, text, *plain, out),
            Content::List(items) => {
                out.push_literal(b"[");
                for (index, item) in items.iter().enumerate() {
                    out.push_literal(if index > 0 { b"," } else { b"" });
                    self.json(item, out);
                }
                out.push_literal(b"]");
            }
            Content::Map(entries) => {
                out.push_literal(b"{");
                for (index, (key, value)) in entries.iter().enumerate() {
                    out.push_literal(if index > 0 { b",\"" } else { b"\"" });
                    out.append(self.template(key, Encoding::JsonText));
                    out.push_literal(b"\":");
                    self.json(value, out);
                }
                out.push_literal(b"}");
            }
        }
    }

    fn json_scalar(&mut self, node: &Node, text: &str, plain: bool, out: &mut Template) {
        if let Some((offset, text)) = pieces::only_hole(text) {
            if let Some(expr) = self.parsed(node, offset, text) {
                out.push_hole(expr, Encoding::JsonValue);
            }
        } else if plain && is_long(text) {
            out.push_literal(text.as_bytes());
        } else if plain && !text.contains("${") {
            out.push_hole(Expr::new(literal(text, true)), Encoding::JsonValue);
        } else {
            out.push_literal(b"\"");
            out.append(self.template(node, Encoding::JsonText));
            out.push_literal(b"\"");
        }
    }

    /// Literal texts and compiled expressions, in order; what is wrong is reported and left out.
    fn pieces<'n>(&mut self, node: &'n Node) -> Vec<Result<&'n str, Expr>> {
        let Some(text) = node.text() else { return Vec::new() };
        let pieces = match pieces::split(text) {
            Ok(pieces) => pieces,
            Err(offset) => {
                self.reader.sink.error_inside(node, offset, 2, "this ${ has no closing }".into());
                return Vec::new();
            }
        };
        let compiled = pieces.into_iter().filter_map(|piece| match piece {
            Piece::Literal(literal) => Some(Ok(literal)),
            Piece::Hole { offset, text } => self.parsed(node, offset, text).map(Err),
        });
        compiled.collect()
    }
}

/// Whether a text is a whole number of JSON that is longer than the numbers of expressions: it is sent with all its digits.
fn is_long(text: &str) -> bool {
    let is_whole = !text.contains(['.', 'e', 'E']);
    is_whole && text.parse::<i64>().is_err() && json::is_number(text.as_bytes())
}

/// Parts as one text. A function takes only so many values, hence the tree.
fn concatenation(mut parts: Vec<expr::Node>) -> expr::Node {
    let Some(concat) = expr::function::find("concat") else { return expr::Node::Missing };
    while parts.len() > concat.arguments_max {
        let grouped = std::mem::take(&mut parts);
        let mut rest = grouped.into_iter();
        loop {
            let group: Vec<_> = rest.by_ref().take(concat.arguments_max).collect();
            if group.is_empty() {
                break;
            }
            parts.push(expr::Node::Call(concat, group.into_boxed_slice()));
        }
    }
    expr::function::fold(concat, parts.into_boxed_slice())
}

/// Whether the author calls the value a path.
fn is_path(expr: &Expr) -> bool {
    matches!(expr.node(), expr::Node::Call(function, _) if function.name == expr::function::PATH)
}

/// A path as the author wrote it; only what cannot stand in a request line is encoded.
fn url_literal(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    Encoding::Path.write_text(bytes, &mut out);
    out
}
