//! Remote calls, from the scenario to the figures, against a server made of the codec's other side.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::calls::{Behave, METHODS, Offered, Then, calling, offered, server, well};
use crate::support::identity::{NAME, identity_13};
use crate::support::{Sum, answering, begin, details, finish, options, outcomes, so_many};
use tidemark_drive::{DriveOptions, Protocol, Raised, Tls};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::Plan;
use tidemark_wire::rpc::Limits;

const ONE_CALL: &str = "- CALL: trade.trade\n  args: [{name: ibm, amount: 1}]";

fn run(plan: Plan, address: SocketAddr) -> Sum {
    let options = calling(address, None, &plan);
    finish(begin(plan, options))
}

fn at(counter: &AtomicUsize) -> usize {
    counter.load(Ordering::SeqCst)
}

#[test]
fn many_calls_share_few_connections_and_frames() {
    let server = server(offered(), well);
    let steps = "- CALL: trade.trade\n  args: [{name: ibm, amount: 1}]\n  timeout: 20s\n  check: {status: 200, json: \
                 {$.done: \"true\"}}\n  extract: {done: $.done}\n- CALL: trade.price\n  args: ${done}\n- CALL: \
                 trade.price\n  label: All";
    let sum = run(so_many(steps, 2_000, "users: 100", "connections: 3, streams: 50"), server.address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 6_000)], "{}", details(&sum));
    let seen = &server.seen;
    assert_eq!((at(&seen.calls), at(&seen.connections), sum.connects()), (6_000, 3, 3));
    assert!(at(&seen.frames) < 3_000, "{} frames", at(&seen.frames));
    assert!(at(&seen.most_items) > 10, "{} calls in a frame", at(&seen.most_items));
    let open: Vec<u64> = sum.intervals.iter().map(|interval| interval.connections).collect();
    assert!(open.iter().all(|open| *open <= 3), "connections, not calls: {open:?}");
    let payloads = seen.payloads.lock().unwrap();
    let expected = [
        "trade.price 30000 []",
        "trade.price 30000 [true]",
        "trade.trade 20000 [{\"name\":\"ibm\",\"amount\":1}]",
    ];
    assert!(payloads.iter().eq(&expected), "{payloads:?}");
}

#[test]
fn a_failure_is_a_status_with_its_words() {
    let server = server(offered(), |call, writer, frame| {
        match call.id % 2 {
            0 => writer.answer(frame, call.id, b"1"),
            _ => writer.failure(frame, call.id, 409, "no such share"),
        }
        Then::GoOn
    });
    let steps = "- CALL: trade.trade\n- CALL: trade.price\n  check: {status: [200, 409]}";
    let sum = run(so_many(steps, 100, "users: 2", "connections: 1, streams: 2"), server.address);
    let found = outcomes(&sum);
    assert_eq!(found.iter().map(|(_, count)| count).sum::<u64>(), 200);
    assert_eq!(sum.of(1, Outcome::Ok), 100);
    assert!(sum.outcome(Outcome::Status) > 0, "{found:?}");
    assert!(details(&sum).contains("409") && details(&sum).contains("no such share"), "{}", details(&sum));
}

#[test]
fn the_server_is_not_sent_more_than_it_takes() {
    let limits = Limits { frame_bytes: 256, items: 3, payload_bytes: 200 };
    let server = server(Offered { limits, in_flight_max: 4, ..offered() }, well);
    let plan = so_many(ONE_CALL, 400, "users: 20", "connections: 1, streams: 20");
    let mut options = calling(server.address, None, &plan);
    // as if it had said more when it was asked: what it says to each connection holds
    let Protocol::Calls(known) = &mut options.targets[0].protocol else { panic!("it takes calls") };
    known.most_calls = 20;
    let sum = finish(begin(plan, options));
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 400)], "{}", details(&sum));
    assert!(sum.counted(Counter::Held) > 100, "{} were held", sum.counted(Counter::Held));
    assert!(at(&server.seen.most_items) <= 3 && at(&server.seen.most_frame_bytes) <= 256);
}

#[test]
fn what_it_takes_is_known_from_its_greeting() {
    let server = server(Offered { in_flight_max: 3, ..offered() }, well);
    let plan = so_many(ONE_CALL, 60, "users: 6", "connections: 1, streams: 6");
    let options = calling(server.address, None, &plan);
    let Protocol::Calls(known) = &options.targets[0].protocol else { panic!("it takes calls") };
    assert_eq!(known.most_calls, 3);
    let sum = finish(begin(plan, options));
    assert_eq!(
        (outcomes(&sum), sum.counted(Counter::Held)),
        (vec![(Outcome::Ok, 60)], 0),
        "{}",
        details(&sum)
    );
    assert_eq!(
        (at(&server.seen.connections), sum.end.places),
        (1, Some((6, 3))),
        "the limit holds for six users"
    );
}

