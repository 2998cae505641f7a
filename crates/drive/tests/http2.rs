//! HTTP/2, from the scenario to the figures, against a real server of it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::identity::{Identity, NAME, identity_13};
use crate::support::{Nobody, Sum, begin, details, finish, options, outcomes, serving, so_many};
use tidemark_drive::{DriveOptions, Http2, Protocol, Tls};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::HttpVersion;
use tidemark_truth::{Delay, Freeze, Http2Behaviour, Http2Misbehaviour, Http2Server, Http2Truth};

const ONE_GET: &str = "- GET: /";

fn speaking(address: SocketAddr) -> DriveOptions {
    let mut options = options(address, 1);
    options.targets[0].protocol = Protocol::Http2(Http2 { most_streams: usize::MAX });
    options
}

fn run(plan: Plan, address: SocketAddr) -> Sum {
    finish(begin(plan, speaking(address)))
}

/// What comes of a plan at a server that behaves so, and what that saw.
fn against(behaviour: Http2Behaviour, plan: Plan) -> (Sum, Http2Truth) {
    let server = Http2Server::start(behaviour).unwrap();
    let sum = run(plan, server.address());
    (sum, server.stop().unwrap())
}

/// Each answer is so late, and every tenth request meets this.
fn late(ms: u64, tenth: Http2Misbehaviour) -> Http2Behaviour {
    let mut faults = vec![Http2Misbehaviour::None; 9];
    faults.push(tenth);
    let delays = vec![Delay::Fixed(Duration::from_millis(ms))];
    Http2Behaviour { delays, faults, ..Http2Behaviour::default() }
}

/// Greets the server and drives it as it wants.
fn run_secured(plan: Plan, address: SocketAddr, identity: &Identity, version: HttpVersion) -> Sum {
    let mut options = options(address, 1);
    options.targets[0].tls = Some(Tls::new(&identity.trusted(), NAME).unwrap());
    let mut stream = TcpStream::connect(address).unwrap();
    options.targets[0].greet(version, &mut stream).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(matches!(options.targets[0].protocol, Protocol::Http2(_)), version != HttpVersion::One);
    finish(begin(plan, options))
}

#[test]
fn streams_share_few_connections() {
    let plan = so_many(ONE_GET, 200, "users: 10", "connections: 2, streams: 5");
    let (sum, truth) = against(late(5, Http2Misbehaviour::None), plan);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 200)], "{}", details(&sum));
    assert_eq!((truth.requests, truth.connections, sum.connects()), (200, 2, 2));
    // more than one connection carries; all ten where the machine lets them
    assert!((6..=10).contains(&truth.most_at_once), "{} at once", truth.most_at_once);
    let open: Vec<u64> = sum.intervals.iter().map(|interval| interval.connections).collect();
    assert!(open.iter().all(|open| *open <= 2), "connections, not streams: {open:?}");
}

#[test]
fn one_stream_each_is_as_many_connections_as_users() {
    let plan = so_many(ONE_GET, 100, "users: 4", "waiting: 9");
    let (sum, truth) = against(Http2Behaviour::default(), plan);
    assert_eq!((outcomes(&sum), truth.connections), (vec![(Outcome::Ok, 100)], 4), "{}", details(&sum));
}

#[test]
fn what_sessions_do_with_answers_is_the_same() {
    let large = "y".repeat(300_000);
    let steps = format!(
        "- GET: /\n  label: First\n  check: {{header: {{content-length: \"2\"}}}}\n\
         - POST: /echo\n  body: \"a ${{1 + 1}}\"\n  label: Echo\n  extract: {{method: {{header: x-method}}}}\n  \
           check: {{body: {{equals: \"a 2\"}}, header: {{x-cookie: seen=1}}}}\n\
         - POST: /echo\n  body: {large}\n  label: Large\n  check: {{body: {{equals: {large}}}}}\n\
         - GET: /bytes/3000000\n  label: Long\n  check: {{body: {{matches: \"^x{{10}}\"}}}}\n\
         - HEAD: /\n  label: Head\n\
         - GET: /status/204\n  label: None\n\
         - GET: /status/503\n  label: Wrong\n\
         - GET: /echo\n  label: Empty\n  check: {{that: \"method == 'POST'\"}}\n"
    );
    let plan = so_many(&steps, 6, "users: 3", "connections: 1, streams: 3");
    let (sum, truth) = against(Http2Behaviour::default(), plan);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 42), (Outcome::Status, 6)], "{}", details(&sum));
    assert!(details(&sum).contains("status 503"), "{}", details(&sum));
    assert_eq!((truth.connections, truth.requests), (1, 48));
}

