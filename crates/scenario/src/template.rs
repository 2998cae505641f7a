//! Text with holes, compiled: only what varies is written at run time.

use std::ops::Range;

use crate::context::Context;
pub use crate::encoding::Encoding;
use crate::expr::{Expr, Unmet};

/// Longest text that is made of a template with holes, bytes.
const TEXT_BYTES_MAX: usize = 64 << 20;

/// A piece of a template.
#[derive(Debug, Clone)]
pub enum Part {
    /// Bytes written as they are.
    Literal(Box<[u8]>),
    /// A value, encoded.
    Hole(Expr, Encoding),
}

/// Text with holes.
#[derive(Debug, Clone, Default)]
pub struct Template {
    /// In order.
    pub parts: Vec<Part>,
}

impl Template {
    /// A template without holes.
    pub fn literal(bytes: impl Into<Vec<u8>>) -> Self {
        Template { parts: vec![Part::Literal(bytes.into().into_boxed_slice())] }
    }

    /// The bytes, if it has no holes.
    pub fn as_literal(&self) -> Option<&[u8]> {
        match self.parts.as_slice() {
            [] => Some(b""),
            [Part::Literal(bytes)] => Some(bytes),
            _ => None,
        }
    }

    /// How many bytes it has, where that is the same each time it is written and known before.
    pub fn fixed_bytes(&self) -> Option<usize> {
        let bytes = |part: &Part| match part {
            Part::Literal(bytes) => Some(bytes.len()),
            Part::Hole(expr, encoding) => expr.as_drawn(*encoding).map(|drawn| drawn.width),
        };
        self.parts.iter().map(bytes).sum()
    }

