//! Against real services of other people's making (`tests/services`): httpbin, FastAPI, Express, better-sse, grpc-python, nginx.
//!
//! Each is started once for all tests of this program, at the first that needs it, and ends with the program, however that
//! ends: it goes when its standard input does. Where one is not installed, the tests that need it fail and say so.

mod bodies;
mod client;
mod debugging;
mod events;
mod first;
mod grpc;
mod grpc_go;
mod nginx;
mod own;
mod quick;
mod watching;

use std::fs::{self, File};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{PATIENCE, code, run, stderr, stdout};

/// How often a service is started where its port turns out to be taken.
const ATTEMPTS: u32 = 3;

/// A service that answers.
struct Service {
    /// `http://127.0.0.1:PORT`.
    url: String,
    /// The same over TLS, where it has that.
    secure: String,
    /// The same where a client has to show a certificate.
    members: String,
    /// What `serve` makes for it, where it does.
    folder: PathBuf,
    /// Its certificate, where it has one.
    certificate: PathBuf,
    /// What it stands on ends when this is dropped, with this program at the latest.
    _child: Child,
}

static HTTPBIN: OnceLock<Service> = OnceLock::new();
static SHOP: OnceLock<Service> = OnceLock::new();
static ACCOUNT: OnceLock<Service> = OnceLock::new();
static EVENTS: OnceLock<Service> = OnceLock::new();
static CART: OnceLock<Service> = OnceLock::new();
static NGINX: OnceLock<Service> = OnceLock::new();

fn httpbin() -> &'static Service {
    HTTPBIN.get_or_init(|| Service::start("httpbin"))
}

/// FastAPI: `shop.py`.
fn shop() -> &'static Service {
    SHOP.get_or_init(|| Service::start("shop"))
}

/// Express: `account.js`.
fn account() -> &'static Service {
    ACCOUNT.get_or_init(|| Service::start("account"))
}

/// better-sse: `events.js`.
fn events() -> &'static Service {
    EVENTS.get_or_init(|| Service::start("events"))
}

/// grpc-python: `cart.py`.
fn cart() -> &'static Service {
    CART.get_or_init(|| Service::start("cart"))
}

fn nginx() -> &'static Service {
    NGINX.get_or_init(|| Service::start("nginx"))
}

/// The folder of the services.
fn services() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/services")
}

/// The programs of the Python packages that they stand on.
fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/services/bin")
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Service {
    fn start(name: &str) -> Service {
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.log"));
        for _ in 0..ATTEMPTS {
            if let Some(service) = Service::try_start(name, &log) {
                return service;
            }
        }
        panic!("{name} does not start:\n{}", fs::read_to_string(&log).unwrap_or_default());
    }

    /// None where it ended at once, as with a port that somebody else has taken meanwhile.
    fn try_start(name: &str, log: &Path) -> Option<Service> {
        let (port, secure, members) = (free_port(), free_port(), free_port());
        let folder = std::env::temp_dir().join(format!("tidemark-{name}-{}-{port}", std::process::id()));
        let said = File::create(log).unwrap();
        let mut child = Command::new(services().join("serve"))
            .args([name, &port.to_string(), &secure.to_string(), &members.to_string()])
            .arg(&folder)
            .stdin(Stdio::piped())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .expect("tests/services/serve starts");
        let begin = Instant::now();
        loop {
            let is_there = TcpStream::connect(("127.0.0.1", port)).is_ok();
            if child.try_wait().unwrap().is_some() {
                let said = fs::read_to_string(log).unwrap_or_default();
                assert!(!said.contains("is not installed"), "{said}");
                return None;
            }
            if is_there {
                break;
            }
            let waited = begin.elapsed();
            assert!(
                waited < PATIENCE,
                "{name} does not listen: {}",
                fs::read_to_string(log).unwrap_or_default()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Service {
            url: format!("http://127.0.0.1:{port}"),
            secure: format!("https://localhost:{secure}"),
            members: format!("https://localhost:{members}"),
            certificate: folder.join("certificate.pem"),
            folder,
            _child: child,
        })
    }
}

/// The types of the cart.
const CART_PROTO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/services/cart.proto");

/// A text with addresses in the place of `{httpbin}`, `{shop}`, `{account}`, `{events}`, `{nginx}`, `{secure}`, `{cart}` and
/// `{members}`, and nginx' files in that of `{certificate}` and `{folder}`; only what it names is started.
fn filled(text: &str) -> String {
    type Place = (&'static str, fn() -> &'static str);
    let address: [Place; 13] = [
        ("{cart}", || cart().url.trim_start_matches("http://")),
        ("{secure cart}", || cart().secure.trim_start_matches("https://")),
        ("{cart's certificate}", || cart().certificate.to_str().unwrap()),
        ("{cart.proto}", || CART_PROTO),
        ("{httpbin}", || &httpbin().url),
        ("{shop}", || &shop().url),
        ("{account}", || &account().url),
        ("{events}", || &events().url),
        ("{nginx}", || &nginx().url),
        ("{secure}", || &nginx().secure),
        ("{members}", || &nginx().members),
        ("{folder}", || nginx().folder.to_str().unwrap()),
        ("{certificate}", || nginx().certificate.to_str().unwrap()),
    ];
    let named = address.into_iter().filter(|(name, _)| text.contains(name));
    named.fold(text.to_owned(), |text, (name, address)| text.replace(name, address()))
}

/// A folder with a scenario of this text, `s.yaml`.
fn folder(text: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.yaml"), filled(text)).unwrap();
    folder
}

/// Each session once, with all that came of it; every request is to end well.
fn once(text: &str) -> String {
    let output = run(folder(text).path(), &["run", "s.yaml", "--once", "-v"]);
    assert_eq!(code(&output), 0, "{}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// The same where something is to fail.
fn once_failed(text: &str) -> String {
    let output = run(folder(text).path(), &["run", "s.yaml", "--once", "-v"]);
    assert_eq!(code(&output), 1, "{}{}", stdout(&output), stderr(&output));
    stdout(&output)
}

/// What a run came to. What it is worth as a measurement is not asked: on a machine that is busy with other tests, the
/// driver may be the limit.
fn measured(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[arguments, &["--json", "-q"]].concat());
    let told = stderr(&output);
    assert!([0, 1, 3].contains(&code(&output)), "{told}");
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {told}"))
}

/// What a scenario came to under its load; every request is to end well.
fn loaded(text: &str) -> Value {
    let folder = folder(text);
    let summary = measured(folder.path(), &["run", "s.yaml", "--out", "run"]);
    assert_all_good(&summary);
    summary
}

/// There were requests, and each had a good answer.
fn assert_all_good(summary: &Value) {
    let failed = (&summary["failed"], &summary["failures"], &summary["run"]["error_examples"]);
    assert!(summary["requests"].as_u64() > Some(0) && summary["failed"] == 0, "{failed:?}");
}

/// Of the steps, targets, … of a summary the one of this name.
fn of<'s>(summary: &'s Value, list: &str, key: &str, name: &str) -> &'s Value {
    let all = summary[list].as_array().unwrap_or_else(|| panic!("no {list} in {summary}"));
    all.iter().find(|one| one[key] == name).unwrap_or_else(|| panic!("no {name} among {all:?}"))
}

/// All notes of a summary.
fn notes(summary: &Value) -> String {
    summary["notes"].to_string()
}

/// Each of these is said.
fn assert_says(text: &str, says: &[&str]) {
    for said in says {
        assert!(text.contains(said), "no `{said}` in\n{text}");
    }
}
