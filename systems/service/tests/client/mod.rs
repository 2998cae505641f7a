//! A small blocking HTTP client for tests, on one connection, that hides nothing; and a system that it asks.
#![allow(dead_code)] // each test file uses another part

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use tidemark_service::{BoundServer, Served, ServiceError, Stop};

/// Nothing in a test takes this long; a test that hangs fails instead.
const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until the answer is there; fails when it does not come.
pub fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = std::time::Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A system that a thread of this process serves, until it is dropped.
pub struct Serving {
    pub addr: SocketAddr,
    pub stop: Stop,
    pub thread: Option<JoinHandle<Result<Served, ServiceError>>>,
}

impl Serving {
    /// One that is ready.
    pub fn start(server: BoundServer) -> Self {
        let serving = Self::begin(server);
        serving.ready_client();
        serving
    }

    pub fn begin(server: BoundServer) -> Self {
        let (addr, stop) = (server.addr(), Stop::new());
        let triggered = stop.triggered();
        Serving { addr, stop, thread: Some(std::thread::spawn(move || server.serve(triggered))) }
    }

    pub fn client(&self) -> Client {
        Client::new(self.addr)
    }

    /// A client, once the system has started.
    pub fn ready_client(&self) -> Client {
        let mut client = self.client();
        eventually("ready", || (client.get("/health").status == 200).then_some(()));
        client
    }

    pub fn end(mut self) -> Served {
        self.finish().expect("it has not ended before")
    }

    /// Ends it; none where it has ended before, or the test has failed.
    pub fn finish(&mut self) -> Option<Served> {
        self.stop.trigger();
        let ended = self.thread.take()?.join();
        (!std::thread::panicking()).then(|| ended.unwrap().unwrap())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A server in a process of its own, which is this test program started once more.
pub struct Process {
    pub child: Child,
    pub addr: SocketAddr,
}

impl Process {
    /// Runs one test of it, which looks for this variable and [serves](serve_until_input_ends).
    pub fn start(test: &str, variable: &str, value: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
            .env(variable, value)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.find_map(|line| Some(line.unwrap().split_once("listening http://")?.1.to_owned()));
        let addr = line.expect("it says where it listens").trim().parse().unwrap();
        std::thread::spawn(move || lines.for_each(drop));
        let process = Process { child, addr };
        eventually("ready", || (process.client().get("/health").status == 200).then_some(()));
        process
    }

    pub fn client(&self) -> Client {
        Client::new(self.addr)
    }

    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// What the process of the others does, until its standard input is closed.
pub fn serve_until_input_ends(server: BoundServer) {
    let stop = Stop::new();
    let triggered = stop.triggered();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        stop.trigger();
    });
    server.serve(triggered).unwrap();
}

pub struct Client {
    pub stream: TcpStream,
    received: Vec<u8>,
    /// Sent with every request when set.
    pub cookie: Option<String>,
}

#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("the body is UTF-8")
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

impl Client {
    pub fn new(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).expect("connects");
        stream.set_read_timeout(Some(PATIENCE)).expect("takes a timeout");
        stream.set_nodelay(true).expect("takes nodelay");
        Client { stream, received: Vec::new(), cookie: None }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("sends");
    }

    pub fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, &[], b"")
    }

    pub fn form(&mut self, path: &str, form: &str) -> Reply {
        let headers = [("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8")];
        self.request("POST", path, &headers, form.as_bytes())
    }

    pub fn request(&mut self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if let Some(cookie) = &self.cookie {
            head += &format!("Cookie: {cookie}\r\n");
        }
        if !body.is_empty() || method == "POST" {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        head += "\r\n";
        self.send(&[head.as_bytes(), body].concat());
        self.reply(method == "HEAD")
    }

    /// Reads the next answer.
    pub fn reply(&mut self, without_body: bool) -> Reply {
        let end = loop {
            match self.received.windows(4).position(|four| four == b"\r\n\r\n") {
                Some(at) => break at + 4,
                None => assert!(self.receive() > 0, "closed before an answer; got {:?}", self.received),
            }
        };
        let head = String::from_utf8(self.received.drain(..end).collect()).expect("the head is text");
        let mut lines = head.trim_end().split("\r\n");
        let status_line = lines.next().expect("there is a status line");
        let status = status_line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect(status_line);
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').expect(line))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut reply = Reply { status, headers, body: Vec::new() };
        if !(without_body || status == 204 || status == 304 || status < 200) {
            let length: usize =
                reply.header("content-length").expect("there is a length").parse().expect("a number");
            while self.received.len() < length {
                assert!(self.receive() > 0, "closed within a body");
            }
            reply.body = self.received.drain(..length).collect();
        }
        reply
    }

    /// Whether the server closes the connection without sending more. Blocks until it does one or the other.
    pub fn is_closed(&mut self) -> bool {
        self.received.is_empty() && self.receive() == 0
    }

    fn receive(&mut self) -> usize {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer) {
            Ok(got) => {
                self.received.extend_from_slice(&buffer[..got]);
                got
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("no answer: {error}"),
        }
    }
}

/// Holds the description at `/openapi.json` against what is served: each path of it has just its methods. Returns it.
pub fn described_is_served(client: &mut Client) -> serde_json::Value {
    let reply = client.get("/openapi.json");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    let document = reply.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().expect("paths");
    assert!(!paths.is_empty());
    for (path, operations) in paths {
        let mut described: Vec<_> = operations.as_object().expect("operations").keys().cloned().collect();
        described.retain(|key| key != "parameters");
        let asked = path.replace(['{', '}'], "");
        let reply = client.request("PURGE", &asked, &[], b"");
        assert_eq!(reply.status, 405, "{path}");
        let allowed = reply.header("allow").expect("Allow").to_ascii_lowercase();
        // whoever has GET has HEAD, which is not described
        let mut allowed: Vec<_> = allowed.split(',').filter(|method| *method != "head").collect();
        allowed.sort_unstable();
        assert_eq!(described, allowed, "{path}");
    }
    document
}
