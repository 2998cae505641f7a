//! Collections of Postman as scenarios.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::LeftOut;

/// Where the collections lie, each with what becomes of it.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/postman")
}

fn read(name: &str, text: &str, folder: &Path, environment: Option<&str>) -> Result<Imported, ImportError> {
    scenario(&Plan { name, text, folder, prefix: "", properties: &[], environment })
}

/// The scenario, in which the checker finds no mistake, and what was told.
fn made(text: &str) -> (String, Vec<LeftOut>) {
    let imported = read("c.json", text, &folder(), None).unwrap_or_else(|error| panic!("{error}"));
    let yaml = imported.checked_in(&folder()).unwrap_or_else(|error| panic!("{error}\n{}", imported.scenario.to_yaml()));
    (yaml, imported.left_out)
}

#[test]
fn collections_become_what_lies_beside_them() {
    for name in ["shop", "scripts", "told", "bodies", "auth", "environment", "folders", "answers"] {
        let environment = folder().join("test.environment.json");
        let environment = (name == "environment").then(|| environment.to_str().unwrap());
        crate::tests::assert_as_expected(&folder(), name, "json", |file, text| read(file, text, &folder(), environment));
    }
}

/// A collection with these items.
fn collection(items: &str) -> String {
    format!(
        "{{\"info\": {{\"name\": \"c\", \"schema\": \"https://schema.getpostman.com/json/collection/v2.1.0/collection.json\"}},\n\"item\": [{items}]}}"
    )
}

/// One with a request whose script is this.
fn with_script(listen: &str, lines: &[&str]) -> String {
    let lines: Vec<String> = lines.iter().map(|line| serde_json::to_string(line).unwrap()).collect();
    collection(&format!(
        "{{\"name\": \"r\", \"event\": [{{\"listen\": \"{listen}\", \"script\": {{\"exec\": [\n{}\n]}}}}], \"request\": \"http://127.0.0.1/a\"}}",
        lines.join(",\n")
    ))
}

#[test]
fn what_is_not_known_of_a_script_is_told_with_its_line() {
    for (statement, is_request) in [
        ("somethingElse(5);", false),
        ("pm.expect(pm.response.json()).to.be.jsonSchema({});", false),
        ("pm.expect(1).to.frobnicate(2);", false),
        ("while (true) { a(); }", false),
        ("pm.sendRequest('http://h', () => {});", true),
        ("pm.environment.set('a', hmac('x'));", true),
        ("postman.setNextRequest('b');", true),
        ("pm.environment.unset('a');", true),
        ("pm.request.headers.add({key: 'a', value: 'b'});", true),
        ("eval('x');", true),
    ] {
        for listen in ["prerequest", "test"] {
            let text = with_script(listen, &["pm.globals.set('k', 1);", statement, "pm.globals.set('l', 2);"]);
            let (_, told) = made(&text);
            let line = text.lines().position(|line| line.contains(&serde_json::to_string(statement).unwrap())).unwrap() + 1;
            let shown: String = statement.trim_end_matches(';').chars().take(40).collect();
            let one = told.iter().find(|one| one.would.contains(&shown));
            let one = one.unwrap_or_else(|| panic!("{statement}: {told:?}"));
            assert_eq!((one.line, one.is_request, told.len()), (line, is_request, 1), "{statement}: {told:?}");
        }
    }
}

#[test]
fn a_collection_needs_something_that_can_be_sent() {
    let told = |text: &str| read("c.json", text, &folder(), None).unwrap_err().to_string();
    assert!(told(&collection("")).contains("nothing of it can be driven here"));
    assert!(told("{\"info\": ").starts_with("c.json:1:9: this is not JSON"), "{}", told("{\"info\": "));
    let error = read("c.json", &collection(""), &folder(), Some("none.json")).unwrap_err().to_string();
    assert!(error.contains("cannot read none.json"), "{error}");
    let marked = collection("\"\u{f0000}\"");
    assert!(told(&marked).contains("private use"));
}

