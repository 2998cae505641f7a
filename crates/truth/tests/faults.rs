//! Each way to fail, as a client sees it: what, how often, and that the server counts the same.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use tidemark_truth::{Behaviour, Down, Misbehaviour, Refusing, Server, Truth};

/// Longer than any answer takes on a busy machine; what does not come within it does not come.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long silence is listened to.
const SILENCE: Duration = Duration::from_millis(100);

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Ending {
    /// All that came until the connection was closed or reset, or until nothing more came.
    Closed(String),
    Reset(String),
    Open(String),
}
use Ending::{Closed, Open, Reset};

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time-out");
    stream
}

fn ask(stream: &mut TcpStream, target: &str) {
    let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("a request is written");
}

/// Reads until the connection ends, or as much as a right answer has, or until `patience` is over.
fn hear(stream: &mut TcpStream, most: usize, patience: Duration) -> Ending {
    stream.set_read_timeout(Some(patience)).expect("a time-out");
    let (mut heard, mut buffer) = (Vec::new(), [0; 1000]);
    let text = |heard: &[u8]| String::from_utf8_lossy(heard).into_owned();
    while heard.len() < most {
        match stream.read(&mut buffer) {
            Ok(0) => return Closed(text(&heard)),
            Ok(n) => heard.extend_from_slice(&buffer[..n]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return Reset(text(&heard)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
            Err(error) => panic!("{error}"),
        }
    }
    Open(text(&heard))
}

const RIGHT: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// What becomes of one request on a connection of its own.
fn once(address: SocketAddr, target: &str, most: usize, patience: Duration) -> Ending {
    let mut stream = connect(address);
    ask(&mut stream, target);
    hear(&mut stream, most, patience)
}

fn with(faults: Vec<Misbehaviour>) -> Server {
    Server::start(Behaviour { faults, ..Behaviour::default() }).expect("a server")
}

fn right(address: SocketAddr) -> bool {
    once(address, "/", RIGHT.len(), PATIENCE) == Open(RIGHT.to_owned())
}

fn counted(truth: &Truth, fault: Misbehaviour) -> (u64, u64) {
    (truth.count(Misbehaviour::None), truth.count(fault))
}

#[test]
fn each_fault_is_what_it_says_in_the_share_that_it_says() {
    let answer = |status: &str, body: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len())
    };
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nhalf".to_owned();
    let long = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nok".to_owned();
    let short = format!("{RIGHT} and more");
    // the fault, what is seen of it, and for how long it is looked at
    let cases = [
        (Misbehaviour::Silence, Open(String::new()), SILENCE),
        (Misbehaviour::HalfOpen, Open(String::new()), SILENCE),
        (Misbehaviour::HalfClose, Closed(String::new()), PATIENCE),
        (Misbehaviour::Reset, Reset(String::new()), PATIENCE),
        (Misbehaviour::ResetMidway, Reset(half.clone()), PATIENCE),
        (Misbehaviour::Close, Closed(String::new()), PATIENCE),
        (Misbehaviour::HalfAnswer, Closed(half), PATIENCE),
        (Misbehaviour::LengthTooLong, Open(long), SILENCE),
        (Misbehaviour::LengthTooShort, Open(short.clone()), SILENCE),
        (Misbehaviour::NotHttp, Open("SSH-2.0-OpenSSH_9.2\r\n\r\n".to_owned()), SILENCE),
        (Misbehaviour::WrongBody, Open(answer("200 OK", "no")), SILENCE),
        (Misbehaviour::Status(500), Open(answer("500 Internal Server Error", "no")), SILENCE),
        (Misbehaviour::Status(204), Open("HTTP/1.1 204 No Content\r\n\r\n".to_owned()), SILENCE),
    ];
    for (fault, seen, patience) in cases {
        let server = with(fault.of_every(2, 5));
        let address = server.address();
        for n in 0..10 {
            match n % 5 {
                2 | 4 => assert_eq!(once(address, "/", 1_000, patience), seen, "{fault}, request {n}"),
                _ => assert!(right(address), "{fault}, request {n}"),
            }
        }
        let truth = server.stop().expect("the truth");
        assert_eq!((truth.requests, truth.left), (10, 0), "{fault}");
        assert_eq!(counted(&truth, fault), (6, 4), "{fault}");
        assert_eq!(truth.answered, 6, "{fault}");
    }
}

#[test]
fn after_silence_a_connection_is_served_and_after_half_open_it_is_not() {
    for (fault, served) in [(Misbehaviour::Silence, true), (Misbehaviour::HalfOpen, false)] {
        let server = with(vec![fault, Misbehaviour::None]);
        let mut stream = connect(server.address());
        ask(&mut stream, "/");
        assert_eq!(hear(&mut stream, 1_000, SILENCE), Open(String::new()));
        ask(&mut stream, "/");
        let heard = if served { RIGHT } else { "" };
        let patience = if served { PATIENCE } else { SILENCE };
        assert_eq!(hear(&mut stream, RIGHT.len(), patience), Open(heard.to_owned()), "{fault}");
        let truth = server.stop().expect("the truth");
        assert_eq!((truth.answered, truth.count(fault)), (u64::from(served), 1));
    }
}

