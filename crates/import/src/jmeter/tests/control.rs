//! Controllers, and what keeps a thread together.

use super::*;

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
fn a_failed_request_ends_what_jmeter_ends() {
    let one = get("A", "/a", "");
    let (endless, few) = (group("Users", "", &one), rounds("5", "1", "2", &one));
    for (word, threads, ends, told) in [
        ("continue", &few, false, 0),
        ("startnextloop", &endless, true, 0),
        ("stopthread", &endless, false, 1),
        ("startnextloop", &few, false, 1),
        ("stopthread", &few, true, 0),
        ("stoptest", &few, false, 1),
    ] {
        let end = format!("{}</ThreadGroup>", text("ThreadGroup.on_sample_error", word));
        let (yaml, left_out) = checked(&made(&plan(&threads.replace("</ThreadGroup>", &end))));
        let parts =
            ["extract: {answered: status}\n", "- when: ${not exists(answered)}\n", "- end: session\n"];
        assert_eq!(parts.iter().all(|part| yaml.contains(part)), ends, "{word}\n{yaml}");
        assert_eq!(left_out.len(), told, "{word}: {left_out:?}");
    }
    let condition = [
        text("IfController.condition", "${JMeterThread.last_sample_ok}"),
        flag("IfController.useExpression", true),
    ];
    let found = steps(&[one, node("IfController", "I", &condition.concat(), &get("B", "/b", ""))].concat());
    assert_is(
        &found,
        "
- set: {answered: 200}
- GET: /a
  label: A
  extract: {answered: status}
- when: ${lower(text(if(exists(answered), 'true', 'false'))) == 'true'}
  steps:
    - GET: /b
      label: B
      extract: {answered: status}
",
    );
}

#[test]
fn scripts_that_set_variables_are_steps() {
    let script = |kind: &str, code: &str| bean(kind, "S", &[("script", code), ("scriptLanguage", "groovy")]);
    let around = [
        script(
            "JSR223PreProcessor",
            "def made = UUID.randomUUID().toString(); // another\nvars.put(\"id\", made)",
        ),
        script("BeanShellPostProcessor", "vars.put('who', \"user-\" + vars.get(\"id\"));"),
    ];
    let found = steps(
        &[
            script("JSR223Sampler", "log.info('begin')\nThread.sleep(100)"),
            get("A", "/a/${id}", &around.concat()),
            get("B", "/b/${who}", ""),
        ]
        .concat(),
    );
    assert_is(
        &found,
        r#"
- think: 100ms
- set: {made: "${uuid()}"}
- set: {id: "${made}"}
- GET: /a/${path(id)}
  label: A
- set: {who: "${concat('user-', id)}"}
- GET: /b/${path(who)}
  label: B
"#,
    );
    // one with a statement that is not known is told as a whole
    let (_, left_out) = steps_and_left_out(&get(
        "A",
        "/a/${id}",
        &script("JSR223PreProcessor", "vars.put(\"id\", \"1\")\nif (a) { b() }"),
    ));
    assert_eq!(left_out.len(), 2, "{left_out:?}");
}
