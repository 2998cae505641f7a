//! Documents of XML as a tree, for plans of other tools.
//!
//! What is read comes from elsewhere, so everything is bounded: depth, elements, and what entities become. Entities
//! of the document's own DTD are replaced, those that are files only where the caller opens them.

mod dtd;
#[cfg(test)]
mod tests;

use quick_xml::events::{BytesRef, BytesStart, Event};
use quick_xml::{Reader, escape};

use dtd::{Dtd, Entity};

/// Most elements inside each other.
const DEPTH_MAX: usize = 200;
/// Most elements of a document.
const ELEMENTS_MAX: usize = 1_000_000;
/// Most attributes of an element, which are compared with each other.
const ATTRIBUTES_MAX: usize = 1_000;
/// Most bytes that entities become, all together.
const EXPANDED_BYTES_MAX: usize = 1 << 20;
/// Most references to entities: one that is empty has a bound, too.
const REFERENCES_MAX: usize = 1_000_000;
/// Most entities inside each other.
const ENTITY_DEPTH_MAX: usize = 16;

/// An element with all that is in it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Element {
    /// Its name, with a prefix if it has one.
    pub name: String,
    /// In the order of the document.
    pub attributes: Vec<(String, String)>,
    pub children: Vec<Element>,
    /// What stands in it beside elements, CDATA included, nothing trimmed.
    pub text: String,
    /// Where it begins, from 1. Inside an entity: where the entity is referred to.
    pub line: usize,
}

impl Element {
    /// The value of an attribute.
    pub(crate) fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The first child of this name.
    pub(crate) fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }
}

/// Opens a file that an entity stands for.
pub(crate) type Open<'o> = &'o dyn Fn(&str) -> Result<String, String>;

/// The root of a document. An entity that is a file is a mistake.
///
/// # Errors
/// Says what is not well-formed or beyond a bound, with `line N: `.
pub(crate) fn parse(text: &str) -> Result<Element, String> {
    parse_with(text, &|file| Err(format!("the file {file:?} is not read")))
}

/// The same where `open` reads the files of `<!ENTITY name SYSTEM "file">`.
///
/// # Errors
/// As of [`parse`], and those of `open`.
pub(crate) fn parse_with(text: &str, open: Open<'_>) -> Result<Element, String> {
    let mut tree = Tree {
        dtd: Dtd::default(),
        open,
        line: 1,
        elements: 0,
        expanded: 0,
        references: 0,
        stack: Vec::new(),
    };
    // what is around the root
    tree.stack.push(Element::default());
    match tree.read(text, 0) {
        Ok(()) => {}
        Err(reason) => return Err(format!("line {}: {reason}", tree.line)),
    }
    let around = tree.stack.pop().unwrap_or_default();
    if !around.text.trim().is_empty() {
        return Err("line 1: there is text beside the root element".into());
    }
    let mut roots = around.children.into_iter();
    match (roots.next(), roots.next()) {
        (Some(root), None) => Ok(root),
        (None, _) => Err("line 1: there is no element".into()),
        (_, Some(second)) => Err(format!("line {}: a second root element <{}>", second.line, second.name)),
    }
}

struct Tree<'o> {
    dtd: Dtd,
    open: Open<'o>,
    /// Where in the document what is read begins.
    line: usize,
    elements: usize,
    /// Bytes that entities became so far.
    expanded: usize,
    references: usize,
    /// The element that is open last, behind those around it.
    stack: Vec<Element>,
}

