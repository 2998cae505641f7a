//! What plans say of an element besides: groups of an expression, quotes of a file, where credentials hold.

use super::*;

fn regex(more: &[(&str, &str)]) -> String {
    let fixed = [("RegexExtractor.refname", "x"), ("RegexExtractor.regex", "a(\\d)b(\\d)")];
    bean("RegexExtractor", "R", &[&fixed[..], more].concat())
}

#[test]
fn groups_of_an_expression_are_variables_where_something_names_them() {
    let uses = get("Use", "/${x}/${x_g0}/${x_g2}/${x_g}", "");
    let found =
        steps(&[get("A", "/a", &regex(&[("RegexExtractor.template", "$1$")])), uses.clone()].concat());
    assert_is(
        &found,
        r"
- GET: /a
  label: A
  extract:
    x_g0: {regex: a(\d)b(\d), group: 0, when missing: clear}
    x_g2: {regex: a(\d)b(\d), group: 2, when missing: clear}
    x_found: {regex: a(\d)b(\d), group: 0, when missing: clear}
    x: {regex: a(\d)b(\d), when missing: keep}
- set: {x_g: '${if(exists(x_found), 2, missing)}'}
- GET: /${path(x)}/${path(x_g0)}/${path(x_g2)}/${x_g}
  label: Use
"
        .replace('\'', "\"")
        .as_str(),
    );
    // a URL by itself
    let lone = node("HTTPSamplerProxy", "L", &text("HTTPSampler.path", "${x}"), "");
    let (found, left_out) =
        steps_and_left_out(&[get("A", "/a", &regex(&[("RegexExtractor.template", "$1$")])), lone].concat());
    assert!(found.contains("- GET: ${x}\n"), "{found}");
    assert!(left_out.len() == 1 && left_out[0].contains("here it goes to the system"), "{left_out:?}");
    // of the second match
    let second = regex(&[("RegexExtractor.template", "$1$"), ("RegexExtractor.match_number", "2")]);
    let found = steps(&[get("A", "/a", &second), uses.clone()].concat());
    for part in [
        "x_g0: {regex: '(?:a(\\d)b(\\d)(?s:.*?)){1}(a(\\d)b(\\d))', group: 3, when missing: clear}",
        "x_g2: {regex: '(?:a(\\d)b(\\d)(?s:.*?)){1}(a(\\d)b(\\d))', group: 5, when missing: clear}",
        "x: {regex: '(?:a(\\d)b(\\d)(?s:.*?)){1}(a(\\d)b(\\d))', group: 4, when missing: keep}",
    ] {
        assert!(found.contains(part), "{part}\n{found}");
    }
    // what cannot be found is missing, and told
    let of_headers = regex(&[("RegexExtractor.useHeaders", "true"), ("RegexExtractor.template", "$1$")]);
    let (_, left_out) = steps_and_left_out(&[get("A", "/a", &of_headers), uses].concat());
    assert!(
        left_out.iter().any(|left| left.contains("set x_g0 out of what is not the body")),
        "{left_out:?}"
    );
}

#[test]
fn an_extractor_of_json_has_the_number_of_its_matches() {
    let json = bean(
        "JSONPostProcessor",
        "J",
        &[
            ("JSONPostProcessor.referenceNames", "id"),
            ("JSONPostProcessor.jsonPathExprs", "$.items[*].id"),
            ("JSONPostProcessor.match_numbers", "1"),
        ],
    );
    let found = steps(&[get("A", "/a", &json), get("Use", "/of/${id_matchNr}", "")].concat());
    assert!(found.contains("id_matchNr: {count: \"$.items[*].id\"}"), "{found}");
    assert!(found.contains("- GET: /of/${id_matchNr}\n"), "{found}");
}

#[test]
fn a_status_is_ignored_also_where_nothing_else_is_checked() {
    let ignoring = node(
        "ResponseAssertion",
        "A",
        &format!(
            "<collectionProp name=\"Asserion.test_strings\"/>{}{}",
            text("Assertion.test_field", "Assertion.response_code"),
            flag("Assertion.assume_success", true)
        ),
        "",
    );
    let found = steps(&get("A", "/a", &ignoring));
    assert_is(&found, "- GET: /a\n  label: A\n  check: {status: 100-599}\n");
}

