//! Sessions that hold event streams open, from the scenario to the figures, against a server that streams, breaks off and
//! never answers.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{self, Next, Server, Sum, answer, begin, finish, load, options, outcomes_of, write};
use tidemark_drive::{Http2, Protocol};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::Plan;

const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n";
const LAST: &str = "0\r\n\r\n";

/// Sessions of which [`run`] begins ten, however long a busy machine takes for them.
const TEN: &str = "{rate: 50/s, hold: 60s}";

fn chunk(bytes: &str) -> String {
    format!("{:x}\r\n{bytes}\r\n", bytes.len())
}

fn event(name: &str, data: &str) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

/// Waits until the driver has left.
fn until_left(stream: &mut TcpStream, left: &AtomicUsize) -> Next {
    if let Ok(0) = std::io::Read::read(stream, &mut [0; 16]) {
        left.fetch_add(1, Ordering::SeqCst);
    }
    Next::Close
}

/// The server sees that the driver has left so many streams, which may take its threads a while.
fn all_left(left: &AtomicUsize, streams: usize) {
    let begun = Instant::now();
    while left.load(Ordering::SeqCst) < streams {
        assert!(begun.elapsed() < Duration::from_secs(30), "{left:?} of {streams}");
        std::thread::yield_now();
    }
}

/// A server whose answer depends on the path, and how many of its streams the driver left in order.
fn server() -> (Server, Arc<AtomicUsize>) {
    let left = Arc::new(AtomicUsize::new(0));
    let counts = left.clone();
    let server = Server::start(move |request, stream| {
        let posts = || (0..5).map(|n| event("post", &format!("{{\"n\": {n}}}"))).collect::<String>();
        match request.target() {
            "/in-one-piece" => {
                write(stream, &format!("{HEAD}{}{LAST}", chunk(&posts())));
                Next::Close
            }
            "/bytewise" => {
                // each chunk is a byte, and each piece that is sent ends within one
                let body: String = posts().chars().map(|c| chunk(&c.to_string())).collect();
                write(stream, HEAD);
                body.as_bytes().chunks(5).for_each(|piece| {
                    let _ = stream.write_all(piece);
                });
                until_left(stream, &counts)
            }
            "/silent" => {
                write(stream, HEAD);
                until_left(stream, &counts)
            }
            "/unanswered" => until_left(stream, &counts),
            "/huge" => {
                write(stream, HEAD);
                write(stream, &chunk(&event("post", &"x".repeat(300_000))));
                write(stream, &chunk(&event("post", "{\"n\": 1}")));
                until_left(stream, &counts)
            }
            "/broken" => {
                write(stream, &format!("{HEAD}{}", chunk(&event("post", "{\"n\": 0}"))));
                Next::Close
            }
            "/reset" => {
                write(stream, HEAD);
                Next::Reset
            }
            "/malformed" => {
                write(stream, &format!("{HEAD}{}zz\r\n", chunk(&posts())));
                until_left(stream, &counts)
            }
            "/no-chunks" => {
                write(stream, &format!("{HEAD}zz\r\n"));
                until_left(stream, &counts)
            }
            "/until-close" => {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                write(stream, &format!("{head}{}", posts()));
                Next::Close
            }
            "/gzip" => {
                let head = HEAD.replacen("\r\n", "\r\nContent-Encoding: gzip\r\n", 1);
                write(stream, &format!("{head}{}", chunk("\x1f\u{8b}")));
                until_left(stream, &counts)
            }
            "/identity" => {
                let head = HEAD.replacen("\r\n", "\r\nContent-Encoding: Identity\r\n", 1);
                write(stream, &format!("{head}{}", chunk(&posts())));
                until_left(stream, &counts)
            }
            "/hundred" | "/one-and-hundred" => {
                if request.target() == "/one-and-hundred" {
                    write(stream, &format!("{HEAD}{}", chunk(&posts())));
                    std::thread::sleep(Duration::from_millis(50));
                }
                let posts: String = (0..100).map(|n| event("post", &format!("{{\"n\": {n}}}"))).collect();
                let head = if request.target() == "/hundred" { HEAD } else { "" };
                write(stream, &format!("{head}{}", chunk(&posts)));
                until_left(stream, &counts)
            }
            "/404" => answer(stream, "404 Not Found", "", "{}"),
            _ => answer(stream, "200 OK", "Content-Type: application/json\r\n", "{}"),
        }
    });
    (server, left)
}

