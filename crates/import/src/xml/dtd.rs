//! Entities that a document declares itself.

use std::collections::HashMap;

/// What an entity stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entity {
    Text(String),
    /// The name of a file.
    File(String),
}

/// What stands in `<!DOCTYPE …>`.
#[derive(Debug, Default)]
pub(super) struct Dtd {
    entities: HashMap<String, Entity>,
}

/// Most entities that are declared.
const ENTITIES_MAX: usize = 10_000;

impl Dtd {
    /// Of what stands between `<!DOCTYPE` and its `>`. The first declaration of a name counts.
    pub(super) fn of(text: &str) -> Result<Dtd, String> {
        let mut dtd = Dtd::default();
        let Some(mut rest) = subset(text) else { return Ok(dtd) };
        loop {
            rest = rest.trim_start();
            if rest.is_empty() || rest.starts_with(']') {
                return Ok(dtd);
            }
            if let Some(comment) = rest.strip_prefix("<!--") {
                rest = behind(comment, "-->")?;
            } else if let Some(instruction) = rest.strip_prefix("<?") {
                rest = behind(instruction, "?>")?;
            } else if let Some(declared) = rest.strip_prefix("<!ENTITY") {
                rest = dtd.declare(declared)?;
            } else if rest.starts_with("<!ELEMENT") || rest.starts_with("<!NOTATION") {
                rest = behind_markup(rest)?;
            } else if rest.starts_with("<!ATTLIST") {
                return Err(
                    "its DTD declares attributes (<!ATTLIST), which is not read: remove that, and write \
                            default values where they are meant"
                        .into(),
                );
            } else {
                return Err(format!("in the DTD: {:?} is not read", begin(rest)));
            }
        }
    }

    pub(super) fn entity(&self, name: &str) -> Option<&Entity> {
        self.entities.get(name)
    }

    /// Takes `name "text">`, `name SYSTEM "file">` or `name PUBLIC "id" "file">`; gives what follows.
    fn declare<'t>(&mut self, text: &'t str) -> Result<&'t str, String> {
        let mistake = || format!("in the DTD: <!ENTITY{} is not read", begin(text));
        let (name, rest) = text.trim_start().split_once(char::is_whitespace).ok_or_else(mistake)?;
        // `%` declares what is only for the DTD itself, where references are refused
        if name == "%" {
            return behind_markup(text);
        }
        let rest = rest.trim_start();
        let (entity, rest) = if let Some(rest) = rest.strip_prefix("SYSTEM") {
            let (file, rest) = quoted(rest).ok_or_else(mistake)?;
            (Entity::File(file.to_owned()), rest)
        } else if let Some(rest) = rest.strip_prefix("PUBLIC") {
            let (_, rest) = quoted(rest).ok_or_else(mistake)?;
            let (file, rest) = quoted(rest).ok_or_else(mistake)?;
            (Entity::File(file.to_owned()), rest)
        } else {
            let (value, rest) = quoted(rest).ok_or_else(mistake)?;
            if value.contains('%') && value.split('%').skip(1).any(is_reference) {
                return Err(mistake());
            }
            (Entity::Text(with_characters(value)?), rest)
        };
        let rest = rest.trim_start().strip_prefix('>').ok_or_else(mistake)?;
        if self.entities.len() >= ENTITIES_MAX {
            return Err(format!("its DTD declares more than {ENTITIES_MAX} entities"));
        }
        self.entities.entry(name.to_owned()).or_insert(entity);
        Ok(rest)
    }
}

/// What stands behind the first `[` that no quotes have in them.
fn subset(text: &str) -> Option<&str> {
    let mut rest = text;
    loop {
        let at = rest.find(['[', '"', '\''])?;
        if let Some(subset) = rest[at..].strip_prefix('[') {
            return Some(subset);
        }
        rest = quoted(&rest[at..])?.1;
    }
}

fn behind<'t>(text: &'t str, end: &str) -> Result<&'t str, String> {
    text.split_once(end).map(|(_, rest)| rest).ok_or_else(|| format!("in the DTD: {end} is missing"))
}

/// What follows a declaration, whose quotes may have `>` in them.
fn behind_markup(text: &str) -> Result<&str, String> {
    let mut rest = text;
    let open = || format!("in the DTD: {:?} has no end", begin(text));
    loop {
        let at = rest.find(['>', '"', '\'']).ok_or_else(open)?;
        if let Some(behind) = rest[at..].strip_prefix('>') {
            return Ok(behind);
        }
        rest = quoted(&rest[at..]).ok_or_else(open)?.1;
    }
}

/// A text in quotes at the begin, and what follows.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    text[1..].split_once(quote)
}

/// Whether a text goes on as `name;` does.
fn is_reference(text: &str) -> bool {
    text.split_once(';').is_some_and(|(name, _)| {
        name.starts_with(|c: char| c.is_alphabetic() || c == '_')
            && !name.contains(|c: char| c.is_whitespace() || c == '%')
    })
}

/// References to characters are replaced where an entity is declared, all others where it is used.
fn with_characters(value: &str) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = value;
    while let Some(at) = rest.find("&#") {
        text.push_str(&rest[..at]);
        let (name, behind) =
            rest[at + 1..].split_once(';').ok_or_else(|| format!("in the DTD: {value:?} is not read"))?;
        let c =
            quick_xml::events::BytesRef::new(name).resolve_char_ref().map_err(|error| error.to_string())?;
        text.extend(c);
        rest = behind;
    }
    text.push_str(rest);
    Ok(text)
}

fn begin(text: &str) -> String {
    text.chars().take(30).collect()
}