#[test]
fn connections_beyond_what_the_scenario_says_are_told() {
    for (threads, connections, raised) in [(1, 3, None), (2, 4, Some((4, Raised::Users))), (3, 3, None)] {
        let server = server(offered(), well);
        let plan = so_many(ONE_CALL, 300, "users: 15", "connections: 3, streams: 5");
        let options = calling(server.address, None, &plan);
        let sum = finish(begin(plan, DriveOptions { threads, ..options }));
        assert_eq!(outcomes(&sum), [(Outcome::Ok, 300)], "{}", details(&sum));
        assert_eq!(
            (sum.connects(), sum.end.connections_raised_to),
            (connections, raised),
            "{threads} threads"
        );
    }
}

#[test]
fn arguments_that_the_server_does_not_take_are_not_sent() {
    let limits = Limits { payload_bytes: 20, ..Limits::default() };
    let server = server(Offered { limits, ..offered() }, well);
    let steps = "- CALL: trade.trade\n  args: [\"123456789012345678901234567890\"]\n- CALL: trade.trade";
    let sum = run(so_many(steps, 20, "users: 2", "connections: 1, streams: 2"), server.address);
    let expected = [(Outcome::Ok, 20), (Outcome::Protocol, 20)];
    assert!(expected.iter().all(|one| outcomes(&sum).contains(one)), "{:?}", outcomes(&sum));
    assert!(details(&sum).contains("34 bytes; the server takes at most 20"), "{}", details(&sum));
    assert_eq!(at(&server.seen.connections), 1);
}

#[test]
fn a_time_out_cancels_and_its_late_answer_is_nobody_elses() {
    // The first of each session is answered only when it is taken back; meanwhile the connection is not silent.
    let server = server(offered(), |call, writer, frame| match call.payload {
        b"[1]" => Then::Ping,
        payload => {
            writer.answer(frame, call.id, payload);
            Then::GoOn
        }
    });
    let steps = "- CALL: trade.trade\n  args: [1]\n  timeout: 1s\n- CALL: trade.trade\n  label: Second\n  args: [2]\n  check: {body: \
                 \"[2]\"}";
    let sum = run(so_many(steps, 12, "users: 3", "connections: 1, streams: 3"), server.address);
    let first = sum.of(0, Outcome::Timeout);
    let second = sum.of(1, Outcome::Ok);
    assert_eq!((first, second), (12, 12), "{:?}: {}", outcomes(&sum), details(&sum));
    assert!(at(&server.seen.cancels) > 0);
}

#[test]
fn after_a_silence_calls_take_a_new_connection() {
    let server = server(offered(), |_, _, _| Then::GoOn);
    let steps = "- CALL: trade.trade\n  timeout: 50ms";
    let sum = run(so_many(steps, 12, "users: 4", "connections: 1, streams: 4"), server.address);
    assert_eq!(outcomes(&sum), [(Outcome::Timeout, 12)], "{}", details(&sum));
    assert_eq!((at(&server.seen.connections), sum.connects()), (3, 3));
    assert!(sum.response().min() >= 49_500);
}

#[test]
fn a_cut_ends_all_calls_under_way_and_the_connection_is_made_again() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let server = server(offered(), |call, writer, frame| match CALLS.fetch_add(1, Ordering::SeqCst) % 50 {
        49 => Then::Hang,
        _ => well(call, writer, frame),
    });
    let sum = run(so_many(ONE_CALL, 500, "users: 5", "connections: 1, streams: 5"), server.address);
    let (well, lost) = (sum.outcome(Outcome::Ok), sum.outcome(Outcome::Reset));
    assert_eq!(well + lost, 500, "{:?}: {}", outcomes(&sum), details(&sum));
    assert!((8..=60).contains(&lost), "{lost} lost");
    assert_eq!(at(&server.seen.connections) as u64, sum.connects());
    assert!(at(&server.seen.calls) <= 500, "nothing is sent twice");
}

/// What the server sends in place of an answer, how that is counted, and what is said.
fn breaking(behave: Behave, outcome: Outcome, words: &str) {
    let server = server(offered(), behave);
    let sum = run(so_many(ONE_CALL, 12, "users: 3", "connections: 1, streams: 3"), server.address);
    assert_eq!(outcomes(&sum), [(outcome, 12)], "{}", details(&sum));
    assert!(details(&sum).contains(words), "{words}: {}", details(&sum));
}