#[test]
fn hostile_collections_are_bounded() {
    let deep = format!("{}{}", "{\"item\": [".repeat(60), "]}".repeat(60));
    assert!(read("c.json", &deep, &folder(), None).unwrap_err().to_string().contains("100 deep"));
    // more requests than are taken: the others are told
    let one = "{\"name\": \"r\", \"request\": \"http://127.0.0.1/a\"}";
    let (yaml, told) = made(&collection(&vec![one; 2_100].join(",\n")));
    assert_eq!(yaml.matches("- GET: /a").count(), 2_000);
    assert!(told.iter().all(|one| one.is_request) && told.len() == 100, "{}", told.len());
    // values that name each other
    let values: Vec<String> = (0..40).map(|at| format!("{{\"key\": \"v{at}\", \"value\": \"{{{{v{0}}}}}{{{{v{0}}}}}\"}}", at + 1)).collect();
    let text = collection("{\"name\": \"r\", \"request\": \"http://127.0.0.1/{{v0}}\"}")
        .replace("\"item\"", &format!("\"variable\": [{}], \"item\"", values.join(",")));
    assert!(made(&text).0.len() < 4 << 20);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever stands somewhere in a collection and is not known is told with its line.
    #[test]
    fn what_is_not_known_is_told(at in 0usize..10_000, key in "zz[a-z]{6}", which in 0usize..4, kind in 0usize..3) {
        let name = ["shop", "bodies", "folders", "told"][which];
        let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
        let places: Vec<usize> = text.match_indices('{').filter(|(at, _)| is_object(&text, *at)).map(|(at, _)| at).collect();
        let place = places[at % places.len()];
        let value = ["5", "{\"a\": [1]}", "[{\"b\": \"c\"}]"][kind];
        let more = if text[place + 1..].trim_start().starts_with('}') { "" } else { "," };
        let changed = format!("{}{{\"{key}\": {value}{more}{}", &text[..place], &text[place + 1..]);
        let line = text[..place].matches('\n').count() + 1;
        let (_, told) = made(&changed);
        let is_told = told.iter().any(|one| one.element.contains(&key) && one.line == line);
        let is_elsewhere = is_ignored(&text, place);
        prop_assert!(is_told || is_elsewhere, "{name} line {line}: {told:?}");
    }

    /// Scripts of any text are read, and what is made passes the check.
    #[test]
    fn any_script_is_read(lines in proptest::collection::vec("[ -~]{0,60}", 0..6), begin in 0usize..5) {
        let begin = ["", "pm.test('x', function () {", "pm.expect(pm.response.json().a)", "pm.environment.set('a', ", "var a = "][begin];
        let mut all = vec![begin];
        all.extend(lines.iter().map(String::as_str));
        let _ = made(&with_script("test", &all));
        let _ = made(&with_script("prerequest", &all));
    }
}

/// Whether a brace begins an object, and is no part of a text.
fn is_object(text: &str, at: usize) -> bool {
    let before = &text[..at];
    let line = &before[before.rfind('\n').map_or(0, |at| at + 1)..];
    let quotes = line.replace("\\\"", "").matches('"').count();
    quotes % 2 == 0
}

/// Whether a place is within what says nothing of what is sent: `info`, saved answers, what is off.
fn is_ignored(text: &str, place: usize) -> bool {
    let (mut depth, mut begin) = (0i32, place);
    // the object that it stands in, and those around it
    let bytes = text.as_bytes();
    let whole = |from: usize| {
        let (mut open, mut to) = (0i32, from);
        for (at, byte) in text.bytes().enumerate().skip(from) {
            open += i32::from(byte == b'{' && is_object(text, at)) - i32::from(byte == b'}' && is_object(text, at));
            if open == 0 {
                to = at;
                break;
            }
        }
        &text[from..to]
    };
    loop {
        let before = text[..begin].trim_end().trim_end_matches('[').trim_end();
        let off = ["\"info\":", "\"response\":", "\"auth\":", "\"digest\":", "\"proxy\":", "\"somethingNew\":"];
        if off.iter().any(|key| before.ends_with(key)) || whole(begin).contains("\"disabled\": true") && !whole(begin).contains("\"name\"") {
            return true;
        }
        // outwards
        depth = 0;
        let outer = (0..begin).rev().find(|at| {
            depth += i32::from(bytes[*at] == b'}' && is_object(text, *at));
            depth -= i32::from(bytes[*at] == b'{' && is_object(text, *at));
            depth < 0
        });
        let _ = depth;
        match outer {
            Some(outer) => begin = outer,
            None => return false,
        }
    }
}
