//! Assertions and extractors.

use super::*;

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
            bean("JMESPathAssertion", "J", &[("JMES_PATH", "a.b"), ("INVERT", "true")]),
            "check: {json: {$.a.b: {exists: false}}}",
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
    let html = |pairs: &[(&str, &str)]| {
        let own = pairs.iter().map(|(name, value)| text(&format!("HtmlExtractor.{name}"), value));
        node("HtmlExtractor", "H", &(text("HtmlExtractor.refname", "x") + &own.collect::<String>()), "")
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
        (
            regex(&[("refname", "x"), ("regex", "a(\\d)/"), ("template", "$1$"), ("match_number", "0")]),
            "const all = [...(res?.body ?? '').matchAll(/a(\\d)\\//g)];\n    vars.x = all[Math.floor(Math.random() * all.length)]?.[1] ?? vars.x;\n",
        ),
        (
            html(&[("expr", "input[name=\"t\"]"), ("attribute", "value"), ("match_number", "1")]),
            "- js: vars.x = res?.html('input[name=\"t\"]').toArray()[0]?.attr('value', '') ?? vars.x;\n",
        ),
        (
            html(&[("expr", "a[title='b']"), ("match_number", "2"), ("default", "it's")]),
            "- js: vars.x = res?.html('a[title=\\'b\\']').toArray()[1]?.text().trim().replace(/\\s+/g, ' ') ?? 'it\\'s';\n",
        ),
        (
            html(&[("expr", "li"), ("match_number", "0"), ("extractor_impl", "JODD")]),
            "const all = res?.html('li').toArray() ?? [];\n    vars.x = all[Math.floor(Math.random() * all.length)]?.text().trim() ?? vars.x;\n",
        ),
        (
            html(&[("expr", "li"), ("match_number", "1"), ("default", "${__time()}")]),
            "- set: {x: \"${default(x, ",
        ),
        (
            bean(
                "JMESPathExtractor",
                "P",
                &[("JMESExtractor.referenceName", "x"), ("JMESExtractor.jmesPathExpr", "a.b[0].c")],
            ),
            "x: {json: \"$.a.b[0].c\", when missing: clear}",
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
                    &[
                        ("HtmlExtractor.refname", "csrf"),
                        ("HtmlExtractor.expr", "input[name=_csrf]"),
                        ("HtmlExtractor.match_number", "-1"),
                    ],
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
