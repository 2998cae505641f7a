//! gRPC, from the scenario to the figures, against servers that answer as told, also wrongly.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::Reason;
use http::Response;
use tidemark_drive::{Grpc, Protocol, check_health};
use tidemark_record::{Counter, GrpcCode, Outcome};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::HttpVersion;

use crate::support::grpc::{Call, end, framed, message, pause, serve, serve_some, speaking, status, types};
use crate::support::{Nobody, Sum, begin, details, finish, outcomes, refused, serving, with_steps};

const ONE: &str = "- grpc: t.S/One\n  timeout: 5s";
const LOOKS: &str = "- grpc: t.S/One\n  check: {json: {$.text: hello}}\n  timeout: 5s";
const LOAD: &str = "load: {users: 1, hold: 60s}\nlimits: {sessions: 3, drain: 5s, body: 64KiB}";

fn run(steps: &str, more: &str, address: SocketAddr) -> Sum {
    run_plan(with_steps(steps, more), address)
}

fn run_plan(plan: Plan, address: SocketAddr) -> Sum {
    finish(begin(plan, speaking(address)))
}

/// How often each status came.
fn statuses(sum: &Sum) -> Vec<(GrpcCode, u64)> {
    let mut all: Vec<(GrpcCode, u64)> = Vec::new();
    for (status, count) in sum.intervals.iter().flat_map(|interval| &interval.statuses) {
        let code = GrpcCode::of_status(*status).unwrap();
        match all.iter_mut().find(|(known, _)| *known == code) {
            Some((_, known)) => *known += count,
            None => all.push((code, *count)),
        }
    }
    all
}

#[test]
fn a_call_is_what_its_server_expects_and_its_answer_is_read() {
    let address = serve(|mut call: Call| {
        Box::pin(async move {
            let headers = call.head.headers().clone();
            let header = |name: &str| headers[name].to_str().unwrap();
            assert_eq!((call.head.uri().path(), call.head.method().as_str()), ("/t.S/One", "POST"));
            assert_eq!((header("te"), header("content-type")), ("trailers", "application/grpc"));
            assert_eq!((header("grpc-timeout"), header("user")), ("2000000u", "ann 7"));
            assert_eq!(call.read().await, [&framed(0, b"\x0a\x05hello\x10\x07")[..]].concat());
            let mut stream = call.begin();
            // cut wherever
            for byte in message("hello") {
                let _ = stream.send_data(Bytes::copy_from_slice(&[byte]), false);
                tokio::task::yield_now().await;
            }
            end(&mut stream, 0, "");
        })
    });
    let steps = "- set: {n: '${3 + 4}'}\n\
                 - grpc: t.S/One\n  message: {text: hello, number: '${n}'}\n  metadata: {user: 'ann ${n}'}\n  deadline: 2s\n  \
                 check: {json: {$.text: hello, $.number: '0', $.more: []}}";
    let sum = run(steps, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 3)], "{}", details(&sum));
    assert_eq!(statuses(&sum), [(GrpcCode::Ok, 3)]);
}

/// What comes over says how it was sent.
#[test]
fn metadata_of_bytes_leaves_without_padding_and_comes_with_it() {
    let address = serve(|mut call: Call| {
        Box::pin(async move {
            call.read().await;
            let sent =
                ["one-bin", "two-bin"].map(|name| call.head.headers()[name].to_str().unwrap().to_owned());
            let mut stream = call.begin();
            let _ = stream.send_data(message("hello").into(), false);
            let mut trailers = status(0, "");
            for (name, value) in
                [("sent", &*sent.join(" ")), ("one-bin", "aGk"), ("two-bin", "aGk="), ("all-bin", "aGk,AA")]
            {
                trailers.insert(name, value.parse().unwrap());
            }
            let _ = stream.send_trailers(trailers);
        })
    });
    let steps = "- set: {b: hi}\n- grpc: t.S/One\n  metadata: {one-bin: aGk=, two-bin: '${base64(b)}'}\n  timeout: 5s\n  \
                 extract: {came: {header: one-bin}}\n  check:\n    metadata: {sent: aGk aGk, one-bin: aGk, two-bin: '${base64(b)}', \
                 all-bin: {equals: 'aGk=,AA=='}}\n    that: came == base64(b)";
    let sum = run(steps, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 3)], "{}", details(&sum));
}

