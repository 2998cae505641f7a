//! Sessions over WebSockets, from the scenario to the figures, against a server made of the codec's other side.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::identity::{NAME, identity_13};
use crate::support::websocket::{Socket, converse, listen, receive};
use crate::support::{Sum, begin, finish, options, outcomes_of, with_steps};
use rustls::ServerConfig;
use tidemark_drive::Tls;
use tidemark_record::ledger::{Entry, Ledger, LedgerWriter};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::plan::{RequestKind, WebSocketStep};
use tidemark_scenario::{Plan, Template};
use tidemark_wire::http1::{DecoderLimits, RequestDecoder};
use tidemark_wire::websocket::{
    Event, Kind, handshake, write_close, write_fragment, write_message, write_ping, write_pong,
};

/// Counts what the server saw.
#[derive(Default)]
struct Seen {
    messages: AtomicUsize,
    pongs: AtomicUsize,
    closes: AtomicUsize,
}

/// What the server does with a message; false to hang up without a word.
type Behave = fn(&str, &mut Vec<u8>) -> bool;

struct Server {
    address: SocketAddr,
    seen: Arc<Seen>,
}

fn server(greeting: Option<&'static str>, behave: Behave) -> Server {
    server_over(None, greeting, behave)
}

/// Over TLS where it is given an identity.
fn server_over(tls: Option<Arc<ServerConfig>>, greeting: Option<&'static str>, behave: Behave) -> Server {
    let seen = Arc::new(Seen::default());
    let counts = seen.clone();
    let address = listen(tls, move |stream| {
        // A driver that leaves in between is no error here.
        let _ = serve(stream, greeting, behave, &counts);
    });
    Server { address, seen }
}

/// Requests without an upgrade get an empty 200; `/no` gets a 403.
fn serve(stream: &mut dyn Socket, greeting: Option<&str>, behave: Behave, seen: &Seen) -> Option<()> {
    let mut request = RequestDecoder::new(DecoderLimits::default());
    loop {
        receive(stream, &mut request)?;
        let answer: &[u8] = match (request.header("upgrade"), request.target()) {
            (Some(_), b"/no") => b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n",
            (Some(_), _) => break,
            _ => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        };
        stream.write_all(answer).ok()?;
    }
    let offer = handshake::check_request(&request).unwrap();
    let mut out = Vec::new();
    handshake::write_answer(&mut out, offer.key, offer.protocols().last()).unwrap();
    if let Some(greeting) = greeting {
        // In one piece with the answer.
        write_message(&mut out, Kind::Text, greeting.as_bytes(), None);
    }
    stream.write_all(&out).ok()?;
    converse(stream, |event, decoder, out| match event {
        Event::Message(_) => {
            seen.messages.fetch_add(1, Ordering::SeqCst);
            let goes_on = behave(std::str::from_utf8(decoder.message()).unwrap(), out);
            if !goes_on {
                out.clear();
            }
            goes_on
        }
        Event::Ping => {
            write_pong(out, decoder.control(), None);
            true
        }
        Event::Pong => {
            seen.pongs.fetch_add(1, Ordering::SeqCst);
            true
        }
        Event::Close => {
            seen.closes.fetch_add(1, Ordering::SeqCst);
            write_close(out, decoder.close_code(), "", None);
            false
        }
    });
    Some(())
}

fn echo(message: &str, out: &mut Vec<u8>) -> bool {
    write_message(out, Kind::Text, message.as_bytes(), None);
    true
}

fn plan(steps: &str, load: &str) -> Plan {
    with_steps(steps, &format!("load: {load}\nlimits: {{drain: 2s}}"))
}

fn run(server: &Server, steps: &str, load: &str) -> (Vec<String>, Sum) {
    let mut plan = plan(steps, load);
    plan.limits.sessions = (load == TEN).then_some(10);
    let labels = plan.labels.clone();
    (labels, finish(begin(plan, options(server.address, 1))))
}

/// Sessions of which [`run`] begins ten, however long a busy machine takes for them.
const TEN: &str = "{rate: 50/s, hold: 60s}";

