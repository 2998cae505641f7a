//! What must not be written down: a plan's texts do not hold it.

use std::path::Path;

use crate::support;
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

/// What stands beside a secret's name is known wherever somebody says it again.
#[test]
fn literals_beside_a_secrets_name_are_masked_wherever_they_appear() {
    for step in [
        "POST: /a, json: {user: a, password: Hunter2xZq}",
        "POST: /a, json: {password: {deep: [Hunter2xZq]}}",
        "POST: /a, json: {passwords: [a, {b: Hunter2xZq}]}",
        "POST: /a, form: {user: a, api_key: Hunter2xZq}",
        "POST: /a, form: {password: 'Hunter2xZq${random(1, 9)}'}",
        "GET: /a, query: {access_token: Hunter2xZq}",
        "GET: '/a?api_key=Hunter2xZq&n=5'",
        "GET: '/a?api_key=Hunter2x%5Aq&n=5'",
        r#"POST: /a, body: '{"password":"Hunter2xZq"}'"#,
        r#"POST: /a, body: '{"password":{"a":"Hunter2x\u005aq"}}'"#,
        "POST: /a, body: 'user=a&password=Hunter2xZq'",
        "POST: /a, body: '<a><password>Hunter2xZq</password></a>'",
        r#"POST: /a, json: {query: 'mutation { login(user: "a", password: "Hunter2xZq") { t } }'}"#,
        r#"POST: /a, body: '{"query": "{login(password: \"Hunter2xZq\")}"}'"#,
        "POST: /a, multipart: {password: Hunter2xZq}",
        "POST: /a, multipart: {password: {text: Hunter2xZq, type: text/plain}}",
        "GET: /a, headers: {Cookie: 'theme=dark; sid=Hunter2xZq'}",
        "GET: /a, headers: {X-Api-Key: [Hunter2xZq]}",
        "GET: /a, auth: {bearer: Hunter2xZq}",
    ] {
        let plan = load(&format!("sessions: {{s: {{steps: [{{{step}}}]}}}}{LOAD}"), &[]);
        let plan = plan.unwrap_or_else(|error| panic!("{step}: {error}"));
        let told = plan.secrets.masked("got Hunter2xZq, text/plain, or Hunter2x%5aq");
        assert!(!told.contains("Hunter2xZq") && told.contains("text/plain"), "{step}: {told}");
        assert!(!plan.source.contains("Hunter2xZq"), "{step}: {}", plan.source);
    }
    let signed = "sessions: {s: {steps: [{GET: /a, headers: {Cookie: 'connect.sid=s%3AHunter2xZq'}}]}}";
    let plan = load(&format!("{signed}{LOAD}"), &[]).unwrap();
    assert_eq!(plan.secrets.masked("got s:Hunter2xZq, s%3AHunter2xZq"), "got ***, ***");
    let set = "sessions: {s: {steps: [{set: {password: Hunter2xZq}}, {GET: /a}]}}";
    let of_command = r#"system: {command: './x --n 5 --token Hunter2xZq --api-key=Hunter2xZq -H "Cookie: a=Hunter2xZq"', port: 1}
sessions: {s: {steps: [GET: /a]}}"#;
    let of_words = "system: {command: [sh, -c, 'echo Hunter2xZq', x, --password, Hunter2xZq], port: 1}
sessions: {s: {steps: [GET: /a]}}";
    let of_rows = "feeders: {u: {rows: [{user: a, password: Hunter2xZq}]}}
sessions: {s: {steps: [{take: u}, {POST: /a, json: {x: '${password}'}}]}}";
    for text in [set, of_command, of_words, of_rows] {
        let plan = load(&format!("{text}{LOAD}"), &[]).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(plan.secrets.masked("got Hunter2xZq"), "got ***", "{text}");
        assert!(!plan.source.contains("Hunter2xZq"), "{}", plan.source);
    }
}

#[test]
fn a_word_beside_a_weak_name_is_masked_there_only() {
    let step = "{POST: /items, json: {key: items, sort_key: name, grant_type: password, token: 64KiB}}";
    let plan = load(&format!("sessions: {{s: {{steps: [{step}]}}}}{LOAD}"), &[]).unwrap();
    let told = "GET /items by name, the password has 64KiB";
    assert_eq!(plan.secrets.masked(told), told);
    assert_eq!(plan.labels, ["POST /items"]);
}

