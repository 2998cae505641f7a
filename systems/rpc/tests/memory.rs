//! What a server's process holds in memory while clients do their worst. The server is a process of its own: this test,
//! started once more.

#[path = "../../service/tests/client/mod.rs"]
mod client;
mod fixture;

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use bytes::Bytes;
use client::{Client, eventually};
use fixture::raw::{KEY, Raw};
use fixture::{BureauService, Desk};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{Domain, Socket, Type};
use tidemark_rpc::Calls;
use tidemark_service::{Limits, Server, System};
use tidemark_wire::rpc::CallWriter;
use tidemark_wire::websocket::{self, Event, Kind};

const MIB: usize = 1 << 20;
/// All connections together may hold so much in these tests.
const HELD_MAX: usize = 32 * MIB;
/// What a process may take beside that: what its allocator does not give back, buffers of its workers.
const SLACK: usize = 24 * MIB;

/// What a connection may take that holds nothing: hyper's buffers for a head each way, and its state.
const IDLE_BYTES: usize = 24 << 10;

/// Says to this test's process that it is the server.
const SERVE: &str = "TIDEMARK_TEST_SERVE";

/// Not a test: the server of the others, until its standard input is closed.
#[test]
#[ignore = "the server of the other tests"]
fn serve() {
    if std::env::var_os(SERVE).is_none() {
        return;
    }
    let router = Router::new()
        .route("/length", post(|body: Bytes| async move { body.len().to_string() }))
        .route("/megabyte", get(|| async { vec![b'x'; MIB] }))
        .route(
            "/stored",
            get(|| async {
                tokio::time::sleep(Duration::from_micros(100)).await;
                "stored"
            }),
        );
    let system = System::new(router).endpoint(Calls::new().service(BureauService(Arc::new(Desk::default()))));
    let limits = Limits { held_bytes_max: HELD_MAX, ..Limits::default() };
    let server = Server::new(system).limits(limits).workers(2).announce(true);
    client::serve_until_input_ends(server.bind().unwrap());
}

struct Process {
    process: client::Process,
    addr: SocketAddr,
    /// Resident before anything was asked of it.
    before: usize,
}

impl Process {
    fn start() -> Self {
        let process = client::Process::start("serve", SERVE, "1");
        let mut process = Process { addr: process.addr, process, before: 0 };
        process.before = process.status("VmRSS:");
        process
    }

    fn status(&self, name: &str) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
    }

    /// By how much it has grown at the most.
    fn grown(&self) -> usize {
        self.status("VmHWM:").saturating_sub(self.before)
    }

    fn assert_grown_less_than(&self, bytes: usize) {
        let grown = self.grown();
        assert!(grown < bytes, "{} MiB more, of {} MiB that are allowed", grown / MIB, bytes / MIB);
        // and it still serves
        assert_eq!(Client::new(self.addr).get("/stored").text(), "stored");
    }

    fn metric(&self, start: &str) -> u64 {
        let metrics = Client::new(self.addr).get("/metrics");
        let line = metrics.text().lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("no {start}")).trim().parse().unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // with all that clients hold open
        self.process.kill();
    }
}

/// Many files may be open in this process; how many.
fn many_files() -> usize {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    maximum.map_or(usize::MAX, |most| most as usize)
}

