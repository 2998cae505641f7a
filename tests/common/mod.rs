//! What the end-to-end tests share: a shipped system as a child process, and a plain blocking HTTP client.
#![allow(dead_code, reason = "each test binary uses its own part")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use tidemark_wire::http1::{DecoderLimits, ResponseDecoder};

/// Longest wait for anything that should come at once.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program under test.
pub fn tidemark() -> Command {
    Command::new(env!("CARGO_BIN_EXE_tidemark"))
}

/// Runs a scenario in a folder, its run in `run` there; the output and what it came to.
pub fn run(folder: &Path, text: &str) -> (Output, serde_json::Value) {
    std::fs::write(folder.join("s.yaml"), text).expect("the scenario is written");
    let _ = std::fs::remove_dir_all(folder.join("run"));
    let output = tidemark()
        .current_dir(folder)
        .args(["run", "s.yaml", "--out", "run", "--json"])
        .output()
        .expect("tidemark runs");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = serde_json::from_slice(&output.stdout);
    let result = result.unwrap_or_else(|error| panic!("{error}: {told}"));
    (output, result)
}

/// Runs it in a folder: its exit status and all that it said, in words.
pub fn tidemark_in(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = tidemark().current_dir(folder).args(arguments).output().expect("tidemark runs");
    let told =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.code(), told.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// What is told of the last run in a folder.
pub fn report(folder: &Path) -> String {
    let output = tidemark().current_dir(folder).args(["report", "run"]).output().expect("it runs");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A scenario of one step is refused when it is checked, in words that have these.
pub fn assert_refused(system: &str, rest: &str, step: &str, words: &str) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let text = format!(
        "system: {system}\nsessions: {{a: {{steps: [{step}]}}}}\nload: {{users: 1, hold: 1s}}\n{rest}\n"
    );
    std::fs::write(folder.path().join("s.yaml"), text).expect("written");
    let (status, told) = tidemark_in(folder.path(), &["check", "s.yaml"]);
    assert!(status == Some(2) && told.contains(words), "{step}: {told}");
}

/// The project's folder.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the project's folder")
}

/// A process of the test, killed when dropped.
pub struct Killed(pub Child);

impl Deref for Killed {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Killed {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A port that nobody has.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port").port()
}

/// Waits until something holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A shipped system, serving; killed when dropped.
pub struct Served {
    child: Killed,
    /// `127.0.0.1:PORT`.
    pub authority: String,
}

impl Served {
    /// `tidemark serve SYSTEM` on a free port, ready to answer.
    pub fn start(system: &str, args: &[&str]) -> Served {
        Served::start_in(&[], system, args)
    }

    /// The same with these variables in its environment.
    pub fn start_in(variables: &[(&str, &str)], system: &str, args: &[&str]) -> Served {
        let mut child = tidemark()
            .envs(variables.iter().copied())
            .args(["serve", system, "--listen", "127.0.0.1:0"])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .expect("tidemark serve starts");
        let stdout = child.stdout.take().expect("stdout is piped");
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line).expect("the listening line");
        let url = line
            .trim()
            .strip_prefix("listening ")
            .unwrap_or_else(|| panic!("not a listening line: {line:?}"));
        let served = Served { child: Killed(child), authority: url.trim_start_matches("http://").to_owned() };
        wait_until(&format!("{system} is healthy"), || {
            Client::connect(&served.authority).get("/health").status == 200
        });
        served
    }

    /// The process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL, and wait until it is gone.
    pub fn kill_9(&mut self) {
        self.child.kill().expect("kill");
        self.child.wait().expect("wait");
    }

    /// SIGTERM, and wait for its exit status.
    pub fn stop(&mut self) -> ExitStatus {
        signal(self.pid(), Signal::TERM);
        let begin = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                return status;
            }
            assert!(begin.elapsed() < PATIENCE, "still running after SIGTERM");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Sends a signal to a process that the test started.
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(pid.try_into().expect("a process id")).expect("not 0");
    rustix::process::kill_process(pid, signal).expect("the process is there");
}

/// An answer.
pub struct Answer {
    /// Status code; 0 where the connection broke.
    pub status: u16,
    /// The cursor of the next page, if there is one.
    pub next_cursor: Option<String>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

/// A keep-alive connection.
pub struct Client {
    authority: String,
    stream: Option<TcpStream>,
}

impl Client {
    /// Connects (an error shows as status 0 with the first request).
    pub fn connect(authority: &str) -> Client {
        let stream = TcpStream::connect(authority).ok();
        if let Some(stream) = &stream {
            stream.set_read_timeout(Some(PATIENCE)).expect("a read time-out");
        }
        Client { authority: authority.to_owned(), stream }
    }

    /// GET.
    pub fn get(&mut self, path: &str) -> Answer {
        self.request("GET", path, "", "")
    }

    /// Any request; a broken connection is status 0.
    pub fn request(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        self.try_request(method, path, headers, body).unwrap_or(Answer {
            status: 0,
            next_cursor: None,
            body: String::new(),
        })
    }

    fn try_request(&mut self, method: &str, path: &str, headers: &str, body: &str) -> Option<Answer> {
        let length =
            if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        let request =
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n{headers}{length}\r\n{body}", self.authority);
        let stream = self.stream.as_mut()?;
        stream.write_all(request.as_bytes()).ok()?;
        let mut decoder =
            ResponseDecoder::new(DecoderLimits { head_bytes: 65_536, headers: 64, body_bytes: 64 << 20 });
        decoder.start(method == "HEAD", true);
        let mut buffer = [0; 65_536];
        loop {
            let read = stream.read(&mut buffer).ok().filter(|n| *n > 0)?;
            if decoder.decode(&buffer[..read]).ok()?.complete {
                break;
            }
        }
        let next_cursor = decoder.header("next-cursor").map(|c| String::from_utf8_lossy(c).into_owned());
        if !decoder.keep_alive() {
            self.stream = None;
        }
        Some(Answer {
            status: decoder.status(),
            next_cursor,
            body: String::from_utf8_lossy(decoder.body()).into_owned(),
        })
    }
}
