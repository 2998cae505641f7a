//! Everything for machines: one object with the figures and all that the page is made from.
//!
//! | key | is |
//! | --- | --- |
//! | those of a [`Summary`](tidemark_record::Summary) | the figures |
//! | `objectives`, `watched`, `notes` | what became of each objective; what was only looked at; what is to be said beside |
//! | `run` | what was run, on what, and how: the rest of `run.json` |
//! | `page` | what the page's charts are made from: everything over time, percentile curves, examples of failures, events, the scenario |
//!
//! It is cut out of a [`ReportPage`], so that whatever that gets this has, too; [`schema`] is made from its types.

mod schema;

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tidemark_record::summary::Verdict;
use tidemark_record::{RecordError, Run};

use crate::page::ReportPage;

pub(crate) use schema::schema_of;
pub use schema::{of_verbs, schema};

/// What stands beside the figures, of `run.json`.
const BESIDE: [&str; 3] = ["objectives", "watched", "notes"];
/// The figures, in `run.json`.
const SUMMARY: &str = "summary";
/// `run.json`, in a page.
const MANIFEST: &str = "manifest";
/// Where the rest of `run.json` is.
const RUN: &str = "run";
/// Where the rest of the page is.
const PAGE: &str = "page";

/// The run as one JSON object with a line end: indented, but for what the page's charts are made from, which are many numbers.
///
/// # Errors
/// A histogram of the run is damaged.
pub fn summary(run: &Run) -> Result<String, RecordError> {
    let mut object = object(run)?;
    let page = object.shift_remove(PAGE).unwrap_or_default();
    // maps with text keys, numbers and texts: nothing that JSON cannot say
    let head = serde_json::to_string_pretty(&object).expect("a summary is plain JSON");
    let head = head.strip_suffix("\n}").unwrap_or(&head);
    Ok(format!("{head},\n  \"{PAGE}\": {page}\n}}\n"))
}

/// The parts of a page in their places.
fn object(run: &Run) -> Result<Map<String, Value>, RecordError> {
    let page = serde_json::to_value(ReportPage::of(run)?).expect("a report page is plain JSON");
    let mut page = into_map(page);
    let mut manifest = take(&mut page, MANIFEST);
    let mut object = take(&mut manifest, SUMMARY);
    for key in BESIDE {
        object.extend(manifest.shift_remove(key).map(|value| (key.to_owned(), value)));
    }
    object.insert(RUN.to_owned(), manifest.into());
    object.insert(PAGE.to_owned(), page.into());
    Ok(object)
}

fn take(from: &mut Map<String, Value>, key: &str) -> Map<String, Value> {
    into_map(from.shift_remove(key).unwrap_or_default())
}

fn into_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// The object where there is no run: the verdict alone.
pub fn without_a_run(verdict: &Verdict) -> String {
    let object = BTreeMap::from([("verdict", verdict)]);
    serde_json::to_string_pretty(&object).expect("a verdict is plain JSON") + "\n"
}

#[cfg(test)]
pub(crate) mod tests;
