//! Scenario files: YAML, the language, its expressions. And price files, which are read by the same grammar.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tidemark_scenario::prices::Prices;
use tidemark_scenario::{Diagnostics, check_text};

fuzz_target!(|text: &str| {
    let (plan, diagnostics) = check_text("fuzz.yaml", text, Path::new("/nonexistent"), &[]);
    assert_eq!(plan.is_none(), diagnostics.has_errors());
    check(text, &diagnostics);
    if let Err(diagnostics) = Prices::parse("prices.yaml", text) {
        assert!(diagnostics.has_errors());
        check(text, &diagnostics);
    }
});

fn check(text: &str, diagnostics: &Diagnostics) {
    let line_ends = text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    for item in diagnostics.items() {
        assert!(item.line <= line_ends + 1, "{item}");
    }
    // Told with the line it is about, whatever stands there.
    assert_eq!(diagnostics.items().is_empty(), diagnostics.to_string().is_empty());
}