#[test]
fn a_whole_session() {
    let server = server(Some("welcome"), echo);
    let steps = r#"- GET: /login
- ws connect: /chat
  label: Connect
  subprotocol: [v2, v1]
  check: {header: {sec-websocket-protocol: v1}}
- ws expect: {body: welcome}
  label: Welcome
- repeat: 3
  as: n
  steps:
    - ws send: {json: {id: "${n}", say: "h\u00e9"}}
      label: Echo
      expect: {json: {$.id: "${n}"}}
      extract: {said: {json: $.say, when missing: fail}}
- ws send: "again ${said}"
  label: Send
- ws expect: {body: {matches: "^again h"}}
  label: Again
- ws ping: are you there
  label: Ping
- ws close: 1000
  label: Close
- GET: /logout"#;
    let (labels, sum) = run(&server, steps, TEN);
    for (label, count) in [
        ("GET /login", 10),
        ("Connect", 10),
        ("Welcome", 10),
        ("Echo", 30),
        ("Send", 10),
        ("Again", 10),
        ("Ping", 10),
        ("Close", 10),
        ("GET /logout", 10),
    ] {
        assert_eq!(
            outcomes_of(&labels, &sum, label),
            [(Outcome::Ok, count)],
            "{label}: {:?}",
            sum.examples()
        );
    }
    assert_eq!(server.seen.messages.load(Ordering::SeqCst), 40);
    assert_eq!(server.seen.closes.load(Ordering::SeqCst), 10);
    assert_eq!(sum.counted(Counter::UnexpectedMessages), 0);
}

#[test]
fn the_documents_example_works_against_a_server() {
    let reference = include_str!("../../../docs/scenario.md");
    let steps =
        reference.split("```yaml\n").find(|block| block.starts_with("- ws connect")).expect("an example");
    let steps = steps.split("```").next().unwrap();
    // The server says everything back; the example extracts from that and expects its last word again.
    let server = server(None, echo);
    let (labels, sum) = run(&server, steps, TEN);
    assert_eq!(outcomes_of(&labels, &sum, "Echo"), [(Outcome::Ok, 100)], "{:?}", sum.examples());
    assert_eq!(outcomes_of(&labels, &sum, "Farewell"), [(Outcome::Ok, 10)], "{:?}", sum.examples());
    assert_eq!(sum.outcome(Outcome::Ok), sum.ended());
}

#[test]
fn an_answer_is_told_from_other_messages_and_pings_are_answered() {
    let server = server(None, |message, out| {
        for n in 0..3 {
            write_message(out, Kind::Text, format!("push {n}").as_bytes(), None);
        }
        write_ping(out, b"?", None);
        // The answer comes in fragments, with a ping between them.
        let answer = format!("answer to {message}");
        write_fragment(out, Some(Kind::Text), false, &answer.as_bytes()[..4], None);
        write_ping(out, b"!", None);
        write_fragment(out, None, true, &answer.as_bytes()[4..], None);
        write_message(out, Kind::Text, b"push 3", None);
        true
    });
    let steps = "- ws connect: /
- ws send: one
  label: One
  expect: {body: answer to one}
- ws expect: {body: push 1}
  label: Push
- ws expect: any
  label: Next
  extract: {got: body}
- when: got == 'push 2'
  steps:
    - ws ping: x
      label: Right";
    let (labels, sum) = run(&server, steps, TEN);
    for label in ["One", "Push", "Next", "Right"] {
        assert_eq!(outcomes_of(&labels, &sum, label), [(Outcome::Ok, 10)], "{label}: {:?}", sum.examples());
    }
    // Passed over by the expect: push 0; left at the end: push 3.
    assert_eq!(sum.counted(Counter::UnexpectedMessages), 20);
    assert_eq!(server.seen.pongs.load(Ordering::SeqCst), 20);
}

#[test]
fn what_nobody_takes_is_bounded_and_counted() {
    let server = server(None, |_, out| {
        for n in 0..100 {
            write_message(out, Kind::Text, format!("{n}").as_bytes(), None);
        }
        write_message(out, Kind::Text, b"end", None);
        true
    });
    let steps = "- ws connect: /\n- ws send: x\n  expect: {body: end}\n- ws expect: any\n  extract: {first: body}\n- when: first == 36\n  steps: [{ws ping: x, label: Right}]";
    let (labels, sum) = run(&server, steps, TEN);
    assert_eq!(outcomes_of(&labels, &sum, "Right"), [(Outcome::Ok, 10)], "{:?}", sum.examples());
    assert_eq!(sum.counted(Counter::UnexpectedMessages), 10 * 99);
}

#[test]
fn a_close_in_the_midst_is_a_reset_and_ends_what_needs_it() {
    let server = server(None, |message, out| match message {
        "close" => {
            write_close(out, Some(1011), "tired", None);
            true
        }
        _ => false,
    });
    let steps = "- sometimes: 50%
  steps:
    - ws connect: /
    - ws send: close
      label: Told
      expect: any
    - ws send: more
      label: After
    - ws ping: x
      label: Never
- ws connect: /
- ws send: hang up
  label: Untold
  expect: any";
    let (labels, sum) = run(&server, steps, TEN);
    assert_eq!(outcomes_of(&labels, &sum, "Told"), [(Outcome::Reset, 5)]);
    assert_eq!(outcomes_of(&labels, &sum, "After"), [], "what is lost is counted once");
    assert_eq!(outcomes_of(&labels, &sum, "Never"), []);
    assert_eq!(outcomes_of(&labels, &sum, "Untold"), [(Outcome::Reset, 5)]);
    let details: Vec<&str> = sum.examples().iter().map(|example| example.detail.as_str()).collect();
    assert!(details.contains(&"the other side closed the WebSocket with code 1011: tired"), "{details:?}");
}