#[test]
fn a_close_frame_is_quoted() {
    let words = "code 1011: out of order";
    breaking(|_, _, _| Then::Close(1011, "out of order"), Outcome::Reset, words);
    breaking(|_, _, _| Then::Close(1000, ""), Outcome::Reset, "closed the WebSocket with code 1000");
    breaking(|_, _, _| Then::Raw(&[0x88, 0]), Outcome::Reset, "the server closed the WebSocket");
}

#[test]
fn an_end_within_a_frame_is_a_reset() {
    // two bytes of a message of 100
    breaking(|_, _, _| Then::Raw(&[0x82, 100, 1, 0]), Outcome::Reset, "closed the connection of the calls");
}

#[test]
fn a_second_answer_is_a_violation() {
    let server = server(offered(), |call, writer, frame| {
        well(call, writer, frame);
        well(call, writer, frame)
    });
    let sum = run(so_many(ONE_CALL, 20, "users: 1", "connections: 1"), server.address);
    let (well, wrong) = (sum.outcome(Outcome::Ok), sum.outcome(Outcome::Protocol));
    // The first of them has done its call before the second comes.
    assert_eq!(well + wrong + sum.outcome(Outcome::Reset), 20, "{:?}", outcomes(&sum));
    assert!(well > 0 && at(&server.seen.connections) > 1, "{:?}: {}", outcomes(&sum), details(&sum));
}

#[test]
fn pings_are_answered() {
    let server = server(offered(), |call, writer, frame| {
        well(call, writer, frame);
        Then::Ping
    });
    let sum = run(so_many(ONE_CALL, 50, "users: 1", "connections: 1"), server.address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 50)], "{}", details(&sum));
    assert!(at(&server.seen.pongs) >= 49, "{} pongs", at(&server.seen.pongs));
}

#[test]
fn over_tls() {
    let identity = identity_13();
    let server = server(Offered { tls: Some(identity.config.clone()), ..offered() }, well);
    let plan = so_many(ONE_CALL, 400, "users: 20", "connections: 2, streams: 10");
    let tls = Tls::new(&identity.trusted(), NAME).unwrap();
    let options = calling(server.address, Some(tls), &plan);
    let sum = finish(begin(plan, options));
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 400)], "{}", details(&sum));
    assert_eq!(sum.counted(Counter::FullHandshakes) + sum.counted(Counter::ResumedHandshakes), 2);
}

#[test]
fn arrivals_wait_for_a_place_and_the_wait_counts() {
    let server = server(offered(), |call, writer, frame| {
        std::thread::sleep(Duration::from_millis(5));
        well(call, writer, frame)
    });
    let sum = run(so_many(ONE_CALL, 100, "rate: 400/s", "connections: 1, streams: 2"), server.address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 100)], "{}", details(&sum));
    // 100 calls of 5 ms each are not done within the 250 ms in which they are due.
    assert!(sum.response().max() >= 200_000, "{} µs", sum.response().max());
}

#[test]
fn what_takes_no_calls_is_told_before_and_during_the_load() {
    let greeted = |address: SocketAddr, methods: &[&str]| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let mut options = options(address, 1);
        let greeted = options.targets[0].greet_calls("/rpc", methods.iter().copied(), &mut stream);
        greeted.map_err(|error| error.to_string())
    };
    let server = server(offered(), well);
    assert_eq!(greeted(server.address, &METHODS), Ok(()));
    let error = greeted(server.address, &["trade.trade", "trade.prize"]).unwrap_err();
    assert!(error.contains("no method trade.prize; did you mean trade.price?"), "{error}");
    let rest = answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    assert!(greeted(rest, &[]).unwrap_err().contains("404"));
    let ended = answering(b"");
    assert!(greeted(ended, &[]).unwrap_err().contains("closed"));

    // what the load meets, had it not been asked before
    for (address, words) in [(rest, "404"), (ended, "closed")] {
        let plan = so_many(ONE_CALL, 5, "users: 5", "connections: 1, streams: 5");
        let mut options = calling(server.address, None, &plan);
        options.targets[0].address = address.into();
        let sum = finish(begin(plan, options));
        assert_eq!(outcomes(&sum), [(Outcome::Connect, 5)], "{}", details(&sum));
        assert!(details(&sum).contains(words), "{words}: {}", details(&sum));
    }
    // a method that a server of another version does not have
    let plan =
        so_many("- CALL: trade.trade\n- CALL: trade.price", 5, "users: 5", "connections: 1, streams: 5");
    let mut options = calling(server.address, None, &plan);
    let older = Offered { methods: vec![METHODS[0].into()], ..offered() };
    let older = crate::support::calls::server(older, well);
    options.targets[0].address = older.address.into();
    let sum = finish(begin(plan, options));
    assert!(details(&sum).contains("no method trade.price"), "{}", details(&sum));
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Protocol)), (5, 5), "{}", details(&sum));
}
