//! Server-sent events, with an end and without one, and long polling.

use super::{assert_says, loaded, notes, of, once, once_failed};

#[test]
fn events_are_waited_for_until_the_server_ends_the_stream() {
    let text = r#"
system: {url: "{events}"}
sessions:
  buyer:
    steps:
      - set: {number: "${random(1, 99)}"}
      - sse connect: /orders/${number}
        label: Open
        check: {header: {content-type: {contains: event-stream}}}
      - sse expect: {event: state, json: {$.state: received, $.number: "${number}"}}
        label: First
      - sse expect: {event: state, json: {$.state: sent}}
        label: Sent
        extract: {state: $.state, name: {header: event}}
      - sse close: by server
        label: End
      - when: ${state != 'sent' or name != 'state'}
        steps: [{GET: /wrong}]
load: {users: 3, hold: 1s}
"#;
    let summary = loaded(text);
    for label in ["Open", "First", "Sent", "End"] {
        assert!(of(&summary, "steps", "label", label)["requests"].as_u64() > Some(0), "{label}: {summary}");
    }
    // three events, 30 ms apart, of which the first one is there at once
    // on a busy machine one may be read late, and the next soon after it
    let sent = of(&summary, "steps", "label", "Sent")["response_time_us"]["p50"].as_f64().unwrap();
    assert!(sent >= 40_000.0, "{sent} us");
    let told = once(text);
    assert_says(&told, &["2. First: an event in ", "< event: state", "extracted state = sent"]);
    assert!(!told.contains("status 0"), "{told}");
}

#[test]
fn a_stream_without_an_end_is_left_by_the_client() {
    let summary = loaded(
        r#"
system: {url: "{events}"}
sessions:
  watcher:
    steps:
      - sse connect: /ticks
        label: Open
      - repeat: 5
        steps:
          - sse expect: {event: tick}
            label: Tick
            extract: {at: $.at}
            measure: {delay: "${max(0, now() - at)}"}
      - sse close: now
load: {users: 3, hold: 1s}
"#,
    );
    assert!(of(&summary, "steps", "label", "Tick")["requests"].as_u64() > Some(0), "{summary}");
    assert!(of(&summary, "metrics", "metric", "delay")["count"].as_u64() > Some(0), "{summary}");
    assert!(notes(&summary).contains("event streams"), "{}", notes(&summary));
}

#[test]
fn what_is_no_stream_and_what_never_comes_is_told() {
    let told = once_failed(
        r#"
system: {url: "{events}"}
sessions:
  lost:
    steps:
      - sse connect: /none
      - sse expect: any
  patient:
    steps:
      - sse connect: /ticks
      - sse expect: {event: tock}
        timeout: 2s
load: {users: 1, hold: 1s}
"#,
    );
    assert_says(
        &told,
        &["application/json came, not text/event-stream", "events did not match, last `tick`"],
    );
}

#[test]
fn a_long_poll_is_answered_when_there_is_something_to_tell() {
    let summary = loaded(
        r#"
system: {url: "{shop}"}
sessions:
  reader:
    weight: 3
    steps:
      - GET: /news?after=-1
        label: Newest
        extract: {number: $.number}
      - GET: /news?after=${number}&within=2
        label: Wait
        timeout: 30s
        check: {status: [200, 204], that: "${code == 204 or next > number}"}
        extract: {code: status, next: {json: $.number, when missing: clear}}
  writer:
    weight: 1
    steps:
      - think: 100ms
      - POST: /news
        label: Tell
load: {users: 4, hold: 2s}
"#,
    );
    let waited = &of(&summary, "steps", "label", "Wait")["response_time_us"];
    assert!(waited["max"].as_u64() >= Some(20_000), "{waited}");
}