#[test]
fn a_close_between_steps_is_told_to_the_next_one_which_may_expect_it() {
    const TOLD: &str = "the other side closed the WebSocket with code 1011: no database";
    let server = server(None, |_, out| {
        write_close(out, Some(1011), "no database", None);
        true
    });
    for (step, outcome, detail) in [
        ("ws send: hello\n  expect: any", Outcome::Reset, TOLD),
        ("ws expect: any", Outcome::Reset, TOLD),
        ("ws ping: x", Outcome::Reset, TOLD),
        ("ws expect close: 1011\n  reason: {contains: database}", Outcome::Ok, ""),
        ("ws expect close: any", Outcome::Ok, ""),
        (
            "ws expect close: [1000, 1001]",
            Outcome::Status,
            "check close code: expected 1000 or 1001, got 1011",
        ),
        (
            "ws expect close: 1011\n  reason: tired",
            Outcome::Check,
            "check body: expected tired, got no database",
        ),
    ] {
        // with and without a time in which nobody waits for it
        for pause in ["- think: 60ms\n", ""] {
            let begin = format!("- ws connect: /\n- ws send: x\n{pause}- {step}\n  label: It");
            let ends_it = step.starts_with("ws expect close");
            let steps = if ends_it { begin + "\n- GET: /\n  label: After" } else { begin };
            let (labels, sum) = run(&server, &steps, TEN);
            assert_eq!(outcomes_of(&labels, &sum, "It"), [(outcome, 10)], "{step}: {:?}", sum.examples());
            assert!(
                !ends_it || outcomes_of(&labels, &sum, "After") == [(Outcome::Ok, 10)],
                "{step}: {:?}",
                sum.examples()
            );
            let told = sum.examples().iter().any(|example| example.detail.starts_with(detail));
            assert!(told || detail.is_empty(), "{step}: {:?}", sum.examples());
        }
    }
}

#[test]
fn refusals_time_outs_and_broken_frames() {
    let server = server(None, |message, out| {
        if message == "break" {
            out.extend_from_slice(b"\x83\x00");
        }
        true
    });
    let refused = "- ws connect: /no\n  label: No";
    let (labels, sum) = run(&server, refused, TEN);
    assert_eq!(outcomes_of(&labels, &sum, "No"), [(Outcome::Status, 10)], "{:?}", sum.examples());
    let statuses = sum.intervals.iter().flat_map(|interval| &interval.statuses);
    let refusals = statuses.filter(|(status, _)| *status != 101).map(|(_, count)| count);
    assert_eq!(refusals.sum::<u64>(), 10, "a refusal is an answer, too");
    let after = "- ws connect: /no\n  label: No\n- ws send: x\n  label: Never";
    let (labels, sum) = run(&server, after, TEN);
    assert_eq!(outcomes_of(&labels, &sum, "No"), [(Outcome::Status, 10)], "{:?}", sum.examples());
    assert_eq!(sum.ended(), 10, "{:?}", sum.examples());
    let silent = "- ws connect: /\n- ws send: x\n  label: Silent\n  expect: any\n  timeout: 50ms";
    let (labels, sum) = run(&server, silent, TEN);
    assert_eq!(outcomes_of(&labels, &sum, "Silent"), [(Outcome::Timeout, 10)]);
    let broken = "- ws connect: /\n- ws send: break\n  label: Broken\n  expect: any";
    let (labels, sum) = run(&server, broken, TEN);
    assert_eq!(outcomes_of(&labels, &sum, "Broken"), [(Outcome::Protocol, 10)]);
    assert!(sum.examples()[0].detail.contains("opcode"), "{:?}", sum.examples());
}

/// The entry of a message in the test below.
fn number(message: &str) -> u64 {
    message.split('|').nth(1).unwrap().parse::<Entry>().unwrap().number
}

