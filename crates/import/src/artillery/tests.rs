//! Scripts of Artillery as scenarios.

use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::*;
use crate::LeftOut;

/// Where the scripts lie, each with what becomes of it.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/artillery")
}

fn read(name: &str, text: &str, environment: Option<&str>) -> Result<Imported, ImportError> {
    scenario(&Plan { name, text, folder: &folder(), prefix: "", properties: &[], environment })
}

/// The scenario, in which the checker finds no mistake, and what was told.
fn made(text: &str) -> (String, Vec<LeftOut>) {
    let imported = read("a.yml", text, None).unwrap_or_else(|error| panic!("{error}"));
    let yaml = imported
        .checked_in(&folder())
        .unwrap_or_else(|error| panic!("{error}\n{}", imported.scenario.to_yaml()));
    (yaml, imported.left_out)
}

#[test]
fn scripts_become_what_lies_beside_them() {
    for (name, end, environment) in [
        ("shop", "yml", None),
        ("loops", "yml", None),
        ("socket", "yml", None),
        ("told", "yml", None),
        ("bodies", "yml", None),
        ("environments", "json", Some("local")),
        ("captures", "yml", None),
        ("ensure", "yml", None),
    ] {
        crate::tests::assert_as_expected(&folder(), name, end, |file, text| read(file, text, environment));
    }
    // without phases one user comes
    let (yaml, left_out) =
        made("config: {target: 'http://127.0.0.1:1'}\nscenarios: [{flow: [{get: {url: /a}}]}]\n");
    assert!(
        left_out.is_empty() && yaml.contains("  users: 1\n") && yaml.contains("  sessions: 1\n"),
        "{yaml}"
    );
    // the target as it is written
    let (yaml, _) =
        made("config: {target: 'http://h/'}\nscenarios: [{flow: [{get: {url: '{{ target }}get'}}]}]\n");
    assert!(yaml.contains("- GET: /get\n"), "{yaml}");
}

#[test]
fn an_environment_has_a_name_of_the_script() {
    let text = std::fs::read_to_string(folder().join("environments.json")).unwrap();
    let made = read("a.json", &text, Some("staging")).unwrap();
    let yaml = made.checked_in(&folder()).unwrap();
    for says in
        ["url: https://staging.example\n", "insecure: true", "rate: 10/s to 100/s", "- GET: /base/of/common/"]
    {
        assert!(yaml.contains(says), "{says}: {yaml}");
    }
    let error = |environment| read("a.json", &text, environment).unwrap_err().to_string();
    assert!(error(Some("none")).contains("no environment \"none\" in it; it has: local, staging"));
    assert!(
        error(None).contains("has no target; give an environment: --environment NAME"),
        "{}",
        error(None)
    );
}

#[test]
fn hostile_scripts_are_bounded() {
    let told = |text: &str| read("a.yml", text, None).unwrap_err().to_string();
    let bomb: String = (1..30).map(|at| format!("a{at}: &a{at} [*a{0}, *a{0}]\n", at - 1)).collect();
    let bomb = format!("a0: &a0 [x, y]\n{bomb}config: {{target: http://h}}\nscenarios: []\n");
    assert!(told(&bomb).contains("more than"), "{}", told(&bomb));
    let deep = format!("config: {{target: http://h}}\nscenarios: {}{}", "[".repeat(100), "]".repeat(100));
    assert!(told(&deep).contains("deep"), "{}", told(&deep));
    assert!(told(&"x".repeat(5 << 20)).contains("4 MiB"));
    assert!(told("config: {target: http://h}\nscenarios: []\n").contains("nothing of it can be driven here"));
    let loops = format!("{}get: {{url: /a}}{}", "{loop: [{".repeat(20), "}], count: 2}".repeat(20));
    let text = format!(
        "config: {{target: http://h, phases: [{{duration: 1, arrivalRate: 1}}]}}\nscenarios: [{{flow: [{{get: {{url: /b}}}}, {loops}]}}]\n"
    );
    match read("a.yml", &text, None) {
        Ok(made) => {
            assert!(made.left_out.iter().any(|one| one.would.contains("loops deep") && one.is_request))
        }
        Err(error) => assert!(error.to_string().contains("deep"), "{error}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever stands somewhere in a script and is not known is told with its line.
    #[test]
    fn what_is_not_known_is_told(at in 0usize..10_000, key in "zz[a-z]{6}", which in 0usize..5, kind in 0usize..3) {
        let name = ["shop", "loops", "bodies", "captures", "ensure"][which];
        let text = std::fs::read_to_string(folder().join(format!("{name}.yml"))).unwrap();
        // in front of lines that begin with a key of a mapping whose keys the script does not choose itself
        let lines: Vec<&str> = text.lines().collect();
        let own = ["headers:", "variables:", "json:", "form:", "formData:", "qs:", "cookie:", "plugins:", "ensure:", "expect:", "body: |"];
        let places: Vec<usize> = (1..lines.len()).filter(|at| {
            let line = lines[*at];
            let indent = line.len() - line.trim_start().len();
            let is_key = line.trim_start().starts_with(|c: char| c.is_ascii_alphabetic()) && line.contains(':');
            let mut level = indent;
            let parents: Vec<&str> = lines[..*at].iter().rev().filter_map(|line| {
                let own = line.len() - line.trim_start().len();
                (own < level).then(|| { level = own; line.trim().trim_start_matches("- ") })
            }).collect();
            is_key && !parents.iter().any(|parent| own.contains(parent))
        }).collect();
        let place = places[at % places.len()];
        let indent = lines[place].len() - lines[place].trim_start().len();
        let value = ["5", "{a: [1]}", "[{b: c}]"][kind];
        let mut changed: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        changed.insert(place, format!("{}{key}: {value}", " ".repeat(indent)));
        let (_, told) = made(&(changed.join("\n") + "\n"));
        let is_told = told.iter().any(|one| one.element.contains(&key) && one.line == place + 1);
        prop_assert!(is_told, "{name} line {}: {told:?}", place + 1);
    }

    /// Templates and conditions of any text are read, and what is made passes the check.
    #[test]
    fn any_template_is_read(text in "[ -~]{0,40}", condition in "[a-z0-9<>=()\" ]{0,20}", path in "[$.\\[\\]*a-z0-9:,]{0,12}") {
        let quoted = |text: &str| serde_json::to_string(text).unwrap();
        let flow = format!(
            "{{\"get\": {{\"url\": {}, \"ifTrue\": {}, \"headers\": {{\"a\": {}}}, \"capture\": {{\"json\": {}, \"as\": \"v\"}}}}}}",
            quoted(&format!("/{text}")), quoted(&condition), quoted(&format!("{{{{{text}}}}}")), quoted(&path)
        );
        let whole = format!(
            "{{\"config\": {{\"target\": \"http://h\", \"phases\": [{{\"duration\": 1, \"arrivalRate\": 1}}]}}, \"scenarios\": [{{\"flow\": [{flow}]}}]}}"
        );
        let _ = made(&whole);
    }
}
