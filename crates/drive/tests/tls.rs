//! HTTPS against a real TLS server: what is trusted, what is resumed, and how each failure is told.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use crate::support::identity::{Identity, NAME, identity, identity_13, identity_asking};
use crate::support::{Sum, answering, begin, finish, get, options, phase, plan, post, serving};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tidemark_drive::{Postgres, Protocol, Target, Tls};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{HttpVersion, LoadModel, Spacing, TlsSettings};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

/// How a server leaves its connection.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Keep,
    /// With TLS's last word.
    Close,
    /// Without it.
    Cut,
}

/// Answers each request with these bytes, and leaves as told after so many.
fn serve(identity: &Identity, answer: impl Into<Vec<u8>>, requests: usize, then: Then) -> SocketAddr {
    let (config, answer): (_, Vec<u8>) = (identity.config.clone(), answer.into());
    serving(move |socket| converse(socket, config.clone(), &answer, requests, then))
}

fn converse(socket: TcpStream, config: Arc<ServerConfig>, answer: &[u8], requests: usize, then: Then) {
    let mut stream = StreamOwned::new(ServerConnection::new(config).unwrap(), socket);
    let mut bytes = Vec::new();
    for served in 1.. {
        if !receive(&mut stream, &mut bytes) || stream.write_all(answer).is_err() {
            return;
        }
        if then != Then::Keep && served == requests {
            if then == Then::Close {
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
            return;
        }
    }
}

/// Takes one request off `bytes`, with its body if it says that it has one.
fn receive(stream: &mut impl Read, bytes: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 16 << 10];
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let whole = end + 4 + length.map_or(0, |length| length.parse::<usize>().unwrap());
            if bytes.len() >= whole {
                bytes.drain(..whole);
                return true;
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return false,
        }
    }
}

/// 20 sessions of one GET within 200 ms, one connection at a time.
fn twenty() -> Plan {
    let mut plan = plan(vec![get(0, "/")], LoadModel::Open(Spacing::Constant), vec![phase(200, 100.0)]);
    plan.limits.connections = 1;
    plan
}

/// The same with a connection for each, so that none waits for another's failure to be tried again.
fn twenty_apart() -> Plan {
    let mut plan = twenty();
    plan.limits.connections = 20;
    plan
}

fn run(plan: Plan, address: SocketAddr, settings: &TlsSettings) -> Sum {
    let mut options = options(address, 1);
    options.targets[0].tls = Some(Tls::new(settings, NAME).unwrap());
    finish(begin(plan, options))
}

/// All 20 requests ended like this, and the first examples say so.
fn all_end(sum: &Sum, outcome: Outcome, detail: &str) {
    assert_eq!((sum.offered(), sum.outcome(outcome)), (20, 20), "{:?}", sum.examples());
    for example in sum.examples() {
        assert!(example.detail.contains(detail), "{example:?}");
    }
}

#[test]
fn one_handshake_serves_many_requests() {
    let identity = identity_13();
    let sum = run(twenty(), serve(&identity, ANSWER, 0, Then::Keep), &identity.trusted());
    all_end(&sum, Outcome::Ok, "");
    assert_eq!(
        (sum.connects(), sum.counted(Counter::FullHandshakes), sum.counted(Counter::ResumedHandshakes)),
        (1, 1, 0)
    );
    let of_parts = sum.intervals.iter().flat_map(|interval| &interval.parts);
    let made = of_parts.map(|parts| (parts.connect_us.len(), parts.handshake_us.len()));
    assert_eq!(made.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)), (1, 1), "of the first request");
    let spoken = sum.end.tls.unwrap();
    assert!(spoken.starts_with("TLS 1.3, TLS13_"), "{spoken}");
}

#[test]
fn pipelined_requests_share_one_handshake() {
    let identity = identity_13();
    let mut plan = plan(vec![get(0, "/")], LoadModel::Closed, vec![phase(60_000, 16.0)]);
    plan.limits.sessions = Some(200);
    plan.limits.connections = 1;
    plan.limits.pipeline = 16;
    let sum = run(plan, serve(&identity, ANSWER, 0, Then::Keep), &identity.trusted());
    assert_eq!((sum.outcome(Outcome::Ok), sum.connects()), (sum.offered(), 1), "{:?}", sum.examples());
    assert_eq!((sum.offered(), sum.counted(Counter::FullHandshakes)), (200, 1));
}