#[test]
fn a_body_larger_than_the_bound_is_given_up_and_the_connection_goes_on() {
    let steps =
        "- GET: /bytes/2000000\n  label: Long\n  check: {body: {contains: x}}\n- GET: /\n  label: After";
    let (sum, truth) = against(Http2Behaviour::default(), so_many(steps, 5, "users: 1", "body: 1MiB"));
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 5), (Outcome::Protocol, 5)], "{}", details(&sum));
    assert_eq!(truth.connections, 1);
}

#[test]
fn faults_of_streams_end_one_request_each() {
    use Http2Misbehaviour::{HalfAnswer, LengthTooLong, None, Reset};
    let faults = vec![None, Reset, None, None, HalfAnswer, LengthTooLong];
    let plan = so_many(ONE_GET, 120, "users: 6", "connections: 2, streams: 3");
    let (sum, truth) = against(Http2Behaviour { faults, ..Http2Behaviour::default() }, plan);
    let of = |fault| truth.faults.get(&fault).copied().unwrap_or(0);
    assert_eq!((of(Reset), of(LengthTooLong), truth.requests), (20, 20, 120));
    let expected = [(Outcome::Ok, 60), (Outcome::Reset, 40), (Outcome::Protocol, 20)];
    let mut found = outcomes(&sum);
    found.sort_by_key(|(outcome, _)| expected.iter().position(|(known, _)| known == outcome));
    assert_eq!(found, expected, "{}", details(&sum));
    for told in ["INTERNAL_ERROR", "HTTP/2 violation"] {
        assert!(details(&sum).contains(told), "{told}: {}", details(&sum));
    }
    assert_eq!(truth.connections, 2, "none of them ends a connection");
}

#[test]
fn after_a_goaway_requests_take_another_connection() {
    let plan = so_many(ONE_GET, 200, "users: 4", "connections: 1, streams: 4");
    let (sum, truth) = against(late(3, Http2Misbehaviour::GoAway), plan);
    // one that meets the GOAWAY on its way is not taken, and goes over the next connection, however often
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 200)], "{}", details(&sum));
    assert!(
        truth.connections > 5 && truth.connections == sum.connects(),
        "{} connections",
        truth.connections
    );
}

#[test]
fn a_refused_stream_is_sent_again() {
    use Http2Misbehaviour::{None, Refuse};
    let faults = vec![None, Refuse, Refuse, Refuse];
    let plan = so_many(ONE_GET, 60, "users: 6", "connections: 2, streams: 3");
    let (sum, _) = against(Http2Behaviour { faults, ..Http2Behaviour::default() }, plan);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 60)], "{}", details(&sum));
    assert!(sum.counted(Counter::SentAgain) >= 60, "{}", sum.counted(Counter::SentAgain));
}

#[test]
fn who_refuses_each_stream_is_not_asked_for_ever() {
    let faults = vec![Http2Misbehaviour::Refuse];
    let plan = so_many("- GET: /\n  timeout: 400ms", 3, "users: 1", "connections: 1, streams: 1");
    let (sum, truth) = against(Http2Behaviour { faults, ..Http2Behaviour::default() }, plan);
    assert!(!outcomes(&sum).iter().any(|(outcome, _)| *outcome == Outcome::Ok), "{}", details(&sum));
    assert!(details(&sum).contains("REFUSED_STREAM"), "{}", details(&sum));
    // waits of half a millisecond, doubled up to 50 ms at least, have room for no more within the time-out
    assert!((6..=3 * 17).contains(&truth.requests), "{} requests", truth.requests);
}

