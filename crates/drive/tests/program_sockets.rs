//! WebSockets of programs: opened on branches, and heard of as things come.

use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::identity::{NAME, identity_13};
use crate::support::websocket::{Socket, converse, listen, receive};
use crate::support::{Sum, kind, options, phase, run_programs, whole_sessions};
use rustls::ServerConfig;
use tidemark_drive::{
    AnswerCheck, AnswerView, DriveOptions, Heard, IoChoice, Next, Program, ProgramRequest, Programs, Said,
    Tls,
};
use tidemark_record::{Counter, Outcome};
use tidemark_scenario::Plan;
use tidemark_scenario::plan::{Load, LoadModel, Op};
use tidemark_wire::http1::{DecoderLimits, RequestDecoder};
use tidemark_wire::websocket::{Event, Kind, handshake, write_close, write_message, write_ping};

const OPEN: u16 = 0;

/// Paths that begin with `/other` are another target's.
fn request(path: &str) -> ProgramRequest {
    ProgramRequest {
        label: OPEN,
        target: u16::from(path.starts_with("/other")),
        method: "GET".into(),
        path: path.into(),
        timeout: Duration::from_secs(10),
        headers: vec![("X-Who".into(), "me".into())],
        websocket: Some(vec!["v2".into(), "v1".into()]),
        ..ProgramRequest::default()
    }
}

/// The paths of servers' WebSockets, and what was heard or answered there.
type Log = Arc<Mutex<Vec<(String, String)>>>;
/// What is said on what was heard, in words.
type React = fn(&str) -> Vec<Said>;

/// Each session opens WebSockets, and speaks until all are over.
struct Speaking {
    paths: &'static [&'static str],
    react: React,
    /// Messages of which no more are taken, and the session then does nothing but rest.
    most: usize,
    log: Log,
    /// By session: what is to be done, and how many WebSockets are under way.
    sessions: HashMap<u32, (VecDeque<Next>, usize)>,
    /// By branch: its session, its path, and whether it is open.
    branches: HashMap<u32, (u32, String, bool)>,
    opening: VecDeque<String>,
}

impl Speaking {
    fn came(&mut self, branch: u32, words: String) {
        let (session, path, _) = &self.branches[&branch];
        let said = (self.react)(&words);
        self.log.lock().unwrap().push((path.clone(), words));
        let (does, _) = self.sessions.get_mut(session).unwrap();
        does.extend(said.into_iter().map(|said| Next::Say(branch, said)));
    }

    fn over(&mut self, branch: u32) {
        let (session, _, is_open) = self.branches.get_mut(&branch).unwrap();
        *is_open = false;
        self.sessions.get_mut(session).unwrap().1 -= 1;
    }
}

impl Program for Speaking {
    fn begin(&mut self, session: u32, _: usize) {
        let opens = self.paths.iter().map(|path| Next::Branch(request(path)));
        self.sessions.insert(session, (opens.collect(), self.paths.len()));
    }

    fn next(&mut self, session: u32, _: Duration) -> Next {
        if let Some((_, _, is_open)) = self.branches.get(&session) {
            return if *is_open { Next::Await(None) } else { Next::End };
        }
        let (does, open) = self.sessions.get_mut(&session).unwrap();
        match does.pop_front() {
            Some(next) => {
                if let Next::Branch(request) = &next {
                    self.opening.push_back(request.path.clone());
                }
                if let Next::Say(branch, Said::Leave(_)) = &next {
                    let branch = *branch;
                    self.over(branch);
                }
                next
            }
            None if *open > 0 => Next::Await(None),
            None => Next::End,
        }
    }

    fn branched(&mut self, session: u32, branch: Option<u32>) {
        let path = self.opening.pop_front().unwrap();
        self.branches.insert(branch.unwrap(), (session, path, false));
    }

    fn answered(&mut self, branch: u32, answer: &AnswerView<'_>) -> AnswerCheck {
        let status = answer.status();
        let chosen = answer.header("sec-websocket-protocol").unwrap_or_default();
        let words = format!("{status} {}", String::from_utf8_lossy(chosen));
        self.branches.get_mut(&branch).unwrap().2 = status == 101;
        self.came(branch, words);
        if status != 101 {
            self.over(branch);
        }
        AnswerCheck::ByStatus
    }

    fn failed(&mut self, branch: u32, outcome: Outcome) {
        self.came(branch, format!("failed: {outcome:?}"));
        self.over(branch);
    }

    fn heard(&mut self, branch: u32, heard: Heard<'_>) -> bool {
        if self.most == 0 {
            self.over(branch);
            return false;
        }
        self.most -= 1;
        let words = match heard {
            Heard::Binary(bytes) => format!("Binary of {}", bytes.len()),
            Heard::Broken(_) => "Broken".into(),
            heard => format!("{heard:?}"),
        };
        self.came(branch, words);
        if heard.is_last() {
            self.over(branch);
        }
        true
    }
}

