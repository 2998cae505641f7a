//! Plans as people write them, and what becomes of each of their elements.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use super::*;

mod answers;
mod any;
mod control;
mod details;
mod loads;

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
fn what_has_no_counterpart_is_told_with_its_line() {
    let text = plan(&group(
        "Users",
        "",
        &[
            bean("CacheManager", "Cache", &[]),
            bean(
                "JSR223PreProcessor",
                "make",
                &[("script", "// a comment\nimport x.Y\nvars.put(\"token\", sign(\"t\"))")],
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
        ("JSR223PreProcessor \"make\"", "run its script: vars.put(\"token\", sign(\"t\"))", false),
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
