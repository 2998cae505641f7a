//! The file read back by an XML reader, and held against the schema's rules.

use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

use super::*;
use crate::test_run;

/// An element as it was opened: its path, and its attributes.
type Element = (String, Vec<(String, String)>);

fn attributes(start: &BytesStart<'_>) -> Vec<(String, String)> {
    let one = |attribute: Result<quick_xml::events::attributes::Attribute<'_>, _>| {
        let attribute = attribute.unwrap();
        let raw = &*attribute.value;
        assert!(!raw.contains(['<', '\n', '\r', '\t']), "{raw:?}");
        let value = quick_xml::escape::unescape(raw).unwrap().into_owned();
        (attribute.key.as_ref().to_owned(), value)
    };
    start.attributes().map(one).collect()
}

/// Every element in order; panics where the file is not well-formed.
fn elements(xml: &str) -> Vec<Element> {
    let mut reader = Reader::from_str(xml);
    let mut path: Vec<String> = Vec::new();
    let mut elements = Vec::new();
    loop {
        match reader.read_event().unwrap() {
            Event::Start(start) => {
                path.push(start.name().as_ref().to_owned());
                elements.push((path.join("/"), attributes(&start)));
            }
            Event::Empty(start) => {
                let name = start.name().as_ref().to_owned();
                let name = path.iter().cloned().chain([name]).collect::<Vec<_>>().join("/");
                elements.push((name, attributes(&start)));
            }
            Event::End(_) => drop(path.pop().unwrap()),
            Event::Eof => break,
            _ => {}
        }
    }
    assert!(path.is_empty(), "{path:?} is still open");
    elements
}

fn get<'e>(element: &'e Element, name: &str) -> &'e str {
    let found = element.1.iter().find(|(key, _)| key == name);
    found.map(|(_, value)| value.as_str()).unwrap_or_else(|| panic!("{} has no {name}", element.0))
}

fn named<'e>(elements: &'e [Element], path: &str) -> Vec<&'e Element> {
    elements.iter().filter(|(of, _)| of == path).collect()
}

const SUITE: &str = "testsuites/testsuite";
const CASE: &str = "testsuites/testsuite/testcase";

#[test]
fn a_failed_run_has_a_case_for_the_verdict_and_each_objective() {
    let (_dir, run) = test_run::airline();
    let elements = elements(&xml(&run));
    let suites = named(&elements, SUITE);
    let [suite] = suites[..] else { panic!("one suite") };
    let counts = ["tests", "failures", "errors", "skipped", "id"].map(|name| get(suite, name));
    assert_eq!(counts, ["3", "2", "0", "0", "0"]);
    assert_eq!(get(suite, "name"), "tidemark.airline");
    assert_eq!(get(suite, "timestamp"), "2026-01-02T03:04:05");
    assert_eq!((get(suite, "time"), get(suite, "hostname")), ("3.000", "localhost"));
    let cases: Vec<_> = named(&elements, CASE).into_iter().map(|case| get(case, "name")).collect();
    assert_eq!(cases, ["verdict", "p99 < 2s", "errors < 0.01%"]);
    let failures: Vec<_> = named(&elements, &format!("{CASE}/failure"))
        .into_iter()
        .map(|failure| (get(failure, "type"), get(failure, "message")))
        .collect();
    assert_eq!(failures, [("fail", "errors < 0.01% missed: 5.88%"), ("objective", "measured: 5.88%")]);
}

#[test]
fn the_order_and_the_attributes_are_those_of_the_schema() {
    let (_dir, run) = test_run::airline();
    let elements = elements(&xml(&run));
    let mut children: Vec<&str> = elements
        .iter()
        .filter_map(|(path, _)| path.strip_prefix(SUITE)?.strip_prefix('/'))
        .filter(|name| !name.contains('/'))
        .collect();
    children.dedup();
    assert_eq!(children, ["properties", "testcase", "system-out", "system-err"]);
    assert!(elements[0].1.is_empty(), "testsuites has no attributes");
    for case in named(&elements, CASE) {
        let names: Vec<&str> = case.1.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["classname", "name", "time"]);
        assert!(get(case, "time").parse::<f64>().is_ok());
    }
    for property in named(&elements, &format!("{SUITE}/properties/property")) {
        assert!(!get(property, "name").is_empty() && !get(property, "value").is_empty());
    }
}

#[test]
fn an_invalid_run_proves_nothing() {
    let (_dir, mut run) = test_run::airline();
    run.manifest.summary.verdict.status = Status::Invalid;
    run.manifest.summary.verdict.reasons = vec!["driver-bound: more threads".into(), "and more".into()];
    let elements = elements(&xml(&run));
    let suite = named(&elements, SUITE)[0];
    assert_eq!(["failures", "errors", "skipped"].map(|name| get(suite, name)), ["1", "1", "1"]);
    let error = named(&elements, &format!("{CASE}/error"))[0];
    assert_eq!((get(error, "type"), get(error, "message")), ("invalid", "driver-bound: more threads"));
    let skipped = named(&elements, &format!("{CASE}/skipped"))[0];
    assert!(get(skipped, "message").contains("1.05s proves nothing"));
}

#[test]
fn a_run_that_passed_has_neither_failures_nor_errors() {
    let (_dir, mut run) = test_run::airline();
    run.manifest.summary.verdict.status = Status::Pass;
    run.manifest.objectives.truncate(1);
    let elements = elements(&xml(&run));
    let suite = named(&elements, SUITE)[0];
    assert_eq!(["tests", "failures", "errors", "skipped"].map(|name| get(suite, name)), ["2", "0", "0", "0"]);
    assert!(!elements.iter().any(|(path, _)| path.ends_with("/failure") || path.ends_with("/error")));
}

#[test]
fn nothing_in_a_run_breaks_out() {
    let (_dir, mut run) = test_run::airline();
    let nasty = "a\"b'<c>&amp;]]></system-out>\r\n\t\u{0}\u{1b}[31m\u{ffff}é";
    run.manifest.scenario = nasty.into();
    run.manifest.objectives[1].objective = nasty.into();
    run.manifest.objectives[1].measured = nasty.into();
    run.manifest.summary.verdict.reasons = vec![nasty.into()];
    run.manifest.started_at = "2026-01-02\"><x y=".into();
    let xml = xml(&run);
    let elements = elements(&xml);
    let kept = "a\"b'<c>&amp;]]></system-out>\r\n\t\u{fffd}\u{fffd}[31m\u{fffd}é";
    assert_eq!(get(named(&elements, CASE)[2], "name"), kept);
    assert_eq!(get(named(&elements, SUITE)[0], "name"), format!("tidemark.{kept}"));
    assert_eq!(get(named(&elements, SUITE)[0], "timestamp"), NO_TIME);
    assert!(!xml.contains(['\u{0}', '\u{1b}', '\u{ffff}']));
    assert_eq!(elements.iter().filter(|(path, _)| path.ends_with("system-out")).count(), 1);
}