#[test]
fn a_lost_connection_ends_all_on_it_and_is_made_again() {
    let plan = so_many(ONE_GET, 200, "users: 4", "connections: 1, streams: 4");
    let (sum, truth) = against(late(3, Http2Misbehaviour::Close), plan);
    let (well, lost) = (sum.outcome(Outcome::Ok), sum.outcome(Outcome::Reset));
    assert_eq!(well + lost, 200, "{}", details(&sum));
    assert!(lost >= truth.faults[&Http2Misbehaviour::Close] && well > 0, "{lost} lost: {:?}", truth.faults);
    assert_eq!(truth.connections, sum.connects());
}

#[test]
fn a_time_out_cancels_its_stream() {
    let plan = so_many("- GET: /\n  timeout: 100ms", 8, "users: 4", "connections: 1, streams: 4");
    let (sum, truth) = against(late(30_000, Http2Misbehaviour::None), plan);
    assert_eq!(outcomes(&sum), [(Outcome::Timeout, 8)], "{}", details(&sum));
    assert!(truth.requests == 8 && truth.cancelled >= 4, "{} cancelled", truth.cancelled);
    assert!(sum.response().min() >= 100_000 * 99 / 100);
}

#[test]
fn a_freeze_shows_in_the_response_times_of_all_who_came_in_it() {
    let freeze = Freeze { after: Duration::from_millis(300), length: Duration::from_millis(700) };
    let plan = so_many(ONE_GET, 400, "rate: 200/s", "connections: 4, streams: 10");
    let (sum, truth) = against(Http2Behaviour { freeze: Some(freeze), ..Http2Behaviour::default() }, plan);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 400)], "{}", details(&sum));
    // 700 ms at 200/s are 140 requests; each waited for the rest of it, those without a stream included.
    let response = sum.response();
    assert!(response.max() >= 690_000, "{} µs", response.max());
    assert!(response.value_at_quantile(1.0 - 130.0 / 400.0) >= 30_000, "as many as came in it");
    assert_eq!(truth.most_at_once, 40, "bounded by connections and streams");
}

#[test]
fn a_server_that_takes_fewer_streams_than_was_thought_is_not_overrun() {
    let behaviour = Http2Behaviour { most_streams: Some(2), ..late(2, Http2Misbehaviour::None) };
    let plan = so_many(ONE_GET, 100, "users: 8", "connections: 1, streams: 8");
    let (sum, truth) = against(behaviour, plan);
    let (well, refused) = (sum.outcome(Outcome::Ok), sum.outcome(Outcome::Reset));
    assert_eq!(well + refused, 100, "{}", details(&sum));
    assert!(refused <= 8, "only before the server had said it: {}", details(&sum));
    assert!(sum.counted(Counter::Held) > 50, "{} were held", sum.counted(Counter::Held));
    assert!(truth.most_at_once <= 8);
}

/// A server that takes no further stream for a while after the first one of a connection.
fn taking_none_for(pause: Duration) -> SocketAddr {
    const NONE: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0];
    const MANY: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100];
    let talk = move |mut socket: TcpStream| -> std::io::Result<()> {
        socket.read_exact(&mut [0; 24])?;
        socket.write_all(NONE)?;
        loop {
            let mut head = [0; 9];
            socket.read_exact(&mut head)?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            socket.read_exact(&mut vec![0; length as usize])?;
            if head[3] == 1 {
                socket.write_all(&[0, 0, 1, 1, 5, head[5], head[6], head[7], head[8], 0x88])?;
                if head[8] == 1 {
                    std::thread::sleep(pause);
                    socket.write_all(MANY)?;
                }
            }
        }
    };
    serving(move |socket| drop(talk(socket)))
}