#[test]
fn metadata_that_grpc_forbids_is_counted_and_never_sent() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let address = serve(move |mut call: Call| {
        counted.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move { end(&mut call.begin(), 0, "") })
    });
    for (name, value, why) in [
        ("a", r"b\r\nc: d", "printable"),
        ("a", r"b\nc", "printable"),
        ("a", r"b\0", "printable"),
        ("a", r"b\tc", "printable"),
        ("a", r"b\x7f", "printable"),
        ("a", "bé", "printable"),
        ("a", "b ", "begins or ends with a space"),
        ("a-bin", "aG k", "base64"),
        ("a-bin", "aGl", "base64"),
    ] {
        for step in ["grpc", "grpc open"] {
            let steps = format!(
                "- set: {{v: \"{value}\"}}\n- {step}: t.S/Both\n  metadata: {{{name}: 'aGk${{v}}'}}\n  timeout: 5s"
            );
            let sum = run(&steps, LOAD, address);
            assert_eq!(outcomes(&sum), [(Outcome::Protocol, 3)], "{value}: {}", details(&sum));
            assert!(details(&sum).contains(why), "{value}: {}", details(&sum));
        }
    }
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}

/// Answers without an answer: what each is told as.
#[test]
fn what_a_server_says_otherwise_is_a_status_by_the_tables() {
    type Answer = fn(&mut Call);
    let answers: [(Answer, GrpcCode, &str); 9] = [
        (
            |call| {
                let head =
                    Response::builder().header("content-type", "application/grpc").header("grpc-status", "5");
                let head = head.header("grpc-message", "no%20cart").body(()).unwrap();
                call.answer.send_response(head, true).unwrap();
            },
            GrpcCode::NotFound,
            "no cart",
        ),
        (|call| drop(call.begin().send_trailers(status(99, ""))), GrpcCode::Unknown, ""),
        (|call| drop(call.begin().send_data(Bytes::new(), true)), GrpcCode::Internal, "without a status"),
        (|call| call.begin().send_reset(Reason::CANCEL), GrpcCode::Cancelled, "CANCEL"),
        (|call| call.answer.send_reset(Reason::ENHANCE_YOUR_CALM), GrpcCode::ResourceExhausted, "CALM"),
        (|call| call.answer.send_reset(Reason::INTERNAL_ERROR), GrpcCode::Internal, "INTERNAL_ERROR"),
        (
            |call| drop(call.answer.send_response(Response::builder().status(503).body(()).unwrap(), true)),
            GrpcCode::Unavailable,
            "HTTP with status 503",
        ),
        (
            |call| drop(call.answer.send_response(Response::builder().status(404).body(()).unwrap(), true)),
            GrpcCode::Unimplemented,
            "404",
        ),
        (
            |call| {
                let head = Response::builder().header("content-type", "text/html").body(()).unwrap();
                let mut page = call.answer.send_response(head, false).unwrap();
                page.send_data(Bytes::from_static(b"<html>"), true).unwrap();
            },
            GrpcCode::Unknown,
            "its content-type is text/html",
        ),
    ];
    for (answer, code, words) in answers {
        let address = serve(move |mut call: Call| {
            Box::pin(async move {
                call.read().await;
                answer(&mut call);
            })
        });
        let sum = run(ONE, LOAD, address);
        assert_eq!(outcomes(&sum), [(Outcome::Status, 3)], "{words}: {}", details(&sum));
        assert_eq!(statuses(&sum), [(code, 3)], "{words}");
        assert!(details(&sum).contains(code.name()) && details(&sum).contains(words), "{}", details(&sum));
        let steps = format!("{ONE}\n  check: {{status: {}}}", code.name());
        assert_eq!(outcomes(&run(&steps, LOAD, address)), [(Outcome::Ok, 3)], "{words}");
    }
}

