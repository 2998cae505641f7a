//! Plans as people write them, and what becomes of each of their elements.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

mod details;

/// An element with its properties, and what lies in it.
fn node(kind: &str, name: &str, properties: &str, children: &str) -> String {
    let name = escape(name);
    format!(
        "<{kind} testname=\"{name}\" enabled=\"true\">{properties}</{kind}>\n<hashTree>{children}</hashTree>\n"
    )
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn text(name: &str, value: &str) -> String {
    format!("<stringProp name=\"{name}\">{}</stringProp>", escape(value))
}

fn flag(name: &str, value: bool) -> String {
    format!("<boolProp name=\"{name}\">{value}</boolProp>")
}

/// A bean, whose properties are named plainly.
fn bean(kind: &str, name: &str, properties: &[(&str, &str)]) -> String {
    let properties: String = properties.iter().map(|(name, value)| text(name, value)).collect();
    node(kind, name, &properties, "")
}

fn arguments(holder: &str, arguments: &[(&str, &str)]) -> String {
    let entries: String = arguments
        .iter()
        .map(|(name, value)| {
            format!(
                "<elementProp name=\"{0}\" elementType=\"HTTPArgument\">{1}{2}{3}</elementProp>",
                escape(name),
                text("Argument.name", name),
                text("Argument.value", value),
                flag("HTTPArgument.always_encode", true)
            )
        })
        .collect();
    let list = format!("<collectionProp name=\"Arguments.arguments\">{entries}</collectionProp>");
    if holder.is_empty() {
        list
    } else {
        format!("<elementProp name=\"{holder}\" elementType=\"Arguments\">{list}</elementProp>")
    }
}

/// A GET of a path.
fn get(name: &str, path: &str, children: &str) -> String {
    request(name, "GET", path, "", children)
}

fn request(name: &str, method: &str, path: &str, more: &str, children: &str) -> String {
    let properties = format!(
        "{}{}{}{}{more}",
        text("HTTPSampler.domain", "shop.example"),
        text("HTTPSampler.path", path),
        text("HTTPSampler.method", method),
        flag("HTTPSampler.use_keepalive", true)
    );
    node("HTTPSamplerProxy", name, &properties, children)
}

/// A thread group that goes on for a minute.
fn group(name: &str, more: &str, children: &str) -> String {
    let properties = format!(
        "<elementProp name=\"ThreadGroup.main_controller\" elementType=\"LoopController\">{}{}</elementProp>{}{}{}{}{more}",
        flag("LoopController.continue_forever", false),
        text("LoopController.loops", "-1"),
        text("ThreadGroup.num_threads", "10"),
        text("ThreadGroup.ramp_time", "5"),
        flag("ThreadGroup.scheduler", true),
        text("ThreadGroup.duration", "60"),
    );
    node("ThreadGroup", name, &properties, children)
}

/// A thread group with a number of rounds.
fn rounds(threads: &str, ramp: &str, loops: &str, children: &str) -> String {
    let properties = format!(
        "<elementProp name=\"ThreadGroup.main_controller\" elementType=\"LoopController\">{}{}</elementProp>{}{}",
        flag("LoopController.continue_forever", false),
        text("LoopController.loops", loops),
        text("ThreadGroup.num_threads", threads),
        text("ThreadGroup.ramp_time", ramp),
    );
    node("ThreadGroup", "Users", &properties, children)
}

fn plan(children: &str) -> String {
    let plan = node("TestPlan", "Shop", "", children);
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<jmeterTestPlan version=\"1.2\">\n<hashTree>\n{plan}</hashTree>\n</jmeterTestPlan>\n"
    )
}