#[test]
fn a_new_connection_resumes_the_session_of_the_last() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let identity = identity(&[version]);
        let address = serve(&identity, closing, 1, Then::Close);
        let sum = run(twenty(), address, &identity.trusted());
        all_end(&sum, Outcome::Ok, "");
        assert_eq!(
            (sum.counted(Counter::FullHandshakes), sum.counted(Counter::ResumedHandshakes)),
            (1, 19),
            "{version:?}"
        );

        let without = TlsSettings { resumption: false, ..identity.trusted() };
        let sum = run(twenty(), address, &without);
        all_end(&sum, Outcome::Ok, "");
        assert_eq!(
            (sum.counted(Counter::FullHandshakes), sum.counted(Counter::ResumedHandshakes)),
            (20, 0),
            "{version:?}"
        );
    }
}

#[test]
fn bodies_of_many_records_go_both_ways() {
    let identity = identity_13();
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1 << 20).into_bytes();
    answer.resize(answer.len() + (1 << 20), b'x');
    let mut plan = twenty();
    post(&mut plan.requests[0], "y".repeat(1 << 20));
    let sum = run(plan, serve(&identity, answer, 0, Then::Keep), &identity.trusted());
    all_end(&sum, Outcome::Ok, "");
    assert_eq!(sum.connects(), 1);
    let received: u64 = sum.in_intervals(Counter::ReceivedBytes);
    assert!(received > 20 * (1 << 20), "the bytes of the wire are counted: {received}");
}

#[test]
fn who_is_not_trusted_is_not_spoken_to() {
    let (identity, other) = (identity_13(), identity_13());
    let address = serve(&identity, ANSWER, 0, Then::Keep);
    all_end(
        &run(twenty_apart(), address, &other.trusted()),
        Outcome::Connect,
        "signed by nobody trusted here",
    );
    let misnamed = TlsSettings { server_name: Some("bank.test".into()), ..identity.trusted() };
    all_end(&run(twenty_apart(), address, &misnamed), Outcome::Connect, "not valid for name \"bank.test\"");
    let insecure =
        TlsSettings { insecure: true, server_name: misnamed.server_name, ..TlsSettings::default() };
    all_end(&run(twenty(), address, &insecure), Outcome::Ok, "");
}

#[test]
fn a_server_may_ask_who_is_there() {
    let (identity, client) = identity_asking();
    let address = serve(&identity, ANSWER, 0, Then::Keep);
    let named = TlsSettings { certificate: Some(client.path().into()), ..identity.trusted() };
    all_end(&run(twenty(), address, &named), Outcome::Ok, "");
    // TLS 1.3 is refused behind the handshake, when a request may be under way already.
    let sum = run(twenty_apart(), address, &identity.trusted());
    assert_eq!((sum.offered(), sum.outcome(Outcome::Ok)), (20, 0));
    assert!(
        sum.examples().iter().any(|example| example.detail.contains("--cert FILE")),
        "{:?}",
        sum.examples()
    );
}

#[test]
fn a_greeting_tells_what_a_drive_would_meet() {
    let (identity, other) = (identity_13(), identity_13());
    let address = serve(&identity, ANSWER, 0, Then::Keep);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let greet = |settings: &TlsSettings, version: HttpVersion, address: SocketAddr| {
        let mut target = options(address, 1).targets.remove(0);
        target.tls = Some(Tls::new(settings, NAME).unwrap());
        let mut stream = TcpStream::connect(address).unwrap();
        // who answers at all does so long before, on a busy machine, too
        let patience_ms = if address == silent.local_addr().unwrap() { 500 } else { 20_000 };
        stream.set_read_timeout(Some(Duration::from_millis(patience_ms))).unwrap();
        target.greet(version, &mut stream).map(|()| target.protocol).map_err(|error| error.to_string())
    };
    assert_eq!(greet(&identity.trusted(), HttpVersion::One, address), Ok(Protocol::Http1));
    assert_eq!(greet(&identity.trusted(), HttpVersion::Auto, address), Ok(Protocol::Http1));
    let error = greet(&identity.trusted(), HttpVersion::Two, address).unwrap_err();
    assert!(error.contains("--http 1.1"), "{error}");
    let error = greet(&other.trusted(), HttpVersion::One, address).unwrap_err();
    assert!(error.contains("--cacert FILE") && error.contains("--insecure"), "{error}");
    let mut target = options(address, 1).targets.remove(0);
    target.tls = Some(Tls::new(&other.trusted(), NAME).unwrap().of_postgres());
    let mut stream = TcpStream::connect(address).unwrap();
    let error = target.greet(HttpVersion::One, &mut stream).unwrap_err().to_string();
    assert!(error.contains("sslrootcert") && error.contains("sslmode") && !error.contains("--"), "{error}");
    let error = greet(&identity.trusted(), HttpVersion::One, silent.local_addr().unwrap()).unwrap_err();
    assert!(error.contains("does it speak TLS there?"), "{error}");
}