/// grpc-go resets a stream whose deadline is over.
#[test]
fn a_stream_that_is_cancelled_at_its_deadline_exceeded_it() {
    let address = serve(|mut call: Call| {
        Box::pin(async move {
            call.read().await;
            pause(60).await;
            call.answer.send_reset(Reason::CANCEL);
        })
    });
    for (deadline, code) in [("50ms", "DEADLINE_EXCEEDED"), ("20s", "CANCELLED")] {
        let steps = format!("- grpc: t.S/One\n  deadline: {deadline}\n  check: {{status: {code}}}");
        assert_eq!(outcomes(&run(&steps, LOAD, address)), [(Outcome::Ok, 3)], "{code}");
    }
}

#[test]
fn what_is_no_message_is_against_the_protocol() {
    type Write = fn(&mut Call) -> Vec<u8>;
    let mut bomb = Vec::new();
    tidemark_wire::grpc::write_compressed(&vec![0; 4 << 20], &mut bomb);
    assert!(bomb.len() < 64 << 10);
    let answers: [(Write, &str); 7] = [
        (|_| vec![7, 0, 0, 0, 0], "begins with 7"),
        (|_| framed(0, &[0xff; 3]), "is not a t.M"),
        (|_| vec![0, 0xff, 0xff, 0xff, 0xff], "more than the limit of 65536"),
        (|_| vec![0, 0, 0, 0, 9, 1], "messages in place of one"),
        (|_| [message("hello"), vec![0, 0, 0, 0, 9, 1]].concat(), "ends within a message"),
        (|_| [message("hello"), message("hello")].concat(), "has 2 messages"),
        (|_| framed(1, b"zz"), "does not say how"),
    ];
    for (write, words) in answers {
        let address = serve(move |mut call: Call| {
            Box::pin(async move {
                call.read().await;
                let bytes = write(&mut call);
                let mut stream = call.begin();
                let _ = stream.send_data(bytes.into(), false);
                end(&mut stream, 0, "");
            })
        });
        let sum = run(LOOKS, LOAD, address);
        assert_eq!(outcomes(&sum), [(Outcome::Protocol, 3)], "{words}: {}", details(&sum));
        assert!(details(&sum).contains(words), "{words}: {}", details(&sum));
    }
    let address = serve(move |mut call: Call| {
        let bomb = bomb.clone();
        Box::pin(async move {
            call.read().await;
            let mut stream = call.begin_with("gzip");
            let _ = stream.send_data(bomb.into(), false);
            end(&mut stream, 0, "");
        })
    });
    let sum = run(LOOKS, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Protocol, 3)], "{}", details(&sum));
    assert!(
        details(&sum).contains("larger than the limit of 65536 bytes once its gzip is read"),
        "{}",
        details(&sum)
    );
}

/// An answer without end is bounded by the time, and by the room where somebody looks at it.
#[test]
fn messages_without_end_are_counted_or_refused() {
    let address = serve(|mut call: Call| {
        Box::pin(async move {
            call.read().await;
            let mut stream = call.begin();
            let many: Bytes = message(&"x".repeat(1_000)).repeat(16).into();
            loop {
                stream.reserve_capacity(many.len());
                match std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
                    Some(Ok(_)) if stream.send_data(many.clone(), false).is_ok() => {}
                    _ => return,
                }
            }
        })
    });
    let steps = "- grpc: t.S/Many\n  timeout: 300ms";
    let sum = run(steps, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Timeout, 3)], "{}", details(&sum));
    let steps = "- grpc: t.S/Many\n  check: {json: {'$[0].text': x}}\n  timeout: 60s";
    let sum = run(steps, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Protocol, 3)], "{}", details(&sum));
    assert!(details(&sum).contains("limits: body"), "{}", details(&sum));
}