#[test]
fn a_message_that_is_entered_is_acknowledged_by_the_one_that_passes() {
    let server = server(None, |message, out| match number(message) % 3 {
        0 => false,
        1 => {
            write_message(out, Kind::Text, b"something else", None);
            echo(message, out)
        }
        _ => {
            write_close(out, Some(1011), "", None);
            true
        }
    });
    let steps = "- ws connect: /
- ws send: {json: {text: \"${words}\"}}
  label: Say
  ledger: {content: \"${random(0, 9)}|${entry}|${check}\", as: words}
  expect: {json: {$.text: \"${words}\"}}
  timeout: 20s";
    let (labels, sum) = run(&server, steps, TEN);
    assert_eq!(
        outcomes_of(&labels, &sum, "Say"),
        [(Outcome::Ok, 3), (Outcome::Reset, 7)],
        "{:?}",
        sum.examples()
    );
    let parts = || sum.intervals.iter().map(|interval| &interval.ledger);
    assert_eq!(parts().map(|part| part.sent()).max(), Some(10));
    let folder = tempfile::tempdir().unwrap();
    let mut writer = LedgerWriter::create(folder.path()).unwrap();
    parts().for_each(|part| writer.add(part, 1).unwrap());
    let ledger = Ledger::read(folder.path()).unwrap();
    let numbers: Vec<u64> = ledger.acknowledged_entries().map(|entry| entry.number).collect();
    assert_eq!(numbers, [1, 4, 7]);
}

#[test]
fn messages_larger_than_what_a_socket_takes_at_once() {
    let server = server(None, |message, out| {
        std::thread::sleep(Duration::from_millis(5));
        echo(&message.len().to_string(), out)
    });
    // Each is longer than the socket's buffers; the second has to wait for the first.
    let steps = "- ws connect: /
- ws send: large
  label: Large
- ws send: large
  label: Large
- ws expect: any
- ws expect: {body: \"8000000\"}
  label: Sizes";
    let mut plan = plan(steps, "{rate: 20/s, hold: 60s}");
    plan.limits.sessions = Some(2);
    for request in [1, 2] {
        let message = Template::literal("x".repeat(8_000_000));
        let send = WebSocketStep::Send { message, kind: Kind::Text, expects: false };
        plan.requests[request].ask = RequestKind::WebSocket(send);
    }
    let labels = plan.labels.clone();
    let sum = finish(begin(plan, options(server.address, 1)));
    assert_eq!(outcomes_of(&labels, &sum, "Large"), [(Outcome::Ok, 4)], "{:?}", sum.examples());
    assert_eq!(outcomes_of(&labels, &sum, "Sizes"), [(Outcome::Ok, 2)], "{:?}", sum.examples());
}

#[test]
fn users_of_a_closed_load_begin_again_on_new_connections() {
    let server = server(None, echo);
    let steps =
        "- ws connect: /\n- repeat: 20\n  steps:\n    - ws send: x\n      label: Echo\n      expect: any";
    let mut plan = plan(steps, "{users: 4, hold: 60s}");
    plan.limits.sessions = Some(40);
    let labels = plan.labels.clone();
    let sum = finish(begin(plan, options(server.address, 1)));
    assert_eq!(sum.outcome(Outcome::Ok), sum.ended(), "{:?}", sum.examples());
    let connects: u64 = outcomes_of(&labels, &sum, "ws connect /").iter().map(|(_, count)| count).sum();
    assert_eq!(connects, 40);
    assert_eq!(sum.connects(), connects);
}

/// The same sessions over TLS: the handshake of the WebSocket, messages that span records, pings, a close.
#[test]
fn over_tls() {
    let identity = identity_13();
    let server = server_over(Some(identity.config.clone()), Some("welcome"), echo);
    let large = "x".repeat(100_000);
    let steps = format!(
        "- GET: /login\n- ws connect: /chat\n- ws expect: {{body: {{contains: welcome}}}}\n- ws send: {large}\n  \
         label: Large\n  expect: {{body: {{contains: {large}}}}}\n- ws ping: here\n- ws close: 1000\n"
    );
    let mut plan = plan(&steps, TEN);
    plan.limits.sessions = Some(10);
    let labels = plan.labels.clone();
    let mut options = options(server.address, 1);
    options.targets[0].tls = Some(Tls::new(&identity.trusted(), NAME).unwrap());
    let sum = finish(begin(plan, options));
    for label in &labels {
        assert_eq!(outcomes_of(&labels, &sum, label), [(Outcome::Ok, 10)], "{label}: {:?}", sum.examples());
    }
    assert_eq!(server.seen.messages.load(Ordering::SeqCst), 10);
    assert_eq!(server.seen.closes.load(Ordering::SeqCst), 10);
    assert!(
        sum.counted(Counter::FullHandshakes) + sum.counted(Counter::ResumedHandshakes) >= 10,
        "each session has its own connection"
    );
}
