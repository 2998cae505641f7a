//! What must not be written down: a plan's texts do not hold it.

use std::path::Path;

use tidemark_scenario::plan::SystemOrigin;
use tidemark_scenario::{Diagnostics, Plan, load_text};

fn load(text: &str, settings: &[(&str, &str)]) -> Result<Plan, Diagnostics> {
    let settings: Vec<_> = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    load_text("s.yaml", text, Path::new("."), &settings)
}

const LOAD: &str = "\nload: {users: 1, hold: 1s}\n";

#[test]
fn a_plans_texts_hold_no_secret() {
    let text = r#"
name: trial
# the key was once given-outside, now it is written-here
settings: {api_key: written-here, token_bytes: 64KiB, n: 5}
system: {url: 'http://host', command: [./server, --admin-password, hunter2, --port, 80]}
stores: {people: {product: postgres, url: 'postgres://me:mine@host', when: false}}
"#;
    let text = text.replace(", command: [./server, --admin-password, hunter2, --port, 80]", "")
        + r#"sessions:
  s:
    steps:
      - POST: /a?access_token=in-the-path&n=${n}&key=${api_key}
        headers:
          Authorization: Bearer in-a-header
          Cookie: "session=${n}"
          Accept: text/html
          X-Api-Key: ${api_key}
        json: {password: in-a-body, name: kept, token: "${uuid()}", deep: {secrets: [one-of-two, two-of-two]}}
        check: {json: {$.token: exists}}
verify: {contents: {GET: /all, items: $}, headers: {X-Auth-Token: of-verify}}"#
        + LOAD;
    let plan = load(&text, &[("api_key", "given-outside")]).unwrap();
    let wanted = [
        "# the key was once ***, now it is ***",
        r#"settings: {api_key: "***", token_bytes: 64KiB, n: 5}"#,
        "system: {url: 'http://host'}",
        r#"stores: {people: {product: postgres, url: "postgres://***@host", when: false}}"#,
        r#"      - POST: "/a?access_token=***&n=${n}&key=${api_key}""#,
        r#"          Authorization: "Bearer ***""#,
        r#"          Cookie: "***${n}""#,
        "          Accept: text/html",
        "          X-Api-Key: ${api_key}",
        r#"        json: {password: "***", name: kept, token: "${uuid()}", deep: {secrets: ["***", "***"]}}"#,
        "        check: {json: {$.token: exists}}",
        r#"verify: {contents: {GET: /all, items: $}, headers: {X-Auth-Token: "***"}}"#,
    ];
    let lines: Vec<&str> = plan.source.lines().collect();
    for line in wanted {
        assert!(lines.contains(&line), "no line {line} in\n{}", plan.source);
    }
    assert_eq!(plan.labels, ["POST /a?access_token=***&n=${n}&key=${api_key}"]);
    for secret in ["given-outside", "written-here", "in-a-header", "of-verify"] {
        assert_eq!(plan.secrets.masked(&format!("it was {secret}.")), "it was ***.");
    }
}

#[test]
fn arguments_of_calls_are_masked_by_their_names() {
    let steps =
        "[{CALL: a.b, args: {password: of-mine, of: shown}}, {CALL: a.b, args: [{token: of-another}]}]";
    let source = load(&format!("sessions: {{s: {{steps: {steps}}}}}{LOAD}"), &[]).unwrap().source;
    assert!(!source.contains("of-mine") && !source.contains("of-another"), "{source}");
    assert!(source.contains("of: shown"), "{source}");
}

#[test]
fn labels_that_differ_by_a_secret_stay_two() {
    let steps = "[GET: '/a?token=one-of-them', GET: '/a?token=another-one']";
    let plan = load(&format!("sessions: {{s: {{steps: {steps}}}}}{LOAD}"), &[]).unwrap();
    assert_eq!(plan.labels, ["GET /a?token=***", "GET /a?token=*** (2)"]);
}

#[test]
fn a_variable_of_the_environment_is_read_once_and_is_a_secret() {
    // cargo sets it for every test
    let value = env!("CARGO_PKG_NAME");
    for name in ["CARGO_PKG_NAME", "\"CARGO_PKG_NAME\"", "'CARGO_PKG_NAME'"] {
        let hole = format!("'http://${{env({})}}'", name.replace('\'', "''"));
        let text = format!("system: {{url: {hole}}}\nsessions: {{s: {{steps: [GET: /a]}}}}{LOAD}");
        let plan = load(&text, &[]).unwrap();
        let origin = &plan.system.origin;
        assert!(matches!(origin, SystemOrigin::Url(url) if *url == format!("http://{value}")), "{origin:?}");
        assert_eq!(plan.secrets.masked(&format!("it was {value}")), "it was ***");
        assert!(plan.source.contains("CARGO_PKG_NAME"), "its name stays");
    }
}

#[test]
fn a_variable_that_is_not_set_is_told_with_its_place_unless_there_is_a_default() {
    let text = |expression: &str| {
        format!(
            "settings:\n  host: '${{{expression}}}'\nsystem: {{url: 'http://${{host}}'}}\nsessions: {{s: {{steps: [GET: /a]}}}}{LOAD}"
        )
    };
    let error = load(&text("env(\"TIDEMARK_NOT_SET\")"), &[]).unwrap_err().to_string();
    assert!(
        error.starts_with("s.yaml:2:16: the environment variable TIDEMARK_NOT_SET is not set; set it, or"),
        "{error}"
    );
    let plan = load(&text("env(TIDEMARK_NOT_SET, \"localhost\")"), &[]).unwrap();
    let origin = &plan.system.origin;
    assert!(matches!(origin, SystemOrigin::Url(url) if url == "http://localhost"), "{origin:?}");
    assert_eq!(plan.secrets.masked("at localhost"), "at localhost", "what stands in the file is no secret");
}

#[test]
fn what_is_told_about_mistakes_holds_no_secret_and_marks_the_right_place() {
    let value = env!("CARGO_PKG_NAME");
    let text = format!(
        "settings: {{api_key: not-for-everyone}}\nsystem: {{url: 'http://${{env(CARGO_PKG_NAME)}} x'}}\nsessions:\n  s:\n    \
         steps:\n      - GET: '/a?sig=of-mine&b=${{nothing}}'\n      - {{GET: /, not-for-everyone: '${{none}}'}}{LOAD}"
    );
    let told = load(&text, &[]).unwrap_err().to_string();
    assert!(
        !told.contains(value) && !told.contains("not-for-everyone") && !told.contains("of-mine"),
        "{told}"
    );
    assert!(told.contains("sig=*******&b=${nothing}"), "{told}");
    let lines: Vec<&str> = told.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains("unknown name \"nothing\"") || line.contains("\"nothing\""));
    let at = at.unwrap_or_else(|| panic!("{told}"));
    assert_eq!(lines[at + 1].find("nothing"), lines[at + 2].find('^'), "{told}");
}

#[test]
fn shipped_scenarios_are_kept_as_they_are() {
    for name in tidemark_scenario::shipped_names() {
        let Ok(plan) = tidemark_scenario::load_shipped(name, &[]) else { continue };
        assert_eq!(plan.source, tidemark_scenario::shipped(name).unwrap(), "{name}");
    }
}
