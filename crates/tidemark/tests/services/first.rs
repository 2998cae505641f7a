//! The first minutes with a service of one's own: what README says, word for word, and `init` from what a service tells.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{assert_all_good, assert_says, filled, measured, services, shop};
use crate::program::{code, run, stderr, stdout};

/// Checks a scenario, sends one session of it, and drives it for a second; all is to go well.
fn works(folder: &Path, scenario: &str) -> String {
    let output = run(folder, &["check", scenario]);
    assert_eq!((code(&output), stderr(&output).as_str()), (0, ""), "{}", stdout(&output));
    let output = run(folder, &["run", scenario, "--once", "-v"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    // as it is, but for the time that it takes
    let text = fs::read_to_string(folder.join(scenario)).unwrap();
    fs::write(
        folder.join("short.yaml"),
        text.replace("warm-up: 2s", "warm-up: 0s").replace("warm-up: 5s", "warm-up: 0s"),
    )
    .unwrap();
    assert_all_good(&measured(folder, &["run", "short.yaml", "-d", "1s"]));
    stdout(&output)
}

#[test]
fn what_readme_says_works_with_each_of_them() {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let block = |mark: &str| {
        let (_, rest) = readme.split_once(&format!("```{mark}\n")).unwrap();
        rest.split_once("```").unwrap().0
    };
    let place = "http://127.0.0.1:8080";
    let scenario = block("yaml");
    assert!(scenario.contains(&format!("url: {place}")), "{scenario}");
    // FastAPI has no page at / unless somebody makes one
    for (name, path) in [("{httpbin}", "/"), ("{account}", "/"), ("{shop}", "/items"), ("{nginx}", "/")] {
        let folder = tempfile::tempdir().unwrap();
        let text = scenario.replace(place, &filled(name)).replace("GET: /\n", &format!("GET: {path}\n"));
        fs::write(folder.path().join("my.yaml"), text).unwrap();
        works(folder.path(), "my.yaml");
        // and the command that writes one like it
        let url = format!("{}{path}", filled(name));
        let output = run(folder.path(), &["init", &url, "-o", "made.yaml"]);
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        works(folder.path(), "made.yaml");
    }
}

#[test]
fn fastapis_own_document_becomes_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let document = filled("{shop}/openapi.json");
    let file = folder.path().join("openapi.json");
    let curl = Command::new("curl").args(["-sS", &document, "-o"]).arg(file).status().unwrap();
    assert!(curl.success());
    let output = run(folder.path(), &["init", "openapi.json", "-o", "my.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let made = fs::read_to_string(folder.path().join("my.yaml")).unwrap();
    assert_says(
        &made,
        &[
            "- GET: /items/${number}",
            "#   json: {name: lamp, price: 9.5}",
            "#   check: {status: 201}",
            "The API requires authentication",
            "{auth: {bearer: '${env(\"TOKEN\")}'}}",
        ],
    );
    // as it says itself: the address of the system; who is asked for a token is left out
    let text = made
        .replace("http://127.0.0.1:8080", &shop().url)
        .replace("      - GET: /me\n        check: {status: 200}\n", "");
    fs::write(folder.path().join("my.yaml"), text).unwrap();
    works(folder.path(), "my.yaml");
}

#[test]
fn what_a_browser_did_is_done_again() {
    let folder = tempfile::tempdir().unwrap();
    let recording = fs::read_to_string(services().join("account.har")).unwrap();
    let bare = |url: String| url.trim_start_matches("http://").to_owned();
    let (account, pages) = (bare(filled("{account}")), bare(filled("{nginx}")));
    let recording = recording.replace("127.0.0.1:3000", &account).replace("127.0.0.1:8080", &pages);
    fs::write(folder.path().join("shop.har"), recording).unwrap();
    let output = run(folder.path(), &["init", "shop.har", "--host", &pages, "-o", "my.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let made = fs::read_to_string(folder.path().join("my.yaml")).unwrap();
    assert_says(&made, &["- POST: /login", "form: {user: ann, password: \"${password}\"}", "- think: "]);
    assert!(!made.contains("plums") && !made.contains("Cookie:"), "{made}");
    let told = works(folder.path(), "my.yaml");
    // the session has the cookie that it was given
    assert_says(&told, &["> Cookie: sid=***", "\"user\":\"ann\"", "6 requests: all good"]);
}