/// The server: `/no` is refused, `/page` answers 200, others do as their name says.
fn serve(stream: &mut dyn Socket) -> Option<()> {
    let mut request = RequestDecoder::new(DecoderLimits::default());
    receive(stream, &mut request)?;
    let path = String::from_utf8(request.target().to_vec()).unwrap();
    let refused = match &*path {
        "/no" => "403 Forbidden",
        "/page" => "200 OK",
        _ => "",
    };
    if !refused.is_empty() {
        return write!(stream, "HTTP/1.1 {refused}\r\nContent-Length: 0\r\n\r\n").ok();
    }
    assert_eq!(request.header("x-who"), Some(&b"me"[..]));
    let offer = handshake::check_request(&request).unwrap();
    let mut out = Vec::new();
    handshake::write_answer(&mut out, offer.key, offer.protocols().last()).unwrap();
    match &*path {
        "/greets" => {
            // in one piece with the answer
            write_message(&mut out, Kind::Text, b"welcome", None);
            write_ping(&mut out, b"p", None);
            write_close(&mut out, Some(1000), "bye", None);
        }
        "/wrong" => out = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: no\r\n\r\n".to_vec(),
        "/broken" => out.extend_from_slice(&[0xf1, 1, b'x']),
        _ => {}
    }
    stream.write_all(&out).ok()?;
    if path == "/ends" {
        return None;
    }
    if path == "/floods" {
        let mut message = Vec::new();
        write_message(&mut message, Kind::Binary, &[0; 1000], None);
        while stream.write_all(&message).is_ok() {}
        return None;
    }
    converse(stream, |event, decoder, out| match event {
        Event::Message(kind) => {
            write_message(out, kind, decoder.message(), None);
            true
        }
        Event::Close => {
            write_close(out, decoder.close_code(), decoder.close_reason(), None);
            false
        }
        _ => true,
    });
    Some(())
}

fn server() -> SocketAddr {
    server_over(None)
}

fn server_over(tls: Option<Arc<ServerConfig>>) -> SocketAddr {
    listen(tls, |stream| {
        // a driver that leaves in between is no error here
        let _ = serve(stream);
    })
}

fn plan(sessions: u64) -> Plan {
    let mut plan = whole_sessions(Vec::new(), sessions);
    plan.labels = vec!["open".into()];
    plan.sessions = vec![kind(vec![Op::Program, Op::End])];
    plan
}

/// Programs that may open no WebSocket.
fn speaking(paths: &'static [&'static str], most: usize, react: React) -> (Programs, Log) {
    let log = Log::default();
    let noted = log.clone();
    let programs = Programs::new(move |_| {
        Box::new(Speaking {
            paths,
            react,
            most,
            log: noted.clone(),
            sessions: HashMap::new(),
            branches: HashMap::new(),
            opening: VecDeque::new(),
        })
    });
    (programs, log)
}

fn programs(paths: &'static [&'static str], most: usize, react: React) -> (Programs, Log) {
    let (programs, log) = speaking(paths, most, react);
    (programs.opening_websockets(), log)
}

fn run(paths: &'static [&'static str], react: React) -> (Sum, Vec<(String, String)>) {
    let (programs, log) = programs(paths, usize::MAX, react);
    let sum = run_programs(plan(1), options(server(), 1), programs);
    let log = log.lock().unwrap().clone();
    (sum, log)
}

fn of<'l>(log: &'l [(String, String)], path: &str) -> Vec<&'l str> {
    log.iter().filter(|(known, _)| known == path).map(|(_, words)| words.as_str()).collect()
}

#[test]
fn several_are_open_at_once_and_each_hears_its_own() {
    let (sum, log) = run(&["/a", "/b", "/greets", "/no", "/page", "/wrong"], |words| match words {
        "101 v1" => vec![Said::Text("héllo".into()), Said::Binary(vec![0; 100_000]), Said::Ping(b"x".into())],
        "Binary of 100000" => vec![Said::Close(4000, "done".into()), Said::Text("too late".into())],
        _ => Vec::new(),
    });
    for path in ["/a", "/b"] {
        let heard = ["101 v1", "Text(\"héllo\")", "Binary of 100000", "Closed(Some(4000), \"done\")"];
        assert_eq!(of(&log, path), heard, "{log:?}");
    }
    let heard = ["101 v1", "Text(\"welcome\")", "Ping([112])", "Closed(Some(1000), \"bye\")"];
    assert_eq!(of(&log, "/greets"), heard);
    assert_eq!(of(&log, "/no"), ["403 "]);
    assert_eq!(of(&log, "/page"), ["200 "]);
    assert_eq!(of(&log, "/wrong"), ["failed: Protocol"]);
    // what is said of a status below 400 is nothing: no WebSocket came of it
    assert_eq!(sum.outcome(Outcome::Ok), 3, "{:?}", sum.examples());
    assert_eq!((sum.outcome(Outcome::Status), sum.outcome(Outcome::Protocol)), (2, 1));
    assert_eq!(sum.in_intervals(Counter::MessagesHeard), 5);
    assert_eq!(sum.in_intervals(Counter::MessagesSaid), 6, "nothing after a close");
    assert_eq!(sum.ended(), 6, "messages are no requests");
}

