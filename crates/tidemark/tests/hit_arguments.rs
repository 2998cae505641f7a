//! Whatever is given to `tidemark hit`, it becomes the scenario that was meant, or is refused with a reason.

use std::path::Path;

use crate::program::{code, run, stderr, stdout};
use proptest::prelude::*;
use tempfile::TempDir;
use tidemark_scenario::load_text;

/// Pieces that mean something to YAML, to the scenario language, to URLs or to patterns.
const PIECES: [&str; 36] = [
    "/",
    "a",
    "item",
    "%20",
    "%",
    "?",
    "=",
    "&",
    "#",
    " ",
    "\t",
    "\n",
    "\r\n",
    "\"",
    "'",
    "\\",
    "${",
    "$${",
    "}",
    "{4}",
    "[a-c]",
    "(x|y)",
    ": ",
    "- ",
    "*",
    "!",
    "|",
    "ä",
    "\u{2028}",
    "\u{feff}",
    "0",
    "..",
    "//",
    "http://h:1/",
    "@",
    ",",
];

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&PIECES[..]), 0..8).prop_map(|pieces| pieces.concat())
}

/// What the program makes of these; none where it refuses, which it does with a reason.
fn scenario(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = run(folder, &[&["hit", "http://h:1/", "--print-scenario"], arguments].concat());
    match code(&output) {
        0 => Some(stdout(&output)),
        2 if !stderr(&output).trim().is_empty() => None,
        other => panic!("{arguments:?}: exit status {other}: {}", stderr(&output)),
    }
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_list_of_urls_is_requested_line_for_line(lines in proptest::collection::vec(text(), 0..6)) {
        let folder = folder();
        let list = lines.join("\n");
        std::fs::write(folder.path().join("urls"), &list).expect("a file");
        if let Some(text) = scenario(folder.path(), &["--urls", "urls"]) {
            let plan = load_text("hit", &text, folder.path(), &[]).expect("what is printed can be run");
            // a mark of the order of bytes in front is none of the first line
            let list = list.strip_prefix('\u{feff}').unwrap_or(&list);
            let wanted = list.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).count();
            // headers and a body may stand in lines of their own below a request line, as vegeta has them
            let below = list.lines().filter(|line| line.contains(':') || line.trim_start().starts_with('@')).count();
            prop_assert!((wanted.saturating_sub(below)..=wanted).contains(&plan.requests.len()), "{}", text);
        }
    }

    #[test]
    fn bodies_are_sent_as_they_are(body in text()) {
        let folder = folder();
        std::fs::write(folder.path().join("body"), &body).expect("a file");
        let text = scenario(folder.path(), &["-B", "body"]).expect("any text may be a body");
        let plan = load_text("hit", &text, folder.path(), &[]).expect("what is printed can be run");
        // an empty one may be none at all
        let sent = plan.requests[0].http().and_then(|request| request.body.as_ref());
        let sent = sent.map(|body| body.parts.clone()).unwrap_or_default();
        let literal: Vec<u8> = sent.iter().flat_map(|part| match part {
            tidemark_scenario::template::Part::Literal(bytes) => bytes.to_vec(),
            hole => panic!("{body:?} has no hole, but this one was found: {hole:?}"),
        }).collect();
        prop_assert_eq!(String::from_utf8_lossy(&literal), body.as_str());
    }

    #[test]
    fn everything_else_is_taken_or_refused(url in text(), header in text(), pattern in text(), objective in text()) {
        let folder = folder();
        let header = format!("X: {header}");
        scenario(folder.path(), &["-H", &header]);
        scenario(folder.path(), &[&format!("--random-path={pattern}")]);
        scenario(folder.path(), &[&format!("--until={objective}")]);
        let output = run(folder.path(), &["hit", "--print-scenario", "--", &format!("h/{url}")]);
        prop_assert!(matches!(code(&output), 0 | 2), "{}", stderr(&output));
    }
}
