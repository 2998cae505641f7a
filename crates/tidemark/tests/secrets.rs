//! Nothing secret is written down, with the real executable.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use crate::program::store::Store;
use crate::program::{code, run, send, stderr, stdout, tidemark, wait_until};
use rustix::process::Signal;

/// Every file of a folder that holds one of these texts, with it.
fn found(folder: &Path, secrets: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(self::found(&path, secrets));
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let holds = |secret: &&&str| bytes.windows(secret.len()).any(|window| window == secret.as_bytes());
        found.extend(secrets.iter().filter(holds).map(|secret| format!("{secret} in {}", path.display())));
    }
    found
}

#[test]
fn what_is_secret_on_the_command_line_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::start(0);
    let url = format!("{}/all?from=0&access_token=in-the-query", store.url);
    let header = ["-H", "Authorization: Bearer in-a-header", "-H", "X-Api-Key: in-another"];
    let files = ["--junit", "junit.xml", "--markdown", "run.md", "--csv", "run.csv", "--save=out"];
    let body = ["-m", "GET", "-b", "{\"password\": \"in-the-body\"}"];
    let arguments = [&["hit", &url, "-n", "3", "-q"][..], &header, &files, &body].concat();
    let output = run(folder.path(), &arguments);
    assert!([0, 1, 3].contains(&code(&output)), "{}", stderr(&output));
    let secrets = ["in-the-query", "in-a-header", "in-another", "in-the-body"];
    assert_eq!(found(folder.path(), &secrets), [""; 0]);
    assert!(!secrets.iter().any(|secret| stdout(&output).contains(secret)), "{}", stdout(&output));
    let manifest = fs::read_to_string(folder.path().join("out/run.json")).unwrap();
    assert!(
        manifest.contains("Authorization: Bearer ***") && manifest.contains("access_token=***"),
        "{manifest}"
    );
    assert!(fs::read_to_string(folder.path().join("out/scenario.yaml")).unwrap().contains("Bearer ***"));
}

#[test]
fn what_is_said_about_mistakes_holds_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "system: {url: 'http://127.0.0.1:1'}
sessions: {a: {steps: [{GET: '/${env(\"TIDEMARK_TEST_TOKEN\")}', headers: {X-Auth: not-mine}}]}}
load: {rate: 100/s, hold: 1s}
objectives: ['p99 < ${env(\"TIDEMARK_TEST_TOKEN\")}']
";
    fs::write(folder.path().join("s.yaml"), scenario).unwrap();
    fs::write(folder.path().join("t.yaml"), scenario.lines().take(3).collect::<Vec<_>>().join("\n")).unwrap();
    let simple = "sessions: {a: {steps: [GET: /]}}\nload: {rate: 100/s, hold: 1s}\n";
    fs::write(folder.path().join("u.yaml"), simple).unwrap();
    let of_url = format!("system: {{url: 'me:of-the-environment@127.0.0.1:1'}}\n{simple}");
    fs::write(folder.path().join("v.yaml"), of_url).unwrap();
    for arguments in [
        &["check", "s.yaml"][..],
        &["check", "v.yaml"],
        &["run", "u.yaml", "--url", "me:of-the-environment@127.0.0.1:1", "--out", "of-a-wrong-url"],
        &["run", "u.yaml", "--url=http:/me:of-the-environment@127.0.0.1:1"],
        &["run", "u.yaml", "--url=http://127.0.0.1:1", "--proxy", "me:of-the-environment@127.0.0.1:1"],
        &["run", "t.yaml", "-q", "--out", "of-the-environment"],
        &["hit", "ftp://me:of-the-environment@host/?token=of-the-environment"],
        &["hit", "http://me:a/of-the-environment@127.0.0.1:1/", "-n", "1"],
        &["hit", "me:a/of-the-environment@127.0.0.1:1/", "-n", "1"],
        &["hit", ":1/", "-H", "Cookie; sid=of-the-environment", "-n", "1"],
        &["hit", ":1/?sig=of-the-environment", "-n", "1"],
        &["hit", ":1/", "-H", "X-Auth: of-the-environment\n", "-n", "1"],
        &["hit", ":1/?api_key=of-the-environment", "--until", "p99"],
    ] {
        let mut command = tidemark(folder.path(), arguments);
        let output = command.env("TIDEMARK_TEST_TOKEN", "of-the-environment").output().unwrap();
        assert!([1, 2].contains(&code(&output)), "{arguments:?}: {}", stderr(&output));
        let said = stderr(&output) + &stdout(&output);
        assert!(said.contains("error:") && !said.contains("of-the-environment"), "{arguments:?}: {said}");
    }
    if folder.path().join("of-a-wrong-url").exists() {
        assert_eq!(found(&folder.path().join("of-a-wrong-url"), &["of-the-environment"]), [""; 0]);
    }
}

