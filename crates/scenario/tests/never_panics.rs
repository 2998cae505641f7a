//! Whatever the text, the answer is a plan, or prices, or what is wrong with it.

use std::path::Path;

use proptest::prelude::*;
use tidemark_scenario::prices::{EXAMPLE, Prices};
use tidemark_scenario::{Diagnostics, check_text, shipped};

fn try_it(text: &str) {
    let (plan, diagnostics) = check_text("t.yaml", text, Path::new("/nonexistent"), &[]);
    assert_eq!(plan.is_none(), diagnostics.has_errors());
    check_lines(text, &diagnostics);
    if let Err(diagnostics) = Prices::parse("p.yaml", text) {
        assert!(diagnostics.has_errors());
        check_lines(text, &diagnostics);
    }
}

/// That each mistake is told with a line that is there.
fn check_lines(text: &str, diagnostics: &Diagnostics) {
    let _ = diagnostics.to_string();
    let line_ends = text.bytes().filter(|byte| matches!(byte, b'\n' | b'\r')).count();
    for item in diagnostics.items() {
        assert!(item.line <= line_ends + 1, "{item}");
    }
}

/// Pieces that scenarios are made of, so that arbitrary texts get somewhere.
const PIECES: [&str; 43] = [
    "sessions:",
    "load:",
    "machines:",
    "hour: ",
    "steps:",
    "- ",
    "GET: ",
    "set: ",
    "each: x in ${y}",
    "${",
    "}",
    "\n",
    "  ",
    "    ",
    "'",
    "\"",
    "[",
    "]",
    "{",
    ", ",
    ": ",
    "&a ",
    "*a",
    "|\n",
    ">\n",
    "# ",
    "random(0, 5)",
    "next(",
    "a",
    "é",
    "10s",
    "5/s",
    "25%",
    "when: ",
    "choose:",
    "json: ",
    "not ",
    "-",
    "0.1",
    "$.a[0]",
    "extract:",
    "\r\n",
    "\t",
];

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_text(text in "\\PC{0,200}") {
        try_it(&text);
    }

    #[test]
    fn arbitrary_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        try_it(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn text_of_familiar_pieces(pieces in proptest::collection::vec(0..PIECES.len(), 0..60)) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        try_it(&text);
    }

    #[test]
    fn arbitrary_expressions(inner in "[a-z0-9 +*/%<>=!&|()\\[\\]{}'\",.$\\\\-]{0,40}") {
        let quoted = inner.replace('\\', "\\\\").replace('"', "\\\"");
        try_it(&format!(
            "sessions: {{a: {{steps: [{{set: {{x: \"${{{quoted}}}\"}}}}, {{GET: \"/${{{quoted}}}\"}}]}}}}\nload: {{users: 1, hold: 1s}}\n"
        ));
    }

    #[test]
    fn what_is_right_with_a_stretch_replaced(
        of in 0usize..2, at in 0.0..1.0f64, length in 0usize..40, piece in 0..PIECES.len(),
    ) {
        let text = [shipped("airline").unwrap(), EXAMPLE][of];
        let boundary = |mut at: usize| { while !text.is_char_boundary(at) { at -= 1; } at };
        let start = boundary((at * text.len() as f64) as usize);
        let end = boundary((start + length).min(text.len()));
        try_it(&format!("{}{}{}", &text[..start], PIECES[piece], &text[end..]));
    }

    #[test]
    fn the_airline_with_lines_moved(from in 0usize..150, to in 0usize..150) {
        let mut lines: Vec<&str> = shipped("airline").unwrap().lines().collect();
        let line = lines.remove(from % lines.len());
        lines.insert(to % lines.len(), line);
        try_it(&lines.join("\n"));
    }
}