#[test]
fn a_stream_goes_both_ways_and_its_end_is_told() {
    let address = serve(|mut call: Call| {
        Box::pin(async move {
            let mut stream = call.begin();
            let mut come = tidemark_wire::grpc::Messages::new(1_000);
            while let Some(Ok(piece)) = call.body.data().await {
                let _ = call.body.flow_control().release_capacity(piece.len());
                come.push(&piece);
                while let Ok(Some(message)) = come.next() {
                    if message.bytes.ends_with(b"stop") {
                        return end(&mut stream, 10, "stopped");
                    }
                    let _ = stream.send_data(framed(0, message.bytes).repeat(2).into(), false);
                }
            }
            end(&mut stream, 0, "");
        })
    });
    let steps = "- grpc open: t.S/Both\n\
                 - grpc send: {text: a}\n\
                 - grpc send: {text: b}\n  expect: {json: {$.text: b}}\n\
                 - grpc expect: {json: {$.text: b}}\n\
                 - grpc close: OK\n\
                 - grpc: t.S/Both\n  message: [{text: c}, {text: d}]\n  check: {json: {'$[3].text': d}}";
    let sum = run(steps, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 18)], "{}", details(&sum));

    let steps = "- grpc open: t.S/Both\n- grpc send: {text: stop}\n- grpc close: ABORTED";
    let sum = run(steps, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 9)], "{}", details(&sum));

    // what is expected never comes, and what builds on it is left out
    let steps = "- grpc open: t.S/Both\n- grpc send: {text: stop}\n- grpc expect: any\n- grpc send: {text: more}\n- grpc close: OK";
    let sum = run(steps, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 6), (Outcome::Reset, 3)], "{}", details(&sum));
    assert!(details(&sum).contains("the stream is over: status ABORTED: stopped"), "{}", details(&sum));
}

/// Whatever ends a stream while no step waits for it is told to the next one, or at the end of the session.
#[test]
fn a_stream_that_ends_between_two_steps_is_told() {
    let address = serve(|mut call: Call| {
        Box::pin(async move {
            let mut stream = call.begin();
            let mut come = tidemark_wire::grpc::Messages::new(1_000);
            while let Some(Ok(piece)) = call.body.data().await {
                come.push(&piece);
                while let Ok(Some(message)) = come.next() {
                    let _ = stream.send_data(framed(0, message.bytes).into(), false);
                    match message.bytes {
                        bytes if bytes.ends_with(b"last") => return end(&mut stream, 10, "enough"),
                        bytes if bytes.ends_with(b"good") => return end(&mut stream, 0, ""),
                        bytes if bytes.ends_with(b"gone") => return stream.send_reset(Reason::CANCEL),
                        _ => {}
                    }
                }
            }
        })
    });
    let told = |steps: &str| {
        let sum = run(steps, LOAD, address);
        (outcomes(&sum), details(&sum), sum.counted(Counter::StreamsLeft))
    };
    let last = "- grpc open: t.S/Both\n- grpc send: {text: last}\n  expect: any";
    // no step is behind it: its status counts all the same
    let (outcomes, details, left) = told(last);
    assert_eq!((&outcomes[..], left), (&[(Outcome::Ok, 6), (Outcome::Reset, 3)][..], 0), "{details}");
    assert!(details.contains("the stream is over: status ABORTED: enough"), "{details}");
    // it is told once, and its status can be looked at
    let (outcomes, details, left) =
        told(&format!("{last}\n- grpc send: {{text: more}}\n- grpc close: ABORTED"));
    assert_eq!((&outcomes[..], left), (&[(Outcome::Ok, 9), (Outcome::Reset, 3)][..], 0), "{details}");
    let (outcomes, details, left) = told(&format!("{last}\n- grpc send: {{text: more}}"));
    assert_eq!((&outcomes[..], left), (&[(Outcome::Ok, 6), (Outcome::Reset, 3)][..], 0), "{details}");
    let (outcomes, details, _) = told(&format!("{last}\n- grpc close: OK"));
    assert_eq!(outcomes, [(Outcome::Ok, 6), (Outcome::Status, 3)], "{details}");
    // in order
    let (outcomes, details, left) = told(&last.replace("last", "good"));
    assert_eq!((&outcomes[..], left), (&[(Outcome::Ok, 6)][..], 0), "{details}");
    // still open
    let (outcomes, details, left) = told(&last.replace("last", "more"));
    assert_eq!((&outcomes[..], left), (&[(Outcome::Ok, 6)][..], 3), "{details}");
}

