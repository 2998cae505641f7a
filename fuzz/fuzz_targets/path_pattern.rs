//! `tidemark hit --random-path`: a pattern becomes a path with holes that a scenario takes, or is refused.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidemark_scenario::check_text;

#[allow(dead_code)]
#[path = "../../crates/tidemark/src/hit/pattern.rs"]
mod pattern;

fuzz_target!(|text: &str| {
    let Ok(path) = pattern::template(text) else { return };
    if text.contains(char::is_control) || path.len() > 10_000 {
        return;
    }
    let quoted = path.replace('\'', "''");
    let scenario = format!(
        "system: {{url: 'http://localhost'}}\nload: {{users: 1, hold: 1s}}\n\
         sessions: {{s: {{steps: [{{GET: '/{quoted}'}}]}}}}\n"
    );
    let (_, diagnostics) = check_text("fuzz.yaml", &scenario, Path::new("/nonexistent"), &[]);
    // A literal may be no path; but the holes are ours.
    assert!(!diagnostics.to_string().contains("expression"), "{path}: {diagnostics}");
});