impl Tree<'_> {
    /// Reads a document (depth 0), or what an entity stands for. An entity closes what it opens.
    fn read(&mut self, text: &str, depth: usize) -> Result<(), String> {
        let open_before = self.stack.len();
        let mut reader = Reader::from_str(text);
        let mut at = 0;
        loop {
            let event = reader.read_event().map_err(|error| {
                let end = (reader.error_position() as usize).clamp(at, text.len());
                self.pass(depth, &text.as_bytes()[at..end]);
                error.to_string()
            })?;
            if matches!(event, Event::Eof) {
                break;
            }
            self.take(event, depth)?;
            let end = reader.buffer_position() as usize;
            self.pass(depth, &text.as_bytes()[at..end]);
            at = end;
        }
        match self.stack.get(open_before) {
            Some(open) => Err(format!("<{}> of line {} is not closed", open.name, open.line)),
            None => Ok(()),
        }
    }

    /// Counts the lines of what was read of the document.
    fn pass(&mut self, depth: usize, read: &[u8]) {
        if depth == 0 {
            self.line += read.iter().filter(|byte| **byte == b'\n').count();
        }
    }

    fn take(&mut self, event: Event<'_>, depth: usize) -> Result<(), String> {
        match event {
            Event::Start(tag) => self.begin(&tag, depth)?,
            Event::Empty(tag) => {
                self.begin(&tag, depth)?;
                self.end();
            }
            Event::End(_) => self.end(),
            Event::Text(text) => self.text(&text.xml10_content()),
            Event::CData(text) => self.text(&text.xml10_content()),
            Event::GeneralRef(reference) => self.refer(&reference, depth)?,
            Event::DocType(dtd) => self.dtd = Dtd::of(&dtd.into_inner())?,
            Event::Decl(_) | Event::Comment(_) | Event::PI(_) | Event::Eof => {}
        }
        Ok(())
    }

    fn begin(&mut self, tag: &BytesStart<'_>, depth: usize) -> Result<(), String> {
        self.elements += 1;
        if self.elements > ELEMENTS_MAX {
            return Err(format!("more than {ELEMENTS_MAX} elements"));
        }
        if self.stack.len() > DEPTH_MAX {
            return Err(format!("more than {DEPTH_MAX} elements inside each other"));
        }
        let mut attributes = Vec::new();
        for attribute in tag.attributes() {
            let attribute = attribute.map_err(|error| error.to_string())?;
            if attributes.len() == ATTRIBUTES_MAX {
                return Err(format!("more than {ATTRIBUTES_MAX} attributes of an element"));
            }
            let mut value = String::new();
            self.value(&attribute.value, depth, &mut value)?;
            attributes.push((attribute.key.as_ref().to_owned(), value));
        }
        let name = tag.name().as_ref().to_owned();
        self.stack.push(Element { name, attributes, line: self.line, ..Element::default() });
        Ok(())
    }

    fn end(&mut self) {
        // the reader has checked that it is open
        if let Some(element) = self.stack.pop()
            && let Some(parent) = self.stack.last_mut()
        {
            parent.children.push(element);
        }
    }

    fn text(&mut self, text: &str) {
        if let Some(element) = self.stack.last_mut() {
            element.text += text;
        }
    }

    /// A reference between tags: what it stands for may have elements in it.
    fn refer(&mut self, reference: &BytesRef<'_>, depth: usize) -> Result<(), String> {
        if let Some(c) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
            self.text(c.encode_utf8(&mut [0; 4]));
            return Ok(());
        }
        let name = reference.xml10_content();
        if let Some(c) = escape::resolve_predefined_entity(&name) {
            self.text(c);
            return Ok(());
        }
        let text = self.entity(&name, depth)?;
        self.read(&text, depth + 1).map_err(|reason| format!("in the entity &{name}; {reason}"))
    }

    /// The value of an attribute: white space is spaces, references are replaced.
    fn value(&mut self, raw: &str, depth: usize, value: &mut String) -> Result<(), String> {
        let mut rest = raw;
        while let Some(at) = rest.find(['&', '\n', '\r', '\t']) {
            value.push_str(&rest[..at]);
            rest = &rest[at..];
            let Some(reference) = rest.strip_prefix('&') else {
                value.push(' ');
                rest = rest.strip_prefix("\r\n").unwrap_or(&rest[1..]);
                continue;
            };
            let (name, behind) =
                reference.split_once(';').ok_or("an & that is no reference: write &amp; in its place")?;
            rest = behind;
            let reference = BytesRef::new(name);
            if let Some(c) = reference.resolve_char_ref().map_err(|error| error.to_string())? {
                value.push(c);
            } else if let Some(c) = escape::resolve_predefined_entity(name) {
                value.push_str(c);
            } else {
                let text = self.entity(name, depth)?;
                self.value(&text, depth + 1, value)?;
            }
        }
        value.push_str(rest);
        Ok(())
    }

    /// What a reference at this depth stands for.
    fn entity(&mut self, name: &str, depth: usize) -> Result<String, String> {
        self.references += 1;
        if depth >= ENTITY_DEPTH_MAX {
            return Err(format!(
                "&{name}; is more than {ENTITY_DEPTH_MAX} entities deep, or refers to itself"
            ));
        }
        if self.references > REFERENCES_MAX {
            return Err(format!("more than {REFERENCES_MAX} references to entities"));
        }
        let text = match self.dtd.entity(name) {
            Some(Entity::Text(text)) => text.clone(),
            Some(Entity::File(file)) => {
                let text = (self.open)(file).map_err(|reason| format!("the entity &{name}; {reason}"))?;
                // a file may say at its begin how it is encoded
                text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)
            }
            None => return Err(format!("the entity &{name}; is not declared in this file")),
        };
        self.expanded += text.len();
        if self.expanded > EXPANDED_BYTES_MAX {
            return Err(format!("entities become more than {EXPANDED_BYTES_MAX} bytes"));
        }
        Ok(text)
    }
}
