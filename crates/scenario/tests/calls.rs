//! Remote calls: what they become, and what is told about mistakes.

use crate::support::{checked, load, scenario};
use tidemark_scenario::Slot;
use tidemark_scenario::context::{Context, Shared};
use tidemark_scenario::plan::{Op, Plan, RequestKind, RequestPlan};

fn plan(steps: &str, rest: &str) -> Plan {
    load(&scenario("", steps, rest)).unwrap_or_else(|told| panic!("{told}"))
}

fn told(steps: &str, rest: &str) -> String {
    checked(&scenario("", steps, rest)).1.to_string()
}

#[test]
fn a_call_is_a_request_to_the_driver() {
    let steps = "- CALL: trade.trade
  args: [{name: \"${'ibm'}\", amount: 1}, null]
  timeout: 5s
  check: {status: 200, json: {$.done: yes}}
  extract: {done: $.done}
- CALL: trade.price
  label: Price
  args: \"${done}\"
- CALL: trade.all";
    let plan = plan(steps, "system: {url: 'http://a', rpc: /calls}");
    assert!(plan.has_calls_to(0) && !plan.has_websockets());
    assert_eq!(plan.labels, ["CALL trade.trade", "Price", "CALL trade.all"]);
    assert_eq!(plan.called().collect::<Vec<_>>(), ["trade.trade", "trade.price", "trade.all"]);
    assert_eq!(plan.system.rpc.as_deref(), Some("/calls"));
    assert!(matches!(plan.sessions[0].ops[..], [Op::Request(0), Op::Request(1), Op::Request(2), Op::End]));
    let call = |request: &RequestPlan| match &request.ask {
        RequestKind::Call(call) => call.clone(),
        other => panic!("no call: {other:?}"),
    };
    assert_eq!(call(&plan.requests[0]).deadline_ms, 5000);
    let shared = Shared::new(plan.counters, Vec::new());
    let mut slots = vec![Slot::default(); plan.sessions[0].slots];
    slots[0].set_text(b"yes");
    let mut random = fastrand::Rng::with_seed(1);
    let bodies = plan.requests.iter().map(|request| {
        let mut cx = Context { slots: &slots, shared: &shared, random: &mut random, epoch_ms: 0 };
        let mut out = Vec::new();
        call(request).arguments.render(&mut cx, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    });
    let bodies: Vec<String> = bodies.collect();
    assert_eq!(bodies, ["[{\"name\":\"ibm\",\"amount\":1},null]", "[\"yes\"]", "[]"]);
}

#[test]
fn writes_by_calls_are_entered() {
    let steps =
        "- CALL: notes.add\n  ledger: {content: \"|${entry}|${check}|\", as: note}\n  args: [\"${note}\"]";
    assert_eq!(plan(steps, "").entered().count(), 1);
}

#[test]
fn what_cannot_stand_beside_calls_is_told() {
    let call = "- CALL: a.b";
    for (steps, rest, message) in [
        ("- CALL: a.b\n- GET: /", "", "t.yaml:5:9: calls and requests are not made"),
        ("- CALL: a.b\n- ws connect: /", "", "t.yaml:5:9: calls and requests are not made"),
        (call, "prepare: [{GET: /}]", "line 4 makes a call"),
        (call, "limits: {pipeline: 4}", "`streams` says how many"),
        (call, "limits: {keep alive: false}", "which stay open"),
        (call, "defaults: {headers: {A: b}}", "calls have no headers"),
        (call, "system: {url: 'http://a', http: 2}", "begins with HTTP/1.1"),
        (call, "system: {url: 'http://a', rpc: calls}", "begins with a slash"),
        ("- GET: /", "system: {url: 'http://a', rpc: /calls}", "no step is a CALL"),
        ("- CALL: trade", "", "write service.method"),
        ("- CALL: a/b.c", "", "write service.method"),
        ("- CALL: a.b\n  extract: {x: {header: y}}\n- set: {z: \"${x}\"}", "", "neither headers nor cookies"),
        ("- CALL: a.b\n  check: {header: {x: y}}", "", "neither headers nor cookies"),
        ("- CAL: a.b", "", "did you mean CALL?"),
        ("- CALL: a.b\n  arg: [1]", "", "did you mean args?"),
    ] {
        let told = told(steps, rest);
        assert!(told.contains(message), "{steps} {rest}: {told}");
    }
    for rest in ["limits: {keep alive: true, streams: 9}", "system: {url: 'http://a', http: auto}"] {
        assert_eq!(told(call, rest), "");
    }
}