#[test]
fn pipelining_without_end_while_answers_are_made() {
    let process = Process::start();
    let mut stream = TcpStream::connect(process.addr).unwrap();
    let mut answers = stream.try_clone().unwrap();
    let reading = std::thread::spawn(move || std::io::copy(&mut answers, &mut std::io::sink()).unwrap());
    let request = format!("GET /stored HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "x".repeat(12_000));
    let requests = request.repeat(20);
    let mut sent = 0;
    while sent < 2 * SLACK {
        stream.write_all(requests.as_bytes()).unwrap();
        sent += requests.len();
    }
    process.assert_grown_less_than(SLACK);
    stream.shutdown(Shutdown::Write).unwrap();
    let answered = reading.join().unwrap();
    assert!(answered as usize > sent / request.len() * 100, "each has its answer: {answered} bytes");
}

#[test]
fn answers_that_are_not_read() {
    let process = Process::start();
    let requests = "GET /megabyte HTTP/1.1\r\nHost: x\r\n\r\n".repeat(16);
    let mut clients = Vec::new();
    for _ in 0..150 {
        let mut client = Client::new(process.addr);
        client.send(requests.as_bytes());
        clients.push(client);
    }
    eventually("some are cut off", || {
        (process.metric("tidemark_bound_hits_total{bound=\"held_bytes\"} ") > 0).then_some(())
    });
    process.assert_grown_less_than(HELD_MAX + SLACK);
    drop(clients);
    eventually("all is given back", || (process.metric("tidemark_held_bytes ") == 0).then_some(()));
}

#[test]
fn answers_to_calls_that_are_read_slowly() {
    let process = Process::start();
    // small segments make small buffers of sockets: then a part of the answers is always left in the server
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_tcp_mss(536).unwrap();
    socket.connect(&process.addr.into()).unwrap();
    let mut raw = Raw::over(socket.into());
    let wire = raw.echo(60_000);
    let mut writer = raw.stream.try_clone().unwrap();
    // until the connection ends
    let writing = std::thread::spawn(move || while writer.write_all(&wire).is_ok() {});
    let mut piece = vec![0; 64 << 10];
    let mut read = 0;
    while read < 48 * MIB {
        read += raw.stream.read(&mut piece).unwrap();
        std::thread::sleep(Duration::from_micros(500));
    }
    process.assert_grown_less_than(SLACK);
    raw.stream.shutdown(Shutdown::Both).unwrap();
    writing.join().unwrap();
}

#[test]
fn calls_that_wait_with_all_that_they_were_given() {
    let process = Process::start();
    let mut raw = Raw::connect(process.addr);
    let hang = raw.number("desk.hang");
    let payload = format!("[{}]", " ".repeat(200_000));
    raw.stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
    for id in 0..1000 {
        let (mut frame, mut wire) = (Vec::new(), Vec::new());
        CallWriter::new().call(&mut frame, id, hang, 60_000, payload.as_bytes());
        websocket::write_message(&mut wire, Kind::Binary, &frame, Some(KEY));
        match raw.stream.write_all(&wire) {
            Ok(()) => {}
            // it reads no further
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    process.assert_grown_less_than(SLACK);
}

#[test]
fn idle_connections() {
    let process = Process::start();
    let count = (many_files() / 2).min(4_000);
    let mut clients = Vec::new();
    for _ in 0..count {
        let mut client = Client::new(process.addr);
        assert_eq!(client.get("/stored").text(), "stored");
        clients.push(client);
    }
    process.assert_grown_less_than(count * IDLE_BYTES + SLACK);
}

#[test]
fn idle_connections_of_calls() {
    let process = Process::start();
    many_files();
    let mut raws = Vec::new();
    for _ in 0..200 {
        let mut raw = Raw::connect(process.addr);
        // a frame as large as they come, and many calls at once
        let (mut frame, mut calls) = (Vec::new(), CallWriter::new());
        let payload = format!("[{}\"x\",\"y\"]", " ".repeat(100_000));
        let echo = raw.number("desk.echo");
        (0..8).for_each(|id| calls.call(&mut frame, id, echo, 60_000, payload.as_bytes()));
        raw.send(&frame);
        assert_eq!(raw.event(), Event::Message(Kind::Binary));
        raws.push(raw);
    }
    process.assert_grown_less_than(HELD_MAX + SLACK);
}

#[test]
fn heads_without_end() {
    let process = Process::start();
    many_files();
    let mut stream = TcpStream::connect(process.addr).unwrap();
    let mut answer = stream.try_clone().unwrap();
    let reading = std::thread::spawn(move || {
        let mut first = [0; 12];
        answer.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"HTTP/1.1 431");
    });
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n");
    while stream.write_all(&[b'x'; 1000]).and_then(|()| stream.write_all(b": y\r\n")).is_ok() {}
    reading.join().unwrap();
    // many that stop before that
    let mut clients = Vec::new();
    let count = 4_000.min(many_files() / 2);
    for _ in 0..count {
        let mut client = Client::new(process.addr);
        client.send(format!("GET / HTTP/1.1\r\nHost: x\r\nX: {}", "x".repeat(16_000)).as_bytes());
        clients.push(client);
    }
    process.assert_grown_less_than(HELD_MAX + count * IDLE_BYTES + SLACK);
}

#[test]
fn bodies_that_never_end() {
    let process = Process::start();
    let mut clients = Vec::new();
    for _ in 0..300 {
        let mut client = Client::new(process.addr);
        let head = "POST /length HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n";
        // it may be refused meanwhile
        let is_whole = client.stream.write_all(&[head.as_bytes(), &[b'x'; 999_000]].concat()).is_ok();
        clients.push((client, is_whole));
    }
    process.assert_grown_less_than(HELD_MAX + SLACK);
    let refused = process.metric("tidemark_bound_hits_total{bound=\"held_bytes\"} ");
    assert!((200..300).contains(&refused), "{refused}");
    let (mut last, _) = clients.pop().unwrap();
    let reply = last.reply(false);
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
    assert!(reply.json()["reason"].as_str().unwrap().contains("memory"), "{}", reply.text());
    // those that were taken go on, and have their answers; on a busy machine the first need not be one, and of
    // one without an answer so far the refusal may be on its way
    let has_whole_answer = |client: &mut Client| {
        client.stream.set_nonblocking(true).unwrap();
        let nothing_came =
            client.stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
        client.stream.set_nonblocking(false).unwrap();
        nothing_came && client.stream.write_all(&[b'x'; 1000]).is_ok() && {
            let reply = client.reply(false);
            reply.status == 200 && reply.text() == "1000000"
        }
    };
    let whole = clients.iter_mut().filter(|(_, is_whole)| *is_whole);
    assert!(whole.map(|(client, _)| client).any(has_whole_answer), "one that was not refused");
    drop((clients, last));
    eventually("all is given back", || (process.metric("tidemark_held_bytes ") == 0).then_some(()));
}

#[test]
fn fragments_without_end() {
    let process = Process::start();
    let piece = vec![b'x'; 60_000];
    let fragment = |first: bool| {
        let mut wire = Vec::new();
        websocket::write_fragment(&mut wire, first.then_some(Kind::Binary), false, &piece, Some(KEY));
        wire
    };
    let mut endless = Raw::connect(process.addr);
    let _ = endless.stream.write_all(&fragment(true));
    while endless.stream.write_all(&fragment(false)).is_ok() {}
    // those that stop before a message is too large
    let mut raws = Vec::new();
    for _ in 0..150 {
        let mut raw = Raw::connect(process.addr);
        let fragments: Vec<u8> = (0..17).flat_map(|n| fragment(n == 0)).collect();
        // it may be closed meanwhile
        let _ = raw.stream.write_all(&fragments);
        raws.push(raw);
    }
    process.assert_grown_less_than(HELD_MAX + SLACK);
    let (code, reason) = raws.pop().unwrap().closed();
    assert!(code == 1013 && reason.contains("memory"), "{code} {reason}");
}