fn plan(steps: &str, users: &str) -> Plan {
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    let text =
        format!("sessions:\n  a:\n    steps:\n{steps}load: {users}\nlimits: {{drain: 2s, body: 200KiB}}\n");
    load(&text)
}

fn run(server: &Server, steps: &str) -> (Vec<String>, Sum) {
    let mut plan = plan(steps, TEN);
    plan.limits.sessions = Some(10);
    let labels = plan.labels.clone();
    (labels, finish(begin(plan, options(server.address, 1))))
}

#[test]
fn events_are_waited_for_and_the_driver_leaves_as_a_browser() {
    for path in ["/bytewise", "/in-one-piece", "/until-close"] {
        let (server, left) = server();
        let steps = format!(
            "- GET: /before
- sse connect: {path}
  label: Connect
  check: {{status: 200, header: {{content-type: {{contains: event-stream}}}}}}
- sse expect: {{event: post, json: {{$.n: 2}}}}
  label: Third
  extract: {{n: $.n, name: {{header: event}}}}
- sse expect: any
  label: Next
  extract: {{next: body}}
- when: ${{n == 2 and name == 'post' and contains(next, '3')}}
  steps:
    - sse expect: {{event: {{contains: o}}, body: {{matches: 4}}}}
      label: Last
- sse close: {}
  label: Close
- GET: /after",
            if path == "/bytewise" { "now" } else { "by server" }
        );
        let (labels, sum) = run(&server, &steps);
        for label in ["GET /before", "Connect", "Third", "Next", "Last", "Close", "GET /after"] {
            // to leave is to ask for nothing and to wait for nothing: it is no request
            let leaves = label == "Close" && path == "/bytewise";
            let expected: &[_] = if leaves { &[] } else { &[(Outcome::Ok, 10)] };
            assert_eq!(outcomes_of(&labels, &sum, label), expected, "{path} {label}: {:?}", sum.examples());
        }
        assert_eq!(sum.ended(), if path == "/bytewise" { 60 } else { 70 }, "{path}");
        assert_eq!(events(&sum), [10, 50, 30, 0, 0, 0], "{path}");
        if path == "/bytewise" {
            all_left(&left, 10);
        }
    }
}

#[test]
fn the_documents_example_works_against_a_server() {
    let reference = include_str!("../../../docs/scenario.md");
    let steps =
        reference.split("```yaml\n").find(|block| block.starts_with("- sse connect")).expect("an example");
    let server = Server::start(|_, stream| {
        write(stream, HEAD);
        write(stream, &chunk(&event("post", "{\"from\": \"/participant/7\", \"story\": \"hello\"}")));
        until_left(stream, &AtomicUsize::new(0))
    });
    let (_, sum) = run(&server, steps.split("```").next().unwrap());
    assert_eq!(sum.outcome(Outcome::Ok), sum.ended(), "{:?}", sum.examples());
    assert_eq!(sum.ended(), 20);
}

