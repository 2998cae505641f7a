//! Numbers of records in the language: what is compiled, and what is told about mistakes.

use std::path::Path;

use crate::support::{self, load, told_in};
use tidemark_scenario::plan::{Check, KeyUse, KeysPlan, Op, Preparation};
use tidemark_scenario::{Plan, load_text};

const GOOD: &str = "\
settings: {n: 500, workload: [a, b]}
keys: {records: {most: \"${2 * n}\", loaded: 10}}
prepare:
  users: 8
  times: ${n}
  steps:
    - POST: /load/${number}
      insert: records
      body: \"${value(number, version, 100)}\"
sessions:
  a:
    steps:
      - set: {number: \"${latest(records)}\"}
      - GET: /${number}
        read: {of: records, values: 10}
      - choose:
          - weight: ${if(workload == 'a', 1, 0)}
            steps:
              - PUT: /${number}
                write: records
                body: ${version}
          - weight: ${if(workload == 'b', 1, 0)}
            steps:
              - DELETE: /${number}
              - end: session
      - when: ${workload == 'b'}
        steps: [{GET: /never}]
load: {users: 1, hold: 10s}
";

#[test]
fn numbers_are_compiled_and_what_settings_rule_out_is_left_out() {
    let (plan, diagnostics) = support::checked(GOOD);
    assert_eq!(diagnostics.to_string(), "");
    let plan = plan.expect("a plan");
    assert_eq!(plan.keys, [KeysPlan { name: "records".into(), most: 1_000, loaded: 10 }]);
    assert_eq!(plan.preparation, Preparation { users: 8, times: 500 });
    let uses: Vec<_> = plan.requests.iter().filter_map(|request| Some(request.key?.does)).collect();
    assert_eq!(uses, [KeyUse::Read, KeyUse::Write, KeyUse::Insert]);
    assert!(matches!(plan.requests[0].checks[..], [Check::Value { values: 10, .. }]));
    assert!(plan.requests[0].needs_body());
    let labels = |plan: &Plan| {
        let ops = plan.sessions[0].ops.iter();
        let requests = ops.filter_map(|op| match op {
            Op::Request(at) => Some(plan.labels[usize::from(plan.requests[usize::from(*at)].label)].clone()),
            _ => None,
        });
        requests.collect::<Vec<_>>()
    };
    assert_eq!(labels(&plan), ["GET /${number}", "PUT /${number}"]);
    let other =
        load_text("t.yaml", GOOD, Path::new("."), &[("workload".into(), "b".into())]).expect("a plan");
    assert_eq!(labels(&other), ["GET /${number}", "DELETE /${number}", "GET /never"]);
}

#[test]
fn mistakes_are_told() {
    for (old, new, words) in [
        ("write: records", "write: record", "unknown keys \"record\"; did you mean records?"),
        ("latest(records)", "latest(other)", "unknown keys \"other\"; declare them: keys: {other: 1000000}"),
        ("loaded: 10", "loaded: 5000", "5000 are more than there can be, 1000"),
        ("\"${2 * n}\"", "200000000", "200000000 is too large; at most 100000000"),
        (
            "write: records",
            "write: records\n                read: records",
            "either \"write\" or \"read\", not both",
        ),
        ("users: 8", "users: 800000", "800000 is too large; at most 100000"),
        (
            "latest(records)",
            "latest(records, random(1, 2))",
            "the exponent of latest() is the same every time",
        ),
        ("latest(records)", "weighted(1, 2, 3)", "each value needs a weight behind it"),
        (
            "      insert: records\n      body: \"${value(number, version, 100)}\"",
            "      ledger: {content: \"|${entry}|${check}|\", as: note}\n      body: ${note}",
            "what many users prepare cannot be entered in the ledger",
        ),
        (
            "      - set: {number: \"${latest(records)}\"}\n",
            "",
            "nothing sets: put - set: {number: …} before it",
        ),
    ] {
        let told = told_in(GOOD, old, new);
        assert!(told.contains(words), "{words} is not in\n{told}");
    }
}

#[test]
fn a_preparation_of_one_user_stays_one() {
    let text = GOOD.replace("  users: 8\n  times: ${n}\n", "").replace("n: 500", "n: 7");
    assert_eq!(load(&text).expect("a plan").preparation, Preparation::default());
}
