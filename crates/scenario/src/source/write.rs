//! A tree as YAML, laid out as people do: sections and steps in blocks, what is short in a line.

use super::scalar::{self, Context};
use super::value::{Entry, Map, Scalar, Value};

/// Longest line with a list or a mapping in it, characters.
const LINE_MAX: usize = 120;
/// Most values of a mapping in a line; a list of plain values counts as one.
const VALUES_MAX: usize = 6;
/// Most of them that stand in quotes only because they are in a line.
const QUOTED_MAX: usize = 2;
/// Deepest nesting in a line.
const DEPTH_MAX: usize = 3;
/// Longest key with its colon on the same line, bytes: YAML takes 1024 characters, with quotes and escapes.
const KEY_MAX: usize = 100;
/// Keys whose values are lists of steps, or of what has steps.
const STEPS: [&str; 5] = ["steps", "else", "prepare", "choose", "parallel"];
/// What a level is indented by.
const INDENT: usize = 2;

/// A whole file, with a comment at its top.
pub(super) fn document(comment: &str, root: &Map) -> String {
    let mut top = Writer::default();
    top.comment(comment, 0);
    let mut out = top.out;
    if root.is_empty() {
        out.push_str("{}\n");
    }
    // an empty line stands around sections of several lines, where it is no part of the text before it
    let (mut was_tall, mut keeps) = (false, false);
    for (index, entry) in root.entries().iter().enumerate() {
        let mut section = Writer::default();
        section.comment(&entry.comment, 0);
        section.entry(entry, 0, Form::Block);
        let is_tall = section.out.trim_end().contains('\n');
        if index > 0 && (is_tall || was_tall) && !keeps {
            out.push('\n');
        }
        out.push_str(&section.out);
        (was_tall, keeps) = (is_tall, section.keeps);
    }
    out
}

/// How a list or a mapping is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// In a line if it is short.
    Auto,
    /// In a block.
    Block,
    /// In a block of blocks.
    Steps,
}

impl Form {
    fn of(key: &str, usual: Form) -> Form {
        if STEPS.contains(&key) { Form::Steps } else { usual }
    }

    fn of_items(self) -> Form {
        if self == Form::Steps { Form::Block } else { Form::Auto }
    }
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Whether the text written last keeps all line ends behind it, so that no empty line may follow.
    keeps: bool,
}

impl Writer {
    fn comment(&mut self, comment: &str, indent: usize) {
        for line in comment.lines() {
            let line: String = line.chars().map(|c| if scalar::is_visible(c) { c } else { ' ' }).collect();
            self.indent(indent);
            self.out.push_str(format!("# {line}").trim_end());
            self.out.push('\n');
        }
    }

    fn indent(&mut self, indent: usize) {
        self.out.extend(std::iter::repeat_n(' ', indent));
    }

    /// The keys of a mapping; the first stands on the line that has begun, if one has.
    fn map(&mut self, map: &Map, indent: usize, mut has_begun: bool) {
        for entry in map.entries() {
            if !std::mem::take(&mut has_begun) {
                self.comment(&entry.comment, indent);
                self.indent(indent);
            }
            self.entry(entry, indent, Form::Auto);
        }
    }

    fn entry(&mut self, entry: &Entry, indent: usize, usual: Form) {
        let key = scalar::text(&entry.key, Context::Block);
        if key.len() > KEY_MAX {
            self.out.push_str("? ");
            self.out.push_str(&key);
            self.out.push('\n');
            self.indent(indent);
        } else {
            self.out.push_str(&key);
        }
        self.out.push(':');
        let form = Form::of(&entry.key, usual);
        let line = self.in_line(&entry.value, form);
        self.value(&entry.value, line, indent, form, false);
    }

