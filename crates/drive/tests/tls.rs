//! HTTPS against a real TLS server: what is trusted, what is resumed, and how each failure is told.

mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion};
use support::{Sum, begin, finish, get, options, phase, plan};
use tempfile::NamedTempFile;
use tidemark_drive::Tls;
use tidemark_record::Outcome;
use tidemark_scenario::plan::{LoadModel, Spacing, TlsSettings};
use tidemark_scenario::{Plan, Template};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
const NAME: &str = "shop.test";

/// How a server leaves its connection.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    Keep,
    /// With TLS's last word.
    Close,
    /// Without it.
    Cut,
}

/// A certificate for [`NAME`] and the file of its authority.
struct Identity {
    config: Arc<ServerConfig>,
    authority: NamedTempFile,
}

fn identity(versions: &[&'static SupportedProtocolVersion]) -> Identity {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Each has its own name, so that one that is not known is told from one that is forged.
    static MADE: AtomicUsize = AtomicUsize::new(0);
    let name = format!("authority {} of this test", MADE.fetch_add(1, Ordering::Relaxed));
    authority.distinguished_name.push(DnType::CommonName, name);
    let authority_key = KeyPair::generate().unwrap();
    let authority_pem = authority.self_signed(&authority_key).unwrap().pem();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec![NAME.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();

    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), authority_pem).unwrap();
    Identity { config: Arc::new(config), authority: file }
}

fn identity_13() -> Identity {
    identity(&[&rustls::version::TLS13])
}

/// Answers each request with these bytes, and leaves as told after so many.
fn serve(identity: &Identity, answer: impl Into<Vec<u8>>, requests: usize, then: Then) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (config, answer) = (identity.config.clone(), Arc::new(answer.into()));
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let (config, answer) = (config.clone(), answer.clone());
            std::thread::spawn(move || converse(socket, config, &answer, requests, then));
        }
    });
    address
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

fn trusting(identity: &Identity) -> TlsSettings {
    TlsSettings { ca: Some(identity.authority.path().into()), ..TlsSettings::default() }
}

fn run(plan: Plan, address: SocketAddr, settings: &TlsSettings) -> Sum {
    let mut options = options(address, 1);
    options.target.tls = Some(Tls::new(settings, NAME).unwrap());
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
    let sum = run(twenty(), serve(&identity, ANSWER, 0, Then::Keep), &trusting(&identity));
    all_end(&sum, Outcome::Ok, "");
    assert_eq!((sum.connects(), sum.end.handshakes.full, sum.end.handshakes.resumed), (1, 1, 0));
    let spoken = sum.end.handshakes.spoken.unwrap();
    assert!(spoken.starts_with("TLS 1.3, TLS13_"), "{spoken}");
}

#[test]
fn a_new_connection_resumes_the_session_of_the_last() {
    let closing = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let identity = identity(&[version]);
        let address = serve(&identity, closing, 1, Then::Close);
        let sum = run(twenty(), address, &trusting(&identity));
        all_end(&sum, Outcome::Ok, "");
        assert_eq!((sum.end.handshakes.full, sum.end.handshakes.resumed), (1, 19), "{version:?}");

        let without = TlsSettings { resumption: false, ..trusting(&identity) };
        let sum = run(twenty(), address, &without);
        all_end(&sum, Outcome::Ok, "");
        assert_eq!((sum.end.handshakes.full, sum.end.handshakes.resumed), (20, 0), "{version:?}");
    }
}

#[test]
fn bodies_of_many_records_go_both_ways() {
    let identity = identity_13();
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1 << 20).into_bytes();
    answer.resize(answer.len() + (1 << 20), b'x');
    let mut plan = twenty();
    plan.requests[0].method = "POST".into();
    plan.requests[0].head = Template::literal("POST / HTTP/1.1\r\n");
    plan.requests[0].body = Some(Template::literal("y".repeat(1 << 20)));
    let sum = run(plan, serve(&identity, answer, 0, Then::Keep), &trusting(&identity));
    all_end(&sum, Outcome::Ok, "");
    assert_eq!(sum.connects(), 1);
    let received: u64 = sum.intervals.iter().map(|i| i.received_bytes).sum();
    assert!(received > 20 * (1 << 20), "the bytes of the wire are counted: {received}");
}