/// More users than the server takes streams: those that wait are opened later.
#[test]
fn streams_wait_for_their_turn() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        tokio::task::LocalSet::new().block_on(&runtime, async move {
            listener.set_nonblocking(true).unwrap();
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let under_way = Arc::new(AtomicUsize::new(0));
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, under_way) = (seen.clone(), under_way.clone());
                tokio::task::spawn_local(async move {
                    let mut builder = h2::server::Builder::new();
                    let Ok(mut connection) =
                        builder.max_concurrent_streams(2).handshake::<_, Bytes>(socket).await
                    else {
                        return;
                    };
                    while let Some(Ok((request, answer))) = connection.accept().await {
                        let (seen, under_way) = (seen.clone(), under_way.clone());
                        tokio::task::spawn_local(async move {
                            seen.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                            let (head, body) = request.into_parts();
                            let mut call = Call { head: http::Request::from_parts(head, ()), body, answer };
                            call.read().await;
                            pause(5).await;
                            under_way.fetch_sub(1, Ordering::SeqCst);
                            end(&mut call.begin(), 0, "");
                        });
                    }
                });
            }
        });
    });
    // how many that are is known once the first call is answered
    let steps = "- grpc: t.S/Both\n- grpc open: t.S/Both\n- grpc send: {text: a}\n- grpc close: OK";
    let more = "load: {users: 6, hold: 60s}\nlimits: {sessions: 30, drain: 5s, connections: 1, streams: 6}";
    let sum = run(steps, more, address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 120)], "{}", details(&sum));
    assert!(most.load(Ordering::SeqCst) <= 2);
}

#[test]
fn a_connection_that_is_refused_or_lost_is_no_status() {
    let nobody = Nobody::taken();
    let sum = run("- grpc: t.S/One\n  timeout: 300ms", LOAD, nobody.address());
    assert_eq!((sum.outcome(Outcome::Ok), statuses(&sum).len()), (0, 0), "{}", details(&sum));
    assert!(sum.outcome(Outcome::Connect) > 0, "{}", details(&sum));

    let address = serving(|mut stream| {
        let _ = stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        // the request comes, perhaps with what comes before it, and nobody answers it
        let _ = stream.set_read_timeout(Some(std::time::Duration::from_secs(1)));
        for _ in 0..2 {
            let _ = stream.read(&mut [0; 4096]);
        }
    });
    let sum = run(ONE, LOAD, address);
    assert_eq!((outcomes(&sum), statuses(&sum).len()), (vec![(Outcome::Reset, 3)], 0), "{}", details(&sum));
}

/// A server that lets connections live for three calls each: nothing fails, and new ones are made.
#[test]
fn a_connection_that_goes_away_fails_no_call() {
    let address = serve_some(3, |mut call: Call| {
        Box::pin(async move {
            call.read().await;
            let mut stream = call.begin();
            let _ = stream.send_data(message("hello").into(), false);
            end(&mut stream, 0, "");
        })
    });
    let more = "load: {users: 4, hold: 60s}\nlimits: {sessions: 60, drain: 5s, connections: 1, streams: 4}";
    let sum = run(LOOKS, more, address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 60)], "{}", details(&sum));
    assert!(sum.connects() > 1, "{} connections", sum.connects());
}