    /// A value behind its key or its mark: in this line where it has one, else in those below. What is in a list begins on the
    /// line of its mark.
    fn value(&mut self, value: &Value, line: Option<String>, indent: usize, form: Form, is_item: bool) {
        if let Some(line) = line {
            return self.end_line(&format!(" {line}"));
        }
        match value {
            Value::Scalar(_) => {}
            _ if is_item => self.out.push(' '),
            _ => self.end_line(""),
        }
        match value {
            Value::Scalar(scalar) => self.block_text(scalar, indent),
            Value::List(items) => self.list(items, indent + INDENT, form.of_items(), is_item),
            Value::Map(map) => self.map(map, indent + INDENT, is_item),
        }
    }

    /// The items of a list; the first stands on the line that has begun, if one has.
    fn list(&mut self, items: &[Value], indent: usize, form: Form, mut has_begun: bool) {
        for item in items {
            let line = self.in_line(item, form);
            if !std::mem::take(&mut has_begun) {
                if let Value::Map(map) = item {
                    map.entries().iter().take(1).for_each(|first| self.comment(&first.comment, indent));
                }
                self.indent(indent);
            }
            self.out.push('-');
            self.value(item, line, indent, form, true);
        }
    }

    fn end_line(&mut self, rest: &str) {
        self.out.push_str(rest);
        self.out.push('\n');
        self.keeps = false;
    }

    /// A text of several lines, each on its own, below a key or item that is indented so much.
    fn block_text(&mut self, scalar: &Scalar, indent: usize) {
        let text = scalar.as_str();
        let ends = text.len() - text.trim_end_matches('\n').len();
        self.out.push_str(" |");
        if text.starts_with([' ', '\n']) {
            self.out.push_str(&INDENT.to_string());
        }
        let (mark, rest) = match ends {
            0 => ("-", text),
            1 => ("", &text[..text.len() - 1]),
            _ => ("+", &text[..text.len() - 1]),
        };
        self.end_line(mark);
        for line in rest.split('\n') {
            if !line.is_empty() {
                self.indent(indent + INDENT);
            }
            self.end_line(line);
        }
        self.keeps = ends > 1;
    }

    /// A value as the rest of the line, where that is how a person writes it.
    fn in_line(&self, value: &Value, form: Form) -> Option<String> {
        let column = self.out.len() - self.out.rfind('\n').map_or(0, |at| at + 1);
        match value {
            Value::Scalar(scalar) if !scalar.is_bare() && scalar::is_block(scalar.as_str()) => None,
            Value::Scalar(scalar) => Some(scalar::written(scalar, Context::Block)),
            Value::List(items) if items.is_empty() => Some("[]".into()),
            Value::Map(map) if map.is_empty() => Some("{}".into()),
            _ if form != Form::Auto => None,
            _ => {
                let mut line =
                    Line { out: String::new(), room: LINE_MAX.saturating_sub(column), values: 0, quoted: 0 };
                line.value(value, 0).map(|()| line.out)
            }
        }
    }
}

/// A value that is tried to be written in the rest of a line.
struct Line {
    out: String,
    room: usize,
    values: usize,
    quoted: usize,
}

impl Line {
    /// Nothing where it becomes too long or too dense.
    fn value(&mut self, value: &Value, depth: usize) -> Option<()> {
        match value {
            Value::Scalar(scalar) => self.scalar(scalar),
            _ if depth == DEPTH_MAX => None,
            Value::List(items) => self.list(items, depth),
            Value::Map(map) => self.map(map, depth),
        }
    }

    fn push(&mut self, text: &str) -> Option<()> {
        self.out.push_str(text);
        (self.out.len() <= self.room).then_some(())
    }

    fn scalar(&mut self, scalar: &Scalar) -> Option<()> {
        if scalar.as_str().contains('\n') || scalar.as_str().len() > self.room {
            return None;
        }
        let text = scalar::written(scalar, Context::Flow);
        self.quoted += usize::from(text != scalar::written(scalar, Context::Block));
        self.push(&text)
    }

