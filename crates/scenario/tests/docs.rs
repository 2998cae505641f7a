//! Every example of the reference is a scenario that loads, and so is every file of `docs/examples`.

use std::path::{Path, PathBuf};

fn reference() -> String {
    std::fs::read_to_string(docs().join("scenario.md")).unwrap()
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
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
        if !block.lines().any(|line| line == "sessions:") {
            text.push_str(session);
            text.push_str("      - GET: /\n");
        }
    }
    if !block.lines().any(|line| line.starts_with("load:")) {
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
        if block.contains("\ncompare:") {
            let compared = tidemark_scenario::load_experiment_text("docs.yaml", block, Path::new("."), &[]);
            assert!(compared.is_ok(), "{}\nin\n{block}", compared.unwrap_err());
            continue;
        }
        let whole = completed(block);
        let (plan, diagnostics) =
            tidemark_scenario::check_text("docs.yaml", &whole, &docs().join("examples"), &[]);
        assert!(plan.is_some(), "{diagnostics}\nin\n{whole}");
    }
}

#[test]
fn the_readmes_example_loads_without_a_warning() {
    let text = std::fs::read_to_string(docs().join("../README.md")).unwrap();
    let (_, diagnostics) = tidemark_scenario::check_text("README.md", blocks(&text)[0], Path::new("."), &[]);
    assert_eq!(diagnostics.to_string(), "");
}

#[test]
fn the_whole_example_loads_without_a_warning() {
    let text = reference();
    let (_, diagnostics) = tidemark_scenario::check_text("docs.yaml", blocks(&text)[0], Path::new("."), &[]);
    assert_eq!(diagnostics.to_string(), "");
}

#[test]
fn the_example_files_load_without_a_warning() {
    let mut count = 0;
    for entry in std::fs::read_dir(docs().join("examples")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let (plan, diagnostics) = tidemark_scenario::check_file(&path, &[]);
        assert!(plan.is_some() && diagnostics.items().is_empty(), "{diagnostics}");
        let text = std::fs::read_to_string(&path).unwrap();
        let first = "# yaml-language-server: $schema=../scenario.schema.json";
        assert_eq!(text.lines().next(), Some(first), "{}", path.display());
        assert_eq!(Some(plan.unwrap().name.as_str()), path.file_stem().and_then(|stem| stem.to_str()));
        count += 1;
    }
    assert!(count >= 5, "{count}");
}