#[test]
fn a_handshake_that_fails_is_a_failed_connect_and_one_that_never_ends_a_time_out() {
    let identity = identity_13();
    let speaks_http = answering(b"HTTP/1.1 400 Bad Request\r\n\r\n");
    all_end(&run(twenty_apart(), speaks_http, &identity.trusted()), Outcome::Connect, "does not speak TLS");

    all_end(&run(twenty_apart(), answering(b""), &identity.trusted()), Outcome::Connect, "TLS handshake");

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = twenty_apart();
    plan.limits.connect_timeout = Duration::from_millis(150);
    let sum = run(plan, silent.local_addr().unwrap(), &identity.trusted());
    all_end(&sum, Outcome::Timeout, "no connection was made in time");
}

#[test]
fn an_answer_that_only_the_end_bounds_needs_the_last_word() {
    let identity = identity_13();
    let endless = "HTTP/1.1 200 OK\r\n\r\nuntil the end";
    let sum = run(twenty(), serve(&identity, endless, 1, Then::Close), &identity.trusted());
    all_end(&sum, Outcome::Ok, "");
    let sum = run(twenty(), serve(&identity, endless, 1, Then::Cut), &identity.trusted());
    all_end(&sum, Outcome::Reset, "without a close_notify");

    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    let sum = run(twenty(), serve(&identity, half, 1, Then::Close), &identity.trusted());
    all_end(&sum, Outcome::Reset, "before the answer was whole");
    let sum = run(twenty(), serve(&identity, half, 1, Then::Cut), &identity.trusted());
    all_end(&sum, Outcome::Reset, "without a close_notify");

    // What is whole by its own length needs no last word.
    let whole = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let sum = run(twenty(), serve(&identity, whole, 1, Then::Cut), &identity.trusted());
    all_end(&sum, Outcome::Ok, "");
}

#[test]
fn the_time_of_the_handshake_is_in_the_response_time() {
    const SLOW: Duration = Duration::from_millis(150);
    let identity = identity_13();
    let config = identity.config.clone();
    let address = serving(move |socket| {
        std::thread::sleep(SLOW);
        converse(socket, config.clone(), ANSWER.as_bytes(), 0, Then::Keep);
    });
    let mut plan = twenty();
    plan.load.phases = vec![phase(100, 10.0)];
    let sum = run(plan, address, &identity.trusted());
    assert_eq!((sum.offered(), sum.outcome(Outcome::Ok)), (1, 1), "{:?}", sum.examples());
    assert!(sum.response().max() >= 150_000, "{} µs", sum.response().max());
    let service = sum.intervals.iter().flat_map(|i| &i.series).map(|s| s.service_time_us.max()).max();
    assert!(service < Some(sum.response().max()), "the handshake is not in the service time: {service:?}");
}

/// `sslmode=prefer`: in clear only where the server has never spoken TLS.
#[test]
fn who_spoke_tls_once_is_not_spoken_with_in_clear() {
    let identity = identity_13();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut target = options(listener.local_addr().unwrap(), 1).targets.remove(0);
    target.protocol = Protocol::Postgres(Postgres { may_be_plain: true, ..Postgres::default() });
    target.tls = Some(Tls::new(&identity.trusted(), NAME).unwrap());
    let first = target.clone();
    let asked = |target: &mut Target, answer: &'static [u8]| {
        let mut stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        server.write_all(answer).unwrap();
        let answering = std::thread::spawn(move || {
            let mut sent = Vec::new();
            let _ = server.read(&mut [0; 8]);
            let _ = server.shutdown(std::net::Shutdown::Write);
            let _ = server.read_to_end(&mut sent);
            sent
        });
        let error = target.speak(&mut stream, |_| ()).unwrap_err().to_string();
        drop(stream);
        (error, answering.join().unwrap())
    };
    asked(&mut target, b"S");
    let (error, sent) = asked(&mut target, b"N");
    assert!(error.contains("nothing is sent in clear"), "{error}");
    assert_eq!(sent, b"");
    // one that has never spoken it hears who comes
    let (_, sent) = asked(&mut first.clone(), b"N");
    assert!(!sent.is_empty());
}
