//! The shipped JSON Schema is the one that the code makes, and shipped scenarios name it.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_shipped_schema_is_up_to_date() {
    let text = std::fs::read_to_string(root().join("docs/scenario.schema.json")).unwrap();
    let shipped: serde_json::Value = serde_json::from_str(&text).unwrap();
    let made = tidemark_scenario::schema::json_schema();
    assert!(
        shipped == made,
        "run: cargo run -p tidemark-scenario --example schema > docs/scenario.schema.json"
    );
}

#[test]
fn every_reference_leads_somewhere() {
    fn references(value: &serde_json::Value, found: &mut Vec<String>) {
        match value {
            serde_json::Value::Object(members) => {
                for (name, value) in members {
                    match value.as_str() {
                        Some(target) if name == "$ref" => found.push(target.to_owned()),
                        _ => references(value, found),
                    }
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }
    let schema = tidemark_scenario::schema::json_schema();
    let mut found = Vec::new();
    references(&schema, &mut found);
    assert!(found.len() > 20);
    for target in found {
        let pointer = target.trim_start_matches('#');
        assert!(schema.pointer(pointer).is_some_and(serde_json::Value::is_object), "{target}");
    }
}

#[test]
fn shipped_scenarios_name_the_schema_and_load() {
    let mut count = 0;
    for entry in std::fs::read_dir(root().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let first = "# yaml-language-server: $schema=../docs/scenario.schema.json";
        assert_eq!(text.lines().next(), Some(first), "{}", path.display());
        let (plan, diagnostics) = tidemark_scenario::Checker::default().experiment_file(&path, &[]);
        assert!(plan.is_some() && diagnostics.items().is_empty(), "{diagnostics}");
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap().to_owned();
        assert_eq!(tidemark_scenario::shipped(&name), Some(text.as_str()), "{name} is not embedded");
        count += 1;
    }
    assert_eq!(count, tidemark_scenario::shipped_names().count());
}