    /// Whether it may be another each time it is written, though no variable is changed.
    pub(crate) fn varies(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::Hole(expr, _) if expr.node().varies()))
    }

    /// Appends bytes that are written as they are.
    pub fn push_literal(&mut self, bytes: &[u8]) {
        if let Some(Part::Literal(last)) = self.parts.last_mut() {
            let mut joined = std::mem::take(last).into_vec();
            joined.extend_from_slice(bytes);
            *last = joined.into_boxed_slice();
        } else if !bytes.is_empty() {
            self.parts.push(Part::Literal(bytes.into()));
        }
    }

    /// Appends a value; a constant becomes bytes at once.
    pub fn push_hole(&mut self, expr: Expr, encoding: Encoding) {
        match expr.as_constant() {
            Some(value) => {
                let mut bytes = Vec::new();
                encoding.write_value(value, &mut bytes);
                self.push_literal(&bytes);
            }
            None => self.parts.push(Part::Hole(expr, encoding)),
        }
    }

    /// Appends another template's parts.
    pub fn append(&mut self, other: Template) {
        for part in other.parts {
            match part {
                Part::Literal(bytes) => self.push_literal(&bytes),
                Part::Hole(expr, encoding) => self.push_hole(expr, encoding),
            }
        }
    }

    /// Appends the text to `out`.
    ///
    /// # Errors
    /// The first hole without a value; then nothing is appended.
    #[inline]
    pub fn render(&self, cx: &mut Context<'_>, out: &mut Vec<u8>) -> Result<(), Unmet> {
        self.render_telling(cx, out, |_| ())
    }

    /// The same; tells of each hole where its value stands in `out`.
    ///
    /// # Errors
    /// As of [`render`](Template::render).
    #[inline]
    pub fn render_telling(
        &self,
        cx: &mut Context<'_>,
        out: &mut Vec<u8>,
        mut tell: impl FnMut(Range<usize>),
    ) -> Result<(), Unmet> {
        let begin = out.len();
        for part in &self.parts {
            match part {
                Part::Literal(bytes) => out.extend_from_slice(bytes),
                Part::Hole(expr, encoding) => {
                    let hole = out.len();
                    if let Err(unmet) = expr.write_encoded(cx, *encoding, out) {
                        out.truncate(begin);
                        return Err(unmet);
                    }
                    if out.len() - begin > TEXT_BYTES_MAX {
                        out.truncate(begin);
                        let reason = "with it the text is longer than 64 MiB";
                        return Err(Unmet::Expression { text: expr.source().clone(), reason });
                    }
                    tell(hole..out.len());
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Shared;
    use crate::expr::Node;
    use crate::slot::Slot;

    #[test]
    fn bytes_are_fixed_where_every_value_has_as_many() {
        let shared = Shared::default();
        let mut random = fastrand::Rng::with_seed(1);
        for (expr, encoding, bytes) in [
            ("pad(random(0, 999), 3)", Encoding::Raw, Some(5)),
            ("pad(random(0, 999), 3)", Encoding::Url, Some(5)),
            ("pad(random(0, 0), 4)", Encoding::Raw, Some(6)),
            ("pad(random(0, 1000), 3)", Encoding::Raw, None),
            ("pad(random(-1, 9), 3)", Encoding::Raw, None),
            ("random(100, 999)", Encoding::Raw, None),
            ("pad(random(0, 999), 3)", Encoding::JsonValue, None),
            ("pad(zipf(999), 3)", Encoding::Raw, None),
        ] {
            let mut template = Template::default();
            template.push_literal(b"k:");
            template.push_hole(Expr::parse_constant(expr).unwrap(), encoding);
            assert_eq!(template.fixed_bytes(), bytes, "{expr}");
            let mut cx = Context { slots: &[], shared: &shared, random: &mut random, epoch_ms: 0 };
            for _ in 0..if bytes.is_some() { 100 } else { 0 } {
                let mut out = Vec::new();
                template.render(&mut cx, &mut out).unwrap();
                assert_eq!(Some(out.len()), bytes, "{expr}");
            }
        }
    }

    #[test]
    fn texts_are_made_up_to_a_bound() {
        let mut slot = Slot::default();
        slot.set_text(&vec![b'x'; 13 << 20]);
        let (shared, slots) = (Shared::default(), [slot]);
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
        let of = |holes: usize| {
            let mut template = Template::default();
            (0..holes).for_each(|_| template.push_hole(Expr::variable(0), Encoding::Raw));
            template
        };
        let mut out = b"before".to_vec();
        of(4).render(&mut cx, &mut out).unwrap();
        assert_eq!(out.len(), (52 << 20) + 6);
        out.truncate(6);
        let unmet = of(5).render(&mut cx, &mut out).unwrap_err().describe(&[]);
        assert!(unmet.contains("longer than 64 MiB") && out == b"before", "{unmet}");
        // what a variable is set to, whichever function makes it
        let mut expr = Template::default();
        let call = |name: &str, arguments: Vec<Node>| {
            Node::Call(crate::expr::function::find(name).unwrap(), arguments.into())
        };
        let two = || call("concat", vec![Node::Variable(0); 2]);
        let three = call("concat", vec![Node::Variable(0); 3]);
        for node in [three, call("base64", vec![two()]), call("concat", vec![two(), two()])] {
            expr.parts = vec![Part::Hole(Expr::new(node), Encoding::Raw)];
            let unmet = expr.render(&mut cx, &mut out).unwrap_err().describe(&[]);
            assert!(unmet.contains("it is longer than 32 MiB"), "{unmet}");
        }
    }

    #[test]
    fn literals_join_and_constants_are_written_beforehand() {
        let mut template = Template::default();
        template.push_literal(b"a=");
        template.push_hole(Expr::text("b c"), Encoding::Form);
        template.push_literal(b"&d=");
        template.push_hole(Expr::variable(0), Encoding::Form);
        assert_eq!(template.parts.len(), 2);
        let mut slot = Slot::default();
        slot.set_text(b"x/y");
        let shared = Shared::default();
        let mut random = fastrand::Rng::with_seed(1);
        let mut cx = Context { slots: &[slot], shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = Vec::new();
        template.render(&mut cx, &mut out).unwrap();
        assert_eq!(out, b"a=b+c&d=x%2Fy");
    }
}
