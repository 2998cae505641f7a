//! Plain values, lists and ordered mappings: what a scenario file is made of.

use super::write;
use crate::diagnostic::Diagnostics;
use crate::expr;
use crate::settings::literal;
use crate::sink::Sink;
use crate::units::{Rate, Share, Size, Time};
use crate::yaml::{self, Content, Node};

/// A plain value as it is written: a text, or a number, a truth value or nothing.
///
/// The language tells `"10"` from `10` only where a type matters (in JSON, in settings and `set`); a text keeps its
/// quotes then, whatever it looks like.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Scalar {
    text: String,
    /// A number, `true`, `false` or `null`, which stands without quotes.
    bare: bool,
}

impl Scalar {
    /// What the language has for nothing at all.
    pub fn null() -> Scalar {
        Scalar { text: "null".into(), bare: true }
    }

    /// What a text is where it stands without quotes: `2` is a number, `2s` is a text.
    pub fn unquoted(text: &str) -> Scalar {
        Scalar::read(text, true)
    }

    /// Its text, without quotes.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it is a number, a truth value or nothing, and no text.
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    /// Whether it is nothing at all.
    pub fn is_null(&self) -> bool {
        self.bare && self.text == "null"
    }

    /// What stands in a file; `plain` if without quotes.
    pub(super) fn read(text: &str, plain: bool) -> Scalar {
        match literal(text, plain) {
            expr::Node::Text(_) => text.into(),
            expr::Node::Missing => Scalar::null(),
            _ => Scalar { text: text.into(), bare: true },
        }
    }
}

impl From<&str> for Scalar {
    fn from(text: &str) -> Scalar {
        text.to_owned().into()
    }
}

impl From<String> for Scalar {
    fn from(text: String) -> Scalar {
        Scalar { text, bare: false }
    }
}

impl From<&String> for Scalar {
    fn from(text: &String) -> Scalar {
        text.as_str().into()
    }
}

macro_rules! bare {
    ($($type:ty),*) => {$(
        impl From<$type> for Scalar {
            fn from(value: $type) -> Scalar {
                Scalar { text: value.to_string(), bare: true }
            }
        }
    )*};
}

bare!(bool, u16, u32, u64, usize, i32, i64);

impl From<Time> for Scalar {
    /// `1m30s`, or so many seconds where only these say it exactly.
    fn from(time: Time) -> Scalar {
        let exact = |text: &String| crate::units::parse_duration(text) == Ok(time.0);
        let shown = Some(time.to_string()).filter(exact);
        shown.unwrap_or_else(|| format!("{}s", time.0.as_secs_f64())).into()
    }
}

impl From<Rate> for Scalar {
    /// `20k/s`, or for each minute or hour where that is a whole number, or with as many digits as it takes.
    fn from(rate: Rate) -> Scalar {
        let exact = |text: &String| crate::units::parse_rate(text) == Ok(rate.0);
        let per = |seconds: f64, unit: &str| format!("{}/{unit}", rate.0 * seconds);
        let shorter = [rate.to_string(), per(1.0, "s"), per(60.0, "min"), per(3_600.0, "h")];
        const DIGITS: usize = 12;
        let short = |text: &String| text.len() <= DIGITS && exact(text);
        shorter.into_iter().find(short).unwrap_or_else(|| format!("{}/s", rate.0)).into()
    }
}

impl From<Size> for Scalar {
    /// `16MiB`, or so many bytes where only these say it exactly.
    fn from(size: Size) -> Scalar {
        let exact = |text: &String| crate::units::parse_size(text) == Ok(size.0);
        Some(size.to_string()).filter(exact).unwrap_or_else(|| format!("{}B", size.0)).into()
    }
}

impl From<Share> for Scalar {
    /// `25%`, with as many digits as it takes.
    fn from(share: Share) -> Scalar {
        let exact = |text: &String| crate::units::parse_share(text) == Ok(share.0);
        Some(share.to_string()).filter(exact).unwrap_or_else(|| format!("{}%", share.0 * 100.0)).into()
    }
}

/// Anything that can stand in a scenario.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A plain value.
    Scalar(Scalar),
    /// A list.
    List(Vec<Value>),
    /// A mapping.
    Map(Map),
}

impl Default for Value {
    /// Nothing at all.
    fn default() -> Value {
        Value::Scalar(Scalar::null())
    }
}

impl Value {
    /// The text of a plain value.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Scalar(scalar) => Some(scalar.as_str()),
            _ => None,
        }
    }

    /// Reads any YAML, which JSON is, too, within the bounds of a scenario; `name` is what messages call it.
    ///
    /// # Errors
    /// Where the text is no YAML, or too much, with line and column.
    pub fn from_yaml(name: &str, text: &str) -> Result<Value, Diagnostics> {
        let sink = Sink::new(name, text);
        match yaml::read(&sink).filter(|_| !sink.has_errors()) {
            Some(root) => Ok(Value::read(&root)),
            None => Err(sink.into_diagnostics()),
        }
    }

    /// Aliases are written out, and what is said about a key twice was told by the reader.
    pub(super) fn read(node: &Node) -> Value {
        match &node.content {
            Content::Scalar { text, plain } => Value::Scalar(Scalar::read(text, *plain)),
            Content::List(items) => Value::List(items.iter().map(Value::read).collect()),
            Content::Map(entries) => Value::Map(Map::read(entries)),
        }
    }
}

