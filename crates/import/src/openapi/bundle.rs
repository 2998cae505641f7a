//! References into other files of the same folder: what they lead to becomes a part of the document.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

/// Where other files stand in the document.
const FILES: &str = "x-tidemark-files";
/// Most other files that are read.
const FILES_MAX: usize = 50;
/// Largest of them, bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;

/// The document with the files that it refers to, which lie in its folder or below. `read` gives what a file holds.
/// A reference that leads elsewhere stays as it is, and leads nowhere.
pub(crate) fn bundled(file: &Path, mut document: Json, read: impl Fn(&Path) -> Option<Json>) -> Json {
    let Ok(file) = file.canonicalize() else { return document };
    let mut files = Files {
        root: file.parent().unwrap_or(Path::new("/")).to_owned(),
        known: HashMap::from([(file.clone(), String::new())]),
        waiting: Vec::new(),
    };
    files.rewrite(&mut document, &file, "");
    let mut read_in = serde_json::Map::new();
    while let Some((path, name)) = files.waiting.pop() {
        let mut part = read(&path).unwrap_or_default();
        files.rewrite(&mut part, &path, &format!("/{FILES}/{name}"));
        read_in.insert(name, part);
    }
    if !read_in.is_empty() {
        document[FILES] = json!(read_in);
    }
    document
}

struct Files {
    root: PathBuf,
    /// Where each stands in the document, as a JSON pointer.
    known: HashMap<PathBuf, String>,
    /// Those that are to be read, with their names.
    waiting: Vec<(PathBuf, String)>,
}

impl Files {
    /// Makes every reference one into the document. `own`: where the file stands in it.
    fn rewrite(&mut self, node: &mut Json, file: &Path, own: &str) {
        match node {
            Json::Array(items) => items.iter_mut().for_each(|item| self.rewrite(item, file, own)),
            Json::Object(members) => {
                for (key, member) in members {
                    match member {
                        Json::String(place) if key == "$ref" => {
                            if let Some(inside) = self.inside(place, file, own) {
                                *place = inside;
                            }
                        }
                        _ => self.rewrite(member, file, own),
                    }
                }
            }
            _ => {}
        }
    }

    fn inside(&mut self, place: &str, file: &Path, own: &str) -> Option<String> {
        let (path, pointer) = place.split_once('#').unwrap_or((place, ""));
        if path.is_empty() {
            return Some(format!("#{own}{pointer}"));
        }
        if path.contains("://") {
            return None;
        }
        let path = file.parent()?.join(path).canonicalize().ok()?;
        if let Some(known) = self.known.get(&path) {
            return Some(format!("#{known}{pointer}"));
        }
        let is_small = std::fs::metadata(&path).is_ok_and(|of| of.is_file() && of.len() <= FILE_BYTES_MAX);
        if !path.starts_with(&self.root) || !is_small || self.known.len() > FILES_MAX {
            return None;
        }
        let name = self.known.len().to_string();
        let known = format!("/{FILES}/{name}");
        self.known.insert(path.clone(), known.clone());
        self.waiting.push((path, name));
        Some(format!("#{known}{pointer}"))
    }
}
