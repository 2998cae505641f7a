//! Texts in which expressions stand among what is text.

use crate::plan::{concat, quoted};
use tidemark_scenario::source::verbatim;

/// Characters that stand for holes: a plane for private use, which no plan has.
const FIRST: u32 = 0xf_0000;
/// Most holes of one text.
pub(crate) const HOLES_MAX: usize = 10_000;

/// What a hole is filled with.
#[derive(Debug, Clone)]
pub(crate) struct Hole {
    /// An expression of the scenario.
    pub(crate) expression: String,
    /// Whether its value has letters, digits and `_-.` only, so that it is the same however it is encoded.
    pub(crate) is_plain: bool,
    /// Whether its value is a text, and never one that JSON has as a number.
    pub(crate) is_text: bool,
    /// What it is where its type counts, if that is another expression.
    pub(crate) as_typed: Option<String>,
}

impl Hole {
    pub(crate) fn new(expression: impl Into<String>, is_plain: bool) -> Hole {
        Hole { expression: expression.into(), is_plain, is_text: false, as_typed: None }
    }

    /// The same, with another expression where its type counts.
    pub(crate) fn with_type(self, expression: String) -> Hole {
        Hole { as_typed: Some(expression), ..self }
    }

    /// Its expression where its type counts.
    pub(crate) fn typed(&self) -> &str {
        self.as_typed.as_deref().unwrap_or(&self.expression)
    }
}

/// A text with holes. Each stands in `marked` as a character of its own, so that the text can be cut.
#[derive(Debug, Clone, Default)]
pub(crate) struct Text {
    pub(crate) marked: String,
    holes: Vec<Hole>,
}

/// Where a text is written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Place {
    /// In a path or a query, where values are encoded.
    Path,
    /// Anywhere else, where values are written as they are.
    Raw,
}

impl Text {
    /// One with the same holes, and nothing in it yet.
    pub(crate) fn without_text(&self) -> Text {
        Text { marked: String::new(), holes: self.holes.clone() }
    }

    pub(crate) fn push(&mut self, text: &str) {
        self.marked.push_str(text);
    }

    pub(crate) fn push_hole(&mut self, hole: Hole) {
        let mark = char::from_u32(FIRST + self.holes.len().min(HOLES_MAX) as u32).unwrap_or('?');
        self.marked.push(mark);
        self.holes.push(hole);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.holes.len() >= HOLES_MAX
    }

    /// What it is, if no hole is in it.
    pub(crate) fn literal(&self) -> Option<&str> {
        self.holes.is_empty().then_some(self.marked.as_str())
    }

    /// The expression of the only hole, if there is nothing else.
    pub(crate) fn only_hole(&self) -> Option<&Hole> {
        let mut chars = self.marked.chars();
        let first = chars.next()?;
        if chars.next().is_some() { None } else { self.hole(first) }
    }

    fn hole(&self, mark: char) -> Option<&Hole> {
        let index = (mark as u32).checked_sub(FIRST)?;
        self.holes.get(index as usize)
    }

    /// Whether a part has no hole.
    pub(crate) fn is_text(&self, part: &str) -> bool {
        part.chars().all(|c| self.hole(c).is_none())
    }

    /// Whether all holes of a part have values that are the same however they are encoded.
    pub(crate) fn is_plain(&self, part: &str) -> bool {
        part.chars().filter_map(|c| self.hole(c)).all(|hole| hole.is_plain)
    }

    /// As a text of the scenario.
    pub(crate) fn write(&self, place: Place) -> String {
        self.write_part(&self.marked, place)
    }

    /// The same of a part of `marked`.
    pub(crate) fn write_part(&self, part: &str, place: Place) -> String {
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
    pub(crate) fn expression(&self) -> String {
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
            parts => concat(parts),
        }
    }
}

impl Text {
    /// A text in which each `{{ name }}` is what `resolve` gives, or itself where that is nothing.
    pub(crate) fn of_braces(text: &str, resolve: &mut dyn FnMut(&str) -> Option<Hole>) -> Text {
        let mut out = Text::default();
        let mut rest = text;
        while let Some((before, behind)) = rest.split_once("{{")
            && let Some((name, behind)) = behind.split_once("}}")
            && !out.is_full()
        {
            // the innermost counts
            let (more, name) = name
                .rsplit_once("{{")
                .map_or((String::new(), name), |(more, name)| (format!("{{{{{more}"), name));
            out.push(before);
            out.push(&more);
            match resolve(name.trim()) {
                Some(hole) => out.push_hole(hole),
                None => out.push(&format!("{{{{{name}}}}}")),
            }
            rest = behind;
        }
        out.push(rest);
        out
    }

    /// The text with what each hole stands for in its place.
    pub(crate) fn written_out(&self) -> String {
        let mut out = String::new();
        for c in self.marked.chars() {
            match self.hole(c) {
                Some(hole) => out += &hole.expression,
                None => out.push(c),
            }
        }
        out
    }

    /// The hole that a character stands for.
    pub(crate) fn hole_of(&self, mark: char) -> Option<&Hole> {
        self.hole(mark)
    }

    /// The same as a path with its query: percent-encoded is what browsers encode there; holes stay.
    pub(crate) fn url_encoded(mut self) -> Text {
        let mut out = String::new();
        let mut encoded = "\"<>`{}";
        for c in self.marked.chars() {
            if c == '?' {
                encoded = "\"<>'";
            }
            if self.hole(c).is_some() || c.is_ascii_graphic() && !encoded.contains(c) {
                out.push(c);
            } else {
                out += &crate::percent::encoded(c.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
        self.marked = out;
        self
    }
}

/// Whether a text has characters that stand for holes.
pub(crate) fn has_marks(text: &str) -> bool {
    text.chars().any(|c| (FIRST..=0xf_ffff).contains(&(c as u32)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_but_holes_becomes_a_hole() {
        let mut text = Text::default();
        text.push("${a} $");
        text.push_hole(Hole::new("b", false));
        text.push("'\\");
        assert_eq!(text.write(Place::Raw), "$${a} ${'$'}${b}'\\");
        assert_eq!(text.write(Place::Path), "$${a} ${'$'}${path(b)}'\\");
        assert_eq!(text.expression(), "concat('${a} $', b, '\\'\\\\')");
        assert!(text.literal().is_none() && text.only_hole().is_none());
    }
}
