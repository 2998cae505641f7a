//! `js` steps: what is compiled of them, and what is refused.

use crate::support;
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{ALL_SHOWN, CodePlan, Op};

fn checked(text: &str) -> (Option<Plan>, String) {
    let (plan, diagnostics) = support::checked(text);
    (plan, diagnostics.to_string())
}

fn with_steps(steps: &str) -> (Option<Plan>, String) {
    checked(&format!(
        "settings: {{region: eu}}\nsessions:\n  a:\n    steps:\n{steps}\nload: {{users: 1, hold: 1s}}\n"
    ))
}

fn plan(steps: &str) -> Plan {
    let (plan, told) = with_steps(steps);
    assert!(told.is_empty() || told.contains("region"), "{told}");
    plan.unwrap_or_else(|| panic!("{told}"))
}

fn named(code: &CodePlan) -> Vec<(&str, bool)> {
    code.variables.iter().map(|variable| (variable.name.as_str(), variable.is_fixed)).collect()
}

#[test]
fn a_step_knows_its_variables_and_where_it_stands() {
    let plan = plan(
        "      - GET: /
        extract: {id: $.id}
      - js: |
          const text = `${vars.id} in ${vars.region}`;

            vars.total = text.length;
      - GET: /${total}
      - js: console.log(vars.total);",
    );
    let [first, second] = &plan.codes[..] else { panic!("{:?}", plan.codes) };
    assert_eq!(named(first), [("id", false), ("region", true), ("total", false)]);
    assert_eq!(first.places, [(8, 11), (9, 1), (10, 11)]);
    assert_eq!((first.place(1, 7), first.place(3, 3), first.file.as_str()), ((8, 17), (10, 13), "t.yaml"));
    assert_eq!((named(second), second.places.as_slice()), (vec![("total", false)], &[(12, 13)][..]));
    let codes = plan.sessions[0].ops.iter().filter(|op| matches!(op, Op::Code { .. })).count();
    assert_eq!(codes, 2);
    let names = &plan.sessions[0].slot_names;
    let slot = |name: &str| names.iter().position(|known| known == name).map(|slot| slot as u16);
    assert_eq!(Some(first.variables[2].slot), slot("total"));
    assert_eq!(Some(first.variables[1].slot), slot("(region)"));
}

#[test]
fn answers_are_kept_whole_only_where_code_looks_at_them() {
    let shown =
        |code: &str| plan(&format!("      - GET: /\n      - js: {code}")).requests[0].shown_body_bytes;
    assert_eq!((shown("console.log(res.body)"), shown("console.log(1)")), (ALL_SHOWN, 0));
}

#[test]
fn what_is_wrong_with_a_step_is_told_where_it_stands() {
    for (steps, says) in [
        (
            "      - GET: /\n      - js: vars.totle + 1",
            "t.yaml:6:18: unknown variable \"totle\"; nothing sets it",
        ),
        (
            "      - GET: /\n        extract: {total: $.t}\n      - js: |\n          vars.totla;\n      - GET: /${total}",
            "t.yaml:8:16: unknown variable \"totla\"; did you mean total?",
        ),
        ("      - GET: /\n      - js: vars.in = 1", "t.yaml:6:18: \"in\" is a word of the expressions"),
        ("      - GET: /\n      - js: vars.ä = 1", "\"ä\" cannot be a name"),
        ("      - GET: /\n      - js: vars.region = 1", "\"region\" is a setting and cannot be set here"),
        ("      - GET: /\n      - js: ''", "there is no JavaScript here"),
        ("      - GET: /\n      - js: [1]", "\"js\" is a list; expected JavaScript"),
        ("      - GET: /\n      - js: x\n        label: y", "unknown key \"label\""),
        ("      - js: x", "the session \"a\" sends nothing"),
    ] {
        let (plan, told) = with_steps(steps);
        assert!(plan.is_none() && told.contains(says), "{steps}: {told}");
    }
    let (plan, told) = with_steps("      - GET: /${region}\n      - js: vars.spare = 1");
    assert!(
        plan.is_some() && told.contains("6:18: warning: the variable \"spare\" is set but never used"),
        "{told}"
    );
    // holes are JavaScript's own, and so is what looks like one
    let (plan, told) = with_steps("      - GET: /${region}\n      - js: 'console.log(`${x} $${y} ${`)'");
    assert_eq!((plan.unwrap().codes[0].text.as_ref(), told.as_str()), ("console.log(`${x} $${y} ${`)", ""));
}

#[test]
fn what_code_sets_is_known_everywhere_in_its_session() {
    for code in
        ["vars.n = 1", "vars.n ??= 1", "[vars.n] = [1]", "({n: vars.n} = {n: 1})", "for (vars.n of [1]);"]
    {
        let (plan, told) = with_steps(&format!("      - GET: /${{n}}${{region}}\n      - js: \"{code}\""));
        assert!(plan.is_some() && told.is_empty(), "{code}: {told}");
    }
    let (plan, told) = checked(
        "sessions:\n  a: {steps: [{GET: /}, {js: vars.n = 1}]}\n  b: {steps: [{GET: '/${n}'}]}\nload: {users: 1, hold: 1s}\n",
    );
    assert!(plan.is_none() && told.contains("unknown variable \"n\""), "{told}");
}

#[test]
fn bounds_are_read_and_held_within_what_has_sense() {
    let with = |script: &str, step: &str| {
        checked(&format!(
            "script: {script}\nsessions:\n  a: {{steps: [{{GET: /}}, {step}]}}\nload: {{users: 1, hold: 1s}}\n"
        ))
    };
    let (plan, told) = with("{memory: 64MiB, step: 200ms}", "{js: x}");
    let bounds = plan.unwrap().script;
    assert_eq!((bounds.memory_bytes, bounds.step.map(|step| step.as_millis())), (Some(64 << 20), Some(200)));
    assert_eq!(told, "");
    for (script, says) in [
        ("{memory: 1KiB}", "too little for JavaScript: at least 4MiB"),
        ("{step: 1us}", "too short for JavaScript: at least 1ms"),
        ("{time: 1s}", "unknown key \"time\""),
    ] {
        let (plan, told) = with(script, "{js: x}");
        assert!(plan.is_none() && told.contains(says), "{script}: {told}");
    }
    let (plan, told) = with("{step: 1s}", "{GET: /}");
    assert!(plan.is_some() && told.contains("the scenario has none of them"), "{told}");
}