fn made_in(folder: &Path, text: &str, properties: &[(String, String)]) -> Imported {
    let plan = Plan { name: "t.jmx", text, folder, prefix: "", properties, environment: None };
    scenario(&plan).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn made(text: &str) -> Imported {
    made_in(Path::new("/nonexistent"), text, &[])
}

/// A scenario that the checker takes, as text, and what was left out.
fn checked(made: &Imported) -> (String, Vec<String>) {
    let yaml = made.checked().unwrap_or_else(|error| panic!("{error}\n{}", made.scenario.to_yaml()));
    (yaml, made.left_out.iter().map(ToString::to_string).collect())
}

/// The steps of the one session of a thread group with these children; nothing was left out.
fn steps(children: &str) -> String {
    let (yaml, left_out) = steps_and_left_out(children);
    assert!(left_out.is_empty(), "{left_out:?}\n{yaml}");
    yaml
}

fn steps_and_left_out(children: &str) -> (String, Vec<String>) {
    let (yaml, left_out) = checked(&made(&plan(&group("Users", "", children))));
    let from = yaml.find("    steps:\n").unwrap_or_else(|| panic!("{yaml}"));
    let end = yaml[from..].find("\nload:").unwrap_or_else(|| panic!("{yaml}"));
    let steps = &yaml[from + "    steps:\n".len()..from + end];
    let mut out = String::new();
    for line in steps.lines() {
        let _ = writeln!(out, "{}", line.strip_prefix("      ").unwrap_or(line));
    }
    (out, left_out)
}

/// What stands under `load:`, and under `limits:` if there is any.
fn load(plan: &str) -> String {
    let (yaml, _) = checked(&made(plan));
    let from = yaml.find("\nload:\n").unwrap_or_else(|| panic!("{yaml}"));
    let end = yaml[from..].find("\nobjectives:").unwrap_or_else(|| panic!("{yaml}"));
    yaml[from + 1..from + end].to_owned()
}

#[track_caller]
fn assert_is(found: &str, expected: &str) {
    assert_eq!(found.trim(), expected.trim(), "\n--- found:\n{found}");
}

#[test]
fn parameters_stand_in_the_query_or_in_a_form() {
    let parameters = |pairs| arguments("HTTPsampler.Arguments", pairs);
    let found = steps(
        &[
            request("Find", "GET", "/find", &parameters(&[("q", "a b&c"), ("n", "1")]), ""),
            request("Twice", "GET", "/find?x=1", &parameters(&[("id", "1"), ("id", "2")]), ""),
            request("Save", "POST", "/save", &parameters(&[("name", "Ann"), ("note", "${__UUID()}")]), ""),
            request("Gone", "DELETE", "/items/7", "", ""),
            request("Own", "PURGE", "cache", "", ""),
        ]
        .concat(),
    );
    assert_is(
        &found,
        r#"
- GET: /find
  label: Find
  query: {q: a b&c, "n": "1"}
- GET: /find?x=1&id=1&id=2
  label: Twice
- POST: /save
  label: Save
  form: {name: Ann, note: "${uuid()}"}
- DELETE: /items/7
  label: Gone
- REQUEST: /cache
  label: Own
  method: PURGE
"#,
    );
}

#[test]
fn raw_bodies_are_sent_as_they_are() {
    let raw = |body: &str| {
        format!(
            "{}{}",
            flag("HTTPSampler.postBodyRaw", true),
            arguments("HTTPsampler.Arguments", &[("", body)])
        )
    };
    let header = node(
        "HeaderManager",
        "H",
        &format!(
            "<collectionProp name=\"HeaderManager.headers\"><elementProp name=\"\" elementType=\"Header\">{}{}</elementProp></collectionProp>",
            text("Header.name", "Content-Type"),
            text("Header.value", "application/json")
        ),
        "",
    );
    let found = steps(
        &[
            request("A", "POST", "/a", &raw("{\"a\": \"${__Random(1,3)}\"}\n"), &header),
            request("B", "PUT", "/b", &raw("plain"), ""),
        ]
        .concat(),
    );
    assert_is(
        &found,
        r#"
- POST: /a
  label: A
  headers: {Content-Type: application/json}
  body: |
    {"a": "${random(1, 3)}"}
- PUT: /b
  label: B
  body: plain
"#,
    );
}

#[test]
fn nearer_headers_and_defaults_win() {
    let headers = |pairs: &[(&str, &str)]| {
        let entries: String = pairs
            .iter()
            .map(|(name, value)| {
                format!(
                    "<elementProp name=\"\" elementType=\"Header\">{}{}</elementProp>",
                    text("Header.name", name),
                    text("Header.value", value)
                )
            })
            .collect();
        node(
            "HeaderManager",
            "H",
            &format!("<collectionProp name=\"HeaderManager.headers\">{entries}</collectionProp>"),
            "",
        )
    };
    let defaults = node(
        "ConfigTestElement",
        "D",
        &[
            text("HTTPSampler.domain", "other.example"),
            text("HTTPSampler.port", "8080"),
            text("HTTPSampler.protocol", "https"),
            text("HTTPSampler.response_timeout", "1500"),
        ]
        .concat(),
        "",
    );
    let (yaml, left_out) = checked(&made(&plan(&group(
        "Users",
        "",
        &[
            headers(&[("Accept", "text/html"), ("X-One", "1"), ("Connection", "keep-alive")]),
            defaults,
            node("HTTPSamplerProxy", "A", &text("HTTPSampler.path", "/a"), ""),
            node(
                "HTTPSamplerProxy",
                "B",
                &text("HTTPSampler.path", "/b"),
                &headers(&[("accept", "application/json")]),
            ),
        ]
        .concat(),
    ))));
    assert_eq!(left_out, [""; 0]);
    for part in [
        "url: https://other.example:8080\n",
        "defaults:\n  headers: {X-One: \"1\", Cookie: []}\n  timeout: 1.5s\n",
        "        headers: {Accept: text/html}\n",
        "        headers: {accept: application/json}\n",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
}

#[test]
fn the_place_of_most_requests_is_the_system() {
    let (yaml, _) = checked(&made(&plan(&group(
        "Users",
        "",
        &[
            get("Home", "/", ""),
            get("List", "/list", ""),
            get("Home", "https://images.example:8443/logo?s=1", ""),
        ]
        .concat(),
    ))));
    for part in [
        "url: http://shop.example\n",
        "- GET: https://images.example:8443/logo?s=1\n        label: Home (images.example:8443)\n",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
}

#[test]
fn properties_and_variables_become_settings() {
    let variables = node(
        "Arguments",
        "V",
        &arguments(
            "",
            &[
                ("path", "/v1"),
                ("size", "${__P(size,10)}"),
                ("whole", "${path}/x"),
                ("api_key", "k-123456789"),
            ],
        ),
        "",
    );
    let text =
        plan(&format!("{variables}{}", group("Users", "", &get("A", "${whole}/${size}?key=${api_key}", ""))));
    let properties = [("size".to_owned(), "25".to_owned()), ("other".to_owned(), "1".to_owned())];
    let made = made_in(Path::new("/nonexistent"), &text, &properties);
    let (yaml, _) = checked(&made);
    for part in [
        "size: 25\n",
        "api_key: ${env(\"TIDEMARK_API_KEY\")}\n",
        "path: /v1\n",
        "- GET: ${concat(path, '/x')}/${size}?key=${api_key}\n",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
    assert!(!yaml.contains("k-123456789"), "{yaml}");
    assert_eq!(made.given, [("api_key".to_owned(), "k-123456789".to_owned())]);
    assert!(made.remark.contains("-J other"), "{}", made.remark);
}

#[test]
fn functions_become_expressions() {
    for (function, expression) in [
        ("${__time()}", "${now()}"),
        ("${__time(/1000,)}", "${floor(now() / 1000)}"),
        ("${__time(yyyy-MM-dd,)}", "${date(now(), '%Y-%m-%d')}"),
        ("${__timeShift(yyyy-MM-dd,,P2D,,)}", "${date(now() + days(2), '%Y-%m-%d')}"),
        ("${__RandomString(6,,)}", "${random_text(6)}"),
        ("${__urlencode(a b)}", "${replace(url('a b'), '%20', '+')}"),
        ("${__base64Encode(${__UUID()})}", "${base64(uuid())}"),
        ("${__digest(SHA-256,abc,,,)}", "${sha256('abc')}"),
        ("${__changeCase(abc,UPPER,)}", "${upper('abc')}"),
        ("${__intSum(1,2,${__Random(1,2)})}", "${(1 + 2 + random(1, 2))}"),
        ("${__counter(FALSE,)}", "${count(counter) + 1}"),
        ("${__groovy(1 + 2 * 3)}", "${(1 + (2 * 3))}"),
        ("${__groovy(\"a\" + \"b\")}", "${concat('a', 'b')}"),
        ("${__jexl3(5 > 3 ? \"x\" : \"y\")}", "${if(5 > 3, 'x', 'y')}"),
        ("${__eval(x${__UUID()})}", "${concat('x', uuid())}"),
        ("${__threadGroupName}", "Users"),
        ("\\${no}${__time()}", "$${no}${now()}"),
    ] {
        let body = format!(
            "{}{}",
            flag("HTTPSampler.postBodyRaw", true),
            arguments("HTTPsampler.Arguments", &[("", function)])
        );
        let found = steps(&request("A", "POST", "/a", &body, ""));
        assert!(found.contains(expression), "{function}: {expression}\n{found}");
    }
    // what is also put into a variable is one
    let body = format!(
        "{}{}",
        flag("HTTPSampler.postBodyRaw", true),
        arguments("HTTPsampler.Arguments", &[("", "${__Random(1,9,n)}-${n}")])
    );
    assert_is(
        &steps(&request("A", "POST", "/a", &body, "")),
        "
- set: {\"n\": \"${random(1, 9)}\"}
- POST: /a
  label: A
  body: ${n}-${n}
",
    );
    let (_, left_out) = steps_and_left_out(&get("A", "/a?d=${__digest(MD5,abc,,,)}", ""));
    assert!(
        left_out[0].contains("would have put the value of ${__digest(MD5,abc,,,)} in its place"),
        "{left_out:?}"
    );
}

#[test]
fn timers_become_pauses_before_each_request_in_their_scope() {
    let found = steps(
        &[
            bean("ConstantTimer", "T", &[("ConstantTimer.delay", "300")]),
            get(
                "A",
                "/a",
                &bean(
                    "UniformRandomTimer",
                    "T",
                    &[("ConstantTimer.delay", "1000"), ("RandomTimer.range", "500")],
                ),
            ),
            get(
                "B",
                "/b",
                &bean(
                    "GaussianRandomTimer",
                    "T",
                    &[("ConstantTimer.delay", "900"), ("RandomTimer.range", "100")],
                ),
            ),
            node(
                "TestAction",
                "P",
                &[text("ActionProcessor.action", "1"), text("ActionProcessor.duration", "50")].concat(),
                "",
            ),
        ]
        .concat(),
    );
    assert_is(
        &found,
        "
- think: 300ms
- think: {between: [1s, 1.5s]}
- GET: /a
  label: A
- think: 300ms
- think: {between: [200ms, 400ms]}
- think: {between: [200ms, 400ms]}
- think: {between: [200ms, 400ms]}
- GET: /b
  label: B
- think: 300ms
- think: 50ms
",
    );
}

#[test]
fn timers_of_a_rate_become_a_pace_or_arrivals() {
    let two = [get("A", "/a", ""), get("B", "/b", "")].concat();
    let constant = bean("ConstantThroughputTimer", "T", &[("throughput", "120"), ("calcMode", "2")]);
    // 120 requests a minute of 10 users with 2 each: a round of each user every 10 s
    assert_is(
        &load(&plan(&group("Users", "", &format!("{constant}{two}")))),
        "load:\n  users: 10\n  pace: 10s\n  ramp: 5s\n  hold: 55s",
    );
    let precise =
        bean("PreciseThroughputTimer", "T", &[("throughput", "7200"), ("throughputPeriod", "3600")]);
    let found = load(&plan(&group("Users", "", &format!("{precise}{two}"))));
    assert_is(&found, "load:\n  rate: 1/s\n  spacing: poisson\n  hold: 1m\n\nlimits:\n  in flight: 10");
}

#[test]
fn controllers_become_steps() {
    let condition = |text: &str| {
        [super::tests::text("IfController.condition", text), flag("IfController.useExpression", true)]
            .concat()
    };
    let body = |name: &str| get(name, "/x", "");
    let extract = bean(
        "JSONPostProcessor",
        "J",
        &[
            ("JSONPostProcessor.referenceNames", "ids;first"),
            ("JSONPostProcessor.jsonPathExprs", "$..id;$.a"),
            ("JSONPostProcessor.match_numbers", "-1;1"),
            ("JSONPostProcessor.defaultValues", ";none"),
        ],
    );
    let found = steps(&[
        get("L", "/l", &extract),
        node("IfController", "I", &condition("${__groovy(vars.get(\"first\") == \"x\" && \"${ids_matchNr}\".toInteger() > 2)}"), &body("A")),
        node("LoopController", "L", &text("LoopController.loops", "3"), &body("B")),
        node("ForeachController", "F", &[text("ForeachController.inputVal", "ids"), text("ForeachController.returnVal", "id")].concat(), &get("C", "/c?id=${id}", "")),
        node("ThroughputController", "P", &format!("{}<FloatProperty><name>ThroughputController.percentThroughput</name><value>25.0</value></FloatProperty>", text("ThroughputController.style", "1")), &body("D")),
        node("TransactionController", "T", "", &body("E")),
        node("RandomController", "R", "", &[body("F"), body("G")].concat()),
        node("SwitchController", "S", &text("SwitchController.value", "${first}"), &[body("H"), body("K")].concat()),
        node("GenericController", "G", "", &body("M")),
        node("ThroughputController", "N", &[text("ThroughputController.style", "0"), text("ThroughputController.maxThroughput", "5")].concat(), &body("N")),
    ].concat());
    assert_is(
        &found,
        r#"
- GET: /l
  label: L
  extract:
    ids: {all: $..id, when missing: keep}
    first: {json: $.a, when missing: clear}
- set: {first: "${default(first, 'none')}"}
- when: ${(first == 'x' and number(len(ids)) > 2)}
  steps:
    - GET: /x
      label: A
- repeat: 3
  steps:
    - GET: /x
      label: B
- each: id in ${ids}
  steps:
    - GET: /c?id=${path(id)}
      label: C
- sometimes: 25%
  steps:
    - GET: /x
      label: D
- group: T
  steps:
    - GET: /x
      label: E
- choose:
    - steps:
        - GET: /x
          label: F
    - steps:
        - GET: /x
          label: G
- set: {chosen: "${first}"}
- when: ${chosen == 0 or chosen == '' or chosen == 'H' or default(number(chosen), 0) >= 2}
  steps:
    - GET: /x
      label: H
- when: ${chosen == 1 or chosen == 'K'}
  steps:
    - GET: /x
      label: K
- GET: /x
  label: M
- set: {passes: "${count(counter)}"}
- when: ${passes < 5}
  steps:
    - GET: /x
      label: "N"
"#,
    );
}

#[test]
fn what_a_thread_keeps_makes_it_one_session() {
    let found = steps(
        &[
            node("OnceOnlyController", "O", "", &get("Login", "/login", "")),
            get("Home", "/?n=${__threadNum}", ""),
            node("InterleaveControl", "I", "", &[get("A", "/a", ""), get("B", "/b", "")].concat()),
        ]
        .concat(),
    );
    assert_is(
        &found,
        r#"
- set: {thread: "${count(counter) + 1}"}
# until the load ends
- repeat: 1000000000
  as: round
  steps:
    - when: ${round == 0}
      steps:
        - GET: /login
          label: Login
    - GET: /?n=${thread}
      label: Home
    - set: {turn: "${default(turn, -1) + 1}"}
    - when: ${turn % 2 == 0}
      steps:
        - GET: /a
          label: A
    - when: ${turn % 2 == 1}
      steps:
        - GET: /b
          label: B
"#,
    );
}

#[test]
fn a_while_goes_on_as_long_as_its_condition_holds() {
    let extract = bean(
        "RegexExtractor",
        "R",
        &[
            ("RegexExtractor.refname", "state"),
            ("RegexExtractor.regex", "state=(\\w+)"),
            ("RegexExtractor.template", "$1$"),
            ("RegexExtractor.match_number", "1"),
        ],
    );
    let condition = text("WhileController.condition", "${__jexl3(\"${state}\" != \"done\")}");
    let found = steps(&node("WhileController", "W", &condition, &get("Poll", "/state", &extract)));
    assert_is(
        &found,
        r"
- repeat: 1000
  steps:
    - when: ${state != 'done'}
      steps:
        - GET: /state
          label: Poll
          extract: {state: {regex: state=(\w+), when missing: keep}}
",
    );
    let (_, left_out) = steps_and_left_out(
        &[get("A", "/a", ""), node("WhileController", "W", "", &get("B", "/b", ""))].concat(),
    );
    assert!(left_out[0].contains("sent its requests until one of them fails"), "{left_out:?}");
}

#[test]
fn assertions_become_checks() {
    let assertion = |field: &str, kind: u32, texts: &[&str]| {
        let texts: String =
            texts.iter().map(|one| format!("<stringProp name=\"1\">{}</stringProp>", escape(one))).collect();
        node(
            "ResponseAssertion",
            "A",
            &format!(
                "<collectionProp name=\"Asserion.test_strings\">{texts}</collectionProp>{}{}",
                text("Assertion.test_field", &format!("Assertion.{field}")),
                text("Assertion.test_type", &kind.to_string())
            ),
            "",
        )
    };
    let json = |pairs: &[(&str, &str)]| bean("JSONPathAssertion", "J", pairs);
    for (assertion, check) in [
        (assertion("response_code", 8, &["201"]), "check: {status: 201}"),
        (assertion("response_code", 1, &["2..|302"]), "check: {status: [2xx, 302]}"),
        (assertion("response_code", 40, &["200", "204"]), "check: {status: [200, 204]}"),
        (assertion("response_code", 12, &["204"]), "check: {status: [200-203, 205-399]}"),
        (assertion("response_data", 16, &["a.b"]), "check: {body: {contains: a.b}}"),
        (assertion("response_data", 2, &["a\\db"]), "check: {body: {matches: a\\db}}"),
        (assertion("response_data", 2, &["hello"]), "check: {body: {contains: hello}}"),
        (assertion("response_data", 1, &["a.*b"]), "check: {body: {matches: \"^(?:a.*b)$\"}}"),
        (
            assertion("response_data", 20, &["error"]),
            "extract: {answer: body}\n  check: {that: \"${not (contains(answer, 'error'))}\"}",
        ),
        (
            assertion("response_data", 48, &["a", "b"]),
            "check: {that: \"${contains(answer, 'a') or contains(answer, 'b')}\"}",
        ),
        (
            assertion("response_headers", 16, &["Content-Type: application/json"]),
            "check: {header: {Content-Type: {contains: application/json}}}",
        ),
        (
            json(&[
                ("JSON_PATH", "$.a.b"),
                ("EXPECTED_VALUE", "x"),
                ("JSONVALIDATION", "true"),
                ("ISREGEX", "false"),
            ]),
            "check: {json: {$.a.b: x}}",
        ),
        (
            json(&[
                ("JSON_PATH", "$.n"),
                ("EXPECTED_VALUE", "\\d+"),
                ("JSONVALIDATION", "true"),
                ("ISREGEX", "true"),
            ]),
            "check: {json: {$.n: {matches: '^(?:\\d+)$'}}}",
        ),
        (
            json(&[("JSON_PATH", "$.n"), ("JSONVALIDATION", "false")]),
            "extract: {found: {count: $.n}}\n  check: {that: \"${found > 0}\"}",
        ),
        (
            bean(
                "SizeAssertion",
                "S",
                &[
                    ("Assertion.test_field", "SizeAssertion.response_data"),
                    ("SizeAssertion.size", "100"),
                    ("SizeAssertion.operator", "4"),
                ],
            ),
            "check: {that: \"${len(answer) < 100}\"}",
        ),
        (bean("DurationAssertion", "D", &[("DurationAssertion.duration", "2000")]), "timeout: 2s"),
    ] {
        let found = steps(&get("A", "/a", &assertion));
        assert!(found.contains(check), "{check}\n{found}");
    }
    let (_, left_out) = steps_and_left_out(&get("A", "/a", &assertion("response_message", 8, &["OK"])));
    assert_eq!(left_out.len(), 1, "{left_out:?}");
    assert!(left_out[0].ends_with("would have checked the response message against OK"), "{left_out:?}");
}

#[test]
fn extractors_become_extractions() {
    let regex = |pairs: &[(&str, &str)]| {
        let own: Vec<(String, String)> = pairs
            .iter()
            .map(|(name, value)| (format!("RegexExtractor.{name}"), (*value).to_owned()))
            .collect();
        bean(
            "RegexExtractor",
            "R",
            &own.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect::<Vec<_>>(),
        )
    };
    let one = |more: &[(&str, &str)]| {
        regex(&[&[("refname", "x"), ("regex", "a(\\d)b(\\d)"), ("match_number", "1")], more].concat())
    };
    for (extractor, found_as) in [
        (one(&[("template", "$2$")]), "x: {regex: a(\\d)b(\\d), group: 2, when missing: keep}"),
        (
            one(&[("template", "$0$"), ("default", "none")]),
            "x: {regex: a(\\d)b(\\d), group: 0, when missing: clear}",
        ),
        (
            one(&[("template", "$1$-$2$")]),
            "- set: {x: \"${default(concat(x_g1, '-', x_g2), default(x, missing))}\"}",
        ),
        (
            regex(&[("refname", "x"), ("regex", "a(\\d)"), ("template", "$1$"), ("match_number", "2")]),
            "x: {regex: '(?:a(\\d)(?s:.*?)){1}(a(\\d))', group: 3, when missing: keep}",
        ),
        (
            regex(&[
                ("refname", "x"),
                ("regex", "Location: (.*)"),
                ("template", "$1$"),
                ("useHeaders", "true"),
            ]),
            "x: {header: Location, when missing: keep}",
        ),
        (
            regex(&[
                ("refname", "x"),
                ("regex", "Set-Cookie: sid=([^;]+)"),
                ("template", "$1$"),
                ("useHeaders", "true"),
            ]),
            "x: {cookie: sid, when missing: keep}",
        ),
        (
            bean(
                "BoundaryExtractor",
                "B",
                &[
                    ("BoundaryExtractor.refname", "x"),
                    ("BoundaryExtractor.lboundary", "id=("),
                    ("BoundaryExtractor.rboundary", ")"),
                ],
            ),
            "x: {regex: '(?s)id=\\((.*?)\\)', when missing: keep}",
        ),
        (
            bean(
                "com.atlantbh.jmeter.plugins.jsonutils.jsonpathextractor.JSONPathExtractor",
                "P",
                &[("VAR", "x"), ("JSONPATH", "$.a"), ("DEFAULT", "0")],
            ),
            "x: {json: $.a, when missing: clear}",
        ),
        (
            bean(
                "JSONPostProcessor",
                "J",
                &[
                    ("JSONPostProcessor.referenceNames", "x"),
                    ("JSONPostProcessor.jsonPathExprs", "$.ids[*]"),
                    ("JSONPostProcessor.match_numbers", "0"),
                ],
            ),
            "- set: {x: \"${default(x_all[random(0, max(0, len(x_all) - 1))], default(x, missing))}\"}",
        ),
    ] {
        let found = steps(&[get("A", "/a", &extractor), get("B", "/b?x=${x}", "")].concat());
        assert!(found.contains(found_as), "{found_as}\n{found}");
    }
    // what is not taken over is told, and so is who needs it
    let (found, left_out) = steps_and_left_out(
        &[
            get(
                "A",
                "/a",
                &bean(
                    "HtmlExtractor",
                    "H",
                    &[("HtmlExtractor.refname", "csrf"), ("HtmlExtractor.expr", "input[name=_csrf]")],
                ),
            ),
            get("B", "/b?x=${csrf}", ""),
        ]
        .concat(),
    );
    assert!(
        left_out[0].contains("HtmlExtractor \"H\": would have set csrf by the selector input[name=_csrf]"),
        "{left_out:?}"
    );
    assert!(
        left_out[1].contains("would have put what a script sets as ${csrf} in its place"),
        "{left_out:?}"
    );
    assert!(found.contains("x=$${csrf}"), "{found}");
}

#[test]
fn data_sets_counters_and_random_variables_are_drawn_each_round() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("users.csv"), "ann;1\nbob;2\n").unwrap();
    fs::write(folder.path().join("items.csv"), "item,count\nlamp,1\n").unwrap();
    let text = plan(&group(
        "Users",
        "",
        &[
            bean(
                "CSVDataSet",
                "C",
                &[
                    ("filename", "C:\\data\\users.csv"),
                    ("variableNames", "name,id"),
                    ("delimiter", ";"),
                    ("shareMode", "shareMode.all"),
                    ("recycle", "true"),
                ],
            ),
            bean(
                "CSVDataSet",
                "D",
                &[
                    ("filename", "items.csv"),
                    ("variableNames", ""),
                    ("delimiter", ","),
                    ("shareMode", "shareMode.all"),
                    ("recycle", "true"),
                ],
            ),
            bean(
                "CounterConfig",
                "N",
                &[
                    ("CounterConfig.start", "5"),
                    ("CounterConfig.incr", "2"),
                    ("CounterConfig.end", "9"),
                    ("CounterConfig.name", "n"),
                    ("CounterConfig.format", "N-000"),
                ],
            ),
            bean(
                "RandomVariableConfig",
                "R",
                &[("minimumValue", "1"), ("maximumValue", "6"), ("variableName", "dice")],
            ),
            get("A", "/${name}/${id}/${item}?n=${n}&d=${dice}", ""),
        ]
        .concat(),
    ));
    let made = made_in(folder.path(), &text, &[]);
    let yaml =
        made.checked_in(folder.path()).unwrap_or_else(|error| panic!("{error}\n{}", made.scenario.to_yaml()));
    assert!(made.left_out.is_empty(), "{:?}", made.left_out);
    for part in [
        "  users: {file: users.csv, delimiter: ;, header: [name, id]}\n",
        "  items: {file: items.csv}\n",
        "      - take: users\n      - take: items\n      - set: {\"n\": \"${concat('N-', pad(5 + 2 * (count(counter) % 3), 3))}\"}\n      - set: {dice: \"${random(1, 6)}\"}\n",
        "      - GET: /${path(name)}/${path(id)}/${path(item)}?n=${path(n)}&d=${dice}\n",
    ] {
        assert!(yaml.contains(part), "{part}\n{yaml}");
    }
    // a file that is not there
    let (yaml, left_out) = checked(&super::tests::made(&text));
    assert!(
        left_out.iter().any(|left| left.contains("users.csv, which is not in the plan's folder")),
        "{left_out:?}"
    );
    assert!(yaml.contains("rows: [{name: name 1, id: id 1}]"), "{yaml}");
}

#[test]
fn loads_are_those_of_the_thread_groups() {
    let one = get("A", "/a", "");
    assert_is(&load(&plan(&group("Users", "", &one))), "load:\n  users: 10\n  ramp: 5s\n  hold: 55s");
    // threads with a number of rounds begin at a rate, and end
    let found = load(&plan(&rounds("20", "10", "3", &one)));
    assert!(found.contains("  rate: 2/s\n") && found.contains("limits:\n  sessions: 20\n"), "{found}");
    let found = load(&plan(&rounds("1", "1", "50", &one)));
    assert!(found.contains("  users: 1\n") && found.contains("limits:\n  sessions: 50\n"), "{found}");
    let found = load(&plan(&rounds("7", "0", "50", &one)));
    assert!(found.contains("  users: 7\n") && found.contains("limits:\n  sessions: 7\n"), "{found}");
    let ultimate = |rows: &[[u32; 5]]| {
        let rows: String = rows
            .iter()
            .map(|row| {
                format!(
                    "<collectionProp name=\"1\">{}</collectionProp>",
                    row.iter().map(|cell| text("1", &cell.to_string())).collect::<String>()
                )
            })
            .collect();
        plan(&node(
            "kg.apc.jmeter.threads.UltimateThreadGroup",
            "U",
            &format!("<collectionProp name=\"ultimatethreadgroupdata\">{rows}</collectionProp>"),
            &one,
        ))
    };
    assert_is(
        &load(&ultimate(&[[10, 0, 30, 60, 10], [5, 30, 0, 60, 0]])),
        "
load:
  phases:
    - {for: 30s, users: 0 to 10, measured: false}
    - {for: 1m, users: 15}
    - {for: 10s, users: 10 to 0, measured: false}",
    );
    let stepping = plan(&node(
        "kg.apc.jmeter.threads.SteppingThreadGroup",
        "S",
        &[
            ("ThreadGroup.num_threads", "10"),
            ("Threads initial delay", "0"),
            ("Start users count", "5"),
            ("Start users count burst", "0"),
            ("Start users period", "30"),
            ("Stop users count", "5"),
            ("Stop users period", "1"),
            ("flighttime", "60"),
            ("rampUp", "5"),
        ]
        .iter()
        .map(|(name, value)| text(name, value))
        .collect::<String>(),
        &one,
    ));
    assert_is(
        &load(&stepping),
        "
load:
  phases:
    - {for: 5s, users: 0 to 5, measured: false}
    - {for: 30s, users: 5}
    - {for: 5s, users: 5 to 10}
    - {for: 1m, users: 10}
    - {for: 1s, users: 5}",
    );
    let target = |kind: &str, unit: &str| {
        plan(&node(
            kind,
            "C",
            &[("TargetLevel", "60"), ("RampUp", "1"), ("Steps", "3"), ("Hold", "2"), ("Unit", unit)]
                .iter()
                .map(|(name, value)| text(name, value))
                .collect::<String>(),
            &one,
        ))
    };
    assert_is(
        &load(&target("com.blazemeter.jmeter.threads.concurrency.ConcurrencyThreadGroup", "M")),
        "
load:
  phases:
    - {for: 1m, users: 20 to 60 in 3 steps, measured: false}
    - {for: 2m, users: 60}",
    );
    assert_is(
        &load(&target("com.blazemeter.jmeter.threads.arrivals.ArrivalsThreadGroup", "M")),
        "
load:
  spacing: poisson
  phases:
    - {for: 1m, rate: 20/min to 1/s in 3 steps, measured: false}
    - {for: 2m, rate: 1/s}",
    );
    let open = plan(&node(
        "OpenModelThreadGroup",
        "O",
        &text(
            "OpenModelThreadGroup.schedule",
            "rate(0/s) random_arrivals(10 s) rate(5/s) random_arrivals(1 min) pause(2 s)",
        ),
        &one,
    ));
    assert_is(
        &load(&open),
        "
load:
  spacing: poisson
  phases:
    - {for: 10s, rate: 0/s to 5/s}
    - {for: 1m, rate: 5/s}
    - {for: 2s, rate: 0/s}",
    );
    let two = plan(&[group("Buyers", "", &one), group("Visitors", "", &one)].concat());
    assert_is(
        &load(&two),
        "
load:
  sessions:
    Buyers: {users: 10, ramp: 5s, hold: 55s}
    Visitors: {users: 10, ramp: 5s, hold: 55s}",
    );
}

#[test]
fn set_up_is_prepared_and_tear_down_is_told() {
    let set_up = node("SetupThreadGroup", "S", &text("ThreadGroup.num_threads", "1").add(&format!("<elementProp name=\"ThreadGroup.main_controller\" elementType=\"LoopController\">{}</elementProp>", text("LoopController.loops", "1"))), &get("Fill", "/fill", ""));
    let tear_down = node("PostThreadGroup", "T", "", &get("Clear", "/clear", ""));
    let made = made(&plan(&[set_up, group("Users", "", &get("A", "/a", "")), tear_down].concat()));
    let (yaml, left_out) = checked(&made);
    assert!(yaml.contains("prepare:\n  - GET: /fill\n"), "{yaml}");
    assert!(
        left_out.len() == 1 && left_out[0].contains("sent its requests once the other threads had ended"),
        "{left_out:?}"
    );
    assert!(made.left_out[0].is_request);
}

#[test]
fn modules_and_included_plans_are_written_out() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("parts")).unwrap();
    let fragment = node("TestFragmentController", "Part", "", &get("Included", "/included", ""));
    fs::write(folder.path().join("parts/login.jmx"), plan(&fragment)).unwrap();
    let module = node(
        "ModuleController",
        "M",
        &format!(
            "<collectionProp name=\"ModuleController.node_path\">{}</collectionProp>",
            ["Test Plan", "Shop", "Parts", "Search"].iter().map(|name| text("1", name)).collect::<String>()
        ),
        "",
    );
    let include =
        node("IncludeController", "I", &text("IncludeController.includepath", "parts/login.jmx"), "");
    let outside =
        node("IncludeController", "O", &text("IncludeController.includepath", "../../etc/passwd"), "");
    let fragments = node(
        "TestFragmentController",
        "Parts",
        "",
        &node("GenericController", "Search", "", &get("Search", "/search", "")),
    );
    let text = plan(&[fragments, group("Users", "", &[module, include, outside].concat())].concat());
    let made = made_in(folder.path(), &text, &[]);
    let (yaml, left_out) = checked(&made);
    assert!(
        yaml.contains(
            "- GET: /search\n        label: Search\n      - GET: /included\n        label: Included\n"
        ),
        "{yaml}"
    );
    assert!(
        left_out.len() == 1 && left_out[0].contains("the plan ../../etc/passwd says, which cannot be read"),
        "{left_out:?}"
    );
}

#[test]
fn what_has_no_counterpart_is_told_with_its_line() {
    let text = plan(&group(
        "Users",
        "",
        &[
            bean("CacheManager", "Cache", &[]),
            bean(
                "JSR223PreProcessor",
                "make",
                &[("script", "// a comment\nimport x.Y\nvars.put(\"token\", \"t\")")],
            ),
            bean("SyncTimer", "Together", &[("groupSize", "5")]),
            get("A", "/a?t=${token}", &bean("XPathAssertion", "X", &[("XPath.xpath", "//a")])),
            node("JDBCSampler", "Query", "", ""),
            bean("ResultCollector", "Tree", &[]),
            get("Off", "/off", "").replace("enabled=\"true\"", "enabled=\"false\""),
        ]
        .concat(),
    ));
    let made = made(&text);
    let (_, left_out) = checked(&made);
    let lines: Vec<&str> = text.lines().collect();
    for (element, would, is_request) in [
        ("CacheManager \"Cache\"", "answered from its cache", false),
        ("JSR223PreProcessor \"make\"", "run its script: vars.put(\"token\", \"t\")", false),
        ("SyncTimer \"Together\"", "held 5 threads back", false),
        ("HTTPSamplerProxy \"A\"", "put what a script sets as ${token} in its place", true),
        ("XPathAssertion \"X\"", "checked the XPath //a", false),
        ("JDBCSampler \"Query\"", "sent what a JDBCSampler of JMeter sends", true),
    ] {
        let told = made.left_out.iter().find(|left| left.element == element && left.would.contains(would));
        let told = told.unwrap_or_else(|| panic!("{element}: {would}\n{left_out:#?}"));
        assert_eq!(told.is_request, is_request, "{told}");
        let kind = element.split(' ').next().unwrap();
        assert!(lines[told.line - 1].contains(&format!("<{kind} ")), "{told}: {}", lines[told.line - 1]);
    }
    assert_eq!(made.left_out.len(), 6, "{left_out:#?}");
    assert!(
        made.remark.contains("HTTPSamplerProxy \"Off\"") && made.remark.contains("ResultCollector"),
        "{}",
        made.remark
    );
}

#[test]
fn what_is_no_plan_is_refused() {
    for (text, says) in [
        ("<a/>", "its root is <a>"),
        ("<jmeterTestPlan", "not a JMeter plan that can be read"),
        (&plan(""), "there is nothing in it that can be sent here"),
        (&plan(&group("U", "", &node("FTPSampler", "F", "", ""))), "FTPSampler"),
    ] {
        let plan = Plan {
            name: "t.jmx",
            text,
            folder: Path::new("."),
            prefix: "",
            properties: &[],
            environment: None,
        };
        let error = scenario(&plan).unwrap_err().to_string();
        assert!(error.starts_with("t.jmx: ") && error.contains(says), "{error}");
    }
}

trait Add {
    fn add(self, more: &str) -> String;
}

impl Add for String {
    fn add(mut self, more: &str) -> String {
        self.push_str(more);
        self
    }
}

/// A plan with a place for another element in each of its scopes.
const PLACES: usize = 6;

fn with_unknown(at: usize, element: &str) -> String {
    let here = |place: usize| if place == at { element.to_owned() } else { String::new() };
    let inner = node(
        "LoopController",
        "L",
        &text("LoopController.loops", "2"),
        &[here(3), get("B", "/b", &here(4))].concat(),
    );
    let users = group("Users", "", &[here(1), get("A", "/a", &here(2)), inner].concat());
    plan(&[here(0), users, here(5)].concat())
}

proptest! {
    /// Whatever stands wherever, it is told, with its line.
    #[test]
    fn unknown_elements_are_told(name in "[A-Z][a-z]{2,12}", suffix in "(Sampler|Controller|Config|Timer|Gui|Modifier)", at in 0..PLACES, inside: bool) {
        let kind = format!("org.example.My{name}{suffix}");
        let element = node(&kind, "unknown one", "", &if inside { get("Hidden", "/hidden", "") } else { String::new() });
        let text = with_unknown(at, &element);
        let made = made(&text);
        let line = text.lines().position(|line| line.contains(&kind)).unwrap() + 1;
        let told = made.left_out.iter().find(|left| left.line == line);
        prop_assert!(told.is_some(), "{:?}\n{text}", made.left_out);
        prop_assert!(told.unwrap().is_request || !inside);
        let yaml = made.checked().unwrap();
        prop_assert!(!yaml.contains("/hidden"), "{yaml}");
    }

    /// No text makes the importer panic, nor a scenario that the checker refuses.
    #[test]
    fn texts_of_any_kind_are_safe(path in "(\\$\\{|__|[a-zA-Z(){},.'\"\\\\$ /?&=%-]){0,24}", condition in "(\\$\\{a\\}|vars.get\\(|[a-z0-9\"'()!=<>&|+*. -]){0,30}") {
        let inner = node("IfController", "I", &[text("IfController.condition", &condition), flag("IfController.useExpression", false)].concat(), &get("C", "/c", ""));
        let text = plan(&group("Users", "", &[get(&path, &path, ""), get("B", "/b", ""), inner].concat().replace('\u{0}', "")));
        let made = made(&text);
        let checked = made.checked();
        prop_assert!(checked.is_ok(), "{}\n{}", checked.unwrap_err(), made.scenario.to_yaml());
    }
}
