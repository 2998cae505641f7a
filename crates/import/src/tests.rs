//! Whatever is read, what is written passes the check, and says nothing that it should not.

use serde_json::{Value as Json, json};

use super::*;

mod any;
mod documents;
mod recordings;
mod secrets;

/// Its text, which has no mistakes.
fn checked(made: &Imported) -> String {
    made.checked().unwrap_or_else(|error| {
        panic!(
            "{error}
{}",
            made.scenario.to_yaml()
        )
    })
}

fn har_of(recording: &Json, hosts: &[&str]) -> Result<Imported, ImportError> {
    let hosts: Vec<String> = hosts.iter().map(|host| (*host).to_owned()).collect();
    har::scenario("shop.har", &recording.to_string(), &hosts)
}

/// An entry of a recording, with more members.
fn entry_of(method: &str, url: &str, status: u64, more: Json) -> Json {
    let mut entry =
        json!({"request": {"method": method, "url": url, "headers": []}, "response": {"status": status}});
    if !more.is_null() {
        merge(&mut entry, more);
    }
    entry
}

fn merge(into: &mut Json, more: Json) {
    match (into, more) {
        (Json::Object(into), Json::Object(more)) => {
            more.into_iter().for_each(|(key, value)| merge(into.entry(key).or_insert(Json::Null), value));
        }
        (into, more) => *into = more,
    }
}

/// The scenario of a recording with these pages and entries.
fn recorded(pages: Json, entries: &[Json], hosts: &[&str]) -> Imported {
    har_of(&json!({"log": {"pages": pages, "entries": entries}}), hosts).unwrap()
}

/// The lines of a document's scenario.
fn documented(document: &Json) -> String {
    checked(&openapi::scenario("x.json", document).unwrap())
}

fn has_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|found| found.trim() == *line), "{line}\n{text}");
    }
}

#[test]
fn what_cannot_be_read_says_why() {
    let refused = |made: Result<Imported, ImportError>| made.unwrap_err().to_string();
    let of = |document: Json| refused(openapi::scenario("x.json", &document));
    assert!(of(json!({"swagger": "1.2"})).contains("Swagger 1.2"));
    assert!(of(json!({"openapi": "4.0"})).contains("OpenAPI 4.0"));
    assert!(of(json!({"openapi": "3.0.0"})).contains("no paths"));
    assert!(of(json!([1])).contains("neither an OpenAPI document"));
    assert!(refused(har_of(&json!({"log": {}}), &[])).contains("no requests"));
    let blocked = json!({"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}, "response": {"status": 0}}]}});
    assert!(refused(har_of(&blocked, &[])).contains("without an answer"));
    let one = json!({"log": {"entries": [{"request": {"method": "GET", "url": "http://h/"}}]}});
    assert!(refused(har_of(&one, &["other"])).contains("--host other; it has h"));
    assert!(refused(page::scenario("ftp://h/").map(Into::into)).contains("http://"));
    assert!(refused(page::scenario("http://u:p@h/").map(Into::into)).contains("leave name and password out"));
    assert!(refused(page::scenario("redis://h").map(Into::into)).contains("docs/kv.md"));
    let broken = kind("x.har", "{\"log\":\n [1,}").err().unwrap().to_string();
    assert!(broken.starts_with("x.har:2:5: "), "{broken}");
}

#[test]
fn files_of_a_plan_are_named_from_where_the_scenario_lies() {
    let folder = tempfile::tempdir().unwrap();
    let of = |name: &str| folder.path().join(name);
    std::fs::create_dir_all(of("plans/a")).unwrap();
    std::fs::create_dir_all(of("mine/b")).unwrap();
    for (plans, beside, says) in [
        ("plans", "plans", ""),
        ("plans", "", "plans/"),
        ("plans/a", "plans", "a/"),
        ("", "mine", "../"),
        ("plans/a", "mine/b", "../../plans/a/"),
        ("none", "mine", ""),
    ] {
        assert_eq!(prefix(&of(plans), &of(beside)), says, "{plans} from {beside}");
    }
}

/// What is made of a file is what lies beside it: what is told, then the scenario.
pub(crate) fn assert_as_expected(
    folder: &Path,
    name: &str,
    end: &str,
    read: impl Fn(&str, &str) -> Result<Imported, ImportError>,
) {
    let file = format!("{name}.{end}");
    let text = std::fs::read_to_string(folder.join(&file)).unwrap();
    let made = read(&file, &text).unwrap_or_else(|error| panic!("{error}"));
    let yaml = made.checked_in(folder).unwrap_or_else(|error| panic!("{error}\n{}", made.scenario.to_yaml()));
    let mark = |is_request| if is_request { "#!" } else { "# " };
    let told: String = made.left_out.iter().map(|one| format!("{} {one}\n", mark(one.is_request))).collect();
    let all = format!("{told}{yaml}");
    let expected = folder.join(format!("{name}.expected"));
    if std::env::var_os("TIDEMARK_WRITE_EXPECTED").is_some() {
        std::fs::write(&expected, &all).unwrap();
    }
    let expected = std::fs::read_to_string(expected).unwrap_or_default();
    assert_eq!(all, expected, "{file}: read the difference; TIDEMARK_WRITE_EXPECTED=1 takes it over");
}