#[test]
fn a_stream_that_the_server_ends_or_breaks_is_a_failure_unless_it_may() {
    let (server, _) = server();
    for (path, words) in [
        ("/in-one-piece", "the server ended the event stream"),
        ("/broken", "the connection was closed within the event stream"),
        ("/reset", "the event stream broke"),
        ("/no-chunks", "malformed chunk size"),
    ] {
        let steps = format!(
            "- choose:
    - weight: 1
      steps:
        - sse connect: {path}
          label: Connect
        - sse expect: {{body: never}}
          label: Expect
    - weight: 1
      steps:
        - sse connect: {path}
          label: Connect
        - think: 100ms
        - sse close: now
          label: Close"
        );
        let (labels, sum) = run(&server, &steps);
        // one that breaks while no step waits is a failure of what began it; one that ends in order, of the step that follows
        let (began, followed): (&[_], &[_]) = match path {
            "/in-one-piece" => (&[(Outcome::Ok, 10)], &[(Outcome::Reset, 5)]),
            _ => (&[(Outcome::Ok, 10), (Outcome::Reset, 5)], &[]),
        };
        assert_eq!(outcomes_of(&labels, &sum, "Connect"), began, "{path}: {:?}", sum.examples());
        assert_eq!(outcomes_of(&labels, &sum, "Close"), followed, "{path}: {:?}", sum.examples());
        let failed = sum.outcome(Outcome::Reset);
        assert_eq!(failed, 10, "{path}: {:?}", sum.examples());
        assert!(sum.examples().iter().all(|example| example.detail.contains(words)), "{:?}", sum.examples());
    }
    let ended = "- sse connect: /broken\n- sse close: by server\n  label: Close";
    let (labels, sum) = run(&server, ended);
    assert_eq!(outcomes_of(&labels, &sum, "Close"), [(Outcome::Reset, 10)], "{:?}", sum.examples());
    let after = "- sse connect: /reset\n- sse expect: any\n  label: First\n- sse expect: any\n  label: Second\n- sse close: now\n  label: Never";
    let (labels, sum) = run(&server, after);
    assert_eq!(outcomes_of(&labels, &sum, "First"), [(Outcome::Reset, 10)], "{:?}", sum.examples());
    assert_eq!(
        outcomes_of(&labels, &sum, "Second"),
        [],
        "what is lost is counted once: {:?}",
        sum.examples()
    );
    assert_eq!((outcomes_of(&labels, &sum, "Never"), sum.ended()), (vec![], 20));
}

/// Whether a stream broke is seen by no step here, and by the session's end alone in the second round.
#[test]
fn a_stream_that_breaks_or_ends_while_no_step_waits_and_none_follows_is_told() {
    let (server, _) = server();
    for path in ["/broken", "/no-chunks", "/in-one-piece", "/until-close"] {
        for rest in ["\n- think: 100ms", ""] {
            let steps = format!("- sse connect: {path}\n  label: Connect{rest}");
            let (labels, sum) = run(&server, &steps);
            let is_broken = ["/broken", "/no-chunks"].contains(&path);
            let told = (outcomes_of(&labels, &sum, "Connect"), sum.counted(Counter::EventStreamsEnded));
            let [ok, reset] = [Outcome::Ok, Outcome::Reset].map(|outcome| (outcome, 10));
            match (is_broken, rest.is_empty()) {
                (true, false) => assert_eq!(told, (vec![ok, reset], 0), "{path}: {:?}", sum.examples()),
                (false, false) => assert_eq!(told, (vec![ok], 10), "{path}: {:?}", sum.examples()),
                // it may have left before
                (_, true) => assert!(told.0[0] == ok && told.1 <= 10, "{path}: {told:?}"),
            }
            assert_eq!(sum.ended(), told.0.iter().map(|(_, count)| count).sum::<u64>());
        }
    }
    // all of it comes in one piece, and is known when the session ends
    let steps = "- sse connect: /malformed\n  label: Connect";
    let (labels, sum) = run(&server, steps);
    let expected = [(Outcome::Ok, 10), (Outcome::Reset, 10)];
    assert_eq!(outcomes_of(&labels, &sum, "Connect"), expected, "{:?}", sum.examples());
}

#[test]
fn steps_on_a_stream_that_never_was_are_no_failures_of_their_own() {
    let (server, _) = server();
    let steps = "- sse connect: /404\n  label: Connect\n- think: 10ms\n- sse expect: any\n  label: Expect\n- sse close: now\n  label: Close\n- GET: /after";
    let (labels, sum) = run(&server, steps);
    assert_eq!(outcomes_of(&labels, &sum, "Connect"), [(Outcome::Status, 10)], "{:?}", sum.examples());
    assert_eq!(sum.ended(), 10, "{:?}", sum.examples());
}

