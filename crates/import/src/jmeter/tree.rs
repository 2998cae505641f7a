//! A plan as a tree of its elements: JMeter writes an element, and behind it a `hashTree` of what lies in it.

use crate::xml::Element;

/// An element of a plan and what lies in it.
#[derive(Debug)]
pub(super) struct Node<'p> {
    pub(super) element: &'p Element,
    pub(super) children: Vec<Node<'p>>,
}

/// The elements of a `hashTree`.
pub(super) fn nodes(tree: &Element) -> Vec<Node<'_>> {
    let mut nodes: Vec<Node<'_>> = Vec::new();
    for element in &tree.children {
        match nodes.last_mut() {
            Some(last) if element.name == "hashTree" && last.children.is_empty() => {
                last.children = self::nodes(element);
            }
            _ if element.name == "hashTree" => nodes.extend(self::nodes(element)),
            _ => nodes.push(Node { element, children: Vec::new() }),
        }
    }
    nodes
}

impl<'p> Node<'p> {
    /// Its kind, without the package of a plugin: `UltimateThreadGroup`.
    pub(super) fn kind(&self) -> &'p str {
        short_kind(&self.element.name)
    }

    /// The name that the plan's author gave it.
    pub(super) fn name(&self) -> &'p str {
        self.element.attribute("testname").unwrap_or_default()
    }

    pub(super) fn is_enabled(&self) -> bool {
        self.element.attribute("enabled") != Some("false")
    }

    /// Its kind and name, for a person.
    pub(super) fn title(&self) -> String {
        match self.name() {
            "" => self.kind().to_owned(),
            name if name == self.kind() => name.to_owned(),
            name => format!("{} \"{}\"", self.kind(), crate::jmeter::shown(name)),
        }
    }

    /// A property as it is written; empty where there is none.
    pub(super) fn text(&self, name: &str) -> &'p str {
        property(self.element, name).unwrap_or_default()
    }

    pub(super) fn flag(&self, name: &str) -> bool {
        self.text(name).trim() == "true"
    }

    /// A property that is an element or a collection.
    pub(super) fn part(&self, name: &str) -> Option<&'p Element> {
        part(self.element, name)
    }

    /// The entries of a collection.
    pub(super) fn list(&self, name: &str) -> &'p [Element] {
        self.part(name).map(|part| part.children.as_slice()).unwrap_or_default()
    }

    /// The entries of `Arguments`, which lie in the element itself or in a property.
    pub(super) fn arguments(&self, name: &str) -> &'p [Element] {
        let holder = if name.is_empty() { Some(self.element) } else { self.part(name) };
        let of = |holder| part(holder, "Arguments.arguments");
        holder.and_then(of).map(|part| part.children.as_slice()).unwrap_or_default()
    }
}

/// The last part of a kind's name.
pub(super) fn short_kind(kind: &str) -> &str {
    kind.rsplit('.').next().unwrap_or(kind)
}

/// A plain property of an element: `<stringProp name="…">`, or `<floatProp><name>…</name><value>…</value></floatProp>`.
pub(super) fn property<'p>(element: &'p Element, name: &str) -> Option<&'p str> {
    element.children.iter().find_map(|child| {
        if child.attribute("name") == Some(name) {
            return child.children.is_empty().then_some(child.text.as_str());
        }
        let is_it = child.child("name").is_some_and(|own| own.text.trim() == name);
        is_it.then(|| child.child("value").map(|value| value.text.as_str())).flatten()
    })
}

fn part<'p>(element: &'p Element, name: &str) -> Option<&'p Element> {
    element.children.iter().find(|child| child.attribute("name") == Some(name))
}