#[test]
fn what_is_held_goes_once_the_server_takes_more() {
    let address = taking_none_for(Duration::from_millis(100));
    let sum = run(so_many("- GET: /\n  timeout: 5s", 4, "users: 1", "connections: 1"), address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 4)], "{}", details(&sum));
    assert_eq!(sum.counted(Counter::Held), 1);
}

#[test]
fn what_it_takes_is_known_from_its_greeting() {
    let behaviour = Http2Behaviour { most_streams: Some(3), ..Http2Behaviour::default() };
    let server = Http2Server::start(behaviour).unwrap();
    let mut options = options(server.address(), 1);
    let mut stream = TcpStream::connect(server.address()).unwrap();
    options.targets[0].greet(HttpVersion::Two, &mut stream).unwrap();
    assert_eq!(options.targets[0].protocol, Protocol::Http2(Http2 { most_streams: 3 }));
    let sum = finish(begin(so_many(ONE_GET, 60, "users: 6", "connections: 1, streams: 6"), options));
    assert_eq!(
        (outcomes(&sum), sum.counted(Counter::Held)),
        (vec![(Outcome::Ok, 60)], 0),
        "{}",
        details(&sum)
    );
    // Its one connection carries three of the six users at once; one more greeted.
    assert_eq!((server.stop().unwrap().connections, sum.end.places), (2, Some((6, 3))));
    assert_eq!((sum.connects(), sum.dropped(), sum.end.connections_raised_to), (1, 0, None));
}

/// A server that has a bit to say without end, and reads nothing; how many bytes it got rid of.
fn talking(frame: &'static [u8]) -> (SocketAddr, Arc<AtomicUsize>) {
    let said = Arc::new(AtomicUsize::new(0));
    let all = said.clone();
    let address = serving(move |mut socket| {
        let _ = socket.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        let many = frame.repeat((64 << 10) / frame.len());
        while socket.write_all(&many).is_ok() {
            all.fetch_add(many.len(), Ordering::Relaxed);
        }
    });
    (address, said)
}

#[test]
fn a_server_that_talks_and_does_not_listen_is_left() {
    const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    for frame in [PING, SETTINGS] {
        let (address, said) = talking(frame);
        let sum = run(so_many("- GET: /\n  timeout: 50s", 1, "users: 1", "connections: 1"), address);
        assert_eq!(outcomes(&sum), [(Outcome::Protocol, 1)], "{}", details(&sum));
        assert!(details(&sum).contains("are unread"), "{}", details(&sum));
        // What the library had room for, what lay unread, and what the system holds for either side.
        let received: u64 = sum.in_intervals(Counter::ReceivedBytes);
        assert!(received < 40 << 20, "{received} of {} bytes", said.load(Ordering::Relaxed));
    }
}

#[test]
fn by_alpn_over_tls() {
    let identity = identity_13().speaking(&["h2", "http/1.1"]);
    let tls = Some(identity.config.clone());
    let server = Http2Server::start(Http2Behaviour { tls, ..Http2Behaviour::default() }).unwrap();
    for version in [HttpVersion::Two, HttpVersion::Auto] {
        let steps = "- GET: /\n- GET: /bytes/200000\n  check: {body: {contains: xx}}";
        let plan = so_many(steps, 20, "users: 4", "connections: 2, streams: 2");
        let sum = run_secured(plan, server.address(), &identity, version);
        assert_eq!(outcomes(&sum), [(Outcome::Ok, 40)], "{}", details(&sum));
        assert_eq!(sum.counted(Counter::FullHandshakes) + sum.counted(Counter::ResumedHandshakes), 2);
    }
}

#[test]
fn a_new_connection_for_each_request() {
    let plan = so_many(ONE_GET, 30, "users: 3", "keep alive: false");
    let (sum, truth) = against(Http2Behaviour::default(), plan);
    assert_eq!((outcomes(&sum), truth.connections), (vec![(Outcome::Ok, 30)], 30), "{}", details(&sum));
}