#[test]
fn credentials_hold_for_the_urls_that_begin_as_theirs() {
    let entry = |url: &str, user: &str| {
        format!(
            "<elementProp name=\"\" elementType=\"Authorization\">{}{}{}</elementProp>",
            text("Authorization.url", url),
            text("Authorization.username", user),
            text("Authorization.password", "pw")
        )
    };
    let manager = |entries: &[String]| {
        let list = entries.concat();
        node(
            "AuthManager",
            "M",
            &format!("<collectionProp name=\"AuthManager.auth_list\">{list}</collectionProp>"),
            "",
        )
    };
    let variables = node("Arguments", "V", &arguments("", &[("base", "/api")]), "");
    let of = |requests: &str, entries: &[String]| {
        let (yaml, left_out) = checked(&made(&plan(&format!(
            "{variables}{}",
            group("Users", "", &format!("{}{requests}", manager(entries)))
        ))));
        (yaml, left_out)
    };
    let (yaml, left_out) = of(
        &[get("In", "${base}/orders", ""), get("Out", "/other", ""), get("Sub", "/api/admin/x", "")].concat(),
        &[entry("http://shop.example:80/api/admin", "root"), entry("http://shop.example/api", "ann")],
    );
    assert_eq!(left_out, [""; 0], "{yaml}");
    let step = |label: &str| {
        let from = yaml.find(&format!("label: {label}\n")).unwrap_or_else(|| panic!("{yaml}"));
        yaml[from..]
            .split("\n      - ")
            .next()
            .unwrap_or_default()
            .split("\nload:")
            .next()
            .unwrap_or_default()
    };
    assert!(step("In").contains("user: ann"), "{yaml}");
    assert!(!step("Out").contains("auth:"), "{yaml}");
    assert!(step("Sub").contains("user: root"), "{yaml}");
    // a path that is computed may lie below it
    let (_, left_out) = of(&get("Any", "/${__Random(1,2)}/x", ""), &[entry("http://shop.example/1", "ann")]);
    assert!(left_out[0].contains("that of a request is known only while it runs"), "{left_out:?}");
}

#[test]
fn quotes_of_a_file_count_as_the_plan_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plain.csv"), "ann,1\n").unwrap();
    fs::write(folder.path().join("quoted.csv"), "\"a,nn\",1\n").unwrap();
    for (file, quoted, is_told) in
        [("plain.csv", "false", false), ("quoted.csv", "true", false), ("quoted.csv", "false", true)]
    {
        let set = bean(
            "CSVDataSet",
            "C",
            &[
                ("filename", file),
                ("variableNames", "name,id"),
                ("delimiter", ","),
                ("quotedData", quoted),
                ("shareMode", "shareMode.all"),
                ("recycle", "true"),
            ],
        );
        let whole = plan(&group("Users", "", &format!("{set}{}", get("A", "/${name}", ""))));
        let left_out = made_in(folder.path(), &whole, &[]).left_out;
        assert_eq!(left_out.len(), usize::from(is_told), "{file} {quoted}: {left_out:?}");
        assert!(left_out.iter().all(|left| left.is_request), "{left_out:?}");
    }
}

#[test]
fn more_functions_are_expressions() {
    for (function, found) in [
        ("${__intSum(2,${n},-1)}", "${(2 + n + -1)}"),
        ("${__longSum(2,3,sum)}", "${sum}"),
        ("${__char(0x41,66)}", "AB"),
        ("${__log(${n})}", "${n}"),
        ("${__substring(abc,0,2)}", "${path(slice('abc', 0, 2))}"),
        ("${__strLen(abc)}", "${len('abc')}"),
        ("${__uppercase(${n})}", "${path(upper(n))}"),
        (
            "${__dateTimeConvert(01/02/2026,dd/MM/yyyy,yyyy-MM-dd)}",
            "${path(date(epoch_ms('01/02/2026', '%d/%m/%Y'), '%Y-%m-%d'))}",
        ),
    ] {
        let counter = bean(
            "CounterConfig",
            "N",
            &[("CounterConfig.start", "1"), ("CounterConfig.incr", "1"), ("CounterConfig.name", "n")],
        );
        let (yaml, left_out) =
            steps_and_left_out(&format!("{counter}{}", get("A", &format!("/{function}"), "")));
        assert!(
            left_out.is_empty() && yaml.contains(&format!("GET: /{found}")),
            "{function}: {left_out:?}\n{yaml}"
        );
    }
}

#[test]
fn texts_of_the_first_format_are_decoded() {
    let off = get("Off", "%2Foff", "").replace("enabled=\"true\"", "").replace(
        "</HTTPSamplerProxy>",
        "<boolProp name=\"TestElement.enabled\">false</boolProp></HTTPSamplerProxy>",
    );
    let whole = plan(&group("Users", "", &[get("A", "%2Fa+b", ""), off].concat()));
    let (yaml, _) = checked(&made(&whole.replace("version=\"1.2\"", "version=\"1.0\"")));
    assert!(yaml.contains("GET: /a%20b\n") && !yaml.contains("/off"), "{yaml}");
}
