//! A server that misbehaves as told, and plans and sums for the tests.

#![allow(dead_code, reason = "each test binary uses its part")]

pub mod calls;
pub mod databases;
pub mod frames;
pub mod grpc;
pub mod identity;
pub mod records;
pub mod websocket;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use tidemark_drive::{
    Address, Drive, DriveEnd, DriveError, DriveOptions, IoChoice, Programs, Protocol, Target, Timestamps,
    start,
};
use tidemark_record::{Counter, ErrorExample, Histogram, Outcome, ThreadInterval, new_histogram};
use tidemark_scenario::plan::{
    Curve, Extraction, HttpRequest, Limits, Load, LoadModel, Op, Phase, RequestKind, RequestPlan,
    SessionKind, Source, Spacing, WhenMissing,
};
use tidemark_scenario::{Plan, Shared, Template};

/// What a server sees of a request.
pub struct Request {
    /// Request line and headers.
    pub head: String,
    /// The body.
    pub body: Vec<u8>,
    /// Which connection it came on, counted from 0.
    pub connection: usize,
    /// Which request of its connection it is, counted from 0.
    pub index: usize,
}

impl Request {
    /// The target of the request line.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or("")
    }
}

/// What becomes of the connection after an answer.
#[derive(PartialEq)]
pub enum Next {
    Keep,
    Close,
    /// Closed so that the peer sees a reset.
    Reset,
}

/// A server on a free loopback port, with a thread for each connection. It lives as long as the test.
pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicUsize>,
    pub requests: Arc<AtomicUsize>,
}

impl Server {
    /// Answers every request by `behave`.
    pub fn start(behave: impl Fn(&Request, &mut TcpStream) -> Next + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let behave = Arc::new(behave);
        let server = Server { address, connections: Arc::default(), requests: Arc::default() };
        let (connections, requests) = (server.connections.clone(), server.requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let connection = connections.fetch_add(1, Ordering::SeqCst);
                let (behave, requests) = (behave.clone(), requests.clone());
                std::thread::spawn(move || serve(stream, connection, &*behave, &requests));
            }
        });
        server
    }

    /// Answers 200 with a small body after a delay.
    pub fn plain(delay: Duration) -> Server {
        Server::start(move |_, stream| {
            if !delay.is_zero() {
                std::thread::sleep(delay);
            }
            answer(stream, "200 OK", "", "hello")
        })
    }

    /// Takes every request, and says nothing for longer than any test goes on.
    pub fn silent() -> Server {
        Server::start(|_, _| {
            std::thread::sleep(Duration::from_secs(60));
            Next::Close
        })
    }

    /// Answers after this; and the most requests that it had at a time.
    pub fn counting(delay: Duration) -> (Server, Arc<AtomicUsize>) {
        let (busy, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
        let seen = most.clone();
        let server = Server::start(move |_, stream| {
            seen.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::sleep(delay);
            busy.fetch_sub(1, Ordering::SeqCst);
            answer(stream, "200 OK", "", "")
        });
        (server, most)
    }

    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// A server on a free loopback port that leaves each connection to this, in a thread of its own. It lives as long as the test.
pub fn serving(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = Arc::new(serve);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A server that answers the first bytes of each connection with these, and hangs up.
pub fn answering(bytes: &'static [u8]) -> SocketAddr {
    serving(move |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(bytes);
    })
}

/// A port that refuses connections. It is taken for as long as this lives, so that nobody else comes to listen there.
pub struct Nobody(socket2::Socket);

impl Nobody {
    pub fn taken() -> Nobody {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        Nobody(socket)
    }

    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap().as_socket().unwrap()
    }
}

/// Writes an answer; headers end with CRLF each.
pub fn answer(stream: &mut TcpStream, status: &str, headers: &str, body: &str) -> Next {
    let length = body.len();
    write(stream, &format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\n\r\n{body}"))
}

/// Writes bytes; a peer that is gone is no error here.
pub fn write(stream: &mut TcpStream, bytes: &str) -> Next {
    let _ = stream.write_all(bytes.as_bytes());
    Next::Keep
}

fn serve(
    mut stream: TcpStream,
    connection: usize,
    behave: &dyn Fn(&Request, &mut TcpStream) -> Next,
    requests: &AtomicUsize,
) {
    let _ = stream.set_nodelay(true);
    let mut bytes = Vec::new();
    for index in 0.. {
        let Some((head, body)) = receive(&mut stream, &mut bytes) else { return };
        requests.fetch_add(1, Ordering::SeqCst);
        match behave(&Request { head, body, connection, index }, &mut stream) {
            Next::Keep => {}
            Next::Close => return,
            Next::Reset => {
                let socket = socket2::Socket::from(stream);
                let _ = socket.set_linger(Some(Duration::ZERO));
                return;
            }
        }
    }
}

fn receive(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    let mut buffer = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|w| w == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end + 4]).into_owned();
            let length = head.lines().find_map(|l| l.strip_prefix("Content-Length: "));
            let whole = end + 4 + length.map_or(0, |l| l.trim().parse::<usize>().unwrap());
            if bytes.len() >= whole {
                let body = bytes[end + 4..whole].to_vec();
                bytes.drain(..whole);
                return Some((head, body));
            }
        }
        match stream.read(&mut buffer) {
            Ok(n) if n > 0 => bytes.extend_from_slice(&buffer[..n]),
            _ => return None,
        }
    }
}