/// A server that answers the first request of each connection, and to the second one says these frames and a GOAWAY that has
/// not taken it; how many requests came whole.
fn leaving(second: &'static [u8]) -> (SocketAddr, Arc<AtomicUsize>) {
    let came = Arc::new(AtomicUsize::new(0));
    let all = came.clone();
    let address = serving(move |mut socket| {
        // the client's preface, and the server's empty SETTINGS
        let mut preface = [0; 24];
        let _ = socket.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
        if socket.read_exact(&mut preface).is_err() {
            return;
        }
        let mut head = [0; 9];
        while socket.read_exact(&mut head).is_ok() {
            let mut rest = vec![0; (usize::from(head[1]) << 8) | usize::from(head[2])];
            if socket.read_exact(&mut rest).is_err() {
                return;
            }
            // DATA or HEADERS that end a request
            if head[3] > 1 || head[4] & 1 == 0 {
                continue;
            }
            all.fetch_add(1, Ordering::Relaxed);
            let answer: Vec<u8> = match head[8] {
                1 => vec![0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88],
                // last stream 1, NO_ERROR
                _ => [second, &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]].concat(),
            };
            let _ = socket.write_all(&answer);
        }
    });
    (address, came)
}

#[test]
fn a_request_whose_answer_had_begun_is_never_sent_again() {
    let post = "- POST: /\n  body: once";
    // `:status: 200` on stream 3, and three bytes of a body that goes on
    let (address, came) =
        leaving(&[0, 0, 1, 1, 4, 0, 0, 0, 3, 0x88, 0, 0, 3, 0, 0, 0, 0, 0, 3, b'a', b'b', b'c']);
    let sum = run(so_many(post, 10, "users: 1", "connections: 1"), address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 5), (Outcome::Reset, 5)], "{}", details(&sum));
    assert!(details(&sum).contains("which had begun"), "{}", details(&sum));
    assert_eq!((came.load(Ordering::Relaxed), sum.counted(Counter::SentAgain)), (10, 0));
    // As little where `:status: 103` alone had come: an interim answer says that it was taken.
    let (address, came) = leaving(&[0, 0, 5, 1, 4, 0, 0, 0, 3, 0x08, 3, b'1', b'0', b'3']);
    let sum = run(so_many(post, 10, "users: 1", "connections: 1"), address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 5), (Outcome::Reset, 5)], "{}", details(&sum));
    assert_eq!((came.load(Ordering::Relaxed), sum.counted(Counter::SentAgain)), (10, 0));
    // Without a word of an answer it goes over the next connection, which is counted.
    let (address, came) = leaving(&[]);
    let sum = run(so_many(post, 10, "users: 1", "connections: 1"), address);
    assert_eq!(outcomes(&sum), [(Outcome::Ok, 10)], "{}", details(&sum));
    assert_eq!((came.load(Ordering::Relaxed), sum.counted(Counter::SentAgain)), (19, 9));
}

#[test]
fn what_does_not_speak_it_is_told_and_counted() {
    let old = serving(|mut socket| {
        let _ = socket.read(&mut [0; 4096]);
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        let _ = socket.read(&mut [0; 4096]);
    });
    let mut stream = TcpStream::connect(old).unwrap();
    let error = options(old, 1).targets[0].greet(HttpVersion::Two, &mut stream).unwrap_err().to_string();
    assert!(error.contains("HTTP/1.1"), "{error}");
    let sum = run(so_many(ONE_GET, 5, "users: 5", "connections: 5"), old);
    assert_eq!(outcomes(&sum), [(Outcome::Protocol, 5)], "{}", details(&sum));
    let nobody = Nobody::taken();
    let sum = run(so_many(ONE_GET, 5, "users: 5", "connections: 1, streams: 5"), nobody.address());
    assert_eq!(outcomes(&sum), [(Outcome::Connect, 5)], "{}", details(&sum));
}
