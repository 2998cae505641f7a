use serde_json::{Map, Value};
use tidemark_record::Run;
use tidemark_record::manifest::Watched;

use super::*;
use crate::test_run;

/// A run with something in every part of a page that a run of this crate's tests can have.
fn run() -> (tempfile::TempDir, Run) {
    let (dir, mut run) = test_run::airline();
    test_run::with_operations(dir.path());
    let [name, what, found] = ["db", "port 5432", "postgres, pid 7"].map(String::from);
    run.manifest.watched = vec![Watched { name, what, found, is_machine: true }];
    (dir, run)
}

fn printed(run: &Run) -> Map<String, Value> {
    into_map(serde_json::from_str(&summary(run).unwrap()).unwrap())
}

#[test]
fn the_published_names_are_there() {
    let (_dir, run) = run();
    let value = Value::from(printed(&run));
    let names: Vec<_> = value.as_object().unwrap().keys().map(String::as_str).collect();
    let published = [
        "verdict",
        "offered_per_s",
        "achieved_per_s",
        "achieved_share",
        "measured_s",
        "requests",
        "errors",
        "statuses",
        "dropped",
        "failed",
        "failures",
        "response_time_us",
        "service_time_us",
        "response_time_less_lag_us",
        "good",
        "parts",
        "steps",
        "processes",
        "driver",
        "ledger",
        "run_dir",
        "steady_state",
        "objectives",
        "watched",
        "notes",
        "run",
        "page",
    ];
    assert_eq!(names, published);
    for name in ["min", "mean", "p50", "p90", "p99", "max"] {
        assert!(value["good"]["response_time_us"][name].is_number(), "{name}");
        assert!(value["driver"]["lag_us"][name].is_number(), "{name}");
    }
    assert!(value["response_time_us"]["p50"].is_number());
    assert!(value["response_time_us"]["max"].is_null(), "not reached: some had no good answer");
    assert_eq!(value["failures"][0]["kind"], "timeout");
    assert_eq!(value["verdict"]["status"], "fail");
    assert_eq!(value["errors"]["status"], 3);
    for name in ["name", "cpu_s", "cpu_share", "rss_bytes_max"] {
        assert!(!value["processes"][0][name].is_null(), "{name}");
    }
}

/// Whatever the page's data has, at the place where this says it is.
#[test]
fn nothing_that_the_page_has_is_lost() {
    let (_dir, run) = run();
    let page = into_map(serde_json::to_value(ReportPage::of(&run).unwrap()).unwrap());
    let printed = printed(&run);
    let mut seen = 0;
    let mut same = |path: &str, of_page: &Value, printed: Option<&Value>| {
        assert_eq!(printed, Some(of_page), "{path} of the page is not in --json");
        seen += 1;
    };
    for (name, value) in page.iter().filter(|(name, _)| *name != "manifest") {
        same(name, value, printed["page"].get(name));
    }
    for (name, value) in page["manifest"].as_object().unwrap() {
        match name.as_str() {
            "summary" => {
                for (name, value) in value.as_object().unwrap() {
                    same(&format!("manifest.summary.{name}"), value, printed.get(name));
                }
            }
            name if BESIDE.contains(&name) => same(&format!("manifest.{name}"), value, printed.get(name)),
            _ => same(&format!("manifest.{name}"), value, printed["run"].get(name)),
        }
    }
    assert!(seen > 50, "{seen}");
}

/// The published schema is the one that the types have; a name that is gone shows here.
#[test]
fn the_published_schema_is_that_of_the_types() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run.schema.json");
    let published = std::fs::read_to_string(path).unwrap();
    assert!(
        published == format!("{:#}\n", schema()),
        "run: cargo run -p tidemark-report --example run_schema > docs/run.schema.json; and look at what has changed: \
         names that were published stay"
    );
}

/// The same of what other verbs print.
#[test]
fn the_published_schemas_of_other_verbs_are_those_of_the_types() {
    for (verb, schema) in of_verbs() {
        let path = format!("{}/../../docs/{verb}.schema.json", env!("CARGO_MANIFEST_DIR"));
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            published == format!("{schema:#}\n"),
            "run: cargo run -p tidemark-report --example verb_schema {verb} > docs/{verb}.schema.json; and look at what has \
             changed: names that were published stay"
        );
    }
}

#[test]
fn what_is_printed_is_what_the_schema_says() {
    let (_dir, run) = run();
    let schema = schema();
    assert_fits(&printed(&run).into(), &schema);
    let mut told = Vec::new();
    // and the test can tell
    hold(
        &serde_json::json!({ "verdict": { "status": "maybe" }, "latency": 5 }),
        &schema,
        &schema,
        "$",
        &mut told,
    );
    let told = told.join("\n");
    for part in ["$.latency is not in the schema", "$.verdict.reasons is missing", "$.verdict.status"] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

/// That a value is what the schema of a verb says.
pub(crate) fn assert_fits_verb(value: &Value, verb: &str) {
    let (_, schema) = of_verbs().into_iter().find(|(name, _)| *name == verb).unwrap();
    assert_fits(value, &schema);
}

/// That a value is what a schema says.
pub(crate) fn assert_fits(value: &Value, schema: &Value) {
    let mut told = Vec::new();
    hold(value, schema, schema, "$", &mut told);
    assert!(told.is_empty(), "{}", told.join("\n"));
}

/// Holds a value against a schema, as far as ours have it: types, properties, what is required, words.
fn hold(value: &Value, schema: &Value, root: &Value, path: &str, told: &mut Vec<String>) {
    if let Some(reference) = schema["$ref"].as_str() {
        let definition = root.pointer(reference.trim_start_matches('#')).unwrap_or(&Value::Null);
        return hold(value, definition, root, path, told);
    }
    for choices in ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()) {
        let mut least: Option<Vec<String>> = None;
        for choice in choices {
            let mut of_choice = Vec::new();
            hold(value, choice, root, path, &mut of_choice);
            if least.as_ref().is_none_or(|least| of_choice.len() < least.len()) {
                least = Some(of_choice);
            }
        }
        told.extend(least.unwrap_or_default());
    }
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        _ => value.is_object(),
    };
    let types: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![name],
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !types.is_empty() && !types.iter().any(|name| is(name)) {
        return told.push(format!("{path} is no {}: {value}", types.join(", ")));
    }
    let words = schema["enum"].as_array().cloned().or(schema.get("const").map(|word| vec![word.clone()]));
    if words.is_some_and(|words| !words.contains(value)) {
        told.push(format!("{path} is none of its words: {value}"));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let of_item = schema["prefixItems"].get(index).unwrap_or(&schema["items"]);
        hold(item, of_item, root, &format!("{path}[]"), told);
    }
    let Some(object) =
        value.as_object().filter(|_| schema["type"] == "object" || schema["properties"].is_object())
    else {
        return;
    };
    for (name, value) in object {
        let place = format!("{path}.{name}");
        match schema["properties"].get(name).or(schema.get("additionalProperties")) {
            Some(of_it) => hold(value, of_it, root, &place, told),
            None => told.push(format!("{place} is not in the schema")),
        }
    }
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !object.contains_key(name) {
            told.push(format!("{path}.{name} is missing"));
        }
    }
}