#[test]
fn the_directory_of_a_run_that_is_not_kept_is_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::start(0);
    let url = format!("{}/count", store.url);
    let mut child = tidemark(folder.path(), &["hit", &url, "--for", "60s", "-c", "1", "-q"])
        .env("TMPDIR", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let of_run = || {
        let mut dirs = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
        dirs.find(|path| path.join("scenario.yaml").is_file())
    };
    wait_until("the run begins", || of_run().is_some());
    let mode = fs::metadata(of_run().unwrap()).unwrap().permissions().mode();
    send(child.id(), Signal::INT);
    child.wait().unwrap();
    assert_eq!(mode & 0o777, 0o700, "{mode:o}");
    assert_eq!(of_run(), None, "it goes with the run");
}

#[test]
fn a_variable_that_is_missing_is_told_and_one_that_is_there_is_in_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::start(0);
    let text = format!(
        "system: {{url: {}}}
settings: {{pass_phrase: of-a-setting}}
sessions:
  a:
    steps:
      - POST: /n
        headers: {{Authorization: 'Bearer ${{env(\"TIDEMARK_TEST_TOKEN\")}}', X-Secret: '${{pass_phrase}}'}}
        ledger: {{content: 'at ${{now()}} |${{entry}}|${{check}}|', as: note}}
        body: ${{note}}
load: {{rate: 100/s, hold: 1s}}
objectives: [lost = 0]
verify:
  contents: {{GET: '/all?of=${{pass_phrase}}', items: '$.items[*]', next: {{json: $.next}}, as: from}}
  headers: {{Authorization: 'Bearer ${{env(\"TIDEMARK_TEST_TOKEN\")}}', X-Other: plain, Cookie: as-it-is}}
",
        store.url
    );
    fs::write(folder.path().join("s.yaml"), text).unwrap();
    let output = run(folder.path(), &["run", "s.yaml", "--out", "none"]);
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    assert!(said.contains("s.yaml:7:") && said.contains("TIDEMARK_TEST_TOKEN is not set"), "{said}");

    let with = |arguments: &[&str]| {
        let mut command = tidemark(folder.path(), arguments);
        command.env("TIDEMARK_TEST_TOKEN", "of-the-environment").output().unwrap()
    };
    let output = with(&["run", "s.yaml", "--out", "out", "--set", "pass_phrase=from-a-flag", "-q"]);
    assert!([0, 3].contains(&code(&output)), "{}{}", stdout(&output), stderr(&output));
    fs::remove_file(folder.path().join("s.yaml")).unwrap();
    let secrets = ["of-the-environment", "of-a-setting", "from-a-flag", "as-it-is"];
    assert_eq!(found(folder.path(), &secrets), [""; 0]);

    // what it was verified with is asked for again, by name
    let output = run(folder.path(), &["verify", "out", "-q"]);
    assert_eq!(code(&output), 2);
    let said = stderr(&output);
    for missing in ["environment variable TIDEMARK_TEST_TOKEN", "--set pass_phrase=…", "--set Cookie=…"] {
        assert!(said.contains(missing), "{missing}: {said}");
    }
    let given = ["verify", "out", "-q", "--set", "pass_phrase=from-a-flag", "--set", "Cookie=as-it-is"];
    let output = with(&given);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    assert_eq!(found(folder.path(), &secrets), [""; 0]);
}
