//! Steps over a WebSocket: what they become, and what is told about mistakes.

use crate::support::{checked, load, scenario};
use tidemark_scenario::plan::{Check, Plan, RequestKind, WebSocketStep};
use tidemark_wire::websocket::Kind;

fn plan(steps: &str) -> Plan {
    load(&scenario("", steps, "")).unwrap_or_else(|told| panic!("{told}"))
}

/// What is told, with the lines of the steps counted from 1.
fn told(steps: &str) -> Vec<String> {
    let (_, diagnostics) = checked(&scenario("", steps, ""));
    let told = diagnostics.items().iter().map(|item| {
        let text = item.to_string();
        let line = text.lines().next().unwrap_or_default().trim_start_matches("t.yaml:");
        let (number, rest) = line.split_once(':').unwrap();
        let (_, rest) = rest.split_once(": ").unwrap();
        format!("{}: {rest}", number.parse::<usize>().unwrap() - 3)
    });
    told.collect()
}

#[test]
fn every_step() {
    let plan = plan(
        "- ws connect: /chat
  query: {room: 5}
  headers: {X-A: b}
  subprotocol: [v2, v1]
- ws send: hello
  label: Hello
- ws send: {json: {n: 1}}
  expect: {json: {$.n: 1}, that: 1 < 2}
- ws send: {binary: abc}
  expect: any
- ws expect: {body: {contains: x}}
- ws ping: p
- ws close: 4000
  reason: over",
    );
    let steps: Vec<&WebSocketStep> = plan
        .requests
        .iter()
        .map(|request| match &request.ask {
            RequestKind::WebSocket(step) => step,
            other => panic!("no step over a WebSocket: {other:?}"),
        })
        .collect();
    let [connect, hello, json, binary, expect, ping, close] = steps[..] else { panic!("{steps:?}") };
    assert!(
        matches!(connect, WebSocketStep::Connect { protocols, .. } if *protocols == ["v2", "v1"]),
        "{connect:?}"
    );
    let sent = |step: &WebSocketStep| match step {
        WebSocketStep::Send { message, kind, expects } => {
            (message.as_literal().map(<[u8]>::to_vec), *kind, *expects)
        }
        other => panic!("no message: {other:?}"),
    };
    assert_eq!(sent(hello), (Some(b"hello".to_vec()), Kind::Text, false));
    assert_eq!(sent(json), (Some(b"{\"n\":1}".to_vec()), Kind::Text, true));
    assert_eq!(sent(binary), (Some(b"abc".to_vec()), Kind::Binary, true));
    assert!(matches!(expect, WebSocketStep::Expect), "{expect:?}");
    assert!(matches!(ping, WebSocketStep::Ping(holds) if holds.as_literal() == Some(b"p")), "{ping:?}");
    let WebSocketStep::Close { code: 4000, reason } = close else { panic!("{close:?}") };
    assert_eq!(reason.as_literal(), Some(&b"over"[..]));
    assert_eq!(plan.labels, ["ws connect /chat", "Hello", "ws send", "ws expect", "ws ping", "ws close"]);
    let head = plan.requests[0].http().unwrap().head("", "");
    assert_eq!(
        std::str::from_utf8(head.as_literal().unwrap()).unwrap(),
        "GET /chat?room=5 HTTP/1.1\r\nX-A: b\r\nUser-Agent: tidemark\r\nSec-WebSocket-Protocol: v2, v1\r\n"
    );
    assert!(matches!(plan.requests[2].checks[..], [Check::JsonValue(..), Check::Holds(..)]));
    assert!(plan.requests[3].checks.is_empty());
}

#[test]
fn a_message_needs_a_websocket_where_that_can_be_known() {
    let none = "no step before this one opens a WebSocket; add ws connect";
    assert_eq!(told("- ws send: x\n- ws connect: /"), [format!("1: {none}")]);
    assert_eq!(told("- ws connect: /\n- ws close: 1000\n- ws ping: x"), [format!("3: {none}")]);
    // On one of the ways there is one.
    let maybe = "- sometimes: 50%\n  steps:\n    - ws connect: /\n- ws send: x";
    assert_eq!(told(maybe), Vec::<String>::new());
    let round = "- repeat: 2\n  steps:\n    - ws connect: /\n    - ws send: x\n    - ws close: 1000";
    assert_eq!(told(round), Vec::<String>::new());
    let choose = "- choose:\n    - steps: [{ws connect: /a}]\n    - steps: [{ws connect: /b}, {end: session}]\n- ws expect: any";
    assert_eq!(told(choose), Vec::<String>::new());
}

#[test]
fn a_connection_is_one_thing_at_a_time() {
    let told_of_get = told("- ws connect: /\n- GET: /x\n- ws close: 1000\n- GET: /y");
    assert_eq!(
        told_of_get,
        ["2: the session's connection is a WebSocket here; requests can follow after a ws close"]
    );
    let told_of_second = told("- ws connect: /\n- ws connect: /");
    assert_eq!(
        told_of_second,
        ["2: there is a WebSocket already; a session has one at a time, so close it first with ws close"]
    );
}

#[test]
fn mistakes_are_told() {
    let cases = [
        ("- ws conect: /", "1: unknown step \"ws conect\"; did you mean ws connect?"),
        ("- ws connect: chat", "1: a path begins with a slash"),
        (
            "- ws connect: /\n  headers: {Sec-WebSocket-Protocol: x}",
            "2: the header Sec-WebSocket-Protocol belongs to the handshake, which is written for you; use subprotocol",
        ),
        ("- ws connect: /\n  subprotocol: a b", "2: \"a b\" cannot be a subprotocol's name"),
        (
            "- ws connect: /\n- ws close: 1006",
            "2: 1006 is not a close code that can be sent; use 1000, or one of 3000 to 4999",
        ),
        (
            "- ws connect: /\n- ws expect close: 999",
            "2: \"999\" is not a close code; write one of 1000 to 4999, or any",
        ),
        ("- ws connect: /\n- ws expect: all", "2: \"all\" is not one of any"),
        ("- ws connect: /\n- ws send: {jsn: 1}", "2: unknown key \"jsn\"; did you mean json?"),
        (
            "- ws connect: /\n- ws send: x\n  extract: {a: $.a}\n- when: exists(a)\n  steps: [{ws ping: x}]",
            "3: there is no message to extract from without expect",
        ),
        (
            "- ws connect: /\n- ws expect: any\n  extract: {a: status}\n- when: exists(a)\n  steps: [{ws ping: x}]",
            "3: a message has neither status nor headers nor cookies",
        ),
    ];
    for (steps, expected) in cases {
        let told = told(steps);
        assert!(told.iter().any(|one| one == expected), "{told:?}\nlacks\n{expected}");
    }
}