/// Trailers that are larger than any should be: the calls fail, and the run ends.
#[test]
fn trailers_are_bounded() {
    let address = serve(|mut call: Call| {
        Box::pin(async move {
            call.read().await;
            let mut stream = call.begin();
            let mut trailers = status(0, "");
            for number in 0..4_000 {
                let name = http::HeaderName::from_bytes(format!("x-{number}").as_bytes()).unwrap();
                trailers.insert(name, "y".repeat(100).parse().unwrap());
            }
            let _ = stream.send_data(message("hello").into(), false);
            let _ = stream.send_trailers(trailers);
        })
    });
    let sum = run(LOOKS, LOAD, address);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (0, 3), "{}", details(&sum));
}

/// Every call is reset, as fast as they come: each is told, and the run ends.
#[test]
fn a_flood_of_resets_is_counted() {
    let address = serve(|mut call: Call| Box::pin(async move { call.answer.send_reset(Reason::CANCEL) }));
    let more = "load: {users: 8, hold: 60s}\nlimits: {sessions: 2000, drain: 5s, connections: 2, streams: 4}";
    let sum = run(ONE, more, address);
    assert_eq!(outcomes(&sum), [(Outcome::Status, 2_000)], "{}", details(&sum));
    assert_eq!(statuses(&sum), [(GrpcCode::Cancelled, 2_000)]);
}

/// RST_STREAM of every call with REFUSED_STREAM at first: nothing fails.
#[test]
fn what_the_server_did_not_take_goes_over_again() {
    let refused = Arc::new(AtomicUsize::new(0));
    let counted = refused.clone();
    let address = serve(move |mut call: Call| {
        let first = counted.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
        Box::pin(async move {
            if first {
                return call.answer.send_reset(Reason::REFUSED_STREAM);
            }
            call.read().await;
            let mut stream = call.begin();
            let _ = stream.send_data(message("hello").into(), false);
            end(&mut stream, 0, "");
        })
    });
    let sum = run(LOOKS, LOAD, address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 3)], "{}", details(&sum));
    assert_eq!(refused.load(Ordering::SeqCst), 6);
}

/// A server of one connection, frame by frame: it answers the call (NOT_FOUND) once it was pinged, or never says anything.
fn waiting_for_a_ping(answers: bool) -> SocketAddr {
    const PING: u8 = 6;
    let talk = move |mut stream: TcpStream| -> std::io::Result<()> {
        stream.read_exact(&mut [0; 24])?;
        stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0])?;
        loop {
            let mut head = [0; 9];
            stream.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
            stream.read_exact(&mut vec![0; length])?;
            if answers && head[3] == PING {
                // `:status 200`, then names and values with their lengths; ends headers and stream
                let mut block = vec![0x88];
                for (name, value) in [("content-type", "application/grpc"), ("grpc-status", "5")] {
                    block.push(0);
                    for text in [name, value] {
                        block.push(text.len() as u8);
                        block.extend_from_slice(text.as_bytes());
                    }
                }
                stream.write_all(&[0, 0, block.len() as u8, 1, 5, 0, 0, 0, 1])?;
                stream.write_all(&block)?;
            }
        }
    };
    serving(move |stream| drop(talk(stream)))
}

/// What a server without a window for it leaves waiting is bounded.
#[test]
fn a_stream_whose_server_grants_no_window_is_given_up() {
    let text = "x".repeat(1 << 20);
    let steps = format!(
        "- grpc open: t.S/Both\n- repeat: 20\n  steps:\n    - grpc send: {{text: {text}}}\n- grpc close: OK"
    );
    let more = "load: {users: 1, hold: 60s}\nlimits: {sessions: 1, drain: 5s}";
    let sum = run(&steps, more, waiting_for_a_ping(false));
    // fifteen messages wait behind what is left of the first one
    assert_eq!(sum.outcome(Outcome::Ok), 17, "{}", details(&sum));
    assert_eq!(sum.outcome(Outcome::Protocol), 1, "{}", details(&sum));
    assert!(details(&sum).contains("more than 16 MiB would wait on the stream"), "{}", details(&sum));
    // one that is larger alone is sent
    let steps = format!(
        "- set: {{x: {text}}}\n- grpc open: t.S/Both\n- grpc send: {{text: '{}'}}\n- grpc close: OK\n  timeout: 300ms",
        "${x}".repeat(17)
    );
    let sum = run(&steps, more, waiting_for_a_ping(false));
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 2), (Outcome::Timeout, 1)], "{}", details(&sum));
}

