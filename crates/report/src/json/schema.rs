//! The JSON Schema of what is printed, out of the types of a page.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::{BESIDE, MANIFEST, PAGE, RUN, SUMMARY, into_map, take};
use crate::comparison::{Claims, Compared};
use crate::cost::Costs;
use crate::history::History;
use crate::jmeter::Figures;
use crate::page::ReportPage;
use crate::plan::Planned;
use crate::reproduction::Reproduction;

/// Where definitions are.
const DEFINITIONS: &str = "$defs";

/// The schema of the object that `--json` prints for a run: `docs/run.schema.json`.
pub fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let schema = generator.into_root_schema_for::<ReportPage<'static>>();
    let mut root = into_map(schema.to_value());
    let mut definitions = take(&mut root, DEFINITIONS);
    let mut page = Parts::of(root);
    let mut manifest = Parts::of(take(&mut definitions, "Manifest"));
    let mut all = Parts::of(take(&mut definitions, "Summary"));
    page.remove(MANIFEST);
    manifest.remove(SUMMARY);
    for key in BESIDE {
        let (part, required) = manifest.remove(key);
        all.insert(key, part, required);
    }
    let run = manifest.into_schema("What was run, on what, and how: the rest of `run.json`.");
    all.insert(RUN, run, true);
    let page = page.into_schema(
        "What the page's charts are made from: everything over time, with an entry for each of `seconds`.",
    );
    all.insert(PAGE, page, true);
    let mut schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What tidemark prints of a run with --json",
    });
    if let Value::Object(schema) = &mut schema {
        let about = "Times and units are in the names. Names stay what they are; new ones may come. Where there is no run \
                     there is only a verdict.";
        schema.extend(into_map(all.into_schema(about)));
        // that of a run that did not come about has no more
        schema.insert("required".into(), json!(["verdict"]));
        schema.insert(DEFINITIONS.into(), definitions.into());
    }
    tidy(&mut schema);
    schema
}

/// The schemas of what other verbs print, each by the name of its file: `docs/NAME.schema.json`.
pub fn of_verbs() -> [(&'static str, Value); 8] {
    [
        ("limit", crate::limit::schema()),
        ("compare", schema_of::<Claims>("What tidemark compare prints with --json")),
        ("run-comparison", schema_of::<Compared>("What tidemark run prints of a comparison with --json")),
        ("history", schema_of::<History>("What tidemark history prints with --json")),
        ("jmeter", schema_of::<Figures>("What `tidemark report --jmeter DIR --json` prints.")),
        ("cost", schema_of::<Costs>("What tidemark cost prints with --json")),
        ("plan", schema_of::<Planned>("What tidemark plan prints with --json")),
        ("reproduce", schema_of::<Reproduction>("What tidemark reproduce prints with --json")),
    ]
}

/// The schema of what is printed as its type has it; `title`: what that is.
pub(crate) fn schema_of<T: JsonSchema>(title: &str) -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    if let Value::Object(schema) = &mut schema {
        let about = "Times and units are in the names. Names stay what they are; new ones may come.";
        schema.insert("title".into(), title.into());
        schema.insert("description".into(), about.into());
    }
    tidy(&mut schema);
    schema
}

/// The properties of an object, and which of them are always there.
struct Parts {
    properties: Map<String, Value>,
    required: Vec<String>,
}

impl Parts {
    fn of(mut schema: Map<String, Value>) -> Parts {
        let required = schema.shift_remove("required").unwrap_or_default();
        let names = required.as_array().into_iter().flatten().filter_map(Value::as_str);
        Parts { required: names.map(str::to_owned).collect(), properties: take(&mut schema, "properties") }
    }

    fn remove(&mut self, name: &str) -> (Value, bool) {
        let is_required = self.required.iter().any(|known| known == name);
        self.required.retain(|known| known != name);
        (self.properties.shift_remove(name).unwrap_or_default(), is_required)
    }

    fn insert(&mut self, name: &str, schema: Value, required: bool) {
        self.properties.insert(name.to_owned(), schema);
        if required {
            self.required.push(name.to_owned());
        }
    }

    fn into_schema(self, about: &str) -> Value {
        json!({
            "description": about,
            "type": "object",
            "properties": self.properties,
            "required": self.required,
        })
    }
}

/// Links of the documentation become their words, and formats of Rust's numbers, which no other language has, go.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = without_links(text);
            }
            map.retain(|key, value| key != "format" || !value.is_string());
            map.values_mut().for_each(tidy);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// `a [b](c) [`d`]` becomes `a b `d``; lines are joined.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        out += before;
        let Some((words, behind)) = link.split_once(']') else {
            rest = link;
            continue;
        };
        out += words;
        rest = match behind.strip_prefix('(').and_then(|target| target.split_once(')')) {
            Some((_, behind)) => behind,
            None => behind,
        };
    }
    out += rest;
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::without_links;

    #[test]
    fn links_become_their_words() {
        let text = "Not [reached](Distribution), see\n[`FORMAT`]; a list [1, 2";
        assert_eq!(without_links(text), "Not reached, see `FORMAT`; a list 1, 2");
    }
}
