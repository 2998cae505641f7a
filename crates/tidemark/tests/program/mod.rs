//! The real executable in a folder of its own.
#![allow(dead_code, reason = "each test binary uses its own part")]

#[cfg(feature = "tui")]
pub mod pty;
pub mod runs;
pub mod server;
pub mod store;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::PrivateKeyDer;
use serde_json::Value;

/// Longest wait for anything that should come soon.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program, started in `folder`.
pub fn tidemark(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidemark"));
    command.current_dir(folder).args(arguments).stdin(Stdio::null());
    command
}

/// Runs it to its end.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    tidemark(folder, arguments).output().expect("the program starts")
}

/// Begins it; what it says on standard output and standard error can be read.
pub fn begin(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = tidemark(folder, arguments);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Begins it, and hears nothing of it.
pub fn begin_silent(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = tidemark(folder, arguments);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
}

/// Wrong use: refused with exit status 2 and a message that says this.
pub fn assert_refused(folder: &Path, arguments: &[&str], says: &str) {
    let output = run(folder, arguments);
    let text = stderr(&output);
    assert_eq!((code(&output), stdout(&output).as_str()), (2, ""), "{arguments:?}: {text}");
    assert!(text.contains(says), "{arguments:?} should say `{says}`: {text}");
    assert!(!text.contains("panicked") && !text.contains("internal error"), "{text}");
}

/// Writes the example of a price file, `prices.yaml`.
pub fn write_prices(folder: &Path) {
    fs::write(folder.join("prices.yaml"), run(folder, &["cost", "--example"]).stdout).unwrap();
}

/// Writes the shipped airline as `airline.yaml`, without its warm-up: for tests that ask nothing of a warm system.
pub fn write_airline(folder: &Path) {
    let shipped = include_str!("../../../../scenarios/airline.yaml");
    fs::write(folder.join("airline.yaml"), shipped.replace("  warm-up: 5s\n", "")).unwrap();
}

/// The bills that `tidemark cost` has of a directory; with the prices of that file.
pub fn bills(folder: &Path, dir: &str) -> Value {
    let output = run(folder, &["cost", dir, "--prices", "prices.yaml", "--json"]);
    json(&output)["bills"].clone()
}

/// What it printed: one object of JSON and nothing else.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

/// A file of JSON.
pub fn read_json(path: impl AsRef<Path>) -> Value {
    serde_json::from_slice(&fs::read(path).expect("it is there")).expect("it is JSON")
}

/// Its exit status.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap_or_else(|| panic!("ended by a signal: {}", stderr(output)))
}

/// What it said on standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What it said on standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until something holds.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a process that the test started, or to a child of one.
pub fn send(id: u32, signal: Signal) {
    kill_process(pid(id), signal).expect("the process is there");
}

/// Whether a process is there and no zombie.
pub fn is_alive(id: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    test_kill_process(pid(id)).is_ok() && !stat.contains(") Z ")
}

/// The children of a process.
pub fn children(id: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}

/// A server over TLS with this certificate.
pub fn tls_config(certificate: &rcgen::Certificate, key: &rcgen::KeyPair) -> ServerConfig {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap()
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.try_into().expect("a process id")).expect("not 0")
}