/// Over TLS, too; and what is in several pieces of one target keeps nothing of another.
#[test]
fn each_target_has_its_own() {
    let identity = identity_13();
    let (programs, log) =
        programs(&["/a", "/other", "/greets", "/other2"], usize::MAX, |words| match words {
            "101 v1" => vec![Said::Binary(vec![7; 300_000]), Said::Text("x".into())],
            "Text(\"x\")" => vec![Said::Close(1000, String::new())],
            _ => Vec::new(),
        });
    let mut options = options(server(), 1);
    let mut other = options.targets[0].clone();
    other.address = server_over(Some(identity.config.clone())).into();
    other.tls = Some(Tls::new(&identity.trusted(), NAME).unwrap());
    options.targets.push(other);
    let sum = run_programs(plan(5), options, programs);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (20, 20), "{:?}", sum.examples());
    let log = log.lock().unwrap();
    for path in ["/a", "/other", "/other2"] {
        let heard = of(&log, path);
        for words in ["101 v1", "Binary of 300000", "Text(\"x\")", "Closed(Some(1000), \"\")"] {
            assert_eq!(heard.iter().filter(|known| **known == words).count(), 5, "{path}: {heard:?}");
        }
    }
    assert_eq!(of(&log, "/greets").len(), 20);
}

#[test]
fn what_breaks_is_heard_and_counted() {
    let (sum, log) = run(&["/ends", "/broken"], |_| Vec::new());
    assert_eq!(of(&log, "/ends"), ["101 v1", "Ended"]);
    assert_eq!(of(&log, "/broken"), ["101 v1", "Broken"]);
    assert_eq!(sum.outcome(Outcome::Ok), 2, "the handshakes");
    let failed = (sum.outcome(Outcome::Reset), sum.outcome(Outcome::Protocol));
    assert_eq!(failed, (1, 1), "{:?}", sum.examples());
}

#[test]
fn a_program_that_takes_no_more_is_rid_of_a_flood() {
    let (programs, log) = programs(&["/floods"], 1_000, |_| Vec::new());
    let sum = run_programs(plan(2), options(server(), 1), programs);
    let log = log.lock().unwrap();
    assert_eq!(of(&log, "/floods").len(), 1_000 + 2, "{}", log.len());
    assert_eq!((sum.outcome(Outcome::Ok), sum.outcome(Outcome::Protocol)), (2, 2), "{:?}", sum.examples());
}

#[test]
fn what_is_left_is_sent_whole_before() {
    let (sum, log) = run(&["/a"], |words| match words {
        "101 v1" => vec![Said::Binary(vec![1; 5_000_000]), Said::Leave(1001)],
        _ => Vec::new(),
    });
    assert_eq!(of(&log, "/a"), ["101 v1"]);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (1, 1), "{:?}", sum.examples());
    assert!(sum.in_intervals(Counter::SentBytes) > 5_000_000);
}

#[test]
fn the_end_of_the_load_ends_them() {
    let (programs, log) = programs(&["/a", "/b"], usize::MAX, |_| Vec::new());
    let mut plan = plan(3);
    plan.load = Load::new(LoadModel::Closed, vec![phase(300, 3.0)]);
    let sum = run_programs(plan, options(server(), 1), programs);
    assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (6, 6), "{:?}", sum.examples());
    assert_eq!(of(&log.lock().unwrap(), "/a"), ["101 v1"; 3]);
}

#[test]
fn each_back_end_carries_them() {
    for io in [IoChoice::Epoll, IoChoice::Auto] {
        let (programs, log) = programs(&["/a"], usize::MAX, |words| match words {
            "101 v1" => vec![Said::Text("x".into())],
            "Text(\"x\")" => vec![Said::Close(1000, String::new())],
            _ => Vec::new(),
        });
        let sum = run_programs(plan(20), DriveOptions { io, ..options(server(), 2) }, programs);
        assert_eq!((sum.outcome(Outcome::Ok), sum.ended()), (20, 20), "{:?}", sum.examples());
        assert_eq!(log.lock().unwrap().len(), 60);
    }
}

#[test]
fn who_may_not_open_them_is_told() {
    let (programs, log) = speaking(&["/a"], 0, |_| Vec::new());
    let sum = run_programs(plan(1), options(server(), 1), programs);
    assert_eq!(of(&log.lock().unwrap(), "/a").len(), 1);
    assert!(sum.examples()[0].detail.contains("may ask for no WebSocket"), "{:?}", sum.examples());
}