#[test]
fn a_silent_connection_is_pinged_and_lost_without_an_answer() {
    let steps = "- grpc: t.S/One\n  timeout: 60s\n  check: {status: NOT_FOUND}";
    let more = "load: {users: 1, hold: 60s}\nlimits: {sessions: 1, drain: 5s, ping: 200ms}";
    let sum = run(steps, more, waiting_for_a_ping(true));
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 1)], "{}", details(&sum));
    let sum = run(steps, more, waiting_for_a_ping(false));
    assert_eq!(outcomes(&sum), [(Outcome::Timeout, 1)], "{}", details(&sum));
    assert!(details(&sum).contains("not even an answer to a ping"), "{}", details(&sum));
}

#[test]
fn a_server_that_does_not_speak_grpc_is_told_with_the_way_out() {
    let answers: [(&[u8], &str); 4] = [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "in HTTP/1.1; it is not a server of gRPC; is it REST? http://"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\nsent to HTTPS port", "speaks TLS; write grpcs://"),
        (b"\x15\x03\x01\0\x02\x02\x46", "speaks TLS; write grpcs://"),
        (b"", "or TLS (grpcs://)?"),
    ];
    for (answer, words) in answers {
        for types in [None, Some(types())] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            std::thread::spawn(move || {
                let mut socket = listener.accept().unwrap().0;
                let _ = socket.read(&mut [0; 4096]);
                let _ = socket.write_all(answer);
                let _ = socket.shutdown(Shutdown::Write);
                let _ = socket.read_to_end(&mut Vec::new());
            });
            let mut target = speaking(address).targets.remove(0);
            target.protocol = Protocol::Grpc(Grpc { types, most_streams: None });
            let mut stream = TcpStream::connect(address).unwrap();
            let told = target.greet(HttpVersion::Two, &mut stream).unwrap_err().to_string();
            assert!(told.contains(words), "{told}");
        }
    }
}

#[test]
fn a_server_without_a_health_check_never_has_one() {
    for (code, is_final, words) in
        [(12, true, "no health check"), (5, false, "says NOT_FOUND: no such service")]
    {
        let address = serve(move |mut call: Call| {
            Box::pin(async move { end(&mut call.begin(), code, "no such service") })
        });
        let mut stream = TcpStream::connect(address).unwrap();
        let unserved = check_health(&mut stream, "h", "shop.Cart").unwrap().unwrap_err();
        assert_eq!(unserved.is_final, is_final, "{}", unserved.words);
        assert!(unserved.words.contains(words), "{}", unserved.words);
    }
}

#[test]
fn a_method_that_there_is_not_is_told_before_the_load() {
    let told = |steps: &str| {
        let address = "127.0.0.1:1".parse().unwrap();
        refused(with_steps(steps, LOAD), speaking(address)).to_string()
    };
    assert!(told("- grpc: t.S/On").contains("did you mean One?"));
    assert!(told("- grpc: t.S/One\n  message: {txet: a}").contains("no field txet; did you mean text?"));
    assert!(told("- grpc: t.S/One\n  message: [{}, {}]").contains("takes one message, and 2 are sent"));
    // also where something in the message varies, and over an open stream
    let varies = "- grpc: t.S/One\n  message: {text: 'a ${random(1, 9)}', number: x}";
    assert!(told(varies).contains("t.S/One: number of t.M takes int64"), "{}", told(varies));
    let sends = "- grpc open: t.S/Both\n- grpc send: {txet: a}\n- grpc close: OK";
    assert!(told(sends).contains("no field txet; did you mean text?"), "{}", told(sends));
    assert!(told("- GET: /").contains("here gRPC"));
}