#[test]
fn late_and_dripping_answers_are_right_and_take_their_time() {
    let (late, over) = (Duration::from_millis(200), Duration::from_millis(400));
    for (fault, least) in [(Misbehaviour::Late(late), late), (Misbehaviour::Drip(over), over)] {
        let server = with(vec![Misbehaviour::None, fault]);
        assert!(right(server.address()));
        let mut stream = connect(server.address());
        let began = Instant::now();
        ask(&mut stream, "/");
        let first = hear(&mut stream, 1, PATIENCE);
        // a byte of a dripping answer comes alone, unless the machine holds the reader up
        assert!(matches!(&first, Open(text) if RIGHT.starts_with(text.as_str())), "{first:?}");
        let Open(first) = first else { return };
        let rest = hear(&mut stream, RIGHT.len() - first.len(), PATIENCE);
        assert_eq!(rest, Open(RIGHT[first.len()..].to_owned()), "{fault}");
        // rounding takes less than a nanosecond from each of its steps
        assert!(began.elapsed() + Duration::from_micros(1) >= least, "{fault}: {:?}", began.elapsed());
        let truth = server.stop().expect("the truth");
        assert_eq!((truth.answered, counted(&truth, fault)), (2, (1, 1)));
        assert!(truth.kept_us[0].max() >= least.as_micros() as u64 - 1_000);
    }
}

/// A client that gives up in the midst of it is one whose connection was gone.
#[test]
fn a_dripping_answer_that_nobody_waits_for_has_no_count_but_left() {
    // long enough that the client has gone before its end, on a busy machine, too
    let server = with(vec![Misbehaviour::Drip(Duration::from_secs(5)), Misbehaviour::None]);
    let mut stream = connect(server.address());
    ask(&mut stream, "/");
    assert!(matches!(hear(&mut stream, 1, PATIENCE), Open(text) if !text.is_empty()));
    drop(stream);
    // some more bytes
    std::thread::sleep(Duration::from_millis(1_500));
    let truth = server.stop().expect("the truth");
    assert_eq!((truth.requests, truth.left, truth.answered), (1, 1, 0));
}

#[test]
fn a_url_says_its_own_faults() {
    let server = with(vec![Misbehaviour::None]);
    let address = server.address();
    let status = |target: &str| match once(address, target, RIGHT.len(), PATIENCE) {
        Open(text) => text[9..12].to_owned(),
        other => panic!("{other:?}"),
    };
    // each text counts by itself, and those without one go on as before
    for n in 0..6 {
        assert_eq!(status("/a?fault=status:503@1/3"), if n % 3 == 2 { "503" } else { "200" });
        assert_eq!(status("/b?x=1&fault=status:404"), "404");
        assert_eq!(status("/c"), "200");
    }
    assert_eq!(status("/a?fault=whatever"), "400");
    let truth = server.stop().expect("the truth");
    let count = |code| truth.count(Misbehaviour::Status(code));
    assert_eq!((count(503), count(404), count(400), truth.answered), (2, 6, 1, 10));
}

#[test]
fn a_body_is_no_request() {
    let server = with(vec![]);
    let mut stream = connect(server.address());
    let body = "a b\r\n\r\nGET /";
    for _ in 0..2 {
        let head = format!("POST /7 HTTP/1.1\r\nHost: x\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).expect("a head");
        stream.write_all(body.as_bytes()).expect("a body");
        assert_eq!(hear(&mut stream, RIGHT.len(), PATIENCE), Open(RIGHT.to_owned()));
    }
    assert_eq!(server.stop().expect("the truth").requests, 2);
}

#[test]
fn every_so_many_connections_are_reset_at_once() {
    let behaviour = Behaviour { reset_every: Some(3), ..Behaviour::default() };
    let server = Server::start(behaviour).expect("a server");
    for n in 1..=9 {
        let mut stream = connect(server.address());
        if n % 3 == 0 {
            assert_eq!(hear(&mut stream, 1, PATIENCE), Reset(String::new()), "connection {n}");
        } else {
            ask(&mut stream, "/");
            assert_eq!(hear(&mut stream, RIGHT.len(), PATIENCE), Open(RIGHT.to_owned()), "connection {n}");
        }
    }
    let truth = server.stop().expect("the truth");
    assert_eq!((truth.connections, truth.connections_reset, truth.answered), (9, 3, 6));
}

#[test]
fn while_it_is_down_connections_are_reset_and_refused_and_then_all_is_well() {
    let (after, length) = (Duration::from_millis(300), Duration::from_secs(2));
    let behaviour = Behaviour { down: Some(Down { after, length }), ..Behaviour::default() };
    let server = Server::start(behaviour).expect("a server");
    let address = server.address();
    let mut before = connect(address);
    ask(&mut before, "/");
    let began = Instant::now();
    assert_eq!(hear(&mut before, RIGHT.len(), PATIENCE), Open(RIGHT.to_owned()));
    assert_eq!(hear(&mut before, 1, PATIENCE), Reset(String::new()), "those that are there are reset");
    let mut refused = 0;
    loop {
        match TcpStream::connect(address) {
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => refused += 1,
            Err(error) => panic!("{error}"),
            Ok(_) => break,
        }
        std::thread::sleep(Duration::from_millis(10));
        assert!(began.elapsed() < PATIENCE, "it never came back");
    }
    assert!(refused > 0, "nothing was refused");
    assert!(right(address), "it is back");
    let truth = server.stop().expect("the truth");
    let [(begin_ns, end_ns)] = truth.downs_ns[..] else { panic!("{:?}", truth.downs_ns) };
    let first_ns = truth.first_request_ns.expect("there was one");
    assert!(Duration::from_nanos(begin_ns - first_ns) >= after, "not too early");
    assert!(end_ns - first_ns >= (after + length).as_nanos() as u64, "not too short");
    assert_eq!(truth.answered, 2);
}

#[test]
fn where_nobody_is_every_connection_is_refused() {
    let nobody = Refusing::start().expect("a port");
    for _ in 0..3 {
        let error = TcpStream::connect(nobody.address().expect("an address")).expect_err("nobody is there");
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    }
}
