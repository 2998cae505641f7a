//! The pages of this repository lead to files that are there.

use std::fs;
use std::path::{Path, PathBuf};

/// All pages in a folder and below it, but for what is built or fetched, and what starts with a dot.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_left_out = name.starts_with(['.', '_']) || name.starts_with("target");
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && !is_left_out && !["node_modules", "runs"].contains(&name.as_str()) {
            pages(&entry.path(), found);
        } else if kind.is_file() && name.ends_with(".md") {
            found.push(entry.path());
        }
    }
}

/// What stands in `](…)`, outside of code.
fn links(text: &str) -> Vec<&str> {
    let mut is_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            // every second piece is code
            for piece in line.split('`').step_by(2) {
                let behind = piece.split("](").skip(1);
                found.extend(behind.filter_map(|rest| rest.split_once(')').map(|(link, _)| link)));
            }
        }
    }
    found
}

#[test]
fn links_between_pages_lead_to_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    pages(&root, &mut found);
    assert!(found.len() > 20, "{found:?}");
    let mut broken = Vec::new();
    for page in found {
        let text = fs::read_to_string(&page).unwrap();
        for link in links(&text) {
            let path = link.split('#').next().unwrap_or_default();
            if path.is_empty() || path.contains("://") || path.starts_with("mailto:") {
                continue;
            }
            if !page.with_file_name("").join(path).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn a_link_is_what_is_no_code() {
    assert_eq!(links("[a](b.md#c) `[x](y)` [`d`](e)\n```\n[x](y)\n```\n"), ["b.md#c", "e"]);
}