#[test]
fn values_that_become_known_are_bounded() {
    let fields: Vec<String> = (0..300).map(|n| format!("{{password: Hunter{n:04}x}}")).collect();
    let step = format!("{{POST: /a, json: [{}]}}", fields.join(", "));
    let plan = load(&format!("sessions: {{s: {{steps: [{step}]}}}}{LOAD}"), &[]).unwrap();
    assert!(!plan.source.contains("Hunter"), "all are masked where they stand: {}", plan.source);
    assert!(plan.secrets.iter().count() <= 200);
}

#[test]
fn remarks_are_kept_without_secrets() {
    let text = "# token: S3CRET1, once password=S3CRET1 at http://u:12/S3CRET1@h\n\
        settings: {n: 5} # pin: S3CRET1\n\
        #   headers:\n\
        #     Authorization: Bearer S3CRET1\n\
        #     X-Note: shown\n\
        # json:\n\
        #   password: >-\n\
        #     S3CRET1\n\
        #     S3CRET1\n\
        #   name: shown\n\
        # api_key = S3CRET1\n\
        # export TOKEN = \"S3CRET1\"; db_password := S3CRET1, PASSWORD => S3CRET1\n\
        # headers: {Cookie: sid=S3CRET1}\n\
        description: 'not a remark # token is shown'\n\
        sessions:\n  s:\n    steps:\n      - GET: /a#b  # curl -u me:S3CRET1 http:\\/\\/me:S3CRET1@h\n";
    let source = load(&format!("{text}{LOAD}"), &[]).unwrap().source;
    assert!(!source.contains("S3CRET"), "{source}");
    for shown in ["X-Note: shown", "name: shown", "a remark # token is shown", "/a#b  # curl -u me:*"] {
        assert!(source.contains(shown), "{shown}\n{source}");
    }
    assert_eq!(source.lines().count(), text.lines().count() + LOAD.lines().count());
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

/// Of a scenario with these steps, and with these lines above.
fn told(above: &str, steps: &str) -> String {
    let text =
        format!("{above}system: {{url: 'http://127.0.0.1:9'}}{LOAD}sessions:\n  s:\n    steps:\n{steps}\n");
    load(&text, &[]).expect_err(&text).to_string()
}

#[test]
fn a_line_with_a_mistake_is_shown_without_secrets_however_it_is_written() {
    let steps = [
        r#"- {POST: /, json: {password: S3CRET1, other: "${env('NOT_SET_HERE')}"}}"#,
        "- {POST: /, jsn: {password: S3CRET1}}",
        "- {POST: /, form: {password: S3CRET1}, chek: {status: 200}}",
        "- {GET: /, auth: {user: a, password: S3CRET1}}",
        "- {GET: /, auth: {bearer: [S3CRET1]}}",
        "- {GET: /, auth: {bearer: {token: S3CRET1}}}",
        "- {GET: /, auth: {basic: 'a:S3CRET1'}}",
        "- {GET: /, auth: [a, S3CRET1]}",
        "- {GET: /, auth: S3CRET1}",
        "- {GET: /, auth: {basic: {user: a, pasword: S3CRET1}}}",
        "- {GET: /, auth:\n      {user: a, pw: S3CRET1}}",
        "- GET: /\n        auth:\n          user: a\n          pw: S3CRET1",
        r#"- set: {password: "S3CRET1${nope}"}"#,
        r#"- set: {password: "${nope}S3CRET1"}"#,
        r#"- set: {password: "${nope + 'S3CRET1'}"}"#,
        r#"- set: {password: "${env('NOT_SET_HERE') + \"S3CRET1\"}"}"#,
        "- set: {password: S3CRET1, x: '${nope}'}",
        "- set: {\"password\": \"S3CRET1\", \"x\": \"${nope}\"}",
        "- set: {'api-key': 'S3''CRET1 S3CRET1', 'x': '${nope}'}",
        "- set: {password:  \t\"S3CRET1\" , x: '${nope}'}",
        "- POST: /\n        psot: 1\n        json: {Client_Secret: {deep: [a, S3CRET1]}, x: '${nope}'}",
        "- {POST: /, headers: {Authorization: Bearer S3CRET1}, chek: 1}",
        "- {POST: /, headers: {AUTHORIZATION: 'Basic S3CRET1=='}, chek: 1}",
        "- {POST: /, haeders: ['Authorization: Bearer S3CRET1', 'x']}",
        "- {POST: /, haeders: [\"X-Api-Key: S3CRET1\"]}",
        "- {GET: 'http://me:S3CRET1@127.0.0.1/a', chek: 1}",
        "- {GET: 'http://me:a@S3CRET1@127.0.0.1/a', chek: 1}",
        "- {GET: 'http://me:a/S3CRET1@127.0.0.1/a', chek: 1}",
        "- {GET: 'http://me:a S3CRET1@127.0.0.1/a', chek: 1}",
        "- {url: 'http://me:a\"S3CRET1<S3CRET1@127.0.0.1/a', chek: 1}",
        "- {url: \"http://me:a'S3CRET1@127.0.0.1/a\", chek: 1}",
        "- {url: 'http://me:a@b S3CRET1@127.0.0.1/a', chek: 1}",
        "- {url: \"http://me:S3CRET1${env('NOT_SET_HERE')}@127.0.0.1/a\", chek: 1}",
        "- {proxy: http://me:a'S3CRET1@127.0.0.1, chek: 1}",
        "- {url: 'me:S3CRET1@127.0.0.1:1', chek: 1}",
        "- {url: me:S3CRET1@127.0.0.1, chek: 1}",
        "- {url: \"http:/me:S3CRET1@127.0.0.1\", chek: 1}",
        "- {url: '//me:S3CRET1@127.0.0.1', chek: 1}",
        "- {url: 'http//me:a b/S3CRET1@127.0.0.1', chek: 1}",
        "- {proxy: 'me:S3CRET1@127.0.0.1:1', chek: 1}",
        "- {POST: /, json: {user: a, pass: S3CRET1}, chek: 1}",
        "- {POST: /, json: {passwort: S3CRET1, otp: S3CRET1, cvv: S3CRET1, userJwt: S3CRET1}, chek: 1}",
        "- {GET: /, headers: {X-Session: S3CRET1, X-CSRF: S3CRET1}, chek: 1}",
        "- {GET: \"/${hmac_sha256('S3CRET1', body}\"}",
        "- {GET: '/${hmac(''S3CRET1'', body}'}",
        r#"- {GET: "/${hmac(\"S3CRET1\", body}"}"#,
        "- GET: /${hmac(base64('S3CRET1' + \"S3CRET2\"), body}",
        "- GET: /${hmac( 'S3CRET1",
        "- GET: >-\n            /${hmac('a' +\n            'S3CRET1', nope)}${nope",
        "- {GET: '/a?x=1&access_token=S3CRET1', chek: 1}",
        r#"- {POST: /, body: '{"password": "S3CRET1"}', chek: 1}"#,
        r#"- {POST: /, body: "{\"password\": \"S3CRET1\"}", chek: 1}"#,
        "- {POST: /, body: '<a><password>S3CRET1</password></a>', chek: 1}",
        "- {POST: /, body: 'user=a&password=S3CRET1', chek: 1}",
        "- {POST: /, chek: 1} # password: S3CRET1",
        "- {POST: /, chek: 1} # it was {token: S3CRET1}",
        "- {POST: /, jsn: {password: &a S3CRET1}}",
        "- {POST: /, jsn: {x: &a S3CRET1, password: *a}}",
        "- {POST: /, jsn: {password: !!str S3CRET1}}",
        "- {POST: /, jsn: {password:S3CRET1}}",
        "- {POST: /, jsn: {? password : S3CRET1}}",
        "- {POST: /, jsn: {пароль: 'x', Password: 'Ω S3CRET1'}}",
        "- {POST: /, jsn: {pass\u{a0}word: x, PASSWORD: S3CRET1}}",
        "- {POST: /, form: {token: S3CRET1 x, chek: [}}",
        "- {POST: /, form: {token: 'S3CRET1, chek: 1}}",
        "- {POST: /, form: {token: \"S3CRET1, chek: 1}}",
        "- POST: /\n        form: {password: S3CRET1\n  x: y",
        "- POST: /\n        form:\n          password: S3CRET1\n\t  x: y",
        "- POST: /\n        password: S3CRET1: y",
        "- POST: /\n        password: S3CRET1\n        password: S3CRET1",
        "- think: S3CRET1\n        password: S3CRET1",
        "- set:\n          password: >-\n            abc S3CRET1 ${nope}\n            S3CRET1",
    ];
    for step in steps {
        let told = told("", &format!("      {step}"));
        assert!(!told.contains("S3CRET"), "{step}\n{told}");
    }
}

#[test]
fn values_that_go_on_for_lines_are_shown_on_none_of_them() {
    for value in [
        "|\n            ${nope}-S3CRET1\n            S3CRET2",
        ">-\n            S3CRET1 ${nope}\n\n            S3CRET2 ${nope}",
        "\n            S3CRET1\n            S3CRET2 ${nope}",
        "S3CRET1\n            S3CRET2 ${nope}",
        "\"S3CRET1\n            S3CRET2 ${nope}\"",
        "\n            - S3CRET1 ${nope}\n            - S3CRET2 ${nope}",
        "\n            a: S3CRET1 ${nope}\n            b: [S3CRET2, '${nope} S3CRET3']",
        "[S3CRET1,\n            '${nope} S3CRET2']",
        "# why\n            S3CRET1 ${nope}",
    ] {
        let told = told(
            "",
            &format!("      - POST: /\n        json:\n          password: {value}\n          n: ${{nope}}"),
        );
        assert!(told.contains("nope") && !told.contains("S3CRET"), "{value}\n{told}");
    }
    let told = told(
        "",
        "      - POST: /\n        json:\n          tokens:\n          - S3CRET1 ${nope}\n          - S3CRET2",
    );
    assert!(told.contains("nope") && !told.contains("S3CRET"), "{told}");
}

#[test]
fn what_is_no_secret_is_shown_with_the_mistake() {
    for (step, shown) in [
        (
            "- {POST: /items, json: {name: shown, password: S3CRET1, other: '${nope}'}}",
            "name: shown, password: *******, other: '${nope}'",
        ),
        (
            "- {GET: /items, extract: {token: {json: $.token, x: 1}}}",
            "extract: {token: {json: $.token, x: 1}}",
        ),
        ("- {GET: /items, extract: {sid: {cookie: sessionid, x: 1}}}", "{cookie: sessionid, x: 1}"),
        ("- {GET: /items, check: {json: {$.token: exists}, x: 1}}", "{$.token: exists}, x: 1"),
        ("- {POST: /items, json: {password: '${nope}'}}", "password: '${nope}'"),
        ("- {POST: /items, headers: {Authorization: 'Bearer ${nope}'}}", "'Bearer ${nope}'"),
        (
            "- {POST: /items, json: {password: \"${env('NOT_SET_HERE')}\"}}",
            "password: \"${env('NOT_SET_HERE')}\"",
        ),
        (
            "- {GET: /items, auth: {basic: {user: shown, password: S3CRET1, x: 1}}}",
            "{user: shown, password: *******, x: *}",
        ),
        ("- {GET: /items, chek: 1, json: {token_bytes: 64KiB}}", "{token_bytes: 64KiB}"),
        ("- {GET: 'http://h:80/@user/x?a=b@c', chek: 1}", "'http://h:80/@user/x?a=b@c'"),
        ("- {url: http://h, x: a@b}", "{url: http://h, x: a@b}"),
        ("- {url: 'h:80/a@b', x: a@b}", "{url: 'h:80/a@b', x: a@b}"),
        ("- {GET: \"/${hmac(env('SHOWN'), 'shown'}\"}", "hmac(env('SHOWN'), 'shown'"),
    ] {
        let told = told("", &format!("      {step}"));
        assert!(told.contains(shown), "{step}\n{told}");
    }
    let of_all = told("description: the token is a password for all\nnmae: x\n", "      - GET: /a");
    assert!(of_all.contains("| nmae: x"), "{of_all}");
    let text = "settings:\n  password: ${env(\"NOT_SET_HERE\")}\nsessions: {s: {steps: [{GET: '/${password}'}]}}\n\
                load: {users: 1, hold: 1s}\n";
    let unset = support::load(text).unwrap_err().to_string();
    assert!(unset.contains("| ") && unset.contains("password: ${env(\"NOT_SET_HERE\")}"), "{unset}");
    // words of our own help
    let none = tidemark_scenario::Secrets::of_command(&["run", "--set", "KEY", "--help"].map(str::to_owned));
    for help in ["write it as KEY=VALUE", "write it as -u NAME:PASSWORD", "for more, try '--help'."] {
        assert_eq!(none.masked(help), help);
    }
}

#[test]
fn shipped_scenarios_are_kept_as_they_are() {
    for name in tidemark_scenario::shipped_names() {
        let Ok(plan) = tidemark_scenario::load_shipped(name, &[]) else { continue };
        assert_eq!(plan.source, tidemark_scenario::shipped(name).unwrap(), "{name}");
    }
}