/// The plan of a scenario.
pub fn load(text: &str) -> Plan {
    let plan = tidemark_scenario::load_text("t.yaml", text, std::path::Path::new("."), &[]);
    plan.unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// The plan of a session with these steps, and of what stands behind it.
pub fn with_steps(steps: &str, rest: &str) -> Plan {
    let steps: String = steps.lines().map(|line| format!("      {line}\n")).collect();
    load(&format!("sessions:\n  a:\n    steps:\n{steps}{rest}\n"))
}

/// So many sessions of these steps, however long a busy machine takes for them.
pub fn so_many(steps: &str, sessions: u64, load: &str, limits: &str) -> Plan {
    with_steps(
        steps,
        &format!("load: {{{load}, hold: 60s}}\nlimits: {{sessions: {sessions}, drain: 5s, {limits}}}"),
    )
}

/// How often there was each outcome.
pub fn outcomes(sum: &Sum) -> Vec<(Outcome, u64)> {
    let all = Outcome::ALL.map(|outcome| (outcome, sum.outcome(outcome)));
    all.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// The same of a label.
pub fn outcomes_of(labels: &[String], sum: &Sum, label: &str) -> Vec<(Outcome, u64)> {
    let index = labels.iter().position(|known| known == label).expect("a label") as u16;
    let of = Outcome::ALL.map(|outcome| (outcome, sum.of(index, outcome)));
    of.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// What is told of errors, without the same again.
pub fn told(sum: &Sum) -> Vec<&str> {
    let mut details: Vec<&str> = sum.examples().iter().map(|example| example.detail.as_str()).collect();
    details.dedup();
    details
}

/// The same in one text.
pub fn details(sum: &Sum) -> String {
    told(sum).join(" | ")
}

/// A GET that is labelled by its place.
pub fn get(label: u16, target: &str) -> RequestPlan {
    RequestPlan {
        label,
        target: 0,
        ask: RequestKind::Http(HttpRequest {
            method: "GET".into(),
            target: Template::literal(target),
            ..HttpRequest::default()
        }),
        ledger: None,
        key: None,
        timeout: Duration::from_secs(10),
        extractions: Vec::new(),
        checks: Vec::new(),
        shown_body_bytes: 0,
        follow: None,
    }
}

/// A request as one of HTTP.
pub fn http(request: &mut RequestPlan) -> &mut HttpRequest {
    match &mut request.ask {
        RequestKind::Http(request) => request,
        other => panic!("no request of HTTP: {other:?}"),
    }
}

/// Makes a POST of it.
pub fn post(request: &mut RequestPlan, body: impl Into<Vec<u8>>) {
    let http = http(request);
    http.method = "POST".into();
    http.body = Some(Template::literal(body.into()));
}

pub fn extract(slot: u16, source: Source, when_missing: WhenMissing) -> Extraction {
    Extraction { slot, source, when_missing }
}

pub fn kind(ops: Vec<Op>) -> SessionKind {
    let slot_names = ["a", "b", "c", "d"].map(str::to_owned).to_vec();
    SessionKind {
        name: "user".into(),
        weight: 1,
        slots: 4,
        slot_names,
        keep_cookies: false,
        ops,
        script: None,
    }
}

pub const OPEN: LoadModel = LoadModel::Open(Spacing::Constant);

/// So many sessions at 100 a second, each to its end, however busy the machine is.
pub fn whole_sessions(requests: Vec<RequestPlan>, sessions: u64) -> Plan {
    let mut plan = plan(requests, OPEN, vec![phase(60_000, 100.0)]);
    plan.limits.sessions = Some(sessions);
    plan
}

pub fn phase(ms: u64, level: f64) -> Phase {
    let duration = Duration::from_millis(ms);
    Phase { name: "hold".into(), duration, from: level, to: level, measured: true, curve: Curve::Line }
}

/// A plan in which each session makes all requests, one after the other.
pub fn plan(requests: Vec<RequestPlan>, model: LoadModel, phases: Vec<Phase>) -> Plan {
    let ops = (0..requests.len() as u16).map(Op::Request).chain([Op::End]).collect();
    Plan {
        labels: requests.iter().enumerate().map(|(index, _)| format!("r{index}")).collect(),
        requests,
        sessions: vec![kind(ops)],
        counters: 1,
        limits: Limits { connections: 20, waiting: Some(100_000), body_bytes: 1 << 20, ..Limits::default() },
        ..Plan::new("test", Load::new(model, phases))
    }
}

pub fn options(address: impl Into<Address>, threads: usize) -> DriveOptions {
    DriveOptions {
        threads,
        share: None,
        cores: Vec::new(),
        seed: 11,
        ledger_seed: 7,
        io: std::env::var("TIDEMARK_TEST_IO").map_or(IoChoice::Auto, |name| name.parse().unwrap()),
        spin: false,
        timestamps: Timestamps::Read,
        targets: vec![Target {
            address: address.into(),
            others: Vec::new(),
            authority: "test.local".into(),
            base_path: String::new(),
            tls: None,
            protocol: Protocol::Http1,
            proxy: None,
        }],
        trace: None,
        programs: None,
        codes: None,
        epoch: Instant::now(),
        wall_epoch: SystemTime::now(),
        fence_ns: None,
    }
}

/// Memory of this process.
pub fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Everything that a drive reported.
pub struct Sum {
    pub intervals: Vec<ThreadInterval>,
    pub end: DriveEnd,
}

impl Sum {
    pub fn count(&self, pick: impl Fn(u16, Outcome, bool) -> bool) -> u64 {
        let all = self.intervals.iter().flat_map(|i| &i.series);
        all.filter(|s| pick(s.label, s.outcome, s.measured)).map(|s| s.response_time_us.len()).sum()
    }

    /// The groups that ended so: their response times.
    pub fn groups(&self, group: u16, outcome: Outcome) -> Histogram {
        let mut sum = new_histogram();
        let all = self.intervals.iter().flat_map(|i| &i.groups);
        for series in all.filter(|s| (s.label, s.outcome) == (group, outcome)) {
            sum.add(&series.response_time_us);
        }
        sum
    }

    /// The requests with this label that ended so.
    pub fn of(&self, label: u16, outcome: Outcome) -> u64 {
        self.count(|l, o, _| (l, o) == (label, outcome))
    }

    pub fn outcome(&self, outcome: Outcome) -> u64 {
        self.count(|_, o, _| o == outcome)
    }

    pub fn ended(&self) -> u64 {
        self.count(|_, _, _| true)
    }

    /// What was counted over the whole drive.
    pub fn counted(&self, counter: Counter) -> u64 {
        self.end.counters[counter]
    }

    /// What was counted in the intervals.
    pub fn in_intervals(&self, counter: Counter) -> u64 {
        self.intervals.iter().map(|interval| interval.counters[counter]).sum()
    }

    pub fn failed_steps(&self) -> u64 {
        self.in_intervals(Counter::FailedSteps)
    }

    pub fn offered(&self) -> u64 {
        self.intervals.iter().map(|i| i.offered).sum()
    }

    pub fn dropped(&self) -> u64 {
        self.intervals.iter().map(|i| i.dropped).sum()
    }

    /// Requests that were due in the measured window, and those of them that were given up.
    pub fn measured(&self) -> (u64, u64) {
        let sum = |of: fn(&ThreadInterval) -> u64| self.intervals.iter().map(of).sum();
        (sum(|i| i.measured_offered), sum(|i| i.measured_dropped))
    }

    pub fn connects(&self) -> u64 {
        self.in_intervals(Counter::Connects)
    }

    pub fn response(&self) -> Histogram {
        let mut sum = new_histogram();
        for series in self.intervals.iter().flat_map(|i| &i.series).filter(|s| s.measured) {
            sum.add(&series.response_time_us);
        }
        sum
    }

    pub fn examples(&self) -> Vec<&ErrorExample> {
        self.intervals.iter().flat_map(|i| &i.examples).collect()
    }

    /// What was offered ended or was dropped; intervals follow one another.
    pub fn is_conserved(&self) {
        assert_eq!(self.offered(), self.ended() + self.dropped());
        assert_eq!(self.outcome(Outcome::Unfinished), self.counted(Counter::Unfinished));
        let (measured_offered, measured_dropped) = self.measured();
        assert_eq!(measured_offered, self.count(|_, _, measured| measured) + measured_dropped);
        assert_eq!(self.end.lost_intervals, 0);
        let threads = self.intervals.iter().map(|i| i.thread).max().unwrap_or(0);
        for thread in 0..=threads {
            let of: Vec<_> = self.intervals.iter().filter(|i| i.thread == thread).collect();
            assert!(of.windows(2).all(|two| two[0].end_us == two[1].start_us), "intervals leave no gap");
            // a thread that had nothing to do before the load began hands nothing over
            let Some(last) = of.last() else { continue };
            assert_eq!((last.waiting, last.in_flight), (0, 0));
        }
    }
}

pub fn begin(plan: Plan, options: DriveOptions) -> Drive {
    let shared = Shared::of(&plan);
    start(Arc::new(plan), Arc::new(shared), options).unwrap()
}

/// Why a plan is not driven.
pub fn refused(plan: Plan, options: DriveOptions) -> DriveError {
    let shared = Shared::of(&plan);
    start(Arc::new(plan), Arc::new(shared), options).unwrap_err()
}

/// Takes all intervals and waits for the end.
pub fn finish(drive: Drive) -> Sum {
    let intervals = drive.intervals().iter().collect();
    let sum = Sum { intervals, end: drive.join().unwrap() };
    sum.is_conserved();
    sum
}

pub fn run_programs(plan: Plan, options: DriveOptions, programs: Programs) -> Sum {
    finish(begin(plan, DriveOptions { programs: Some(programs), ..options }))
}

pub fn run(plan: Plan, address: impl Into<Address>) -> Sum {
    finish(begin(plan, options(address, 1)))
}
