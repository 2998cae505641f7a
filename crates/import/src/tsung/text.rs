//! Texts of a plan in which `%%_name%%` stands for a variable, and `%%module:function%%` for what a function gives.

use crate::plan::quoted;
use tidemark_scenario::source::verbatim;

/// Characters that stand for holes: a plane for private use, which no plan has.
const FIRST: u32 = 0xf_0000;
/// Most holes of one text.
pub(super) const HOLES_MAX: usize = 10_000;

/// What a hole is filled with.
#[derive(Debug, Clone)]
pub(super) struct Hole {
    /// An expression of the scenario.
    pub(super) expression: String,
    /// Whether its value has letters, digits and `_-.` only, so that it is the same however it is encoded.
    pub(super) is_plain: bool,
}

/// A text with holes. Each stands in `marked` as a character of its own, so that the text can be cut.
#[derive(Debug, Clone, Default)]
pub(super) struct Text {
    pub(super) marked: String,
    holes: Vec<Hole>,
}

/// Where a text is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Place {
    /// In a path or a query, where values are encoded.
    Path,
    /// Anywhere else, where values are written as they are.
    Raw,
}

impl Text {
    /// One with the same holes, and nothing in it yet.
    pub(super) fn without_text(&self) -> Text {
        Text { marked: String::new(), holes: self.holes.clone() }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.marked.push_str(text);
    }

    pub(super) fn push_hole(&mut self, hole: Hole) {
        let mark = char::from_u32(FIRST + self.holes.len().min(HOLES_MAX) as u32).unwrap_or('?');
        self.marked.push(mark);
        self.holes.push(hole);
    }

    pub(super) fn is_full(&self) -> bool {
        self.holes.len() >= HOLES_MAX
    }

    /// What it is, if no hole is in it.
    pub(super) fn literal(&self) -> Option<&str> {
        self.holes.is_empty().then_some(self.marked.as_str())
    }

    /// The expression of the only hole, if there is nothing else.
    pub(super) fn only_hole(&self) -> Option<&Hole> {
        let mut chars = self.marked.chars();
        let first = chars.next()?;
        if chars.next().is_some() { None } else { self.hole(first) }
    }

    fn hole(&self, mark: char) -> Option<&Hole> {
        let index = (mark as u32).checked_sub(FIRST)?;
        self.holes.get(index as usize)
    }

    /// Whether a part has no hole.
    pub(super) fn is_text(&self, part: &str) -> bool {
        part.chars().all(|c| self.hole(c).is_none())
    }

    /// Whether all holes of a part have values that are the same however they are encoded.
    pub(super) fn is_plain(&self, part: &str) -> bool {
        part.chars().filter_map(|c| self.hole(c)).all(|hole| hole.is_plain)
    }

    /// As a text of the scenario.
    pub(super) fn write(&self, place: Place) -> String {
        self.write_part(&self.marked, place)
    }

    /// The same of a part of `marked`.
    pub(super) fn write_part(&self, part: &str, place: Place) -> String {
        let mut out = String::new();
        let mut plain = String::new();
        for c in part.chars() {
            let Some(hole) = self.hole(c) else {
                plain.push(c);
                continue;
            };
            // a `$` in front would make the hole a text
            let dollar = plain.ends_with('$');
            plain.truncate(plain.len() - usize::from(dollar));
            out += &verbatim(&plain);
            plain.clear();
            if dollar {
                out += "${'$'}";
            }
            out += &match place {
                Place::Path if !hole.is_plain => format!("${{path({})}}", hole.expression),
                _ => format!("${{{}}}", hole.expression),
            };
        }
        out + &verbatim(&plain)
    }

    /// As an expression.
    pub(super) fn expression(&self) -> String {
        let mut parts = Vec::new();
        let mut plain = String::new();
        for c in self.marked.chars() {
            match self.hole(c) {
                None => plain.push(c),
                Some(hole) => {
                    if !plain.is_empty() {
                        parts.push(quoted(&std::mem::take(&mut plain)));
                    }
                    parts.push(hole.expression.clone());
                }
            }
        }
        if !plain.is_empty() {
            parts.push(quoted(&plain));
        }
        match parts.as_slice() {
            [] => "''".into(),
            [one] => one.clone(),
            _ => format!("concat({})", parts.join(", ")),
        }
    }
}

/// Whether a text has characters that stand for holes.
pub(super) fn has_marks(text: &str) -> bool {
    text.chars().any(|c| (FIRST..=0xf_ffff).contains(&(c as u32)))
}

/// A part of a text with marks.
#[derive(Debug, PartialEq)]
pub(super) enum Piece<'t> {
    Text(&'t str),
    Variable(&'t str),
    /// A module and its function.
    Function(&'t str, &'t str),
    /// What begins as a mark and does not end: Tsung drops it and what follows.
    Open(&'t str),
}

/// The parts of a text whose marks are replaced.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find("%%") {
        let (before, mark) = rest.split_at(at);
        if !before.is_empty() {
            pieces.push(Piece::Text(before));
        }
        let inner = &mark[2..];
        let variable = inner.strip_prefix('_').and_then(|inner| inner.split_once("%%"));
        let function = || {
            let (module, behind) = inner.split_once(':')?;
            let (function, behind) = behind.split_once("%%")?;
            Some((Piece::Function(module, function), behind))
        };
        match variable.map(|(name, behind)| (Piece::Variable(name), behind)).or_else(function) {
            Some((piece, behind)) if !(inner.starts_with('_') && variable.is_none()) => {
                pieces.push(piece);
                rest = behind;
            }
            _ => {
                pieces.push(Piece::Open(mark));
                return pieces;
            }
        }
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_found_as_tsung_finds_them() {
        assert_eq!(
            pieces("a%%_b%%c%%m:f%%%%_d%%"),
            [
                Piece::Text("a"),
                Piece::Variable("b"),
                Piece::Text("c"),
                Piece::Function("m", "f"),
                Piece::Variable("d")
            ]
        );
        assert_eq!(pieces("100% of"), [Piece::Text("100% of")]);
        for open in ["%%_a", "%%a", "%%m:f", "%%_a:b"] {
            assert_eq!(pieces(open), [Piece::Open(open)]);
        }
    }

    #[test]
    fn nothing_but_holes_becomes_a_hole() {
        let mut text = Text::default();
        text.push("${a} $");
        text.push_hole(Hole { expression: "b".into(), is_plain: false });
        text.push("'\\");
        assert_eq!(text.write(Place::Raw), "$${a} ${'$'}${b}'\\");
        assert_eq!(text.write(Place::Path), "$${a} ${'$'}${path(b)}'\\");
        assert_eq!(text.expression(), "concat('${a} $', b, '\\'\\\\')");
        assert!(text.literal().is_none() && text.only_hole().is_none());
    }
}
