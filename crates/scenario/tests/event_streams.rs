//! Steps with an event stream: what they become, and what is told about mistakes.

use crate::support::{checked, load, scenario};
use tidemark_scenario::plan::{EventStreamStep, Plan, RequestKind};

fn plan(steps: &str) -> Plan {
    load(&scenario("", steps, "")).unwrap_or_else(|told| panic!("{told}"))
}

fn told(steps: &str, rest: &str) -> String {
    checked(&scenario("", steps, rest)).1.to_string()
}

#[test]
fn every_step() {
    let plan = plan(
        "- sse connect: /live
  query: {room: 5}
  headers: {Accept: own}
- sse expect: {event: post, body: {contains: x}, json: {$.n: 1}, that: 1 < 2}
  extract: {name: {header: Event}, n: $.n}
- sse close: now
- sse connect: /live
- sse close: by server",
    );
    let step = |n: usize| match &plan.requests[n].ask {
        RequestKind::EventStream(step) => step,
        other => panic!("no step with an event stream: {other:?}"),
    };
    assert!(matches!(step(0), EventStreamStep::Connect(_)), "{:?}", step(0));
    assert!(matches!(step(1), EventStreamStep::Expect), "{:?}", step(1));
    assert!(matches!(step(2), EventStreamStep::Close), "{:?}", step(2));
    assert!(matches!(step(4), EventStreamStep::CloseByServer), "{:?}", step(4));
    assert_eq!(plan.requests[1].checks.len(), 4);
    assert_eq!(plan.labels, ["sse connect /live", "sse expect", "sse close"]);
    let head = |n: usize| {
        let head = plan.requests[n].http().unwrap().head("", "");
        String::from_utf8(head.as_literal().unwrap().to_vec()).unwrap()
    };
    let own =
        "GET /live?room=5 HTTP/1.1\r\nAccept: own\r\nUser-Agent: tidemark\r\nCache-Control: no-cache\r\n";
    assert_eq!(head(0), own);
    assert!(head(3).contains("Accept: text/event-stream\r\n"), "{}", head(3));
    assert!(plan.has_event_streams() && !plan.has_websockets());
}

#[test]
fn mistakes() {
    for (steps, rest, words) in [
        ("- sse expect: any", "", "no step before this one opens an event stream; add sse connect"),
        ("- sse connect: /a\n- GET: /b", "", "the session's connection is an event stream here"),
        ("- sse connect: /a\n- sse connect: /a", "", "there is an event stream already"),
        ("- sse connect: /a\n  extract: {n: $.n}", "", "the head is all that is waited for"),
        ("- sse connect: /a\n- sse expect: any\n  extract: {s: status}", "", "an event has its data (body)"),
        ("- sse connect: /a\n- sse close: soon", "", "by server"),
        ("- sse connect: /a\n- sse close: now\n- ws connect: /b", "", "not both"),
        ("- sse connect: /a", "system: {url: 'http://h', http: 2}\n", "event streams go over HTTP/1.1 only"),
        ("- sse connect: /a", "limits: {pipeline: 2}\n", "as an event stream has"),
    ] {
        let told = told(steps, rest);
        assert!(told.contains(words), "{steps}: {told}");
    }
}