#[test]
fn what_is_no_stream_and_what_never_comes() {
    let (server, _) = server();
    for (path, outcome, words) in [
        ("/404", Outcome::Status, "status 404, where an event stream begins with 200"),
        ("/json", Outcome::Protocol, "application/json came, not text/event-stream"),
        ("/gzip", Outcome::Protocol, "Content-Encoding gzip: "),
        ("/unanswered", Outcome::Timeout, "no whole answer in time"),
    ] {
        let timeout = if path == "/unanswered" { "200ms" } else { "20s" };
        let steps = format!("- sse connect: {path}\n  label: Connect\n  timeout: {timeout}");
        let (labels, sum) = run(&server, &steps);
        assert_eq!(outcomes_of(&labels, &sum, "Connect"), [(outcome, 10)], "{path}: {:?}", sum.examples());
        assert!(sum.examples()[0].detail.contains(words), "{:?}", sum.examples());
    }
    let silent = "- sse connect: /silent\n- sse expect: any\n  label: Expect\n  timeout: 100ms";
    let (labels, sum) = run(&server, silent);
    assert_eq!(outcomes_of(&labels, &sum, "Expect"), [(Outcome::Timeout, 10)], "{:?}", sum.examples());
    assert_eq!(sum.examples()[0].detail, "no event came");
    let plain = "- sse connect: /identity\n- sse expect: any\n  label: Expect";
    let (labels, sum) = run(&server, plain);
    assert_eq!(outcomes_of(&labels, &sum, "Expect"), [(Outcome::Ok, 10)], "{:?}", sum.examples());
}

/// Streams, and events that came over them, that steps took, that were too large; streams that ended, events that were dropped.
fn events(sum: &Sum) -> [u64; 6] {
    [
        Counter::EventStreams,
        Counter::EventsReceived,
        Counter::EventsTaken,
        Counter::EventsTooLarge,
        Counter::EventStreamsEnded,
        Counter::EventsDropped,
    ]
    .map(|counter| sum.counted(counter))
}

/// What no step takes in time goes, by the driver's doing: it is counted, and told where a step misses it.
#[test]
fn events_that_the_driver_drops_are_counted_and_told() {
    let (server, _) = server();
    let steps = "- sse connect: /hundred\n- think: 1500ms\n- sse expect: {json: {$.n: 8}}\n  label: Dropped\n  timeout: 100ms";
    let (labels, sum) = run(&server, steps);
    assert_eq!(outcomes_of(&labels, &sum, "Dropped"), [(Outcome::Timeout, 10)], "{:?}", sum.examples());
    assert_eq!(events(&sum), [10, 1000, 0, 0, 0, 360]);
    assert_eq!(
        sum.examples()[0].detail,
        "36 events were dropped by the load generator, which holds 64 for a stream; 64 events did not match, last `post`"
    );
    let none_follows =
        "- sse connect: /one-and-hundred\n- sse expect: any\n- think: 1500ms\n- sse close: now";
    let (_, sum) = run(&server, none_follows);
    // where the driver was late, all may have come before the step
    assert!(sum.counted(Counter::EventsDropped) < 200, "no step misses them: {:?}", sum.end.counters);
    assert!(sum.counted(Counter::EventsReceived) > 10 * 65, "{:?}", sum.end.counters);
}

#[test]
fn an_event_larger_than_a_body_may_be_is_passed_over_and_counted() {
    let (server, left) = server();
    let steps = "- sse connect: /huge\n- sse expect: any\n  label: Expect\n  extract: {n: $.n}\n- when: ${n == 1}\n  steps: [{sse close: now}, {GET: /after, label: Right}]";
    let (labels, sum) = run(&server, steps);
    assert_eq!(outcomes_of(&labels, &sum, "Right"), [(Outcome::Ok, 10)], "{:?}", sum.examples());
    assert_eq!(events(&sum), [10, 20, 10, 10, 0, 0]);
    all_left(&left, 10);
}

/// Nothing is kept where no step waits for an event; a session's end and the load's are an end as well.
#[test]
fn viewers_who_only_hold_a_stream_open() {
    let (server, left) = server();
    let mut plan = plan("- sse connect: /bytewise\n  label: Connect\n- think: 60s", "{users: 3, hold: 2s}");
    plan.limits.connections = 3;
    let sum = finish(begin(plan, options(server.address, 1)));
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (3, 3), "{:?}", sum.examples());
    assert_eq!(events(&sum), [3, 15, 0, 0, 0, 0]);
    all_left(&left, 3);
}

#[test]
fn over_http2_there_are_none() {
    let plan = plan("- sse connect: /bytewise", TEN);
    let (server, _) = server();
    let mut options = options(server.address, 1);
    options.targets[0].protocol = Protocol::Http2(Http2 { most_streams: 10 });
    let refused = support::refused(plan, options);
    assert!(refused.to_string().contains("sse steps need HTTP/1.1"), "{refused}");
}