impl<T: Into<Scalar>> From<T> for Value {
    fn from(scalar: T) -> Value {
        Value::Scalar(scalar.into())
    }
}

impl From<Map> for Value {
    fn from(map: Map) -> Value {
        Value::Map(map)
    }
}

impl From<Vec<Value>> for Value {
    fn from(items: Vec<Value>) -> Value {
        Value::List(items)
    }
}

/// A mapping that keeps its order; a key stands in it once.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Map {
    entries: Vec<Entry>,
}

/// A key of a mapping and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Lines for a person, written above it; a file's are not read.
    pub comment: String,
    /// The key.
    pub key: String,
    /// Its value.
    pub value: Value,
}

impl Map {
    /// An empty one.
    pub fn new() -> Map {
        Map::default()
    }

    /// A file of it, as a person would have written it.
    pub fn to_yaml(&self) -> String {
        write::document("", self)
    }

    /// Puts a key at the end, or another value in its place.
    pub fn insert(&mut self, key: impl Into<String>, value: impl Into<Value>) {
        self.put(Entry { comment: String::new(), key: key.into(), value: value.into() });
    }

    /// The same with a comment above it.
    pub fn insert_with_comment(
        &mut self,
        comment: impl Into<String>,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) {
        self.put(Entry { comment: comment.into(), key: key.into(), value: value.into() });
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// Takes a key out.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at).value)
    }

    /// Its keys and values, in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The number of its keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether it has no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(super) fn put(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|known| known.key == entry.key) {
            Some(known) => *known = entry,
            None => self.entries.push(entry),
        }
    }

    /// Of entries whose keys differ.
    pub(super) fn of(entries: Vec<Entry>) -> Map {
        Map { entries }
    }

    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    fn read(entries: &[(Node, Node)]) -> Map {
        let entry = |(key, value): &(Node, Node)| Entry {
            comment: String::new(),
            key: key.text().unwrap_or_default().to_owned(),
            value: Value::read(value),
        };
        Map { entries: entries.iter().map(entry).collect() }
    }
}

impl<K: Into<String>, V: Into<Value>> FromIterator<(K, V)> for Map {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Map {
        let mut map = Map::new();
        entries.into_iter().for_each(|(key, value)| map.insert(key, value));
        map
    }
}

impl<K: Into<String>, V: Into<Value>, const N: usize> From<[(K, V); N]> for Map {
    fn from(entries: [(K, V); N]) -> Map {
        entries.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn quantities_are_written_exactly() {
        let time = |text: &str| Scalar::from(Time(crate::units::parse_duration(text).unwrap()));
        for (text, written) in
            [("10s", "10s"), ("90s", "1m30s"), ("3605s", "3605s"), ("90.5s", "90.5s"), ("1.2345s", "1.2345s")]
        {
            assert_eq!(time(text).as_str(), written);
        }
        assert_eq!(Scalar::from(Time(Duration::from_nanos(1_000_000_500))).as_str(), "1.0000005s");
        let rate = |text: &str| Scalar::from(Rate(crate::units::parse_rate(text).unwrap()));
        for (text, written) in [
            ("1000/s", "1000/s"),
            ("20k/s", "20k/s"),
            ("1234567/s", "1234567/s"),
            ("20/min", "20/min"),
            ("5/h", "5/h"),
            ("0.3333/s", "0.3333/s"),
        ] {
            assert_eq!(rate(text).as_str(), written);
        }
        assert_eq!(Scalar::from(Size((1 << 20) + 1)).as_str(), "1048577B");
        assert_eq!(Scalar::from(Share(0.123_456)).as_str(), "12.3456%");
    }

    #[test]
    fn a_key_stands_in_a_mapping_once() {
        let mut map = Map::from([("a", 1u64), ("b", 2)]);
        map.insert("a", "x");
        assert_eq!((map.len(), map.get("a")), (2, Some(&Value::from("x"))));
        assert_eq!(map.remove("a"), Some(Value::from("x")));
        assert!(map.get("a").is_none() && !map.is_empty());
    }

    #[test]
    fn only_what_the_language_takes_for_no_text_is_none() {
        for (text, bare) in [
            ("1", true),
            ("-2", true),
            ("1e3", true),
            ("true", true),
            ("~", true),
            ("", true),
            ("007", false),
            ("0x1f", false),
            ("1_000", false),
            ("yes", false),
            ("+5", false),
            (".5", false),
            ("10s", false),
        ] {
            assert_eq!(Scalar::unquoted(text).is_bare(), bare, "{text}");
            assert!(!Scalar::read(text, false).is_bare(), "{text}");
        }
    }
}