#[test]
fn who_is_not_trusted_is_not_spoken_to() {
    let (identity, other) = (identity_13(), identity_13());
    let address = serve(&identity, ANSWER, 0, Then::Keep);
    all_end(
        &run(twenty_apart(), address, &trusting(&other)),
        Outcome::Connect,
        "signed by nobody trusted here",
    );
    let misnamed = TlsSettings { server_name: Some("bank.test".into()), ..trusting(&identity) };
    all_end(&run(twenty_apart(), address, &misnamed), Outcome::Connect, "not valid for name \"bank.test\"");
    let insecure =
        TlsSettings { insecure: true, server_name: misnamed.server_name, ..TlsSettings::default() };
    all_end(&run(twenty(), address, &insecure), Outcome::Ok, "");
}

#[test]
fn a_handshake_that_fails_is_a_failed_connect() {
    let identity = identity_13();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let speaks_http = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
            let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    all_end(&run(twenty_apart(), speaks_http, &trusting(&identity)), Outcome::Connect, "does not speak TLS");

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let hangs_up = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            let _ = socket.read(&mut [0; 4096]);
        }
    });
    all_end(&run(twenty_apart(), hangs_up, &trusting(&identity)), Outcome::Connect, "TLS handshake");

    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut plan = twenty_apart();
    plan.limits.connect_timeout = Duration::from_millis(150);
    let sum = run(plan, silent.local_addr().unwrap(), &trusting(&identity));
    all_end(&sum, Outcome::Connect, "no connection was made in time");
}

#[test]
fn an_answer_that_only_the_end_bounds_needs_the_last_word() {
    let identity = identity_13();
    let endless = "HTTP/1.1 200 OK\r\n\r\nuntil the end";
    let sum = run(twenty(), serve(&identity, endless, 1, Then::Close), &trusting(&identity));
    all_end(&sum, Outcome::Ok, "");
    let sum = run(twenty(), serve(&identity, endless, 1, Then::Cut), &trusting(&identity));
    all_end(&sum, Outcome::Reset, "without a close_notify");

    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    let sum = run(twenty(), serve(&identity, half, 1, Then::Close), &trusting(&identity));
    all_end(&sum, Outcome::Reset, "before the answer was whole");
    let sum = run(twenty(), serve(&identity, half, 1, Then::Cut), &trusting(&identity));
    all_end(&sum, Outcome::Reset, "without a close_notify");

    // What is whole by its own length needs no last word.
    let whole = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
    let sum = run(twenty(), serve(&identity, whole, 1, Then::Cut), &trusting(&identity));
    all_end(&sum, Outcome::Ok, "");
}

#[test]
fn the_time_of_the_handshake_is_in_the_response_time() {
    const SLOW: Duration = Duration::from_millis(150);
    let identity = identity_13();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let config = identity.config.clone();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let config = config.clone();
            std::thread::spawn(move || {
                std::thread::sleep(SLOW);
                converse(socket, config, ANSWER.as_bytes(), 0, Then::Keep);
            });
        }
    });
    let mut plan = twenty();
    plan.load.phases = vec![phase(100, 10.0)];
    let sum = run(plan, address, &trusting(&identity));
    assert_eq!((sum.offered(), sum.outcome(Outcome::Ok)), (1, 1), "{:?}", sum.examples());
    assert!(sum.response().max() >= 150_000, "{} µs", sum.response().max());
    let service = sum.intervals.iter().flat_map(|i| &i.series).map(|s| s.service_time_us.max()).max();
    assert!(service < Some(sum.response().max()), "the handshake is not in the service time: {service:?}");
}
