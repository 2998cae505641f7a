//! Plans that a plan includes, and parts of it that a module names.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path};

use super::tree::{self, Node};
use crate::foreign;
use crate::xml::{self, Element};

/// Most files that are included, and bytes of each.
const FILES_MAX: usize = 50;
const BYTES_MAX: u64 = 16 << 20;

/// A plan and those that it includes.
pub(super) struct Documents {
    main: Element,
    /// By the path that the plan has for them.
    included: Vec<(String, Element)>,
}

/// The same as trees of elements.
pub(super) struct Trees<'p> {
    main: Vec<Node<'p>>,
    included: HashMap<&'p str, Vec<Node<'p>>>,
}

impl Documents {
    /// Reads what is included, and what that includes. What cannot be read is told where it is used.
    pub(super) fn read(main: Element, folder: &Path) -> Documents {
        let mut documents = Documents { main, included: Vec::new() };
        let mut wanted = Vec::new();
        includes(&documents.main, &mut wanted);
        while let Some(path) = wanted.pop() {
            let is_known = documents.included.iter().any(|(known, _)| *known == path);
            if is_known || documents.included.len() == FILES_MAX {
                continue;
            }
            let root = read(folder, &path).and_then(|text| xml::parse(&text).ok());
            if let Some(root) = root.filter(|root| root.name == "jmeterTestPlan") {
                includes(&root, &mut wanted);
                documents.included.push((path, root));
            }
        }
        documents
    }

    pub(super) fn trees(&self) -> Trees<'_> {
        let included = self.included.iter().map(|(path, root)| (path.as_str(), nodes(root)));
        Trees { main: nodes(&self.main), included: included.collect() }
    }
}

impl<'p> Trees<'p> {
    pub(super) fn main(&self) -> &[Node<'p>] {
        &self.main
    }

    pub(super) fn included(&self, path: &str) -> Option<&[Node<'p>]> {
        self.included.get(path.trim()).map(Vec::as_slice)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Node<'p>> {
        self.main.iter().chain(self.included.values().flatten())
    }
}

fn nodes(root: &Element) -> Vec<Node<'_>> {
    root.child("hashTree").map(tree::nodes).unwrap_or_default()
}

fn includes(element: &Element, wanted: &mut Vec<String>) {
    if element.name == "IncludeController" && element.attribute("enabled") != Some("false") {
        let path = tree::property(element, "IncludeController.includepath").unwrap_or_default();
        wanted.push(path.trim().to_owned());
    }
    element.children.iter().for_each(|child| includes(child, wanted));
}

/// A file below the plan's folder.
fn read(folder: &Path, path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let file = folder.join(below(path)?);
    // a pipe may never end
    if !file.is_file() {
        return None;
    }
    File::open(file).ok()?.take(BYTES_MAX + 1).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 > BYTES_MAX {
        return None;
    }
    foreign::text(bytes).ok()
}

/// A path that does not leave the folder of the plan, with slashes.
pub(super) fn below(path: &str) -> Option<String> {
    let path = path.trim().replace('\\', "/");
    let is_below =
        Path::new(&path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    (is_below && !path.is_empty()).then(|| path.trim_start_matches("./").to_owned())
}