    fn list(&mut self, items: &[Value], depth: usize) -> Option<()> {
        let is_plain = items.iter().all(|item| matches!(item, Value::Scalar(_)));
        if !is_plain && items.len() > 1 {
            return None;
        }
        let before = self.values;
        self.push("[")?;
        for (index, item) in items.iter().enumerate() {
            self.push(if index > 0 { ", " } else { "" })?;
            self.value(item, depth + 1)?;
        }
        self.push("]")?;
        if is_plain {
            self.values = before + 1;
        }
        Some(())
    }

    fn map(&mut self, map: &Map, depth: usize) -> Option<()> {
        let is_map = |entry: &&Entry| matches!(entry.value, Value::Map(_));
        let is_steps =
            |entry: &Entry| STEPS.contains(&entry.key.as_str()) && matches!(entry.value, Value::List(_));
        if map.entries().iter().filter(is_map).count() > 1 || map.entries().iter().any(is_steps) {
            return None;
        }
        self.push("{")?;
        for (index, entry) in map.entries().iter().enumerate() {
            if !entry.comment.is_empty() {
                return None;
            }
            self.push(if index > 0 { ", " } else { "" })?;
            self.push(&scalar::text(&entry.key, Context::Flow))?;
            self.push(": ")?;
            self.values += usize::from(matches!(entry.value, Value::Scalar(_)));
            self.value(&entry.value, depth + 1)?;
            if self.values > VALUES_MAX || self.quoted > QUOTED_MAX {
                return None;
            }
        }
        self.push("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(entries: impl IntoIterator<Item = (&'static str, Value)>) -> String {
        document("", &entries.into_iter().collect())
    }

    #[test]
    fn what_is_short_stands_in_a_line() {
        let map = |entries: &[(&str, &str)]| -> Value { entries.iter().copied().collect::<Map>().into() };
        let list = |items: &[&str]| -> Value {
            items.iter().map(|item| Value::from(*item)).collect::<Vec<_>>().into()
        };
        let section = Map::from([
            ("form", map(&[("login", "${user}"), ("password", "x")])),
            ("quoted", map(&[("a", "${a}"), ("b", "${b}"), ("c", "${c}")])),
            ("rows", vec![map(&[("a", "b")]), map(&[("a", "c")])].into()),
            ("words", list(&["a", "b"])),
            ("long", list(&["word"; 30])),
            ("none", Value::List(Vec::new())),
        ]);
        let text = written([("section", section.into())]);
        let long = "    - word\n".repeat(30);
        let wanted = format!(
            "section:\n  form: {{login: \"${{user}}\", password: x}}\n  quoted:\n    a: ${{a}}\n    b: ${{b}}\n    c: ${{c}}\n  \
             rows:\n    - {{a: b}}\n    - {{a: c}}\n  words: [a, b]\n  long:\n{long}  none: []\n"
        );
        assert_eq!(text, wanted);
    }

    #[test]
    fn texts_of_several_lines_are_blocks() {
        let text = written([
            ("one", "a\nb".into()),
            ("two", "a\n\n b \n".into()),
            ("more", "a\nb\n\n".into()),
            ("later", " a\nb\n".into()),
            ("tab", "a\n\tb".into()),
            ("blank", "\n\n".into()),
        ]);
        let wanted = "one: |-\n  a\n  b\n\ntwo: |\n  a\n\n   b \n\nmore: |+\n  a\n  b\n\nlater: |2\n   a\n  b\n\n\
                      tab: \"a\\n\\tb\"\nblank: \"\\n\\n\"\n";
        assert_eq!(text, wanted);
    }

    #[test]
    fn comments_stand_above() {
        let mut step = Map::new();
        step.insert_with_comment("first\n\nsecond", "GET", "/");
        let mut settings = Map::new();
        settings.insert_with_comment("how many\u{2028}x: y", "users", 5u64);
        let root = Map::from([("settings", Value::from(settings)), ("steps", vec![step.into()].into())]);
        let wanted = "# top\nsettings:\n  # how many x: y\n  users: 5\n\nsteps:\n  # first\n  #\n  # second\n  - GET: /\n";
        assert_eq!(document("top", &root), wanted);
    }
}
