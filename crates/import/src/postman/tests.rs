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
    let yaml = imported
        .checked_in(&folder())
        .unwrap_or_else(|error| panic!("{error}\n{}", imported.scenario.to_yaml()));
    (yaml, imported.left_out)
}

#[test]
fn collections_become_what_lies_beside_them() {
    for name in
        ["shop", "scripts", "conditions", "told", "bodies", "auth", "environment", "folders", "answers"]
    {
        let environment = folder().join("test.environment.json");
        let environment = (name == "environment").then(|| environment.to_str().unwrap());
        crate::tests::assert_as_expected(&folder(), name, "json", |file, text| {
            read(file, text, &folder(), environment)
        });
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
            let text =
                with_script(listen, &["pm.globals.set('k', 1);", statement, "pm.globals.set('l', 2);"]);
            let (_, told) = made(&text);
            let line = text
                .lines()
                .position(|line| line.contains(&serde_json::to_string(statement).unwrap()))
                .unwrap()
                + 1;
            let shown: String = statement.trim_end_matches(';').chars().take(40).collect();
            let one = told.iter().find(|one| one.would.contains(&shown));
            let one = one.unwrap_or_else(|| panic!("{statement}: {told:?}"));
            assert_eq!(
                (one.line, one.is_request, told.len()),
                (line, is_request, 1),
                "{statement}: {told:?}"
            );
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
    let folder = tempfile::tempdir().unwrap();
    let large = folder.path().join("large.json");
    std::fs::File::create(&large).unwrap().set_len(100 << 20).unwrap();
    let error = crate::plan(&large, &crate::PlanOptions::default(), folder.path()).unwrap_err().to_string();
    assert!(error.contains("larger than 64 MiB"), "{error}");
    // values that name each other
    let values: Vec<String> = (0..40)
        .map(|at| format!("{{\"key\": \"v{at}\", \"value\": \"{{{{v{0}}}}}{{{{v{0}}}}}\"}}", at + 1))
        .collect();
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
        let places = places(&text);
        let place = places[at % places.len()];
        let value = ["5", "{\"a\": [1]}", "[{\"b\": \"c\"}]"][kind];
        let more = if text[place + 1..].trim_start().starts_with('}') { "" } else { "," };
        let changed = format!("{}{{\"{key}\": {value}{more}{}", &text[..place], &text[place + 1..]);
        let line = text[..place].matches('\n').count() + 1;
        let (_, told) = made(&changed);
        let is_told = told.iter().any(|one| one.element.contains(&key) && one.line == line);
        prop_assert!(is_told, "{name} line {line}: {told:?}");
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

/// Where members of an object can stand that says something of what is sent.
fn places(text: &str) -> Vec<usize> {
    const BEGINS: [&str; 6] =
        ["\"name\":", "\"listen\":", "\"method\":", "\"mode\":", "\"raw\":", "\"exec\":"];
    let is_place = |at: &usize| {
        let rest = text[at + 1..].trim_start();
        let line = rest.lines().next().unwrap_or_default();
        BEGINS.iter().any(|begin| rest.starts_with(begin))
            && !["saved", "Shop", "Bodies", "Folders", "Told"].iter().any(|word| line.contains(word))
    };
    text.match_indices('{').map(|(at, _)| at).filter(is_place).collect()
}
