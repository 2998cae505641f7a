//! The first minutes with a service of one's own: what README says, word for word, and `init` from what a service tells.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{assert_all_good, assert_says, filled, measured, of, python, services, shop};
use crate::program::{code, run, stderr, stdout, tidemark};

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

/// README's blocks of YAML: a scenario, and a system that it starts.
fn readme() -> [String; 2] {
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).unwrap();
    let mut blocks =
        readme.split("```yaml\n").skip(1).map(|rest| rest.split_once("```").unwrap().0.to_owned());
    [blocks.next().unwrap(), blocks.next().unwrap()]
}

#[test]
fn what_readme_says_works_with_each_of_them() {
    let place = "http://127.0.0.1:8080";
    let [scenario, _] = readme();
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
fn what_readme_says_of_a_service_that_is_started_works_with_fastapi() {
    // whoever is asked for a service says so here where it is not installed
    assert!(shop().url.starts_with("http://"));
    let [scenario, system] = readme();
    assert!(system.contains("command: uvicorn main:app --port {port} "), "{system}");
    let (before, after) = scenario.split_once("system: {url: http://127.0.0.1:8080}\n").unwrap();
    let text = format!("{before}{system}{after}")
        .replace("GET: /\n", "GET: /port\n")
        .replace("warm-up: 2s", "warm-up: 0s");
    let folder = tempfile::tempdir().unwrap();
    // beside the scenario, and not where tidemark is called
    let app = folder.path().join("app");
    fs::create_dir(&app).unwrap();
    let main = fs::read_to_string(services().join("shop.py")).unwrap()
        + "\n\n@app.get('/port')\nasync def port() -> int:\n    import os\n    return int(os.environ['PORT'])\n";
    fs::write(app.join("main.py"), main).unwrap();
    fs::write(app.join("my.yaml"), text).unwrap();
    let path = format!("{}:{}", python().display(), std::env::var("PATH").unwrap());
    let tidemark = |arguments: &[&str]| {
        let mut command = tidemark(folder.path(), &[&["run", "app/my.yaml"], arguments].concat());
        command.env("PATH", &path).output().unwrap()
    };
    let output = tidemark(&["--once", "-v"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert_says(&stdout(&output), &["> GET /port HTTP/1.1", "1 request: all good"]);
    let output = tidemark(&["-d", "1s", "--json", "-q"]);
    let told = stderr(&output);
    assert!([0, 1, 3].contains(&code(&output)), "{told}");
    let summary: Value =
        serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {told}"));
    assert_all_good(&summary);
    assert_eq!(summary["run"]["system"]["name"], "uvicorn");
    assert!(of(&summary, "processes", "name", "system")["cpu_s"].as_f64() > Some(0.0), "{summary}");
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
            "a secret of the scheme OAuth2PasswordBearer",
            "- POST: /login\n        form: {username: \"${username}\", password: \"${password}\"}",
            "auth: {bearer: \"${token}\"}",
        ],
    );
    // as it says itself: the address of the system, and the secrets; who is asked for a token is left out
    let text = made
        .replace("http://127.0.0.1:8080", &shop().url)
        .replace("${env(\"TIDEMARK_PASSWORD\")}", "password of x")
        .replace("  token: ${env(\"TIDEMARK_TOKEN\")}\n", "")
        .replace(
            "      - GET: /me\n        check: {status: 200}\n        auth: {bearer: \"${token}\"}\n",
            "",
        );
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
    let output =
        run(folder.path(), &["init", "shop.har", "--host", &account, "--host", &pages, "-o", "my.yaml"]);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let made = fs::read_to_string(folder.path().join("my.yaml")).unwrap();
    assert_says(&made, &["- POST: /login", "form: {user: ann, password: \"${password}\"}", "- think: "]);
    assert!(!made.contains("plums") && !made.contains("Cookie:"), "{made}");
    let made = made.replace("${env(\"TIDEMARK_PASSWORD\")}", "any");
    fs::write(folder.path().join("my.yaml"), made).unwrap();
    let told = works(folder.path(), "my.yaml");
    // the session has the cookie that it was given
    assert_says(&told, &["> Cookie: sid=***", "\"user\":\"ann\"", "6 requests: all good"]);
}
