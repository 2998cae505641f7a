//! Every example of the reference is a scenario that loads.

use std::path::{Path, PathBuf};

fn reference() -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/scenario.md");
    std::fs::read_to_string(path).unwrap()
}

fn blocks(text: &str) -> Vec<&str> {
    text.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Makes a whole scenario of a fragment: steps, or some of the file's keys.
fn completed(block: &str) -> String {
    let session = "sessions:\n  one:\n    steps:\n";
    let mut text = String::new();
    if block.starts_with("- ") {
        text.push_str("feeders: {people: {rows: [{name: ann}]}}\n");
        text.push_str(session);
        text.extend(block.lines().map(|line| format!("      {line}\n")));
    } else {
        text.push_str(block);
        if !block.contains("sessions:") {
            text.push_str(session);
            text.push_str("      - GET: /\n");
        }
    }
    if !block.contains("load:") {
        text.push_str("load: {users: 1, hold: 1s}\n");
    }
    text
}

#[test]
fn every_example_loads() {
    let text = reference();
    let blocks = blocks(&text);
    assert!(blocks.len() >= 4, "{}", blocks.len());
    for block in blocks {
        let whole = completed(block);
        let (plan, diagnostics) = tidemark_scenario::check_text("docs.yaml", &whole, Path::new("."), &[]);
        assert!(plan.is_some(), "{diagnostics}\nin\n{whole}");
    }
}

#[test]
fn the_whole_example_loads_without_a_warning() {
    let text = reference();
    let (_, diagnostics) = tidemark_scenario::check_text("docs.yaml", blocks(&text)[0], Path::new("."), &[]);
    assert_eq!(diagnostics.to_string(), "");
}
