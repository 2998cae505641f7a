//! Scenario files: YAML, the language, its expressions.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidemark_scenario::check_text;

fuzz_target!(|text: &str| {
    let (plan, diagnostics) = check_text("fuzz.yaml", text, Path::new("/nonexistent"), &[]);
    assert_eq!(plan.is_none(), diagnostics.has_errors());
    let line_ends = text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    for item in diagnostics.items() {
        assert!(item.line <= line_ends + 1, "{item}");
    }
    // Told with the line it is about, whatever stands there.
    assert_eq!(diagnostics.items().is_empty(), diagnostics.to_string().is_empty());
});
